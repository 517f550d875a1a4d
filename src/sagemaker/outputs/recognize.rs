//! Detects the format of outputs from one of them, with the necessary assumptions.

use super::json::{Json, excerpt, numbers_in};
use crate::domain::ModelTask;
use crate::sagemaker::spec::output_mapping::{
    JsonPointer, MappedBoxFormat, MappedBoxSpace, MappedBoxes, MappedClasses, MappedContent, OutputMapping, ScoreValues,
};

/// The key of a response that SageMaker joins with its input.
pub(super) const JOINED: &str = "SageMakerOutput";

/// The tolerance for the sum of probabilities: 8-bit models round to 1/255.
pub(super) const SUM_SLACK: f64 = 0.05;

#[derive(Debug, Clone, PartialEq)]
pub enum OutputShape {
    /// The format of our own container, which is that of `spotcheck predict`.
    Spotcheck {
        model: String,
        task: ModelTask,
    },
    Mapped(Box<OutputMapping>),
}

/// The detected format of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognition {
    pub shape: OutputShape,
    /// Assumptions about values that the output does not contain.
    pub assumed: Vec<String>,
}

/// Why the format of an output was not detected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unrecognized {
    /// The output cannot be read, or is an error message. Other outputs may be fine.
    #[error("{0}")]
    Broken(String),
    /// The output is JSON in an unknown format, which a mapping can describe.
    #[error("the output format is unknown; add a mapping for scores, boxes and classes. For example: {0}")]
    Unknown(String),
}

/// The number of ImageNet classes, without a background.
const IMAGENET: usize = 1000;

impl OutputShape {
    pub fn name(&self) -> &str {
        match self {
            Self::Spotcheck { .. } => "Spotcheck's JSON",
            Self::Mapped(mapping) => &mapping.name,
        }
    }

    pub fn task(&self) -> ModelTask {
        match self {
            Self::Spotcheck { task, .. } => *task,
            Self::Mapped(mapping) => mapping.task(),
        }
    }

    /// Whether outputs contain the image size, so that the image need not be read.
    pub fn contains_size(&self) -> bool {
        matches!(self, Self::Spotcheck { .. })
    }

    /// A one-line description of the format.
    pub fn description(&self) -> String {
        match self {
            Self::Spotcheck { model, task } => {
                format!("Spotcheck's JSON, the {} of {model}", task.into_str())
            }
            Self::Mapped(mapping) => format!("{} ({})", mapping.name, mapping.description()),
        }
    }
}

impl Unrecognized {
    /// Quotes the beginning of the JSON.
    pub fn unknown(output: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&output[..output.len().min(400)]);
        Self::Unknown(excerpt(&text))
    }
}

/// A mapping makes detection unnecessary.
impl From<OutputMapping> for Recognition {
    fn from(mapping: OutputMapping) -> Self {
        Self { shape: OutputShape::Mapped(Box::new(mapping)), assumed: Vec::new() }
    }
}

impl Recognition {
    /// Detects the format of an output.
    ///
    /// # Errors
    /// It cannot be read, or has no known format.
    pub fn from_output(output: &[u8]) -> Result<Self, Unrecognized> {
        let json = Json::parse(output).map_err(Unrecognized::Broken)?;
        Self::from_json(&json, output)
    }

    pub fn from_json(json: &Json, output: &[u8]) -> Result<Self, Unrecognized> {
        let inner = response_within(json);
        // The reader checks their number.
        let first = own_predictions(inner).and_then(<[Json]>::first);
        let first = first.unwrap_or(inner);
        if let Some(status) = first.get("status") {
            return own(first, status);
        }
        if let Some(error) = inner.get("error")
            && let Json::Object(fields) = inner
            && fields.len() == 1
        {
            let reason = error.text().map_or("no reason reported".to_owned(), excerpt);
            return Err(Unrecognized::Broken(format!("the model failed: {reason}")));
        }
        let found = match inner {
            Json::Object(_) => recognize_serving(inner),
            _ => recognize_list(inner, ""),
        };
        found.ok_or_else(|| Unrecognized::unknown(output))
    }
}

/// The response for one image: next to its input if SageMaker joined both (`JoinSource: Input`), or inside the list
/// that our own container returns for `instances`.
pub(super) fn response_within(output: &Json) -> &Json {
    let output = output.get(JOINED).unwrap_or(output);
    match own_predictions(output) {
        Some([only]) => only,
        _ => output,
    }
}

/// The format of our own container, which is that of `spotcheck predict`.
pub(super) fn own_predictions(output: &Json) -> Option<&[Json]> {
    match output.get("predictions")? {
        Json::List(list) if list.iter().all(|each| each.get("status").is_some()) => Some(list),
        _ => None,
    }
}

fn own(output: &Json, status: &Json) -> Result<Recognition, Unrecognized> {
    let text = |key: &str| output.get(key).and_then(Json::text).unwrap_or_default();
    if status.text() == Some("failed") {
        let reason = excerpt(text("error"));
        return Err(Unrecognized::Broken(format!("the model failed: {reason}")));
    }
    let tasks = [ModelTask::Classification, ModelTask::Detection];
    let task = tasks.into_iter().find(|task| task.into_str() == text("task"));
    let task = task.ok_or_else(|| {
        Unrecognized::Broken(format!(
            "the output has the task “{}”, which this version does not support",
            excerpt(text("task"))
        ))
    })?;
    Ok(Recognition { shape: OutputShape::Spotcheck { model: excerpt(text("model")), task }, assumed: Vec::new() })
}

/// TensorFlow Serving returns `{"predictions": [one per input]}`, or `{"outputs": {"name": [one per input]}}`.
fn recognize_serving(output: &Json) -> Option<Recognition> {
    if let Some(predictions) = output.get("predictions") {
        let first = first_of(predictions)?;
        return match first {
            Json::Object(_) => recognize_named(|key| first.get(key), |key| format!("/predictions/0/{key}"))
                .or_else(|| recognize_only_list(first, "/predictions/0")),
            list => recognize_list(list, "/predictions/0"),
        };
    }
    let outputs = output.get("outputs")?;
    if let Json::Object(_) = outputs {
        let inner = |key: &str| match outputs.get(key)? {
            // A list with one number per input, such as the number of boxes.
            numbers @ Json::Numbers(list) => (!list.is_empty()).then_some(numbers),
            list => first_of(list),
        };
        return recognize_named(inner, |key| format!("/outputs/{key}/0"));
    }
    recognize_list(first_of(outputs)?, "/outputs/0")
}

/// The first element of a list that is not a number.
fn first_of(list: &Json) -> Option<&Json> {
    match list {
        Json::List(list) => list.first(),
        _ => None,
    }
}

/// Named outputs of TensorFlow Object Detection, or of a classifier such as TensorFlow's.
fn recognize_named<'j>(get: impl Fn(&str) -> Option<&'j Json>, path: impl Fn(&str) -> String) -> Option<Recognition> {
    let at = |key: &str| get(key).and(JsonPointer::parse(&path(key)).ok());
    if let (Some(boxes), Some(classes), Some(scores)) =
        (at("detection_boxes"), at("detection_classes"), at("detection_scores"))
    {
        let mapping = OutputMapping {
            id: "tf-object-detection".to_owned(),
            name: "TensorFlow Object Detection".to_owned(),
            labels: None,
            content: MappedContent::Detection(MappedBoxes {
                boxes,
                classes,
                scores,
                count: at("num_detections"),
                box_format: MappedBoxFormat::Yxyx,
                box_space: MappedBoxSpace::Normalized,
                class_offset: 0,
            }),
        };
        return Some(Recognition {
            assumed: vec![
                "boxes are top, left, bottom, right as fractions of the image, as in TensorFlow Object \
                Detection"
                    .to_owned(),
                "the container rotated images according to EXIF".to_owned(),
            ],
            ..mapping.into()
        });
    }
    let mut scores = Vec::new();
    get("probabilities")?.add_leaves(&mut scores);
    let kind = ScoreKind::Probabilities { best: at("classes") };
    classifier(&numbers_in(&scores).ok()?, &path("probabilities"), kind)
}

/// An object in which only one list of numbers could be scores.
fn recognize_only_list(output: &Json, path: &str) -> Option<Recognition> {
    let Json::Object(fields) = output else {
        return None;
    };
    let mut lists = fields.iter().filter(|(_, value)| matches!(value, Json::Numbers(_)));
    let (name, Json::Numbers(scores)) = lists.next()? else {
        return None;
    };
    if lists.next().is_some() {
        return None;
    }
    let key = name.replace('~', "~0").replace('/', "~1");
    let mut recognized = classifier(scores, &format!("{path}/{key}"), ScoreKind::Unnamed)?;
    recognized.assumed.push(format!("“{}” contains the class scores", excerpt(name)));
    Some(recognized)
}

/// A list of scores, or of one list of scores.
fn recognize_list(list: &Json, path: &str) -> Option<Recognition> {
    match list {
        Json::Numbers(scores) => classifier(scores, path, ScoreKind::Unnamed),
        Json::List(lists) => match &**lists {
            [Json::Numbers(scores)] => classifier(scores, &format!("{path}/0"), ScoreKind::Unnamed),
            _ => None,
        },
        _ => None,
    }
}

/// What is known about the scores of a classifier.
enum ScoreKind {
    Unnamed,
    /// Their name indicates probabilities. `best` is the pointer to the best class, if the output contains it.
    Probabilities {
        best: Option<JsonPointer>,
    },
}

/// A classifier's output of one number per class.
fn classifier(scores: &[f64], path: &str, kind: ScoreKind) -> Option<Recognition> {
    if scores.len() < 2 {
        return None;
    }
    let sum: f64 = scores.iter().sum();
    let sum_to_one = scores.iter().all(|score| (0.0..=1.0).contains(score)) && (sum - 1.0).abs() <= SUM_SLACK;
    let mut assumed = Vec::new();
    if sum_to_one {
        assumed.push("the numbers are probabilities: in the first output they sum to 1".to_owned());
    }
    let (id, name, values, best) = match kind {
        ScoreKind::Probabilities { best } => {
            ("tf-serving-classifier", "TensorFlow Serving classifier", ScoreValues::Probabilities, best)
        }
        ScoreKind::Unnamed if sum_to_one => ("score-list", "List of scores", ScoreValues::Probabilities, None),
        ScoreKind::Unnamed => {
            let softmax = "the numbers are logits, so Spotcheck applies the softmax: in the first output they do not \
                sum to 1";
            assumed.push(softmax.to_owned());
            ("score-list", "List of scores", ScoreValues::Logits, None)
        }
    };
    let background = scores.len() == IMAGENET + 1;
    if background {
        assumed.push("class 0 of 1001 is the background".to_owned());
    }
    let labels = (background || scores.len() == IMAGENET).then(|| {
        assumed.push("1000 classes: ImageNet in the standard order".to_owned());
        "imagenet".to_owned()
    });
    let scores = Some(JsonPointer::parse(path).ok()?);
    let classes = MappedClasses { scores, classes: None, values, background, best };
    let content = MappedContent::Classification(classes);
    let mapping = OutputMapping { id: id.to_owned(), name: name.to_owned(), labels, content };
    Some(Recognition { assumed, ..mapping.into() })
}
