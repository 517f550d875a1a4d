//! Presentation mode, and images divided between two runs, or between predictions and ground truth.

use egui::accesskit::Role;
use egui::{Key, Modifiers, Pos2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::SampleId;
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, Explanation, ReviewCommand, RightSide, Run, SearchCommand, ViewNumber,
};

use crate::comparing::two_runs;
use crate::truth::{open_truth, truth_of_samples};
use crate::window::{folder_of, open, samples, sees, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

fn present(window: &mut Harness<'static, App>) {
    window.key_press(Key::F11);
    wait_for(window, "Escape exits");
}

fn press(window: &mut Harness<'static, App>, key: Key) {
    press_with(window, Modifiers::NONE, key);
}

fn press_with(window: &mut Harness<'static, App>, modifiers: Modifiers, key: Key) {
    window.key_press_modifiers(modifiers, key);
    window.run_steps(3);
}

fn right_side(window: &Harness<'static, App>) -> Option<RightSide> {
    window.state().state().right_side()
}

fn divider(window: &Harness<'static, App>) -> f32 {
    window.state().state().settings.divider
}

fn drag_from(window: &mut Harness<'static, App>, from: Pos2, to: Pos2) {
    window.hover_at(from);
    window.run_steps(1);
    window.drag_at(from);
    window.run_steps(1);
    window.hover_at(from + (to - from) / 2.0);
    window.run_steps(1);
    window.hover_at(to);
    window.run_steps(1);
    window.drop_at(to);
    window.run_steps(2);
}

#[test]
fn presentation_shows_labels_without_panels() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    assert!(sees(&window, "chelsea.png") && sees(&window, "Predict all"));
    window.key_press(Key::F11);
    wait_for(&mut window, "Escape exits");
    wait_for(&mut window, "tiger cat 38%");
    let path = folder.path().to_str().unwrap();
    assert!(!sees(&window, path) && !sees(&window, "chelsea.png"));
    assert!(!sees(&window, "Predict all"));
    let first = window.state().state().shown_sample();
    window.key_press(Key::ArrowRight);
    wait_until(&mut window, "the next image", |window| window.state().state().shown_sample() != first);
    assert!(sees(&window, "Space plays"), "only the user starts a slide show");
    window.key_press(Key::Space);
    wait_for(&mut window, "Space pauses");
    window.key_press(Key::Escape);
    wait_for(&mut window, "2 of 3 images");
}

#[test]
fn slide_show_wraps_around() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    window.key_press(Key::F11);
    wait_for(&mut window, "Escape exits");
    window.key_press(Key::Space);
    // The window's clock advances with its frames.
    for place in [1, 0] {
        wait_until(&mut window, "the next slide", move |window| {
            let state = window.state().state();
            let shown = state.shown_sample();
            shown.and_then(|shown| state.order().place_of(shown)) == Some(place)
        });
    }
}

#[test]
fn search_results_are_the_playlist() {
    let folder = folder_of(4, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    for tagged in [1, 3] {
        window.state_mut().command(BrowseCommand::Show(SampleId(tagged)));
        window.state_mut().command(ReviewCommand::AddTag("demo".to_owned()));
    }
    window.state_mut().command(BrowseCommand::Show(SampleId(0)));
    window.state_mut().command(SearchCommand::SetQuery("tag:demo".to_owned()));
    wait_until(&mut window, "the search", |window| window.state().state().order().len() == 2);
    let shown = |window: &Harness<'static, App>| window.state().state().shown_sample().unwrap().0;
    assert_eq!(shown(&window), 0);
    present(&mut window);
    assert_eq!(shown(&window), 1, "the first one that was found");
    press(&mut window, Key::ArrowRight);
    assert_eq!(shown(&window), 3);
    press(&mut window, Key::Space);
    // The window's clock advances with its frames.
    wait_until(&mut window, "the first slide again", |window| {
        window.state().state().shown_sample() == Some(SampleId(1))
    });
}

#[test]
fn caption_is_shown_on_demand() {
    let folder = folder_of(3, "coffee.png");
    let mut window = open(Some(folder.path()), DETECTOR);
    wait_for(&mut window, "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    let samples = [SampleId(0)].into_iter().collect();
    window.state_mut().command(ReviewCommand::SetNote { samples, text: "Our first cup".to_owned() });
    assert!(Action::ToggleCaption.check(window.state().state()).is_err());
    present(&mut window);
    let caption = "SSD MobileNet v2\n1 of 3 images  ·  0-coffee.png\nOur first cup";
    assert!(sees(&window, "I caption") && !sees(&window, "0-coffee.png"));
    press(&mut window, Key::I);
    assert!(sees(&window, caption));
    press(&mut window, Key::ArrowRight);
    wait_for(&mut window, "SSD MobileNet v2\n2 of 3 images  ·  1-coffee.png");
    press(&mut window, Key::I);
    assert!(!sees(&window, "1-coffee.png"));
}

#[test]
fn run_score_and_explanation_change_while_presenting() {
    let folder = folder_of(2, "coffee.png");
    let mut window = two_runs(DETECTOR, folder.path());
    wait_for(&mut window, "cup ");
    let run = |window: &Harness<'static, App>| window.state().state().run().map(Run::id).unwrap();
    let second = run(&window);
    present(&mut window);
    press_with(&mut window, Modifiers::ALT, Key::ArrowUp);
    let first = run(&window);
    assert_ne!(first, second);
    wait_for(&mut window, "cup 96%");
    // The first follows the last.
    press_with(&mut window, Modifiers::ALT, Key::ArrowUp);
    assert_eq!(run(&window), second);

    wait_for(&mut window, "dining table ");
    for _ in 0..7 {
        press(&mut window, Key::Plus);
    }
    assert!(sees(&window, "+/− minimum score (0.85)"));
    assert!(sees(&window, "cup 96%") && !sees(&window, "dining table "));
    press(&mut window, Key::Minus);
    assert!(sees(&window, "+/− minimum score (0.80)"));

    press(&mut window, Key::E);
    wait_for(&mut window, "“cup” scores 9");
    press(&mut window, Key::E);
    assert_eq!(window.state().state().shown.explanation, Explanation::None);
}

#[test]
fn key_without_effect_names_the_reason_while_presenting() {
    let folder = folder_of(1, "coffee.png");
    let mut window = open(Some(folder.path()), DETECTOR);
    wait_for(&mut window, "cup ");
    present(&mut window);
    press_with(&mut window, Modifiers::ALT, Key::ArrowDown);
    assert!(sees(&window, "There is no other run"));
    // The reason belongs to that key alone.
    press(&mut window, Key::I);
    assert!(!sees(&window, "There is no other run"));
    assert!(!sees(&window, "next comparison layout"), "only keys with an effect are listed");
    assert_eq!(window.state().state().run().map(|run| run.predictions.predicted()), Some(1));
}

#[test]
fn two_runs_are_divided_by_a_line() {
    let folder = folder_of(2, "coffee.png");
    let mut window = two_runs(DETECTOR, folder.path());
    wait_for(&mut window, "cup ");
    let name = |window: &Harness<'static, App>, run| window.state().state().runs.get(run).unwrap().info.name.clone();
    let runs: Vec<_> = window.state().state().runs.iter().map(Run::id).collect();
    let [first, second] = runs[..] else { panic!("{runs:?}") };
    for is_presenting in [false, true] {
        if is_presenting {
            present(&mut window);
        }
        assert_eq!(right_side(&window), None);
        press(&mut window, Key::S);
        assert_eq!(right_side(&window), Some(RightSide::Run(first)));
        wait_until(&mut window, "both runs", |window| window.state().state().compared_prediction().is_some());
        let [a, b] = [("A", second), ("B", first)].map(|(letter, run)| format!("{letter}: {}", name(&window, run)));
        assert!(sees(&window, &a) && sees(&window, &b));
        press(&mut window, Key::S);
        assert_eq!(right_side(&window), Some(RightSide::Run(first)));
        assert!(sees(&window, &a) && sees(&window, &b));
        window.state_mut().command(ReviewCommand::SetNumber(ViewNumber::Divider, 0.5));
        window.run_steps(2);
        press(&mut window, Key::Comma);
        press(&mut window, Key::Comma);
        press(&mut window, Key::Period);
        assert!((divider(&window) - 0.45).abs() < 1e-4, "{}", divider(&window));
        press(&mut window, Key::S);
        assert_eq!(right_side(&window), None);
    }
    // During a comparison, the next run keeps the other side.
    press(&mut window, Key::S);
    press_with(&mut window, Modifiers::ALT, Key::ArrowDown);
    assert!(sees(&window, "There is no other run"), "the other one is on the right");
}

#[test]
fn pointer_drags_the_line() {
    let folder = folder_of(2, "coffee.png");
    let mut window = two_runs(DETECTOR, folder.path());
    wait_for(&mut window, "cup ");
    press(&mut window, Key::S);
    press(&mut window, Key::S);
    wait_until(&mut window, "the whole image", |window| window.state().image_is_complete());
    let sides = |window: &Harness<'static, App>| {
        let left = window.get_by_role_and_label(Role::Image, "Image 0-coffee.png");
        let right = window.get_by_role_and_label(Role::Image, "Image with the other run");
        [left.rect(), right.rect()]
    };
    let [left, right] = sides(&window);
    assert!((left.right() - right.left()).abs() < 0.1);
    let from = left.right_center();
    let view = window.state().state().canvas;
    drag_from(&mut window, from, from + egui::vec2(-80.0, 0.0));
    let [moved, _] = sides(&window);
    assert!((moved.right() - left.right() + 80.0).abs() < 2.0, "{moved:?} {left:?}");
    assert_eq!(window.state().state().canvas, view, "the image stays");

    // While presenting, the pointer can take it anywhere.
    present(&mut window);
    let before = divider(&window);
    drag_from(&mut window, egui::pos2(700.0, 400.0), egui::pos2(1000.0, 400.0));
    assert!(divider(&window) > before && divider(&window) < 1.0, "{}", divider(&window));
}

#[test]
fn predictions_are_divided_from_ground_truth() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "8 predicted");
    wait_until_idle(&mut window);
    open_truth(&mut window, truth_of_samples(folder.path()));
    let coffee = window
        .state()
        .state()
        .samples
        .ids()
        .find(|id| window.state().state().samples.get(*id).is_some_and(|entry| entry.name == "coffee.png"));
    window.state_mut().command(BrowseCommand::Show(coffee.unwrap()));
    wait_for(&mut window, "dining table");
    press(&mut window, Key::S);
    assert_eq!(right_side(&window), Some(RightSide::Truth));
    let truth = "Ground truth\nWhite dashes: ground truth (1)";
    wait_for(&mut window, truth);
    present(&mut window);
    assert!(sees(&window, "Ground truth") && sees(&window, "SSD MobileNet v2") && sees(&window, "cup 96%"));
    press(&mut window, Key::S);
    assert_eq!(right_side(&window), None);
    assert!(!sees(&window, "Ground truth"));
    press(&mut window, Key::I);
    assert!(sees(&window, "White dashes: ground truth (1)"));
    press_with(&mut window, Modifiers::COMMAND | Modifiers::ALT, Key::B);
    assert!(!sees(&window, "White dashes"));
}
