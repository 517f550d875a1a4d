//! `spotcheck transform` as a process, against the tests' own control plane: jobs are checked, started, watched,
//! stopped, retried and cleaned up.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use spotcheck::domain::known_instance_types;

use crate::support::control_plane::{ControlPlane, Failure, IMAGE, ROLE, archive, echo_archive};
use crate::support::ended::Ended;
use crate::support::fault_proxy::{Fault, FaultProxy, Often, Response};
use crate::support::seaweed::{ADMIN, Bucket, STRANGER, Seaweed};
use crate::support::{python_packages, spotcheck, spotcheck_at};

/// Time between two checks of a condition.
const POLL: Duration = Duration::from_millis(10);
/// Begins the line of an image that failed.
const FAILED_OBJECT: &str = "failed s3://";
/// Message about an image that the log of its job does not name.
const SILENT_LOG: &str = "reports no reason";

/// All that a preflight looks at.
const POINTS: [&str; 16] = [
    "Names and limits",
    "Job name",
    "Role",
    "Container",
    "Model",
    "Input",
    "Prefix",
    "Objects",
    "Output",
    "Region",
    "Payload",
    "Concurrency",
    "Content type",
    "Splitting",
    "Instance",
    "Cost",
];

/// A bucket with images, an archive that returns at once what it was sent, and a machine of its own.
struct Transform {
    bucket: Bucket,
    plane: ControlPlane,
    home: tempfile::TempDir,
}

impl Transform {
    fn new(name: &str) -> Self {
        let bucket = Seaweed::shared().bucket(name);
        let plane = ControlPlane::start(bucket.server());
        bucket.put("models/model.tar.gz", &echo_archive());
        Self { bucket, plane, home: tempfile::tempdir().unwrap() }
    }

    fn with_images(name: &str, count: usize) -> Self {
        let transform = Self::new(name);
        for number in 0..count {
            let content = format!("image {number}");
            transform.bucket.put(&format!("photos/day {}/{number:03}.jpg", number % 3), content.as_bytes());
        }
        transform
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = spotcheck_at(self.home.path(), &["transform"]);
        command.args(args).stdin(Stdio::null());
        self.plane.sign_in(&mut command, ADMIN);
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        Ended::of(&self.command(args).output().unwrap())
    }

    /// A job over `input` of the archive in the bucket.
    fn of_job(&self, what: &str, job: &str, input: &str, more: &[&str]) -> Vec<String> {
        let archive = self.bucket.uri("models/model.tar.gz");
        let (input, output) = (self.bucket.uri(input), self.bucket.uri("out/"));
        let args = [what, &input, "--output", &output, "--job-name", job, "--archive", &archive, "--role", ROLE];
        args.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
    }

    fn start(&self, job: &str, input: &str, more: &[&str]) -> Ended {
        let args = self.of_job("start", job, input, more);
        self.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn preflight(&self, job: &str, input: &str, more: &[&str]) -> Ended {
        let args = self.of_job("preflight", job, input, more);
        self.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A preflight of a job `trap` says this of a point. What is given in `more` counts, and not what is usual.
    fn must_find(&self, input: &str, more: &[&str], point: &str, grade: &str, said: &str) {
        let mut args = self.of_job("preflight", "trap", input, &[]);
        for pair in more.chunks(2) {
            match args.iter().position(|arg| arg == pair[0]) {
                Some(flag) => pair[1].clone_into(&mut args[flag + 1]),
                None => args.extend(pair.iter().map(|arg| (*arg).to_owned())),
            }
        }
        let found = self.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let (found_grade, _) = check(&found, point);
        assert_eq!(found_grade, grade, "{point} in {found:#?}");
        let texts = of_point(&found, point);
        assert!(texts.contains(said), "no “{said}” in {texts}: {found:#?}");
        assert!(grade != "problem" || found.code == Some(1), "{found:#?}");
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until the status of a job was requested `times` times.
    fn wait_until_looked_at(&self, times: usize) {
        while self.plane.count("DescribeTransformJob") < times {
            std::thread::sleep(POLL);
        }
    }

    /// `status --output json` of a job, which must end with `code`.
    #[track_caller]
    fn status(&self, job: &str, code: i32) -> Value {
        let ended = self.run(&["status", job, "--output", "json"]);
        serde_json::from_str(&ended.must(code, &[]).stdout).unwrap()
    }

    /// Cleans up after a job; what was deleted.
    #[track_caller]
    fn clean_up(&self, job: &str) -> Vec<String> {
        let ended = self.run(&["clean-up", job, "--yes"]).must(0, &[]);
        ended.stdout.lines().map(str::to_owned).collect()
    }

    /// Status of a job that has ended as it should, outputs, and inputs.
    #[track_caller]
    fn counts(&self, job: &str) -> (String, u64, u64) {
        let status = self.status(job, 0);
        let count = |field: &str| status[field].as_u64().unwrap();
        let name = status["status"].as_str().unwrap().to_owned();
        (name, count("outputs"), count("inputs"))
    }

    /// The images below `photos/` that the last job was started over, by its manifest.
    fn sent(&self) -> Vec<String> {
        let source = &self.asked("CreateTransformJob")["TransformInput"]["DataSource"];
        assert_eq!(source["S3DataSource"]["S3DataType"], "ManifestFile");
        let manifest = source["S3DataSource"]["S3Uri"].as_str().unwrap();
        let key = manifest.strip_prefix(&self.bucket.uri("")).unwrap();
        let manifest: Vec<Value> = serde_json::from_slice(&self.bucket.get(key).unwrap()).unwrap();
        let prefix = manifest[0]["prefix"].as_str().unwrap();
        let names = manifest[1..].iter().map(|name| {
            let uri = format!("{prefix}{}", name.as_str().unwrap());
            let name = uri.strip_prefix(&self.bucket.uri("photos/"));
            name.unwrap().to_owned()
        });
        names.collect()
    }

    fn prediction(&self, key: &str) -> Option<Value> {
        serde_json::from_slice(&self.bucket.get(key)?).ok()
    }

    /// The body of the last request for an operation.
    fn asked(&self, operation: &str) -> Value {
        self.all_asked(operation).pop().unwrap()
    }

    /// The bodies of the requests for an operation, in the order they came.
    fn all_asked(&self, operation: &str) -> Vec<Value> {
        let requests = self.plane.requests().into_iter();
        let asked = requests.filter(|request| request.operation == operation);
        asked.map(|request| request.body).collect()
    }

    /// When the job began, in seconds since 1970.
    fn created_s(&self, job: &str) -> f64 {
        let asked = serde_json::json!({"TransformJobName": job});
        let told = self.plane.console("DescribeTransformJob", &asked);
        told.unwrap()["CreationTime"].as_f64().unwrap()
    }

    fn records(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.home.path().join("data/jobs"));
        folder.map_or_else(|_| Vec::new(), |files| files.map(|file| file.unwrap().path()).collect())
    }
}

/// All that a preflight says of a point: its lines, and those of its hints.
fn of_point(found: &Ended, point: &str) -> String {
    let mut is_point = false;
    let lines = found.stdout.lines().filter(|line| {
        if let Some(label) = line.get(9..26).map(str::trim)
            && !label.is_empty()
        {
            is_point = label == point;
        }
        is_point
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The grade and the text of a point of a preflight; the worst if there are several.
fn check(found: &Ended, point: &str) -> (String, String) {
    let lines = found.stdout.lines().filter_map(|line| {
        let grade = line.get(..8)?.trim();
        let label = line.get(9..26)?.trim();
        (label == point).then(|| (grade.to_owned(), line[26..].trim().to_owned()))
    });
    let order = ["ok", "warning", "problem"];
    let worst = lines.max_by_key(|(grade, _)| order.iter().position(|known| known == grade));
    worst.unwrap_or_else(|| panic!("no {point} in {found:#?}"))
}

#[test]
fn job_is_started_watched_and_cleaned_up() {
    let transform = Transform::with_images("whole", 7);
    let started = transform.start("cats", "photos/", &["--watch", "--hourly-price", "3.6"]);
    let started = started.must(
        0,
        &["started a job for 7 objects on 1 × ml.m5.xlarge", "completed", "7 of 7 (100%)", "left behind: model cats"],
    );
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
    // The archive was there before the job.
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
    // One that is not there is found before the start.
    std::fs::write(transform.home.path().join("list.txt"), "gone.jpg\n").unwrap();
    transform
        .start("gone", "photos/", &["--images", list])
        .must(1, &["1 object of the manifest do not exist", "Nothing was started"]);
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
fn aws_commands_require_a_valid_plan() {
    let transform = Transform::with_images("commands-of-problems", 1);
    let print = |more: &[&str]| {
        let more = [&["--print-aws"], more].concat();
        transform.start("bad", "photos/", &more)
    };
    // Images are not cut into lines.
    let bad = ["--split-type", "line"];
    let refused = print(&bad).must(1, &["problem  Splitting", "--force"]);
    assert_eq!(refused.stdout, "");
    let forced = print(&[&bad[..], &["--force"]].concat()).must(0, &["problem  Splitting"]);
    assert!(forced.stdout.contains("create-transform-job"), "{forced:#?}");

    let printed = print(&[]).must(0, &[]);
    let script = format!("aws() {{ echo \"$2\"; return 1; }}\n{}", printed.stdout);
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"create-model\n");
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
    let started = Ended::of(&command.output().unwrap());
    assert!(!started.stderr.contains("hunter2"), "{started:#?}");
    started.must(0, &["started a job for 1 object"]);
    let kept = std::fs::read_to_string(&transform.records()[0]).unwrap();
    assert!(!kept.contains("hunter2"), "{kept}");
}

#[test]
fn printed_aws_commands_send_equal_requests() {
    let transform = Transform::with_images("commands", 2);
    let more = ["--env", "NOTE=it's \"quoted\" $HOME", "--tag", "team=고양이"];
    let mut printing = more.to_vec();
    printing.push("--print-aws");
    let printed = transform.start("commands", "photos/", &printing).must(0, &[]);
    assert_eq!(transform.plane.count("CreateTransformJob"), 0);
    assert!(transform.records().is_empty());
    transform.start("commands", "photos/", &more).must(0, &[]);
    let job = transform.asked("CreateTransformJob");
    let model = transform.asked("CreateModel");
    // A shell parses the commands, and prints the request of each `aws`.
    let script = format!(
        "aws() {{ for word; do case $last in --cli-input-json) printf '%s\\n' \"$word\";; esac; \
         last=$word; done; }}\n{}",
        printed.stdout
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let requests: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(requests, [model, job], "{printed:#?}");
}

#[test]
fn valid_plan_passes_preflight() {
    let transform = Transform::with_images("preflight", 3);
    let more = ["--hourly-price", "1", "--images-per-s", "0.5"];
    let well = transform.preflight("well", "photos/", &more);
    let well = well.must(0, &["12 minutes on 2 ml.p3.2xlarge"]);
    for point in POINTS {
        assert_eq!(check(&well, point).0, "ok", "{point} in {well:#?}");
    }
    let (_, cost) = check(&well, "Cost");
    assert!(cost.contains("about 6 s, for about $0.002"), "{cost}");
    assert!(check(&well, "Objects").1.starts_with("3 objects, "));
    // Nothing was written anywhere.
    for operation in ["CreateModel", "CreateTransformJob"] {
        assert_eq!(transform.plane.count(operation), 0);
    }
    assert!(transform.records().is_empty());
}

#[test]
fn preflight_checks_inputs() {
    let transform = Transform::with_images("input-traps", 3);
    transform.must_find("photos", &[], "Prefix", "warning", "does not end in a slash");
    transform.bucket.put("photos-old/1.jpg", b"old");
    transform.must_find("photos", &[], "Prefix", "problem", "photos-old/");
    transform.must_find("nothing/", &[], "Input", "problem", "No input");
    transform.bucket.put("photos/.keep", b"");
    transform.bucket.put("photos/notes.txt", b"not an image");
    transform.bucket.put("photos/Thumbs.db", b"nor this");
    let objects = |said| transform.must_find("photos/", &[], "Objects", "warning", said);
    objects("1 object without content: photos/.keep");
    objects("1 hidden object");
    objects("photos/Thumbs.db");
    objects("3 images, 0 TFRecord files and 1 text file are mixed");
    transform.bucket.put("photos/out/trap/a.jpg.out", b"old");
    let under = transform.bucket.uri("photos/out/");
    transform.must_find("photos/", &["--output", &under], "Output", "problem", "inside the input");
    transform.must_find("photos/", &["--output", &under], "Output", "problem", "is not empty");
}

#[test]
fn preflight_checks_requests() {
    let transform = Transform::with_images("request-traps", 1);
    let find = |more: &[&str], point, grade, said| {
        transform.must_find("photos/", more, point, grade, said);
    };
    find(&["--split-type", "line"], "Splitting", "problem", "cut images into pieces");
    find(&["--batch-strategy", "multi-record"], "Splitting", "warning", "SingleRecord");
    find(&["--compression", "gzip"], "Splitting", "problem", "CompressionType to None");
    find(&["--content-type", "text/csv"], "Content type", "warning", "application/x-image");
    find(&["--max-payload-mb", "50", "--max-concurrent", "3"], "Names and limits", "problem", "50 MB × 3 = 150 MB");
    find(&["--max-payload-mb", "0"], "Payload", "warning", "requests are chunked");
    find(&["--max-concurrent", "0"], "Concurrency", "warning", "one request at a time");
    transform.bucket.put("large/l.jpg", &vec![7; 6_000_001]);
    let large = |more: &[&str], grade, said| transform.must_find("large/", more, "Payload", grade, said);
    large(&[], "ok", "fits into requests of up to 7 MB");
    large(&["--max-payload-mb", "6"], "problem", "Set MaxPayloadInMB to 7");
    transform.bucket.put("records/a.tfrecord", b"record");
    transform.bucket.put("recordio/photos.rec", b"\x0a\x23\xd7\xce");
    transform.must_find("recordio/", &["--split-type", "recordio"], "Splitting", "warning", "does not read");
    let records = |more: &[&str], grade, said| {
        transform.must_find("records/", more, "Splitting", grade, said);
    };
    records(&["--input-kind", "tfrecord"], "ok", "SplitType TFRecord");
    let multi = ["--input-kind", "tfrecord", "--batch-strategy", "multi-record"];
    records(&multi, "warning", "Set BatchStrategy to SingleRecord");
    // The handler of this archive reads records with their framing.
    let ours = archive(&[("spotcheck-model.json", b"{}"), ("model.onnx", b"graph")]);
    transform.bucket.put("models/ours.tar.gz", &ours);
    let ours = transform.bucket.uri("models/ours.tar.gz");
    let multi = [&multi[..], &["--archive", &ours]].concat();
    records(&multi, "ok", "BatchStrategy MultiRecord");
    records(&[], "warning", "Set SplitType to TFRecord");
    records(&["--split-type", "line"], "problem", "does not split TFRecord files");
    records(&["--input-kind", "tfrecord", "--assemble-with", "none"], "warning", "one response per line");
}

#[test]
fn bucket_in_another_region_is_a_problem() {
    let transform = Transform::with_images("regions", 1);
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let bucket = format!("/{}", transform.bucket.name);
    let lies_in = |region: &str| {
        proxy.heal();
        let path = bucket.clone();
        let head = Response {
            status: "200 OK".to_owned(),
            headers: vec![("x-amz-bucket-region".to_owned(), region.to_owned())],
            body: Vec::new(),
        };
        proxy.inject(
            move |request| {
                let asked = request.target.split('?').next().unwrap_or_default();
                request.method == "HEAD" && asked.trim_end_matches('/') == path
            },
            Often::Always,
            Fault::Response(head),
        );
        let args = transform.of_job("preflight", "regions", "photos/", &[]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = transform.command(&args);
        command.env("AWS_ENDPOINT_URL_S3", proxy.endpoint());
        Ended::of(&command.output().unwrap())
    };
    let other = lies_in("eu-central-1").must(
        1,
        &[
            "The job runs in us-east-1",
            "(model, input, outputs) is in eu-central-1",
            "Start the job in eu-central-1, or choose a bucket in us-east-1",
        ],
    );
    assert_eq!(check(&other, "Region").0, "problem");
    let there = lies_in("us-east-1");
    let (grade, finding) = check(&there, "Region");
    assert_eq!(grade, "ok");
    assert!(finding.starts_with("The job runs in us-east-1, the region of"), "{finding}");
}

#[test]
fn preflight_checks_model_container_and_instance() {
    let transform = Transform::with_images("model-traps", 1);
    let find = |more: &[&str], point, grade, said| {
        transform.must_find("photos/", more, point, grade, said);
    };
    find(&["--instance-type", "m5.xlarge"], "Instance", "problem", "not an instance type");
    find(&["--instance-type", "ml.m5.3xlarge"], "Instance", "warning", "Known sizes: large, xlarge");
    find(&["--instance-type", "ml.m9.xlarge"], "Instance", "warning", "does not know");
    find(&["--instance-count", "2"], "Instance", "warning", "1 instance would be billed but idle");
    find(&["--tfs-batching", "small"], "Container", "warning", "SAGEMAKER_TFS_");
    find(&[], "Cost", "warning", "The price of ml.m5.xlarge is unknown");
    find(&["--hourly-price", "1"], "Cost", "warning", "the speed of the model is unknown");
    let other = IMAGE.replace("us-east-1", "eu-west-1");
    find(&["--image", &other], "Container", "problem", "is in eu-west-1");
    find(&["--image", "python:3"], "Container", "warning", "does not look like a container in ECR");
    let gpu = ["--instance-type", "ml.g5.xlarge"];
    find(&gpu, "Container", "ok", "cuda");
    find(&[&gpu[..], &["--image", IMAGE]].concat(), "Container", "warning", "does not use the GPU");
    let cuda = IMAGE.replace("-cpu-", "-cuda-");
    find(&["--image", &cuda], "Container", "warning", "ml.m5.xlarge has none");
    find(&["--role", "me"], "Role", "problem", "arn:aws:iam::");
    find(&["--job-name", "a b"], "Names and limits", "problem", "“a b” is not valid");
    let gone = transform.bucket.uri("models/gone.tar.gz");
    find(&["--archive", &gone], "Model", "problem", "the object does not exist");
    let local = transform.home.path().join("no-gzip.tar.gz");
    std::fs::write(&local, "plain").unwrap();
    find(&["--archive", local.to_str().unwrap()], "Model", "problem", "is not a gzip file");
    transform.start("trap", "photos/", &[]).must(0, &[]);
    find(&[], "Job name", "problem", "Job trap already exists");
    let other = transform.bucket.uri("models/other.tar.gz");
    transform.bucket.put("models/other.tar.gz", b"\x1f\x8bother");
    find(&["--archive", &other], "Model", "problem", "Another model trap already exists");
}

#[test]
fn archive_gets_a_matching_container() {
    let transform = Transform::with_images("contents", 1);
    let saved_model = archive(&[("code/inference.py", b"pass"), ("1/saved_model.pb", b"graph")]);
    let onnx = archive(&[("spotcheck-model.json", b"{}"), ("model.onnx", b"graph")]);
    transform.bucket.put("models/saved.tar.gz", &saved_model);
    transform.bucket.put("models/onnx.tar.gz", &onnx);
    let local = transform.home.path().join("local.tar.gz");
    std::fs::write(&local, &saved_model).unwrap();
    let local = local.to_str().unwrap();
    let in_s3 = transform.bucket.uri("models/saved.tar.gz");
    let onnx = transform.bucket.uri("models/onnx.tar.gz");
    let find = |more: &[&str], point, grade, said| {
        transform.must_find("photos/", more, point, grade, said);
    };
    for archive in [local, &in_s3] {
        let serving = "/tensorflow-inference:2.19.0-cpu";
        find(&["--archive", archive], "Container", "ok", serving);
        find(&["--archive", archive], "Model", "ok", "a TensorFlow SavedModel");
        find(
            &["--archive", archive, "--image", IMAGE],
            "Container",
            "problem",
            "contains a TensorFlow SavedModel, which ",
        );
        let gpu = ["--archive", archive, "--instance-type", "ml.g5.xlarge"];
        find(&gpu, "Container", "ok", "/tensorflow-inference:2.19.0-gpu");
    }
    find(&["--archive", &onnx], "Container", "ok", "/ray:");
    let serving = IMAGE.split_once('/').unwrap().0.to_owned() + "/tensorflow-inference:2.19.0-cpu";
    find(&["--archive", &onnx, "--image", &serving], "Container", "problem", "contains an ONNX model with its handler");
    find(&[], "Model", "ok", "so it is unknown whether the container can serve it");

    // A folder is packed first.
    let folder = transform.home.path().join("resnet/1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("saved_model.pb"), "graph").unwrap();
    let (input, output) = (transform.bucket.uri("photos/"), transform.bucket.uri("out/"));
    let args = [
        "start",
        &input,
        "--output",
        &output,
        "--saved-model",
        folder.parent().unwrap().to_str().unwrap(),
        "--role",
        ROLE,
    ];
    transform.plane.pause_jobs();
    let printed = transform.run(&[&args[..], &["--print-aws"]].concat());
    let packing = "spotcheck transform package --saved-model ";
    printed.must(0, &[packing, "/tensorflow-inference:2.19.0-cpu"]);
    let started = transform.run(&args).must(0, &[]);
    let job = started.stdout.trim_end();
    assert!(job.starts_with("resnet-2"), "{job}");
    let model = transform.asked("CreateModel");
    let image = model["PrimaryContainer"]["Image"].as_str().unwrap();
    assert!(image.ends_with("/tensorflow-inference:2.19.0-cpu"), "{image}");
    let key = format!("out/spotcheck-files/{job}/model.tar.gz");
    assert!(transform.bucket.get(&key).is_some());
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
    let found = found.must(0, &["several containers", "The job can run"]);
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
fn preflight_finds_conflicting_settings() {
    let transform = Transform::with_images("together", 2);
    let find = |more: &[&str], point, grade, said| {
        transform.must_find("photos/", more, point, grade, said);
    };
    find(&["--input-filter", "$.a"], "Content type", "problem", "InputFilter needs JSON or CSV inputs");
    find(&["--accept", "text/csv"], "Content type", "warning", "responds with JSON");
    find(&["--assemble-with", "line"], "Splitting", "warning", "each image has only one");
    let captured = transform.bucket.uri("photos/captured/");
    find(&["--data-capture", &captured], "Output", "problem", "The captured data would be inside the input");
    let joined = transform.preflight("trap", "photos/", &["--join-input"]);
    joined.must(1, &["JoinSource Input needs JSON or CSV inputs"]);

    // A job is about what it says, not about what is most frequent.
    transform.bucket.put("photos/a.tfrecord", b"record");
    let records = ["--input-kind", "tfrecord"];
    find(&records, "Splitting", "ok", "for TFRecord files");
    find(&records, "Objects", "warning", "Send only the TFRecord files");
    find(&[], "Objects", "warning", "Send only the images");
    let mixed = transform.preflight("trap", "photos/", &[]);
    let lines = mixed.stdout.lines();
    let of_objects = lines.filter(|line| line.get(9..26).is_some_and(|at| at.trim() == "Objects"));
    assert_eq!(of_objects.count(), 1, "{mixed:#?}");

    let one = "photos/day 0/000.jpg";
    transform.must_find(one, &[], "Prefix", "ok", "a single object");
    transform.bucket.put("photos/day 0/000.jpg.old", b"old");
    transform.must_find(one, &[], "Prefix", "problem", "as a list of one");
}

#[test]
fn estimate_uses_the_speed_of_an_earlier_job() {
    let transform = Transform::with_images("speed", 4);
    transform.plane.pause_jobs_after(2);
    transform.start("first", "photos/", &["--max-concurrent", "1"]).must(0, &[]);
    transform.plane.wait_until_paused();
    // A rate needs outputs of different times.
    wait_for_next_second();
    transform.plane.resume_jobs();
    transform.plane.wait_until_over("first");
    let preflight = |more: &[&str]| {
        let found = transform.preflight("second", "photos/", &[&["--hourly-price", "1"], more].concat());
        check(&found, "Cost")
    };
    assert!(preflight(&[]).1.contains("the speed of the model is unknown"));
    let rate = transform.status("first", 0)["outputs_per_s"].as_f64().unwrap();
    let (grade, cost) = preflight(&[]);
    let expected = if rate < 1.0 { format!("{rate:.2}") } else { format!("{rate:.1}") };
    assert_eq!(grade, "ok", "{cost}");
    assert!(cost.contains(&format!("4 objects at {expected} per second per instance, as in job first")), "{cost}");
    let of_another_type = preflight(&["--instance-type", "ml.c5.xlarge"]);
    assert!(of_another_type.1.contains("the speed of the model is unknown"));
}

#[test]
fn checks_are_listed_without_a_connection() {
    let transform = Transform::new("nothing-there");
    let output = transform.bucket.uri("out/");
    let input = transform.bucket.uri("nothing/");
    let args = ["preflight", &input, "--output", &output, "--model-name", "none"];
    let found = transform.run(&args);
    assert_eq!(found.code, Some(1), "{found:#?}");
    for point in POINTS {
        let (grade, text) = check(&found, point);
        assert!(!text.is_empty(), "{point}: {grade}");
    }
    for point in ["Role", "Container", "Payload", "Splitting", "Objects"] {
        let (grade, text) = check(&found, point);
        assert_eq!(grade, "warning", "{point}");
        assert!(text.starts_with("Not checked"), "{point}: {text}");
    }
}

#[test]
fn record_files_have_no_cost_estimate() {
    let transform = Transform::new("records-cost");
    transform.bucket.put("records/a.tfrecord", b"record");
    let more = ["--input-kind", "tfrecord", "--hourly-price", "3.6"];
    let more = [&more[..], &["--images-per-s", "0.1"]].concat();
    let found = transform.preflight("records", "records/", &more);
    let (grade, text) = check(&found, "Cost");
    assert_eq!(grade, "warning", "{found:#?}");
    assert!(text.contains("the number of records is unknown"), "{text}");
    assert!(!text.contains(": about "), "{text}");
    transform.bucket.put("photos/a.jpg", b"image");
    let found = transform.preflight("photos", "photos/", &more[2..]);
    let (_, text) = check(&found, "Cost");
    assert!(text.contains(": about "), "{text}");
}

#[test]
fn price_and_source_are_remembered() {
    let transform = Transform::with_images("price", 1);
    let more = ["--hourly-price", "0.25", "--price-source", "an invoice", "--images-per-s", "1"];
    transform.preflight("price", "photos/", &more).must(0, &["prices.toml"]);
    let found = transform.preflight("price", "photos/", &["--images-per-s", "1"]);
    let (grade, text) = check(&found, "Cost");
    assert_eq!(grade, "ok");
    assert!(text.contains("$0.25 per instance-hour, of 20") && text.contains("from an invoice"), "{text}");
    let table = transform.home.path().join("config/prices.toml");
    let kept = std::fs::read_to_string(&table).unwrap();
    std::fs::write(&table, kept.replace("0.25", "-1")).unwrap();
    let found = transform.preflight("price", "photos/", &[]).must(1, &["positive number", "prices.toml"]);
    assert!(found.stderr.contains("correct it"), "{found:#?}");
}

#[test]
fn partly_failed_job_retries_only_failures() {
    let transform = Transform::with_images("partly", 5);
    transform.bucket.put("photos/bad: one.jpg", b"fail 400");
    let more = ["--watch", "--max-concurrent", "1", "--tag", "team=vision"];
    let started = transform.start("partly", "photos/", &more);
    let started = started.must(3, &["partly failed", "of 6 inputs have an output", "transform retry partly"]);
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
    // The first job has all it needs now, too; that of another machine is found by its looks.
    let by_retry = format!("by retry {job}");
    let other = tempfile::tempdir().unwrap();
    let ask_at = |home: &std::path::Path, args: &[&str]| {
        let mut command = spotcheck_at(home, &["transform"]);
        command.args(args).stdin(Stdio::null());
        transform.plane.sign_in(&mut command, ADMIN);
        Ended::of(&command.output().unwrap())
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

    // The retry needs its manifest no longer, and the model was made for the first job.
    let deleted = transform.clean_up(&job);
    assert_eq!(deleted.len(), 1);
    assert!(deleted[0].starts_with("manifest s3://"), "{deleted:?}");
    assert_eq!(transform.clean_up("partly"), ["model partly"]);
    // The record still knows how to make the model again, where something is to be sent again.
    transform.bucket.delete(&format!("out/{job}/bad: one.jpg.out"));
    transform.run(&["retry", "partly", "--watch"]).must(0, &[]);
    assert_eq!(transform.plane.count("CreateModel"), 2);
}

#[test]
fn completed_job_with_missing_outputs_is_reported() {
    let transform = Transform::with_images("short", 4);
    transform.plane.fail(Failure::NoOutput("002.jpg"));
    transform.start("short", "photos/", &["--watch"]).must(
        3,
        &[
            "Only 3 of 4 inputs have an output, although SageMaker reports “Completed”",
            "002.jpg: no output; the data log of job short reports no reason",
            "Resend the others with: spotcheck transform retry short",
        ],
    );
    transform.plane.heal();
    let status = transform.status("short", 3);
    assert_eq!(status["status"], "completed");
    assert_eq!((&status["outputs"], &status["inputs"]), (&json!(3), &json!(4)));
    let missing = transform.bucket.uri("photos/day 2/002.jpg");
    assert_eq!(status["without_output"].as_array().unwrap().len(), 1);
    assert_eq!(status["without_output"][0]["uri"], missing);
    transform.run(&["retry", "short", "--watch"]).must(0, &["resending 1 image without an output"]);
    assert_eq!(transform.sent(), ["day 2/002.jpg"]);
    transform.run(&["status", "short"]).must(0, &["all 4 images of job short have an output, 1 by"]);
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
    let processing = format!("Retry {job} is still processing 1 of");
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
    transform.start("refused", "photos/", &["--watch"]).must(
        3,
        &["The model refused 2 of them and would refuse them again", "the other one with: spotcheck transform retry"],
    );
    transform.plane.heal();
    let left_out = "The retry leaves out 2 images that the model refused";
    transform.run(&["retry", "refused", "--watch"]).must(0, &[left_out]);
    assert_eq!(transform.sent(), ["day 1/001.jpg"]);
    // Nothing but refused images is left: no retry is recommended, and none is started.
    let only_refused = |transform: &Transform| {
        let status = transform.run(&["status", "refused"]).must(
            3,
            &["The model refused these images and would refuse them again", "spotcheck transform retry refused --all"],
        );
        assert!(!status.stderr.contains("Resend"), "{status:#?}");
        let jobs = transform.plane.count("CreateTransformJob");
        let why = "The model refused all 2 images of job refused without an output";
        transform.run(&["retry", "refused"]).must(1, &[why, "--all"]);
        assert_eq!(transform.plane.count("CreateTransformJob"), jobs);
    };
    only_refused(&transform);
    assert_eq!(transform.status("refused", 3)["without_output"][0]["refused"], true);
    transform.run(&["retry", "refused", "--all", "--watch"]).must(1, &[]);
    assert_eq!(transform.sent(), ["bad.jpg", "worse.jpg"]);
    only_refused(&transform);

    // A replaced image may succeed. If it is refused by a retry, that counts.
    wait_for_next_second();
    transform.bucket.put("photos/bad.jpg", b"good now");
    transform.bucket.put("photos/worse.jpg", b"fail 415");
    transform.run(&["retry", "refused", "--watch"]).must(3, &[]);
    assert_eq!(transform.sent(), ["bad.jpg", "worse.jpg"]);
    transform.run(&["retry", "refused"]).must(1, &["The model refused the only image of job refused"]);
}

#[test]
fn deleted_model_is_not_suggested_for_a_retry() {
    let transform = Transform::with_images("cleaned", 2);
    transform.plane.fail(Failure::NoOutput("001.jpg"));
    transform.start("cleaned", "photos/", &["--watch", "--model-env", "KEY=secret"]).must(3, &[]);
    transform.plane.heal();
    let existing = ["retry", "cleaned", "--model-env", "KEY=other"];
    transform.run(&existing).must(1, &["Model cleaned already exists with its own environment"]);
    assert_eq!(transform.clean_up("cleaned"), ["model cleaned"]);
    // The archive is left, but the values of the variables are not stored.
    let status = transform.run(&["status", "cleaned"]);
    status.must(3, &["the values of its variables (KEY) are not stored", "retry cleaned --model-env KEY=…"]);
    transform.run(&["retry", "cleaned"]).must(1, &["the values of its variables (KEY) are not stored"]);
    let archive = transform.bucket.get("models/model.tar.gz").unwrap();
    transform.bucket.delete("models/model.tar.gz");
    let lost = "Job cleaned cannot be retried: model cleaned and its archive were deleted";
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
fn expired_session_ends_watching() {
    let transform = Transform::with_images("expired", 1);
    transform.plane.pause_jobs();
    transform.start("expired", "photos/", &[]).must(0, &[]);
    let before = transform.plane.count("DescribeTransformJob");
    transform.plane.fail(Failure::SessionOverAfter { operation: "DescribeTransformJob", times: 2 });
    let watched = transform.run(&["status", "expired", "--watch"]).must(
        1,
        &[
            "The session of the default AWS credentials has expired",
            "The job continues; watch it again with: spotcheck transform status expired --watch",
        ],
    );
    assert_eq!(watched.stderr.matches("has expired").count(), 1, "{watched:#?}");
    // Two polls, and two that fail: the last one with newly loaded credentials.
    assert_eq!(transform.plane.count("DescribeTransformJob") - before, 4);
    transform.plane.heal();
    transform.plane.resume_jobs();
    transform.run(&["status", "expired", "--watch"]).must(0, &[]);
}

#[test]
fn s3_outage_is_reported_once_while_watching() {
    let transform = Transform::with_images("outage", 2);
    let s3 = FaultProxy::before(transform.bucket.server().address());
    let through_proxy = |args: &[&str]| {
        let mut command = transform.command(args);
        command.env("AWS_ENDPOINT_URL_S3", s3.endpoint());
        command
    };
    transform.plane.pause_jobs();
    transform.start("outage", "photos/", &[]).must(0, &[]);
    let mut watcher = through_proxy(&["status", "outage", "--watch"]);
    let watcher = watcher.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    transform.wait_until_looked_at(2);
    s3.inject(|_| true, Often::Always, Fault::Outage);
    // The last of these polls begins after another has met the outage.
    transform.wait_until_looked_at(5);
    s3.restart();
    transform.plane.resume_jobs();
    let watched = Ended::of(&watcher.wait_with_output().unwrap()).must(0, &["refused the connection"]);
    assert!(watched.stderr.lines().any(|line| line.contains("0 of 2") && line.contains("refused the connection")));

    s3.inject(|_| true, Often::Always, Fault::Outage);
    let args = transform.of_job("preflight", "next", "photos/", &[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let found = Ended::of(&through_proxy(&args).output().unwrap());
    for fetch_or_check in [found, Ended::of(&through_proxy(&["fetch", "outage", ".", "--out", "-"]).output().unwrap())]
    {
        let all = format!("{}{}", fetch_or_check.stdout, fetch_or_check.stderr);
        assert_eq!(fetch_or_check.code, Some(1), "{all}");
        assert_eq!(all.matches("refused the connection").count(), 1, "{all}");
        for misleading in ["Package the model", "Fix the other problems", "are unknown"] {
            assert!(!all.contains(misleading), "{misleading} in {all}");
        }
    }
}

#[test]
fn wrong_and_empty_regions_are_named() {
    let transform = Transform::new("regions");
    for (region, words) in [("eu-central-1", "expects a different region than eu-central-1"), ("", "no region is set")]
    {
        let mut command = transform.command(&["list"]);
        command.env("AWS_REGION", region).env_remove("AWS_DEFAULT_REGION");
        let listed = Ended::of(&command.output().unwrap()).must(1, &[words]);
        assert!(!listed.stderr.contains("secret key") && !listed.stderr.contains("permission"), "{listed:#?}");
    }
}

/// Waits so long that objects written from now on have a later time: S3 reports it to the second.
fn wait_for_next_second() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let then = UNIX_EPOCH + Duration::from_secs(now.as_secs() + 2);
    while SystemTime::now() < then {
        std::thread::sleep(POLL);
    }
}

/// A prediction as a container of Spotcheck returns it.
const OWN_PREDICTION: &str = r#"{"status":"ok","width":4,"height":3,"model":"toy","task":"classification",
    "classes":[{"index":1,"label":"cat","score":0.75}]}"#;

impl Transform {
    /// Puts a prediction that can be read in the place of each output of the job that is there; how many there are.
    fn make_readable(&self, job: &str, images: &[&str]) -> usize {
        let keys = images.iter().map(|image| format!("out/{job}/{image}.out"));
        let there = keys.filter(|key| self.bucket.get(key).is_some());
        let put = there.map(|key| self.bucket.put(&key, OWN_PREDICTION.as_bytes()));
        put.count()
    }

    /// The lines of `fetch JOB PHOTOS --out -`, by the names of their images, and what else it said.
    fn fetch(&self, job: &str, code: i32) -> (Vec<(String, Value)>, Ended) {
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
    let (lines, said) = transform.fetch("reasons", 3);
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, images, "one line an image, in the listing's order");
    let status = |line: &Value| line["status"].as_str().unwrap().to_owned();
    let statuses: Vec<String> = lines.iter().map(|(_, line)| status(line)).collect();
    assert_eq!(statuses, ["failed", "failed", "ok", "failed", "ok"]);
    for (_, line) in &lines[..2] {
        let error = line["error"].as_str().unwrap();
        assert!(error.contains("ClientError: 400"), "{error}");
    }
    let error = lines[3].1["error"].as_str().unwrap();
    assert!(error.contains(SILENT_LOG), "{error}");
    said.must_say("3 of 5 images failed");
    said.must_say("3 of 5 images have no output");
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
    let (lines, said) = transform.fetch("not-sent", 0);
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, sent);
    said.must_say("4 images were not sent to the job");
    // Nor when the manifest is gone.
    transform.run(&["clean-up", "not-sent", "--yes"]).must(0, &["manifest"]);
    assert_eq!(transform.fetch("not-sent", 0).0.len(), 2);

    // One that was sent, and got no output, is.
    transform.plane.fail(Failure::NoOutput("005"));
    let more = ["--images", list, "--watch"];
    transform.start("one-short", "photos/", &more).must(3, &[]);
    transform.make_readable("one-short", &sent);
    let (lines, said) = transform.fetch("one-short", 3);
    assert_eq!(lines.len(), 2);
    said.must_say("1 of 6 images have no output");
    said.must_say("1 of 6 images failed");
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
    for said in ["5 objects", "2 hidden objects", ".x.jpg", "folder marker"] {
        assert!(objects.contains(said), "no “{said}” in {objects}");
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
        let (lines, said) = transform.fetch("hidden", 0);
        let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, images);
        said.must_say("2 objects were skipped because they are hidden");
    }
    // An output for an object that was not an input is unknown.
    transform.bucket.put("out/hidden/else.jpg.out", b"{}");
    let (_, said) = transform.fetch("hidden", 3);
    said.must_say("else.jpg.out");
    // Nothing but markers is nothing to transform.
    transform.bucket.put("bare/", b"");
    transform.must_find("bare/", &[], "Input", "problem", "No input");
}

#[test]
fn rate_comes_from_output_times() {
    let transform = Transform::with_images("rate", 6);
    transform.plane.pause_jobs_after(2);
    transform.start("rate", "photos/", &["--max-concurrent", "1"]).must(0, &[]);
    transform.plane.wait_until_paused();
    wait_for_next_second();
    transform.plane.pause_jobs_after(1);
    transform.plane.wait_until_paused();
    let watcher = transform.spawn(&["status", "rate", "--watch"]);
    // Long enough for several polls of one and the same count.
    transform.wait_until_looked_at(5);
    transform.plane.resume_jobs();
    let ended = Ended::of(&watcher.wait_with_output().unwrap()).must(0, &[]);
    let number_before = |line: &str, unit: &str| -> Option<f64> {
        let (before, _) = line.split_once(unit)?;
        before.rsplit([' ', ',']).next()?.parse().ok()
    };
    let lines = ended.stderr.lines().filter(|line| line.contains("3 of 6"));
    let rates: Vec<Option<f64>> = lines.map(|line| number_before(line, " images/s")).collect();
    let first = *rates.first().unwrap_or(&None);
    assert!(first.is_some_and(|rate| rate > 0.0), "{ended:#?}");
    assert!(rates.iter().all(|rate| *rate == first), "{rates:?}");
}

#[test]
fn jobs_are_printed_as_json() {
    let transform = Transform::with_images("as-json", 3);
    transform.bucket.put("photos/bad.jpg", b"fail 400");
    transform.start("as-json", "photos/", &["--max-concurrent", "1", "--watch"]).must(3, &[]);
    let status = transform.run(&["status", "as-json", "--output", "json"]);
    let status = status.must(3, &[]);
    let told: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(told["job"], "as-json");
    assert_eq!(told["status"], "failed");
    assert_eq!(told["inputs"], 4);
    let without = told["without_output"].as_array().unwrap();
    assert_eq!(without[0]["uri"], transform.bucket.uri("photos/bad.jpg"));
    assert_eq!(4 - without.len() as u64, told["outputs"].as_u64().unwrap(), "{told}");
    let list = transform.run(&["list", "--output", "json"]).must(0, &[]);
    let told: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(told[0]["job"], "as-json");
    assert!(told[0]["created"].as_str().unwrap().ends_with('Z'));
    let none = transform.run(&["list", "--name", "nothing", "--output", "json"]);
    assert_eq!(none.must(0, &[]).stdout.trim(), "[]");
}

#[test]
fn log_of_a_job_without_a_start_time_is_shown() {
    let transform = Transform::with_images("unstarted", 1);
    let script = b"print('no model in /opt/ml/model', flush=True)";
    let ends_at_once = archive(&[("code/serve.py", script)]);
    transform.bucket.put("models/model.tar.gz", &ends_at_once);
    transform.plane.fail(Failure::NoStartTime);
    transform.start("unstarted", "photos/", &[]).must(0, &[]);
    transform.plane.wait_until_over("unstarted");
    transform
        .run(&["status", "unstarted"])
        .must(1, &["log        no model in /opt/ml/model", "spotcheck transform logs unstarted", "--data-log"]);
    let log = &transform.status("unstarted", 1)["log"];
    assert_eq!(*log, json!(["no model in /opt/ml/model"]));
}

#[test]
fn job_failed_before_any_image_is_not_retried_as_is() {
    let transform = Transform::with_images("no-answer", 2);
    transform.plane.fail(Failure::NoPing);
    let why = "no output; job no-answer failed before it predicted any image: AlgorithmError: The primary container \
        did not pass the ping health check";
    let watched = transform.start("no-answer", "photos/", &["--watch"]).must(1, &["no image has an output"]);
    assert!(!watched.stderr.contains("transform retry"), "{watched:#?}");
    assert_eq!(watched.stderr.matches(why).count(), 2, "{watched:#?}");
    // Each image has a line with that reason.
    let (lines, said) = transform.fetch("no-answer", 3);
    assert_eq!(lines.len(), 2);
    for (_, line) in lines {
        assert!(line["error"].as_str().unwrap().starts_with(why), "{line}");
    }
    said.must_say("2 of 2 images failed (none of them has an output)");
    transform.plane.heal();
    transform.run(&["retry", "no-answer"]).must(1, &["ping health check", "transform logs no-answer", "--all"]);
    assert_eq!(transform.plane.count("CreateTransformJob"), 1);
    transform.run(&["retry", "no-answer", "--all", "--watch"]).must(0, &[]);
    assert_eq!(transform.sent().len(), 2);
    // Where no instances were free, the container is not to blame.
    transform.plane.fail(Failure::NoCapacity);
    transform.start("no-capacity", "photos/", &["--watch"]).must(1, &[]);
    transform.plane.heal();
    transform.run(&["retry", "no-capacity", "--watch"]).must(0, &[]);
    assert_eq!(transform.sent().len(), 2);
}

#[test]
fn image_newer_than_the_job_is_not_missing() {
    let transform = Transform::with_images("later", 3);
    transform.plane.fail(Failure::NoOutput("002.jpg"));
    transform.start("later", "photos/", &["--watch"]).must(3, &[]);
    transform.plane.heal();
    // S3 tells to the second when an object was written.
    let next_second = UNIX_EPOCH + Duration::from_secs_f64(transform.created_s("later").floor() + 1.0);
    while SystemTime::now() < next_second {
        std::thread::sleep(POLL);
    }
    transform.bucket.put("photos/new.jpg", b"taken afterwards");
    let said = "1 object below the input is newer than the job";
    transform.run(&["status", "later"]).must(3, &["2 of 3 (66%)", "Only 2 of 3", said, "photos/new.jpg"]);
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
    transform
        .start("too-large", "photos/", &more)
        .must(3, &["large.jpg: Too much data for max payload size: ", "exceeds MaxPayloadInMB"]);
    transform
        .run(&["retry", "too-large", "--max-payload-mb", "1"])
        .must(1, &["With MaxPayloadInMB 1 it would be rejected (413)"]);
    // Without the option, the value that the image needs is taken.
    transform.run(&["retry", "too-large", "--watch"]).must(
        0,
        &["note: MaxPayloadInMB is 2 instead of 1, because the largest failed image has 1.0 MiB", "1 of 1 (100%)"],
    );
    assert_eq!(transform.sent(), ["large.jpg"]);
    assert_eq!(transform.asked("CreateTransformJob")["MaxPayloadInMB"], 2);
}

#[test]
fn log_is_read_from_its_end() {
    let transform = Transform::with_images("log-end", 2);
    transform.start("log-end", "photos/", &[]).must(0, &[]);
    transform.plane.wait_until_over("log-end");
    transform.run(&["status", "log-end"]).must(0, &["log        "]);
    let asked = transform.all_asked("GetLogEvents").remove(0);
    assert_eq!(asked["startFromHead"], false);
    assert_eq!(asked["limit"], 100);
}

#[test]
fn unknown_access_key_shows_the_aws_message() {
    let transform = Transform::new("stranger");
    let mut command = transform.command(&["status", "job"]);
    transform.plane.sign_in(&mut command, STRANGER);
    Ended::of(&command.output().unwrap()).must(
        1,
        &[
            "does not recognize the access key",
            "UnrecognizedClientException: The security token included in the request is invalid.",
            "choose another profile",
        ],
    );
}

#[test]
fn stopped_job_keeps_its_outputs() {
    let transform = Transform::with_images("stopped", 6);
    transform.plane.pause_jobs_after(2);
    transform.start("stopped", "photos/", &["--max-concurrent", "1"]).must(0, &["status stopped --watch"]);
    transform.plane.wait_until_paused();
    transform
        .run(&["status", "stopped"])
        .must(0, &["status     in progress, transforming", "2 of 6 (33%)", "price unknown"]);
    transform.run(&["retry", "stopped"]).must(1, &["wait until it ends"]);
    transform.run(&["clean-up", "stopped", "--yes"]).must(1, &["still uses these resources"]);
    transform.run(&["stop", "stopped"]).must(1, &["Stop job stopped?"]);
    assert_eq!(transform.plane.count("StopTransformJob"), 0);
    transform.run(&["stop", "stopped", "--yes"]).must(0, &["stopping job stopped"]);
    transform.plane.resume_jobs();
    transform.plane.wait_until_over("stopped");
    let status = transform.run(&["status", "stopped"]);
    assert!(!status.stderr.contains(FAILED_OBJECT), "{status:#?}");
    status.must(3, &[".jpg: not processed"]);
    let status = transform.status("stopped", 3);
    assert_eq!(status["status"], "stopped");
    let without = status["without_output"].as_array().unwrap().len() as u64;
    assert_eq!(status["outputs"].as_u64().unwrap() + without, 6);
    transform.run(&["stop", "stopped", "--yes"]).must(1, &["is already stopped"]);
}

#[test]
fn watching_survives_kills_and_network_errors() {
    let transform = Transform::with_images("watching", 3);
    transform.plane.pause_jobs();
    transform.start("watching", "photos/", &["--hourly-price", "2"]).must(0, &[]);
    let mut watcher = transform.spawn(&["status", "watching", "--watch"]);
    transform.wait_until_looked_at(3);
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    // More often than one request is made again.
    transform.plane.fail(Failure::Throttling { operation: "DescribeTransformJob", times: 5 });
    let watcher = transform.spawn(&["status", "watching", "--watch"]);
    transform.wait_until_looked_at(10);
    transform.plane.resume_jobs();
    let ended = Ended::of(&watcher.wait_with_output().unwrap());
    ended.must(0, &["limits the request rate", "retrying in 2 s", "$0.0"]);
    assert_eq!(transform.counts("watching"), ("completed".to_owned(), 3, 3));
}

#[test]
fn foreign_job_opens_by_name() {
    let transform = Transform::with_images("elsewhere", 2);
    transform.start("elsewhere", "photos/", &[]).must(0, &[]);
    transform.plane.wait_until_over("elsewhere");
    let other = Transform { home: tempfile::tempdir().unwrap(), ..transform };
    assert_eq!(other.counts("elsewhere"), ("completed".to_owned(), 2, 2));
    other.run(&["clean-up", "elsewhere", "--yes"]).must(1, &["was not started on this machine"]);
    other.run(&["status", "nowhere"]).must(1, &["describe job nowhere"]);
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
    other
        .run(&["retry", "tagged", "--all"])
        .must(0, &["its tags could not be read, so the new one has none", "sagemaker:ListTags"]);
    let tags = &other.asked("CreateTransformJob")["Tags"];
    assert_eq!(*tags, Value::Null);
}

#[test]
fn missing_log_permission_hides_only_logs() {
    let transform = Transform::with_images("no-logs", 2);
    transform.bucket.put("photos/bad.jpg", b"fail 400");
    for operation in ["DescribeLogStreams", "GetLogEvents"] {
        transform.plane.fail(Failure::AccessDenied { operation });
    }
    let started = transform.start("no-logs", "photos/", &["--watch"]);
    // What was not read says nothing, and does not say nothing of an image.
    assert!(!started.stderr.contains(SILENT_LOG), "{started:#?}");
    started.must(
        3,
        &[
            "logs:DescribeLogStreams",
            FAILED_OBJECT,
            "bad.jpg: no output; the data log of job no-logs could not be read",
        ],
    );
    let without = &transform.status("no-logs", 3)["without_output"];
    let bad = transform.bucket.uri("photos/bad.jpg");
    let uris = without.as_array().unwrap().iter();
    assert!(uris.map(|image| &image["uri"]).any(|uri| *uri == bad), "{without}");
}

#[test]
fn refused_start_lists_existing_leftovers() {
    let transform = Transform::with_images("not-made", 1);
    let left = || {
        let [record] = <[PathBuf; 1]>::try_from(transform.records()).unwrap();
        let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
        record["left"].clone()
    };
    let says_left = |ended: &Ended| ended.stderr.contains("left behind");
    let create = "CreateModel";
    transform.plane.fail(Failure::AccessDenied { operation: create });
    let refused = transform.start("cats", "photos/", &[]);
    assert!(!says_left(&refused), "{refused:#?}");
    refused.must(1, &["sagemaker:CreateModel"]);
    assert_eq!(left(), json!([]));
    // It is unknown whether a lost answer was a yes.
    transform.plane.heal();
    let lost = Failure::HangUp { operation: create, times: 100 };
    transform.plane.fail(lost);
    let lost = transform.start("cats", "photos/", &[]);
    assert!(says_left(&lost), "{lost:#?}");
    assert_eq!(left(), json!([{"model": "cats"}]));

    // The archive of this machine does not get there.
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
    let refused = Ended::of(&command.output().unwrap());
    assert!(!says_left(&refused), "{refused:#?}");
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
    let refused = transform.run(&args).must(
        1,
        &["ResourceLimitExceeded", "quota", "left behind: archive s3://", "model refused", "clean-up refused"],
    );
    assert_eq!(refused.stdout, "");
    transform.plane.heal();
    transform.run(&args).must(0, &["started a job for 2 objects"]);
    // What was there was not made again.
    assert_eq!(transform.plane.count("CreateModel"), 1);
    // Repeated once more, it is the same job.
    let again = transform.run(&args).must(0, &["job refused was already started", "status refused --watch"]);
    assert_eq!(again.stdout, "refused\n");
    assert_eq!(transform.plane.count("CreateTransformJob"), 2);
    let other = [&args[..], &["--instance-count", "2"]].concat();
    transform.run(&other).must(1, &["Job refused already exists"]);
    transform.plane.wait_until_over("refused");
    assert_eq!(transform.clean_up("refused").len(), 2);
}

#[test]
fn refused_start_shows_the_aws_message() {
    let transform = Transform::with_images("refusals", 1);
    let operation = "CreateTransformJob";
    let times = 100;
    for (failure, said) in [
        (
            Failure::Throttling { operation, times },
            &["limits the request rate", "ThrottlingException: Rate exceeded"][..],
        ),
        (
            Failure::AccessDenied { operation },
            &["lack the permission sagemaker:CreateTransformJob", "AccessDeniedException"],
        ),
        (Failure::HangUp { operation, times }, &["Could not start job refusals: "]),
    ] {
        transform.plane.fail(failure);
        let more = [said, &["clean-up refusals"]].concat();
        transform.start("refusals", "photos/", &[]).must(1, &more);
        transform.plane.heal();
    }
    // A second start works, and a request without a response is sent again.
    transform.plane.fail(Failure::HangUp { operation, times: 1 });
    transform.start("refusals", "photos/", &[]).must(0, &[]);
}

#[test]
fn failed_job_reports_its_reason() {
    let transform = Transform::with_images("failing", 2);
    for (job, failure, code, said) in [
        (
            "no-capacity",
            Failure::NoCapacity,
            1,
            &["reason     CapacityError: Unable to provision", "no image has an output"][..],
        ),
        ("no-ping", Failure::NoPing, 1, &["did not pass the ping health check"]),
        ("broken", Failure::ContainerError("001.jpg"), 3, &["001.jpg: Bad HTTP status received from algorithm: 500"]),
    ] {
        transform.plane.fail(failure);
        transform.start(job, "photos/", &["--watch"]).must(code, said);
        transform.plane.heal();
        let status = transform.status(job, code);
        assert_eq!(status["status"], "failed");
        let predicted = usize::from(code == 3);
        assert_eq!(status["outputs"], predicted);
        let without = status["without_output"].as_array().unwrap();
        assert_eq!(without.len(), 2 - predicted, "{status}");
    }
}

#[test]
fn watcher_waits_without_a_response() {
    let transform = Transform::with_images("hang-up", 1);
    transform.start("hang-up", "photos/", &[]).must(0, &[]);
    transform.plane.wait_until_over("hang-up");
    let operation = "DescribeTransformJob";
    transform.plane.fail(Failure::HangUp { operation, times: 5 });
    transform.run(&["status", "hang-up", "--watch"]).must(0, &["retrying in 2 s"]);
    assert_eq!(transform.counts("hang-up"), ("completed".to_owned(), 1, 1));
}

#[test]
fn recordio_is_a_warning_and_other_objects_a_problem() {
    let transform = Transform::with_images("recordio", 2);
    let split = ["--split-type", "recordio"];
    let finds = |input, grade, said| transform.must_find(input, &split, "Splitting", grade, said);
    finds("photos/", "problem", "would cut images into pieces");
    transform.bucket.put("records/a.tfrecord", b"record");
    finds("records/", "problem", "TFRecord");
    transform.bucket.put("texts/a.jsonl", b"{}");
    finds("texts/", "problem", "finds no records in a text file");
    transform.bucket.put("packed/train.rec", b"record");
    finds("packed/", "warning", "Spotcheck does not read these");
    finds("packed/", "warning", "or as TFRecord files");
}

#[test]
fn recordio_records_are_predicted_individually() {
    let transform = Transform::new("recordio-job");
    // MXNet's: a magic number, the length, the content, filled up to a multiple of four.
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

#[test]
fn s3_options_are_hidden_for_sagemaker() {
    let transform = Transform::new("account");
    let of_s3 = spotcheck(&["predict", "--help"]).output().unwrap();
    let of_s3 = String::from_utf8(of_s3.stdout).unwrap();
    for command in ["list", "status", "stop", "logs"] {
        let help = transform.run(&[command, "--help"]).must(0, &["--profile", "--region"]);
        for option in ["--anonymous", "--requester-pays", "--path-style", "--endpoint-url"] {
            assert!(!help.stdout.contains(option), "{command}: {help:#?}");
            assert!(of_s3.contains(option), "{option} is an option where S3 is asked");
        }
    }
    let mut command = transform.command(&["list"]);
    command
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .env("HOME", transform.home.path())
        .env("AWS_EC2_METADATA_DISABLED", "true");
    let said = Ended::of(&command.output().unwrap());
    let said = said.must(1, &["No AWS credentials found", "`aws configure`"]);
    assert!(!said.stderr.contains("anonymous"), "{said:#?}");
}

#[test]
fn empty_input_packs_no_model() {
    let transform = Transform::new("nothing");
    let folder = transform.home.path().join("photos");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("notes.txt"), "no image").unwrap();
    let (folder, output) = (folder.to_str().unwrap(), transform.bucket.uri("out/"));
    let (target, nothing) = (transform.bucket.uri("photos/"), transform.bucket.uri("no/"));
    let local = [folder, "--input-to", &target];
    let no_model = transform.home.path().join("no-model");
    let no_model = no_model.to_str().unwrap();
    let model = ["--model", "efficientnet-lite0", "--role", ROLE];
    for input in [&local[..], &[nothing.as_str()]] {
        for what in ["start", "preflight"] {
            // Packing it would fail before.
            let model = ["--saved-model", no_model, "--role", ROLE];
            let args = [&[what], input, &["--output", &output], &model].concat();
            transform.run(&args).must(1, &["No input below"]);
        }
        let forced = [&["start"], input, &["--output", &output, "--force"], &model].concat();
        transform.run(&forced).must(1, &["the input is empty"]);
    }
    assert!(transform.records().is_empty());
}

#[test]
fn wrong_usage_is_reported_before_any_request() {
    let transform = Transform::new("usage");
    let (input, output) = (transform.bucket.uri("photos/"), transform.bucket.uri("out/"));
    for (args, code, said) in [
        (&["start", "here", "--output", &output, "--model-name", "m"][..], 1, "--input-to"),
        (&["start", &input, "--output", &output], 1, "No model was given"),
        (&["start", &input, "--output", &output, "--archive", "m.tar.gz"], 1, "--role"),
        (
            &["start", &input, "--output", &output, "--model-name", "m", "--role", ROLE],
            1,
            "already exists in SageMaker",
        ),
        (&["start", &input, "--output", "out"], 2, "--output"),
        (&["start", &input, "--output", &output, "--env", "KEY"], 2, "KEY=VALUE"),
        (&["start", &input, "--output", &output, "--hourly-price", "0"], 2, "positive number"),
        (&["list", "--limit", "0"], 2, "--limit"),
    ] {
        transform.run(args).must(code, &[said]);
    }
    assert_eq!(transform.plane.requests().len(), 0);
}

#[test]
fn invalid_names_are_reported_before_any_request() {
    let transform = Transform::new("names");
    let long = "a".repeat(64);
    for what in ["status", "stop", "logs", "retry", "clean-up"] {
        for (name, said) in [
            ("", "the job name is missing"),
            ("my job", "“my job” is not valid"),
            ("-a", "is not valid"),
            (long.as_str(), "has 64 characters; the limit is 63"),
        ] {
            // Behind `--`, a hyphen begins no flag.
            transform.run(&[what, "--", name]).must(2, &[said]);
        }
        for (flag, value, said) in [
            ("--profile", "", "the profile name is empty; omit --profile"),
            ("--region", "", "eu-west-1"),
            ("--region", "eu west", "eu-west-1"),
            ("--region", "a.example/", "eu-west-1"),
        ] {
            transform.run(&[what, "job", flag, value]).must(2, &[said]);
        }
    }
    let photos = transform.home.path().to_str().unwrap();
    for (outputs, said) in
        [("", "No outputs specified"), ("my job", "This folder does not exist, and the job name “my job” is not valid")]
    {
        transform.run(&["fetch", outputs, photos]).must(1, &[said]);
    }
    assert!(transform.plane.requests().is_empty());
}

#[test]
fn instance_types_match_the_service() {
    let output = Command::new("python3")
        .arg(crate::support::repository().join("tests/control_plane/limits.py"))
        .env("PYTHONPATH", python_packages("aws-models"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let described: Value = serde_json::from_slice(&output.stdout).unwrap();
    let described: BTreeSet<&str> =
        described["instance_types"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let known: Vec<String> = known_instance_types().collect();
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    assert_eq!(known, described);
}
