//! Real-time endpoints and their configurations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SageMaker, Tag, Timestamp, if_there, non_empty, sagemaker, tags, unsupported};
use crate::aws::AwsError;
use crate::sagemaker::spec::endpoint::{
    Endpoint, EndpointConfig, EndpointPage, EndpointQuery, EndpointStatus, EndpointSummary, EndpointVariant,
};
use crate::tasks::TaskControl;

/// The variant name that AWS's console uses for a single variant.
const VARIANT: &str = "AllTraffic";

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CreateConfig<'a> {
    endpoint_config_name: &'a str,
    production_variants: [Variant; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms_key_id: Option<&'a str>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(clippy::struct_field_names, reason = "AWS names them so")]
struct Variant {
    variant_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_instance_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_variant_weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_data_download_timeout_in_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container_startup_health_check_timeout_in_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inference_ami_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreatedConfig {
    endpoint_config_arn: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NamedConfig<'a> {
    endpoint_config_name: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedConfig {
    endpoint_config_name: String,
    production_variants: Vec<Variant>,
    kms_key_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CreateEndpoint<'a> {
    endpoint_name: &'a str,
    endpoint_config_name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreatedEndpoint {
    endpoint_arn: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NamedEndpoint<'a> {
    endpoint_name: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedEndpoint {
    #[serde(flatten)]
    summary: Summary,
    endpoint_config_name: Option<String>,
    failure_reason: Option<String>,
    #[serde(default)]
    production_variants: Vec<DescribedVariant>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedVariant {
    variant_name: String,
    #[serde(default)]
    deployed_images: Vec<DeployedImage>,
    current_instance_count: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeployedImage {
    specified_image: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Summary {
    endpoint_name: String,
    endpoint_arn: String,
    endpoint_status: EndpointStatus,
    creation_time: Timestamp,
    last_modified_time: Timestamp,
}

impl SageMaker {
    /// Creates a configuration with model and instances; returns its ARN. It costs nothing.
    pub fn create_endpoint_config(
        &self,
        config: &EndpointConfig,
        control: Option<&TaskControl>,
    ) -> Result<String, AwsError> {
        let call = sagemaker("CreateEndpointConfig", format!("create endpoint configuration {}", config.name));
        let request = CreateConfig {
            endpoint_config_name: &config.name,
            production_variants: [Variant {
                variant_name: VARIANT.to_owned(),
                model_name: Some(config.model_name.clone()),
                initial_instance_count: Some(config.instance_count),
                instance_type: config.instance_type.clone(),
                initial_variant_weight: Some(1.0),
                model_data_download_timeout_in_seconds: config.download_timeout_s,
                container_startup_health_check_timeout_in_seconds: config.startup_timeout_s,
                inference_ami_version: config.ami_version.clone(),
            }],
            tags: tags(&config.tags),
            kms_key_id: config.kms_key.as_deref(),
        };
        let response: CreatedConfig = self.ask(&call, &request, control)?;
        Ok(response.endpoint_config_arn)
    }

    /// `None` if it does not exist. Of several models that share an endpoint, the first is returned.
    ///
    /// # Errors
    /// Also [`AwsErrorKind::Unsupported`](crate::aws::AwsErrorKind::Unsupported) if it has no model.
    pub fn describe_endpoint_config(
        &self,
        name: &str,
        control: Option<&TaskControl>,
    ) -> Result<Option<EndpointConfig>, AwsError> {
        let call = sagemaker("DescribeEndpointConfig", format!("describe endpoint configuration {name}"));
        let request = NamedConfig { endpoint_config_name: name };
        let Some(told) = if_there(self.ask::<DescribedConfig>(&call, &request, control))? else {
            return Ok(None);
        };
        let variant = told.production_variants.into_iter().next();
        let Some((variant, model_name)) = variant.and_then(|mut variant| {
            let model_name = variant.model_name.take()?;
            Some((variant, model_name))
        }) else {
            return Err(unsupported(&call, "it contains no model name"));
        };
        Ok(Some(EndpointConfig {
            name: told.endpoint_config_name,
            model_name,
            instance_type: variant.instance_type,
            instance_count: variant.initial_instance_count.unwrap_or(1),
            ami_version: variant.inference_ami_version,
            download_timeout_s: variant.model_data_download_timeout_in_seconds,
            startup_timeout_s: variant.container_startup_health_check_timeout_in_seconds,
            kms_key: non_empty(told.kms_key_id),
            tags: BTreeMap::new(),
        }))
    }

    pub fn delete_endpoint_config(&self, name: &str, control: Option<&TaskControl>) -> Result<(), AwsError> {
        let call = sagemaker("DeleteEndpointConfig", format!("delete endpoint configuration {name}"));
        let request = NamedConfig { endpoint_config_name: name };
        self.send_only(&call, &request, control)
    }

    /// Creates an endpoint; returns its ARN. Its instances cost money until it is deleted.
    pub fn create_endpoint(
        &self,
        name: &str,
        config: &EndpointConfig,
        control: Option<&TaskControl>,
    ) -> Result<String, AwsError> {
        let call = sagemaker("CreateEndpoint", format!("create endpoint {name}"));
        let request =
            CreateEndpoint { endpoint_name: name, endpoint_config_name: &config.name, tags: tags(&config.tags) };
        let response: CreatedEndpoint = self.ask(&call, &request, control)?;
        Ok(response.endpoint_arn)
    }

    /// `None` if it does not exist, or no longer.
    pub fn describe_endpoint(&self, name: &str, control: Option<&TaskControl>) -> Result<Option<Endpoint>, AwsError> {
        let call = sagemaker("DescribeEndpoint", format!("describe endpoint {name}"));
        let request = NamedEndpoint { endpoint_name: name };
        let Some(told) = if_there(self.ask::<DescribedEndpoint>(&call, &request, control))? else {
            return Ok(None);
        };
        let variants = told.production_variants.into_iter().map(|variant| {
            let image = variant.deployed_images.into_iter().next();
            EndpointVariant {
                name: variant.variant_name,
                instances: variant.current_instance_count.unwrap_or_default(),
                image: image.and_then(|image| image.specified_image),
            }
        });
        Ok(Some(Endpoint {
            name: told.summary.endpoint_name,
            arn: told.summary.endpoint_arn,
            config_name: told.endpoint_config_name,
            status: told.summary.endpoint_status,
            failure: non_empty(told.failure_reason),
            created_ms: told.summary.creation_time.ms(),
            modified_ms: told.summary.last_modified_time.ms(),
            variants: variants.collect(),
        }))
    }

    /// Deletes the endpoint, which ends its cost. The configuration and the model stay.
    pub fn delete_endpoint(&self, name: &str, control: Option<&TaskControl>) -> Result<(), AwsError> {
        let call = sagemaker("DeleteEndpoint", format!("delete endpoint {name}"));
        let request = NamedEndpoint { endpoint_name: name };
        self.send_only(&call, &request, control)
    }

    /// A page of the endpoints in this account and region, newest first.
    pub fn list_endpoints(
        &self,
        query: &EndpointQuery,
        control: Option<&TaskControl>,
    ) -> Result<EndpointPage, AwsError> {
        let call = sagemaker("ListEndpoints", "list the endpoints");
        self.list::<_, Summary, _>(&call, query, control)
    }
}

impl From<Summary> for EndpointSummary {
    fn from(endpoint: Summary) -> Self {
        Self {
            name: endpoint.endpoint_name,
            arn: endpoint.endpoint_arn,
            status: endpoint.endpoint_status,
            created_ms: endpoint.creation_time.ms(),
            modified_ms: endpoint.last_modified_time.ms(),
        }
    }
}
