//! An S3 prefix in the window, on a real server: what is fetched, how often, and what is cached.

use std::path::Path;
use std::time::Duration;

use egui::Key;
use egui_kittest::Harness;
use spotcheck::cache::DiskCache;
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{Credentials, S3Access, S3Address, S3Place, SampleId};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, Command, Display, Listing};

use crate::support::fault_proxy::{Fault, FaultProxy, Often, Request};
use crate::support::runtime_home;
use crate::support::seaweed::{Bucket, Seaweed};
use crate::window::{open_with_model_at, samples, sees, wait_for, wait_for_notice, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";
/// More than fit on screen.
const IMAGES: usize = 40;

/// A bucket with copies of the sample images, accessed through a counting proxy.
struct Images {
    bucket: Bucket,
    proxy: FaultProxy,
    home: tempfile::TempDir,
}

impl Images {
    fn new(name: &str) -> Self {
        let bucket = Seaweed::shared().public_bucket(name);
        for number in 0..IMAGES {
            bucket.put(&key(number), &read_image("chelsea.png"));
        }
        Self { bucket, proxy: FaultProxy::before(Seaweed::shared().address()), home: tempfile::tempdir().unwrap() }
    }

    fn reads(&self, number: usize) -> usize {
        self.proxy.count(|request| request.reads_key(&key(number)))
    }

    fn most_reads_of_one(&self) -> usize {
        let counts = (0..IMAGES).map(|number| self.reads(number));
        counts.max().unwrap_or_default()
    }
}

fn key(number: usize) -> String {
    format!("photos/{number:02}.png")
}

fn read_image(name: &str) -> Vec<u8> {
    std::fs::read(samples().join(name)).unwrap()
}

/// A window on `prefix` that caches and saves in `home`.
fn open(bucket: &Bucket, prefix: &str, proxy: &FaultProxy, home: &Path) -> Harness<'static, App> {
    let own = AppDirs::below(home);
    let dirs = AppDirs { cache: own.cache, projects: own.projects, ..AppDirs::below(runtime_home()) };
    let mut window = open_with_model_at(dirs, CLASSIFIER);
    let place = S3Place {
        access: S3Access {
            credentials: Credentials::Anonymous,
            region: Some("us-east-1".to_owned()),
            endpoint: Some(proxy.endpoint()),
            ..S3Access::default()
        },
        ..S3Place::new(S3Address::new(&bucket.name, prefix))
    };
    window.state_mut().command(BrowseCommand::OpenPlace(Box::new(place)));
    window
}

/// Scrolls there and back, then walks through some images. Waits for each image, because leaving it early cancels its
/// fetch. A window that was open before starts at the image shown last.
fn look_around(window: &mut Harness<'static, App>) {
    wait_for(window, &format!(" of {IMAGES} images"));
    wait_until(window, "an image", |window| matches!(window.state().state().shown.display, Display::Ready(_)));
    window.key_press(Key::Home);
    wait_for_image(window, 1);
    window.key_press(Key::End);
    wait_for_image(window, IMAGES);
    wait_for(window, &format!("{:02}.png, ", IMAGES - 1));
    window.key_press(Key::Home);
    for number in 1..=8 {
        wait_for_image(window, number);
        window.key_press(Key::ArrowRight);
    }
    wait_for_image(window, 9);
}

/// Waits until the image with this number, from 1, is shown.
fn wait_for_image(window: &mut Harness<'static, App>, number: usize) {
    wait_for(window, &format!("{number} of {IMAGES} images"));
    wait_until(window, "the image", |window| {
        let display = &window.state().state().shown.display;
        matches!(display, Display::Ready(_))
    });
}

fn predict_all(window: &mut Harness<'static, App>) {
    wait_until(window, "a model", |window| Action::PredictAll.check(window.state().state()).is_ok());
    window.state_mut().command(Command::Do(Action::PredictAll));
    wait_for(window, &format!("{IMAGES} predicted"));
}

#[test]
fn objects_are_requested_once_across_restarts() {
    let images = Images::new("kept");
    let run = || {
        let mut window = open(&images.bucket, "photos/", &images.proxy, images.home.path());
        look_around(&mut window);
        predict_all(&mut window);
    };
    run();
    assert_eq!(images.proxy.count(Request::reads), IMAGES);
    assert_eq!(images.most_reads_of_one(), 1);
    run();
    assert_eq!(images.proxy.count(Request::reads), IMAGES);
}

#[test]
fn changed_object_outdates_its_prediction() {
    let images = Images::new("reload");
    let mut window = open(&images.bucket, "photos/", &images.proxy, images.home.path());
    look_around(&mut window);
    predict_all(&mut window);
    assert!(sees(&window, "Not watched"));
    let last = SampleId::from_index(IMAGES - 1);
    images.bucket.put(&key(IMAGES - 1), &read_image("coffee.png"));
    images.bucket.put("photos/new.png", &read_image("coffee.png"));
    window.key_press(Key::F5);
    wait_for_notice(&mut window, "again");
    wait_for(&mut window, &format!("of {} images", IMAGES + 1));
    let run = window.state().state().run().unwrap();
    assert!(run.is_outdated(last) && !run.is_outdated(SampleId(0)));
    window.key_press(Key::End);
    window.key_press(Key::ArrowLeft);
    wait_until(&mut window, "the new image", |window| {
        let display = &window.state().state().shown.display;
        matches!(display, Display::Ready(info) if info.size == [600, 400])
    });
    assert_eq!(images.reads(IMAGES - 1), 2);
    assert_eq!(images.reads(0), 1);
}

#[test]
fn stalled_image_does_not_block_the_next() {
    let images = Images::new("stalls");
    let is_first = |request: &Request| request.reads_key(&key(0));
    images.proxy.inject(is_first, Often::Always, Fault::StallAfter(100));
    let mut window = open(&images.bucket, "photos/", &images.proxy, images.home.path());
    wait_for(&mut window, &format!("1 of {IMAGES} images"));
    images.proxy.wait_until_stalled();
    window.key_press(Key::ArrowRight);
    wait_until(&mut window, "the second image", |window| {
        let state = window.state().state();
        matches!(state.shown.display, Display::Ready(_)) && state.shown.prediction.is_some()
    });
    let state = window.state().state();
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    // The fetch was canceled before it could fail.
    assert!(state.samples.unreadable(SampleId(0)).is_none());
}

#[test]
fn first_thumbnails_appear_during_listing() {
    let bucket = Seaweed::shared().public_bucket("many");
    let mut jpeg = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_pixel(160, 120, image::Rgb([200, 40, 40]))
        .write_to(&mut jpeg, image::ImageFormat::Jpeg)
        .unwrap();
    bucket.fill(100_000, |number| format!("all/{number:06}.jpg"), jpeg.get_ref());
    let proxy = FaultProxy::before(Seaweed::shared().address());
    // Long enough for everything else to finish first.
    let late = Fault::Late(Duration::from_secs(2));
    proxy.inject(Request::lists, Often::After(2), late);
    let home = tempfile::tempdir().unwrap();
    let mut window = open(&bucket, "all/", &proxy, home.path());
    let cache = DiskCache::new(AppDirs::below(home.path()).cache.join("thumbnails"), 1 << 30);
    wait_until(&mut window, "thumbnails", |_| cache.usage().thumbnail_bytes > 0);
    let state = window.state().state();
    assert_eq!(state.source.as_ref().unwrap().listing, Listing::Running);
    assert!(state.samples.len() < 100_000);
    proxy.heal();
    wait_for(&mut window, "of 100,000 images");
    window.key_press(Key::End);
    wait_for(&mut window, "099999.jpg, ");
    // The images on screen and a few around it, not all that would fit in memory.
    let fetched = proxy.count(Request::reads);
    assert!((10..500).contains(&fetched), "{fetched} objects were fetched");
    assert!(proxy.most_at_once() <= 20, "{}", proxy.most_at_once());
}
