//! Mappings of predictions: testing them on examples, listing, saving and loading them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{KeepRule, LabelSet};
use crate::local_file;
use crate::model::catalog::{built_in_labels, check_mapping, labels_from_file, parse_mapping};
use crate::sagemaker::outputs::{ExampleReadings, OutputShape, ReadingChoice};
use crate::sagemaker::spec::output_mapping::{OutputMapping, ReadingRequest, ResponseExamples};
use crate::window::effects::Shared;
use crate::window::state::{OutputsEvent, ReadingTrial, SavedMapping};

/// The labels for a field: a built-in set, or a file; `None` for an empty field.
pub(crate) fn labels_of(text: &str) -> Result<Option<LabelSet>, String> {
    match text.trim() {
        "" => Ok(None),
        name => match built_in_labels(name) {
            Some(labels) => Ok(Some(labels)),
            None => labels_from_file(Path::new(name)).map(Some).map_err(|error| error.to_string()),
        },
    }
}

/// The mapping with its label set; a label file is included only when it is saved.
fn checked_mapping(mapping: &OutputMapping, labels: &str) -> Result<OutputMapping, String> {
    let labels = labels.trim();
    let mapping = OutputMapping { labels: built_in_labels(labels).map(|_| labels.to_owned()), ..mapping.clone() };
    check_mapping(&mapping).map_err(|error| format!("the mapping cannot be used: {error}"))?;
    Ok(mapping)
}

pub(crate) fn try_it(shared: &Arc<Shared>, question: u64, examples: Arc<ResponseExamples>, request: ReadingRequest) {
    let of_panic = request.clone();
    let event = move |trial| OutputsEvent::Tried { question, trial: Box::new(trial) };
    shared.spawn_reporting(
        "try a mapping",
        move |_| event(trial_of(&examples, request)),
        move |reason| event(failed_trial(of_panic, reason)),
    );
}

fn trial_of(examples: &ResponseExamples, request: ReadingRequest) -> ReadingTrial {
    let mapping = request.mapping.as_deref();
    let mapping = mapping.map(|mapping| checked_mapping(mapping, &request.labels));
    let (mapping, labels) = match (mapping.transpose(), labels_of(&request.labels)) {
        (Ok(mapping), Ok(labels)) => (mapping, labels),
        (Err(reason), _) | (_, Err(reason)) => return failed_trial(request, reason),
    };
    let read = ExampleReadings::new(&examples.responses, mapping.as_ref(), labels);
    let recognized = match &read.shape {
        Ok(OutputShape::Mapped(found)) if mapping.is_none() => Some((**found).clone()),
        _ => None,
    };
    ReadingTrial {
        request,
        description: read.shape.map(|shape| shape.description()),
        recognized,
        assumed: read.assumed,
        readings: read.readings,
    }
}

fn failed_trial(request: ReadingRequest, reason: String) -> ReadingTrial {
    ReadingTrial { request, description: Err(reason), recognized: None, assumed: Vec::new(), readings: Vec::new() }
}

pub(crate) fn list(shared: &Arc<Shared>) {
    shared.spawn("list mappings", |shared| {
        let (mappings, problems) = shared.library.mappings();
        let saved = mappings.into_iter();
        let saved = saved.map(|(path, mapping)| saved_mapping(path, mapping));
        shared.report(OutputsEvent::MappingsListed {
            saved: saved.collect(),
            problems: problems.iter().map(ToString::to_string).collect(),
        });
    });
}

pub(crate) fn save(shared: &Arc<Shared>, request: ReadingRequest) {
    let save = move |shared: &Arc<Shared>| save_now(shared, &request).map(Box::new);
    shared.run("save a mapping", save, OutputsEvent::MappingSaved);
}

fn save_now(shared: &Shared, request: &ReadingRequest) -> Result<SavedMapping, String> {
    let labels = request.labels.trim();
    let mapping = request.mapping.as_deref();
    let mapping = mapping.ok_or("there is no mapping to save")?;
    let mapping = checked_mapping(mapping, labels)?;
    let file = (mapping.labels.is_none() && !labels.is_empty()).then(|| Path::new(labels));
    let saved = shared.library.save_mapping(&mapping, file);
    load_now(saved.map_err(|error| error.to_string())?)
}

pub(crate) fn load(shared: &Arc<Shared>, path: PathBuf) {
    shared.run("load a mapping", move |_| load_now(path).map(Box::new), OutputsEvent::MappingLoaded);
}

fn load_now(path: PathBuf) -> Result<SavedMapping, String> {
    let text = local_file::read_to_string(&path)
        .map_err(|error| format!("could not read the mapping: {error}: {}", path.display()))?;
    let mapping = parse_mapping(&text, &path).map_err(|error| format!("the mapping cannot be used: {error}"))?;
    Ok(saved_mapping(path, mapping))
}

/// A mapping with the label file next to it.
fn saved_mapping(path: PathBuf, mapping: OutputMapping) -> SavedMapping {
    let labels = match mapping.labels.as_deref() {
        None => String::new(),
        Some(name) if built_in_labels(name).is_some() => name.to_owned(),
        Some(name) => path.with_file_name(name).display().to_string(),
    };
    SavedMapping { mapping: OutputMapping { labels: None, ..mapping }, labels, path }
}

pub(crate) fn delete(shared: &Arc<Shared>, path: PathBuf) {
    let delete = move |shared: &Arc<Shared>| shared.library.delete_mapping(&path).map_err(|error| error.to_string());
    shared.run("delete a mapping", delete, OutputsEvent::MappingDeleted);
}

/// How to read predictions, from the fields of a request.
pub(crate) fn choice_of(request: &ReadingRequest) -> Result<ReadingChoice, String> {
    let mapping = request.mapping.as_deref();
    let mapping = mapping.map(|mapping| checked_mapping(mapping, &request.labels));
    Ok(ReadingChoice { mapping: mapping.transpose()?, labels: labels_of(&request.labels)?, keep: KeepRule::default() })
}
