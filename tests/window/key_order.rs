//! Keys that arrive together in one slow frame: each goes where the user sees it go, exactly once.

use egui::{Event, Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::NodeT;
use spotcheck::domain::{SampleId, Verdict};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, Overlay};

use crate::window::{folder_of, open_in, open_with, text_field, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";
const SLOW_FRAME_SECS: f32 = 0.4;

/// A window on this many images in which every frame takes 400 ms.
fn slow_window(images: usize) -> (tempfile::TempDir, Harness<'static, App>) {
    let folder = folder_of(images, "chelsea.png");
    let mut window = open_with(Some(folder.path()), CLASSIFIER, |builder| builder.with_step_dt(SLOW_FRAME_SECS));
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    wait_for(&mut window, &format!("1 of {images} images"));
    wait_until_idle(&mut window);
    (folder, window)
}

fn key(key: Key, modifiers: Modifiers, pressed: bool) -> Event {
    Event::Key { key, physical_key: None, pressed, repeat: false, modifiers }
}

fn pressed(name: Key) -> Vec<Event> {
    vec![key(name, Modifiers::NONE, true), key(name, Modifiers::NONE, false)]
}

fn pressed_with(modifiers: Modifiers, name: Key) -> Vec<Event> {
    vec![key(name, modifiers, true), key(name, modifiers, false)]
}

/// The events of a keyboard: each letter is a key and a text.
fn typed(text: &str) -> Vec<Event> {
    let letter = |letter: char| {
        let name = Key::from_name(&letter.to_uppercase().to_string());
        let press = |is_pressed| name.map(|name| key(name, Modifiers::NONE, is_pressed));
        [press(true), Some(Event::Text(letter.to_string())), press(false)]
    };
    text.chars().flat_map(letter).flatten().collect()
}

/// Sends all of them in one frame, and runs the frames after it.
fn in_one_frame(window: &mut Harness<'static, App>, events: impl IntoIterator<Item = Vec<Event>>) {
    window.input_mut().events.extend(events.into_iter().flatten());
    window.run_steps(8);
}

fn verdicts(window: &Harness<'static, App>) -> Vec<Option<Verdict>> {
    let state = window.state().state();
    let samples = (0..state.samples.len()).map(SampleId::from_index);
    samples.map(|sample| state.judgments.verdict(sample).cloned()).collect()
}

#[track_caller]
fn must_be_unjudged(window: &Harness<'static, App>) {
    assert!(verdicts(window).iter().all(Option::is_none), "{:?}", verdicts(window));
}

#[test]
fn letters_after_an_opening_key_go_to_the_field() {
    let (_folder, mut window) = slow_window(3);
    let control = Modifiers::COMMAND;
    for (opener, text, field) in [
        (pressed_with(control, Key::K), "reload", "Type a command"),
        (pressed(Key::G), "2 era", "Image name"),
        (typed("w"), "ear", "Correct class"),
        (typed("/"), "rear", "Search"),
        (typed("n"), "ears are cut", "Note"),
        (typed("t"), "rainy", "Tag"),
    ] {
        in_one_frame(&mut window, [opener, typed(text)]);
        let node = text_field(&window, field);
        assert_eq!(node.accesskit_node().value().as_deref(), Some(text), "{field}");
        must_be_unjudged(&window);
        in_one_frame(&mut window, [pressed(Key::Escape), pressed(Key::Escape)]);
        window.state_mut().command(Action::ClearSearch);
        wait_until_idle(&mut window);
    }
}

#[test]
fn tag_note_and_verdict_fit_in_one_frame() {
    let (_folder, mut window) = slow_window(3);
    let words = [typed("t"), typed("rainy"), pressed(Key::Enter), typed("n"), typed("a rug"), pressed(Key::Enter)];
    in_one_frame(&mut window, words.into_iter().chain([typed("r"), typed("a")]));
    let judgments = &window.state().state().judgments;
    assert_eq!(judgments.tags(SampleId(0)), ["rainy"]);
    assert_eq!(judgments.note(SampleId(0)), "a rug");
    assert_eq!(verdicts(&window), [Some(Verdict::Reject), Some(Verdict::Accept), None]);
}

#[test]
fn twenty_presses_in_a_frame_judge_twenty_images() {
    let (_folder, mut window) = slow_window(21);
    let letters = (0..20).map(|number| typed(["a", "r", "u"][number % 3]));
    in_one_frame(&mut window, letters);
    let expected = (0..20).map(|number| Some([Verdict::Accept, Verdict::Reject, Verdict::Unsure][number % 3].clone()));
    assert_eq!(verdicts(&window), expected.chain([None]).collect::<Vec<_>>());
    assert_eq!(window.state().state().shown_sample(), Some(SampleId(20)));
}

#[test]
fn step_and_judge_keys_keep_their_order() {
    let (_folder, mut window) = slow_window(6);
    let right = || pressed(Key::ArrowRight);
    in_one_frame(&mut window, [right(), typed("r"), right(), typed("a"), pressed(Key::Home), typed("u")]);
    let expected = [Some(Verdict::Unsure), Some(Verdict::Reject), None, Some(Verdict::Accept), None, None];
    assert_eq!(verdicts(&window), expected);
}

#[test]
fn held_key_gives_one_verdict() {
    let (_folder, mut window) = slow_window(6);
    let held = vec![key(Key::A, Modifiers::NONE, true); 5];
    in_one_frame(&mut window, [held, vec![key(Key::A, Modifiers::NONE, false)]]);
    assert_eq!(verdicts(&window).iter().flatten().count(), 1);
}

#[test]
fn keys_after_a_question_do_not_change_it() {
    let (_folder, mut window) = slow_window(21);
    in_one_frame(&mut window, [pressed_with(Modifiers::COMMAND, Key::A), typed("a"), typed("r")]);
    let state = window.state().state();
    assert_eq!(state.overlay, Overlay::MassVerdict);
    assert_eq!(state.mass_verdict, Some(Verdict::Accept));
    must_be_unjudged(&window);
}

#[test]
fn image_outside_the_search_is_not_judged() {
    let (_folder, mut window) = slow_window(6);
    // If the keys that follow the search judge an image, it is the one found.
    in_one_frame(&mut window, [typed("/"), typed("4-chelsea"), pressed(Key::Enter), typed("a"), typed("a")]);
    wait_until(&mut window, "the first result", |window| window.state().state().shown_sample() == Some(SampleId(4)));
    let others = verdicts(&window).into_iter().enumerate().filter(|(place, _)| *place != 4);
    assert!(others.into_iter().all(|(_, verdict)| verdict.is_none()), "{:?}", verdicts(&window));
    in_one_frame(&mut window, [typed("r")]);
    assert_eq!(verdicts(&window)[4], Some(Verdict::Reject));

    // The shown image stays, and is not judged.
    in_one_frame(&mut window, [typed("/"), pressed_with(Modifiers::COMMAND, Key::A), typed("1-chelsea")]);
    wait_until_idle(&mut window);
    in_one_frame(&mut window, [pressed(Key::Escape), typed("a"), typed("n"), typed("r")]);
    assert_eq!(verdicts(&window).iter().flatten().count(), 1);
    let reason = window.state().state().check_judged_is_found().unwrap_err();
    wait_for(&mut window, reason);
}

#[test]
fn enter_shows_the_first_image_found() {
    let (_folder, mut window) = slow_window(12);
    in_one_frame(&mut window, [typed("/"), typed("1-chelsea"), pressed(Key::Enter)]);
    wait_until(&mut window, "the first result", |window| window.state().state().shown_sample() == Some(SampleId(1)));
    in_one_frame(&mut window, [typed("/"), typed("nothing"), pressed(Key::Enter), typed("a")]);
    wait_until_idle(&mut window);
    assert!(window.state().state().order().is_empty());
    in_one_frame(&mut window, [typed("a")]);
    must_be_unjudged(&window);
}

#[test]
fn arrow_presses_in_the_palette_count_one_by_one() {
    let (_folder, mut window) = slow_window(3);
    let opened = pressed_with(Modifiers::COMMAND, Key::K);
    let down = || pressed(Key::ArrowDown);
    in_one_frame(&mut window, [opened, typed("theme"), down(), down(), pressed(Key::ArrowUp), pressed(Key::Enter)]);
    let theme = window.state().state().settings.theme;
    assert_eq!(theme, spotcheck::window::state::ThemeChoice::Light, "System, Light, Dark");
}

#[test]
fn verdict_waits_for_the_boxes_of_the_next_image() {
    let (images, projects) = (folder_of(60, "coffee.png"), tempfile::tempdir().unwrap());
    let mut window = open_in(projects.path(), Some(images.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "60 predicted");
    wait_for(&mut window, "All saved");
    drop(window);

    let mut window = open_in(projects.path(), Some(images.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "60 predicted");
    wait_until_idle(&mut window);
    let last = SampleId(59);
    let run = window.state().state().run_id().unwrap();
    assert!(window.state().state().runs.prediction(run, last).is_none(), "not read yet");
    in_one_frame(&mut window, [pressed(Key::CloseBracket), typed("a"), pressed(Key::End), typed("r"), typed("a")]);
    wait_until(&mut window, "both verdicts", |window| {
        let state = window.state().state();
        let verdicts = state.shown_boxes().into_iter().map(|index| state.judgments.box_verdict(last, index));
        verdicts.eq([Some(&Verdict::Reject), Some(&Verdict::Accept)])
    });
    must_be_unjudged(&window);
}
