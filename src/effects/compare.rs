//! Reads the answers of two runs side by side, a few images at a time, and compares them.

use std::sync::Arc;

use super::Shared;
use crate::domain::{Prediction, RunId, Sample, SampleId, SampleUri, SharedList};
use crate::evaluation::{Agreement, Comparison};
use crate::state::{Event, SourceId, TaskId};
use crate::store::{Project, StoreError};
use crate::tasks::TaskControl;

/// Images whose answers are in memory at a time.
const SAMPLES_A_READ: usize = 256;

pub(super) struct Compare {
    pub(super) source: SourceId,
    pub(super) runs: [RunId; 2],
    pub(super) samples: SharedList<Sample>,
    pub(super) comparison: Box<Comparison>,
    pub(super) task: TaskId,
    pub(super) control: TaskControl,
}

pub(super) fn compare(shared: &Arc<Shared>, request: Compare) {
    let task = request.task;
    let ended = move |result| Event::Compared { task, result };
    shared.spawn_answer(
        "compare two runs",
        move |shared| {
            let Some(project) = shared.project(request.source) else {
                return ended(Err("the project was closed".to_owned()));
            };
            ended(agreement(&project, request))
        },
        move |mistake| ended(Err(mistake)),
    );
}

fn agreement(project: &Project, request: Compare) -> Result<Agreement, String> {
    let mut comparison = *request.comparison;
    let samples: Vec<&Sample> = request.samples.iter().collect();
    for (part, first) in samples
        .chunks(SAMPLES_A_READ)
        .zip((0..).step_by(SAMPLES_A_READ))
    {
        if request.control.checkpoint().is_err() {
            return Err("The comparison was cancelled".to_owned());
        }
        let read = |run| answers(project, run, part).map_err(|error| error.to_string());
        let [left, right] = request.runs;
        let (left, right) = (read(left)?, read(right)?);
        for (offset, (left, right)) in left.iter().zip(&right).enumerate() {
            let sample = SampleId::from_index(first + offset);
            comparison.add(sample, left.as_ref(), right.as_ref());
        }
        request.control.add_done(part.len() as u64);
    }
    Ok(comparison.finish())
}

/// One a sample; `None` where there is no answer, or one about another state of the file.
fn answers(
    project: &Project,
    run: RunId,
    samples: &[&Sample],
) -> Result<Vec<Option<Prediction>>, StoreError> {
    let uris: Vec<SampleUri> = samples.iter().map(|sample| sample.uri.clone()).collect();
    let found = project.answers(run, &uris)?;
    let of_this_file = |(answer, sample): (Option<crate::domain::SampleAnswer>, &&Sample)| {
        let answer = answer.filter(|answer| answer.is_of(&sample.stamp()))?;
        answer.result.ok()
    };
    Ok(found.into_iter().zip(samples).map(of_this_file).collect())
}
