//! Retries: which images are sent again, and with what.

use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{POLL, SILENT_LOG, Transform, wait_for_next_second};
use crate::support::control_plane::Failure;
use crate::support::ended::Ended;
use crate::support::seaweed::ADMIN;
use crate::support::spotcheck_at;

#[test]
fn partly_failed_job_retries_only_failures() {
    let transform = Transform::with_images("partly", 5);
    transform.bucket.put("photos/bad: one.jpg", b"fail 400");
    let more = ["--watch", "--max-concurrent", "1", "--tag", "team=vision"];
    let started = transform.start("partly", "photos/", &more);
    let started = started.must(3, &["partly failed", "of 6 inputs", "transform retry partly"]);
    let failed = format!("failed {}: ClientError: 400", transform.bucket.uri("photos/bad: one.jpg"));
    assert!(started.stderr.contains(&failed), "{started:#?}");
    transform.run(&["logs", "partly", "--data-log"]).must(0, &["bad: one.jpg", "ClientError: 400"]);
    let outputs = |folder: &str| {
        let keys = (0..5).map(|number| format!("out/{folder}/day {}/{number:03}.jpg.out", number % 3));
        keys.filter(|key| transform.bucket.get(key).is_some()).count()
    };
    let good = outputs("partly");

    wait_for_next_second();
    transform.bucket.put("photos/bad: one.jpg", b"good now");
    let retried = transform.run(&["retry", "partly", "--watch"]).must(0, &[]);
    assert!(transform.sent().contains(&"bad: one.jpg".to_owned()));
    assert_eq!(transform.sent().len(), 6 - good);
    let job = retried.stdout.lines().next().unwrap().to_owned();
    assert!(job.starts_with("partly-retry-2"), "{job}");
    let prediction = transform.prediction(&format!("out/{job}/bad: one.jpg.out")).unwrap();
    assert_eq!(prediction["text"], "good now");
    assert_eq!(good + outputs(&job), 5);
    let jobs = transform.all_asked("CreateTransformJob");
    let (first, second) = (&jobs[0], &jobs[1]);
    for same in ["ModelName", "MaxConcurrentTransforms", "TransformResources", "BatchStrategy", "Tags"] {
        assert_eq!(first[same], second[same], "{same}");
    }
    assert_eq!(transform.plane.count("CreateModel"), 1);
    transform.run(&["retry", &job]).must(1, &["othing to retry"]);
    // The first job is complete now as well; the retry of another computer is recognized by its properties.
    let by_retry = format!("by retry {job}");
    let other = tempfile::tempdir().unwrap();
    let ask_at = |home: &std::path::Path, args: &[&str]| {
        let mut command = spotcheck_at(home, &["transform"]);
        command.args(args).stdin(Stdio::null());
        transform.plane.sign_in(&mut command, ADMIN);
        Ended::new(&command.output().unwrap())
    };
    let asked = transform.plane.count("CreateTransformJob");
    for home in [transform.home.path(), other.path()] {
        let status = ask_at(home, &["status", "partly", "--output", "json"]).must(0, &[]);
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        assert_eq!(status["status"], "failed");
        assert_eq!(status["without_output"], json!([]));
        let predicted = 6 - good;
        let retries = json!([{"job": job, "predicted": predicted, "under_way": 0}]);
        assert_eq!(status["retries"], retries);
        ask_at(home, &["retry", "partly"]).must(1, &[&by_retry]);
    }
    assert_eq!(transform.plane.count("CreateTransformJob"), asked);

    // The retry no longer needs its manifest, and the model was created for the first job.
    let deleted = transform.clean_up(&job);
    assert_eq!(deleted.len(), 1);
    assert!(deleted[0].starts_with("manifest s3://"), "{deleted:?}");
    assert_eq!(transform.clean_up("partly"), ["model partly"]);
    // The record still allows creating the model again, if something has to be sent again.
    transform.bucket.delete(&format!("out/{job}/bad: one.jpg.out"));
    transform.run(&["retry", "partly", "--watch"]).must(0, &[]);
    assert_eq!(transform.plane.count("CreateModel"), 2);
}

#[test]
fn completed_job_with_missing_outputs_is_reported() {
    let transform = Transform::with_images("short", 4);
    transform.plane.fail(Failure::NoOutput("002.jpg"));
    transform
        .start("short", "photos/", &["--watch"])
        .must(3, &["3 of 4 inputs", "“Completed”", "002.jpg: no output", SILENT_LOG, "transform retry short"]);
    transform.plane.heal();
    let status = transform.status("short", 3);
    assert_eq!(status["status"], "completed");
    assert_eq!((&status["outputs"], &status["inputs"]), (&json!(3), &json!(4)));
    let missing = transform.bucket.uri("photos/day 2/002.jpg");
    assert_eq!(status["without_output"].as_array().unwrap().len(), 1);
    assert_eq!(status["without_output"][0]["uri"], missing);
    transform.run(&["retry", "short", "--watch"]).must(0, &["1 image"]);
    assert_eq!(transform.sent(), ["day 2/002.jpg"]);
    transform.run(&["status", "short"]).must(0, &["all 4 images"]);
}

#[test]
fn running_retry_is_not_repeated() {
    let transform = Transform::with_images("twice", 3);
    transform.plane.fail(Failure::NoOutput("002.jpg"));
    transform.start("twice", "photos/", &["--watch"]).must(3, &[]);
    transform.plane.heal();
    transform.plane.pause_jobs();
    let retried = transform.run(&["retry", "twice"]).must(0, &[]);
    let job = retried.stdout.lines().next().unwrap().to_owned();
    let processing = format!("Retry {job} is");
    transform.run(&["retry", "twice"]).must(1, &[&processing]);
    let retries = json!([{"job": job, "predicted": 0, "under_way": 1}]);
    assert_eq!(transform.status("twice", 3)["retries"], retries);
    transform.run(&["status", "twice"]).must(3, &[&processing]);
    assert_eq!(transform.plane.count("CreateTransformJob"), 2);
    transform.plane.resume_jobs();
    transform.plane.wait_until_over(&job);
    transform.run(&["status", "twice"]).must(0, &[]);
}

#[test]
fn refused_images_are_retried_only_on_request() {
    let transform = Transform::with_images("refused", 2);
    let bad = ["photos/bad.jpg", "photos/worse.jpg"];
    for bad in bad {
        transform.bucket.put(bad, b"fail 400");
    }
    transform.plane.fail(Failure::NoOutput("001.jpg"));
    transform.start("refused", "photos/", &["--watch"]).must(3, &["model rejected 2", "spotcheck transform retry"]);
    transform.plane.heal();
    transform.run(&["retry", "refused", "--watch"]).must(0, &["2 images"]);
    assert_eq!(transform.sent(), ["day 1/001.jpg"]);
    // Only rejected images are left: no retry is recommended, and none is started.
    let only_refused = |transform: &Transform| {
        let status = transform.run(&["status", "refused"]).must(3, &["retry refused --all"]);
        let count = |words: &str| status.stderr.matches(words).count();
        assert_eq!(count("transform retry refused"), count("transform retry refused --all"), "{status:#?}");
        let jobs = transform.plane.count("CreateTransformJob");
        transform.run(&["retry", "refused"]).must(1, &["all 2 images", "--all"]);
        assert_eq!(transform.plane.count("CreateTransformJob"), jobs);
    };
    only_refused(&transform);
    assert_eq!(transform.status("refused", 3)["without_output"][0]["refused"], true);
    transform.run(&["retry", "refused", "--all", "--watch"]).must(1, &[]);
    assert_eq!(transform.sent(), ["bad.jpg", "worse.jpg"]);
    only_refused(&transform);

    // A replaced image may succeed. If a retry rejects it, that counts.
    wait_for_next_second();
    transform.bucket.put("photos/bad.jpg", b"good now");
    transform.bucket.put("photos/worse.jpg", b"fail 415");
    transform.run(&["retry", "refused", "--watch"]).must(3, &[]);
    assert_eq!(transform.sent(), ["bad.jpg", "worse.jpg"]);
    transform.run(&["retry", "refused"]).must(1, &["only image"]);
}

#[test]
fn deleted_model_is_not_suggested_for_a_retry() {
    let transform = Transform::with_images("cleaned", 2);
    transform.plane.fail(Failure::NoOutput("001.jpg"));
    transform.start("cleaned", "photos/", &["--watch", "--model-env", "KEY=secret"]).must(3, &[]);
    transform.plane.heal();
    let existing = ["retry", "cleaned", "--model-env", "KEY=other"];
    transform.run(&existing).must(1, &["Model cleaned already"]);
    assert_eq!(transform.clean_up("cleaned"), ["model cleaned"]);
    // The archive still exists, but the values of the variables are not stored.
    let status = transform.run(&["status", "cleaned"]);
    status.must(3, &["variables (KEY) are", "retry cleaned --model-env KEY=…"]);
    transform.run(&["retry", "cleaned"]).must(1, &["variables (KEY) are"]);
    let archive = transform.bucket.get("models/model.tar.gz").unwrap();
    transform.bucket.delete("models/model.tar.gz");
    let lost = "its archive were";
    let status = transform.run(&["status", "cleaned"]).must(3, &[lost]);
    assert!(!status.stderr.contains("transform retry"), "{status:#?}");
    transform.run(&["retry", "cleaned"]).must(1, &[lost]);
    assert_eq!(transform.plane.count("CreateTransformJob"), 1);

    transform.bucket.put("models/model.tar.gz", &archive);
    let again = ["retry", "cleaned", "--model-env", "KEY=secret", "--watch"];
    transform.run(&again).must(0, &[]);
    assert_eq!(transform.asked("CreateModel")["PrimaryContainer"]["Environment"]["KEY"], "secret");
    let kept = transform.records().into_iter().map(|record| std::fs::read_to_string(record).unwrap());
    assert!(kept.into_iter().all(|kept| !kept.contains("secret")));
}

#[test]
fn job_failed_before_any_image_is_not_retried_as_is() {
    let transform = Transform::with_images("no-answer", 22);
    transform.plane.fail(Failure::NoPing);
    let reason = "AlgorithmError: The primary container";
    let is_reason = |text: &str| text.contains("no output; job no-answer") && text.contains(reason);
    let watched = transform.start("no-answer", "photos/", &["--watch"]).must(1, &["no image has"]);
    assert!(!watched.stderr.contains("transform retry"), "{watched:#?}");
    // The first images are listed, the others counted.
    let must_be_short = |messages: &Ended| {
        assert_eq!(messages.stderr.lines().filter(|line| is_reason(line)).count(), 21, "{messages:#?}");
        messages.must_print("and 2 more: ");
    };
    must_be_short(&watched);
    // Each image has a line with that reason.
    let (lines, messages) = transform.fetch("no-answer", 3);
    must_be_short(&messages);
    assert_eq!(lines.len(), 22);
    for (_, line) in lines {
        assert!(is_reason(line["error"].as_str().unwrap()), "{line}");
    }
    messages.must_print("22 of 22 images failed");
    transform.plane.heal();
    transform.run(&["retry", "no-answer"]).must(1, &["ping health check", "transform logs no-answer", "--all"]);
    assert_eq!(transform.plane.count("CreateTransformJob"), 1);
    transform.run(&["retry", "no-answer", "--all", "--watch"]).must(0, &[]);
    assert_eq!(transform.sent().len(), 22);
    // If no instances were available, the container is not to blame.
    transform.plane.fail(Failure::NoCapacity);
    transform.start("no-capacity", "photos/", &["--watch"]).must(1, &[]);
    transform.plane.heal();
    transform.run(&["retry", "no-capacity", "--watch"]).must(0, &[]);
    assert_eq!(transform.sent().len(), 22);
}

#[test]
fn image_newer_than_the_job_is_not_missing() {
    let transform = Transform::with_images("later", 3);
    transform.plane.fail(Failure::NoOutput("002.jpg"));
    transform.start("later", "photos/", &["--watch"]).must(3, &[]);
    transform.plane.heal();
    // S3 reports modification times in seconds.
    let next_second = UNIX_EPOCH + Duration::from_secs_f64(transform.created_s("later").floor() + 1.0);
    while SystemTime::now() < next_second {
        std::thread::sleep(POLL);
    }
    transform.bucket.put("photos/new.jpg", b"taken afterwards");
    transform.run(&["status", "later"]).must(3, &["2 of 3 (66%)", "1 object below", "photos/new.jpg"]);
    let other = Transform { home: tempfile::tempdir().unwrap(), ..transform };
    let status = other.status("later", 3);
    assert_eq!((&status["outputs"], &status["inputs"]), (&json!(2), &json!(3)));
    assert_eq!(status["without_output"].as_array().unwrap().len(), 1);
    let retried = other.run(&["retry", "later", "--watch"]).must(0, &[]);
    assert_eq!(other.sent(), ["day 2/002.jpg"]);
    let job = retried.stdout.lines().next().unwrap();
    assert!(other.prediction(&format!("out/{job}/new.jpg.out")).is_none());
}

#[test]
fn oversized_image_reports_the_payload_it_needs() {
    let transform = Transform::with_images("too-large", 1);
    transform.bucket.put("photos/large.jpg", &vec![7; 1_100_000]);
    let more = ["--watch", "--max-payload-mb", "1", "--force"];
    transform.start("too-large", "photos/", &more).must(3, &["large.jpg: Too much", "exceeds MaxPayloadInMB"]);
    transform.run(&["retry", "too-large", "--max-payload-mb", "1"]).must(1, &["MaxPayloadInMB 1", "(413)"]);
    // Without the option, the value that the image needs is used.
    transform.run(&["retry", "too-large", "--watch"]).must(0, &["MaxPayloadInMB is 2", "1.0 MiB", "1 of 1 (100%)"]);
    assert_eq!(transform.sent(), ["large.jpg"]);
    assert_eq!(transform.asked("CreateTransformJob")["MaxPayloadInMB"], 2);
}

#[test]
fn retry_of_a_foreign_job_keeps_its_tags() {
    let transform = Transform::with_images("tags", 1);
    transform.bucket.put("photos/bad.jpg", b"fail 400");
    let tag = ["--tag", "team=vision"];
    transform.start("tagged", "photos/", &tag).must(0, &[]);
    transform.plane.wait_until_over("tagged");
    let other = Transform { home: tempfile::tempdir().unwrap(), ..transform };
    let retried = other.run(&["retry", "tagged", "--all"]).must(0, &[]);
    assert!(other.sent().contains(&"bad.jpg".to_owned()));
    let retry = retried.stdout.lines().next().unwrap();
    other.plane.wait_until_over(retry);
    let tags = &other.asked("CreateTransformJob")["Tags"];
    assert_eq!(*tags, json!([{"Key": "team", "Value": "vision"}]));
    let operation = "ListTags";
    other.plane.fail(Failure::AccessDenied { operation });
    other.run(&["retry", "tagged", "--all"]).must(0, &["its tags", "sagemaker:ListTags"]);
    let tags = &other.asked("CreateTransformJob")["Tags"];
    assert_eq!(*tags, Value::Null);
}
