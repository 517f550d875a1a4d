//! Effects of comparing and judging.

use std::sync::Arc;

use crate::project::export::{
    EvaluatedBoxes, RunReview, draw_sample, find_clusters, load_sample, report_of_run, review_population,
};
use crate::review::SampleBy;
use crate::window::effects::{Effects, Shared};
use crate::window::state::{
    Failure, ReportOfRun, ReviewEffect, ReviewEvent, SampleDesign, SampleRequest, SampleWork, Ticket,
};
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
        ReviewEffect::Sample { request, ticket } => sample(shared, request, ticket),
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
            let ReportOfRun { run, view, truth, .. } = *request;
            let truth = truth.map(|(outcomes, samples)| EvaluatedBoxes { outcomes, samples });
            let review = RunReview { truth: truth.as_ref(), ..RunReview::new(&view) };
            let report = report_of_run(&project, &run, review, &ticket.control)?;
            Ok::<_, Failure>(Box::new(report))
        },
        ReviewEvent::Reported,
    );
}

fn sample(shared: &Arc<Shared>, request: Box<SampleRequest>, ticket: Ticket) {
    shared.run_task(
        "sample",
        ticket,
        move |shared, ticket| {
            let SampleRequest { source, run, what } = *request;
            let project = shared.project(source).ok_or(Failure::Cancelled)?;
            let sample = match what {
                SampleWork::Load(sample) => *sample,
                SampleWork::Draw(SampleDesign { count, by, seed }, view) => {
                    // Predictions may not be saved yet.
                    project.flush()?;
                    let mut population = review_population(&project, &run, &view, &ticket.control)?;
                    if population.units.is_empty() {
                        let [_, many] = run.card.stored_as().judged_words();
                        return Err(Failure::new(format!("No {many} are visible; choose a lower minimum score")));
                    }
                    if by == SampleBy::Cover
                        && find_clusters(&mut population, &project, &run, (count, seed), &ticket.control)?.is_none()
                    {
                        return Err(Failure::new(
                            "This run has no embeddings. Predict the images again in a new run, or add embeddings with \
                             `spotcheck predict --resume`",
                        ));
                    }
                    draw_sample(&population, &run, *view, by, count, seed)
                }
            };
            Ok::<_, Failure>(Box::new(load_sample(&project, run.id, sample)?))
        },
        ReviewEvent::SampleLoaded,
    );
}
