//! Exports, from the project and the images of the open source.

use std::path::PathBuf;
use std::sync::Arc;

use super::Shared;
use crate::domain::{ExportOptions, RunInfo, Sample, ViewSettings};
use crate::export::{
    Existing, ExportContext, ExportError, ExportTarget, ProjectRows, export as write_export,
};
use crate::state::{Event, Exported, SourceId, TaskId, TaskOutcome};
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

pub(super) fn export(shared: &Arc<Shared>, request: Request) {
    let task = request.task;
    let work = move |shared: &Arc<Shared>| Event::Exported {
        task,
        result: write(shared, request),
    };
    shared.spawn_answer("export", work, move |mistake| Event::Exported {
        task,
        result: Err(TaskOutcome::Failed(mistake)),
    });
}

fn write(shared: &Shared, request: Request) -> Result<Exported, TaskOutcome> {
    let failed = |reason: String| TaskOutcome::Failed(format!("Could not export: {reason}"));
    let source = shared
        .source(request.source)
        .ok_or(TaskOutcome::Cancelled)?;
    let project = shared
        .project(request.source)
        .ok_or(TaskOutcome::Cancelled)?;
    // What was judged a moment ago belongs to it.
    project.flush().map_err(|error| failed(error.to_string()))?;
    let judgements = project
        .judgements()
        .map_err(|error| failed(error.to_string()))?;
    let samples = request.samples.into_iter();
    let mut rows = ProjectRows::new(project, request.run.id, samples, judgements);
    let context = ExportContext {
        run: request.run,
        view: request.view,
        source_name: request.source_name,
        source,
        limits: shared.limits(),
    };
    let target = ExportTarget {
        path: request.path,
        existing: if request.replaces {
            Existing::Replace
        } else {
            Existing::Keep
        },
    };
    let control = &request.control;
    let report = write_export(&mut rows, &context, request.options, &target, control);
    let report = report.map_err(|error| match error {
        ExportError::Cancelled(_) => TaskOutcome::Cancelled,
        error => failed(error.to_string()),
    })?;
    let problems = report.problems.iter().map(ToString::to_string);
    Ok(Exported {
        summary: report.to_string(),
        notes: report.notes.iter().cloned().chain(problems).collect(),
        path: report.path,
    })
}
