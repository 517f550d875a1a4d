//! Opening outputs of jobs or folders as a run of the open images; trying, listing, saving and loading mappings.

pub(crate) mod import;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{InferenceLocation, KeepRule, LabelSet, RunId, Sample, SampleId, counted, grouped};
use crate::image::source::Source;
use crate::local_file;
use crate::model::catalog::{built_in_labels, check_mapping, labels_from_file, parse_mapping};
use crate::predict::{ResultSink, SampleResult};
use crate::sagemaker::JobError;
use crate::sagemaker::client::known_to;
use crate::sagemaker::jobs::JobRecords;
use crate::sagemaker::outputs::{
    ExampleReadings, FoundOutputs, OutputFolder, OutputShape, OutputSink, OutputsError, OutputsOrigin, ReadOutcome,
    ReadingChoice,
};
use crate::sagemaker::spec::output_mapping::{OutputMapping, ReadingRequest, ResponseExamples};
use crate::tasks::TaskControl;
use crate::window::effects::{Effects, Shared};
use crate::window::predict::effects::Bundle;
use crate::window::state::{
    FoundRun, NewPrediction, OpenOutputsRequest, OutputsAt, OutputsEffect, OutputsEnd, OutputsEvent, OutputsFailure,
    OutputsPlace, ReadingTrial, SavedMapping, SourceId, TaskOutcome, Ticket,
};

pub(crate) fn carry_out(effects: &mut Effects, effect: OutputsEffect) {
    let shared = &effects.shared;
    match effect {
        OutputsEffect::Open { request, ticket } => open(shared, request, ticket),
        OutputsEffect::OpenPredictions { request, ticket } => import::open(shared, request, ticket),
        OutputsEffect::Preview { place, ticket } => preview(shared, place, ticket),
        OutputsEffect::TryReading { question, examples, request } => {
            try_reading(shared, question, examples, request);
        }
        OutputsEffect::ListMappings => list_mappings(shared),
        OutputsEffect::SaveMapping(request) => save_mapping(shared, request),
        OutputsEffect::LoadMapping(path) => load_mapping(shared, path),
        OutputsEffect::DeleteMapping(path) => delete_mapping(shared, path),
    }
}

fn preview(shared: &Arc<Shared>, place: OutputsPlace, ticket: Ticket) {
    let source = place.source;
    shared.run_task(
        "preview outputs",
        ticket,
        move |shared, ticket| first_outputs(shared, &place, &ticket.control).map(Arc::new),
        move |task, result| OutputsEvent::Previewed { source, task, result },
    );
}

fn open(shared: &Arc<Shared>, request: OpenOutputsRequest, ticket: Ticket) {
    let source = request.place.source;
    shared.run_task(
        "open outputs",
        ticket,
        move |shared, ticket| open_all(shared, &request, ticket),
        move |task, result| OutputsEvent::Read { source, task, result },
    );
}

fn failure_of(error: &OutputsError, examples: Option<ResponseExamples>) -> OutputsFailure {
    match error {
        OutputsError::Cancelled(_) => OutputsFailure::Cancelled,
        error => OutputsFailure::Failed { message: error.to_string(), examples: examples.map(Arc::new) },
    }
}

fn first_outputs(
    shared: &Shared,
    place: &OutputsPlace,
    control: &TaskControl,
) -> Result<ResponseExamples, OutputsFailure> {
    let Found { source, outputs, .. } = find(shared, place, control)?;
    control.set_step("reading the first outputs");
    let examples = outputs.examples(&source, control);
    if control.is_cancelled() {
        return Err(OutputsFailure::Cancelled);
    }
    if examples.responses.is_empty() {
        return Err("None of the first outputs could be read".to_owned().into());
    }
    Ok(examples)
}

/// Outputs for the open images.
struct Found {
    source: Arc<dyn Source>,
    outputs: FoundOutputs,
    made: InferenceLocation,
    /// Why something could not be read, for display.
    notes: Vec<String>,
}

fn find(shared: &Shared, place: &OutputsPlace, control: &TaskControl) -> Result<Found, OutputsFailure> {
    let source = shared.source(place.source).ok_or(OutputsFailure::Cancelled)?;
    let OutputsOrigin { parts, made, notes, .. } = origin_of(shared, place, control)?;
    control.set_step("listing the outputs");
    let samples: Arc<[Sample]> = place.samples.iter().cloned().collect();
    let outputs = FoundOutputs::find(parts, &*source, &samples, &place.root, control)
        .map_err(|error| failure_of(&error, None))?;
    Ok(Found { source, outputs, made, notes })
}

fn open_all(shared: &Shared, request: &OpenOutputsRequest, ticket: &Ticket) -> Result<OutputsEnd, OutputsFailure> {
    let (place, control) = (&request.place, &ticket.control);
    let choice = choice_of(&request.reading).map_err(OutputsFailure::from)?;
    let Found { source, outputs: found, made, notes } = find(shared, place, control)?;
    let run = found.describe(made, &choice, known_to(&shared.library), control).map_err(|error| {
        let is_of_shape = matches!(error, OutputsError::Unknown { .. } | OutputsError::Broken { .. });
        let examples = is_of_shape.then(|| found.examples(&source, control));
        failure_of(&error, examples)
    })?;
    let same = request.known.iter().find(|known| known.key == run.key);
    let run_id = match same {
        Some(known) => {
            run.reader.learn(&known.labels);
            known.id
        }
        None => request.new_run,
    };
    let described = FoundRun { key: run.key.clone(), card: run.card.clone(), labels: run.labels.clone() };
    announce(shared, (place.source, run_id), ticket, described)?;
    let samples = found.samples();
    let everything = (0..samples.len()).map(SampleId::from_index).collect();
    let mut sink = Bundles::new(shared, (place.source, run_id), samples, control);
    let outcome = found.read(&run.reader, &source, &everything, control, &mut sink);
    sink.send();
    Ok(OutputsEnd {
        is_complete: outcome.failed == 0 && outcome.without_output.is_empty(),
        outcome: ended(&outcome, &found, notes),
        notes: Vec::new(),
    })
}

/// Reports the run that the predictions are added to.
///
/// # Errors
/// The window was closed.
pub(crate) fn announce(
    shared: &Shared,
    (source, run): (SourceId, RunId),
    ticket: &Ticket,
    found: FoundRun,
) -> Result<(), OutputsFailure> {
    ticket.control.set_step("");
    let is_open = shared.report(OutputsEvent::Found { source, task: ticket.id, run, found: Box::new(found) });
    if is_open { Ok(()) } else { Err(OutputsFailure::Cancelled) }
}

fn ended(outcome: &ReadOutcome, found: &FoundOutputs, notes: Vec<String>) -> TaskOutcome {
    if outcome.is_cancelled {
        return TaskOutcome::Cancelled;
    }
    if let Some(reason) = &outcome.unreachable {
        return TaskOutcome::Failed(format!(
            "Outputs or images can no longer be read. {} predictions were read; open the outputs again when the \
             source is available. {reason}",
            outcome.done
        ));
    }
    let mut parts = vec![format!("{} read", counted(outcome.done, "prediction", "predictions"))];
    if outcome.failed > 0 {
        parts.push(format!("{} could not be read", grouped(outcome.failed)));
    }
    parts.extend(found.retries_text());
    let without = outcome.without_output.len();
    if without > 0 {
        parts.push(counted(without, "image has no output", "images have no output"));
    }
    parts.extend(found.notes());
    parts.extend(outcome.not_sent_text());
    parts.extend(outcome.unchecked_text());
    parts.extend(notes);
    let problems = outcome.problems.iter();
    parts.extend(problems.map(|problem| problem.message.clone()));
    TaskOutcome::Done(parts.join("; "))
}

fn origin_of(shared: &Shared, place: &OutputsPlace, control: &TaskControl) -> Result<OutputsOrigin, OutputsFailure> {
    match &place.at {
        OutputsAt::Folder(location) => Ok(OutputsOrigin::from_folder(OutputFolder::new(&shared.aws, location))),
        OutputsAt::Job(id) => {
            let asked = (&id.sagemaker, &id.s3);
            OutputsOrigin::find(&shared.aws, asked, &id.name, &JobRecords::of_dirs(&shared.dirs), control).map_err(
                |error| match error {
                    JobError::Cancelled => OutputsFailure::Cancelled,
                    error => error.to_string().into(),
                },
            )
        }
    }
}

/// Sends predictions to the window in bundles.
pub(crate) struct Bundles<'b> {
    bundle: Bundle<'b>,
    shared: &'b Shared,
    source: SourceId,
    run: RunId,
    samples: &'b [Sample],
    control: &'b TaskControl,
}

impl<'b> Bundles<'b> {
    pub(crate) fn new(
        shared: &'b Shared,
        (source, run): (SourceId, RunId),
        samples: &'b [Sample],
        control: &'b TaskControl,
    ) -> Self {
        Self { bundle: Bundle::new(shared, source, run), shared, source, run, samples, control }
    }

    /// Sends the pending bundle.
    pub(crate) fn send(&mut self) {
        if !self.bundle.send() {
            self.control.cancel();
        }
    }
}

impl ResultSink for Bundles<'_> {
    fn arrived(&mut self, index: usize, result: &SampleResult) {
        let Some(sample) = self.samples.get(index) else {
            return;
        };
        let is_due = self.bundle.add(NewPrediction {
            sample: SampleId::from_index(index),
            stamp: sample.stamp(),
            result: result.clone().map_err(|problem| problem.message),
        });
        if is_due {
            self.send();
        }
    }

    fn in_order(&mut self, _: usize, _: SampleResult) {}
}

impl OutputSink for Bundles<'_> {
    fn labels(&mut self, labels: &LabelSet) {
        self.send();
        self.shared.report(OutputsEvent::Labeled {
            source: self.source,
            run: self.run,
            labels: Box::new(labels.clone()),
        });
    }
}

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

pub(crate) fn try_reading(
    shared: &Arc<Shared>,
    question: u64,
    examples: Arc<ResponseExamples>,
    request: ReadingRequest,
) {
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

fn list_mappings(shared: &Arc<Shared>) {
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

pub(crate) fn save_mapping(shared: &Arc<Shared>, request: ReadingRequest) {
    let save = move |shared: &Arc<Shared>| save_mapping_now(shared, &request).map(Box::new);
    shared.run("save a mapping", save, OutputsEvent::MappingSaved);
}

fn save_mapping_now(shared: &Shared, request: &ReadingRequest) -> Result<SavedMapping, String> {
    let labels = request.labels.trim();
    let mapping = request.mapping.as_deref();
    let mapping = mapping.ok_or("there is no mapping to save")?;
    let mapping = checked_mapping(mapping, labels)?;
    let file = (mapping.labels.is_none() && !labels.is_empty()).then(|| Path::new(labels));
    let saved = shared.library.save_mapping(&mapping, file);
    load_mapping_now(saved.map_err(|error| error.to_string())?)
}

pub(crate) fn load_mapping(shared: &Arc<Shared>, path: PathBuf) {
    shared.run("load a mapping", move |_| load_mapping_now(path).map(Box::new), OutputsEvent::MappingLoaded);
}

fn load_mapping_now(path: PathBuf) -> Result<SavedMapping, String> {
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

pub(crate) fn delete_mapping(shared: &Arc<Shared>, path: PathBuf) {
    let delete = move |shared: &Arc<Shared>| shared.library.delete_mapping(&path).map_err(|error| error.to_string());
    shared.run("delete a mapping", delete, OutputsEvent::MappingDeleted);
}

/// How to read predictions, from the fields of a request.
pub(crate) fn choice_of(request: &ReadingRequest) -> Result<ReadingChoice, String> {
    let mapping = request.mapping.as_deref();
    let mapping = mapping.map(|mapping| checked_mapping(mapping, &request.labels));
    Ok(ReadingChoice { mapping: mapping.transpose()?, labels: labels_of(&request.labels)?, keep: KeepRule::default() })
}
