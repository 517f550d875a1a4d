//! A dialog with a list on the left and the page of the selected entry next to it.

use eframe::egui::ComboBox;

use crate::domain::{ListQuery, S3Access, Utc};
use crate::sagemaker::spec::transform::LogLine;
use crate::window::remote::state::{RemoteCommand, Resource, Resources};
use crate::window::s3::ui::access::{AccessMemory, access_ui};
use crate::window::state::{Failure, Watch};
use crate::window::ui::prelude::*;

const WIDTH: f32 = 1080.0;
const LIST_WIDTH: f32 = 340.0;
/// Below this width, in points, the page replaces the list.
const TWO_COLUMNS: f32 = 720.0;

/// A kind of resource in its dialog: a list, and the page of a single one.
pub(crate) trait ResourceUi: Resource<Status: Copy> {
    /// What the dialog keeps between frames.
    type Memory;

    const TITLE: &'static str;
    const NOTHING_OPEN: EmptyPage;
    const WORDS: ListWords<Self::Status>;

    fn list_memory(memory: &mut Self::Memory) -> &mut ListMemory<Self::Status>;

    /// Buttons next to “List”, for the typed name.
    fn name_buttons_ui(_ui: &mut Ui, _state: &State, _name: &str, _commands: &mut Commands) {}

    /// Whether it is above the list: it was opened or created here, and the list does not have it.
    fn is_above_list(&self, state: &State) -> bool;

    /// Its row above the list.
    fn known_row_ui(&self, ui: &mut Ui, state: &State, commands: &mut Commands);

    /// A row of the list, which was read with `access`.
    fn row_ui(ui: &mut Ui, state: &State, access: &S3Access, row: &Self::Row, commands: &mut Commands);

    fn page_ui(&self, ui: &mut Ui, state: &State, memory: &mut Self::Memory, commands: &mut Commands);
}

pub(crate) fn resources_ui<R: ResourceUi>(
    ctx: &Context,
    state: &State,
    memory: &mut R::Memory,
    commands: &mut Commands,
) {
    if state.overlay != R::DIALOG {
        return;
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    dialog_ui(ctx, R::WORDS.things, WIDTH, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0);
        heading_ui(ui, R::TITLE, commands);
        columns_ui::<R>(ui, state, memory, room.y - 40.0, commands);
    });
}

fn heading_ui(ui: &mut Ui, title: &str, commands: &mut Commands) {
    ui.horizontal(|ui| {
        ui.label(strong(title).size(18.0));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            command_button_ui(ui, "Close", commands, || Command::CLOSE_OVERLAY);
        });
    });
    ui.add_space(4.0);
}

/// Drafts of the fields above a list whose rows have a status `S`.
pub(crate) struct ListMemory<S> {
    pub(crate) name: String,
    status: Option<S>,
    access: AccessMemory,
}

impl<S> Default for ListMemory<S> {
    fn default() -> Self {
        Self { name: String::new(), status: None, access: AccessMemory::default() }
    }
}

/// The texts and options of a list of jobs or endpoints.
pub(crate) struct ListWords<S: 'static> {
    /// “jobs”.
    pub(crate) things: &'static str,
    pub(crate) name_hint: &'static str,
    pub(crate) name_label: &'static str,
    /// The statuses to filter the list by.
    pub(crate) statuses: &'static [S],
    pub(crate) word: fn(S) -> String,
    /// Above those that the list does not have: “Opened here”.
    pub(crate) above: &'static str,
    pub(crate) empty: &'static str,
}

/// The filter fields with the rows below.
fn list_ui<R: ResourceUi>(ui: &mut Ui, state: &State, memory: &mut R::Memory, height: f32, commands: &mut Commands) {
    let things = R::WORDS.things;
    let top = ui.cursor().top();
    access_ui(ui, state, &mut R::list_memory(memory).access, commands);
    ui.add_space(6.0);
    filter_ui::<R>(ui, state, R::list_memory(memory), commands);
    ui.add_space(4.0);
    let height = height - (ui.cursor().top() - top);
    ScrollArea::vertical().id_salt(things).max_height(height).min_scrolled_height(height).auto_shrink(false).show(
        ui,
        |ui| {
            let Resources { list, known, .. } = R::all(state);
            let above: Vec<&R> = known.iter().rev().filter(|known| known.is_above_list(state)).collect();
            if !above.is_empty() {
                ui.weak(R::WORDS.above);
                for known in above {
                    known.known_row_ui(ui, state, commands);
                }
                ui.separator();
            }
            let Some(access) = head_ui::<R>(ui, state, commands) else {
                return;
            };
            for row in &list.rows {
                R::row_ui(ui, state, access, row, commands);
            }
            if list.next.is_some() {
                let more = Button::new(format!("More {things}"));
                ui.add_enabled(!list.status.is_loading(), more)
                    .on_click(commands, || R::command(RemoteCommand::ListMore));
            }
        },
    );
}

fn filter_ui<R: ResourceUi>(ui: &mut Ui, state: &State, memory: &mut ListMemory<R::Status>, commands: &mut Commands) {
    let (words, list) = (R::WORDS, &R::all(state).list);
    let field = TextEdit::singleline(&mut memory.name).hint_text(words.name_hint).desired_width(f32::INFINITY);
    let field = ui.add(field);
    let mut is_asked = enter_pressed(&field);
    field.accessible_name(words.name_label);
    let name = memory.name.trim();
    ui.horizontal_wrapped(|ui| {
        let text = |status: Option<R::Status>| status.map_or_else(|| "any status".to_owned(), words.word);
        let before = memory.status;
        let all = std::iter::once(None).chain(words.statuses.iter().copied().map(Some));
        let combo = ComboBox::from_id_salt(("status", words.things))
            .width(110.0)
            .selected_text(text(memory.status))
            .show_ui(ui, |ui| {
                for status in all {
                    ui.selectable_value(&mut memory.status, status, text(status));
                }
            });
        combo.response.accessible_name(format!("Status of the {}", words.things));
        // Once a list was read, another status is shown immediately.
        is_asked |= before != memory.status && list.requested.is_some();
        is_asked |= ui.button(format!("List {}", words.things)).clicked();
        R::name_buttons_ui(ui, state, name, commands);
        if list.status.is_loading() {
            ui.spinner();
        }
    });
    if is_asked {
        let name_contains = (!name.is_empty()).then(|| name.to_owned());
        let query = ListQuery { name_contains, status: memory.status, page_token: None };
        commands.push(R::command(RemoteCommand::List(query)));
    }
}

/// Why the list could not be read, or that it was not read, or with other settings. Returns the access of the list.
fn head_ui<'s, R: ResourceUi>(ui: &mut Ui, state: &'s State, commands: &mut Commands) -> Option<&'s S3Access> {
    let list = &R::all(state).list;
    if let Some(failure) = list.status.failure() {
        banner_ui(ui, Tone::Error, failure.message(), |ui| {
            copy_sign_in_ui(ui, Some(failure), commands);
        });
    }
    let Some((access, _)) = &list.requested else {
        ui.weak(format!("Not listed yet. “List {}” shows those in your account and region", R::WORDS.things));
        return None;
    };
    if *access != state.s3.access {
        ui.weak("Listed with different settings; list again");
    }
    if list.is_known_to_be_empty() {
        ui.weak(R::WORDS.empty);
    }
    Some(access)
}

/// A row: `text`, with `right` at its end.
pub(crate) fn row_ui(ui: &mut Ui, is_open: bool, text: String, right: &str) -> Response {
    let button = Button::selectable(is_open, text)
        .right_text(RichText::new(right).weak())
        .truncate()
        .min_size(vec2(ui.available_width(), 0.0));
    ui.add(button)
}

/// The text of the page while no entry is selected.
pub(crate) struct EmptyPage {
    pub(crate) title: &'static str,
    pub(crate) advice: &'static str,
}

/// The list, and next to it the page of the open resource; in a narrow window only one of them.
fn columns_ui<R: ResourceUi>(ui: &mut Ui, state: &State, memory: &mut R::Memory, height: f32, commands: &mut Commands) {
    let open = R::all(state).shown();
    if ui.available_width() < TWO_COLUMNS {
        let Some(open) = open else {
            return list_ui::<R>(ui, state, memory, height, commands);
        };
        command_button_ui(ui, format!("All {}", R::WORDS.things), commands, || R::command(RemoteCommand::Close));
        return page_ui(open, ui, state, memory, height - 30.0, commands);
    }
    ui.horizontal_top(|ui| {
        ui.vertical(|ui| {
            ui.set_width(LIST_WIDTH);
            list_ui::<R>(ui, state, memory, height, commands);
        });
        ui.separator();
        ui.vertical(|ui| {
            ui.set_width(ui.available_width());
            match open {
                Some(open) => page_ui(open, ui, state, memory, height, commands),
                None => nothing_open_ui(ui, &R::NOTHING_OPEN),
            }
        });
    });
}

fn page_ui<R: ResourceUi>(
    open: &R,
    ui: &mut Ui,
    state: &State,
    memory: &mut R::Memory,
    height: f32,
    commands: &mut Commands,
) {
    ScrollArea::vertical()
        .id_salt((R::NOUN, R::name_of(open.id())))
        .max_height(height)
        .min_scrolled_height(height)
        .auto_shrink(false)
        .show(ui, |ui| open.page_ui(ui, state, memory, commands));
}

fn nothing_open_ui(ui: &mut Ui, nothing: &EmptyPage) {
    ui.add_space(24.0);
    ui.vertical_centered(|ui| {
        ui.label(strong(nothing.title));
        ui.weak(nothing.advice);
    });
}

const HEIGHT: f32 = 150.0;

pub(crate) fn log_lines_ui(ui: &mut Ui, lines: &[LogLine]) {
    if lines.is_empty() {
        ui.weak("The log is empty");
        return;
    }
    ScrollArea::both().id_salt("log").max_height(HEIGHT).stick_to_bottom(true).auto_shrink([false, true]).show(
        ui,
        |ui| {
            for line in lines {
                let clock = Utc::from_ms(line.at_ms).time();
                let text = format!("{clock} {}", line.message.trim_end());
                ui.add(Label::new(RichText::new(text).monospace().small()).extend());
            }
        },
    );
}

/// The name of a resource, with buttons at the right end.
pub(crate) fn page_name_ui(
    ui: &mut Ui,
    name: &str,
    commands: &mut Commands,
    buttons_ui: impl FnOnce(&mut Ui, &mut Commands),
) {
    let name_ui = |ui: &mut Ui, _: &mut Commands| {
        truncated_ui(ui, strong(name).size(15.0));
    };
    ends_ui(ui, "page name", commands, name_ui, buttons_ui);
}

/// Why a resource cannot be polled, and other failures.
pub(crate) fn watch_problems_ui(ui: &mut Ui, watch: &Watch, more: Option<&Failure>, commands: &mut Commands) {
    if let Some(trouble) = &watch.trouble {
        message_ui(ui, Tone::Warning, trouble);
    }
    for failure in watch.failure.iter().chain(more) {
        if let Failure::Failed { message, .. } = failure {
            banner_ui(ui, Tone::Error, message, |ui| copy_sign_in_ui(ui, Some(failure), commands));
        }
    }
}

/// A button for something that cannot be undone, and the question that follows.
pub(crate) struct ConfirmedButton {
    pub(crate) label: &'static str,
    pub(crate) question: &'static str,
    pub(crate) yes: &'static str,
    pub(crate) no: &'static str,
}

impl ConfirmedButton {
    /// `asked` is the resource that the question is for, and `id` that of the button. Returns whether it was confirmed.
    pub(crate) fn ui<I: Clone + PartialEq>(
        &self,
        ui: &mut Ui,
        asked: &mut Option<I>,
        id: &I,
        is_enabled: bool,
    ) -> bool {
        if asked.as_ref() != Some(id) {
            if ui.add_enabled(is_enabled, Button::new(self.label)).clicked() {
                *asked = Some(id.clone());
            }
            return false;
        }
        let [mut yes, mut no] = [false; 2];
        banner_ui(ui, Tone::Warning, self.question, |ui| {
            ui.horizontal(|ui| {
                yes = ui.button(self.yes).clicked();
                no = ui.button(self.no).clicked();
            });
        });
        if yes || no {
            *asked = None;
        }
        yes
    }
}
