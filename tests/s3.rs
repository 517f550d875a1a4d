//! Places in S3 on a real server: what is listed and read, who may, and what happens on bad days.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

#[path = "s3/keeping.rs"]
mod keeping;
#[path = "s3/listing.rs"]
mod listing;
#[path = "s3/reading.rs"]
mod reading;
mod support;

use spotcheck::aws::Aws;
use spotcheck::domain::{Credentials, S3Access, S3Address, S3Place};
use spotcheck::source::S3Source;
use support::seaweed::Bucket;

/// A place that anybody may read, through `endpoint`.
fn public_place(bucket: &Bucket, prefix: &str, endpoint: &str) -> S3Place {
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
