//! The form for a model of the user's own, by its visible labels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use egui::Key;
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use serde_json::Value;
use spotcheck::domain::{
    BoxesBack, ChannelOrder, ClassScore, Detection, OutputConvention, Prediction, PredictionContent, ResizeRule,
};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, ImportForm};

use crate::browsing::drop_on;
use crate::layout::wheel;
use crate::support::repository;
use crate::window::{click, home_with_runtime, open, open_at, samples, sees, wait_for, wait_for_notice, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";
const SCORE_TOLERANCE: f64 = 1e-4;
/// The largest difference of an edge, in pixels.
const EDGE_TOLERANCE: f64 = 0.05;

/// A window on an image, with the form for a model of the conventions.
fn open_form(case: &str) -> Harness<'static, App> {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    drop_case(&mut window, case);
    wait_until_tried(&mut window);
    window
}

/// As a file manager opens a model.
#[test]
fn model_as_the_programs_argument_opens_the_form() {
    let model = repository().join("tests/cases/conventions/keras-cifar10/model.onnx");
    let mut window = open(Some(&model), CLASSIFIER);
    wait_for(&mut window, "Add a model");
}

pub(crate) fn drop_case(window: &mut Harness<'static, App>, case: &str) {
    drop_on(window, &repository().join("tests/cases/conventions").join(case).join("model.onnx"));
    wait_for(window, "Add a model");
}

#[track_caller]
pub(crate) fn wait_until_tried(window: &mut Harness<'static, App>) {
    wait_until(window, "the preview", |window| {
        form(window).is_some_and(|form| form.trial.is_some() && !form.is_trying)
    });
    // The dialog has its final position.
    window.run_steps(4);
}

fn form<'w>(window: &'w Harness<'static, App>) -> Option<&'w ImportForm> {
    window.state().state().import.as_ref()?.form()
}

/// Waits until the form reports a problem that prevents adding this card, shows it, and returns it.
#[track_caller]
fn wait_for_problem(window: &mut Harness<'static, App>, field: &str) -> String {
    fn problem<'w>(window: &'w Harness<'static, App>, field: &str) -> Option<&'w str> {
        let form = form(window).filter(|form| !form.is_trying)?;
        let problem = form.problems().iter().find(|problem| problem.is_fatal && problem.field.starts_with(field))?;
        sees(window, &problem.text).then_some(&problem.text)
    }
    wait_until(window, field, |window| problem(window, field).is_some());
    assert!(!can_be_added(window), "{field}");
    problem(window, field).unwrap().to_owned()
}

/// Waits until the model is in the library, and the window reports it.
#[track_caller]
fn wait_until_added(window: &mut Harness<'static, App>, id: &str) {
    wait_until(window, "the added model", |window| window.state().state().models.get(id).is_some());
    wait_for_notice(window, id);
}

fn classes(window: &Harness<'static, App>) -> Vec<ClassScore> {
    let trial = form(window).and_then(|form| form.trial.as_ref()).unwrap();
    match &trial.prediction.as_ref().unwrap().content {
        PredictionContent::Classes(classes) => classes.clone(),
        PredictionContent::Detections(_) => panic!("a classifier gives classes"),
    }
}

/// The window on the image of the detectors, with the form for the detector of a case.
fn open_detector(case: &str) -> Harness<'static, App> {
    let mut window = open(Some(&detectors().join("scene.png")), CLASSIFIER);
    wait_until(&mut window, "a prediction", |window| window.state().state().shown.prediction.is_some());
    drop_on(&mut window, &detectors().join(case).join("model.onnx"));
    wait_until_tried(&mut window);
    window
}

fn detectors() -> PathBuf {
    repository().join("tests/cases/detectors")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Checks that the preview shows the boxes of the case, best first.
#[track_caller]
fn previews(window: &Harness<'static, App>, case: &str) {
    let trial = form(window).and_then(|form| form.trial.as_ref()).unwrap();
    assert!(trial.problems.is_empty(), "{:?}", trial.problems);
    shows_boxes_of(trial.prediction.as_ref().unwrap(), case);
}

#[track_caller]
fn shows_boxes_of(prediction: &Prediction, case: &str) {
    let expected = json(&detectors().join(case).join("expected.json"));
    let min_score = expected["min_score"].as_f64().unwrap() as f32;
    let sure: Vec<&Detection> = prediction.detections().iter().filter(|found| found.score >= min_score).collect();
    let expected = expected["detections"].as_array().unwrap();
    assert_eq!(sure.len(), expected.len(), "{case}");
    for (got, expected) in sure.iter().zip(expected) {
        assert_eq!(u64::from(got.class_id), expected["class_id"].as_u64().unwrap(), "{got:?}: {expected}");
        let score = f64::from(got.score) - expected["score"].as_f64().unwrap();
        let edges: [f32; 4] = got.bounds.into();
        let mut edges = edges.iter().zip(expected["box"].as_array().unwrap());
        let is_close = edges.all(|(got, edge)| (f64::from(*got) - edge.as_f64().unwrap()).abs() <= EDGE_TOLERANCE);
        assert!(is_close && score.abs() <= SCORE_TOLERANCE, "{got:?}: {expected}");
    }
}

#[track_caller]
fn can_be_added(window: &Harness<'static, App>) -> bool {
    !window.get_by_role_and_label(Role::Button, "Add this model").accesskit_node().is_disabled()
}

fn choose(window: &mut Harness<'static, App>, menu: &str, value: &str) {
    window.get_by_role_and_label(Role::ComboBox, menu).scroll_to_me();
    window.run_steps(30);
    window.get_by_role_and_label(Role::ComboBox, menu).click();
    window.run_steps(3);
    let exact = window.query_all_by_label(value).last();
    let found = exact.or_else(|| window.query_all_by_label_contains(value).last());
    found.unwrap_or_else(|| panic!("{menu} has no {value}")).click();
    window.run_steps(3);
}

#[test]
fn dropped_model_is_explained_and_previewed() {
    let mut window = open_form("keras-cifar10");
    for part in ["model.onnx", "⚠ assumed", "recognized", "Model input", "made from chelsea.png", "Preview"] {
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
fn labels_that_do_not_fit_are_flagged() {
    let mut window = open_form("keras-cifar10");
    assert!(can_be_added(&window));
    choose(&mut window, "Labels", "ImageNet (1000)");
    let problem = wait_for_problem(&mut window, "labels");
    assert!(problem.contains(" 10 ") && problem.contains(" 1000"), "{problem}");
    choose(&mut window, "Labels", "CIFAR-10");
    wait_until(&mut window, "labels that fit", |window| !sees(window, &problem));
    assert!(can_be_added(&window));
    choose(&mut window, "Labels", "From a file");
    wait_for_problem(&mut window, "labels");
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("data.yaml");
    std::fs::write(&names, format!("nc: 10\nnames: [{}]\n", ["thing"; 10].join(", "))).unwrap();
    let field = window.get_by_role_and_label(Role::TextInput, "Label file");
    field.focus();
    field.type_text(names.to_str().unwrap());
    wait_for(&mut window, "thing ");
}

#[test]
fn invalid_values_are_flagged() {
    let mut window = open_form("keras-cifar10");
    let values = form(&window).unwrap().card.output.clone();
    choose(&mut window, "Values", "Logits (softmax follows)");
    wait_for(&mut window, "sum to 1");
    assert_ne!(form(&window).unwrap().card.output, values);
}

#[test]
fn unrecognized_model_is_completed_by_hand() {
    let mut window = open_form("refused-8-bit-logits");
    assert!(sees(&window, "Not recognized: "));
    choose(&mut window, "Values", "Probabilities");
    wait_until_tried(&mut window);
    assert!(!classes(&window).is_empty());
    assert!(can_be_added(&window));
}

#[test]
fn model_without_an_image_input_is_refused() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    drop_case(&mut window, "refused-no-image");
    wait_for(&mut window, "cannot be used");
}

#[test]
fn model_is_added_and_edited_later() {
    let home = tempfile::tempdir().unwrap();
    let mut window = open_at(home_with_runtime(home.path()), |builder| builder);
    window.state_mut().command(BrowseCommand::Open(samples().join("chelsea.png")));
    drop_case(&mut window, "keras-cifar10");
    wait_until_tried(&mut window);
    click(&mut window, "Add this model");
    wait_until_added(&mut window, "model");
    wait_for(&mut window, "Check…");
    wait_until(&mut window, "a prediction", |window| window.state().state().shown.prediction.is_some());
    let first = window.state().state().shown.prediction.clone().unwrap();

    let assumed = window.state().state().models.get("model").unwrap().card.assumed.len();
    assert!(assumed > 1 && sees(&window, &format!("{assumed} settings")), "{assumed}");
    assert!(sees(&window, "license unknown"));
    click(&mut window, "Check…");
    wait_until_tried(&mut window);
    assert!(sees(&window, "Existing predictions are"));
    choose(&mut window, "Channels", "BGR");
    wait_until_tried(&mut window);
    let previewed = classes(&window);
    click(&mut window, "Save changes");
    wait_for_notice(&mut window, "Saved");
    wait_until(&mut window, "a new prediction", |window| {
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

#[test]
fn preprocessing_preset_is_applied_by_click() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    drop_case(&mut window, "tensorflow-resnet50");
    wait_until_tried(&mut window);
    click(&mut window, "Find preprocessing…");
    wait_for(&mut window, "8 images with");
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

#[test]
fn class_folders_rank_presets_by_accuracy() {
    let expected = json(&repository().join("tests/cases/presets/expected.json"));
    let images = tempfile::tempdir().unwrap();
    for (image, folder) in expected["folders"].as_object().unwrap() {
        let folder = images.path().join(folder.as_str().unwrap());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(samples().join(image), folder.join(image)).unwrap();
    }
    let mut window = open(Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    drop_case(&mut window, expected["model"].as_str().unwrap());
    wait_until_tried(&mut window);
    assert_eq!(expected["labels"], "cifar-10");
    choose(&mut window, "Labels", "CIFAR-10");
    wait_until_tried(&mut window);
    click(&mut window, "Find preprocessing…");
    wait_for(&mut window, "4 images with");
    assert!(sees(&window, "Accuracy") && sees(&window, "75.0%"));
    let table = form(&window).unwrap().presets.ready().unwrap().clone();
    let accuracy: BTreeMap<&str, Option<f64>> =
        table.rows.iter().map(|row| (row.name.as_str(), row.accuracy)).collect();
    for (preset, share) in expected["accuracy"].as_object().unwrap() {
        assert_eq!(accuracy[preset.as_str()], share.as_f64(), "{preset}");
    }
    assert_eq!(table.rows[0].name, "keras-caffe");
    click(&mut window, "Use keras-caffe");
    wait_until_tried(&mut window);
    assert_eq!(classes(&window)[0].label, "automobile");
}

#[test]
fn split_outputs_are_selected_together() {
    let mut window = open_detector("nanodet");
    previews(&window, "nanodet");
    choose(&mut window, "Boxes", "dis_8 float32 [1, 64, 32]");
    let problem = wait_for_problem(&mut window, "");
    assert!(problem.contains(" 1 ") && problem.contains("3 for cls_8, cls_16, cls_32"), "{problem}");
    window.get_by_role_and_label(Role::ComboBox, "Boxes").click();
    window.run_steps(3);
    for output in ["dis_16", "dis_32"] {
        window.get_by_role_and_label(Role::CheckBox, &format!("Also {output}")).click();
        window.run_steps(3);
    }
    window.key_press(Key::Escape);
    wait_until_tried(&mut window);
    previews(&window, "nanodet");
    assert!(can_be_added(&window));
    assert!(!sees(&window, "set by you"));
}

#[test]
fn detector_conventions_are_menus() {
    let mut window = open_detector("yolov8");
    previews(&window, "yolov8");
    // The same graph, read like an earlier version of its exporter.
    choose(&mut window, "Map boxes back", "One ratio");
    wait_until_tried(&mut window);
    previews(&window, "yolov8-older");
    click(&mut window, "Undo: Map boxes back");
    wait_until_tried(&mut window);
    previews(&window, "yolov8");
    for (menu, value, problem) in [
        ("Labels", "COCO (80)", Some(("labels", [" 3 ", " 80"]))),
        ("Resize", "None: any size", Some(("input.resize", ["[1, 3, 64, 64]", "[1, 3, 75, 110]"]))),
        ("Activation", "Softmax", None),
    ] {
        choose(&mut window, menu, value);
        if let Some((field, numbers)) = problem {
            let problem = wait_for_problem(&mut window, field);
            assert!(numbers.iter().all(|number| problem.contains(number)), "{problem}");
        } else {
            wait_until_tried(&mut window);
        }
        click(&mut window, &format!("Undo: {menu}"));
        wait_until_tried(&mut window);
        assert!(can_be_added(&window), "{menu}");
    }
    previews(&window, "yolov8");
}

#[test]
fn output_alternatives_are_a_menu() {
    let mut window = open_detector("yolov8-rows");
    previews(&window, "yolov8-rows");
    let objectness = |window: &Harness<'static, App>| match &form(window).unwrap().card.output {
        OutputConvention::Detection(output) => output.objectness.clone(),
        other => panic!("not a detector: {other:?}"),
    };
    assert_eq!(objectness(&window), None);
    let second = form(&window).unwrap().start.readings[1].clone();
    choose(&mut window, "Read as", &second);
    wait_until_tried(&mut window);
    assert!(objectness(&window).is_some());
}

#[test]
fn detector_without_detections_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let mut window = open_at(home_with_runtime(home.path()), |builder| builder);
    window.state_mut().command(BrowseCommand::Open(samples()));
    drop_on(&mut window, &detectors().join("finds-nothing/model.onnx"));
    wait_until_tried(&mut window);
    click(&mut window, "Add this model");
    // A folder opens with another model, which could predict it as well.
    wait_until(&mut window, "the added model", |window| {
        let state = window.state().state();
        state.models.chosen_id() == Some("model") && Action::PredictAll.check(state).is_ok()
    });
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "score ≥ 0.25");
    click(&mut window, "Check preprocessing…");
    wait_for(&mut window, "Find preprocessing…");
}

#[test]
fn open_layout_and_batch_are_chosen() {
    let mut window = open_form("all-dimensions-free");
    choose(&mut window, "Layout", "batch, row");
    wait_until(&mut window, "the reason", |window| !can_be_added(window));
    wait_until_tried(&mut window);
    assert!(!can_be_added(&window));
    click(&mut window, "Undo: Layout");
    wait_until_tried(&mut window);
    choose(&mut window, "Images per call", "Any number");
    wait_for_problem(&mut window, "input.batches");
    click(&mut window, "Undo: Images");
    wait_until_tried(&mut window);
    assert!(can_be_added(&window));

    let window = open_detector("yolov8-batch-of-four");
    previews(&window, "yolov8-batch-of-four");
    assert!(window.query_by_role_and_label(Role::ComboBox, "Images per call").is_none());
    assert!(window.query_by_role_and_label(Role::ComboBox, "Layout").is_none());
    assert_eq!(form(&window).unwrap().card.input.fixed_batch, Some(4));
}

#[test]
fn fields_have_accessible_descriptions() {
    let mut window = open_detector("yolov8");
    let fields = [Role::ComboBox, Role::SpinButton, Role::CheckBox, Role::TextInput];
    let nodes = fields.into_iter().flat_map(|role| window.query_all_by_role(role));
    let described = nodes.filter(|node| node.accesskit_node().description().is_some_and(|text| text.len() > 20));
    let described: Vec<String> = described.filter_map(|node| node.accesskit_node().label()).collect();
    for field in [
        "Name",
        "Id",
        "Task",
        "Labels",
        "Resize",
        "Size, width",
        "Size, height",
        "Fill, red",
        "Position",
        "Side rounding",
        "Pad to stride",
        "Map boxes back",
        "Interpolation",
        "Channels",
        "Divide by",
        "Mean, red",
        "Std, blue",
        "Boxes",
        "Boxes, first column",
        "Candidates",
        "Box format",
        "Box space",
        "Scores",
        "Class",
        "Activation",
        "Class columns",
        "Boxes per candidate",
        "Background",
        "Objectness",
        "Class offset",
        "Maximum boxes",
        "NMS (IoU)",
    ] {
        let is_field =
            |name: &String| name == field || name.strip_prefix(field).is_some_and(|rest| rest.starts_with(", "));
        assert!(described.iter().any(is_field), "{field}: {described:?}");
    }
    let channels = window.get_by_role_and_label(Role::ComboBox, "Channels");
    let help = channels.accesskit_node().description().unwrap();
    let help = help.as_str();
    window.get_by_role_and_label(Role::ComboBox, "Interpolation").focus();
    window.run_steps(2);
    assert!(!sees(&window, help));
    window.key_press(Key::Tab);
    window.run_steps(3);
    assert!(sees(&window, help));
    window.key_press(Key::Tab);
    window.run_steps(3);
    assert!(!sees(&window, help));
}

#[test]
fn edited_detector_predicts_as_edited() {
    let home = tempfile::tempdir().unwrap();
    let mut window = open_at(home_with_runtime(home.path()), |builder| builder);
    window.state_mut().command(BrowseCommand::Open(detectors().join("scene.png")));
    drop_on(&mut window, &detectors().join("yolov8/model.onnx"));
    wait_until_tried(&mut window);
    click(&mut window, "Add this model");
    wait_until_added(&mut window, "model");
    wait_for(&mut window, "Check…");
    wait_until(&mut window, "a prediction", |window| window.state().state().shown.prediction.is_some());

    click(&mut window, "Check…");
    wait_until_tried(&mut window);
    previews(&window, "yolov8");
    choose(&mut window, "Map boxes back", "One ratio");
    wait_until_tried(&mut window);
    previews(&window, "yolov8-older");
    let before = window.state().state().shown.prediction.clone().unwrap();
    click(&mut window, "Save changes");
    wait_for_notice(&mut window, "Saved");
    wait_until(&mut window, "a new prediction", |window| {
        let shown = window.state().state().shown.prediction.as_ref();
        shown.is_some_and(|shown| shown.content != before.content)
    });
    let state = window.state().state();
    let card = &state.models.get("model").unwrap().card;
    assert!(matches!(card.input.resize, ResizeRule::Letterbox { boxes_back: BoxesBack::OneRatio, .. }), "{card:?}");
    let shown = state.shown.prediction.as_ref().unwrap();
    shows_boxes_of(&(**shown).clone().without_overlaps(card.nms_iou()), "yolov8-older");
}

#[test]
fn form_of_another_model_starts_at_the_top() {
    let mut window = open_form("keras-cifar10");
    // The dialog is centered: its own position depends on the height of the form.
    let below_title = |window: &Harness<'static, App>| {
        let title = window.get_by_role_and_label(Role::Label, "Add a model").rect();
        window.get_by_role_and_label(Role::TextInput, "Name").rect().top() - title.bottom()
    };
    let at_first = below_title(&window);
    window.hover_at(window.get_by_role_and_label(Role::TextInput, "Name").rect().center());
    window.run_steps(2);
    wheel(&mut window, -200.0);
    assert!(below_title(&window) < 0.0, "{} after {at_first}", below_title(&window));
    window.key_press(Key::Escape);
    wait_until(&mut window, "the form to close", |window| window.state().state().import.is_none());
    drop_case(&mut window, "tensorflow-resnet50");
    wait_until_tried(&mut window);
    assert_eq!(below_title(&window), at_first);
}
