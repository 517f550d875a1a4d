//! AWS errors for people: what happened, why, and what to do.

mod calls;

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;

use crate::domain::{Credentials, S3Address, parse_endpoint};

const CHANGED: &str = "the object changed since it was listed; list the images again";

/// An AWS error. The message is complete, states what to do, and contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AwsError {
    pub kind: AwsErrorKind,
    pub message: String,
}

/// The response, or `None` if the object or resource does not exist.
pub fn if_there<T>(response: Result<T, AwsError>) -> Result<Option<T>, AwsError> {
    match response {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind == AwsErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AwsErrorKind {
    /// The task was canceled. Not a failure.
    Cancelled,
    NoCredentials,
    /// A sign-in or a session has expired.
    ExpiredCredentials,
    /// The server does not know the key, or the secret does not match.
    BadCredentials,
    /// The profile does not exist, or is invalid.
    Profile,
    AccessDenied,
    NoSuchBucket,
    /// The object or resource does not exist.
    NotFound,
    /// The object has changed, or exists where none was expected.
    Changed,
    /// The server does not support this.
    Unsupported,
    /// The requested range is past the end of the object.
    BehindEnd,
    /// The object must be restored from an archive before it can be read.
    Archived,
    WrongRegion,
    /// The host name of the server is unknown.
    Dns,
    /// No server responds, or none that can be trusted.
    Unreachable,
    /// The server is not S3 or the requested service: a wrong endpoint URL, or a proxy.
    NotS3,
    NoRegion,
    /// The request is invalid: a name, a number or a combination.
    Invalid,
    Limit,
    /// The resource is in use, or its name is taken.
    InUse,
    /// The model behind an endpoint failed.
    Model,
    ClockSkew,
    /// The server is overloaded.
    Throttled,
    Timeout,
    /// The connection was interrupted repeatedly.
    Cut,
    Server,
    /// A local problem: an unreadable file, no threads.
    Local,
    Other,
}

impl AwsErrorKind {
    /// Whether every other request would fail in the same way until the user acts.
    pub fn concerns_everything(self) -> bool {
        matches!(
            self,
            Self::NoCredentials
                | Self::ExpiredCredentials
                | Self::BadCredentials
                | Self::Profile
                | Self::NoSuchBucket
                | Self::WrongRegion
                | Self::Dns
                | Self::Unreachable
                | Self::NotS3
                | Self::ClockSkew
                | Self::Local
        )
    }

    /// Whether the error may go away by itself: a lost network, an overloaded server.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Dns | Self::Unreachable | Self::Timeout | Self::Cut | Self::Throttled | Self::Server)
    }

    /// Whether the server responds to no request, or to none with these credentials.
    pub fn is_outage(self) -> bool {
        let is_of_bucket = matches!(self, Self::NoSuchBucket | Self::WrongRegion | Self::Local);
        self.is_transient() || (self.concerns_everything() && !is_of_bucket)
    }

    /// Whether the server may have carried out the request although its response was lost.
    pub fn is_in_doubt(self) -> bool {
        matches!(self, Self::Cancelled | Self::Timeout | Self::Cut | Self::Server | Self::Unreachable)
    }
}

/// An operation of S3 or another service, for messages and errors.
#[derive(Debug, Clone, Copy)]
pub enum Operation<'a> {
    List {
        bucket: &'a str,
        prefix: &'a str,
    },
    Read {
        bucket: &'a str,
        key: &'a str,
    },
    Write {
        bucket: &'a str,
        key: &'a str,
    },
    Delete {
        bucket: &'a str,
        key: &'a str,
    },
    /// Lists the parts of an unfinished upload.
    Parts {
        bucket: &'a str,
        key: &'a str,
    },
    /// Aborts an unfinished upload.
    Abort {
        bucket: &'a str,
        key: &'a str,
    },
    Buckets,
    Identity,
    /// An operation of a service other than S3.
    Call {
        /// `SageMaker`
        service: &'static str,
        /// The part before the colon of a permission: `sagemaker`.
        namespace: &'a str,
        /// `CreateTransformJob`
        operation: &'a str,
        /// “start job cats”
        what: &'a str,
    },
}

/// The credentials, server and region of an operation.
#[derive(Debug, Clone)]
pub struct Caller {
    pub credentials: Credentials,
    /// The server, if it is not AWS.
    pub endpoint: Option<String>,
    pub region: String,
    /// The command that renews an interactive sign-in.
    pub renewal: Option<String>,
}

impl AwsError {
    pub fn new(kind: AwsErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub fn changed(operation: &Operation<'_>) -> Self {
        let message = format!("Could not {operation}: {CHANGED}");
        Self::new(AwsErrorKind::Changed, message)
    }

    pub fn cancelled() -> Self {
        Self::new(AwsErrorKind::Cancelled, "Canceled")
    }

    /// The error of a request after all retries.
    pub fn from_sdk<E>(error: &SdkError<E, HttpResponse>, operation: &Operation<'_>, caller: &Caller) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        if let Some(error) = find::<CredentialsError>(error) {
            return Self::from_credentials(error, operation, caller);
        }
        if let Some((url, why)) = caller.endpoint.as_ref().and_then(|url| Some((url, parse_endpoint(url).err()?))) {
            return Self::new(
                AwsErrorKind::NotS3,
                format!(
                    "Could not {operation}: the endpoint URL “{url}” of your AWS configuration is not valid: {why}"
                ),
            );
        }
        match error {
            SdkError::ServiceError(failed) => {
                let status = failed.raw().status().as_u16();
                let body = failed.raw().body().bytes().unwrap_or_default();
                // S3 always sends an error code; a web page comes from a proxy in between.
                if failed.err().code().is_none() && !body.is_empty() && status != 407 {
                    return not_s3(status, operation, caller);
                }
                let response = Response {
                    status,
                    code: failed.err().code(),
                    message: failed.err().message(),
                    date: failed.raw().headers().get("date"),
                };
                response_error(&response, operation, caller)
            }
            SdkError::ResponseError(failed) => {
                let status = failed.raw().status().as_u16();
                not_s3(status, operation, caller)
            }
            SdkError::TimeoutError(_) => timeout(operation, caller),
            SdkError::DispatchFailure(failure) if failure.is_timeout() => timeout(operation, caller),
            SdkError::ConstructionFailure(_) => Self::new(
                AwsErrorKind::Other,
                format!("Could not {operation}: {}; check the endpoint URL and the region", causes_text(error)),
            ),
            _ => connection_error(&causes_text(error), operation, caller),
        }
    }

    /// The error of credentials that could not be obtained.
    pub fn from_credentials(error: &CredentialsError, operation: &Operation<'_>, caller: &Caller) -> Self {
        let text = chain_text(error);
        let whose = &caller.credentials;
        if text.contains("SSO token") || text.contains("UnauthorizedException") {
            return expired_sign_in(caller);
        }
        match error {
            CredentialsError::CredentialsNotLoaded(_) => Self::new(
                AwsErrorKind::NoCredentials,
                match (whose, chosen_profile()) {
                    (Credentials::Profile(name), _) => format!(
                        "Profile {name} of the AWS configuration has no credentials ({text}); add them with `aws \
                        configure --profile {name}`"
                    ),
                    (_, Some(name)) => format!(
                        "No AWS credentials found in the environment or in profile {name} (from AWS_PROFILE); correct \
                        it, choose another profile, or run `aws configure --profile {name}`"
                    ),
                    (_, None) => {
                        let ways_out = match operation {
                            // AWS does not allow these operations anonymously.
                            Operation::Call { .. } | Operation::Identity => {
                                "choose a profile, or create one with `aws configure`"
                            }
                            _ => {
                                "choose a profile, create one with `aws configure`, or read a public bucket anonymously"
                            }
                        };
                        format!("No AWS credentials found in the environment or in the AWS configuration; {ways_out}")
                    }
                },
            ),
            CredentialsError::ProviderTimedOut(_) => Self::new(
                AwsErrorKind::Timeout,
                format!("Timed out getting credentials for {whose}; try again, or check the credential provider"),
            ),
            CredentialsError::InvalidConfiguration(_) => Self::new(
                AwsErrorKind::Profile,
                format!("Could not use the AWS configuration of {whose}: {text}; correct it in ~/.aws/config"),
            ),
            _ => Self::new(AwsErrorKind::NoCredentials, format!("Could not get credentials for {whose}: {text}")),
        }
    }

    /// The error of a download that was interrupted too often.
    pub fn cut(error: &(dyn Error + 'static), operation: &Operation<'_>, caller: &Caller) -> Self {
        let text = chain_text(error);
        let kind = if text.contains("minimum throughput") || text.contains("throughput was") {
            AwsErrorKind::Timeout
        } else {
            AwsErrorKind::Cut
        };
        Self::new(
            kind,
            format!(
                "Could not {operation}: the connection to {server} kept dropping ({text}); check your network, then \
                 try again",
                server = caller.server()
            ),
        )
    }
}

impl Caller {
    /// “AWS”, or the address of another server.
    pub fn server(&self) -> &str {
        self.endpoint.as_deref().unwrap_or("AWS")
    }
}

/// “list `s3://bucket/photos/`”.
impl std::fmt::Display for Operation<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Buckets => formatter.write_str("list the buckets"),
            Self::Identity => formatter.write_str("get the signed-in identity from AWS"),
            Self::Call { what, .. } => formatter.write_str(what),
            _ => {
                let OnObjects { verb, bucket, key, .. } = self.on_objects();
                write!(formatter, "{verb} {}", S3Address::new(bucket, key))
            }
        }
    }
}

/// An operation on an object, or on the keys below a prefix.
#[derive(Default)]
struct OnObjects<'a> {
    verb: &'static str,
    permission: &'static str,
    bucket: &'a str,
    key: &'a str,
}

impl<'a> Operation<'a> {
    /// Empty for other operations.
    fn on_objects(&self) -> OnObjects<'a> {
        let (verb, permission, bucket, key) = match *self {
            Self::List { bucket, prefix } => ("list", "ListBucket", bucket, prefix),
            Self::Read { bucket, key } => ("read", "GetObject", bucket, key),
            Self::Write { bucket, key } => ("write", "PutObject", bucket, key),
            Self::Delete { bucket, key } => ("delete", "DeleteObject", bucket, key),
            Self::Parts { bucket, key } => ("list the uploaded parts of", "ListMultipartUploadParts", bucket, key),
            Self::Abort { bucket, key } => ("abort the unfinished upload of", "AbortMultipartUpload", bucket, key),
            Self::Buckets | Self::Identity | Self::Call { .. } => return OnObjects::default(),
        };
        OnObjects { verb, permission, bucket, key }
    }

    /// The permission that the caller needs, and the resource.
    fn permission(&self) -> String {
        let OnObjects { permission, bucket, key, .. } = self.on_objects();
        match *self {
            Self::List { .. } => format!("s3:{permission} on the bucket {bucket}"),
            Self::Buckets => "s3:ListAllMyBuckets".to_owned(),
            Self::Identity => "sts:GetCallerIdentity".to_owned(),
            Self::Call { namespace, operation, .. } => format!("{namespace}:{operation}"),
            _ => format!("s3:{permission} on {}", S3Address::new(bucket, key)),
        }
    }

    fn bucket(&self) -> &'a str {
        self.on_objects().bucket
    }

    /// The service, by AWS's name.
    pub fn service(&self) -> &'static str {
        match *self {
            Self::Identity => "STS",
            Self::Call { service, .. } => service,
            _ => "S3",
        }
    }
}

/// The relevant part of a server's response.
struct Response<'a> {
    status: u16,
    code: Option<&'a str>,
    message: Option<&'a str>,
    /// The server's time of the response.
    date: Option<&'a str>,
}

fn response_error(response: &Response<'_>, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    if let Operation::Call { .. } = operation {
        return caller_error(response, operation, caller)
            .unwrap_or_else(|| calls::refused(response, operation, caller));
    }
    caller_error(response, operation, caller)
        .or_else(|| writing_error(response, operation, caller))
        .unwrap_or_else(|| target_error(response, operation, caller))
}

/// Errors about the caller: credentials and permissions.
fn caller_error(response: &Response<'_>, operation: &Operation<'_>, caller: &Caller) -> Option<AwsError> {
    use AwsErrorKind as Kind;
    let whose = &caller.credentials;
    let server = caller.server();
    let said = server_message(response, caller);
    let error = |kind, why: String| AwsError::new(kind, format!("Could not {operation}: {why}"));
    Some(match response.code.unwrap_or_default() {
        "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" => expired_session(&said, caller),
        "InvalidAccessKeyId" | "InvalidClientTokenId" | "UnrecognizedClientException" | "InvalidToken" => error(
            Kind::BadCredentials,
            format!(
                "{server} does not recognize the access key of {whose}{said}; choose another profile, or correct the \
                 key"
            ),
        ),
        "InvalidSignatureException" if is_about_time(response.message) => clock_skew(response, operation, caller),
        "SignatureDoesNotMatch" | "InvalidSignatureException" if is_about_region(response.message) => error(
            Kind::WrongRegion,
            format!("{server} expects a different region than {}{said}; choose that region", caller.region),
        ),
        "SignatureDoesNotMatch" | "InvalidSignatureException" => error(
            Kind::BadCredentials,
            format!(
                "the secret key of {whose} does not match its access key{said}; correct it in the AWS configuration"
            ),
        ),
        "RequestTimeTooSkewed" | "RequestExpired" => clock_skew(response, operation, caller),
        _ => return None,
    })
}

/// “ (AWS says: Throttling: …)”, to continue a sentence.
///
/// The server's message. For wrong signatures, some services repeat the signed text with the session token, which is
/// left out.
fn server_message(response: &Response<'_>, caller: &Caller) -> String {
    let message = response.message.map(|message| {
        let ends = ["The Canonical String", "The String-to-Sign"].map(|words| message.find(words));
        let end = ends.into_iter().flatten().min().unwrap_or(message.len());
        message[..end].trim()
    });
    let parts: Vec<&str> = [response.code, message].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(" ({}: {})", caller.server(), parts.join(": "))
}

/// “Signature expired: 20261121T100000Z is now earlier than …”, “Signature not yet current: …”.
fn is_about_time(message: Option<&str>) -> bool {
    message.is_some_and(|message| message.contains("Signature expired") || message.contains("not yet current"))
}

/// “Credential should be scoped to a valid region, not 'eu-central-1'.”
fn is_about_region(message: Option<&str>) -> bool {
    message.is_some_and(|message| message.contains("scoped to a valid region"))
}

fn clock_skew(response: &Response<'_>, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    let by = response.date.and_then(clock_difference).map_or_else(String::new, |by| format!(" by {by}"));
    let (server, said) = (caller.server(), server_message(response, caller));
    AwsError::new(
        AwsErrorKind::ClockSkew,
        format!(
            "Could not {operation}: the clock of this computer differs{by} from that of {server}{said}; correct it, \
             then try again"
        ),
    )
}

/// Rejections of an object to write.
fn writing_error(response: &Response<'_>, operation: &Operation<'_>, caller: &Caller) -> Option<AwsError> {
    use AwsErrorKind as Kind;
    let (kind, why) = match (response.code.unwrap_or_default(), response.status, operation) {
        ("NoSuchUpload", ..) => (Kind::NotFound, "the upload no longer exists; it was completed or aborted".to_owned()),
        ("PreconditionFailed" | "ConditionalRequestConflict", _, Operation::Write { .. })
        | (_, 412, Operation::Write { .. }) => {
            (Kind::Changed, "an unexpected object already exists; check it first".to_owned())
        }
        ("BadDigest" | "XAmzContentSHA256Mismatch" | "XAmzContentChecksumMismatch", ..) => (
            Kind::Cut,
            "the data was damaged in transit and was not written; check your network, then try again".to_owned(),
        ),
        ("NotImplemented", ..) | (_, 501, _) => (
            Kind::Unsupported,
            format!("{} does not support this operation{}", caller.server(), server_message(response, caller)),
        ),
        _ => return None,
    };
    Some(AwsError::new(kind, format!("Could not {operation}: {why}")))
}

/// Errors about the target of an operation, or of the service for every caller.
fn target_error(response: &Response<'_>, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    use AwsErrorKind as Kind;
    let server = caller.server();
    let said = server_message(response, caller);
    let error = |kind, why: String| AwsError::new(kind, format!("Could not {operation}: {why}"));
    match (response.code.unwrap_or_default(), response.status) {
        ("NoSuchBucket", _) => error(
            Kind::NoSuchBucket,
            format!("bucket {} does not exist at {server}; check the spelling", operation.bucket()),
        ),
        ("InvalidBucketName", _) => {
            error(Kind::NoSuchBucket, format!("{} is not a valid bucket name; check the spelling", operation.bucket()))
        }
        ("NoSuchKey" | "NotFound", _) | (_, 404) => error(
            Kind::NotFound,
            "the object does not exist; it may have been moved or deleted since it was listed".to_owned(),
        ),
        ("InvalidObjectState", _) => error(
            Kind::Archived,
            "the object is archived (Glacier); restore it in the AWS console, then try again".to_owned(),
        ),
        (
            "PermanentRedirect"
            | "TemporaryRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException",
            _,
        )
        | (_, 301 | 307) => error(
            Kind::WrongRegion,
            format!(
                "bucket {} is not in {}, and {server} does not report its region; set the region",
                operation.bucket(),
                caller.region
            ),
        ),
        ("SlowDown" | "ServiceUnavailable" | "TooManyRequestsException" | "RequestLimitExceeded" | "Busy", _)
        | (_, 429 | 503) => error(Kind::Throttled, format!("{server} limits the request rate; wait, then try again")),
        ("PreconditionFailed", _) | (_, 412) => error(Kind::Changed, CHANGED.to_owned()),
        ("InvalidRange", _) | (_, 416) => error(
            Kind::BehindEnd,
            "the requested range is past the end of the object; it may have changed since it was listed".to_owned(),
        ),
        ("RequestTimeout", _) | (_, 408 | 504) => timeout(operation, caller),
        (_, 407) => error(
            Kind::NotS3,
            "the proxy requires a user name and password; add them to HTTPS_PROXY, or ask its administrator".to_owned(),
        ),
        (code, 403) if code.contains("KMS") => denied(true, &said, operation, caller),
        // Responses without a body have no code.
        ("AccessDenied", _) | ("" | "Forbidden", 401 | 403) => denied(said.contains("kms:"), &said, operation, caller),
        (_, 500..) => error(Kind::Server, format!("{server} failed{said}; wait, then try again")),
        ("", status) => not_s3(status, operation, caller),
        (code, _) => error(Kind::Other, format!("{server} rejected it with {code}{said}")),
    }
}

fn denied(is_key: bool, said: &str, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    let permission = if is_key {
        match operation {
            Operation::Write { .. } => "kms:GenerateDataKey and kms:Decrypt on the bucket's encryption key",
            _ => "kms:Decrypt on its encryption key",
        }
        .to_owned()
    } else {
        operation.permission()
    };
    let why = match &caller.credentials {
        Credentials::Anonymous => {
            format!("anonymous access is denied; choose a profile with the permission {permission}{said}")
        }
        whose => {
            // Without permission to list, S3 does not distinguish a missing object from a forbidden one.
            let or_missing = match operation {
                Operation::Read { .. } => ", or the object does not exist",
                _ => "",
            };
            format!(
                "{whose} lack{s} the permission {permission}{or_missing}; choose another profile, or ask the account \
                administrator for it{said}",
                s = match whose {
                    Credentials::Profile(_) => "s",
                    Credentials::Ambient | Credentials::Anonymous => "",
                }
            )
        }
    };
    AwsError::new(AwsErrorKind::AccessDenied, format!("Could not {operation}: {why}"))
}

/// The difference between the clocks, from the `Date` of a response.
fn clock_difference(date: &str) -> Option<String> {
    let there = DateTime::from_str(date, Format::HttpDate).ok()?.secs();
    let here = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    let minutes = there.abs_diff(i64::try_from(here).ok()?) / 60;
    Some(match minutes {
        0 => return None,
        1..120 => format!("{minutes} minutes"),
        _ => format!("{} hours", minutes / 60),
    })
}

fn expired_sign_in(caller: &Caller) -> AwsError {
    let whose = match &caller.credentials {
        Credentials::Profile(name) => format!("profile {name}"),
        Credentials::Ambient | Credentials::Anonymous => "the AWS profile".to_owned(),
    };
    let command = caller.renewal.as_deref().unwrap_or("aws sso login");
    AwsError::new(
        AwsErrorKind::ExpiredCredentials,
        format!("{whose} is not signed in, or the sign-in has expired; run `{command}`, then try again"),
    )
}

fn expired_session(said: &str, caller: &Caller) -> AwsError {
    let whose = &caller.credentials;
    let what_to_do = match &caller.renewal {
        Some(command) => format!("run `{command}`"),
        None => "renew the credentials at their provider".to_owned(),
    };
    AwsError::new(
        AwsErrorKind::ExpiredCredentials,
        format!("The session of {whose} has expired{said}; {what_to_do}, then try again"),
    )
}

fn timeout(operation: &Operation<'_>, caller: &Caller) -> AwsError {
    AwsError::new(
        AwsErrorKind::Timeout,
        format!(
            "Could not {operation}: {} did not respond in time; check your network and the endpoint URL, then try \
             again",
            caller.server()
        ),
    )
}

fn not_s3(status: u16, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    AwsError::new(
        AwsErrorKind::NotS3,
        format!(
            "Could not {operation}: the server at {} is not {} (HTTP status {status}); check the endpoint URL, proxies \
            and sign-in pages",
            caller.server(),
            operation.service()
        ),
    )
}

/// The error of a server that could not be reached at all.
fn connection_error(text: &str, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    let server = caller.server();
    let (kind, why) = if text.contains("dns error") || text.contains("failed to lookup") {
        let host = match &caller.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => format!("{} in the region {}", operation.service(), caller.region),
        };
        (AwsErrorKind::Dns, format!("host {host} was not found; check your network, the region and the endpoint URL"))
    } else if text.contains("certificate") {
        (
            AwsErrorKind::Unreachable,
            format!(
                "the certificate of {server} is not trusted ({text}); behind a company proxy, set AWS_CA_BUNDLE to \
                 its certificates"
            ),
        )
    } else if text.contains("refused") {
        (
            AwsErrorKind::Unreachable,
            format!("{server} refused the connection; check that it is running, and the endpoint URL"),
        )
    } else {
        (
            AwsErrorKind::Unreachable,
            format!("could not reach {server} ({text}); check your network and the endpoint URL"),
        )
    };
    AwsError::new(kind, format!("Could not {operation}: {why}"))
}

/// The profile that the environment selects.
fn chosen_profile() -> Option<String> {
    std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty())
}

/// The causes of an error whose own message is uninformative.
fn causes_text(error: &(dyn Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), chain_text)
}

/// The first error of this type among an error and its causes.
fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The messages of an error and its causes, without duplicates.
pub(super) fn chain_text(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !text.is_empty() && !texts.iter().any(|before| before.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(credentials: Credentials) -> Caller {
        Caller {
            credentials,
            endpoint: None,
            region: "eu-west-1".to_owned(),
            renewal: Some("aws sso login --profile work".to_owned()),
        }
    }

    fn error_of(status: u16, code: &str) -> AwsError {
        let response = Response {
            status,
            code: (!code.is_empty()).then_some(code),
            message: None,
            date: Some("Sat, 21 Nov 2020 10:00:00 GMT"),
        };
        let operation = Operation::List { bucket: "photos", prefix: "cats/" };
        response_error(&response, &operation, &caller(Credentials::Profile("work".to_owned())))
    }

    #[test]
    fn refusals_have_cause_and_remedy() {
        for (status, code, kind, words) in [
            (403, "AccessDenied", AwsErrorKind::AccessDenied, "s3:ListBucket on the bucket photos"),
            (403, "", AwsErrorKind::AccessDenied, "s3:ListBucket on the bucket photos"),
            (403, "KMS.DisabledException", AwsErrorKind::AccessDenied, "kms:Decrypt"),
            (403, "NotSignedUp", AwsErrorKind::Other, "rejected it with NotSignedUp"),
            (400, "ExpiredToken", AwsErrorKind::ExpiredCredentials, "aws sso login --profile work"),
            (403, "InvalidAccessKeyId", AwsErrorKind::BadCredentials, "profile work"),
            (403, "SignatureDoesNotMatch", AwsErrorKind::BadCredentials, "secret key"),
            (403, "RequestTimeTooSkewed", AwsErrorKind::ClockSkew, "hours from that of AWS"),
            (404, "NoSuchBucket", AwsErrorKind::NoSuchBucket, "bucket photos does not exist"),
            (301, "PermanentRedirect", AwsErrorKind::WrongRegion, "eu-west-1"),
            (503, "SlowDown", AwsErrorKind::Throttled, "limits the request rate"),
            (500, "InternalError", AwsErrorKind::Server, "failed"),
            (400, "", AwsErrorKind::NotS3, "HTTP status 400"),
            (407, "", AwsErrorKind::NotS3, "proxy"),
        ] {
            let error = error_of(status, code);
            assert_eq!(error.kind, kind, "{code}");
            assert!(error.message.contains(words), "{code}: {error}");
        }
    }

    #[test]
    fn expired_sign_in_names_its_renewal_command() {
        let whose = Credentials::Profile("work".to_owned());
        let expired = CredentialsError::provider_error("the SSO token has expired and cannot be refreshed");
        let error = AwsError::from_credentials(&expired, &Operation::Buckets, &caller(whose));
        assert_eq!(error.kind, AwsErrorKind::ExpiredCredentials);
        assert!(error.message.contains("`aws sso login --profile work`"), "{error}");
    }

    #[test]
    fn missing_credentials_name_the_alternatives() {
        let none = CredentialsError::not_loaded_no_source();
        let refused = |operation| AwsError::from_credentials(&none, &operation, &caller(Credentials::Ambient));
        let error = refused(Operation::Buckets);
        assert_eq!(error.kind, AwsErrorKind::NoCredentials);
        assert!(error.message.contains("anonymously"), "{error}");
        // A model that does not exist in SageMaker.
        let error = refused(Operation::Call {
            service: "SageMaker",
            namespace: "sagemaker",
            operation: "ListTransformJobs",
            what: "list the jobs",
        });
        assert!(!error.message.contains("anonymously"), "{error}");
        assert!(error.message.contains("`aws configure`"), "{error}");
    }
}
