//! A job as a person puts it together, before anything of it exists.

use std::collections::BTreeMap;
use std::path::PathBuf;

use strum::{IntoStaticStr, VariantArray};

use super::{
    AssembleWith, EXAMPLE_CONTENT_TYPE, InputObjects, LINES_CONTENT_TYPE, ModelSpec, SageMakerAccess, SplitType,
    TransformInput, TransformOutput, TransformSpec,
};
use crate::domain::{S3Access, S3Address, Sample};

/// A job, and what has to be made for it first.
#[derive(Debug, Clone, PartialEq)]
pub struct TransformPlan {
    pub sagemaker: SageMakerAccess,
    pub s3: S3Access,
    pub spec: TransformSpec,
    pub model: ModelSource,
    /// A local folder that becomes the input's prefix first.
    pub input_folder: Option<PathBuf>,
    /// Local files that become the images of `manifest` first, under the same names.
    pub input_files: Vec<Sample>,
    /// The folder that `input_files` are all images of, if they are.
    pub files_root: Option<PathBuf>,
    /// The images that the manifest of `spec.input` is to list; `None` if that manifest is there already, or the
    /// input is a prefix.
    pub manifest: Option<ManifestPlan>,
    /// The price of one instance by the user; `None` uses the price table.
    pub usd_per_hour: Option<f64>,
    /// Images a second on each instance, as measured or given.
    pub images_per_s: Option<f64>,
    /// The number of records in the objects that are split, if they were counted; S3 and SageMaker report only objects.
    pub inside: Option<ImagesInside>,
    /// The job whose failed images this one takes up again.
    pub retry_of: Option<String>,
}

/// Images inside of files that are sent as a whole, and split there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImagesInside {
    /// The number of images in all files that are sent.
    pub all: u64,
    /// The number of chosen images.
    pub chosen: u64,
}

/// The source of a job's model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// SageMaker knows it by the name in the job.
    Existing,
    /// Created for the job, from an archive in S3 or from a local one that is uploaded first.
    New { spec: ModelSpec, local_archive: Option<PathBuf> },
}

/// A list of images that is written for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestPlan {
    /// The folder that contains all images, at any depth.
    pub folder: S3Address,
    /// Their keys behind the folder's.
    pub names: Vec<String>,
}

/// Presets for the batching of requests in TensorFlow Serving, as variables of its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum TfsBatching {
    /// Small batches that wait at most a millisecond: for CPUs.
    Small,
    /// Large batches that wait up to 50 milliseconds to fill: for GPUs.
    Large,
}

impl TfsBatching {
    /// The variables that AWS's TensorFlow Serving container reads.
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
    /// The URI of the container; `None` of a model that SageMaker has.
    pub fn image(&self) -> Option<&str> {
        match self {
            Self::New { spec, .. } => Some(&spec.image),
            Self::Existing => None,
        }
    }
}

impl TransformSpec {
    /// A job over images, one a request, with predictions in JSON below `output`, in a folder of its own.
    pub fn over_images(
        job_name: impl Into<String>,
        model_name: impl Into<String>,
        objects: InputObjects,
        output: &S3Address,
    ) -> Self {
        let job_name = job_name.into();
        let mut spec = Self { model_name: model_name.into(), ..Self::default() };
        spec.input.objects = objects;
        spec.output.folder = output_folder(output, &job_name);
        spec.job_name = job_name;
        spec
    }

    /// As [`TransformSpec::over_images`], for images inside TFRecord files: a record a request, a line of the output
    /// each.
    pub fn over_records(self) -> Self {
        Self {
            input: TransformInput {
                content_type: EXAMPLE_CONTENT_TYPE.to_owned(),
                split: SplitType::TFRecord,
                ..self.input
            },
            output: TransformOutput { assemble: AssembleWith::Line, ..self.output },
            ..self
        }
    }

    /// As [`TransformSpec::over_images`], for lines with an image each: a line a request, a line of the output each.
    pub fn over_lines(self) -> Self {
        Self {
            input: TransformInput { content_type: LINES_CONTENT_TYPE.to_owned(), split: SplitType::Line, ..self.input },
            output: TransformOutput { assemble: AssembleWith::Line, ..self.output },
            ..self
        }
    }

    #[cfg(test)]
    pub(crate) fn example() -> Self {
        let objects = InputObjects::Prefix(S3Address::new("bucket", "photos/"));
        Self::over_images("job", "model", objects, &S3Address::new("bucket", "out/"))
    }
}

/// The folder of a job's own below `base`, so that no job meets the outputs of another.
pub fn output_folder(base: &S3Address, job_name: &str) -> S3Address {
    let base = base.as_folder();
    S3Address::new(&base.bucket, format!("{}{job_name}/", base.prefix))
}

/// The folder below `base` for what a job needs beside its input: archive and manifest. Not inside the folder of its
/// outputs.
pub fn support_folder(base: &S3Address, job_name: &str) -> S3Address {
    let base = base.as_folder();
    S3Address::new(&base.bucket, format!("{}spotcheck-files/{job_name}/", base.prefix))
}

/// The address of the archive of a job's model.
pub fn archive_address(base: &S3Address, job_name: &str) -> S3Address {
    let folder = support_folder(base, job_name);
    S3Address::new(&folder.bucket, format!("{}model.tar.gz", folder.prefix))
}

/// The address of the manifest of a job.
pub fn manifest_address(base: &S3Address, job_name: &str) -> S3Address {
    let folder = support_folder(base, job_name);
    S3Address::new(&folder.bucket, format!("{}manifest.json", folder.prefix))
}

impl InputObjects {
    /// The prefix, or the manifest.
    pub fn address(&self) -> &S3Address {
        match self {
            Self::Prefix(address) | Self::Manifest(address) => address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_a_folder_of_its_own_for_outputs_and_another_for_what_it_needs() {
        for base in ["out", "out/"] {
            let base = S3Address::new("bucket", base);
            let spec = TransformSpec::over_images("job-1", "model", TransformSpec::example().input.objects, &base);
            assert_eq!(spec.output.folder.to_string(), "s3://bucket/out/job-1/");
            let support = support_folder(&base, "job-1");
            assert_eq!(support.to_string(), "s3://bucket/out/spotcheck-files/job-1/");
        }
    }

    #[test]
    fn presets_fit_into_the_environment_of_a_job() {
        for preset in [TfsBatching::Small, TfsBatching::Large] {
            let spec = TransformSpec { environment: preset.environment(), ..TransformSpec::example() };
            assert_eq!(spec.problems(), []);
            assert_eq!(spec.environment["SAGEMAKER_TFS_ENABLE_BATCHING"], "true");
        }
    }
}
