//! The parsers that read bytes from outside, each with its promises: a function returns whether the bytes were
//! accepted, and panics if a promise is broken. Also used by `fuzz/fuzz_targets`.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use spotcheck::annotations;
use spotcheck::annotations::matching::{Folders, ImageKey, ImageMatches};
use spotcheck::domain::{
    AxisTransform, DetectionOutput, InferenceLocation, KeepRule, LabelSet, ModelCard, ModelTask, OutputConvention,
    Prediction, Sample, SampleId, SampleUri,
};
use spotcheck::image::decode::{DecodeLimits, details, thumbnail};
use spotcheck::image::source::{Files, MemorySource, Source, WithRecords, framed_record};
use spotcheck::model::catalog::{check_card, parse_card, write_card};
use spotcheck::model::recognize::{KerasApplication, Neighbor, Notes, embedding_tensors, find_name};
use spotcheck::model::{Prepared, Tensor, postprocess};
use spotcheck::predict::{ResultSink, SampleResult};
use spotcheck::project::{OpenMode, OpenRequest, Project};
use spotcheck::review::{KnownNames, Query, complete};
use spotcheck::sagemaker::jobs::{add_price, read_prices};
use spotcheck::sagemaker::outputs::{
    FoundOutputs, LabelSource, OutputFolder, OutputReader, OutputShape, OutputSink, OutputsPart, ReadingChoice,
    Recognition,
};
use spotcheck::sagemaker::spec::transform::Price;
use spotcheck::tasks::{ProgressUnit, TaskControl};

/// The only file in a folder of this thread, for parsers that take a path.
fn written(name: &str, bytes: &[u8]) -> PathBuf {
    thread_local! {
        static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("the test may write");
    }
    let folder = FOLDER.with(|folder| folder.path().to_owned());
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let entry = entry.expect("the folder can be listed");
        let path = entry.path();
        let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        removed.expect("the file belongs to this thread");
    }
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("the test may write");
    path
}

/// Details and thumbnails of an image of up to 4 megapixels.
pub(crate) fn jpeg(bytes: &[u8]) -> bool {
    let limits = DecodeLimits { max_megapixels: 4, ..DecodeLimits::default() };
    let _ = details(bytes);
    let sides = [16, 160].map(|side| match thumbnail(bytes, side, &limits) {
        Ok(image) => {
            assert!(image.width() <= side && image.height() <= side);
            true
        }
        Err(_) => false,
    });
    sides[0] || sides[1]
}

pub(crate) fn query(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let labels: LabelSet = [(1, "cat".to_owned()), (2, "a \"b\\".to_owned())].into_iter().collect();
    let (tags, cameras) = (["night".to_owned()], ["NIKON D70".into()].into());
    let known = KnownNames { labels: &labels, truth: &[], tags: &tags, cameras: &cameras };
    for completion in complete(&text, text.len(), known) {
        assert!(text.get(completion.replaces).is_some());
    }
    match Query::parse(&text) {
        Ok(query) => {
            for warning in query.warnings(ModelTask::Detection, &labels, &[]) {
                assert!(!warning.is_empty());
            }
            assert_eq!(query.clone(), query);
            true
        }
        Err(error) => {
            assert!(text.get(error.at).is_some() && !error.message.is_empty());
            false
        }
    }
}

/// The two formats of files with class names.
pub(crate) fn label_map(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let parsed = [LabelSet::parse_label_map(&text), LabelSet::parse(&text)];
    for parsed in &parsed {
        match parsed {
            Ok(labels) => {
                assert!(labels.iter().all(|(_, name)| !name.trim().is_empty()));
                assert!(labels.len() <= text.len());
            }
            Err(error) => assert!((1..=text.lines().count() + 1).contains(&error.line)),
        }
    }
    if let [_, Ok(labels)] = &parsed
        && !labels.is_empty()
    {
        let lines: Vec<String> = labels.iter().map(|(id, name)| format!("{id}\t{name}")).collect();
        assert_eq!(LabelSet::parse(&lines.join("\n")).as_ref(), Ok(labels));
    }
    parsed.iter().any(Result::is_ok)
}

/// The files next to a model and its metadata, read as every kind of file.
pub(crate) fn notes(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let names = [
        "config.json",
        "preprocessor_config.json",
        "data.yaml",
        "map.pbtxt",
        "pipeline.json",
        "infer_cfg.yml",
        "selected_tags.csv",
    ];
    let metadata = ["names", "imgsz", "stride", "args"].map(|key| (key.to_owned(), text.clone())).into();
    let neighbors = names.map(|name| Neighbor { name: name.to_owned(), text: text.clone() });
    let notes = Notes::read("model", &metadata, &neighbors);
    for labels in &notes.labels {
        assert!(labels.value.iter().all(|(_, name)| !name.trim().is_empty()));
    }
    let size = notes.input_size.as_ref().map_or([1; 2], |size| size.value);
    assert!(size.iter().all(|side| (1..=16_384).contains(side)));
    let numbers = [notes.pixels.mean, notes.pixels.std].into_iter().flatten().flat_map(|numbers| numbers.value);
    assert!(numbers.chain(notes.pixels.divide_by.map(|noted| noted.value)).all(|number| !number.is_nan()));
    assert!(notes.remarks.iter().all(|remark| remark.len() < 10_000));
    !notes.labels.is_empty() || notes.input_size.is_some()
}

/// The names of a graph: none is longer than the file.
pub(crate) fn graph_names(bytes: &[u8]) -> bool {
    let mut names = 0;
    let found = find_name(Cursor::new(bytes), |name| {
        assert!(name.chars().count() <= bytes.len());
        names += 1;
        KerasApplication::from_node(name)
    });
    assert!(names <= bytes.len());
    let card = ModelCard::from_remote("toy", ModelTask::Classification, Vec::new(), String::new());
    if let Ok(tensors) = embedding_tensors(&card, Cursor::new(bytes)) {
        assert_eq!(tensors.of_image.len(), 1);
    }
    found.is_ok_and(|found| found.is_some())
}

pub(crate) fn card(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let path = Path::new("model.toml");
    match parse_card(&text, path) {
        Ok(card) => {
            check_card(&card).expect("what was read was checked");
            let written = write_card(&card).expect("what was read can be written");
            assert_eq!(parse_card(&written, path), Ok(card), "{written}");
            true
        }
        Err(error) => {
            assert!((1..=text.split('\n').count()).contains(&error.line), "{error}");
            assert!(error.column >= 1, "{error}");
            false
        }
    }
}

pub(crate) fn prices(bytes: &[u8]) -> bool {
    let path = written("prices.toml", bytes);
    let Ok(mut table) = read_prices(&path) else {
        return false;
    };
    for price in &table.prices {
        assert!(price.usd_per_hour.is_finite() && price.usd_per_hour > 0.0);
    }
    let more = Price {
        instance_type: "ml.g5.xlarge".to_owned(),
        region: None,
        usd_per_hour: 1.25,
        source: "an invoice".to_owned(),
        date: "2026-11-21".to_owned(),
    };
    // An inline array (`price = []`) is not extended.
    if add_price(&path, &more).is_ok() {
        table.prices.push(more);
    }
    assert_eq!(read_prices(&path).ok(), Some(table));
    true
}

/// The size of every image that the outputs belong to.
const SIZE: [u32; 2] = [100, 50];

fn check_prediction(prediction: &Prediction) {
    let detections = prediction.detections().iter().map(|found| found.score);
    let classes = prediction.classes().iter().map(|found| found.score);
    let scores: Vec<f32> = detections.chain(classes).collect();
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{prediction:?}");
    assert!(scores.is_sorted_by(|left, right| left >= right), "{prediction:?}");
    let [width, height] = [prediction.width as f32, prediction.height as f32];
    for detection in prediction.detections() {
        let [left, top, right, bottom]: [f32; 4] = detection.bounds.into();
        assert!(left <= right && top <= bottom, "{prediction:?}");
        assert!(left >= -width && right <= 2.0 * width, "{prediction:?}");
        assert!(top >= -height && bottom <= 2.0 * height, "{prediction:?}");
    }
}

pub(crate) fn outputs_json(bytes: &[u8]) -> bool {
    let Ok(recognized) = Recognition::from_output(bytes) else {
        return false;
    };
    let labels = match &recognized.shape {
        OutputShape::Spotcheck { .. } => LabelSource::Outputs,
        OutputShape::Mapped(_) => LabelSource::Known(LabelSet::default()),
    };
    let reader = OutputReader::new(recognized.shape, labels, KeepRule::default());
    match reader.read(bytes, Some(SIZE)) {
        Ok(prediction) => {
            assert_eq!([prediction.width, prediction.height], SIZE);
            check_prediction(&prediction);
            true
        }
        Err(reason) => {
            assert!(!reason.is_empty());
            false
        }
    }
}

/// The outputs of a detector, with a description of them that may be wrong, as in `tests/cases/detections`.
pub(crate) fn detections(bytes: &[u8]) -> bool {
    let described = serde_json::from_slice(bytes).ok().and_then(|case| described_outputs(&case));
    let Some((convention, outputs, batch, images)) = described else {
        return false;
    };
    let max_iou = convention.nms_iou;
    let keep = KeepRule::default();
    let convention = OutputConvention::Detection(convention);
    match postprocess(&convention, &LabelSet::default(), keep, &outputs, &batch, images) {
        Ok(predictions) => {
            assert_eq!(predictions.len(), batch.len());
            for prediction in predictions {
                let found = prediction.detections();
                assert!(found.iter().all(|found| found.bounds.is_finite()));
                assert!(found.iter().all(|found| (keep.min_score..=1.001).contains(&found.score)));
                assert!(found.is_sorted_by(|left, right| left.score >= right.score));
                let all = found.len();
                assert!(prediction.without_overlaps(max_iou).detections().len() <= all);
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// The description, the outputs by name, the images, and the number of images in the call.
type DescribedOutputs = (DetectionOutput, BTreeMap<String, Tensor>, Vec<Prepared>, usize);

pub(crate) fn described_outputs(case: &Value) -> Option<DescribedOutputs> {
    let outputs = case["outputs"].as_object()?.iter().map(|(name, output)| Some((name.clone(), tensor(output)?)));
    let batch = case["images"].as_array()?.iter().map(prepared);
    let convention = serde_json::from_value(case["convention"].clone()).ok()?;
    Some((convention, outputs.collect::<Option<_>>()?, batch.collect::<Option<_>>()?, case["calls"].as_u64()? as usize))
}

fn tensor(output: &Value) -> Option<Tensor> {
    let shape: Vec<usize> = serde_json::from_value(output["shape"].clone()).ok()?;
    let values = output["values"].as_array()?.iter();
    // JSON has no NaN and no infinity, so they are text.
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    Some(match output["type"].as_str()? {
        "int64" => Tensor::i64(shape, values.map(Value::as_i64).collect::<Option<_>>()?),
        "uint8" => Tensor::u8(shape, values.map(|value| value.as_u64()?.try_into().ok()).collect::<Option<_>>()?),
        _ => Tensor::f32(shape, values.map(|value| Some(number(value)? as f32)).collect::<Option<_>>()?),
    })
}

pub(crate) fn prepared(image: &Value) -> Option<Prepared> {
    let pair = |name: &str| serde_json::from_value::<[f64; 2]>(image[name].clone()).ok();
    Some(Prepared {
        tensor: Tensor::u8([1, 1, 1, 3], vec![0; 3]),
        auxiliary: Vec::new(),
        image_from_model: AxisTransform { scale: pair("scale")?, offset: pair("offset")? },
        canvas_size: pair("canvas")?.map(|side| side as u32),
        image_size: pair("size")?.map(|side| side as u32),
    })
}

pub(crate) fn outputs_csv(bytes: &[u8]) -> bool {
    outputs_in("list.csv.out", bytes)
}

pub(crate) fn outputs_lines(bytes: &[u8]) -> bool {
    outputs_in("list.jsonl.out", bytes)
}

/// The received predictions, checked: each image at most once.
#[derive(Default)]
struct Arrived {
    images: std::collections::BTreeSet<usize>,
    predictions: usize,
}

impl ResultSink for Arrived {
    fn arrived(&mut self, index: usize, result: &SampleResult) {
        assert!(self.images.insert(index), "image {index} twice");
        if let Ok(prediction) = result {
            check_prediction(prediction);
            self.predictions += 1;
        }
    }

    fn in_order(&mut self, _: usize, _: SampleResult) {}
}

impl OutputSink for Arrived {
    fn labels(&mut self, _: &LabelSet) {}
}

/// One output with one prediction per line, for three images.
fn outputs_in(name: &str, bytes: &[u8]) -> bool {
    let output = written(name, bytes);
    let folder = output.parent().expect("a file has a folder");
    let mut image = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(SIZE[0], SIZE[1])
        .write_to(&mut image, image::ImageFormat::Bmp)
        .expect("an image of one color can be written");
    let image = image.into_inner();
    let images = ["a.bmp", "b.bmp", "c.bmp"].map(|name| (format!("/photos/{name}"), image.clone()));
    let source: Arc<dyn Source> = Arc::new(MemorySource::new(images));
    let samples: Arc<[Sample]> = source.pages().flat_map(|page| page.samples).collect();
    let control = TaskControl::new(ProgressUnit::Images);
    let parts = vec![OutputsPart::in_folder(OutputFolder::local(folder))];
    let Ok(found) = FoundOutputs::find(parts, &*source, &samples, "/photos", &control) else {
        return false;
    };
    let choice = ReadingChoice { mapping: None, labels: None, keep: KeepRule::default() };
    let Ok(run) = found.describe(InferenceLocation::Here, &choice, |_| None, &control) else {
        return false;
    };
    let all = (0..samples.len()).map(SampleId::from_index).collect();
    let mut arrived = Arrived::default();
    let outcome = found.read(&run.reader, &source, &all, &control, &mut arrived);
    assert_eq!(outcome.done, arrived.predictions);
    assert_eq!(outcome.done + outcome.failed, arrived.images.len());
    outcome.done > 0
}

pub(crate) fn tfrecord(bytes: &[u8]) -> bool {
    let file = ("/photos.tfrecord".to_owned(), bytes.to_vec());
    let source = WithRecords::over(Arc::new(MemorySource::new([file])));
    let samples: Vec<Sample> = source.pages().flat_map(|page| page.samples).collect();
    // Each record has at least its lengths, its checksums and one byte.
    assert!(samples.len() * 17 <= bytes.len());
    let mut taken = 0;
    for sample in &samples {
        if let Ok((image, truth)) = source.read_with_truth(&sample.uri) {
            assert!(image.len() <= bytes.len());
            assert!(truth.boxes.len() * 4 <= bytes.len());
            assert_eq!(source.read(&sample.uri).ok(), Some(image));
            taken += 1;
        }
    }
    taken > 0
}

/// With valid checksums, so that its fields are read.
pub(crate) fn tf_example(bytes: &[u8]) -> bool {
    tfrecord(&framed_record(bytes))
}

/// An annotation file of any format, next to a YOLO label file.
pub(crate) fn annotation_file(bytes: &[u8]) -> bool {
    let is_yaml = bytes.windows(6).any(|window| window == b"names:");
    let path = written(if is_yaml { "data.yaml" } else { "labels.txt" }, bytes);
    if is_yaml {
        let labels = path.with_file_name("labels").join("val");
        std::fs::create_dir_all(&labels).expect("the test may write");
        std::fs::write(labels.join("a.txt"), "0 0.5 0.5 0.25 0.25\n1 0.5 0.5 0.1 0.1 0.75\n")
            .expect("the test may write");
    }
    let control = TaskControl::new(ProgressUnit::Bytes);
    let found = match annotations::open(&Files::local(&path), &control) {
        Ok(found) => found,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let annotations = &found.annotations;
    assert!(annotations.problems.iter().count() as u64 <= annotations.problems.total());
    let scores = annotations.has_scores();
    let check = |class: u32, score: Option<f64>| {
        assert!((class as usize) < annotations.classes.len());
        assert_eq!(score.is_some(), scores, "{annotations:?}");
        assert!(score.is_none_or(|score| (0.0..=1.0).contains(&score)));
    };
    for image in &annotations.images {
        assert!(image.size.is_none_or(|size| size.iter().all(|side| *side > 0)));
        image.labels.iter().for_each(|label| check(label.class, label.score));
        for one in &image.boxes {
            check(one.class, one.score);
            assert!(<[f64; 4]>::from(one.bounds).iter().all(|number| number.is_finite()), "{annotations:?}");
            assert!(one.bounds.width >= 0.0 && one.bounds.height >= 0.0, "{annotations:?}");
        }
    }
    let keys: Vec<ImageKey> = annotations.images.iter().map(ImageKey::new).collect();
    let same = ImageMatches::between(&keys, &keys, Folders::Agree);
    assert!(same.left.iter().enumerate().all(|(at, found)| found.is_err() || same.index(at) == Some(at as u32)));
    found.entries > annotations.problems.total()
}

pub(crate) fn project(bytes: &[u8]) -> bool {
    let path = written("p.spotcheck", bytes);
    let request = OpenRequest { path: &path, root: None, mode: OpenMode::Read, program: "a test" };
    let Ok(opened) = Project::open(&request, |_| ()) else {
        return false;
    };
    let project = opened.project;
    let control = TaskControl::new(ProgressUnit::Images);
    let mut is_whole = project.place().is_ok() && project.views().is_ok();
    is_whole &= project.judgments().is_ok();
    let runs = project.runs();
    is_whole &= runs.is_ok();
    for run in runs.unwrap_or_default() {
        let counts = project.prediction_counts(run.id);
        let mut uris: Vec<SampleUri> = Vec::new();
        let visited = project.each_prediction(run.id, &control, |predictions| {
            uris.extend(predictions.into_iter().map(|prediction| prediction.sample));
        });
        let summaries = project.each_summary(run.id, &control, drop);
        let stamps = project.stamps(run.id);
        let predictions = project.predictions(run.id, &uris);
        is_whole &= counts.is_ok() && visited.is_ok() && summaries.is_ok() && stamps.is_ok();
        if let Ok(predictions) = predictions {
            assert_eq!(predictions.len(), uris.len());
        }
    }
    assert_eq!(std::fs::read(&path).ok().as_deref(), Some(bytes), "reading leaves a file as it is");
    is_whole
}
