//! A connection to S3: its configuration, a client per region, and the regions of buckets.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_config::{AppName, BehaviorVersion, SdkConfig};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{Region, RequestChecksumCalculation, StalledStreamProtectionConfig};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::service_config::ServiceConfigKey;
use parking_lot::Mutex;

use super::credentials::{self, Kept};
use super::error::{AwsError, AwsErrorKind, Caller, Operation};
use super::network::Network;
use super::setup;
use crate::domain::{Credentials, Identity, S3Access, without_password};
use crate::tasks::TaskControl;

/// The region that is asked first about a bucket of unknown region.
const FIRST_REGION: &str = "us-east-1";
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);
/// A credential process may contact a server or wait for a person.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_mins(1);

/// A connection to S3. Cheap to clone. Every method blocks; with a control, no longer than until it is canceled.
#[derive(Clone)]
pub struct S3(pub Arc<Connection>);

pub struct Connection {
    pub network: Arc<Network>,
    pub access: S3Access,
    /// `None` before the first request, and after credentials failed, because they may have been renewed.
    loaded: tokio::sync::Mutex<Option<Arc<Loaded>>>,
    /// The regions of buckets that are not in the region of the first request.
    regions: Mutex<HashMap<String, String>>,
}

pub struct Loaded {
    pub config: SdkConfig,
    /// The server if it is not AWS, from this access or the user's AWS configuration.
    pub endpoint: Option<String>,
    region: String,
    /// No region is configured: S3 is first asked in the default one.
    region_is_guessed: bool,
    /// The command that renews an interactive sign-in.
    pub renewal: Option<String>,
    clients: Mutex<HashMap<String, Client>>,
}

impl S3 {
    pub fn new(connection: Arc<Connection>) -> Self {
        Self(connection)
    }

    pub fn access(&self) -> &S3Access {
        &self.0.access
    }

    /// The server if it is not AWS, from this access or the user's AWS configuration.
    pub fn endpoint(&self, control: Option<&TaskControl>) -> Result<Option<String>, AwsError> {
        self.0.network.wait(control, async {
            let loaded = self.0.loaded().await?;
            Ok(loaded.endpoint.clone())
        })
    }

    /// Sends a request about a bucket with [`Connection::ask`], and waits for the response.
    pub(super) fn ask<T, E, F>(
        &self,
        bucket: &str,
        operation: &Operation<'_>,
        control: Option<&TaskControl>,
        request: impl Fn(Client) -> F,
    ) -> Result<T, AwsError>
    where
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        self.0.network.wait(control, async {
            let _permit = self.0.network.request().await?;
            self.0.ask(bucket, operation, request).await
        })
    }

    /// The signed-in identity and its expiry. Asks AWS; for another server, the access key is the identity.
    pub fn identity(&self, control: Option<&TaskControl>) -> Result<Identity, AwsError> {
        self.0.network.wait(control, self.0.identity(|loaded| loaded.endpoint.clone()))
    }
}

impl S3 {
    /// The same with reloaded credentials, which the user may have renewed. If loading fails, the current ones stay in
    /// use until they expire.
    pub fn renewed_identity(&self, control: Option<&TaskControl>) -> Result<Identity, AwsError> {
        self.0.network.wait(control, async {
            let new = Arc::new(Loaded::new(&self.0.access, &self.0.network).await?);
            let endpoint = new.endpoint.clone();
            let identity = credentials::identity(&self.0.access, new.config_and_renewal(), endpoint).await?;
            *self.0.loaded.lock().await = Some(new);
            Ok(identity)
        })
    }
}

impl Connection {
    pub fn new(network: Arc<Network>, access: S3Access) -> Self {
        Self { network, access, loaded: tokio::sync::Mutex::default(), regions: Mutex::default() }
    }

    pub async fn loaded(&self) -> Result<Arc<Loaded>, AwsError> {
        let mut loaded = self.loaded.lock().await;
        if let Some(loaded) = &*loaded {
            return Ok(Arc::clone(loaded));
        }
        let new = Arc::new(Loaded::new(&self.access, &self.network).await?);
        *loaded = Some(Arc::clone(&new));
        Ok(new)
    }

    /// The signed-in identity, at the server that `endpoint` selects.
    pub async fn identity(&self, endpoint: impl Fn(&Loaded) -> Option<String>) -> Result<Identity, AwsError> {
        let loaded = self.loaded().await?;
        let endpoint = endpoint(&loaded);
        let identity = credentials::identity(&self.access, loaded.config_and_renewal(), endpoint).await;
        if let Err(error) = &identity {
            self.forget_after(error).await;
        }
        identity
    }

    /// Discards failed credentials so that they are loaded again: the user may have renewed them.
    pub async fn forget_after(&self, error: &AwsError) {
        if error.kind.is_about_credentials() {
            *self.loaded.lock().await = None;
        }
    }

    /// Sends a request with a client for the region of `bucket`, and again if it turns out to be in another region.
    pub async fn ask<T, E, F>(
        &self,
        bucket: &str,
        operation: &Operation<'_>,
        request: impl Fn(Client) -> F,
    ) -> Result<T, AwsError>
    where
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let loaded = self.loaded().await?;
        let mut region = self.regions.lock().get(bucket).cloned().unwrap_or_else(|| loaded.region.clone());
        let mut tried = Vec::new();
        loop {
            let error = match request(loaded.client(&region, &self.access)).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            tried.push(region);
            match self.other_region(&loaded, bucket, &error).await {
                Some(other) if !bucket.is_empty() && !tried.contains(&other) => {
                    self.regions.lock().insert(bucket.to_owned(), other.clone());
                    region = other;
                }
                _ => {
                    let caller = self.caller(&loaded, tried.pop());
                    let error = AwsError::from_sdk(&error, operation, &caller);
                    self.forget_after(&error).await;
                    return Err(error);
                }
            }
        }
    }

    pub fn caller(&self, loaded: &Loaded, region: Option<String>) -> Caller {
        Caller {
            credentials: self.access.credentials.clone(),
            endpoint: loaded.endpoint.clone(),
            region: region.unwrap_or_else(|| loaded.region.clone()),
            renewal: loaded.renewal.clone(),
        }
    }

    /// The region of the bucket in the response, if it differs.
    async fn other_region<E: ProvideErrorMetadata>(
        &self,
        loaded: &Loaded,
        bucket: &str,
        error: &SdkError<E, HttpResponse>,
    ) -> Option<String> {
        let response = error.raw_response()?;
        if let Some(region) = response.headers().get("x-amz-bucket-region") {
            return Some(region.to_owned());
        }
        let code = error.as_service_error().and_then(|error| error.code());
        let is_remote = matches!(response.status().as_u16(), 301 | 307) || code == Some("AuthorizationHeaderMalformed");
        if !is_remote {
            return None;
        }
        let in_body = response.body().bytes().and_then(region_in_body);
        if in_body.is_some() {
            return in_body;
        }
        let client = loaded.client(FIRST_REGION, &self.access);
        let location = client.get_bucket_location().bucket(bucket).send().await;
        let location = location.ok()?;
        Some(match location.location_constraint().map(aws_sdk_s3::types::BucketLocationConstraint::as_str) {
            None | Some("") => FIRST_REGION.to_owned(),
            Some("EU") => "eu-west-1".to_owned(),
            Some(region) => region.to_owned(),
        })
    }
}

/// `<Region>eu-west-1</Region>` in the XML of an error.
fn region_in_body(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once("<Region>")?;
    let (region, _) = rest.split_once("</Region>")?;
    Some(region.to_owned())
}

impl Loaded {
    pub fn config_and_renewal(&self) -> (&SdkConfig, Option<String>) {
        (&self.config, self.renewal.clone())
    }

    async fn new(access: &S3Access, network: &Network) -> Result<Self, AwsError> {
        let http = network.http()?;
        let retry_policy = network.retry_policy;
        let profile = match &access.credentials {
            Credentials::Profile(name) => {
                credentials::require_profile(name).await?;
                Some(name.as_str())
            }
            Credentials::Ambient | Credentials::Anonymous => None,
        };
        let renewal =
            setup::read().await.ok().and_then(|setup| Some(setup.renewal_of(&access.credentials)?.to_owned()));
        let region = match &access.region {
            Some(region) => Some(Region::new(region.clone())),
            None => credentials::configured_region(profile, &http).await,
        };
        let region_is_guessed = region.is_none();
        let region = region.unwrap_or(Region::from_static(FIRST_REGION));
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http.clone())
            .region(region.clone())
            .retry_config(
                RetryConfig::standard()
                    .with_max_attempts(retry_policy.attempts)
                    .with_initial_backoff(retry_policy.first_backoff)
                    .with_max_backoff(LONGEST_BACKOFF),
            )
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(CONNECT_TIMEOUT)
                    .read_timeout(retry_policy.response_timeout)
                    .build(),
            )
            .stalled_stream_protection(
                StalledStreamProtectionConfig::enabled().grace_period(retry_policy.stall_timeout).build(),
            )
            .identity_cache(aws_config::identity::IdentityCache::lazy().load_timeout(CREDENTIALS_TIMEOUT).build());
        if let Ok(name) = AppName::new("spotcheck") {
            loader = loader.app_name(name);
        }
        if let Some(profile) = profile {
            loader = loader.profile_name(profile);
        }
        if let Some(endpoint) = &access.endpoint {
            loader = loader.endpoint_url(endpoint.trim_end_matches('/'));
        }
        loader = match &access.credentials {
            Credentials::Anonymous => loader.no_credentials(),
            Credentials::Ambient => loader.credentials_provider(Kept::new(credentials::ambient(&http, &region))),
            Credentials::Profile(name) => {
                loader.credentials_provider(Kept::new(credentials::from_profile(name, &http, &region)))
            }
        };
        let config = loader.load().await;
        let endpoint = access.endpoint.clone().or_else(|| configured_endpoint(&config, "S3"));
        Ok(Self { config, endpoint, region: region.to_string(), region_is_guessed, renewal, clients: Mutex::default() })
    }

    /// The configured region. Services other than S3 do not report the region of a resource.
    pub fn known_region(&self, operation: &Operation<'_>) -> Result<&str, AwsError> {
        if self.region_is_guessed {
            return Err(AwsError::new(
                AwsErrorKind::NoRegion,
                format!(
                    "Could not {operation}: no region is set; choose one, set AWS_REGION, or add it to the profile \
                     with `aws configure`"
                ),
            ));
        }
        Ok(&self.region)
    }

    /// The server of a service if it is not AWS; `service` is its name in the configuration: `SageMaker Runtime`.
    pub fn endpoint_of(&self, service: &str) -> Option<String> {
        configured_endpoint(&self.config, service).map(|endpoint| endpoint.trim_end_matches('/').to_owned())
    }

    pub fn client(&self, region: &str, access: &S3Access) -> Client {
        let mut clients = self.clients.lock();
        let client = clients.entry(region.to_owned()).or_insert_with(|| {
            let is_aws = self.endpoint.is_none();
            let mut config = aws_sdk_s3::config::Builder::from(&self.config)
                .region(Region::new(region.to_owned()))
                .force_path_style(access.path_style.unwrap_or(!is_aws));
            // The configured URL without a password, which cannot be part of a signature.
            config.set_endpoint_url(self.endpoint.clone());
            if !is_aws {
                // Other servers do not support the trailing checksums that AWS has required since 2025.
                config = config.request_checksum_calculation(RequestChecksumCalculation::WhenRequired);
            }
            Client::from_conf(config.build())
        });
        client.clone()
    }
}

/// The server in the environment or profile: for S3, `AWS_ENDPOINT_URL_S3` before `AWS_ENDPOINT_URL`. It is shown and
/// stored, so it has no password.
fn configured_endpoint(config: &SdkConfig, service: &str) -> Option<String> {
    let of_service = |service_id: &str| {
        let key = ServiceConfigKey::builder()
            .service_id(service_id)
            .env("AWS_ENDPOINT_URL")
            .profile("endpoint_url")
            .build()
            .ok()?;
        config.service_config()?.load_config(key)
    };
    // Empty means AWS, as in AWS's own tools.
    let is_set = |address: &String| !address.is_empty();
    // AWS's documentation joins the words of a service with `_` in a profile; this SDK expects `-`.
    of_service(&service.replace(' ', "_"))
        .filter(is_set)
        .or_else(|| of_service(service).filter(is_set))
        .or_else(|| config.endpoint_url().map(str::to_owned).filter(is_set))
        .map(|address| without_password(&address))
}

impl AwsErrorKind {
    pub fn is_about_credentials(self) -> bool {
        matches!(self, Self::NoCredentials | Self::ExpiredCredentials | Self::BadCredentials | Self::Profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_is_found_in_an_error() {
        let body = b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>";
        assert_eq!(region_in_body(body).as_deref(), Some("eu-west-1"));
        assert_eq!(region_in_body(b"<Error/>"), None);
    }
}
