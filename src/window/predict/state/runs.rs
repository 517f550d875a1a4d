//! The runs over the open source: a columnar summary of their predictions, and the location of the complete ones.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{LabelSet, ModelTask, Prediction, RunId, RunInfo, SampleId, SampleSet, ViewSettings, counted};
use crate::review::{Marks, PredictionStatus, Predictions, Suppressed, count_boxes};
use crate::window::state::pages::PredictionPages;

/// The project's record of its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RememberedRuns {
    pub(crate) on_screen: Option<RunId>,
    /// Runs with at most one prediction, an automatic one.
    pub(crate) automatic: Vec<RunId>,
}

/// The runs of the open project. Returning to an earlier model shows its predictions again.
#[derive(Default)]
pub struct Runs {
    all: Vec<Run>,
    current: Option<RunId>,
    /// An id that is new in this project, also among deleted runs; the project knows the first free one.
    next_id: u64,
    pages: PredictionPages,
    /// Samples whose complete predictions are on screen or needed soon, most urgent first.
    pub(crate) requested: Vec<(RunId, SampleId)>,
}

/// The predictions of one model for the samples of the open source.
pub struct Run {
    pub info: RunInfo,
    pub predictions: Predictions,
    pub(crate) loading: Loading,
    /// The number of predictions in the project that are outdated and not shown.
    pub(crate) outdated_count: usize,
    /// The number of outdated predictions kept because they were judged.
    pub(crate) kept: usize,
    /// Whether the project contains the run; it is saved with the first prediction.
    pub(crate) is_in_project: bool,
    /// Whether it started with an automatic prediction and the user has requested nothing else from it.
    pub(crate) is_automatic: bool,
    /// Samples whose files changed after they were predicted.
    pub(crate) outdated: SampleSet,
    /// Predictions that are not saved yet.
    unsaved: HashMap<SampleId, Unsaved>,
}

struct Unsaved {
    ticket: u64,
    /// `None` for a failure.
    prediction: Option<Arc<Prediction>>,
}

/// How much of a run in the project is in its summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loading {
    NotYet,
    Running,
    Done,
}

impl Runs {
    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Run> {
        self.all.iter()
    }

    pub fn current(&self) -> Option<&Run> {
        self.get(self.current?)
    }

    pub fn get(&self, id: RunId) -> Option<&Run> {
        self.all.iter().find(|run| run.info.id == id)
    }

    /// A complete prediction, if it is in memory; others must be read from the project first.
    pub fn prediction(&self, run: RunId, sample: SampleId) -> Option<&Arc<Prediction>> {
        let unsaved = self.get(run)?.unsaved.get(&sample);
        match unsaved {
            Some(unsaved) => unsaved.prediction.as_ref(),
            None => self.pages.get(run, sample),
        }
    }

    /// Marks a prediction as outdated because the file changed after it.
    pub(crate) fn mark_outdated(&mut self, sample: SampleId) {
        for run in &mut self.all {
            let has_prediction = matches!(run.status(sample), PredictionStatus::Predicted | PredictionStatus::Failed);
            if has_prediction {
                run.outdated.insert(sample);
            }
        }
    }

    pub(crate) fn get_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.all.iter_mut().find(|run| run.info.id == id)
    }

    pub(crate) fn switch_to(&mut self, id: Option<RunId>) {
        self.current = id;
    }

    /// Sets the first id that the project has never given to a run.
    pub(crate) fn begin_ids_at(&mut self, first: RunId) {
        self.next_id = self.next_id.max(first.0);
    }

    pub(crate) fn new_id(&mut self) -> RunId {
        let id = RunId(self.next_id);
        self.next_id += 1;
        id
    }

    pub(crate) fn add(&mut self, run: Run) {
        self.all.push(run);
    }

    pub(crate) fn remove(&mut self, id: RunId) {
        self.all.retain(|run| run.info.id != id);
        self.pages.forget_run(id);
        self.current = self.current.filter(|current| *current != id);
    }

    /// Drops all predictions, for a new source.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Stores a prediction; it stays in memory completely until its ticket is saved. A second prediction of an image
    /// replaces the first.
    pub(crate) fn record(
        &mut self,
        run: RunId,
        sample: SampleId,
        result: Result<Arc<Prediction>, String>,
        ticket: u64,
    ) {
        self.pages.forget(run, sample);
        let Some(run) = self.get_mut(run) else {
            return;
        };
        run.outdated.remove(sample);
        let prediction = match result {
            Ok(prediction) => {
                run.predictions.record(sample, &prediction);
                Some(prediction)
            }
            Err(reason) => {
                run.predictions.record_failure(sample, reason);
                None
            }
        };
        run.unsaved.insert(sample, Unsaved { ticket, prediction });
    }

    /// Releases predictions that are saved.
    pub(crate) fn set_saved(&mut self, up_to: u64) {
        let pages = &mut self.pages;
        for run in &mut self.all {
            let id = run.info.id;
            run.unsaved.retain(|sample, unsaved| {
                let is_saved = unsaved.ticket <= up_to;
                if let Some(prediction) = unsaved.prediction.take_if(|_| is_saved) {
                    pages.put(id, *sample, prediction);
                }
                !is_saved
            });
        }
    }

    /// Stores a complete prediction read from the project, unless a newer one exists.
    pub(crate) fn page_in(&mut self, run: RunId, sample: SampleId, prediction: Prediction) {
        let is_newer_there = self.get(run).is_none_or(|run| run.unsaved.contains_key(&sample));
        if !is_newer_there {
            self.pages.put(run, sample, Arc::new(prediction));
        }
    }

    /// The requested predictions to read. Those in memory count as used.
    pub(crate) fn missing(&mut self) -> Vec<(RunId, SampleId)> {
        let mut missing = Vec::new();
        for &(run, sample) in &self.requested {
            let status = self.get(run).map_or(PredictionStatus::Unpredicted, |run| run.predictions.status(sample));
            if status != PredictionStatus::Predicted {
                continue;
            }
            if self.prediction(run, sample).is_none() {
                missing.push((run, sample));
            }
        }
        for (run, sample) in &self.requested {
            self.pages.touch(*run, *sample);
        }
        missing
    }
}

impl Run {
    pub fn new(info: RunInfo) -> Self {
        Self {
            predictions: Predictions::new(info.card.stored_as()),
            info,
            loading: Loading::Done,
            outdated_count: 0,
            kept: 0,
            is_in_project: false,
            is_automatic: false,
            outdated: SampleSet::default(),
            unsaved: HashMap::new(),
        }
    }

    /// A new run that starts with an automatic prediction.
    pub(crate) fn automatic(info: RunInfo) -> Self {
        Self { is_automatic: true, ..Self::new(info) }
    }

    /// A run of the project whose predictions are still to be read.
    pub(crate) fn stored(info: RunInfo) -> Self {
        Self { loading: Loading::NotYet, is_in_project: true, ..Self::new(info) }
    }

    pub fn id(&self) -> RunId {
        self.info.id
    }

    /// What its predictions contain; `None` for an encoder, whose images have only embeddings.
    pub fn task(&self) -> Option<ModelTask> {
        self.info.card.task.predictions()
    }

    pub fn labels(&self) -> &LabelSet {
        &self.info.labels
    }

    pub fn status(&self, sample: SampleId) -> PredictionStatus {
        self.predictions.status(sample)
    }

    /// The problems of an image that was predicted nevertheless, phrased to follow its name.
    pub fn warnings(&self, sample: SampleId) -> &[String] {
        self.predictions.warnings(sample)
    }

    /// Why the prediction of this sample failed.
    pub fn failure(&self, sample: SampleId) -> Option<&str> {
        self.predictions.failure(sample)
    }

    /// Whether the summary is complete.
    pub fn is_loaded(&self) -> bool {
        self.loading == Loading::Done
    }

    /// Whether this sample's prediction is not on disk yet.
    pub fn is_saving(&self, sample: SampleId) -> bool {
        self.unsaved.contains_key(&sample)
    }

    /// Whether the file has changed since it was predicted.
    pub fn is_outdated(&self, sample: SampleId) -> bool {
        self.outdated.contains(sample)
    }

    /// Whether there is no prediction, or only an outdated one.
    pub fn lacks_prediction(&self, sample: SampleId) -> bool {
        let is_predicted = matches!(self.status(sample), PredictionStatus::Predicted | PredictionStatus::Failed);
        !is_predicted || self.is_outdated(sample)
    }

    /// The samples whose files changed after they were predicted.
    pub fn outdated(&self) -> &SampleSet {
        &self.outdated
    }

    /// The text below a thumbnail: the top class, or the number of visible boxes.
    pub fn headline(
        &self,
        sample: SampleId,
        view: &ViewSettings,
        suppressed: Option<&Suppressed>,
        marks: &Marks,
    ) -> Option<String> {
        let summary = self.predictions.summary(sample)?;
        let Some(task) = self.task() else {
            return Some("embedding".to_owned());
        };
        Some(match task {
            ModelTask::Classification => {
                let top = summary.classes.first().zip(summary.scores.first());
                top.map_or_else(String::new, |(&class, &score)| {
                    if view.lists(score) {
                        format!("{} {:.0}%", self.labels().name(class), score * 100.0)
                    } else {
                        format!("none above {:.0}%", view.min_class_score * 100.0)
                    }
                })
            }
            ModelTask::Detection => {
                let sample = std::iter::once(sample);
                let count = count_boxes(&self.predictions, Some(view), suppressed, marks, sample);
                counted(count, "box", "boxes")
            }
        })
    }
}
