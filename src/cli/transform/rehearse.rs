//! `spotcheck transform rehearse`: the archive's own handler, asked as Batch Transform asks it, against this machine.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::package::{OnnxArgs, find_model};
use crate::cli::Outcome;
use crate::cli::place::{Place, S3Args};
use crate::cli::predict::list;
use crate::cli::progress::with_progress;
use crate::decode::DecodeLimits;
use crate::dirs::AppDirs;
use crate::domain::{
    DEFAULT_PAYLOAD_MB, DeviceChoice, MAX_PAYLOAD_IN_FLIGHT_MB, Sample, human_bytes,
};
use crate::export::{Existing, ExportTarget};
use crate::inference::{LoadOptions, OnnxPredictor, runtime};
use crate::remote::package::{ArchiveKind, Unpacked, package_model, unpack};
use crate::remote::rehearse::{
    Difference, EDGE_TOLERANCE_PX, Rehearsal, RehearseOptions, RehearseSamples, Rehearsed,
    RequestForm, SCORE_TOLERANCE, rehearse,
};
use crate::tasks::{ProgressUnit, TaskControl};
use crate::vision::Predictor;

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(super) struct RehearseArgs {
    /// An archive of `spotcheck transform package`; leave it away with --model
    #[arg(value_name = "ARCHIVE", conflicts_with = "model")]
    archive: Option<PathBuf>,
    /// A folder, an image, a TFRecord file, or `s3://bucket/folder/`
    source: PathBuf,
    /// Pack this model first, as `transform package` would: one of `spotcheck models list`, or an ONNX file
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    #[command(flatten)]
    onnx: OnnxArgs,
    /// How many images are tried: the first ones
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// The Python that runs the handler; it needs what the archive's `code/requirements.txt` lists
    #[arg(long, value_name = "PATH", default_value_t = RehearseOptions::default().python)]
    python: String,
    /// How the images are sent; without it as they lie in the source
    #[arg(long = "as", value_name = "FORM")]
    form: Option<Form>,
    /// `MaxPayloadInMB` of the job, 0 for no limit
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_PAYLOAD_MB, value_parser = clap::value_parser!(u32).range(0..=MAX_PAYLOAD_IN_FLIGHT_MB as i64))]
    max_payload_mb: u32,
    /// `MaxConcurrentTransforms` of the job; without it as many as the handler asks for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    max_concurrent: Option<u32>,
    /// Where the model runs on this machine, to compare with
    #[arg(long, default_value = "cpu")]
    device: DeviceChoice,
    /// For an archive with a `SavedModel`: a running TensorFlow Serving, `http://host:8501/v1/models/NAME:predict`
    #[arg(long, value_name = "URL", conflicts_with = "model")]
    tensorflow_serving: Option<String>,
    #[command(flatten)]
    s3: S3Args,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// Each image as it is (`SplitType` None)
    Image,
    /// Each in a record of its own (`SplitType` TFRecord)
    Tfrecord,
    /// Each in a line of JSON (`SplitType` Line)
    Line,
}

impl From<Form> for RequestForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Image => Self::Image,
            Form::Tfrecord => Self::TfRecord,
            Form::Line => Self::Line,
        }
    }
}

pub(super) fn run(args: &RehearseArgs) -> anyhow::Result<Outcome> {
    let control = TaskControl::new(ProgressUnit::Bytes);
    let on_interrupt = control.clone();
    ctrlc::set_handler(move || on_interrupt.cancel()).context("Could not listen for Ctrl+C")?;
    if args.archive.is_none() && args.model.is_none() {
        bail!(
            "nothing says which model is rehearsed over {}: --model packs one of this machine first, or an archive of `spotcheck transform package` \
             goes before the images",
            args.source.display()
        );
    }
    let source = Place::parse(&args.source, &args.s3)?.open(&control)?.source;
    let page = list(&source, Some(args.samples as usize), &control)?;
    for problem in &page.problems {
        eprintln!("skipped {problem}");
    }
    if page.samples.is_empty() {
        bail!("there is no image in {}", source.name());
    }
    let samples = RehearseSamples {
        source,
        samples: page.samples.into(),
        limits: DecodeLimits::default(),
    };
    let folder = tempfile::tempdir().context("Could not make a folder for temporary files")?;
    let archive = unpacked(args, folder.path(), &control)?;
    let predictor = predictor(&archive, args, &control)?;
    let images = TaskControl::new(ProgressUnit::Images);
    let of_images = images.clone();
    let _cancel = control.on_cancel(move || of_images.cancel());
    let rehearsal = with_progress("Rehearsing", &images, || {
        rehearse(
            &archive,
            predictor.as_ref(),
            &samples,
            &args.options(),
            &images,
        )
    })?;
    report(&rehearsal, &samples.samples)
}

impl RehearseArgs {
    fn options(&self) -> RehearseOptions {
        RehearseOptions {
            python: self.python.clone(),
            form: self.form.map(RequestForm::from),
            max_payload_mb: self.max_payload_mb,
            max_concurrent: self.max_concurrent,
            tensorflow_serving: self.tensorflow_serving.clone(),
        }
    }
}

/// The archive in `folder`, packed there first where a model was named.
fn unpacked(args: &RehearseArgs, folder: &Path, control: &TaskControl) -> anyhow::Result<Unpacked> {
    let packed;
    let archive = match (&args.archive, &args.model) {
        (Some(archive), _) => {
            args.onnx
                .must_not_be_given("in an archive they are fixed")?;
            archive
        }
        (None, model) => {
            let model = find_model(model.as_deref().unwrap_or_default(), control)?;
            let target = ExportTarget {
                path: folder.join("model.tar.gz"),
                existing: Existing::Keep,
            };
            let options = args.onnx.options();
            let packaged = with_progress("Packing", control, || {
                package_model(&model, options, &target, control)
            });
            packed = packaged.context("Could not pack the model")?.path;
            &packed
        }
    };
    let contents = folder.join("archive");
    std::fs::create_dir(&contents).context("Could not make a folder for temporary files")?;
    control.set_done_before(0);
    Ok(with_progress("Unpacking", control, || {
        unpack(archive, &contents, control)
    })?)
}

/// The archive's own model on this machine; a `SavedModel` runs nowhere but in TensorFlow Serving.
fn predictor(
    archive: &Unpacked,
    args: &RehearseArgs,
    control: &TaskControl,
) -> anyhow::Result<Option<Arc<dyn Predictor>>> {
    let ArchiveKind::Onnx { model, keep } = &archive.kind else {
        return Ok(None);
    };
    control.set_total(None);
    control.set_done_before(0);
    control.set_step("");
    let dirs = AppDirs::find()?;
    let runtime = with_progress("ONNX Runtime", control, || {
        runtime::ensure_loaded(&dirs, None, control)
    })?;
    let options = LoadOptions {
        device: args.device,
        keep: *keep,
        ..LoadOptions::default()
    };
    let predictor = OnnxPredictor::load(&runtime, model, &options, control)?;
    Ok(Some(Arc::new(predictor)))
}

fn report(rehearsal: &Rehearsal, samples: &[Sample]) -> anyhow::Result<Outcome> {
    for note in &rehearsal.notes {
        eprintln!("note: {note}");
    }
    let width = samples
        .iter()
        .map(|sample| sample.name.chars().count())
        .max();
    let width = width.unwrap_or_default().min(48);
    let mut table = String::new();
    for (sample, image) in samples.iter().zip(&rehearsal.images) {
        let _ = writeln!(table, "{:width$}  {}", sample.name, describe(image));
    }
    std::io::stdout().lock().write_all(table.as_bytes())?;

    let count =
        |is: fn(&Rehearsed) -> bool| rehearsal.images.iter().filter(|image| is(image)).count();
    eprintln!(
        "the handler was ready after {:.1} s; {} images in {:.1} s, {:.1} images/s, {} at once",
        rehearsal.ready_after.as_secs_f64(),
        rehearsal.images.len(),
        rehearsal.asked_for.as_secs_f64(),
        rehearsal.images_per_s(),
        rehearsal.max_concurrent
    );
    let refused = count(|image| matches!(image, Rehearsed::RefusedByBoth { .. }));
    if refused > 0 {
        eprintln!(
            "note: {refused} images are refused here and there; a job over them ends Failed, with the outputs of the others"
        );
    }
    let too_large = rehearsal.images.iter().filter_map(|image| match image {
        Rehearsed::TooLarge { needed_mb, .. } => Some(*needed_mb),
        _ => None,
    });
    if let Some(needed_mb) = too_large.max() {
        eprintln!("note: --max-payload-mb {needed_mb} would take the largest of these images");
    }
    let total = rehearsal.images.len();
    let as_here = count(Rehearsed::is_as_here);
    if as_here < total {
        bail!(
            "{} of {total} images do not come back as here",
            total - as_here
        );
    }
    if count(|image| *image == Rehearsed::Answered) == total {
        eprintln!(
            "all {total} images were answered; there is no model on this machine to compare with"
        );
    } else {
        eprintln!(
            "all {total} answers are as here: scores within {SCORE_TOLERANCE}, boxes within {EDGE_TOLERANCE_PX} px"
        );
    }
    Ok(Outcome::AllWell)
}

/// What became of an image, to go on after its name.
fn describe(image: &Rehearsed) -> String {
    match image {
        Rehearsed::Equal(difference) => format!("equal      {}", distance(difference)),
        Rehearsed::Different(difference) => format!("DIFFERENT  {}", distance(difference)),
        Rehearsed::Answered => "answered".to_owned(),
        Rehearsed::RefusedByBoth { here, .. } => {
            format!("refused    here and by the handler: {here}")
        }
        Rehearsed::RefusedHere(reason) => {
            format!("DIFFERENT  answered by the handler, but here it {reason}")
        }
        Rehearsed::RefusedThere(reason) => {
            format!("DIFFERENT  answered here, but for the handler it {reason}")
        }
        Rehearsed::TooLarge { bytes, needed_mb } => format!(
            "TOO LARGE  {} need MaxPayloadInMB {needed_mb}; SageMaker would end the job with status 413",
            human_bytes(*bytes)
        ),
        Rehearsed::HandlerFailed(reason) => format!("FAILED     {reason}"),
        Rehearsed::Unread(reason) => format!("UNREAD     {reason}"),
    }
}

fn distance(difference: &Difference) -> String {
    if difference.incomparable {
        return "another size of the picture, or another number of classes".to_owned();
    }
    let mut text = if difference.largest_score > 0.0 {
        format!("scores differ by at most {:.1e}", difference.largest_score)
    } else {
        "the same scores".to_owned()
    };
    if difference.largest_edge_px > 0.0 {
        let _ = write!(text, ", edges by {:.3} px", difference.largest_edge_px);
    }
    for (count, place) in [
        (difference.only_here, "here"),
        (difference.only_there, "by the handler"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} found only {place}");
        }
    }
    text
}
