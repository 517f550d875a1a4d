//! The model that is made for a job, as the window and the command line ask for it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::JobError;
use crate::aws::{AwsErrorKind, S3};
use crate::domain::{ArchiveContent, ModelSource, ModelSpec, S3Address, default_image};
use crate::remote::package::{peek, peek_file};
use crate::tasks::{Cancelled, TaskControl};

/// The part of an archive in S3 that is read to recognise its content.
const LOOKED_AT: u64 = 1 << 20;

/// A model that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewModel {
    pub name: String,
    /// The ARN that the container runs as.
    pub role: String,
    /// The container; `None` takes the one of AWS for what the archive holds.
    pub image: Option<String>,
    pub archive: NewArchive,
    pub environment: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
}

/// Where the archive of a new model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewArchive {
    /// An archive in S3.
    There(S3Address),
    /// A local file, which is uploaded first.
    Here {
        path: PathBuf,
        to: S3Address,
        /// Where that is known already; otherwise the file is looked into.
        content: Option<ArchiveContent>,
    },
}

impl NewModel {
    /// What a plan says of it. `region` and `instance_type` are those that it will run in and on.
    ///
    /// # Errors
    /// The task was cancelled.
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
            // An archive with unknown content is taken for ours; the preflight warns about it.
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
            },
            local_archive,
        })
    }
}

impl NewArchive {
    fn content(&self, s3: &S3, control: &TaskControl) -> Result<Option<ArchiveContent>, Cancelled> {
        match self {
            Self::There(address) => content_in_s3(s3, address, control),
            Self::Here {
                content: Some(content),
                ..
            } => Ok(Some(*content)),
            Self::Here { path, .. } => Ok(peek_file(path).ok().flatten()),
        }
    }
}

/// What an archive in S3 holds, as far as its beginning tells. `None` also where it cannot be read, for which the
/// preflight has a point.
///
/// # Errors
/// The task was cancelled.
pub(super) fn content_in_s3(
    s3: &S3,
    address: &S3Address,
    control: &TaskControl,
) -> Result<Option<ArchiveContent>, Cancelled> {
    let begin = s3.read_range(
        &address.bucket,
        &address.prefix,
        0..LOOKED_AT,
        None,
        Some(control),
    );
    match begin {
        Ok(begin) => Ok(peek(&*begin)),
        Err(error) if error.kind == AwsErrorKind::Cancelled => Err(Cancelled),
        Err(_) => Ok(None),
    }
}
