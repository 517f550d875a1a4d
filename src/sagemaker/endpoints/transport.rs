//! Sends images to an endpoint.

use crate::aws::{AwsError, AwsErrorKind, SageMaker};
use crate::model::PredictError;
use crate::sagemaker::predictor::{Request, Transport};
use crate::tasks::TaskControl;

const JSON: &str = "application/json";

/// The model behind an endpoint.
#[derive(Clone)]
pub struct EndpointTransport {
    sagemaker: SageMaker,
    endpoint: String,
    region: String,
}

impl EndpointTransport {
    /// # Errors
    /// No region is configured.
    pub fn new(sagemaker: SageMaker, endpoint: impl Into<String>, control: &TaskControl) -> Result<Self, AwsError> {
        let region = sagemaker.region(Some(control))?;
        Ok(Self { sagemaker, endpoint: endpoint.into(), region })
    }

    pub fn region(&self) -> &str {
        &self.region
    }
}

impl EndpointTransport {
    /// Explains a failed request by the endpoint's status: the runtime only reports that it does not exist, or fails as
    /// for a single image.
    fn explained(&self, error: AwsError, control: &TaskControl) -> AwsError {
        use AwsErrorKind as Kind;
        let is_trouble = |kind| matches!(kind, Kind::Server | Kind::Throttled | Kind::Timeout | Kind::Cut);
        if error.kind != Kind::NotFound && !is_trouble(error.kind) {
            return error;
        }
        let there = self.sagemaker.describe_endpoint(&self.endpoint, Some(control));
        let there = match there {
            Ok(Some(there)) => there,
            Err(outage) if outage.kind.concerns_everything() || is_trouble(outage.kind) => {
                return AwsError { kind: Kind::Unreachable, ..outage };
            }
            Ok(None) if error.kind != Kind::NotFound => {
                return AwsError {
                    kind: Kind::NotFound,
                    message: format!(
                        "Could not invoke endpoint {}: it does not exist; deploy it again, or choose another one",
                        self.endpoint
                    ),
                };
            }
            // Permission to invoke an endpoint does not include permission to describe it.
            Ok(None) | Err(_) => return error,
        };
        if there.status.accepts_requests() {
            return error;
        }
        let why = there.failure.map_or_else(String::new, |why| format!(" (AWS: {why})"));
        let what_to_do = if there.status.is_changing() {
            "wait until it is InService"
        } else {
            "deploy it again, or choose another one"
        };
        AwsError {
            kind: Kind::NotFound,
            message: format!("Could not invoke endpoint {}: it is {}{why}; {what_to_do}", self.endpoint, there.status),
        }
    }
}

impl Transport for EndpointTransport {
    fn carry(&self, request: Request, control: &TaskControl) -> Result<Vec<u8>, PredictError> {
        self.sagemaker
            .invoke_endpoint(&self.endpoint, request.content_type, Some(JSON), request.body, Some(control))
            .map(|response| response.body)
            .map_err(|error| predict_error(self.explained(error, control)))
    }

    fn name(&self) -> String {
        format!("endpoint {} in {}", self.endpoint, self.region)
    }
}

/// An error that other images may not have affects only this image.
fn predict_error(error: AwsError) -> PredictError {
    use AwsErrorKind as Kind;
    match error.kind {
        Kind::Cancelled => PredictError::Cancelled,
        Kind::Model
        | Kind::Invalid
        | Kind::Throttled
        | Kind::Timeout
        | Kind::Cut
        | Kind::Server
        | Kind::Limit
        | Kind::Other => PredictError::Failed(error.message),
        _ => PredictError::OutOfReach(error.message),
    }
}
