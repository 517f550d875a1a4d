//! Opening the outputs of jobs and the predictions of other tools.

pub(crate) mod effects;
pub(crate) mod reading;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
