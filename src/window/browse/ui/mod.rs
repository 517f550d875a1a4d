//! The left panel, with the open source and its thumbnails, and the dialogs that open: going to an image by its name,
//! typing a path, and files dropped on the window.

pub(crate) mod cover;
mod folders;
pub(crate) mod grid;

use std::path::{Path, PathBuf};

use eframe::egui::{Area, CentralPanel, LayerId, Order};

use crate::domain::S3Place;
use crate::window::browse::ui::folders::folders_ui;
use crate::window::browse::ui::grid::{GridMemory, GridSteps, grid_ui};
use crate::window::duplicates::ui::{DuplicatesMemory, duplicates_ui};
use crate::window::project::ui::{moved_folder_ui, project_banners_ui};
use crate::window::search::ui::{SearchMemory, found_ui, search_ui, sort_ui};
use crate::window::state::{FileRequest, Listing, OpenSource, PathQuestion, SourceId, ViewNumber};
use crate::window::ui::palette::Typing;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

/// The width of the buttons that open something, in points.
const OPEN_WIDTH: f32 = 174.0;

/// The draft of the path field, and the state of the grid.
#[derive(Default)]
pub(crate) struct ImagesMemory {
    path: String,
    /// The source whose name the draft shows, to notice when another one is opened.
    path_of: Option<SourceId>,
    search: SearchMemory,
    grid: GridMemory,
    duplicates: DuplicatesMemory,
}

impl ImagesMemory {
    pub(crate) fn take_steps(&mut self) -> GridSteps {
        self.grid.take_steps()
    }
}

/// The grid in place of the image.
pub(crate) fn images_in_the_middle_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ImagesMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    CentralPanel::default().show(ui, |ui| images_ui(ui, state, memory, textures, commands));
}

pub(crate) fn images_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ImagesMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    ui.add_space(6.0);
    open_row_ui(ui, state, memory, commands);
    if let Some(source) = &state.source {
        if let Listing::Failed(reason) = &source.listing {
            banner_ui(ui, Tone::Error, reason, |ui| {
                moved_folder_ui(ui, state, commands);
                if let Some(place) = state.place() {
                    place_again_ui(ui, state, place, commands);
                }
            });
        }
        if let Some(place) = state.place()
            && !matches!(source.listing, Listing::Failed(_))
        {
            sign_in_banner_ui(ui, &place.access, state, commands);
        }
        project_banners_ui(ui, state, commands);
        if source.unwatched.is_some() {
            unwatched_ui(ui, state, source, commands);
        }
        for note in &source.notes {
            note_line_ui(ui, note);
        }
        if !state.samples.is_empty() {
            search_ui(ui, state, &mut memory.search, commands);
        }
        summary_ui(ui, state, commands);
        duplicates_ui(ui, state, &mut memory.duplicates, commands);
    } else {
        recent_ui(ui, state, commands);
    }
    if state.settings.show_folders && !state.samples.is_empty() {
        folders_ui(ui, state, commands);
    } else {
        // Hidden, the panel keeps its number.
        ui.skip_ahead_auto_ids(1);
    }
    if !state.samples.is_empty() && state.order().is_empty() && state.arranging.is_filtered() {
        nothing_found_ui(ui, state, commands);
    } else if !state.samples.is_empty() {
        ui.add_space(2.0);
        grid_ui(ui, state, &mut memory.grid, textures, commands);
    }
}

fn open_row_ui(ui: &mut Ui, state: &State, memory: &mut ImagesMemory, commands: &mut Commands) {
    if let Some(source) = &state.source
        && memory.path_of != Some(source.id)
    {
        memory.path_of = Some(source.id);
        let can_be_typed = source.location.is_some();
        memory.path = if can_be_typed { source.name.clone() } else { String::new() };
    }
    let open_ui = |ui: &mut Ui, commands: &mut Commands| {
        ui.horizontal(|ui| {
            action_button_ui(ui, state, Action::OpenFolder, commands);
            ui.menu_button("Recent", |ui| recent_menu_ui(ui, state, commands));
        });
    };
    ends_or_lines_ui(ui, "open and predict", OPEN_WIDTH, commands, open_ui, |ui, commands| {
        primary_action_button_ui(ui, state, Action::PredictAll, commands);
    });
    let hints =
        ["Path of a folder or image, or s3://bucket/folder/", "Path of a folder, or s3://bucket/", "Path of a folder"];
    let hint = fitting(ui, hints, ui.available_width() - FIELD_PADDING).unwrap_or_default();
    let field = Field::new("Path of a folder or image")
        .help("A folder, image, project, model, predictions, ground truth or S3 address; press Enter to open it")
        .hint(hint)
        .text_ui(ui, &mut memory.path);
    let path = memory.path.trim();
    if enter_pressed(&field) && !path.is_empty() {
        commands.push(BrowseCommand::OpenTyped(PathBuf::from(path)));
    }
}

/// The button that reopens the source after a failure in S3.
fn place_again_ui(ui: &mut Ui, state: &State, place: &S3Place, commands: &mut Commands) {
    ui.horizontal_wrapped(|ui| {
        if let Some(sign_in) = state.sign_ins.get(&place.access) {
            copy_renewal_ui(ui, sign_in, commands);
        }
        command_button_ui(ui, "Open it again", commands, || BrowseCommand::OpenPlace(Box::new(place.clone())));
        action_button_ui(ui, state, Action::OpenS3, commands);
    });
}

/// New and changed files go unnoticed: shown unobtrusively, but not hidden.
fn unwatched_ui(ui: &mut Ui, state: &State, source: &OpenSource, commands: &mut Commands) {
    let reason = source.unwatched.as_deref().unwrap_or_default();
    ui.horizontal_wrapped(|ui| {
        ui.weak("Not watched for changes").on_hover_text(format!("Not watching for new or changed files: {reason}"));
        action_button_ui(ui, state, Action::Reload, commands);
    });
}

fn recent_menu_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.set_min_width(200.0);
    let settings = &state.settings;
    if settings.recent.is_empty() && settings.recent_places.is_empty() {
        ui.weak("Nothing opened yet");
    }
    for path in &state.settings.recent {
        let name = path.display().to_string();
        match recent_line_ui(ui, Button::new(&name), &name) {
            Some(RecentLine::Chosen) => commands.push(BrowseCommand::Open(path.clone())),
            Some(RecentLine::Forgotten) => commands.push(BrowseCommand::ForgetRecent(path.clone())),
            None => {}
        }
    }
    for place in &settings.recent_places {
        let name = place.identity();
        let button = Button::new(&name).right_text(RichText::new(place.access.credentials.to_string()).weak());
        let boxed = || Box::new(place.clone());
        match recent_line_ui(ui, button, &name) {
            Some(RecentLine::Chosen) => commands.push(BrowseCommand::OpenPlace(boxed())),
            Some(RecentLine::Forgotten) => commands.push(BrowseCommand::ForgetRecentPlace(boxed())),
            None => {}
        }
    }
}

fn nothing_found_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.add_space(24.0);
    ui.vertical_centered(|ui| {
        ui.label(if state.search_awaits_evaluation() {
            "The search is waiting for the evaluation"
        } else {
            "No images found"
        });
        ui.add_space(4.0);
        action_button_ui(ui, state, Action::ClearSearch, commands);
    });
}

/// The number of images, the progress of the predictions, and the thumbnail size.
fn summary_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    // From the right, so that the text takes what the button leaves, and one line in any case.
    let row = vec2(ui.available_width(), ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(row, Layout::right_to_left(Align::Center), |ui| {
        found_ui(ui, state, commands);
        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
            summary_text_ui(ui, &summary_parts(state));
        });
    });
    ui.horizontal(|ui| {
        if !state.samples.is_empty() {
            sort_ui(ui, state, commands);
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            // What the sort order leaves of the width.
            ui.spacing_mut().slider_width = (ui.available_width() - 8.0).clamp(24.0, 64.0);
            let side = state.settings.thumbnail_side;
            view_slider_ui(ui, ViewNumber::ThumbnailSide, side, "Thumbnail size", commands)
                .on_hover_text("Thumbnail size");
        });
    });
}

/// As many of them as fit; the tooltip has all.
fn summary_text_ui(ui: &mut Ui, parts: &[String]) {
    let lengths = (1..=parts.len()).rev();
    let texts = lengths.map(|length| parts[..length].join(", "));
    let text = fitting(ui, texts, ui.available_width()).or(parts.first().cloned());
    let label = Label::new(RichText::new(text.unwrap_or_default()).weak()).truncate().show_tooltip_when_elided(false);
    let all = parts.join(", ");
    let response = ui.add(label).on_hover_text(&all);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, all.as_str()));
}

/// The number of images, then what is known about them.
fn summary_parts(state: &State) -> Vec<String> {
    let all = image_count(state.samples.len());
    let count = if state.arranging.is_filtered() { format!("{} of {all}", grouped(state.order().len())) } else { all };
    let selected = state.selection.selected().len();
    let is_listing = matches!(state.source.as_ref().map(|source| &source.listing), Some(Listing::Running));
    let mut parts = vec![count];
    if is_listing {
        parts.push("still listing…".to_owned());
    }
    if let Some(run) = state.run().filter(|run| run.predictions.predicted() > 0) {
        let what = if run.task().is_some() { "predicted" } else { "embedded" };
        parts.push(format!("{} {what}", grouped(run.predictions.predicted())));
    }
    if selected > 1 {
        parts.push(format!("{} selected", grouped(selected)));
    }
    parts
}

/// What to do in an empty window.
fn recent_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.add_space(12.0);
    ui.label("Nothing is open yet");
    ui.weak("Choose a folder above, enter its path, or drop it on the window");
    if state.settings.recent.is_empty() && state.settings.recent_places.is_empty() {
        return;
    }
    ui.add_space(12.0);
    ui.weak("Recent");
    for path in &state.settings.recent {
        ui.link(last_names(path))
            .on_hover_text(path.display().to_string())
            .on_click(commands, || BrowseCommand::Open(path.clone()));
    }
    for place in &state.settings.recent_places {
        ui.link(place.address.to_string())
            .on_hover_text(place.access.credentials.to_string())
            .on_click(commands, || BrowseCommand::OpenPlace(Box::new(place.clone())));
    }
}

/// The end of a path, which distinguishes folders of the same name: “coco/images/train2017”.
fn last_names(path: &Path) -> String {
    const NAMES: usize = 3;
    let names: Vec<_> = path.iter().collect();
    let last = &names[names.len().saturating_sub(NAMES)..];
    last.iter().collect::<PathBuf>().display().to_string()
}

const WIDTH: f32 = 340.0;

#[derive(Default)]
pub(crate) struct GoToMemory(Typing);

/// A small field above the window, which does not cover the image.
pub(crate) fn go_to_ui(ctx: &Context, state: &State, memory: &mut GoToMemory, commands: &mut Commands) {
    let GoToMemory(typing) = memory;
    if !typing.follow(state.overlay == Overlay::GoTo) {
        return;
    }
    let area = Area::new(Id::unique("go to"))
        .order(Order::Foreground)
        .anchor(Align2::CENTER_TOP, vec2(0.0, 80.0))
        .show(ctx, |ui| {
            Frame::popup(ui.style()).show(ui, |ui| {
                ui.set_width(WIDTH);
                let what = "Image name or number";
                let typed = typing.field_ui(ui, what, what);
                let text = || typing.text().to_owned();
                if typed.is_changed {
                    commands.push(BrowseCommand::GoTo(text()));
                }
                if typed.enter {
                    commands.push(BrowseCommand::GoToNext(text()));
                }
                ui.weak(if state.go_to_missed {
                    "No matching image on screen"
                } else {
                    "Enter: next match. Escape: close"
                });
            });
        });
    if area.response.clicked_elsewhere() && !typing.is_new() {
        commands.push(Command::CLOSE_OVERLAY);
    }
}

#[derive(Default)]
pub(crate) struct TypePathMemory {
    path: String,
    /// The current question, to notice another one.
    question: Option<PathQuestion>,
}

pub(crate) fn type_path_ui(ctx: &Context, state: &State, memory: &mut TypePathMemory, commands: &mut Commands) {
    let is_new = memory.question != state.path_question;
    memory.question.clone_from(&state.path_question);
    let Some(PathQuestion { request, reason }) = &state.path_question else {
        return;
    };
    if is_new {
        memory.path = match request {
            FileRequest::ProjectTarget { name }
            | FileRequest::SecondPassTarget { name }
            | FileRequest::MergeTarget { name }
            | FileRequest::ExportTarget { name }
            | FileRequest::ImageTarget { name } => name.clone(),
            _ => String::new(),
        };
    }
    dialog_ui(ctx, "type a path", 460.0, BrowseCommand::CancelPath, commands, |ui, commands| {
        heading_ui(ui, request.title(), reason);
        let field = Field::new("Path").text_ui(ui, &mut memory.path);
        if is_new {
            focus_whole_text(&field, &memory.path);
        }
        let is_entered = enter_pressed(&field);
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            let path = memory.path.trim();
            let ok = primary_button_ui(ui, "OK", path.is_empty().then_some("Enter a path"));
            if (ok.clicked() || is_entered) && !path.is_empty() {
                commands.push(BrowseCommand::TypePath(PathBuf::from(path)));
            }
            command_button_ui(ui, "Cancel", commands, || BrowseCommand::CancelPath);
        });
    });
}

pub(crate) fn drop_target_ui(ctx: &Context, commands: &mut Commands) {
    let is_hovered = ctx.input(|input| !input.raw.hovered_files.is_empty());
    if is_hovered {
        paint_invitation(ctx);
    }
    let dropped: Vec<PathBuf> = ctx.input(|input| {
        let files = input.raw.dropped_files.iter();
        files.map(|file| file.path().to_owned()).collect()
    });
    if !dropped.is_empty() {
        commands.push(BrowseCommand::Drop(dropped));
    }
}

fn paint_invitation(ctx: &Context) {
    let painter = ctx.layer_painter(LayerId::new(Order::Foreground, Id::unique("drop")));
    let rect = ctx.content_rect();
    let accent = theme::accent(&ctx.global_style().visuals);
    painter.rect_filled(rect, 0.0, Color32::from_black_alpha(190));
    let frame = rect.shrink(16.0);
    painter.rect_stroke(frame, 12.0, Stroke::new(3.0, accent), StrokeKind::Inside);
    painter.text(
        rect.center(),
        Align2::CENTER_CENTER,
        "Drop folders, images, predictions or ground truth for the open images, or an .onnx file to add a model",
        FontId::new(18.0, theme::strong_family()),
        Color32::WHITE,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_folder_is_shown_with_its_parents() {
        for (path, expected) in
            [("/data/coco/images/train2017", "coco/images/train2017"), ("/photos", "/photos"), ("photos", "photos")]
        {
            assert_eq!(last_names(Path::new(path)), expected);
        }
    }
}
