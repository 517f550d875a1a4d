//! Vectors of boxes as computed by onnxruntime and NumPy (`tests/cases/embeddings/make.py`), and found again in other
//! images.

use std::path::Path;

use serde_json::Value;
use spotcheck::alike::{Embedding, Embeddings};
use spotcheck::domain::{BoundingBox, RgbImage};
use spotcheck::image::decode::{DecodeLimits, decode};
use spotcheck::model::onnx::{LoadOptions, OnnxPredictor};
use spotcheck::model::{Predicted, Predictor, Prepared};

use crate::support::models::{Runtime, control, model_of_card};
use crate::support::repository;

/// Half the distance between 16-bit floats, and what averaging in another order may change.
const RELATIVE: f64 = 1.0 / 2048.0 + 1e-4;
const ABSOLUTE: f64 = 1e-5;

fn load(card: &Path) -> OnnxPredictor {
    let options = LoadOptions { threads: Some(1), embeddings: true, ..LoadOptions::default() };
    OnnxPredictor::load(&Runtime::load().0, &model_of_card(card), &options, &control()).unwrap()
}

fn open(path: &Path) -> RgbImage {
    decode(&std::fs::read(path).unwrap(), &DecodeLimits::default()).unwrap().image
}

fn predict(predictor: &OnnxPredictor, image: &RgbImage) -> (Prepared, Predicted) {
    let prepared = predictor.prepare(image).unwrap();
    let predicted = predictor.predict_with_embeddings(0, std::slice::from_ref(&prepared), &control()).unwrap();
    (prepared, predicted.into_iter().next().unwrap())
}

fn check(found: &Embedding, expected: &Value, context: &str) {
    let expected: Vec<f64> = serde_json::from_value(expected.clone()).unwrap();
    assert_eq!(found.dims(), expected.len(), "{context}");
    for (found, expected) in found.values().zip(expected) {
        let tolerance = expected.abs() * RELATIVE + ABSOLUTE;
        assert!((f64::from(found) - expected).abs() <= tolerance, "{context}: {found}, expected {expected}");
    }
}

#[test]
fn vectors_of_boxes_match_onnxruntime() {
    let mut checked = 0;
    for entry in std::fs::read_dir(repository().join("tests/cases/embeddings")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(expected) = std::fs::read(folder.join("expected.json")) else {
            continue;
        };
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        let boxes = &expected["boxes"];
        let predictor = load(&folder.join("model.toml"));
        let name = folder.file_name().unwrap().to_str().unwrap();
        if expected["tensor"].is_null() {
            assert!(matches!(predictor.embedding(), Some(Err(_))), "{name}");
            continue;
        }
        let Some(Ok(layer)) = predictor.embedding() else { panic!("{name}") };
        assert_eq!(layer.own_session.is_some(), name == "half", "{name}");
        let Some(encoder) = layer.box_encoder() else {
            assert!(boxes.is_null() && layer.boxes.is_none(), "{name}: {:?}", layer.boxes);
            continue;
        };
        let tensors: Vec<String> = serde_json::from_value(boxes["tensors"].clone()).unwrap();
        assert_eq!(encoder.features.tensors(), tensors, "{name}");
        let own = folder.join("image.png");
        let image = open(&if own.exists() { own } else { folder.with_file_name("image.png") });
        let (prepared, predicted) = predict(&predictor, &image);
        for region in boxes["regions"].as_array().into_iter().flatten() {
            let bounds: [f32; 4] = serde_json::from_value(region["box"].clone()).unwrap();
            let [x1, y1, x2, y2] = bounds;
            let found = predictor.embed_region(&prepared, BoundingBox::new(x1, y1, x2, y2), &control()).unwrap();
            check(&found, &region["vector"], &format!("{name}, {bounds:?}"));
            checked += 1;
        }
        if let Some(candidates) = boxes["candidates"].as_array() {
            let found = predicted.embeddings.unwrap().boxes;
            assert_eq!(found.len(), candidates.len(), "{name}");
            for (at, (found, expected)) in found.iter().zip(candidates).enumerate() {
                assert_eq!(usize::from(found.index), at);
                check(&found.embedding, expected, &format!("{name}, box {at}"));
                checked += 1;
            }
            let bounds = BoundingBox::new(1.0, 1.0, 9.0, 9.0);
            assert!(predictor.embed_region(&prepared, bounds, &control()).is_err(), "{name}");
        }
        let outside = BoundingBox::new(-9.0, -9.0, -1.0, -1.0);
        assert!(predictor.embed_region(&prepared, outside, &control()).is_err(), "{name}");
    }
    assert_eq!(checked, 4 + 16 + 16 + 4 + 2 * 16);
}

/// The best box of each class above a score of 0.4, with its vector.
fn objects(predictor: &OnnxPredictor, image: &RgbImage) -> Vec<(String, Embedding)> {
    let (_, Predicted { prediction, embeddings }) = predict(predictor, image);
    let mut found: Vec<(String, Embedding)> = Vec::new();
    for one in embeddings.unwrap().boxes {
        let detection = &prediction.detections()[usize::from(one.index)];
        if detection.score > 0.4 && found.iter().all(|(label, _)| *label != detection.label) {
            found.push((detection.label.clone(), one.embedding));
        }
    }
    found
}

fn mirrored(image: &RgbImage) -> RgbImage {
    let pixels = image::RgbImage::from_raw(image.width(), image.height(), image.rgb().to_vec()).unwrap();
    let pixels = image::imageops::flip_horizontal(&pixels);
    RgbImage::new(image.width(), image.height(), pixels.into_raw()).unwrap()
}

/// Recorded: every object of the sample images that is also detected in the mirror image is nearest to itself there.
#[test]
fn objects_are_found_again_in_mirrored_images() {
    let predictor = load(&repository().join("models/ssd-mobilenet-coco/model.toml"));
    let mut names = Vec::new();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(repository().join("assets/samples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        let image = open(&path);
        let again = objects(&predictor, &mirrored(&image));
        for (label, vector) in objects(&predictor, &image) {
            if let Some((_, other)) = again.iter().find(|(other, _)| *other == label) {
                names.push(format!("{label} in {}", path.display()));
                left.push(vector);
                right.push(other.clone());
            }
        }
    }
    assert!(names.len() >= 6, "{names:?}");
    let mut all = Embeddings::default();
    for vector in left.iter().chain(&right) {
        assert!(all.push(vector));
    }
    for (at, vector) in left.iter().enumerate() {
        let nearest = all.nearest(vector, 2);
        assert_eq!(nearest[1].row, at + left.len(), "{}", names[at]);
        assert!(nearest[1].similarity > 0.5, "{}: {}", names[at], nearest[1].similarity);
    }
}

#[test]
fn proofs_are_used_again_and_replaced_when_damaged() {
    let image = open(&repository().join("assets/samples/coffee.png"));
    for card in ["models/ssd-mobilenet-coco/model.toml", "tests/cases/embeddings/half/model.toml"] {
        let folder = tempfile::tempdir().unwrap();
        let load = || {
            let proofs = Some(folder.path().join("proofs"));
            let options = LoadOptions { embeddings: true, proofs, ..LoadOptions::default() };
            OnnxPredictor::load(&Runtime::load().0, &model_of_card(&repository().join(card)), &options, &control())
                .unwrap()
        };
        let layer = |predictor: &OnnxPredictor| predictor.embedding().unwrap().clone().unwrap();
        let proofs = || std::fs::read_dir(folder.path().join("proofs")).unwrap().map(|file| file.unwrap().path());
        let first = load();
        let expected = predict(&first, &image).1;
        let file = proofs().next().unwrap();
        let proof = std::fs::read_to_string(&file).unwrap();
        let read_by = &layer(&first).tensor.layer;
        std::fs::write(&file, proof.replace(read_by.as_str(), "as proven")).unwrap();
        let second = load();
        assert_eq!(layer(&second).tensor.layer, "as proven");
        assert_eq!(predict(&second, &image).1, expected, "{card}");
        let foreign = proof.replace(&layer(&first).tensor.name, "not in the graph");
        for damaged in ["", "{}", "not a proof", &foreign] {
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(layer(&load()), layer(&first));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), proof);
        }
        assert_eq!(proofs().count(), 1);
    }
}
