//! What `review apply` makes of unusual files and of changes that do not fit, and what it refuses.

use std::path::PathBuf;
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
