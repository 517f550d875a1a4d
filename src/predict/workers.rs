//! The work of a run's threads, and where its time goes.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;
use strum::{IntoStaticStr, VariantArray};

use super::limits::{ByteBudget, Gate, Room};
use super::{PredictRequest, SampleResult, Stopped};
use crate::alike::ImageEmbeddings;
use crate::domain::{Prediction, Problem};
use crate::image::decode::{DecodeLimits, Format, decode_reserved, details};
use crate::image::source::SourceError;
use crate::model::{EncodedImage, EncodedPredictor, PredictError, Predicted, Predictor, Prepared};
use crate::tasks::{TaskControl, panic_text};

/// Shared by all threads of a run. A thread ends when its input ends, its output has no receiver, or the run is
/// canceled.
pub(super) struct Shared<'r> {
    pub request: &'r PredictRequest,
    /// The samples to compute, in ascending order. The gate counts them.
    pub places: &'r [usize],
    pub control: &'r TaskControl,
    pub gate: &'r Gate,
    pub room: &'r ByteBudget,
    pub clock: StageClock,
    pub notes: Mutex<Vec<String>>,
    /// Problems of images in progress, by their index.
    pub warnings: Mutex<BTreeMap<usize, String>>,
    /// Why the run ends before its last image, if the model or the source stopped it.
    pub stopped: Mutex<Option<Stopped>>,
}

/// An encoded image with its share of the memory, until it is decoded.
pub(super) type Encoded<'r> = (usize, Result<(Vec<u8>, Room<'r>), String>);
type Decoded = (usize, Result<Prepared, String>);
pub(super) type Finished = (usize, SampleResult, Option<ImageEmbeddings>);

impl<'r> Shared<'r> {
    pub(super) fn read(&self, encoded: &Sender<Encoded<'r>>) {
        while let Some(place) = self.gate.take() {
            let index = self.places[place];
            if self.control.checkpoint().is_err() {
                return;
            }
            let sample = &self.request.samples[index];
            let Some(room) = self.room.take(sample.size_bytes) else {
                return;
            };
            let read = self.clock.measure(Stage::Read, || {
                let read = || self.request.source.read(&sample.uri);
                catch_unwind(AssertUnwindSafe(read))
            });
            // A read that was canceled with the run is not a problem of the image.
            if self.control.is_cancelled() {
                return;
            }
            let bytes = match read {
                Ok(Err(SourceError::Unreachable(reason))) => {
                    return self.stop(Stopped::SourceUnreachable(reason));
                }
                Ok(read) => read.map_err(|error| error.to_string()),
                Err(panic) => Err(internal(&*panic)),
            };
            if encoded.send((index, bytes.map(|bytes| (bytes, room)))).is_err() {
                return;
            }
        }
    }

    /// Decodes images into tensors, for a model with one lane.
    pub(super) fn decode(
        &self,
        predictor: &dyn Predictor,
        encoded: &Receiver<Encoded<'r>>,
        prepared: &Sender<Decoded>,
    ) {
        for (index, bytes) in encoded {
            if self.control.checkpoint().is_err() {
                return;
            }
            if prepared.send((index, self.prepare(predictor, index, bytes))).is_err() {
                return;
            }
        }
    }

    /// Predicts batches of consecutive images, whatever order they arrive in, for a model with one lane.
    pub(super) fn predict_batches(
        &self,
        predictor: &dyn Predictor,
        batch_len: usize,
        prepared: &Receiver<Decoded>,
        finished: &Sender<Finished>,
    ) {
        let total = self.request.samples.len();
        let mut open: BTreeMap<usize, Vec<Decoded>> = BTreeMap::new();
        let mut max_len = batch_len;
        for (index, result) in prepared {
            let number = index / batch_len;
            let members = open.entry(number).or_default();
            members.push((index, result));
            if members.len() < batch_len.min(total - number * batch_len) {
                continue;
            }
            let mut members = open.remove(&number).unwrap_or_default();
            members.sort_by_key(|(index, _)| *index);
            if self.predict_batch(predictor, members, &mut max_len, finished).is_err() {
                return;
            }
        }
    }

    /// Decodes and predicts one image at a time, for a model with several lanes.
    pub(super) fn decode_and_predict(
        &self,
        predictor: &dyn Predictor,
        lane: usize,
        encoded: &Receiver<Encoded<'r>>,
        finished: &Sender<Finished>,
    ) {
        self.finish_each(encoded, finished, |index, bytes| {
            let prepared = self.prepare(predictor, index, bytes).map_err(PredictError::Failed)?;
            let mut predictions = self.call_model(predictor, lane, &[prepared])?;
            predictions.pop().ok_or_else(|| PredictError::Failed(NO_PREDICTION.to_owned()))
        });
    }

    /// Sends each file unchanged, for a model that takes files.
    pub(super) fn predict_files(
        &self,
        predictor: &dyn EncodedPredictor,
        encoded: &Receiver<Encoded<'r>>,
        finished: &Sender<Finished>,
    ) {
        self.finish_each(encoded, finished, |_, bytes| {
            let (bytes, _room) = bytes.map_err(PredictError::Failed)?;
            let prediction = self.predict_file(predictor, &bytes)?;
            Ok(Predicted { prediction, embeddings: None })
        });
    }

    /// Passes on the result for each image, until the run ends.
    fn finish_each(
        &self,
        encoded: &Receiver<Encoded<'r>>,
        finished: &Sender<Finished>,
        predict: impl Fn(usize, Result<(Vec<u8>, Room<'r>), String>) -> Result<Predicted, PredictError>,
    ) {
        for (index, bytes) in encoded {
            if self.control.checkpoint().is_err() {
                return;
            }
            let result = match predict(index, bytes).map_err(|error| self.message_or_end(error)) {
                Ok(prediction) => Ok(prediction),
                Err(Ok(message)) => Err(message),
                Err(Err(Ended)) => return,
            };
            if self.finish(index, result, finished).is_err() {
                return;
            }
        }
    }

    fn predict_file(&self, predictor: &dyn EncodedPredictor, bytes: &[u8]) -> Result<Prediction, PredictError> {
        let size =
            self.clock.measure(Stage::Decode, || guarded(|| upright_size(bytes)).map_err(PredictError::Failed))?;
        let image = EncodedImage { bytes, size };
        let call = || predictor.predict(&image, self.control);
        self.clock.measure(Stage::Model, || {
            catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(PredictError::Failed(internal(&*panic))))
        })
    }

    /// The problem of one image, or the end of the run.
    fn message_or_end(&self, error: PredictError) -> Result<String, Ended> {
        match error {
            PredictError::Cancelled => {}
            PredictError::DeviceLost(reason) => self.stop(Stopped::DeviceLost(reason)),
            PredictError::OutOfReach(reason) => self.stop(Stopped::OutOfReach(reason)),
            error => return Ok(error.to_string()),
        }
        Err(Ended)
    }

    fn prepare(
        &self,
        predictor: &dyn Predictor,
        index: usize,
        bytes: Result<(Vec<u8>, Room<'r>), String>,
    ) -> Result<Prepared, String> {
        let (bytes, room) = bytes?;
        let (image, _reservation) = self.clock.measure(Stage::Decode, || {
            guarded(|| decode_reserved(&bytes, &self.request.limits).map_err(|error| error.to_string()))
        })?;
        drop((bytes, room));
        if let Some(warning) = image.warning {
            self.warnings.lock().insert(index, warning);
        }
        self.clock
            .measure(Stage::Prepare, || guarded(|| predictor.prepare(&image.image).map_err(|error| error.to_string())))
    }

    /// Splits a batch into calls with one tensor shape and at most `max_len` images.
    fn predict_batch(
        &self,
        predictor: &dyn Predictor,
        members: Vec<Decoded>,
        max_len: &mut usize,
        finished: &Sender<Finished>,
    ) -> Result<(), Ended> {
        let mut pending: Vec<(usize, Prepared)> = Vec::new();
        for (index, result) in members {
            match result {
                Ok(prepared) => pending.push((index, prepared)),
                Err(message) => self.finish(index, Err(message), finished)?,
            }
        }
        while !pending.is_empty() {
            let shape = &pending[0].1.tensor.shape;
            let same_shape = pending.iter().take_while(|(_, prepared)| prepared.tensor.shape == *shape);
            let call_len = same_shape.count().min(*max_len);
            let rest = pending.split_off(call_len);
            let (indices, batch): (Vec<usize>, Vec<Prepared>) = pending.into_iter().unzip();
            pending = rest;
            let results = self.predict_or_split(predictor, &batch, max_len)?;
            for (index, result) in indices.into_iter().zip(results) {
                self.finish(index, result, finished)?;
            }
        }
        Ok(())
    }

    /// Tries the whole batch; if that fails, its parts, down to single images, so that a bad image affects only itself.
    /// A device that is out of memory gets smaller batches from then on.
    fn predict_or_split(
        &self,
        predictor: &dyn Predictor,
        batch: &[Prepared],
        max_len: &mut usize,
    ) -> Result<Vec<Result<Predicted, String>>, Ended> {
        self.control.checkpoint().map_err(|_| Ended)?;
        match self.call_model(predictor, 0, batch) {
            Ok(predictions) => return Ok(predictions.into_iter().map(Ok).collect()),
            Err(PredictError::OutOfMemory(reason)) if batch.len() > 1 => {
                self.halve_batch(batch.len(), max_len, &reason);
            }
            Err(PredictError::Failed(_)) if batch.len() > 1 => {}
            Err(error) => return Ok(vec![Err(self.message_or_end(error)?)]),
        }
        let (left, right) = batch.split_at(batch.len() / 2);
        let mut results = self.predict_or_split(predictor, left, max_len)?;
        results.extend(self.predict_or_split(predictor, right, max_len)?);
        Ok(results)
    }

    fn halve_batch(&self, failed_len: usize, max_len: &mut usize, reason: &str) {
        let halved = (failed_len / 2).max(1);
        if halved < *max_len {
            *max_len = halved;
            let note = format!(
                "The device ran out of memory with {failed_len} images per call; continuing with {halved} ({reason})"
            );
            log::warn!("{note}");
            self.notes.lock().push(note);
        }
    }

    fn call_model(
        &self,
        predictor: &dyn Predictor,
        lane: usize,
        batch: &[Prepared],
    ) -> Result<Vec<Predicted>, PredictError> {
        let call = || predictor.predict_with_embeddings(lane, batch, self.control);
        let predictions = self.clock.measure(Stage::Model, || {
            catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(PredictError::Failed(internal(&*panic))))
        })?;
        if predictions.len() == batch.len() {
            Ok(predictions)
        } else {
            Err(PredictError::Failed(NO_PREDICTION.to_owned()))
        }
    }

    fn finish(
        &self,
        index: usize,
        result: Result<Predicted, String>,
        finished: &Sender<Finished>,
    ) -> Result<(), Ended> {
        let uri = &self.request.samples[index].uri;
        let warning = self.warnings.lock().remove(&index);
        let (result, embeddings) = match result {
            Ok(Predicted { mut prediction, embeddings }) => {
                prediction.warnings.extend(warning);
                (Ok(prediction), embeddings)
            }
            Err(message) => (Err(Problem::new(uri.clone(), message)), None),
        };
        finished.send((index, result, embeddings)).map_err(|_| Ended)
    }

    fn stop(&self, why: Stopped) {
        self.stopped.lock().get_or_insert(why);
        self.gate.close();
    }
}

/// The run is over for this thread.
struct Ended;

const NO_PREDICTION: &str = "the model returned no prediction for this image";

/// Width and height of the upright image in pixels, from the header of its file.
///
/// # Errors
/// The message for a file that is not an image.
pub fn upright_size(bytes: &[u8]) -> Result<[u32; 2], String> {
    // A file that is not an image is not sent: it would cost time and money, and fail there as well.
    Format::detect(bytes).map_err(|error| error.to_string())?;
    details(bytes).upright_size().ok_or_else(|| "could not read the header of the image".to_owned())
}

/// Predicts one encoded image on the calling thread, with the model's first lane. The result equals that of
/// [`predict`](super::predict).
///
/// # Errors
/// An image that cannot be decoded is [`PredictError::Failed`], like a model that fails.
pub fn predict_bytes(
    predictor: &dyn Predictor,
    bytes: &[u8],
    limits: &DecodeLimits,
    control: &TaskControl,
) -> Result<Predicted, PredictError> {
    let (image, _reservation) =
        decode_reserved(bytes, limits).map_err(|error| PredictError::Failed(error.to_string()))?;
    let prepared = predictor.prepare(&image.image)?;
    let mut predicted = predictor
        .predict_with_embeddings(0, &[prepared], control)?
        .pop()
        .ok_or_else(|| PredictError::Failed(NO_PREDICTION.to_owned()))?;
    predicted.prediction.warnings.extend(image.warning);
    Ok(predicted)
}

/// A panic in a decoder or a model becomes the problem of one image.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal(&*panic)))
}

fn internal(panic: &(dyn std::any::Any + Send)) -> String {
    format!("an internal error in Spotcheck, please report it: {}", panic_text(panic))
}

/// A step of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(const_into_str)]
pub enum Stage {
    #[strum(serialize = "reading")]
    Read,
    #[strum(serialize = "decoding")]
    Decode,
    #[strum(serialize = "preparing")]
    Prepare,
    #[strum(serialize = "the model")]
    Model,
    #[strum(serialize = "writing")]
    Write,
}

/// The busy time of threads, summed per stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StageTimes {
    busy: [Duration; 5],
    threads: [usize; 5],
}

impl StageTimes {
    /// The busy time summed over the stage's threads, without waiting.
    pub fn busy(&self, stage: Stage) -> Duration {
        self.busy[stage as usize]
    }

    /// The stage with the highest busy time per thread: the one to optimize first. `None` for an empty run.
    pub fn slowest(&self) -> Option<Stage> {
        let per_thread =
            |stage: Stage| self.busy[stage as usize].as_secs_f64() / self.threads[stage as usize].max(1) as f64;
        let slowest =
            Stage::VARIANTS.iter().copied().max_by(|left, right| per_thread(*left).total_cmp(&per_thread(*right)));
        slowest.filter(|stage| self.busy(*stage) > Duration::ZERO)
    }
}

/// Sums up the busy time of each stage from many threads.
#[derive(Default)]
pub(super) struct StageClock {
    busy_nanos: [AtomicU64; 5],
}

impl StageClock {
    pub(super) fn measure<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos[stage as usize].fetch_add(nanos, Ordering::Relaxed);
        result
    }

    /// `workers` are the threads that decode, prepare and compute, in this order.
    pub(super) fn times(&self, readers: usize, workers: [usize; 3]) -> StageTimes {
        let busy = self.busy_nanos.each_ref().map(|nanos| Duration::from_nanos(nanos.load(Ordering::Relaxed)));
        StageTimes { busy, threads: [readers, workers[0], workers[1], workers[2], 1] }
    }
}
