//! Rehearses a job before it costs money: the archive is unpacked and run by the user's Python, gets the same requests
//! as from Batch Transform, and its responses are compared with local predictions.
//!
//! Runs no model itself: the local predictions come from a [`Predictor`].

mod difference;
mod handler;
mod requests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::domain::Sample;
use crate::image::decode::DecodeLimits;
use crate::image::source::{Source, for_task};
use crate::model::Predictor;
use crate::predict::{PredictRequest, SampleResult, Stopped, predict};
use crate::sagemaker::package::{ArchiveKind, PackageError, Unpacked};
use crate::sagemaker::spec::transform::{BatchStrategy, DEFAULT_INSTANCE};
use crate::tasks::{Cancelled, TaskControl};
use handler::{Environment, Handler, Launch};
use requests::{HandlerClient, HandlerResult};

pub use difference::{Difference, EDGE_TOLERANCE_PX, SCORE_TOLERANCE};
pub use requests::{RequestForm, RequestLimits};

/// Enough for a model of several gigabytes on a slow disk.
const READY_WITHIN: Duration = Duration::from_mins(5);
const PLAIN_SERVER: &str = "code/serve.py";
/// The variables of SageMaker's TensorFlow container.
const SAVED_MODEL_SERVER: &[(&str, &str)] = &[
    ("serve.py", include_str!("../../../assets/handler/serve.py")),
    ("serve_saved_model.py", include_str!("../../../assets/rehearse/serve_saved_model.py")),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehearseOptions {
    /// A program: `python3`, or a path.
    pub python: String,
    /// `None`: as each image is in its source.
    pub form: Option<RequestForm>,
    /// Whether a request has one record, or as many as fit into the payload, framed as in their file.
    pub strategy: BatchStrategy,
    /// `None` uses the default of the form.
    pub content_type: Option<String>,
    /// `0..=100`; 0 for chunks without a limit; `None`: as a job would choose it, by the largest request.
    pub max_payload_mb: Option<u32>,
    /// `1..=100`; 0 asks the handler; `None`: as a job would choose it, by the instance's processor.
    pub max_concurrent: Option<u32>,
    /// `ml.m5.xlarge`; the rehearsal itself runs locally.
    pub instance_type: String,
    /// The environment variables of the model and the job.
    pub environment: BTreeMap<String, String>,
    /// The time limit until the handler responds to GET /ping.
    pub ready_within: Duration,
    /// The predict URL of a `SavedModel`: `http://host:8501/v1/models/NAME:predict`.
    pub tensorflow_serving: Option<String>,
}

impl Default for RehearseOptions {
    fn default() -> Self {
        Self {
            python: if cfg!(windows) { "python" } else { "python3" }.to_owned(),
            form: None,
            strategy: BatchStrategy::SingleRecord,
            content_type: None,
            max_payload_mb: None,
            max_concurrent: None,
            instance_type: DEFAULT_INSTANCE.to_owned(),
            environment: BTreeMap::new(),
            ready_within: READY_WITHIN,
            tensorflow_serving: None,
        }
    }
}

pub struct RehearseSamples {
    pub source: Arc<dyn Source>,
    pub samples: Arc<[Sample]>,
    pub limits: DecodeLimits,
}

#[derive(Debug)]
pub struct Rehearsal {
    /// One result per sample, in order.
    pub images: Vec<Rehearsed>,
    /// The time from the handler's start to its response to GET /ping.
    pub ready_after: Duration,
    /// The time from the first request to the last response.
    pub asked_for: Duration,
    /// `0..=100`; 0 for chunks without a limit.
    pub max_payload_mb: u32,
    /// The number of parallel requests, `1..`.
    pub max_concurrent: u32,
    /// Notes about differences from the container.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Rehearsed {
    /// The predictions are equal within the tolerances.
    Equal(Difference),
    Different(Difference),
    /// A prediction without a local one to compare with.
    Predicted,
    /// A job with it ends as Failed, with the outputs of the others.
    RefusedByBoth {
        here: String,
        there: String,
    },
    RefusedHere(String),
    RefusedThere(String),
    /// Larger than the payload limit, so SageMaker does not send it.
    TooLarge {
        bytes: u64,
        needed_mb: u64,
    },
    /// The handler failed, did not respond, or responded with something else.
    HandlerFailed(String),
    /// The image could not be read from its source.
    Unread(String),
}

impl Rehearsed {
    /// Whether the container behaves like this computer.
    pub fn matches_local(&self) -> bool {
        matches!(self, Self::Equal(_) | Self::Predicted | Self::RefusedByBoth { .. })
    }

    /// Whether the image was sent to the handler, whatever the result.
    fn was_sent(&self) -> bool {
        !matches!(self, Self::TooLarge { .. } | Self::Unread(_))
    }
}

impl Rehearsal {
    /// Images sent to the handler.
    pub fn sent(&self) -> usize {
        self.images.iter().filter(|image| image.was_sent()).count()
    }

    /// Images that the handler predicted, whether or not equal to the local prediction.
    pub fn predicted(&self) -> usize {
        let is_response = |image: &&Rehearsed| {
            matches!(
                image,
                Rehearsed::Equal(_) | Rehearsed::Different(_) | Rehearsed::Predicted | Rehearsed::RefusedHere(_)
            )
        };
        self.images.iter().filter(is_response).count()
    }

    /// Images that both refuse.
    pub fn refused_by_both(&self) -> usize {
        let is_refused = |image: &&Rehearsed| matches!(image, Rehearsed::RefusedByBoth { .. });
        self.images.iter().filter(is_refused).count()
    }

    /// The handler's rate on this computer; a container has another CPU. `None` if no image was sent.
    pub fn images_per_s(&self) -> Option<f64> {
        let sent = self.sent();
        (sent > 0).then(|| sent as f64 / self.asked_for.as_secs_f64().max(1e-9))
    }
}

/// Starts the handler of `archive`, sends it every sample, and compares its responses with those of `predictor`, which
/// must be loaded from the same archive. `scratch` is an empty folder for the handler's input and output. A
/// `SavedModel` has no handler; its predictions are not compared. Progress is in images, twice as many with two
/// predictions.
///
/// # Errors
/// The handler does not run, and why; or the task was canceled. No process is left then.
pub fn rehearse(
    archive: &Unpacked,
    predictor: Option<&Arc<dyn Predictor>>,
    samples: &RehearseSamples,
    options: &RehearseOptions,
    scratch: &Path,
    control: &TaskControl,
) -> Result<Rehearsal, RehearseError> {
    let [scripts, home] = ["scripts", "home"].map(|name| scratch.join(name));
    for folder in [&scripts, &home] {
        std::fs::create_dir(folder).map_err(RehearseError::Temporary)?;
    }
    // Checked first: missing Python packages do not matter with TensorFlow Serving.
    let (script, mut environment) = server(archive, options, &scripts)?;
    let requirements = archive.folder.join("code/requirements.txt");
    let python = handler::check_python(&options.python, &requirements, &scripts)?;
    let source = for_task(&samples.source, control);
    control.set_step("Reading the images");
    let largest = largest_request(source.as_ref(), &samples.samples, options, control)?;
    let limits = RequestLimits::new(options, largest)?;
    environment.extend(options.environment.clone());
    environment.extend(job_variables(options.strategy, &limits));
    let count = samples.samples.len();
    control.set_total(Some((count * (1 + usize::from(predictor.is_some()))) as u64));

    control.set_step("Starting the handler");
    let begun = Instant::now();
    let launch = Launch {
        python: &python,
        script: &script,
        folder: &archive.folder,
        home: &home,
        environment,
        ready_within: options.ready_within,
    };
    let handler = Handler::start(&launch, control)?;
    let ready_after = begun.elapsed();

    // Sequential: in parallel, both would share the CPU, and the handler's rate would be wrong.
    let here = predictor.map(|predictor| predict_here(predictor, samples, control)).transpose()?;
    control.set_step("Calling the handler");
    let requests = HandlerClient { handler: &handler, source: source.as_ref(), options, limits };
    let max_concurrent = limits.max_concurrent.or_else(|| handler.max_concurrent()).unwrap_or(1);
    let begun = Instant::now();
    let there = requests.predict_all(&samples.samples, max_concurrent, control)?;
    let asked_for = begun.elapsed();
    let images = match here {
        None => there.into_iter().map(HandlerResult::without_comparison).collect(),
        Some(here) => compare(there, here, &archive.kind),
    };
    Ok(Rehearsal {
        images,
        ready_after,
        asked_for,
        max_payload_mb: limits.max_payload_mb,
        max_concurrent,
        notes: python.notes,
    })
}

/// Compares the handler's results with those of the local model.
fn compare(there: Vec<HandlerResult>, here: Vec<SampleResult>, kind: &ArchiveKind) -> Vec<Rehearsed> {
    let (min_score, nms_iou) = match kind {
        ArchiveKind::Onnx { model, keep } => (keep.min_score, model.card.nms_iou()),
        ArchiveKind::SavedModel => (0.0, None),
    };
    // The handler returns the boxes that `spotcheck predict` writes.
    let here = here.into_iter().map(|here| here.map(|prediction| prediction.without_overlaps(nms_iou)));
    there.into_iter().zip(here).map(|(there, here)| there.compared_with(here, min_score)).collect()
}

/// The server's script and its environment.
fn server(
    archive: &Unpacked,
    options: &RehearseOptions,
    scripts: &Path,
) -> Result<(PathBuf, Environment), RehearseError> {
    let mut environment = Environment::new();
    match (&archive.kind, &options.tensorflow_serving) {
        (ArchiveKind::Onnx { .. }, None) => Ok((archive.folder.join(PLAIN_SERVER), environment)),
        (ArchiveKind::Onnx { .. }, Some(_)) => Err(RehearseError::NeedsNoTensorFlowServing),
        (ArchiveKind::SavedModel, None) => Err(RehearseError::NeedsTensorFlowServing),
        (ArchiveKind::SavedModel, Some(address)) => {
            for (name, text) in SAVED_MODEL_SERVER {
                std::fs::write(scripts.join(name), text).map_err(RehearseError::Temporary)?;
            }
            let folder = archive.folder.to_string_lossy().into_owned();
            environment.extend([
                ("SPOTCHECK_TENSORFLOW_SERVING".to_owned(), address.clone()),
                ("SPOTCHECK_ARCHIVE".to_owned(), folder),
            ]);
            Ok((scripts.join("serve_saved_model.py"), environment))
        }
    }
}

/// The variables that SageMaker sets for a job.
fn job_variables(strategy: BatchStrategy, limits: &RequestLimits) -> Environment {
    let strategy = match strategy {
        BatchStrategy::SingleRecord => "SINGLE_RECORD",
        BatchStrategy::MultiRecord => "MULTI_RECORD",
    };
    let payload = limits.max_payload_mb.to_string();
    let mut environment = Environment::from([
        ("SAGEMAKER_BATCH".to_owned(), "true".to_owned()),
        ("SAGEMAKER_BATCH_STRATEGY".to_owned(), strategy.to_owned()),
        ("SAGEMAKER_MAX_PAYLOAD_IN_MB".to_owned(), payload),
    ]);
    if let Some(count) = limits.max_concurrent {
        let name = "SAGEMAKER_MAX_CONCURRENT_TRANSFORMS".to_owned();
        environment.insert(name, count.to_string());
    }
    environment
}

/// The size of the largest request in bytes. Unreadable images are skipped.
fn largest_request(
    source: &dyn Source,
    samples: &[Sample],
    options: &RehearseOptions,
    control: &TaskControl,
) -> Result<u64, RehearseError> {
    let mut largest = 0;
    // If both are set, nothing has to be chosen.
    if options.max_payload_mb.is_some() && options.max_concurrent.is_some() {
        return Ok(largest);
    }
    for sample in samples {
        control.checkpoint()?;
        let body = options.form_of(sample).body(source, sample);
        largest = largest.max(body.map_or(0, |body| body.len() as u64));
    }
    Ok(largest)
}

/// One result per sample, in order.
fn predict_here(
    predictor: &Arc<dyn Predictor>,
    samples: &RehearseSamples,
    control: &TaskControl,
) -> Result<Vec<SampleResult>, RehearseError> {
    control.set_step("Predicting locally");
    let request = PredictRequest {
        source: Arc::clone(&samples.source),
        samples: Arc::clone(&samples.samples),
        predictor: Arc::clone(predictor).into(),
        limits: samples.limits.clone(),
    };
    let of_run = TaskControl::new(control.progress().unit);
    let cancelled = of_run.clone();
    let _cancel = control.on_cancel(move || cancelled.cancel());
    let mut results = Vec::with_capacity(samples.samples.len());
    let outcome = predict(&request, &of_run, |_, result| {
        results.push(result);
        control.add_done(1);
    });
    control.checkpoint()?;
    match outcome.stopped {
        Some(Stopped::DeviceLost(reason) | Stopped::OutOfReach(reason)) => Err(RehearseError::DeviceLost(reason)),
        Some(Stopped::SourceUnreachable(reason)) => Err(RehearseError::SourceUnreachable(reason)),
        Some(Stopped::Cancelled) | None => Ok(results),
    }
}

impl RehearseOptions {
    fn form_of(&self, sample: &Sample) -> RequestForm {
        self.form.unwrap_or_else(|| RequestForm::from_sample(sample))
    }

    fn content_type_of(&self, form: RequestForm) -> &str {
        let given = self.content_type.as_deref();
        given.unwrap_or_else(|| form.content_type())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RehearseError {
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error("could not start Python: {reason}; install Python 3.10 or newer, or choose another one: {python}")]
    NoPython { python: String, reason: String },
    #[error(
        "this Python does not have all packages of the archive's code/requirements.txt; run `{python} -m pip install \
        {}`, or choose another Python",
        quoted(missing)
    )]
    MissingPackages {
        python: String,
        /// The missing requirements, as in the file: `pillow>=10.1`.
        missing: Vec<String>,
    },
    #[error("the archive's handler exited before it listened ({status}):{}", lines(log))]
    HandlerEnded { status: String, log: Vec<String> },
    #[error("the archive's handler did not listen within {seconds} seconds and was stopped:{}", lines(log))]
    HandlerSilent { seconds: u64, log: Vec<String> },
    #[error(
        "the archive's handler responds to GET /ping {said}, but SageMaker requires status 200; it was stopped after \
        {seconds} seconds:{}",
        lines(log)
    )]
    NoPong {
        /// “with status 503”, “not at all (…)”
        said: String,
        seconds: u64,
        log: Vec<String>,
    },
    #[error("the payload times the parallel requests {0}")]
    TooMuchInFlight(String),
    #[error(
        "a SavedModel requires TensorFlow Serving; start it with this model and specify its address, for example \
         http://127.0.0.1:8501/v1/models/model:predict"
    )]
    NeedsTensorFlowServing,
    #[error("this archive contains an ONNX model, which does not need TensorFlow Serving; omit its address")]
    NeedsNoTensorFlowServing,
    #[error("could not use the folder for temporary files: {0}")]
    Temporary(#[source] io::Error),
    #[error("the device was lost: {0}; try again, or choose another device")]
    DeviceLost(String),
    #[error("the images can no longer be read: {0}")]
    SourceUnreachable(String),
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

/// Quoted for a shell, where `>` is a redirection.
fn quoted(requirements: &[String]) -> String {
    let quoted = requirements.iter().map(|one| format!("\"{one}\""));
    quoted.collect::<Vec<String>>().join(" ")
}

/// Each on its own line, below the message.
fn lines(log: &[String]) -> String {
    if log.is_empty() {
        return " no output".to_owned();
    }
    log.iter().fold(String::new(), |mut text, line| {
        text.push_str("\n  ");
        text.push_str(line);
        text
    })
}
