//! The images of a project that are exported or compared, without a window.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

use super::{ExportError, missing_embeddings, review_sample, stored_vectors};
use crate::domain::{
    BoundingBox, FileStamp, JudgedSample, RunId, RunInfo, Sample, SampleId, SampleSet, SampleUri, Verdict, ViewSettings,
};
use crate::image::source::Source;
use crate::project::{Project, StoreError, StoredStamp};
use crate::review::{
    ArrangeRequest, Direction, Mark, Marks, Predictions, Query, Sort, SortBy, Suppressed, VerdictKind, arrange,
};
use crate::tasks::TaskControl;

/// An image as it was when predicted.
pub fn stored_sample(project: &Project, uri: SampleUri, stamp: Option<FileStamp>) -> Sample {
    let FileStamp { size_bytes, modified_ns, etag } = stamp.unwrap_or_default();
    Sample { name: uri.name_below(project.root().as_deref()), uri, size_bytes, modified_ns, etag, capture: None }
}

/// The images that the project knows: predicted by the run, failed, or judged.
///
/// # Errors
/// The project cannot be read, or canceled.
pub fn known_samples(
    project: &Project,
    run: RunId,
    judgments: &[JudgedSample],
    control: &TaskControl,
) -> Result<Vec<Sample>, StoreError> {
    let mut stamps = project.stamps(run)?;
    let only_judged: Vec<&JudgedSample> =
        judgments.iter().filter(|judged| !stamps.contains_key(&judged.sample)).collect();
    let mut samples = Vec::new();
    project.each_summary(run, control, |page| {
        for summary in page {
            let stamp = stamps.remove(&summary.sample).and_then(|stored| stored.stamp);
            samples.push(stored_sample(project, summary.sample, stamp));
        }
    })?;
    samples.extend(only_judged.into_iter().map(|judged| stored_sample(project, judged.sample.clone(), None)));
    Ok(samples)
}

/// Sorts images in the order of the source, with their current files; unlisted ones come last.
pub fn follow_listing(samples: &mut [Sample], source: &dyn Source) {
    let listed = source.pages().flat_map(|page| page.samples);
    let places: HashMap<SampleUri, (usize, Sample)> =
        listed.zip(0..).map(|(sample, place)| (sample.uri.clone(), (place, sample))).collect();
    for sample in &mut *samples {
        if let Some((_, now)) = places.get(&sample.uri) {
            // A record is named after its file.
            let name = if sample.uri.record().is_some() { now.name.clone() } else { std::mem::take(&mut sample.name) };
            *sample = Sample { name, ..now.clone() };
        }
    }
    samples.sort_by_key(|sample| places.get(&sample.uri).map_or(usize::MAX, |(place, _)| *place));
}

/// The images that match the query.
///
/// # Errors
/// The project cannot be read, or canceled.
pub fn matching_samples(
    samples: Vec<Sample>,
    project: &Project,
    run: &RunInfo,
    view: &ViewSettings,
    query: &Query,
    judgments: &[JudgedSample],
    control: &TaskControl,
) -> Result<Vec<Sample>, ExportError> {
    if query.is_empty() {
        return Ok(samples);
    }
    let ids: HashMap<&SampleUri, SampleId> =
        samples.iter().enumerate().map(|(index, sample)| (&sample.uri, SampleId::from_index(index))).collect();
    let predictions = known_predictions(project, run, &ids, control)?;
    let of_outdated = |(uri, stored): (SampleUri, StoredStamp)| {
        let id = *ids.get(&uri)?;
        let now = samples[id.index()].stamp();
        stored.stamp.is_some_and(|then| !then.is_of(&now)).then_some(id)
    };
    let similarity =
        query.similar_to().map(|name| similarity_to(project, run, &samples, &name, control)).transpose()?;
    let by_similarity = Sort { by: SortBy::Similarity, direction: Direction::Descending };
    let request = ArrangeRequest {
        sort: if similarity.is_some() { by_similarity } else { Sort::default() },
        similarity,
        predictions: Some(predictions),
        outdated: project.stamps(run.id)?.into_iter().filter_map(of_outdated).collect(),
        sampled: sampled(project, run, &samples)?,
        labels: run.labels.clone(),
        view: view.clone(),
        suppressed: suppressed(project, run, view, &ids, control)?,
        marks: marks(judgments, run.id, &ids),
        query: query.clone(),
        samples: samples.iter().cloned().collect(),
        ..ArrangeRequest::default()
    };
    let arrangement = arrange(&request, &|| control.is_cancelled());
    control.checkpoint()?;
    let order = arrangement.map(|arrangement| Arc::clone(arrangement.order())).unwrap_or_default();
    Ok(order.iter().map(|id| samples[id.index()].clone()).collect())
}

/// Why a name alone does not say which image is meant.
#[derive(Debug, thiserror::Error)]
#[error("{count} images have this name, such as {first} and {second}; write the path of one")]
pub struct AmbiguousName {
    count: usize,
    first: String,
    second: String,
}

/// The position of the image with this path or, if there is none, with this file name, ignoring case.
///
/// # Errors
/// Several images have this file name.
pub fn find_named<'s>(
    samples: impl IntoIterator<Item = &'s Sample>,
    name: &str,
) -> Result<Option<usize>, AmbiguousName> {
    let name = name.to_lowercase();
    let mut of_name = Vec::new();
    for (at, sample) in samples.into_iter().enumerate() {
        let path = sample.name.to_lowercase();
        if path == name || sample.uri.as_str().to_lowercase() == name {
            return Ok(Some(at));
        }
        if path.rsplit('/').next() == Some(&*name) {
            of_name.push((at, &sample.name));
        }
    }
    match of_name[..] {
        [(_, first), (_, second), ..] => {
            let [first, second] = [first, second].map(ToString::to_string);
            Err(AmbiguousName { count: of_name.len(), first, second })
        }
        _ => Ok(of_name.first().map(|(at, _)| *at)),
    }
}

/// The similarity of each image to the one with this name; NaN without an embedding.
fn similarity_to(
    project: &Project,
    run: &RunInfo,
    samples: &[Sample],
    name: &str,
    control: &TaskControl,
) -> Result<Arc<[f32]>, ExportError> {
    let failed = |reason: String| ExportError::Similarity { name: name.to_owned(), reason };
    let query = find_named(samples, name).map_err(|error| failed(error.to_string()))?;
    let query = query.ok_or_else(|| failed("no image has this name or path".to_owned()))?;
    let (_, vectors) = stored_vectors(project, run, control)?.ok_or_else(|| failed(missing_embeddings(run)))?;
    let vectors = vectors.of_samples(samples);
    vectors.similarity_to(samples, &samples[query].uri).ok_or_else(|| {
        failed("it has no embedding, because it is outdated or failed; predict it again with `--resume`".to_owned())
    })
}

/// A run's predictions for these images, without box positions.
///
/// # Errors
/// The project cannot be read, or canceled.
pub fn known_predictions(
    project: &Project,
    run: &RunInfo,
    ids: &HashMap<&SampleUri, SampleId, impl BuildHasher>,
    control: &TaskControl,
) -> Result<Predictions, StoreError> {
    let mut predictions = Predictions::new(run.card.stored_as());
    project.each_summary(run.id, control, |page| {
        for summary in page {
            let Some(&id) = ids.get(&summary.sample) else {
                continue;
            };
            match summary.result {
                Ok(found) => {
                    predictions.record_summary(id, found.width, found.height, &found.classes, &found.scores);
                    predictions.set_warnings(id, found.warnings);
                }
                Err(reason) => predictions.record_failure(id, reason),
            }
        }
    })?;
    Ok(predictions)
}

/// The images in the sample of the run.
fn sampled(project: &Project, run: &RunInfo, samples: &[Sample]) -> Result<SampleSet, StoreError> {
    let sample = review_sample(project, run)?;
    let names: HashSet<&str> = sample.iter().flat_map(|sample| &sample.units).map(|unit| unit.image.as_str()).collect();
    let root = project.root();
    let is_sampled = |sample: &Sample| names.contains(&*sample.uri.name_below(root.as_deref()));
    let sampled = samples.iter().enumerate().filter(|(_, sample)| is_sampled(sample));
    Ok(sampled.map(|(index, _)| SampleId::from_index(index)).collect())
}

/// The suppressed boxes, if the view suppresses any: this requires all boxes.
fn suppressed(
    project: &Project,
    run: &RunInfo,
    view: &ViewSettings,
    ids: &HashMap<&SampleUri, SampleId>,
    control: &TaskControl,
) -> Result<Option<Suppressed>, StoreError> {
    let Some(max_iou) = view.nms_iou else {
        return Ok(None);
    };
    let mut suppressed = Suppressed::new(max_iou);
    project.each_prediction(run.id, control, |page| {
        for prediction in page {
            let (Some(&id), Ok(prediction)) = (ids.get(&prediction.sample), &prediction.result) else {
                continue;
            };
            let boxes = prediction.detections();
            let bounds: Vec<BoundingBox> = boxes.iter().map(|found| found.bounds).collect();
            let classes: Vec<u32> = boxes.iter().map(|found| found.class_id).collect();
            let scores: Vec<f32> = boxes.iter().map(|found| found.score).collect();
            suppressed.record(id, &bounds, &classes, &scores);
        }
    })?;
    Ok(Some(suppressed))
}

fn marks(judgments: &[JudgedSample], run: RunId, ids: &HashMap<&SampleUri, SampleId>) -> Marks {
    let mut marks = Marks::default();
    for judged in judgments {
        let Some(&id) = ids.get(&judged.sample) else {
            continue;
        };
        let verdicts = judged.on_run(Some(run));
        let mark = Mark {
            verdict: verdicts.get(&None).map(|verdict| VerdictKind::from(*verdict)),
            boxes: verdicts.iter().filter_map(|(index, verdict)| Some(((*index)?, (*verdict).into()))).collect(),
            has_wrong_label: judged.verdicts.iter().any(|(_, verdict)| matches!(verdict, Verdict::Spurious(_))),
            note: (!judged.note.is_empty()).then(|| judged.note.as_str().into()),
            tags: judged.tags.clone().into(),
        };
        marks.set(id, mark);
    }
    marks
}
