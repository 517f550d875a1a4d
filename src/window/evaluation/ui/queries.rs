//! The searches behind the numbers: each finds exactly the counted boxes.

use super::Shown;
use crate::domain::decimal;
use crate::evaluation::ReliabilityBin;
use crate::review::{OutcomeKind, exact_class_term, exact_truth_term};

/// Everything that was compared, correct or wrong.
pub(crate) const ALL: &str = "tp or fp";
pub(crate) const RIGHT: &str = "tp";
pub(crate) const WRONG: &str = "fp";
pub(crate) const NOT_FOUND: &str = "fn";
/// Objects that no box of any class covers.
pub(crate) const MISSED: &str = "error:missed";

/// Wrong boxes of a kind.
pub(crate) fn error(kind: OutcomeKind) -> String {
    format!("error:{}", kind.into_str())
}

impl Shown<'_> {
    /// Everything with this outcome ([`RIGHT`] and others) and ground-truth class.
    pub(crate) fn of_class(&self, outcome: &str, place: u32) -> String {
        match outcome {
            WRONG => self.of_model(WRONG, place),
            _ => format!("{outcome} {}", self.truth(place)),
        }
    }

    /// Correct and wrong boxes.
    pub(crate) fn all(&self, place: u32) -> String {
        format!("{} or {}", self.of_class(RIGHT, place), self.of_class(WRONG, place))
    }

    /// A cell of the confusion matrix; `None` is the background, or the column of missed objects.
    pub(crate) fn cell(&self, truth: Option<u32>, predicted: Option<u32>) -> String {
        match (truth, predicted) {
            (Some(truth), Some(predicted)) if truth == predicted => self.of_class(RIGHT, truth),
            (Some(truth), Some(predicted)) => self.of_model(&format!("error:class {}", self.truth(truth)), predicted),
            (None, Some(predicted)) => self.of_model("error:unmatched", predicted),
            (Some(truth), None) => self.of_class(MISSED, truth),
            (None, None) => String::new(),
        }
    }

    fn truth(&self, place: u32) -> String {
        exact_truth_term(&self.outcomes.classes, place)
    }

    /// Several classes of the model can match one ground-truth class.
    fn of_model(&self, start: &str, place: u32) -> String {
        let terms = self.outcomes.model_classes(place).map(|class| exact_class_term(self.labels, class));
        let mut searches: Vec<String> = terms.map(|term| format!("{start} {term}")).collect();
        searches.sort_unstable();
        searches.join(" or ")
    }
}

/// The images in a bar of the reliability diagram.
pub(crate) fn bin(bin: &ReliabilityBin) -> String {
    let from = lowest_score(bin.from);
    if bin.to >= 1.0 {
        return format!("truth:* score>={from}");
    }
    format!("truth:* score>={from} score<{}", lowest_score(bin.to))
}

/// Scores are `f32`: the lowest one that is not below a bound.
fn lowest_score(bound: f64) -> f32 {
    let nearest = bound as f32;
    if decimal(nearest) < bound { nearest.next_up() } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_round_trips_as_the_lowest_score() {
        for bins in [10, 15, 20] {
            for bin in 0..=bins {
                let bound = f64::from(bin) / f64::from(bins);
                let score = lowest_score(bound);
                assert!(decimal(score) >= bound && (score == 0.0 || decimal(score.next_down()) < bound), "{bound}");
                let read = score.to_string().parse::<f64>().unwrap() as f32;
                assert_eq!(read, score);
            }
        }
    }
}
