//! Objects that were read are cached on disk and not requested again until they change.

use std::path::Path;
use std::sync::{Arc, Mutex};

use spotcheck::aws::AwsErrorKind;
use spotcheck::cache::DiskCache;
use spotcheck::domain::{ListingChange, Sample, SampleUri};
use spotcheck::image::source::{S3Source, Source, SourceError, WithRecords, for_task};
use spotcheck::tasks::{ProgressUnit, TaskControl};

use super::{open, public_place};
use crate::support::fault_proxy::{Fault, FaultProxy, Often, Request};
use crate::support::seaweed::{Bucket, Seaweed};

const PLENTY: u64 = 1 << 30;
const IMAGES: usize = 20;

fn bucket_of_images(name: &str) -> Bucket {
    let bucket = Seaweed::shared().public_bucket(name);
    for number in 0..IMAGES {
        bucket.put(&key(number), &content(number));
    }
    bucket
}

fn key(number: usize) -> String {
    format!("photos/{number:02}.jpg")
}

fn content(number: usize) -> Vec<u8> {
    format!("image {number} ").repeat(500).into_bytes()
}

fn proxy() -> FaultProxy {
    FaultProxy::before(Seaweed::shared().address())
}

/// A source as opened by a window, with its cache in `folder`.
fn open_keeping(bucket: &Bucket, proxy: &FaultProxy, folder: &Path, max_bytes: u64) -> S3Source {
    let cache = DiskCache::new(folder.to_owned(), max_bytes);
    open(&public_place(bucket, "photos/", &proxy.endpoint())).with_cache(Arc::new(cache), |error| panic!("{error}"))
}

fn listed(source: &dyn Source) -> Vec<Sample> {
    source.pages().flat_map(|page| page.samples).collect()
}

fn read_all(source: &dyn Source) {
    for (number, sample) in listed(source).iter().enumerate() {
        assert!(source.read(&sample.uri).unwrap() == content(number));
    }
}

fn most_reads_of_one(proxy: &FaultProxy) -> usize {
    let keys = (0..IMAGES).map(key);
    let counts = keys.map(|key| proxy.count(|request| request.reads_key(&key)));
    counts.max().unwrap_or_default()
}

#[test]
fn objects_are_requested_once_for_all_readers() {
    let (bucket, proxy) = (bucket_of_images("once"), proxy());
    let folder = tempfile::tempdir().unwrap();
    let source = open_keeping(&bucket, &proxy, folder.path(), PLENTY);
    listed(&source);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for number in 0..IMAGES {
                    let uri = SampleUri::new(bucket.uri(&key(number)));
                    assert!(source.read(&uri).unwrap() == content(number));
                }
            });
        }
    });
    assert_eq!(proxy.count(Request::reads), IMAGES);
    assert_eq!(most_reads_of_one(&proxy), 1);
}

#[test]
fn restart_repeats_no_request() {
    let (bucket, proxy) = (bucket_of_images("restart"), proxy());
    let folder = tempfile::tempdir().unwrap();
    let read = || {
        let source = open_keeping(&bucket, &proxy, folder.path(), PLENTY);
        read_all(&source);
        let first = listed(&source).remove(0);
        assert_eq!(source.read_range(&first.uri, 6..8).unwrap(), b"0 ");
    };
    read();
    assert_eq!(proxy.count(Request::reads), IMAGES + 1);
    read();
    assert_eq!(proxy.count(Request::reads), IMAGES + 1);
}

#[test]
fn servers_do_not_share_cached_objects() {
    let (bucket, here, there) = (bucket_of_images("servers"), proxy(), proxy());
    let folder = tempfile::tempdir().unwrap();
    for proxy in [&here, &there, &here] {
        read_all(&open_keeping(&bucket, proxy, folder.path(), PLENTY));
        assert_eq!(proxy.count(Request::reads), IMAGES);
    }
}

#[test]
fn changed_object_is_noticed_on_read_and_listing() {
    let (bucket, proxy) = (bucket_of_images("changed"), proxy());
    let folder = tempfile::tempdir().unwrap();
    let source = open_keeping(&bucket, &proxy, folder.path(), PLENTY);
    let changes = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&changes);
    source.watch(Box::new(move |change| told.lock().unwrap().push(change)));
    let before = listed(&source);
    bucket.put(&key(3), b"written to before it was read");
    let uri = &before[3].uri;
    let read = || String::from_utf8(source.read(uri).unwrap()).unwrap();
    assert_eq!(read(), "written to before it was read");
    assert_eq!(read(), "written to before it was read");
    let changes = std::mem::take(&mut *changes.lock().unwrap());
    let [ListingChange::Unwatchable(_), ListingChange::Seen(seen)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!((seen[0].name.as_str(), seen[0].size_bytes), ("03.jpg", 29));
    assert_ne!(seen[0].stamp(), before[3].stamp());
    // Rejected because of its ETag, then requested again, then cached.
    assert_eq!(proxy.count(|request| request.reads_key(&key(3))), 2);

    bucket.put(&key(3), b"once more");
    assert_eq!(listed(&source)[3].size_bytes, 9);
    assert_eq!(read(), "once more");
    assert_eq!(proxy.count(|request| request.reads_key(&key(3))), 3);
}

#[test]
fn response_with_another_object_is_not_cached() {
    let (bucket, proxy) = (bucket_of_images("wrong"), proxy());
    let folder = tempfile::tempdir().unwrap();
    let source = open_keeping(&bucket, &proxy, folder.path(), PLENTY);
    let first = listed(&source).remove(0);
    proxy.inject(Request::reads, Often::Always, Fault::OtherETag);
    let Err(SourceError::Aws(error)) = source.read(&first.uri) else {
        panic!("it was read");
    };
    assert_eq!(error.kind, AwsErrorKind::Changed, "{error}");
    proxy.heal();
    assert!(source.read(&first.uri).unwrap() == content(0));
}

#[test]
fn oversized_objects_are_not_cached() {
    let (bucket, proxy) = (bucket_of_images("large"), proxy());
    let folder = tempfile::tempdir().unwrap();
    // An image may use a 64th of it.
    let max_bytes = 64 * content(0).len() as u64;
    bucket.put(&key(1), &content(0).repeat(2));
    let source = open_keeping(&bucket, &proxy, folder.path(), max_bytes);
    let samples = listed(&source);
    assert!(source.is_cached(samples[0].size_bytes) && !source.is_cached(samples[1].size_bytes));
    for _ in 0..2 {
        source.read(&samples[0].uri).unwrap();
        source.read(&samples[1].uri).unwrap();
    }
    assert_eq!(proxy.count(|request| request.reads_key(&key(0))), 1);
    assert_eq!(proxy.count(|request| request.reads_key(&key(1))), 2);
}

#[test]
fn canceled_read_does_not_stop_others() {
    let (bucket, proxy) = (bucket_of_images("patient"), proxy());
    let folder = tempfile::tempdir().unwrap();
    let source: Arc<dyn Source> = Arc::new(open_keeping(&bucket, &proxy, folder.path(), PLENTY));
    let first = listed(&*source).remove(0);
    proxy.inject(Request::reads, Often::First(1), Fault::StallAfter(100));
    let control = TaskControl::new(ProgressUnit::Bytes);
    let impatient = for_task(&source, &control);
    std::thread::scope(|scope| {
        let cancelled = scope.spawn(|| impatient.read(&first.uri));
        proxy.wait_until_stalled();
        control.cancel();
        assert!(cancelled.join().unwrap().is_err());
        assert!(source.read(&first.uri).unwrap() == content(0));
    });
}

#[test]
fn tfrecord_images_are_cached_and_their_list_is_not() {
    /// The object has 88 KB: a first block of 64 KiB, and the rest.
    const LISTING: usize = 2;
    let (bucket, proxy) = (Seaweed::shared().public_bucket("kept-records"), proxy());
    let folder = tempfile::tempdir().unwrap();
    let path = crate::support::repository().join("tests/tfrecord/photos.tfrecord");
    let photos = std::fs::read(path).unwrap();
    bucket.put("photos/photos.tfrecord", &photos);
    let count = || proxy.count(|request| request.reads_key("photos/photos.tfrecord"));
    let open = || WithRecords::over(Arc::new(open_keeping(&bucket, &proxy, folder.path(), PLENTY)));
    let source = open();
    let relisted = Arc::<Mutex<Vec<usize>>>::default();
    let hears = Arc::clone(&relisted);
    source.watch(Box::new(move |change| {
        if let ListingChange::FileRelisted { page, .. } = change {
            hears.lock().unwrap().push(page.samples.len());
        }
    }));
    let samples = listed(&source);
    assert_eq!((samples.len(), count()), (6, LISTING));
    let read = |source: &dyn Source| -> Vec<Vec<u8>> {
        let samples = samples.iter();
        samples.map(|sample| source.read(&sample.uri).unwrap()).collect()
    };
    let images = read(&source);
    assert!(read(&source) == images);
    assert_eq!(count(), LISTING + 6);
    let again = open();
    assert_eq!(listed(&again).len(), 6);
    assert!(read(&again) == images);
    assert_eq!(count(), 2 * LISTING + 6);

    // Without its first record.
    let first_len = u64::from_le_bytes(photos[..8].try_into().unwrap()) as usize + 16;
    bucket.put("photos/photos.tfrecord", &photos[first_len..]);
    // It is cached, and was not requested again.
    assert!(source.read(&samples[2].uri).unwrap() == images[2]);
    drop(std::fs::remove_dir_all(folder.path()));
    assert!(source.read(&samples[2].uri).is_err());
    assert_eq!(*relisted.lock().unwrap(), [5]);
    assert!(source.read(&samples[2].uri).unwrap() == images[3]);
}

#[test]
fn single_object_is_checked_on_relisting() {
    let (bucket, proxy) = (bucket_of_images("single"), proxy());
    let place = public_place(&bucket, &key(0), &proxy.endpoint());
    let source = open(&place);
    let before = listed(&source);
    assert_eq!(listed(&source), before);
    bucket.put(&key(0), b"another");
    let now = listed(&source);
    assert_eq!((now[0].name.as_str(), now[0].size_bytes), ("00.jpg", 7));
    bucket.delete(&key(0));
    assert!(listed(&source).is_empty());
}
