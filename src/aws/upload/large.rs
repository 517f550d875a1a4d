//! Sends a large file in parts, with several workers.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::{Condvar, Mutex};

use super::content::Large;
use super::sending::{ExistingObject, Job, SendError, Sent};
use super::unfinished::{Journal, Unfinished};
use crate::aws::{AwsError, AwsErrorKind, Content, S3, SentPart, UnfinishedUpload};
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
