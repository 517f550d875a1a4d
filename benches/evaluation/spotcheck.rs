//! `prepare FOLDER` creates `run.spotcheck` from `results.json`; `hotcoco FOLDER` measures `results.json` against
//! `truth.json` with only the crate, and prints the seconds and the AP. `README.md` explains the purpose.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench stops at what it did not expect, and prints")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use spotcheck::domain::{
    Change, Detection, FileStamp, InferenceLocation, KeepRule, LabelSet, ModelCard, Prediction, PredictionContent,
    RunId, RunInfo, RunKey, SamplePrediction, SampleUri,
};
use spotcheck::project::{OpenMode, OpenRequest, Project};
use spotcheck::tasks::{ProgressUnit, TaskControl};

const RUN: RunId = RunId(1);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["prepare", folder] => prepare(Path::new(folder)),
        ["hotcoco", folder] => hotcoco_alone(Path::new(folder)),
        _ => println!("usage: prepare FOLDER | hotcoco FOLDER; see benches/evaluation/README.md"),
    }
}

fn hotcoco_alone(folder: &Path) {
    let start = Instant::now();
    let truth = hotcoco::COCO::new(&folder.join("truth.json")).unwrap();
    let results = truth.load_res(&folder.join("results.json")).unwrap();
    let mut evaluation = hotcoco::COCOeval::new(truth, results, hotcoco::IouType::Bbox);
    evaluation.evaluate().unwrap();
    evaluation.accumulate();
    evaluation.summarize_lines();
    let seconds = start.elapsed().as_secs_f64();
    let numbers = start.elapsed().as_secs_f64();
    evaluation.tide_errors(0.5, 0.1).unwrap();
    let tide = start.elapsed().as_secs_f64() - numbers;
    println!("{seconds} {tide} {}", evaluation.stats().unwrap()[0]);
}

fn prepare(folder: &Path) {
    let json = |name: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap() };
    let (truth, results) = (json("truth.json"), json("results.json"));
    let categories = truth["categories"].as_array().unwrap().iter();
    let label = |one: &Value| (one["id"].as_u64().unwrap() as u32, one["name"].as_str().unwrap().to_owned());
    let labels: LabelSet = categories.map(label).collect();
    let mut detections: BTreeMap<u64, Vec<Detection>> = BTreeMap::new();
    for one in results.as_array().unwrap() {
        let [x, y, width, height] = std::array::from_fn(|place| one["bbox"][place].as_f64().unwrap() as f32);
        let class_id = one["category_id"].as_u64().unwrap() as u32;
        detections.entry(one["image_id"].as_u64().unwrap()).or_default().push(Detection {
            bounds: [x, y, x + width, y + height].into(),
            class_id,
            label: labels.name(class_id),
            score: one["score"].as_f64().unwrap() as f32,
            runners_up: Vec::new(),
        });
    }
    let path = folder.join("run.spotcheck");
    let request = OpenRequest { path: &path, root: Some("/images"), mode: OpenMode::Write, program: "a bench" };
    let project = Project::open(&request, |_| ()).unwrap().project;
    let card = include_str!("../../models/ssd-mobilenet-coco/model.toml");
    let card: ModelCard = toml::from_str(card).unwrap();
    let key = RunKey::for_predictions(card.id.clone(), KeepRule::default(), InferenceLocation::Here);
    let info = RunInfo { id: RUN, name: "bench".to_owned(), key, card, labels, created_ms: 0 };
    project.write(1, Change::AddRun(Box::new(info))).unwrap();
    let control = TaskControl::new(ProgressUnit::Images);
    for image in truth["images"].as_array().unwrap() {
        let mut found = detections.remove(&image["id"].as_u64().unwrap()).unwrap_or_default();
        found.sort_by(|one, other| other.score.total_cmp(&one.score));
        let prediction = SamplePrediction {
            sample: SampleUri::new(format!("/images/{}", image["file_name"].as_str().unwrap())),
            stamp: FileStamp::default(),
            result: Ok(Prediction {
                width: image["width"].as_u64().unwrap() as u32,
                height: image["height"].as_u64().unwrap() as u32,
                content: PredictionContent::Detections(found),
                warnings: Vec::new(),
            }),
        };
        let change = Change::Predictions { run: RUN, predictions: vec![prediction] };
        project.write_when_there_is_room(1, change, &control).unwrap();
    }
    project.flush().unwrap();
}
