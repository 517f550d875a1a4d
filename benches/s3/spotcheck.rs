//! Lists everything below an S3 prefix, or reads all of it, like the program, and prints the cost as a line of JSON.
//!
//! usage: `cargo bench --bench s3 -- list|fetch s3://BUCKET/PREFIX/`, with server and credentials in `AWS_…`

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use spotcheck::aws::Aws;
use spotcheck::domain::{S3Address, S3Place, Sample};
use spotcheck::image::source::{S3Source, Source, SourceError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds its own flag.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| !text.starts_with("--")).collect();
    let [what, address] = arguments.as_slice() else {
        println!("list or fetch, and which prefix?");
        return Ok(());
    };
    let place = S3Place::new(S3Address::parse(address)?);
    let begun = Instant::now();
    let source = S3Source::open(&Aws::new(), &place, None)?;
    let mut first_page = None;
    let mut samples: Vec<Sample> = Vec::new();
    for page in source.pages() {
        if let Some(problem) = page.problems.first() {
            return Err(problem.to_string().into());
        }
        samples.extend(page.samples);
        first_page.get_or_insert_with(|| begun.elapsed().as_secs_f64());
    }
    let count = samples.len();
    let listed = begun.elapsed().as_secs_f64();
    let first_page = first_page.unwrap_or_default();
    if what == "list" {
        println!(r#"{{"count": {count}, "seconds": {listed:.4}, "first_page": {first_page:.4}}}"#);
        return Ok(());
    }
    let begun = Instant::now();
    let bytes = read_all(&source, &samples)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(r#"{{"count": {count}, "seconds": {seconds:.4}, "bytes": {bytes}}}"#);
    Ok(())
}

/// Reads with as many threads as a run uses for this source.
fn read_all(source: &S3Source, samples: &[Sample]) -> Result<u64, SourceError> {
    let next = AtomicUsize::new(0);
    let bytes = AtomicU64::new(0);
    let read = || -> Result<(), SourceError> {
        while let Some(sample) = samples.get(next.fetch_add(1, Ordering::Relaxed)) {
            let content = source.read(&sample.uri)?;
            bytes.fetch_add(content.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..source.useful_reads()).map(|_| scope.spawn(read)).collect();
        readers.into_iter().try_for_each(|reader| reader.join().unwrap_or(Err(SourceError::Cancelled)))
    })?;
    Ok(bytes.into_inner())
}
