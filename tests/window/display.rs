//! How the image is drawn, and the context menus.

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::{Look, Prediction, SampleId};
use spotcheck::review::VerdictKind;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, ReviewCommand, ViewNumber};

use crate::layout::shapes;
use crate::window::{click, folder_of, open, sees, wait_for, wait_until, wait_until_idle};

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
