//! Outputs of jobs, or of folders of them, opened as a run of the open images.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::Shared;
use super::reading::choice_of;
use super::records;
use crate::domain::{
    InferenceLocation, LabelSet, ReadingRequest, ResponseExamples, RunId, RunKey, Sample, SampleId,
    SharedList,
};
use crate::predict::{ResultSink, SampleResult};
use crate::remote::outputs::{
    FoundOutputs, JobOutputs, OutputFolder, OutputSink, OutputsError, OutputsPart, ReadOutcome,
};
use crate::remote::transform::JobError;
use crate::source::Source;
use crate::state::{
    Event, FoundRun, NewPrediction, OutputsAt, OutputsFailure, SourceId, TaskId, TaskOutcome,
};
use crate::tasks::{TaskControl, now_ms};

/// Answers are sent to the window in bundles, at least this often.
const BUNDLE_PERIOD: Duration = Duration::from_millis(100);
const BUNDLE_LEN: usize = 256;

/// Which outputs, about which images.
pub(in super::super) struct Place {
    pub(in super::super) source: SourceId,
    /// What the images are named from.
    pub(in super::super) root: String,
    pub(in super::super) samples: SharedList<Sample>,
    pub(in super::super) at: OutputsAt,
}

pub(in super::super) struct Request {
    pub(in super::super) place: Place,
    pub(in super::super) reading: ReadingRequest,
    /// The runs of the project, and the names of their classes: outputs that were opened before go into theirs.
    pub(in super::super) known: Vec<(RunKey, RunId, LabelSet)>,
    pub(in super::super) new_run: RunId,
    pub(in super::super) task: TaskId,
    pub(in super::super) control: TaskControl,
}

pub(in super::super) fn look(
    shared: &Arc<Shared>,
    place: Place,
    task: TaskId,
    control: TaskControl,
) {
    let source = place.source;
    shared.spawn_reporting(
        "preview outputs",
        move |shared| Event::OutputsLookedAt {
            source,
            task,
            result: look_at(shared, &place, &control).map(Arc::new),
        },
        move |mistake| Event::OutputsLookedAt {
            source,
            task,
            result: Err(failed(mistake)),
        },
    );
}

pub(in super::super) fn open(shared: &Arc<Shared>, request: Request) {
    let (source, task) = (request.place.source, request.task);
    shared.spawn_reporting(
        "open outputs",
        move |shared| Event::OutputsRead {
            source,
            task,
            result: open_all(shared, &request),
        },
        move |mistake| Event::OutputsRead {
            source,
            task,
            result: Err(failed(mistake)),
        },
    );
}

fn failed(message: impl Into<String>) -> OutputsFailure {
    OutputsFailure::Failed {
        message: message.into(),
        examples: None,
    }
}

fn failure_of(error: &OutputsError, examples: Option<ResponseExamples>) -> OutputsFailure {
    match error {
        OutputsError::Cancelled(_) => OutputsFailure::Cancelled,
        error => OutputsFailure::Failed {
            message: error.to_string(),
            examples: examples.map(Arc::new),
        },
    }
}

fn look_at(
    shared: &Shared,
    place: &Place,
    control: &TaskControl,
) -> Result<ResponseExamples, OutputsFailure> {
    let Found {
        source, outputs, ..
    } = find(shared, place, control)?;
    control.set_step("reading the first outputs");
    let examples = outputs.examples(&source, control);
    if control.is_cancelled() {
        return Err(OutputsFailure::Cancelled);
    }
    if examples.responses.is_empty() {
        return Err(failed("none of the first outputs can be read"));
    }
    Ok(examples)
}

/// Outputs about the open images.
struct Found {
    source: Arc<dyn Source>,
    outputs: FoundOutputs,
    made: InferenceLocation,
    /// What could not be looked for, for people.
    notes: Vec<String>,
}

/// Where outputs lie, and what is known of who made them.
struct Origin {
    parts: Vec<OutputsPart>,
    made: InferenceLocation,
    notes: Vec<String>,
}

fn find(shared: &Shared, place: &Place, control: &TaskControl) -> Result<Found, OutputsFailure> {
    let source = shared
        .source(place.source)
        .ok_or(OutputsFailure::Cancelled)?;
    let Origin { parts, made, notes } = origin_of(shared, place, control)?;
    control.set_step("listing the outputs");
    let samples: Arc<[Sample]> = place.samples.iter().cloned().collect();
    let outputs = FoundOutputs::find(parts, &samples, &place.root, control)
        .map_err(|error| failure_of(&error, None))?;
    Ok(Found {
        source,
        outputs,
        made,
        notes,
    })
}

fn open_all(shared: &Shared, request: &Request) -> Result<TaskOutcome, OutputsFailure> {
    let (place, control) = (&request.place, &request.control);
    let choice = choice_of(&request.reading).map_err(failed)?;
    let Found {
        source,
        outputs: found,
        made,
        notes,
    } = find(shared, place, control)?;
    let known = |id: &str| {
        let entries = shared.library.entries().into_iter();
        let mut of_id = entries.filter(|entry| entry.card.id == id);
        of_id.next().map(|entry| (entry.card, entry.labels))
    };
    let run = found
        .describe(made, &choice, known, control)
        .map_err(|error| {
            let is_of_shape = matches!(
                error,
                OutputsError::Unknown { .. } | OutputsError::Broken { .. }
            );
            let examples = is_of_shape.then(|| found.examples(&source, control));
            failure_of(&error, examples)
        })?;
    let same = request.known.iter().find(|(key, ..)| *key == run.key);
    let run_id = match same {
        Some((_, known, labels)) => {
            run.reader.learn(labels);
            *known
        }
        None => request.new_run,
    };
    let is_open = shared.report(Event::OutputsFound {
        source: place.source,
        task: request.task,
        run: run_id,
        found: Box::new(FoundRun {
            at: place.at.clone(),
            key: run.key.clone(),
            card: run.card.clone(),
            labels: run.labels.clone(),
        }),
    });
    if !is_open {
        return Err(OutputsFailure::Cancelled);
    }
    control.set_step("");
    let samples = found.samples();
    let everything = (0..samples.len()).map(SampleId::from_index).collect();
    let mut sink = Bundles {
        shared,
        source: place.source,
        run: run_id,
        samples,
        waiting: Vec::new(),
        sent: Instant::now(),
        control,
    };
    let outcome = found.read(&run.reader, &source, &everything, control, &mut sink);
    sink.send();
    Ok(ended(&outcome, &found, notes))
}

fn ended(outcome: &ReadOutcome, found: &FoundOutputs, notes: Vec<String>) -> TaskOutcome {
    if outcome.is_cancelled {
        return TaskOutcome::Cancelled;
    }
    if let Some(reason) = &outcome.unreachable {
        return TaskOutcome::Failed(format!(
            "Outputs or images can no longer be read. {} predictions were read; open the outputs again once the \
            source is available. {reason}",
            outcome.done
        ));
    }
    let mut parts = vec![format!("{} predictions read", outcome.done)];
    if outcome.failed > 0 {
        parts.push(format!("{} could not be read", outcome.failed));
    }
    parts.extend(found.retries_text());
    let without = outcome.without_output.len();
    if without > 0 {
        parts.push(format!("{without} images have no output"));
    }
    parts.extend(found.notes());
    parts.extend(outcome.unchecked_text());
    parts.extend(notes);
    let problems = outcome.problems.iter();
    parts.extend(problems.map(|problem| problem.message.clone()));
    TaskOutcome::Done(parts.join("; "))
}

fn origin_of(
    shared: &Shared,
    place: &Place,
    control: &TaskControl,
) -> Result<Origin, OutputsFailure> {
    let of_folder = |folder: OutputFolder| Origin {
        made: InferenceLocation::Outputs {
            folder: folder.name(),
        },
        parts: vec![OutputsPart::in_folder(folder)],
        notes: Vec::new(),
    };
    match &place.at {
        OutputsAt::Folder(path) => Ok(of_folder(OutputFolder::local(path))),
        OutputsAt::Place(place) => Ok(of_folder(OutputFolder::in_s3(&shared.aws, place))),
        OutputsAt::Job(id) => {
            let asked = (&id.sagemaker, &id.s3);
            let records = records(shared);
            let outputs = JobOutputs::find(&shared.aws, asked, &id.name, &records, control);
            let outputs = outputs.map_err(|error| match error {
                JobError::Cancelled => OutputsFailure::Cancelled,
                error => failed(error.to_string()),
            })?;
            Ok(Origin {
                parts: outputs.parts,
                made: outputs.made,
                notes: outputs.notes,
            })
        }
    }
}

/// Sends answers to the window, some at a time.
struct Bundles<'b> {
    shared: &'b Shared,
    source: SourceId,
    run: RunId,
    samples: &'b [Sample],
    waiting: Vec<NewPrediction>,
    sent: Instant,
    control: &'b TaskControl,
}

impl Bundles<'_> {
    fn send(&mut self) {
        self.sent = Instant::now();
        if self.waiting.is_empty() {
            return;
        }
        let is_open = self.shared.report(Event::Predicted {
            source: self.source,
            run: self.run,
            at_ms: now_ms(),
            predictions: std::mem::take(&mut self.waiting),
        });
        if !is_open {
            self.control.cancel();
        }
    }
}

impl ResultSink for Bundles<'_> {
    fn arrived(&mut self, index: usize, result: &SampleResult) {
        let Some(sample) = self.samples.get(index) else {
            return;
        };
        self.waiting.push(NewPrediction {
            sample: SampleId::from_index(index),
            stamp: sample.stamp(),
            result: result.clone().map_err(|problem| problem.message),
        });
        if self.waiting.len() >= BUNDLE_LEN || self.sent.elapsed() >= BUNDLE_PERIOD {
            self.send();
        }
    }

    fn in_order(&mut self, _: usize, _: SampleResult) {}
}

impl OutputSink for Bundles<'_> {
    fn labels(&mut self, labels: &LabelSet) {
        self.send();
        self.shared.report(Event::RunLabelled {
            source: self.source,
            run: self.run,
            labels: Box::new(labels.clone()),
        });
    }
}
