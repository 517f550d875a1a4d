//! A labeler's hour: a model predicts, a person judges a sample, repairs and finishes, and the corrected labels are
//! ground truth.

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::support::{repository, spotcheck, stderr};

/// Real photos with their predictions in a project.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(desk.path("images")).unwrap();
        for sample in ["coffee.png", "chelsea.png", "grace_hopper.jpg", "astronaut.png"] {
            std::fs::copy(repository().join("assets/samples").join(sample), desk.path("images").join(sample)).unwrap();
        }
        image::RgbImage::new(60, 40).save(desk.path("images/nothing.png")).unwrap();
        desk.run(&["predict", "images", "--model", "ssd-mobilenet-coco", "--project", "p.spotcheck"]);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Output {
        let output = spotcheck(arguments).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        output
    }

    /// The image and box of each row of a sample.
    fn sampled(&self, name: &str) -> Vec<[String; 2]> {
        let mut rows = csv::Reader::from_path(self.path(name)).unwrap();
        rows.records().map(|row| row.unwrap()).map(|row| [row[0].to_owned(), row[1].to_owned()]).collect()
    }

    /// Imports verdicts: rows of image, box, verdict, right class and corners.
    fn import(&self, rows: &[String]) {
        let text = format!("image,box,verdict,right_class,x1,y1,x2,y2\n{}\n", rows.join("\n"));
        std::fs::write(self.path("verdicts.csv"), text).unwrap();
        self.run(&["review", "import", "p.spotcheck", "verdicts.csv", "--reviewer", "Ann", "--replace"]);
    }

    fn report(&self) -> Value {
        let output = self.run(&["review", "report", "p.spotcheck", "--out", "-"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Exports corrected labels; returns what was reported.
    fn export(&self, format: &str, out: &str, more: &[&str]) -> String {
        let arguments =
            ["export", "p.spotcheck", "--verdicts", "corrected", "--format", format, "--out", out, "--force"];
        stderr(&self.run(&[&arguments[..], more].concat()))
    }
}

#[test]
fn corrected_labels_are_ground_truth_in_every_format() {
    let desk = Desk::new();
    desk.run(&["review", "sample", "p.spotcheck", "--count", "3", "--out", "sample.csv"]);
    let sampled = desk.sampled("sample.csv");
    assert_eq!(sampled.len(), 3);
    desk.import(&sampled.iter().map(|[image, index]| format!("{image},{index},accept,,,,,")).collect::<Vec<_>>());
    let report = desk.report();
    assert_eq!((&report["basis"], &report["judged"]), (&"sample".into(), &3.into()));
    let unfinished = desk.export("coco", "unfinished.json", &[]);
    assert!(unfinished.contains("skipped because"), "{unfinished}");

    // The rest: the first box is moved, the second has another class, the third is rejected, the others are right.
    desk.run(&["review", "sample", "p.spotcheck", "--count", "1000", "--replace", "--out", "all.csv"]);
    let mut all = desk.sampled("all.csv");
    all.sort();
    assert!(all.len() > 4, "{all:?}");
    let mut rows = vec![
        format!("{},{},moved,,10.5,12,90,80", all[0][0], all[0][1]),
        format!("{},{},wrong,kite,,,,", all[1][0], all[1][1]),
        format!("{},{},reject,,,,,", all[2][0], all[2][1]),
        "chelsea.png,,added,whisker,200,100,260.5,130".to_owned(),
        "nothing.png,,complete,,,,,".to_owned(),
    ];
    rows.extend(all[3..].iter().map(|[image, index]| format!("{image},{index},accept,,,,,")));
    desk.import(&rows);
    let report = desk.report();
    assert_eq!(report["basis"], "complete");
    assert_eq!(report["low"], report["high"]);
    assert_eq!(report["more_for_one_percent"], 0);

    let notes = desk.export("coco", "labels.json", &[]);
    assert!(!notes.contains("skipped"), "{notes}");
    desk.export("csv", "labels.csv", &[]);
    desk.export("jsonl", "labels.jsonl", &[]);
    desk.export("voc", "voc", &[]);
    desk.export("yolo", "yolo", &["--with-images"]);
    let coco: Value = serde_json::from_slice(&std::fs::read(desk.path("labels.json")).unwrap()).unwrap();
    assert_eq!(coco["images"].as_array().unwrap().len(), 5);
    let labels = coco["annotations"].as_array().unwrap();
    assert_eq!(labels.len(), all.len(), "one was rejected and one added");
    let persons = labels.iter().filter(|label| label["author"] == "person").count();
    assert_eq!(persons, 3);
    for truth in ["labels.json", "labels.csv", "labels.jsonl", "voc", "yolo"] {
        let arguments = ["evaluate", "images", "--predictions", "labels.json", "--truth", truth];
        let output = desk.run(&[&arguments[..], &["--draws", "0", "--out", "-"]].concat());
        let metrics: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!([&metrics["ap"], &metrics["recall"]], [1.0, 1.0], "{truth}: {metrics}");
        assert_eq!(metrics["true_positives"], labels.len(), "{truth}");
        assert!(!stderr(&output).contains("not read"), "{}", stderr(&output));
    }
    // Labels that are opened to correct them do not hide the run of the model.
    desk.run(&["import", "images", "--predictions", "labels.json", "--to-correct", "--project", "p.spotcheck"]);
    let output = desk.run(&["review", "report", "p.spotcheck"]);
    assert!(stderr(&output).contains("the newest run of a model, “SSD"), "{}", stderr(&output));
    assert_eq!(desk.report(), report);
    // The project itself says the same.
    let output = desk.run(&[
        "evaluate",
        "images",
        "--predictions",
        "labels.json",
        "--truth",
        "p.spotcheck",
        "--draws",
        "0",
        "--out",
        "-",
    ]);
    let metrics: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(metrics["ap"], 1.0);
}

#[test]
fn unsure_boxes_leave_their_image_out_of_all_labels() {
    let desk = Desk::new();
    desk.run(&["review", "sample", "p.spotcheck", "--count", "1000", "--out", "all.csv"]);
    let mut all = desk.sampled("all.csv");
    all.sort();
    let unsure = all[0][0].clone();
    let verdict = |(at, [image, index]): (usize, &[String; 2])| {
        format!("{image},{index},{},,,,,", if at == 0 { "unsure" } else { "accept" })
    };
    let rows = all.iter().enumerate().map(verdict).chain([format!("{unsure},,accept,,,,,")]);
    desk.import(&rows.collect::<Vec<_>>());
    desk.export("coco", "labels.json", &[]);
    let coco: Value = serde_json::from_slice(&std::fs::read(desk.path("labels.json")).unwrap()).unwrap();
    let names = coco["images"].as_array().unwrap().iter().map(|image| &image["file_name"]);
    let names: Vec<&Value> = names.collect();
    assert!(!names.is_empty() && !names.contains(&&unsure.as_str().into()), "{names:?}");
    let measured = ["labels.json", "p.spotcheck"].map(|truth| {
        let arguments = ["evaluate", "--project", "p.spotcheck", "--truth", truth, "--draws", "0", "--out", "-"];
        let output = spotcheck(&arguments).current_dir(desk.folder.path()).output().unwrap();
        let metrics: Value = serde_json::from_slice(&output.stdout).unwrap();
        ["images", "ap", "precision", "recall", "true_positives"].map(|name| metrics[name].clone())
    });
    assert_eq!(measured[0], measured[1]);
    assert_eq!(measured[0][0], names.len());
}

/// Corrected labels of images with difficult names, with classes that differ in spaces, read again as ground truth.
#[test]
fn difficult_names_survive_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let run = |arguments: &[&str], code: i32| {
        let output = spotcheck(arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        output
    };
    let names = [
        " leading.png",
        "trailing .png",
        "say \"hi\", <b>.png",
        "new\nline.png",
        "what?*|.png",
        "한국어 é.png",
        "-1+1.png",
        "sub./'x'.jpg.png",
        "same.png",
        "same.jpg",
    ];
    std::fs::create_dir_all(path("images/sub.")).unwrap();
    for name in names {
        image::RgbImage::new(60, 40).save(path("images").join(name)).unwrap();
    }
    let listed =
        |(id, name): (usize, &&str)| serde_json::json!({"id": id, "file_name": name, "width": 60, "height": 40});
    let images: Vec<Value> = names.iter().enumerate().map(listed).collect();
    let found = |id: usize| {
        let left = 2.0 * id as f32;
        let classes = [0, 1].map(|class| {
            serde_json::json!({"image_id": id, "category_id": class, "bbox": [left, 3 + class * 20, 20.5, 10], "score": 0.9})
        });
        classes.to_vec()
    };
    let boxes: Vec<Value> = (0..names.len()).flat_map(found).collect();
    let categories = serde_json::json!([{"id": 0, "name": "cat"}, {"id": 1, "name": " cat"}]);
    let dataset = serde_json::json!({"images": images, "annotations": boxes, "categories": categories});
    std::fs::write(path("found.json"), dataset.to_string()).unwrap();
    run(&["import", "images", "--predictions", "found.json", "--project", "p.spotcheck"], 0);
    run(&["import", "images", "--predictions", "found.json", "--project", "q.spotcheck"], 0);

    // Moving a box keeps its class, and both classes are exchanged.
    let mut table = csv::Writer::from_path(path("v.csv")).unwrap();
    table.write_record(["image", "box", "verdict", "right_class", "x1", "y1", "x2", "y2"]).unwrap();
    for name in names {
        let name = if name.starts_with([' ', '-']) { format!("'{name}") } else { name.to_owned() };
        table.write_record([&name, "0", "wrong", "' cat", "", "", "", ""]).unwrap();
        table.write_record([&name, "1", "moved", "", "30", "20", "50.5", "35"]).unwrap();
        table.write_record([&name, "", "added", "'dog ", "1", "1", "5", "5.5"]).unwrap();
    }
    table.flush().unwrap();
    run(&["review", "import", "p.spotcheck", "v.csv"], 0);
    run(&["review", "export", "p.spotcheck", "--out", "w.csv"], 0);
    run(&["review", "import", "q.spotcheck", "w.csv"], 0);
    run(&["review", "export", "q.spotcheck", "--out", "x.csv"], 0);
    let [w, x] = ["w.csv", "x.csv"].map(|name| std::fs::read_to_string(path(name)).unwrap());
    assert_eq!(w, x);
    assert_eq!(w.matches("' cat").count(), 2 * names.len(), "{w}");
    assert_eq!(w.matches("'dog ").count(), names.len(), "{w}");

    let export = |format: &str, out: &str| {
        let arguments = ["export", "q.spotcheck", "--verdicts", "corrected", "--format", format, "--out", out];
        run(&arguments, 0);
    };
    export("coco", "labels.json");
    for (format, out) in [("csv", "labels.csv"), ("jsonl", "labels.jsonl"), ("voc", "voc"), ("yolo", "yolo")] {
        export(format, out);
        let arguments =
            ["evaluate", "images", "--predictions", "labels.json", "--truth", out, "--draws", "0", "--out", "-"];
        let metrics: Value = serde_json::from_slice(&run(&arguments, 0).stdout).unwrap();
        assert_eq!(metrics["images"], names.len(), "{out}");
        assert_eq!(metrics["true_positives"], 3 * names.len(), "{out}");
        assert_eq!(metrics["recall"], 1.0, "{out}");
    }
}
