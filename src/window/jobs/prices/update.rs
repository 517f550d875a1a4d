//! The price table, and what is recomputed when it changes.

use crate::sagemaker::spec::transform::PriceTable;
use crate::window::jobs;
use crate::window::state::{Effect, Loadable, Overlay, Queue, State};

pub(crate) fn prices_read(
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
            jobs::form::update::check(state, draft, effects);
        }
        Overlay::Jobs => {
            if let Some(id) = state.remote.open.clone() {
                jobs::update::watch_anew(state, &id, effects);
            }
        }
        _ => {}
    }
}
