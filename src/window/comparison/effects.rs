//! Comparing the predictions of two runs.

use std::sync::Arc;

use crate::domain::SampleId;
use crate::evaluation::Agreement;
use crate::project::{Project, prediction_pairs};
use crate::window::effects::Shared;
use crate::window::state::{CompareRequest, Failure, ReviewEvent, Ticket};

pub(crate) fn compare(shared: &Arc<Shared>, request: CompareRequest, ticket: Ticket) {
    shared.run_task(
        "compare two runs",
        ticket,
        move |shared, ticket| {
            let project = shared.project(request.source);
            agreement(project.ok_or(Failure::Cancelled)?, request, ticket)
        },
        ReviewEvent::Compared,
    );
}

fn agreement(project: Project, request: CompareRequest, ticket: &Ticket) -> Result<Agreement, Failure> {
    // The comparison reads the project, so everything must be saved first.
    project.flush().map_err(|error| error.to_string())?;
    let mut comparison = *request.comparison;
    let samples = request.samples.iter().cloned();
    for (index, pair) in prediction_pairs(project, request.runs, samples).enumerate() {
        if ticket.control.checkpoint().is_err() {
            return Err(Failure::Cancelled);
        }
        let pair = pair.map_err(|error| error.to_string())?;
        let [left, right] = &pair.predictions;
        let sample = SampleId::from_index(index);
        comparison.add(sample, left.as_ref(), right.as_ref());
        ticket.control.add_done(1);
    }
    Ok(comparison.finish())
}
