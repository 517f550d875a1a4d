//! `spotcheck export`: exports a project for other programs and people.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::Args;

use super::out_file::{check_is_new, check_is_no_input};
use super::place::S3Args;
use super::stored::{
    choose_detector, choose_predictions, choose_run, open_project, open_source, source_name, stored_view,
};
use super::terminal::with_progress;
use super::truth::TruthArgs;
use super::values::{NmsIou, parse_nms_iou, variant};
use super::{Outcome, UsageError};
use crate::cli::terminal::{interruptible, print_problems};
use crate::dirs::AppDirs;
use crate::domain::{RunInfo, Sample, ViewSettings, counted, problem_of};
use crate::evaluation::DRAWS;
use crate::image::capture::CaptureReader;
use crate::image::decode::DecodeLimits;
use crate::image::source::{Source, for_task};
use crate::project::Project;
use crate::project::export::options::{
    AnnotatedKind, BoxChoice, ClassChoice, EmbeddedPart, ExportFormat, ExportOptions, VerdictChoice,
};
use crate::project::export::{
    Existing, ExportContext, ExportError, ExportReport, ExportTarget, export_run, follow_listing, known_samples,
    matching_samples, rows_file,
};
use crate::review::{Query, Target};
use crate::similar::{ExportVectorsError, ModelPlace, export_vectors};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ExportArgs {
    /// Project file (`*.spotcheck`), or the image folder or `s3://bucket/folder/` of a project in the data folder
    project: PathBuf,
    /// Run to export, by name or number [default: the newest of a model]
    #[arg(long, value_name = "NAME|NUMBER")]
    run: Option<String>,
    /// Format: jsonl, csv, coco, yolo, voc, images, report or embeddings (FILE.npy, and FILE.csv with the image of each
    /// row)
    #[arg(long)]
    format: Format,
    /// For embeddings: those of the images or of the boxes [default: images]
    #[arg(long, value_name = "PART", value_parser = variant::<EmbeddedPart>())]
    of: Option<EmbeddedPart>,
    /// Output file, or folder for yolo, voc and images; must not exist without --force
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Replace an existing file, or the folder of an earlier export
    #[arg(long)]
    force: bool,
    /// Export only images that match this search, for example `class:cat score>0.8 !verdict`
    #[arg(long, value_name = "QUERY")]
    filter: Option<String>,
    /// Export all stored boxes and classes, ignoring the project's view settings; accepted and corrected boxes are
    /// always exported
    #[arg(long, conflicts_with_all = ["min_score", "top_k", "nms_iou"])]
    all_boxes: bool,
    /// Minimum score of exported boxes; overrides the project's thresholds
    #[arg(long, value_parser = super::values::parse_score::<f32>)]
    min_score: Option<f32>,
    /// NMS IoU threshold, or `off` [default: from the project, otherwise from the model's card]
    #[arg(long, value_name = "IOU|off", value_parser = parse_nms_iou)]
    nms_iou: Option<NmsIou>,
    /// Number of classes per image for classifiers [default: from the project]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    top_k: Option<u32>,
    /// Boxes to export by verdict: all; without-rejected; or corrected, the ground truth: accepted, corrected and added
    /// boxes of completely judged images. A box without a verdict inherits its image's
    #[arg(long, default_value = "all")]
    verdicts: VerdictChoice,
    /// For coco, yolo and voc: export only the model's boxes and classes, without corrections
    #[arg(long)]
    model_classes: bool,
    /// For yolo: write the score as a sixth column
    #[arg(long)]
    yolo_scores: bool,
    /// For yolo and voc: copy the images next to their labels
    #[arg(long)]
    with_images: bool,
    /// For images: as-image, png or jpeg
    #[arg(long = "image-kind", alias = "picture-kind", default_value = "as-image", value_name = "KIND")]
    annotated_kind: AnnotatedKind,
    /// For report: find the lowest minimum score with at least this precision, from 0 to 1 [default: 0.95]
    #[arg(long, value_name = "PRECISION", value_parser = super::values::parse_score::<f64>)]
    target_precision: Option<f64>,
    #[command(flatten)]
    truth: TruthArgs,
    #[command(flatten)]
    s3: S3Args,
}

/// What `--format` accepts.
#[derive(Debug, Clone, Copy)]
enum Format {
    Run(ExportFormat),
    Embeddings,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        if word == "embeddings" { Ok(Self::Embeddings) } else { word.parse().map(Self::Run) }
    }
}

impl ExportArgs {
    /// The first given option that does not apply to embeddings.
    fn option_about_predictions(&self) -> Option<&'static str> {
        let given = [
            (self.all_boxes, "--all-boxes"),
            (self.min_score.is_some(), "--min-score"),
            (self.nms_iou.is_some(), "--nms-iou"),
            (self.top_k.is_some(), "--top-k"),
            (self.verdicts != VerdictChoice::All, "--verdicts"),
            (self.model_classes, "--model-classes"),
            (self.yolo_scores, "--yolo-scores"),
            (self.with_images, "--with-images"),
            (self.annotated_kind != AnnotatedKind::AsImage, "--image-kind"),
            (self.target_precision.is_some(), "--target-precision"),
            (self.truth.is_given(), "--truth"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

    /// The first given option that does not apply to a format, and the formats that it applies to.
    fn option_of_other_formats(&self, format: ExportFormat) -> Option<(&'static str, &'static str)> {
        use ExportFormat::{AnnotatedImages, Report, Voc, Yolo};
        let given = [
            (self.yolo_scores, &[Yolo][..], ("--yolo-scores", "yolo")),
            (self.with_images, &[Yolo, Voc], ("--with-images", "yolo or voc")),
            (self.annotated_kind != AnnotatedKind::AsImage, &[AnnotatedImages], ("--image-kind", "images")),
            (self.target_precision.is_some(), &[Report], ("--target-precision", "report")),
            (self.truth.is_given(), &[Report, AnnotatedImages], ("--truth", "report or images")),
        ];
        given.into_iter().find(|(is_given, of, _)| *is_given && !of.contains(&format)).map(|(.., names)| names)
    }

    /// # Errors
    /// Options that exclude each other.
    fn check_combination(&self) -> Result<(), UsageError> {
        let reason = match self.format {
            Format::Run(format) => self.conflict(format),
            Format::Embeddings => self.embeddings_conflict(),
        };
        reason.map_or(Ok(()), |reason| Err(UsageError(reason)))
    }

    fn conflict(&self, format: ExportFormat) -> Option<String> {
        if self.of.is_some() {
            return Some("--of is for embeddings; leave it out, or add --format embeddings".to_owned());
        }
        if self.model_classes && !format.is_dataset() {
            return Some(format!(
                "--model-classes is for coco, yolo and voc; --format {} exports the model's boxes and classes next to \
                 their corrections",
                format.into_str()
            ));
        }
        if let Some((option, formats)) = self.option_of_other_formats(format) {
            return Some(format!(
                "{option} is for --format {formats}, not for --format {}; leave it out",
                format.into_str()
            ));
        }
        if self.verdicts != VerdictChoice::Corrected {
            return None;
        }
        let reason = if self.model_classes || self.all_boxes {
            "--verdicts corrected exports what a person confirmed; remove --model-classes and --all-boxes"
        } else if format == ExportFormat::Report {
            "the report shows the model's own boxes; export corrected labels as coco, yolo, voc, csv or jsonl"
        } else {
            return None;
        };
        Some(reason.to_owned())
    }

    fn embeddings_conflict(&self) -> Option<String> {
        if self.filter.is_some() {
            return Some("--filter is not for embeddings; select rows by the uri in the table".to_owned());
        }
        if let Some(option) = self.option_about_predictions() {
            return Some(format!("{option} is about predictions, and all embeddings are exported; leave it out"));
        }
        (self.out == rows_file(&self.out)).then(|| ExportError::IsTable { path: self.out.clone() }.to_string())
    }

    fn options(&self, format: ExportFormat) -> ExportOptions {
        ExportOptions {
            format,
            boxes: if self.all_boxes { BoxChoice::All } else { BoxChoice::Visible },
            verdicts: self.verdicts,
            classes: if self.model_classes { ClassChoice::Model } else { ClassChoice::Judged },
            yolo_scores: self.yolo_scores,
            with_images: self.with_images,
            annotated_kind: self.annotated_kind,
        }
    }

    fn target(&self) -> ExportTarget {
        ExportTarget { path: self.out.clone(), existing: Existing::from_force(self.force) }
    }
}

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    if args.out.as_os_str() == "-" {
        bail!("cannot export to stdout; give a file or folder to --out");
    }
    args.check_combination()?;
    let format = match args.format {
        Format::Run(format) => format,
        Format::Embeddings => return export_embeddings(args),
    };
    check_is_new(&args.out, args.force)?;
    check_is_no_input(&args.out, &args.truth.inputs())?;
    let query = parse_query(args.filter.as_deref().unwrap_or_default())?;
    let dirs = AppDirs::find()?;
    let project = open_project(&args.project, &args.s3, &dirs, "spotcheck export")?;
    let run = choose_predictions(&project, args.run.as_deref(), "exporting")?;
    let view = view_of(&project, &run, args)?;
    if query.needs_truth() || query.needs_patterns() {
        bail!(
            "--filter: this search needs ground truth, which `export` does not search; search in the window and export \
             “Search results” there"
        );
    }
    if query.needs_duplicates() {
        bail!(
            "--filter: `duplicate` and `copy` need “Find duplicates” in the window; tag the copies there and filter by \
             '!tag:duplicate', or use `spotcheck duplicates`"
        );
    }
    if query.needs_comparison() || query.needs_picked() {
        bail!(
            "--filter: this search needs a comparison of two runs or a selection on the map, which `export` does not have; \
             search in the window and export “Search results” there"
        );
    }
    if query.needs_similarity() {
        bail!("--filter: name the image to compare with: alike:NAME, as in \"alike:cat.jpg alike>0.8\"");
    }
    for warning in query.warnings(run.card.stored_as(), &run.labels, &[]) {
        eprintln!("note: --filter: {warning}");
    }
    let control = interruptible(ProgressUnit::Images)?;

    let source = open_source(&project, &args.s3, &control)?;
    let report = with_progress("Exporting", &control, || -> anyhow::Result<ExportReport> {
        control.set_step("project");
        let judgments = project.judgments()?;
        let mut samples = known_samples(&project, run.id, &judgments, &control)?;
        follow_listing(&mut samples, &*for_task(&source, &control));
        control.checkpoint()?;
        if query.needs_captures() {
            control.set_step("EXIF data");
            read_captures(&mut samples, &*for_task(&source, &control), "--filter", &control)?;
        }
        let draws = if format == ExportFormat::Report { DRAWS } else { 0 };
        let evaluate = || args.truth.evaluate(&args.s3, (&project, &run, &view), &samples, draws, &control);
        let (evaluation, truth) = args.truth.is_given().then(evaluate).transpose()?.unzip();
        let samples = matching_samples(samples, &project, &run, &view, &query, &judgments, &control)?;
        let context = ExportContext {
            run,
            view,
            source_name: source_name(&project),
            source,
            limits: DecodeLimits::default(),
            evaluation,
            truth,
            target_precision: args.target_precision.unwrap_or(Target::USUAL),
            review: None,
            new_classes: Vec::new(),
        };
        let exported = export_run(project, samples, &context, args.options(format), &args.target(), &control);
        exported.with_context(|| format!("Could not export as {}", format.into_str()))
    })?;
    Ok(conclude(&report))
}

/// Writes the run's embeddings, and next to them a table with the image of each row.
fn export_embeddings(args: &ExportArgs) -> anyhow::Result<Outcome> {
    check_is_new(&args.out, args.force)?;
    check_is_new(&rows_file(&args.out), args.force)?;
    let dirs = AppDirs::find()?;
    let project = open_project(&args.project, &args.s3, &dirs, "spotcheck export")?;
    let part = args.of.unwrap_or(EmbeddedPart::Images);
    let choose = if part == EmbeddedPart::Boxes { choose_detector } else { choose_run };
    let run = choose(&project, args.run.as_deref(), "exporting")?;
    let control = interruptible(ProgressUnit::Images)?;
    let place = ModelPlace { dirs: &dirs, runtime_library: None };
    let present = || {
        let source = open_source(&project, &args.s3, &control).ok()?;
        let listed = for_task(&source, &control).pages().flat_map(|page| page.samples);
        Some(listed.map(|sample| (sample.uri.clone(), sample.stamp())).collect())
    };
    let exported = with_progress("Reading", &control, || {
        export_vectors(&project, &run, part, present, &place, &args.target(), &control)
    });
    let exported = exported.map_err(|error| match error {
        ExportVectorsError::Missing(_) | ExportVectorsError::Cancelled(_) => anyhow::Error::from(error),
        error => anyhow::Error::from(error).context("Could not export the embeddings"),
    })?;
    for note in &exported.notes {
        eprintln!("note: {note}");
    }
    eprintln!("{}", exported.summary);
    Ok(Outcome::AllWell)
}

/// Reads the EXIF data that an option needs.
pub(crate) fn read_captures(
    samples: &mut [Sample],
    source: &dyn Source,
    option: &str,
    control: &TaskControl,
) -> anyhow::Result<()> {
    let mut reader = CaptureReader::default();
    let mut unread = Vec::new();
    for chunk in samples.chunks_mut(CaptureReader::CHUNK) {
        control.checkpoint()?;
        let read = reader.read(source, chunk);
        for (sample, read) in chunk.iter_mut().zip(read) {
            match read {
                Ok(capture) => sample.capture = Some(capture),
                Err(error) => unread.push(problem_of(&sample.name, &error.to_string())),
            }
        }
    }
    control.checkpoint()?;
    if let Some(first) = unread.first() {
        let images = counted(unread.len(), "image", "images");
        eprintln!("note: {option}: the EXIF data of {images} could not be read: {first}");
    }
    Ok(())
}

fn parse_query(text: &str) -> anyhow::Result<Query> {
    Query::parse(text).map_err(|error| anyhow::anyhow!("--filter: {}", error.message))
}

/// The project's last view settings, overridden by the flags.
fn view_of(project: &Project, run: &RunInfo, args: &ExportArgs) -> anyhow::Result<ViewSettings> {
    let mut view = stored_view(project, run)?;
    if let Some(min_score) = args.min_score {
        view.min_score = min_score;
        view.min_class_score = min_score;
        view.min_score_by_class.clear();
    }
    if let Some(NmsIou(iou)) = args.nms_iou {
        view.nms_iou = iou;
    }
    if let Some(top_k) = args.top_k {
        view.top_k = top_k as usize;
    }
    Ok(view)
}

/// Reports the result, and returns the outcome for the exit code.
fn conclude(report: &ExportReport) -> Outcome {
    for note in &report.notes {
        eprintln!("note: {note}");
    }
    print_problems("failed ", &report.problems);
    eprintln!("{report}");
    if report.problems.is_empty() { Outcome::AllWell } else { Outcome::SomeImagesFailed }
}
