//! Looking closely: large images, one box, the basis of a prediction.

use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::RgbImage;
use spotcheck::image::decode::encode_jpeg;
use spotcheck::window::app::App;
use spotcheck::window::state::{BrowseCommand, CanvasView, Explanation, InferenceCommand, ReviewCommand, ViewChange};

use crate::window::{click, open, samples, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

/// Larger than the images that are decoded in full before anything is shown.
fn large_jpeg() -> Vec<u8> {
    let (width, height) = (5000, 3400);
    let line: Vec<u8> = (0..width).flat_map(|x| [(x / 20) as u8; 3]).collect();
    let image = RgbImage::new(width, height, line.repeat(height as usize)).unwrap();
    encode_jpeg(&image, 90).unwrap()
}

#[test]
fn large_image_zooms_to_single_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wall.jpg");
    std::fs::write(&path, large_jpeg()).unwrap();
    let mut window = open(None, CLASSIFIER);
    window.state_mut().command(InferenceCommand::SetPredictOnOpen(false));
    window.state_mut().command(BrowseCommand::Open(path));
    wait_until(&mut window, "the whole image", |window| window.state().image_is_complete());
    window.key_press(Key::Num1);
    wait_for(&mut window, "100%");
    wait_until(&mut window, "the finest tiles", |window| window.state().image_is_complete());
    window.hover_at(egui::pos2(680.0, 430.0));
    wait_until(&mut window, "the pixel color", |window| sees(window, "R 12"));
}

#[test]
fn brackets_select_boxes_for_the_magnifier() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    assert!(sees(&window, "Select a box"));
    window.key_press(Key::CloseBracket);
    wait_for(&mut window, "% of the image");
    let first = window.state().state().shown.selected_box;
    assert_eq!(first, Some(0), "the best score");
    window.key_press(Key::OpenBracket);
    window.run_steps(2);
    assert_ne!(window.state().state().shown.selected_box, first);
    window.key_press(Key::CloseBracket);
    window.run_steps(2);
    assert_eq!(window.state().state().shown.selected_box, first);
}

#[test]
fn zoom_to_box_centers_the_box() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    click(&mut window, "cup ");
    window.key_press(Key::Z);
    window.run_steps(2);
    let state = window.state().state();
    let prediction = state.shown.prediction.as_ref().unwrap();
    let bounds = prediction.detections()[state.shown.selected_box.unwrap()].bounds;
    let CanvasView::Free { center, .. } = state.canvas else {
        panic!("the image is still fitted");
    };
    let middle = [f32::midpoint(bounds.x1, bounds.x2), f32::midpoint(bounds.y1, bounds.y2)];
    let apart = (center[0] - middle[0]).hypot(center[1] - middle[1]);
    assert!(apart < 2.0, "{center:?} {middle:?}");
}

#[test]
fn explanation_is_shown_and_hidden() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    click(&mut window, "Explain");
    let whole = "“tiger cat” scores 38.3%";
    wait_for(&mut window, whole);
    assert!(sees(&window, " points"), "the legend has a unit");
    let Explanation::Ready { saliency, .. } = &window.state().state().shown.explanation else {
        panic!("the explanation is there");
    };
    assert_eq!((saliency.rows, saliency.columns), (9, 14));
    // The cat's face is in the middle; the blurred corner at the upper right matters little.
    assert!(saliency.strength(0, 13) < 0.5, "{saliency:?}");
    assert!((2..8).any(|row| (4..11).any(|column| saliency.strength(row, column) == 1.0)));
    let slider = window.get_by_role_and_label(egui::accesskit::Role::Slider, "Opacity");
    slider.set_value_accesskit(0.2);
    window.run_steps(2);
    let opacity = window.state().state().settings.explanation_opacity;
    assert!((opacity - 0.2).abs() < 0.01, "{opacity}");
    click(&mut window, "Hide");
    wait_until(&mut window, "the button", |window| !sees(window, whole) && sees(window, "Explain"));
}

#[test]
fn box_explanation_can_be_stopped() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    window.key_press(Key::E);
    wait_until(&mut window, "the search", |window| {
        matches!(window.state().state().shown.explanation, Explanation::Running { .. })
    });
    window.get_by_label("Stop").click();
    wait_until(&mut window, "the search to end", |window| window.state().state().tasks.is_idle());
    assert_eq!(window.state().state().shown.explanation, Explanation::None);
    assert!(sees(&window, "“cup” depends on"));
}

#[test]
fn filmstrip_orders_boxes_and_opens_images() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 predicted");
    click(&mut window, "coffee.png, ");
    wait_for(&mut window, "cup ");
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinScore(0.1)));
    click(&mut window, "astronaut.");
    window.key_press_modifiers(Modifiers::COMMAND | Modifiers::SHIFT, Key::Num5);
    wait_for(&mut window, "Filmstrip of");
    let cup = class_named(&window, "cup");
    window.state_mut().command(ReviewCommand::OpenFilmstrip(cup));
    wait_for(&mut window, "%, coffee.png");
    let scores = |window: &Harness<'static, App>| -> Vec<f32> {
        let strip = window.state().state().filmstrip.as_ref().unwrap();
        strip.frames().iter().filter_map(|frame| frame.score).collect()
    };
    let highest_first = scores(&window);
    assert!(highest_first.len() > 1 && highest_first.is_sorted_by(|a, b| a >= b));
    click(&mut window, "Highest score first");
    wait_until(&mut window, "the other end", |window| {
        scores(window).is_sorted() && scores(window).len() == highest_first.len()
    });
    click(&mut window, "Lowest score first");
    wait_until(&mut window, "the first end", |window| scores(window) == highest_first);
    click(&mut window, "96.1%, coffee.png");
    wait_for(&mut window, "% of the image");
    let state = window.state().state();
    assert_eq!(state.shown.selected_box, Some(0));
    // The threshold of the view also applies here.
    let view = ViewChange::MinScore(0.9);
    window.state_mut().command(ReviewCommand::ChangeView(view));
    wait_for(&mut window, "1 box, ≥ 0.90");
}

#[test]
fn filmstrip_skips_suppressed_boxes() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 predicted");
    wait_for(&mut window, "All saved");
    let person = class_named(&window, "person");
    wait_for(&mut window, "Filmstrip of person");
    click(&mut window, "Filmstrip of person");
    let frames = |window: &Harness<'static, App>| {
        let strip = window.state().state().filmstrip.as_ref();
        strip.map_or(0, |strip| strip.frames().len())
    };
    let in_table = |window: &Harness<'static, App>| {
        let statistics = window.state().state().arranging.statistics().unwrap();
        let rows = statistics.classes.rows.iter();
        let boxes = rows.filter(|row| row.class == person).map(|row| row.boxes);
        boxes.sum::<usize>()
    };
    wait_until(&mut window, "the sure persons", |window| frames(window) > 0 && frames(window) == in_table(window));
    let sure = frames(&window);
    let lower = ViewChange::MinScore(0.05);
    window.state_mut().command(ReviewCommand::ChangeView(lower));
    wait_until(&mut window, "all persons", |window| frames(window) > sure && frames(window) == in_table(window));
    let all = frames(&window);
    let hide = ViewChange::NmsIou(Some(0.05));
    window.state_mut().command(ReviewCommand::ChangeView(hide));
    wait_until(&mut window, "fewer persons", |window| frames(window) < all && frames(window) == in_table(window));
    let show = ViewChange::NmsIou(None);
    window.state_mut().command(ReviewCommand::ChangeView(show));
    wait_until(&mut window, "all persons again", |window| frames(window) == all);
}

fn class_named(window: &Harness<'static, App>, name: &str) -> u32 {
    let run = window.state().state().run().unwrap();
    (0..100).find(|&class| run.labels().name(class) == name).unwrap()
}
