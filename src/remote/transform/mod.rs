//! Batch Transform jobs: looked through before they are paid for, started, watched, and cleaned up after.
//!
//! Plain data in and out ([`crate::domain::TransformPlan`], [`crate::domain::JobProgress`] …), so that the command line and the window
//! tell the same. Nothing here prints, and nothing here knows what an output says.

mod output_keys;

pub use output_keys::{OUT, OutputKeys};
