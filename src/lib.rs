//! Spotcheck shows what a vision model predicts. The program is `main.rs`; everything that it does is here, in layers
//! that import only downward (see ARCHITECTURE.md).

pub mod annotations;
pub mod app;
pub mod aws;
pub mod cache;
pub mod cli;
pub mod decode;
pub mod dirs;
pub mod domain;
pub mod effects;
pub mod evaluate;
pub mod evaluation;
pub mod export;
pub mod import;
pub mod inference;
pub mod library;
pub mod matching;
pub mod predict;
pub mod remote;
pub mod review;
pub mod source;
pub mod state;
pub mod store;
pub mod tasks;
pub mod ui;
pub mod upload;
pub mod vision;
