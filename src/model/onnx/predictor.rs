//! A model on a device of this computer, as the pipeline uses it.

use std::time::Instant;

use parking_lot::Mutex;

use super::InferenceError;
use super::call::{call, join, used_outputs};
use super::device::{self, PreparedDevice};
use super::embedding::{EmbeddingLayer, inside, prove, take};
use super::session::OnnxSession;
use crate::alike::Embedding;
use crate::domain::{
    Device, DeviceChoice, DeviceReport, KeepRule, LabelSet, LatencyMs, ModelCard, Prediction, RgbImage,
};
use crate::model::catalog::Model;
use crate::model::runtime::Loaded;
use crate::model::{PredictError, Predicted, Predictor, Prepared, embeddings_of, postprocess, preprocess};
use crate::tasks::TaskControl;

/// How a model is loaded.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    pub device: DeviceChoice,
    /// Images per call; by default 1 on the CPU, where more do not help, and 8 on other devices.
    pub batch: Option<usize>,
    /// Total CPU threads of all sessions; by default one per core.
    pub threads: Option<usize>,
    pub keep: KeepRule,
    /// Whether predictions come with embeddings, if the model has them.
    pub embeddings: bool,
}

/// A loaded model. On the CPU, it has several sessions (lanes), each with its share of the threads: one image per core
/// wastes less time than one image over all cores.
pub struct OnnxPredictor {
    card: ModelCard,
    labels: LabelSet,
    keep: KeepRule,
    batch: usize,
    lanes: Vec<Mutex<Lane>>,
    embedding: Option<Result<EmbeddingLayer, String>>,
    report: DeviceReport,
    calls: Mutex<CallTimes>,
}

struct Lane {
    session: OnnxSession,
    is_warm: bool,
}

/// Durations of the last calls, in milliseconds.
#[derive(Default)]
struct CallTimes {
    warm_up_ms: f64,
    recent_ms: Vec<f64>,
    count: usize,
}

/// Enough calls for a stable 95th percentile.
const RECENT_CALLS: usize = 1024;

/// The memory that parallel sessions on a CPU may share: each needs its own copy of the weights and, as a rule of
/// thumb, three times as much for intermediate results.
const LANES_MEMORY_BYTES: u64 = 1 << 30;

/// Images per call on a GPU: enough to keep it busy, few enough for the memory of a small one.
const GRAPHICS_BATCH: usize = 8;

/// How a device is kept busy.
#[derive(Clone, Copy)]
struct LaneLayout {
    lanes: usize,
    threads_per_session: usize,
    batch: usize,
}

impl LaneLayout {
    /// The layout for a device. On the CPU: one session per core, as far as memory allows, with one image per call;
    /// with a batch, one session on all cores. A GPU is fastest with one session and many images per call; its threads
    /// compute only what the GPU cannot.
    fn new(device: Device, card: &ModelCard, options: &LoadOptions) -> Self {
        let threads =
            options.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
        let affordable = LANES_MEMORY_BYTES / (4 * card.file.bytes.max(1));
        let usual_batch = match device {
            Device::Cpu => 1,
            Device::Cuda | Device::WebGpu | Device::CoreMl => GRAPHICS_BATCH,
        };
        let batch = match card.input.fixed_batch {
            Some(fixed) => fixed as usize,
            None if card.input.batches => options.batch.unwrap_or(usual_batch).max(1),
            None => 1,
        };
        let lanes = if device == Device::Cpu && batch == 1 {
            threads.min(usize::try_from(affordable).unwrap_or(threads)).max(1)
        } else {
            1
        };
        Self { lanes, threads_per_session: (threads / lanes).max(1), batch }
    }
}

/// A session with `tensors` as additional outputs.
fn load_session(
    runtime: &Loaded,
    model: &Model,
    device: &PreparedDevice<'_>,
    layout: LaneLayout,
    tensors: &[&str],
    control: &TaskControl,
) -> Result<OnnxSession, InferenceError> {
    control.checkpoint().map_err(|_| InferenceError::Cancelled)?;
    let configure = |builder| {
        Ok(device.configure(builder)?.with_intra_threads(layout.threads_per_session)?.with_intra_op_spinning(false)?)
    };
    let (environment, weights) = (&runtime.environment, &model.weights);
    let session = match tensors {
        [] => OnnxSession::load(environment, weights, configure)?,
        tensors => OnnxSession::load_with_outputs(environment, weights, tensors, configure)?,
    };
    if model.card.input.name.is_none() && session.input_name(0).is_none() {
        return Err(InferenceError::NoInput);
    }
    Ok(session)
}

/// The sessions of all lanes, with the embedding as additional output if it is requested and changes nothing.
#[expect(clippy::type_complexity, reason = "the sessions, and why they have no embedding")]
fn load_lanes(
    runtime: &Loaded,
    model: &Model,
    device: &PreparedDevice<'_>,
    layout: LaneLayout,
    options: &LoadOptions,
    control: &TaskControl,
) -> Result<(Vec<Mutex<Lane>>, Option<Result<EmbeddingLayer, String>>), InferenceError> {
    let mut first = load_session(runtime, model, device, layout, &[], control)?;
    let outputs = first.signature().outputs;
    let load = |tensors: &[&str]| load_session(runtime, model, device, layout, &inside(tensors, &outputs), control);
    let embedding = options.embeddings.then(|| {
        let (layer, session) = prove(&model.card, &model.weights, layout.batch, &mut first, load, control)?;
        first = session;
        Ok(layer)
    });
    let tensor = embedding.iter().flatten().map(|layer: &EmbeddingLayer| layer.tensor.name.as_str());
    let tensors: Vec<&str> = tensor.collect();
    let more = (1..layout.lanes).map(|_| load(&tensors));
    let sessions: Vec<OnnxSession> = std::iter::once(Ok(first)).chain(more).collect::<Result<_, _>>()?;
    let lanes = sessions.into_iter().map(|session| Mutex::new(Lane { session, is_warm: false })).collect();
    Ok((lanes, embedding))
}

impl OnnxPredictor {
    /// Loads `model` onto the requested device, or the best one that works. Slow: reads and optimizes the graph.
    pub fn load(
        runtime: &Loaded,
        model: &Model,
        options: &LoadOptions,
        control: &TaskControl,
    ) -> Result<Self, InferenceError> {
        let selected = device::select(options.device, |device| {
            let layout = LaneLayout::new(device, &model.card, options);
            let prepared = device::prepare(runtime, device, options.device)?;
            let (lanes, embedding) = load_lanes(runtime, model, &prepared, layout, options, control)?;
            Ok((layout, lanes, embedding, prepared.adapter))
        })?;
        let (layout, lanes, embedding, adapter) = selected.value;
        let report = DeviceReport {
            device: selected.device,
            reason: selected.reason,
            adapter,
            refused: selected.refused,
            runtime_version: runtime.version.clone(),
            runtime_path: runtime.path.display().to_string(),
            sessions: lanes.len(),
            threads_per_session: layout.threads_per_session,
            batch: layout.batch,
            warm_up_ms: 0.0,
            latency: None,
        };
        Ok(Self {
            card: model.card.clone(),
            labels: model.labels.clone(),
            keep: options.keep,
            batch: layout.batch,
            lanes,
            embedding,
            report,
            calls: Mutex::default(),
        })
    }

    /// The device that the model runs on and why, with the latencies so far.
    pub fn report(&self) -> DeviceReport {
        let calls = self.calls.lock();
        DeviceReport { warm_up_ms: calls.warm_up_ms, latency: calls.latency(), ..self.report.clone() }
    }

    pub fn card(&self) -> &ModelCard {
        &self.card
    }

    /// Where embeddings come from, or why there are none; `None` if they were not requested.
    pub fn embedding(&self) -> Option<&Result<EmbeddingLayer, String>> {
        self.embedding.as_ref()
    }

    /// Empty if the card names none.
    pub fn labels(&self) -> &LabelSet {
        &self.labels
    }
}

/// Keeps everything that the model returned.
const KEEP_ALL: KeepRule = KeepRule { min_score: 0.0, top_k: usize::MAX };

impl Predictor for OnnxPredictor {
    fn prepare(&self, image: &RgbImage) -> Result<Prepared, PredictError> {
        preprocess(&self.card.input, image)
    }

    fn predict(&self, lane: usize, batch: &[Prepared], control: &TaskControl) -> Result<Vec<Prediction>, PredictError> {
        let predicted = self.predict_keeping(self.keep, lane, batch, control)?;
        Ok(predicted.into_iter().map(|predicted| predicted.prediction).collect())
    }

    fn predict_with_embeddings(
        &self,
        lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Predicted>, PredictError> {
        self.predict_keeping(self.keep, lane, batch, control)
    }

    fn predict_in_full(
        &self,
        lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Prediction>, PredictError> {
        let predicted = self.predict_keeping(KEEP_ALL, lane, batch, control)?;
        Ok(predicted.into_iter().map(|predicted| predicted.prediction).collect())
    }

    fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn max_batch(&self) -> usize {
        self.batch
    }
}

impl OnnxPredictor {
    fn predict_keeping(
        &self,
        keep: KeepRule,
        lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Predicted>, PredictError> {
        let mut lane = self.lanes[lane].lock();
        let lane = &mut *lane;
        let images = self.card.input.fixed_batch.map_or(batch.len(), |fixed| fixed as usize);
        let joined = join(batch, images)?;
        let layer = self.embedding.as_ref().and_then(|embedding| embedding.as_ref().ok());
        let used = used_outputs(&self.card);
        let mut names = used.clone();
        if !names.is_empty() {
            names.extend(layer.map(|layer| layer.tensor.name.as_str()));
        }
        let start = Instant::now();
        let mut outputs = call(&mut lane.session, &self.card, &joined, &names, control)?;
        let call_ms = start.elapsed().as_secs_f64() * 1e3;
        self.calls.lock().add(call_ms, lane.is_warm);
        lane.is_warm = true;
        let tensor = layer.and_then(|layer| take(&mut outputs, &layer.tensor.name, &used));
        let predictions = postprocess(&self.card.output, &self.labels, keep, &outputs, batch, images)?;
        // An image without an embedding still has its prediction.
        let vectors = tensor.and_then(|tensor| embeddings_of(&tensor, images).ok()).unwrap_or_default();
        let mut embeddings = vectors.iter().map(|vector| Embedding::new(vector));
        let predicted =
            predictions.into_iter().map(|prediction| Predicted { prediction, embedding: embeddings.next().flatten() });
        Ok(predicted.collect())
    }
}

impl CallTimes {
    fn add(&mut self, call_ms: f64, is_warm: bool) {
        if !is_warm {
            self.warm_up_ms = self.warm_up_ms.max(call_ms);
            return;
        }
        if self.recent_ms.len() < RECENT_CALLS {
            self.recent_ms.push(call_ms);
        } else {
            self.recent_ms[self.count % RECENT_CALLS] = call_ms;
        }
        self.count += 1;
    }

    fn latency(&self) -> Option<LatencyMs> {
        let mut sorted = self.recent_ms.clone();
        sorted.sort_by(f64::total_cmp);
        let percentile = |share: f64| sorted.get(((sorted.len() as f64 * share) as usize).min(sorted.len() - 1));
        (!sorted.is_empty()).then(|| LatencyMs {
            p50: percentile(0.5).copied().unwrap_or_default(),
            p95: percentile(0.95).copied().unwrap_or_default(),
            calls: self.count,
        })
    }
}
