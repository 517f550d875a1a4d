//! The command line as a process: its files, output and exit codes.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod about;
mod alike;
mod duplicates;
mod encoder;
mod equal_labels;
mod evaluate;
mod export;
mod handover;
mod import;
mod inspect;
mod kill;
mod label_patch;
mod labeler;
mod merged_reviews;
mod models;
mod opened_labels;
mod out;
mod patched_files;
mod predict;
mod project;
mod review;
mod review_problems;
mod runtime;
mod sample;
#[path = "../support/mod.rs"]
mod support;
mod tfrecord;
mod unreadable;
