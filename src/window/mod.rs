//! The window: one folder per area, with its `state`, the `update` of it, the `effects` on background tasks and the `ui`.

pub mod app;
pub(crate) mod browse;
pub(crate) mod canvas;
pub(crate) mod comparison;
pub mod effects;
pub(crate) mod endpoints;
pub(crate) mod evaluation;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod filmstrip;
pub(crate) mod jobs;
pub(crate) mod judge;
pub(crate) mod models;
pub(crate) mod outputs;
pub(crate) mod predict;
pub(crate) mod project;
pub(crate) mod remote;
pub(crate) mod remote_inference;
pub(crate) mod s3;
pub(crate) mod search;
pub mod state;
pub(crate) mod tasks;
pub mod ui;
pub(crate) mod update;
pub(crate) mod upload;
