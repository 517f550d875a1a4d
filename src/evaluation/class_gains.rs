//! What each class gains or loses from one run to another, against the same ground truth.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{EvaluatedClass, Metrics};

/// A ground-truth class in two runs, A and B for the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassGain {
    #[serde(flatten)]
    pub class: EvaluatedClass,
    /// Objects, or images of the class for a classifier.
    pub truths: u64,
    /// AP, or F1 for a classifier.
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// A minus B; `None` unless both have a value.
    pub gain: Option<f64>,
}

/// The classes of A with their gains over B, greatest loss first, and those without a gain last.
pub fn class_gains([a, b]: [&Metrics; 2]) -> Vec<ClassGain> {
    let key = |class: &EvaluatedClass| (class.id, class.name.clone());
    let of_b: BTreeMap<_, _> = b.class_values().map(|(class, _, value)| (key(class), value)).collect();
    let gains = a.class_values().map(|(class, truths, a)| {
        let b = of_b.get(&key(class)).copied().flatten();
        ClassGain { class: class.clone(), truths, a, b, gain: a.zip(b).map(|(a, b)| a - b) }
    });
    let mut gains: Vec<ClassGain> = gains.collect();
    let rank = |gain: &ClassGain| gain.gain.unwrap_or(f64::INFINITY);
    gains.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    gains
}

impl Metrics {
    /// The name of the metric in [`ClassGain`].
    pub fn class_measure(&self) -> &'static str {
        match self {
            Self::Detection { .. } => "AP",
            Self::Classification { .. } => "F1",
        }
    }

    /// The ground-truth classes, by index.
    pub fn classes(&self) -> Vec<&EvaluatedClass> {
        self.class_values().map(|(class, ..)| class).collect()
    }

    /// Each ground-truth class, its number of objects or images, and its AP or F1.
    fn class_values(&self) -> Box<dyn Iterator<Item = (&EvaluatedClass, u64, Option<f64>)> + '_> {
        match self {
            Self::Detection { metrics, .. } => {
                Box::new(metrics.classes.iter().map(|row| (&row.class, row.truths, row.ap)))
            }
            Self::Classification { metrics, .. } => {
                Box::new(metrics.classes.iter().map(|row| (&row.class, row.truths, row.f1)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::{ClassMetrics, DetectionMetrics};

    fn metrics(aps: &[(i64, &str, Option<f64>)]) -> Metrics {
        let class = |&(id, name, ap): &(i64, &str, Option<f64>)| ClassMetrics {
            class: EvaluatedClass { id: Some(id), name: name.to_owned() },
            truths: 3,
            ap,
            ..ClassMetrics::default()
        };
        let metrics = DetectionMetrics { classes: aps.iter().map(class).collect(), ..DetectionMetrics::default() };
        Metrics::Detection { metrics: Box::new(metrics), intervals: None }
    }

    #[test]
    fn gains_are_those_of_a_with_losses_first() {
        let a = metrics(&[(1, "cat", Some(0.5)), (2, "dog", Some(0.25)), (3, "cow", None), (4, "cat", Some(0.75))]);
        let b = metrics(&[(4, "cat", Some(0.5)), (2, "dog", Some(0.75)), (1, "cat", Some(0.5)), (3, "cow", Some(0.1))]);
        let gains = class_gains([&a, &b]);
        let rows: Vec<(&str, Option<f64>)> = gains.iter().map(|row| (row.class.name.as_str(), row.gain)).collect();
        assert_eq!(rows, [("dog", Some(-0.5)), ("cat", Some(0.0)), ("cat", Some(0.25)), ("cow", None)]);
        assert_eq!((gains[3].a, gains[3].b, gains[3].truths), (None, Some(0.1), 3));
    }
}
