//! SageMaker for the rest of the program: models, transform jobs, endpoints, container logs, and what they share:
//! lists, tags and times.
//!
//! Inputs and results are types of `sagemaker::spec`, in AWS's form or with a table of where AWS has their members.
//! Tests compare all requests and responses with AWS's own description of the service.

mod endpoints;
mod jobs;
mod logs;
mod models;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::connection::Connection;
use super::control_plane::{Call, Service};
use super::error::{AwsError, AwsErrorKind, if_there};
use crate::domain::{Identity, ListPage, ListQuery};
use crate::sagemaker::spec::tags;
use crate::sagemaker::spec::transform::{JobKind, SageMakerAccess};
use crate::tasks::TaskControl;

pub use endpoints::MAX_INVOCATION_BYTES;

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

    /// Sends a request that creates a resource; `verb` is the word for this.
    fn create(
        &self,
        (verb, kind, name): (&str, ResourceKind, &str),
        request: &impl Serialize,
        control: &TaskControl,
    ) -> Result<(), AwsError> {
        let ResourceKind { aws, noun } = kind;
        let _: IgnoredAny =
            self.ask(&sagemaker(format!("Create{aws}"), format!("{verb} {noun} {name}")), request, control)?;
        Ok(())
    }

    /// Sends a request that consists of a resource's name, for example `DescribeModel`.
    fn request<A: DeserializeOwned>(
        &self,
        operation: &str,
        ResourceKind { aws, noun }: ResourceKind,
        name: &str,
        control: &TaskControl,
    ) -> Result<A, AwsError> {
        let call = sagemaker(format!("{operation}{aws}"), format!("{} {noun} {name}", operation.to_lowercase()));
        self.ask(&call, &BTreeMap::from([(format!("{aws}Name"), name)]), control)
    }

    /// The description of a resource; `None` if it does not exist, or no longer.
    fn describe<A: DeserializeOwned>(
        &self,
        kind: ResourceKind,
        name: &str,
        control: &TaskControl,
    ) -> Result<Option<A>, AwsError> {
        if_there(self.request("Describe", kind, name, control))
    }

    /// Deletes a resource. Others that it uses stay.
    pub fn delete(&self, kind: ResourceKind, name: &str, control: &TaskControl) -> Result<(), AwsError> {
        let _: IgnoredAny = self.request("Delete", kind, name, control)?;
        Ok(())
    }
}

/// A kind of resource: its name in AWS's operations, and in messages.
#[derive(Debug, Clone, Copy)]
pub struct ResourceKind {
    aws: &'static str,
    noun: &'static str,
}

impl ResourceKind {
    pub const MODEL: Self = Self { aws: "Model", noun: "model" };
    pub const ENDPOINT: Self = Self { aws: "Endpoint", noun: "endpoint" };
    pub const ENDPOINT_CONFIG: Self = Self { aws: "EndpointConfig", noun: "endpoint configuration" };

    /// An error for a resource that SageMaker supports and this program does not.
    fn unsupported(self, name: &str, what: &str) -> AwsError {
        AwsError::new(
            AwsErrorKind::Unsupported,
            format!(
                "Could not describe {} {name}: {what}, which Spotcheck does not support; see the AWS console",
                self.noun
            ),
        )
    }
}

impl From<JobKind> for ResourceKind {
    fn from(kind: JobKind) -> Self {
        let aws = match kind {
            JobKind::Transform => "TransformJob",
            JobKind::Training => "TrainingJob",
        };
        Self { aws, noun: kind.noun() }
    }
}

fn sagemaker(operation: impl Into<String>, what: impl Into<String>) -> Call {
    Call { service: Service::SageMaker, operation: operation.into(), what: what.into() }
}

/// The largest page that SageMaker returns.
const PAGE: u32 = 100;

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
    fn list<S: Serialize, T: DeserializeOwned>(
        &self,
        call: &Call,
        query: &ListQuery<S>,
        control: &TaskControl,
    ) -> Result<ListPage<T>, AwsError> {
        let request = json!({
            "NameContains": query.name_contains,
            "StatusEquals": query.status,
            "SortBy": "CreationTime",
            "SortOrder": "Descending",
            "NextToken": query.page_token,
            "MaxResults": PAGE,
        });
        let Listed { items, next_token } = self.ask(call, &request, control)?;
        Ok(ListPage { items, next: next_token })
    }
}

/// The prefix of tags that only AWS can set.
const OF_AWS: &str = "aws:";

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
            let request = json!({"ResourceArn": arn, "NextToken": next_token});
            let listed: ListedTags = self.ask(&call, &request, control)?;
            found.extend(listed.tags.into_iter().filter(|(key, _)| !key.starts_with(OF_AWS)));
            next_token = listed.next_token;
            if next_token.is_none() {
                return Ok(found);
            }
        }
    }
}
