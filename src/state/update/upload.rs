//! The dialog about an upload, its plan and its end.

use std::path::Path;
use std::sync::Arc;

use super::run_tasks;
use crate::domain::{S3Place, SampleUri, UploadPlan, UploadReport, UploadStop};
use crate::state::{
    Effect, ExportScope, Overlay, State, TaskEntry, TaskId, TaskKind, TaskOutcome, UploadPlanning,
    Uploaded,
};
use crate::tasks::{ProgressUnit, TaskControl};

pub(super) fn open(state: &mut State, effects: &mut Vec<Effect>) {
    forget_plan(state, effects);
    state.overlay = Overlay::Upload;
    effects.push(Effect::ReadAwsSetup);
}

pub(super) fn forget_plan(state: &mut State, effects: &mut Vec<Effect>) {
    run_tasks::cancel_planning(state, effects);
    state.upload.plan = UploadPlanning::Unknown;
}

pub(super) fn plan(
    state: &mut State,
    target: S3Place,
    scope: ExportScope,
    effects: &mut Vec<Effect>,
) {
    forget_plan(state, effects);
    let Some(source) = &state.source else {
        return;
    };
    let folder = source.path.as_deref().unwrap_or(Path::new(""));
    let is_single = state.samples.len() == 1
        && (state.samples.ids().next())
            .and_then(|id| state.samples.get(id))
            .is_some_and(|sample| Path::new(sample.uri.file()) == folder);
    let root = if is_single {
        folder.parent().unwrap_or(folder)
    } else {
        folder
    };
    let root = root.display().to_string();
    let samples: Vec<SampleUri> = scope
        .ids(state)
        .into_iter()
        .filter_map(|id| Some(state.samples.get(id)?.uri.clone()))
        .collect();
    let title = format!("Compare {} images with {}", samples.len(), target.address);
    let (task, control) = begin(state, TaskKind::PlanUpload, title);
    state.upload.plan = UploadPlanning::Looking(task);
    effects.push(Effect::PlanUpload {
        root,
        samples,
        target,
        task,
        control,
    });
}

pub(super) fn planned(
    state: &mut State,
    task: TaskId,
    result: Result<UploadPlan, TaskOutcome>,
    effects: &mut Vec<Effect>,
) {
    let is_wanted = matches!(state.upload.plan, UploadPlanning::Looking(wanted) if wanted == task);
    let (outcome, planning) = match result {
        Ok(plan) => {
            let outcome = TaskOutcome::Done(format!("{} to send", plan.new_files()));
            (outcome, UploadPlanning::Known(Arc::new(plan)))
        }
        Err(TaskOutcome::Failed(message)) => (
            TaskOutcome::Failed(message.clone()),
            UploadPlanning::Failed(message),
        ),
        Err(outcome) => (outcome, UploadPlanning::Unknown),
    };
    run_tasks::ended(state, task, outcome, Vec::new(), effects);
    if is_wanted {
        state.upload.plan = planning;
    }
}

pub(super) fn start(state: &mut State, replaces: bool, effects: &mut Vec<Effect>) {
    let UploadPlanning::Known(plan) = std::mem::take(&mut state.upload.plan) else {
        return;
    };
    state.overlay = Overlay::None;
    let title = format!("Upload to {}", plan.target.address);
    let (task, control) = begin(state, TaskKind::Upload, title);
    effects.push(Effect::Upload {
        plan,
        replaces,
        task,
        control,
    });
}

pub(super) fn ended(
    state: &mut State,
    task: TaskId,
    target: S3Place,
    result: Result<UploadReport, String>,
    effects: &mut Vec<Effect>,
) {
    let report = match result {
        Ok(report) => report,
        Err(mistake) => {
            run_tasks::ended(
                state,
                task,
                TaskOutcome::Failed(mistake),
                Vec::new(),
                effects,
            );
            return;
        }
    };
    let summary = format!("{} sent", report.sent);
    let rest = format!(
        "Not attempted: {}. Upload again to continue with the rest",
        report.not_tried
    );
    let mut notes = Vec::new();
    let outcome = match &report.stopped {
        None => TaskOutcome::Done(summary.clone()),
        Some(UploadStop::Cancelled) => {
            notes.push(rest);
            TaskOutcome::Cancelled
        }
        Some(UploadStop::Failed(why)) => {
            notes.extend([why.clone(), rest]);
            TaskOutcome::Failed(why.clone())
        }
    };
    if report.same.files > 0 {
        notes.push(format!("{} already there", report.same));
    }
    notes.extend(report.notes);
    for problem in &report.failures {
        notes.push(format!("Failed: {problem}"));
    }
    for problem in &report.conflicts {
        notes.push(format!("Stayed: {problem}"));
    }
    for problem in report.failures {
        state.problems.add(problem, None);
    }
    run_tasks::ended(state, task, outcome, Vec::new(), effects);
    state.uploaded = Some(Uploaded {
        target,
        summary,
        notes,
    });
}

fn begin(state: &mut State, kind: TaskKind, title: String) -> (TaskId, TaskControl) {
    let control = TaskControl::new(ProgressUnit::Bytes);
    let id = TaskId(state.ids.next());
    state.tasks.start(TaskEntry {
        id,
        kind,
        title,
        control: control.clone(),
    });
    (id, control)
}
