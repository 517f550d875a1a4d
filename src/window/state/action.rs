//! The table of named actions, shared by menus, shortcuts, buttons and the command palette.

use strum::{EnumMessage as _, EnumProperty as _, VariantArray};

use super::{CompareLayout, Drawing, Overlay, State, ThemeChoice};
use crate::domain::{CardTask, Look, ModelTask, Verdict};

/// A command without arguments. `message` is its label in sentence case, with `…` if more input follows; the doc comment
/// is its tooltip; `keys` are its shortcuts, of which the first is shown.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::EnumMessage, strum::EnumProperty, VariantArray,
)]
pub enum Action {
    /// Choose a folder of images; subfolders are included
    #[strum(message = "Open folder…", props(keys = "Ctrl+O"))]
    OpenFolder,
    /// Choose single image files
    #[strum(message = "Open images…", props(keys = "Ctrl+Shift+O"))]
    OpenImages,
    /// Opens a bucket or folder in S3 by its address or from a profile's buckets
    #[strum(message = "Open S3…", props(keys = "Ctrl+L"))]
    OpenS3,
    /// Opens the sample images that ship with Spotcheck
    #[strum(message = "Open sample images")]
    OpenSamples,
    /// Opens a project file with its images, predictions and verdicts
    #[strum(message = "Open project…")]
    OpenProject,
    /// Compares predictions with annotations in a file or folder, local or in S3, or in file names
    #[strum(message = "Open ground truth…")]
    OpenTruth,
    /// Uses folder names as classes, or the annotations stored in a TFRecord
    #[strum(message = "Use ground truth stored with the images")]
    TruthOfImages,
    /// Uses accepted and corrected predictions as ground truth
    #[strum(message = "Use verdicts as ground truth")]
    TruthOfVerdicts,
    /// Opens the labels as a run, to judge, move, add and remove them, and to export the result
    #[strum(message = "Correct ground truth")]
    CorrectTruth,
    /// Writes what the review changed in the opened labels, one change per line, for their owner
    #[strum(message = "Export changes to the labels…")]
    ExportLabelChanges,
    /// Shows only the predictions
    #[strum(message = "Close ground truth")]
    CloseTruth,
    /// Shows the run's metrics in place of the image
    #[strum(message = "Evaluation", props(keys = "Ctrl+Shift+6"))]
    Evaluation,
    /// Finds groups of images in which an error is more frequent than by chance
    #[strum(message = "Find error patterns")]
    FindErrorPatterns,
    /// Finds groups of images in which the run on screen makes an error that the compared run does not
    #[strum(message = "Find patterns in new errors")]
    FindNewErrorPatterns,
    /// Shows all images as points, similar ones next to each other, in place of the image
    #[strum(message = "Map", props(keys = "Ctrl+Shift+8"))]
    Map,
    /// Compares the run on screen with another run of these images, box by box
    #[strum(message = "Compare runs")]
    CompareRuns,
    /// Shows what differs between the two compared runs in place of the image
    #[strum(message = "Comparison", props(keys = "Ctrl+Shift+9"))]
    Comparison,
    /// Switches between overlaid runs, two images side by side, and a line to drag between two runs, or between
    /// predictions and ground truth
    #[strum(message = "Next comparison layout", props(keys = "S"))]
    NextLayout,
    /// Moves the line between the sides of the image, which the pointer can drag
    #[strum(message = "Move line left", props(keys = "Comma"))]
    DividerLeft,
    /// Moves the line between the sides of the image, which the pointer can drag
    #[strum(message = "Move line right", props(keys = "Period"))]
    DividerRight,
    /// Lists the images again: new images come last, changed images are reread, verdicts are kept
    #[strum(message = "Reload", props(keys = "F5"))]
    Reload,
    /// Saves a copy of the project and switches to it
    #[strum(message = "Save project as…", props(keys = "Ctrl+Shift+S"))]
    SaveProjectAs,
    /// Writes predictions and verdicts for other tools, or a report
    #[strum(message = "Export…", props(keys = "Ctrl+E"))]
    Export,
    /// Writes a summary of how two runs agree, and the disagreement of each image
    #[strum(message = "Export comparison…")]
    ExportComparison,
    /// Writes the metrics as a report, JSON, a class table or plots
    #[strum(message = "Export evaluation…")]
    ExportEvaluation,
    /// Uploads the image files to a bucket; existing objects are kept
    #[strum(message = "Upload to S3…")]
    Upload,
    /// Runs the model over these images as a SageMaker Batch Transform job
    #[strum(message = "Send to SageMaker…", props(keys = "Ctrl+Shift+B"))]
    StartJob,
    /// Lists an account's Batch Transform jobs with progress, failures and cost
    #[strum(message = "Jobs…", props(keys = "Ctrl+J"))]
    Jobs,
    /// Serves the model from a SageMaker real-time endpoint, which is billed until it is deleted
    #[strum(message = "Deploy to an endpoint…", props(keys = "Ctrl+Shift+E"))]
    DeployEndpoint,
    /// Lists an account's real-time endpoints with status, cost and deletion time
    #[strum(message = "Endpoints…", props(keys = "Ctrl+Shift+J"))]
    Endpoints,
    /// Shows a job's predictions, or a folder of .out files, as a run over these images
    #[strum(message = "Open outputs…")]
    OpenOutputs,
    /// Shows predictions from another tool (COCO, YOLO, CSV …) as a run over these images
    #[strum(message = "Open predictions…")]
    OpenPredictions,
    /// Switches back to predicting on this computer; no image leaves it
    #[strum(message = "Predict on this computer")]
    PredictHere,
    /// Sends the image in view to a model behind a real-time endpoint
    #[strum(message = "Predict at a SageMaker endpoint…")]
    PredictAtEndpoint,
    /// Sends the image in view to a model behind TensorFlow Serving's REST API
    #[strum(message = "Predict in TensorFlow Serving…")]
    PredictInTfServing,
    /// Compares the remote run with the local one, image by image
    #[strum(message = "Compare local with remote")]
    CompareWithLocal,
    /// Sets the project's image folder after the images have moved
    #[strum(message = "Locate images…")]
    MoveProject,
    /// Inspects your own .onnx file and adds it to the list
    #[strum(message = "Add a model…")]
    AddModel,
    /// Copies the image with its overlays
    #[strum(message = "Copy image", props(keys = "Ctrl+Shift+C"))]
    CopyImage,
    /// Saves the image with its overlays as a PNG or JPEG file; existing files are kept
    #[strum(message = "Save image as…")]
    SaveImage,
    /// Sorts the images by their similarity to this one, as the model sees them
    #[strum(message = "Find similar images", props(keys = "Ctrl+Shift+L"))]
    FindAlike,
    /// Shows boxes in the filmstrip by their similarity to the selected one
    #[strum(message = "Find similar boxes", props(keys = "Ctrl+Alt+L"))]
    FindAlikeBoxes,
    /// Groups images with the same bytes, those that look the same, and those that are alike to the model
    #[strum(message = "Find duplicates", props(keys = "Ctrl+Shift+D"))]
    FindDuplicates,
    /// Adds the tag “duplicate” to all images of each group but the first; no file is changed
    #[strum(message = "Keep the first, tag the others")]
    TagDuplicates,
    /// Copies the path of the image
    #[strum(message = "Copy path", props(keys = "Ctrl+Alt+C"))]
    CopyPath,
    /// Opens the folder of the image
    #[strum(message = "Show in file manager", props(keys = "Ctrl+Shift+R"))]
    Reveal,
    /// Copies the path of the folder that the search is limited to, or else of the opened one
    #[strum(message = "Copy folder path")]
    CopyFolderPath,
    /// Opens the folder that the search is limited to, or else the opened one
    #[strum(message = "Show folder in file manager")]
    RevealFolder,
    /// Closes Spotcheck; asks first if a task is unfinished
    #[strum(message = "Quit", props(keys = "Ctrl+Q"))]
    Quit,
    /// Runs the model on the image in view, even if it already has a prediction
    #[strum(message = "Predict this image", props(keys = "Ctrl+Enter"))]
    PredictShown,
    /// Clears the verdicts on this image's prediction and predicts the file as it is now
    #[strum(message = "Clear verdicts and predict again")]
    PredictAnew,
    /// Runs the model on the selected images
    #[strum(message = "Predict selection", props(keys = "Ctrl+Shift+Enter"))]
    PredictSelection,
    /// Runs the model on every image that has no prediction yet
    #[strum(message = "Predict all", props(keys = "Ctrl+Alt+Enter"))]
    PredictAll,
    /// Runs the model on the search results that have no prediction yet
    #[strum(message = "Predict filtered")]
    PredictFiltered,
    /// Pauses prediction after the images in progress
    #[strum(message = "Pause", props(keys = "Ctrl+P"))]
    PauseTasks,
    /// Resumes prediction
    #[strum(message = "Resume", props(keys = "Ctrl+Shift+P"))]
    ResumeTasks,
    /// Cancels all tasks; predictions so far are kept
    #[strum(message = "Cancel tasks", props(keys = "Ctrl+."))]
    CancelTasks,
    /// Focuses the search field: names, classes, scores, verdicts
    #[strum(message = "Search", props(keys = "Slash Ctrl+F"))]
    Search,
    /// Clears the search field and shows all images
    #[strum(message = "Clear search", props(keys = "Ctrl+Shift+F"))]
    ClearSearch,
    /// Selects all images, or all search results
    #[strum(message = "Select all", props(keys = "Ctrl+A"))]
    SelectAll,
    /// Selects a number of images that cover all images or search results, by their embeddings
    #[strum(message = "Select covering images…")]
    SelectCover,
    /// Shows the image before this one
    #[strum(message = "Previous image", props(keys = "Alt+ArrowLeft"))]
    PreviousImage,
    /// Shows the image after this one
    #[strum(message = "Next image", props(keys = "Alt+ArrowRight"))]
    NextImage,
    /// Shows the first image
    #[strum(message = "First image", props(keys = "Home"))]
    FirstImage,
    /// Shows the last image
    #[strum(message = "Last image", props(keys = "End"))]
    LastImage,
    /// Shows the predictions of the run before this one
    #[strum(message = "Previous run", props(keys = "Alt+ArrowUp"))]
    PreviousRun,
    /// Shows the predictions of the run after this one
    #[strum(message = "Next run", props(keys = "Alt+ArrowDown"))]
    NextRun,
    /// The prediction is correct
    #[strum(message = "Accept", props(keys = "A"))]
    Accept,
    /// The prediction is wrong
    #[strum(message = "Reject", props(keys = "R"))]
    Reject,
    /// Cannot be decided from this image
    #[strum(message = "Unsure", props(keys = "U"))]
    Unsure,
    /// The box is correct but the class is wrong: enter the correct class
    #[strum(message = "Wrong class…", props(keys = "W"))]
    WrongClass,
    /// Accepts the fix of a suspicious label, as verdicts on the box and the label
    #[strum(message = "Fix label", props(keys = "X"))]
    FixLabel,
    /// Adds a box that the model did not find: drag over the object, then enter its class
    #[strum(message = "Draw box", props(keys = "B"))]
    DrawBox,
    /// Adds a copy of the selected box next to it
    #[strum(message = "Duplicate box", props(keys = "Ctrl+D"))]
    DuplicateBox,
    /// Rejects the selected box; a box that you added is removed
    #[strum(message = "Delete box", props(keys = "Delete"))]
    DeleteBox,
    /// Removes the verdict
    #[strum(message = "Clear verdict", props(keys = "Backspace C"))]
    ClearVerdict,
    /// No object is missing: the image counts as judged, whatever its boxes
    #[strum(message = "Mark complete", props(keys = "M"))]
    MarkComplete,
    /// The labels of this image must be made again: datasets of accepted boxes do not contain it
    #[strum(message = "Back to labeler", props(keys = "L"))]
    ReturnToLabeler,
    /// Draws a random sample to judge, which is enough to estimate the precision on all images
    #[strum(message = "Spot-check a sample…")]
    SpotCheck,
    /// Opens a copy of the project without verdicts, notes and tags, for a second reviewer; merge both projects
    /// afterwards
    #[strum(message = "Start a blind second pass…")]
    SecondPass,
    /// Merges the verdicts of another person on the same predictions into a new project
    #[strum(message = "Merge project…")]
    MergeProject,
    /// Shows the precision estimated from the verdicts, with 95% intervals per class and score
    #[strum(message = "Review report")]
    ReviewReport,
    /// Adds a note to the image
    #[strum(message = "Note…", props(keys = "N"))]
    WriteNote,
    /// Adds a tag for finding the image later
    #[strum(message = "Tag…", props(keys = "T"))]
    AddTag,
    /// Goes to the next image without a verdict
    #[strum(message = "Next unjudged", props(keys = "J"))]
    NextUnjudged,
    /// Goes to the unjudged image with the most uncertain prediction
    #[strum(message = "Next uncertain", props(keys = "K"))]
    NextUncertain,
    /// Undoes the last verdict, note or tag, or the last filter reset
    #[strum(message = "Undo", props(keys = "Ctrl+Z"))]
    Undo,
    /// Repeats the last undone change
    #[strum(message = "Redo", props(keys = "Ctrl+Shift+Z Ctrl+Y"))]
    Redo,
    /// Finds an image by name or number
    #[strum(message = "Go to image…", props(keys = "G"))]
    GoTo,
    /// Hides or shows the panels around the image
    #[strum(message = "Large image", props(keys = "Space"))]
    LargeImage,
    /// Switches between thumbnails and the image
    #[strum(message = "Thumbnails only", props(keys = "Ctrl+G"))]
    ThumbnailsOnly,
    /// Shows the whole image
    #[strum(message = "Fit image", props(keys = "F Ctrl+9"))]
    FitImage,
    /// Shows one image pixel per screen pixel
    #[strum(message = "Actual size", props(keys = "1 Ctrl+1"))]
    ActualSize,
    /// Enlarges the image
    #[strum(message = "Zoom in", props(keys = "Plus Equals"))]
    ZoomIn,
    /// Shrinks the image
    #[strum(message = "Zoom out", props(keys = "Minus"))]
    ZoomOut,
    /// Enlarges the selected box
    #[strum(message = "Zoom to box", props(keys = "Z"))]
    ZoomToBox,
    /// Selects the box with the next lower score
    #[strum(message = "Next box", props(keys = "CloseBracket"))]
    NextBox,
    /// Selects the box with the next higher score
    #[strum(message = "Previous box", props(keys = "OpenBracket"))]
    PreviousBox,
    /// Covers the image part by part to find the parts that the prediction depends on; again: hides them
    #[strum(message = "Explain", props(keys = "E"))]
    Explain,
    /// Shows all boxes of one class across all images, by score
    #[strum(message = "Filmstrip of a class", props(keys = "Ctrl+Shift+5"))]
    Filmstrip,
    /// Shows or hides the thumbnail panel
    #[strum(message = "Images", props(keys = "Ctrl+Shift+1"))]
    ToggleImages,
    /// Shows or hides the folders with their image counts below the thumbnails; a folder limits the search to its
    /// images
    #[strum(message = "Folders", props(keys = "Ctrl+Shift+7"))]
    ToggleFolders,
    /// Shows or hides the model and results panel
    #[strum(message = "Inspector", props(keys = "Ctrl+Shift+2"))]
    ToggleInspector,
    /// Shows or hides the tasks and problems panel
    #[strum(message = "Tasks and problems", props(keys = "Ctrl+Shift+3"))]
    ToggleTasks,
    /// Shows or hides the bar for verdicts, notes and tags
    #[strum(message = "Judging bar", props(keys = "Ctrl+Shift+4"))]
    ToggleJudging,
    /// After a verdict on an image, shows the next image; after a verdict on a box, selects the next box, then the next
    /// image
    #[strum(message = "Advance after each verdict")]
    GoOnAfterVerdict,
    /// Draws the visible boxes on the thumbnails
    #[strum(message = "Boxes on thumbnails", props(keys = "Ctrl+B"))]
    ToggleThumbnailBoxes,
    /// Draws ground-truth boxes, and boxes stored in a TFRecord, as white dashes
    #[strum(message = "Ground truth on the image", props(keys = "Ctrl+Alt+B"))]
    ToggleStoredBoxes,
    /// Saves what the model sees in each image next to the project, for finding similar images
    #[strum(message = "Save embeddings")]
    ToggleEmbeddings,
    /// Draws boxes on the image without labels and marks
    #[strum(message = "Outlines only")]
    ToggleOutlines,
    /// Draws the image as it is; models always receive it as it is
    #[strum(message = "Reset brightness and contrast")]
    ResetLook,
    /// Shows the images full screen, or those that the search found, with large labels and no paths; Space starts a
    /// slide show
    #[strum(message = "Presentation", props(keys = "F11"))]
    Present,
    /// Shows the model, and the position, name and note of the image in a presentation
    #[strum(message = "Caption", props(keys = "I"))]
    ToggleCaption,
    /// Enlarges the thumbnails
    #[strum(message = "Larger thumbnails", props(keys = "Ctrl+CloseBracket"))]
    LargerThumbnails,
    /// Shrinks the thumbnails
    #[strum(message = "Smaller thumbnails", props(keys = "Ctrl+OpenBracket"))]
    SmallerThumbnails,
    /// Enlarges all text and buttons
    #[strum(message = "Larger interface", props(keys = "Ctrl+Plus Ctrl+Equals"))]
    InterfaceLarger,
    /// Shrinks all text and buttons
    #[strum(message = "Smaller interface", props(keys = "Ctrl+Minus"))]
    InterfaceSmaller,
    /// Resets the interface to the system scale
    #[strum(message = "Normal interface size", props(keys = "Ctrl+0"))]
    InterfaceNormal,
    /// Follows the system's light or dark theme
    #[strum(message = "System theme")]
    ThemeSystem,
    /// Dark text on a light background
    #[strum(message = "Light theme")]
    ThemeLight,
    /// Light text on a dark background
    #[strum(message = "Dark theme")]
    ThemeDark,
    /// Resets thresholds, hidden classes and the overlap limit
    #[strum(message = "Reset filters")]
    ResetView,
    /// Clears the list of problems
    #[strum(message = "Clear problems")]
    ClearProblems,
    /// Finds a command by typing its name
    #[strum(message = "Command palette…", props(keys = "Ctrl+K"))]
    Palette,
    /// Lists keyboard shortcuts and mouse actions
    #[strum(message = "Help and keys", props(keys = "F1"))]
    Help,
    /// Lists what this version changes
    #[strum(message = "What’s new")]
    WhatsNew,
    /// Copies versions, the device report and recent errors, without secrets
    #[strum(message = "Copy diagnostics")]
    CopyDiagnostics,
    /// Opens the manual
    #[strum(message = "Open manual")]
    OpenManual,
    /// Opens Spotcheck's log file
    #[strum(message = "Open log file")]
    OpenLog,
}

impl Action {
    pub fn label(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }

    /// The label for the model that predicts now: an encoder computes embeddings.
    pub fn label_in(self, state: &State) -> &'static str {
        match self {
            _ if !state.uses_encoder() => self.label(),
            Self::PredictShown => "Embed this image",
            Self::PredictSelection => "Embed selection",
            Self::PredictAll => "Embed all",
            Self::PredictFiltered => "Embed filtered",
            _ => self.label(),
        }
    }

    /// The label with its current object: “Undo: reject 3 images”.
    pub fn label_now(self, state: &State) -> String {
        let about = match self {
            Self::Undo if state.filters_were_reset() => Some("reset filters"),
            Self::Undo => state.judgments.undo_label(),
            Self::Redo => state.judgments.redo_label(),
            Self::Accept if state.shown.selected_object.is_some() => {
                Some("the label is right, the model missed the object")
            }
            Self::Reject if state.shown.selected_object.is_some() => {
                Some("the label is wrong, there is no such object")
            }
            _ => None,
        };
        let label = self.label_in(state);
        about.map_or_else(|| label.to_owned(), |about| format!("{label}: {about}"))
    }

    pub fn tooltip(self) -> String {
        self.get_documentation().unwrap_or_default().trim_end().replace('\n', " ")
    }

    /// The shortcuts of the action, for example `Ctrl+O`; `Ctrl` is the command key on a Mac. The first is shown.
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        self.get_str("keys").unwrap_or_default().split_whitespace()
    }

    /// Whether the action gives, changes or removes a verdict.
    pub fn is_verdict(self) -> bool {
        use Action::{Accept, ClearVerdict, DeleteBox, MarkComplete, Reject, ReturnToLabeler, Unsure, WrongClass};
        matches!(
            self,
            Accept | Reject | DeleteBox | Unsure | WrongClass | ClearVerdict | MarkComplete | ReturnToLabeler
        )
    }

    /// Whether the action is about the predictions of the run on screen.
    fn needs_predictions(self) -> bool {
        use Action::{
            CompareRuns, CompareWithLocal, DrawBox, Explain, FindErrorPatterns, FixLabel, MergeProject, NextUncertain,
            OpenTruth, ReviewReport, SecondPass, SpotCheck, TruthOfImages, TruthOfVerdicts,
        };
        self.is_verdict()
            || matches!(
                self,
                CompareRuns
                    | CompareWithLocal
                    | DrawBox
                    | Explain
                    | FindErrorPatterns
                    | FixLabel
                    | MergeProject
                    | NextUncertain
                    | OpenTruth
                    | ReviewReport
                    | SecondPass
                    | SpotCheck
                    | TruthOfImages
                    | TruthOfVerdicts
            )
    }

    /// Checks whether the action is available.
    ///
    /// # Errors
    /// The reason why it is not.
    pub fn check(self, state: &State) -> Result<(), &'static str> {
        if self.needs_predictions() && state.run().is_some_and(|run| run.task().is_none()) {
            return Err("An encoder predicts nothing; choose a run of a classifier or detector under Runs");
        }
        match self {
            Self::CopyImage
            | Self::SaveImage
            | Self::CopyPath
            | Self::CopyFolderPath
            | Self::FitImage
            | Self::ActualSize
            | Self::ZoomIn
            | Self::ZoomOut => has_shown(state),
            Self::Reveal | Self::RevealFolder => can_reveal(state),
            Self::FindAlike => {
                has_shown(state)?;
                need(state.run().is_some_and(|run| run.predictions.predicted() > 0), "Predict images first")
            }
            Self::SelectCover => {
                has_source(state)?;
                need(!state.order().is_empty(), "No images on screen")?;
                need(state.run().is_some_and(|run| run.predictions.predicted() > 0), "Predict images first")
            }
            Self::FindAlikeBoxes => {
                has_shown(state)?;
                let has_drawn = matches!(state.shown.drawing, Some(Drawing::Drawn(_)));
                let has_box = has_drawn || state.shown.selected_box.is_some();
                need(has_box && state.has_boxes(), "Select or draw a box first")
            }
            Self::FindDuplicates => {
                has_source(state)?;
                need(!state.samples.is_empty(), "No images to compare")?;
                is_listed(state)
            }
            Self::TagDuplicates => {
                let has_groups = state.found_duplicates().is_some_and(|found| found.places.groups > 0);
                need(has_groups, "Find duplicates first")
            }
            Self::Export => need(state.run().is_some(), "Predict images first"),
            Self::Upload => {
                has_source(state)?;
                need(!state.samples.is_empty(), "No images to upload")?;
                need(state.place().is_none(), "The images are already in S3")
            }
            Self::StartJob => {
                has_source(state)?;
                need(!state.samples.is_empty(), "No images to send")?;
                is_listed(state)?;
                predicts_here(state)?;
                has_model_here(state)
            }
            Self::DeployEndpoint => {
                predicts_here(state)?;
                need(
                    state.models.chosen().is_some_and(|chosen| chosen.is_ready),
                    "Choose a model first, and download it if needed",
                )
            }
            Self::OpenOutputs => {
                need(state.source.is_some(), "Open the images of the outputs first")?;
                is_listed(state)?;
                state.project.check_writable()
            }
            Self::OpenPredictions => {
                need(!state.samples.is_empty(), "Open the images of the predictions first")?;
                is_listed(state)?;
                state.project.check_writable()
            }
            Self::Reload => {
                has_source(state)?;
                is_listed(state)
            }
            Self::SaveProjectAs => has_source(state),
            Self::SecondPass => {
                need(state.run().is_some(), "Predict images first")?;
                need(!state.project.is_second_pass, "This project is a blind second pass already")
            }
            Self::MergeProject => {
                need(state.run().is_some(), "Predict images first")?;
                need(state.project.path.is_some(), "Save the project first")
            }
            Self::MoveProject => need(state.project.path.is_some(), "Open a project first"),
            Self::ZoomToBox => {
                need(state.shown.selected_box.or(state.shown.selected_object).is_some(), "Select a box first")
            }
            Self::NextBox | Self::PreviousBox => {
                need(state.has_boxes() || !state.false_negatives().is_empty(), "This image has no boxes")
            }
            Self::Explain => {
                need(state.question().is_some(), "Nothing to explain; predict this image first").and_then(|()| {
                    let is_here = state.run().is_none_or(|run| run.info.key.made.is_here());
                    need(is_here, "This prediction was made remotely; only local predictions can be explained")
                })
            }
            _ => self.check_evaluating(state),
        }
    }

    /// The part of [`Self::check`] about ground truth and comparisons.
    fn check_evaluating(self, state: &State) -> Result<(), &'static str> {
        match self {
            Self::ExportComparison => need(
                state.comparing.as_ref().is_some_and(|comparing| comparing.agreement().is_some()),
                "Compare two runs first",
            ),
            Self::ExportEvaluation => need(
                state.evaluation().is_some_and(|evaluation| evaluation.last.is_some()),
                "Open ground truth and predict its images first",
            ),
            Self::Comparison => need(state.comparing.is_some(), "Compare two runs first"),
            Self::CompareRuns => need(
                state.comparing.is_some() || state.comparable_runs().next().is_some(),
                "Predict these images with another model of the same type first",
            ),
            Self::NextLayout => {
                need(state.layouts().len() > 1, "Predict with another model, or open ground truth first")
            }
            Self::DividerLeft | Self::DividerRight => {
                let is_line =
                    state.settings.compare_layout != CompareLayout::SideBySide && state.right_side().is_some();
                need(is_line, "Choose the comparison layout with a line first")
            }
            Self::PreviousRun | Self::NextRun => need(state.runs_to_step().nth(1).is_some(), "There is no other run"),
            Self::CompareWithLocal => {
                need(state.other_side().is_some(), "Predict these images here and open outputs of a job first")
            }
            Self::Map => need(state.map.is_shown || state.run().is_some(), "Predict images first"),
            Self::TruthOfVerdicts => need(state.run().is_some(), "Predict and judge images first"),
            Self::TruthOfImages => {
                let has_location = state.location().is_some();
                need(has_location, "Open a folder, a TFRecord file or a prefix first")
            }
            Self::OpenTruth => need(state.source.is_some(), "Open the images first"),
            Self::CorrectTruth => {
                need(state.labels_to_correct().is_some(), "Open ground truth from a file or folder first")?;
                state.project.check_writable()
            }
            Self::ExportLabelChanges => need(
                state.corrected_truth().is_some(),
                "Show labels that were opened with “Correct ground truth” first",
            ),
            Self::FindErrorPatterns => need(state.evaluated().is_some(), "Open ground truth first"),
            Self::FindNewErrorPatterns => {
                need(state.other_evaluated().is_some(), "Open ground truth and compare two runs first")
            }
            Self::CloseTruth | Self::Evaluation => need(state.evaluating.is_some(), "Open ground truth first"),
            _ => self.check_predicting(state),
        }
    }

    /// The part of [`Self::check`] about predicting and tasks.
    fn check_predicting(self, state: &State) -> Result<(), &'static str> {
        match self {
            Self::PredictHere => {
                need(state.inference.remote.is_some(), "Images are already predicted on this computer")
            }
            Self::PredictShown => {
                has_shown(state)?;
                has_model(state)
            }
            Self::PredictAnew => {
                has_shown(state)?;
                need(shown_is_kept(state), "Its prediction has no verdict")?;
                state.project.check_writable()?;
                has_model(state)
            }
            Self::PredictSelection => {
                need(!state.selection.selected().is_empty(), "Select images first").and_then(|()| has_model(state))
            }
            Self::PredictAll => {
                need(!state.samples.is_empty(), "Open a folder first")?;
                has_model(state)?;
                need(!state.tasks.prediction_is_running(), "A prediction is already running")
            }
            Self::PredictFiltered => {
                need(state.arranging.is_filtered(), "Search for something first, or use Predict all")
                    .and_then(|()| Self::PredictAll.check(state))
            }
            Self::ClearSearch => need(!state.arranging.text().is_empty(), "The search field is empty"),
            Self::PauseTasks => {
                let running = |task: &super::TaskEntry| task.can_pause() && !task.control.is_paused();
                need(state.tasks.running().iter().any(running), "No prediction is running")
            }
            Self::ResumeTasks => {
                need(state.tasks.running().iter().any(|task| task.control.is_paused()), "Nothing is paused")
            }
            Self::CancelTasks => need(!state.tasks.is_idle(), "No tasks are running"),
            _ => self.check_judging(state),
        }
    }

    /// The part of [`Self::check`] about walking through the images, judging and editing.
    fn check_judging(self, state: &State) -> Result<(), &'static str> {
        match self {
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
            | Self::ClearVerdict
            | Self::ReturnToLabeler
            | Self::WriteNote
            | Self::AddTag => can_judge(state),
            Self::WrongClass => {
                let finds_boxes = state.task() == Some(ModelTask::Detection);
                let has_class = !finds_boxes || !state.judged_boxes().is_empty();
                can_judge(state).and_then(|()| need(has_class, "Select the box that has the wrong class"))
            }
            Self::FixLabel => {
                can_judge(state)?;
                need(!state.selected_suspects().is_empty(), "Select a suspicious label first; search for “suspicious”")
            }
            Self::DrawBox => {
                can_judge(state)?;
                let shows_boxes = state.shown.prediction.as_ref().is_some_and(|shown| shown.is_of_boxes());
                need(shows_boxes, "Predict this image with a detector first")?;
                need(state.selection.selected().len() == 1, "Select a single image first")
            }
            Self::DuplicateBox => {
                can_judge(state)?;
                need(state.shown.selected_box.is_some(), "Select a box first")
            }
            Self::DeleteBox => {
                can_judge(state)?;
                let is_selected = state.shown.selected_box.is_some() || !state.judged_boxes().is_empty();
                need(is_selected, "Select a box first; R rejects the whole image")
            }
            Self::MarkComplete => {
                can_judge(state)?;
                let has_boxes = state.shown.prediction.as_ref().is_some_and(|shown| shown.is_of_boxes());
                need(has_boxes, "Predict this image with a detector first")?;
                let verdict = state.shown_sample().and_then(|sample| state.judgments.verdict(sample));
                let is_free = verdict.is_none_or(|verdict| matches!(verdict, Verdict::Complete | Verdict::Returned));
                need(is_free, "The image has a verdict already, so it is complete")
            }
            Self::SpotCheck => {
                need(state.run().is_some(), "Predict images first")?;
                state.project.check_writable()
            }
            Self::ReviewReport => need(state.run().is_some(), "Predict and judge images first"),
            Self::Present => need(state.presenting.is_some() || !state.order().is_empty(), "No images to present"),
            Self::ToggleCaption => need(state.presenting.is_some(), "Start a presentation first"),
            Self::NextUncertain => {
                need(state.run().is_some_and(|run| run.predictions.predicted() > 0), "Nothing is predicted yet")
            }
            Self::Undo => can_undo(state),
            Self::Redo => {
                need(state.judgments.redo_label().is_some(), "Nothing to redo")?;
                state.project.check_writable()
            }
            Self::ResetLook => need(state.settings.look() != Look::default(), "The image is drawn as it is"),
            Self::ClearProblems => need(!state.problems.is_empty(), "No problems"),
            _ => Ok(()),
        }
    }

    /// The state of a switch; `None` for all other actions.
    pub fn is_on(self, state: &State) -> Option<bool> {
        let settings = &state.settings;
        match self {
            Self::LargeImage => Some(state.large_image),
            Self::ThumbnailsOnly => Some(settings.thumbnails_only),
            Self::Filmstrip => Some(state.filmstrip.is_some()),
            Self::CompareRuns => Some(state.comparing.is_some()),
            Self::Map => Some(state.map.is_shown),
            Self::Comparison => Some(state.shows_comparison()),
            Self::Evaluation => Some(state.evaluating.as_ref().is_some_and(|evaluating| evaluating.is_shown)),
            Self::ToggleImages => Some(settings.show_images_panel),
            Self::ToggleFolders => Some(settings.show_folders),
            Self::ToggleInspector => Some(settings.show_inspector),
            Self::ToggleTasks => Some(settings.show_tasks_panel),
            Self::ToggleJudging => Some(settings.show_judging),
            Self::DrawBox => Some(state.shown.drawing.is_some()),
            Self::MarkComplete => {
                let verdict = state.shown_sample().and_then(|sample| state.judgments.verdict(sample));
                Some(verdict == Some(&Verdict::Complete))
            }
            Self::ReturnToLabeler => {
                let verdict = state.shown_sample().and_then(|sample| state.judgments.verdict(sample));
                Some(verdict == Some(&Verdict::Returned))
            }
            Self::GoOnAfterVerdict => Some(settings.next_after_verdict),
            Self::ToggleThumbnailBoxes => Some(settings.show_thumbnail_boxes),
            Self::ToggleStoredBoxes => Some(settings.show_stored_boxes),
            Self::ToggleOutlines => Some(settings.outlines_only),
            Self::ToggleEmbeddings => Some(settings.save_embeddings),
            Self::Present => Some(state.presenting.is_some()),
            Self::ToggleCaption => Some(settings.show_caption),
            Self::ThemeSystem => Some(settings.theme == ThemeChoice::System),
            Self::ThemeLight => Some(settings.theme == ThemeChoice::Light),
            Self::ThemeDark => Some(settings.theme == ThemeChoice::Dark),
            Self::Help => Some(state.overlay == Overlay::Help),
            _ => None,
        }
    }
}

fn need(condition: bool, reason: &'static str) -> Result<(), &'static str> {
    condition.then_some(()).ok_or(reason)
}

fn has_shown(state: &State) -> Result<(), &'static str> {
    need(state.shown_sample().is_some(), "Choose an image first")
}

fn has_source(state: &State) -> Result<(), &'static str> {
    need(state.source.is_some(), "Open a folder first")
}

fn is_listed(state: &State) -> Result<(), &'static str> {
    need(!state.is_listing(), "The images are being listed")
}

fn can_reveal(state: &State) -> Result<(), &'static str> {
    has_shown(state)?;
    need(state.place().is_none(), "The image is in S3, not on this computer")
}

fn can_judge(state: &State) -> Result<(), &'static str> {
    has_shown(state)?;
    state.check_judged_is_found()?;
    state.project.check_writable()
}

fn can_undo(state: &State) -> Result<(), &'static str> {
    if state.filters_were_reset() {
        return Ok(());
    }
    need(state.judgments.undo_label().is_some(), "Nothing to undo")?;
    state.project.check_writable()
}

fn shown_is_kept(state: &State) -> bool {
    let shown = state.run().zip(state.shown_sample());
    shown.is_some_and(|(run, sample)| state.keeps_prediction(run.id(), sample))
}

/// Whether there is a local or remote model.
fn has_model(state: &State) -> Result<(), &'static str> {
    if state.inference.remote.is_some() {
        return state.project.check_soon_writable();
    }
    has_model_here(state)
}

/// Whether the chosen model can be served: an encoder has nothing to return.
fn predicts_here(state: &State) -> Result<(), &'static str> {
    let is_encoder = state.models.chosen().is_some_and(|chosen| chosen.card.is_encoder());
    need(!is_encoder, "An encoder predicts nothing; choose a classifier or detector")
}

fn has_model_here(state: &State) -> Result<(), &'static str> {
    let Some(chosen) = state.models.chosen() else {
        return Err("Choose a model first");
    };
    state.project.check_soon_writable()?;
    let reason = match chosen.card.task {
        CardTask::Classification => "Download the classifier first",
        CardTask::Detection => "Download the detector first",
        CardTask::Embedding => "Get the file of the encoder first",
    };
    need(chosen.is_ready, reason)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn shortcuts_are_unique() {
        let mut seen = BTreeSet::new();
        for action in Action::VARIANTS {
            for keys in action.keys() {
                assert!(seen.insert(keys), "{keys} of {action:?} is taken");
            }
        }
        assert!(seen.len() > 40, "{}", seen.len());
    }

    #[test]
    fn actions_are_listed_once_with_a_description() {
        let labels: BTreeSet<&str> = Action::VARIANTS.iter().map(|action| action.label()).collect();
        assert_eq!(labels.len(), Action::VARIANTS.len());
        for action in Action::VARIANTS {
            assert!(!action.label().is_empty() && !action.tooltip().is_empty(), "{action:?}");
            assert!(!action.tooltip().ends_with('.'), "{action:?}");
        }
    }

    #[test]
    fn image_actions_are_disabled_in_an_empty_window() {
        let state = State::default();
        assert!(Action::PredictShown.check(&state).is_err());
        assert!(Action::CopyImage.check(&state).is_err());
        assert!(Action::OpenFolder.check(&state).is_ok());
    }
}
