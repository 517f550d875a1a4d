//! The price table, and what is recomputed when it changes.

use super::{job_form, jobs};
use crate::domain::PriceTable;
use crate::state::{Effect, Loadable, Overlay, Queue, State};

pub(in super::super) fn prices_read(
    state: &mut State,
    path: String,
    result: Result<PriceTable, String>,
    effects: &mut Queue<Effect>,
) {
    let prices = &mut state.remote.prices;
    prices.path = path;
    let table = match result {
        Ok(table) => table,
        Err(why) => {
            prices.problem = Some(why);
            return;
        }
    };
    prices.problem = None;
    if prices.table == table {
        return;
    }
    prices.table = table;
    match state.overlay {
        Overlay::StartJob if !matches!(state.remote.job_form.check, Loadable::NotLoaded) => {
            let draft = state.remote.job_form.draft.clone();
            job_form::check(state, draft, effects);
        }
        Overlay::Jobs => {
            if let Some(id) = state.remote.open.clone() {
                jobs::watch_anew(state, &id, effects);
            }
        }
        _ => {}
    }
}
