//! SageMaker's limits for several kinds of requests: names, ranges and lengths. Those of jobs are next to the job's
//! spec.
//!
//! The numbers are from the service's own description (botocore's `service-2.json` of 2017-07-24); the limit on payload
//! times concurrency is from its documentation.

use std::collections::BTreeMap;

use super::ModelSpec;
use crate::domain::{Utc, shortened};

/// The largest product of `MaxPayloadInMB` and `MaxConcurrentTransforms`, and the largest payload.
pub const MAX_PAYLOAD_IN_FLIGHT_MB: u32 = 100;
/// SageMaker's default for the largest request.
pub const DEFAULT_PAYLOAD_MB: u32 = 6;

const MAX_NAME: usize = 63;
/// Of a model and of a training job.
pub const MAX_ENVIRONMENT: usize = 100;
const MAX_ENVIRONMENT_KEY: usize = 1024;
pub(super) const MAX_ENVIRONMENT_VALUE: usize = 10_240;
/// The characters of a name that a message shows.
const SHOWN_NAME: usize = 40;
const MAX_TAGS: usize = 50;
const MAX_TAG_KEY: usize = 128;
const MAX_TAG_VALUE: usize = 256;
const MAX_KMS_KEY: usize = 2048;
pub const MAX_S3_URI: usize = 1024;
const MAX_IMAGE: usize = 255;
pub const MAX_INSTANCES: u32 = 100;

/// Why SageMaker would reject a payload in MB with this many parallel requests, to follow their names.
pub fn in_flight_problem(max_payload_mb: u32, max_concurrent: u32) -> Option<String> {
    let in_flight = u64::from(max_payload_mb) * u64::from(max_concurrent);
    (in_flight > u64::from(MAX_PAYLOAD_IN_FLIGHT_MB)).then(|| {
        format!(
            "is {max_payload_mb} MB × {max_concurrent} = {in_flight} MB; the limit is {MAX_PAYLOAD_IN_FLIGHT_MB} MB. \
             Lower one of them"
        )
    })
}

/// A value that SageMaker would reject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field's name on screen: “job name”.
    pub field: &'static str,
    /// To follow the field: “is missing; …”.
    pub message: String,
}

/// “job name is missing; …”
impl std::fmt::Display for FieldProblem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.field, self.message)
    }
}

impl ModelSpec {
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

    /// The problems of the archive, environment and tags: a preflight lists name, role and container separately.
    pub fn problems_of_details(&self) -> Vec<FieldProblem> {
        let mut found = Problems::default();
        found.length("model archive", &self.archive.to_string(), MAX_S3_URI);
        found.environment(&self.environment, MAX_ENVIRONMENT, MAX_ENVIRONMENT_VALUE);
        found.tags(&self.tags);
        self.network.check(&mut found);
        found.0
    }
}

/// Why the name of a job or model is not valid: `[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}`.
pub fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("is missing".to_owned());
    }
    if name.len() > MAX_NAME {
        return Some(format!("“{name}” has {} characters; the limit is {MAX_NAME}. Shorten it", name.len()));
    }
    (!is_name(name, MAX_NAME))
        .then(|| format!("“{name}” is not valid: use letters a to z, digits, and hyphens between them"))
}

/// Why the ARN of a role is not valid.
pub fn role_problem(role: &str) -> Option<String> {
    if role.is_empty() {
        return Some(
            "is missing; enter the ARN of a role that SageMaker can assume, for example \
             arn:aws:iam::123456789012:role/SageMaker"
                .to_owned(),
        );
    }
    let is_arn = || {
        let rest = role.strip_prefix("arn:")?;
        let (partition, rest) = rest.split_once(":iam::")?;
        let (account, name) = rest.split_once(":role/")?;
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@-_/".contains(&byte);
        let fits = partition.starts_with("aws") && is_account && !name.is_empty() && name.bytes().all(is_name_byte);
        fits.then_some(())
    };
    is_arn()
        .is_none()
        .then(|| format!("“{role}” is not the ARN of a role, for example arn:aws:iam::123456789012:role/SageMaker"))
}

/// Why the URI of a container is not valid.
pub fn image_problem(image: &str) -> Option<String> {
    if image.is_empty() {
        return Some("is missing; enter the URI of a container in ECR that serves the model".to_owned());
    }
    if image.len() > MAX_IMAGE || image.contains(char::is_whitespace) {
        return Some(format!("“{image}” is not valid: a URI has at most {MAX_IMAGE} characters and no spaces"));
    }
    None
}

/// A unique name for a job or a model: `stem` in allowed characters, and the time (UTC) to the millisecond:
/// `resnet50-20261121-140509123`.
pub fn dated_name(stem: &str, unix_ms: i64) -> String {
    let mut plain = String::new();
    for letter in stem.chars() {
        if letter.is_ascii_alphanumeric() {
            plain.push(letter.to_ascii_lowercase());
        } else if !plain.is_empty() && !plain.ends_with('-') {
            plain.push('-');
        }
    }
    let date = Utc::from_ms(unix_ms).compact();
    plain.truncate(MAX_NAME - date.len() - 1);
    match plain.trim_end_matches('-') {
        "" => format!("spotcheck-{date}"),
        plain => format!("{plain}-{date}"),
    }
}

/// `[a-zA-Z0-9](-*[a-zA-Z0-9])*`
pub(super) fn is_name(name: &str, longest: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=longest).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-') && !name.ends_with('-')
}

/// `[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*`
fn is_hyphenated(name: &str, longest: usize) -> bool {
    is_name(name, longest) && !name.contains("--")
}

/// Collects the problems of a request's fields.
#[derive(Default)]
pub struct Problems(pub Vec<FieldProblem>);

impl Problems {
    pub fn add(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push(FieldProblem { field, message: message.into() });
    }

    pub fn name(&mut self, field: &'static str, name: &str) {
        if let Some(problem) = name_problem(name) {
            self.add(field, problem);
        }
    }

    pub fn range(&mut self, field: &'static str, value: impl Into<Option<u32>>, least: u32, most: u32) {
        if let Some(value) = value.into().filter(|value| !(least..=most).contains(value)) {
            let range = if most == u32::MAX { format!("at least {least}") } else { format!("{least} to {most}") };
            self.add(field, format!("is {value}; it must be {range}"));
        }
    }

    pub fn length(&mut self, field: &'static str, text: &str, longest: usize) {
        let count = text.chars().count();
        if count > longest {
            self.add(field, format!("has {count} characters; the limit is {longest}"));
        }
    }

    /// The lengths of a name and of its value.
    pub fn entry(&mut self, field: &'static str, (name, longest_name): (&str, usize), (value, longest): (&str, usize)) {
        for (what, text, longest) in [("name", name, longest_name), ("value", value, longest)] {
            let count = text.chars().count();
            if count > longest {
                let name = shortened(name, SHOWN_NAME);
                self.add(field, format!("“{name}” has a {what} of {count} characters; the limit is {longest}"));
            }
        }
    }

    pub fn count(&mut self, field: &'static str, count: usize, most: usize) {
        if count > most {
            self.add(field, format!("are {count}; the limit is {most}"));
        }
    }

    pub fn kms_key(&mut self, field: &'static str, key: Option<&str>) {
        let Some(key) = key else { return };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":/_-".contains(&byte);
        if key.len() > MAX_KMS_KEY || !key.bytes().all(fits) {
            self.add(field, format!("“{key}” is not the id, ARN or alias of a key"));
        }
    }

    pub fn ami_version(&mut self, version: Option<&str>) {
        if version.is_some_and(|version| !is_hyphenated(version, MAX_NAME)) {
            self.add("AMI version", "is not valid: use 1 to 63 letters, digits and single inner hyphens");
        }
    }

    pub fn environment(&mut self, environment: &BTreeMap<String, String>, most: usize, longest: usize) {
        let count = environment.len();
        if count > most {
            self.add("environment", format!("has {count} variables; the limit is {most}"));
        }
        for (key, value) in environment {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let begins_well = !key.starts_with(|first: char| first.is_ascii_digit());
            if key.is_empty() || !begins_well || !key.bytes().all(fits) {
                self.add(
                    "environment",
                    format!("cannot have the variable “{key}”: use letters, digits and _, and no digit at the start"),
                );
            }
            self.entry("environment variable", (key, MAX_ENVIRONMENT_KEY), (value, longest));
        }
    }

    pub fn tags(&mut self, tags: &BTreeMap<String, String>) {
        self.count("tags", tags.len(), MAX_TAGS);
        let fits = |letter: char| letter.is_alphanumeric() || letter == ' ' || "_.:/=+-@".contains(letter);
        for (key, value) in tags {
            let is_key = (1..=MAX_TAG_KEY).contains(&key.chars().count()) && key.chars().all(fits);
            let is_value = value.chars().count() <= MAX_TAG_VALUE && value.chars().all(fits);
            if !is_key || !is_value || key.starts_with("aws:") {
                self.add(
                    "tags",
                    format!(
                        "cannot have “{key}={value}”: a key has 1 to {MAX_TAG_KEY} characters and does not begin with \
                         aws:, a value has at most {MAX_TAG_VALUE}; both consist of letters, digits, spaces and \
                         _ . : / = + - @"
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::S3Address;

    #[test]
    fn model_needs_a_role_and_an_image() {
        let spec = ModelSpec {
            name: "model".to_owned(),
            image: String::new(),
            archive: S3Address::new("bucket", "model.tar.gz"),
            role: "SageMaker".to_owned(),
            environment: BTreeMap::new(),
            tags: BTreeMap::new(),
            network: crate::sagemaker::spec::transform::Network::default(),
        };
        let problems = spec.problems();
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, ["role", "container image"]);
        for role in
            ["arn:aws:iam::123456789012:role/SageMaker", "arn:aws-cn:iam::123456789012:role/service-role/Sage.Maker_1"]
        {
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
    fn names_are_sanitized_and_dated() {
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
