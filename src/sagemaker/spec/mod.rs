//! Plain data about jobs, endpoints and their outputs: specifications, plans, checks, progress.

pub mod endpoint;
pub mod members;
pub mod output_mapping;
pub mod remote_model;
pub mod training;
pub mod transform;

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use strsim::levenshtein;

use self::transform::{Leftover, LogLine};

/// The result of deleting several resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Includes resources that were already gone.
    pub deleted: Vec<Leftover>,
    /// The remaining resources, with the reasons.
    pub kept: Vec<(Leftover, String)>,
}

impl Deleted {
    /// “endpoint cats, configuration cats”
    pub fn deleted_text(&self) -> String {
        let deleted: Vec<String> = self.deleted.iter().map(ToString::to_string).collect();
        deleted.join(", ")
    }

    /// “model cats (it is in use), archive s3://… (…)”
    pub fn kept_text(&self) -> String {
        let kept: Vec<String> = self.kept.iter().map(|(what, why)| format!("{what} ({why})")).collect();
        kept.join(", ")
    }
}

/// “Deleted: endpoint cats, configuration cats. Left: model cats (…)”
impl fmt::Display for Deleted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.deleted.as_slice() {
            [] => formatter.write_str("Nothing was deleted")?,
            _ => write!(formatter, "Deleted: {}", self.deleted_text())?,
        }
        if self.kept.is_empty() { Ok(()) } else { write!(formatter, ". Left: {}", self.kept_text()) }
    }
}

/// The members whose empty values matter: the values of their members are the user's.
const USER_VALUES: [&str; 3] = ["Environment", "HyperParameters", "Tags"];

/// Removes unset members from a request or a response: AWS rejects nulls and empty lists, and returns empty texts.
#[must_use]
pub fn without_unset(value: Value) -> Value {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    let without_unset = |(name, value)| match value {
        value if USER_VALUES.contains(&String::as_str(&name)) => (name, value),
        value => (name, without_unset(value)),
    };
    match value {
        Value::Object(members) => members.into_iter().map(without_unset).filter(|(_, member)| is_set(member)).collect(),
        Value::Array(items) => items.into_iter().map(self::without_unset).collect(),
        value => value,
    }
}

/// A time in milliseconds since 1970-01-01 UTC, which AWS writes in fractional seconds.
fn time_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok((f64::deserialize(deserializer)? * 1e3).round() as i64)
}

fn some_time_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    time_ms(deserializer).map(Some)
}

/// Tags in AWS's form: `[{"Key": "team", "Value": "vision"}]`.
pub mod tags {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Tag {
        key: String,
        value: String,
    }

    pub fn serialize<S: Serializer>(tags: &BTreeMap<String, String>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(tags.iter().map(|(key, value)| Tag { key: key.clone(), value: value.clone() }))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
        let tags = Vec::<Tag>::deserialize(deserializer)?;
        Ok(tags.into_iter().map(|tag| (tag.key, tag.value)).collect())
    }
}

/// The output of one container, or SageMaker's messages about one job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LogStream {
    /// `cats/i-0123456789abcdef0-1700000000`
    #[serde(rename = "logStreamName")]
    pub name: String,
    /// `None` while empty.
    #[serde(rename = "lastEventTimestamp")]
    pub last_event_ms: Option<i64>,
}

/// Where to start reading a log stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFrom {
    Beginning,
    /// At most this many of the newest lines, `1..=10000`.
    Newest(u32),
    /// The lines after the page with this [`LogPage::next`].
    After(String),
}

/// A part of a stream, oldest line first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LogPage {
    pub events: Vec<LogLine>,
    /// The token of the next page. If it equals the request's token, there is nothing new yet.
    #[serde(rename = "nextForwardToken")]
    pub next: String,
}

/// The regions of botocore 1.44.5, by partition and name; a test compares them. AWS adds new ones, so unknown regions
/// are not rejected.
pub const AWS_REGIONS: [&str; 48] = [
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "me-west-1",
    "mx-central-1",
    "sa-east-1",
    "sa-west-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
    "cn-north-1",
    "cn-northwest-1",
    "eusc-de-east-1",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "eu-isoe-west-1",
    "us-isof-east-1",
    "us-isof-south-1",
];

/// What is wrong with a region name, as a sentence without its period.
pub fn region_problem(region: &str) -> Option<String> {
    let is_word = |part: &&str| part.len() >= 2 && part.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = region.rsplit_once('-').is_some_and(|(words, number)| {
        is_number(number) && words.contains('-') && words.split('-').all(|word| is_word(&word))
    });
    (!fits).then(|| format!("“{region}” is not an AWS region; a region looks like eu-west-1"))
}

/// A warning about a name that looks like a region but is unknown to this version; `None` for known ones.
pub fn region_doubt(region: &str) -> Option<String> {
    if AWS_REGIONS.contains(&region) {
        return None;
    }
    let likely = AWS_REGIONS.iter().map(|known| (levenshtein(region, known), *known));
    let likely = likely.min().filter(|(count, _)| *count <= 2);
    let meant = likely.map_or_else(String::new, |(_, known)| format!("; did you mean {known}?"));
    Some(format!("this version of Spotcheck does not know the region {region}{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_regions_are_well_formed() {
        for region in AWS_REGIONS {
            assert_eq!(region_problem(region), None, "{region}");
            assert_eq!(region_doubt(region), None, "{region}");
        }
        for word in ["", "Ireland", "eu-west", "eu-west-1a", "EU-WEST-1", "eu west 1", "west-1", "--1"] {
            let problem = region_problem(word).unwrap();
            assert!(problem.contains("eu-west-1"), "{word}: {problem}");
        }
    }

    #[test]
    fn misspelled_region_suggests_the_closest() {
        let doubt = |region| region_doubt(region).unwrap();
        assert!(doubt("us-esat-1").ends_with("; did you mean us-east-1?"));
        assert!(doubt("eu-wst-2").ends_with("; did you mean eu-west-2?"));
        assert!(doubt("antarctica-south-1").ends_with("the region antarctica-south-1"));
    }
}
