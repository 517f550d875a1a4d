//! The outputs of a job, and those of the jobs that took up again what had failed in it.

use std::path::Path;

use super::folder::OutputFolder;
use crate::aws::{Aws, AwsError, AwsErrorKind, SageMaker};
use crate::domain::{
    JobQuery, JobRecord, MadeAt, S3Access, S3Address, S3Place, SageMakerAccess, TransformJob,
    TransformSpec,
};
use crate::remote::transform::{
    JobError, JobRecords, NamedFrom, beginning_of_retries, find_record, looks_like_retry,
};
use crate::source::folder_of;
use crate::tasks::TaskControl;

/// Jobs that are called like retries and are looked at, a request each.
const LOOKED_AT: usize = 50;

/// A folder of outputs, and what is known of who wrote them.
pub struct OutputsPart {
    pub folder: OutputFolder,
    /// `None` where nobody knows: from the folder that the images are named from.
    pub named_from: Option<NamedFrom>,
    /// `None` for the outputs of the job itself.
    pub retry: Option<RetryPart>,
}

/// A job that took up again what had failed in the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryPart {
    /// It was started on this machine: where both have an answer about an image, the later one counts.
    Known(String),
    /// SageMaker has it, and it has all the looks of such a job: it answers what has no answer, and nothing else.
    ByItsLooks(String),
}

impl OutputsPart {
    /// Outputs of which nothing is known but where they lie.
    pub fn in_folder(folder: OutputFolder) -> Self {
        Self {
            folder,
            named_from: None,
            retry: None,
        }
    }

    /// Of a retry that was started elsewhere. Its manifest was written by Spotcheck all the same.
    fn by_its_looks(mut self, job_name: &str) -> Self {
        if let Some(NamedFrom::Manifest { is_ours, .. }) = &mut self.named_from {
            *is_ours = true;
        }
        Self {
            retry: Some(RetryPart::ByItsLooks(job_name.to_owned())),
            ..self
        }
    }

    /// Where the lists may lie that the job read: below its prefix, or with the images, whose folder or prefix is `root`.
    pub(super) fn places_of_lists(&self, root: &str) -> Vec<OutputFolder> {
        let mut addresses = Vec::new();
        if let Some(named_from) = &self.named_from {
            let place = named_from.place();
            addresses.push(place.as_folder());
            addresses.extend(place.parent().filter(|_| !place.is_folder()));
        }
        let of_images = S3Address::parse(root).ok();
        addresses.extend(of_images.clone());
        addresses.dedup();
        let in_s3 = addresses
            .iter()
            .filter_map(|address| self.folder.elsewhere(address));
        let here = of_images.is_none().then(|| folder_of(Path::new(root)));
        in_s3
            .chain(here.map(|path| OutputFolder::local(&path)))
            .collect()
    }
}

/// What a job wrote, and its retries.
pub struct JobOutputs {
    pub job: TransformJob,
    pub made: MadeAt,
    /// The job's own, then those of its retries, the oldest first: where two have an answer about an image, the later one counts.
    pub parts: Vec<OutputsPart>,
    /// What could not be looked for, for people.
    pub notes: Vec<String>,
}

impl JobOutputs {
    /// Finds them. Retries are known where they were started on this machine; others are found by their looks.
    ///
    /// # Errors
    /// SageMaker does not know the job, or nothing tells which images its outputs are about.
    pub fn find(
        aws: &Aws,
        (sagemaker, s3): (&SageMakerAccess, &S3Access),
        job_name: &str,
        records: &JobRecords,
        control: &TaskControl,
    ) -> Result<Self, JobError> {
        let asked = aws.sagemaker(sagemaker);
        let job = asked.describe_transform_job(job_name, Some(control))?;
        let region = asked.region(Some(control))?;
        let record = find_record(aws, records, sagemaker, job_name, control)?;
        let part = |spec: &TransformSpec, record: Option<&JobRecord>| {
            let place = S3Place {
                access: s3.clone(),
                ..S3Place::new(spec.output.folder.as_folder())
            };
            let named_from = NamedFrom::of_job(&aws.s3(s3), spec, record, control)?;
            Ok::<_, JobError>(OutputsPart {
                folder: OutputFolder::in_s3(aws, &place),
                named_from: Some(named_from),
                retry: None,
            })
        };
        let mut parts = vec![part(&job.spec, record.as_ref())?];
        for retry in retries_of(job_name, &region, records.all().0) {
            parts.push(OutputsPart {
                retry: Some(RetryPart::Known(retry.spec.job_name.clone())),
                ..part(&retry.spec, Some(&retry))?
            });
        }
        let mut notes = Vec::new();
        match alike(&asked, &job, &records.all().0, control) {
            Ok(Alike { found, unseen }) => {
                if unseen > 0 {
                    notes.push(format!(
                        "{unseen} more jobs are called as a retry of this one would be, and were not looked at"
                    ));
                }
                for spec in found {
                    match part(&spec, None) {
                        Ok(part) => parts.push(part.by_its_looks(&spec.job_name)),
                        Err(JobError::Cancelled) => return Err(JobError::Cancelled),
                        Err(error) => notes.push(format!(
                            "The job {} looks like a retry, and what it answered is left out: {error}",
                            spec.job_name
                        )),
                    }
                }
            }
            Err(error) if error.kind == AwsErrorKind::Cancelled => return Err(error.into()),
            Err(error) => notes.push(format!(
                "Retries of the job that were started on other machines could not be looked for: {error}"
            )),
        }
        let made = MadeAt::TransformJob {
            name: job_name.to_owned(),
            region,
        };
        Ok(Self {
            job,
            made,
            parts,
            notes,
        })
    }
}

/// Jobs of SageMaker's that look like retries of another one and that nothing here knows.
struct Alike {
    /// The oldest first.
    found: Vec<TransformSpec>,
    /// Others of such a name that were not looked at.
    unseen: usize,
}

fn alike(
    sagemaker: &SageMaker,
    job: &TransformJob,
    known: &[JobRecord],
    control: &TaskControl,
) -> Result<Alike, AwsError> {
    let mut query = JobQuery {
        name_contains: Some(beginning_of_retries(&job.spec.job_name)),
        ..JobQuery::default()
    };
    let mut names = Vec::new();
    loop {
        let page = sagemaker.list_transform_jobs(&query, Some(control))?;
        // The newest come first: behind the job itself there is no retry of it.
        let is_last = page
            .jobs
            .iter()
            .any(|other| other.created_ms < job.created_ms);
        let later = page.jobs.into_iter();
        let later = later.filter(|other| other.created_ms >= job.created_ms);
        names.extend(later.map(|other| other.name));
        query.page_token = page.next;
        if is_last || query.page_token.is_none() {
            break;
        }
    }
    names.retain(|name| {
        *name != job.spec.job_name && known.iter().all(|known| known.spec.job_name != *name)
    });
    let unseen = names.len().saturating_sub(LOOKED_AT);
    let mut found = Vec::new();
    for name in names.iter().rev().take(LOOKED_AT) {
        match sagemaker.describe_transform_job(name, Some(control)) {
            Ok(other) if looks_like_retry(&job.spec, &other.spec) => found.push(other.spec),
            // What Spotcheck does not understand it has not started.
            Err(error) if error.kind != AwsErrorKind::Unsupported => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(Alike { found, unseen })
}

/// The jobs that took up again what had failed in a job, or in one of them; the oldest first.
fn retries_of(job_name: &str, region: &str, records: Vec<JobRecord>) -> Vec<JobRecord> {
    let mut rest: Vec<JobRecord> = records
        .into_iter()
        .filter(|record| record.is_started && record.sagemaker.region.as_deref() == Some(region))
        .collect();
    rest.sort_by_key(|record| record.begun_ms);
    let mut names = vec![job_name.to_owned()];
    let mut found = Vec::new();
    // A retry is younger than what it takes up again, so one way through them finds all.
    for record in rest {
        let is_ours = record
            .retry_of
            .as_ref()
            .is_some_and(|first| names.contains(first));
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

    fn record(name: &str, retry_of: Option<&str>, begun_ms: i64) -> JobRecord {
        JobRecord {
            sagemaker: SageMakerAccess {
                region: Some("eu-west-1".to_owned()),
                ..SageMakerAccess::default()
            },
            s3: S3Access::default(),
            spec: TransformSpec {
                job_name: name.to_owned(),
                ..TransformSpec::example()
            },
            begun_ms,
            is_started: true,
            model: None,
            input_objects: None,
            manifest_folder: None,
            left: Vec::new(),
            usd_per_hour: None,
            retry_of: retry_of.map(str::to_owned),
        }
    }

    #[test]
    fn retries_of_retries_are_found_and_no_others() {
        let never_taken = JobRecord {
            is_started: false,
            ..record("refused", Some("first"), 6)
        };
        let elsewhere = JobRecord {
            sagemaker: SageMakerAccess {
                region: Some("us-east-1".to_owned()),
                ..SageMakerAccess::default()
            },
            ..record("elsewhere", Some("first"), 7)
        };
        let records = vec![
            record("again", Some("retry"), 5),
            record("retry", Some("first"), 4),
            record("of-another", Some("other"), 3),
            record("other", None, 2),
            record("first", None, 1),
            never_taken,
            elsewhere,
        ];
        let found = retries_of("first", "eu-west-1", records);
        let names = found.iter().map(|record| record.spec.job_name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["retry", "again"]);
    }
}
