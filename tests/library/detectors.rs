//! A graph with the outputs of each detector family opens without settings and reproduces the family's own predictions,
//! or is rejected (all made by `make.py` and `make_unusual.py` in `tests/cases/detectors`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spotcheck::domain::{Detection, ModelCard, OutputConvention, Prediction, RgbImage, ViewSettings};
use spotcheck::image::decode::{DecodeLimits, decode};
use spotcheck::model::Predictor as _;

use crate::support::models::{Runtime, control, predict};

const SCORE_TOLERANCE: f64 = 1e-4;
/// The largest difference of an edge, in pixels.
const EDGE_TOLERANCE: f64 = 0.05;

#[test]
fn every_family_opens_with_its_own_predictions() {
    let runtime = Runtime::load();
    let mut complaints = String::new();
    for case in cases() {
        if let Err(complaint) = check(runtime, &case) {
            writeln!(complaints, "{}: {complaint}", case.file_name().unwrap().display()).unwrap();
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn dynamic_batch_is_one_call_with_equal_predictions() {
    let runtime = Runtime::load();
    let folder = crate::support::repository().join("tests/cases/detectors");
    let scene = decode(&std::fs::read(folder.join("scene.png")).unwrap(), &DecodeLimits::default()).unwrap().image;
    let mirrored = scene.rgb().chunks_exact(3).rev().flatten().copied().collect();
    let mirrored = RgbImage::new(scene.width(), scene.height(), mirrored).unwrap();
    for (case, batches) in [("yolov8-free-batch", true), ("yolov8", false), ("yolov7-end-to-end", false)] {
        let (model, _) = runtime.recognize_file(&folder.join(case).join("model.onnx")).unwrap();
        assert_eq!(model.card.input.batches, batches, "{case}");
        if !batches {
            continue;
        }
        let predictor = runtime.predictor(&model);
        let prepared = [&scene, &mirrored].map(|image| predictor.prepare(image).unwrap());
        let together = predictor.predict(0, &prepared, &control()).unwrap();
        let alone: Vec<Prediction> =
            prepared.into_iter().flat_map(|prepared| predictor.predict(0, &[prepared], &control()).unwrap()).collect();
        assert_eq!(together, alone, "{case}");
        assert_ne!(alone[0], alone[1], "{case}");
    }
}

fn cases() -> Vec<PathBuf> {
    let folder = crate::support::repository().join("tests/cases/detectors");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    cases.sort();
    assert!(cases.len() > 55);
    cases
}

fn check(runtime: &Runtime, case: &Path) -> Result<(), String> {
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(case.join("expected.json")).unwrap()).unwrap();
    let recognized = runtime.recognize_file(&case.join("model.onnx")).map_err(|error| error.to_string());
    if let Some(reason) = expected["refused"].as_str() {
        return match recognized {
            Err(error) if error.contains(reason) => Ok(()),
            Err(error) => Err(format!("refused for another reason: {error}")),
            Ok((model, _)) => Err(format!("not refused: {:?}", model.card)),
        };
    }
    let (model, recognition) = recognized?;
    if let Some(readings) = expected["readings"].as_u64()
        && readings != recognition.readings.len() as u64
    {
        return Err(format!("{:?}", recognition.readings));
    }
    if expected["output"].is_object() {
        return check_output(&expected, &model.card);
    }
    let got = predict(&runtime.predictor(&model), &case.parent().unwrap().join("scene.png"));
    let view = ViewSettings {
        min_score: expected["min_score"].as_f64().unwrap() as f32,
        nms_iou: model.card.nms_iou(),
        ..ViewSettings::default()
    };
    let visible = view.visible_detections(&got, &[]);
    let got: Vec<&Detection> = visible.iter().map(|index| &got.detections()[*index]).collect();
    let expected = expected["detections"].as_array().unwrap();
    if got.len() != expected.len() {
        return Err(format!("{} detections, expected {}: {:?}", got.len(), expected.len(), model.card));
    }
    for (got, expected) in got.iter().zip(expected) {
        let edges: [f32; 4] = got.bounds.into();
        let far =
            |(got, expected): (&f32, &Value)| (f64::from(*got) - expected.as_f64().unwrap()).abs() > EDGE_TOLERANCE;
        let score = f64::from(got.score) - expected["score"].as_f64().unwrap();
        let differs = Some(u64::from(got.class_id)) != expected["class_id"].as_u64()
            || score.abs() > SCORE_TOLERANCE
            || edges.iter().zip(expected["box"].as_array().unwrap()).any(far);
        if differs {
            return Err(format!("got {got:?}, expected {expected}: {:?}", model.card));
        }
        let named = || ["rust", "moss", "lichen"].get(got.class_id as usize) == Some(&&*got.label);
        let is_coco = model.card.labels.as_deref().is_some_and(|labels| labels.starts_with("coco"));
        if !is_coco && !named() && got.label != format!("class {}", got.class_id) {
            return Err(format!("class {} is called {}", got.class_id, got.label));
        }
    }
    Ok(())
}

/// Compares the fields of the card that the outputs determine.
fn check_output(expected: &Value, card: &ModelCard) -> Result<(), String> {
    let OutputConvention::Detection(output) = &card.output else {
        return Err(format!("not a detector: {card:?}"));
    };
    let got = serde_json::to_value(output).unwrap();
    let differs = |(field, value): &(&String, &Value)| got.get(*field).unwrap_or(&Value::Null) != *value;
    if let Some((field, value)) = expected["output"].as_object().unwrap().iter().find(differs) {
        return Err(format!("{field} is not {value}: {got}"));
    }
    if expected["labels"].as_str() != card.labels.as_deref() && expected["labels"].is_string() {
        return Err(format!("the labels are not {}: {:?}", expected["labels"], card.labels));
    }
    for (name, value) in expected["auxiliary"].as_object().into_iter().flatten() {
        let input = card.input.auxiliary.iter().find(|input| input.name == *name);
        if input.is_none_or(|input| input.value.into_str() != value.as_str().unwrap()) {
            return Err(format!("{name} is not {value}: {:?}", card.input.auxiliary));
        }
    }
    Ok(())
}
