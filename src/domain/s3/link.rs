//! The many notations for S3 locations: `s3://`, ARNs, https URLs of objects, URLs of the AWS console.

use percent_encoding::percent_decode_str;

use super::S3Address;

/// An address, and the other parts of its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Link {
    pub address: S3Address,
    pub region: Option<String>,
    /// The server, if it is not AWS: `https://minio.example.org:9000`.
    pub endpoint: Option<String>,
}

/// Why a text is not an S3 location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum S3LinkError {
    #[error(
        "“{0}” is not an S3 address; write s3://bucket/folder/, or paste the URL of an object or of the AWS console"
    )]
    NotALink(String),
    #[error("“{text}” has only one slash after `s3:`; write s3:/{rest}")]
    OneSlash { text: String, rest: String },
    #[error("“{0}” is not in S3; specify a folder, a file or s3://bucket/folder/")]
    OtherService(String),
    #[error("“{0}” contains no bucket name; write s3://bucket/folder/")]
    NoBucket(String),
    #[error("“{0}” is not a valid bucket name; a name has 3 to 255 letters, digits, dots, hyphens and underscores")]
    BadBucket(String),
    #[error("access points are opened by their alias, as in s3://my-point-1a2b3c-s3alias/folder/, not by their ARN")]
    AccessPoint,
    #[error("“{0}” is not percent-encoded UTF-8; copy the URL again")]
    BadEncoding(String),
}

/// How a path encodes a space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spaces {
    /// Only `%20`; a plus is a plus.
    Encoded,
    /// `%20` or a plus, as in forms and in the object URLs that AWS writes and reads.
    Plus,
}

impl S3Link {
    /// Whether a text looks like an address rather than a local path.
    pub fn is_address(text: &str) -> bool {
        let begins_with = |start: &str| {
            let found = text.trim_start().get(..start.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(start))
        };
        ["s3:/", "s3a://", "s3n://", "gs://", "http://", "https://", "arn:"].into_iter().any(begins_with)
    }

    /// Parses whatever people copy: `s3://bucket/prefix` (not percent-encoded), `arn:aws:s3:::bucket/prefix`, https
    /// URLs of objects in either style, including those of other servers, and URLs of the AWS console. A signature or
    /// version in a URL is dropped.
    pub fn parse(text: &str) -> Result<Self, S3LinkError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once(':').unwrap_or_default();
        match (scheme.to_ascii_lowercase().as_str(), rest) {
            ("s3" | "s3a" | "s3n", rest) if rest.starts_with("//") => plain(text, &rest[2..]),
            ("s3", rest) if rest.starts_with('/') => {
                Err(S3LinkError::OneSlash { text: text.to_owned(), rest: rest.to_owned() })
            }
            ("gs", rest) if rest.starts_with("//") => Err(S3LinkError::OtherService(text.to_owned())),
            ("arn", _) => arn(text),
            ("http" | "https", rest) if rest.starts_with("//") => url(text, &scheme.to_ascii_lowercase(), &rest[2..]),
            _ => Err(S3LinkError::NotALink(without_query(text).to_owned())),
        }
    }
}

/// `bucket/prefix`, not encoded.
fn plain(text: &str, rest: &str) -> Result<S3Link, S3LinkError> {
    if rest.starts_with("arn:") {
        return Err(S3LinkError::AccessPoint);
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    link(text, bucket.to_owned(), prefix.to_owned(), None, None)
}

/// `arn:partition:s3:::bucket/prefix`.
fn arn(text: &str) -> Result<S3Link, S3LinkError> {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    match parts[..] {
        ["arn", _, "s3", "", "", resource] => plain(text, resource),
        ["arn", _, "s3" | "s3-object-lambda", _, _, resource] if resource.starts_with("accesspoint") => {
            Err(S3LinkError::AccessPoint)
        }
        _ => Err(S3LinkError::NotALink(without_query(text).to_owned())),
    }
}

fn url(text: &str, scheme: &str, rest: &str) -> Result<S3Link, S3LinkError> {
    let rest = rest.split('#').next().unwrap_or_default();
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = location.split_once('/').unwrap_or((location, ""));
    // User names and passwords must not be stored.
    let server = authority.rsplit('@').next().unwrap_or_default();
    let host = host_of(server).to_ascii_lowercase();
    if host.is_empty() {
        return Err(S3LinkError::NotALink(without_query(text).to_owned()));
    }
    if let Some(console) = console_host(&host) {
        return console_url(text, console, path, query);
    }
    let Some(service) = aws_service(&host) else {
        let (bucket, prefix) = split_path(text, path, Spaces::Encoded)?;
        let endpoint = Some(format!("{scheme}://{server}"));
        return link(text, bucket, prefix, None, endpoint);
    };
    let region = service.region;
    let (bucket, prefix) = match service.bucket {
        Some(bucket) => (bucket, decode(text, path, Spaces::Plus)?),
        None => split_path(text, path, Spaces::Plus)?,
    };
    link(text, bucket, prefix, region, None)
}

fn host_of(server: &str) -> &str {
    // `[::1]:9000` contains colons of its own.
    match server.split_once(']') {
        Some((host, _)) => host.trim_start_matches('['),
        None => server.split(':').next().unwrap_or_default(),
    }
}

/// The bucket and region in a host name of S3 itself.
struct AwsService {
    bucket: Option<String>,
    region: Option<String>,
}

/// `bucket.s3.region.amazonaws.com`, `s3.region.amazonaws.com`, and AWS's older and special forms: `s3-region`,
/// `s3.dualstack.region`, `s3-fips.region`, `s3-accelerate`, `s3-website-region`. `None` for hosts other than AWS's S3.
fn aws_service(host: &str) -> Option<AwsService> {
    let inner = host
        .strip_suffix(".amazonaws.com")
        .or_else(|| host.strip_suffix(".amazonaws.com.cn"))
        .or_else(|| host.strip_suffix(".amazonaws.eu"))?;
    let labels: Vec<&str> = inner.split('.').collect();
    // From the right, because a bucket name can contain dots and look like anything.
    let service = labels.iter().rposition(|label| is_service(label))?;
    let region = labels[service + 1..]
        .iter()
        .find(|label| **label != "dualstack")
        .copied()
        .or_else(|| region_in(labels[service]));
    Some(AwsService { bucket: (service > 0).then(|| labels[..service].join(".")), region: region.map(str::to_owned) })
}

fn is_service(label: &str) -> bool {
    matches!(label, "s3" | "s3-fips" | "s3-accelerate" | "s3-website" | "s3-external-1") || region_in(label).is_some()
}

/// The region of `s3-eu-west-1` and `s3-website-eu-west-1`.
fn region_in(label: &str) -> Option<&str> {
    let region = label.strip_prefix("s3-")?;
    let region = region.strip_prefix("website-").unwrap_or(region);
    looks_like_region(region).then_some(region)
}

/// `eu-west-1`, `us-gov-east-1`.
fn looks_like_region(text: &str) -> bool {
    let mut parts = text.split('-');
    let area = parts.next().unwrap_or_default();
    let number = parts.next_back().unwrap_or_default();
    (2..=4).contains(&area.len())
        && parts.next().is_some()
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// What precedes `console.aws.amazon.com` or its counterparts in other partitions.
fn console_host(host: &str) -> Option<&str> {
    ["console.aws.amazon.com", "console.amazonaws.cn", "console.amazonaws-us-gov.com"]
        .iter()
        .find_map(|console| host.strip_suffix(console))
        .map(|before| before.trim_end_matches('.'))
}

/// `/s3/buckets/NAME?region=R&prefix=P` and `/s3/object/NAME?region=R&prefix=KEY`; older ones have the prefix in the
/// path.
fn console_url(text: &str, subdomain: &str, path: &str, query: &str) -> Result<S3Link, S3LinkError> {
    let not_a_link = || S3LinkError::NotALink(without_query(text).to_owned());
    let path = path.strip_prefix("s3/").ok_or_else(not_a_link)?;
    let (page, rest) = path.split_once('/').unwrap_or((path, ""));
    if !matches!(page, "buckets" | "object") {
        return Err(not_a_link());
    }
    let (bucket, in_path) = split_path(text, rest, Spaces::Plus)?;
    let parameter = |name: &str| {
        let found = query.split('&').find_map(|pair| {
            let (found, value) = pair.split_once('=')?;
            (found == name).then_some(value)
        });
        found.map(|value| decode(text, value, Spaces::Plus)).transpose()
    };
    let prefix = parameter("prefix")?.unwrap_or(in_path);
    let region = parameter("region")?
        .filter(|region| looks_like_region(region))
        .or_else(|| looks_like_region(subdomain).then(|| subdomain.to_owned()));
    link(text, bucket, prefix, region, None)
}

/// An encoded `bucket/prefix`.
fn split_path(text: &str, path: &str, spaces: Spaces) -> Result<(String, String), S3LinkError> {
    let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
    Ok((decode(text, bucket, Spaces::Encoded)?, decode(text, prefix, spaces)?))
}

fn decode(text: &str, encoded: &str, spaces: Spaces) -> Result<String, S3LinkError> {
    let encoded = match spaces {
        Spaces::Plus => encoded.replace('+', " "),
        Spaces::Encoded => encoded.to_owned(),
    };
    percent_decode_str(&encoded)
        .decode_utf8()
        .map(String::from)
        .map_err(|_| S3LinkError::BadEncoding(without_query(text).to_owned()))
}

/// A query can contain a signature, which must not appear in a message.
fn without_query(text: &str) -> &str {
    text.split('?').next().unwrap_or(text)
}

fn link(
    text: &str,
    bucket: String,
    prefix: String,
    region: Option<String>,
    endpoint: Option<String>,
) -> Result<S3Link, S3LinkError> {
    if bucket.is_empty() {
        return Err(S3LinkError::NoBucket(without_query(text).to_owned()));
    }
    let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    // Longer and laxer than AWS allows today: old buckets and other servers have such names.
    if !(3..=255).contains(&bucket.len()) || !bucket.chars().all(may_be) {
        return Err(S3LinkError::BadBucket(bucket));
    }
    Ok(S3Link { address: S3Address { bucket, prefix }, region, endpoint })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>, Option<String>) {
        let link = S3Link::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (link.address.to_string(), link.region, link.endpoint)
    }

    fn on_aws(address: &str, region: Option<&str>) -> (String, Option<String>, Option<String>) {
        (address.to_owned(), region.map(str::to_owned), None)
    }

    #[test]
    fn s3_addresses_are_unchanged() {
        for (text, address) in [
            ("s3://bucket", "s3://bucket/"),
            (" s3://bucket/a b/c%20+.jpg\n", "s3://bucket/a b/c%20+.jpg"),
            ("S3://bucket/a?b#c", "s3://bucket/a?b#c"),
            ("s3a://my.bucket_1/a/", "s3://my.bucket_1/a/"),
            ("arn:aws:s3:::bucket/a:b/", "s3://bucket/a:b/"),
            ("arn:aws-cn:s3:::bucket", "s3://bucket/"),
        ] {
            assert_eq!(parsed(text), on_aws(address, None), "{text}");
            assert!(S3Link::is_address(text));
        }
    }

    #[test]
    fn object_urls_are_decoded_with_their_region() {
        for (text, address, region) in [
            (
                "https://bucket.s3.eu-west-1.amazonaws.com/a%20b/c+d%2B%25.jpg?versionId=1",
                "s3://bucket/a b/c d+%.jpg",
                Some("eu-west-1"),
            ),
            ("https://my.s3.bucket.s3.amazonaws.com/x", "s3://my.s3.bucket/x", None),
            ("https://s3.eu-central-1.amazonaws.com/bucket/photos/", "s3://bucket/photos/", Some("eu-central-1")),
            ("https://s3-us-west-2.amazonaws.com/bucket", "s3://bucket/", Some("us-west-2")),
            ("https://bucket.s3-us-gov-west-1.amazonaws.com/x", "s3://bucket/x", Some("us-gov-west-1")),
            ("https://bucket.s3.dualstack.us-east-2.amazonaws.com/x", "s3://bucket/x", Some("us-east-2")),
            ("https://bucket.s3.cn-north-1.amazonaws.com.cn/%EA%B3%A0.jpg", "s3://bucket/고.jpg", Some("cn-north-1")),
            ("http://bucket.s3-website-us-east-1.amazonaws.com/index", "s3://bucket/index", Some("us-east-1")),
            ("https://bucket.s3-accelerate.amazonaws.com/x", "s3://bucket/x", None),
        ] {
            assert_eq!(parsed(text), on_aws(address, region), "{text}");
        }
    }

    #[test]
    fn console_urls_are_parsed() {
        for (text, address, region) in [
            (
                "https://s3.console.aws.amazon.com/s3/buckets/bucket?region=eu-west-1&prefix=photos/my+cats%2B/&showversions=false",
                "s3://bucket/photos/my cats+/",
                Some("eu-west-1"),
            ),
            (
                "https://eu-west-2.console.aws.amazon.com/s3/object/bucket?prefix=a/b.jpg&bucketType=general",
                "s3://bucket/a/b.jpg",
                Some("eu-west-2"),
            ),
            (
                "https://console.aws.amazon.com/s3/buckets/bucket/photos/2024/?region=us-east-1&tab=overview",
                "s3://bucket/photos/2024/",
                Some("us-east-1"),
            ),
            ("https://console.amazonaws.cn/s3/buckets/bucket?region=cn-north-1", "s3://bucket/", Some("cn-north-1")),
        ] {
            assert_eq!(parsed(text), on_aws(address, region), "{text}");
        }
    }

    #[test]
    fn other_servers_are_endpoints() {
        for (text, address, endpoint) in [
            ("http://127.0.0.1:8333/bucket/a%20b+c/", "s3://bucket/a b+c/", "http://127.0.0.1:8333"),
            ("https://user:secret@minio.example.org/bucket", "s3://bucket/", "https://minio.example.org"),
            ("http://[::1]:9000/bucket/x", "s3://bucket/x", "http://[::1]:9000"),
        ] {
            let expected = (address.to_owned(), None, Some(endpoint.to_owned()));
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn paths_are_not_addresses() {
        for text in ["photos", "/photos/s3://x", "s3", "s3:bucket", "C:\\photos", "고양이", ""] {
            assert!(!S3Link::is_address(text), "{text}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_advice() {
        for text in [
            "",
            "photos",
            "/photos",
            "s3:bucket",
            "s3://",
            "s3:///photos",
            "s3://a b/c",
            "s3://b",
            "https://",
            "https://s3.eu-west-1.amazonaws.com/",
            "https://bucket.s3.amazonaws.com/%FF",
            "https://console.aws.amazon.com/ec2/home",
            "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/point/x",
            "arn:aws:s3:eu-west-1:123456789012:accesspoint/point",
            "C:\\photos",
        ] {
            let error = S3Link::parse(text).unwrap_err().to_string();
            assert!(!error.is_empty(), "{text}");
        }
        for (text, advice) in [("s3:/bucket/x", "write s3://bucket/x"), ("gs://bucket/x", "is not in S3")] {
            assert!(S3Link::is_address(text), "{text}");
            let error = S3Link::parse(text).unwrap_err().to_string();
            assert!(error.contains(advice), "{error}");
        }
        let signed = "https://bucket.s3.amazonaws.com/%FF?X-Amz-Signature=secret";
        let error = S3Link::parse(signed).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
