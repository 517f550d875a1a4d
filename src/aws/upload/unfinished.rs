//! Records of unfinished multipart uploads started from here, so that they can be resumed or aborted after the program
//! was killed.
//!
//! Only recorded uploads are ever resumed or aborted: those of other programs are left alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::aws::{Sha256Digest, UnfinishedUpload, hexadecimal};
use crate::domain::S3Place;

/// An unfinished upload, in its own file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unfinished {
    /// The server, if it is not AWS.
    endpoint: Option<String>,
    bucket: String,
    key: String,
    upload_id: String,
    sha256: Sha256Digest,
    pub part_bytes: u64,
    /// The `ETag`, with quotes, of each part that has arrived; from 1.
    pub parts: BTreeMap<u32, String>,
}

impl Unfinished {
    pub(super) fn new(target: &S3Place, upload: &UnfinishedUpload, sha256: Sha256Digest, part_bytes: u64) -> Self {
        Self {
            endpoint: target.access.endpoint.clone(),
            bucket: upload.bucket.clone(),
            key: upload.key.clone(),
            upload_id: upload.id.clone(),
            sha256,
            part_bytes,
            parts: BTreeMap::new(),
        }
    }

    pub(super) fn upload(&self) -> UnfinishedUpload {
        UnfinishedUpload { bucket: self.bucket.clone(), key: self.key.clone(), id: self.upload_id.clone() }
    }

    /// Whether it is for this content and part size.
    pub(super) fn is_of(&self, sha256: &Sha256Digest, part_bytes: u64) -> bool {
        self.sha256 == *sha256 && self.part_bytes == part_bytes
    }
}

/// The folder of the records.
pub(super) struct Journal<'f> {
    folder: &'f Path,
    target: &'f S3Place,
}

impl<'f> Journal<'f> {
    pub(super) fn new(folder: &'f Path, target: &'f S3Place) -> Self {
        Self { folder, target }
    }

    pub(super) fn target(&self) -> &'f S3Place {
        self.target
    }

    pub(super) fn find(&self, key: &str) -> Option<Unfinished> {
        let path = self.path_of(key);
        let text = std::fs::read_to_string(&path).ok()?;
        match serde_json::from_str::<Unfinished>(&text) {
            Ok(found) if found.key == key => Some(found),
            Ok(_) => None,
            Err(error) => {
                log::warn!("could not parse {}: {error}", path.display());
                None
            }
        }
    }

    pub(super) fn write(&self, unfinished: &Unfinished) -> std::io::Result<()> {
        std::fs::create_dir_all(self.folder)?;
        let file = tempfile::NamedTempFile::new_in(self.folder)?;
        serde_json::to_writer(&file, unfinished)?;
        file.persist(self.path_of(&unfinished.key))?;
        Ok(())
    }

    pub(super) fn remove(&self, key: &str) {
        let path = self.path_of(key);
        if let Err(error) = std::fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            log::warn!("could not delete {}: {error}", path.display());
        }
    }

    /// The number of unfinished uploads to this bucket.
    pub(super) fn count(&self) -> usize {
        let Ok(entries) = std::fs::read_dir(self.folder) else {
            return 0;
        };
        let is_of_bucket = |entry: &std::fs::DirEntry| {
            let text = std::fs::read_to_string(entry.path()).ok()?;
            let unfinished: Unfinished = serde_json::from_str(&text).ok()?;
            Some(unfinished.bucket == self.target.address.bucket && unfinished.endpoint == self.target.access.endpoint)
        };
        entries.filter_map(Result::ok).filter(|entry| is_of_bucket(entry) == Some(true)).count()
    }

    fn path_of(&self, key: &str) -> PathBuf {
        let endpoint = self.target.access.endpoint.as_deref().unwrap_or_default();
        let bucket = &self.target.address.bucket;
        let digest = Sha256::digest(format!("{endpoint}\n{bucket}\n{key}"));
        let name = hexadecimal(&digest.into());
        self.folder.join(format!("{name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::S3Address;

    #[test]
    fn unfinished_upload_is_found_by_key_and_bucket() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("uploads");
        let target = S3Place::new(S3Address::new("bucket", "photos/"));
        let upload = UnfinishedUpload {
            bucket: "bucket".to_owned(),
            key: "photos/고양이.tfrecord".to_owned(),
            id: "id".to_owned(),
        };
        let journal = Journal::new(&folder, &target);
        assert_eq!(journal.count(), 0);
        let mut unfinished = Unfinished::new(&target, &upload, [7; 32], 8);
        unfinished.parts.insert(1, "\"etag\"".to_owned());
        journal.write(&unfinished).unwrap();
        assert_eq!(journal.find(&upload.key).as_ref(), Some(&unfinished));
        assert_eq!(unfinished.upload(), upload);
        assert!(unfinished.is_of(&[7; 32], 8) && !unfinished.is_of(&[8; 32], 8));
        assert_eq!(journal.find("photos/other"), None);
        let other = S3Place::new(S3Address::new("other", "photos/"));
        assert_eq!(Journal::new(&folder, &other).find(&upload.key), None);
        assert_eq!(journal.count(), 1);
        journal.remove(&upload.key);
        assert_eq!(journal.count(), 0);
    }
}
