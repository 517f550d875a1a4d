//! Exports of images, predictions and verdicts for other programs and people. One file per format.
//!
//! Every format is a writer over a stream of rows, so memory does not grow with the number of images. One place (`row`)
//! decides what is exported of a row. Files and folders appear under their names only when complete (`target`). The
//! rows come from a project ([`project_rows`]) or from another caller. Knows nothing about windows.

mod annotated;
mod annotated_folder;
mod box_vectors;
mod coco;
mod comparison;
mod csv_table;
mod dataset_folder;
mod drawing;
mod error;
mod evaluation;
mod file_names;
mod image_pool;
mod jsonl;
pub mod label_patch;
mod npy;
pub mod options;
mod plots;
mod report;
mod review;
mod row;
#[cfg(test)]
mod sampler;
mod selection;
mod suspicious;
mod tally;
mod target;
#[cfg(test)]
mod tests;
mod vectors;
mod verdict_csv;
mod voc;
mod yolo;

pub use annotated::{DrawnObjects, TruthMarks, annotate};
pub use annotated_folder::{AnnotatedFolder, AnnotatedFolderError};
pub use box_vectors::{BoxRow, BoxVectors, PredictedBoxes, stored_box_vectors};
pub use comparison::{ComparisonContext, ComparisonReport, compare_runs, export_comparison, summary_path};
pub use error::ExportError;
pub use evaluation::{WrittenEvaluation, write_evaluation, write_patterns};
pub use image_pool::{ImageFileError, write_image};
pub use jsonl::jsonl_line;
pub use npy::{VectorsError, rows_file};
pub use report::EvaluatedImages;
pub use review::{
    RunReview, SampleCsv, draw_sample, find_clusters, load_sample, merge_projects, report_of_run, review_population,
    review_sample,
};
pub use row::{EvaluatedBoxes, ExportContext, ExportRow, project_rows};
pub use selection::{find_named, follow_listing, known_predictions, known_samples, matching_samples, stored_sample};
pub use tally::ExportReport;
pub use target::{Existing, ExportTarget, WholeFile};
pub use vectors::{ComparedVectors, Vectors, missing_embeddings, stored_vectors};
pub use verdict_csv::{
    ConflictCsv, ImportedVerdicts, OtherVerdicts, RejectedRow, VerdictCsvError, export_verdicts, import_verdicts,
    verdicts_as_csv,
};

use self::annotated_folder::AnnotatedWriter;
use self::coco::CocoWriter;
use self::csv_table::CsvWriter;
use self::jsonl::JsonlWriter;
use self::report::ReportWriter;
use self::row::{Chooser, ChosenImage};
use self::tally::Tally;
use self::voc::VocWriter;
use self::yolo::YoloWriter;
use crate::domain::Sample;
use crate::project::Project;
use crate::project::export::options::{ClassChoice, ExportFormat, ExportOptions};
use crate::tasks::TaskControl;

/// A writer of one format. If it is dropped before it is finished, it deletes what it has begun.
trait Writer {
    /// Writes one image and counts what it wrote.
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError>;

    /// Moves the complete output into place.
    fn finish(self: Box<Self>, tally: &mut Tally) -> Result<(), ExportError>;
}

/// Why the next row is not available.
pub type RowError = Box<dyn std::error::Error + Send + Sync>;

/// Writes all rows, in order. Checks `control` before each row and counts there; the caller sets its total.
///
/// # Errors
/// On any error, including cancellation, nothing is left of the export.
pub fn export(
    rows: &mut dyn Iterator<Item = Result<ExportRow, RowError>>,
    context: &ExportContext,
    options: ExportOptions,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<ExportReport, ExportError> {
    let chooser = Chooser::new(context, options)?;
    let mut writer = open(context, options, target, control)?;
    let mut tally = Tally::default();
    for row in rows {
        control.checkpoint()?;
        let row = row.map_err(ExportError::Rows)?;
        if let Some(image) = chooser.choose(&row, &mut tally) {
            writer.write(&image, &mut tally)?;
        }
        control.add_done(1);
    }
    control.checkpoint()?;
    writer.finish(&mut tally)?;
    Ok(ExportReport {
        path: target.path.clone(),
        task: context.task(),
        images: tally.images,
        boxes: tally.boxes,
        notes: tally.notes(options.format, context.task()),
        problems: tally.problems,
    })
}

/// Exports images of a run of a project with their verdicts, as [`export`].
///
/// # Errors
/// As [`export`], the run has no predictions, or the verdicts cannot be read.
pub fn export_run(
    project: Project,
    samples: Vec<Sample>,
    context: &ExportContext,
    options: ExportOptions,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<ExportReport, ExportError> {
    context.run.card.must_predict()?;
    let mut context = context.clone();
    let judgments = project.judgments()?;
    let mut verdicts = judgments.iter().flat_map(|judged| &judged.verdicts);
    if options.format == ExportFormat::Report && verdicts.any(|(target, _)| target.run == Some(context.run.id)) {
        let report = report_of_run(
            &project,
            &context.run,
            RunReview {
                truth: context.truth.as_ref(),
                target_precision: Some(context.target_precision),
                ..RunReview::new(&context.view)
            },
            control,
        )?;
        context.review = Some(Box::new(report));
    }
    control.set_step("");
    control.set_total(Some(samples.len() as u64));
    control.set_done_before(0);
    if options.classes == ClassChoice::Judged {
        context.new_classes = row::new_classes(&judgments, &context.run, &project.given_classes(context.run.id)?);
    }
    let mut rows = project_rows(project, context.run.clone(), samples.into_iter(), judgments);
    export(&mut rows, &context, options, target, control)
}

fn open<'c>(
    context: &'c ExportContext,
    options: ExportOptions,
    target: &ExportTarget,
    control: &'c TaskControl,
) -> Result<Box<dyn Writer + 'c>, ExportError> {
    Ok(match options.format {
        ExportFormat::Jsonl => Box::new(JsonlWriter::create(target, context, options)?),
        ExportFormat::Csv => Box::new(CsvWriter::create(target, context, options)?),
        ExportFormat::Coco => Box::new(CocoWriter::create(target, context, options)?),
        ExportFormat::Yolo => Box::new(YoloWriter::create(target, context, options)?),
        ExportFormat::Voc => Box::new(VocWriter::create(target, context, options)?),
        ExportFormat::AnnotatedImages => Box::new(AnnotatedWriter::create(target, context, options)?),
        ExportFormat::Report => Box::new(ReportWriter::create(target, context, options, control)?),
    })
}
