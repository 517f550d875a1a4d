//! A job by its name, with its account and record.

use crate::aws::Aws;
use crate::cli::account::Account;
use crate::dirs::AppDirs;
use crate::domain::S3Access;
use crate::sagemaker::jobs::{JobRecords, find_record};
use crate::sagemaker::spec::transform::{JobRecord, SageMakerAccess};
use crate::tasks::TaskControl;

/// A job, and the access to it.
pub(crate) struct NamedJob {
    pub(crate) aws: Aws,
    pub(crate) sagemaker: SageMakerAccess,
    pub(crate) s3: S3Access,
    pub(crate) records: JobRecords,
    /// `None` if the job was started on another computer.
    pub(crate) record: Option<JobRecord>,
}

impl NamedJob {
    /// The account is from the flags, else from the job's record, else the AWS defaults.
    pub(crate) fn find(name: &str, args: &impl Account, dirs: &AppDirs, control: &TaskControl) -> anyhow::Result<Self> {
        let aws = Aws::new();
        let records = JobRecords::in_folder(dirs.jobs());
        if !args.is_given() {
            let (all, errors) = records.all();
            for error in errors {
                eprintln!("warning: {error}");
            }
            if let Some(record) = all.into_iter().find(|record| record.spec.job_name == name) {
                return Ok(Self {
                    aws,
                    sagemaker: record.sagemaker.clone(),
                    s3: record.s3.clone(),
                    records,
                    record: Some(record),
                });
            }
        }
        let s3 = args.over(S3Access::default());
        let sagemaker = args.sagemaker();
        let record = find_record(&aws, &records, &sagemaker, name, control)?;
        // Flags for the bucket's server or region override those of the record.
        let s3 = record.as_ref().map_or(s3, |record| args.over(record.s3.clone()));
        Ok(Self { aws, sagemaker, s3, records, record })
    }
}
