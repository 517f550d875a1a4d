//! S3 addresses and the access to them. Nothing here is secret, so all of it can be stored in settings and projects.

mod endpoint;
mod link;
mod setup;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use endpoint::{EndpointError, parse_endpoint, without_password};
pub use link::{S3Link, S3LinkError};
pub use setup::{AmbientSignIn, AwsProfile, AwsSetup, SignInMeans};

use super::SampleUri;

/// A bucket, or the keys in it that begin with a prefix.
///
/// The default has no bucket: an address that is not chosen yet. Settings store it as an empty string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct S3Address {
    pub bucket: String,
    /// The prefix as stored in S3, not percent-encoded. Empty for the whole bucket; `photos/` is a folder, `photos` can
    /// be an object.
    pub prefix: String,
}

impl S3Address {
    pub fn new(bucket: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), prefix: prefix.into() }
    }

    /// Parses an `s3://` address, an https URL of an object or folder, or a URL of the AWS console. The other parts of
    /// such a URL, a region or another server, are in [`S3Link`].
    pub fn parse(text: &str) -> Result<Self, S3LinkError> {
        Ok(S3Link::parse(text)?.address)
    }

    /// Whether it stands for all keys below a folder, or the whole bucket, rather than an object.
    pub fn is_folder(&self) -> bool {
        self.prefix.is_empty() || self.prefix.ends_with('/')
    }

    /// The same address with a trailing slash.
    pub fn as_folder(&self) -> Self {
        if self.is_folder() { self.clone() } else { Self::new(&self.bucket, format!("{}/", self.prefix)) }
    }

    /// `path` below this folder.
    pub fn below(&self, path: &str) -> Self {
        Self::new(&self.bucket, self.as_folder().prefix + path)
    }

    /// The parent folder; `None` for a whole bucket.
    pub fn parent(&self) -> Option<Self> {
        let inner = self.prefix.strip_suffix('/').unwrap_or(&self.prefix);
        if self.prefix.is_empty() {
            return None;
        }
        let end = inner.rfind('/').map_or(0, |slash| slash + 1);
        Some(Self::new(&self.bucket, &inner[..end]))
    }

    /// The object or folder at a path relative to this folder; `None` if the path is absolute or leaves the bucket.
    pub fn at(&self, path: &str) -> Option<Self> {
        if path.starts_with('/') {
            return None;
        }
        let folder = self.as_folder();
        let mut parts: Vec<&str> = folder.prefix.split_terminator('/').collect();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Some(Self::new(&self.bucket, parts.join("/")))
    }

    /// The last part: `2024` of `s3://bucket/photos/2024/`.
    pub fn last_part(&self) -> &str {
        let inner = self.prefix.strip_suffix('/').unwrap_or(&self.prefix);
        match inner.rsplit('/').next() {
            Some(last) if !last.is_empty() => last,
            _ => &self.bucket,
        }
    }

    /// The URI of an object in this bucket; `key` is the full key.
    pub fn uri_of(&self, key: &str) -> SampleUri {
        SampleUri::new(format!("s3://{}/{key}", self.bucket))
    }

    /// The full key of an object in this bucket; `None` if the URI is not one.
    pub fn key_of<'u>(&self, uri: &'u SampleUri) -> Option<&'u str> {
        let rest = uri.as_str().strip_prefix("s3://")?;
        let key = rest.strip_prefix(self.bucket.as_str())?.strip_prefix('/')?;
        (!key.is_empty()).then_some(key)
    }
}

/// `s3://bucket/prefix`, not percent-encoded, as [`S3Address::parse`] reads it.
impl std::fmt::Display for S3Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "s3://{}/{}", self.bucket, self.prefix)
    }
}

impl FromStr for S3Address {
    type Err = S3LinkError;

    fn from_str(text: &str) -> Result<Self, S3LinkError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for S3Address {
    type Error = S3LinkError;

    fn try_from(text: String) -> Result<Self, S3LinkError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        Self::parse(&text)
    }
}

impl From<S3Address> for String {
    fn from(address: S3Address) -> Self {
        if address == S3Address::default() {
            return Self::new();
        }
        address.to_string()
    }
}

/// Which credentials to use: only how to find them, never the credentials themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credentials {
    /// What the AWS tools would use here: the environment, then the profile in `AWS_PROFILE` or `default`.
    #[default]
    Ambient,
    /// This profile of the user's AWS configuration, never another one.
    Profile(String),
    /// No credentials, for public buckets.
    Anonymous,
}

/// “the default AWS credentials”, “profile work”, “anonymous”.
impl std::fmt::Display for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ambient => formatter.write_str("the default AWS credentials"),
            Self::Profile(name) => write!(formatter, "profile {name}"),
            Self::Anonymous => formatter.write_str("anonymous access"),
        }
    }
}

/// How to reach a server, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct S3Access {
    pub credentials: Credentials,
    /// `None`: the region of the bucket, which is queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// A server other than AWS: `http://127.0.0.1:8333`. `None` uses the user's AWS configuration, or AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Puts the bucket in the path instead of the host name. `None`: only for servers other than AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_style: Option<bool>,
    /// The reader pays instead of the bucket's owner (requester pays).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requester_pays: bool,
}

/// Which objects of a prefix are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum S3Layout {
    /// All objects that begin with the prefix.
    #[default]
    Flat,
    /// Only the objects in the folder itself, up to the next slash.
    Folder,
}

/// An S3 address and how to access it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct S3Place {
    pub address: S3Address,
    #[serde(default)]
    pub access: S3Access,
    #[serde(default)]
    pub layout: S3Layout,
}

impl S3Place {
    /// All objects that begin with the prefix, with the default credentials of the AWS tools.
    pub fn new(address: S3Address) -> Self {
        Self { address, access: S3Access::default(), layout: S3Layout::default() }
    }

    /// As [`S3Place::new`], with the region and server of the link.
    pub fn from_link(link: S3Link) -> Self {
        Self {
            access: S3Access { region: link.region, endpoint: link.endpoint, ..S3Access::default() },
            ..Self::new(link.address)
        }
    }

    /// The same place, fixed to the server that was used. If only the environment or the profile names it, they may
    /// name another one later.
    pub fn on_server(self, server: Option<&str>) -> Self {
        let endpoint = self.access.endpoint.or_else(|| server.map(str::to_owned));
        Self { access: S3Access { endpoint, ..self.access }, ..self }
    }

    /// The text that identifies this place for every user: buckets of the same name on different servers are different.
    pub fn identity(&self) -> String {
        match &self.access.endpoint {
            Some(endpoint) => format!("{} at {}", self.address, endpoint.trim_end_matches('/')),
            None => self.address.to_string(),
        }
    }
}

/// A file, or a folder and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    Path(PathBuf),
    S3(Box<S3Place>),
}

impl Location {
    /// `None` in S3.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::S3(_) => None,
        }
    }

    /// `None` on this computer.
    pub fn place(&self) -> Option<&S3Place> {
        match self {
            Self::Path(_) => None,
            Self::S3(place) => Some(place),
        }
    }

    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::S3(place) => place.address.to_string(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The AWS account number; `None` if AWS was not asked.
    pub account: Option<String>,
    pub arn: Option<String>,
    /// A short description: “alice”, “role Admin (alice@example.org)”, “anonymous”.
    pub who: String,
    /// The expiry of the credentials, in milliseconds since 1970-01-01 UTC; `None` if they do not expire.
    pub expires_ms: Option<i64>,
}

impl Identity {
    pub fn from_arn(account: &str, arn: &str, expires_ms: Option<i64>) -> Self {
        Self { account: Some(account.to_owned()), arn: Some(arn.to_owned()), who: name_of_arn(arn), expires_ms }
    }

    /// An identity that was not verified with AWS.
    pub fn unasked(who: impl Into<String>, expires_ms: Option<i64>) -> Self {
        Self { account: None, arn: None, who: who.into(), expires_ms }
    }
}

/// `arn:aws:iam::123456789012:user/team/alice` gives alice, `arn:aws:sts::123456789012:assumed-role/Admin/bob` gives
/// Admin as bob.
fn name_of_arn(arn: &str) -> String {
    let resource = arn.splitn(6, ':').nth(5).unwrap_or(arn);
    let mut parts = resource.split('/');
    match (parts.next(), parts.next(), parts.next_back()) {
        (Some("root"), ..) => "root of the account".to_owned(),
        (Some("user"), Some(name), None) | (Some("user"), Some(_), Some(name)) => name.to_owned(),
        (Some("assumed-role"), Some(role), Some(session)) => {
            format!("role {} ({session})", plain_role(role))
        }
        (Some("assumed-role"), Some(role), None) => format!("role {}", plain_role(role)),
        (Some("federated-user"), Some(name), _) => format!("federated user {name}"),
        _ => resource.to_owned(),
    }
}

/// The permission set of a role created by single sign-on: `AWSReservedSSO_Admin_0123456789abcdef` gives Admin.
fn plain_role(role: &str) -> &str {
    role.strip_prefix("AWSReservedSSO_").and_then(|rest| rest.rsplit_once('_')).map_or(role, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_round_trips() {
        for text in ["s3://bucket/", "s3://bucket/photos/", "s3://bucket/a b/100%/고양이+.jpg", "s3://bucket//leading"]
        {
            let address = S3Address::parse(text).unwrap();
            assert_eq!(address.to_string(), text);
            let json = serde_json::to_string(&address).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<S3Address>(&json).unwrap(), address);
        }
    }

    #[test]
    fn folders_have_parents() {
        let address = S3Address::parse("s3://bucket/a/b/c.jpg").unwrap();
        assert!(!address.is_folder());
        assert_eq!(address.last_part(), "c.jpg");
        let mut parents = Vec::new();
        let mut next = address.parent();
        while let Some(parent) = next {
            assert!(parent.is_folder());
            next = parent.parent();
            parents.push(parent.to_string());
        }
        assert_eq!(parents, ["s3://bucket/a/b/", "s3://bucket/a/", "s3://bucket/"]);
        assert_eq!(S3Address::new("bucket", "").last_part(), "bucket");
        assert_eq!(S3Address::new("bucket", "a/b/").last_part(), "b");
        assert_eq!(S3Address::new("bucket", "a").as_folder().prefix, "a/");
        let at = |path: &str| S3Address::new("bucket", "a/b/").at(path).map(|address| address.prefix);
        for (path, prefix) in [("./c/d", "a/b/c/d"), ("../c", "a/c"), (".", "a/b"), ("../..", "")] {
            assert_eq!(at(path).as_deref(), Some(prefix), "{path}");
        }
        assert_eq!((at("../../../c"), at("/a")), (None, None));
    }

    #[test]
    fn key_round_trips_within_its_bucket() {
        let address = S3Address::new("bucket", "photos/");
        let uri = address.uri_of("photos/a b%20.jpg");
        assert_eq!(uri.as_str(), "s3://bucket/photos/a b%20.jpg");
        assert_eq!(address.key_of(&uri), Some("photos/a b%20.jpg"));
        for other in ["s3://bucket2/a.jpg", "s3://bucket/", "/bucket/a.jpg"] {
            assert_eq!(address.key_of(&SampleUri::new(other)), None);
        }
    }

    #[test]
    fn location_keeps_its_access_and_reads_older_files() {
        let mut place = S3Place::new(S3Address::new("bucket", "photos/"));
        assert_eq!(serde_json::from_str::<S3Place>(r#"{"address":"s3://bucket/photos/"}"#).unwrap(), place);
        place.access = S3Access {
            credentials: Credentials::Profile("work".to_owned()),
            region: Some("eu-west-1".to_owned()),
            endpoint: Some("http://127.0.0.1:8333/".to_owned()),
            path_style: Some(false),
            requester_pays: true,
        };
        place.layout = S3Layout::Folder;
        let json = serde_json::to_string(&place).unwrap();
        assert_eq!(serde_json::from_str::<S3Place>(&json).unwrap(), place);
        assert_eq!(place.identity(), "s3://bucket/photos/ at http://127.0.0.1:8333");
        assert_eq!(place.clone().on_server(Some("http://other:1")), place);
        let ambient = S3Place::new(place.address);
        assert_eq!(ambient.clone().on_server(None), ambient);
        assert_eq!(ambient.on_server(Some("http://other:1")).identity(), "s3://bucket/photos/ at http://other:1");
    }

    #[test]
    fn identities_are_short() {
        for (arn, who) in [
            ("arn:aws:iam::123456789012:user/alice", "alice"),
            ("arn:aws:iam::123456789012:user/team/vision/alice", "alice"),
            ("arn:aws:iam::123456789012:root", "root of the account"),
            ("arn:aws:sts::123456789012:assumed-role/Admin/bob", "role Admin (bob)"),
            (
                "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Data_Read_0123456789abcdef/bob@example.org",
                "role Data_Read (bob@example.org)",
            ),
        ] {
            assert_eq!(Identity::from_arn("123456789012", arn, None).who, who);
        }
    }
}
