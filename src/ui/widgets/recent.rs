//! A line of a menu of what was opened before.

use eframe::egui::{Button, Ui};

/// What was done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum RecentLine {
    Chosen,
    /// It is not to be listed any more.
    Forgotten,
}

/// `button` opens what is called `name`.
pub(in super::super) fn recent_line_ui(
    ui: &mut Ui,
    button: Button<'_>,
    name: &str,
) -> Option<RecentLine> {
    ui.horizontal(|ui| {
        let forget = ui
            .button("×")
            .on_hover_text("Take it off this list; nothing else is deleted")
            .accessible_name(format!("Forget {name}"));
        let choose = ui.add(button);
        if forget.clicked() {
            return Some(RecentLine::Forgotten);
        }
        choose.clicked().then(|| {
            ui.close();
            RecentLine::Chosen
        })
    })
    .inner
}
