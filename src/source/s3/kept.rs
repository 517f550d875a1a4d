//! What was read of S3 and is kept on disk, so that it need not be asked for again.
//!
//! A kept object is known by its server, its address and its `ETag`. So it is only ever read on the condition that it
//! has the `ETag` that was listed, and an object that was written to is fetched anew.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::single_flight::SingleFlight;
use crate::aws::AwsError;
use crate::cache::{CacheError, CacheKey, DiskCache, EntryKind};
use crate::domain::{ListingChange, Sample, SampleUri};
use crate::tasks::TaskControl;

type TellChange = Box<dyn Fn(ListingChange) + Send + Sync>;
type TellTrouble = Box<dyn Fn(&CacheError) + Send + Sync>;

pub(super) struct Kept {
    cache: Arc<DiskCache>,
    /// Empty for AWS.
    server: String,
    /// Of each object, as it was seen last.
    etags: Mutex<HashMap<SampleUri, Arc<str>>>,
    in_flight: SingleFlight,
    tell_change: OnceLock<TellChange>,
    tell_trouble: TellTrouble,
}

impl Kept {
    pub(super) fn new(cache: Arc<DiskCache>, server: String, tell_trouble: TellTrouble) -> Self {
        Self {
            cache,
            server,
            etags: Mutex::default(),
            in_flight: SingleFlight::default(),
            tell_change: OnceLock::new(),
            tell_trouble,
        }
    }

    pub(super) fn max_entry_bytes(&self) -> u64 {
        self.cache.max_entry_bytes()
    }

    /// The first one to ask is told.
    pub(super) fn tell_changes_to(&self, report: TellChange) {
        self.tell_change.get_or_init(|| report);
    }

    /// Remembers what these objects are now.
    pub(super) fn listed(&self, samples: &[Sample]) {
        let mut etags = self.etags.lock();
        for sample in samples {
            match &sample.etag {
                Some(etag) => drop(etags.insert(sample.uri.clone(), Arc::clone(etag))),
                None => drop(etags.remove(&sample.uri)),
            }
        }
    }

    /// What the object must still have for what is known of it to hold.
    pub(super) fn etag(&self, uri: &SampleUri) -> Option<Arc<str>> {
        self.etags.lock().get(uri).cloned()
    }

    /// Takes over an object as it is now, and tells of it; false where it is as it was.
    pub(super) fn changed(&self, sample: Sample) -> bool {
        if self.etags.lock().get(&sample.uri) == sample.etag.as_ref() {
            return false;
        }
        self.listed(std::slice::from_ref(&sample));
        if let Some(tell) = self.tell_change.get() {
            tell(ListingChange::Seen(vec![sample]));
        }
        true
    }

    /// What is kept, or else what `fetch` brings: it gets the `ETag` that the object must have, and what ends its
    /// waits. Whoever asks for the same meanwhile gets the same response.
    pub(super) fn read(
        self: &Arc<Self>,
        uri: &SampleUri,
        range: Option<&Range<u64>>,
        control: Option<&TaskControl>,
        fetch: impl FnOnce(Option<&str>, Option<&TaskControl>) -> Result<Vec<u8>, AwsError>
        + Send
        + 'static,
    ) -> Result<Vec<u8>, AwsError> {
        let Some(etag) = self.etag(uri) else {
            // Nothing would tell that it has changed.
            return fetch(None, control);
        };
        let key = self.key(uri, &etag, range);
        if let Some(content) = self.cache.get(&key) {
            return Ok(content);
        }
        let this = Arc::clone(self);
        self.in_flight.join(key, control, move |control| {
            // Somebody may have brought it since.
            if let Some(content) = this.cache.get(&key) {
                return Ok(content);
            }
            let content = fetch(Some(&etag), Some(control))?;
            if let Err(trouble) = this.cache.put(&key, &content) {
                (this.tell_trouble)(&trouble);
            }
            Ok(content)
        })
    }

    fn key(&self, uri: &SampleUri, etag: &str, range: Option<&Range<u64>>) -> CacheKey {
        let place = range.map_or([0, u64::MAX], |range| [range.start, range.end]);
        let [start, end] = place.map(u64::to_le_bytes);
        let parts: [&[u8]; 5] = [
            self.server.as_bytes(),
            uri.as_str().as_bytes(),
            etag.as_bytes(),
            &start,
            &end,
        ];
        CacheKey::new(EntryKind::Image, &parts)
    }
}
