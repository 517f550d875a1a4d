//! `spotcheck export` as a process, on real predictions; independent programs read the exported files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::UNIX_EPOCH;

use serde_json::Value;
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{
    Change, ClassScore, Detection, DeviceChoice, FileStamp, InferenceLocation, KeepRule, Prediction, PredictionContent,
    RunId, RunInfo, RunKey, SamplePrediction, SampleUri, Verdict, VerdictTarget,
};
use spotcheck::model::catalog::Library;
use spotcheck::project::{OpenMode, OpenRequest, Project};

use crate::support::{python_packages, repository, runtime_home, spotcheck, stderr};

const DETECTOR: &str = "ssd-mobilenet-coco";
const CLASSIFIER: &str = "efficientnet-lite0";
const RUN: RunId = RunId(1);

/// A folder of images with their predictions, as written by `predict --out` and in a project.
struct Predicted {
    folder: tempfile::TempDir,
    /// The lines of `predict --out`.
    lines: String,
}

impl Predicted {
    /// Images with names that are difficult for every format, one without any object, and a broken one.
    fn new(model: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let images = folder.path().join("images");
        std::fs::create_dir_all(images.join("sub")).unwrap();
        let samples = repository().join("assets/samples");
        for (sample, name) in [
            ("rocket.jpg", "a, \"b\" & <c>.jpg"),
            ("coffee.png", "coffee.png"),
            ("grace_hopper.jpg", "grace 픽셀.jpg"),
            ("chelsea.png", "sub/coffee.png"),
        ] {
            std::fs::copy(samples.join(sample), images.join(name)).unwrap();
        }
        image::RgbImage::new(8, 4).save(images.join("nothing.png")).unwrap();
        std::fs::write(images.join("=broken.jpg"), b"\xff\xd8\xff\xe0 no more").unwrap();
        let out = folder.path().join("predicted.jsonl");
        let mut predict = spotcheck(&["predict"]);
        predict.arg(&images).args(["--model", model, "--out"]);
        let output = predict.arg(&out).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let lines = std::fs::read_to_string(out).unwrap();
        let predicted = Self { folder, lines };
        predicted.store(model);
        predicted
    }

    fn store(&self, model: &str) {
        let library = Library::open(&AppDirs::below(runtime_home()));
        let model = library.find(model).unwrap();
        let info = RunInfo {
            id: RUN,
            name: "first run".to_owned(),
            key: RunKey {
                model_id: model.card.id.clone(),
                weights_sha256: model.card.file.sha256.clone(),
                device: DeviceChoice::Auto,
                batch: None,
                threads: None,
                keep: KeepRule::default(),
                made: InferenceLocation::Here,
            },
            card: model.card,
            labels: model.labels,
            created_ms: 1_763_710_000_000,
        };
        let predictions =
            Change::Predictions { run: RUN, predictions: self.values().iter().map(prediction_of_line).collect() };
        self.change(vec![Change::AddRun(Box::new(info)), predictions]);
    }

    fn change(&self, changes: Vec<Change>) {
        let images = self.images();
        let path = self.project();
        let request = OpenRequest { path: &path, root: images.to_str(), mode: OpenMode::Write, program: "a test" };
        let project = Project::open(&request, |_| ()).unwrap().project;
        for change in changes {
            project.write(1, change).unwrap();
        }
        project.flush().unwrap();
    }

    fn judge(&self, image: &str, box_index: Option<u32>, verdict: Verdict) -> Change {
        Change::SetVerdict {
            sample: self.uri(image),
            target: VerdictTarget { run: Some(RUN), box_index },
            verdict: Some(verdict),
            reviewer: None,
        }
    }

    fn images(&self) -> PathBuf {
        self.folder.path().join("images")
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("test.spotcheck")
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn uri(&self, image: &str) -> SampleUri {
        SampleUri::new(self.images().join(image).to_str().unwrap())
    }

    fn values(&self) -> Vec<Value> {
        let lines = self.lines.lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn export(&self, format: &str, out: &Path, more: &[&str]) -> Output {
        let mut command = spotcheck(&["export"]);
        command.arg(self.project());
        command.args(["--format", format, "--out"]).arg(out);
        command.args(more).output().unwrap()
    }

    #[track_caller]
    fn exported(&self, format: &str, name: &str, more: &[&str]) -> PathBuf {
        let out = self.out(name);
        let output = self.export(format, &out, more);
        assert!(output.status.success(), "{}", stderr(&output));
        out
    }

    /// The boxes from a minimum score on, as written by `predict`: image name, class id, xyxy clipped to the image.
    fn boxes(&self, min_score: f64) -> Vec<(String, u64, [f64; 4])> {
        let mut boxes = Vec::new();
        for line in self.values() {
            let Some(detections) = line["detections"].as_array() else {
                continue;
            };
            let uri = line["uri"].as_str().unwrap();
            let name = uri.strip_prefix(self.images().to_str().unwrap()).unwrap()[1..].to_owned();
            let limits = [&line["width"], &line["height"]].map(|side| side.as_f64().unwrap());
            for detection in detections {
                if detection["score"].as_f64().unwrap() < min_score {
                    continue;
                }
                let edge = |index: usize| {
                    let edge = detection["box"][index].as_f64().unwrap();
                    edge.clamp(0.0, limits[index % 2])
                };
                let class_id = detection["class_id"].as_u64().unwrap();
                boxes.push((name.clone(), class_id, [edge(0), edge(1), edge(2), edge(3)]));
            }
        }
        assert!(boxes.len() > 3, "{boxes:?}");
        boxes
    }
}

fn prediction_of_line(line: &Value) -> SamplePrediction {
    let side = |side: &str| u32::try_from(line[side].as_u64().unwrap()).unwrap();
    let prediction = |prediction| Prediction {
        width: side("width"),
        height: side("height"),
        content: prediction,
        warnings: Vec::new(),
    };
    let result = if let Some(error) = line["error"].as_str() {
        Err(error.to_owned())
    } else if line["detections"].is_array() {
        let boxes: Vec<Detection> = serde_json::from_value(line["detections"].clone()).unwrap();
        Ok(prediction(PredictionContent::Detections(boxes)))
    } else {
        let classes: Vec<ClassScore> = serde_json::from_value(line["classes"].clone()).unwrap();
        Ok(prediction(PredictionContent::Classes(classes)))
    };
    SamplePrediction {
        sample: SampleUri::new(line["uri"].as_str().unwrap()),
        stamp: stamp_of(Path::new(line["uri"].as_str().unwrap())),
        result,
    }
}

/// The stamp of the current file.
fn stamp_of(path: &Path) -> FileStamp {
    let metadata = std::fs::metadata(path).unwrap();
    let since_epoch = metadata.modified().unwrap().duration_since(UNIX_EPOCH);
    FileStamp {
        size_bytes: metadata.len(),
        modified_ns: Some(since_epoch.unwrap().as_nanos() as i64),
        ..FileStamp::default()
    }
}

/// Runs a script that reads an export with an independent loader and prints JSON.
#[track_caller]
pub(crate) fn python(script: &str, arguments: &[&Path]) -> Value {
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", python_packages("dataset-loaders"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(repository().join("tests/export").join(script))
        .args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Compares boxes as printed by a loader, `[image, class, x1, y1, x2, y2]`, with the expected ones, in any order.
#[track_caller]
fn assert_same_boxes(read: &Value, expected: &[(String, String, [f64; 4])], tolerance: f64) {
    let mut left: Vec<&Value> = read.as_array().unwrap().iter().collect();
    assert_eq!(left.len(), expected.len(), "{read}");
    for (image, class, edges) in expected {
        let place = left.iter().position(|read| {
            read[0] == image.as_str()
                && read[1] == class.as_str()
                && (0..4).all(|edge| (read[edge + 2].as_f64().unwrap() - edges[edge]).abs() <= tolerance)
        });
        let place = place.unwrap_or_else(|| panic!("{image} {class} {edges:?} is not in {read}"));
        left.swap_remove(place);
    }
}

fn with_labels(boxes: Vec<(String, u64, [f64; 4])>) -> Vec<(String, String, [f64; 4])> {
    let labels = repository().join("models/labels/coco-91.txt");
    let labels = std::fs::read_to_string(labels).unwrap();
    let name = |id: u64| {
        let line = labels.lines().find(|line| line.split('\t').next() == Some(&id.to_string()));
        line.unwrap().split('\t').nth(1).unwrap().to_owned()
    };
    boxes.into_iter().map(|(image, class_id, edges)| (image, name(class_id), edges)).collect()
}

#[test]
fn jsonl_export_equals_predict_plus_judgments() {
    for model in [DETECTOR, CLASSIFIER] {
        let predicted = Predicted::new(model);
        let plain = predicted.exported("jsonl", "plain.jsonl", &["--all-boxes"]);
        assert_eq!(std::fs::read_to_string(plain).unwrap(), predicted.lines);
        predicted.change(vec![
            predicted.judge("coffee.png", None, Verdict::Accept),
            Change::SetNote { sample: predicted.uri("coffee.png"), text: "=good".to_owned() },
        ]);
        let judged = predicted.exported("jsonl", "judged.jsonl", &["--all-boxes"]);
        let judged = std::fs::read_to_string(judged).unwrap();
        let added = r#","verdict":"accept","note":"=good"}"#;
        assert_eq!(judged.replace(added, "}"), predicted.lines);
        assert_eq!(judged.matches(added).count(), 1);
    }
}

#[test]
fn outdated_prediction_is_skipped_and_reported() {
    let predicted = Predicted::new(DETECTOR);
    predicted.change(vec![
        predicted.judge("coffee.png", Some(0), Verdict::Accept),
        predicted.judge("coffee.png", None, Verdict::Accept),
        Change::SetNote { sample: predicted.uri("coffee.png"), text: "a cup".to_owned() },
    ]);
    image::RgbImage::new(300, 200).save(predicted.images().join("coffee.png")).unwrap();
    let messages = "1 prediction skipped";
    let lines = predicted.out("lines.jsonl");
    let output = predicted.export("jsonl", &lines, &["--all-boxes"]);
    assert!(stderr(&output).contains(messages), "{}", stderr(&output));
    let uri = predicted.uri("coffee.png");
    let expected = format!(r#"{{"uri":"{uri}","status":"outdated","note":"a cup"}}"#);
    let lines = std::fs::read_to_string(lines).unwrap();
    assert!(lines.lines().any(|line| line == expected), "{lines}");
    assert_eq!(lines.lines().count(), predicted.lines.lines().count());
    let dataset = predicted.out("coco.json");
    let output = predicted.export("coco", &dataset, &[]);
    assert!(stderr(&output).contains(messages), "{}", stderr(&output));
    let dataset: Value = serde_json::from_slice(&std::fs::read(dataset).unwrap()).unwrap();
    let images = dataset["images"].as_array().unwrap().iter();
    let names: Vec<&Value> = images.map(|image| &image["file_name"]).collect();
    let coffees = names.iter().filter(|name| name.as_str().unwrap().contains("coffee"));
    assert!(coffees.eq([&"sub/coffee.png"]), "{names:?}");
    let table = predicted.exported("csv", "table.csv", &[]);
    assert!(std::fs::read_to_string(table).unwrap().contains("outdated"));
}

#[test]
fn accepted_box_is_exported_at_any_score() {
    let predicted = Predicted::new(DETECTOR);
    let coffee = predicted.uri("coffee.png");
    let values = predicted.values();
    let line = values.iter().find(|line| line["uri"] == coffee.as_str()).unwrap();
    let scores = line["detections"].as_array().unwrap().iter();
    let scores: Vec<f64> = scores.map(|found| found["score"].as_f64().unwrap()).collect();
    let faint: Vec<u32> =
        (0..scores.len()).filter(|&index| (0.1..0.5).contains(&scores[index])).map(|index| index as u32).collect();
    let [accepted, corrected, rejected, ..] = faint[..] else {
        panic!("three boxes below the threshold: {scores:?}");
    };
    let drawn = |name: &str| {
        let images = predicted.exported("images", name, &["--image-kind", "png"]);
        std::fs::read(images.join("coffee.png")).unwrap()
    };
    let as_predicted = drawn("before");
    let dog = Verdict::WrongClass("dog".to_owned());
    predicted.change(vec![
        predicted.judge("coffee.png", Some(accepted), Verdict::Accept),
        predicted.judge("coffee.png", Some(corrected), dog),
        predicted.judge("coffee.png", Some(rejected), Verdict::Reject),
    ]);
    assert_ne!(drawn("after"), as_predicted);

    // Above this score, no box is without a verdict.
    let only = ["--verdicts", "corrected", "--min-score", "0.99"];
    let text = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let coco: Value = serde_json::from_str(&text(predicted.exported("coco", "c.json", &only))).unwrap();
    let classes = coco["annotations"].as_array().unwrap().iter();
    let classes: Vec<u64> = classes.map(|found| found["category_id"].as_u64().unwrap()).collect();
    assert_eq!(classes.len(), 2, "{coco}");
    assert!(classes.contains(&18), "it is a dog: {coco}");
    let labels = text(predicted.exported("yolo", "yolo", &only).join("labels/coffee.txt"));
    assert_eq!(labels.lines().count(), 2, "{labels}");
    let voc = predicted.exported("voc", "voc", &only);
    let voc = text(voc.join("Annotations/coffee.xml"));
    assert_eq!(voc.matches("<object>").count(), 2, "{voc}");
    let lines = text(predicted.exported("jsonl", "l.jsonl", &only));
    assert_eq!(lines.matches(r#""label":"#).count(), 2, "{lines}");
    assert!(lines.contains(r#""label":"dog","score":1.0,"author":"person""#), "{lines}");
    let table = text(predicted.exported("csv", "t.csv", &only));
    assert_eq!(table.lines().count(), 3, "{table}");
    let all = predicted.export("csv", &predicted.out("all.csv"), &["--verdicts", "corrected", "--all-boxes"]);
    assert!(stderr(&all).contains("remove --model-classes and --all-boxes"), "{}", stderr(&all));

    // In addition to the boxes above the threshold that match the search.
    let above = predicted.boxes(0.5).len();
    let lines = text(predicted.exported("jsonl", "all.jsonl", &[]));
    assert_eq!(lines.matches(r#""box":"#).count(), above + 2, "{lines}");
    let found = ["--filter", "coffee boxes:2", "--min-score", "0.99"];
    let lines = text(predicted.exported("jsonl", "found.jsonl", &found));
    assert_eq!(lines.lines().count(), 1, "{lines}");
    let out = predicted.out("report.html");
    let output = predicted.export("report", &out, &["--min-score", "0.99"]);
    assert!(stderr(&output).contains("2 boxes"), "{}", stderr(&output));
}

#[test]
fn coco_export_opens_in_pycocotools() {
    let predicted = Predicted::new(DETECTOR);
    let file = predicted.exported("coco", "coco.json", &["--min-score", "0.3"]);
    let read = python("read_coco.py", &[&file]);
    assert_eq!(
        read["images"],
        serde_json::json!(["a, \"b\" & <c>.jpg", "coffee.png", "grace 픽셀.jpg", "nothing.png", "sub/coffee.png"])
    );
    assert_eq!(read["categories"], 80);
    let boxes = with_labels(predicted.boxes(0.3));
    assert_same_boxes(&read["boxes"], &boxes, 1e-3);
    assert_eq!(read["loaded_as_results"], boxes.len());
    assert_eq!(read["scores_kept"], true);
}

#[test]
fn yolo_and_voc_exports_open_in_supervision() {
    let predicted = Predicted::new(DETECTOR);
    // `supervision` searches for images in only one folder.
    let flat = ["--min-score", "0.3", "--with-images", "--filter", "!name:sub"];
    let expected: Vec<_> = with_labels(predicted.boxes(0.3))
        .into_iter()
        .filter(|(image, ..)| !image.starts_with("sub/"))
        .map(|(image, label, edges)| (image.replace(['"', '<', '>'], "_"), label, edges))
        .collect();
    for (format, scores, tolerance) in [("yolo", false, 0.01), ("yolo", true, 0.01), ("voc", false, 0.5)] {
        let mut arguments = flat.to_vec();
        if scores {
            arguments.push("--yolo-scores");
        }
        let folder = predicted.exported(format, &format!("{format}-{scores}"), &arguments);
        let read = python(&format!("read_{format}.py"), &[&folder]);
        assert_eq!(read["images"], 4, "{read}");
        assert_same_boxes(&read["boxes"], &expected, tolerance);
    }
}

#[test]
fn csv_export_is_read_by_python_without_formulas() {
    let predicted = Predicted::new(DETECTOR);
    predicted.change(vec![Change::SetNote {
        sample: predicted.uri("coffee.png"),
        text: "two\r\nlines, \"quoted\"".to_owned(),
    }]);
    let file = predicted.exported("csv", "boxes.csv", &["--min-score", "0.3"]);
    let read = python("read_csv.py", &[&file]);
    let boxes = with_labels(predicted.boxes(0.3));
    assert_same_boxes(&read["boxes"], &boxes, 1e-3);
    assert_eq!(
        read["without_box"],
        serde_json::json!([["'=broken.jpg", "failed"], ["a, \"b\" & <c>.jpg", "ok"], ["nothing.png", "ok"]])
    );
    assert_eq!(read["notes"], serde_json::json!(["two\r\nlines, \"quoted\""]));
    assert_eq!(read["all_rows_have_all_cells"], true);
}

#[test]
fn report_is_one_self_contained_page() {
    for model in [DETECTOR, CLASSIFIER] {
        let predicted = Predicted::new(model);
        predicted.change(vec![
            predicted.judge("coffee.png", None, Verdict::Accept),
            predicted.judge("sub/coffee.png", None, Verdict::WrongClass("<b>".to_owned())),
            Change::SetNote {
                sample: predicted.uri("coffee.png"),
                text: "</p><script src='https://example.org'></script>".to_owned(),
            },
        ]);
        let file = predicted.exported("report", "report.html", &[]);
        let read = python("read_html.py", &[&file]);
        assert_eq!(read["unbalanced"], serde_json::json!([]), "{read}");
        assert_eq!(read["from_outside"], serde_json::json!([]));
        assert_eq!(read["scripts"], 0);
        assert_eq!(read["images_without_text"], 0);
        assert!(read["jpegs"].as_u64().unwrap() >= 4, "{read}");
        assert_eq!(read["broken_jpegs"], 0);
        let headings = read["headings"].as_array().unwrap();
        for heading in ["Least certain", "Accepted", "Wrong class", "Failed images"] {
            assert!(headings.contains(&heading.into()), "{headings:?}");
        }
    }
}

#[test]
fn report_compares_verdicts_with_ground_truth() {
    let predicted = Predicted::new(DETECTOR);
    let values = predicted.values();
    let coffee = values.iter().find(|line| line["uri"].as_str().unwrap().ends_with("images/coffee.png")).unwrap();
    let found = coffee["detections"].as_array().unwrap();
    assert!(found.len() > 1, "{coffee}");
    predicted.change(vec![
        predicted.judge("coffee.png", Some(0), Verdict::Accept),
        predicted.judge("coffee.png", Some(1), Verdict::Accept),
    ]);
    // The first box is an object; the object of the second one's class is elsewhere.
    let objects = serde_json::json!([
        {"box": found[0]["box"], "label": found[0]["label"]},
        {"box": [0, 0, 9, 9], "label": found[1]["label"]},
    ]);
    let image = serde_json::json!({"image": "coffee.png", "width": 600, "height": 400, "detections": objects});
    let truth = predicted.out("truth.jsonl");
    std::fs::write(&truth, image.to_string()).unwrap();
    let with_truth = ["--truth", truth.to_str().unwrap(), "--min-score", "0.05"];
    let page = |file: PathBuf| std::fs::read_to_string(file).unwrap();
    let without = page(predicted.exported("report", "without.html", &["--min-score", "0.05"]));
    let with = page(predicted.exported("report", "with.html", &with_truth));
    for (fact, count) in [("Against the ground truth", 1), ("Verdicts that the ground truth agrees with", 1)] {
        assert_eq!((without.matches(fact).count(), with.matches(fact).count()), (0, count), "{fact}");
    }
    assert!(with.contains("1 of 1 verdict") && with.contains("0 of 1 verdict"), "in {} characters", with.len());
    // The drawn images have their outcomes.
    let drawn = |name: &str, more: &[&str]| image::open(predicted.exported("images", name, more).join("coffee.png"));
    assert_ne!(drawn("plain", &with_truth[2..]).unwrap(), drawn("outcomes", &with_truth).unwrap());
    for (format, out) in [("coco", "x.json"), ("embeddings", "x.npy")] {
        let refused = predicted.export(format, &predicted.out(out), &with_truth[..2]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("--truth"), "{}", stderr(&refused));
    }
    let lost = predicted.export("report", &truth, &[&with_truth[..], &["--force"]].concat());
    assert_eq!(lost.status.code(), Some(1), "{}", stderr(&lost));
    assert_eq!(std::fs::read_to_string(&truth).unwrap(), image.to_string());
}

#[test]
fn annotated_images_skip_broken_ones() {
    let predicted = Predicted::new(DETECTOR);
    let folder = predicted.exported("pictures", "pictures", &["--picture-kind", "png"]);
    let drawn = image::open(folder.join("sub/coffee.png")).unwrap().into_rgb8();
    let original = image::open(predicted.images().join("sub/coffee.png")).unwrap().into_rgb8();
    assert_eq!(drawn.dimensions(), original.dimensions());
    assert_ne!(drawn, original);
    assert!(folder.join("nothing.png").exists());
    assert!(!folder.join("=broken.png").exists());
}

#[test]
fn filter_and_verdicts_select_the_export() {
    let predicted = Predicted::new(DETECTOR);
    predicted.change(vec![
        predicted.judge("coffee.png", None, Verdict::Accept),
        predicted.judge("sub/coffee.png", None, Verdict::Reject),
        predicted.judge("grace 픽셀.jpg", Some(0), Verdict::WrongClass("dog".to_owned())),
    ]);
    let images = |name: &str, more: &[&str]| {
        let file = predicted.exported("coco", name, more);
        python("read_coco.py", &[&file])["images"].clone()
    };
    // No other box of the second image is visible.
    let accepted = images("accepted.json", &["--verdicts", "corrected", "--min-score", "0.9"]);
    assert_eq!(accepted, serde_json::json!(["coffee.png", "grace 픽셀.jpg"]));
    let rejected = images("rejected.json", &["--filter", "verdict:reject"]);
    assert_eq!(rejected, serde_json::json!(["sub/coffee.png"]));
    let without_box = images("empty.json", &["--filter", "boxes:0"]);
    assert!(without_box.as_array().unwrap().contains(&"nothing.png".into()), "{without_box}");
    let camera = repository().join("tests/cases/decode/jpeg-camera/image.jpg");
    std::fs::copy(camera, predicted.folder.path().join("images/nothing.png")).unwrap();
    let filter = ["--filter", "camera:nikon taken:2026-05 near:48.86,-2.29~2km"];
    let taken = std::fs::read_to_string(predicted.exported("jsonl", "taken.jsonl", &filter)).unwrap();
    assert!(taken.lines().count() == 1 && taken.contains("nothing.png"), "{taken}");
    let of_truth = predicted.export("coco", &predicted.out("truth.json"), &["--filter", "fp class:cup"]);
    assert_eq!(of_truth.status.code(), Some(1));
    assert!(stderr(&of_truth).contains("needs ground truth"), "{}", stderr(&of_truth));
    let relabeled = std::fs::read_to_string(predicted.out("accepted.json")).unwrap();
    assert!(relabeled.contains("\"model_category_id\":1"), "{relabeled}");
}

#[test]
fn corrected_classes_are_those_of_judged_images() {
    let predicted = Predicted::new(CLASSIFIER);
    predicted.change(vec![
        predicted.judge("coffee.png", None, Verdict::Accept),
        predicted.judge("sub/coffee.png", None, Verdict::WrongClass("kitten".to_owned())),
        predicted.judge("nothing.png", None, Verdict::Reject),
    ]);
    let corrected = ["--verdicts", "corrected"];
    let mut table = csv::Reader::from_path(predicted.exported("csv", "t.csv", &corrected)).unwrap();
    let headers = table.headers().unwrap().clone();
    let cell =
        |row: &csv::StringRecord, name: &str| row[headers.iter().position(|header| header == name).unwrap()].to_owned();
    let rows = table.records().map(Result::unwrap);
    let rows: Vec<[String; 4]> =
        rows.map(|row| ["image", "label", "score", "author"].map(|name| cell(&row, name))).collect();
    let coffee = predicted.uri("coffee.png");
    let best = predicted.values().into_iter().find(|line| line["uri"] == coffee.as_str()).unwrap();
    let best = best["classes"][0]["label"].as_str().unwrap();
    assert_eq!(rows, [["coffee.png", best, "1", "model"], ["sub/coffee.png", "kitten", "1", "person"]]);
    let lines = std::fs::read_to_string(predicted.exported("jsonl", "l.jsonl", &corrected)).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let classes: Vec<&Value> = lines.iter().map(|line| &line["classes"]).collect();
    assert!(classes.iter().all(|classes| classes.as_array().unwrap().len() == 1), "{classes:?}");
    assert_eq!(classes[1][0]["label"], "kitten");
}

#[test]
fn only_exports_are_overwritten_and_only_with_force() {
    let predicted = Predicted::new(DETECTOR);
    predicted.exported("coco", "out", &[]);
    let again = predicted.export("coco", &predicted.out("out"), &[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("--force"), "{}", stderr(&again));
    predicted.exported("coco", "out", &["--force"]);
    let over_the_images = predicted.export("yolo", &predicted.images(), &["--force"]);
    assert_eq!(over_the_images.status.code(), Some(1));
    assert!(predicted.images().join("coffee.png").exists());
    let over_an_image = predicted.images().join("coffee.png");
    let over_an_image = predicted.export("csv", &over_an_image, &["--force"]);
    assert!(stderr(&over_an_image).contains("never replaced"), "{}", stderr(&over_an_image));
    let left: Vec<String> = std::fs::read_dir(predicted.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("partial"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn missing_images_are_listed_with_exit_code_3() {
    let predicted = Predicted::new(DETECTOR);
    std::fs::remove_file(predicted.images().join("coffee.png")).unwrap();
    let out = predicted.out("with-images");
    let output = predicted.export("yolo", &out, &["--with-images"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("coffee.png: skipped"), "{}", stderr(&output));
    assert!(out.join("labels/sub/coffee.txt").exists());
    assert!(!out.join("labels/coffee.txt").exists());
}

#[test]
fn overlong_and_deep_filters_are_refused() {
    let predicted = Predicted::new(DETECTOR);
    let filtered = |name: &str, filter: &str| {
        let out = predicted.out(name);
        let output = predicted.export("csv", &out, &["--filter", filter]);
        (output, out)
    };
    let long = "nowhere or ".repeat(800);
    let (output, out) = filtered("long.csv", &(long.clone() + "name:grace"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = std::fs::read_to_string(out).unwrap();
    assert!(rows.lines().skip(1).all(|row| row.contains("grace")), "{rows}");
    assert!(rows.lines().count() > 1);
    for filter in [
        "(".repeat(8000),
        "!".repeat(9000),
        "!".repeat(27_500),
        "(!".repeat(4000) + "a",
        long.repeat(4) + "a",
        "x".repeat(100_000),
        "\"".to_owned() + &"x".repeat(9000),
        "x".repeat(9000) + ":1",
    ] {
        let (output, out) = filtered("refused.csv", &filter);
        let messages = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{messages}");
        assert!(messages.contains("--filter") && messages.len() < 500, "{messages}");
        assert!(!out.exists());
    }
}

#[test]
fn impossible_exports_are_refused() {
    let predicted = Predicted::new(CLASSIFIER);
    let out = predicted.out("x");
    for (format, more, code, reason) in [
        ("coco", vec![], 1, "a classifier's"),
        ("csv", vec!["--run", "second"], 1, "1  first run"),
        ("csv", vec!["--filter", "score>"], 1, "--filter"),
        ("docx", vec![], 2, "jsonl, csv, coco"),
        ("csv", vec!["--min-score", "2"], 2, "from 0 to 1"),
    ] {
        let output = predicted.export(format, &out, &more);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert!(!out.exists());
    }
}
