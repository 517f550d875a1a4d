//! The predictions of two runs, side by side.

use std::collections::VecDeque;

use super::{Project, StoreError};
use crate::domain::{Prediction, RunId, Sample, SampleUri};

/// The number of samples whose predictions are in memory at a time.
const PAGE_LEN: usize = 256;

/// The predictions of two runs for each of the given samples, in order. `None` if a run has no prediction, failed, or
/// predicted another version of the file.
pub struct PredictionPairs<S> {
    project: Project,
    runs: [RunId; 2],
    samples: S,
    page: VecDeque<PredictionPair>,
}

/// The predictions of two runs for one image.
pub struct PredictionPair {
    pub sample: Sample,
    /// In the order of the runs.
    pub predictions: [Option<Prediction>; 2],
}

impl<S: Iterator<Item = Sample>> PredictionPairs<S> {
    pub fn new(project: Project, runs: [RunId; 2], samples: S) -> Self {
        Self { project, runs, samples, page: VecDeque::new() }
    }

    fn read_page(&mut self) -> Result<(), StoreError> {
        let samples: Vec<Sample> = self.samples.by_ref().take(PAGE_LEN).collect();
        let uris: Vec<SampleUri> = samples.iter().map(|sample| sample.uri.clone()).collect();
        let [left, right] = self.runs;
        let left = self.project.predictions(left, &uris)?;
        let right = self.project.predictions(right, &uris)?;
        for ((sample, left), right) in samples.into_iter().zip(left).zip(right) {
            let predictions = [left, right].map(|prediction| {
                let prediction = prediction.filter(|prediction| prediction.is_of(&sample.stamp()))?;
                prediction.result.ok()
            });
            self.page.push_back(PredictionPair { sample, predictions });
        }
        Ok(())
    }
}

impl<S: Iterator<Item = Sample>> Iterator for PredictionPairs<S> {
    /// After an error, the samples that were to be read are skipped.
    type Item = Result<PredictionPair, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty()
            && let Err(error) = self.read_page()
        {
            return Some(Err(error));
        }
        self.page.pop_front().map(Ok)
    }
}
