//! The answers of models, kept compactly.

use std::sync::Arc;

use crate::domain::{
    Answer, ClassScore, Detection, LabelSet, ModelTask, Prediction, RunId, RunKey, SampleId,
    ViewSettings,
};

/// The runs over the open source. Going back to an earlier model finds its answers again.
#[derive(Default)]
pub struct Runs {
    all: Vec<Run>,
    current: Option<RunId>,
}

impl Runs {
    pub fn current(&self) -> Option<&Run> {
        self.get(self.current?)
    }

    pub fn get(&self, id: RunId) -> Option<&Run> {
        self.all.iter().find(|run| run.id == id)
    }

    pub(super) fn get_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.all.iter_mut().find(|run| run.id == id)
    }

    pub(super) fn find(&self, key: &RunKey) -> Option<RunId> {
        let run = self.all.iter().find(|run| run.key == *key);
        run.map(|run| run.id)
    }

    pub(super) fn switch_to(&mut self, id: Option<RunId>) {
        self.current = id;
    }

    pub(super) fn add(&mut self, run: Run) {
        self.current = Some(run.id);
        self.all.push(run);
    }

    /// Forgets every answer, for a new source.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn forget_model(&mut self, model_id: &str) {
        self.all.retain(|run| run.key.model_id != model_id);
        self.current = self.current.filter(|id| self.get(*id).is_some());
    }
}

/// One model over the samples of the open source.
pub struct Run {
    pub id: RunId,
    pub key: RunKey,
    pub task: ModelTask,
    labels: Arc<LabelSet>,
    rows: Vec<Row>,
    /// Of all answers one after the other; each row knows its part.
    boxes: Vec<[f32; 4]>,
    classes: Vec<u32>,
    scores: Vec<f32>,
    answered: usize,
    failed: usize,
    failures: std::collections::BTreeMap<SampleId, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerStatus {
    #[default]
    Unasked,
    Waiting,
    Answered,
    Failed,
}

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    status: AnswerStatus,
    first: usize,
    len: u32,
    width: u32,
    height: u32,
}

impl Run {
    pub fn new(id: RunId, key: RunKey, task: ModelTask, labels: Arc<LabelSet>) -> Self {
        Self {
            id,
            key,
            task,
            labels,
            rows: Vec::new(),
            boxes: Vec::new(),
            classes: Vec::new(),
            scores: Vec::new(),
            answered: 0,
            failed: 0,
            failures: std::collections::BTreeMap::new(),
        }
    }

    pub fn status(&self, id: SampleId) -> AnswerStatus {
        self.rows
            .get(id.index())
            .map_or(AnswerStatus::Unasked, |row| row.status)
    }

    /// Samples with an answer; kept, not counted.
    pub fn answered(&self) -> usize {
        self.answered
    }

    /// Samples whose prediction failed; kept, not counted.
    pub fn failed(&self) -> usize {
        self.failed
    }

    pub fn labels(&self) -> &LabelSet {
        &self.labels
    }

    /// Why the prediction of this sample failed.
    pub fn failure(&self, id: SampleId) -> Option<&str> {
        self.failures.get(&id).map(String::as_str)
    }

    /// The whole answer, as the model gave it.
    pub fn prediction(&self, id: SampleId) -> Option<Prediction> {
        self.rebuild(id, |class_id| self.labels.name(class_id))
    }

    /// What the grid writes under a thumbnail: the top class, or the number of boxes shown.
    pub fn headline(&self, id: SampleId, view: &ViewSettings) -> Option<String> {
        let prediction = match self.task {
            ModelTask::Classification => self.prediction(id),
            // Counting boxes needs no names.
            ModelTask::Detection => self.rebuild(id, |_| String::new()),
        };
        Some(view.headline(&prediction?))
    }

    pub(super) fn set_waiting(&mut self, id: SampleId) {
        let row = self.row_mut(id);
        if row.status == AnswerStatus::Unasked {
            row.status = AnswerStatus::Waiting;
        }
    }

    /// What was asked for and never answered is unasked again: the work was cancelled.
    pub(super) fn stop_waiting(&mut self, ids: impl Iterator<Item = SampleId>) {
        for id in ids {
            let row = self.row_mut(id);
            if row.status == AnswerStatus::Waiting {
                row.status = AnswerStatus::Unasked;
            }
        }
    }

    /// Keeps an answer. A second answer of one sample replaces the first.
    pub(super) fn record(&mut self, id: SampleId, result: Result<Prediction, String>) {
        self.forget(id);
        match result {
            Ok(prediction) => self.record_prediction(id, &prediction),
            Err(reason) => {
                self.row_mut(id).status = AnswerStatus::Failed;
                self.failures.insert(id, reason);
                self.failed += 1;
            }
        }
    }

    fn record_prediction(&mut self, id: SampleId, prediction: &Prediction) {
        let first = self.classes.len();
        for class in prediction.classes() {
            self.classes.push(class.index);
            self.scores.push(class.score);
            self.boxes.push([0.0; 4]);
        }
        for detection in prediction.detections() {
            self.classes.push(detection.class_id);
            self.scores.push(detection.score);
            self.boxes.push(detection.bounds.into());
        }
        *self.row_mut(id) = Row {
            status: AnswerStatus::Answered,
            first,
            len: (self.classes.len() - first) as u32,
            width: prediction.width,
            height: prediction.height,
        };
        self.answered += 1;
    }

    fn forget(&mut self, id: SampleId) {
        match self.status(id) {
            AnswerStatus::Answered => self.answered -= 1,
            AnswerStatus::Failed => {
                self.failed -= 1;
                self.failures.remove(&id);
            }
            AnswerStatus::Unasked | AnswerStatus::Waiting => {}
        }
    }

    fn row_mut(&mut self, id: SampleId) -> &mut Row {
        if id.index() >= self.rows.len() {
            self.rows.resize(id.index() + 1, Row::default());
        }
        &mut self.rows[id.index()]
    }

    fn rebuild(&self, id: SampleId, label: impl Fn(u32) -> String) -> Option<Prediction> {
        let row = self.rows.get(id.index())?;
        if row.status != AnswerStatus::Answered {
            return None;
        }
        let range = row.first..row.first + row.len as usize;
        let answer = match self.task {
            ModelTask::Classification => Answer::Classes(
                range
                    .map(|at| ClassScore {
                        index: self.classes[at],
                        label: label(self.classes[at]),
                        score: self.scores[at],
                    })
                    .collect(),
            ),
            ModelTask::Detection => Answer::Detections(
                range
                    .map(|at| Detection {
                        bounds: self.boxes[at].into(),
                        class_id: self.classes[at],
                        label: label(self.classes[at]),
                        score: self.scores[at],
                    })
                    .collect(),
            ),
        };
        Some(Prediction {
            width: row.width,
            height: row.height,
            answer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{DeviceChoice, KeepRule};

    fn run(task: ModelTask) -> Run {
        let key = RunKey {
            model_id: "m".to_owned(),
            weights_sha256: String::new(),
            device: DeviceChoice::Auto,
            batch: None,
            threads: None,
            keep: KeepRule::default(),
        };
        let labels = Arc::new(LabelSet::parse("cat\ndog").unwrap());
        Run::new(RunId(1), key, task, labels)
    }

    fn boxes(scores: &[f32]) -> Prediction {
        let detections = scores.iter().map(|&score| Detection {
            bounds: [1.0, 2.0, 3.0, 4.0].into(),
            class_id: 1,
            label: "dog".to_owned(),
            score,
        });
        Prediction {
            width: 30,
            height: 20,
            answer: Answer::Detections(detections.collect()),
        }
    }

    #[test]
    fn an_answer_comes_back_as_it_was_recorded() {
        let mut run = run(ModelTask::Detection);
        run.record(SampleId(4), Ok(boxes(&[0.9, 0.2])));
        run.record(SampleId(2), Ok(boxes(&[])));
        assert_eq!(run.prediction(SampleId(4)), Some(boxes(&[0.9, 0.2])));
        assert_eq!(run.prediction(SampleId(2)), Some(boxes(&[])));
        assert_eq!(run.prediction(SampleId(3)), None);
    }

    #[test]
    fn the_counts_follow_second_answers() {
        let mut run = run(ModelTask::Detection);
        run.record(SampleId(0), Err("broken".to_owned()));
        assert_eq!((run.answered(), run.failed()), (0, 1));
        run.record(SampleId(0), Ok(boxes(&[0.9])));
        run.record(SampleId(0), Ok(boxes(&[0.8])));
        assert_eq!((run.answered(), run.failed()), (1, 0));
        assert_eq!(run.failure(SampleId(0)), None);
    }

    #[test]
    fn the_headline_counts_the_boxes_that_the_view_shows() {
        let mut run = run(ModelTask::Detection);
        run.record(SampleId(0), Ok(boxes(&[0.9, 0.6, 0.2])));
        let headline = run.headline(SampleId(0), &ViewSettings::default());
        assert_eq!(headline.as_deref(), Some("2 boxes"));
    }
}
