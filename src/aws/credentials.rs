//! Credentials and identities. They never leave this module and the SDK.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_config::SdkConfig;
use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::meta::region::ProvideRegion;
use aws_config::profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::web_identity_token::WebIdentityTokenCredentialsProvider;
use aws_credential_types::provider::{self, ProvideCredentials, future::ProvideCredentials as ProvideFuture};
use aws_sdk_s3::config::Region;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_types::os_shim_internal::{Env, Fs};

use super::error::{AwsError, AwsErrorKind, Caller, Operation};
use super::setup;
use crate::domain::{Credentials, Identity, S3Access};

/// Credentials that expire sooner are renewed. The SDK renews them ten seconds before they expire.
const LEAST_LEFT: Duration = Duration::from_secs(30);

/// # Errors
/// The profile does not exist; lists the existing ones.
pub(super) async fn require_profile(name: &str) -> Result<(), AwsError> {
    let profiles = setup::profiles(&Fs::real(), &Env::real()).await?;
    if profiles.get_profile(name).is_some() {
        return Ok(());
    }
    let mut known: Vec<&str> = profiles.profiles().collect();
    known.sort_unstable();
    let known = if known.is_empty() {
        "it has no profiles; create one with `aws configure`".to_owned()
    } else {
        format!("it has {}", known.join(", "))
    };
    Err(AwsError::new(AwsErrorKind::Profile, format!("The AWS configuration does not have a profile {name}; {known}")))
}

/// The environment, then the profile (`profile`, or `AWS_PROFILE`). Never the metadata service. An empty region counts
/// as missing, as in the AWS CLI.
pub(super) async fn configured_region(profile: Option<&str>, http: &SharedHttpClient) -> Option<Region> {
    if let Some(region) = region_of(&Env::real()) {
        return Some(region);
    }
    let mut in_profile = ProfileFileRegionProvider::builder().configure(&provider_config(http));
    if let Some(profile) = profile {
        in_profile = in_profile.profile_name(profile);
    }
    in_profile.build().region().await.filter(|region| !region.as_ref().trim().is_empty())
}

/// The variables of the AWS SDKs, in order.
fn region_of(environment: &Env) -> Option<Region> {
    let set = ["AWS_REGION", "AWS_DEFAULT_REGION"].into_iter().filter_map(|name| environment.get(name).ok());
    set.map(|region| region.trim().to_owned()).find(|region| !region.is_empty()).map(Region::new)
}

fn provider_config(http: &SharedHttpClient) -> ProviderConfig {
    ProviderConfig::without_region().with_http_client(http.clone())
}

/// The default credentials of the AWS tools, without the metadata service of virtual machines, which takes seconds on a
/// desktop.
pub(super) fn ambient(http: &SharedHttpClient, region: &Region) -> impl ProvideCredentials + use<> {
    let config = provider_config(http).with_region(Some(region.clone()));
    CredentialsProviderChain::first_try("environment", EnvironmentVariableCredentialsProvider::new())
        .or_else("profile", ProfileFileCredentialsProvider::builder().configure(&config).build())
        .or_else("web identity", WebIdentityTokenCredentialsProvider::builder().configure(&config).build())
        .or_else("container", EcsCredentialsProvider::builder().configure(&config).build())
}

/// The credentials of one profile, ignoring the environment.
pub(super) fn from_profile(name: &str, http: &SharedHttpClient, region: &Region) -> impl ProvideCredentials + use<> {
    let config = provider_config(http).with_region(Some(region.clone()));
    ProfileFileCredentialsProvider::builder().profile_name(name).configure(&config).build()
}

/// Caches the credentials of a provider until they expire: a credential process may ask a person.
#[derive(Debug)]
pub(super) struct Kept<P> {
    provider: P,
    credentials: tokio::sync::Mutex<Option<aws_credential_types::Credentials>>,
}

impl<P: ProvideCredentials> Kept<P> {
    pub(super) fn new(provider: P) -> Self {
        Self { provider, credentials: tokio::sync::Mutex::default() }
    }

    async fn get(&self) -> provider::Result {
        let mut kept = self.credentials.lock().await;
        if let Some(credentials) = kept.as_ref().filter(|known| lasts(known)) {
            return Ok(credentials.clone());
        }
        let new = self.provider.provide_credentials().await?;
        *kept = Some(new.clone());
        Ok(new)
    }
}

fn lasts(credentials: &aws_credential_types::Credentials) -> bool {
    let soon = SystemTime::now() + LEAST_LEFT;
    credentials.expiry().is_none_or(|end| end > soon)
}

impl<P: ProvideCredentials> ProvideCredentials for Kept<P> {
    fn provide_credentials<'a>(&'a self) -> ProvideFuture<'a>
    where
        Self: 'a,
    {
        ProvideFuture::new(self.get())
    }
}

/// `endpoint`: the server, if it is not AWS.
pub(super) async fn identity(
    access: &S3Access,
    (config, renewal): (&SdkConfig, Option<String>),
    endpoint: Option<String>,
) -> Result<Identity, AwsError> {
    let Some(provider) = config.credentials_provider() else {
        return Ok(Identity::unasked(Credentials::Anonymous.to_string(), None));
    };
    let operation = Operation::Identity;
    let caller = Caller { credentials: access.credentials.clone(), endpoint, region: String::new(), renewal };
    let credentials = provider
        .provide_credentials()
        .await
        .map_err(|error| AwsError::from_credentials(&error, &operation, &caller))?;
    let expires = credentials
        .expiry()
        .and_then(|expiry| expiry.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_millis()).ok());
    let unasked = |why| {
        let key = tail(credentials.access_key_id());
        Identity::unasked(format!("access key …{key} ({why})"), expires)
    };
    if caller.endpoint.is_some() {
        return Ok(unasked("not asked: custom endpoint"));
    }
    let response = aws_sdk_sts::Client::new(config)
        .get_caller_identity()
        .send()
        .await
        .map_err(|error| AwsError::from_sdk(&error, &operation, &caller));
    let response = match response {
        Ok(response) => response,
        Err(error) if error.kind.is_about_credentials() => return Err(error),
        Err(error) => {
            // Some networks allow only S3.
            log::warn!("{error}");
            return Ok(unasked("could not ask AWS"));
        }
    };
    Ok(Identity::from_arn(response.account().unwrap_or_default(), response.arn().unwrap_or_default(), expires))
}

/// The last four characters: enough to tell one's keys apart.
fn tail(key: &str) -> &str {
    let start = key.char_indices().rev().nth(3).map_or(0, |(at, _)| at);
    &key[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_region_variable_counts_as_not_set() {
        for (variables, expected) in [
            (&[("AWS_REGION", "eu-west-1"), ("AWS_DEFAULT_REGION", "us-east-1")][..], Some("eu-west-1")),
            (&[("AWS_REGION", ""), ("AWS_DEFAULT_REGION", "us-east-1")], Some("us-east-1")),
            (&[("AWS_REGION", " ")], None),
            (&[], None),
        ] {
            let region = region_of(&Env::from_slice(variables));
            assert_eq!(region.as_ref().map(Region::as_ref), expected, "{variables:?}");
        }
    }
}
