//! `spotcheck endpoint` against the tests' control plane, with a real container behind the endpoint.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::process::Output;

use support::control_plane::{ControlPlane, IMAGE, ROLE, echo_archive};
use support::seaweed::{ADMIN, Bucket, Seaweed};
use support::{spotcheck, spotcheck_at};

struct Account {
    bucket: Bucket,
    plane: ControlPlane,
    home: tempfile::TempDir,
}

impl Account {
    fn new(name: &str) -> Self {
        let bucket = Seaweed::shared().bucket(name);
        bucket.put("models/model.tar.gz", &echo_archive());
        Self {
            plane: ControlPlane::start(bucket.server()),
            bucket,
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = spotcheck_at(self.home.path(), args);
        self.plane.sign_in(&mut command, ADMIN);
        command.output().unwrap()
    }

    fn deploy(&self, name: &str, more: &[&str]) -> Output {
        let archive = self.bucket.uri("models/model.tar.gz");
        let mut args = vec!["endpoint", "deploy", "--name", name, "--archive", &archive];
        args.extend(["--role", ROLE, "--image", IMAGE]);
        args.extend(["--instance-type", "ml.m5.xlarge", "--hourly-price", "0.25"]);
        args.extend(more);
        self.run(&args)
    }
}

fn stdout(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_endpoint_is_deployed_watched_listed_and_deleted_with_all_that_was_made_for_it() {
    let account = Account::new("endpoint-life");
    let output = account.deploy("cats", &[]);
    assert_eq!(stdout(&output), "cats\tInService\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("$0.25 an hour"), "{said}");
    assert_eq!(
        stdout(&account.run(&["endpoint", "status", "cats"])),
        "cats\tInService\n"
    );
    assert_eq!(
        stdout(&account.run(&["endpoint", "list"])),
        "cats\tInService\n"
    );
    let again = account.deploy("cats", &[]);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(
        stdout(&account.run(&["endpoint", "delete", "cats"])),
        "deleted endpoint cats\ndeleted configuration cats\ndeleted model cats\n"
    );
    assert_eq!(
        account.run(&["endpoint", "status", "cats"]).status.code(),
        Some(1)
    );
    assert_eq!(account.plane.count("DeleteModel"), 1);
}

/// File name, and label and score of the classes, of each line of `predict --out -`.
fn answers(output: &Output) -> Vec<(String, Vec<(String, f64)>)> {
    let answer = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let uri = line["uri"].as_str().unwrap();
        let classes = line["classes"].as_array().unwrap().iter().map(|class| {
            let label = class["label"].as_str().unwrap().to_owned();
            (label, class["score"].as_f64().unwrap())
        });
        let name = uri.rsplit('/').next().unwrap().to_owned();
        (name, classes.collect())
    };
    stdout(output).lines().map(answer).collect()
}

#[test]
fn photographs_are_predicted_through_an_endpoint_as_on_this_machine() {
    const MODEL: &str = "efficientnet-lite0";
    let account = Account::new("endpoint-predict");
    let archive = account.home.path().join("model.tar.gz");
    let out = archive.to_str().unwrap();
    stdout(&account.run(&["transform", "package", "--model", MODEL, "--out", out]));
    let archive = std::fs::read(&archive).unwrap();
    account.bucket.put("models/model.tar.gz", &archive);
    stdout(&account.deploy("photos", &[]));
    let there = ["predict", "assets/samples", "--endpoint", "photos"];
    let there = answers(&account.run(&[&there[..], &["--out", "-"]].concat()));
    let here = ["predict", "assets/samples", "--model", MODEL, "--device"];
    let mut here = spotcheck(&[&here[..], &["cpu", "--out", "-"]].concat());
    let here = answers(&here.output().unwrap());
    assert_eq!(there.len(), here.len());
    assert!(!here.is_empty());
    for ((name, there), (expected, here)) in there.iter().zip(&here) {
        assert_eq!(name, expected);
        assert_eq!(there.len(), here.len(), "{name}");
        for ((label, score), (expected, here)) in there.iter().zip(here) {
            assert_eq!(label, expected, "{name}");
            assert!((score - here).abs() < 1e-4, "{name}: {label}");
        }
    }
}

#[test]
fn an_endpoint_whose_time_is_over_is_deleted_when_spotcheck_is_started_again() {
    let account = Account::new("endpoint-timer");
    stdout(&account.deploy("dogs", &["--delete-after", "60"]));
    let record = account
        .home
        .path()
        .join("data/endpoints/dogs@us-east-1.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    stdout(&account.run(&["models", "list"]));
    assert_eq!(account.plane.count("DeleteEndpoint"), 0);
    // An hour later.
    json["delete_at_ms"] = 1.into();
    std::fs::write(&record, json.to_string()).unwrap();
    let output = account.run(&["models", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("endpoint dogs was deleted: its time was over"),
        "{said}"
    );
    assert_eq!(account.plane.count("DeleteEndpoint"), 1);
    assert!(!record.exists());
}
