//! `spotcheck train` as a process: a local script is trained by the tests' own control plane, and its model predicts.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::control_plane::{ControlPlane, Failure, IMAGE, ROLE};
use crate::support::ended::Ended;
use crate::support::seaweed::{ADMIN, Bucket, READER, Seaweed};
use crate::support::{repository, spotcheck_at};

const TRAINING_IMAGE: &str = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.19.0-cpu-py312";
const LOSS: &str = "loss=loss=([0-9.]+)";

/// A bucket with files of two classes, and a separate computer.
struct Train {
    bucket: Bucket,
    plane: ControlPlane,
    home: tempfile::TempDir,
}

impl Train {
    fn new(name: &str) -> Self {
        let bucket = Seaweed::shared().bucket(name);
        let plane = ControlPlane::start(bucket.server());
        for number in 0..4 {
            bucket.put(&format!("data/cat-{number}.jpg"), &vec![0; 100 + number]);
            bucket.put(&format!("data/dog-{number}.jpg"), &vec![0; 1000 + number]);
        }
        Self { bucket, plane, home: tempfile::tempdir().unwrap() }
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

    /// The arguments of a job with the script of the tests.
    fn of_job(&self, what: &str, job: &str, more: &[&str]) -> Vec<String> {
        let (data, output) = (self.bucket.uri("data/"), self.bucket.uri("models"));
        let source = repository().join("tests/training/source");
        let args = [
            "train",
            what,
            &data,
            "--source",
            source.to_str().unwrap(),
            "--entry-point",
            "train.py",
            "--image",
            TRAINING_IMAGE,
            "--role",
            ROLE,
            "--output",
            &output,
            "--job-name",
            job,
        ];
        args.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
    }

    fn train(&self, what: &str, job: &str, more: &[&str]) -> Ended {
        let args = self.of_job(what, job, more);
        self.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// As [`Train::train`], with other values for some of the flags.
    fn train_with(&self, what: &str, job: &str, changes: &[&str]) -> Ended {
        let mut args = self.of_job(what, job, &[]);
        for pair in changes.chunks(2) {
            match args.iter().position(|arg| arg == pair[0]) {
                Some(flag) => pair[1].clone_into(&mut args[flag + 1]),
                None => args.extend(pair.iter().map(|arg| (*arg).to_owned())),
            }
        }
        self.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn spawn(&self, job: &str, more: &[&str]) -> Child {
        let args = self.of_job("start", job, more);
        let mut command = self.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    #[track_caller]
    fn status(&self, job: &str, code: i32) -> Value {
        let ended = self.run(&["train", "status", job, "--output", "json"]);
        serde_json::from_str(&ended.must(code, &[]).stdout).unwrap()
    }

    /// The body of the last request for an operation.
    fn asked(&self, operation: &str) -> Value {
        let requests = self.plane.requests().into_iter();
        requests.filter(|request| request.operation == operation).map(|request| request.body).next_back().unwrap()
    }

    /// The file of a trained model with its data.
    fn model(&self, job: &str) -> Value {
        let archive = self.bucket.get(&format!("models/{job}/output/model.tar.gz")).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let mut entries = archive.entries().unwrap().map(Result::unwrap);
        let file = entries.find(|entry| entry.path().unwrap().ends_with("model.json")).unwrap();
        serde_json::from_reader(file).unwrap()
    }
}

#[test]
fn trained_model_predicts_in_a_batch_transform_job() {
    let train = Train::new("train");
    let more = [
        "--instances",
        "2",
        "--mpi",
        "processes=3,options=-x A=1,2",
        "--hyperparameter",
        "epochs=2",
        "--hyperparameter",
        "note=a \"note\"",
        "--metric",
        LOSS,
        "--hourly-price",
        "3600",
        "--watch",
    ];
    let ended = train.train("start", "first", &more).must(0, &["transform start", "--training-job first"]);
    for words in ["first\n", "Training", "loss = 0.5", "models/first/output/model.tar.gz", "2 × ml.m5.xlarge", "$"] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    let model = train.model("first");
    // Two hosts with three processes each; the parameters of SageMaker are not the script's.
    assert_eq!(model["world"], 6);
    assert_eq!(model["hyperparameters"], json!({"epochs": 2, "note": "a \"note\""}));
    assert_eq!(model["sizes"], json!({"cat": 101.5, "dog": 1001.5}));
    let log = train.run(&["train", "logs", "first"]).must(0, &[]).stdout;
    for words in ["mpirun -x A=1,2", "host algo-2, process 5 of 6, from epoch 0, note a \"note\"", "algo-1-"] {
        assert!(log.contains(words), "{words}: {log}");
    }

    // The archive is used unchanged, with the role of the training.
    let (images, output) = (train.bucket.uri("data/"), train.bucket.uri("out/"));
    let args = ["transform", "start", &images, "--output", &output, "--training-job", "first", "--image", IMAGE];
    train.run(&[&args[..], &["--job-name", "predicted", "--watch"]].concat()).must(0, &["8 objects"]);
    let asked = train.asked("CreateModel");
    assert_eq!(asked["PrimaryContainer"]["ModelDataUrl"], train.bucket.uri("models/first/output/model.tar.gz"));
    assert_eq!(asked["ExecutionRoleArn"], ROLE);
    for (name, expected) in [("cat-0", 0), ("dog-3", 1)] {
        let output = train.bucket.get(&format!("out/predicted/{name}.jpg.out")).unwrap();
        let scores: Value = serde_json::from_slice(&output).unwrap();
        let scores = &scores["predictions"][0];
        assert!(scores[expected].as_f64() > scores[1 - expected].as_f64(), "{name}: {scores}");
    }
    let args = ["endpoint", "deploy", "--training-job", "first", "--image", IMAGE, "--name", "trained"];
    train.run(&[&args[..], &["--instance-type", "ml.m5.xlarge"]].concat()).must(0, &["trained"]);
    train.run(&["endpoint", "delete", "trained", "--yes"]).must(0, &[]);

    // A container that trains does not serve.
    let args = ["endpoint", "deploy", "--training-job", "first", "--image", TRAINING_IMAGE, "--name", "wrong"];
    train.run(&[&args[..], &["--instance-type", "ml.m5.xlarge"]].concat()).must(1, &["cannot serve"]);

    // Without instances, and not in a VPC.
    let args = ["endpoint", "deploy", "--training-job", "first", "--image", IMAGE, "--serverless-memory-mb", "2048"];
    let network = ["--subnet", "subnet-0a1", "--security-group", "sg-0b2", "--network-isolation"];
    train.run(&[&args[..], &network, &["--name", "none"]].concat()).must(1, &["neither VPC settings"]);
    for more in [["--hourly-price", "1"], ["--instance-count", "2"], ["--instance-type", "ml.m5.xlarge"]] {
        train.run(&[&args[..], &more, &["--name", "none"]].concat()).must(2, &[more[0]]);
    }
    let idle = train.run(&[&args[..], &["--name", "idle"]].concat()).must(0, &["billed only for requests"]);
    for words in ["--hourly-price", "continuously", "instance"] {
        assert!(!idle.stderr.contains(words), "{words}: {idle:#?}");
    }
    let variant = &train.asked("CreateEndpointConfig")["ProductionVariants"][0];
    assert_eq!(variant["ServerlessConfig"], json!({"MemorySizeInMB": 2048, "MaxConcurrency": 5}));
    assert_eq!((&variant["InstanceType"], &variant["InitialInstanceCount"]), (&Value::Null, &Value::Null));
    train.run(&["endpoint", "delete", "idle", "--yes"]).must(0, &[]);
    let args = ["transform", "start", &images, "--output", &output, "--training-job", "first", "--image", IMAGE];
    train.run(&[&args[..], &network, &["--job-name", "inside", "--watch"]].concat()).must(0, &[]);
    let asked = train.asked("CreateModel");
    assert_eq!(asked["VpcConfig"], json!({"Subnets": ["subnet-0a1"], "SecurityGroupIds": ["sg-0b2"]}));
    assert_eq!(asked["EnableNetworkIsolation"], true);

    // Cleaning up deletes the source folder, and not the model.
    assert!(train.bucket.get("models/first/source/sourcedir.tar.gz").is_some());
    train.run(&["train", "clean-up", "first", "--yes"]).must(0, &["1 deleted"]);
    assert!(train.bucket.get("models/first/source/sourcedir.tar.gz").is_none());
    let archive = train.bucket.uri("models/first/output/model.tar.gz");
    let status = train.status("first", 0);
    assert_eq!(status["ModelArtifacts"]["S3ModelArtifacts"], archive);
    // All of AWS's response, with the cost.
    for field in ["TrainingJobArn", "SecondaryStatus", "TrainingTimeInSeconds", "CostUsd"] {
        assert!(!status[field].is_null(), "{field}: {status:#}");
    }
}

#[test]
fn training_parameters_reach_sagemaker() {
    let train = Train::new("train-parameters");
    train.plane.pause_jobs();
    let (validation, checkpoints) = (train.bucket.uri("data/cat"), train.bucket.uri("checkpoints/"));
    let channel = format!("validation={validation}");
    let more = [
        "--channel",
        &channel,
        "--checkpoints",
        &checkpoints,
        "--instance-type",
        "ml.c5.2xlarge",
        "--instance-count",
        "3",
        "--volume-gb",
        "50",
        "--volume-kms-key",
        "alias/disk",
        "--output-kms-key",
        "alias/out",
        "--max-run-s",
        "600",
        "--spot",
        "--max-wait-s",
        "900",
        "--metric",
        LOSS,
        "--env",
        "NOTE=it's",
        "--subnet",
        "subnet-0a1",
        "--security-group",
        "sg-0b2",
        "--network-isolation",
        "--tag",
        "team=vision",
    ];
    train.train("start", "parameters", &more).must(0, &["train watch parameters"]);
    let data = |uri: &str| json!({"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}});
    let source = train.bucket.uri("models/parameters/source/sourcedir.tar.gz");
    let expected = json!({
        "TrainingJobName": "parameters",
        "HyperParameters": {
            "sagemaker_container_log_level": "20",
            "sagemaker_job_name": "\"parameters\"",
            "sagemaker_program": "\"train.py\"",
            "sagemaker_region": "\"us-east-1\"",
            "sagemaker_submit_directory": "\"/opt/ml/input/data/code/sourcedir.tar.gz\"",
        },
        "AlgorithmSpecification": {
            "TrainingImage": TRAINING_IMAGE,
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
        },
        "RoleArn": ROLE,
        "InputDataConfig": [
            {"ChannelName": "training", "DataSource": data(&train.bucket.uri("data/"))},
            {"ChannelName": "validation", "DataSource": data(&validation)},
            {"ChannelName": "code", "DataSource": data(&source)},
        ],
        "OutputDataConfig": {"S3OutputPath": train.bucket.uri("models/"), "KmsKeyId": "alias/out"},
        "ResourceConfig": {
            "InstanceType": "ml.c5.2xlarge",
            "InstanceCount": 3,
            "VolumeSizeInGB": 50,
            "VolumeKmsKeyId": "alias/disk",
        },
        "VpcConfig": {"SecurityGroupIds": ["sg-0b2"], "Subnets": ["subnet-0a1"]},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 900},
        "Environment": {"NOTE": "it's"},
        "EnableNetworkIsolation": true,
        "EnableManagedSpotTraining": true,
        "CheckpointConfig": {"S3Uri": checkpoints},
        "Tags": [{"Key": "team", "Value": "vision"}],
    });
    assert_eq!(train.asked("CreateTrainingJob"), expected);
    let record = std::fs::read_dir(train.home.path().join("data/training-jobs")).unwrap().next().unwrap().unwrap();
    let kept = std::fs::read_to_string(record.path()).unwrap();
    assert!(kept.contains("NOTE") && !kept.contains("it's"), "{kept}");
    // The code arrives as a channel.
    train.plane.resume_jobs();
    assert_eq!(train.plane.wait_until_trained("parameters"), "Completed");
    assert_eq!(train.model("parameters")["world"], 3);
}

#[test]
fn preflight_finds_problems_before_they_cost_money() {
    let train = Train::new("train-preflight");
    let well = train.train("preflight", "cats", &["--hourly-price", "0.25", "--instances", "4"]).must(0, &[]);
    for words in ["cats is free", "train.py in ", "$1.00 per hour or $24.00 per day for 4 ×", "At most $24.00", ROLE] {
        assert!(well.stdout.contains(words), "{words}: {well:#?}");
    }
    let elsewhere = TRAINING_IMAGE.replace("us-east-1", "eu-west-1");
    for (more, said) in [
        (&["--entry-point", "no.py"][..], "There is no no.py"),
        (&["--role", "me"], "“me” is not the ARN of a role"),
        (&["--image", &elsewhere], "The container is in eu-west-1"),
        (&["--image", IMAGE], "cannot train"),
        (&["--volume-gb", "0"], "at least 1"),
        (&["--instance-type", "big"], "“big” is not an instance type"),
        (&["--output", "s3://there-is-no-such-bucket/"], "there-is-no-such-bucket"),
        (&["--spot", "--max-wait-s", "5"], "maximum wait in seconds is 5"),
        (&["--subnet", "a b", "--security-group", "sg-1"], "subnets must be 1 to 16 IDs"),
    ] {
        train.train_with("start", "trap", more).must(1, &["othing was started", said]);
    }
    let empty = train.bucket.uri("empty/");
    let mut args = train.of_job("start", "trap", &[]);
    args[2] = empty;
    train.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).must(1, &["There is no object in"]);
    assert_eq!(train.plane.count("CreateTrainingJob"), 0);
    // Spot instances without checkpoints are only a warning. Hidden files are not packed.
    let source = train.home.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("train.py"), "").unwrap();
    std::fs::write(source.join(".env"), "SECRET=1").unwrap();
    // A prefix without a slash also matches its siblings.
    train.bucket.put("data-old/cat-9.jpg", b"");
    let siblings = format!("old={}", train.bucket.uri("data"));
    let more = ["--source", source.to_str().unwrap(), "--channel", &siblings, "--spot"];
    let found = train.train_with("preflight", "spot", &more).must(0, &[]);
    for words in ["(1 file)", "without checkpoints", "price of ml.m5.xlarge is unknown", "/data-old/"] {
        assert!(found.stdout.contains(words), "{words}: {found:#?}");
    }
}

#[test]
fn failed_script_shows_its_last_lines() {
    let train = Train::new("train-crash");
    let more = ["--hyperparameter", "crash=oh no", "--watch"];
    let ended = train.train("start", "crash", &more).must(1, &["AlgorithmError", "ExitCode 1", "train logs crash"]);
    for words in ["failed", "loading the data", "ValueError: oh no: the labels do not match"] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    let status = train.status("crash", 1);
    assert_eq!(status["ModelArtifacts"]["S3ModelArtifacts"], Value::Null);
    let (images, output) = (train.bucket.uri("data/"), train.bucket.uri("out/"));
    let args = ["transform", "start", &images, "--output", &output, "--training-job", "crash", "--image", IMAGE];
    train.run(&args).must(1, &["crash", "AlgorithmError"]);
}

#[test]
fn job_without_a_model_is_a_failure() {
    let train = Train::new("train-nothing");
    let more = ["--hyperparameter", "nothing=yes", "--watch"];
    train.train("start", "nothing", &more).must(1, &["it wrote no model", "SM_MODEL_DIR"]);
}

#[test]
fn invalid_names_and_buckets_are_found_before_the_start() {
    let train = Train::new("train-invalid");
    let other = train.bucket.uri("data/");
    let long = format!("words={}", "x".repeat(2500));
    let again = format!("training={other}");
    for (more, point) in [
        (vec!["--channel", &again], "twice"),
        (vec!["--channel", &format!("a b={other}")], "a b"),
        (vec!["--hyperparameter", &long], "2500"),
        (vec!["--metric", &format!("loss={}", "x".repeat(501))], "500"),
        (vec!["--env", "1A=b"], "1A"),
        (vec!["--checkpoints", "s3://no-such-bucket-here/checkpoints/"], "no-such-bucket-here"),
    ] {
        train.train("preflight", "invalid", &more).must(1, &[point]);
    }
    train
        .train("preflight", "twice", &["--hyperparameter", "k=1", "--hyperparameter", "k=2"])
        .must(1, &["given twice"]);
}

#[test]
fn refused_training_can_be_repeated() {
    let train = Train::new("train-quota");
    let source = train.home.path().join("source");
    let copied = Command::new("cp").arg("-r").arg(repository().join("tests/training/source")).arg(&source).status();
    assert!(copied.unwrap().success());
    let of_source = ["--source", source.to_str().unwrap()];
    train.plane.fail(Failure::ResourceLimit);
    let refused = train.train_with("start", "quota", &of_source);
    let archive = train.bucket.uri("models/quota/source/sourcedir.tar.gz");
    refused.must(1, &["ResourceLimitExceeded", "training job usage", "quota", &archive, "train clean-up quota"]);
    train.plane.heal();
    // The corrected script replaces the one of the start that failed.
    let script = source.join("train.py");
    let corrected = std::fs::read_to_string(&script).unwrap() + "# corrected\n";
    std::fs::write(&script, corrected).unwrap();
    train.train_with("start", "quota", &of_source).must(0, &["train watch quota"]);
    train.run(&["train", "watch", "quota"]).must(0, &["train clean-up quota"]);
    train.train("start", "quota", &[]).must(1, &["quota already exists"]);
    assert_eq!(train.plane.count("CreateTrainingJob"), 2);
    // An empty URL means none.
    let listed = Ended::new(&train.command(&["train", "list"]).env("AWS_ENDPOINT_URL", "").output().unwrap());
    assert_eq!(listed.code, Some(0), "{listed:#?}");
    let mut wrong = train.command(&["train", "list"]);
    wrong.env_remove("AWS_ENDPOINT_URL_SAGEMAKER").env("AWS_ENDPOINT_URL", "localhost:9000");
    let wrong = Ended::new(&wrong.output().unwrap()).must(1, &["“localhost:9000”", "http://"]);
    assert!(!wrong.stderr.contains("Error {"), "{wrong:#?}");
    assert!(listed.stdout.contains("completed") && listed.stdout.contains(" quota"), "{listed:#?}");
    train.plane.fail(Failure::NoCapacity);
    train.train("start", "later", &["--watch"]).must(1, &["CapacityError"]);
}

#[test]
fn stopped_training_is_reported() {
    let train = Train::new("train-stop");
    let watcher = train.spawn("stopped", &["--hyperparameter", "wait=yes", "--watch"]);
    loop {
        let log = train.run(&["train", "logs", "stopped"]);
        if log.code == Some(0) && log.stdout.contains("epoch 1") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    train.run(&["train", "stop", "stopped", "--yes"]).must(0, &["train watch stopped"]);
    let ended = Ended::new(&watcher.wait_with_output().unwrap()).must(1, &["it was stopped"]);
    assert!(ended.stdout.contains("status     stopped"), "{ended:#?}");
    train.run(&["train", "stop", "stopped", "--yes"]).must(1, &["already stopped"]);
    let mut reader = spotcheck_at(train.home.path(), &["train", "stop", "stopped", "--yes"]);
    train.plane.sign_in(&mut reader, READER);
    Ended::new(&reader.output().unwrap()).must(1, &["stopped"]);
}

#[test]
fn spot_interruption_continues_from_a_checkpoint() {
    let train = Train::new("train-spot");
    train.plane.fail(Failure::SpotInterruption);
    let checkpoints = train.bucket.uri("checkpoints/");
    let more = ["--spot", "--checkpoints", &checkpoints, "--hyperparameter", "epochs=3", "--watch"];
    train.train("start", "spot", &more).must(0, &[]);
    let status = train.status("spot", 0);
    let phases = status["SecondaryStatusTransitions"].as_array().unwrap().iter();
    let phases: Vec<&str> = phases.map(|phase| phase["Status"].as_str().unwrap()).collect();
    assert!(phases.contains(&"Interrupted") && phases.last() == Some(&"Completed"), "{phases:?}");
    let log = train.run(&["train", "logs", "spot"]).must(0, &[]).stdout;
    let starts: Vec<&str> = log.lines().filter(|line| line.contains("from epoch")).collect();
    assert_eq!(starts.len(), 2, "{log}");
    assert!(starts[0].contains("from epoch 0") && !starts[1].contains("from epoch 0"), "{log}");
}
