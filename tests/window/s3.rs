//! S3 locations open wherever folders do.

use std::path::PathBuf;

use egui_kittest::Harness;
use spotcheck::domain::{Credentials, S3Access, S3Address, S3Place};
use spotcheck::window::app::App;
use spotcheck::window::state::BrowseCommand;

use super::support::repository;
use super::support::seaweed::{Bucket, Seaweed};
use super::window::{PATH_FIELD, click, open_in, sees, text_field, wait_for, wait_for_failed_listing, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";

/// A public bucket with three images and another file in `photos/`.
fn bucket_of_images(name: &str) -> Bucket {
    let bucket = Seaweed::shared().public_bucket(name);
    let image = std::fs::read(repository().join("assets/samples/chelsea.png")).unwrap();
    for name in ["a b+.png", "c%20d.png", "sub/été.png"] {
        bucket.put(&format!("photos/{name}"), &image);
    }
    bucket.put("photos/labels.csv", b"a,b");
    bucket
}

fn place(bucket: &Bucket) -> S3Place {
    S3Place {
        access: S3Access {
            credentials: Credentials::Anonymous,
            endpoint: Some(Seaweed::shared().endpoint()),
            ..S3Access::default()
        },
        ..S3Place::new(S3Address::new(&bucket.name, "photos/"))
    }
}

fn open(window: &mut Harness<'static, App>, place: S3Place) {
    window.state_mut().command(BrowseCommand::OpenPlace(Box::new(place)));
}

#[test]
fn prefix_is_predicted_and_reopened_from_its_project() {
    let bucket = bucket_of_images("window");
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, place(&bucket));
    wait_for(&mut window, "3 images, 1 predicted");
    assert!(sees(&window, "One object"));
    click(&mut window, "Predict all");
    wait_for(&mut window, "3 predicted");
    wait_for(&mut window, "All saved");
    let project: PathBuf = window.state().state().project.path.clone().unwrap();
    let names: Vec<String> = window
        .state()
        .state()
        .samples
        .ids()
        .map(|id| window.state().state().samples.get(id).unwrap().name.clone())
        .collect();
    assert_eq!(names, ["a b+.png", "c%20d.png", "sub/été.png"]);
    drop(window);

    // The project stores the access to its images.
    let mut again = open_in(projects.path(), Some(&project), CLASSIFIER);
    wait_for(&mut again, "3 images, 3 predicted");
    wait_for(&mut again, "tiger cat");
    assert_eq!(again.state().state().place(), Some(&place(&bucket)));
}

#[test]
fn addresses_open_from_field_and_recent_list() {
    let bucket = bucket_of_images("typed");
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, place(&bucket));
    wait_for(&mut window, "3 images");

    text_field(&window, PATH_FIELD).focus();
    window.run_steps(2);
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::A);
    window.run_steps(1);
    text_field(&window, PATH_FIELD).type_text("s3://no bucket/");
    window.run_steps(2);
    window.key_press(egui::Key::Enter);
    wait_for(&mut window, "“no bucket”");
    assert!(sees(&window, "3 images"), "the source stays open");

    open(&mut window, S3Place { address: S3Address::new(&bucket.name, "nothing/"), ..place(&bucket) });
    let failure = wait_for_failed_listing(&mut window);
    assert!(failure.contains("nothing"), "{failure}");
    click(&mut window, "Recent");
    click(&mut window, &place(&bucket).identity());
    wait_until(&mut window, "the place is open again", |window| window.state().state().samples.len() == 3);
}

#[test]
fn tfrecord_object_and_single_record_open() {
    let bucket = Seaweed::shared().public_bucket("window-records");
    let file = repository().join("tests/tfrecord/photos.tfrecord");
    bucket.put("photos/photos.tfrecord", &std::fs::read(file).unwrap());
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), None, CLASSIFIER);
    open(&mut window, place(&bucket));
    wait_for(&mut window, "photos.tfrecord/chelsea.png");
    click(&mut window, "Predict all");
    wait_for(&mut window, "6 images, 6 predicted");
    let address = S3Address::new(&bucket.name, "photos/photos.tfrecord/#2");
    open(&mut window, S3Place { address, ..place(&bucket) });
    // The project of the folder has its prediction already.
    wait_for(&mut window, "photos.tfrecord/coffee.png");
    wait_for(&mut window, "1 image, 1 predicted");
}
