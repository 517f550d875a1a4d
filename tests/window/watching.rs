//! Jobs that fail, and jobs started on another computer, in the window.

use egui_kittest::Harness;
use serde_json::json;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, Leftovers, Loadable};

use crate::remote::{place, serve, start_the_job, type_into, wait_for_listing};
use crate::support::alone::alone;
use crate::support::control_plane::{ControlPlane, Failure, IMAGE, REGION, ROLE, echo_archive};
use crate::support::repository;
use crate::support::seaweed::{Bucket, Seaweed};
use crate::window::{click, open, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";
const DELETE_LEFTOVERS: &str = "Delete these…";
/// More often than a request is retried.
const AGAIN_AND_AGAIN: usize = 100;
const CREATE: &str = "CreateTransformJob";

/// A failure, and the facts that the window shows then.
type Case = (Failure, &'static [&'static str]);

/// The job is not started.
fn refusals() -> Vec<Case> {
    vec![
        (
            Failure::Throttling { operation: CREATE, times: AGAIN_AND_AGAIN },
            &["ThrottlingException: Rate exceeded"][..],
        ),
        (Failure::AccessDenied { operation: CREATE }, &["sagemaker:CreateTransformJob"]),
        (Failure::ResourceLimit, &["ResourceLimitExceeded: The account-level"]),
        (Failure::HangUp { operation: CREATE, times: AGAIN_AND_AGAIN }, &["not start job"]),
    ]
}

/// The job is started, and fails.
fn failures() -> Vec<Case> {
    vec![
        (Failure::NoCapacity, &["CapacityError: Unable to", "0 of 2 outputs"][..]),
        (Failure::NoPing, &["AlgorithmError: The primary", "ping health check", "0 of 2 outputs"]),
        (
            Failure::ContainerError("a.png"),
            &["AlgorithmError: See job", "1 of 2 outputs", "photos/a.png: Bad HTTP", "algorithm: 500"],
        ),
    ]
}

/// Runs `body` for each case, in a separate process whose control plane has this failure.
fn each(test: &str, cases: Vec<Case>, body: impl Fn(&mut Harness<'static, App>, &[&str])) {
    const CASE: &str = "SPOTCHECK_TEST_CASE";
    for (number, (failure, facts)) in cases.into_iter().enumerate() {
        let number = number.to_string();
        if std::env::var(CASE).is_ok_and(|of_process| of_process != number) {
            continue;
        }
        let mut plane = None;
        alone(
            test,
            |command| {
                serve(&mut plane)(command);
                plane.as_ref().unwrap().fail(failure);
                command.env(CASE, number);
            },
            || {
                let bucket = Seaweed::shared().bucket("window-failing");
                let image = std::fs::read(repository().join("assets/samples/chelsea.png")).unwrap();
                bucket.put("photos/a.png", &image);
                bucket.put("photos/b.png", &image);
                body(&mut asked_to_start(&bucket), facts);
            },
        );
    }
}

/// A window whose form was completed, checked and sent.
fn asked_to_start(bucket: &Bucket) -> Harness<'static, App> {
    let mut window = open(None, CLASSIFIER);
    window.state_mut().command(BrowseCommand::OpenPlace(Box::new(place(bucket))));
    wait_for(&mut window, "2 images, 1 predicted");
    wait_for_listing(&mut window);
    window.state_mut().command(Action::StartJob);
    wait_for(&mut window, "Start the job");
    type_into(&mut window, "Execution role", ROLE);
    start_the_job(&mut window);
    window
}

#[test]
fn refused_job_shows_the_aws_message() {
    each("watching::refused_job_shows_the_aws_message", refusals(), |window, facts| {
        for facts in facts {
            wait_for(window, facts);
        }
        assert!(sees(window, "Start the job"));
        assert!(window.state().state().settings.watched_jobs.is_empty());
    });
}

#[test]
fn failed_job_shows_reason_and_leftovers() {
    each("watching::failed_job_shows_reason_and_leftovers", failures(), |window, facts| {
        wait_for(window, "✗ failed");
        for facts in facts {
            wait_for(window, facts);
        }
        wait_for(window, DELETE_LEFTOVERS);
        assert!(sees(window, "The model efficientnet-lite0-"));
        assert!(sees(window, "The archive s3://"));
    });
}

#[test]
fn foreign_job_claims_no_leftover_state() {
    let mut plane = None;
    alone(
        "watching::foreign_job_claims_no_leftover_state",
        |command| {
            serve(&mut plane)(command);
            command.env("AWS_REGION", REGION);
            run_a_job(plane.as_ref().unwrap());
        },
        || {
            let mut window = open(None, CLASSIFIER);
            window.state_mut().command(Action::Jobs);
            wait_for(&mut window, "SageMaker jobs");
            type_into(&mut window, "Job name", "theirs");
            click(&mut window, "Open this job");
            wait_for(&mut window, "1 of 1 outputs");
            wait_until(&mut window, "the leftovers", |window| {
                let left = &window.state().state().remote.jobs.shown().unwrap().left;
                matches!(left, Loadable::Ready(Leftovers::Unrecorded))
            });
            assert!(sees(&window, "model their-model"));
            assert!(!sees(&window, DELETE_LEFTOVERS));
        },
    );
}

/// Runs a job without a record on this computer to its end.
fn run_a_job(plane: &ControlPlane) {
    let bucket = Seaweed::shared().bucket("window-theirs");
    bucket.put("model.tar.gz", &echo_archive());
    bucket.put("photos/a.jpg", b"an image");
    let model = json!({
        "ModelName": "their-model", "ExecutionRoleArn": ROLE,
        "PrimaryContainer": {"Image": IMAGE, "ModelDataUrl": bucket.uri("model.tar.gz")},
    });
    plane.console("CreateModel", &model).unwrap();
    let job = json!({
        "TransformJobName": "theirs", "ModelName": "their-model",
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": bucket.uri("photos/")}},
        },
        "TransformOutput": {"S3OutputPath": bucket.uri("out/")},
        "TransformResources": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1},
    });
    plane.console(CREATE, &job).unwrap();
    plane.wait_until_over("theirs");
}
