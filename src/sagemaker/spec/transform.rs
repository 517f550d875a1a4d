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

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::domain::{Credentials, ListPage, ListQuery, S3Access, S3Address};

pub use container::{ArchiveContent, ContainerUse, EcrImage, default_image, known_images};
pub use cost::{
    CostEstimate, HEADLINE, Headline, InstanceType, Price, PriceChange, PriceTable, billed_text, cost_usd, human_usd,
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
    AssembleWith, BatchStrategy, Compression, DEFAULT_INSTANCE, DataCapture, DataProcessing, EXAMPLE_CONTENT_TYPE,
    Experiment, IMAGE_CONTENT_TYPE, InputObjects, LINES_CONTENT_TYPE, ModelClient, PayloadSuggestion, SplitType,
    TransformInput, TransformOutput, TransformSpec, needed_payload_mb,
};

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
    pub role: String,
    pub environment: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
    #[serde(default)]
    pub network: Network,
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

/// The parameters of one kind of job.
pub trait JobSpec: Clone + PartialEq + Serialize + DeserializeOwned {
    const KIND: JobKind;

    fn job_name(&self) -> &str;

    /// The container's environment; its values may be secrets.
    fn environment_mut(&mut self) -> &mut BTreeMap<String, String>;
}

impl JobSpec for TransformSpec {
    const KIND: JobKind = JobKind::Transform;

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

/// An entry in the list of jobs. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    pub kind: JobKind,
    pub name: String,
    pub arn: String,
    pub status: TransformStatus,
    pub failure: Option<String>,
    pub created_ms: i64,
    pub ended_ms: Option<i64>,
}

/// A job as `DescribeTransformJob` returns it. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransformJob {
    pub spec: TransformSpec,
    pub arn: String,
    pub status: TransformStatus,
    /// SageMaker's reason, at most 1024 characters.
    pub failure: Option<String>,
    pub created_ms: i64,
    /// Billing begins.
    pub started_ms: Option<i64>,
    /// Billing ends.
    pub ended_ms: Option<i64>,
}

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
