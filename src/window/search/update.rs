//! Searching and sorting.

use serde::{Deserialize, Serialize};

use crate::domain::SampleId;
use crate::review::{Arrangement, Query, QueryError, Sort, SortBy, Suppressed};
use crate::window::search::state::OnArrival;
use crate::window::state::{ArrangeEffect, RequestId, SearchCommand, SearchEvent, State};
use crate::window::{browse, project};

/// The name of the search and sort order in the project.
const SEARCH: &str = "search";

#[derive(Serialize, Deserialize)]
struct Search {
    query: String,
    sort: Sort,
}

pub(crate) fn on_command(state: &mut State, command: SearchCommand) {
    match command {
        SearchCommand::SetQuery(text) => search(state, Query::parse(&text), text),
        SearchCommand::ShowBoxes(boxes) => {
            let text = boxes.to_string();
            search(state, Ok(boxes.into()), text);
            state.settings.show_images_panel = true;
            state.filmstrip.get_or_insert_default().class = None;
        }
        SearchCommand::ShowFirstFound => {
            state.arranging.show_first();
            if state.basis().is_some_and(|basis| state.arranging.is_arranged(&basis)) {
                arrived(state);
            }
        }
        SearchCommand::SetSort(sort) => {
            state.arranging.sort_anew(sort);
            save_search(state);
        }
    }
}

pub(crate) fn on_event(state: &mut State, event: SearchEvent) {
    match event {
        SearchEvent::Arranged { id, arrangement, suppressed } => arranged(state, id, arrangement, suppressed),
        SearchEvent::Counted { id, statistics } => state.arranging.take_statistics(id, statistics),
        SearchEvent::Failed { id, reason } => {
            state.arranging.cancel(id);
            state.report_problem(format!("The images could not be sorted and filtered: {reason}"));
        }
    }
}

pub(crate) fn clear(state: &mut State) {
    search(state, Ok(Query::default()), String::new());
}

fn search(state: &mut State, query: Result<Query, QueryError>, text: String) {
    state.arranging.search_anew(query, text);
    save_search(state);
}

fn save_search(state: &mut State) {
    let search = Search { query: state.arranging.text().to_owned(), sort: state.arranging.sort() };
    // When the project is opened again, there is nothing to compare with.
    let by = search.sort.by;
    if !matches!(by, SortBy::Disagreement | SortBy::Similarity | SortBy::Duplicates) && by.measure().is_none() {
        project::update::save_view(state, SEARCH.to_owned(), &search);
    }
}

/// Restores the last search from the project; ignores other names.
pub(crate) fn restore(state: &mut State, name: &str, json: &str) {
    if name == SEARCH
        && let Ok(search) = serde_json::from_str::<Search>(json)
        // No field accepts more; an edited file could fill the memory with it.
        && search.query.chars().count() <= Query::MAX_FIELD_LETTERS
    {
        state.arranging.set_text(search.query);
        state.arranging.set_sort(search.sort);
    }
}

pub(crate) fn focus_search(state: &mut State) {
    state.settings.show_images_panel = true;
    state.large_image = false;
    state.search_focus += 1;
}

/// Requests a new order if the current or pending one does not match the state. Called after every message.
pub(crate) fn follow(state: &mut State) {
    let order = state.order();
    if let Some(place) = state.selection.shown().and_then(|shown| order.place_of(shown)) {
        state.arranging.place = place;
    }
    let Some(basis) = state.basis() else {
        return;
    };
    let Some(pace) = state.arranging.requested(&basis) else {
        return;
    };
    let id = RequestId(state.ids.next());
    state.effects.push(ArrangeEffect {
        id,
        pace,
        run: state.source_id().zip(state.run_id()),
        request: Box::new(state.arrange_request()),
    });
    state.arranging.begin(id, basis);
}

fn arranged(state: &mut State, id: RequestId, arrangement: Arrangement, suppressed: Option<Suppressed>) {
    let before = state.order();
    let is_other_search = state.arranging.is_searching();
    if !state.arranging.take_arrangement(id, arrangement) {
        return;
    }
    state.arranging.suppressed = suppressed;
    if let Some(folders) = state.arranging.folders() {
        state.folders.follow(&folders.tree);
    }
    let after = state.order();
    if is_other_search {
        state.selection.keep_only(|sample| after.place_of(sample).is_some());
    }
    if arrived(state) {
        return;
    }
    let shown = state.selection.shown();
    // A sample that was filtered out stays shown, and stepping continues from its former position.
    if shown.is_some_and(|shown| after.place_of(shown).is_none()) {
        let place = shown.and_then(|shown| before.place_of(shown));
        let earlier = (0..place.unwrap_or(state.arranging.place)).rev();
        let mut places = earlier.filter_map(|place| before.at(place)).filter_map(|earlier| after.place_of(earlier));
        state.arranging.place = places.next().map_or(0, |place| place + 1);
    }
}

/// Runs the action for the current order. Returns whether it shows another image.
fn arrived(state: &mut State) -> bool {
    let is_first = state.arranging.take_arrival() == Some(OnArrival::ShowFirst);
    let first = state.order().at(0).filter(|_| is_first);
    if let Some(first) = first {
        browse::update::show(state, first);
    }
    first.is_some()
}

/// The position this many steps from the shown sample, or from its former position if it was filtered out.
pub(crate) fn place_after(state: &State, by: i64) -> Option<usize> {
    let order = state.order();
    let last = order.len().checked_sub(1)?;
    let shown: Option<SampleId> = state.selection.shown();
    let place = match shown.map(|shown| order.place_of(shown)) {
        None => 0,
        Some(Some(place)) => place as i64 + by,
        // Between two positions: the one after it is the first step forward.
        Some(None) if by > 0 => state.arranging.place as i64 + by - 1,
        Some(None) => state.arranging.place as i64 + by,
    };
    Some(place.clamp(0, last as i64) as usize)
}
