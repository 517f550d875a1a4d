//! Training jobs: checked before they cost money, started, polled and cleaned up, with what [`super::jobs`] shares.

mod preflight;

use crate::aws::{Aws, AwsErrorKind};
use crate::dirs::Scratch;
use crate::project::export::{Existing, ExportTarget};
use crate::sagemaker::JobError;
use crate::sagemaker::jobs::{
    Followed, Glance, JobRecords, PolledJob, Start, StartFolders, billed_s, delete_leftovers,
};
use crate::sagemaker::package::{PackageError, package_source};
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::training::{TrainingPlan, TrainingProgress, TrainingSpec};
use crate::sagemaker::spec::transform::{JobRecord, Leftover};
use crate::tasks::{TaskControl, now_ms};

pub use preflight::preflight;

const SOURCE_ARCHIVE: &str = "sourcedir.tar.gz";

pub type TrainingRecords = JobRecords<TrainingSpec>;
pub type TrainingRecord = JobRecord<TrainingSpec>;

/// Starts a job. The uploaded source folder is recorded before it is uploaded. A start that ended early can be repeated
/// with the same plan.
///
/// # Errors
/// The source folder cannot be packed or uploaded, or SageMaker rejects the job. No job runs then.
pub fn start(
    aws: &Aws,
    plan: &TrainingPlan,
    folders: StartFolders<'_, TrainingSpec>,
    now_ms: i64,
    control: &TaskControl,
) -> Result<TrainingRecord, JobError> {
    let mut start = Start::begin(aws, (&plan.sagemaker, &plan.s3), plan.spec.clone(), folders, now_ms, control)?;
    start.record.usd_per_hour = plan.usd_per_hour;
    if let Some(source) = &plan.source {
        control.set_step("packing the source folder");
        let scratch = Scratch::new().map_err(|error| JobError::local("Could not pack", &source.folder, error))?;
        let target = ExportTarget { path: scratch.path().join(SOURCE_ARCHIVE), existing: Existing::Keep };
        let packed = package_source(&source.folder, &target, control).map_err(|error| match error {
            PackageError::Cancelled(_) => JobError::Cancelled,
            error => JobError::Plan(format!("Could not pack the source folder: {error}")),
        })?;
        let archive = &source.archive;
        control.set_step(format!("uploading the source folder to {archive}"));
        start.send_file(&packed.path, archive, &Leftover::Archive(archive.clone()))?;
    }
    start.create(|spec, there| there.hyperparameters == spec.hyperparameters)
}

impl Followed for TrainingProgress {
    fn glance(&self) -> Glance<'_> {
        Glance {
            status: self.training.status,
            phase: self.training.phase(),
            cost_usd: self.cost_usd,
            detail: self.log_tail.last().map(|line| line.message.as_str()),
            has_trouble: false,
        }
    }
}

/// The current state of a training job. What cannot be determined beyond its status is in the notes.
///
/// # Errors
/// SageMaker does not return the job, or the task was canceled.
pub fn poll(job: &mut PolledJob, control: &TaskControl) -> Result<TrainingProgress, JobError> {
    let mut training = job.sagemaker.describe_job::<TrainingSpec>(&job.name, control)?;
    let mut notes = Vec::new();
    // SageMaker names the model of a failed or stopped job even if there is none.
    if let Some(archive) = training.archive().filter(|_| training.status.is_over()) {
        match job.s3.object(&archive.bucket, &archive.prefix, Some(control)).map_err(JobError::from) {
            Err(error) if error.aws_kind() == Some(AwsErrorKind::NotFound) => training.result.model.archive = None,
            Err(JobError::Cancelled) => return Err(JobError::Cancelled),
            Err(error) => notes.push(error.to_string()),
            Ok(_) => {}
        }
    }
    let log_tail = job.log.read(&job.sagemaker, &mut notes, control)?;
    let billed_s = training.result.billable_s.or_else(|| billed_s(training.started_ms, training.ended_ms, now_ms()));
    let cost_usd = job.cost_usd(training.spec.resources.instances(), billed_s, control)?;
    Ok(TrainingProgress { training, billed_s, cost_usd, log_tail, notes })
}

/// Deletes the uploaded source folder of a training job. Its model stays.
///
/// # Errors
/// The job still runs, it cannot be described, or the task was canceled.
pub fn clean_up(
    aws: &Aws,
    records: &TrainingRecords,
    record: TrainingRecord,
    control: &TaskControl,
) -> Result<Deleted, JobError> {
    delete_leftovers(aws, records, record, |_| None, control)
}
