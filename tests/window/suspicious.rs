//! Suspicious labels: in the filmstrip by their gain, fixed with a key, and measured again.

use egui::{Key, Modifiers};
use egui_kittest::Harness;
use serde_json::json;
use spotcheck::domain::{SampleId, Verdict};
use spotcheck::review::{FilmBox, SuspectKind, SuspectOrder, VerdictKind};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, ReviewCommand, SearchCommand};

use crate::evaluating::{Bench, open_animals, set_min_score, wait_for_counts};
use crate::window::{click, sees, wait_for, wait_until, wait_until_idle};

const CLOSE: f64 = 1e-6;

fn press(window: &mut Harness<'static, App>, key: Key) {
    window.key_press(key);
    window.run_steps(3);
    wait_until_idle(window);
}

/// Fixes the selected label with its key.
fn fix(window: &mut Harness<'static, App>) {
    wait_until(window, "a label to fix", |window| Action::FixLabel.check(window.state().state()).is_ok());
    press(window, Key::X);
}

/// Searches for suspicious labels, and shows them in the filmstrip.
fn search(window: &mut Harness<'static, App>, count: usize) {
    window.state_mut().command(SearchCommand::SetQuery("suspicious".to_owned()));
    window.state_mut().command(Action::Filmstrip);
    window.state_mut().command(ReviewCommand::SetFilmClass(None));
    wait_until(window, "the suspicious labels", |window| {
        window.state().state().filmstrip.as_ref().is_some_and(|strip| strip.frames().len() == count)
    });
}

fn frames(window: &Harness<'static, App>) -> Vec<(u32, FilmBox, SuspectKind)> {
    let strip = window.state().state().filmstrip.as_ref().unwrap();
    strip.frames().iter().map(|frame| (frame.sample.0, frame.shows, frame.suspect.unwrap().kind)).collect()
}

fn verdicts(window: &Harness<'static, App>, sample: u32) -> Vec<Verdict> {
    let judged = window.state().state().judgments.get(SampleId(sample));
    judged.map_or_else(Vec::new, |judged| judged.verdicts().iter().map(|(_, verdict)| verdict.clone()).collect())
}

/// AP or top-1 with the ground truth as it is.
fn headline(window: &Harness<'static, App>) -> f64 {
    window.state().state().evaluated().unwrap().evaluated.metrics.headline().unwrap()
}

/// Waits until AP or top-1 of the corrected labels is this number.
fn wait_for_corrected(window: &mut Harness<'static, App>, expected: f64) {
    wait_until(window, &format!("corrected labels with {expected}"), |window| {
        let corrected = &window.state().state().evaluation().unwrap().corrected;
        let number = corrected.last.and_then(|last| last.number);
        !corrected.status.is_loading() && number.is_some_and(|number| (number - expected).abs() < CLOSE)
    });
}

fn gain(window: &Harness<'static, App>, place: usize) -> f64 {
    let strip = window.state().state().filmstrip.as_ref().unwrap();
    strip.frames()[place].suspect.unwrap().gain.into()
}

#[test]
fn fixed_labels_gain_what_they_promise() {
    let (_bench, mut window) = open_animals();
    let before = headline(&window);
    // Cats: 1, dogs: 51 of 101 recalls with a precision of one half, birds: 0.
    assert!((before - (1.0 + 0.5 * 51.0 / 101.0) / 3.0).abs() < CLOSE, "{before}");
    click(&mut window, "3 suspicious");
    wait_until_idle(&mut window);
    assert_eq!(window.state().state().arranging.text(), "suspicious");
    let found = frames(&window);
    let expected = [
        (2, FilmBox::FalseNegative(1), SuspectKind::Spurious),
        (1, FilmBox::Predicted(2), SuspectKind::Missing),
        (0, FilmBox::FalseNegative(1), SuspectKind::Class),
    ];
    assert_eq!(found, expected);
    let gains: Vec<f64> = (0..3).map(|place| gain(&window, place)).collect();
    click(&mut window, "AP +0.2087 spurious bird, c.png");
    wait_until(&mut window, "the bird", |window| window.state().state().shown.selected_object == Some(1));
    assert!(sees(&window, "spurious bird · AP +0.2087"));
    fix(&mut window);
    assert!(matches!(&verdicts(&window, 2)[..], [Verdict::Spurious(bird)] if bird.class() == "bird"));
    wait_for_corrected(&mut window, before + gains[0]);
    // The next one is selected.
    wait_until(&mut window, "the dog", |window| {
        let state = window.state().state();
        state.shown_sample() == Some(SampleId(1)) && state.shown.selected_box == Some(2)
    });
    fix(&mut window);
    assert_eq!(verdicts(&window, 1), [Verdict::Accept]);
    wait_until(&mut window, "the mislabeled cat", |window| {
        let state = window.state().state();
        state.shown_sample() == Some(SampleId(0)) && state.shown.selected_object == Some(1)
    });
    fix(&mut window);
    let [Verdict::Spurious(dog), Verdict::Added(cat)] = &verdicts(&window, 0)[..] else {
        panic!("{:?}", verdicts(&window, 0));
    };
    assert_eq!((dog.class(), cat.class(), dog.bounds()), ("dog", "cat", cat.bounds()));
    // All detections are correct, and nothing is missing.
    wait_for_corrected(&mut window, 1.0);
    wait_for(&mut window, "AP of the corrected labels: 1.000 (was 0.417); 2 labels removed, 2 labels added");
    for _ in 0..2 {
        window.key_press_modifiers(Modifiers::COMMAND, Key::Z);
        window.run_steps(3);
        wait_until_idle(&mut window);
    }
    assert_eq!((verdicts(&window, 0), verdicts(&window, 1)), (Vec::new(), Vec::new()), "one step per fix");
    wait_for_corrected(&mut window, before + gains[0]);
}

#[test]
fn suspicious_labels_are_filtered_and_ordered() {
    let (_bench, mut window) = open_animals();
    search(&mut window, 3);
    for (query, expected) in [
        ("suspicious:class", &[0][..]),
        ("suspicious:missing", &[1]),
        ("suspicious:misplaced", &[]),
        ("suspicious truth:bird", &[2]),
        ("suspicious class:dog", &[0, 1]),
        ("suspicious score>0.7", &[0]),
        ("suspicious or fp", &[0, 1, 2]),
    ] {
        window.state_mut().command(SearchCommand::SetQuery(query.to_owned()));
        wait_until_idle(&mut window);
        let found: Vec<u32> = window.state().state().order().ids().map(|id| id.0).collect();
        assert_eq!(found, expected, "{query}");
    }
    window.state_mut().command(SearchCommand::SetQuery("suspicious".to_owned()));
    for (order, expected) in [(SuspectOrder::Score, [0, 1, 2]), (SuspectOrder::Gain, [2, 1, 0])] {
        window.state_mut().command(ReviewCommand::SetSuspectOrder(order));
        wait_until(&mut window, &format!("{order:?}"), |window| {
            let strip = window.state().state().filmstrip.as_ref().unwrap();
            strip.frames().iter().map(|frame| frame.sample.0).eq(expected)
        });
    }
    // A box below the minimum score contradicts nothing.
    set_min_score(&mut window, 0.85);
    wait_until(&mut window, "the bird alone", |window| {
        window.state().state().filmstrip.as_ref().is_some_and(|strip| strip.frames().len() == 1)
    });
}

#[test]
fn misplaced_label_takes_the_position_of_the_box() {
    let bench = Bench::new(&["a.png", "b.png"]);
    bench.put_boxes("a.png", &[("cat", 0.9, [10, 10, 50, 50])]);
    bench.put_boxes("b.png", &[("cat", 0.8, [10, 10, 50, 50])]);
    let image = |id: u32, name: &str| json!({"id": id, "file_name": name, "width": 100, "height": 100});
    let truth = json!({
        "images": [image(1, "a.png"), image(2, "b.png")],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 40, 25], "iscrowd": 0},
            {"id": 2, "image_id": 2, "category_id": 1, "bbox": [10, 10, 40, 40], "iscrowd": 0},
        ],
    });
    let truth = bench.write_truth("instances_train.json", &truth.to_string());
    let mut window = bench.open(&truth);
    wait_for_counts(&mut window);
    wait_for(&mut window, "may have been trained on these images");
    let before = headline(&window);
    search(&mut window, 1);
    assert_eq!(frames(&window), [(0, FilmBox::Predicted(0), SuspectKind::Misplaced)]);
    let gain = gain(&window, 0);
    click(&mut window, " misplaced cat, a.png");
    wait_until(&mut window, "the box", |window| window.state().state().shown.selected_box == Some(0));
    fix(&mut window);
    let given = verdicts(&window, 0);
    assert!(matches!(&given[..], [Verdict::Spurious(_), Verdict::Accept]), "{given:?}");
    assert!((before + gain - 1.0).abs() < CLOSE, "{before} + {gain}");
    wait_for_corrected(&mut window, 1.0);
}

#[test]
fn wrong_class_of_an_image_is_fixed() {
    let bench = Bench::new(&["a.png", "b.png", "c.png", "d.png"]);
    for (name, classes) in [
        ("a.png", [(0, "cat", 0.9), (1, "dog", 0.1)]),
        ("b.png", [(1, "dog", 0.8), (0, "cat", 0.2)]),
        ("c.png", [(0, "cat", 0.7), (1, "dog", 0.3)]),
        ("d.png", [(1, "dog", 0.6), (0, "cat", 0.4)]),
    ] {
        bench.put_classes(name, &classes);
    }
    let truth = bench.write_truth("classes.csv", "image,label\na.png,cat\nb.png,dog\nc.png,dog\nd.png,cat\n");
    let mut window = bench.open(&truth);
    wait_for_counts(&mut window);
    search(&mut window, 2);
    assert_eq!(frames(&window).iter().map(|(sample, ..)| *sample).collect::<Vec<_>>(), [2, 3]);
    assert!((gain(&window, 0) - 0.25).abs() < CLOSE);
    click(&mut window, "Top-1 +0.2500 wrong class, dog → cat, c.png");
    wait_until(&mut window, "the image", |window| window.state().state().shown_sample() == Some(SampleId(2)));
    fix(&mut window);
    let state = window.state().state();
    assert_eq!(state.verdict_of(SampleId(2)), Some(VerdictKind::Accept));
    assert_eq!(state.shown_sample(), Some(SampleId(3)), "the next one");
    wait_for_corrected(&mut window, 0.75);
}
