//! Compares the predictions of two runs.

use std::sync::Arc;

use super::Shared;
use crate::domain::{RunId, Sample, SampleId, SharedList};
use crate::evaluation::{Agreement, Comparison};
use crate::state::{Event, SourceId, TaskId};
use crate::store::{PredictionPairs, Project};
use crate::tasks::TaskControl;

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
    shared.spawn_reporting(
        "compare two runs",
        move |shared| {
            let Some(project) = shared.project(request.source) else {
                return ended(Err("the project was closed".to_owned()));
            };
            ended(agreement(project, request))
        },
        move |mistake| ended(Err(mistake)),
    );
}

fn agreement(project: Project, request: Compare) -> Result<Agreement, String> {
    // The project is what is read: answers that are not saved yet would be missing.
    project.flush().map_err(|error| error.to_string())?;
    let mut comparison = *request.comparison;
    let samples = request.samples.iter().cloned();
    for (index, pair) in PredictionPairs::new(project, request.runs, samples).enumerate() {
        if request.control.checkpoint().is_err() {
            return Err("The comparison was cancelled".to_owned());
        }
        let pair = pair.map_err(|error| error.to_string())?;
        let [left, right] = &pair.predictions;
        let sample = SampleId::from_index(index);
        comparison.add(sample, left.as_ref(), right.as_ref());
        request.control.add_done(1);
    }
    Ok(comparison.finish())
}
