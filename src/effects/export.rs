//! Exports, from the project and the images of the open source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::browse::with_home;
use super::latest::{LatestSender, latest};
use super::{Shared, guarded};
use crate::domain::{
    ComparisonFormat, ExportOptions, RunInfo, Sample, SampleId, SharedList, ViewSettings,
};
use crate::export::{
    self, ComparisonContext, Existing, ExportContext, ExportError, ExportTarget, ProjectRows,
};
use crate::review::count_boxes;
use crate::state::{
    BoxCountId, BoxCountRequest, BoxCounts, Event, Exported, SourceId, TaskId, TaskOutcome,
};
use crate::store::PredictionPairs;
use crate::tasks::TaskControl;

pub(super) struct Request {
    pub(super) source: SourceId,
    pub(super) source_name: String,
    pub(super) run: RunInfo,
    pub(super) view: ViewSettings,
    pub(super) options: ExportOptions,
    pub(super) samples: Vec<Sample>,
    pub(super) path: PathBuf,
    pub(super) replaces: bool,
    pub(super) task: TaskId,
    pub(super) control: TaskControl,
}

pub(super) struct ComparisonRequest {
    pub(super) source: SourceId,
    pub(super) context: ComparisonContext,
    pub(super) samples: SharedList<Sample>,
    pub(super) format: ComparisonFormat,
    pub(super) target: ExportTarget,
    pub(super) task: TaskId,
    pub(super) control: TaskControl,
}

/// Counts the boxes that could be exported.
pub(super) struct BoxCountWorker {
    requests: LatestSender<(BoxCountId, Box<BoxCountRequest>)>,
}

impl BoxCountWorker {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let (requests, taken) = latest::<(BoxCountId, Box<BoxCountRequest>)>();
        shared.spawn("count boxes", move |shared| {
            while let Some((id, what)) = taken.take() {
                let counts = guarded(|| Ok(counts(&what)));
                let counts = counts.map_err(|mistake| shared.went_wrong(mistake)).ok();
                if !shared.report(Event::BoxesCounted { id, counts }) {
                    break;
                }
            }
        });
        Self { requests }
    }

    pub(super) fn want(&self, id: BoxCountId, what: Box<BoxCountRequest>) {
        self.requests.put((id, what));
    }
}

fn counts(what: &BoxCountRequest) -> BoxCounts {
    let count = |samples: &mut dyn Iterator<Item = SampleId>| {
        let samples = samples.filter(|sample| !what.outdated.contains(*sample));
        let (view, suppressed) = (what.view.as_ref(), what.suppressed.as_ref());
        count_boxes(&what.predictions, view, suppressed, &what.marks, samples)
    };
    BoxCounts {
        filter: count(&mut what.order.ids()),
        selection: count(&mut what.selected.iter()),
        all: count(&mut what.predictions.iter().map(|(sample, _)| sample)),
    }
}

pub(super) fn target(path: &Path, replaces: bool) -> ExportTarget {
    let existing = if replaces {
        Existing::Replace
    } else {
        Existing::Keep
    };
    let path = with_home(path);
    ExportTarget { path, existing }
}

pub(super) fn export(shared: &Arc<Shared>, request: Request) {
    let task = request.task;
    let work = move |shared: &Arc<Shared>| Event::Exported {
        task,
        result: write(shared, request),
    };
    shared.spawn_reporting("export", work, move |mistake| Event::Exported {
        task,
        result: Err(TaskOutcome::Failed(mistake)),
    });
}

fn write(shared: &Shared, request: Request) -> Result<Exported, TaskOutcome> {
    let source = shared
        .source(request.source)
        .ok_or(TaskOutcome::Cancelled)?;
    let project = shared
        .project(request.source)
        .ok_or(TaskOutcome::Cancelled)?;
    // What was judged a moment ago belongs to it.
    project.flush().map_err(|error| failed(&error))?;
    let judgements = project.judgements().map_err(|error| failed(&error))?;
    let samples = request.samples.into_iter();
    let mut rows = ProjectRows::new(project, request.run.id, samples, judgements);
    let context = ExportContext {
        run: request.run,
        view: request.view,
        source_name: request.source_name,
        source,
        limits: shared.limits(),
    };
    let target = target(&request.path, request.replaces);
    let control = &request.control;
    let report = export::export(&mut rows, &context, request.options, &target, control);
    let report = report.map_err(outcome)?;
    let problems = report.problems.iter().map(ToString::to_string);
    Ok(Exported {
        summary: report.to_string(),
        notes: report.notes.iter().cloned().chain(problems).collect(),
        path: report.path,
    })
}

pub(super) fn export_comparison(shared: &Arc<Shared>, request: ComparisonRequest) {
    let task = request.task;
    let work = move |shared: &Arc<Shared>| Event::Exported {
        task,
        result: write_comparison(shared, &request),
    };
    shared.spawn_reporting("export a comparison", work, move |mistake| {
        Event::Exported {
            task,
            result: Err(TaskOutcome::Failed(mistake)),
        }
    });
}

fn write_comparison(shared: &Shared, request: &ComparisonRequest) -> Result<Exported, TaskOutcome> {
    let project = shared
        .project(request.source)
        .ok_or(TaskOutcome::Cancelled)?;
    let runs = request.context.runs.each_ref().map(|run| run.id);
    let pairs = PredictionPairs::new(project, runs, request.samples.iter().cloned());
    let report = export::export_comparison(
        pairs,
        &request.context,
        request.format,
        &request.target,
        &request.control,
    )
    .map_err(outcome)?;
    Ok(Exported {
        summary: report.to_string(),
        notes: Vec::new(),
        path: report.path,
    })
}

fn outcome(error: ExportError) -> TaskOutcome {
    match error {
        ExportError::Cancelled(_) => TaskOutcome::Cancelled,
        error => failed(&error),
    }
}

fn failed(reason: &dyn std::fmt::Display) -> TaskOutcome {
    TaskOutcome::Failed(format!("Could not export: {reason}"))
}
