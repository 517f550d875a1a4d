//! Effects of comparing and judging.

use crate::window::effects::Effects;
use crate::window::state::ReviewEffect;
use crate::window::{comparison, explain};

pub(crate) fn carry_out(effects: &mut Effects, effect: ReviewEffect) {
    let shared = &effects.shared;
    match effect {
        ReviewEffect::GatherFilmstrip { id, what } => {
            effects.filmstrips.gathering.put((id, what));
        }
        ReviewEffect::MakeCrops { source, run, requested } => effects.filmstrips.request(source, run, requested),
        ReviewEffect::Explain { request, ticket } => {
            explain::effects::explain(shared, &effects.engine, request, ticket);
        }
        ReviewEffect::Compare { request, ticket } => comparison::effects::compare(shared, request, ticket),
    }
}
