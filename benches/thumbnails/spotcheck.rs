//! Makes a thumbnail of every file in a folder, on one thread, and prints the CPU milliseconds per image.
//!
//! usage: cargo bench --bench thumbnails -- FOLDER [SIDE] [ROUNDS]

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Instant;

use spotcheck::image::decode::{DecodeLimits, thumbnail};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds its own flag.
    let mut arguments = std::env::args().skip(1).filter(|text| !text.starts_with("--"));
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        println!("which folder?");
        return Ok(());
    };
    let side = arguments.next().map_or(Ok(256), |text| text.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let limits = DecodeLimits::default();
    let mut best = f64::INFINITY;
    for _ in 0..=rounds {
        let begun = cpu_seconds();
        for file in &files {
            thumbnail(&std::fs::read(file)?, side, &limits)?;
        }
        let milliseconds = (cpu_seconds() - begun) * 1000.0 / files.len() as f64;
        best = best.min(milliseconds);
    }
    println!("{best:.4}");
    Ok(())
}

/// The CPU time of this thread on Linux; on other systems the elapsed time.
fn cpu_seconds() -> f64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = counted.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGUN.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}
