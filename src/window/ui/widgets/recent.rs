//! An entry in a menu of recent items.

use eframe::egui::{Button, Ui, vec2};

/// The width of the button that opens it, in points.
const MIN_WIDTH: f32 = 300.0;

/// The user's action on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecentLine {
    Chosen,
    /// Removes it from the list.
    Forgotten,
}

/// `button` opens the entry `name`.
pub(crate) fn recent_line_ui(ui: &mut Ui, button: Button<'_>, name: &str) -> Option<RecentLine> {
    ui.horizontal(|ui| {
        let choose = ui.add(button.min_size(vec2(MIN_WIDTH, 0.0)));
        let forget = ui
            .button("×")
            .on_hover_text("Removes this entry from the list; no files are deleted")
            .accessible_name(format!("Forget {name}"));
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
