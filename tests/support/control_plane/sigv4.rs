//! AWS's signature, version 4: a server recomputes it from a request as received, and the control plane signs its own
//! requests with it.
//!
//! Written from "Create a signed AWS API request" in the IAM user guide; only the keyed hash is from a crate of the
//! program.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use sha2::{Digest, Sha256};

use super::Refusal;
use crate::support::http::Head;
use crate::support::seaweed::{IMPOSTOR, LOGINS, Login};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const TIME: &str = "%Y%m%dT%H%M%SZ";
/// The allowed difference between the clocks of two computers.
const TOLERANCE: Duration = Duration::from_mins(5);

/// The region and service that a request is signed for.
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// Whether credentials belong to a session, as issued by STS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Session {
    /// Keys without an expiry and without a token.
    #[default]
    None,
    /// Each request carries this token, signed.
    Open(&'static str),
    /// The same, but expired.
    Over(&'static str),
}

/// How a request must be signed.
pub(super) struct Expected<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) session: Session,
    pub(super) now: SystemTime,
}

/// The login that signed the request; AWS's own error if the signature is missing or wrong.
pub(super) fn signer(
    head: &Head,
    body: &[u8],
    Expected { scope: expected, session, now }: &Expected,
) -> Result<Login, Refusal> {
    let Some(authorization) = head.get("authorization") else {
        return Err(Refusal::forbidden("MissingAuthenticationTokenException", "Missing Authentication Token"));
    };
    let incomplete = || Refusal::forbidden("IncompleteSignatureException", authorization);
    let fields = authorization.strip_prefix(ALGORITHM).ok_or_else(incomplete)?;
    let field = |name: &str| {
        let mut fields = fields.split(',').map(str::trim);
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).ok_or_else(incomplete)
    };
    let credential: Vec<&str> = field("Credential")?.split('/').collect();
    let [access_key, date, region, service, "aws4_request"] = credential[..] else {
        return Err(incomplete());
    };
    let signed: Vec<&str> = field("SignedHeaders")?.split(';').collect();
    let time = head.get("x-amz-date").ok_or_else(incomplete)?;
    let names_are_signed = ["host", "x-amz-date"].iter().all(|name| signed.contains(name));
    if !names_are_signed || !time.starts_with(date) {
        return Err(incomplete());
    }
    check_session(head, &signed, *session)?;
    let known = LOGINS.iter().filter(|login| !login.actions.is_empty());
    let login = known
        .filter(|login| **login != IMPOSTOR)
        .find(|login| login.access_key == access_key)
        .ok_or_else(unknown_token)?;
    if region != expected.region {
        return Err(invalid("Credential should be scoped to a valid region. "));
    }
    if service != expected.service {
        return Err(invalid(&format!("Credential should be scoped to correct service: '{}'. ", expected.service)));
    }
    check_time(time, *now)?;

    let mut headers = Vec::new();
    for name in signed {
        headers.push((name, head.get(name).ok_or_else(incomplete)?));
    }
    let (path, query) = head.target().split_once('?').unwrap_or((head.target(), ""));
    let canonical = canonical_request(head.method(), path, query, &headers, &hash(body));
    let scope = Scope { region, service };
    if signature(login.secret_key, time, &scope, &canonical) != field("Signature")? {
        return Err(invalid(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret \
             Access Key and signing method. Consult the service documentation for details.",
        ));
    }
    Ok(*login)
}

/// The header fields that sign a request without a body for S3. `query` is sorted and encoded.
pub(super) fn s3_fields(login: &Login, host: &str, path: &str, query: &str) -> Vec<(&'static str, String)> {
    let time = format_time(SystemTime::now());
    let content = hash(&[]);
    let headers = [("host", host), ("x-amz-content-sha256", &content), ("x-amz-date", &time)];
    let canonical = canonical_request("GET", path, query, &headers, &content);
    let scope = Scope { region: super::REGION, service: "s3" };
    let authorization = format!(
        "{ALGORITHM} Credential={}/{}/{}/s3/aws4_request, \
         SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={}",
        login.access_key,
        &time[..8],
        scope.region,
        signature(login.secret_key, &time, &scope, &canonical)
    );
    vec![("x-amz-content-sha256", content), ("x-amz-date", time), ("Authorization", authorization)]
}

fn invalid(message: &str) -> Refusal {
    Refusal::new("InvalidSignatureException", message)
}

fn unknown_token() -> Refusal {
    Refusal::new("UnrecognizedClientException", "The security token included in the request is invalid.")
}

fn check_session(head: &Head, signed: &[&str], session: Session) -> Result<(), Refusal> {
    const TOKEN: &str = "x-amz-security-token";
    let sent = head.get(TOKEN);
    if sent.is_some() && !signed.contains(&TOKEN) {
        return Err(Refusal::forbidden("IncompleteSignatureException", TOKEN));
    }
    match (session, sent) {
        (Session::None, None) => Ok(()),
        (Session::Open(token), Some(sent)) if sent == token => Ok(()),
        (Session::Over(token), Some(sent)) if sent == token => {
            Err(Refusal::new("ExpiredTokenException", "The security token included in the request is expired"))
        }
        _ => Err(unknown_token()),
    }
}

fn check_time(text: &str, now: SystemTime) -> Result<(), Refusal> {
    let time = civil::DateTime::strptime(TIME, text)
        .and_then(|time| time.to_zoned(TimeZone::UTC))
        .map_err(|_| invalid("Date must be in ISO-8601 'basic format'."))?;
    let time = SystemTime::from(time.timestamp());
    let shown = format_time(now);
    let earliest = now - TOLERANCE;
    let latest = now + TOLERANCE;
    if time < earliest {
        let earliest = format_time(earliest);
        return Err(invalid(&format!("Signature expired: {text} is now earlier than {earliest} ({shown} - 5 min.)")));
    }
    if time > latest {
        let latest = format_time(latest);
        return Err(invalid(&format!(
            "Signature not yet current: {text} is still later than {latest} ({shown} + 5 min.)"
        )));
    }
    Ok(())
}

fn format_time(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap();
    time.to_zoned(TimeZone::UTC).strftime(TIME).to_string()
}

fn canonical_request(method: &str, path: &str, query: &str, headers: &[(&str, &str)], content: &str) -> String {
    let mut text = format!("{method}\n{path}\n{query}\n");
    for (name, value) in headers {
        let value: Vec<&str> = value.split_whitespace().collect();
        writeln!(text, "{name}:{}", value.join(" ")).unwrap();
    }
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    write!(text, "\n{}\n{content}", names.join(";")).unwrap();
    text
}

fn signature(secret: &str, time: &str, scope: &Scope, canonical: &str) -> String {
    let date = civil::DateTime::strptime(TIME, time).unwrap();
    let date = date.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let to_sign = format!(
        "{ALGORITHM}\n{time}\n{}/{}/{}/aws4_request\n{}",
        &time[..8],
        scope.region,
        scope.service,
        hash(canonical.as_bytes())
    );
    let key = generate_signing_key(secret, date.into(), scope.region, scope.service);
    calculate_signature(key, to_sign.as_bytes())
}

fn hash(content: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(content) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
