//! Batch Transform jobs: list and page, form, rehearsal, prices.

pub(crate) mod effects;
pub(crate) mod form;
pub(crate) mod prices;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
