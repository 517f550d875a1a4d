//! The recognizer on the real runtime: graphs with the interface of well-known models, each also with every input and
//! output renamed, and unusable graphs (all made by `tests/cases/conventions/make.py`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use spotcheck::domain::{LabelSet, ModelCard, OutputConvention};
use spotcheck::model::catalog::{Model, check_card, parse_card};
use spotcheck::model::onnx::{InspectError, Inspection, labels_of};
use spotcheck::model::recognize::{Basis, Overrules, Recognition, RecognizeError, preset};

use crate::support::models::{Runtime, control, predict};

const SCORE_TOLERANCE: f64 = 1e-4;
/// The largest difference of an edge, in pixels.
const EDGE_TOLERANCE: f64 = 0.05;

#[test]
fn conventions_are_recognized_and_gaps_assumed() {
    let runtime = Runtime::load();
    let mut complaints = String::new();
    for (case, expected) in cases().into_iter().filter(|(_, expected)| expected["card"].is_object()) {
        match recognize(runtime, &case.join("model.onnx")) {
            Ok(got) => complaints += &differences(&case, &got, &expected),
            Err(error) => writeln!(complaints, "{}: {error}", case.display()).unwrap(),
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn tensor_names_do_not_decide() {
    let runtime = Runtime::load();
    // Nothing but its names identifies a model of the ONNX Model Zoo.
    let decides = |expected: &Value| expected["names_decide"] == true;
    for (case, _) in cases().into_iter().filter(|(_, expected)| expected["card"].is_object() && !decides(expected)) {
        let known = recognize(runtime, &case.join("model.onnx")).unwrap();
        let renamed = recognize(runtime, &case.join("renamed.onnx")).unwrap();
        assert_eq!(without_names(&known), without_names(&renamed), "{}", case.display());
    }
}

#[test]
fn unusable_models_are_refused_with_the_reason() {
    let runtime = Runtime::load();
    for (case, expected) in cases() {
        let Some(reason) = expected["refused"].as_str() else {
            continue;
        };
        // Some outputs are recognized only by their names.
        let names_decide = expected["names_decide"] == true;
        for file in ["model.onnx", "renamed.onnx"].into_iter().filter(|file| !names_decide || *file == "model.onnx") {
            let error = recognize(runtime, &case.join(file)).expect_err(reason);
            let text = error.to_string();
            // The renamed graph is rejected as well, with other names in the text.
            assert!(file == "renamed.onnx" || text.contains(reason), "{}: {text}", case.display());
            let InspectError::Refused { reason: RecognizeError::Refused(refusal), .. } = error else {
                panic!("{}: {text}", case.display());
            };
            let nearest = refusal.nearest.map(|nearest| nearest.exporter);
            assert_eq!(nearest, expected["nearest"].as_str(), "{}", case.display());
            for shape in expected["shapes"].as_array().into_iter().flatten() {
                assert!(text.contains(shape.as_str().unwrap()), "{shape}: {text}");
            }
        }
    }
}

#[test]
fn both_detector_kinds_return_image_pixels() {
    let runtime = Runtime::load();
    let mut compared = 0;
    for (case, expected) in cases() {
        let Some(expected) = expected["detections"].as_array() else {
            continue;
        };
        let (model, _) = runtime.recognize_file(&case.join("model.onnx")).unwrap();
        let got = predict(&runtime.predictor(&model), &case.join("picture.png"));
        assert_eq!(got.detections().len(), expected.len(), "{}: {got:?}", case.display());
        for (got, expected) in got.detections().iter().zip(expected) {
            let context = format!("{}: got {got:?}, expected {expected}", case.display());
            assert_eq!(Some(u64::from(got.class_id)), expected["class_id"].as_u64(), "{context}");
            let difference = f64::from(got.score) - expected["score"].as_f64().unwrap();
            assert!(difference.abs() <= SCORE_TOLERANCE, "{context}");
            let edges: [f32; 4] = got.bounds.into();
            for (got, expected) in edges.iter().zip(expected["box"].as_array().unwrap()) {
                let difference = f64::from(*got) - expected.as_f64().unwrap();
                assert!(difference.abs() <= EDGE_TOLERANCE, "{context}");
            }
            let name = model.labels.get(got.class_id);
            assert_eq!(name, Some(&*got.label), "COCO's names were assumed: {context}");
            compared += 1;
        }
    }
    assert_eq!(compared, 5);
}

#[test]
fn classifiers_match_their_exporters() {
    let runtime = Runtime::load();
    let mut compared = 0;
    for (case, expected) in cases() {
        let Some(classes) = expected["classes"].as_object() else {
            continue;
        };
        let (mut model, _) = runtime.recognize_file(&case.join("model.onnx")).unwrap();
        if let Some(name) = expected["preset"].as_str() {
            model.card.input = preset(model.card.task, &model.card.input, name).unwrap().input;
        }
        let image = crate::support::repository().join(expected["image"].as_str().unwrap());
        let got = predict(&runtime.predictor(&model), &image);
        assert_eq!(got.classes().len(), classes.len().min(5), "{}: {got:?}", case.display());
        for class in got.classes() {
            let difference = f64::from(class.score) - classes[&class.label].as_f64().unwrap();
            assert!(difference.abs() <= SCORE_TOLERANCE, "{}: got {got:?}, expected {classes:?}", case.display());
        }
        compared += 1;
    }
    assert!(compared >= 17, "{compared}");
}

#[test]
fn preprocessing_files_are_found_above_an_onnx_folder() {
    let runtime = Runtime::load();
    let folder = tempfile::tempdir().unwrap();
    let case = case_folder().join("transformers-deit");
    let graphs = folder.path().join("onnx");
    std::fs::create_dir(&graphs).unwrap();
    std::fs::copy(case.join("model.onnx"), graphs.join("model_quantized.onnx")).unwrap();
    for file in ["config.json", "preprocessor_config.json"] {
        std::fs::copy(case.join(file), folder.path().join(file)).unwrap();
    }
    let beside = recognize(runtime, &case.join("model.onnx")).unwrap();
    let above = recognize(runtime, &graphs.join("model_quantized.onnx")).unwrap();
    assert_eq!(above.card.input, beside.card.input);
    assert_eq!(above.labels, beside.labels);
    assert_eq!(above.with_basis(Basis::Assumed).count(), 0, "{:?}", above.findings);
    let resize = above.findings.iter().find(|finding| finding.field == "input.resize").unwrap();
    assert!(resize.because.contains("../preprocessor_config.json"), "{resize:?}");

    // In a folder with another name, nothing is known.
    let other = folder.path().join("graphs");
    std::fs::rename(&graphs, &other).unwrap();
    let alone = recognize(runtime, &other.join("model_quantized.onnx")).unwrap();
    assert_ne!(alone.card.input.resize, beside.card.input.resize);
    assert_eq!(alone.labels, None);
}

#[test]
fn nearest_matching_label_file_is_used() {
    let runtime = Runtime::load();
    for (case, beside, other) in
        [("transformers-deit", "config.json", "labels.txt"), ("../detectors/yolox", "classes.txt", "other.names")]
    {
        let folder = tempfile::tempdir().unwrap();
        let case = case_folder().join(case);
        for file in ["model.onnx", beside] {
            std::fs::copy(case.join(file), folder.path().join(file)).unwrap();
        }
        let labels = |folder: &Path| {
            let got = recognize(runtime, &folder.join("model.onnx")).unwrap();
            let because = got.findings.iter().find(|finding| finding.field == "labels").unwrap().because.clone();
            (got.labels, because)
        };
        let (alone, because) = labels(folder.path());
        assert!(because.contains(beside) && !because.contains(other), "{because}");
        std::fs::write(folder.path().join(other), "one\ntwo\nthree\n").unwrap();
        let (nearest, because) = labels(folder.path());
        assert_eq!(nearest, alone);
        assert!(because.contains(beside) && because.contains(other), "{because}");
    }
}

#[test]
fn extra_class_is_the_background() {
    let runtime = Runtime::load();
    let folder = tempfile::tempdir().unwrap();
    let case = case_folder().join("tflite-inaturalist");
    let weights = folder.path().join("model.onnx");
    std::fs::copy(case.join("model.onnx"), &weights).unwrap();
    let names = std::fs::read_to_string(case.join("labels.txt")).unwrap();
    std::fs::write(folder.path().join("labels.txt"), names.strip_suffix("background\n").unwrap()).unwrap();
    let first = recognize(runtime, &weights).unwrap();
    let background = first.with_basis(Basis::Assumed).find(|finding| finding.field.ends_with("background")).unwrap();
    assert_eq!(background.value, "first");

    let mut inspection = Inspection::open(&runtime.0, &weights).unwrap();
    let overrules = Overrules::parse(&["output.classification.background=last"]).unwrap();
    let mut last = inspection.recognize(None, &overrules, &control()).unwrap();
    last.card.input = preset(last.card.task, &last.card.input, "in-graph-bilinear").unwrap().input;
    let model = Model { labels: labels_of(&last), card: last.card, weights };
    let text = std::fs::read_to_string(case.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let image = crate::support::repository().join(expected["image"].as_str().unwrap());
    let got = predict(&runtime.predictor(&model), &image);
    assert_eq!(got.classes().len(), 5);
    for class in got.classes() {
        let difference = f64::from(class.score) - expected["classes"][&class.label].as_f64().unwrap();
        assert!(difference.abs() <= SCORE_TOLERANCE, "{got:?}");
    }
}

#[test]
fn torchvision_exports_get_their_handwritten_card() {
    let runtime = Runtime::load();
    for case in ["resnet50", "faster-rcnn"] {
        let folder = crate::support::repository().join("tests/parity").join(case);
        let text = std::fs::read_to_string(folder.join("model.toml")).unwrap();
        let mut written = parse_card(&text, Path::new(case)).unwrap();
        let mut got = recognize(runtime, &folder.join("model.onnx")).unwrap().card;
        // The random classes of these graphs have no names, however many there are.
        got.labels = None;
        if let OutputConvention::Detection(output) = &mut written.output {
            // No test image reveals what a graph suppresses.
            output.min_score_in_graph = 0.0;
            output.nms_iou_in_graph = None;
            output.max_boxes_in_graph = None;
        }
        assert_eq!(without_name(&got), without_name(&written), "{case}");
        assert_eq!(got.file, written.file, "{case}");
    }
}

#[test]
fn label_file_of_another_model_is_refused() {
    let runtime = Runtime::load();
    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|class| format!("name {class}")).collect();
        LabelSet::parse(&names.join("\n")).unwrap()
    };
    let recognize = |case: &str, count: usize| {
        let weights = case_folder().join(case).join("model.onnx");
        let mut inspection = Inspection::open(&runtime.0, &weights).unwrap();
        inspection.recognize(Some(&names(count)), &Overrules::default(), &control())
    };
    for (case, count, has) in
        [("keras-cifar10", 12, "10"), ("tensorflow-resnet50", 1002, "1001"), ("tf-object-detection", 80, "91")]
    {
        let error = recognize(case, count).unwrap_err().to_string();
        assert!(error.contains(has) && error.contains(&count.to_string()), "{case}: {error}");
    }
    let with_background = recognize("tensorflow-resnet50", 1000).unwrap();
    assert_eq!(with_background.labels.unwrap().len(), 1000);
}

#[test]
fn overridden_field_is_not_an_assumption() {
    let runtime = Runtime::load();
    let weights = case_folder().join("caffe2-resnet50/model.onnx");
    let overrules = Overrules::parse(&[
        "input.channels=bgr",
        "input.mean=[0.4, 0.4, 0.4]",
        r#"input.resize.stretch={"width": 224, "height": 224}"#,
        "labels=coco-80",
        "license=MIT",
    ])
    .unwrap();
    let mut inspection = Inspection::open(&runtime.0, &weights).unwrap();
    let got = inspection.recognize(None, &overrules, &control()).unwrap();
    let card = serde_json::to_value(&got.card).unwrap();
    assert_eq!(card["input"]["channels"], "bgr");
    assert_eq!(card["input"]["resize"]["stretch"]["width"], 224);
    assert_eq!((&card["labels"], &card["license"]), (&"coco-80".into(), &"MIT".into()));
    let assumed =
        ["input.interpolation = pillow-bilinear", "input.divide_by = 255.0", "input.std = [0.229, 0.224, 0.225]"];
    assert_eq!(got.card.assumed, assumed);
    assert_eq!(got.with_basis(Basis::Given).count(), 5);
    let misspelt = Overrules::parse(&["input.chanels=bgr"]).unwrap();
    let error = inspection.recognize(None, &misspelt, &control()).unwrap_err();
    assert!(error.to_string().contains("chanels"), "{error}");
}

#[test]
fn canceled_inspection_is_reported() {
    let runtime = Runtime::load();
    let weights = case_folder().join("caffe2-resnet50/model.onnx");
    let mut inspection = Inspection::open(&runtime.0, &weights).unwrap();
    let control = control();
    control.cancel();
    let error = inspection.recognize(None, &Overrules::default(), &control).unwrap_err();
    assert!(matches!(error, InspectError::Cancelled), "{error}");
}

fn case_folder() -> PathBuf {
    crate::support::repository().join("tests/cases/conventions")
}

/// Each case's folder with its expectations.
fn cases() -> Vec<(PathBuf, Value)> {
    let folders = std::fs::read_dir(case_folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<(PathBuf, Value)> = folders
        .filter(|path| path.is_dir())
        .map(|path| {
            let text = std::fs::read_to_string(path.join("expected.json")).unwrap();
            (path, serde_json::from_str(&text).unwrap())
        })
        .collect();
    cases.sort_by(|left, right| left.0.cmp(&right.0));
    assert!(cases.len() > 15);
    cases
}

fn recognize(runtime: &Runtime, weights: &Path) -> Result<Recognition, InspectError> {
    Inspection::open(&runtime.0, weights)?.recognize(None, &Overrules::default(), &control())
}

fn differences(case: &Path, got: &Recognition, expected: &Value) -> String {
    let mut complaints = String::new();
    let case = case.file_name().unwrap().to_string_lossy();
    let card = serde_json::to_value(&got.card).unwrap();
    differing_fields("", &card, &expected["card"], &mut |field, got, expected| {
        writeln!(complaints, "{case}: {field} is {got}, expected {expected}").unwrap();
    });
    for (basis, key) in [(Basis::Recognized, "recognized"), (Basis::Assumed, "assumed")] {
        for field in expected[key].as_array().unwrap() {
            let found = got.with_basis(basis).any(|finding| field == &finding.field);
            if !found {
                writeln!(complaints, "{case}: {field} is not {key}: {:#?}", got.findings).unwrap();
            }
        }
    }
    let assumed = got.with_basis(Basis::Assumed).count();
    if assumed != expected["assumed"].as_array().unwrap().len() {
        writeln!(complaints, "{case}: {assumed} fields are assumed: {:?}", got.card.assumed).unwrap();
    }
    if expected["ignored"].as_u64() != Some(got.ignored_outputs.len() as u64) {
        writeln!(complaints, "{case}: ignored are {:?}", got.ignored_outputs).unwrap();
    }
    if let Err(error) = check_card(&got.card) {
        writeln!(complaints, "{case}: the card cannot be used: {error}").unwrap();
    }
    complaints
}

/// Calls `report` for each field of `expected` that differs in `got`; fields missing in `expected` can have any value.
fn differing_fields(place: &str, got: &Value, expected: &Value, report: &mut dyn FnMut(&str, &Value, &Value)) {
    match expected {
        Value::Object(fields) => {
            for (name, expected) in fields {
                differing_fields(&format!("{place}.{name}"), &got[name], expected, report);
            }
        }
        Value::Array(items) => {
            for (position, expected) in items.iter().enumerate() {
                differing_fields(place, &got[position], expected, report);
            }
        }
        Value::Number(number) => {
            let near = got.as_f64().is_some_and(|got| (got - number.as_f64().unwrap()).abs() < 1e-4);
            if !near {
                report(place, got, expected);
            }
        }
        _ if got == expected => {}
        _ => report(place, got, expected),
    }
}

/// The card and the findings, without the graph's names and anything that depends on them.
fn without_names(recognition: &Recognition) -> (Value, Vec<(String, Basis)>) {
    let findings = recognition.findings.iter().map(|finding| (finding.field.clone(), finding.basis));
    (without_name(&recognition.card), findings.collect())
}

fn without_name(card: &ModelCard) -> Value {
    let card = serde_json::to_value(card).unwrap();
    let mut kept = Map::new();
    for field in ["task", "labels", "input", "output"] {
        kept.insert(field.to_owned(), card[field].clone());
    }
    let mut kept = Value::Object(kept);
    for (place, names) in [
        ("/input", &["name"][..]),
        ("/output/classification", &["name"]),
        ("/output/embedding", &["name"]),
        ("/output/detection", &["boxes", "labels", "scores", "count"]),
    ] {
        let Some(Value::Object(table)) = kept.pointer_mut(place) else {
            continue;
        };
        for name in names {
            table.remove(*name);
        }
    }
    kept
}
