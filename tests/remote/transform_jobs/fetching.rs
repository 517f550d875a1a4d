//! Which images of a job have a prediction, which failed, and which were never sent.

use serde_json::Value;

use super::{SILENT_LOG, Transform, check};
use crate::support::control_plane::Failure;
use crate::support::ended::Ended;

/// A prediction as returned by Spotcheck's container.
const OWN_PREDICTION: &str = r#"{"status":"ok","width":4,"height":3,"model":"toy","task":"classification",
    "classes":[{"index":1,"label":"cat","score":0.75}]}"#;

impl Transform {
    /// Replaces each existing output of the job by a readable prediction; returns their number.
    fn make_readable(&self, job: &str, images: &[&str]) -> usize {
        let keys = images.iter().map(|image| format!("out/{job}/{image}.out"));
        let there = keys.filter(|key| self.bucket.get(key).is_some());
        let put = there.map(|key| self.bucket.put(&key, OWN_PREDICTION.as_bytes()));
        put.count()
    }

    /// The lines of `fetch JOB PHOTOS --out -`, by image name, and everything that was printed.
    pub(super) fn fetch(&self, job: &str, code: i32) -> (Vec<(String, Value)>, Ended) {
        let photos = self.bucket.uri("photos/");
        let ended = self.run(&["fetch", job, &photos, "--out", "-"]);
        let ended = ended.must(code, &[]);
        let line = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            let name = line["uri"].as_str().unwrap().strip_prefix(&photos);
            (name.unwrap().to_owned(), line)
        };
        (ended.stdout.lines().map(line).collect(), ended)
    }
}

#[test]
fn missing_outputs_are_listed_with_reasons() {
    let transform = Transform::new("reasons");
    let images = ["0.jpg", "1.jpg", "2.jpg", "3.jpg", "4.jpg"];
    for image in images {
        let content: &[u8] = if image < "2" { b"fail 400" } else { b"good" };
        transform.bucket.put(&format!("photos/{image}"), content);
    }
    transform.plane.fail(Failure::NoOutput("3.jpg"));
    let more = ["--max-concurrent", "1", "--watch"];
    transform.start("reasons", "photos/", &more).must(3, &[]);
    assert_eq!(transform.make_readable("reasons", &images), 2);
    let (lines, messages) = transform.fetch("reasons", 3);
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, images);
    let status = |line: &Value| line["status"].as_str().unwrap().to_owned();
    let statuses: Vec<String> = lines.iter().map(|(_, line)| status(line)).collect();
    assert_eq!(statuses, ["failed", "failed", "ok", "failed", "ok"]);
    for (_, line) in &lines[..2] {
        let error = line["error"].as_str().unwrap();
        assert!(error.contains("ClientError: 400"), "{error}");
    }
    let error = lines[3].1["error"].as_str().unwrap();
    assert!(error.contains(SILENT_LOG), "{error}");
    messages.must_print("3 of 5 images failed");
}

#[test]
fn unsent_images_are_not_missing() {
    let transform = Transform::with_images("not-sent", 6);
    let list = transform.home.path().join("list.txt");
    let sent = ["day 0/000.jpg", "day 2/005.jpg"];
    std::fs::write(&list, sent.join("\n")).unwrap();
    let list = list.to_str().unwrap();
    let more = ["--images", list, "--watch"];
    transform.start("not-sent", "photos/", &more).must(0, &[]);
    assert_eq!(transform.make_readable("not-sent", &sent), 2);
    let (lines, messages) = transform.fetch("not-sent", 0);
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, sent);
    messages.must_print("4 images were not");
    // Nor when the manifest is gone.
    transform.run(&["clean-up", "not-sent", "--yes"]).must(0, &["manifest"]);
    assert_eq!(transform.fetch("not-sent", 0).0.len(), 2);

    // An image that was sent and got no output is missing.
    transform.plane.fail(Failure::NoOutput("005"));
    let more = ["--images", list, "--watch"];
    transform.start("one-short", "photos/", &more).must(3, &[]);
    transform.make_readable("one-short", &sent);
    let (lines, messages) = transform.fetch("one-short", 3);
    assert_eq!(lines.len(), 2);
    messages.must_print("1 of 6 images failed");
}

#[test]
fn hidden_objects_are_predicted_and_markers_skipped() {
    let transform = Transform::with_images("hidden", 3);
    for hidden in ["photos/.x.jpg", "photos/.thumbs/000.jpg"] {
        transform.bucket.put(hidden, b"a hidden one");
    }
    for marker in ["photos/", "photos/empty/"] {
        transform.bucket.put(marker, b"");
    }
    let found = transform.preflight("hidden", "photos/", &[]);
    let (grade, objects) = check(&found, "Objects");
    assert_eq!(grade, "warning");
    for messages in ["5 objects", "2 hidden objects", ".x.jpg", "folder marker"] {
        assert!(objects.contains(messages), "{messages}: {objects}");
    }
    transform.start("hidden", "photos/", &["--watch"]).must(0, &[]);
    // An output for a folder marker is not an unknown output.
    let images = ["day 0/000.jpg", "day 1/001.jpg", "day 2/002.jpg"];
    let all = [&images[..], &[".x.jpg", ".thumbs/000.jpg"]].concat();
    assert_eq!(transform.make_readable("hidden", &all), 5);
    for with_markers in [false, true] {
        if with_markers {
            for output in ["out/hidden/.out", "out/hidden/empty/.out"] {
                transform.bucket.put(output, b"{}");
            }
        }
        assert_eq!(transform.counts("hidden"), ("completed".to_owned(), 5, 5));
        let asked = transform.plane.count("CreateTransformJob");
        transform.run(&["retry", "hidden"]).must(1, &[]);
        assert_eq!(transform.plane.count("CreateTransformJob"), asked);
        let (lines, messages) = transform.fetch("hidden", 0);
        let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, images);
        messages.must_print("2 objects were skipped");
    }
    // An output for an object that was not an input is unknown.
    transform.bucket.put("out/hidden/else.jpg.out", b"{}");
    let (_, messages) = transform.fetch("hidden", 3);
    messages.must_print("else.jpg.out");
    // If there are only markers, there is nothing to transform.
    transform.bucket.put("bare/", b"");
    transform.must_find("bare/", &[], "Input", "problem", "No input");
}
