//! The window, driven by what is visible in it: the real application with real models on real images.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod adding_models;
mod browsing;
mod commands;
mod comparing;
mod display;
mod duplicates;
mod encoder;
mod endpoints;
mod evaluating;
mod exporting;
mod failing;
mod filtering;
mod job_outputs;
mod judging;
mod kept_thumbnails;
mod key_order;
mod keyboard;
mod labels;
mod layout;
mod looking;
mod map;
mod newcomer;
mod patterns;
mod predicting;
mod predictions;
mod presenting;
mod projects;
mod remote;
mod remote_inference;
mod repairing;
mod repairs_on_disk;
mod s3;
mod s3_bad_days;
mod s3_keeping;
mod s3_picker;
mod screenshots;
mod sending;
mod spot_check;
#[path = "../support/mod.rs"]
mod support;
mod suspicious;
mod training;
mod truth;
mod uploading;
mod watching;
mod which_class;
mod window;
