//! `spotcheck review merge` as a process: where verdicts on images and boxes contradict each other.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use spotcheck::domain::{Change, Verdict, VerdictTarget};

use crate::review::Bench;
use crate::support::stderr;

/// Its boxes 0 and 1 are visible, and 2 is below the minimum score.
const IMAGE: &str = "005.png";

impl Bench {
    /// A project with these verdicts: “image accept”, “1 reject”, or “added” for a bird that the model did not detect.
    fn judged(&self, project: &str, reviewer: &str, verdicts: &[&str]) {
        self.project(project);
        let mut table = "image,box,verdict,right_class,x1,y1,x2,y2,reviewer\n".to_owned();
        for text in verdicts {
            let (of, word) = text.split_once(' ').unwrap_or(("image", text));
            let index = if of == "image" { "" } else { of };
            let drawn = if word == "added" { "bird,300,10,340,40" } else { ",,,," };
            writeln!(table, "{IMAGE},{index},{word},{drawn},{reviewer}").unwrap();
        }
        std::fs::write(self.path("v.csv"), table).unwrap();
        self.reviewed("import", &[project, "v.csv"]);
    }

    /// The verdicts of a project, in the same form.
    fn judgments(&self, project: &str) -> BTreeSet<String> {
        self.reviewed("export", &[project, "--out", "w.csv", "--force"]);
        let text = |row: Vec<String>| match (row[2].as_str(), row[1].as_str()) {
            ("added", _) => "added".to_owned(),
            (word, "") => format!("image {word}"),
            (word, index) => format!("{index} {word}"),
        };
        self.rows("w.csv").into_iter().map(text).collect()
    }
}

#[test]
fn image_verdicts_are_compared_with_box_verdicts() {
    type Case<'c> = (&'c [&'c str], &'c [&'c str], usize, &'c [&'c str], [&'c [&'c str]; 3]);
    // The verdicts of both, pairs, conflicts, and what each preference leaves: first, second, none.
    let cases: [Case<'_>; 12] = [
        (
            &["image accept"],
            &["1 reject"],
            1,
            &["1 accept reject"],
            [&["image accept", "1 accept"], &["image accept", "1 reject"], &["0 accept"]],
        ),
        (
            &["1 reject"],
            &["image accept"],
            1,
            &["1 reject accept"],
            [&["image accept", "1 reject"], &["image accept", "1 accept"], &["0 accept"]],
        ),
        (
            &["image reject"],
            &["0 accept", "1 reject"],
            2,
            &["0 reject accept"],
            [&["image reject", "0 reject", "1 reject"], &["image reject", "0 accept", "1 reject"], &["1 reject"]],
        ),
        (
            &["image unsure"],
            &["1 accept"],
            1,
            &["1 unsure accept"],
            [&["image unsure", "1 unsure"], &["image unsure", "1 accept"], &["0 unsure"]],
        ),
        // The box is hidden.
        (&["image accept"], &["2 reject"], 0, &[], [&["image accept", "2 reject"]; 3]),
        (&["image complete"], &["1 reject"], 0, &[], [&["image complete", "1 reject"]; 3]),
        (&["image reject"], &["added"], 0, &[], [&["image reject", "added"]; 3]),
        (&["image accept", "added"], &["image complete", "added"], 1, &[], [&["image accept", "added"]; 3]),
        (
            &["image accept"],
            &["added"],
            1,
            &[" accept added"],
            [&["image accept"], &["image accept", "added"], &["0 accept", "1 accept"]],
        ),
        (
            &["0 accept", "added"],
            &["image complete"],
            1,
            &[" added complete"],
            [&["0 accept", "added", "image complete"], &["0 accept", "image complete"], &["0 accept"]],
        ),
        (
            &["image accept", "1 reject"],
            &["image accept"],
            2,
            &["1 reject accept"],
            [&["image accept", "1 reject"], &["image accept", "1 accept"], &["0 accept"]],
        ),
        // Nothing may accept what is left unjudged.
        (
            &["image accept", "1 reject"],
            &["image accept", "1 unsure"],
            2,
            &["1 reject unsure"],
            [&["image accept", "1 reject"], &["image accept", "1 unsure"], &["0 accept"]],
        ),
    ];
    let bench = Bench::new();
    for (ann, bob, pairs, conflicts, left) in cases {
        bench.judged("a.spotcheck", "Ann", ann);
        bench.judged("b.spotcheck", "Bob", bob);
        for (prefer, left) in ["first", "second", "none"].into_iter().zip(left) {
            let arguments = ["a.spotcheck", "b.spotcheck", "--out", "c.spotcheck", "--conflicts", "c.csv", "--force"];
            let output = bench.reviewed("merge", &[&arguments[..], &["--prefer", prefer]].concat());
            let text = stderr(&output);
            let counts = format!(" {pairs} in both, {} conflict", conflicts.len());
            assert!(text.contains(&counts), "{ann:?} {bob:?}: {text}");
            let found: Vec<String> =
                bench.rows("c.csv").iter().map(|row| format!("{} {} {}", row[1], row[2], row[9])).collect();
            assert_eq!(found, conflicts, "{ann:?} {bob:?}");
            let left: BTreeSet<String> = left.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(bench.judgments("c.spotcheck"), left, "{ann:?} {bob:?} {prefer}");
        }
        for name in ["a.spotcheck", "b.spotcheck"] {
            std::fs::remove_file(bench.path(name)).unwrap();
        }
    }
}

#[test]
fn verdict_given_before_the_prediction_is_compared() {
    let bench = Bench::new();
    bench.judged("a.spotcheck", "Ann", &["image accept"]);
    bench.project("b.spotcheck");
    let before = |verdict: Verdict| Change::SetVerdict {
        sample: bench.uri(IMAGE),
        target: VerdictTarget { run: None, box_index: None },
        verdict: Some(verdict),
        reviewer: Some("Bob".to_owned()),
    };
    for (verdict, conflicts, left) in [(Verdict::Accept, 0, Some("image accept")), (Verdict::Reject, 1, None)] {
        bench.open("b.spotcheck").write_together(&[before(verdict)]).unwrap();
        for pair in [["a.spotcheck", "b.spotcheck"], ["b.spotcheck", "a.spotcheck"]] {
            let output = bench.reviewed("merge", &[&pair[..], &["--out", "c.spotcheck", "--force"]].concat());
            let counts = format!("0 verdicts only in the second project, 1 in both, {conflicts} conflict");
            assert!(stderr(&output).contains(&counts), "{}", stderr(&output));
            assert_eq!(bench.judgments("c.spotcheck"), left.iter().map(|text| (*text).to_owned()).collect());
        }
    }
}

#[test]
fn added_boxes_do_not_raise_kappa() {
    let bench = Bench::new();
    bench.judged("a.spotcheck", "Ann", &["0 accept", "1 reject", "added"]);
    bench.judged("b.spotcheck", "Bob", &["0 reject", "1 reject", "added"]);
    let output = bench.reviewed("merge", &["a.spotcheck", "b.spotcheck", "--out", "c.spotcheck"]);
    let text = stderr(&output);
    // Of the two boxes of the model, one is judged equally: 0.5, as by chance.
    assert!(text.contains(" 3 in both, 1 conflict"), "{text}");
    assert!(text.contains("Cohen's kappa, all: 0.000 (from 2 pairs)"), "{text}");
    bench.judged("d.spotcheck", "Ann", &["added"]);
    let only_added = bench.reviewed("merge", &["d.spotcheck", "b.spotcheck", "--out", "e.spotcheck"]);
    assert!(!stderr(&only_added).contains("kappa"), "{}", stderr(&only_added));
}
