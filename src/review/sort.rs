//! The orders that samples can be sorted by.

use super::candidate::Candidate;
use crate::alike::Measure;

use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A sort order. Samples of equal rank stay in listing order, and those without a rank (no prediction, no date) come
/// last in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sort {
    pub by: SortBy,
    pub direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str)]
pub enum SortBy {
    #[default]
    #[strum(serialize = "Folder order")]
    Listing,
    /// The whole name, with numbers in it compared by value.
    Name,
    #[strum(serialize = "File date")]
    Date,
    #[strum(serialize = "Date taken")]
    Taken,
    /// The make and model in the EXIF data.
    Camera,
    /// The distance to the location that the search names with `near`.
    Distance,
    #[strum(serialize = "File size")]
    Size,
    /// The highest score of visible classes, whatever the threshold.
    #[strum(serialize = "Top score")]
    TopScore,
    /// For a classifier, how close the two highest scores are; for a detector, how close a box is to its threshold.
    Uncertainty,
    /// The number of visible boxes.
    #[strum(serialize = "Number of boxes")]
    Boxes,
    /// The worst verdict of the image and its boxes; unjudged images come last.
    Verdict,
    /// The disagreement of two compared runs.
    Disagreement,
    /// The similarity to one image.
    Similarity,
    /// Groups of duplicates next to each other.
    Duplicates,
    /// The distance to the nearest neighbors, by embedding.
    Uniqueness,
    /// The outlier score, by embedding.
    #[strum(serialize = "Outlier score")]
    Outlier,
    /// How near it is to the center of its cluster, by embedding.
    Representativeness,
    /// False positives and missed objects, with ground truth.
    #[strum(serialize = "Errors")]
    Errors,
    /// The highest score of a false positive.
    #[strum(serialize = "Most confident error")]
    ConfidentError,
    /// Objects without a correct box.
    #[strum(serialize = "Missed objects")]
    Missed,
    /// Additional errors compared with the other run.
    #[strum(serialize = "Change in errors")]
    ErrorChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    #[default]
    Ascending,
    Descending,
}

impl SortBy {
    pub fn tooltip(self) -> &'static str {
        match self {
            Self::Listing => "In folder order, one subfolder after another",
            Self::Name => "By name, with numbers by value",
            Self::Date => "By modification time",
            Self::Taken => "By the date in the EXIF data, which is read first; images without a date come last",
            Self::Camera => "By the camera in the EXIF data, which is read first; images without a camera come last",
            Self::Distance => {
                "By the distance to the location of near: in the search; images without a location come last"
            }
            Self::Size => "By file size",
            Self::TopScore => "By the best score of the visible classes, regardless of the threshold",
            Self::Uncertainty => {
                "Classifier: margin between the first two scores. Detector: distance of the nearest box from its \
                threshold"
            }
            Self::Boxes => "By the number of visible boxes",
            Self::Verdict => "By the worst verdict on the image or its boxes; unjudged images come last",
            Self::Disagreement => "By the disagreement of the two compared runs",
            Self::Similarity => "By the similarity to the image that “Find similar images” started from",
            Self::Duplicates => "Groups of duplicates next to each other; other images come last",
            Self::Uniqueness => {
                "By the distance to the three nearest embeddings, as in FiftyOne: 1 for the most unique image"
            }
            Self::Outlier => {
                "By the distance to the ten nearest embeddings, as in cleanlab: near 0 for outliers, 1 for typical images"
            }
            Self::Representativeness => {
                "By the distance to the center of one of 20 clusters of embeddings, after FiftyOne: 1 at the center"
            }
            Self::Errors => "By the number of visible false positives and false negatives; needs ground truth",
            Self::ConfidentError => "By the highest score of a false positive; needs ground truth",
            Self::ErrorChange => "By how many more errors the run on screen makes than the other run",
            Self::Missed => "By the number of false negatives; needs ground truth",
        }
    }

    pub fn default_direction(self) -> Direction {
        match self {
            Self::Listing
            | Self::Name
            | Self::Verdict
            | Self::Camera
            | Self::Distance
            | Self::Duplicates
            | Self::Outlier => Direction::Ascending,
            _ => Direction::Descending,
        }
    }

    /// A direction in words: “newest first”, “A to Z”.
    pub fn direction_label(self, direction: Direction) -> &'static str {
        let (ascending, descending) = match self {
            Self::Listing | Self::Duplicates => ("first to last", "last to first"),
            Self::Name | Self::Camera => ("A to Z", "Z to A"),
            Self::Distance => ("nearest first", "farthest first"),
            Self::Date | Self::Taken => ("oldest first", "newest first"),
            Self::Size => ("smallest first", "largest first"),
            Self::TopScore | Self::ConfidentError | Self::Outlier => ("lowest first", "highest first"),
            Self::Uncertainty => ("most certain first", "least certain first"),
            Self::Boxes | Self::Errors | Self::Missed => ("fewest first", "most first"),
            Self::Verdict => ("accepted first", "rejected first"),
            Self::Disagreement | Self::Similarity | Self::Uniqueness | Self::Representativeness => {
                ("least first", "most first")
            }
            Self::ErrorChange => ("better first", "worse first"),
        };
        match direction {
            Direction::Ascending => ascending,
            Direction::Descending => descending,
        }
    }

    /// What is computed from the embeddings of all images for it.
    pub fn measure(self) -> Option<Measure> {
        match self {
            Self::Uniqueness => Some(Measure::Uniqueness),
            Self::Outlier => Some(Measure::Outlier),
            Self::Representativeness => Some(Measure::Representativeness),
            _ => None,
        }
    }

    pub fn needs_predictions(self) -> bool {
        matches!(self, Self::TopScore | Self::Uncertainty | Self::Boxes | Self::Disagreement)
            || self.needs_truth()
            || self.measure().is_some()
    }

    pub fn needs_captures(self) -> bool {
        matches!(self, Self::Taken | Self::Camera | Self::Distance)
    }

    pub fn needs_truth(self) -> bool {
        matches!(self, Self::Errors | Self::ConfidentError | Self::Missed | Self::ErrorChange)
    }

    /// The rank in ascending order; `None` if the sample has none. Names and cameras are ranked by [`super::Arranger`].
    pub fn rank(self, candidate: &Candidate<'_>) -> Option<u64> {
        let (id, sample) = (candidate.id, candidate.sample);
        let facts = candidate.facts();
        match self {
            Self::Listing | Self::Name | Self::Camera => Some(u64::from(id.0)),
            Self::Distance => float_rank(candidate.distance_km?),
            Self::Date => Some(from_signed(sample.modified_ns?)),
            Self::Taken => Some(from_clock(candidate.capture()?.taken?)),
            Self::Size => Some(sample.size_bytes),
            Self::TopScore => float_rank(facts?.best?),
            Self::Uncertainty => float_rank(-facts?.margin?),
            Self::Boxes => Some(u64::from(facts?.boxes)),
            Self::Verdict => Some(candidate.verdict? as u64),
            Self::Disagreement => float_rank(candidate.disagreement?),
            Self::Similarity => float_rank(candidate.similarity?),
            Self::Duplicates => Some(candidate.duplicate?.group.into()),
            Self::Uniqueness | Self::Outlier | Self::Representativeness => {
                float_rank(candidate.measure(self.measure()?)?)
            }
            Self::Errors => {
                candidate.outcome_facts().map(|facts| u64::from(facts.wrong) + u64::from(facts.false_negatives))
            }
            Self::ConfidentError => float_rank(candidate.outcome_facts()?.worst?),
            Self::ErrorChange => Some(from_signed(-candidate.gain()?)),
            Self::Missed => candidate.outcome_facts().map(|facts| facts.false_negatives.into()),
        }
    }
}

impl Direction {
    pub fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}

/// The digits of date and time, which sort like the moments.
fn from_clock(at: DateTime) -> u64 {
    let digits = [at.month(), at.day(), at.hour(), at.minute(), at.second()];
    let year = u64::from(at.year().unsigned_abs());
    digits.into_iter().fold(year, |number, digits| number * 100 + u64::from(digits.unsigned_abs()))
}

fn from_signed(value: i64) -> u64 {
    (value as u64) ^ (1 << 63)
}

/// A key in numeric order; `None` for NaN.
pub(super) fn float_rank(value: f32) -> Option<u64> {
    // Merges both zeros.
    let bits = (value + 0.0).to_bits();
    let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    (!value.is_nan()).then_some(u64::from(ordered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_their_numbers() {
        let floats = [-1.5, -0.25, 0.0, 0.125, 0.5, 1.0, f32::INFINITY];
        assert!(floats.is_sorted_by_key(|value| float_rank(*value)));
        assert_eq!(float_rank(-0.0), float_rank(0.0));
        assert_eq!(float_rank(f32::NAN), None);
        let signed = [i64::MIN, -5, 0, 7, i64::MAX];
        assert!(signed.is_sorted_by_key(|value| from_signed(*value)));
    }
}
