//! The boxes of a class next to each other.

pub(crate) mod effects;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
