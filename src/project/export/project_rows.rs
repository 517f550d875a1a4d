//! The rows of a project, read page by page.

use std::collections::HashMap;

use super::RowError;
use super::row::ExportRow;
use crate::domain::{JudgedSample, RunId, Sample, SamplePrediction, SampleUri};
use crate::project::{Project, paged};

/// The number of predictions in memory.
const PAGE_LEN: usize = 128;

/// One row per given sample, in order. The samples contain the current versions of their files: a prediction of an
/// older version does not count. `judgments` are those of the whole project; a sample gets those of this run, and its
/// notes and tags.
pub fn project_rows(
    project: Project,
    run: RunId,
    samples: impl Iterator<Item = Sample>,
    judgments: impl IntoIterator<Item = JudgedSample>,
) -> impl Iterator<Item = Result<ExportRow, RowError>> {
    let judgments = judgments.into_iter().map(|judged| (judged.sample.clone(), judged));
    let judgments: HashMap<SampleUri, JudgedSample> = judgments.collect();
    paged(samples, PAGE_LEN, move |samples| {
        let uris: Vec<SampleUri> = samples.iter().map(|sample| sample.uri.clone()).collect();
        let predictions = project.predictions(run, &uris)?;
        let row = |(sample, prediction): (Sample, Option<SamplePrediction>)| {
            let stamp = sample.stamp();
            let mut row = ExportRow::new(sample);
            row.is_outdated = prediction.as_ref().is_some_and(|prediction| !prediction.is_of(&stamp));
            let prediction = prediction.filter(|_| !row.is_outdated);
            row.result = prediction.map(|prediction| prediction.result);
            if let Some(judged) = judgments.get(&row.sample.uri) {
                judge(&mut row, judged, run);
            }
            row
        };
        Ok(samples.into_iter().zip(predictions).map(row).collect())
    })
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
