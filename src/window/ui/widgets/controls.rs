//! Check boxes, radio buttons, numbers that are typed, dragged or slid, and entries in a menu of recent items.

use std::ops::RangeInclusive;
use std::sync::Arc;

use eframe::egui::emath::Numeric;
use eframe::egui::{Button, DragValue, IntoAtoms, Key, Response, Slider, SliderClamping, Ui, vec2};

use crate::window::state::{Commands, ReviewCommand, ViewNumber};
use crate::window::ui::theme;

pub(crate) fn checkbox_ui<'a>(ui: &mut Ui, is_on: &'a mut bool, text: impl IntoAtoms<'a>) -> Response {
    outlined(ui, |ui| ui.checkbox(is_on, text))
}

/// One of several options: a click sets `chosen` to `choice`.
pub(crate) fn radio_ui<'a, V: PartialEq>(ui: &mut Ui, chosen: &mut V, choice: V, text: impl IntoAtoms<'a>) -> Response {
    outlined(ui, |ui| ui.radio_value(chosen, choice, text))
}

/// Not in its own scope, which would start a new line in wrapped rows.
fn outlined(ui: &mut Ui, add: impl FnOnce(&mut Ui) -> Response) -> Response {
    let style = Arc::clone(ui.style());
    let outline = theme::outline(ui.visuals());
    let widgets = &mut ui.visuals_mut().widgets;
    widgets.inactive.bg_stroke.color = outline;
    widgets.hovered.bg_stroke.color = outline;
    let response = add(ui);
    ui.set_style(style);
    response
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn number_field<N: Numeric>(value: &mut N) -> DragValue<'_> {
    DragValue::new(value).update_while_editing(false).clamp_existing_to_range(false)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn slider<N: Numeric>(value: &mut N, range: RangeInclusive<N>) -> Slider<'_> {
    Slider::new(value, range).update_while_editing(false).clamping(SliderClamping::Edits)
}

/// A slider for a number of the settings.
pub(crate) fn view_slider_ui(
    ui: &mut Ui,
    number: ViewNumber,
    mut value: f32,
    name: &str,
    commands: &mut Commands,
) -> Response {
    let response = ui.add(slider(&mut value, number.range()).show_value(false));
    if response.changed() {
        commands.push(ReviewCommand::SetNumber(number, value));
    }
    response.accessible_name(name)
}

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

/// Whether Enter was just pressed in a field of one line.
pub(crate) fn enter_pressed(field: &Response) -> bool {
    field.lost_focus() && field.ctx.input(|input| input.key_pressed(Key::Enter))
}
