//! What `review apply` makes of unusual files and of changes that do not fit, and what it refuses.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{spotcheck, stderr};

/// Ground truth of images with 40 × 30 pixels, and changes to it.
struct Patch {
    folder: tempfile::TempDir,
    /// What is opened.
    truth: &'static str,
}

impl Patch {
    fn new(truth: &'static str, files: &[(&str, &[u8])]) -> Self {
        let patch = Self { folder: tempfile::tempdir().unwrap(), truth };
        std::fs::create_dir(patch.path("images")).unwrap();
        image::RgbImage::new(40, 30).save(patch.path("images/a.png")).unwrap();
        for (name, content) in files {
            patch.write(name, content);
        }
        patch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    #[track_caller]
    fn run(&self, arguments: &[&str], code: i32) -> Output {
        let output = spotcheck(arguments).current_dir(self.folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}: {arguments:?}: {}", self.truth, stderr(&output));
        output
    }

    /// Applies changes to `out`, and returns what was reported.
    #[track_caller]
    fn apply(&self, changes: &[Value], code: i32) -> String {
        let lines: Vec<String> = changes.iter().map(Value::to_string).collect();
        self.write("changes.jsonl", lines.join("\n"));
        self.apply_to(self.truth, "out", code)
    }

    #[track_caller]
    fn apply_to(&self, truth: &str, out: &str, code: i32) -> String {
        let arguments = ["review", "apply", truth, "--changes", "changes.jsonl", "--force", "--out", out];
        stderr(&self.run(&arguments, code))
    }

    /// Copies a changed file over the ground truth, and returns it.
    fn accept(&self, file: &str) -> String {
        let name = Path::new(file).strip_prefix(self.truth).unwrap();
        let from = if name.as_os_str().is_empty() { self.path("out") } else { self.path("out").join(name) };
        std::fs::copy(from, self.path(file)).unwrap();
        self.read(file)
    }
}

#[track_caller]
fn assert_counts(messages: &str, [applied, unchanged, conflicts]: [usize; 3]) {
    let plural = if applied == 1 { "" } else { "s" };
    let counts =
        format!("applied {applied} change{plural}, {unchanged} unchanged, 0 rejected, {conflicts} in conflict");
    assert!(messages.contains(&counts), "{messages}");
}

fn added(image: &str, class: &str, bbox: [f64; 4]) -> Value {
    json!({"image": image, "change": "added", "after": {"class": class, "bbox": bbox}})
}

fn object(name: &str, bounds: [u32; 4], more: &str) -> String {
    let [xmin, ymin, xmax, ymax] = bounds;
    format!(
        "\t<object>\n\t\t<name>{name}</name>\n{more}\t\t<bndbox><xmin>{xmin}</xmin><ymin>{ymin}</ymin>\
         <xmax>{xmax}</xmax><ymax>{ymax}</ymax></bndbox>\n\t</object>\n"
    )
}

/// A document of an image with 40 × 30 pixels.
fn document(image: &str, objects: &str) -> String {
    format!(
        "<annotation>\n\t<filename>{image}</filename>\n\t<size><width>40</width><height>30</height></size>\n{objects}\
         </annotation>\n"
    )
}

fn coco(annotations: &Value) -> Vec<u8> {
    let truth = json!({
        "images": [{"id": 1, "file_name": "a.png", "width": 40, "height": 30}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": annotations,
    });
    truth.to_string().into_bytes()
}

const YAML: (&str, &[u8]) = ("truth/data.yaml", b"names: [cat]\n");

/// A label with a score in each format, the changed file, and the name of the image.
fn scored() -> [(Patch, &'static str, &'static str); 5] {
    let voc = document("a.png", &object("cat", [3, 4, 12, 15], "\t\t<score>0.5</score>\n"));
    let annotation = json!([{"id": 7, "image_id": 1, "category_id": 1, "bbox": [2, 3, 10, 12], "score": 0.5}]);
    let image: (&str, &[u8]) = ("truth/images/a.png", b"");
    let polygon = b"0 0.05 0.1 0.3 0.1 0.3 0.5 0.05 0.5 0.5\n";
    [
        (Patch::new("t.json", &[("t.json", &coco(&annotation))]), "t.json", "a.png"),
        (
            Patch::new("t.csv", &[("t.csv", b"image,label,x1,y1,x2,y2,score\na.png,cat,2,3,12,15,0.5\n")]),
            "t.csv",
            "a.png",
        ),
        (
            Patch::new("truth", &[("truth/Annotations/a.xml", voc.as_bytes())]),
            "truth/Annotations/a.xml",
            "JPEGImages/a.png",
        ),
        (
            Patch::new("truth", &[YAML, image, ("truth/labels/a.txt", b"0 0.175 0.3 0.25 0.4 0.5\n")]),
            "truth/labels/a.txt",
            "images/a.png",
        ),
        (Patch::new("truth", &[YAML, image, ("truth/labels/a.txt", polygon)]), "truth/labels/a.txt", "images/a.png"),
    ]
}

#[test]
fn added_labels_are_read_where_others_have_scores() {
    let boxes = [[2.0, 3.0, 12.0, 15.0], [20.0, 4.0, 30.0, 14.0]];
    let detection = |bounds: &[f64; 4]| json!({"box": bounds, "class_id": 0, "label": "cat", "score": 0.9});
    let detections: Vec<Value> = boxes.iter().map(detection).collect();
    let line = json!({"uri": "a.png", "status": "ok", "width": 40, "height": 30, "detections": detections});
    for (patch, file, image) in scored() {
        let mut change = added(image, "cat", [20.0, 4.0, 10.0, 10.0]);
        change["size"] = json!([40, 30]);
        let before = patch.read(file);
        assert_counts(&patch.apply(std::slice::from_ref(&change), 0), [1, 0, 0]);
        let after = patch.accept(file);
        assert!(after.len() > before.len() && after.contains("0.5"), "{after}");
        patch.write("p.jsonl", line.to_string());
        let arguments = ["evaluate", "images", "--predictions", "p.jsonl", "--truth", patch.truth];
        let more = ["--ignore-truth-scores", "--draws", "0", "--out", "-"];
        let metrics: Value = serde_json::from_slice(&patch.run(&[&arguments[..], &more].concat(), 0).stdout).unwrap();
        let counts = ["true_positives", "false_positives", "missed"].map(|key| metrics[key].as_u64());
        assert_eq!(counts, [2, 0, 0].map(Some), "{after}");
        assert_counts(&patch.apply(&[change], 0), [0, 1, 0]);
    }
}

#[test]
fn boxes_outside_their_image_are_conflicts() {
    let annotation = json!([{"id": 7, "image_id": 1, "category_id": 1, "bbox": [2, 3, 10, 12]}]);
    let voc = document("a.png", &object("cat", [3, 4, 12, 15], ""));
    let csv = b"image,label,x1,y1,x2,y2,image_width,image_height\na.png,cat,2,3,12,15,40,30\n";
    for (truth, file, content, image, clipped) in [
        ("t.json", "t.json", coco(&annotation), "a.png", "[35.0,25.0,5.0,5.0]"),
        ("t.csv", "t.csv", csv.to_vec(), "a.png", "a.png,cat,35,25,40,30,40,30"),
        ("truth", "truth/Annotations/a.xml", voc.into_bytes(), "JPEGImages/a.png", "<xmax>40</xmax>"),
    ] {
        let patch = Patch::new(truth, &[(file, &content)]);
        let mut of_other_size = added(image, "cat", [1.0, 1.0, 5.0, 5.0]);
        of_other_size["size"] = json!([80, 60]);
        let changes = [
            added(image, "cat", [100.0, 100.0, 5.0, 5.0]),
            added(image, "cat", [1.0, -9.0, 5.0, 5.0]),
            of_other_size,
            added(image, "cat", [35.0, 25.0, 20.0, 20.0]),
        ];
        let messages = patch.apply(&changes, 3);
        assert_counts(&messages, [1, 0, 3]);
        for line in ["line 1: ", "line 2: ", "line 3: ", "40 × 30", "clipped 1 box"] {
            assert!(messages.contains(line), "{line}: {messages}");
        }
        let after = patch.accept(file);
        assert!(after.contains(clipped), "{after}");
        assert_counts(&patch.apply(&changes, 3), [0, 1, 3]);
    }
}

#[test]
fn sizes_of_one_image_must_agree() {
    let patch = Patch::new("truth", &[YAML, ("truth/labels/a.txt", b"0 0.175 0.3 0.25 0.4\n")]);
    let with_size = |x: f64, size: [u32; 2]| {
        let mut change = added("images/a", "cat", [x, 4.0, 8.0, 6.0]);
        change["size"] = json!(size);
        change
    };
    let messages = patch.apply(&[with_size(20.0, [40, 30]), with_size(25.0, [30, 40])], 3);
    assert_counts(&messages, [1, 0, 1]);
    assert!(messages.contains("line 2: "), "{messages}");
}

#[test]
fn voc_keeps_class_names_that_are_read_back() {
    let names = ["two\nlines", "a\rb", " lead", "x & <y>", "bell\u{7}"];
    let voc = document("a.png", &object("cat", [3, 4, 12, 15], "")).replace('\n', "\r\n");
    let patch = Patch::new("truth", &[("truth/Annotations/a.xml", voc.as_bytes())]);
    let image = "JPEGImages/a.png";
    let place = |at: usize| [20.0, 2.0 + 5.0 * at as f64, 10.0, 4.0];
    let changes: Vec<Value> = names.iter().enumerate().map(|(at, name)| added(image, name, place(at))).collect();
    let messages = patch.apply(&changes, 3);
    assert_counts(&messages, [3, 0, 2]);
    assert!(messages.contains("line 3: ") && messages.contains("dataset_meta.json"), "{messages}");
    assert!(messages.contains("line 5: "), "{messages}");
    patch.accept("truth/Annotations/a.xml");
    assert_counts(&patch.apply(&changes, 3), [0, 3, 2]);
    patch.write("truth/dataset_meta.json", json!({"labels": ["cat", " lead"]}).to_string());
    assert_counts(&patch.apply(&changes, 3), [1, 3, 1]);
    patch.accept("truth/Annotations/a.xml");
    assert_counts(&patch.apply(&changes, 3), [0, 4, 1]);
    let before = json!({"class": "cat", "bbox": [2, 3, 10, 12]});
    let rename = |name: &str| json!({"image": image, "change": "class", "before": before, "after": {"class": name, "bbox": [2, 3, 10, 12]}});
    assert_counts(&patch.apply(&[rename("dog ")], 3), [0, 0, 1]);
    assert_counts(&patch.apply(&[rename("dog\ncat")], 0), [1, 0, 0]);
}

#[test]
fn voc_files_in_other_encodings_stay_readable() {
    let latin = format!(
        "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n{}",
        document("a.png", &object("cat", [3, 4, 12, 15], ""))
    );
    let utf16: Vec<u8> = "\u{feff}<annotation></annotation>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut umlaut = document("b.png", &object("K?fer", [3, 4, 12, 15], "")).into_bytes();
    let at = umlaut.iter().position(|byte| *byte == b'?').unwrap();
    umlaut[at] = 0xe4;
    let files: [(&str, &[u8]); 3] = [
        ("truth/Annotations/a.xml", latin.as_bytes()),
        ("truth/Annotations/b.xml", &umlaut),
        ("truth/Annotations/0.xml", &utf16),
    ];
    let patch = Patch::new("truth", &files);
    let before = json!({"class": "cat", "bbox": [2, 3, 10, 12]});
    let changes = [
        added("JPEGImages/a.png", "Käfer", [20.0, 2.0, 10.0, 4.0]),
        json!({"image": "JPEGImages/a.png", "change": "class", "before": before, "after": {"class": "Löwe", "bbox": [2, 3, 10, 12]}}),
        added("JPEGImages/b.png", "cat", [20.0, 2.0, 10.0, 4.0]),
        added("JPEGImages/0.png", "cat", [20.0, 2.0, 10.0, 4.0]),
        added("JPEGImages/c.png", "cat", [20.0, 2.0, 10.0, 4.0]),
    ];
    let messages = patch.apply(&changes, 3);
    assert_counts(&messages, [2, 0, 3]);
    for fact in ["Annotations/b.xml is not UTF-8", "Annotations/0.xml is in UTF-16", "no such image"] {
        assert!(messages.contains(fact), "{messages}");
    }
    let after = patch.accept("truth/Annotations/a.xml");
    assert!(after.is_ascii() && after.contains("K&#228;fer") && after.contains("L&#246;we"), "{after}");
    assert_counts(&patch.apply(&changes, 3), [0, 2, 3]);
}

#[test]
fn removed_masks_are_reported_only_if_removed() {
    let polygon = "\t\t<polygon>\n\t\t\t<x1>3</x1><y1>4</y1>\n\t\t</polygon>\n";
    let voc = document("a.png", &(object("cat", [3, 4, 12, 15], polygon) + &object("cat", [21, 4, 30, 15], "")));
    let patch = Patch::new("truth", &[("truth/Annotations/a.xml", voc.as_bytes())]);
    let moved = |x: f64| json!({"image": "JPEGImages/a.png", "change": "moved", "before": {"class": "cat", "bbox": [x, 3, 10, 12]}, "after": {"class": "cat", "bbox": [x, 5, 10, 12]}});
    let messages = patch.apply(&[moved(20.0)], 0);
    assert!(!messages.contains("mask"), "{messages}");
    assert!(patch.read("out/Annotations/a.xml").contains(polygon));
    let messages = patch.apply(&[moved(2.0)], 0);
    assert!(messages.contains("removed 1 mask"), "{messages}");
    assert_eq!(
        patch.read("out/Annotations/a.xml"),
        voc.replace(polygon, "").replacen("<ymin>4<", "<ymin>6<", 1).replacen("<ymax>15<", "<ymax>17<", 1)
    );
    for (polygon, is_mask) in [("0.05 0.1 0.3 0.1 0.3 0.5 0.05 0.5", false), ("0.05 0.1 0.3 0.1 0.3 0.5", true)] {
        let patch = Patch::new("truth", &[YAML, ("truth/labels/a.txt", format!("0 {polygon}\n").as_bytes())]);
        let mut change = moved(2.0);
        change["image"] = json!("images/a");
        change["size"] = json!([40, 30]);
        let messages = patch.apply(&[change], 0);
        assert_eq!(messages.contains("mask"), is_mask, "{messages}");
    }
}

#[test]
fn coco_ids_of_every_form_are_found_and_never_repeated() {
    let label = |id: Value, x: u32| json!({"id": id, "image_id": 1.0, "category_id": "1", "bbox": [x, 3, 8, 12]});
    for (ids, expected) in [
        ([json!(11), json!(12.0)], 13),
        ([json!("11"), json!(i64::MAX)], 1),
        ([json!(1), json!(i64::MAX)], 2),
        ([json!(5), json!(u64::MAX)], 6),
        ([json!(-5), json!(1e300)], 1),
    ] {
        let truth = json!([label(ids[0].clone(), 2), label(ids[1].clone(), 20)]);
        let patch = Patch::new("t.json", &[("t.json", &coco(&truth))]);
        let id = if ids[1] == json!(12.0) { json!(12) } else { ids[1].clone() };
        let changes = [
            json!({"image": "a.png", "id": id, "change": "class", "before": {"class": "cat", "bbox": [20, 3, 8, 12]}, "after": {"class": "dog", "bbox": [20, 3, 8, 12]}}),
            added("a.png", "cat", [1.0, 20.0, 5.0, 5.0]),
        ];
        assert_counts(&patch.apply(&changes, 0), [2, 0, 0]);
        let after: Value = serde_json::from_str(&patch.accept("t.json")).unwrap();
        assert_eq!(after["annotations"][1]["category_id"], 2);
        assert_eq!(after["annotations"][1]["id"], ids[1]);
        assert_eq!(after["annotations"][2]["id"], expected, "{ids:?}");
        assert_counts(&patch.apply(&changes, 0), [0, 2, 0]);
    }
}

#[test]
fn lines_that_are_no_changes_are_explained() {
    let csv = b"image,label,x1,y1,x2,y2\na.png,cat,2,3,12,15\n";
    let patch = Patch::new("t.csv", &[("t.csv", csv)]);
    let change = added("a.png", "cat", [20.0, 4.0, 10.0, 10.0]);
    patch.write("changes.jsonl", format!("{change}\n\n7\n{{\"image\": \"a.png\"}}\n{{\"image\": 1,\n[\"a.png\"]\n"));
    let messages = patch.apply_to("t.csv", "out", 3);
    assert_counts(&messages, [1, 0, 4]);
    for line in ["line 3: ", "line 4: ", "line 5: ", "line 6: "] {
        assert!(messages.contains(line), "{messages}");
    }
    assert!(!messages.contains("struct"), "{messages}");
    // Another file.
    patch.write("changes.jsonl", csv);
    let messages = patch.apply_to("t.csv", "out", 1);
    assert!(messages.contains("changes.jsonl") && messages.contains("line 1: "), "{messages}");
}

#[test]
fn review_without_changes_lists_none() {
    let patch = Patch::new("t.csv", &[("t.csv", b"image,label,x1,y1,x2,y2\na.png,cat,2,3,12,15\n")]);
    patch.run(&["import", "images", "--to-correct", "--predictions", "t.csv", "--project", "p.spotcheck"], 0);
    let arguments = ["review", "changes", "p.spotcheck", "--truth", "t.csv", "--out", "changes.jsonl"];
    assert!(stderr(&patch.run(&arguments, 0)).ends_with("0 changes\n"));
    assert_counts(&patch.apply_to("t.csv", "out", 0), [0, 0, 0]);
    assert_eq!(patch.read("out"), patch.read("t.csv"));
}

#[test]
fn numbers_in_place_of_class_names_stay_numbers() {
    let csv = "image,label,x1,y1,x2,y2\na.png,3,2,3,12,15\na.png,7,20,3,30,15\n";
    for (file, before) in [("t.csv", csv.to_owned()), ("i.csv", csv.replace("label", "class_id"))] {
        let patch = Patch::new(file, &[(file, before.as_bytes())]);
        let label = |class: &str| json!({"class": class, "bbox": [2, 3, 10, 12]});
        let changes = [
            json!({"image": "a.png", "change": "class", "before": label("class 3"), "after": label("7")}),
            added("a.png", "5", [1.0, 20.0, 8.0, 8.0]),
            added("a.png", "class 9", [11.0, 20.0, 8.0, 8.0]),
            added("a.png", "fox", [21.0, 20.0, 8.0, 8.0]),
        ];
        let messages = patch.apply(&changes, 3);
        assert_counts(&messages, [3, 0, 1]);
        assert!(messages.contains("“fox”"), "{messages}");
        let after = before.replace("a.png,3", "a.png,7") + "a.png,5,1,20,9,28\na.png,9,11,20,19,28\n";
        assert_eq!(patch.accept(file), after);
        assert_counts(&patch.apply(&changes, 3), [0, 3, 1]);
        // A reviewer names a class by its number.
        patch.write("verdicts.csv", "image,box,verdict,right_class\na.png,0,wrong,9\n");
        patch.run(&["import", "images", "--to-correct", "--predictions", file, "--project", "p.spotcheck"], 0);
        let messages = stderr(&patch.run(&["review", "import", "p.spotcheck", "verdicts.csv"], 0));
        assert!(!messages.contains("does not have"), "{messages}");
    }
}

#[test]
fn classes_named_since_the_review_are_the_same() {
    let line = "0 0.175 0.3 0.25 0.4\n";
    let patch = Patch::new("truth", &[("truth/labels/a.txt", format!("{line}{line}").as_bytes())]);
    patch.run(&["import", "images", "--to-correct", "--predictions", "truth", "--project", "p.spotcheck"], 0);
    let rows = "a.png,0,reject,,,,,\na.png,,added,class 1,20,3,36,15\n";
    patch.write("v.csv", format!("image,box,verdict,right_class,x1,y1,x2,y2\n{rows}"));
    patch.run(&["review", "import", "p.spotcheck", "v.csv"], 0);
    patch.run(&["review", "changes", "p.spotcheck", "--truth", "truth", "--out", "changes.jsonl"], 0);
    let added = "1 0.7000000 0.3000000 0.4000000 0.4000000\n";
    assert_counts(&patch.apply_to("truth", "out", 0), [2, 0, 0]);
    patch.write("truth/data.yaml", "names: [cat, dog]\n");
    assert_counts(&patch.apply_to("truth", "out", 0), [2, 0, 0]);
    assert_eq!(patch.read("out/labels/a.txt"), format!("{line}{added}"));
    // Without names, 1 and “class 1” are the same.
    std::fs::remove_file(patch.path("truth/data.yaml")).unwrap();
    patch.write("changes.jsonl", patch.read("changes.jsonl").replace("class 1", "1"));
    assert_counts(&patch.apply_to("truth", "out", 0), [2, 0, 0]);
    assert_eq!(patch.accept("truth/labels/a.txt"), format!("{line}{added}"));
    assert_counts(&patch.apply_to("truth", "out", 0), [0, 2, 0]);
}

#[test]
fn second_file_of_an_image_is_reported() {
    let voc = |class: &str| document("a.png", &object(class, [3, 4, 12, 15], ""));
    let files = [("truth/Annotations/a.xml", voc("cat")), ("truth/JPEGImages/a.xml", voc("dog"))];
    let patch = Patch::new("truth", &files.each_ref().map(|(name, text)| (*name, text.as_bytes())));
    let changes = [added("JPEGImages/a.png", "cat", [20.0, 4.0, 5.0, 5.0])];
    let messages = patch.apply(&changes, 0);
    assert!(messages.contains("JPEGImages/a.xml repeats"), "{messages}");
    patch.run(&["import", "images", "--to-correct", "--predictions", "truth", "--project", "p.spotcheck"], 3);
    let list = ["review", "changes", "p.spotcheck", "--truth", "truth", "--out", "c.jsonl"];
    let messages = stderr(&patch.run(&list, 0));
    assert!(messages.contains("JPEGImages/a.xml repeats"), "{messages}");
}

#[test]
fn output_next_to_the_opened_data_yaml_is_refused() {
    let patch = Patch::new(
        "truth/data.yaml",
        &[("truth/data.yaml", b"names: [cat]\n"), ("truth/labels/a.txt", b"0 0.175 0.3 0.25 0.4\n")],
    );
    let before = json!({"class": "cat", "bbox": [2, 3, 10, 12]});
    let deleted = json!({"image": "images/a", "change": "deleted", "before": before, "size": [40, 30]});
    patch.write("changes.jsonl", deleted.to_string());
    for out in ["truth/out", "truth/labels"] {
        let messages = patch.apply_to("truth/data.yaml", out, 1);
        assert!(messages.contains("ground truth"), "{messages}");
    }
    assert!(!patch.path("truth/out").exists());
    assert_counts(&patch.apply_to("truth/data.yaml", "out", 0), [1, 0, 0]);
}

#[cfg(unix)]
#[test]
fn file_beyond_the_size_limit_is_an_error() {
    let row = "a.png,cat,2,3,12,15\n";
    let csv = format!("image,label,x1,y1,x2,y2\n{}", row.repeat(1000));
    let patch = Patch::new("t.csv", &[("t.csv", csv.as_bytes())]);
    patch.write("changes.jsonl", added("a.png", "cat", [20.0, 4.0, 5.0, 5.0]).to_string());
    let apply = spotcheck(&["review", "apply", "t.csv", "--changes", "changes.jsonl", "--out", "out"]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -f 2; exec \"$@\"", "sh"]).arg(apply.get_program()).args(apply.get_args());
    limited.envs(apply.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(patch.folder.path());
    let output = limited.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(!stderr(&output).contains(".partial-"), "{}", stderr(&output));
    let left = std::fs::read_dir(patch.folder.path()).unwrap().count();
    assert_eq!(left, 3, "images, ground truth and changes");
}

#[test]
fn output_inside_the_ground_truth_is_refused() {
    let voc = document("a.png", &object("cat", [3, 4, 12, 15], ""));
    let patch = Patch::new("truth", &[("truth/Annotations/a.xml", voc.as_bytes())]);
    patch.write("changes.jsonl", added("JPEGImages/a.png", "cat", [20.0, 4.0, 5.0, 5.0]).to_string());
    for out in ["truth/corrected", "truth/Annotations", "images/../truth/x", "truth"] {
        let messages = patch.apply_to("truth", out, 1);
        assert!(messages.contains("ground truth"), "{messages}");
    }
    assert_eq!(std::fs::read_dir(patch.path("truth")).unwrap().count(), 1);
    patch.apply_to("truth", "truth-corrected", 0);
}

#[test]
fn blank_lines_of_csv_stay_where_they_are() {
    let csv = "image,label,x1,y1,x2,y2\n\na.png,cat,2,3,12,15\n  \nb.png\n,,,,,\nc.png,cat,2,3,12,15\n\n";
    let patch = Patch::new("t.csv", &[("t.csv", csv.as_bytes())]);
    let changes = [
        json!({"image": "a.png", "change": "class", "before": {"class": "cat", "bbox": [2, 3, 10, 12]}, "after": {"class": "dog", "bbox": [2, 3, 10, 12]}}),
        json!({"image": "c.png", "change": "deleted", "before": {"class": "cat", "bbox": [2, 3, 10, 12]}}),
        added("b.png", "cat", [1.0, 2.0, 3.0, 4.0]),
    ];
    assert_counts(&patch.apply(&changes, 0), [3, 0, 0]);
    let expected =
        "image,label,x1,y1,x2,y2\n\na.png,dog,2,3,12,15\n  \nb.png\n,,,,,\nc.png,,,,,\nb.png,cat,1,2,4,6\n\n";
    assert_eq!(patch.accept("t.csv"), expected);
    let line = json!({"uri": "a.png", "status": "ok", "width": 40, "height": 30, "detections": []});
    patch.write("p.jsonl", line.to_string());
    let arguments = ["evaluate", "images", "--predictions", "p.jsonl", "--truth", "t.csv", "--out", "-"];
    let messages = stderr(&patch.run(&arguments, 3));
    assert!(!messages.contains("line "), "{messages}");
}

#[test]
fn folder_of_apply_is_replaced_only_unchanged() {
    let voc = document("a.png", &object("cat", [3, 4, 12, 15], ""));
    let patch = Patch::new("truth", &[("truth/Annotations/a.xml", voc.as_bytes())]);
    patch.write("truth/readme.txt", "kept");
    let change = |x: f64| added("JPEGImages/a.png", "cat", [x, 4.0, 5.0, 5.0]);
    assert_counts(&patch.apply(&[change(20.0)], 0), [1, 0, 0]);
    assert_counts(&patch.apply(&[change(30.0)], 0), [1, 0, 0]);
    let written = patch.read("out/Annotations/a.xml");
    assert!(written.contains("<xmin>31</xmin>") && !written.contains("<xmin>21</xmin>"), "{written}");
    // No other command replaces it.
    patch.run(&["import", "images", "--to-correct", "--predictions", "truth", "--project", "p.spotcheck"], 0);
    patch.run(&["export", "p.spotcheck", "--run", "1", "--format", "voc", "--force", "--out", "out"], 1);
    // With another file, and copied over ground truth, it is a folder of the user.
    patch.write("out/Annotations/notes.txt", "kept");
    let copied = patch.path("truth/.spotcheck-changes.json");
    std::fs::copy(patch.path("out/.spotcheck-changes.json"), copied).unwrap();
    let other = Patch::new("truth", &[("truth/Annotations/a.xml", voc.as_bytes())]);
    let other = other.path("truth");
    for out in ["out", "truth"] {
        patch.apply_to(other.to_str().unwrap(), out, 1);
    }
    assert_eq!(patch.read("out/Annotations/notes.txt"), "kept");
    assert_eq!(patch.read("out/Annotations/a.xml"), written);
    assert_eq!(patch.read("truth/readme.txt"), "kept");
}
