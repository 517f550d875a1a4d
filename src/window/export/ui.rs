//! The export dialogs, and the notice when one is finished.

use std::path::PathBuf;

use eframe::egui::{Button, Context, Frame, Label, ProgressBar, RichText, ScrollArea, Ui, vec2};
use strum::VariantArray;

use crate::domain::{ModelTask, SampleUri};
use crate::project::export::options::{
    AnnotatedKind, BoxChoice, ClassChoice, ComparisonFormat, EmbeddedPart, EvaluationFormat, ExportFormat,
    ExportOptions, VerdictChoice,
};
use crate::window::state::{
    BrowseCommand, Command, Commands, ExportCommand, ExportScope, Exported, Loadable, Overlay, Run, State, TaskId,
    TaskSignal,
};
use crate::window::ui::dialog::{dialog_ui, heading_ui};
use crate::window::ui::field::Field;
use crate::window::ui::theme;
use crate::window::ui::widgets::{
    Tone, box_count, checkbox_ui, command_button_ui, ends_ui, enter_pressed, focus_whole_text, grouped, message_ui,
    note_ui, primary_button_ui, radio_ui, strong,
};

const WIDTH: f32 = 600.0;
const FORMATS_WIDTH: f32 = 160.0;
/// The height of the format with the most options.
const CHOICES_HEIGHT: f32 = 400.0;
/// The heading above the options, and the target and the buttons below them.
const ROOM_OF_BUTTONS: f32 = 290.0;

#[derive(Default)]
pub(crate) struct ExportMemory {
    /// The file of the predictions; a comparison of two runs has its own.
    export: Target,
    comparison: Target,
    evaluation: Target,
    changes: Target,
    taken_over: Option<PathBuf>,
    /// Whether the notice about a finished export is open.
    was_exported: bool,
}

/// The target path while it is typed.
#[derive(Default)]
struct Target {
    path: String,
    /// The last suggestion. While the field contains it, it follows what is open and selected.
    suggested: String,
    /// The extension of the format that the path was made for.
    extension: Option<&'static str>,
    replaces: bool,
    /// The path of the last attempt: its error applies to no other.
    tried: Option<PathBuf>,
    /// Whether its field has had the focus since the dialog opened.
    has_had_keyboard: bool,
}

pub(crate) fn export_ui(ctx: &Context, state: &State, memory: &mut ExportMemory, commands: &mut Commands) {
    let was_exported = std::mem::replace(&mut memory.was_exported, state.exported.is_some());
    if let Some(exported) = &state.exported {
        exported_ui(ctx, exported, !was_exported, commands);
    }
    let target = match state.overlay {
        Overlay::Export => &mut memory.export,
        Overlay::ExportComparison => &mut memory.comparison,
        Overlay::ExportEvaluation => &mut memory.evaluation,
        Overlay::ExportLabelChanges => &mut memory.changes,
        _ => {
            let ExportMemory { export, comparison, evaluation, changes, .. } = memory;
            for target in [export, comparison, evaluation, changes] {
                (target.replaces, target.has_had_keyboard) = (false, false);
            }
            return;
        }
    };
    let picked = &state.export.picked;
    if *picked != memory.taken_over {
        memory.taken_over.clone_from(picked);
        if let Some(path) = picked {
            target.path = path.display().to_string();
        }
    }
    target.follow(state);
    dialog_ui(ctx, "export", WIDTH, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let is_possible = match state.overlay {
            Overlay::ExportComparison => comparison_ui(ui, state, commands),
            Overlay::ExportEvaluation => evaluation_ui(ui, state, commands),
            Overlay::ExportLabelChanges => changes_ui(ui, state),
            _ => predictions_ui(ui, state, commands),
        };
        let is_entered = target_ui(ui, state, target, commands);
        confirm_ui(ui, state, target, is_possible, is_entered, commands);
    });
}

impl Target {
    /// Another format has another extension.
    fn follow(&mut self, state: &State) {
        let suggested = state.suggested_export().display().to_string();
        let extension = state.export_extension();
        if self.path == self.suggested {
            self.path.clone_from(&suggested);
        } else if self.extension != extension {
            self.path = with_ending(&self.path, self.extension, extension);
        }
        (self.suggested, self.extension) = (suggested, extension);
    }
}

/// A path for another format: of a file (`Some` extension) or a folder. A path whose extension the user changed is
/// kept.
fn with_ending(path: &str, before: Option<&str>, now: Option<&str>) -> String {
    let stem = match before.map(|before| format!(".{before}")) {
        None => Some(path.trim_end_matches(['/', '\\'])),
        Some(before) => path.strip_suffix(before.as_str()),
    };
    match (stem.filter(|stem| !stem.is_empty()), now) {
        (None, _) => path.to_owned(),
        (Some(stem), None) => stem.to_owned(),
        (Some(stem), Some(now)) => format!("{stem}.{now}"),
    }
}

/// Returns whether there is something to export.
fn predictions_ui(ui: &mut Ui, state: &State, commands: &mut Commands) -> bool {
    let task = state.run().and_then(Run::task);
    let mut options = state.export.options;
    let (mut scope, mut embeddings) = (state.export.scope, state.export.embeddings);
    let about = state.run().map_or_else(String::new, |run| match embeddings {
        Some(_) => format!("Embeddings of the run “{}”", run.info.name),
        None => format!("Predictions of the run “{}”", run.info.name),
    });
    heading_ui(ui, "Export", &about);
    let room = ui.ctx().content_rect().height() - ROOM_OF_BUTTONS;
    let choices_ui = |ui: &mut Ui| {
        formats_ui(ui, task, &mut options, &mut embeddings);
        ui.add_space(8.0);
        ui.vertical(|ui| {
            ui.set_width(ui.available_width());
            // No format moves the buttons below.
            ui.set_min_height(CHOICES_HEIGHT.min(room));
            if let Some(part) = &mut embeddings {
                embeddings_ui(ui, task, part);
                return;
            }
            let mut description = options.format.description().to_owned();
            let is_evaluated = state.evaluation().is_some_and(|evaluation| evaluation.last.is_some());
            if options.format == ExportFormat::Report && is_evaluated {
                description.push_str(", and the evaluation of all images");
            }
            note_ui(ui, description);
            ui.add_space(6.0);
            ui.label(strong("Images"));
            for &choice in ExportScope::VARIANTS {
                radio_ui(ui, &mut scope, choice, scope_text(state, choice));
            }
            ui.add_space(6.0);
            options_ui(ui, task, &mut options);
        });
    };
    ScrollArea::vertical().max_height(room).show(ui, |ui| ui.horizontal_top(choices_ui));
    if (options, scope) != (state.export.options, state.export.scope) {
        commands.push(ExportCommand::Set(options, scope));
    }
    if embeddings != state.export.embeddings {
        commands.push(ExportCommand::SetEmbeddings(embeddings));
    }
    embeddings.is_some() || task.is_some_and(|task| options.format.takes(task)) && scope.len(state) > 0
}

/// “Selected images (3, with 17 boxes)”.
fn scope_text(state: &State, scope: ExportScope) -> String {
    let images = grouped(scope.len(state));
    let is_detector = state.run().and_then(Run::task) == Some(ModelTask::Detection);
    let counts = state.export_boxes.value().copied().flatten().filter(|_| is_detector);
    let Some(count) = counts.map(|counts| counts.in_scope(scope)) else {
        return format!("{} ({images})", scope.into_str());
    };
    let boxes = box_count(count);
    // Verdicts are checked while writing.
    let at_most = match state.export.options.verdicts {
        VerdictChoice::All => "",
        VerdictChoice::WithoutRejected | VerdictChoice::Corrected => "at most ",
    };
    format!("{} ({images}, with {at_most}{boxes})", scope.into_str())
}

fn comparison_ui(ui: &mut Ui, state: &State, commands: &mut Commands) -> bool {
    let name = |run| state.runs.get(run).map_or("", |run| run.info.name.as_str());
    let about = state
        .comparing
        .as_ref()
        .map_or_else(String::new, |compared| format!("A: {}\nB: {}", name(compared.left), name(compared.right)));
    heading_ui(ui, "Export comparison", &about);
    let formats = ComparisonFormat::VARIANTS.iter().map(|&format| (format, format.name(), format.description()));
    if let Some(format) = format_ui(ui, state.export.comparison, formats) {
        commands.push(ExportCommand::SetComparisonFormat(format));
    }
    true
}

fn evaluation_ui(ui: &mut Ui, state: &State, commands: &mut Commands) -> bool {
    let run = state.run().map_or("", |run| run.info.name.as_str());
    let truth = state.evaluating.as_ref().map(|evaluating| evaluating.at.name()).unwrap_or_default();
    let about = format!("Run “{run}” against the ground truth {truth}, evaluated with the current filters");
    heading_ui(ui, "Export evaluation", &about);
    let formats = EvaluationFormat::VARIANTS.iter().map(|&format| (format, format.name(), format.description()));
    if let Some(format) = format_ui(ui, state.export.evaluation, formats) {
        commands.push(ExportCommand::SetEvaluationFormat(format));
    }
    true
}

fn changes_ui(ui: &mut Ui, state: &State) -> bool {
    let truth = state.corrected_truth().map(|(at, _)| at.name());
    let run = state.run().map_or("", |run| run.info.name.as_str());
    heading_ui(
        ui,
        "Export changes to the labels",
        &format!("Run “{run}”, opened from {}", truth.as_deref().unwrap_or("")),
    );
    note_ui(
        ui,
        "One line per added, deleted, moved or relabeled box, with its reviewer. The owner of the labels deletes the \
         lines to reject and applies the others with “spotcheck review apply”.",
    );
    truth.is_some()
}

/// The formats with their names and descriptions. Returns the chosen one if it is another.
fn format_ui<F: Copy + PartialEq>(
    ui: &mut Ui,
    now: F,
    formats: impl Iterator<Item = (F, &'static str, &'static str)>,
) -> Option<F> {
    let mut chosen = now;
    ui.label(strong("Format"));
    for (format, name, description) in formats {
        radio_ui(ui, &mut chosen, format, format!("{name}: {description}"));
    }
    (chosen != now).then_some(chosen)
}

fn embeddings_ui(ui: &mut Ui, task: Option<ModelTask>, part: &mut EmbeddedPart) {
    note_ui(ui, EmbeddedPart::DESCRIPTION);
    ui.add_space(6.0);
    ui.label(strong("Contents"));
    radio_ui(ui, part, EmbeddedPart::Images, "Embeddings of images");
    if task == Some(ModelTask::Detection) {
        radio_ui(ui, part, EmbeddedPart::Boxes, "Embeddings of boxes");
    }
    ui.add_space(6.0);
    note_ui(ui, "All embeddings of the run are exported, of hidden images and boxes as well");
}

/// The formats in a list; those that do not fit the model's predictions are disabled.
fn formats_ui(
    ui: &mut Ui,
    task: Option<ModelTask>,
    options: &mut ExportOptions,
    embeddings: &mut Option<EmbeddedPart>,
) {
    let fill = theme::sunken_fill(ui.visuals());
    let frame = Frame::new().fill(fill).corner_radius(8).inner_margin(6);
    frame.show(ui, |ui| {
        ui.vertical(|ui| {
            ui.set_width(FORMATS_WIDTH);
            ui.spacing_mut().item_spacing.y = 2.0;
            // The empty right side keeps the name on the left.
            let button =
                |is_chosen, name| Button::selectable(is_chosen, name).right_text("").min_size(vec2(FORMATS_WIDTH, 0.0));
            let unfit = match task {
                Some(_) => "This format is for boxes; a classifier has none",
                None => "This format is for predictions; an encoder has only embeddings",
            };
            for &format in ExportFormat::VARIANTS {
                let is_possible = task.is_some_and(|task| format.takes(task));
                let is_chosen = embeddings.is_none() && options.format == format;
                let entry = ui
                    .add_enabled(is_possible, button(is_chosen, format.name()))
                    .on_hover_text(format.description())
                    .on_disabled_hover_text(unfit);
                if entry.clicked() {
                    (options.format, *embeddings) = (format, None);
                }
                entry.accessible_name(format.name());
            }
            let name = EmbeddedPart::FORMAT_NAME;
            let entry = ui.add(button(embeddings.is_some(), name)).on_hover_text(EmbeddedPart::DESCRIPTION);
            if entry.clicked() {
                embeddings.get_or_insert(EmbeddedPart::Images);
            }
            entry.accessible_name(name);
        });
    });
}

fn options_ui(ui: &mut Ui, task: Option<ModelTask>, options: &mut ExportOptions) {
    let format = options.format;
    ui.label(strong("Contents"));
    for &choice in VerdictChoice::VARIANTS {
        radio_ui(ui, &mut options.verdicts, choice, choice.name()).on_hover_text(choice.description());
    }
    // Corrected labels are what a person confirmed.
    let is_chosen = options.verdicts != VerdictChoice::Corrected;
    if is_chosen {
        let mut all = options.boxes == BoxChoice::All;
        let things = if task == Some(ModelTask::Classification) { "classes" } else { "boxes" };
        checkbox_ui(ui, &mut all, format!("All stored {things}, including hidden ones"));
        options.boxes = if all { BoxChoice::All } else { BoxChoice::Visible };
    }
    if is_chosen && format.is_dataset() {
        let mut judged = options.classes == ClassChoice::Judged;
        checkbox_ui(ui, &mut judged, "Use the corrected classes");
        options.classes = if judged { ClassChoice::Judged } else { ClassChoice::Model };
    }
    if format == ExportFormat::Yolo {
        checkbox_ui(ui, &mut options.yolo_scores, "Write scores as a sixth column")
            .on_hover_text("Many training tools reject a sixth column");
    }
    if matches!(format, ExportFormat::Yolo | ExportFormat::Voc) {
        checkbox_ui(ui, &mut options.with_images, "Copy the images next to the labels");
    }
    if format == ExportFormat::AnnotatedImages {
        ui.horizontal_wrapped(|ui| {
            for &kind in AnnotatedKind::VARIANTS {
                radio_ui(ui, &mut options.annotated_kind, kind, kind.name());
            }
        });
    }
}

/// Returns whether Enter was pressed in the field.
fn target_ui(ui: &mut Ui, state: &State, target: &mut Target, commands: &mut Commands) -> bool {
    let name = if state.export_extension().is_some() { "Target file" } else { "Target folder" };
    let mut is_entered = false;
    ui.add_space(8.0);
    ui.label(strong(name));
    let field_ui = |ui: &mut Ui, _: &mut _| {
        let field = Field::new(name).hint("Type a path, or choose one").text_ui(ui, &mut target.path);
        if !std::mem::replace(&mut target.has_had_keyboard, true) {
            focus_whole_text(&field, &target.path);
        }
        is_entered = enter_pressed(&field);
    };
    ends_ui(ui, "target", commands, field_ui, |ui, commands| {
        command_button_ui(ui, "Choose…", commands, || ExportCommand::PickTarget);
    });
    checkbox_ui(ui, &mut target.replaces, "Overwrite if it exists");
    ui.add_space(10.0);
    is_entered
}

/// The button that starts the export, or its progress.
fn confirm_ui(
    ui: &mut Ui,
    state: &State,
    target: &mut Target,
    is_possible: bool,
    is_entered: bool,
    commands: &mut Commands,
) {
    let path = PathBuf::from(target.path.trim());
    match &state.export.stage {
        Loadable::Loading(task) => return running_ui(ui, state, *task, commands),
        Loadable::Failed(why) if target.tried.as_ref() == Some(&path) => {
            message_ui(ui, Tone::Error, why.message());
            ui.add_space(6.0);
        }
        Loadable::NotLoaded | Loadable::Ready(()) | Loadable::Failed(_) => {}
    }
    let is_ready = is_possible && !path.as_os_str().is_empty();
    let is_clicked = ui.horizontal(|ui| {
        let missing = "Choose a format for this type of model, at least one image, and a target";
        let export = primary_button_ui(ui, "Export now", (!is_ready).then_some(missing));
        command_button_ui(ui, "Cancel", commands, || Command::CLOSE_OVERLAY);
        export.clicked()
    });
    if is_clicked.inner || is_entered && is_ready {
        target.tried = Some(path.clone());
        commands.push(ExportCommand::Start { path, replaces: target.replaces });
    }
}

/// The progress, in place of the buttons while exporting.
fn running_ui(ui: &mut Ui, state: &State, task: TaskId, commands: &mut Commands) {
    let fraction = state.tasks.get(task).and_then(|task| task.control.progress().fraction());
    ui.horizontal(|ui| {
        let bar = ProgressBar::new(fraction.unwrap_or(0.0)).desired_width(160.0);
        ui.add(bar);
        command_button_ui(ui, "Cancel the export", commands, || Command::SignalTask(task, TaskSignal::Cancel));
        command_button_ui(ui, "Continue in the background", commands, || Command::CLOSE_OVERLAY);
    });
}

fn exported_ui(ctx: &Context, exported: &Exported, is_new: bool, commands: &mut Commands) {
    dialog_ui(ctx, "exported", WIDTH, ExportCommand::Dismiss, commands, |ui, commands| {
        heading_ui(ui, "Exported", "");
        ui.add(Label::new(&exported.summary).wrap());
        if !exported.notes.is_empty() {
            ScrollArea::vertical().max_height(260.0).show(ui, |ui| {
                for note in exported.notes.iter().take(100) {
                    ui.label(RichText::new(note).weak());
                }
                let more = exported.notes.len().saturating_sub(100);
                if more > 0 {
                    ui.weak(format!("and {more} more"));
                }
            });
        }
        ui.add_space(8.0);
        ui.horizontal(|ui| {
            if ui.button("Show in file manager").clicked() {
                let path = exported.path.display().to_string();
                commands.push(BrowseCommand::Reveal(SampleUri::new(path)));
            }
            let close = ui.button("Close");
            if is_new {
                close.request_focus();
            }
            if close.clicked() {
                commands.push(ExportCommand::Dismiss);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_format_changes_only_its_extension() {
        for (path, before, now, expected) in [
            ("/out/cats.json", Some("json"), Some("csv"), "/out/cats.csv"),
            ("/out/cats.json", Some("json"), None, "/out/cats"),
            ("/out/cats.v2/", None, Some("json"), "/out/cats.v2.json"),
            ("/out/cats.txt", Some("json"), Some("csv"), "/out/cats.txt"),
            ("/out/cats", Some("json"), Some("csv"), "/out/cats"),
            ("", None, Some("csv"), ""),
        ] {
            assert_eq!(with_ending(path, before, now), expected, "{path}");
        }
    }
}
