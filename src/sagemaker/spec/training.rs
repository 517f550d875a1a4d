//! A SageMaker training job, as planned and as AWS describes it. Contains no secrets.
//!
//! The structs have the form of SageMaker's `CreateTrainingJob` and `DescribeTrainingJob`; hyperparameters are those of
//! the SageMaker Python SDK's `Estimator` (`sagemaker` 2.257.7, `estimator.py` and `model.py`), which the containers'
//! `sagemaker-training` reads (5.1.4, `params.py`). A test compares them with the SDK's own request.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::transform::{
    DataSource, FieldProblem, Job, JobKind, JobSpec, LogLine, MAX_ENVIRONMENT, MAX_S3_URI, Network, Problems,
    Resources, SageMakerAccess, TransformStatus,
};
use super::{tags, time_ms};
use crate::domain::{S3Access, S3Address};

/// `container_log_level` of the SDK: Python's `logging.INFO`.
const LOG_LEVEL: u32 = 20;
/// The SDK's channel for the source folder of an isolated container, which cannot read S3 itself.
const CODE_CHANNEL: &str = "code";
// The limits of botocore's `service-2.json` (2017-07-24).
const MAX_CHANNELS: usize = 20;
const MAX_CHANNEL_NAME: usize = 64;
const MAX_HYPERPARAMETERS: usize = 100;
const MAX_HYPERPARAMETER_NAME: usize = 256;
const MAX_HYPERPARAMETER: usize = 2500;
const MAX_METRICS: usize = 40;
const MAX_METRIC_NAME: usize = 255;
const MAX_METRIC: usize = 500;
const MAX_VARIABLE: usize = 512;
const CODE_IN_CONTAINER: &str = "/opt/ml/input/data/code/sourcedir.tar.gz";

/// The parameters of `CreateTrainingJob`. Jobs of other tools may lack some, and have more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TrainingSpec {
    /// 1 to 63 letters, digits and hyphens, unique within account and region.
    #[serde(rename = "TrainingJobName")]
    pub job_name: String,
    /// At most 100, as the container receives them.
    #[serde(rename = "HyperParameters")]
    pub hyperparameters: BTreeMap<String, String>,
    #[serde(rename = "AlgorithmSpecification")]
    pub algorithm: Algorithm,
    #[serde(rename = "RoleArn")]
    pub role: String,
    /// At most 20.
    #[serde(rename = "InputDataConfig")]
    pub channels: Vec<Channel>,
    #[serde(rename = "OutputDataConfig")]
    pub output: OutputConfig,
    #[serde(rename = "ResourceConfig")]
    pub resources: Resources,
    #[serde(rename = "StoppingCondition")]
    pub stopping: StoppingCondition,
    pub environment: BTreeMap<String, String>,
    #[serde(flatten)]
    pub network: Network,
    #[serde(rename = "EnableManagedSpotTraining", skip_serializing_if = "std::ops::Not::not")]
    pub is_spot: bool,
    /// The folder for checkpoints, which a job on spot instances needs to continue after an interruption.
    #[serde(rename = "CheckpointConfig")]
    pub checkpoints: Option<Checkpoints>,
    /// At most 50. SageMaker does not return them later.
    #[serde(with = "tags")]
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Algorithm {
    /// The URI of the container in ECR.
    #[serde(rename = "TrainingImage")]
    pub image: String,
    #[serde(rename = "TrainingInputMode")]
    pub input_mode: String,
    /// At most 40.
    #[serde(rename = "MetricDefinitions")]
    pub metrics: Vec<MetricDefinition>,
}

impl Default for Algorithm {
    fn default() -> Self {
        Self { image: String::new(), input_mode: "File".to_owned(), metrics: Vec::new() }
    }
}

/// A metric, and the regular expression that finds it in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetricDefinition {
    pub name: String,
    pub regex: String,
}

/// A named input of a training job: `SM_CHANNEL_TRAINING`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Channel {
    #[serde(rename = "ChannelName")]
    pub name: String,
    /// `None` for a file system.
    data_source: DataSource<Option<S3DataSource>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(clippy::struct_field_names, reason = "AWS names them so")]
struct S3DataSource {
    s3_data_type: String,
    s3_uri: String,
    /// Whether each instance receives all objects.
    s3_data_distribution_type: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OutputConfig {
    /// The folder for the results of jobs: `<job>/output/model.tar.gz`.
    #[serde(rename = "S3OutputPath")]
    pub folder: String,
    #[serde(rename = "KmsKeyId")]
    pub kms_key: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoppingCondition {
    #[serde(rename = "MaxRuntimeInSeconds")]
    pub max_run_s: u32,
    /// For waiting for spot instances and training together.
    #[serde(rename = "MaxWaitTimeInSeconds")]
    pub max_wait_s: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Checkpoints {
    pub s3_uri: String,
}

/// The script of a training job, and how it is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingSource {
    pub folder: PathBuf,
    /// The path of the script in the folder.
    pub entry_point: String,
    pub mpi: Option<Mpi>,
    /// Where the packed folder is uploaded, as with the SDK's `code_location`.
    pub archive: S3Address,
}

/// Runs the script with `mpirun`, for example with Horovod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mpi {
    pub processes_per_host: u32,
    /// Additional options of `mpirun`.
    pub options: String,
}

/// A training job before any of it exists.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingPlan {
    pub sagemaker: SageMakerAccess,
    pub s3: S3Access,
    pub spec: TrainingSpec,
    /// `None` if the container has its own program.
    pub source: Option<TrainingSource>,
    /// Price of one instance; `None` uses the price table.
    pub usd_per_hour: Option<f64>,
}

impl JobSpec for TrainingSpec {
    const KIND: JobKind = JobKind::Training;
    type Result = TrainingResult;

    fn job_name(&self) -> &str {
        &self.job_name
    }

    fn environment_mut(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.environment
    }
}

impl Channel {
    pub fn new(name: impl Into<String>, objects: &S3Address) -> Self {
        let source = S3DataSource {
            s3_data_type: "S3Prefix".to_owned(),
            s3_uri: objects.to_string(),
            s3_data_distribution_type: Some("FullyReplicated".to_owned()),
        };
        Self { name: name.into(), data_source: DataSource { objects: Some(source) } }
    }

    /// The prefix of its objects; `None` if it reads something else.
    pub fn objects(&self) -> Option<S3Address> {
        S3Address::parse(&self.data_source.objects.as_ref()?.s3_uri).ok()
    }
}

impl TrainingSpec {
    /// Adds the hyperparameters that make the container run this script, in the SDK's encoding: all values are JSON,
    /// the user's too.
    #[must_use]
    pub fn with_source(mut self, source: &TrainingSource, region: &str) -> Self {
        let directory = if self.network.is_isolated {
            self.channels.push(Channel::new(CODE_CHANNEL, &source.archive));
            CODE_IN_CONTAINER.to_owned()
        } else {
            source.archive.to_string()
        };
        for value in self.hyperparameters.values_mut() {
            *value = json_of(value);
        }
        let mut set = |name: &str, value: Value| {
            self.hyperparameters.insert(format!("sagemaker_{name}"), value.to_string());
        };
        set("submit_directory", directory.into());
        set("program", source.entry_point.as_str().into());
        set("container_log_level", LOG_LEVEL.into());
        set("job_name", self.job_name.as_str().into());
        set("region", region.into());
        if let Some(mpi) = &source.mpi {
            set("mpi_enabled", true.into());
            set("mpi_num_of_processes_per_host", mpi.processes_per_host.into());
            set("mpi_custom_mpi_options", mpi.options.as_str().into());
        }
        self
    }

    /// Values that SageMaker would reject. Image and role are checked separately.
    pub fn problems(&self) -> Vec<FieldProblem> {
        let Self { resources, stopping, output, .. } = self;
        let mut found = Problems::default();
        found.name("job name", &self.job_name);
        found.length("output folder", &output.folder, MAX_S3_URI);
        found.range("maximum runtime in seconds", stopping.max_run_s, 1, u32::MAX);
        found.range("maximum wait in seconds", stopping.max_wait_s, stopping.max_run_s, u32::MAX);
        resources.check(&mut found);
        self.check_channels(&mut found);
        found.count("hyperparameters", self.hyperparameters.len(), MAX_HYPERPARAMETERS);
        for (name, value) in &self.hyperparameters {
            found.entry("hyperparameter", (name, MAX_HYPERPARAMETER_NAME), (value, MAX_HYPERPARAMETER));
        }
        found.count("metrics", self.algorithm.metrics.len(), MAX_METRICS);
        for MetricDefinition { name, regex } in &self.algorithm.metrics {
            found.entry("metric", (name, MAX_METRIC_NAME), (regex, MAX_METRIC));
        }
        found.environment(&self.environment, MAX_ENVIRONMENT, MAX_VARIABLE);
        found.kms_key("output KMS key", output.kms_key.as_deref());
        found.tags(&self.tags);
        self.network.check(&mut found);
        found.0
    }
}

impl TrainingSpec {
    fn check_channels(&self, found: &mut Problems) {
        found.count("channels", self.channels.len(), MAX_CHANNELS);
        for (at, Channel { name, .. }) in self.channels.iter().enumerate() {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if !(1..=MAX_CHANNEL_NAME).contains(&name.len()) || !name.bytes().all(is_letter) {
                let message =
                    format!("cannot have “{name}”: a name has 1 to {MAX_CHANNEL_NAME} letters, digits, and . _ -");
                found.add("channels", message);
            }
            if self.channels[..at].iter().any(|other| other.name == *name) {
                found.add("channels", format!("have “{name}” twice; rename one"));
            }
        }
    }
}

/// Where the packed source folder of a job is uploaded.
pub fn source_archive(output: &S3Address, job_name: &str) -> S3Address {
    output.below(&format!("{job_name}/source/sourcedir.tar.gz"))
}

/// A value as JSON: numbers, `true`, lists and other JSON as they are, and any other text as a string.
fn json_of(text: &str) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => text.to_owned(),
        Err(_) => Value::from(text).to_string(),
    }
}

/// What SageMaker reports about a training job beyond what it reports about every job.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TrainingResult {
    #[serde(default, rename = "ModelArtifacts")]
    pub model: ModelArtifacts,
    /// The billed time of each instance, which for spot instances is shorter than the training.
    #[serde(rename = "BillableTimeInSeconds")]
    pub billable_s: Option<f64>,
    /// The phases so far, oldest first.
    #[serde(default, rename = "SecondaryStatusTransitions")]
    pub phases: Vec<TrainingPhase>,
    /// The last value of each metric.
    #[serde(default, rename = "FinalMetricDataList")]
    pub metrics: Vec<Metric>,
}

pub type TrainingJob = Job<TrainingSpec>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ModelArtifacts {
    /// The resulting `model.tar.gz`.
    #[serde(rename = "S3ModelArtifacts")]
    pub archive: Option<String>,
}

/// SageMaker's secondary status during some time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TrainingPhase {
    /// `Downloading`
    pub status: String,
    #[serde(rename = "StartTime", deserialize_with = "time_ms")]
    pub started_ms: i64,
    #[serde(default)]
    pub status_message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Metric {
    pub metric_name: String,
    /// A number, or text for infinity and NaN.
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TrainingProgress {
    pub training: TrainingJob,
    /// The billed time of each instance so far; `None` before the instances run.
    pub billed_s: Option<f64>,
    /// `None` if no price is known.
    pub cost_usd: Option<f64>,
    /// The newest lines of the container's log, oldest first.
    pub log_tail: Vec<LogLine>,
    /// What could not be determined, and why.
    pub notes: Vec<String>,
}

impl TrainingProgress {
    /// The response of `DescribeTrainingJob`, with the address of a model that exists, the cost and the notes.
    pub fn json(&self) -> Value {
        let mut all = self.training.described.clone();
        all["ModelArtifacts"]["S3ModelArtifacts"] = self.training.result.model.archive.clone().into();
        all["CostUsd"] = self.cost_usd.into();
        all["Notes"] = self.notes.clone().into();
        all
    }
}

impl TrainingJob {
    /// The current or last phase: “Training”.
    pub fn phase(&self) -> &str {
        self.result.phases.last().map_or("Pending", |phase| phase.status.as_str())
    }

    /// The archive of the model; `None` also if its address cannot be parsed.
    pub fn archive(&self) -> Option<S3Address> {
        S3Address::parse(self.result.model.archive.as_ref()?).ok()
    }

    /// Why there is no model to use, although the job is over.
    pub fn problem(&self) -> Option<String> {
        let failure = self.failure.as_deref().unwrap_or("SageMaker reports no reason");
        match self.status {
            TransformStatus::Failed => Some(failure.to_owned()),
            TransformStatus::Stopped => Some(match self.archive() {
                Some(archive) => format!("it was stopped; {archive} is what the script had saved by then"),
                None => "it was stopped".to_owned(),
            }),
            TransformStatus::Completed if self.archive().is_none() => {
                Some("it wrote no model; a script must write its model to SM_MODEL_DIR (/opt/ml/model)".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::transform::Vpc;
    use super::*;
    use crate::sagemaker::spec::without_unset;

    /// The request that the SageMaker Python SDK sends, and the arguments of its estimator, from
    /// `tests/aws/estimator.py`. Only the SDK sets up SageMaker Debugger, which stores tensors and metrics in S3.
    #[test]
    fn request_matches_the_python_sdk() {
        let cases: Vec<Value> = serde_json::from_str(include_str!("../../../tests/aws/estimator.json")).unwrap();
        assert_eq!(cases.len(), 4);
        for case in cases {
            let parse = |text: &Value| S3Address::parse(text.as_str().unwrap()).unwrap();
            let mpi = case["mpi"].as_object().map(|mpi| Mpi {
                processes_per_host: mpi["processes"].as_u64().unwrap() as u32,
                options: mpi["options"].as_str().unwrap().to_owned(),
            });
            let job_name = case["job_name"].as_str().unwrap();
            let archive = source_archive(&parse(&case["output"]), job_name);
            let entry_point = case["entry_point"].as_str().unwrap().to_owned();
            let source = TrainingSource { folder: "source".into(), entry_point, mpi, archive };
            let spec = of_case(&case).with_source(&source, case["region"].as_str().unwrap());
            let mut sent = without_unset(serde_json::to_value(&spec).unwrap());
            let mut expected = case["request"].clone();
            for request in [&mut sent, &mut expected] {
                for value in request["HyperParameters"].as_object_mut().unwrap().values_mut() {
                    // Python escapes all letters beyond ASCII; both mean the same.
                    *value = serde_json::from_str(value.as_str().unwrap()).unwrap();
                }
                for debugger in ["DebugHookConfig", "ProfilerConfig"] {
                    request.as_object_mut().unwrap().remove(debugger);
                }
            }
            assert_eq!(sent, expected, "{job_name}");
        }
    }

    /// The job that the arguments of an estimator describe, with the defaults of `spotcheck train`.
    fn of_case(case: &Value) -> TrainingSpec {
        let (more, request) = (&case["more"], &case["request"]);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let number = |value: &Value, usual: u32| value.as_u64().map_or(usual, |number| number as u32);
        let list = |value: &Value| value.as_array().into_iter().flatten().filter_map(text).collect::<Vec<_>>();
        let pairs = |value: &Value| {
            let pairs = value.as_object().into_iter().flatten();
            pairs.map(|(name, value)| (name.clone(), typed(value))).collect::<BTreeMap<_, _>>()
        };
        let inputs = pairs(&case["inputs"]).into_iter();
        let subnets = list(&more["subnets"]);
        TrainingSpec {
            job_name: text(&case["job_name"]).unwrap(),
            hyperparameters: pairs(&case["hyperparameters"]),
            algorithm: Algorithm {
                image: text(&request["AlgorithmSpecification"]["TrainingImage"]).unwrap(),
                metrics: serde_json::from_value(more["metric_definitions"].clone()).unwrap_or_default(),
                ..Algorithm::default()
            },
            role: text(&request["RoleArn"]).unwrap(),
            channels: inputs.map(|(name, uri)| Channel::new(name, &S3Address::parse(&uri).unwrap())).collect(),
            output: OutputConfig { folder: text(&case["output"]).unwrap(), kms_key: text(&more["output_kms_key"]) },
            resources: Resources {
                instance_type: "ml.p3.16xlarge".to_owned(),
                instance_count: 2,
                volume_gb: Some(number(&more["volume_size"], 30)),
                volume_kms_key: text(&more["volume_kms_key"]),
                ami_version: None,
            },
            stopping: StoppingCondition {
                max_run_s: number(&more["max_run"], 86400),
                max_wait_s: more["max_wait"].as_u64().map(|seconds| seconds as u32),
            },
            environment: pairs(&more["environment"]),
            network: Network {
                vpc: (!subnets.is_empty())
                    .then(|| Vpc { subnets, security_group_ids: list(&more["security_group_ids"]) }),
                is_isolated: case["is_isolated"] == true,
            },
            is_spot: more["use_spot_instances"] == true,
            checkpoints: text(&more["checkpoint_s3_uri"]).map(|s3_uri| Checkpoints { s3_uri }),
            tags: BTreeMap::new(),
        }
    }

    /// A value as typed on the command line.
    fn typed(value: &Value) -> String {
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }

    fn example() -> TrainingSpec {
        TrainingSpec {
            job_name: "cats".to_owned(),
            resources: Resources { volume_gb: Some(30), ..Resources::default() },
            stopping: StoppingCondition { max_run_s: 3600, max_wait_s: None },
            ..TrainingSpec::default()
        }
    }

    #[test]
    fn refused_values_are_found_by_field() {
        let check = |change: fn(&mut TrainingSpec), expected: &[&str]| {
            let mut spec = example();
            change(&mut spec);
            let fields: Vec<&str> = spec.problems().iter().map(|problem| problem.field).collect();
            assert_eq!(fields, expected);
        };
        check(|_| (), &[]);
        check(|spec| spec.job_name = "my job".to_owned(), &["job name"]);
        check(|spec| spec.resources.instance_count = 0, &["number of instances"]);
        check(|spec| spec.stopping.max_wait_s = Some(60), &["maximum wait in seconds"]);
        check(|spec| drop(spec.tags.insert("aws:mine".to_owned(), String::new())), &["tags"]);
        check(|spec| spec.output.kms_key = Some("a key".to_owned()), &["output KMS key"]);
    }

    #[test]
    fn job_without_a_model_has_a_reason() {
        let problem = |status, failure: Option<&str>, archive: Option<&str>| {
            let training = TrainingJob {
                described: Value::Null,
                spec: example(),
                status,
                failure: failure.map(str::to_owned),
                arn: String::new(),
                result: TrainingResult {
                    model: ModelArtifacts { archive: archive.map(str::to_owned) },
                    billable_s: None,
                    phases: Vec::new(),
                    metrics: Vec::new(),
                },
                created_ms: 0,
                started_ms: None,
                ended_ms: None,
            };
            training.problem().unwrap_or_default()
        };
        assert_eq!(problem(TransformStatus::InProgress, None, None), "");
        assert_eq!(problem(TransformStatus::Completed, None, Some("s3://bucket/model.tar.gz")), "");
        assert_eq!(problem(TransformStatus::Failed, Some("AlgorithmError: no"), None), "AlgorithmError: no");
        assert!(problem(TransformStatus::Stopped, None, None).starts_with("it was stopped"));
        assert!(problem(TransformStatus::Completed, None, None).contains("SM_MODEL_DIR"));
    }
}
