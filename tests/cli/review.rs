//! `spotcheck review` as a process: samples, reports, verdicts as CSV, and merged projects.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{
    Change, Detection, DeviceChoice, DrawnBox, FileStamp, InferenceLocation, KeepRule, LabelSet, Prediction,
    PredictionContent, RunId, RunInfo, RunKey, SamplePrediction, SampleUri, Verdict, VerdictTarget, ViewSettings,
};
use spotcheck::model::catalog::Library;
use spotcheck::project::{OpenMode, OpenRequest, Project};
use spotcheck::review::{ReviewSample, SampleBy};

use crate::support::{repository, runtime_home, spotcheck, stderr};

const RUN: RunId = RunId(1);
const CLASSES: [&str; 3] = ["bird", "cat", "dog"];

/// A folder of projects with the boxes of `tests/review/expected.json`.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    expected: Value,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let expected = std::fs::read_to_string(repository().join("tests/review/expected.json")).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), expected: serde_json::from_str(&expected).unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn uri(&self, image: &str) -> SampleUri {
        SampleUri::new(self.path("images").join(image).to_str().unwrap())
    }

    pub(crate) fn open(&self, project: &str) -> Project {
        let (path, images) = (self.path(project), self.path("images"));
        let request = OpenRequest { path: &path, root: images.to_str(), mode: OpenMode::Write, program: "a test" };
        Project::open(&request, |_| ()).unwrap().project
    }

    fn change(&self, project: &str, changes: Vec<Change>) {
        let project = self.open(project);
        for change in changes {
            project.write(1, change).unwrap();
        }
        project.flush().unwrap();
    }

    /// A project with the predictions, and the verdicts of the first reviewer.
    pub(crate) fn project(&self, name: &str) {
        let model = Library::open(&AppDirs::below(runtime_home())).find("ssd-mobilenet-coco").unwrap();
        let info = RunInfo {
            id: RUN,
            name: "first run".to_owned(),
            key: RunKey {
                model_id: model.card.id.clone(),
                weights_sha256: model.card.file.sha256.clone(),
                device: DeviceChoice::Auto,
                batch: None,
                threads: None,
                keep: KeepRule::default(),
                made: InferenceLocation::Here,
            },
            card: model.card,
            labels: (0..).zip(CLASSES.map(str::to_owned)).collect::<LabelSet>(),
            created_ms: 1_763_710_000_000,
        };
        let predictions = (0..250).map(|image| self.prediction(&format!("{image:03}.png"))).collect();
        self.change(name, vec![Change::AddRun(Box::new(info)), Change::Predictions { run: RUN, predictions }]);
    }

    fn prediction(&self, image: &str) -> SamplePrediction {
        let of_image = self.boxes().iter().filter(|found| found["image"] == image);
        let detections = of_image.map(|found| {
            let class = found["class"].as_u64().unwrap() as usize;
            Detection {
                bounds: serde_json::from_value(found["bounds"].clone()).unwrap(),
                class_id: class as u32,
                label: CLASSES[class].to_owned(),
                score: found["score"].as_f64().unwrap() as f32,
                runners_up: Vec::new(),
            }
        });
        let content = PredictionContent::Detections(detections.collect());
        let result = Ok(Prediction { width: 400, height: 400, content, warnings: Vec::new() });
        let stamp = FileStamp { size_bytes: 1, modified_ns: None, etag: None };
        SamplePrediction { sample: self.uri(image), stamp, result }
    }

    fn boxes(&self) -> &Vec<Value> {
        self.expected["boxes"].as_array().unwrap()
    }

    fn verdict(&self, found: &Value, verdict: Verdict, reviewer: &str) -> Change {
        let box_index = Some(found["box"].as_u64().unwrap() as u32);
        Change::SetVerdict {
            sample: self.uri(found["image"].as_str().unwrap()),
            target: VerdictTarget { run: Some(RUN), box_index },
            verdict: Some(verdict),
            reviewer: Some(reviewer.to_owned()),
        }
    }

    fn verdicts(&self) -> Vec<Change> {
        let judged = self.boxes().iter().filter(|found| !found["verdict"].is_null());
        let verdict = |found: &Value| {
            let class = found["verdict"][1].as_str().unwrap_or_default();
            let verdict = match found["verdict"][0].as_str().unwrap() {
                "wrong" => Verdict::WrongClass(class.to_owned()),
                "moved" => {
                    let bounds = serde_json::from_value(found["verdict"][2].clone()).unwrap();
                    Verdict::Moved(DrawnBox::new(class, bounds, [400, 400]).unwrap())
                }
                word => plain(word),
            };
            self.verdict(found, verdict, "Ann")
        };
        judged.map(verdict).collect()
    }

    /// The sample of the reference.
    fn sample(&self) -> Change {
        let sample = ReviewSample {
            by: SampleBy::Class,
            seed: 1,
            view: ViewSettings::default(),
            strata: serde_json::from_value(self.expected["sample"]["strata"].clone()).unwrap(),
            units: serde_json::from_value(self.expected["sample"]["units"].clone()).unwrap(),
        };
        let name = ReviewSample::name_in_project(RUN.0);
        Change::SetView { name, json: serde_json::to_string(&sample).unwrap() }
    }

    pub(crate) fn review(&self, command: &str, arguments: &[&str]) -> Output {
        spotcheck(&["review", command]).current_dir(self.folder.path()).args(arguments).output().unwrap()
    }

    #[track_caller]
    pub(crate) fn reviewed(&self, command: &str, arguments: &[&str]) -> Output {
        let output = self.review(command, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        output
    }

    #[track_caller]
    fn report(&self, project: &str, arguments: &[&str]) -> Value {
        let out = self.path("report.json");
        self.reviewed("report", &[&[project, "--out", "report.json", "--force"], arguments].concat());
        serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap()
    }

    /// The rows of a CSV file, without the header.
    pub(crate) fn rows(&self, name: &str) -> Vec<Vec<String>> {
        let mut reader = csv::Reader::from_path(self.path(name)).unwrap();
        reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
    }
}

fn plain(word: &str) -> Verdict {
    match word {
        "accept" => Verdict::Accept,
        "reject" => Verdict::Reject,
        _ => Verdict::Unsure,
    }
}

#[track_caller]
fn check(found: &Value, expected: &Value) {
    for key in ["precision", "low", "high"] {
        let (found, expected) = (found[key].as_f64().unwrap(), expected[key].as_f64().unwrap());
        assert!((found - expected).abs() < 1e-9, "{key}: {found}, expected {expected}");
    }
}

/// The precision and the acceptance rate of a part.
#[track_caller]
fn check_part(found: &Value, expected: &Value) {
    check(found, expected);
    let mut acceptance = found["acceptance"].clone();
    acceptance["precision"] = acceptance["rate"].take();
    check(&acceptance, &expected["acceptance"]);
}

#[test]
fn report_of_a_sample_matches_the_reference() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    bench.change("p.spotcheck", [vec![bench.sample()], bench.verdicts()].concat());
    let expected = &bench.expected["report"];
    let report = bench.report("p.spotcheck", &["--target-precision", "0.92"]);
    assert_eq!((&report["basis"], &report["by"]), (&"sample".into(), &"class".into()));
    assert_eq!((&report["sampled"], &report["waiting"]), (&140.into(), &0.into()));
    check_part(&report, &expected["total"]);
    for row in report["classes"].as_array().unwrap() {
        check_part(row, &expected["classes"][row["class"].as_str().unwrap()]);
    }
    let scores = report["scores"].as_array().unwrap();
    assert_eq!(scores.len(), 5);
    for row in scores {
        check_part(row, &expected["scores"][row["from"].to_string()]);
    }
    let min_scores = report["min_scores"].as_array().unwrap();
    let compared = min_scores.iter().filter(|at| at["min_score"].as_f64().unwrap() <= 0.9);
    let compared: Vec<()> =
        compared.map(|at| check(at, &expected["min_scores"][at["min_score"].to_string()])).collect();
    assert_eq!(compared.len(), 41);
    assert_eq!(report["target"]["min_score"], expected["min_score_for_92"]);
    assert_eq!(report["more_for_one_percent"], expected["more_for_one_percent"]);
    check(&bench.report("p.spotcheck", &["--min-score", "0.7"]), &expected["at_70"]);
    let below = bench.review("report", &["p.spotcheck", "--min-score", "0.4"]);
    assert_eq!(below.status.code(), Some(1));
    std::fs::create_dir(bench.path("images")).unwrap();
    let (_, page) = export(&bench, "report.html", &["--format", "report", "--target-precision", "0.92"]);
    let reached = format!("Precision 0.92 is reached at score ≥ {:.2}", expected["min_score_for_92"].as_f64().unwrap());
    let dog = &expected["classes"]["dog"]["acceptance"];
    let [rate, low, high] = ["precision", "low", "high"].map(|key| dog[key].as_f64().unwrap());
    for fact in [reached, format!("<td>{rate:.3} ({low:.3} to {high:.3})</td>")] {
        assert!(page.contains(&fact), "{fact} in {page}");
    }
    let kept = spotcheck(&["export", "p.spotcheck", "--format", "report", "--out", "report.html", "--filter", "fp"]);
    let refused = { kept }.current_dir(bench.folder.path()).output().unwrap();
    assert!(stderr(&refused).contains("--force"), "refused before the filter is read: {}", stderr(&refused));
}

#[test]
fn sample_judged_out_of_order_has_no_estimate() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    bench.change("p.spotcheck", vec![bench.sample()]);
    // From the highest score down to 0.8: random for this range of scores, and for no wider one.
    let sampled = bench.expected["sample"]["units"].as_array().unwrap();
    let is_sampled = |found: &Value| {
        sampled.iter().any(|unit| unit["image"] == found["image"] && unit["box"] == found["box"])
            && found["score"].as_f64().unwrap() >= 0.8
    };
    let judged = bench.boxes().iter().filter(|found| !found["verdict"].is_null());
    let verdicts = judged.zip(bench.verdicts()).filter(|(found, _)| is_sampled(found));
    bench.change("p.spotcheck", verdicts.map(|(_, verdict)| verdict).collect());
    let expected = &bench.expected["report"]["from_the_top"];
    check_part(&bench.report("p.spotcheck", &["--min-score", "0.8"]), &expected["at_80"]);
    for least in ["0.5", "0.7"] {
        let report = bench.report("p.spotcheck", &["--min-score", least]);
        let counts = &expected["counted"][least];
        assert_eq!([&report["judged"], &report["waiting"]], [&counts["judged"], &counts["waiting"]]);
        assert_eq!(report["withheld"], "out-of-order");
        for number in ["precision", "low", "high", "more_for_one_percent"] {
            assert!(report[number].is_null(), "{number} at {least}: {report}");
        }
        assert!(report["acceptance"]["rate"].is_null() && report["corrections"][0]["estimated"].is_null());
        assert!(report["notes"][0].as_str().unwrap().contains("in the order of the sample"), "{}", report["notes"]);
        let lowest = report["min_scores"][0]["min_score"].as_f64().unwrap();
        assert!(lowest > 0.7, "{lowest}");
    }
}

#[test]
fn estimate_stays_within_what_the_verdicts_rule_out() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    // Of all boxes, sampled completely, but the last dog.
    let frame: Vec<&Value> = bench.boxes().iter().filter(|found| found["score"].as_f64().unwrap() >= 0.5).collect();
    let of_class = |class: usize| frame.iter().filter(move |found| found["class"] == class).copied();
    let unit = |stratum: usize, found: &Value| serde_json::json!({"image": found["image"], "box": found["box"], "stratum": stratum});
    let units: Vec<Value> = (0..3).flat_map(|class| of_class(class).map(move |found| unit(class, found))).collect();
    let strata = (0..3).map(|class| {
        let count = of_class(class).count();
        serde_json::json!({"name": CLASSES[class], "population": count, "sampled": count})
    });
    let sample = ReviewSample {
        by: SampleBy::Class,
        seed: 1,
        view: ViewSettings::default(),
        strata: serde_json::from_value(strata.collect()).unwrap(),
        units: serde_json::from_value(units.into()).unwrap(),
    };
    let json = serde_json::to_string(&sample).unwrap();
    bench.change("p.spotcheck", vec![Change::SetView { name: ReviewSample::name_in_project(RUN.0), json }]);
    let count = frame.len();
    let ordered: Vec<&Value> = (0..3).flat_map(of_class).collect();
    // The first box is wrong, and all others are right.
    let word = |at: usize| plain(if at == 0 { "reject" } else { "accept" });
    let verdicts = ordered[..count - 1].iter().enumerate().map(|(at, found)| bench.verdict(found, word(at), "Ann"));
    bench.change("p.spotcheck", verdicts.collect());
    let report = bench.report("p.spotcheck", &[]);
    let number = |key: &str| report[key].as_f64().unwrap();
    let [least, most] = [2.0, 1.0].map(|wrong| 1.0 - wrong / count as f64);
    assert!(least <= number("low") && number("low") <= number("precision"), "{report}");
    assert!(number("precision") <= number("high") && number("high") <= most, "{report}");
}

#[test]
fn report_without_a_sample_is_clustered_by_image() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    bench.change("p.spotcheck", bench.verdicts());
    let report = bench.report("p.spotcheck", &["--min-score", "0.5"]);
    assert_eq!(report["basis"], "judged");
    assert!(report["notes"][0].as_str().unwrap().contains("not a random sample"));
    check(&report, &bench.expected["report"]["without_sample"]);
    assert!(report["more_for_one_percent"].is_null());
}

#[test]
fn report_of_drawn_images_matches_the_reference() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    bench.change("p.spotcheck", bench.verdicts());
    let expected = &bench.expected["report"]["drawn_images"];
    let sampled = [150, 100];
    let images = (0..250).map(|number| {
        let image = format!("{number:03}.png");
        let stratum = usize::from(number >= sampled[0]);
        let probability = f64::from(sampled[stratum]) / expected["populations"][stratum].as_f64().unwrap();
        serde_json::json!({"uri": bench.uri(&image), "name": image, "stratum": stratum, "probability": probability, "size_bytes": 1})
    });
    let images: Vec<Value> = images.collect();
    let stratum = |index: usize| serde_json::json!({"name": index.to_string(), "population": expected["populations"][index], "sampled": sampled[index]});
    let rest = serde_json::json!({
        "source": {"path": bench.path("images")}, "by": "prefix", "seed": 1,
        "strata": [stratum(0), stratum(1)], "images": images,
    });
    let list = format!("{{\"image_list\":1,{}", &rest.to_string()[1..]);
    std::fs::write(bench.path("drawn.json"), list).unwrap();
    let report = bench.report("p.spotcheck", &["--images", "drawn.json", "--min-score", "0.5"]);
    assert_eq!(report["basis"], "images");
    check(&report, &expected["expected"]);
    assert_eq!(report["more_for_one_percent"], expected["expected"]["more_for_one_percent"]);
}

#[test]
fn report_compares_verdicts_with_ground_truth() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let is_accepted = |found: &Value| !((found["score"].as_f64().unwrap() * 1000.0).round() as u32).is_multiple_of(3);
    let is_true = |image: &str| image.trim_end_matches(".png").parse::<u32>().unwrap() % 2 == 0;
    let judged: Vec<&Value> = bench.boxes().iter().filter(|found| found["score"].as_f64().unwrap() >= 0.5).collect();
    let word = |found: &Value| plain(if is_accepted(found) { "accept" } else { "reject" });
    bench.change("p.spotcheck", judged.iter().map(|found| bench.verdict(found, word(found), "Ann")).collect());
    // Each box in an even image is an object; the odd images show nothing.
    let lines = (0..250).map(|number| {
        let image = format!("{number:03}.png");
        let of_image = bench.boxes().iter().filter(|found| found["image"] == *image && is_true(&image));
        let label = |found: &Value| {
            let class = CLASSES[found["class"].as_u64().unwrap() as usize];
            serde_json::json!({"box": found["bounds"], "label": class})
        };
        let detections: Vec<Value> = of_image.map(label).collect();
        format!("{}\n", serde_json::json!({"image": image, "width": 400, "height": 400, "detections": detections}))
    });
    std::fs::write(bench.path("truth.jsonl"), lines.collect::<String>()).unwrap();
    let report = bench.report("p.spotcheck", &["--truth", "truth.jsonl"]);
    // Kappa of a table of two by two, in closed form.
    let check = |found: &Value, class: Option<usize>| {
        let of_class = judged.iter().filter(|found| class.is_none_or(|class| found["class"] == class));
        let mut table = [[0.0; 2]; 2];
        for found in of_class {
            table[usize::from(is_accepted(found))][usize::from(is_true(found["image"].as_str().unwrap()))] += 1.0;
        }
        let [[a, b], [c, d]] = table;
        assert!(a > 0.0 && b > 0.0 && c > 0.0 && d > 0.0);
        let kappa = 2.0 * (a * d - b * c) / ((a + b) * (b + d) + (a + c) * (c + d));
        assert_eq!((&found["compared"], &found["agreed"]), (&(a + b + c + d).into(), &(a + d).into()));
        assert!((found["kappa"].as_f64().unwrap() - kappa).abs() < 1e-9, "{found}, expected {kappa}");
    };
    // Counts as the report writes them.
    let as_numbers = |truth: &Value| {
        let number = |key: &str| truth[key].as_f64().unwrap();
        serde_json::json!({"compared": number("compared"), "agreed": number("agreed"), "kappa": number("kappa")})
    };
    check(&as_numbers(&report["truth"]), None);
    for row in report["classes"].as_array().unwrap() {
        let class = CLASSES.iter().position(|class| row["class"] == *class);
        check(&as_numbers(&row["truth"]), class);
    }
    let summary = bench.reviewed("report", &["p.spotcheck", "--truth", "truth.jsonl"]);
    assert!(String::from_utf8_lossy(&summary.stdout).contains("ground truth, cat: "));
    let missing = bench.review("report", &["p.spotcheck", "--truth", "missing.json"]);
    assert_eq!(missing.status.code(), Some(1));
    let lost = bench.review("report", &["p.spotcheck", "--truth", "truth.jsonl", "--out", "truth.jsonl", "--force"]);
    assert_eq!(lost.status.code(), Some(1));
}

#[test]
fn larger_sample_with_the_same_seed_contains_the_smaller() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let draw = |count: &str, by: &str, more: &[&str]| {
        let arguments = ["p.spotcheck", "--count", count, "--by", by, "--out", "s.csv", "--force"];
        bench.reviewed("sample", &[&arguments[..], more].concat());
        let rows = bench.rows("s.csv");
        rows.into_iter().map(|row| (row[0].clone(), row[1].clone(), row[5].clone())).collect::<Vec<_>>()
    };
    for by in ["random", "class", "score", "uncertain"] {
        let few = draw("40", by, &["--replace"]);
        assert_eq!(few.len(), 40);
        assert_eq!(draw("40", by, &[]), few, "the same sample needs no --replace");
        let units = |rows: &[(String, String, String)]| {
            rows.iter().map(|(image, index, _)| (image.clone(), index.clone())).collect::<BTreeSet<_>>()
        };
        let many = draw("80", by, &["--replace"]);
        assert_eq!(units(&many).len(), 80, "{by}");
        assert!(units(&few).is_subset(&units(&many)), "{by}");
        let probabilities = many.iter().map(|(_, _, probability)| 1.0 / probability.parse::<f64>().unwrap());
        let population = bench.boxes().iter().filter(|found| found["score"].as_f64().unwrap() >= 0.5).count();
        let estimated: f64 = probabilities.sum();
        assert!((estimated - population as f64).abs() < 1e-6, "{by}: {estimated}");
    }
    let other = bench.review("sample", &["p.spotcheck", "--count", "9", "--out", "t.csv"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(stderr(&other).contains("--replace") && !bench.path("t.csv").exists());
}

#[test]
fn exported_verdicts_are_imported_again() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    bench.change("p.spotcheck", bench.verdicts());
    bench.reviewed("export", &["p.spotcheck", "--out", "v.csv"]);
    bench.project("q.spotcheck");
    bench.reviewed("import", &["q.spotcheck", "v.csv"]);
    bench.reviewed("export", &["q.spotcheck", "--out", "w.csv"]);
    let rows = bench.rows("v.csv");
    assert_eq!(rows.len(), bench.verdicts().len());
    assert!(rows.iter().all(|row| row[8] == "Ann"));
    assert_eq!(rows, bench.rows("w.csv"));
    let again = bench.reviewed("import", &["q.spotcheck", "v.csv"]);
    assert!(stderr(&again).contains("imported 0 verdicts"), "{}", stderr(&again));
}

#[test]
fn verdicts_on_labels_and_complete_images_are_exchanged() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let given = |target, verdict| Change::SetVerdict {
        sample: bench.uri(image),
        target,
        verdict: Some(verdict),
        reviewer: Some("Ann".to_owned()),
    };
    let label =
        |class: &str| Verdict::Spurious(DrawnBox::new(class, [1.0, 2.5, 30.0, 40.0].into(), [400, 400]).unwrap());
    let label_target = |number| VerdictTarget { run: None, box_index: Some(number) };
    let before = bench.report("p.spotcheck", &[]);
    bench.change(
        "p.spotcheck",
        vec![
            given(label_target(0), label("cat")),
            given(label_target(1), label("fox")),
            given(VerdictTarget { run: Some(RUN), box_index: None }, Verdict::Complete),
        ],
    );
    assert_eq!(bench.report("p.spotcheck", &[]), before, "none of them judges a prediction");
    bench.reviewed("export", &["p.spotcheck", "--out", "v.csv"]);
    let rows = bench.rows("v.csv");
    let row = |verdict: &str, class: &str, edges: [&str; 4]| {
        let [x1, y1, x2, y2] = edges;
        [image, "", verdict, class, x1, y1, x2, y2, "Ann"].map(str::to_owned).to_vec()
    };
    let edges = ["1", "2.5", "30", "40"];
    assert_eq!(rows, [row("spurious", "cat", edges), row("spurious", "fox", edges), row("complete", "", [""; 4])]);
    bench.project("q.spotcheck");
    bench.change("q.spotcheck", vec![given(label_target(0), label("fox"))]);
    bench.reviewed("import", &["q.spotcheck", "v.csv"]);
    bench.reviewed("export", &["q.spotcheck", "--out", "w.csv"]);
    let words: BTreeSet<[String; 2]> =
        bench.rows("w.csv").into_iter().map(|row| [row[2].clone(), row[3].clone()]).collect();
    let expected = [["complete", ""], ["spurious", "cat"], ["spurious", "fox"]];
    assert_eq!(words, expected.map(|row| row.map(str::to_owned)).into());
    let args = ["export", "p.spotcheck", "--format", "jsonl", "--out", "p.jsonl"];
    let output = spotcheck(&args).current_dir(bench.folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = std::fs::read_to_string(bench.path("p.jsonl")).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let judged: Vec<Value> = lines.filter(|line| !line["wrong_labels"].is_null()).collect();
    assert_eq!(judged.len(), 1);
    assert_eq!(judged[0]["verdict"], "complete");
    let first = serde_json::json!({"class": "cat", "box": [1.0, 2.5, 30.0, 40.0]});
    assert_eq!(judged[0]["wrong_labels"][0], first);
}

#[test]
fn images_back_to_the_labeler_are_exchanged_and_left_out_of_labels() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    bench.change("p.spotcheck", vec![bench.verdict(&bench.boxes()[0], Verdict::Accept, "Ann")]);
    let before = bench.report("p.spotcheck", &[]);
    std::fs::write(bench.path("v.csv"), format!("image,box,verdict\n{image},,returned\n{image},0,returned\n")).unwrap();
    let output = bench.review("import", &["p.spotcheck", "v.csv", "--replace"]);
    assert_eq!(output.status.code(), Some(3), "a box does not go back to the labeler");
    assert!(stderr(&output).contains("line 3: "), "{}", stderr(&output));
    assert_eq!(bench.report("p.spotcheck", &[]), before, "it judges no prediction");
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv"]);
    let words: Vec<String> = bench.rows("w.csv").into_iter().map(|row| row[2].clone()).collect();
    assert_eq!(words, ["returned", "accept"]);
    for (verdicts, has_it) in [("all", true), ("without-rejected", false), ("corrected", false)] {
        let (output, coco) = export(&bench, "c.json", &["--format", "coco", "--verdicts", verdicts]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(coco.contains(&format!("\"{image}\"")), has_it, "{verdicts}");
        assert_eq!(stderr(&output).contains("1 image skipped because marked as back to labeler"), !has_it);
    }
    let (_, lines) = export(&bench, "c.jsonl", &["--format", "jsonl", "--filter", "verdict:returned"]);
    let line: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(line["verdict"], "returned");
}

#[test]
fn marks_of_an_image_are_no_rivals_of_its_verdict() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let import = |words: &[&str], more: &[&str]| {
        let rows: Vec<String> = words.iter().map(|word| format!("{image},,{word}\n")).collect();
        std::fs::write(bench.path("v.csv"), format!("image,box,verdict\n{}", rows.concat())).unwrap();
        let output = bench.review("import", &[&["p.spotcheck", "v.csv"], more].concat());
        bench.reviewed("export", &["p.spotcheck", "--out", "w.csv", "--force"]);
        let [row] = &bench.rows("w.csv")[..] else { panic!("one verdict") };
        (output.status.code(), row[2].clone())
    };
    let check = |words: &[&str], more: &[&str], code: i32, left: &str| {
        assert_eq!(import(words, more), (Some(code), left.to_owned()), "{words:?}");
    };
    check(&["complete"], &[], 0, "complete");
    check(&["accept"], &[], 0, "accept");
    check(&["complete"], &[], 0, "accept");
    check(&["reject"], &[], 3, "accept");
    check(&["complete", "accept"], &[], 0, "accept");
    check(&["returned"], &[], 3, "accept");
    check(&["returned", "accept"], &["--replace"], 3, "returned");
    for word in ["accept", "complete"] {
        check(&[word], &[], 3, "returned");
    }
    check(&["accept"], &["--replace"], 0, "accept");
    check(&["accept", "accept"], &[], 3, "accept");
}

#[test]
fn wrong_labels_are_exchanged_with_any_run() {
    let bench = Bench::new();
    // The second run has no prediction of the image.
    let (empty, label) = (RunId(2), DrawnBox::new("cat", [1.0, 2.5, 30.0, 40.0].into(), [400, 400]).unwrap());
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let judged = Change::SetVerdict {
        sample: bench.uri(image),
        target: VerdictTarget { run: None, box_index: Some(0) },
        verdict: Some(Verdict::Spurious(label)),
        reviewer: Some("Ann".to_owned()),
    };
    for (project, changes) in [("p.spotcheck", vec![judged]), ("q.spotcheck", Vec::new())] {
        bench.project(project);
        let first = bench.open(project).runs().unwrap().remove(0);
        let second = RunInfo { id: empty, name: "second run".to_owned(), ..first };
        bench.change(project, [vec![Change::AddRun(Box::new(second))], changes].concat());
    }
    let exported = |project: &str, run: &str| {
        bench.reviewed("export", &[project, "--run", run, "--out", "v.csv", "--force"]);
        bench.rows("v.csv")
    };
    let rows = exported("p.spotcheck", "2");
    assert_eq!(rows, exported("p.spotcheck", "1"));
    assert_eq!(rows.len(), 1);
    for run in ["2", "1", "2"] {
        bench.reviewed("import", &["q.spotcheck", "v.csv", "--run", run]);
        assert_eq!(exported("q.spotcheck", run), rows);
    }
}

#[test]
fn wrong_labels_are_clipped_to_the_image() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    // The images are 400 × 400, also for a run that has no predictions of its own.
    let first = bench.open("p.spotcheck").runs().unwrap().remove(0);
    let second = RunInfo { id: RunId(2), name: "second run".to_owned(), ..first };
    bench.change("p.spotcheck", vec![Change::AddRun(Box::new(second))]);
    let rows = "image,box,verdict,right_class,x1,y1,x2,y2\n\
        000.png,,spurious,cat,-5,10,30,900\n\
        000.png,,spurious,cat,400,10,430,40\n\
        000.png,0,spurious,cat,1,10,30,40\n";
    std::fs::write(bench.path("v.csv"), rows).unwrap();
    for run in ["1", "2"] {
        let output = bench.review("import", &["p.spotcheck", "v.csv", "--run", run]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(!text.contains("line 2: ") && text.contains("line 3: ") && text.contains("line 4: "), "{text}");
        bench.reviewed("export", &["p.spotcheck", "--run", run, "--out", "w.csv", "--force"]);
        let [row] = &bench.rows("w.csv")[..] else { panic!("one label") };
        assert_eq!(row[1..8], ["", "spurious", "cat", "0", "10", "30", "400"]);
    }
}

#[test]
fn unusable_rows_are_rejected_by_line() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let rows = [
        format!("{image},0,accept,,,,,,"),
        "missing.png,0,accept,,,,,,".to_owned(),
        format!("{image},99,accept,,,,,,"),
        format!("{image},0,perfect,,,,,,"),
        format!("{image},0,reject,,,,,,"),
        format!("{image},,wrong,,,,,,"),
        format!("{image},,added,dog,1,2,1,9,"),
        format!("{image},,added,dog,1,2,30,40,Bob"),
        format!("{image},,,,,,,,"),
    ];
    let header = "\u{feff}image,box,verdict,right_class,x1,y1,x2,y2,reviewer\n";
    std::fs::write(bench.path("v.csv"), header.to_owned() + &rows.join("\n")).unwrap();
    let output = bench.review("import", &["p.spotcheck", "v.csv", "--reviewer", "Ann"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for line in [3, 4, 5, 6, 7, 8] {
        assert!(text.contains(&format!("line {line}: ")), "{line}: {text}");
    }
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv"]);
    let words: Vec<[String; 2]> = bench.rows("w.csv").into_iter().map(|row| [row[2].clone(), row[8].clone()]).collect();
    assert_eq!(words, [["accept", "Ann"], ["added", "Bob"]]);
    assert_eq!(bench.report("p.spotcheck", &[])["added"][0]["class"], "dog");

    std::fs::write(bench.path("v.csv"), format!("verdict,image,box\nreject,{image},0\n")).unwrap();
    let conflict = bench.review("import", &["p.spotcheck", "v.csv"]);
    assert_eq!(conflict.status.code(), Some(3));
    bench.reviewed("import", &["p.spotcheck", "v.csv", "--replace"]);
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv", "--force"]);
    assert_eq!(bench.rows("w.csv")[0][2], "reject");
    // Without the boxes, these would be verdicts on images.
    for columns in ["a,b\n1,2\n".to_owned(), format!("image,verdict\n{image},reject\n")] {
        std::fs::write(bench.path("v.csv"), columns).unwrap();
        assert_eq!(bench.review("import", &["p.spotcheck", "v.csv"]).status.code(), Some(1));
    }
    let class = CLASSES[bench.boxes()[0]["class"].as_u64().unwrap() as usize].to_uppercase();
    std::fs::write(bench.path("v.csv"), format!("Image,BOX,Verdict,right_class\n{image},0,wrong,{class}\n")).unwrap();
    let same = bench.review("import", &["p.spotcheck", "v.csv", "--replace"]);
    assert_eq!(same.status.code(), Some(3), "{}", stderr(&same));
    assert!(stderr(&same).contains("line 2: "), "{}", stderr(&same));
}

#[test]
fn added_boxes_are_edited_and_removed_by_index() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let count = bench.boxes().iter().filter(|found| found["image"] == image).count();
    let header = "image,box,verdict,right_class,x1,y1,x2,y2,reviewer\n";
    let import = |rows: &str, delimiter: &str| {
        std::fs::write(bench.path("v.csv"), (header.to_owned() + rows).replace(',', delimiter)).unwrap();
        bench.review("import", &["p.spotcheck", "v.csv", "--replace"])
    };
    let drawn = |name: &str| {
        bench.reviewed("export", &["p.spotcheck", "--out", name, "--force"]);
        bench.rows(name).into_iter().map(|row| (row[1].clone(), row[3].clone(), row[8].clone())).collect::<Vec<_>>()
    };
    let row = |index: usize, class: &str, reviewer: &str| {
        ((count + index).to_string(), class.to_owned(), reviewer.to_owned())
    };
    let added = ["dog", "cat", "fox"].map(|class| format!("{image},,added,{class},1,2,30,40,{class}'s\n")).concat();
    assert!(import(&added, ",").status.success());
    assert_eq!(drawn("a.csv"), [row(0, "dog", "dog's"), row(1, "cat", "cat's"), row(2, "fox", "fox's")]);
    // Excel separates by semicolons or tabs in some countries, and writes decimal commas.
    let edited = format!("{image},{},added,bird,1,2,30,41.5,Bob\n", count + 1);
    for delimiter in [";", "\t"] {
        let output = import(&edited.replace("41.5", "41.25"), delimiter);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    assert_eq!(drawn("a.csv")[1], row(1, "bird", "Bob"));
    let output = import(&format!("{image},{count},reject,,,,,,\n"), ",");
    assert!(stderr(&output).contains("removed 1 added box,"), "{}", stderr(&output));
    assert_eq!(drawn("a.csv"), [row(0, "bird", "Bob"), row(1, "fox", "fox's")]);
    let output = import(&format!("{image},{count},accept,,,,,,\n"), ",");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn sample_of_another_run_is_rejected() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    bench.reviewed("sample", &["p.spotcheck", "--count", "3", "--out", "s.csv"]);
    let text = std::fs::read_to_string(bench.path("s.csv")).unwrap();
    let judged = text.replace(",,,\r\n", ",accept,,\r\n");
    let [_, row, ..] = &bench.rows("s.csv")[..] else { panic!("{text}") };
    let class = CLASSES.iter().find(|class| **class != row[2]).unwrap();
    for (old, new) in
        [(format!(",{},{}", row[2], row[3]), format!(",{class},{}", row[3])), (row[3].clone(), "0.3".to_owned())]
    {
        std::fs::write(bench.path("s.csv"), judged.replacen(&old, &new, 1)).unwrap();
        let output = bench.review("import", &["p.spotcheck", "s.csv", "--replace"]);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("another run"), "{}", stderr(&output));
    }
    std::fs::write(bench.path("s.csv"), judged).unwrap();
    bench.reviewed("import", &["p.spotcheck", "s.csv", "--replace"]);
}

/// An export of `p.spotcheck`, and its text.
fn export(bench: &Bench, out: &str, arguments: &[&str]) -> (Output, String) {
    let mut command = spotcheck(&["export", "p.spotcheck", "--force", "--out", out]);
    let output = command.current_dir(bench.folder.path()).args(arguments).output().unwrap();
    let text = std::fs::read_to_string(bench.path(out)).unwrap_or_default();
    (output, text)
}

#[test]
fn ids_of_new_classes_do_not_depend_on_the_filter() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let [first, .., last] = &bench.boxes()[..] else { panic!() };
    let wrong = |found, class: &str| bench.verdict(found, Verdict::WrongClass(class.to_owned()), "Ann");
    bench.change("p.spotcheck", vec![wrong(first, "zebra"), wrong(last, "ape")]);
    let name = format!("name:{}", last["image"].as_str().unwrap());
    let other = format!("name:{}", first["image"].as_str().unwrap());
    for filter in [&name, &other, "boxes>=0"] {
        let (output, coco) = export(&bench, "c.json", &["--format", "coco", "--filter", filter]);
        assert!(output.status.success(), "{}", stderr(&output));
        let coco: Value = serde_json::from_str(&coco).unwrap();
        let id = |name: &str| {
            let categories = coco["categories"].as_array().unwrap();
            categories.iter().find(|category| category["name"] == name).unwrap()["id"].clone()
        };
        assert_eq!([id("zebra"), id("ape")], [Value::from(3), Value::from(4)], "{filter}");
    }
    for format in ["csv", "jsonl"] {
        let (refused, _) = export(&bench, "c.out", &["--format", format, "--model-classes"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("--model-classes"), "{}", stderr(&refused));
    }
}

#[test]
fn conflicting_options_are_refused_before_the_project_is_read() {
    let bench = Bench::new();
    for (format, option) in [
        ("csv", &["--target-precision", "0.9"][..]),
        ("yolo", &["--target-precision", "0.9"]),
        ("voc", &["--yolo-scores"]),
        ("coco", &["--with-images"]),
        ("jsonl", &["--image-kind", "png"]),
        ("images", &["--yolo-scores"]),
        ("csv", &["--of", "boxes"]),
        ("coco", &["--verdicts", "corrected", "--all-boxes"]),
        ("report", &["--verdicts", "corrected"]),
        ("embeddings", &["--filter", "class:cat"]),
        ("embeddings", &["--min-score", "0.5"]),
    ] {
        let (output, _) = export(&bench, "c.out", &[&["--format", format], option].concat());
        assert_eq!(output.status.code(), Some(2), "{option:?}: {}", stderr(&output));
        let named = if format == "report" { "corrected labels" } else { option[0] };
        let is_of_others =
            ["--target-precision", "--yolo-scores", "--with-images", "--image-kind"].contains(&option[0]);
        let given = if is_of_others { format!("--format {format}") } else { String::new() };
        assert!(stderr(&output).contains(named) && stderr(&output).contains(&given), "{}", stderr(&output));
        assert!(!bench.path("c.out").exists());
    }
    let (table, _) = export(&bench, "c.csv", &["--format", "embeddings"]);
    assert_eq!(table.status.code(), Some(2), "{}", stderr(&table));
}

#[test]
fn new_classes_keep_their_ids() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let give = |index: u32, class: Option<&str>| {
        let target = VerdictTarget { run: Some(RUN), box_index: Some(index) };
        let verdict = class.map(|class| Verdict::WrongClass(class.to_owned()));
        let given = Change::SetVerdict { sample: bench.uri(image), target, verdict, reviewer: None };
        bench.change("p.spotcheck", vec![given]);
    };
    let ids = || {
        let (output, coco) = export(&bench, "c.json", &["--format", "coco", "--all-boxes"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let coco: Value = serde_json::from_str(&coco).unwrap();
        let new = coco["categories"].as_array().unwrap().iter().skip(CLASSES.len());
        new.map(|category| format!("{} {}", category["id"], category["name"].as_str().unwrap())).collect::<Vec<_>>()
    };
    give(0, Some("zebra"));
    assert_eq!(ids(), ["3 zebra"]);
    give(1, Some("ape"));
    assert_eq!(ids(), ["3 zebra", "4 ape"]);
    give(0, Some("cat"));
    assert_eq!(ids(), ["3 zebra", "4 ape"], "the id of a class that is no longer used is not reused");
    give(1, None);
    assert_eq!(ids(), Vec::<String>::new());
    give(1, Some("ape"));
    give(0, Some("zebra"));
    assert_eq!(ids(), ["3 zebra", "4 ape"]);
}

#[test]
fn judged_images_with_changed_files_are_counted() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let [first, .., last] = &bench.boxes()[..] else { panic!() };
    bench.change("p.spotcheck", vec![bench.verdict(first, Verdict::Accept, "Ann")]);
    std::fs::create_dir(bench.path("images")).unwrap();
    for found in [first, last] {
        std::fs::write(bench.path("images").join(found["image"].as_str().unwrap()), "another size").unwrap();
    }
    let (output, _) = export(&bench, "c.csv", &["--format", "csv"]);
    let text = stderr(&output);
    assert!(text.contains("2 predictions skipped") && text.contains("1 judged image skipped"), "{text}");
}

#[test]
fn standard_output_takes_everything_except_projects() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    bench.change("p.spotcheck", bench.verdicts());
    let report = bench.reviewed("report", &["p.spotcheck", "--out", "-"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["basis"], "judged");
    for (command, arguments) in [("sample", &["p.spotcheck", "--count", "3"][..]), ("export", &["p.spotcheck"])] {
        let piped = bench.reviewed(command, &[arguments, &["--out", "-"]].concat());
        bench.reviewed(command, &[arguments, &["--out", "o.csv", "--force"]].concat());
        assert!(piped.stdout == std::fs::read(bench.path("o.csv")).unwrap(), "{command}");
        assert!(piped.stdout.starts_with(b"image,box,"), "{command}");
    }
    let merged = bench.review("merge", &["p.spotcheck", "p.spotcheck", "--out", "-"]);
    assert_eq!(merged.status.code(), Some(1));
    assert!(stderr(&merged).contains("project") && merged.stdout.is_empty(), "{}", stderr(&merged));
    assert!(!bench.path("-").exists() && !bench.path("-.spotcheck").exists());
}

#[test]
fn merged_project_has_the_verdicts_of_both() {
    let bench = Bench::new();
    bench.project("a.spotcheck");
    bench.project("b.spotcheck");
    let second = bench.expected["second"].as_array().unwrap();
    let key = |row: &Value| (row["image"].clone(), row["box"].clone());
    let verdict_of = |row: &Value| {
        let found = bench.boxes().iter().find(|found| key(found) == key(row)).unwrap();
        found["verdict"][0].as_str().unwrap_or_default()
    };
    let first = second.iter().map(|row| bench.verdict(row, plain(verdict_of(row)), "Ann"));
    bench.change("a.spotcheck", first.collect());
    let theirs = second.iter().map(|row| bench.verdict(row, plain(row["verdict"].as_str().unwrap()), "Bob"));
    bench.change("b.spotcheck", theirs.collect());
    let only = bench.boxes().iter().find(|found| found["score"].as_f64().unwrap() < 0.5).unwrap();
    bench.change("b.spotcheck", vec![bench.verdict(only, Verdict::Accept, "Bob")]);

    let differ = second.iter().filter(|row| verdict_of(row) != row["verdict"]).count();
    for (prefer, count) in
        [("none", second.len() + 1 - differ), ("first", second.len() + 1), ("second", second.len() + 1)]
    {
        let arguments = ["a.spotcheck", "b.spotcheck", "--out", "c.spotcheck", "--conflicts", "c.csv", "--force"];
        let output = bench.reviewed("merge", &[&arguments[..], &["--prefer", prefer]].concat());
        for (name, kappa) in bench.expected["kappa"].as_object().unwrap() {
            let line = format!("kappa, {name}: {:.3} ", kappa.as_f64().unwrap());
            assert!(stderr(&output).contains(&line), "{line}: {}", stderr(&output));
        }
        assert_eq!(bench.rows("c.csv").len(), differ);
        assert!(stderr(&output).contains(bench.path("c.spotcheck").to_str().unwrap()), "{}", stderr(&output));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |name: &str| bench.path(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode("c.spotcheck"), mode("a.spotcheck"));
        }
        bench.reviewed("export", &["c.spotcheck", "--out", "v.csv", "--force"]);
        let rows = bench.rows("v.csv");
        assert_eq!(rows.len(), count, "{prefer}");
        let bobs = rows.iter().filter(|row| row[8] == "Bob").count();
        assert_eq!(bobs, if prefer == "second" { differ + 1 } else { 1 }, "{prefer}");
    }
    let existing = bench.review("merge", &["a.spotcheck", "b.spotcheck", "--out", "c.spotcheck"]);
    assert_eq!(existing.status.code(), Some(1));
    let input = bench.review("merge", &["a.spotcheck", "b.spotcheck", "--out", "a.spotcheck", "--force"]);
    assert_eq!(input.status.code(), Some(1));
}

#[test]
fn complete_images_are_no_conflict_with_a_verdict() {
    let bench = Bench::new();
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let cases = [
        (["complete", "accept"], "accept", 0),
        (["accept", "complete"], "accept", 0),
        (["complete", "returned"], "", 1),
        (["returned", "accept"], "", 1),
        (["complete", "complete"], "complete", 0),
    ];
    for (words, merged, conflicts) in cases {
        for (name, word) in ["a", "b"].into_iter().zip(words) {
            let project = format!("{name}.spotcheck");
            bench.project(&project);
            std::fs::write(bench.path("v.csv"), format!("image,box,verdict,reviewer\n{image},,{word},{name}\n"))
                .unwrap();
            bench.reviewed("import", &[&project, "v.csv", "--replace"]);
        }
        let arguments = ["a.spotcheck", "b.spotcheck", "--out", "c.spotcheck", "--conflicts", "c.csv", "--force"];
        bench.reviewed("merge", &arguments);
        assert_eq!(bench.rows("c.csv").len(), conflicts, "{words:?}");
        bench.reviewed("export", &["c.spotcheck", "--out", "w.csv", "--force"]);
        let left: Vec<Vec<String>> = bench.rows("w.csv");
        assert_eq!(left.first().map_or("", |row| &row[2]), merged, "{words:?}");
        let giver = words.iter().position(|word| *word == merged);
        assert_eq!(left.first().map(|row| &*row[8]), giver.map(|at| ["a", "b"][at]), "{words:?}");
    }
}

#[test]
fn second_pass_is_blind_and_merges_with_the_first() {
    let bench = Bench::new();
    bench.project("a.spotcheck");
    let found = &bench.boxes()[0];
    let image = bench.uri(found["image"].as_str().unwrap());
    let note = Change::SetNote { sample: image.clone(), text: "surely a secret opinion".to_owned() };
    let tags = Change::SetTags { sample: image.clone(), tags: vec!["secret-tag".to_owned()] };
    bench.change("a.spotcheck", [vec![bench.sample(), note, tags], bench.verdicts()].concat());
    bench.reviewed("second-pass", &["a.spotcheck", "--out", "b.spotcheck"]);
    let file = std::fs::read(bench.path("b.spotcheck")).unwrap();
    let contains = |text: &str| file.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(!contains("secret"), "nothing of the first reviewer is in the file");
    let report = bench.report("b.spotcheck", &[]);
    assert_eq!((&report["basis"], &report["judged"]), (&"sample".into(), &0.into()), "the same sample");
    assert_eq!(bench.report("a.spotcheck", &[])["sampled"], report["sampled"]);
    let existing = bench.review("second-pass", &["a.spotcheck", "--out", "b.spotcheck"]);
    assert_eq!(existing.status.code(), Some(1));
    let input = bench.review("second-pass", &["a.spotcheck", "--out", "a.spotcheck", "--force"]);
    assert_eq!(input.status.code(), Some(1));
    let judged: Vec<&Value> = bench.boxes().iter().filter(|found| !found["verdict"].is_null()).collect();
    let second = judged[..20].iter().map(|found| bench.verdict(found, Verdict::Accept, "Bob"));
    bench.change("b.spotcheck", second.collect());
    let differ = judged[..20].iter().filter(|found| found["verdict"][0] != "accept").count();
    for pair in [["a.spotcheck", "b.spotcheck"], ["b.spotcheck", "a.spotcheck"]] {
        let more = ["--out", "c.spotcheck", "--conflicts", "c.csv", "--force"];
        let output = bench.reviewed("merge", &[&pair[..], &more].concat());
        assert!(stderr(&output).contains(" 20 in both, "), "{}", stderr(&output));
        assert!(stderr(&output).contains("Cohen's kappa, all: "), "{}", stderr(&output));
        assert_eq!(bench.rows("c.csv").len(), differ);
        let request =
            OpenRequest { path: &bench.path("c.spotcheck"), root: None, mode: OpenMode::Read, program: "a test" };
        let views = Project::open(&request, |_| ()).unwrap().project.views().unwrap();
        assert_ne!(views.get("second-pass").map(String::as_str), Some("true"), "the merged project is not blind");
    }
}

#[test]
fn right_and_wrong_labels_are_in_conflict() {
    let bench = Bench::new();
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let count = bench.boxes().iter().filter(|found| found["image"] == image).count() as u32;
    let drawn = |class: &str, left: f32| DrawnBox::new(class, [left, 2.5, 90.0, 40.0].into(), [400, 400]).unwrap();
    let right = |index: u32, class: &str, left: f32| {
        (VerdictTarget { run: Some(RUN), box_index: Some(count + index) }, Verdict::Added(drawn(class, left)))
    };
    let wrong = |index: u32, class: &str, left: f32| {
        (VerdictTarget { run: None, box_index: Some(index) }, Verdict::Spurious(drawn(class, left)))
    };
    let project = |name: &str, reviewer: &str, verdicts: Vec<(VerdictTarget, Verdict)>| {
        bench.project(name);
        let given = |(target, verdict)| Change::SetVerdict {
            sample: bench.uri(image),
            target,
            verdict: Some(verdict),
            reviewer: Some(reviewer.to_owned()),
        };
        bench.change(name, verdicts.into_iter().map(given).collect());
    };
    // Both agree on the labels from 20 on, and differ on those from 1, 10 and 30 on.
    let ann = vec![right(0, "cat", 1.0), right(1, "dog", 10.0), right(2, "cat", 20.0), wrong(0, "cat", 30.0)];
    project("a.spotcheck", "Ann", ann);
    let bob = vec![wrong(4, "cat", 1.0), right(0, "bird", 1.0), wrong(5, "dog", 10.0), right(1, "cat", 20.0)];
    project("b.spotcheck", "Bob", [bob, vec![right(2, "cat", 30.0)]].concat());
    for (prefer, expected) in [
        ("first", vec!["cat 1 Ann", "dog 10 Ann", "cat 20 Ann", "bird 1 Bob", "-cat 30 Ann"]),
        ("second", vec!["cat 20 Ann", "bird 1 Bob", "cat 30 Bob", "-cat 1 Bob", "-dog 10 Bob"]),
        ("none", vec!["cat 20 Ann", "bird 1 Bob"]),
    ] {
        let arguments = ["a.spotcheck", "b.spotcheck", "--out", "c.spotcheck", "--conflicts", "c.csv", "--force"];
        let output = bench.reviewed("merge", &[&arguments[..], &["--prefer", prefer]].concat());
        let text = stderr(&output);
        assert!(text.contains("1 verdict only in the second project, 4 in both, 3 conflicts"), "{text}");
        assert!(!text.contains("kappa"), "{text}");
        let conflicts =
            bench.rows("c.csv").into_iter().map(|row| [&row[1], &row[2], &row[4], &row[9]].map(Clone::clone));
        let expected_conflicts =
            [["", "spurious", "30", "added"], ["", "added", "1", "spurious"], ["", "added", "10", "spurious"]];
        let expected_conflicts = expected_conflicts.map(|row| row.map(str::to_owned));
        assert_eq!(conflicts.collect::<BTreeSet<_>>(), expected_conflicts.into(), "{prefer}");
        bench.reviewed("export", &["c.spotcheck", "--out", "v.csv", "--force"]);
        let rows = bench.rows("v.csv");
        let added: Vec<&str> = rows.iter().filter(|row| row[2] == "added").map(|row| &*row[1]).collect();
        let indices: Vec<String> = (count..).take(added.len()).map(|index| index.to_string()).collect();
        assert_eq!(added, indices, "added boxes follow each other");
        let name = |row: &Vec<String>| {
            format!("{}{} {} {}", if row[2] == "spurious" { "-" } else { "" }, row[3], row[4], row[8])
        };
        let found: BTreeSet<String> = rows.iter().map(name).collect();
        assert_eq!(found, expected.into_iter().map(str::to_owned).collect(), "{prefer}");
    }
}

#[test]
fn other_predictions_are_not_merged() {
    let bench = Bench::new();
    bench.project("a.spotcheck");
    bench.project("b.spotcheck");
    let image = bench.boxes()[0]["image"].as_str().unwrap();
    let mut other = bench.prediction(image);
    if let Ok(Prediction { content: PredictionContent::Detections(found), .. }) = &mut other.result {
        found.remove(0);
    }
    bench.change("b.spotcheck", vec![Change::Predictions { run: RUN, predictions: vec![other] }]);
    let output = bench.review("merge", &["a.spotcheck", "b.spotcheck", "--out", "c.spotcheck"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(image), "{}", stderr(&output));
    std::fs::write(bench.path("d.spotcheck"), "not a project").unwrap();
    let damaged = bench.review("merge", &["a.spotcheck", "d.spotcheck", "--out", "c.spotcheck"]);
    assert_eq!(damaged.status.code(), Some(1));
    let left: Vec<_> =
        std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_str().unwrap().contains("c.spotcheck")), "{left:?}");
}
