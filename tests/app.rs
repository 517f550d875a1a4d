//! The window, driven by what one can see in it: the real application with real models on real photographs.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

#[path = "app/browsing.rs"]
mod browsing;
#[path = "app/commands.rs"]
mod commands;
#[path = "app/comparing.rs"]
mod comparing;
#[path = "app/endpoints.rs"]
mod endpoints;
#[path = "app/exporting.rs"]
mod exporting;
#[path = "app/failing.rs"]
mod failing;
#[path = "app/filtering.rs"]
mod filtering;
#[path = "support/http_server.rs"]
mod http_server;
#[path = "app/job_outputs.rs"]
mod job_outputs;
#[path = "app/judging.rs"]
mod judging;
#[path = "app/kept_thumbnails.rs"]
mod kept_thumbnails;
#[path = "app/keyboard.rs"]
mod keyboard;
#[path = "app/layout.rs"]
mod layout;
#[path = "app/looking.rs"]
mod looking;
#[path = "app/predicting.rs"]
mod predicting;
#[path = "app/predicting_elsewhere.rs"]
mod predicting_elsewhere;
#[path = "app/presenting.rs"]
mod presenting;
#[path = "app/projects.rs"]
mod projects;
#[path = "app/remote.rs"]
mod remote;
#[path = "app/s3.rs"]
mod s3;
#[path = "app/s3_bad_days.rs"]
mod s3_bad_days;
#[path = "app/s3_keeping.rs"]
mod s3_keeping;
#[path = "app/s3_picker.rs"]
mod s3_picker;
#[path = "app/screenshots.rs"]
mod screenshots;
#[path = "app/sending.rs"]
mod sending;
mod support;
#[path = "app/uploading.rs"]
mod uploading;
#[path = "app/watching.rs"]
mod watching;
#[path = "app/window.rs"]
mod window;
