//! The dialog about an export, and its end.

use std::path::PathBuf;

use super::run_tasks;
use crate::domain::{BoxChoice, ExportFormat, ModelTask, Sample};
use crate::review::Suppressed;
use crate::state::export::CountBasis;
use crate::state::{
    BoxCountId, BoxCountRequest, Effect, ExportScope, ExportStage, Exported, Overlay, Run, State,
    TaskEntry, TaskId, TaskKind, TaskOutcome,
};
use crate::tasks::{ProgressUnit, TaskControl};

pub(super) fn open(state: &mut State) {
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

/// What an earlier export came to is no longer of interest.
pub(super) fn show(state: &mut State, overlay: Overlay) {
    state.export.stage = ExportStage::NotYet;
    state.overlay = overlay;
}

/// Counts the boxes of what could be exported, where that is not of the state as it is. After every message.
pub(super) fn follow(state: &mut State, effects: &mut Vec<Effect>) {
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
        marks: state.judgements.marks().revision(),
        view: is_visible.then(|| state.view().clone()),
        hidden: state.suppressed().map_or(0, Suppressed::revision),
        outdated: run.outdated.clone(),
        order: state.order(),
        selected: state.selection.selected().clone(),
    };
    if !state.export_boxes.wants(&basis) {
        return;
    }
    let id = BoxCountId(state.ids.next());
    effects.push(Effect::CountBoxes {
        id,
        what: Box::new(BoxCountRequest {
            predictions: run.predictions.clone(),
            view: basis.view.clone(),
            suppressed: state.suppressed().cloned(),
            marks: state.judgements.marks().clone(),
            outdated: basis.outdated.clone(),
            order: basis.order.clone(),
            selected: basis.selected.clone(),
        }),
    });
    state.export_boxes.ask(id, basis);
}

/// `replaces` says that what has this name already may be replaced.
pub(super) fn confirm(
    state: &mut State,
    mut path: PathBuf,
    replaces: bool,
    effects: &mut Vec<Effect>,
) {
    let (Some(source), Some(run)) = (state.source.as_ref(), state.run()) else {
        return;
    };
    let options = state.export.options;
    if let Some(extension) = options.format.extension()
        && path.extension().is_none()
    {
        path.set_extension(extension);
    }
    let samples: Vec<Sample> = state
        .export
        .scope
        .ids(state)
        .into_iter()
        .filter_map(|id| state.samples.get(id).cloned())
        .collect();
    let (source_id, source_name) = (source.id, source.name.clone());
    let (info, view) = (run.info.clone(), state.view().clone());
    let control = TaskControl::new(ProgressUnit::Images);
    control.set_total(Some(samples.len() as u64));
    let task = TaskId(state.ids.next());
    state.tasks.start(TaskEntry {
        id: task,
        kind: TaskKind::Export,
        title: format!(
            "Export {} images as {}",
            samples.len(),
            options.format.name()
        ),
        control: control.clone(),
    });
    state.export.stage = ExportStage::Running(task);
    effects.push(Effect::Export {
        source: source_id,
        source_name,
        run: Box::new(info),
        view,
        options,
        samples,
        path,
        replaces,
        task,
        control,
    });
}

pub(super) fn pick_target(state: &State, effects: &mut Vec<Effect>) {
    let suggested = state.suggested_export();
    let name = suggested.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    effects.push(Effect::PickExportTarget(name));
}

/// With the filters that the comparison on screen was made with.
pub(super) fn confirm_comparison(
    state: &mut State,
    mut path: PathBuf,
    replaces: bool,
    effects: &mut Vec<Effect>,
) {
    let (Some(source), Some(comparing)) = (&state.source, &state.comparing) else {
        return;
    };
    let (Some(left), Some(right)) = (
        state.runs.get(comparing.left),
        state.runs.get(comparing.right),
    ) else {
        return;
    };
    let format = state.export.comparison;
    if path.extension().is_none() {
        path.set_extension(format.into_str());
    }
    let title = format!(
        "Export the comparison of {} with {}",
        left.info.name, right.info.name
    );
    let control = TaskControl::new(ProgressUnit::Images);
    control.set_total(Some(state.samples.len() as u64));
    let task = TaskId(state.ids.next());
    effects.push(Effect::ExportComparison {
        source: source.id,
        source_name: source.name.clone(),
        runs: Box::new([left.info.clone(), right.info.clone()]),
        views: Box::new(comparing.views.clone()),
        samples: state.samples.snapshot(),
        format,
        path,
        replaces,
        task,
        control: control.clone(),
    });
    state.tasks.start(TaskEntry {
        id: task,
        kind: TaskKind::Export,
        title,
        control,
    });
    state.export.stage = ExportStage::Running(task);
}

pub(super) fn ended(
    state: &mut State,
    task: TaskId,
    result: Result<Exported, TaskOutcome>,
    effects: &mut Vec<Effect>,
) {
    let is_open = matches!(state.overlay, Overlay::Export | Overlay::ExportComparison);
    // Another dialog may have been opened meanwhile, and another export be under way.
    let is_shown = is_open && state.export.stage == ExportStage::Running(task);
    match result {
        Ok(exported) => {
            if is_shown {
                state.overlay = Overlay::None;
            }
            let outcome = TaskOutcome::Done(exported.summary.clone());
            run_tasks::ended(state, task, outcome, Vec::new(), effects);
            state.exported = Some(exported);
        }
        Err(outcome) => {
            if is_shown {
                state.export.stage = match &outcome {
                    TaskOutcome::Failed(message) => ExportStage::Failed(message.clone()),
                    TaskOutcome::Done(_) | TaskOutcome::Cancelled => ExportStage::NotYet,
                };
            } else if let TaskOutcome::Failed(message) = &outcome {
                // The list of problems may be closed.
                state.tell(message.clone());
            }
            run_tasks::ended(state, task, outcome, Vec::new(), effects);
        }
    }
}
