//! Searching and sorting.

use crate::domain::SampleId;
use crate::review::{Arrangement, Sort, Statistics, Suppressed};
use crate::state::arranging::ArrangeId;
use crate::state::{Effect, Run, State};

pub(super) fn set_query(state: &mut State, text: String) {
    state.arranging.set_text(text);
}

pub(super) fn set_sort(state: &mut State, sort: Sort) {
    state.arranging.set_sort(sort);
}

pub(super) fn focus_search(state: &mut State) {
    state.settings.show_images_panel = true;
    state.search_focus += 1;
}

/// Asks for a new order where the one that is there, or under way, is not of the state as it is. After every message.
pub(super) fn follow(state: &mut State, effects: &mut Vec<Effect>) {
    let order = state.order();
    if let Some(place) = state
        .selection
        .shown()
        .and_then(|shown| order.place_of(shown))
    {
        state.arranging.place = place;
    }
    let Some(basis) = state.basis() else {
        return;
    };
    let Some(pace) = state.arranging.wanted(&basis) else {
        return;
    };
    let id = ArrangeId(state.ids.next());
    effects.push(Effect::Arrange {
        id,
        pace,
        run: state
            .source
            .as_ref()
            .map(|source| source.id)
            .zip(state.run().map(Run::id)),
        request: Box::new(state.arrange_request()),
    });
    state.arranging.asked(id, basis);
}

pub(super) fn arranged(
    state: &mut State,
    id: ArrangeId,
    arrangement: Arrangement,
    suppressed: Option<Suppressed>,
) {
    let before = state.order();
    if !state.arranging.take_arrangement(id, arrangement) {
        return;
    }
    state.arranging.suppressed = suppressed;
    let after = state.order();
    let shown = state.selection.shown();
    // One that has dropped out stays shown, and the way goes on from where it would have been.
    if shown.is_some_and(|shown| after.place_of(shown).is_none()) {
        let place = shown.and_then(|shown| before.place_of(shown));
        let earlier = (0..place.unwrap_or(state.arranging.place)).rev();
        let mut places = earlier
            .filter_map(|place| before.at(place))
            .filter_map(|earlier| after.place_of(earlier));
        state.arranging.place = places.next().map_or(0, |place| place + 1);
    }
}

pub(super) fn counted(state: &mut State, id: ArrangeId, statistics: Option<Statistics>) {
    state.arranging.take_statistics(id, statistics);
}

pub(super) fn failed(state: &mut State, id: ArrangeId, reason: &str) {
    state.arranging.give_up(id);
    let problem = format!("The images could not be sorted and filtered: {reason}");
    super::went_wrong(state, crate::domain::Problem::general(problem));
}

/// The place that so many steps from the shown sample lead to; from where it would be, if it has dropped out.
pub(super) fn place_after(state: &State, by: i64) -> Option<usize> {
    let order = state.order();
    let last = order.len().checked_sub(1)?;
    let shown: Option<SampleId> = state.selection.shown();
    let place = match shown.map(|shown| order.place_of(shown)) {
        None => 0,
        Some(Some(place)) => place as i64 + by,
        // Between two places: the one behind it is the first step on.
        Some(None) if by > 0 => state.arranging.place as i64 + by - 1,
        Some(None) => state.arranging.place as i64 + by,
    };
    Some(place.clamp(0, last as i64) as usize)
}
