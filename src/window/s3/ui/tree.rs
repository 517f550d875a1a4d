//! The tree of buckets and folders: one line each, of which only visible ones are drawn.

use eframe::egui::{Margin, Modifiers, UiBuilder};

use crate::domain::S3Address;
use crate::window::s3::ui::access;
use crate::window::state::{Failure, S3Command, S3Row, S3RowKind};
use crate::window::ui::prelude::*;

const MIN_HEIGHT: f32 = 110.0;
const MAX_HEIGHT: f32 = 420.0;
/// The height of the dialog's frame and of the margin around it.
const AROUND_DIALOG: f32 = 90.0;

#[derive(Default)]
pub(crate) struct TreeMemory {
    wants_focus: bool,
    /// The height in points that the last frame left for the tree.
    height: f32,
}

impl TreeMemory {
    pub(crate) fn take_focus(&mut self) {
        self.wants_focus = true;
    }

    /// The tree uses what the rest of the dialog leaves of the window.
    pub(crate) fn fit(&mut self, dialog_height: f32, window_height: f32) {
        let others = dialog_height - self.height.max(MIN_HEIGHT);
        let left = window_height - others - AROUND_DIALOG;
        self.height = left.clamp(MIN_HEIGHT, MAX_HEIGHT);
    }
}

/// The user's action in the tree.
pub(crate) enum Picked {
    /// The entry was made the current one.
    Folder(S3Address),
    /// The current entry should be opened.
    Open,
}

pub(crate) fn tree_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut TreeMemory,
    current: Option<&S3Address>,
    commands: &mut Commands,
) -> Option<Picked> {
    heading_ui(ui, state, commands);
    let tree = &state.s3.tree;
    if let Some(failure) = tree.bucket_failure() {
        failure_ui(ui, failure, |ui| {
            command_button_ui(ui, "Retry", commands, || S3Command::ListBuckets);
        });
    }
    let height = memory.height.max(MIN_HEIGHT);
    let mut picked = None;
    Frame::new().fill(theme::sunken_fill(ui.visuals())).corner_radius(8).inner_margin(Margin::same(4)).show(ui, |ui| {
        ui.set_min_size(vec2(ui.available_width(), height));
        if tree.rows().is_empty() {
            empty_ui(ui, state);
        } else {
            picked = rows_ui(ui, state, memory, current, height, commands);
        }
    });
    picked
}

fn heading_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let tree = &state.s3.tree;
    ui.horizontal(|ui| {
        ui.label(access::heading(&state.s3.access.credentials));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if let Some(task) = tree.bucket_task() {
                cancel_ui(ui, task, "Cancel listing the buckets", commands);
                ui.spinner();
                return;
            }
            let label = if tree.has_listed_buckets() { "List again" } else { "List buckets" };
            command_button_ui(ui, label, commands, || S3Command::ListBuckets);
        });
    });
}

fn cancel_ui(ui: &mut Ui, task: TaskId, name: &str, commands: &mut Commands) {
    ui.small_button("Cancel").on_click(commands, || Command::cancel(task)).accessible_name(name);
}

fn empty_ui(ui: &mut Ui, state: &State) {
    let tree = &state.s3.tree;
    let text = if tree.bucket_task().is_some() {
        "Listing the buckets…"
    } else if tree.has_listed_buckets() {
        "No buckets to list; enter a bucket address above and browse it"
    } else if tree.bucket_failure().is_some() {
        "Enter a bucket address above and browse it"
    } else {
        access::invitation(&state.s3.access.credentials)
    };
    ui.vertical_centered(|ui| {
        ui.add_space(ui.available_height() * 0.4);
        note_ui(ui, text);
    });
}

fn failure_ui(ui: &mut Ui, failure: &Failure, contents: impl FnOnce(&mut Ui)) {
    if let Failure::Failed { message, .. } = failure {
        banner_ui(ui, Tone::Error, message, contents);
    }
}

fn rows_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut TreeMemory,
    current: Option<&S3Address>,
    height: f32,
    commands: &mut Commands,
) -> Option<Picked> {
    let rows = state.s3.tree.rows();
    let tree_id = Id::unique("bucket tree");
    if std::mem::take(&mut memory.wants_focus) {
        ui.memory_mut(|memory| memory.request_focus(tree_id));
    }
    let (mut typed, mut clicked) = (Typed::default(), None);
    let take_keys = |ui: &Ui| {
        typed = take_keys(ui, rows, current);
        typed.scroll_to
    };
    tree_rows_ui(ui, (tree_id, "Buckets and folders"), (height, rows.len()), take_keys, |ui, row| {
        let folder = row_ui(ui, &rows[row], current, commands);
        let is_clicked = folder.is_some();
        clicked = folder.or(clicked.take());
        is_clicked
    });
    if let Some(command) = typed.command {
        commands.push(command);
    }
    clicked.map(Picked::Folder).or(typed.picked)
}

/// What was done with keys.
#[derive(Default)]
struct Typed {
    picked: Option<Picked>,
    /// The row to scroll into view.
    scroll_to: Option<usize>,
    command: Option<S3Command>,
}

/// The keys of the tree while it has the focus.
fn take_keys(ui: &Ui, rows: &[S3Row], current: Option<&S3Address>) -> Typed {
    let take = |key| ui.input_mut(|input| input.consume_key(Modifiers::NONE, key));
    let place = current.and_then(|current| place_of(rows, current));
    let mut typed = Typed::default();
    let mut target = None;
    if take(Key::ArrowDown) {
        target = next_folder(rows, place);
    }
    if take(Key::ArrowUp) {
        target = place.and_then(|place| (0..place).rev().find(|row| folder(&rows[*row]).is_some()));
    }
    if take(Key::Home) {
        target = next_folder(rows, None);
    }
    if take(Key::End) {
        target = (0..rows.len()).rev().find(|row| folder(&rows[*row]).is_some());
    }
    if let Some((address, is_open)) = place.and_then(|place| folder(&rows[place])) {
        if take(Key::ArrowRight) {
            if is_open {
                target = next_folder(rows, place);
            } else {
                typed.command = Some(S3Command::SetFolderOpen(address.clone(), true));
            }
        }
        if take(Key::ArrowLeft) {
            if is_open {
                typed.command = Some(S3Command::SetFolderOpen(address.clone(), false));
            } else {
                let parent = address.parent();
                target = parent.and_then(|parent| place_of(rows, &parent));
            }
        }
        if take(Key::Enter) {
            return Typed { picked: Some(Picked::Open), ..typed };
        }
    }
    typed.scroll_to = target;
    typed.picked = target.and_then(|row| folder(&rows[row])).map(|(address, _)| Picked::Folder(address.clone()));
    typed
}

fn folder(row: &S3Row) -> Option<(&S3Address, bool)> {
    match &row.kind {
        S3RowKind::Folder { address, is_open } => Some((address, *is_open)),
        _ => None,
    }
}

fn place_of(rows: &[S3Row], address: &S3Address) -> Option<usize> {
    rows.iter().position(|row| folder(row).is_some_and(|(folder, _)| folder == address))
}

fn next_folder(rows: &[S3Row], place: Option<usize>) -> Option<usize> {
    let first = place.map_or(0, |place| place + 1);
    (first..rows.len()).find(|row| folder(&rows[*row]).is_some())
}

/// One line. Returns the folder that was clicked.
fn row_ui(ui: &mut Ui, row: &S3Row, current: Option<&S3Address>, commands: &mut Commands) -> Option<S3Address> {
    if let S3RowKind::Folder { address, is_open } = &row.kind {
        return folder_ui(ui, row.depth, address, *is_open, current, commands);
    }
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), TREE_ROW_HEIGHT), Sense::hover());
    let content = rect.with_min_x(rect.left() + row.depth as f32 * TREE_INDENT);
    match &row.kind {
        S3RowKind::Folder { .. } => {}
        S3RowKind::Objects { count } => {
            let text = match count {
                1 => "1 object".to_owned(),
                count => format!("{} objects", grouped(*count as usize)),
            };
            line_ui(ui, content, |ui| drop(ui.weak(text)));
        }
        S3RowKind::Empty => line_ui(ui, content, |ui| drop(ui.weak("Empty folder"))),
        S3RowKind::Listing { task } => line_ui(ui, content, |ui| {
            ui.spinner();
            ui.weak("Listing…");
            cancel_ui(ui, *task, "Cancel listing this folder", commands);
        }),
        S3RowKind::More { folder } => line_ui(ui, content, |ui| {
            let more = ui.small_button("List more");
            if more.clicked() {
                commands.push(S3Command::ListMore(folder.clone()));
            }
            more.accessible_name(format!("List more of {folder}"));
        }),
        S3RowKind::Failed { folder, failure } => line_ui(ui, content, |ui| {
            ui.small_button("Retry").on_click(commands, || S3Command::ListMore(folder.clone()));
            if let Failure::Failed { message, .. } = failure {
                let color = ui.visuals().error_fg_color;
                let text = RichText::new(format!("⚠ {message}")).color(color);
                truncated_ui(ui, text);
            }
        }),
    }
    None
}

/// A line that is not a folder, below the names of folders.
fn line_ui(ui: &mut Ui, content: Rect, contents: impl FnOnce(&mut Ui)) {
    let inner = content.with_min_x(content.left() + TREE_TOGGLE_WIDTH);
    let builder = UiBuilder::new().max_rect(inner).layout(Layout::left_to_right(Align::Center));
    ui.scope_builder(builder, contents);
}

fn folder_ui(
    ui: &mut Ui,
    depth: usize,
    address: &S3Address,
    is_open: bool,
    current: Option<&S3Address>,
    commands: &mut Commands,
) -> Option<S3Address> {
    let name = address.last_part();
    let kind = if address.prefix.is_empty() { "bucket" } else { "folder" };
    let line = TreeLine {
        id: Id::unique(("bucket or folder", address.to_string())),
        depth,
        name,
        path: address.to_string(),
        label: format!("{name}, {kind}"),
        note: String::new(),
        is_open: Some(is_open),
        is_current: current == Some(address),
    };
    let click = line.ui(ui);
    if click.is_toggled {
        commands.push(S3Command::SetFolderOpen(address.clone(), !is_open));
    }
    let response = click.response.on_hover_text(address.to_string());
    (response.clicked() || click.is_toggled).then(|| address.clone())
}
