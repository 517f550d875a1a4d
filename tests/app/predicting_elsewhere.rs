//! Predicting from the window with a model elsewhere: behind an endpoint of the tests' control plane, with the real handler, and in a
//! stand-in for TensorFlow Serving that speaks its REST API as its documentation has it.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use serde_json::{Value, json};
use spotcheck::app::App;
use spotcheck::domain::{RemoteModel, SageMakerAccess};
use spotcheck::state::{Action, Command, Step};

use crate::http_server::{HttpServer, Reply, Request};
use crate::remote::{serve, type_into};
use crate::support::alone::alone;
use crate::support::control_plane::{IMAGE, REGION, ROLE, archive};
use crate::support::seaweed::{Bucket, Seaweed};
use crate::support::spotcheck_at;
use crate::window::{click, folder_of, open, samples, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";

/// A container whose model fails, in words of its own.
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

/// Puts an archive behind an endpoint of this name.
fn deploy(bucket: &Bucket, name: &str, archive: &[u8]) {
    let key = format!("models/{name}.tar.gz");
    bucket.put(&key, archive);
    let home = tempfile::tempdir().unwrap();
    let uri = bucket.uri(&key);
    let mut args = vec!["endpoint", "deploy", "--name", name, "--archive", &uri];
    args.extend(["--role", ROLE, "--image", IMAGE]);
    args.extend(["--instance-type", "ml.m5.xlarge", "--hourly-price", "0.25"]);
    let output = spotcheck_at(home.path(), &args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// What `transform package` makes of the model that is used here.
fn packaged() -> Vec<u8> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("model.tar.gz");
    let out = path.to_str().unwrap();
    let args = ["transform", "package", "--model", CLASSIFIER, "--out", out];
    let output = spotcheck_at(home.path(), &args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    std::fs::read(path).unwrap()
}

fn open_folder(folder: &Path, images: usize) -> Harness<'static, App> {
    let mut window = open(Some(folder), CLASSIFIER);
    wait_for(&mut window, &format!("{images} images, 1 predicted"));
    wait_until(&mut window, "the end of the listing", |window| {
        !window.state().state().is_listing()
    });
    window
}

fn choose_endpoint(window: &mut Harness<'static, App>, name: &str) {
    window.state_mut().command(Action::PredictAtEndpoint.into());
    wait_for(window, "Predict at a SageMaker endpoint");
    type_into(window, "Name of the endpoint", name);
}

fn choose_tf_serving(window: &mut Harness<'static, App>, address: &str) {
    window
        .state_mut()
        .command(Action::PredictInTfServing.into());
    wait_for(window, "Predict in TensorFlow Serving");
    type_into(window, "Address of the model", address);
}

/// Waits until so many images have an answer from elsewhere, and nothing is under way.
fn wait_for_answers(window: &mut Harness<'static, App>, count: usize) {
    wait_until(
        window,
        &format!("{count} answers from elsewhere"),
        |window| {
            let state = window.state().state();
            let run = state.run();
            state.tasks.is_idle()
                && run.is_some_and(|run| {
                    !run.info.key.made.is_here() && run.answers.answered() == count
                })
        },
    );
}

#[test]
fn a_picture_in_view_is_predicted_at_an_endpoint_as_on_this_computer_and_only_that_one_is_sent() {
    let mut plane = None;
    alone(
        "predicting_elsewhere::a_picture_in_view_is_predicted_at_an_endpoint_as_on_this_computer_and_only_that_one_is_sent",
        |command| {
            serve(&mut plane)(command);
            command.env("AWS_REGION", REGION);
        },
        || {
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
            wait_for(&mut window, "✓ photos is InService in us-east-1");
            click(&mut window, "Predict there");
            wait_for(&mut window, "by endpoint photos in us-east-1");
            wait_for(&mut window, "3 images, 1 predicted");
            wait_for_answers(&mut window, 1);

            // The next one that comes into view; going back sends nothing.
            window.state_mut().command(Command::Walk(Step::By(1)));
            wait_for_answers(&mut window, 2);
            window.state_mut().command(Command::Walk(Step::By(-1)));
            wait_for_answers(&mut window, 2);

            // What was asked for.
            click(&mut window, "Predict all");
            wait_for_answers(&mut window, 3);
            window.state_mut().command(Action::CompareWithLocal.into());
            wait_for(&mut window, "100.0 % agree");
            wait_for(&mut window, "in 3 of 3 images");
            let comparing = window.state().state().comparing.as_ref().unwrap();
            let largest = comparing.agreement().unwrap().summary.differences.largest;
            assert!(largest < 1e-4, "{largest}");

            click(&mut window, "Predict on this computer");
            wait_for(&mut window, "All models");
        },
    );
    // In the process of the test itself there is none.
    if let Some(plane) = plane {
        assert_eq!(plane.count("InvokeEndpoint"), 3);
    }
}

#[test]
fn an_endpoint_that_is_missing_fails_or_gets_too_much_says_why_and_where_to_look() {
    let mut plane = None;
    alone(
        "predicting_elsewhere::an_endpoint_that_is_missing_fails_or_gets_too_much_says_why_and_where_to_look",
        |command| {
            serve(&mut plane)(command);
            command.env("AWS_REGION", REGION);
        },
        || {
            let bucket = Seaweed::shared().bucket("window-broken");
            deploy(
                &bucket,
                "broken",
                &archive(&[("code/serve.py", BROKEN.as_bytes())]),
            );
            let folder = folder_of(1, "chelsea.png");
            let mut large = std::fs::read(samples().join("chelsea.png")).unwrap();
            // A decoder stops at its end; the file is what is sent.
            large.resize(6_300_000, 0);
            std::fs::write(folder.path().join("large.png"), large).unwrap();
            let mut window = open_folder(folder.path(), 2);

            choose_endpoint(&mut window, "nobody");
            wait_for(&mut window, "There is no endpoint nobody in us-east-1");
            click(&mut window, "Predict there");
            wait_for(&mut window, "Could not ask the endpoint nobody");
            wait_for(&mut window, "look at the name and the region");

            let broken = RemoteModel::at_endpoint("broken", SageMakerAccess::default());
            let edit = Command::EditRemoteModel(Box::new(broken));
            window.state_mut().command(edit);
            wait_for(&mut window, "✓ broken is InService");
            click(&mut window, "Predict there");
            wait_for(&mut window, "CUDA out of memory");
            wait_for(&mut window, "/aws/sagemaker/Endpoints/broken");

            window.state_mut().command(Command::Walk(Step::By(1)));
            wait_for(&mut window, "an endpoint takes no more than 6291456");
        },
    );
    // In the process of the test itself there is none.
    if let Some(plane) = plane {
        // One to the missing one, and one to the broken one: what is too large is not sent.
        assert_eq!(plane.count("InvokeEndpoint"), 2);
    }
}

/// A model of CIFAR-10 in TensorFlow Serving: most of the probability is on the class that the length of the image says.
fn cifar() -> HttpServer {
    HttpServer::start(|request| match request.path.as_str() {
        "/v1/models/cifar" => said(&json!({
            "model_version_status": [{"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]
        })),
        "/v1/models/cifar/metadata" => said(&json!({
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
            said(&json!({"predictions": [scores]}))
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

fn said(answer: &Value) -> Reply {
    Reply::whole(answer.to_string().as_bytes())
}

fn predictions(server: &HttpServer) -> usize {
    let exchanges = server.exchanges();
    let is_prediction = |request: &Request| request.path.ends_with(":predict");
    exchanges
        .iter()
        .filter(|exchange| is_prediction(&exchange.request))
        .count()
}

#[test]
fn a_model_in_tensorflow_serving_answers_by_the_signature_and_labels_that_were_chosen() {
    let server = cifar();
    let folder = folder_of(3, "chelsea.png");
    let mut window = open_folder(folder.path(), 3);
    choose_tf_serving(&mut window, &server.url("/v1/models/cifar"));
    wait_for(&mut window, "cifar is loaded, version 1");
    // The usual one wants an array of numbers.
    wait_for(&mut window, "Signature serving_default takes numbers");
    // The keyboard stays in the field, whatever is found meanwhile.
    type_into(&mut window, "Signature", "enc");
    wait_for(&mut window, "There is no signature enc");
    let field = window.get_by_role_and_label(Role::TextInput, "Signature");
    field.type_text("oded");
    wait_for(&mut window, "✓ cifar is loaded, version 1");
    wait_for(&mut window, "Signature encoded takes encoded images");
    assert_eq!(predictions(&server), 0, "looking costs no prediction");
    type_into(&mut window, "Label set or label file", "cifar-10");
    click(&mut window, "Predict there");
    wait_for(&mut window, "by TensorFlow Serving at http");
    wait_for_answers(&mut window, 1);
    let len = std::fs::metadata(samples().join("chelsea.png"))
        .unwrap()
        .len();
    let state = window.state().state();
    let best = state.shown.prediction.as_ref().unwrap().classes()[0].clone();
    assert_eq!((u64::from(best.index), best.score), (len % 10, 0.55));
    assert_eq!(predictions(&server), 1);

    window.state_mut().command(Action::SelectAll.into());
    window.state_mut().command(Action::PredictSelection.into());
    wait_until(&mut window, "the selection", |window| {
        let run = window.state().state().run();
        run.is_some_and(|run| run.answers.answered() == 3)
    });
    wait_for_answers(&mut window, 3);
    assert_eq!(predictions(&server), 4, "one of the three is asked again");
}

#[test]
fn answers_of_a_shape_that_nobody_knows_are_shown_and_read_with_a_mapping() {
    let server = HttpServer::start(|request| match request.path.as_str() {
        "/v1/models/own:predict" => said(&json!({"verdict": {"certainty": [0.25, 0.75]}})),
        // Somebody in between lets nothing else through.
        _ => Reply::status("404 Not Found"),
    });
    let folder = folder_of(2, "chelsea.png");
    let mut window = open_folder(folder.path(), 2);
    choose_tf_serving(&mut window, &server.url("/v1/models/own:predict"));
    wait_for(&mut window, "TensorFlow Serving has no model own");
    click(&mut window, "Predict there");
    wait_for(
        &mut window,
        "answers in a shape that Spotcheck does not know",
    );
    assert_eq!(predictions(&server), 1);

    click(&mut window, "Say how answers are read…");
    wait_for(&mut window, "The answer begins so:");
    assert!(sees(&window, "certainty"));
    let mapping =
        "id = \"own\"\nname = \"Own\"\n[answer.classification]\nscores = \"/verdict/certainty\"\n";
    let field = |window: &Harness<'static, App>, act: &dyn Fn(&egui_kittest::Node<'_>)| {
        act(&window.get_by_role_and_label(Role::MultilineTextInput, "Mapping"));
    };
    field(&window, &|node| node.focus());
    window.step();
    field(&window, &|node| node.type_text(mapping));
    window.run_steps(2);
    click(&mut window, "Predict there");
    wait_for_answers(&mut window, 1);
    wait_for(&mut window, "75.0 %");
    assert_eq!(predictions(&server), 2);
}

#[test]
fn a_server_that_is_not_there_is_said_in_the_dialog_and_where_it_was_asked() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port();
    let folder = folder_of(1, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 image, 1 predicted");
    let address = format!("http://127.0.0.1:{port}/v1/models/m");
    choose_tf_serving(&mut window, &address);
    wait_for(&mut window, "nobody answers there");
    click(&mut window, "Predict there");
    wait_for(&mut window, "m in TensorFlow Serving cannot be asked");
    assert!(sees(&window, "look whether TensorFlow Serving runs"));
    assert!(sees(&window, "Try again"));
}
