//! The tree of buckets and folders: one line each, of which only visible ones are drawn.

use eframe::egui::{
    Align, Color32, CornerRadius, EventFilter, Frame, Id, Key, Label, Layout, Margin, Modifiers, Rect, RichText, Role,
    ScrollArea, Sense, Shape, Stroke, StrokeKind, TextStyle, Ui, UiBuilder, WidgetInfo, pos2, vec2,
};

use crate::domain::S3Address;
use crate::window::s3::ui::access;
use crate::window::state::{Command, Commands, Failure, S3Command, S3Row, S3RowKind, State, TaskId, TaskSignal};
use crate::window::ui::theme;
use crate::window::ui::widgets::{Tone, banner_ui, command_button_ui, grouped, note_ui, truncated};

const ROW_HEIGHT: f32 = 24.0;
const INDENT: f32 = 18.0;
const TOGGLE_WIDTH: f32 = 22.0;
const MIN_HEIGHT: f32 = 110.0;
const MAX_HEIGHT: f32 = 420.0;
/// The height of the dialog's frame and of the margin around it.
const AROUND_DIALOG: f32 = 90.0;

#[derive(Default)]
pub(crate) struct TreeMemory {
    wants_focus: bool,
    /// The row to scroll into view.
    scroll_to: Option<usize>,
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
    let cancel = ui.small_button("Cancel");
    if cancel.clicked() {
        commands.push(Command::SignalTask(task, TaskSignal::Cancel));
    }
    cancel.accessible_name(name);
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
    let frame = Rect::from_min_size(ui.cursor().min, vec2(ui.available_width(), height));
    let focus = ui.interact(frame, tree_id, Sense::focusable_noninteractive());
    focus.widget_info(|| WidgetInfo::labeled(Role::Tree, true, "Buckets and folders"));
    if std::mem::take(&mut memory.wants_focus) {
        focus.request_focus();
    }
    let mut picked = None;
    if focus.has_focus() {
        let keys = EventFilter { vertical_arrows: true, horizontal_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(tree_id, keys));
        picked = take_keys(ui, rows, current, memory, commands);
        let line = Stroke::new(1.0, theme::accent(ui.visuals()));
        ui.painter().rect_stroke(frame.expand(3.0), 8.0, line, StrokeKind::Inside);
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    ScrollArea::vertical().id_salt("bucket tree").auto_shrink([false, false]).max_height(height).show_rows(
        ui,
        ROW_HEIGHT,
        rows.len(),
        |ui, shown| {
            if let Some(row) = memory.scroll_to.take() {
                let top = ui.max_rect().top() + (row as f32 - shown.start as f32) * ROW_HEIGHT;
                let place = ui.max_rect().x_range();
                ui.scroll_to_rect(Rect::from_x_y_ranges(place, top..=top + ROW_HEIGHT), None);
            }
            for row in &rows[shown] {
                if let Some(folder) = row_ui(ui, row, current, commands) {
                    picked = Some(Picked::Folder(folder));
                    focus.request_focus();
                }
            }
        },
    );
    picked
}

/// The keys of the tree while it has the focus.
fn take_keys(
    ui: &Ui,
    rows: &[S3Row],
    current: Option<&S3Address>,
    memory: &mut TreeMemory,
    commands: &mut Commands,
) -> Option<Picked> {
    let take = |key| ui.input_mut(|input| input.consume_key(Modifiers::NONE, key));
    let place = current.and_then(|current| place_of(rows, current));
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
                commands.push(S3Command::SetFolderOpen(address.clone(), true));
            }
        }
        if take(Key::ArrowLeft) {
            if is_open {
                commands.push(S3Command::SetFolderOpen(address.clone(), false));
            } else {
                let parent = address.parent();
                target = parent.and_then(|parent| place_of(rows, &parent));
            }
        }
        if take(Key::Enter) {
            return Some(Picked::Open);
        }
    }
    memory.scroll_to = target.or(memory.scroll_to);
    let (address, _) = folder(&rows[target?])?;
    Some(Picked::Folder(address.clone()))
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
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    let indent = row.depth as f32 * INDENT;
    let content = Rect::from_min_max(pos2(rect.left() + indent, rect.top()), rect.max);
    match &row.kind {
        S3RowKind::Folder { address, is_open } => {
            return folder_ui(ui, rect, content, address, *is_open, current, commands);
        }
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
            if ui.small_button("Retry").clicked() {
                commands.push(S3Command::ListMore(folder.clone()));
            }
            if let Failure::Failed { message, .. } = failure {
                let color = ui.visuals().error_fg_color;
                let text = RichText::new(format!("⚠ {message}")).color(color);
                ui.add(Label::new(text).truncate());
            }
        }),
    }
    None
}

/// A line that is not a folder, below the names of folders.
fn line_ui(ui: &mut Ui, content: Rect, contents: impl FnOnce(&mut Ui)) {
    let inner = content.with_min_x(content.left() + TOGGLE_WIDTH);
    let builder = UiBuilder::new().max_rect(inner).layout(Layout::left_to_right(Align::Center));
    ui.scope_builder(builder, contents);
}

fn folder_ui(
    ui: &mut Ui,
    rect: Rect,
    content: Rect,
    address: &S3Address,
    is_open: bool,
    current: Option<&S3Address>,
    commands: &mut Commands,
) -> Option<S3Address> {
    let is_current = current == Some(address);
    let name = address.last_part();
    let id = Id::unique(("bucket or folder", address.to_string()));
    // Not a Tab stop: the tree is, and the arrow keys move inside it.
    let response = ui.interact(rect, id, Sense::CLICK);
    response.widget_info(|| {
        let kind = if address.prefix.is_empty() { "bucket" } else { "folder" };
        let label = format!("{name}, {kind}");
        WidgetInfo::selected(Role::TreeItem, true, is_current, label)
    });
    let toggle_rect = content.with_max_x(content.left() + TOGGLE_WIDTH);
    let toggle = ui.interact(toggle_rect, id.with("toggle"), Sense::CLICK);
    toggle.widget_info(|| {
        let verb = if is_open { "Collapse" } else { "Expand" };
        WidgetInfo::labeled(Role::Button, true, format!("{verb} {address}"))
    });
    let visuals = ui.visuals();
    let painter = ui.painter();
    if is_current {
        painter.rect_filled(rect, CornerRadius::same(4), visuals.selection.bg_fill);
    } else if response.hovered() {
        painter.rect_filled(rect, CornerRadius::same(4), theme::raised_fill(visuals));
    }
    let color = if toggle.hovered() { theme::accent(visuals) } else { visuals.weak_text_color() };
    painter.add(triangle(toggle_rect, is_open, color));
    let font = TextStyle::Body.resolve(ui.style());
    let text = content.with_min_x(toggle_rect.right());
    let galley = truncated(ui, name, font, visuals.text_color(), text.width());
    let top = text.center().y - galley.size().y / 2.0;
    painter.galley(pos2(text.left(), top), galley, visuals.text_color());
    if toggle.clicked() || response.double_clicked() {
        commands.push(S3Command::SetFolderOpen(address.clone(), !is_open));
    }
    let response = response.on_hover_text(address.to_string());
    (response.clicked() || toggle.clicked()).then(|| address.clone())
}

/// A triangle that points to the right, or down if the folder is open.
fn triangle(rect: Rect, is_open: bool, color: Color32) -> Shape {
    let at = |x: f32, y: f32| rect.center() + vec2(x, y);
    let corners = if is_open {
        vec![at(-4.0, -2.5), at(4.0, -2.5), at(0.0, 3.5)]
    } else {
        vec![at(-2.5, -4.0), at(3.5, 0.0), at(-2.5, 4.0)]
    };
    Shape::convex_polygon(corners, color, Stroke::NONE)
}
