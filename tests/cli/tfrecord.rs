//! TFRecord files, written by a Python package (`tfrecord/make.py`), read by the real program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::{lines, repository, spotcheck, stderr};

const CLASSIFIER: &str = "efficientnet-lite0";

fn fixture(name: &str) -> PathBuf {
    repository().join("tests/tfrecord").join(name)
}

fn predict(source: &Path, model: &str, more: &[&str]) -> Output {
    let mut command = spotcheck(&["predict", "--model", model, "--out", "-"]);
    command.arg(source).args(more).output().unwrap()
}

fn uris(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["uri"].as_str().unwrap()).collect()
}

fn without_uri(lines: Vec<Value>) -> Vec<Value> {
    let mut lines = lines;
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("uri");
    }
    lines
}

#[test]
fn tfrecord_images_predict_like_files() {
    for model in [CLASSIFIER, "ssd-mobilenet-coco"] {
        let of_files = predict(&fixture("photos"), model, &[]);
        let of_records = predict(&fixture("photos.tfrecord"), model, &[]);
        assert!(of_records.status.success(), "{}", stderr(&of_records));
        let (of_files, of_records) = (lines(&of_files), lines(&of_records));
        assert_eq!(of_files.len(), 6);
        let file = fixture("photos.tfrecord");
        let expected: Vec<String> = (0..6).map(|number| format!("{}/#{number}", file.display())).collect();
        assert_eq!(uris(&of_records), expected);
        assert_eq!(without_uri(of_records), without_uri(of_files));
    }
}

#[test]
fn single_records_are_predicted_by_path() {
    let file = fixture("photos.tfrecord");
    let output = predict(&file.join("#4"), CLASSIFIER, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(lines(&output).len(), 1);
    let mut child = spotcheck(&["predict", "-", "--model", CLASSIFIER, "--out", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let photo = fixture("photos/china.jpg");
    let paths = format!("{}\n{1}/#5\n{1}/#9\n{1}/#0\n", photo.display(), file.display());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(paths.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let messages = stderr(&output);
    assert!(messages.contains("/#9: ") && messages.contains("6 records"), "{messages}");
    let lines = lines(&output);
    let uris = uris(&lines);
    assert_eq!(uris.len(), 3, "{uris:?}");
    for (uri, expected) in uris.iter().zip(["china.jpg", "tfrecord/#0", "tfrecord/#5"]) {
        assert!(uri.ends_with(expected), "{uri}");
    }
}

#[test]
fn damaged_tfrecord_loses_only_damaged_records() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(fixture("photos.tfrecord")).unwrap();
    let mut bytes = whole.clone();
    // In the middle of the first image, and after the middle of the last one.
    bytes[10_000] ^= 1;
    bytes.truncate(whole.len() - 1000);
    std::fs::write(folder.path().join("damaged.tfrecord"), bytes).unwrap();
    std::fs::write(folder.path().join("empty.tfrecord"), b"").unwrap();
    std::fs::write(folder.path().join("packed.tfrecord.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03").unwrap();
    std::fs::copy(fixture("photos/china.jpg"), folder.path().join("z.jpg")).unwrap();
    let output = predict(folder.path(), CLASSIFIER, &[]);
    assert_eq!(output.status.code(), Some(3));
    let messages = stderr(&output);
    for expected in [
        "damaged.tfrecord/#0: record 0",
        "checksum",
        "damaged.tfrecord: ",
        "1000 B are missing",
        "the 5 records",
        "empty.tfrecord: ",
        "packed.tfrecord.gz: ",
        "(gzip)",
    ] {
        assert!(messages.contains(expected), "{expected}:\n{messages}");
    }
    let lines = lines(&output);
    let is_ok: Vec<bool> = lines.iter().map(|line| line["status"] == "ok").collect();
    assert_eq!(is_ok, [false, true, true, true, true, true]);
}

#[test]
fn tfrecord_project_resumes_and_exports() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("photos.tfrecord");
    std::fs::copy(fixture("photos.tfrecord"), &file).unwrap();
    let project = folder.path().join("p.spotcheck");
    let with_project = ["--project", project.to_str().unwrap()];
    let begun = predict(&file, "ssd-mobilenet-coco", &[&with_project[..], &["--limit", "4"]].concat());
    assert!(begun.status.success(), "{}", stderr(&begun));
    let more = [&with_project[..], &["--resume"]].concat();
    let ended = predict(&file, "ssd-mobilenet-coco", &more);
    assert!(ended.status.success(), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("4 of 6 images"), "{}", stderr(&ended));
    assert_eq!(lines(&ended).len(), 6);
    // A rewritten file may contain other images.
    let written = std::fs::File::options().append(true).open(&file).unwrap();
    written.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let again = predict(&file, "ssd-mobilenet-coco", &more);
    assert!(stderr(&again).contains("predicted again: 6"), "{}", stderr(&again));

    let target = folder.path().join("yolo");
    let mut export = spotcheck(&["export", "--format", "yolo"]);
    let exported = export.arg(&project).arg("--out").arg(&target).output().unwrap();
    assert!(exported.status.success(), "{}", stderr(&exported));
    for label in ["chelsea", "grace_hopper", "5"] {
        let path = target.join(format!("labels/photos.tfrecord/{label}.txt"));
        assert!(path.exists(), "{}", path.display());
    }
}
