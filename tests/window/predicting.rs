use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::{PredictionContent, SampleId, SampleUri};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, ReviewCommand, ViewChange};

use crate::support::spotcheck;
use crate::window::{click, folder_of, open, samples, sees, text_field, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

#[test]
fn opened_image_is_predicted() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    // The reference score (tests/golden) is 0.383.
    wait_for(&mut window, "tiger cat 38.3%");
    assert!(sees(&window, "chelsea.png, tiger cat 38%"));
    assert!(sees(&window, "EfficientNet-Lite0 on CPU"));
}

#[test]
fn minimum_score_changes_boxes_and_headlines() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    let before = boxes(&window);
    let slider = window.get_by_role_and_label(egui::accesskit::Role::Slider, "Minimum score");
    slider.set_value_accesskit(0.1);
    window.step();
    window.step();
    let after = boxes(&window);
    assert!(after > before, "{before} boxes, then {after}");
    let headline = format!("coffee.png, {after} boxes");
    wait_for(&mut window, &headline);
    click(&mut window, "Reset filters");
    wait_until(&mut window, "the boxes as before", |window| boxes(window) == before);
}

/// As counted by the state; each is a line of the list.
fn boxes(window: &egui_kittest::Harness<'static, spotcheck::window::app::App>) -> usize {
    let state = window.state().state();
    state.shown_boxes().len()
}

#[test]
fn box_is_selected_from_the_list() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    click(&mut window, "cup ");
    assert!(window.state().state().shown.selected_box.is_some());
    click(&mut window, "cup ");
    assert!(window.state().state().shown.selected_box.is_none());
}

#[test]
fn hidden_class_hides_its_boxes() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    // The histogram moves everything below it when it appears, and the section opens slowly.
    wait_until(&mut window, "the histogram", |window| window.state().state().arranging.statistics().is_some());
    click(&mut window, "By class");
    window.run_steps(8);
    let before = boxes(&window);
    let checkbox = window.get_by_role_and_label(egui::accesskit::Role::CheckBox, "cup");
    checkbox.click_accesskit();
    wait_until(&mut window, "the boxes to go", |window| boxes(window) < before);
}

#[test]
fn predict_all_predicts_every_image() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 predicted");
    window.state_mut().command(Action::ToggleTasks);
    wait_for(&mut window, "✓ ");
}

#[test]
fn window_and_cli_predict_bit_for_bit() {
    for (model, predictions) in [(CLASSIFIER, "classes"), (DETECTOR, "detections")] {
        let mut window = open(Some(&samples()), model);
        wait_for(&mut window, "1 predicted");
        click(&mut window, "Predict all");
        wait_for(&mut window, "8 predicted");
        let arguments = ["predict", "assets/samples", "--model", model, "--out", "-"];
        let output = spotcheck(&arguments).output().unwrap();
        let state = window.state().state();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let uri = SampleUri::new(line["uri"].as_str().unwrap());
            let sample = state.samples.find(&uri).unwrap();
            let shown = state.prediction_of(sample).unwrap().clone();
            let written = line[predictions].clone();
            let written = match shown.content {
                PredictionContent::Classes(_) => PredictionContent::Classes(serde_json::from_value(written).unwrap()),
                PredictionContent::Detections(_) => {
                    PredictionContent::Detections(serde_json::from_value(written).unwrap())
                }
            };
            assert_eq!(shown.content, written, "{uri}");
        }
    }
}

#[test]
fn canceled_prediction_keeps_results() {
    let folder = folder_of(400, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_until(&mut window, "some predictions", |window| {
        window.state().state().run().unwrap().predictions.predicted() > 3
    });
    click(&mut window, "Predict 399 images");
    click(&mut window, "Cancel");
    wait_for(&mut window, "Canceled");
    let predicted = window.state().state().run().unwrap().predictions.predicted();
    assert!((3..400).contains(&predicted), "{predicted}");
    assert!(sees(&window, &format!("{predicted} predicted")));
}

#[test]
fn paused_prediction_resumes() {
    let folder = folder_of(60, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    // The status bar leads to the tasks.
    wait_for(&mut window, "Predict 59 images");
    click(&mut window, "Predict 59 images");
    wait_for(&mut window, "Pause");
    click(&mut window, "Pause");
    wait_for(&mut window, "paused");
    click(&mut window, "Resume");
    wait_for(&mut window, "60 predicted");
}

#[test]
fn chosen_model_predicts_immediately() {
    let mut window = open(Some(&samples().join("chelsea.png")), DETECTOR);
    wait_for(&mut window, "cat ");
    let picker = window.get_by_role_and_label(egui::accesskit::Role::ComboBox, "Model");
    picker.click();
    window.run_steps(3);
    let choice = window.query_all_by_label("EfficientNet-Lite0").next();
    choice.expect("the other model is offered").click();
    wait_for(&mut window, "tiger cat 38.3%");
}

#[test]
fn unusable_runtime_does_not_stop_browsing() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Device");
    let field = text_field(&window, "ONNX Runtime library");
    field.focus();
    field.type_text("/no/such/libonnxruntime.so");
    window.step();
    window.key_press(egui::Key::Enter);
    wait_until(&mut window, "the failure", |window| {
        let failure = window.state().state().inference.failure();
        failure.is_some_and(|failure| failure.message.contains("/no/such/libonnxruntime.so"))
    });
    window.step();
    assert!(sees(&window, "Retry"));
    window.key_press(egui::Key::Escape);
    window.step();
    window.key_press(egui::Key::End);
    wait_for(&mut window, "8 of 8 images");
}

#[test]
fn large_numbers_of_images_are_grouped() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("0.png");
    image::RgbImage::new(8, 8).save(&image).unwrap();
    for number in 1..1202 {
        std::fs::copy(&image, folder.path().join(format!("{number}.png"))).unwrap();
    }
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1,202 images, 1 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::PredictAll);
    window.state_mut().command(Action::PauseTasks);
    wait_for(&mut window, "Predict 1,201 images");
    window.state_mut().command(Action::ToggleTasks);
    wait_for(&mut window, " of 1,201");
    window.state_mut().command(Action::SelectAll);
    wait_for(&mut window, "1,202 selected");
}

#[test]
fn hidden_list_boxes_are_one_click_away() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinScore(0.1)));
    wait_until(&mut window, "more boxes", |window| boxes(window) > 5);
    let all = boxes(&window);
    let rows = |window: &Harness<'static, App>| window.query_all_by_label_contains("%").count();
    let before = rows(&window);
    click(&mut window, &format!("Show all {all}"));
    window.run_steps(2);
    assert_eq!(rows(&window) - before, all - 5);
    click(&mut window, "Show fewer");
    window.run_steps(2);
    assert_eq!(rows(&window), before);
}

#[test]
fn class_filter_lists_classes_of_all_images() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 predicted");
    wait_until_idle(&mut window);
    if !sees(&window, "Show only ") {
        click(&mut window, "By class");
    }
    // The image in view has no cat.
    assert!(
        !window.state().state().prediction_of(SampleId(0)).unwrap().detections().iter().any(|one| one.label == "cat")
    );
    wait_for(&mut window, "Show only cat");
}

#[test]
fn predicted_image_offers_predict_again() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    wait_for(&mut window, "Predict again");
    assert!(!sees(&window, "Predict this image"));
    click(&mut window, "Predict again");
    wait_until_idle(&mut window);
    wait_for(&mut window, "1 predicted");
}
