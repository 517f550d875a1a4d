//! The form about a model of one's own, by its visible labels.

use std::path::Path;

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::app::App;
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{ChannelOrder, ClassScore, PredictionContent};
use spotcheck::state::{BrowseCommand, ImportForm};

use crate::browsing::drop_on;
use crate::support::{repository, runtime_home};
use crate::window::{click, open, open_at, samples, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";

/// A window on an image, with the form about a model of the conventions.
fn open_form(case: &str) -> Harness<'static, App> {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3 %");
    drop_case(&mut window, case);
    wait_until_tried(&mut window);
    window
}

fn drop_case(window: &mut Harness<'static, App>, case: &str) {
    drop_on(window, &repository().join("tests/cases/conventions").join(case).join("model.onnx"));
    wait_for(window, "Add a model");
}

#[track_caller]
pub(crate) fn wait_until_tried(window: &mut Harness<'static, App>) {
    wait_until(window, "the preview", |window| {
        form(window).is_some_and(|form| form.trial.is_some() && !form.is_trying)
    });
    // The dialog has found its place.
    window.run_steps(4);
}

fn form<'w>(window: &'w Harness<'static, App>) -> Option<&'w ImportForm> {
    window.state().state().import.as_ref()?.form()
}

fn classes(window: &Harness<'static, App>) -> Vec<ClassScore> {
    let trial = form(window).and_then(|form| form.trial.as_ref()).unwrap();
    match &trial.prediction.as_ref().unwrap().content {
        PredictionContent::Classes(classes) => classes.clone(),
        PredictionContent::Detections(_) => panic!("a classifier gives classes"),
    }
}

fn choose(window: &mut Harness<'static, App>, menu: &str, value: &str) {
    window.get_by_role_and_label(Role::ComboBox, menu).scroll_to_me();
    window.run_steps(30);
    window.get_by_role_and_label(Role::ComboBox, menu).click();
    window.run_steps(3);
    window.query_all_by_label(value).last().unwrap_or_else(|| panic!("{menu} has no {value}")).click();
    window.run_steps(3);
}

#[test]
fn a_model_that_is_dropped_is_explained_changed_and_previewed() {
    let mut window = open_form("keras-cifar10");
    for part in ["model.onnx", "⚠ assumed", "recognised", "Model input", "made from chelsea.png", "Preview"] {
        assert!(sees(&window, part), "{part}");
    }
    let before = classes(&window);
    choose(&mut window, "Channels", "BGR");
    wait_until_tried(&mut window);
    assert!(sees(&window, "set by you"));
    assert_ne!(classes(&window), before);
    click(&mut window, "Undo: Channels");
    wait_until_tried(&mut window);
    assert!(!sees(&window, "set by you"));
    assert_eq!(classes(&window), before);
    click(&mut window, "Cancel");
    wait_until(&mut window, "the dialog to close", |window| !sees(window, "Model input"));
}

#[test]
fn labels_that_do_not_fit_are_said_at_once() {
    let mut window = open_form("keras-cifar10");
    assert!(!sees(&window, "The model has 10 classes"));
    choose(&mut window, "Labels", "imagenet");
    wait_for(&mut window, "The model has 10 classes, the labels name 1000");
    choose(&mut window, "Labels", "cifar-10");
    wait_until(&mut window, "labels that fit", |window| !sees(window, "The model has 10 classes"));
    choose(&mut window, "Labels", "From a file");
    wait_for(&mut window, "Enter the path of a label file");
    assert!(window.get_by_role_and_label(Role::Button, "Add this model").accesskit_node().is_disabled());
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names.txt");
    std::fs::write(&names, ["thing"; 10].join("\n")).unwrap();
    let field = window.get_by_role_and_label(Role::TextInput, "Label file");
    field.focus();
    field.type_text(names.to_str().unwrap());
    wait_for(&mut window, "thing ");
}

#[test]
fn values_that_cannot_be_are_said_at_once() {
    let mut window = open_form("keras-cifar10");
    let values = form(&window).unwrap().card.output.clone();
    choose(&mut window, "Values", "Logits (softmax follows)");
    wait_for(&mut window, "The scores already sum to 1: choose probabilities");
    assert_ne!(form(&window).unwrap().card.output, values);
}

#[test]
fn a_model_that_is_not_recognised_is_finished_by_hand() {
    let mut window = open_form("refused-8-bit-logits");
    assert!(sees(&window, "Not recognised: "));
    choose(&mut window, "Values", "Probabilities");
    wait_until_tried(&mut window);
    assert!(!classes(&window).is_empty());
    let add = window.get_by_role_and_label(Role::Button, "Add this model");
    assert!(!add.accesskit_node().is_disabled());
}

#[test]
fn a_model_without_an_image_input_is_refused_with_the_reason() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3 %");
    drop_case(&mut window, "refused-no-image");
    wait_for(&mut window, "cannot be used");
}

#[test]
fn a_model_is_added_and_edited_later() {
    let home = tempfile::tempdir().unwrap();
    let mut window = open_at(home_with_runtime(home.path()), |builder| builder);
    window.state_mut().command(BrowseCommand::Open(samples().join("chelsea.png")));
    drop_case(&mut window, "keras-cifar10");
    wait_until_tried(&mut window);
    click(&mut window, "Add this model");
    wait_for(&mut window, "Added the model model");
    wait_for(&mut window, "Check and edit…");
    wait_until(&mut window, "a prediction", |window| window.state().state().shown.prediction.is_some());
    let first = window.state().state().shown.prediction.clone().unwrap();

    click(&mut window, "Check and edit…");
    wait_until_tried(&mut window);
    assert!(sees(&window, "Predictions that were made before stay as they are"));
    choose(&mut window, "Channels", "BGR");
    wait_until_tried(&mut window);
    let previewed = classes(&window);
    click(&mut window, "Save changes");
    wait_for(&mut window, "Saved the model model");
    wait_until(&mut window, "a prediction of the edited model", |window| {
        let shown = window.state().state().shown.prediction.as_ref();
        shown.is_some_and(|shown| shown.content != first.content)
    });
    let state = window.state().state();
    assert_eq!(state.models.get("model").unwrap().card.input.channels, ChannelOrder::Bgr);
    assert_eq!(state.shown.prediction.as_ref().unwrap().content, PredictionContent::Classes(previewed));
    let runs = state.runs.iter().filter(|run| run.info.card.id == "model");
    let channels = runs.map(|run| run.info.card.input.channels);
    assert_eq!(channels.collect::<Vec<_>>(), [ChannelOrder::Rgb, ChannelOrder::Bgr]);
}

fn home_with_runtime(home: &Path) -> AppDirs {
    let dirs = AppDirs::below(home);
    std::fs::create_dir_all(&dirs.data).unwrap();
    let runtime = AppDirs::below(runtime_home()).data.join("runtime");
    std::os::unix::fs::symlink(runtime, dirs.data.join("runtime")).unwrap();
    dirs
}

#[test]
fn common_preprocessing_is_compared_and_taken_with_a_click() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    drop_case(&mut window, "tensorflow-resnet50");
    wait_until_tried(&mut window);
    click(&mut window, "Find preprocessing…");
    wait_for(&mut window, "8 images with each common way");
    for part in ["Top score", "Entropy", "chelsea.png", "✓ in use", "Use "] {
        assert!(sees(&window, part), "{part}");
    }
    let before = form(&window).unwrap().card.clone();
    let table = form(&window).unwrap().presets.ready().unwrap().clone();
    let other = table.rows.iter().find(|row| row.input != before.input).unwrap();
    assert_eq!(other.best.len(), 8);
    click(&mut window, &format!("Use {}", other.name));
    wait_until_tried(&mut window);
    assert_eq!(form(&window).unwrap().card.input, other.input);
    assert!(sees(&window, "set by you"));
}
