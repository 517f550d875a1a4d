//! A SageMaker Batch Transform job, as a person plans it and as AWS tells of it. Nothing here is a secret.
//!
//! Names, ranges and meanings are those of SageMaker's `CreateTransformJob` and `DescribeTransformJob`.

mod container;
mod cost;
mod instance;
mod limits;
mod payload;
mod plan;
mod preflight;
mod progress;
mod record;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

pub use container::{ArchiveContent, EcrImage, default_image, known_images};
pub use cost::{
    CostEstimate, HEADLINE, Headline, Price, PriceChange, PriceTable, cost_usd, human_usd,
};
pub use instance::{InstanceType, known_instance_types};
pub use limits::{
    DEFAULT_PAYLOAD_MB, FieldProblem, MAX_PAYLOAD_IN_FLIGHT_MB, dated_name, image_problem,
    in_flight_problem, name_problem, role_problem,
};
pub use payload::{PayloadSuggestion, needed_payload_mb};
pub use plan::{
    EXAMPLE_CONTENT_TYPE, IMAGE_CONTENT_TYPE, ImagesInside, LINES_CONTENT_TYPE, ManifestPlan,
    ModelSource, TfsBatching, TransformPlan, USUAL_INSTANCE, archive_address, manifest_address,
    output_folder, support_folder,
};
pub use preflight::{Check, CheckGrade, CheckPoint, InputSurvey, KeySample, Preflight};
pub use progress::{
    FailedObject, JobOutcome, JobPhase, JobProgress, JobRetry, LogLine, Unexplained,
};
pub use record::{JobRecord, LeftBehind};

use super::{Credentials, S3Access, S3Address};

/// Who asks SageMaker, and in which region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SageMakerAccess {
    pub credentials: Credentials,
    /// `None`: as the user's AWS configuration says.
    pub region: Option<String>,
}

/// Everything that `CreateTransformJob` takes. What is `None` or empty is left to SageMaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransformSpec {
    /// 1 to 63 letters, digits and hyphens, unique within account and region.
    pub job_name: String,
    /// Of a model that SageMaker knows.
    pub model_name: String,
    pub input: TransformInput,
    pub output: TransformOutput,
    /// `ml.m5.xlarge`
    pub instance_type: String,
    /// `1..=100`
    pub instance_count: u32,
    /// Of the disks of the instances.
    pub volume_kms_key: Option<String>,
    pub ami_version: Option<String>,
    pub batch_strategy: BatchStrategy,
    /// The largest body of a request, `0..=100`; 0 sends it in chunks without a limit. SageMaker's default is 6.
    pub max_payload_mb: Option<u32>,
    /// Requests in flight at once on each instance; with `max_payload_mb` at most 100 as a product.
    pub max_concurrent: Option<u32>,
    pub model_client: ModelClient,
    /// At most 16.
    pub environment: BTreeMap<String, String>,
    /// At most 50.
    pub tags: BTreeMap<String, String>,
    pub data_processing: DataProcessing,
    /// Where requests and predictions are kept beside the outputs, if at all.
    pub data_capture: Option<DataCapture>,
    pub experiment: Option<Experiment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransformInput {
    pub objects: InputObjects,
    /// `application/x-image`
    pub content_type: String,
    pub split: SplitType,
    pub compression: Compression,
}

/// Which objects a job reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputObjects {
    /// All whose key begins with the prefix: `photos` also takes `photos-old/`.
    Prefix(S3Address),
    /// Those that a manifest object lists: `[{"prefix": "s3://bucket/folder/"}, "a.jpg", …]`.
    Manifest(S3Address),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransformOutput {
    /// The folder below which `<key>.out` objects appear.
    pub folder: S3Address,
    /// What the model is asked to answer in: `application/json`.
    pub accept: Option<String>,
    pub assemble: AssembleWith,
    pub kms_key: Option<String>,
}

/// How an object is cut into records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SplitType {
    #[default]
    None,
    Line,
    RecordIO,
    TFRecord,
}

/// How many records a request carries. `SingleRecord` strips the framing of `TFRecord` and `RecordIO`, `MultiRecord` keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BatchStrategy {
    MultiRecord,
    #[default]
    SingleRecord,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AssembleWith {
    #[default]
    None,
    Line,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Compression {
    #[default]
    None,
    Gzip,
}

/// How patient SageMaker is with the container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelClient {
    /// `1..=3600`; SageMaker's default is 600.
    pub timeout_s: Option<u32>,
    /// `0..=3`; SageMaker's default is 3.
    pub max_retries: Option<u32>,
}

/// JSON paths that choose from inputs and outputs, and whether both are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataProcessing {
    pub input_filter: Option<String>,
    pub output_filter: Option<String>,
    /// `JoinSource: Input`
    pub join_input: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataCapture {
    pub folder: S3Address,
    pub kms_key: Option<String>,
    pub with_inference_id: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    pub experiment: Option<String>,
    pub trial: Option<String>,
    pub trial_component: Option<String>,
    pub run: Option<String>,
}

impl Experiment {
    /// `None` if nothing is set.
    pub fn given(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// Everything that `CreateModel` takes of us.
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
}

/// What has become of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum TransformStatus {
    #[strum(serialize = "in progress")]
    InProgress,
    Completed,
    Failed,
    Stopping,
    Stopped,
}

impl TransformStatus {
    /// Nothing changes any more.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stopped)
    }
}

/// A line of the list of jobs. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransformSummary {
    pub name: String,
    pub arn: String,
    pub status: TransformStatus,
    pub failure: Option<String>,
    pub created_ms: i64,
    pub ended_ms: Option<i64>,
}

/// A job as `DescribeTransformJob` tells it. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransformJob {
    pub spec: TransformSpec,
    pub arn: String,
    pub status: TransformStatus,
    /// At most 1024 characters, and often vague.
    pub failure: Option<String>,
    pub created_ms: i64,
    /// Billing begins.
    pub started_ms: Option<i64>,
    /// Billing ends.
    pub ended_ms: Option<i64>,
}

/// Which jobs are listed, the newest first. What is `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Letters, digits and hyphens, as part of the name.
    pub name_contains: Option<String>,
    pub status: Option<TransformStatus>,
    /// Of the page before: [`JobPage::next`].
    pub page_token: Option<String>,
}

/// A part of the list of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobPage {
    pub jobs: Vec<TransformSummary>,
    /// `None` after the last page.
    pub next: Option<String>,
}

impl From<&S3Access> for SageMakerAccess {
    /// Jobs read a bucket of their own region, as the same person.
    fn from(access: &S3Access) -> Self {
        Self {
            credentials: access.credentials.clone(),
            region: access.region.clone(),
        }
    }
}
