//! The retries of a job, wherever they were started.

use super::{JobRecords, looks_like_retry, retry_prefix};
use crate::aws::{AwsError, AwsErrorKind, SageMaker};
use crate::sagemaker::JobError;
use crate::sagemaker::spec::transform::{JobKind, JobQuery, JobRecord, TransformJob, TransformSpec, TransformStatus};
use crate::tasks::TaskControl;

/// The number of jobs with a retry's name that are examined, with one request each.
const LOOKED_AT: usize = 50;

/// A retry of another job.
#[derive(Debug, Clone)]
pub struct FoundRetry {
    pub spec: TransformSpec,
    /// `None` if it was not started on this computer, but has all the properties of a retry.
    pub record: Option<JobRecord>,
    /// `None` if it could not be queried.
    pub status: Option<TransformStatus>,
}

#[derive(Debug, Clone, Default)]
pub struct FoundRetries {
    /// Retries from this computer, oldest first, then the others.
    pub retries: Vec<FoundRetry>,
    /// Notes about failed searches.
    pub notes: Vec<String>,
}

impl FoundRetries {
    /// Finds them: those from this computer by their records, others by their properties.
    ///
    /// # Errors
    /// The region is unknown, or the task was canceled.
    pub fn find(
        sagemaker: &SageMaker,
        job: &TransformJob,
        records: &JobRecords,
        control: &TaskControl,
    ) -> Result<Self, JobError> {
        control.set_step("looking for retries");
        let region = sagemaker.region(control)?;
        let all = records.all().0;
        let mut found = Self::default();
        for record in retries_of(&job.spec.job_name, &region, all.clone()) {
            let described = sagemaker.describe_job::<TransformSpec>(&record.spec.job_name, control);
            let status = match described {
                Ok(retry) => Some(retry.status),
                Err(error) if error.kind == AwsErrorKind::Cancelled => return Err(error.into()),
                Err(_) => None,
            };
            found.retries.push(FoundRetry { spec: record.spec.clone(), record: Some(record), status });
        }
        match alike(sagemaker, job, &all, control) {
            Ok(alike) => {
                if alike.unseen > 0 {
                    found.notes.push(format!(
                        "{} more jobs are named like retries of this one and were not checked",
                        alike.unseen
                    ));
                }
                found.retries.extend(alike.found);
            }
            Err(error) if error.kind == AwsErrorKind::Cancelled => return Err(error.into()),
            Err(error) => {
                found.notes.push(format!("Could not search for retries of the job from other computers: {error}"));
            }
        }
        Ok(found)
    }
}

/// SageMaker jobs that look like retries of another one and have no local record.
struct RetryCandidates {
    /// Oldest first.
    found: Vec<FoundRetry>,
    /// The number of others with such a name that were not examined.
    unseen: usize,
}

fn alike(
    sagemaker: &SageMaker,
    job: &TransformJob,
    known: &[JobRecord],
    control: &TaskControl,
) -> Result<RetryCandidates, AwsError> {
    let mut query = JobQuery { name_contains: Some(retry_prefix(&job.spec.job_name)), ..JobQuery::default() };
    let mut names = Vec::new();
    loop {
        let page = sagemaker.list_jobs(JobKind::Transform, &query, control)?;
        // The newest come first: after the job itself, there are no retries of it.
        let is_last = page.items.iter().any(|other| other.created_ms < job.created_ms);
        let later = page.items.into_iter();
        let later = later.filter(|other| other.created_ms >= job.created_ms);
        names.extend(later.map(|other| other.name));
        query.page_token = page.next;
        if is_last || query.page_token.is_none() {
            break;
        }
    }
    names.retain(|name| *name != job.spec.job_name && known.iter().all(|known| known.spec.job_name != *name));
    let unseen = names.len().saturating_sub(LOOKED_AT);
    let mut found = Vec::new();
    for name in names.iter().rev().take(LOOKED_AT) {
        match sagemaker.describe_job::<TransformSpec>(name, control) {
            Ok(other) if looks_like_retry(&job.spec, &other.spec) => {
                found.push(FoundRetry { spec: other.spec, record: None, status: Some(other.status) });
            }
            // Jobs that Spotcheck cannot read were not started by it.
            Err(error) if error.kind != AwsErrorKind::Unsupported => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(RetryCandidates { found, unseen })
}

/// The retries of a job or of one of its retries; oldest first.
fn retries_of(job_name: &str, region: &str, records: Vec<JobRecord>) -> Vec<JobRecord> {
    let mut rest: Vec<JobRecord> = records
        .into_iter()
        .filter(|record| record.is_started && record.sagemaker.region.as_deref() == Some(region))
        .collect();
    rest.sort_by_key(|record| record.begun_ms);
    let mut names = vec![job_name.to_owned()];
    let mut found = Vec::new();
    // Retries are newer than their job, so one pass finds all.
    for record in rest {
        let is_ours = record.retry_of.as_ref().is_some_and(|first| names.contains(first));
        if is_ours {
            names.push(record.spec.job_name.clone());
            found.push(record);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::S3Access;
    use crate::sagemaker::spec::transform::SageMakerAccess;

    fn record(name: &str, retry_of: Option<&str>, begun_ms: i64) -> JobRecord {
        JobRecord {
            sagemaker: SageMakerAccess { region: Some("eu-west-1".to_owned()), ..SageMakerAccess::default() },
            s3: S3Access::default(),
            spec: TransformSpec { job_name: name.to_owned(), ..TransformSpec::example() },
            begun_ms,
            is_started: true,
            model: None,
            input_objects: None,
            manifest_folder: None,
            left: Vec::new(),
            usd_per_hour: None,
            images_per_s: None,
            retry_of: retry_of.map(str::to_owned),
        }
    }

    #[test]
    fn nested_retries_are_found() {
        let never_taken = JobRecord { is_started: false, ..record("refused", Some("first"), 6) };
        let other = JobRecord {
            sagemaker: SageMakerAccess { region: Some("us-east-1".to_owned()), ..SageMakerAccess::default() },
            ..record("elsewhere", Some("first"), 7)
        };
        let records = vec![
            record("again", Some("retry"), 5),
            record("retry", Some("first"), 4),
            record("of-another", Some("other"), 3),
            record("other", None, 2),
            record("first", None, 1),
            never_taken,
            other,
        ];
        let found = retries_of("first", "eu-west-1", records);
        let names = found.iter().map(|record| record.spec.job_name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["retry", "again"]);
    }
}
