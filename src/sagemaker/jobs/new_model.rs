//! The new model of a job or an endpoint, for the window and the CLI.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::aws::{AwsErrorKind, S3};
use crate::domain::S3Address;
use crate::sagemaker::JobError;
use crate::sagemaker::package::{peek, peek_file};
use crate::sagemaker::spec::transform::{ArchiveContent, ModelSource, ModelSpec, Network, default_image};
use crate::tasks::{Cancelled, TaskControl};

/// The part of an archive in S3 that is read to recognize its content.
const LOOKED_AT: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewModel {
    pub name: String,
    /// The ARN of the container's role.
    pub role: String,
    /// The container; `None` uses AWS's container for the archive's content.
    pub image: Option<String>,
    pub archive: NewArchive,
    pub environment: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
    pub network: Network,
}

/// The source of a new model's archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewArchive {
    /// An archive in S3.
    There(S3Address),
    /// A local file, which is uploaded first.
    Here {
        path: PathBuf,
        to: S3Address,
        /// `None` reads it from the file.
        content: Option<ArchiveContent>,
    },
}

impl NewModel {
    /// The model for a plan. `region` and `instance_type` determine its default container.
    ///
    /// # Errors
    /// The task was canceled.
    pub fn source(
        self,
        s3: &S3,
        region: &str,
        instance_type: &str,
        control: &TaskControl,
    ) -> Result<ModelSource, JobError> {
        let image = if let Some(image) = self.image {
            image
        } else {
            // An archive with unknown content is treated as ours; the preflight warns about it.
            let content = self.archive.content(s3, control)?;
            let content = content.unwrap_or(ArchiveContent::Onnx);
            default_image(region, instance_type, content)
        };
        let (archive, local_archive) = match self.archive {
            NewArchive::There(address) => (address, None),
            NewArchive::Here { path, to, .. } => (to, Some(path)),
        };
        Ok(ModelSource::New {
            spec: ModelSpec {
                name: self.name,
                image,
                archive,
                role: self.role,
                environment: self.environment,
                tags: self.tags,
                network: self.network,
            },
            local_archive,
        })
    }
}

impl NewArchive {
    fn content(&self, s3: &S3, control: &TaskControl) -> Result<Option<ArchiveContent>, Cancelled> {
        match self {
            Self::There(address) => content_in_s3(s3, address, control),
            Self::Here { content: Some(content), .. } => Ok(Some(*content)),
            Self::Here { path, .. } => Ok(peek_file(path).ok().flatten()),
        }
    }
}

/// The content of an archive in S3, judging by its first part. `None` also if it cannot be read, which the preflight
/// reports.
///
/// # Errors
/// The task was canceled.
pub(super) fn content_in_s3(
    s3: &S3,
    address: &S3Address,
    control: &TaskControl,
) -> Result<Option<ArchiveContent>, Cancelled> {
    let begin = s3.read_range(&address.bucket, &address.prefix, 0..LOOKED_AT, None, Some(control));
    match begin {
        Ok(begin) => Ok(peek(&*begin)),
        Err(error) if error.kind == AwsErrorKind::Cancelled => Err(Cancelled),
        Err(_) => Ok(None),
    }
}
