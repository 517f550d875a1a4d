//! What goes wrong together: groups of images in which a kind of error is more frequent than by chance.
//!
//! The unit is the image, because the boxes of an image are not independent. For a kind of error, the images in which it
//! could occur are the population, and those in which it occurs are the successes. If the errors had nothing to do with a
//! group, the number of successes in it would follow the hypergeometric distribution; the p-value is the probability of
//! at least as many. All tests together are corrected by Benjamini and Hochberg (see `chance`): among the
//! patterns with a q-value up to 0.05, about 5% are false on average.
//!
//! The groups must not be chosen by looking at the errors.

use serde::Serialize;
use strum::IntoStaticStr;

use super::objects::CORRECT_IOU;
use crate::domain::{Encoder, SampleId, counted, score_text};

/// A pattern is shown up to this q-value.
pub const SHOWN_Q: f64 = 0.05;

/// A kind of error. Classes are indices into those of the evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// A false positive or a false negative.
    Any,
    /// Of a class, or of any.
    FalsePositive(Option<u32>),
    /// Of a class, or of any.
    FalseNegative(Option<u32>),
    /// An object of one class is predicted as another.
    Confused { truth: u32, predicted: u32 },
}

/// What the images of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str)]
pub enum Attribute {
    /// The class of an object in the ground truth.
    #[strum(serialize = "Contains")]
    Class,
    /// The folder, with those inside.
    Folder,
    Camera,
    #[strum(serialize = "Time of day")]
    TimeOfDay,
    /// The size of an object in the ground truth.
    #[strum(serialize = "Object size")]
    ObjectSize,
    #[strum(serialize = "Image size")]
    ImageSize,
    #[strum(serialize = "Aspect ratio")]
    AspectRatio,
    /// Similar embeddings.
    #[strum(serialize = "Looks like")]
    Likeness,
}

/// Images with something in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageGroup {
    pub attribute: Attribute,
    pub value: String,
    /// Indices into the evaluated images, ascending.
    pub images: Vec<u32>,
}

/// A kind of error that is more frequent in a group of images than by chance.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorPattern {
    pub kind: ErrorKind,
    pub attribute: Attribute,
    pub value: String,
    /// The images of the group in which the error occurs: indices into the evaluated images.
    pub with_error: Vec<u32>,
    /// The images of the group in which it could occur.
    pub images: usize,
    /// The number of images with the error that chance explains.
    pub expected: f64,
    pub p: f64,
    pub q: f64,
}

/// The patterns with a q-value up to [`SHOWN_Q`], lowest p-value first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundPatterns {
    pub patterns: Vec<ErrorPattern>,
    /// The number of tests that the q-values account for.
    pub tests: usize,
    /// The number of images with both sides.
    pub images: usize,
}

/// Patterns with everything that explains them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorPatterns {
    pub found: FoundPatterns,
    /// The names of the classes, as in the ground truth.
    pub classes: Vec<String>,
    /// The names of the evaluated images, and their places in the listing.
    pub images: Vec<(String, Option<SampleId>)>,
    /// The run without these errors; `None` for all errors.
    pub than: Option<String>,
    /// The minimum score; `None` if it differs between classes.
    pub min_score: Option<f64>,
    /// What the images are compared by for [`Attribute::Likeness`]; `None` without embeddings.
    pub likeness: Option<Likeness>,
    /// Images whose EXIF data is not known.
    pub unread_captures: usize,
}

/// What images are compared by.
#[derive(Debug, Clone, PartialEq)]
pub struct Likeness {
    pub encoder: Encoder,
    pub metric: &'static str,
}

/// A pattern as it is exported.
#[derive(Debug, Serialize)]
pub struct PatternLine<'p> {
    pub error: &'static str,
    /// The class of the object.
    pub truth: Option<&'p str>,
    pub predicted: Option<&'p str>,
    pub attribute: Attribute,
    pub value: &'p str,
    /// The images of the group in which the error can occur.
    pub images: usize,
    pub images_with_error: usize,
    pub expected: f64,
    pub p: f64,
    pub q: f64,
    /// The run without these errors.
    pub compared_with: Option<&'p str>,
    pub min_score: Option<f64>,
    pub iou: f64,
    pub encoder: Option<&'p str>,
    pub layer: Option<&'p str>,
    pub metric: Option<&'static str>,
    /// The names of the images with the error.
    pub names: Vec<&'p str>,
}

impl ErrorPatterns {
    pub fn lines(&self) -> impl Iterator<Item = PatternLine<'_>> {
        self.found.patterns.iter().map(|pattern| {
            let [truth, predicted] = pattern.kind.classes();
            let name = |class: Option<u32>| class.map(|class| self.class_name(class));
            let likeness = self.likeness.as_ref().filter(|_| pattern.attribute == Attribute::Likeness);
            PatternLine {
                error: pattern.kind.word(),
                truth: name(truth),
                predicted: name(predicted),
                attribute: pattern.attribute,
                value: &pattern.value,
                images: pattern.images,
                images_with_error: pattern.with_error.len(),
                expected: pattern.expected,
                p: pattern.p,
                q: pattern.q,
                compared_with: self.than.as_deref(),
                min_score: self.min_score,
                iou: CORRECT_IOU,
                encoder: likeness.map(|likeness| likeness.encoder.model_id.as_str()),
                layer: likeness.map(|likeness| likeness.encoder.tensor.as_str()),
                metric: likeness.map(|likeness| likeness.metric),
                names: pattern.with_error.iter().map(|at| self.images[*at as usize].0.as_str()).collect(),
            }
        })
    }

    /// “cat predicted as dog”
    pub fn error_text(&self, kind: ErrorKind) -> String {
        let name = |class: u32| self.class_name(class);
        match kind {
            ErrorKind::Any => "Any error".to_owned(),
            ErrorKind::FalsePositive(None) => "Any false positive".to_owned(),
            ErrorKind::FalseNegative(None) => "Any false negative".to_owned(),
            ErrorKind::FalsePositive(Some(class)) => format!("False positive {}", name(class)),
            ErrorKind::FalseNegative(Some(class)) => format!("False negative {}", name(class)),
            ErrorKind::Confused { truth, predicted } => format!("{} predicted as {}", name(truth), name(predicted)),
        }
    }

    fn class_name(&self, class: u32) -> &str {
        self.classes.get(class as usize).map_or("", String::as_str)
    }

    /// How the numbers were computed: a whole sentence.
    pub fn method_text(&self) -> String {
        let score = self.min_score.map_or_else(|| "per class".to_owned(), |score| format!("≥ {}", score_text(score)));
        let likeness = self.likeness.as_ref().map_or_else(String::new, |likeness| {
            format!("; similar images: {}, {}", likeness.metric, likeness.encoder)
        });
        format!(
            "{} tested by the hypergeometric test, q-values by Benjamini and Hochberg; shown: q ≤ {SHOWN_Q}; minimum \
             score {score}, IoU {CORRECT_IOU:.2}{likeness}",
            counted(self.found.tests, "combination", "combinations")
        )
    }
}

impl ErrorKind {
    fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::FalsePositive(_) => "false_positive",
            Self::FalseNegative(_) => "false_negative",
            Self::Confused { .. } => "confusion",
        }
    }

    /// The class of the object, and of the prediction.
    pub(super) fn classes(self) -> [Option<u32>; 2] {
        match self {
            Self::Any => [None; 2],
            Self::FalsePositive(class) => [None, class],
            Self::FalseNegative(class) => [class, None],
            Self::Confused { truth, predicted } => [Some(truth), Some(predicted)],
        }
    }
}
