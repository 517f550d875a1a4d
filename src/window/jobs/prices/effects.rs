//! Reading the price table, and adding prices to it.

use std::sync::Arc;

use crate::sagemaker::jobs::{JobError, add_price, change_price, read_prices};
use crate::sagemaker::spec::transform::{Price, PriceChange, PriceTable};
use crate::window::effects::Shared;
use crate::window::state::{Event, JobsEvent};

pub(crate) fn read(shared: &Arc<Shared>) {
    work(shared, "read prices", |shared| read_prices(&shared.dirs.prices()));
}

pub(crate) fn save(shared: &Arc<Shared>, price: Price) {
    work(shared, "save a price", move |shared| add_price(&shared.dirs.prices(), &price));
}

pub(crate) fn change(shared: &Arc<Shared>, change: PriceChange) {
    work(shared, "change a price", move |shared| change_price(&shared.dirs.prices(), &change));
}

fn work(shared: &Arc<Shared>, name: &str, work: impl FnOnce(&Shared) -> Result<PriceTable, JobError> + Send + 'static) {
    let path = shared.dirs.prices().display().to_string();
    let of_panic = path.clone();
    shared.spawn_reporting(
        name,
        move |shared| {
            Event::Jobs(JobsEvent::PricesRead { path, result: work(shared).map_err(|error| error.to_string()) })
        },
        move |reason| Event::Jobs(JobsEvent::PricesRead { path: of_panic, result: Err(reason) }),
    );
}
