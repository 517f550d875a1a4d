//! Ui.

pub(crate) mod class_table;
pub(crate) mod device;
pub(crate) mod results;
pub(crate) mod runs;
