//! Outputs of jobs as runs of the open images: the image of each output, what a retry adds, and what a run continues
//! with.

use std::path::Path;

use egui_kittest::Harness;
use spotcheck::domain::{Location, S3Address, S3Place, SampleId};
use spotcheck::window::app::App;
use spotcheck::window::state::{BrowseCommand, Command, OutputsAt, OutputsCommand, OutputsRequest, RemoteCommand};

use crate::remote::{place, replace_refused, retry_the_failed, send, serve, wait_for_listing};
use crate::support::alone::alone;
use crate::support::repository;
use crate::support::seaweed::Seaweed;
use crate::window::{click, folder_of, open, open_in, wait_for, wait_for_notice, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";

fn read_image(name: &str) -> Vec<u8> {
    std::fs::read(repository().join("assets/samples").join(name)).unwrap()
}

fn sample_named(window: &Harness<'static, App>, name: &str) -> SampleId {
    let samples = &window.state().state().samples;
    let mut ids = samples.ids();
    ids.find(|id| samples.get(*id).unwrap().name == name).unwrap()
}

/// The predicted images of the run on screen, which was made by a job.
fn predicted_images(window: &Harness<'static, App>) -> Vec<String> {
    let state = window.state().state();
    let run = state.run().filter(|run| !run.info.key.made.is_here());
    let predictions = run.into_iter().flat_map(|run| run.predictions.iter());
    predictions.map(|(id, _)| state.samples.get(id).unwrap().name.clone()).collect()
}

#[test]
fn outputs_of_selected_images_include_the_retry() {
    let mut plane = None;
    alone("job_outputs::outputs_of_selected_images_include_the_retry", serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-manifest");
        // A folder and its subfolder have images of the same name.
        bucket.put("photos/1.png", &read_image("chelsea.png"));
        bucket.put("photos/2.png", &read_image("astronaut.png"));
        bucket.put("photos/a/1.png", &read_image("coffee.png"));
        bucket.put("photos/a/2.png", b"no image");
        bucket.put("other/1.png", &read_image("chelsea.png"));
        let mut window = open(None, CLASSIFIER);
        let photos = place(&bucket);
        let open_photos = Command::Browse(BrowseCommand::OpenPlace(Box::new(photos.clone())));
        window.state_mut().command(open_photos);
        wait_for(&mut window, "4 images, 1 predicted");
        wait_for_listing(&mut window);
        let (first, second) = (sample_named(&window, "a/1.png"), sample_named(&window, "a/2.png"));
        window.state_mut().command(BrowseCommand::Show(first));
        window.state_mut().command(BrowseCommand::ToggleSelected(second));
        send(&mut window);
        wait_for(&mut window, "✗ failed");
        wait_for(&mut window, "1 of 2 outputs");
        let job = window.state().state().remote.jobs.open.clone().unwrap();

        replace_refused(&mut window, &bucket, "photos/a/2.png", &read_image("rocket.jpg"));
        retry_the_failed(&mut window);
        wait_for(&mut window, "1 of 1 outputs");
        wait_for(&mut window, "✓ completed");
        let retry = window.state().state().remote.jobs.open.clone().unwrap();

        // The first job's outputs include the retry's output of the other image.
        window.state_mut().command(RemoteCommand::Open(job.clone()));
        wait_for(&mut window, "1 of 2 outputs");
        click(&mut window, "Open outputs");
        wait_until(&mut window, "both jobs", |window| predicted_images(window) == ["a/1.png", "a/2.png"]);
        let notice = wait_for_notice(&mut window, &retry.name);
        assert!(notice.contains("1 image"), "{notice}");
        wait_for(&mut window, "espresso");
        // The model of the outputs is shown with them.
        wait_for(&mut window, &format!("Transform job {}", job.name));

        // From another location, the page leads back to the images.
        let other_prefix = S3Place { address: S3Address::new(&bucket.name, "other/"), ..photos.clone() };
        window.state_mut().command(BrowseCommand::OpenPlace(Box::new(other_prefix)));
        wait_for(&mut window, "1 image, 1 predicted");
        window.state_mut().command(RemoteCommand::Open(job));
        click(&mut window, "Open its images");
        wait_until(&mut window, "the job images", |window| window.state().state().place() == Some(&photos));
        wait_for(&mut window, "4 images");
    });
}

/// Writes the output of our container for an image, by a model unknown to Spotcheck.
pub(crate) fn put_output(folder: &Path, image: &str, classes: &[(u32, &str, f64)]) {
    let classes: Vec<serde_json::Value> = classes
        .iter()
        .map(|(index, label, score)| serde_json::json!({"index": index, "label": label, "score": score}))
        .collect();
    let prediction = serde_json::json!({
        "status": "ok", "model": "theirs", "task": "classification", "width": 451, "height": 300,
        "classes": classes,
    });
    let path = folder.join(format!("{image}.out"));
    std::fs::write(path, prediction.to_string()).unwrap();
}

pub(crate) fn open_folder_of_outputs(window: &mut Harness<'static, App>, folder: &Path) {
    // One folder is read at a time.
    wait_until_idle(window);
    let request = OutputsRequest {
        at: OutputsAt::Folder(Location::Path(folder.to_owned())),
        reading: spotcheck::sagemaker::spec::output_mapping::ReadingRequest::default(),
        compare_with: None,
    };
    window.state_mut().command(OutputsCommand::Open(Box::new(request)));
}

#[test]
fn resumed_run_keeps_learned_classes() {
    let images = folder_of(3, "chelsea.png");
    let outputs = tempfile::tempdir().unwrap();
    let projects = tempfile::tempdir().unwrap();
    let image = |number: u32| format!("{number}-chelsea.png");
    put_output(outputs.path(), &image(0), &[(0, "cat", 0.75), (7, "dog", 0.25)]);
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "3 images, 1 predicted");
    wait_for_listing(&mut window);
    open_folder_of_outputs(&mut window, outputs.path());
    wait_until(&mut window, "the first prediction", |window| predicted_images(window) == [image(0)]);
    wait_for(&mut window, "cat 75.0%");
    wait_for(&mut window, "All saved");
    drop(window);

    // The next day, the first output is gone, and one of the later ones is from another model.
    std::fs::remove_file(outputs.path().join(format!("{}.out", image(0)))).unwrap();
    put_output(outputs.path(), &image(1), &[(7, "dog", 0.5), (9, "bird", 0.25)]);
    put_output(outputs.path(), &image(2), &[(7, "horse", 0.5)]);
    let mut again = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut again, "3 images");
    wait_for_listing(&mut again);
    wait_until(&mut again, "the earlier run", |window| {
        let mut runs = window.state().state().runs.iter();
        runs.any(|run| !run.info.key.made.is_here())
    });
    open_folder_of_outputs(&mut again, outputs.path());
    wait_until(&mut again, "both days", |window| {
        let run = window.state().state().run();
        run.is_some_and(|run| run.predictions.failed() == 1) && predicted_images(window) == [image(0), image(1)]
    });
    let run = again.state().state().run().unwrap();
    let names: Vec<(u32, &str)> = run.info.labels.iter().collect();
    assert_eq!(names, [(0, "cat"), (7, "dog"), (9, "bird")]);
    let refused = sample_named(&again, &image(2));
    let failure = run.predictions.failure(refused).unwrap();
    assert!(failure.contains("“horse”") && failure.contains("“dog”"), "{failure}");
}
