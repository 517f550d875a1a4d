//! Reading ground truth, and evaluating runs.

use std::sync::Arc;
use std::time::Instant;

use crate::annotations::matching::{Folders, ImageKey, ImageMatches, MatchRules};
use crate::domain::{NamePattern, Sample, SampleId, SampleSet, SharedList, counted};
use crate::evaluation::pipeline::{
    EmbeddedImages, EvaluateError, Extras, KnownImages, RunSide, TruthFrom, TruthScores, correct, error_patterns,
    measure_all, measure_boxes, open_truth, run_sides, truth_of,
};
use crate::evaluation::{DRAWS, ErrorPattern, Evaluated, GroundTruth, NoTruth, Sides};
use crate::project::StoreError;
use crate::project::export::stored_vectors;
use crate::tasks::TaskControl;
use crate::window::effects::{Effects, Shared};
use crate::window::outputs::effects::import::{corrections_in, files_at};
use crate::window::outputs::effects::labels_of;
use crate::window::state::{
    CorrectedLabels, EvaluateRequest, EvaluatedFound, EvaluatedRun, EvaluationEffect, EvaluationEvent, Failure,
    NO_IMAGE, OpenedTruth, ShownPatterns, Ticket, TruthAt, TruthImages, TruthNames, TruthRequest, TruthSource,
};

/// The limit of images named in a message.
const MAX_NAMED: usize = 5;

pub(crate) fn carry_out(effects: &mut Effects, effect: EvaluationEffect) {
    let shared = &effects.shared;
    match effect {
        EvaluationEffect::OpenTruth { request, ticket } => open(shared, request, ticket),
        EvaluationEffect::Evaluate { request, ticket } => evaluate(shared, request, ticket),
        EvaluationEffect::MeasureCorrected { request, ticket } => measure_corrected(shared, request, ticket),
        EvaluationEffect::FindPatterns { request, other, ticket } => {
            let run = request.run.id;
            shared.run_task(
                "find error patterns",
                ticket,
                move |shared, ticket| patterns(shared, &request, other.as_ref(), &ticket.control),
                move |task, result| EvaluationEvent::PatternsFound { task, run, result },
            );
        }
        EvaluationEffect::EvaluateFound { request, search, images, ticket } => {
            let run = request.run.id;
            shared.run_task(
                "evaluate search results",
                ticket,
                move |shared, ticket| evaluated_found(shared, &request, search, &images, &ticket.control),
                move |task, result| EvaluationEvent::FoundEvaluated { task, run, result },
            );
        }
    }
}

fn open(shared: &Arc<Shared>, request: TruthRequest, ticket: Ticket) {
    let TruthRequest { from, reading, class_map, samples } = request;
    shared.run_task(
        "open ground truth",
        ticket,
        move |shared, ticket| {
            let corrections = class_map.as_deref().map(corrections_in).transpose()?.unwrap_or_default();
            let scores = if reading.ignores_scores { TruthScores::Ignored } else { TruthScores::OfPredictions };
            let (at, from) = truth_from(shared, from, reading.split, scores, &samples)?;
            let labels = match reading.names {
                Some(TruthNames::Set(set)) => labels_of(&set)?,
                Some(TruthNames::Listed(names)) => Some((0..).zip(names).collect()),
                None => None,
            };
            let control = &ticket.control;
            let truth = match &from {
                TruthFrom::Files { files, split: None, scores: TruthScores::OfPredictions }
                    if let Some(found) = shared.take_dropped(files, control) =>
                {
                    truth_of(files.name(), found, labels.as_ref())
                }
                _ => open_truth(&from, labels.as_ref(), control),
            };
            let truth = truth.map_err(|error| failure(&error))?;
            corrections.check_targets(&truth.labels).map_err(|error| {
                let file = class_map.unwrap_or_default();
                format!("Could not use {}: {error}", file.display())
            })?;
            let images = match_images(&truth, &samples);
            Ok(OpenedTruth { at, truth: Arc::new(truth), images, corrections })
        },
        EvaluationEvent::TruthOpened,
    );
}

fn truth_from(
    shared: &Shared,
    from: TruthSource,
    split: Option<String>,
    scores: TruthScores,
    samples: &SharedList<Sample>,
) -> Result<(TruthAt, TruthFrom), Failure> {
    Ok(match from {
        TruthSource::Files(at) => {
            let (at, files) = files_at(shared, &at)?;
            (TruthAt::Files(at), TruthFrom::Files { files, split, scores })
        }
        TruthSource::Verdicts { source, run, view } => {
            let project = shared.project(source).ok_or(Failure::Cancelled)?;
            // The ground truth is read from the project, so all verdicts must be saved first.
            project.flush()?;
            (TruthAt::Verdicts(run.id), TruthFrom::Verdicts { project, run, view })
        }
        TruthSource::Names(pattern) => {
            let names = samples.iter().map(|sample| sample.name.clone()).collect();
            let parsed = NamePattern::parse(&pattern)?;
            (TruthAt::Names(pattern), TruthFrom::Names { names, pattern: parsed })
        }
    })
}

fn match_images(truth: &GroundTruth, samples: &SharedList<Sample>) -> TruthImages {
    let names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
    let keys: Vec<ImageKey<'_>> = names.iter().map(|name| ImageKey::named(name)).collect();
    let matches = ImageMatches::between(&truth.keys(), &keys, Folders::Agree);
    let mut by_sample = vec![NO_IMAGE; names.len()];
    let mut missing = (0, Vec::new());
    for index in 0..truth.images.len() {
        if let Some(sample) = matches.index(index) {
            by_sample[sample as usize] = index as u32;
        } else {
            missing.0 += 1;
            if missing.1.len() < MAX_NAMED {
                missing.1.push(truth.images[index].shown_name());
            }
        }
    }
    let (matched, other_folders) = (truth.images.len() - missing.0, matches.other_folders);
    TruthImages { by_sample: by_sample.into(), matched, missing, other_folders }
}

fn evaluate(shared: &Arc<Shared>, request: EvaluateRequest, ticket: Ticket) {
    let run = request.run.id;
    shared.run_task(
        "evaluate a run",
        ticket,
        move |shared, ticket| evaluated(shared, &request, ticket).map(Box::new),
        move |task, result| EvaluationEvent::Evaluated { task, run, result },
    );
}

fn measure_corrected(shared: &Arc<Shared>, request: EvaluateRequest, ticket: Ticket) {
    let run = request.run.id;
    shared.run_task(
        "measure corrected labels",
        ticket,
        move |shared, ticket| corrected(shared, &request, &ticket.control),
        move |task, result| EvaluationEvent::Corrected { task, run, result },
    );
}

fn evaluated(shared: &Shared, request: &EvaluateRequest, ticket: &Ticket) -> Result<EvaluatedRun, Failure> {
    let begun = Instant::now();
    let control = &ticket.control;
    let sides = sides_of(shared, request, control)?;
    let notes = sides.notes.clone();
    let extras = Extras { draws: DRAWS, suspicious: true, ..Extras::default() };
    let measured = measure_boxes(sides, request.predictions.clone(), extras, control);
    let (mut evaluated, draws, outcomes) = measured.map_err(|error| failure(&error))?;
    let mut run = EvaluatedRun {
        evaluated: Arc::new(evaluated.clone()),
        outcomes: Arc::new(outcomes),
        drawn: Arc::default(),
        notes,
        secs: begun.elapsed().as_secs_f32(),
    };
    let (task, of) = (ticket.id, request.run.id);
    shared.report(EvaluationEvent::Measured { task, run: of, evaluated: Box::new(run.clone()) });
    if let Some(draws) = draws {
        run.drawn = draws.add_intervals(&mut evaluated, control).map_err(|error| failure(&error))?.into();
    }
    run.evaluated = Arc::new(evaluated);
    Ok(run)
}

fn patterns(
    shared: &Shared,
    request: &EvaluateRequest,
    other: Option<&EvaluateRequest>,
    control: &TaskControl,
) -> Result<ShownPatterns, Failure> {
    let sides = sides_of(shared, request, control)?;
    let than =
        other.map(|other| Ok::<_, Failure>((&*other.run.name, sides_of(shared, other, control)?))).transpose()?;
    let project = shared.project(request.source).ok_or(Failure::Cancelled)?;
    let (vectors, why_none) = match stored_vectors(&project, &request.run, control) {
        Err(error @ StoreError::Cancelled(_)) => return Err(error.into()),
        Err(error) => (None, error.to_string()),
        Ok(vectors) => (vectors, "the run has no embeddings".to_owned()),
    };
    let vectors = vectors.map(|(encoder, vectors)| (encoder, vectors.of_samples(request.samples.iter())));
    let vectors = vectors.filter(|(_, vectors)| !vectors.uris.is_empty());
    let root = project.root();
    let embeddings = vectors.as_ref().map(|(encoder, vectors)| EmbeddedImages {
        encoder: encoder.clone(),
        names: vectors.uris.iter().map(|uri| uri.name_below(root.as_deref())).collect(),
        rows: &vectors.rows,
    });
    let capture_of = |sample: SampleId| request.samples.get(sample.index())?.capture.clone();
    let known = KnownImages { capture_of: Some(&capture_of), embeddings };
    let than = than.as_ref().map(|(name, sides)| (*name, sides));
    let patterns = error_patterns(&sides, than, known, control).map_err(|error| failure(&error))?;
    let images = |pattern: &ErrorPattern| {
        pattern.with_error.iter().filter_map(|image| patterns.images[*image as usize].1).collect()
    };
    let sets = patterns.found.patterns.iter().map(images).collect();
    let mut notes = Vec::new();
    if patterns.unread_captures > 0 {
        notes.push(format!(
            "The EXIF data of {} is not read, so these have no camera and time of day. Search for “taken” to read it, \
             and find the patterns again",
            counted(patterns.unread_captures, "image", "images")
        ));
    }
    if patterns.likeness.is_none() {
        notes.push(format!("Similar images are not grouped: {why_none}"));
    }
    Ok(ShownPatterns { patterns: Arc::new(patterns), sets, notes })
}

fn evaluated_found(
    shared: &Shared,
    request: &EvaluateRequest,
    search: String,
    images: &SampleSet,
    control: &TaskControl,
) -> Result<EvaluatedFound, Failure> {
    let mut sides = sides_of(shared, request, control)?;
    sides.images.retain(|image| image.sample.is_some_and(|sample| images.contains(sample)));
    let images = sides.images.len();
    if images == 0 {
        return Err(Failure::new("None of the search results has both ground truth and a prediction".to_owned()));
    }
    let evaluated =
        measure_all(sides, Extras { draws: DRAWS, ..Extras::default() }, control).map_err(|error| failure(&error))?;
    Ok(EvaluatedFound { search, images, metrics: evaluated.metrics })
}

/// All metrics of a run, for an export.
pub(crate) fn measured(
    shared: &Shared,
    request: &EvaluateRequest,
    extras: Extras<'_>,
    control: &TaskControl,
) -> Result<Evaluated, Failure> {
    let sides = sides_of(shared, request, control)?;
    measure_all(sides, extras, control).map_err(|error| failure(&error))
}

/// The metrics against the labels as the verdicts correct them.
fn corrected(shared: &Shared, request: &EvaluateRequest, control: &TaskControl) -> Result<CorrectedLabels, Failure> {
    let begun = Instant::now();
    let with_verdicts = |side: &RunSide<'_>| {
        let mut sides = sides_with(request, side, control)?;
        let corrections = correct(&mut sides, side, control)?;
        Ok((corrections, measure_all(sides, Extras::default(), control)?.metrics.headline()))
    };
    let (corrections, number) = with_side(shared, request, with_verdicts)?;
    Ok(CorrectedLabels { corrections, number, secs: begun.elapsed().as_secs_f32() })
}

fn sides_of(shared: &Shared, request: &EvaluateRequest, control: &TaskControl) -> Result<Sides, Failure> {
    with_side(shared, request, |side| sides_with(request, side, control))
}

fn with_side<T>(
    shared: &Shared,
    request: &EvaluateRequest,
    work: impl FnOnce(&RunSide<'_>) -> Result<T, EvaluateError>,
) -> Result<T, Failure> {
    let project = shared.project(request.source).ok_or(Failure::Cancelled)?;
    // The evaluation reads the project, so everything must be saved first.
    project.flush()?;
    let listed = Some(request.samples.iter().collect());
    let side = RunSide { project: &project, run: &request.run, view: &request.view, listed };
    work(&side).map_err(|error| failure(&error))
}

fn sides_with(request: &EvaluateRequest, side: &RunSide<'_>, control: &TaskControl) -> Result<Sides, EvaluateError> {
    let rules = MatchRules { corrections: &request.corrections, folders: Folders::Agree };
    run_sides(&request.truth, side, rules, control)
}

fn failure(error: &EvaluateError) -> Failure {
    let advice = match error {
        EvaluateError::Cancelled(_) => return Failure::Cancelled,
        EvaluateError::NoClassInCommon { .. } => ". Correct the classes under Class matching",
        EvaluateError::NoTruth { reason: NoTruth::Scores, .. } => {
            ". Open predictions with “Open predictions…”, or ground truth that has scores with “Ignore scores”"
        }
        EvaluateError::OtherFolders { .. } => ". If they are the same, open their parent folder",
        EvaluateError::OtherTask { .. } => ". Choose another run under Runs",
        _ => "",
    };
    Failure::new(format!("{error}{advice}"))
}
