//! The image in view: pixels, boxes, zoom, magnifier and full screen.

pub(crate) mod effects;
pub(crate) mod ui;
pub(crate) mod update;
