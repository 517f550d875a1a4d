//! What is kept on disk: how much it is, and getting rid of it.

use std::sync::Arc;

use super::Shared;
use crate::cache::CacheError;
use crate::domain::Problem;
use crate::state::Event;

pub(super) fn measure(shared: &Arc<Shared>) {
    shared.spawn("measure what is kept on disk", |shared| {
        shared.report(Event::CacheMeasured(shared.cache.usage()));
    });
}

pub(super) fn clear(shared: &Arc<Shared>) {
    shared.spawn("delete what is kept on disk", |shared| {
        match shared.cache.clear() {
            Ok(()) => {
                shared.report(Event::Told("Deleted what was kept on disk".to_owned()));
            }
            Err(error) => tell(shared, &error),
        }
        shared.report(Event::CacheMeasured(shared.cache.usage()));
    });
}

pub(super) fn tell(shared: &Shared, error: &CacheError) {
    shared.report(Event::WentWrong(Problem::general(error.to_string())));
}
