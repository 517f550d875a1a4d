//! Checks an endpoint before it costs money. Writes and starts nothing.

use super::EndpointRecords;
use crate::aws::{Aws, AwsErrorKind, SageMaker};
use crate::sagemaker::jobs::{ModelPlan, preflight_model};
use crate::sagemaker::spec::endpoint::{EndpointConfig, EndpointPlan, EndpointStatus};
use crate::sagemaker::spec::transform::{
    Check, CheckGrade, CheckPoint, FieldProblem, InstanceType, ModelSource, Preflight, PriceTable, cost_usd, human_usd,
    name_problem,
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

#[derive(Debug, Clone, PartialEq)]
pub struct CheckedEndpoint {
    /// The plan, with the price from the table if none was given.
    pub plan: EndpointPlan,
    pub preflight: Preflight,
}

/// Checks a plan. What cannot be checked is a warning, never an error.
///
/// # Errors
/// The task was canceled.
pub fn preflight(
    aws: &Aws,
    records: &EndpointRecords,
    mut plan: EndpointPlan,
    remains: Leftovers,
    prices: &PriceTable,
    control: &TaskControl,
) -> Result<CheckedEndpoint, Cancelled> {
    let sagemaker = aws.sagemaker(&plan.sagemaker);
    let of_model = ModelPlan {
        name: &plan.config.model_name,
        source: &plan.model,
        instance_type: plan.config.instance_type.as_deref().unwrap_or_default(),
    };
    control.set_step("checking the model");
    let found = preflight_model(aws, &plan.sagemaker, &plan.s3, of_model, control)?;
    let mut checks = found.checks;
    control.set_step("checking the endpoint name");
    checks.push(check_name(&sagemaker, records, (&plan.config.name, remains), control)?);
    checks.extend(check_limits(&plan.config, &plan.model));
    checks.push(check_instances(&plan.config));
    let region = match sagemaker.region(Some(control)) {
        Err(error) if error.kind == AwsErrorKind::Cancelled => return Err(Cancelled),
        // The model's check reports an unknown region.
        region => region.ok(),
    };
    let (check, usd_per_hour) = check_cost(&plan, prices, region.as_deref());
    checks.push(check);
    checks.push(check_deletion(plan.delete_after_ms, &plan.config, usd_per_hour));
    plan.usd_per_hour = usd_per_hour;
    checks.sort_by_key(|check| check.point);
    Ok(CheckedEndpoint { plan, preflight: Preflight { checks, ..Preflight::default() } })
}

fn check(point: CheckPoint, grade: CheckGrade, finding: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { point, grade, finding: finding.into(), advice: advice.into() }
}

fn check_name(
    sagemaker: &SageMaker,
    records: &EndpointRecords,
    (name, remains): (&str, Leftovers),
    control: &TaskControl,
) -> Result<Check, Cancelled> {
    let problem =
        |finding: String, advice: &str| Ok(check(CheckPoint::EndpointName, CheckGrade::Problem, finding, advice));
    if let Some(why) = name_problem(name) {
        return problem(format!("The name {why}"), "");
    }
    let there = sagemaker.region(Some(control)).and_then(|region| {
        let there = sagemaker.describe_endpoint(name, Some(control))?;
        Ok((region, there))
    });
    match there {
        Err(error) if error.kind == AwsErrorKind::Cancelled => Err(Cancelled),
        Err(error) => problem(error.message, ""),
        Ok((_, Some(there))) if there.status == EndpointStatus::Deleting => {
            problem(format!("Endpoint {name} is being deleted"), "Wait a few minutes, or choose another name")
        }
        Ok((region, Some(_))) => problem(
            format!("Endpoint {name} already exists in {region}"),
            "Choose another name, or delete that endpoint",
        ),
        Ok((region, None)) if records.find(name, &region).is_some() => {
            let finding = format!("Parts of an earlier endpoint {name} remain in {region}");
            let (grade, advice) = match remains {
                Leftovers::Block => (CheckGrade::Problem, "Choose another name, or delete them first"),
                Leftovers::Go => (CheckGrade::Warning, "They are deleted first; choose another name to keep them"),
            };
            Ok(check(CheckPoint::EndpointName, grade, finding, advice))
        }
        Ok((region, None)) => {
            Ok(check(CheckPoint::EndpointName, CheckGrade::Ok, format!("{name} is free in {region}"), ""))
        }
    }
}

/// Names, ranges and lengths without a check of their own.
fn check_limits(config: &EndpointConfig, source: &ModelSource) -> Vec<Check> {
    let mut problems = config.problems();
    if let ModelSource::New { spec, .. } = source {
        // Both have the same tags.
        let more = spec.problems_of_details();
        let is_new = |problem: &FieldProblem| !problems.contains(problem);
        let more: Vec<FieldProblem> = more.into_iter().filter(is_new).collect();
        problems.extend(more);
    }
    if problems.is_empty() {
        return vec![check(CheckPoint::Limits, CheckGrade::Ok, "All are within SageMaker's limits", "")];
    }
    let problem = |problem: FieldProblem| {
        let finding = format!("The {problem}");
        check(CheckPoint::Limits, CheckGrade::Problem, finding, "")
    };
    problems.into_iter().map(problem).collect()
}

fn check_instances(config: &EndpointConfig) -> Check {
    let name = config.instance_type.as_deref().unwrap_or_default();
    let Some(instance) = InstanceType::parse(name) else {
        return check(
            CheckPoint::Instance,
            CheckGrade::Problem,
            format!("“{name}” is not an instance type"),
            "Instance types look like ml.m5.xlarge",
        );
    };
    let has_gpu = instance.has_gpu();
    if has_gpu && config.ami_version.is_none() {
        return check(
            CheckPoint::Instance,
            CheckGrade::Warning,
            format!("{name} has a GPU, but no AMI version is set, which determines the driver"),
            "A container does not start if the driver is older than its CUDA version; \
             al2-ami-sagemaker-inference-gpu-3-1 has CUDA 12.4",
        );
    }
    if instance.is_arm() {
        return check(
            CheckPoint::Instance,
            CheckGrade::Warning,
            format!("{name} has ARM processors, which AWS's Ray Serve container does not support"),
            "Choose an instance type without “g” after the number, or an ARM container",
        );
    }
    if config.kms_key.is_some() && instance.has_local_disks() {
        return check(
            CheckPoint::Instance,
            CheckGrade::Warning,
            format!("{name} encrypts its local disks itself; SageMaker rejects a key for them"),
            "Remove the volume encryption key",
        );
    }
    let threads = instance.vcpus().map_or_else(String::new, |vcpus| format!(": {vcpus} vCPUs"));
    let gpu = if has_gpu { ", with a GPU" } else { "" };
    let count = config.instance_count;
    let finding = format!("{count} × {name}{threads}{gpu}; SageMaker checks the account's quota at the start");
    check(CheckPoint::Instance, CheckGrade::Ok, finding, "")
}

/// Checks the price, and returns it.
fn check_cost(plan: &EndpointPlan, prices: &PriceTable, region: Option<&str>) -> (Check, Option<f64>) {
    let config = &plan.config;
    let name = config.instance_type.as_deref().unwrap_or_default();
    let given = plan.usd_per_hour.map(|usd| (usd, "as given".to_owned()));
    let known = given.or_else(|| {
        let price = prices.find(name, region)?;
        let source = format!("of {}, from {}", price.date, price.source);
        Some((price.usd_per_hour, source))
    });
    let Some((usd, source)) = known else {
        let unknown = check(
            CheckPoint::Cost,
            CheckGrade::Warning,
            format!("The price of {name} is unknown, so the cost of the endpoint is unknown"),
            "Enter its price per hour (on the command line: --hourly-price)",
        );
        return (unknown, None);
    };
    let hour = cost_usd(usd, config.instance_count, 3600.0);
    let finding = format!(
        "{} per hour or {} per day for {} × {name} ({} per instance-hour, {source})",
        human_usd(hour),
        human_usd(hour * 24.0),
        config.instance_count,
        human_usd(usd)
    );
    let known = check(CheckPoint::Cost, CheckGrade::Ok, finding, "");
    (known, Some(usd))
}

fn check_deletion(delete_after_ms: Option<i64>, config: &EndpointConfig, usd_per_hour: Option<f64>) -> Check {
    let Some(after_ms) = delete_after_ms else {
        return check(
            CheckPoint::Deletion,
            CheckGrade::Warning,
            "No automatic deletion: billed continuously, even when idle",
            "Set automatic deletion after a number of hours; it can be postponed later",
        );
    };
    let hours = after_ms as f64 / 3_600_000.0;
    let cost = usd_per_hour.map_or_else(String::new, |usd| {
        let cost = cost_usd(usd, config.instance_count, hours * 3600.0);
        format!("; estimated cost until then: {}", human_usd(cost))
    });
    check(
        CheckPoint::Deletion,
        CheckGrade::Ok,
        format!("After {} h if Spotcheck is running, otherwise at its next start{cost}", round(hours)),
        "",
    )
}

/// Hours as text: `2`, `0.5`.
fn round(hours: f64) -> String {
    let text = format!("{hours:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let check = check_instances(&config(instance_type));
            assert_eq!(check.grade, grade, "{check:?}");
        }
        let with_driver = EndpointConfig {
            ami_version: Some("al2-ami-sagemaker-inference-gpu-3-1".to_owned()),
            ..config("ml.g5.xlarge")
        };
        assert_eq!(check_instances(&with_driver).grade, CheckGrade::Ok);
    }

    #[test]
    fn cost_until_auto_delete_is_estimated() {
        let config = config("ml.m5.xlarge");
        let check = check_deletion(Some(90 * 60_000), &config, Some(0.25));
        assert_eq!(
            check.finding,
            "After 1.5 h if Spotcheck is running, otherwise at its next start; estimated cost until then: $0.75"
        );
        let check = check_deletion(None, &config, Some(0.25));
        assert_eq!(check.grade, CheckGrade::Warning);
    }
}
