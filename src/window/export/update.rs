//! The export dialogs and the end of exports.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{ModelTask, Sample};
use crate::project::export::options::{BoxChoice, ExportFormat};
use crate::review::Suppressed;
use crate::tasks::ProgressUnit;
use crate::window::state::{
    BoxCountRequest, CountBasis, Effect, ExportCommand, ExportComparisonRequest, ExportEffect, ExportEvaluationRequest,
    ExportEvent, ExportFile, ExportRequest, ExportScope, Exported, Failure, FileRequest, Loadable, Overlay, RequestId,
    Run, State, TaskId, TaskKind, TaskOutcome,
};
use crate::window::update::images;
use crate::window::{evaluation, tasks};

pub(crate) fn on_command(state: &mut State, command: ExportCommand) {
    match command {
        ExportCommand::Set(options, scope) => {
            state.export.options = options;
            state.export.scope = scope;
        }
        ExportCommand::SetComparisonFormat(format) => state.export.comparison = format,
        ExportCommand::SetEvaluationFormat(format) => state.export.evaluation = format,
        ExportCommand::PickTarget => pick_target(state),
        ExportCommand::StartComparison { path, replaces } => {
            confirm_comparison(state, path, replaces);
        }
        ExportCommand::StartEvaluation { path, replaces } => {
            confirm_evaluation(state, path, replaces);
        }
        ExportCommand::Start { path, replaces } => confirm(state, path, replaces),
        ExportCommand::Dismiss => state.exported = None,
    }
}

pub(crate) fn on_event(state: &mut State, event: ExportEvent) {
    match event {
        ExportEvent::BoxesCounted { id, counts } => {
            state.export_boxes.take(id, counts);
        }
        ExportEvent::Ended(task, result) => ended(state, task, result),
    }
}

pub(crate) fn open(state: &mut State) {
    if state.selection.selected().len() > 1 {
        state.export.scope = ExportScope::Selection;
    } else if state.export.scope == ExportScope::Selection {
        state.export.scope = ExportScope::Filter;
    }
    let task = state.run().map(Run::task);
    if task.is_some_and(|task| !state.export.options.format.takes(task)) {
        state.export.options.format = ExportFormat::Csv;
    }
    show(state, Overlay::Export);
}

/// Opens an export dialog, without the result of an earlier export.
pub(crate) fn show(state: &mut State, overlay: Overlay) {
    state.export.stage = Loadable::NotLoaded;
    state.overlay = overlay;
}

/// Counts the boxes available for export if the counts do not match the state. Called after every message.
pub(crate) fn follow(state: &mut State) {
    if state.overlay != Overlay::Export {
        return;
    }
    let is_detector = |run: &&Run| run.task() == ModelTask::Detection;
    let Some(run) = state.runs.current().filter(is_detector) else {
        return;
    };
    let is_visible = state.export.options.boxes == BoxChoice::Visible;
    let basis = CountBasis {
        run: run.id(),
        predictions: run.predictions.revision(),
        marks: state.judgments.marks().revision(),
        view: is_visible.then(|| state.view().into_owned()),
        hidden: state.suppressed().map_or(0, Suppressed::revision),
        outdated: run.outdated.clone(),
        order: state.order(),
        selected: state.selection.selected().clone(),
    };
    // A pending count is not replaced: while predictions stream in, every count arrives late, but none is skipped.
    if state.export_boxes.is_under_way() || state.export_boxes.inputs() == Some(&basis) {
        return;
    }
    let id = RequestId(state.ids.next());
    state.effects.push(ExportEffect::CountBoxes {
        id,
        what: Box::new(BoxCountRequest {
            predictions: run.predictions.clone(),
            view: basis.view.clone(),
            suppressed: state.suppressed().cloned(),
            marks: state.judgments.marks().clone(),
            outdated: basis.outdated.clone(),
            order: basis.order.clone(),
            selected: basis.selected.clone(),
        }),
    });
    let choice = |basis: &CountBasis| (basis.run, basis.view.is_some());
    state.export_boxes.keep_if(|counted| choice(counted) == choice(&basis));
    state.export_boxes.begin(id, basis);
}

/// Starts an export. `replaces` allows replacing an existing file or folder.
fn confirm(state: &mut State, mut path: PathBuf, replaces: bool) {
    let (Some(source), Some(run)) = (state.source.as_ref(), state.run()) else {
        return;
    };
    let options = state.export.options;
    add_extension(&mut path, options.format.extension());
    let ids = state.export.scope.ids(state);
    let samples: Vec<Sample> = ids.iter().filter_map(|id| state.samples.get(*id).cloned()).collect();
    let is_drawn = options.format == ExportFormat::AnnotatedImages;
    let truth = state.evaluated().filter(|_| is_drawn).map(|evaluated| {
        let named = ids.iter().filter_map(|id| Some((state.samples.get(*id)?.uri.clone(), *id)));
        (Arc::clone(&evaluated.outcomes), named.collect())
    });
    let (source_id, source_name) = (source.id, source.name.clone());
    let (info, view) = (run.info.clone(), state.view().into_owned());
    let is_report = options.format == ExportFormat::Report;
    let evaluation = is_report.then(|| evaluation::update::request(state, info.id)).flatten();
    let title = format!("Export {} as {}", images(samples.len()), options.format.name());
    let ticket = tasks::update::begin(state, TaskKind::Export, ProgressUnit::Images, title);
    ticket.control.set_total(Some(samples.len() as u64));
    state.export.stage = Loadable::Loading(ticket.id);
    let request = ExportRequest {
        source: source_id,
        source_name,
        run: Box::new(info),
        view,
        options,
        samples,
        evaluation,
        truth,
        target: ExportFile { path, replaces },
    };
    state.effects.push(ExportEffect::Start { request: Box::new(request), ticket });
}

/// Adds the extension of the format, unless the path has one or the format is a folder.
fn add_extension(path: &mut PathBuf, extension: Option<&str>) {
    if let Some(extension) = extension
        && path.extension().is_none()
    {
        path.set_extension(extension);
    }
}

fn pick_target(state: &mut State) {
    let suggested = state.suggested_export();
    let name = suggested.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    state.effects.push(Effect::PickFile(FileRequest::ExportTarget { name }));
}

/// Exports the comparison with the current filters.
fn confirm_comparison(state: &mut State, mut path: PathBuf, replaces: bool) {
    let (Some(source), Some(comparing)) = (&state.source, &state.comparing) else {
        return;
    };
    let (Some(left), Some(right)) = (state.runs.get(comparing.left), state.runs.get(comparing.right)) else {
        return;
    };
    let format = state.export.comparison;
    add_extension(&mut path, Some(format.into_str()));
    let title = format!("Export the comparison of {} with {}", left.info.name, right.info.name);
    let (source, source_name) = (source.id, source.name.clone());
    let runs = Box::new([left.info.clone(), right.info.clone()]);
    let views = Box::new(comparing.views.clone());
    let ticket = tasks::update::begin(state, TaskKind::Export, ProgressUnit::Images, title);
    ticket.control.set_total(Some(state.samples.len() as u64));
    state.export.stage = Loadable::Loading(ticket.id);
    let request = ExportComparisonRequest {
        source,
        source_name,
        runs,
        views,
        samples: state.samples.snapshot(),
        format,
        target: ExportFile { path, replaces },
    };
    state.effects.push(ExportEffect::StartComparison { request, ticket });
}

/// Exports the evaluation of the run on screen. It is measured again with the current filters.
fn confirm_evaluation(state: &mut State, mut path: PathBuf, replaces: bool) {
    let Some(evaluation) = state.run_id().and_then(|run| evaluation::update::request(state, run)) else {
        return;
    };
    let format = state.export.evaluation;
    add_extension(&mut path, format.extension());
    let title = format!("Export the evaluation of {}", evaluation.run.name);
    let ticket = tasks::update::begin(state, TaskKind::Export, ProgressUnit::Images, title);
    state.export.stage = Loadable::Loading(ticket.id);
    let request = ExportEvaluationRequest { evaluation, format, target: ExportFile { path, replaces } };
    state.effects.push(ExportEffect::StartEvaluation { request: Box::new(request), ticket });
}

fn ended(state: &mut State, task: TaskId, result: Result<Exported, Failure>) {
    let is_open = matches!(state.overlay, Overlay::Export | Overlay::ExportComparison | Overlay::ExportEvaluation);
    // Another dialog or export may have been opened meanwhile.
    let is_shown = is_open && state.export.stage == Loadable::Loading(task);
    match result {
        Ok(exported) => {
            if is_shown {
                state.overlay = Overlay::None;
            }
            let outcome = TaskOutcome::Done(exported.summary.clone());
            tasks::update::ended(state, task, outcome, Vec::new());
            state.exported = Some(exported);
        }
        Err(failure) => {
            if is_shown {
                // The dialog shows it, and the next attempt may succeed.
                drop(state.tasks.end(task, failure.clone().into()));
                state.export.stage.settle(task, Err(failure));
                return;
            }
            if let Failure::Failed { message, .. } = &failure {
                // The list of problems may be closed.
                state.show_notice(message.clone());
            }
            tasks::update::ended(state, task, failure.into(), Vec::new());
        }
    }
}
