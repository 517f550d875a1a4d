//! Sends a file without replacing anything unintended.

use std::path::Path;

use super::content::{ContentError, read_small};
use super::planning::why_not_same;
use crate::aws::{AwsError, AwsErrorKind, Content, NewObject, S3, Sha256Digest, WriteCondition};
use crate::domain::S3Address;
use crate::tasks::TaskControl;

/// The number of attempts of a write whose condition failed because of a deleted object.
const MAX_TRIES: usize = 3;

/// A file and its target.
pub(super) struct Job<'a> {
    pub path: &'a Path,
    pub size_bytes: u64,
    pub address: S3Address,
    /// The version of the object that may be replaced; `None` if none may be.
    pub replaces: Option<Replaces>,
}

/// An object that the user agreed to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replaces {
    pub etag: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Sent,
    /// Another program wrote the same content in the meantime.
    Same,
}

/// Why a file was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("{0}")]
    Content(ContentError),
    #[error("{0}")]
    Aws(AwsError),
    /// A different object exists, and stays.
    #[error("{0}")]
    Conflict(String),
    #[error("canceled")]
    Cancelled,
}

impl From<ContentError> for SendError {
    fn from(error: ContentError) -> Self {
        match error {
            ContentError::Cancelled => Self::Cancelled,
            error => Self::Content(error),
        }
    }
}

impl From<AwsError> for SendError {
    fn from(error: AwsError) -> Self {
        match error.kind {
            AwsErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Aws(error),
        }
    }
}

impl Job<'_> {
    pub(super) fn object<'j>(&'j self, sha256: &'j Sha256Digest) -> NewObject<'j> {
        NewObject {
            bucket: &self.address.bucket,
            key: &self.address.prefix,
            content_type: content_type(&self.address.prefix),
            sha256,
        }
    }

    fn condition(&self) -> WriteCondition {
        match &self.replaces {
            None => WriteCondition::Absent,
            Some(Replaces { etag: Some(etag) }) => WriteCondition::Unchanged(etag.clone()),
            Some(Replaces { etag: None }) => WriteCondition::Any,
        }
    }

    pub(super) fn send_small(&self, s3: &S3, control: &TaskControl) -> Result<Sent, SendError> {
        let (bytes, sha256) = read_small(self.path)?;
        let content = Content::from(bytes);
        self.write(s3, &sha256, control, |condition| s3.put(&self.object(&sha256), &content, condition, Some(control)))
    }

    /// Lets `write` write the object, provided that no existing object must be kept.
    pub(super) fn write(
        &self,
        s3: &S3,
        sha256: &Sha256Digest,
        control: &TaskControl,
        write: impl Fn(&WriteCondition) -> Result<(), AwsError>,
    ) -> Result<Sent, SendError> {
        let mut condition = self.condition();
        let mut tries = 0;
        loop {
            let error = match write(&condition) {
                Ok(()) => return Ok(Sent::Sent),
                Err(error) => error,
            };
            tries += 1;
            let is_refused = match error.kind {
                AwsErrorKind::Changed => true,
                // The object to replace does not exist any more.
                AwsErrorKind::NotFound => matches!(condition, WriteCondition::Unchanged(_)),
                AwsErrorKind::Unsupported => condition != WriteCondition::Any,
                _ => false,
            };
            if !is_refused || tries == MAX_TRIES {
                return Err(error.into());
            }
            // The object may have been written although the response was lost.
            let there = self.existing(s3, sha256, control)?;
            condition = match there {
                ExistingObject::Same => return Ok(Sent::Same),
                // Without support for conditions, the check right before the write must suffice.
                ExistingObject::Nothing if error.kind == AwsErrorKind::Unsupported => WriteCondition::Any,
                ExistingObject::Nothing => WriteCondition::Absent,
                ExistingObject::Other { etag, .. }
                    if error.kind == AwsErrorKind::Unsupported && self.may_replace(etag.as_deref()) =>
                {
                    WriteCondition::Any
                }
                ExistingObject::Other { why, .. } => return Err(SendError::Conflict(why)),
            };
        }
    }

    fn may_replace(&self, etag: Option<&str>) -> bool {
        self.replaces.as_ref().is_some_and(|replaces| replaces.etag.as_deref() == etag)
    }

    /// The current object at the key.
    pub(super) fn existing(
        &self,
        s3: &S3,
        sha256: &Sha256Digest,
        control: &TaskControl,
    ) -> Result<ExistingObject, SendError> {
        let S3Address { bucket, prefix } = &self.address;
        let stored = match s3.stored(bucket, prefix, Some(control)) {
            Ok(stored) => stored,
            Err(error) if error.kind == AwsErrorKind::NotFound => {
                return Ok(ExistingObject::Nothing);
            }
            Err(error) if error.kind == AwsErrorKind::AccessDenied => {
                return Ok(ExistingObject::Other { etag: None, why: format!("an object exists. {error}") });
            }
            Err(error) => return Err(error.into()),
        };
        if stored.sha256 == Some(*sha256) {
            return Ok(ExistingObject::Same);
        }
        Ok(ExistingObject::Other {
            why: format!("{}; it was created or changed after the comparison", why_not_same(&stored)),
            etag: stored.etag,
        })
    }
}

/// The existing object at a file's key.
pub(super) enum ExistingObject {
    Nothing,
    Same,
    Other { etag: Option<String>, why: String },
}

/// The MIME type by name, for browsers and other programs that read the objects.
fn content_type(name: &str) -> &'static str {
    let extension = Path::new(name).extension();
    let extension = extension.and_then(|extension| extension.to_str());
    match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
        "jpg" | "jpeg" | "jpe" | "jfif" => "image/jpeg",
        "png" => "image/png",
        "webp" => "image/webp",
        "bmp" | "dib" => "image/bmp",
        "tif" | "tiff" => "image/tiff",
        "gif" => "image/gif",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_a_content_type() {
        for (name, expected) in [
            ("a/b.JPG", "image/jpeg"),
            ("고양이.tiff", "image/tiff"),
            ("train.tfrecord", "application/octet-stream"),
            ("data-00000-of-00001", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), expected);
        }
    }
}
