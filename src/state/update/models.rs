//! The local models, their settings, and ONNX Runtime.

use std::path::PathBuf;

use super::run_tasks::{begin, cancel_preparation};
use super::{engine, import, predict, report_problem, run_on_screen};
use crate::domain::{Problem, human_bytes};
use crate::state::{
    Effect, FileRequest, ImportSubject, InferenceEffect, LocalEngine, ModelDefaults, ModelEntry, ModelsCommand,
    ModelsEffect, ModelsEvent, Queue, RuntimeKind, State, TaskKind,
};
use crate::tasks::ProgressUnit;

pub(super) fn on_command(state: &mut State, command: ModelsCommand, effects: &mut Queue<Effect>) {
    match command {
        ModelsCommand::Choose(id) => choose_model(state, id, effects),
        ModelsCommand::Fetch(id) => fetch_model(state, id, None, effects),
        ModelsCommand::PickWeights(id) => effects.push(Effect::PickFile(FileRequest::Weights(id))),
        ModelsCommand::Remove(id) => effects.push(ModelsEffect::Remove { id }),
        ModelsCommand::Edit(id) => import::open(state, ImportSubject::Added(id), effects),
        ModelsCommand::ChangeImport { card, labels } => import::change(state, *card, labels, effects),
        ModelsCommand::FindPreprocessing => import::find_preprocessing(state, effects),
        ModelsCommand::ChooseReading(reading) => import::choose_reading(state, reading, effects),
        ModelsCommand::ClosePresets => import::close_presets(state, effects),
        ModelsCommand::PickLabels => effects.push(Effect::PickFile(FileRequest::Labels)),
        ModelsCommand::ConfirmImport => import::confirm(state, effects),
        ModelsCommand::CancelImport => import::close(state, effects),
        ModelsCommand::DismissOffer(model_id) => {
            state.settings.dismissed_offers.insert(model_id);
        }
        ModelsCommand::DismissFailure(model_id) => {
            state.tasks.dismiss(|kind| *kind == TaskKind::Fetch { model_id: model_id.clone() });
        }
        ModelsCommand::ConfirmAssumptions(card) => state.settings.confirm_assumptions(&card),
    }
}

pub(super) fn on_event(state: &mut State, event: ModelsEvent, effects: &mut Queue<Effect>) {
    match event {
        ModelsEvent::Listed { entries, defaults, problems } => {
            models_listed(state, entries, defaults, problems, effects);
        }
        ModelsEvent::Removed { id, result } => model_removed(state, &id, result, effects),
        ModelsEvent::Recognized { import, result } => import::recognized(state, import, result, effects),
        ModelsEvent::Tried { import, trial } => import::tried(state, import, trial),
        ModelsEvent::PresetsTried { task, result } => import::presets_tried(state, task, result),
        ModelsEvent::Saved { import, result } => import::saved(state, import, result, effects),
    }
}

fn models_listed(
    state: &mut State,
    entries: Vec<ModelEntry>,
    defaults: ModelDefaults,
    problems: Vec<Problem>,
    effects: &mut Queue<Effect>,
) {
    let is_first = !state.models.is_listed();
    state.models.set_entries(entries);
    if is_first {
        for problem in problems {
            state.problems.add(problem, None);
        }
    }
    if state.models.chosen().is_none() {
        if let Some(missing) = state.models.chosen_id() {
            state.show_notice(format!("The model “{missing}” no longer exists"));
        }
        let default = defaults.detection.or(defaults.classification);
        state.models.choose(default);
    }
    if is_first {
        // The project may have been opened before.
        run_on_screen::show(state, effects);
    } else {
        predict::go_to_active_run(state, effects);
    }
}

fn choose_model(state: &mut State, id: String, effects: &mut Queue<Effect>) {
    predict::switch_to_local(state, effects);
    state.settings.model = Some(id.clone());
    state.models.choose(Some(id));
    settings_changed(state, effects);
}

/// Handles a change of model, device, batch or threads: predictions go to another run.
pub(super) fn settings_changed(state: &mut State, effects: &mut Queue<Effect>) {
    if state.inference.remote.is_some() {
        // The reports are about this computer.
        return;
    }
    if state.inference.failure().is_some() {
        state.inference.reset();
    }
    predict::go_to_active_run(state, effects);
}

/// Handles a changed card: if the model is loaded, it is loaded again.
pub(super) fn card_changed(state: &mut State, id: &str, effects: &mut Queue<Effect>) {
    if state.inference.local.key.as_ref().is_some_and(|key| key.model_id == id) {
        if state.inference.local.status.is_loading() {
            cancel_preparation(state, effects);
        }
        state.inference.local = LocalEngine::default();
    }
}

/// Downloads the weights of a model, or copies them from the user's file.
pub(super) fn fetch_model(state: &mut State, id: String, from: Option<PathBuf>, effects: &mut Queue<Effect>) {
    let Some(entry) = state.models.get(&id) else {
        return;
    };
    let title = match from {
        None => format!("Download {}", entry.card.name),
        Some(_) => format!("Copy {}", entry.card.name),
    };
    if state.tasks.fetches(&id) {
        return;
    }
    let bytes = entry.card.file.bytes;
    let model_id = id.clone();
    let ticket = begin(state, TaskKind::Fetch { model_id }, ProgressUnit::Bytes, title);
    ticket.control.set_total(Some(bytes));
    effects.push(ModelsEffect::Fetch { id, from, ticket });
}

pub(super) fn install_runtime(state: &mut State, kind: RuntimeKind, effects: &mut Queue<Effect>) {
    if state.tasks.installs_runtime() {
        state.show_notice("An installation is already running");
        return;
    }
    let title = format!("Install {}", kind.name());
    let install = TaskKind::InstallRuntime(kind);
    let ticket = begin(state, install, ProgressUnit::Bytes, title);
    effects.push(InferenceEffect::InstallRuntime { kind, ticket });
}

/// Reloads the model after another ONNX Runtime was installed or chosen.
pub(super) fn runtime_changed(state: &mut State, effects: &mut Queue<Effect>) {
    if state.inference.remote.is_some() {
        state.inference.local = LocalEngine::default();
    } else {
        engine::try_again(state, effects);
    }
}

fn model_removed(state: &mut State, id: &str, result: Result<u64, String>, effects: &mut Queue<Effect>) {
    match result {
        Ok(bytes) => {
            let name = state.models.get(id).map_or(id, |entry| entry.card.name.as_str());
            let text = format!("Removed {name}, {} freed", human_bytes(bytes));
            state.show_notice(text);
        }
        Err(message) => report_problem(state, Problem::general(message)),
    }
    effects.push(ModelsEffect::List);
}
