use serde::Deserialize;

use super::super::recognize::{Recognition, Unrecognized};
use super::*;
use crate::model::catalog::{built_in_labels, parse_mapping};

/// Written by `tests/outputs/make_cases.py` with NumPy.
#[derive(Deserialize)]
struct Case {
    name: String,
    output: String,
    size: [u32; 2],
    shape: String,
    labels: Option<String>,
    classes: Option<Vec<ExpectedClass>>,
    detections: Option<Vec<ExpectedBox>>,
}

#[derive(Deserialize)]
struct ExpectedClass {
    index: u32,
    score: f32,
}

#[derive(Deserialize)]
struct ExpectedBox {
    #[serde(rename = "box")]
    bounds: [f32; 4],
    class_id: u32,
    score: f32,
}

/// For 32-bit floats after one division in 64 bits.
const CLOSE_SCORE: f32 = 1e-6;
/// In pixels.
const CLOSE_EDGE: f32 = 1e-3;

fn reader_of(output: &str) -> OutputReader {
    let recognized = Recognition::from_output(output.as_bytes()).unwrap();
    let labels = match &recognized.shape {
        OutputShape::Spotcheck { .. } => LabelSource::Outputs,
        OutputShape::Mapped(mapping) => {
            let labels = mapping.labels.as_deref().and_then(built_in_labels);
            LabelSource::Known(labels.unwrap_or_default())
        }
    };
    OutputReader::new(recognized.shape, labels, KeepRule::default())
}

fn read(output: &str) -> Result<Prediction, String> {
    reader_of(output).read(output.as_bytes(), Some([100, 50]))
}

fn mapped(toml: &str, labels: &str) -> OutputReader {
    let mapping = parse_mapping(toml, std::path::Path::new("m.toml")).unwrap();
    let labels = LabelSource::Known(LabelSet::parse(labels).unwrap());
    OutputReader::new(OutputShape::Mapped(Box::new(mapping)), labels, KeepRule::default())
}

#[test]
fn outputs_match_numpy() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../../tests/outputs/cases.json")).unwrap();
    for case in cases {
        let name = &case.name;
        let reader = reader_of(&case.output);
        assert_eq!(reader.shape().name(), case.shape, "{name}");
        let OutputShape::Mapped(mapping) = reader.shape() else {
            panic!("{name} is not our own");
        };
        assert_eq!(mapping.labels, case.labels, "{name}");
        let found = reader.read(case.output.as_bytes(), Some(case.size)).unwrap();
        assert_eq!([found.width, found.height], case.size, "{name}");
        if let Some(expected) = &case.classes {
            let classes = found.classes();
            assert_eq!(classes.len(), expected.len(), "{name}");
            for (got, expected) in classes.iter().zip(expected) {
                assert_eq!(got.index, expected.index, "{name}");
                let is_close = (got.score - expected.score).abs() < CLOSE_SCORE;
                assert!(is_close, "{name}: {} {}", got.score, expected.score);
            }
        }
        if let Some(expected) = &case.detections {
            let boxes = found.detections();
            assert_eq!(boxes.len(), expected.len(), "{name}");
            for (got, expected) in boxes.iter().zip(expected) {
                assert_eq!(got.class_id, expected.class_id, "{name}");
                assert!((got.score - expected.score).abs() < CLOSE_SCORE, "{name}");
                for (edge, wanted) in <[f32; 4]>::from(got.bounds).iter().zip(expected.bounds) {
                    assert!((edge - wanted).abs() < CLOSE_EDGE, "{name}: {edge} {wanted}");
                }
            }
        }
    }
}

#[test]
fn assumptions_are_reported() {
    let assumed = |output: &str| Recognition::from_output(output.as_bytes()).unwrap().assumed.join("; ");
    let logits = assumed(r#"{"predictions": [[3.5, -1.0, 0.5]]}"#);
    assert!(logits.contains("logits"), "{logits}");
    let boxes =
        assumed(r#"{"predictions": [{"detection_boxes": [], "detection_classes": [], "detection_scores": []}]}"#);
    assert!(boxes.contains("rotated images according to EXIF"), "{boxes}");
    let own = r#"{"status":"ok","width":4,"height":3,"model":"m","task":"detection","detections":[]}"#;
    assert_eq!(assumed(own), "");
}

#[test]
fn predict_output_round_trips_bit_for_bit() {
    let line = r#"{"uri":"/a.jpg","status":"ok","width":451,"height":300,"model":"toy","task":"detection","detections":[{"box":[-1.25,2.1,30.333334,299.99997],"class_id":17,"label":"cat","score":0.96000004},{"box":[0.0,0.0,1.0,1.0],"class_id":3,"label":"dog","score":0.004}]}"#;
    let reader = reader_of(line);
    let found = reader.read(line.as_bytes(), None).unwrap();
    // Scores below the run's threshold are dropped.
    let [cat] = found.detections() else {
        panic!("{found:?}");
    };
    assert_eq!(<[f32; 4]>::from(cat.bounds), [-1.25, 2.1, 30.333_334, 299.999_97]);
    assert_eq!((cat.score, cat.label.as_str()), (0.960_000_04, "cat"));
    assert_eq!(reader.labels().get(17), Some("cat"));
    let other = line.replace("\"cat\"", "\"lynx\"");
    let error = reader.read(other.as_bytes(), None).unwrap_err();
    assert!(error.contains("“lynx”"), "{error}");
    let failed = r#"{"status":"failed","error":"the image is truncated"}"#;
    let error = reader.read(failed.as_bytes(), None).unwrap_err();
    assert!(error.contains("the image is truncated"), "{error}");
}

#[test]
fn hostile_outputs_are_never_predictions() {
    let boxes = |boxes: &str, classes: &str, scores: &str| {
        format!(
            r#"{{"predictions": [{{"detection_boxes": {boxes}, "detection_classes": {classes},
                "detection_scores": {scores}}}]}}"#
        )
    };
    let own = |detections: &str| {
        format!(
            r#"{{"status":"ok","width":100,"height":50,"model":"m","task":"detection","detections":[{detections}]}}"#
        )
    };
    for (output, reason) in [
        (boxes("[[0,0,1,1]]", "[1,2]", "[0.5]"), "1 boxes, 2 classes"),
        (boxes("[[0,0,1]]", "[1]", "[0.5]"), "3 numbers"),
        (boxes("[[0.5,0,0.1,1]]", "[1]", "[0.5]"), "before it begins"),
        (boxes("[[-9,0,1,1]]", "[1]", "[0.5]"), "outside the image"),
        (boxes("[[10,20,300,400]]", "[1]", "[0.5]"), "outside the image"),
        (boxes("[[0,0,1e300,1]]", "[1]", "[0.5]"), "outside the image"),
        (boxes("[[0,0,null,1]]", "[1]", "[0.5]"), "expected a box"),
        (boxes("[[0,0,1,1]]", "[1.5]", "[0.5]"), "invalid class 1.5"),
        (boxes("[[0,0,1,1]]", "[-1]", "[0.5]"), "invalid class -1"),
        (boxes("[[0,0,1,1]]", "[1e18]", "[0.5]"), "invalid class"),
        (boxes("[[0,0,1,1]]", "[1]", "[1.5]"), "between 0 and"),
        (boxes("[[0,0,1,1]]", "[\"cat\"]", "[0.5]"), "the labels"),
        (r#"{"predictions": [[0.5, 0.5], [0.5, 0.5]]}"#.to_owned(), "2 responses"),
        (r#"{"predictions": [{"probabilities": [0.25, 0.75], "classes": 0}]}"#.to_owned(), "the highest score"),
        (r#"{"predictions": [{"probabilities": [0.25, 0.75], "classes": 7}]}"#.to_owned(), "its classes"),
        (own(r#"{"box":[0,0,1],"class_id":1,"label":"a","score":1}"#), "3 numbers"),
        (own(r#"{"box":[0,0,1,1],"class_id":1,"label":"a","score":7}"#), "between 0 and"),
        (own(r#"{"box":[0,0,1,1],"class_id":1,"score":1}"#), "no “label”"),
        (own("").replace("100", "99"), "99 x 50"),
        (own("").replace("100", "0"), "width"),
        (own("").replace("100", "1e9"), "width"),
    ] {
        let error = read(&output).unwrap_err();
        assert!(error.contains(reason), "{output}: {error}");
    }
}

#[test]
fn foreign_outputs_are_problems() {
    let of = |model: &str, classes: &str| {
        format!(
            r#"{{"status":"ok","width":100,"height":50,"model":"{model}","task":"classification","classes":[{classes}]}}"#
        )
    };
    let cat = r#"{"index":3,"label":"cat","score":0.75}"#;
    let reader = reader_of(&of("m", cat));
    let check = |output: &str, size: Option<[u32; 2]>, says: &str| {
        let error = reader.read(output.as_bytes(), size).unwrap_err();
        assert!(error.contains(says), "{output}: {error}");
    };
    check(&of("other", cat), None, "“other”");
    check(&of("m", cat), Some([50, 100]), "50 x 100");
    let twice = format!(r#"{cat},{{"index":3,"label":"cat","score":0.125}}"#);
    check(&of("m", &twice), None, "class 3 twice");
    check(&of("m", ""), None, "contains no class");
    let found = reader.read(of("m", cat).as_bytes(), Some([100, 50]));
    assert_eq!(found.unwrap().classes()[0].index, 3);
}

#[test]
fn class_lists_are_nonempty_and_unique() {
    let reader = mapped(
        r#"
            id = "top"
            name = "Top"
            [prediction.classification]
            classes = "/top/*/0"
            scores = "/top/*/1"
        "#,
        "cat\ndog",
    );
    for (output, says) in
        [(r#"{"top": []}"#, "contains no class"), (r#"{"top": [[1, 0.5], [1, 0.25]]}"#, "class 1 twice")]
    {
        let error = reader.read(output.as_bytes(), Some([4, 4])).unwrap_err();
        assert!(error.contains(says), "{output}: {error}");
    }
}

#[test]
fn empty_box_counts_as_in_local_predictions() {
    let output = r#"{"status":"ok","width":100,"height":50,"model":"m","task":"detection","detections":[{"box":[100,10,100,20],"class_id":1,"label":"a","score":0.5}]}"#;
    let found = read(output).unwrap();
    assert_eq!(<[f32; 4]>::from(found.detections()[0].bounds), [100.0, 10.0, 100.0, 20.0]);
}

#[test]
fn output_of_another_shape_is_a_problem() {
    let reader = reader_of(r#"{"predictions": [[0.25, 0.75]]}"#);
    for output in [
        r#"{"error": "out of memory"}"#,
        r#"{"status":"ok","width":1,"height":1,"model":"m","task":"detection","detections":[]}"#,
        r#"{"predictions": [{"probabilities": [0.5, 0.5]}]}"#,
        r#"{"predictions": [[5.0, -3.0]]}"#,
        "[]",
    ] {
        assert!(reader.read(output.as_bytes(), Some([4, 4])).is_err(), "{output}");
    }
}

#[test]
fn unreadable_and_unknown_are_distinguished() {
    for output in ["", "{", "NaN", r#"{"error": "no such model"}"#] {
        let error = Recognition::from_output(output.as_bytes()).unwrap_err();
        assert!(matches!(error, Unrecognized::Broken(_)), "{output}: {error}");
    }
    for output in [r#"{"boxes": [[1, 2, 3, 4]]}"#, "7", r#"{"predictions": []}"#, r#"["cat"]"#] {
        let error = Recognition::from_output(output.as_bytes()).unwrap_err();
        let Unrecognized::Unknown(text) = &error else {
            panic!("{output}: {error}");
        };
        assert_eq!(text, output);
    }
}

#[test]
fn mapping_reads_an_unknown_format() {
    let detector = mapped(
        r#"
            id = "shelf"
            name = "Shelf"
            [prediction.detection]
            boxes = "/found/*/box"
            classes = "/found/*/name"
            scores = "/found/*/score"
            box_format = "xywh"
            box_space = "pixels"
        "#,
        "tin\nbottle",
    );
    let output = r#"{"found": [{"box": [10, 20, 30, 5], "name": "bottle", "score": 0.5},
        {"box": [0, 0, 1, 1], "name": "tin", "score": 0.75}]}"#;
    let found = detector.read(output.as_bytes(), Some([100, 50])).unwrap();
    let [tin, bottle] = found.detections() else {
        panic!("{found:?}");
    };
    assert_eq!((tin.label.as_str(), tin.class_id), ("tin", 0));
    assert_eq!(<[f32; 4]>::from(bottle.bounds), [10.0, 20.0, 40.0, 25.0]);
    let none = detector.read(br#"{"found": []}"#, Some([100, 50])).unwrap();
    assert!(none.detections().is_empty());

    let classifier = mapped(
        r#"
            id = "top"
            name = "Top three"
            [prediction.classification]
            classes = "/top/*/0"
            scores = "/top/*/1"
            background = true
        "#,
        "cat\ndog",
    );
    let output = r#"{"top": [[2, 0.125], [0, 0.25], [1, 0.5]]}"#;
    let found = classifier.read(output.as_bytes(), Some([4, 4])).unwrap();
    let classes: Vec<(&str, f32)> = found.classes().iter().map(|class| (class.label.as_str(), class.score)).collect();
    assert_eq!(classes, [("cat", 0.5), ("dog", 0.125)]);

    let centered = mapped(
        r#"
            id = "centered"
            name = "Centered"
            [prediction.detection]
            boxes = "/b"
            classes = "/c"
            scores = "/s"
            box_format = "cxcywh"
            box_space = "normalized"
            class_offset = 1
        "#,
        "1\tcat",
    );
    let output = r#"{"b": [[0.5, 0.5, 0.5, 1.0]], "c": [0], "s": [1]}"#;
    let found = centered.read(output.as_bytes(), Some([100, 50])).unwrap();
    assert_eq!(<[f32; 4]>::from(found.detections()[0].bounds), [25.0, 0.0, 75.0, 50.0]);
    assert_eq!(found.detections()[0].label, "cat");
    let foreign = centered.read(output.replace("\"c\": [0]", "\"c\": [1]").as_bytes(), Some([100, 50]));
    assert!(foreign.unwrap_err().contains("labels end at 1"));
}
