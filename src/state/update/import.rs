//! The dialog about a model of the user's own.

use std::path::PathBuf;

use crate::state::{Effect, Import, ImportDraft, ImportId, ImportStatus, ModelsEffect, Queue, RecogniseRequest, State};

pub(super) fn open(state: &mut State, weights: PathBuf, effects: &mut Queue<Effect>) {
    state.import = Some(Import {
        id: ImportId(0),
        weights,
        labels: None,
        overrules: Vec::new(),
        status: ImportStatus::Recognising,
    });
    recognise(state, effects);
}

/// Looks at the model, again after every change; answers to earlier looks are dropped.
fn recognise(state: &mut State, effects: &mut Queue<Effect>) {
    let id = ImportId(state.ids.next());
    let shown = state.selection.shown();
    let image = shown.and_then(|sample| {
        let uri = state.samples.get(sample)?.uri.clone();
        Some((state.source.as_ref()?.id, uri))
    });
    let Some(import) = &mut state.import else {
        return;
    };
    import.id = id;
    import.status = ImportStatus::Recognising;
    effects.push(ModelsEffect::Recognise(RecogniseRequest {
        import: id,
        weights: import.weights.clone(),
        labels: import.labels.clone(),
        overrules: import.overrules.clone(),
        image,
        runtime_library: state.settings.runtime_library.clone(),
    }));
}

/// An empty value takes the field back to what was recognised.
pub(super) fn overrule(state: &mut State, field: String, value: String, effects: &mut Queue<Effect>) {
    let Some(import) = &mut state.import else {
        return;
    };
    import.overrules.retain(|(known, _)| *known != field);
    if !value.is_empty() {
        import.overrules.push((field, value));
    }
    recognise(state, effects);
}

pub(super) fn set_labels(state: &mut State, labels: Option<PathBuf>, effects: &mut Queue<Effect>) {
    if let Some(import) = &mut state.import {
        import.labels = labels;
        recognise(state, effects);
    }
}

pub(super) fn confirm(state: &mut State, effects: &mut Queue<Effect>) {
    if let Some(import) = &mut state.import
        && matches!(import.status, ImportStatus::Draft(_))
    {
        import.status = ImportStatus::Adding;
        effects.push(ModelsEffect::Add { import: import.id });
    }
}

pub(super) fn recognised(state: &mut State, id: ImportId, result: Result<Box<ImportDraft>, String>) {
    if let Some(import) = state.import.as_mut().filter(|import| import.id == id) {
        import.status = match result {
            Ok(draft) => ImportStatus::Draft(draft),
            Err(reason) => ImportStatus::Refused(reason),
        };
    }
}

pub(super) fn added(state: &mut State, id: ImportId, result: Result<String, String>, effects: &mut Queue<Effect>) {
    let Some(import) = state.import.as_mut().filter(|import| import.id == id) else {
        effects.push(ModelsEffect::List);
        return;
    };
    match result {
        Ok(model_id) => {
            state.import = None;
            state.show_notice(format!("Added the model {model_id}"));
            state.settings.model = Some(model_id.clone());
            state.models.choose(Some(model_id));
            effects.push(ModelsEffect::List);
        }
        Err(reason) => import.status = ImportStatus::Refused(reason),
    }
}
