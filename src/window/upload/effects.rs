//! Uploads of local files to S3.

use std::sync::Arc;

use crate::aws::upload;
use crate::aws::upload::plan::UploadPlan;
use crate::aws::upload::{DEFAULT_CONCURRENCY, Existing, UploadOptions};
use crate::tasks::Cancelled;
use crate::window::effects::{Effects, Shared};
use crate::window::s3::effects::failure;
use crate::window::state::{Failure, Ticket, UploadEffect, UploadEvent, UploadPlanRequest};

pub(crate) fn carry_out(effects: &mut Effects, effect: UploadEffect) {
    let shared = &effects.shared;
    match effect {
        UploadEffect::Plan { request, ticket } => plan(shared, request, ticket),
        UploadEffect::Start { plan, replaces, ticket } => start(shared, plan, replaces, ticket),
    }
}

fn plan(shared: &Arc<Shared>, request: UploadPlanRequest, ticket: Ticket) {
    shared.run_task(
        "plan an upload",
        ticket,
        move |shared, ticket| {
            let control = &ticket.control;
            let local =
                upload::files_of(&request.root, &request.samples, control).map_err(|Cancelled| Failure::Cancelled)?;
            let planned = upload::plan(&shared.aws, &request.target, local, control);
            planned.map_err(|error| failure(shared, &request.target.access, error))
        },
        UploadEvent::Planned,
    );
}

fn start(shared: &Arc<Shared>, plan: Arc<UploadPlan>, replaces: bool, ticket: Ticket) {
    let target = plan.target.clone();
    shared.run_task(
        "upload",
        ticket,
        move |shared, ticket| {
            let options = UploadOptions {
                concurrency: DEFAULT_CONCURRENCY,
                existing: if replaces { Existing::Replace } else { Existing::Keep },
                unfinished: &shared.dirs.uploads(),
            };
            Ok(upload::upload(&shared.aws, &plan, options, &ticket.control))
        },
        move |task, result| UploadEvent::Ended { task, target, result },
    );
}
