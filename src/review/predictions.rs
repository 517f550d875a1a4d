//! The predictions of one run, stored compactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::NothingFound;
use crate::domain::{ModelTask, Prediction, PredictionContent, SampleId};

/// Samples per piece. After a snapshot, the next change copies one piece: 200 KiB with 100 boxes per image.
const SAMPLES_A_PIECE: usize = 256;

/// The columnar summary of one run: class and score of every box (or of every class of a classifier), 8 bytes each,
/// without box positions.
///
/// A clone is a snapshot that shares all pieces with the original; a change copies only the piece that contains it. The
/// window can therefore keep recording while a worker counts.
#[derive(Debug, Clone)]
pub struct Predictions {
    task: ModelTask,
    /// In listing order, [`SAMPLES_A_PIECE`] samples each.
    pieces: Vec<Arc<Piece>>,
    predicted: usize,
    failed: usize,
    revision: u64,
    nothing_found: NothingFound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PredictionStatus {
    #[default]
    Unpredicted,
    /// Requested, without a prediction or failure so far.
    Waiting,
    Predicted,
    Failed,
}

/// A run's prediction for one sample, without box positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary<'a> {
    /// The width of the upright image, in pixels.
    pub width: u32,
    pub height: u32,
    /// Class ids in the order of the stored prediction, so that an index is a box index (or the rank of a class).
    pub classes: &'a [u32],
    /// `0.0..=1.0`, one per class id.
    pub scores: &'a [f32],
}

/// The predictions of neighboring samples. Replaced predictions stay behind until they make up more than half.
#[derive(Debug, Clone)]
struct Piece {
    rows: [Row; SAMPLES_A_PIECE],
    classes: Vec<u32>,
    scores: Vec<f32>,
    /// The number of entries in `classes` and `scores` that no longer belong to a row.
    left_behind: usize,
    /// Rows with a prediction or a failure.
    settled: usize,
    /// Reasons for failures, by row.
    failures: BTreeMap<usize, String>,
    /// Problems of predicted images, by row.
    warnings: BTreeMap<usize, Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    status: PredictionStatus,
    first: u32,
    len: u32,
    width: u32,
    height: u32,
}

impl Predictions {
    pub fn new(task: ModelTask) -> Self {
        Self { task, pieces: Vec::new(), predicted: 0, failed: 0, revision: 0, nothing_found: NothingFound::default() }
    }

    pub fn task(&self) -> ModelTask {
        self.task
    }

    pub fn status(&self, id: SampleId) -> PredictionStatus {
        self.row(id).map_or(PredictionStatus::Unpredicted, |row| row.status)
    }

    /// The number of samples with a prediction, in constant time.
    pub fn predicted(&self) -> usize {
        self.predicted
    }

    /// The number of samples whose prediction failed, in constant time.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// Whether a detector found nothing so far; `None` for a classifier.
    pub fn nothing_found(&self) -> Option<&NothingFound> {
        (self.task == ModelTask::Detection).then_some(&self.nothing_found)
    }

    /// Changes with every prediction or failure that is added or removed, so that outdated counts can be recognized.
    /// Waiting does not change it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn failure(&self, id: SampleId) -> Option<&str> {
        let (piece, row) = position(id);
        let failures = &self.pieces.get(piece)?.failures;
        failures.get(&row).map(String::as_str)
    }

    /// Problems of an image that was predicted anyway, to follow its name.
    pub fn warnings(&self, id: SampleId) -> &[String] {
        let (piece, row) = position(id);
        let warnings = self.pieces.get(piece).and_then(|piece| piece.warnings.get(&row));
        warnings.map_or(&[], Vec::as_slice)
    }

    /// `None` if there is no prediction.
    pub fn summary(&self, id: SampleId) -> Option<Summary<'_>> {
        let (piece, row) = position(id);
        self.pieces.get(piece)?.summary(row)
    }

    /// The predicted samples, in listing order.
    pub fn iter(&self) -> impl Iterator<Item = (SampleId, Summary<'_>)> {
        let pieces = self.pieces.iter().enumerate();
        pieces.flat_map(|(at, piece)| {
            let first = at * SAMPLES_A_PIECE;
            (0..SAMPLES_A_PIECE).filter_map(move |row| Some((SampleId::from_index(first + row), piece.summary(row)?)))
        })
    }

    /// The samples whose prediction differs from that in an earlier snapshot. Cheap if little has changed, because the
    /// pieces are still shared.
    pub fn changed_since(&self, before: &Self) -> impl Iterator<Item = SampleId> {
        let pieces = self.pieces.iter().zip(&before.pieces).enumerate();
        let touched = pieces.filter(|(_, (now, before))| !Arc::ptr_eq(now, before));
        touched.flat_map(|(at, (now, before))| {
            let is_changed = |row: &usize| {
                let former = before.summary(*row);
                former.is_some() && former != now.summary(*row)
            };
            let first = at * SAMPLES_A_PIECE;
            let changed = (0..SAMPLES_A_PIECE).filter(is_changed);
            changed.map(move |row| SampleId::from_index(first + row))
        })
    }

    /// Has no effect on a sample that is predicted, failed or already waiting.
    pub fn set_waiting(&mut self, id: SampleId) {
        if self.status(id) == PredictionStatus::Unpredicted {
            self.piece_mut(id).set_status(id, PredictionStatus::Waiting);
        }
    }

    /// Marks waiting samples as not requested, because the work was canceled.
    pub fn stop_waiting(&mut self, ids: impl IntoIterator<Item = SampleId>) {
        for id in ids {
            if self.status(id) == PredictionStatus::Waiting {
                self.piece_mut(id).set_status(id, PredictionStatus::Unpredicted);
            }
        }
    }

    /// Stores a prediction, replacing an earlier one of the sample.
    pub fn record(&mut self, id: SampleId, prediction: &Prediction) {
        let (width, height) = (prediction.width, prediction.height);
        match &prediction.content {
            PredictionContent::Classes(classes) => {
                let entries = classes.iter().map(|class| (class.index, class.score));
                self.record_entries(id, width, height, entries);
            }
            PredictionContent::Detections(detections) => {
                let entries = detections.iter().map(|found| (found.class_id, found.score));
                self.record_entries(id, width, height, entries);
            }
        }
        self.set_warnings(id, prediction.warnings.clone());
    }

    /// As [`Self::record`], from columns as the project stores them. `classes` and `scores` have one entry per box (or
    /// class); extra entries of one of them are dropped.
    pub fn record_summary(&mut self, id: SampleId, width: u32, height: u32, classes: &[u32], scores: &[f32]) {
        let entries = classes.iter().copied().zip(scores.iter().copied());
        self.record_entries(id, width, height, entries);
    }

    pub fn set_warnings(&mut self, id: SampleId, warnings: Vec<String>) {
        if !warnings.is_empty() {
            self.piece_mut(id).warnings.insert(position(id).1, warnings);
        }
    }

    /// Stores why there is no prediction, replacing a prediction or an earlier reason.
    pub fn record_failure(&mut self, id: SampleId, reason: String) {
        self.forget(id);
        let piece = self.piece_mut(id);
        piece.set_status(id, PredictionStatus::Failed);
        piece.failures.insert(position(id).1, reason);
        piece.settle();
        self.failed += 1;
        self.revision += 1;
    }

    /// Resets the sample to not requested.
    pub fn forget(&mut self, id: SampleId) {
        match self.status(id) {
            PredictionStatus::Unpredicted => return,
            PredictionStatus::Waiting => {}
            PredictionStatus::Predicted => self.predicted -= 1,
            PredictionStatus::Failed => self.failed -= 1,
        }
        self.revision += 1;
        self.piece_mut(id).forget(position(id).1);
    }

    fn record_entries(&mut self, id: SampleId, width: u32, height: u32, entries: impl Iterator<Item = (u32, f32)>) {
        self.forget(id);
        let piece = self.piece_mut(id);
        let first = piece.classes.len();
        for (class, score) in entries {
            piece.classes.push(class);
            piece.scores.push(score);
        }
        piece.rows[position(id).1] = Row {
            status: PredictionStatus::Predicted,
            first: first as u32,
            len: (piece.classes.len() - first) as u32,
            width,
            height,
        };
        let best_score = piece.scores[first..].iter().copied().reduce(f32::max);
        piece.settle();
        self.nothing_found.add(best_score);
        self.predicted += 1;
        self.revision += 1;
    }

    fn row(&self, id: SampleId) -> Option<&Row> {
        let (piece, row) = position(id);
        Some(&self.pieces.get(piece)?.rows[row])
    }

    /// Created if missing, copied if a snapshot shares it.
    fn piece_mut(&mut self, id: SampleId) -> &mut Piece {
        let (piece, _) = position(id);
        while self.pieces.len() <= piece {
            self.pieces.push(Arc::new(Piece::new()));
        }
        Arc::make_mut(&mut self.pieces[piece])
    }
}

impl Piece {
    fn new() -> Self {
        Self {
            rows: [Row::default(); SAMPLES_A_PIECE],
            classes: Vec::new(),
            scores: Vec::new(),
            left_behind: 0,
            settled: 0,
            failures: BTreeMap::new(),
            warnings: BTreeMap::new(),
        }
    }

    fn summary(&self, row: usize) -> Option<Summary<'_>> {
        let row = self.rows[row];
        if row.status != PredictionStatus::Predicted {
            return None;
        }
        let range = row.range();
        Some(Summary {
            width: row.width,
            height: row.height,
            classes: &self.classes[range.clone()],
            scores: &self.scores[range],
        })
    }

    fn set_status(&mut self, id: SampleId, status: PredictionStatus) {
        self.rows[position(id).1].status = status;
    }

    fn forget(&mut self, row: usize) {
        let old = std::mem::take(&mut self.rows[row]);
        if matches!(old.status, PredictionStatus::Predicted | PredictionStatus::Failed) {
            self.settled -= 1;
        }
        self.failures.remove(&row);
        self.warnings.remove(&row);
        self.left_behind += old.len as usize;
        if self.left_behind * 2 > self.classes.len() {
            self.compact();
        }
    }

    /// Counts another row with a prediction or failure. Once all rows have one, spare memory is released.
    fn settle(&mut self) {
        self.settled += 1;
        if self.settled == SAMPLES_A_PIECE {
            self.classes.shrink_to_fit();
            self.scores.shrink_to_fit();
        }
    }

    /// Keeps only entries that belong to a row.
    fn compact(&mut self) {
        let kept = self.classes.len() - self.left_behind;
        let mut classes = Vec::with_capacity(kept);
        let mut scores = Vec::with_capacity(kept);
        for row in &mut self.rows {
            let range = row.range();
            row.first = classes.len() as u32;
            classes.extend_from_slice(&self.classes[range.clone()]);
            scores.extend_from_slice(&self.scores[range]);
        }
        self.classes = classes;
        self.scores = scores;
        self.left_behind = 0;
    }
}

impl Row {
    fn range(self) -> std::ops::Range<usize> {
        let first = self.first as usize;
        first..first + self.len as usize
    }
}

/// The piece, and the row in it.
fn position(id: SampleId) -> (usize, usize) {
    (id.index() / SAMPLES_A_PIECE, id.index() % SAMPLES_A_PIECE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ClassScore, Detection};

    fn boxes(scores: &[f32]) -> Prediction {
        let detections = scores.iter().map(|&score| Detection::new([1.0, 2.0, 3.0, 4.0], 7, "dog", score));
        Prediction::new([30, 20], PredictionContent::Detections(detections.collect()))
    }

    fn scores(predictions: &Predictions, id: u32) -> Option<&[f32]> {
        predictions.summary(SampleId(id)).map(|summary| summary.scores)
    }

    #[test]
    fn prediction_round_trips() {
        let mut predictions = Predictions::new(ModelTask::Detection);
        predictions.record(SampleId(4000), &boxes(&[0.9, 0.2]));
        predictions.record(SampleId(2), &boxes(&[]));
        let summary = predictions.summary(SampleId(4000)).unwrap();
        assert_eq!((summary.width, summary.height), (30, 20));
        assert_eq!((summary.classes, summary.scores), (&[7, 7][..], &[0.9, 0.2][..]));
        assert_eq!(scores(&predictions, 2), Some(&[][..]));
        assert_eq!(scores(&predictions, 3), None);
        let ids: Vec<u32> = predictions.iter().map(|(id, _)| id.0).collect();
        assert_eq!(ids, [2, 4000]);
    }

    #[test]
    fn classifier_classes_keep_their_order() {
        let class = |index, score| ClassScore { index, label: String::new(), score };
        let mut predictions = Predictions::new(ModelTask::Classification);
        let prediction = Prediction::new([1, 1], PredictionContent::Classes(vec![class(281, 0.5), class(3, 0.25)]));
        predictions.record(SampleId(0), &prediction);
        assert_eq!(predictions.summary(SampleId(0)).unwrap().classes, [281, 3]);
    }

    #[test]
    fn counts_follow_replaced_predictions() {
        let mut predictions = Predictions::new(ModelTask::Detection);
        predictions.record_failure(SampleId(0), "broken".to_owned());
        assert_eq!((predictions.predicted(), predictions.failed()), (0, 1));
        assert_eq!(predictions.failure(SampleId(0)), Some("broken"));
        predictions.record(SampleId(0), &boxes(&[0.9]));
        predictions.record(SampleId(0), &boxes(&[0.8]));
        assert_eq!((predictions.predicted(), predictions.failed()), (1, 0));
        assert_eq!(predictions.failure(SampleId(0)), None);
        predictions.forget(SampleId(0));
        assert_eq!((predictions.predicted(), predictions.failed()), (0, 0));
        assert_eq!(predictions.status(SampleId(0)), PredictionStatus::Unpredicted);
    }

    #[test]
    fn canceled_run_keeps_its_predictions() {
        let mut predictions = Predictions::new(ModelTask::Detection);
        for id in [0, 1, 2].map(SampleId) {
            predictions.set_waiting(id);
        }
        predictions.record(SampleId(1), &boxes(&[0.9]));
        predictions.set_waiting(SampleId(1));
        predictions.stop_waiting([0, 1, 9].map(SampleId));
        let status = |id| predictions.status(SampleId(id));
        assert_eq!(status(0), PredictionStatus::Unpredicted);
        assert_eq!(status(1), PredictionStatus::Predicted);
        assert_eq!(status(2), PredictionStatus::Waiting);
    }

    #[test]
    fn snapshot_ignores_later_changes() {
        let mut predictions = Predictions::new(ModelTask::Detection);
        predictions.record(SampleId(0), &boxes(&[0.9]));
        predictions.record(SampleId(300), &boxes(&[0.7]));
        let snapshot = predictions.clone();
        predictions.record(SampleId(0), &boxes(&[0.1, 0.1]));
        assert_eq!(scores(&snapshot, 0), Some(&[0.9][..]));
        assert_eq!(scores(&predictions, 0), Some(&[0.1, 0.1][..]));
        assert!(Arc::ptr_eq(&predictions.pieces[1], &snapshot.pieces[1]), "what did not change is shared");
    }

    #[test]
    fn replaced_predictions_are_reported_as_changed() {
        let mut predictions = Predictions::new(ModelTask::Detection);
        for id in [0, 1, 2, 600] {
            predictions.record(SampleId(id), &boxes(&[0.9]));
        }
        let before = predictions.clone();
        assert_eq!(predictions.changed_since(&before).count(), 0);
        predictions.record(SampleId(0), &boxes(&[0.9]));
        predictions.record(SampleId(1), &boxes(&[0.8]));
        predictions.forget(SampleId(600));
        predictions.record(SampleId(700), &boxes(&[0.7]));
        let changed: Vec<u32> = predictions.changed_since(&before).map(|id| id.0).collect();
        assert_eq!(changed, [1, 600]);
    }

    #[test]
    fn replaced_predictions_leave_bounded_garbage() {
        let mut predictions = Predictions::new(ModelTask::Detection);
        for round in 0..50_u32 {
            for id in 0..SAMPLES_A_PIECE as u32 {
                let many = vec![round as f32 / 50.0; (id % 5) as usize];
                predictions.record(SampleId(id), &boxes(&many));
            }
        }
        let alive: usize = predictions.iter().map(|(_, summary)| summary.scores.len()).sum();
        assert!(predictions.pieces[0].classes.len() <= 2 * alive, "{alive}");
        assert_eq!(scores(&predictions, 4), Some(&[0.98; 4][..]));
    }
}
