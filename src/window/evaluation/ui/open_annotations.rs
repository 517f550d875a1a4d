//! The dialog that opens annotations from other tools, local or in S3: predictions as a run over the open images, or
//! ground truth to compare runs with.

use std::path::PathBuf;

use crate::domain::NamePattern;
use crate::window::outputs::ui::reading::{BUTTON_WIDTH, LABEL_SETS, labels_ui, width_next_to_button};
use crate::window::state::{
    AnnotationsPick, EvaluationCommand, FileRequest, OpeningOutputs, OutputsCommand, OutputsFailure, PredictionsFrom,
    TruthAt, TruthNames, TruthReading,
};
use crate::window::ui::field::{PlaceMemory, footer_ui};
use crate::window::ui::prelude::*;

const WIDTH: f32 = 560.0;
/// The number of images whose class in their file name is shown.
const NAMED_EXAMPLES: usize = 3;

/// What annotations are opened as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenAs {
    Run,
    Truth,
}

#[derive(Default)]
pub(crate) struct OpenAnnotationsMemory {
    place: PlaceMemory,
    labels: String,
    names: NamesChoice,
    class_map: String,
    ignores_scores: bool,
    was_open: bool,
    /// The choice of a file dialog that was used last.
    taken_over: u64,
}

/// The source of names for numbered classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum NamesChoice {
    #[default]
    FromFile,
    /// The name and the title of a label set.
    BuiltIn(&'static str, &'static str),
    Model,
    LabelFile,
}

impl NamesChoice {
    fn all() -> impl Iterator<Item = Self> {
        let built_in = LABEL_SETS.into_iter().map(|(name, title)| Self::BuiltIn(name, title));
        [Self::FromFile].into_iter().chain(built_in).chain([Self::Model, Self::LabelFile])
    }

    fn label(self) -> &'static str {
        match self {
            Self::FromFile => "From the ground truth",
            Self::BuiltIn(_, title) => title,
            Self::Model => "The model’s classes in order",
            Self::LabelFile => "A label file",
        }
    }

    /// `file` is the typed label file.
    ///
    /// # Errors
    /// What is missing.
    fn names(self, state: &State, file: &str) -> Result<Option<TruthNames>, &'static str> {
        match self {
            Self::FromFile => Ok(None),
            Self::BuiltIn(name, _) => Ok(Some(TruthNames::Set(name.to_owned()))),
            Self::Model => {
                let names = state.run().and_then(|run| TruthNames::in_order_of(run.labels()));
                names.map(Some).ok_or("The run has no class names; choose other class names")
            }
            Self::LabelFile if file.trim().is_empty() => Err("Enter the path of a label file"),
            Self::LabelFile => Ok(Some(TruthNames::Set(file.trim().to_owned()))),
        }
    }
}

impl OpenAs {
    fn action(self) -> Action {
        match self {
            Self::Run => Action::OpenPredictions,
            Self::Truth => Action::OpenTruth,
        }
    }

    fn overlay(self) -> Overlay {
        match self {
            Self::Run => Overlay::OpenPredictions,
            Self::Truth => Overlay::OpenTruth,
        }
    }

    fn explanation(self) -> &'static str {
        match self {
            Self::Run => {
                "Opens predictions from another tool as a run over the open images: COCO, YOLO, Pascal VOC, CSV or \
                 JSON Lines. The format is detected from the content. You can also drop the files on the window."
            }
            Self::Truth => {
                "Evaluates runs against annotations: COCO, YOLO, Pascal VOC, CSV, JSON Lines, TFRecord or one folder \
                 per class. The format is detected from the content. You can also drop the files on the window. If \
                 the image file names contain the class, enter a pattern: {class} matches the class, * any text, ? \
                 one character."
            }
        }
    }

    /// The name of the field, and its hint.
    fn field(self) -> (&'static str, &'static str) {
        match self {
            Self::Run => ("Prediction file or folder", "results.json, or s3://bucket/results.json"),
            Self::Truth => {
                ("Ground-truth file, folder or pattern", "instances.json, s3://bucket/labels/, or *_{class}.png")
            }
        }
    }

    fn button(self) -> &'static str {
        match self {
            Self::Run => "Open as a run",
            Self::Truth => "Open",
        }
    }

    /// # Errors
    /// What is missing.
    fn command(self, state: &State, memory: &OpenAnnotationsMemory) -> Result<Command, &'static str> {
        let at = || memory.place.location(state).ok_or("Enter or choose a file or folder");
        let class_map = Some(memory.class_map.trim()).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(match self {
            Self::Run => {
                let labels = memory.labels.trim().to_owned();
                OutputsCommand::OpenPredictions(PredictionsFrom { labels, class_map, ..at()?.into() }).into()
            }
            Self::Truth => {
                let address = memory.place.address.trim();
                let is_pattern = address.contains(NamePattern::CLASS);
                let at = if is_pattern { TruthAt::Names(address.to_owned()) } else { TruthAt::Files(at()?) };
                let names = memory.names.names(state, &memory.labels)?;
                let reading = TruthReading { names, ignores_scores: memory.ignores_scores, split: None };
                EvaluationCommand::OpenTruth { at, reading, class_map }.into()
            }
        })
    }
}

pub(crate) fn open_annotations_ui(
    ctx: &Context,
    state: &State,
    open_as: OpenAs,
    memory: &mut OpenAnnotationsMemory,
    commands: &mut Commands,
) {
    let is_open = state.overlay == open_as.overlay();
    let is_new = is_open && !memory.was_open;
    memory.was_open = is_open;
    if !is_open {
        return;
    }
    if let Some((number, pick, path)) = &state.picked_annotations
        && memory.taken_over != *number
    {
        memory.taken_over = *number;
        let field = match pick {
            AnnotationsPick::File | AnnotationsPick::Folder => &mut memory.place.address,
            AnnotationsPick::ClassMap => &mut memory.class_map,
        };
        if !is_new {
            *field = path.display().to_string();
        }
    }
    dialog_ui(ctx, open_as.action().label(), WIDTH, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        heading_ui(ui, open_as.action().label(), open_as.explanation());
        let is_entered = place_ui(ui, state, open_as, memory, is_new, commands);
        ui.add_space(8.0);
        match open_as {
            OpenAs::Run => labels_ui(ui, &mut memory.labels),
            OpenAs::Truth => names_ui(ui, &mut memory.names, &mut memory.labels),
        }
        if open_as == OpenAs::Truth {
            let tooltip = "For labels that keep the scores of the predictions they came from, such as exported \
                corrected labels";
            ui.checkbox(&mut memory.ignores_scores, "Ignore scores").on_hover_text(tooltip);
        }
        ui.add_space(6.0);
        class_map_ui(ui, open_as, &mut memory.class_map, commands);
        let opening = Some(&state.remote.outputs).filter(|_| open_as == OpenAs::Run);
        ground_truth_ui(ui, state, opening, &mut memory.place, commands);
        memory.place.failure_ui(ui, opening);
        let command = open_as.command(state, memory);
        let command = command.map_err(str::to_owned);
        footer_ui(ui, state, opening, open_as.button(), command, is_entered, commands);
    });
}

/// Returns true if Enter was pressed to open them.
fn place_ui(
    ui: &mut Ui,
    state: &State,
    open_as: OpenAs,
    memory: &mut OpenAnnotationsMemory,
    is_new: bool,
    commands: &mut Commands,
) -> bool {
    let is_entered = memory.place.field_ui(ui, open_as.field(), f32::INFINITY, is_new);
    ui.add_space(4.0);
    ui.horizontal(|ui| {
        for (text, kind) in [("Choose a file…", AnnotationsPick::File), ("Choose a folder…", AnnotationsPick::Folder)]
        {
            command_button_ui(ui, text, commands, || Command::PickFile(FileRequest::Annotations(kind)));
        }
    });
    if open_as == OpenAs::Truth && memory.place.address.contains(NamePattern::CLASS) {
        named_classes_ui(ui, state, memory.place.address.trim());
    } else {
        memory.place.access_ui(ui, state, commands);
    }
    is_entered
}

/// The names of classes that the ground truth only numbers.
fn names_ui(ui: &mut Ui, choice: &mut NamesChoice, file: &mut String) {
    ui.label(strong("Class names"));
    let choices: Vec<_> = NamesChoice::all().map(|choice| (choice, choice.label())).collect();
    Field::new("Ground-truth class names")
        .help("For ground truth with class numbers only, such as YOLO labels without a data.yaml")
        .width(ui.available_width())
        .choice_ui(ui, choice, &choices);
    if *choice == NamesChoice::LabelFile {
        Field::new("Label file").hint("one name per line, .pbtxt, data.yaml or config.json").text_ui(ui, file);
    }
}

/// The class that a pattern finds in the names of the first images.
fn named_classes_ui(ui: &mut Ui, state: &State, pattern: &str) {
    let pattern = match NamePattern::parse(pattern) {
        Ok(pattern) => pattern,
        Err(reason) => {
            wrapped_ui(ui, RichText::new(reason).color(ui.visuals().warn_fg_color));
            return;
        }
    };
    let first = (0..NAMED_EXAMPLES).filter_map(|at| state.samples.get(state.order().at(at)?));
    for sample in first {
        let name = sample.uri.file_name();
        let class = pattern.class(name);
        let class = class.map_or_else(|| "does not match the pattern".to_owned(), |class| format!("class “{class}”"));
        truncated_ui(ui, format!("{name}: {class}"));
    }
}

/// Offers to open as ground truth what has no scores.
fn ground_truth_ui(
    ui: &mut Ui,
    state: &State,
    opening: Option<&OpeningOutputs>,
    place: &mut PlaceMemory,
    commands: &mut Commands,
) {
    let Some(OutputsFailure::GroundTruth { message }) = place.failure(opening) else {
        return;
    };
    ui.add_space(8.0);
    banner_ui(ui, Tone::Hint, message, |ui| {
        if let Some(at) = place.location(state)
            && ui.button("Open as ground truth").clicked()
        {
            commands.push(EvaluationCommand::open_truth(TruthAt::Files(at)));
        }
        if let Some(at) = place.location(state)
            && ui.button("Correct these labels").clicked()
        {
            commands.push(OutputsCommand::OpenPredictions(PredictionsFrom::labels_at(at)));
        }
    });
}

fn class_map_ui(ui: &mut Ui, open_as: OpenAs, class_map: &mut String, commands: &mut Commands) {
    ui.label(strong("Class corrections"));
    ui.horizontal(|ui| {
        let to = match open_as {
            OpenAs::Run => "one of the class names above",
            OpenAs::Truth => "a ground-truth class",
        };
        let explanation = format!(
            "Each line maps a predicted class to {to}, both by name or number, separated by a comma. Leave the \
             target empty to skip the class."
        );
        Field::new("Class corrections file")
            .help(&explanation)
            .hint("none, or a CSV file with one “from,to” per line")
            .width(width_next_to_button(ui))
            .text_ui(ui, class_map);
        ui.add(Button::new("Choose…").min_size(vec2(BUTTON_WIDTH, 0.0)))
            .on_click(commands, || Command::PickFile(FileRequest::Annotations(AnnotationsPick::ClassMap)));
    });
}
