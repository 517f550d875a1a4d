//! Outputs of detectors in their exporters' layouts, compared with the boxes that the exporters' own rules produce
//! (`tests/cases/make_detections.py`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use spotcheck::domain::{DetectionOutput, KeepRule, LabelSet, OutputConvention, Prediction, PredictionContent};
use spotcheck::model::{PredictError, Tensor, postprocess};

use crate::hostile::parsers::{described_outputs, prepared};
use crate::support::repository;

const SCORE_TOLERANCE: f64 = 1e-6;
/// The largest difference of an edge, in pixels.
const EDGE_TOLERANCE: f64 = 1e-3;

#[test]
fn outputs_match_the_exporter_rules() {
    let (mut compared, mut runners_up) = (0, 0);
    for case in cases("detections") {
        let expected = case.value["expected"].as_array().unwrap();
        let predictions = case.predictions().unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(predictions.len(), expected.len(), "{}", case.name);
        let kept = case.value["kept"].as_array().unwrap();
        for ((prediction, expected), kept) in predictions.into_iter().zip(expected).zip(kept) {
            let expected = expected.as_array().unwrap();
            let left = kept.as_array().unwrap().iter().map(|at| expected[at.as_u64().unwrap() as usize].clone());
            compare(&case.name, &prediction, expected);
            runners_up += prediction.detections().iter().map(|found| found.runners_up.len()).sum::<usize>();
            compare(&case.name, &prediction.without_overlaps(case.convention().nms_iou), &left.collect::<Vec<_>>());
            compared += expected.len();
        }
    }
    assert!(compared > 200, "only {compared} boxes were compared");
    assert!(runners_up > 400, "only {runners_up} runners-up were compared");
}

#[test]
fn malformed_outputs_are_refused() {
    let mut refused = 0;
    for case in cases("detections_refused") {
        let reason = case.value["error"].as_str().unwrap();
        let error = case.predictions().map(|predictions| panic!("{}: {predictions:?}", case.name)).unwrap_err();
        assert!(error.to_string().contains(reason), "{}: {error}", case.name);
        refused += 1;
    }
    assert!(refused > 10, "only {refused} cases were refused");
}

#[test]
fn excessive_candidates_are_refused() {
    let rows = 10_000_000;
    let convention =
        r#"{"boxes": "b", "labels": "l", "scores": "s", "box_format": "xyxy", "box_space": "model-pixels"}"#;
    let outputs = BTreeMap::from([
        ("b".to_owned(), Tensor::u8([1, rows, 4], vec![0; 4 * rows])),
        ("l".to_owned(), Tensor::u8([1, rows], vec![0; rows])),
        ("s".to_owned(), Tensor::u8([1, rows], vec![1; rows])),
    ]);
    let image = serde_json::json!({"canvas": [8, 8], "size": [8, 8], "scale": [1, 1], "offset": [0, 0]});
    let convention = OutputConvention::Detection(serde_json::from_str(convention).unwrap());
    let result = postprocess(&convention, &labels(), KeepRule::default(), &outputs, &[prepared(&image).unwrap()], 1);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("10000000 candidates"), "{error}");
}

/// Every class of every candidate has a unique score.
#[test]
fn only_the_best_boxes_are_kept() {
    let (rows, classes) = (5000, 50);
    let scores = (0..rows * classes).map(|at| (at * 7919 % 250_000) as f32 / 250_000.0);
    let boxes = (0..rows).flat_map(|row| [row as f32, 0.0, row as f32 + 1.0, 1.0]);
    let convention = r#"{"boxes": "b", "scores": "s", "label_choice": "all", "box_format": "xyxy",
        "box_space": "model-pixels"}"#;
    let outputs = BTreeMap::from([
        ("b".to_owned(), Tensor::f32([1, rows, 4], boxes.collect())),
        ("s".to_owned(), Tensor::f32([1, rows, classes], scores.clone().collect())),
    ]);
    let image = serde_json::json!({"canvas": [8, 8], "size": [8, 8], "scale": [1, 1], "offset": [0, 0]});
    let convention = OutputConvention::Detection(serde_json::from_str(convention).unwrap());
    let predictions =
        postprocess(&convention, &labels(), KeepRule::default(), &outputs, &[prepared(&image).unwrap()], 1);
    let got: Vec<(u32, f32)> =
        predictions.unwrap()[0].detections().iter().map(|found| (found.class_id, found.score)).collect();
    let mut expected: Vec<(u32, f32)> = scores.enumerate().map(|(at, score)| ((at % classes) as u32, score)).collect();
    expected.sort_by(|left, right| right.1.total_cmp(&left.1));
    assert_eq!(got, expected[..30_000]);
}

struct Case {
    name: String,
    value: Value,
}

fn cases(folder: &str) -> Vec<Case> {
    let files = std::fs::read_dir(repository().join("tests/cases").join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| Case {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        value: serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap(),
    };
    paths.into_iter().map(read).collect()
}

impl Case {
    fn convention(&self) -> DetectionOutput {
        let convention = serde_json::from_value(self.value["convention"].clone());
        convention.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn predictions(&self) -> Result<Vec<Prediction>, PredictError> {
        let (convention, outputs, batch, images) = described_outputs(&self.value).unwrap();
        let convention = OutputConvention::Detection(convention);
        postprocess(&convention, &labels(), KeepRule::default(), &outputs, &batch, images)
    }
}

fn labels() -> LabelSet {
    LabelSet::parse("zero\none\ntwo").unwrap()
}

fn compare(case: &str, got: &Prediction, expected: &[Value]) {
    let PredictionContent::Detections(got) = &got.content else { panic!("{case}: {got:?}") };
    assert_eq!(got.len(), expected.len(), "{case}");
    for (got, expected) in got.iter().zip(expected) {
        let context = format!("{case}: got {got:?}, expected {expected}");
        assert_eq!(u64::from(got.class_id), expected["class_id"].as_u64().unwrap(), "{context}");
        assert!((f64::from(got.score) - expected["score"].as_f64().unwrap()).abs() <= SCORE_TOLERANCE, "{context}");
        let edges: [f32; 4] = got.bounds.into();
        for (edge, expected) in edges.iter().zip(expected["box"].as_array().unwrap()) {
            assert!((f64::from(*edge) - expected.as_f64().unwrap()).abs() <= EDGE_TOLERANCE, "{context}");
        }
        let others = expected["runners_up"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(got.runners_up.len(), others.len(), "{context}");
        for (got, expected) in got.runners_up.iter().zip(others) {
            assert_eq!(u64::from(got.class_id), expected["class_id"].as_u64().unwrap(), "{context}");
            assert!((f64::from(got.score) - expected["score"].as_f64().unwrap()).abs() <= SCORE_TOLERANCE, "{context}");
        }
    }
}
