//! The answers of one run, kept compactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::{Answer, ModelTask, Prediction, SampleId};

/// How many samples share a piece. A snapshot makes the next change copy one piece: 200 KiB for a hundred boxes each.
const SAMPLES_A_PIECE: usize = 256;

/// The columnar summary of one run: class and score of every box (or of every class of a classifier), 8 bytes each.
/// Where the boxes lie is not in it.
///
/// A clone is a snapshot: it shares all pieces with the original, and a change copies only the piece that it is in. So
/// the window keeps recording while a worker counts.
#[derive(Debug, Clone)]
pub struct Answers {
    task: ModelTask,
    /// By listing, [`SAMPLES_A_PIECE`] samples each.
    pieces: Vec<Arc<Piece>>,
    answered: usize,
    failed: usize,
    revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerStatus {
    #[default]
    Unasked,
    /// Asked for; neither an answer nor a failure has come yet.
    Waiting,
    Answered,
    Failed,
}

/// What a run says of one sample, without the places of the boxes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary<'a> {
    /// Of the upright image, in pixels.
    pub width: u32,
    pub height: u32,
    /// Class ids in the order of the stored prediction, so that an index is a box index (or the rank of a class).
    pub classes: &'a [u32],
    /// `0.0..=1.0`, as many as `classes`.
    pub scores: &'a [f32],
}

/// The answers of neighbouring samples. A replaced answer leaves its boxes behind until they are more than half.
#[derive(Debug, Clone)]
struct Piece {
    rows: [Row; SAMPLES_A_PIECE],
    classes: Vec<u32>,
    scores: Vec<f32>,
    /// How many entries of `classes` and `scores` belong to no row any more.
    left_behind: usize,
    /// Rows with an answer or a failure.
    settled: usize,
    /// Why there is no answer, by row.
    failures: BTreeMap<usize, String>,
    /// What is wrong with images that have an answer, by row.
    warnings: BTreeMap<usize, Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    status: AnswerStatus,
    first: u32,
    len: u32,
    width: u32,
    height: u32,
}

impl Answers {
    pub fn new(task: ModelTask) -> Self {
        Self {
            task,
            pieces: Vec::new(),
            answered: 0,
            failed: 0,
            revision: 0,
        }
    }

    pub fn task(&self) -> ModelTask {
        self.task
    }

    pub fn status(&self, id: SampleId) -> AnswerStatus {
        self.row(id).map_or(AnswerStatus::Unasked, |row| row.status)
    }

    /// Samples with an answer; kept, not counted.
    pub fn answered(&self) -> usize {
        self.answered
    }

    /// Samples whose prediction failed; kept, not counted.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// Another number after every answer or failure that came or went, so that what was counted can be told from what is
    /// to be counted anew. Waiting does not change it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Why the prediction of this sample failed.
    pub fn failure(&self, id: SampleId) -> Option<&str> {
        let (piece, row) = position(id);
        let failures = &self.pieces.get(piece)?.failures;
        failures.get(&row).map(String::as_str)
    }

    /// What is wrong with an image that was predicted all the same, in words that follow its name.
    pub fn warnings(&self, id: SampleId) -> &[String] {
        let (piece, row) = position(id);
        let warnings = self
            .pieces
            .get(piece)
            .and_then(|piece| piece.warnings.get(&row));
        warnings.map_or(&[], Vec::as_slice)
    }

    /// `None` where there is no answer.
    pub fn summary(&self, id: SampleId) -> Option<Summary<'_>> {
        let (piece, row) = position(id);
        self.pieces.get(piece)?.summary(row)
    }

    /// The answered samples in the order of the listing.
    pub fn iter(&self) -> impl Iterator<Item = (SampleId, Summary<'_>)> {
        let pieces = self.pieces.iter().enumerate();
        pieces.flat_map(|(at, piece)| {
            let first = at * SAMPLES_A_PIECE;
            (0..SAMPLES_A_PIECE).filter_map(move |row| {
                Some((SampleId::from_index(first + row), piece.summary(row)?))
            })
        })
    }

    /// The samples whose answer in an earlier snapshot is not the one that they have now. Costs next to nothing where little has
    /// changed: the pieces are still shared.
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

    /// Has no effect on a sample that is answered, failed or waited for already.
    pub fn set_waiting(&mut self, id: SampleId) {
        if self.status(id) == AnswerStatus::Unasked {
            self.piece_mut(id).set_status(id, AnswerStatus::Waiting);
        }
    }

    /// What was asked for and never answered is unasked again: the work was cancelled.
    pub fn stop_waiting(&mut self, ids: impl IntoIterator<Item = SampleId>) {
        for id in ids {
            if self.status(id) == AnswerStatus::Waiting {
                self.piece_mut(id).set_status(id, AnswerStatus::Unasked);
            }
        }
    }

    /// Keeps an answer. A second answer of one sample replaces the first.
    pub fn record(&mut self, id: SampleId, prediction: &Prediction) {
        let (width, height) = (prediction.width, prediction.height);
        match &prediction.answer {
            Answer::Classes(classes) => {
                let entries = classes.iter().map(|class| (class.index, class.score));
                self.record_entries(id, width, height, entries);
            }
            Answer::Detections(detections) => {
                let entries = detections.iter().map(|found| (found.class_id, found.score));
                self.record_entries(id, width, height, entries);
            }
        }
        self.set_warnings(id, prediction.warnings.clone());
    }

    /// The same from columns, as the project keeps them. `classes` and `scores` have one entry a box (or class) each;
    /// what one of them has more is left out.
    pub fn record_summary(
        &mut self,
        id: SampleId,
        width: u32,
        height: u32,
        classes: &[u32],
        scores: &[f32],
    ) {
        let entries = classes.iter().copied().zip(scores.iter().copied());
        self.record_entries(id, width, height, entries);
    }

    /// Of an answer that is recorded already.
    pub fn set_warnings(&mut self, id: SampleId, warnings: Vec<String>) {
        if !warnings.is_empty() {
            self.piece_mut(id).warnings.insert(position(id).1, warnings);
        }
    }

    /// Keeps why there is no answer. Replaces an answer or an earlier reason.
    pub fn record_failure(&mut self, id: SampleId, reason: String) {
        self.forget(id);
        let piece = self.piece_mut(id);
        piece.set_status(id, AnswerStatus::Failed);
        piece.failures.insert(position(id).1, reason);
        piece.settle();
        self.failed += 1;
        self.revision += 1;
    }

    /// The sample is unasked again, whatever was known of it.
    pub fn forget(&mut self, id: SampleId) {
        match self.status(id) {
            AnswerStatus::Unasked => return,
            AnswerStatus::Waiting => {}
            AnswerStatus::Answered => self.answered -= 1,
            AnswerStatus::Failed => self.failed -= 1,
        }
        self.revision += 1;
        self.piece_mut(id).forget(position(id).1);
    }

    fn record_entries(
        &mut self,
        id: SampleId,
        width: u32,
        height: u32,
        entries: impl Iterator<Item = (u32, f32)>,
    ) {
        self.forget(id);
        let piece = self.piece_mut(id);
        let first = piece.classes.len();
        for (class, score) in entries {
            piece.classes.push(class);
            piece.scores.push(score);
        }
        piece.rows[position(id).1] = Row {
            status: AnswerStatus::Answered,
            first: first as u32,
            len: (piece.classes.len() - first) as u32,
            width,
            height,
        };
        piece.settle();
        self.answered += 1;
        self.revision += 1;
    }

    fn row(&self, id: SampleId) -> Option<&Row> {
        let (piece, row) = position(id);
        Some(&self.pieces.get(piece)?.rows[row])
    }

    /// Made where there is none yet, copied where a snapshot shares it.
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
        if row.status != AnswerStatus::Answered {
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

    fn set_status(&mut self, id: SampleId, status: AnswerStatus) {
        self.rows[position(id).1].status = status;
    }

    fn forget(&mut self, row: usize) {
        let old = std::mem::take(&mut self.rows[row]);
        if matches!(old.status, AnswerStatus::Answered | AnswerStatus::Failed) {
            self.settled -= 1;
        }
        self.failures.remove(&row);
        self.warnings.remove(&row);
        self.left_behind += old.len as usize;
        if self.left_behind * 2 > self.classes.len() {
            self.compact();
        }
    }

    /// One more row has an answer or a failure. Once all have, nothing more is expected and spare room is given back.
    fn settle(&mut self) {
        self.settled += 1;
        if self.settled == SAMPLES_A_PIECE {
            self.classes.shrink_to_fit();
            self.scores.shrink_to_fit();
        }
    }

    /// Leaves only what belongs to a row.
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

/// Piece, and row in it.
fn position(id: SampleId) -> (usize, usize) {
    (id.index() / SAMPLES_A_PIECE, id.index() % SAMPLES_A_PIECE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ClassScore, Detection};

    fn boxes(scores: &[f32]) -> Prediction {
        let detections = scores.iter().map(|&score| Detection {
            bounds: [1.0, 2.0, 3.0, 4.0].into(),
            class_id: 7,
            label: "dog".to_owned(),
            score,
        });
        Prediction {
            width: 30,
            height: 20,
            answer: Answer::Detections(detections.collect()),
            warnings: Vec::new(),
        }
    }

    fn scores(answers: &Answers, id: u32) -> Option<&[f32]> {
        answers.summary(SampleId(id)).map(|summary| summary.scores)
    }

    #[test]
    fn an_answer_comes_back_as_it_was_recorded() {
        let mut answers = Answers::new(ModelTask::Detection);
        answers.record(SampleId(4000), &boxes(&[0.9, 0.2]));
        answers.record(SampleId(2), &boxes(&[]));
        let summary = answers.summary(SampleId(4000)).unwrap();
        assert_eq!((summary.width, summary.height), (30, 20));
        assert_eq!(
            (summary.classes, summary.scores),
            (&[7, 7][..], &[0.9, 0.2][..])
        );
        assert_eq!(scores(&answers, 2), Some(&[][..]));
        assert_eq!(scores(&answers, 3), None);
        let ids: Vec<u32> = answers.iter().map(|(id, _)| id.0).collect();
        assert_eq!(ids, [2, 4000]);
    }

    #[test]
    fn the_classes_of_a_classifier_are_kept_in_their_order() {
        let class = |index, score| ClassScore {
            index,
            label: String::new(),
            score,
        };
        let mut answers = Answers::new(ModelTask::Classification);
        let prediction = Prediction {
            width: 1,
            height: 1,
            answer: Answer::Classes(vec![class(281, 0.5), class(3, 0.25)]),
            warnings: Vec::new(),
        };
        answers.record(SampleId(0), &prediction);
        assert_eq!(answers.summary(SampleId(0)).unwrap().classes, [281, 3]);
    }

    #[test]
    fn the_counts_follow_second_answers() {
        let mut answers = Answers::new(ModelTask::Detection);
        answers.record_failure(SampleId(0), "broken".to_owned());
        assert_eq!((answers.answered(), answers.failed()), (0, 1));
        assert_eq!(answers.failure(SampleId(0)), Some("broken"));
        answers.record(SampleId(0), &boxes(&[0.9]));
        answers.record(SampleId(0), &boxes(&[0.8]));
        assert_eq!((answers.answered(), answers.failed()), (1, 0));
        assert_eq!(answers.failure(SampleId(0)), None);
        answers.forget(SampleId(0));
        assert_eq!((answers.answered(), answers.failed()), (0, 0));
        assert_eq!(answers.status(SampleId(0)), AnswerStatus::Unasked);
    }

    #[test]
    fn what_was_cancelled_is_unasked_and_what_is_answered_stays() {
        let mut answers = Answers::new(ModelTask::Detection);
        for id in [0, 1, 2].map(SampleId) {
            answers.set_waiting(id);
        }
        answers.record(SampleId(1), &boxes(&[0.9]));
        answers.set_waiting(SampleId(1));
        answers.stop_waiting([0, 1, 9].map(SampleId));
        let status = |id| answers.status(SampleId(id));
        assert_eq!(status(0), AnswerStatus::Unasked);
        assert_eq!(status(1), AnswerStatus::Answered);
        assert_eq!(status(2), AnswerStatus::Waiting);
    }

    #[test]
    fn a_snapshot_does_not_follow_later_changes() {
        let mut answers = Answers::new(ModelTask::Detection);
        answers.record(SampleId(0), &boxes(&[0.9]));
        answers.record(SampleId(300), &boxes(&[0.7]));
        let snapshot = answers.clone();
        answers.record(SampleId(0), &boxes(&[0.1, 0.1]));
        assert_eq!(scores(&snapshot, 0), Some(&[0.9][..]));
        assert_eq!(scores(&answers, 0), Some(&[0.1, 0.1][..]));
        assert!(
            Arc::ptr_eq(&answers.pieces[1], &snapshot.pieces[1]),
            "what did not change is shared"
        );
    }

    #[test]
    fn answers_that_were_replaced_or_forgotten_have_changed_and_new_ones_have_not() {
        let mut answers = Answers::new(ModelTask::Detection);
        for id in [0, 1, 2, 600] {
            answers.record(SampleId(id), &boxes(&[0.9]));
        }
        let before = answers.clone();
        assert_eq!(answers.changed_since(&before).count(), 0);
        answers.record(SampleId(0), &boxes(&[0.9]));
        answers.record(SampleId(1), &boxes(&[0.8]));
        answers.forget(SampleId(600));
        answers.record(SampleId(700), &boxes(&[0.7]));
        let changed: Vec<u32> = answers.changed_since(&before).map(|id| id.0).collect();
        assert_eq!(changed, [1, 600]);
    }

    #[test]
    fn replaced_answers_leave_at_most_as_much_behind_as_there_is() {
        let mut answers = Answers::new(ModelTask::Detection);
        for round in 0..50_u32 {
            for id in 0..SAMPLES_A_PIECE as u32 {
                let many = vec![round as f32 / 50.0; (id % 5) as usize];
                answers.record(SampleId(id), &boxes(&many));
            }
        }
        let alive: usize = answers
            .iter()
            .map(|(_, summary)| summary.scores.len())
            .sum();
        assert!(answers.pieces[0].classes.len() <= 2 * alive, "{alive}");
        assert_eq!(scores(&answers, 4), Some(&[0.98; 4][..]));
    }
}
