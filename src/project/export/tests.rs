//! Tests for all formats.

use std::ops::Range;
use std::sync::Arc;

use strum::VariantArray;

use super::sampler::{self, Sampled};
use super::*;
use crate::domain::{DrawnBox, Page, RgbImage, SampleUri, Verdict};
use crate::image::decode::encode_jpeg;
use crate::image::source::{MemorySource, Source, SourceError};
use crate::project::export::options::{BoxChoice, ClassChoice, VerdictChoice};
use crate::tasks::{ProgressUnit, TaskControl};

const CAT: (u32, f32, [f32; 4]) = (1, 0.9, [10.0, 10.0, 50.0, 60.0]);
const DOG: (u32, f32, [f32; 4]) = (2, 0.6, [0.0, 0.0, 20.0, 20.0]);
const FAINT: (u32, f32, [f32; 4]) = (7, 0.1, [30.0, 30.0, 40.0, 40.0]);

fn options(format: ExportFormat) -> ExportOptions {
    ExportOptions::for_format(format)
}

fn with_verdicts(verdicts: VerdictChoice) -> ExportOptions {
    ExportOptions { verdicts, ..options(ExportFormat::Coco) }
}

fn annotations(sampled: &Sampled) -> Vec<(u64, u64)> {
    let file: serde_json::Value = serde_json::from_str(&sampled.text).unwrap();
    let annotations = file["annotations"].as_array().unwrap().iter();
    let pair =
        |annotation: &serde_json::Value| Some((annotation["image_id"].as_u64()?, annotation["category_id"].as_u64()?));
    annotations.map(|annotation| pair(annotation).unwrap()).collect()
}

fn images(sampled: &Sampled) -> Vec<String> {
    let file: serde_json::Value = serde_json::from_str(&sampled.text).unwrap();
    let images = file["images"].as_array().unwrap().iter();
    images.map(|image| image["file_name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn hidden_boxes_are_exported_only_on_request() {
    let rows = vec![sampler::row("a.jpg", &[CAT, DOG, FAINT])];
    let visible = Sampled::new(ExportFormat::Coco, rows.clone());
    assert_eq!(annotations(&visible), [(1, 1), (1, 2)]);
    let all = ExportOptions { boxes: BoxChoice::All, ..options(ExportFormat::Coco) };
    let all = Sampled::with(all, &sampler::context(), rows).unwrap();
    assert_eq!(annotations(&all), [(1, 1), (1, 2), (1, 7)]);
}

#[test]
fn corrected_class_replaces_the_predicted_one() {
    let mut row = sampler::row("a.jpg", &[CAT, DOG]);
    row.box_verdicts.insert(0, Verdict::WrongClass("Dog".to_owned()));
    row.box_verdicts.insert(1, Verdict::WrongClass("fox".to_owned()));
    let judged = Sampled::new(ExportFormat::Coco, vec![row.clone()]);
    // A class that the model does not have gets the next free id.
    assert_eq!(annotations(&judged), [(1, 2), (1, 8)]);
    assert!(judged.text.contains("\"model_category_id\":1"));
    assert!(judged.text.contains("{\"id\":8,\"name\":\"fox\""), "{}", judged.text);
    let notes = judged.report.notes.join("\n");
    assert!(notes.contains("2 boxes written"), "{notes}");
    assert!(notes.contains("1 new class that the model does not have: “fox”"), "{notes}");
    let as_the_model_said = ExportOptions { classes: ClassChoice::Model, ..options(ExportFormat::Coco) };
    let model = Sampled::with(as_the_model_said, &sampler::context(), vec![row]).unwrap();
    assert_eq!(annotations(&model), [(1, 1), (1, 2)]);
}

#[test]
fn drawn_boxes_are_exported_with_their_author() {
    let drawn = |class: &str, bounds: [f32; 4]| DrawnBox::new(class, bounds.into(), [100, 80]).unwrap();
    let mut row = sampler::row("a.jpg", &[CAT, DOG]);
    row.box_verdicts.insert(0, Verdict::Moved(drawn("cat", [12.0, 22.5, 40.0, 60.0])));
    row.box_verdicts.insert(1, Verdict::Reject);
    row.box_verdicts.insert(2, Verdict::Added(drawn("fox", [1.0, 2.0, 3.0, 4.5])));
    let corrected = with_verdicts(VerdictChoice::Corrected);
    let coco = Sampled::with(corrected, &sampler::context(), vec![row.clone()]).unwrap();
    let file: serde_json::Value = serde_json::from_str(&coco.text).unwrap();
    let boxes = file["annotations"].as_array().unwrap();
    let facts = |at: usize| (&boxes[at]["bbox"], &boxes[at]["author"], &boxes[at]["category_id"]);
    assert_eq!(boxes.len(), 2);
    let json = |value: serde_json::Value| value;
    assert_eq!(facts(0), (&json([12.0, 22.5, 28.0, 37.5].into()), &json("person".into()), &json(1.into())));
    assert_eq!(facts(1), (&json([1.0, 2.0, 2.0, 2.5].into()), &json("person".into()), &json(8.into())));
    assert!(boxes[0]["model_bbox"].is_array() && boxes[1]["model_bbox"].is_null());
    let notes = coco.report.notes.join("\n");
    assert!(notes.contains("1 box moved") && notes.contains("1 box added"), "{notes}");

    let model = ExportOptions { classes: ClassChoice::Model, ..options(ExportFormat::Coco) };
    let model = Sampled::with(model, &sampler::context(), vec![row.clone()]).unwrap();
    assert_eq!(annotations(&model), [(1, 1), (1, 2)]);
    assert!(!model.text.contains("person"), "{}", model.text);

    let lines = Sampled::new(ExportFormat::Jsonl, vec![row.clone()]).text;
    let line: serde_json::Value = serde_json::from_str(&lines).unwrap();
    let boxes = &line["detections"];
    assert_eq!(boxes[0]["right_box"], json([12.0, 22.5, 40.0, 60.0].into()));
    assert_eq!((&boxes[2]["verdict"], &boxes[2]["label"]), (&json("added".into()), &json("fox".into())));
    let yolo = Sampled::new(ExportFormat::Yolo, vec![row.clone()]);
    assert_eq!(yolo.file("labels/a.txt").lines().nth(2), Some("3 0.0200000 0.0406250 0.0200000 0.0312500"));
    assert_eq!(yolo.file("authors.csv"), "label,line,author\nlabels/a.txt,1,person\nlabels/a.txt,3,person\n");
    let table = Sampled::new(ExportFormat::Csv, vec![row]).text;
    let mut table = csv::Reader::from_reader(table.as_bytes());
    let headers = table.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    let cell = |at: usize, name: &str| {
        let column = headers.iter().position(|header| header == name).unwrap();
        rows[at][column].to_owned()
    };
    assert_eq!([cell(0, "author"), cell(0, "right_y1")], ["model", "22.5"]);
    assert_eq!([cell(2, "author"), cell(2, "x2"), cell(2, "right_x1")], ["person", "3", ""]);
}

#[test]
fn box_inherits_the_image_verdict() {
    let verdicts = |image: Option<Verdict>, first_box: Option<Verdict>, name: &str| {
        let mut row = sampler::row(name, &[CAT, DOG]);
        row.verdict = image;
        row.box_verdicts = first_box.map(|verdict| (0, verdict)).into_iter().collect();
        row
    };
    let rows = vec![
        verdicts(None, None, "unjudged.jpg"),
        verdicts(Some(Verdict::Accept), Some(Verdict::Reject), "accepted.jpg"),
        verdicts(Some(Verdict::Reject), Some(Verdict::Accept), "rejected.jpg"),
        verdicts(Some(Verdict::Reject), None, "all-rejected.jpg"),
        verdicts(None, Some(Verdict::WrongClass("dog".to_owned())), "wrong.jpg"),
    ];
    let context = sampler::context();
    let without = with_verdicts(VerdictChoice::WithoutRejected);
    let without = Sampled::with(without, &context, rows.clone()).unwrap();
    assert_eq!(images(&without), ["unjudged.jpg", "accepted.jpg", "rejected.jpg", "wrong.jpg"]);
    let boxes = annotations(&without);
    assert_eq!(boxes, [(1, 1), (1, 2), (2, 2), (3, 1), (4, 2), (4, 2)]);
    let corrected = with_verdicts(VerdictChoice::Corrected);
    let corrected = Sampled::with(corrected, &context, rows).unwrap();
    assert_eq!(images(&corrected), ["accepted.jpg"]);
    assert_eq!(annotations(&corrected), [(1, 2)]);
    let notes = &corrected.report.notes;
    assert_eq!(notes[0], "1 image skipped because not judged");
    assert!(notes[1].ends_with("rejected.jpg, all-rejected.jpg, wrong.jpg"), "{notes:?}");
}

/// The file, status, label, score, author and verdict of each row, and whether `expected` is also in JSON Lines.
fn corrected_rows(rows: &[ExportRow]) -> Vec<String> {
    let written = |format| {
        let options = ExportOptions { verdicts: VerdictChoice::Corrected, ..options(format) };
        Sampled::with(options, &sampler::context(), rows.to_vec()).unwrap().text
    };
    let table = written(ExportFormat::Csv);
    let mut table = csv::Reader::from_reader(table.as_bytes());
    let headers = table.headers().unwrap().clone();
    let position = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let columns = ["image", "x1", "label", "score", "author", "verdict", "right_class", "right_x1"].map(position);
    let line = |row: csv::StringRecord| columns.map(|column| row[column].to_owned()).join(" ").trim_end().to_owned();
    let rows: Vec<String> = table.records().map(|row| line(row.unwrap())).collect();
    let lines = written(ExportFormat::Jsonl);
    let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let facts = |line: serde_json::Value| {
        let uri = line["uri"].as_str().unwrap().to_owned();
        let name = uri.rsplit('/').next().unwrap().to_owned();
        let found = |one: &serde_json::Value| {
            let author = one["author"].as_str().unwrap_or("model");
            let label = one["label"].as_str().unwrap();
            let left = one["box"][0].as_f64().map(|left| left.to_string()).unwrap_or_default();
            assert!(one["verdict"].is_null() && one["right_class"].is_null() && one["right_box"].is_null(), "{one}");
            format!("{name} {left} {label} {} {author}", one["score"].as_f64().unwrap())
        };
        let boxes = line["detections"].as_array().unwrap();
        let empty = boxes.is_empty().then(|| name.clone());
        boxes.iter().map(found).chain(empty).collect::<Vec<_>>()
    };
    assert_eq!(lines.flat_map(facts).collect::<Vec<_>>(), rows);
    rows
}

#[test]
fn corrected_labels_are_the_same_in_all_formats() {
    let drawn = |class: &str, bounds: [f32; 4]| DrawnBox::new(class, bounds.into(), [100, 80]).unwrap();
    let row = |name: &str, image: Option<Verdict>, boxes: Vec<Verdict>| {
        let mut row = sampler::row(name, &[CAT, DOG, FAINT]);
        row.verdict = image;
        row.box_verdicts = (0..).zip(boxes).collect();
        row
    };
    let mut added = row("added.jpg", Some(Verdict::Complete), vec![Verdict::Reject; 2]);
    added.box_verdicts.insert(3, Verdict::Added(drawn("fox", [1.0, 2.0, 3.0, 4.5])));
    let rows = vec![
        row("moved.jpg", None, vec![Verdict::Moved(drawn("cat", [12.0, 22.5, 40.0, 60.0])), Verdict::Accept]),
        row("wrong.jpg", Some(Verdict::Accept), vec![Verdict::WrongClass("fox".to_owned())]),
        row("all-rejected.jpg", None, vec![Verdict::Reject; 2]),
        row("unsure.jpg", Some(Verdict::Accept), vec![Verdict::Unsure]),
        row("half.jpg", None, vec![Verdict::Accept]),
        row("half-complete.jpg", Some(Verdict::Complete), vec![Verdict::Accept]),
        row("rejected.jpg", Some(Verdict::Reject), vec![Verdict::Accept; 2]),
        row("unjudged.jpg", None, vec![]),
        added,
    ];
    let table = corrected_rows(&rows);
    let expected = [
        "moved.jpg 12 cat 1 person",
        "moved.jpg 0 dog 1 model",
        "wrong.jpg 10 fox 1 person",
        "wrong.jpg 0 dog 1 model",
        "all-rejected.jpg",
        "added.jpg 1 fox 1 person",
    ];
    assert_eq!(table, expected);
    for format in [ExportFormat::Coco, ExportFormat::Yolo, ExportFormat::Voc] {
        let options = ExportOptions { verdicts: VerdictChoice::Corrected, ..options(format) };
        let written = Sampled::with(options, &sampler::context(), rows.clone()).unwrap();
        assert_eq!((written.report.images, written.report.boxes), (4, 5), "{format:?}");
        let notes = written.report.notes.join("\n");
        assert!(notes.contains("1 image skipped because not judged"), "{notes}");
        assert!(notes.contains("unsure.jpg, half.jpg, half-complete.jpg, rejected.jpg"), "{notes}");
    }
    let empty = ExportOptions { verdicts: VerdictChoice::Corrected, ..options(ExportFormat::Yolo) };
    let empty = Sampled::with(empty, &sampler::context(), rows).unwrap();
    assert_eq!(empty.file("labels/all-rejected.txt"), "");
}

#[test]
fn datasets_report_unsupported_images() {
    let mut failed = sampler::row("bad.jpg", &[]);
    failed.result = Some(Err("truncated".to_owned()));
    let mut unasked = sampler::row("new.jpg", &[]);
    unasked.result = None;
    for format in [ExportFormat::Coco, ExportFormat::Yolo, ExportFormat::Voc] {
        let rows = vec![failed.clone(), unasked.clone(), sampler::row("none.jpg", &[])];
        let sampled = Sampled::new(format, rows);
        assert_eq!(sampled.report.images, 1, "{format:?}");
        let notes = sampled.report.notes.join("\n");
        assert_eq!(notes.matches("1 image skipped").count(), 2, "{notes}");
    }
}

#[test]
fn colliding_label_files_are_separate_and_reported() {
    let names = ["a/x.jpg", "b/x.jpg", "a/x.png", "../x.jpg"];
    let rows: Vec<ExportRow> = names.iter().map(|name| sampler::row(name, &[CAT])).collect();
    let yolo = Sampled::new(ExportFormat::Yolo, rows.clone());
    for label in ["a/x.txt", "b/x.txt", "a/x-2.txt", "x.txt"] {
        assert_eq!(yolo.file(&format!("labels/{label}")).lines().count(), 1, "{label}");
    }
    assert!(yolo.file("images.csv").contains("labels/a/x-2.txt,a/x.png,"));
    assert!(yolo.report.notes[0].starts_with("2 files renamed"), "{:?}", yolo.report);
    assert!(yolo.report.notes[0].contains("a/x.png became a/x-2.txt"), "{:?}", yolo.report);
    let voc = Sampled::new(ExportFormat::Voc, rows);
    let renamed = voc.file("Annotations/a/x-2.xml");
    assert!(renamed.contains("<filename>a/x.png</filename>"), "{renamed}");
}

#[test]
fn yolo_renumbers_classes_and_keeps_model_ids() {
    let unlabeled = (90, 0.8, [0.0, 0.0, 100.0, 80.0]);
    let rows = vec![sampler::row("a.jpg", &[DOG, unlabeled]), sampler::row("b.jpg", &[])];
    let context = ExportContext { new_classes: Vec::new(), ..sampler::context() };
    let yolo = Sampled::with(options(ExportFormat::Yolo), &context, rows).unwrap();
    assert_eq!(
        yolo.file("labels/a.txt"),
        "1 0.1000000 0.1250000 0.2000000 0.2500000\n3 0.5000000 0.5000000 1.0000000 1.0000000\n"
    );
    assert_eq!(yolo.file("labels/b.txt"), "");
    assert_eq!(yolo.file("classes.txt"), "cat\ndog\nmouse: \"gray\"\nclass 90\n");
    let table = "yolo_id,model_class_id,label\n0,1,cat\n1,2,dog\n2,7,\"mouse: \"\"gray\"\"\"\n3,90,class 90\n";
    assert_eq!(yolo.file("classes.csv"), table);
}

#[test]
fn names_and_notes_cannot_break_xml_or_html() {
    let nasty = "<script>alert('x')</script> & \"co\" \u{1}]]>.jpg";
    let mut row = sampler::row(nasty, &[CAT]);
    row.note = Some("</figure><script src=https://example.org>".to_owned());
    row.tags = ["<b>".to_owned()].into();
    row.verdict = Some(Verdict::WrongClass("<i>".to_owned()));
    let voc = Sampled::new(ExportFormat::Voc, vec![row.clone()]);
    let files = std::fs::read_dir(voc.path.join("Annotations")).unwrap();
    let file = files.flatten().next().unwrap().path();
    let xml = std::fs::read_to_string(file).unwrap_or_else(|_| {
        // The name has a slash, so it is in a subfolder.
        let folder = std::fs::read_dir(voc.path.join("Annotations")).unwrap();
        let folder = folder.flatten().next().unwrap().path();
        let file = std::fs::read_dir(folder).unwrap().flatten().next().unwrap();
        std::fs::read_to_string(file.path()).unwrap()
    });
    let mut reader = quick_xml::Reader::from_str(&xml);
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(tag) => assert_ne!(tag.name().as_ref(), "script"),
            _ => {}
        }
    }
    assert!(!xml.contains('\u{1}'));
    let report = Sampled::new(ExportFormat::Report, vec![row]);
    assert!(!report.text.contains("<script"), "{}", report.text);
    assert!(report.text.contains("Test &lt;detector&gt; &amp; co"));
}

#[test]
fn classifier_run_is_refused_by_box_formats() {
    let mut context = sampler::context();
    context.run.card.task = crate::domain::CardTask::Classification;
    for &format in ExportFormat::VARIANTS {
        let result = Sampled::with(options(format), &context, Vec::new());
        let is_refused = matches!(result, Err(ExportError::NeedsBoxes { .. }));
        assert_eq!(is_refused, format.is_dataset(), "{format:?}");
    }
}

#[test]
fn canceled_and_failed_exports_leave_no_files() {
    for &format in ExportFormat::VARIANTS {
        let folder = tempfile::tempdir().unwrap();
        let target = ExportTarget { path: folder.path().join("out"), existing: Existing::Keep };
        let rows = || (0..3).map(|number| sampler::row(&format!("{number}.jpg"), &[CAT]));
        let control = TaskControl::new(ProgressUnit::Images);
        let cancelling = control.clone();
        let mut cancelled = rows().map(|row| {
            cancelling.cancel();
            Ok(row)
        });
        let context = sampler::context();
        let result = export(&mut cancelled, &context, options(format), &target, &control);
        assert!(matches!(result, Err(ExportError::Cancelled(_))), "{format:?}");
        let mut failing = rows().map(Ok).chain([Err("the disk is gone".into())]);
        let control = TaskControl::new(ProgressUnit::Images);
        let result = export(&mut failing, &context, options(format), &target, &control);
        assert!(matches!(result, Err(ExportError::Rows(_))), "{format:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{format:?}");
    }
}

#[test]
fn unreadable_images_are_listed_and_skipped() {
    let image = RgbImage::new(100, 80, vec![90; 100 * 80 * 3]).unwrap();
    let jpeg = encode_jpeg(&image, 90).unwrap();
    let files = [("/photos/good.jpg".to_owned(), jpeg)];
    let mut context = sampler::context();
    context.source = Arc::new(MemorySource::new(files));
    for format in [ExportFormat::Yolo, ExportFormat::Voc, ExportFormat::AnnotatedImages, ExportFormat::Report] {
        let rows = vec![sampler::row("gone.jpg", &[CAT]), sampler::row("good.jpg", &[CAT])];
        let with_images = ExportOptions { with_images: true, ..options(format) };
        let sampled = Sampled::with(with_images, &context, rows).unwrap();
        let [problem] = &sampled.report.problems[..] else {
            panic!("{format:?}: {:?}", sampled.report);
        };
        assert!(problem.to_string().starts_with("/photos/gone.jpg: "), "{problem}");
        match format {
            ExportFormat::Yolo => {
                assert!(sampled.path.join("images/good.jpg").exists());
                assert!(sampled.path.join("labels/good.txt").exists());
                assert!(!sampled.path.join("labels/gone.txt").exists());
            }
            ExportFormat::Voc => assert!(sampled.path.join("JPEGImages/good.jpg").exists()),
            ExportFormat::AnnotatedImages => assert!(sampled.path.join("good.jpg").exists()),
            _ => assert!(sampled.text.contains("data:image/jpeg;base64,")),
        }
    }
}

/// A source whose server is gone.
struct Gone;

impl Source for Gone {
    fn name(&self) -> String {
        "gone".to_owned()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        Box::new(std::iter::empty())
    }

    fn read(&self, _: &SampleUri) -> Result<Vec<u8>, SourceError> {
        Err(SourceError::Unreachable("connection refused".to_owned()))
    }

    fn read_range(&self, uri: &SampleUri, _: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.read(uri)
    }
}

#[test]
fn unreachable_source_fails_image_exports() {
    let context = ExportContext { source: Arc::new(Gone), ..sampler::context() };
    for format in [ExportFormat::Yolo, ExportFormat::Voc, ExportFormat::AnnotatedImages] {
        let rows = vec![sampler::row("a.jpg", &[CAT]), sampler::row("b.jpg", &[CAT])];
        let with_images = ExportOptions { with_images: true, ..options(format) };
        let result = Sampled::with(with_images, &context, rows).map(|sampled| sampled.report);
        assert!(
            matches!(&result, Err(ExportError::SourceUnreachable(reason)) if reason == "connection refused"),
            "{format:?}: {result:?}"
        );
    }
}

#[test]
fn small_report_repeats_no_image() {
    let (sure, unsure) = ((1, 0.95, CAT.2), (1, 0.55, CAT.2));
    let rows = vec![
        sampler::row("sure.jpg", &[sure]),
        sampler::row("unsure.jpg", &[unsure]),
        sampler::row("also-sure.jpg", &[sure]),
    ];
    let report = Sampled::new(ExportFormat::Report, rows);
    let html = &report.text;
    let (least, most) = html.split_once("Most certain").unwrap();
    for (name, section) in [("unsure.jpg", least), ("also-sure.jpg", most)] {
        let caption = format!("<span class=\"name\">{name}</span>");
        assert_eq!(html.matches(&caption).count(), 1, "{name}");
        assert!(section.contains(&caption), "{name}");
    }
}
