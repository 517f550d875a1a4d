//! The dialog about an upload, and what came of the last one.

use std::sync::Arc;

use super::Loadable;
use crate::domain::{S3Place, SampleUri, UploadPlan, UploadReport};
use crate::state::{ExportScope, Failure, TaskId, Ticket};

/// Commands about uploads.
#[derive(Debug, Clone, PartialEq)]
pub enum UploadCommand {
    /// Finds out what an upload of these images would do.
    Plan(Box<S3Place>, ExportScope),
    /// Carries out the plan on screen.
    Start {
        /// Whether objects with other content are replaced.
        replaces: bool,
    },
    /// Something else is to be uploaded, or to another place.
    ForgetPlan,
    Dismiss,
}

/// Effects about uploads.
#[derive(Debug, Clone)]
pub enum UploadEffect {
    /// Find out what an upload of these samples' files would do.
    Plan { request: UploadPlanRequest, ticket: Ticket },
    /// Send what the plan says.
    Start {
        plan: Arc<UploadPlan>,
        /// Whether objects with other content are replaced.
        replaces: bool,
        ticket: Ticket,
    },
}

/// Events about uploads.
#[derive(Debug)]
pub enum UploadEvent {
    Planned { task: TaskId, result: Result<UploadPlan, Failure> },
    Ended { task: TaskId, target: S3Place, result: Result<UploadReport, String> },
}

#[derive(Debug, Default)]
pub struct Uploading {
    /// The plan of the upload.
    pub plan: Loadable<Arc<UploadPlan>>,
}

/// The files of these samples, to be compared with what is in S3.
#[derive(Debug, Clone)]
pub struct UploadPlanRequest {
    /// The folder that the objects are named from; empty if there is none.
    pub root: String,
    pub samples: Vec<SampleUri>,
    pub target: S3Place,
}

/// An upload that ended, whole or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploaded {
    pub target: S3Place,
    /// “200 files (12 MiB) sent”
    pub summary: String,
    /// The objects that were skipped, those that failed, and how to continue.
    pub notes: Vec<String>,
}
