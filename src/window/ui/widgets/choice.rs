//! Check boxes and radio buttons. Unlike buttons, they need a visible outline, because only that shows that there is a
//! choice (at least 3:1, WCAG 2.2, 1.4.11).

use std::sync::Arc;

use eframe::egui::{IntoAtoms, Response, Ui};

use super::super::theme;

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
