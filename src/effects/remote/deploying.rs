//! What the form about an endpoint says becomes an endpoint.

use std::sync::Arc;

use super::super::Shared;
use super::archives::archive_of;
use super::endpoints::records;
use super::outcome_of;
use crate::domain::{
    EndpointConfig, EndpointRecord, ModelSource, S3Access, S3Address, SageMakerAccess,
};
use crate::remote::endpoint::{
    DeployError, EndpointError, EndpointPlan, Material, Remains, deploy, preflight,
};
use crate::remote::transform::{JobError, NewModel, read_prices};
use crate::state::{DeployCheck, DeployOrder, EndpointId, Event, TaskId, TaskOutcome};
use crate::tasks::{TaskControl, now_ms};

/// How an archive is called in S3.
const ARCHIVE: &str = "model.tar.gz";

/// An endpoint with all that it is made of.
struct Planned {
    /// With the region.
    sagemaker: SageMakerAccess,
    s3: S3Access,
    source: ModelSource,
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
    shared.spawn_reporting(
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
    let plan = EndpointPlan {
        sagemaker: &planned.sagemaker,
        s3: &planned.s3,
        source: &planned.source,
        config: &planned.config,
        remains: Remains::Block,
        usd_per_hour: planned.usd_per_hour,
        delete_after_ms: planned.delete_after_ms,
    };
    let found = preflight(&shared.aws, &records(shared), plan, &prices, control)?;
    Ok(DeployCheck {
        preflight: found.preflight,
        image: match planned.source {
            ModelSource::New { spec, .. } => Some(spec.image),
            ModelSource::Existing => None,
        },
        usd_per_hour: found.usd_per_hour,
    })
}

/// With a packed model, and the container it runs in, where one is made.
fn plan_of(
    shared: &Shared,
    order: DeployOrder,
    control: &TaskControl,
) -> Result<Planned, JobError> {
    let asked = SageMakerAccess::from(&order.access);
    let region = shared.aws.sagemaker(&asked).region(Some(control))?;
    let config = order.config;
    let instance_type = config.instance_type.clone().unwrap_or_default();
    let folder = order.archive_folder;
    let to = folder.map(|folder| {
        let key = format!("{}{ARCHIVE}", folder.prefix);
        S3Address::new(&folder.bucket, key)
    });
    let archive = archive_of(shared, &order.model, to, &instance_type, control)?;
    let source = match archive {
        None => ModelSource::Existing,
        Some(archive) => {
            let model = NewModel {
                name: config.model_name.clone(),
                role: order.role,
                image: order.image,
                archive,
                environment: order.environment,
                tags: config.tags.clone(),
            };
            let s3 = shared.aws.s3(&order.access);
            model.source(&s3, &region, &instance_type, control)?
        }
    };
    Ok(Planned {
        sagemaker: SageMakerAccess {
            region: Some(region),
            ..asked
        },
        s3: order.access,
        source,
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
    shared.spawn_reporting(
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
    let material = Material {
        source: &planned.source,
        s3: &planned.s3,
        unfinished: &shared.dirs.uploads(),
    };
    let deployed = deploy(
        &shared.aws,
        &records(shared),
        &mut record,
        material,
        control,
    );
    deployed.map(|()| id).map_err(|error| failed(&error))
}

/// Where nothing is left and the user wanted it so, nothing has failed.
fn failed(error: &DeployError) -> TaskOutcome {
    let is_cancelled = matches!(error.error, EndpointError::Cancelled);
    match error.kept.is_empty() {
        true if is_cancelled => TaskOutcome::Cancelled,
        true => TaskOutcome::Failed(error.to_string()),
        false => TaskOutcome::Failed(format!("{error}; retry in “Endpoints…”")),
    }
}
