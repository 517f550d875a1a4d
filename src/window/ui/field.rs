//! A field of a form or panel: a control with a name, help and a hint. All forms draw their controls with it, so that
//! each one has its name for screen readers, and its help for the pointer, the keyboard and screen readers. Also the
//! address field of dialogs that open local files or files in S3.

use std::borrow::Cow;
use std::path::PathBuf;

use eframe::egui::{
    Align, ComboBox, Context, DragValue, Event, Id, Key, Layout, Popup, PopupCloseBehavior, Response, RichText,
    TextEdit, Tooltip, Ui, vec2,
};

use crate::domain::{Location, S3Link, S3Place};
use crate::window::s3::ui::access::{AccessMemory, access_ui};
use crate::window::state::{Command, Commands, OpeningOutputs, OutputsFailure, State};
use crate::window::ui::widgets::{
    Tone, command_button_ui, enter_pressed, focus_whole_text, message_ui, primary_button_ui, problem_ui, progress_ui,
    truncated_ui,
};

/// A list that is higher scrolls, in points.
const LIST_HEIGHT: f32 = 320.0;

/// The width of names next to their controls.
pub(crate) const NAME_WIDTH: f32 = 108.0;

#[derive(Debug, Clone)]
pub(crate) struct Field<'f> {
    name: Cow<'f, str>,
    help: &'f str,
    hint: &'f str,
    width: Option<f32>,
}

impl<'f> Field<'f> {
    pub(crate) fn new(name: impl Into<Cow<'f, str>>) -> Self {
        Self { name: name.into(), help: "", hint: "", width: None }
    }

    pub(crate) fn help(self, help: &'f str) -> Self {
        Self { help, ..self }
    }

    /// The text of an empty field.
    pub(crate) fn hint(self, hint: &'f str) -> Self {
        Self { hint, ..self }
    }

    /// In points. Otherwise, a text takes the available width, and a list that of its text.
    pub(crate) fn width(self, width: f32) -> Self {
        Self { width: Some(width), ..self }
    }

    /// One of several controls of the field.
    pub(crate) fn part(&self, name: &str) -> Self {
        Self { name: format!("{}, {name}", self.name).into(), ..self.clone() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name above the control.
    pub(crate) fn caption_ui(self, ui: &mut Ui) -> Self {
        ui.label(RichText::new(&*self.name).small().weak());
        self
    }

    /// The name, with `control` on its right.
    pub(crate) fn row_ui(&self, ui: &mut Ui, control: impl FnOnce(&mut Ui, &Self)) {
        ui.horizontal(|ui| {
            let size = vec2(NAME_WIDTH, ui.spacing().interact_size.y);
            ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
                ui.set_min_width(NAME_WIDTH);
                truncated_ui(ui, &*self.name).on_hover_text(self.help);
            });
            control(ui, self);
        });
    }

    pub(crate) fn text_ui(&self, ui: &mut Ui, text: &mut String) -> Response {
        let width = self.width.unwrap_or(f32::INFINITY);
        self.explain(ui.add(TextEdit::singleline(text).hint_text(self.hint).desired_width(width)))
    }

    pub(crate) fn number_ui(&self, ui: &mut Ui, number: DragValue<'_>) -> Response {
        self.explain(ui.add(number))
    }

    /// A list of values with their texts.
    pub(crate) fn choice_ui<T: Clone + PartialEq>(&self, ui: &mut Ui, value: &mut T, choices: &[(T, &str)]) {
        let text = choices.iter().find(|(choice, _)| choice == value).map_or(self.hint, |(_, text)| text);
        self.list_ui(ui, text, |ui| {
            for (choice, text) in choices {
                ui.selectable_value(value, choice.clone(), *text);
            }
        });
    }

    /// A list that opens below `text` and closes with a choice.
    pub(crate) fn list_ui(&self, ui: &mut Ui, text: &str, contents: impl FnOnce(&mut Ui)) {
        self.list_until(PopupCloseBehavior::CloseOnClick, ui, text, contents);
    }

    pub(crate) fn list_until(
        &self,
        close: PopupCloseBehavior,
        ui: &mut Ui,
        text: &str,
        contents: impl FnOnce(&mut Ui),
    ) {
        let list = ComboBox::from_id_salt(&self.name).selected_text(text).close_behavior(close).height(LIST_HEIGHT);
        let Some(width) = self.width else {
            self.explain(list.show_ui(ui, contents).response);
            return;
        };
        // Otherwise, its text would take the whole row.
        let size = vec2(width, ui.spacing().interact_size.y);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            self.explain(list.width(width).truncate().show_ui(ui, contents).response);
        });
    }

    /// Names a control and explains it: to the pointer, on keyboard focus, and to screen readers.
    pub(crate) fn explain(&self, control: Response) -> Response {
        let control = control.accessible_name(&*self.name);
        if self.help.is_empty() {
            return control;
        }
        control.ctx.accesskit_node_builder(control.id, |node| node.set_description(self.help));
        if control.gained_focus() {
            control.scroll_to_me(None);
        }
        if control.has_focus() && is_led_by_tab(&control.ctx) && !Popup::is_any_open(&control.ctx) {
            Tooltip::for_widget(&control).show(|ui| ui.label(self.help));
            return control;
        }
        control.on_hover_text(self.help)
    }
}

fn led_by_tab() -> Id {
    Id::unique("the focus was moved by Tab")
}

/// Whether Tab was the last key or click.
fn is_led_by_tab(ctx: &Context) -> bool {
    ctx.data(|data| data.get_temp(led_by_tab())).unwrap_or(false)
}

/// Records whether the user navigates with the keyboard; called once per frame.
pub(crate) fn note_tab(ctx: &Context) {
    let last = ctx.input(|input| {
        input.events.iter().rev().find_map(|event| match event {
            Event::Key { key, pressed: true, .. } => Some(*key == Key::Tab),
            Event::PointerButton { pressed: true, .. } | Event::Text(_) => Some(false),
            _ => None,
        })
    });
    if let Some(is_tab) = last {
        ctx.data_mut(|data| data.insert_temp(led_by_tab(), is_tab));
    }
}

#[derive(Default)]
pub(crate) struct PlaceMemory {
    pub(crate) address: String,
    access: AccessMemory,
    /// The address when the last attempt failed: its error is about no other.
    failed_at: Option<String>,
}

impl PlaceMemory {
    pub(crate) fn is_empty(&self) -> bool {
        self.address.trim().is_empty()
    }

    /// `None` while nothing valid is typed.
    pub(crate) fn location(&self, state: &State) -> Option<Location> {
        let address = self.address.trim();
        if address.is_empty() {
            return None;
        }
        if !S3Link::is_address(address) {
            return Some(Location::Path(PathBuf::from(address)));
        }
        let link = S3Link::parse(address).ok()?;
        let access = self.access.with_drafts(state.s3.access.clone());
        Some(Location::S3(Box::new(S3Place { access, ..S3Place::new(link.address) })))
    }

    /// Why the address on screen could not be opened.
    pub(crate) fn failure<'o>(&mut self, opening: Option<&'o OpeningOutputs>) -> Option<&'o OutputsFailure> {
        let failure = opening.and_then(|opening| opening.failure.as_ref());
        if failure.is_none() {
            self.failed_at = None;
        }
        failure.filter(|_| *self.failed_at.get_or_insert_with(|| self.address.clone()) == self.address)
    }

    /// Shows the failure, unless a preview does.
    pub(crate) fn failure_ui(&mut self, ui: &mut Ui, opening: Option<&OpeningOutputs>) {
        if let Some(OutputsFailure::Failed { message, examples: None }) = self.failure(opening) {
            ui.add_space(8.0);
            message_ui(ui, Tone::Error, message);
        }
    }

    /// `name` is for screen readers. Returns true if Enter was pressed.
    pub(crate) fn field_ui(&mut self, ui: &mut Ui, (name, hint): (&str, &str), width: f32, is_new: bool) -> bool {
        let field = Field::new(name).hint(hint).width(width).text_ui(ui, &mut self.address);
        if is_new {
            focus_whole_text(&field, &self.address);
        }
        enter_pressed(&field)
    }

    /// The access if the address is in S3, and what is wrong with the address.
    pub(crate) fn access_ui(&mut self, ui: &mut Ui, state: &State, commands: &mut Commands) {
        let address = self.address.trim();
        if S3Link::is_address(address) {
            if let Err(error) = S3Link::parse(address) {
                problem_ui(ui, &error);
            }
            access_ui(ui, state, &mut self.access, commands);
        }
    }
}

/// The buttons of a dialog: the first one pushes `command`, or shows why it is disabled. `opening`: another request
/// that must finish first.
pub(crate) fn footer_ui(
    ui: &mut Ui,
    state: &State,
    opening: Option<&OpeningOutputs>,
    label: &str,
    command: Result<Command, String>,
    is_entered: bool,
    commands: &mut Commands,
) {
    ui.add_space(8.0);
    let task = opening.and_then(|opening| opening.task);
    if let Some(task) = task {
        progress_ui(ui, state, task, "Stop", commands);
        ui.add_space(4.0);
    }
    ui.horizontal(|ui| {
        let command = match task {
            Some(_) => Err("Wait for reading to finish, or stop it".to_owned()),
            None => command,
        };
        let open = primary_button_ui(ui, label, command.as_ref().err().map(String::as_str));
        if let (true, Ok(command)) = (open.clicked() || is_entered, command) {
            commands.push(command);
        }
        // Reading has its own button, and continues without the dialog.
        command_button_ui(ui, if task.is_some() { "Close" } else { "Cancel" }, commands, || Command::CLOSE_OVERLAY);
    });
}
