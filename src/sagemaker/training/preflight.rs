//! Checks a training job before it costs money. Writes and starts nothing.

use crate::aws::{Aws, S3};
use crate::domain::{S3Address, counted};
use crate::sagemaker::checks::{Checks, Service};
use crate::sagemaker::jobs::{
    JobError, Place, check_image, check_job_name, check_regions, check_role, unless_cancelled,
};
use crate::sagemaker::package::source_files;
use crate::sagemaker::spec::training::{Channel, TrainingPlan, TrainingSource, TrainingSpec};
use crate::sagemaker::spec::transform::{CheckPoint, JobKind, ModelSource, Preflight, PriceTable, cost_usd, human_usd};
use crate::tasks::{Cancelled, TaskControl};

/// Checks a plan, and sets its price from the table if none was given. What cannot be checked is a warning, never an
/// error.
///
/// # Errors
/// The task was canceled.
pub fn preflight(
    aws: &Aws,
    plan: &mut TrainingPlan,
    prices: &PriceTable,
    control: &TaskControl,
) -> Result<Preflight, Cancelled> {
    let (sagemaker, s3, spec) = (aws.sagemaker(&plan.sagemaker), aws.s3(&plan.s3), &plan.spec);
    let instances @ (instance_type, _) = spec.instances();
    let mut checks = Checks::default();
    checks.limits(spec.problems(), &ModelSource::Existing);
    check_role(&mut checks, &spec.role);
    if let Some(source) = &plan.source {
        check_source(&mut checks, source);
    }
    check_instances(&mut checks, spec);
    control.set_step("checking the data");
    let archive = plan.source.as_ref().map(|source| &source.archive);
    let inputs: Vec<S3Address> = spec.channels.iter().filter_map(Channel::objects).collect();
    let output = S3Address::parse(&spec.output.folder).unwrap_or_default();
    for input in inputs.iter().filter(|input| Some(*input) != archive) {
        check_objects(&mut checks, &s3, (CheckPoint::Input, input), control)?;
    }
    check_objects(&mut checks, &s3, (CheckPoint::Output, &output), control)?;
    let checkpoints = spec.checkpoints.as_ref().map(|folder| S3Address::parse(&folder.s3_uri).unwrap_or_default());
    if let Some(checkpoints) = &checkpoints {
        check_objects(&mut checks, &s3, (CheckPoint::Output, checkpoints), control)?;
    }
    let region = unless_cancelled(sagemaker.region(Some(control)).map_err(JobError::from))?;
    let region = match region {
        Ok(region) => region,
        Err(why) => {
            checks.failed(CheckPoint::Region, Service::SageMaker, &why, "");
            return Ok(checks.into_preflight());
        }
    };
    check_image(&mut checks, &spec.algorithm.image, None, Place { instance_type, region: &region });
    check_job_name(&mut checks, &sagemaker, (JobKind::Training, &spec.job_name), &region, control)?;
    let inputs = inputs.iter().map(|input| (input, "input"));
    check_regions(
        &mut checks,
        &s3,
        &inputs
            .chain([(&output, "outputs")])
            .chain(checkpoints.iter().map(|folder| (folder, "checkpoints")))
            .collect::<Vec<_>>(),
        &region,
        control,
    )?;
    plan.usd_per_hour = checks.hourly_cost(plan.usd_per_hour, prices, instances, Some(&region));
    if let Some(usd_per_hour) = plan.usd_per_hour {
        let max_run_s = spec.stopping.max_run_s;
        let most = human_usd(cost_usd(usd_per_hour, instances.1, f64::from(max_run_s)));
        let spot = if spec.is_spot { "; spot instances cost less" } else { "" };
        checks.ok(CheckPoint::Cost, format!("At most {most} until the maximum runtime of {max_run_s} s{spot}"));
    }
    Ok(checks.into_preflight())
}

fn check_source(checks: &mut Checks, TrainingSource { folder, entry_point, archive, .. }: &TrainingSource) {
    const POINT: CheckPoint = CheckPoint::Source;
    let place = folder.display();
    match source_files(folder) {
        Err(error) => checks.problem(POINT, format!("The source folder: {error}"), ""),
        Ok(files) if files.iter().any(|file| file.name == *entry_point) => {
            let all = counted(files.len() as u64, "file", "files");
            checks.ok(POINT, format!("{entry_point} in {place} ({all}), to be uploaded to {archive}"));
        }
        Ok(_) => checks.problem(
            POINT,
            format!("There is no {entry_point} in {place}"),
            "Set the entry point to the script's path in the source folder",
        ),
    }
}

/// Checks that an input has objects, or that the folder of an output can be listed.
fn check_objects(
    checks: &mut Checks,
    s3: &S3,
    (point, address): (CheckPoint, &S3Address),
    control: &TaskControl,
) -> Result<(), Cancelled> {
    match unless_cancelled(s3.first_object(address, Some(control)).map_err(JobError::from))? {
        Ok(None) if point == CheckPoint::Input => {
            checks.problem(point, format!("There is no object in {address}"), "Check the spelling");
        }
        Ok(_) => checks.ok(point, address.to_string()),
        Err(why) => checks.failed(point, Service::S3, &why, ""),
    }
    Ok(())
}

fn check_instances(checks: &mut Checks, spec: &TrainingSpec) {
    let (name, count) = spec.instances();
    if checks.known_instance(name).is_none() {
        return;
    }
    if spec.is_spot && spec.checkpoints.is_none() {
        checks.warning(
            CheckPoint::Instance,
            "Spot instances can be interrupted, and without checkpoints the training then starts over",
            "Set a folder for checkpoints, and save them to /opt/ml/checkpoints",
        );
    } else {
        checks.ok(CheckPoint::Instance, format!("{count} × {name}; SageMaker checks the account's quota at the start"));
    }
}
