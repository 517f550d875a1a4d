//! What SageMaker refuses before anything runs: names, ranges and lengths.
//!
//! They are those of the service's own description (botocore's `service-2.json` of 2017-07-24), and the product of payload and
//! concurrency is the one of its documentation.

use std::collections::BTreeMap;

use super::{ModelSpec, TransformSpec};
use crate::domain::EndpointConfig;

/// The largest product of `MaxPayloadInMB` and `MaxConcurrentTransforms`, and the largest payload.
pub const MAX_PAYLOAD_IN_FLIGHT_MB: u32 = 100;
/// What a request carries at most where nobody says otherwise.
pub const DEFAULT_PAYLOAD_MB: u32 = 6;

const MAX_NAME: usize = 63;
const MAX_EXPERIMENT_NAME: usize = 120;
const MAX_ENVIRONMENT: usize = 16;
const MAX_ENVIRONMENT_KEY: usize = 1024;
const MAX_ENVIRONMENT_VALUE: usize = 10_240;
const MAX_TAGS: usize = 50;
const MAX_TAG_KEY: usize = 128;
const MAX_TAG_VALUE: usize = 256;
const MAX_MEDIA_TYPE: usize = 256;
const MAX_FILTER: usize = 63;
const MAX_KMS_KEY: usize = 2048;
const MAX_S3_URI: usize = 1024;
const MAX_IMAGE: usize = 255;
const MAX_INSTANCES: u32 = 100;
const MAX_TIMEOUT_S: u32 = 3600;
const MAX_RETRIES: u32 = 3;
/// `ProductionVariantContainerStartupHealthCheckTimeoutInSeconds` and `ProductionVariantModelDataDownloadTimeoutInSeconds`.
const ENDPOINT_TIMEOUT_S: (u32, u32) = (60, 3600);

/// What SageMaker would say against a payload, in MB, and so many requests at once; to go on after what they are called.
pub fn in_flight_problem(max_payload_mb: u32, max_concurrent: u32) -> Option<String> {
    let in_flight = u64::from(max_payload_mb) * u64::from(max_concurrent);
    (in_flight > u64::from(MAX_PAYLOAD_IN_FLIGHT_MB)).then(|| {
        format!(
            "is {max_payload_mb} MB × {max_concurrent} = {in_flight} MB, and SageMaker takes {MAX_PAYLOAD_IN_FLIGHT_MB}; lower one of them"
        )
    })
}

/// A value that SageMaker would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// As people call it: “job name”.
    pub field: &'static str,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// “The job name …”
impl std::fmt::Display for FieldProblem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.field, self.message)
    }
}

impl TransformSpec {
    /// What SageMaker would refuse; empty where it would not.
    pub fn problems(&self) -> Vec<FieldProblem> {
        let mut found = Problems::default();
        found.name("job name", &self.job_name);
        found.name("model name", &self.model_name);
        self.check_places(&mut found);
        self.check_resources(&mut found);
        self.check_requests(&mut found);
        found.environment(&self.environment);
        found.tags(&self.tags);
        self.check_experiment(&mut found);
        found.0
    }

    fn check_places(&self, found: &mut Problems) {
        let input = &self.input;
        found.length("input", &input.objects.address().to_string(), MAX_S3_URI);
        found.length("content type", &input.content_type, MAX_MEDIA_TYPE);
        let output = &self.output;
        found.length("output folder", &output.folder.to_string(), MAX_S3_URI);
        if let Some(accept) = &output.accept {
            found.length("accepted type", accept, MAX_MEDIA_TYPE);
        }
        found.kms_key("output KMS key", output.kms_key.as_deref());
        if let Some(capture) = &self.data_capture {
            found.length(
                "data capture folder",
                &capture.folder.to_string(),
                MAX_S3_URI,
            );
            found.kms_key("data capture KMS key", capture.kms_key.as_deref());
        }
        let filters = [
            ("input filter", &self.data_processing.input_filter),
            ("output filter", &self.data_processing.output_filter),
        ];
        for (field, filter) in filters {
            if let Some(filter) = filter {
                found.length(field, filter, MAX_FILTER);
            }
        }
    }

    fn check_resources(&self, found: &mut Problems) {
        if self.instance_type.is_empty() {
            found.add(
                "instance type",
                "is missing; ml.m5.xlarge is a usual one without a GPU",
            );
        }
        found.range("number of instances", self.instance_count, 1, MAX_INSTANCES);
        found.kms_key("volume KMS key", self.volume_kms_key.as_deref());
        found.ami_version(self.ami_version.as_deref());
    }

    fn check_requests(&self, found: &mut Problems) {
        let payload = self.max_payload_mb.unwrap_or(DEFAULT_PAYLOAD_MB);
        found.range("payload in MB", payload, 0, MAX_PAYLOAD_IN_FLIGHT_MB);
        let concurrent = self.max_concurrent.unwrap_or(0);
        if let Some(problem) = in_flight_problem(payload, concurrent) {
            found.add("payload times concurrency", problem);
        }
        if let Some(timeout) = self.model_client.timeout_s {
            found.range("time for a request in seconds", timeout, 1, MAX_TIMEOUT_S);
        }
        if let Some(retries) = self.model_client.max_retries {
            found.range("number of retries", retries, 0, MAX_RETRIES);
        }
    }

    fn check_experiment(&self, found: &mut Problems) {
        let Some(experiment) = &self.experiment else {
            return;
        };
        let names = [
            ("experiment name", &experiment.experiment),
            ("trial name", &experiment.trial),
            ("trial component name", &experiment.trial_component),
            ("experiment run name", &experiment.run),
        ];
        for (field, name) in names {
            if let Some(name) = name
                && !is_name(name, MAX_EXPERIMENT_NAME)
            {
                found.add(
                    field,
                    format!("“{name}” has something other than 1 to {MAX_EXPERIMENT_NAME} letters, digits and hyphens between them"),
                );
            }
        }
    }
}

impl ModelSpec {
    /// What SageMaker would refuse; empty where it would not.
    pub fn problems(&self) -> Vec<FieldProblem> {
        let mut found = Problems::default();
        found.name("model name", &self.name);
        if let Some(problem) = role_problem(&self.role) {
            found.add("role", problem);
        }
        if let Some(problem) = image_problem(&self.image) {
            found.add("container image", problem);
        }
        found.0.extend(self.problems_of_details());
        found.0
    }

    /// Those of archive, environment and tags: name, role and container have points of their own in a preflight.
    pub fn problems_of_details(&self) -> Vec<FieldProblem> {
        let mut found = Problems::default();
        found.length("model archive", &self.archive.to_string(), MAX_S3_URI);
        found.environment(&self.environment);
        found.tags(&self.tags);
        found.0
    }
}

impl EndpointConfig {
    /// What SageMaker would refuse, but for the name of the endpoint, and a model of the same name; empty where it would not.
    pub fn problems(&self) -> Vec<FieldProblem> {
        let mut found = Problems::default();
        if self.model_name != self.name {
            found.name("model name", &self.model_name);
        }
        found.range("number of instances", self.instance_count, 1, MAX_INSTANCES);
        found.ami_version(self.ami_version.as_deref());
        let (least, most) = ENDPOINT_TIMEOUT_S;
        for (field, seconds) in [
            ("time to start in seconds", self.startup_timeout_s),
            ("time for the download in seconds", self.download_timeout_s),
        ] {
            if let Some(seconds) = seconds {
                found.range(field, seconds, least, most);
            }
        }
        found.kms_key("volume KMS key", self.kms_key.as_deref());
        found.tags(&self.tags);
        found.0
    }
}

/// What is wrong with the name of a job or a model: `[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}`.
pub fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("is missing".to_owned());
    }
    if name.len() > MAX_NAME {
        return Some(format!(
            "“{name}” has {} characters, and SageMaker takes {MAX_NAME}; shorten it",
            name.len()
        ));
    }
    (!is_name(name, MAX_NAME)).then(|| {
        format!(
            "“{name}” cannot be one; letters a to z, digits, and hyphens between them are allowed"
        )
    })
}

/// What is wrong with the ARN of a role.
pub fn role_problem(role: &str) -> Option<String> {
    if role.is_empty() {
        return Some(
            "is missing; give the ARN of a role that SageMaker may take on, such as arn:aws:iam::123456789012:role/SageMaker".to_owned(),
        );
    }
    let is_arn = || {
        let rest = role.strip_prefix("arn:")?;
        let (partition, rest) = rest.split_once(":iam::")?;
        let (account, name) = rest.split_once(":role/")?;
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@-_/".contains(&byte);
        let fits = partition.starts_with("aws")
            && is_account
            && !name.is_empty()
            && name.bytes().all(is_name_byte);
        fits.then_some(())
    };
    is_arn().is_none().then(|| {
        format!(
            "“{role}” is no ARN of a role; it looks like arn:aws:iam::123456789012:role/SageMaker"
        )
    })
}

/// What is wrong with the URI of a container.
pub fn image_problem(image: &str) -> Option<String> {
    if image.is_empty() {
        return Some(
            "is missing; give the URI of a container in ECR that serves the model".to_owned(),
        );
    }
    if image.len() > MAX_IMAGE || image.contains(char::is_whitespace) {
        return Some(format!(
            "“{image}” cannot be one; it has at most {MAX_IMAGE} characters and no spaces"
        ));
    }
    None
}

/// A name for a job or a model: `stem`, made fit, and the time (UTC) to the millisecond, so that no other has it: `resnet50-20261121-140509123`.
pub fn dated_name(stem: &str, unix_ms: i64) -> String {
    let mut plain = String::new();
    for letter in stem.chars() {
        if letter.is_ascii_alphanumeric() {
            plain.push(letter.to_ascii_lowercase());
        } else if !plain.is_empty() && !plain.ends_with('-') {
            plain.push('-');
        }
    }
    let seconds = unix_ms.div_euclid(1000);
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let milli = unix_ms.rem_euclid(1000);
    let date = format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}{milli:03}");
    plain.truncate(MAX_NAME - date.len() - 1);
    match plain.trim_end_matches('-') {
        "" => format!("spotcheck-{date}"),
        plain => format!("{plain}-{date}"),
    }
}

/// Year, month and day of a number of days since 1970-01-01. Howard Hinnant, “chrono-Compatible Low-Level Date Algorithms”.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// `[a-zA-Z0-9](-*[a-zA-Z0-9])*`
fn is_name(name: &str, longest: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=longest).contains(&name.len())
        && name.bytes().all(fits)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// `[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*`
fn is_hyphenated(name: &str, longest: usize) -> bool {
    is_name(name, longest) && !name.contains("--")
}

#[derive(Default)]
struct Problems(Vec<FieldProblem>);

impl Problems {
    fn add(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push(FieldProblem {
            field,
            message: message.into(),
        });
    }

    fn name(&mut self, field: &'static str, name: &str) {
        if let Some(problem) = name_problem(name) {
            self.add(field, problem);
        }
    }

    fn range(&mut self, field: &'static str, value: u32, least: u32, most: u32) {
        if !(least..=most).contains(&value) {
            self.add(field, format!("is {value}, and must be {least} to {most}"));
        }
    }

    fn length(&mut self, field: &'static str, text: &str, longest: usize) {
        let count = text.chars().count();
        if count > longest {
            self.add(
                field,
                format!("has {count} characters, and SageMaker takes {longest}"),
            );
        }
    }

    fn kms_key(&mut self, field: &'static str, key: Option<&str>) {
        let Some(key) = key else { return };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":/_-".contains(&byte);
        if key.len() > MAX_KMS_KEY || !key.bytes().all(fits) {
            self.add(
                field,
                format!("“{key}” is neither the id, the ARN nor the alias of a key"),
            );
        }
    }

    fn ami_version(&mut self, version: Option<&str>) {
        if version.is_some_and(|version| !is_hyphenated(version, MAX_NAME)) {
            self.add(
                "AMI version",
                "has 1 to 63 letters, digits and single hyphens between them",
            );
        }
    }

    fn environment(&mut self, environment: &BTreeMap<String, String>) {
        let count = environment.len();
        if count > MAX_ENVIRONMENT {
            self.add(
                "environment",
                format!("has {count} entries, and SageMaker takes {MAX_ENVIRONMENT}"),
            );
        }
        for (key, value) in environment {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let begins_well = !key.starts_with(|first: char| first.is_ascii_digit());
            if key.is_empty()
                || key.len() > MAX_ENVIRONMENT_KEY
                || !begins_well
                || !key.bytes().all(fits)
            {
                self.add(
                    "environment",
                    format!("cannot have an entry “{key}”; letters, digits and _ are allowed, and no digit comes first"),
                );
            }
            if value.chars().count() > MAX_ENVIRONMENT_VALUE {
                self.add(
                    "environment",
                    format!("has more than {MAX_ENVIRONMENT_VALUE} characters in {key}"),
                );
            }
        }
    }

    fn tags(&mut self, tags: &BTreeMap<String, String>) {
        if tags.len() > MAX_TAGS {
            self.add(
                "tags",
                format!("are {}, and SageMaker takes {MAX_TAGS}", tags.len()),
            );
        }
        let fits =
            |letter: char| letter.is_alphanumeric() || letter == ' ' || "_.:/=+-@".contains(letter);
        for (key, value) in tags {
            let is_key = (1..=MAX_TAG_KEY).contains(&key.chars().count()) && key.chars().all(fits);
            let is_value = value.chars().count() <= MAX_TAG_VALUE && value.chars().all(fits);
            if !is_key || !is_value || key.starts_with("aws:") {
                self.add(
                    "tags",
                    format!(
                        "cannot have “{key}={value}”; a key has 1 to {MAX_TAG_KEY} characters and does not begin with aws:, a value at \
                         most {MAX_TAG_VALUE}, and both have letters, digits, spaces and _ . : / = + - @"
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Experiment, S3Address};

    fn fields(spec: &TransformSpec) -> Vec<&'static str> {
        spec.problems()
            .iter()
            .map(|problem| problem.field)
            .collect()
    }

    #[test]
    fn a_usual_job_has_no_problem() {
        let spec = TransformSpec::example();
        assert_eq!(spec.problems(), []);
    }

    #[test]
    fn what_sagemaker_would_refuse_is_found_by_its_field() {
        let check = |change: fn(&mut TransformSpec), expected: &[&str]| {
            let mut spec = TransformSpec::example();
            change(&mut spec);
            assert_eq!(fields(&spec), expected, "{:?}", spec.problems());
        };
        check(|spec| spec.job_name = "my job".to_owned(), &["job name"]);
        check(|spec| spec.job_name = "a".repeat(64), &["job name"]);
        check(|spec| spec.job_name = "a--b".to_owned(), &[]);
        check(|spec| spec.model_name = "-a".to_owned(), &["model name"]);
        check(|spec| spec.instance_type.clear(), &["instance type"]);
        check(|spec| spec.instance_count = 0, &["number of instances"]);
        check(|spec| spec.max_payload_mb = Some(101), &["payload in MB"]);
        check(
            |spec| (spec.max_payload_mb, spec.max_concurrent) = (Some(26), Some(4)),
            &["payload times concurrency"],
        );
        // Without a payload it is 6 MB.
        check(
            |spec| spec.max_concurrent = Some(17),
            &["payload times concurrency"],
        );
        check(
            |spec| (spec.max_payload_mb, spec.max_concurrent) = (Some(25), Some(4)),
            &[],
        );
        check(
            |spec| spec.model_client.timeout_s = Some(3601),
            &["time for a request in seconds"],
        );
        check(
            |spec| spec.model_client.max_retries = Some(4),
            &["number of retries"],
        );
        check(
            |spec| {
                for number in 0..17 {
                    spec.environment
                        .insert(format!("KEY_{number}"), String::new());
                }
            },
            &["environment"],
        );
        check(
            |spec| drop(spec.environment.insert("2ND".to_owned(), String::new())),
            &["environment"],
        );
        check(
            |spec| drop(spec.tags.insert("aws:mine".to_owned(), String::new())),
            &["tags"],
        );
        check(
            |spec| drop(spec.tags.insert("팀".to_owned(), "vision a".to_owned())),
            &[],
        );
        check(
            |spec| spec.volume_kms_key = Some("a key".to_owned()),
            &["volume KMS key"],
        );
        check(
            |spec| spec.ami_version = Some("al2--gpu".to_owned()),
            &["AMI version"],
        );
        check(
            |spec| spec.data_processing.input_filter = Some("$".repeat(64)),
            &["input filter"],
        );
        check(
            |spec| {
                spec.experiment = Some(Experiment {
                    trial: Some("a trial".to_owned()),
                    ..Experiment::default()
                });
            },
            &["trial name"],
        );
    }

    #[test]
    fn a_model_needs_a_role_and_an_image() {
        let spec = ModelSpec {
            name: "model".to_owned(),
            image: String::new(),
            archive: S3Address::new("bucket", "model.tar.gz"),
            role: "SageMaker".to_owned(),
            environment: BTreeMap::new(),
            tags: BTreeMap::new(),
        };
        let problems = spec.problems();
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, ["role", "container image"]);
        for role in [
            "arn:aws:iam::123456789012:role/SageMaker",
            "arn:aws-cn:iam::123456789012:role/service-role/Sage.Maker_1",
        ] {
            assert_eq!(role_problem(role), None);
        }
        for role in [
            "arn:aws:iam::12345678901:role/SageMaker",
            "arn:aws:iam::123456789012:user/alice",
            "arn:aws:iam::123456789012:role/",
        ] {
            assert!(role_problem(role).is_some(), "{role}");
        }
    }

    #[test]
    fn names_are_made_fit_and_dated() {
        // 2026-11-21 14:05:09 UTC
        let at = 1_795_269_909_007;
        for (stem, expected) in [
            ("ResNet-50 v2", "resnet-50-v2-20261121-140509007"),
            ("고양이", "spotcheck-20261121-140509007"),
            ("--", "spotcheck-20261121-140509007"),
        ] {
            let name = dated_name(stem, at);
            assert_eq!(name, expected);
        }
        let long = dated_name(&"model-".repeat(20), at);
        assert_eq!(name_problem(&long), None, "{long}");
        assert!(long.ends_with("-20261121-140509007"));
        // 2024-02-29 23:59:59 UTC, and before 1970.
        assert!(dated_name("a", 1_709_251_199_999).ends_with("-20240229-235959999"));
        assert!(dated_name("a", -1).ends_with("-19691231-235959999"));
    }
}
