//! Tags of SageMaker resources.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SageMaker, non_empty, sagemaker};
use crate::aws::AwsError;
use crate::tasks::TaskControl;

/// The prefix of tags that only AWS can set.
const OF_AWS: &str = "aws:";

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Tag<'a> {
    key: &'a str,
    value: &'a str,
}

pub(super) fn tags(tags: &BTreeMap<String, String>) -> Vec<Tag<'_>> {
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
    /// The tags of a resource by its ARN, without those of AWS itself. Descriptions do not contain tags.
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
