//! Predictions from other tools, opened from the dialog or dropped on the window, as a run of the open images.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::{BoundingBox, SampleId};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, EvaluationCommand};

use crate::browsing::drop_on;
use crate::remote::{OPEN, open_place, replace_in, serve, type_into, wait_for_listing};
use crate::support::alone::alone;
use crate::support::seaweed::Seaweed;
use crate::truth::truth_of_samples;
use crate::window::{click, folder_of, open, samples, sees, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";
const FIELD: &str = "Prediction file";

/// A COCO file with scores for `0-chelsea.png` (451 x 300) and a missing image, with an invalid box.
fn write_coco(folder: &Path) -> PathBuf {
    let file = folder.join("theirs.json");
    let content = serde_json::json!({
        "images": [{"id": 1, "file_name": "0-chelsea.png"}, {"id": 2, "file_name": "elsewhere.png"}],
        "categories": [{"id": 3, "name": "cat"}, {"id": 9, "name": "sofa"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 3, "bbox": [40, 20, 300, 250], "score": 0.75},
            {"id": 2, "image_id": 1, "category_id": 9, "bbox": [0, 10, 100, 200], "score": 0.625},
            {"id": 3, "image_id": 1, "category_id": 9, "bbox": [0, 10, -4, 20], "score": 0.5},
        ],
    });
    std::fs::write(&file, content.to_string()).unwrap();
    file
}

/// A window on two images, the first of them predicted.
fn two_images(images: &tempfile::TempDir) -> Harness<'static, App> {
    let mut window = open(Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "2 images, 1 predicted");
    wait_for_listing(&mut window);
    wait_until_idle(&mut window);
    window
}

fn runs(window: &Harness<'static, App>) -> usize {
    window.state().state().runs.iter().count()
}

#[track_caller]
fn wait_for_run(window: &mut Harness<'static, App>, model: &str) {
    wait_until(window, model, |window| {
        let state = window.state().state();
        let is_current = state.run().is_some_and(|run| run.info.card.name == model);
        is_current && state.tasks.is_idle() && state.project.unsaved() == 0
    });
}

#[test]
fn predictions_become_a_run_and_problems_are_listed() {
    let (images, files) = (folder_of(2, "chelsea.png"), tempfile::tempdir().unwrap());
    let file = write_coco(files.path());
    let mut window = two_images(&images);
    click(&mut window, "File");
    click(&mut window, "Open predictions…");
    type_into(&mut window, FIELD, file.to_str().unwrap());
    click(&mut window, OPEN);
    wait_for_run(&mut window, "theirs");
    assert!(!sees(&window, FIELD), "the dialog stays open");
    for text in ["cat 75", "sofa 62", "COCO JSON, 3 entries", "1 of 2 images"] {
        wait_for(&mut window, text);
    }
    let state = window.state().state();
    let detections = state.prediction_of(SampleId(0)).unwrap().detections();
    assert_eq!(detections.len(), 2);
    assert_eq!(detections[0].bounds, BoundingBox::new(40.0, 20.0, 340.0, 270.0));
    // An image without an entry has no detections.
    assert!(state.prediction_of(SampleId(1)).unwrap().detections().is_empty());

    wait_for(&mut window, "theirs, outputs in ");
    click(&mut window, " problem");
    for text in ["annotations[2]", "elsewhere.png"] {
        wait_for(&mut window, text);
    }
}

#[test]
fn changed_prediction_file_starts_another_run() {
    let (images, files) = (folder_of(2, "chelsea.png"), tempfile::tempdir().unwrap());
    let file = write_coco(files.path());
    let mut window = two_images(&images);
    let drop_again = |window: &mut Harness<'static, App>, expected: usize| {
        drop_on(window, &file);
        window.step();
        wait_for_run(window, "theirs");
        wait_until(window, "the runs", |window| runs(window) == expected);
    };
    drop_again(&mut window, 2);
    drop_again(&mut window, 2);
    let later = SystemTime::now() + Duration::from_mins(1);
    std::fs::File::options().append(true).open(&file).unwrap().set_modified(later).unwrap();
    drop_again(&mut window, 3);
}

#[test]
fn dropped_files_are_recognized_by_content() {
    let (images, files) = (folder_of(2, "chelsea.png"), tempfile::tempdir().unwrap());
    let path = |name: &str| files.path().join(name);
    let write = |name: &str, content: &str| {
        std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        std::fs::write(path(name), content).unwrap();
        path(name)
    };
    let mut window = two_images(&images);

    write("yolo/labels/0-chelsea.txt", "0 0.5 0.5 0.25 0.5 0.875\n");
    write("yolo/labels/1-chelsea.txt", "1 0.5 0.5 0.5 0.5 0.5\n");
    write("yolo/classes.txt", "tabby\ndog\n");
    drop_on(&mut window, &path("yolo"));
    wait_for_run(&mut window, "yolo");
    wait_for(&mut window, "tabby 87");
    wait_for(&mut window, "2 images, 2 predicted");

    let rows = "image,label,score\n0-chelsea.png,lynx,0.625\n0-chelsea.png,cat,0.25\n";
    drop_on(&mut window, &write("classes.csv", rows));
    wait_for_run(&mut window, "classes");
    wait_for(&mut window, "lynx 62.5%");

    drop_on(&mut window, &write("note.json", "{\"a\": 1}"));
    wait_for(&mut window, "note.json");
    let named = serde_json::json!([{"image_id": 77, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]);
    drop_on(&mut window, &write("numbers.json", &named.to_string()));
    wait_for(&mut window, "only image numbers");
    assert_eq!(runs(&window), 3);
    assert!(sees(&window, "2 images"));

    let other = folder_of(3, "coffee.png");
    drop_on(&mut window, other.path());
    wait_for(&mut window, "3 images");
}

/// The bytes that this process has read from files.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/io").unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn dropped_file_is_read_once() {
    const BYTES: usize = 48 << 20;
    alone(
        "predictions::dropped_file_is_read_once",
        |_| {},
        || {
            let folder = tempfile::tempdir().unwrap();
            let truth = truth_of_samples(folder.path());
            let text = std::fs::read_to_string(&truth).unwrap();
            std::fs::write(&truth, text + &" ".repeat(BYTES)).unwrap();
            let mut window = open(Some(&samples()), CLASSIFIER);
            wait_for(&mut window, "1 predicted");
            wait_for_listing(&mut window);
            wait_until_idle(&mut window);
            let before = bytes_read();
            drop_on(&mut window, &truth);
            wait_until(&mut window, "the ground truth", |window| window.state().state().opened_truth().is_some());
            let read = (bytes_read() - before) as f64 / BYTES as f64;
            assert!((1.0..1.5).contains(&read), "{read} times");
            // If it is opened again, it is read again.
            std::fs::write(&truth, "{}").unwrap();
            window.state_mut().command(EvaluationCommand::EvaluateAgain);
            wait_until(&mut window, "the failure", |window| {
                window
                    .state()
                    .state()
                    .evaluating
                    .as_ref()
                    .is_some_and(|evaluating| evaluating.truth.failure().is_some())
            });
        },
    );
}

#[test]
fn dropped_ground_truth_names_numbered_results() {
    let (images, files) = (folder_of(2, "chelsea.png"), tempfile::tempdir().unwrap());
    let write = |name: &str, content: serde_json::Value| {
        std::fs::write(files.path().join(name), content.to_string()).unwrap();
        files.path().join(name)
    };
    let truth = write(
        "truth.json",
        serde_json::json!({
            "images": [
                {"id": 77, "file_name": "1-chelsea.png", "width": 451, "height": 300},
                {"id": 78, "file_name": "0-chelsea.png", "width": 451, "height": 300},
            ],
            "categories": [{"id": 4, "name": "tabby"}],
            "annotations": [{"id": 1, "image_id": 77, "category_id": 4, "bbox": [1, 2, 30, 40]}],
        }),
    );
    let results = serde_json::json!([{"image_id": 77, "category_id": 4, "bbox": [1, 2, 30, 41], "score": 0.5}]);
    let results = write("results.json", results);
    let mut window = two_images(&images);
    drop_on(&mut window, &truth);
    wait_until(&mut window, "the ground truth", |window| window.state().state().opened_truth().is_some());
    drop_on(&mut window, &results);
    wait_for_run(&mut window, "results");
    wait_for(&mut window, "2 images, 2 predicted");
    let run = window.state().state().run().unwrap();
    assert_eq!(run.labels().get(4), Some("tabby"));
    let found: Vec<usize> = run.predictions.iter().map(|(_, prediction)| prediction.classes.len()).collect();
    assert_eq!(found, [0, 1], "the first image has no result");
}

#[test]
fn predictions_in_s3_become_a_run() {
    let mut plane = None;
    alone("predictions::predictions_in_s3_become_a_run", serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-predictions");
        for name in ["chelsea.png", "coffee.png"] {
            bucket.put(&format!("photos/{name}"), &std::fs::read(samples().join(name)).unwrap());
        }
        bucket.put("theirs.csv", b"image,label,score\nchelsea.png,lynx,0.625\n");
        let mut window = open_place(&bucket, 2);
        window.state_mut().command(Action::OpenPredictions);
        wait_for(&mut window, "Choose a file…");
        type_into(&mut window, FIELD, &bucket.uri("theirs.csv"));
        click(&mut window, OPEN);
        wait_for_run(&mut window, "theirs");
        wait_for(&mut window, "lynx 62.5%");
    });
}

#[test]
fn prediction_classes_are_corrected_in_the_dialog() {
    let (images, files) = (folder_of(2, "chelsea.png"), tempfile::tempdir().unwrap());
    let write = |name: &str, content: &str| {
        std::fs::write(files.path().join(name), content).unwrap();
        files.path().join(name).to_str().unwrap().to_owned()
    };
    let rows = write("theirs.csv", "image,label,score\n0-chelsea.png,Luchs,0.625\n0-chelsea.png,tabby,0.25\n");
    let labels = write("names.txt", "tabby\nlynx\nwolf\n");
    let map = write("classes.csv", "Luchs,lion\n");
    let mut window = two_images(&images);
    window.state_mut().command(Action::OpenPredictions);
    wait_for(&mut window, "Class corrections");
    type_into(&mut window, FIELD, &rows);
    type_into(&mut window, "Label set", &labels);
    type_into(&mut window, "Class corrections file", &map);
    click(&mut window, OPEN);
    wait_for(&mut window, "classes.csv: line 1");
    wait_for(&mut window, "class “lion”");
    assert_eq!(runs(&window), 1);
    write("classes.csv", "Luchs,lynx\n");
    click(&mut window, OPEN);
    wait_for_run(&mut window, "theirs");
    wait_for(&mut window, "lynx 62.5%");
    let labels: Vec<_> = window.state().state().run().unwrap().labels().iter().collect();
    assert_eq!(labels, [(0, "tabby"), (1, "lynx"), (2, "wolf")]);
}

#[test]
fn unusable_predictions_are_refused_in_the_dialog() {
    let (images, files) = (folder_of(2, "chelsea.png"), tempfile::tempdir().unwrap());
    let file = files.path().join("truth.csv");
    std::fs::write(&file, "image,label\n0-chelsea.png,cat\n").unwrap();
    let mut window = open(None, CLASSIFIER);
    window.state_mut().command(Action::OpenPredictions);
    wait_for(&mut window, "Open the images");
    drop(window);

    let mut window = two_images(&images);
    window.state_mut().command(Action::OpenPredictions);
    wait_for(&mut window, "Choose a folder…");
    type_into(&mut window, FIELD, file.to_str().unwrap());
    click(&mut window, OPEN);
    let failure = "has no scores";
    wait_for(&mut window, failure);
    assert_eq!(runs(&window), 1);
    // The failure is about one address.
    replace_in(&mut window, FIELD, files.path().to_str().unwrap());
    wait_until(&mut window, "the failure to go", |window| !sees(window, failure));
    replace_in(&mut window, FIELD, file.to_str().unwrap());
    click(&mut window, "Open as ground truth");
    wait_until(&mut window, "the ground truth", |window| window.state().state().opened_truth().is_some());
    assert!(!sees(&window, "Choose a folder…"), "the dialog stays open");
}

#[test]
fn dialog_closes_while_reading_continues() {
    let (images, files) = (folder_of(2, "chelsea.png"), tempfile::tempdir().unwrap());
    let file = write_coco(files.path());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + &" ".repeat(96 << 20)).unwrap();
    let mut window = two_images(&images);
    window.state_mut().command(Action::OpenPredictions);
    wait_for(&mut window, "Choose a file…");
    type_into(&mut window, FIELD, file.to_str().unwrap());
    assert!(window.query_by_label("Cancel").is_some());
    click(&mut window, OPEN);
    wait_for(&mut window, "Stop");
    assert!(window.query_by_label("Cancel").is_none());
    click(&mut window, "Close");
    wait_for_run(&mut window, "theirs");
}
