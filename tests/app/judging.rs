use std::path::Path;

use egui::accesskit::Role;
use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::app::App;
use spotcheck::state::{Action, Command};

use crate::window::{click, folder_of, open, open_in, samples, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

/// Opens a source and waits until its project can be written to.
fn open_to_judge(source: &Path, model: &str) -> Harness<'static, App> {
    let mut window = open(Some(source), model);
    wait_until(&mut window, "the project to be open", |window| {
        window.state().state().project.is_writable()
    });
    window
}

fn press(window: &mut Harness<'static, App>, key: Key) {
    window.key_press(key);
    window.run_steps(3);
}

fn press_with(window: &mut Harness<'static, App>, modifiers: Modifiers, key: Key) {
    window.key_press_modifiers(modifiers, key);
    window.run_steps(3);
}

#[test]
fn letters_judge_the_image_and_go_on_to_the_next() {
    let folder = folder_of(4, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 4 images");
    wait_for(&mut window, "0 of 4 judged");
    press(&mut window, Key::A);
    wait_for(&mut window, "2 of 4 images");
    assert!(sees(&window, "1 of 4 judged: 1 accepted"));
    press(&mut window, Key::R);
    press(&mut window, Key::U);
    wait_for(
        &mut window,
        "3 of 4 judged: 1 accepted, 1 rejected, 1 unsure",
    );
    // The cell says it too, and not only by a colour.
    assert!(sees(&window, "1-chelsea.png") && sees(&window, ", rejected"));
    press_with(&mut window, Modifiers::COMMAND, Key::Z);
    wait_for(&mut window, "Undone: be unsure about 2-chelsea.png");
    wait_for(&mut window, "2 of 4 judged: 1 accepted, 1 rejected");
    press_with(&mut window, Modifiers::COMMAND, Key::Y);
    wait_for(&mut window, "3 of 4 judged");
    press(&mut window, Key::J);
    wait_for(&mut window, "4 of 4 images");
    assert!(sees(&window, "Image: not judged"));
}

#[test]
fn the_buttons_of_the_bar_do_what_the_keys_do() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 2 images");
    click(&mut window, "Judge");
    click(&mut window, "Go on after a verdict");
    click(&mut window, "Reject");
    wait_for(&mut window, "Image: rejected");
    click(&mut window, "Clear verdict");
    wait_for(&mut window, "Image: not judged");
    window.get_by_role_and_label(Role::Button, "Undo").click();
    wait_for(&mut window, "Image: rejected");
    wait_for(&mut window, "1 of 2 judged: 1 rejected");
    wait_until(
        &mut window,
        "everything to be in the project file",
        |window| window.state().state().project.unsaved() == 0,
    );
}

#[test]
fn the_right_class_is_typed_and_completed() {
    let mut window = open_to_judge(&samples().join("chelsea.png"), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3 %");
    press(&mut window, Key::W);
    wait_for(&mut window, "Which class is right?");
    let field = window.get_by_label("Right class");
    field.type_text("egyptian");
    wait_for(&mut window, "Enter takes “Egyptian cat”");
    press(&mut window, Key::Enter);
    wait_for(&mut window, "Image: wrong class, is “Egyptian cat”");
    // Letters in a text field are text.
    press(&mut window, Key::W);
    wait_for(&mut window, "Which class is right?");
    let field = window.get_by_label("Right class");
    field.type_text("my own word");
    wait_for(&mut window, "is none of the model's classes");
    press(&mut window, Key::Enter);
    wait_for(&mut window, "Image: wrong class, is “my own word”");
    assert!(sees(&window, "1 of 1 judged: 1 wrong class"));
}

#[test]
fn a_note_and_tags_are_written_without_the_mouse() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 2 images");
    press(&mut window, Key::N);
    window
        .get_by_role_and_label(Role::TextInput, "Note")
        .type_text("ears cut off");
    press(&mut window, Key::A);
    assert!(
        sees(&window, "0 of 2 judged"),
        "letters are text while one writes"
    );
    press(&mut window, Key::Enter);
    press(&mut window, Key::T);
    window
        .get_by_role_and_label(Role::TextInput, "Tag")
        .type_text("blurry");
    press(&mut window, Key::Enter);
    wait_for(&mut window, "Take the tag blurry away");
    press(&mut window, Key::Escape);
    press(&mut window, Key::ArrowRight);
    wait_for(&mut window, "2 of 2 images");
    assert!(!sees(&window, "Take the tag blurry away"));
    press(&mut window, Key::ArrowLeft);
    wait_for(&mut window, "Take the tag blurry away");
    let judgements = &window.state().state().judgements;
    let sample = window.state().state().shown_sample().unwrap();
    assert_eq!(judgements.note(sample), "ears cut off");
    click(&mut window, "Take the tag blurry away");
    wait_until(&mut window, "the tag to go", |window| {
        !sees(window, "Take the tag blurry away")
    });
}

#[test]
fn a_box_is_judged_by_itself() {
    let mut window = open_to_judge(&samples().join("coffee.png"), DETECTOR);
    wait_for(&mut window, "cup ");
    press(&mut window, Key::CloseBracket);
    wait_for(&mut window, "Box “");
    press(&mut window, Key::R);
    wait_for(&mut window, "× ");
    let state = window.state().state();
    let sample = state.shown_sample().unwrap();
    let prediction = state.shown.prediction.as_ref().unwrap();
    let first = state.view().visible_detections(prediction)[0];
    assert!(state.judgements.box_verdict(sample, first).is_some());
    assert!(sees(&window, "1 of 1 judged: 1 rejected"));
    press(&mut window, Key::Escape);
    wait_for(&mut window, "Image: not judged");
}

#[test]
fn a_verdict_on_a_box_stays_with_the_answer_that_it_is_about_when_the_file_changes() {
    let (images, projects) = (folder_of(1, "coffee.png"), tempfile::tempdir().unwrap());
    let mut window = open_in(projects.path(), Some(images.path()), DETECTOR);
    wait_for(&mut window, "cup ");
    press(&mut window, Key::CloseBracket);
    wait_for(&mut window, "Box “");
    press(&mut window, Key::R);
    wait_for(&mut window, "1 of 1 judged: 1 rejected");
    wait_for(&mut window, "All saved");
    let boxes = |window: &Harness<'static, App>| {
        let shown = window.state().state().shown.prediction.clone();
        shown.map(|prediction| prediction.detections().to_vec())
    };
    let judged = boxes(&window);
    drop(window);
    let file = images.path().join("0-coffee.png");
    std::fs::copy(samples().join("chelsea.png"), file).unwrap();

    let mut window = open_in(projects.path(), Some(images.path()), DETECTOR);
    wait_for(&mut window, "0-coffee.png, older file");
    wait_for(&mut window, "It is kept because it was judged");
    wait_until(&mut window, "the answer that was judged", |window| {
        boxes(window) == judged
    });
    assert!(sees(&window, "1 of 1 judged: 1 rejected"));
    press_with(&mut window, Modifiers::COMMAND, Key::Enter);
    wait_for(&mut window, "keeps the answer that was judged");
    click(&mut window, "Take verdicts back and predict again");
    wait_until(&mut window, "an answer about the new file", |window| {
        boxes(window).is_some() && boxes(window) != judged
    });
    assert!(sees(&window, "0 of 1 judged"));
    assert!(!sees(&window, "older file"));
}

#[test]
fn a_search_for_verdicts_sees_them_at_once() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 3 images");
    press(&mut window, Key::R);
    window
        .state_mut()
        .command(Command::SetQuery("verdict:reject".to_owned()));
    wait_until(&mut window, "the rejected image alone", |window| {
        window.state().state().order().len() == 1
    });
    press_with(&mut window, Modifiers::COMMAND, Key::Z);
    wait_until(&mut window, "no image", |window| {
        window.state().state().order().is_empty()
    });
}

#[test]
fn all_selected_images_are_judged_at_once() {
    let folder = folder_of(5, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "5 images");
    press_with(&mut window, Modifiers::COMMAND, Key::A);
    press(&mut window, Key::A);
    wait_for(&mut window, "5 of 5 judged: 5 accepted");
    click(&mut window, "Judge");
    wait_for(&mut window, "Undo: accept 5 images");
}

#[test]
fn k_leads_from_one_unjudged_image_to_the_next_less_uncertain_one() {
    let mut window = open_to_judge(&samples(), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 predicted");
    wait_until(&mut window, "the task to end", |window| {
        window.state().state().tasks.is_idle()
    });
    let state = window.state().state();
    let answers = &state.run().unwrap().answers;
    let margin = |id| {
        let scores = answers.summary(id).unwrap().scores;
        scores[0] - scores[1]
    };
    let mut by_margin: Vec<_> = state.order().ids().collect();
    by_margin.sort_by(|&one, &other| margin(one).total_cmp(&margin(other)));
    let judged = by_margin[1];
    // The second least certain one has a verdict: it is passed over.
    let go_on = Action::GoOnAfterVerdict;
    window.state_mut().command(go_on.into());
    window.state_mut().command(Command::Show(judged));
    press(&mut window, Key::A);
    window.state_mut().command(Command::Show(by_margin[0]));
    window.step();
    for expected in [by_margin[2], by_margin[3]] {
        press(&mut window, Key::K);
        assert_eq!(window.state().state().shown_sample(), Some(expected));
    }
}

#[test]
fn the_bar_takes_one_line_of_a_wide_window_and_two_of_a_narrow_one() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 2 images");
    let height_between = |window: &Harness<'static, App>| {
        let place = |label: &str| {
            let found = window.query_all_by_label_contains(label).last();
            found.unwrap().rect().center().y
        };
        (place("0 of 2 judged") - place("Image: not judged")).abs()
    };
    window.set_size(egui::vec2(1400.0, 860.0));
    window.run_steps(3);
    assert!(height_between(&window) < 10.0);
    window.set_size(egui::vec2(1024.0, 700.0));
    window.run_steps(3);
    let two_lines = height_between(&window);
    assert!((20.0..45.0).contains(&two_lines), "{two_lines}");
}
