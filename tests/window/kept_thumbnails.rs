//! Cached thumbnails: what a killed window leaves behind, and how the window works if the disk accepts none.

use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use egui::{Key, Rect};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{RgbImage, Sample};
use spotcheck::image::decode::{ThumbnailCache, ThumbnailKey};
use spotcheck::image::source::{LocalSource, Source};
use spotcheck::window::app::App;
use spotcheck::window::state::{BrowseCommand, Command, InferenceCommand, Listing};

use crate::window::{open_at, sees, wait_for, wait_until};

const IMAGES: u32 = 240;
const KILLS: usize = 6;
/// The home folder and the image folder, for the process that is killed.
const HOME_VARIABLE: &str = "SPOTCHECK_KILLED_WINDOW_HOME";
const IMAGES_VARIABLE: &str = "SPOTCHECK_KILLED_WINDOW_IMAGES";
/// The largest change of a channel of one plain color by JPEG.
const NEARLY: u8 = 6;

/// Each image has a unique plain color.
fn color_of(number: u32) -> [u8; 3] {
    [40 + (number % 6 * 40) as u8, 40 + (number / 6 % 6 * 40) as u8, 40 + (number / 36 % 7 * 30) as u8]
}

fn colored_images(folder: &Path) -> PathBuf {
    let images = folder.join("images");
    std::fs::create_dir(&images).unwrap();
    for number in 0..IMAGES {
        let pixel = image::Rgb(color_of(number));
        image::RgbImage::from_pixel(640, 480, pixel).save(images.join(format!("{number:03}.jpg"))).unwrap();
    }
    images
}

/// A window on the images that never predicts.
fn browse(home: &Path, images: &Path, is_drawn: bool) -> Harness<'static, App> {
    let mut window =
        open_at(
            AppDirs::below(home),
            |builder| {
                if is_drawn { builder.with_pixels_per_point(1.0).wgpu() } else { builder }
            },
        );
    window.state_mut().command(InferenceCommand::SetPredictOnOpen(false));
    let open = Command::Browse(BrowseCommand::Open(images.to_owned()));
    window.state_mut().command(open);
    window
}

/// Not a separate test: the process that [`killed_window_leaves_only_whole_thumbnails`] kills.
#[test]
#[ignore = "goes on until it is killed; the test that kills it starts it"]
fn makes_thumbnails_until_killed() {
    let folder = |variable| std::env::var_os(variable).map(PathBuf::from);
    let (Some(home), Some(images)) = (folder(HOME_VARIABLE), folder(IMAGES_VARIABLE)) else {
        return;
    };
    let mut window = browse(&home, &images, false);
    loop {
        // Page after page, each for a while, and again from the start.
        window.key_press(Key::Home);
        window.run_steps(30);
        for _ in 0..30 {
            window.key_press(Key::PageDown);
            window.run_steps(30);
        }
    }
}

fn start_window(home: &Path, images: &Path) -> Child {
    Process::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact"])
        .arg("kept_thumbnails::makes_thumbnails_until_killed")
        .env(HOME_VARIABLE, home)
        .env(IMAGES_VARIABLE, images)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The numbers of complete entries and unfinished files.
fn stored_files(cache: &Path) -> (usize, usize) {
    let mut counts = (0, 0);
    let mut folders = vec![cache.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("thumb") => counts.0 += 1,
                _ => counts.1 += 1,
            }
        }
    }
    counts
}

fn listed(images: &Path) -> Vec<Sample> {
    let source = LocalSource::open(images).unwrap();
    source.pages().flat_map(|page| page.samples).collect()
}

fn is_of_color(image: &RgbImage, color: [u8; 3]) -> bool {
    let corners = [(0, 0), (image.width() / 2, image.height() / 2), (image.width() - 1, image.height() - 1)];
    corners.into_iter().all(|(x, y)| {
        let found = image.pixel(x, y).unwrap();
        (0..3).all(|channel| found[channel].abs_diff(color[channel]) <= NEARLY)
    })
}

#[test]
fn killed_window_leaves_only_whole_thumbnails() {
    let folder = tempfile::tempdir().unwrap();
    let (home, images) = (folder.path().join("home"), colored_images(folder.path()));
    let thumbnails = AppDirs::below(&home).cache.join("thumbnails");
    let samples = listed(&images);
    for _ in 0..KILLS {
        let before = stored_files(&thumbnails).0;
        let mut window = start_window(&home, &images);
        let begun = Instant::now();
        // In the middle of writing: a few more exist than before, or all.
        while stored_files(&thumbnails).0 < (before + 20).min(samples.len()) {
            assert!(begun.elapsed() < Duration::from_mins(2), "nothing is kept");
            std::thread::sleep(Duration::from_millis(5));
        }
        window.kill().unwrap();
        window.wait().unwrap();
        // A damaged entry is deleted when it is read, and does not count.
        let (entries, _) = stored_files(&thumbnails);
        let cache = ThumbnailCache::new(thumbnails.clone(), 1 << 30);
        let mut whole = 0;
        for (number, sample) in (0..).zip(&samples) {
            for side in [128, 256, 512] {
                let key = ThumbnailKey::new(sample, side).unwrap();
                if let Some(image) = cache.get(&key) {
                    assert!(is_of_color(&image, color_of(number)), "{}", sample.name);
                    whole += 1;
                }
            }
        }
        assert_eq!(whole, entries);
        assert_eq!(stored_files(&thumbnails).0, entries, "nothing was damaged");
    }
    let mut window = browse(&home, &images, true);
    // It opens at the image that the killed window showed.
    wait_for(&mut window, " of 240 images");
    wait_for_colors(&mut window);
}

fn wait_for_colors(window: &mut Harness<'static, App>) {
    let begun = Instant::now();
    while !shows_right_colors(window) {
        assert!(begun.elapsed() < Duration::from_mins(2), "wrong colors");
        window.run_steps(5);
    }
}

/// Whether every thumbnail on screen has the color of its image.
fn shows_right_colors(window: &mut Harness<'static, App>) -> bool {
    let cells: Vec<(u32, Rect)> = window
        .query_all_by_label_contains(".jpg, ")
        .filter_map(|node| {
            let label = node.accesskit_node().label()?;
            Some((label.get(..3)?.parse().ok()?, node.rect()))
        })
        .collect();
    // The position of the image in a fully visible cell, below the search field; the names are below it.
    let whole = cells.iter().filter(|(_, rect)| rect.top() > 320.0 && rect.bottom() < 740.0);
    let places: Vec<(u32, egui::Pos2)> =
        whole.map(|(number, rect)| (*number, rect.center() - egui::vec2(0.0, 16.0))).collect();
    let image = window.render().unwrap();
    places.len() > 3
        && places.iter().all(|(number, place)| {
            let found = image.get_pixel(place.x as u32, place.y as u32).0;
            let wanted = color_of(*number);
            (0..3).all(|channel| found[channel].abs_diff(wanted[channel]) <= NEARLY)
        })
}

#[test]
fn failed_thumbnail_storage_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let (home, images) = (folder.path().join("home"), colored_images(folder.path()));
    let dirs = AppDirs::below(&home);
    std::fs::create_dir_all(&dirs.cache).unwrap();
    // A file in place of the folder: no thumbnail can be written.
    std::fs::write(dirs.cache.join("thumbnails"), b"in the way").unwrap();
    let mut window = browse(&home, &images, true);
    wait_for(&mut window, "1 of 240 images");
    wait_until(&mut window, "the problem", |window| window.state().state().problems.len() == 1);
    wait_for_colors(&mut window);
    window.key_press(Key::End);
    wait_for(&mut window, "240 of 240 images");
    wait_for_colors(&mut window);
    let state = window.state().state();
    assert_eq!(state.problems.len(), 1, "{:?}", state.problems.entries());
    let source = state.source.as_ref().unwrap();
    assert_eq!(source.listing, Listing::Done);
    assert!(sees(&window, "1 problem"));
}
