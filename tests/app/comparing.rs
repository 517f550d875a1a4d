use egui_kittest::Harness;
use spotcheck::app::App;
use spotcheck::review::SortBy;
use spotcheck::state::{Action, Command};

use crate::window::{click, folder_of, open, samples, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

/// Two runs of one model over three images, the second with one thread.
fn two_runs(model: &str, source: &std::path::Path) -> Harness<'static, App> {
    let mut window = open(Some(source), model);
    wait_for(&mut window, "1 of ");
    predict_all(&mut window);
    window.state_mut().command(Command::SetThreads(Some(1)));
    predict_all(&mut window);
    click(&mut window, "Runs");
    window
}

fn predict_all(window: &mut Harness<'static, App>) {
    wait_until(window, "the model", |window| {
        let state = window.state().state();
        state.run().is_some_and(|run| run.answers.answered() > 0)
    });
    window.state_mut().command(Action::PredictAll.into());
    wait_until(window, "all answers", |window| {
        let state = window.state().state();
        let answered = state.run().map_or(0, |run| run.answers.answered());
        answered == state.samples.len() && state.tasks.is_idle() && state.project.unsaved() == 0
    });
}

#[test]
fn two_runs_of_one_model_agree_and_are_sorted_by_disagreement() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    click(&mut window, "Compare with EfficientNet-Lite0");
    wait_for(&mut window, "100.0 % agree: 3 of 3 images");
    assert!(sees(&window, "This image: the same class"));
    let state = window.state().state();
    assert_eq!(state.arranging.sort().by, SortBy::Disagreement);
    click(&mut window, "End the comparison");
    wait_until(&mut window, "the comparison to end", |window| {
        !sees(window, "agree: 3 of 3")
    });
}

#[test]
fn boxes_of_two_runs_lie_over_each_other_with_a_legend() {
    let mut window = two_runs(DETECTOR, &samples().join("coffee.png"));
    click(&mut window, "Compare with ");
    wait_for(&mut window, "100.0 % agree: 1 of 1 images");
    wait_for(&mut window, "Dashed: ");
    assert!(sees(&window, "0 only in the first, 0 only in the second"));
    window
        .state_mut()
        .command(Command::ChangeView(spotcheck::state::ViewChange::MinScore(
            0.2,
        )));
    wait_for(
        &mut window,
        "The filters have changed since this was compared",
    );
    click(&mut window, "Compare again");
    wait_until(&mut window, "the new comparison", |window| {
        !sees(window, "The filters have changed") && sees(window, "100.0 % agree")
    });
}

#[test]
fn a_run_is_named_and_deleted_after_a_question() {
    let folder = folder_of(1, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    click(&mut window, "Delete EfficientNet-Lite0, 1 thread…");
    wait_for(&mut window, "This cannot be undone");
    click(&mut window, "Keep it");
    assert_eq!(window.state().state().runs.iter().count(), 2);
    click(&mut window, "Delete EfficientNet-Lite0, 1 thread…");
    click(&mut window, "Delete this run");
    wait_until(&mut window, "one run to be left", |window| {
        window.state().state().runs.iter().count() == 1
    });
}

#[test]
fn two_runs_lie_side_by_side_each_under_its_name() {
    let folder = folder_of(1, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    click(&mut window, "Compare with EfficientNet-Lite0");
    wait_for(&mut window, "100.0 % agree");
    click(&mut window, "Side by side");
    wait_for(&mut window, "EfficientNet-Lite0\ntiger cat 38.3 %");
    wait_for(
        &mut window,
        "EfficientNet-Lite0, 1 thread\ntiger cat 38.3 %",
    );
    click(&mut window, "Overlaid");
    wait_until(&mut window, "one picture", |window| {
        !sees(window, "EfficientNet-Lite0\ntiger cat")
    });
}
