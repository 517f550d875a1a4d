//! The pipeline: reading, decoding, the model and writing overlap, with bounded queues between them.
//!
//! Knows neither where images come from nor where the model runs; it feeds any [`Source`] to any model
//! ([`AnyPredictor`]).

mod limits;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{Scope, available_parallelism};

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;

use crate::alike::ImageEmbeddings;
use crate::domain::{Prediction, Problem, Sample, SampleId, SampleSet};
use crate::image::decode::DecodeLimits;
use crate::image::source::{Source, for_task};
use crate::model::{AnyPredictor, EncodedPredictor, Predictor};
use crate::tasks::TaskControl;
use workers::{Encoded, Finished, Shared, StageClock};

pub use limits::{ByteBudget, Gate};
pub use workers::{Stage, StageTimes, predict_bytes, upright_size};

/// Encoded images in memory, as far as their sizes are known. A larger image goes alone.
const MAX_ENCODED_BYTES: u64 = 256 << 20;
/// How far the fastest worker may be ahead of the slowest, in images. Bounds the results that wait to be written in
/// order.
const MIN_WINDOW: usize = 64;

/// Which images to predict, and with what.
#[derive(Clone)]
pub struct PredictRequest {
    pub source: Arc<dyn Source>,
    pub samples: Arc<[Sample]>,
    pub predictor: AnyPredictor,
    pub limits: DecodeLimits,
}

#[derive(Debug, Default)]
pub struct PredictOutcome {
    /// Images with a prediction.
    pub done: usize,
    /// Images with a problem instead.
    pub failed: usize,
    /// Predictions in `done` with a warning.
    pub warned: usize,
    pub stages: StageTimes,
    /// Deviations from the request, such as a batch that had to be halved.
    pub notes: Vec<String>,
    /// `None` if every image was tried.
    pub stopped: Option<Stopped>,
}

/// Why a run ended before its last image. Results passed on earlier are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    Cancelled,
    /// The rest can be predicted once the model is loaded again.
    DeviceLost(String),
    /// The remote model is unreachable. The rest can be predicted later.
    OutOfReach(String),
    /// No image can be read any more. Unread images have no result, and can be predicted once they are readable.
    SourceUnreachable(String),
}

pub type SampleResult = Result<Prediction, Problem>;

/// Receives the results of a run, on the thread that called [`predict_some`].
pub trait ResultSink {
    /// Called before the result of an image whose model has embeddings arrives.
    fn embedded(&mut self, _index: usize, _embeddings: ImageEmbeddings) {}

    /// Called as soon as a result arrives, in any order, to save it.
    fn arrived(&mut self, index: usize, result: &SampleResult);

    /// Called in sample order, with gaps if the run was stopped, to write the results. Every result that arrived is
    /// passed here once.
    fn in_order(&mut self, index: usize, result: SampleResult);
}

/// Predicts every sample and passes the results to `sink` in sample order (with gaps if the run was stopped), on the
/// calling thread. A bad image is one problem; the run continues. At any time, at most `useful_reads + 2 x workers`
/// encoded images of the source, totaling `MAX_ENCODED_BYTES`, and `workers + 2 x batch` images or tensors are in
/// memory.
///
/// If the model has several lanes (a CPU), each worker decodes and computes by itself, which wastes no core. If it has
/// one lane (a GPU), decoders feed it with batches of consecutive images, so that all runs form the same batches. A
/// model that takes files gets them undecoded, on all its lanes.
pub fn predict(
    request: &PredictRequest,
    control: &TaskControl,
    sink: impl FnMut(usize, SampleResult),
) -> PredictOutcome {
    struct InOrder<F>(F);
    impl<F: FnMut(usize, SampleResult)> ResultSink for InOrder<F> {
        fn arrived(&mut self, _: usize, _: &SampleResult) {}

        fn in_order(&mut self, index: usize, result: SampleResult) {
            (self.0)(index, result);
        }
    }
    let all = (0..request.samples.len()).map(SampleId::from_index).collect();
    predict_some(request, &all, control, &mut InOrder(sink))
}

/// As [`predict`] for only the samples in `selected`, with the same results: if a model uses batches, each batch with a
/// selected sample is computed as a whole, and the other results are dropped.
pub fn predict_some(
    request: &PredictRequest,
    selected: &SampleSet,
    control: &TaskControl,
    sink: &mut dyn ResultSink,
) -> PredictOutcome {
    let request = &PredictRequest { source: for_task(&request.source, control), ..request.clone() };
    let all = request.samples.len();
    let topology = Topology::new(&request.predictor);
    let batch = topology.batch();
    let places = places_of_batches(selected, batch, all);
    let total = places.len();
    control.set_total(Some(all as u64));
    control.set_done_before((all - total) as u64);
    let readers = request.source.useful_reads().clamp(1, total.max(1));
    let gate = Arc::new(Gate::new(total, MIN_WINDOW.max(batch * 4).max(readers * 2)));
    let room = Arc::new(ByteBudget::new(MAX_ENCODED_BYTES));
    let (gate_of_hook, room_of_hook) = (Arc::clone(&gate), Arc::clone(&room));
    let _close_on_cancel = control.on_cancel(move || {
        gate_of_hook.close();
        room_of_hook.close();
    });
    let shared = Shared {
        request,
        places: &places,
        control,
        gate: &gate,
        room: &room,
        clock: StageClock::default(),
        notes: Mutex::default(),
        warnings: Mutex::default(),
        stopped: Mutex::default(),
    };

    let mut outcome = std::thread::scope(|scope| {
        let [decoders, ..] = topology.threads();
        let (encoded_sender, encoded) = bounded(decoders * 2);
        let (result_sender, results) = bounded(MIN_WINDOW);
        let shared = &shared;
        for _ in 0..readers.min(total) {
            let sender = encoded_sender.clone();
            scope.spawn(move || shared.read(&sender));
        }
        topology.spawn(scope, shared, &encoded, &result_sender);
        drop((encoded_sender, encoded, result_sender));
        hand_over(shared, selected, &results, sink)
    });

    outcome.stages = shared.clock.times(readers.min(total), topology.threads());
    outcome.notes = shared.notes.into_inner();
    let stopped = shared.stopped.into_inner();
    outcome.stopped =
        stopped.or_else(|| (outcome.done + outcome.failed < selected.len()).then_some(Stopped::Cancelled));
    outcome
}

/// The indices of all samples that share a batch with a selected one, in ascending order.
fn places_of_batches(selected: &SampleSet, batch_len: usize, total: usize) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    for id in selected.iter().filter(|id| id.index() < total) {
        let start = id.index() / batch_len * batch_len;
        if places.last().is_none_or(|last| *last < start) {
            places.extend(start..(start + batch_len).min(total));
        }
    }
    places
}

/// Passes selected results to the sink, whatever order they arrive in.
fn hand_over(
    shared: &Shared<'_>,
    selected: &SampleSet,
    results: &Receiver<Finished>,
    sink: &mut dyn ResultSink,
) -> PredictOutcome {
    let mut outcome = PredictOutcome::default();
    let mut count = |result: &SampleResult| match result {
        Ok(prediction) => {
            outcome.done += 1;
            outcome.warned += usize::from(!prediction.warnings.is_empty());
        }
        Err(_) => outcome.failed += 1,
    };
    let is_selected = |index: usize| selected.contains(SampleId::from_index(index));
    let mut waiting = BTreeMap::new();
    let mut written = 0;
    for (index, result, embeddings) in results {
        shared.clock.measure(Stage::Write, || {
            if is_selected(index) {
                count(&result);
                if let Some(embeddings) = embeddings {
                    sink.embedded(index, embeddings);
                }
                sink.arrived(index, &result);
            }
            waiting.insert(index, result);
            while let Some((index, result)) = shared.places.get(written).and_then(|place| waiting.remove_entry(place)) {
                if is_selected(index) {
                    sink.in_order(index, result);
                }
                written += 1;
            }
        });
        shared.gate.set_written(written);
        shared.control.add_done(1);
    }
    // A stopped run has gaps; results after them were computed and are kept.
    for (index, result) in waiting {
        if is_selected(index) {
            sink.in_order(index, result);
        }
    }
    outcome
}

#[cfg(test)]
mod tests;

enum Topology<'m> {
    /// Each lane decodes and computes by itself, which leaves no core idle.
    Lanes { predictor: &'m dyn Predictor, lanes: usize },
    /// Decoders feed the only lane with batches.
    Batches { predictor: &'m dyn Predictor, batch: usize, decoders: usize },
    /// Each lane sends files unchanged.
    Files { predictor: &'m dyn EncodedPredictor, lanes: usize },
}

impl<'m> Topology<'m> {
    fn new(predictor: &'m AnyPredictor) -> Self {
        match predictor {
            AnyPredictor::OfFiles(predictor) => {
                Self::Files { predictor: &**predictor, lanes: predictor.lanes().max(1) }
            }
            AnyPredictor::OfTensors(predictor) if predictor.lanes() > 1 => {
                Self::Lanes { predictor: &**predictor, lanes: predictor.lanes() }
            }
            AnyPredictor::OfTensors(predictor) => Self::Batches {
                predictor: &**predictor,
                batch: predictor.max_batch().max(1),
                decoders: available_parallelism().map_or(2, usize::from),
            },
        }
    }

    /// The number of images computed together.
    fn batch(&self) -> usize {
        match self {
            Self::Batches { batch, .. } => *batch,
            Self::Lanes { .. } | Self::Files { .. } => 1,
        }
    }

    /// The number of threads that decode, prepare, and run the model.
    fn threads(&self) -> [usize; 3] {
        match self {
            Self::Batches { decoders, .. } => [*decoders, *decoders, 1],
            Self::Lanes { lanes, .. } | Self::Files { lanes, .. } => [*lanes; 3],
        }
    }

    /// Starts the threads between the readers and the consumer of the results.
    fn spawn<'scope, 'r: 'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        shared: &'scope Shared<'r>,
        encoded: &Receiver<Encoded<'r>>,
        results: &Sender<Finished>,
    ) where
        'm: 'scope,
    {
        match *self {
            Self::Files { predictor, lanes } => {
                for _ in 0..lanes {
                    let (encoded, results) = (encoded.clone(), results.clone());
                    scope.spawn(move || shared.predict_files(predictor, &encoded, &results));
                }
            }
            Self::Lanes { predictor, lanes } => {
                for lane in 0..lanes {
                    let (encoded, results) = (encoded.clone(), results.clone());
                    scope.spawn(move || {
                        shared.decode_and_predict(predictor, lane, &encoded, &results);
                    });
                }
            }
            Self::Batches { predictor, batch, decoders } => {
                let (prepared_sender, prepared) = bounded(batch * 2);
                for _ in 0..decoders {
                    let (encoded, sender) = (encoded.clone(), prepared_sender.clone());
                    scope.spawn(move || shared.decode(predictor, &encoded, &sender));
                }
                let results = results.clone();
                scope.spawn(move || {
                    shared.predict_batches(predictor, batch, &prepared, &results);
                });
            }
        }
    }
}
