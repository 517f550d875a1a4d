//! Making the map of a run when it is shown, and selecting on it.

use std::sync::Arc;

use crate::domain::{SampleSet, counted};
use crate::review::{ArrangeRequest, BoxChoice, FilmBox, MapRow, Query};
use crate::tasks::ProgressUnit;
use crate::window::map::state::GroupBasis;
use crate::window::state::{
    ChosenBoxes, Derived, GroupRequest, LayRequest, Loadable, MapCommand, MapEffect, MapEvent, RequestId,
    SearchCommand, State, TaskKind,
};
use crate::window::update::show_image;
use crate::window::{browse, filmstrip, search, tasks};

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
        MapCommand::OfBoxes(of_boxes) => state.map.of_boxes = of_boxes,
        MapCommand::Pick(rows) => pick(state, &rows),
        MapCommand::Show(MapRow { sample, index: None }) => browse::update::show(state, sample),
        MapCommand::Show(MapRow { sample, index: Some(index) }) => {
            filmstrip::update::show_box(state, sample, FilmBox::Predicted(index.into()));
        }
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

/// Selects images in all panels, and shows boxes in the filmstrip; those that the search does not find are left out.
fn pick(state: &mut State, rows: &[MapRow]) {
    let order = state.order();
    let found: SampleSet = rows.iter().map(|row| row.sample).filter(|id| order.place_of(*id).is_some()).collect();
    let boxes: Vec<_> = rows.iter().filter_map(|row| Some((row.sample, u32::from(row.index?), None))).collect();
    if let Some((source, run, _)) = state.map_id().filter(|_| !boxes.is_empty()) {
        let description = format!("{} selected on the map", counted(boxes.len(), "box", "boxes"));
        let boxes = Arc::new(BoxChoice::new(state.ids.next(), boxes));
        let chosen = ChosenBoxes { source, run, boxes, title: "Selected on the map", description };
        filmstrip::update::show_chosen(state, chosen);
    }
    state.map.picked_number = state.ids.next();
    if let Some(first) = found.iter().next() {
        browse::update::select(state, &found, first);
    }
    state.map.picked = found;
}

fn renew(state: &mut State) {
    if let Some(map) = state.map_id() {
        state.map.forget(map);
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
    let basis = GroupBasis { images, by: state.map_group_by(), clusters: layout.clusters_number };
    if state.map.groups.newest() == Some(&basis) {
        return;
    }
    let (rows, clusters) = (layout.rows.clone(), layout.clusters.clone());
    let id = RequestId(state.ids.next());
    let images = ArrangeRequest { query: Query::default(), ..state.arrange_request() };
    let what = Box::new(GroupRequest { images, rows, clusters, number: basis.clusters, by: basis.by });
    state.effects.push(MapEffect::Group { id, what });
    state.map.groups.begin(id, basis);
}

/// Starts a task that places the images or boxes of the run on screen.
fn lay(state: &mut State) {
    let (Some(map), Some(run)) = (state.map_id(), state.run()) else {
        return;
    };
    if state.is_listing() || !run.is_loaded() {
        return;
    }
    let predicted = run.predictions.predicted();
    let (source, run, of_boxes) = map;
    let samples = state.samples.snapshot();
    tasks::update::cancel(state, state.map.status.task());
    let images = counted(samples.len(), "image", "images");
    let title = if of_boxes { format!("Map of the boxes of {images}") } else { format!("Map of {images}") };
    let runtime_library = state.settings.runtime_library.clone();
    let ticket = tasks::update::begin(state, TaskKind::Map, ProgressUnit::Steps, title);
    state.map.attempt = Some(map);
    state.map.status = Loadable::Loading(ticket.id);
    let request = LayRequest { source, run, samples, of_boxes, runtime_library, predicted };
    state.effects.push(MapEffect::Lay { request, ticket });
}
