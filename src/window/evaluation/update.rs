//! Ground truth: opening it, matching it with the images, and evaluating the runs on screen.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::annotations::matching::{ClassCorrections, OtherFolders, classes_of};
use crate::domain::{RunId, counted};
use crate::tasks::ProgressUnit;
use crate::window::evaluation::state::EvaluationBasis;
use crate::window::state::{
    CorrectedLabels, EvaluateRequest, EvaluatedRun, Evaluating, EvaluationCommand, EvaluationEffect, EvaluationEvent,
    Failure, Listing, Loadable, OpenedTruth, Overlay, RunEvaluation, State, TaskId, TaskKind, TruthAt, TruthReading,
    TruthRequest, TruthSource,
};
use crate::window::update::images;
use crate::window::{comparison, project, tasks};

/// The name of the ground truth in the project.
const TRUTH: &str = "ground_truth";
/// Slower evaluations are not repeated automatically when predictions change.
const REPEATED_SECS: f32 = 5.0;
/// The limit of listed problems per kind.
const MAX_LISTED: usize = 20;

#[derive(Serialize, Deserialize)]
struct Saved {
    /// `None` if it was closed.
    at: Option<TruthAt>,
    #[serde(default)]
    reading: TruthReading,
    /// A class of the model and its ground-truth class.
    corrections: Vec<(String, String)>,
}

pub(crate) fn on_command(state: &mut State, command: EvaluationCommand) {
    match command {
        EvaluationCommand::OpenTruth { at, reading, class_map } => open(state, at, reading, class_map),
        EvaluationCommand::CloseTruth => close(state),
        EvaluationCommand::ReadTruthAs(reading) => read_as(state, reading),
        EvaluationCommand::EvaluateAgain => {
            let run = state.run_id();
            if let Some(evaluating) = &mut state.evaluating {
                evaluating.is_due = true;
                if let Some(run) = run {
                    evaluating.runs.entry(run).or_default().basis = None;
                }
            }
        }
        EvaluationCommand::EvaluateFound => evaluate_found(state),
        EvaluationCommand::CorrectClass { from, to } => {
            correct(state, |corrections| corrections.set(from, to));
        }
        EvaluationCommand::MeasureCorrected => {
            if let Some(of_run) = state.run_id().and_then(|run| state.evaluation_mut(run)) {
                of_run.corrected.basis = None;
            }
        }
        EvaluationCommand::ClearCorrections => {
            correct(state, |corrections| *corrections = ClassCorrections::default());
        }
        EvaluationCommand::ShowPanel(is_shown) => show_panel(state, is_shown),
    }
}

pub(crate) fn on_event(state: &mut State, event: EvaluationEvent) {
    match event {
        EvaluationEvent::TruthOpened(task, result) => opened(state, task, result),
        EvaluationEvent::Measured { task, run, evaluated } => measured(state, task, run, *evaluated),
        EvaluationEvent::Evaluated { task, run, result } => ended(state, task, run, result),
        EvaluationEvent::Corrected { task, run, result } => corrected(state, task, run, result),
        EvaluationEvent::PatternsFound { task, run, result } => {
            tasks::update::settle(state, task, result, |state| Some(&mut state.evaluation_mut(run)?.patterns));
            state.evaluation_number += 1;
        }
        EvaluationEvent::FoundEvaluated { task, run, result } => {
            tasks::update::settle(state, task, result, |state| Some(&mut state.evaluation_mut(run)?.found));
        }
    }
}

pub(crate) fn open(state: &mut State, at: TruthAt, reading: TruthReading, class_map: Option<PathBuf>) {
    if state.source.is_none() {
        state.show_notice("Open the images first, then their ground truth");
        return;
    }
    stop(state);
    let previous = state.evaluating.take().and_then(Evaluating::last_opened);
    // Corrections for another file may still apply, because they use names.
    let corrections = previous.as_ref().map(|before| before.corrections.clone()).unwrap_or_default();
    let evaluating = Evaluating::new(at, reading, corrections);
    state.evaluating = Some(Evaluating { class_map, previous, ..evaluating });
    show_panel(state, true);
    // Predictions may turn out to be ground truth.
    if matches!(state.overlay, Overlay::OpenTruth | Overlay::OpenPredictions) {
        state.overlay = Overlay::None;
    }
    save(state);
}

fn read_as(state: &mut State, reading: TruthReading) {
    stop(state);
    if let Some(evaluating) = &mut state.evaluating {
        evaluating.reading = reading;
        evaluating.is_due = true;
        for run in evaluating.runs.values_mut() {
            run.basis = None;
        }
        save(state);
    }
}

/// Shows or hides the panel with the metrics, which replaces the image.
pub(crate) fn show_panel(state: &mut State, is_shown: bool) {
    if let Some(evaluating) = &mut state.evaluating {
        evaluating.is_shown = is_shown;
        if is_shown {
            comparison::update::show_page(state, false);
        }
    }
}

fn close(state: &mut State) {
    stop(state);
    state.evaluating = None;
    state.evaluation_number += 1;
    if state.arranging.sort().by.needs_truth() {
        state.arranging.set_sort(crate::review::Sort::default());
    }
    save(state);
}

/// Cancels pending tasks.
fn stop(state: &mut State) {
    let Some(evaluating) = &state.evaluating else {
        return;
    };
    let tasks_of =
        |run: &RunEvaluation| [run.status.task(), run.corrected.status.task(), run.found.task(), run.patterns.task()];
    let runs = evaluating.runs.values().flat_map(tasks_of).flatten();
    let tasks: Vec<TaskId> = evaluating.truth.task().into_iter().chain(runs).collect();
    for task in tasks {
        tasks::update::cancel(state, Some(task));
    }
}

/// Resets everything for another source.
pub(crate) fn source_changed(state: &mut State) {
    stop(state);
    state.evaluating = None;
    state.evaluation_number += 1;
}

fn correct(state: &mut State, change: impl FnOnce(&mut ClassCorrections)) {
    if let Some(evaluating) = &mut state.evaluating {
        change(&mut evaluating.corrections);
        save(state);
    }
}

fn save(state: &mut State) {
    let rows = |corrections: &ClassCorrections| {
        corrections.rows().map(|(from, to)| (from.to_owned(), to.to_owned())).collect()
    };
    let saved = Saved {
        at: state.evaluating.as_ref().map(|evaluating| evaluating.at.clone()),
        reading: state.evaluating.as_ref().map(|evaluating| evaluating.reading.clone()).unwrap_or_default(),
        corrections: state.evaluating.as_ref().map_or_else(Vec::new, |evaluating| rows(&evaluating.corrections)),
    };
    project::update::save_view(state, TRUTH.to_owned(), &saved);
}

/// Restores the ground truth from the project; ignores other names.
pub(crate) fn restore(state: &mut State, name: &str, json: &str) {
    if name == TRUTH
        && let Ok(Saved { at: Some(at), reading, corrections }) = serde_json::from_str(json)
    {
        let mut all = ClassCorrections::default();
        for (from, to) in corrections {
            all.set(from, to);
        }
        state.evaluating = Some(Evaluating::new(at, reading, all));
    }
}

/// Stores ground truth. Unusable parts are listed as problems.
fn opened(state: &mut State, task: TaskId, result: Result<OpenedTruth, Failure>) {
    if !tasks::update::settle(state, task, result, |state| Some(&mut state.evaluating.as_mut()?.truth)) {
        return;
    }
    state.evaluation_number += 1;
    let Some(opened) = state.opened_truth().cloned() else {
        return_to_previous(state);
        return;
    };
    if let Some(evaluating) = &mut state.evaluating {
        evaluating.class_map = None;
        evaluating.previous = None;
        for (from, to) in opened.corrections.rows() {
            evaluating.corrections.set(from.to_owned(), to.to_owned());
        }
        if evaluating.at != opened.at || !opened.corrections.is_empty() {
            evaluating.at = opened.at;
            save(state);
        }
    }
    let name = &opened.truth.name;
    let problems = &opened.truth.problems;
    for (kind, count) in problems.counts() {
        let of_kind = problems.iter().filter(|problem| problem.kind == kind);
        let listed: Vec<String> = of_kind.take(MAX_LISTED).map(ToString::to_string).collect();
        let more = if count > listed.len() as u64 { ", and more" } else { "" };
        let text = format!("Ground truth {name}: {}: {}{more}", kind.text(count), listed.join("; "));
        state.problems.add_general(text);
    }
    let (missing, examples) = &opened.images.missing;
    let other_folders = opened.images.other_folders.as_ref();
    if let Some(OtherFolders { example: [truth, here], count, are_refused: true }) = other_folders {
        let text = format!(
            "{} in the ground truth {name} the same file name as an open image, but their folders differ, so these \
             may be different images: {truth} and {here}. If they are the same, open their parent folder",
            counted(*count, "image has", "images have")
        );
        state.report_problem(text);
    }
    if opened.images.matched == 0 && other_folders.is_none() {
        let text = format!(
            "None of the {} in the ground truth {name} is open, for example {}. Open their folder",
            images(opened.truth.images.len()),
            examples.join(", ")
        );
        state.report_problem(text);
    } else if *missing > 0 {
        let (one, several) =
            (format!("image in the ground truth {name} is"), format!("images in the ground truth {name} are"));
        let text = format!("{} not open, for example {}", counted(*missing, &one, &several), examples.join(", "));
        state.problems.add_general(text);
    }
}

/// Restores the previous ground truth after one that could not be read.
fn return_to_previous(state: &mut State) {
    let Some(failed) = state.evaluating.take_if(|evaluating| evaluating.previous.is_some()) else {
        return;
    };
    if let Some(failure) = failed.truth.failure() {
        let text = format!("Could not open the ground truth {}: {}", failed.at.name(), failure.message());
        state.report_problem(text);
    }
    state.evaluating = failed.previous.map(|previous| Evaluating { is_shown: failed.is_shown, ..*previous });
    save(state);
}

fn measured(state: &mut State, task: TaskId, run: RunId, evaluated: EvaluatedRun) {
    let of_run = state.evaluation_mut(run);
    if let Some(of_run) = of_run.filter(|of_run| of_run.status.task() == Some(task)) {
        of_run.last = Some(evaluated);
        state.evaluation_number += 1;
    }
}

fn ended(state: &mut State, task: TaskId, run: RunId, result: Result<Box<EvaluatedRun>, Failure>) {
    tasks::update::end(state, task, result.as_ref().err());
    let of_run = state.evaluation_mut(run);
    let Some(of_run) = of_run.filter(|of_run| of_run.status.task() == Some(task)) else {
        return;
    };
    match result {
        Ok(evaluated) => {
            of_run.status = Loadable::Ready(());
            of_run.last = Some(*evaluated);
        }
        Err(Failure::Cancelled) => of_run.status = Loadable::NotLoaded,
        Err(failure) => {
            of_run.status = Loadable::Failed(failure);
            of_run.last = None;
        }
    }
    state.evaluation_number += 1;
}

/// Reads the ground truth once the images are listed, and evaluates the current runs on screen. Called after every
/// message.
pub(crate) fn follow(state: &mut State) {
    let Some(source) = &state.source else {
        return;
    };
    if state.evaluating.is_none() || source.listing == Listing::Running {
        return;
    }
    read_truth(state);
    let compared = state.compared_run();
    for run in state.run_id().into_iter().chain(compared) {
        evaluate(state, run);
    }
    if let Some(run) = state.run_id() {
        measure_corrected(state, run);
    }
}

/// Measures the corrected labels while they are on screen, once the verdicts change.
fn measure_corrected(state: &mut State, run: RunId) {
    let verdicts = state.judgments.marks().revision();
    let Some(evaluating) = &state.evaluating else {
        return;
    };
    let is_on_screen = evaluating.is_shown || state.arranging.is_about_suspects();
    let is_of_verdicts = matches!(evaluating.at, TruthAt::Verdicts(_));
    let Some(of_run) = evaluating.runs.get(&run).filter(|_| is_on_screen && verdicts > 0 && !is_of_verdicts) else {
        return;
    };
    let corrected = &of_run.corrected;
    let basis = of_run.basis.clone().filter(|_| of_run.last.is_some()).map(|basis| (basis, verdicts));
    let is_slow = corrected.basis.is_some() && corrected.last.is_some_and(|last| last.secs > REPEATED_SECS);
    let is_due = basis.is_some() && corrected.basis != basis && !is_slow;
    if !is_due || of_run.status.is_loading() || corrected.status.is_loading() {
        return;
    }
    let Some(request) = request(state, run) else {
        return;
    };
    let title = format!("Measure corrected labels of {}", request.run.name);
    let ticket = tasks::update::begin(state, TaskKind::Evaluate, ProgressUnit::Images, title);
    if let Some(of_run) = state.evaluation_mut(run) {
        of_run.corrected.status = Loadable::Loading(ticket.id);
        of_run.corrected.basis = basis;
    }
    state.effects.push(EvaluationEffect::MeasureCorrected { request, ticket });
}

fn corrected(state: &mut State, task: TaskId, run: RunId, result: Result<CorrectedLabels, Failure>) {
    let measured = result.as_ref().ok().copied();
    let is_current =
        tasks::update::settle(state, task, result, |state| Some(&mut state.evaluation_mut(run)?.corrected.status));
    let of_run = state.evaluation_mut(run);
    if let Some(of_run) = of_run.filter(|_| is_current) {
        of_run.corrected.last = measured.or(of_run.corrected.last);
    }
}

fn read_truth(state: &mut State) {
    let samples = state.samples.len();
    let is_of_others = state.opened_truth().is_some_and(|opened| opened.images.by_sample.len() != samples);
    let Some(evaluating) = &mut state.evaluating else {
        return;
    };
    evaluating.is_due |= is_of_others;
    if !std::mem::take(&mut evaluating.is_due) {
        return;
    }
    let (at, reading, class_map) = (evaluating.at.clone(), evaluating.reading.clone(), evaluating.class_map.clone());
    let title = format!("Reading ground truth: {}", at.name());
    let Some(from) = truth_source(state, &at) else {
        return;
    };
    let ticket = tasks::update::begin(state, TaskKind::ReadTruth, ProgressUnit::Bytes, title);
    if let Some(evaluating) = &mut state.evaluating {
        evaluating.truth = Loadable::Loading(ticket.id);
        evaluating.verdicts = state.judgments.marks().revision();
    }
    let request = TruthRequest { from, reading, class_map, samples: state.samples.snapshot() };
    state.effects.push(EvaluationEffect::OpenTruth { request, ticket });
}

/// The source of ground truth; `None` if the judged run no longer exists.
fn truth_source(state: &State, at: &TruthAt) -> Option<TruthSource> {
    Some(match at {
        TruthAt::Files(at) => TruthSource::Files(at.clone()),
        TruthAt::Names(pattern) => TruthSource::Names(pattern.clone()),
        TruthAt::Verdicts(run) => TruthSource::Verdicts {
            source: state.source.as_ref()?.id,
            run: Box::new(state.runs.get(*run)?.info.clone()),
            view: Box::new(state.view_of_run(*run).into_owned()),
        },
    })
}

/// Opens ground truth in the open folder or file itself: folders by class, or records with labels.
pub(crate) fn open_source(state: &mut State) {
    if let Some(at) = state.location().cloned() {
        open(state, TruthAt::Files(at), TruthReading::default(), None);
    }
}

fn evaluate(state: &mut State, run: RunId) {
    let is_changing =
        state.tasks.running().iter().any(|task| {
            matches!(&task.kind, TaskKind::Predict { .. } | TaskKind::ReadOutputs | TaskKind::LoadRun { .. })
        });
    let (Some(evaluating), Some(of_run)) = (&state.evaluating, state.runs.get(run)) else {
        return;
    };
    if is_changing {
        return;
    }
    let basis = EvaluationBasis {
        predictions: of_run.predictions.revision(),
        samples: state.samples.len(),
        nms_iou: state.view_of_run(run).nms_iou,
        corrections: evaluating.corrections.clone(),
    };
    if let Some(known) = evaluating.runs.get(&run) {
        let is_same = known.basis.as_ref() == Some(&basis);
        let is_slow = known.last.as_ref().is_some_and(|last| last.secs > REPEATED_SECS);
        let differs_only_in_predictions = known
            .basis
            .as_ref()
            .is_some_and(|before| EvaluationBasis { predictions: basis.predictions, ..before.clone() } == basis);
        if is_same || known.status.is_loading() || is_slow && differs_only_in_predictions {
            return;
        }
    }
    let Some(request) = request(state, run) else {
        return;
    };
    let named = classes_of(&request.run.labels);
    let (_, unused) = evaluating.corrections.about(&named);
    let classes = request.truth.match_classes(&named, &request.corrections).unwrap_or_default();
    let title = format!("Evaluate {}", request.run.name);
    let ticket = tasks::update::begin(state, TaskKind::Evaluate, ProgressUnit::Images, title);
    if let Some(evaluating) = &mut state.evaluating {
        let of_run = evaluating.runs.entry(run).or_default();
        of_run.status = Loadable::Loading(ticket.id);
        of_run.found = Loadable::NotLoaded;
        of_run.patterns = Loadable::NotLoaded;
        of_run.basis = Some(basis);
        of_run.classes = Arc::new(classes);
        of_run.unused = unused;
    }
    state.effects.push(EvaluationEffect::Evaluate { request, ticket });
}

/// Evaluates the run on screen on the images that the search found. The minimum scores are those on screen.
fn evaluate_found(state: &mut State) {
    let Some(run) = state.run_id() else {
        return;
    };
    let Some(request) = request(state, run).filter(|_| state.arranging.is_filtered()) else {
        return;
    };
    let images = state.order().ids().collect();
    let title = format!("Evaluate {} on the search results", request.run.name);
    let ticket = tasks::update::begin(state, TaskKind::Evaluate, ProgressUnit::Images, title);
    let earlier = state.evaluating.as_mut().and_then(|evaluating| {
        let found = &mut evaluating.runs.entry(run).or_default().found;
        std::mem::replace(found, Loadable::Loading(ticket.id)).task()
    });
    tasks::update::cancel(state, earlier);
    let search = state.arranging.text().trim().to_owned();
    state.effects.push(EvaluationEffect::EvaluateFound { request, search, images, ticket });
}

/// Searches the errors of the run on screen for patterns; with `other`, those that this run does not make. The minimum
/// scores are those on screen.
pub(crate) fn find_patterns(state: &mut State, other: Option<RunId>) {
    let Some(run) = state.run_id() else { return };
    let Some(request) = request(state, run) else { return };
    let other = other.map(|other| self::request(state, other));
    if matches!(other, Some(None)) {
        return;
    }
    let title = format!("Find error patterns of {}", request.run.name);
    let ticket = tasks::update::begin(state, TaskKind::Evaluate, ProgressUnit::Images, title);
    let earlier = state.evaluating.as_mut().and_then(|evaluating| {
        evaluating.is_shown = true;
        evaluating.pattern_searches += 1;
        let patterns = &mut evaluating.runs.entry(run).or_default().patterns;
        std::mem::replace(patterns, Loadable::Loading(ticket.id)).task()
    });
    tasks::update::cancel(state, earlier);
    state.effects.push(EvaluationEffect::FindPatterns { request, other: other.flatten(), ticket });
}

/// Everything needed to evaluate a run; `None` without ground truth or predictions.
pub(crate) fn request(state: &State, run: RunId) -> Option<EvaluateRequest> {
    let (evaluating, of_run) = (state.evaluating.as_ref()?, state.runs.get(run)?);
    let opened = evaluating.truth.ready()?;
    if !of_run.is_loaded() || of_run.predictions.predicted() == 0 {
        return None;
    }
    // Corrections for another model may refer to classes that this one does not have.
    let (corrections, _) = evaluating.corrections.about(&classes_of(of_run.labels()));
    Some(EvaluateRequest {
        source: state.source.as_ref()?.id,
        truth: Arc::clone(&opened.truth),
        corrections,
        samples: state.samples.snapshot(),
        run: Box::new(of_run.info.clone()),
        view: state.view_of_run(run).into_owned(),
        predictions: of_run.predictions.clone(),
    })
}

/// Handles the deletion of a run.
pub(crate) fn forget_run(state: &mut State, run: RunId) {
    if let Some(evaluating) = &mut state.evaluating {
        evaluating.runs.remove(&run);
    }
}

impl State {
    /// Whether verdicts changed since the corrected labels were measured.
    pub fn corrected_labels_are_outdated(&self) -> bool {
        let basis = self.evaluation().and_then(|evaluation| evaluation.corrected.basis.as_ref());
        basis.is_some_and(|(_, verdicts)| *verdicts != self.judgments.marks().revision())
    }

    /// Whether predictions of the run on screen, or verdicts used as its ground truth, changed since it was evaluated.
    pub fn evaluation_is_outdated(&self) -> bool {
        let (Some(run), Some(evaluating)) = (self.run(), &self.evaluating) else {
            return false;
        };
        let is_of_verdicts = matches!(evaluating.at, TruthAt::Verdicts(_));
        let basis = evaluating.for_run(run.id()).and_then(|evaluation| evaluation.basis.as_ref());
        is_of_verdicts && evaluating.verdicts != self.judgments.marks().revision()
            || basis.is_some_and(|basis| basis.predictions != run.predictions.revision())
    }
}
