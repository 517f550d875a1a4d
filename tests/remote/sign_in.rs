//! Credentials for S3: profiles, the environment, credential processes, and expired sessions, on a real server.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use spotcheck::aws::{Aws, AwsErrorKind, S3};
use spotcheck::domain::{AmbientSignIn, Credentials, S3Access};

use crate::support::alone::alone;
use crate::support::seaweed::{ADMIN, BLIND, IMPOSTOR, READER, Seaweed, without_aws};

/// A process that knows the server's profiles, and none of this computer's own AWS settings.
fn with_profiles(command: &mut Command) {
    let server = Seaweed::shared();
    server.lend(command);
    without_aws(command, &server.endpoint()).env("AWS_CONFIG_FILE", server.aws_config());
}

/// The same with a user configuration instead.
fn with_config(command: &mut Command, home: &Path, config: &str) {
    with_profiles(command);
    let path = home.join("config");
    std::fs::write(&path, config).unwrap();
    command.env("AWS_CONFIG_FILE", path).env("HOME", home);
}

fn profile(name: &str) -> S3 {
    with(Credentials::Profile(name.to_owned()))
}

fn with(credentials: Credentials) -> S3 {
    Aws::new().s3(&S3Access { credentials, ..S3Access::default() })
}

fn who(s3: &S3) -> String {
    s3.identity(None).unwrap().who
}

/// The end of an access key, which is shown if the server does not know its user.
fn tail(access_key: &str) -> String {
    format!("…{}", &access_key[access_key.len() - 4..])
}

#[test]
fn named_profile_overrides_the_environment() {
    alone(
        "sign_in::named_profile_overrides_the_environment",
        |command| {
            with_profiles(command);
            command
                .env("AWS_PROFILE", ADMIN.profile)
                .env("AWS_ACCESS_KEY_ID", "AKIAENVIRONMENT0ENV0")
                .env("AWS_SECRET_ACCESS_KEY", ADMIN.secret_key);
        },
        || {
            let ambient = with(Credentials::Ambient);
            assert!(who(&ambient).contains("ENV0"), "{}", who(&ambient));
            let refused = ambient.list_buckets(None).unwrap_err();
            assert_eq!(refused.kind, AwsErrorKind::BadCredentials, "{refused}");
            let setup = Aws::new().setup().unwrap();
            assert_eq!(setup.ambient, AmbientSignIn::Environment);
            let reader = profile(READER.profile);
            assert!(who(&reader).contains(&tail(READER.access_key)));
            reader.list_buckets(None).unwrap();
            // A profile without permission is rejected, although the environment and AWS_PROFILE name others.
            let blind = profile(BLIND.profile).list_buckets(None);
            if let Ok(buckets) = &blind {
                assert!(buckets.is_empty(), "{buckets:?}");
            }
            let impostor = profile(IMPOSTOR.profile).list_buckets(None).unwrap_err();
            assert_eq!(impostor.kind, AwsErrorKind::BadCredentials, "{impostor}");
            assert!(!impostor.to_string().contains(IMPOSTOR.secret_key));
        },
    );
}

#[test]
fn missing_profile_lists_the_known_ones() {
    alone(
        "sign_in::missing_profile_lists_the_known_ones",
        |command| {
            with_profiles(command);
            ADMIN.sign_in(command, &Seaweed::shared().endpoint());
            command.env("AWS_CONFIG_FILE", Seaweed::shared().aws_config());
        },
        || {
            let missing = profile("no-such").identity(None).unwrap_err();
            assert_eq!(missing.kind, AwsErrorKind::Profile);
            let text = missing.to_string();
            assert!(text.contains("no-such") && text.contains("reader"), "{text}");
        },
    );
}

/// A program that returns the admin's key, valid until `expires`, and records that it was called.
fn credential_process(folder: &Path) -> String {
    let script = folder.join("give keys.sh");
    let text = format!(
        "#!/bin/sh\necho asked >> '{}/asked'\ncat <<END\n\
         {{\"Version\": 1, \"AccessKeyId\": \"{}\", \"SecretAccessKey\": \"{}\", \"SessionToken\": \"\", \
         \"Expiration\": \"$(cat '{}/expires')\"}}\nEND\n",
        folder.display(),
        ADMIN.access_key,
        ADMIN.secret_key,
        folder.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    format!("[profile tool]\nregion = us-east-1\ncredential_process = \"{}\"\n", script.display())
}

#[test]
fn credential_process_runs_again_after_expiry() {
    let home = tempfile::tempdir().unwrap();
    let config = credential_process(home.path());
    std::fs::write(home.path().join("expires"), "2099-01-02T03:04:05Z").unwrap();
    alone(
        "sign_in::credential_process_runs_again_after_expiry",
        |command| with_config(command, home.path(), &config),
        || {
            let home = std::env::home_dir().unwrap();
            let asked = || std::fs::read_to_string(home.join("asked")).unwrap().lines().count();
            let tool = profile("tool");
            let identity = tool.identity(None).unwrap();
            assert!(identity.who.contains(&tail(ADMIN.access_key)), "{identity:?}");
            assert!(identity.who.contains("not asked"), "{identity:?}");
            // 2099-01-02T03:04:05Z, from `date -d … +%s`.
            assert_eq!(identity.expires_ms, Some(4_071_006_245_000));
            tool.list_buckets(None).unwrap();
            assert_eq!(asked(), 1, "once for everything");
            std::fs::write(home.join("expires"), "2099-02-02T03:04:05Z").unwrap();
            let renewed = tool.renewed_identity(None).unwrap();
            assert_eq!(renewed.expires_ms, Some(4_073_684_645_000));
            assert_eq!(tool.identity(None).unwrap(), renewed);
            assert_eq!(asked(), 2);
            // Credentials that cannot be renewed stay unchanged.
            std::fs::remove_file(home.join("give keys.sh")).unwrap();
            let failed = tool.renewed_identity(None).unwrap_err();
            assert!(!failed.to_string().contains(ADMIN.secret_key), "{failed}");
            assert_eq!(tool.identity(None).unwrap(), renewed);
            tool.list_buckets(None).unwrap();
        },
    );
}

#[test]
fn expired_sign_in_names_the_profile_command() {
    let home = tempfile::tempdir().unwrap();
    let session = "[sso-session company]\nsso_region = us-east-1\nsso_start_url = https://example.awsapps.com/start\n\
         sso_registration_scopes = sso:account:access\n";
    let work = "[profile work]\nsso_session = company\nsso_account_id = 123456789012\n\
                sso_role_name = Reader\nregion = us-east-1\n";
    let prod = "[profile prod]\nrole_arn = arn:aws:iam::123456789012:role/Prod\n\
                source_profile = work\nregion = us-east-1\n";
    let config = format!("{session}\n{work}\n{prod}");
    // Where the AWS tools store it: under the SHA-1 of the session's name, `printf company | sha1sum`.
    let cache = home.path().join(".aws/sso/cache");
    std::fs::create_dir_all(&cache).unwrap();
    let token = r#"{"accessToken":"t0ken-that-must-not-be-shown","expiresAt":"2020-01-01T00:00:00Z","region":"us-east-1",
        "startUrl":"https://example.awsapps.com/start"}"#;
    std::fs::write(cache.join("71b21161ffa1e6516bcc072aaf5ef38cbe85b511.json"), token).unwrap();
    alone(
        "sign_in::expired_sign_in_names_the_profile_command",
        |command| with_config(command, home.path(), &config),
        || {
            for name in ["work", "prod"] {
                let over = profile(name).identity(None).unwrap_err();
                assert_eq!(over.kind, AwsErrorKind::ExpiredCredentials, "{over}");
                let text = over.to_string();
                assert!(text.contains("`aws sso login --profile work`"), "{text}");
                assert!(!text.contains("t0ken"), "{text}");
            }
        },
    );
}
