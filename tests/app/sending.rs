//! What the form that sends to SageMaker says is what is sent: the plan that was checked is shown, copied and started.

use std::process::Command as Process;

use egui_kittest::Harness;
use serde_json::Value;
use spotcheck::app::App;
use spotcheck::domain::{S3Address, S3Place};
use spotcheck::state::{Action, Command};

use crate::remote::{place, serve, type_into};
use crate::support::alone::alone;
use crate::support::control_plane::{ControlPlane, ROLE};
use crate::support::repository;
use crate::support::seaweed::{Bucket, Seaweed};
use crate::window::{click, open, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";

/// As [`serve`]; jobs are taken, and none of them runs.
fn serve_held(plane: &mut Option<ControlPlane>) -> impl FnOnce(&mut Process) {
    |command| {
        serve(plane)(command);
        plane.as_ref().unwrap().pause_jobs();
    }
}

/// A window on a prefix of this bucket, when all is listed.
fn open_prefix(bucket: &Bucket, prefix: &str, images: usize) -> Harness<'static, App> {
    let mut window = open(None, CLASSIFIER);
    let place = S3Place {
        address: S3Address::new(&bucket.name, prefix),
        ..place(bucket)
    };
    window
        .state_mut()
        .command(Command::OpenPlace(Box::new(place)));
    let listed = if images == 1 {
        "1 image, ".to_owned()
    } else {
        format!("{images} images, ")
    };
    wait_for(&mut window, &listed);
    wait_until(&mut window, "the end of the listing", |window| {
        !window.state().state().is_listing()
    });
    window
}

/// The form, with a role.
fn open_form(window: &mut Harness<'static, App>) {
    window.state_mut().command(Action::Send.into());
    wait_for(window, "Start the job");
    type_into(window, "Role that the container runs as", ROLE);
    wait_for(window, "Nothing speaks against it");
}

fn start(window: &mut Harness<'static, App>) {
    wait_for(window, "Nothing speaks against it");
    click(window, "Start the job");
    wait_for(window, "Jobs of SageMaker");
}

/// What SageMaker was asked last; `None` in the process that asks.
fn asked(plane: Option<ControlPlane>, operation: &str) -> Option<Value> {
    let requests = plane?.requests();
    let last = requests
        .into_iter()
        .rfind(|request| request.operation == operation);
    Some(last.unwrap().body)
}

fn photograph() -> Vec<u8> {
    std::fs::read(repository().join("assets/samples/chelsea.png")).unwrap()
}

#[test]
fn a_job_over_tfrecord_files_is_sent_with_the_payload_and_the_concurrency_that_are_shown() {
    let mut plane = None;
    alone(
        "sending::a_job_over_tfrecord_files_is_sent_with_the_payload_and_the_concurrency_that_are_shown",
        serve_held(&mut plane),
        || {
            let bucket = Seaweed::shared().bucket("sending-records");
            let records = repository().join("tests/tfrecord/photos.tfrecord");
            let records = std::fs::read(records).unwrap();
            bucket.put("records/photos.tfrecord", &records);
            let mut window = open_prefix(&bucket, "records/", 6);
            open_form(&mut window);
            assert!(sees(&window, "4 requests at once on each instance, chosen"));
            click(&mut window, "The same with the aws command line");
            wait_for(&mut window, r#""MaxConcurrentTransforms":4"#);
            // Files are not images.
            click(&mut window, "Cost");
            type_into(&mut window, "Images a second on an instance", "0.1");
            wait_for(
                &mut window,
                "6 images at 0.10 a second on each instance take about 60 s",
            );
            start(&mut window);
        },
    );
    let Some(asked) = asked(plane, "CreateTransformJob") else {
        return;
    };
    assert_eq!(asked["MaxConcurrentTransforms"], 4, "{asked}");
    assert_eq!(asked["MaxPayloadInMB"], 6, "{asked}");
    assert_eq!(asked["TransformInput"]["SplitType"], "TFRecord");
}

#[test]
fn a_payload_that_a_person_sets_lowers_the_concurrency_that_is_suggested() {
    let mut plane = None;
    alone(
        "sending::a_payload_that_a_person_sets_lowers_the_concurrency_that_is_suggested",
        serve_held(&mut plane),
        || {
            let bucket = Seaweed::shared().bucket("sending-payload");
            bucket.put("photos/a.png", &photograph());
            let mut window = open_prefix(&bucket, "photos/", 1);
            open_form(&mut window);
            click(&mut window, "Known types");
            click(&mut window, "ml.m5.24xlarge");
            wait_for(&mut window, "96 requests at once on each instance, chosen");
            click(&mut window, "Requests and records");
            click(&mut window, "Largest request in MB");
            wait_for(&mut window, "16 requests at once on each instance, chosen");
            start(&mut window);
        },
    );
    let Some(asked) = asked(plane, "CreateTransformJob") else {
        return;
    };
    assert_eq!(asked["MaxConcurrentTransforms"], 16, "{asked}");
    assert_eq!(asked["MaxPayloadInMB"], 6, "{asked}");
}

#[test]
fn price_and_rate_of_one_instance_type_are_not_used_for_another() {
    let mut plane = None;
    alone(
        "sending::price_and_rate_of_one_instance_type_are_not_used_for_another",
        serve_held(&mut plane),
        || {
            let bucket = Seaweed::shared().bucket("sending-price");
            bucket.put("photos/a.png", &photograph());
            let mut window = open_prefix(&bucket, "photos/", 1);
            open_form(&mut window);
            click(&mut window, "Cost");
            let price = "US dollars an hour for an instance";
            type_into(&mut window, price, "0");
            wait_for(&mut window, "⚠ This is no number above zero: 0");
            type_into(&mut window, price, ".25");
            type_into(&mut window, "Images a second on an instance", "0.5");
            wait_for(
                &mut window,
                "1 object at 0.50 a second on each instance take about 2 s",
            );
            wait_for(&mut window, "$0.25 an hour and instance, as given");

            click(&mut window, "Known types");
            click(&mut window, "ml.m5.24xlarge");
            wait_for(
                &mut window,
                "No price of ml.m5.24xlarge is known. For orientation",
            );
            start(&mut window);
            // Nor for the next job.
            open_form(&mut window);
            wait_for(
                &mut window,
                "No price of ml.m5.24xlarge is known. For orientation",
            );
        },
    );
}
