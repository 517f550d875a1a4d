//! The images of a job that have no output are sent again, and only those.

use super::JobError;
use super::manifest::manifest_of;
use crate::aws::{Aws, AwsErrorKind};
use crate::domain::{
    FailedObject, InputObjects, JobOutcome, JobRecord, ManifestPlan, ModelSource, S3Access,
    S3Address, SageMakerAccess, SampleUri, TransformInput, TransformOutput, TransformPlan,
    TransformSpec, dated_name, output_folder, support_folder,
};
use crate::tasks::TaskControl;

/// Which images are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryChoice {
    /// All that have no output.
    Missing,
    /// Those of them that the data-log gives no reason for: the job ended before it came to them.
    NotRefused,
}

/// A job whose images are to be sent again.
#[derive(Debug, Clone, Copy)]
pub struct Retry<'r> {
    pub sagemaker: &'r SageMakerAccess,
    pub s3: &'r S3Access,
    /// As the job ran.
    pub spec: &'r TransformSpec,
    /// `None` where it was started elsewhere.
    pub record: Option<&'r JobRecord>,
    pub outcome: &'r JobOutcome,
    pub choice: RetryChoice,
}

/// The plan of a job over the failed images of another one: the same model, the same parameters, a name and a folder of its own. The
/// model is made again where clean-up has deleted it meanwhile and the record tells how.
///
/// # Errors
/// No image is left to send, or there is no model any more.
pub fn plan_retry(
    aws: &Aws,
    retry: Retry<'_>,
    now_ms: i64,
    control: &TaskControl,
) -> Result<TransformPlan, JobError> {
    let spec = retry.spec;
    let chosen = retry.chosen()?;
    let sagemaker = aws.sagemaker(retry.sagemaker);
    let there = match sagemaker.describe_model(&spec.model_name, Some(control)) {
        // It is there, and of a kind that only SageMaker needs to understand.
        Err(error) if error.kind == AwsErrorKind::Unsupported => true,
        there => there?.is_some(),
    };
    let model = match (there, retry.record.and_then(|record| record.model.clone())) {
        (true, _) => ModelSource::Existing,
        (false, Some(spec)) => ModelSource::New {
            spec,
            local_archive: None,
        },
        (false, None) => {
            return Err(JobError::Plan(format!(
                "The model {} was deleted, and nothing here says how it was made; start a job of a new model over the failed images",
                spec.model_name
            )));
        }
    };
    let (mut of_retry, manifest) = spec_of_retry(spec, &chosen, &retry.outcome.place, now_ms)?;
    if let Some(record) = retry.record {
        // SageMaker does not tell them with the job.
        of_retry.tags.clone_from(&record.spec.tags);
    }
    Ok(TransformPlan {
        sagemaker: retry.sagemaker.clone(),
        s3: retry.s3.clone(),
        spec: of_retry,
        model,
        input_folder: None,
        input_files: Vec::new(),
        files_root: None,
        manifest: Some(manifest),
        usd_per_hour: retry.record.and_then(|record| record.usd_per_hour),
        images_per_s: None,
        inside: None,
        retry_of: Some(spec.job_name.clone()),
    })
}

impl Retry<'_> {
    fn chosen(&self) -> Result<Vec<&FailedObject>, JobError> {
        let failed = &self.outcome.failed;
        let is_chosen =
            |failed: &&FailedObject| self.choice == RetryChoice::Missing || failed.reason.is_none();
        let chosen: Vec<&FailedObject> = failed.iter().filter(is_chosen).collect();
        let job = &self.spec.job_name;
        match (chosen.is_empty(), failed.len()) {
            (false, _) => Ok(chosen),
            (true, 0) => Err(JobError::Plan(format!(
                "All images of the job {job} have an output; there is nothing to send again"
            ))),
            (true, refused) => Err(JobError::Plan(format!(
                "The {refused} images of the job {job} without an output were all refused, for reasons that its status names; there is \
                 nothing else to send again"
            ))),
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
    let uris: Vec<SampleUri> = chosen
        .iter()
        .map(|failed| place.uri_of(&failed.key))
        .collect();
    // In the folder of the first job, so that the same image has the same name in both.
    let manifest = manifest_of(&uris, place)?;
    let address = S3Address::new(
        &base.bucket,
        format!("{}manifest.json", support_folder(&base, &job_name).prefix),
    );
    let of_retry = TransformSpec {
        input: TransformInput {
            objects: InputObjects::Manifest(address),
            ..spec.input.clone()
        },
        output: TransformOutput {
            folder: output_folder(&base, &job_name),
            ..spec.output.clone()
        },
        job_name,
        ..spec.clone()
    };
    Ok((of_retry, manifest))
}

/// The folder that the folder of a job lies in; its own where it is not named like the job.
fn base_of_outputs(spec: &TransformSpec) -> S3Address {
    let folder = spec.output.folder.as_folder();
    match folder.parent() {
        Some(parent) if folder.last_part() == spec.job_name => parent,
        _ => folder,
    }
}

/// The name without its date and without the word for a retry, so that names do not grow.
fn stem_of(job_name: &str) -> &str {
    let is_digits = |part: &str, count: usize| {
        part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit())
    };
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
            reason: None,
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
    fn a_retry_has_a_name_a_folder_and_a_manifest_of_its_own_and_is_else_the_same() {
        let spec = TransformSpec {
            max_concurrent: Some(4),
            ..TransformSpec::example()
        };
        let (retry, manifest) = retried(&spec, &["photos/a/1.jpg", "photos/a/2.jpg"]);
        assert_eq!(retry.job_name, "job-retry-20261121-140509007");
        assert_eq!(
            retry.output.folder.to_string(),
            "s3://bucket/out/job-retry-20261121-140509007/"
        );
        assert_eq!(
            retry.input.objects.address().to_string(),
            "s3://bucket/out/spotcheck-files/job-retry-20261121-140509007/manifest.json"
        );
        assert_eq!(
            (retry.max_concurrent, &retry.model_name),
            (Some(4), &spec.model_name)
        );
        assert_eq!(manifest.folder.to_string(), "s3://bucket/photos/");
        assert_eq!(manifest.names, ["a/1.jpg", "a/2.jpg"]);

        let (again, manifest) = retried(&retry, &["photos/a/2.jpg"]);
        assert_eq!(again.job_name, retry.job_name);
        assert_eq!(again.output.folder, retry.output.folder);
        assert_eq!(manifest.names, ["a/2.jpg"]);
    }

    #[test]
    fn names_do_not_grow_with_each_retry() {
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
