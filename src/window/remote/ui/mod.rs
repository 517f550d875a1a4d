//! Ui.

pub(crate) mod list_and_page;
