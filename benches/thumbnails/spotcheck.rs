//! Makes a thumbnail of every file in a folder, on one thread, and prints the CPU milliseconds an image took.
//!
//! usage: cargo bench --bench thumbnails -- FOLDER [SIDE] [ROUNDS]

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::PathBuf;
use std::time::Instant;

use spotcheck::decode::{DecodeLimits, thumbnail};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds a flag of its own.
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|text| !text.starts_with("--"));
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        println!("which folder?");
        return Ok(());
    };
    let side = arguments.next().map_or(Ok(256), |text| text.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let limits = DecodeLimits::default();
    let mut best = f64::INFINITY;
    for _ in 0..=rounds {
        // One thread that never waits but for the page cache: its time is its CPU time.
        let begun = Instant::now();
        for file in &files {
            thumbnail(&std::fs::read(file)?, side, &limits)?;
        }
        let milliseconds = begun.elapsed().as_secs_f64() * 1000.0 / files.len() as f64;
        best = best.min(milliseconds);
    }
    println!("{best:.4}");
    Ok(())
}
