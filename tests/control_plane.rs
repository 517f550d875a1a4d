//! The tests' own control plane: before other tests rely on it, it is held against AWS's own client and descriptions.

mod support;

use std::process::Command;

use support::control_plane::{ControlPlane, IMAGE, REGION, ROLE, echo_archive};
use support::seaweed::{ADMIN, Bucket, Seaweed};

/// Runs `tests/control_plane/drive.py`, signed in as the admin.
#[test]
fn boto3_finds_all_as_with_aws() {
    let bucket = Seaweed::shared().bucket("drive");
    let plane = ControlPlane::start(bucket.server());
    put_inputs(&bucket);
    let mut command = python("tests/control_plane/drive.py");
    plane.sign_in(&mut command, ADMIN);
    // What it calls `AWS_REGION`.
    command.env("AWS_DEFAULT_REGION", REGION);
    let output = command.args([&bucket.name, ROLE, IMAGE]).output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{:#?}",
        String::from_utf8_lossy(&output.stderr),
        plane.requests().last()
    );
    let output = bucket.get("out/first/a.txt.out").unwrap();
    assert!(String::from_utf8_lossy(&output).contains("\"text\": \"first\""));
    assert!(bucket.get("out/first/bad.txt.out").is_none());
    assert!(bucket.get("out/second/b.txt.out").is_some());
}

fn put_inputs(bucket: &Bucket) {
    bucket.put("model.tar.gz", &echo_archive());
    bucket.put("in/a.txt", b"first");
    bucket.put("in/b.txt", b"second");
    bucket.put("in/bad.txt", b"fail 400");
    bucket.put("endless/c.txt", b"wait");
    let manifest = format!(
        "[{{\"prefix\": \"s3://{}/in/\"}}, \"a.txt\", \"b.txt\"]",
        bucket.name
    );
    bucket.put("good.manifest", manifest.as_bytes());
}

fn python(script: &str) -> Command {
    let mut command = Command::new("python3");
    command
        .arg(support::repository().join(script))
        .env("PYTHONPATH", support::python_packages("aws-models"));
    command
}
