//! The menus, which contain every action.

use eframe::egui::{Align, Button, Id, Layout, MenuBar, Panel, RichText, ScrollArea, Stroke, Ui, vec2};

use crate::domain::human_bytes;
use crate::window::state::{Action, BrowseCommand, Commands, ReviewCommand, State};
use crate::window::ui::field::Field;
use crate::window::ui::widgets::{action_menu_ui, radio_ui};
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
    let response = ui.add(button).on_hover_text(Action::Palette.tooltip());
    if response.clicked() {
        commands.push(Action::Palette);
    }
}

/// The space above and below the longest menu, in points.
const MENU_MARGIN: f32 = 40.0;

/// `None` is a separator.
type Menu = [Option<Action>];

const FILE: &Menu = &[
    Some(Action::OpenFolder),
    Some(Action::OpenImages),
    Some(Action::OpenS3),
    Some(Action::OpenSamples),
    Some(Action::Reload),
    None,
    Some(Action::OpenPredictions),
    None,
    Some(Action::OpenProject),
    Some(Action::SaveProjectAs),
    Some(Action::Export),
    Some(Action::Upload),
    Some(Action::MoveProject),
    None,
    Some(Action::CopyImage),
    Some(Action::SaveImage),
    Some(Action::FindAlike),
    Some(Action::FindAlikeBoxes),
    Some(Action::CopyPath),
    Some(Action::Reveal),
    None,
    Some(Action::Quit),
];

const EVALUATE: &Menu = &[
    Some(Action::OpenTruth),
    Some(Action::CorrectTruth),
    Some(Action::ExportLabelChanges),
    Some(Action::TruthOfImages),
    Some(Action::TruthOfVerdicts),
    Some(Action::CloseTruth),
    None,
    Some(Action::Evaluation),
    Some(Action::FindErrorPatterns),
    Some(Action::ExportEvaluation),
    None,
    Some(Action::CompareRuns),
    Some(Action::FindNewErrorPatterns),
    Some(Action::Comparison),
    Some(Action::NextLayout),
    Some(Action::DividerLeft),
    Some(Action::DividerRight),
    Some(Action::ExportComparison),
];

const PREDICT: &Menu = &[
    Some(Action::PredictShown),
    Some(Action::PredictAnew),
    Some(Action::PredictSelection),
    Some(Action::PredictFiltered),
    Some(Action::PredictAll),
    Some(Action::ToggleEmbeddings),
    None,
    Some(Action::Explain),
    None,
    Some(Action::PauseTasks),
    Some(Action::ResumeTasks),
    Some(Action::CancelTasks),
    None,
    Some(Action::ResetView),
    None,
    Some(Action::PredictHere),
    Some(Action::PredictAtEndpoint),
    Some(Action::PredictInTfServing),
    None,
    Some(Action::AddModel),
];

const REMOTE: &Menu = &[
    Some(Action::StartJob),
    Some(Action::Jobs),
    None,
    Some(Action::DeployEndpoint),
    Some(Action::Endpoints),
    None,
    Some(Action::OpenOutputs),
    Some(Action::CompareWithLocal),
];

const JUDGE: &Menu = &[
    Some(Action::Accept),
    Some(Action::Reject),
    Some(Action::Unsure),
    Some(Action::WrongClass),
    Some(Action::ClearVerdict),
    Some(Action::MarkComplete),
    Some(Action::ReturnToLabeler),
    None,
    Some(Action::DrawBox),
    Some(Action::DuplicateBox),
    Some(Action::DeleteBox),
    Some(Action::FixLabel),
    None,
    Some(Action::WriteNote),
    Some(Action::AddTag),
    Some(Action::FindDuplicates),
    Some(Action::TagDuplicates),
    None,
    Some(Action::NextUnjudged),
    Some(Action::NextUncertain),
    None,
    Some(Action::SpotCheck),
    Some(Action::ReviewReport),
    Some(Action::SecondPass),
    Some(Action::MergeProject),
    None,
    Some(Action::GoOnAfterVerdict),
    None,
    Some(Action::Undo),
    Some(Action::Redo),
];

const GO: &Menu = &[
    Some(Action::PreviousImage),
    Some(Action::NextImage),
    Some(Action::FirstImage),
    Some(Action::LastImage),
    Some(Action::GoTo),
    None,
    Some(Action::NextBox),
    Some(Action::PreviousBox),
    None,
    Some(Action::PreviousRun),
    Some(Action::NextRun),
    None,
    Some(Action::Search),
    Some(Action::ClearSearch),
    None,
    Some(Action::SelectAll),
];

const VIEW: &Menu = &[
    Some(Action::LargeImage),
    Some(Action::ThumbnailsOnly),
    None,
    Some(Action::FitImage),
    Some(Action::ActualSize),
    Some(Action::ZoomIn),
    Some(Action::ZoomOut),
    Some(Action::ZoomToBox),
    None,
    Some(Action::ToggleImages),
    Some(Action::ToggleFolders),
    Some(Action::ToggleInspector),
    Some(Action::ToggleTasks),
    Some(Action::ToggleJudging),
    Some(Action::Present),
    Some(Action::ToggleCaption),
    Some(Action::Filmstrip),
    Some(Action::Map),
    None,
    Some(Action::ToggleThumbnailBoxes),
    Some(Action::ToggleStoredBoxes),
    Some(Action::ToggleOutlines),
    Some(Action::ResetLook),
];

/// Submenus of the View menu, which would otherwise be higher than a small screen.
const VIEW_MORE: [(&str, &Menu); 3] = [
    ("Thumbnail size", &[Some(Action::LargerThumbnails), Some(Action::SmallerThumbnails)]),
    ("Interface size", &[Some(Action::InterfaceLarger), Some(Action::InterfaceSmaller), Some(Action::InterfaceNormal)]),
    ("Theme", &[Some(Action::ThemeSystem), Some(Action::ThemeLight), Some(Action::ThemeDark)]),
];

const HELP: &Menu = &[
    Some(Action::Help),
    None,
    Some(Action::CopyDiagnostics),
    Some(Action::OpenManual),
    Some(Action::WhatsNew),
    Some(Action::OpenLog),
    Some(Action::ClearProblems),
];

/// The context menu of the image.
pub(crate) const IMAGE_MENU: &Menu = &[
    Some(Action::PredictShown),
    Some(Action::Explain),
    None,
    Some(Action::Accept),
    Some(Action::Reject),
    Some(Action::Unsure),
    Some(Action::WrongClass),
    Some(Action::ClearVerdict),
    Some(Action::MarkComplete),
    Some(Action::ReturnToLabeler),
    None,
    Some(Action::DrawBox),
    Some(Action::DuplicateBox),
    Some(Action::ZoomToBox),
    None,
    Some(Action::CopyImage),
    Some(Action::SaveImage),
    Some(Action::FindAlike),
    Some(Action::CopyPath),
    Some(Action::Reveal),
    None,
    Some(Action::Export),
];

/// The context menu of a thumbnail.
pub(crate) const THUMBNAIL_MENU: &Menu = &[
    Some(Action::PredictShown),
    Some(Action::PredictSelection),
    None,
    Some(Action::Accept),
    Some(Action::Reject),
    Some(Action::Unsure),
    Some(Action::ClearVerdict),
    Some(Action::MarkComplete),
    Some(Action::ReturnToLabeler),
    Some(Action::WriteNote),
    Some(Action::AddTag),
    None,
    Some(Action::CopyImage),
    Some(Action::SaveImage),
    Some(Action::FindAlike),
    Some(Action::CopyPath),
    Some(Action::Reveal),
    None,
    Some(Action::Export),
];

/// The context menu of a box in the list or the filmstrip.
pub(crate) const BOX_MENU: &Menu = &[
    Some(Action::PredictShown),
    None,
    Some(Action::Accept),
    Some(Action::Reject),
    Some(Action::Unsure),
    Some(Action::WrongClass),
    Some(Action::ClearVerdict),
    Some(Action::FixLabel),
    None,
    Some(Action::FindAlikeBoxes),
    Some(Action::DuplicateBox),
    Some(Action::ZoomToBox),
    Some(Action::Explain),
    None,
    Some(Action::CopyImage),
    Some(Action::SaveImage),
    Some(Action::CopyPath),
    Some(Action::Reveal),
    None,
    Some(Action::Export),
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
        if radio_ui(ui, &mut chosen, bytes, label).clicked() {
            commands.push(BrowseCommand::SetCacheBytes(bytes));
        }
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
        let entries = || menus.into_iter().chain(more).flatten().copied().flatten();
        let listed: BTreeSet<Action> = entries().collect();
        assert_eq!(entries().count(), listed.len(), "an action is there twice");
        for &action in Action::VARIANTS {
            // The palette has its button next to the menus.
            assert!(action == Action::Palette || listed.contains(&action), "{action:?}");
        }
    }
}
