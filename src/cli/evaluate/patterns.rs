//! `evaluate --error-patterns`: what goes wrong together.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use super::sides::{Listing, Opened, OpenedRun};
use crate::cli::export::read_captures;
use crate::domain::{Capture, Encoder, SampleId, counted};
use crate::evaluation::pipeline::{EmbeddedImages, KnownImages, error_patterns};
use crate::image::source::for_task;
use crate::project::StoreError;
use crate::project::export::{Existing, ExportTarget, Vectors, stored_vectors, write_patterns};
use crate::tasks::{ProgressUnit, TaskControl};

type CaptureOf<'c> = &'c dyn Fn(SampleId) -> Option<Arc<Capture>>;

/// Searches the errors for patterns, writes these, and prints how they were found.
pub(super) fn write(path: &Path, existing: Existing, opened: &Opened, control: &TaskControl) -> anyhow::Result<()> {
    let Opened { sides, listed, run } = opened;
    let captures = listed.as_ref().map(|listed| captures(listed, control)).transpose()?;
    let capture_of = |sample: SampleId| captures.as_ref()?.get(sample.index()).cloned().flatten();
    let vectors = run.as_ref().map_or(Ok(None), |run| vectors(run, listed.as_ref(), control));
    let (vectors, why_none) = match vectors {
        Err(StoreError::Cancelled(cancelled)) => return Err(cancelled.into()),
        Err(error) => (None, error.to_string()),
        Ok(vectors) => (vectors, "the predictions have no embeddings in a project".to_owned()),
    };
    let embeddings = vectors.as_ref().map(|(encoder, names, vectors)| EmbeddedImages {
        encoder: encoder.clone(),
        names: names.clone(),
        rows: &vectors.rows,
    });
    let known = KnownImages { capture_of: captures.as_ref().map(|_| &capture_of as CaptureOf<'_>), embeddings };
    let than = run.as_ref().and_then(|run| run.other.as_ref()).map(|(name, sides)| (name.as_str(), sides));
    let patterns = error_patterns(sides, than, known, control)?;
    write_patterns(&patterns, &ExportTarget { path: path.to_owned(), existing })
        .context("Could not write the error patterns")?;
    let found = counted(patterns.found.patterns.len(), "error pattern", "error patterns");
    eprintln!("{found}: {}", patterns.method_text());
    if captures.is_none() {
        eprintln!("note: Specify the image folder to search by camera and time of day.");
    }
    if vectors.is_none() {
        eprintln!("note: Similar images are not grouped: {why_none}");
    }
    Ok(())
}

/// The EXIF data of each image; `None` where it cannot be read.
fn captures((source, samples): &Listing, control: &TaskControl) -> anyhow::Result<Vec<Option<Arc<Capture>>>> {
    control.begin(ProgressUnit::Images);
    control.set_step("reading EXIF data");
    let mut samples = samples.clone();
    read_captures(&mut samples, &*for_task(source, control), "--error-patterns", control)?;
    Ok(samples.into_iter().map(|sample| sample.capture).collect())
}

/// The embeddings of the run, each with the name of its image; `None` if there are none.
fn vectors(
    run: &OpenedRun,
    listed: Option<&Listing>,
    control: &TaskControl,
) -> Result<Option<(Encoder, Vec<String>, Vectors)>, StoreError> {
    let Some((encoder, vectors)) = stored_vectors(&run.project, &run.run, control)? else {
        return Ok(None);
    };
    // Embeddings of earlier versions of a file do not describe it.
    let vectors = match listed {
        Some((_, samples)) => vectors.of_samples(samples),
        None => vectors,
    };
    let root = run.project.root();
    let names: Vec<String> = vectors.uris.iter().map(|uri| uri.name_below(root.as_deref())).collect();
    Ok(Some((encoder, names, vectors)).filter(|(_, names, _)| !names.is_empty()))
}
