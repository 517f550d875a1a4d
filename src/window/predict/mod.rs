//! Predicting on this computer; runs and their results.

pub(crate) mod effects;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
