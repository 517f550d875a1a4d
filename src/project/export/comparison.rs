//! Compares two runs over the same images, in total and per image.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::ExportError;
use super::csv_table::{Table, escape_formula};
use super::report::{ComparedRuns, DifferingImage, comparison_page};
use super::target::{ExportTarget, JsonEntries, WholeFile};
use crate::domain::{ModelTask, Prediction, PredictionContent, RunInfo, SampleId, ViewSettings, counted};
use crate::evaluation::{
    Agreement, AgreementSummary, ClassGain, ClassMap, Comparison, CoveragePoint, CurvePoint, Evaluated, ImageAgreement,
    MATCHING_IOU, Metrics, class_gains,
};
use crate::project::export::options::ComparisonFormat;
use crate::project::{PredictionPair, StoreError};
use crate::tasks::{Cancelled, TaskControl};

/// The two runs, A and B for the user, and which boxes of each count.
pub struct ComparisonContext {
    pub runs: [RunInfo; 2],
    /// The filters of each run.
    pub views: [ViewSettings; 2],
    pub source_name: String,
    /// Both runs against the same ground truth, if it is open; for the report and JSON.
    pub evaluated: Option<[Arc<Evaluated>; 2]>,
}

impl ComparisonContext {
    /// The header of the comparison, before the first image.
    pub fn comparison(&self) -> Comparison {
        let [left, right] = &self.runs;
        let [left_view, right_view] = self.views.clone();
        let classes = ClassMap::between(&left.labels, &right.labels);
        Comparison::new(classes, left_view, right_view)
    }

    pub fn task(&self) -> ModelTask {
        self.runs[0].card.stored_as()
    }

    fn evaluated(&self) -> Option<[&Evaluated; 2]> {
        self.evaluated.as_ref().map(|both| both.each_ref().map(|evaluated| &**evaluated))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonReport {
    pub path: PathBuf,
    /// The file of the summary, if it is separate.
    pub summary_path: Option<PathBuf>,
    pub summary: AgreementSummary,
}

/// `32 images compared, 13 of them agree; written: /home/me/comparison.json`
impl std::fmt::Display for ComparisonReport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (compared, agreeing) = (self.summary.compared, self.summary.agreeing);
        let images = counted(compared, "image", "images");
        let path = self.path.display();
        let agreeing = counted(agreeing, "agrees", "agree");
        write!(formatter, "{images} compared, {agreeing}; written: {path}")?;
        match &self.summary_path {
            Some(path) => write!(formatter, " and {}", path.display()),
            None => Ok(()),
        }
    }
}

/// Compares two runs image by image; `see` receives each pair with its agreement. Checks `control` before each image
/// and counts there; the caller sets its total.
///
/// # Errors
/// Canceled, the predictions cannot be read, or an error of `see`.
pub fn compare_runs<E: From<Cancelled> + From<StoreError>>(
    mut comparison: Comparison,
    pairs: impl Iterator<Item = Result<PredictionPair, StoreError>>,
    control: &TaskControl,
    mut see: impl FnMut(&PredictionPair, Option<ImageAgreement>) -> Result<(), E>,
) -> Result<Agreement, E> {
    for (index, pair) in pairs.enumerate() {
        control.checkpoint()?;
        let pair = pair?;
        let [left, right] = &pair.predictions;
        let agreement = comparison.add(SampleId::from_index(index), left.as_ref(), right.as_ref());
        see(&pair, agreement)?;
        control.add_done(1);
    }
    control.checkpoint()?;
    Ok(comparison.finish())
}

/// Writes the summary, and an entry for each image that at least one run has a prediction for, in the order of `pairs`,
/// as [`compare_runs`].
///
/// # Errors
/// On any error, including cancellation, nothing is left of the export.
pub fn export_comparison(
    pairs: impl Iterator<Item = Result<PredictionPair, StoreError>>,
    context: &ComparisonContext,
    format: ComparisonFormat,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<ComparisonReport, ExportError> {
    let mut writer: Box<dyn RowWriter> = match format {
        ComparisonFormat::Json => Box::new(JsonWriter::create(target)?),
        ComparisonFormat::Csv => Box::new(CsvWriter::create(target, context.task())?),
        ComparisonFormat::Html => Box::new(HtmlWriter { file: WholeFile::create(target)?, worst: Vec::new() }),
    };
    let write = |pair: &PredictionPair, agreement| match Row::new(pair, agreement) {
        Some(row) => writer.row(&row),
        None => Ok(()),
    };
    let summary = compare_runs(context.comparison(), pairs, control, write)?.summary;
    writer.finish(context, &summary)?;
    Ok(ComparisonReport {
        path: target.path.clone(),
        summary_path: (format == ComparisonFormat::Csv).then(|| summary_path(&target.path)),
        summary,
    })
}

/// A writer of one format. If it is dropped before it is finished, it deletes what it has begun.
trait RowWriter {
    fn row(&mut self, row: &Row<'_>) -> Result<(), ExportError>;

    /// Moves the complete output into place.
    fn finish(self: Box<Self>, context: &ComparisonContext, summary: &AgreementSummary) -> Result<(), ExportError>;
}

/// One image. Fields that apply only to boxes or only to classes are omitted for the others, fields about two
/// predictions if there is only one, and the score difference if nothing matches.
#[derive(Serialize)]
struct Row<'p> {
    image: &'p str,
    /// “both”, “a” or “b”.
    #[serde(rename = "predicted")]
    predicted_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agrees: Option<bool>,
    /// `0.0..=1.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    disagreement: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_score_difference: Option<f32>,
    #[serde(flatten)]
    what: RowContent<'p>,
    uri: &'p str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RowContent<'p> {
    /// The top class of each run.
    Classes {
        label_a: Option<&'p str>,
        score_a: Option<f32>,
        label_b: Option<&'p str>,
        score_b: Option<f32>,
    },
    Boxes {
        boxes_matched: Option<u32>,
        boxes_only_a: Option<u32>,
        boxes_only_b: Option<u32>,
    },
}

impl RowContent<'_> {
    /// “A: cat 0.91, B: dog 0.55”
    fn text(&self) -> String {
        let class = |label: Option<&str>, score: Option<f32>| {
            label.zip(score).map_or_else(|| "nothing".to_owned(), |(label, score)| format!("{label} {score:.2}"))
        };
        match *self {
            Self::Classes { label_a, score_a, label_b, score_b } => {
                format!("A: {}, B: {}", class(label_a, score_a), class(label_b, score_b))
            }
            Self::Boxes { boxes_matched, boxes_only_a, boxes_only_b } => {
                let [matched, only_a, only_b] =
                    [boxes_matched, boxes_only_a, boxes_only_b].map(Option::unwrap_or_default);
                format!("{} matched, {only_a} only in A, {only_b} only in B", counted(matched, "box", "boxes"))
            }
        }
    }
}

const CLASS_COLUMNS: [&str; 4] = ["label_a", "score_a", "label_b", "score_b"];
const BOX_COLUMNS: [&str; 3] = ["boxes_matched", "boxes_only_a", "boxes_only_b"];

impl<'p> Row<'p> {
    /// `None` if neither run has a prediction.
    fn new(pair: &'p PredictionPair, agreement: Option<ImageAgreement>) -> Option<Self> {
        let [left, right] = &pair.predictions;
        let predicted_by = match (left, right) {
            (Some(_), Some(_)) => "both",
            (Some(_), None) => "a",
            (None, Some(_)) => "b",
            (None, None) => return None,
        };
        let mut predictions = pair.predictions.iter().flatten();
        let has_boxes = predictions.any(|prediction| matches!(prediction.content, PredictionContent::Detections(_)));
        let what = if has_boxes {
            RowContent::Boxes {
                boxes_matched: agreement.map(|image| image.matched),
                boxes_only_a: agreement.map(|image| image.only_left),
                boxes_only_b: agreement.map(|image| image.only_right),
            }
        } else {
            let (label_a, score_a) = top(left.as_ref());
            let (label_b, score_b) = top(right.as_ref());
            RowContent::Classes { label_a, score_a, label_b, score_b }
        };
        Some(Self {
            image: &pair.sample.name,
            predicted_by,
            agrees: agreement.map(|image| image.agrees()),
            disagreement: agreement.map(|image| image.disagreement),
            largest_score_difference: agreement.and_then(|image| image.largest_difference),
            what,
            uri: pair.sample.uri.as_str(),
        })
    }
}

fn top(prediction: Option<&Prediction>) -> (Option<&str>, Option<f32>) {
    let first = prediction.and_then(|prediction| prediction.classes().first());
    (first.map(|class| class.label.as_str()), first.map(|class| class.score))
}

/// The class changes, most frequent first.
fn class_changes(context: &ComparisonContext, summary: &AgreementSummary) -> Vec<ClassChange> {
    let [left, right] = &context.runs;
    let changes = summary.confusion.iter().map(|change| ClassChange {
        a: left.labels.name(change.left),
        b: right.labels.name(change.right),
        count: change.count,
    });
    changes.collect()
}

/// The images wait in a second file until the summary, which comes first, is known.
struct JsonWriter {
    file: WholeFile,
    images: JsonEntries<BufWriter<File>>,
}

impl JsonWriter {
    fn create(target: &ExportTarget) -> Result<Self, ExportError> {
        let file = WholeFile::create(target)?;
        Ok(Self { images: file.entries()?, file })
    }
}

impl RowWriter for JsonWriter {
    fn row(&mut self, row: &Row<'_>) -> Result<(), ExportError> {
        self.images.push(row).map_err(ExportError::write(self.file.path()))
    }

    fn finish(self: Box<Self>, context: &ComparisonContext, summary: &AgreementSummary) -> Result<(), ExportError> {
        let Self { mut file, images } = *self;
        let failed = ExportError::write(file.path());
        let head = serde_json::to_string_pretty(&Head::new(context, summary)).map_err(|error| failed(error.into()))?;
        // Its last brace comes after the images.
        let head = head.strip_suffix("\n}").unwrap_or(&head);
        write!(file, "{head},\n  \"images\": [")
            .and_then(|()| images.append_to(&mut file))
            .and_then(|()| file.write_all(b"\n  ]\n}\n"))
            .map_err(failed)?;
        file.commit()
    }
}

/// Everything except the images.
#[derive(Serialize)]
struct Head<'c> {
    spotcheck: &'static str,
    source: &'c str,
    task: &'static str,
    a: RunHead<'c>,
    b: RunHead<'c>,
    summary: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<AgainstTruth<'c>>,
}

/// Both runs against the same ground truth.
#[derive(Serialize)]
struct AgainstTruth<'c> {
    name: &'c str,
    a: MeasuredRun<'c>,
    b: MeasuredRun<'c>,
    /// “AP” or “F1”: the metric of `classes`.
    measure: &'static str,
    classes: Vec<ClassGain>,
}

/// The metrics as `evaluate` writes them, and the curve of all classes pooled.
#[derive(Serialize)]
struct MeasuredRun<'c> {
    #[serde(flatten)]
    evaluated: &'c Evaluated,
    curve: CurveOfRun<'c>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum CurveOfRun<'c> {
    Detector(&'c [CurvePoint]),
    Classifier(&'c [CoveragePoint]),
}

impl<'c> AgainstTruth<'c> {
    fn new([a, b]: [&'c Evaluated; 2]) -> Self {
        let measured = |evaluated: &'c Evaluated| MeasuredRun {
            evaluated,
            curve: match &evaluated.metrics {
                Metrics::Detection { metrics, .. } => CurveOfRun::Detector(&metrics.curve.points),
                Metrics::Classification { metrics, .. } => CurveOfRun::Classifier(&metrics.curve.points),
            },
        };
        Self {
            name: &a.counted.truth,
            a: measured(a),
            b: measured(b),
            measure: a.metrics.class_measure(),
            classes: class_gains([&a.metrics, &b.metrics]),
        }
    }
}

#[derive(Serialize)]
struct RunHead<'c> {
    name: &'c str,
    model: &'c str,
    /// Boxes below this score do not count, unless their class has its own threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_score: Option<f32>,
}

#[derive(Serialize)]
struct Figures {
    compared: usize,
    agreeing: usize,
    agreement: Option<f64>,
    #[serde(rename = "predicted_only_a")]
    predicted_only_a: usize,
    #[serde(rename = "predicted_only_b")]
    predicted_only_b: usize,
    mean_score_difference: Option<f64>,
    largest_score_difference: Option<f32>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    boxes: Option<BoxFigures>,
    class_changes: Vec<ClassChange>,
}

#[derive(Serialize)]
struct BoxFigures {
    matching_iou: f32,
    boxes_matched: usize,
    boxes_only_a: usize,
    boxes_only_b: usize,
}

/// A class of A that B predicted as another one.
#[derive(Serialize)]
struct ClassChange {
    a: String,
    b: String,
    count: usize,
}

impl<'c> Head<'c> {
    fn new(context: &'c ComparisonContext, summary: &AgreementSummary) -> Self {
        let has_boxes = context.task() == ModelTask::Detection;
        let run = |at: usize| {
            let run: &RunInfo = &context.runs[at];
            RunHead { name: &run.name, model: &run.card.id, min_score: has_boxes.then(|| context.views[at].min_score) }
        };
        let boxes = BoxFigures {
            matching_iou: MATCHING_IOU,
            boxes_matched: summary.matched,
            boxes_only_a: summary.only_left,
            boxes_only_b: summary.only_right,
        };
        Self {
            spotcheck: env!("CARGO_PKG_VERSION"),
            source: &context.source_name,
            task: context.task().into_str(),
            a: run(0),
            b: run(1),
            summary: Figures {
                compared: summary.compared,
                agreeing: summary.agreeing,
                agreement: summary.rate(),
                predicted_only_a: summary.predicted_only_left,
                predicted_only_b: summary.predicted_only_right,
                mean_score_difference: summary.differences.mean(),
                largest_score_difference: largest_difference(summary),
                boxes: has_boxes.then_some(boxes),
                class_changes: class_changes(context, summary),
            },
            truth: context.evaluated().map(AgainstTruth::new),
        }
    }
}

fn largest_difference(summary: &AgreementSummary) -> Option<f32> {
    (summary.differences.count > 0).then_some(summary.differences.largest)
}

/// Two CSV files: the images under the chosen name, the summary next to them.
struct CsvWriter {
    images: Table,
    summary: Table,
    summary_path: PathBuf,
}

impl CsvWriter {
    fn create(target: &ExportTarget, task: ModelTask) -> Result<Self, ExportError> {
        let mut columns = vec!["image", "predicted", "agrees", "disagreement", "largest_score_difference"];
        match task {
            ModelTask::Classification => columns.extend(CLASS_COLUMNS),
            ModelTask::Detection => columns.extend(BOX_COLUMNS),
        }
        columns.push("uri");
        let summary = ExportTarget { path: summary_path(&target.path), existing: target.existing };
        Ok(Self {
            images: Table::create(target, &columns)?,
            summary: Table::create(&summary, &["measure", "class_a", "class_b", "value"])?,
            summary_path: summary.path,
        })
    }
}

/// A page with the images that differ most.
struct HtmlWriter {
    file: WholeFile,
    /// The greatest disagreement first.
    worst: Vec<DifferingImage>,
}

impl HtmlWriter {
    const IMAGES: usize = 100;
}

impl RowWriter for HtmlWriter {
    fn row(&mut self, row: &Row<'_>) -> Result<(), ExportError> {
        let Some(disagreement) = row.disagreement.filter(|_| row.agrees == Some(false)) else {
            return Ok(());
        };
        let place = self.worst.partition_point(|other| other.disagreement >= disagreement);
        if place < Self::IMAGES {
            self.worst.truncate(Self::IMAGES - 1);
            let image = DifferingImage { name: row.image.to_owned(), disagreement, what: row.what.text() };
            self.worst.insert(place, image);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, context: &ComparisonContext, summary: &AgreementSummary) -> Result<(), ExportError> {
        let ComparisonContext { runs, views, source_name, .. } = context;
        let evaluated = context.evaluated();
        let page = comparison_page(&ComparedRuns { runs, views, source_name, summary, evaluated, worst: &self.worst });
        self.file.commit_with(page.as_bytes())
    }
}

/// `comparison-summary.csv` next to `comparison.csv`.
pub fn summary_path(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("-summary.csv");
    path.with_file_name(name)
}

/// Empty for `None`.
fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

impl RowWriter for CsvWriter {
    fn row(&mut self, row: &Row<'_>) -> Result<(), ExportError> {
        let mut cells = vec![
            escape_formula(row.image),
            row.predicted_by.to_owned(),
            cell(row.agrees),
            cell(row.disagreement),
            cell(row.largest_score_difference),
        ];
        match &row.what {
            RowContent::Classes { label_a, score_a, label_b, score_b } => cells.extend([
                escape_formula(label_a.unwrap_or_default()),
                cell(*score_a),
                escape_formula(label_b.unwrap_or_default()),
                cell(*score_b),
            ]),
            RowContent::Boxes { boxes_matched, boxes_only_a, boxes_only_b } => {
                cells.extend([*boxes_matched, *boxes_only_a, *boxes_only_b].map(cell));
            }
        }
        cells.push(escape_formula(row.uri));
        self.images.row(&cells)
    }

    fn finish(mut self: Box<Self>, context: &ComparisonContext, summary: &AgreementSummary) -> Result<(), ExportError> {
        for row in summary_rows(context, summary) {
            self.summary.row(&row)?;
        }
        self.summary.commit()?;
        let committed = self.images.commit();
        if committed.is_err() {
            // Without its table, it would be half an export.
            drop(std::fs::remove_file(&self.summary_path));
        }
        committed
    }
}

/// A measure and its value; a class change has its two classes in between.
fn summary_rows(context: &ComparisonContext, summary: &AgreementSummary) -> Vec<[String; 4]> {
    let row = |measure: &str, value: String| [measure.to_owned(), String::new(), String::new(), value];
    let [left, right] = &context.runs;
    let mut rows = vec![
        row("run_a", escape_formula(&left.name)),
        row("run_b", escape_formula(&right.name)),
        row("compared", summary.compared.to_string()),
        row("agreeing", summary.agreeing.to_string()),
        row("agreement", cell(summary.rate())),
        row("predicted_only_a", summary.predicted_only_left.to_string()),
        row("predicted_only_b", summary.predicted_only_right.to_string()),
        row("mean_score_difference", cell(summary.differences.mean())),
        row("largest_score_difference", cell(largest_difference(summary))),
    ];
    if context.task() == ModelTask::Detection {
        rows.push(row("boxes_matched", summary.matched.to_string()));
        rows.push(row("boxes_only_a", summary.only_left.to_string()));
        rows.push(row("boxes_only_b", summary.only_right.to_string()));
    }
    let changes = class_changes(context, summary).into_iter().map(|change| {
        let measure = "class_change".to_owned();
        let count = change.count.to_string();
        [measure, escape_formula(&change.a), escape_formula(&change.b), count]
    });
    rows.extend(changes);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::export::{Existing, sampler};
    use crate::tasks::ProgressUnit;

    fn context() -> ComparisonContext {
        let run = |name: &str| RunInfo { name: name.to_owned(), ..sampler::run() };
        ComparisonContext {
            runs: [run("first"), run("=second")],
            views: [ViewSettings::default(), ViewSettings::default()],
            source_name: "/photos".to_owned(),
            evaluated: None,
        }
    }

    const HERE: [f32; 4] = [0.0, 0.0, 30.0, 30.0];
    const THERE: [f32; 4] = [60.0, 0.0, 90.0, 30.0];

    /// One image that agrees, one with a missing box and another of a different class, one that only A has predicted,
    /// and one that neither has.
    fn pairs() -> Vec<Result<PredictionPair, StoreError>> {
        type Boxes<'b> = Option<&'b [(u32, f32, [f32; 4])]>;
        let pair = |name: &str, boxes: [Boxes<'_>; 2]| {
            let row = sampler::row(name, &[]);
            let prediction = |boxes| sampler::row(name, boxes).result.and_then(Result::ok);
            Ok(PredictionPair { sample: row.sample, predictions: boxes.map(|boxes| boxes.and_then(prediction)) })
        };
        vec![
            pair("same.jpg", [Some(&[(1, 0.75, HERE)]), Some(&[(1, 0.5, HERE)])]),
            pair("=other.jpg", [Some(&[(1, 0.9, HERE), (2, 0.8, THERE)]), Some(&[(2, 0.9, HERE)])]),
            pair("alone.jpg", [Some(&[]), None]),
            pair("unknown.jpg", [None, None]),
        ]
    }

    fn write(
        format: ComparisonFormat,
        target: &ExportTarget,
        control: &TaskControl,
    ) -> Result<ComparisonReport, ExportError> {
        export_comparison(pairs().into_iter(), &context(), format, target, control)
    }

    fn target(folder: &Path, name: &str) -> ExportTarget {
        ExportTarget { path: folder.join(name), existing: Existing::Keep }
    }

    fn control() -> TaskControl {
        TaskControl::new(ProgressUnit::Images)
    }

    #[test]
    fn json_has_a_summary_and_predicted_images() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path(), "out.json");
        let report = write(ComparisonFormat::Json, &target, &control()).unwrap();
        assert!(report.to_string().starts_with("2 images compared, 1 agrees; written: "), "{report}");
        let text = std::fs::read_to_string(&target.path).unwrap();
        let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
        let summary = &whole["summary"];
        assert_eq!(whole["b"]["name"], "=second");
        assert_eq!(summary["agreement"], 0.5);
        assert_eq!(summary["predicted_only_a"], 1);
        assert_eq!(summary["mean_score_difference"], 0.25);
        assert_eq!(
            (&summary["boxes_matched"], &summary["boxes_only_a"], &summary["boxes_only_b"]),
            (&1.into(), &2.into(), &1.into())
        );
        let change = serde_json::json!([{"a": "cat", "b": "dog", "count": 1}]);
        assert_eq!(summary["class_changes"], change);
        let images = whole["images"].as_array().unwrap();
        assert_eq!(images.len(), 3, "{text}");
        assert_eq!(images[0]["disagreement"], 0.25);
        assert_eq!(images[0]["largest_score_difference"], 0.25);
        assert_eq!(images[1]["disagreement"], 1.0);
        assert!(images[1].get("largest_score_difference").is_none(), "no boxes match");
        assert_eq!(images[2]["predicted"], "a");
        assert!(images[2].get("agrees").is_none());
    }

    #[test]
    fn csv_has_an_image_table_and_a_summary() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path(), "out.csv");
        let report = write(ComparisonFormat::Csv, &target, &control()).unwrap();
        let images = std::fs::read_to_string(&target.path).unwrap();
        let lines: Vec<&str> = images.lines().collect();
        assert_eq!(
            lines[0],
            "image,predicted,agrees,disagreement,largest_score_difference,boxes_matched,boxes_only_a,boxes_only_b,uri"
        );
        assert_eq!(lines[1], "same.jpg,both,true,0.25,0.25,1,0,0,/photos/same.jpg");
        assert!(lines[2].starts_with("'=other.jpg,both,false,1,,0,2,1,"), "{images}");
        assert_eq!(lines[3], "alone.jpg,a,,,,,,,/photos/alone.jpg");
        let summary = std::fs::read_to_string(report.summary_path.unwrap()).unwrap();
        for line in ["run_b,,,'=second", "agreement,,,0.5", "boxes_only_a,,,2", "class_change,cat,dog,1"] {
            assert!(summary.lines().any(|it| it == line), "{line} of {summary}");
        }
    }

    #[test]
    fn page_has_runs_figures_and_differing_images() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path(), "out.html");
        write(ComparisonFormat::Html, &target, &control()).unwrap();
        let page = std::fs::read_to_string(&target.path).unwrap();
        for fact in [
            "50.0%",
            "=second",
            "<td>cat</td><td>dog</td>",
            "=other.jpg",
            "0 boxes matched, 2 only in A, 1 only in B",
            "default-src 'none'",
        ] {
            assert!(page.contains(fact), "{fact} in {page}");
        }
        assert!(!page.contains("same.jpg") && !page.contains("alone.jpg"), "only images that differ");
    }

    #[test]
    fn canceled_export_keeps_the_existing_summary() {
        let folder = tempfile::tempdir().unwrap();
        let is_empty = || std::fs::read_dir(folder.path()).unwrap().next().is_none();
        let cancelled = control();
        cancelled.cancel();
        for (format, name) in [(ComparisonFormat::Json, "out.json"), (ComparisonFormat::Csv, "out.csv")] {
            let result = write(format, &target(folder.path(), name), &cancelled);
            assert!(matches!(result, Err(ExportError::Cancelled(_))));
            assert!(is_empty(), "{name}");
        }
        let summary = folder.path().join("out-summary.csv");
        std::fs::write(&summary, "years of work").unwrap();
        let target = target(folder.path(), "out.csv");
        let result = write(ComparisonFormat::Csv, &target, &control());
        assert!(matches!(result, Err(ExportError::Exists { .. })));
        assert!(!target.path.exists());
    }
}
