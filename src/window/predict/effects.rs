//! Loading a model and predicting with it.
//!
//! One model is loaded at a time. A long prediction keeps its model, even while another one is being loaded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::alike::ImageEmbeddings;
use crate::domain::{DeviceReport, Encoder, FileStamp, RunId, RunKey, Sample, SampleId, counted, grouped};
use crate::image::source::{SourceError, for_task};
use crate::model::catalog::LibraryError;
use crate::model::onnx::{InferenceError, LoadOptions, OnnxPredictor};
use crate::model::runtime::{RuntimeError, RuntimePackage};
use crate::model::{AnyPredictor, PredictError, Predicted, runtime};
use crate::predict::{PredictOutcome, PredictRequest, ResultSink, SampleResult, Stopped, predict_bytes, predict_some};
use crate::project::{EmbeddingWriter, StoreError};
use crate::tasks::{ProgressUnit, TaskControl, now_ms};
use crate::window::effects::latest::{LatestSender, Turn, worker};
use crate::window::effects::{Effects, Shared, guarded};
use crate::window::remote_inference;
use crate::window::remote_inference::effects::Connected;
use crate::window::state::{
    Event, Failure, ImageRequest, ImagesRequest, InferenceEffect, InferenceEvent, NewPrediction, Offer, PrepareRequest,
    RuntimeKind, SourceId, TaskOutcome, Ticket,
};

pub(crate) fn carry_out(effects: &mut Effects, effect: InferenceEffect) {
    let shared = &effects.shared;
    match effect {
        InferenceEffect::Prepare(request) => effects.engine.prepare(shared, request),
        InferenceEffect::InstallRuntime { kind, ticket } => install_runtime(shared, kind, ticket),
        InferenceEffect::PredictOne(request) => effects.engine.predict_one(request),
        InferenceEffect::Predict(request) => {
            let key = &request.key;
            let model = if key.made.is_here() {
                effects.engine.predictor(key).map(BulkModel::Here)
            } else {
                let remote = effects.remote_inference.connected(key);
                remote.map(BulkModel::Remote)
            };
            predict_many(shared, model, request);
        }
        InferenceEffect::Connect(request) => effects.remote_inference.connect(shared, request),
        InferenceEffect::PredictRemotely { image, ticket } => {
            effects.remote_inference.predict(shared, image, ticket);
        }
        InferenceEffect::CheckRemoteModel { model, ticket } => {
            remote_inference::effects::check(shared, model, ticket);
        }
        InferenceEffect::ShowResponse { source, model, entry, ticket } => {
            remote_inference::effects::show_response(shared, source, (model, entry), ticket);
        }
    }
}

/// The longest time for collecting predictions into a bundle for the window.
const BUNDLE_PERIOD: Duration = Duration::from_millis(100);
const BUNDLE_LEN: usize = 256;

pub(crate) struct EngineWorker {
    loaded: Arc<Loaded>,
    single: LatestSender<(ImageRequest, TaskControl)>,
    /// Cancels reading the last requested image.
    reading: Mutex<Option<TaskControl>>,
}

/// The loaded model and its settings.
#[derive(Default)]
struct Loaded {
    current: Mutex<Option<(RunKey, Arc<OnnxPredictor>)>>,
    /// Held while a model is being loaded, so that only one is loaded at a time.
    loading: Mutex<()>,
}

/// The model for many predictions.
pub(crate) enum BulkModel {
    Here(Arc<OnnxPredictor>),
    Remote(Box<Connected>),
}

impl BulkModel {
    fn predictor(&self) -> AnyPredictor {
        match self {
            Self::Here(predictor) => AnyPredictor::OfTensors(Arc::clone(predictor) as _),
            Self::Remote(remote) => AnyPredictor::OfFiles(remote.predictor.clone()),
        }
    }

    /// Reports the speed of the model to the window, or that it is lost.
    fn report(&self, shared: &Shared, key: RunKey, outcome: &PredictOutcome) {
        match (self, &outcome.stopped) {
            (Self::Here(predictor), _) => report_device(shared, key, predictor, outcome.stopped.as_ref()),
            (Self::Remote(_), Some(Stopped::OutOfReach(reason))) => {
                shared.report(InferenceEvent::DeviceLost {
                    key: Box::new(key),
                    message: format!("Existing predictions are kept. {reason}"),
                });
            }
            (Self::Remote(remote), _) => remote.report_latency(shared),
        }
    }

    /// Reports what the window must know before predictions.
    fn before_predictions(&self, shared: &Shared, source: SourceId, run: RunId) {
        if let Self::Remote(remote) = self {
            remote.report_classes(shared, source, run);
        }
    }
}

/// Why a model cannot run.
#[derive(Debug, thiserror::Error)]
enum PrepareError {
    #[error(transparent)]
    Cancelled(#[from] crate::tasks::Cancelled),
    #[error("Could not load ONNX Runtime: {0}")]
    Runtime(#[from] RuntimeError),
    #[error("Could not find the model: {0}")]
    Library(#[from] LibraryError),
    #[error("Could not load the model: {0}")]
    Inference(#[from] InferenceError),
}

impl EngineWorker {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let loaded = Arc::new(Loaded::default());
        let predictors = Arc::clone(&loaded);
        let kept = KeptWriter::default();
        let work = move |shared: &Shared, (request, reading): (ImageRequest, TaskControl), _: &Turn<_>| {
            let Some(_working) = shared.model_work.begin(&reading) else {
                return false;
            };
            if let Some(predictor) = predictors.get(&request.key) {
                predict_single(shared, &predictor, request, &reading, &kept);
            }
            true
        };
        let single = worker(shared, "predict one image", work);
        Self { loaded, single, reading: Mutex::default() }
    }

    pub(crate) fn prepare(&self, shared: &Arc<Shared>, preparation: PrepareRequest) {
        let loaded = Arc::clone(&self.loaded);
        let task = preparation.ticket.id;
        let work = move |shared: &Arc<Shared>| match load(shared, &loaded, &preparation) {
            Ok((report, restart_to_use)) => InferenceEvent::Ready { task, report: Box::new(report), restart_to_use },
            Err(error) if error.is_cancelled() => InferenceEvent::Cancelled { task },
            Err(error) => {
                InferenceEvent::Failed { task, offer: error.offer(&preparation.key), message: error.to_string() }
            }
        };
        shared.spawn_reporting("prepare a model", work, move |message| InferenceEvent::Failed {
            task,
            message,
            offer: Offer::TryAgain,
        });
    }

    /// The loaded model, if it is this one with these settings.
    pub(crate) fn predictor(&self, key: &RunKey) -> Option<Arc<OnnxPredictor>> {
        self.loaded.get(key)
    }

    /// Predicts one image. Replaces a request that has not started or whose image has not been read yet.
    pub(crate) fn predict_one(&self, request: ImageRequest) {
        let reading = TaskControl::new(ProgressUnit::Bytes);
        let mut current = self.reading.lock();
        if let Some(earlier) = current.replace(reading.clone()) {
            earlier.cancel();
        }
        self.single.put((request, reading));
    }
}

fn predict_many(shared: &Arc<Shared>, model: Option<BulkModel>, bulk: ImagesRequest) {
    let ticket = bulk.ticket.clone();
    let work = move |shared: &Arc<Shared>, ticket: &Ticket| {
        let _working = shared.model_work.begin(&ticket.control);
        match model {
            Some(model) => Ok(predict_bulk(shared, &model, bulk)),
            // Another model was loaded at the same moment.
            None => Err(Failure::Cancelled),
        }
    };
    shared.run_task("predict images", ticket, work, |task, result| {
        let (outcome, notes) = result.unwrap_or_else(|failure| (failure.into(), Vec::new()));
        Event::TaskEnded { task, outcome, notes }
    });
}

impl Loaded {
    /// The predictor, if it is the one with this model and these settings.
    fn get(&self, key: &RunKey) -> Option<Arc<OnnxPredictor>> {
        let current = self.current.lock();
        let (loaded, predictor) = current.as_ref()?;
        (loaded == key).then(|| Arc::clone(predictor))
    }
}

fn load(
    shared: &Shared,
    loaded: &Loaded,
    preparation: &PrepareRequest,
) -> Result<(DeviceReport, Option<String>), PrepareError> {
    let _one_at_a_time = loaded.loading.lock();
    let control = &preparation.ticket.control;
    let _working = shared.model_work.begin(control);
    control.checkpoint()?;
    // Two models may not fit into memory together.
    *loaded.current.lock() = None;
    control.set_step("Looking for ONNX Runtime");
    let setting = preparation.runtime_library.as_deref();
    let runtime = runtime::ensure_loaded(&shared.dirs, setting, control)?;
    control.checkpoint()?;
    let model = shared.library.find(&preparation.key.model_id)?;
    control.set_total(None);
    control.set_done(0);
    control.set_step(format!("Loading {}", model.card.name));
    let options = LoadOptions {
        device: preparation.key.device,
        batch: preparation.key.batch,
        threads: preparation.key.threads,
        keep: preparation.key.keep,
        embeddings: preparation.embeddings,
        proofs: Some(shared.dirs.proofs()),
    };
    let predictor = OnnxPredictor::load(&runtime, &model, &options, control)?;
    control.checkpoint()?;
    let report = predictor.report();
    *loaded.current.lock() = Some((preparation.key.clone(), Arc::new(predictor)));
    let restart_to_use = runtime.restart_to_use.map(|library| library.path.display().to_string());
    Ok((report, restart_to_use))
}

/// Downloads and installs a package of ONNX Runtime.
fn install_runtime(shared: &Arc<Shared>, kind: RuntimeKind, ticket: Ticket) {
    let work = move |shared: &Arc<Shared>, ticket: &Ticket| {
        let package = match kind {
            RuntimeKind::Cpu => RuntimePackage::Cpu,
            RuntimeKind::Cuda => RuntimePackage::Cuda,
            RuntimeKind::WebGpu => RuntimePackage::WebGpu,
        };
        match runtime::install(&shared.dirs, package, None, &ticket.control) {
            Ok(_) => Ok((format!("{} is installed", kind.name()), Vec::new())),
            Err(RuntimeError::Cancelled) => Err(Failure::Cancelled),
            Err(error) => Err(Failure::new(error.to_string())),
        }
    };
    shared.run_task("install ONNX Runtime", ticket, work, Event::ended);
}

impl PrepareError {
    fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Self::Cancelled(_) | Self::Runtime(RuntimeError::Cancelled) | Self::Inference(InferenceError::Cancelled)
        )
    }

    fn offer(&self, key: &RunKey) -> Offer {
        match self {
            Self::Inference(_) if key.device != crate::domain::DeviceChoice::Auto => Offer::UseAutomaticDevice,
            _ => Offer::TryAgain,
        }
    }
}

/// Why an image has no prediction: a problem with the image, or the reason why it was not attempted.
enum NotPredicted {
    Failed(String),
    Stopped(Stopped),
}

impl From<SourceError> for NotPredicted {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Cancelled => Self::Stopped(Stopped::Cancelled),
            SourceError::Unreachable(reason) => Self::Stopped(Stopped::SourceUnreachable(reason)),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<PredictError> for NotPredicted {
    fn from(error: PredictError) -> Self {
        match error {
            PredictError::DeviceLost(reason) => Self::Stopped(Stopped::DeviceLost(reason)),
            error => Self::Failed(error.to_string()),
        }
    }
}

/// The file that embeddings of single images are saved in, open between them.
type KeptWriter = Mutex<Option<(SourceId, Encoder, EmbeddingWriter)>>;

fn predict_single(
    shared: &Shared,
    predictor: &OnnxPredictor,
    request: ImageRequest,
    reading: &TaskControl,
    kept: &KeptWriter,
) {
    let ImageRequest { source, run, sample, ref entry, .. } = request;
    let Some(opened) = shared.source(source) else {
        return;
    };
    let read_and_predict = || -> Result<Predicted, NotPredicted> {
        let bytes = for_task(&opened, reading).read(&entry.uri)?;
        // Once it is read, an image is predicted even if another one is shown by now.
        let control = TaskControl::new(ProgressUnit::Images);
        Ok(predict_bytes(predictor, &bytes, &shared.limits(), &control)?)
    };
    let result = match guarded(|| Ok(read_and_predict())).unwrap_or_else(|panic| Err(NotPredicted::Failed(panic))) {
        Ok(Predicted { prediction, embeddings }) => {
            if let Some(embeddings) = embeddings
                && let Some(message) = save_single(shared, source, predictor, kept, (entry, embeddings))
            {
                shared.report(InferenceEvent::NotPredicted { source, run, sample, message });
                return;
            }
            Ok(prediction)
        }
        Err(NotPredicted::Failed(reason)) => Err(reason),
        Err(NotPredicted::Stopped(Stopped::SourceUnreachable(message))) => {
            shared.report(InferenceEvent::NotPredicted { source, run, sample, message });
            return;
        }
        Err(NotPredicted::Stopped(stopped)) => {
            if stopped != Stopped::Cancelled {
                report_device(shared, request.key, predictor, Some(&stopped));
            }
            return;
        }
    };
    let predictions = vec![NewPrediction { sample, stamp: entry.stamp(), result }];
    shared.report(InferenceEvent::Predicted { source, run, at_ms: now_ms(), predictions });
    report_device(shared, request.key, predictor, None);
}

/// Returns why nothing is left of the result of an encoder.
fn save_single(
    shared: &Shared,
    source: SourceId,
    predictor: &OnnxPredictor,
    kept: &KeptWriter,
    (sample, embeddings): (&Sample, ImageEmbeddings),
) -> Option<String> {
    let layer = predictor.embedding()?.as_ref().ok()?;
    let project = shared.project(source)?;
    let encoder = layer.encoder(predictor.card());
    let mut kept = kept.lock();
    let is_encoder = predictor.card().is_encoder();
    let mut saver = match kept.take() {
        Some((of, by, writer)) if of == source && by == encoder && writer.is_of(&project) => {
            EmbeddingSaver { shared, to: Some(writer), is_encoder, failure: None }
        }
        _ => EmbeddingSaver::new(shared, source, predictor),
    };
    saver.write(|writer| writer.save(sample, embeddings).and_then(|()| writer.commit()));
    *kept = saver.to.map(|writer| (source, encoder, writer));
    saver.failure
}

/// Reports the speed of the device, or that it was lost.
fn report_device(shared: &Shared, key: RunKey, predictor: &OnnxPredictor, stopped: Option<&Stopped>) {
    let key = Box::new(key);
    shared.report(match stopped {
        Some(Stopped::DeviceLost(reason)) => InferenceEvent::DeviceLost {
            key,
            message: format!("The device was lost; existing predictions are kept: {reason}"),
        },
        _ => InferenceEvent::Report { key, report: Box::new(predictor.report()) },
    });
}

fn predict_bulk(shared: &Shared, model: &BulkModel, bulk: ImagesRequest) -> (TaskOutcome, Vec<String>) {
    let Some(source) = shared.source(bulk.source) else {
        return (TaskOutcome::Cancelled, Vec::new());
    };
    let with_stamp = |(id, sample): (SampleId, Sample)| ((id, sample.stamp()), sample);
    let (asked, samples): (Vec<(SampleId, FileStamp)>, Vec<Sample>) = bulk.samples.into_iter().map(with_stamp).unzip();
    let pipeline =
        PredictRequest { source, samples: samples.into(), predictor: model.predictor(), limits: shared.limits() };
    let mut bundle = Bundle::new(shared, bulk.source, bulk.run);
    let send = |bundle: &mut Bundle<'_>| {
        model.before_predictions(shared, bulk.source, bulk.run);
        bundle.send();
    };
    let in_order = |index: usize, result: SampleResult, embeddings: &mut EmbeddingSaver<'_>| {
        let (sample, stamp) = &asked[index];
        let result = result.map_err(|problem| problem.message);
        if bundle.add(NewPrediction { sample: *sample, stamp: stamp.clone(), result }) {
            embeddings.write(EmbeddingWriter::commit);
            if embeddings.failure.is_none() {
                send(&mut bundle);
            }
        }
        if embeddings.failure.is_some() {
            bulk.ticket.control.cancel();
        }
    };
    let embeddings = match model {
        BulkModel::Here(predictor) => EmbeddingSaver::new(shared, bulk.source, predictor),
        BulkModel::Remote(_) => EmbeddingSaver { shared, to: None, is_encoder: false, failure: None },
    };
    if let Some(message) = embeddings.failure {
        return (TaskOutcome::Failed(message), Vec::new());
    }
    let all = (0..pipeline.samples.len()).map(SampleId::from_index).collect();
    let mut sink = BulkSink { samples: &pipeline.samples, embeddings, in_order };
    let outcome = predict_some(&pipeline, &all, &bulk.ticket.control, &mut sink);
    sink.embeddings.write(EmbeddingWriter::commit);
    if let Some(message) = sink.embeddings.failure {
        return (TaskOutcome::Failed(message), outcome.notes);
    }
    send(&mut bundle);
    model.report(shared, bulk.key, &outcome);
    let secs = bulk.ticket.control.progress().elapsed.as_secs_f64();
    (task_outcome(&outcome, secs), outcome.notes)
}

struct BulkSink<'s, F> {
    samples: &'s [Sample],
    embeddings: EmbeddingSaver<'s>,
    in_order: F,
}

impl<'s, F: FnMut(usize, SampleResult, &mut EmbeddingSaver<'s>)> ResultSink for BulkSink<'s, F> {
    fn embedded(&mut self, index: usize, embeddings: ImageEmbeddings) {
        let sample = &self.samples[index];
        self.embeddings.write(|writer| writer.save(sample, embeddings));
    }

    fn arrived(&mut self, _: usize, _: &SampleResult) {}

    fn in_order(&mut self, index: usize, result: SampleResult) {
        (self.in_order)(index, result, &mut self.embeddings);
    }
}

/// Saves embeddings next to the project, until it fails.
struct EmbeddingSaver<'s> {
    shared: &'s Shared,
    to: Option<EmbeddingWriter>,
    /// Whether the model computes nothing else.
    is_encoder: bool,
    /// Why no more embeddings of an encoder are saved: its images do not count as embedded.
    failure: Option<String>,
}

impl<'s> EmbeddingSaver<'s> {
    fn new(shared: &'s Shared, source: SourceId, predictor: &OnnxPredictor) -> Self {
        let is_encoder = predictor.card().is_encoder();
        let mut saver = Self { shared, to: None, is_encoder, failure: None };
        let (Some(Ok(layer)), Some(project)) = (predictor.embedding(), shared.project(source)) else {
            return saver;
        };
        match EmbeddingWriter::open(&project, &layer.encoder(predictor.card())) {
            Ok(None) if is_encoder => {
                saver.fail("The embedding cannot be saved, because the project is in memory".into());
            }
            Ok(to) => saver.to = to,
            Err(error) => saver.fail(format!("Embeddings are not saved: {error}")),
        }
        saver
    }

    fn write(&mut self, write: impl FnOnce(&mut EmbeddingWriter) -> Result<(), StoreError>) {
        if let Some(writer) = &mut self.to
            && let Err(error) = write(writer)
        {
            self.to = None;
            self.fail(format!("Embeddings are no longer saved: {error}"));
        }
    }

    fn fail(&mut self, message: String) {
        if self.is_encoder {
            self.failure = Some(message);
        } else {
            self.shared.report_problem(message);
        }
    }
}

fn task_outcome(outcome: &PredictOutcome, secs: f64) -> TaskOutcome {
    match &outcome.stopped {
        Some(Stopped::Cancelled) => TaskOutcome::Cancelled,
        Some(Stopped::DeviceLost(reason)) => TaskOutcome::Failed(format!("the device was lost: {reason}")),
        Some(Stopped::OutOfReach(reason)) => TaskOutcome::Failed(format!("the model does not respond: {reason}")),
        Some(Stopped::SourceUnreachable(reason)) => TaskOutcome::Failed(format!(
            "The images can no longer be read. {} of them were predicted; predict the others when the images are \
             readable again. {reason}",
            outcome.done
        )),
        None => {
            let count = outcome.done + outcome.failed;
            let rate = count as f64 / secs.max(1e-3);
            let mut parts = vec![format!("{}, {rate:.1} images/s", counted(count, "image", "images"))];
            if outcome.failed > 0 {
                parts.push(format!("{} failed", grouped(outcome.failed)));
            }
            if outcome.warned > 0 {
                parts.push(format!("{} possibly damaged", grouped(outcome.warned)));
            }
            if let Some(stage) = outcome.stages.slowest() {
                parts.push(format!("slowest stage: {}", stage.into_str()));
            }
            TaskOutcome::Done(parts.join(", "))
        }
    }
}

/// Collects predictions of a run, so that the window is not woken for each one.
pub(crate) struct Bundle<'s> {
    shared: &'s Shared,
    source: SourceId,
    run: RunId,
    predictions: Vec<NewPrediction>,
    sent: Instant,
}

impl<'s> Bundle<'s> {
    pub(crate) fn new(shared: &'s Shared, source: SourceId, run: RunId) -> Self {
        Self { shared, source, run, predictions: Vec::new(), sent: Instant::now() }
    }

    /// Adds a prediction. Returns whether it is time to send the bundle.
    pub(crate) fn add(&mut self, prediction: NewPrediction) -> bool {
        self.predictions.push(prediction);
        self.predictions.len() >= BUNDLE_LEN || self.sent.elapsed() >= BUNDLE_PERIOD
    }

    /// Sends the predictions, if there are any; false if the window is gone.
    pub(crate) fn send(&mut self) -> bool {
        self.sent = Instant::now();
        self.predictions.is_empty()
            || self.shared.report(InferenceEvent::Predicted {
                source: self.source,
                run: self.run,
                at_ms: now_ms(),
                predictions: std::mem::take(&mut self.predictions),
            })
    }
}
