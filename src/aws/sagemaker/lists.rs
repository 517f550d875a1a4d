//! Pages of jobs and endpoints.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{SageMaker, non_empty};
use crate::aws::AwsError;
use crate::aws::control_plane::Call;
use crate::domain::{ListPage, ListQuery};
use crate::tasks::TaskControl;

/// The largest page that SageMaker returns.
const PAGE: u32 = 100;

/// `ListTransformJobs` and `ListEndpoints`, newest first.
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
    #[serde(alias = "TransformJobSummaries", alias = "Endpoints")]
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
