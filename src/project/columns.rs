//! Predictions as byte columns: class ids (u32), scores (f32) and boxes (four f32 each: left, top, right, bottom), all
//! little-endian, in the order of the prediction. Floats keep every bit.

use crate::domain::{BoundingBox, ClassScore, Detection, LabelSet, Prediction, PredictionContent, RunnerUp, SampleUri};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    pub kind: Kind,
    pub classes: Vec<u8>,
    pub scores: Vec<u8>,
    /// Empty for a classifier.
    pub boxes: Vec<u8>,
    /// For each box, the number of its runners-up in one byte, then class id (u32) and score (f32) of each; `None` if no
    /// box has any.
    pub runners_up: Option<Vec<u8>>,
}

/// The kind of a stored prediction; the numbers are used in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Failure = 0,
    Classes = 1,
    Detections = 2,
}

impl Kind {
    pub(super) fn from_number(number: i64) -> Option<Self> {
        [Self::Failure, Self::Classes, Self::Detections].into_iter().find(|kind| *kind as i64 == number)
    }
}

/// What sorting, filtering and counting need of a prediction: no labels and boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The width of the upright image, in pixels.
    pub width: u32,
    pub height: u32,
    /// In the order of the stored prediction.
    pub classes: Vec<u32>,
    /// `0.0..=1.0`, one per class.
    pub scores: Vec<f32>,
    pub warnings: Vec<String>,
}

/// The stored data of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSummary {
    pub sample: SampleUri,
    /// The summary, or why there is no prediction.
    pub result: Result<Summary, String>,
}

impl Columns {
    pub(super) fn from_prediction(prediction: &Prediction) -> Self {
        let bytes = |values: &mut dyn Iterator<Item = [u8; 4]>| values.flatten().collect();
        match &prediction.content {
            PredictionContent::Classes(classes) => Self {
                kind: Kind::Classes,
                classes: bytes(&mut classes.iter().map(|class| class.index.to_le_bytes())),
                scores: bytes(&mut classes.iter().map(|class| class.score.to_le_bytes())),
                boxes: Vec::new(),
                runners_up: None,
            },
            PredictionContent::Detections(detections) => Self {
                kind: Kind::Detections,
                classes: bytes(&mut detections.iter().map(|found| found.class_id.to_le_bytes())),
                scores: bytes(&mut detections.iter().map(|found| found.score.to_le_bytes())),
                boxes: bytes(
                    &mut detections.iter().flat_map(|found| <[f32; 4]>::from(found.bounds).map(f32::to_le_bytes)),
                ),
                runners_up: detections
                    .iter()
                    .any(|found| !found.runners_up.is_empty())
                    .then(|| detections.iter().flat_map(|found| runners_up_to_bytes(&found.runners_up)).collect()),
            },
        }
    }

    /// `None` if the columns do not match: the file is damaged.
    pub(super) fn to_prediction(&self, labels: &LabelSet) -> Option<PredictionContent> {
        let (classes, scores) = (u32_column(&self.classes)?, f32_column(&self.scores)?);
        if classes.len() != scores.len() {
            return None;
        }
        let scored = classes.into_iter().zip(scores);
        match self.kind {
            Kind::Failure => None,
            Kind::Classes => {
                let class = |(index, score)| ClassScore { index, label: labels.name(index), score };
                Some(PredictionContent::Classes(scored.map(class).collect()))
            }
            Kind::Detections => {
                let edges = f32_column(&self.boxes)?;
                let (boxes, rest) = edges.as_chunks::<4>();
                if boxes.len() != scored.len() || !rest.is_empty() {
                    return None;
                }
                let mut rest = self.runners_up.as_deref();
                let detection = |((class_id, score), bounds): ((u32, f32), &[f32; 4])| {
                    let runners_up = rest.as_mut().map_or(Some(Vec::new()), take_runners_up)?;
                    let bounds = BoundingBox::from(*bounds);
                    Some(Detection { bounds, class_id, label: labels.name(class_id), score, runners_up })
                };
                let detections: Option<Vec<Detection>> = scored.zip(boxes).map(detection).collect();
                detections.filter(|_| rest.is_none_or(<[u8]>::is_empty)).map(PredictionContent::Detections)
            }
        }
    }
}

fn runners_up_to_bytes(runners_up: &[RunnerUp]) -> Vec<u8> {
    let runners_up = &runners_up[..runners_up.len().min(RunnerUp::MAX)];
    let numbers = runners_up.iter().flat_map(|other| [other.class_id.to_le_bytes(), other.score.to_le_bytes()]);
    std::iter::once(runners_up.len() as u8).chain(numbers.flatten()).collect()
}

/// Takes those of the next box; `None` if there are fewer bytes than stated.
fn take_runners_up(bytes: &mut &[u8]) -> Option<Vec<RunnerUp>> {
    let (count, rest) = bytes.split_first()?;
    let (numbers, rest) = rest.split_at_checked(usize::from(*count) * 8)?;
    *bytes = rest;
    let numbers = numbers.as_chunks::<4>().0.as_chunks::<2>().0;
    let runner_up = |[class, score]: &[[u8; 4]; 2]| RunnerUp {
        class_id: u32::from_le_bytes(*class),
        score: f32::from_le_bytes(*score),
    };
    Some(numbers.iter().map(runner_up).collect())
}

/// `None` if the length is not a multiple of the element size.
pub(super) fn u32_column(bytes: &[u8]) -> Option<Vec<u32>> {
    let (values, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| values.iter().map(|value| u32::from_le_bytes(*value)).collect())
}

/// `None` if the length is not a multiple of the element size.
pub(super) fn f32_column(bytes: &[u8]) -> Option<Vec<f32>> {
    let (values, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}
