//! What a review changed in ground truth of each format, and its way back into the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{json_lines, spotcheck, stderr};

/// Of `a.png`, `sub/b.png` and `c.png`, which has no objects; 40 × 30 pixels each.
const VERDICTS: &str = "image,box,verdict,right_class,x1,y1,x2,y2,reviewer\n\
    a.png,0,wrong,dog,,,,,Ada\na.png,1,reject,,,,,,Ada\na.png,2,accept,,,,,,Ada\n\
    sub/b.png,0,moved,,2,3,11,14,Bob\nsub/b.png,1,accept,,,,,,\nsub/b.png,,added,dog,30,20,36,25,\n\
    c.png,,added,cat,4,5,14,15,Ada\n";

/// Ground truth in a folder, and what the changes make of it.
struct Case {
    name: &'static str,
    /// What is opened.
    truth: &'static str,
    images: &'static str,
    before: Vec<(&'static str, String)>,
    /// Files that change.
    after: Vec<(&'static str, String)>,
}

fn yolo() -> Case {
    let a = "0 0.175 0.3 0.25 0.4\r\n1 0.725 0.3 0.45 0.4\r\n0 0.225 0.683333 0.2 0.3\r\n";
    let b = "1 0.15 0.266667 0.25 0.4\n0  0.625 0.266667 0.25 0.4";
    Case {
        name: "yolo",
        truth: "truth",
        images: "truth/images",
        before: vec![
            ("truth/data.yaml", "train: images\nval: images\nnames: [cat, dog]\n".to_owned()),
            ("truth/labels/a.txt", a.to_owned()),
            ("truth/labels/sub/b.txt", b.to_owned()),
        ],
        after: vec![
            ("labels/a.txt", "1 0.175 0.3 0.25 0.4\r\n0 0.225 0.683333 0.2 0.3\r\n".to_owned()),
            (
                "labels/sub/b.txt",
                "1 0.1625000 0.2833333 0.2250000 0.3666667\n0  0.625 0.266667 0.25 0.4\n1 0.8250000 0.7500000 \
                 0.1500000 0.1666667"
                    .to_owned(),
            ),
            ("labels/c.txt", "0 0.2250000 0.3333333 0.2500000 0.3333333\n".to_owned()),
        ],
    }
}

fn object(name: &str, [x1, y1, x2, y2]: [u32; 4]) -> String {
    let side = |name: &str, value: u32| format!("      <{name}>{value}</{name}>\n");
    let bounds = side("xmin", x1 + 1) + &side("ymin", y1 + 1) + &side("xmax", x2) + &side("ymax", y2);
    format!(
        "  <object>\n    <name>{name}</name><!-- kept -->\n    <difficult>0</difficult>\n    <bndbox>\n{bounds}    \
         </bndbox>\n  </object>\n"
    )
}

fn new_object(name: &str, [x1, y1, x2, y2]: [u32; 4]) -> String {
    let details = format!(
        "    <name>{name}</name>\n    <pose>Unspecified</pose>\n    <truncated>0</truncated>\n    \
         <difficult>0</difficult>\n"
    );
    let [xmin, ymin] = [x1 + 1, y1 + 1];
    format!(
        "  <object>\n{details}    <bndbox>\n      <xmin>{xmin}</xmin>\n      <ymin>{ymin}</ymin>\n      \
         <xmax>{x2}</xmax>\n      <ymax>{y2}</ymax>\n    </bndbox>\n  </object>\n"
    )
}

fn voc() -> Case {
    let document = |image: &str, objects: &[String]| {
        format!(
            "<annotation>\n  <filename>{image}</filename>\n  <size><width>40</width><height>30</height></size>\n{}\
             </annotation>\n",
            objects.concat()
        )
    };
    let [cat, moved] = [[2, 3, 12, 15], [1, 2, 11, 14]];
    let a = [object("cat", cat), object("dog", [20, 3, 38, 15]), object("cat", [5, 16, 13, 25])];
    let b = [object("dog", moved), object("cat", [20, 2, 30, 14])];
    let a_after = [object("dog", cat), a[2].clone()];
    let b_after = [object("dog", [2, 3, 11, 14]), b[1].clone(), new_object("dog", [30, 20, 36, 25])];
    let c_after = document("c.png", &[new_object("cat", [4, 5, 14, 15])]).replace("  <object>", "\t<object>");
    Case {
        name: "voc",
        truth: "truth",
        images: "images",
        before: vec![
            ("truth/Annotations/a.xml", document("a.png", &a)),
            ("truth/Annotations/sub/b.xml", document("b.png", &b)),
            ("truth/Annotations/c.xml", document("c.png", &[])),
        ],
        after: vec![
            ("Annotations/a.xml", document("a.png", &a_after)),
            ("Annotations/sub/b.xml", document("b.png", &b_after)),
            ("Annotations/c.xml", indented_by_tabs(&c_after)),
        ],
    }
}

/// A new object in a document without another one to take the indentation from.
fn indented_by_tabs(document: &str) -> String {
    let mut is_object = false;
    let line = |line: &str| {
        is_object |= line.contains("<object>");
        let text = line.trim_start();
        let tabs = match text {
            _ if !is_object => return format!("{line}\n"),
            "<object>" | "</object>" => 1,
            _ if ["<xm", "<ym"].iter().any(|side| text.starts_with(side)) => 3,
            _ => 2,
        };
        let written = format!("{}{text}\n", "\t".repeat(tabs));
        is_object &= text != "</object>";
        written
    };
    document.lines().map(line).collect()
}

fn csv() -> Case {
    let rows = |rows: &[&str]| rows.join("\r\n") + "\r\n";
    let header = "image,label,xmin,ymin,xmax,ymax,note";
    let [kept, other] = ["a.png,cat,5,16,13,25,\"kept, here\"", "sub/b.png,cat,20,2,30,14,"];
    let before = [
        header,
        "a.png,cat,2,3,12,15,\"a \"\"b\"\"\"",
        "a.png,dog,20,3,38,15,",
        kept,
        "sub/b.png,dog,1,2,11,14,x",
        other,
        "c.png,,,,,,",
    ];
    let after = [
        header,
        "a.png,dog,2,3,12,15,\"a \"\"b\"\"\"",
        kept,
        "sub/b.png,dog,2,3,11,14,x",
        other,
        "c.png,,,,,,",
        "c.png,cat,4,5,14,15,",
        "sub/b.png,dog,30,20,36,25,",
    ];
    Case {
        name: "csv",
        truth: "truth.csv",
        images: "images",
        before: vec![("truth.csv", rows(&before))],
        after: vec![("", rows(&after))],
    }
}

fn csv_with_fractions() -> Case {
    let before = "filename;class_id;class;x_center;y_center;w;h\na.png;0;cat;0.175;0.3;0.25;0.4\n\
        a.png;1;dog;0.725;0.3;0.45;0.4\na.png;0;cat;0.225;0.683333;0.2;0.3\nsub/b.png;1;dog;0.15;0.266667;0.25;0.4\n\
        sub/b.png;0;cat;0.625;0.266667;0.25;0.4\nc.png;;;;;;\n";
    let after = "filename;class_id;class;x_center;y_center;w;h\na.png;1;dog;0.175;0.3;0.25;0.4\n\
        a.png;0;cat;0.225;0.683333;0.2;0.3\nsub/b.png;1;dog;0.1625000;0.2833333;0.2250000;0.3666667\n\
        sub/b.png;0;cat;0.625;0.266667;0.25;0.4\nc.png;;;;;;\n\
        c.png;0;cat;0.2250000;0.3333333;0.2500000;0.3333333\n\
        sub/b.png;1;dog;0.8250000;0.7500000;0.1500000;0.1666667\n";
    Case {
        name: "fractions",
        truth: "truth.csv",
        images: "images",
        before: vec![("truth.csv", before.to_owned())],
        after: vec![("", after.to_owned())],
    }
}

fn coco() -> Case {
    let label = |id: u32, image: u32, category: u32, bbox: [u32; 4]| json!({"id": id, "image_id": image, "category_id": category, "bbox": bbox, "iscrowd": 0});
    let image = |id: u32, name: &str| json!({"id": id, "file_name": name, "width": 40, "height": 30});
    let truth = json!({
        "images": [image(1, "a.png"), image(2, "sub/b.png"), image(3, "c.png")],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            label(1, 1, 1, [2, 3, 10, 12]), label(2, 1, 2, [20, 3, 18, 12]), label(3, 1, 1, [5, 16, 8, 9]),
            label(4, 2, 2, [1, 2, 10, 12]), label(5, 2, 1, [20, 2, 10, 12]),
        ],
    });
    Case {
        name: "coco",
        truth: "truth.json",
        images: "images",
        before: vec![("truth.json", truth.to_string())],
        after: Vec::new(),
    }
}

/// A folder with a case.
struct Reviewed {
    folder: tempfile::TempDir,
    case: Case,
}

impl Reviewed {
    fn new(case: Case) -> Self {
        let reviewed = Self { folder: tempfile::tempdir().unwrap(), case };
        for name in ["a.png", "sub/b.png", "c.png"] {
            let path = reviewed.path(reviewed.case.images).join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            image::RgbImage::new(40, 30).save(path).unwrap();
        }
        for (name, text) in &reviewed.case.before {
            let path = reviewed.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(reviewed.path("verdicts.csv"), VERDICTS).unwrap();
        let Case { truth, images, .. } = reviewed.case;
        reviewed.run(&["import", images, "--to-correct", "--predictions", truth, "--project", "p.spotcheck"], 0);
        reviewed.run(&["review", "import", "p.spotcheck", "verdicts.csv"], 0);
        reviewed.run(&["review", "changes", "p.spotcheck", "--truth", truth, "--out", "changes.jsonl"], 0);
        reviewed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn run(&self, arguments: &[&str], code: i32) -> Output {
        let output = spotcheck(arguments).current_dir(self.folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}: {arguments:?}: {}", self.case.name, stderr(&output));
        output
    }

    #[track_caller]
    fn apply(&self, truth: &str, out: &str, more: &[&str], code: i32) -> String {
        let arguments = ["review", "apply", truth, "--changes", "changes.jsonl", "--out", out];
        stderr(&self.run(&[&arguments, more].concat(), code))
    }

    /// The ground truth after `out` was copied over it.
    fn corrected(&self, out: &str) -> &'static str {
        let target = if self.path(self.case.truth).is_dir() { self.case.truth } else { "corrected" };
        copy(&self.path(out), &self.path(target));
        target
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        std::fs::copy(from, to).unwrap();
        return;
    }
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::create_dir_all(to).unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

fn files_below(folder: &Path) -> BTreeMap<String, String> {
    if folder.is_file() {
        return [(String::new(), std::fs::read_to_string(folder).unwrap())].into();
    }
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // The list of the files.
        if name == ".spotcheck-changes.json" {
            continue;
        }
        let join = |(inner, text): (String, String)| {
            (if inner.is_empty() { name.clone() } else { format!("{name}/{inner}") }, text)
        };
        found.extend(files_below(&path).into_iter().map(join));
    }
    found
}

fn cases() -> [Case; 5] {
    [coco(), yolo(), voc(), csv(), csv_with_fractions()]
}

#[test]
fn changes_of_every_format_are_applied_without_other_changes() {
    for case in cases() {
        let reviewed = Reviewed::new(case);
        let name = reviewed.case.name;
        let changes = json_lines(std::fs::read(reviewed.path("changes.jsonl")).unwrap());
        let kinds: Vec<&Value> = changes.iter().map(|change| &change["change"]).collect();
        let mut sorted: Vec<&str> = kinds.iter().map(|kind| kind.as_str().unwrap()).collect();
        sorted.sort_unstable();
        assert_eq!(sorted, ["added", "added", "class", "deleted", "moved"], "{name}");
        let messages = reviewed.apply(reviewed.case.truth, "out", &[], 0);
        assert!(messages.contains("applied 5 changes, 0 unchanged, 0 rejected, 0 in conflict"), "{name}: {messages}");
        let after: BTreeMap<String, String> =
            reviewed.case.after.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
        if !after.is_empty() {
            assert_eq!(files_below(&reviewed.path("out")), after, "{name}");
        }
        // What was opened is unchanged.
        for (file, text) in &reviewed.case.before {
            assert_eq!(std::fs::read_to_string(reviewed.path(file)).unwrap(), *text, "{name}");
        }
        // The corrected labels are the same as those of the project.
        let corrected = reviewed.corrected("out");
        let export = ["export", "p.spotcheck", "--verdicts", "corrected", "--format", "coco", "--out", "labels.json"];
        reviewed.run(&export, 0);
        let images = reviewed.case.images;
        let evaluate =
            ["evaluate", images, "--predictions", "labels.json", "--truth", corrected, "--draws", "0", "--out", "-"];
        let metrics: Value = serde_json::from_slice(&reviewed.run(&evaluate, 0).stdout).unwrap();
        assert_eq!([&metrics["ap"], &metrics["recall"]], [1.0, 1.0], "{name}: {metrics}");
        let counts = ["true_positives", "false_positives", "missed"].map(|key| metrics[key].as_u64());
        assert_eq!(counts, [6, 0, 0].map(Some), "{name}");
        let messages = reviewed.apply(corrected, "again", &[], 0);
        assert!(messages.contains("applied 0 changes, 5 unchanged"), "{name}: {messages}");
    }
}

#[test]
fn rejected_changes_are_left_out() {
    for case in cases() {
        let reviewed = Reviewed::new(case);
        let name = reviewed.case.name;
        let messages = reviewed.apply(reviewed.case.truth, "out", &["--reject", "1,2,3,5"], 0);
        assert!(messages.contains("applied 1 change, 0 unchanged, 4 rejected, 0 in conflict"), "{name}: {messages}");
        let messages = reviewed.apply(reviewed.case.truth, "none", &["--reject", "9"], 1);
        assert!(messages.contains('9'), "{messages}");
    }
}

#[test]
fn labels_that_changed_since_the_review_are_conflicts() {
    for (case, from, to) in [
        (yolo(), "0 0.175 0.3 0.25 0.4", "0 0.19 0.3 0.25 0.4"),
        (voc(), "<name>cat</name>", "<name>bird</name>"),
        (csv(), "a.png,cat,2,3,12,15", "a.png,cat,2,3,12,18"),
        (csv_with_fractions(), "a.png;0;cat;0.175", "a.png;0;cat;0.19"),
    ] {
        let reviewed = Reviewed::new(case);
        let name = reviewed.case.name;
        let file = ["truth/labels/a.txt", "truth/Annotations/a.xml", "truth.csv"];
        let file = file.into_iter().map(|file| reviewed.path(file)).find(|file| file.exists()).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let messages = reviewed.apply(reviewed.case.truth, "out", &[], 3);
        assert!(messages.contains("line 1: "), "{name}: {messages}");
        assert!(messages.contains("applied 4 changes, 0 unchanged, 0 rejected, 1 in conflict"), "{name}: {messages}");
        let after = files_below(&reviewed.path("out"));
        assert!(after.values().any(|text| text.contains(to)), "{name}: {after:?}");
    }
}

#[test]
fn changes_that_a_format_cannot_store_are_refused() {
    let reviewed = Reviewed::new(yolo());
    let change = |line: Value| {
        std::fs::write(reviewed.path("changes.jsonl"), line.to_string()).unwrap();
        reviewed.apply("truth", "out", &["--force"], 3)
    };
    let fox = json!({"class": "fox", "bbox": [1, 1, 5, 5]});
    let messages = change(json!({"image": "images/c.png", "change": "added", "after": fox, "size": [40, 30]}));
    assert!(messages.contains("“fox”") && messages.contains("data.yaml"), "{messages}");
    let cat = json!({"class": "cat", "bbox": [1, 1, 5, 5]});
    let messages = change(json!({"image": "images/c.png", "change": "added", "after": cat}));
    assert!(messages.contains("“size”"), "{messages}");
    let messages = change(json!({"image": "images/d.png", "change": "added", "after": cat, "size": [40, 30]}));
    assert!(messages.contains("no such image"), "{messages}");
    let line = json!({"uri": "a.png", "status": "ok", "width": 40, "height": 30, "detections": []});
    std::fs::write(reviewed.path("truth.jsonl"), line.to_string()).unwrap();
    let messages = reviewed.apply("truth.jsonl", "other", &[], 1);
    assert!(messages.contains("JSON Lines") && messages.contains("corrected labels"), "{messages}");
}
