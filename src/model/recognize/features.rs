//! Rows of numbers that are not class scores: embeddings and regressions. They have the shape of a classifier's output,
//! so names, counts and values must tell them apart.

use super::finding::Refusal;
use super::noted::{Noted, Purpose};
use super::signature::Port;
use super::{Overrules, RecognitionRequest};

/// Parts of output names that indicate features.
const FEATURE_NAMES: [&str; 6] = ["embed", "feature", "hidden_state", "pooler", "pooled", "latent"];
/// Words in output names that indicate quantities.
const QUANTITY_NAMES: [&str; 14] = [
    "age",
    "angle",
    "angles",
    "bbox",
    "bboxes",
    "box",
    "boxes",
    "coordinates",
    "coords",
    "depth",
    "keypoints",
    "landmarks",
    "pose",
    "regression",
];
/// How far the length of a unit vector may be from 1.
const UNIT_TOLERANCE: f64 = 1e-3;
/// The minimum length of an embedding.
const MIN_FEATURES: usize = 64;
/// Embeddings of at least this length are a multiple of [`MIN_FEATURES`] long.
const MIN_TYPICAL_FEATURES: usize = 128;
/// Key points of a face or a body have at least this many coordinates.
const MIN_COORDINATES: usize = 10;
/// The highest mean of the scores of independent classes on the test images, which show none of them.
const MAX_MEAN_SCORE: f64 = 0.3;
/// Logits beyond this would make every prediction certain to all digits.
const MAX_LOGIT: f64 = 100.0;

/// What a row of numbers is, if not class scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Features {
    purpose: Purpose,
    /// A clause to follow “because”.
    because: String,
}

impl Features {
    fn new(purpose: Purpose, because: impl Into<String>) -> Self {
        Self { purpose, because: because.into() }
    }

    /// Based on the name of the output.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let mut words = name.split(|character: char| !character.is_alphanumeric());
        if FEATURE_NAMES.iter().any(|part| name.contains(part)) {
            Some(Self::new(Purpose::Embedding, "its name suggests it"))
        } else if words.any(|word| QUANTITY_NAMES.contains(&word)) {
            Some(Self::new(Purpose::Regression, "its name suggests it"))
        } else {
            None
        }
    }

    /// Based on the results for the test images: rows of at least two numbers, without a softmax.
    pub(super) fn by_values(rows: &[Vec<f64>]) -> Option<Self> {
        use Purpose::{Embedding, Regression};
        let count = rows.first()?.len();
        let values = || rows.iter().flatten().copied();
        let (min, max) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let mean = values().sum::<f64>() / values().count() as f64;
        let is_unit =
            |row: &Vec<f64>| (row.iter().map(|value| value * value).sum::<f64>().sqrt() - 1.0).abs() <= UNIT_TOLERANCE;
        if count >= MIN_FEATURES && rows.iter().all(is_unit) {
            Some(Self::new(Embedding, "it is a vector of length 1 for each test image"))
        } else if min.abs().max(max.abs()) > MAX_LOGIT {
            let because =
                format!("its numbers go from {min:.1} to {max:.1}: neither probabilities nor plausible logits");
            Some(Self::new(Regression, because))
        } else if count >= MIN_FEATURES && min >= 0.0 && max > 1.0 {
            let because = format!("none of its {count} numbers is negative and they do not sum to 1");
            Some(Self::new(Embedding, because))
        } else if count >= MIN_TYPICAL_FEATURES && count.is_multiple_of(MIN_FEATURES) && (min <= 0.0 || max > 1.0) {
            let because = format!("embeddings often have {count} numbers, and no file names that many classes");
            Some(Self::new(Embedding, because))
        } else if count >= MIN_COORDINATES && min >= 0.0 && max <= 1.0 && mean > MAX_MEAN_SCORE {
            let because = format!("most of its {count} numbers are too high for scores of independent classes");
            Some(Self::new(Regression, because))
        } else if count == 4 && min >= 0.0 && max <= 1.0 {
            let because = "its four numbers from 0 to 1, which do not sum to 1, could be a box";
            Some(Self::new(Regression, because))
        } else {
            None
        }
    }

    /// The message for a graph whose only row of numbers is this one.
    pub(super) fn refusal(&self, port: &Port) -> Refusal {
        let Self { purpose, because } = self;
        Refusal::new(format!(
            "the output {port} looks like {}, because {because}. Spotcheck shows classes and boxes. If it contains \
             class scores, add the label file or set output.classification.values",
            what(*purpose)
        ))
    }
}

/// Refuses a model whose `config.json` states that it returns neither classes nor boxes.
pub(super) fn check_purpose(model: &RecognitionRequest<'_>) -> Result<(), Refusal> {
    match &model.notes.purpose {
        Some(Noted { value: purpose @ (Purpose::Embedding | Purpose::Regression), because })
            if !are_set(model.overrules) && model.labels.is_none() =>
        {
            Err(Refusal::new(format!(
                "the model returns {}, because {because}. Spotcheck shows classes and boxes. If this file belongs to \
                 another model, move the ONNX file to a separate folder",
                what(*purpose)
            )))
        }
        _ => Ok(()),
    }
}

/// Whether the user set an output of class scores.
pub(super) fn are_set(overrules: &Overrules) -> bool {
    ["name", "values"].iter().any(|field| overrules.text(&format!("output.classification.{field}")).is_some())
}

fn what(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Classification => "class scores",
        Purpose::Embedding => "an embedding",
        Purpose::Regression => "a regression",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embeddings_and_regressions_are_not_class_scores() {
        use Purpose::{Embedding, Regression};
        let wave = |count: usize, scale: f64| (0..count).map(|at| (at as f64).sin() * scale).collect::<Vec<f64>>();
        let unit = |row: Vec<f64>| {
            let length = row.iter().map(|value| value * value).sum::<f64>().sqrt();
            row.into_iter().map(|value| value / length).collect::<Vec<f64>>()
        };
        let positive = |row: Vec<f64>| row.into_iter().map(f64::abs).collect::<Vec<f64>>();
        for (row, expected) in [
            (vec![0.2, 0.3, 0.5], None),
            (wave(10, 8.0), None),
            (wave(100, 8.0), None),
            (wave(365, 20.0), None),
            (positive(wave(80, 0.2)), None),
            (positive(wave(80, 0.9)), Some(Regression)),
            (unit(wave(100, 1.0)), Some(Embedding)),
            (wave(512, 3.0), Some(Embedding)),
            (positive(wave(440, 3.0)), Some(Embedding)),
            (vec![31.0, 40.0, 120.0, 180.5], Some(Regression)),
            (vec![0.1, 0.2, 0.6, 0.7], Some(Regression)),
        ] {
            let found = Features::by_values(std::slice::from_ref(&row)).map(|features| features.purpose);
            assert_eq!(found, expected, "{} numbers from {}", row.len(), row[0]);
        }
    }

    #[test]
    fn output_names_distinguish_features_from_scores() {
        use Purpose::{Embedding, Regression};
        for (name, expected) in [
            ("image_embeds", Some(Embedding)),
            ("last_hidden_state", Some(Embedding)),
            ("pooler_output", Some(Embedding)),
            ("bbox_pred", Some(Regression)),
            ("logits", None),
            ("image_scores", None),
            ("output", None),
        ] {
            assert_eq!(Features::by_name(name).map(|features| features.purpose), expected, "{name}");
        }
    }
}
