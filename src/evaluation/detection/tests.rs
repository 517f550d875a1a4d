//! Against the numbers of `tests/evaluation/make_detection.py`: pycocotools, tidecv and NumPy.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::{
    DetectedObject, DetectionDraws, ImageSides, SuspiciousLabel, SuspiciousLabels, TrueObject, outcomes,
};
use super::*;

const CLOSE: f64 = 1e-9;
/// Curves are rounded in the fixtures.
const ROUNDED: f64 = 1e-6;
/// Of a chart 500 pixels wide.
const SAME_TO_A_PIXEL: f64 = 2e-3;
/// tidecv divides 0..=100 by 100 for its recalls, pycocotools spaces them evenly: an object more or less at the edge.
const CLOSE_TO_TIDECV: f64 = 1e-3;

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/evaluation");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let fixtures: Vec<PathBuf> = entries.filter(|path| path.join("results.json").is_file()).collect();
    assert!(fixtures.len() >= 4);
    fixtures
}

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn bounds(value: &Value) -> [f64; 4] {
    std::array::from_fn(|place| value["bbox"][place].as_f64().unwrap())
}

/// The images in the order of their ids, the classes, and the expected numbers.
fn load(folder: &Path) -> (Vec<ImageObjects>, Vec<EvaluatedClass>, Value) {
    let (truth, results, expected) =
        (read(folder, "truth.json"), read(folder, "results.json"), read(folder, "expected.json"));
    let ids: Vec<i64> = list(&truth["categories"]).iter().map(|one| one["id"].as_i64().unwrap()).collect();
    let class = |value: &Value| {
        let id = value["category_id"].as_i64().unwrap();
        ids.iter().position(|one| *one == id).unwrap() as u32
    };
    let image_ids = list(&truth["images"]).iter().map(|one| one["id"].as_i64().unwrap());
    let mut images: BTreeMap<i64, ImageObjects> = image_ids.map(|id| (id, ImageObjects::default())).collect();
    for one in list(&truth["annotations"]) {
        let role = if one["iscrowd"] == 1 { BoxRole::Crowd } else { BoxRole::Object };
        let (class, area) = (class(one), one["area"].as_f64().unwrap());
        let object = TrueObject { bounds: bounds(one).into(), class, area, role };
        images.get_mut(&one["image_id"].as_i64().unwrap()).unwrap().truths.push(object);
    }
    for one in list(&results) {
        let object =
            DetectedObject { bounds: bounds(one).into(), class: class(one), score: one["score"].as_f64().unwrap() };
        images.get_mut(&one["image_id"].as_i64().unwrap()).unwrap().detections.push(object);
    }
    let classes = ids.iter().map(|id| EvaluatedClass { id: Some(*id), name: String::new() }).collect();
    (images.into_values().collect(), classes, expected)
}

fn metrics<'i>(
    images: impl IntoIterator<Item = &'i ImageObjects>,
    classes: &[EvaluatedClass],
    threshold: f64,
) -> DetectionMetrics {
    let mut evaluation = DetectionEvaluation::new(classes.to_vec(), vec![threshold; classes.len()]);
    for image in images {
        evaluation.add(image);
    }
    evaluation.finish().unwrap()
}

fn check(what: &str, folder: &Path, got: Option<f64>, expected: &Value) {
    let is_close = match (got, expected.as_f64()) {
        (Some(got), Some(expected)) => (got - expected).abs() < CLOSE,
        (got, expected) => got.is_none() && expected.is_none(),
    };
    assert!(is_close, "{}: {what}: {got:?}, expected {expected}", folder.display());
}

/// Each point of the whole curve is one of the thinned curve, or between two of them.
fn check_curve(folder: &Path, curve: &Curve, expected: &[Value]) {
    let whole: Vec<[f64; 4]> =
        expected.iter().map(|point| std::array::from_fn(|place| point[place].as_f64().unwrap())).collect();
    let points: Vec<[f64; 4]> =
        curve.points.iter().map(|point| [point.threshold, point.precision, point.recall, point.f1]).collect();
    assert_eq!(points.is_empty(), whole.is_empty(), "{}", folder.display());
    let apart = |one: &[f64; 4], other: &[f64; 4]| {
        one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
    };
    for (one, other) in [(points.first(), whole.first()), (points.last(), whole.last())] {
        assert!(one.zip(other).is_none_or(|(one, other)| apart(one, other) < ROUNDED), "{}", folder.display());
    }
    // A steep line may be far above a point if it passes close to it horizontally.
    let distance_to = |point: &[f64; 4], from: &[f64; 4], to: &[f64; 4]| {
        let on_line = |step: u32| {
            let share = f64::from(step) / 200.0;
            std::array::from_fn(|axis| from[axis] + share * (to[axis] - from[axis]))
        };
        (0..=200).map(|step| apart(point, &on_line(step))).fold(f64::INFINITY, f64::min)
    };
    for point in &whole {
        let ends = points.iter().zip(points.iter().skip(1).chain(points.last()));
        let nearest = ends.map(|(from, to)| distance_to(point, from, to)).fold(f64::INFINITY, f64::min);
        assert!(nearest < SAME_TO_A_PIXEL, "{}: {point:?} is {nearest} from the curve", folder.display());
    }
}

#[test]
fn metrics_match_pycocotools_tide_and_voc() {
    let mut with_tide = 0;
    for folder in fixtures() {
        let (images, classes, expected) = load(&folder);
        let metrics = metrics(&images, &classes, expected["threshold"].as_f64().unwrap());
        let summary = [
            metrics.ap,
            metrics.ap50,
            metrics.ap75,
            metrics.ap_small,
            metrics.ap_medium,
            metrics.ap_large,
            metrics.ar1,
            metrics.ar10,
            metrics.ar100,
            metrics.ar_small,
            metrics.ar_medium,
            metrics.ar_large,
        ];
        for (place, number) in summary.into_iter().enumerate() {
            check(&format!("number {place} of COCO"), &folder, number, &expected["stats"][place]);
        }
        check("precision", &folder, metrics.precision, &expected["precision"]);
        check("recall", &folder, metrics.recall, &expected["recall"]);
        check("F1", &folder, metrics.f1, &expected["f1"]);
        check("best F1", &folder, metrics.best.map(|best| best.f1), &expected["best_f1"]);
        check_curve(&folder, &metrics.curve, list(&expected["curve"]));
        assert_eq!(metrics.classes.len(), list(&expected["classes"]).len());
        for (class, expected) in metrics.classes.iter().zip(list(&expected["classes"])) {
            let check = |what: &str, got, expected: &Value| {
                check(&format!("{what} of class {:?}", class.class.id), &folder, got, expected);
            };
            check("AP", class.ap, &expected["ap"]);
            check("AP50", class.ap50, &expected["ap50"]);
            check("precision", class.precision, &expected["precision"]);
            check("recall", class.recall, &expected["recall"]);
            check("F1", class.f1, &expected["f1"]);
            check("best F1", class.best.map(|best| best.f1), &expected["best_f1"]);
            check("AP of VOC 2007", class.voc2007_ap, &expected["voc"][0]);
            check("AP of VOC 2012", class.voc2012_ap, &expected["voc"][1]);
            check_curve(&folder, &class.curve, list(&expected["curve"]));
            assert_eq!(class.truths, expected["truths"].as_u64().unwrap());
            assert_eq!(class.detections, expected["detections"].as_u64().unwrap());
            let curve = list(&expected["precision_at_recall"]);
            assert_eq!(class.precision_at_recall.len(), curve.len());
            for (got, expected) in class.precision_at_recall.iter().zip(curve) {
                check("curve", Some(*got), expected);
            }
        }
        let Some(tide) = expected["tide"].as_object() else {
            continue;
        };
        with_tide += 1;
        for (kind, cost) in tide["costs"].as_object().unwrap() {
            let (got, cost) = (metrics.errors[kind.as_str()].ap50_cost, cost.as_f64().unwrap());
            assert!((got - cost).abs() < CLOSE_TO_TIDECV, "{}: {kind}: {got}, expected {cost}", folder.display());
        }
        for (kind, count) in tide["counts"].as_object().unwrap() {
            let got = metrics.errors[kind.as_str()].count;
            assert_eq!(got, count.as_u64().unwrap(), "{}: {kind}", folder.display());
        }
    }
    assert!(with_tide >= 5);
}

#[test]
fn box_outcomes_add_up_to_the_counts() {
    for folder in fixtures() {
        let (images, classes, _) = load(&folder);
        let metrics = metrics(&images, &classes, 0.0);
        let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
        for image in &images {
            let outcomes = outcomes(image, CORRECT_IOU);
            assert_eq!(outcomes.len(), image.detections.len());
            for outcome in outcomes {
                *kinds.entry(outcome.kind.into_str()).or_default() += 1;
            }
        }
        assert_eq!(metrics.true_positives, kinds.get("correct").copied().unwrap_or(0));
        for (kind, cost) in metrics.errors.iter().filter(|(kind, _)| **kind != "missed") {
            assert_eq!(kinds.get(kind).copied().unwrap_or(0), cost.count, "{}: {kind}", folder.display());
        }
    }
}

#[test]
fn resample_repeats_its_images() {
    for folder in fixtures() {
        let (images, classes, expected) = load(&folder);
        let threshold = expected["threshold"].as_f64().unwrap();
        let mut draws = DetectionDraws::new(vec![threshold; classes.len()]);
        for image in &images {
            draws.add(image);
        }
        draws.sort();
        let once = vec![1; images.len()];
        let drawn: Vec<u32> = (0..images.len() as u32).map(|place| (place * 7 + 3) % 4).collect();
        // With equal scores the order of the images decides, and repeated ones stand apart.
        let is_tied = folder.ends_with("ties");
        for times in [once, drawn].iter().take(if is_tied { 1 } else { 2 }) {
            let repeated =
                images.iter().zip(times).flat_map(|(image, times)| std::iter::repeat_n(image, *times as usize));
            let metrics = metrics(repeated, &classes, threshold);
            let DetectionMetrics { ap, ap50, ap75, ar100, precision, recall, f1, .. } = metrics;
            let wanted = [ap, ap50, ap75, ar100, precision, recall, f1];
            for (got, wanted) in draws.measure(times).into_iter().zip(wanted) {
                assert_eq!(got.is_some(), wanted.is_some());
                let difference = got.unwrap_or(0.0) - wanted.unwrap_or(0.0);
                assert!(difference.abs() < CLOSE, "{}: {got:?}, expected {wanted:?}", folder.display());
            }
        }
    }
}

/// The suspicious labels of images, each named by its number.
fn suspicious(images: Vec<ImageObjects>, classes: &[EvaluatedClass], threshold: f64) -> Vec<SuspiciousLabel> {
    let thresholds = vec![threshold; classes.len()];
    let mut evaluation = DetectionEvaluation::new(classes.to_vec(), thresholds.clone());
    let mut draws = DetectionDraws::new(thresholds);
    let mut suspicious = SuspiciousLabels::default();
    for (number, objects) in images.into_iter().enumerate() {
        let found = evaluation.add(&objects);
        draws.add(&objects);
        let stored = (0..objects.detections.len() as u32).collect();
        let image = ImageSides { name: number.to_string(), objects, stored, ..ImageSides::default() };
        suspicious.add_boxes(&image, &found, &draws);
    }
    draws.sort();
    suspicious.finish(&draws, || false).unwrap().labels
}

/// Against `tests/evaluation/make_suspicious.py`: pycocotools, cleanlab and `FiftyOne`.
#[test]
fn suspicious_labels_match_pycocotools_cleanlab_fiftyone() {
    for folder in fixtures() {
        let (images, classes, expected) = load(&folder);
        let found = suspicious(images, &classes, expected["threshold"].as_f64().unwrap());
        assert!(found.is_sorted_by(|one, other| one.gain >= other.gain), "{}", folder.display());
        let rows = read(&folder, "suspicious.json");
        assert_eq!(found.len(), list(&rows).len(), "{}", folder.display());
        for row in list(&rows) {
            let image = row["image"].to_string();
            let index = |name: &str| row[name].as_u64().map(|index| index as u32);
            let is_same = |label: &&SuspiciousLabel| {
                label.image == image
                    && label.kind.into_str() == row["kind"]
                    && (label.object, label.found) == (index("label"), index("found"))
            };
            let label = found.iter().find(is_same).unwrap_or_else(|| panic!("{}: {row}", folder.display()));
            check(&format!("gain of {row}"), &folder, Some(label.gain), &row["gain"]);
            check(&format!("mistakenness of {row}"), &folder, label.mistakenness, &row["mistakenness"]);
            check(&format!("quality of {row}"), &folder, label.quality, &row["quality"]);
            check(&format!("image quality of {row}"), &folder, label.image_quality, &row["image_quality"]);
        }
    }
}
