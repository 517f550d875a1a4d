//! `spotcheck predict --project` as a process: what is stored, how a run resumes, and who may write.

#[cfg(target_os = "linux")]
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use spotcheck::domain::{Change, SampleUri, Verdict, VerdictTarget};
use spotcheck::project::{OpenMode, OpenRequest, Opened, Project};

use crate::support::{repository, spotcheck, stderr};

/// A folder with small images and a path for a project.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("images")).unwrap();
        let bench = Self { folder };
        for number in 0..5 {
            bench.draw(&format!("{number}.png"), number * 40);
        }
        std::fs::write(bench.images().join("broken.jpg"), b"no image").unwrap();
        bench
    }

    fn images(&self) -> PathBuf {
        self.folder.path().join("images")
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("p.spotcheck")
    }

    fn draw(&self, name: &str, shade: u8) {
        let pixel = |x, y| image::Rgb([shade, (x * 4) as u8, (y * 5) as u8]);
        image::RgbImage::from_fn(60, 50, pixel).save(self.images().join(name)).unwrap();
    }

    fn predict(&self, more: &[&str]) -> Output {
        self.predict_over(&self.images(), more)
    }

    fn predict_over(&self, source: &Path, more: &[&str]) -> Output {
        self.command(source, more).output().unwrap()
    }

    fn command(&self, source: &Path, more: &[&str]) -> Command {
        let mut command = spotcheck(&["predict", "--model", "ssd-mobilenet-coco", "--threads", "1"]);
        command.arg(source).arg("--project").arg(self.project());
        command.args(["--out", "-"]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Their predictions are too large for the disk of [`Bench::predict_on_a_full_disk`].
    #[cfg(target_os = "linux")]
    fn with_forty_images() -> Self {
        let bench = Self::new();
        for number in 5..40 {
            bench.draw(&format!("{number}.png"), number * 5);
        }
        std::fs::remove_file(bench.images().join("broken.jpg")).unwrap();
        bench
    }

    #[cfg(target_os = "linux")]
    fn predict_many(&self) -> Command {
        let mut predict = spotcheck(&["predict", "--model", "efficientnet-lite0", "--top-k", "900"]);
        predict.arg(self.images()).arg("--project").arg(self.project());
        predict.stdout(Stdio::null()).stderr(Stdio::piped());
        predict
    }

    /// No file may grow beyond a few predictions.
    #[cfg(target_os = "linux")]
    fn predict_on_a_full_disk(&self) -> Child {
        let predict = self.predict_many();
        let mut limited = Command::new("sh");
        limited
            .args(["-c", r#"trap "" XFSZ; exec prlimit --fsize=400000:unlimited "$@""#, "sh"])
            .arg(predict.get_program())
            .args(predict.get_args())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        for (name, value) in predict.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited.spawn().unwrap()
    }

    fn open(&self, mode: OpenMode) -> Opened {
        let request = OpenRequest { path: &self.project(), root: None, mode, program: "a test" };
        Project::open(&request, |_| ()).unwrap()
    }
}

#[track_caller]
fn check_prints(output: &Output, code: i32, words: &[&str]) {
    let messages = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{messages}");
    for words in words {
        assert!(messages.contains(words), "{words}:\n{messages}");
    }
}

/// Checks that the run ended with this exit code, and started with this many of these images predicted.
#[track_caller]
fn check_resumed(output: &Output, code: i32, [predicted, images]: [usize; 2]) {
    let (done, rest) = (format!("{predicted} of {images} "), format!(" {} remain", images - predicted));
    check_prints(output, code, &[&done, &rest]);
}

#[test]
fn finished_run_is_written_again_without_inference() {
    let bench = Bench::new();
    let first = bench.predict(&[]);
    check_prints(&first, 3, &["v2, 1 thread”", "saved 6 of 6"]);
    let again = bench.predict(&["--resume"]);
    check_resumed(&again, 3, [6, 6]);
    check_prints(&again, 3, &["0 images in"]);
    assert_eq!(first.stdout, again.stdout);

    let project = bench.open(OpenMode::Read).project;
    let run = &project.runs().unwrap()[0];
    let counts = project.prediction_counts(run.id).unwrap();
    assert_eq!((counts.predicted, counts.failed), (5, 1));
    assert_eq!(run.card.id, "ssd-mobilenet-coco");
    assert_eq!(run.labels.get(1), Some("person"));
}

#[test]
fn existing_run_is_not_duplicated_or_overwritten() {
    let bench = Bench::new();
    check_prints(&bench.predict(&["--limit", "1"]), 0, &[]);
    let refused = bench.predict(&[]);
    check_prints(&refused, 1, &["1 predictions", "--resume", "--new-run"]);
    check_prints(&bench.predict(&["--new-run", "--limit", "1"]), 0, &["1 thread (2)”"]);
    let other = bench.predict(&["--resume", "--min-score", "0.5", "--limit", "1"]);
    check_prints(&other, 0, &["no run with", "scores ≥ 0.5"]);
    assert_eq!(bench.open(OpenMode::Read).project.runs().unwrap().len(), 3);
}

/// The disk is full after half of the predictions, until files are deleted.
#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_reported_and_saving_resumes() {
    let bench = Bench::with_forty_images();
    let mut child = bench.predict_on_a_full_disk();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut messages = String::new();
    let mut has_room = false;
    for line in lines.map_while(Result::ok) {
        if line.starts_with("waiting: ") && !has_room {
            let id = child.id().to_string();
            let freed = Command::new("prlimit").args(["--fsize=unlimited", "--pid", &id]).status();
            assert!(freed.unwrap().success());
            has_room = true;
        }
        messages += &line;
        messages.push('\n');
    }
    assert!(child.wait().unwrap().success(), "{messages}");
    let path = bench.project();
    for words in [
        &format!("predictions in {}", path.display()),
        &format!("saved yet in {}: ", path.display()),
        "Ctrl+C",
        "saved 40 of 40",
    ] {
        assert!(messages.contains(words), "{words}:\n{messages}");
    }
}

/// As in an unattended job: the disk stays full, and only Ctrl+C ends the run.
#[cfg(target_os = "linux")]
#[test]
fn run_waiting_for_disk_space_can_be_interrupted() {
    let bench = Bench::with_forty_images();
    let mut child = bench.predict_on_a_full_disk();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let waits = |line: Result<String, _>| line.unwrap().starts_with("waiting: ");
    assert!(lines.any(waits), "waiting");
    let id = child.id().to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status();
    assert!(interrupted.unwrap().success());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(ends(child).status.code(), Some(1), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("--resume")), "{rest:?}");

    let mut resume = bench.predict_many();
    let resumed = ends(resume.arg("--resume").spawn().unwrap());
    check_prints(&resumed, 0, &["saved 40 of 40"]);
}

/// The program must end by itself.
#[track_caller]
fn ends(child: Child) -> Output {
    const PATIENCE: Duration = Duration::from_mins(2);
    let id = child.id().to_string();
    let (sender, ended) = channel();
    let waits = std::thread::spawn(move || sender.send(child.wait_with_output()));
    if let Ok(output) = ended.recv_timeout(PATIENCE) {
        return output.unwrap();
    }
    Command::new("kill").args(["-KILL", &id]).status().unwrap();
    waits.join().unwrap().unwrap();
    panic!("it does not end:\n{}", stderr(&ended.recv().unwrap().unwrap()));
}

/// Replaces bytes in a project file with others of the same length.
fn edit(project: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = std::fs::read(project).unwrap();
    let at = bytes.windows(from.len()).position(|part| part == from);
    let at = at.expect("the file has these bytes");
    bytes[at..at + from.len()].copy_from_slice(to);
    std::fs::write(project, bytes).unwrap();
}

#[test]
fn every_command_reports_a_damaged_project() {
    type Damage = (&'static str, fn(&Path));
    let damages: [Damage; 5] = [
        ("a lost table", |project| {
            let connection = rusqlite::Connection::open(project).unwrap();
            let sql = "PRAGMA foreign_keys = off; DROP TABLE boxes";
            connection.execute_batch(sql).unwrap();
        }),
        ("a table of another name", |project| {
            edit(project, b"CREATE TABLE answers (", b"CREATE TABLE antlers (");
        }),
        ("a foreign key mismatch", |project| {
            edit(project, b"REFERENCES runs (id)", b"REFERENCES runs (di)");
        }),
        ("a lost column", |project| {
            edit(project, b"modified_ns INTEGER", b"modifier_ns INTEGER");
        }),
        ("a page of nonsense", |project| {
            let mut bytes = std::fs::read(project).unwrap();
            let last = bytes.len() - 16384;
            bytes[last..].fill(0xa5);
            std::fs::write(project, bytes).unwrap();
        }),
    ];
    for (damage, make) in damages {
        let bench = Bench::new();
        check_prints(&bench.predict(&["--limit", "2"]), 0, &[]);
        make(&bench.project());
        let mut info = spotcheck(&["project", "info"]);
        let info = info.arg(bench.project()).output().unwrap();
        assert_eq!(info.status.code(), Some(1), "{damage}: {}", stderr(&info));
        let mut predict = bench.command(&bench.images(), &["--resume"]);
        let predicted = ends(predict.spawn().unwrap());
        check_prints(&predicted, 3, &["was damaged", "saved 6 of 6"]);
        let kept = std::fs::read_dir(bench.folder.path()).unwrap();
        let is_kept = |name: &str| name.starts_with("p.damaged-");
        let kept = kept.filter(|entry| is_kept(entry.as_ref().unwrap().file_name().to_str().unwrap()));
        assert_eq!(kept.count(), 1, "{damage}");
        let mut info = spotcheck(&["project", "info"]);
        let info = info.arg(bench.project()).output().unwrap();
        assert!(info.status.success(), "{damage}");
    }
}

/// The file opens without a problem, which appears only when a prediction is saved.
#[test]
fn run_that_cannot_be_saved_fails() {
    let bench = Bench::new();
    check_prints(&bench.predict(&["--limit", "1"]), 0, &[]);
    let connection = rusqlite::Connection::open(bench.project()).unwrap();
    let sql = "CREATE TRIGGER t AFTER INSERT ON answers BEGIN INSERT INTO nowhere VALUES (1); END";
    connection.execute_batch(sql).unwrap();
    drop(connection);
    let mut predict = bench.command(&bench.images(), &["--resume"]);
    let predicted = ends(predict.spawn().unwrap());
    check_prints(&predicted, 1, &["not be saved", "nowhere"]);
}

#[test]
fn new_and_changed_images_are_predicted() {
    let bench = Bench::new();
    check_prints(&bench.predict(&["--limit", "3"]), 0, &[]);
    bench.draw("1.png", 255);
    std::fs::File::open(bench.images().join("1.png")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let resumed = bench.predict(&["--resume"]);
    check_prints(&resumed, 3, &["predicted again: 1", "4 images in"]);
    check_resumed(&resumed, 3, [2, 6]);
    let fresh = bench.predict(&["--new-run"]);
    assert_eq!(resumed.stdout, fresh.stdout, "as if it had never stopped");
    let retried = bench.predict(&["--resume", "--retry-failed"]);
    check_resumed(&retried, 3, [5, 6]);
    assert_eq!(retried.stdout, fresh.stdout);
}

#[test]
fn judged_prediction_survives_an_image_change() {
    let bench = Bench::new();
    let before = bench.predict(&[]);
    let sample = SampleUri::new(bench.images().join("0.png").to_str().unwrap());
    let opened = bench.open(OpenMode::Write);
    let run = opened.project.runs().unwrap()[0].id;
    let judged = Change::SetVerdict {
        sample,
        target: VerdictTarget { run: Some(run), box_index: Some(0) },
        verdict: Some(Verdict::Accept),
        reviewer: None,
    };
    opened.project.write(1, judged).unwrap();
    drop(opened);
    bench.draw("0.png", 255);
    std::fs::File::open(bench.images().join("0.png")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let resumed = bench.predict(&["--resume"]);
    check_prints(&resumed, 3, &["has a verdict", "0 remain"]);
    assert_eq!(before.stdout, resumed.stdout);
}

#[test]
fn open_project_is_refused_with_its_process() {
    let bench = Bench::new();
    let _open = bench.open(OpenMode::Write);
    let refused = bench.predict(&[]);
    let process = format!("(a test, process {}", std::process::id());
    check_prints(&refused, 1, &["has it open", &process]);
}

#[test]
fn project_is_shown_and_relocated() {
    let bench = Bench::new();
    check_prints(&bench.predict(&["--limit", "2"]), 0, &[]);
    let moved = bench.folder.path().join("moved_images").join("images");
    std::fs::create_dir(bench.folder.path().join("moved_images")).unwrap();
    std::fs::rename(bench.images(), &moved).unwrap();
    let project = |words: &[&str]| {
        let mut command = spotcheck(&["project", words[0]]);
        command.arg(bench.project()).args(&words[1..]).output().unwrap()
    };
    let info = spotcheck(&["project", "info"]).arg(bench.folder.path()).output().unwrap();
    check_prints(&info, 1, &["project"]);
    let info = project(&["info"]);
    let text = String::from_utf8(info.stdout).unwrap();
    assert!(text.contains("does not exist") && text.contains("project relocate"), "{text}");
    assert!(text.contains("v2, 1 thread, 2 images") && text.contains("0 failed"), "{text}");
    let missing = project(&["relocate", "/no/such/folder"]);
    check_prints(&missing, 1, &["does not exist"]);
    let other = project(&["relocate", bench.folder.path().to_str().unwrap()]);
    check_prints(&other, 1, &["None of the project's 2 images"]);
    let second = moved.join("1.png");
    let aside = bench.folder.path().join("aside.png");
    std::fs::rename(&second, &aside).unwrap();
    let incomplete = project(&["relocate", moved.to_str().unwrap()]);
    check_prints(&incomplete, 3, &["1 of 2 images", "1 is missing", "now"]);
    std::fs::rename(&aside, &second).unwrap();
    let relocated = project(&["relocate", moved.to_str().unwrap()]);
    check_prints(&relocated, 0, &["2 of 2 images", "now"]);
    let mut again = spotcheck(&["predict", "--model", "ssd-mobilenet-coco", "--threads", "1"]);
    again.arg(&moved).arg("--project").arg(bench.project());
    let again = again.args(["--resume", "--limit", "3"]).output().unwrap();
    check_resumed(&again, 0, [2, 3]);
}

#[test]
fn images_that_are_not_drawn_are_still_predicted() {
    let bench = Bench::new();
    let drawn = bench.folder.path().join("drawn");
    std::fs::create_dir_all(drawn.join("0.png")).unwrap();
    std::fs::write(drawn.join("spotcheck-export.json"), "{}").unwrap();
    let ended = bench.predict(&["--annotate", drawn.to_str().unwrap()]);
    check_prints(&ended, 3, &["1 of 6 images failed, 1 of 5 predicted images could not be drawn"]);
}

#[test]
fn conflicting_flags_are_refused() {
    for flags in [
        &["--resume"][..],
        &["--project", "p.spotcheck", "--retry-failed"],
        &["--project", "p.spotcheck", "--resume", "--new-run"],
    ] {
        let mut command = spotcheck(&["predict", "assets/samples", "--model", "efficientnet-lite0"]);
        assert_eq!(command.args(flags).output().unwrap().status.code(), Some(2), "{flags:?}");
    }
    let mut command = spotcheck(&["predict", "assets/samples", "--model", "efficientnet-lite0"]);
    let output = command.args(["--project", "Cargo.toml"]).output().unwrap();
    check_prints(&output, 1, &["in .spotcheck"]);
    assert!(Path::new(&repository().join("Cargo.toml")).exists());
}

#[test]
fn two_runs_are_compared_per_image() {
    let bench = Bench::new();
    bench.predict(&[]);
    let out = bench.folder.path().join("comparison.json");
    let compare = |more: &[&str]| {
        let mut command = spotcheck(&["compare"]);
        command.arg(bench.project()).args(more).output().unwrap()
    };
    let alone = compare(&[]);
    assert_eq!(alone.status.code(), Some(1));
    assert!(stderr(&alone).contains("needs two"), "{}", stderr(&alone));
    bench.predict(&["--new-run"]);

    let summary = compare(&["--min-score", "0.1"]);
    let text = String::from_utf8_lossy(&summary.stdout);
    assert!(text.contains("100.0%") && text.contains("5 of 5 images"), "{text}{}", stderr(&summary));
    let arguments = ["--runs", "1", "2", "--out", out.to_str().unwrap()];
    let written = compare(&arguments);
    assert_eq!(written.status.code(), Some(0), "{}", stderr(&written));
    assert!(written.stdout.is_empty());
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert_eq!(whole["summary"]["compared"], 5);
    let images = whole["images"].as_array().unwrap();
    let names: Vec<_> = images.iter().map(|image| &image["image"]).collect();
    assert_eq!(names, ["0.png", "1.png", "2.png", "3.png", "4.png"]);
    assert!(images.iter().all(|image| image["disagreement"] == 0.0));

    let page = bench.folder.path().join("comparison.html");
    let bounded = ["--runs", "1", "2", "--fail-below", "agreement=1.0", "--out", page.to_str().unwrap()];
    let report = compare(&bounded);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("100.0%") && page.contains("UTC"), "{page}");

    let again = compare(&arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("--force"));
    let unknown = compare(&["--runs", "1", "mine"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("no run “mine”"), "{}", stderr(&unknown));
    for wrong in [["--out", "table.xls"], ["--fail-below", "map=0.5"], ["--fail-below", "agreement=2"]] {
        let usage = compare(&[&["--runs", "1", "2"], &wrong[..]].concat());
        assert_eq!(usage.status.code(), Some(2), "{}", stderr(&usage));
    }
}

#[test]
fn outdated_prediction_is_not_compared() {
    let bench = Bench::new();
    bench.predict(&[]);
    bench.draw("0.png", 7);
    bench.predict(&["--new-run"]);
    let mut command = spotcheck(&["compare"]);
    let output = command.arg(bench.project()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("4 of 4 images"), "{text}{}", stderr(&output));
    assert!(text.contains("B only: 1"), "{text}");
}

#[test]
fn project_accepts_only_its_own_images() {
    let bench = Bench::new();
    check_prints(&bench.predict(&[]), 3, &[]);
    let counts = || {
        let project = bench.open(OpenMode::Read).project;
        let runs = project.runs().unwrap();
        let counts = project.prediction_counts(runs[0].id).unwrap();
        (runs.len(), counts.predicted, counts.failed)
    };
    let other = bench.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(bench.images().join("1.png"), other.join("1.png")).unwrap();
    let about = format!("belongs to {}", bench.images().display());
    let not_about = format!("not to {}", other.display());
    for more in [&[][..], &["--new-run"], &["--resume"]] {
        let refused = bench.predict_over(&other, more);
        check_prints(&refused, 1, &[&about, &not_about, "project relocate"]);
        assert!(refused.stdout.is_empty());
    }
    let of_parent = bench.predict_over(bench.folder.path(), &["--new-run"]);
    check_prints(&of_parent, 1, &[&about]);
    assert_eq!(counts(), (1, 5, 1));

    // A part of the images is not another location.
    let one = bench.predict_over(&bench.images().join("1.png"), &["--resume"]);
    check_resumed(&one, 0, [1, 1]);
    assert_eq!(counts(), (1, 5, 1));
}

#[cfg(unix)]
#[test]
fn folder_is_the_same_by_any_path() {
    let bench = Bench::new();
    let images = bench.images();
    std::fs::create_dir(bench.folder.path().join("aside")).unwrap();
    let by_dots = bench.folder.path().join("aside/../images");
    let first = bench.predict_over(&by_dots, &[]);
    check_prints(&first, 3, &[]);
    let written = String::from_utf8(first.stdout.clone()).unwrap();
    let uri = format!("{{\"uri\":\"{}\"", images.join("0.png").display());
    assert!(written.starts_with(&uri), "{written}");

    let by_link = bench.folder.path().join("link");
    std::os::unix::fs::symlink(&images, &by_link).unwrap();
    let note = "images moved to";
    for source in [&images, &by_dots, &by_link] {
        let again = bench.predict_over(source, &["--resume"]);
        check_resumed(&again, 3, [6, 6]);
        assert!(!stderr(&again).contains(note), "{}", stderr(&again));
        assert_eq!(again.stdout, first.stdout);
    }
    let one = bench.predict_over(&by_link.join("1.png"), &["--resume"]);
    check_resumed(&one, 0, [1, 1]);

    let moved_images = bench.folder.path().join("moved_images");
    std::fs::rename(&images, &moved_images).unwrap();
    let moved = bench.predict_over(&moved_images, &["--resume"]);
    assert!(stderr(&moved).contains(note), "{}", stderr(&moved));
}

/// The folder disappears like an unplugged disk, and returns.
#[test]
fn run_resumes_when_its_folder_returns() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    const IMAGES: usize = 300;
    let bench = Bench::new();
    std::fs::remove_file(bench.images().join("broken.jpg")).unwrap();
    for number in 5..IMAGES {
        bench.draw(&format!("{number}.png"), number as u8);
    }
    let away = bench.folder.path().join("away");
    let command = |more: &[&str]| {
        let mut command = spotcheck(&["predict", "--model", "efficientnet-lite0"]);
        command.args(["--device", "cpu", "--threads", "1", "--out", "-"]);
        command.arg(bench.images()).arg("--project");
        command.arg(bench.project()).args(more);
        command
    };
    let mut child = command(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let written = std::thread::spawn(move || {
        let mut written = String::new();
        stdout.read_to_string(&mut written).unwrap();
        written
    });
    let mut messages = String::new();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        if line.starts_with("saved ") && !away.exists() {
            std::fs::rename(bench.images(), &away).unwrap();
        }
        messages += &line;
        messages.push('\n');
    }
    assert_eq!(child.wait().unwrap().code(), Some(1), "{messages}");
    let images = bench.images().display().to_string();
    for words in ["--resume", &images] {
        assert!(messages.contains(words), "{words}:\n{messages}");
    }
    let written = written.join().unwrap();
    let before = written.lines().count();
    assert!(before > 0 && before < IMAGES, "{before}: {messages}");
    assert_eq!(written.matches("\"status\":\"ok\"").count(), before);

    std::fs::rename(&away, bench.images()).unwrap();
    let resumed = command(&["--resume"]).output().unwrap();
    let rest = IMAGES - before;
    check_resumed(&resumed, 0, [before, IMAGES]);
    check_prints(&resumed, 0, &[&format!("{rest} images in")]);
    let project = bench.open(OpenMode::Read).project;
    let counts = project.prediction_counts(project.runs().unwrap()[0].id).unwrap();
    assert_eq!((counts.predicted, counts.failed), (IMAGES, 0));
}
