//! A SageMaker Batch Transform job, as planned and as AWS describes it. Contains no secrets.
//!
//! Names, ranges and meanings are those of SageMaker's `CreateTransformJob` and `DescribeTransformJob`.

mod container;
mod cost;
mod limits;
mod network;
mod plan;
mod preflight;
mod progress;
mod spec;
mod stored;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use strum::{IntoStaticStr, VariantArray};

use super::members::{from_aws, to_aws};
use super::{some_time_ms, time_ms};
use crate::domain::{Credentials, ListPage, ListQuery, S3Access, S3Address};

pub use container::{ArchiveContent, ContainerUse, EcrImage, default_image, known_images};
pub use cost::{
    CostEstimate, HEADLINE, InstanceType, Price, PriceChange, PriceTable, billed_text, cost_usd, human_usd,
    known_instance_types,
};
pub use limits::{
    DEFAULT_PAYLOAD_MB, FieldProblem, MAX_ENVIRONMENT, MAX_INSTANCES, MAX_PAYLOAD_IN_FLIGHT_MB, MAX_S3_URI, Problems,
    dated_name, image_problem, in_flight_problem, name_problem, role_problem,
};
pub use network::{Network, Vpc};
pub use plan::{
    ImagesInside, JobRecord, Leftover, ManifestPlan, ModelSource, TfsBatching, TransformPlan, archive_address,
    manifest_address, output_folder, support_folder,
};
pub use preflight::{Check, CheckGrade, CheckPoint, InputSurvey, KeySample, Preflight};
pub use progress::{
    FailedObject, JobOutcome, JobPhase, JobProgress, JobRetry, LogLine, RetryChoice, Unexplained, predicted_by_retry,
};
pub use spec::{
    AssembleWith, BatchStrategy, Compression, DataCapture, DataProcessing, EXAMPLE_CONTENT_TYPE, Experiment,
    IMAGE_CONTENT_TYPE, InputObjects, JoinSource, LINES_CONTENT_TYPE, ModelClient, PayloadSuggestion, SplitType,
    TransformInput, TransformOutput, TransformSpec, needed_payload_mb,
};

/// The default instance type of jobs and endpoints.
pub const DEFAULT_INSTANCE: &str = "ml.m5.xlarge";

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SageMakerAccess {
    pub credentials: Credentials,
    /// `None` uses the user's AWS configuration.
    pub region: Option<String>,
}

/// The parameters of `CreateModel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// 1 to 63 letters, digits and hyphens.
    pub name: String,
    /// The URI of the container in ECR.
    pub image: String,
    /// `model.tar.gz`
    pub archive: S3Address,
    /// The ARN of the role that the container runs as.
    #[serde(default)]
    pub role: String,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    #[serde(default)]
    pub network: Network,
}

impl ModelSpec {
    const MEMBERS: [(&str, &str); 8] = [
        ("/name", "/ModelName"),
        ("/image", "/PrimaryContainer/Image"),
        ("/archive", "/PrimaryContainer/ModelDataUrl"),
        ("/environment", "/PrimaryContainer/Environment"),
        ("/role", "/ExecutionRoleArn"),
        ("/tags", "/Tags"),
        ("/network/VpcConfig", "/VpcConfig"),
        ("/network/EnableNetworkIsolation", "/EnableNetworkIsolation"),
    ];

    /// The `CreateModel` request.
    pub fn request(&self) -> Value {
        to_aws(&json!(self), &Self::MEMBERS)
    }

    /// The model in a response of `DescribeModel` with one container and its archive.
    ///
    /// # Errors
    /// The archive is not in S3.
    pub fn described(model: &Value) -> serde_json::Result<Self> {
        Self::deserialize(from_aws(model, &Self::MEMBERS))
    }
}

/// The instances of a job of any kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Resources {
    /// `ml.m5.xlarge`
    #[serde(default)]
    pub instance_type: String,
    /// `1..=100`
    #[serde(default)]
    pub instance_count: u32,
    #[serde(rename = "VolumeKmsKeyId")]
    pub volume_kms_key: Option<String>,
    /// The storage volume of each instance of a training job.
    #[serde(rename = "VolumeSizeInGB")]
    pub volume_gb: Option<u32>,
    /// The AMI of the instances of a Batch Transform job.
    #[serde(rename = "TransformAmiVersion")]
    pub ami_version: Option<String>,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            instance_type: DEFAULT_INSTANCE.to_owned(),
            instance_count: 1,
            volume_kms_key: None,
            volume_gb: None,
            ami_version: None,
        }
    }
}

impl Resources {
    /// The instance type, and the number of instances.
    pub fn instances(&self) -> (&str, u32) {
        (&self.instance_type, self.instance_count)
    }

    /// Adds the values that SageMaker would reject.
    pub fn check(&self, found: &mut Problems) {
        found.range("number of instances", self.instance_count, 1, MAX_INSTANCES);
        found.range("volume size in GB", self.volume_gb, 1, u32::MAX);
        found.kms_key("volume KMS key", self.volume_kms_key.as_deref());
        found.ami_version(self.ami_version.as_deref());
    }
}

/// The objects of a job's input, in AWS's form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSource<T> {
    #[serde(rename = "S3DataSource")]
    pub objects: T,
}

/// The kind of a job. SageMaker names each kind separately: a training job can have the name of a transform job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[strum(const_into_str)]
pub enum JobKind {
    #[default]
    #[strum(serialize = "Batch Transform")]
    Transform,
    Training,
}

impl JobKind {
    /// “job”, “training job”
    pub fn noun(self) -> &'static str {
        match self {
            Self::Transform => "job",
            Self::Training => "training job",
        }
    }
}

/// The parameters of one kind of job, in AWS's form.
pub trait JobSpec: Clone + PartialEq + Serialize + DeserializeOwned {
    const KIND: JobKind;
    /// What SageMaker reports only about jobs of this kind.
    type Result: DeserializeOwned;

    fn job_name(&self) -> &str;

    /// The container's environment; its values may be secrets.
    fn environment_mut(&mut self) -> &mut BTreeMap<String, String>;

    /// Reads a spec from a record.
    ///
    /// # Errors
    /// It has another form.
    fn from_record<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

impl JobSpec for TransformSpec {
    const KIND: JobKind = JobKind::Transform;
    type Result = ();

    fn from_record<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_stored(deserializer)
    }

    fn job_name(&self) -> &str {
        &self.job_name
    }

    fn environment_mut(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.environment
    }
}

/// The status of a job of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum TransformStatus {
    #[strum(serialize = "in progress")]
    InProgress,
    Completed,
    Failed,
    Stopping,
    /// Also a training job whose record is being deleted.
    #[serde(alias = "Deleting")]
    Stopped,
}

impl TransformStatus {
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stopped)
    }
}

/// An entry in a list of jobs of any kind. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct JobSummary {
    /// Set by the request that lists jobs of one kind.
    #[serde(skip)]
    pub kind: JobKind,
    #[serde(alias = "TransformJobName", alias = "TrainingJobName")]
    pub name: String,
    #[serde(alias = "TransformJobStatus", alias = "TrainingJobStatus")]
    pub status: TransformStatus,
    #[serde(rename = "FailureReason")]
    pub failure: Option<String>,
    #[serde(rename = "CreationTime", deserialize_with = "time_ms")]
    pub created_ms: i64,
    #[serde(default, alias = "TransformEndTime", alias = "TrainingEndTime", deserialize_with = "some_time_ms")]
    pub ended_ms: Option<i64>,
}

/// A job as SageMaker describes it. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(bound = "")]
pub struct Job<S: JobSpec> {
    /// The complete response, without empty members.
    #[serde(skip)]
    pub described: Value,
    #[serde(flatten)]
    pub spec: S,
    #[serde(alias = "TransformJobArn", alias = "TrainingJobArn")]
    pub arn: String,
    #[serde(alias = "TransformJobStatus", alias = "TrainingJobStatus")]
    pub status: TransformStatus,
    /// SageMaker's reason, at most 1024 characters.
    #[serde(rename = "FailureReason")]
    pub failure: Option<String>,
    #[serde(rename = "CreationTime", deserialize_with = "time_ms")]
    pub created_ms: i64,
    /// Billing begins.
    #[serde(default, alias = "TransformStartTime", alias = "TrainingStartTime", deserialize_with = "some_time_ms")]
    pub started_ms: Option<i64>,
    /// Billing ends.
    #[serde(default, alias = "TransformEndTime", alias = "TrainingEndTime", deserialize_with = "some_time_ms")]
    pub ended_ms: Option<i64>,
    #[serde(flatten)]
    pub result: S::Result,
}

pub type TransformJob = Job<TransformSpec>;

/// Filter for the list of jobs, newest first.
pub type JobQuery = ListQuery<TransformStatus>;

pub type JobPage = ListPage<JobSummary>;

impl From<&SageMakerAccess> for S3Access {
    fn from(access: &SageMakerAccess) -> Self {
        Self { credentials: access.credentials.clone(), region: access.region.clone(), ..Self::default() }
    }
}

impl From<&S3Access> for SageMakerAccess {
    /// Jobs read a bucket in their own region, with the same credentials.
    fn from(access: &S3Access) -> Self {
        Self { credentials: access.credentials.clone(), region: access.region.clone() }
    }
}
