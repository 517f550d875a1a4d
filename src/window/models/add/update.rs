//! The form for a model of the user's own.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::ModelCard;
use crate::tasks::ProgressUnit;
use crate::window::models;
use crate::window::state::{
    Failure, Import, ImportForm, ImportId, ImportStart, ImportStatus, ImportSubject, ImportTrial, LabelChoice,
    Loadable, ModelsEffect, PresetTable, PresetsRequest, RecognizeRequest, SaveRequest, State, TaskId, TaskKind,
    TrialRequest,
};
use crate::window::tasks::update::{begin, cancel, settle};

/// The number of images for comparing common ways to prepare images.
const PRESET_IMAGES: usize = 12;

pub(crate) fn open(state: &mut State, subject: ImportSubject) {
    recognize(state, subject, 0);
}

/// Restarts the form with another reading of the outputs.
pub(crate) fn choose_reading(state: &mut State, reading: usize) {
    close_presets(state);
    if open_form(state).is_some()
        && let Some(import) = &state.import
    {
        recognize(state, import.subject.clone(), reading);
    }
}

fn recognize(state: &mut State, subject: ImportSubject, reading: usize) {
    let id = ImportId(state.ids.next());
    state.import = Some(Import { id, subject: subject.clone(), status: ImportStatus::Recognizing });
    state.effects.push(ModelsEffect::Recognize(RecognizeRequest {
        import: id,
        subject,
        reading,
        runtime_library: state.settings.runtime_library.clone(),
    }));
}

pub(crate) fn close(state: &mut State) {
    close_presets(state);
    state.import = None;
    state.effects.push(ModelsEffect::CloseImport);
}

pub(crate) fn recognized(state: &mut State, id: ImportId, result: Result<Box<ImportStart>, String>) {
    let Some(import) = state.import.as_mut().filter(|import| import.id == id) else {
        return;
    };
    match result {
        Ok(start) => {
            import.status = ImportStatus::Form(Box::new(ImportForm::new(*start)));
            try_out(state);
        }
        Err(reason) => import.status = ImportStatus::Refused(reason),
    }
}

/// The form, if it can be changed now.
fn open_form(state: &mut State) -> Option<&mut ImportForm> {
    match &mut state.import.as_mut()?.status {
        ImportStatus::Form(form) if !form.is_saving => Some(form),
        _ => None,
    }
}

pub(crate) fn change(state: &mut State, card: ModelCard, labels: LabelChoice) {
    let Some(form) = open_form(state) else {
        return;
    };
    form.failure = None;
    if form.card != card || form.labels != labels {
        (form.card, form.labels) = (card, labels);
        close_presets(state);
        try_out(state);
    }
}

/// Runs the model with common ways to prepare images, on the current image and the first ones on screen.
pub(crate) fn find_preprocessing(state: &mut State) {
    let shown = state.selection.shown();
    let others = state.order().ids().take(PRESET_IMAGES).filter(|sample| Some(*sample) != shown);
    let images = shown.into_iter().chain(others).take(PRESET_IMAGES);
    let images = images.filter_map(|sample| Some((sample, state.samples.get(sample)?.uri.clone())));
    let images: Vec<_> = images.collect();
    let (Some(source), Some(form)) = (state.source_id(), open_form(state)) else {
        return;
    };
    let (card, labels) = (form.card.clone(), form.labels.clone());
    let title = format!("Find the preprocessing of {}", card.name);
    let ticket = begin(state, TaskKind::TryPresets, ProgressUnit::Steps, title);
    if let Some(form) = open_form(state) {
        form.presets = Loadable::Loading(ticket.id);
    }
    let request = PresetsRequest { source, card, labels, images, ticket };
    state.effects.push(ModelsEffect::TryPresets(Box::new(request)));
}

pub(crate) fn presets_tried(state: &mut State, task: TaskId, result: Result<Arc<PresetTable>, Failure>) {
    settle(state, task, result, |state| open_form(state).map(|form| &mut form.presets));
}

/// Closes the comparison, and cancels it if it is pending.
pub(crate) fn close_presets(state: &mut State) {
    if let Some(form) = open_form(state) {
        let closed = std::mem::take(&mut form.presets);
        cancel(state, closed.task());
    }
}

pub(crate) fn labels_picked(state: &mut State, path: PathBuf) {
    if let Some(form) = open_form(state) {
        let card = form.card.clone();
        change(state, card, LabelChoice::File(path));
    }
}

/// Runs the model with the current card; results of earlier cards are dropped.
fn try_out(state: &mut State) {
    let id = ImportId(state.ids.next());
    let shown = state.selection.shown();
    let image = shown.and_then(|sample| {
        let uri = state.samples.get(sample)?.uri.clone();
        Some((state.source.as_ref()?.id, uri))
    });
    let Some(import) = &mut state.import else {
        return;
    };
    let ImportStatus::Form(form) = &mut import.status else {
        return;
    };
    import.id = id;
    form.is_trying = true;
    let (card, labels) = (form.card.clone(), form.labels.clone());
    state.effects.push(ModelsEffect::TryCard(Box::new(TrialRequest { import: id, card, labels, image })));
}

pub(crate) fn tried(state: &mut State, id: ImportId, trial: Box<ImportTrial>) {
    if let Some(import) = state.import.as_mut().filter(|import| import.id == id)
        && let ImportStatus::Form(form) = &mut import.status
    {
        form.trial = Some(trial);
        form.is_trying = false;
    }
}

pub(crate) fn confirm(state: &mut State) {
    let Some(import) = &mut state.import else {
        return;
    };
    let ImportStatus::Form(form) = &mut import.status else {
        return;
    };
    if form.can_be_saved() {
        form.is_saving = true;
        form.failure = None;
        let card = ModelCard { assumed: form.assumed(), ..form.card.clone() };
        let (subject, labels) = (import.subject.clone(), form.labels.clone());
        state.effects.push(ModelsEffect::Save(Box::new(SaveRequest { import: import.id, subject, card, labels })));
    }
}

pub(crate) fn saved(state: &mut State, id: ImportId, result: Result<String, String>) {
    state.effects.push(ModelsEffect::List);
    let Some(import) = state.import.as_mut().filter(|import| import.id == id) else {
        return;
    };
    match (result, &mut import.status) {
        (Ok(model_id), _) => {
            let is_new = matches!(import.subject, ImportSubject::File(_));
            close(state);
            if is_new {
                state.show_notice(format!("Added the model {model_id}"));
                state.settings.model = Some(model_id.clone());
                state.models.choose(Some(model_id));
            } else {
                state.show_notice(format!("Saved the model {model_id}; new predictions go to a new run"));
                models::update::card_changed(state, &model_id);
            }
        }
        (Err(reason), ImportStatus::Form(form)) => {
            form.is_saving = false;
            form.failure = Some(reason);
        }
        (Err(_), _) => {}
    }
}
