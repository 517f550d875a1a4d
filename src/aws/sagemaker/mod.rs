//! SageMaker for the rest of the program: models, transform jobs, endpoints, and container logs.
//!
//! Requests and responses are structs in this module, named as in AWS; inputs and results are types of
//! `sagemaker::spec`. Tests compare both with AWS's own description of the service.

mod endpoints;
mod invoke;
mod lists;
mod logs;
mod models;
mod tags;
mod transform;

use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::control_plane::{Call, Service};
use super::credentials;
use super::error::{AwsError, AwsErrorKind};
use crate::domain::{Identity, S3Address};
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::tasks::TaskControl;

pub use invoke::{Invocation, MAX_INVOCATION_BYTES};
pub use models::create_model_request;
use tags::{Tag, tags};
pub use transform::create_transform_job_request;

/// A connection to SageMaker. Cheap to clone. Every method blocks; with a control, no longer than until it is canceled.
#[derive(Clone)]
pub struct SageMaker(Arc<Connection>);

impl SageMaker {
    pub fn new(connection: Arc<Connection>) -> Self {
        Self(connection)
    }

    pub fn access(&self) -> SageMakerAccess {
        SageMakerAccess::from(&self.0.access)
    }

    /// The region of requests, from this access or the user's AWS configuration.
    ///
    /// # Errors
    /// [`AwsErrorKind::NoRegion`] if no region is configured.
    pub fn region(&self, control: Option<&TaskControl>) -> Result<String, AwsError> {
        self.0.network.wait(control, async {
            let call = sagemaker("", "use SageMaker");
            let loaded = self.0.loaded().await?;
            Ok(loaded.known_region(&call.operation())?.to_owned())
        })
    }

    /// The signed-in identity and its expiry. Asks AWS; for another server, the access key is the identity.
    pub fn identity(&self, control: Option<&TaskControl>) -> Result<Identity, AwsError> {
        self.0.network.wait(control, async {
            let loaded = self.0.loaded().await?;
            let endpoint = loaded.endpoint_of("SageMaker");
            let identity = credentials::identity(&self.0.access, loaded.config_and_renewal(), endpoint).await;
            if let Err(error) = &identity {
                self.0.forget_after(error).await;
            }
            identity
        })
    }

    fn ask<A: DeserializeOwned>(
        &self,
        call: &Call,
        request: &impl Serialize,
        control: Option<&TaskControl>,
    ) -> Result<A, AwsError> {
        self.0.network.wait(control, self.0.call(call, request))
    }

    /// Sends a request whose response has no content.
    fn send_only(&self, call: &Call, request: &impl Serialize, control: Option<&TaskControl>) -> Result<(), AwsError> {
        let _: IgnoredAny = self.ask(call, request, control)?;
        Ok(())
    }
}

fn sagemaker(operation: &'static str, what: impl Into<String>) -> Call {
    Call { service: Service::SageMaker, operation, what: what.into() }
}

/// The response, or `None` if the resource does not exist in SageMaker.
fn if_there<T>(result: Result<T, AwsError>) -> Result<Option<T>, AwsError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind == AwsErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fractional seconds since 1970-01-01 UTC, the format of times in JSON 1.1.
#[derive(Deserialize, Clone, Copy)]
#[serde(transparent)]
struct Timestamp(f64);

impl Timestamp {
    fn ms(self) -> i64 {
        (self.0 * 1000.0).round() as i64
    }
}

/// `None` for an empty text, which SageMaker uses for unset fields.
fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// An address from SageMaker, which accepts both `s3://` and `https://`.
fn address(text: &str, call: &Call) -> Result<S3Address, AwsError> {
    S3Address::parse(text).map_err(|error| {
        AwsError::new(
            AwsErrorKind::Unsupported,
            format!("Could not {}: it is in a location that Spotcheck cannot read ({error}): {text}", call.what),
        )
    })
}

/// An error for a resource that SageMaker supports and this program does not.
fn unsupported(call: &Call, what: &str) -> AwsError {
    AwsError::new(
        AwsErrorKind::Unsupported,
        format!("Could not {}: {what}, which Spotcheck does not support; see the AWS console", call.what),
    )
}
