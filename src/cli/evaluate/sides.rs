//! Opens the two sides of an evaluation.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::EvaluateArgs;
use crate::annotations;
use crate::aws::Aws;
use crate::cli::export::{choose_run, open_project, stored_view};
use crate::cli::place::{Place, S3Args};
use crate::cli::values::NmsIou;
use crate::dirs::AppDirs;
use crate::domain::{AnnotationProblems, FileStamp, SampleId, SampleUri};
use crate::evaluate::{EvaluateError, RunSide, TruthFrom, of_annotations, of_run, open_truth};
use crate::evaluation::{GroundTruth, NoTruth, Sides};
use crate::matching::ClassCorrections;
use crate::source::{Files, for_task};
use crate::tasks::TaskControl;

/// Entries that could not be used, of one kind, that are named.
const MAX_NAMED: usize = 5;
/// The minimum score where no project says one.
const USUAL_MIN_SCORE: f64 = 0.5;

pub(super) fn read(args: &EvaluateArgs, dirs: &AppDirs, control: &TaskControl) -> anyhow::Result<Sides> {
    let corrections = args.class_map.as_deref().map(corrections).transpose()?.unwrap_or_default();
    let from = TruthFrom::Files(files(&args.truth, &args.s3)?);
    let truth = open_truth(&from, control).map_err(|error| match error {
        EvaluateError::NoTruth { reason: NoTruth::Scores, .. } => {
            anyhow::Error::from(error).context("Give predictions with --predictions")
        }
        error => anyhow::Error::from(error).context("Could not read the ground truth"),
    })?;
    let mut notes = problem_notes(&truth.problems);
    begin(control);
    let sides = match &args.predictions {
        Some(predictions) => {
            control.set_step("reading the predictions");
            let files = files(predictions, &args.s3)?;
            let found = annotations::open(&files, control).context("Could not read the predictions")?;
            notes.extend(problem_notes(&found.annotations.problems));
            let min_score = args.min_score.map_or(USUAL_MIN_SCORE, f64::from);
            of_annotations(&truth, (files.name(), found), &corrections, min_score)
        }
        None => read_run(&truth, &corrections, args, dirs, control)?,
    };
    let mut sides = sides.map_err(with_advice)?;
    sides.notes.extend(notes);
    Ok(sides)
}

/// What to do on the command line.
fn with_advice(error: EvaluateError) -> anyhow::Error {
    let advice = match &error {
        EvaluateError::NoClassInCommon { .. } => "--class-map says which class is which",
        EvaluateError::UnknownSize { .. } => "Evaluate a project: spotcheck import makes one of predictions",
        EvaluateError::OtherTask { .. } => "--run chooses another run of a project",
        _ => return error.into(),
    };
    anyhow::Error::from(error).context(advice)
}

fn corrections(path: &Path) -> anyhow::Result<ClassCorrections> {
    let failed = || format!("Could not read {}", path.display());
    let text = std::fs::read_to_string(path).with_context(failed)?;
    ClassCorrections::parse(&text).with_context(failed)
}

fn files(path: &Path, s3: &S3Args) -> anyhow::Result<Files> {
    // Flags for S3 may be about the images alone.
    let is_in_s3 = path.to_str().is_some_and(crate::domain::S3Link::is_address);
    let no_flags = S3Args::default();
    Ok(match Place::parse(path, if is_in_s3 { s3 } else { &no_flags })? {
        Place::S3(place) => Files::in_s3(&Aws::new(), &place),
        Place::Path(path) => Files::local(&path),
        Place::Stdin => bail!("annotations are read from a file or folder, not from standard input"),
    })
}

/// Begins a step whose progress is its own.
fn begin(control: &TaskControl) {
    control.set_total(None);
    control.set_done_before(0);
}

/// Names some of what could not be used, by kind.
fn problem_notes(problems: &AnnotationProblems) -> Vec<String> {
    let mut notes = Vec::new();
    for (kind, count) in problems.counts() {
        let of_kind = problems.iter().filter(|problem| problem.kind == kind);
        notes.extend(of_kind.take(MAX_NAMED).map(|problem| format!("{} {}", problem.place, problem.reason)));
        let more = count.saturating_sub(MAX_NAMED as u64);
        if more > 0 {
            notes.push(format!("and {more} more; {}", kind.text(count)));
        }
    }
    notes
}

fn read_run(
    truth: &GroundTruth,
    corrections: &ClassCorrections,
    args: &EvaluateArgs,
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<Result<Sides, EvaluateError>> {
    let path = args.project.as_ref().or(args.source.as_ref());
    let path: &PathBuf = path.context("Give a folder of images, or --project, or --predictions")?;
    let project = open_project(path, &args.s3, dirs, "spotcheck evaluate")?;
    let run = choose_run(&project, args.run.as_deref(), "evaluating")?;
    let mut view = stored_view(&project, &run)?;
    if let Some(min_score) = args.min_score {
        view.min_score = min_score;
        view.min_score_by_class.clear();
    }
    if let Some(NmsIou(iou)) = args.nms_iou {
        view.nms_iou = iou;
    }
    let listed = args.source.as_deref().map(|source| listing(source, &args.s3, control)).transpose()?;
    begin(control);
    let now = listed.as_ref().map(|listed| |uri: &SampleUri| listed.get(uri).cloned());
    let side = RunSide {
        project: &project,
        run: &run,
        view: &view,
        listing: now.as_ref().map(|now| now as &dyn Fn(&SampleUri) -> Option<(SampleId, FileStamp)>),
    };
    Ok(of_run(truth, &side, corrections, control))
}

/// The files of a source as they are now.
fn listing(
    source: &Path,
    s3: &S3Args,
    control: &TaskControl,
) -> anyhow::Result<HashMap<SampleUri, (SampleId, FileStamp)>> {
    control.set_step("listing the images");
    let opened = Place::parse(source, s3)?.open(control)?;
    let listed = for_task(&opened.source, control);
    let samples = listed.pages().flat_map(|page| page.samples).enumerate();
    let listed = samples.map(|(at, sample)| (sample.uri.clone(), (SampleId::from_index(at), sample.stamp()))).collect();
    control.checkpoint()?;
    Ok(listed)
}
