//! A run measured against ground truth.

pub(crate) mod effects;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
