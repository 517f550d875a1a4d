//! The jobs of an account and region, and what is known of single ones.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::remote_list::RemoteList;
use crate::domain::{
    CheckGrade, JobOutcome, JobPage, JobProgress, JobQuery, Leftover, Preflight, Price, PriceChange, PriceTable,
    RetryChoice, S3Access, SageMakerAccess, TransformPlan, TransformStatus, TransformSummary,
};
use crate::state::remote::job_form::RehearsalRequest;
use crate::state::{
    Failure, FormCheck, JobDraft, JobRequest, Loadable, RehearsalOptions, RehearsalReport, TaskId, Ticket,
};

/// Commands about jobs.
#[derive(Debug, Clone, PartialEq)]
pub enum JobsCommand {
    /// Checks the form about a job.
    Check(Box<JobDraft>),
    /// Tries what the form says on this machine.
    Rehearse(RehearsalOptions),
    /// Starts what was checked.
    Start,
    /// Adds a price to the user's table.
    KeepPrice(Box<Price>),
    /// Puts a price of the table in the place of another one.
    ChangePrice(Box<PriceChange>),
    /// Lists jobs from the beginning.
    List(JobQuery),
    ListMore,
    /// Shows the page of a job.
    Open(JobId),
    /// Shows the list alone.
    Close,
    Watch(JobId),
    StopWatching(JobId),
    Stop(JobId),
    /// Lists the objects without an output, and the reasons.
    FindOutcome(JobId),
    /// Plans a job over only the objects without an output, and checks it.
    PlanRetry(JobId, RetryChoice),
    /// Starts it, as it was looked through.
    StartRetry(JobId),
    /// Discards the plan of a retry.
    DropRetry(JobId),
    FindLeftovers(JobId),
    /// Deletes what was listed as left behind.
    DeleteLeftovers(JobId),
}

/// Effects about jobs.
#[derive(Debug, Clone)]
pub enum JobsEffect {
    /// Find out whether a job would do well.
    Check {
        request: Box<JobRequest>,
        ticket: Ticket,
    },
    /// Try on this machine what the job would do with some of the images.
    Rehearse {
        request: Box<RehearsalRequest>,
        ticket: Ticket,
    },
    /// Read the user's table of prices.
    ReadPrices,
    /// Add a price to it.
    KeepPrice(Box<Price>),
    ChangePrice(Box<PriceChange>),
    /// Upload what the job needs, and start it.
    Start {
        plan: Arc<TransformPlan>,
        ticket: Ticket,
    },
    List {
        access: S3Access,
        query: JobQuery,
        ticket: Ticket,
    },
    /// Look at a job again and again until it is over.
    Watch {
        id: JobId,
        ticket: Ticket,
    },
    Stop {
        id: JobId,
        ticket: Ticket,
    },
    /// Find the objects that got no output, and why.
    FindOutcome {
        id: JobId,
        ticket: Ticket,
    },
    /// Plan a job for them alone, and check it.
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
    /// Find what a job left behind.
    FindLeftovers {
        id: JobId,
        ticket: Ticket,
    },
    DeleteLeftovers {
        id: JobId,
        found: Vec<Leftover>,
        ticket: Ticket,
    },
}

/// Events about jobs.
#[derive(Debug)]
pub enum JobsEvent {
    /// The table of prices was read, or written and read.
    PricesRead {
        path: String,
        result: Result<PriceTable, String>,
    },
    Checked {
        task: TaskId,
        result: Result<Box<FormCheck<TransformPlan>>, Failure>,
    },
    /// The result of the rehearsal, for people.
    Rehearsed {
        task: TaskId,
        result: Result<Box<RehearsalReport>, Failure>,
    },
    Started {
        task: TaskId,
        result: Result<JobId, Failure>,
    },
    /// A part of the list of jobs.
    Listed {
        task: TaskId,
        is_first: bool,
        result: Result<JobPage, Failure>,
    },
    /// A job as it is now.
    Seen {
        id: JobId,
        task: TaskId,
        progress: Box<JobProgress>,
    },
    /// The job could not be polled, and is polled again.
    Trouble {
        id: JobId,
        task: TaskId,
        text: String,
    },
    /// The job has ended, or cannot be polled.
    WatchEnded {
        id: JobId,
        task: TaskId,
        end: WatchEnd,
    },
    StopRequested {
        id: JobId,
        task: TaskId,
        result: Result<(), Failure>,
    },
    OutcomeFound {
        id: JobId,
        task: TaskId,
        result: Result<JobOutcome, Failure>,
    },
    RetryPlanned {
        id: JobId,
        task: TaskId,
        result: Result<Box<RetryPlan>, Failure>,
    },
    /// The name of the job that was started for the failed images.
    RetryStarted {
        id: JobId,
        task: TaskId,
        result: Result<String, Failure>,
    },
    LeftoversFound {
        id: JobId,
        task: TaskId,
        result: Result<Leftovers, Failure>,
    },
    /// A summary of the deletion for people, and the leftovers that remain.
    LeftoversDeleted {
        id: JobId,
        task: TaskId,
        result: Result<(String, Vec<Leftover>), Failure>,
    },
}

/// A job, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobId {
    pub sagemaker: SageMakerAccess,
    /// How its inputs and outputs are read.
    pub s3: S3Access,
    pub name: String,
}

impl JobId {
    /// The id of a job in the region of the S3 access.
    pub fn new(access: &S3Access, name: impl Into<String>) -> Self {
        Self { sagemaker: SageMakerAccess::from(access), s3: access.clone(), name: name.into() }
    }
}

/// The jobs of an account and region.
pub type JobList = RemoteList<TransformStatus, TransformSummary>;

/// The state of one job.
#[derive(Debug)]
pub struct KnownJob {
    pub id: JobId,
    /// The last progress.
    pub progress: Option<JobProgress>,
    /// The task that watches it.
    pub watching: Option<TaskId>,
    /// The last failure.
    pub failure: Option<Failure>,
    /// Why the last poll failed; it is retried.
    pub trouble: Option<String>,
    /// The task that stops the job.
    pub stopping: Option<TaskId>,
    pub outcome: Loadable<JobOutcome>,
    /// The leftovers of the job.
    pub left: Loadable<Leftovers>,
    /// The task that deletes the leftovers.
    pub cleaning: Option<TaskId>,
    /// A summary of the deletion, for people.
    pub cleaned: Option<String>,
    /// A job over only the failed ones, before it is started.
    pub retry: Loadable<RetryPlan>,
    /// The task that starts the retry.
    pub retrying: Option<TaskId>,
}

/// A job over what failed in another one, looked through and not started yet.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPlan {
    /// The plan of the retry, as it was checked and as it is started.
    pub plan: Arc<TransformPlan>,
    pub preflight: Preflight,
    /// The differences from the other job, and their reasons, for people.
    pub notes: Vec<String>,
}

impl RetryPlan {
    /// Whether nothing speaks against starting.
    pub fn is_startable(&self) -> bool {
        self.preflight.grade() != CheckGrade::Problem
    }
}

/// How looking at a job again and again ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// The job is over.
    JobOver,
    /// There is no such job, so looking again would not help.
    NoSuchJob(Failure),
    /// The job could not be polled. It may succeed later: after a sign-in, or with a permission.
    Failed(Failure),
}

/// The leftovers of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftovers {
    /// Nothing is recorded: the job was started from another machine.
    Unrecorded,
    /// The resources that were made for the job alone and are not deleted yet.
    Recorded(Vec<Leftover>),
}

impl KnownJob {
    pub(super) fn new(id: JobId) -> Self {
        Self {
            id,
            progress: None,
            watching: None,
            failure: None,
            trouble: None,
            stopping: None,
            outcome: Loadable::NotLoaded,
            left: Loadable::NotLoaded,
            cleaning: None,
            cleaned: None,
            retry: Loadable::NotLoaded,
            retrying: None,
        }
    }

    pub fn is_over(&self) -> bool {
        let progress = self.progress.as_ref();
        progress.is_some_and(|progress| progress.job.status.is_over())
    }
}
