//! The dialog about an upload, and what came of the last one.

use std::sync::Arc;

use super::TaskId;
use crate::domain::{S3Place, UploadPlan};

#[derive(Debug, Default)]
pub struct Uploading {
    pub plan: UploadPlanning,
}

/// What an upload would do, as far as it is known.
#[derive(Debug, Default)]
pub enum UploadPlanning {
    #[default]
    Unknown,
    Looking(TaskId),
    Known(Arc<UploadPlan>),
    Failed(String),
}

/// An upload that ended, whole or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploaded {
    pub target: S3Place,
    /// “200 files (12 MiB) sent”
    pub summary: String,
    /// What stayed, what failed, and how to go on.
    pub notes: Vec<String>,
}
