//! Which parts of an image a class depends on.

pub(crate) mod effects;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
