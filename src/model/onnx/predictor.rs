//! A model on a device of this computer, as the pipeline uses it.

use std::borrow::Cow;
use std::time::Instant;

use parking_lot::Mutex;

use super::InferenceError;
use super::device::{self, PreparedDevice};
use super::session::OnnxSession;
use crate::domain::{
    Device, DeviceChoice, DeviceReport, KeepRule, LabelSet, LatencyMs, ModelCard, OutputConvention, Prediction,
    RgbImage,
};
use crate::model::catalog::Model;
use crate::model::runtime::Loaded;
use crate::model::{PredictError, Predictor, Prepared, Tensor, TensorData, postprocess, preprocess};
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
}

/// A loaded model. On the CPU, it has several sessions (lanes), each with its share of the threads: one image per core
/// wastes less time than one image over all cores.
pub struct OnnxPredictor {
    card: ModelCard,
    labels: LabelSet,
    keep: KeepRule,
    batch: usize,
    lanes: Vec<Mutex<Lane>>,
    report: DeviceReport,
    calls: Mutex<CallTimes>,
}

struct Lane {
    session: OnnxSession,
    input_name: String,
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

fn load_lane(
    runtime: &Loaded,
    model: &Model,
    device: &PreparedDevice<'_>,
    layout: LaneLayout,
    control: &TaskControl,
) -> Result<Mutex<Lane>, InferenceError> {
    control.checkpoint().map_err(|_| InferenceError::Cancelled)?;
    let session = OnnxSession::load(&runtime.environment, &model.weights, |builder| {
        Ok(device.configure(builder)?.with_intra_threads(layout.threads_per_session)?.with_intra_op_spinning(false)?)
    })?;
    let named = model.card.input.name.as_deref().or(session.input_name(0));
    let input_name = named.ok_or(InferenceError::NoInput)?.to_owned();
    Ok(Mutex::new(Lane { session, input_name, is_warm: false }))
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
            let lanes: Result<Vec<_>, _> =
                (0..layout.lanes).map(|_| load_lane(runtime, model, &prepared, layout, control)).collect();
            Ok((layout, lanes?, prepared.adapter))
        })?;
        let (layout, lanes, adapter) = selected.value;
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

    /// Empty if the card names none.
    pub fn labels(&self) -> &LabelSet {
        &self.labels
    }
}

/// The outputs to read; empty if the graph has only one.
pub(super) fn used_outputs(card: &ModelCard) -> Vec<&str> {
    match &card.output {
        OutputConvention::Classification(output) => output.name.as_deref().into_iter().collect(),
        OutputConvention::Detection(output) => output.output_names(),
    }
}

/// Keeps everything that the model returned.
const KEEP_ALL: KeepRule = KeepRule { min_score: 0.0, top_k: usize::MAX };

impl Predictor for OnnxPredictor {
    fn prepare(&self, image: &RgbImage) -> Result<Prepared, PredictError> {
        preprocess(&self.card.input, image)
    }

    fn predict(&self, lane: usize, batch: &[Prepared], control: &TaskControl) -> Result<Vec<Prediction>, PredictError> {
        self.predict_keeping(self.keep, lane, batch, control)
    }

    fn predict_in_full(
        &self,
        lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Prediction>, PredictError> {
        self.predict_keeping(KEEP_ALL, lane, batch, control)
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
    ) -> Result<Vec<Prediction>, PredictError> {
        let mut lane = self.lanes[lane].lock();
        let lane = &mut *lane;
        let images = self.card.input.fixed_batch.map_or(batch.len(), |fixed| fixed as usize);
        let joined = join(batch, images)?;
        let mut inputs = vec![(lane.input_name.as_str(), &*joined[0])];
        let auxiliary = &self.card.input.auxiliary;
        inputs.extend(auxiliary.iter().zip(&joined[1..]).map(|(input, tensor)| (input.name.as_str(), &**tensor)));
        let start = Instant::now();
        let outputs = lane.session.run(&inputs, &used_outputs(&self.card), control)?;
        let call_ms = start.elapsed().as_secs_f64() * 1e3;
        self.calls.lock().add(call_ms, lane.is_warm);
        lane.is_warm = true;
        postprocess(&self.card.output, &self.labels, keep, &outputs, batch, images)
    }
}

/// The image and auxiliary inputs of a call with `images` images, each joined along the batch dimension. If `batch` has
/// fewer, its last image is repeated.
pub(super) fn join(batch: &[Prepared], images: usize) -> Result<Vec<Cow<'_, Tensor>>, PredictError> {
    let (Some(first), Some(last)) = (batch.first(), batch.last()) else {
        return Err(PredictError::Failed("an empty batch".to_owned()));
    };
    let filled = || batch.iter().chain(std::iter::repeat_n(last, images.saturating_sub(batch.len())));
    let image = join_tensors(filled().map(|prepared| &prepared.tensor));
    let auxiliary = (0..first.auxiliary.len())
        .map(|at| join_tensors(filled().filter_map(move |prepared| Some(&prepared.auxiliary.get(at)?.1))));
    std::iter::once(image).chain(auxiliary).collect()
}

fn join_tensors<'t>(mut tensors: impl Iterator<Item = &'t Tensor>) -> Result<Cow<'t, Tensor>, PredictError> {
    let failed = |reason: &str| PredictError::Failed(reason.to_owned());
    let mut joined = Cow::Borrowed(tensors.next().ok_or_else(|| failed("an empty batch"))?);
    for tensor in tensors {
        if tensor.shape[1..] != joined.shape[1..] {
            return Err(failed("the images of a batch have different sizes"));
        }
        let all = joined.to_mut();
        match (&mut all.data, &tensor.data) {
            (TensorData::F32(all), TensorData::F32(more)) => all.extend(more),
            (TensorData::U8(all), TensorData::U8(more)) => all.extend(more),
            _ => return Err(failed("the images of a batch have different types")),
        }
        all.shape[0] += 1;
    }
    Ok(joined)
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
