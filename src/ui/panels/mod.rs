//! The panels around the image, one per file.

mod class_table;
mod comparison;
mod details;
mod device;
mod endpoints;
mod explanation;
mod filters;
mod histogram;
mod images;
mod inspector;
mod judge;
mod magnifier;
mod menu_bar;
mod model;
mod project;
mod remote_inference;
mod results;
mod runs;
mod search;
mod status_bar;
mod tasks;

pub(super) use endpoints::endpoints_banner_ui;
pub(super) use images::{ImagesMemory, images_in_the_middle_ui, images_ui};
pub(super) use inspector::{InspectorMemory, inspector_ui};
pub(super) use judge::{JudgeMemory, judge_ui};
pub(super) use menu_bar::menu_bar_ui;
pub(super) use status_bar::status_bar_ui;
pub(super) use tasks::{tasks_room, tasks_ui};
