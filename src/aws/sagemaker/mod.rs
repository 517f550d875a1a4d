//! SageMaker for the rest of the program: models, transform jobs, endpoints, container logs, and what they share:
//! lists, tags and times.
//!
//! Inputs and results are types of `sagemaker::spec`. Most have AWS's form; the requests and responses of others are
//! structs in this module, named as in AWS. Tests compare all with AWS's own description of the service.

mod endpoints;
mod jobs;
mod logs;
mod models;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::control_plane::{Call, Service};
use super::error::{AwsError, AwsErrorKind};
use crate::domain::{Identity, ListPage, ListQuery, S3Address};
use crate::sagemaker::spec::tags;
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::tasks::TaskControl;

pub use endpoints::{Invocation, MAX_INVOCATION_BYTES};
pub use models::CreateModel;

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
    pub fn region(&self, control: &TaskControl) -> Result<String, AwsError> {
        self.0.network.wait(Some(control), async {
            let call = sagemaker("", "use SageMaker");
            let loaded = self.0.loaded().await?;
            Ok(loaded.known_region(&call.operation())?.to_owned())
        })
    }

    /// The signed-in identity and its expiry. Asks AWS; for another server, the access key is the identity.
    pub fn identity(&self, control: &TaskControl) -> Result<Identity, AwsError> {
        self.0.network.wait(Some(control), self.0.identity(|loaded| loaded.endpoint_of("SageMaker")))
    }

    fn ask<A: DeserializeOwned>(
        &self,
        call: &Call,
        request: &impl Serialize,
        control: &TaskControl,
    ) -> Result<A, AwsError> {
        self.0.network.wait(Some(control), self.0.call(call, request))
    }

    /// Sends a request that creates a resource; returns its ARN.
    fn create(&self, call: &Call, request: &impl Serialize, control: &TaskControl) -> Result<String, AwsError> {
        let Created { arn } = self.ask(call, request, control)?;
        Ok(arn)
    }

    /// Sends a request whose response has no content.
    fn send_only(&self, call: &Call, request: &impl Serialize, control: &TaskControl) -> Result<(), AwsError> {
        let _: IgnoredAny = self.ask(call, request, control)?;
        Ok(())
    }
}

#[derive(Deserialize)]
struct Created {
    #[serde(
        alias = "ModelArn",
        alias = "EndpointConfigArn",
        alias = "EndpointArn",
        alias = "TransformJobArn",
        alias = "TrainingJobArn"
    )]
    arn: String,
}

/// A request about the resource with this name; `field` is that of its name.
fn named(field: impl Into<String>, name: &str) -> BTreeMap<String, &str> {
    BTreeMap::from([(field.into(), name)])
}

fn sagemaker(operation: impl Into<String>, what: impl Into<String>) -> Call {
    Call { service: Service::SageMaker, operation: operation.into(), what: what.into() }
}

/// The response, or `None` if the resource does not exist in SageMaker.
fn if_there<T>(result: Result<T, AwsError>) -> Result<Option<T>, AwsError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind == AwsErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
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

/// The largest page that SageMaker returns.
const PAGE: u32 = 100;

/// `ListTransformJobs`, `ListTrainingJobs` and `ListEndpoints`, newest first.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct List<'a, S> {
    name_contains: Option<&'a str>,
    status_equals: Option<S>,
    sort_by: &'static str,
    sort_order: &'static str,
    next_token: Option<&'a str>,
    max_results: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed<T> {
    // Unset if there are none.
    #[serde(
        default = "Vec::new",
        alias = "TransformJobSummaries",
        alias = "TrainingJobSummaries",
        alias = "Endpoints"
    )]
    items: Vec<T>,
    next_token: Option<String>,
}

impl SageMaker {
    /// A page of resources in the account and region, newest first.
    fn list<S: Serialize + Copy, T: DeserializeOwned>(
        &self,
        call: &Call,
        query: &ListQuery<S>,
        control: &TaskControl,
    ) -> Result<ListPage<T>, AwsError> {
        let request = List {
            name_contains: query.name_contains.as_deref(),
            status_equals: query.status,
            sort_by: "CreationTime",
            sort_order: "Descending",
            next_token: query.page_token.as_deref(),
            max_results: PAGE,
        };
        let Listed { items, next_token } = self.ask(call, &request, control)?;
        Ok(ListPage { items, next: next_token })
    }
}

/// The prefix of tags that only AWS can set.
const OF_AWS: &str = "aws:";

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ListTags<'a> {
    resource_arn: &'a str,
    next_token: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedTags {
    #[serde(default, with = "tags")]
    tags: BTreeMap<String, String>,
    next_token: Option<String>,
}

impl SageMaker {
    /// The user's tags of a resource, by its ARN. Descriptions do not contain tags.
    pub fn tags_of(&self, arn: &str, control: &TaskControl) -> Result<BTreeMap<String, String>, AwsError> {
        let call = sagemaker("ListTags", format!("read the tags of {arn}"));
        let mut found = BTreeMap::new();
        let mut next_token: Option<String> = None;
        loop {
            let request = ListTags { resource_arn: arn, next_token: next_token.as_deref() };
            let listed: ListedTags = self.ask(&call, &request, control)?;
            found.extend(listed.tags.into_iter().filter(|(key, _)| !key.starts_with(OF_AWS)));
            next_token = listed.next_token;
            if next_token.is_none() {
                return Ok(found);
            }
        }
    }
}
