//! Reads what duplicates are found by, groups images, and computes values for sort orders.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::alike::{DuplicateEvidence, Measure, Sides, outliers, representativeness, uniqueness};
use crate::domain::{Encoder, RunId, Sample, SharedList};
use crate::image::fingerprint::{FingerprintError, Fingerprints};
use crate::image::source::for_task;
use crate::project::export::{ComparedVectors, stored_vectors};
use crate::review::DuplicatePlaces;
use crate::tasks::TaskControl;
use crate::window::browse::effects::alike::{embeddings, run_of};
use crate::window::duplicates::state::{DuplicatesRequest, FoundDuplicates, MeasureBasis, Measured};
use crate::window::effects::{Shared, unique_number};
use crate::window::state::{BrowseEvent, Failure, SourceId, Ticket};

/// What was read for the last search, so that other thresholds need no image.
pub(crate) struct KnownImages {
    source: SourceId,
    revision: u64,
    fingerprints: Fingerprints,
    /// What `vectors` was read of.
    predictions: Option<(RunId, usize)>,
    /// The description of the encoder, and the embeddings.
    vectors: Option<(String, ComparedVectors)>,
}

pub(crate) fn find(shared: &Arc<Shared>, request: DuplicatesRequest, ticket: Ticket) {
    shared.run_task(
        "find duplicates",
        ticket,
        move |shared, ticket| {
            // A search with other thresholds waits until the one that it replaces has stopped.
            let mut known = shared.known_images.lock();
            let known = read_images(shared, &mut known, &request, &ticket.control)?;
            group(known, &request, &ticket.control).map(Arc::new)
        },
        |task, result| BrowseEvent::FoundDuplicates { task, result },
    );
}

fn group(known: &KnownImages, request: &DuplicatesRequest, control: &TaskControl) -> Result<FoundDuplicates, Failure> {
    let KnownImages { fingerprints, vectors, .. } = known;
    let evidence = DuplicateEvidence {
        digests: &fingerprints.digests,
        hashes: &fingerprints.hashes,
        embeddings: vectors.as_ref().map(|(_, vectors)| vectors.parts()),
    };
    let options = request.options;
    let proceed = || control.checkpoint().is_ok();
    let groups = evidence.groups(Sides::One, Some(options.distance), options.above, proceed);
    let groups = groups.ok_or(Failure::Cancelled)?;
    Ok(FoundDuplicates {
        source: request.source,
        number: unique_number(),
        places: DuplicatePlaces::new(request.samples.len(), &groups),
        options,
        encoder: vectors.as_ref().map(|(encoder, _)| encoder.clone()),
        unreadable: fingerprints.problems.len(),
        plain: fingerprints.plain,
    })
}

/// Reads what is not known yet.
fn read_images<'k>(
    shared: &Shared,
    known: &'k mut Option<KnownImages>,
    request: &DuplicatesRequest,
    control: &TaskControl,
) -> Result<&'k KnownImages, Failure> {
    let DuplicatesRequest { source, revision, predictions, .. } = *request;
    let samples: Vec<Sample> = request.samples.iter().cloned().collect();
    let same = known.take_if(|known| (known.source, known.revision) == (source, revision));
    let known = known.insert(match same {
        Some(known) => known,
        None => KnownImages {
            source,
            revision,
            fingerprints: fingerprints(shared, source, &samples, control)?,
            predictions: None,
            vectors: None,
        },
    });
    if known.predictions != predictions {
        known.vectors = match predictions {
            Some((run, _)) => vectors_of(shared, source, run, &samples, control)?,
            None => None,
        };
        known.predictions = predictions;
    }
    Ok(known)
}

fn fingerprints(
    shared: &Shared,
    source: SourceId,
    samples: &[Sample],
    control: &TaskControl,
) -> Result<Fingerprints, Failure> {
    let opened = shared.source(source).ok_or_else(|| "The folder has been closed".to_owned())?;
    let limits = shared.limits.lock().clone();
    control.set_total(Some(samples.len() as u64));
    let read = Fingerprints::read(&*for_task(&opened, control), samples, &limits, control);
    read.map_err(|error| match error {
        FingerprintError::Cancelled => Failure::Cancelled,
        FingerprintError::Unreachable(reason) => Failure::from(reason),
    })
}

/// The embeddings of a run, with the description of their encoder; `None` if it has none.
fn vectors_of(
    shared: &Shared,
    source: SourceId,
    run: RunId,
    samples: &[Sample],
    control: &TaskControl,
) -> Result<Option<(String, ComparedVectors)>, Failure> {
    let Some((project, info)) = run_of(shared, source, run)? else { return Ok(None) };
    control.set_step("reading embeddings");
    let Some((encoder, vectors)) = stored_vectors(&project, &info, control)? else { return Ok(None) };
    control.set_step("comparing");
    let compared = ComparedVectors::new(vectors.of_samples(samples), samples, control)?;
    Ok((!compared.vectors.uris.is_empty()).then(|| (encoder.to_string(), compared)))
}

pub(crate) fn measure(shared: &Arc<Shared>, basis: MeasureBasis, samples: SharedList<Sample>, ticket: Ticket) {
    shared.run_task(
        "measure images",
        ticket,
        move |shared, ticket| {
            ticket.control.set_step("reading embeddings");
            let (encoder, vectors) = embeddings(shared, basis.source, basis.run, &samples, &ticket.control)?;
            let samples: Vec<Sample> = samples.iter().cloned().collect();
            ticket.control.set_step("comparing");
            let compared = ComparedVectors::new(vectors, &samples, &ticket.control)?;
            measured(&encoder, &compared, basis, &ticket.control)
        },
        |task, result| BrowseEvent::Measured { task, result },
    );
}

fn measured(
    encoder: &Encoder,
    compared: &ComparedVectors,
    basis: MeasureBasis,
    control: &TaskControl,
) -> Result<Measured, Failure> {
    let (embeddings, graph, rows) = compared.parts();
    let of_images = |values: Vec<f32>| -> Arc<[f32]> {
        rows.iter().map(|row| row.and_then(|row| values.get(row).copied()).unwrap_or(f32::NAN)).collect()
    };
    // The first two need the same comparison of all images.
    let measure = basis.measure;
    let values = if measure == Measure::Representativeness {
        vec![(measure, representativeness(embeddings, control)?)]
    } else {
        let scores = outliers(graph).into_iter().map(|outlier| outlier.score).collect();
        vec![(Measure::Uniqueness, uniqueness(graph)), (Measure::Outlier, scores)]
    };
    let values: BTreeMap<_, _> = values.into_iter().map(|(measure, values)| (measure, of_images(values))).collect();
    Ok(Measured { basis, number: unique_number(), values: Arc::new(values), encoder: encoder.to_string() })
}
