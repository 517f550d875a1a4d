//! `spotcheck predict --tensorflow-serving`, with a fake server that has TensorFlow Serving's documented REST API: it
//! checks the requests, and returns scores derived from the bytes of the image. TensorFlow itself is not used.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::support::http_server::{HttpServer, Reply, Request};
use crate::support::{lines, repository, spotcheck, stderr};

const CLASSES: usize = 10;

fn samples() -> PathBuf {
    repository().join("assets/samples")
}

/// The image of a request such as `{"instances":[{"b64":…}]}`.
fn image_of(request: &Request) -> Vec<u8> {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let instances = body["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 1);
    BASE64_STANDARD.decode(instances[0]["b64"].as_str().unwrap()).unwrap()
}

fn class_of(image: &[u8]) -> usize {
    image.len() % CLASSES
}

/// `{"predictions": [[…]]}` with most of the probability on the class of this image.
fn prediction(image: &[u8]) -> Reply {
    let mut scores = [0.05; CLASSES];
    scores[class_of(image)] = 0.55;
    Reply::whole(json!({"predictions": [scores]}).to_string().as_bytes())
}

fn refusal(status: &'static str, message: &str) -> Reply {
    Reply { status, ..Reply::whole(json!({"error": message}).to_string().as_bytes()) }
}

fn predict(source: &Path, server: &HttpServer, more: &[&str]) -> Output {
    let url = server.url("/v1/models/cifar:predict");
    let mut command = spotcheck(&["predict"]);
    command.arg(source).args(["--tensorflow-serving", &url, "--labels", "cifar-10", "--out", "-"]).args(more);
    command.output().unwrap()
}

#[test]
fn images_are_sent_unchanged_in_listing_order() {
    let server = HttpServer::start(|request| {
        assert_eq!(request.path, "/v1/models/cifar:predict");
        assert_eq!(request.headers["content-type"], "application/json");
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["signature_name"], "bytes");
        prediction(&image_of(request))
    });
    let output = predict(&samples(), &server, &["--signature", "bytes"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let messages = stderr(&output);
    assert!(messages.contains("are probabilities"), "{messages}");
    assert!(messages.contains("response time: p50"), "{messages}");
    let lines = lines(&output);
    assert_eq!(lines.len(), 8);
    for line in &lines {
        let path = line["uri"].as_str().unwrap();
        let class = class_of(&std::fs::read(path).unwrap());
        assert_eq!(line["classes"][0]["index"], class, "{path}");
        assert_eq!(line["classes"][0]["score"], 0.55, "{path}");
        assert_eq!(line["model"], "cifar");
        let (width, height) = image::image_dimensions(path).unwrap();
        assert_eq!(
            (line["width"].as_u64(), line["height"].as_u64()),
            (Some(width.into()), Some(height.into())),
            "{path}"
        );
    }
    let names: Vec<&Value> = lines.iter().map(|line| &line["uri"]).collect();
    assert!(names.is_sorted_by_key(|name| name.as_str()), "{names:?}");
    assert_eq!(lines[0]["classes"][0]["label"].as_str().map(str::is_empty), Some(false));
}

#[test]
fn non_images_are_not_sent_and_a_refusal_costs_one() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        std::fs::copy(samples().join(from), folder.path().join(to)).unwrap();
    };
    copy("china.jpg", "a.jpg");
    copy("rocket.jpg", "b.jpg");
    copy("flower.jpg", "d.jpg");
    std::fs::write(folder.path().join("c.jpg"), "Dear diary").unwrap();
    let refused = std::fs::read(folder.path().join("b.jpg")).unwrap();
    let server = HttpServer::start(move |request| {
        let image = image_of(request);
        assert_ne!(image, b"Dear diary");
        if image == refused {
            return refusal("400 Bad Request", "Expected image (JPEG, PNG, or GIF), got empty file");
        }
        prediction(&image)
    });
    let output = predict(folder.path(), &server, &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let statuses: Vec<Value> = lines(&output).iter().map(|line| line["status"].clone()).collect();
    assert_eq!(statuses, ["ok", "failed", "failed", "ok"]);
    let messages = stderr(&output);
    assert!(messages.contains("got empty file") && messages.contains("check the signature"), "{messages}");
}

#[test]
fn run_in_a_project_resumes_after_a_busy_server() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = HttpServer::start(move |request| {
        if count.fetch_add(1, Ordering::SeqCst) == 1 {
            return refusal("503 Service Unavailable", "busy");
        }
        prediction(&image_of(request))
    });
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("run.spotcheck");
    let project = project.to_str().unwrap();
    let first = predict(&samples(), &server, &["--project", project, "--limit", "3"]);
    assert!(first.status.success(), "{}", stderr(&first));
    // One to detect the output format, three images, and one that was sent twice.
    assert_eq!(asked.swap(10, Ordering::SeqCst), 5);
    let rest = predict(&samples(), &server, &["--project", project, "--resume"]);
    assert!(rest.status.success(), "{}", stderr(&rest));
    assert_eq!(asked.load(Ordering::SeqCst) - 10, 1 + 5);
    let lines = lines(&rest);
    assert_eq!(lines.len(), 8);
    let uris: BTreeSet<&str> = lines.iter().filter_map(|line| line["uri"].as_str()).collect();
    assert_eq!(uris.len(), 8);
}

#[test]
fn image_failure_is_local_and_server_failure_is_final() {
    let is_up = Arc::new(AtomicUsize::new(1));
    let asked = Arc::new(AtomicUsize::new(0));
    let (up, count) = (Arc::clone(&is_up), Arc::clone(&asked));
    let server = HttpServer::start(move |request| {
        if request.body.is_empty() {
            assert_eq!(request.path, "/v1/models/cifar");
            let state = ["UNLOADING", "AVAILABLE"][up.load(Ordering::SeqCst)];
            let versions = json!([{"version": "1", "state": state}]);
            return Reply::whole(json!({"model_version_status": versions}).to_string().as_bytes());
        }
        if count.fetch_add(1, Ordering::SeqCst) >= 4 {
            return refusal("500 Internal Server Error", "out of memory");
        }
        prediction(&image_of(request))
    });
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("run.spotcheck");
    let project = project.to_str().unwrap();
    let run = |more: &[&str]| {
        let one_by_one = ["--concurrency", "1", "--project", project];
        predict(&samples(), &server, &[&one_by_one[..], more].concat())
    };
    // With a prediction, and without.
    let counts = |output: &Output| {
        let lines = lines(output);
        let done = lines.iter().filter(|line| line["status"] == "ok").count();
        (done, lines.len() - done)
    };
    // One request detects the output format; three images have a prediction.
    let failed = run(&["--limit", "4"]);
    assert_eq!(failed.status.code(), Some(3), "{}", stderr(&failed));
    assert_eq!(counts(&failed), (3, 1));

    asked.store(3, Ordering::SeqCst);
    is_up.store(0, Ordering::SeqCst);
    let stopped = run(&["--resume"]);
    assert_eq!(stopped.status.code(), Some(1), "{}", stderr(&stopped));
    assert!(stderr(&stopped).contains("--resume"), "{}", stderr(&stopped));
    assert_eq!(counts(&stopped), (3, 1));

    asked.store(0, Ordering::SeqCst);
    is_up.store(1, Ordering::SeqCst);
    let rest = run(&["--resume", "--limit", "6"]);
    assert_eq!(counts(&rest), (5, 1));
}

#[test]
fn error_of_every_request_ends_the_run() {
    let missing = HttpServer::start(|_| refusal("404 Not Found", "Servable not found for request: Latest(cifar)"));
    let output = predict(&samples(), &missing, &[]);
    assert_eq!(output.status.code(), Some(1));
    let messages = stderr(&output);
    assert!(messages.contains("model cifar") && messages.contains("Servable not found"), "{messages}");
    assert_eq!(missing.exchanges().len(), 1);

    for status in ["404 Not Found", "405 Method Not Allowed"] {
        let other = HttpServer::start(move |_| Reply::status(status));
        let messages = stderr(&predict(&samples(), &other, &[]));
        assert!(messages.contains("server") && messages.contains("host"), "{messages}");
        assert!(!messages.contains("mapping"), "{messages}");
        assert_eq!(other.exchanges().len(), 1);
    }

    let strange = HttpServer::start(|_| Reply::whole(b"{\"answer\": \"a cat\"}"));
    let output = predict(&samples(), &strange, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("mapping"), "{}", stderr(&output));
    assert_eq!(strange.exchanges().len(), 1);

    let mut unreachable = spotcheck(&["predict"]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1/models/m");
    unreachable.arg(samples()).args(["--tensorflow-serving", &url]);
    let messages = stderr(&unreachable.output().unwrap());
    assert!(messages.contains("TensorFlow Serving runs"), "{messages}");
}

#[test]
fn incompatible_flags_are_refused() {
    for (flags, words) in [
        (&["--tensorflow-serving", "127.0.0.1:8501"][..], "with http"),
        (&["--tensorflow-serving", "http://h/v1/models/m", "--model", "toy"], "be used with"),
        (&[][..], "--model"),
        (&["--tensorflow-serving", "http://h/v1/models/m", "--sagemaker-region", "eu-west-1"], "be used with"),
    ] {
        let mut command = spotcheck(&["predict"]);
        let output = command.arg(samples()).args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}
