//! Effects of comparing and judging.

use std::sync::Arc;

use crate::project::export::{RunReview, report_of_run};
use crate::window::effects::{Effects, Shared};
use crate::window::state::{Failure, ReportOfRun, ReviewEffect, ReviewEvent, Ticket};
use crate::window::{comparison, explain};

pub(crate) fn carry_out(effects: &mut Effects, effect: ReviewEffect) {
    let shared = &effects.shared;
    match effect {
        ReviewEffect::GatherFilmstrip { id, what } => {
            effects.filmstrips.gathering.put((id, what));
        }
        ReviewEffect::MakeCrops { source, run, requested } => effects.filmstrips.request(source, run, requested),
        ReviewEffect::Explain { request, ticket } => {
            explain::effects::explain(shared, &effects.engine, request, ticket);
        }
        ReviewEffect::Report { request, ticket } => report(shared, request, ticket),
        ReviewEffect::Compare { request, ticket } => comparison::effects::compare(shared, request, ticket),
    }
}

fn report(shared: &Arc<Shared>, request: Box<ReportOfRun>, ticket: Ticket) {
    shared.run_task(
        "review report",
        ticket,
        move |shared, ticket| {
            let project = shared.project(request.source).ok_or(Failure::Cancelled)?;
            // The report reads the project, so everything must be saved first.
            project.flush()?;
            let review = RunReview::new(&request.view);
            let report = report_of_run(&project, &request.run, review, &ticket.control)?;
            Ok::<_, Failure>(Box::new(report))
        },
        ReviewEvent::Reported,
    );
}
