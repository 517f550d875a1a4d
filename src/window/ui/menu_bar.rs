//! The menus, which contain every action.

use eframe::egui::{Align, Button, Id, Layout, MenuBar, Panel, RichText, ScrollArea, Stroke, Ui, vec2};

use crate::domain::human_bytes;
#[allow(clippy::enum_glob_use, reason = "the menus list every action")]
use crate::window::state::Action::*;
use crate::window::state::{Action, BrowseCommand, Commands, ReviewCommand, State};
use crate::window::ui::field::Field;
use crate::window::ui::widgets::{OnClick, action_menu_ui, radio_ui};
use crate::window::ui::{keys, theme};

pub(crate) fn menu_bar_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    Panel::top("menu bar").show(ui, |ui| {
        MenuBar::new().ui(ui, |ui| {
            menu_ui(ui, state, "File", FILE, commands);
            menu_ui(ui, state, "Predict", PREDICT, commands);
            menu_ui(ui, state, "Remote", REMOTE, commands);
            menu_ui(ui, state, "Evaluate", EVALUATE, commands);
            judge_menu_ui(ui, state, commands);
            menu_ui(ui, state, "Go", GO, commands);
            view_menu_ui(ui, state, commands);
            menu_ui(ui, state, "Help", HELP, commands);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                palette_button_ui(ui, commands);
            });
        });
    });
}

/// Looks like a search field, because it opens one.
fn palette_button_ui(ui: &mut Ui, commands: &mut Commands) {
    let visuals = ui.visuals();
    let (fill, line) = (theme::sunken_fill(visuals), theme::line(visuals));
    ui.spacing_mut().button_padding = vec2(10.0, 3.0);
    let mut button = Button::new(RichText::new(Action::Palette.label()).weak())
        .fill(fill)
        .stroke(Stroke::new(1.0, line))
        .frame_when_inactive(true)
        .min_size(vec2(220.0, 0.0));
    if let Some(keys) = keys::shortcut_text(ui.ctx(), Action::Palette) {
        button = button.shortcut_text(RichText::new(keys).small().weak());
    }
    ui.add(button).on_hover_text(Action::Palette.tooltip()).on_click(commands, || Action::Palette);
}

/// The space above and below the longest menu, in points.
const MENU_MARGIN: f32 = 40.0;

/// Groups of actions, with a separator between them.
type Menu = [&'static [Action]];

const FILE: &Menu = &[
    &[OpenFolder, OpenImages, OpenS3, OpenSamples, Reload],
    &[OpenPredictions],
    &[OpenProject, SaveProjectAs, Export, Upload, MoveProject],
    &[CopyImage, SaveImage, FindAlike, FindAlikeBoxes, CopyPath, Reveal],
    &[CopyFolderPath, RevealFolder],
    &[Quit],
];

const EVALUATE: &Menu = &[
    &[OpenTruth, CorrectTruth, ExportLabelChanges, TruthOfImages, TruthOfVerdicts, CloseTruth],
    &[Evaluation, FindErrorPatterns, ExportEvaluation],
    &[CompareRuns, FindNewErrorPatterns, Comparison, NextLayout, DividerLeft, DividerRight, ExportComparison],
];

const PREDICT: &Menu = &[
    &[PredictShown, PredictAnew, PredictSelection, PredictFiltered, PredictAll, ToggleEmbeddings],
    &[Explain],
    &[PauseTasks, ResumeTasks, CancelTasks],
    &[ResetView],
    &[PredictHere, PredictAtEndpoint, PredictInTfServing],
    &[AddModel],
];

const REMOTE: &Menu = &[&[StartJob, Jobs], &[DeployEndpoint, Endpoints], &[OpenOutputs, CompareWithLocal]];

const JUDGE: &Menu = &[
    &[Accept, Reject, Unsure, WrongClass, ClearVerdict, MarkComplete, ReturnToLabeler],
    &[DrawBox, DuplicateBox, DeleteBox, FixLabel],
    &[WriteNote, AddTag, FindDuplicates, TagDuplicates],
    &[NextUnjudged, NextUncertain],
    &[SpotCheck, ReviewReport, SecondPass, MergeProject],
    &[GoOnAfterVerdict],
    &[Undo, Redo],
];

const GO: &Menu = &[
    &[PreviousImage, NextImage, FirstImage, LastImage, GoTo],
    &[NextBox, PreviousBox],
    &[PreviousRun, NextRun],
    &[Search, ClearSearch],
    &[SelectAll, SelectCover],
];

const VIEW: &Menu = &[
    &[LargeImage, ThumbnailsOnly],
    &[FitImage, ActualSize, ZoomIn, ZoomOut, ZoomToBox],
    &[ToggleImages, ToggleFolders, ToggleInspector, ToggleTasks, ToggleJudging, Present, ToggleCaption, Filmstrip, Map],
    &[ToggleThumbnailBoxes, ToggleStoredBoxes, ToggleOutlines, ResetLook],
];

/// Submenus of the View menu, which would otherwise be higher than a small screen.
const VIEW_MORE: [(&str, &Menu); 3] = [
    ("Thumbnail size", &[&[LargerThumbnails, SmallerThumbnails]]),
    ("Interface size", &[&[InterfaceLarger, InterfaceSmaller, InterfaceNormal]]),
    ("Theme", &[&[ThemeSystem, ThemeLight, ThemeDark]]),
];

const HELP: &Menu = &[&[Help], &[CopyDiagnostics, OpenManual, WhatsNew, OpenLog, ClearProblems]];

/// The context menu of the image.
pub(crate) const IMAGE_MENU: &Menu = &[
    &[PredictShown, Explain],
    &[Accept, Reject, Unsure, WrongClass, ClearVerdict, MarkComplete, ReturnToLabeler],
    &[DrawBox, DuplicateBox, ZoomToBox],
    &[CopyImage, SaveImage, FindAlike, FindAlikeBoxes, CopyPath, Reveal],
    &[Export],
];

/// The context menu of a thumbnail.
pub(crate) const THUMBNAIL_MENU: &Menu = &[
    &[PredictShown, PredictSelection],
    &[Accept, Reject, Unsure, ClearVerdict, MarkComplete, ReturnToLabeler, WriteNote, AddTag],
    &[CopyImage, SaveImage, FindAlike, CopyPath, Reveal],
    &[Export],
];

/// The context menu of a box in the list or the filmstrip.
pub(crate) const BOX_MENU: &Menu = &[
    &[PredictShown],
    &[Accept, Reject, Unsure, WrongClass, ClearVerdict, FixLabel],
    &[FindAlikeBoxes, DuplicateBox, ZoomToBox, Explain],
    &[CopyImage, SaveImage, CopyPath, Reveal],
    &[Export],
];

/// The context menu of a class in the list of a classifier's results.
pub(crate) const CLASS_MENU: &Menu = &[
    &[PredictShown, Explain],
    &[Accept, Reject, Unsure, WrongClass, ClearVerdict, ReturnToLabeler],
    &[CopyImage, SaveImage, FindAlike, CopyPath, Reveal],
    &[Export],
];

fn menu_ui(ui: &mut Ui, state: &State, title: &str, menu: &Menu, commands: &mut Commands) {
    ui.menu_button(title, |ui| {
        in_sight_ui(ui, |ui| entries_ui(ui, state, menu, commands));
    });
}

/// A menu that is higher than the window scrolls.
fn in_sight_ui(ui: &mut Ui, contents: impl FnOnce(&mut Ui)) {
    let height = ui.ctx().content_rect().height() - MENU_MARGIN;
    // A popup starts with less height, and scrolling content would keep it.
    ui.set_max_height(height);
    ScrollArea::vertical().max_height(height).show(ui, contents);
}

fn entries_ui(ui: &mut Ui, state: &State, menu: &Menu, commands: &mut Commands) {
    ui.set_min_width(230.0);
    action_menu_ui(ui, state, menu, commands);
}

fn judge_menu_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.menu_button("Judge", |ui| {
        in_sight_ui(ui, |ui| {
            entries_ui(ui, state, JUDGE, commands);
            ui.separator();
            ui.horizontal(|ui| {
                ui.label("Reviewer");
                let mut name = state.settings.reviewer.clone();
                let field = Field::new("Reviewer").hint("name saved with verdicts").text_ui(ui, &mut name);
                if field.changed() {
                    commands.push(ReviewCommand::SetReviewer(name));
                }
            });
        });
    });
}

fn view_menu_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.menu_button("View", |ui| {
        in_sight_ui(ui, |ui| {
            entries_ui(ui, state, VIEW, commands);
            ui.separator();
            for (title, menu) in VIEW_MORE {
                menu_ui(ui, state, title, menu, commands);
            }
            kept_on_disk_menu_ui(ui, state, commands);
        });
    });
}

fn kept_on_disk_menu_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let is_open = ui
        .menu_button("Disk cache", |ui| {
            kept_on_disk_ui(ui, state, commands);
        })
        .inner
        .is_some();
    // Measured when the menu is open, because it takes a while.
    let id = Id::unique("disk cache");
    let was_open = ui.data_mut(|data| data.get_temp(id)).unwrap_or(false);
    ui.data_mut(|data| data.insert_temp(id, is_open));
    if is_open && !was_open {
        commands.push(BrowseCommand::MeasureCache);
    }
}

/// The options for the disk cache; zero disables it.
const CACHE_SIZES: [u64; 5] = [0, 256 << 20, 1 << 30, 4 << 30, 16 << 30];

fn kept_on_disk_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.set_min_width(200.0);
    match &state.cache_usage {
        Some(usage) => {
            ui.weak(format!("Thumbnails: {}", human_bytes(usage.thumbnail_bytes)));
            ui.weak(format!("Images from S3: {}", human_bytes(usage.image_bytes)));
            ui.weak(format!("Maps: {}", human_bytes(usage.map_bytes)));
        }
        None => drop(ui.weak("Measuring…")),
    }
    for bytes in CACHE_SIZES {
        let label = match bytes {
            0 => "None".to_owned(),
            bytes => format!("At most {}", human_bytes(bytes)),
        };
        let mut chosen = state.settings.cache_bytes;
        radio_ui(ui, &mut chosen, bytes, label).on_click(commands, || BrowseCommand::SetCacheBytes(bytes));
    }
    let clear =
        ui.button("Clear cache").on_hover_text("Deletes cached thumbnails and images; they are recreated when needed");
    if clear.clicked() {
        commands.push(BrowseCommand::ClearCache);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strum::VariantArray;

    use super::*;

    #[test]
    fn actions_are_in_exactly_one_menu() {
        let menus: [&Menu; 8] = [FILE, PREDICT, REMOTE, EVALUATE, JUDGE, GO, VIEW, HELP];
        let more = VIEW_MORE.map(|(_, menu)| menu);
        let entries = || menus.into_iter().chain(more).flatten().copied().flatten().copied();
        let listed: BTreeSet<Action> = entries().collect();
        assert_eq!(entries().count(), listed.len(), "an action is there twice");
        for &action in Action::VARIANTS {
            // The palette has its button next to the menus.
            assert!(action == Action::Palette || listed.contains(&action), "{action:?}");
        }
    }
}
