//! Compares all images with one, by the embeddings next to the project.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::alike::METRIC;
use crate::domain::{Encoder, RunId, Sample, SampleId, SampleUri, SharedList};
use crate::project::export::{Vectors, stored_vectors};
use crate::window::effects::Shared;
use crate::window::state::{Alike, SourceId};

/// # Errors
/// Why there is nothing to compare, and what to do.
pub(super) fn find(
    shared: &Shared,
    source: SourceId,
    run: RunId,
    sample: SampleId,
    samples: &SharedList<Sample>,
) -> Result<Alike, String> {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let (encoder, vectors) = embeddings(shared, source, run, samples)?;
    let query = samples.get(sample.index()).ok_or("The image is no longer listed")?;
    let row = vectors.uris.iter().position(|uri| *uri == query.uri).and_then(|row| vectors.rows.row(row));
    let similarities = vectors.rows.similarities(&row.ok_or_else(|| no_embedding("this image", &encoder.model_id))?);
    let similarity_of: HashMap<&SampleUri, f32> = vectors.uris.iter().zip(similarities).collect();
    let similarity = samples.iter().map(|sample| similarity_of.get(&sample.uri).copied().unwrap_or(f32::NAN)).collect();
    let description = format!("Sorted by similarity to {}: {METRIC}, {encoder}", query.name);
    Ok(Alike { source, run, number: NUMBER.fetch_add(1, Ordering::Relaxed), similarity, description })
}

/// The embeddings of a run's images in their present versions, in listing order.
///
/// # Errors
/// Why there are none, and what to do.
pub(crate) fn embeddings(
    shared: &Shared,
    source: SourceId,
    run: RunId,
    samples: &SharedList<Sample>,
) -> Result<(Encoder, Vectors), String> {
    let project = shared.project(source).ok_or("The project was closed; open the images again")?;
    let runs = project.runs().map_err(|error| error.to_string())?;
    let info = runs.iter().find(|info| info.id == run).ok_or("Predict images first")?;
    let stored = stored_vectors(&project, info).map_err(|error| error.to_string())?;
    let present = stored.map(|(encoder, vectors)| (encoder, vectors.of_samples(samples.iter())));
    let present = present.filter(|(_, vectors)| !vectors.uris.is_empty());
    present.ok_or_else(|| no_embedding("these images", &info.card.name))
}

fn no_embedding(images: &str, model: &str) -> String {
    format!(
        "No embedding of {images} by {model}. Predict again in a new run, or add embeddings with `spotcheck predict \
         --resume`; `spotcheck models inspect` tells whether the model has embeddings"
    )
}
