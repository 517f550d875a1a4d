//! TensorFlow Serving, by its REST API: `POST http://host:8501/v1/models/NAME:predict`.
//!
//! <https://www.tensorflow.org/tfx/serving/api_rest>

mod metadata;

use std::time::Duration;

use crossbeam_channel::{bounded, select};
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};

use super::outputs::MAX_RESPONSE_BYTES;
use super::predictor::{Request, Transport};
use crate::domain::shortened;
use crate::model::PredictError;
use crate::tasks::TaskControl;

pub use metadata::{ServedModel, ServedSignature};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(70);
/// The number of attempts with a busy server, and the waits in between.
const ATTEMPTS: u32 = 4;
const WAIT: Duration = Duration::from_millis(500);
/// The maximum length of a server's message.
const MAX_MESSAGE_CHARS: usize = 600;

/// A model in TensorFlow Serving.
#[derive(Debug, Clone)]
pub struct TfServing {
    address: TfServingAddress,
    agent: Agent,
}

/// The predict URL of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TfServingAddress {
    /// The whole URL, including `:predict`.
    url: String,
    model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; enter an address like http://127.0.0.1:8501/v1/models/resnet:predict")]
pub struct AddressError {
    reason: &'static str,
}

impl TfServingAddress {
    /// Parses `http://host:8501/v1/models/NAME[/versions/N|/labels/L][:predict]`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let error = |reason| AddressError { reason };
        let text = text.trim().trim_end_matches('/');
        let uri: Uri = text.parse().map_err(|_| error("it is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(error("it must begin with http:// or https://"));
        }
        if uri.authority().is_some_and(|host| host.as_str().contains('@')) {
            return Err(error("it contains a user name or password, which would be visible"));
        }
        if uri.query().is_some() {
            return Err(error("it contains a question mark"));
        }
        let path = uri.path();
        let (path, verb) = match path.rsplit_once(':') {
            Some((path, verb)) => (path, Some(verb)),
            None => (path, None),
        };
        if verb.is_some_and(|verb| verb != "predict") {
            return Err(error("it must end in :predict"));
        }
        let (_, model) = path.split_once("/v1/models/").ok_or_else(|| error("it contains no model name"))?;
        let model = model.split('/').next().unwrap_or_default();
        if model.is_empty() {
            return Err(error("it contains no model name"));
        }
        let url = match verb {
            Some(_) => text.to_owned(),
            None => format!("{text}:predict"),
        };
        Ok(Self { model: model.to_owned(), url })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    fn is_this_machine(&self) -> bool {
        let uri: Option<Uri> = self.url.parse().ok();
        uri.as_ref().and_then(Uri::host).is_some_and(|host| {
            let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
            host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        })
    }
}

impl TfServing {
    /// Sends no request yet.
    pub fn new(address: TfServingAddress) -> Self {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let mut config = Agent::config_builder()
            .tls_config(tls.build())
            .user_agent(concat!("spotcheck/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(RESPONSE_TIMEOUT));
        if address.is_this_machine() {
            config = config.proxy(None);
        }
        Self { agent: config.build().new_agent(), address }
    }

    /// Retries for a while if the server is busy.
    fn response(&self, request: &Request, control: &TaskControl) -> Result<Response, PredictError> {
        let mut attempt = 1;
        loop {
            let response = self.post(request, control)?;
            let is_busy = matches!(response.status, 429 | 503);
            if !is_busy || attempt == ATTEMPTS {
                return Ok(response);
            }
            control.sleep(WAIT * 2_u32.pow(attempt - 1)).map_err(|_| PredictError::Cancelled)?;
            attempt += 1;
        }
    }

    fn post(&self, request: &Request, control: &TaskControl) -> Result<Response, PredictError> {
        let request = request.clone();
        self.on_own_thread(control, move |this| this.send(&request))
    }

    /// Sends one request on its own thread, so that waiting can be canceled at any time.
    fn on_own_thread(
        &self,
        control: &TaskControl,
        call: impl FnOnce(&Self) -> Result<Response, PredictError> + Send + 'static,
    ) -> Result<Response, PredictError> {
        let (sender, response) = bounded(1);
        let (cancel, cancelled) = bounded(1);
        let _hook = control.on_cancel(move || {
            // The cancellation may already be signaled.
            let _ = cancel.try_send(());
        });
        let this = self.clone();
        std::thread::spawn(move || {
            // The request was canceled.
            let _ = sender.send(call(&this));
        });
        select! {
            recv(response) -> response => response.unwrap_or_else(|_| {
                Err(PredictError::Failed("the request ended without a response".to_owned()))
            }),
            recv(cancelled) -> _ => Err(PredictError::Cancelled),
        }
    }

    fn send(&self, request: &Request) -> Result<Response, PredictError> {
        let response = self.agent.post(&self.address.url).content_type(request.content_type).send(&request.body[..]);
        self.read(response)
    }

    fn read(&self, response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Response, PredictError> {
        let mut response = response.map_err(|error| self.fault(&error))?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES + 1).read_to_vec();
        Ok(Response { status, body: body.map_err(|error| self.fault(&error))? })
    }

    fn fault(&self, error: &ureq::Error) -> PredictError {
        let url = &self.address.url;
        match error {
            ureq::Error::Timeout(_) => PredictError::Failed(format!(
                "TensorFlow Serving did not respond within {} seconds: {url}",
                RESPONSE_TIMEOUT.as_secs()
            )),
            ureq::Error::BodyExceedsLimit(_) => {
                PredictError::Failed("the response is too long for one image".to_owned())
            }
            ureq::Error::HostNotFound => {
                PredictError::OutOfReach(format!("the host was not found; check its spelling and your network: {url}"))
            }
            error => PredictError::OutOfReach(format!(
                "the connection failed ({error}); check that TensorFlow Serving runs with its REST API on this port: \
                {url}"
            )),
        }
    }
}

impl Transport for TfServing {
    fn carry(&self, request: Request, control: &TaskControl) -> Result<Vec<u8>, PredictError> {
        let (error, may_be_down) = match self.response(&request, control) {
            Ok(response) if response.status == 200 => return Ok(response.body),
            Ok(response) => (response.error(&self.address), response.is_of_a_server_in_trouble()),
            Err(error) => (error, true),
        };
        Err(match error {
            PredictError::Failed(reason) if may_be_down && self.is_down(control) => PredictError::OutOfReach(reason),
            error => error,
        })
    }

    fn name(&self) -> String {
        format!("TensorFlow Serving at {}", self.address.url)
    }
}

struct Response {
    status: u16,
    body: Vec<u8>,
}

impl Response {
    fn is_of_a_server_in_trouble(&self) -> bool {
        self.status == 429 || self.status >= 500
    }

    fn error(&self, address: &TfServingAddress) -> PredictError {
        let status = self.status;
        let said = match self.message() {
            Some(message) => format!(" (message: {message})"),
            None => String::new(),
        };
        match status {
            404 if self.message().is_some() => PredictError::OutOfReach(format!(
                "TensorFlow Serving does not have model {} or this version of it{said}: {}",
                address.model, address.url
            )),
            404 => PredictError::OutOfReach(format!(
                "TensorFlow Serving does not have model {}, or this is another server; check the name, host, port and \
                the path before /v1/models: {}",
                address.model, address.url
            )),
            405 | 501 => PredictError::OutOfReach(format!(
                "this server is not TensorFlow Serving (HTTP status {status}); check host, port and the path before \
                /v1/models: {}",
                address.url
            )),
            400 => PredictError::Failed(format!(
                "TensorFlow Serving rejected the request{said}; check the signature, and that the model takes encoded \
                images"
            )),
            401 | 403 | 407 => PredictError::OutOfReach(format!(
                "access is denied (HTTP status {status}){said}; check proxies: {}",
                address.url
            )),
            429 | 503 => PredictError::Failed(format!(
                "TensorFlow Serving is overloaded (HTTP status {status}){said}; send fewer images in parallel"
            )),
            _ => PredictError::Failed(format!("TensorFlow Serving failed with HTTP status {status}{said}")),
        }
    }

    /// `{"error": "…"}`
    fn message(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Body {
            error: String,
        }
        let body: Body = serde_json::from_slice(&self.body).ok()?;
        let plain = body.error.replace(char::is_control, " ");
        Some(shortened(&plain, MAX_MESSAGE_CHARS).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_names_a_model_and_gets_its_verb() {
        for (text, url) in [
            ("http://127.0.0.1:8501/v1/models/resnet:predict", "http://127.0.0.1:8501/v1/models/resnet:predict"),
            (
                "https://host/behind/v1/models/resnet/versions/3/",
                "https://host/behind/v1/models/resnet/versions/3:predict",
            ),
        ] {
            let address = TfServingAddress::parse(text).unwrap();
            assert_eq!((address.url(), address.model()), (url, "resnet"));
        }
        for (text, words) in [
            ("127.0.0.1:8501", "must begin with http"),
            ("ftp://host/v1/models/m", "must begin with http"),
            ("http://host:8501", "no model"),
            ("http://host:8501/v1/models/", "no model"),
            ("http://host/v1/models/m:classify", "must end in :predict"),
            ("http://host/v1/models/m?x=1", "question mark"),
            ("http://me:secret@host/v1/models/m", "password"),
        ] {
            let error = TfServingAddress::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
