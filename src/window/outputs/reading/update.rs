//! How remote responses are read: examples for testing a mapping, and the user's mappings.

use std::path::PathBuf;
use std::sync::Arc;

use crate::sagemaker::spec::output_mapping::{ReadingRequest, ResponseExamples};
use crate::sagemaker::spec::remote_model::RemoteAddress;
use crate::window::state::{OutputsEffect, SavedMapping, SourceId, State};

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
    try_it(state, request);
}

/// Reads the examples this way.
pub(crate) fn try_it(state: &mut State, request: ReadingRequest) {
    let question = state.ids.next();
    let reading = &mut state.remote.reading;
    reading.requested = Some(request.clone());
    reading.question = question;
    if let Some(examples) = &reading.examples {
        state.effects.push(OutputsEffect::TryReading { question, examples: Arc::clone(examples), request });
    }
}

pub(crate) fn save(state: &mut State, request: ReadingRequest) {
    state.remote.reading.failure = None;
    state.effects.push(OutputsEffect::SaveMapping(request));
}

pub(crate) fn load(state: &mut State, path: PathBuf) {
    state.remote.reading.failure = None;
    state.effects.push(OutputsEffect::LoadMapping(path));
}

pub(crate) fn loaded(state: &mut State, result: Result<SavedMapping, String>) {
    match result {
        Ok(mapping) => {
            let number = state.ids.next();
            state.remote.reading.loaded = Some((number, mapping));
        }
        Err(reason) => state.remote.reading.failure = Some(reason),
    }
}

pub(crate) fn saved(state: &mut State, result: Result<SavedMapping, String>) {
    if let Ok(saved) = &result {
        state.show_notice(format!("Saved the mapping {}: {}", saved.mapping.name, saved.path.display()));
        state.effects.push(OutputsEffect::ListMappings);
    }
    loaded(state, result);
}

pub(crate) fn delete(state: &mut State, path: PathBuf) {
    state.remote.reading.failure = None;
    state.effects.push(OutputsEffect::DeleteMapping(path));
}

/// Removes a deleted mapping. Its fields stay in the form, so that it can be saved again.
pub(crate) fn deleted(state: &mut State, result: Result<String, String>) {
    match result {
        Ok(name) => state.show_notice(format!("Deleted the mapping {name}")),
        Err(reason) => state.remote.reading.failure = Some(reason),
    }
    state.effects.push(OutputsEffect::ListMappings);
}
