//! `spotcheck sample` as a process: drawing from a folder, opening the list, and a statement about the whole folder.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{json_lines, repository, spotcheck, stderr};

/// A folder with 6 images in `a` and 12 in `b`, next to which the command runs.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let image = repository().join("assets/samples/coffee.png");
        for (part, count) in [("a", 6), ("b", 12)] {
            std::fs::create_dir_all(folder.path().join("photos").join(part)).unwrap();
            for number in 0..count {
                std::fs::copy(&image, folder.path().join(format!("photos/{part}/{number}.png"))).unwrap();
            }
        }
        std::fs::write(folder.path().join("photos/.hidden.png"), b"x").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = spotcheck(arguments);
        command.current_dir(self.folder.path());
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output
    }

    #[track_caller]
    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }
}

#[test]
fn drawn_images_are_predicted_and_speak_for_the_folder() {
    let bench = Bench::new();
    let output = bench.run(&["sample", "photos", "--count", "6", "--by", "prefix", "--out", "drawn.json"]);
    assert!(stderr(&output).contains("drew 6 of 18 images, from 2 strata"), "{}", stderr(&output));
    let list = bench.json("drawn.json");
    let strata = list["strata"].as_array().unwrap();
    let number = |stratum: &Value, key: &str| stratum[key].as_u64().unwrap();
    let strata: Vec<_> =
        strata.iter().map(|of| (&of["name"], number(of, "population"), number(of, "sampled"))).collect();
    assert_eq!(strata, [(&"a".into(), 6, 2), (&"b".into(), 12, 4)]);
    let images = list["images"].as_array().unwrap();
    assert!(images.iter().all(|image| (image["probability"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9));
    let names: BTreeSet<&str> = images.iter().map(|image| image["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 6);
    bench.run(&["sample", "photos", "--count", "6", "--by", "prefix", "--out", "again.json"]);
    assert_eq!(bench.json("again.json"), list);

    let model = ["--model", "ssd-mobilenet-coco", "--project", "p.spotcheck", "--out", "-"];
    let output = bench.run(&[&["predict", "drawn.json"], &model[..]].concat());
    let predicted: BTreeSet<String> =
        json_lines(&output.stdout).iter().map(|line| line["uri"].as_str().unwrap().to_owned()).collect();
    let uris: BTreeSet<String> = images.iter().map(|image| image["uri"].as_str().unwrap().to_owned()).collect();
    assert_eq!(predicted, uris);
    // More predictions in the same project do not belong to the sample.
    bench.run(&[&["predict", "photos", "--limit", "3", "--resume"], &model[..]].concat());

    let mut rows = "image,box,verdict\n".to_owned();
    let judged: Vec<&&str> = names.iter().filter(|name| !name.starts_with("a/")).collect();
    for (place, name) in judged.iter().enumerate() {
        writeln!(rows, "{name},,{}", if place == 0 { "reject" } else { "accept" }).unwrap();
    }
    std::fs::write(bench.path("verdicts.csv"), rows).unwrap();
    bench.run(&["review", "import", "p.spotcheck", "verdicts.csv"]);
    let report = ["review", "report", "p.spotcheck", "--images", "drawn.json", "--out", "report.json", "--force"];
    bench.run(&report);
    let found = bench.json("report.json");
    assert_eq!(found["basis"], "images");
    assert_eq!(found["images"]["listed"], 18);
    assert_eq!((&found["images"]["judged"], &found["images"]["drawn"]), (&4.into(), &6.into()));
    // The images are alike, and three of four are accepted.
    assert_eq!(found["precision"], 0.75);
    assert!(found["low"].as_f64().unwrap() < 0.6 && found["high"].as_f64().unwrap() > 0.8, "{found}");
    let note = found["notes"][0].as_str().unwrap();
    assert!(note.starts_with("4 of 6 images"), "{note}");

    let text = std::fs::read_to_string(bench.path("drawn.json")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(1);
    std::fs::write(bench.path("drawn.json"), lines.join("\n")).unwrap();
    let output = bench.run(&report);
    let notes = bench.json("report.json")["notes"].to_string();
    let fact = "contains 5 images, but 6 were drawn";
    assert!(notes.contains(fact) && stderr(&output).contains(fact), "{notes}");
}

#[test]
fn unusable_sources_and_lists_are_reported() {
    let bench = Bench::new();
    let fails = |arguments: &[&str], part: &str| {
        let output = bench.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    };
    fails(&["sample", "photos", "--count", "2", "--out", "drawn.txt"], ".json");
    fails(&["sample", "photos/a/1.png", "--count", "2", "--out", "drawn.json"], "folder");
    std::fs::create_dir(bench.path("empty")).unwrap();
    fails(&["sample", "empty", "--count", "2", "--out", "drawn.json"], "No images");
    assert!(!bench.path("drawn.json").exists());
    std::fs::write(bench.path("damaged.json"), r#"{"image_list":1,"#).unwrap();
    fails(&["predict", "damaged.json", "--model", "efficientnet-lite0"], "draw it again");
    std::fs::write(bench.path("other.json"), "{}").unwrap();
    fails(&["review", "report", "p.spotcheck", "--images", "other.json"], "spotcheck sample");
    bench.run(&["sample", "photos", "--count", "2", "--out", "drawn.json"]);
    let list = bench.json("drawn.json");
    let first = list["images"][0]["uri"].as_str().unwrap();
    std::fs::remove_file(first).unwrap();
    let output = bench.command(&["predict", "drawn.json", "--model", "efficientnet-lite0"]).output().unwrap();
    assert!(stderr(&output).contains(first), "{}", stderr(&output));
}
