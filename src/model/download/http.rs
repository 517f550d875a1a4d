//! A GET request on its own thread, so that waiting for it can be canceled in every phase: name lookup, connecting, a
//! silent server. The only file that uses ureq.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde::{Deserialize, Serialize};
use ureq::http::{Response, Uri, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy, ResponseExt};

/// Maximum number of bytes per event.
const CHUNK_BYTES: usize = 64 << 10;

/// Maximum number of unprocessed events, beyond which the network waits.
const MAX_WAITING: usize = 8;

/// A request in progress. Dropping it ends it; its thread ends at the latest after the stall timeout.
pub(super) struct Connection(Receiver<Event>);

/// Events of a request: one `Head`, then `Data` until `End`; or `Failed` at any time, as the last one.
pub(super) enum Event {
    Head(ResponseHead),
    Data(Vec<u8>),
    End,
    Failed(Fault),
}

/// How servers are reached, where it differs from the environment and the operating system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Instead of the proxy that `HTTPS_PROXY` and similar variables name: `http://user:password@host:port`.
    pub proxy: Option<String>,
    /// A PEM file of certificates that are trusted instead of the operating system's.
    pub certificates: Option<PathBuf>,
    pub login: Option<Login>,
}

/// A user name and password, sent to one host only.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub host: String,
    pub user: String,
    pub password: String,
}

/// Without the password.
impl std::fmt::Debug for Login {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(text, "{} at {}", self.user, self.host)
    }
}

/// The head of the server's response, after redirects.
pub(super) struct ResponseHead {
    /// The URL that the last redirect led to.
    pub url: String,
    pub status: u16,
    /// `404 Not Found`
    pub status_text: String,
    pub content_type: String,
    pub content_length: Option<u64>,
    /// The start in `Content-Range: bytes 5-9/10`.
    pub range_start: Option<u64>,
    pub range_total: Option<u64>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

/// Identifies a version of a file on a server, for `If-Range`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Validator {
    Etag(String),
    LastModified(String),
}

impl Validator {
    /// The strongest one in the response. A weak `ETag` does not identify exact bytes, so it does not count.
    pub(super) fn from_response(response: &ResponseHead) -> Option<Self> {
        let etag = response.etag.clone().filter(|etag| !etag.starts_with("W/"));
        let last_modified = response.last_modified.clone();
        etag.map(Self::Etag).or_else(|| last_modified.map(Self::LastModified))
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Etag(text) | Self::LastModified(text) => text,
        }
    }

    /// Whether the response is of another version.
    pub(super) fn differs(&self, response: &ResponseHead) -> bool {
        let theirs = match self {
            Self::Etag(_) => &response.etag,
            Self::LastModified(_) => &response.last_modified,
        };
        theirs.as_deref().is_some_and(|theirs| theirs != self.text())
    }
}

#[derive(Debug)]
pub(super) enum Fault {
    Timeout,
    /// To follow the host name: “could not be reached (connection refused)”.
    Other(String),
}

impl Connection {
    /// Requests the whole file, or from a byte on, provided that the file still matches the validator. `accept` names
    /// the wanted content types.
    pub(super) fn open(
        url: &str,
        accept: &str,
        range: Option<(u64, &Validator)>,
        access: &Access,
        stall_timeout: Duration,
    ) -> Self {
        let (sender, receiver) = bounded(MAX_WAITING);
        let host = host(url);
        let agent = match agent(&host, access, stall_timeout) {
            Ok(agent) => agent,
            Err(reason) => {
                // The channel has room for it.
                let _ = sender.send(Event::Failed(Fault::Other(format!("was not contacted: {reason}"))));
                return Self(receiver);
            }
        };
        // Ranges count transmitted bytes; a compressed response would count differently.
        let mut request = agent.get(url).header(header::ACCEPT_ENCODING, "identity").header(header::ACCEPT, accept);
        if let Some(Login { user, password, .. }) = access.login.as_ref().filter(|login| login.host == host) {
            let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
            request = request.header(header::AUTHORIZATION, format!("Basic {encoded}"));
        }
        if let Some((start, validator)) = range.filter(|(start, _)| *start > 0) {
            request =
                request.header(header::RANGE, format!("bytes={start}-")).header(header::IF_RANGE, validator.text());
        }
        let failed = sender.clone();
        let work = move || {
            let last = match request.call() {
                Ok(response) => pass_on(response, &sender),
                Err(error) => Event::Failed(fault(&error)),
            };
            // The receiver is gone if the download was canceled.
            let _ = sender.send(last);
        };
        crate::tasks::spawn("download", work, move |panic| {
            let _ = failed.send(Event::Failed(Fault::Other(format!("failed ({panic})"))));
        });
        Self(receiver)
    }

    /// The next event, if one arrives within `timeout`.
    pub(super) fn wait(&mut self, timeout: Duration) -> Option<Event> {
        match self.0.recv_timeout(timeout) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::End),
        }
    }
}

/// The host name in a URL; the URL if it has none.
pub(super) fn host(url: &str) -> String {
    let uri = url.parse::<Uri>().ok();
    uri.and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_else(|| url.to_owned())
}

/// By default, proxies come from the environment (`HTTPS_PROXY` and similar variables), and certificates are verified by
/// the operating system, as a corporate proxy may require. The error completes “was not contacted”.
fn agent(host: &str, access: &Access, stall_timeout: Duration) -> Result<Agent, String> {
    let roots = match &access.certificates {
        Some(path) => RootCerts::new_with_certs(&certificates_in(path)?),
        None => RootCerts::PlatformVerifier,
    };
    let mut config = Agent::config_builder()
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .user_agent(concat!("spotcheck/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        .timeout_connect(Some(stall_timeout))
        .timeout_recv_response(Some(stall_timeout))
        .timeout_per_read(Some(stall_timeout));
    if is_this_machine(host) {
        config = config.proxy(None);
    } else if let Some(proxy) = &access.proxy {
        let proxy = Proxy::new(proxy).map_err(|error| format!("the proxy address is invalid ({error})"))?;
        config = config.proxy(Some(proxy));
    }
    Ok(config.build().new_agent())
}

fn certificates_in(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let unusable = |reason: String| format!("the certificates in {} could not be read ({reason})", path.display());
    let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let certificates: Vec<_> = ureq::tls::parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() { Err(unusable("there are none".to_owned())) } else { Ok(certificates) }
}

/// A server on this computer is never reached through a proxy.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Passes on the head and the body, and returns the last event to send.
fn pass_on(response: Response<Body>, events: &Sender<Event>) -> Event {
    if events.send(Event::Head(head_of(&response))).is_err() {
        return Event::End;
    }
    let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match body.read(&mut chunk) {
            Ok(0) => return Event::End,
            Ok(len) => {
                if events.send(Event::Data(chunk[..len].to_vec())).is_err() {
                    return Event::End;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Event::Failed(Fault::Other(format!("failed ({error})"))),
        }
    }
}

fn head_of(response: &Response<Body>) -> ResponseHead {
    let text = |name: header::HeaderName| {
        let value = response.headers().get(name);
        value.and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let range = text(header::CONTENT_RANGE);
    let (start, total) = range.as_deref().and_then(parse_range).unzip();
    ResponseHead {
        url: response.get_uri().to_string(),
        status: response.status().as_u16(),
        status_text: response.status().to_string(),
        content_type: text(header::CONTENT_TYPE).unwrap_or_default(),
        content_length: text(header::CONTENT_LENGTH).and_then(|length| length.parse().ok()),
        range_start: start,
        range_total: total.flatten(),
        etag: text(header::ETAG),
        last_modified: text(header::LAST_MODIFIED),
    }
}

/// The start and, if known, total of `bytes 5-9/10` or `bytes 5-9/*`.
fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.parse().ok()?, total.parse().ok()))
}

fn fault(error: &ureq::Error) -> Fault {
    match error {
        ureq::Error::Timeout(_) => Fault::Timeout,
        ureq::Error::HostNotFound => Fault::Other("was not found (check your network and DNS)".to_owned()),
        ureq::Error::TooManyRedirects | ureq::Error::RedirectFailed => Fault::Other("redirects too often".to_owned()),
        ureq::Error::Io(error) if is_certificate_fault(error) => Fault::Other(format!(
            "has a certificate that this computer does not trust ({error}); behind a company proxy, add its \
            certificate to the system, or set SSL_CERT_FILE"
        )),
        ureq::Error::Io(error) => Fault::Other(format!("could not be reached ({error})")),
        other => Fault::Other(format!("could not be reached ({other})")),
    }
}

/// The TLS library reports its errors only as text.
fn is_certificate_fault(error: &std::io::Error) -> bool {
    error.to_string().contains("certificate")
}
