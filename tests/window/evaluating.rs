//! The evaluation panel: a click on any number shows the boxes that it counts.

use std::path::Path;

use egui::accesskit::Role;
use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use serde_json::{Value, json};
use spotcheck::domain::Location;
use spotcheck::evaluation::Metrics;
use spotcheck::project::export::options::{ExportFormat, ExportOptions};
use spotcheck::sagemaker::spec::output_mapping::ReadingRequest;
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, CompareLayout, EvaluationCommand, ExportCommand, ExportScope, OutputsAt, OutputsCommand,
    OutputsRequest, ReviewCommand, SearchCommand, TruthAt, ViewChange,
};

use crate::layout::shapes;
use crate::remote::wait_for_listing;
use crate::window::{click, open, sees, wait_for, wait_until, wait_until_idle};

const MODEL: &str = "efficientnet-lite0";
const SIDE: u32 = 100;
const F1_CHART: &str = "F1 by minimum";
const NEEDS_TRUTH: &str = "needs ground truth";

/// Images of one color, outputs of a model for them, and their ground truth.
pub(crate) struct Bench {
    images: tempfile::TempDir,
    outputs: tempfile::TempDir,
    truth: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(names: &[&str]) -> Self {
        let folder = || tempfile::tempdir().unwrap();
        let bench = Self { images: folder(), outputs: folder(), truth: folder() };
        for (number, name) in (0_u8..).zip(names) {
            let color = image::Rgb([40 * (number % 6), 120, 200]);
            image::RgbImage::from_pixel(SIDE, SIDE, color).save(bench.images.path().join(name)).unwrap();
        }
        bench
    }

    fn put_output(&self, image: &str, task: &str, what: &str, found: &Value) {
        let output = json!({
            "status": "ok", "model": "theirs", "task": task, "width": SIDE, "height": SIDE, what: found,
        });
        std::fs::write(self.outputs.path().join(format!("{image}.out")), output.to_string()).unwrap();
    }

    /// Boxes as left, top, right and bottom.
    pub(crate) fn put_boxes(&self, image: &str, boxes: &[(&str, f64, [u32; 4])]) {
        let id = |label: &str| ["cat", "dog", "bird", "kitten"].iter().position(|one| *one == label);
        let found = boxes.iter().map(
            |(label, score, bounds)| json!({"box": bounds, "class_id": id(label), "label": label, "score": score}),
        );
        self.put_output(image, "detection", "detections", &found.collect());
    }

    pub(crate) fn put_classes(&self, image: &str, classes: &[(u32, &str, f64)]) {
        let found = classes.iter().map(|(id, label, score)| json!({"index": id, "label": label, "score": score}));
        self.put_output(image, "classification", "classes", &found.collect());
    }

    pub(crate) fn write_truth(&self, name: &str, content: &str) -> Location {
        let path = self.truth.path().join(name);
        std::fs::write(&path, content).unwrap();
        Location::Path(path)
    }

    /// A window with the outputs as the run on screen, evaluated against the ground truth.
    pub(crate) fn open(&self, truth: &Location) -> Harness<'static, App> {
        let mut window = self.open_images();
        window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(truth.clone())));
        wait_until_idle(&mut window);
        window
    }

    fn open_images(&self) -> Harness<'static, App> {
        let mut window = open(Some(self.images.path()), MODEL);
        wait_for_listing(&mut window);
        open_outputs(&mut window, self.outputs.path());
        let images = window.state().state().samples.len();
        wait_until(&mut window, "the outputs", |window| {
            let run = window.state().state().run();
            run.is_some_and(|run| !run.info.key.made.is_here() && run.predictions.predicted() == images)
        });
        wait_until_idle(&mut window);
        window
    }
}

fn open_outputs(window: &mut Harness<'static, App>, folder: &Path) {
    wait_until_idle(window);
    let request = OutputsRequest {
        at: OutputsAt::Folder(Location::Path(folder.to_owned())),
        reading: ReadingRequest::default(),
        compare_with: None,
    };
    window.state_mut().command(OutputsCommand::Open(Box::new(request)));
}

/// Two cats, two dogs and a bird: a dog is predicted as a cat, a cat is detected twice, one dog is background, and the
/// bird is missed. Below a score of 0.5, another dog is background.
fn animals() -> (Bench, Location) {
    let bench = Bench::new(&["a.png", "b.png", "c.png"]);
    bench.put_boxes("a.png", &[("cat", 0.9, [10, 10, 40, 40]), ("cat", 0.8, [60, 60, 90, 90])]);
    bench.put_boxes(
        "b.png",
        &[("cat", 0.9, [10, 10, 40, 40]), ("kitten", 0.7, [10, 10, 40, 41]), ("dog", 0.6, [60, 60, 80, 80])],
    );
    bench.put_boxes("c.png", &[("dog", 0.55, [10, 10, 50, 50]), ("dog", 0.3, [60, 60, 80, 80])]);
    let image = |id: u32, name: &str| json!({"id": id, "file_name": name, "width": SIDE, "height": SIDE});
    let objects = [
        (1, 1, [10, 10, 30, 30]),
        (1, 2, [60, 60, 30, 30]),
        (2, 1, [10, 10, 30, 30]),
        (3, 2, [10, 10, 40, 40]),
        (3, 3, [60, 10, 30, 30]),
    ];
    let annotations = objects.iter().enumerate().map(|(id, (image, class, bounds))| {
        json!({"id": id + 1, "image_id": image, "category_id": class, "bbox": bounds, "iscrowd": 0})
    });
    let truth = json!({
        "images": [image(1, "a.png"), image(2, "b.png"), image(3, "c.png")],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "bird"}],
        "annotations": annotations.collect::<Vec<_>>(),
    });
    let place = bench.write_truth("animals.json", &truth.to_string());
    (bench, place)
}

pub(crate) fn open_animals() -> (Bench, Harness<'static, App>) {
    let (bench, truth) = animals();
    let mut window = bench.open(&truth);
    wait_for_counts(&mut window);
    set_min_score(&mut window, 0.5);
    (bench, window)
}

pub(crate) fn wait_for_counts(window: &mut Harness<'static, App>) {
    wait_until(window, "the counts", |window| window.state().state().outcome_counts().is_some());
    wait_until_idle(window);
}

pub(crate) fn set_min_score(window: &mut Harness<'static, App>, score: f32) {
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinScore(score)));
    wait_until_idle(window);
}

/// The buttons with a count that `count_of` reads from the label.
fn counts(window: &Harness<'static, App>, count_of: impl Fn(&str) -> Option<usize>) -> Vec<(String, usize)> {
    let buttons = window.query_all_by_role(Role::Button);
    let labels = buttons.filter_map(|button| button.accesskit_node().label());
    labels.filter_map(|label| Some((label.clone(), count_of(&label)?))).collect()
}

/// The images of the open ground truth that are on screen as well.
fn matched_images(window: &Harness<'static, App>) -> usize {
    window.state().state().opened_truth().unwrap().images.matched
}

/// The label of a confusion matrix cell for a class that is predicted as another one.
fn confused(truth: &str, predicted: &str, count: usize) -> String {
    format!("{truth} predicted as {predicted}: {count}")
}

/// The count after a colon, as in the cells of the confusion matrix.
fn count_at_end(label: &str) -> Option<usize> {
    label.rsplit_once(": ")?.1.parse().ok()
}

/// Clicks each number: filmstrip and grid must show what it counts.
#[track_caller]
fn each_shows_its_boxes(window: &mut Harness<'static, App>, found: &[(String, usize)]) {
    for (label, count) in found {
        click(window, label);
        wait_until_idle(window);
        let state = window.state().state();
        let query = state.arranging.text();
        let frames = state.filmstrip.as_ref().unwrap().frames();
        assert_eq!(frames.len(), *count, "“{label}” searched for {query}: {frames:?}");
        let images: std::collections::BTreeSet<u32> = frames.iter().map(|frame| frame.sample.0).collect();
        let found: std::collections::BTreeSet<u32> = state.order().ids().map(|id| id.0).collect();
        assert_eq!(images, found, "“{label}” searched for {query}");
        assert!(state.evaluating.as_ref().unwrap().is_shown, "the panel stays");
    }
}

#[test]
fn overview_counts_lead_to_their_boxes() {
    let (_bench, mut window) = open_animals();
    assert_eq!(matched_images(&window), 3);
    for text in ["Evaluation of theirs", "animals.json", "Precision 0.600", "Recall 0.600", "AP50 0."] {
        assert!(sees(&window, text), "{text}");
    }
    let kinds = [
        ("3 TP", 3),
        ("2 FP", 2),
        ("2 FN", 2),
        ("Errors, FP, wrong class: 1,", 1),
        ("Errors, FP, background: 1,", 1),
        ("Errors, FN, undetected: 1,", 1),
    ];
    each_shows_its_boxes(&mut window, &kinds.map(|(label, count)| (label.to_owned(), count)));
    // All numbers follow the filters.
    set_min_score(&mut window, 0.2);
    for text in ["3 TP", "3 FP", "2 FN", "Precision 0.500"] {
        assert!(sees(&window, text), "{text}");
    }
    click(&mut window, "Use this score");
    wait_until_idle(&mut window);
    let best = window.state().state().view().min_score;
    assert!((0.5..=0.55).contains(&best), "{best}");
    assert!(sees(&window, "in use"));
}

#[test]
fn matrix_and_table_counts_lead_to_their_boxes() {
    let (_bench, mut window) = open_animals();
    // Now two classes of the model match one ground-truth class.
    correct(&mut window, "kitten", "cat");
    click(&mut window, "Confusion matrix");
    let cells = counts(&window, count_at_end);
    let labels: Vec<&str> = cells.iter().map(|(label, _)| label.as_str()).collect();
    let undetected = "bird not detected: 1";
    let confusions = [confused("dog", "cat", 1), confused("Background", "cat", 1)];
    for label in
        ["cat correct: 2", "dog correct: 1", undetected].into_iter().chain(confusions.iter().map(String::as_str))
    {
        assert!(labels.contains(&label), "{label}: {labels:?}");
    }
    assert_eq!(cells.len(), 6, "{labels:?}");
    each_shows_its_boxes(&mut window, &cells);

    click(&mut window, "All confused");
    wait_until(&mut window, "fewer classes", |window| !sees(window, undetected));
    click(&mut window, "% of row");
    window.run_steps(3);

    click_exactly(&mut window, "Classes");
    let of_class = |label: &str| {
        let (count, rest) = label.split_once(' ')?;
        let is_count = ["TP for ", "FP for ", "FN for "].iter().any(|word| rest.starts_with(word));
        count.parse().ok().filter(|_| is_count)
    };
    let table = counts(&window, of_class);
    assert_eq!(table.len(), 6, "{table:?}");
    assert!(table.contains(&("2 FP for cat".to_owned(), 2)), "{table:?}");
    each_shows_its_boxes(&mut window, &table);
    click(&mut window, "Class dog: ");
    wait_for(&mut window, "curve for dog");
    click(&mut window, "evaluation by Class");
    let rows = |window: &Harness<'static, App>| -> Vec<String> {
        let rows = window.query_all_by_label_contains("Class ").filter_map(|row| row.accesskit_node().label());
        rows.filter(|label| label.contains(": AP ")).collect()
    };
    let sorted = rows(&window);
    assert!(sorted[0].starts_with("Class bird: ") && sorted[2].starts_with("Class dog: "), "{sorted:?}");
}

/// Two classes with one name, and one whose name is a pattern that matches them.
#[test]
fn duplicate_class_names_lead_to_their_own_boxes() {
    let bench = Bench::new(&["a.png", "b.png"]);
    bench.put_boxes("a.png", &[("cat", 0.9, [10, 10, 40, 40])]);
    bench.put_boxes("b.png", &[("dog", 0.8, [60, 60, 90, 90])]);
    let image = |id: u32, name: &str| json!({"id": id, "file_name": name, "width": SIDE, "height": SIDE});
    let objects = [
        (1, 5, [10, 10, 30, 30]),
        (1, 6, [60, 10, 20, 20]),
        (1, 6, [10, 60, 20, 20]),
        (2, 6, [10, 10, 20, 20]),
        (2, 5, [10, 60, 20, 20]),
        (2, 7, [60, 10, 20, 20]),
    ];
    let annotations = objects.iter().enumerate().map(|(id, (image, class, bounds))| {
        json!({"id": id + 1, "image_id": image, "category_id": class, "bbox": bounds, "iscrowd": 0})
    });
    let truth = json!({
        "images": [image(1, "a.png"), image(2, "b.png")],
        "categories": [{"id": 5, "name": "cat"}, {"id": 6, "name": "Cat"}, {"id": 7, "name": "c*t"}],
        "annotations": annotations.collect::<Vec<_>>(),
    });
    let truth = bench.write_truth("cats.json", &truth.to_string());
    let mut window = bench.open(&truth);
    click(&mut window, "Confusion matrix");
    let cells = counts(&window, count_at_end);
    for label in ["cat correct: 1", "cat not detected: 1", "Cat not detected: 3", "c*t not detected: 1"] {
        assert!(cells.iter().any(|(cell, _)| cell == label), "{label}: {cells:?}");
    }
    each_shows_its_boxes(&mut window, &cells);
}

/// Clicks the widget with exactly this label.
#[track_caller]
pub(crate) fn click_exactly(window: &mut Harness<'static, App>, label: &str) {
    window.get_by_role_and_label(Role::Button, label).click_accesskit();
    window.run_steps(2);
}

fn correct(window: &mut Harness<'static, App>, from: &str, to: &str) {
    let correction = EvaluationCommand::CorrectClass { from: from.to_owned(), to: to.to_owned() };
    window.state_mut().command(correction);
    wait_until_idle(window);
}

#[test]
fn chart_keys_move_the_minimum_score() {
    let (_bench, mut window) = open_animals();
    window.get_by_label_contains(F1_CHART).focus();
    window.run_steps(2);
    window.key_press(Key::ArrowRight);
    wait_until_idle(&mut window);
    let score = |window: &Harness<'static, App>| window.state().state().view().min_score;
    assert_eq!(score(&window), 0.51);
    for _ in 0..3 {
        window.key_press_modifiers(Modifiers::SHIFT, Key::ArrowLeft);
        window.step();
    }
    wait_until_idle(&mut window);
    assert_eq!(score(&window), 0.21);
    assert!(sees(&window, "3 FP"));
    window.key_press(Key::Enter);
    wait_until_idle(&mut window);
    let state = window.state().state();
    assert_eq!(state.filmstrip.as_ref().unwrap().frames().len(), 6, "all right and wrong boxes");
    assert!(state.evaluating.as_ref().unwrap().is_shown);
}

fn pointer(window: &mut Harness<'static, App>, at: egui::Pos2, pressed: Option<bool>) {
    window.event(egui::Event::PointerMoved(at));
    if let Some(pressed) = pressed {
        let (button, modifiers) = (egui::PointerButton::Primary, Modifiers::NONE);
        window.event(egui::Event::PointerButton { pos: at, button, pressed, modifiers });
    }
    window.run_steps(2);
}

#[test]
fn minimum_score_follows_the_pointer() {
    let (_bench, mut window) = open_animals();
    let chart = window.get_by_label_contains(F1_CHART).rect();
    let at = |share: f32| egui::pos2(chart.left() + share * chart.width(), chart.center().y);
    let score = |window: &Harness<'static, App>| window.state().state().view().min_score;
    pointer(&mut window, at(0.3), Some(true));
    let mut scores = Vec::new();
    for share in [0.4, 0.6, 0.8] {
        pointer(&mut window, at(share), None);
        wait_until_idle(&mut window);
        scores.push(score(&window));
    }
    pointer(&mut window, at(0.8), Some(false));
    wait_until_idle(&mut window);
    assert_eq!(score(&window), scores[2]);
    assert!((scores[1] - f32::midpoint(scores[0], scores[2])).abs() < 0.011, "{scores:?}");
    assert!(scores[2] - scores[0] > 0.35, "{scores:?}");
    assert!(window.state().state().filmstrip.is_none(), "a drag shows no boxes");

    for is_pressed in [true, false] {
        pointer(&mut window, at(0.4), Some(is_pressed));
    }
    wait_until_idle(&mut window);
    assert_eq!(score(&window), scores[0]);
    let (counts, frames) = {
        let state = window.state().state();
        (state.outcome_counts().unwrap().all(), state.filmstrip.as_ref().unwrap().frames().len())
    };
    assert_eq!(frames as u64, counts.correct + counts.wrong);
}

#[test]
fn opening_key_focuses_the_panel() {
    let (_bench, mut window) = open_animals();
    let toggle = |window: &mut Harness<'static, App>| {
        window.key_press_modifiers(Modifiers::COMMAND | Modifiers::SHIFT, Key::Num6);
        window.run_steps(3);
    };
    let has_focus = |window: &Harness<'static, App>, tab: &str| {
        window.get_by_role_and_label(Role::Button, tab).accesskit_node().is_focused()
    };
    assert!(!has_focus(&window, "Overview"), "opened without a key");
    toggle(&mut window);
    assert!(!window.state().state().evaluating.as_ref().unwrap().is_shown);
    toggle(&mut window);
    assert!(has_focus(&window, "Overview"));
    window.key_press(Key::Tab);
    window.run_steps(2);
    assert!(has_focus(&window, "Classes"));
    window.key_press(Key::Enter);
    wait_for(&mut window, "1 FP for cat");
}

#[test]
fn matrix_cells_zoom_and_fit() {
    let (_bench, mut window) = open_animals();
    click(&mut window, "Confusion matrix");
    let side = |window: &Harness<'static, App>| window.get_by_label("cat correct: 2").rect().width();
    let fitted = side(&window);
    for _ in 0..2 {
        click(&mut window, "Larger cells");
    }
    assert!((side(&window) / fitted - 1.25 * 1.25).abs() < 0.02, "{fitted} {}", side(&window));
    click_exactly(&mut window, "Fit");
    window.run_steps(2);
    assert_eq!(side(&window), fitted);
    for _ in 0..20 {
        click(&mut window, "Smaller cells");
    }
    assert_eq!(side(&window), 3.0);
}

#[test]
fn reliability_bars_lead_to_their_images() {
    let names: Vec<String> = (0..16).map(|number| format!("{number:02}.png")).collect();
    let bench = Bench::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut truth = "image,label\n".to_owned();
    for (number, name) in (0_u32..).zip(&names) {
        // As many as there are bins, each at a boundary of two of them or just below; one has another class.
        let boundary = (f64::from(number) / 15.0) as f32;
        let score = if number % 3 == 2 { boundary.next_down() } else { boundary };
        let class = match number % 4 {
            0 | 1 => (0, "cat"),
            2 => (1, "dog"),
            _ => (2, "fox"),
        };
        bench.put_classes(name, &[(class.0, class.1, f64::from(score))]);
        truth += name;
        truth += if number % 2 == 0 { ",cat\n" } else { ",dog\n" };
    }
    let truth = bench.write_truth("classes.csv", &truth);
    let mut window = bench.open(&truth);
    wait_for_counts(&mut window);
    let images = |label: &str| {
        let (_, count) = label.strip_prefix("Score ")?.split_once(": ")?;
        count.split_once(" image")?.0.parse().ok()
    };
    let bars = counts(&window, images);
    assert!(bars.len() > 8, "{bars:?}");
    assert_eq!(bars.iter().map(|(_, count)| count).sum::<usize>(), 16, "{bars:?}");
    each_shows_its_boxes(&mut window, &bars);

    click(&mut window, "Confusion matrix");
    let cells = counts(&window, count_at_end);
    assert_eq!(cells.iter().map(|(_, count)| count).sum::<usize>(), 16, "{cells:?}");
    assert!(cells.contains(&(confused("dog", "another class", 4), 4)), "{cells:?}");
    each_shows_its_boxes(&mut window, &cells);
}

#[test]
fn unmatched_classes_are_corrected_in_the_panel() {
    let (bench, _) = animals();
    let truth = bench.write_truth("other.csv", "image,label,x1,y1,x2,y2\na.png,Katze,10,10,40,40\n");
    let mut window = bench.open(&truth);
    wait_for(&mut window, "classes in common");
    wait_for(&mut window, "0 of 3 model");
    click(&mut window, "class for cat");
    window.run_steps(2);
    click_exactly(&mut window, "Katze");
    wait_until_idle(&mut window);
    wait_for(&mut window, "1 of 3 model");
    click(&mut window, "Overview");
    wait_for(&mut window, "AP50 1.000");
    click(&mut window, "Class matching");
    click(&mut window, "Reset all corrections");
    wait_for(&mut window, "0 of 3 model");
}

#[test]
fn panel_without_measurements_gives_advice() {
    let (bench, truth) = animals();
    let mut window = open(Some(bench.images.path()), MODEL);
    wait_for_listing(&mut window);
    let missing = Location::Path(bench.truth.path().join("missing.json"));
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(missing)));
    wait_for(&mut window, "missing.json");
    wait_for(&mut window, "Read again");
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(truth)));
    wait_until_idle(&mut window);
    assert_eq!(matched_images(&window), 3);
    // The run is of a classifier.
    wait_for(&mut window, "has image classes. Choose another run under Runs");
    click(&mut window, "Show the image");
    assert!(!sees(&window, "animals.json"));
    window.state_mut().command(Action::Evaluation);
    wait_for(&mut window, "animals.json");
}

#[test]
fn evaluation_is_exported_at_the_shown_score() {
    let (_bench, mut window) = open_animals();
    let folder = tempfile::tempdir().unwrap();
    // A correct dog with a score of 0.55 is below.
    set_min_score(&mut window, 0.58);
    let mut export = |format: &str, name: &str| {
        let path = folder.path().join(name);
        click(&mut window, "Export evaluation…");
        click(&mut window, format);
        let target = if format.starts_with("Plots") { "Target folder" } else { "Target file" };
        wait_for(&mut window, target);
        // The field has the focus, and all of its text is selected.
        window.key_press_modifiers(Modifiers::COMMAND, Key::A);
        window.event(egui::Event::Text(path.display().to_string()));
        window.run_steps(2);
        click(&mut window, "Export now");
        wait_for(&mut window, "Exported");
        click(&mut window, "Close");
        path
    };
    let metrics = export("JSON: ", "metrics.json");
    let metrics: Value = serde_json::from_slice(&std::fs::read(metrics).unwrap()).unwrap();
    let count = |name: &str| metrics[name].as_u64().unwrap();
    assert!((metrics["threshold"].as_f64().unwrap() - 0.58).abs() < 1e-6);
    assert_eq!([count("true_positives"), count("false_positives"), count("missed")], [2, 2, 3]);
    assert!(metrics["intervals"].is_object());
    let classes = std::fs::read_to_string(export("CSV: ", "classes.csv")).unwrap();
    assert_eq!(classes.lines().count(), 4);
    let plots = export("Plots: ", "plots");
    assert!(plots.join("confusion-matrix.png").exists() && plots.join("confusion-matrix.svg").exists());
    // The dog that is a cat in a.png, and the background dog of b.png.
    let report = std::fs::read_to_string(export("HTML report: ", "report.html")).unwrap();
    assert_eq!(report.matches("data:image/jpeg").count(), 2);
    assert!(report.contains("FP, wrong class: cat 0.80, truth: dog") && report.contains("FP, background: dog 0.60"));
    // The report of the run also contains the evaluation.
    let path = folder.path().join("run.html");
    let options = ExportOptions::for_format(ExportFormat::Report);
    window.state_mut().command(ExportCommand::Set(options, ExportScope::All));
    window.state_mut().command(ExportCommand::Start { path: path.clone(), replaces: false });
    wait_for(&mut window, "Exported");
    let report = std::fs::read_to_string(path).unwrap();
    assert!(report.contains("FP, wrong class: cat 0.80, truth: dog") && report.contains("Least certain"));
}

#[test]
fn tabs_stay_during_a_new_evaluation() {
    let (_bench, mut window) = open_animals();
    let tab = |window: &Harness<'static, App>| {
        window.query_by_role_and_label(Role::Button, "Confusion matrix").map(|tab| tab.rect())
    };
    let before = tab(&window);
    assert!(before.is_some());
    window.state_mut().command(EvaluationCommand::EvaluateAgain);
    let was_seen = std::cell::Cell::new(false);
    wait_until(&mut window, "the numbers again", |window| {
        was_seen.set(was_seen.get() || sees(window, "Cancel"));
        assert_eq!(tab(window), before);
        window.state().state().tasks.is_idle()
    });
    assert!(was_seen.get(), "the evaluation can be canceled");
}

#[test]
fn clearing_the_search_empties_the_filmstrip() {
    let (_bench, mut window) = open_animals();
    let frames =
        |window: &Harness<'static, App>| window.state().state().filmstrip.as_ref().map(|strip| strip.frames().len());
    click(&mut window, "2 FP");
    wait_until_idle(&mut window);
    assert_eq!(frames(&window), Some(2));
    window.state_mut().command(Action::ClearSearch);
    wait_until_idle(&mut window);
    assert_eq!(frames(&window), Some(0));
    assert!(sees(&window, "Choose a class"));

    window.state_mut().command(ReviewCommand::OpenFilmstrip(0));
    wait_until_idle(&mut window);
    assert_eq!(frames(&window), Some(3), "cats");
    let (other, _) = animals();
    window.state_mut().command(BrowseCommand::Open(other.images.path().to_owned()));
    window.run_steps(2);
    assert_eq!(frames(&window), Some(0));
    wait_for_listing(&mut window);
    wait_until_idle(&mut window);
    assert_eq!(frames(&window), Some(0), "unpredicted images");
}

#[test]
fn clicked_matrix_cell_stays_under_the_pointer() {
    let (_bench, mut window) = open_animals();
    window.set_size(egui::vec2(1100.0, 620.0));
    click(&mut window, "Confusion matrix");
    wait_until_idle(&mut window);
    let label = "dog correct: 1";
    let before = window.get_by_label(label).rect();
    pointer(&mut window, before.center(), Some(true));
    pointer(&mut window, before.center(), Some(false));
    wait_until_idle(&mut window);
    assert!(window.state().state().filmstrip.is_some());
    assert_eq!(window.get_by_label(label).rect(), before);
    let is_selected = |window: &Harness<'static, App>, label: &str| {
        window.get_by_label(label).accesskit_node().toggled() == Some(egui::accesskit::Toggled::True)
    };
    assert!(is_selected(&window, label) && !is_selected(&window, "cat correct: 2"));
    window.state_mut().command(Action::ClearSearch);
    wait_until_idle(&mut window);
    assert!(!is_selected(&window, label));
}

#[test]
fn precision_recall_tooltip_predicts_the_click() {
    let (_bench, mut window) = open_animals();
    set_min_score(&mut window, 0.1);
    let curve = "Precision-recall curve";
    let chart = window.get_by_label_contains(curve).rect();
    const CLICK: &str = "Click to apply";
    let mut seen = std::collections::BTreeSet::new();
    for share in [0.35, 0.45, 0.55, 0.65] {
        let at = egui::pos2(chart.left() + 0.7 * chart.width(), chart.top() + share * chart.height());
        pointer(&mut window, at, None);
        wait_until(&mut window, "the tooltip", |window| sees(window, CLICK));
        let tooltip = window.get_by_label_contains(CLICK);
        let text = tooltip.accesskit_node().value().or(tooltip.accesskit_node().label()).unwrap();
        let numbers = text.split_once(": ").unwrap().1.split(", F1").next().unwrap().to_owned();
        for is_pressed in [true, false] {
            pointer(&mut window, at, Some(is_pressed));
        }
        wait_until_idle(&mut window);
        let chart = window.get_by_label_contains(curve).accesskit_node().label().unwrap();
        assert!(chart.ends_with(&format!(": {numbers}")), "{chart}: {text}");
        seen.insert(numbers);
        window.state_mut().command(Action::ClearSearch);
        window.state_mut().command(Action::Filmstrip);
        pointer(&mut window, egui::pos2(1.0, 1.0), None);
        wait_until_idle(&mut window);
    }
    assert!(seen.len() > 1, "{seen:?}");
}

#[test]
fn legend_matches_the_cards() {
    let (_bench, mut window) = open_animals();
    for (score, hidden) in [(0.5, None), (0.2, None), (0.5, Some(0))] {
        set_min_score(&mut window, score);
        if let Some(class) = hidden {
            window.state_mut().command(ReviewCommand::ChangeView(ViewChange::HideClass(class)));
            wait_until_idle(&mut window);
        }
        let all = window.state().state().outcome_counts().unwrap().all();
        for (name, number) in [("precision", all.precision()), ("recall", all.recall()), ("F1", all.f1())] {
            let number = number.unwrap();
            assert!(sees(&window, &format!("{name} {number:.3}")), "legend: {name} {number}");
        }
    }
}

#[test]
fn intervals_follow_the_minimum_score() {
    let (_bench, mut window) = open_animals();
    let (interval, link) = ("Precision 0.500, 95%", "Update intervals");
    set_min_score(&mut window, 0.2);
    assert!(sees(&window, "Precision 0.500") && !sees(&window, interval));
    click(&mut window, link);
    wait_until_idle(&mut window);
    assert!(sees(&window, interval) && !sees(&window, link));
}

#[test]
fn error_search_waits_for_the_evaluation() {
    let (bench, truth) = animals();
    let mut window = bench.open_images();
    window.state_mut().command(SearchCommand::SetQuery("fp".to_owned()));
    wait_for(&mut window, NEEDS_TRUTH);
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(truth)));
    let waiting = "search is waiting";
    let has_waited = std::cell::Cell::new(false);
    wait_until(&mut window, "the evaluation", |window| {
        let state = window.state().state();
        let is_evaluated = state.evaluated().is_some();
        if state.evaluating.is_some() && !is_evaluated {
            assert!(state.search_awaits_evaluation() && !sees(window, NEEDS_TRUTH));
            has_waited.set(has_waited.get() || sees(window, waiting));
        }
        is_evaluated && state.tasks.is_idle()
    });
    assert!(has_waited.get());
    window.run_steps(2);
    assert!(!sees(&window, waiting));

    // An open one would stay open.
    window.state_mut().command(Action::CloseTruth);
    wait_for(&mut window, NEEDS_TRUTH);
    let broken = bench.write_truth("cut.json", r#"{"images": [{"id": 1,"#);
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(broken)));
    wait_for(&mut window, "needs the evaluation");
}

#[test]
fn comparison_has_two_minimum_scores() {
    let (bench, mut window) = open_animals();
    let first = window.state().state().run().unwrap().id();
    let others = tempfile::tempdir().unwrap();
    for output in std::fs::read_dir(bench.outputs.path()).unwrap() {
        let output = output.unwrap();
        let of_other_model = std::fs::read_to_string(output.path()).unwrap().replace("theirs", "others");
        std::fs::write(others.path().join(output.file_name()), of_other_model).unwrap();
    }
    open_outputs(&mut window, others.path());
    wait_until(&mut window, "the second run, evaluated", |window| {
        let state = window.state().state();
        state.run().unwrap().id() != first && state.outcome_counts().is_some() && state.tasks.is_idle()
    });
    set_min_score(&mut window, 0.95);
    window.state_mut().command(ReviewCommand::Compare(first));
    wait_for(&mut window, "A ≥ 0.95, B ≥ 0.50");
    window.state_mut().command(ReviewCommand::SetCompareLayout(CompareLayout::SideBySide));
    // The order by disagreement shows its first image.
    wait_until_idle(&mut window);
    let state = window.state().state();
    let comparing = state.comparing.as_ref().unwrap();
    let [one, other] = [comparing.left, comparing.right]
        .map(|run| state.runs.iter().find(|of| of.id() == run).unwrap().info.name.clone());
    let first_image = state.samples.ids().next().unwrap();
    window.state_mut().command(BrowseCommand::Show(first_image));
    for (name, negatives) in [(format!("A: {one}\n"), 2), (format!("B: {other}\n"), 1)] {
        let facts = [name, "ground truth (2)".to_owned(), format!("negatives ({negatives})")];
        wait_until(&mut window, "the legend", |window| {
            let nodes = window.query_all_by_label_contains(&facts[0]).map(|node| node.accesskit_node());
            let mut texts = nodes.filter_map(|node| node.value().or_else(|| node.label()));
            texts.any(|text| facts.iter().all(|fact| text.contains(fact)))
        });
    }
    let scores = |window: &Harness<'static, App>| {
        let state = window.state().state();
        let comparing = state.comparing.as_ref().unwrap();
        [comparing.left, comparing.right].map(|run| state.view_of_run(run).min_score)
    };
    window.state_mut().command(Action::Comparison);
    wait_for(&mut window, "Same for both");
    click(&mut window, "Same for both");
    wait_until(&mut window, "one minimum score", |window| scores(window) == [0.95, 0.95]);
    click(&mut window, "Best F1 of");
    wait_until(&mut window, "the best scores", |window| {
        let state = window.state().state();
        let best = |run: &spotcheck::window::state::EvaluatedRun| match &run.evaluated.metrics {
            Metrics::Detection { metrics, .. } => metrics.best.unwrap().threshold as f32,
            Metrics::Classification { .. } => unreachable!(),
        };
        let of_both = [state.evaluated().unwrap(), state.other_evaluated().unwrap().1].map(best);
        scores(window) == of_both
    });
    wait_until_idle(&mut window);
    let page = others.path().join("comparison.html");
    click(&mut window, "Export comparison…");
    click(&mut window, "HTML report: ");
    wait_for(&mut window, "Target file");
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.event(egui::Event::Text(page.display().to_string()));
    window.run_steps(2);
    click(&mut window, "Export now");
    wait_until(&mut window, "the page", |_| page.exists());
    let page = std::fs::read_to_string(page).unwrap();
    for fact in ["Against the ground truth", "A (AP50 ", "B (AP50 ", "A − B", "<th scope=\"row\">dog</th>"] {
        assert!(page.contains(fact), "{fact} in {page}");
    }
}

#[test]
fn headline_metrics_have_intervals() {
    let (_bench, window) = open_animals();
    for name in ["AP ", "AP50 ", "AP75 ", "AR100 "] {
        let cards = window.query_all_by_label_contains(name).filter_map(|card| card.accesskit_node().value());
        let cards: Vec<String> = cards.filter(|text| text.starts_with(name)).collect();
        assert!(cards.iter().any(|card| card.contains("95% interval")), "{name}: {cards:?}");
    }
}

#[test]
fn search_results_are_evaluated_alone() {
    let (_bench, mut window) = open_animals();
    let (button, dogs) = ("Evaluate the search results alone", "Search results of “c.png” alone (1 image)");
    assert!(!sees(&window, button));
    search(&mut window, "c.png");
    click(&mut window, button);
    wait_for(&mut window, dogs);
    // Of the dog and the bird in this image, the dog is detected exactly, by the only box with a score of 0.5.
    for text in ["AP 0.500", "Precision 1.000", "Recall 0.500"] {
        assert!(sees(&window, text), "{text}");
    }
    assert!(sees(&window, "Precision 0.600") && !sees(&window, button));
    search(&mut window, "a.png");
    assert!(sees(&window, dogs), "metrics stay with their search");
    click(&mut window, button);
    wait_for(&mut window, "Search results of “a.png” alone (1 image)");
    search(&mut window, "nothing-has-this-name");
    click(&mut window, button);
    wait_for(&mut window, "None of the search results");
}

fn search(window: &mut Harness<'static, App>, text: &str) {
    window.state_mut().command(SearchCommand::SetQuery(text.to_owned()));
    wait_until_idle(window);
}

#[test]
fn unmeasurable_metric_has_no_interval() {
    let bench = Bench::new(&["a.png", "b.png"]);
    bench.put_boxes("a.png", &[("cat", 0.9, [10, 10, 40, 40])]);
    bench.put_boxes("b.png", &[]);
    let truth = json!({
        "images": [
            {"id": 1, "file_name": "a.png", "width": SIDE, "height": SIDE},
            {"id": 2, "file_name": "b.png", "width": SIDE, "height": SIDE},
        ],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 30, 30], "iscrowd": 0},
            {"id": 2, "image_id": 2, "category_id": 1, "bbox": [10, 10, 30, 30], "iscrowd": 0},
        ],
    });
    let truth = bench.write_truth("cats.json", &truth.to_string());
    let mut window = bench.open(&truth);
    wait_for_counts(&mut window);
    // Without the second image there is a box, without the first one there is none.
    wait_for(&mut window, "Precision 1.000, no interval");
    wait_for(&mut window, "Recall 0.500, 95% interval");
}

/// One object and one correct box per class.
fn many_classes(count: u32) -> (Bench, Location) {
    let bench = Bench::new(&["a.png"]);
    let place = |class: u32| [class % 10 * 10, class / 10 * 10];
    let found = (0..count).map(|class| {
        let [x, y] = place(class);
        json!({"box": [x, y, x + 8, y + 8], "class_id": class, "label": format!("kind {class}"), "score": 0.9})
    });
    bench.put_output("a.png", "detection", "detections", &found.collect());
    let categories: Vec<Value> =
        (0..count).map(|class| json!({"id": class, "name": format!("kind {class}")})).collect();
    let annotations = (0..count).map(|class| {
        let [x, y] = place(class);
        json!({"id": class + 1, "image_id": 1, "category_id": class, "bbox": [x, y, 8, 8], "iscrowd": 0})
    });
    let truth = json!({
        "images": [{"id": 1, "file_name": "a.png", "width": SIDE, "height": SIDE}],
        "categories": categories,
        "annotations": annotations.collect::<Vec<_>>(),
    });
    let truth = bench.write_truth("kinds.json", &truth.to_string());
    (bench, truth)
}

#[test]
fn large_confusion_matrix_fits() {
    let (bench, truth) = many_classes(80);
    let mut window = bench.open(&truth);
    wait_for_counts(&mut window);
    click(&mut window, "Confusion matrix");
    click(&mut window, "All classes");
    window.run_steps(3);
    let cells = |window: &Harness<'static, App>| -> Vec<egui::Rect> {
        let cells = window.query_all_by_label_contains(" correct: 1");
        cells.map(|cell| cell.rect()).collect()
    };
    let fitting = cells(&window);
    // Cells outside the view are not drawn.
    assert_eq!(fitting.len(), 80);
    click(&mut window, "Larger cells");
    window.run_steps(3);
    let ratio = cells(&window)[0].width() / fitting[0].width();
    assert!((1.1..1.4).contains(&ratio), "{ratio}");
    for _ in 0..8 {
        click(&mut window, "Larger cells");
    }
    window.run_steps(3);
    assert!(cells(&window).len() < 80);
    click_exactly(&mut window, "Fit");
    window.run_steps(3);
    assert_eq!(cells(&window), fitting);
}

/// The fills of the color swatches in the list of classes.
fn swatches(window: &Harness<'static, App>) -> Vec<egui::Color32> {
    let squares = shapes(window).into_iter().filter_map(|shape| match shape {
        egui::epaint::Shape::Rect(rect) if rect.rect.size() == egui::vec2(10.0, 10.0) => Some(rect.fill),
        _ => None,
    });
    squares.collect()
}

#[test]
fn class_color_depends_on_its_name() {
    let bench = Bench::new(&["a.png"]);
    let other = Bench::new(&["a.png"]);
    for (bench, class_id) in [(&bench, 3), (&other, 70)] {
        let found = json!([{"box": [10, 10, 40, 40], "class_id": class_id, "label": "hard hat", "score": 0.9}]);
        bench.put_output("a.png", "detection", "detections", &found);
    }
    let mut window = bench.open_images();
    let first = window.state().state().run().unwrap().id();
    let colors = swatches(&window);
    assert!(!colors.is_empty() && colors.iter().all(|color| *color == colors[0]), "{colors:?}");
    open_outputs(&mut window, other.outputs.path());
    wait_until(&mut window, "the other run", |window| {
        window.state().state().run().is_some_and(|run| run.id() != first && run.predictions.predicted() == 1)
    });
    wait_until_idle(&mut window);
    window.run_steps(3);
    assert_eq!(window.state().state().run().unwrap().labels().get(70), Some("hard hat"));
    assert_eq!(swatches(&window), colors);
}
