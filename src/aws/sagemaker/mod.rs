//! SageMaker for the rest of the program: models, transform jobs, endpoints, container logs, and what they share:
//! lists, tags and times.
//!
//! Requests and responses are structs in this module, named as in AWS; inputs and results are types of
//! `sagemaker::spec`. Tests compare both with AWS's own description of the service.

mod endpoints;
mod jobs;
mod logs;
mod models;
mod transform;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::control_plane::{Call, Service};
use super::credentials;
use super::error::{AwsError, AwsErrorKind};
use crate::domain::{Identity, ListPage, ListQuery, S3Address};
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::tasks::TaskControl;

pub use endpoints::{Invocation, MAX_INVOCATION_BYTES};
pub use models::create_model_request;
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

    /// Sends a request that creates a resource; returns its ARN.
    fn create(&self, call: &Call, request: &impl Serialize, control: Option<&TaskControl>) -> Result<String, AwsError> {
        let Created { arn } = self.ask(call, request, control)?;
        Ok(arn)
    }

    /// Sends a request whose response has no content.
    fn send_only(&self, call: &Call, request: &impl Serialize, control: Option<&TaskControl>) -> Result<(), AwsError> {
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
fn named<'n>(field: &'static str, name: &'n str) -> BTreeMap<&'static str, &'n str> {
    BTreeMap::from([(field, name)])
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

/// The largest page that SageMaker returns.
const PAGE: u32 = 100;

/// `ListTransformJobs`, `ListTrainingJobs` and `ListEndpoints`, newest first.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct List<'a, S> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name_contains: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_equals: Option<S>,
    sort_by: &'static str,
    sort_order: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<&'a str>,
    max_results: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed<T> {
    #[serde(alias = "TransformJobSummaries", alias = "TrainingJobSummaries", alias = "Endpoints")]
    items: Vec<T>,
    next_token: Option<String>,
}

impl SageMaker {
    /// A page of resources in the account and region, newest first. `A` is AWS's form of an item.
    pub fn list<S: Serialize + Copy, A: DeserializeOwned, T: From<A>>(
        &self,
        call: &Call,
        query: &ListQuery<S>,
        control: Option<&TaskControl>,
    ) -> Result<ListPage<T>, AwsError> {
        let request = List {
            name_contains: query.name_contains.as_deref(),
            status_equals: query.status,
            sort_by: "CreationTime",
            sort_order: "Descending",
            next_token: query.page_token.as_deref(),
            max_results: PAGE,
        };
        let listed: Listed<A> = self.ask(call, &request, control)?;
        Ok(ListPage { items: listed.items.into_iter().map(T::from).collect(), next: non_empty(listed.next_token) })
    }
}

/// The prefix of tags that only AWS can set.
const OF_AWS: &str = "aws:";

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Tag<'a> {
    key: &'a str,
    value: &'a str,
}

fn tags(tags: &BTreeMap<String, String>) -> Vec<Tag<'_>> {
    tags.iter().map(|(key, value)| Tag { key, value }).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ListTags<'a> {
    resource_arn: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedTags {
    #[serde(default)]
    tags: Vec<ListedTag>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedTag {
    key: String,
    value: String,
}

impl SageMaker {
    /// The user's tags of a resource, by its ARN. Descriptions do not contain tags.
    pub fn tags_of(&self, arn: &str, control: Option<&TaskControl>) -> Result<BTreeMap<String, String>, AwsError> {
        let call = sagemaker("ListTags", format!("read the tags of {arn}"));
        let mut found = BTreeMap::new();
        let mut next_token: Option<String> = None;
        loop {
            let request = ListTags { resource_arn: arn, next_token: next_token.as_deref() };
            let listed: ListedTags = self.ask(&call, &request, control)?;
            let own = listed.tags.into_iter();
            let own = own.filter(|tag| !tag.key.starts_with(OF_AWS));
            found.extend(own.map(|tag| (tag.key, tag.value)));
            next_token = non_empty(listed.next_token);
            if next_token.is_none() {
                return Ok(found);
            }
        }
    }
}
