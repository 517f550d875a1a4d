//! Spotcheck shows what a vision model predicts. The program is `main.rs`; everything that it does is here, in layers
//! that import only downward (see ARCHITECTURE.md).

pub mod annotations;
pub mod aws;
pub mod cache;
pub mod cli;
pub mod dirs;
pub mod domain;
pub mod evaluation;
pub mod image;
pub mod model;
pub mod predict;
pub mod project;
pub mod review;
pub mod sagemaker;
pub mod tasks;
pub mod window;
