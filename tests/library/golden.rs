//! Proof that predictions equal the reference: both models of the repository on the eight sample images, compared with
//! the results of Pillow, NumPy and onnxruntime for Python (`tests/golden/make.py` made `tests/golden/photos.json`).

use serde_json::Value;
use spotcheck::domain::BoundingBox;

/// The largest difference of a score.
const SCORE_TOLERANCE: f64 = 1e-4;
/// The largest difference of a box's edge, in pixels.
const EDGE_TOLERANCE: f32 = 0.05;
/// Detections below this score are not compared: near the graph's own threshold, their order is random.
const COMPARED_ABOVE: f64 = 0.06;
const SAME_BOX_IOU: f32 = 0.9;

#[test]
fn classes_equal_the_reference() {
    for (photo, got, expected) in predictions_and_references("efficientnet-lite0") {
        let (got, expected) = (list(&got["classes"]), list(&expected["classes"]));
        assert_eq!(got.len(), expected.len(), "{photo}");
        for (rank, (got, expected_class)) in got.iter().zip(expected).enumerate() {
            let context = format!("{photo}, rank {rank}: got {got}, expected {expected_class}");
            assert!((score(got) - score(expected_class)).abs() <= SCORE_TOLERANCE, "{context}");
            let too_near_to_tell = expected.iter().any(|other| {
                other["index"] != expected_class["index"]
                    && (score(other) - score(expected_class)).abs() <= SCORE_TOLERANCE
            });
            assert!(too_near_to_tell || got["index"] == expected_class["index"], "{context}");
        }
    }
}

#[test]
fn detections_equal_the_reference() {
    let mut compared = 0;
    for (photo, got, expected) in predictions_and_references("ssd-mobilenet-coco") {
        assert_eq!((&got["width"], &got["height"]), (&expected["width"], &expected["height"]), "{photo}");
        let got = above_cut_off(&got["detections"]);
        let mut unmatched = above_cut_off(&expected["detections"]);
        assert_eq!(got.len(), unmatched.len(), "{photo}: number of boxes above {COMPARED_ABOVE}");
        for detection in got {
            let bounds = bounds_of(detection);
            let partner = unmatched.iter().position(|other| {
                other["class_id"] == detection["class_id"] && bounds_of(other).iou(&bounds) > SAME_BOX_IOU
            });
            let Some(partner) = partner else { panic!("{photo}: no reference box for {detection}") };
            let reference = unmatched.remove(partner);
            let context = format!("{photo}: got {detection}, expected {reference}");
            assert!((score(detection) - score(reference)).abs() <= SCORE_TOLERANCE, "{context}");
            let edges: [[f32; 4]; 2] = [bounds.into(), bounds_of(reference).into()];
            let worst = edges[0].iter().zip(edges[1]).map(|(got, expected)| (got - expected).abs());
            assert!(worst.fold(0.0, f32::max) <= EDGE_TOLERANCE, "{context}");
            compared += 1;
        }
    }
    assert!(compared > 50, "only {compared} boxes were compared");
}

/// The image's name, the prediction of the command line, and the reference.
fn predictions_and_references(model: &str) -> Vec<(String, Value, Value)> {
    let output =
        crate::support::spotcheck(&["predict", "assets/samples", "--model", model, "--out", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(crate::support::repository().join("tests/golden/photos.json")).unwrap();
    let references: Value = serde_json::from_str(&text).unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), references.as_object().unwrap().len()), (8, 8));
    let pair = |line: Value| {
        let uri = line["uri"].as_str().unwrap();
        let photo = uri.rsplit('/').next().unwrap().to_owned();
        let reference = references[&photo].clone();
        (photo, line, reference)
    };
    lines.into_iter().map(pair).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn score(value: &Value) -> f64 {
    value["score"].as_f64().unwrap()
}

fn bounds_of(detection: &Value) -> BoundingBox {
    let edges: [f32; 4] = serde_json::from_value(detection["box"].clone()).unwrap();
    edges.into()
}

fn above_cut_off(detections: &Value) -> Vec<&Value> {
    list(detections).iter().filter(|detection| score(detection) > COMPARED_ABOVE).collect()
}
