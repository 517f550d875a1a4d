//! `spotcheck endpoint` with the tests' control plane, with a real container behind the endpoint.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::control_plane::{ControlPlane, Failure, IMAGE, REGION, ROLE, Session, archive, echo_archive};
use crate::support::ended::Ended;
use crate::support::seaweed::{ADMIN, Bucket, Seaweed};
use crate::support::{spotcheck, spotcheck_at};

/// The key of the archive in the bucket.
const ARCHIVE: &str = "models/model.tar.gz";
/// The interval between two checks of a condition.
const POLL: Duration = Duration::from_millis(10);

struct Account {
    bucket: Bucket,
    plane: ControlPlane,
    home: tempfile::TempDir,
}

impl Account {
    fn new(name: &str) -> Self {
        let bucket = Seaweed::shared().bucket(name);
        bucket.put(ARCHIVE, &echo_archive());
        Self { plane: ControlPlane::start(bucket.server()), bucket, home: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = spotcheck_at(self.home.path(), args);
        command.stdin(Stdio::null());
        self.plane.sign_in(&mut command, ADMIN);
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        Ended::new(&self.command(args).output().unwrap())
    }

    fn endpoint(&self, args: &[&str]) -> Ended {
        self.run(&[&["endpoint"], args].concat())
    }

    /// Deploys the archive in the bucket.
    fn deploy(&self, name: &str, more: &[&str]) -> Ended {
        let archive = self.bucket.uri(ARCHIVE);
        self.deploy_of(name, &archive, more)
    }

    fn deploy_of(&self, name: &str, archive: &str, more: &[&str]) -> Ended {
        self.run(&[&deployment(name, archive), more].concat())
    }

    /// Runs until `operation` was requested `times` times, then interrupts.
    fn interrupted(&self, args: &[&str], operation: &str, times: usize) -> Ended {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        while self.plane.count(operation) < times {
            std::thread::sleep(POLL);
        }
        let id = child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(sent.success());
        Ended::new(&child.wait_with_output().unwrap())
    }

    /// Prevents the creation of endpoints, and the deletion of their resources.
    fn cannot_be_undone(&self) {
        self.plane.fail(Failure::ResourceLimit);
        for operation in ["DeleteEndpointConfig", "DeleteModel"] {
            self.plane.fail(Failure::AccessDenied { operation });
        }
    }

    fn record(&self, name: &str) -> PathBuf {
        let name = format!("data/endpoints/{name}@{REGION}.json");
        self.home.path().join(name)
    }

    fn has(&self, operation: &str, field: &str, name: &str) -> bool {
        self.plane.console(operation, &json!({field: name})).is_ok()
    }

    fn has_model(&self, name: &str) -> bool {
        self.has("DescribeModel", "ModelName", name)
    }

    fn has_config(&self, name: &str) -> bool {
        self.has("DescribeEndpointConfig", "EndpointConfigName", name)
    }

    fn has_endpoint(&self, name: &str) -> bool {
        self.has("DescribeEndpoint", "EndpointName", name)
    }
}

fn deployment<'a>(name: &'a str, archive: &'a str) -> Vec<&'a str> {
    let mut args = vec!["endpoint", "deploy", "--name", name, "--archive", archive];
    args.extend(["--role", ROLE, "--image", IMAGE]);
    args.extend(["--instance-type", "ml.m5.xlarge", "--hourly-price", "0.25"]);
    args
}

#[test]
fn endpoint_is_deployed_watched_listed_and_deleted() {
    let account = Account::new("endpoint-life");
    account.endpoint(&["list"]).must_write(0, "").must_report(&["no matching endpoints"]);
    account
        .deploy("cats", &[])
        .must_write(0, "cats\tInService\n")
        .must_report(&["$0.25 per hour", "endpoint delete cats"]);
    let mode = account.record("cats").metadata().unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let status = ["status", "cats", "--watch"];
    account.endpoint(&status).must_write(0, "cats\tInService\n").must_report(&["so far: about $"]);
    account.endpoint(&["list"]).must_write(0, "cats\tInService\n");
    let listed = account.endpoint(&["list", "--output", "json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["endpoint"], &listed[0]["status"]), (&json!("cats"), &json!("InService")));
    account.deploy("cats", &[]).must_write(1, "").must_report(&["Endpoint cats already"]);
    assert_eq!(account.plane.count("CreateEndpoint"), 1);
    account
        .endpoint(&["delete", "cats"])
        .must_write(1, "")
        .must_report(&["will delete endpoint cats\nwill delete configuration cats\nwill delete model cats\n", "--yes"]);
    assert_eq!(account.plane.count("DeleteEndpoint"), 0);
    account
        .endpoint(&["delete", "cats", "--yes"])
        .must_write(0, "deleted endpoint cats\ndeleted configuration cats\ndeleted model cats\n")
        .must_report(&["no longer billed"]);
    assert!(!account.has_endpoint("cats"));
    account.endpoint(&["status", "cats"]).must_write(1, "");
    account.endpoint(&["delete", "cats", "--yes"]).must_write(1, "").must_report(&["not exist in us-east-1"]);
}

/// Arguments for the archive in the bucket, without container and instances.
fn bare<'a>(command: &'a str, archive: &'a str) -> Vec<&'a str> {
    let mut args = vec!["endpoint", command, "--name", "cats", "--archive", archive];
    args.extend(["--role", ROLE, "--hourly-price", "0.25"]);
    args
}

#[test]
fn preflight_problems_block_deployment_without_force() {
    let account = Account::new("endpoint-preflight");
    let archive = account.bucket.uri(ARCHIVE);
    let of = |command, more: &[&str]| account.run(&[&bare(command, &archive), more].concat());
    let usual = ["--instance-type", "ml.m5.xlarge"];
    let timed = [&usual[..], &["--delete-after", "90"]].concat();
    of("preflight", &timed).must_show(&[
        "ok       Names and limits ",
        "ok       Endpoint name ",
        "ok       Role              ",
        "ok       Container         ",
        "warning  Model             ",
        "ok       Instance          1 × ml.m5.xlarge: ",
        "$6.00 per day",
        "After 1.5 h",
    ]);
    of("preflight", &["--instance-type", "ml.m6g.large"]).must_show(&["warning  Instance          ml.m6g.large"]);
    let on_cards = ["--instance-type", "ml.g5.xlarge", "--volume-kms-key", "k"];
    of("preflight", &on_cards).must_show(&["ray:serve-ml-sagemaker-cuda-", "warning  Instance          ml.g5.xlarge"]);

    // SageMaker pulls from its own region only.
    let image = IMAGE.replace(REGION, "eu-west-1");
    let other_image = [&usual[..], &["--image", &image]].concat();
    let tagged = [&other_image[..], &["--tag", "aws:team=vision"]].concat();
    let looked = of("preflight", &tagged);
    assert_eq!(looked.code, Some(1), "{looked:#?}");
    let problems = looked.stdout.lines().filter(|line| line.starts_with("problem "));
    assert_eq!(problems.count(), 2, "{looked:#?}");
    for words in ["problem  Container  ", "problem  Names and limits"] {
        assert!(looked.stdout.contains(words), "{words}: {looked:#?}");
    }
    of("deploy", &other_image).must_write(1, "").must_report(&["problem  Container  ", "problems above"]);
    for operation in ["CreateModel", "CreateEndpointConfig", "CreateEndpoint"] {
        assert_eq!(account.plane.count(operation), 0, "{operation}");
    }
    of("deploy", &[&other_image[..], &["--force"]].concat())
        .must_write(0, "cats\tInService\n")
        .must_report(&["problem  Container  "]);
    let looked = of("preflight", &usual);
    assert!(looked.stdout.contains("Endpoint cats already"), "{looked:#?}");
}

#[test]
fn tensorflow_model_gets_its_container() {
    let account = Account::new("endpoint-saved-model");
    let folder = account.home.path().join("resnet/1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("saved_model.pb"), "graph").unwrap();
    let folder = folder.to_str().unwrap().to_owned();
    let target = account.bucket.uri("models/");
    let packed = [
        "endpoint",
        "preflight",
        "--saved-model",
        &folder,
        "--upload-to",
        &target,
        "--role",
        ROLE,
        "--instance-type",
        "ml.m5.xlarge",
    ];
    account.run(&packed).must_show(&["/tensorflow-inference:2.19.0-cpu", "a TensorFlow SavedModel"]);
    let looked = account.run(&[&packed[..], &["--image", IMAGE]].concat());
    assert_eq!(looked.code, Some(1), "{looked:#?}");
    assert!(looked.stdout.contains("a TensorFlow SavedModel"), "{looked:#?}");
    // An archive in S3 is inspected.
    let saved = archive(&[("1/saved_model.pb", b"graph")]);
    account.bucket.put("models/saved.tar.gz", &saved);
    let saved = account.bucket.uri("models/saved.tar.gz");
    let args = [&bare("preflight", &saved)[..], &["--instance-type", "ml.g5.xlarge"]].concat();
    account.run(&args).must_show(&["/tensorflow-inference:2.19.0-gpu"]);
}

#[test]
fn leftovers_are_listed_before_deletion() {
    let account = Account::new("endpoint-remains");
    account.cannot_be_undone();
    account.deploy("cats", &[]).must_write(1, "");
    account.plane.heal();
    let archive = account.bucket.uri(ARCHIVE);
    let mut args = deployment("cats", &archive);
    args[1] = "preflight";
    account.run(&args).must_show(&["warning  Endpoint name ", "deleted first"]);
    assert!(account.has_model("cats") && account.has_config("cats"));
}

#[test]
fn invalid_names_and_regions_are_reported_before_any_request() {
    let account = Account::new("endpoint-names-checked");
    let long = "c".repeat(64);
    for (args, words) in [
        (&["status", "my cats"][..], "letters a to z"),
        (&["delete", "cats_2", "--yes"], "letters a to z"),
        (&["status", &long], "64 characters"),
        (&["status", "arn:aws:sagemaker:us-east-1:123456789012:endpoint/cats"], "name: cats"),
        (&["status", "cats", "--region", "Ireland"], "“Ireland” is"),
        (&["list", "--region", "us-east"], "an AWS region"),
    ] {
        account.endpoint(args).must_write(2, "").must_report(&[words]);
    }
    let predict = ["predict", "assets/samples", "--endpoint"];
    let of = |more: &[&str]| account.run(&[&predict[..], more].concat());
    of(&["my cats"]).must_write(2, "").must_report(&["letters a to z"]);
    of(&["cats", "--sagemaker-region", "Ireland"]).must_write(2, "").must_report(&["an AWS region"]);
    assert!(account.plane.requests().is_empty());
    // It may be a new region.
    let messages = account.endpoint(&["list", "--region", "us-esat-1"]);
    messages.must_report(&["region us-esat-1"]);
}

#[test]
fn local_archive_is_uploaded_and_deleted_again() {
    let account = Account::new("endpoint-local");
    let packed = account.home.path().join("model.tar.gz");
    std::fs::write(&packed, echo_archive()).unwrap();
    let packed = packed.to_str().unwrap();
    account.deploy_of("cats", packed, &[]).must_write(1, "").must_report(&["--upload-to"]);
    let folder = account.bucket.uri("models/");
    let key = "models/spotcheck-files/cats/model.tar.gz";
    account
        .deploy_of("cats", "nowhere.tar.gz", &["--upload-to", &folder])
        .must_write(1, "")
        .must_report(&["the archive", "Nothing was started"]);
    account.deploy_of("cats", packed, &["--upload-to", &folder]).must_write(0, "cats\tInService\n");
    assert_eq!(account.bucket.get(key), Some(echo_archive()));
    let uri = account.bucket.uri(key);
    account.endpoint(&["delete", "cats", "--yes"]).must_write(
        0,
        &format!("deleted endpoint cats\ndeleted configuration cats\ndeleted model cats\ndeleted archive {uri}\n"),
    );
    assert_eq!(account.bucket.get(key), None);
    assert!(account.bucket.get(ARCHIVE).is_some(), "of another person");
}

#[test]
fn failed_deployment_does_not_block_its_name() {
    let account = Account::new("endpoint-refused");
    account.plane.fail(Failure::AccessDenied { operation: "CreateModel" });
    account.deploy("cats", &[]).must_write(1, "").must_report(&["sagemaker:CreateModel", "nothing remains"]);
    assert!(!account.record("cats").exists());
    account.plane.heal();
    account.cannot_be_undone();
    account.deploy("cats", &[]).must_write(1, "").must_report(&[
        "a quota of",
        "configuration cats (",
        "sagemaker:DeleteEndpointConfig",
        "model cats (",
        "sagemaker:DeleteModel",
        "endpoint delete cats",
    ]);
    assert!(account.has_model("cats") && account.has_config("cats"));
    account.endpoint(&["status", "cats"]).must_write(1, "").must_report(&["was never started"]);
    account.plane.heal();
    account
        .deploy("cats", &[])
        .must_write(0, "cats\tInService\n")
        .must_report(&["deleted configuration cats", "deleted model cats"]);
}

#[test]
fn failed_deployment_is_undone_in_reverse_order() {
    let account = Account::new("endpoint-undone");
    let packed = account.home.path().join("model.tar.gz");
    std::fs::write(&packed, echo_archive()).unwrap();
    let folder = account.bucket.uri("models/");
    account.plane.fail(Failure::ResourceLimit);
    let more = ["--upload-to", &folder];
    account
        .deploy_of("cats", packed.to_str().unwrap(), &more)
        .must_write(1, "")
        .must_report(&["a quota of", "configuration cats, model cats, archive s3://"]);
    assert!(!account.has_model("cats") && !account.has_config("cats"));
    let key = "models/spotcheck-files/cats/model.tar.gz";
    assert_eq!(account.bucket.get(key), None);
    assert!(!account.record("cats").exists());
    let requests = account.plane.requests();
    let operations = requests.iter().map(|request| request.operation.as_str());
    let deletions: Vec<&str> = operations.filter(|name| name.starts_with("Delete")).collect();
    assert_eq!(deletions, ["DeleteEndpointConfig", "DeleteModel"]);
}

#[test]
fn interrupted_deployment_is_undone() {
    let account = Account::new("endpoint-killed");
    account.plane.fail(Failure::Held { operation: "CreateEndpoint" });
    let archive = account.bucket.uri(ARCHIVE);
    let until_held = |signal: &str| {
        let mut command = account.command(&deployment("cats", &archive));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let is_asked = || {
            let record = std::fs::read_to_string(account.record("cats"));
            record.is_ok_and(|record| record.contains("\"is_started\": true"))
        };
        while !is_asked() {
            std::thread::sleep(POLL);
        }
        let id = child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        Ended::new(&child.wait_with_output().unwrap())
    };
    until_held("-INT").must_write(1, "").must_report(&["anceled", "configuration cats, model cats"]);
    assert!(!account.has_model("cats") && !account.has_config("cats"));
    assert!(!account.record("cats").exists());

    assert_eq!(until_held("-KILL").code, None);
    assert!(account.has_model("cats") && account.has_config("cats"));
    account.endpoint(&["delete", "cats", "--yes"]).must_write(0, "deleted configuration cats\ndeleted model cats\n");
    assert!(!account.has_model("cats") && !account.has_config("cats"));
}

#[test]
fn foreign_resources_are_neither_used_nor_deleted() {
    let account = Account::new("endpoint-names");
    account.deploy("cats", &[]).must_write(0, "cats\tInService\n");
    let model = ["--model-name", "cats", "--instance-type", "ml.m5.xlarge"];
    account.endpoint(&[&["deploy", "--name", "dogs"], &model[..]].concat()).must_write(0, "dogs\tInService\n");
    // The console deletes the endpoint and keeps the rest, and this computer loses its record.
    let endpoint = json!({"EndpointName": "cats"});
    account.plane.console("DeleteEndpoint", &endpoint).unwrap();
    std::fs::remove_file(account.record("cats")).unwrap();
    account.endpoint(&["delete", "dogs", "--yes"]).must_write(
        0,
        "deleted endpoint dogs\n\
            deleted configuration dogs\n\
            kept model cats: not created for this endpoint; not billed\n\
            ",
    );
    while account.has_endpoint("cats") {
        std::thread::sleep(POLL);
    }
    account.deploy("cats", &[]).must_write(1, "").must_report(&["name already exists"]);
    assert!(!account.record("cats").exists());
    account.endpoint(&["delete", "cats", "--yes"]).must_write(1, "");
    assert!(account.has_model("cats") && account.has_config("cats"));
}

#[test]
fn failed_endpoint_shows_reason_and_delete_command() {
    let account = Account::new("endpoint-failed");
    account.plane.fail(Failure::NoPing);
    let messages = ["ping health check", "/aws/sagemaker/Endpoints/cats", "endpoint delete cats"];
    account.deploy("cats", &[]).must_write(1, "cats\tFailed\n").must_report(&messages);
    account.endpoint(&["status", "cats"]).must_write(1, "cats\tFailed\n").must_report(&messages[1..]);
}

#[test]
fn interrupt_names_the_running_operation() {
    let account = Account::new("endpoint-interrupt");
    account.plane.pause_jobs();
    let archive = account.bucket.uri(ARCHIVE);
    // Twice before it is created: nothing may be left of an earlier one, and the name must be free.
    account.interrupted(&deployment("cats", &archive), "DescribeEndpoint", 3).must_write(1, "").must_report(&[
        "cats still costs",
        "status cats --watch",
        "endpoint delete cats",
    ]);
    account.plane.resume_jobs();
    assert_eq!(account.plane.wait_until_settled("cats"), "InService");
    account.plane.pause_jobs();
    let asked = account.plane.count("DescribeEndpoint");
    let delete = ["endpoint", "delete", "cats", "--yes"];
    account
        .interrupted(&delete, "DescribeEndpoint", asked + 2)
        .must_write(1, "deleted endpoint cats\ndeleted configuration cats\ndeleted model cats\n")
        .must_report(&["deleting endpoint cats"]);
    account.deploy("cats", &[]).must_write(1, "").must_report(&["is being deleted"]);
    assert_eq!(account.plane.count("CreateEndpoint"), 1);
    account.plane.resume_jobs();
}

#[test]
fn foreign_endpoint_uses_the_price_table() {
    let account = Account::new("endpoint-elsewhere");
    account.deploy("cats", &[]).must_write(0, "cats\tInService\n");
    std::fs::remove_file(account.record("cats")).unwrap();
    account.endpoint(&["status", "cats"]).must_write(0, "cats\tInService\n").must_report(&["cost unknown"]);
    let prices = account.home.path().join("config/prices.toml");
    std::fs::create_dir_all(prices.parent().unwrap()).unwrap();
    let table = "[[price]]\ninstance_type = \"ml.m5.xlarge\"\nusd_per_hour = 36.0\nsource = \"me\"\ndate = \
        \"2026-11-21\"\n";
    std::fs::write(prices, table).unwrap();
    account.endpoint(&["status", "cats"]).must_write(0, "cats\tInService\n").must_report(&["$36.00 per hour"]);
    account.endpoint(&["delete", "cats", "--yes"]).must_write(
        0,
        "deleted endpoint cats\n\
            deleted configuration cats\n\
            kept model cats: not created for this endpoint; not billed\n\
            ",
    );
}

/// For each line of `predict --out -`: file name, and label and score of the classes.
fn predictions(ended: &Ended) -> Vec<(String, Vec<(String, f64)>)> {
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let prediction = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let uri = line["uri"].as_str().unwrap();
        let classes = line["classes"].as_array().unwrap().iter().map(|class| {
            let label = class["label"].as_str().unwrap().to_owned();
            (label, class["score"].as_f64().unwrap())
        });
        let name = uri.rsplit('/').next().unwrap().to_owned();
        (name, classes.collect())
    };
    ended.stdout.lines().map(prediction).collect()
}

#[test]
fn endpoint_predictions_equal_local_ones() {
    const MODEL: &str = "efficientnet-lite0";
    let account = Account::new("endpoint-predict");
    let folder = account.bucket.uri("");
    let deploy = ["deploy", "--name", "photos", "--model", MODEL, "--role", ROLE];
    let more = ["--upload-to", &folder, "--instance-type", "ml.m5.xlarge"];
    account.endpoint(&[&deploy[..], &more].concat()).must_write(0, "photos\tInService\n");
    let there = ["predict", "assets/samples", "--endpoint", "photos"];
    let there = |more: &[&str]| predictions(&account.run(&[&there[..], &["--out", "-"], more].concat()));
    let in_json = ["instances", "inputs"].map(|form| there(&["--send", form]));
    let there = there(&[]);
    assert_eq!(in_json, [there.clone(), there.clone()]);
    let here = ["predict", "assets/samples", "--model", MODEL, "--device"];
    let mut here = spotcheck(&[&here[..], &["cpu", "--out", "-"]].concat());
    let here = predictions(&Ended::new(&here.output().unwrap()));
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
fn image_failure_is_local_and_outage_ends_the_run() {
    let account = Account::new("endpoint-outage");
    account.deploy("cats", &[]).must_write(0, "cats\tInService\n");
    let mapping = account.home.path().join("mine.toml");
    let text = "id = \"mine\"\nname = \"Mine\"\n[prediction.detection]\nboxes = \"/b\"\nclasses = \"/c\"\n\
        scores = \"/s\"\n\
                box_format = \"xyxy\"\nbox_space = \"normalized\"\n";
    std::fs::write(&mapping, text).unwrap();
    let predict = [
        "predict",
        "assets/samples/rocket.jpg",
        "--endpoint",
        "cats",
        "--mapping",
        mapping.to_str().unwrap(),
        "--out",
        "-",
    ];
    let fail = |operation| {
        let times = 1000;
        account.plane.fail(Failure::ServerError { operation, times });
    };
    fail("InvokeEndpoint");
    let failed = account.run(&predict);
    assert_eq!(failed.code, Some(3), "{failed:#?}");
    assert!(failed.stdout.contains("\"status\":\"failed\""), "{failed:#?}");
    fail("DescribeEndpoint");
    account.run(&predict).must_write(1, "");
}

#[test]
fn log_of_a_deleted_endpoint_is_shown() {
    let account = Account::new("endpoint-log");
    account.endpoint(&["logs", "cats"]).must_write(1, "");
    account.deploy("cats", &[]).must_write(0, "cats\tInService\n");
    let log = account.endpoint(&["logs", "cats"]);
    assert_eq!(log.code, Some(0), "{log:#?}");
    assert!(log.stdout.lines().any(|line| line.ends_with(" ready")), "{log:#?}");
    let last = account.endpoint(&["logs", "cats", "--lines", "1"]);
    assert_eq!(last.stdout.lines().count(), 1, "{last:#?}");
    assert_eq!(last.stdout.lines().last(), log.stdout.lines().last());
    account.endpoint(&["delete", "cats", "--yes"]);
    let after = account.endpoint(&["logs", "cats"]);
    assert_eq!((after.code, after.stdout), (Some(0), log.stdout));
}

#[test]
fn session_signs_every_request_until_it_expires() {
    const TOKEN: &str = "IQoJb3JpZ2luX2VjEJ///session+token==";
    let account = Account::new("endpoint-session");
    account.deploy("cats", &[]).must_write(0, "cats\tInService\n");
    let ask = |args: &[&str]| {
        let mut command = account.command(args);
        command.env("AWS_SESSION_TOKEN", TOKEN);
        Ended::new(&command.output().unwrap())
    };
    let list = ["endpoint", "list"];
    ask(&list).must_write(1, "").must_report(&["UnrecognizedClientException"]);
    account.plane.set_session(Session::Open(TOKEN));
    ask(&list).must_write(0, "cats\tInService\n");
    account.run(&list).must_write(1, "");
    // The runtime has a separate client. The echoed request is not a prediction.
    ask(&["predict", "assets/samples/rocket.jpg", "--endpoint", "cats"])
        .must_write(1, "")
        .must_report(&["format is unknown"]);
    assert_eq!(account.plane.count("InvokeEndpoint"), 1);
    account.plane.set_session(Session::Over(TOKEN));
    for args in [&list[..], &["transform", "list"], &["transform", "logs", "a-job"]] {
        let messages = ask(args).must_write(1, "").must_report(&["session"]);
        assert!(!messages.stderr.contains(TOKEN), "{messages:#?}");
    }
}

#[test]
fn overdue_endpoint_is_deleted_at_the_next_start() {
    let account = Account::new("endpoint-timer");
    account.deploy("dogs", &["--delete-after", "60"]).must_write(0, "dogs\tInService\n");
    account.endpoint(&["status", "dogs"]).must_write(0, "dogs\tInService\n").must_report(&["deleted at ", " minutes)"]);
    let record = account.record("dogs");
    let text = std::fs::read_to_string(&record).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    account.run(&["models", "list"]);
    assert_eq!(account.plane.count("DeleteEndpoint"), 0);
    // An hour later.
    json["delete_at_ms"] = 1.into();
    std::fs::write(&record, json.to_string()).unwrap();
    account.run(&["models", "list"]).must_report(&["deleted endpoint dogs: "]);
    assert_eq!(account.plane.count("DeleteEndpoint"), 1);
    assert!(!record.exists());
}
