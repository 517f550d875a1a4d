//! Listings: their objects, their order, and the number of requests.

use spotcheck::domain::Sample;
use spotcheck::image::source::{Page, Source};

use super::{open, public_place};
use crate::support::fault_proxy::{FaultProxy, Request};
use crate::support::seaweed::Seaweed;

const MANY: usize = 100_000;
/// The keys per page of S3.
const PAGE: usize = 1000;

fn samples(pages: Vec<Page>) -> Vec<Sample> {
    let problems: Vec<_> = pages.iter().flat_map(|page| &page.problems).collect();
    assert!(problems.is_empty(), "{problems:?}");
    pages.into_iter().flat_map(|page| page.samples).collect()
}

#[test]
fn hundred_thousand_keys_are_listed_in_order() {
    let server = Seaweed::shared();
    let bucket = server.public_bucket("many");
    bucket.fill(MANY, |number| format!("photos/{number:06}.jpg"), b"a photo");
    let proxy = FaultProxy::before(server.address());
    let source = open(&public_place(&bucket, "photos/", &proxy.endpoint()));
    let mut pages = source.pages();
    let first = pages.next().unwrap();
    assert_eq!(first.samples.len(), PAGE);
    let asked = proxy.count(Request::lists);
    assert!(asked < 10, "the first page waited for {asked} pages");
    let listed = samples(std::iter::once(first).chain(pages).collect());
    assert_eq!(listed.len(), MANY);
    for (number, sample) in listed.iter().enumerate() {
        assert_eq!(sample.name, format!("{number:06}.jpg"));
        assert_eq!(sample.uri.as_str(), bucket.uri(&format!("photos/{number:06}.jpg")));
    }
    let one = &listed[MANY / 2];
    assert_eq!(one.size_bytes, 7);
    assert!(one.modified_ns.is_some() && one.etag.is_some(), "{one:?}");
    assert_eq!(proxy.count(Request::lists), MANY / PAGE);
    assert_eq!(proxy.requests().len(), MANY / PAGE, "nothing but the listing was asked for");
}

#[test]
fn dropped_listing_sends_no_further_requests() {
    let server = Seaweed::shared();
    let bucket = server.public_bucket("left");
    bucket.fill(20 * PAGE, |number| format!("{number:06}.jpg"), b"");
    let proxy = FaultProxy::before(server.address());
    let source = open(&public_place(&bucket, "", &proxy.endpoint()));
    let mut pages = source.pages();
    pages.next().unwrap();
    drop(pages);
    drop(source);
    let asked = proxy.count(Request::lists);
    assert!(asked < 10, "{asked} of 20 pages were asked for");
}

#[test]
fn keys_in_all_scripts_are_listed_in_byte_order() {
    let server = Seaweed::shared();
    let bucket = server.public_bucket("names");
    let mut keys = [
        "a b.jpg",
        "a%20b.jpg",
        "a&b=c.jpg",
        "a+b.jpg",
        "a#?;b.jpg",
        "a'(b)!*.jpg",
        "gato ñandú.jpg",
        "고양이/사진 1.jpg",
        "猫.jpg",
        "😺.jpg",
        "~tilde_-.jpg",
    ];
    keys.sort_unstable();
    for key in keys {
        bucket.put(&format!("all/{key}"), key.as_bytes());
    }
    let source = open(&public_place(&bucket, "all/", &server.endpoint()));
    let listed = samples(source.pages().collect());
    let names: Vec<&str> = listed.iter().map(|sample| sample.name.as_str()).collect();
    assert_eq!(names, keys);
    for sample in &listed {
        assert_eq!(source.read(&sample.uri).unwrap(), sample.name.as_bytes());
    }
}

#[test]
fn sibling_with_a_common_prefix_is_not_listed() {
    let server = Seaweed::shared();
    let bucket = server.public_bucket("siblings");
    for key in ["photos/in.jpg", "photos/sub/deep.jpg", "photos-old/out.jpg", "photos.jpg"] {
        bucket.put(key, b"x");
    }
    for prefix in ["photos", "photos/"] {
        let source = open(&public_place(&bucket, prefix, &server.endpoint()));
        let listed = samples(source.pages().collect());
        let names: Vec<&str> = listed.iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(names, ["in.jpg", "sub/deep.jpg"], "{prefix}");
    }
}
