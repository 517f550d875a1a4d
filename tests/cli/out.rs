//! The targets of `--out`, as a process: results replace earlier results, and nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{repository, spotcheck, stderr};

const MODEL: &str = "efficientnet-lite0";
const LINE: &str = "{\"uri\":\"/old.jpg\",\"status\":\"failed\",\"error\":\"empty\"}\n";

/// Two images in `photos/`, a classifier's outputs for them in `outputs/`, and files that must not be replaced.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["photos", "outputs"] {
            std::fs::create_dir(bench.path(name)).unwrap();
        }
        for name in ["rocket.jpg", "coffee.png"] {
            let sample = repository().join("assets/samples").join(name);
            std::fs::copy(sample, bench.path("photos").join(name)).unwrap();
            bench.write(&format!("outputs/{name}.out"), r#"{"predictions":[[0.7,0.2,0.1]]}"#);
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = spotcheck(args);
        command.current_dir(self.folder.path());
        command
    }

    fn predict(&self, more: &[&str]) -> Output {
        let mut command = self.command(&["predict", "photos"]);
        command.args(more).output().unwrap()
    }

    fn fetch(&self, more: &[&str]) -> Output {
        let mut command = self.command(&["transform", "fetch", "outputs", "photos"]);
        command.args(more).output().unwrap()
    }
}

/// Checks that the command was rejected before anything was computed, with the file unchanged.
#[track_caller]
fn check_refused(output: &Output, words: &str, file: &Path, before: Option<&[u8]>) {
    let messages = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains(words), "{words}:\n{messages}");
    // Progress is shown on a busy computer.
    let lines = messages.lines().filter(|line| !line.starts_with("Exporting: "));
    assert_eq!(lines.count(), 1, "a model was loaded:\n{messages}");
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read(file).ok().as_deref(), before);
}

#[test]
fn user_files_are_never_replaced() {
    let bench = Bench::new();
    bench.write("notes.txt", "years of work");
    bench.write("answers.json", "{\"uri\":\"/a.jpg\"}\n");
    let made = bench.predict(&["--model", MODEL, "--project", "p.spotcheck"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let refused = "not replaced";
    for name in ["photos/rocket.jpg", "p.spotcheck", "notes.txt", "answers.json", "outputs/rocket.jpg.out"] {
        let file = bench.path(name);
        let before = std::fs::read(&file).unwrap();
        let predicted = bench.predict(&["--model", MODEL, "--out", name]);
        check_refused(&predicted, refused, &file, Some(&before));
        let tensorflow_serving = ["--tensorflow-serving", "http://127.0.0.1:9/v1/models/m"];
        let asked = bench.predict(&[&tensorflow_serving[..], &["--out", name]].concat());
        check_refused(&asked, refused, &file, Some(&before));
        let fetched = bench.fetch(&["--out", name]);
        check_refused(&fetched, refused, &file, Some(&before));
    }
    let folder = bench.fetch(&["--out", "photos/"]);
    let words = "overwrite the images";
    check_refused(&folder, words, &bench.path("photos"), None);
}

#[test]
fn results_never_replace_inputs() {
    let bench = Bench::new();
    // Each of them could be mistaken for results, or for nothing.
    bench.write("labels.txt", "");
    bench.write("mapping.toml", LINE);
    bench.write("model.onnx", "");
    bench.write("photos/empty.jpg", "");
    let cases: [(&str, &[&str], &str); 4] = [
        ("./photos/../model.onnx", &["--model", "model.onnx"], "the model"),
        ("new.spotcheck", &["--model", MODEL, "--project", "new.spotcheck"], "the project"),
        ("photos/empty.jpg", &["--model", MODEL], "one of the"),
        ("mapping.toml", &["--endpoint", "e", "--mapping", "mapping.toml", "--labels", "labels.txt"], "the mapping"),
    ];
    for (out, more, what) in cases {
        let file = bench.path(out);
        let before = std::fs::read(&file).ok();
        let refused = bench.predict(&[more, &["--out", out]].concat());
        let words = format!("overwrite {what}");
        check_refused(&refused, &words, &file, before.as_deref());
    }
    let file = bench.path("labels.txt");
    let refused = bench.fetch(&["--labels", "labels.txt", "--out", "labels.txt"]);
    let words = "the class names";
    check_refused(&refused, words, &file, Some(b""));
}

#[test]
fn earlier_results_and_empty_files_are_replaced() {
    let bench = Bench::new();
    for before in ["", LINE] {
        bench.write("o.jsonl", before);
        let fetched = bench.fetch(&["--out", "o.jsonl"]);
        assert!(fetched.status.success(), "{}", stderr(&fetched));
        let written = std::fs::read_to_string(bench.path("o.jsonl")).unwrap();
        assert_eq!(written.lines().count(), 2, "{written}");
        assert!(!written.contains("old.jpg"));
    }
}

#[test]
fn archive_never_replaces_its_model() {
    let bench = Bench::new();
    bench.write("model.onnx", "weights");
    let mut command = bench.command(&["transform", "package", "--model", "model.onnx"]);
    command.args(["--out", "model.onnx", "--force"]);
    let file = bench.path("model.onnx");
    let words = "overwrite the model";
    check_refused(&command.output().unwrap(), words, &file, Some(b"weights"));
}

#[test]
fn export_never_replaces_its_project() {
    let bench = Bench::new();
    let made = bench.fetch(&["--project", "p.spotcheck"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let file = bench.path("p.spotcheck");
    let before = std::fs::read(&file).unwrap();
    let mut command = bench.command(&["export", "p.spotcheck", "--format", "csv"]);
    command.args(["--out", "p.spotcheck", "--force"]);
    let words = "project or another";
    check_refused(&command.output().unwrap(), words, &file, Some(&before));
}

#[test]
fn missing_and_read_only_folders_are_named() {
    let bench = Bench::new();
    let missing = bench.fetch(&["--out", "nowhere/o.jsonl"]);
    let words = ": nowhere";
    check_refused(&missing, words, &bench.path("nowhere"), None);
    if cfg!(target_os = "linux") {
        // Not even root can write there.
        let refused = bench.fetch(&["--out", "/sys/o.jsonl"]);
        let messages = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{messages}");
        assert!(messages.contains("cannot write"), "{messages}");
        assert!(messages.trim_end().ends_with(": /sys") && messages.matches("/sys/").count() == 1, "{messages}");
    }
}
