//! Paths that cannot be read: pipes, devices, broken links and addresses of other services.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::ended::Ended;
use crate::support::spotcheck;

const MODEL: &str = "efficientnet-lite0";

#[track_caller]
fn check(args: &[&str], expected: &str) {
    let mut command = spotcheck(args);
    command.stdin(Stdio::null()).env("AWS_EC2_METADATA_DISABLED", "true");
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"]
    {
        command.env_remove(name);
    }
    for name in ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"] {
        command.env(name, "/no/such/file");
    }
    let ended = Ended::run(&mut command);
    assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
    assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
}

#[cfg(unix)]
fn pipe(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path.to_str().unwrap().to_owned()
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = "not a file but a pipe or device";
    let (image, model) = (pipe(folder.path(), "pipe.jpg"), pipe(folder.path(), "p.onnx"));
    let truth = pipe(folder.path(), "truth.json");
    check(&["predict", "--model", MODEL, &image], refused);
    check(&["predict", "--model", MODEL, "/dev/zero"], refused);
    check(&["predict", "assets/samples", "--model", &model], refused);
    check(&["models", "inspect", &model], refused);
    check(&["models", "add", &model], refused);
    check(&["models", "inspect", "tests/parity/resnet50/model.onnx", "--labels", &truth], refused);
    check(&["evaluate", "--predictions", "tests/evaluation/small/results.json", "--truth", &truth], refused);
    let project = pipe(folder.path(), "p.spotcheck");
    check(&["project", "info", &project], "not a Spotcheck project");
}

#[cfg(unix)]
#[test]
fn broken_link_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link.jpg");
    std::os::unix::fs::symlink(folder.path().join("missing.jpg"), &link).unwrap();
    check(&["predict", "--model", MODEL, link.to_str().unwrap()], "link to a missing file");
}

#[test]
fn addresses_outside_s3_are_refused_with_advice() {
    for (address, expected) in [
        ("https://example.com/x.jpg", "Web addresses are not supported"),
        ("https://example.com/photos/x.jpg", "other web addresses are not supported"),
        ("gs://bucket/x.jpg", "is not in S3; specify a folder"),
        ("s3:/bucket/x", "write s3://bucket/x"),
        ("s3://UPPER_case/", "not a valid bucket name"),
    ] {
        check(&["predict", "--model", MODEL, address], expected);
    }
}
