//! Labels of the ground truth that may be wrong.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::domain::ModelTask;

/// A box or object of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FilmBox {
    /// Index into the detections of the sample's prediction; zero for a classifier.
    Predicted(u32),
    /// Index into the objects of the sample's ground truth.
    FalseNegative(u32),
}

/// What may be wrong with a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum SuspectKind {
    /// A box of another class covers the object.
    Class,
    /// A box covers no object: its label may be missing.
    Missing,
    /// A box of the right class covers the object only roughly.
    Misplaced,
    /// No box of any class covers the object.
    Spurious,
}

impl SuspectKind {
    pub fn text(self) -> &'static str {
        match self {
            Self::Class => "wrong class",
            Self::Missing => "missing",
            Self::Misplaced => "misplaced",
            Self::Spurious => "spurious",
        }
    }
}

/// A label that may be wrong, and what its fix would gain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Suspect {
    pub kind: SuspectKind,
    /// The box that contradicts the label: an index into the stored prediction; `None` if there is none.
    pub found: Option<u32>,
    /// An index into the objects of the image; `None` for a missing label.
    pub object: Option<u32>,
    /// The increase of AP, or of top-1, if only this label is fixed.
    pub gain: f32,
    /// `FiftyOne`'s mistakenness, `0.0..=1.0`; `None` if it has none for this kind.
    pub mistakenness: Option<f32>,
    /// cleanlab's label quality, `0.0..=1.0`, worst first; `None` if it has none for this kind.
    pub quality: Option<f32>,
    /// cleanlab's normalized margin, `0.0..=1.0`, worst first; `None` for a detector.
    pub margin: Option<f32>,
    /// Whether cleanlab's confident learning finds a label issue; `None` for a detector.
    pub is_issue: Option<bool>,
    /// cleanlab's quality of all labels of the image, `0.0..=1.0`, worst first; `None` for a classifier.
    pub image_quality: Option<f32>,
}

impl Suspect {
    /// The box or object that stands for the label in the filmstrip.
    pub fn shows(&self, task: ModelTask) -> Option<FilmBox> {
        let is_of_object =
            task == ModelTask::Detection && matches!(self.kind, SuspectKind::Class | SuspectKind::Spurious);
        if is_of_object { self.object.map(FilmBox::FalseNegative) } else { self.found.map(FilmBox::Predicted) }
    }
}

/// The order of suspicious labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, VariantArray, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum SuspectOrder {
    #[default]
    Gain,
    Score,
    Mistakenness,
    #[strum(serialize = "label-quality")]
    Quality,
    ImageQuality,
    #[strum(serialize = "normalized-margin")]
    Margin,
    ConfidentLearning,
}

impl SuspectOrder {
    /// The orders that have numbers for a task.
    pub fn of_task(task: ModelTask) -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied().filter(move |order| match order {
            Self::ImageQuality => task == ModelTask::Detection,
            Self::Margin | Self::ConfidentLearning => task == ModelTask::Classification,
            Self::Gain | Self::Score | Self::Mistakenness | Self::Quality => true,
        })
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Gain => "AP gain",
            Self::Score => "Score",
            Self::Mistakenness => "Mistakenness (FiftyOne)",
            Self::Quality => "Label quality (cleanlab)",
            Self::ImageQuality => "Image quality (cleanlab)",
            Self::Margin => "Normalized margin (cleanlab)",
            Self::ConfidentLearning => "Confident learning (cleanlab)",
        }
    }

    /// The formula and its source.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Gain => {
                "The exact increase of AP (IoU 0.50 to 0.95) if only this label is fixed; for a classifier, of top-1"
            }
            Self::Score => "The score of the box that contradicts the label, as hotcoco orders its label errors",
            Self::Mistakenness => {
                "FiftyOne: with the score c, (c + 1) / 2 for a wrong class, and (c (2i - 1) + 1) / 2 with \
                 i = 2 (1 - IoU), at most 1, for a misplaced label. Missing and spurious labels have none and come last"
            }
            Self::Quality => {
                "cleanlab's ObjectLab, lowest first, with the similarity s = 0.9 IoU + 0.1 exp(-0.1 distance in \
                 pixels): 1 - s for a wrong class, s for a missing or misplaced label. Spurious labels have none and \
                 come last. For a classifier: self-confidence, the score of the label's class"
            }
            Self::ImageQuality => {
                "cleanlab's ObjectLab, lowest first: all suspicious labels of the image with the worst labels, then \
                 those of the next. Geometric mean of the softmin (temperature 0.1) of the label qualities for swapped \
                 classes, bad locations and overlooked objects"
            }
            Self::Margin => {
                "cleanlab, lowest first: (p - q + 1) / 2 with the score p of the label's class and the highest score q \
                 of another class"
            }
            Self::ConfidentLearning => {
                "cleanlab: the label issues of confident learning, lowest self-confidence first, then all other labels. \
                 An issue has a class whose score reaches the mean score of that class over the images with its label, \
                 and this class is not the label"
            }
        }
    }

    /// What people see of a label in this order, unless it is the gain.
    pub fn number_text(self, suspect: &Suspect, score: Option<f32>) -> Option<String> {
        let decimals = |number: Option<f32>| number.map(|number| format!("{number:.3}"));
        match self {
            Self::Gain => None,
            Self::Score => score.map(|score| format!("{:.1}%", score * 100.0)),
            Self::Mistakenness => decimals(suspect.mistakenness),
            Self::ImageQuality => decimals(suspect.image_quality),
            Self::Margin => decimals(suspect.margin),
            Self::ConfidentLearning if suspect.is_issue? => Some(format!("issue {:.3}", suspect.quality?)),
            Self::Quality | Self::ConfidentLearning => decimals(suspect.quality),
        }
    }

    /// The most suspicious has the highest rank; `None` comes last.
    pub fn rank(self, suspect: &Suspect, score: Option<f32>) -> Option<f32> {
        match self {
            Self::Gain => Some(suspect.gain),
            Self::Score => score,
            Self::Mistakenness => suspect.mistakenness,
            Self::Quality => suspect.quality.map(|quality| -quality),
            Self::ImageQuality => suspect.image_quality.map(|quality| -quality),
            Self::Margin => suspect.margin.map(|margin| -margin),
            // Self-confidence is at most 1.
            Self::ConfidentLearning => Some(if suspect.is_issue? { 2.0 } else { 0.0 } - suspect.quality?),
        }
    }
}
