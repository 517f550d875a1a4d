//! Converts an output of a known format to a prediction, or explains why it cannot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::json::{Json, Leaf, excerpt, numbers_in, rows_in};
use super::recognize::{OutputShape, own_predictions, response_within};
use crate::domain::{
    Background, BoundingBox, ClassScore, Detection, KeepRule, LabelSet, ModelTask, Prediction, PredictionContent,
};
use crate::model::catalog::built_in_labels;
use crate::model::{rank_classes, softmax};
use crate::sagemaker::spec::output_mapping::{
    JsonPointer, MappedBoxFormat, MappedBoxSpace, MappedBoxes, MappedClasses, MappedContent, OutputMapping, ScoreValues,
};

/// Far above any real model. More classes, boxes or pixels indicate an error.
const MAX_COUNT: usize = 1_000_000;
/// The tolerance of the range `0.0..=1.0` of scores, for rounding errors; such scores are clipped.
const SCORE_SLACK: f64 = 1e-3;

/// Reads outputs of one format. Shared by parallel readers.
pub struct OutputReader {
    shape: OutputShape,
    keep: KeepRule,
    labels: Mutex<Labels>,
    /// The number of classes in the first response of a classifier without known labels.
    class_count: OnceLock<usize>,
}

struct Labels {
    set: LabelSet,
    /// Whether the labels are only those in the outputs so far.
    are_of_outputs: bool,
}

/// The source of class names.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelSource {
    /// Labels from the user, the mapping or the model's card. Empty: classes are shown by number.
    Known(LabelSet),
    /// Labels from the outputs, which contain the name and number of each class: those of our own container.
    Outputs,
}

impl LabelSource {
    /// The labels of outputs in this shape. A mapping can name a built-in set; otherwise, its classes are numbers.
    pub fn from_shape(shape: &OutputShape) -> Self {
        match shape {
            OutputShape::Spotcheck { .. } => Self::Outputs,
            OutputShape::Mapped(mapping) => {
                Self::Known(mapping.labels.as_deref().and_then(built_in_labels).unwrap_or_default())
            }
        }
    }
}

impl OutputReader {
    pub fn new(shape: OutputShape, labels: LabelSource, keep: KeepRule) -> Self {
        let (set, are_of_outputs) = match labels {
            LabelSource::Known(set) => (set, false),
            LabelSource::Outputs => (LabelSet::default(), true),
        };
        Self { shape, keep, labels: Mutex::new(Labels { set, are_of_outputs }), class_count: OnceLock::new() }
    }

    pub fn shape(&self) -> &OutputShape {
        &self.shape
    }

    /// The known classes: more with each output, if only the outputs name them.
    pub fn labels(&self) -> LabelSet {
        self.labels.lock().set.clone()
    }

    /// The given classes; `None` if only the outputs name them.
    pub fn given_labels(&self) -> Option<LabelSet> {
        let labels = self.labels.lock();
        (!labels.are_of_outputs).then(|| labels.set.clone())
    }

    /// Restores what a run learned earlier, if only the outputs name the classes: an output that contradicts it is a
    /// problem.
    pub fn learn(&self, known: &LabelSet) {
        let mut labels = self.labels.lock();
        if labels.are_of_outputs {
            labels.set = labels.set.with_more(known);
        }
    }

    /// Reads the response for one image of `image_size` (width and height of the upright image, in pixels). Without it,
    /// only outputs that contain the size can be read ([`OutputShape::contains_size`]); with it, they must agree.
    ///
    /// # Errors
    /// Why there is no prediction: the model reported it, or the output is implausible.
    pub fn read(&self, output: &[u8], image_size: Option<[u32; 2]>) -> Result<Prediction, String> {
        self.read_json(&Json::parse(output)?, image_size)
    }

    pub fn read_json(&self, output: &Json, image_size: Option<[u32; 2]>) -> Result<Prediction, String> {
        let output = response_within(output);
        match &self.shape {
            OutputShape::Spotcheck { model, task } => {
                let prediction = self.read_own(output, model, *task)?;
                check_size(&prediction, image_size)?;
                Ok(prediction)
            }
            OutputShape::Mapped(mapping) => self.read_mapped(mapping, output, image_size),
        }
    }

    /// Reads a response for the properties that all others must share, and returns whether it could be read. With
    /// parallel reading, chance would otherwise choose the first one.
    pub fn begin_with(&self, output: &Json) -> bool {
        self.read_json(output, Some([1, 1])).is_ok()
    }

    /// Whether these labels equal those in an output of our own container.
    pub fn agrees_on_labels(&self, output: &Json) -> bool {
        let output = response_within(output);
        let agree = |list: &str, id: &str| match output.get(list) {
            Some(Json::List(entries)) => entries.iter().all(|entry| {
                let id = entry.get(id).and_then(Json::number);
                let id = id.and_then(|id| integer(id, MAX_COUNT));
                id.is_none_or(|id| self.own_label(entry, id).is_ok())
            }),
            _ => true,
        };
        agree("classes", "index") && agree("detections", "class_id")
    }

    /// The format of `spotcheck predict` and of our container.
    fn read_own(&self, output: &Json, model: &str, task: ModelTask) -> Result<Prediction, String> {
        match output.get("status").and_then(Json::text) {
            Some("ok") => {}
            Some("failed") => {
                let reason = failure_in(output).unwrap_or_default();
                return Err(format!("the model failed: {reason}"));
            }
            _ => {
                return Err(match own_predictions(output) {
                    Some(several) => wrong_count(several.len()),
                    None => "the output has no status, unlike the others".to_owned(),
                });
            }
        }
        let found = excerpt(output.get("model").and_then(Json::text).unwrap_or_default());
        if found != model {
            return Err(format!(
                "the output is from model “{found}”, the first one from “{model}”; open the outputs of each model \
                from a separate folder"
            ));
        }
        let found = output.get("task").and_then(Json::text).unwrap_or_default();
        if found != task.into_str() {
            return Err(format!("the output is a {}, unlike the others ({})", excerpt(found), task.into_str()));
        }
        let side = |key: &str| -> Result<u32, String> {
            let number = output.get(key).and_then(Json::number);
            number
                .and_then(|number| integer(number, 1 << 20))
                .filter(|side| *side > 0)
                .ok_or_else(|| format!("the output's {key} is not a number of pixels"))
        };
        let size = [side("width")?, side("height")?];
        let response = match task {
            ModelTask::Classification => {
                let classes = entries(output, "classes")?.iter().map(|entry| self.own_class(entry));
                let classes = classes.collect::<Result<Vec<ClassScore>, String>>()?;
                check_classes(classes.iter().map(|class| Some(class.index)))?;
                self.best_classes(classes)
            }
            ModelTask::Detection => {
                let boxes = entries(output, "detections")?.iter().map(|entry| self.own_box(entry, size));
                self.best_detections(boxes.collect::<Result<_, String>>()?)
            }
        };
        Ok(Prediction::new(size, response))
    }

    fn own_class(&self, entry: &Json) -> Result<ClassScore, String> {
        let index = field(entry, "index")?;
        let index = integer(index, MAX_COUNT).ok_or_else(|| no_class(index))?;
        Ok(ClassScore { index, label: self.own_label(entry, index)?, score: score(field(entry, "score")?)? })
    }

    fn own_box(&self, entry: &Json, size: [u32; 2]) -> Result<Detection, String> {
        let class_id = field(entry, "class_id")?;
        let class_id = integer(class_id, MAX_COUNT).ok_or_else(|| no_class(class_id))?;
        let mut edges = Vec::new();
        entry.get("box").ok_or("a detection has no “box”")?.add_leaves(&mut edges);
        let [edges] = rows_in(&edges)?[..] else {
            return Err("the box of a detection does not have four numbers".to_owned());
        };
        let (bounds, label) = (believable(edges, size)?, self.own_label(entry, class_id)?);
        Ok(Detection::new(bounds, class_id, label, score(field(entry, "score")?)?))
    }

    /// The output's name for a class, which must match earlier ones.
    fn own_label(&self, entry: &Json, id: u32) -> Result<String, String> {
        let label = entry.get("label").and_then(Json::text);
        let label = label.ok_or("a class has no “label”")?;
        let mut labels = self.labels.lock();
        match labels.set.get(id) {
            Some(known) if known == label => Ok(label.to_owned()),
            Some(known) => Err(format!(
                "the output names class {id} “{}”, but other outputs name it “{known}”: it is from another model or \
                 has other labels",
                excerpt(label)
            )),
            None if labels.are_of_outputs => {
                if label.len() > 1000 || labels.set.len() >= 100_000 {
                    return Err("the output has more classes than any model supports".to_owned());
                }
                labels.set = labels.set.with_more(&[(id, label.to_owned())].into_iter().collect());
                Ok(label.to_owned())
            }
            None if label == labels.set.name(id) => Ok(label.to_owned()),
            None => Err(format!("the output has a class {id}, “{}”, which is not in the labels", excerpt(label))),
        }
    }

    fn read_mapped(
        &self,
        mapping: &OutputMapping,
        output: &Json,
        image_size: Option<[u32; 2]>,
    ) -> Result<Prediction, String> {
        one_response(mapping, output)?;
        let [width, height] = image_size.ok_or("the image size is unknown, and the output does not contain it")?;
        let labels = self.labels();
        let response = match &mapping.content {
            MappedContent::Classification(classes) => self.mapped_classes(classes, output, &labels)?,
            MappedContent::Detection(boxes) => self.mapped_boxes(boxes, output, &labels, [width, height])?,
        };
        Ok(Prediction::new([width, height], response))
    }

    fn mapped_classes(
        &self,
        mapping: &MappedClasses,
        output: &Json,
        labels: &LabelSet,
    ) -> Result<PredictionContent, String> {
        let scores = mapping.scores.as_ref().map(|at| numbers(output, at)).transpose()?;
        let Some(classes) = &mapping.classes else {
            let scores = scores.ok_or("the mapping sets neither scores nor classes")?;
            if let Some(best) = &mapping.best {
                check_best(&numbers(output, best)?, &scores)?;
            }
            return self.all_classes(mapping, &scores, labels);
        };
        let ids = class_ids(output, classes, -i64::from(mapping.background), labels)?;
        let scores = match scores {
            Some(scores) => scores.into_iter().map(score).collect::<Result<_, _>>()?,
            None => vec![1.0; ids.len()],
        };
        if ids.len() != scores.len() {
            return Err(format!("the output has {} classes and {} scores", ids.len(), scores.len()));
        }
        check_classes(ids.iter().copied())?;
        let found = ids.into_iter().zip(scores).filter_map(|(id, score)| Some(class_score(id?, score, labels)));
        Ok(self.best_classes(found.collect()))
    }

    /// The best of all classes, which have one score each.
    fn all_classes(
        &self,
        mapping: &MappedClasses,
        scores: &[f64],
        labels: &LabelSet,
    ) -> Result<PredictionContent, String> {
        let count = scores.len().saturating_sub(usize::from(mapping.background));
        if count == 0 {
            return Err(NO_CLASS.to_owned());
        }
        all_finite(scores)?;
        let scores = match mapping.values {
            ScoreValues::Logits => softmax(scores),
            ScoreValues::Probabilities => {
                scores.iter().map(|value| score(*value).map(f64::from)).collect::<Result<_, _>>()?
            }
        };
        let named = labels.max_id().map_or(0, |id| id as usize + 1);
        if named > 0 && named != count {
            return Err(format!(
                "the output has scores for {count} classes{}, but the labels have {named}",
                if mapping.background { " without the background" } else { "" }
            ));
        }
        let first = *self.class_count.get_or_init(|| count);
        if named == 0 && first != count {
            return Err(format!(
                "the output has scores for {count} classes, but the first output has {first}: it is from another model"
            ));
        }
        let best = rank_classes(&scores, Background::first_if(mapping.background), self.keep.top_k);
        Ok(PredictionContent::Classes(
            best.into_iter().map(|(index, score)| class_score(index, score, labels)).collect(),
        ))
    }

    /// A stable sort: ties keep the output's order.
    fn best_classes(&self, mut classes: Vec<ClassScore>) -> PredictionContent {
        classes.sort_by(|left, right| right.score.total_cmp(&left.score));
        classes.truncate(self.keep.top_k);
        PredictionContent::Classes(classes)
    }

    /// A stable sort, as for classes.
    fn best_detections(&self, mut detections: Vec<Detection>) -> PredictionContent {
        detections.retain(|found| found.score >= self.keep.min_score);
        detections.sort_by(|left, right| right.score.total_cmp(&left.score));
        PredictionContent::Detections(detections)
    }

    fn mapped_boxes(
        &self,
        mapping: &MappedBoxes,
        output: &Json,
        labels: &LabelSet,
        size: [u32; 2],
    ) -> Result<PredictionContent, String> {
        let boxes = rows_in(&output.at(&mapping.boxes)?)?;
        let ids = class_ids(output, &mapping.classes, mapping.class_offset.into(), labels)?;
        let scores = numbers(output, &mapping.scores)?;
        let given = boxes.len();
        if ids.len() != given || scores.len() != given {
            return Err(format!("the output has {given} boxes, {} classes and {} scores", ids.len(), scores.len()));
        }
        let count = match &mapping.count {
            None => given,
            Some(at) => match numbers(output, at)?[..] {
                [count] => integer(count, given)
                    .ok_or_else(|| format!("the output has {given} boxes and counts {count}"))?
                    as usize,
                ref other => {
                    return Err(format!("the output has {} numbers of boxes instead of one", other.len()));
                }
            },
        };
        let mut found = Vec::new();
        for ((edges, id), given_score) in boxes.into_iter().zip(ids).zip(scores).take(count) {
            let score = score(given_score)?;
            let bounds = in_image(mapping, edges, size)?;
            if score < self.keep.min_score {
                continue;
            }
            let class_id = id.ok_or_else(|| {
                format!("a box has a class below {}, the mapping's class_offset", -i64::from(mapping.class_offset))
            })?;
            found.push(Detection::new(bounds, class_id, labels.name(class_id), score));
        }
        Ok(self.best_detections(found))
    }
}

const NO_CLASS: &str = "the output of a classifier contains no class";

/// A classifier gives each class exactly one score. `None` is the background.
fn check_classes(ids: impl Iterator<Item = Option<u32>>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if !seen.insert(id) {
            let class = id.map_or("the background".to_owned(), |id| format!("class {id}"));
            return Err(format!("the output contains {class} twice"));
        }
    }
    if seen.is_empty() {
        return Err(NO_CLASS.to_owned());
    }
    Ok(())
}

/// Compares the image size in an output with the actual one, if known.
fn check_size(prediction: &Prediction, image_size: Option<[u32; 2]>) -> Result<(), String> {
    let told = [prediction.width, prediction.height];
    match image_size {
        Some([width, height]) if told != [width, height] => Err(format!(
            "the response is for an image of {} x {} pixels, but this one has {width} x {height}: it belongs to \
             another image or to an earlier version of this one",
            told[0], told[1]
        )),
        _ => Ok(()),
    }
}

fn class_score(index: u32, score: f32, labels: &LabelSet) -> ClassScore {
    ClassScore { index, label: labels.name(index), score }
}

/// TensorFlow Serving returns a list with one element per input; several elements are not for one image.
fn one_response(mapping: &OutputMapping, output: &Json) -> Result<(), String> {
    let pointers: [Option<&JsonPointer>; 4] = match &mapping.content {
        MappedContent::Classification(classes) => [classes.scores.as_ref(), classes.classes.as_ref(), None, None],
        MappedContent::Detection(boxes) => [Some(&boxes.boxes), None, None, None],
    };
    let is_below = |root: &str| {
        let mut pointers = pointers.into_iter().flatten();
        pointers.any(|pointer| pointer.as_str().starts_with(root))
    };
    let lists = match output {
        _ if is_below("/predictions/0") => output.get("predictions").into_iter().collect(),
        _ if is_below("/outputs/") => match output.get("outputs") {
            Some(Json::Object(outputs)) => outputs.iter().map(|(_, output)| output).collect(),
            outputs => outputs.into_iter().collect(),
        },
        _ => Vec::new(),
    };
    let count = lists.into_iter().filter_map(Json::list_len).find(|count| *count != 1);
    match count {
        None => Ok(()),
        Some(count) => Err(wrong_count(count)),
    }
}

fn wrong_count(count: usize) -> String {
    format!("the output has {count} responses for one image")
}

/// Our own container's reason for an image that it did not predict, directly or in a list of one.
pub(super) fn failure_in(response: &Json) -> Option<String> {
    let output = response_within(response);
    let is_failed = output.get("status").and_then(Json::text) == Some("failed");
    let reason = || excerpt(output.get("error").and_then(Json::text).unwrap_or("no reason reported"));
    is_failed.then(reason)
}

fn entries<'j>(output: &'j Json, key: &str) -> Result<&'j [Json], String> {
    match output.get(key) {
        Some(Json::List(list)) if list.len() <= MAX_COUNT => Ok(list),
        Some(Json::Numbers(list)) if list.is_empty() => Ok(&[]),
        _ => Err(format!("the output has no list of {key}")),
    }
}

fn field(entry: &Json, key: &str) -> Result<f64, String> {
    let number = entry.get(key).and_then(Json::number);
    number.ok_or_else(|| format!("“{key}” of an entry is not a number"))
}

fn numbers(output: &Json, at: &JsonPointer) -> Result<Vec<f64>, String> {
    numbers_in(&output.at(at)?).map_err(|reason| format!("{reason}, at {at}"))
}

/// The ids in the labels; `None` if negative with the offset, which is the background.
fn class_ids(output: &Json, at: &JsonPointer, offset: i64, labels: &LabelSet) -> Result<Vec<Option<u32>>, String> {
    let leaves = output.at(at)?;
    let has_text = leaves.iter().any(|leaf| matches!(leaf, Leaf::Text(_)));
    let mut by_name: BTreeMap<&str, u32> = BTreeMap::new();
    if has_text {
        for (id, name) in labels.iter() {
            // Of several classes with one name, the first one is used.
            by_name.entry(name).or_insert(id);
        }
    }
    let highest = labels.max_id().map_or(MAX_COUNT, |id| id as usize);
    let numbered = |number: f64| {
        let given = integer(number, MAX_COUNT).ok_or_else(|| no_class(number))?;
        match u32::try_from(i64::from(given) + offset) {
            Err(_) => Ok(None),
            Ok(id) if id as usize <= highest => Ok(Some(id)),
            Ok(id) => Err(format!("the output names class {id}, but the labels end at {highest}")),
        }
    };
    let mut ids = Vec::new();
    for leaf in leaves {
        match leaf {
            Leaf::Text(text) => ids.push(Some(*by_name.get(text).ok_or_else(|| {
                format!(
                    "the output has a class “{}”, which is not in the labels; choose labels that contain it",
                    excerpt(text)
                )
            })?)),
            other => {
                let numbers = numbers_in(&[other]).map_err(|reason| format!("{reason}, at {at}"))?;
                for number in numbers {
                    ids.push(numbered(number)?);
                }
            }
        }
    }
    Ok(ids)
}

fn check_best(best: &[f64], scores: &[f64]) -> Result<(), String> {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let named = match *best {
        [best] => integer(best, scores.len()).and_then(|best| scores.get(best as usize)),
        _ => None,
    };
    // Two scores can be so close that 32-bit arithmetic picks the other one as best.
    match named {
        Some(score) if (highest - score).abs() <= 1e-6 * highest.abs().max(1.0) => Ok(()),
        Some(_) => Err("the best class of the output does not have the highest score".to_owned()),
        None => Err("the best class of the output is not one of its classes".to_owned()),
    }
}

fn all_finite(values: &[f64]) -> Result<(), String> {
    match values.iter().all(|value| value.is_finite()) {
        true if values.len() <= MAX_COUNT => Ok(()),
        true => Err("the output has scores for more classes than any model supports".to_owned()),
        false => Err("the output has scores that are not numbers".to_owned()),
    }
}

fn score(value: f64) -> Result<f32, String> {
    if (-SCORE_SLACK..=1.0 + SCORE_SLACK).contains(&value) {
        return Ok((value as f32).clamp(0.0, 1.0));
    }
    Err(format!("the output has a score of {value}, which is not between 0 and 1"))
}

/// An integer up to `most`.
fn integer(number: f64, most: usize) -> Option<u32> {
    let is_whole = number >= 0.0 && number <= most as f64 && number.fract() == 0.0;
    is_whole.then_some(number as u32)
}

fn no_class(number: f64) -> String {
    format!("the output has an invalid class {number}")
}

/// The box in pixels of the upright image, xyxy.
fn in_image(mapping: &MappedBoxes, edges: [f64; 4], size: [u32; 2]) -> Result<BoundingBox, String> {
    let [a, b, c, d] = edges;
    let [x1, y1, x2, y2] = match mapping.box_format {
        MappedBoxFormat::Xyxy => edges,
        MappedBoxFormat::Yxyx => [b, a, d, c],
        MappedBoxFormat::Xywh => [a, b, a + c, b + d],
        MappedBoxFormat::Cxcywh => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
    };
    let [width, height] = match mapping.box_space {
        MappedBoxSpace::Pixels => [1.0, 1.0],
        MappedBoxSpace::Normalized => size.map(f64::from),
    };
    believable([x1 * width, y1 * height, x2 * width, y2 * height], size)
}

/// A box as returned by the model. It can extend past the edges of the image, but not by more than the image itself:
/// then its units are not what they seem. One without an area counts, as for local models: models that clip boxes to
/// the image produce such.
fn believable(edges: [f64; 4], size: [u32; 2]) -> Result<BoundingBox, String> {
    let [x1, y1, x2, y2] = edges;
    if edges.iter().any(|edge| !edge.is_finite()) {
        return Err("the output has a box whose edges are not numbers".to_owned());
    }
    if x2 < x1 || y2 < y1 {
        return Err(format!("the output has a box that ends before it begins, {edges:?}"));
    }
    let [width, height] = size.map(f64::from);
    let is_near = |edge: f64, side: f64| (-side..=side * 2.0).contains(&edge);
    if !(is_near(x1, width) && is_near(x2, width) && is_near(y1, height) && is_near(y2, height)) {
        return Err(format!(
            "the output has a box far outside the image of {width} x {height} pixels, {edges:?}; check the box format"
        ));
    }
    Ok(BoundingBox::new(x1 as f32, y1 as f32, x2 as f32, y2 as f32))
}

#[cfg(test)]
mod tests;
