//! Corrected labels and verdicts that go to other programs and people, and come back.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{json_lines, spotcheck, stderr};

const CLASSES: [&str; 4] = ["cat", "dog", "'-x", "two\nlines"];
const IMAGES: [&str; 5] = ["-x.png", "'-x.png", " lead.png", "sub/tea, hot.png", "rejected.png"];
/// Boxes with a class as index into `CLASSES`, and their verdicts.
const BOXES: [(usize, [f64; 4], &str); 4] = [
    (0, [2.0, 3.0, 17.5, 16.0], "accept"),
    (2, [20.0, 3.0, 30.0, 16.0], "accept"),
    (3, [2.0, 20.0, 12.5, 28.0], "accept"),
    (0, [20.0, 20.0, 30.0, 28.0], "reject"),
];

/// Reviewed predictions: each image has `BOXES`, and the last one only a dog, which is nowhere accepted.
struct Reviewed(tempfile::TempDir);

impl Reviewed {
    fn new() -> Self {
        let reviewed = Self(tempfile::tempdir().unwrap());
        let mut lines = String::new();
        let mut verdicts = "image,box,verdict,right_class\n".to_owned();
        for name in IMAGES {
            let path = reviewed.path("images").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            image::RgbImage::new(40, 30).save(&path).unwrap();
            let only = [(1, BOXES[0].1, "reject")];
            let boxes = if name == "rejected.png" { &only[..] } else { &BOXES };
            let detection = |&(class, bounds, _): &(usize, [f64; 4], _)| json!({"box": bounds, "class_id": class, "label": CLASSES[class], "score": 0.75});
            let detections: Vec<Value> = boxes.iter().map(detection).collect();
            lines +=
                &json!({"uri": name, "status": "ok", "width": 40, "height": 30, "detections": detections}).to_string();
            lines.push('\n');
            let cell = if name.starts_with(['-', '\'', ' ']) { format!("'{name}") } else { format!("\"{name}\"") };
            for (index, (_, _, verdict)) in boxes.iter().enumerate() {
                writeln!(verdicts, "{cell},{index},{verdict},").unwrap();
            }
        }
        std::fs::write(reviewed.path("predictions.jsonl"), lines).unwrap();
        std::fs::write(reviewed.path("verdicts.csv"), verdicts).unwrap();
        let images = reviewed.path("images");
        let predictions = reviewed.path("predictions.jsonl");
        Reviewed::run(
            &["import"],
            &[&images, "--predictions".as_ref(), &predictions, "--project".as_ref(), &reviewed.project()],
            0,
        );
        let output = Reviewed::run(&["review", "import"], &[&reviewed.project(), &reviewed.path("verdicts.csv")], 0);
        assert!(stderr(&output).contains("imported 17 verdicts"), "{}", stderr(&output));
        reviewed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn project(&self) -> PathBuf {
        self.path("p.spotcheck")
    }

    #[track_caller]
    fn run(command: &[&str], arguments: &[&Path], code: i32) -> Output {
        let output = spotcheck(command).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{command:?}: {}", stderr(&output));
        output
    }

    #[track_caller]
    fn exported(&self, format: &str) -> PathBuf {
        let out = self.path(&format!("labels-{format}"));
        let arguments = ["export", "--verdicts", "corrected", "--format", format, "--out"];
        Self::run(&arguments, &[&out, &self.project()], 0);
        out
    }

    #[track_caller]
    fn import(&self, verdicts: impl AsRef<[u8]>, code: i32) -> String {
        let file = self.path("more.csv");
        std::fs::write(&file, verdicts).unwrap();
        stderr(&Self::run(&["review", "import", "--replace"], &[&self.project(), &file], code))
    }
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn corrected_labels_give_equal_numbers_in_every_format() {
    let reviewed = Reviewed::new();
    let formats = ["coco", "yolo", "voc", "csv", "jsonl"];
    let truths = formats.map(|format| reviewed.exported(format)).into_iter().chain([reviewed.project()]);
    for truth in truths {
        let out = reviewed.path("metrics.json");
        let arguments = ["evaluate", "--draws", "0", "--min-score", "0.5", "--force", "--out"];
        let images = reviewed.path("images");
        Reviewed::run(
            &arguments,
            &[&out, &images, "--project".as_ref(), &reviewed.project(), "--truth".as_ref(), &truth],
            0,
        );
        let metrics = json_of(&out);
        let counts = ["images", "true_positives", "false_positives", "missed"].map(|key| metrics[key].as_u64());
        // In four images, three boxes are right and one is wrong, and the dog.
        assert_eq!(counts, [5, 12, 5, 0].map(Some), "{}: {metrics}", truth.display());
        let precision = metrics["precision"].as_f64().unwrap();
        assert!((precision - 12.0 / 17.0).abs() < 1e-9, "{}: {precision}", truth.display());
        assert_eq!(metrics["classes"].as_array().unwrap().len(), 4, "{}", truth.display());
    }
}

/// What `scripts/try-importers` found that CVAT, Datumaro and Ultralytics need.
#[test]
fn corrected_labels_have_what_other_tools_require() {
    let reviewed = Reviewed::new();
    let coco = json_of(&reviewed.exported("coco"));
    let ids = coco["categories"].as_array().unwrap().iter().map(|category| category["id"].as_u64().unwrap());
    assert_eq!(ids.collect::<Vec<_>>(), [1, 2, 3, 4], "0 means no category");
    for label in coco["annotations"].as_array().unwrap() {
        assert_eq!(label["segmentation"], json!([]));
        assert!(label["category_id"].as_u64().is_some_and(|id| id > 0));
    }
    let yaml = std::fs::read_to_string(reviewed.exported("yolo").join("data.yaml")).unwrap();
    let keys: Vec<&str> =
        yaml.lines().filter(|line| !line.starts_with(' ')).map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(keys, ["train", "val", "names"], "other keys would be splits, or a folder");
    let voc = reviewed.exported("voc");
    assert_eq!(json_of(&voc.join("dataset_meta.json"))["labels"], json!(CLASSES));
    let listed = std::fs::read_to_string(voc.join("ImageSets/Main/default.txt")).unwrap();
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    assert_eq!(listed, [" lead", "'-x", "-x", "rejected", "sub/tea, hot"]);
    let xml = std::fs::read_to_string(voc.join("Annotations/sub/tea, hot.xml")).unwrap();
    assert!(xml.contains("<filename>sub/tea, hot.png</filename>"), "{xml}");
}

#[test]
fn open_quote_in_verdicts_costs_only_its_line() {
    let reviewed = Reviewed::new();
    let rows = "image,box,verdict\n\"rejected.png,0,accept\n'-x.png,0,unsure\nrejected.png,0,unsure\n";
    let messages = reviewed.import(rows, 3);
    assert!(messages.contains("line 2: has a quote that is not closed"), "{messages}");
    assert!(messages.contains("imported 2 verdicts"), "{messages}");
    let utf16: Vec<u8> = "\u{feff}image,box,verdict\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let messages = reviewed.import(utf16, 1);
    assert!(messages.contains("UTF-16"), "{messages}");
    reviewed.import("", 1);
}

#[test]
fn imported_classes_have_the_spelling_of_the_run() {
    let reviewed = Reviewed::new();
    let messages = reviewed.import("image,box,verdict,right_class\nrejected.png,0,wrong,CAT\n", 0);
    assert!(!messages.contains("does not have"), "{messages}");
    let messages = reviewed.import("image,box,verdict,right_class\n\"sub/tea, hot.png\",0,wrong,zebra\n", 0);
    assert!(messages.contains("1 class that the run does not have: “zebra”"), "{messages}");
    let lines = json_lines(std::fs::read(reviewed.exported("jsonl")).unwrap());
    let mut labels: Vec<&Value> =
        lines.iter().flat_map(|line| line["detections"].as_array().unwrap()).map(|found| &found["label"]).collect();
    labels.sort_by_key(|label| label.as_str());
    labels.dedup();
    assert_eq!(labels, ["'-x", "cat", "two\nlines", "zebra"]);
}

#[test]
fn labels_of_renamed_copies_match_the_originals() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (images, project) = (path("images"), path("p.spotcheck"));
    std::fs::create_dir(&images).unwrap();
    let (mut lines, mut verdicts) = (String::new(), "image,box,verdict\n".to_owned());
    // The copy of the second has the name of the third, whose copy has another one.
    for (left, name) in [(1, "x.png"), (11, "x.jpg"), (21, "x-2.jpg")] {
        image::RgbImage::new(40, 30).save(images.join(name)).unwrap();
        let found = json!({"box": [left, 3, left + 8, 16], "class_id": 0, "label": "cat", "score": 0.75});
        let line = json!({"uri": name, "status": "ok", "width": 40, "height": 30, "detections": [found]});
        writeln!(lines, "{line}").unwrap();
        writeln!(verdicts, "{name},0,accept").unwrap();
    }
    std::fs::write(path("predictions.jsonl"), lines).unwrap();
    std::fs::write(path("v.csv"), verdicts).unwrap();
    let predictions = path("predictions.jsonl");
    Reviewed::run(&["import"], &[&images, "--predictions".as_ref(), &predictions, "--project".as_ref(), &project], 0);
    Reviewed::run(&["review", "import"], &[&project, &path("v.csv")], 0);
    for format in ["yolo", "voc"] {
        let (out, metrics) = (path(format), path(&format!("{format}.json")));
        let export = ["export", "--verdicts", "corrected", "--with-images", "--format", format, "--out"];
        Reviewed::run(&export, &[&out, &project], 0);
        let evaluate = ["evaluate", "--draws", "0", "--min-score", "0.5", "--out"];
        let sides: [&Path; 5] = [&metrics, "--project".as_ref(), &project, "--truth".as_ref(), &out];
        Reviewed::run(&evaluate, &sides, 0);
        let found = json_of(&metrics);
        let counts = ["images", "true_positives", "false_positives", "missed"].map(|key| found[key].as_u64());
        assert_eq!(counts, [3, 3, 0, 0].map(Some), "{format}: {found}");
    }
}

#[test]
fn classes_that_differ_only_in_case_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("images")).unwrap();
    image::RgbImage::new(40, 30).save(path("images/a.png")).unwrap();
    let found =
        |class: usize, label: &str| json!({"box": [2, 3, 17, 16], "class_id": class, "label": label, "score": 0.75});
    let detections = [found(0, "cat"), found(1, "CAT"), found(0, "cat"), found(0, "cat")];
    let line = json!({"uri": "a.png", "status": "ok", "width": 40, "height": 30, "detections": detections});
    std::fs::write(path("predictions.jsonl"), line.to_string()).unwrap();
    let (images, predictions, project, verdicts) =
        (path("images"), path("predictions.jsonl"), path("p.spotcheck"), path("v.csv"));
    Reviewed::run(&["import"], &[&images, "--predictions".as_ref(), &predictions, "--project".as_ref(), &project], 0);
    let header = "image,box,verdict,right_class,x1,y1,x2,y2\n";
    let rows = "a.png,0,wrong,CAT,,,,\na.png,1,wrong,cat,,,,\na.png,2,moved,CAT,4,5,20,22\na.png,3,wrong,Cat,,,,\n";
    std::fs::write(&verdicts, format!("{header}{rows}a.png,3,wrong,cat,,,,\n")).unwrap();
    let messages = stderr(&Reviewed::run(&["review", "import"], &[&project, &verdicts], 3));
    assert!(messages.contains("line 6: ") && messages.contains("“Cat”"), "{messages}");
    let out = path("w.csv");
    Reviewed::run(&["review", "export"], &[&project, "--out".as_ref(), &out], 0);
    let exported = std::fs::read_to_string(out).unwrap();
    assert_eq!(
        exported.replace(",\r\n", "\n").replace("\r\n", "\n"),
        format!("{},reviewer\n{rows}", header.trim_end())
    );
}

/// Ground truth opened to correct it, with an id of its own for each label, and a mask.
fn truth() -> Value {
    let label = |id: u64, image: &str, category: u64, bbox: [f64; 4]| json!({"id": id, "image_id": image, "category_id": category, "bbox": bbox, "area": 7.5, "iscrowd": 0, "note": "kept"});
    let mut mask = label(40, "b", 9, [1.0, 2.0, 10.25, 12.0]);
    mask["segmentation"] = json!([[1, 2, 11, 2, 11, 14]]);
    json!({
        "info": {"year": 2017},
        "images": [{"id": "a", "file_name": "a.png", "width": 40, "height": 30}, {"id": "b", "file_name": "sub/b.png", "width": 40, "height": 30}],
        "categories": [{"id": 3, "name": "cat", "supercategory": "animal"}, {"id": 9, "name": "dog"}],
        "annotations": [
            label(10, "a", 3, [1.1, 2.2, 10.3, 12.4]),
            label(20, "a", 9, [20.0, 2.0, 30.0, 12.0]),
            label(30, "a", 3, [5.0, 15.0, 8.0, 9.0]),
            mask,
            label(50, "b", 3, [20.0, 2.0, 10.0, 12.0]),
        ],
    })
}

#[test]
fn impossible_changes_are_conflicts_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (file, changes, out) = (path("truth.json"), path("changes.jsonl"), path("out.json"));
    std::fs::write(&file, truth().to_string()).unwrap();
    let before = json!({"class": "cat", "bbox": [1.1, 2.2, 10.3, 12.4]});
    let dog = json!({"class": "dog", "bbox": [1.1, 2.2, 10.3, 12.4]});
    let moved = |bbox: [f64; 4]| json!({"class": "cat", "bbox": bbox});
    let change = |kind: &str, after: &Value| json!({"image": "a.png", "id": 10, "change": kind, "before": before, "after": after});
    let lines = [
        json!({"image": "a.png", "id": 10, "change": "class", "before": before}),
        json!({"image": "a.png", "id": 10, "change": "class", "before": before, "later": dog}),
        json!({"image": "a.png", "id": 10, "change": "moved", "before": before}),
        json!({"image": "sub/b.png", "id": 10, "change": "class", "before": before, "after": dog}),
        change("deleted", &dog),
        change("added", &dog),
        change("class", &moved([5.0, 5.0, 9.0, 9.0])),
        change("moved", &dog),
        change("moved", &moved([1.0, 1.0, -5.0, 5.0])),
        change("moved", &moved([1.0, 1.0, 1e308, 1e308])),
        change("class", &json!({"class": " ", "bbox": [1.1, 2.2, 10.3, 12.4]})),
    ];
    std::fs::write(&changes, lines.each_ref().map(Value::to_string).join("\n")).unwrap();
    let flag = Path::new;
    let args = [&file, flag("--changes"), &changes, flag("--out"), &out];
    let messages = stderr(&Reviewed::run(&["review", "apply"], &args, 3));
    assert!(
        messages.contains(&format!("applied 0 changes, 0 unchanged, 0 rejected, {} in conflict", lines.len())),
        "{messages}"
    );
    let unchanged: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert_eq!(unchanged, truth());
}

#[test]
fn changes_of_ground_truth_are_listed_and_applied() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("images/sub")).unwrap();
    for name in ["a.png", "sub/b.png"] {
        image::RgbImage::new(40, 30).save(path("images").join(name)).unwrap();
    }
    let (file, project, changes) = (path("truth.json"), path("p.spotcheck"), path("changes.jsonl"));
    std::fs::write(&file, truth().to_string()).unwrap();
    let flag = Path::new;
    let images = path("images");
    // A box extends beyond its image.
    Reviewed::run(
        &["import", "--to-correct"],
        &[&images, flag("--predictions"), &file, flag("--project"), &project],
        3,
    );
    let rows = "image,box,verdict,right_class,x1,y1,x2,y2,reviewer\n\
        a.png,0,wrong,fox,,,,,Ada\na.png,1,reject,,,,,,Ada\na.png,2,accept,,,,,,Ada\n\
        sub/b.png,0,moved,,2,3,11,14,Bob\nsub/b.png,,added,dog,30,20,35.5,25,\n";
    std::fs::write(path("verdicts.csv"), rows).unwrap();
    Reviewed::run(&["review", "import"], &[&project, &path("verdicts.csv")], 0);
    Reviewed::run(&["review", "changes"], &[&project, flag("--truth"), &file, flag("--out"), &changes], 0);
    let expected = [
        json!({"image": "a.png", "id": 10, "change": "class", "before": {"class": "cat", "bbox": [1.1, 2.2, 10.3, 12.4]}, "after": {"class": "fox", "bbox": [1.1, 2.2, 10.3, 12.4]}, "author": "Ada"}),
        json!({"image": "a.png", "id": 20, "change": "deleted", "before": {"class": "dog", "bbox": [20.0, 2.0, 30.0, 12.0]}, "author": "Ada"}),
        json!({"image": "sub/b.png", "id": 40, "change": "moved", "before": {"class": "dog", "bbox": [1.0, 2.0, 10.25, 12.0]}, "after": {"class": "dog", "bbox": [2.0, 3.0, 9.0, 11.0]}, "author": "Bob"}),
        json!({"image": "sub/b.png", "change": "added", "after": {"class": "dog", "bbox": [30.0, 20.0, 5.5, 5.0]}}),
    ];
    assert_eq!(json_lines(std::fs::read(&changes).unwrap()), expected);

    let corrected = path("corrected.json");
    let apply = |file: &Path, out: &Path, code| {
        stderr(&Reviewed::run(
            &["review", "apply", "--force"],
            &[file, flag("--changes"), &changes, flag("--out"), out],
            code,
        ))
    };
    // Inputs are never replaced.
    for input in [&file, &changes] {
        let before = std::fs::read(input).unwrap();
        apply(&file, input, 1);
        assert_eq!(std::fs::read(input).unwrap(), before);
    }
    let messages = apply(&file, &corrected, 0);
    assert!(messages.contains("removed 1 mask") && messages.contains("applied 4 changes"), "{messages}");
    let mut expected = truth();
    expected["categories"].as_array_mut().unwrap().push(json!({"id": 10, "name": "fox", "supercategory": ""}));
    let labels = expected["annotations"].as_array_mut().unwrap();
    labels[0]["category_id"] = json!(10);
    labels[3]["bbox"] = json!([2.0, 3.0, 9.0, 11.0]);
    labels[3]["area"] = json!(99.0);
    labels[3]["segmentation"] = json!([]);
    labels.push(json!({"id": 51, "image_id": "b", "category_id": 9, "bbox": [30.0, 20.0, 5.5, 5.0], "area": 27.5, "iscrowd": 0, "segmentation": []}));
    labels.remove(1);
    assert_eq!(json_of(&corrected), expected);
    assert_eq!(json_of(&file), truth());
    let messages = apply(&corrected, &path("again.json"), 0);
    assert!(messages.contains("applied 0 changes, 4 unchanged"), "{messages}");
    assert_eq!(json_of(&path("again.json")), expected);

    // The owner changed a label meanwhile, and deleted another one.
    let mut newer = truth();
    newer["annotations"][0]["category_id"] = json!(9);
    newer["annotations"].as_array_mut().unwrap().remove(3);
    std::fs::write(&file, newer.to_string()).unwrap();
    let messages = apply(&file, &corrected, 3);
    assert!(messages.contains("line 1: ") && messages.contains("line 3: "), "{messages}");
    assert!(messages.contains("applied 2 changes, 0 unchanged, 0 rejected, 2 in conflict"), "{messages}");
    let labels = json_of(&corrected)["annotations"].as_array().unwrap().clone();
    let ids: Vec<&Value> = labels.iter().map(|label| &label["id"]).collect();
    assert_eq!(ids, [10, 30, 50, 51]);
    assert_eq!(labels[0], newer["annotations"][0]);
    let again = ["review", "changes", "--force"];
    let arguments = [&*project, flag("--truth"), &file, flag("--out"), &changes];
    assert!(stderr(&Reviewed::run(&again, &arguments, 3)).contains("sub/b.png: "));
    std::fs::write(&file, "image,label\na.png,cat\n").unwrap();
    Reviewed::run(&again, &arguments, 1);
}
