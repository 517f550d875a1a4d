//! Comparing the predictions of two runs.

use std::sync::Arc;

use crate::project::export::compare_runs;
use crate::project::prediction_pairs;
use crate::window::effects::Shared;
use crate::window::state::{CompareRequest, Failure, ReviewEvent, Ticket};

pub(crate) fn compare(shared: &Arc<Shared>, request: CompareRequest, ticket: Ticket) {
    shared.run_task(
        "compare two runs",
        ticket,
        move |shared, ticket| {
            let CompareRequest { source, runs, samples, comparison } = request;
            let project = shared.project(source).ok_or(Failure::Cancelled)?;
            // The comparison reads the project, so everything must be saved first.
            project.flush()?;
            let pairs = prediction_pairs(project, runs, samples.iter().cloned());
            compare_runs(*comparison, pairs, &ticket.control, |_, _| Ok(()))
        },
        ReviewEvent::Compared,
    );
}
