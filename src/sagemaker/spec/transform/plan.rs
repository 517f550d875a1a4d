//! A planned job, before any of it exists, and Spotcheck's record of a job that it started.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::spec::JSON;
use super::{
    AssembleWith, EXAMPLE_CONTENT_TYPE, InputObjects, JobSpec, LINES_CONTENT_TYPE, ModelSpec, SageMakerAccess,
    SplitType, TransformInput, TransformSpec,
};
use crate::domain::{S3Access, S3Address, Sample};

/// A job, and what has to be created for it first.
#[derive(Debug, Clone, PartialEq)]
pub struct TransformPlan {
    pub sagemaker: SageMakerAccess,
    pub s3: S3Access,
    pub spec: TransformSpec,
    pub model: ModelSource,
    /// A local folder to upload as the input's prefix.
    pub input_folder: Option<PathBuf>,
    /// Local files to upload as the images of `manifest`, under the same names.
    pub input_files: Vec<Sample>,
    /// The common folder of `input_files`, if there is one.
    pub files_root: Option<PathBuf>,
    /// The images that the manifest of `spec.input` will list; `None` if that manifest exists already, or the input is
    /// a prefix.
    pub manifest: Option<ManifestPlan>,
    /// The user's price of one instance; `None` uses the price table.
    pub usd_per_hour: Option<f64>,
    /// Images per second on each instance, measured or given.
    pub images_per_s: Option<f64>,
    /// The number of records in split objects, if they were counted; S3 and SageMaker report only objects.
    pub inside: Option<ImagesInside>,
    /// The job whose failed images this one retries.
    pub retry_of: Option<String>,
}

/// Images inside files that are sent whole and split there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImagesInside {
    /// The number of images in all sent files.
    pub all: u64,
    pub chosen: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a plan has only one")]
pub enum ModelSource {
    /// A SageMaker model with the name in the job.
    Existing,
    /// Created for the job, from an archive in S3 or from a local one that is uploaded first.
    New { spec: ModelSpec, local_archive: Option<PathBuf> },
}

/// A list of images to write for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestPlan {
    /// The folder that contains all images, at any depth.
    pub folder: S3Address,
    /// Their keys relative to the folder.
    pub names: Vec<String>,
}

/// Presets for request batching in TensorFlow Serving, as environment variables of its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum TfsBatching {
    /// Small batches that wait at most a millisecond: for CPUs.
    Small,
    /// Large batches that wait up to 50 milliseconds to fill: for GPUs.
    Large,
}

impl TfsBatching {
    /// The environment variables that AWS's TensorFlow Serving container reads.
    pub fn environment(self) -> BTreeMap<String, String> {
        let (batch, timeout_micros, threads, enqueued) = match self {
            Self::Small => ("4", "1000", "4", "64"),
            Self::Large => ("64", "50000", "8", "256"),
        };
        [
            ("SAGEMAKER_TFS_ENABLE_BATCHING", "true"),
            ("SAGEMAKER_TFS_MAX_BATCH_SIZE", batch),
            ("SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS", timeout_micros),
            ("SAGEMAKER_TFS_NUM_BATCH_THREADS", threads),
            ("SAGEMAKER_TFS_MAX_ENQUEUED_BATCHES", enqueued),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }
}

impl ModelSource {
    /// The URI of the container; `None` for an existing SageMaker model.
    pub fn image(&self) -> Option<&str> {
        match self {
            Self::New { spec, .. } => Some(&spec.image),
            Self::Existing => None,
        }
    }
}

impl TransformSpec {
    /// A job over images, one per request, with JSON predictions in a subfolder of `output`.
    pub fn over_images(
        job_name: impl Into<String>,
        model_name: impl Into<String>,
        objects: InputObjects,
        output: &S3Address,
    ) -> Self {
        let job_name = job_name.into();
        let mut spec = Self { model_name: model_name.into(), ..Self::default() };
        spec.input.data_source.objects = objects;
        spec.output.folder = output_folder(output, &job_name);
        spec.job_name = job_name;
        spec
    }

    /// As [`TransformSpec::over_images`], for images in TFRecord files: one record per request, one output line each.
    pub fn over_records(self) -> Self {
        self.split(EXAMPLE_CONTENT_TYPE, SplitType::TFRecord)
    }

    /// As [`TransformSpec::over_images`], for lines with one image each: one line per request, one output line each.
    pub fn over_lines(self) -> Self {
        self.split(LINES_CONTENT_TYPE, SplitType::Line)
    }

    fn split(mut self, content_type: &str, split: SplitType) -> Self {
        self.input = TransformInput { content_type: content_type.to_owned(), split, ..self.input };
        self.output.assemble = AssembleWith::Line;
        self
    }

    /// As [`TransformSpec::over_images`], for JSON documents with any number of images: one document per request.
    pub fn over_documents(mut self) -> Self {
        JSON.clone_into(&mut self.input.content_type);
        self
    }

    #[cfg(test)]
    pub fn example() -> Self {
        let objects = InputObjects::Prefix(S3Address::new("bucket", "photos/"));
        Self::over_images("job", "model", objects, &S3Address::new("bucket", "out/"))
    }
}

/// A job's own folder below `base`, so that no job finds the outputs of another.
pub fn output_folder(base: &S3Address, job_name: &str) -> S3Address {
    base.below(&format!("{job_name}/"))
}

/// The folder below `base` for archive and manifest, outside the folder of the outputs.
pub fn support_folder(base: &S3Address, job_name: &str) -> S3Address {
    base.below(&format!("spotcheck-files/{job_name}/"))
}

pub fn archive_address(base: &S3Address, job_name: &str) -> S3Address {
    support_folder(base, job_name).below("model.tar.gz")
}

pub fn manifest_address(base: &S3Address, job_name: &str) -> S3Address {
    support_folder(base, job_name).below("manifest.json")
}

impl InputObjects {
    /// The prefix, or the manifest.
    pub fn address(&self) -> &S3Address {
        match self {
            Self::Prefix(address) | Self::Manifest(address) => address,
        }
    }
}

/// A job started from here, stored so that watching continues after a restart and clean-up knows what was created. The
/// file contains no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "S: JobSpec"))]
pub struct JobRecord<S = TransformSpec> {
    pub sagemaker: SageMakerAccess,
    pub s3: S3Access,
    /// When read from a file, its environment has only names.
    #[serde(deserialize_with = "S::from_record")]
    pub spec: S,
    /// Milliseconds since 1970-01-01 UTC.
    pub begun_ms: i64,
    /// Whether SageMaker accepted the job. Until then, resources may exist for a job that does not.
    pub is_started: bool,
    /// The model, if it was created for this job. When read from a file, its environment has only names.
    pub model: Option<ModelSpec>,
    pub input_objects: Option<u64>,
    /// The folder of the manifest, if one was written for the job: outputs are named relative to it, and the manifest
    /// may be deleted.
    #[serde(default)]
    pub manifest_folder: Option<S3Address>,
    /// What was created for the job and not yet deleted.
    pub left: Vec<Leftover>,
    pub usd_per_hour: Option<f64>,
    /// The images per second on one instance, once the job has completed.
    #[serde(default)]
    pub images_per_s: Option<f64>,
    /// The job whose failed images this one took up again.
    pub retry_of: Option<String>,
}

/// Something in AWS that was created for a job or an endpoint. Neither inputs nor outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
pub enum Leftover {
    /// The name of an endpoint.
    #[strum(to_string = "endpoint {0}")]
    Endpoint(String),
    /// The name of an endpoint configuration.
    #[strum(to_string = "configuration {0}")]
    Configuration(String),
    /// The name of a SageMaker model. It costs nothing, but an account has a limit on models.
    #[strum(to_string = "model {0}")]
    Model(String),
    /// `model.tar.gz`, or the `sourcedir.tar.gz` of a training job.
    #[strum(to_string = "archive {0}")]
    Archive(S3Address),
    #[strum(to_string = "manifest {0}")]
    Manifest(S3Address),
}

/// “model resnet50-20261121”, “archive s3://…”
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_has_separate_output_and_input_folders() {
        for base in ["out", "out/"] {
            let base = S3Address::new("bucket", base);
            let spec =
                TransformSpec::over_images("job-1", "model", TransformSpec::example().input.data_source.objects, &base);
            assert_eq!(spec.output.folder.to_string(), "s3://bucket/out/job-1/");
            let support = support_folder(&base, "job-1");
            assert_eq!(support.to_string(), "s3://bucket/out/spotcheck-files/job-1/");
        }
    }

    #[test]
    fn presets_fit_into_the_job_environment() {
        for preset in [TfsBatching::Small, TfsBatching::Large] {
            let spec = TransformSpec { environment: preset.environment(), ..TransformSpec::example() };
            assert_eq!(spec.problems(), []);
            assert_eq!(spec.environment["SAGEMAKER_TFS_ENABLE_BATCHING"], "true");
        }
    }
}
