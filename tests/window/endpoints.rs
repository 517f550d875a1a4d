//! Endpoints in the window, with a control plane that runs the containers. Each test has a separate process, because
//! the AWS settings are those of its process, and a separate home folder, because endpoints deployed from a computer
//! are shown in all its windows.

use std::path::Path;
use std::process::Command as Process;

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use serde_json::{Value, json};
use spotcheck::dirs::AppDirs;
use spotcheck::sagemaker::spec::endpoint::EndpointStatus;
use spotcheck::sagemaker::spec::transform::{CheckGrade, CheckPoint};
use spotcheck::tasks::now_ms;
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, Command, EndpointId, EndpointsCommand, KnownEndpoint, Loadable, Overlay, RemoteEndpointsCommand,
};

use crate::remote::{serve, type_into, wait_for_missing};
use crate::support::alone::alone;
use crate::support::control_plane::{ControlPlane, Failure, IMAGE, REGION, ROLE, echo_archive};
use crate::support::seaweed::{Bucket, Seaweed};
use crate::support::spotcheck_at;
use crate::window::{
    choose_value, click, home_with_runtime, open_with_model_at, sees, wait_for, wait_for_notice, wait_until,
};

const CLASSIFIER: &str = "efficientnet-lite0";

/// Gives the process of a test SeaweedFS and a control plane, in a region set in the environment.
pub(crate) fn account(plane: &mut Option<ControlPlane>) -> impl FnOnce(&mut Process) {
    |command| {
        serve(plane)(command);
        command.env("AWS_REGION", REGION);
    }
}

/// Separate folders with ONNX Runtime and a price table.
pub(crate) fn home_with_prices(home: &Path) -> AppDirs {
    let dirs = home_with_runtime(home);
    std::fs::create_dir_all(&dirs.config).unwrap();
    let price = r#"
[[price]]
instance_type = "ml.m5.xlarge"
usd_per_hour = 0.25
source = "an invoice"
date = "2026-11-21"
"#;
    std::fs::write(dirs.prices(), price).unwrap();
    dirs
}

/// Completes the form until no problem remains; returns the suggested name.
pub(crate) fn fill_in(window: &mut Harness<'static, App>, bucket: &Bucket) -> String {
    wait_until(window, "the model", |window| {
        let chosen = window.state().state().models.chosen();
        chosen.is_some_and(|chosen| chosen.is_ready)
    });
    window.state_mut().command(Action::DeployEndpoint);
    wait_for_missing(window, "S3");
    type_into(window, "S3 folder", &bucket.uri("spotcheck/"));
    type_into(window, "Execution role", ROLE);
    wait_for(window, "No problems found");
    let deploying = &window.state().state().remote.endpoint_form;
    deploying.draft.config.name.clone()
}

fn deploy(window: &mut Harness<'static, App>, bucket: &Bucket) -> String {
    let name = fill_in(window, bucket);
    click(window, "Deploy the model");
    wait_for(window, "SageMaker endpoints");
    name
}

fn the_endpoint<'w>(window: &'w Harness<'static, App>) -> &'w KnownEndpoint {
    let mut known = window.state().state().remote.endpoints.all.known.iter();
    known.next().unwrap()
}

/// The number of endpoints in the banner at the top.
fn in_the_banner(window: &Harness<'static, App>) -> usize {
    window.state().state().endpoints_at_our_cost().count()
}

/// Checks a request in the process that runs the control plane; the child with the window has none.
fn assert_asked(plane: Option<&ControlPlane>, operation: &str, times: usize) {
    if let Some(plane) = plane {
        assert_eq!(plane.count(operation), times, "{operation}");
    }
}

fn wait_until_tasks_end(window: &mut Harness<'static, App>) {
    wait_until(window, "the tasks", |window| window.state().state().tasks.is_idle());
}

/// Waits until the endpoint was deleted at its deletion time.
fn wait_until_expired(window: &mut Harness<'static, App>, name: &str) {
    let notice = wait_for_notice(window, name);
    assert!(notice.contains(&format!("Deleted: endpoint {name}")), "{notice}");
    wait_until(window, "an empty banner", |window| in_the_banner(window) == 0);
}

fn wait_until_in_service(window: &mut Harness<'static, App>, name: &str) {
    wait_for(window, &format!("Endpoint {name}: InService"));
    assert_eq!(in_the_banner(window), 1);
    wait_until_tasks_end(window);
}

#[test]
fn deployed_endpoint_shows_costs_and_is_deleted() {
    let mut plane = None;
    alone("endpoints::deployed_endpoint_shows_costs_and_is_deleted", account(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-endpoint");
        let home = tempfile::tempdir().unwrap();
        let mut window = open_with_model_at(home_with_prices(home.path()), CLASSIFIER);
        let name = fill_in(&mut window, &bucket);
        // The cost and the deletion time are shown before the start.
        for fact in ["$0.25 per hour", "$6.00 per day", "of 2026-11-21", "an invoice", ": $0.50"] {
            assert!(sees(&window, fact), "{fact}");
        }
        click(&mut window, "Deploy the model");
        wait_for(&mut window, "SageMaker endpoints");
        wait_until_in_service(&mut window, &name);
        assert!(sees(&window, "$0.25 per hour, deleted"));
        let archive = format!("spotcheck/spotcheck-files/{name}/model.tar.gz");
        assert!(bucket.get(&archive).is_some());
        click(&mut window, "List endpoints");
        // Until then, the list showed it as deployed here.
        wait_until(&mut window, "the list", |window| {
            let list = &window.state().state().remote.endpoints.all.list;
            list.rows.iter().any(|listed| listed.name == name)
        });
        assert!(sees(&window, &format!("Endpoint {name}, InService")));

        click(&mut window, "Container log");
        click(&mut window, "Read the log");
        wait_for(&mut window, "Read again");
        wait_until_tasks_end(&mut window);

        // The deletion is postponed, and the clock is advanced.
        let end = |window: &Harness<'static, App>| the_endpoint(window).record.as_ref().unwrap().delete_at_ms;
        let first = end(&window).unwrap();
        click(&mut window, "4 h later");
        wait_until(&mut window, "another end", |window| end(window) == Some(first + 4 * 3_600_000));
        let id = the_endpoint(&window).id.clone();
        let over = Command::Endpoints(EndpointsCommand::SetDeletionTime(id, Some(now_ms())));
        window.state_mut().command(over);
        wait_until_expired(&mut window, &name);
        assert!(bucket.get(&archive).is_none());
        let left = std::fs::read_dir(home.path().join("data/endpoints")).unwrap();
        assert_eq!(left.count(), 0);
    });
    for operation in ["DeleteEndpoint", "DeleteEndpointConfig", "DeleteModel"] {
        assert_asked(plane.as_ref(), operation, 1);
    }
}

#[test]
fn expired_endpoint_is_deleted_at_start() {
    let mut plane = None;
    alone("endpoints::expired_endpoint_is_deleted_at_start", account(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-endpoint-later");
        let home = tempfile::tempdir().unwrap();
        let dirs = home_with_prices(home.path());
        let mut window = open_with_model_at(dirs.clone(), CLASSIFIER);
        let name = fill_in(&mut window, &bucket);
        // Another price can be typed.
        type_into(&mut window, "Price per instance", "0.74");
        wait_for(&mut window, "$0.74 per instance-hour");
        click(&mut window, "Deploy the model");
        wait_for(&mut window, "SageMaker endpoints");
        wait_until_in_service(&mut window, &name);
        drop(window);

        // The next window knows the endpoint and polls it.
        let mut window = open_with_model_at(dirs.clone(), CLASSIFIER);
        wait_until_in_service(&mut window, &name);
        assert!(sees(&window, "$0.74 per hour, deleted"));
        drop(window);

        let record = dirs.endpoints().join(format!("{name}@{REGION}.json"));
        let text = std::fs::read_to_string(&record).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["delete_at_ms"] = (now_ms() - 3_600_000).into();
        std::fs::write(&record, json.to_string()).unwrap();
        let mut window = open_with_model_at(dirs, CLASSIFIER);
        wait_until_expired(&mut window, &name);
        assert!(!record.exists());
    });
    assert_asked(plane.as_ref(), "DeleteEndpoint", 1);
}

#[test]
fn deletion_lists_successes_and_failures() {
    let mut plane = None;
    alone(
        "endpoints::deletion_lists_successes_and_failures",
        |command| {
            account(&mut plane)(command);
            plane.as_ref().unwrap().fail(Failure::AccessDenied { operation: "DeleteModel" });
        },
        || {
            let bucket = Seaweed::shared().bucket("window-endpoint-left");
            let home = tempfile::tempdir().unwrap();
            let mut window = open_with_model_at(home_with_prices(home.path()), CLASSIFIER);
            let name = deploy(&mut window, &bucket);
            wait_until_in_service(&mut window, &name);
            window.state_mut().command(RemoteEndpointsCommand::Close);
            click(&mut window, "Close");
            wait_until(&mut window, "the dialog to close", |window| window.state().state().overlay == Overlay::None);

            click(&mut window, &format!("endpoint {name}…"));
            let question = "Keep it";
            wait_for(&mut window, question);
            let endpoint = format!("•  the endpoint {name}");
            for what in [
                &endpoint,
                &format!("•  the configuration {name}"),
                &format!("•  the model {name}"),
                "•  the archive s3://",
            ] {
                assert!(sees(&window, what), "{what}");
            }
            click(&mut window, question);
            assert!(!sees(&window, question));
            assert!(!sees(&window, &endpoint));
            click(&mut window, "Delete…");
            click(&mut window, "Delete it");
            wait_for(&mut window, &format!("Kept: model {name}: "));
            assert!(sees(&window, "sagemaker:DeleteModel"));
            assert!(sees(&window, &format!("✓  endpoint {name}")));
            assert!(sees(&window, &format!("✓  configuration {name}")));
            // It no longer costs anything, and its leftovers can still be deleted.
            assert_eq!(in_the_banner(&window), 0);
            click(&mut window, "Delete…");
            wait_for(&mut window, &format!("•  the model {name}"));
            assert!(!sees(&window, &endpoint));
            assert_eq!(window.state().state().problems.len(), 1);
        },
    );
}

fn deployment_failure<'w>(window: &'w Harness<'static, App>) -> Option<&'w str> {
    window.state().state().remote.endpoint_form.start.failure().map(spotcheck::window::state::Failure::message)
}

#[test]
fn quota_failure_is_explained_and_undone() {
    let mut plane = None;
    alone(
        "endpoints::quota_failure_is_explained_and_undone",
        |command| {
            account(&mut plane)(command);
            plane.as_ref().unwrap().fail(Failure::ResourceLimit);
        },
        || {
            let bucket = Seaweed::shared().bucket("window-endpoint-quota");
            let home = tempfile::tempdir().unwrap();
            let mut window = open_with_model_at(home_with_prices(home.path()), CLASSIFIER);
            let name = fill_in(&mut window, &bucket);
            click(&mut window, "Deploy the model");
            wait_until(&mut window, "the failure", |window| deployment_failure(window).is_some());
            let failure = deployment_failure(&window).unwrap();
            for fact in ["quota", "https://", &format!("configuration {name}, model {name}")] {
                assert!(failure.contains(fact), "{fact}: {failure}");
            }
            assert!(sees(&window, failure));
            assert_eq!(in_the_banner(&window), 0);
        },
    );
    assert_asked(plane.as_ref(), "DeleteEndpoint", 0);
    assert_asked(plane.as_ref(), "DeleteModel", 1);
}

#[test]
fn failed_endpoint_shows_its_reason() {
    let mut plane = None;
    alone(
        "endpoints::failed_endpoint_shows_its_reason",
        |command| {
            account(&mut plane)(command);
            plane.as_ref().unwrap().fail(Failure::NoPing);
        },
        || {
            let bucket = Seaweed::shared().bucket("window-endpoint-failed");
            let home = tempfile::tempdir().unwrap();
            let mut window = open_with_model_at(home_with_prices(home.path()), CLASSIFIER);
            let name = deploy(&mut window, &bucket);
            wait_for(&mut window, "did not pass the ping health check");
            wait_for(&mut window, &format!("✗ Endpoint {name}: Failed"));
            click(&mut window, "Read the log");
            wait_for(&mut window, "Read again");
            assert_eq!(the_endpoint(&window).presence.status(), Some(EndpointStatus::Failed));
            click(&mut window, "Delete…");
            click(&mut window, "Delete it");
            wait_for(&mut window, "Deleted:");
            assert!(sees(&window, &format!("✓  endpoint {name}")));
        },
    );
}

#[test]
fn foreign_endpoint_needs_a_warning_to_delete() {
    let mut plane = None;
    alone("endpoints::foreign_endpoint_needs_a_warning_to_delete", account(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-endpoint-other");
        let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut window = open_with_model_at(home_with_prices(other.path()), CLASSIFIER);
        let name = deploy(&mut window, &bucket);
        wait_until_in_service(&mut window, &name);
        drop(window);

        let mut window = open_with_model_at(home_with_prices(mine.path()), CLASSIFIER);
        window.state_mut().command(Action::Endpoints);
        wait_for(&mut window, "Not listed yet");
        click(&mut window, "List endpoints");
        click_once_there(&mut window, &format!("Endpoint {name}, InService"));
        // The price table gives the cost, although another computer deployed it.
        wait_for(&mut window, "at $0.25");
        wait_until_tasks_end(&mut window);
        assert_eq!(in_the_banner(&window), 0);
        assert!(!the_endpoint(&window).is_ours());
        assert!(sees(&window, "Not deployed from"));
        click(&mut window, "Delete…");
        wait_for(&mut window, "not in use");
        wait_for(&mut window, &format!("model {name} is"));
        let id: &EndpointId = &the_endpoint(&window).id;
        assert_eq!(id.region(), REGION);
        click(&mut window, "Delete it");
        wait_for(&mut window, &format!("Kept: model {name}: "));
        assert!(sees(&window, &format!("✓  configuration {name}")));
    });
    assert_asked(plane.as_ref(), "DeleteModel", 0);
}

/// Runs another Spotcheck on the same computer.
fn run(dirs: &AppDirs, args: &[&str]) {
    let home = dirs.config.parent().unwrap();
    let output = spotcheck_at(home, args).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
}

#[test]
fn cli_endpoints_appear_in_an_open_window() {
    let mut plane = None;
    alone("endpoints::cli_endpoints_appear_in_an_open_window", account(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-endpoint-cli");
        bucket.put("models/model.tar.gz", &echo_archive());
        let archive = bucket.uri("models/model.tar.gz");
        let home = tempfile::tempdir().unwrap();
        let dirs = home_with_prices(home.path());
        let mut window = open_with_model_at(dirs.clone(), CLASSIFIER);
        let name = ["endpoint", "deploy", "--name", "cats"];
        let model = ["--archive", &archive, "--role", ROLE, "--image", IMAGE];
        let rest = ["--instance-type", "ml.m5.xlarge", "--hourly-price", "0.5"];
        run(&dirs, &[&name[..], &model, &rest].concat());
        let in_service = "Endpoint cats: InService";
        wait_for(&mut window, in_service);
        assert!(sees(&window, "at $0.50"));
        assert_eq!(the_endpoint(&window).record.as_ref().unwrap().delete_at_ms, None);

        run(&dirs, &["endpoint", "delete", "cats", "--yes"]);
        wait_until(&mut window, "an empty banner", |window| in_the_banner(window) == 0 && !sees(window, in_service));
    });
}

/// Holds the deployment at its last step, when everything but the endpoint itself has been created.
fn held_at_the_end(plane: &mut Option<ControlPlane>) -> impl FnOnce(&mut Process) {
    |command| {
        account(plane)(command);
        plane.as_ref().unwrap().fail(Failure::Held { operation: "CreateEndpoint" });
    }
}

/// Starts a deployment that is held; returns the name of the endpoint.
fn deploy_until_held(window: &mut Harness<'static, App>, bucket: &Bucket) -> String {
    let name = fill_in(window, bucket);
    click(window, "Deploy the model");
    wait_for(window, &format!("creating endpoint {name}"));
    name
}

#[test]
fn canceled_deployment_is_undone() {
    let mut plane = None;
    alone("endpoints::canceled_deployment_is_undone", held_at_the_end(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-endpoint-cancelled");
        let home = tempfile::tempdir().unwrap();
        let mut window = open_with_model_at(home_with_prices(home.path()), CLASSIFIER);
        let name = deploy_until_held(&mut window, &bucket);
        let archive = format!("spotcheck/spotcheck-files/{name}/model.tar.gz");
        assert!(bucket.get(&archive).is_some());
        click(&mut window, "Cancel the deployment");
        // The form is shown again, unchanged.
        wait_until(&mut window, "the form", |window| {
            sees(window, "Deploy the model") && window.state().state().tasks.is_idle()
        });
        assert!(bucket.get(&archive).is_none());
        let left = std::fs::read_dir(home.path().join("data/endpoints")).unwrap();
        assert_eq!(left.count(), 0);
        assert_eq!(window.state().state().problems.len(), 0);
        assert_eq!(in_the_banner(&window), 0);
    });
    for (operation, times) in [("DeleteEndpoint", 0), ("DeleteEndpointConfig", 1), ("DeleteModel", 1)] {
        assert_asked(plane.as_ref(), operation, times);
    }
}

#[test]
fn leftovers_of_a_deployment_can_be_deleted_later() {
    let mut plane = None;
    alone(
        "endpoints::leftovers_of_a_deployment_can_be_deleted_later",
        |command| {
            held_at_the_end(&mut plane)(command);
            plane.as_ref().unwrap().fail(Failure::AccessDenied { operation: "DeleteModel" });
        },
        || {
            let bucket = Seaweed::shared().bucket("window-endpoint-half");
            let home = tempfile::tempdir().unwrap();
            let mut window = open_with_model_at(home_with_prices(home.path()), CLASSIFIER);
            let name = deploy_until_held(&mut window, &bucket);
            click(&mut window, "Cancel the deployment");
            wait_for(&mut window, "sagemaker:DeleteModel");
            assert!(sees(&window, &format!(": model {name} (")));
            wait_until_tasks_end(&mut window);
            // It costs nothing, and this computer still has its record.
            assert_eq!(in_the_banner(&window), 0);
            let left = std::fs::read_dir(home.path().join("data/endpoints")).unwrap();
            assert_eq!(left.count(), 1);
            window.state_mut().command(Command::SetOverlay(Overlay::None));
            window.state_mut().command(Action::Endpoints);
            wait_for(&mut window, &name);
        },
    );
    assert_asked(plane.as_ref(), "DeleteEndpointConfig", 1);
}

#[test]
fn saved_model_is_deployed_with_advanced_settings() {
    let mut plane = None;
    alone(
        "endpoints::saved_model_is_deployed_with_advanced_settings",
        |command| {
            account(&mut plane)(command);
            plane.as_ref().unwrap().pause_jobs();
        },
        || {
            let bucket = Seaweed::shared().bucket("window-endpoint-saved");
            let model = tempfile::tempdir().unwrap();
            std::fs::create_dir(model.path().join("1")).unwrap();
            std::fs::write(model.path().join("1/saved_model.pb"), "graph").unwrap();
            let home = tempfile::tempdir().unwrap();
            let mut window = open_with_model_at(home_with_prices(home.path()), CLASSIFIER);
            fill_in(&mut window, &bucket);
            choose_value(&mut window, "Kind of model", "TensorFlow SavedModel");
            wait_for_missing(&mut window, "SavedModel");
            let path = model.path().to_str().unwrap();
            type_into(&mut window, "SavedModel folder", path);
            wait_for(&mut window, " checks passed");
            click(&mut window, " checks passed");
            wait_for(&mut window, "/tensorflow-inference:2.19.0-cpu");

            // A container that cannot serve it is not started.
            click(&mut window, "Known containers");
            click(&mut window, "ray:serve-ml-sagemaker-cpu-v1.4");
            wait_until(&mut window, "the problem", |window| {
                let checks = window.state().state().remote.endpoint_form.check.ready();
                let mut checks = checks.into_iter().flat_map(|check| &check.preflight.checks);
                checks.any(|check| {
                    check.point == CheckPoint::Image
                        && check.grade == CheckGrade::Problem
                        && sees(window, &check.finding)
                })
            });
            click(&mut window, "Known containers");
            click(&mut window, "Choose automatically");
            wait_for(&mut window, "No problems found");

            click(&mut window, "Advanced");
            type_into(&mut window, "Tags", "team=vision\nproject=cats");
            type_into(&mut window, "Container environment", "LEVEL=debug");
            type_into(&mut window, "KMS key", "alias/disks");
            for name in ["Container startup timeout", "Model download timeout"] {
                click(&mut window, name);
            }
            wait_until(&mut window, "a check of all that", |window| {
                let deploying = &window.state().state().remote.endpoint_form;
                let (model, config) = (&deploying.draft.model, &deploying.draft.config);
                config.tags.len() == 2
                    && model.environment.len() == 1
                    && config.startup_timeout_s.is_some()
                    && config.download_timeout_s.is_some()
                    && matches!(deploying.check, Loadable::Ready(_))
            });
            wait_until(&mut window, "an enabled button", |window| {
                let buttons = window.query_all_by_role_and_label(Role::Button, "Deploy the model");
                let mut buttons = buttons.map(|button| button.accesskit_node().is_disabled());
                buttons.next() == Some(false)
            });
            click(&mut window, "Deploy the model");
            wait_for(&mut window, "SageMaker endpoints");
        },
    );
    // The parent process of the test has none.
    let Some(plane) = plane else {
        return;
    };
    let asked = |operation: &str| {
        let requests = plane.requests();
        let asked = requests.into_iter().rfind(|request| request.operation == operation);
        asked.unwrap().body
    };
    let tags = json!([{"Key": "project", "Value": "cats"}, {"Key": "team", "Value": "vision"}]);
    let model = asked("CreateModel");
    let container = &model["PrimaryContainer"];
    let image = container["Image"].as_str().unwrap();
    assert!(image.ends_with("/tensorflow-inference:2.19.0-cpu"), "{image}");
    assert_eq!(container["Environment"]["LEVEL"], "debug");
    let config = asked("CreateEndpointConfig");
    assert_eq!(config["KmsKeyId"], "alias/disks");
    let variant = &config["ProductionVariants"][0];
    assert_eq!(variant["ContainerStartupHealthCheckTimeoutInSeconds"], 1200);
    assert_eq!(variant["ModelDataDownloadTimeoutInSeconds"], 1200);
    for told in [&model, &config, &asked("CreateEndpoint")] {
        assert_eq!(told["Tags"], tags);
    }
}

#[test]
fn serverless_endpoint_has_no_instances() {
    let mut plane = None;
    alone("endpoints::serverless_endpoint_has_no_instances", account(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-endpoint-serverless");
        let home = tempfile::tempdir().unwrap();
        let mut window = open_with_model_at(home_with_prices(home.path()), CLASSIFIER);
        let name = fill_in(&mut window, &bucket);
        click(&mut window, "Serverless");
        wait_until(&mut window, "a check without instances", |window| {
            let check = window.state().state().remote.endpoint_form.check.ready();
            check.is_some_and(|check| check.plan.config.serverless.is_some() && check.plan.usd_per_hour.is_none())
        });
        assert!(!sees(&window, "Instance type") && !sees(&window, "Price per instance"));
        wait_for(&mut window, "No problems found");
        click(&mut window, "Deploy the model");
        wait_for(&mut window, "SageMaker endpoints");
        wait_for(&mut window, &format!("Endpoint {name}: InService, billed only for requests"));
        wait_for(&mut window, "serverless, 2048 MB, up to 5 parallel requests");
    });
    let Some(plane) = plane else {
        return;
    };
    let asked = plane.requests().into_iter().rfind(|request| request.operation == "CreateEndpointConfig");
    let variant = asked.unwrap().body["ProductionVariants"][0].clone();
    assert_eq!(variant["ServerlessConfig"], json!({"MemorySizeInMB": 2048, "MaxConcurrency": 5}));
    assert_eq!((&variant["InstanceType"], &variant["InitialInstanceCount"]), (&Value::Null, &Value::Null));
}

fn click_once_there(window: &mut Harness<'static, App>, text: &str) {
    wait_for(window, text);
    click(window, text);
}
