//! The size of the disk cache, and clearing it.

use std::sync::Arc;

use super::Shared;
use crate::cache::CacheError;
use crate::domain::Problem;
use crate::window::state::{BrowseEvent, Event};

pub(crate) fn measure(shared: &Arc<Shared>) {
    shared.spawn("measure the disk cache", |shared| {
        shared.report(BrowseEvent::CacheMeasured(shared.cache.usage()));
    });
}

pub(crate) fn clear(shared: &Arc<Shared>) {
    shared.spawn("clear the disk cache", |shared| {
        match shared.cache.clear() {
            Ok(()) => {
                shared.report(Event::Notice("Cleared the disk cache".to_owned()));
            }
            Err(error) => report_failure(shared, &error),
        }
        shared.report(BrowseEvent::CacheMeasured(shared.cache.usage()));
    });
}

pub(crate) fn report_failure(shared: &Shared, error: &CacheError) {
    shared.report(Event::Problem(Problem::general(error.to_string())));
}
