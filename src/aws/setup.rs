//! The sign-in options in the user's AWS configuration.

use aws_config::profile::{Profile, ProfileSet};
use aws_types::os_shim_internal::{Env, Fs};

use super::error::{AwsError, AwsErrorKind, chain_text};
use crate::domain::{AmbientSignIn, AwsProfile, AwsSetup, SignInMeans};

/// Longer chains of roles are circular.
const MAX_ROLES: usize = 10;

pub(super) async fn read() -> Result<AwsSetup, AwsError> {
    setup_of(&Fs::real(), &Env::real()).await
}

async fn setup_of(fs: &Fs, env: &Env) -> Result<AwsSetup, AwsError> {
    let profiles = profiles(fs, env).await?;
    let mut names: Vec<&str> = profiles.profiles().collect();
    names.sort_unstable();
    let found = names.iter().filter_map(|name| profiles.get_profile(name));
    Ok(AwsSetup {
        profiles: found.map(|profile| describe(&profiles, profile)).collect(),
        ambient: ambient(&profiles, env),
    })
}

pub(super) async fn profiles(fs: &Fs, env: &Env) -> Result<ProfileSet, AwsError> {
    #[expect(deprecated, reason = "its new home is a crate of the SDK's own")]
    let files = aws_config::profile::profile_file::ProfileFiles::default();
    aws_config::profile::load(fs, env, &files, None).await.map_err(|error| {
        AwsError::new(
            AwsErrorKind::Profile,
            format!(
                "Could not read the AWS configuration: {}; correct it in ~/.aws/config and ~/.aws/credentials",
                chain_text(&error)
            ),
        )
    })
}

fn describe(profiles: &ProfileSet, profile: &Profile) -> AwsProfile {
    AwsProfile {
        name: profile.name().to_owned(),
        means: means_of(profile),
        region: profile.get("region").map(str::to_owned),
        renewal: renewal_of(profiles, profile),
    }
}

/// How a profile signs in, checked in the order of the SDK.
fn means_of(profile: &Profile) -> SignInMeans {
    let has = |key| profile.get(key).is_some_and(|value| !value.is_empty());
    if has("web_identity_token_file") {
        SignInMeans::WebIdentity
    } else if has("role_arn") {
        SignInMeans::Role { source: profile.get("source_profile").map(str::to_owned) }
    } else if has("sso_session") || has("sso_start_url") {
        SignInMeans::SingleSignOn
    } else if has("credential_process") {
        SignInMeans::Process
    } else if has("aws_access_key_id") {
        SignInMeans::Keys
    } else {
        SignInMeans::Nothing
    }
}

/// The command for an interactive profile: this one, or the one at the end of a chain of roles.
fn renewal_of(profiles: &ProfileSet, profile: &Profile) -> Option<String> {
    let mut profile = profile;
    for _ in 0..MAX_ROLES {
        match means_of(profile) {
            SignInMeans::SingleSignOn => {
                // The SDK does not support profile names with spaces.
                return Some(format!("aws sso login --profile {}", profile.name()));
            }
            SignInMeans::Role { source } => profile = profiles.get_profile(&source?)?,
            _ => return None,
        }
    }
    None
}

/// The default sign-in, checked in the order of [`super::credentials::ambient`].
fn ambient(profiles: &ProfileSet, env: &Env) -> AmbientSignIn {
    let is_set = |name: &str| env.get(name).is_ok_and(|value| !value.is_empty());
    if is_set("AWS_ACCESS_KEY_ID") && is_set("AWS_SECRET_ACCESS_KEY") {
        return AmbientSignIn::Environment;
    }
    let named = env.get("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    match named {
        Some(name) if profiles.get_profile(&name).is_some() => AmbientSignIn::NamedProfile(name),
        Some(name) => AmbientSignIn::MissingProfile(name),
        None if default_signs_in(profiles) => AmbientSignIn::DefaultProfile,
        None if is_set("AWS_WEB_IDENTITY_TOKEN_FILE") => AmbientSignIn::WebIdentity,
        None if is_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") || is_set("AWS_CONTAINER_CREDENTIALS_FULL_URI") => {
            AmbientSignIn::Container
        }
        None => AmbientSignIn::Nothing,
    }
}

/// A default profile may contain only a region.
fn default_signs_in(profiles: &ProfileSet) -> bool {
    profiles.get_profile("default").is_some_and(|profile| means_of(profile) != SignInMeans::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
[default]
region = eu-west-1

[profile keys]
aws_access_key_id = AKIAEXAMPLE
aws_secret_access_key = not/shown

[profile work]
sso_session = company
sso_account_id = 123456789012
sso_role_name = Reader
region = eu-central-1

[sso-session company]
sso_region = eu-west-1
sso_start_url = https://example.awsapps.com/start

[profile old-work]
sso_start_url = https://example.awsapps.com/start
sso_region = eu-west-1
sso_account_id = 123456789012
sso_role_name = Reader

[profile prod]
role_arn = arn:aws:iam::210987654321:role/Prod
source_profile = work

[profile circle]
role_arn = arn:aws:iam::210987654321:role/Prod
source_profile = circle

[profile tool]
credential_process = /opt/give-keys --secret hidden
";
    const CREDENTIALS: &str = "[ci]\naws_access_key_id = AKIAOTHER\naws_secret_access_key = not/shown/either\n";

    fn setup(env: &[(&str, &str)]) -> AwsSetup {
        let fs = Fs::from_slice(&[("/home/.aws/config", CONFIG), ("/home/.aws/credentials", CREDENTIALS)]);
        let mut all = vec![("HOME", "/home")];
        all.extend(env);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(setup_of(&fs, &Env::from_slice(&all))).unwrap()
    }

    #[test]
    fn profiles_are_listed_with_kind_and_renewal() {
        let found = setup(&[]);
        let lines: Vec<String> = found
            .profiles
            .iter()
            .map(|profile| {
                let renewal = profile.renewal.as_deref().unwrap_or("-");
                format!("{}: {}; {renewal}", profile.name, profile.means)
            })
            .collect();
        assert_eq!(
            lines,
            [
                "ci: access key; -",
                "circle: role via circle; -",
                "default: no credentials; -",
                "keys: access key; -",
                "old-work: single sign-on; aws sso login --profile old-work",
                "prod: role via work; aws sso login --profile work",
                "tool: credential process; -",
                "work: single sign-on; aws sso login --profile work",
            ]
        );
        let work = found.profile("work").unwrap();
        assert_eq!(work.region.as_deref(), Some("eu-central-1"));
        let all = format!("{found:?}");
        for secret in ["not/shown", "hidden", "AKIA"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
    }

    #[test]
    fn default_credentials_are_described() {
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_PROFILE", "work")];
        for (env, expected) in [
            (&keys[..], AmbientSignIn::Environment),
            (&keys[2..], AmbientSignIn::NamedProfile("work".to_owned())),
            (&[("AWS_PROFILE", "gone")], AmbientSignIn::MissingProfile("gone".to_owned())),
            (&keys[..1], AmbientSignIn::Nothing),
            (&[("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")], AmbientSignIn::WebIdentity),
            (&[], AmbientSignIn::Nothing),
        ] {
            assert_eq!(setup(env).ambient, expected, "{env:?}");
        }
    }

    #[test]
    fn no_configuration_means_no_profiles() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let env = Env::from_slice(&[("HOME", "/nowhere")]);
        let found = runtime.block_on(setup_of(&Fs::from_slice(&[]), &env)).unwrap();
        assert_eq!(found, AwsSetup::default());
    }
}
