//! Starting jobs: what is uploaded, sent and recorded, and what a failed start leaves behind.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Transform, check};
use crate::support::control_plane::{Failure, IMAGE, ROLE, echo_archive};
use crate::support::ended::Ended;
use crate::support::fault_proxy::{Fault, FaultProxy, Often};
use crate::support::seaweed::Seaweed;

#[test]
fn job_is_started_watched_and_cleaned_up() {
    let transform = Transform::with_images("whole", 7);
    let started = transform.start("cats", "photos/", &["--watch", "--hourly-price", "3.6"]);
    let started = started.must(0, &["7 objects on 1", "ml.m5.xlarge", "completed", "7 of 7 (100%)", ": model cats"]);
    assert!(started.stdout.starts_with("cats\n"), "{started:#?}");
    let prediction = transform.prediction("out/cats/day 1/004.jpg.out").unwrap();
    assert_eq!(prediction["text"], "image 4");
    assert_eq!(prediction["content_type"], "application/x-image");
    let asked = transform.asked("CreateTransformJob");
    assert_eq!(asked["BatchStrategy"], "SingleRecord");
    // Chosen by the instance and the objects.
    assert_eq!(asked["MaxConcurrentTransforms"], 4);
    assert_eq!(asked["MaxPayloadInMB"], 1);
    let model = transform.asked("CreateModel");
    assert_eq!(model["PrimaryContainer"]["Image"], IMAGE);

    transform.run(&["status", "cats"]).must(0, &["status     completed", "7 of 7 (100%)", "$"]);
    transform.run(&["logs", "cats"]).must(0, &["ready"]);
    transform.run(&["list", "--name", "cat"]).must(0, &["completed", " cats\n"]);
    let others = transform.run(&["list", "--status", "failed"]).must(0, &["no matching jobs"]);
    assert_eq!(others.stdout, "");

    let unsure = transform.run(&["clean-up", "cats"]).must(1, &["confirm with --yes"]);
    assert_eq!(unsure.stdout, "model cats\n");
    transform.run(&["clean-up", "cats", "--dry-run"]).must(0, &["nothing was deleted"]);
    assert_eq!(transform.plane.count("DeleteModel"), 0);
    assert_eq!(transform.clean_up("cats"), ["model cats"]);
    assert_eq!(transform.plane.count("DeleteModel"), 1);
    // The archive existed before the job.
    assert!(transform.bucket.get("models/model.tar.gz").is_some());
    assert!(transform.bucket.get("out/cats/day 1/004.jpg.out").is_some());
    transform.run(&["clean-up", "cats", "--yes"]).must(0, &["left nothing behind"]);
}

#[test]
fn missing_files_are_uploaded_and_cleaned_up() {
    let transform = Transform::new("uploading");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("훈련")).unwrap();
    std::fs::write(folder.path().join("훈련/고양이.jpg"), "a cat").unwrap();
    std::fs::write(folder.path().join("b.png"), "b").unwrap();
    let archive = folder.path().join("packed.tar.gz");
    std::fs::write(&archive, echo_archive()).unwrap();
    let (input_to, output) = (transform.bucket.uri("in/"), transform.bucket.uri("out"));
    let folder_text = folder.path().to_str().unwrap();
    let args = [
        "start",
        folder_text,
        "--input-to",
        &input_to,
        "--output",
        &output,
        "--archive",
        archive.to_str().unwrap(),
        "--role",
        ROLE,
        "--job-name",
        "up",
        "--watch",
    ];
    transform.run(&args).must(0, &[]);
    assert_eq!(transform.counts("up"), ("completed".to_owned(), 2, 2));
    assert_eq!(transform.prediction("out/up/훈련/고양이.jpg.out").unwrap()["text"], "a cat");
    let uploaded = "out/spotcheck-files/up/model.tar.gz";
    assert!(transform.bucket.get(uploaded).is_some());
    assert_eq!(transform.clean_up("up").len(), 2);
    assert!(transform.bucket.get(uploaded).is_none());
    assert!(transform.bucket.get("in/b.png").is_some());
}

#[test]
fn image_list_is_sent_as_a_manifest() {
    let transform = Transform::with_images("list", 6);
    let list = transform.home.path().join("list.txt");
    let whole = transform.bucket.uri("photos/day 2/005.jpg");
    std::fs::write(&list, format!("day 0/000.jpg\r\n\n{whole}\nday 0/000.jpg\n")).unwrap();
    let list = list.to_str().unwrap();
    transform.start("some", "photos/", &["--images", list, "--watch"]).must(0, &[]);
    assert_eq!(transform.counts("some"), ("completed".to_owned(), 2, 2));
    assert_eq!(transform.sent(), ["day 0/000.jpg", "day 2/005.jpg"]);
    assert!(transform.prediction("out/some/day 0/000.jpg.out").is_some());
    assert!(transform.prediction("out/some/day 2/005.jpg.out").is_some());
    assert!(transform.prediction("out/some/day 1/001.jpg.out").is_none());
    let manifest = "out/spotcheck-files/some/manifest.json";
    assert!(transform.bucket.get(manifest).is_some());
    let deleted = transform.clean_up("some");
    assert_eq!(deleted.len(), 2);
    assert!(deleted[0].starts_with("manifest s3://"), "{deleted:?}");
    assert!(transform.bucket.get(manifest).is_none());
    // A missing one is found before the start.
    std::fs::write(transform.home.path().join("list.txt"), "gone.jpg\n").unwrap();
    transform.start("gone", "photos/", &["--images", list]).must(1, &["1 object of", "not exist"]);
    assert_eq!(transform.plane.count("CreateTransformJob"), 1);
}

#[test]
fn job_parameters_reach_sagemaker() {
    let transform = Transform::with_images("parameters", 1);
    let capture = transform.bucket.uri("captured/");
    let more = [
        "--instance-type",
        "ml.c5.2xlarge",
        "--instance-count",
        "2",
        "--max-payload-mb",
        "5",
        "--max-concurrent",
        "3",
        "--timeout-s",
        "60",
        "--max-retries",
        "1",
        "--env",
        "NOTE=it's",
        "--tfs-batching",
        "small",
        "--tag",
        "team=vision",
        "--input-filter",
        "$.a",
        "--output-filter",
        "$",
        "--join-input",
        "--output-kms-key",
        "alias/out",
        "--volume-kms-key",
        "alias/disk",
        "--ami-version",
        "al2-ami-sagemaker-batch-gpu-535",
        "--data-capture",
        &capture,
        "--data-capture-ids",
        "--experiment",
        "cats",
        "--trial",
        "first",
        "--experiment-run",
        "one",
        "--accept",
        "application/jsonlines",
        "--content-type",
        "image/jpeg",
        "--model-env",
        "LOG=1",
        "--model-name",
        "my-model",
        // Filters and joining are for JSON and CSV.
        "--force",
    ];
    transform.start("parameters", "photos/", &more).must(0, &[]);
    let asked = transform.asked("CreateTransformJob");
    let expected = serde_json::json!({
        "TransformJobName": "parameters",
        "ModelName": "my-model",
        "MaxConcurrentTransforms": 3,
        "ModelClientConfig": {"InvocationsTimeoutInSeconds": 60, "InvocationsMaxRetries": 1},
        "MaxPayloadInMB": 5,
        "BatchStrategy": "SingleRecord",
        "Environment": {
            "NOTE": "it's",
            "SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS": "1000",
            "SAGEMAKER_TFS_ENABLE_BATCHING": "true",
            "SAGEMAKER_TFS_MAX_BATCH_SIZE": "4",
            "SAGEMAKER_TFS_MAX_ENQUEUED_BATCHES": "64",
            "SAGEMAKER_TFS_NUM_BATCH_THREADS": "4",
        },
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": transform.bucket.uri("photos/")}},
            "ContentType": "image/jpeg",
            "CompressionType": "None",
            "SplitType": "None",
        },
        "TransformOutput": {
            "S3OutputPath": transform.bucket.uri("out/parameters/"),
            "Accept": "application/jsonlines",
            "AssembleWith": "None",
            "KmsKeyId": "alias/out",
        },
        "DataCaptureConfig": {"DestinationS3Uri": capture, "GenerateInferenceId": true},
        "TransformResources": {
            "InstanceType": "ml.c5.2xlarge",
            "InstanceCount": 2,
            "VolumeKmsKeyId": "alias/disk",
            "TransformAmiVersion": "al2-ami-sagemaker-batch-gpu-535",
        },
        "DataProcessing": {"InputFilter": "$.a", "OutputFilter": "$", "JoinSource": "Input"},
        "ExperimentConfig": {"ExperimentName": "cats", "TrialName": "first", "RunName": "one"},
        "Tags": [{"Key": "team", "Value": "vision"}],
    });
    assert_eq!(asked, expected);
    let model = transform.asked("CreateModel");
    assert_eq!(model["PrimaryContainer"]["Environment"]["LOG"], "1");
    assert_eq!(model["Tags"][0]["Value"], "vision");
}

#[test]
fn variable_values_are_sent_and_not_stored() {
    let transform = Transform::with_images("secrets", 1);
    let more = ["--env", "TOKEN=hunter2", "--model-env", "KEY=correct-horse"];
    transform.start("kept", "photos/", &more).must(0, &[]);
    assert_eq!(transform.asked("CreateTransformJob")["Environment"]["TOKEN"], "hunter2");
    let [record] = <[PathBuf; 1]>::try_from(transform.records()).unwrap();
    let mode = record.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kept = std::fs::read_to_string(&record).unwrap();
    assert!(kept.contains("TOKEN") && !kept.contains("hunter2"), "{kept}");
    assert!(kept.contains("KEY") && !kept.contains("correct-horse"), "{kept}");
}

#[test]
fn server_password_is_neither_printed_nor_stored() {
    let transform = Transform::with_images("password", 1);
    let args = transform.of_job("start", "cats", "photos/", &[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = transform.command(&args);
    let server = transform.bucket.server().endpoint();
    let with_password = server.replace("://", "://user:hunter2@");
    command.env("AWS_ENDPOINT_URL_S3", with_password);
    let started = Ended::new(&command.output().unwrap());
    assert!(!started.stderr.contains("hunter2"), "{started:#?}");
    started.must(0, &["1 object"]);
    let kept = std::fs::read_to_string(&transform.records()[0]).unwrap();
    assert!(!kept.contains("hunter2"), "{kept}");
}

#[test]
fn model_known_only_to_sagemaker_is_accepted() {
    let transform = Transform::with_images("chain", 2);
    transform.plane.add_chain("chain");
    transform.plane.pause_jobs();
    let (input, output) = (transform.bucket.uri("photos/"), transform.bucket.uri("out/"));
    let args = ["--output", &output, "--model-name", "chain", "--job-name", "chained"];
    let args = [&[input.as_str()][..], &args].concat();
    let found = transform.run(&[&["preflight"][..], &args].concat());
    let found = found.must(0, &["several containers"]);
    assert_eq!(check(&found, "Model").0, "warning", "{found:#?}");
    assert_eq!(check(&found, "Role").0, "warning", "{found:#?}");
    transform.run(&[&["start"][..], &args].concat()).must(0, &[]);
    transform.run(&["stop", "chained", "--yes"]).must(0, &[]);
    transform.plane.resume_jobs();
    transform.plane.wait_until_over("chained");
    transform.plane.pause_jobs();
    transform.run(&["retry", "chained"]).must(0, &[]);
    assert_eq!(transform.sent(), ["day 0/000.jpg", "day 1/001.jpg"]);
    let asked = transform.asked("CreateTransformJob");
    assert_eq!(asked["ModelName"], "chain");
}

#[test]
fn refused_start_lists_existing_leftovers() {
    let transform = Transform::with_images("not-made", 1);
    let left = || {
        let [record] = <[PathBuf; 1]>::try_from(transform.records()).unwrap();
        let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
        record["left"].clone()
    };
    let lists_leftovers = |ended: &Ended| ended.stderr.contains("left behind");
    let create = "CreateModel";
    transform.plane.fail(Failure::AccessDenied { operation: create });
    let refused = transform.start("cats", "photos/", &[]);
    assert!(!lists_leftovers(&refused), "{refused:#?}");
    refused.must(1, &["sagemaker:CreateModel"]);
    assert_eq!(left(), json!([]));
    // Whether a lost response was a success is unknown.
    transform.plane.heal();
    let lost = Failure::HangUp { operation: create, times: 100 };
    transform.plane.fail(lost);
    let lost = transform.start("cats", "photos/", &[]);
    assert!(lists_leftovers(&lost), "{lost:#?}");
    assert_eq!(left(), json!([{"model": "cats"}]));

    // The archive of this computer does not arrive.
    transform.plane.heal();
    std::fs::remove_file(&transform.records()[0]).unwrap();
    let archive = transform.home.path().join("model.tar.gz");
    std::fs::write(&archive, echo_archive()).unwrap();
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let denied = Fault::error("403 Forbidden", "AccessDenied");
    proxy.inject(|request| request.method == "PUT", Often::Always, denied);
    let mut args = transform.of_job("start", "cats", "photos/", &[]);
    let flag = args.iter().position(|arg| arg == "--archive").unwrap();
    args[flag + 1] = archive.to_str().unwrap().to_owned();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = transform.command(&args);
    command.env("AWS_ENDPOINT_URL_S3", proxy.endpoint());
    let refused = Ended::new(&command.output().unwrap());
    assert!(!lists_leftovers(&refused), "{refused:#?}");
    refused.must(1, &["s3:PutObject"]);
    assert_eq!(left(), json!([]));
}

#[test]
fn refused_start_can_be_repeated() {
    let transform = Transform::with_images("refused", 2);
    let archive = transform.home.path().join("model.tar.gz");
    std::fs::write(&archive, echo_archive()).unwrap();
    let (input, output) = (transform.bucket.uri("photos/"), transform.bucket.uri("out/"));
    let args = [
        "start",
        &input,
        "--output",
        &output,
        "--archive",
        archive.to_str().unwrap(),
        "--role",
        ROLE,
        "--job-name",
        "refused",
    ];
    transform.plane.fail(Failure::ResourceLimit);
    let refused = transform
        .run(&args)
        .must(1, &["ResourceLimitExceeded", "quota", ": archive s3://", "model refused", "clean-up refused"]);
    assert_eq!(refused.stdout, "");
    transform.plane.heal();
    transform.run(&args).must(0, &["2 objects"]);
    // Existing resources were not created again.
    assert_eq!(transform.plane.count("CreateModel"), 1);
    // Repeated once more, it is the same job.
    let again = transform.run(&args).must(0, &["already started", "status refused --watch"]);
    assert_eq!(again.stdout, "refused\n");
    assert_eq!(transform.plane.count("CreateTransformJob"), 2);
    let other = [&args[..], &["--instance-count", "2"]].concat();
    transform.run(&other).must(1, &["Job refused already"]);
    transform.plane.wait_until_over("refused");
    assert_eq!(transform.clean_up("refused").len(), 2);
}

#[test]
fn refused_start_shows_the_aws_message() {
    let transform = Transform::with_images("refusals", 1);
    let operation = "CreateTransformJob";
    let times = 100;
    for (failure, messages) in [
        (Failure::Throttling { operation, times }, &["request rate", "ThrottlingException: Rate exceeded"][..]),
        (Failure::AccessDenied { operation }, &["sagemaker:CreateTransformJob", "AccessDeniedException"]),
        (Failure::HangUp { operation, times }, &["job refusals: "]),
    ] {
        transform.plane.fail(failure);
        let more = [messages, &["clean-up refusals"]].concat();
        transform.start("refusals", "photos/", &[]).must(1, &more);
        transform.plane.heal();
    }
    // A second start works, and a request without a response is repeated.
    transform.plane.fail(Failure::HangUp { operation, times: 1 });
    transform.start("refusals", "photos/", &[]).must(0, &[]);
}

#[test]
fn recordio_records_are_predicted_individually() {
    let transform = Transform::new("recordio-job");
    // MXNet's format: a magic number, the length, the content, padded to a multiple of four.
    let mut packed = Vec::new();
    for content in [&b"first"[..], b"second!!"] {
        packed.extend(0xced7_230a_u32.to_le_bytes());
        packed.extend((content.len() as u32).to_le_bytes());
        packed.extend(content);
        packed.resize(packed.len().next_multiple_of(4), 0);
    }
    transform.bucket.put("packed/train.rec", &packed);
    let more = ["--split-type", "recordio", "--assemble-with", "line"];
    transform.start("packed", "packed/", &[&more[..], &["--watch"]].concat()).must(0, &["outputs    1 of 1"]);
    let output = transform.bucket.get("out/packed/train.rec.out").unwrap();
    let lines = String::from_utf8(output).unwrap();
    let sizes: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["len"].clone()).collect();
    assert_eq!(sizes, [5, 8], "{lines}");
}
