//! What verdicts on opened labels mean: for the list of changes, and for corrected labels.

use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{json_lines, spotcheck, stderr};

const VERDICTS: &str = "image,box,verdict,right_class,x1,y1,x2,y2\n";

/// Images of 40 × 30 pixels with ground truth.
struct Opened {
    folder: tempfile::TempDir,
    truth: &'static str,
}

impl Opened {
    /// Opens the ground truth to correct it.
    fn new(truth: &'static str, files: &[(&str, &str)], more: &[&str]) -> Self {
        let opened = Self { folder: tempfile::tempdir().unwrap(), truth };
        std::fs::create_dir(opened.path("images")).unwrap();
        for name in ["a.png", "b.png", "c.png"] {
            image::RgbImage::new(40, 30).save(opened.path("images").join(name)).unwrap();
        }
        for (name, text) in files {
            opened.write(name, text);
        }
        let import = ["import", "images", "--to-correct", "--predictions", truth, "--project", "p.spotcheck"];
        opened.run(&[&import, more].concat(), 0);
        opened
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    #[track_caller]
    fn run(&self, arguments: &[&str], code: i32) -> Output {
        let output = spotcheck(arguments).current_dir(self.folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        output
    }

    fn judge(&self, rows: &str) {
        self.write("v.csv", &format!("{VERDICTS}{rows}"));
        self.run(&["review", "import", "p.spotcheck", "v.csv"], 0);
    }

    /// The changes, and what was reported.
    #[track_caller]
    fn changes(&self, more: &[&str]) -> (Vec<Value>, String) {
        let changes = ["review", "changes", "p.spotcheck", "--truth", self.truth, "--force", "--out", "changes.jsonl"];
        let output = self.run(&[&changes, more].concat(), 0);
        (json_lines(std::fs::read(self.path("changes.jsonl")).unwrap()), stderr(&output))
    }

    #[track_caller]
    fn apply(&self, counts: &str) {
        let apply = ["review", "apply", self.truth, "--changes", "changes.jsonl", "--force", "--out", "out"];
        let output = self.run(&apply, 0);
        assert!(stderr(&output).contains(counts), "{}", stderr(&output));
    }

    /// The classes of the corrected labels of each image.
    fn corrected(&self, run: &str) -> Value {
        let export = ["export", "p.spotcheck", "--run", run, "--verdicts", "corrected", "--format", "jsonl"];
        self.run(&[&export, &["--force", "--out", "labels.jsonl"][..]].concat(), 0);
        let lines = json_lines(std::fs::read(self.path("labels.jsonl")).unwrap());
        let classes = |line: &Value| {
            let found = line["detections"].as_array().unwrap();
            let name = line["uri"].as_str().unwrap().rsplit(['/', '\\']).next().unwrap().to_owned();
            (name, found.iter().map(|found| found["label"].clone()).collect::<Value>())
        };
        lines.iter().map(classes).collect::<serde_json::Map<_, _>>().into()
    }
}

/// Two labels on `a.png`, two on `b.png`, and one on `c.png`.
fn coco() -> String {
    let image = |id: u32, name: &str| json!({"id": id, "file_name": name, "width": 40, "height": 30});
    let label = |id: u32, image: u32, category: u32, bbox: [f64; 4]| json!({"id": id, "image_id": image, "category_id": category, "bbox": bbox, "iscrowd": 0});
    json!({
        "images": [image(1, "a.png"), image(2, "b.png"), image(3, "c.png")],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            label(1, 1, 1, [2.0, 3.0, 10.0, 12.0]), label(2, 1, 2, [20.2, 3.1, 17.9, 12.0]),
            label(3, 2, 1, [2.0, 3.0, 10.0, 12.0]), label(4, 2, 2, [20.0, 3.0, 18.0, 12.0]),
            label(5, 3, 1, [2.0, 3.0, 10.0, 12.0]),
        ],
    })
    .to_string()
}

#[test]
fn rejected_and_returned_images_have_no_changes() {
    let opened = Opened::new("truth.json", &[("truth.json", &coco())], &[]);
    opened.judge("a.png,,reject,,,,,\nb.png,,returned,,,,,\nb.png,0,reject,,,,,\nc.png,0,reject,,,,,\n");
    let (changes, messages) = opened.changes(&[]);
    let ids: Vec<&Value> = changes.iter().map(|change| &change["id"]).collect();
    assert_eq!(ids, [5]);
    for line in ["1 image rejected as a whole", "1 image back to labeler"] {
        assert!(messages.contains(line), "{messages}");
    }
    assert!(messages.contains(": a.png\n") && messages.contains(": b.png\n"), "{messages}");
    opened.apply("applied 1 change, 0 unchanged, 0 rejected, 0 in conflict");
}

#[test]
fn labels_judged_as_wrong_are_deleted() {
    let opened = Opened::new("truth.json", &[("truth.json", &coco())], &[]);
    let wrong = |image: &str, edges: &str| format!("{image},,spurious,dog,{edges}\n");
    let rows = "a.png,,accept,,,,,\nb.png,0,accept,,,,,\n".to_owned();
    opened.judge(&[rows, wrong("a.png", "20.2,3.1,38.1,15.1"), wrong("b.png", "20,3,38,15")].concat());
    assert_eq!(opened.corrected("1"), json!({"a.png": ["cat"], "b.png": ["cat"]}));
    let evaluate = ["evaluate", "images", "--predictions", "labels.jsonl", "--truth", "p.spotcheck", "--out", "-"];
    let metrics: Value = serde_json::from_slice(&opened.run(&evaluate, 0).stdout).unwrap();
    assert_eq!(["true_positives", "false_positives", "missed"].map(|key| metrics[key].as_u64()), [2, 0, 0].map(Some));
    let changes = || {
        let (changes, _) = opened.changes(&[]);
        let change = |change: &Value| json!([change["id"], change["change"], change["after"]["class"]]);
        changes.iter().map(change).collect::<Value>()
    };
    assert_eq!(changes(), json!([[2, "deleted", null], [4, "deleted", null]]));
    opened.apply("applied 2 changes, 0 unchanged, 0 rejected, 0 in conflict");

    // For a run of a model, the object was added with another class.
    let found = json!({"box": [1, 20, 8, 28], "class_id": 0, "label": "cat", "score": 0.5});
    let line = json!({"uri": "a.png", "status": "ok", "width": 40, "height": 30, "detections": [found]});
    opened.write("model.jsonl", &line.to_string());
    opened.run(&["import", "images", "--predictions", "model.jsonl", "--project", "p.spotcheck"], 0);
    opened.write("v.csv", &format!("{VERDICTS}a.png,,added,fox,20.2,3.1,38.1,15.1\n"));
    opened.run(&["review", "import", "p.spotcheck", "v.csv", "--run", "2"], 0);
    assert_eq!(changes(), json!([[2, "class", "fox"], [4, "deleted", null]]));
    assert_eq!(opened.corrected("1"), json!({"a.png": ["cat", "fox"], "b.png": ["cat"]}));
}

#[test]
fn labels_opened_with_class_names_are_handed_over() {
    let names = "cat\ndog\nbird\n";
    let numbered = "0 0.175 0.3 0.25 0.4\n1 0.725 0.3 0.45 0.4\n";
    let files = [("truth/labels/a.txt", numbered), ("names.txt", names)];
    let opened = Opened::new("truth", &files, &["--labels", "names.txt"]);
    opened.judge("a.png,0,wrong,bird,,,,\na.png,1,moved,,19,3,36,15\na.png,,added,dog,1,20,9,28\n");
    let (changes, _) = opened.changes(&[]);
    let classes: Vec<&Value> = changes.iter().map(|change| &change["after"]["class"]).collect();
    assert_eq!(classes, ["class 2", "class 1", "class 1"]);
    opened.apply("applied 3 changes, 0 unchanged, 0 rejected, 0 in conflict");
    let written = std::fs::read_to_string(opened.path("out/labels/a.txt")).unwrap();
    let numbers: Vec<&str> = written.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(numbers, ["2", "1", "1"]);
}

#[test]
fn labels_opened_with_class_corrections_are_handed_over() {
    let rows = "image,label,xmin,ymin,xmax,ymax\na.png,Katze,2,3,12,15\nx/b.png,Hund,2,3,12,15\n";
    let files = [("truth.csv", rows), ("names.txt", "cat\ndog\n"), ("map.csv", "Katze,cat\nHund,dog\n")];
    let more = ["--class-map", "map.csv"];
    let opened = Opened::new("truth.csv", &files, &[&["--labels", "names.txt"], &more[..]].concat());
    opened.judge("a.png,0,wrong,dog,,,,\n");
    let (changes, _) = opened.changes(&more);
    assert_eq!(changes[0]["before"]["class"], "Katze");
    assert_eq!(changes[0]["after"]["class"], "Hund");
}

#[test]
fn objects_of_images_without_a_row_get_one() {
    let rows = "image,label,xmin,ymin,xmax,ymax,image_width,image_height,note\nimages/a.png,cat,2,3,12,15,40,30,x\n";
    let opened = Opened::new("truth.csv", &[("truth.csv", rows)], &[]);
    opened.judge("a.png,0,accept,,,,,\nb.png,,added,dog,1,20,9,28\nb.png,,added,cat,2,3,12,15\n");
    let (changes, _) = opened.changes(&[]);
    assert_eq!(changes.iter().map(|change| &change["image"]).collect::<Vec<_>>(), ["images/b.png"; 2]);
    opened.apply("applied 2 changes, 0 unchanged, 0 rejected, 0 in conflict");
    let after = "images/b.png,dog,1,20,9,28,,,\nimages/b.png,cat,2,3,12,15,,,\n";
    assert_eq!(std::fs::read_to_string(opened.path("out")).unwrap(), format!("{rows}{after}"));
    std::fs::copy(opened.path("out"), opened.path("truth.csv")).unwrap();
    opened.apply("applied 0 changes, 2 unchanged, 0 rejected, 0 in conflict");
}

#[test]
fn class_names_with_control_characters_are_refused() {
    let opened = Opened::new("truth.json", &[("truth.json", &coco())], &[]);
    opened.write("other.json", &coco().replace("\"dog\"", "\"do\\u0001g\""));
    opened.write("names.txt", "dog\ncat\n");
    let import = ["import", "images", "--to-correct", "--predictions", "other.json", "--project", "q.spotcheck"];
    let messages = stderr(&opened.run(&import, 1));
    assert!(messages.contains("do\\u{1}g") && messages.contains("other.json"), "{messages}");
    opened.write("map.csv", "do\u{1}g,dog\n");
    opened.run(&[&import, &["--labels", "names.txt", "--class-map", "map.csv"][..]].concat(), 0);
}
