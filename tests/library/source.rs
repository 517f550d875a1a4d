//! An S3 prefix as a source of images, on a real server.

#[path = "../support/source_contract.rs"]
mod source_contract;

use std::sync::Arc;

use source_contract::check_contract;
use spotcheck::aws::{Aws, AwsError, AwsErrorKind};
use spotcheck::domain::{Credentials, S3Access, S3Address, S3Layout, S3Place, Sample, SampleUri};
use spotcheck::image::source::{DrawnListing, Page, S3Source, Source, SourceError, WithRecords, for_task};
use spotcheck::review::{DrawBy, DrawnImages, ImageDraw};
use spotcheck::tasks::{ProgressUnit, TaskControl};

use crate::support::seaweed::{Bucket, Seaweed};

type File = (&'static str, &'static [u8]);

const FILES: [File; 4] =
    [("0.jpg", b""), ("10+.jpg", b"ten"), ("2 with space & %41.png", b"two"), ("고양이.jpg", b"cat")];

fn place(bucket: &Bucket, prefix: &str) -> S3Place {
    S3Place {
        address: S3Address::new(&bucket.name, prefix),
        access: S3Access {
            credentials: Credentials::Anonymous,
            endpoint: Some(Seaweed::shared().endpoint()),
            ..S3Access::default()
        },
        layout: S3Layout::Flat,
    }
}

fn open(bucket: &Bucket, prefix: &str) -> Result<S3Source, AwsError> {
    S3Source::open(&Aws::new(), &place(bucket, prefix), None)
}

fn names(source: &dyn Source) -> Vec<String> {
    let samples = source.pages().flat_map(|page| page.samples);
    samples.map(|sample| sample.name).collect()
}

#[test]
fn s3_prefix_keeps_the_contract() {
    let bucket = Seaweed::shared().public_bucket("contract");
    for (name, bytes) in FILES {
        bucket.put(&format!("my photos+/{name}"), bytes);
    }
    bucket.put("my photos+-old/other.jpg", b"other");
    let source = open(&bucket, "my photos+/").unwrap();
    let missing = format!("s3://{}/my photos+/missing.jpg", bucket.name);
    check_contract(&source, &FILES, &missing);
    let with_records = WithRecords::over(Arc::new(source.clone()));
    check_contract(&with_records, &FILES, &missing);
    let uri = format!("s3://{}/my photos+/고양이.jpg", bucket.name);
    assert_eq!(source.read(&SampleUri::new(uri)).unwrap(), b"cat");
}

#[test]
fn prefix_names_an_object_or_a_folder() {
    let bucket = Seaweed::shared().public_bucket("meant");
    for key in ["photos/a.jpg", "photos/b/c.jpg", "photos-old/d.jpg", "photos.jpg", "hash/0a1b2c"] {
        bucket.put(key, b"x");
    }
    for (prefix, expected) in [
        ("photos/", &["a.jpg", "b/c.jpg"][..]),
        ("photos", &["a.jpg", "b/c.jpg"]),
        ("photos.jpg", &["photos.jpg"]),
        ("hash/0a1b2c", &["0a1b2c"]),
        ("hash/", &["0a1b2c"]),
        ("", &["photos-old/d.jpg", "photos.jpg", "photos/a.jpg", "photos/b/c.jpg"]),
    ] {
        let source = open(&bucket, prefix).unwrap_or_else(|error| panic!("{prefix}: {error}"));
        // SeaweedFS sorts folders among files by their names, not by their keys.
        let mut names = names(&source);
        names.sort();
        assert_eq!(names, expected, "{prefix}");
    }
    let in_folder = S3Place { layout: S3Layout::Folder, ..place(&bucket, "photos/") };
    let source = S3Source::open(&Aws::new(), &in_folder, None).unwrap();
    assert_eq!(names(&source), ["a.jpg"]);
    for prefix in ["photo", "photo/", "photos/a"] {
        let error = open(&bucket, prefix).err().unwrap();
        assert_eq!(error.kind, AwsErrorKind::NotFound, "{error}");
        assert!(
            error.message.contains(&format!("s3://{}/photo", bucket.name))
                || prefix == "photos/a" && error.message.contains("photos/a.jpg"),
            "{error}"
        );
    }
    let error = open(&bucket, "elsewhere/").err().unwrap();
    assert_eq!(error.kind, AwsErrorKind::NotFound, "{error}");
}

#[test]
fn skipped_keys_of_a_prefix_are_reported() {
    let bucket = Seaweed::shared().public_bucket("left-out");
    for key in ["set/a.jpg", "set/labels.csv", "set/_SUCCESS", "set/.cache/x.jpg"] {
        bucket.put(key, b"x");
    }
    let source = open(&bucket, "set/").unwrap();
    let pages: Vec<Page> = source.pages().collect();
    let notes: Vec<&str> = pages.iter().flat_map(|page| &page.notes).map(String::as_str).collect();
    let [unnamed, hidden] = notes[..] else { panic!("{notes:?}") };
    assert!(unnamed.starts_with("2 objects ") && unnamed.ends_with(": _SUCCESS, labels.csv"), "{unnamed}");
    assert!(hidden.starts_with("One object ") && hidden.ends_with(": .cache/x.jpg"), "{hidden}");
}

#[test]
fn long_listing_is_paged_with_etags() {
    let bucket = Seaweed::shared().public_bucket("long");
    let keys: Vec<String> = (0..2345).map(|number| format!("n/{number:05}.jpg")).collect();
    bucket.fill(keys.len(), |number| keys[number].clone(), b"x");
    let source = open(&bucket, "n/").unwrap();
    let pages: Vec<Page> = source.pages().collect();
    assert!(pages.len() >= 3, "{}", pages.len());
    let samples: Vec<_> = pages.into_iter().flat_map(|page| page.samples).collect();
    let listed: Vec<String> = samples.iter().map(|sample| format!("n/{}", sample.name)).collect();
    assert_eq!(listed, keys);
    // The MD5 of “x”.
    let etag = "9dd4e461268c8034f5c8564e155c67a6";
    assert!(samples.iter().all(|sample| sample.etag.as_deref() == Some(etag)));
    assert!(samples.iter().all(|sample| sample.stamp().modified_ns.is_none()));
}

#[test]
fn canceled_task_stops_waiting() {
    let bucket = Seaweed::shared().public_bucket("cancelled");
    bucket.put("a.jpg", b"x");
    let source: Arc<dyn Source> = Arc::new(open(&bucket, "").unwrap());
    let control = TaskControl::new(ProgressUnit::Images);
    let of_task = for_task(&source, &control);
    let uri = SampleUri::new(format!("s3://{}/a.jpg", bucket.name));
    assert_eq!(of_task.read(&uri).unwrap(), b"x");
    control.cancel();
    assert!(matches!(of_task.read(&uri), Err(SourceError::Cancelled)));
    assert_eq!(of_task.pages().count(), 0);
    assert_eq!(source.read(&uri).unwrap(), b"x", "the source itself goes on");
}

/// Written by `tests/tfrecord/make.py`.
fn photos() -> Vec<u8> {
    std::fs::read(crate::support::repository().join("tests/tfrecord/photos.tfrecord")).unwrap()
}

#[test]
fn tfrecord_object_is_listed_and_read_in_place() {
    let bucket = Seaweed::shared().public_bucket("records");
    bucket.put("set/a.jpg", b"a");
    bucket.put("set/photos.tfrecord", &photos());
    bucket.put("set/train-00000-of-00001", &photos());
    bucket.put("set/z.jpg", b"z");
    let folder = crate::support::repository().join("tests/tfrecord/photos");
    for (prefix, beside) in [("set/", 2), ("set/photos.tfrecord", 0)] {
        let source = WithRecords::over(Arc::new(open(&bucket, prefix).unwrap()));
        let pages: Vec<Page> = source.pages().collect();
        let problems: Vec<_> = pages.iter().flat_map(|page| &page.problems).collect();
        assert!(problems.is_empty(), "{problems:?}");
        let samples: Vec<_> = pages.iter().flat_map(|page| &page.samples).collect();
        let in_shard = if beside == 0 { 0 } else { 6 };
        assert_eq!(samples.len(), 6 + in_shard + beside);
        let coffee = samples.iter().find(|sample| sample.name == "photos.tfrecord/coffee.png").unwrap();
        let uri = format!("s3://{}/set/photos.tfrecord/#2", bucket.name);
        assert_eq!(coffee.uri.as_str(), uri);
        assert!(coffee.etag.is_some());
        let expected = std::fs::read(folder.join("coffee.png")).unwrap();
        let (read, truth) = source.read_with_truth(&coffee.uri).unwrap();
        assert_eq!(read, expected);
        assert_eq!(truth.boxes.len(), 2);
        assert_eq!(truth.labels[0].to_string(), "coffee mug (505)");
    }
}

#[test]
fn changed_tfrecord_object_is_noticed_when_read() {
    let bucket = Seaweed::shared().public_bucket("replaced");
    bucket.put("photos.tfrecord", &photos());
    let source = WithRecords::over(Arc::new(open(&bucket, "photos.tfrecord").unwrap()));
    let samples: Vec<_> = source.pages().flat_map(|page| page.samples).collect();
    let whole = source.read(&samples[3].uri).unwrap();
    // The same images without the first one.
    let first_len = 16 + u64::from_le_bytes(photos()[..8].try_into().unwrap()) as usize;
    bucket.put("photos.tfrecord", &photos()[first_len..]);
    assert_eq!(source.read(&samples[2].uri).unwrap(), whole);
    bucket.put("photos.tfrecord", b"something else");
    let error = source.read(&samples[2].uri).unwrap_err();
    assert!(matches!(error, SourceError::Damaged(_)), "{error:?}");
    assert!(error.to_string().contains("record 2"), "{error}");
    bucket.delete("photos.tfrecord");
    let error = source.read(&samples[2].uri).unwrap_err();
    assert!(matches!(error, SourceError::NotFound), "{error}");
}

#[test]
fn single_record_opens_by_its_address() {
    let bucket = Seaweed::shared().public_bucket("one-record");
    bucket.put("set/photos.tfrecord", &photos());
    let open = |prefix: &str| {
        WithRecords::in_s3(&Aws::new(), &place(&bucket, prefix), None, |source| source).map(|(source, _)| source)
    };
    let source = open("set/photos.tfrecord/#4").unwrap();
    assert_eq!(source.name(), format!("s3://{}/set/photos.tfrecord/#4", bucket.name));
    assert_eq!(names(&source), ["photos.tfrecord/grace_hopper.jpg"]);
    assert_eq!(names(&open("set/").unwrap()).len(), 6);
    for nothing in ["set/other.tfrecord/#4", "set/#4", "set/photos.tfrecord/4"] {
        let error = open(nothing).err().unwrap();
        assert_eq!(error.kind, AwsErrorKind::NotFound, "{error}");
    }
    let (samples, problems): (Vec<_>, Vec<_>) =
        open("set/photos.tfrecord/#6").unwrap().pages().map(|page| (page.samples, page.problems)).unzip();
    assert!(samples.concat().is_empty());
    assert!(problems.concat()[0].message.contains("6 records"));
}

/// Keys in 50 prefixes, a thousand per page like those of S3.
struct Simulated {
    keys: usize,
}

impl Source for Simulated {
    fn name(&self) -> String {
        "simulated".to_owned()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let keys = self.keys;
        let sample = move |key: usize| {
            let name = format!("{:02}/images/{key:08}.jpg", key * 50 / keys);
            Sample {
                uri: SampleUri::new(format!("s3://a-bucket/a/prefix/{name}")),
                name,
                size_bytes: key as u64,
                modified_ns: None,
                etag: Some("9dd4e461268c8034f5c8564e155c67a6".into()),
                capture: None,
            }
        };
        Box::new((0..keys).step_by(1000).map(move |first| Page {
            samples: (first..keys.min(first + 1000)).map(sample).collect(),
            ..Page::default()
        }))
    }

    fn read(&self, _: &SampleUri) -> Result<Vec<u8>, SourceError> {
        Err(SourceError::NotFound)
    }

    fn read_range(&self, uri: &SampleUri, _: std::ops::Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.read(uri)
    }
}

/// The most memory that this process has used, in MB, as counted by Linux.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1000
}

/// Draws 1,000 images, and checks how much more memory that took.
#[expect(clippy::print_stdout, reason = "the manual states what it prints")]
fn draw_from(keys: usize, max_megabytes: u64) {
    let control = TaskControl::new(ProgressUnit::Images);
    let mut draw = ImageDraw::new(DrawBy::Prefix, 1000, 1);
    let (before, begun) = (peak_megabytes(), std::time::Instant::now());
    DrawnListing::read(&Simulated { keys }, &mut draw, &control).unwrap();
    let DrawnImages { strata, images, .. } = draw.finish();
    let used = peak_megabytes() - before;
    println!("{keys} keys: {:.1} s, {used} MB", begun.elapsed().as_secs_f64());
    assert!(used < max_megabytes, "{used} MB");
    let sizes: Vec<(usize, usize)> = strata.iter().map(|stratum| (stratum.population, stratum.sampled)).collect();
    assert_eq!(sizes, vec![(keys / 50, 20); 50]);
    assert_eq!(images.len(), 1000);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_a_draw_is_that_of_the_sample() {
    draw_from(200_000, 200);
}

/// Takes a minute unoptimized: `cargo test --test library -- --ignored --exact --nocapture
/// source::ten_million_keys_are_drawn_from`.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "takes a minute"]
fn ten_million_keys_are_drawn_from() {
    draw_from(10_000_000, 200);
}
