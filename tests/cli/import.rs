//! `spotcheck import` as a process: predictions from other tools become a run of a project.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use spotcheck::domain::{Change, DrawnBox, SampleUri, Verdict, VerdictTarget};
use spotcheck::project::{OpenMode, OpenRequest, Project};

use crate::support::{spotcheck, stderr};

/// Three images, and COCO results for two of them and for a missing one.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(bench.path("images/sub")).unwrap();
        for (name, width) in [("images/a.png", 60), ("images/sub/b.png", 80), ("images/c.png", 40)] {
            image::RgbImage::new(width, 50).save(bench.path(name)).unwrap();
        }
        bench.write(
            "truth.json",
            &json!({
                "images": [
                    {"id": 1, "file_name": "a.png", "width": 60, "height": 50},
                    {"id": 2, "file_name": "sub/b.png", "width": 80, "height": 50},
                    {"id": 3, "file_name": "c.png", "width": 40, "height": 50},
                    {"id": 4, "file_name": "elsewhere.png", "width": 40, "height": 50},
                ],
                "categories": [{"id": 17, "name": "cat"}, {"id": 3, "name": "car"}],
                "annotations": [],
            }),
        );
        bench.write(
            "results.json",
            &json!([
                {"image_id": 1, "category_id": 17, "bbox": [1.5, 2, 10, 20], "score": 0.25},
                {"image_id": 1, "category_id": 3, "bbox": [0, 0, 5, 6], "score": 0.75},
                {"image_id": 2, "category_id": 3, "bbox": [4, 4, 4, 4], "score": 0.001},
            ]),
        );
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, value: &Value) {
        std::fs::write(self.path(name), value.to_string()).unwrap();
    }

    fn import(&self, predictions: &str, more: &[&str]) -> Output {
        let mut command = spotcheck(&["import"]);
        command.arg(self.path("images")).arg("--predictions").arg(self.path(predictions));
        command.arg("--project").arg(self.path("p.spotcheck")).args(more).output().unwrap()
    }

    /// The lines of the project as JSON Lines, sorted by the end of the image name.
    fn exported(&self) -> Vec<Value> {
        let out = self.path("out.jsonl");
        let mut export = spotcheck(&["export", "--format", "jsonl", "--force", "--min-score", "0"]);
        let output = export.arg(self.path("p.spotcheck")).arg("--out").arg(&out).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let text = std::fs::read_to_string(out).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn line<'l>(lines: &'l [Value], name: &str) -> &'l Value {
    let is_of = |line: &&Value| line["uri"].as_str().unwrap().replace('\\', "/").ends_with(name);
    lines.iter().find(is_of).unwrap_or_else(|| panic!("{name}: {lines:?}"))
}

#[test]
fn coco_results_are_imported_with_class_names() {
    let bench = Bench::new();
    let truth = bench.path("truth.json");
    let output = bench.import("results.json", &["--truth", truth.to_str().unwrap()]);
    let messages = stderr(&output);
    // One image of the dataset is missing.
    assert_eq!(output.status.code(), Some(3), "{messages}");
    let unmatched = "warning: 1 image in the predictions";
    for expected in ["COCO results, 3", "3 of 3 images", unmatched, "elsewhere.png"] {
        assert!(messages.contains(expected), "{expected}:\n{messages}");
    }
    let lines = bench.exported();
    let detections = &line(&lines, "/a.png")["detections"];
    assert_eq!(detections[0]["label"], "car");
    assert_eq!(detections[0]["score"], 0.75);
    assert_eq!(detections[1]["box"], json!([1.5, 2.0, 11.5, 22.0]));
    assert_eq!(detections[1]["class_id"], 17);
    assert_eq!(line(&lines, "sub/b.png")["detections"][0]["score"].as_f64().map(|score| score as f32), Some(0.001));
    assert_eq!(line(&lines, "c.png")["detections"], json!([]));

    let again = bench.import("results.json", &["--truth", truth.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("--resume"), "{}", stderr(&again));
}

/// Labels are opened as a run, repaired, exported in every dataset format, and read back as ground truth.
#[test]
fn corrected_labels_are_ground_truth_again() {
    let bench = Bench::new();
    let mut labels: Value = serde_json::from_slice(&std::fs::read(bench.path("truth.json")).unwrap()).unwrap();
    labels["images"].as_array_mut().unwrap().truncate(3);
    labels["annotations"] = json!([
        {"id": 1, "image_id": 1, "category_id": 17, "bbox": [5, 5, 20, 20], "area": 400, "iscrowd": 0},
        {"id": 2, "image_id": 1, "category_id": 3, "bbox": [30, 10, 10, 10], "area": 100, "iscrowd": 0},
        {"id": 3, "image_id": 2, "category_id": 3, "bbox": [4, 4, 40, 30], "area": 1200, "iscrowd": 1},
    ]);
    bench.write("labels.json", &labels);
    let refused = bench.import("labels.json", &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--to-correct"), "{}", stderr(&refused));
    let imported = bench.import("labels.json", &["--to-correct"]);
    // A crowd loses its mark.
    assert_eq!(imported.status.code(), Some(3), "{}", stderr(&imported));
    assert!(stderr(&imported).contains("1 label is marked as a crowd"), "{}", stderr(&imported));

    let path = bench.path("p.spotcheck");
    let request = OpenRequest { path: &path, root: None, mode: OpenMode::WriteExisting, program: "a test" };
    let project = Project::open(&request, |_| ()).unwrap().project;
    let run = project.runs().unwrap()[0].id;
    let judge = |name: &str, index: u32, verdict: Verdict| {
        let image = bench.path("images").canonicalize().unwrap().join(name);
        let sample = SampleUri::new(image.to_str().unwrap());
        let target = VerdictTarget { run: Some(run), box_index: Some(index) };
        project.write(1, Change::SetVerdict { sample, target, verdict: Some(verdict), reviewer: None }).unwrap();
    };
    let drawn = |class: &str, bounds: [f32; 4]| DrawnBox::new(class, bounds.into(), [80, 50]).unwrap();
    judge("a.png", 0, Verdict::Moved(drawn("cat", [6.5, 5.0, 25.0, 24.5])));
    judge("a.png", 1, Verdict::Reject);
    judge("a.png", 2, Verdict::Added(drawn("kite", [40.0, 30.0, 58.0, 49.0])));
    judge("sub/b.png", 0, Verdict::WrongClass("cat".to_owned()));
    judge("c.png", 0, Verdict::Added(drawn("car", [1.0, 1.0, 20.0, 20.0])));
    project.flush().unwrap();
    drop(project);

    for format in ["coco", "yolo", "voc"] {
        let out = bench.path(if format == "coco" { "fixed.json" } else { format });
        let mut export = spotcheck(&["export", "--format", format, "--verdicts", "without-rejected"]);
        let exported = export.arg(&path).arg("--out").arg(&out).output().unwrap();
        assert!(exported.status.success(), "{}", stderr(&exported));
        assert!(stderr(&exported).contains("“kite”"), "{}", stderr(&exported));
        // Against themselves, they are perfect.
        let mut evaluate = spotcheck(&["evaluate", "--out", "-", "--draws", "0", "--ignore-truth-scores"]);
        evaluate.arg(bench.path("images")).arg("--predictions").arg(bench.path("fixed.json"));
        let output = evaluate.arg("--truth").arg(&out).output().unwrap();
        let metrics: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert_eq!([&metrics["ap50"], &metrics["recall"]], [1.0, 1.0], "{format}: {metrics}");
        assert_eq!(metrics["true_positives"], 4, "{format}: {metrics}");
    }
    let fixed: Value = serde_json::from_slice(&std::fs::read(bench.path("fixed.json")).unwrap()).unwrap();
    let boxes: Vec<&Value> = fixed["annotations"].as_array().unwrap().iter().map(|one| &one["bbox"]).collect();
    assert_eq!(boxes[0], &json!([6.5, 5.0, 18.5, 19.5]));
    let categories: Vec<&Value> =
        fixed["annotations"].as_array().unwrap().iter().map(|one| &one["category_id"]).collect();
    assert_eq!(categories, [17, 18, 3, 17]);
}

#[test]
fn numbers_among_class_names_are_names() {
    let bench = Bench::new();
    let names = ["A", "B", "0", "1"];
    let bounds = |index: usize| [index * 10, 5, index * 10 + 8, 40];
    let row = |(index, name): (usize, &&str)| {
        let [x1, y1, x2, y2] = bounds(index);
        format!("a.png,{name},{x1},{y1},{x2},{y2}\n")
    };
    let rows: String = names.iter().enumerate().map(row).collect();
    std::fs::write(bench.path("labels.csv"), format!("image,label,x1,y1,x2,y2\n{rows}")).unwrap();
    let found = |(index, name): (usize, &&str)| json!({"box": bounds(index), "label": name, "score": 1});
    let found: Vec<Value> = names.iter().enumerate().map(found).collect();
    bench.write("labels.jsonl", &json!({"image": "a.png", "detections": found}));
    for labels in ["labels.csv", "labels.jsonl"] {
        let output = bench.import(labels, &["--to-correct"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let lines = bench.exported();
        let mut found: Vec<&Value> = line(&lines, "a.png")["detections"].as_array().unwrap().iter().collect();
        found.sort_by_key(|found| found["box"][0].as_f64().unwrap() as u32);
        assert_eq!(found.iter().map(|found| &found["label"]).collect::<Vec<_>>(), names, "{labels}");
        std::fs::remove_file(bench.path("p.spotcheck")).unwrap();
    }
    let found =
        |(index, name): (usize, &&str)| json!({"box": bounds(index), "label": name, "class_id": index, "score": 0.5});
    let found: Vec<Value> = names.iter().enumerate().map(found).collect();
    bench.write("predictions.jsonl", &json!({"image": "a.png", "detections": found}));
    let mut evaluate = spotcheck(&["evaluate", "--out", "-", "--draws", "0"]);
    evaluate.arg(bench.path("images")).arg("--predictions").arg(bench.path("predictions.jsonl"));
    let output = evaluate.arg("--truth").arg(bench.path("labels.csv")).output().unwrap();
    let metrics: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!([&metrics["true_positives"], &metrics["matching"]["classes"]["matched"]["name"]], [4, 4]);

    // In a file without names, numbers are indices.
    std::fs::write(bench.path("labels.csv"), "image,label,x1,y1,x2,y2\na.png,1,0,5,8,40\n").unwrap();
    std::fs::write(bench.path("names.txt"), "car\ncat\n").unwrap();
    let names = bench.path("names.txt");
    let output = bench.import("labels.csv", &["--to-correct", "--labels", names.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(line(&bench.exported(), "a.png")["detections"][0]["label"], "cat");
}

#[test]
fn exports_with_equal_names_in_folders_are_read_back() {
    let bench = Bench::new();
    image::RgbImage::new(60, 50).save(bench.path("images/sub/a.png")).unwrap();
    let rows = "image,label,x1,y1,x2,y2\na.png,cat,0,5,8,40\nsub/a.png,cat,20,5,30,40\n";
    std::fs::write(bench.path("labels.csv"), rows).unwrap();
    assert!(bench.import("labels.csv", &["--to-correct"]).status.success());
    let exports = [("yolo", &[][..]), ("voc", &[]), ("yolo", &["--with-images"]), ("voc", &["--with-images"])].map(
        |(format, more)| {
            let out = format!("{format}{}", more.len());
            let mut export = spotcheck(&["export", "--format", format]);
            let export = export.arg(bench.path("p.spotcheck")).arg("--out").arg(bench.path(&out)).args(more);
            let output = export.output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            out
        },
    );
    for out in exports {
        std::fs::remove_file(bench.path("p.spotcheck")).unwrap();
        let output = bench.import(&out, &["--to-correct"]);
        assert!(output.status.success(), "{out}: {}", stderr(&output));
        let lines = bench.exported();
        for (name, left) in [("images/a.png", 0.0), ("sub/a.png", 20.0)] {
            let found = line(&lines, name)["detections"].as_array().unwrap();
            assert_eq!(found.len(), 1, "{out}, {name}");
            assert!((found[0]["box"][0].as_f64().unwrap() - left).abs() < 0.01, "{out}, {name}: {found:?}");
        }
    }
}

#[test]
fn images_with_equal_names_are_matched_by_folder() {
    let bench = Bench::new();
    image::RgbImage::new(60, 50).save(bench.path("images/sub/a.png")).unwrap();
    let rows = "image,label,score,x1,y1,x2,y2\na.png,cat,0.5,0,5,8,40\nsub/b.png,cat,0.5,0,5,8,40\n";
    std::fs::write(bench.path("labels.csv"), rows).unwrap();
    let output = bench.import("labels.csv", &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = bench.exported();
    assert_eq!((lines.len(), &line(&lines, "sub/a.png")["detections"]), (4, &json!([])));
    // Another folder's image, although all others match by path.
    std::fs::write(
        bench.path("labels.csv"),
        format!("{rows}other/a.png,cat,0.5,0,5,8,40\n").replace("\na.png", "\nc.png"),
    )
    .unwrap();
    for name in ["images/a.png", "p.spotcheck"] {
        std::fs::remove_file(bench.path(name)).unwrap();
    }
    let output = bench.import("labels.csv", &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let messages = stderr(&output);
    assert!(messages.contains("other/a.png and sub/a.png") && messages.contains("--ignore-folders"), "{messages}");
    assert_eq!(bench.exported().iter().map(|line| line["detections"].as_array().unwrap().len()).sum::<usize>(), 2);
}

#[test]
fn labels_and_corrections_name_the_classes() {
    let bench = Bench::new();
    let rows = "image,label,score,x1,y1,x2,y2\na.png,Katze,0.5,1,2,3,4\na.png,dog,0.25,1,2,3,4\nb.png,ufo,1,1,2,3,4\n";
    std::fs::write(bench.path("predictions.csv"), rows).unwrap();
    std::fs::write(bench.path("map.csv"), "from,to\nKatze,cat\n").unwrap();
    let map = bench.path("map.csv");
    let output = bench.import("predictions.csv", &["--labels", "coco-80", "--class-map", map.to_str().unwrap()]);
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{messages}");
    assert!(messages.contains("ufo"), "{messages}");
    assert!(messages.contains("2 of 3 images"), "{messages}");
    let lines = bench.exported();
    let labels: Vec<&Value> =
        line(&lines, "/a.png")["detections"].as_array().unwrap().iter().map(|found| &found["label"]).collect();
    assert_eq!(labels, ["cat", "dog"]);
    assert_eq!(line(&lines, "b.png")["detections"], json!([]));
}

#[test]
fn image_classes_are_imported_and_wrong_sizes_fail() {
    let bench = Bench::new();
    let lines = [
        r#"{"uri":"/elsewhere/a.png","status":"ok","width":60,"height":50,"classes":[{"index":1,"label":"dog","score":0.75}]}"#,
        r#"{"uri":"/elsewhere/c.png","status":"ok","width":41,"height":50,"classes":[{"index":2,"label":"cat","score":1}]}"#,
    ];
    std::fs::write(bench.path("predictions.jsonl"), lines.join("\n")).unwrap();
    let output = bench.import("predictions.jsonl", &[]);
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{messages}");
    assert!(messages.contains("40 × 50") && messages.contains("41 × 50"), "{messages}");
    assert_eq!(line(&bench.exported(), "/a.png")["classes"][0]["label"], "dog");
}

#[test]
fn repeated_failures_are_limited() {
    let bench = Bench::new();
    let line = |number: u32| {
        let name = format!("many-{number}.png");
        image::RgbImage::new(60, 50).save(bench.path("images").join(&name)).unwrap();
        json!({"uri": name, "status": "ok", "width": 61, "height": 50, "classes": [{"label": "dog", "score": 0.5}]})
    };
    let lines: Vec<String> = (0..25).map(|number| line(number).to_string()).collect();
    std::fs::write(bench.path("predictions.jsonl"), lines.join("\n")).unwrap();
    let messages = stderr(&bench.import("predictions.jsonl", &[]));
    assert_eq!(messages.lines().filter(|line| line.starts_with("failed ")).count(), 20, "{messages}");
    assert!(messages.contains("and 5 more: is 60 × 50, but 61 × 50"), "{messages}");
}

#[test]
fn impossible_imports_are_refused() {
    let bench = Bench::new();
    let check = |output: Output, expected: &str| {
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(expected), "{expected}:\n{}", stderr(&output));
    };
    check(bench.import("results.json", &[]), "--truth");
    check(bench.import("truth.json", &[]), "has no scores");
    check(bench.import("missing.json", &[]), "does not exist");
    std::fs::write(bench.path("map.csv"), "a,b,c").unwrap();
    let map = bench.path("map.csv");
    check(bench.import("results.json", &["--class-map", map.to_str().unwrap()]), "line 1 needs");
    let no_project = spotcheck(&["import"]).arg(bench.path("images")).arg("--predictions").arg(Path::new("x")).output();
    check(no_project.unwrap(), "Add --project");
}

#[test]
fn unknown_classes_and_outside_boxes_are_warnings() {
    let bench = Bench::new();
    let edges = json!([
        {"image_id": 1, "category_id": 99, "bbox": [1.5, 2, 10, 20], "score": 0.25},
        {"image_id": 2, "category_id": 17, "bbox": [40, 20, 70, 40], "score": 0.5},
    ]);
    bench.write("edges.json", &edges);
    let truth = bench.path("truth.json");
    let output = bench.import("edges.json", &["--truth", truth.to_str().unwrap()]);
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{messages}");
    for part in [": class 99", "1 of 2 boxes"] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
}
