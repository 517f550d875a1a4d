//! Sending models to SageMaker from the window, with a working control plane. Each test has a separate process, because
//! the AWS settings are those of its process.

use std::process::Command as Process;
use std::time::Duration;

use egui_kittest::Harness;
use spotcheck::domain::{S3Access, S3Address, S3Place};
use spotcheck::sagemaker::spec::transform::{Check, CheckGrade, CheckPoint, JobOutcome};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, JobId, Loadable, Overlay, RemoteCommand};

use crate::support::alone::alone;
use crate::support::control_plane::{ControlPlane, REGION, ROLE};
use crate::support::seaweed::{ADMIN, Bucket, Seaweed};
use crate::support::{python_packages, repository};
use crate::window::{
    click, folder_of, home_with_runtime, open, open_with_model_at, sees, text_field, wait_for, wait_for_overlay,
    wait_until,
};

const CLASSIFIER: &str = "efficientnet-lite0";

/// Gives the process of a test SeaweedFS and a control plane, which lives until the process has ended.
pub(crate) fn serve(plane: &mut Option<ControlPlane>) -> impl FnOnce(&mut Process) {
    |command| {
        let server = Seaweed::shared();
        server.lend(command);
        let started = ControlPlane::start(server);
        started.sign_in(command, ADMIN);
        *plane = Some(started);
    }
}

pub(crate) fn place(bucket: &Bucket) -> S3Place {
    S3Place {
        access: S3Access { region: Some(REGION.to_owned()), ..S3Access::default() },
        ..S3Place::new(S3Address::new(&bucket.name, "photos/"))
    }
}

/// A window on `photos/` of this bucket.
pub(crate) fn open_place(bucket: &Bucket, images: usize) -> Harness<'static, App> {
    let mut window = open(None, CLASSIFIER);
    window.state_mut().command(BrowseCommand::OpenPlace(Box::new(place(bucket))));
    wait_for(&mut window, &format!("{images} images, 1 predicted"));
    wait_for_listing(&mut window);
    window
}

pub(crate) fn wait_for_listing(window: &mut Harness<'static, App>) {
    wait_until(window, "the end of the listing", |window| !window.state().state().is_listing());
}

pub(crate) fn type_into(window: &mut Harness<'static, App>, field: &str, text: &str) {
    text_field(window, field).scroll_to_me();
    window.run_steps(3);
    text_field(window, field).focus();
    window.step();
    text_field(window, field).type_text(text);
    window.run_steps(2);
}

/// Waits until the open form shows what is missing.
#[track_caller]
pub(crate) fn wait_for_missing(window: &mut Harness<'static, App>, word: &str) {
    wait_until(window, word, |window| {
        let state = window.state().state();
        let missing = match state.overlay {
            Overlay::DeployEndpoint => state.remote.endpoint_form.missing.as_ref(),
            _ => state.remote.job_form.missing.as_ref(),
        };
        missing.is_some_and(|missing| missing.contains(word) && sees(window, missing))
    });
}

/// Waits until a check prevents the start of the job, and the form shows why.
#[track_caller]
pub(crate) fn wait_for_problem(window: &mut Harness<'static, App>, point: CheckPoint) {
    wait_until(window, "the problem", |window| {
        let check = job_check(window, point);
        check.is_some_and(|check| check.grade == CheckGrade::Problem && sees(window, &check.finding))
    });
}

/// The result of the job form's last check at this point.
pub(crate) fn job_check<'w>(window: &'w Harness<'static, App>, point: CheckPoint) -> Option<&'w Check> {
    let check = window.state().state().remote.job_form.check.ready()?;
    check.preflight.checks.iter().find(|check| check.point == point)
}

/// The outcome of the images of the job on screen.
pub(crate) fn outcome<'w>(window: &'w Harness<'static, App>) -> Option<&'w JobOutcome> {
    window.state().state().remote.jobs.shown()?.outcome.ready()
}

/// Like [`type_into`], but replaces the text of the field.
pub(crate) fn replace_in(window: &mut Harness<'static, App>, field: &str, text: &str) {
    type_into(window, field, "");
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::A);
    window.step();
    type_into(window, field, text);
}

/// Completes the form, and starts the job once it was checked.
pub(crate) fn send(window: &mut Harness<'static, App>) {
    window.state_mut().command(Action::StartJob);
    wait_for(window, "Start the job");
    type_into(window, "Execution role", ROLE);
    start_the_job(window);
    wait_for(window, "SageMaker jobs");
}

/// Clicks until the click succeeds: a new check disables the button for a moment.
pub(crate) fn start_the_job(window: &mut Harness<'static, App>) {
    let is_taken = |window: &Harness<'static, App>| {
        let state = window.state().state();
        let is_open = state.overlay == Overlay::StartJob;
        !is_open || !matches!(state.remote.job_form.start, Loadable::NotLoaded)
    };
    while !is_taken(window) {
        wait_for(window, "No problems found");
        click(window, "Start the job");
    }
}

const RETRY_FAILED: &str = "Retry failed images…";

/// Replaces an image that the model rejected, and lets the job page detect it.
pub(crate) fn replace_refused(window: &mut Harness<'static, App>, bucket: &Bucket, key: &str, image: &[u8]) {
    wait_until(window, "one refused image", |window| outcome(window).is_some_and(|outcome| outcome.refused() == 1));
    assert!(!sees(window, RETRY_FAILED));
    // S3 reports modification times in seconds.
    std::thread::sleep(Duration::from_secs(2));
    bucket.put(key, image);
    click(window, "Check again");
}

/// Starts a retry after reviewing it.
pub(crate) fn retry_the_failed(window: &mut Harness<'static, App>) {
    wait_for(window, RETRY_FAILED);
    click(window, RETRY_FAILED);
    wait_for(window, "Start the retry");
    click(window, "Start the retry");
}

#[test]
fn partly_failed_job_names_and_retries_one_image() {
    let mut plane = None;
    alone("remote::partly_failed_job_names_and_retries_one_image", serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-job");
        let image = std::fs::read(repository().join("assets/samples/chelsea.png")).unwrap();
        bucket.put("photos/a.png", &image);
        bucket.put("photos/broken.png", b"no image");
        bucket.put("photos/c.png", &image);
        let mut window = open_place(&bucket, 3);
        send(&mut window);

        wait_for(&mut window, "✗ failed");
        wait_for(&mut window, "2 of 3 outputs");
        wait_for(&mut window, "photos/broken.png: ");
        assert_eq!(outcome(&window).unwrap().failed.len(), 1);
        let first = window.state().state().remote.jobs.open.clone().unwrap().name;
        assert!(bucket.get(&format!("spotcheck/{first}/a.png.out")).is_some());

        // As long as the image is unchanged, only an explicit retry is offered.
        replace_refused(&mut window, &bucket, "photos/broken.png", &image);
        retry_the_failed(&mut window);
        wait_until(&mut window, "another job", |window| {
            let open = window.state().state().remote.jobs.open.as_ref();
            open.is_some_and(|open| open.name != first)
        });
        wait_for(&mut window, "1 of 1 outputs");
        wait_for(&mut window, "✓ completed");
        let second = window.state().state().remote.jobs.open.clone().unwrap().name;
        assert!(bucket.get(&format!("spotcheck/{second}/broken.png.out")).is_some());
        assert!(bucket.get(&format!("spotcheck/{second}/a.png.out")).is_none());

        // The page of the first job shows the retry.
        let open = window.state().state().remote.jobs.open.clone().unwrap();
        let first_id = JobId { name: first.clone(), ..open.clone() };
        window.state_mut().command(RemoteCommand::Open(first_id));
        wait_until(&mut window, "the retry", |window| {
            let retries = outcome(window).map_or(&[][..], |outcome| &outcome.retries);
            retries.iter().any(|retry| retry.job_name == second && retry.predicted == 1)
        });
        wait_for(&mut window, &format!("retry {second}"));
        assert!(outcome(&window).unwrap().failed.is_empty());
        assert!(!sees(&window, RETRY_FAILED));
        window.state_mut().command(RemoteCommand::Open(open));
        wait_for(&mut window, "1 of 1 outputs");

        // The leftovers are listed before they are deleted.
        wait_for(&mut window, "The manifest s3://");
        click(&mut window, "Delete these…");
        click(&mut window, "Delete them");
        wait_for(&mut window, "Deleted: ");

        // Both are in the list of the account.
        click(&mut window, "List jobs");
        wait_for(&mut window, &format!("Job {first}, failed"));
        wait_for(&mut window, &format!("Job {second}, completed"));
    });
}

#[test]
fn selected_local_images_are_sent_and_job_stopped() {
    let mut plane = None;
    alone(
        "remote::selected_local_images_are_sent_and_job_stopped",
        |command| {
            serve(&mut plane)(command);
            plane.as_ref().unwrap().pause_jobs();
            // Nothing else sets the region here.
            command.env("AWS_REGION", REGION);
        },
        || {
            let bucket = Seaweed::shared().bucket("window-local");
            let folder = folder_of(3, "chelsea.png");
            let mut window = open(Some(folder.path()), CLASSIFIER);
            wait_for(&mut window, "3 images, 1 predicted");
            wait_for_listing(&mut window);
            let first = window.state().state().samples.ids().next().unwrap();
            let last = window.state().state().samples.ids().last().unwrap();
            window.state_mut().command(BrowseCommand::Show(first));
            window.state_mut().command(BrowseCommand::ToggleSelected(last));
            window.state_mut().command(Action::StartJob);
            wait_for_missing(&mut window, "S3");
            assert!(sees(&window, "Selected images (2)"));
            type_into(&mut window, "S3 folder", &bucket.uri("out/"));
            type_into(&mut window, "Execution role", ROLE);
            start_the_job(&mut window);
            wait_for(&mut window, "0 of 2 outputs");
            let state = window.state().state();
            let name = |id| state.samples.get(id).unwrap().name.clone();
            let images = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
            let key = |name: String| format!("out/images/{images}/{name}");
            assert!(bucket.get(&key(name(first))).is_some());
            assert!(bucket.get(&key(name(last))).is_some());
            let second = state.samples.ids().nth(1).unwrap();
            assert!(bucket.get(&key(name(second))).is_none());

            click(&mut window, "Stop the job…");
            wait_for(&mut window, "Stop this job?");
            click(&mut window, "Stop it");
            wait_for(&mut window, "■ stopped");
            wait_until(&mut window, "the outcome", |window| {
                outcome(window).is_some_and(|outcome| outcome.failed.len() == 2)
            });
        },
    );
}

#[test]
fn job_outputs_agree_with_the_local_run() {
    let mut plane = None;
    alone("remote::job_outputs_agree_with_the_local_run", serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-outputs");
        for name in ["chelsea.png", "coffee.png", "rocket.jpg"] {
            let path = repository().join("assets/samples").join(name);
            bucket.put(&format!("photos/{name}"), &std::fs::read(path).unwrap());
        }
        let mut window = open_place(&bucket, 3);
        click(&mut window, "Predict all");
        wait_for(&mut window, "3 images, 3 predicted");
        send(&mut window);
        wait_for(&mut window, "✓ completed");
        click(&mut window, "Open outputs");
        wait_until(&mut window, "the predictions of the job", |window| {
            let run = window.state().state().run();
            run.is_some_and(|run| !run.info.key.made.is_here() && run.predictions.predicted() == 3)
        });
        wait_for(&mut window, "tiger cat 38.3%");

        click(&mut window, "Remote");
        click(&mut window, "Compare local");
        agrees_with_local(&mut window, 3);
    });
}

/// Waits until a remote run is compared with the local one: both must agree on all images.
#[track_caller]
pub(crate) fn agrees_with_local(window: &mut Harness<'static, App>, images: usize) {
    wait_for(window, "100.0% agree");
    let comparing = window.state().state().comparing.as_ref().unwrap();
    let summary = &comparing.agreement().unwrap().summary;
    assert_eq!((summary.compared, summary.agreeing), (images, images));
    assert!(summary.differences.largest < 1e-4, "{}", summary.differences.largest);
}

/// A folder of outputs for the images of [`folder_of`], all with the same prediction.
fn outputs_about(count: usize, sample: &str, prediction: &str) -> tempfile::TempDir {
    let outputs = tempfile::tempdir().unwrap();
    for number in 0..count {
        let path = outputs.path().join(format!("{number}-{sample}.out"));
        std::fs::write(path, prediction).unwrap();
    }
    outputs
}

/// The button that opens outputs or predictions.
pub(crate) const OPEN: &str = "Open as";

/// Waits until outputs turn out to be unreadable, and a mapping is offered.
#[track_caller]
pub(crate) fn wait_until_unknown(window: &mut Harness<'static, App>) {
    wait_until(window, "outputs of an unknown format", |window| {
        let reading = &window.state().state().remote.reading;
        let reason = reading.trial.as_ref().and_then(|trial| trial.description.as_ref().err());
        reason.is_some_and(|reason| sees(window, reason)) && sees(window, "Make a mapping")
    });
}

fn description(window: &Harness<'static, App>) -> Result<String, String> {
    window.state().state().remote.reading.trial.as_ref().unwrap().description.clone()
}

/// A window on copies of an image, with the dialog for outputs in this folder.
fn open_outputs_of(
    images: &tempfile::TempDir,
    outputs: &std::path::Path,
    home: &std::path::Path,
) -> Harness<'static, App> {
    let mut window = open_with_model_at(home_with_runtime(home), CLASSIFIER);
    window.state_mut().command(BrowseCommand::Open(images.path().to_owned()));
    wait_for(&mut window, "2 images, 1 predicted");
    wait_for_listing(&mut window);
    window.state_mut().command(Action::OpenOutputs);
    wait_for_overlay(&mut window, Overlay::OpenOutputs);
    type_into(&mut window, "Output folder", outputs.to_str().unwrap());
    window
}

#[test]
fn unknown_outputs_are_read_with_a_mapping() {
    let images = folder_of(2, "chelsea.png");
    let prediction = r#"{"verdict": {"certainty": [0.25, 0.75], "code": 7}}"#;
    let outputs = outputs_about(2, "chelsea.png", prediction);
    let labels = outputs.path().join("labels.txt");
    std::fs::write(&labels, "dog\ncat\n").unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut window = open_outputs_of(&images, outputs.path(), home.path());
    click(&mut window, OPEN);
    wait_until_unknown(&mut window);
    assert!(sees(&window, "\"certainty\": [0.25, 0.75]"));

    // An unambiguous field is found automatically.
    click(&mut window, "Make a mapping");
    wait_for(&mut window, "class 1 75.0%");
    type_into(&mut window, "Label set", labels.to_str().unwrap());
    wait_for(&mut window, "cat 75.0%");
    // These outputs contain no boxes; the problem is shown at the field.
    click(&mut window, "Object boxes");
    wait_for(&mut window, "of the boxes");
    click(&mut window, "Image classes");
    wait_for(&mut window, "cat 75.0%");
    replace_in(&mut window, "Mapping name", "Verdicts of old");
    click(&mut window, "Save the mapping");
    wait_for(&mut window, "✓ saved");
    let kept = home.path().join("data/mappings/verdicts-of-old.toml");
    let text = std::fs::read_to_string(kept).unwrap();
    assert!(text.contains("scores = \"/verdict/certainty\""), "{text}");
    assert!(text.contains("labels = \"verdicts-of-old.txt\""), "{text}");

    click(&mut window, OPEN);
    wait_for(&mut window, "2 images, 2 predicted");
    wait_for(&mut window, "cat 75.0%");
    let run = window.state().state().run().unwrap();
    assert_eq!(run.info.card.name, "Verdicts of old");
    drop(window);

    // The next time, it is chosen by name.
    let again = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(again.path().join("data")).unwrap();
    let kept = home.path().join("data/mappings");
    std::os::unix::fs::symlink(kept, again.path().join("data/mappings")).unwrap();
    let mut window = open_outputs_of(&images, outputs.path(), again.path());
    click(&mut window, "How predictions");
    click(&mut window, "Saved: Verdicts of old");
    click(&mut window, "Preview");
    wait_for(&mut window, "cat 75.0%");
    assert!(sees(&window, "✓ saved"));
}

#[test]
fn unknown_boxes_are_read_with_mapping_fields() {
    let images = folder_of(2, "coffee.png");
    // 600 x 400 pixels.
    let prediction = r#"{"items": [{"at": [40, 60, 240, 360], "kind": "cup", "sure": 0.75},
        {"at": [0, 0, 100, 50], "kind": "spoon", "sure": 0.5}]}"#;
    let outputs = outputs_about(2, "coffee.png", prediction);
    let labels = outputs.path().join("labels.txt");
    std::fs::write(&labels, "spoon\ncup\n").unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut window = open_outputs_of(&images, outputs.path(), home.path());
    click(&mut window, "Preview");
    wait_until_unknown(&mut window);
    click(&mut window, "Make a mapping");
    wait_for(&mut window, "class of each");
    click(&mut window, "Choose: Classes");
    wait_for(&mut window, "2 strings");
    click(&mut window, "/items/*/kind");
    wait_for(&mut window, "score of each");
    click(&mut window, "Choose: Scores");
    click(&mut window, "/items/*/sure");
    wait_for(&mut window, "class “cup”");
    type_into(&mut window, "Label set", labels.to_str().unwrap());
    wait_for(&mut window, "cup 75.0%");

    // A file has the other fields.
    let file = outputs.path().join("tops-first.toml");
    let text = "id = \"tops-first\"\nname = \"Tops first\"\nlabels = \"labels.txt\"\n[prediction.detection]\nboxes = \
        \"/items/*/at\"\nclasses = \"/items/*/kind\"\nscores = \"/items/*/sure\"\nbox_format = \"yxyx\"\nbox_space = \
        \"pixels\"\n";
    std::fs::write(&file, text).unwrap();
    type_into(&mut window, "Mapping file", file.to_str().unwrap());
    click(&mut window, "Load");
    wait_until(&mut window, "the mapping to be read", |window| {
        let reading = &window.state().state().remote.reading;
        let is_loaded = reading.loaded.is_some() && !reading.is_loading;
        let trial = reading.trial.as_ref().filter(|_| is_loaded);
        trial.is_some_and(|trial| !trial.readings.is_empty() && trial.readings.iter().all(Result::is_ok))
    });
    click(&mut window, OPEN);
    wait_for(&mut window, "2 images, 2 predicted");
    wait_until(&mut window, "the boxes of the image", |window| {
        let state = window.state().state();
        let shown = state.shown_sample().and_then(|shown| state.prediction_of(shown));
        shown.is_some_and(|prediction| {
            let edges = prediction.detections()[0].bounds;
            [edges.x1, edges.y1, edges.x2, edges.y2] == [60.0, 40.0, 360.0, 240.0]
        })
    });
}

#[test]
fn known_outputs_are_previewed_and_mapped() {
    let images = folder_of(2, "chelsea.png");
    let outputs = outputs_about(2, "chelsea.png", r#"{"predictions": [[0.1, 0.2, 0.7]]}"#);
    let home = tempfile::tempdir().unwrap();
    let mut window = open_outputs_of(&images, outputs.path(), home.path());
    click(&mut window, "Preview");
    wait_for(&mut window, "class 2 70.0%");
    let description = description(&window).unwrap();
    assert!(description.starts_with("List of scores") && sees(&window, &description), "{description}");
    // No run was created.
    assert!(sees(&window, "2 images, 1 predicted"));
    click(&mut window, "How predictions");
    click(&mut window, "With a mapping");
    click(&mut window, "Class 0");
    wait_for(&mut window, "class 1 70.0%");
}

#[test]
fn invalid_job_is_blocked_and_rehearsed() {
    let mut plane = None;
    alone(
        "remote::invalid_job_is_blocked_and_rehearsed",
        |command| {
            serve(&mut plane)(command);
            command.env("PYTHONPATH", python_packages("model-handler"));
        },
        || {
            let bucket = Seaweed::shared().bucket("window-form");
            let image = std::fs::read(repository().join("assets/samples/chelsea.png")).unwrap();
            bucket.put("photos/a.png", &image);
            bucket.put("photos/b.png", &image);
            let mut window = open_place(&bucket, 2);
            window.state_mut().command(Action::StartJob);
            wait_for(&mut window, "✗ Role");
            wait_for_problem(&mut window, CheckPoint::Role);
            // Nothing happens while it is disabled.
            click(&mut window, "Start the job");
            assert!(!window.state().state().remote.job_form.start.is_loading());
            click(&mut window, "AWS CLI commands");
            wait_for(&mut window, "aws sagemaker create-transform-job");
            // Testing the archive here costs nothing.
            crate::evaluating::click_exactly(&mut window, "Rehearse");
            wait_for(&mut window, "✓ 2 of 2");
            let rehearsed = window.state().state().remote.rehearsal.ready().unwrap();
            assert!(rehearsed.is_well, "{}", rehearsed.summary);
            // The estimate can use the measured speed.
            click(&mut window, "Cost");
            click(&mut window, "in the rehearsal");
            wait_for(&mut window, "2 objects at ");
        },
    );
}
