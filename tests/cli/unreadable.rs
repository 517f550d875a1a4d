//! Paths that cannot be read: pipes, devices, broken links and addresses of other services.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::ended::Ended;
use crate::support::spotcheck;

fn check(args: &[&str], expected: &str) {
    let mut command = spotcheck(args);
    command.stdin(Stdio::null());
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
    check(&["predict", &image], refused);
    check(&["predict", "/dev/zero"], refused);
    check(&["predict", "assets/samples", "--model", &model], refused);
    check(&["models", "inspect", &model], refused);
    check(&["models", "add", &model], refused);
    check(&["models", "inspect", "tests/parity/resnet50/model.onnx", "--labels", &truth], refused);
    check(&["evaluate", "--predictions", "tests/evaluation/small/results.json", "--truth", &truth], refused);
    let project = pipe(folder.path(), "p.spotcheck");
    check(&["project", "info", &project], "not a Spotcheck project");
}
