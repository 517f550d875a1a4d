//! The models to choose from.

pub(crate) mod add;
pub(crate) mod effects;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
