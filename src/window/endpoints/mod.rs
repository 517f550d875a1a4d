//! SageMaker endpoints: list, page, form, automatic deletion.

pub(crate) mod effects;
pub(crate) mod form;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
