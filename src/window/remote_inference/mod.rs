//! Predicting with an endpoint or TensorFlow Serving.

pub(crate) mod effects;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
