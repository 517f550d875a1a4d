//! The outputs of a job, and those of the jobs that took up again what had failed in it.

use std::path::Path;

use super::folder::OutputFolder;
use crate::aws::Aws;
use crate::domain::{
    JobRecord, MadeAt, S3Access, S3Address, S3Place, SageMakerAccess, TransformJob, TransformSpec,
};
use crate::remote::transform::{JobError, JobRecords, NamedFrom, find_record};
use crate::source::folder_of;
use crate::tasks::TaskControl;

/// A folder of outputs, and what is known of who wrote them.
pub struct OutputsPart {
    pub folder: OutputFolder,
    /// `None` where nobody knows: from the folder that the images are named from.
    pub named_from: Option<NamedFrom>,
    /// The job that took up again what had failed in the first one.
    pub retry: Option<String>,
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
}

impl JobOutputs {
    /// Finds them. Retries are known where they were started on this machine.
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
                retry: Some(retry.spec.job_name.clone()),
                ..part(&retry.spec, Some(&retry))?
            });
        }
        let made = MadeAt::TransformJob {
            name: job_name.to_owned(),
            region,
        };
        Ok(Self { job, made, parts })
    }
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
