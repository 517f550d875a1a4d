//! Everything that has a name on screen: one table for menus, shortcuts, buttons and the command palette.

use strum::VariantArray;

use super::{Overlay, State, ThemeChoice};
use crate::domain::ModelTask;

/// A command without arguments. Knows its label, its tooltip and its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, VariantArray)]
pub enum Action {
    OpenFolder,
    OpenImages,
    OpenS3,
    OpenSamples,
    OpenProject,
    Reload,
    SaveProjectAs,
    Export,
    ExportComparison,
    Upload,
    StartJob,
    Jobs,
    DeployEndpoint,
    Endpoints,
    OpenOutputs,
    PredictHere,
    PredictAtEndpoint,
    PredictInTfServing,
    CompareWithLocal,
    MoveProject,
    AddModel,
    CopyImage,
    CopyPath,
    Reveal,
    Quit,
    PredictShown,
    PredictAnew,
    PredictSelection,
    PredictAll,
    PredictFiltered,
    PauseTasks,
    ResumeTasks,
    CancelTasks,
    Search,
    ClearSearch,
    SelectAll,
    PreviousImage,
    NextImage,
    FirstImage,
    LastImage,
    Accept,
    Reject,
    Unsure,
    WrongClass,
    ClearVerdict,
    WriteNote,
    AddTag,
    NextUnjudged,
    NextUncertain,
    Undo,
    Redo,
    GoTo,
    LargeImage,
    ThumbnailsOnly,
    FitImage,
    ActualSize,
    ZoomIn,
    ZoomOut,
    ZoomToBox,
    NextBox,
    PreviousBox,
    Explain,
    Filmstrip,
    ToggleImages,
    ToggleInspector,
    ToggleTasks,
    ToggleJudging,
    GoOnAfterVerdict,
    ToggleThumbnailBoxes,
    ToggleStoredBoxes,
    Present,
    LargerThumbnails,
    SmallerThumbnails,
    InterfaceLarger,
    InterfaceSmaller,
    InterfaceNormal,
    ThemeSystem,
    ThemeLight,
    ThemeDark,
    ResetView,
    ClearProblems,
    Palette,
    Help,
    CopyDiagnostics,
    OpenManual,
    OpenLog,
}

/// The row of the table that belongs to an [`Action`].
struct ActionText {
    label: &'static str,
    tooltip: &'static str,
    /// As written in menus; the first is shown, all work.
    keys: &'static [&'static str],
}

impl Action {
    /// Sentence case; `…` where something is asked before anything happens.
    pub fn label(self) -> &'static str {
        self.text().label
    }

    /// The label with what it is about just now: “Undo: reject 3 images”.
    pub fn label_now(self, state: &State) -> String {
        let about = match self {
            Self::Undo => state.judgements.undo_label(),
            Self::Redo => state.judgements.redo_label(),
            _ => None,
        };
        about.map_or_else(
            || self.label().to_owned(),
            |about| format!("{}: {about}", self.label()),
        )
    }

    pub fn tooltip(self) -> &'static str {
        self.text().tooltip
    }

    /// Such as `Ctrl+O`; `Ctrl` is the command key on a Mac. The first is the one to show.
    pub fn keys(self) -> &'static [&'static str] {
        self.text().keys
    }

    /// `Err` says why it cannot be done now.
    #[expect(clippy::too_many_lines, reason = "one line an action, and rustfmt")]
    pub fn check(self, state: &State) -> Result<(), &'static str> {
        match self {
            Self::CopyImage
            | Self::CopyPath
            | Self::FitImage
            | Self::ActualSize
            | Self::ZoomIn
            | Self::ZoomOut => has_shown(state),
            Self::Reveal => has_shown(state).and_then(|()| {
                let lies_in_s3 = state
                    .source
                    .as_ref()
                    .is_some_and(|open| open.place.is_some());
                need(!lies_in_s3, "The image is in S3, not on this machine")
            }),
            Self::Export => need(state.run().is_some(), "Predict something first"),
            Self::ExportComparison => need(
                state
                    .comparing
                    .as_ref()
                    .is_some_and(|comparing| comparing.agreement().is_some()),
                "Compare two runs first",
            ),
            Self::Upload => need(state.source.is_some(), "Open a folder first")
                .and_then(|()| need(!state.samples.is_empty(), "There is no image to upload"))
                .and_then(|()| {
                    let lies_in_s3 = state
                        .source
                        .as_ref()
                        .is_some_and(|open| open.place.is_some());
                    need(!lies_in_s3, "The images are in S3 already")
                }),
            Self::StartJob => need(state.source.is_some(), "Open a folder first")
                .and_then(|()| need(!state.samples.is_empty(), "There is no image to send"))
                .and_then(|()| need(!state.is_listing(), "The images are being listed"))
                .and_then(|()| has_model_here(state)),
            Self::DeployEndpoint => need(
                state.models.chosen().is_some_and(|chosen| chosen.is_ready),
                "Choose a model first, and download it if needed",
            ),
            Self::OpenOutputs => need(
                state.source.is_some(),
                "Open the images of the outputs first",
            )
            .and_then(|()| need(!state.is_listing(), "The images are being listed"))
            .and_then(|()| state.project.check_writable()),
            Self::CompareWithLocal => need(
                state.other_side().is_some(),
                "Predict these images here and open outputs of a job first",
            ),
            Self::Reload => need(state.source.is_some(), "Open a folder first")
                .and_then(|()| need(!state.is_listing(), "The images are being listed")),
            Self::SaveProjectAs => need(state.source.is_some(), "Open a folder first"),
            Self::MoveProject => need(state.project.path.is_some(), "Open a project first"),
            Self::ZoomToBox => need(state.shown.selected_box.is_some(), "Select a box first"),
            Self::NextBox | Self::PreviousBox => {
                need(state.has_boxes(), "There is no box on this image")
            }
            Self::Explain => need(
                state.question().is_some(),
                "There is no prediction to explain; predict this image first",
            )
            .and_then(|()| {
                let is_here = state.run().is_none_or(|run| run.info.key.made.is_here());
                need(
                    is_here,
                    "This prediction was made remotely; only predictions of this computer can be explained",
                )
            }),
            Self::PredictHere => need(
                state.inference.remote.is_some(),
                "Images are predicted on this computer already",
            ),
            Self::PredictShown => has_shown(state).and_then(|()| has_model(state)),
            Self::PredictAnew => has_shown(state)
                .and_then(|()| need(shown_is_kept(state), "There is no verdict on its prediction"))
                .and_then(|()| state.project.check_writable())
                .and_then(|()| has_model(state)),
            Self::PredictSelection => need(
                !state.selection.selected().is_empty(),
                "Select images first",
            )
            .and_then(|()| has_model(state)),
            Self::PredictAll => need(!state.samples.is_empty(), "Open a folder first")
                .and_then(|()| has_model(state))
                .and_then(|()| {
                    need(
                        !state.tasks.prediction_is_running(),
                        "A prediction is already under way",
                    )
                }),
            Self::PredictFiltered => need(
                state.arranging.is_filtered(),
                "Search for something first, or use Predict all",
            )
            .and_then(|()| Self::PredictAll.check(state)),
            Self::ClearSearch => need(
                !state.arranging.text().is_empty(),
                "The search field is empty",
            ),
            Self::PauseTasks => {
                let running =
                    |task: &super::TaskEntry| task.can_pause() && !task.control.is_paused();
                need(
                    state.tasks.running().iter().any(running),
                    "No prediction is under way",
                )
            }
            Self::ResumeTasks => need(
                state
                    .tasks
                    .running()
                    .iter()
                    .any(|task| task.control.is_paused()),
                "Nothing is paused",
            ),
            Self::CancelTasks => need(!state.tasks.is_idle(), "Nothing is under way"),
            Self::Search
            | Self::SelectAll
            | Self::PreviousImage
            | Self::NextImage
            | Self::FirstImage
            | Self::LastImage
            | Self::GoTo
            | Self::LargeImage
            | Self::NextUnjudged => need(!state.samples.is_empty(), "Open a folder first"),
            Self::Accept
            | Self::Reject
            | Self::Unsure
            | Self::WrongClass
            | Self::ClearVerdict
            | Self::WriteNote
            | Self::AddTag => has_shown(state).and_then(|()| state.project.check_writable()),
            Self::Present => need(!state.order().is_empty(), "There is no image to present"),
            Self::NextUncertain => need(
                state.run().is_some_and(|run| run.predictions.predicted() > 0),
                "Nothing is predicted yet",
            ),
            Self::Undo => need(
                state.judgements.undo_label().is_some(),
                "Nothing was judged since the folder was opened",
            )
            .and_then(|()| state.project.check_writable()),
            Self::Redo => need(
                state.judgements.redo_label().is_some(),
                "Nothing was undone",
            )
            .and_then(|()| state.project.check_writable()),
            Self::ClearProblems => need(!state.problems.is_empty(), "There are no problems"),
            _ => Ok(()),
        }
    }

    /// For entries that are on or off; `None` for all others.
    pub fn is_on(self, state: &State) -> Option<bool> {
        let settings = &state.settings;
        match self {
            Self::LargeImage => Some(state.large_image),
            Self::ThumbnailsOnly => Some(settings.thumbnails_only),
            Self::Filmstrip => Some(state.filmstrip.is_some()),
            Self::ToggleImages => Some(settings.show_images_panel),
            Self::ToggleInspector => Some(settings.show_inspector),
            Self::ToggleTasks => Some(settings.show_tasks_panel),
            Self::ToggleJudging => Some(settings.show_judging),
            Self::GoOnAfterVerdict => Some(settings.next_after_verdict),
            Self::ToggleThumbnailBoxes => Some(settings.show_thumbnail_boxes),
            Self::ToggleStoredBoxes => Some(settings.show_stored_boxes),
            Self::ThemeSystem => Some(settings.theme == ThemeChoice::System),
            Self::ThemeLight => Some(settings.theme == ThemeChoice::Light),
            Self::ThemeDark => Some(settings.theme == ThemeChoice::Dark),
            Self::Help => Some(state.overlay == Overlay::Help),
            _ => None,
        }
    }

    #[expect(clippy::too_many_lines, reason = "it is the table")]
    fn text(self) -> ActionText {
        match self {
            Self::OpenFolder => text(
                "Open folder…",
                "Choose a folder of images; everything below it is shown",
                &["Ctrl+O"],
            ),
            Self::OpenImages => text(
                "Open images…",
                "Choose single image files",
                &["Ctrl+Shift+O"],
            ),
            Self::OpenS3 => text(
                "Open S3…",
                "Opens a bucket or folder in S3, by its address or from the buckets of a profile",
                &["Ctrl+L"],
            ),
            Self::OpenSamples => text(
                "Open sample images",
                "Opens images that come with Spotcheck, to try it out",
                &[],
            ),
            Self::Reload => text(
                "Reload",
                "Lists the images again: new ones come last, changed ones are read again, verdicts are kept",
                &["F5"],
            ),
            Self::OpenProject => text(
                "Open project…",
                "Opens a project file with its images, predictions and verdicts",
                &[],
            ),
            Self::Export => text(
                "Export…",
                "Writes predictions and verdicts for other programs, or a report to read",
                &["Ctrl+E"],
            ),
            Self::ExportComparison => text(
                "Export comparison…",
                "Writes the agreement of two runs: a summary, and the disagreement of each image",
                &[],
            ),
            Self::Upload => text(
                "Upload to S3…",
                "Uploads the image files to a bucket; existing objects are kept",
                &[],
            ),
            Self::StartJob => text(
                "Send to SageMaker…",
                "Runs the model over these images as a SageMaker Batch Transform job",
                &["Ctrl+Shift+B"],
            ),
            Self::Jobs => text(
                "Jobs…",
                "Lists the Batch Transform jobs of an account with progress, failures and cost",
                &["Ctrl+J"],
            ),
            Self::DeployEndpoint => text(
                "Deploy to an endpoint…",
                "Serves the model from a SageMaker real-time endpoint until it is deleted",
                &["Ctrl+Shift+E"],
            ),
            Self::Endpoints => text(
                "Endpoints…",
                "Lists the real-time endpoints of an account with status, cost and deletion time",
                &["Ctrl+Shift+J"],
            ),
            Self::OpenOutputs => text(
                "Open outputs…",
                "Shows the predictions of a job, or a folder of .out files, as a run over these images",
                &[],
            ),
            Self::PredictHere => text(
                "Predict on this computer",
                "Predicts on this computer again, and sends no image anywhere",
                &[],
            ),
            Self::PredictAtEndpoint => text(
                "Predict at a SageMaker endpoint…",
                "Sends the image in view to a model behind a real-time endpoint",
                &[],
            ),
            Self::PredictInTfServing => text(
                "Predict in TensorFlow Serving…",
                "Sends the image in view to a model that TensorFlow Serving has behind its REST API",
                &[],
            ),
            Self::CompareWithLocal => text(
                "Compare local with remote",
                "Compares the remote run with the local one, image by image",
                &[],
            ),
            Self::SaveProjectAs => text(
                "Save project as…",
                "Saves a copy of the project and continues in it",
                &["Ctrl+Shift+S"],
            ),
            Self::MoveProject => text(
                "Locate images…",
                "Sets the folder of the project's images after they have moved",
                &[],
            ),
            Self::AddModel => text(
                "Add a model…",
                "Inspects an .onnx file of your own and adds it to the list",
                &[],
            ),
            Self::CopyImage => text(
                "Copy image with boxes",
                "Copies the image with everything drawn on it",
                &["Ctrl+Shift+C"],
            ),
            Self::CopyPath => text("Copy path", "Copies the path of the image", &["Ctrl+Alt+C"]),
            Self::Reveal => text(
                "Show in file manager",
                "Opens the folder of the image",
                &["Ctrl+Shift+R"],
            ),
            Self::Quit => text(
                "Quit",
                "Closes Spotcheck and cancels all tasks",
                &["Ctrl+Q"],
            ),
            Self::PredictShown => text(
                "Predict this image",
                "Runs the model on the image in the middle, again if it has a prediction",
                &["Ctrl+Enter"],
            ),
            Self::PredictAnew => text(
                "Clear verdicts and predict again",
                "Clears the verdicts on this image's prediction and predicts the file as it is now",
                &[],
            ),
            Self::PredictSelection => text(
                "Predict selection",
                "Runs the model on the selected images",
                &["Ctrl+Shift+Enter"],
            ),
            Self::PredictAll => text(
                "Predict all",
                "Runs the model on every image that has no prediction yet",
                &["Ctrl+Alt+Enter"],
            ),
            Self::PauseTasks => text(
                "Pause",
                "Pauses predicting after the images in progress",
                &["Ctrl+P"],
            ),
            Self::ResumeTasks => text("Resume", "Continues predicting", &["Ctrl+Shift+P"]),
            Self::CancelTasks => text(
                "Cancel tasks",
                "Cancels all tasks; predictions so far are kept",
                &["Ctrl+."],
            ),
            Self::PredictFiltered => text(
                "Predict filtered",
                "Runs the model on the images that the search shows and that have no prediction yet",
                &[],
            ),
            Self::Search => text(
                "Search",
                "Goes to the search field: names, classes, scores, verdicts",
                &["Slash", "Ctrl+F"],
            ),
            Self::ClearSearch => text(
                "Clear search",
                "Clears the search field and shows all images",
                &["Ctrl+Shift+F"],
            ),
            Self::SelectAll => text(
                "Select all",
                "Selects all images, or all that the search finds",
                &["Ctrl+A"],
            ),
            Self::PreviousImage => text(
                "Previous image",
                "Shows the image before this one",
                &["Alt+ArrowLeft"],
            ),
            Self::NextImage => text(
                "Next image",
                "Shows the image after this one",
                &["Alt+ArrowRight"],
            ),
            Self::FirstImage => text("First image", "Shows the first image", &["Home"]),
            Self::LastImage => text("Last image", "Shows the last image", &["End"]),
            Self::Accept => text("Accept", "The prediction is right", &["A"]),
            Self::Reject => text("Reject", "The prediction is wrong", &["R"]),
            Self::Unsure => text("Unsure", "This image does not allow a decision", &["U"]),
            Self::WrongClass => text(
                "Wrong class…",
                "The box is right, the class is wrong: enter the right class",
                &["W"],
            ),
            Self::ClearVerdict => text("Clear verdict", "Removes the verdict", &["Backspace", "C"]),
            Self::WriteNote => text("Note…", "Adds a note to the image", &["N"]),
            Self::AddTag => text("Tag…", "Adds a tag to find the image again", &["T"]),
            Self::NextUnjudged => text(
                "Next unjudged",
                "Goes to the next image without a verdict",
                &["J"],
            ),
            Self::NextUncertain => text(
                "Next uncertain",
                "Goes to the unjudged image with the least certain prediction",
                &["K"],
            ),
            Self::Undo => text("Undo", "Undoes the last judgement", &["Ctrl+Z"]),
            Self::Redo => text(
                "Redo",
                "Redoes what was undone",
                &["Ctrl+Shift+Z", "Ctrl+Y"],
            ),
            Self::GoTo => text("Go to image…", "Finds an image by name or number", &["G"]),
            Self::LargeImage => text(
                "Large image",
                "Hides or shows the panels around the image",
                &["Space"],
            ),
            Self::ThumbnailsOnly => text(
                "Thumbnails only",
                "Shows thumbnails in place of the image, or the image again",
                &["Ctrl+G"],
            ),
            Self::FitImage => text("Fit image", "Shows the whole image", &["F", "Ctrl+9"]),
            Self::ActualSize => text(
                "Actual size",
                "One image pixel is one screen pixel",
                &["1", "Ctrl+1"],
            ),
            Self::ZoomIn => text("Zoom in", "Enlarges the image", &["Plus", "Equals"]),
            Self::ZoomOut => text("Zoom out", "Shrinks the image", &["Minus"]),
            Self::ZoomToBox => text("Zoom to box", "Enlarges the selected box", &["Z"]),
            Self::NextBox => text(
                "Next box",
                "Selects the box with the next lower score",
                &["CloseBracket"],
            ),
            Self::PreviousBox => text(
                "Previous box",
                "Selects the box with the next higher score",
                &["OpenBracket"],
            ),
            Self::Explain => text(
                "Explain",
                "Covers one part of the image after another to find which ones the prediction depends on",
                &["E"],
            ),
            Self::Filmstrip => text(
                "Filmstrip of a class",
                "Shows all boxes of one class over all images, by score",
                &["Ctrl+Shift+5"],
            ),
            Self::ToggleImages => text(
                "Images",
                "Shows or hides the panel with the thumbnails",
                &["Ctrl+Shift+1"],
            ),
            Self::ToggleInspector => text(
                "Inspector",
                "Shows or hides the panel with model and results",
                &["Ctrl+Shift+2"],
            ),
            Self::ToggleTasks => text(
                "Tasks and problems",
                "Shows or hides the panel with tasks and problems",
                &["Ctrl+Shift+3"],
            ),
            Self::Present => text(
                "Presentation",
                "Shows the images one after another full screen, with large labels and without paths",
                &["F11"],
            ),
            Self::ToggleThumbnailBoxes => text(
                "Boxes on thumbnails",
                "Also draws the filtered boxes on the thumbnails",
                &["Ctrl+B"],
            ),
            Self::ToggleStoredBoxes => text(
                "Boxes stored with the image",
                "Draws the boxes that a TFRecord file stores with its image, dashed in white",
                &["Ctrl+Alt+B"],
            ),
            Self::ToggleJudging => text(
                "Judging bar",
                "Shows or hides the bar for verdicts, notes and tags",
                &["Ctrl+Shift+4"],
            ),
            Self::GoOnAfterVerdict => text(
                "Go on after a verdict",
                "A verdict on an image shows the next image; one on a box selects the next box, and after the last \
                box shows the next image",
                &[],
            ),
            Self::LargerThumbnails => text(
                "Larger thumbnails",
                "Enlarges the thumbnails",
                &["Ctrl+CloseBracket"],
            ),
            Self::SmallerThumbnails => text(
                "Smaller thumbnails",
                "Shrinks the thumbnails",
                &["Ctrl+OpenBracket"],
            ),
            Self::InterfaceLarger => text(
                "Larger interface",
                "Enlarges all text and buttons",
                &["Ctrl+Plus", "Ctrl+Equals"],
            ),
            Self::InterfaceSmaller => text(
                "Smaller interface",
                "Shrinks all text and buttons",
                &["Ctrl+Minus"],
            ),
            Self::InterfaceNormal => text(
                "Normal interface size",
                "All text and buttons at the system's own size",
                &["Ctrl+0"],
            ),
            Self::ThemeSystem => text(
                "System theme",
                "Follows the system's light or dark theme",
                &[],
            ),
            Self::ThemeLight => text("Light theme", "Dark text on a light background", &[]),
            Self::ThemeDark => text("Dark theme", "Light text on a dark background", &[]),
            Self::ResetView => text(
                "Reset filters",
                "Resets thresholds, hidden classes and overlap",
                &[],
            ),
            Self::ClearProblems => text("Clear problems", "Empties the list of problems", &[]),
            Self::Palette => text(
                "Command palette…",
                "Finds a command by typing its name",
                &["Ctrl+K"],
            ),
            Self::Help => text(
                "Help and keys",
                "Lists what the keys and the mouse do",
                &["F1"],
            ),
            Self::CopyDiagnostics => text(
                "Copy diagnostics",
                "Copies versions, device report and the last errors, without secrets",
                &[],
            ),
            Self::OpenManual => text("Open manual", "Opens the pages of the manual", &[]),
            Self::OpenLog => text("Open log file", "Opens the log file of Spotcheck", &[]),
        }
    }
}

fn text(label: &'static str, tooltip: &'static str, keys: &'static [&'static str]) -> ActionText {
    ActionText {
        label,
        tooltip,
        keys,
    }
}

fn need(condition: bool, reason: &'static str) -> Result<(), &'static str> {
    condition.then_some(()).ok_or(reason)
}

fn has_shown(state: &State) -> Result<(), &'static str> {
    need(state.shown_sample().is_some(), "Choose an image first")
}

fn shown_is_kept(state: &State) -> bool {
    let shown = state.run().zip(state.shown_sample());
    shown.is_some_and(|(run, sample)| state.keeps_prediction(run.id(), sample))
}

/// Here or elsewhere.
fn has_model(state: &State) -> Result<(), &'static str> {
    if state.inference.remote.is_some() {
        return state.project.check_soon_writable();
    }
    has_model_here(state)
}

fn has_model_here(state: &State) -> Result<(), &'static str> {
    let Some(chosen) = state.models.chosen() else {
        return Err("Choose a model first");
    };
    state.project.check_soon_writable()?;
    let reason = match chosen.card.task {
        ModelTask::Classification => "Download the classifier first",
        ModelTask::Detection => "Download the detector first",
    };
    need(chosen.is_ready, reason)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let mut seen = BTreeSet::new();
        for action in Action::VARIANTS {
            for keys in action.keys() {
                assert!(seen.insert(*keys), "{keys} of {action:?} is taken");
            }
        }
    }

    #[test]
    fn every_action_is_in_the_table_once_and_says_what_it_does() {
        let labels: BTreeSet<&str> = Action::VARIANTS
            .iter()
            .map(|action| action.label())
            .collect();
        assert_eq!(labels.len(), Action::VARIANTS.len());
        for action in Action::VARIANTS {
            assert!(!action.tooltip().ends_with('.'), "{action:?}");
        }
    }

    #[test]
    fn what_needs_an_image_is_off_in_an_empty_window() {
        let state = State::default();
        assert!(Action::PredictShown.check(&state).is_err());
        assert!(Action::CopyImage.check(&state).is_err());
        assert!(Action::OpenFolder.check(&state).is_ok());
    }
}
