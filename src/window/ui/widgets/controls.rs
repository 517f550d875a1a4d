//! Buttons and menu items of the action table, check boxes, radio buttons, numbers that are typed, dragged or slid, and
//! entries in a menu of recent items.

use std::ops::RangeInclusive;
use std::sync::Arc;

use eframe::egui::emath::Numeric;
use eframe::egui::{
    Button, Context, DragValue, IntoAtoms, Key, Response, RichText, Role, Slider, SliderClamping, Ui, WidgetInfo, vec2,
};

use crate::window::state::{Action, Command, Commands, ReviewCommand, State, ViewNumber};
use crate::window::ui::{keys, theme};

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

/// A button with the action's own label, tooltip and key; disabled with the reason if it is not possible now.
pub(crate) fn action_button_ui(ui: &mut Ui, state: &State, action: Action, commands: &mut Commands) -> Response {
    button_of_action_ui(ui, state, action, Button::new(action.label_in(state)), commands)
}

/// The main button of a panel or dialog.
pub(crate) fn primary_action_button_ui(
    ui: &mut Ui,
    state: &State,
    action: Action,
    commands: &mut Commands,
) -> Response {
    let button = primary_button(ui, action.label_in(state));
    button_of_action_ui(ui, state, action, button, commands)
}

/// In the style of [`primary_action_button_ui`].
pub(crate) fn primary_button<'a>(ui: &Ui, label: &'a str) -> Button<'a> {
    let visuals = ui.visuals();
    let text = RichText::new(label).family(theme::strong_family()).color(theme::on_accent(visuals));
    Button::new(text).fill(theme::accent(visuals))
}

/// A button in the style of [`primary_action_button_ui`]; `missing` is why it is disabled.
pub(crate) fn primary_button_ui(ui: &mut Ui, label: &str, missing: Option<&str>) -> Response {
    let button = ui.add_enabled(missing.is_none(), primary_button(ui, label));
    button.on_disabled_hover_text(missing.unwrap_or_default())
}

/// A button of one character; its name for screen readers is the action's label.
pub(crate) fn action_icon_ui(
    ui: &mut Ui,
    state: &State,
    action: Action,
    icon: &str,
    commands: &mut Commands,
) -> Response {
    let button = Button::new(icon).min_size(vec2(28.0, 0.0));
    let response = button_of_action_ui(ui, state, action, button, commands);
    response.widget_info(|| WidgetInfo::labeled(Role::Button, ui.is_enabled(), action.label_in(state)));
    response
}

/// A button of any style for an action; disabled with the reason if it is not possible now.
pub(crate) fn button_of_action_ui(
    ui: &mut Ui,
    state: &State,
    action: Action,
    button: Button<'_>,
    commands: &mut Commands,
) -> Response {
    let check = action.check(state);
    ui.add_enabled(check.is_ok(), button)
        .on_hover_text(tooltip(ui.ctx(), state, action))
        .on_disabled_hover_text(check.err().unwrap_or_default())
        .on_click(commands, || action)
}

/// A button that pushes a command that is not in the action table.
pub(crate) fn command_button_ui<'a, C: Into<Command>>(
    ui: &mut Ui,
    label: impl IntoAtoms<'a>,
    commands: &mut Commands,
    command: impl FnOnce() -> C,
) {
    ui.button(label).on_click(commands, command);
}

/// Controls whose click does one thing.
pub(crate) trait OnClick {
    /// Pushes a command if the control is clicked.
    fn on_click<C: Into<Command>>(self, commands: &mut Commands, command: impl FnOnce() -> C) -> Self;
}

impl OnClick for Response {
    fn on_click<C: Into<Command>>(self, commands: &mut Commands, command: impl FnOnce() -> C) -> Self {
        if self.clicked() {
            commands.push(command());
        }
        self
    }
}

fn tooltip(ctx: &Context, state: &State, action: Action) -> String {
    let label = action.label_now(state);
    let says_more = label != action.label_in(state);
    let text = if says_more { label } else { action.tooltip() };
    match keys::shortcut_text(ctx, action) {
        Some(keys) => format!("{text} ({keys})"),
        None => text,
    }
}

/// As wide as the check mark: an em space and a thin space.
const NO_TICK: &str = "\u{2003}\u{2009}";

/// The items of a menu, with their keys on the right, and a separator between groups. If an action can be on, all items
/// leave room for a check mark.
pub(crate) fn action_menu_ui(ui: &mut Ui, state: &State, groups: &[&[Action]], commands: &mut Commands) {
    let has_ticks = groups.iter().copied().flatten().any(|action| action.is_on(state).is_some());
    let room = if has_ticks { NO_TICK } else { "" };
    for (index, group) in groups.iter().enumerate() {
        if index > 0 {
            ui.separator();
        }
        for action in *group {
            menu_item_ui(ui, state, *action, room, commands);
        }
    }
}

/// Opens a menu on a click with the secondary button.
pub(crate) fn context_menu_ui(response: &Response, state: &State, groups: &[&[Action]], commands: &mut Commands) {
    response.context_menu(|ui| action_menu_ui(ui, state, groups, commands));
}

fn menu_item_ui(ui: &mut Ui, state: &State, action: Action, room: &str, commands: &mut Commands) {
    let is_on = action.is_on(state);
    let label = action.label_now(state);
    let sign = if is_on == Some(true) { "✓ " } else { room };
    let mut button = Button::new(format!("{sign}{label}"));
    if let Some(keys) = keys::shortcut_text(ui.ctx(), action) {
        button = button.shortcut_text(keys);
    }
    let check = action.check(state);
    let response = ui.add_enabled(check.is_ok(), button).on_hover_text(action.tooltip());
    response.widget_info(|| match is_on {
        Some(is_on) => WidgetInfo::selected(Role::Button, check.is_ok(), is_on, label.as_str()),
        None => WidgetInfo::labeled(Role::Button, check.is_ok(), label.as_str()),
    });
    if response.on_disabled_hover_text(check.err().unwrap_or_default()).clicked() {
        commands.push(action);
        ui.close();
    }
}
