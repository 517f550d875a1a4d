//! Failures of an S3 location are reported where they occur, and the window stays usable.

use std::io::Cursor;

use egui_kittest::Harness;
use spotcheck::domain::{Credentials, S3Access, S3Address, S3Place};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, Command, TaskKind, TaskOutcome};

use super::support::fault_proxy::{Fault, FaultProxy, Often, Request, Response};
use super::support::repository;
use super::support::seaweed::{Bucket, Seaweed};
use super::window::{click, open_in, samples, wait_for, wait_for_failed_listing, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";

/// A bucket with two images in `photos/`.
fn with_images(bucket: Bucket) -> Bucket {
    let image = std::fs::read(repository().join("assets/samples/chelsea.png")).unwrap();
    bucket.put("photos/1.png", &image);
    bucket.put("photos/2.png", &image);
    bucket
}

/// Opens it without credentials, through `endpoint`.
fn open(window: &mut Harness<'static, App>, bucket: &Bucket, endpoint: String) {
    let place = S3Place {
        access: S3Access { credentials: Credentials::Anonymous, endpoint: Some(endpoint), ..S3Access::default() },
        ..S3Place::new(S3Address::new(&bucket.name, "photos/"))
    };
    let open = Command::Browse(BrowseCommand::OpenPlace(Box::new(place)));
    window.state_mut().command(open);
}

#[test]
fn missing_list_permission_is_named() {
    let server = Seaweed::shared();
    let bucket = with_images(server.bucket("closed"));
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, &bucket, server.endpoint());
    let failure = wait_for_failed_listing(&mut window);
    assert!(failure.contains("s3:ListBucket") && failure.contains(&bucket.name), "{failure}");
}

#[test]
fn captive_portal_is_not_a_bucket() {
    let server = Seaweed::shared();
    let bucket = with_images(server.public_bucket("hotel"));
    let proxy = FaultProxy::before(server.address());
    let page = Response::html("200 OK", "Welcome to the hotel");
    proxy.inject(|_| true, Often::Always, Fault::Response(page));
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, &bucket, proxy.endpoint());
    wait_for(&mut window, "is not S3");
}

#[test]
fn silent_server_does_not_block_another_source() {
    let server = Seaweed::shared();
    let bucket = with_images(server.public_bucket("silent"));
    let proxy = FaultProxy::before(server.address());
    proxy.inject(|_| true, Often::Always, Fault::Silence);
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, &bucket, proxy.endpoint());
    window.step();
    proxy.wait_until_stalled();
    window.state_mut().command(BrowseCommand::Open(samples()));
    wait_for(&mut window, "8 images");
    let problems = &window.state().state().problems;
    assert!(problems.is_empty(), "the request was canceled: {:?}", problems.entries());
}

#[test]
fn forbidden_image_fails_alone() {
    let server = Seaweed::shared();
    let bucket = with_images(server.public_bucket("one-denied"));
    let proxy = FaultProxy::before(server.address());
    let denied = Fault::error("403 Forbidden", "AccessDenied");
    let is_first = |request: &Request| request.reads_key("photos/1.png");
    proxy.inject(is_first, Often::Always, denied);
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, &bucket, proxy.endpoint());
    wait_for(&mut window, "2 images");
    wait_for(&mut window, "s3:GetObject");
    window.key_press(egui::Key::ArrowRight);
    wait_for(&mut window, "tiger cat");
}

#[test]
fn incomplete_listing_shows_the_loaded_part() {
    let server = Seaweed::shared();
    let bucket = with_images(server.public_bucket("breaks-off"));
    let mut small = Cursor::new(Vec::new());
    image::RgbImage::new(1, 1).write_to(&mut small, image::ImageFormat::Png).unwrap();
    let name = |number: usize| format!("photos/{}.png", 3000 + number);
    bucket.fill(1500, name, small.get_ref());
    let proxy = FaultProxy::before(server.address());
    let denied = Fault::error("403 Forbidden", "AccessDenied");
    proxy.inject(Request::lists, Often::After(1), denied);
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, &bucket, proxy.endpoint());
    wait_for(&mut window, " problem");
    click(&mut window, " problem");
    wait_for(&mut window, "incomplete");
    let state = window.state().state();
    assert_eq!((state.samples.len(), state.problems.len()), (1000, 1), "{:?}", state.problems.entries());
}

#[test]
fn outage_leaves_images_unpredicted() {
    const IMAGES: usize = 120;
    let server = Seaweed::shared();
    let bucket = server.public_bucket("goes-away");
    let mut image = Cursor::new(Vec::new());
    image::RgbImage::new(8, 8).write_to(&mut image, image::ImageFormat::Png).unwrap();
    let name = |number: usize| format!("photos/{number:03}.png");
    bucket.fill(IMAGES, name, image.get_ref());
    let proxy = FaultProxy::before(server.address());
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, &bucket, proxy.endpoint());
    wait_for(&mut window, &format!("{IMAGES} images"));
    wait_until(&mut window, "a model", |window| Action::PredictAll.check(window.state().state()).is_ok());
    wait_until_idle(&mut window);
    proxy.inject(Request::reads, Often::After(5), Fault::Outage);
    window.state_mut().command(Action::PredictAll);
    wait_until(&mut window, "the failed task", |window| {
        let mut finished = window.state().state().tasks.finished();
        finished.any(|task| {
            matches!((&task.kind, &task.outcome), (TaskKind::Predict { .. }, TaskOutcome::Failed(reason)) if !reason.is_empty())
        })
    });
    wait_until_idle(&mut window);
    let predictions = &window.state().state().run().unwrap().predictions;
    assert_eq!(predictions.failed(), 0);
    let predicted = predictions.predicted();
    assert!(predicted < IMAGES, "{predicted}");

    proxy.restart();
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, &format!("{IMAGES} predicted"));
    assert_eq!(window.state().state().run().unwrap().predictions.failed(), 0);
}
