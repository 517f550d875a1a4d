//! Architecture parity: torchvision's ResNet-50 and its Faster R-CNN with FPN, through decoding, preprocessing, the
//! session and postprocessing, compared with torch's results (both made by `parity/make.py`).

use serde_json::Value;
use spotcheck::domain::{BoundingBox, Detection, Prediction};

use crate::support::models::{Runtime, model_of_card, predict};

/// The largest difference of a score.
const SCORE_TOLERANCE: f64 = 1e-4;
/// The largest difference of a box's edge, in pixels.
const EDGE_TOLERANCE: f32 = 0.05;
/// Boxes with a score this close to the lowest one may be cut off by the graph's limits at random.
const CHANCE: f64 = 0.002;

#[test]
fn resnet50_matches_torch() {
    for (photo, got, expected) in predictions("resnet50") {
        let expected = expected["classes"].as_array().unwrap();
        assert_eq!(got.classes().len(), expected.len(), "{photo}");
        for (got, expected) in got.classes().iter().zip(expected) {
            let context = format!("{photo}: got {got:?}, expected {expected}");
            assert_eq!(u64::from(got.index), expected["index"].as_u64().unwrap(), "{context}");
            assert!((f64::from(got.score) - score(expected)).abs() <= SCORE_TOLERANCE, "{context}");
        }
    }
}

#[test]
fn faster_rcnn_matches_torch() {
    let mut compared = 0;
    for (photo, got, expected) in predictions("faster-rcnn") {
        let expected: Vec<Detection> = expected["detections"].as_array().unwrap().iter().map(detection).collect();
        compared += contains_all(&photo, &expected, got.detections());
        compared += contains_all(&photo, got.detections(), &expected);
    }
    assert!(compared > 200, "only {compared} boxes were compared");
}

/// Checks that each of `wanted` is among `found`; returns the number of compared ones.
fn contains_all(photo: &str, wanted: &[Detection], found: &[Detection]) -> usize {
    let lowest = wanted.iter().map(|wanted| f64::from(wanted.score)).fold(1.0, f64::min);
    let firm: Vec<&Detection> = wanted.iter().filter(|wanted| f64::from(wanted.score) > lowest + CHANCE).collect();
    for wanted in &firm {
        let is_same = |found: &&Detection| {
            found.class_id == wanted.class_id && largest_distance(found.bounds, wanted.bounds) <= EDGE_TOLERANCE
        };
        let Some(partner) = found.iter().find(is_same) else {
            panic!("{photo}: no box within {EDGE_TOLERANCE} px of {wanted:?}")
        };
        let difference = (f64::from(partner.score) - f64::from(wanted.score)).abs();
        assert!(difference <= SCORE_TOLERANCE, "{photo}: {wanted:?} against {partner:?}");
    }
    firm.len()
}

fn largest_distance(left: BoundingBox, right: BoundingBox) -> f32 {
    let edges: [[f32; 4]; 2] = [left.into(), right.into()];
    edges[0].iter().zip(edges[1]).map(|(left, right)| (left - right).abs()).fold(0.0, f32::max)
}

fn detection(value: &Value) -> Detection {
    Detection {
        bounds: serde_json::from_value(value["box"].clone()).unwrap(),
        class_id: serde_json::from_value(value["class_id"].clone()).unwrap(),
        label: String::new(),
        score: serde_json::from_value(value["score"].clone()).unwrap(),
        runners_up: Vec::new(),
    }
}

fn score(value: &Value) -> f64 {
    value["score"].as_f64().unwrap()
}

/// Each image's name with Spotcheck's and torch's predictions.
fn predictions(case: &str) -> Vec<(String, Prediction, Value)> {
    let folder = crate::support::repository().join("tests/parity").join(case);
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    assert!(!expected.is_empty());
    let predictor = Runtime::load().predictor(&model_of_card(&folder.join("model.toml")));
    let samples = crate::support::repository().join("assets/samples");
    expected
        .into_iter()
        .map(|(photo, expected)| {
            let prediction = predict(&predictor, &samples.join(&photo));
            (photo, prediction, expected)
        })
        .collect()
}
