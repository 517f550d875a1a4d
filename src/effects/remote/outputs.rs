//! Outputs of jobs, or of folders of them, opened as a run of the open images.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::Shared;
use super::records;
use crate::domain::{
    KeepRule, LabelSet, MadeAt, OutputMapping, RunId, RunKey, Sample, SampleId, SharedList,
};
use crate::library::{built_in_labels, labels_from_file, parse_mapping};
use crate::predict::{ResultSink, SampleResult};
use crate::remote::outputs::{
    FoundOutputs, JobOutputs, OutputFolder, OutputSink, OutputsError, OutputsPart, ReadOutcome,
    ReadingChoice,
};
use crate::remote::transform::JobError;
use crate::state::{
    Event, FoundRun, NewAnswer, OutputsAt, OutputsFailure, OutputsWish, SourceId, TaskId,
    TaskOutcome,
};
use crate::tasks::{TaskControl, now_ms};

/// Answers are sent to the window in bundles, at least this often.
const BUNDLE_PERIOD: Duration = Duration::from_millis(100);
const BUNDLE_LEN: usize = 256;
/// So much of an output of unknown shape is shown.
const RAW_BYTES: u64 = 4000;

pub(in super::super) struct Request {
    pub(in super::super) source: SourceId,
    /// What the images are named from.
    pub(in super::super) root: String,
    pub(in super::super) samples: SharedList<Sample>,
    pub(in super::super) wish: OutputsWish,
    /// The runs of the project, and the names of their classes: outputs that were opened before go into theirs.
    pub(in super::super) known: Vec<(RunKey, RunId, LabelSet)>,
    pub(in super::super) new_run: RunId,
    pub(in super::super) task: TaskId,
    pub(in super::super) control: TaskControl,
}

pub(in super::super) fn open(shared: &Arc<Shared>, request: Request) {
    let (source, task) = (request.source, request.task);
    shared.spawn_answer(
        "open outputs",
        move |shared| Event::OutputsRead {
            source,
            task,
            result: open_all(shared, &request),
        },
        move |mistake| Event::OutputsRead {
            source,
            task,
            result: Err(OutputsFailure::Failed {
                message: mistake,
                raw: None,
            }),
        },
    );
}

fn failed(message: impl Into<String>) -> OutputsFailure {
    OutputsFailure::Failed {
        message: message.into(),
        raw: None,
    }
}

fn failure_of(error: &OutputsError, raw: Option<String>) -> OutputsFailure {
    match error {
        OutputsError::Cancelled(_) => OutputsFailure::Cancelled,
        error => OutputsFailure::Failed {
            message: error.to_string(),
            raw,
        },
    }
}

fn open_all(shared: &Shared, request: &Request) -> Result<TaskOutcome, OutputsFailure> {
    let control = &request.control;
    let source = shared
        .source(request.source)
        .ok_or(OutputsFailure::Cancelled)?;
    let choice = choice_of(shared, &request.wish)?;
    let (parts, made) = origin_of(shared, request)?;
    control.set_step("listing the outputs");
    let samples: Arc<[Sample]> = request.samples.iter().cloned().collect();
    let found = FoundOutputs::find(parts, &samples, &request.root, control)
        .map_err(|error| failure_of(&error, None))?;
    let known = |id: &str| {
        let entries = shared.library.entries().into_iter();
        let mut of_id = entries.filter(|entry| entry.card.id == id);
        of_id.next().map(|entry| (entry.card, entry.labels))
    };
    let run = found
        .describe(made, &choice, known, control)
        .map_err(|error| {
            let raw = match &error {
                OutputsError::Unknown { example, .. } | OutputsError::Broken { example, .. } => {
                    found.raw(example, RAW_BYTES, control).ok()
                }
                _ => None,
            };
            failure_of(&error, raw)
        })?;
    if let (Some(mapping), true) = (&choice.mapping, request.wish.saves_mapping) {
        let saved = shared.library.save_mapping(mapping, None);
        saved.map_err(|error| failed(error.to_string()))?;
    }
    let same = request.known.iter().find(|(key, ..)| *key == run.key);
    let run_id = match same {
        Some((_, known, labels)) => {
            run.reader.learn(labels);
            *known
        }
        None => request.new_run,
    };
    let is_open = shared.report(Event::OutputsFound {
        source: request.source,
        task: request.task,
        run: run_id,
        found: Box::new(FoundRun {
            at: request.wish.at.clone(),
            key: run.key.clone(),
            card: run.card.clone(),
            labels: run.labels.clone(),
        }),
    });
    if !is_open {
        return Err(OutputsFailure::Cancelled);
    }
    control.set_step("");
    let everything = (0..samples.len()).map(SampleId::from_index).collect();
    let mut sink = Bundles {
        shared,
        source: request.source,
        run: run_id,
        samples: &samples,
        waiting: Vec::new(),
        sent: Instant::now(),
        control,
    };
    let outcome = found.read(&run.reader, &source, &everything, control, &mut sink);
    sink.send();
    Ok(ended(&outcome, &found))
}

fn ended(outcome: &ReadOutcome, found: &FoundOutputs) -> TaskOutcome {
    if outcome.is_cancelled {
        return TaskOutcome::Cancelled;
    }
    let mut parts = vec![format!("{} answers read", outcome.done)];
    if outcome.failed > 0 {
        parts.push(format!("{} could not be", outcome.failed));
    }
    parts.extend(found.retries_text());
    let without = outcome.without_output.len();
    if without > 0 {
        parts.push(format!("{without} images have no output"));
    }
    let problems = outcome.problems.iter();
    parts.extend(problems.map(|problem| problem.message.clone()));
    TaskOutcome::Done(parts.join("; "))
}

fn origin_of(
    shared: &Shared,
    request: &Request,
) -> Result<(Vec<OutputsPart>, MadeAt), OutputsFailure> {
    let of_folder = |folder: OutputFolder| {
        let made = MadeAt::Outputs {
            folder: folder.name(),
        };
        (vec![OutputsPart::in_folder(folder)], made)
    };
    match &request.wish.at {
        OutputsAt::Folder(path) => Ok(of_folder(OutputFolder::local(path))),
        OutputsAt::Place(place) => Ok(of_folder(OutputFolder::in_s3(&shared.aws, place))),
        OutputsAt::Job(id) => {
            let asked = (&id.sagemaker, &id.s3);
            let records = records(shared);
            let outputs =
                JobOutputs::find(&shared.aws, asked, &id.name, &records, &request.control);
            let outputs = outputs.map_err(|error| match error {
                JobError::Cancelled => OutputsFailure::Cancelled,
                error => failed(error.to_string()),
            })?;
            Ok((outputs.parts, outputs.made))
        }
    }
}

fn choice_of(shared: &Shared, wish: &OutputsWish) -> Result<ReadingChoice, OutputsFailure> {
    let (mapping, of_mapping) = mapping_of(shared, wish.mapping.trim())?;
    let labels = match wish.labels.trim() {
        "" => None,
        name => Some(match built_in_labels(name) {
            Some(labels) => labels,
            None => labels_from_file(Path::new(name)).map_err(|error| failed(error.to_string()))?,
        }),
    };
    Ok(ReadingChoice {
        mapping,
        labels: labels.or(of_mapping),
        keep: KeepRule::default(),
    })
}

/// Empty for none, the id or file of one, or its text.
fn mapping_of(
    shared: &Shared,
    text: &str,
) -> Result<(Option<OutputMapping>, Option<LabelSet>), OutputsFailure> {
    if text.is_empty() {
        return Ok((None, None));
    }
    if text.contains('=') {
        let typed = PathBuf::from("the mapping above");
        let mapping = parse_mapping(text, &typed).map_err(|error| failed(error.to_string()))?;
        return Ok((Some(mapping), None));
    }
    let (mapping, labels) = shared
        .library
        .find_mapping(text)
        .map_err(|error| failed(error.to_string()))?;
    Ok((
        Some(mapping),
        Some(labels).filter(|labels| !labels.is_empty()),
    ))
}

/// Sends answers to the window, some at a time.
struct Bundles<'b> {
    shared: &'b Shared,
    source: SourceId,
    run: RunId,
    samples: &'b [Sample],
    waiting: Vec<NewAnswer>,
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
            answers: std::mem::take(&mut self.waiting),
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
        self.waiting.push(NewAnswer {
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
