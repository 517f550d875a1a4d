//! The program never prints, writes or logs a secret.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use spotcheck::aws::Aws;
use spotcheck::domain::{S3Access, S3Address, S3Place};
use spotcheck::image::source::{S3Source, Source};

use super::{bucket_with_a_photo, predict};
use crate::support::fault_proxy::{Fault, FaultProxy, Often};
use crate::support::seaweed::{
    ADMIN, BLIND, Bucket, IMPOSTOR, Login, READER, ROLE_PROFILE, STRANGER, Seaweed, use_profile,
};

/// A session token in the format of STS; no server knows it.
const TOKEN: &str = "FwoGZXIvYXdzEJr//////////wEaDGtoken+of/the+tests==";
/// The path of the log of a test's child process.
const LOG_VARIABLE: &str = "SPOTCHECK_TEST_LOG";
const PLACE_VARIABLE: &str = "SPOTCHECK_TEST_PLACE";

/// Every secret that a test has used.
fn secrets(proxy: &FaultProxy) -> Vec<String> {
    let mut secrets: Vec<String> =
        [ADMIN, READER, BLIND, STRANGER, IMPOSTOR].map(|login: Login| login.secret_key.to_owned()).to_vec();
    secrets.push(TOKEN.to_owned());
    let requests = proxy.requests();
    let tokens = requests.iter().filter_map(|request| request.header("x-amz-security-token"));
    secrets.extend(tokens.map(str::to_owned));
    let kinds = secrets.iter().collect::<std::collections::HashSet<_>>();
    assert!(kinds.len() > 6, "no session of a role was seen");
    secrets
}

fn assert_none(secrets: &[String], place: &str, text: &[u8]) {
    for secret in secrets {
        let found = text.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "{secret} is in {place}");
    }
}

/// Prepares a command.
type SignIn<'a> = dyn Fn(&mut Command) + 'a;

/// Runs `with` as each kind of user, with and without failures.
fn as_everybody(proxy: &FaultProxy, with: &mut dyn FnMut(&SignIn<'_>)) {
    for login in [READER, BLIND, STRANGER, IMPOSTOR] {
        with(&|command| login.sign_in(command, &proxy.endpoint()));
    }
    with(&|command| {
        READER.sign_in(command, &proxy.endpoint());
        command.env("AWS_SESSION_TOKEN", TOKEN);
    });
    with(&|command| use_profile(command, ROLE_PROFILE, &proxy.endpoint()));
    with(&|command| use_profile(command, "absent", &proxy.endpoint()));
    for (status, code) in [
        ("403 Forbidden", "AccessDenied"),
        ("400 Bad Request", "ExpiredToken"),
        ("403 Forbidden", "RequestTimeTooSkewed"),
    ] {
        proxy.inject(|request| request.method == "GET", Often::Always, Fault::error(status, code));
        with(&|command| use_profile(command, ROLE_PROFILE, &proxy.endpoint()));
        proxy.heal();
    }
}

#[test]
fn no_secret_is_printed_or_written() {
    let bucket = bucket_with_a_photo("secrets");
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("a.spotcheck");
    let mut messages = Vec::new();
    as_everybody(&proxy, &mut |sign_in| {
        let mut command = predict(&bucket.uri("photos/"));
        command.arg("--project").arg(&project).env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1");
        sign_in(&mut command);
        let output = command.output().unwrap();
        messages.extend(output.stdout);
        messages.extend(output.stderr);
    });
    assert!(!messages.is_empty() && project.exists());
    let secrets = secrets(&proxy);
    assert_none(&secrets, "its messages", &messages);
    for entry in walkdir::WalkDir::new(folder.path()) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let name = entry.path().display().to_string();
            assert_none(&secrets, &name, &std::fs::read(entry.path()).unwrap());
        }
    }
}

/// A process has one log and one set of credentials in its environment: the test starts itself for each of them.
#[test]
fn no_secret_is_logged() {
    if let Some(path) = std::env::var_os(LOG_VARIABLE) {
        log_everything(Path::new(&path));
        use_s3(&std::env::var(PLACE_VARIABLE).unwrap());
        return;
    }
    let bucket: Bucket = bucket_with_a_photo("logged");
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    as_everybody(&proxy, &mut |sign_in| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["s3::secrets::no_secret_is_logged", "--exact"])
            .env(LOG_VARIABLE, &path)
            .env(PLACE_VARIABLE, bucket.uri("photos/"));
        sign_in(&mut command);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    });
    let log = std::fs::read_to_string(&path).unwrap();
    assert!(log.contains("aws"), "nothing of AWS was logged:\n{log}");
    assert_none(&secrets(&proxy), "the log", log.as_bytes());
}

fn use_s3(place: &str) {
    let place = S3Place { access: S3Access::default(), ..S3Place::new(S3Address::parse(place).unwrap()) };
    let aws = Aws::new();
    // The result does not matter here.
    let _ = aws.s3(&place.access).identity(None);
    let _ = aws.s3(&place.access).list_buckets(None);
    if let Ok(source) = S3Source::open(&aws, &place, None) {
        for sample in source.pages().flat_map(|page| page.samples) {
            let _ = source.read(&sample.uri);
        }
    }
}

fn log_everything(path: &Path) {
    let file = File::options().create(true).append(true).open(path);
    let log = Box::leak(Box::new(Log(Mutex::new(file.unwrap()))));
    log::set_logger(log).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
}

struct Log(Mutex<File>);

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args().to_string().replace('\n', " ");
        let line = format!("{} {} {text}\n", record.level(), record.target());
        let _ = self.0.lock().unwrap().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}
