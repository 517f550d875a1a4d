//! S3 objects cached on disk, so that they are not fetched again.
//!
//! A cached object is identified by its server, address and `ETag`. It is therefore only read if it has the listed
//! `ETag`, and a changed object is fetched again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::single_flight::SingleFlight;
use crate::aws::AwsError;
use crate::cache::{CacheError, CacheKey, DiskCache, EntryKind};
use crate::domain::{ListingChange, Sample, SampleUri};
use crate::tasks::TaskControl;

type ReportChange = Box<dyn Fn(ListingChange) + Send + Sync>;
type ReportError = Box<dyn Fn(&CacheError) + Send + Sync>;

pub(super) struct ObjectCache {
    cache: Arc<DiskCache>,
    /// Empty for AWS.
    server: String,
    /// The last known `ETag` of each object.
    etags: Mutex<HashMap<SampleUri, Arc<str>>>,
    in_flight: SingleFlight,
    report_change: OnceLock<ReportChange>,
    report_error: ReportError,
}

impl ObjectCache {
    pub(super) fn new(cache: Arc<DiskCache>, server: String, report_error: ReportError) -> Self {
        Self {
            cache,
            server,
            etags: Mutex::default(),
            in_flight: SingleFlight::default(),
            report_change: OnceLock::new(),
            report_error,
        }
    }

    pub(super) fn max_entry_bytes(&self) -> u64 {
        self.cache.max_entry_bytes()
    }

    /// Reports changes to the first caller.
    pub(super) fn report_changes_to(&self, report: ReportChange) {
        self.report_change.get_or_init(|| report);
    }

    /// Stores the `ETag`s of listed objects.
    pub(super) fn listed(&self, samples: &[Sample]) {
        let mut etags = self.etags.lock();
        for sample in samples {
            match &sample.etag {
                Some(etag) => drop(etags.insert(sample.uri.clone(), Arc::clone(etag))),
                None => drop(etags.remove(&sample.uri)),
            }
        }
    }

    /// The `ETag` that the object must still have for cached content to be valid.
    pub(super) fn etag(&self, uri: &SampleUri) -> Option<Arc<str>> {
        self.etags.lock().get(uri).cloned()
    }

    /// Records the new version of an object and reports it; false if it did not change.
    pub(super) fn changed(&self, sample: Sample) -> bool {
        if self.etags.lock().get(&sample.uri) == sample.etag.as_ref() {
            return false;
        }
        self.listed(std::slice::from_ref(&sample));
        if let Some(tell) = self.report_change.get() {
            tell(ListingChange::Seen(vec![sample]));
        }
        true
    }

    /// The cached content, or else the result of `fetch`, which receives the required `ETag` and the control that ends
    /// its waits. Concurrent callers for the same object share the response.
    pub(super) fn read(
        self: &Arc<Self>,
        uri: &SampleUri,
        range: Option<&Range<u64>>,
        control: Option<&TaskControl>,
        fetch: impl FnOnce(Option<&str>, Option<&TaskControl>) -> Result<Vec<u8>, AwsError> + Send + 'static,
    ) -> Result<Vec<u8>, AwsError> {
        let Some(etag) = self.etag(uri) else {
            // A change could not be detected.
            return fetch(None, control);
        };
        let key = self.key(uri, &etag, range);
        if let Some(content) = self.cache.get(&key) {
            return Ok(content);
        }
        let this = Arc::clone(self);
        self.in_flight.join(key, control, move |control| {
            // Another caller may have fetched it meanwhile.
            if let Some(content) = this.cache.get(&key) {
                return Ok(content);
            }
            let content = fetch(Some(&etag), Some(control))?;
            if let Err(trouble) = this.cache.put(&key, &content) {
                (this.report_error)(&trouble);
            }
            Ok(content)
        })
    }

    fn key(&self, uri: &SampleUri, etag: &str, range: Option<&Range<u64>>) -> CacheKey {
        let place = range.map_or([0, u64::MAX], |range| [range.start, range.end]);
        let [start, end] = place.map(u64::to_le_bytes);
        let parts: [&[u8]; 5] = [self.server.as_bytes(), uri.as_str().as_bytes(), etag.as_bytes(), &start, &end];
        CacheKey::new(EntryKind::Image, &parts)
    }
}
