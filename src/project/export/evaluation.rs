//! Exports of an evaluation: all numbers, the table of classes, plots, a report.

use std::io::Write as _;

use serde::Serialize;

use super::csv_table::{Table, escape_formula};
use super::options::EvaluationFormat;
use super::plots::{PlotImages, plots};
use super::report::evaluation_page;
use super::suspicious::write_suspicious;
use super::target::{ExportTarget, FOLDER_MARK, WholeFile, WholeFolder};
use super::{EvaluatedImages, ExportError};
use crate::domain::Problem;
use crate::evaluation::{ClassMetrics, ClassifiedClass, ErrorPatterns, Evaluated, EvaluatedClass, Metrics};
use crate::tasks::TaskControl;

/// What was written of an evaluation.
#[derive(Debug, Default)]
pub struct WrittenEvaluation {
    /// The names of the plots.
    pub plots: Vec<&'static str>,
    /// The images that could not be shown in the report.
    pub problems: Vec<Problem>,
}

/// Writes an evaluation in one format. Only the report shows images.
///
/// # Errors
/// On an error, nothing is written under the name of the target.
pub fn write_evaluation(
    evaluated: &Evaluated,
    format: EvaluationFormat,
    images: Option<&EvaluatedImages<'_>>,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<WrittenEvaluation, ExportError> {
    let mut written = WrittenEvaluation::default();
    match format {
        EvaluationFormat::Json => {
            let mut file = WholeFile::create(target)?;
            serde_json::to_writer(&mut file, evaluated)
                .map_err(|error| ExportError::write(&target.path)(error.into()))?;
            file.commit_with(b"\n")?;
        }
        EvaluationFormat::Csv => write_classes(evaluated, target)?,
        EvaluationFormat::SuspiciousLabels => write_suspicious(evaluated, target)?,
        EvaluationFormat::Plots => written.plots = write_plots(evaluated, target, control)?,
        EvaluationFormat::Report => {
            let file = WholeFile::create(target)?;
            let (page, problems) = evaluation_page(evaluated, images, control)?;
            file.commit_with(page.as_bytes())?;
            written.problems = problems;
        }
    }
    Ok(written)
}

/// Writes one JSON object per line and pattern.
///
/// # Errors
/// On an error, nothing is written under the name of the target.
pub fn write_patterns(patterns: &ErrorPatterns, target: &ExportTarget) -> Result<(), ExportError> {
    let mut file = WholeFile::create(target)?;
    for line in patterns.lines() {
        let mut line = serde_json::to_vec(&line).map_err(|error| ExportError::write(&target.path)(error.into()))?;
        line.push(b'\n');
        file.write_all(&line).map_err(ExportError::write(&target.path))?;
    }
    file.commit()
}

/// The content of the file that marks a folder of plots.
#[derive(Serialize)]
struct PlotsMark<'e> {
    format: &'static str,
    predictions: &'e str,
    truth: &'e str,
    plots: &'e [&'static str],
}

/// Writes a folder with each plot as SVG and PNG. Returns their names.
fn write_plots(
    evaluated: &Evaluated,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<Vec<&'static str>, ExportError> {
    let folder = WholeFolder::create(target)?;
    let images = PlotImages::default();
    let plots = plots(&evaluated.metrics);
    let write = |name: String, content: &[u8]| folder.write(&name, content).map_err(ExportError::write(&target.path));
    for plot in &plots {
        control.checkpoint()?;
        let svg = plot.svg();
        write(format!("{}.svg", plot.name), svg.as_bytes())?;
        write(format!("{}.png", plot.name), &images.png(&svg).map_err(ExportError::Plot)?)?;
    }
    let names: Vec<&'static str> = plots.iter().map(|plot| plot.name).collect();
    let counted = &evaluated.counted;
    let mark = PlotsMark { format: "plots", predictions: &counted.predictions, truth: &counted.truth, plots: &names };
    let mark = serde_json::to_vec(&mark).map_err(|error| ExportError::write(&target.path)(error.into()))?;
    write(FOLDER_MARK.to_owned(), &mark)?;
    folder.commit()?;
    Ok(names)
}

const COLUMNS_OF_DETECTION: [&str; 14] = [
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
const COLUMNS_OF_CLASSIFICATION: [&str; 7] = ["id", "name", "truths", "predictions", "precision", "recall", "f1"];

/// Writes a header and one row per class, with the names and numbers of the JSON file. A cell is empty if there is
/// nothing to measure.
fn write_classes(evaluated: &Evaluated, target: &ExportTarget) -> Result<(), ExportError> {
    let table = match &evaluated.metrics {
        Metrics::Detection { metrics, .. } => {
            let mut table = Table::create(target, &COLUMNS_OF_DETECTION)?;
            metrics.classes.iter().try_for_each(|class| table.row(&detection(class)))?;
            table
        }
        Metrics::Classification { metrics, .. } => {
            let mut table = Table::create(target, &COLUMNS_OF_CLASSIFICATION)?;
            metrics.classes.iter().try_for_each(|class| table.row(&classification(class)))?;
            table
        }
    };
    table.commit()
}

fn detection(row: &ClassMetrics) -> [String; COLUMNS_OF_DETECTION.len()] {
    let [id, name] = class(&row.class);
    let [ap, ap50, voc2007_ap, voc2012_ap] = [row.ap, row.ap50, row.voc2007_ap, row.voc2012_ap].map(number);
    let [precision, recall, f1] = [row.precision, row.recall, row.f1].map(number);
    let [best_threshold, best_f1] =
        row.best.map_or([None; 2], |best| [Some(best.threshold), Some(best.f1)]).map(number);
    let [truths, detections] = [row.truths, row.detections].map(|count| count.to_string());
    let threshold = row.threshold.to_string();
    [
        id,
        name,
        truths,
        detections,
        ap,
        ap50,
        voc2007_ap,
        voc2012_ap,
        threshold,
        precision,
        recall,
        f1,
        best_threshold,
        best_f1,
    ]
}

fn classification(row: &ClassifiedClass) -> [String; COLUMNS_OF_CLASSIFICATION.len()] {
    let [id, name] = class(&row.class);
    let [precision, recall, f1] = [row.precision, row.recall, row.f1].map(number);
    [id, name, row.truths.to_string(), row.predictions.to_string(), precision, recall, f1]
}

fn class(class: &EvaluatedClass) -> [String; 2] {
    [class.id.map(|id| id.to_string()).unwrap_or_default(), escape_formula(&class.name)]
}

fn number(number: Option<f64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
