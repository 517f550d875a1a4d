//! The upload dialog and the result of the last upload.

use std::sync::Arc;

use crate::aws::upload::plan::{UploadPlan, UploadReport};
use crate::domain::{S3Place, SampleUri};
use crate::window::state::{ExportScope, Failure, Loadable, TaskId, Ticket};

#[derive(Debug, Clone, PartialEq)]
pub enum UploadCommand {
    /// Plans an upload of these images.
    Plan(Box<S3Place>, ExportScope),
    /// Starts the plan on screen.
    Start {
        /// Whether to replace objects with different content.
        replaces: bool,
    },
    /// Drops the plan, because the files or the destination have changed.
    ForgetPlan,
    Dismiss,
}

#[derive(Debug, Clone)]
pub enum UploadEffect {
    /// Plan an upload of these samples' files.
    Plan { request: UploadPlanRequest, ticket: Ticket },
    /// Upload according to the plan.
    Start {
        plan: Arc<UploadPlan>,
        /// Whether to replace objects with different content.
        replaces: bool,
        ticket: Ticket,
    },
}

#[derive(Debug)]
pub enum UploadEvent {
    Planned(TaskId, Result<UploadPlan, Failure>),
    Ended { task: TaskId, target: S3Place, result: Result<UploadReport, String> },
}

#[derive(Debug, Default)]
pub struct Uploading {
    pub plan: Loadable<Arc<UploadPlan>>,
}

/// The files of these samples, to compare with the objects in S3.
#[derive(Debug, Clone)]
pub struct UploadPlanRequest {
    /// The folder that object names are relative to; empty if there is none.
    pub root: String,
    pub samples: Vec<SampleUri>,
    pub target: S3Place,
}

/// A finished upload, complete or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploaded {
    pub target: S3Place,
    /// “200 files (12 MiB) sent”
    pub summary: String,
    /// The objects that were skipped, those that failed, and how to continue.
    pub notes: Vec<String>,
}
