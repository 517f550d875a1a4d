//! Outputs of remote jobs that become a run of the open images, and how responses are read: examples for trying a
//! mapping, and the user's mappings.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{Change, InferenceLocation, LabelSet, RunId, RunInfo};
use crate::sagemaker::spec::output_mapping::{ReadingRequest, ResponseExamples};
use crate::sagemaker::spec::remote_model::RemoteAddress;
use crate::tasks::ProgressUnit;
use crate::window::state::{
    Action, FoundRun, OpenOutputsRequest, OpenPredictionsRequest, OutputsAt, OutputsCommand, OutputsEffect, OutputsEnd,
    OutputsEvent, OutputsFailure, OutputsPlace, OutputsRequest, Overlay, PredictionsFrom, Run, SavedMapping, SourceId,
    State, TaskId, TaskKind, TaskOutcome, Ticket,
};
use crate::window::tasks::update::begin;
use crate::window::{comparison, predict, project, tasks};

pub(crate) fn on_command(state: &mut State, command: OutputsCommand) {
    match command {
        OutputsCommand::Open(request) => open_outputs(state, *request),
        OutputsCommand::OpenPredictions(from) => open_predictions(state, from),
        OutputsCommand::Preview(at) => preview_outputs(state, *at),
        OutputsCommand::TryReading(request) => try_reading(state, *request),
        OutputsCommand::SaveMapping(request) => save_mapping(state, *request),
        OutputsCommand::LoadMapping(path) => load_mapping(state, path),
        OutputsCommand::DeleteMapping(path) => delete_mapping(state, path),
    }
}

pub(crate) fn on_event(state: &mut State, event: OutputsEvent) {
    match event {
        OutputsEvent::Found { source, run, found, .. } => outputs_found(state, source, run, *found),
        OutputsEvent::Labeled { source, run, labels } => labeled(state, source, run, *labels),
        OutputsEvent::Read { source, task, result } => outputs_read(state, source, task, result),
        OutputsEvent::Previewed { source, task, result } => outputs_previewed(state, source, task, result),
        OutputsEvent::Tried { question, trial } => {
            let reading = &mut state.remote.reading;
            if reading.question == question {
                reading.trial = Some(*trial);
            }
        }
        OutputsEvent::MappingsListed { saved, problems } => {
            state.remote.reading.saved = saved;
            state.remote.reading.problems = problems;
        }
        OutputsEvent::MappingSaved(result) => {
            mapping_saved(state, result.map(|saved| *saved));
        }
        OutputsEvent::MappingLoaded(result) => {
            mapping_loaded(state, result.map(|loaded| *loaded));
        }
        OutputsEvent::MappingDeleted(result) => mapping_deleted(state, result),
    }
}

/// Handles opening or closing the dialog.
pub(crate) fn outputs_dialog(state: &mut State) {
    state.remote.outputs.failure = None;
    if state.overlay == Overlay::OpenOutputs {
        let reading = &mut state.remote.reading;
        reading.failure = None;
        if reading.examples_of.is_some() {
            reading.forget_examples();
        }
        state.effects.push(OutputsEffect::ListMappings);
    }
}

/// Previews the first predictions, to show how they are read before all of them are.
fn preview_outputs(state: &mut State, at: OutputsAt) {
    let (None, Some(open)) = (state.remote.outputs.task, &state.source) else {
        return;
    };
    let (source, root) = (open.id, open.root());
    let title = format!("Preview the outputs of {}", at.name());
    let ticket = begin_opening(state, title);
    let place = OutputsPlace { source, root, samples: state.samples.snapshot(), at };
    state.effects.push(OutputsEffect::Preview { place, ticket });
}

fn outputs_previewed(
    state: &mut State,
    source: SourceId,
    task: TaskId,
    result: Result<Arc<ResponseExamples>, OutputsFailure>,
) {
    if state.remote.outputs.task == Some(task) {
        state.remote.outputs.task = None;
    }
    match result {
        Ok(examples) => {
            state.tasks.forget(task);
            set_examples(state, source, None, examples);
        }
        Err(failure) => {
            drop(state.tasks.end(task, outcome_of(&failure)));
            state.remote.outputs.failure = Some(failure);
        }
    }
}

fn outcome_of(failure: &OutputsFailure) -> TaskOutcome {
    match failure {
        OutputsFailure::Cancelled => TaskOutcome::Cancelled,
        OutputsFailure::GroundTruth { message } | OutputsFailure::Failed { message, .. } => {
            TaskOutcome::Failed(message.clone())
        }
    }
}

fn open_outputs(state: &mut State, request: OutputsRequest) {
    if state.remote.outputs.task.is_some() {
        return;
    }
    if let Err(reason) = state.project.check_writable() {
        state.remote.outputs.failure = Some(OutputsFailure::Failed { message: reason.to_owned(), examples: None });
        return;
    }
    let Some(open) = &state.source else {
        return;
    };
    let (source, root) = (open.id, open.root());
    let ticket = begin_opening(state, format!("Open the outputs of {}", request.at.name()));
    state.remote.outputs.request = Some(request.clone());
    let request = OpenOutputsRequest {
        place: OutputsPlace { source, root, samples: state.samples.snapshot(), at: request.at },
        reading: request.reading,
        known: known_runs(state),
        new_run: state.runs.new_id(),
    };
    state.effects.push(OutputsEffect::Open { request, ticket });
}

/// Opens predictions from another tool, if that is possible now.
pub(crate) fn open_predictions(state: &mut State, from: PredictionsFrom) {
    let is_idle = state.remote.outputs.task.is_none();
    let busy = "Other predictions are still being read; wait, or cancel that task";
    let check = Action::OpenPredictions.check(state).and(if is_idle { Ok(()) } else { Err(busy) });
    if let Err(reason) = check {
        return state.show_notice(reason);
    }
    let Some(source) = state.source_id() else {
        return;
    };
    let ticket = begin_opening(state, format!("Open predictions: {}", from.at.name()));
    let request = OpenPredictionsRequest {
        source,
        samples: state.samples.snapshot(),
        from,
        truth: state.opened_truth().map(|opened| Arc::clone(&opened.truth)),
        known: known_runs(state),
        new_run: state.runs.new_id(),
    };
    state.effects.push(OutputsEffect::OpenPredictions { request, ticket });
}

fn begin_opening(state: &mut State, title: String) -> Ticket {
    let ticket = begin(state, TaskKind::ReadOutputs, ProgressUnit::Images, title);
    state.remote.outputs.task = Some(ticket.id);
    state.remote.outputs.failure = None;
    ticket
}

fn known_runs(state: &State) -> Vec<RunInfo> {
    state.runs.iter().map(|run| run.info.clone()).collect()
}

/// Shows the new run; its predictions follow.
fn outputs_found(state: &mut State, source: SourceId, run: RunId, found: FoundRun) {
    if !state.is_open(source) {
        return;
    }
    if state.runs.get(run).is_none() {
        let is_taken = |name: &str| state.runs.iter().any(|run| run.info.name == name);
        let name = found.key.run_name(&found.card.name, is_taken);
        state.runs.add(Run::new(RunInfo {
            id: run,
            name,
            key: found.key,
            card: found.card,
            labels: found.labels,
            // Set with the first prediction.
            created_ms: 0,
        }));
    }
    state.runs.switch_to(Some(run));
    predict::update::predict::run_changed(state);
    // The user who opened the outputs expects to see them.
    if matches!(state.overlay, Overlay::Jobs | Overlay::OpenOutputs | Overlay::OpenPredictions) {
        state.overlay = Overlay::None;
    }
}

/// Stores the class names, which are discovered with the predictions.
fn labeled(state: &mut State, source: SourceId, run: RunId, labels: LabelSet) {
    let is_open = state.is_open(source);
    let Some(run) = state.runs.get_mut(run).filter(|_| is_open) else {
        return;
    };
    run.info.labels = run.info.labels.with_more(&labels);
    let (id, is_in_project) = (run.id(), run.is_in_project);
    if is_in_project {
        project::update::save(state, vec![Change::SetRunLabels(id, labels)]);
    }
}

fn outputs_read(state: &mut State, source: SourceId, task: TaskId, mut result: Result<OutputsEnd, OutputsFailure>) {
    let is_wanted = state.remote.outputs.task == Some(task);
    let outcome = match &result {
        Ok(end) => end.outcome.clone(),
        Err(failure) => outcome_of(failure),
    };
    // A dialog shows the reason itself.
    if let (TaskOutcome::Failed(text), Overlay::None) = (&outcome, state.overlay) {
        state.show_notice(text.clone());
    }
    if let TaskOutcome::Done(text) = &outcome {
        state.show_notice(text.clone());
        if result.as_ref().is_ok_and(|end| !end.is_complete && end.notes.is_empty()) {
            state.problems.add_general(text.clone());
        }
    }
    let notes = result.as_mut().map_or_else(|_| Vec::new(), |end| std::mem::take(&mut end.notes));
    tasks::update::ended(state, task, outcome, notes);
    if is_wanted {
        state.remote.outputs.task = None;
        if let Err(OutputsFailure::Failed { examples: Some(examples), .. }) = &result {
            set_examples(state, source, None, Arc::clone(examples));
        }
        state.remote.outputs.failure = result.err();
        let right = state.remote.outputs.request.as_ref().and_then(|request| request.compare_with);
        if let (Some(right), None) = (right, &state.remote.outputs.failure) {
            comparison::update::open(state, right);
        }
        if state.remote.outputs.failure.is_some() && state.overlay == Overlay::Jobs {
            // The labels and the mapping can be chosen there.
            state.overlay = Overlay::OpenOutputs;
            state.effects.push(OutputsEffect::ListMappings);
        }
    }
}

/// Compares the remote run with the local one, whichever of them is on screen.
pub(crate) fn compare_with_local(state: &mut State) {
    if let Some(other) = state.other_side() {
        comparison::update::open(state, other);
    }
}

impl State {
    /// The newest run to compare with the one on screen: a local one for a remote one, and vice versa; of the same
    /// model, or else for the same task.
    pub fn other_side(&self) -> Option<RunId> {
        let current = self.run().filter(|run| run.task().is_some())?;
        let is_here = |run: &Run| run.info.key.made == InferenceLocation::Here;
        let others = || {
            let all = self.runs.iter().filter(|run| is_here(run) != is_here(current));
            all.filter(|run| run.task() == current.task())
        };
        let same = others().filter(|run| run.info.card.id == current.info.card.id);
        same.last().or_else(|| others().last()).map(Run::id)
    }
}

/// Stores examples; drops those of images that are not open.
pub(crate) fn set_examples(
    state: &mut State,
    source: SourceId,
    of: Option<RemoteAddress>,
    examples: Arc<ResponseExamples>,
) {
    if !state.is_open(source) {
        return;
    }
    let reading = &mut state.remote.reading;
    reading.examples = Some(examples);
    reading.examples_of = of;
    reading.trial = None;
    let request = reading.requested.clone().unwrap_or_default();
    try_reading(state, request);
}

/// Reads the examples this way.
pub(crate) fn try_reading(state: &mut State, request: ReadingRequest) {
    let question = state.ids.next();
    let reading = &mut state.remote.reading;
    reading.requested = Some(request.clone());
    reading.question = question;
    if let Some(examples) = &reading.examples {
        state.effects.push(OutputsEffect::TryReading { question, examples: Arc::clone(examples), request });
    }
}

pub(crate) fn save_mapping(state: &mut State, request: ReadingRequest) {
    start_loading(state);
    state.effects.push(OutputsEffect::SaveMapping(request));
}

pub(crate) fn load_mapping(state: &mut State, path: PathBuf) {
    start_loading(state);
    state.effects.push(OutputsEffect::LoadMapping(path));
}

fn start_loading(state: &mut State) {
    state.remote.reading.failure = None;
    state.remote.reading.is_loading = true;
}

fn mapping_loaded(state: &mut State, result: Result<SavedMapping, String>) {
    state.remote.reading.is_loading = false;
    match result {
        Ok(mapping) => {
            let number = state.ids.next();
            state.remote.reading.loaded = Some((number, mapping));
        }
        Err(reason) => state.remote.reading.failure = Some(reason),
    }
}

fn mapping_saved(state: &mut State, result: Result<SavedMapping, String>) {
    if let Ok(saved) = &result {
        state.show_notice(format!("Saved the mapping {}: {}", saved.mapping.name, saved.path.display()));
        state.effects.push(OutputsEffect::ListMappings);
    }
    mapping_loaded(state, result);
}

pub(crate) fn delete_mapping(state: &mut State, path: PathBuf) {
    state.remote.reading.failure = None;
    state.effects.push(OutputsEffect::DeleteMapping(path));
}

/// Removes a deleted mapping. Its fields stay in the form, so that it can be saved again.
fn mapping_deleted(state: &mut State, result: Result<String, String>) {
    match result {
        Ok(name) => state.show_notice(format!("Deleted the mapping {name}")),
        Err(reason) => state.remote.reading.failure = Some(reason),
    }
    state.effects.push(OutputsEffect::ListMappings);
}
