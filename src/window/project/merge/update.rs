//! Handles a merge: comparing, deciding conflicts, saving.

use std::path::PathBuf;

use crate::domain::Prefer;
use crate::tasks::ProgressUnit;
use crate::window::state::{
    BrowseEvent, Failure, FilePick, FileRequest, Loadable, MergeCommand, MergeEffect, MergeEvent, MergeFindings,
    MergeRequest, Merging, Overlay, ProjectEffect, State, TaskId, TaskKind,
};
use crate::window::tasks::update::{begin, cancel, settle};
use crate::window::{browse, judge};

pub(crate) fn on_command(state: &mut State, command: MergeCommand) {
    match command {
        MergeCommand::Compare(other) => compare(state, other),
        MergeCommand::Go(conflict) => show(state, conflict),
        MergeCommand::Decide(prefer) => decide(state, prefer),
        MergeCommand::Save(target) => save(state, target),
        MergeCommand::PickTarget => {
            let name = format!("{}-merged.spotcheck", state.source_stem());
            state.pick_file(FileRequest::MergeTarget { name });
        }
    }
}

pub(crate) fn on_event(state: &mut State, event: MergeEvent) {
    match event {
        MergeEvent::Compared(task, result) => compared(state, task, result),
        MergeEvent::Saved(task, result) => saved(state, task, result),
    }
}

/// Opens the dialog of an unfinished merge, or asks for the other project.
pub(crate) fn open(state: &mut State) {
    let source = state.source_id();
    if state.merging.as_ref().is_some_and(|merging| Some(merging.request.source) == source) {
        state.overlay = Overlay::Merge;
    } else {
        state.pick_file(FileRequest::MergedProject);
    }
}

pub(crate) fn compare(state: &mut State, other: PathBuf) {
    let (Some(source), Some(run)) = (state.source_id(), state.run()) else {
        return;
    };
    let request = MergeRequest { source, run: Box::new(run.info.clone()), other };
    let earlier = state.merging.take().and_then(|merging| merging.findings.task());
    cancel(state, earlier);
    let mut merging = Merging {
        request: request.clone(),
        findings: Loadable::NotLoaded,
        choices: Vec::new(),
        current: 0,
        saving: Loadable::NotLoaded,
    };
    let title = format!("Compare verdicts with {}", merging.name());
    let ticket = begin(state, TaskKind::Compare, ProgressUnit::Images, title);
    merging.findings = Loadable::Loading(ticket.id);
    state.merging = Some(merging);
    state.overlay = Overlay::Merge;
    state.effects.push(ProjectEffect::Merge(MergeEffect::Compare { request, ticket }));
}

fn compared(state: &mut State, task: TaskId, result: Result<MergeFindings, Failure>) {
    if !settle(state, task, result, |state| Some(&mut state.merging.as_mut()?.findings)) {
        return;
    }
    if let Some(merging) = &mut state.merging {
        merging.choices = vec![None; merging.conflicts().len()];
    }
    show(state, 0);
}

/// Shows a conflict with its image and box.
fn show(state: &mut State, conflict: usize) {
    let Some(merging) = &mut state.merging else {
        return;
    };
    let Some(pair) = merging.conflicts().get(conflict).cloned() else {
        return;
    };
    merging.current = conflict;
    if let Some(sample) = state.samples.find(&pair.sample) {
        browse::update::show(state, sample);
        judge::update::verdicts::select_box(state, pair.box_index.map(|index| index as usize));
    }
}

fn decide(state: &mut State, prefer: Prefer) {
    let Some(merging) = &mut state.merging else {
        return;
    };
    let current = merging.current;
    let Some(choice) = merging.choices.get_mut(current) else {
        return;
    };
    *choice = Some(prefer);
    if let Some(next) = merging.next_undecided() {
        show(state, next);
    }
}

fn save(state: &mut State, target: PathBuf) {
    let Some(merging) = state.merging.as_ref().filter(|merging| merging.findings.ready().is_some()) else {
        return;
    };
    let (request, choices) = (merging.request.clone(), merging.decisions());
    let title = format!("Merge with {}", merging.name());
    let ticket = begin(state, TaskKind::Export, ProgressUnit::Images, title);
    if let Some(merging) = &mut state.merging {
        merging.saving = Loadable::Loading(ticket.id);
    }
    state.effects.push(ProjectEffect::Merge(MergeEffect::Save { request, choices, target, ticket }));
}

/// Opens the merged project, unless something else was opened meanwhile.
fn saved(state: &mut State, task: TaskId, result: Result<PathBuf, Failure>) {
    let written = result.as_ref().ok().cloned();
    settle(state, task, result, |state| Some(&mut state.merging.as_mut()?.saving));
    let Some(written) = written else {
        return;
    };
    let source = state.merging.take().map(|merging| merging.request.source);
    if state.overlay == Overlay::Merge {
        state.overlay = Overlay::None;
    }
    if source.is_some_and(|source| state.is_open(source)) {
        let pick = FilePick::Picked(FileRequest::Project, vec![written]);
        browse::update::on_event(state, BrowseEvent::FilesPicked(pick));
    } else {
        state.show_notice(format!("The merged project is {}", written.display()));
    }
}
