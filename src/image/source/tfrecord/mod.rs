//! TFRecord files as folders of images, in any source.
//!
//! Listing goes from record to record and reads only names and sizes; a record's data is verified when the image is
//! read. Knows nothing about the content of images.

mod example;
mod index;
mod names;
mod scan;

#[cfg(test)]
mod tests;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use self::example::{Example, Part};
use self::index::{FileIndex, not_there};
use self::scan::{FileScan, LONGEST_RECORD};
use super::{ListingChange, LocalSource, Page, S3Source, Source, SourceError, absolute, cut};
use crate::aws::{Aws, AwsError, AwsErrorKind};
use crate::domain::{S3Address, S3Place, Sample, SampleUri, Truth};
use crate::tasks::TaskControl;
use index::{BadFrame, Blocks, HEADER};

pub use self::names::RECORD_EXTENSIONS;
pub(super) use self::names::{is_shard_name, is_tfrecord_name};
pub use index::framed as framed_record;
#[cfg(test)]
pub(super) use tests::record_of;

/// The number of records in the first page of a file, so that it arrives soon; later pages are larger.
const FIRST_PAGE_LEN: usize = 32;
const PAGE_LEN: usize = 500;

/// A source in which each TFRecord file is replaced by its images.
#[derive(Clone)]
pub struct WithRecords {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<dyn Source>,
    /// The record, if a single one was opened.
    name: Option<String>,
    /// Files of which only some records were opened.
    only: HashMap<SampleUri, BTreeSet<u64>>,
    indexes: Arc<Mutex<HashMap<SampleUri, Arc<FileIndex>>>>,
}

impl WithRecords {
    pub fn over(inner: Arc<dyn Source>) -> Self {
        Self::new(inner, None, HashMap::new())
    }

    /// A local folder, image, TFRecord file, or a single record of one.
    ///
    /// # Errors
    /// The path does not exist or is not readable.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let local = match LocalSource::open(path) {
            Ok(local) => local,
            Err(error) => {
                let uri = SampleUri::new(absolute(path)?.to_string_lossy());
                let (file, _) = uri.record().ok_or(error)?;
                LocalSource::open(Path::new(file))?;
                let mut source = Self::from_paths([path.to_owned()]);
                if let Some(shared) = Arc::get_mut(&mut source.shared) {
                    shared.name = Some(uri.as_str().to_owned());
                }
                return Ok(source);
            }
        };
        Ok(Self::over(Arc::new(local)))
    }

    /// An S3 location, or a single record of an object there; and the underlying source, as returned by `prepare`,
    /// which knows what the location turned out to be. `control` cancels waits only while it is opened.
    ///
    /// # Errors
    /// As [`S3Source::open`].
    pub fn in_s3(
        aws: &Aws,
        place: &S3Place,
        control: Option<&TaskControl>,
        prepare: impl FnOnce(S3Source) -> S3Source,
    ) -> Result<(Self, S3Source), AwsError> {
        let error = match S3Source::open(aws, place, control) {
            Ok(source) => {
                let source = prepare(source.without_task());
                return Ok((Self::over(Arc::new(source.clone())), source));
            }
            Err(error) => error,
        };
        let uri = SampleUri::new(place.address.to_string());
        let file = uri.record().filter(|_| error.kind == AwsErrorKind::NotFound);
        let Some((file, number)) = file else {
            return Err(error);
        };
        let file = SampleUri::new(file);
        let Some(key) = place.address.key_of(&file) else {
            return Err(error);
        };
        let place = S3Place { address: S3Address::new(&place.address.bucket, key), ..place.clone() };
        let source = S3Source::open(aws, &place, control)?;
        // A folder has no records.
        if source.name() != file.as_str() {
            return Err(error);
        }
        let only = HashMap::from([(file, BTreeSet::from([number]))]);
        let name = Some(uri.as_str().to_owned());
        let source = prepare(source.without_task());
        Ok((Self::new(Arc::new(source.clone()), name, only), source))
    }

    /// Local files, folders and records. The records of one file are listed together, at the position of the first.
    pub fn from_paths(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut only: HashMap<SampleUri, BTreeSet<u64>> = HashMap::new();
        let mut whole = HashSet::new();
        let mut files = Vec::new();
        for path in paths {
            let from_root = absolute(&path).unwrap_or_else(|_| path.clone());
            let uri = SampleUri::new(from_root.to_string_lossy());
            match uri.record() {
                Some((file, number)) if !path.exists() => {
                    let numbers = only.entry(SampleUri::new(file)).or_default();
                    if numbers.is_empty() {
                        files.push(PathBuf::from(file));
                    }
                    numbers.insert(number);
                }
                _ => {
                    whole.insert(uri);
                    files.push(path);
                }
            }
        }
        only.retain(|file, _| !whole.contains(file));
        Self::new(Arc::new(LocalSource::from_paths(files)), None, only)
    }

    /// Whether a listed file contains images: is one, or is a TFRecord file by its name and, if the name is ambiguous,
    /// by its first bytes.
    pub fn holds_images(&self, file: &Sample) -> bool {
        !matches!(self.shared.kind(file), Kind::Other)
    }

    fn new(inner: Arc<dyn Source>, name: Option<String>, only: HashMap<SampleUri, BTreeSet<u64>>) -> Self {
        Self { shared: Arc::new(Shared { inner, name, only, indexes: Arc::default() }) }
    }
}

impl Source for WithRecords {
    fn name(&self) -> String {
        let name = self.shared.name.clone();
        name.unwrap_or_else(|| self.shared.inner.name())
    }

    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.shared.inner)
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        Box::new(Pages {
            inner: self.shared.inner.pages(),
            shared: Arc::clone(&self.shared),
            waiting: VecDeque::new(),
            scan: None,
            next_len: FIRST_PAGE_LEN,
        })
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        self.shared.read(uri, Part::ImageAndName).map(|(image, _)| image)
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        match uri.record() {
            Some(_) => self.read(uri).map(|image| cut(image, range)),
            None => self.shared.inner.read_range(uri, range),
        }
    }

    fn read_once(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        match uri.record() {
            Some(_) => self.read_range(uri, range),
            None => self.shared.inner.read_once(uri, range),
        }
    }

    fn read_with_truth(&self, uri: &SampleUri) -> Result<(Vec<u8>, Truth), SourceError> {
        self.shared.read(uri, Part::Truth)
    }

    fn read_example(&self, uri: &SampleUri) -> Result<Option<Vec<u8>>, SourceError> {
        let Some((file, number)) = uri.record() else {
            return Ok(None);
        };
        let (mut record, data) = self.shared.read_data(&SampleUri::new(file), number)?;
        record.truncate(data.end);
        record.drain(..data.start);
        Ok(Some(record))
    }

    fn record_count(&self, file: &SampleUri) -> Result<Option<u64>, SourceError> {
        let blocks = || Blocks::new(Arc::clone(&self.shared.inner), file.clone(), None);
        self.shared.index_of(file).count(blocks).map(Some)
    }

    fn for_task(&self, control: &TaskControl) -> Option<Arc<dyn Source>> {
        let inner = self.shared.inner.for_task(control)?;
        let shared = Shared {
            inner,
            name: self.shared.name.clone(),
            only: self.shared.only.clone(),
            indexes: Arc::clone(&self.shared.indexes),
        };
        Some(Arc::new(Self { shared: Arc::new(shared) }))
    }

    fn watch(&self, report: Box<dyn Fn(ListingChange) + Send + Sync>) {
        // Weak: the inner source owns the callback.
        let shared = Arc::downgrade(&self.shared);
        self.shared.inner.watch(Box::new(move |change| {
            if let Some(shared) = Weak::upgrade(&shared) {
                shared.pass_on(change, &*report);
            }
        }));
    }
}

impl Shared {
    fn read(&self, uri: &SampleUri, part: Part) -> Result<(Vec<u8>, Truth), SourceError> {
        let Some((file, number)) = uri.record() else {
            return self.inner.read_with_truth(uri);
        };
        let file = SampleUri::new(file);
        match self.read_record(&file, number, part) {
            // A file that was opened by itself can have any name.
            Err(error @ (SourceError::NotFound | SourceError::Io(_))) => {
                self.inner.read_with_truth(uri).map_err(|_| error)
            }
            read => read,
        }
    }

    fn read_record(&self, file: &SampleUri, number: u64, part: Part) -> Result<(Vec<u8>, Truth), SourceError> {
        let (mut record, data) = self.read_data(file, number)?;
        let span = data.start as u64..data.end as u64;
        let example = Example::read(&mut record.as_slice(), span, part);
        let example = example.map_err(|_| SourceError::Damaged(format!("record {number} is not a tf.Example")))?;
        let image = example
            .image()
            .ok_or_else(|| SourceError::Damaged(format!("record {number} {}", example.without_image())))?;
        record.truncate(image.end as usize);
        record.drain(..image.start as usize);
        Ok((record, example.truth()))
    }

    /// A whole record, and the range of its data.
    fn read_data(&self, file: &SampleUri, number: u64) -> Result<(Vec<u8>, Range<usize>), SourceError> {
        let index = self.index_of(file);
        let mut record = self.read_frame(file, number, &index)?;
        let data = match index::check(&record) {
            // The file changed after it was listed.
            Err(BadFrame::Header) => {
                self.forget(file, &index);
                record = self.read_frame(file, number, &self.index_of(file))?;
                index::check(&record)
            }
            checked => checked,
        };
        let data = data.map_err(|bad| match bad {
            BadFrame::Header => not_there(number),
            BadFrame::Data => SourceError::Damaged(format!(
                "record {number} is damaged: its data has a wrong checksum; copy or download the file again"
            )),
        })?;
        Ok((record, data))
    }

    /// A record with header and footer, as it is in the file.
    fn read_frame(&self, file: &SampleUri, number: u64, index: &FileIndex) -> Result<Vec<u8>, SourceError> {
        let blocks = || Blocks::new(Arc::clone(&self.inner), file.clone(), None);
        let range = index.range_of(number, blocks)?;
        if range.end - range.start > LONGEST_RECORD {
            return Err(SourceError::Damaged(format!("record {number} is longer than 2 GiB, the limit of a record")));
        }
        self.inner.read_range(file, range)
    }

    fn scan(self: &Arc<Self>, file: Sample) -> FileScan {
        let index = Arc::<FileIndex>::default();
        self.indexes.lock().insert(file.uri.clone(), Arc::clone(&index));
        let len = Some(file.size_bytes);
        let blocks = Blocks::new(Arc::clone(&self.inner), file.uri.clone(), len);
        let only = self.only.get(&file.uri).cloned();
        FileScan::new(file, blocks, index, only)
    }

    fn kind(&self, file: &Sample) -> Kind {
        if is_tfrecord_name(&file.name) {
            return Kind::Records;
        }
        // A file that the user named explicitly can have any extension.
        let is_named = self.only.contains_key(&file.uri) || self.inner.name() == file.uri.as_str();
        let is_shard = is_shard_name(&file.name);
        if !is_named && !is_shard {
            Kind::Image
        } else if self.begins_with_record(file) {
            Kind::Records
        } else if is_named {
            Kind::Image
        } else {
            Kind::Other
        }
    }

    fn begins_with_record(&self, file: &Sample) -> bool {
        let begin = self.inner.read_once(&file.uri, 0..HEADER);
        begin.is_ok_and(|begin| index::data_len(&begin).is_some())
    }

    /// A change of a file is a change of the images inside it.
    fn pass_on(self: &Arc<Self>, change: ListingChange, report: &dyn Fn(ListingChange)) {
        match change {
            ListingChange::Seen(files) => {
                let mut samples = Vec::new();
                for file in files {
                    match self.kind(&file) {
                        Kind::Image => samples.push(file),
                        Kind::Records => report(ListingChange::FileRelisted {
                            file: file.uri.clone(),
                            page: self.scan(file).flatten().collect(),
                        }),
                        Kind::Other => {}
                    }
                }
                if !samples.is_empty() {
                    report(ListingChange::Seen(samples));
                }
            }
            ListingChange::Relisted(files) => {
                let mut page = Page::default();
                for file in files {
                    match self.kind(&file) {
                        Kind::Image => page.samples.push(file),
                        Kind::Records => page.extend(self.scan(file).flatten()),
                        Kind::Other => {}
                    }
                }
                report(ListingChange::Relisted(page.samples));
            }
            ListingChange::Gone(uris) => {
                for uri in &uris {
                    self.indexes.lock().remove(uri);
                }
                report(ListingChange::Gone(uris));
            }
            ListingChange::FileRelisted { .. } | ListingChange::Unwatched(_) | ListingChange::Unwatchable(_) => {
                report(change);
            }
        }
    }

    fn index_of(&self, file: &SampleUri) -> Arc<FileIndex> {
        Arc::clone(self.indexes.lock().entry(file.clone()).or_default())
    }

    /// Only if no other one was started meanwhile.
    fn forget(&self, file: &SampleUri, index: &Arc<FileIndex>) {
        let mut indexes = self.indexes.lock();
        if indexes.get(file).is_some_and(|known| Arc::ptr_eq(known, index)) {
            indexes.remove(file);
        }
    }
}

/// What a listed file contains.
enum Kind {
    /// Itself.
    Image,
    /// The images inside it.
    Records,
    /// A key that is not used.
    Other,
}

/// Replaces a file by its images.
struct Pages {
    inner: Box<dyn Iterator<Item = Page> + Send>,
    shared: Arc<Shared>,
    /// The rest of the inner source's last page.
    waiting: VecDeque<Sample>,
    scan: Option<FileScan>,
    next_len: usize,
}

impl Iterator for Pages {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        let mut page = Page::default();
        if self.scan.is_none() && self.waiting.is_empty() {
            let listed = self.inner.next()?;
            self.waiting = listed.samples.into();
            page.problems = listed.problems;
            page.notes = listed.notes;
        }
        // Images next to the files come as the inner source lists them; only records are counted.
        let mut left = self.next_len;
        while left > 0 {
            if let Some(scan) = &mut self.scan {
                match scan.next() {
                    Some(entry) => {
                        page.extend(entry);
                        left -= 1;
                    }
                    None => self.scan = None,
                }
            } else if let Some(file) = self.waiting.pop_front() {
                match self.shared.kind(&file) {
                    Kind::Image => page.samples.push(file),
                    Kind::Records => self.scan = Some(self.shared.scan(file)),
                    Kind::Other => {}
                }
            } else {
                return Some(page);
            }
        }
        self.next_len = (self.next_len * 2).min(PAGE_LEN);
        Some(page)
    }
}
