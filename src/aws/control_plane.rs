//! Calls of AWS's JSON 1.1 services, signed and retried by AWS's own runtime.
//!
//! The crate that AWS generates from SageMaker's model takes longer to compile than the rest of the program, for a
//! dozen of its 425 operations. This module does what it would do for these.

use std::time::SystemTime;

use aws_config::BehaviorVersion;
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_sdk_s3::error::{ErrorMetadata, ProvideErrorMetadata};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningParams, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime::client::orchestrator::operation::Operation as HttpOperation;
use aws_smithy_runtime::client::retries::classifiers::{
    HttpStatusCodeClassifier, ModeledAsRetryableClassifier, TransientErrorClassifier,
};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextMut;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::retry::{ErrorKind, ProvideErrorKind, RetryConfig};
use aws_smithy_types::timeout::TimeoutConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connection::{Connection, Loaded};
use super::error::{AwsError, AwsErrorKind, Caller, Operation};
use crate::sagemaker::spec::without_unset;

/// The error codes for throttling: `THROTTLING_ERRORS` in AWS's runtime, and those of SageMaker and CloudWatch Logs.
const THROTTLING: &[&str] = &[
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "SlowDown",
];

/// A service with the JSON 1.1 protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    SageMaker,
    Logs,
}

impl Service {
    /// The service's name in AWS's configuration files and environment variables.
    fn id(self) -> &'static str {
        match self {
            Self::SageMaker => "SageMaker",
            Self::Logs => "CloudWatch Logs",
        }
    }

    fn target(self) -> &'static str {
        match self {
            Self::SageMaker => "SageMaker",
            Self::Logs => "Logs_20140328",
        }
    }

    fn signing_name(self) -> &'static str {
        match self {
            Self::SageMaker => "sagemaker",
            Self::Logs => "logs",
        }
    }

    /// AWS's URL for the service, by the rules in botocore's `endpoint-rule-set-1.json`.
    fn url(self, region: &str, hosts: Hosts) -> String {
        let partition = Partition::from_region(region);
        let suffix = if hosts.dual_stack { partition.dual_stack_suffix } else { partition.suffix };
        let host = match self {
            Self::SageMaker if !hosts.fips => format!("api.sagemaker.{region}"),
            // The two oldest partitions have their own names.
            Self::SageMaker if !hosts.dual_stack && partition.suffix == "amazonaws.com" => {
                format!("api-fips.sagemaker.{region}")
            }
            Self::SageMaker => format!("api.sagemaker-fips.{region}"),
            Self::Logs if hosts.fips && (hosts.dual_stack || !region.starts_with("us-gov-")) => {
                format!("logs-fips.{region}")
            }
            Self::Logs => format!("logs.{region}"),
        };
        format!("https://{host}.{suffix}")
    }
}

/// The kind of AWS host names that the user's configuration selects.
#[derive(Debug, Clone, Copy, Default)]
struct Hosts {
    fips: bool,
    dual_stack: bool,
}

/// An AWS partition, with its own accounts and host names.
struct Partition {
    suffix: &'static str,
    dual_stack_suffix: &'static str,
}

impl Partition {
    /// The partition by the prefix of a region's name, as in botocore's `partitions.json`.
    fn from_region(region: &str) -> Self {
        const OTHERS: &[(&str, &str, &str)] = &[
            ("cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
            ("eusc-", "amazonaws.eu", "api.amazonwebservices.eu"),
            ("us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
            ("us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
            ("eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
            ("us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
        ];
        let other = OTHERS.iter().find(|(start, ..)| region.starts_with(start));
        let &(_, suffix, dual_stack_suffix) = other.unwrap_or(&("", "amazonaws.com", "api.aws"));
        Self { suffix, dual_stack_suffix }
    }
}

/// An operation of a service, and its description for people.
#[derive(Debug, Clone)]
pub struct Call {
    pub service: Service,
    /// `CreateTransformJob`
    pub operation: String,
    /// “start job cats”
    pub what: String,
}

impl Call {
    pub fn operation(&self) -> Operation<'_> {
        Operation::Call {
            service: self.service.id(),
            namespace: self.service.signing_name(),
            operation: &self.operation,
            what: &self.what,
        }
    }
}

impl Connection {
    /// Sends the request and reads the response.
    pub async fn call<A: DeserializeOwned>(&self, call: &Call, request: &impl Serialize) -> Result<A, AwsError> {
        let operation = call.operation();
        let loaded = self.loaded().await?;
        let region = loaded.known_region(&operation)?;
        let endpoint = loaded.endpoint_of(call.service.id());
        let caller = self.caller_at(&loaded, endpoint);
        let body =
            serde_json::to_value(request).map(|request| without_unset(request).to_string()).map_err(|error| {
                AwsError::new(
                    AwsErrorKind::Other,
                    format!("Could not {operation}: could not write the request as JSON ({error})"),
                )
            })?;
        let _permit = self.network.request().await?;
        let signer = Signer {
            credentials: loaded.credentials(&operation, &caller).await?,
            region: region.to_owned(),
            name: call.service.signing_name(),
        };
        let url = match &caller.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => call.service.url(
                region,
                Hosts {
                    fips: loaded.config.use_fips().unwrap_or_default(),
                    dual_stack: loaded.config.use_dual_stack().unwrap_or_default(),
                },
            ),
        };
        let request = http_operation(call, &loaded, &url, body.into_bytes(), signer);
        match request.invoke(()).await {
            Ok(response) => read(&response, &operation, &caller),
            Err(error) => {
                let error = AwsError::from_sdk(&error, &operation, &caller);
                self.forget_after(&error).await;
                Err(error)
            }
        }
    }

    pub fn caller_at(&self, loaded: &Loaded, endpoint: Option<String>) -> Caller {
        Caller { endpoint, ..self.caller(loaded, None) }
    }
}

impl Loaded {
    async fn credentials(&self, operation: &Operation<'_>, caller: &Caller) -> Result<Credentials, AwsError> {
        let provider = self.config.credentials_provider().ok_or_else(|| {
            AwsError::new(
                AwsErrorKind::NoCredentials,
                format!("Could not {operation}: this needs credentials; choose a profile"),
            )
        })?;
        let credentials = provider.provide_credentials().await;
        credentials.map_err(|error| AwsError::from_credentials(&error, operation, caller))
    }
}

fn http_operation(
    call: &Call,
    loaded: &Loaded,
    url: &str,
    body: Vec<u8>,
    signer: Signer,
) -> HttpOperation<(), Vec<u8>, Refusal> {
    let config = &loaded.config;
    let retry = config.retry_config().cloned().unwrap_or_else(RetryConfig::standard);
    let timeouts = config.timeout_config().cloned().unwrap_or_else(TimeoutConfig::disabled);
    let target = format!("{}.{}", call.service.target(), call.operation);
    let mut builder = HttpOperation::builder()
        .service_name(call.service.id())
        .operation_name(call.operation.clone())
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(url)
        .no_auth()
        .interceptor(signer)
        .standard_retry(&retry)
        .retry_classifier(TransientErrorClassifier::<Refusal>::new())
        .retry_classifier(ModeledAsRetryableClassifier::<Refusal>::new())
        .retry_classifier(HttpStatusCodeClassifier::default())
        .timeout_config(timeouts)
        .with_connection_poisoning();
    if let Some(http) = config.http_client() {
        builder = builder.http_client(http);
    }
    if let Some(sleep) = config.sleep_impl() {
        builder = builder.sleep_impl(sleep);
    }
    if let Some(time) = config.time_source() {
        builder = builder.time_source(time);
    }
    builder
        .serializer(move |(): ()| {
            let mut request = HttpRequest::new(SdkBody::from(body.clone()));
            request.set_method("POST")?;
            request.set_uri("/")?;
            let headers = request.headers_mut();
            headers.try_insert("content-type", "application/x-amz-json-1.1")?;
            headers.try_insert("content-length", body.len().to_string())?;
            headers.try_insert("x-amz-target", target.clone())?;
            headers.try_insert("user-agent", concat!("spotcheck/", env!("CARGO_PKG_VERSION")))?;
            Ok(request)
        })
        .deserializer(|response: &HttpResponse| {
            let body = response.body().bytes().unwrap_or_default();
            if response.status().is_success() {
                Ok(body.to_vec())
            } else {
                let header = response.headers().get("x-amzn-errortype");
                Err(OrchestratorError::operation(Refusal::read(header, body)))
            }
        })
        .build()
}

fn read<A: DeserializeOwned>(body: &[u8], operation: &Operation<'_>, caller: &Caller) -> Result<A, AwsError> {
    // An operation without a result has an empty response.
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    let read = serde_json::from_slice(body).map(without_unset).and_then(A::deserialize);
    read.map_err(|error| {
        AwsError::new(
            AwsErrorKind::NotS3,
            format!(
                "Could not {operation}: the response of {} is not one of {} ({error}); check the endpoint URL and \
                 proxies",
                caller.server(),
                operation.service()
            ),
        )
    })
}

/// Signs each attempt separately, because a signature is valid for only a few minutes. Its `Debug` shows no secret:
/// that of the credentials hides them.
#[derive(Debug)]
struct Signer {
    credentials: Credentials,
    region: String,
    name: &'static str,
}

impl Intercept for Signer {
    fn name(&self) -> &'static str {
        "Signer"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let now = components.time_source().map_or_else(SystemTime::now, |source| source.now());
        let identity = self.credentials.clone().into();
        let params = SigningParams::V4(
            v4::SigningParams::builder()
                .identity(&identity)
                .region(&self.region)
                .name(self.name)
                .time(now)
                .settings(SigningSettings::default())
                .build()?,
        );
        let request = context.request_mut();
        let signable = SignableRequest::new(
            request.method(),
            request.uri(),
            request.headers().iter(),
            SignableBody::Bytes(request.body().bytes().unwrap_or_default()),
        )?;
        let (headers, _) = sign(signable, &params)?.into_parts().0.into_parts();
        for header in headers {
            let value = header.value().to_owned();
            request.headers_mut().try_insert(header.name(), value)?;
        }
        Ok(())
    }
}

/// An error response with code and message.
#[derive(Debug)]
struct Refusal(ErrorMetadata);

impl Refusal {
    /// `{"__type": "com.amazon.coral.validate#ValidationException", "message": "…"}`; the type can also be in the
    /// header.
    fn read(header: Option<&str>, body: &[u8]) -> Self {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct Body {
            #[serde(rename = "__type")]
            kind: Option<String>,
            code: Option<String>,
            #[serde(alias = "Message", alias = "errorMessage")]
            message: Option<String>,
        }
        let body: Body = serde_json::from_slice(body).unwrap_or_default();
        let mut metadata = ErrorMetadata::builder();
        let code = header.map(str::to_owned).or(body.kind).or(body.code);
        if let Some(code) = &code {
            metadata = metadata.code(plain_code(code));
        }
        if let Some(message) = body.message {
            metadata = metadata.message(message);
        }
        Self(metadata.build())
    }
}

/// `aws.protocoltests#FooError:http://…` becomes `FooError`, as the protocol's documentation specifies.
fn plain_code(code: &str) -> &str {
    let code = code.split(':').next().unwrap_or(code);
    code.rsplit('#').next().unwrap_or(code)
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for Refusal {}

impl ProvideErrorMetadata for Refusal {
    fn meta(&self) -> &ErrorMetadata {
        &self.0
    }
}

impl ProvideErrorKind for Refusal {
    fn retryable_error_kind(&self) -> Option<ErrorKind> {
        let code = self.0.code()?;
        THROTTLING.contains(&code).then_some(ErrorKind::ThrottlingError)
    }

    fn code(&self) -> Option<&str> {
        self.0.code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_reason_is_found_in_every_protocol() {
        for (header, body) in [
            (None, r#"{"__type":"ValidationException","message":"no"}"#),
            (None, r#"{"__type":"com.amazon.coral.validate#ValidationException","Message":"no"}"#),
            (Some("ValidationException:http://internal.amazon.com/"), r#"{"message":"no"}"#),
        ] {
            let refusal = Refusal::read(header, body.as_bytes());
            assert_eq!(refusal.0.code(), Some("ValidationException"), "{body}");
            assert_eq!(refusal.0.message(), Some("no"), "{body}");
        }
        assert_eq!(Refusal::read(None, b"<html>").0.code(), None);
    }

    #[test]
    fn service_endpoints_match_botocore() {
        let table = include_str!("../../tests/aws/endpoints.txt");
        let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() > 100, "{}", lines.len());
        for line in lines {
            let [service, region, fips, dual_stack, url] =
                line.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
            let hosts = Hosts { fips: fips == "true", dual_stack: dual_stack == "true" };
            let service = match service {
                "sagemaker" => Service::SageMaker,
                _ => Service::Logs,
            };
            assert_eq!(service.url(region, hosts), url, "{line}");
        }
    }

    #[test]
    fn only_throttling_is_retried() {
        let throttled = Refusal::read(None, br#"{"__type":"ThrottlingException"}"#);
        let refused = Refusal::read(None, br#"{"__type":"ValidationException"}"#);
        assert_eq!(throttled.retryable_error_kind(), Some(ErrorKind::ThrottlingError));
        assert_eq!(refused.retryable_error_kind(), None);
    }

    #[test]
    fn signer_shows_no_secret() {
        let signer = Signer {
            credentials: Credentials::new("AKIA", "very-secret", Some("token".into()), None, "test"),
            region: "eu-west-1".to_owned(),
            name: "sagemaker",
        };
        let text = format!("{signer:?}");
        assert!(!text.contains("very-secret") && !text.contains("\"token\""), "{text}");
    }
}
