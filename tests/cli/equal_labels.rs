//! Changes of labels that cannot be told apart, applied to ground truth that contains them already.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{json_lines, spotcheck, stderr};

type Bounds = [u32; 4];

const P: Bounds = [2, 2, 12, 12];
const Q: Bounds = [20, 5, 30, 15];
const R: Bounds = [5, 18, 15, 28];

struct Scenario {
    name: &'static str,
    labels: &'static [(&'static str, Bounds)],
    /// The rows of verdicts after the image.
    verdicts: &'static str,
    expected: &'static [(&'static str, Bounds)],
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "one of two equal labels is deleted",
        labels: &[("cat", P), ("cat", P), ("dog", Q)],
        verdicts: "0,reject,,,,,",
        expected: &[("cat", P), ("dog", Q)],
    },
    Scenario {
        name: "both equal labels are deleted",
        labels: &[("cat", P), ("cat", P), ("dog", Q)],
        verdicts: "0,reject,,,,,\n1,reject,,,,,",
        expected: &[("dog", Q)],
    },
    Scenario {
        name: "a class becomes that of a deleted label",
        labels: &[("cat", P), ("dog", P)],
        verdicts: "0,wrong,dog,,,,\n1,reject,,,,,",
        expected: &[("dog", P)],
    },
    Scenario {
        name: "a label with another class stays in place of the deleted one",
        labels: &[("cat", P), ("dog", P)],
        verdicts: "0,reject,,,,,",
        expected: &[("dog", P)],
    },
    Scenario {
        name: "a label moves to the place of a deleted one",
        labels: &[("cat", P), ("cat", Q)],
        verdicts: "0,moved,,20,5,30,15\n1,reject,,,,,",
        expected: &[("cat", Q)],
    },
    Scenario {
        name: "labels move one after the other",
        labels: &[("cat", P), ("cat", Q)],
        verdicts: "0,moved,,20,5,30,15\n1,moved,,5,18,15,28",
        expected: &[("cat", Q), ("cat", R)],
    },
    Scenario {
        name: "a label moves onto an equal one",
        labels: &[("cat", P), ("cat", Q)],
        verdicts: "0,moved,,20,5,30,15",
        expected: &[("cat", Q), ("cat", Q)],
    },
    Scenario {
        name: "an equal label is added",
        labels: &[("cat", P)],
        verdicts: ",added,cat,2,2,12,12",
        expected: &[("cat", P), ("cat", P)],
    },
];

const FORMATS: [&str; 3] = ["csv", "yolo", "voc"];

/// Writes labels of `a.png`, 40 × 30 pixels, and returns what is opened.
fn write(folder: &Path, format: &str, labels: &[(&str, Bounds)]) -> String {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let text = |line: &dyn Fn(&str, Bounds) -> String| -> String {
        labels.iter().map(|(class, bounds)| line(class, *bounds)).collect()
    };
    if format == "csv" {
        let rows = text(&|class, [x1, y1, x2, y2]| format!("a.png,{class},{x1},{y1},{x2},{y2}\n"));
        write("truth.csv", &format!("image,label,x1,y1,x2,y2\n{rows}"));
        return "truth.csv".to_owned();
    }
    if format == "yolo" {
        let part = |sum: u32, size: f64| format!("{:.6}", f64::from(sum) / size);
        write("truth/data.yaml", "names: [cat, dog]\n");
        let lines = text(&|class, [x1, y1, x2, y2]| {
            let [x, y, w, h] = [part(x1 + x2, 80.0), part(y1 + y2, 60.0), part(x2 - x1, 40.0), part(y2 - y1, 30.0)];
            format!("{} {x} {y} {w} {h}\n", u32::from(class == "dog"))
        });
        write("truth/labels/a.txt", &lines);
    } else {
        let objects = text(&|class, [x1, y1, x2, y2]| {
            let [x1, y1] = [x1 + 1, y1 + 1];
            format!(
                "<object><name>{class}</name><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax>\
                 <ymax>{y2}</ymax></bndbox></object>\n"
            )
        });
        write("truth/Annotations/a.xml", &format!("<annotation><filename>a.png</filename>\n{objects}</annotation>\n"));
    }
    "truth".to_owned()
}

struct Reviewed {
    folder: TempDir,
    truth: String,
    context: String,
}

impl Reviewed {
    /// Labels of which `changes.jsonl` lists the changes.
    fn new(format: &str, scenario: &Scenario) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("images")).unwrap();
        image::RgbImage::new(40, 30).save(folder.path().join("images/a.png")).unwrap();
        let truth = write(folder.path(), format, scenario.labels);
        let rows = format!("a.png,{}\n", scenario.verdicts.trim_end().replace('\n', "\na.png,"));
        let rows = format!("image,box,verdict,right_class,x1,y1,x2,y2\n{rows}");
        std::fs::write(folder.path().join("verdicts.csv"), rows).unwrap();
        let reviewed = Self { folder, truth, context: format!("{format}: {}", scenario.name) };
        reviewed.import(&reviewed.truth, "p.spotcheck");
        reviewed.run(&["review", "import", "p.spotcheck", "verdicts.csv"], 0);
        let truth = &reviewed.truth;
        reviewed.run(&["review", "changes", "p.spotcheck", "--truth", truth, "--out", "changes.jsonl"], 0);
        reviewed
    }

    #[track_caller]
    fn run(&self, arguments: &[&str], code: i32) -> String {
        let output = spotcheck(arguments).current_dir(self.folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}: {arguments:?}: {}", self.context, stderr(&output));
        stderr(&output)
    }

    fn import(&self, truth: &str, project: &str) {
        self.run(&["import", "images", "--to-correct", "--predictions", truth, "--project", project], 0);
    }

    /// Applies the changes in place.
    #[track_caller]
    fn apply(&self, more: &[&str], code: i32) -> String {
        let path = |name: &str| self.folder.path().join(name);
        let arguments = ["review", "apply", &self.truth, "--changes", "changes.jsonl", "--out", "out"];
        let messages = self.run(&[&arguments, more].concat(), code);
        if path("out").is_file() {
            std::fs::rename(path("out"), path(&self.truth)).unwrap();
            return messages;
        }
        for file in ["labels/a.txt", "Annotations/a.xml"] {
            if path("out").join(file).exists() {
                std::fs::copy(path("out").join(file), path(&self.truth).join(file)).unwrap();
            }
        }
        std::fs::remove_dir_all(path("out")).unwrap();
        messages
    }

    fn labels(&self) -> Vec<(String, Bounds)> {
        self.import(&self.truth, "now.spotcheck");
        self.run(&["export", "now.spotcheck", "--format", "jsonl", "--all-boxes", "--out", "now.jsonl"], 0);
        let mut labels = Vec::new();
        for line in json_lines(std::fs::read(self.folder.path().join("now.jsonl")).unwrap()) {
            for found in line["detections"].as_array().unwrap() {
                let side = |at: usize| found["box"][at].as_f64().unwrap().round() as u32;
                labels.push((found["label"].as_str().unwrap().to_owned(), [side(0), side(1), side(2), side(3)]));
            }
        }
        for file in ["now.spotcheck", "now.jsonl"] {
            std::fs::remove_file(self.folder.path().join(file)).unwrap();
        }
        labels.sort_unstable();
        labels
    }
}

fn sorted(labels: &[(&str, Bounds)]) -> Vec<(String, Bounds)> {
    let mut labels: Vec<_> = labels.iter().map(|(class, bounds)| ((*class).to_owned(), *bounds)).collect();
    labels.sort_unstable();
    labels
}

#[test]
fn contained_changes_of_equal_labels_are_unchanged() {
    for format in FORMATS {
        for scenario in SCENARIOS {
            let reviewed = Reviewed::new(format, scenario);
            let context = &reviewed.context;
            let changes = scenario.verdicts.lines().count();
            let plural = if changes == 1 { "change" } else { "changes" };
            let messages = reviewed.apply(&[], 0);
            assert!(messages.contains(&format!("applied {changes} {plural}, 0 unchanged")), "{context}: {messages}");
            assert_eq!(reviewed.labels(), sorted(scenario.expected), "{context}");
            let messages = reviewed.apply(&[], 0);
            assert!(messages.contains(&format!("applied 0 changes, {changes} unchanged")), "{context}: {messages}");
            assert_eq!(reviewed.labels(), sorted(scenario.expected), "{context}");
        }
    }
}

#[test]
fn rest_of_partly_applied_changes_is_applied() {
    for format in FORMATS {
        for scenario in SCENARIOS.iter().filter(|scenario| scenario.verdicts.contains('\n')) {
            for first in ["1", "2"] {
                let reviewed = Reviewed::new(format, scenario);
                let context = format!("{}, without {first}", reviewed.context);
                reviewed.apply(&["--reject", first], 0);
                let messages = reviewed.apply(&[], 0);
                assert!(messages.contains("applied 1 change, 1 unchanged"), "{context}: {messages}");
                assert_eq!(reviewed.labels(), sorted(scenario.expected), "{context}");
            }
        }
    }
}

#[test]
fn equal_changes_in_two_files_are_not_lost() {
    for format in FORMATS {
        let reviewed = Reviewed::new(format, &SCENARIOS[1]);
        let path = reviewed.folder.path().join("changes.jsonl");
        let all = std::fs::read_to_string(&path).unwrap();
        for (part, counts, code) in [
            (all.lines().next().unwrap(), "applied 1 change, 0 unchanged, 0 rejected, 0 in conflict", 0),
            (all.lines().nth(1).unwrap(), "applied 0 changes, 0 unchanged, 0 rejected, 1 in conflict", 3),
            (&*all, "applied 1 change, 1 unchanged, 0 rejected, 0 in conflict", 0),
            (all.lines().nth(1).unwrap(), "applied 0 changes, 1 unchanged, 0 rejected, 0 in conflict", 0),
        ] {
            std::fs::write(&path, part).unwrap();
            let messages = reviewed.apply(&[], code);
            assert!(messages.contains(counts), "{format}: {messages}");
        }
        assert_eq!(reviewed.labels(), sorted(SCENARIOS[1].expected), "{format}");
    }
}

#[test]
fn equal_labels_that_do_not_explain_the_file_are_conflicts() {
    for format in FORMATS {
        // Another label of the same object took the place of the deleted one.
        let reviewed = Reviewed::new(format, &SCENARIOS[3]);
        let labels = [("dog", P), ("dog", P)];
        write(reviewed.folder.path(), format, &labels);
        let messages = reviewed.apply(&[], 3);
        assert!(messages.contains("applied 0 changes, 0 unchanged, 0 rejected, 1 in conflict"), "{messages}");
        assert_eq!(reviewed.labels(), sorted(&labels), "{format}");
        // One more equal label than at the review.
        let reviewed = Reviewed::new(format, &SCENARIOS[0]);
        let labels = [("cat", P), ("cat", P), ("cat", P)];
        write(reviewed.folder.path(), format, &labels);
        let messages = reviewed.apply(&[], 3);
        assert!(messages.contains("applied 0 changes, 0 unchanged, 0 rejected, 1 in conflict"), "{messages}");
        assert_eq!(reviewed.labels(), sorted(&labels), "{format}");
        let near = &json_lines(std::fs::read(reviewed.folder.path().join("changes.jsonl")).unwrap())[0]["near"];
        assert_eq!(near.as_array().map(Vec::len), Some(1), "{format}");
        assert_eq!(near[0]["class"], Value::from("cat"), "{format}");
    }
}
