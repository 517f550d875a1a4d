//! Objects arrive complete and unchanged or fail with a reason, whatever happens to the connection.

use std::sync::Arc;
use std::time::Duration;

use spotcheck::aws::{Aws, AwsErrorKind, RetryPolicy};
use spotcheck::domain::SampleUri;
use spotcheck::image::source::{S3Source, Source, SourceError, for_task};
use spotcheck::tasks::{ProgressUnit, TaskControl};

use super::public_place;
use crate::support::fault_proxy::{Fault, FaultProxy, Often, Request, Response};
use crate::support::seaweed::{Bucket, Seaweed};

const KEY: &str = "photos/one.jpg";

/// Short timeouts and waits, in the same proportions.
const SHORT: RetryPolicy = RetryPolicy {
    response_timeout: Duration::from_secs(1),
    send_timeout: Duration::from_secs(1),
    stall_timeout: Duration::from_millis(500),
    first_backoff: Duration::from_millis(50),
    attempts: 4,
};

/// A bucket with one object, read through a proxy.
struct Object {
    bucket: Bucket,
    proxy: FaultProxy,
    source: Arc<dyn Source>,
    uri: SampleUri,
}

impl Object {
    fn new(name: &str) -> Self {
        let server = Seaweed::shared();
        let bucket = server.public_bucket(name);
        bucket.put(KEY, &content());
        let proxy = FaultProxy::before(server.address());
        let place = public_place(&bucket, "photos/", &proxy.endpoint());
        let source = S3Source::open(&Aws::with_retry_policy(SHORT), &place, None).unwrap();
        Self { uri: SampleUri::new(bucket.uri(KEY)), source: Arc::new(source), bucket, proxy }
    }

    fn inject(&self, often: Often, fault: Fault) {
        self.proxy.inject(|request| request.reads_key(KEY), often, fault);
    }

    fn read_well(&self) {
        let read = self.source.read(&self.uri);
        assert!(read.unwrap() == content());
    }

    fn read_badly(&self) -> AwsErrorKind {
        match self.source.read(&self.uri) {
            Err(SourceError::Aws(error)) => error.kind,
            other => panic!("{other:?}"),
        }
    }

    /// The `Range` of each request for it.
    fn ranges(&self) -> Vec<Option<String>> {
        let requests = self.proxy.requests().into_iter();
        requests
            .filter(|request| request.reads_key(KEY))
            .map(|request| request.header("range").map(str::to_owned))
            .collect()
    }
}

/// Larger than any buffer, and without two equal parts.
fn content() -> Vec<u8> {
    (0..400_003_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

#[test]
fn twice_cut_object_is_resumed() {
    let object = Object::new("cut");
    object.inject(Often::First(2), Fault::CutAfter(600_000));
    object.read_well();
    let ranges = object.ranges();
    assert_eq!(ranges, [None, Some("bytes=600000-".to_owned()), Some("bytes=1200000-".to_owned())]);
    let requests = object.proxy.requests();
    assert!(
        requests[2..].iter().all(|request| request.header("if-match").is_some()),
        "a later part must be of the same object"
    );
}

#[test]
fn always_cut_object_ends_in_an_error() {
    let object = Object::new("always-cut");
    object.inject(Often::Always, Fault::CutAfter(10));
    assert_eq!(object.read_badly(), AwsErrorKind::Cut);
    let error = object.source.read(&object.uri).unwrap_err();
    assert!(error.to_string().contains(object.uri.as_str()), "{error}");
}

#[test]
fn object_replaced_during_a_read_is_not_mixed() {
    let object = Object::new("replaced");
    let bucket = object.bucket.clone();
    // Before the second part is requested, the object is replaced by another one of the same size.
    let replace = move |request: &Request| {
        if request.reads_key(KEY) && request.header("range").is_some() {
            bucket.put(KEY, &vec![0; content().len()]);
        }
        false
    };
    object.proxy.inject(replace, Often::Always, Fault::HangUp);
    object.inject(Often::First(1), Fault::CutAfter(600_000));
    assert_eq!(object.read_badly(), AwsErrorKind::Changed);
}

#[test]
fn object_deleted_after_listing_is_reported() {
    let object = Object::new("vanished");
    assert_eq!(object.source.pages().next().unwrap().samples.len(), 1);
    object.bucket.delete(KEY);
    let error = object.source.read(&object.uri).unwrap_err();
    assert!(matches!(error, SourceError::NotFound), "{error}");
}

#[test]
fn busy_and_failing_servers_are_retried() {
    for (name, fault) in [
        ("slow-down", Fault::error("503 Slow Down", "SlowDown")),
        ("failing", Fault::error("500 Internal Server Error", "InternalError")),
        ("hanging-up", Fault::HangUp),
    ] {
        let object = Object::new(name);
        object.inject(Often::First(2), fault);
        object.read_well();
        assert_eq!(object.ranges().len(), 3, "{name}");
    }
}

#[test]
fn endless_throttling_ends_in_an_error() {
    let object = Object::new("busy");
    object.inject(Often::Always, Fault::error("503 Slow Down", "SlowDown"));
    assert_eq!(object.read_badly(), AwsErrorKind::Throttled);
    assert!(object.ranges().len() > 1, "it was asked only once");
}

#[test]
fn slow_connection_is_waited_for() {
    let object = Object::new("slow");
    object.inject(Often::First(1), Fault::Late(Duration::from_millis(300)));
    object.read_well();
    object.proxy.heal();
    let trickle = Fault::Trickle { bytes: 100_000, pause: Duration::from_millis(20) };
    object.inject(Often::Always, trickle);
    object.read_well();
    assert_eq!(object.ranges(), [None, None]);
}

#[test]
fn stalled_object_is_resumed() {
    let object = Object::new("stalled");
    object.inject(Often::First(1), Fault::StallAfter(600_000));
    object.read_well();
    assert_eq!(object.ranges().len(), 2);
}

#[test]
fn silent_server_is_retried_and_then_an_error() {
    let object = Object::new("silent");
    object.inject(Often::First(1), Fault::Silence);
    object.read_well();
    object.proxy.heal();
    object.inject(Often::Always, Fault::Silence);
    assert_eq!(object.read_badly(), AwsErrorKind::Timeout);
    assert_eq!(object.ranges().len(), 2 + SHORT.attempts as usize);
}

#[test]
fn connection_that_always_stalls_is_an_error() {
    let object = Object::new("always-stalled");
    object.inject(Often::Always, Fault::StallAfter(0));
    assert_eq!(object.read_badly(), AwsErrorKind::Timeout);
}

#[test]
fn stalled_read_ends_on_cancel() {
    let object = Object::new("cancelled");
    object.inject(Often::Always, Fault::StallAfter(10));
    let control = TaskControl::new(ProgressUnit::Images);
    let source = for_task(&object.source, &control);
    let uri = object.uri.clone();
    let reader = std::thread::spawn(move || source.read(&uri));
    object.proxy.wait_until_stalled();
    control.cancel();
    let read = reader.join().unwrap();
    assert!(matches!(read, Err(SourceError::Cancelled)), "{read:?}");
}

#[test]
fn captive_portal_page_is_not_an_image() {
    let object = Object::new("portal");
    object.inject(Often::Always, Fault::Response(Response::html("403 Forbidden", "Blocked by your company")));
    assert_eq!(object.read_badly(), AwsErrorKind::NotS3);
}
