//! The classes of an evaluation as CSV, one row per class.

use super::super::ExportError;
use super::super::csv_table::{escape_formula, io_error};
use super::super::target::{ExportTarget, WholeFile};
use crate::evaluation::{ClassMetrics, ClassifiedClass, Evaluated, EvaluatedClass, Metrics};

const OF_DETECTION: [&str; 14] = [
    "id",
    "name",
    "truths",
    "detections",
    "ap",
    "ap50",
    "voc2007_ap",
    "voc2012_ap",
    "threshold",
    "precision",
    "recall",
    "f1",
    "best_threshold",
    "best_f1",
];
const OF_CLASSIFICATION: [&str; 7] = ["id", "name", "truths", "predictions", "precision", "recall", "f1"];

/// Writes a header and one row per class, with the names and numbers of the JSON file. A cell is empty if there is
/// nothing to measure.
pub fn write_classes_csv(evaluated: &Evaluated, target: &ExportTarget) -> Result<(), ExportError> {
    let file = WholeFile::create(target)?;
    let mut table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(file);
    let mut write =
        |cells: &[String]| table.write_record(cells).map_err(|error| ExportError::write(&target.path)(io_error(error)));
    match &evaluated.metrics {
        Metrics::Detection { metrics, .. } => {
            write(&OF_DETECTION.map(str::to_owned))?;
            metrics.classes.iter().try_for_each(|class| write(&detection(class)))?;
        }
        Metrics::Classification { metrics, .. } => {
            write(&OF_CLASSIFICATION.map(str::to_owned))?;
            metrics.classes.iter().try_for_each(|class| write(&classification(class)))?;
        }
    }
    let file = table.into_inner().map_err(|error| ExportError::write(&target.path)(error.into_error()))?;
    file.commit()
}

fn detection(row: &ClassMetrics) -> [String; OF_DETECTION.len()] {
    let [id, name] = class(&row.class);
    [
        id,
        name,
        row.truths.to_string(),
        row.detections.to_string(),
        number(row.ap),
        number(row.ap50),
        number(row.voc2007_ap),
        number(row.voc2012_ap),
        row.threshold.to_string(),
        number(row.precision),
        number(row.recall),
        number(row.f1),
        number(row.best.map(|best| best.threshold)),
        number(row.best.map(|best| best.f1)),
    ]
}

fn classification(row: &ClassifiedClass) -> [String; OF_CLASSIFICATION.len()] {
    let [id, name] = class(&row.class);
    [
        id,
        name,
        row.truths.to_string(),
        row.predictions.to_string(),
        number(row.precision),
        number(row.recall),
        number(row.f1),
    ]
}

fn class(class: &EvaluatedClass) -> [String; 2] {
    [class.id.map(|id| id.to_string()).unwrap_or_default(), escape_formula(&class.name)]
}

fn number(number: Option<f64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
