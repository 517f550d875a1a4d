//! A SageMaker real-time endpoint, as planned and as AWS describes it. Contains no secrets.
//!
//! Names, ranges and meanings are those of SageMaker's `CreateEndpointConfig`, `CreateEndpoint` and `DescribeEndpoint`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::members::{from_aws, to_aws};
use super::time_ms;
use super::transform::{FieldProblem, MAX_INSTANCES, Problems};
use crate::domain::{ListPage, ListQuery, S3Access, S3Address};
use crate::sagemaker::spec::transform::{
    DEFAULT_INSTANCE, InstanceType, Leftover, ModelSource, SageMakerAccess, cost_usd, name_problem,
};

/// AMIs for GPU instances, with driver and CUDA version (botocore 1.44.5, `ProductionVariant`).
pub const GPU_AMIS: [(&str, &str); 4] = [
    ("al2-ami-sagemaker-inference-gpu-2", "driver 535, CUDA 12.2"),
    ("al2-ami-sagemaker-inference-gpu-2-1", "driver 535, CUDA 12.2, without CUDA compatibility"),
    (DEFAULT_GPU_AMI, "driver 550, CUDA 12.4, without CUDA compatibility"),
    ("al2023-ami-sagemaker-inference-gpu-4-1", "driver 580, CUDA 13.0, without CUDA compatibility"),
];
/// The range of `ProductionVariantContainerStartupHealthCheckTimeoutInSeconds` and
/// `ProductionVariantModelDataDownloadTimeoutInSeconds`.
const TIMEOUT_S: (u32, u32) = (60, 3600);

/// The variant name that AWS's console uses for a single variant.
const VARIANT: &str = "AllTraffic";

const DEFAULT_GPU_AMI: &str = "al2-ami-sagemaker-inference-gpu-3-1";

/// The default AMI for an instance type with a GPU. SageMaker's own default has an older driver.
pub fn default_ami(instance_type: &str) -> Option<&'static str> {
    let has_gpu = InstanceType::parse(instance_type).is_some_and(|instance| instance.has_gpu());
    has_gpu.then_some(DEFAULT_GPU_AMI)
}

/// Why a name is not valid for an endpoint, to follow “the name”.
pub fn endpoint_name_problem(name: &str) -> Option<String> {
    match name.split_once(":endpoint/") {
        Some((arn, name)) if arn.starts_with("arn:") => Some(format!("is an ARN; use only the name: {name}")),
        _ => name_problem(name),
    }
}

/// The instances that serve a model. SageMaker stores this as an endpoint configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointConfig {
    /// 1 to 63 letters, digits and hyphens.
    pub name: String,
    /// The name of a SageMaker model.
    pub model_name: String,
    /// `ml.m5.xlarge`; `None` for an endpoint without instances (serverless).
    pub instance_type: Option<String>,
    /// Replaces the instances.
    #[serde(default)]
    pub serverless: Option<Serverless>,
    /// At least 1.
    #[serde(default = "EndpointConfig::one")]
    pub instance_count: u32,
    /// The AMI of the instances, which determines their GPU driver: `al2-ami-sagemaker-inference-gpu-3-1`.
    pub ami_version: Option<String>,
    /// Container startup health check timeout, `60..=3600`.
    pub startup_timeout_s: Option<u32>,
    /// Model data download timeout, `60..=3600`.
    #[serde(default)]
    pub download_timeout_s: Option<u32>,
    /// The KMS key of the instances' storage volumes.
    pub kms_key: Option<String>,
    /// At most 50. SageMaker does not return them later.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// `ServerlessConfig`, in its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Serverless {
    /// 1024 to 6144, in steps of 1024.
    #[serde(rename = "MemorySizeInMB")]
    pub memory_mb: u32,
    /// Parallel requests, `1..=200`.
    pub max_concurrency: u32,
}

impl Default for Serverless {
    fn default() -> Self {
        Self { memory_mb: 2048, max_concurrency: 5 }
    }
}

impl Default for EndpointConfig {
    /// One instance of the default type, without a name or model.
    fn default() -> Self {
        Self {
            name: String::new(),
            model_name: String::new(),
            instance_type: Some(DEFAULT_INSTANCE.to_owned()),
            serverless: None,
            instance_count: 1,
            ami_version: None,
            startup_timeout_s: None,
            download_timeout_s: None,
            kms_key: None,
            tags: BTreeMap::new(),
        }
    }
}

impl EndpointConfig {
    const MEMBERS: [(&str, &str); 10] = [
        ("/name", "/EndpointConfigName"),
        ("/model_name", "/ProductionVariants/0/ModelName"),
        ("/instance_type", "/ProductionVariants/0/InstanceType"),
        ("/serverless", "/ProductionVariants/0/ServerlessConfig"),
        ("/instance_count", "/ProductionVariants/0/InitialInstanceCount"),
        ("/ami_version", "/ProductionVariants/0/InferenceAmiVersion"),
        ("/startup_timeout_s", "/ProductionVariants/0/ContainerStartupHealthCheckTimeoutInSeconds"),
        ("/download_timeout_s", "/ProductionVariants/0/ModelDataDownloadTimeoutInSeconds"),
        ("/kms_key", "/KmsKeyId"),
        ("/tags", "/Tags"),
    ];

    fn one() -> u32 {
        1
    }

    /// The `CreateEndpointConfig` request.
    pub fn request(&self) -> Value {
        let mut request = to_aws(&json!(self), &Self::MEMBERS);
        let variant = &mut request["ProductionVariants"][0];
        variant["VariantName"] = VARIANT.into();
        variant["InitialVariantWeight"] = 1.0.into();
        if self.serverless.is_some() {
            variant["InitialInstanceCount"] = Value::Null;
        }
        request
    }

    /// The configuration in a response of `DescribeEndpointConfig`, with its first model.
    ///
    /// # Errors
    /// It has no model.
    pub fn described(config: &Value) -> serde_json::Result<Self> {
        Self::deserialize(from_aws(config, &Self::MEMBERS))
    }

    /// “2 × ml.m5.xlarge”, “serverless, 2048 MB, up to 5 parallel requests”
    pub fn instances_text(&self) -> String {
        match (&self.serverless, &self.instance_type) {
            (Some(Serverless { memory_mb, max_concurrency }), _) => {
                format!("serverless, {memory_mb} MB, up to {max_concurrency} parallel requests")
            }
            (None, Some(instance_type)) => format!("{} × {instance_type}", self.instance_count),
            (None, None) => "unknown".to_owned(),
        }
    }

    /// Values that SageMaker would reject, except the name of the endpoint and of a model with the same name.
    pub fn problems(&self) -> Vec<FieldProblem> {
        let mut found = Problems::default();
        if self.model_name != self.name {
            found.name("model name", &self.model_name);
        }
        found.range("number of instances", self.instance_count, 1, MAX_INSTANCES);
        found.ami_version(self.ami_version.as_deref());
        if let Some(Serverless { memory_mb, max_concurrency }) = self.serverless {
            found.range("parallel requests", max_concurrency, 1, 200);
            if !(1024..=6144).contains(&memory_mb) || memory_mb % 1024 != 0 {
                found.add("memory in MB", format!("is {memory_mb}; it must be 1024 to 6144, in steps of 1024"));
            }
        }
        let (least, most) = TIMEOUT_S;
        found.range("startup timeout in seconds", self.startup_timeout_s, least, most);
        found.range("download timeout in seconds", self.download_timeout_s, least, most);
        found.kms_key("volume KMS key", self.kms_key.as_deref());
        found.tags(&self.tags);
        found.0
    }
}

/// An endpoint before any of it exists. The endpoint, its configuration and a model created for it share one name.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointPlan {
    pub sagemaker: SageMakerAccess,
    /// Access to the bucket for a local archive.
    pub s3: S3Access,
    pub model: ModelSource,
    pub config: EndpointConfig,
    /// Price of one instance; `None` until the preflight takes it from the price table.
    pub usd_per_hour: Option<f64>,
    /// `None`: never deleted automatically.
    pub delete_after_ms: Option<i64>,
}

impl EndpointPlan {
    /// The record to write before anything is created.
    pub fn record(&self, now_ms: i64) -> EndpointRecord {
        EndpointRecord {
            usd_per_hour: self.usd_per_hour,
            delete_at_ms: self.delete_after_ms.map(|after| now_ms + after),
            ..EndpointRecord::new(self.sagemaker.clone(), self.config.clone(), now_ms)
        }
    }
}

/// An endpoint that was deployed from here, or was about to be, and is not known to be deleted. Contains no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointRecord {
    pub sagemaker: SageMakerAccess,
    pub name: String,
    pub config: EndpointConfig,
    /// Whether SageMaker accepted the endpoint. Until then, resources may exist for an endpoint that does not.
    #[serde(default)]
    pub is_started: bool,
    /// Whether the configuration was created for this endpoint and is deleted with it.
    #[serde(default)]
    pub owns_config: bool,
    /// Whether the model was created for this endpoint and is deleted with it.
    pub owns_model: bool,
    /// The archive that was uploaded only for this endpoint and is deleted with it.
    #[serde(default)]
    pub archive: Option<UploadedArchive>,
    /// Price of one instance.
    pub usd_per_hour: Option<f64>,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When Spotcheck deletes it automatically, even if a window still shows it.
    pub delete_at_ms: Option<i64>,
}

/// An archive in S3, and how to access it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedArchive {
    pub address: S3Address,
    pub s3: S3Access,
}

impl EndpointRecord {
    /// The record of an endpoint before its first resource is created. It is named after its configuration.
    pub fn new(sagemaker: SageMakerAccess, config: EndpointConfig, now_ms: i64) -> Self {
        Self {
            sagemaker,
            name: config.name.clone(),
            config,
            is_started: false,
            owns_config: false,
            owns_model: false,
            archive: None,
            usd_per_hour: None,
            created_ms: now_ms,
            delete_at_ms: None,
        }
    }

    /// What was created for it, last first.
    pub fn left(&self) -> Vec<Leftover> {
        let config = &self.config;
        let endpoint = self.is_started.then(|| Leftover::Endpoint(self.name.clone()));
        let configuration = self.owns_config.then(|| Leftover::Configuration(config.name.clone()));
        let model = self.owns_model.then(|| Leftover::Model(config.model_name.clone()));
        let archive = self.archive.as_ref().map(|archive| Leftover::Archive(archive.address.clone()));
        [endpoint, configuration, model, archive].into_iter().flatten().collect()
    }
}

/// The cost of an endpoint since its creation and per hour: slightly more than AWS will bill, because instances are
/// billed only from their start.
pub fn cost_since(usd_per_hour: f64, instances: u32, created_ms: i64, now_ms: i64) -> (f64, f64) {
    let seconds = (now_ms - created_ms).max(0) as f64 / 1e3;
    (cost_usd(usd_per_hour, instances, seconds), cost_usd(usd_per_hour, instances, 3600.0))
}

/// Displayed by SageMaker's name: `InService`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
pub enum EndpointStatus {
    OutOfService,
    Creating,
    Updating,
    SystemUpdating,
    RollingBack,
    InService,
    Deleting,
    Failed,
    UpdateRollbackFailed,
}

impl EndpointStatus {
    /// Whether the status changes without a request.
    pub fn is_changing(self) -> bool {
        matches!(self, Self::Creating | Self::Updating | Self::SystemUpdating | Self::RollingBack | Self::Deleting)
    }

    /// Whether it accepts requests, which it also does while being updated.
    pub fn accepts_requests(self) -> bool {
        matches!(self, Self::InService | Self::Updating | Self::SystemUpdating | Self::RollingBack)
    }
}

/// An endpoint as `DescribeEndpoint` returns it. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Endpoint {
    #[serde(rename = "EndpointName")]
    pub name: String,
    /// `None` if SageMaker does not report it, as in lists.
    #[serde(rename = "EndpointConfigName")]
    pub config_name: Option<String>,
    #[serde(rename = "EndpointStatus")]
    pub status: EndpointStatus,
    /// SageMaker's reason, at most 1024 characters. Not in lists.
    #[serde(rename = "FailureReason")]
    pub failure: Option<String>,
    #[serde(rename = "CreationTime", deserialize_with = "time_ms")]
    pub created_ms: i64,
    #[serde(rename = "LastModifiedTime", deserialize_with = "time_ms")]
    pub modified_ms: i64,
    /// Not in lists.
    #[serde(default, rename = "ProductionVariants")]
    pub variants: Vec<EndpointVariant>,
}

impl Endpoint {
    /// The reason for the failure, without the period that SageMaker sometimes adds.
    pub fn failure_words(&self) -> &str {
        let why = self.failure.as_deref().unwrap_or("SageMaker reports no reason");
        why.trim_end().trim_end_matches('.')
    }
}

/// A production variant. Endpoints that Spotcheck deploys have one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct EndpointVariant {
    /// Running instances.
    #[serde(default, rename = "CurrentInstanceCount")]
    pub instances: u32,
    #[serde(default)]
    deployed_images: Vec<DeployedImage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeployedImage {
    specified_image: Option<String>,
}

impl EndpointVariant {
    /// The URI of its container.
    pub fn image(&self) -> Option<&str> {
        self.deployed_images.first()?.specified_image.as_deref()
    }
}

/// Filter for the list of endpoints, newest first.
pub type EndpointQuery = ListQuery<EndpointStatus>;

pub type EndpointPage = ListPage<Endpoint>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_name_is_reported_and_an_arn_accepted() {
        for name in ["cats", "Cats-2", "a--b"] {
            assert_eq!(endpoint_name_problem(name), None, "{name}");
        }
        for name in ["", "my cats", "cats_2", "-cats", &"c".repeat(64)] {
            assert!(endpoint_name_problem(name).is_some(), "{name}");
        }
        let arn = "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/cats";
        let problem = endpoint_name_problem(arn).unwrap();
        assert!(problem.ends_with("only the name: cats"), "{problem}");
    }

    #[test]
    fn endpoint_cost_counts_instances_since_creation() {
        assert_eq!(cost_since(0.25, 2, 1_000, 7_201_000), (1.0, 0.5));
        // The clock was set back.
        assert_eq!(cost_since(0.25, 2, 1_000, 0), (0.0, 0.5));
        let unmade = EndpointRecord::new(SageMakerAccess::default(), EndpointConfig::default(), 1_000);
        assert_eq!(unmade.left(), []);
    }
}
