//! Decodes the boxes of each file in a folder, an output `[1, 4 + classes, 8400]` as exported by Ultralytics, and
//! prints the milliseconds per file and the number of remaining boxes, as JSON.
//!
//! usage: `cargo bench --bench detections -- FOLDER [ROUNDS]`

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use spotcheck::domain::{
    AxisTransform, BoxFormat, Columns, DetectionOutput, KeepRule, LabelSet, OutputConvention, Prediction,
};
use spotcheck::model::{Prepared, Tensor, postprocess};

const CANDIDATES: usize = 8400;
const MAX_IOU: f32 = 0.7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds its own flag.
    let mut arguments = std::env::args().skip(1).filter(|text| !text.starts_with("--"));
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        println!("which folder?");
        return Ok(());
    };
    let rounds: u32 = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let convention = OutputConvention::Detection(DetectionOutput {
        labels: None,
        scores: Columns::at("output0", 4),
        candidates_last: true,
        box_format: BoxFormat::Cxcywh,
        ..DetectionOutput::separate("output0", "", "")
    });
    let names: Vec<String> = (0..80).map(|class| format!("class of objects {class}")).collect();
    let labels = LabelSet::parse(&names.join("\n"))?;
    let image = Prepared {
        tensor: Tensor::u8([1, 1, 1, 3], vec![0; 3]),
        auxiliary: Vec::new(),
        image_from_model: AxisTransform { scale: [1.5, 1.5], offset: [0.0, -60.0] },
        canvas_size: [640, 640],
        image_size: [960, 840],
    };
    for file in files {
        let values: Vec<f32> = std::fs::read(&file)?
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        let rows = values.len() / CANDIDATES;
        let outputs = BTreeMap::from([("output0".to_owned(), Tensor::f32([1, rows, CANDIDATES], values))]);
        let all = || -> Result<Prediction, Box<dyn std::error::Error>> {
            let image = std::slice::from_ref(&image);
            let mut predictions = postprocess(&convention, &labels, KeepRule::default(), &outputs, image, 1)?;
            Ok(predictions.pop().ok_or("no prediction")?)
        };
        let (mut best_ms, mut best_selected_ms, mut boxes, mut left) = (f64::INFINITY, f64::INFINITY, 0, 0);
        for _ in 0..rounds {
            let begun = Instant::now();
            let prediction = all()?;
            let selected = begun.elapsed();
            boxes = prediction.detections().len();
            left = std::hint::black_box(prediction.without_overlaps(Some(MAX_IOU))).detections().len();
            best_ms = best_ms.min(begun.elapsed().as_secs_f64() * 1e3);
            best_selected_ms = best_selected_ms.min(selected.as_secs_f64() * 1e3);
        }
        println!(r#"{{"ms": {best_ms:.4}, "selected_ms": {best_selected_ms:.4}, "boxes": {boxes}, "left": {left}}}"#);
    }
    Ok(())
}
