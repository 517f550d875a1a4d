//! The plots of an evaluation as SVG. Colors are never the only distinction: lines have different dashes, cells and
//! bars have numbers.

mod bars;
mod curves;
mod matrix;
mod plane;
mod plot;

pub use self::bars::{Bar, bars};
use self::matrix::Words;
pub use self::plane::{Axis, Mark, Plane};
pub(crate) use self::plot::percent;
pub use self::plot::{Plot, Shapes, Spot};
use crate::evaluation::{ClassificationMetrics, DetectionMetrics, EvaluatedClass, Metrics};

const WORDS_OF_DETECTION: Words = Words {
    no_truth: "background",
    no_prediction: "not detected",
    counted: "Detections above the minimum score and undetected objects, at IoU ≥ 0.50.",
    about_no_truth: " Row “background”: detections without an object.",
    about_no_prediction: " Column “not detected”: objects without a detection.",
};

const WORDS_OF_CLASSIFICATION: Words = Words {
    no_truth: "no class",
    no_prediction: "unknown class",
    counted: "Images by true class and predicted top class.",
    about_no_truth: "",
    about_no_prediction: " Column “unknown class”: predicted as a class that the ground truth does not have.",
};

/// All plots with something to draw.
pub fn plots(metrics: &Metrics) -> Vec<Plot> {
    match metrics {
        Metrics::Detection { metrics, .. } => of_detection(metrics),
        Metrics::Classification { metrics, .. } => of_classification(metrics),
    }
}

fn of_detection(metrics: &DetectionMetrics) -> Vec<Plot> {
    let classes: Vec<EvaluatedClass> = metrics.classes.iter().map(|class| class.class.clone()).collect();
    let mut plots = curves::plots(metrics);
    plots.extend(matrix::plot(&classes, &metrics.confusion, &WORDS_OF_DETECTION));
    plots.extend(bars::errors(metrics));
    plots.extend(bars::ap(metrics));
    plots
}

fn of_classification(metrics: &ClassificationMetrics) -> Vec<Plot> {
    let classes: Vec<EvaluatedClass> = metrics.classes.iter().map(|class| class.class.clone()).collect();
    let mut plots = Vec::new();
    plots.extend(matrix::plot(&classes, &metrics.confusion, &WORDS_OF_CLASSIFICATION));
    plots.extend(bars::f1(metrics));
    plots.extend(curves::reliability(metrics));
    plots
}
