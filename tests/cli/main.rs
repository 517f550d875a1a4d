//! The command line as a process: what it writes and prints, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod evaluate;
mod export;
mod import;
mod inspect;
mod kill;
mod models;
mod out;
mod predict;
mod project;
mod runtime;
#[path = "../support/mod.rs"]
mod support;
mod tfrecord;
