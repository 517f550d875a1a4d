//! The upload dialog, its plan and the end of an upload.

use std::path::Path;
use std::sync::Arc;

use crate::window::tasks;
use crate::window::tasks::update::{begin, settle};
use crate::window::update::images;

use crate::aws::upload::plan::{UploadPlan, UploadReport, UploadStop};
use crate::domain::{Location, S3Place, SampleUri};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    ExportScope, Failure, Loadable, Overlay, S3Effect, State, TaskId, TaskKind, TaskOutcome, UploadCommand,
    UploadEffect, UploadEvent, UploadPlanRequest, Uploaded,
};

pub(crate) fn on_command(state: &mut State, command: UploadCommand) {
    match command {
        UploadCommand::Plan(target, scope) => plan(state, *target, scope),
        UploadCommand::Start { replaces } => start(state, replaces),
        UploadCommand::ForgetPlan => forget_plan(state),
        UploadCommand::Dismiss => state.uploaded = None,
    }
}

pub(crate) fn on_event(state: &mut State, event: UploadEvent) {
    match event {
        UploadEvent::Planned(task, result) => planned(state, task, result),
        UploadEvent::Ended { task, target, result } => ended(state, task, target, result),
    }
}

pub(crate) fn open(state: &mut State) {
    forget_plan(state);
    state.overlay = Overlay::Upload;
    state.effects.push(S3Effect::ReadSetup);
}

fn forget_plan(state: &mut State) {
    tasks::update::cancel_planning(state);
    state.upload.plan = Loadable::NotLoaded;
}

fn plan(state: &mut State, target: S3Place, scope: ExportScope) {
    forget_plan(state);
    let Some(source) = &state.source else {
        return;
    };
    let folder = source.location.as_ref().and_then(Location::path).unwrap_or(Path::new(""));
    let is_single = state.samples.len() == 1
        && (state.samples.ids().next())
            .and_then(|id| state.samples.get(id))
            .is_some_and(|sample| Path::new(sample.uri.file()) == folder);
    let root = if is_single { folder.parent().unwrap_or(folder) } else { folder };
    let root = root.display().to_string();
    let samples: Vec<SampleUri> =
        scope.ids(state).into_iter().filter_map(|id| Some(state.samples.get(id)?.uri.clone())).collect();
    let title = format!("Compare {} with {}", images(samples.len()), target.address);
    let ticket = begin(state, TaskKind::PlanUpload, ProgressUnit::Bytes, title);
    state.upload.plan = Loadable::Loading(ticket.id);
    let request = UploadPlanRequest { root, samples, target };
    state.effects.push(UploadEffect::Plan { request, ticket });
}

fn planned(state: &mut State, task: TaskId, result: Result<UploadPlan, Failure>) {
    if let Ok(plan) = &result {
        let outcome = TaskOutcome::Done(format!("{} to upload", plan.new_files()));
        drop(state.tasks.end(task, outcome));
    }
    if let Err(Failure::Failed { message, .. }) = &result {
        state.problems.add_general(message.clone());
    }
    let result = result.map(Arc::new);
    settle(state, task, result, |state| Some(&mut state.upload.plan));
}

fn start(state: &mut State, replaces: bool) {
    let Loadable::Ready(plan) = std::mem::take(&mut state.upload.plan) else {
        return;
    };
    state.overlay = Overlay::None;
    let title = format!("Upload to {}", plan.target.address);
    let ticket = begin(state, TaskKind::Upload, ProgressUnit::Bytes, title);
    state.effects.push(UploadEffect::Start { plan, replaces, ticket });
}

fn ended(state: &mut State, task: TaskId, target: S3Place, result: Result<UploadReport, String>) {
    let report = match result {
        Ok(report) => report,
        Err(mistake) => {
            tasks::update::ended(state, task, TaskOutcome::Failed(mistake), Vec::new());
            return;
        }
    };
    let summary = format!("{} uploaded", report.sent);
    let rest = format!("Not attempted: {}. Upload again to resume", report.not_tried);
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
        notes.push(format!("{} already in S3", report.same));
    }
    notes.extend(report.notes);
    for problem in &report.failures {
        notes.push(format!("Failed: {problem}"));
    }
    for problem in &report.conflicts {
        notes.push(format!("Kept: {problem}"));
    }
    for problem in report.failures {
        state.problems.add(problem, None);
    }
    tasks::update::ended(state, task, outcome, Vec::new());
    state.uploaded = Some(Uploaded { target, summary, notes });
}
