//! Repairing predictions: boxes are drawn and moved with the pointer and with keys.

use egui::accesskit::Role;
use egui::{Key, Modifiers, Pos2, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::domain::{BoundingBox, Location, Verdict};
use spotcheck::project::export::options::{ExportFormat, ExportOptions, VerdictChoice};
use spotcheck::review::VerdictKind;
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, CanvasView, Drawing, EvaluationCommand, ExportCommand, ExportScope, Overlay, ReviewCommand, TruthAt,
};

use crate::support::{spotcheck, stderr};
use crate::window::{click, folder_of, open, open_in, sees, wait_for, wait_for_overlay, wait_until};

/// The photo of a cup: 600 x 400 pixels.
const IMAGE: &str = "coffee.png";
const SIZE: egui::Vec2 = vec2(600.0, 400.0);

pub(crate) fn open_cup(folder: &std::path::Path) -> Harness<'static, App> {
    let mut window = open(Some(folder), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    wait_until(&mut window, "the whole image", |window| window.state().image_is_complete());
    window
}

/// Where a point of the fitted image is on screen.
pub(crate) fn on_screen(window: &Harness<'static, App>, x: f32, y: f32) -> Pos2 {
    on_screen_of(window, "0-coffee.png", x, y)
}

/// The same, of a copy of the photo with another name.
pub(crate) fn on_screen_of(window: &Harness<'static, App>, name: &str, x: f32, y: f32) -> Pos2 {
    let canvas = window.get_by_role_and_label(Role::Image, &format!("Image {name}")).rect();
    let zoom = ((canvas.size() - vec2(32.0, 32.0)) / SIZE).min_elem();
    canvas.center() + (vec2(x, y) - SIZE / 2.0) * zoom
}

/// Drags from one point of the image to another, in pixels of the image.
fn drag(window: &mut Harness<'static, App>, [from, to]: [[f32; 2]; 2]) {
    let ends = [from, to].map(|[x, y]| on_screen(window, x, y));
    drag_on_screen(window, ends);
}

fn drag_on_screen(window: &mut Harness<'static, App>, ends: [Pos2; 2]) {
    window.hover_at(ends[0]);
    window.run_steps(1);
    window.drag_at(ends[0]);
    window.run_steps(1);
    window.hover_at(ends[0] + (ends[1] - ends[0]) / 2.0);
    window.run_steps(1);
    window.hover_at(ends[1]);
    window.run_steps(1);
    window.drop_at(ends[1]);
    window.run_steps(2);
}

pub(crate) fn verdict(window: &Harness<'static, App>, index: usize) -> Option<Verdict> {
    let state = window.state().state();
    state.judgments.box_verdict(state.shown_sample()?, index).cloned()
}

#[track_caller]
fn assert_near(found: BoundingBox, expected: [f32; 4]) {
    let found = <[f32; 4]>::from(found);
    let is_near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= 1.5);
    assert!(is_near, "{found:?} is not {expected:?} within 1.5 pixels");
}

#[test]
fn missing_box_is_drawn_and_named() {
    let folder = folder_of(1, IMAGE);
    let mut window = open_cup(folder.path());
    let count = window.state().state().shown.prediction.as_ref().unwrap().detections().len();
    window.key_press(Key::B);
    window.run_steps(2);
    assert_eq!(window.state().state().shown.drawing, Some(Drawing::Armed));
    let view = window.state().state().canvas;
    drag(&mut window, [[40.0, 30.0], [160.0, 90.0]]);
    assert_eq!(window.state().state().canvas, view, "the image does not move");
    wait_for_overlay(&mut window, Overlay::WrongClass);
    assert!(sees(&window, "What is the class of the new box?"));
    window.get_by_label("Correct class").type_text("teapot");
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(3);
    let Some(Verdict::Added(drawn)) = verdict(&window, count) else {
        panic!("no box was added: {:?}", verdict(&window, count));
    };
    assert_eq!(drawn.class(), "teapot");
    assert_near(drawn.bounds(), [40.0, 30.0, 160.0, 90.0]);
    assert!(sees(&window, "+ teapot"));
    wait_until(&mut window, "the project", |window| window.state().state().judgments.saving() == 0);
    // The same class again, with its digit.
    window.key_press(Key::Escape);
    window.run_steps(2);
    window.key_press(Key::B);
    window.run_steps(2);
    drag(&mut window, [[300.0, 30.0], [360.0, 90.0]]);
    wait_for_overlay(&mut window, Overlay::WrongClass);
    window.event(egui::Event::Text("1".to_owned()));
    window.run_steps(3);
    let second = verdict(&window, count + 1);
    assert_eq!(second.as_ref().and_then(Verdict::right_class), Some("teapot"), "{second:?}");
    // Delete removes it.
    window.key_press(Key::Delete);
    window.run_steps(3);
    assert_eq!(verdict(&window, count + 1), None);
    window.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    window.run_steps(3);
    assert_eq!(verdict(&window, count + 1), second);
}

#[test]
fn digits_choose_the_classes_that_they_are_assigned_to() {
    let folder = folder_of(1, IMAGE);
    let mut window = open_cup(folder.path());
    let ask = |window: &mut Harness<'static, App>| {
        window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
        window.state_mut().command(Action::WrongClass);
        wait_for_overlay(window, Overlay::WrongClass);
        window.run_steps(2);
    };
    let shortcut = |window: &Harness<'static, App>, class: &str| {
        let node = window.get_by_label(class);
        node.accesskit_node().data().keyboard_shortcut().map(str::to_owned)
    };
    let text = |window: &mut Harness<'static, App>, text: &str| {
        window.event(egui::Event::Text(text.to_owned()));
        window.run_steps(3);
    };
    ask(&mut window);
    window.key_press_modifiers(Modifiers::COMMAND, Key::Num7);
    window.run_steps(2);
    assert_eq!(window.state().state().class_digits().count(), 0, "no class is chosen");
    window.get_by_label("Correct class").type_text("zebra");
    window.run_steps(2);
    window.key_press_modifiers(Modifiers::COMMAND, Key::Num7);
    window.run_steps(2);
    assert_eq!(window.state().state().class_digits().collect::<Vec<_>>(), [(7, "zebra")]);
    window.key_press(Key::Escape);
    window.run_steps(2);
    ask(&mut window);
    assert_eq!(shortcut(&window, "zebra").as_deref(), Some("7"));
    text(&mut window, "7");
    assert_eq!(verdict(&window, 0), Some(Verdict::WrongClass("zebra".to_owned())));
    // The help lists it, and the line of a class with another digit has none of its own.
    window.state_mut().command(Action::Help);
    wait_for(&mut window, "Choose “zebra”");
    window.key_press(Key::Escape);
    window.run_steps(2);
    ask(&mut window);
    let first = window.state().state().recent_classes[0].clone();
    assert_eq!(first, "zebra");
    text(&mut window, "1");
    assert_eq!(window.state().state().overlay, Overlay::WrongClass, "1 chooses nothing");
    window.get_by_label("Reset digits").click();
    window.run_steps(3);
    assert_eq!(window.state().state().class_digits().count(), 0);
}

#[test]
fn escape_ends_drawing_and_leaves_no_box() {
    let folder = folder_of(1, IMAGE);
    let mut window = open_cup(folder.path());
    window.key_press(Key::B);
    window.run_steps(2);
    window.key_press(Key::Escape);
    window.run_steps(2);
    assert_eq!(window.state().state().shown.drawing, None);
    window.key_press(Key::B);
    window.run_steps(2);
    drag(&mut window, [[40.0, 30.0], [160.0, 90.0]]);
    wait_for_overlay(&mut window, Overlay::WrongClass);
    window.key_press(Key::Escape);
    window.run_steps(3);
    let state = window.state().state();
    assert_eq!((state.overlay, state.shown.drawing), (Overlay::None, None));
    assert_eq!(state.judgments.undo_label(), None);
}

#[test]
fn handles_and_arrow_keys_move_the_selected_box() {
    let folder = folder_of(1, IMAGE);
    let mut window = open_cup(folder.path());
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.run_steps(2);
    let stored = window.state().state().shown.prediction.as_ref().unwrap().detections()[0].bounds;
    let BoundingBox { x1, y1, x2, y2 } = stored;
    drag(&mut window, [[x1, y1], [x1 + 20.0, y1 + 10.0]]);
    let Some(Verdict::Moved(drawn)) = verdict(&window, 0) else {
        panic!("the box was not moved: {:?}", verdict(&window, 0));
    };
    assert_eq!(drawn.class(), "cup");
    assert_near(drawn.bounds(), [x1 + 20.0, y1 + 10.0, x2, y2]);
    // The handle in the middle moves all edges.
    let BoundingBox { x1, y1, x2, y2 } = drawn.bounds();
    let middle = [f32::midpoint(x1, x2), f32::midpoint(y1, y2)];
    drag(&mut window, [middle, [middle[0] - 15.0, middle[1] - 12.0]]);
    let moved = verdict(&window, 0).unwrap().drawn().unwrap().bounds();
    assert_near(moved, [x1 - 15.0, y1 - 12.0, x2 - 15.0, y2 - 12.0]);
    window.key_press_modifiers(Modifiers::COMMAND, Key::ArrowRight);
    window.run_steps(2);
    let nudged = verdict(&window, 0).unwrap().drawn().unwrap().bounds();
    assert_eq!((nudged.x1, nudged.x2), (moved.x1 + 1.0, moved.x2 + 1.0));
    window.key_press_modifiers(Modifiers::COMMAND | Modifiers::SHIFT, Key::ArrowUp);
    window.run_steps(2);
    let resized = verdict(&window, 0).unwrap().drawn().unwrap().bounds();
    assert_eq!((resized.y1, resized.y2), (nudged.y1, nudged.y2 - 1.0));
    window.key_press_modifiers(Modifiers::ALT | Modifiers::SHIFT, Key::ArrowUp);
    window.key_press_modifiers(Modifiers::ALT | Modifiers::SHIFT, Key::ArrowRight);
    window.run_steps(2);
    let left_top = verdict(&window, 0).unwrap().drawn().unwrap().bounds();
    let expected = BoundingBox::new(resized.x1 + 1.0, resized.y1 - 1.0, resized.x2, resized.y2);
    assert_eq!(left_top, expected);
    assert!(sees(&window, "moved"));
    // The image is judged once its other boxes are.
    window.key_press(Key::Escape);
    window.run_steps(2);
    window.key_press(Key::A);
    window.run_steps(3);
    window.key_press(Key::A);
    window.run_steps(3);
    let state = window.state().state();
    let sample = state.samples.ids().next().unwrap();
    assert_eq!(state.verdict_of(sample), Some(VerdictKind::Moved));
}

#[test]
fn box_is_edited_to_half_a_pixel_when_zoomed() {
    let folder = folder_of(1, IMAGE);
    let mut window = open_cup(folder.path());
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.run_steps(2);
    let stored = window.state().state().shown.prediction.as_ref().unwrap().detections()[0].bounds;
    let (zoom, corner) = (8.0, vec2(stored.x1, stored.y1));
    window.state_mut().command(ReviewCommand::SetCanvas(CanvasView::Free { zoom, center: corner.into() }));
    window.run_steps(3);
    let canvas = window.get_by_role_and_label(Role::Image, "Image 0-coffee.png").rect();
    drag_on_screen(&mut window, [canvas.center(), canvas.center() + vec2(20.0, -12.0)]);
    let dragged = verdict(&window, 0).unwrap().drawn().unwrap().bounds();
    let half = |edge: f32| (edge * 2.0).round() / 2.0;
    let [left, top] = [half(corner.x + 20.0 / zoom), half(corner.y - 12.0 / zoom)];
    assert_eq!([dragged.x1, dragged.y1], [left, top]);
    assert_eq!([dragged.x2, dragged.y2], [half(stored.x2), half(stored.y2)]);
    for (modifiers, key, by) in [
        (Modifiers::COMMAND, Key::ArrowLeft, [-0.5, 0.0, -0.5, 0.0]),
        (Modifiers::COMMAND | Modifiers::SHIFT, Key::ArrowUp, [0.0, 0.0, 0.0, -0.5]),
        (Modifiers::ALT | Modifiers::SHIFT, Key::ArrowDown, [0.0, 0.5, 0.0, 0.0]),
    ] {
        let before = verdict(&window, 0).unwrap().drawn().unwrap().bounds();
        window.key_press_modifiers(modifiers, key);
        window.run_steps(2);
        let now = <[f32; 4]>::from(verdict(&window, 0).unwrap().drawn().unwrap().bounds());
        let before = <[f32; 4]>::from(before);
        assert_eq!(now, std::array::from_fn(|edge| before[edge] + by[edge]), "{modifiers:?} {key:?}");
    }
}

#[test]
fn ground_truth_is_corrected_as_a_run() {
    let folder = folder_of(1, IMAGE);
    let labels = serde_json::json!({
        "images": [{"id": 1, "file_name": "0-coffee.png"}],
        "categories": [{"id": 1, "name": "mug"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [170, 20, 240, 230]}],
    });
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("labels.json");
    std::fs::write(&file, labels.to_string()).unwrap();
    let mut window = open_cup(folder.path());
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(Location::Path(file.clone()))));
    wait_until(&mut window, "the ground truth", |window| window.state().state().opened_truth().is_some());
    window.state_mut().command(Action::CorrectTruth);
    // The label is also evaluated against itself, sooner or later.
    wait_until(&mut window, "the label", |window| sees(window, "mug 100.0%") || sees(window, "mug · TP 100.0%"));
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.run_steps(2);
    drag(&mut window, [[170.0, 20.0], [180.0, 30.0]]);
    let Some(Verdict::Moved(drawn)) = verdict(&window, 0) else {
        panic!("the label was not moved: {:?}", verdict(&window, 0));
    };
    assert_near(drawn.bounds(), [180.0, 30.0, 410.0, 250.0]);

    // An object that the labels lack.
    window.key_press(Key::B);
    window.run_steps(2);
    drag(&mut window, [[40.0, 30.0], [160.0, 90.0]]);
    wait_for_overlay(&mut window, Overlay::WrongClass);
    window.get_by_label("Correct class").type_text("spoon");
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(3);
    window.key_press(Key::M);
    window.run_steps(3);

    // The owner gets the changes, and applies them: the result is the same as the corrected labels.
    let [changes, exported, corrected] =
        ["changes.jsonl", "exported.json", "corrected.json"].map(|name| elsewhere.path().join(name));
    window.state_mut().command(Action::ExportLabelChanges);
    wait_for_overlay(&mut window, Overlay::ExportLabelChanges);
    window.run_steps(2);
    let field = window.get_by_role_and_label(Role::TextInput, "Target file");
    field.focus();
    field.type_text(changes.to_str().unwrap());
    window.run_steps(2);
    click(&mut window, "Export now");
    wait_for(&mut window, "2 changes: 1 added, 1 moved");
    window.state_mut().command(ExportCommand::Dismiss);
    window.state_mut().command(Action::Export);
    let options = ExportOptions { verdicts: VerdictChoice::Corrected, ..ExportOptions::for_format(ExportFormat::Coco) };
    window.state_mut().command(ExportCommand::Set(options, ExportScope::All));
    window.state_mut().command(ExportCommand::Start { path: exported.clone(), replaces: false });
    wait_for(&mut window, "1 image and 2 boxes");
    let run = |arguments: &[&std::ffi::OsStr]| {
        let output = spotcheck(&[]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        output.stdout
    };
    let [apply, out, truth] = ["apply", "--out", "--truth"].map(std::ffi::OsStr::new);
    run(&["review".as_ref(), apply, file.as_ref(), "--changes".as_ref(), changes.as_ref(), out, corrected.as_ref()]);
    let images = folder.path().as_os_str();
    let evaluate =
        ["evaluate".as_ref(), images, "--predictions".as_ref(), exported.as_ref(), truth, corrected.as_ref()];
    let metrics = run(&[&evaluate[..], &["--draws".as_ref(), "0".as_ref(), out, "-".as_ref()]].concat());
    let metrics: serde_json::Value = serde_json::from_slice(&metrics).unwrap();
    let [ap, recall] = ["ap", "recall"].map(|key| metrics[key].as_f64().unwrap());
    assert!((ap - 1.0).abs() < 1e-12 && (recall - 1.0).abs() < 1e-12, "AP {ap}, recall {recall}");
    assert_eq!(metrics["true_positives"], 2);
}

#[test]
fn report_summarizes_the_verdicts() {
    let folder = folder_of(1, IMAGE);
    let mut window = open_cup(folder.path());
    window.state_mut().command(Action::GoOnAfterVerdict);
    let boxes = window.state().state().shown_boxes();
    assert_eq!(boxes.len(), 2, "a cup and a dining table");
    window.state_mut().command(ReviewCommand::SelectBox(Some(boxes[0])));
    window.state_mut().command(Action::Accept);
    window.state_mut().command(ReviewCommand::SelectBox(Some(boxes[1])));
    window.state_mut().command(ReviewCommand::ChooseClass("desk".to_owned()));
    window.state_mut().command(Action::ReviewReport);
    wait_for(&mut window, "Precision 0.50");
    assert!(sees(&window, "2 verdicts on all 2 boxes"));
    assert!(sees(&window, "dining table → desk: 1"));
}

#[test]
fn own_class_is_offered_after_a_restart() {
    let (folder, projects) = (folder_of(1, IMAGE), tempfile::tempdir().unwrap());
    let mut window = open_in(projects.path(), Some(folder.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.state_mut().command(ReviewCommand::ChooseClass("teapot".to_owned()));
    window.run_steps(2);
    wait_for(&mut window, "All saved");
    drop(window);

    let mut window = open_in(projects.path(), Some(folder.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "→ teapot");
    wait_for(&mut window, "All saved");
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.state_mut().command(Action::WrongClass);
    wait_for_overlay(&mut window, Overlay::WrongClass);
    window.run_steps(2);
    window.get_by_label("Correct class").type_text("teap");
    window.run_steps(2);
    assert!(sees(&window, "Enter uses “teapot”"));
}
