//! What the form about an endpoint says becomes an endpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Shared;
use super::archives::packed;
use super::endpoints::records;
use super::outcome_of;
use crate::domain::{
    ArchiveContent, EndpointConfig, EndpointRecord, ModelSource, ModelSpec, S3Access, S3Address,
    SageMakerAccess, default_image,
};
use crate::remote::endpoint::{
    Deletion, EndpointError, EndpointPlan, LocalArchive, Remains, deploy, preflight, send_archive,
};
use crate::remote::transform::{JobError, read_prices};
use crate::state::{DeployCheck, DeployOrder, EndpointId, Event, TaskId, TaskOutcome};
use crate::tasks::{ProgressUnit, TaskControl, now_ms};

/// How an archive is called in S3.
const ARCHIVE: &str = "model.tar.gz";

/// An endpoint with all that it is made of.
struct Planned {
    /// With the region.
    sagemaker: SageMakerAccess,
    s3: S3Access,
    spec: ModelSpec,
    archive: std::path::PathBuf,
    config: EndpointConfig,
    usd_per_hour: Option<f64>,
    delete_after_ms: Option<i64>,
}

pub(in super::super) fn check(
    shared: &Arc<Shared>,
    order: DeployOrder,
    task: TaskId,
    control: TaskControl,
) {
    shared.spawn_answer(
        "check an endpoint",
        move |shared| {
            let checked = check_order(shared, order, &control);
            Event::DeploymentChecked {
                task,
                result: checked.map(Box::new).map_err(|error| outcome_of(&error)),
            }
        },
        move |mistake| Event::DeploymentChecked {
            task,
            result: Err(TaskOutcome::Failed(mistake)),
        },
    );
}

fn check_order(
    shared: &Shared,
    order: DeployOrder,
    control: &TaskControl,
) -> Result<DeployCheck, JobError> {
    let planned = plan_of(shared, order, control)?;
    let prices = read_prices(&shared.dirs.prices())?;
    let source = ModelSource::New {
        spec: planned.spec.clone(),
        local_archive: Some(planned.archive.clone()),
    };
    let plan = EndpointPlan {
        sagemaker: &planned.sagemaker,
        s3: &planned.s3,
        source: &source,
        config: &planned.config,
        remains: Remains::Block,
        usd_per_hour: planned.usd_per_hour,
        delete_after_ms: planned.delete_after_ms,
    };
    let found = preflight(&shared.aws, &records(shared), plan, &prices, control)?;
    Ok(DeployCheck {
        preflight: found.preflight,
        image: planned.spec.image,
        usd_per_hour: found.usd_per_hour,
    })
}

/// With a packed model, and the container it runs in.
fn plan_of(
    shared: &Shared,
    order: DeployOrder,
    control: &TaskControl,
) -> Result<Planned, JobError> {
    let asked = SageMakerAccess::from(&order.access);
    let region = shared.aws.sagemaker(&asked).region(Some(control))?;
    let config = order.config;
    let instance_type = config.instance_type.clone().unwrap_or_default();
    let archive = packed(shared, &order.model_id, &instance_type, control)?;
    let folder = order.archive_folder;
    let spec = ModelSpec {
        name: config.model_name.clone(),
        image: order
            .image
            .unwrap_or_else(|| default_image(&region, &instance_type, ArchiveContent::Onnx)),
        archive: S3Address::new(&folder.bucket, format!("{}{ARCHIVE}", folder.prefix)),
        role: order.role,
        environment: BTreeMap::new(),
        tags: BTreeMap::new(),
    };
    Ok(Planned {
        sagemaker: SageMakerAccess {
            region: Some(region),
            ..asked
        },
        s3: order.access,
        spec,
        archive,
        config,
        usd_per_hour: order.usd_per_hour,
        delete_after_ms: order.delete_after_ms,
    })
}

pub(in super::super) fn start(
    shared: &Arc<Shared>,
    order: DeployOrder,
    task: TaskId,
    control: TaskControl,
) {
    shared.spawn_answer(
        "deploy an endpoint",
        move |shared| {
            let planned = plan_of(shared, order, &control).map_err(|error| outcome_of(&error));
            Event::Deployed {
                task,
                result: planned.and_then(|planned| deploy_planned(shared, &planned, &control)),
            }
        },
        move |mistake| Event::Deployed {
            task,
            result: Err(TaskOutcome::Failed(mistake)),
        },
    );
}

fn deploy_planned(
    shared: &Shared,
    planned: &Planned,
    control: &TaskControl,
) -> Result<EndpointId, TaskOutcome> {
    let now = now_ms();
    let mut record = EndpointRecord {
        usd_per_hour: planned.usd_per_hour,
        delete_at_ms: planned.delete_after_ms.map(|after| now + after),
        ..EndpointRecord::new(planned.sagemaker.clone(), planned.config.clone(), now)
    };
    let id = EndpointId::from(&record);
    let deployed = make(shared, planned, &mut record, control);
    match deployed {
        Ok(()) => Ok(id),
        Err(error) => undo(shared, id, &error),
    }
}

fn make(
    shared: &Shared,
    planned: &Planned,
    record: &mut EndpointRecord,
    control: &TaskControl,
) -> Result<(), EndpointError> {
    let records = records(shared);
    let archive = LocalArchive {
        path: &planned.archive,
        address: &planned.spec.archive,
        s3: &planned.s3,
        unfinished: &shared.dirs.uploads(),
    };
    send_archive(&shared.aws, &records, record, archive, control)?;
    let sagemaker = shared.aws.sagemaker(&planned.sagemaker);
    deploy(&sagemaker, &records, record, Some(&planned.spec), control)
}

/// What was made before something went wrong goes again, also where the user has cancelled.
fn undo(shared: &Shared, id: EndpointId, error: &EndpointError) -> Result<EndpointId, TaskOutcome> {
    let is_cancelled = matches!(error, EndpointError::Cancelled);
    let records = records(shared);
    let failed =
        |what_is_left: String| Err(TaskOutcome::Failed(format!("{error}. {what_is_left}")));
    if records.find(&id.name, id.region()).is_none() {
        if is_cancelled {
            return Err(TaskOutcome::Cancelled);
        }
        return failed("Nothing was made for it, so nothing is left".to_owned());
    }
    let control = TaskControl::new(ProgressUnit::Steps);
    let (aws, name) = (&shared.aws, &id.name);
    let left = Deletion::of(aws, &records, &id.sagemaker, name, false, &control);
    let done = match left {
        // SageMaker took it all the same, and only its answer got lost.
        Ok(deletion) if deletion.status().is_some() && !is_cancelled => return Ok(id),
        Ok(deletion) => deletion.carry_out(aws, &records, &control),
        Err(error) => Err(error),
    };
    match done {
        Ok(done) if done.kept.is_empty() && is_cancelled => Err(TaskOutcome::Cancelled),
        Ok(done) if done.kept.is_empty() => failed(format!(
            "What was made for it before was deleted again: {}",
            done.deleted.join(", ")
        )),
        Ok(done) => {
            let kept = done.kept.iter();
            let kept: Vec<String> = kept.map(|(what, why)| format!("{what} ({why})")).collect();
            failed(format!(
                "What was made for it before could not all be deleted again: {}; “Endpoints…” tries once more",
                kept.join(", ")
            ))
        }
        Err(second) => failed(format!(
            "What was made for it before could not be deleted again ({second}); “Endpoints…” tries once more"
        )),
    }
}
