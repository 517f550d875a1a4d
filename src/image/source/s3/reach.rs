//! Decides whether a failed read concerns one object, or nothing else could be read either.

use std::ops::Range;

use super::{Inner, S3Source};
use crate::aws::{AwsError, AwsErrorKind};
use crate::domain::Sample;
use crate::image::source::SourceError;
use crate::tasks::TaskControl;

/// What a failed read concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Object,
    /// The server or the credentials, not the object.
    All,
    /// Either, to be tested: one disk of the server may be broken, or a policy may forbid one key.
    ObjectOrAll,
}

impl About {
    fn from_kind(kind: AwsErrorKind) -> Self {
        use AwsErrorKind as Kind;
        match kind {
            Kind::AccessDenied | Kind::NotS3 | Kind::Throttled | Kind::Timeout | Kind::Cut | Kind::Server => {
                Self::ObjectOrAll
            }
            // The object may be larger than the memory.
            Kind::Local => Self::Object,
            kind if kind.concerns_everything() => Self::All,
            _ => Self::Object,
        }
    }
}

impl Inner {
    /// An object or a part of it, bypassing the cache.
    pub(super) fn fetch(
        &self,
        key: &str,
        part: Option<Range<u64>>,
        etag: Option<&str>,
        control: Option<&TaskControl>,
    ) -> Result<Vec<u8>, AwsError> {
        let bucket = &self.place.address.bucket;
        let read = match part {
            Some(part) => self.s3.read_range(bucket, key, part, etag, control),
            None => self.s3.read(bucket, key, etag, control),
        }?;
        *self.last_read.lock() = Some(key.to_owned());
        Ok(read)
    }

    pub(super) fn remember_listed(&self, samples: &[Sample]) {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return;
        };
        let mut listed = self.listed.lock();
        match &mut *listed {
            Some([_, end]) => *end = last.uri.clone(),
            none => *none = Some([first.uri.clone(), last.uri.clone()]),
        }
    }

    /// Other objects than `failed` for a test read: the one that was read last, or those at both ends of the listing.
    fn others_than(&self, failed: &str) -> Vec<String> {
        let last_read = self.last_read.lock();
        let last_read = last_read.clone();
        if let Some(key) = last_read.filter(|key| key != failed) {
            return vec![key];
        }
        let listed = self.listed.lock();
        let keys = listed.iter().flatten();
        let keys = keys.filter_map(|uri| self.place.address.key_of(uri));
        keys.filter(|key| *key != failed).map(str::to_owned).collect()
    }

    /// Whether objects other than `failed` can be read: tested with some of them, or else by a request for the bucket.
    fn can_be_read(&self, failed: &str, kind: AwsErrorKind, control: Option<&TaskControl>) -> bool {
        let bucket = &self.place.address.bucket;
        let is_there = |asked: Result<(), AwsError>| {
            asked.map_or_else(|error| About::from_kind(error.kind) == About::Object, |()| true)
        };
        let others = self.others_than(failed);
        let one_byte = |key: &String| {
            let read = self.s3.read_range(bucket, key, 0..1, None, control);
            is_there(read.map(drop))
        };
        if !others.is_empty() {
            return others.iter().any(one_byte);
        }
        // The permission to read objects is independent of that to access their bucket.
        if kind == AwsErrorKind::AccessDenied {
            return true;
        }
        match self.s3.bucket_region(bucket, control) {
            Err(error) if error.kind != AwsErrorKind::AccessDenied => is_there(Err(error)),
            _ => true,
        }
    }
}

impl S3Source {
    /// What `error`, from reading the object `key`, means for the rest of the source.
    pub fn judge(&self, key: &str, error: AwsError) -> SourceError {
        let is_about_all = match About::from_kind(error.kind) {
            About::Object => false,
            About::All => true,
            About::ObjectOrAll => !self.inner.can_be_read(key, error.kind, self.control.as_ref()),
        };
        if is_about_all { SourceError::Unreachable(error.message) } else { error.into() }
    }
}
