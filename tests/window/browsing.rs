use std::path::{Path, PathBuf};

use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::SampleId;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, Display, InferenceCommand};

use crate::support::repository;
use crate::window::{
    PATH_FIELD, click, folder_of, open, samples, sees, text_field, wait_for, wait_for_failed_listing, wait_for_notice,
    wait_until, wait_until_idle,
};

const CLASSIFIER: &str = "efficientnet-lite0";
const GO_TO_FIELD: &str = "Image name";

#[test]
fn empty_window_offers_the_samples() {
    let mut window = open(None, CLASSIFIER);
    assert!(window.state().state().source.is_none());
    click(&mut window, "Open sample images");
    wait_for(&mut window, "8 images");
    wait_for(&mut window, "1 of 8 images");
}

/// Types a path above the thumbnails.
fn open_typed(window: &mut Harness<'static, App>, path: &Path) {
    let field = text_field(window, PATH_FIELD);
    field.focus();
    field.type_text(path.to_str().unwrap());
    window.step();
    window.key_press(Key::Enter);
}

#[test]
fn typed_path_opens() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open(None, CLASSIFIER);
    open_typed(&mut window, folder.path());
    wait_for(&mut window, "3 images");
}

#[test]
fn tfrecord_file_opens_with_record_details() {
    let file = repository().join("tests/tfrecord/photos.tfrecord");
    let mut window = open(None, CLASSIFIER);
    open_typed(&mut window, &file);
    wait_for(&mut window, "1 of 6 images");
    wait_for(&mut window, "photos.tfrecord/chelsea.png");
    open_details(&mut window);
    wait_for(&mut window, "tabby cat (282)");
    assert!(sees(&window, "cat (17)"));
    assert!(sees(&window, "(40, 0) – (140, 106)"));
    assert!(sees(&window, "photos.tfrecord/#0"));
    let legend = "stored with the";
    assert!(sees(&window, legend));
    window.state_mut().command(Action::ToggleStoredBoxes);
    wait_until(&mut window, "the boxes to be hidden", |window| !sees(window, legend));
}

#[test]
fn rewritten_tfrecord_file_is_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("photos.tfrecord");
    let whole = repository().join("tests/tfrecord/photos.tfrecord");
    std::fs::copy(&whole, &file).unwrap();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 of 6 images");
    let mut bytes = std::fs::read(&whole).unwrap();
    bytes.truncate(bytes.len() - 1);
    std::fs::write(folder.path().join("cut"), bytes).unwrap();
    std::fs::rename(folder.path().join("cut"), &file).unwrap();
    wait_for(&mut window, "photos.tfrecord/5 no");
    wait_for(&mut window, " problem");
    click(&mut window, " problem");
    wait_for(&mut window, "of record 5");
}

#[test]
fn dropped_folder_opens() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open(None, CLASSIFIER);
    drop_on(&mut window, folder.path());
    wait_for(&mut window, "2 images");
}

/// Drops paths like the desktop does.
pub(crate) fn drop_on(window: &mut Harness<'static, App>, path: &Path) {
    let dropped = Dropped(path.to_owned());
    let files = &mut window.input_mut().dropped_files;
    files.push(std::sync::Arc::new(dropped));
}

#[derive(Debug)]
struct Dropped(PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        std::fs::read(&self.0).map_err(|error| error.to_string())
    }
}

#[test]
fn missing_folder_is_refused_with_its_path() {
    let mut window = open(Some(Path::new("/no/such/folder")), CLASSIFIER);
    let failure = wait_for_failed_listing(&mut window);
    assert!(failure.contains("/no/such/folder"), "{failure}");
}

#[test]
fn folder_without_images_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "No images in");
}

#[test]
fn keys_step_through_images() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    window.key_press(Key::ArrowRight);
    wait_for(&mut window, "2 of 8 images");
    window.key_press(Key::End);
    wait_for(&mut window, "8 of 8 images");
    window.key_press(Key::ArrowRight);
    window.step();
    assert!(sees(&window, "8 of 8 images"));
    window.key_press(Key::Home);
    wait_for(&mut window, "1 of 8 images");
}

#[test]
fn shift_and_arrow_select_several() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    window.key_press_modifiers(Modifiers::SHIFT, Key::ArrowRight);
    window.key_press_modifiers(Modifiers::SHIFT, Key::ArrowRight);
    wait_for(&mut window, "3 selected");
}

/// Opens the section about the file of the image.
fn open_details(window: &mut Harness<'static, App>) {
    click(window, "File");
    // The menu has the same name, and its first entry must differ from the opened path.
    if sees(window, "Open images…") {
        window.key_press(Key::Escape);
        window.step();
        let header = window.get_all_by_label("File").last().unwrap();
        header.click_accesskit();
        window.step();
    }
}

#[test]
fn file_details_are_shown() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "1 of 1 image");
    open_details(&mut window);
    wait_for(&mut window, "451 × 300");
    assert!(sees(&window, "PNG"));
}

/// The names of the images that cannot be opened.
fn unreadable(window: &Harness<'static, App>) -> Vec<String> {
    let samples = &window.state().state().samples;
    let broken = samples.ids().filter(|id| samples.unreadable(*id).is_some());
    broken.map(|id| samples.get(id).unwrap().name.clone()).collect()
}

#[test]
fn broken_file_is_marked_listed_and_found() {
    let folder = folder_of(2, "chelsea.png");
    std::fs::write(folder.path().join("broken.jpg"), b"not an image").unwrap();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_until(&mut window, "the broken image", |window| unreadable(window) == ["broken.jpg"]);
    wait_for(&mut window, "broken.jpg, cannot be");
    wait_for(&mut window, "1 problem");
    click(&mut window, "1 problem");
    wait_for(&mut window, "⚠ broken.jpg is not an image that Spotcheck reads");
    click(&mut window, "⚠ broken.jpg is not an image that Spotcheck reads");
    wait_for(&mut window, "3 of 3 images");
    wait_until(&mut window, "the failure", |window| match &window.state().state().shown.display {
        Display::Failed(reason) => sees(window, reason),
        _ => false,
    });
}

#[test]
fn outdated_predictions_are_found_and_redone() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "3 predicted");
    wait_until_idle(&mut window);
    let coffee = samples().join("coffee.png");
    std::fs::copy(coffee, folder.path().join("2-chelsea.png")).unwrap();
    let (cell, chip) = ("2-chelsea.png, outdated", "Outdated 1");
    wait_for(&mut window, cell);
    wait_until_idle(&mut window);
    click(&mut window, chip);
    wait_for(&mut window, "1 of 3 images");
    click(&mut window, "All 3");
    wait_for(&mut window, "3 images");
    click(&mut window, "Predict all");
    wait_until(&mut window, "a prediction about the new file", |window| {
        let run = window.state().state().run().unwrap();
        run.outdated().is_empty() && !sees(window, cell) && !sees(window, chip)
    });
    wait_until_idle(&mut window);
    assert!(sees(&window, "2-chelsea.png, espresso"));
}

#[test]
fn large_folder_draws_only_visible_cells() {
    let folder = tempfile::tempdir().unwrap();
    let original = samples().join("chelsea.png");
    for number in 0..2000 {
        std::fs::hard_link(&original, folder.path().join(format!("{number:04}.png")))
            .or_else(|_| std::fs::copy(&original, folder.path().join(format!("{number:04}.png"))).map(drop))
            .unwrap();
    }
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "2,000 images");
    let drawn = window.query_all_by_label_contains(".png, ").count();
    assert!((4..60).contains(&drawn), "{drawn} cells");
    assert!(sees(&window, "0000.png, "));
    window.key_press(Key::End);
    wait_until(&mut window, "the last cell", |window| sees(window, "1999.png, "));
    assert!(!sees(&window, "0000.png, "));
}

#[test]
fn image_over_the_megapixel_limit_is_refused() {
    let folder = folder_of(1, "chelsea.png");
    image::RgbImage::new(2000, 1000).save(folder.path().join("large.png")).unwrap();
    let mut window = open(None, CLASSIFIER);
    window.state_mut().command(BrowseCommand::SetMaxMegapixels(1));
    window.state_mut().command(BrowseCommand::Open(folder.path().to_owned()));
    wait_for(&mut window, "1 problem");
    click(&mut window, "1 problem");
    wait_for(&mut window, "megapixel");
}

#[test]
fn added_and_removed_files_are_noticed() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 of 3 images");
    window.key_press(Key::ArrowRight);
    wait_for(&mut window, "2 of 3 images");
    std::fs::copy(samples().join("chelsea.png"), folder.path().join("0.png")).unwrap();
    wait_for(&mut window, "2 of 4 images");
    wait_for(&mut window, "0.png, ");
    std::fs::remove_file(folder.path().join("2-chelsea.png")).unwrap();
    wait_for(&mut window, "2-chelsea.png, file missing");
    assert!(sees(&window, "2 of 4 images"));
}

#[test]
fn reloading_keeps_the_position() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 of 3 images");
    window.key_press(Key::ArrowRight);
    wait_for(&mut window, "2 of 3 images");
    wait_until(&mut window, "the listing", |window| Action::Reload.check(window.state().state()).is_ok());
    window.key_press(Key::F5);
    wait_for_notice(&mut window, "again");
    assert!(sees(&window, "2 of 3 images"));
}

#[test]
fn rewritten_broken_file_is_shown() {
    let folder = folder_of(1, "chelsea.png");
    let file = folder.path().join("broken.png");
    std::fs::write(&file, b"not an image").unwrap();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_until(&mut window, "the broken image", |window| unreadable(window) == ["broken.png"]);
    wait_for(&mut window, "1 problem");
    std::fs::copy(samples().join("chelsea.png"), &file).unwrap();
    wait_until(&mut window, "the new image", |window| unreadable(window).is_empty() && sees(window, "broken.png, "));
    wait_for(&mut window, "Tasks and problems");
    assert!(!sees(&window, "1 problem"));
}

#[test]
fn thumbnail_cache_is_counted_and_cleared() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    click(&mut window, "View");
    click(&mut window, "Disk cache");
    wait_until(&mut window, "the size in use", |window| {
        sees(window, "Thumbnails: ") && sees(window, "Images from S3: ")
    });
    assert!(sees(&window, "At most 1.0 GiB"));
    click(&mut window, "Clear cache");
    wait_for_notice(&mut window, "cache");
}

#[test]
fn typed_name_goes_to_its_image() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    window.key_press(Key::G);
    wait_for(&mut window, "Enter: next match");
    text_field(&window, GO_TO_FIELD).type_text("r");
    wait_until(&mut window, "an image called r…", |window| {
        let shown = window.state().state().shown_sample().unwrap();
        let samples = &window.state().state().samples;
        samples.get(shown).unwrap().name.starts_with('r')
    });
    text_field(&window, GO_TO_FIELD).type_text("zzz");
    let missed = "No matching image";
    wait_for(&mut window, missed);
    assert!(window.state().state().go_to_missed);
    window.key_press(Key::Escape);
    window.step();
    window.step();
    assert!(!sees(&window, missed));
    window.key_press(Key::G);
    wait_for(&mut window, "Enter: next match");
    text_field(&window, GO_TO_FIELD).type_text("5");
    wait_for(&mut window, "5 of 8 images");
}

/// Two thousand small images, of which a few rows fit on screen.
fn many_images() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("0000.png");
    image::RgbImage::new(8, 6).save(&original).unwrap();
    for number in 1..2000 {
        let copy = folder.path().join(format!("{number:04}.png"));
        std::fs::hard_link(&original, &copy).or_else(|_| std::fs::copy(&original, &copy).map(drop)).unwrap();
    }
    folder
}

#[test]
fn grid_follows_a_typed_name() {
    let folder = many_images();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    window.state_mut().command(InferenceCommand::SetPredictOnOpen(false));
    wait_for(&mut window, "1 of 2,000 images");
    window.key_press(Key::G);
    wait_for(&mut window, "Enter: next match");
    // Without a frame between two keys, as after a slow frame.
    for letter in ["1", "7", "3", "1"] {
        text_field(&window, GO_TO_FIELD).type_text(letter);
    }
    wait_for(&mut window, "1,732 of 2,000 images");
    window.step();
    assert!(sees(&window, "1731.png, "), "the grid shows it");
    assert!(!sees(&window, "0000.png, "));
    window.key_press(Key::Escape);
    window.run_steps(2);
    for what in ["thumbnails alone", "thumbnails beside the image"] {
        window.key_press_modifiers(Modifiers::COMMAND, Key::G);
        window.run_steps(3);
        assert!(sees(&window, "1731.png, "), "{what}");
        assert!(!sees(&window, "0000.png, "), "{what}");
    }
    // After scrolling away, the other layout starts at the shown image.
    window.state_mut().command(Action::ThumbnailsOnly);
    window.run_steps(3);
    window.hover_at(egui::pos2(700.0, 500.0));
    window.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: egui::vec2(0.0, 1e6),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Unknown,
        modifiers: Modifiers::NONE,
    });
    wait_for(&mut window, "0000.png, ");
    window.state_mut().command(Action::ThumbnailsOnly);
    window.run_steps(3);
    assert!(sees(&window, "1731.png, "));
}

#[test]
fn space_and_escape_toggle_the_large_image() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    assert!(sees(&window, PATH_FIELD));
    window.key_press(Key::Space);
    wait_until(&mut window, "the image alone", |window| !sees(window, PATH_FIELD) && sees(window, "1 of 8 images"));
    window.key_press(Key::ArrowRight);
    wait_for(&mut window, "2 of 8 images");
    window.key_press(Key::Escape);
    wait_for(&mut window, PATH_FIELD);
    window.key_press(Key::Space);
    window.step();
    window.key_press(Key::Space);
    wait_for(&mut window, PATH_FIELD);
}

#[test]
fn thumbnail_grid_can_fill_the_window() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    window.key_press_modifiers(Modifiers::COMMAND, Key::G);
    wait_until(&mut window, "no image", |window| !sees(window, "1 of 8 images"));
    assert!(sees(&window, "chelsea.png, "));
    window.key_press(Key::Space);
    wait_for(&mut window, "1 of 8 images");
    window.key_press(Key::Space);
    window.key_press_modifiers(Modifiers::COMMAND, Key::G);
    wait_for(&mut window, "1 of 8 images");
}

#[test]
fn modified_clicks_select_images_to_predict() {
    let folder = folder_of(6, "chelsea.png");
    let mut window = open(None, CLASSIFIER);
    let app = window.state_mut();
    app.command(InferenceCommand::SetPredictOnOpen(false));
    app.command(BrowseCommand::Open(folder.path().to_owned()));
    wait_for(&mut window, "1 of 6 images");
    let click_cell = |window: &mut Harness<'static, App>, name: &str, modifiers| {
        let cell = window.query_all_by_label_contains(name).next().unwrap();
        cell.click_modifiers(modifiers);
        window.run_steps(3);
    };
    click_cell(&mut window, "1-chelsea.png, ", Modifiers::NONE);
    click_cell(&mut window, "4-chelsea.png, ", Modifiers::COMMAND);
    wait_for(&mut window, "2 selected");
    click_cell(&mut window, "1-chelsea.png, ", Modifiers::NONE);
    click_cell(&mut window, "3-chelsea.png, ", Modifiers::SHIFT);
    wait_for(&mut window, "3 selected");
    click(&mut window, "Predict");
    click(&mut window, "Predict selection");
    wait_for(&mut window, "3 predicted");
    assert!(sees(&window, "2-chelsea.png, tiger cat"));
    wait_until_idle(&mut window);
    let run = window.state().state().run().unwrap();
    let is_predicted = |id: &SampleId| run.predictions.summary(*id).is_some();
    let predicted = window.state().state().samples.ids().filter(is_predicted);
    assert!(predicted.eq([1, 2, 3].map(SampleId)));
}

#[test]
fn thumbnail_slider_changes_the_cell_count() {
    let folder = many_images();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    window.state_mut().command(InferenceCommand::SetPredictOnOpen(false));
    wait_for(&mut window, "1 of 2,000 images");
    let mut cells = |side: f64| {
        let label = "Thumbnail size";
        let slider = window.get_by_role_and_label(egui::accesskit::Role::Slider, label);
        slider.set_value_accesskit(side);
        window.run_steps(4);
        window.query_all_by_label_contains(".png, ").count()
    };
    let (small, large) = (cells(72.0), cells(256.0));
    assert!(small > 3 * large, "{small} {large}");
}

#[test]
fn thumbnail_boxes_match_full_predictions() {
    let mut window = open(Some(&samples()), "ssd-mobilenet-coco");
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 predicted");
    wait_for(&mut window, "All saved");
    click(&mut window, "View");
    click(&mut window, "Boxes on thumbnails");
    wait_until(&mut window, "all predictions", |window| {
        let state = window.state().state();
        let run = state.run().unwrap().id();
        let has_boxes = |id| state.runs.prediction(run, id).is_some();
        state.order().ids().filter(|&id| has_boxes(id)).count() == 8
    });
}

#[test]
fn deleted_image_shows_thumbnail_and_reason() {
    let folder = folder_of(6, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 of 6 images");
    click(&mut window, "Predict all");
    wait_for(&mut window, "6 predicted");
    wait_until_idle(&mut window);
    // Only neighbors of the image in view are read ahead.
    std::fs::remove_file(folder.path().join("5-chelsea.png")).unwrap();
    wait_for(&mut window, "5-chelsea.png, file missing");
    window.state_mut().command(BrowseCommand::Show(SampleId(5)));
    wait_for(&mut window, "⚠ Only the thumbnail can be shown: ");
}

#[test]
fn no_tooltip_covers_a_dialog() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    wait_until_idle(&mut window);
    let thumbnail = window.query_all_by_label_contains("astronaut.png, ").next().unwrap();
    thumbnail.hover();
    let count = |window: &Harness<'static, App>| window.query_all_by_label_contains("astronaut.png").count();
    let before = count(&window);
    wait_until(&mut window, "the tooltip", |window| count(window) > before);
    window.state_mut().command(Action::Export);
    wait_for(&mut window, "Export now");
    window.run_steps(4);
    assert!(count(&window) <= before);
}
