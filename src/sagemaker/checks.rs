//! Checks of a plan before it costs money, for jobs and endpoints.

use super::JobError;
use super::spec::transform::{
    Check, CheckGrade, CheckPoint, FieldProblem, InstanceType, ModelSource, Preflight, Price, PriceTable, cost_usd,
    human_usd,
};
use crate::aws::AwsErrorKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    SageMaker,
    S3,
}

#[derive(Default)]
pub struct Checks {
    pub found: Vec<Check>,
    /// The services that do not respond, or not with these credentials.
    pub outages: Vec<Service>,
}

impl Checks {
    pub fn ok(&mut self, point: CheckPoint, finding: impl Into<String>) {
        self.add(point, CheckGrade::Ok, finding, "");
    }

    pub fn warning(&mut self, point: CheckPoint, finding: impl Into<String>, advice: impl Into<String>) {
        self.add(point, CheckGrade::Warning, finding, advice);
    }

    pub fn problem(&mut self, point: CheckPoint, finding: impl Into<String>, advice: impl Into<String>) {
        self.add(point, CheckGrade::Problem, finding, advice);
    }

    pub fn add(&mut self, point: CheckPoint, grade: CheckGrade, finding: impl Into<String>, advice: impl Into<String>) {
        self.found.push(Check { point, grade, finding: finding.into(), advice: advice.into() });
    }

    /// Reports a failed request. An outage is reported once: later requests fail for the same reason, and no advice
    /// about their objects would help.
    pub fn failed(&mut self, point: CheckPoint, service: Service, error: &JobError, advice: &str) {
        if !error.aws_kind().is_some_and(AwsErrorKind::is_outage) {
            return self.problem(point, error.to_string(), advice);
        }
        if !self.outages.contains(&service) {
            self.outages.push(service);
            self.problem(point, error.to_string(), "");
        }
    }

    /// Names, ranges and lengths: the problems of the resource, and those of a new model. Role and container are checked
    /// separately.
    pub fn limits(&mut self, mut problems: Vec<FieldProblem>, model: &ModelSource) {
        if let ModelSource::New { spec, .. } = model {
            // Both can have the same tags.
            let more = spec.problems_of_details().into_iter().filter(|problem| !problems.contains(problem));
            problems.extend(more.collect::<Vec<_>>());
        }
        if problems.is_empty() {
            self.ok(CheckPoint::Limits, "All are within SageMaker's limits");
        }
        for problem in problems {
            self.problem(CheckPoint::Limits, format!("The {problem}"), "");
        }
    }

    /// The instance type with this name, or a problem.
    pub fn known_instance<'n>(&mut self, name: &'n str) -> Option<InstanceType<'n>> {
        let instance = InstanceType::parse(name);
        if instance.is_none() {
            self.problem(
                CheckPoint::Instance,
                format!("“{name}” is not an instance type"),
                "Instance types look like ml.m5.xlarge",
            );
        }
        instance
    }

    /// Checks the price of instances by their type and number. Returns that of one, as given or from the table.
    pub fn hourly_cost(
        &mut self,
        given: Option<f64>,
        prices: &PriceTable,
        (name, count): (&str, u32),
        region: Option<&str>,
    ) -> Option<f64> {
        let Some(KnownPrice { usd_per_hour, source }) = KnownPrice::find(given, prices, name, region) else {
            self.warning(
                CheckPoint::Cost,
                format!("The price of {name} is unknown, so the cost is unknown"),
                "Enter its price per hour (on the command line: --hourly-price)",
            );
            return None;
        };
        let hour = cost_usd(usd_per_hour, count, 3600.0);
        self.ok(
            CheckPoint::Cost,
            format!(
                "{} per hour or {} per day for {count} × {name} ({} per instance-hour, {source})",
                human_usd(hour),
                human_usd(hour * 24.0),
                human_usd(usd_per_hour)
            ),
        );
        Some(usd_per_hour)
    }

    pub fn into_preflight(mut self) -> Preflight {
        self.found.sort_by_key(|check| check.point);
        Preflight { checks: self.found, ..Preflight::default() }
    }
}

/// The hourly price of an instance, from the user or the price table.
pub(super) struct KnownPrice {
    pub usd_per_hour: f64,
    pub source: String,
}

impl KnownPrice {
    pub(super) fn find(
        given: Option<f64>,
        prices: &PriceTable,
        instance_type: &str,
        region: Option<&str>,
    ) -> Option<Self> {
        if let Some(usd_per_hour) = given {
            return Some(Self { usd_per_hour, source: "as given".to_owned() });
        }
        let Price { usd_per_hour, source, date, .. } = prices.find(instance_type, region)?;
        Some(Self { usd_per_hour: *usd_per_hour, source: format!("of {date}, from {source}") })
    }
}
