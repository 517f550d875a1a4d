//! How the image is drawn, and the context menus.

use egui::accesskit::Role;
use egui::{Key, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::domain::{Look, Prediction, SampleId};
use spotcheck::review::VerdictKind;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, ReviewCommand, ViewNumber};

use crate::layout::shapes;
use crate::repairing::on_screen;
use crate::window::{click, folder_of, open, open_with, sees, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

fn open_cups(count: usize) -> (tempfile::TempDir, Harness<'static, App>) {
    let folder = folder_of(count, "coffee.png");
    let mut window = open(Some(folder.path()), DETECTOR);
    wait_for(&mut window, "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    wait_until(&mut window, "the whole image", |window| window.state().image_is_complete());
    (folder, window)
}

fn prediction(window: &Harness<'static, App>) -> Prediction {
    window.state().state().shown.prediction.as_deref().unwrap().clone()
}

/// The texts on the image, such as the labels of boxes.
fn texts(window: &Harness<'static, App>) -> Vec<String> {
    let canvas = window.get_by_role_and_label(Role::Image, "Image 0-coffee.png").rect();
    let texts = shapes(window).into_iter().filter_map(|shape| match shape {
        egui::Shape::Text(text) if canvas.contains(text.pos) => Some(text.galley.text().to_owned()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn brightness_changes_the_screen_and_no_prediction() {
    let (_folder, mut window) = open_cups(1);
    let before = prediction(&window);
    assert!(!sees(&window, "Display +"));
    click(&mut window, "Display");
    wait_for(&mut window, "Brightness");
    window.state_mut().command(ReviewCommand::SetNumber(ViewNumber::Brightness, 0.3));
    window.state_mut().command(ReviewCommand::SetNumber(ViewNumber::Contrast, 9.0));
    wait_for(&mut window, "Display +30%, 4.0 ×");
    wait_until(&mut window, "the bright image", |window| window.state().image_is_complete());
    window.state_mut().command(Action::PredictShown);
    wait_until_idle(&mut window);
    assert_eq!(prediction(&window), before);
    click(&mut window, "Reset brightness and contrast");
    window.run_steps(3);
    assert_eq!(window.state().state().settings.look(), Look::default());
    assert!(!sees(&window, "Display +"));
}

#[test]
fn outlines_have_no_labels_until_selected() {
    let (_folder, mut window) = open_cups(1);
    let has_label = |window: &Harness<'static, App>| texts(window).iter().any(|text| text.starts_with("cup 9"));
    window.run_steps(3);
    assert!(has_label(&window), "{:?}", texts(&window));
    window.state_mut().command(Action::ToggleOutlines);
    window.run_steps(3);
    assert!(!has_label(&window), "{:?}", texts(&window));
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.run_steps(3);
    assert!(has_label(&window), "{:?}", texts(&window));
}

#[test]
fn context_menus_act_on_what_is_under_the_pointer() {
    let (_folder, mut window) = open_cups(2);
    window.state_mut().command(Action::GoOnAfterVerdict);
    // A row of the list.
    window.get_by_label_contains("cup 9").click_secondary();
    wait_for(&mut window, "Duplicate box");
    assert_eq!(window.state().state().shown.selected_box, Some(0));
    let entry = |label: &'static str| {
        move |window: &mut Harness<'static, App>| {
            let entries: Vec<_> = window.query_all_by_role_and_label(Role::Button, label).collect();
            entries.last().unwrap().click();
        }
    };
    entry("Reject")(&mut window);
    window.run_steps(3);
    let shown = window.state().state().shown_sample().unwrap();
    assert_eq!(
        window.state().state().judgments.box_verdict(shown, 0).map(VerdictKind::from),
        Some(VerdictKind::Reject)
    );
    assert!(!sees(&window, "Duplicate box"), "the menu is closed");
    // The image, with a selected box.
    window.get_by_role_and_label(Role::Image, "Image 0-coffee.png").click_secondary();
    wait_for(&mut window, "Find similar boxes");
    let alike = window.get_by_role_and_label(Role::Button, "Find similar boxes");
    assert!(!alike.accesskit_node().is_disabled());
    window.key_press(egui::Key::Escape);
    window.run_steps(3);
    // Another thumbnail.
    window.get_by_label_contains("1-coffee.png").click_secondary();
    wait_for(&mut window, "Predict selection");
    wait_until(&mut window, "the other image", |window| {
        let state = window.state().state();
        state.shown_sample().and_then(|sample| state.samples.get(sample)).is_some_and(|it| it.name == "1-coffee.png")
    });
    assert!(sees(&window, "Save image as…"));
    entry("Accept")(&mut window);
    window.run_steps(3);
    assert_eq!(window.state().state().verdict_of(SampleId(1)), Some(VerdictKind::Accept));
}

/// Clicks an entry of the open context menu.
fn choose(window: &mut Harness<'static, App>, label: &str) {
    let entries: Vec<_> = window.query_all_by_role_and_label(Role::Button, label).collect();
    entries.last().unwrap().click();
    window.run_steps(3);
}

#[test]
fn class_of_a_classifier_has_a_context_menu() {
    let folder = folder_of(1, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    wait_until(&mut window, "the prediction", |window| window.state().state().shown.prediction.is_some());
    window.run_steps(3);
    let second = prediction(&window).classes()[1].clone();
    window.get_by_label_contains(&format!("{} {:.1}%", second.label, second.score * 100.0)).click_secondary();
    wait_for(&mut window, "Save image as…");
    assert_eq!(window.state().state().shown.selected_class, Some(second.index));
    assert!(!sees(&window, "Duplicate box"));
    choose(&mut window, "Reject");
    assert_eq!(window.state().state().verdict_of(SampleId(0)), Some(VerdictKind::Reject));
    assert!(!sees(&window, "Save image as…"), "the menu is closed");
}

#[test]
fn image_and_filmstrip_have_context_menus() {
    let (_folder, mut window) = open_cups(1);
    window.state_mut().command(Action::GoOnAfterVerdict);
    let bounds = prediction(&window).detections()[0].bounds;
    let on_cup = on_screen(&window, bounds.x1 + 3.0, f32::midpoint(bounds.y1, bounds.y2));
    window.hover_at(on_cup);
    window.run_steps(2);
    secondary_click(&mut window, on_cup);
    wait_for(&mut window, "Save image as…");
    assert_eq!(window.state().state().shown.selected_box, Some(0));
    choose(&mut window, "Accept");
    let verdict = |window: &Harness<'static, App>| {
        window.state().state().judgments.box_verdict(SampleId(0), 0).map(VerdictKind::from)
    };
    assert_eq!(verdict(&window), Some(VerdictKind::Accept));
    let cup = prediction(&window).detections()[0].class_id;
    window.state_mut().command(ReviewCommand::SelectBox(None));
    window.state_mut().command(ReviewCommand::OpenFilmstrip(cup));
    wait_for(&mut window, "%, 0-coffee.png");
    window.get_by_label_contains("%, 0-coffee.png").click_secondary();
    wait_for(&mut window, "Find similar boxes");
    assert_eq!(window.state().state().shown.selected_box, Some(0));
    choose(&mut window, "Unsure");
    assert_eq!(verdict(&window), Some(VerdictKind::Unsure));
}

fn secondary_click(window: &mut Harness<'static, App>, pos: egui::Pos2) {
    for pressed in [true, false] {
        let modifiers = egui::Modifiers::NONE;
        window.event(egui::Event::PointerButton { pos, button: egui::PointerButton::Secondary, pressed, modifiers });
        window.step();
    }
}

#[test]
fn boxes_are_hidden_while_h_is_held() {
    let (_folder, mut window) = open_cups(1);
    window.run_steps(3);
    let has_label = |window: &Harness<'static, App>| texts(window).iter().any(|text| text.starts_with("cup 9"));
    assert!(has_label(&window), "{:?}", texts(&window));
    window.key_down(Key::H);
    window.run_steps(2);
    assert!(!has_label(&window), "{:?}", texts(&window));
    window.key_up(Key::H);
    window.run_steps(2);
    assert!(has_label(&window), "{:?}", texts(&window));
}

/// The mean of all channels within the first crop of the filmstrip.
fn brightness_of_crop(window: &mut Harness<'static, App>) -> f64 {
    window.run_steps(3);
    let crop = window.get_by_label_contains("%, 0-coffee.png").rect();
    let picture = egui::Rect::from_center_size(crop.center_top() + vec2(0.0, crop.width() / 2.0), vec2(30.0, 30.0));
    let drawn = window.render().unwrap();
    let pixels = (picture.left() as u32..picture.right() as u32)
        .flat_map(|x| (picture.top() as u32..picture.bottom() as u32).map(move |y| (x, y)));
    let values = pixels.flat_map(|(x, y)| drawn.get_pixel(x, y).0[..3].to_vec());
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + f64::from(value), count + 1));
    sum / f64::from(count)
}

#[test]
fn crops_in_the_filmstrip_follow_brightness() {
    let folder = folder_of(1, "coffee.png");
    let mut window = open_with(Some(folder.path()), DETECTOR, |builder| builder.with_pixels_per_point(1.0).wgpu());
    wait_for(&mut window, "cup ");
    let cup = prediction(&window).detections()[0].class_id;
    window.state_mut().command(ReviewCommand::OpenFilmstrip(cup));
    wait_for(&mut window, "%, 0-coffee.png");
    let is_complete = |window: &Harness<'static, App>| window.state().filmstrip_is_complete();
    wait_until(&mut window, "the crop", is_complete);
    let before = brightness_of_crop(&mut window);
    // The pixels of a crop that was drawn as it is are requested again; later, they are there.
    for brightness in [0.2, 0.1] {
        window.state_mut().command(ReviewCommand::SetNumber(ViewNumber::Brightness, brightness));
        window.step();
        wait_until(&mut window, "the bright crop", is_complete);
        let brighter = brightness_of_crop(&mut window) - before;
        let expected = f64::from(brightness) * 255.0;
        assert!((brighter - expected).abs() < 6.0, "{before} + {brighter}, not {expected}");
    }
    window.state_mut().command(Action::ResetLook);
    window.step();
    assert!((brightness_of_crop(&mut window) - before).abs() < 1.0);
}
