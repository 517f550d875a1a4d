//! Annotations in S3: the same as those of the same local files.

use spotcheck::annotations::{AnnotationFormat, Found, open};
use spotcheck::aws::Aws;
use spotcheck::image::source::{Files, FilesError};
use spotcheck::tasks::{ProgressUnit, TaskControl};

use crate::s3::public_place;
use crate::support::repository;
use crate::support::seaweed::Seaweed;

fn read(files: &Files) -> Found {
    open(files, &TaskControl::new(ProgressUnit::Bytes)).unwrap()
}

#[test]
fn annotations_in_s3_equal_local_ones() {
    let bucket = Seaweed::shared().public_bucket("annotations");
    let endpoint = Seaweed::shared().endpoint();
    let cases = repository().join("tests/cases/annotations");
    bucket.put_folder("", &cases);
    for (place, format) in [
        ("coco/data-set/truth.json", AnnotationFormat::Coco),
        ("coco/results/results.json", AnnotationFormat::CocoResults),
        ("csv/boxes/predictions.csv", AnnotationFormat::Csv),
        ("json-lines/boxes/predictions.jsonl", AnnotationFormat::JsonLines),
        ("yolo/data-set/data.yaml", AnnotationFormat::Yolo),
        ("yolo/data-set/", AnnotationFormat::Yolo),
        ("voc/data-set", AnnotationFormat::PascalVoc),
        ("folders/by-class/input/", AnnotationFormat::ClassFolders),
    ] {
        let there = read(&Files::in_s3(&Aws::new(), &public_place(&bucket, place, &endpoint)));
        let here = read(&Files::local(&cases.join(place)));
        assert_eq!(there.format, format, "{place}");
        assert_eq!(there.annotations, here.annotations, "{place}");
        assert_eq!((there.files, there.entries, there.notes), (here.files, here.entries, here.notes), "{place}");
        assert!(!here.annotations.images.is_empty(), "{place}");
    }
}

#[test]
fn records_in_s3_include_their_annotations() {
    let bucket = Seaweed::shared().public_bucket("annotated-records");
    let endpoint = Seaweed::shared().endpoint();
    let file = repository().join("tests/tfrecord/photos.tfrecord");
    bucket.put("sets/photos.tfrecord", &std::fs::read(&file).unwrap());
    let place = public_place(&bucket, "sets/photos.tfrecord", &endpoint);
    let there = read(&Files::in_s3(&Aws::new(), &place));
    let here = read(&Files::local(&file));
    assert_eq!(there.format, AnnotationFormat::TfRecord);
    assert_eq!(there.annotations, here.annotations);
    assert_eq!(here.entries, 6);
    assert!(here.annotations.images.iter().any(|image| !image.labels.is_empty() || !image.boxes.is_empty()));
}

#[test]
fn missing_annotations_are_reported() {
    let bucket = Seaweed::shared().public_bucket("no-annotations");
    let endpoint = Seaweed::shared().endpoint();
    let files = Files::in_s3(&Aws::new(), &public_place(&bucket, "missing.json", &endpoint));
    let error = files.list(&TaskControl::new(ProgressUnit::Bytes)).unwrap_err();
    assert!(matches!(error, FilesError::NoSuchPlace { .. }), "{error}");
    assert!(error.to_string().contains("missing.json"), "{error}");
}
