//! A SageMaker real-time endpoint, as a person plans it and as AWS tells of it. Nothing here is a secret.
//!
//! Names, ranges and meanings are those of SageMaker's `CreateEndpointConfig`, `CreateEndpoint` and `DescribeEndpoint`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// On which instances a model is to be run. SageMaker keeps it under a name of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointConfig {
    /// 1 to 63 letters, digits and hyphens.
    pub name: String,
    /// Of a model that SageMaker knows.
    pub model_name: String,
    /// `ml.m5.xlarge`; `None` of an endpoint that somebody made without instances.
    pub instance_type: Option<String>,
    /// At least 1.
    pub instance_count: u32,
    /// The system of the instances, with the driver of their graphics cards: `al2-ami-sagemaker-inference-gpu-3-1`.
    pub ami_version: Option<String>,
    /// `60..=3600`: how long the container may take until it is ready.
    pub startup_timeout_s: Option<u32>,
    /// Of the disks of the instances.
    pub kms_key: Option<String>,
    /// At most 50. Not told by SageMaker afterwards.
    pub tags: BTreeMap<String, String>,
}

/// An endpoint that is to be made of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointSpec {
    /// 1 to 63 letters, digits and hyphens, unique within account and region.
    pub name: String,
    pub config_name: String,
    /// At most 50.
    pub tags: BTreeMap<String, String>,
}

/// What has become of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// It changes by itself.
    pub fn is_changing(self) -> bool {
        matches!(
            self,
            Self::Creating
                | Self::Updating
                | Self::SystemUpdating
                | Self::RollingBack
                | Self::Deleting
        )
    }

    /// It answers, also while it is changed.
    pub fn answers(self) -> bool {
        matches!(
            self,
            Self::InService | Self::Updating | Self::SystemUpdating | Self::RollingBack
        )
    }
}

/// As SageMaker names it: `InService`.
impl std::fmt::Display for EndpointStatus {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, formatter)
    }
}

/// An endpoint as `DescribeEndpoint` tells it. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub name: String,
    pub arn: String,
    /// `None` where SageMaker does not say.
    pub config_name: Option<String>,
    pub status: EndpointStatus,
    /// At most 1024 characters, and often vague.
    pub failure: Option<String>,
    pub created_ms: i64,
    pub modified_ms: i64,
    pub variants: Vec<EndpointVariant>,
}

/// One of the models that answer at an endpoint. Ours have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointVariant {
    pub name: String,
    /// Instances that run.
    pub instances: u32,
    pub image: Option<String>,
}

/// A line of the list of endpoints. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSummary {
    pub name: String,
    pub arn: String,
    pub status: EndpointStatus,
    pub created_ms: i64,
    pub modified_ms: i64,
}

/// Which endpoints are listed, the newest first. What is `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointQuery {
    /// Letters, digits and hyphens, as part of the name.
    pub name_contains: Option<String>,
    pub status: Option<EndpointStatus>,
    /// Of the page before: [`EndpointPage::next`].
    pub page_token: Option<String>,
}

/// A part of the list of endpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointPage {
    pub endpoints: Vec<EndpointSummary>,
    /// `None` after the last page.
    pub next: Option<String>,
}
