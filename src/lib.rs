//! Spotcheck shows what a vision model predicts. The program is `main.rs`; this library holds the window and the command
//! line, on top of `spotcheck-core`.

pub use spotcheck_core::{
    COMMIT, PACKAGE_INDEX, alike, annotations, aws, cache, dirs, domain, evaluation, image, local_file, model, predict,
    project, review, sagemaker, similar, tasks, version,
};

pub mod cli;
pub mod window;
