//! What each profile may do, and the messages about missing permissions.

use std::process::Command;

use spotcheck::aws::Aws;
use spotcheck::image::source::{S3Source, Source};

use super::{bucket_with_a_photo, lines, open, predict, public_place, refusal, stderr};
use crate::support::fault_proxy::{Fault, FaultProxy, Often, Request};
use crate::support::seaweed::{
    ADMIN, BLIND, IMPOSTOR, READER, ROLE_PROFILE, STRANGER, Seaweed, use_profile, without_aws,
};

fn predicts_one(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(lines(&output)[0]["status"], "ok");
}

#[test]
fn missing_permissions_are_named() {
    let bucket = bucket_with_a_photo("rights");
    let place = bucket.uri("photos/");
    let endpoint = Seaweed::shared().endpoint();
    for login in [ADMIN, READER] {
        let mut command = predict(&place);
        login.sign_in(&mut command, &endpoint);
        predicts_one(command);
    }
    let lacking = format!("s3:ListBucket on the bucket {}", bucket.name);
    for (login, words) in [(BLIND, lacking.as_str()), (STRANGER, "the access key"), (IMPOSTOR, "the secret key")] {
        let mut command = predict(&place);
        login.sign_in(&mut command, &endpoint);
        let messages = refusal(&command.output().unwrap());
        assert!(messages.contains(words), "{}: {messages}", login.profile);
        assert!(messages.contains(&place), "{messages}");
    }
}

#[test]
fn object_opens_without_list_permission() {
    let bucket = bucket_with_a_photo("blind");
    let mut command = predict(&bucket.uri("photos/rocket.jpg"));
    BLIND.sign_in(&mut command, &Seaweed::shared().endpoint());
    predicts_one(command);
}

#[test]
fn aws_profiles_and_roles_are_used() {
    let bucket = bucket_with_a_photo("profiles");
    let proxy = FaultProxy::before(Seaweed::shared().address());
    for profile in [READER.profile, ROLE_PROFILE] {
        let mut command = predict(&bucket.uri("photos/"));
        use_profile(&mut command, profile, &proxy.endpoint());
        predicts_one(command);
    }
    let with_token = |request: &Request| request.header("x-amz-security-token").is_some();
    assert!(proxy.count(|request| with_token(request) && request.reads()) > 0, "the role's session was not used");
}

#[test]
fn missing_profile_is_never_replaced() {
    let bucket = bucket_with_a_photo("missing-profile");
    let server = Seaweed::shared();
    let config = std::fs::read_to_string(server.aws_config()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, config.replace("[profile admin]", "[default]")).unwrap();
    let mut command = predict(&bucket.uri("photos/"));
    use_profile(&mut command, "absent", &server.endpoint());
    command.env("AWS_CONFIG_FILE", &path);
    let messages = refusal(&command.output().unwrap());
    assert!(messages.contains("absent"), "{messages}");
}

#[test]
fn missing_credentials_explain_signing_in() {
    let bucket = bucket_with_a_photo("signed-out");
    let mut command = predict(&bucket.uri("photos/"));
    without_aws(&mut command, &Seaweed::shared().endpoint());
    let messages = refusal(&command.output().unwrap());
    assert!(messages.contains("AWS credentials") && messages.contains("aws configure"), "{messages}");
}

#[test]
fn expired_session_explains_renewal() {
    let bucket = bucket_with_a_photo("expired");
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let expired = Fault::error("400 Bad Request", "ExpiredToken");
    proxy.inject(Request::lists, Often::Always, expired);
    let mut command = predict(&bucket.uri("photos/"));
    use_profile(&mut command, READER.profile, &proxy.endpoint());
    let messages = refusal(&command.output().unwrap());
    // These keys do not come from single sign-on, so its command would not help.
    assert!(
        messages.contains("has expired (")
            && messages.contains("ExpiredToken: As the test wants it.")
            && messages.contains("renew the credentials")
            && !messages.contains("aws sso login"),
        "{messages}"
    );
}

#[test]
fn public_bucket_is_read_unsigned() {
    let server = Seaweed::shared();
    let private = bucket_with_a_photo("private");
    let public = server.public_bucket("photos");
    public.put("photos/1.jpg", b"1");
    let source = open(&public_place(&public, "photos/", &server.endpoint()));
    assert_eq!(source.pages().next().unwrap().samples.len(), 1);
    let place = public_place(&private, "photos/", &server.endpoint());
    let refused = S3Source::open(&Aws::new(), &place, None);
    let messages = refused.err().unwrap().to_string();
    assert!(messages.contains("anonymous access"), "{messages}");
}
