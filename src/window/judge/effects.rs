//! Effects of comparing and judging.

use std::sync::Arc;

use crate::project::export::{review_population, review_sample};
use crate::review::{ReportRequest, review_report};
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
            let sample = review_sample(&project, &request.run)?;
            let view = sample.as_ref().map_or(&request.view, |sample| &sample.view);
            let population = review_population(&project, &request.run, view, &ticket.control)?;
            let report = review_report(ReportRequest {
                population: &population,
                labels: &request.run.labels,
                sample: sample.as_ref(),
                min_score: view.min_score_for(request.run.card.task),
                target_precision: None,
            });
            Ok::<_, Failure>(Box::new(report))
        },
        ReviewEvent::Reported,
    );
}
