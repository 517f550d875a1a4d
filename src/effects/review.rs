//! Effects of searching, comparing and judging.

use super::{Effects, arrange, compare, explain};
use crate::state::ReviewEffect;

pub(super) fn carry_out(effects: &mut Effects, effect: ReviewEffect) {
    let shared = &effects.shared;
    match effect {
        ReviewEffect::GatherFilmstrip { id, what } => {
            effects.filmstrips.gathering.put((id, what));
        }
        ReviewEffect::MakeCrops { source, run, requested } => effects.filmstrips.request(source, run, requested),
        ReviewEffect::Explain { request, ticket } => {
            explain::explain(shared, &effects.engine, request, ticket);
        }
        ReviewEffect::Compare { request, ticket } => compare::compare(shared, request, ticket),
        ReviewEffect::Arrange { id, pace, run, request } => {
            effects.arrange.put(arrange::Request { id, pace, run, what: request });
        }
    }
}
