//! The pipeline: reading, decoding, the model and writing overlap, with bounded queues between them.
//!
//! Knows nothing of where images come from or where the model computes; it feeds any [`Source`] to any [`Predictor`].

mod gate;
mod stages;
mod workers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Receiver, bounded};

pub use stages::{Stage, StageTimes};

use crate::decode::DecodeLimits;
use crate::domain::{Prediction, Problem, Sample};
use crate::source::Source;
use crate::tasks::TaskControl;
use crate::vision::Predictor;
use gate::Gate;
use stages::StageClock;
use workers::Shared;

/// Reads that are in flight at once: enough to hide the latency of a slow disk or network share.
const READERS: usize = 4;
/// How far the fastest worker may be ahead of the slowest, in images. Bounds what waits to be written in order.
const MIN_WINDOW: usize = 64;

/// Which images to predict, and with what.
#[derive(Clone)]
pub struct PredictRequest {
    pub source: Arc<dyn Source>,
    pub samples: Arc<[Sample]>,
    pub predictor: Arc<dyn Predictor>,
    pub limits: DecodeLimits,
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct PredictOutcome {
    /// Images that have a prediction.
    pub done: usize,
    /// Images that have a problem instead.
    pub failed: usize,
    pub stages: StageTimes,
    /// What was done differently from what was asked, for people: a batch that had to be halved.
    pub notes: Vec<String>,
    /// `None` where every image was tried.
    pub stopped: Option<Stopped>,
}

/// Why a run ended before its last image. What was handed over before stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    Cancelled,
    /// The rest can be predicted once the model is loaded anew.
    DeviceLost(String),
}

/// One image's answer.
pub type SampleResult = Result<Prediction, Problem>;

/// Predicts every sample and hands the results to `sink` in the order of the samples (with gaps
/// where the run was stopped), on the calling thread. One bad image
/// is one problem; the rest goes on. At every moment at most `READERS + 2 x workers` encoded images and
/// `workers + 2 x batch` pictures or tensors are in memory.
///
/// Where the model runs on several lanes (a processor), each worker decodes and computes by itself, which wastes no
/// core; where it has one lane (a graphics card), decoders feed it with batches of consecutive images, so that two runs
/// form the same batches.
pub fn predict(
    request: &PredictRequest,
    control: &TaskControl,
    mut sink: impl FnMut(usize, SampleResult),
) -> PredictOutcome {
    let total = request.samples.len();
    control.set_total(Some(total as u64));
    let lanes = request.predictor.lanes().max(1);
    let batch = request.predictor.max_batch().max(1);
    let decoders = std::thread::available_parallelism().map_or(2, usize::from);
    let gate = Arc::new(Gate::new(total, MIN_WINDOW.max(batch * 4)));
    let gate_of_hook = Arc::clone(&gate);
    let _close_on_cancel = control.on_cancel(move || gate_of_hook.close());
    let shared = Shared {
        request,
        control,
        gate: &gate,
        clock: StageClock::default(),
        notes: Mutex::default(),
        device_lost: Mutex::default(),
    };

    let mut outcome = std::thread::scope(|scope| {
        let workers = if lanes > 1 { lanes } else { decoders };
        let (encoded_sender, encoded) = bounded(workers * 2);
        let (result_sender, results) = bounded(MIN_WINDOW);
        let shared = &shared;
        for _ in 0..READERS.min(total) {
            let sender = encoded_sender.clone();
            scope.spawn(move || shared.read(&sender));
        }
        if lanes > 1 {
            for lane in 0..lanes {
                let (encoded, sender) = (encoded.clone(), result_sender.clone());
                scope.spawn(move || shared.decode_and_predict(lane, &encoded, &sender));
            }
        } else {
            let (prepared_sender, prepared) = bounded(batch * 2);
            for _ in 0..decoders {
                let (encoded, sender) = (encoded.clone(), prepared_sender.clone());
                scope.spawn(move || shared.decode(&encoded, &sender));
            }
            let sender = result_sender.clone();
            scope.spawn(move || shared.predict_batches(batch, &prepared, &sender));
        }
        drop((encoded_sender, encoded, result_sender));
        write_in_order(shared, &results, &mut sink)
    });

    let threads = if lanes > 1 {
        [lanes; 3]
    } else {
        [decoders, decoders, 1]
    };
    outcome.stages = shared.clock.times(READERS.min(total), threads);
    outcome.notes = shared
        .notes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let device_lost = shared
        .device_lost
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    outcome.stopped = match device_lost {
        Some(reason) => Some(Stopped::DeviceLost(reason)),
        None => (outcome.done + outcome.failed < total).then_some(Stopped::Cancelled),
    };
    outcome
}

/// Hands results to the sink in the order of the samples, whatever order they arrive in.
fn write_in_order(
    shared: &Shared<'_>,
    results: &Receiver<(usize, SampleResult)>,
    sink: &mut dyn FnMut(usize, SampleResult),
) -> PredictOutcome {
    let mut outcome = PredictOutcome::default();
    let mut hand_over = |index: usize, result: SampleResult| {
        match &result {
            Ok(_) => outcome.done += 1,
            Err(_) => outcome.failed += 1,
        }
        shared.clock.measure(Stage::Write, || sink(index, result));
        shared.gate.set_written(index + 1);
        shared.control.add_done(1);
    };
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (index, result) in results {
        waiting.insert(index, result);
        while let Some(result) = waiting.remove(&next) {
            hand_over(next, result);
            next += 1;
        }
    }
    // A run that was stopped has gaps; what lies behind them was computed and is kept.
    for (index, result) in waiting {
        hand_over(index, result);
    }
    outcome
}

#[cfg(test)]
mod tests;
