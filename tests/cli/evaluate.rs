//! `spotcheck evaluate` as a process, compared with pycocotools, scikit-learn, and its own other paths.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use spotcheck::domain::{Change, RunId, SampleUri, Verdict, VerdictTarget};
use spotcheck::project::{OpenMode, OpenRequest, Project};

use crate::export::python;
use crate::support::{repository, spotcheck, stderr};

const CLOSE: f64 = 1e-9;
const NUMBERS: [&str; 12] = [
    "ap",
    "ap50",
    "ap75",
    "ap_small",
    "ap_medium",
    "ap_large",
    "ar1",
    "ar10",
    "ar100",
    "ar_small",
    "ar_medium",
    "ar_large",
];

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Runs `evaluate` with `--out`, and returns the metrics and the exit code.
fn evaluate(arguments: &[&Path]) -> (Value, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("metrics.json");
    let output = spotcheck(&["evaluate", "--draws", "0", "--out"]).arg(&out).args(arguments).output().unwrap();
    assert!(out.exists(), "{}", stderr(&output));
    (json_of(&out), output.status.code())
}

fn refused(arguments: &[&Path]) -> String {
    let output = spotcheck(&["evaluate"]).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

fn check(what: &str, got: &Value, expected: &Value) {
    let is_close = match (got.as_f64(), expected.as_f64()) {
        (Some(got), Some(expected)) => (got - expected).abs() < CLOSE,
        _ => got.is_null() && expected.is_null(),
    };
    assert!(is_close, "{what}: {got}, expected {expected}");
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(name)
}

#[test]
fn coco_metrics_match_pycocotools() {
    let fixtures = std::fs::read_dir(repository().join("tests/evaluation")).unwrap();
    let fixtures = fixtures.map(|entry| entry.unwrap().path()).filter(|path| path.join("results.json").is_file());
    let mut count = 0;
    for fixture in fixtures {
        count += 1;
        let expected = json_of(&fixture.join("expected.json"));
        let (truth, results) = (fixture.join("truth.json"), fixture.join("results.json"));
        let arguments = [path("--truth"), truth, path("--predictions"), results, path("--min-score"), path("0.5")];
        let (metrics, code) = evaluate(&arguments.each_ref().map(PathBuf::as_path));
        // One detection covers fewer than half of the images.
        let expected_code = if fixture.ends_with("one_detection") { 3 } else { 0 };
        assert_eq!(code, Some(expected_code), "{}", fixture.display());
        assert_eq!(metrics["task"], "detection");
        for (name, expected) in NUMBERS.iter().zip(expected["stats"].as_array().unwrap()) {
            check(name, &metrics[name], expected);
        }
        for name in ["precision", "recall", "f1"] {
            check(name, &metrics[name], &expected[name]);
        }
        let classes = metrics["classes"].as_array().unwrap();
        assert_eq!(classes.len(), expected["classes"].as_array().unwrap().len());
        for (class, expected) in classes.iter().zip(expected["classes"].as_array().unwrap()) {
            assert_eq!(class["id"], expected["id"]);
            for name in ["ap", "ap50", "precision", "recall", "f1"] {
                check(&format!("{name} of class {}", class["id"]), &class[name], &expected[name]);
            }
            assert_eq!((&class["truths"], &class["detections"]), (&expected["truths"], &expected["detections"]));
        }
    }
    assert!(count >= 4);
}

#[test]
fn suspicious_labels_are_written_by_gain() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = repository().join("tests/evaluation/crowds");
    let truth = folder.path().join("instances_train.json");
    std::fs::copy(fixture.join("truth.json"), &truth).unwrap();
    let out = folder.path().join("suspicious.csv");
    let mut evaluate = spotcheck(&["evaluate", "--draws", "0", "--min-score", "0.5", "--suspicious-labels"]);
    evaluate.arg(&out).arg("--truth").arg(&truth).arg("--predictions").arg(fixture.join("results.json"));
    let output = evaluate.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("instances_train.json"), "{}", stderr(&output));
    let expected = json_of(&fixture.join("suspicious.json"));
    let expected = expected.as_array().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("{} suspicious", expected.len())));
    let text = std::fs::read_to_string(&out).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = rows.next().unwrap();
    let column = |name: &str| names.iter().position(|one| *one == name).unwrap();
    let found: Vec<(&str, f64)> = rows.map(|row| (row[column("kind")], row[column("gain")].parse().unwrap())).collect();
    assert!(found.is_sorted_by(|one, other| one.1 >= other.1), "{text}");
    for kind in ["class", "missing", "misplaced", "spurious"] {
        let of_kind = expected.iter().filter(|row| row["kind"] == kind);
        let mut wanted: Vec<f64> = of_kind.map(|row| row["gain"].as_f64().unwrap()).collect();
        wanted.sort_by(|one, other| other.total_cmp(one));
        let gains: Vec<f64> = found.iter().filter(|(one, _)| *one == kind).map(|(_, gain)| *gain).collect();
        assert_eq!(gains.len(), wanted.len(), "{kind}");
        for (gain, wanted) in gains.iter().zip(&wanted) {
            assert!((gain - wanted).abs() < CLOSE, "{kind}: {gain}, expected {wanted}");
        }
    }
    let again = evaluate.output().unwrap();
    assert_eq!(again.status.code(), Some(1), "an existing file is kept");
}

/// Predicts the sample images with the detector into a project.
fn predicted(folder: &Path) -> (PathBuf, PathBuf) {
    let (images, project) = (repository().join("assets/samples"), folder.join("run.spotcheck"));
    let mut predict = spotcheck(&["predict", "--model", "ssd-mobilenet-coco", "--project"]);
    let output = predict.arg(&project).arg(&images).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    (images, project)
}

#[test]
fn project_and_exported_boxes_give_equal_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let (images, project) = predicted(folder.path());
    let export = |min_score: &str, out: &Path| {
        let mut export = spotcheck(&["export", "--format", "coco", "--min-score", min_score, "--out"]);
        let output = export.arg(out).arg(&project).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json_of(out)
    };
    let mut truth = export("0.4", &folder.path().join("truth.json"));
    let everything = export("0", &folder.path().join("all.json"));
    let annotations = everything["annotations"].as_array().unwrap();
    let results: Vec<Value> = annotations
        .iter()
        .map(|one| {
            json!({"image_id": one["image_id"], "category_id": one["category_id"], "bbox": one["bbox"],
                "score": one["score"]})
        })
        .collect();
    // Every third object is narrower, and every fifth is missing.
    let objects = truth["annotations"].as_array_mut().unwrap();
    assert!(objects.len() >= 5, "{} objects", objects.len());
    for object in objects.iter_mut().step_by(3) {
        let width = object["bbox"][2].as_f64().unwrap();
        object["bbox"][2] = json!(0.83 * width);
    }
    let mut place = 0;
    objects.retain(|_| {
        place += 1;
        place % 5 != 0
    });
    for object in objects.iter_mut() {
        object.as_object_mut().unwrap().remove("score");
    }
    let (truth_file, results_file) = (folder.path().join("gt.json"), folder.path().join("results.json"));
    std::fs::write(&truth_file, truth.to_string()).unwrap();
    std::fs::write(&results_file, Value::from(results).to_string()).unwrap();
    let (of_files, code) = evaluate(&[Path::new("--truth"), &truth_file, Path::new("--predictions"), &results_file]);
    assert_eq!(code, Some(0));
    let (of_project, _) = evaluate(&[&images, Path::new("--truth"), &truth_file, Path::new("--project"), &project]);
    assert!(of_project["ap"].as_f64().unwrap() > 0.1, "{of_project}");
    for name in NUMBERS.iter().chain(&["precision", "recall", "f1"]) {
        // An export rounds boxes.
        let (one, other) = (of_project[name].as_f64(), of_files[name].as_f64());
        assert_eq!(one.is_some(), other.is_some(), "{name}");
        assert!((one.unwrap_or(0.0) - other.unwrap_or(0.0)).abs() < 1e-6, "{name}: {one:?}, {other:?}");
    }
}

#[test]
fn class_table_is_evaluated_against_predict_output() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("predicted.jsonl");
    let mut predict = spotcheck(&["predict", "--model", "efficientnet-lite0", "--out"]);
    let output = predict.arg(&lines).arg(repository().join("assets/samples")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = std::fs::read_to_string(&lines).unwrap();
    let mut table = "image,class\n".to_owned();
    let mut images = 0;
    for (place, line) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let name = line["uri"].as_str().unwrap().rsplit('/').next().unwrap();
        let best = &line["classes"][usize::from(place == 0)];
        writeln!(table, "{name},\"{}\"", best["label"].as_str().unwrap()).unwrap();
        images += 1;
    }
    let truth = folder.path().join("truth.csv");
    std::fs::write(&truth, table).unwrap();
    let (metrics, _) = evaluate(&[Path::new("--truth"), &truth, Path::new("--predictions"), &lines]);
    assert_eq!(metrics["task"], "classification");
    assert_eq!(metrics["images"], images);
    check("top-1", &metrics["top1"], &json!(f64::from(images - 1) / f64::from(images)));
    check("top-5", &metrics["top5"], &json!(1.0));
}

#[test]
fn intervals_contain_the_value_and_are_reproducible() {
    let fixture = repository().join("tests/evaluation/crowds");
    let folder = tempfile::tempdir().unwrap();
    let numbers = |name: &str| {
        let out = folder.path().join(name);
        let mut evaluate = spotcheck(&["evaluate", "--draws", "200", "--truth"]);
        evaluate.arg(fixture.join("truth.json")).arg("--predictions").arg(fixture.join("results.json"));
        let output = evaluate.arg("--out").arg(&out).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json_of(&out)
    };
    let metrics = numbers("one.json");
    for name in ["ap", "ap50", "precision", "recall", "f1"] {
        let interval = &metrics["intervals"][name];
        let [low, high] = ["low", "high"].map(|end| interval[end].as_f64().unwrap());
        let number = metrics[name].as_f64().unwrap();
        assert!(low < number && number < high && high - low < 0.4, "{name}: {number} in {interval}");
    }
    assert_eq!(metrics["intervals"], numbers("two.json")["intervals"]);
}

#[test]
fn broken_ground_truth_is_an_error_or_a_counted_problem() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = repository().join("tests/evaluation/small");
    let results = fixture.join("results.json");
    let whole = std::fs::read_to_string(fixture.join("truth.json")).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let flags = [Path::new("--predictions"), &results, Path::new("--truth")];
    let with = |truth: &Path| refused(&[flags[0], flags[1], flags[2], truth]);
    assert!(with(&write("cut.json", &whole[..whole.len() / 2])).contains("cut.json"));
    assert!(with(&write("empty.json", "")).contains("empty.json"));
    assert!(with(&folder.path().join("missing.json")).contains("missing.json"));
    assert!(with(&write("no.json", "{\"a\": 1}")).contains("no.json"));
    let mut broken: Value = serde_json::from_str(&whole).unwrap();
    broken["annotations"][0]["bbox"] = json!([1.0, 2.0, -3.0, 4.0]);
    broken["annotations"][1]["category_id"] = json!(999);
    broken["annotations"][2]["image_id"] = json!(999_999);
    let objects = broken["annotations"].as_array().unwrap().len() as u64;
    let broken = write("broken.json", &broken.to_string());
    let (metrics, code) = evaluate(&[flags[0], flags[1], flags[2], &broken]);
    assert_eq!(code, Some(3));
    let problems = metrics["problems"].as_object().unwrap();
    assert_eq!(problems.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 3, "{problems:?}");
    let counted = metrics["classes"].as_array().unwrap().iter().map(|class| class["truths"].as_u64().unwrap());
    assert_eq!(counted.sum::<u64>(), objects - 3);
}

#[test]
fn swapped_sides_and_disjoint_classes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let truth = write("truth.csv", "image,class\na.jpg,cat\nb.jpg,dog\n");
    let predictions = write("predictions.csv", "image,class,score\na.jpg,cat,0.9\nb.jpg,cat,0.8\n");
    let others = write("others.csv", "image,class,score\na.jpg,car,0.9\nb.jpg,bus,0.8\n");
    let [of_truth, of_predictions] = ["--truth", "--predictions"].map(Path::new);
    let (metrics, code) = evaluate(&[of_truth, &truth, of_predictions, &predictions]);
    assert_eq!((code, &metrics["top1"]), (Some(0), &json!(0.5)));
    let cell = |truth, predicted| json!({"truth": truth, "predicted": predicted, "count": 1});
    assert_eq!(metrics["confusion"], json!([cell(0, 0), cell(1, 0)]));
    refused(&[of_truth, &predictions, of_predictions, &truth]);
    refused(&[of_truth, &truth, of_predictions, &truth]);
    assert!(refused(&[of_truth, &truth, of_predictions, &others]).contains("--class-map"));
    let map = write("map.csv", "from,to\ncar,cat\n");
    let (metrics, _) = evaluate(&[of_truth, &truth, of_predictions, &others, Path::new("--class-map"), &map]);
    assert_eq!(metrics["top1"], 0.5);
    // One map for several models: this one has no truck.
    let map = write("map.csv", "from,to\ntruck,dog\ncar,cat\n");
    let arguments = [of_truth, &truth, of_predictions, &others, Path::new("--class-map"), &map];
    let messages = stderr(&spotcheck(&["evaluate"]).args(arguments).output().unwrap());
    assert!(messages.contains(": truck."), "{messages}");
    let boxes = write("boxes.csv", "image,class,score,x,y,w,h\na.jpg,cat,0.9,1,2,3,4\n");
    let messages = refused(&[of_truth, &truth, of_predictions, &boxes]);
    assert!(!messages.contains("--run"), "there is no project: {messages}");
    assert!(messages.contains("has image classes, but the prediction of a.jpg has boxes"), "{messages}");
    let (metrics, _) = evaluate(&[of_truth, &truth, of_predictions, &others, Path::new("--class-map"), &map]);
    assert_eq!(metrics["confusion"], json!([cell(0, 0), {"truth": 1, "predicted": null, "count": 1}]));
}

/// Runs `evaluate` on two files with this text, and returns the metrics and the messages.
fn of_texts(truth: (&str, &str), predictions: (&str, &str)) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [truth, predictions] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let out = folder.path().join("metrics.json");
    let mut evaluate = spotcheck(&["evaluate", "--draws", "0", "--truth"]);
    evaluate.arg(folder.path().join(truth.0)).arg("--predictions").arg(folder.path().join(predictions.0));
    let output = evaluate.arg("--out").arg(&out).output().unwrap();
    assert!(out.exists(), "{}", stderr(&output));
    (json_of(&out), stderr(&output) + &String::from_utf8_lossy(&output.stdout))
}

#[test]
fn ambiguous_image_names_are_counted() {
    let truth = "image,class\na/1.jpg,cat\nb/1.jpg,cat\n2.jpg,cat\n";
    let predictions = "image,class,score\n1.jpg,cat,0.9\n2.jpg,cat,0.9\n3.jpg,cat,0.9\n";
    let (metrics, messages) = of_texts(("truth.csv", truth), ("predictions.csv", predictions));
    assert_eq!((&metrics["images"], &metrics["images_ambiguous"]), (&json!(1), &json!(1)));
    assert_eq!((&metrics["images_without_truth"], &metrics["images_without_prediction"]), (&json!(1), &json!(2)));
    for expected in ["CSV, 3 images", ": 3.jpg.\n", ": 1.jpg.\n", "\n1 image\n"] {
        assert!(messages.contains(expected), "{expected}: {messages}");
    }
}

#[test]
fn duplicate_annotation_ids_are_kept() {
    let truth = json!({
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": 7, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0},
            {"id": 7, "image_id": 1, "category_id": 1, "bbox": [50, 50, 10, 10], "area": 100, "iscrowd": 0},
        ],
    });
    let results = json!([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.9}]);
    let (metrics, messages) = of_texts(("truth.json", &truth.to_string()), ("results.json", &results.to_string()));
    assert_eq!((&metrics["classes"][0]["truths"], &metrics["recall"]), (&json!(2), &json!(0.5)));
    assert_eq!(metrics["problems"], json!({"repeated_id": 1}));
    assert!(messages.contains("annotations[1]") && messages.contains("id 7"), "{messages}");
}

#[test]
fn verdicts_in_a_project_are_ground_truth() {
    let folder = tempfile::tempdir().unwrap();
    let (images, project) = predicted(folder.path());
    let flags = [&images, Path::new("--project"), &project, Path::new("--truth"), &project];
    assert!(refused(&flags).contains("No verdicts"));
    assert!(refused(&[Path::new("--truth"), &project, Path::new("--predictions"), &project]).contains("--project "));
    let lines = folder.path().join("shown.jsonl");
    let mut export = spotcheck(&["export", "--format", "jsonl", "--out"]);
    assert!(export.arg(&lines).arg(&project).output().unwrap().status.success());
    let text = std::fs::read_to_string(&lines).unwrap();
    let shown: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let boxes = |line: &Value| line["detections"].as_array().unwrap().len();
    let with_box = shown.iter().position(|line| boxes(line) > 0).unwrap();
    let left_out = (with_box + 1) % shown.len();
    let mut total = 0;
    let request = OpenRequest { path: &project, root: images.to_str(), mode: OpenMode::Write, program: "a test" };
    let writer = Project::open(&request, |_| ()).unwrap().project;
    let judge = |line: &Value, box_index, verdict| {
        let target = VerdictTarget { run: Some(RunId(1)), box_index };
        let sample = SampleUri::new(line["uri"].as_str().unwrap());
        writer.write(1, Change::SetVerdict { sample, target, verdict: Some(verdict), reviewer: None }).unwrap();
    };
    for (place, line) in shown.iter().enumerate().filter(|(place, _)| *place != left_out) {
        judge(line, None, Verdict::Accept);
        total += boxes(line);
        if place == with_box {
            judge(line, Some(0), Verdict::Reject);
        }
    }
    judge(&shown[left_out], None, Verdict::Reject);
    writer.flush().unwrap();
    drop(writer);
    let (metrics, code) = evaluate(&flags);
    assert_eq!(metrics["true_positives"], total - 1, "{metrics}");
    assert_eq!((&metrics["false_positives"], &metrics["recall"]), (&json!(1), &json!(1.0)));
    assert_eq!(
        (metrics["images"].as_u64(), &metrics["images_without_truth"]),
        (Some(shown.len() as u64 - 1), &json!(1))
    );
    assert_eq!(code, Some(3));
    let named = [flags[0], flags[1], flags[2], flags[3], flags[4], Path::new("--truth-run"), Path::new("17")];
    assert!(refused(&named).contains("no run “17”"));
}

#[test]
fn image_names_can_be_ground_truth() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    std::fs::create_dir(&images).unwrap();
    for name in ["1_cat.png", "2_cat.png", "3_dog.png", "cow.png"] {
        std::fs::copy(repository().join("assets/samples/chelsea.png"), images.join(name)).unwrap();
    }
    let predictions = folder.path().join("predictions.csv");
    let rows = "image,class,score\n1_cat.png,cat,0.9\n2_cat.png,dog,0.8\n3_dog.png,dog,0.7\n";
    std::fs::write(&predictions, rows).unwrap();
    let flags = ["--truth-names", "*_{class}.png", "--predictions"].map(Path::new);
    let (metrics, code) = evaluate(&[flags[0], flags[1], flags[2], &predictions]);
    assert_eq!((&metrics["images"], &metrics["top1"], code), (&json!(3), &json!(2.0 / 3.0), Some(0)));
    let (metrics, code) = evaluate(&[&images, flags[0], flags[1], flags[2], &predictions]);
    assert_eq!((&metrics["images"], &metrics["problems"], code), (&json!(3), &json!({"unknown_class": 1}), Some(3)));
    let wrong = spotcheck(&["evaluate", "--truth-names", "*_cat", "--predictions", "x.csv"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("needs {class} once"), "{}", stderr(&wrong));
}

#[test]
fn longest_class_in_a_file_name_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let predictions = folder.path().join("predictions.csv");
    let rows = "image,class,score\nn01484850_great_white_shark.JPEG,great white shark,0.9\n";
    std::fs::write(&predictions, rows).unwrap();
    let mut evaluate = spotcheck(&["evaluate", "--truth-names", "*_{class}", "--predictions"]);
    let output = evaluate.arg(&predictions).output().unwrap();
    let messages = stderr(&output);
    assert!(messages.contains("“great_white_shark”"), "{messages}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Top-1                         100.0%"), "{output:?}");
}

#[test]
fn ground_truth_with_all_scores_1_has_no_scores() {
    let truth = "ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\n\
        a,/m/cat,1,0.1,0.3,0.1,0.3,0\na,/m/cat,1,0.5,0.9,0.5,0.9,-1\n";
    let predictions =
        "ImageID,LabelName,Score,XMin,XMax,YMin,YMax,width,height\na,/m/cat,0.9,0.1,0.3,0.1,0.3,100,100\n";
    let (metrics, messages) = of_texts(("truth.csv", truth), ("predictions.csv", predictions));
    assert_eq!((&metrics["recall"], &metrics["missed"]), (&json!(0.5), &json!(1)), "{metrics}");
    assert!(messages.contains("scores are 1"), "{messages}");

    let folder = tempfile::tempdir().unwrap();
    let [truth_file, predictions_file] = ["truth.csv", "predictions.csv"].map(|name| folder.path().join(name));
    std::fs::write(&truth_file, truth.replacen(",1,", ",0.9,", 1)).unwrap();
    std::fs::write(&predictions_file, predictions).unwrap();
    let arguments = [Path::new("--truth"), &truth_file, Path::new("--predictions"), &predictions_file];
    assert!(refused(&arguments).contains("--ignore-truth-scores"));
    let insisting: Vec<&Path> = arguments.into_iter().chain([Path::new("--ignore-truth-scores")]).collect();
    assert_eq!(evaluate(&insisting).0["recall"], 0.5);
}

#[test]
fn predictions_without_a_usable_score_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let boxes = write("boxes.csv", "image,class,x,y,w,h\na.jpg,cat,1,2,3,4\n");
    let classes = write("classes.csv", "image,class\na.jpg,cat\nb.jpg,cat\nc.jpg,cat\n");
    let flags = ["--truth", "--predictions"].map(Path::new);
    for (truth, predictions) in [
        (&boxes, "image,class,score,x,y,w,h\na.jpg,cat,93,1,2,3,4\n"),
        (&boxes, "image,class,score,x,y,w,h\na.jpg,cat,93 %,1,2,3,4\n"),
        (&classes, "image,class,score\na.jpg,cat,7.5\na.jpg,dog,0.5\nb.jpg,cat,-3\n"),
    ] {
        let predictions = write("predictions.csv", predictions);
        let messages = refused(&[flags[0], truth, flags[1], &predictions]);
        assert!(messages.contains("no usable entries") && messages.contains("line 2"), "{messages}");
    }
    // The best class of b is invalid, so its other class does not become the best one.
    let rows = "image,class,score\na.jpg,cat,0.9\nb.jpg,dog,1.5\nb.jpg,cat,0.5\n";
    let lines = "{\"uri\":\"a.jpg\",\"classes\":[{\"label\":\"cat\",\"score\":0.9}]}\n\
        {\"uri\":\"b.jpg\",\"classes\":[{\"label\":\"dog\",\"score\":1.5},{\"label\":\"cat\",\"score\":0.5}]}\n";
    for (name, text) in [("rows.csv", rows), ("lines.jsonl", lines)] {
        let (metrics, code) = evaluate(&[flags[0], &classes, flags[1], &write(name, text)]);
        assert_eq!((&metrics["images"], &metrics["images_failed"], code), (&json!(1), &json!(1), Some(3)), "{name}");
    }
}

#[test]
fn metric_below_its_bound_has_its_own_exit_code() {
    let fixture = repository().join("tests/evaluation/plain");
    let ap50 = json_of(&fixture.join("expected.json"))["stats"][1].as_f64().unwrap();
    let check = |bound: &str, code: i32, expected: &str| {
        let mut evaluate = spotcheck(&["evaluate", "--draws", "0", "--fail-below", bound, "--truth"]);
        evaluate.arg(fixture.join("truth.json")).arg("--predictions").arg(fixture.join("results.json"));
        let output = evaluate.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{bound}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{bound}: {}", stderr(&output));
    };
    check(&format!("ap50={}", ap50 - 0.001), 0, "");
    check(&format!("ap50={}", ap50 + 0.001), 4, "ap50 is 0.3948");
    for unknown in ["ap51=0.5", "best=0.5", "classes=1"] {
        check(unknown, 2, "unknown metric");
    }
    check("images_failed=0", 0, "");
    check("top1=0.5", 1, "not a metric of detection");
    check("ap50", 2, "for example ap50=0.5");
}

#[test]
fn metric_of_the_other_task_fails_before_measuring() {
    let fixture = repository().join("tests/evaluation/plain");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("metrics.json");
    let mut evaluate = spotcheck(&["evaluate", "--fail-below", "top1=0.5", "--truth"]);
    evaluate.arg(fixture.join("truth.json")).arg("--predictions").arg(fixture.join("results.json"));
    let output = evaluate.arg("--out").arg(&out).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(!out.exists() && output.stdout.is_empty());
}

#[test]
fn missing_interval_has_its_reason() {
    let fixture = repository().join("tests/evaluation/plain");
    for (draws, expected) in [("0", 0), ("20", 1), ("60", 0)] {
        let mut evaluate = spotcheck(&["evaluate", "--draws", draws, "--truth"]);
        evaluate.arg(fixture.join("truth.json")).arg("--predictions").arg(fixture.join("results.json"));
        let text = String::from_utf8(evaluate.output().unwrap().stdout).unwrap();
        let reasons = text.lines().filter(|line| line.starts_with("no 95% CI: fewer than 40 resamples"));
        assert_eq!(reasons.count(), expected, "{draws}: {text}");
        assert_eq!(text.contains("%  no 95% CI\n"), expected == 1, "{draws}: {text}");
    }
}

#[test]
fn names_with_line_breaks_stay_on_their_line() {
    let truth = json!({
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "categories": [{"id": 1, "name": "two\nlines"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100}],
    });
    let results = json!([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.9}]);
    let (_, messages) = of_texts(("truth.json", &truth.to_string()), ("results.json", &results.to_string()));
    assert!(messages.contains("two\\nlines: AP 100.0%"), "{messages}");
}

#[test]
fn relative_boxes_use_image_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let [images, labels] = ["images", "labels"].map(|name| folder.path().join(name));
    for folder in [&images, &labels] {
        std::fs::create_dir(folder).unwrap();
    }
    // 451 x 300 and 512 x 512 pixels.
    for (name, size, image) in [("a", [451.0, 300.0], "chelsea.png"), ("b", [512.0, 512.0], "astronaut.png")] {
        std::fs::copy(repository().join("assets/samples").join(image), images.join(format!("{name}.png"))).unwrap();
        let [x, y] = [60.0 / size[0], 45.0 / size[1]];
        let [width, height] = [100.0 / size[0], 50.0 / size[1]];
        std::fs::write(labels.join(format!("{name}.txt")), format!("0 {x} {y} {width} {height} 0.9\n")).unwrap();
    }
    let truth = folder.path().join("truth.csv");
    // The box of a is shifted by 20 columns: IoU 80 / 120.
    std::fs::write(&truth, "image,class_id,x,y,w,h\na.png,0,30,20,100,50\nb.png,0,10,20,100,50\n").unwrap();
    let flags = ["--truth", "--predictions"].map(Path::new);
    let arguments = [flags[0], &truth, flags[1], &labels];
    assert!(refused(&arguments).contains("image folder"));
    let (metrics, code) = evaluate(&[&images, flags[0], &truth, flags[1], &labels]);
    assert_eq!(code, Some(0));
    check("AP at 0.50", &metrics["ap50"], &json!(1.0));
    // One of two is correct from IoU 0.70 on.
    check("AP at 0.75", &metrics["ap75"], &json!(51.0 / 101.0 / 2.0));
    std::fs::write(images.join("b.png"), "no image").unwrap();
    assert!(refused(&[&images, flags[0], &truth, flags[1], &labels]).contains("size of b"));
    std::fs::remove_file(images.join("b.png")).unwrap();
    let (metrics, code) = evaluate(&[&images, flags[0], &truth, flags[1], &labels]);
    assert_eq!((code, &metrics["images"], &metrics["images_without_size"]), (Some(3), &json!(1), &json!(1)));
}

#[test]
fn model_without_class_names_is_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    for class in ["cat", "dog"] {
        std::fs::create_dir_all(images.join(class)).unwrap();
        let image = repository().join("assets/samples/chelsea.png");
        std::fs::copy(image, images.join(class).join(format!("{class}.png"))).unwrap();
    }
    let project = folder.path().join("run.spotcheck");
    let unnamed = repository().join("tests/cases/conventions/sigmoids/model.onnx");
    let mut predict = spotcheck(&["predict", "--model"]);
    let output = predict.arg(&unnamed).arg("--project").arg(&project).arg(&images).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    refused(&[&images, Path::new("--project"), &project, Path::new("--truth"), &images]);
}

/// Images of 64 × 48 pixels, ground truth with an object in each, and predictions, which are measured as a file and as
/// a run imported from it.
struct FileAndRun {
    folder: tempfile::TempDir,
    predictions: PathBuf,
}

impl FileAndRun {
    fn new(images: &[&str], (name, predictions): (&str, &str)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join("images");
        std::fs::create_dir(&sources).unwrap();
        let mut truth = "image,class,x,y,w,h\n".to_owned();
        for image in images {
            image::RgbImage::new(64, 48).save(sources.join(image)).unwrap();
            writeln!(truth, "{image},cat,10,10,20,20").unwrap();
        }
        std::fs::write(folder.path().join("truth.csv"), truth).unwrap();
        let bench = Self { predictions: folder.path().join(name), folder };
        std::fs::write(&bench.predictions, predictions).unwrap();
        let mut import = spotcheck(&["import"]);
        import.arg(sources).arg("--predictions").arg(&bench.predictions).arg("--project").arg(bench.project());
        let output = import.output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        bench
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("run.spotcheck")
    }

    /// The metrics of the file, after a check that the run has the same.
    fn numbers(&self, min_score: &str) -> Value {
        let truth = self.folder.path().join("truth.csv");
        let project = self.project();
        let [of_file, of_run] = [("--predictions", &self.predictions), ("--project", &project)].map(|(flag, place)| {
            let flags = ["--truth", flag, "--min-score", min_score].map(Path::new);
            evaluate(&[flags[0], &truth, flags[1], place, flags[2], flags[3]]).0
        });
        let numbers = NUMBERS.iter().chain(&["precision", "recall", "f1", "threshold", "best", "images", "confusion"]);
        let skipped = ["images_failed", "images_without_truth", "predictions_of_other_classes"];
        for name in numbers.chain(&skipped).chain(&["errors"]) {
            assert_eq!(of_file[name], of_run[name], "{name} at {min_score}");
        }
        of_file
    }
}

#[test]
fn score_equal_to_the_minimum_counts() {
    let scores = ["0.05", "0.1", "0.2", "0.3", "0.4", "0.6", "0.7", "0.8", "0.9"];
    let names: Vec<String> = scores.iter().map(|score| format!("{}.png", &score[2..])).collect();
    let mut rows = "image,class,score,x,y,w,h\n".to_owned();
    for (name, score) in names.iter().zip(scores) {
        writeln!(rows, "{name},cat,{score},10,10,20,20\n{name},cat,{score},40,30,10,10").unwrap();
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bench = FileAndRun::new(&names, ("predictions.csv", &rows));
    for (below, score) in scores.into_iter().enumerate() {
        let metrics = bench.numbers(score);
        let shown = scores.len() - below;
        let counts =
            ["true_positives", "false_positives", "missed"].map(|name| metrics[name].as_u64().unwrap() as usize);
        assert_eq!(counts, [shown, shown, below], "at {score}");
        assert_eq!(metrics["threshold"].to_string(), score);
    }
}

#[test]
fn printed_best_minimum_score_gives_the_best_f1() {
    let truth = "image,class,x,y,w,h\na.png,cat,10,10,20,20\n";
    // Rounded to four decimals, the best minimum score is above that of the correct box.
    let rows = "image,class,score,x,y,w,h\na.png,cat,0.9344889,10,10,20,20\na.png,cat,0.93448,40,30,10,10\n";
    let (metrics, text) = of_texts(("truth.csv", truth), ("predictions.csv", rows));
    let printed = text.split_once("Best F1 (≥ ").unwrap().1.split_once(')').unwrap().0;
    assert_eq!(metrics["best"], json!({"threshold": 0.934_488_9, "f1": 1.0}));
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("truth.csv", truth), ("predictions.csv", rows)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for (score, f1) in [(printed, "100.0%"), ("0.9345", "0.0%"), ("0.5", "66.7%")] {
        let mut evaluate = spotcheck(&["evaluate", "--draws", "0", "--min-score", score, "--truth", "truth.csv"]);
        let output = evaluate.args(["--predictions", "predictions.csv"]).current_dir(&folder).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let row = text.lines().find(|line| line.starts_with("F1 (")).unwrap();
        let label = if score == "0.5" { "0.50" } else { score };
        assert!(row.starts_with(&format!("F1 (≥ {label})")) && row.ends_with(&format!(" {f1}")), "{score}: {row}");
        let counts = "1 true positive, 1 false positive, 0 false negatives";
        assert_eq!(text.contains(counts), score == "0.5", "{text}");
    }
}

#[test]
fn imported_run_has_the_metrics_of_its_file() {
    let all = ["a.png", "b.png", "c.png", "d.png", "e.png"];
    // Nothing was detected in d and e.
    let rows = "image,class,score,x,y,w,h\na.png,cat,0.9,10,10,20,20\nb.png,cat,0.8,10,12,20,20\n\
        c.png,cat,0.7,40,30,10,10\n";
    let metrics = FileAndRun::new(&all, ("predictions.csv", rows)).numbers("0.5");
    assert_eq!((&metrics["images"], &metrics["recall"]), (&json!(5), &json!(0.4)));

    // c failed, and d is from an older version of the image: neither counts as an image without detections.
    let lines = r#"{"uri":"a.png","status":"ok","width":64,"height":48,"detections":[{"box":[10,10,30,30],"label":"cat","score":0.9}]}
{"uri":"b.png","status":"ok","width":64,"height":48,"detections":[]}
{"uri":"c.png","status":"failed","error":"is truncated"}
{"uri":"d.png","status":"outdated"}
"#;
    let rows = "image,status,error,class,score,x,y,w,h\na.png,ok,,cat,0.9,10,10,20,20\nb.png,ok,,,,,,,\n\
        c.png,failed,is truncated,,,,,,\nd.png,outdated,,,,,,,\n";
    for predictions in [("lines.jsonl", lines), ("rows.csv", rows)] {
        let metrics = FileAndRun::new(&all[..4], predictions).numbers("0.5");
        assert_eq!((&metrics["images"], &metrics["recall"]), (&json!(2), &json!(0.5)), "{predictions:?}");
        assert_eq!((&metrics["images_failed"], &metrics["images_without_prediction"]), (&json!(1), &json!(0)));
    }
}

#[test]
fn skipped_predictions_are_counted_once() {
    let lines = r#"{"uri":"a.png","status":"ok","width":64,"height":48,"detections":[{"box":[10,10,30,30],"label":"cat","score":0.9},{"box":[40,30,50,40],"label":"dog","score":0.8}]}
{"uri":"b.png","status":"ok","width":64,"height":48,"detections":[{"box":[10,10,30,30],"label":"dog","score":0.9}]}
{"uri":"c.png","status":"failed","error":"is truncated"}
"#;
    let bench = FileAndRun::new(&["a.png", "b.png", "c.png"], ("lines.jsonl", lines));
    let truth = bench.folder.path().join("truth.csv");
    std::fs::write(&truth, "image,class,x,y,w,h\na.png,cat,10,10,20,20\nc.png,cat,10,10,20,20\n").unwrap();
    let of_file = bench.numbers("0.5");
    let flags = ["--truth", "--project"].map(Path::new);
    let (of_run, _) = evaluate(&[flags[0], &truth, flags[1], &bench.project()]);
    for metrics in [of_file, of_run] {
        let count = |name: &str| metrics[name].as_u64().unwrap();
        // The dog of b, which is not in the ground truth, is not counted.
        assert_eq!((count("predictions_of_other_classes"), count("images_without_truth")), (1, 1));
        assert_eq!((count("images_failed"), count("images_without_prediction")), (1, 0));
    }
}

/// Checks that every plot in a folder is XML without external references, and an image of twice its size that is not
/// blank.
fn check_plots(folder: &Path, names: &[&str]) {
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "spotcheck-export.json")
        .collect();
    files.sort();
    let mut expected: Vec<String> =
        names.iter().flat_map(|name| [format!("{name}.png"), format!("{name}.svg")]).collect();
    expected.sort();
    assert_eq!(files, expected);
    for name in names {
        let svg = std::fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap();
        let mut reader = quick_xml::Reader::from_str(&svg);
        let (mut depth, mut elements) = (0, 0);
        loop {
            match reader.read_event().unwrap() {
                quick_xml::events::Event::Start(_) => {
                    depth += 1;
                    elements += 1;
                }
                quick_xml::events::Event::End(_) => depth -= 1,
                quick_xml::events::Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(depth, 0, "{name}");
        assert!(elements > 20, "{name}: {elements} elements");
        assert!(!svg.contains("href") && !svg.contains("NaN") && !svg.contains("inf"), "{name}");
        let sized = |length: u32, side: &str| svg.contains(&format!("{side}=\"{}\"", f64::from(length) / 2.0));
        let png = image::open(folder.join(format!("{name}.png"))).unwrap().to_rgb8();
        assert!(sized(png.width(), "width") && sized(png.height(), "height"), "{name}: {:?}", png.dimensions());
        let drawn = png.pixels().filter(|pixel| pixel.0.iter().any(|channel| *channel < 128)).count();
        let share = drawn as f64 / f64::from(png.width() * png.height());
        assert!((0.003..0.5).contains(&share), "{name}: {share} of the pixels are drawn");
    }
}

#[test]
fn plots_and_class_table_are_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = repository().join("tests/evaluation/plain");
    let (out, table, plots) =
        (folder.path().join("metrics.json"), folder.path().join("classes.csv"), folder.path().join("plots"));
    let evaluate = |flags: &[&str]| {
        let mut evaluate = spotcheck(&["evaluate", "--draws", "0", "--truth"]);
        evaluate.arg(fixture.join("truth.json")).arg("--predictions").arg(fixture.join("results.json"));
        evaluate.arg("--out").arg(&out).arg("--out").arg(&table).arg("--plots").arg(&plots).args(flags);
        evaluate.output().unwrap()
    };
    let output = evaluate(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("AP (IoU 0.50:0.95)"));
    check_plots(&plots, &["precision-recall", "minimum-score", "f1", "confusion-matrix", "errors", "ap-by-class"]);
    let metrics = json_of(&out);
    let mut rows = csv::Reader::from_path(&table).unwrap();
    let header = rows.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let classes = metrics["classes"].as_array().unwrap();
    assert_eq!(rows.len(), classes.len());
    for (row, class) in rows.iter().zip(classes) {
        assert_eq!(&row[1], class["name"]);
        for (name, cell) in header.iter().zip(row).filter(|(name, _)| *name != "name") {
            let number = match name.strip_prefix("best_") {
                Some(of_best) => &class["best"][of_best],
                None => &class[name],
            };
            assert_eq!(cell.parse::<f64>().ok(), number.as_f64(), "{name} of {}", &row[1]);
        }
    }
    assert_eq!(evaluate(&[]).status.code(), Some(1));
    assert_eq!(evaluate(&["--force"]).status.code(), Some(0));
    std::fs::remove_file(plots.join("spotcheck-export.json")).unwrap();
    let refused = evaluate(&["--force"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("never replaced"), "{}", stderr(&refused));
}

#[test]
fn classifier_has_its_own_plots_and_table() {
    let folder = tempfile::tempdir().unwrap();
    let (truth, predictions) = (folder.path().join("truth.csv"), folder.path().join("predictions.csv"));
    let (mut truths, mut predicted) = ("image,class\n".to_owned(), "image,class,score\n".to_owned());
    for image in 0..40 {
        let classes = ["cat", "dog", "<&\"=1>"];
        let right = classes[image % 3];
        writeln!(truths, "{image}.jpg,\"{}\"", right.replace('"', "\"\"")).unwrap();
        let shown = if image % 4 == 0 { classes[(image + 1) % 3] } else { right };
        writeln!(predicted, "{image}.jpg,\"{}\",0.{:02}", shown.replace('"', "\"\""), 50 + image).unwrap();
    }
    std::fs::write(&truth, truths).unwrap();
    std::fs::write(&predictions, predicted).unwrap();
    let (plots, table) = (folder.path().join("plots"), folder.path().join("classes.csv"));
    let mut evaluate = spotcheck(&["evaluate", "--truth"]);
    evaluate.arg(&truth).arg("--predictions").arg(&predictions).arg("--plots").arg(&plots);
    let output = evaluate.arg("--out").arg(&table).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    check_plots(&plots, &["confusion-matrix", "coverage", "f1-by-class", "reliability"]);
    let text = std::fs::read_to_string(&table).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "id,name,truths,predictions,precision,recall,f1"));
    assert!(lines[1].starts_with(",cat,14,"), "{text}");
}

/// The report of an evaluation as a browser reads it; `arguments` follow `--truth TRUTH --predictions PREDICTIONS`.
fn report(folder: &Path, truth: &str, predictions: &str, arguments: &[&Path]) -> Value {
    let [truth_file, predictions_file, report] =
        ["truth.csv", "predictions.csv", "report.html"].map(|name| folder.join(name));
    std::fs::write(&truth_file, truth).unwrap();
    std::fs::write(&predictions_file, predictions).unwrap();
    let mut evaluate = spotcheck(&["evaluate", "--force", "--truth"]);
    evaluate.arg(&truth_file).arg("--predictions").arg(&predictions_file).arg("--report").arg(&report);
    let output = evaluate.args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let read = python("read_html.py", &[&report]);
    assert_eq!((&read["unbalanced"], &read["from_outside"]), (&json!([]), &json!([])), "{read}");
    assert_eq!(
        (&read["scripts"], &read["images_without_text"], &read["broken_jpegs"]),
        (&json!(0), &json!(0), &json!(0))
    );
    read
}

#[test]
fn unusable_ground_truth_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth.csv");
    let predictions = folder.path().join("predictions.csv");
    std::fs::write(&predictions, "image,class,score\na.jpg,cat,0.9\n").unwrap();
    let flags = ["--truth", "--predictions"].map(Path::new);
    let messages = |content: &str, name: &str| {
        let truth = truth.with_file_name(name);
        std::fs::write(&truth, content).unwrap();
        refused(&[flags[0], &truth, flags[1], &predictions])
    };
    let of_csv = messages("image,class,x,y,w,h\na.jpg,cat,one,2,3,4\nb.jpg,cat,1,2,three,4\n", "truth.csv");
    assert!(of_csv.contains("no usable entries") && of_csv.contains("line 2"), "{of_csv}");
    let of_json = messages(r#"{"images": [], "annotations": {}, "categories": []}"#, "truth.json");
    assert!(of_json.contains("list of annotations"), "{of_json}");
    assert!(messages("{}", "empty.json").contains("no keys"));
}

#[test]
fn report_shows_the_most_confident_errors() {
    let folder = tempfile::tempdir().unwrap();
    let samples = repository().join("assets/samples");
    let truth = "image,class,x,y,w,h\ncoffee.png,cup,100,50,200,150\nchelsea.png,cat,10,10,400,280\n\
                 astronaut.png,person,50,50,300,400\n";
    // Another class; correct; background; an IoU of 150 / 400; below the minimum score of 0.5.
    let predictions = "image,class,x,y,w,h,score\nastronaut.png,person,50,50,300,150,0.6\n\
                       coffee.png,cat,100,50,200,150,0.95\nchelsea.png,cat,10,10,400,280,0.9\n\
                       chelsea.png,cat,400,250,50,50,0.85\nastronaut.png,cat,400,400,50,50,0.4\n";
    let errors = json!([
        ["coffee.png", "FP", "wrong class", "cat 0.95", "cup"],
        ["chelsea.png", "FP", "background", "cat 0.85"],
        ["astronaut.png", "FP", "localization", "person 0.60", "person"]
    ]);
    let captions = |read: &Value| -> Value {
        let captions = read["captions"].as_array().unwrap().iter().map(|caption| {
            let text = caption[1].as_str().unwrap();
            let facts = text.split([',', ':']).map(str::trim).filter(|fact| *fact != "truth");
            [caption[0].as_str().unwrap()].into_iter().chain(facts).map(Value::from).collect::<Value>()
        });
        captions.collect()
    };
    let read = report(folder.path(), truth, predictions, &[]);
    assert_eq!((&captions(&read), &read["jpegs"]), (&errors, &json!(0)));
    for heading in ["Precision and recall", "Confusion matrix", "Ground-truth classes"] {
        assert!(read["headings"].as_array().unwrap().contains(&heading.into()), "{read}");
    }
    let read = report(folder.path(), truth, predictions, &[&samples]);
    assert_eq!((&captions(&read), &read["jpegs"]), (&errors, &json!(3)));
    let truth = "image,class\ncoffee.png,cup\nchelsea.png,cat\n";
    let predictions = "image,class,score\ncoffee.png,cat,0.9\nchelsea.png,cat,0.8\n";
    let read = report(folder.path(), truth, predictions, &[&samples]);
    assert_eq!(captions(&read), json!([["coffee.png", "FP", "wrong class", "cat 0.90", "cup"]]));
    assert_eq!(read["jpegs"], 1);
}

/// Runs `evaluate` in a folder with these files, and returns the metrics, the messages and the exit code.
fn evaluate_in(files: &[(&str, &str)], arguments: &[&str]) -> (Option<Value>, String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content.strip_prefix("photo ") {
            Some(photo) => drop(std::fs::copy(repository().join("assets/samples").join(photo), path).unwrap()),
            None => std::fs::write(path, content).unwrap(),
        }
    }
    let mut evaluate = spotcheck(&["evaluate", "--draws", "0", "--out", "metrics.json"]);
    let output = evaluate.args(arguments).current_dir(folder.path()).output().unwrap();
    let metrics = folder.path().join("metrics.json");
    let messages = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
    (metrics.exists().then(|| json_of(&metrics)), messages, output.status.code())
}

/// Runs `evaluate --truth truth.csv --predictions predictions.csv` with further arguments.
fn of_tables(truth: &str, predictions: &str, arguments: &[&str]) -> (Option<Value>, String, Option<i32>) {
    let arguments = [&["--truth", "truth.csv", "--predictions", "predictions.csv"], arguments].concat();
    evaluate_in(&[("truth.csv", truth), ("predictions.csv", predictions)], &arguments)
}

#[test]
fn other_splits_and_predictions_are_not_ground_truth() {
    let label = "0 0.5 0.5 0.25 0.25\n";
    let files = [
        ("data/data.yaml", "names: [cat]\ntrain: images/train\nval: images/val\n"),
        ("data/images/train/1.png", "photo chelsea.png"),
        ("data/labels/train/1.txt", label),
        ("data/images/val/2.png", "photo coffee.png"),
        ("data/labels/val/2.txt", label),
        ("data/runs/labels/2.txt", "0 0.5 0.5 0.25 0.25 0.9\n"),
    ];
    let arguments = ["data/images", "--truth", "data/data.yaml", "--predictions", "data/runs/labels"];
    let (metrics, messages, code) = evaluate_in(&files, &arguments);
    assert_eq!((code, &metrics.unwrap()["recall"]), (Some(0), &json!(1.0)), "{messages}");
    assert!(messages.contains("val, not train"), "{messages}");
    let (_, messages, code) = evaluate_in(&files, &[&arguments[..], &["--split", "train"]].concat());
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("ground-truth image"), "{messages}");
}

#[test]
fn conflicting_image_sizes_are_skipped_or_refused() {
    // chelsea.png has 451 × 300 pixels, coffee.png 600 × 400.
    let truth = |size: [u32; 2]| {
        json!({
            "images": [
                {"id": 1, "file_name": "chelsea.png", "width": size[0], "height": size[1]},
                {"id": 2, "file_name": "coffee.png", "width": 600, "height": 400},
            ],
            "categories": [{"id": 1, "name": "cat"}],
            "annotations": [
                {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10]},
                {"id": 2, "image_id": 2, "category_id": 1, "bbox": [0, 0, 10, 10]},
            ],
        })
        .to_string()
    };
    let both = "image,label,score,x,y,w,h\nchelsea.png,cat,0.9,0,0,10,10\ncoffee.png,cat,0.9,0,0,10,10\n";
    let one = "image,label,score,x,y,w,h\nchelsea.png,cat,0.9,0,0,10,10\n";
    let sized = "image,label,score,x,y,w,h,width,height\nchelsea.png,cat,0.9,0,0,10,10,451,300\n\
                 coffee.png,cat,0.9,0,0,10,10,600,400\n";
    let evaluate = |size: [u32; 2], predictions: &str, source: &[&str]| {
        let truth = truth(size);
        let files = [
            ("truth.json", truth.as_str()),
            ("predictions.csv", predictions),
            ("images/chelsea.png", "photo chelsea.png"),
            ("images/coffee.png", "photo coffee.png"),
        ];
        evaluate_in(&files, &[source, &["--truth", "truth.json", "--predictions", "predictions.csv"]].concat())
    };
    for (predictions, source) in [(both, &["images"][..]), (sized, &[])] {
        let (metrics, messages, code) = evaluate([451, 300], predictions, source);
        assert_eq!((code, &metrics.unwrap()["images"]), (Some(0), &json!(2)), "{messages}");
        let (metrics, messages, code) = evaluate([300, 451], predictions, source);
        let metrics = metrics.unwrap();
        assert_eq!((code, &metrics["images"]), (Some(3), &json!(1)), "{messages}");
        assert_eq!(metrics["images_of_other_size"], 1);
        assert!(messages.contains("chelsea.png (300 × 451") && messages.contains("451 × 300 in"), "{messages}");
    }
    let images = [("images/chelsea.png", "photo chelsea.png"), ("predictions.csv", one)];
    let arguments = ["images", "--truth", "truth.json", "--predictions", "predictions.csv"];
    let alone = json!({
        "images": [{"id": 1, "file_name": "chelsea.png", "width": 902, "height": 600}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10]}],
    });
    let alone = alone.to_string();
    let files = [&images[..], &[("truth.json", alone.as_str())]].concat();
    let (_, messages, code) = evaluate_in(&files, &arguments);
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("chelsea.png (902 × 600"), "{messages}");
}

#[test]
fn matching_summary_is_reported_first() {
    let truth = "image,class,class_id\na.jpg,cat,1\nb.jpg,dog,2\n";
    let named = "image,class,score\na.jpg,cat,0.9\nb.jpg,dog,0.9\n";
    let (metrics, messages, code) = of_tables(truth, named, &[]);
    assert_eq!(code, Some(0), "{messages}");
    assert!(
        messages.find("\nMatched: 2 of 2") < messages.find("\nTop-1") && messages.contains("2 of 2 classes"),
        "{messages}"
    );
    let expected = json!({
        "images": {"truth": 2, "predicted": 2, "matched": {"path": 2}, "fits_names": false},
        "classes": {
            "truth": 2, "predicted": 2, "matched": {"name": 2}, "by_number": [], "truth_unmatched": [],
            "predicted_unmatched": [],
        },
        "doubts": [],
    });
    assert_eq!(metrics.unwrap()["matching"], expected);
    let check = |truth: &str, predictions: &str, arguments: &[&str], code, expected: &str| {
        let (_, messages, found) = of_tables(truth, predictions, arguments);
        assert_eq!(found, code, "{messages}");
        assert!(messages.contains(expected), "{expected}: {messages}");
    };
    // Fewer than half.
    let few = "image,class\na.jpg,cat\nb.jpg,cat\nc.jpg,cat\n";
    check(few, "image,class,score\na.jpg,cat,0.9\n", &[], Some(3), "Only 1 of 3");
    let few = "image,class\na.jpg,cat\nb.jpg,dog\na2.jpg,cow\n";
    let predictions = "image,class,score\na.jpg,Cat,0.9\nb.jpg,hound,0.9\na2.jpg,beef,0.9\n";
    check(few, predictions, &[], Some(3), "1 of 3 classes");
    check(truth, "image,class,score\nz.jpg,cat,0.9\n", &[], Some(1), "ground-truth image");
    check(truth, "image,class,score\na.jpg,lion,0.9\n", &[], Some(1), "classes in common");
    // Numbers without names.
    let numbers = "image,class_id,score\na.jpg,1,0.9\nb.jpg,2,0.9\n";
    check(truth, numbers, &[], Some(0), "(1 = cat, 2 = dog)");
    let others = "image,class_id,score\na.jpg,1,0.9\nb.jpg,3,0.9\n";
    check(truth, others, &[], Some(3), "1 of 2 numbers");
    let unnamed = "image,class_id\na.jpg,1\nb.jpg,2\n";
    let model = "image,class,class_id,score\na.jpg,cat,1,0.9\nb.jpg,dog,2,0.9\n";
    check(unnamed, model, &[], Some(3), "by number: 1 = cat");
    check(unnamed, model, &[], Some(3), ": 1 = dog");
    check(unnamed, model, &["--truth-labels", "coco-91"], Some(1), "classes in common");
    let order = "image,class_id\na.jpg,0\nb.jpg,1\n";
    check(order, model, &["--truth-labels", "model"], Some(0), "Top-1                         100");
    check(truth, model, &["--truth-labels", "coco-91"], Some(1), "class 1 “cat”");
    check(order, numbers, &["--truth-labels", "model"], Some(1), "no class names");
    let coco = "image,class\na.jpg,person\nb.jpg,bicycle\n";
    check(coco, numbers, &["--labels", "coco-91"], Some(0), "2 of 2 classes");
    // Classes that are never matched.
    let twins = "image,class,class_id\na.jpg,cat,1\nb.jpg,Cat,2\n";
    check(twins, "image,class,score\na.jpg,cat,0.9\nb.jpg,cat,0.9\n", &[], Some(3), ": Cat (2).");
    let unicorn = "image,class\na.jpg,cat\nb.jpg,unicorn\n";
    check(unicorn, "image,class,score\na.jpg,cat,0.9\nb.jpg,cat,0.9\n", &[], Some(0), ": unicorn (1).");
}

#[test]
fn images_in_other_folders_are_refused_or_mapped() {
    let truth = "image,class\ntrain/1.jpg,cat\ntrain/2.jpg,cat\n";
    let predictions =
        |folders: [&str; 2]| format!("image,class,score\n{}/1.jpg,cat,0.9\n{}/2.jpg,cat,0.9\n", folders[0], folders[1]);
    let (metrics, messages, code) = of_tables(truth, &predictions(["val", "val"]), &[]);
    assert_eq!((code, metrics), (Some(1), None), "{messages}");
    assert!(messages.contains("train/1.jpg; predictions: val/1.jpg") && messages.contains("--ignore-folders"));
    for (folders, arguments, images) in [(["val", "val"], &["--ignore-folders"][..], 2), (["val", "train"], &[], 1)] {
        let (metrics, messages, code) = of_tables(truth, &predictions(folders), arguments);
        let metrics = metrics.unwrap();
        assert_eq!((code, &metrics["top1"], &metrics["images"]), (Some(3), &json!(1.0), &json!(images)), "{messages}");
        assert!(messages.contains("train/1.jpg and val/1.jpg"), "{messages}");
        assert_eq!(messages.contains("--ignore-folders"), arguments.is_empty(), "{messages}");
    }
}

#[test]
fn label_file_without_an_image_is_skipped() {
    let files = [
        ("images/a.png", "photo chelsea.png"),
        ("labels/a.txt", "0 0.5 0.5 0.5 0.5\n"),
        ("labels/gone.txt", "0 0.5 0.5 0.5 0.5\n"),
        ("predictions/a.txt", "0 0.5 0.5 0.5 0.5 0.9\n"),
        ("predictions/gone.txt", "0 0.5 0.5 0.5 0.5 0.9\n"),
    ];
    let arguments = ["--truth", "labels", "--predictions", "predictions"];
    let (metrics, messages, code) = evaluate_in(&files, &[&["images"], &arguments[..]].concat());
    let metrics = metrics.unwrap();
    assert_eq!(
        (code, &metrics["images"], &metrics["images_without_size"]),
        (Some(3), &json!(1), &json!(1)),
        "{messages}"
    );
    assert_eq!(metrics["recall"], 1.0);
    let (_, messages, code) = evaluate_in(&files, &arguments);
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("image folder"), "{messages}");
}

/// Four images of 200 × 100 with these boxes in each, and results with these; the class of every box is 1.
fn of_coco(truth: &[[f64; 4]], results: &[[f64; 4]]) -> (Option<Value>, String, Option<i32>) {
    let ids = 1..=4;
    let images: Vec<Value> = ids
        .clone()
        .map(|id| json!({"id": id, "file_name": format!("{id}.png"), "width": 200, "height": 100}))
        .collect();
    let box_of = |image: i32, bounds: &[f64; 4]| json!({"image_id": image, "category_id": 1, "bbox": bounds});
    let mut annotations: Vec<Value> =
        ids.clone().flat_map(|image| truth.iter().map(move |bounds| box_of(image, bounds))).collect();
    for (id, annotation) in annotations.iter_mut().enumerate() {
        annotation["id"] = json!(id + 1);
        annotation["area"] = json!(100);
        annotation["iscrowd"] = json!(0);
    }
    let mut found: Vec<Value> = ids.flat_map(|image| results.iter().map(move |bounds| box_of(image, bounds))).collect();
    for result in &mut found {
        result["score"] = json!(0.9);
    }
    let categories = json!([{"id": 1, "name": "cat"}]);
    let truth = json!({"images": images, "annotations": annotations, "categories": categories}).to_string();
    let arguments = ["--truth", "truth.json", "--predictions", "results.json"];
    evaluate_in(&[("truth.json", &truth), ("results.json", &Value::from(found).to_string())], &arguments)
}

#[test]
fn doubtful_box_formats_are_reported() {
    let (one, other) = ([20.0, 20.0, 40.0, 40.0], [100.0, 30.0, 50.0, 20.0]);
    let edges = [[20.0, 20.0, 60.0, 60.0], [100.0, 30.0, 150.0, 50.0]];
    let twice = [[40.0, 40.0, 80.0, 80.0], [200.0, 60.0, 100.0, 40.0]];
    let fractions = [[0.1, 0.2, 0.2, 0.4], [0.5, 0.3, 0.25, 0.2]];
    let rounded = [[-1.5, 20.0, 203.0, 40.0], other];
    for (truth, results, parts) in [
        (&[one, other][..], &[one, other][..], None),
        (&rounded, &rounded, None),
        (&edges, &[one, other], Some(&["4 of 8 boxes", "ground truth extend", "1.png"][..])),
        (&[one, other], &edges, Some(&["4 of 8 boxes", "predictions extend", "1.png"])),
        (&twice, &[one, other], Some(&["another size"])),
        (&[one, other], &fractions, Some(&["the first pixel"])),
        (&[one, other], &[one, other, one], Some(&["4 of 12 boxes", "predictions repeat", "1.png"])),
        (&[one, one], &[one], Some(&["4 of 8 boxes", "ground truth repeat"])),
    ] {
        let (metrics, messages, code) = of_coco(truth, results);
        assert_eq!(code, Some(if parts.is_some() { 3 } else { 0 }), "{truth:?} {results:?}: {messages}");
        assert!(parts.unwrap_or_default().iter().all(|part| messages.contains(part)), "{parts:?}: {messages}");
        let doubts = metrics.unwrap()["matching"]["doubts"].as_array().unwrap().len();
        assert_eq!(doubts, usize::from(parts.is_some()), "{messages}");
    }
}

#[test]
fn ground_truth_with_only_crowds_is_refused() {
    let truth = json!({
        "images": [{"id": 1, "file_name": "a.png", "width": 64, "height": 48}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 20], "area": 600, "iscrowd": 1}],
        "categories": [{"id": 1, "name": "cat"}],
    });
    let results = json!([{"image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 20], "score": 0.9}]);
    let files = [("truth.json", &*truth.to_string()), ("results.json", &*results.to_string())];
    let (metrics, messages, code) = evaluate_in(&files, &["--truth", "truth.json", "--predictions", "results.json"]);
    assert_eq!((metrics, code), (None, Some(1)));
    assert!(messages.contains("measured"), "{messages}");
}

#[test]
fn unmatched_images_and_classes_are_reported() {
    let truth = "image,class,x,y,w,h\n1.png,cat,1,1,9,9\n2.png,cat,1,1,9,9\n3.png,dog,1,1,9,9\n4.png,cat,1,1,9,9\n";
    let head = "image,class,score,x,y,w,h\n";
    let row = |image: u32, class: &str| format!("{image}.png,{class},0.9,1,1,9,9\n");
    let all = [row(1, "cat"), row(2, "cat"), row(3, "dog"), row(4, "cat")].concat();
    for (rows, part) in [
        (all.clone(), None),
        // An image without a detection is normal.
        (all.replace(&row(4, "cat"), ""), None),
        (row(1, "cat") + &row(3, "dog"), Some("2 of 4 images")),
        (all.replace("dog", "hound"), Some("1 of 2 classes")),
    ] {
        let (_, messages, code) = of_tables(truth, &format!("{head}{rows}"), &[]);
        assert_eq!(part.is_some(), code == Some(3) && messages.contains("warning: "), "{code:?} {messages}");
        assert!(part.is_none_or(|part| messages.contains(part)), "{part:?}: {messages}");
    }
}

#[test]
fn many_missing_label_files_are_reported() {
    let label = "0 0.5 0.5 0.25 0.25\n";
    let predictions = "image,class,score,x,y,w,h\n1.png,0,0.9,170,112,112,75\n";
    let mut files = vec![("data.yaml", "val: images\n"), ("predictions.csv", predictions)];
    let images = ["images/1.png", "images/2.png", "images/3.png", "images/4.png"];
    files.extend(images.map(|image| (image, "photo chelsea.png")));
    let labels = ["labels/1.txt", "labels/2.txt", "labels/3.txt"];
    for (present, code) in [(3, 0), (2, 3)] {
        let mut files = files.clone();
        files.extend(labels.iter().take(present).map(|name| (*name, label)));
        let rows: Vec<String> = (2..=present).map(|at| format!("{at}.png,0,0.9,170,112,112,75\n")).collect();
        let all = format!("{predictions}{}", rows.concat());
        files[1].1 = &all;
        let arguments = ["images", "--truth", "data.yaml", "--truth-labels", "coco-80"];
        let of_predictions = ["--predictions", "predictions.csv", "--labels", "coco-80"];
        let (metrics, messages, got) = evaluate_in(&files, &[&arguments[..], &of_predictions].concat());
        assert_eq!(got, Some(code), "{messages}");
        assert!(messages.contains("no label file") || messages.contains("without label files"), "{messages}");
        assert_eq!(metrics.unwrap()["images"], 4, "{messages}");
    }
}

#[test]
fn wordnet_folders_are_imagenet_classes() {
    let files =
        [("photos/n02124075/chelsea.png", "photo chelsea.png"), ("photos/n07930864/coffee.png", "photo coffee.png")];
    let rows = "image,class,score\nn02124075/chelsea.png,Egyptian cat,0.9\nn07930864/coffee.png,espresso,0.8\n";
    let files = [&files[..], &[("predictions.csv", rows)]].concat();
    let (metrics, messages, _) = evaluate_in(&files, &["--truth", "photos", "--predictions", "predictions.csv"]);
    assert_eq!(metrics.unwrap()["top1"], 0.5, "{messages}");
    assert!(messages.contains("WordNet"), "{messages}");
}

#[test]
fn project_without_its_folder_ignores_changed_images() {
    let folder = tempfile::tempdir().unwrap();
    let (images, project) = (folder.path().join("images"), folder.path().join("p.spotcheck"));
    std::fs::create_dir(&images).unwrap();
    for name in ["chelsea.png", "coffee.png"] {
        std::fs::copy(repository().join("assets/samples").join(name), images.join(name)).unwrap();
    }
    let mut predict = spotcheck(&["predict", "--model", "ssd-mobilenet-coco", "--project"]);
    assert!(predict.arg(&project).arg(&images).output().unwrap().status.success());
    std::fs::copy(repository().join("assets/samples/astronaut.png"), images.join("coffee.png")).unwrap();
    let truth = folder.path().join("truth.csv");
    std::fs::write(&truth, "image,class,x,y,w,h\nchelsea.png,cat,10,10,400,280\ncoffee.png,cup,170,20,240,230\n")
        .unwrap();
    let (metrics, code) = evaluate(&[Path::new("--project"), &project, Path::new("--truth"), &truth]);
    assert_eq!((&metrics["images"], &metrics["images_outdated"], code), (&json!(1), &json!(1), Some(3)));
}

#[test]
fn unknown_split_lists_the_available_ones() {
    let label = "0 0.5 0.5 0.25 0.25\n";
    let files = [
        ("data.yaml", "names: [cat]\ntrain: images/train\nval: images/val\n"),
        ("images/train/1.png", "photo chelsea.png"),
        ("labels/train/1.txt", label),
        ("images/val/2.png", "photo coffee.png"),
        ("labels/val/2.txt", label),
    ];
    let arguments = ["images", "--truth", "data.yaml", "--predictions", "labels", "--split", "test"];
    let (_, messages, code) = evaluate_in(&files, &arguments);
    assert_eq!(code, Some(1));
    assert!(messages.contains("--split train") && messages.contains("--split val"), "{messages}");
}

/// A folder of images of which those in `night` show cats that are predicted as dogs, with a project and labels.
struct Nights {
    folder: tempfile::TempDir,
}

impl Nights {
    const IMAGES: usize = 40;

    fn is_dog(at: usize) -> bool {
        at % 4 == 3
    }

    fn name(at: usize) -> String {
        format!("{}/{at}.png", if at < 10 { "night" } else { "day" })
    }

    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut truth = String::from("image,label\n");
        for at in 0..Self::IMAGES {
            writeln!(truth, "{},{}", Self::name(at), if Self::is_dog(at) { "dog" } else { "cat" }).unwrap();
        }
        std::fs::write(folder.path().join("truth.csv"), truth).unwrap();
        for (file, is_wrong) in
            [("predictions.csv", (|at| at < 8 || at == 20) as fn(usize) -> bool), ("old.csv", |at| at == 20)]
        {
            let mut predictions = String::from("image,label,score\n");
            for at in 0..Self::IMAGES {
                let classes = if Self::is_dog(at) || is_wrong(at) { ["dog", "cat"] } else { ["cat", "dog"] };
                for (class, score) in classes.iter().zip([0.75, 0.25]) {
                    writeln!(predictions, "{},{class},{score}", Self::name(at)).unwrap();
                }
            }
            std::fs::write(folder.path().join(file), predictions).unwrap();
        }
        Self { folder }
    }

    fn evaluate(&self, arguments: &[&str]) -> std::process::Output {
        let mut evaluate = spotcheck(&["evaluate", "--draws", "0", "--truth", "truth.csv"]);
        evaluate.args(["--predictions", "predictions.csv"]).args(arguments);
        evaluate.current_dir(self.folder.path()).output().unwrap()
    }
}

#[test]
fn cats_predicted_as_dogs_at_night_are_a_pattern() {
    let nights = Nights::new();
    let output = nights.evaluate(&["--error-patterns", "patterns.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = std::fs::read_to_string(nights.folder.path().join("patterns.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let confused = lines.iter().find(|line| line["error"] == "confusion").unwrap_or_else(|| panic!("{text}"));
    let expected = json!({"truth": "cat", "predicted": "dog", "attribute": "folder", "value": "night", "images": 8,
        "images_with_error": 6, "iou": 0.5, "encoder": null, "compared_with": null});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(confused[field], *value, "{field} of {confused}");
    }
    // scipy.stats.hypergeom.sf(5, 30, 7, 8): 30 cats, of which 7 are wrong and 8 at night.
    let p = 3.065_134_099_616_858e-4;
    assert!((confused["p"].as_f64().unwrap() / p - 1.0).abs() < 1e-9, "{confused}");
    assert!(confused["q"].as_f64().unwrap() >= p);
    let names: Vec<&str> = confused["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let wrong = (0..8).filter(|at| at % 4 != 3).map(Nights::name);
    assert_eq!(names, wrong.collect::<Vec<_>>());
    let again = nights.evaluate(&["--error-patterns", "patterns.jsonl"]);
    assert_eq!(again.status.code(), Some(1), "an existing file is kept");
    let other = nights.evaluate(&["--error-patterns", "other.jsonl", "--than", "run"]);
    assert_eq!(other.status.code(), Some(2), "a file of predictions has no runs");
}

#[test]
fn patterns_in_new_errors_are_compared_with_a_run() {
    let nights = Nights::new();
    let folder = nights.folder.path();
    for at in 0..Nights::IMAGES {
        let image = folder.join("images").join(Nights::name(at));
        std::fs::create_dir_all(image.parent().unwrap()).unwrap();
        image::RgbImage::new(20, 10).save(image).unwrap();
    }
    for file in ["old.csv", "predictions.csv"] {
        let mut import = spotcheck(&["import", "images", "--project", "p.spotcheck", "--predictions", file]);
        let output = import.current_dir(folder).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let evaluate = |arguments: &[&str]| {
        let mut evaluate = spotcheck(&["evaluate", "images", "--project", "p.spotcheck", "--truth", "truth.csv"]);
        evaluate.args(["--draws", "0", "--error-patterns", "new.jsonl", "--force"]).args(arguments);
        evaluate.current_dir(folder).output().unwrap()
    };
    // Unreadable embeddings do not prevent it.
    std::fs::write(folder.join("p.spotcheck-embeddings"), "not a database, but long enough for its header".repeat(99))
        .unwrap();
    let output = evaluate(&["--run", "2", "--than", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("p.spotcheck-embeddings"), "{}", stderr(&output));
    let text = std::fs::read_to_string(folder.join("new.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["value"] == "night" && line["compared_with"].is_string()), "{text}");
    let confused = lines.iter().find(|line| line["error"] == "confusion").unwrap_or_else(|| panic!("{text}"));
    assert_eq!((&confused["images_with_error"], &confused["images"]), (&json!(6), &json!(8)));
    // All six new errors among 30 cats, of which eight are at night.
    assert!((confused["p"].as_f64().unwrap() / (28.0 / 593_775.0) - 1.0).abs() < 1e-9, "{confused}");
    assert_eq!(
        evaluate(&["--run", "2", "--than", "2"]).status.code(),
        Some(1),
        "a run has no new errors against itself"
    );
}

#[test]
fn suspicious_labels_are_written_in_the_named_order() {
    let nights = Nights::new();
    let output = nights.evaluate(&["--suspicious-labels", "a.csv", "--suspicious-order", "confident-learning"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = std::fs::read_to_string(nights.folder.path().join("a.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = rows.next().unwrap();
    let cells = |name: &str| -> Vec<&str> {
        let column = names.iter().position(|one| *one == name).unwrap();
        text.lines().skip(1).map(|line| line.split(',').nth(column).unwrap()).collect()
    };
    assert_eq!(rows.count(), 7);
    assert_eq!(cells("label_quality"), ["0.25"; 7]);
    assert_eq!(cells("normalized_margin"), ["0.25"; 7]);
    assert_eq!(cells("label_issue"), ["true"; 7]);
    assert_eq!(cells("image_quality"), [""; 7]);
    let refused = nights.evaluate(&["--suspicious-labels", "b.csv", "--suspicious-order", "image-quality"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("normalized-margin"), "{}", stderr(&refused));
    assert!(!nights.folder.path().join("b.csv").exists());
}

/// A project with two runs over the images of a fixture: its results, and the same without every third one.
fn two_runs(fixture: &Path, folder: &Path) {
    let truth = json_of(&fixture.join("truth.json"));
    std::fs::create_dir(folder.join("images")).unwrap();
    for image in truth["images"].as_array().unwrap() {
        let side = |name: &str| image[name].as_u64().unwrap() as u32;
        let path = folder.join("images").join(image["file_name"].as_str().unwrap());
        image::GrayImage::new(side("width"), side("height")).save(path).unwrap();
    }
    let all = json_of(&fixture.join("results.json"));
    let fewer = all.as_array().unwrap().iter().enumerate().filter(|(index, _)| index % 3 != 0);
    let fewer: Vec<&Value> = fewer.map(|(_, result)| result).collect();
    let results = [("all.json", all.clone()), ("fewer.json", json!(fewer))];
    for (name, results) in results {
        let path = folder.join(name);
        std::fs::write(&path, results.to_string()).unwrap();
        let output = spotcheck(&["import"])
            .arg(folder.join("images"))
            .arg("--predictions")
            .arg(&path)
            .arg("--truth")
            .arg(fixture.join("truth.json"))
            .arg("--project")
            .arg(folder.join("p.spotcheck"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn two_classifiers_are_compared_by_coverage() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("images")).unwrap();
    let names: Vec<String> = (0..4).map(|number| format!("{number}.png")).collect();
    for name in &names {
        image::RgbImage::new(8, 8).save(at("images").join(name)).unwrap();
    }
    let table = |rows: &[&str]| -> String {
        let rows = names.iter().zip(rows).map(|(name, row)| format!("{name},{row}\n"));
        rows.collect()
    };
    let truth = at("truth.csv");
    std::fs::write(&truth, "image,class\n".to_owned() + &table(&["cat", "cat", "dog", "dog"])).unwrap();
    let runs = [
        ("a.csv", ["cat,0.9", "dog,0.8", "dog,0.8", "dog,0.6"]),
        ("b.csv", ["cat,0.9", "dog,0.7", "dog,0.5", "cat,0.3"]),
    ];
    for (name, rows) in runs {
        std::fs::write(at(name), "image,class,score\n".to_owned() + &table(&rows)).unwrap();
        let mut import = spotcheck(&["import"]);
        import.arg(at("images")).arg("--predictions").arg(at(name)).arg("--project").arg(at("p.spotcheck"));
        let output = import.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let compare = |out: &str| {
        let mut command =
            spotcheck(&["compare", "p.spotcheck", "--runs", "1", "2", "--truth", "truth.csv", "--out", out]);
        let output = command.current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        at(out)
    };
    let truth = &json_of(&compare("c.json"))["truth"];
    // By hand: of 1, 3 and 4 images, 1, 2 and 3 are correct.
    let expected = [(0.9, 1.0, 0.25), (0.8, 2.0 / 3.0, 0.75), (0.6, 0.75, 1.0)];
    let points = truth["a"]["curve"].as_array().unwrap();
    for (threshold, accuracy, coverage) in expected {
        let point = points.iter().rfind(|point| point["threshold"] == threshold).unwrap();
        check("accuracy", &point["accuracy"], &json!(accuracy));
        check("coverage", &point["coverage"], &json!(coverage));
    }
    assert_eq!(truth["b"]["curve"].as_array().unwrap().last().unwrap()["accuracy"], 0.5);
    let page = std::fs::read_to_string(compare("c.html")).unwrap();
    for fact in ["A (top-1 75.0%)", "B (top-1 50.0%)", "Coverage"] {
        assert!(page.contains(fact), "{fact} in {page}");
    }
}

#[test]
fn two_runs_are_compared_with_ground_truth() {
    let fixture = repository().join("tests/evaluation/touched_crowds");
    let folder = tempfile::tempdir().unwrap();
    two_runs(&fixture, folder.path());
    let truth = fixture.join("truth.json");
    let alone = |run: &str| {
        let project = folder.path().join("p.spotcheck");
        let arguments = [path("--truth"), truth.clone(), path("--project"), project, path("--run"), path(run)];
        evaluate(&arguments.each_ref().map(PathBuf::as_path)).0
    };
    let expected = [alone("1"), alone("2")];
    let compare = |runs: [&str; 2], more: &[&str]| {
        let mut command = spotcheck(&["compare", "p.spotcheck", "--min-score", "0.5", "--runs"]);
        command.args(runs).args(more).current_dir(folder.path()).output().unwrap()
    };
    let with_truth =
        |runs: [&str; 2], more: &[&str]| compare(runs, &[&["--truth", truth.to_str().unwrap()], more].concat());
    let output = with_truth(["1", "2"], &["--out", "c.json", "--fail-below", "ap=-0.01"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let compared = json_of(&folder.path().join("c.json"));
    let of_truth = &compared["truth"];
    for name in NUMBERS {
        check(name, &of_truth["a"][name], &expected[0][name]);
        check(name, &of_truth["b"][name], &expected[1][name]);
    }
    assert_ne!(expected[0]["ap"], expected[1]["ap"]);
    let points = of_truth["a"]["curve"].as_array().unwrap();
    assert!(points.len() > 2 && points.iter().all(|point| point["precision"].is_f64()), "{points:?}");

    let ap = |metrics: &Value, name: &Value| {
        let classes = metrics["classes"].as_array().unwrap();
        classes.iter().find(|class| class["name"] == *name).unwrap()["ap"].as_f64()
    };
    let gains = of_truth["classes"].as_array().unwrap();
    assert_eq!((gains.len(), of_truth["measure"].as_str()), (4, Some("AP")));
    for row in gains {
        let [a, b] = expected.each_ref().map(|metrics| ap(metrics, &row["name"]));
        assert_eq!([row["a"].as_f64(), row["b"].as_f64()], [a, b]);
        check("gain", &row["gain"], &json!(a.zip(b).map(|(a, b)| a - b)));
    }
    let sorted: Vec<f64> = gains.iter().filter_map(|row| row["gain"].as_f64()).collect();
    assert!(sorted.len() > 1 && sorted.is_sorted(), "{sorted:?}");

    let page = with_truth(["1", "2"], &["--out", "c.html"]);
    assert_eq!(page.status.code(), Some(0), "{}", stderr(&page));
    let page = std::fs::read_to_string(folder.path().join("c.html")).unwrap();
    for fact in ["A (AP50 ", "B (AP50 ", "A − B", "<th scope=\"row\">class 2</th>"] {
        assert!(page.contains(fact), "{fact} in {page}");
    }

    // Of the two runs, the one with more predictions misses fewer objects, and has more false positives.
    let [missed, false_positives] =
        ["missed", "false_positives"].map(|name| expected.each_ref().map(|run| run[name].as_u64().unwrap()));
    assert!(missed[0] < missed[1] && false_positives[0] > false_positives[1], "{missed:?} {false_positives:?}");
    let fewer = missed[1] - missed[0];
    for (runs, gate, code) in [
        (["1", "2"], "missed=0".to_owned(), 0),
        (["1", "2"], format!("missed={fewer}"), 0),
        (["1", "2"], format!("missed={}", fewer + 1), 4),
        (["2", "1"], "missed=0".to_owned(), 4),
        (["2", "1"], format!("missed=-{fewer}"), 0),
        (["1", "2"], "false_positives=0".to_owned(), 4),
        (["2", "1"], "false_positives=0".to_owned(), 0),
        (["1", "2"], "images_failed=0".to_owned(), 0),
    ] {
        let output = with_truth(runs, &["--fail-below", &gate]);
        assert_eq!(output.status.code(), Some(code), "{runs:?} {gate}: {}", stderr(&output));
    }
    // The existing file is refused before the ground truth is read.
    let unread = ["--truth", "missing.json", "--out", "c.json"];
    let refused = compare(["1", "2"], &unread);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--force") && !stderr(&refused).contains("missing.json"), "{}", stderr(&refused));
    assert!(!stderr(&compare(["1", "2"], &[&unread[..], &["--force"]].concat())).contains("--force"));

    let worse = with_truth(["2", "1"], &["--fail-below", "ap=-0.01", "--fail-below", "agreement=0"]);
    assert_eq!(worse.status.code(), Some(4), "{}", stderr(&worse));
    assert!(stderr(&worse).contains("ap is -0."), "{}", stderr(&worse));
    for (more, reason) in
        [(&["--fail-below", "ap=0"][..], "--truth"), (&["--fail-below", "agreement=1.0"], "agreement")]
    {
        let output = compare(["1", "2"], more);
        assert!(stderr(&output).contains(reason) && !output.status.success(), "{}", stderr(&output));
    }
    let other_task = with_truth(["1", "2"], &["--fail-below", "top1=0"]);
    assert_eq!(other_task.status.code(), Some(1), "{}", stderr(&other_task));
}
