//! A command that fails prints one message with what happened, why and what to do; readable images are read.

use std::net::TcpListener;

use super::{bucket_with_a_photo, lines, predict, predict_as_reader, refusal, stderr};
use crate::support::fault_proxy::{Fault, FaultProxy, Often, Request, Response};
use crate::support::repository;
use crate::support::seaweed::{Bucket, READER, Seaweed};

fn photo(name: &str) -> Vec<u8> {
    std::fs::read(repository().join("assets/samples").join(name)).unwrap()
}

#[test]
fn unlistable_location_is_one_message() {
    let bucket = bucket_with_a_photo("refusals");
    let place = bucket.uri("photos/");
    let skewed = Response::s3_error("403 Forbidden", "RequestTimeTooSkewed", "The clocks differ.")
        .header("Date", "Sat, 21 Nov 2020 10:00:00 GMT");
    let denied = Response::s3_error("403 Forbidden", "AccessDenied", "Access Denied");
    let redirected = Response::s3_error("301 Moved Permanently", "PermanentRedirect", "Redirected.");
    for (prediction, words) in [
        (denied, "s3:ListBucket"),
        (skewed, "the clock of"),
        (redirected, "set the region"),
        (Response::s3_error("503 Slow Down", "SlowDown", "Slow."), "the request rate"),
        (Response::s3_error("500 Internal Server Error", "InternalError", "Oh."), "failed"),
        (Response::html("200 OK", "Welcome to the hotel"), "is not S3"),
        (Response::html("403 Forbidden", "Blocked"), "is not S3"),
        (Response::html("407 Proxy Authentication Required", "Who are you?"), "proxy"),
        (Response::html("502 Bad Gateway", "nginx"), "HTTP status 502"),
        (Response::html("404 Not Found", "nothing here"), "is not S3"),
    ] {
        let proxy = FaultProxy::before(Seaweed::shared().address());
        proxy.inject(|_| true, Often::Always, Fault::Response(prediction));
        let messages = refusal(&predict_as_reader(&place, &proxy.endpoint()));
        assert!(messages.contains(words), "{words}: {messages}");
        assert!(messages.contains(&format!("not list {place}")), "{messages}");
    }
}

#[test]
fn missing_bucket_is_one_message() {
    let endpoint = Seaweed::shared().endpoint();
    let messages = refusal(&predict_as_reader("s3://no-such-bucket/photos/", &endpoint));
    assert!(messages.contains("bucket no-such-bucket"), "{messages}");
}

#[test]
fn missing_folder_is_reported_with_siblings() {
    let bucket = bucket_with_a_photo("misspelt");
    let endpoint = Seaweed::shared().endpoint();
    let messages = refusal(&predict_as_reader(&bucket.uri("photo/"), &endpoint));
    assert!(messages.contains("as a folder") && messages.contains(&bucket.uri("photos/")), "{messages}");
}

#[test]
fn missing_server_is_one_message() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for (endpoint, words) in
        [(closed.as_str(), "refused the connection"), ("http://s3.no-such-place.invalid", "was not found")]
    {
        let messages = refusal(&predict_as_reader("s3://photos/cats/", endpoint));
        assert!(messages.contains(words) && messages.contains(endpoint), "{messages}");
    }
}

#[test]
fn bucket_region_is_found_and_remembered() {
    let bucket = bucket_with_a_photo("other-region");
    let place = bucket.uri("photos/");
    let is_wrong = |request: &Request| request.region() != Some("eu-central-1");
    let malformed = Response {
        body: b"<Error><Code>AuthorizationHeaderMalformed</Code>\
            <Message>The authorization header is malformed</Message>\
            <Region>eu-central-1</Region></Error>"
            .to_vec(),
        ..Response::s3_error("400 Bad Request", "", "")
    };
    for prediction in [
        Response::s3_error("301 Moved Permanently", "PermanentRedirect", "Redirected.")
            .header("x-amz-bucket-region", "eu-central-1"),
        malformed,
    ] {
        let proxy = FaultProxy::before(Seaweed::shared().address());
        proxy.inject(is_wrong, Often::Always, Fault::Response(prediction));
        let output = predict_as_reader(&place, &proxy.endpoint());
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(lines(&output)[0]["status"], "ok");
        assert_eq!(proxy.count(is_wrong), 1, "it was asked in the wrong region again");
    }
}

#[test]
fn listing_survives_failed_requests() {
    let bucket = bucket_with_a_photo("faltering");
    for fault in [
        Fault::CutAfter(100),
        Fault::HangUp,
        Fault::error("503 Slow Down", "SlowDown"),
        Fault::error("500 Internal Server Error", "InternalError"),
    ] {
        let proxy = FaultProxy::before(Seaweed::shared().address());
        proxy.inject(Request::lists, Often::First(2), fault.clone());
        let output = predict_as_reader(&bucket.uri("photos/"), &proxy.endpoint());
        assert!(output.status.success(), "{fault:?}: {}", stderr(&output));
        assert_eq!(lines(&output).len(), 1);
    }
}

#[test]
fn incomplete_listing_is_reported_and_predicted() {
    let server = Seaweed::shared();
    let bucket = server.bucket("unfinished");
    bucket.put("photos/0000.jpg", &photo("rocket.jpg"));
    bucket.fill(1500, |number| format!("photos/{:04}.jpg", number + 1), b"no image");
    let proxy = FaultProxy::before(server.address());
    let denied = Fault::error("403 Forbidden", "AccessDenied");
    proxy.inject(Request::lists, Often::After(1), denied);
    let output = predict_as_reader(&bucket.uri("photos/"), &proxy.endpoint());
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{messages}");
    assert!(messages.contains("incomplete"), "{messages}");
    let lines = lines(&output);
    assert_eq!(lines.len(), 1000);
    assert_eq!(lines[0]["status"], "ok");
}

#[test]
fn faulty_images_fail_alone() {
    let server = Seaweed::shared();
    let bucket = server.bucket("worst");
    let fates = [
        ("busy.jpg", Ok(())),
        ("cut.jpg", Ok(())),
        ("denied.jpg", Err("s3:GetObject")),
        ("failing.jpg", Err("try again")),
        ("good.jpg", Ok(())),
        ("hotel.jpg", Err("is not an image")),
        ("hung-up.jpg", Ok(())),
        ("never-whole.jpg", Err("kept dropping")),
        ("replaced.jpg", Err("changed since")),
        ("slow.jpg", Ok(())),
        ("vanished.jpg", Err("deleted since")),
    ];
    let local = tempfile::tempdir().unwrap();
    let names = ["rocket.jpg", "flower.jpg"].map(photo);
    for (number, (name, _)) in fates.iter().enumerate() {
        let photo = &names[number % names.len()];
        bucket.put(&format!("photos/{name}"), photo);
        std::fs::write(local.path().join(name), photo).unwrap();
    }
    let proxy = FaultProxy::before(server.address());
    inject_all(&proxy, &bucket);
    let output = predict_as_reader(&bucket.uri("photos/"), &proxy.endpoint());
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{messages}");
    let expected = predict(local.path().to_str().unwrap()).output().unwrap();
    let (lines, expected) = (lines(&output), lines(&expected));
    assert_eq!(lines.len(), fates.len());
    for ((line, expected), (name, fate)) in lines.iter().zip(&expected).zip(fates) {
        assert_eq!(line["uri"], bucket.uri(&format!("photos/{name}")));
        match fate {
            Ok(()) => assert_eq!(line["classes"], expected["classes"], "{line}"),
            Err(words) => {
                assert_eq!(line["status"], "failed", "{line}");
                assert!(line["error"].as_str().unwrap().contains(words), "{line}");
                assert!(messages.contains(name), "{name}");
            }
        }
    }
    assert_eq!(proxy.count(|request| request.method == "HEAD"), 0);
    // A byte of an object that was read shows whether a failure affects all of them.
    let is_whole = |request: &Request| request.header("range").is_none();
    assert_eq!(proxy.count(|request| request.reads_key("photos/good.jpg") && is_whole(request)), 1);
    assert_eq!(proxy.count(|request| request.reads_key("photos/denied.jpg")), 1);
}

fn inject_all(proxy: &FaultProxy, bucket: &Bucket) {
    // What happens at the server just before a request arrives.
    let before = bucket.clone();
    let meanwhile = move |request: &Request| {
        if request.reads_key("photos/vanished.jpg") {
            before.delete("photos/vanished.jpg");
        }
        if request.reads_key("photos/replaced.jpg") && request.header("range").is_some() {
            before.put("photos/replaced.jpg", b"something else");
        }
        false
    };
    proxy.inject(meanwhile, Often::Always, Fault::HangUp);
    let on = |name: &str, often, fault| {
        let key = format!("photos/{name}");
        proxy.inject(move |request| request.reads_key(&key), often, fault);
    };
    let failed = Fault::error("500 Internal Server Error", "InternalError");
    let hotel = Fault::Response(Response::html("200 OK", "Welcome to the hotel"));
    on("busy.jpg", Often::First(2), Fault::error("503 Slow Down", "SlowDown"));
    on("cut.jpg", Often::First(2), Fault::CutAfter(10_000));
    on("denied.jpg", Often::Always, Fault::error("403 Forbidden", "AccessDenied"));
    on("failing.jpg", Often::Always, failed);
    on("hotel.jpg", Often::Always, hotel);
    on("hung-up.jpg", Often::First(2), Fault::HangUp);
    on("never-whole.jpg", Often::Always, Fault::CutAfter(0));
    on("replaced.jpg", Often::First(1), Fault::CutAfter(5000));
    let slow = Fault::Trickle { bytes: 8192, pause: std::time::Duration::from_millis(20) };
    on("slow.jpg", Often::Always, slow);
}

#[test]
fn parallel_reads_are_bounded() {
    let server = Seaweed::shared();
    let bucket = server.bucket("crowd");
    bucket.fill(300, |number| format!("{number:04}.jpg"), b"no image");
    let proxy = FaultProxy::before(server.address());
    let late = Fault::Late(std::time::Duration::from_millis(50));
    proxy.inject(Request::reads, Often::Always, late);
    let mut command = predict(&bucket.uri(""));
    READER.sign_in(&mut command, &proxy.endpoint());
    let output = command.output().unwrap();
    assert_eq!(lines(&output).len(), 300);
    let most = proxy.most_at_once();
    assert!((8..=64).contains(&most), "{most} requests at once");
    assert_eq!(proxy.count(Request::reads), 300);
}
