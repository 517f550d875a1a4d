//! The rows of a project, read page by page.

use std::collections::{HashMap, VecDeque};

use super::RowError;
use super::row::ExportRow;
use crate::domain::{JudgedSample, RunId, Sample, SampleUri};
use crate::project::Project;

/// The number of predictions in memory.
const PAGE_LEN: usize = 128;

/// One row per given sample, in order. The samples contain the current versions of their files: a prediction of an
/// older version does not count.
pub struct ProjectRows<S> {
    project: Project,
    run: RunId,
    samples: S,
    judgments: HashMap<SampleUri, JudgedSample>,
    page: VecDeque<ExportRow>,
}

impl<S: Iterator<Item = Sample>> ProjectRows<S> {
    /// `judgments` are those of the whole project; a sample gets those of this run, and its notes and tags.
    pub fn new(project: Project, run: RunId, samples: S, judgments: impl IntoIterator<Item = JudgedSample>) -> Self {
        let judgments = judgments.into_iter().map(|judged| (judged.sample.clone(), judged));
        Self { project, run, samples, judgments: judgments.collect(), page: VecDeque::new() }
    }

    fn read_page(&mut self) -> Result<(), RowError> {
        let samples: Vec<Sample> = self.samples.by_ref().take(PAGE_LEN).collect();
        let uris: Vec<SampleUri> = samples.iter().map(|sample| sample.uri.clone()).collect();
        let predictions = self.project.predictions(self.run, &uris)?;
        for (sample, prediction) in samples.into_iter().zip(predictions) {
            let stamp = sample.stamp();
            let mut row = ExportRow::new(sample);
            row.is_outdated = prediction.as_ref().is_some_and(|prediction| !prediction.is_of(&stamp));
            let prediction = prediction.filter(|_| !row.is_outdated);
            row.result = prediction.map(|prediction| prediction.result);
            if let Some(judged) = self.judgments.get(&row.sample.uri) {
                judge(&mut row, judged, self.run);
            }
            self.page.push_back(row);
        }
        Ok(())
    }
}

impl<S: Iterator<Item = Sample>> Iterator for ProjectRows<S> {
    type Item = Result<ExportRow, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty()
            && let Err(error) = self.read_page()
        {
            return Some(Err(error));
        }
        self.page.pop_front().map(Ok)
    }
}

/// The verdicts on this run's prediction, or on the image itself if it was judged before there was a prediction.
/// Verdicts on an outdated prediction do not apply to the current file.
fn judge(row: &mut ExportRow, judged: &JudgedSample, run: RunId) {
    let run = Some(run).filter(|_| !row.is_outdated);
    for (target, verdict) in &judged.verdicts {
        match (target.run, target.box_index) {
            (of @ Some(_), Some(index)) if of == run => {
                row.box_verdicts.insert(index, verdict.clone());
            }
            (of @ Some(_), None) if of == run => row.verdict = Some(verdict.clone()),
            (None, None) if row.verdict.is_none() => row.verdict = Some(verdict.clone()),
            _ => {}
        }
    }
    row.note = Some(judged.note.clone()).filter(|note| !note.is_empty());
    row.tags = judged.tags.iter().cloned().collect();
}
