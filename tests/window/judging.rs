use std::path::Path;

use egui::accesskit::Role;
use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::Verdict;
use spotcheck::project::export::options::{ExportFormat, ExportOptions};
use spotcheck::project::{OpenMode, OpenRequest, Project};
use spotcheck::review::VerdictKind;
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, Command, ExportCommand, ExportScope, Overlay, ReviewCommand, SearchCommand, ViewChange,
};
use strum::VariantArray;

use crate::window::{
    click, folder_of, open, open_in, open_new, samples, sees, wait_for, wait_for_notice, wait_for_overlay, wait_until,
    wait_until_idle,
};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

/// Opens a source and waits until its project is writable.
fn open_to_judge(source: &Path, model: &str) -> Harness<'static, App> {
    let mut window = open(Some(source), model);
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    window
}

/// The number of accepted, unsure, wrong and rejected images.
fn verdicts(window: &Harness<'static, App>) -> [usize; 4] {
    let state = window.state().state();
    let kinds = [VerdictKind::Accept, VerdictKind::Unsure, VerdictKind::WrongClass, VerdictKind::Reject];
    let verdict = |kind| state.samples.ids().filter(|&id| state.verdict_of(id) == Some(kind)).count();
    kinds.map(verdict)
}

/// Waits until these images are judged, and the bar shows it.
#[track_caller]
fn wait_for_verdicts(window: &mut Harness<'static, App>, expected: [usize; 4]) {
    let shown = ["accepted", "unsure", "wrong class", "rejected"];
    let judged: usize = expected.iter().sum();
    wait_until(window, "the verdicts", |window| {
        let parts = expected.iter().zip(shown).filter(|(count, _)| **count > 0);
        let mut parts = parts.map(|(count, verdict)| format!("{count} {verdict}"));
        verdicts(window) == expected
            && sees(window, &format!("{judged} of {} image", window.state().state().samples.len()))
            && parts.all(|part| sees(window, &part))
    });
}

/// Waits for the question about the correct class, and answers it.
fn type_class(window: &mut Harness<'static, App>, class: &str) {
    press(window, Key::W);
    wait_for_overlay(window, Overlay::WrongClass);
    window.get_by_label("Correct class").type_text(class);
}

fn press(window: &mut Harness<'static, App>, key: Key) {
    window.key_press(key);
    window.run_steps(3);
}

fn press_with(window: &mut Harness<'static, App>, modifiers: Modifiers, key: Key) {
    window.key_press_modifiers(modifiers, key);
    window.run_steps(3);
}

/// The reviewer of the verdict on each judged image, as saved.
fn saved_reviewers(window: &Harness<'static, App>) -> Vec<String> {
    let path = window.state().state().project.path.clone().unwrap();
    let request = OpenRequest { path: &path, root: None, mode: OpenMode::Read, program: "a test" };
    let project = Project::open(&request, |_| ()).unwrap().project;
    // The window is still writing.
    let runs = project.runs().unwrap();
    runs.first().map_or_else(Vec::new, |run| project.reviewers(run.id).unwrap().into_values().collect())
}

#[test]
fn reviewer_is_asked_for_once_and_named_on_all_verdicts() {
    let folder = folder_of(4, "chelsea.png");
    let mut window = open_new(folder.path(), CLASSIFIER);
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    wait_for(&mut window, "1 of 4 images");
    assert!(!sees(&window, "Your name"));
    press(&mut window, Key::A);
    wait_for(&mut window, "2 of 4 images");
    wait_for(&mut window, "Your name");
    // The question does not wait: verdicts go on.
    press(&mut window, Key::R);
    wait_for_verdicts(&mut window, [1, 0, 0, 1]);
    window.get_by_label("Your name").focus();
    window.run_steps(2);
    window.get_by_label("Your name").type_text("Ada");
    click(&mut window, "Use this name");
    wait_until(&mut window, "the end of the question", |window| !sees(window, "Your name"));
    press(&mut window, Key::U);
    wait_for_verdicts(&mut window, [1, 1, 0, 1]);
    wait_until(&mut window, "the saved names", |window| saved_reviewers(window) == ["Ada"; 3]);
    window.state_mut().command(ReviewCommand::SetReviewer(String::new()));
    press(&mut window, Key::A);
    wait_for_verdicts(&mut window, [2, 1, 0, 1]);
    assert!(!sees(&window, "Your name"));
}

#[test]
fn letters_judge_and_advance() {
    let folder = folder_of(4, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 4 images");
    wait_for_verdicts(&mut window, [0; 4]);
    press(&mut window, Key::A);
    wait_for(&mut window, "2 of 4 images");
    wait_for_verdicts(&mut window, [1, 0, 0, 0]);
    press(&mut window, Key::R);
    press(&mut window, Key::U);
    wait_for_verdicts(&mut window, [1, 1, 0, 1]);
    // The cell shows the verdict also in words, not only by a color.
    assert!(sees(&window, "1-chelsea.png") && sees(&window, ", rejected"));
    press_with(&mut window, Modifiers::COMMAND, Key::Z);
    wait_for_notice(&mut window, "2-chelsea.png");
    wait_for_verdicts(&mut window, [1, 0, 0, 1]);
    press_with(&mut window, Modifiers::COMMAND, Key::Y);
    wait_for_verdicts(&mut window, [1, 1, 0, 1]);
    press(&mut window, Key::J);
    wait_for(&mut window, "4 of 4 images");
    assert!(sees(&window, "Image: not judged"));
}

#[test]
fn judging_buttons_and_keys_do_the_same() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 2 images");
    click(&mut window, "Judge");
    click(&mut window, "Advance after");
    click(&mut window, "Reject");
    wait_for(&mut window, "Image: rejected");
    click(&mut window, "Clear verdict");
    wait_for(&mut window, "Image: not judged");
    window.get_by_role_and_label(Role::Button, "Undo").click();
    wait_for(&mut window, "Image: rejected");
    wait_for_verdicts(&mut window, [0, 0, 0, 1]);
    wait_until(&mut window, "the project file", |window| window.state().state().project.unsaved() == 0);
}

#[test]
fn correct_class_is_typed_and_completed() {
    let mut window = open_to_judge(&samples().join("chelsea.png"), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    type_class(&mut window, "egyptian");
    wait_for(&mut window, "uses “Egyptian cat”");
    press(&mut window, Key::Enter);
    wait_for(&mut window, "is “Egyptian cat”");
    // Letters in a text field are text.
    type_class(&mut window, "my own word");
    wait_for(&mut window, "a new class");
    press(&mut window, Key::Enter);
    wait_for(&mut window, "“my own word”");
    wait_for_verdicts(&mut window, [0, 0, 1, 0]);
}

#[test]
fn note_and_tags_are_entered_by_keyboard() {
    const REMOVE_BLURRY: &str = "the tag blurry";
    let folder = folder_of(2, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 2 images");
    press(&mut window, Key::N);
    window.get_by_role_and_label(Role::TextInput, "Note").type_text("ears cut off");
    press(&mut window, Key::A);
    assert_eq!(verdicts(&window), [0; 4], "letters are text");
    press(&mut window, Key::Enter);
    press(&mut window, Key::T);
    window.get_by_role_and_label(Role::TextInput, "Tag").type_text("blurry");
    press(&mut window, Key::Enter);
    wait_for(&mut window, REMOVE_BLURRY);
    press(&mut window, Key::Escape);
    press(&mut window, Key::ArrowRight);
    wait_for(&mut window, "2 of 2 images");
    assert!(!sees(&window, REMOVE_BLURRY));
    press(&mut window, Key::ArrowLeft);
    wait_for(&mut window, REMOVE_BLURRY);
    let judgments = &window.state().state().judgments;
    let sample = window.state().state().shown_sample().unwrap();
    assert_eq!(judgments.note(sample), "ears cut off");
    click(&mut window, REMOVE_BLURRY);
    wait_until(&mut window, "no tag", |window| !sees(window, REMOVE_BLURRY));
}

#[test]
fn single_box_is_judged() {
    let mut window = open_to_judge(&samples().join("coffee.png"), DETECTOR);
    wait_for(&mut window, "cup ");
    press(&mut window, Key::CloseBracket);
    wait_for(&mut window, "Box “");
    press(&mut window, Key::R);
    wait_for(&mut window, "× ");
    let state = window.state().state();
    let sample = state.shown_sample().unwrap();
    let boxes = state.shown_boxes();
    assert!(boxes.len() > 1);
    assert!(state.judgments.box_verdict(sample, boxes[0]).is_some());
    press(&mut window, Key::Escape);
    wait_for(&mut window, &format!("1 of {} boxes", boxes.len()));
}

#[test]
fn last_box_judges_the_image_and_advances() {
    let folder = folder_of(2, "coffee.png");
    let mut window = open_to_judge(folder.path(), DETECTOR);
    wait_for(&mut window, "cup ");
    let boxes = window.state().state().shown_boxes();
    assert!(boxes.len() > 1);
    let badge = "boxes, rejected";
    let counts = |window: &Harness<'static, App>| {
        let counts = window.state().state().arranging.counts().unwrap();
        (counts.unjudged, counts.verdicts)
    };
    press(&mut window, Key::CloseBracket);
    for number in 1..boxes.len() {
        press(&mut window, if number == 1 { Key::R } else { Key::A });
        window.state_mut().command(ReviewCommand::SelectBox(None));
        wait_for(&mut window, &format!("{number} of {} boxes", boxes.len()));
        wait_until_idle(&mut window);
        assert_eq!(verdicts(&window), [0; 4]);
        assert_eq!(counts(&window), (2, [0; VerdictKind::VARIANTS.len()]));
        assert!(!sees(&window, badge));
        let next = Command::Review(ReviewCommand::SelectBox(Some(boxes[number])));
        window.state_mut().command(next);
        window.step();
    }
    press(&mut window, Key::A);
    wait_for(&mut window, "2 of 2 images");
    wait_for_verdicts(&mut window, [0, 0, 0, 1]);
    assert!(sees(&window, badge));
    // One of its boxes is accepted, so both chips find the image.
    assert!(sees(&window, "Unjudged 1") && sees(&window, "Accepted 1"));
    let (unjudged, verdicts) = counts(&window);
    assert_eq!(unjudged, 1);
    assert_eq!(verdicts[VerdictKind::Reject as usize], 1);
    let counted: usize = verdicts.iter().sum();
    assert_eq!(counted, 1);
}

/// The boxes of the exported dataset.
fn annotations(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let dataset: serde_json::Value = serde_json::from_str(&text).unwrap();
    dataset["annotations"].as_array().unwrap().len()
}

#[test]
fn accepted_box_is_visible_at_any_minimum_score() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open_to_judge(&samples().join("coffee.png"), DETECTOR);
    wait_for(&mut window, "cup ");
    let above = window.state().state().shown_boxes();
    let threshold = ViewChange::MinScore(0.2);
    window.state_mut().command(ReviewCommand::ChangeView(threshold));
    window.step();
    let state = window.state().state();
    let last = *state.shown_boxes().last().unwrap();
    let (sample, score) =
        (state.shown_sample().unwrap(), state.shown.prediction.as_ref().unwrap().detections()[last].score);
    assert!(score < 0.5);
    window.state_mut().command(ReviewCommand::SelectBox(Some(last)));
    press(&mut window, Key::A);
    window.state_mut().command(ReviewCommand::SelectBox(Some(last)));
    click(&mut window, "Reset filters");
    wait_until_idle(&mut window);
    let state = window.state().state();
    assert_eq!(state.view().min_score, 0.5);
    let mut expected = above.clone();
    expected.push(last);
    assert_eq!(state.shown_boxes(), expected);
    assert_eq!(state.shown.selected_box, Some(last));
    let statistics = state.arranging.statistics().unwrap();
    assert_eq!(statistics.boxes_above, expected.len());
    let below = format!("coffee.png, {} boxes", expected.len());
    assert!(sees(&window, &below), "{below}");

    let path = folder.path().join("accepted.json");
    let options = ExportOptions::for_format(ExportFormat::Coco);
    let state = window.state_mut();
    state.command(ExportCommand::Set(options, ExportScope::All));
    state.command(ExportCommand::Start { path: path.clone(), replaces: false });
    wait_until(&mut window, "the export", |window| window.state().state().exported.is_some());
    assert_eq!(annotations(&path), expected.len());
    press(&mut window, Key::R);
    let verdict = |window: &Harness<'static, App>| {
        let judgments = &window.state().state().judgments;
        judgments.box_verdict(sample, last).cloned()
    };
    assert_eq!(verdict(&window), Some(Verdict::Accept), "the dialog has the keyboard");
    window.state_mut().command(ExportCommand::Dismiss);
    window.step();

    // Without its verdict it follows the threshold again, and no key judges an invisible box.
    press(&mut window, Key::C);
    assert_eq!(verdict(&window), None);
    let state = window.state().state();
    assert_eq!(state.shown_boxes(), above);
    assert_eq!(state.shown.selected_box, None);
}

/// Whether typed text goes into a text field.
fn is_typing(window: &Harness<'static, App>) -> bool {
    window.ctx.text_edit_focused()
}

#[test]
fn enter_leaves_fields_and_pending_tags_are_dropped() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 3 images");
    press(&mut window, Key::T);
    assert!(is_typing(&window));
    window.event(egui::Event::Text("night".to_owned()));
    press(&mut window, Key::Enter);
    wait_for(&mut window, "the tag night");
    assert!(!is_typing(&window));
    press(&mut window, Key::A);
    wait_for_verdicts(&mut window, [1, 0, 0, 0]);

    press(&mut window, Key::T);
    window.event(egui::Event::Text("ni".to_owned()));
    window.run_steps(2);
    press(&mut window, Key::Escape);
    assert!(!is_typing(&window));
    let field = window.get_by_role_and_label(Role::TextInput, "Tag");
    assert_eq!(field.value().as_deref(), Some(""));

    // A suggestion is clicked with the mouse.
    press(&mut window, Key::T);
    window.event(egui::Event::Text("ni".to_owned()));
    window.run_steps(2);
    window.get_by_label("Tag with night").click();
    window.run_steps(3);
    let state = window.state().state();
    let shown = state.shown_sample().unwrap();
    assert_eq!(state.judgments.tags(shown), ["night"]);
    assert!(!is_typing(&window));
}

#[test]
fn escape_only_leaves_the_text_field() {
    let mut window = open_to_judge(&samples().join("coffee.png"), DETECTOR);
    wait_for(&mut window, "cup ");
    press(&mut window, Key::CloseBracket);
    let selected = window.state().state().shown.selected_box;
    assert!(selected.is_some());
    press(&mut window, Key::N);
    assert!(is_typing(&window));
    press(&mut window, Key::Escape);
    assert!(!is_typing(&window));
    assert_eq!(window.state().state().shown.selected_box, selected);
    press(&mut window, Key::Escape);
    assert_eq!(window.state().state().shown.selected_box, None);
}

#[test]
fn judging_many_images_asks_and_is_undone() {
    let folder = folder_of(21, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "21 images");
    let judged = |window: &Harness<'static, App>| {
        let state = window.state().state();
        let ids = state.samples.ids();
        ids.filter(|id| state.verdict_of(*id).is_some()).count()
    };
    let selected = |window: &Harness<'static, App>| window.state().state().selection.selected().len();
    press_with(&mut window, Modifiers::COMMAND, Key::A);
    assert_eq!(selected(&window), 21);
    press(&mut window, Key::R);
    let question = "Reject 21 images?";
    assert!(sees(&window, question));
    press(&mut window, Key::Escape);
    assert!(!sees(&window, question));
    assert_eq!((judged(&window), selected(&window)), (0, 21));
    press(&mut window, Key::Escape);
    assert_eq!(selected(&window), 1, "Escape steps back");

    press_with(&mut window, Modifiers::COMMAND, Key::A);
    press(&mut window, Key::R);
    press(&mut window, Key::Enter);
    assert_eq!(judged(&window), 21);
    wait_for_notice(&mut window, "21 images");
    click(&mut window, "Undo: ");
    assert_eq!(judged(&window), 0);
    wait_for_notice(&mut window, "Undone: ");

    // Judging up to twenty needs no confirmation.
    let last = window.state().state().samples.ids().last().unwrap();
    window.state_mut().command(BrowseCommand::ToggleSelected(last));
    window.step();
    press(&mut window, Key::A);
    assert_eq!(judged(&window), 20);
}

#[test]
fn undo_returns_to_its_image_in_a_filter() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 3 images");
    let first = window.state().state().shown_sample();
    let unjudged = Command::Search(SearchCommand::SetQuery("!verdict".to_owned()));
    window.state_mut().command(unjudged);
    wait_until_idle(&mut window);
    press(&mut window, Key::A);
    wait_until(&mut window, "two images", |window| window.state().state().order().len() == 2);
    assert_ne!(window.state().state().shown_sample(), first);
    press_with(&mut window, Modifiers::COMMAND, Key::Z);
    assert_eq!(window.state().state().shown_sample(), first);
    wait_for(&mut window, "1 of 3 results");
}

#[test]
fn verdict_keeps_the_old_prediction_of_a_changed_file() {
    let (images, projects) = (folder_of(1, "coffee.png"), tempfile::tempdir().unwrap());
    let mut window = open_in(projects.path(), Some(images.path()), DETECTOR);
    wait_for(&mut window, "cup ");
    press(&mut window, Key::CloseBracket);
    wait_for(&mut window, "Box “");
    press(&mut window, Key::R);
    press(&mut window, Key::Escape);
    wait_for(&mut window, "1 of 2 boxes");
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
    let cell = "0-coffee.png, outdated";
    wait_for(&mut window, cell);
    wait_for(&mut window, "prediction is kept");
    wait_until(&mut window, "the old prediction", |window| boxes(window) == judged);
    let state = window.state().state();
    assert!(state.keeps_prediction(state.run().unwrap().id(), state.shown_sample().unwrap()));
    assert!(sees(&window, "1 of 2 boxes"));
    press_with(&mut window, Modifiers::COMMAND, Key::Enter);
    wait_for_notice(&mut window, "kept");
    assert_eq!(boxes(&window), judged);
    click(&mut window, "Clear verdicts and");
    wait_until(&mut window, "a new prediction", |window| boxes(window).is_some() && boxes(window) != judged);
    assert!(sees(&window, "Image: not judged"));
    assert!(!sees(&window, cell));
}

#[test]
fn verdict_search_updates_immediately() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 3 images");
    press(&mut window, Key::R);
    window.state_mut().command(SearchCommand::SetQuery("verdict:reject".to_owned()));
    wait_until(&mut window, "the rejected image alone", |window| window.state().state().order().len() == 1);
    press_with(&mut window, Modifiers::COMMAND, Key::Z);
    wait_until(&mut window, "no image", |window| window.state().state().order().is_empty());
}

#[test]
fn all_selected_images_are_judged() {
    let folder = folder_of(5, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "5 images");
    press_with(&mut window, Modifiers::COMMAND, Key::A);
    press(&mut window, Key::A);
    wait_for_verdicts(&mut window, [5, 0, 0, 0]);
    click(&mut window, "Judge");
    wait_for(&mut window, "accept 5 images");
}

#[test]
fn k_goes_to_the_next_uncertain_image() {
    let mut window = open_to_judge(&samples(), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 predicted");
    wait_until(&mut window, "the task to end", |window| window.state().state().tasks.is_idle());
    let state = window.state().state();
    let predictions = &state.run().unwrap().predictions;
    let margin = |id| {
        let scores = predictions.summary(id).unwrap().scores;
        scores[0] - scores[1]
    };
    let mut by_margin: Vec<_> = state.order().ids().collect();
    by_margin.sort_by(|&one, &other| margin(one).total_cmp(&margin(other)));
    let judged = by_margin[1];
    // The second least certain one has a verdict and is skipped.
    let go_on = Action::GoOnAfterVerdict;
    window.state_mut().command(go_on);
    window.state_mut().command(BrowseCommand::Show(judged));
    press(&mut window, Key::A);
    window.state_mut().command(BrowseCommand::Show(by_margin[0]));
    window.step();
    for expected in [by_margin[2], by_margin[3]] {
        press(&mut window, Key::K);
        assert_eq!(window.state().state().shown_sample(), Some(expected));
    }
}

#[test]
fn judging_bar_wraps_in_a_narrow_window() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open_to_judge(folder.path(), CLASSIFIER);
    wait_for(&mut window, "1 of 2 images");
    let height_between = |window: &Harness<'static, App>| {
        let place = |label: &str| {
            let found = window.query_all_by_label_contains(label).last();
            found.unwrap().rect().center().y
        };
        (place("0 of 2 images") - place("Image: not judged")).abs()
    };
    window.set_size(egui::vec2(1400.0, 860.0));
    window.run_steps(3);
    assert!(height_between(&window) < 10.0);
    window.set_size(egui::vec2(1024.0, 700.0));
    window.run_steps(3);
    let two_lines = height_between(&window);
    assert!((20.0..45.0).contains(&two_lines), "{two_lines}");
}

#[test]
fn judged_run_is_offered_for_another_model() {
    let (images, projects) = (folder_of(2, "chelsea.png"), tempfile::tempdir().unwrap());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    wait_until_idle(&mut window);
    press(&mut window, Key::A);
    wait_for_verdicts(&mut window, [1, 0, 0, 0]);
    wait_for(&mut window, "All saved");
    drop(window);
    let mut window = open_in(projects.path(), Some(images.path()), DETECTOR);
    wait_for_notice(&mut window, "EfficientNet-Lite0");
    let model = |window: &Harness<'static, App>| window.state().state().run().unwrap().info.card.id.clone();
    assert_eq!(model(&window), DETECTOR);
    assert_eq!(verdicts(&window), [0; 4]);
    wait_for(&mut window, "Show that run");
    // After the notice has disappeared, the judging bar still leads there.
    window.state_mut().command(Command::DismissNotice);
    window.run_steps(2);
    assert!(!sees(&window, "Show that run"));
    click(&mut window, "the run EfficientNet-Lite0");
    wait_for_verdicts(&mut window, [1, 0, 0, 0]);
    assert_eq!(model(&window), CLASSIFIER);
}

#[test]
fn bar_and_thumbnail_show_the_same_verdict() {
    let mut window = open_to_judge(&samples().join("coffee.png"), DETECTOR);
    wait_for(&mut window, "cup ");
    // A wrong class applies to a box, never to a whole image with boxes.
    let wrong = Action::WrongClass.check(window.state().state());
    assert!(wrong.is_err());
    press(&mut window, Key::A);
    wait_for(&mut window, "Image: accepted");
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.run_steps(3);
    assert_eq!(Action::WrongClass.check(window.state().state()), Ok(()));
    press(&mut window, Key::R);
    window.state_mut().command(ReviewCommand::SelectBox(None));
    wait_for(&mut window, "Image: accepted, but");
    let state = window.state().state();
    assert_eq!(state.verdict_of(state.shown_sample().unwrap()), Some(VerdictKind::Reject));
}
