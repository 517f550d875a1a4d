//! The jobs of an account and region, and details of single jobs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::S3Access;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::training::TrainingProgress;
use crate::sagemaker::spec::transform::{
    CheckGrade, JobKind, JobOutcome, JobProgress, JobSummary, Leftover, Preflight, Price, PriceChange, PriceTable,
    RetryChoice, SageMakerAccess, TransformPlan, TransformStatus,
};
use crate::tasks::ProgressUnit;
use crate::window::jobs::form::state::RehearsalRequest;
use crate::window::remote::state::{RemoteCommand, RemoteEffect, RemoteEvent, Resource, Resources, Watch};
use crate::window::state::{
    Command, Effect, Failure, FormCheck, JobDraft, JobRequest, Loadable, Overlay, RehearsalOptions, RehearsalReport,
    State, TaskId, TaskKind, Ticket,
};

pub type RemoteJobsCommand = RemoteCommand<JobId, TransformStatus>;
pub type RemoteJobsEffect = RemoteEffect<JobId, TransformStatus>;
pub type RemoteJobsEvent = RemoteEvent<KnownJob>;

#[derive(Debug, Clone, PartialEq)]
pub enum JobsCommand {
    Check(Box<JobDraft>),
    /// Tests the job in the form on this computer.
    Rehearse(RehearsalOptions),
    Start,
    /// Adds a price to the user's price table.
    KeepPrice(Box<Price>),
    /// Replaces a price in the price table.
    ChangePrice(Box<PriceChange>),
    Stop(JobId),
    /// Lists the objects without an output, and the reasons.
    FindOutcome(JobId),
    /// Plans a job for only the objects without an output, and checks it.
    PlanRetry(JobId, RetryChoice),
    StartRetry(JobId),
    DropRetry(JobId),
    FindLeftovers(JobId),
    DeleteLeftovers(JobId),
    /// Opens a form for the model of a training job.
    UseModel(JobId, ModelUse),
}

/// What runs the model of a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelUse {
    Job,
    Endpoint,
}

#[derive(Debug, Clone)]
pub enum JobsEffect {
    /// Check a planned job for problems.
    Check {
        request: Box<JobRequest>,
        ticket: Ticket,
    },
    /// Test the job with some of the images on this computer.
    Rehearse {
        request: Box<RehearsalRequest>,
        ticket: Ticket,
    },
    ReadPrices,
    KeepPrice(Box<Price>),
    ChangePrice(Box<PriceChange>),
    /// Upload what the job needs, and start it.
    Start {
        plan: Arc<TransformPlan>,
        ticket: Ticket,
    },
    Stop(JobId, Ticket),
    /// Find the objects without an output, and the reasons.
    FindOutcome(JobId, Ticket),
    /// Plan a job for only those objects, and check it.
    PlanRetry {
        id: JobId,
        choice: RetryChoice,
        ticket: Ticket,
    },
    StartRetry {
        id: JobId,
        plan: Arc<TransformPlan>,
        ticket: Ticket,
    },
    FindLeftovers(JobId, Ticket),
    DeleteLeftovers {
        id: JobId,
        found: Vec<Leftover>,
        ticket: Ticket,
    },
}

#[derive(Debug)]
pub enum JobsEvent {
    /// The price table was read, or written and read.
    PricesRead {
        path: String,
        result: Result<PriceTable, String>,
    },
    Checked(TaskId, Result<Box<FormCheck<TransformPlan>>, Failure>),
    /// The result of the local test, for display.
    Rehearsed(TaskId, Result<Box<RehearsalReport>, Failure>),
    Started(TaskId, Result<JobId, Failure>),
    StopRequested(JobId, TaskId, Result<(), Failure>),
    OutcomeFound(JobId, TaskId, Result<JobOutcome, Failure>),
    RetryPlanned(JobId, TaskId, Result<Box<RetryPlan>, Failure>),
    /// The name of the job started for the failed images.
    RetryStarted(JobId, TaskId, Result<String, Failure>),
    LeftoversFound(JobId, TaskId, Result<Leftovers, Failure>),
    LeftoversDeleted(JobId, TaskId, Result<Deleted, Failure>),
}

/// The state of a job at a poll.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "an event boxes it")]
pub enum SeenJob {
    Transform(JobProgress),
    /// Also the jobs started here that use its model, newest first.
    Training(TrainingProgress, Vec<JobId>),
}

/// A job, and how to access it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobId {
    pub sagemaker: SageMakerAccess,
    /// The access to its inputs and outputs.
    pub s3: S3Access,
    pub name: String,
    #[serde(default)]
    pub kind: JobKind,
}

impl From<&JobId> for S3Access {
    fn from(id: &JobId) -> Self {
        id.s3.clone()
    }
}

impl JobId {
    /// The id of a job in the region of the S3 access.
    pub fn new(access: &S3Access, kind: JobKind, name: impl Into<String>) -> Self {
        Self { sagemaker: SageMakerAccess::from(access), s3: access.clone(), name: name.into(), kind }
    }
}

#[derive(Debug, Default)]
pub struct KnownJob {
    pub id: JobId,
    pub watch: Watch,
    pub progress: Option<JobProgress>,
    pub training: Option<TrainingProgress>,
    /// The jobs started here that use the model of this training job, newest first.
    pub used_by: Vec<JobId>,
    pub stopping: Option<TaskId>,
    pub outcome: Loadable<JobOutcome>,
    pub left: Loadable<Leftovers>,
    pub cleaning: Option<TaskId>,
    /// A summary of the deletion, for display.
    pub cleaned: Option<String>,
    /// A job for only the failed objects, before it is started.
    pub retry: Loadable<RetryPlan>,
    pub retrying: Option<TaskId>,
}

/// A reviewed job for what failed in another one, not started yet.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPlan {
    /// The plan of the retry, as checked and started.
    pub plan: Arc<TransformPlan>,
    pub preflight: Preflight,
    /// The differences from the other job, with the reasons, for display.
    pub notes: Vec<String>,
}

impl RetryPlan {
    /// Whether nothing prevents the start.
    pub fn is_startable(&self) -> bool {
        self.preflight.grade() != CheckGrade::Problem
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftovers {
    /// Nothing is recorded, because the job was started from another computer.
    Unrecorded,
    /// The resources that were created only for the job and are not deleted yet.
    Recorded(Vec<Leftover>),
}

impl Resource for KnownJob {
    type Id = JobId;
    type Status = TransformStatus;
    type Row = JobSummary;
    /// Why some kind of job could not be listed.
    type Listed = Option<String>;
    type Seen = SeenJob;

    const NOUN: &'static str = "job";
    const DIALOG: Overlay = Overlay::Jobs;
    const TASKS: TaskKind = TaskKind::Jobs;
    const POLLING: (TaskKind, ProgressUnit) = (TaskKind::WatchJob, ProgressUnit::Images);

    fn new(id: JobId) -> Self {
        Self { id, ..Self::default() }
    }

    fn id(&self) -> &JobId {
        &self.id
    }

    fn name_of(id: &JobId) -> &str {
        &id.name
    }

    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    fn all(state: &State) -> &Resources<Self> {
        &state.remote.jobs
    }

    fn all_mut(state: &mut State) -> &mut Resources<Self> {
        &mut state.remote.jobs
    }

    fn command(command: RemoteJobsCommand) -> Command {
        command.into()
    }

    fn effect(effect: RemoteJobsEffect) -> Effect {
        effect.into()
    }
}

impl KnownJob {
    pub fn status(&self) -> Option<TransformStatus> {
        let training = self.training.as_ref().map(|progress| progress.training.status);
        training.or_else(|| Some(self.progress.as_ref()?.job.status))
    }

    pub fn is_over(&self) -> bool {
        self.status().is_some_and(TransformStatus::is_over)
    }
}

/// The user's price table.
#[derive(Debug, Default)]
pub struct Prices {
    pub table: PriceTable,
    /// The path of the file; empty before it is read.
    pub path: String,
    /// Why it could not be read or written.
    pub problem: Option<String>,
}
