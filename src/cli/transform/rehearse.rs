//! `spotcheck transform rehearse`: runs the archive's handler locally with the requests of Batch Transform, and
//! compares it with the local model.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::package::{OnnxArgs, find_model};
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::place::{self, S3Args, is_in_s3, is_stdin, parse_location};
use crate::cli::predict::list;
use crate::cli::terminal::{interruptible, print_problems, stdout, step_of, with_progress};
use crate::cli::values::{parse_pair, variant};
use crate::dirs::{AppDirs, Scratch};
use crate::domain::{DeviceChoice, Location, Sample, human_bytes, visible};
use crate::image::decode::DecodeLimits;
use crate::model::onnx::{LoadOptions, OnnxPredictor};
use crate::model::{Predictor, runtime};
use crate::project::export::{Existing, ExportTarget};
use crate::sagemaker::package::{ArchiveKind, Unpacked, fetch, package_model, unpack};
use crate::sagemaker::rehearse::{
    Difference, EDGE_TOLERANCE_PX, Rehearsal, RehearseOptions, RehearseSamples, Rehearsed, RequestForm,
    SCORE_TOLERANCE, rehearse,
};
use crate::sagemaker::spec::transform::{BatchStrategy, DEFAULT_INSTANCE, MAX_PAYLOAD_IN_FLIGHT_MB};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct RehearseArgs {
    /// Archive from `spotcheck transform package`, local or in S3; omit it with --model
    #[arg(value_name = "ARCHIVE", conflicts_with = "model")]
    archive: Option<PathBuf>,
    /// Images: a folder, an image, a TFRecord file, or a JSON Lines file (`.jsonl`) or JSON document (`.json`) with
    /// images, local or in S3
    source: PathBuf,
    /// Model to pack first: model id (see `spotcheck models list`) or ONNX file
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    #[command(flatten)]
    onnx: OnnxArgs,
    /// Number of images, starting with the first
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// Python executable for the handler; needs the packages in the archive's `code/requirements.txt`
    #[arg(long, value_name = "PATH", default_value_t = RehearseOptions::default().python)]
    python: String,
    /// Request format: image sends the file, tfrecord a record, line a line of JSON [default: as in the source]
    #[arg(long = "as", value_name = "FORM", value_parser = variant::<RequestForm>())]
    form: Option<RequestForm>,
    /// Records or lines per request: one, or as many as fit into the payload
    #[arg(
        long,
        value_name = "STRATEGY",
        value_parser = variant::<BatchStrategy>(),
        default_value = "single-record"
    )]
    batch_strategy: BatchStrategy,
    /// MIME type of the requests [default: by the request format]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// `MaxPayloadInMB` of the job in MB; 0 streams chunks without a limit [default: as in `transform start`]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(0..=MAX_PAYLOAD_IN_FLIGHT_MB as i64))]
    max_payload_mb: Option<u32>,
    /// `MaxConcurrentTransforms` of the job; 0 uses the handler's own number [default: as in `transform start`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_PAYLOAD_IN_FLIGHT_MB as i64))]
    max_concurrent: Option<u32>,
    /// EC2 instance type of the job, to choose --max-concurrent
    #[arg(long, value_name = "TYPE", default_value = DEFAULT_INSTANCE)]
    instance_type: String,
    /// Environment variable for the container; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    /// Handler startup timeout in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = RehearseOptions::default().ready_within.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    ready_within: u64,
    /// Device for the local model
    #[arg(long, default_value = "cpu")]
    device: DeviceChoice,
    /// URL of a running TensorFlow Serving, for an archive with a `SavedModel`:
    /// `http://host:8501/v1/models/NAME:predict`
    #[arg(long, value_name = "URL", conflicts_with = "model")]
    tensorflow_serving: Option<String>,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) fn run(args: &RehearseArgs) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Bytes)?;
    if args.archive.is_none() && args.model.is_none() {
        bail!(
            "no model for {}: add --model, or put an archive from `spotcheck transform package` before the images",
            args.source.display()
        );
    }
    let (archive, place) = args.places()?;
    let source = place::open(&place, &control)?.source;
    let page = list(&source, Some(args.samples as usize), &control)?;
    print_problems("skipped ", &page.problems);
    if page.samples.is_empty() {
        bail!("No images in {}", source.name());
    }
    let samples = RehearseSamples { source, samples: page.samples.into(), limits: DecodeLimits::default() };
    let scratch = Scratch::new().context("Could not create a folder for temporary files")?;
    let archive = unpacked(args, archive, scratch.path(), &control)?;
    let predictor = predictor(&archive, args, &control)?;
    let (images, _cancel) = step_of(&control, ProgressUnit::Images);
    let rehearsal = with_progress("Rehearsing", &images, || {
        rehearse(&archive, predictor.as_ref(), &samples, &args.options(), scratch.path(), &images)
    })?;
    report(&rehearsal, &samples.samples)
}

impl RehearseArgs {
    /// The archive, if given, and the images.
    fn places(&self) -> anyhow::Result<(Option<Location>, Location)> {
        let archive = self.archive.as_deref();
        let of_source = self.s3.for_path(&self.source, archive.is_some_and(is_in_s3));
        let archive = archive.map(|archive| parse_location(archive, self.s3.for_path(archive, true))).transpose()?;
        Ok((archive, parse_location(&self.source, of_source)?))
    }

    fn options(&self) -> RehearseOptions {
        RehearseOptions {
            python: self.python.clone(),
            form: self.form,
            strategy: self.batch_strategy,
            content_type: self.content_type.clone(),
            max_payload_mb: self.max_payload_mb,
            max_concurrent: self.max_concurrent,
            instance_type: self.instance_type.clone(),
            environment: self.env.iter().cloned().collect(),
            ready_within: Duration::from_secs(self.ready_within),
            tensorflow_serving: self.tensorflow_serving.clone(),
        }
    }
}

/// The archive unpacked in `folder`, first downloaded if it is in S3, or packed if a model was named.
fn unpacked(
    args: &RehearseArgs,
    archive: Option<Location>,
    folder: &Path,
    control: &TaskControl,
) -> anyhow::Result<Unpacked> {
    let here = folder.join("model.tar.gz");
    if archive.is_some() {
        args.onnx.must_not_be_given("an archive has fixed settings")?;
    }
    let archive = match archive {
        Some(Location::S3(place)) => {
            let s3 = Aws::new().s3(&place.access);
            with_progress("Fetching", control, || fetch(&s3, &place.address, &here, control))
                .context("Could not fetch the archive")?;
            control.set_done_before(0);
            here
        }
        Some(Location::Path(path)) if is_stdin(&path) => {
            bail!("the archive cannot come from standard input; give its path")
        }
        Some(Location::Path(archive)) => archive,
        None => {
            let model = find_model(args.model.as_deref().unwrap_or_default(), control)?;
            let target = ExportTarget { path: here, existing: Existing::Keep };
            let options = args.onnx.options();
            let packaged = with_progress("Packing", control, || package_model(&model, options, &target, control));
            packaged.context("Could not pack the model")?.path
        }
    };
    let contents = folder.join("archive");
    std::fs::create_dir(&contents).context("Could not create a folder for temporary files")?;
    control.set_done_before(0);
    Ok(with_progress("Unpacking", control, || unpack(&archive, &contents, control))?)
}

/// The archive's own model on this computer; a `SavedModel` runs only in TensorFlow Serving.
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
    let runtime = with_progress("ONNX Runtime", control, || runtime::ensure_loaded(&dirs, None, control))?;
    let options = LoadOptions { device: args.device, keep: *keep, ..LoadOptions::default() };
    let predictor = OnnxPredictor::load(&runtime, model, &options, control)?;
    Ok(Some(Arc::new(predictor)))
}

fn report(rehearsal: &Rehearsal, samples: &[Sample]) -> anyhow::Result<Outcome> {
    for note in &rehearsal.notes {
        eprintln!("note: {note}");
    }
    let width = samples.iter().map(|sample| sample.name.chars().count()).max();
    let width = width.unwrap_or_default().min(48);
    let mut table = String::new();
    for (sample, image) in samples.iter().zip(&rehearsal.images) {
        let _ = writeln!(table, "{:width$}  {}", visible(&sample.name), describe(image));
    }
    stdout().write_all(table.as_bytes())?;

    print_speed(rehearsal);
    let total = rehearsal.images.len();
    let refused = rehearsal.refused_by_both();
    if refused > 0 {
        let are = images_are(refused);
        eprintln!(
            "note: {are} rejected both locally and by the handler; a job with such images ends as Failed, with \
             outputs for the others"
        );
    }
    let too_large = rehearsal.images.iter().filter_map(|image| match image {
        Rehearsed::TooLarge { needed_mb, .. } => Some(*needed_mb),
        _ => None,
    });
    let needed_mb = too_large.max();
    if let Some(needed_mb) = needed_mb.filter(|mb| *mb <= u64::from(MAX_PAYLOAD_IN_FLIGHT_MB)) {
        eprintln!("note: --max-payload-mb {needed_mb} fits the largest of these images");
    }
    let as_here = rehearsal.images.iter().filter(|image| image.matches_local());
    let others = total - as_here.count();
    if others > 0 {
        bail!("predictions for {others} of {total} images differ from the local model");
    }
    let predicted = rehearsal.predicted();
    let have_predictions = match predicted {
        0 => bail!("the handler returned no prediction, so nothing was compared; use readable images"),
        1 => "1 image has a prediction".to_owned(),
        predicted => format!("{predicted} images have a prediction"),
    };
    if rehearsal.images.contains(&Rehearsed::Predicted) {
        eprintln!("{have_predictions}; there is no local model to compare with");
    } else {
        eprintln!(
            "{have_predictions} equal to the local one (scores within {SCORE_TOLERANCE}, boxes within \
             {EDGE_TOLERANCE_PX} px)"
        );
    }
    Ok(Outcome::AllWell)
}

/// “1 image is”, “3 images are”.
fn images_are(count: usize) -> String {
    match count {
        1 => "1 image is".to_owned(),
        count => format!("{count} images are"),
    }
}

fn print_speed(rehearsal: &Rehearsal) {
    let pace = match rehearsal.images_per_s() {
        Some(rate) => format!(
            "{} sent in {:.1} s, {rate:.1} images/s",
            match rehearsal.sent() {
                1 => "1 image".to_owned(),
                sent => format!("{sent} images"),
            },
            rehearsal.asked_for.as_secs_f64()
        ),
        None => "no image was sent".to_owned(),
    };
    let payload = match rehearsal.max_payload_mb {
        0 => "MaxPayloadInMB 0, streamed".to_owned(),
        payload => format!("MaxPayloadInMB {payload}"),
    };
    eprintln!(
        "the handler was ready after {:.1} s; {pace} ({payload}, {} in parallel)",
        rehearsal.ready_after.as_secs_f64(),
        rehearsal.max_concurrent
    );
}

/// The result for an image, to follow its name.
fn describe(image: &Rehearsed) -> String {
    match image {
        Rehearsed::Equal(difference) => format!("equal      {}", distance(difference)),
        Rehearsed::Different(difference) => format!("DIFFERENT  {}", distance(difference)),
        Rehearsed::Predicted => "predicted".to_owned(),
        Rehearsed::RefusedByBoth { here, .. } => {
            format!("rejected   locally and by the handler: {here}")
        }
        Rehearsed::RefusedHere(reason) => {
            format!("DIFFERENT  predicted by the handler, but the local model {reason}")
        }
        Rehearsed::RefusedThere(reason) => {
            format!("DIFFERENT  predicted locally, but the handler {reason}")
        }
        Rehearsed::TooLarge { bytes, needed_mb } if *needed_mb > u64::from(MAX_PAYLOAD_IN_FLIGHT_MB) => {
            format!(
                "TOO LARGE  {}; a request is at most {MAX_PAYLOAD_IN_FLIGHT_MB} MB unless MaxPayloadInMB is 0, which \
                 streams chunks",
                human_bytes(*bytes)
            )
        }
        Rehearsed::TooLarge { bytes, needed_mb } => format!(
            "TOO LARGE  {} needs MaxPayloadInMB {needed_mb}; SageMaker would end the job with status 413",
            human_bytes(*bytes)
        ),
        Rehearsed::HandlerFailed(reason) => format!("FAILED     {reason}"),
        Rehearsed::Unread(reason) => format!("UNREAD     {reason}"),
    }
}

fn distance(difference: &Difference) -> String {
    if difference.incomparable {
        return "different image size or number of classes".to_owned();
    }
    let mut text = if difference.largest_score > 0.0 {
        format!("scores differ by at most {:.1e}", difference.largest_score)
    } else {
        "equal scores".to_owned()
    };
    if difference.largest_edge_px > 0.0 {
        let _ = write!(text, ", box edges by {:.3} px", difference.largest_edge_px);
    }
    for (count, place) in [(difference.only_here, "here"), (difference.only_there, "by the handler")] {
        if count > 0 {
            let _ = write!(text, ", {count} found only {place}");
        }
    }
    text
}
