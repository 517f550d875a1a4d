//! The local models, their settings, and ONNX Runtime.

use std::path::PathBuf;

use crate::domain::{Problem, human_bytes};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    ImportSubject, InferenceEffect, LocalEngine, ModelDefaults, ModelEntry, ModelsCommand, ModelsEffect, ModelsEvent,
    RuntimeKind, State, TaskKind,
};
use crate::window::tasks::update::{begin, cancel_preparation};
use crate::window::{models, predict};

pub(crate) fn on_command(state: &mut State, command: ModelsCommand) {
    match command {
        ModelsCommand::Choose(id) => choose_model(state, id),
        ModelsCommand::Fetch(id) => fetch_model(state, id, None),
        ModelsCommand::Remove(id) => state.effects.push(ModelsEffect::Remove { id }),
        ModelsCommand::Edit(id) => models::add::update::open(state, ImportSubject::Added(id)),
        ModelsCommand::ChangeImport { card, labels } => models::add::update::change(state, *card, labels),
        ModelsCommand::FindPreprocessing => models::add::update::find_preprocessing(state),
        ModelsCommand::ChooseReading(reading) => models::add::update::choose_reading(state, reading),
        ModelsCommand::ClosePresets => models::add::update::close_presets(state),
        ModelsCommand::ConfirmImport => models::add::update::confirm(state),
        ModelsCommand::CancelImport => models::add::update::close(state),
        ModelsCommand::DismissOffer(model_id) => {
            state.settings.dismissed_offers.insert(model_id);
        }
        ModelsCommand::DismissFailure(model_id) => {
            state.tasks.dismiss(|kind| *kind == TaskKind::Fetch { model_id: model_id.clone() });
        }
        ModelsCommand::ConfirmAssumptions(card) => state.settings.confirm_assumptions(&card),
    }
}

pub(crate) fn on_event(state: &mut State, event: ModelsEvent) {
    match event {
        ModelsEvent::Listed { entries, defaults, problems } => {
            models_listed(state, entries, defaults, problems);
        }
        ModelsEvent::Removed { id, result } => model_removed(state, &id, result),
        ModelsEvent::Recognized { import, result } => models::add::update::recognized(state, import, result),
        ModelsEvent::Tried { import, trial } => models::add::update::tried(state, import, trial),
        ModelsEvent::PresetsTried(task, result) => models::add::update::presets_tried(state, task, result),
        ModelsEvent::Saved { import, result } => models::add::update::saved(state, import, result),
    }
}

fn models_listed(state: &mut State, entries: Vec<ModelEntry>, defaults: ModelDefaults, problems: Vec<Problem>) {
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
        predict::update::run_on_screen::show(state);
    } else {
        predict::update::predict::go_to_active_run(state);
    }
}

fn choose_model(state: &mut State, id: String) {
    predict::update::predict::switch_to_local(state);
    state.settings.model = Some(id.clone());
    state.models.choose(Some(id));
    settings_changed(state);
}

/// Handles a change of model, device, batch or threads: predictions go to another run.
pub(crate) fn settings_changed(state: &mut State) {
    if state.inference.remote.is_some() {
        // The reports are about this computer.
        return;
    }
    if state.inference.failure().is_some() {
        state.inference.reset();
    }
    predict::update::predict::go_to_active_run(state);
}

/// Handles a changed card: if the model is loaded, it is loaded again.
pub(crate) fn card_changed(state: &mut State, id: &str) {
    if state.inference.local.key.as_ref().is_some_and(|key| key.model_id == id) {
        if state.inference.local.status.is_loading() {
            cancel_preparation(state);
        }
        state.inference.local = LocalEngine::default();
    }
}

/// Downloads the weights of a model, or copies them from the user's file.
pub(crate) fn fetch_model(state: &mut State, id: String, from: Option<PathBuf>) {
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
    state.effects.push(ModelsEffect::Fetch { id, from, ticket });
}

pub(crate) fn install_runtime(state: &mut State, kind: RuntimeKind) {
    if state.tasks.installs_runtime() {
        state.show_notice("An installation is already running");
        return;
    }
    let title = format!("Install {}", kind.name());
    let install = TaskKind::InstallRuntime(kind);
    let ticket = begin(state, install, ProgressUnit::Bytes, title);
    state.effects.push(InferenceEffect::InstallRuntime { kind, ticket });
}

/// Reloads the model after another ONNX Runtime was installed or chosen.
pub(crate) fn runtime_changed(state: &mut State) {
    if state.inference.remote.is_some() {
        state.inference.local = LocalEngine::default();
    } else {
        predict::update::try_again(state);
    }
}

fn model_removed(state: &mut State, id: &str, result: Result<u64, String>) {
    match result {
        Ok(bytes) => {
            let name = state.models.get(id).map_or(id, |entry| entry.card.name.as_str());
            let text = format!("Removed {name}, {} freed", human_bytes(bytes));
            state.show_notice(text);
        }
        Err(message) => state.report_problem(message),
    }
    state.effects.push(ModelsEffect::List);
}
