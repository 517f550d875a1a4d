//! The sign-in options in the user's AWS configuration: only names and kinds, no keys or tokens.

use std::fmt;

use super::Credentials;

/// The ways to sign in with the AWS configuration of this user and environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsSetup {
    /// In alphabetical order.
    pub profiles: Vec<AwsProfile>,
    /// What [`Credentials::Ambient`] resolves to.
    pub ambient: AmbientSignIn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsProfile {
    pub name: String,
    pub means: SignInMeans,
    pub region: Option<String>,
    /// The command that renews an interactive sign-in.
    pub renewal: Option<String>,
}

/// How a profile gets its credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInMeans {
    /// An access key in the configuration.
    Keys,
    SingleSignOn,
    /// A role assumed with the credentials of another profile, which may be unnamed.
    Role {
        source: Option<String>,
    },
    Process,
    /// A token in a file, exchanged for a role.
    WebIdentity,
    /// The profile has no credentials.
    Nothing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AmbientSignIn {
    /// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.
    Environment,
    /// The profile `default`.
    DefaultProfile,
    /// The profile in `AWS_PROFILE`.
    NamedProfile(String),
    /// The profile in `AWS_PROFILE`, which does not exist.
    MissingProfile(String),
    /// The token file in `AWS_WEB_IDENTITY_TOKEN_FILE`.
    WebIdentity,
    /// The server in the container's environment.
    Container,
    #[default]
    Nothing,
}

impl AwsSetup {
    pub fn profile(&self, name: &str) -> Option<&AwsProfile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// The profile that these credentials come from, if any.
    pub fn profile_of(&self, credentials: &Credentials) -> Option<&AwsProfile> {
        match (credentials, &self.ambient) {
            (Credentials::Profile(name), _) | (Credentials::Ambient, AmbientSignIn::NamedProfile(name)) => {
                self.profile(name)
            }
            (Credentials::Ambient, AmbientSignIn::DefaultProfile) => self.profile("default"),
            _ => None,
        }
    }

    /// The command that renews these credentials, if a person signs in.
    pub fn renewal_of(&self, credentials: &Credentials) -> Option<&str> {
        self.profile_of(credentials)?.renewal.as_deref()
    }
}

/// “single sign-on”, “role via base”.
impl fmt::Display for SignInMeans {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys => formatter.write_str("access key"),
            Self::SingleSignOn => formatter.write_str("single sign-on"),
            Self::Role { source: Some(name) } => write!(formatter, "role via {name}"),
            Self::Role { source: None } => formatter.write_str("role"),
            Self::Process => formatter.write_str("credential process"),
            Self::WebIdentity => formatter.write_str("web identity"),
            Self::Nothing => formatter.write_str("no credentials"),
        }
    }
}

/// “profile work, which `AWS_PROFILE` names”.
impl fmt::Display for AmbientSignIn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => formatter.write_str("the access key in the environment"),
            Self::DefaultProfile => formatter.write_str("profile default"),
            Self::NamedProfile(name) => {
                write!(formatter, "profile {name} (from AWS_PROFILE)")
            }
            Self::MissingProfile(name) => {
                write!(formatter, "profile {name} (from AWS_PROFILE), which does not exist")
            }
            Self::WebIdentity => formatter.write_str("the web identity in the environment"),
            Self::Container => formatter.write_str("the role of this container"),
            Self::Nothing => formatter.write_str("no credentials were found"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(ambient: AmbientSignIn) -> AwsSetup {
        let profile = |name: &str, renewal: Option<&str>| AwsProfile {
            name: name.to_owned(),
            means: SignInMeans::SingleSignOn,
            region: None,
            renewal: renewal.map(str::to_owned),
        };
        AwsSetup {
            profiles: vec![profile("default", None), profile("work", Some("aws sso login --profile work"))],
            ambient,
        }
    }

    #[test]
    fn renewal_command_belongs_to_the_profile() {
        let work = Credentials::Profile("work".to_owned());
        let command = Some("aws sso login --profile work");
        assert_eq!(setup(AmbientSignIn::Environment).renewal_of(&work), command);
        let named = AmbientSignIn::NamedProfile("work".to_owned());
        for (ambient, expected) in [
            (named, command),
            (AmbientSignIn::DefaultProfile, None),
            (AmbientSignIn::Environment, None),
            (AmbientSignIn::Nothing, None),
        ] {
            let found = setup(ambient.clone());
            assert_eq!(found.renewal_of(&Credentials::Ambient), expected, "{ambient:?}");
            assert_eq!(found.renewal_of(&Credentials::Anonymous), None);
        }
    }
}
