//! What a project keeps, whatever happens to its file.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::schema::TABLES;
use super::*;
use crate::domain::{
    ClassScore, Detection, DeviceChoice, DrawnBox, FileStamp, InferenceLocation, JudgedSample, KeepRule, LabelSet,
    Prediction, PredictionContent, RunInfo, RunKey, RunnerUp, SamplePrediction, SampleUri, Verdict, VerdictTarget,
};
use crate::tasks::{ProgressUnit, TaskControl};

/// Long enough for the slowest machine; only reached if a test fails.
const PATIENCE: Duration = Duration::from_mins(1);

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("photos.spotcheck")
    }

    fn open(&self) -> Opened {
        open_at(&self.path(), OpenMode::Write).unwrap().0
    }

    /// Does something with the project, and closes it.
    fn with<T>(&self, work: impl FnOnce(&Project) -> T) -> T {
        let opened = self.open();
        assert_eq!(opened.project.access(), &Access::Writer);
        work(&opened.project)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn open_at(path: &Path, mode: OpenMode) -> Result<(Opened, Receiver<SaveEvent>), StoreError> {
    let (sender, events) = channel();
    let request = OpenRequest { path, root: Some("/photos"), mode, program: "a test" };
    let opened = Project::open(&request, move |event| drop(sender.send(event)))?;
    Ok((opened, events))
}

fn run_info(id: RunId, name: &str) -> RunInfo {
    let card = serde_json::json!({
        "id": "toy", "name": "Toy", "task": "detection", "license": "unknown", "origin": "a test",
        "file": { "name": "model.onnx", "bytes": 1, "sha256": "00" },
        "input": { "layout": "nhwc", "type": "uint8", "mean": [0.1, 0.2, 0.3], "resize": { "keep": {} } },
        "output": { "detection": {
            "boxes": "b", "labels": "l", "scores": "s", "box_format": "xyxy", "box_space": "model-pixels",
        } },
    });
    RunInfo {
        id,
        name: name.to_owned(),
        key: RunKey {
            model_id: "toy".to_owned(),
            weights_sha256: "00".to_owned(),
            device: DeviceChoice::Auto,
            batch: None,
            threads: Some(2),
            keep: KeepRule::default(),
            made: InferenceLocation::Here,
        },
        card: serde_json::from_value(card).unwrap(),
        labels: LabelSet::parse("1\tcat\n2\tdog\n90\ta \"quoted\" 고양이").unwrap(),
        created_ms: 1_700_000_000_000,
    }
}

fn add_run(project: &Project, name: &str) -> RunId {
    let id = project.new_run_id();
    let change = Change::AddRun(Box::new(run_info(id, name)));
    project.write(0, change).unwrap();
    id
}

fn stamp() -> FileStamp {
    FileStamp { size_bytes: 1234, modified_ns: Some(-5), etag: Some("9a0364b9e99bb480dd25e1f0284c8555-3".into()) }
}

fn prediction(boxes: &[(u32, f32, [f32; 4])]) -> Prediction {
    let labels = run_info(RunId(1), "").labels;
    let detection = |&(class_id, score, bounds): &(u32, f32, [f32; 4])| {
        Detection::new(bounds, class_id, labels.name(class_id), score)
    };
    Prediction::new([640, 480], PredictionContent::Detections(boxes.iter().map(detection).collect()))
}

fn stored(sample: &str, result: Result<Prediction, String>) -> SamplePrediction {
    SamplePrediction { sample: SampleUri::new(sample), stamp: stamp(), result }
}

fn predictions(run: RunId, predictions: Vec<SamplePrediction>) -> Change {
    Change::Predictions { run, predictions }
}

fn verdict(sample: &str, run: Option<RunId>, box_index: Option<u32>, verdict: Option<Verdict>) -> Change {
    Change::SetVerdict {
        sample: SampleUri::new(sample),
        target: VerdictTarget { run, box_index },
        verdict,
        reviewer: None,
    }
}

fn note(sample: &str, text: &str) -> Change {
    Change::SetNote { sample: SampleUri::new(sample), text: text.to_owned() }
}

fn tags(sample: &str, tags: &[&str]) -> Change {
    Change::SetTags { sample: SampleUri::new(sample), tags: tags.iter().map(|tag| (*tag).to_owned()).collect() }
}

fn notes_of(project: &Project) -> Vec<(String, String)> {
    let judged = project.judgments().unwrap().into_iter();
    judged
        .filter(|judged| !judged.note.is_empty())
        .map(|judged| (judged.sample.as_str().to_owned(), judged.note))
        .collect()
}

fn control() -> TaskControl {
    TaskControl::new(ProgressUnit::Images)
}

fn wait_for(events: &Receiver<SaveEvent>, wanted: impl Fn(&SaveEvent) -> bool) -> SaveEvent {
    loop {
        let event = events.recv_timeout(PATIENCE).expect("the event comes");
        if wanted(&event) {
            return event;
        }
    }
}

#[test]
fn project_round_trips() {
    let bench = Bench::new();
    let (run, other) = bench.with(|project| {
        let (run, other) = (add_run(project, "first"), add_run(project, "second"));
        let wolf = Verdict::WrongClass("wolf".to_owned());
        for change in [
            Change::RenameRun(other, "renamed".to_owned()),
            predictions(run, vec![stored("/photos/a.jpg", Ok(prediction(&[(1, 0.5, [1.0; 4])])))]),
            verdict("/photos/a.jpg", Some(run), Some(0), Some(wolf.clone())),
            verdict("/photos/a.jpg", Some(run), None, Some(Verdict::Accept)),
            verdict("/photos/b.jpg", None, None, Some(Verdict::Reject)),
            verdict("/photos/c.jpg", None, None, Some(Verdict::Unsure)),
            verdict("/photos/c.jpg", None, None, None),
            note("/photos/a.jpg", "blurred"),
            note("/photos/b.jpg", "soon gone"),
            note("/photos/b.jpg", ""),
            tags("/photos/a.jpg", &["night", "rain"]),
            tags("/photos/a.jpg", &["fog", "night"]),
            Change::SetView { name: "view".to_owned(), json: "{\"a\":1}".to_owned() },
            Change::SetView { name: "view".to_owned(), json: "{\"a\":2}".to_owned() },
        ] {
            project.write(1, change).unwrap();
        }
        (run, other)
    });
    let opened = bench.open();
    assert_eq!(opened.notes, Vec::<String>::new());
    let project = opened.project;
    assert_eq!(project.runs().unwrap(), [run_info(run, "first"), run_info(other, "renamed")]);
    let target = |run, box_index| VerdictTarget { run, box_index };
    let a = JudgedSample {
        sample: SampleUri::new("/photos/a.jpg"),
        verdicts: vec![
            (target(Some(run), None), Verdict::Accept),
            (target(Some(run), Some(0)), Verdict::WrongClass("wolf".to_owned())),
        ],
        note: "blurred".to_owned(),
        tags: vec!["fog".to_owned(), "night".to_owned()],
    };
    let b = JudgedSample {
        sample: SampleUri::new("/photos/b.jpg"),
        verdicts: vec![(target(None, None), Verdict::Reject)],
        note: String::new(),
        tags: Vec::new(),
    };
    assert_eq!(project.judgments().unwrap(), [a, b]);
    assert_eq!(project.views().unwrap()["view"], "{\"a\":2}");
}

#[test]
fn floats_and_failures_round_trip() {
    let odd = [f32::MIN_POSITIVE / 3.0, -0.0, f32::NAN, f32::NEG_INFINITY, 0.1 + 0.2, f32::MAX];
    let boxes: Vec<(u32, f32, [f32; 4])> =
        odd.iter().map(|&value| (90, value, [value, -value, 1e-20, value])).collect();
    let classes = Prediction {
        width: 1,
        height: u32::MAX,
        content: PredictionContent::Classes(vec![ClassScore { index: 7, label: "class 7".to_owned(), score: 0.3 }]),
        warnings: vec!["is damaged: “why”".to_owned()],
    };
    let bench = Bench::new();
    bench.with(|project| {
        let run = add_run(project, "run");
        let given = vec![
            stored("/photos/boxes.jpg", Ok(prediction(&boxes))),
            stored("/photos/none.jpg", Ok(prediction(&[]))),
            stored("/photos/classes.jpg", Ok(classes.clone())),
            stored("/photos/bad.jpg", Err("the file is truncated".to_owned())),
        ];
        project.write(1, predictions(run, given.clone())).unwrap();
        project.flush().unwrap();
        let bits = |prediction: &SamplePrediction| format!("{prediction:?}").replace("NaN", "nan");
        let samples: Vec<SampleUri> = given.iter().map(|given| given.sample.clone()).collect();
        let stored = project.predictions(run, &samples).unwrap();
        for (given, stored) in given.iter().zip(stored) {
            assert_eq!(bits(given), bits(&stored.unwrap()));
        }
        let stored = project.prediction(run, &samples[0]).unwrap().unwrap().unwrap();
        for (given, stored) in boxes.iter().zip(stored.detections()) {
            assert_eq!(given.1.to_bits(), stored.score.to_bits());
            assert_eq!(given.2[0].to_bits(), stored.bounds.x1.to_bits());
        }
        let mut warned = Vec::new();
        let control = TaskControl::new(ProgressUnit::Images);
        let read = project.each_summary(run, &control, |page| {
            let found = page.into_iter().filter_map(|row| row.result.ok());
            warned.extend(found.map(|summary| summary.warnings));
        });
        read.unwrap();
        assert_eq!(warned, [vec![], vec![], classes.warnings.clone()]);
        let unknown = SampleUri::new("/photos/unknown.jpg");
        assert_eq!(project.prediction(run, &unknown).unwrap(), None);
        assert_eq!(project.prediction(RunId(99), &samples[0]).unwrap(), None);
    });
}

#[test]
fn prediction_is_replaced_as_a_whole() {
    let project = Project::in_memory(Some("/photos"), |_| ()).unwrap();
    let run = add_run(&project, "run");
    let sample = SampleUri::new("/photos/a.jpg");
    for result in [Ok(prediction(&[(1, 0.5, [1.0; 4])])), Err("gone".to_owned()), Ok(prediction(&[]))] {
        let change = predictions(run, vec![stored(sample.as_str(), result.clone())]);
        project.write(1, change).unwrap();
        project.flush().unwrap();
        assert_eq!(project.prediction(run, &sample).unwrap(), Some(result));
    }
    let counts = project.prediction_counts(run).unwrap();
    assert_eq!((counts.predicted, counts.failed), (1, 0));
}

#[test]
fn deleted_run_loses_its_data_and_id() {
    let bench = Bench::new();
    let run = bench.with(|project| {
        let run = add_run(project, "run");
        let late = || predictions(run, vec![stored("/photos/a.jpg", Ok(prediction(&[(1, 0.5, [1.0; 4])])))]);
        let judged = || verdict("/photos/a.jpg", Some(run), Some(0), Some(Verdict::Accept));
        for change in [late(), judged(), Change::DeleteRun(run), late(), judged()] {
            project.write(1, change).unwrap();
        }
        run
    });
    bench.with(|project| {
        assert_eq!(project.runs().unwrap(), []);
        assert_eq!(project.judgments().unwrap(), []);
        assert_eq!(project.prediction(run, &SampleUri::new("/photos/a.jpg")).unwrap(), None);
        assert!(project.new_run_id() > run);
    });
}

#[test]
fn unsavable_change_is_reported_and_skipped() {
    let bench = Bench::new();
    let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
    let of_unknown_run = predictions(RunId(99), vec![stored("/photos/a.jpg", Err(String::new()))]);
    opened.project.write(1, of_unknown_run).unwrap();
    opened.project.write(2, note("/photos/a.jpg", "kept")).unwrap();
    let rejected = wait_for(&events, |event| !matches!(event, SaveEvent::Saved { .. }));
    assert!(matches!(rejected, SaveEvent::Rejected { ticket: 1, .. }), "{rejected:?}");
    wait_for(&events, |event| *event == SaveEvent::Saved { up_to: 2 });
    assert_eq!(notes_of(&opened.project).len(), 1);
}

#[test]
fn full_disk_is_reported_and_changes_saved_later() {
    let bench = Bench::new();
    let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
    let project = &opened.project;
    project.write(1, note("/photos/before.jpg", "saved")).unwrap();
    wait_for(&events, |event| *event == SaveEvent::Saved { up_to: 1 });
    limit_pages(project, 1);
    let long = "x".repeat(100_000);
    project.write(2, note("/photos/a.jpg", &long)).unwrap();
    let failed = wait_for(&events, |event| !matches!(event, SaveEvent::Saved { .. }));
    let SaveEvent::Failed { reason } = failed else { panic!("{failed:?}") };
    assert!(reason.contains("disk is full"), "{reason}");
    assert!(project.flush().unwrap_err().to_string().contains("full"));
    project.write(3, note("/photos/b.jpg", "later")).unwrap();
    assert_eq!(project.unsaved(), 2);
    assert_eq!(notes_of(project).len(), 1, "half a commit is never seen");
    limit_pages(project, 1_000_000);
    wait_for(&events, |event| *event == SaveEvent::Saved { up_to: 3 });
    assert_eq!(notes_of(project).len(), 3);
    project.flush().unwrap();
    assert_eq!(project.unsaved(), 0);
}

/// Rejects the next page that the file needs, as on a full disk.
fn limit_pages(project: &Project, pages: u32) {
    let connection = project.0.writing.as_ref().unwrap().connection.lock();
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
}

#[test]
fn copy_contains_unsaved_changes() {
    let bench = Bench::new();
    let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
    let run = add_run(&opened.project, "run");
    opened.project.flush().unwrap();
    limit_pages(&opened.project, 1);
    let long = "x".repeat(100_000);
    opened.project.write(2, note("/photos/a.jpg", &long)).unwrap();
    wait_for(&events, |event| matches!(event, SaveEvent::Failed { .. }));
    let copy = opened.project.save_as(&bench.folder.path().join("copy"), "a test").unwrap();
    drop(opened);
    let (opened, _) = open_at(&copy, OpenMode::Write).unwrap();
    assert_eq!(notes_of(&opened.project), [("/photos/a.jpg".to_owned(), long)]);
    assert_eq!(opened.project.runs().unwrap(), [run_info(run, "run")]);
}

#[test]
fn removed_project_file_can_be_saved_elsewhere() {
    let bench = Bench::new();
    let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
    opened.project.write(1, note("/photos/a.jpg", "before")).unwrap();
    opened.project.flush().unwrap();
    std::fs::remove_file(bench.path()).unwrap();
    opened.project.write(2, note("/photos/b.jpg", "after")).unwrap();
    let failed = wait_for(&events, |event| matches!(event, SaveEvent::Failed { .. }));
    assert!(format!("{failed:?}").contains("under another name"), "{failed:?}");
    let copy = bench.folder.path().join("elsewhere.spotcheck");
    let again = opened.project.save_as(&copy, "a test").unwrap();
    drop(opened);
    let (opened, _) = open_at(&again, OpenMode::Write).unwrap();
    assert_eq!(notes_of(&opened.project).len(), 2);
}

#[test]
fn canceled_copy_leaves_no_file() {
    let bench = Bench::new();
    let project = bench.open().project;
    for number in 0..50 {
        project.write(number, note(&format!("/photos/{number}.jpg"), &"x".repeat(10_000))).unwrap();
    }
    project.flush().unwrap();
    let files = || std::fs::read_dir(bench.folder.path()).unwrap().count();
    let (before, target) = (files(), bench.folder.path().join("second.spotcheck"));
    let control = TaskControl::new(ProgressUnit::Bytes);
    control.cancel();
    let canceled = project.start_second_pass(&target, "a test", &control);
    assert!(matches!(canceled, Err(StoreError::Cancelled(_))), "{canceled:?}");
    assert!(!target.exists());
    let control = TaskControl::new(ProgressUnit::Bytes);
    project.start_second_pass(&target, "a test", &control).unwrap();
    assert!(control.progress().total.unwrap() > 400_000);
    assert!(target.exists() && files() >= before);
}

#[test]
fn second_opener_reads_and_knows_the_writer() {
    let bench = Bench::new();
    let first = bench.open().project;
    let (second, _) = open_at(&bench.path(), OpenMode::Write).unwrap();
    let Access::ReadOnly { reason } = second.project.access() else { panic!("two writers") };
    let ReadOnlyReason::Held { is_this_process, .. } = reason else { panic!("{reason}") };
    assert!(is_this_process);
    let reason = reason.to_string();
    let process = format!("(a test, process {}", std::process::id());
    assert!(reason.contains(&process) && reason.contains(", since 2"), "{reason}");
    let refused = second.project.write(1, note("/photos/a.jpg", "lost?")).unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
    first.write(1, note("/photos/a.jpg", "seen")).unwrap();
    first.flush().unwrap();
    assert_eq!(notes_of(&second.project).len(), 1);
    drop(second);
    drop(first);
    assert_eq!(bench.names(), ["photos.spotcheck"], "nothing is left next to it");
    bench.with(|_| ());
}

#[test]
fn reader_does_not_block_writers() {
    let bench = Bench::new();
    bench.with(|project| project.write(1, note("/photos/a.jpg", "first")).unwrap());
    let (reader, _) = open_at(&bench.path(), OpenMode::Read).unwrap();
    bench.with(|project| project.write(1, note("/photos/b.jpg", "second")).unwrap());
    assert_eq!(notes_of(&reader.project).len(), 2);
    drop(reader);
    assert_eq!(bench.names(), ["photos.spotcheck"]);
    let missing = open_at(&bench.folder.path().join("none.spotcheck"), OpenMode::Read);
    assert!(matches!(missing, Err(StoreError::Io { .. })));
}

#[test]
fn project_in_a_read_only_folder_is_read_from_a_copy() {
    let bench = Bench::new();
    bench.with(|project| project.write(1, note("/photos/a.jpg", "there")).unwrap());
    // A folder in place of the lock file denies the lock to every user, even one who may write everywhere.
    std::fs::create_dir(bench.folder.path().join(".photos.spotcheck.lock")).unwrap();
    let opened = bench.open();
    assert!(matches!(opened.project.access(), Access::ReadOnly { .. }));
    assert_eq!(notes_of(&opened.project).len(), 1);
    assert_eq!(opened.project.path(), Some(bench.path()));
}

#[test]
fn project_in_memory_works_until_closed() {
    let project = Project::in_memory(Some("/photos"), |_| ()).unwrap();
    let run = add_run(&project, "run");
    let boxes = prediction(&[(1, 0.5, [1.0; 4])]);
    let change = predictions(run, vec![stored("/photos/a.jpg", Ok(boxes.clone()))]);
    project.write(1, change).unwrap();
    project.flush().unwrap();
    let mut seen = Vec::new();
    let visit = |batch: Vec<SamplePrediction>| seen.extend(batch);
    project.each_prediction(run, &control(), visit).unwrap();
    assert_eq!(seen, [stored("/photos/a.jpg", Ok(boxes))]);
    assert_eq!(project.path(), None);
    let folder = tempfile::tempdir().unwrap();
    let copy = project.save_as(&folder.path().join("kept"), "a test").unwrap();
    let (opened, _) = open_at(&copy, OpenMode::Read).unwrap();
    assert_eq!(opened.project.prediction_counts(run).unwrap().predicted, 1);
}

#[test]
fn hundred_thousand_predictions_are_streamed() {
    const COUNT: usize = 100_000;
    let bench = Bench::new();
    let run = bench.with(|project| {
        let run = add_run(project, "run");
        for start in (0..COUNT).step_by(1000) {
            let batch = (start..start + 1000)
                .map(|n| {
                    let boxes = prediction(&[(1, n as f32, [n as f32; 4])]);
                    stored(&format!("/photos/{n:06}.jpg"), Ok(boxes))
                })
                .collect();
            let change = predictions(run, batch);
            project.write_when_there_is_room(start as u64, change, &control()).unwrap();
        }
        run
    });
    bench.with(|project| {
        let (mut next, watch) = (0, control());
        let check = |batch: Vec<SampleSummary>| {
            for summary in batch {
                assert_eq!(summary.sample.file_name(), format!("{next:06}.jpg"));
                let expected = (vec![1], vec![next as f32]);
                let summary = summary.result.unwrap();
                assert_eq!((summary.classes, summary.scores), expected);
                next += 1;
            }
        };
        project.each_summary(run, &watch, check).unwrap();
        assert_eq!(next, COUNT);
        assert_eq!(watch.progress().fraction(), Some(1.0));
        assert_eq!(project.stamps(run).unwrap().len(), COUNT);

        let (mut batches, stop) = (0, control());
        let cancelled = project.each_prediction(run, &stop, |_| {
            batches += 1;
            stop.cancel();
        });
        assert!(matches!(cancelled, Err(StoreError::Cancelled(_))));
        assert_eq!(batches, 1);
    });
}

#[test]
fn queue_limit_blocks_until_canceled() {
    let bench = Bench::new();
    let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
    opened.project.flush().unwrap();
    limit_pages(&opened.project, 1);
    let note = note("/photos/a.jpg", &"x".repeat(80 << 20));
    opened.project.write(1, note).unwrap();
    wait_for(&events, |event| matches!(event, SaveEvent::Failed { .. }));
    let control = control();
    let (worker_control, project) = (control.clone(), opened.project.clone());
    let worker = std::thread::spawn(move || {
        let change = tags("/photos/a.jpg", &["late"]);
        project.write_when_there_is_room(2, change, &worker_control)
    });
    control.cancel();
    assert!(matches!(worker.join().unwrap(), Err(StoreError::Cancelled(_))));
    limit_pages(&opened.project, 1_000_000);
    wait_for(&events, |event| *event == SaveEvent::Saved { up_to: 1 });
}

#[test]
fn first_format_is_upgraded() {
    let bench = Bench::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/projects/version-1.spotcheck");
    std::fs::copy(fixture, bench.path()).unwrap();
    let run = RunId(3);
    let (cat, dog) = (SampleUri::new("/photos/a/cat.jpg"), SampleUri::new("/elsewhere/dog.jpg"));
    let check = |project: &Project| {
        assert_eq!(project.runs().unwrap()[0].name, "the old run");
        let boxes = prediction(&[(1, 0.75, [1.0, 2.0, 3.0, 4.0]), (2, 0.5, [-5.0, 6.5, 700.0, 8.0])]);
        assert_eq!(project.prediction(run, &cat).unwrap(), Some(Ok(boxes)));
        let failure = Some(Err("the file is truncated".to_owned()));
        assert_eq!(project.prediction(run, &dog).unwrap(), failure);
        let target = |run, box_index| VerdictTarget { run, box_index };
        let judged = project.judgments().unwrap();
        let verdicts: Vec<_> = judged.iter().map(|judged| (&judged.sample, &*judged.verdicts)).collect();
        let wolf = (target(Some(run), Some(1)), Verdict::WrongClass("wolf".to_owned()));
        let unsure = (target(None, None), Verdict::Unsure);
        assert_eq!(verdicts, [(&cat, &[wolf][..]), (&dog, &[unsure])]);
        assert_eq!(project.stamps(run).unwrap()[&cat].stamp, None);
        assert_eq!(project.new_run_id(), RunId(4));
    };
    let before = std::fs::read(bench.path()).unwrap();
    let (reader, _) = open_at(&bench.path(), OpenMode::Read).unwrap();
    check(&reader.project);
    drop(reader);
    assert!(std::fs::read(bench.path()).unwrap() == before, "who only reads changes nothing");

    let opened = bench.open();
    assert!(opened.notes[0].contains("from format 1 to 9"), "{:?}", opened.notes);
    check(&opened.project);
    opened.project.write(1, tags("/photos/a/cat.jpg", &["new"])).unwrap();
    drop(opened);
    let opened = bench.open();
    assert_eq!(opened.notes, Vec::<String>::new());
    check(&opened.project);
    assert_eq!(opened.project.judgments().unwrap()[0].tags, ["new"]);
}

#[test]
fn second_format_keeps_file_versions() {
    let bench = Bench::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/projects/version-2.spotcheck");
    std::fs::copy(fixture, bench.path()).unwrap();
    let cat = SampleUri::new("/photos/a/cat.jpg");
    let check = |project: &Project| {
        let stamp = FileStamp { size_bytes: 4711, modified_ns: Some(1_700_000_000_000_000_001), etag: None };
        let stamps = project.stamps(RunId(3)).unwrap();
        assert_eq!(stamps[&cat].stamp, Some(stamp));
        assert_eq!(project.judgments().unwrap()[0].tags, ["night"]);
    };
    let (reader, _) = open_at(&bench.path(), OpenMode::Read).unwrap();
    check(&reader.project);
    drop(reader);
    let opened = bench.open();
    assert!(opened.notes[0].contains("from format 2 to 9"), "{:?}", opened.notes);
    check(&opened.project);
}

#[test]
fn third_format_runs_are_local() {
    let bench = Bench::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/projects/version-3.spotcheck");
    std::fs::copy(fixture, bench.path()).unwrap();
    let (run, cat) = (RunId(3), SampleUri::new("s3://photos/a/cat.jpg"));
    let check = |project: &Project| {
        let info = &project.runs().unwrap()[0];
        assert_eq!(info.key.made, InferenceLocation::Here);
        assert_eq!(info.key.keep.min_score, 0.005);
        let etag = project.stamps(run).unwrap()[&cat].stamp.clone();
        assert_eq!(etag.unwrap().etag.as_deref(), Some("abc"));
    };
    let (reader, _) = open_at(&bench.path(), OpenMode::Read).unwrap();
    check(&reader.project);
    let info = reader.project.runs().unwrap().remove(0);
    drop(reader);
    let opened = bench.open();
    assert!(opened.notes[0].contains("from format 3 to 9"), "{:?}", opened.notes);
    check(&opened.project);
    // The text distinguishes what was written before from another run.
    let again = Change::AddRun(Box::new(RunInfo { name: "renamed".to_owned(), ..info }));
    opened.project.write(1, again).unwrap();
    opened.project.flush().unwrap();
    assert_eq!(opened.project.runs().unwrap()[0].name, "renamed");
}

#[test]
fn fourth_format_has_no_warnings() {
    let bench = Bench::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/projects/version-4.spotcheck");
    std::fs::copy(fixture, bench.path()).unwrap();
    let (run, cat) = (RunId(3), SampleUri::new("s3://photos/a/cat.jpg"));
    let opened = bench.open();
    assert!(opened.notes[0].contains("from format 4 to 9"), "{:?}", opened.notes);
    let prediction = opened.project.prediction(run, &cat).unwrap().unwrap().unwrap();
    assert_eq!((prediction.detections().len(), prediction.warnings.len()), (2, 0));
}

#[test]
fn fifth_format_has_no_drawn_boxes() {
    let bench = Bench::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/projects/version-5.spotcheck");
    std::fs::copy(fixture, bench.path()).unwrap();
    let (run, cat) = (RunId(3), "s3://photos/a/cat.jpg");
    let wolf = Verdict::WrongClass("wolf".to_owned());
    let (reader, _) = open_at(&bench.path(), OpenMode::Read).unwrap();
    assert_eq!(reader.project.judgments().unwrap()[0].verdicts[0].1, wolf);
    drop(reader);
    let opened = bench.open();
    assert!(opened.notes[0].contains("from format 5 to 9"), "{:?}", opened.notes);
    let drawn = DrawnBox::new("wolf", [1.5, 2.0, 30.0, 40.0].into(), [640, 480]).unwrap();
    let (moved, added) = (Verdict::Moved(drawn.clone()), Verdict::Added(drawn));
    opened.project.write(1, verdict(cat, Some(run), Some(0), Some(moved.clone()))).unwrap();
    opened.project.write(2, verdict(cat, Some(run), Some(2), Some(added.clone()))).unwrap();
    drop(opened);
    let verdicts = bench.open().project.judgments().unwrap()[0].verdicts.clone();
    assert_eq!(verdicts.into_iter().map(|(_, verdict)| verdict).collect::<Vec<_>>(), [moved, wolf, added]);
}

#[test]
fn sixth_format_has_no_verdicts_on_labels() {
    let bench = Bench::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/projects/version-6.spotcheck");
    std::fs::copy(fixture, bench.path()).unwrap();
    let (run, cat) = (RunId(3), "s3://photos/a/cat.jpg");
    let fox = Verdict::Added(DrawnBox::from_bounds("fox", [1.5, 2.0, 30.0, 40.0].into()).unwrap());
    let reviewer = |project: &Project, target| {
        let reviewers = project.reviewers(run).unwrap();
        reviewers.get(&(SampleUri::new(cat), target)).cloned()
    };
    let added = VerdictTarget { run: Some(run), box_index: Some(2) };
    let (reader, _) = open_at(&bench.path(), OpenMode::Read).unwrap();
    assert_eq!(reader.project.judgments().unwrap()[0].verdicts[1], (added, fox.clone()));
    assert_eq!(reviewer(&reader.project, added).as_deref(), Some("Ann"));
    drop(reader);
    let opened = bench.open();
    assert!(opened.notes[0].contains("from format 6 to 9"), "{:?}", opened.notes);
    let label = Verdict::Spurious(DrawnBox::from_bounds("dog", [0.0, 2.5, 30.0, 40.0].into()).unwrap());
    let (image, label_target) =
        (VerdictTarget { run: Some(run), box_index: None }, VerdictTarget { run: None, box_index: Some(0) });
    opened.project.write(1, verdict(cat, Some(run), None, Some(Verdict::Complete))).unwrap();
    opened.project.write(2, verdict(cat, None, Some(0), Some(label.clone()))).unwrap();
    drop(opened);
    let verdicts = bench.open().project.judgments().unwrap()[0].verdicts.clone();
    for given in [(image, Verdict::Complete), (label_target, label), (added, fox)] {
        assert!(verdicts.contains(&given), "{given:?} is not in {verdicts:?}");
    }
}

#[test]
fn seventh_format_has_no_images_back_to_the_labeler() {
    let bench = Bench::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/projects/version-7.spotcheck");
    std::fs::copy(fixture, bench.path()).unwrap();
    let (run, cat) = (RunId(3), "s3://photos/a/cat.jpg");
    let opened = bench.open();
    assert!(opened.notes[0].contains("from format 7 to 9"), "{:?}", opened.notes);
    opened.project.write(1, verdict(cat, Some(run), None, Some(Verdict::Returned))).unwrap();
    drop(opened);
    let verdicts = bench.open().project.judgments().unwrap()[0].verdicts.clone();
    let image = VerdictTarget { run: Some(run), box_index: None };
    let label = Verdict::Spurious(DrawnBox::from_bounds("owl", [1.0, 2.0, 9.5, 8.0].into()).unwrap());
    for given in [(image, Verdict::Returned), (VerdictTarget { run: None, box_index: Some(0) }, label)] {
        assert!(verdicts.contains(&given), "{given:?} is not in {verdicts:?}");
    }
}

#[test]
fn eighth_format_has_no_runners_up() {
    let bench = Bench::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/projects/version-8.spotcheck");
    std::fs::copy(fixture, bench.path()).unwrap();
    let (run, cat) = (RunId(3), SampleUri::new("s3://photos/a/cat.jpg"));
    let read = |project: &Project| project.prediction(run, &cat).unwrap().unwrap().unwrap();
    let (reader, _) = open_at(&bench.path(), OpenMode::Read).unwrap();
    let before = read(&reader.project);
    assert_eq!(before.detections().len(), 2);
    drop(reader);
    let opened = bench.open();
    assert!(opened.notes[0].contains("from format 8 to 9"), "{:?}", opened.notes);
    assert_eq!(read(&opened.project), before);
    let mut after = before;
    let PredictionContent::Detections(detections) = &mut after.content else { panic!("it has boxes") };
    detections[1].runners_up =
        [(7, 0.25), (70_000, 0.1)].map(|(class_id, score)| RunnerUp { class_id, score }).to_vec();
    let predictions = vec![SamplePrediction { sample: cat.clone(), stamp: stamp(), result: Ok(after.clone()) }];
    opened.project.write(1, Change::Predictions { run, predictions }).unwrap();
    drop(opened);
    assert_eq!(read(&bench.open().project), after);
}

#[test]
fn run_remembers_its_origin_and_learns_classes() {
    let bench = Bench::new();
    let made = InferenceLocation::TransformJob { name: "photos-1".to_owned(), region: "eu-west-1".to_owned() };
    let sample = SampleUri::new("/photos/a.jpg");
    bench.with(|project| {
        let id = project.new_run_id();
        let mut info = run_info(id, "remote");
        info.key.made = made.clone();
        info.labels = LabelSet::default();
        project.write(1, Change::AddRun(Box::new(info))).unwrap();
        let prediction = |label: &str| {
            let mut boxes = prediction(&[(1, 0.75, [1.0, 2.0, 3.0, 4.0])]);
            let PredictionContent::Detections(detections) = &mut boxes.content else {
                panic!("it has boxes");
            };
            label.clone_into(&mut detections[0].label);
            boxes
        };
        let predictions =
            vec![SamplePrediction { sample: sample.clone(), stamp: stamp(), result: Ok(prediction("cat")) }];
        project.write(2, Change::Predictions { run: id, predictions }).unwrap();
        project.flush().unwrap();
        let read = || project.prediction(id, &sample).unwrap().unwrap().unwrap();
        assert_eq!(read(), prediction("class 1"));
        let labels = LabelSet::parse("1\tcat").unwrap();
        project.write(3, Change::SetRunLabels(id, labels)).unwrap();
        let more = LabelSet::parse("7\tdog").unwrap();
        project.write(4, Change::SetRunLabels(id, more)).unwrap();
        project.flush().unwrap();
        assert_eq!(read(), prediction("cat"));
    });
    bench.with(|project| {
        let info = &project.runs().unwrap()[0];
        assert_eq!(info.key.made, made);
        let labels: Vec<(u32, &str)> = info.labels.iter().collect();
        assert_eq!(labels, [(1, "cat"), (7, "dog")]);
    });
}

#[test]
fn newer_format_is_refused_unchanged() {
    let bench = Bench::new();
    bench.with(|_| ());
    let connection = rusqlite::Connection::open(bench.path()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = std::fs::read(bench.path()).unwrap();
    for mode in [OpenMode::Write, OpenMode::Read] {
        let error = open_at(&bench.path(), mode).err().unwrap();
        assert!(error.to_string().contains("newer version"), "{error}");
    }
    assert!(std::fs::read(bench.path()).unwrap() == before);
}

#[test]
fn foreign_file_is_refused_unchanged() {
    let bench = Bench::new();
    let connection = rusqlite::Connection::open(bench.path()).unwrap();
    connection.execute_batch("CREATE TABLE shopping (thing TEXT)").unwrap();
    drop(connection);
    let before = std::fs::read(bench.path()).unwrap();
    assert!(matches!(open_at(&bench.path(), OpenMode::Write), Err(StoreError::NotAProject(_))));
    assert!(std::fs::read(bench.path()).unwrap() == before);
    let photo = bench.folder.path().join("photo.jpg");
    assert!(matches!(open_at(&photo, OpenMode::Write), Err(StoreError::WrongExtension(_))));
}

/// A project with `notes` notes, intact and closed.
fn filled(bench: &Bench, notes: usize) -> Vec<u8> {
    bench.with(|project| {
        add_run(project, "run");
        for n in 0..notes {
            let text = format!("{n} {}", "word ".repeat(40));
            project.write(1, note(&format!("/photos/{n}.jpg"), &text)).unwrap();
        }
    });
    std::fs::read(bench.path()).unwrap()
}

#[test]
fn damaged_file_is_kept_and_rescued() {
    type Damage = fn(&mut Vec<u8>);
    let cases: [(&str, Damage, bool); 4] = [
        ("garbage", |bytes| *bytes = b"not a database at all ".repeat(300), false),
        ("a bad header", |bytes| bytes[..16].fill(b'?'), false),
        ("truncated", |bytes| bytes.truncate(bytes.len() - 3 * 16384), true),
        (
            "a bad page",
            |bytes| {
                let end = bytes.len();
                bytes[end - 16384..].fill(0xa5);
            },
            true,
        ),
    ];
    for (name, damage, is_readable) in cases {
        let bench = Bench::new();
        let mut bytes = filled(&bench, 1000);
        damage(&mut bytes);
        std::fs::write(bench.path(), &bytes).unwrap();
        let reading = open_at(&bench.path(), OpenMode::Read);
        match reading {
            Err(StoreError::Damaged { .. }) => assert!(is_readable, "{name}"),
            Err(StoreError::NotAProject(_)) => assert!(!is_readable, "{name}"),
            other => panic!("{name}: {:?}", other.err()),
        }

        let opened = bench.open();
        assert!(
            opened.notes[0].contains("was damaged") && !opened.notes[0].contains('\n'),
            "{name}: {:?}",
            opened.notes
        );
        let kept = bench.names().into_iter().find(|name| name.contains(".damaged-2")).unwrap();
        assert!(std::fs::read(bench.folder.path().join(&kept)).unwrap() == bytes, "{name}");
        assert!(opened.notes[0].contains(&kept));
        let rescued = notes_of(&opened.project).len();
        assert_eq!(rescued > 100, is_readable, "{name}: {rescued} notes, {:?}", opened.notes);
        opened.project.write(1, note("/photos/new.jpg", "goes on")).unwrap();
        opened.project.flush().unwrap();
        assert_eq!(notes_of(&opened.project).len(), rescued + 1);
        drop(opened);
        assert_eq!(bench.names(), [kept, "photos.spotcheck".to_owned()], "{name}");
        assert_eq!(bench.open().notes, Vec::<String>::new());
    }
}

#[test]
fn chosen_foreign_file_is_unchanged() {
    let bench = Bench::new();
    let open = || {
        let request = OpenRequest { path: &bench.path(), root: None, mode: OpenMode::WriteExisting, program: "a test" };
        Project::open(&request, |_| ()).map(drop)
    };
    assert!(matches!(open(), Err(StoreError::Io { .. })), "nothing is made");
    for content in [&b""[..], b"a shopping list", &b"a long text, longer than a page ".repeat(1000)] {
        std::fs::write(bench.path(), content).unwrap();
        let refused = open();
        let is_named = match refused {
            Err(StoreError::Lost { .. }) => content.is_empty(),
            Err(StoreError::NotAProject(_)) => !content.is_empty(),
            _ => false,
        };
        assert!(is_named, "{refused:?}");
        assert!(std::fs::read(bench.path()).unwrap() == content);
        assert_eq!(bench.names(), ["photos.spotcheck"]);
    }
}

/// Replaces some bytes by others wherever they are in the file.
fn edit(path: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut bytes = std::fs::read(path).unwrap();
    let mut edited = 0;
    for at in 0..bytes.len() - from.len() {
        let part = &mut bytes[at..at + from.len()];
        if part == from.as_bytes() {
            part.copy_from_slice(to.as_bytes());
            edited += 1;
        }
    }
    assert!(edited > 0, "{from}");
    std::fs::write(path, bytes).unwrap();
}

/// SQLite finds nothing wrong with such a file, but no prediction could ever be saved in it.
#[test]
fn file_with_other_tables_is_damaged() {
    let drops = TABLES.map(|table| format!("DROP TABLE {table}"));
    let by_sql = [
        "ALTER TABLE answers RENAME TO replies",
        "ALTER TABLE answers DROP COLUMN etag",
        "ALTER TABLE runs ADD COLUMN color TEXT NOT NULL DEFAULT 'red'",
        "ALTER TABLE notes RENAME COLUMN text TO words",
    ];
    let by_sql = by_sql.map(str::to_owned).into_iter().chain(drops);
    let damages = by_sql.map(|sql| (sql, String::new())).chain(
        [
            ("REFERENCES runs (id)", "REFERENCES runs (di)"),
            ("REFERENCES samples (id)", "REFERENCES simples (id)"),
            ("REFERENCES answers (run, sample)", "REFERENCES answers (run, simple)"),
            ("UNIQUE (name, is_below_root)", "CHECK  (name, is_below_root)"),
            ("bounds BLOB", "bonuds BLOB"),
        ]
        .map(|(from, to)| (from.to_owned(), to.to_owned())),
    );
    for (damage, to) in damages {
        let bench = Bench::new();
        filled(&bench, 10);
        if to.is_empty() {
            let connection = Connection::open(bench.path()).unwrap();
            let damage = format!("PRAGMA foreign_keys = off; {damage}");
            connection.execute_batch(&damage).unwrap();
        } else {
            edit(&bench.path(), &damage, &to);
        }
        let reading = open_at(&bench.path(), OpenMode::Read);
        assert!(matches!(reading, Err(StoreError::Damaged { .. })), "{damage}");
        drop(reading);
        let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
        assert_eq!(opened.notes.len(), 1, "{damage}: {:?}", opened.notes);
        let is_kept = |name: &String| name.contains(".damaged-2");
        assert!(bench.names().iter().any(is_kept), "{damage}");
        let run = add_run(&opened.project, "again");
        let boxes = Ok(prediction(&[(1, 0.5, [1.0; 4])]));
        let change = predictions(run, vec![stored("/photos/a.jpg", boxes)]);
        opened.project.write(2, change).unwrap();
        let saved = wait_for(&events, |event| *event != SaveEvent::Saved { up_to: 0 });
        assert_eq!(saved, SaveEvent::Saved { up_to: 2 }, "{damage}");
    }
}

#[test]
fn large_file_is_checked_for_a_limited_time() {
    let bench = Bench::new();
    let bytes = filled(&bench, 10_000);
    let found_in = |page: usize, time| {
        let mut bytes = bytes.clone();
        bytes[page * 16384..(page + 1) * 16384].fill(0xa5);
        std::fs::write(bench.path(), bytes).unwrap();
        let mut connection = Connection::open(bench.path()).unwrap();
        let found = open::find_damage(&mut connection, time);
        found.unwrap().is_some()
    };
    // SQLite checks each table from its end.
    let late: Vec<usize> =
        (bytes.len() / 16384 / 4..bytes.len() / 16384).filter(|page| !found_in(*page, Some(Duration::ZERO))).collect();
    assert!(!late.is_empty());
    assert!(late.iter().all(|page| found_in(*page, None)), "{late:?}");
}

/// A trigger in the file refers to a missing table; nothing else is wrong with it.
fn forbid_predictions(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch("CREATE TRIGGER forbid AFTER INSERT ON answers BEGIN INSERT INTO nowhere VALUES (1); END")
        .unwrap();
    connection
}

#[test]
fn unsavable_change_is_not_retried() {
    let bench = Bench::new();
    bench.with(|_| ());
    let connection = forbid_predictions(&bench.path());
    let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
    let project = &opened.project;
    let run = add_run(project, "run");
    let boxes = || Ok(prediction(&[(1, 0.5, [1.0; 4])]));
    let change = |name: &str| predictions(run, vec![stored(name, boxes())]);
    project.write(2, change("/photos/a.jpg")).unwrap();
    let told = wait_for(&events, |event| !matches!(event, SaveEvent::Saved { .. }));
    assert!(matches!(told, SaveEvent::Stopped { .. }), "{told:?}");
    assert!(matches!(project.flush(), Err(StoreError::Stopped(_))));
    let refused = project.write_when_there_is_room(3, change("/photos/b.jpg"), &control());
    assert!(matches!(refused, Err(StoreError::Stopped(_))));
    assert_eq!(project.unsaved(), 2);
    assert!(events.try_recv().is_err(), "told once");

    connection.execute_batch("DROP TRIGGER forbid").unwrap();
    let copy = bench.folder.path().join("copy.spotcheck");
    project.continue_as(&copy, "a test").unwrap();
    wait_for(&events, |event| *event == SaveEvent::Saved { up_to: 2 });
    let uri = SampleUri::new("/photos/a.jpg");
    assert_eq!(project.prediction(run, &uri).unwrap(), Some(boxes()));
}

#[test]
fn unsavable_project_can_be_closed() {
    let bench = Bench::new();
    bench.with(|_| ());
    drop(forbid_predictions(&bench.path()));
    let opened = bench.open();
    let run = add_run(&opened.project, "run");
    let boxes = Ok(prediction(&[]));
    let change = predictions(run, vec![stored("/photos/a.jpg", boxes)]);
    opened.project.write(2, change).unwrap();
    let begun = std::time::Instant::now();
    drop(opened);
    assert!(begun.elapsed() < PATIENCE);
    bench.with(|project| assert_eq!(project.runs().unwrap(), []));
}

#[test]
fn empty_file_becomes_a_project() {
    let bench = Bench::new();
    std::fs::write(bench.path(), b"").unwrap();
    let opened = bench.open();
    assert!(opened.notes[0].contains("was empty"), "{:?}", opened.notes);
}

#[test]
fn copy_replaces_a_file_and_keeps_its_images() {
    let bench = Bench::new();
    let target = bench.folder.path().join("copy.spotcheck");
    let (old, _) = open_at(&target, OpenMode::Write).unwrap();
    old.project.write(1, note("/photos/old.jpg", "old")).unwrap();
    bench.with(|project| {
        project.write(1, note("/photos/a.jpg", "new")).unwrap();
        let held = project.save_as(&target, "a test").unwrap_err();
        assert!(matches!(held, StoreError::Held { .. }), "{held}");
        drop(old);
        project.save_as(&target, "a test").unwrap();
        let same = project.save_as(&bench.path(), "a test").unwrap_err();
        assert!(matches!(same, StoreError::SamePath(_)));
    });
    assert_eq!(bench.names(), ["copy.spotcheck", "photos.spotcheck"]);
    let (opened, _) = open_at(&target, OpenMode::Write).unwrap();
    assert_eq!(notes_of(&opened.project), [("/photos/a.jpg".to_owned(), "new".to_owned())]);
}

#[test]
fn project_continues_in_its_copy_without_loss() {
    let bench = Bench::new();
    let target = bench.folder.path().join("copy.spotcheck");
    let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
    let project = &opened.project;
    project.write(1, note("/photos/a.jpg", "before")).unwrap();
    project.flush().unwrap();
    assert_eq!(notes_of(project).len(), 1);
    limit_pages(project, 1);
    let long = "x".repeat(100_000);
    project.write(2, note("/photos/b.jpg", &long)).unwrap();
    wait_for(&events, |event| matches!(event, SaveEvent::Failed { .. }));
    project.continue_as(&target, "a test").unwrap();
    wait_for(&events, |event| *event == SaveEvent::Saved { up_to: 2 });
    assert_eq!(project.path(), Some(target.clone()));
    assert_eq!(notes_of(project).len(), 2);
    bench.with(|former| {
        assert_eq!(notes_of(former).len(), 1, "the former file is free, and as it was");
    });
    let (second, _) = open_at(&target, OpenMode::Write).unwrap();
    assert!(matches!(second.project.access(), Access::ReadOnly { .. }), "the copy is held");
    drop((second, opened));
    assert_eq!(bench.names(), ["copy.spotcheck", "photos.spotcheck"]);
}

#[test]
fn project_in_memory_continues_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::in_memory(Some("/photos"), |_| ()).unwrap();
    project.write(1, note("/photos/a.jpg", "before")).unwrap();
    let path = project.continue_as(&folder.path().join("kept"), "a test").unwrap();
    project.write(2, note("/photos/b.jpg", "after")).unwrap();
    project.flush().unwrap();
    assert_eq!(notes_of(&project).len(), 2);
    drop(project);
    let (opened, _) = open_at(&path, OpenMode::Write).unwrap();
    assert_eq!(notes_of(&opened.project).len(), 2);
}

#[test]
fn duplicate_run_id_is_refused() {
    let bench = Bench::new();
    let (opened, events) = open_at(&bench.path(), OpenMode::Write).unwrap();
    let project = &opened.project;
    let run = add_run(project, "first");
    let boxes = |count| Ok(prediction(&vec![(1, 0.5, [1.0; 4]); count]));
    project.write(1, predictions(run, vec![stored("/photos/a.jpg", boxes(1))])).unwrap();
    let mut other = run_info(run, "second");
    other.key.model_id = "another".to_owned();
    project.write(2, Change::AddRun(Box::new(other))).unwrap();
    project.write(3, predictions(run, vec![stored("/photos/a.jpg", boxes(2))])).unwrap();
    for ticket in [2, 3] {
        wait_for(&events, |event| matches!(event, SaveEvent::Rejected { ticket: rejected, .. } if *rejected == ticket));
    }
    project.flush().unwrap();
    assert_eq!(project.runs().unwrap(), [run_info(run, "first")]);
    let stored = project.prediction(run, &SampleUri::new("/photos/a.jpg")).unwrap();
    assert_eq!(stored, Some(boxes(1)));
}

#[test]
fn project_moved_with_its_images_finds_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (before, after) = (folder.join("before"), folder.join("after"));
    std::fs::create_dir_all(before.join("images")).unwrap();
    let root = before.join("images").to_str().unwrap().to_owned();
    let open = |folder: &Path| {
        let request = OpenRequest {
            path: &folder.join("p.spotcheck"),
            root: Some(&root),
            mode: OpenMode::Write,
            program: "a test",
        };
        Project::open(&request, |_| ()).unwrap()
    };
    let project = open(&before).project;
    project.write(1, note(&format!("{root}/a.jpg"), "moves")).unwrap();
    drop(project);
    std::fs::rename(&before, &after).unwrap();
    let opened = open(&after);
    assert!(opened.notes[0].contains("moved together"), "{:?}", opened.notes);
    let moved = after.join("images/a.jpg").to_str().unwrap().to_owned();
    assert_eq!(notes_of(&opened.project), [(moved, "moves".to_owned())]);
}

#[test]
fn project_is_relocated_to_its_images() {
    let bench = Bench::new();
    bench.with(|project| {
        let run = add_run(project, "run");
        let both = ["/photos/a.jpg", "/moved/a.jpg"];
        for (sample, boxes) in both.into_iter().zip([1, 2]) {
            let boxes = vec![(1, 0.5, [1.0; 4]); boxes];
            let change = predictions(run, vec![stored(sample, Ok(prediction(&boxes)))]);
            project.write(1, change).unwrap();
        }
        project.write(2, note("/photos/a.jpg", "early")).unwrap();
        project.write(3, note("/moved/a.jpg", "late")).unwrap();
        project.write(4, note("/photos/b.jpg", "early")).unwrap();
        project.relocate("/moved").unwrap();
        project.write(5, note("/moved/c.jpg", "later")).unwrap();
    });
    let opened = bench.open();
    let note = |name: &str, text: &str| (format!("/moved/{name}.jpg"), text.to_owned());
    let mut notes = notes_of(&opened.project);
    notes.sort();
    assert_eq!(notes, [note("a", "late"), note("b", "early"), note("c", "later")]);
    let run = opened.project.runs().unwrap()[0].id;
    let prediction = opened.project.prediction(run, &SampleUri::new("/moved/a.jpg")).unwrap();
    assert_eq!(prediction.unwrap().unwrap().detections().len(), 2);
}

#[test]
fn roots_have_their_own_default_location() {
    let dirs = crate::dirs::AppDirs::below(Path::new("/home"));
    let place = |root: &str| default_path(&dirs, root).to_str().unwrap().to_owned();
    let photos = place("/data/my photos");
    assert!(photos.starts_with("/home/data/projects/my-photos-"), "{photos}");
    assert!(photos.ends_with(".spotcheck"));
    assert_ne!(photos, place("/other/my photos"));
    assert!(place("/").contains("/projects/root-"));
}
