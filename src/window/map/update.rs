//! Making the map of a run when it is shown, and selecting on it.

use crate::domain::SampleSet;
use crate::review::{ArrangeRequest, Query};
use crate::tasks::ProgressUnit;
use crate::window::map::state::GroupBasis;
use crate::window::state::{
    Derived, GroupRequest, LayRequest, Loadable, MapCommand, MapEffect, MapEvent, RequestId, SearchCommand, State,
    TaskKind,
};
use crate::window::update::show_image;
use crate::window::{browse, search, tasks};

/// The search word for the images that were selected last.
const PICKED: &str = "picked";

pub(crate) fn toggle(state: &mut State) {
    // An evaluation covers the map.
    let is_covered = state.evaluating.as_ref().is_some_and(|evaluating| evaluating.is_shown);
    state.map.is_shown = is_covered || !state.map.is_shown;
    if state.map.is_shown {
        show_image(state);
        state.large_image = false;
    }
}

pub(crate) fn on_command(state: &mut State, command: MapCommand) {
    match command {
        MapCommand::GroupBy(by) => state.map.group_by = by,
        MapCommand::Pick(picked) => pick(state, &picked),
        MapCommand::SearchPicked => {
            search::update::on_command(state, SearchCommand::SetQuery(PICKED.to_owned()));
        }
        MapCommand::Renew => renew(state),
    }
}

pub(crate) fn on_event(state: &mut State, event: MapEvent) {
    match event {
        MapEvent::Placed { task, layout } => {
            if state.map.status.is_by(task) {
                state.map.place(*layout);
            }
        }
        MapEvent::Ended { task, result } => {
            tasks::update::settle(state, task, result, |state| Some(&mut state.map.status));
        }
        MapEvent::Grouped { id, groups } => {
            state.map.groups.take(id, groups.into());
        }
    }
}

/// Selects images in all panels; those that the search does not find are left out.
fn pick(state: &mut State, picked: &SampleSet) {
    let order = state.order();
    let found: SampleSet = picked.iter().filter(|sample| order.place_of(*sample).is_some()).collect();
    state.map.picked_number = state.ids.next();
    if let Some(first) = found.iter().next() {
        browse::update::select(state, &found, first);
    }
    state.map.picked = found;
}

fn renew(state: &mut State) {
    if let Some((source, run)) = state.source_id().zip(state.run_id()) {
        state.map.forget(source, run);
        tasks::update::cancel(state, state.map.status.task());
        state.map.status = Loadable::NotLoaded;
    }
}

/// Starts to make or group the map on screen if necessary. Called after every message.
pub(crate) fn follow(state: &mut State) {
    if !state.map.is_shown {
        return;
    }
    if state.map_layout().is_none() && !state.map_was_attempted() {
        lay(state);
    }
    let (Some(layout), Some(images)) = (state.map_layout(), state.basis()) else {
        state.map.groups = Derived::default();
        return;
    };
    let basis = GroupBasis { images, by: state.map.group_by, clusters: layout.clusters_number };
    if state.map.groups.newest() == Some(&basis) {
        return;
    }
    let (samples, clusters) = (layout.samples.clone(), layout.clusters.clone());
    let id = RequestId(state.ids.next());
    let images = ArrangeRequest { query: Query::default(), ..state.arrange_request() };
    let what = Box::new(GroupRequest { images, samples, clusters, number: basis.clusters, by: basis.by });
    state.effects.push(MapEffect::Group { id, what });
    state.map.groups.begin(id, basis);
}

/// Starts a task that places the images of the run on screen.
fn lay(state: &mut State) {
    let (Some(source), Some(run)) = (&state.source, state.run()) else {
        return;
    };
    if state.is_listing() || !run.is_loaded() {
        return;
    }
    let predicted = run.predictions.predicted();
    let (source, run, samples) = (source.id, run.id(), state.samples.snapshot());
    tasks::update::cancel(state, state.map.status.task());
    let title = format!("Map of {}", crate::domain::counted(state.samples.len(), "image", "images"));
    let ticket = tasks::update::begin(state, TaskKind::Map, ProgressUnit::Steps, title);
    state.map.attempt = Some((source, run));
    state.map.status = Loadable::Loading(ticket.id);
    state.effects.push(MapEffect::Lay { request: LayRequest { source, run, samples, predicted }, ticket });
}
