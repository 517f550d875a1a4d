//! `spotcheck review` on full disks, with unusable files and with projects that have nothing to judge.

use std::process::Command;

use crate::review::Bench;
use crate::support::{spotcheck, stderr};

impl Bench {
    /// Imports `v.csv` while no file may grow beyond a limit, in kilobytes.
    #[cfg(target_os = "linux")]
    fn import_on_a_full_disk(&self, project: &str, limit: u32) -> std::process::Output {
        let import = spotcheck(&["review", "import", project, "v.csv"]);
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!(r#"trap "" XFSZ; exec prlimit --fsize={limit}000:unlimited "$@""#), "sh"]);
        limited.arg(import.get_program()).args(import.get_args()).current_dir(self.path(""));
        for (name, value) in import.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited.output().unwrap()
    }
}

#[cfg(target_os = "linux")]
#[test]
fn import_on_a_full_disk_saves_all_or_nothing() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let class = "x".repeat(2000);
    let rows = (0..250).map(|image| format!("{image:03}.png,,wrong,{class}{image}\n"));
    std::fs::write(bench.path("v.csv"), format!("image,box,verdict,right_class\n{}", rows.collect::<String>()))
        .unwrap();
    let failed = bench.import_on_a_full_disk("p.spotcheck", 400);
    let text = stderr(&failed);
    assert_eq!(failed.status.code(), Some(1), "{text}");
    assert!(text.contains("none of them") && !text.contains("yet"), "{text}");
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv"]);
    assert_eq!(bench.rows("w.csv").len(), 0);
    bench.reviewed("import", &["p.spotcheck", "v.csv"]);
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv", "--force"]);
    assert_eq!(bench.rows("w.csv").len(), 250);
}

#[test]
fn column_with_two_meanings_is_rejected() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    for header in ["image,box,verdict,Verdict", "image,box,verdict,score,score", "image,box,verdict,image"] {
        let cells = header.replace("Verdict", "reject").replace("verdict", "accept").replace("image", "000.png");
        std::fs::write(bench.path("v.csv"), format!("{header}\n{}\n", cells.replace("box", "0"))).unwrap();
        let output = bench.review("import", &["p.spotcheck", "v.csv"]);
        assert_eq!(output.status.code(), Some(1), "{header}: {}", stderr(&output));
        assert!(stderr(&output).contains("twice"), "{header}: {}", stderr(&output));
    }
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv"]);
    assert_eq!(bench.rows("w.csv").len(), 0);
    // Other columns are not read.
    std::fs::write(bench.path("v.csv"), "image,box,verdict,note,note\n000.png,0,accept,a,b\n").unwrap();
    bench.reviewed("import", &["p.spotcheck", "v.csv"]);
}

#[test]
fn new_class_has_one_spelling() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let rows = "image,box,verdict,right_class\n000.png,,wrong,Teapot\n001.png,,wrong,teapot\n002.png,,wrong,BIRD\n";
    std::fs::write(bench.path("v.csv"), rows).unwrap();
    let output = bench.reviewed("import", &["p.spotcheck", "v.csv"]);
    assert!(stderr(&output).contains("note: 1 class ") && stderr(&output).contains("“Teapot”"), "{}", stderr(&output));
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv"]);
    let classes: Vec<String> = bench.rows("w.csv").into_iter().map(|row| row[3].clone()).collect();
    assert_eq!(classes, ["Teapot", "Teapot", "bird"]);
}

#[test]
fn failed_merge_leaves_no_file() {
    let bench = Bench::new();
    for (name, reviewer, verdict) in [("a.spotcheck", "Ann", "accept"), ("b.spotcheck", "Bob", "reject")] {
        bench.project(name);
        std::fs::write(bench.path("v.csv"), format!("image,box,verdict\n000.png,0,{verdict}\n")).unwrap();
        bench.reviewed("import", &[name, "v.csv", "--reviewer", reviewer]);
    }
    let merge = |out: &str, conflicts: &str| {
        bench.review("merge", &["a.spotcheck", "b.spotcheck", "--out", out, "--conflicts", conflicts])
    };
    for conflicts in ["c.spotcheck", "./c.spotcheck"] {
        let same = merge("c.spotcheck", conflicts);
        assert_eq!(same.status.code(), Some(2), "{}", stderr(&same));
    }
    let failed = merge("missing/c.spotcheck", "c.csv");
    assert_eq!(failed.status.code(), Some(1), "{}", stderr(&failed));
    assert!(!stderr(&failed).contains(".spotcheck-"), "no name of a temporary file: {}", stderr(&failed));
    let names = std::fs::read_dir(bench.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(['c', '.'])).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(merge("c", "c.csv").status.success());
    assert_eq!(bench.rows("c.csv").len(), 1);
    // The file has the ending of a project, whether or not it was typed.
    let before = std::fs::read(bench.path("c.spotcheck")).unwrap();
    let b = std::fs::read(bench.path("b.spotcheck")).unwrap();
    for out in ["c", "b"] {
        let replaced = bench.review("merge", &["a.spotcheck", "b.spotcheck", "--out", out]);
        assert_eq!(replaced.status.code(), Some(1), "{}", stderr(&replaced));
        let copied = bench.review("second-pass", &["a.spotcheck", "--out", out]);
        assert_eq!(copied.status.code(), Some(1), "{}", stderr(&copied));
    }
    let input = bench.review("merge", &["a.spotcheck", "b.spotcheck", "--out", "b", "--force"]);
    assert_eq!(input.status.code(), Some(1), "{}", stderr(&input));
    assert!(before == std::fs::read(bench.path("c.spotcheck")).unwrap());
    assert!(b == std::fs::read(bench.path("b.spotcheck")).unwrap());
}

#[test]
fn projects_with_nothing_to_judge_are_named_as_such() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    bench.project("unpredicted.spotcheck");
    let connection = rusqlite::Connection::open(bench.path("unpredicted.spotcheck")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = on; DELETE FROM answers").unwrap();
    drop(connection);
    drop(bench.open("without-runs.spotcheck"));
    std::fs::write(bench.path("empty.spotcheck"), "").unwrap();
    let whole = std::fs::read(bench.path("p.spotcheck")).unwrap();
    std::fs::write(bench.path("half.spotcheck"), &whole[..5000]).unwrap();
    for (name, reason) in [
        ("unpredicted", "has no predictions"),
        ("without-runs", "no runs"),
        ("empty", "it is empty"),
        ("half", "malformed"),
    ] {
        let project = format!("{name}.spotcheck");
        let commands: [(&str, &[&str]); 4] = [
            ("report", &[&project]),
            ("sample", &[&project, "--count", "5", "--out", "s.csv"]),
            ("merge", &["p.spotcheck", &project, "--out", "m.spotcheck"]),
            ("merge", &[&project, "p.spotcheck", "--out", "m.spotcheck"]),
        ];
        for (command, arguments) in commands {
            let output = bench.review(command, arguments);
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{command} {arguments:?}: {text}");
            assert!(text.contains(reason), "{command} {arguments:?}: {text}");
            let advice = ["spotcheck predict", "restore it", "same weights"];
            assert!(advice.iter().any(|advice| text.contains(advice)), "{command} {arguments:?}: {text}");
        }
    }
    assert!(!bench.path("s.csv").exists() && !bench.path("m.spotcheck").exists());
    let copy = bench.review("second-pass", &["without-runs.spotcheck", "--out", "m.spotcheck"]);
    assert_eq!(copy.status.code(), Some(1), "{}", stderr(&copy));
}
