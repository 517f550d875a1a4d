//! Training jobs: checked before they cost money, started, watched and cleaned up, with what [`super::jobs`] shares.

mod preflight;
mod start;

use crate::aws::{Aws, AwsErrorKind, S3, SageMaker};
use crate::domain::S3Access;
use crate::sagemaker::jobs::{Followed, JobError, JobRecords, delete_leftovers};
use crate::sagemaker::log::{LogKind, LogTail};
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::training::{TrainingProgress, TrainingSpec};
use crate::sagemaker::spec::transform::{JobRecord, Leftover, PriceTable, SageMakerAccess, TransformStatus, cost_usd};
use crate::tasks::{TaskControl, now_ms};

pub use preflight::preflight;
pub use start::start;

pub type TrainingRecords = JobRecords<TrainingSpec>;
pub type TrainingRecord = JobRecord<TrainingSpec>;

impl Followed for TrainingProgress {
    fn status(&self) -> TransformStatus {
        self.training.status
    }

    fn phase(&self) -> &str {
        self.training.phase()
    }
}

/// Reads the state of a training job, from AWS alone.
pub struct TrainingWatch {
    sagemaker: SageMaker,
    s3: S3,
    job_name: String,
    usd_per_hour: Option<f64>,
    prices: PriceTable,
    log: LogTail,
}

impl TrainingWatch {
    /// Sends no request yet. The price is that of the record, or else of the table.
    pub fn new(
        aws: &Aws,
        (sagemaker, s3): (&SageMakerAccess, &S3Access),
        job_name: &str,
        usd_per_hour: Option<f64>,
        prices: PriceTable,
    ) -> Self {
        let log = LogTail::new(job_name, LogKind::Training);
        let job_name = job_name.to_owned();
        Self { sagemaker: aws.sagemaker(sagemaker), s3: aws.s3(s3), job_name, usd_per_hour, prices, log }
    }

    /// The current state of the job. What cannot be determined beyond its status is in the notes.
    ///
    /// # Errors
    /// SageMaker does not return the job, or the task was canceled.
    pub fn poll(&mut self, control: &TaskControl) -> Result<TrainingProgress, JobError> {
        let mut training = self.sagemaker.describe_training_job(&self.job_name, Some(control))?;
        let mut notes = Vec::new();
        // SageMaker names the model of a failed or stopped job even if there is none.
        if let Some(archive) = training.archive().filter(|_| training.status.is_over()) {
            match self.s3.object(&archive.bucket, &archive.prefix, Some(control)).map_err(JobError::from) {
                Err(error) if error.aws_kind() == Some(AwsErrorKind::NotFound) => training.model.archive = None,
                Err(JobError::Cancelled) => return Err(JobError::Cancelled),
                Err(error) => notes.push(error.to_string()),
                Ok(_) => {}
            }
        }
        let log_tail = self.log.read(&self.sagemaker, &mut notes, control)?;
        let region = self.sagemaker.region(Some(control))?;
        let (instance_type, instances) = training.spec.instances();
        let of_table = self.prices.find(instance_type, Some(&region)).map(|price| price.usd_per_hour);
        let ended_s = training.ended_s.unwrap_or(now_ms() as f64 / 1e3);
        let billed_s = training.billable_s.or_else(|| Some((ended_s - training.started_s?).max(0.0)));
        let price = self.usd_per_hour.or(of_table);
        let cost_usd = price.zip(billed_s).map(|(price, billed_s)| cost_usd(price, instances, billed_s));
        Ok(TrainingProgress { training, billed_s, cost_usd, log_tail, notes })
    }
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
) -> Result<Deleted<Leftover>, JobError> {
    delete_leftovers(aws, records, record, |_| None, control)
}
