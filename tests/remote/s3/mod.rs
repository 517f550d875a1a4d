//! S3 locations on a real server: what is listed and read, with which permissions, and how failures are handled.

mod bad_days;
mod credentials;
mod keeping;
mod listing;
mod reading;
mod secrets;

use std::process::{Command, Output};

use spotcheck::aws::Aws;
use spotcheck::domain::{Credentials, S3Access, S3Address, S3Place};
use spotcheck::image::source::S3Source;

use crate::support::seaweed::{Bucket, READER, Seaweed};
use crate::support::{lines, repository, spotcheck, stderr};

/// A public prefix, through `endpoint`.
pub(crate) fn public_place(bucket: &Bucket, prefix: &str, endpoint: &str) -> S3Place {
    S3Place {
        access: S3Access {
            credentials: Credentials::Anonymous,
            region: Some("us-east-1".to_owned()),
            endpoint: Some(endpoint.to_owned()),
            ..S3Access::default()
        },
        ..S3Place::new(S3Address::new(&bucket.name, prefix))
    }
}

fn open(place: &S3Place) -> S3Source {
    S3Source::open(&Aws::new(), place, None).unwrap()
}

/// A private bucket with `photos/rocket.jpg`.
fn bucket_with_a_photo(name: &str) -> Bucket {
    let bucket = Seaweed::shared().bucket(name);
    let photo = std::fs::read(repository().join("assets/samples/rocket.jpg")).unwrap();
    bucket.put("photos/rocket.jpg", &photo);
    bucket
}

/// `spotcheck predict` over a source, with its predictions on stdout; without credentials yet.
fn predict(place: &str) -> Command {
    spotcheck(&["predict", place, "--model", "efficientnet-lite0", "--out", "-"])
}

/// `spotcheck predict` with the permissions to list and read.
fn predict_as_reader(place: &str, endpoint: &str) -> Output {
    let mut command = predict(place);
    READER.sign_in(&mut command, endpoint);
    command.output().unwrap()
}

/// The message of a failing command: one line, and nothing on stdout.
fn refusal(output: &Output) -> String {
    let messages = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(output.stdout.is_empty());
    assert_eq!(messages.trim_end().lines().count(), 1, "{messages}");
    messages
}
