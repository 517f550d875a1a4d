//! Images in S3 on the command line, with a real server: files, output, and the credentials used.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::fault_proxy::{Fault, FaultProxy, Often, Response};
use crate::support::seaweed::{ADMIN, Bucket, Login, READER, STRANGER, Seaweed, without_aws};
use crate::support::{lines, repository, spotcheck, stderr};

/// Not signed in, with the profiles of the server available.
fn with_profiles(args: &[&str], endpoint: &str) -> Command {
    let mut command = spotcheck(args);
    without_aws(&mut command, endpoint).env("AWS_CONFIG_FILE", Seaweed::shared().aws_config());
    command
}

fn predict(place: &str, more: &[&str]) -> Command {
    let mut args = vec!["predict", place, "--model", "efficientnet-lite0"];
    args.extend(more);
    with_profiles(&args, &Seaweed::shared().endpoint())
}

fn must_succeed(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    output
}

/// The message of a command that fails.
fn failure(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    stderr(&output)
}

/// Images and other files, in the same order for people and for S3.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let samples = repository().join("assets/samples");
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    for (name, sample) in [("a b+.jpg", "rocket.jpg"), ("c%20d.png", "coffee.png"), ("sub/고양이.png", "chelsea.png")]
    {
        std::fs::copy(samples.join(sample), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("broken.jpg"), b"no image").unwrap();
    std::fs::write(folder.path().join("labels.csv"), b"a,b").unwrap();
    folder
}

fn filled_bucket(name: &str, folder: &Path) -> Bucket {
    let bucket = Seaweed::shared().bucket(name);
    bucket.put_folder("photos/", folder);
    bucket.put("photos-old/other.jpg", b"never asked for");
    bucket
}

#[test]
fn prefix_predictions_equal_local_ones() {
    let folder = folder();
    let bucket = filled_bucket("equal", folder.path());
    let place = bucket.uri("photos/");
    let run = |source: &str, more: &[&str]| {
        let mut command = predict(source, &["--out", "-"]);
        let output = command.args(more).output().unwrap();
        // One image is broken.
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        output
    };
    let remote = run(&place, &["--profile", "reader"]);
    let local = run(&folder.path().to_string_lossy(), &[]);
    let messages = stderr(&remote);
    assert!(messages.contains(": labels.csv"), "{messages}");
    let local_root = format!("{}/", folder.path().display());
    let expected: Vec<Value> = lines(&local)
        .into_iter()
        .map(|mut line| {
            let uri = line["uri"].as_str().unwrap();
            line["uri"] = uri.replacen(&local_root, &place, 1).into();
            line
        })
        .collect();
    assert_eq!(expected.len(), 4);
    assert_eq!(lines(&remote), expected);
}

#[test]
fn duplicates_between_a_prefix_and_a_folder_equal_local_ones() {
    let stored = folder();
    let other = tempfile::tempdir().unwrap();
    let samples = repository().join("assets/samples");
    std::fs::copy(samples.join("coffee.png"), other.path().join("copy.png")).unwrap();
    image::open(samples.join("chelsea.png")).unwrap().to_rgb8().save(other.path().join("saved again.jpg")).unwrap();
    std::fs::copy(samples.join("flower.jpg"), other.path().join("only here.jpg")).unwrap();
    let bucket = filled_bucket("duplicates", stored.path());
    let place = bucket.uri("photos/");
    let groups = |source: &str, more: &[&str]| {
        let endpoint = Seaweed::shared().endpoint();
        let mut command = with_profiles(&["duplicates", source, other.path().to_str().unwrap()], &endpoint);
        let output = command.args(more).output().unwrap();
        // There are duplicates.
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("broken.jpg"), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let found = groups(&place, &["--profile", "reader"]);
    assert_eq!(
        found,
        groups(stored.path().to_str().unwrap(), &[]).replace(&format!("{}/", stored.path().display()), &place)
    );
    let kinds: Vec<Value> =
        found.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].take()).collect();
    assert_eq!(kinds, ["exact", "near"]);
}

#[test]
fn s3_project_resumes_by_etag_and_is_exported() {
    let folder = folder();
    let bucket = filled_bucket("project", folder.path());
    let place = bucket.uri("photos/");
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("p.spotcheck");
    let project = project.to_str().unwrap();
    let endpoint = Seaweed::shared().endpoint();
    let run = |more: &[&str], status: i32| {
        let mut command = predict(&place, &["--project", project, "--out", "-"]);
        command.args(more).env_remove("AWS_ENDPOINT_URL_S3");
        command.args(["--profile", "reader", "--endpoint-url", &endpoint]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        output
    };
    // One image is broken.
    let first = run(&[], 3);
    // The same content under the same key is the same image, although it is newer.
    bucket.put_folder("photos/", folder.path());
    let again = run(&["--resume"], 3);
    assert!(stderr(&again).contains("4 of 4 images"), "{}", stderr(&again));
    assert_eq!(lines(&again), lines(&first));
    bucket.put("photos/broken.jpg", &std::fs::read(repository().join("assets/samples/rocket.jpg")).unwrap());
    let changed = run(&["--resume"], 0);
    assert!(stderr(&changed).contains("predicted again: 1"), "{}", stderr(&changed));

    let info = must_succeed(with_profiles(&["project", "info", project], &endpoint));
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains(&format!("{place}, accessed with profile reader")), "{info}");
    // Neither profile nor server is given: the project stores them.
    let out = home.path().join("out");
    let mut export =
        with_profiles(&["export", project, "--format", "pictures", "--out", out.to_str().unwrap()], &endpoint);
    export.env_remove("AWS_ENDPOINT_URL_S3");
    must_succeed(export);
    assert!(out.join("sub").is_dir(), "named from the prefix on");
    let stored = std::fs::read(project).unwrap();
    for login in [READER, ADMIN] {
        let secret = login.secret_key.as_bytes();
        assert!(!stored.windows(secret.len()).any(|window| window == secret));
    }
}

fn signed_in(login: Login, mut command: Command) -> Command {
    command.env("AWS_ACCESS_KEY_ID", login.access_key).env("AWS_SECRET_ACCESS_KEY", login.secret_key);
    command
}

#[test]
fn only_the_named_profile_is_used() {
    let folder = folder();
    let bucket = filled_bucket("who", folder.path());
    let place = bucket.uri("photos/a b+.jpg");
    must_succeed(signed_in(READER, predict(&place, &[])));
    let messages = failure(signed_in(ADMIN, predict(&place, &["--profile", "stranger"])));
    assert!(messages.contains("of profile stranger"), "{messages}");
    assert!(!messages.contains(STRANGER.secret_key), "{messages}");
    let messages = failure(signed_in(ADMIN, predict(&place, &["--profile", "absent"])));
    assert!(messages.contains("profile absent; it has admin, blind,"), "{messages}");
    let messages = failure(signed_in(ADMIN, predict(&bucket.uri("photos/"), &["--anonymous"])));
    assert!(messages.contains("s3:ListBucket"), "{messages}");
    let messages = failure(predict(&place, &[]));
    assert!(messages.contains("AWS credentials"), "{messages}");
    // Without the permission to list, an object can still be opened by its name.
    must_succeed(predict(&place, &["--profile", "blind"]));
    let messages = failure(predict(&bucket.uri("photos/"), &["--profile", "blind"]));
    assert!(messages.contains("profile blind") && messages.contains("s3:ListBucket"), "{messages}");
}

#[test]
fn bucket_region_is_detected() {
    let folder = folder();
    let bucket = filled_bucket("region", folder.path());
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let moved = Response::s3_error(
        "301 Moved Permanently",
        "PermanentRedirect",
        "The bucket you are attempting to access must be addressed using the specified endpoint.",
    )
    .header("x-amz-bucket-region", "eu-central-1");
    proxy.inject(|request| request.region() != Some("eu-central-1"), Often::Always, Fault::Response(moved));
    let place = bucket.uri("photos/a b+.jpg");
    let mut command = predict(&place, &["--profile", "reader", "--endpoint-url", &proxy.endpoint()]);
    command.env_remove("AWS_ENDPOINT_URL_S3");
    must_succeed(command);
    let redirected = proxy.count(|request| request.region() != Some("eu-central-1"));
    assert_eq!(redirected, 1, "asked once, remembered afterwards");
}

#[test]
fn missing_bucket_and_silent_server_are_one_message() {
    let messages = failure(predict("s3://no-such-bucket/photos/", &["--profile", "reader"]));
    assert!(messages.contains("bucket no-such-bucket"), "{messages}");
    let mut unreachable = predict("s3://bucket/", &["--profile", "reader", "--endpoint-url"]);
    unreachable.arg("http://127.0.0.1:1");
    let messages = failure(unreachable);
    assert!(messages.contains("http://127.0.0.1:1 refused"), "{messages}");
    let messages = failure(predict("assets/samples", &["--profile", "reader"]));
    assert!(messages.contains("not for: assets/samples"), "{messages}");
    let messages = failure(predict("https://example.org/", &[]));
    assert!(messages.contains("no bucket name"), "{messages}");
}

#[test]
fn tfrecord_object_predicts_like_the_file() {
    let file = repository().join("tests/tfrecord/photos.tfrecord");
    let bucket = Seaweed::shared().bucket("records");
    bucket.put("set/photos.tfrecord", &std::fs::read(&file).unwrap());
    let run = |source: &str, more: &[&str]| {
        let mut command = predict(source, &["--out", "-"]);
        command.args(more);
        lines(&must_succeed(command))
    };
    let local = run(file.to_str().unwrap(), &[]);
    assert_eq!(local.len(), 6);
    let in_place_of = |line: &Value, from: &str, to: &str| {
        let mut line = line.clone();
        line["uri"] = line["uri"].as_str().unwrap().replace(from, to).into();
        line
    };
    let object = bucket.uri("set/photos.tfrecord");
    let expected: Vec<Value> = local.iter().map(|line| in_place_of(line, file.to_str().unwrap(), &object)).collect();
    let reader = ["--profile", "reader"];
    assert_eq!(run(&object, &reader), expected);
    assert_eq!(run(&bucket.uri("set/"), &reader), expected);
    assert_eq!(run(&format!("{object}/#4"), &reader), expected[4..5]);

    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("p.spotcheck");
    let saved = ["--project", project.to_str().unwrap()];
    run(&object, &[&reader[..], &saved, &["--limit", "2"]].concat());
    let resumed = run(&object, &[&reader[..], &saved, &["--resume"]].concat());
    assert_eq!(resumed, expected);
    let target = folder.path().join("pictures");
    let mut export = with_profiles(&["export"], &Seaweed::shared().endpoint());
    export.arg(&project).args(["--format", "pictures", "--out"]);
    export.arg(&target);
    must_succeed(export);
    let image = target.join("photos.tfrecord/grace_hopper.jpg");
    assert!(image.exists(), "{}", image.display());
}

#[test]
fn no_subfolders_are_listed_on_request() {
    let bucket = Seaweed::shared().bucket("cli-layout");
    let image = std::fs::read(repository().join("assets/samples/rocket.jpg")).unwrap();
    for key in ["a.jpg", "sub/b.jpg"] {
        bucket.put(key, &image);
    }
    let uris = |more: &[&str]| {
        let mut args = vec!["--profile", "reader", "--out", "-"];
        args.extend(more);
        let output = must_succeed(predict(&bucket.uri(""), &args));
        let uris = lines(&output).into_iter().map(|line| line["uri"].as_str().unwrap().to_owned());
        uris.collect::<Vec<_>>()
    };
    let all = [bucket.uri("a.jpg"), bucket.uri("sub/b.jpg")];
    assert_eq!(uris(&["--layout", "folder"]), all[..1]);
    assert_eq!(uris(&["--layout", "flat"]), all);
    assert_eq!(uris(&[]), all);
}

#[test]
fn key_with_control_characters_is_read() {
    let bucket = Seaweed::shared().bucket("cli-odd-keys");
    let image = std::fs::read(repository().join("assets/samples/rocket.jpg")).unwrap();
    let keys = ["bell\u{7}.jpg", "plus + space & <tag>.jpg", "tab\t.jpg"];
    for key in keys {
        bucket.put(key, &image);
    }
    let output = must_succeed(predict(&bucket.uri(""), &["--profile", "reader", "--out", "-"]));
    let found = lines(&output);
    assert_eq!(found.len(), keys.len(), "{}", stderr(&output));
    for (line, key) in found.iter().zip(keys) {
        assert_eq!(line["uri"], bucket.uri(key));
        assert_eq!(line["status"], "ok", "{line}");
    }
}

#[test]
fn annotated_images_need_no_second_read() {
    let bucket = Seaweed::shared().bucket("cli-annotate");
    let samples = repository().join("assets/samples");
    for name in ["rocket.jpg", "coffee.png"] {
        bucket.put(name, &std::fs::read(samples.join(name)).unwrap());
    }
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let folder = tempfile::tempdir().unwrap();
    let annotated = folder.path().join("annotated");
    let uri = bucket.uri("");
    let args = [
        "predict",
        &uri,
        "--model",
        "efficientnet-lite0",
        "--profile",
        "reader",
        "--annotate",
        annotated.to_str().unwrap(),
    ];
    must_succeed(with_profiles(&args, &proxy.endpoint()));
    // With them is the marker of the folder.
    assert_eq!(std::fs::read_dir(&annotated).unwrap().count(), 3);
    assert_eq!(proxy.count(crate::support::fault_proxy::Request::reads), 2);
}

#[test]
fn project_remembers_the_server_of_the_environment() {
    let bucket = Seaweed::shared().bucket("cli-server");
    let image = std::fs::read(repository().join("assets/samples/coffee.png")).unwrap();
    bucket.put("a.png", &image);
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("p.spotcheck");
    let project = project.to_str().unwrap();
    must_succeed(predict(&bucket.uri(""), &["--profile", "reader", "--project", project]));
    let images = folder.path().join("pictures");
    let args = ["export", project, "--format", "pictures", "--out", images.to_str().unwrap()];
    // No server runs at the address that the environment now has.
    must_succeed(with_profiles(&args, "http://127.0.0.1:9"));
    assert!(images.join("a.png").is_file());
}

/// A model of a few hundred bytes, so that reading is measured.
fn with_tiny_model(place: &str, project: &Path, endpoint: &str) -> Command {
    let model = repository().join("tests/cases/conventions/keras-cifar10/model.onnx");
    let mut command = with_profiles(&["predict", place, "--profile", "reader"], endpoint);
    command.arg("--model").arg(model).arg("--project");
    command.arg(project).args(["--out", "-"]);
    command
}

fn tiny_image() -> Vec<u8> {
    let mut image = std::io::Cursor::new(Vec::new());
    let drawn = image::RgbImage::from_fn(8, 8, |x, y| image::Rgb([x as u8 * 30, y as u8 * 30, 9]));
    drawn.write_to(&mut image, image::ImageFormat::Png).unwrap();
    image.into_inner()
}

#[test]
fn run_resumes_when_the_server_returns() {
    const IMAGES: usize = 3000;
    const READ_BEFORE: usize = 679;
    let bucket = Seaweed::shared().bucket("outage");
    bucket.fill(IMAGES, |number| format!("photos/{number:04}.png"), &tiny_image());
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let reads = crate::support::fault_proxy::Request::reads;
    proxy.inject(reads, Often::After(READ_BEFORE), Fault::Outage);
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("p.spotcheck");
    let place = bucket.uri("photos/");
    let run = || with_tiny_model(&place, &project, &proxy.endpoint());

    let stopped = run().output().unwrap();
    let messages = stderr(&stopped);
    assert_eq!(stopped.status.code(), Some(1), "{messages}");
    assert!(messages.contains("--resume") && messages.contains(&proxy.endpoint()), "{messages}");
    let before = lines(&stopped);
    assert!((1..=READ_BEFORE).contains(&before.len()), "{}", before.len());
    assert!(before.iter().all(|line| line["status"] == "ok"), "{messages}");

    proxy.restart();
    let read_before = proxy.count(reads);
    let resumed = run().arg("--resume").output().unwrap();
    let messages = stderr(&resumed);
    assert_eq!(resumed.status.code(), Some(0), "{messages}");
    let rest = IMAGES - before.len();
    assert_eq!(proxy.count(reads) - read_before, rest);
    assert!(messages.contains(&format!("{} remain", spotcheck::domain::grouped(rest))), "{messages}");
    let all = lines(&resumed);
    assert_eq!(all.len(), IMAGES);
    for (number, line) in all.iter().enumerate() {
        assert_eq!(line["uri"], bucket.uri(&format!("photos/{number:04}.png")));
        assert_eq!(line["status"], "ok", "{line}");
    }
}

/// The results of a run with one bad object, and of a run with only such objects.
#[test]
fn object_error_fails_one_image_and_outage_the_run() {
    let bucket = Seaweed::shared().bucket("faults");
    let name = |number: usize| format!("photos/{number:02}.png");
    bucket.fill(40, name, &tiny_image());
    let place = bucket.uri("photos/");
    for (status, code) in [("403 Forbidden", "AccessDenied"), ("500 Internal Server Error", "InternalError")] {
        let home = tempfile::tempdir().unwrap();
        let run = |proxy: &FaultProxy, project: &str, more: &[&str]| {
            let project = home.path().join(project);
            let mut command = with_tiny_model(&place, &project, &proxy.endpoint());
            command.args(more).output().unwrap()
        };
        let failed = |output: &Output| {
            let lines = lines(output);
            lines.iter().filter(|line| line["status"] != "ok").count()
        };
        let proxy = FaultProxy::before(Seaweed::shared().address());
        let is_seventh = move |request: &crate::support::fault_proxy::Request| request.reads_key("photos/07.png");
        proxy.inject(is_seventh, Often::Always, Fault::error(status, code));
        let one = run(&proxy, "one.spotcheck", &[]);
        assert_eq!(one.status.code(), Some(3), "{}", stderr(&one));
        assert_eq!((lines(&one).len(), failed(&one)), (40, 1));
        let again = run(&proxy, "one.spotcheck", &["--resume"]);
        assert!(stderr(&again).contains("--retry-failed"), "{}", stderr(&again));

        let proxy = FaultProxy::before(Seaweed::shared().address());
        let reads = crate::support::fault_proxy::Request::reads;
        proxy.inject(reads, Often::After(10), Fault::error(status, code));
        let all = run(&proxy, "all.spotcheck", &[]);
        assert_eq!(all.status.code(), Some(1), "{}", stderr(&all));
        assert_eq!(failed(&all), 0, "{}", stderr(&all));
        proxy.heal();
        let resumed = run(&proxy, "all.spotcheck", &["--resume"]);
        assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
        assert_eq!((lines(&resumed).len(), failed(&resumed)), (40, 0));
    }
}

#[test]
fn s3_evaluation_equals_the_local_one() {
    let fixture = repository().join("tests/evaluation/crowds");
    let bucket = Seaweed::shared().bucket("evaluated");
    bucket.put_folder("crowds/", &fixture);
    let here = |name: &str| fixture.join(name).to_str().unwrap().to_owned();
    let there = |name: &str| bucket.uri(&format!("crowds/{name}"));
    let evaluate = |truth: &str, predictions: &str, profile: &[&str]| {
        let flags = ["evaluate", "--truth", truth, "--predictions", predictions, "--draws", "0", "--out", "-"];
        let mut command = with_profiles(&flags, &Seaweed::shared().endpoint());
        command.args(profile);
        command
    };
    let metrics = |command: Command, truth: &str| {
        let mut metrics: Value = serde_json::from_slice(&must_succeed(command).stdout).unwrap();
        assert_eq!(metrics["truth"], truth);
        let names = metrics.as_object_mut().unwrap();
        names.remove("truth");
        names.remove("predictions");
        metrics
    };
    let [truth, results] = ["truth.json", "results.json"];
    let local = metrics(evaluate(&here(truth), &here(results), &[]), &here(truth));
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(here("expected.json")).unwrap()).unwrap();
    assert!((local["ap"].as_f64().unwrap() - expected["stats"][0].as_f64().unwrap()).abs() < 1e-9);
    let reader = ["--profile", "reader"];
    assert_eq!(metrics(evaluate(&there(truth), &there(results), &reader), &there(truth)), local);
    assert_eq!(metrics(evaluate(&there(truth), &here(results), &reader), &there(truth)), local);
    let missing = failure(evaluate(&there("missing.json"), &here(results), &reader));
    assert!(missing.contains("the ground truth") && missing.contains("missing.json"), "{missing}");
    let refused = failure(evaluate(&there(truth), &here(results), &["--profile", "stranger"]));
    assert!(refused.contains("the ground truth"), "{refused}");
}

#[test]
fn s3_images_give_sizes_for_relative_boxes() {
    let bucket = Seaweed::shared().bucket("sizes");
    let chelsea = repository().join("assets/samples/chelsea.png");
    bucket.put("images/a.png", &std::fs::read(chelsea).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth.csv");
    std::fs::write(&truth, "image,class_id,x,y,w,h\na.png,0,0,0,451,150\n").unwrap();
    bucket.put("labels/a.txt", b"0 0.5 0.25 1 0.5 0.9\n");
    let (images, labels) = (bucket.uri("images/"), bucket.uri("labels/"));
    let flags = ["evaluate", &images, "--profile", "reader", "--predictions", &labels, "--out", "-", "--draws", "0"];
    let mut command = with_profiles(&flags, &Seaweed::shared().endpoint());
    command.arg("--truth").arg(&truth);
    let metrics: Value = serde_json::from_slice(&must_succeed(command).stdout).unwrap();
    // pycocotools divides by slightly more than the number of detections.
    assert!((metrics["ap"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{metrics}");
}
