//! Reads lines of JSON, one prediction each, like the outputs of TFRecord files, and prints the time taken as JSON.
//!
//! usage: `cargo bench --bench outputs -- FILE.jsonl`

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::time::Instant;

use spotcheck::domain::KeepRule;
use spotcheck::sagemaker::outputs::{LabelSource, OutputReader, Recognition};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds its own flag.
    let path = std::env::args().skip(1).find(|text| !text.starts_with("--"));
    let Some(path) = path else {
        println!("which file?");
        return Ok(());
    };
    let begun = Instant::now();
    let text = std::fs::read_to_string(path)?;
    let first = text.lines().next().unwrap_or_default();
    let shape = Recognition::from_output(first.as_bytes())?.shape;
    let reader = OutputReader::new(shape, LabelSource::Outputs, KeepRule::default());
    let (mut count, mut boxes) = (0, 0);
    for line in text.lines() {
        boxes += reader.read(line.as_bytes(), None)?.detections().len();
        count += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(r#"{{"count": {count}, "boxes": {boxes}, "seconds": {seconds:.4}}}"#);
    Ok(())
}
