//! The tests' own control plane, checked against AWS's own client and service models and against the known behavior of
//! Batch Transform.

use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::control_plane::{
    ControlPlane, Failure, IMAGE, JobLog, REGION, ROLE, Session, archive, echo_archive,
};
use crate::support::seaweed::{ADMIN, BLIND, Bucket, IMPOSTOR, Login, READER, STRANGER, Seaweed};

/// A control plane with a model named `echo`, and a bucket with its archive.
struct Account {
    plane: ControlPlane,
    bucket: Bucket,
}

impl Account {
    fn new() -> Self {
        Self::with_archive(&echo_archive())
    }

    fn with_archive(archive: &[u8]) -> Self {
        let bucket = Seaweed::shared().bucket("plane");
        let plane = ControlPlane::start(bucket.server());
        bucket.put("model.tar.gz", archive);
        let model = json!({
            "ModelName": "echo", "ExecutionRoleArn": ROLE,
            "PrimaryContainer": {
                "Image": IMAGE,
                "ModelDataUrl": bucket.uri("model.tar.gz"),
                "Environment": {"OF": "model", "MODEL": "1"},
            },
        });
        plane.console("CreateModel", &model).unwrap();
        Self { plane, bucket }
    }

    /// An account with a few small objects, two of them in a subfolder.
    fn with_inputs() -> Self {
        let account = Self::new();
        for key in ["in/a.txt", "in/b.txt", "in/below/c.txt", "in/below/d.txt"] {
            account.bucket.put(key, key.as_bytes());
        }
        account
    }

    /// Starts a job over `in/`, with its request modified by `change`.
    fn start(&self, job: &str, change: impl FnOnce(&mut Value)) -> Result<Value, String> {
        let mut request = json!({
            "TransformJobName": job, "ModelName": "echo", "BatchStrategy": "SingleRecord", "MaxPayloadInMB": 6,
            "TransformInput": {
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": self.bucket.uri("in/")}},
                "ContentType": "text/plain",
            },
            "TransformOutput": {"S3OutputPath": self.bucket.uri("out/")},
            "TransformResources": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1},
        });
        change(&mut request);
        self.plane.console("CreateTransformJob", &request)
    }

    /// Starts a job and waits until it ends; returns its status, and the reason if it failed.
    fn run(&self, job: &str, change: impl FnOnce(&mut Value)) -> (String, Option<String>) {
        self.start(job, change).unwrap();
        self.plane.wait_until_over(job)
    }

    /// The predictions in an output, one per line.
    fn predictions(&self, key: &str) -> Vec<Value> {
        let output = self.bucket.get(key).unwrap_or_else(|| panic!("no {key}"));
        let values = serde_json::Deserializer::from_slice(&output).into_iter();
        values.map(Result::unwrap).collect()
    }

    /// The requests that the handler echoed into an output.
    fn texts(&self, key: &str) -> Vec<String> {
        let predictions = self.predictions(key).into_iter();
        predictions.map(|prediction| prediction["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Whether each of the inputs has an output.
    fn outputs(&self) -> [bool; 4] {
        ["a.txt", "b.txt", "below/c.txt", "below/d.txt"]
            .map(|name| self.bucket.get(&format!("out/{name}.out")).is_some())
    }
}

/// Runs `tests/control_plane/drive.py`, signed in as the admin.
#[test]
fn boto3_works_against_the_control_plane() {
    let bucket = Seaweed::shared().bucket("drive");
    let plane = ControlPlane::start(bucket.server());
    bucket.put("model.tar.gz", &echo_archive());
    bucket.put("in/a.txt", b"first");
    bucket.put("in/b.txt", b"second");
    bucket.put("in/bad.txt", b"fail 400");
    bucket.put("endless/c.txt", b"wait");
    bucket.put("good.manifest", manifest(&bucket, &["a.txt", "b.txt"]).as_bytes());
    let mut command = python("tests/control_plane/drive.py");
    plane.sign_in(&mut command, ADMIN);
    // Named `AWS_REGION` by the program.
    command.env("AWS_DEFAULT_REGION", REGION);
    let output = command.args([&bucket.name, ROLE, IMAGE]).output().unwrap();
    assert!(output.status.success(), "{}\n{:#?}", String::from_utf8_lossy(&output.stderr), plane.requests().last());
    let output = bucket.get("out/first/a.txt.out").unwrap();
    assert!(String::from_utf8_lossy(&output).contains("\"text\": \"first\""));
    assert!(bucket.get("out/first/bad.txt.out").is_none());
    assert!(bucket.get("out/second/b.txt.out").is_some());
}

#[test]
fn signatures_clocks_and_permissions_are_checked() {
    let account = Account::with_inputs();
    let ask = |login: Login, call: &str| ask_by_boto3(&account.plane, login, call);
    let list = "list_transform_jobs()";
    assert_eq!(ask(ADMIN, list), "well");
    assert_eq!(ask(READER, list), "well");
    assert!(
        ask(IMPOSTOR, list)
            .starts_with("InvalidSignatureException: The request signature we calculated does not match")
    );
    assert!(ask(STRANGER, list).starts_with("UnrecognizedClientException: "));
    assert!(ask(BLIND, list).starts_with(
        "AccessDeniedException: User: arn:aws:iam::123456789012:user/blind is not authorized to perform: \
         sagemaker:ListTransformJobs"
    ));
    assert!(ask(READER, "delete_model(ModelName='echo')").contains("sagemaker:DeleteModel"));
    for (failure, expected) in [
        (Failure::ClockAhead(Duration::from_mins(20)), "InvalidSignatureException: Signature expired: "),
        (Failure::ClockBehind(Duration::from_mins(20)), "InvalidSignatureException: Signature not yet current: "),
    ] {
        account.plane.fail(failure);
        let messages = ask(ADMIN, list);
        assert!(messages.starts_with(expected), "{messages}");
        account.plane.heal();
    }
}

#[test]
fn session_token_is_required() {
    let account = Account::new();
    let ask = |token: Option<&str>| {
        let mut command = boto3(&account.plane, ADMIN);
        if let Some(token) = token {
            command.env("AWS_SESSION_TOKEN", token);
        }
        asked(command, "sagemaker", "list_transform_jobs()")
    };
    let unknown = "UnrecognizedClientException: The security token included";
    assert!(ask(Some("a/token+=")).starts_with(unknown));
    account.plane.set_session(Session::Open("a/token+="));
    assert_eq!(ask(Some("a/token+=")), "well");
    assert!(ask(Some("another")).starts_with(unknown));
    assert!(ask(None).starts_with(unknown));
    account.plane.set_session(Session::Over("a/token+="));
    assert!(ask(Some("a/token+=")).starts_with("ExpiredTokenException: "));
}

#[test]
fn operations_fail_on_request() {
    let account = Account::with_inputs();
    let ask = |call: &str| ask_by_boto3(&account.plane, ADMIN, call);
    let list = "list_transform_jobs()";
    let operation = "ListTransformJobs";
    account.plane.fail(Failure::Throttling { operation, times: 1 });
    assert_eq!(ask(list), "ThrottlingException: Rate exceeded");
    assert_eq!(ask(list), "well");
    account.plane.fail(Failure::ServerError { operation, times: 1 });
    assert!(ask(list).starts_with("InternalFailure: "));
    account.plane.fail(Failure::HangUp { operation, times: 1 });
    assert!(ask(list).starts_with("ConnectionClosedError"));
    assert_eq!(ask(list), "well");
    account.plane.fail(Failure::AccessDenied { operation });
    assert!(ask(list).starts_with("AccessDeniedException: "));
    account.plane.heal();
    account.plane.fail(Failure::ResourceLimit);
    let refusal = account.start("limited", |_| {}).unwrap_err();
    assert!(
        refusal.starts_with(
            "ResourceLimitExceeded: The account-level service limit 'ml.m5.xlarge for transform job usage' is \
             0 Instances"
        ),
        "{refusal}"
    );
}

#[test]
fn unknown_requests_fail_the_test() {
    let account = Account::new();
    let refusal = account.plane.console("DescribeTransformJob", &json!({"TransformJobNmae": "x"}));
    assert!(refusal.is_err());
    let violations = account.plane.take_violations();
    assert_eq!(violations.len(), 2, "{violations:?}");
    assert!(violations[1].contains("knows no member TransformJobNmae"));
}

#[test]
fn outputs_have_sagemaker_keys() {
    let account = Account::with_inputs();
    let run = |job: &str, uri: String| {
        let over = account.run(job, |request| {
            request["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"] = uri.into();
            request["TransformOutput"]["S3OutputPath"] = account.bucket.uri(job).into();
        });
        assert_eq!(over, ("Completed".to_owned(), None));
    };
    // Without a final slash, but all objects are in this folder.
    run("folder", account.bucket.uri("in"));
    assert!(account.bucket.get("folder/below/c.txt.out").is_some());
    // A prefix is compared literally.
    account.bucket.put("in-old/e.txt", b"e");
    run("letters", account.bucket.uri("in"));
    assert!(account.bucket.get("letters/in/below/c.txt.out").is_some());
    assert!(account.bucket.get("letters/in-old/e.txt.out").is_some());
    run("slash", account.bucket.uri("in/"));
    assert!(account.bucket.get("slash/a.txt.out").is_some());
    run("bucket", format!("s3://{}/in/b", account.bucket.name));
    assert!(account.bucket.get("bucket/below/c.txt.out").is_some());
    assert!(account.bucket.get("bucket/b.txt.out").is_some());
    assert!(account.bucket.get("bucket/a.txt.out").is_none());
}

#[test]
fn manifest_lists_single_objects() {
    let account = Account::with_inputs();
    let text = manifest(&account.bucket, &["below/d.txt", "a.txt"]);
    account.bucket.put("some.manifest", text.as_bytes());
    let over = account.run("chosen", |request| {
        request["TransformInput"]["DataSource"]["S3DataSource"] =
            json!({"S3DataType": "ManifestFile", "S3Uri": account.bucket.uri("some.manifest")});
    });
    assert_eq!(over, ("Completed".to_owned(), None));
    assert_eq!(account.outputs(), [true, false, false, true]);
}

#[test]
fn objects_are_split_and_batched() {
    let account = Account::new();
    account.bucket.put("in/lines", b"one\ntwo\n\nthree");
    let framed: Vec<u8> = ["uno", "due"].map(tfrecord).concat();
    account.bucket.put("records/two", &framed);
    let cut = |job: &str, prefix: &str, split: &str, strategy: &str| {
        let over = account.run(job, |request| {
            request["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"] = account.bucket.uri(prefix).into();
            request["TransformInput"]["SplitType"] = split.into();
            request["BatchStrategy"] = strategy.into();
            request["TransformOutput"]["AssembleWith"] = "Line".into();
            request["TransformOutput"]["S3OutputPath"] = account.bucket.uri(job).into();
            // The order must not depend on which prediction arrives first.
            request["MaxConcurrentTransforms"] = 4.into();
        });
        assert_eq!(over, ("Completed".to_owned(), None));
    };
    cut("single", "in/", "Line", "SingleRecord");
    assert_eq!(account.texts("single/lines.out"), ["one", "two", "three"]);
    let output = account.bucket.get("single/lines.out").unwrap();
    assert_eq!(output.trim_ascii_end().split(|byte| *byte == b'\n').count(), 3);
    cut("multi", "in/", "Line", "MultiRecord");
    assert_eq!(account.texts("multi/lines.out"), ["one\ntwo\nthree"]);
    cut("stripped", "records/", "TFRecord", "SingleRecord");
    assert_eq!(account.texts("stripped/two.out"), ["uno", "due"]);
    cut("framed", "records/", "TFRecord", "MultiRecord");
    let lens: Vec<_> =
        account.predictions("framed/two.out").iter().map(|prediction| prediction["len"].clone()).collect();
    assert_eq!(lens, [framed.len()]);
}

#[test]
fn gzip_is_unpacked_and_inputs_are_joined() {
    let account = Account::new();
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(b"{\"id\": 1}\n{\"id\": 2}\n").unwrap();
    account.bucket.put("in/lines.gz", &zipped.finish().unwrap());
    let over = account.run("joined", |request| {
        request["TransformInput"]["CompressionType"] = "Gzip".into();
        request["TransformInput"]["SplitType"] = "Line".into();
        request["TransformInput"]["ContentType"] = "application/json".into();
        request["TransformOutput"]["AssembleWith"] = "Line".into();
        request["DataProcessing"] = json!({"JoinSource": "Input"});
    });
    assert_eq!(over, ("Completed".to_owned(), None));
    let predictions = account.predictions("out/lines.gz.out");
    let told: Vec<_> =
        predictions.iter().map(|prediction| (&prediction["id"], &prediction["SageMakerOutput"]["text"])).collect();
    assert_eq!(told, [(&json!(1), &json!("{\"id\": 1}")), (&json!(2), &json!("{\"id\": 2}"))]);
}

#[test]
fn container_receives_job_settings() {
    let account = Account::new();
    account.bucket.put("in/a.txt", b"environment");
    let over = account.run("told", |request| {
        request["Environment"] = json!({"OF": "job"});
        request["MaxConcurrentTransforms"] = 3.into();
        request["TransformOutput"]["Accept"] = "application/json".into();
    });
    assert_eq!(over, ("Completed".to_owned(), None));
    let prediction = &account.predictions("out/a.txt.out")[0];
    let environment = &prediction["environment"];
    for (name, value) in [
        ("SAGEMAKER_BATCH", "true"),
        ("SAGEMAKER_BATCH_STRATEGY", "SINGLE_RECORD"),
        ("SAGEMAKER_MAX_PAYLOAD_IN_MB", "6"),
        ("SAGEMAKER_MAX_CONCURRENT_TRANSFORMS", "3"),
        ("OF", "job"),
        ("MODEL", "1"),
    ] {
        assert_eq!(environment[name], value, "{name}");
    }
    assert_eq!(prediction["content_type"], "text/plain");
    assert_eq!(prediction["accept"], "application/json");
    assert_eq!(prediction["chunked"], false);
    // Without a limit, the length is not known in advance.
    account.run("chunked", |request| request["MaxPayloadInMB"] = 0.into());
    let prediction = &account.predictions("out/a.txt.out")[0];
    assert_eq!((&prediction["chunked"], &prediction["len"]), (&json!(true), &json!(11)));
}

#[test]
fn container_values_fill_unset_job_values() {
    let account = Account::with_inputs();
    account.run("asked", |request| {
        let parameters = "{\"MaxConcurrentTransforms\": 5, \"BatchStrategy\": \"MULTI_RECORD\", \"MaxPayloadInMB\": 7}";
        request["Environment"] = json!({"ECHO_PARAMETERS": parameters});
        let open = request.as_object_mut().unwrap();
        open.remove("BatchStrategy");
        open.remove("MaxPayloadInMB");
    });
    let messages = &account.plane.log_of_job("asked", JobLog::Data)[0];
    assert!(
        messages.ends_with("MaxConcurrentTransforms=5, MaxPayloadInMB=7, BatchStrategy=MULTI_RECORD"),
        "{messages}"
    );
}

#[test]
fn refused_object_fails_the_job_and_keeps_outputs() {
    let account = Account::with_inputs();
    account.bucket.put("in/large.bin", &vec![b'x'; 2 * 1024 * 1024]);
    account.plane.fail(Failure::BadObject("b.txt"));
    let over = account.run("partly", |request| request["MaxPayloadInMB"] = 1.into());
    assert_eq!(over, ("Failed".to_owned(), Some("ClientError: See job logs for more information".to_owned())));
    assert_eq!(account.outputs(), [true, false, true, true]);
    let log = account.plane.log_of_job("partly", JobLog::Data);
    let prints = |ending: String| log.iter().any(|line| line.ends_with(&ending));
    let bucket = &account.bucket.name;
    assert!(prints(format!("[sagemaker logs]: {bucket}/in/b.txt: ClientError: 400")), "{log:#?}");
    assert!(prints(format!("{bucket}/in/b.txt: {{\"error\": \"as the body says\"}}")), "{log:#?}");
    assert!(prints(format!("{bucket}/in/large.bin: Too much data for max payload size")), "{log:#?}");
}

#[test]
fn failed_container_request_is_repeated() {
    let account = Account::new();
    account.bucket.put("in/a.txt", b"fail once 503");
    assert_eq!(account.run("again", |_| {}), ("Completed".to_owned(), None));
    account.bucket.put("in/a.txt", b"fail once 500");
    let over = account.run("never-again", |request| {
        request["ModelClientConfig"] = json!({"InvocationsMaxRetries": 0});
    });
    assert_eq!(over, ("Failed".to_owned(), Some("AlgorithmError: See job logs for more information".to_owned())));
    account.bucket.put("in/a.txt", b"exit");
    assert_eq!(account.run("dead", |_| {}).0, "Failed");
    account.plane.fail(Failure::ContainerError("a.txt"));
    assert_eq!(account.run("broken", |_| {}).0, "Failed");
}

#[test]
fn jobs_reach_every_final_state() {
    let account = Account::with_inputs();
    let one = |job: &str, failure: Failure| {
        account.plane.fail(failure);
        let over = account.run(job, |_| {});
        account.plane.heal();
        (over.0, over.1.unwrap_or_default())
    };
    let (status, reason) = one("no-ping", Failure::NoPing);
    assert_eq!(status, "Failed");
    assert!(reason.contains("did not pass the ping health check"), "{reason}");
    let (status, reason) = one("no-capacity", Failure::NoCapacity);
    assert_eq!(status, "Failed");
    assert!(reason.starts_with("CapacityError: "), "{reason}");
    assert_eq!(account.outputs(), [false; 4]);
    assert_eq!(one("stopped", Failure::StoppedAfter(2)).0, "Stopped");
    assert_eq!(account.outputs(), [true, true, false, false]);
    assert_eq!(one("forgotten", Failure::NoOutput("below")), ("Completed".to_owned(), String::new()));
    assert_eq!(account.outputs(), [true, true, false, false]);
    let (status, reason) = account.run("nothing", |request| {
        request["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"] = account.bucket.uri("none/").into();
    });
    assert_eq!(status, "Failed");
    assert!(reason.unwrap().starts_with("ClientError: No S3 objects found under S3 URL"));
}

#[test]
fn archive_without_a_handler_fails_the_job() {
    for content in [b"no archive at all".to_vec(), archive(&[("readme.txt", b"hello")])] {
        let account = Account::with_archive(&content);
        account.bucket.put("in/a.txt", b"a");
        assert_eq!(account.run("lost", |_| {}).0, "Failed");
    }
}

#[test]
fn job_can_be_paused_by_a_test() {
    let account = Account::with_inputs();
    let describe = || account.plane.console("DescribeTransformJob", &json!({"TransformJobName": "held"})).unwrap();
    account.plane.pause_jobs();
    account.start("held", |_| {}).unwrap();
    account.plane.wait_until_paused();
    assert!(describe()["TransformStartTime"].is_null());
    account.plane.pause_jobs_after(3);
    account.plane.wait_until_paused();
    assert_eq!(describe()["TransformJobStatus"], "InProgress");
    assert_eq!(account.outputs(), [true, true, true, false]);
    account.plane.resume_jobs();
    assert_eq!(account.plane.wait_until_over("held"), ("Completed".to_owned(), None));
    assert_eq!(account.outputs(), [true; 4]);
}

#[test]
fn instances_have_their_share_and_logs() {
    let account = Account::with_inputs();
    let over = account.run("shared", |request| {
        request["TransformResources"]["InstanceCount"] = 2.into();
    });
    assert_eq!(over, ("Completed".to_owned(), None));
    assert_eq!(account.outputs(), [true; 4]);
    let streams = ask_by_boto3_for(
        &account.plane,
        ADMIN,
        "logs",
        "describe_log_streams(logGroupName='/aws/sagemaker/TransformJobs')",
    );
    assert_eq!(streams, "well");
}

fn manifest(bucket: &Bucket, names: &[&str]) -> String {
    let mut manifest = vec![json!({"prefix": bucket.uri("in/")})];
    manifest.extend(names.iter().map(|name| json!(name)));
    Value::from(manifest).to_string()
}

/// A record with checksums of zero, which the control plane does not verify.
fn tfrecord(content: &str) -> Vec<u8> {
    let mut record = (content.len() as u64).to_le_bytes().to_vec();
    record.extend([0; 4]);
    record.extend(content.as_bytes());
    record.extend([0; 4]);
    record
}

fn ask_by_boto3(plane: &ControlPlane, login: Login, call: &str) -> String {
    ask_by_boto3_for(plane, login, "sagemaker", call)
}

/// `well`, or AWS's code and message; requested once.
fn ask_by_boto3_for(plane: &ControlPlane, login: Login, service: &str, call: &str) -> String {
    asked(boto3(plane, login), service, call)
}

fn boto3(plane: &ControlPlane, login: Login) -> Command {
    let mut command = python("tests/control_plane/ask.py");
    plane.sign_in(&mut command, login);
    command.env("AWS_DEFAULT_REGION", REGION);
    command
}

fn asked(mut command: Command, service: &str, call: &str) -> String {
    let output = command.args([service, call]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn python(script: &str) -> Command {
    let mut command = Command::new("python3");
    command
        .arg(crate::support::repository().join(script))
        .env("PYTHONPATH", crate::support::python_packages("aws-models"));
    command
}
