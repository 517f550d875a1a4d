//! The predictions of two runs, side by side.

use super::{Project, StoreError};
use crate::domain::{Prediction, RunId, Sample, SamplePrediction, SampleUri};

/// The number of samples whose predictions are in memory at a time.
const PAGE_LEN: usize = 256;

/// The predictions of two runs for one image.
pub struct PredictionPair {
    pub sample: Sample,
    /// In the order of the runs.
    pub predictions: [Option<Prediction>; 2],
}

/// The predictions of two runs for each of the given samples, in order. `None` if a run has no prediction, failed, or
/// predicted another version of the file.
pub fn prediction_pairs(
    project: Project,
    runs: [RunId; 2],
    samples: impl Iterator<Item = Sample>,
) -> impl Iterator<Item = Result<PredictionPair, StoreError>> {
    paged(samples, PAGE_LEN, move |samples| {
        let uris: Vec<SampleUri> = samples.iter().map(|sample| sample.uri.clone()).collect();
        let [left, right] = [project.predictions(runs[0], &uris)?, project.predictions(runs[1], &uris)?];
        let pair = |((sample, left), right): ((Sample, Option<SamplePrediction>), Option<SamplePrediction>)| {
            let predictions = [left, right]
                .map(|prediction| prediction.filter(|prediction| prediction.is_of(&sample.stamp()))?.result.ok());
            PredictionPair { sample, predictions }
        };
        Ok(samples.into_iter().zip(left).zip(right).map(pair).collect())
    })
}

/// Reads a row per sample, page by page. After an error, the samples of its page are skipped.
pub fn paged<T, E>(
    mut samples: impl Iterator<Item = Sample>,
    page_len: usize,
    mut read: impl FnMut(Vec<Sample>) -> Result<Vec<T>, E>,
) -> impl Iterator<Item = Result<T, E>> {
    let mut page = Vec::new().into_iter();
    std::iter::from_fn(move || {
        if page.len() == 0 {
            match read(samples.by_ref().take(page_len).collect()) {
                Ok(rows) => page = rows.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
        page.next().map(Ok)
    })
}
