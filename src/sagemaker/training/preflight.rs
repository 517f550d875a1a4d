//! Checks a training job before it costs money. Writes and starts nothing.

use crate::aws::{Aws, S3};
use crate::domain::{S3Address, counted};
use crate::sagemaker::checks::{Checks, Service};
use crate::sagemaker::error::unless_cancelled;
use crate::sagemaker::jobs::{Place, check_image, check_job_name, check_prefix, check_regions, check_role};
use crate::sagemaker::package::source_files;
use crate::sagemaker::spec::training::{Channel, TrainingPlan, TrainingSource, TrainingSpec};
use crate::sagemaker::spec::transform::{
    CheckGrade, CheckPoint, ContainerUse, JobKind, ModelSource, Preflight, PriceTable, cost_usd, human_usd,
};
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
    let instances @ (instance_type, _) = spec.resources.instances();
    let mut checks = Checks::default();
    checks.limits(spec.problems(), &ModelSource::Existing);
    check_role(&mut checks, &spec.role);
    if let Some(source) = &plan.source {
        check_source(&mut checks, source);
    }
    check_instances(&mut checks, spec);
    control.set_step("checking the data");
    let used = addresses(plan);
    for (address, purpose) in &used {
        check_objects(&mut checks, &s3, (address, purpose), control)?;
    }
    let region = match unless_cancelled(sagemaker.region(control))? {
        Ok(region) => region,
        Err(why) => {
            checks.failed(CheckPoint::Region, Service::SageMaker, &why, "");
            return Ok(checks.into_preflight());
        }
    };
    let image = (spec.algorithm.image.as_str(), ContainerUse::Training);
    check_image(&mut checks, image, None, Place { instance_type, region: &region });
    check_job_name(&mut checks, &sagemaker, (JobKind::Training, &spec.job_name), &region, control)?;
    let used: Vec<_> = used.iter().map(|(address, purpose)| (address, *purpose)).collect();
    check_regions(&mut checks, &s3, &used, &region, control)?;
    plan.usd_per_hour = checks.hourly_cost(plan.usd_per_hour, prices, instances, Some(&region));
    if let Some(usd_per_hour) = plan.usd_per_hour {
        let max_run_s = spec.stopping.max_run_s;
        let most = human_usd(cost_usd(usd_per_hour, instances.1, f64::from(max_run_s)));
        let spot = if spec.is_spot { "; spot instances cost less" } else { "" };
        checks.ok(CheckPoint::Cost, format!("At most {most} until the maximum runtime of {max_run_s} s{spot}"));
    }
    Ok(checks.into_preflight())
}

const INPUT: &str = "input";

/// The addresses that a job reads and writes, with their purposes. A source folder is not uploaded yet.
fn addresses(TrainingPlan { spec, source, .. }: &TrainingPlan) -> Vec<(S3Address, &'static str)> {
    let archive = source.as_ref().map(|source| &source.archive);
    let inputs = spec.channels.iter().filter_map(Channel::objects).filter(|input| Some(input) != archive);
    let written =
        [(Some(&spec.output.folder), "outputs"), (spec.checkpoints.as_ref().map(|to| &to.s3_uri), "checkpoints")];
    let written = written.into_iter().filter_map(|(uri, purpose)| Some((S3Address::parse(uri?).ok()?, purpose)));
    inputs.map(|input| (input, INPUT)).chain(written).collect()
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

/// Checks that an input has objects and includes no others, or that an output folder can be listed.
fn check_objects(
    checks: &mut Checks,
    s3: &S3,
    (address, purpose): (&S3Address, &str),
    control: &TaskControl,
) -> Result<(), Cancelled> {
    let point = if purpose == INPUT { CheckPoint::Input } else { CheckPoint::Output };
    match unless_cancelled(s3.first_object(address, Some(control)))? {
        Ok(None) if point == CheckPoint::Input => {
            checks.problem(point, format!("There is no object in {address}"), "Check the spelling");
        }
        Ok(_) => {
            checks.ok(point, address.to_string());
            if point == CheckPoint::Input {
                check_prefix(checks, s3, address, CheckGrade::Warning, control)?;
            }
        }
        Err(why) => checks.failed(point, Service::S3, &why, ""),
    }
    Ok(())
}

fn check_instances(checks: &mut Checks, spec: &TrainingSpec) {
    let (name, count) = spec.resources.instances();
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
