//! A model on a device of this computer, as the pipeline uses it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use parking_lot::Mutex;

use super::InferenceError;
use super::call::{call, join, used_outputs};
use super::device::{self, PreparedDevice};
use super::embedding::{EmbeddingLayer, Proof, encoder_layer, prove, take};
use super::proof::ProofFile;
use super::session::OnnxSession;
use crate::alike::{BoxEmbedding, Embedding, ImageEmbeddings};
use crate::domain::{
    BoundingBox, BoxEncoder, BoxFeatures, Device, DeviceChoice, DeviceReport, KeepRule, LabelSet, LatencyMs, ModelCard,
    OutputConvention, Prediction, RgbImage,
};
use crate::model::catalog::Model;
use crate::model::runtime::Loaded;
use crate::model::{
    PredictError, Predicted, Predictor, Prepared, Tensor, average_under, boxes_to_describe, candidates_of_boxes,
    embeddings_of, encoded, postprocess, preprocess, vectors_of_candidates,
};
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
    /// The folder for what was proven about embeddings; without it, each load proves it again.
    pub proofs: Option<PathBuf>,
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
    /// Computes the embeddings, if the other session cannot.
    embedder: Option<OnnxSession>,
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

/// The sessions of all lanes. If embeddings are requested, they are additional outputs, unless this changes the others.
#[expect(clippy::type_complexity, reason = "the sessions, and why they have no embedding")]
fn load_lanes(
    runtime: &Loaded,
    model: &Model,
    device: &PreparedDevice<'_>,
    layout: LaneLayout,
    options: &LoadOptions,
    control: &TaskControl,
) -> Result<(Vec<Mutex<Lane>>, Option<Result<EmbeddingLayer, String>>), InferenceError> {
    let load = |tensors: &[&str]| load_session(runtime, model, device, layout, tensors, control);
    let lane = |session, embedder| Mutex::new(Lane { session, embedder, is_warm: false });
    if let OutputConvention::Embedding(output) = &model.card.output {
        let mut first = load(&[])?;
        let layer = encoder_layer(&model.card, output, layout.batch, &mut first, control);
        let layer = layer.map_err(|error| match error {
            PredictError::Cancelled => InferenceError::Cancelled,
            other => InferenceError::NoEmbedding(other.to_string()),
        })?;
        let mut lanes = vec![lane(first, None)];
        while lanes.len() < layout.lanes {
            lanes.push(lane(load(&[])?, None));
        }
        return Ok((lanes, Some(Ok(layer))));
    }
    if !options.embeddings {
        let lanes = (0..layout.lanes).map(|_| Ok(lane(load(&[])?, None))).collect::<Result<_, InferenceError>>()?;
        return Ok((lanes, None));
    }
    let file = proof_file(runtime, model, device, layout, options);
    let mut lanes = Vec::with_capacity(layout.lanes);
    let proof = if let Some((proof, session, embedder)) = load_proven(file.as_ref(), load)? {
        lanes.push(lane(session, embedder));
        Ok(proof)
    } else {
        let mut plain = load(&[])?;
        match prove(&model.card, &model.weights, layout.batch, &mut plain, load, control) {
            Err(reason) => {
                lanes.push(lane(plain, None));
                Err(reason)
            }
            Ok((proof, session)) => {
                let needs_both = proof.layer.own_session.is_some();
                lanes.push(if needs_both { lane(plain, Some(session)) } else { lane(session, None) });
                if let Some(file) = file {
                    file.write(&proof);
                }
                Ok(proof)
            }
        }
    };
    let additional: Vec<&str> = proof.iter().flat_map(|proof| &proof.additional).map(String::as_str).collect();
    let needs_both = proof.as_ref().is_ok_and(|proof| proof.layer.own_session.is_some());
    while lanes.len() < layout.lanes {
        lanes.push(if needs_both {
            lane(load(&[])?, Some(load(&additional)?))
        } else {
            lane(load(&additional)?, None)
        });
    }
    Ok((lanes, Some(proof.map(|proof| proof.layer))))
}

/// The sessions of a lane by a kept proof; `None` without one that fits the model.
fn load_proven(
    file: Option<&ProofFile>,
    load: impl Fn(&[&str]) -> Result<OnnxSession, InferenceError>,
) -> Result<Option<(Proof, OnnxSession, Option<OnnxSession>)>, InferenceError> {
    let Some(proof) = file.and_then(ProofFile::read::<Proof>) else {
        return Ok(None);
    };
    let additional: Vec<&str> = proof.additional.iter().map(String::as_str).collect();
    let embedder = match load(&additional) {
        Ok(session) => session,
        Err(InferenceError::Cancelled) => return Err(InferenceError::Cancelled),
        Err(_) => return Ok(None),
    };
    let outputs = embedder.signature().outputs;
    if proof.layer.tensors().iter().any(|tensor| outputs.iter().all(|output| output.name != *tensor)) {
        return Ok(None);
    }
    Ok(Some(match proof.layer.own_session {
        Some(_) => (proof, load(&[])?, Some(embedder)),
        None => (proof, embedder, None),
    }))
}

/// Where the proof for these sessions is kept.
fn proof_file(
    runtime: &Loaded,
    model: &Model,
    device: &PreparedDevice<'_>,
    layout: LaneLayout,
    options: &LoadOptions,
) -> Option<ProofFile> {
    let LaneLayout { threads_per_session, batch, .. } = layout;
    let (name, adapter) = (device.device.name(), device.adapter.as_deref().unwrap_or_default());
    let device = format!("{} {name} {adapter} {threads_per_session} {batch}", runtime.version);
    ProofFile::new(options.proofs.as_ref()?, &model.card, &model.weights, &device)
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

    fn layer(&self) -> Option<&EmbeddingLayer> {
        self.embedding.as_ref()?.as_ref().ok()
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

    fn embed_region(
        &self,
        image: &Prepared,
        bounds: BoundingBox,
        control: &TaskControl,
    ) -> Result<Embedding, PredictError> {
        let failed = |reason: &str| PredictError::Failed(reason.to_owned());
        let encoder = self.layer().and_then(EmbeddingLayer::box_encoder);
        let Some(BoxEncoder { features: BoxFeatures::Maps(maps), .. }) = encoder else {
            return Err(failed("the model has no feature map to compare parts of an image by"));
        };
        let batch = std::slice::from_ref(image);
        let inner = self.call(0, batch, control)?.inner;
        let maps: Vec<&Tensor> = maps.iter().filter_map(|name| inner.get(name)).collect();
        let vector = average_under(&maps, 0, image, &[bounds]).pop().flatten();
        let vector =
            vector.ok_or_else(|| failed("the rectangle is outside the part of the image that the model sees"))?;
        Embedding::new(&vector).ok_or_else(|| failed("the model’s feature map is not finite"))
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
        let CallOutputs { outputs, inner, images } = self.call(lane, batch, control)?;
        let predictions = postprocess(&self.card.output, &self.labels, keep, &outputs, batch, images)?;
        let tensor = self.layer().and_then(|layer| inner.get(&layer.tensor.name));
        let vectors = tensor.map_or_else(|| Ok(Vec::new()), |tensor| embeddings_of(tensor, images));
        let vectors: Vec<_> =
            vectors.map(|all| all.iter().map(|vector| Embedding::new(vector)).collect()).or_else(|error| {
                // An image without an embedding still has its prediction.
                if self.card.is_encoder() { Err(error) } else { Ok(Vec::new()) }
            })?;
        if self.card.is_encoder() && vectors.iter().take(batch.len()).any(Option::is_none) {
            let reason = "the model’s embedding is not a number, infinite or larger than 65,504";
            return Err(PredictError::Failed(reason.to_owned()));
        }
        let mut vectors = vectors.into_iter();
        let mut predicted = Vec::with_capacity(predictions.len());
        for (index, prediction) in predictions.into_iter().enumerate() {
            let embeddings = vectors.next().flatten().map(|image| {
                let rows = || candidates_of(&self.card, keep, &outputs, images, index);
                let boxes = self.embed_boxes(&inner, index, &batch[index], &prediction, rows);
                ImageEmbeddings { image, boxes }
            });
            predicted.push(Predicted { prediction, embeddings });
        }
        Ok(predicted)
    }

    /// One call, of both sessions if there are two.
    fn call(&self, lane: usize, batch: &[Prepared], control: &TaskControl) -> Result<CallOutputs, PredictError> {
        let mut lane = self.lanes[lane].lock();
        let lane = &mut *lane;
        let images = self.card.input.fixed_batch.map_or(batch.len(), |fixed| fixed as usize);
        let joined = join(batch, images)?;
        let used = used_outputs(&self.card);
        let tensors = self.layer().map(EmbeddingLayer::tensors).unwrap_or_default();
        let start = Instant::now();
        let mut names = used.clone();
        if !names.is_empty() && lane.embedder.is_none() {
            names.extend(tensors.iter().filter(|name| !used.contains(name)));
        }
        let mut outputs = call(&mut lane.session, &self.card, &joined, &names, control)?;
        let mut inner: BTreeMap<String, Tensor> = match &mut lane.embedder {
            Some(embedder) => call(embedder, &self.card, &joined, &tensors, control)?,
            None => {
                tensors.iter().filter_map(|name| Some(((*name).to_owned(), take(&mut outputs, name, &used)?))).collect()
            }
        };
        if let OutputConvention::Embedding(output) = &self.card.output {
            let layout = self.card.input.layout;
            inner = inner.into_iter().map(|(name, all)| (name, encoded(all, images, layout, output.tokens))).collect();
        }
        let call_ms = start.elapsed().as_secs_f64() * 1e3;
        self.calls.lock().add(call_ms, lane.is_warm);
        lane.is_warm = true;
        Ok(CallOutputs { outputs, inner, images })
    }

    /// The vectors of the boxes of image `index` that get one. `rows` are the candidates of all boxes.
    fn embed_boxes(
        &self,
        inner: &BTreeMap<String, Tensor>,
        index: usize,
        prepared: &Prepared,
        prediction: &Prediction,
        rows: impl FnOnce() -> Vec<usize>,
    ) -> Vec<BoxEmbedding> {
        let Some(encoder) = self.layer().and_then(EmbeddingLayer::box_encoder) else {
            return Vec::new();
        };
        let boxes = boxes_to_describe(&self.card, prediction);
        let vectors = match &encoder.features {
            BoxFeatures::Maps(maps) => {
                let maps: Vec<&Tensor> = maps.iter().filter_map(|name| inner.get(name)).collect();
                let bounds: Vec<BoundingBox> = boxes.iter().map(|at| prediction.detections()[*at].bounds).collect();
                average_under(&maps, index, prepared, &bounds)
            }
            BoxFeatures::Candidates(tensor) => {
                let rows = rows();
                let rows: Vec<usize> = boxes.iter().map(|at| rows.get(*at).copied().unwrap_or(usize::MAX)).collect();
                inner.get(tensor).map(|tensor| vectors_of_candidates(tensor, index, &rows)).unwrap_or_default()
            }
        };
        let embedded = boxes.into_iter().zip(vectors).filter_map(|(at, vector)| {
            Some(BoxEmbedding { index: u16::try_from(at).ok()?, embedding: Embedding::new(&vector?)? })
        });
        embedded.collect()
    }
}

/// The outputs of a call with `images` images, including padding.
struct CallOutputs {
    outputs: BTreeMap<String, Tensor>,
    /// The tensors that embeddings are computed from.
    inner: BTreeMap<String, Tensor>,
    images: usize,
}

/// The candidate of each box of image `index`; empty if the outputs do not fit, which the prediction reports.
fn candidates_of(
    card: &ModelCard,
    keep: KeepRule,
    outputs: &BTreeMap<String, Tensor>,
    images: usize,
    index: usize,
) -> Vec<usize> {
    match &card.output {
        OutputConvention::Detection(output) => {
            candidates_of_boxes(output, keep.min_score, outputs, images, index).unwrap_or_default()
        }
        OutputConvention::Classification(_) | OutputConvention::Embedding(_) => Vec::new(),
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
