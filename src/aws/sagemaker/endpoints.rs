//! Real-time endpoints, their configurations, and requests to the models behind them.

use std::time::Duration;

use aws_sdk_sagemakerruntime::operation::invoke_endpoint::InvokeEndpointError;
use aws_sdk_sagemakerruntime::types::error::ModelError;
use aws_smithy_types::Blob;
use aws_smithy_types::timeout::TimeoutConfig;
use serde_json::json;

use super::{ResourceKind, SageMaker, sagemaker};
use crate::aws::AwsError;
use crate::aws::connection::{CONNECT_TIMEOUT, Connection};
use crate::aws::error::{AwsErrorKind, Operation};
use crate::domain::shortened;
use crate::sagemaker::spec::endpoint::{Endpoint, EndpointConfig, EndpointPage, EndpointQuery};
use crate::tasks::TaskControl;

const ENDPOINT: ResourceKind = ResourceKind::ENDPOINT;
const CONFIG: ResourceKind = ResourceKind::ENDPOINT_CONFIG;

impl SageMaker {
    /// Creates a configuration with model and instances. It costs nothing.
    pub fn create_endpoint_config(&self, config: &EndpointConfig, control: &TaskControl) -> Result<(), AwsError> {
        self.create(("create", CONFIG, &config.name), &config.request(), control)
    }

    /// `None` if it does not exist. Of several models that share an endpoint, the first is returned.
    ///
    /// # Errors
    /// Also [`AwsErrorKind::Unsupported`](crate::aws::AwsErrorKind::Unsupported) if it has no model.
    pub fn describe_endpoint_config(
        &self,
        name: &str,
        control: &TaskControl,
    ) -> Result<Option<EndpointConfig>, AwsError> {
        let Some(config) = self.describe(CONFIG, name, control)? else {
            return Ok(None);
        };
        let config = EndpointConfig::described(&config);
        config.map(Some).map_err(|_| CONFIG.unsupported(name, "it contains no model name"))
    }

    /// Creates an endpoint. Its instances cost money until it is deleted.
    pub fn create_endpoint(&self, name: &str, config: &EndpointConfig, control: &TaskControl) -> Result<(), AwsError> {
        let request =
            json!({"EndpointName": name, "EndpointConfigName": config.name, "Tags": config.request()["Tags"]});
        self.create(("create", ENDPOINT, name), &request, control)
    }

    /// `None` if it does not exist, or no longer.
    pub fn describe_endpoint(&self, name: &str, control: &TaskControl) -> Result<Option<Endpoint>, AwsError> {
        self.describe(ENDPOINT, name, control)
    }

    /// A page of the endpoints in this account and region, newest first.
    pub fn list_endpoints(&self, query: &EndpointQuery, control: &TaskControl) -> Result<EndpointPage, AwsError> {
        let call = sagemaker("ListEndpoints", "list the endpoints");
        self.list(&call, query, control)
    }
}

/// The largest body that an endpoint accepts.
pub const MAX_INVOCATION_BYTES: usize = 6_291_456;
/// SageMaker's limit for the model is 60 seconds.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(70);
/// The maximum length of a model's message.
const MAX_MESSAGE_CHARS: usize = 600;

impl SageMaker {
    /// The response of the model behind an endpoint, in JSON if it can. A body above [`MAX_INVOCATION_BYTES`] is rejected here, because
    /// SageMaker would reject it.
    ///
    /// # Errors
    /// [`AwsErrorKind::Model`] with the container's status and message, if the model failed.
    pub fn invoke_endpoint(
        &self,
        name: &str,
        content_type: &str,
        body: Vec<u8>,
        control: &TaskControl,
    ) -> Result<Vec<u8>, AwsError> {
        let what = format!("invoke endpoint {name}");
        if body.len() > MAX_INVOCATION_BYTES {
            return Err(AwsError::new(
                AwsErrorKind::Invalid,
                format!(
                    "Could not {what}: the request has {} bytes, but an endpoint accepts at most \
                    {MAX_INVOCATION_BYTES}; use a smaller image, or a Batch Transform job, which accepts up to 100 MB",
                    body.len()
                ),
            ));
        }
        self.0.network.wait(Some(control), self.0.invoke(name, content_type, Blob::new(body), &what))
    }
}

impl Connection {
    async fn invoke(&self, endpoint: &str, content_type: &str, body: Blob, what: &str) -> Result<Vec<u8>, AwsError> {
        let operation =
            Operation::Call { service: "SageMaker Runtime", namespace: "sagemaker", operation: "InvokeEndpoint", what };
        let loaded = self.loaded().await?;
        loaded.known_region(&operation)?;
        let caller = self.caller_at(&loaded, loaded.endpoint_of("SageMaker Runtime"));
        let _permit = self.network.request().await?;
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(RESPONSE_TIMEOUT).build();
        let mut settings = aws_sdk_sagemakerruntime::config::Builder::new().timeout_config(timeouts);
        settings.set_endpoint_url(caller.endpoint.clone());
        let response = aws_sdk_sagemakerruntime::Client::new(&loaded.config)
            .invoke_endpoint()
            .endpoint_name(endpoint)
            .content_type(content_type)
            .accept("application/json")
            .body(body)
            .customize()
            .config_override(settings)
            .send()
            .await;
        match response {
            Ok(response) => Ok(response.body.map(Blob::into_inner).unwrap_or_default()),
            Err(error) => {
                let error = match error.as_service_error() {
                    Some(InvokeEndpointError::ModelError(failed)) => failed_model(failed, &operation),
                    _ => AwsError::from_sdk(&error, &operation, &caller),
                };
                self.forget_after(&error).await;
                Err(error)
            }
        }
    }
}

/// The container responded with an error of its own.
fn failed_model(failed: &ModelError, operation: &Operation<'_>) -> AwsError {
    let status = failed.original_status_code().unwrap_or_default();
    let message = failed.original_message().or_else(|| failed.message()).unwrap_or_default().trim();
    let message = if message.is_empty() {
        "no message".to_owned()
    } else {
        format!("message: {}", shortened(message, MAX_MESSAGE_CHARS))
    };
    let what_to_do = match status {
        400..500 => "the model does not accept the image or its request format",
        _ => "check the log of the endpoint",
    };
    let log = failed.log_stream_arn().map_or_else(String::new, |arn| format!(": {arn}"));
    AwsError::new(
        AwsErrorKind::Model,
        format!(
            "Could not {operation}: the model container returned status {status}, {message} (AWS: ModelError); \
             {what_to_do}{log}"
        ),
    )
}
