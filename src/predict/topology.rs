//! The thread layout of a run, depending on what the model takes and how many images it computes together.

use std::thread::{Scope, available_parallelism};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::workers::{Encoded, Finished, Shared};
use crate::model::{AnyPredictor, EncodedPredictor, Predictor};

pub(super) enum Topology<'m> {
    /// Each lane decodes and computes by itself, which leaves no core idle.
    Lanes { predictor: &'m dyn Predictor, lanes: usize },
    /// Decoders feed the only lane with batches.
    Batches { predictor: &'m dyn Predictor, batch: usize, decoders: usize },
    /// Each lane sends files unchanged.
    Files { predictor: &'m dyn EncodedPredictor, lanes: usize },
}

impl<'m> Topology<'m> {
    pub(super) fn new(predictor: &'m AnyPredictor) -> Self {
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
    pub(super) fn batch(&self) -> usize {
        match self {
            Self::Batches { batch, .. } => *batch,
            Self::Lanes { .. } | Self::Files { .. } => 1,
        }
    }

    /// The number of threads that decode, prepare, and run the model.
    pub(super) fn threads(&self) -> [usize; 3] {
        match self {
            Self::Batches { decoders, .. } => [*decoders, *decoders, 1],
            Self::Lanes { lanes, .. } | Self::Files { lanes, .. } => [*lanes; 3],
        }
    }

    /// Starts the threads between the readers and the consumer of the results.
    pub(super) fn spawn<'scope, 'r: 'scope>(
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
