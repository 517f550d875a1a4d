//! Deletes what a job left behind: its model, archive and manifest. Never an input or an output.

use super::{JobError, JobRecords};
use crate::aws::{Aws, AwsErrorKind, SageMaker};
use crate::domain::S3Address;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::transform::{JobRecord, Leftover, TransformStatus};
use crate::tasks::TaskControl;

/// Deletes what was created only for the job, in order, according to the record, and records what is left.
///
/// # Errors
/// The job still runs, it cannot be described, or the task was canceled.
pub fn clean_up(
    aws: &Aws,
    records: &JobRecords,
    mut record: JobRecord,
    control: &TaskControl,
) -> Result<Deleted<Leftover>, JobError> {
    let sagemaker = aws.sagemaker(&record.sagemaker);
    let job_name = record.spec.job_name.clone();
    if let Some(status) = status_of(&sagemaker, &job_name, control)?
        && !status.is_over()
    {
        return Err(JobError::Plan(format!(
            "Job {job_name} is {} and still uses these resources; wait until it ends, or stop it",
            status.into_str()
        )));
    }
    let s3 = aws.s3(&record.s3);
    let others = running_jobs(&sagemaker, records, &record, control)?;
    let mut done = Deleted::default();
    for left in record.left.clone() {
        let user = others.iter().find(|other| other.uses(&left));
        if let Some(other) = user {
            let why = format!("in use by job {}", other.record.spec.job_name);
            done.kept.push((left, why));
            continue;
        }
        control.set_step(format!("deleting the {left}"));
        let deleted = match &left {
            Leftover::Model(name) => sagemaker.delete_model(name, Some(control)),
            Leftover::Archive(S3Address { bucket, prefix }) | Leftover::Manifest(S3Address { bucket, prefix }) => {
                s3.delete(bucket, prefix, Some(control))
            }
        };
        match deleted {
            Err(error) if error.kind == AwsErrorKind::Cancelled => return Err(JobError::Cancelled),
            Err(error) if error.kind != AwsErrorKind::NotFound => {
                done.kept.push((left, error.to_string()));
            }
            _ => {
                record.left.retain(|other| *other != left);
                records.write(&record)?;
                done.deleted.push(left);
            }
        }
    }
    Ok(done)
}

/// `None` for a job that SageMaker never accepted.
fn status_of(
    sagemaker: &SageMaker,
    job_name: &str,
    control: &TaskControl,
) -> Result<Option<TransformStatus>, JobError> {
    match sagemaker.describe_transform_job(job_name, Some(control)) {
        Ok(job) => Ok(Some(job.status)),
        Err(error) if error.kind == AwsErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Another running job from this computer.
struct RunningJob {
    record: JobRecord,
    archive: Option<S3Address>,
}

impl RunningJob {
    fn uses(&self, left: &Leftover) -> bool {
        match left {
            Leftover::Model(name) => *name == self.record.spec.model_name,
            Leftover::Archive(address) => self.archive.as_ref() == Some(address),
            Leftover::Manifest(address) => self.record.spec.input.objects.address() == address,
        }
    }
}

/// The running jobs that share a resource with this one: a retry uses the model of its first job.
fn running_jobs(
    sagemaker: &SageMaker,
    records: &JobRecords,
    record: &JobRecord,
    control: &TaskControl,
) -> Result<Vec<RunningJob>, JobError> {
    let (all, _) = records.all();
    let mut at_work = Vec::new();
    for other in all {
        let is_other = other.spec.job_name != record.spec.job_name
            && other.sagemaker.region == record.sagemaker.region
            && other.is_started;
        let shares = other.spec.model_name == record.spec.model_name
            || other.model.as_ref().map(|model| &model.archive) == record.model.as_ref().map(|model| &model.archive);
        if !is_other || !shares {
            continue;
        }
        let status = status_of(sagemaker, &other.spec.job_name, control)?;
        if status.is_some_and(|status| !status.is_over()) {
            let of_other = other.model.as_ref();
            let of_both = of_other.or(record.model.as_ref());
            at_work.push(RunningJob { archive: of_both.map(|model| model.archive.clone()), record: other });
        }
    }
    Ok(at_work)
}
