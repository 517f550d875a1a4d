//! Checks an endpoint before it costs money. Writes and starts nothing.

use super::EndpointRecords;
use crate::aws::{Aws, SageMaker};
use crate::sagemaker::checks::Checks;
use crate::sagemaker::error::unless_cancelled;
use crate::sagemaker::jobs::{ModelPlan, check_only_model};
use crate::sagemaker::spec::endpoint::{EndpointConfig, EndpointPlan, EndpointStatus};
use crate::sagemaker::spec::transform::{
    CheckPoint, ModelSource, Network, Preflight, PriceTable, cost_usd, human_usd, name_problem,
};
use crate::tasks::{Cancelled, TaskControl};

/// What happens to resources that an earlier endpoint with the same name left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// They are a problem.
    Block,
    /// They are deleted first.
    Go,
}

/// Checks a plan, and sets its price from the table if none was given. What cannot be checked is a warning, never an
/// error.
///
/// # Errors
/// The task was canceled.
pub fn preflight(
    aws: &Aws,
    records: &EndpointRecords,
    plan: &mut EndpointPlan,
    remains: Leftovers,
    prices: &PriceTable,
    control: &TaskControl,
) -> Result<Preflight, Cancelled> {
    let sagemaker = aws.sagemaker(&plan.sagemaker);
    let of_model = ModelPlan {
        name: &plan.config.model_name,
        source: &plan.model,
        instance_type: plan.config.instance_type.as_deref().unwrap_or_default(),
    };
    control.set_step("checking the model");
    let mut checks = check_only_model(aws, (&plan.sagemaker, &plan.s3), of_model, control)?;
    control.set_step("checking the endpoint name");
    check_name(&mut checks, &sagemaker, records, (&plan.config.name, remains), control)?;
    checks.limits(plan.config.problems(), &plan.model);
    if plan.config.serverless.is_some() {
        check_serverless(&mut checks, plan);
        return Ok(checks.into_preflight());
    }
    check_instances(&mut checks, &plan.config);
    let region = unless_cancelled(sagemaker.region(control))?;
    // The model's check reports an unknown region.
    let instances = (plan.config.instance_type.as_deref().unwrap_or_default(), plan.config.instance_count);
    plan.usd_per_hour = checks.hourly_cost(plan.usd_per_hour, prices, instances, region.ok().as_deref());
    check_deletion(&mut checks, plan.delete_after_ms, &plan.config, plan.usd_per_hour);
    Ok(checks.into_preflight())
}

fn check_name(
    checks: &mut Checks,
    sagemaker: &SageMaker,
    records: &EndpointRecords,
    (name, remains): (&str, Leftovers),
    control: &TaskControl,
) -> Result<(), Cancelled> {
    const POINT: CheckPoint = CheckPoint::EndpointName;
    if let Some(why) = name_problem(name) {
        checks.problem(POINT, format!("The name {why}"), "");
        return Ok(());
    }
    let there = sagemaker.region(control).and_then(|region| {
        let there = sagemaker.describe_endpoint(name, control)?;
        Ok((region, there))
    });
    match unless_cancelled(there)? {
        Err(error) => checks.problem(POINT, error.to_string(), ""),
        Ok((_, Some(there))) if there.status == EndpointStatus::Deleting => checks.problem(
            POINT,
            format!("Endpoint {name} is being deleted"),
            "Wait a few minutes, or choose another name",
        ),
        Ok((region, Some(_))) => checks.problem(
            POINT,
            format!("Endpoint {name} already exists in {region}"),
            "Choose another name, or delete that endpoint",
        ),
        Ok((region, None)) if !matches!(records.find(name, &region), Ok(None)) => {
            let finding = format!("Parts of an earlier endpoint {name} remain in {region}");
            match remains {
                Leftovers::Block => checks.problem(POINT, finding, "Choose another name, or delete them first"),
                Leftovers::Go => {
                    checks.warning(POINT, finding, "They are deleted first; choose another name to keep them");
                }
            }
        }
        Ok((region, None)) => checks.ok(POINT, format!("{name} is free in {region}")),
    }
    Ok(())
}

/// Serverless endpoints have no instances, and cost nothing while idle.
fn check_serverless(checks: &mut Checks, plan: &EndpointPlan) {
    match &plan.model {
        ModelSource::New { spec, .. } if spec.network != Network::default() => checks.problem(
            CheckPoint::Instance,
            "Serverless endpoints support neither VPC settings nor network isolation",
            "Remove these settings, or use instances",
        ),
        _ => checks.ok(CheckPoint::Instance, "Serverless: no instances, and no GPU"),
    }
    checks.ok(CheckPoint::Cost, "Billed only for requests; Spotcheck cannot estimate their cost");
    if plan.delete_after_ms.is_some() {
        check_deletion(checks, plan.delete_after_ms, &plan.config, None);
    }
}

fn check_instances(checks: &mut Checks, config: &EndpointConfig) {
    const POINT: CheckPoint = CheckPoint::Instance;
    let name = config.instance_type.as_deref().unwrap_or_default();
    let Some(instance) = checks.known_instance(name) else {
        return;
    };
    let has_gpu = instance.has_gpu();
    if has_gpu && config.ami_version.is_none() {
        checks.warning(
            POINT,
            format!("{name} has a GPU, but no AMI version is set, which determines the driver"),
            "A container does not start if the driver is older than its CUDA version; \
             al2-ami-sagemaker-inference-gpu-3-1 has CUDA 12.4",
        );
    } else if instance.is_arm() {
        checks.warning(
            POINT,
            format!("{name} has ARM processors, which AWS's Ray Serve container does not support"),
            "Choose an instance type without “g” after the number, or an ARM container",
        );
    } else if config.kms_key.is_some() && instance.has_local_disks() {
        checks.warning(
            POINT,
            format!("{name} encrypts its local disks itself; SageMaker rejects a key for them"),
            "Remove the volume encryption key",
        );
    } else {
        let threads = instance.vcpus().map_or_else(String::new, |vcpus| format!(": {vcpus} vCPUs"));
        let gpu = if has_gpu { ", with a GPU" } else { "" };
        let count = config.instance_count;
        checks.ok(POINT, format!("{count} × {name}{threads}{gpu}; SageMaker checks the account's quota at the start"));
    }
}

fn check_deletion(
    checks: &mut Checks,
    delete_after_ms: Option<i64>,
    config: &EndpointConfig,
    usd_per_hour: Option<f64>,
) {
    let Some(after_ms) = delete_after_ms else {
        return checks.warning(
            CheckPoint::Deletion,
            "No automatic deletion: billed continuously, even when idle",
            "Set automatic deletion after a number of hours; it can be postponed later",
        );
    };
    let hours = after_ms as f64 / 3_600_000.0;
    let cost = usd_per_hour.map_or_else(String::new, |usd| {
        let cost = cost_usd(usd, config.instance_count, hours * 3600.0);
        format!("; estimated cost until then: {}", human_usd(cost))
    });
    checks.ok(
        CheckPoint::Deletion,
        format!("After {} h if Spotcheck is running, otherwise at its next start{cost}", round(hours)),
    );
}

/// Hours as text: `2`, `0.5`.
fn round(hours: f64) -> String {
    let text = format!("{hours:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sagemaker::spec::transform::{Check, CheckGrade};

    fn found(check: impl FnOnce(&mut Checks)) -> Check {
        let mut checks = Checks::default();
        check(&mut checks);
        checks.found.remove(0)
    }

    fn config(instance_type: &str) -> EndpointConfig {
        EndpointConfig {
            name: "cats".to_owned(),
            model_name: "cats".to_owned(),
            instance_type: Some(instance_type.to_owned()),
            instance_count: 2,
            ..EndpointConfig::default()
        }
    }

    #[test]
    fn gpu_needs_a_driver_and_a_matching_type() {
        for (instance_type, grade) in [
            ("ml.m5.xlarge", CheckGrade::Ok),
            ("ml.g5.xlarge", CheckGrade::Warning),
            ("ml.m6g.large", CheckGrade::Warning),
            ("m5.xlarge", CheckGrade::Problem),
        ] {
            let check = found(|checks| check_instances(checks, &config(instance_type)));
            assert_eq!(check.grade, grade, "{check:?}");
        }
        let with_driver = EndpointConfig {
            ami_version: Some("al2-ami-sagemaker-inference-gpu-3-1".to_owned()),
            ..config("ml.g5.xlarge")
        };
        assert_eq!(found(|checks| check_instances(checks, &with_driver)).grade, CheckGrade::Ok);
    }

    #[test]
    fn cost_until_auto_delete_is_estimated() {
        let config = config("ml.m5.xlarge");
        let check = found(|checks| check_deletion(checks, Some(90 * 60_000), &config, Some(0.25)));
        assert_eq!(
            check.finding,
            "After 1.5 h if Spotcheck is running, otherwise at its next start; estimated cost until then: $0.75"
        );
        let check = found(|checks| check_deletion(checks, None, &config, Some(0.25)));
        assert_eq!(check.grade, CheckGrade::Warning);
    }
}
