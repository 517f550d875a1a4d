//! Requests to SageMaker, its endpoints and CloudWatch Logs, checked against AWS's own service models, and the parsing
//! of conforming responses.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use spotcheck::aws::{Aws, AwsErrorKind, MAX_INVOCATION_BYTES, ResourceKind, RetryPolicy, SageMaker};
use spotcheck::domain::{Credentials, S3Address};
use spotcheck::sagemaker::spec::AWS_REGIONS;
use spotcheck::sagemaker::spec::LogFrom;
use spotcheck::sagemaker::spec::endpoint::{EndpointConfig, EndpointQuery, EndpointStatus, Serverless};
use spotcheck::sagemaker::spec::training::{
    Algorithm, Channel, Checkpoints, MetricDefinition, OutputConfig, StoppingCondition, TrainingSpec,
};
use spotcheck::sagemaker::spec::transform::{
    AssembleWith, BatchStrategy, Compression, DataCapture, DataProcessing, DataSource, Experiment, InputObjects,
    JobKind, JobQuery, JoinSource, ModelClient, ModelSpec, Network, Resources, SageMakerAccess, SplitType,
    TransformInput, TransformOutput, TransformSpec, TransformStatus, Vpc,
};
use spotcheck::tasks::{ProgressUnit, TaskControl};

use crate::support::alone::alone;
use crate::support::http_server::{HttpServer, Reply, Request};
use crate::support::seaweed::without_aws;

/// A task that is never canceled.
fn control() -> TaskControl {
    TaskControl::new(ProgressUnit::Steps)
}

const SECRET: &str = "not/to/be/shown/anywhere/0123456789";

const JOB_ARN: &str = "arn:aws:sagemaker:eu-west-1:123456789012:transform-job/cats";

/// A process with a separate AWS configuration, which `at` writes to `folder`.
fn with_folder(command: &mut Command, folder: &Path) {
    without_aws(command, "http://127.0.0.1:1").env("AWS_CONFIG_FILE", folder.join("config")).env_remove("AWS_REGION");
}

/// SageMaker and CloudWatch Logs, both at `server`, configured for this process from now on.
fn at(server: &HttpServer) -> SageMaker {
    let config = format!(
        "[default]\naws_access_key_id = AKIAEXAMPLE000000000\naws_secret_access_key = {SECRET}\n\
         aws_session_token = a-token\nregion = eu-west-1\nservices = here\n\n[services here]\n\
         sagemaker =\n  endpoint_url = {url}\n\
         sagemaker_runtime =\n  endpoint_url = {url}\ncloudwatch_logs =\n  endpoint_url = {url}\n",
        url = server.url("")
    );
    std::fs::write(std::env::var_os("AWS_CONFIG_FILE").unwrap(), config).unwrap();
    impatient().sagemaker(&SageMakerAccess::default())
}

fn impatient() -> Aws {
    Aws::with_retry_policy(RetryPolicy { first_backoff: Duration::from_millis(1), ..RetryPolicy::default() })
}

/// `SageMaker.CreateModel`
fn operation_of(request: &Request) -> &str {
    let target = request.headers.get("x-amz-target").unwrap();
    target.rsplit('.').next().unwrap()
}

fn prediction_file(operation: &str) -> Vec<u8> {
    let path = crate::support::repository().join(format!("tests/aws/responses/{operation}.json"));
    // An operation without a file has an empty response.
    std::fs::read(path).unwrap_or_default()
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command
        .arg(crate::support::repository().join("tests/aws/check_shapes.py"))
        .env("PYTHONPATH", crate::support::python_packages("aws-models"));
    command
}

/// Botocore's complaints about these lines.
fn problems(lines: &[Value]) -> String {
    let mut checker = python().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = checker.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    drop(input);
    let output = checker.wait_with_output().unwrap();
    assert!(output.status.success(), "the checker failed");
    String::from_utf8(output.stdout).unwrap()
}

fn service_of(operation: &str) -> &'static str {
    match operation {
        "DescribeLogStreams" | "GetLogEvents" => "logs",
        _ => "sagemaker",
    }
}

fn line(operation: &str, kind: &str, body: &[u8]) -> Value {
    let body: Value = if body.is_empty() { json!({}) } else { serde_json::from_slice(body).unwrap() };
    json!({"service": service_of(operation), "operation": operation, "kind": kind, "body": body})
}

fn map(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

#[expect(clippy::unnecessary_wraps, reason = "the fields that it fills are options")]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn folder(prefix: &str) -> S3Address {
    S3Address::new("bucket", prefix)
}

/// A job with a value in every field.
fn full_job() -> TransformSpec {
    TransformSpec {
        job_name: "cats".to_owned(),
        model_name: "efficientnet".to_owned(),
        input: TransformInput {
            data_source: DataSource { objects: InputObjects::Manifest(folder("jobs/cats/manifest.json")) },
            content_type: "application/x-image".to_owned(),
            split: SplitType::TFRecord,
            compression: Compression::Gzip,
        },
        output: TransformOutput {
            folder: folder("out/cats/"),
            accept: some("application/json"),
            assemble: AssembleWith::Line,
            kms_key: some("alias/outputs"),
        },
        resources: Resources {
            instance_type: "ml.g4dn.xlarge".to_owned(),
            instance_count: 2,
            volume_kms_key: some("alias/disks"),
            volume_gb: None,
            ami_version: some("al2-ami-sagemaker-batch-gpu-535"),
        },
        batch_strategy: BatchStrategy::SingleRecord,
        max_payload_mb: Some(6),
        max_concurrent: Some(4),
        model_client: ModelClient { timeout_s: Some(600), max_retries: Some(1) },
        environment: map("LEVEL", "1"),
        tags: map("project", "cats"),
        data_processing: DataProcessing {
            input_filter: some("$"),
            output_filter: some("$"),
            join_source: Some(JoinSource::Input),
        },
        data_capture: Some(DataCapture {
            folder: folder("captured/"),
            kms_key: some("alias/captured"),
            with_inference_id: true,
        }),
        experiment: Some(Experiment {
            experiment: some("e"),
            trial: some("t"),
            trial_component: some("c"),
            run: some("r"),
        }),
    }
}

/// A job with only the required fields.
fn least_job() -> TransformSpec {
    TransformSpec {
        input: TransformInput {
            data_source: DataSource { objects: InputObjects::Prefix(folder("photos/")) },
            content_type: "application/x-image".to_owned(),
            split: SplitType::None,
            compression: Compression::None,
        },
        output: TransformOutput {
            folder: folder("out/cats/"),
            accept: None,
            assemble: AssembleWith::None,
            kms_key: None,
        },
        resources: Resources { volume_kms_key: None, ami_version: None, ..full_job().resources },
        max_payload_mb: None,
        max_concurrent: None,
        model_client: ModelClient::default(),
        environment: BTreeMap::new(),
        tags: BTreeMap::new(),
        data_processing: DataProcessing::default(),
        data_capture: None,
        experiment: None,
        ..full_job()
    }
}

fn model() -> ModelSpec {
    ModelSpec {
        name: "efficientnet".to_owned(),
        image: "123456789012.dkr.ecr.eu-west-1.amazonaws.com/ray:1".to_owned(),
        archive: folder("models/m.tar.gz"),
        role: "arn:aws:iam::123456789012:role/SageMaker".to_owned(),
        environment: map("A", "b"),
        tags: map("project", "cats"),
        network: network(),
    }
}

fn network() -> Network {
    let list = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    let vpc = Vpc { subnets: list(&["subnet-0a1", "subnet-0b2"]), security_group_ids: list(&["sg-0c3"]) };
    Network { vpc: Some(vpc), is_isolated: true }
}

/// A training job with a value in every field.
fn full_training() -> TrainingSpec {
    TrainingSpec {
        job_name: "dogs".to_owned(),
        hyperparameters: map("epochs", "3"),
        algorithm: Algorithm {
            image: "123456789012.dkr.ecr.eu-west-1.amazonaws.com/tensorflow-training:2".to_owned(),
            input_mode: "FastFile".to_owned(),
            metrics: vec![MetricDefinition { name: "loss".to_owned(), regex: "loss=([0-9.]+)".to_owned() }],
        },
        role: "arn:aws:iam::123456789012:role/SageMaker".to_owned(),
        channels: vec![Channel::new("training", &folder("data/")), Channel::new("validation", &folder("val/"))],
        output: OutputConfig { folder: "s3://bucket/models/".to_owned(), kms_key: some("alias/outputs") },
        resources: Resources {
            instance_type: "ml.p3.16xlarge".to_owned(),
            instance_count: 2,
            volume_gb: Some(100),
            volume_kms_key: some("alias/disks"),
            ami_version: None,
        },
        stopping: StoppingCondition { max_run_s: 3600, max_wait_s: Some(7200) },
        environment: map("LEVEL", "1"),
        network: network(),
        is_spot: true,
        checkpoints: Some(Checkpoints { s3_uri: "s3://bucket/checkpoints/".to_owned() }),
        tags: map("project", "dogs"),
    }
}

/// A training job with only the required fields.
fn least_training() -> TrainingSpec {
    let TrainingSpec { job_name, role, output, resources, .. } = full_training();
    let stopping = StoppingCondition { max_run_s: 60, max_wait_s: None };
    TrainingSpec { job_name, role, output, resources, stopping, ..TrainingSpec::default() }
}

fn config() -> EndpointConfig {
    EndpointConfig {
        name: "cats-config".to_owned(),
        model_name: "efficientnet".to_owned(),
        instance_type: some("ml.g4dn.xlarge"),
        serverless: None,
        instance_count: 2,
        ami_version: some("al2-ami-sagemaker-inference-gpu-3-1"),
        startup_timeout_s: Some(300),
        download_timeout_s: Some(900),
        kms_key: some("alias/disks"),
        tags: map("project", "cats"),
    }
}

/// Sends every request that exists.
fn ask_everything(sagemaker: &SageMaker) {
    let query =
        JobQuery { name_contains: some("cats"), status: Some(TransformStatus::Failed), page_token: some("page-2") };
    sagemaker.create_model(&model(), &control()).unwrap();
    sagemaker.describe_model("efficientnet", &control()).unwrap();
    sagemaker.delete(ResourceKind::MODEL, "efficientnet", &control()).unwrap();
    sagemaker.create_job(&full_job(), &control()).unwrap();
    sagemaker.create_job(&least_job(), &control()).unwrap();
    sagemaker.describe_job::<TransformSpec>("cats", &control()).unwrap();
    sagemaker.stop_job(JobKind::Transform, "cats", &control()).unwrap();
    sagemaker.tags_of(JOB_ARN, &control()).unwrap();
    for kind in [JobKind::Transform, JobKind::Training] {
        sagemaker.list_jobs(kind, &query, &control()).unwrap();
        sagemaker.list_jobs(kind, &JobQuery::default(), &control()).unwrap();
    }
    sagemaker.create_job(&full_training(), &control()).unwrap();
    sagemaker.create_job(&least_training(), &control()).unwrap();
    sagemaker.describe_job::<TrainingSpec>("dogs", &control()).unwrap();
    sagemaker.stop_job(JobKind::Training, "dogs", &control()).unwrap();
    sagemaker.create_endpoint_config(&config(), &control()).unwrap();
    let serverless = Some(Serverless { memory_mb: 2048, max_concurrency: 5 });
    let least =
        EndpointConfig { name: "cats".to_owned(), instance_type: None, serverless, ..EndpointConfig::default() };
    sagemaker.create_endpoint_config(&EndpointConfig { model_name: "cats".to_owned(), ..least }, &control()).unwrap();
    sagemaker.describe_endpoint_config("cats-config", &control()).unwrap();
    sagemaker.delete(ResourceKind::ENDPOINT_CONFIG, "cats-config", &control()).unwrap();
    sagemaker.create_endpoint("cats", &config(), &control()).unwrap();
    sagemaker.describe_endpoint("cats", &control()).unwrap();
    sagemaker.delete(ResourceKind::ENDPOINT, "cats", &control()).unwrap();
    let query = EndpointQuery {
        name_contains: some("cats"),
        status: Some(EndpointStatus::InService),
        page_token: some("page-2"),
    };
    sagemaker.list_endpoints(&query, &control()).unwrap();
    let group = "/aws/sagemaker/TransformJobs";
    sagemaker.log_streams(group, "cats/", &control()).unwrap();
    sagemaker.log_events(group, "cats/i-1", LogFrom::After("f/1".to_owned()), &control()).unwrap();
    for from in [LogFrom::Beginning, LogFrom::Newest(100)] {
        sagemaker.log_events(group, "cats/i-1", from, &control()).unwrap();
    }
}

#[test]
fn requests_and_responses_match_aws_models() {
    let home = tempfile::tempdir().unwrap();
    alone(
        "aws_shapes::requests_and_responses_match_aws_models",
        |command| with_folder(command, home.path()),
        || {
            let server = HttpServer::start(|request| Reply::whole(&prediction_file(operation_of(request))));
            ask_everything(&at(&server));
            let mut lines = Vec::new();
            for exchange in server.exchanges() {
                let request = &exchange.request;
                let operation = operation_of(request);
                assert_eq!(request.headers["content-type"], "application/x-amz-json-1.1");
                assert_eq!(request.headers["x-amz-security-token"], "a-token");
                let service = service_of(operation);
                let scope = format!("/eu-west-1/{service}/aws4_request, SignedHeaders=");
                let signature = &request.headers["authorization"];
                assert!(signature.contains(&scope), "{signature}");
                lines.push(line(operation, "request", &request.body));
                lines.push(line(operation, "response", &prediction_file(operation)));
            }
            assert_eq!(lines.len(), 2 * 28);
            let found = problems(&lines);
            assert!(found.is_empty(), "{found}");
        },
    );
}

#[test]
fn shape_check_detects_errors() {
    let wrong = [
        json!({"TransformJobName": "cats"}),
        json!({"TransformJobName": "cats", "Modelname": "m"}),
        json!({"TransformJobName": "c_ts", "ModelName": 7, "BatchStrategy": "One"}),
    ];
    let lines = wrong.map(
        |body| json!({"service": "sagemaker", "operation": "CreateTransformJob", "kind": "request", "body": body}),
    );
    let found = problems(&lines);
    for words in [
        "Missing required parameter in input: \"TransformInput\"",
        "Unknown parameter in input: \"Modelname\"",
        "Invalid type for parameter ModelName",
        ".TransformJobName: c_ts does not match",
        ".BatchStrategy: One is none of",
    ] {
        assert!(found.contains(words), "{words} not in {found}");
    }
}

#[test]
fn known_regions_match_aws() {
    let output = python().arg("regions").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut known = AWS_REGIONS.to_vec();
    known.sort_unstable();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(known, told.lines().collect::<Vec<_>>());
}

#[test]
fn responses_are_parsed_completely() {
    let home = tempfile::tempdir().unwrap();
    alone(
        "aws_shapes::responses_are_parsed_completely",
        |command| with_folder(command, home.path()),
        || {
            let server = HttpServer::start(|request| Reply::whole(&prediction_file(operation_of(request))));
            let sagemaker = at(&server);
            let job = sagemaker.describe_job::<TransformSpec>("cats", &control()).unwrap();
            let mut expected = full_job();
            expected.tags.clear();
            expected.input.split = SplitType::None;
            expected.input.compression = Compression::None;
            expected.output.assemble = AssembleWith::None;
            // SageMaker returns an empty key if there is none.
            expected.output.kms_key = None;
            expected.resources.volume_kms_key = None;
            expected.data_capture.as_mut().unwrap().kms_key = None;
            assert_eq!(job.spec, expected);
            assert_eq!(job.status, TransformStatus::Failed);
            assert_eq!(job.created_ms, 1_763_719_200_250);
            assert_eq!(job.started_ms, Some(1_763_719_380_500));
            assert_eq!(job.ended_ms, Some(1_763_719_500_000));

            let tags = sagemaker.tags_of(JOB_ARN, &control()).unwrap();
            assert_eq!(tags, map("project", "cats"));

            let found = sagemaker.describe_model("efficientnet", &control()).unwrap();
            assert_eq!(found, Some(ModelSpec { tags: BTreeMap::new(), ..model() }));
            let jobs = sagemaker.list_jobs(JobKind::Transform, &JobQuery::default(), &control()).unwrap();
            let names: Vec<&str> = jobs.items.iter().map(|job| job.name.as_str()).collect();
            assert_eq!(names, ["cats-2", "cats-1"]);
            assert_eq!(jobs.items[1].ended_ms, Some(1_763_719_190_500));
            assert_eq!(jobs.next.as_deref(), Some("page-2"));

            let jobs = sagemaker.list_jobs(JobKind::Training, &JobQuery::default(), &control()).unwrap();
            assert_eq!(jobs.items[0].status, TransformStatus::Stopped);
            assert_eq!((jobs.items[0].kind, jobs.items[0].name.as_str()), (JobKind::Training, "dogs"));

            let training = sagemaker.describe_job::<TrainingSpec>("dogs", &control()).unwrap();
            let channels: Vec<_> = training.spec.channels.iter().map(Channel::objects).collect();
            // A file system is not an address.
            assert_eq!(channels, [Some(folder("data/")), Some(folder("val/")), None]);
            let described = TrainingSpec { channels: full_training().channels, ..training.spec.clone() };
            assert_eq!(described, TrainingSpec { tags: BTreeMap::new(), ..full_training() });
            assert_eq!((training.created_ms, training.started_ms), (1_763_719_200_250, Some(1_763_719_380_500)));
            assert_eq!(training.archive(), Some(folder("models/dogs/output/model.tar.gz")));
            assert_eq!(training.result.billable_s, Some(120.0));
            let phases: Vec<&str> = training.result.phases.iter().map(|phase| phase.status.as_str()).collect();
            assert_eq!(phases, ["Starting", "Interrupted", "Training", "Completed"]);
            assert_eq!((training.phase(), training.problem()), ("Completed", None));
            assert_eq!(
                (training.result.metrics[0].metric_name.as_str(), &training.result.metrics[0].value),
                ("loss", &json!(0.125))
            );
            assert_eq!(training.result.metrics[1].value, Value::Null);

            let found = sagemaker.describe_endpoint_config("c", &control()).unwrap();
            let mut expected = config();
            expected.tags.clear();
            assert_eq!(found, Some(expected));
            let found = sagemaker.describe_endpoint("cats", &control()).unwrap().unwrap();
            assert_eq!(found.status, EndpointStatus::InService);
            assert_eq!(found.config_name.as_deref(), Some("cats-config"));
            assert_eq!(found.variants[0].instances, 2);

            let streams = sagemaker.log_streams("g", "cats/", &control()).unwrap();
            assert_eq!(streams[0].last_event_ms, Some(1_763_719_500_100));
            assert_eq!(streams[1].last_event_ms, None);
            let page = sagemaker.log_events("g", "s", LogFrom::Beginning, &control()).unwrap();
            assert_eq!(page.events[0].at_ms, 1_763_719_380_100);
            assert_eq!(page.next, "f/1");
        },
    );
}

/// A SageMaker response with only the required members, according to botocore.
fn least(operation: &str) -> Vec<u8> {
    let output = python().args(["least", service_of(operation), operation]).output().unwrap();
    assert!(output.status.success(), "the checker failed");
    output.stdout
}

#[test]
fn minimal_responses_are_parsed() {
    let home = tempfile::tempdir().unwrap();
    alone(
        "aws_shapes::minimal_responses_are_parsed",
        |command| with_folder(command, home.path()),
        || {
            let server = HttpServer::start(|request| Reply::whole(&least(operation_of(request))));
            let sagemaker = at(&server);
            let found = sagemaker.describe_endpoint("x", &control()).unwrap().unwrap();
            assert_eq!((found.config_name, found.failure), (None, None));
            let group = "/aws/sagemaker/TransformJobs";
            assert!(sagemaker.log_streams(group, "x", &control()).unwrap().is_empty());
            let page = sagemaker.log_events(group, "x", LogFrom::After("f/1".to_owned()), &control()).unwrap();
            assert_eq!((page.events.len(), page.next.as_str()), (0, "f/1"));
            let jobs = sagemaker.list_jobs(JobKind::Transform, &JobQuery::default(), &control());
            assert!(jobs.unwrap().items.is_empty());
            assert!(sagemaker.tags_of(JOB_ARN, &control()).unwrap().is_empty());
            let training = sagemaker.describe_job::<TrainingSpec>("x", &control()).unwrap();
            assert_eq!((training.phase(), training.archive()), ("Pending", None));
            assert!(sagemaker.list_jobs(JobKind::Training, &JobQuery::default(), &control()).unwrap().items.is_empty());
            let endpoints = sagemaker.list_endpoints(&EndpointQuery::default(), &control());
            assert!(endpoints.unwrap().items.is_empty());
            // Fields that are missing in our jobs: their absence is reported, and nothing breaks.
            let job = sagemaker.describe_job::<TransformSpec>("x", &control()).unwrap_err();
            assert_eq!(job.kind, AwsErrorKind::Unsupported, "{job}");
            let model = sagemaker.describe_model("x", &control()).unwrap_err();
            assert_eq!(model.kind, AwsErrorKind::Unsupported, "{model}");
        },
    );
}

fn refusal(status: &'static str, code: &str, message: &str) -> Reply {
    let body = json!({"__type": code, "message": message}).to_string();
    Reply { status, ..Reply::whole(body.as_bytes()) }
}

#[test]
fn throttling_is_retried_and_refusals_are_not() {
    let home = tempfile::tempdir().unwrap();
    alone(
        "aws_shapes::throttling_is_retried_and_refusals_are_not",
        |command| with_folder(command, home.path()),
        || {
            let server = HttpServer::start(|request| match request.number {
                0 => refusal("400 Bad Request", "ThrottlingException", "Rate exceeded"),
                1 => Reply::status("503 Service Unavailable"),
                2 => Reply::whole(&prediction_file("DescribeEndpoint")),
                3 => refusal("400 Bad Request", "ValidationException", "Could not find endpoint \"x\"."),
                _ => refusal(
                    "400 Bad Request",
                    "AccessDeniedException",
                    "User: u is not authorized to perform: sagemaker:ListEndpoints",
                ),
            });
            let sagemaker = at(&server);
            assert!(sagemaker.describe_endpoint("cats", &control()).unwrap().is_some());
            assert_eq!(server.exchanges().len(), 3);
            assert_eq!(sagemaker.describe_endpoint("x", &control()).unwrap(), None);
            let denied = sagemaker.list_endpoints(&EndpointQuery::default(), &control()).unwrap_err();
            assert_eq!(denied.kind, AwsErrorKind::AccessDenied);
            assert!(denied.message.contains("sagemaker:ListEndpoints"), "{denied}");
            assert!(!denied.message.contains(SECRET), "{denied}");
            assert_eq!(server.exchanges().len(), 5);
        },
    );
}

#[test]
fn endpoint_receives_unchanged_bytes() {
    let home = tempfile::tempdir().unwrap();
    alone(
        "aws_shapes::endpoint_receives_unchanged_bytes",
        |command| with_folder(command, home.path()),
        || {
            let server = HttpServer::start(|request| {
                if request.path == "/endpoints/cats/invocations" {
                    return Reply::whole(b"{\"status\":\"ok\"}").header("Content-Type", "application/json");
                }
                let body = json!({
                    "Message": "Received client error (400) from primary with message \"no image\".",
                    "OriginalStatusCode": 400, "OriginalMessage": "no image",
                    "LogStreamArn": "arn:aws:logs:eu-west-1:1:log-group:/aws/sagemaker/Endpoints/dogs",
                });
                Reply { status: "424 Failed Dependency", ..Reply::whole(body.to_string().as_bytes()) }
                    .header("x-amzn-ErrorType", "ModelError")
            });
            let sagemaker = at(&server);
            let ask = |name: &str, body| sagemaker.invoke_endpoint(name, "application/x-image", body, &control());
            let prediction = ask("cats", b"\xff\xd8 an image".to_vec()).unwrap();
            assert_eq!(prediction, b"{\"status\":\"ok\"}");
            let request = &server.exchanges()[0].request;
            assert_eq!(request.body, b"\xff\xd8 an image");
            assert_eq!(request.headers["content-type"], "application/x-image");
            assert_eq!(request.headers["accept"], "application/json");

            let failed = ask("dogs", vec![1]).unwrap_err();
            assert_eq!(failed.kind, AwsErrorKind::Model);
            for words in ["status 400", "no image", "/aws/sagemaker/Endpoints/dogs"] {
                assert!(failed.message.contains(words), "{failed}");
            }
            assert_eq!(server.exchanges().len(), 2);
            let large = ask("cats", vec![0; MAX_INVOCATION_BYTES + 1]).unwrap_err();
            assert_eq!(large.kind, AwsErrorKind::Invalid);
            assert_eq!(server.exchanges().len(), 2, "it was not even sent");
        },
    );
}

#[test]
fn environment_variables_set_service_endpoints() {
    let server = HttpServer::start(|request| Reply::whole(&prediction_file(operation_of(request))));
    let logs = HttpServer::start(|request| {
        assert_eq!(operation_of(request), "DescribeLogStreams");
        Reply::whole(&prediction_file("DescribeLogStreams"))
    });
    alone(
        "aws_shapes::environment_variables_set_service_endpoints",
        |command| {
            without_aws(command, "http://127.0.0.1:1")
                .env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE000000000")
                .env("AWS_SECRET_ACCESS_KEY", SECRET)
                .env("AWS_ENDPOINT_URL", server.url(""))
                .env("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", logs.url("/"));
        },
        || {
            let sagemaker = impatient().sagemaker(&SageMakerAccess::default());
            assert!(sagemaker.describe_endpoint("cats", &control()).unwrap().is_some());
            assert_eq!(sagemaker.log_streams("g", "cats/", &control()).unwrap().len(), 2);
            assert_eq!(sagemaker.region(&control()).unwrap(), "us-east-1");
            let who = sagemaker.identity(&control()).unwrap();
            assert!(who.who.contains("custom endpoint"), "{}", who.who);
        },
    );
}

#[test]
fn no_request_without_region_and_credentials() {
    alone(
        "aws_shapes::no_request_without_region_and_credentials",
        |command| {
            without_aws(command, "http://127.0.0.1:1").env_remove("AWS_REGION");
        },
        || {
            let aws = impatient();
            let nowhere = aws.sagemaker(&SageMakerAccess::default());
            let error = nowhere.describe_endpoint("cats", &control()).unwrap_err();
            assert_eq!(error.kind, AwsErrorKind::NoRegion, "{error}");
            let mut access = SageMakerAccess { region: some("eu-west-1"), ..SageMakerAccess::default() };
            let error = aws.sagemaker(&access).stop_job(JobKind::Transform, "cats", &control());
            let error = error.unwrap_err();
            assert_eq!(error.kind, AwsErrorKind::NoCredentials, "{error}");
            access.credentials = Credentials::Anonymous;
            let error = aws.sagemaker(&access).stop_job(JobKind::Transform, "cats", &control());
            let error = error.unwrap_err();
            assert_eq!(error.kind, AwsErrorKind::NoCredentials, "{error}");
        },
    );
}
