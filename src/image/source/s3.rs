//! Prefixes and objects in S3.

mod choose;
mod object_cache;
mod reach;
mod single_flight;

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use self::choose::Choice;
pub use self::choose::{is_folder_marker, is_hidden_name};
use self::object_cache::ObjectCache;
use super::{ListingChange, Page, Source, SourceError};
use crate::aws::{Aws, AwsError, AwsErrorKind, ListRequest, ListedPage, Listing, ObjectInfo, S3, if_there};
use crate::cache::{CacheError, DiskCache};
use crate::domain::{Problem, S3Address, S3Layout, S3Place, Sample, SampleUri};
use crate::tasks::TaskControl;

/// The most efficient number of parallel reads: each waits for the network most of the time.
const USEFUL_READS: usize = 32;
/// The number of example names in a message.
const EXAMPLES: usize = 3;

/// A folder of a bucket (everything below it, or only its own objects), or one object. Keys come in S3's byte order. As
/// in local folders, hidden keys (with a part that begins with a dot) and keys that do not look like images are skipped
/// and counted.
///
/// A bucket can hold images without extensions, named by hashes for instance. If no key of the first page has an image
/// extension, keys without any extension count as images.
#[derive(Clone)]
pub struct S3Source {
    inner: Arc<Inner>,
    cache: Option<Arc<ObjectCache>>,
    /// Ends the waits of this handle.
    control: Option<TaskControl>,
}

struct Inner {
    s3: S3,
    place: S3Place,
    root: Root,
    /// The server, if it is not AWS.
    server: Option<String>,
    /// A note for the first page of each listing.
    note: Option<String>,
    /// The start of the first listing, which was fetched to check that the place exists.
    begun: Mutex<Option<Begun>>,
    /// The key of the object that was read last, which shows whether others can be read.
    last_read: Mutex<Option<String>>,
    /// The first and last listed image, for the same purpose before any was read.
    listed: Mutex<Option<[SampleUri; 2]>>,
}

/// The resolved kind of place.
enum Root {
    /// Sample names are relative to this prefix.
    Folder(S3Address),
    /// The object as found when it was opened, until it is listed.
    Object(Mutex<Option<Sample>>),
}

struct Begun {
    first: ListedPage,
    rest: Listing,
}

impl S3Source {
    /// Checks that the place exists. `s3://bucket/photos` is the object of that name, or else the folder `photos/`;
    /// other keys with the same prefix, such as `photos-old/`, never belong to it.
    ///
    /// # Errors
    /// The object does not exist, must not be read, or S3 is unreachable.
    pub fn open(aws: &Aws, place: &S3Place, control: Option<&TaskControl>) -> Result<Self, AwsError> {
        let s3 = aws.s3(&place.access);
        let address = &place.address;
        let folder = address.as_folder();
        let begun = match begin(&s3, &folder, place.layout, control) {
            // A single object may still be readable.
            Err(error) if error.kind != AwsErrorKind::AccessDenied => return Err(error),
            begun => begun,
        };
        let object = if address.is_folder() { None } else { find_object(&s3, address, control)? };
        let (root, note, begun) = match (begun, object) {
            (Ok(begun), None) if !begun.first.is_empty() || address.is_folder() => {
                if begun.first.is_empty() && !address.prefix.is_empty() {
                    return Err(nothing_there(&s3, address, control));
                }
                (Root::Folder(folder), None, Some(begun))
            }
            (Ok(begun), Some(_)) if !begun.first.is_empty() => {
                let note = format!("An object {address} also exists; the folder {folder} was opened");
                (Root::Folder(folder), Some(note), Some(begun))
            }
            (_, Some(object)) => {
                let sample = sample(address, address.last_part().to_owned(), object);
                (Root::Object(Mutex::new(Some(sample))), None, None)
            }
            (Ok(_), None) => return Err(nothing_there(&s3, address, control)),
            (Err(error), None) => return Err(error),
        };
        let server = s3.endpoint(control)?;
        Ok(Self {
            inner: Arc::new(Inner {
                s3,
                place: place.clone(),
                root,
                server,
                note,
                begun: Mutex::new(begun),
                last_read: Mutex::default(),
                listed: Mutex::default(),
            }),
            cache: None,
            control: control.cloned(),
        })
    }

    /// Stores what is read in `cache`, so that nothing is fetched twice while it is there, and notices changed objects
    /// when they are read. `tell` receives the errors of the cache.
    pub fn with_cache(self, cache: Arc<DiskCache>, tell: impl Fn(&CacheError) + Send + Sync + 'static) -> Self {
        let server = self.inner.server.clone().unwrap_or_default();
        let cache = Arc::new(ObjectCache::new(cache, server, Box::new(tell)));
        Self { cache: Some(cache), ..self }
    }

    pub fn place(&self) -> &S3Place {
        &self.inner.place
    }

    /// The prefix that sample names are relative to, with a trailing slash: the folder, or the one around the object.
    pub fn folder(&self) -> S3Address {
        match &self.inner.root {
            Root::Folder(folder) => folder.clone(),
            Root::Object(_) => {
                let address = &self.inner.place.address;
                address.parent().unwrap_or_else(|| address.clone())
            }
        }
    }

    /// The same source without cancellation, for a caller that keeps it longer than the task that opened it.
    pub fn without_task(&self) -> Self {
        Self { control: None, ..self.clone() }
    }

    /// Reads an object, or a part of it, in the version that was listed.
    fn read_cached(
        &self,
        cache: &Arc<ObjectCache>,
        uri: &SampleUri,
        range: Option<&Range<u64>>,
    ) -> Result<Vec<u8>, AwsError> {
        let inner = Arc::clone(&self.inner);
        let key = self.key_of(uri).unwrap_or_default().to_owned();
        let part = range.cloned();
        let fetch = move |etag: Option<&str>, control: Option<&TaskControl>| inner.fetch(&key, part, etag, control);
        cache.read(uri, range, self.control.as_ref(), fetch)
    }

    /// Replaces the listed version of an object by the current one and reports the change. False if it did not change.
    fn revalidate(&self, cache: &ObjectCache, uri: &SampleUri) -> Result<bool, AwsError> {
        let bucket = &self.inner.place.address.bucket;
        let key = self.key_of(uri).unwrap_or_default();
        let object = self.inner.s3.object(bucket, key, self.control.as_ref())?;
        let folder = self.folder();
        let name = key.strip_prefix(folder.prefix.as_str()).unwrap_or(key);
        let sample = sample(&folder, name.to_owned(), object);
        Ok(cache.changed(sample))
    }

    /// The opened object, as found or in its current version.
    fn page_of_object(&self, found: Option<Sample>) -> Page {
        let address = &self.inner.place.address;
        let look = || -> Result<Sample, AwsError> {
            let control = self.control.as_ref();
            let object = self.inner.s3.object(&address.bucket, &address.prefix, control)?;
            Ok(sample(address, address.last_part().to_owned(), object))
        };
        match found.map_or_else(look, Ok) {
            Ok(sample) => {
                let samples = vec![sample];
                if let Some(cache) = &self.cache {
                    cache.listed(&samples);
                }
                Page { samples, ..Page::default() }
            }
            Err(error) if error.kind == AwsErrorKind::NotFound => Page::default(),
            Err(error) => incomplete(&error),
        }
    }

    fn key_of<'u>(&self, uri: &'u SampleUri) -> Result<&'u str, SourceError> {
        let address = &self.inner.place.address;
        address.key_of(uri).ok_or(SourceError::NotFound)
    }
}

impl Source for S3Source {
    fn name(&self) -> String {
        match &self.inner.root {
            Root::Folder(folder) => folder.to_string(),
            Root::Object(_) => self.inner.place.address.to_string(),
        }
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let folder = match &self.inner.root {
            Root::Folder(folder) => folder,
            Root::Object(found) => {
                let found = found.lock().take();
                return Box::new(std::iter::once(self.page_of_object(found)));
            }
        };
        let begun = self.inner.begun.lock().take();
        let listing = match begun {
            Some(Begun { first, rest }) => Ok((Some(first), rest)),
            None => self.inner.s3.list(list_request(folder, self.inner.place.layout)).map(|rest| (None, rest)),
        };
        match listing {
            Ok((first, rest)) => Box::new(Pages {
                inner: Arc::clone(&self.inner),
                folder: folder.clone(),
                first,
                rest: Some(rest),
                choice: Choice::default(),
                note: self.inner.note.clone(),
                cache: self.cache.clone(),
                control: self.control.clone(),
            }),
            Err(error) => Box::new(std::iter::once(incomplete(&error))),
        }
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        let key = self.key_of(uri)?;
        let read = || {
            let Some(cache) = &self.cache else {
                return self.inner.fetch(key, None, None, self.control.as_ref());
            };
            match self.read_cached(cache, uri, None) {
                Err(error) if error.kind == AwsErrorKind::Changed && self.revalidate(cache, uri)? => {
                    self.read_cached(cache, uri, None)
                }
                read => read,
            }
        };
        read().map_err(|error| self.judge(key, error))
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let key = self.key_of(uri)?;
        let read = || {
            let Some(cache) = &self.cache else {
                let control = self.control.as_ref();
                return self.inner.fetch(key, Some(range), None, control);
            };
            let read = self.read_cached(cache, uri, Some(&range));
            if let Err(error) = &read
                && error.kind == AwsErrorKind::Changed
            {
                // The range may be elsewhere in the new version; the reported change makes the caller read again.
                self.revalidate(cache, uri)?;
            }
            read
        };
        read().map_err(|error| self.judge(key, error))
    }

    fn read_once(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let etag = self.cache.as_ref().and_then(|cache| cache.etag(uri));
        let key = self.key_of(uri)?;
        let control = self.control.as_ref();
        let read = self.inner.fetch(key, Some(range), etag.as_deref(), control);
        read.map_err(|error| self.judge(key, error))
    }

    fn server(&self) -> Option<&str> {
        self.inner.server.as_deref()
    }

    fn is_cached(&self, size_bytes: u64) -> bool {
        let cache = self.cache.as_ref();
        cache.is_some_and(|cache| size_bytes <= cache.max_entry_bytes())
    }

    fn useful_reads(&self) -> usize {
        USEFUL_READS
    }

    fn for_task(&self, control: &TaskControl) -> Option<Arc<dyn Source>> {
        Some(Arc::new(Self { control: Some(control.clone()), ..self.clone() }))
    }

    fn watch(&self, report: Box<dyn Fn(ListingChange) + Send + Sync>) {
        report(ListingChange::Unwatchable("S3 does not report changes".to_owned()));
        if let Some(cache) = &self.cache {
            cache.report_changes_to(report);
        }
    }
}

fn list_request(folder: &S3Address, layout: S3Layout) -> ListRequest {
    ListRequest { by_folder: layout == S3Layout::Folder, ..ListRequest::new(folder) }
}

/// The first page of a folder's listing; the rest is being fetched.
fn begin(s3: &S3, folder: &S3Address, layout: S3Layout, control: Option<&TaskControl>) -> Result<Begun, AwsError> {
    let mut rest = s3.list(list_request(folder, layout))?;
    let first = rest.next_page(control).transpose()?.unwrap_or_default();
    Ok(Begun { first, rest })
}

/// The object at exactly this address. Credentials that may not list may still read it, and vice versa.
fn find_object(s3: &S3, address: &S3Address, control: Option<&TaskControl>) -> Result<Option<ObjectInfo>, AwsError> {
    match if_there(s3.object(&address.bucket, &address.prefix, control)) {
        Err(error) if error.kind == AwsErrorKind::AccessDenied => {
            // The exact key sorts before longer keys with the same prefix. A failure also affects the folder and is
            // reported there.
            let first = s3.first_object(address, control).unwrap_or_default();
            Ok(first.filter(|first| first.key == address.prefix))
        }
        found => found,
    }
}

/// The error for a missing prefix, with existing ones: usually a folder was misspelled.
fn nothing_there(s3: &S3, address: &S3Address, control: Option<&TaskControl>) -> AwsError {
    let prefix = address.prefix.trim_end_matches('/');
    let request = ListRequest {
        bucket: address.bucket.clone(),
        prefix: prefix.to_owned(),
        by_folder: true,
        max_keys: Some(EXAMPLES as u16),
        ..ListRequest::default()
    };
    let listed = s3.list_page(&request, control).unwrap_or_default();
    let objects = listed.objects.iter().map(|object| object.key.as_str());
    let folders = listed.folders.iter().map(String::as_str);
    let similar: Vec<String> =
        folders.chain(objects).map(|key| S3Address::new(&address.bucket, key).to_string()).collect();
    let similar =
        if similar.is_empty() { "check the spelling".to_owned() } else { format!("similar: {}", similar.join(", ")) };
    AwsError {
        kind: AwsErrorKind::NotFound,
        message: format!("{address} exists neither as an object nor as a folder; {similar}"),
    }
}

/// Turns a listing of keys into samples.
struct Pages {
    inner: Arc<Inner>,
    folder: S3Address,
    first: Option<ListedPage>,
    /// `None` after the end.
    rest: Option<Listing>,
    choice: Choice,
    note: Option<String>,
    cache: Option<Arc<ObjectCache>>,
    control: Option<TaskControl>,
}

impl Iterator for Pages {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        loop {
            if self.control.as_ref().is_some_and(TaskControl::is_cancelled) {
                return None;
            }
            let rest = self.rest.as_mut()?;
            let listed = self.first.take().map(Ok).or_else(|| rest.next_page(self.control.as_ref()));
            let mut page = match listed {
                Some(Ok(listed)) => self.page_of(listed),
                Some(Err(error)) => {
                    self.rest = None;
                    if error.kind == AwsErrorKind::Cancelled {
                        return None;
                    }
                    incomplete(&error)
                }
                None => {
                    self.rest = None;
                    Page { notes: self.choice.notes(), ..Page::default() }
                }
            };
            page.notes.extend(self.note.take());
            self.inner.remember_listed(&page.samples);
            if page != Page::default() {
                return Some(page);
            }
        }
    }
}

impl Pages {
    fn page_of(&mut self, listed: ListedPage) -> Page {
        let prefix_len = self.folder.prefix.len();
        let names = listed.objects.iter().filter_map(|object| object.key.get(prefix_len..));
        self.choice.see(names);
        let chosen = listed.objects.into_iter().filter_map(|object| {
            let name = object.key.get(prefix_len..)?.to_owned();
            let is_chosen = self.choice.takes(&name, object.size_bytes);
            is_chosen.then(|| sample(&self.folder, name, object))
        });
        let samples: Vec<Sample> = chosen.collect();
        if let Some(cache) = &self.cache {
            cache.listed(&samples);
        }
        Page { samples, ..Page::default() }
    }
}

fn sample(address: &S3Address, name: String, object: ObjectInfo) -> Sample {
    Sample {
        uri: address.uri_of(&object.key),
        name,
        size_bytes: object.size_bytes,
        modified_ns: object.modified_ns,
        etag: object.etag.map(Arc::from),
        capture: None,
    }
}

fn incomplete(error: &AwsError) -> Page {
    Page { problems: vec![Problem::general(format!("The image list is incomplete. {error}"))], ..Page::default() }
}
