//! The window, driven by what one can see in it: the real application with real models on real photographs.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

#[path = "app/browsing.rs"]
mod browsing;
#[path = "app/commands.rs"]
mod commands;
#[path = "app/judging.rs"]
mod judging;
#[path = "app/looking.rs"]
mod looking;
#[path = "app/predicting.rs"]
mod predicting;
#[path = "app/projects.rs"]
mod projects;
#[path = "app/screenshots.rs"]
mod screenshots;
mod support;
#[path = "app/window.rs"]
mod window;
