//! “Which class?”: what it lists and how, and where new classes are marked.

use std::path::PathBuf;

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{BoundingBox, Change, Verdict, VerdictTarget};
use spotcheck::project::{OpenMode, OpenRequest, Project};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, Overlay, ReviewCommand};

use crate::adding_models::wait_until_tried;
use crate::browsing::drop_on;
use crate::support::repository;
use crate::window::{
    click, folder_of, home_with_runtime, open, open_at, open_in, sees, wait_for, wait_for_overlay, wait_until,
    wait_until_idle,
};

#[derive(Clone, Copy)]
enum About {
    Box(usize),
    Drawn(BoundingBox),
}

/// Asks for the class of a box.
fn ask(window: &mut Harness<'static, App>, about: About) {
    match about {
        About::Box(index) => {
            window.state_mut().command(ReviewCommand::SelectBox(Some(index)));
            window.state_mut().command(Action::WrongClass);
        }
        About::Drawn(drawn) => {
            window.state_mut().command(ReviewCommand::SelectBox(None));
            window.state_mut().command(ReviewCommand::DrawBox(drawn));
        }
    }
    wait_for_overlay(window, Overlay::WrongClass);
    window.run_steps(2);
}

/// The classes of the list with their notes, from top to bottom.
fn listed(window: &Harness<'static, App>) -> Vec<(String, String)> {
    let field = window.get_by_label("Correct class").rect();
    let buttons = window.query_all_by_role(Role::Button).filter(|node| {
        let rect = node.rect();
        rect.top() > field.bottom() && rect.left() >= field.left() - 8.0 && rect.right() <= field.right() + 8.0
    });
    let mut lines: Vec<(f32, String, String)> = buttons
        .filter(|node| {
            node.accesskit_node()
                .label()
                .is_some_and(|label| !["Reset digits", "Find similar boxes"].contains(&&*label))
        })
        .map(|node| {
            let data = node.accesskit_node();
            let note = data.data().description().unwrap_or_default().to_owned();
            (node.rect().top(), data.label().unwrap_or_default(), note)
        })
        .collect();
    lines.sort_by(|left, right| left.0.total_cmp(&right.0));
    lines.into_iter().map(|(_, label, note)| (label, note)).collect()
}

fn scene() -> PathBuf {
    repository().join("tests/cases/detectors/scene.png")
}

fn open_scene(dirs: AppDirs) -> Harness<'static, App> {
    let mut window = open_at(dirs, |builder| builder);
    window.state_mut().command(BrowseCommand::Open(scene()));
    window
}

/// What “Which class?” should list first for a box: the runners-up of the prediction on screen.
fn expected(window: &Harness<'static, App>, index: usize) -> Vec<(String, String)> {
    let state = window.state().state();
    let run = state.run().unwrap();
    let found = &state.shown.prediction.as_ref().unwrap().detections()[index];
    let others = found.runners_up.iter();
    others.map(|other| (run.labels().name(other.class_id), format!("score {:.2}", other.score))).collect()
}

/// Their numbers are compared with independent ones in `tests/library/detections.rs`.
#[test]
fn runners_up_come_first_with_scores() {
    let home = tempfile::tempdir().unwrap();
    let mut window = open_scene(home_with_runtime(home.path()));
    drop_on(&mut window, &repository().join("tests/cases/detectors/yolov8/model.onnx"));
    wait_until_tried(&mut window);
    click(&mut window, "Add this model");
    wait_until(&mut window, "the model", |window| window.state().state().models.get("model").is_some());
    wait_until(&mut window, "a prediction", |window| window.state().state().shown.prediction.is_some());
    let first = expected(&window, 0);
    assert!(!first.is_empty(), "the model has several classes");
    ask(&mut window, About::Box(0));
    assert_eq!(listed(&window)[..first.len()], first);
    assert!(!sees(&window, "one class per box"));
    window.key_press(egui::Key::Escape);
    window.run_steps(2);
    // A new box gets the classes of the boxes that the model has there, even if the filters hide them.
    let (label, score, bounds) = {
        let shown = window.state().state().shown.prediction.clone().unwrap();
        let weakest = shown.detections().last().unwrap();
        (weakest.label.clone(), weakest.score, weakest.bounds.clipped(shown.width, shown.height))
    };
    ask(&mut window, About::Drawn(bounds));
    let found = listed(&window);
    let notes: Vec<&str> = found.iter().map(|(_, note)| note.as_str()).collect();
    assert!(notes[0].starts_with("score "), "{found:?}; the box has {label} {score}");
    window.key_press(egui::Key::Escape);
    window.run_steps(2);
    wait_for(&mut window, "All saved");
    drop(window);

    // They are in the project.
    let mut window = open_scene(AppDirs::below(home.path()));
    wait_until(&mut window, "the prediction", |window| window.state().state().shown.prediction.is_some());
    wait_until_idle(&mut window);
    ask(&mut window, About::Box(0));
    assert_eq!(listed(&window)[..first.len()], first);
}

#[test]
fn new_classes_are_marked_wherever_classes_are_listed() {
    let folder = folder_of(1, "coffee.png");
    let mut window = open(Some(folder.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    window.state_mut().command(Action::GoOnAfterVerdict);
    let bounds = BoundingBox::new(40.0, 30.0, 160.0, 90.0);
    ask(&mut window, About::Drawn(bounds));
    window.get_by_label("Correct class").type_text("teapot");
    window.run_steps(2);
    assert!(sees(&window, "Enter uses “teapot”, a new class"));
    window.key_press(egui::Key::Enter);
    wait_for(&mut window, "+ teapot (new)");
    assert!(sees(&window, "teapot, new class, 1 verdict"), "the table of classes");
    ask(&mut window, About::Box(0));
    assert!(sees(&window, "one class per box"));
    assert_eq!(listed(&window)[0], ("teapot".to_owned(), "new".to_owned()));
    window.state_mut().command(ReviewCommand::ChooseClass("teapot".to_owned()));
    wait_for(&mut window, "≠ cup → teapot (new)");
    assert!(sees(&window, "teapot, new class, 2 verdicts"));
    // A class of the model is not new, however it is written.
    window.state_mut().command(ReviewCommand::ChooseClass("Bowl".to_owned()));
    wait_for(&mut window, "teapot, new class, 1 verdict");
    assert_eq!(window.state().state().new_classes().collect::<Vec<_>>(), [("teapot", 1)]);
    let verdict = |window: &Harness<'static, App>| {
        let state = window.state().state();
        state.judgments.box_verdict(state.shown_sample().unwrap(), 0).cloned()
    };
    assert_eq!(verdict(&window), Some(Verdict::WrongClass("bowl".to_owned())));
    window.state_mut().command(ReviewCommand::ChooseClass("TEAPOT".to_owned()));
    wait_for(&mut window, "≠ cup → teapot (new)");
    assert_eq!(window.state().state().new_classes().collect::<Vec<_>>(), [("teapot", 2)]);
    for _ in 0..4 {
        window.state_mut().command(Action::Undo);
    }
    window.run_steps(2);
    assert_eq!(window.state().state().new_classes().count(), 0);
}

/// An earlier version stored classes as they were typed.
#[test]
fn own_class_in_another_case_is_listed() {
    let (folder, home) = (folder_of(1, "coffee.png"), tempfile::tempdir().unwrap());
    let mut window = open_in(home.path(), Some(folder.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup ");
    wait_for(&mut window, "All saved");
    let state = window.state().state();
    let (path, run) = (state.project.path.clone().unwrap(), state.run_id());
    let sample = state.samples.get(state.shown_sample().unwrap()).unwrap().uri.clone();
    drop(window);
    let request = OpenRequest { path: &path, root: None, mode: OpenMode::WriteExisting, program: "a test" };
    let project = Project::open(&request, |_| ()).unwrap().project;
    let target = VerdictTarget { run, box_index: Some(0) };
    let verdict = Some(Verdict::WrongClass("BOWL".to_owned()));
    project.write_together(&[Change::SetVerdict { sample, target, verdict, reviewer: None }]).unwrap();
    drop(project);

    let mut window = open_in(home.path(), Some(folder.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "≠ cup → BOWL");
    ask(&mut window, About::Box(0));
    window.get_by_label("Correct class").type_text("bowl");
    window.run_steps(2);
    let classes: Vec<String> = listed(&window).into_iter().map(|(class, _)| class).collect();
    assert_eq!(classes[..2], ["bowl", "BOWL"]);
    assert!(sees(&window, "Enter uses “bowl”"));
}
