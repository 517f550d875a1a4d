//! Background tasks as the user sees them.

pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
