//! A dialog with a list on the left and the page of the selected entry next to it.

use eframe::egui::{
    Align, Button, ComboBox, Context, Label, Layout, Response, RichText, ScrollArea, TextEdit, Ui, vec2,
};

use crate::domain::{ListQuery, S3Access, Utc};
use crate::sagemaker::spec::transform::LogLine;
use crate::window::s3::ui::access::{AccessMemory, access_ui};
use crate::window::state::{Command, Commands, RemoteList, State};
use crate::window::ui::dialog::dialog_ui;
use crate::window::ui::widgets::{Tone, banner_ui, command_button_ui, copy_sign_in_ui, enter_pressed, strong};

const WIDTH: f32 = 1080.0;
const LIST_WIDTH: f32 = 340.0;
/// Below this width, in points, the page replaces the list.
const TWO_COLUMNS: f32 = 720.0;

/// `contents` receives the remaining height, in points.
pub(crate) fn list_dialog_ui(
    ctx: &Context,
    id: &str,
    title: &str,
    commands: &mut Commands,
    contents: impl FnOnce(&mut Ui, f32, &mut Commands),
) {
    dialog_ui(ctx, id, WIDTH, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0);
        heading_ui(ui, title, commands);
        contents(ui, room.y - 40.0, commands);
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
    pub(crate) empty: &'static str,
}

pub(crate) enum ListRequest<S> {
    Read(ListQuery<S>),
    ReadMore,
}

impl<S: Copy + PartialEq> ListWords<S> {
    /// The filter fields with the rows below. `beside` draws buttons next to “List”, `above` rows that come first, and
    /// `row` a row.
    #[expect(clippy::too_many_arguments, reason = "the parts of a list")]
    pub(crate) fn list_ui<T>(
        &self,
        ui: &mut Ui,
        state: &State,
        memory: &mut ListMemory<S>,
        list: &RemoteList<S, T>,
        height: f32,
        commands: &mut Commands,
        beside: impl FnOnce(&mut Ui, &str, &mut Commands),
        above: impl FnOnce(&mut Ui, &mut Commands),
        mut row: impl FnMut(&mut Ui, &S3Access, &T, &mut Commands),
    ) -> Option<ListRequest<S>> {
        let top = ui.cursor().top();
        access_ui(ui, state, &mut memory.access, commands);
        ui.add_space(6.0);
        let mut request = self.filter_ui(ui, memory, list, |ui, name| beside(ui, name, commands));
        ui.add_space(4.0);
        let height = height - (ui.cursor().top() - top);
        ScrollArea::vertical()
            .id_salt(self.things)
            .max_height(height)
            .min_scrolled_height(height)
            .auto_shrink(false)
            .show(ui, |ui| {
                above(ui, commands);
                let Some(access) = self.head_ui(ui, state, list, commands) else {
                    return;
                };
                for item in &list.rows {
                    row(ui, access, item, commands);
                }
                if list.next.is_some() {
                    let more = Button::new(format!("More {}", self.things));
                    if ui.add_enabled(!list.status.is_loading(), more).clicked() {
                        request = Some(ListRequest::ReadMore);
                    }
                }
            });
        request
    }

    fn filter_ui<T>(
        &self,
        ui: &mut Ui,
        memory: &mut ListMemory<S>,
        list: &RemoteList<S, T>,
        beside: impl FnOnce(&mut Ui, &str),
    ) -> Option<ListRequest<S>> {
        let field = TextEdit::singleline(&mut memory.name).hint_text(self.name_hint).desired_width(f32::INFINITY);
        let field = ui.add(field);
        let mut is_asked = enter_pressed(&field);
        field.accessible_name(self.name_label);
        let name = memory.name.trim();
        ui.horizontal_wrapped(|ui| {
            let text = |status: Option<S>| status.map_or_else(|| "any status".to_owned(), self.word);
            let before = memory.status;
            let all = std::iter::once(None).chain(self.statuses.iter().copied().map(Some));
            let combo = ComboBox::from_id_salt(("status", self.things))
                .width(110.0)
                .selected_text(text(memory.status))
                .show_ui(ui, |ui| {
                    for status in all {
                        ui.selectable_value(&mut memory.status, status, text(status));
                    }
                });
            let label = format!("Status of the {}", self.things);
            combo.response.accessible_name(label);
            // Once a list was read, another status is shown immediately.
            is_asked |= before != memory.status && list.requested.is_some();
            is_asked |= ui.button(format!("List {}", self.things)).clicked();
            beside(ui, name);
            if list.status.is_loading() {
                ui.spinner();
            }
        });
        let query = ListQuery {
            name_contains: (!name.is_empty()).then(|| name.to_owned()),
            status: memory.status,
            page_token: None,
        };
        is_asked.then_some(ListRequest::Read(query))
    }

    /// Why the list could not be read, or that it was not read, or with other settings. Returns the access of the list.
    fn head_ui<'l, T>(
        &self,
        ui: &mut Ui,
        state: &State,
        list: &'l RemoteList<S, T>,
        commands: &mut Commands,
    ) -> Option<&'l S3Access> {
        if let Some(failure) = list.status.failure() {
            banner_ui(ui, Tone::Error, failure.message(), |ui| {
                copy_sign_in_ui(ui, Some(failure), commands);
            });
        }
        let Some((access, _)) = &list.requested else {
            ui.weak(format!("Not listed yet. “List {}” shows those in your account and region", self.things));
            return None;
        };
        if *access != state.s3.access {
            ui.weak("Listed with different settings; list again");
        }
        if list.is_known_to_be_empty() {
            ui.weak(self.empty);
        }
        Some(access)
    }
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

/// `page` draws the selected entry, and is `None` if there is none. `list` and `page` receive their height, in points.
/// Returns whether the button `back`, which leads from the page to the list in a narrow window, was clicked.
pub(crate) fn columns_ui<C>(
    ui: &mut Ui,
    height: f32,
    back: &str,
    nothing: &EmptyPage,
    context: &mut C,
    list: impl FnOnce(&mut Ui, f32, &mut C),
    page: Option<impl FnOnce(&mut Ui, f32, &mut C)>,
) -> bool {
    if ui.available_width() < TWO_COLUMNS {
        let Some(page) = page else {
            list(ui, height, context);
            return false;
        };
        let goes_back = ui.button(back).clicked();
        page(ui, height - 30.0, context);
        return goes_back;
    }
    ui.horizontal_top(|ui| {
        ui.vertical(|ui| {
            ui.set_width(LIST_WIDTH);
            list(ui, height, context);
        });
        ui.separator();
        ui.vertical(|ui| {
            ui.set_width(ui.available_width());
            match page {
                Some(page) => page(ui, height, context),
                None => nothing_open_ui(ui, nothing),
            }
        });
    });
    false
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
