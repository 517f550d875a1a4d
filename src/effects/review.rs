//! Effects of searching, comparing and judging.

use super::{Effects, compare, explain, filmstrip};
use crate::state::ReviewEffect;

pub(super) fn carry_out(effects: &mut Effects, effect: ReviewEffect) {
    let shared = &effects.shared;
    match effect {
        ReviewEffect::GatherFilmstrip { id, what } => {
            effects.filmstrips.gather(filmstrip::Gathering { id, what });
        }
        ReviewEffect::MakeCrops { source, run, requested } => effects.filmstrips.request(source, run, requested),
        ReviewEffect::Explain { request, ticket } => {
            explain::explain(shared, &effects.engine, request, ticket);
        }
        ReviewEffect::Compare { request, ticket } => compare::compare(shared, request, ticket),
        ReviewEffect::Arrange { id, pace, run, request } => effects.arrange.request(id, pace, run, request),
    }
}
