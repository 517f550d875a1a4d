//! Verdicts on undetected objects, on complete images, and on several boxes of the filmstrip.

use egui::accesskit::Role;
use egui::{Key, Modifiers, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::{RunId, SampleId, Verdict, VerdictTarget};
use spotcheck::review::VerdictKind;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, CanvasView, Display, ReviewCommand, SearchCommand};

use crate::evaluating::open_animals;
use crate::window::{click, sees, wait_for, wait_until, wait_until_idle};

fn show(window: &mut Harness<'static, App>, sample: u32) {
    window.state_mut().command(BrowseCommand::Show(SampleId(sample)));
    wait_until(window, "the image", |window| {
        let shown = &window.state().state().shown;
        matches!(shown.display, Display::Ready(_)) && shown.prediction.is_some()
    });
    wait_until_idle(window);
}

fn verdicts(window: &Harness<'static, App>, sample: u32) -> Vec<(VerdictTarget, Verdict)> {
    let judged = window.state().state().judgments.get(SampleId(sample));
    judged.map_or_else(Vec::new, |judged| judged.verdicts().to_vec())
}

fn run(window: &Harness<'static, App>) -> RunId {
    window.state().state().run_id().unwrap()
}

fn press(window: &mut Harness<'static, App>, key: Key) {
    window.key_press(key);
    window.run_steps(3);
    wait_until_idle(window);
}

/// Clicks a point of an image of 100 x 100 pixels.
fn click_image(window: &mut Harness<'static, App>, name: &str, [x, y]: [f32; 2]) {
    let canvas = window.get_by_role_and_label(Role::Image, &format!("Image {name}")).rect();
    let zoom = ((canvas.size() - vec2(32.0, 32.0)) / 100.0).min_elem().min(4.0);
    let at = canvas.center() + (vec2(x, y) - vec2(50.0, 50.0)) * zoom;
    window.hover_at(at);
    window.run_steps(1);
    window.drag_at(at);
    window.run_steps(1);
    window.drop_at(at);
    window.run_steps(3);
}

#[test]
fn label_of_an_undetected_object_is_judged() {
    let (_bench, mut window) = open_animals();
    window.state_mut().command(Action::GoOnAfterVerdict);
    show(&mut window, 2);
    click_image(&mut window, "c.png", [75.0, 25.0]);
    assert_eq!(window.state().state().shown.selected_object, Some(1));
    assert!(sees(&window, "FN “bird”: not judged"));
    let run = run(&window);
    press(&mut window, Key::A);
    let [(target, Verdict::Added(drawn))] = &verdicts(&window, 2)[..] else {
        panic!("{:?}", verdicts(&window, 2));
    };
    assert_eq!(*target, VerdictTarget { run: Some(run), box_index: Some(2) });
    assert_eq!((drawn.class(), drawn.bounds()), ("bird", [60.0, 10.0, 90.0, 40.0].into()));
    assert!(sees(&window, "FN “bird”: label is right"));
    assert!(sees(&window, "✓ bird · FN"), "the list");
    let added = drawn.clone();
    // The other way.
    press(&mut window, Key::R);
    let spurious = [(VerdictTarget { run: None, box_index: Some(0) }, Verdict::Spurious(added))];
    assert_eq!(verdicts(&window, 2), spurious);
    assert!(sees(&window, "× bird · FN"));
    press(&mut window, Key::U);
    assert_eq!(verdicts(&window, 2), spurious, "a label is right or wrong");
    window.state_mut().command(SearchCommand::SetQuery("mislabeled".to_owned()));
    wait_until_idle(&mut window);
    assert_eq!(window.state().state().order().ids().collect::<Vec<_>>(), [SampleId(2)]);
    window.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    window.run_steps(3);
    assert!(matches!(verdicts(&window, 2)[..], [(_, Verdict::Added(_))]), "{:?}", verdicts(&window, 2));
    window.state_mut().command(Action::ClearSearch);
    wait_until_idle(&mut window);
    press(&mut window, Key::Backspace);
    assert_eq!(verdicts(&window, 2), []);
    press(&mut window, Key::Escape);
    assert_eq!(window.state().state().shown.selected_object, None);
}

#[test]
fn object_that_was_drawn_is_not_added_again() {
    let (_bench, mut window) = open_animals();
    window.state_mut().command(Action::GoOnAfterVerdict);
    show(&mut window, 2);
    window.state_mut().command(ReviewCommand::DrawBox([61.0, 11.0, 90.0, 40.0].into()));
    window.state_mut().command(ReviewCommand::ChooseClass("bird".to_owned()));
    wait_until_idle(&mut window);
    click(&mut window, "bird · FN");
    press(&mut window, Key::A);
    wait_for(&mut window, "already added a box");
    assert_eq!(verdicts(&window, 2).len(), 1);
}

#[test]
fn label_with_another_class_is_wrong_and_replaced() {
    let (_bench, mut window) = open_animals();
    show(&mut window, 0);
    click(&mut window, "dog · FN");
    assert_eq!(window.state().state().shown.selected_object, Some(1));
    press(&mut window, Key::W);
    wait_for(&mut window, "What is the correct class?");
    window.get_by_label("Correct class").type_text("wolf");
    window.run_steps(2);
    press(&mut window, Key::Enter);
    let given = verdicts(&window, 0);
    let [(_, Verdict::Spurious(label)), (_, Verdict::Added(drawn))] = &given[..] else {
        panic!("{given:?}");
    };
    assert_eq!((label.class(), drawn.class()), ("dog", "wolf"));
    assert_eq!(label.bounds(), drawn.bounds());
    assert_eq!(window.state().state().shown.selected_box, Some(0), "the first box without a verdict");
    press(&mut window, Key::CloseBracket);
    press(&mut window, Key::CloseBracket);
    assert_eq!(window.state().state().shown.selected_object, Some(1), "objects follow the boxes");
}

#[test]
fn undetected_objects_are_judged_in_the_filmstrip() {
    let (_bench, mut window) = open_animals();
    window.state_mut().command(SearchCommand::SetQuery("fn".to_owned()));
    window.state_mut().command(Action::Filmstrip);
    window.state_mut().command(ReviewCommand::SetFilmClass(None));
    wait_until(&mut window, "two objects", |window| {
        window.state().state().filmstrip.as_ref().is_some_and(|strip| strip.frames().len() == 2)
    });
    click(&mut window, "FN dog, a.png");
    wait_until(&mut window, "the dog", |window| window.state().state().shown.selected_object == Some(1));
    press(&mut window, Key::A);
    assert!(matches!(verdicts(&window, 0)[..], [(_, Verdict::Added(_))]), "{:?}", verdicts(&window, 0));
    wait_until(&mut window, "the bird", |window| {
        let state = window.state().state();
        state.shown_sample() == Some(SampleId(2)) && state.shown.selected_object == Some(1)
    });
    press(&mut window, Key::R);
    assert!(matches!(verdicts(&window, 2)[..], [(_, Verdict::Spurious(_))]), "{:?}", verdicts(&window, 2));
    wait_for(&mut window, "Everything in the filmstrip has a verdict");
}

#[test]
fn complete_image_counts_as_judged() {
    let (_bench, mut window) = open_animals();
    show(&mut window, 0);
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    press(&mut window, Key::R);
    press(&mut window, Key::M);
    let state = window.state().state();
    assert_eq!(state.verdict_of(SampleId(0)), Some(VerdictKind::Reject), "its worst box");
    assert_eq!(state.shown_sample(), Some(SampleId(1)), "the next image");
    press(&mut window, Key::M);
    wait_for(&mut window, "2 of 3 images judged: 1 complete, 1 rejected");
    assert_eq!(window.state().state().verdict_of(SampleId(1)), Some(VerdictKind::Complete));
    for (query, expected) in [("complete", &[0, 1][..]), ("!judged", &[2]), ("verdict:complete", &[0, 1])] {
        window.state_mut().command(SearchCommand::SetQuery(query.to_owned()));
        wait_until_idle(&mut window);
        let found: Vec<u32> = window.state().state().order().ids().map(|id| id.0).collect();
        assert_eq!(found, expected, "{query}");
    }
    window.state_mut().command(Action::ClearSearch);
    show(&mut window, 1);
    press(&mut window, Key::M);
    assert_eq!(window.state().state().verdict_of(SampleId(1)), None, "pressed again");
    window.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    window.run_steps(3);
    assert_eq!(window.state().state().verdict_of(SampleId(1)), Some(VerdictKind::Complete));
}

#[test]
fn image_goes_back_to_the_labeler() {
    let (_bench, mut window) = open_animals();
    show(&mut window, 0);
    press(&mut window, Key::A);
    show(&mut window, 0);
    press(&mut window, Key::L);
    let state = window.state().state();
    assert_eq!(state.verdict_of(SampleId(0)), Some(VerdictKind::Returned), "whatever its verdict was");
    assert_eq!(state.shown_sample(), Some(SampleId(1)), "the next image");
    press(&mut window, Key::M);
    wait_for(&mut window, "2 of 3 images judged: 1 complete, 1 back to labeler");
    for (query, expected) in [("complete", &[1][..]), ("!verdict", &[2]), ("verdict:returned", &[0])] {
        window.state_mut().command(SearchCommand::SetQuery(query.to_owned()));
        wait_until_idle(&mut window);
        let found: Vec<u32> = window.state().state().order().ids().map(|id| id.0).collect();
        assert_eq!(found, expected, "{query}");
    }
    window.state_mut().command(Action::ClearSearch);
    show(&mut window, 0);
    press(&mut window, Key::L);
    assert_eq!(window.state().state().verdict_of(SampleId(0)), None, "pressed again");
}

#[test]
fn several_boxes_of_the_filmstrip_get_one_class() {
    let (_bench, mut window) = open_animals();
    window.state_mut().command(ReviewCommand::OpenFilmstrip(0));
    wait_until(&mut window, "three cats", |window| {
        window.state().state().filmstrip.as_ref().is_some_and(|strip| strip.frames().len() == 3)
    });
    let frames = window.state().state().filmstrip.as_ref().unwrap().frames().to_vec();
    window.state_mut().command(ReviewCommand::ShowBox(frames[0].sample, frames[0].shows));
    wait_until_idle(&mut window);
    let select = |window: &mut Harness<'static, App>, number: usize, extends| {
        let (sample, shows) = (frames[number].sample, frames[number].shows);
        window.state_mut().command(ReviewCommand::SelectCrop { sample, shows, extends });
        window.run_steps(2);
    };
    select(&mut window, 2, true);
    select(&mut window, 1, false);
    assert!(sees(&window, "2 boxes"));
    select(&mut window, 1, false);
    assert!(sees(&window, "3 boxes"));
    press(&mut window, Key::W);
    wait_for(&mut window, "What is the correct class of 3 boxes?");
    window.get_by_label("Correct class").type_text("lynx");
    window.run_steps(2);
    press(&mut window, Key::Enter);
    let judged = |window: &Harness<'static, App>| {
        let state = window.state().state();
        let kinds = frames.iter().map(|frame| state.verdict_on(frame.sample, frame.shows));
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(judged(&window), [Some(VerdictKind::WrongClass); 3]);
    press(&mut window, Key::A);
    assert_eq!(judged(&window), [Some(VerdictKind::Accept); 3], "still selected");
    for _ in 0..2 {
        window.key_press_modifiers(Modifiers::COMMAND, Key::Z);
        window.run_steps(3);
    }
    assert_eq!(judged(&window), [None; 3]);
    press(&mut window, Key::Escape);
    assert!(window.state().state().filmstrip.as_ref().unwrap().selected.is_empty());
}

#[test]
fn tiny_undetected_object_can_be_clicked() {
    let (_bench, mut window) = open_animals();
    show(&mut window, 2);
    // From afar, the object is smaller than its label.
    window.state_mut().command(ReviewCommand::SetCanvas(CanvasView::Free { zoom: 0.1, center: [50.0, 50.0] }));
    window.run_steps(3);
    let canvas = window.get_by_role_and_label(Role::Image, "Image c.png").rect();
    let at = canvas.center() + (vec2(75.0, 25.0) - vec2(50.0, 50.0)) * 0.1 + vec2(4.0, -4.0);
    window.hover_at(at);
    window.run_steps(1);
    window.drag_at(at);
    window.run_steps(1);
    window.drop_at(at);
    window.run_steps(3);
    assert_eq!(window.state().state().shown.selected_object, Some(1));
}
