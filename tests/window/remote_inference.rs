//! Predicting from the window with a remote model: behind an endpoint of the tests' control plane, with the real
//! handler, and in a fake TensorFlow Serving that follows the documentation of its REST API.

use std::path::Path;
use std::process::{Command as Process, Output};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use serde_json::{Value, json};
use spotcheck::domain::Credentials;
use spotcheck::sagemaker::spec::remote_model::RemoteModel;
use spotcheck::sagemaker::spec::transform::SageMakerAccess;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, Command, InferenceCommand, Overlay, RemoteCheck, Step};

use crate::remote::{agrees_with_local, replace_in, serve, type_into, wait_for_listing, wait_until_unknown};
use crate::support::alone::alone;
use crate::support::control_plane::{ControlPlane, Failure, IMAGE, REGION, ROLE, archive};
use crate::support::http_server::{HttpServer, Reply, Request};
use crate::support::seaweed::{Bucket, Seaweed};
use crate::support::spotcheck_at;
use crate::window::{
    click, folder_of, home_with_runtime, open, open_with_model_at, samples, sees, wait_for, wait_for_notice,
    wait_for_overlay, wait_until,
};

const CLASSIFIER: &str = "efficientnet-lite0";

/// The reason of [`Failure::NoPing`] in AWS's words.
const NO_PING: &str = "ping health check";

/// A container whose model fails with its own message.
const BROKEN: &str = r#"
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, b"")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(500, b"CUDA out of memory")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = HTTPServer(("127.0.0.1", int(os.environ["SAGEMAKER_BIND_TO_PORT"])), Handler)
print(f"port {server.server_port}", flush=True)
server.serve_forever()
"#;

/// Deploys an archive behind an endpoint of this name.
fn deploy(bucket: &Bucket, name: &str, archive: &[u8]) {
    let output = deployment(bucket, name, archive, &[]);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
}

fn deployment(bucket: &Bucket, name: &str, archive: &[u8], more: &[&str]) -> Output {
    let key = format!("models/{name}.tar.gz");
    bucket.put(&key, archive);
    let home = tempfile::tempdir().unwrap();
    let uri = bucket.uri(&key);
    let mut args = vec!["endpoint", "deploy", "--name", name, "--archive", &uri];
    args.extend(["--role", ROLE, "--image", IMAGE]);
    args.extend(["--instance-type", "ml.m5.xlarge", "--hourly-price", "0.25"]);
    args.extend(more);
    spotcheck_at(home.path(), &args).output().unwrap()
}

/// The archive that `transform package` creates for the model used here.
fn packaged() -> Vec<u8> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("model.tar.gz");
    let out = path.to_str().unwrap();
    let args = ["transform", "package", "--model", CLASSIFIER, "--out", out];
    let output = spotcheck_at(home.path(), &args).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    std::fs::read(path).unwrap()
}

fn open_folder(folder: &Path, images: usize) -> Harness<'static, App> {
    let mut window = open(Some(folder), CLASSIFIER);
    wait_for(&mut window, &format!("{images} images, 1 predicted"));
    wait_for_listing(&mut window);
    window
}

/// Waits until the model in the dialog was checked; returns whether it is available, and the findings.
fn wait_for_check(window: &mut Harness<'static, App>, name: &str) -> RemoteCheck {
    fn check<'w>(window: &'w Harness<'static, App>, name: &str) -> Option<&'w RemoteCheck> {
        let check = window.state().state().remote.remote_model.check.ready()?;
        let first = check.found.first()?;
        (first.contains(name) && check.found.iter().all(|line| sees(window, line))).then_some(check)
    }
    wait_until(window, "what was found", |window| check(window, name).is_some());
    check(window, name).unwrap().clone()
}

/// Waits until predicting fails, and the failure with a way to retry is shown.
#[track_caller]
fn wait_for_failure(window: &mut Harness<'static, App>, facts: &[&str]) {
    wait_until(window, "a failure", |window| {
        let failure = window.state().state().inference.failure();
        failure.is_some_and(|failure| {
            facts.iter().all(|fact| failure.message.contains(fact)) && sees(window, &failure.message)
        })
    });
    assert!(sees(window, "Retry"));
}

fn choose_endpoint(window: &mut Harness<'static, App>, name: &str) {
    window.state_mut().command(Action::PredictAtEndpoint);
    wait_for_overlay(window, Overlay::RemoteInference);
    type_into(window, "Endpoint name", name);
}

fn choose_tf_serving(window: &mut Harness<'static, App>, address: &str) {
    window.state_mut().command(Action::PredictInTfServing);
    wait_for_overlay(window, Overlay::RemoteInference);
    type_into(window, "Model address", address);
}

/// Waits until `count` images have a prediction from the remote model, and no request is pending.
fn wait_for_predictions(window: &mut Harness<'static, App>, count: usize) {
    wait_until(window, &format!("{count} remote predictions"), |window| {
        let state = window.state().state();
        let run = state.run();
        state.tasks.is_idle()
            && run.is_some_and(|run| !run.info.key.made.is_here() && run.predictions.predicted() == count)
    });
}

#[test]
fn endpoint_predicts_only_the_image_in_view() {
    let mut plane = None;
    alone("remote_inference::endpoint_predicts_only_the_image_in_view", regional(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-endpoint");
        deploy(&bucket, "photos", &packaged());
        let folder = tempfile::tempdir().unwrap();
        for name in ["chelsea.png", "coffee.png", "rocket.jpg"] {
            std::fs::copy(samples().join(name), folder.path().join(name)).unwrap();
        }
        let mut window = open_folder(folder.path(), 3);
        click(&mut window, "Predict all");
        wait_for(&mut window, "3 images, 3 predicted");

        choose_endpoint(&mut window, "photos");
        let found = wait_for_check(&mut window, "photos");
        assert!(found.is_available && found.found[0].contains(REGION), "{found:?}");
        click(&mut window, "Connect");
        wait_for(&mut window, "by endpoint photos");
        wait_for(&mut window, "3 images, 1 predicted");
        wait_for_predictions(&mut window, 1);

        // The next image is sent when shown; going back sends nothing.
        window.state_mut().command(BrowseCommand::Walk(Step::By(1)));
        wait_for_predictions(&mut window, 2);
        window.state_mut().command(BrowseCommand::Walk(Step::By(-1)));
        wait_for_predictions(&mut window, 2);

        // The requested images.
        click(&mut window, "Predict all");
        wait_for_predictions(&mut window, 3);
        window.state_mut().command(Action::CompareWithLocal);
        agrees_with_local(&mut window, 3);

        click(&mut window, "Predict on this");
        wait_for(&mut window, "All models");
    });
    // The parent process of the test has none.
    if let Some(plane) = plane {
        assert_eq!(plane.count("InvokeEndpoint"), 3);
    }
}

#[test]
fn endpoint_errors_are_explained() {
    let mut plane = None;
    alone("remote_inference::endpoint_errors_are_explained", regional(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-broken");
        deploy(&bucket, "broken", &archive(&[("code/serve.py", BROKEN.as_bytes())]));
        let folder = folder_of(1, "chelsea.png");
        let mut large = std::fs::read(samples().join("chelsea.png")).unwrap();
        // A decoder stops at its end; the whole file is sent.
        large.resize(6_300_000, 0);
        std::fs::write(folder.path().join("large.png"), large).unwrap();
        let mut window = open_folder(folder.path(), 2);

        choose_endpoint(&mut window, "missing");
        wait_for(&mut window, "Endpoint missing does");
        click(&mut window, "Connect");
        wait_for_failure(&mut window, &["endpoint missing", "the region"]);

        let broken = RemoteModel::at_endpoint("broken", SageMakerAccess::default());
        let edit = Command::Inference(InferenceCommand::EditRemoteModel(Box::new(broken)));
        window.state_mut().command(edit);
        assert!(wait_for_check(&mut window, "broken").is_available);
        click(&mut window, "Connect");
        // The container's message, and its log group.
        wait_for_failure(&mut window, &["CUDA out of memory", "/aws/sagemaker/Endpoints/broken"]);

        window.state_mut().command(BrowseCommand::Walk(Step::By(1)));
        wait_for(&mut window, "6291456");
    });
    // The parent process of the test has none.
    if let Some(plane) = plane {
        // One to the missing one, and one to the broken one: an image that is too large is not sent.
        assert_eq!(plane.count("InvokeEndpoint"), 2);
    }
}

/// A container that returns the same list of scores for every image.
const SCORES: &str = r#"
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(b'{"predictions": [[0.25, 0.75]]}')

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = HTTPServer(("127.0.0.1", int(os.environ["SAGEMAKER_BIND_TO_PORT"])), Handler)
print(f"port {server.server_port}", flush=True)
server.serve_forever()
"#;

fn scores() -> Vec<u8> {
    archive(&[("code/serve.py", SCORES.as_bytes())])
}

/// Starts deploying an archive behind an endpoint, without waiting.
fn begin_deploying(bucket: &Bucket, name: &str, archive: &[u8]) {
    let output = deployment(bucket, name, archive, &["--no-wait"]);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
}

fn regional(plane: &mut Option<ControlPlane>) -> impl FnOnce(&mut Process) {
    |command| {
        serve(plane)(command);
        command.env("AWS_REGION", REGION);
    }
}

#[test]
fn endpoint_in_creation_is_explained() {
    let mut plane = None;
    alone(
        "remote_inference::endpoint_in_creation_is_explained",
        |command| {
            regional(&mut plane)(command);
            plane.as_ref().unwrap().pause_jobs();
        },
        || {
            let bucket = Seaweed::shared().bucket("window-early");
            begin_deploying(&bucket, "early", &scores());
            let folder = folder_of(2, "chelsea.png");
            let mut window = open_folder(folder.path(), 2);
            choose_endpoint(&mut window, "early");
            let found = wait_for_check(&mut window, "early");
            assert!(!found.is_available && found.found[0].contains("Creating"), "{found:?}");
            click(&mut window, "Connect");
            wait_for_failure(&mut window, &["endpoint early", "Creating", "InService"]);
        },
    );
}

#[test]
fn failed_endpoint_is_explained_in_the_dialog() {
    let mut plane = None;
    alone(
        "remote_inference::failed_endpoint_is_explained_in_the_dialog",
        |command| {
            regional(&mut plane)(command);
            plane.as_ref().unwrap().fail(Failure::NoPing);
        },
        || {
            let bucket = Seaweed::shared().bucket("window-failed");
            // The deployment fails, and the command with it.
            drop(deployment(&bucket, "failed", &scores(), &[]));
            let folder = folder_of(2, "chelsea.png");
            let mut window = open_folder(folder.path(), 2);
            choose_endpoint(&mut window, "failed");
            let found = wait_for_check(&mut window, "failed");
            assert!(!found.is_available && found.found[0].contains("Failed"), "{found:?}");
            assert!(found.found.iter().any(|line| line.contains(NO_PING)), "{found:?}");
            click(&mut window, "Connect");
            wait_for_failure(&mut window, &["endpoint failed", "Failed (AWS: ", NO_PING]);
        },
    );
}

#[test]
fn deleted_endpoint_keeps_its_predictions() {
    let mut plane = None;
    alone("remote_inference::deleted_endpoint_keeps_its_predictions", regional(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-gone");
        deploy(&bucket, "gone", &scores());
        let folder = folder_of(2, "chelsea.png");
        let mut window = open_folder(folder.path(), 2);
        choose_endpoint(&mut window, "gone");
        assert!(wait_for_check(&mut window, "gone").is_available);
        click(&mut window, "Connect");
        wait_for_predictions(&mut window, 1);

        let home = tempfile::tempdir().unwrap();
        let delete = ["endpoint", "delete", "gone", "--yes"];
        let deleted = spotcheck_at(home.path(), &delete).output().unwrap();
        assert!(deleted.status.success(), "{deleted:?}");
        window.state_mut().command(BrowseCommand::Walk(Step::By(1)));
        wait_for_failure(&mut window, &["endpoint gone", "the region"]);
        wait_for_predictions(&mut window, 1);
        assert!(sees(&window, "2 images, 1 predicted"));
    });
}

#[test]
fn expired_session_names_the_renewal_command() {
    let mut plane = None;
    alone(
        "remote_inference::expired_session_names_the_renewal_command",
        |command| {
            regional(&mut plane)(command);
            let plane = plane.as_ref().unwrap();
            plane.fail(Failure::SessionOverAfter { operation: "InvokeEndpoint", times: 1 });
        },
        || {
            let bucket = Seaweed::shared().bucket("window-session");
            deploy(&bucket, "cats", &scores());
            let folder = folder_of(2, "chelsea.png");
            let mut window = open_folder(folder.path(), 2);
            choose_endpoint(&mut window, "cats");
            assert!(wait_for_check(&mut window, "cats").is_available);
            click(&mut window, "Connect");
            wait_for_predictions(&mut window, 1);
            window.state_mut().command(BrowseCommand::Walk(Step::By(1)));
            wait_for_failure(&mut window, &["expired", "credentials"]);
            wait_for_predictions(&mut window, 1);
        },
    );
}

#[test]
fn expired_sign_in_offers_the_renewal_command() {
    let home = tempfile::tempdir().unwrap();
    let config = "[profile work]\nsso_session = company\nsso_account_id = 123456789012\nsso_role_name = \
        Reader\nregion = us-east-1\n\n\
         [sso-session company]\nsso_region = us-east-1\nsso_start_url = https://example.awsapps.com/start\n";
    let mut plane = None;
    alone(
        "remote_inference::expired_sign_in_offers_the_renewal_command",
        |command| {
            regional(&mut plane)(command);
            let path = home.path().join("config");
            std::fs::write(&path, config).unwrap();
            command.env("AWS_CONFIG_FILE", path).env("HOME", home.path());
        },
        || {
            let folder = folder_of(2, "chelsea.png");
            let mut window = open_folder(folder.path(), 2);
            let access =
                SageMakerAccess { credentials: Credentials::Profile("work".to_owned()), ..SageMakerAccess::default() };
            let cats = RemoteModel::at_endpoint("cats", access);
            let edit = Command::Inference(InferenceCommand::EditRemoteModel(Box::new(cats)));
            window.state_mut().command(edit);
            let command = "aws sso login --profile work";
            wait_for(&mut window, command);
            click(&mut window, "Connect");
            wait_for_failure(&mut window, &[command]);
            click(&mut window, "Copy command");
            wait_for_notice(&mut window, "command");
        },
    );
    if let Some(plane) = plane {
        assert_eq!(plane.count("InvokeEndpoint"), 0);
    }
}

/// A model of CIFAR-10 in TensorFlow Serving: the most probable class is the last digit of the image length.
fn cifar() -> HttpServer {
    HttpServer::start(|request| match request.path.as_str() {
        "/v1/models/cifar" => json_reply(&json!({
            "model_version_status": [{
                "version": "1",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }]
        })),
        "/v1/models/cifar/metadata" => json_reply(&json!({
            "model_spec": {"name": "cifar", "signature_name": "", "version": "1"},
            "metadata": {"signature_def": {"signature_def": {
                "serving_default": {"inputs": {"image": {"dtype": "DT_FLOAT"}}},
                "encoded": {"inputs": {"bytes": {"dtype": "DT_STRING"}}},
            }}}
        })),
        "/v1/models/cifar:predict" => {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            assert_eq!(body["signature_name"], "encoded");
            let mut scores = [0.05; 10];
            scores[image_of(&body).len() % 10] = 0.55;
            json_reply(&json!({"predictions": [scores]}))
        }
        other => panic!("{other}"),
    })
}

fn image_of(body: &Value) -> Vec<u8> {
    let instances = body["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 1);
    let image = instances[0]["b64"].as_str().unwrap();
    BASE64_STANDARD.decode(image).unwrap()
}

fn json_reply(prediction: &Value) -> Reply {
    Reply::whole(prediction.to_string().as_bytes())
}

fn predictions(server: &HttpServer) -> usize {
    let exchanges = server.exchanges();
    let is_prediction = |request: &Request| request.path.ends_with(":predict");
    exchanges.iter().filter(|exchange| is_prediction(&exchange.request)).count()
}

#[test]
fn tf_serving_uses_chosen_signature_and_labels() {
    let server = cifar();
    let folder = folder_of(3, "chelsea.png");
    let mut window = open_folder(folder.path(), 3);
    choose_tf_serving(&mut window, &server.url("/v1/models/cifar"));
    // The default signature takes an array of numbers.
    let found = wait_for_check(&mut window, "cifar");
    assert!(!found.is_available && found.found[0].contains("version 1"), "{found:?}");
    assert!(found.found.iter().any(|line| line.contains("serving_default")), "{found:?}");
    // The field keeps the focus during the check.
    type_into(&mut window, "Signature", "enc");
    wait_for(&mut window, "Signature enc ");
    let field = window.get_by_role_and_label(Role::TextInput, "Signature");
    field.type_text("oded");
    wait_for(&mut window, "Signature encoded ");
    assert!(wait_for_check(&mut window, "cifar").is_available);
    assert_eq!(predictions(&server), 0, "looking costs no prediction");
    type_into(&mut window, "Label set", "cifar-10");
    click(&mut window, "Connect");
    wait_for(&mut window, "by TensorFlow Serving");
    wait_for_predictions(&mut window, 1);
    let len = std::fs::metadata(samples().join("chelsea.png")).unwrap().len();
    let state = window.state().state();
    let best = state.shown.prediction.as_ref().unwrap().classes()[0].clone();
    assert_eq!((u64::from(best.index), best.score), (len % 10, 0.55));
    assert_eq!(predictions(&server), 1);

    window.state_mut().command(Action::SelectAll);
    window.state_mut().command(Action::PredictSelection);
    wait_until(&mut window, "the selection", |window| {
        let run = window.state().state().run();
        run.is_some_and(|run| run.predictions.predicted() == 3)
    });
    wait_for_predictions(&mut window, 3);
    assert_eq!(predictions(&server), 4, "one is predicted again");
}

/// A model whose predictions are unknown to Spotcheck.
fn strange() -> HttpServer {
    HttpServer::start(|request| match request.path.as_str() {
        "/v1/models/own:predict" => json_reply(&json!({"verdict": {"certainty": [0.25, 0.75]}})),
        // A proxy that rejects every other path.
        _ => Reply::status("404 Not Found"),
    })
}

/// A window with a separate folder for mappings.
fn open_at_home(home: &Path, folder: &Path, images: usize) -> Harness<'static, App> {
    let mut window = open_with_model_at(home_with_runtime(home), CLASSIFIER);
    window.state_mut().command(BrowseCommand::Open(folder.to_owned()));
    wait_for(&mut window, &format!("{images} images, 1 predicted"));
    wait_for_listing(&mut window);
    window
}

#[test]
fn unknown_predictions_use_a_saved_mapping() {
    let server = strange();
    let (home, folder) = (tempfile::tempdir().unwrap(), folder_of(2, "chelsea.png"));
    let labels = home.path().join("labels.txt");
    std::fs::write(&labels, "dog\ncat\n").unwrap();
    let mut window = open_at_home(home.path(), folder.path(), 2);
    choose_tf_serving(&mut window, &server.url("/v1/models/own:predict"));
    wait_for(&mut window, "model own");
    click(&mut window, "Connect");
    wait_for(&mut window, "Set up a");
    assert!(window.state().state().inference.failure().is_some());
    assert_eq!(predictions(&server), 1);

    // Its response is available for creating a mapping.
    click(&mut window, "Set up a");
    wait_until_unknown(&mut window);
    assert!(sees(&window, "\"certainty\": [0.25, 0.75]"));
    click(&mut window, "Make a mapping");
    wait_for(&mut window, "class 1 75.0%");
    let file = labels.to_str().unwrap();
    type_into(&mut window, "Label set", file);
    wait_for(&mut window, "cat 75.0%");
    replace_in(&mut window, "Mapping name", "Verdicts");
    click(&mut window, "Save the mapping");
    wait_for(&mut window, "✓ saved");
    let kept = home.path().join("data/mappings");
    assert!(kept.join("verdicts.toml").exists());
    assert!(kept.join("verdicts.txt").exists());
    assert_eq!(predictions(&server), 1, "trying costs no prediction");
    click(&mut window, "Connect");
    wait_for_predictions(&mut window, 1);
    wait_for(&mut window, "cat 75.0%");
    assert_eq!(predictions(&server), 2);

    // The dialog shows it the next time, and it is deleted after a confirmation.
    click(&mut window, "Change…");
    wait_for(&mut window, "✓ saved");
    click(&mut window, "Delete the saved");
    wait_for(&mut window, "mapping Verdicts?");
    click(&mut window, "Keep it");
    assert!(!sees(&window, "mapping Verdicts?"));
    assert_eq!(window.state().state().remote.reading.saved.len(), 1);
    click(&mut window, "Delete the saved");
    click(&mut window, "Delete it");
    wait_until(&mut window, "an empty list of mappings", |window| {
        window.state().state().remote.reading.saved.is_empty()
    });
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 0);
    // The fields remain, so that it can be saved again.
    wait_for(&mut window, "Save the mapping");
    assert!(!sees(&window, "✓ saved"));
}

#[test]
fn preview_belongs_to_its_address() {
    let server = strange();
    let (home, folder) = (tempfile::tempdir().unwrap(), folder_of(2, "chelsea.png"));
    let mut window = open_at_home(home.path(), folder.path(), 2);
    choose_tf_serving(&mut window, &server.url("/v1/models/own:predict"));
    wait_for(&mut window, "model own");
    click(&mut window, "Preview a prediction");
    wait_until_unknown(&mut window);
    assert_eq!(predictions(&server), 1);
    click(&mut window, "Make a mapping");
    wait_for(&mut window, "class 1 75.0%");

    // A preview of another model differs, or fails.
    let other = server.url("/v1/models/other:predict");
    replace_in(&mut window, "Model address", &other);
    wait_until(&mut window, "the other address", |window| {
        sees(window, "sends the image") && !sees(window, "class 1 75.0%")
    });
    click(&mut window, "Preview a prediction");
    wait_until(&mut window, "why there is none", |window| {
        let form = &window.state().state().remote.remote_model;
        form.response.failure().is_some()
    });
    let own = server.url("/v1/models/own:predict");
    replace_in(&mut window, "Model address", &own);
    wait_for(&mut window, "class 1 75.0%");
    // No run was created, and no model was chosen.
    assert!(sees(&window, "2 images, 1 predicted"));
    click(&mut window, "Connect");
    wait_for_predictions(&mut window, 1);
    assert_eq!(predictions(&server), 3);
}

#[test]
fn unreachable_server_is_reported() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap().port();
    let folder = folder_of(1, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 image, 1 predicted");
    let address = format!("http://127.0.0.1:{port}/v1/models/m");
    choose_tf_serving(&mut window, &address);
    wait_for(&mut window, "the connection failed");
    // The message also contains this word.
    window.get_by_label("Connect").click();
    window.step();
    wait_for_failure(&mut window, &["TensorFlow Serving"]);
    assert!(sees(&window, "m in TensorFlow"));
}
