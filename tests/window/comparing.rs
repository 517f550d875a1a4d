use std::fmt::Write as _;

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::review::SortBy;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, InferenceCommand, Overlay, ReviewCommand, Run, ViewChange};

use crate::job_outputs::{open_folder_of_outputs, put_output};
use crate::remote::wait_for_listing;
use crate::truth::open_truth;
use crate::window::{click, folder_of, open, open_in, samples, sees, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

/// Two runs of one model over three images, the second with one thread.
pub(crate) fn two_runs(model: &str, source: &std::path::Path) -> Harness<'static, App> {
    let mut window = open(Some(source), model);
    wait_for(&mut window, "1 of ");
    predict_all(&mut window);
    window.state_mut().command(InferenceCommand::SetThreads(Some(1)));
    predict_all(&mut window);
    window
}

fn predict_all(window: &mut Harness<'static, App>) {
    wait_until(window, "the model", |window| {
        let state = window.state().state();
        state.run().is_some_and(|run| run.predictions.predicted() > 0)
    });
    window.state_mut().command(Action::PredictAll);
    wait_until(window, "all predictions", |window| {
        let state = window.state().state();
        let predicted = state.run().map_or(0, |run| run.predictions.predicted());
        predicted == state.samples.len() && state.tasks.is_idle() && state.project.unsaved() == 0
    });
}

#[test]
fn equal_runs_agree_and_sort_by_disagreement() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    click(&mut window, "Compare with EfficientNet-Lite0");
    wait_for(&mut window, "100.0% agree");
    assert!(sees(&window, "Same top class"));
    let state = window.state().state();
    let summary = &state.comparing.as_ref().unwrap().agreement().unwrap().summary;
    assert_eq!((summary.compared, summary.agreeing), (3, 3));
    assert_eq!(state.arranging.sort().by, SortBy::Disagreement);
    let disagreement = "0-chelsea.png, disagreement 0.00";
    wait_for(&mut window, disagreement);
    click(&mut window, "End comparison");
    wait_until(&mut window, "the comparison to end", |window| {
        let comparing = &window.state().state().comparing;
        comparing.is_none() && !sees(window, "100.0% agree") && !sees(window, disagreement)
    });
}

#[test]
fn two_runs_are_overlaid_with_a_legend() {
    let mut window = two_runs(DETECTOR, &samples().join("coffee.png"));
    click(&mut window, "Compare with ");
    wait_for(&mut window, "100.0% agree");
    assert!(sees(&window, "IoU ≥ 0.5"));
    click(&mut window, "Show the image");
    wait_for(&mut window, "B, dashed: ");
    let summary = &window.state().state().comparing.as_ref().unwrap().agreement().unwrap().summary;
    assert_eq!((summary.agreeing, summary.only_left, summary.only_right), (1, 0, 0));
    assert!(summary.matched > 0);
    click(&mut window, "Show comparison");
    window.state_mut().command(ReviewCommand::ChangeView(spotcheck::window::state::ViewChange::MinScore(0.2)));
    let outdated = "filters have changed";
    wait_for(&mut window, outdated);
    click(&mut window, "Compare again");
    wait_until(&mut window, "the new comparison", |window| !sees(window, outdated) && sees(window, "100.0% agree"));
}

/// The label of an option in the menu of a classifier's run.
fn more_about(option: &str) -> String {
    format!("More about EfficientNet-Lite0, {option}")
}

#[test]
fn run_is_renamed_and_deleted() {
    let folder = folder_of(1, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    click(&mut window, &more_about("1 thread"));
    click(&mut window, "Rename");
    let field = window.get_by_role_and_label(Role::TextInput, "Run name");
    field.type_text(" of mine");
    window.key_press(egui::Key::Enter);
    wait_until(&mut window, "the new name", |window| {
        window.state().state().runs.iter().any(|run| run.info.name.ends_with(" of mine"))
    });
    let more = &more_about("1 thread of mine");
    wait_for(&mut window, more);
    click(&mut window, more);
    click(&mut window, "Delete…");
    wait_for(&mut window, "Delete this run");
    click(&mut window, "Keep it");
    assert_eq!(window.state().state().runs.iter().count(), 2);
    click(&mut window, more);
    click(&mut window, "Delete…");
    click(&mut window, "Delete this run");
    wait_until(&mut window, "one run to be left", |window| window.state().state().runs.iter().count() == 1);
}

#[test]
fn two_runs_are_shown_side_by_side() {
    let folder = folder_of(1, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    click(&mut window, "Compare with EfficientNet-Lite0");
    wait_for(&mut window, "100.0% agree");
    click(&mut window, "Show the image");
    let top = "tiger cat 38.3%";
    wait_for(&mut window, &format!("B, EfficientNet-Lite0: {top}"));
    click(&mut window, "Side by side");
    let first = format!("EfficientNet-Lite0\n{top}");
    wait_for(&mut window, &first);
    wait_for(&mut window, &format!("1 thread\n{top}"));
    click(&mut window, "Overlaid");
    wait_until(&mut window, "one image", |window| !sees(window, &first));
}

#[test]
fn comparison_is_exported_per_image() {
    let folder = folder_of(3, "chelsea.png");
    let target = folder.path().join("comparison.csv");
    let mut window = two_runs(CLASSIFIER, folder.path());
    click(&mut window, "Compare with EfficientNet-Lite0");
    wait_for(&mut window, "100.0% agree");
    click(&mut window, "Export comparison…");
    click(&mut window, "CSV: ");
    let field = window.get_by_role_and_label(Role::TextInput, "Target file");
    field.focus();
    field.type_text(target.to_str().unwrap());
    window.step();
    click(&mut window, "Export now");
    wait_for(&mut window, "3 images compared");
    assert!(window.state().state().exported.as_ref().unwrap().summary.contains("3 agree"));
    click(&mut window, "Close");
    let table = std::fs::read_to_string(&target).unwrap();
    assert!(table.contains("0-chelsea.png,both,true,0,0,tiger cat,0.38"), "{table}");
    let summary = std::fs::read_to_string(folder.path().join("comparison-summary.csv")).unwrap();
    assert!(summary.contains("agreement,,,1"), "{summary}");

    // The file is not replaced, and the dialog stays open with a solution.
    click(&mut window, "Export comparison…");
    click(&mut window, "Export now");
    wait_until(&mut window, "the failure", |window| {
        let failure = window.state().state().export.stage.failure();
        failure.is_some_and(|failure| sees(window, failure.message()))
    });
    let overlay = |window: &Harness<'static, App>| window.state().state().overlay;
    assert_eq!(overlay(&window), Overlay::ExportComparison);
    click(&mut window, "JSON: ");
    click(&mut window, "Export now");
    wait_until(&mut window, "the dialog to close", |window| overlay(window) == Overlay::None);
    assert!(target.with_extension("json").exists());
}

#[test]
fn clicked_run_is_shown() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    let current = |window: &Harness<'static, App>| window.state().state().run().unwrap().id();
    let second = current(&window);
    let first = window.state().state().runs.iter().next().unwrap().id();
    assert_ne!(first, second);
    click(&mut window, "Run EfficientNet-Lite0");
    wait_until(&mut window, "the first run", |window| current(window) == first);
    wait_for(&mut window, "2 predicted");
    // The run on screen is not compared with itself.
    assert!(sees(&window, "with EfficientNet-Lite0, 1 thread"));
}

/// The outputs of a model that predicts the first class for the first two images, and another one for the others.
fn outputs(images: u32, first: &str, others: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..images {
        let image = format!("{number}-chelsea.png");
        let class = match number {
            0 | 1 => (0, first.to_owned()),
            _ => (number, format!("{others} {number}")),
        };
        put_output(folder.path(), &image, &[(class.0, &class.1, 0.75)]);
    }
    folder
}

#[test]
fn changed_class_leads_to_its_images() {
    let images = folder_of(10, "chelsea.png");
    let mut window = open(Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "10 images, 1 predicted");
    wait_for_listing(&mut window);
    let predicted = |window: &Harness<'static, App>, class: &str| {
        let run = window.state().state().run();
        run.is_some_and(|run| {
            let labels: Vec<&str> = run.labels().iter().map(|(_, name)| name).collect();
            labels.contains(&class) && run.predictions.predicted() == 10
        })
    };
    let (right, left) = (outputs(10, "person", "b"), outputs(10, "Kite", "a"));
    open_folder_of_outputs(&mut window, right.path());
    wait_until(&mut window, "the first run", |window| predicted(window, "person"));
    let right_run = window.state().state().run().unwrap().id();
    open_folder_of_outputs(&mut window, left.path());
    wait_until(&mut window, "the second run", |window| predicted(window, "Kite"));
    window.state_mut().command(ReviewCommand::Compare(right_run));
    let found = |window: &Harness<'static, App>| {
        let state = window.state().state();
        let mut found: Vec<u32> = state.order().ids().map(|id| id.0).collect();
        found.sort_unstable();
        found
    };
    wait_for(&mut window, "Kite → person, 2 images");
    click(&mut window, "Kite → person, 2 images");
    wait_until_idle(&mut window);
    assert_eq!(found(&window), [0, 1]);
    click(&mut window, "Kite → person, 2 images");
    wait_until_idle(&mut window);
    assert_eq!(found(&window).len(), 10, "a second click");

    let folded = (2..10).map(|number| format!("a {number} → b {number}, 1 image")).filter(|row| !sees(&window, row));
    let [folded] = &folded.collect::<Vec<_>>()[..] else {
        panic!("eight of nine changes on screen");
    };
    click(&mut window, "and 1 more");
    wait_for(&mut window, folded);
    click(&mut window, folded);
    wait_until_idle(&mut window);
    assert_eq!(found(&window).len(), 1);
    let shown = found(&window)[0];
    assert_eq!(*folded, format!("a {shown} → b {shown}, 1 image"));
    click(&mut window, "End comparison");
    wait_until_idle(&mut window);
    assert_eq!(found(&window).len(), 10, "no comparison");
}

#[test]
fn classifiers_are_compared_by_coverage() {
    let images = folder_of(12, "chelsea.png");
    let files = tempfile::tempdir().unwrap();
    let mut truth = "image,label\n".to_owned();
    for number in 0..12 {
        let image = format!("{number}-chelsea.png");
        let (right, wrong) = if number % 2 == 0 { ("cat", "dog") } else { ("dog", "cat") };
        writeln!(truth, "{image},{right}").unwrap();
        let score = 0.99 - 0.05 * f64::from(number);
        // A is wrong where its score is low, B also elsewhere.
        for (run, is_right) in [("a", number < 9), ("b", number % 3 > 0)] {
            let class = if is_right { right } else { wrong };
            std::fs::create_dir_all(files.path().join(run)).unwrap();
            put_output(&files.path().join(run), &image, &[(u32::from(class == "dog"), class, score)]);
        }
    }
    let truth_file = files.path().join("truth.csv");
    std::fs::write(&truth_file, truth).unwrap();
    let mut window = open(Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "12 images, 1 predicted");
    wait_for_listing(&mut window);
    let mut runs = Vec::new();
    for run in ["b", "a"] {
        open_folder_of_outputs(&mut window, &files.path().join(run));
        wait_until(&mut window, "the outputs", |window| {
            let run = window.state().state().run();
            run.is_some_and(|run| !run.info.key.made.is_here() && run.predictions.predicted() == 12)
                && window.state().state().runs.iter().count() == runs.len() + 2
        });
        runs.push(window.state().state().run().unwrap().id());
    }
    open_truth(&mut window, truth_file);
    wait_for(&mut window, "Accuracy by coverage, top-1 0.750");
    window.state_mut().command(ReviewCommand::Compare(runs[0]));
    wait_for(&mut window, "Accuracy by coverage, A: top-1 0.750, B: top-1 0.667");
    let chart = window.get_by_label_contains("Accuracy by coverage, A").rect();
    window.hover_at(chart.center());
    // A has 6 of 12 images with a score of at least 0.74, all of them correct.
    wait_for(&mut window, "A: score ≥ 0.74: accuracy 1.000, coverage 0.500");
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinClassScore(0.6)));
    wait_for(&mut window, "A: top-1 0.750, score ≥ 0.60: accuracy 1.000, coverage 0.667");
}

#[test]
fn compare_command_reveals_the_comparison() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    window.set_size(egui::Vec2::new(1024.0, 700.0));
    window.state_mut().command(Action::CompareRuns);
    wait_for(&mut window, "100.0% agree");
    window.run_steps(20);
    let heading = window.query_all_by_label_contains("100.0% agree").next().unwrap().rect();
    assert!(window.ctx.content_rect().contains_rect(heading), "{heading:?}");
    let runs = window.state().state().runs.iter().count();
    assert_eq!(runs, 2);
    window.state_mut().command(Action::CompareRuns);
    wait_until(&mut window, "the end", |window| window.state().state().comparing.is_none());
}

#[test]
fn other_run_is_read_for_its_evaluation() {
    let (images, projects) = (folder_of(2, "coffee.png"), tempfile::tempdir().unwrap());
    let mut window = open_in(projects.path(), Some(images.path()), DETECTOR);
    wait_for(&mut window, "1 of ");
    predict_all(&mut window);
    window.state_mut().command(InferenceCommand::SetThreads(Some(1)));
    predict_all(&mut window);
    let cup = serde_json::json!({
        "images": [{"id": 1, "file_name": "0-coffee.png"}, {"id": 2, "file_name": "1-coffee.png"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 47, "bbox": [173, 21, 239, 228]}],
        "categories": [{"id": 47, "name": "cup"}],
    });
    let truth = projects.path().join("truth.json");
    std::fs::write(&truth, cup.to_string()).unwrap();
    open_truth(&mut window, truth);
    wait_for(&mut window, "All saved");
    drop(window);

    let mut again = open_in(projects.path(), Some(images.path()), DETECTOR);
    wait_until(&mut again, "the evaluation", |window| window.state().state().outcome_counts().is_some());
    let state = again.state().state();
    let on_screen = state.run().unwrap().id();
    let other = state.runs.iter().map(Run::id).find(|run| *run != on_screen).unwrap();
    again.state_mut().command(ReviewCommand::Compare(other));
    wait_until(&mut again, "its evaluation", |window| window.state().state().other_evaluated().is_some());
    wait_for(&mut again, "Precision-recall curves for all classes");
    wait_for(&mut again, "Class cup: GT 1");
}
