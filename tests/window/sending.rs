//! The job form sends what it shows: the checked plan is shown, copied and started.

use std::process::Command as Process;

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use serde_json::{Value, json};
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{S3Address, S3Place};
use spotcheck::sagemaker::spec::transform::{CheckGrade, CheckPoint};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, Command, Loadable, Overlay};

use crate::remote::{
    job_check, place, replace_in, serve, type_into, wait_for_listing, wait_for_missing, wait_for_problem,
};
use crate::support::alone::alone;
use crate::support::control_plane::{ControlPlane, REGION, ROLE};
use crate::support::http_server::{HttpServer, Reply};
use crate::support::seaweed::{Bucket, Seaweed};
use crate::support::{python_packages, repository, runtime_home};
use crate::window::{choose_value, click, folder_of, open, open_with_model_at, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";

const SAVE_PRICE: &str = "Save to price";

/// Like [`serve`]; jobs are accepted, but none of them runs.
fn serve_held(plane: &mut Option<ControlPlane>) -> impl FnOnce(&mut Process) {
    |command| {
        serve(plane)(command);
        plane.as_ref().unwrap().pause_jobs();
    }
}

/// A window on a prefix of this bucket, with the listing finished.
fn open_prefix(bucket: &Bucket, prefix: &str, images: usize) -> Harness<'static, App> {
    let mut window = open(None, CLASSIFIER);
    let place = S3Place { address: S3Address::new(&bucket.name, prefix), ..place(bucket) };
    window.state_mut().command(BrowseCommand::OpenPlace(Box::new(place)));
    let listed = if images == 1 { "1 image, ".to_owned() } else { format!("{images} images, ") };
    wait_for(&mut window, &listed);
    // With all images listed, and a model.
    wait_until(&mut window, "an available form", |window| Action::StartJob.check(window.state().state()).is_ok());
    window
}

/// Opens the form and enters a role.
fn open_form(window: &mut Harness<'static, App>) {
    window.state_mut().command(Action::StartJob);
    wait_for(window, "Start the job");
    // It is remembered for the next job.
    if window.state().state().remote.job_form.draft.model.role.is_empty() {
        type_into(window, "Execution role", ROLE);
    }
    wait_for(window, "No problems found");
}

/// Opens the form with a role, and expands the passed checks.
fn open_unfolded_form(window: &mut Harness<'static, App>) {
    open_form(window);
    click(window, " checks passed");
    wait_for(window, "✓ Job name");
}

/// Starts the job once the current form was checked.
fn start(window: &mut Harness<'static, App>) {
    wait_until(window, "an enabled button", |window| {
        let buttons = window.query_all_by_role_and_label(Role::Button, "Start the job");
        let mut buttons = buttons.map(|button| button.accesskit_node().is_disabled());
        buttons.next() == Some(false)
    });
    click(window, "Start the job");
    wait_until(window, "the job page", |window| {
        if let Loadable::Failed(why) = &window.state().state().remote.job_form.start {
            panic!("the job was not started: {}", why.message());
        }
        sees(window, "SageMaker jobs")
    });
}

/// Waits until this number of parallel requests is suggested and shown.
#[track_caller]
fn wait_for_concurrency(window: &mut Harness<'static, App>, requests: u32) {
    wait_until(window, "the suggested concurrency", |window| {
        let check = window.state().state().remote.job_form.check.ready();
        check.is_some_and(|check| check.plan.spec.max_concurrent == Some(requests))
            && sees(window, &format!("{requests} parallel requests"))
    });
}

/// Waits until the form warns that the price of an instance type is unknown.
#[track_caller]
fn wait_for_unknown_price(window: &mut Harness<'static, App>, instance_type: &str) {
    wait_until(window, "an unknown price", |window| {
        job_check(window, CheckPoint::Cost).is_some_and(|check| {
            check.grade == CheckGrade::Warning && check.finding.contains(instance_type) && sees(window, &check.finding)
        })
    });
    let check = window.state().state().remote.job_form.check.ready().unwrap();
    assert_eq!(check.plan.usd_per_hour, None);
}

/// Enters the folder of a SavedModel as the model to send.
fn send_saved_model(window: &mut Harness<'static, App>, folder: &std::path::Path) {
    choose_value(window, "Kind of model", "TensorFlow SavedModel");
    wait_for_missing(window, "SavedModel");
    type_into(window, "SavedModel folder", folder.to_str().unwrap());
}

/// The last request to SageMaker for an operation.
fn asked(plane: &ControlPlane, operation: &str) -> Value {
    let requests = plane.requests();
    let last = requests.into_iter().rfind(|request| request.operation == operation);
    last.unwrap().body
}

fn chelsea() -> Vec<u8> {
    std::fs::read(repository().join("assets/samples/chelsea.png")).unwrap()
}

#[test]
fn tfrecord_job_uses_shown_payload_and_concurrency() {
    let mut plane = None;
    alone("sending::tfrecord_job_uses_shown_payload_and_concurrency", serve_held(&mut plane), || {
        let bucket = Seaweed::shared().bucket("sending-records");
        let records = repository().join("tests/tfrecord/photos.tfrecord");
        let records = std::fs::read(records).unwrap();
        bucket.put("records/photos.tfrecord", &records);
        let mut window = open_prefix(&bucket, "records/", 6);
        open_unfolded_form(&mut window);
        wait_for_concurrency(&mut window, 4);
        click(&mut window, "AWS CLI commands");
        wait_for(&mut window, r#""MaxConcurrentTransforms":4"#);
        // Files are not images.
        click(&mut window, "Cost");
        type_into(&mut window, "Images per second", "0.1");
        wait_for(&mut window, "about 60 s");
        let check = window.state().state().remote.job_form.check.ready().unwrap();
        let estimate = check.preflight.estimate.as_ref().unwrap();
        assert_eq!((estimate.images, estimate.images_per_s), (6, 0.1));
        start(&mut window);
    });
    // Only the parent process of the test has it.
    let Some(plane) = plane else {
        return;
    };
    let asked = asked(&plane, "CreateTransformJob");
    assert_eq!(asked["MaxConcurrentTransforms"], 4, "{asked}");
    assert_eq!(asked["MaxPayloadInMB"], 6, "{asked}");
    assert_eq!(asked["TransformInput"]["SplitType"], "TFRecord");
}

#[test]
fn check_lists_problems_first() {
    let mut plane = None;
    alone("sending::check_lists_problems_first", serve_held(&mut plane), || {
        let bucket = Seaweed::shared().bucket("sending-check");
        bucket.put("photos/a.png", &chelsea());
        let mut window = open_prefix(&bucket, "photos/", 1);
        open_form(&mut window);
        replace_in(&mut window, "Execution role", "nobody");
        wait_for_problem(&mut window, CheckPoint::Role);
        let check = window.state().state().remote.job_form.check.ready().unwrap();
        assert_eq!(check.preflight.count(CheckGrade::Problem), 1);
        let top = |label: &str| window.get_by_label(label).rect().top();
        // The price is unknown, and the cost is never collapsed.
        let order = [top("✗ Role"), top("⚠ Cost")];
        assert!(order.is_sorted(), "{order:?}");
        assert!(top("⚠ Cost") < window.get_by_label_contains(" checks passed").rect().top());
        assert!(!sees(&window, "✓ Job name"));
        click(&mut window, " checks passed");
        wait_for(&mut window, "✓ Job name");
    });
}

#[test]
fn payload_lowers_suggested_concurrency() {
    let mut plane = None;
    alone("sending::payload_lowers_suggested_concurrency", serve_held(&mut plane), || {
        let bucket = Seaweed::shared().bucket("sending-payload");
        bucket.put("photos/a.png", &chelsea());
        let mut window = open_prefix(&bucket, "photos/", 1);
        open_unfolded_form(&mut window);
        click(&mut window, "Known types");
        click(&mut window, "ml.m5.24xlarge");
        wait_for_concurrency(&mut window, 96);
        click(&mut window, "Requests and records");
        click(&mut window, "Maximum request size");
        wait_for_concurrency(&mut window, 16);
        start(&mut window);
    });
    // Only the parent process of the test has it.
    let Some(plane) = plane else {
        return;
    };
    let asked = asked(&plane, "CreateTransformJob");
    assert_eq!(asked["MaxConcurrentTransforms"], 16, "{asked}");
    assert_eq!(asked["MaxPayloadInMB"], 6, "{asked}");
}

#[test]
fn price_and_rate_belong_to_the_instance_type() {
    let mut plane = None;
    alone("sending::price_and_rate_belong_to_the_instance_type", serve_held(&mut plane), || {
        let bucket = Seaweed::shared().bucket("sending-price");
        bucket.put("photos/a.png", &chelsea());
        let mut window = open_prefix(&bucket, "photos/", 1);
        open_form(&mut window);
        click(&mut window, "Cost");
        let price = "Price per instance";
        type_into(&mut window, price, "0");
        wait_for(&mut window, "positive number, not");
        type_into(&mut window, price, ".25");
        type_into(&mut window, "Images per second", "0.5");
        wait_for(&mut window, "about 2 s");
        wait_for(&mut window, "$0.25 per instance-hour");

        click(&mut window, "Known types");
        click(&mut window, "ml.m5.24xlarge");
        wait_for_unknown_price(&mut window, "ml.m5.24xlarge");
        start(&mut window);
        // Nor for the next job.
        open_form(&mut window);
        wait_for_unknown_price(&mut window, "ml.m5.24xlarge");
    });
}

#[test]
fn advanced_parameters_reach_sagemaker() {
    let mut plane = None;
    alone("sending::advanced_parameters_reach_sagemaker", serve_held(&mut plane), || {
        let bucket = Seaweed::shared().bucket("sending-advanced");
        bucket.put("photos/a.png", &chelsea());
        bucket.put("photos/b.png", &chelsea());
        let manifest = format!(r#"[{{"prefix": "{}"}}, "b.png"]"#, bucket.uri("photos/"));
        bucket.put("lists/one.json", manifest.as_bytes());
        let mut window = open_prefix(&bucket, "photos/", 2);
        open_unfolded_form(&mut window);
        click(&mut window, "Advanced");
        for (field, text) in [
            ("ModelName:", "advanced-model"),
            ("TransformAmiVersion:", "al2-ami-sagemaker-batch-gpu-535"),
            ("ExperimentName:", "cats"),
            ("TrialName:", "first"),
            ("RunName:", "one"),
        ] {
            type_into(&mut window, field, text);
        }
        type_into(&mut window, "Model environment", "LOG=1");
        type_into(&mut window, "VPC subnets", "subnet-0a1, subnet-0b2");
        type_into(&mut window, "VPC security groups", "sg-0c3");
        click(&mut window, "Network isolation");
        let captured = bucket.uri("captured/");
        type_into(&mut window, "DestinationS3Uri:", &captured);
        click(&mut window, "GenerateInferenceId");
        let list = bucket.uri("lists/one.json");
        type_into(&mut window, "ManifestFile:", &list);
        wait_for(&mut window, &format!(": {list}"));
        wait_for(&mut window, "1 object, ");
        start(&mut window);
    });
    let Some(plane) = plane else {
        return;
    };
    let model = asked(&plane, "CreateModel");
    assert_eq!(model["ModelName"], "advanced-model");
    assert_eq!(model["PrimaryContainer"]["Environment"]["LOG"], "1");
    let vpc = json!({"Subnets": ["subnet-0a1", "subnet-0b2"], "SecurityGroupIds": ["sg-0c3"]});
    assert_eq!((&model["VpcConfig"], &model["EnableNetworkIsolation"]), (&vpc, &json!(true)));
    let job = asked(&plane, "CreateTransformJob");
    assert_eq!(job["ModelName"], "advanced-model");
    assert_eq!(job["DataCaptureConfig"]["GenerateInferenceId"], true);
    assert_eq!(job["ExperimentConfig"]["TrialName"], "first");
    assert_eq!(job["ExperimentConfig"]["RunName"], "one");
    let ami = &job["TransformResources"]["TransformAmiVersion"];
    assert_eq!(ami, "al2-ami-sagemaker-batch-gpu-535");
    let source = &job["TransformInput"]["DataSource"]["S3DataSource"];
    assert_eq!(source["S3DataType"], "ManifestFile");
    assert!(source["S3Uri"].as_str().unwrap().ends_with("/lists/one.json"));
}

#[test]
fn saved_model_is_packed_for_tf_serving() {
    let mut plane = None;
    alone("sending::saved_model_is_packed_for_tf_serving", serve_held(&mut plane), || {
        let bucket = Seaweed::shared().bucket("sending-saved");
        bucket.put("photos/a.png", &chelsea());
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("1")).unwrap();
        std::fs::write(folder.path().join("1/saved_model.pb"), "graph").unwrap();
        let mut window = open_prefix(&bucket, "photos/", 1);
        open_unfolded_form(&mut window);
        send_saved_model(&mut window, folder.path());
        wait_for(&mut window, "/tensorflow-inference:2.19.0-cpu");
        click(&mut window, "Environment and tags");
        click(&mut window, "Small batches");
        wait_until(&mut window, "a check with the preset", |window| {
            let Loadable::Ready(check) = &window.state().state().remote.job_form.check else {
                return false;
            };
            !check.plan.spec.environment.is_empty()
        });
        start(&mut window);
    });
    let Some(plane) = plane else {
        return;
    };
    let model = asked(&plane, "CreateModel");
    let image = model["PrimaryContainer"]["Image"].as_str().unwrap();
    assert!(image.ends_with("/tensorflow-inference:2.19.0-cpu"), "{image}");
    let job = asked(&plane, "CreateTransformJob");
    assert_eq!(job["Environment"]["SAGEMAKER_TFS_ENABLE_BATCHING"], "true");
}

#[test]
fn saved_model_rehearses_at_a_given_address() {
    let mut plane = None;
    alone(
        "sending::saved_model_rehearses_at_a_given_address",
        |command| {
            serve_held(&mut plane)(command);
            command.env("PYTHONPATH", python_packages("model-handler"));
        },
        || {
            let bucket = Seaweed::shared().bucket("sending-rehearsed");
            bucket.put("photos/a.png", &chelsea());
            bucket.put("photos/b.png", &chelsea());
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("1")).unwrap();
            std::fs::write(folder.path().join("1/saved_model.pb"), "graph").unwrap();
            let serving = HttpServer::start(|_| Reply::whole(br#"{"predictions": [[0.25, 0.75]]}"#));
            let mut window = open_prefix(&bucket, "photos/", 2);
            open_form(&mut window);
            let field = "TensorFlow Serving address";
            assert!(!sees(&window, field));
            send_saved_model(&mut window, folder.path());
            wait_for(&mut window, "A SavedModel requires");
            // A SavedModel requires an address.
            let is_off = |window: &Harness<'static, App>| {
                let button = window.get_by_role_and_label(Role::Button, "Rehearse");
                button.accesskit_node().is_disabled()
            };
            assert!(is_off(&window));
            type_into(&mut window, field, &serving.url("/v1/models/m:predict"));
            wait_until(&mut window, "the button", |window| !is_off(window));
            crate::evaluating::click_exactly(&mut window, "Rehearse");
            wait_for(&mut window, "✓ 2 of 2");
            let rehearsed = window.state().state().remote.rehearsal.ready().unwrap();
            assert!(rehearsed.is_well, "{}", rehearsed.summary);
            let asked = serving.exchanges();
            assert_eq!(asked.len(), 2);
            assert!(asked.iter().all(|exchange| exchange.request.path == "/v1/models/m:predict"));
        },
    );
}

#[test]
fn existing_sagemaker_model_is_used() {
    let mut plane = None;
    alone(
        "sending::existing_sagemaker_model_is_used",
        |command| {
            serve_held(&mut plane)(command);
            plane.as_ref().unwrap().add_chain("chain");
        },
        || {
            let bucket = Seaweed::shared().bucket("sending-existing");
            bucket.put("photos/a.png", &chelsea());
            let mut window = open_prefix(&bucket, "photos/", 1);
            window.state_mut().command(Action::StartJob);
            wait_for(&mut window, "Start the job");
            choose_value(&mut window, "Kind of model", "Existing SageMaker model");
            wait_for_missing(&mut window, "SageMaker");
            type_into(&mut window, "SageMaker model name", "chain");
            wait_for(&mut window, "several containers");
            start(&mut window);
        },
    );
    let Some(plane) = plane else {
        return;
    };
    assert_eq!(plane.count("CreateModel"), 0);
    let asked = asked(&plane, "CreateTransformJob");
    assert_eq!(asked["ModelName"], "chain");
}

#[test]
fn sending_one_record_warns_about_the_file() {
    let mut plane = None;
    alone("sending::sending_one_record_warns_about_the_file", serve_held(&mut plane), || {
        let bucket = Seaweed::shared().bucket("sending-one");
        let records = repository().join("tests/tfrecord/photos.tfrecord");
        let records = std::fs::read(records).unwrap();
        bucket.put("records/photos.tfrecord", &records);
        let mut window = open_prefix(&bucket, "records/", 6);
        let ids: Vec<_> = window.state().state().samples.ids().take(2).collect();
        window.state_mut().command(BrowseCommand::Show(ids[0]));
        window.state_mut().command(BrowseCommand::ToggleSelected(ids[1]));
        open_form(&mut window);
        assert!(sees(&window, "Selected images (2)"));
        let warning = job_check(&window, CheckPoint::Objects).unwrap();
        assert_eq!(warning.grade, CheckGrade::Warning);
        assert!(warning.finding.contains("2 images") && warning.finding.contains("of the 6"), "{warning:?}");
        assert!(sees(&window, &warning.finding));
    });
}

#[test]
fn aws_commands_send_lists_as_manifests() {
    let mut plane = None;
    alone(
        "sending::aws_commands_send_lists_as_manifests",
        |command| {
            serve_held(&mut plane)(command);
            command.env("AWS_REGION", REGION);
        },
        || {
            let bucket = Seaweed::shared().bucket("sending-commands");
            let folder = folder_of(200, "rocket.jpg");
            let mut window = open(Some(folder.path()), CLASSIFIER);
            wait_for(&mut window, "200 images, 1 predicted");
            wait_for_listing(&mut window);
            window.state_mut().command(Action::StartJob);
            wait_for_missing(&mut window, "S3");
            type_into(&mut window, "S3 folder", &bucket.uri("out/"));
            type_into(&mut window, "Execution role", ROLE);
            wait_for(&mut window, "No problems found");
            click(&mut window, "AWS CLI commands");
            wait_for(&mut window, "aws s3 sync ");
            let copies = window.query_all_by_label_contains("aws s3 cp ").count();
            assert!(copies < 5, "{copies}");
            // Only the visible part is laid out.
            assert!(sees(&window, r#""0-rocket.jpg","#));
            assert!(!sees(&window, r#""99-rocket.jpg""#));
            let state = window.state().state();
            let Loadable::Ready(check) = &state.remote.job_form.check else {
                panic!("it is checked");
            };
            let uploads = |line: &&String| line.starts_with("aws s3 ");
            assert_eq!(check.commands.iter().filter(uploads).count(), 2);
            assert_eq!(check.commands.len(), 200 + 5);
        },
    );
}

#[test]
fn price_is_saved_with_its_source() {
    let mut plane = None;
    alone("sending::price_is_saved_with_its_source", serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket("sending-table");
        bucket.put("photos/a.png", &chelsea());
        let home = tempfile::tempdir().unwrap();
        let dirs = AppDirs {
            config: home.path().join("config"),
            projects: home.path().join("projects"),
            ..AppDirs::below(runtime_home())
        };
        let table = dirs.prices();
        let mut window = open_with_model_at(dirs, CLASSIFIER);
        window.state_mut().command(BrowseCommand::OpenPlace(Box::new(place(&bucket))));
        wait_for(&mut window, "1 image, 1 predicted");
        wait_for_listing(&mut window);
        open_form(&mut window);
        click(&mut window, "Known types");
        click(&mut window, "ml.m5.24xlarge");
        click(&mut window, "Cost");
        wait_for(&mut window, "table is empty");
        type_into(&mut window, "Price per instance", "5.5");
        type_into(&mut window, "Price source", "an invoice");
        click(&mut window, SAVE_PRICE);
        wait_for(&mut window, "Show price file");
        let kept = std::fs::read_to_string(&table).unwrap();
        assert!(kept.contains("usd_per_hour = 5.5"), "{kept}");
        assert!(kept.contains(&format!("region = \"{REGION}\"")), "{kept}");
        // The next form remembers it.
        window.state_mut().command(Command::SetOverlay(Overlay::None));
        open_form(&mut window);
        click(&mut window, "Known types");
        click(&mut window, "ml.m5.24xlarge");
        wait_for(&mut window, "$5.50 per hour");
        // An entry of the price table can be corrected in place.
        wait_for(&mut window, "Change the price");
        click(&mut window, "Change the price");
        replace_in(&mut window, "Source of the", "a newer invoice");
        click(&mut window, "Save the changed");
        wait_for(&mut window, "a newer invoice)");
        let changed = std::fs::read_to_string(&table).unwrap();
        assert_eq!(changed, kept.replace("an invoice", "a newer invoice"));

        // A job with an unknown price asks for it.
        window.state_mut().command(Command::SetOverlay(Overlay::None));
        open_form(&mut window);
        start(&mut window);
        wait_for(&mut window, "✓ completed");
        let unpriced = "price unknown";
        wait_for(&mut window, unpriced);
        click(&mut window, "Enter the price");
        type_into(&mut window, "Price per instance", "3.6");
        type_into(&mut window, "Price source", "a colleague");
        click(&mut window, SAVE_PRICE);
        wait_until(&mut window, "what the job has cost", |window| {
            let job = window.state().state().remote.jobs.shown();
            job.and_then(|job| job.progress.as_ref()?.cost_usd).is_some()
        });
        assert!(!sees(&window, unpriced));
    });
}
