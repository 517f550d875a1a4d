//! Uploads of local files to S3.

use std::sync::Arc;

use super::Shared;
use crate::aws::AwsErrorKind;
use crate::domain::{S3Place, SampleUri, UploadPlan};
use crate::state::{Event, TaskId, TaskOutcome};
use crate::tasks::{Cancelled, TaskControl};
use crate::upload::{self, DEFAULT_CONCURRENCY, Existing, UploadOptions};

pub(super) struct PlanRequest {
    pub(super) root: String,
    pub(super) samples: Vec<SampleUri>,
    pub(super) target: S3Place,
    pub(super) task: TaskId,
    pub(super) control: TaskControl,
}

pub(super) fn plan(shared: &Arc<Shared>, request: PlanRequest) {
    let task = request.task;
    shared.spawn_reporting(
        "plan an upload",
        move |shared| Event::UploadPlanned {
            task,
            result: make_plan(shared, &request),
        },
        move |mistake| Event::UploadPlanned {
            task,
            result: Err(TaskOutcome::Failed(mistake)),
        },
    );
}

fn make_plan(shared: &Shared, request: &PlanRequest) -> Result<UploadPlan, TaskOutcome> {
    let control = &request.control;
    let local = upload::files_of(&request.root, &request.samples, control)
        .map_err(|Cancelled| TaskOutcome::Cancelled)?;
    let planned = upload::plan(&shared.aws, &request.target, local, control);
    planned.map_err(|error| match error.kind {
        AwsErrorKind::Cancelled => TaskOutcome::Cancelled,
        _ => TaskOutcome::Failed(error.message),
    })
}

pub(super) fn start(
    shared: &Arc<Shared>,
    plan: Arc<UploadPlan>,
    replaces: bool,
    task: TaskId,
    control: TaskControl,
) {
    let target = plan.target.clone();
    let of_mistake = target.clone();
    shared.spawn_reporting(
        "upload",
        move |shared| {
            let options = UploadOptions {
                concurrency: DEFAULT_CONCURRENCY,
                existing: if replaces {
                    Existing::Replace
                } else {
                    Existing::Keep
                },
                unfinished: &shared.dirs.uploads(),
            };
            Event::Uploaded {
                task,
                target,
                result: Ok(upload::upload(&shared.aws, &plan, options, &control)),
            }
        },
        move |mistake| Event::Uploaded {
            task,
            target: of_mistake,
            result: Err(mistake),
        },
    );
}
