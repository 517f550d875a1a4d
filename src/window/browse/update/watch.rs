//! Files that appear, change or vanish while a source is open: order, selection, predictions and verdicts stay.

use std::collections::HashSet;

use crate::domain::{ListingChange, Sample, SampleId, SampleSet, SampleUri};
use crate::tasks::ProgressUnit;
use crate::window::state::{BrowseEffect, Display, Listing, Relisting, SourceId, State, TaskId, TaskKind, TaskOutcome};
use crate::window::update::images;
use crate::window::{browse, tasks};

pub(crate) fn changed(state: &mut State, source: SourceId, change: ListingChange) {
    if !state.is_open(source) {
        return;
    }
    match change {
        ListingChange::Seen(samples) => update_samples(state, samples),
        ListingChange::Gone(uris) => {
            let gone = uris.iter().flat_map(|uri| below(state, uri)).collect();
            vanished(state, gone);
        }
        ListingChange::Relisted(samples) => {
            let present = uris_of(&samples);
            let all = state.samples.ids();
            let gone = all.filter(|id| is_missing(state, *id, &present)).collect();
            vanished(state, gone);
            update_samples(state, samples);
        }
        ListingChange::FileRelisted { file, page } => {
            for problem in page.problems {
                state.problems.add(problem, None);
            }
            let present = uris_of(&page.samples);
            let mut gone = below(state, &file);
            gone.retain(|id| is_missing(state, *id, &present));
            vanished(state, gone);
            update_samples(state, page.samples);
        }
        ListingChange::Unwatched(reason) => unwatched(state, &reason),
        ListingChange::Unwatchable(reason) => {
            if let Some(source) = &mut state.source {
                source.unwatched = Some(reason);
            }
        }
    }
}

/// Lists the source again. If the listing failed, the source is reopened.
pub(crate) fn reload(state: &mut State) {
    let Some(source) = &state.source else {
        return;
    };
    if matches!(source.listing, Listing::Failed(_)) {
        browse::update::open_again(state);
        return;
    }
    let (id, title) = (source.id, format!("List {} again", source.name));
    let ticket = tasks::update::begin(state, TaskKind::List, ProgressUnit::Images, title);
    state.effects.push(BrowseEffect::ListAgain { source: id, ticket });
}

pub(crate) fn listed_again(state: &mut State, source: SourceId, task: TaskId, result: Result<Relisting, String>) {
    let relisting = match result {
        Ok(relisting) => {
            state.tasks.forget(task);
            relisting
        }
        Err(reason) => return drop(state.tasks.end(task, TaskOutcome::Failed(reason))),
    };
    let Some(open) = state.source.as_mut().filter(|open| open.id == source) else {
        return;
    };
    open.notes = relisting.notes;
    for problem in relisting.problems {
        state.problems.add(problem, None);
    }
    if let Some(present) = relisting.present {
        let is_missing = |id: &SampleId| {
            let entry = state.samples.get(*id);
            entry.is_some_and(|entry| !present.contains(&entry.uri))
        };
        let gone = state.samples.ids().filter(is_missing).collect();
        state.show_notice("The images were listed again");
        vanished(state, gone);
    }
    read_again(state);
}

/// Forgets read errors, because the files may be readable now.
pub(crate) fn read_again(state: &mut State) {
    state.samples.forget_unreadable();
    if matches!(state.shown.display, Display::Failed(_)) {
        browse::update::shown_changed(state);
    }
}

fn uris_of(samples: &[Sample]) -> HashSet<&SampleUri> {
    samples.iter().map(|sample| &sample.uri).collect()
}

fn is_missing(state: &State, id: SampleId, present: &HashSet<&SampleUri>) -> bool {
    let entry = state.samples.get(id);
    entry.is_some_and(|entry| !present.contains(&entry.uri))
}

/// New files come last, so that no other one moves.
fn update_samples(state: &mut State, samples: Vec<Sample>) {
    let mut new = Vec::new();
    let mut changed = SampleSet::default();
    let mut shown_changed = false;
    for sample in samples {
        let Some(id) = state.samples.find(&sample.uri) else {
            new.push(sample);
            continue;
        };
        let entry = state.samples.get(id);
        let is_same = entry.is_some_and(|entry| entry.stamp() == sample.stamp());
        let is_as_before = is_same && !state.samples.is_gone(id);
        if !is_as_before {
            shown_changed |= state.shown_sample() == Some(id);
            state.samples.replace(id, sample);
            state.runs.mark_outdated(id);
            changed.insert(id);
        }
    }
    state.problems.forget(&changed);
    if !new.is_empty() {
        browse::update::append(state, new);
    }
    if shown_changed {
        browse::update::shown_changed(state);
    }
}

/// The file itself, or everything in the folder it used to be.
fn below(state: &State, uri: &SampleUri) -> Vec<SampleId> {
    if let Some(id) = state.samples.find(uri) {
        return vec![id];
    }
    let lies_below = |id: &SampleId| {
        let entry = state.samples.get(*id);
        let rest = entry.and_then(|entry| entry.uri.as_str().strip_prefix(uri.as_str()));
        rest.is_some_and(|rest| rest.starts_with(['/', '\\']))
    };
    state.samples.ids().filter(lies_below).collect()
}

fn vanished(state: &mut State, gone: Vec<SampleId>) {
    let mut names = Vec::new();
    for id in gone {
        if state.samples.mark_gone(id)
            && let Some(entry) = state.samples.get(id)
        {
            names.push(entry.name.clone());
        }
    }
    match names.as_slice() {
        [] => {}
        [name] => state.show_notice(format!("{name} no longer exists")),
        names => state.show_notice(format!("{} no longer exist", images(names.len()))),
    }
}

fn unwatched(state: &mut State, reason: &str) {
    let Some(source) = &mut state.source else {
        return;
    };
    source.unwatched = Some(reason.to_owned());
    let message = format!("Not watching for new or changed files: {reason}");
    state.report_problem(message);
}
