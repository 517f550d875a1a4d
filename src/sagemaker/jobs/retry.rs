//! Sends the images of a job without an output again, and only those.

use std::collections::BTreeMap;

use super::manifest::manifest_of;
use crate::aws::{Aws, AwsErrorKind};
use crate::domain::{S3Access, S3Address, SampleUri, human_bytes};
use crate::sagemaker::JobError;
use crate::sagemaker::spec::transform::{
    DEFAULT_PAYLOAD_MB, DataSource, FailedObject, InputObjects, InstanceType, JobOutcome, JobRecord,
    MAX_PAYLOAD_IN_FLIGHT_MB, ManifestPlan, ModelSource, ModelSpec, PayloadSuggestion, RetryChoice, SageMakerAccess,
    SplitType, TransformInput, TransformJob, TransformOutput, TransformPlan, TransformSpec, TransformStatus,
    dated_name, manifest_address, needed_payload_mb, output_folder,
};
use crate::tasks::TaskControl;

#[derive(Debug, Clone)]
pub struct Retry<'r> {
    pub sagemaker: &'r SageMakerAccess,
    pub s3: &'r S3Access,
    pub job: &'r TransformJob,
    /// `None` if it was started on another computer.
    pub record: Option<&'r JobRecord>,
    pub outcome: &'r JobOutcome,
    pub choice: RetryChoice,
    pub changes: RetryChanges,
    /// Values for the environment variables of a model that is created again.
    pub model_environment: BTreeMap<String, String>,
}

/// The user's changes to the job's parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryChanges {
    pub max_payload_mb: Option<u32>,
    pub max_concurrent: Option<u32>,
    pub instance_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRetry {
    pub plan: TransformPlan,
    /// Notes about differences from the job.
    pub notes: Vec<String>,
    /// Why all images may fail again.
    pub doubt: Option<String>,
}

/// Plans a job for the failed images of another one: the same model, parameters and tags, but its own name and folder.
/// If the job's payload was too small for a failed image, a new one is chosen. If the model was deleted by a clean-up,
/// it is created again from the record.
///
/// # Errors
/// No image is left to send, another retry still runs for some of them, or the model no longer exists.
pub fn plan_retry(aws: &Aws, retry: &Retry<'_>, now_ms: i64, control: &TaskControl) -> Result<PlannedRetry, JobError> {
    let spec = &retry.job.spec;
    let chosen = retry.chosen()?;
    let doubt = retry.doubt();
    let sagemaker = aws.sagemaker(retry.sagemaker);
    let model = match RetryModel::find(aws, (retry.sagemaker, retry.s3), spec, retry.record, control)? {
        RetryModel::InSageMaker => ModelSource::Existing,
        RetryModel::InRecord(spec) => ModelSource::New { spec: retry.with_variables(spec)?, local_archive: None },
        RetryModel::Lost { why } => return Err(JobError::Plan(why)),
    };
    let (mut of_retry, manifest) = spec_of_retry(spec, &chosen, &retry.outcome.place, now_ms)?;
    let mut notes = Vec::new();
    match retry.outcome.failed.len() - chosen.len() {
        0 => {}
        1 => notes.push("The retry leaves out 1 image that the model rejected".to_owned()),
        refused => notes.push(format!("The retry leaves out {refused} images that the model rejected")),
    }
    // SageMaker does not return them with the job.
    match retry.record {
        Some(record) => of_retry.tags.clone_from(&record.spec.tags),
        None => match sagemaker.tags_of(&retry.job.arn, control) {
            Ok(tags) => of_retry.tags = tags,
            Err(error) if error.kind == AwsErrorKind::Cancelled => return Err(error.into()),
            Err(error) => notes.push(format!(
                "The job was started on another computer and its tags could not be read, so the new one has none: \
                {error}"
            )),
        },
    }
    let largest = chosen.iter().map(|failed| failed.size_bytes).max();
    notes.extend(retry.changes.apply(&mut of_retry, largest.unwrap_or_default()));
    let is_other_type = of_retry.resources.instance_type != spec.resources.instance_type;
    let plan = TransformPlan {
        sagemaker: retry.sagemaker.clone(),
        s3: retry.s3.clone(),
        spec: of_retry,
        model,
        input_folder: None,
        input_files: Vec::new(),
        files_root: None,
        manifest: Some(manifest),
        // The job's price is for its instance type.
        usd_per_hour: retry.record.and_then(|record| record.usd_per_hour).filter(|_| !is_other_type),
        images_per_s: None,
        inside: None,
        retry_of: Some(spec.job_name.clone()),
    };
    Ok(PlannedRetry { plan, notes, doubt })
}

impl RetryChanges {
    /// Notes a payload that differs from the job's without a request by the user: the failed images, of at most
    /// `largest_bytes`, did not fit.
    fn apply(&self, spec: &mut TransformSpec, largest_bytes: u64) -> Option<String> {
        if let Some(instance_type) = &self.instance_type {
            spec.resources.instance_type.clone_from(instance_type);
        }
        let of_job = spec.max_payload_mb.unwrap_or(DEFAULT_PAYLOAD_MB);
        let is_too_small = of_job > 0 && needed_payload_mb(largest_bytes) > u64::from(of_job);
        spec.max_payload_mb = self.max_payload_mb.or(spec.max_payload_mb);
        spec.max_concurrent = self.max_concurrent.or(spec.max_concurrent);
        // The sizes of records inside files are unknown.
        if !is_too_small || self.max_payload_mb.is_some() || spec.input.split != SplitType::None {
            return None;
        }
        let vcpus = InstanceType::parse(&spec.resources.instance_type).and_then(|instance| instance.vcpus());
        // If no payload is large enough, the preflight reports it.
        let suggestion = PayloadSuggestion::new(largest_bytes, vcpus)?;
        let payload = suggestion.max_payload_mb;
        spec.max_payload_mb = Some(payload);
        if self.max_concurrent.is_none() {
            let room = (MAX_PAYLOAD_IN_FLIGHT_MB / payload).max(1);
            let of_job = spec.max_concurrent.filter(|count| *count > 0);
            spec.max_concurrent = Some(of_job.unwrap_or(suggestion.max_concurrent).min(room));
        }
        Some(format!(
            "MaxPayloadInMB is {payload} instead of {of_job}, because the largest failed image has {}",
            human_bytes(largest_bytes)
        ))
    }
}

impl Retry<'_> {
    fn chosen(&self) -> Result<Vec<&FailedObject>, JobError> {
        if let Some(running) = self.outcome.retry_under_way() {
            return Err(JobError::Plan(format!(
                "Retry {} is still processing {} of these images; wait until it ends",
                running.job_name, running.under_way
            )));
        }
        let failed = &self.outcome.failed;
        let is_chosen = |failed: &&FailedObject| self.choice == RetryChoice::All || !failed.is_refused;
        let chosen: Vec<&FailedObject> = failed.iter().filter(is_chosen).collect();
        let job = &self.job.spec.job_name;
        match (chosen.is_empty(), failed.len()) {
            (false, _) => Ok(chosen),
            (true, 0) => Err(JobError::Plan(format!(
                "All images of job {job} have an output{}; nothing to retry",
                match self.outcome.retries_text() {
                    Some(retries) => format!(", {retries}"),
                    None => String::new(),
                }
            ))),
            (true, refused) => Err(JobError::Refused { job: job.clone(), refused }),
        }
    }

    /// A recorded model with the values of its environment variables, which are not recorded.
    fn with_variables(&self, model: ModelSpec) -> Result<ModelSpec, JobError> {
        match lacking_variables(&model, &self.model_environment, &self.job.spec.job_name) {
            Some(why) => Err(JobError::Plan(why)),
            None => Ok(ModelSpec { environment: self.model_environment.clone(), ..model }),
        }
    }

    /// A job that failed without a message about an image did not fail because of its images. Another instance type may
    /// help, or a later time if instances were unavailable.
    fn doubt(&self) -> Option<String> {
        let (job, outcome) = (self.job, self.outcome);
        let has_predicted = outcome.outputs > 0 || outcome.retries_text().is_some();
        let reason = job.failure.as_deref().unwrap_or("no reason reported");
        let is_of_container = job.status == TransformStatus::Failed
            && !reason.contains("CapacityError")
            && self.changes.instance_type.is_none();
        if has_predicted || outcome.failed.iter().any(|failed| failed.reason.is_some()) || !is_of_container {
            return None;
        }
        Some(format!(
            "Job {0} failed before it predicted any image ({reason}), so a retry would send all {1} images to the \
            same container and bill them again. Check the log of the container: spotcheck transform logs {0}",
            job.spec.job_name,
            outcome.failed.len()
        ))
    }
}

/// The model that a retry can use.
pub(super) enum RetryModel {
    InSageMaker,
    /// It was deleted, but can be created again from the record, except for the values of its environment variables.
    InRecord(ModelSpec),
    /// It was deleted, and cannot be created again.
    Lost {
        why: String,
    },
}

/// Requests the values of a recorded model's environment variables; `None` if all are given.
fn lacking_variables(model: &ModelSpec, given: &BTreeMap<String, String>, job: &str) -> Option<String> {
    let names = model.environment.keys().filter(|name| !given.contains_key(*name));
    let lacking: Vec<&str> = names.map(String::as_str).collect();
    if lacking.is_empty() {
        return None;
    }
    Some(format!(
        "Model {} was deleted, and the values of its variables ({}) are not stored on this computer. Retry with them: \
         spotcheck transform retry {job} --model-env {}=…",
        model.name,
        lacking.join(", "),
        lacking.join("=… --model-env ")
    ))
}

impl RetryModel {
    /// Why a retry is not possible, or not without further values.
    pub(super) fn obstacle(self, job: &str) -> Option<String> {
        match self {
            Self::InSageMaker => None,
            Self::InRecord(model) => lacking_variables(&model, &BTreeMap::new(), job),
            Self::Lost { why } => Some(why),
        }
    }

    pub(super) fn find(
        aws: &Aws,
        (sagemaker, s3): (&SageMakerAccess, &S3Access),
        spec: &TransformSpec,
        record: Option<&JobRecord>,
        control: &TaskControl,
    ) -> Result<Self, JobError> {
        let (job, name) = (&spec.job_name, &spec.model_name);
        match aws.sagemaker(sagemaker).describe_model(name, control) {
            Ok(None) => {}
            // The model exists, but is of a kind unknown to Spotcheck.
            Err(error) if error.kind == AwsErrorKind::Unsupported => return Ok(Self::InSageMaker),
            there => return Ok(there.map(|_| Self::InSageMaker)?),
        }
        let Some(model) = record.and_then(|record| record.model.clone()) else {
            return Ok(Self::Lost {
                why: format!(
                    "Job {job} cannot be retried: model {name} was deleted, and its settings are not recorded on \
                     this computer. Start a new job for the images"
                ),
            });
        };
        let S3Address { bucket, prefix } = &model.archive;
        match aws.s3(s3).object(bucket, prefix, Some(control)) {
            Err(error) if error.kind == AwsErrorKind::NotFound => Ok(Self::Lost {
                why: format!(
                    "Job {job} cannot be retried: model {name} and its archive were deleted. Start a new job for the \
                     images"
                ),
            }),
            Err(error) if error.kind == AwsErrorKind::Cancelled => Err(JobError::Cancelled),
            // The preflight reports an archive that cannot be read.
            _ => Ok(Self::InRecord(model)),
        }
    }
}

fn spec_of_retry(
    spec: &TransformSpec,
    chosen: &[&FailedObject],
    place: &S3Address,
    now_ms: i64,
) -> Result<(TransformSpec, ManifestPlan), JobError> {
    let stem = stem_of(&spec.job_name);
    let job_name = dated_name(&format!("{stem}-retry"), now_ms);
    let base = base_of_outputs(spec);
    let uris: Vec<SampleUri> = chosen.iter().map(|failed| place.uri_of(&failed.key)).collect();
    // The manifest keeps the base folder of the first job, so that images keep their names.
    let manifest = manifest_of(&uris, place)?;
    let address = manifest_address(&base, &job_name);
    let of_retry = TransformSpec {
        input: TransformInput {
            data_source: DataSource { objects: InputObjects::Manifest(address) },
            ..spec.input.clone()
        },
        output: TransformOutput { folder: output_folder(&base, &job_name), ..spec.output.clone() },
        job_name,
        ..spec.clone()
    };
    Ok((of_retry, manifest))
}

/// The common prefix of the names of a job's retries.
pub fn retry_prefix(job_name: &str) -> String {
    format!("{}-retry-", stem_of(job_name))
}

/// Whether a job has the name, model, folder and manifest of a retry of the first one. Retries of another job with the
/// same model and output folder look the same.
pub fn looks_like_retry(first: &TransformSpec, other: &TransformSpec) -> bool {
    let base = base_of_outputs(first);
    let name = &other.job_name;
    name.starts_with(&retry_prefix(&first.job_name))
        && stem_of(name) == stem_of(&first.job_name)
        && other.model_name == first.model_name
        && other.output.folder.as_folder() == output_folder(&base, name)
        && other.input.data_source.objects == InputObjects::Manifest(manifest_address(&base, name))
}

/// The parent of a job's folder, or the folder itself if it is not named like the job.
fn base_of_outputs(spec: &TransformSpec) -> S3Address {
    let folder = spec.output.folder.as_folder();
    match folder.parent() {
        Some(parent) if folder.last_part() == spec.job_name => parent,
        _ => folder,
    }
}

/// The name without its date and retry suffix, so that names do not grow.
fn stem_of(job_name: &str) -> &str {
    let is_digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let undated = job_name
        .rsplit_once('-')
        .filter(|(_, time)| is_digits(time, 9))
        .and_then(|(rest, _)| rest.rsplit_once('-'))
        .filter(|(_, date)| is_digits(date, 8));
    let stem = undated.map_or(job_name, |(stem, _)| stem);
    stem.strip_suffix("-retry").unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_MS: i64 = 1_795_269_909_007;

    fn failed(keys: &[&str]) -> Vec<FailedObject> {
        let failed = |key: &&str| FailedObject {
            key: (*key).to_owned(),
            output_key: None,
            reason: None,
            is_refused: false,
            size_bytes: 1,
        };
        keys.iter().map(failed).collect()
    }

    fn retried(spec: &TransformSpec, keys: &[&str]) -> (TransformSpec, ManifestPlan) {
        let failed = failed(keys);
        let chosen: Vec<&FailedObject> = failed.iter().collect();
        let place = S3Address::new("bucket", "photos/");
        spec_of_retry(spec, &chosen, &place, AT_MS).unwrap()
    }

    #[test]
    fn retry_has_its_own_name_folder_and_manifest() {
        let spec = TransformSpec { max_concurrent: Some(4), ..TransformSpec::example() };
        let (retry, manifest) = retried(&spec, &["photos/a/1.jpg", "photos/a/2.jpg"]);
        assert_eq!(retry.job_name, "job-retry-20261121-140509007");
        assert_eq!(retry.output.folder.to_string(), "s3://bucket/out/job-retry-20261121-140509007/");
        assert_eq!(
            retry.input.data_source.objects.address().to_string(),
            "s3://bucket/out/spotcheck-files/job-retry-20261121-140509007/manifest.json"
        );
        assert_eq!((retry.max_concurrent, &retry.model_name), (Some(4), &spec.model_name));
        assert_eq!(manifest.folder.to_string(), "s3://bucket/photos/");
        assert_eq!(manifest.names, ["a/1.jpg", "a/2.jpg"]);

        let (again, manifest) = retried(&retry, &["photos/a/2.jpg"]);
        assert_eq!(again.job_name, retry.job_name);
        assert_eq!(again.output.folder, retry.output.folder);
        assert_eq!(manifest.names, ["a/2.jpg"]);
    }

    #[test]
    fn retries_are_recognized() {
        let first = TransformSpec::example();
        let (retry, _) = retried(&first, &["photos/1.jpg"]);
        let (again, _) = retried(&retry, &["photos/1.jpg"]);
        assert!(looks_like_retry(&first, &retry));
        assert!(looks_like_retry(&first, &again));
        assert!(!looks_like_retry(&first, &first));
        for change in [
            |spec: &mut TransformSpec| spec.model_name = "another".to_owned(),
            |spec: &mut TransformSpec| spec.output.folder = S3Address::new("bucket", "elsewhere/"),
            |spec: &mut TransformSpec| {
                spec.input.data_source.objects = InputObjects::Prefix(S3Address::new("bucket", "photos/"));
            },
        ] {
            let mut other = retry.clone();
            change(&mut other);
            assert!(!looks_like_retry(&first, &other), "{other:?}");
        }
    }

    /// Checks the payload and concurrency of a retry, and whether a change is reported.
    fn check_payload(
        of_job: (Option<u32>, Option<u32>),
        wanted: (Option<u32>, Option<u32>),
        largest_bytes: u64,
        expected: (Option<u32>, Option<u32>, bool),
    ) {
        let mut spec = TransformSpec { max_payload_mb: of_job.0, max_concurrent: of_job.1, ..TransformSpec::example() };
        let changes = RetryChanges { max_payload_mb: wanted.0, max_concurrent: wanted.1, instance_type: None };
        let is_told = changes.apply(&mut spec, largest_bytes).is_some();
        let found = (spec.max_payload_mb, spec.max_concurrent, is_told);
        assert_eq!(found, expected, "{of_job:?}, {wanted:?}, {largest_bytes}");
    }

    #[test]
    fn too_small_payload_is_raised_on_retry() {
        let nothing = (None, None);
        let small = 5_000_000;
        let large = 12_000_000;
        check_payload((Some(6), Some(4)), nothing, small, (Some(6), Some(4), false));
        check_payload((Some(6), Some(16)), nothing, large, (Some(12), Some(8), true));
        check_payload((Some(6), Some(2)), nothing, large, (Some(12), Some(2), true));
        check_payload(nothing, nothing, large, (Some(12), Some(4), true));
        check_payload(nothing, nothing, small, (None, None, false));
        // Chunks have no size limit.
        check_payload((Some(0), None), nothing, large, (Some(0), None, false));
        // A value from the user is not changed.
        check_payload((Some(6), None), (Some(7), None), large, (Some(7), None, false));
        check_payload((Some(6), Some(2)), (None, Some(3)), large, (Some(12), Some(3), true));
        // No payload is large enough.
        check_payload((Some(6), None), nothing, 200_000_000, (Some(6), None, false));
    }

    #[test]
    fn retry_names_do_not_grow() {
        for (name, stem) in [
            ("job", "job"),
            ("resnet-50-20261121-140509007", "resnet-50"),
            ("resnet-50-retry-20261121-140509007", "resnet-50"),
            ("a-1", "a-1"),
        ] {
            assert_eq!(stem_of(name), stem);
        }
    }
}
