//! The base of a job's output names, and the possible inputs of outputs.

use super::JobError;
use super::inputs::manifest_at;
use crate::aws::{AwsErrorKind, S3};
use crate::domain::S3Address;
use crate::sagemaker::spec::transform::{InputObjects, JobRecord, TransformSpec};
use crate::tasks::TaskControl;

/// The prefix of a job's input keys that its output keys omit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedFrom {
    /// The job read everything with this prefix.
    Prefix(S3Address),
    /// The job read the objects in a manifest.
    Manifest {
        /// The prefix in the manifest.
        folder: S3Address,
        /// The full keys in the manifest, in byte order; `None` if it was deleted after the job.
        keys: Option<Vec<String>>,
        /// Whether Spotcheck wrote the manifest, so that its folder is the base of image names.
        is_ours: bool,
    },
}

impl NamedFrom {
    /// The base folder of a job's output names. If its manifest was deleted, the job's record has the folder.
    ///
    /// # Errors
    /// The manifest cannot be read, and its folder is unknown: the images of the outputs could only be guessed.
    pub fn from_job(
        s3: &S3,
        spec: &TransformSpec,
        record: Option<&JobRecord>,
        control: &TaskControl,
    ) -> Result<Self, JobError> {
        let address = match &spec.input.objects {
            InputObjects::Prefix(prefix) => return Ok(Self::Prefix(prefix.clone())),
            InputObjects::Manifest(address) => address,
        };
        let folder = record.and_then(|record| record.manifest_folder.clone());
        let is_ours = folder.is_some();
        match (manifest_at(s3, address, control), folder) {
            (Ok(manifest), _) => {
                let folder = manifest.folder;
                let names = manifest.names.iter();
                let mut keys: Vec<String> = names.map(|name| format!("{}{name}", folder.prefix)).collect();
                keys.sort_unstable();
                keys.dedup();
                Ok(Self::Manifest { folder, keys: Some(keys), is_ours })
            }
            (Err(JobError::Cancelled), _) => Err(JobError::Cancelled),
            (Err(_), Some(folder)) => Ok(Self::Manifest { folder, keys: None, is_ours }),
            (Err(error), None) if error.aws_kind() == Some(AwsErrorKind::NotFound) => Err(JobError::Manifest(format!(
                "The manifest of job {} no longer exists, and the job was not started on this computer, so the \
                    base folder of its output names is unknown. Open the images of that folder, and the outputs by \
                    their address, {}. The manifest was {address}",
                spec.job_name, spec.output.folder
            ))),
            (Err(error), None) => Err(error),
        }
    }

    /// The prefix, or the folder of the manifest.
    pub fn place(&self) -> &S3Address {
        match self {
            Self::Prefix(prefix) => prefix,
            Self::Manifest { folder, .. } => folder,
        }
    }
}
