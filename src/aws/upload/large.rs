//! Sends a large file in parts, with several workers, and records unfinished multipart uploads, so that they can be
//! resumed or aborted after the program was killed.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::content::Large;
use super::sending::{ExistingObject, Job, SendError, Sent};
use crate::aws::{AwsError, AwsErrorKind, Content, S3, SentPart, Sha256Digest, UnfinishedUpload};
use crate::domain::{S3Place, hexadecimal};
use crate::local_file;
use crate::tasks::TaskControl;

/// The shared state of all uploads of a transfer.
pub(super) struct Sender<'a> {
    pub s3: &'a S3,
    pub journal: Journal<'a>,
    pub control: &'a TaskControl,
}

/// A large file whose parts are being sent.
pub(super) struct LargeUpload<'a> {
    job: Job<'a>,
    content: Large,
    upload: UnfinishedUpload,
    state: Mutex<State>,
    part_ended: Condvar,
}

struct State {
    /// Parts that no thread has taken yet.
    waiting: VecDeque<u32>,
    in_flight: usize,
    unfinished: Unfinished,
    failure: Option<SendError>,
}

impl<'a> LargeUpload<'a> {
    /// Reads the file for its checksums, and begins the upload or resumes an earlier one.
    pub(super) fn begin(job: Job<'a>, sender: &Sender<'_>) -> Result<Self, SendError> {
        let content = Large::open(job.path, sender.control)?;
        let unfinished = match sender.begun_before(&job, &content)? {
            Some(unfinished) => unfinished,
            None => sender.begin(&job, &content)?,
        };
        let missing = (1..=content.part_count()).filter(|number| !unfinished.parts.contains_key(number));
        let there: u64 = unfinished.parts.keys().map(|number| content.part_len(*number)).sum();
        sender.control.add_done(there);
        Ok(Self {
            upload: unfinished.upload(),
            state: Mutex::new(State { waiting: missing.collect(), in_flight: 0, unfinished, failure: None }),
            part_ended: Condvar::new(),
            job,
            content,
        })
    }

    /// Takes a part that no thread has taken yet; the caller sends it.
    pub(super) fn take_part(&self) -> Option<u32> {
        let mut state = self.state.lock();
        let number = state.waiting.pop_front()?;
        state.in_flight += 1;
        Some(number)
    }

    pub(super) fn send_part(&self, number: u32, sender: &Sender<'_>) {
        let sent = self.try_send_part(number, sender);
        let mut state = self.state.lock();
        state.in_flight -= 1;
        match sent {
            Ok(part) => {
                state.unfinished.parts.insert(number, part.etag);
                sender.write_down(&state.unfinished);
                sender.control.add_done(self.content.part_len(number));
            }
            Err(error) => {
                state.waiting.clear();
                state.failure.get_or_insert(error);
            }
        }
        drop(state);
        self.part_ended.notify_all();
    }

    fn try_send_part(&self, number: u32, sender: &Sender<'_>) -> Result<SentPart, SendError> {
        let bytes = self.content.read_part(self.job.path, number)?;
        let part = sender.s3.put_part(
            &self.upload,
            number,
            &Content::from(bytes),
            self.content.crc32_of(number),
            Some(sender.control),
        )?;
        Ok(part)
    }

    /// Waits for the parts that others send, and creates the object. If that fails, the parts are deleted, or kept if a
    /// later attempt can resume with them.
    pub(super) fn finish(&self, sender: &Sender<'_>) -> Result<Sent, SendError> {
        let mut state = self.state.lock();
        self.part_ended.wait_while(&mut state, |state| state.in_flight > 0);
        let finished = match state.failure.take() {
            Some(error) => Err(error),
            None => self.make_object(&state.unfinished, sender),
        };
        let done: u64 = state.unfinished.parts.keys().map(|number| self.content.part_len(*number)).sum();
        drop(state);
        let rest = self.job.size_bytes.saturating_sub(done);
        let key = &self.upload.key;
        match finished {
            Ok(Sent::Sent) => {
                sender.journal.remove(key);
                Ok(Sent::Sent)
            }
            // Another upload was faster: our parts are useless.
            Ok(Sent::Same) => {
                sender.discard(&self.upload);
                Ok(Sent::Same)
            }
            Err(SendError::Aws(error)) if is_retryable(error.kind) => {
                sender.control.add_done(rest);
                let message = format!(
                    "{} Its uploaded parts are kept; upload the file again to resume",
                    with_full_stop(&error.message)
                );
                Err(SendError::Aws(AwsError { message, ..error }))
            }
            Err(error) => {
                sender.discard(&self.upload);
                sender.control.add_done(rest);
                Err(error)
            }
        }
    }

    fn make_object(&self, unfinished: &Unfinished, sender: &Sender<'_>) -> Result<Sent, SendError> {
        self.content.must_be_unchanged()?;
        let parts: BTreeMap<u32, SentPart> = unfinished
            .parts
            .iter()
            .map(|(number, etag)| {
                let part = SentPart { etag: etag.clone(), crc32: self.content.crc32_of(*number) };
                (*number, part)
            })
            .collect();
        let (s3, control) = (sender.s3, sender.control);
        let sha256 = &self.content.sha256;
        let written = self
            .job
            .write(s3, sha256, control, |condition| s3.finish_parts(&self.upload, &parts, condition, Some(control)));
        // The object may have been created although the response was lost; then the upload no longer exists.
        if let Err(SendError::Aws(error)) = &written
            && matches!(error.kind, AwsErrorKind::NotFound | AwsErrorKind::Other)
            && let Ok(ExistingObject::Same) = self.job.existing(s3, sha256, control)
        {
            return Ok(Sent::Sent);
        }
        written
    }
}

impl Sender<'_> {
    fn begin(&self, job: &Job<'_>, content: &Large) -> Result<Unfinished, SendError> {
        let object = job.object(&content.sha256);
        let upload = self.s3.begin_parts(&object, Some(self.control))?;
        let unfinished = Unfinished::new(self.journal.target(), &upload, content.sha256, content.part_bytes);
        self.write_down(&unfinished);
        Ok(unfinished)
    }

    /// An earlier upload of the same content, with its parts. An upload of other content is aborted.
    fn begun_before(&self, job: &Job<'_>, content: &Large) -> Result<Option<Unfinished>, SendError> {
        let key = &job.address.prefix;
        let Some(mut unfinished) = self.journal.find(key) else {
            return Ok(None);
        };
        let upload = unfinished.upload();
        if !unfinished.is_of(&content.sha256, content.part_bytes) {
            self.discard(&upload);
            self.control.note(format!("An unfinished upload to {} was aborted: the file has changed", job.address));
            return Ok(None);
        }
        match self.s3.parts(&upload, Some(self.control)) {
            Ok(there) => {
                unfinished.parts.retain(|number, etag| there.get(number) == Some(etag));
                Ok(Some(unfinished))
            }
            Err(error) if error.kind == AwsErrorKind::Cancelled || is_retryable(error.kind) => Err(error.into()),
            // The upload has ended, or the permission is missing.
            Err(_) => {
                self.discard(&upload);
                Ok(None)
            }
        }
    }

    /// Aborts the upload, so that no part costs money.
    fn discard(&self, upload: &UnfinishedUpload) {
        match self.s3.abort_parts(upload) {
            Ok(()) => self.journal.remove(&upload.key),
            Err(error) => self.control.note(format!(
                "{} Its uploaded parts are billed until they are deleted; upload the same file again to retry",
                with_full_stop(&error.message)
            )),
        }
    }

    fn write_down(&self, unfinished: &Unfinished) {
        // Without this record, a killed upload starts over; this one can continue.
        if let Err(error) = self.journal.write(unfinished) {
            log::warn!("could not save the state of the unfinished upload: {error}");
        }
    }
}

/// Whether the sent parts may be used later.
fn is_retryable(kind: AwsErrorKind) -> bool {
    use AwsErrorKind as Kind;
    kind.concerns_everything() || matches!(kind, Kind::Throttled | Kind::Timeout | Kind::Cut | Kind::Server)
}

fn with_full_stop(sentence: &str) -> String {
    format!("{}.", sentence.trim_end_matches('.'))
}

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

/// The folder of the records. Only recorded uploads are ever resumed or aborted, never those of other programs.
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
        local_file::replace(&self.path_of(&unfinished.key), serde_json::to_vec(unfinished)?)
    }

    pub(super) fn remove(&self, key: &str) {
        let path = self.path_of(key);
        if let Err(error) = local_file::if_there(std::fs::remove_file(&path)) {
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
        let name = hexadecimal(&digest);
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
