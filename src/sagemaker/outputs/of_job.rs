//! The outputs of a job and of its retries.

use std::collections::BTreeSet;
use std::path::Path;

use super::folder::OutputFolder;
use crate::aws::{Aws, AwsErrorKind};
use crate::domain::{InferenceLocation, Location, S3Access, S3Address, S3Place};
use crate::image::source::folder_of;
use crate::sagemaker::jobs::{Account, FoundRetries, FoundRetry, JobError, JobRecords, NamedFrom, find_record};
use crate::sagemaker::spec::transform::{JobRecord, SageMakerAccess, TransformJob, TransformSpec};
use crate::tasks::TaskControl;

/// A folder of outputs, and what is known about their origin.
pub struct OutputsPart {
    pub folder: OutputFolder,
    /// `None` if unknown; names then start at the folder of the images.
    pub named_from: Option<NamedFrom>,
    /// `None` for the outputs of the job itself.
    pub retry: Option<RetryPart>,
    /// The job's inputs; `None` if unknown.
    pub sent: Option<Sent>,
}

/// The inputs of a job without an output.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// The job has ended: what has no output now gets none.
    pub is_final: bool,
    /// Keys of the outputs that the job has not written, and why an image has none if no retry has written one either.
    pub without_output: Vec<(String, String)>,
    /// Keys of outputs that match none of the job's inputs.
    pub unexpected_outputs: BTreeSet<String>,
}

impl Sent {
    fn from_job(job: &TransformJob, account: Account) -> Self {
        let Account { outcome, retried, unexpected_outputs } = account;
        let unexplained = outcome.unexplained.words(job);
        let why = |reason: Option<String>| match reason {
            Some(reason) => format!("no output: {reason}"),
            None => unexplained.clone(),
        };
        let failed = outcome.failed.into_iter();
        let failed = failed.filter_map(|failed| Some((failed.output_key?, why(failed.reason))));
        // Its outputs are read as well.
        let retried = retried.into_iter();
        let retried = retried.map(|key| (key, "could not read the output of a retry".to_owned()));
        Self { is_final: job.status.is_over(), without_output: failed.chain(retried).collect(), unexpected_outputs }
    }
}

/// Whether other S3 requests would fail in the same way.
fn is_final(error: &JobError) -> bool {
    matches!(error, JobError::Cancelled) || error.aws_kind().is_some_and(AwsErrorKind::is_outage)
}

/// A retry of the first job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryPart {
    /// A retry from this computer: its outputs take precedence.
    Known(String),
    /// A SageMaker job that looks like a retry of this one: it is used only for images without an output.
    ByItsLooks(String),
}

impl OutputsPart {
    /// Outputs of which only the location is known.
    pub fn in_folder(folder: OutputFolder) -> Self {
        Self { folder, named_from: None, retry: None, sent: None }
    }

    /// A retry from another computer. Its manifest was also written by Spotcheck.
    fn recognized_by_name(mut self, job_name: &str) -> Self {
        if let Some(NamedFrom::Manifest { is_ours, .. }) = &mut self.named_from {
            *is_ours = true;
        }
        Self { retry: Some(RetryPart::ByItsLooks(job_name.to_owned())), ..self }
    }

    /// Where the job's input lists may be: below its prefix, or with the images, whose folder or prefix is `root`.
    pub fn places_of_lists(&self, root: &str) -> Vec<OutputFolder> {
        let mut addresses = Vec::new();
        if let Some(named_from) = &self.named_from {
            let place = named_from.place();
            addresses.push(place.as_folder());
            addresses.extend(place.parent().filter(|_| !place.is_folder()));
        }
        let of_images = S3Address::parse(root).ok();
        addresses.extend(of_images.clone());
        addresses.dedup();
        let in_s3 = addresses.iter().filter_map(|address| self.folder.at_address(address));
        let here = of_images.is_none().then(|| folder_of(Path::new(root)));
        in_s3.chain(here.map(|path| OutputFolder::local(&path))).collect()
    }
}

/// The outputs of a folder, or of a job and its retries.
pub struct OutputsOrigin {
    /// `None` for a folder.
    pub job: Option<TransformJob>,
    pub made: InferenceLocation,
    /// The job's own outputs, then those of its retries, oldest first: if two have a response for an image, the later
    /// one wins.
    pub parts: Vec<OutputsPart>,
    /// Notes about failed searches.
    pub notes: Vec<String>,
}

impl OutputsOrigin {
    pub fn from_folder(folder: OutputFolder) -> Self {
        let made = InferenceLocation::Outputs { folder: folder.files.name() };
        Self { job: None, made, parts: vec![OutputsPart::in_folder(folder)], notes: Vec::new() }
    }

    /// Finds the outputs. Retries from this computer are known; others are recognized by their parameters.
    ///
    /// # Errors
    /// SageMaker does not know the job, or its input images are unknown.
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
            let place = S3Place { access: s3.clone(), ..S3Place::new(spec.output.folder.clone()) };
            let folder = OutputFolder::new(aws, &Location::S3(Box::new(place)));
            let named_from = NamedFrom::from_job(&aws.s3(s3), spec, record, control)?;
            Ok::<_, JobError>(OutputsPart { named_from: Some(named_from), ..OutputsPart::in_folder(folder) })
        };
        let found = FoundRetries::find(&asked, &job, records, control)?;
        let mut notes = found.notes.clone();
        let of_job = (&job, record.as_ref());
        let sent = match Account::read(aws, (sagemaker, s3), of_job, &found, control) {
            Ok(account) => Some(Sent::from_job(&job, account)),
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                let what = "The job's input images are unknown";
                notes.push(format!("{what}: {error}"));
                None
            }
        };
        let mut parts = vec![OutputsPart { sent, ..part(&job.spec, record.as_ref())? }];
        for FoundRetry { spec, record, .. } in &found.retries {
            let name = &spec.job_name;
            match (part(spec, record.as_ref()), record) {
                (Ok(part), Some(_)) => parts.push(OutputsPart { retry: Some(RetryPart::Known(name.clone())), ..part }),
                (Ok(part), None) => parts.push(part.recognized_by_name(name)),
                (Err(error), Some(_)) => return Err(error),
                (Err(error), None) if is_final(&error) => return Err(error),
                (Err(error), None) => {
                    notes.push(format!("Job {name} looks like a retry; its outputs were skipped: {error}"));
                }
            }
        }
        let made = InferenceLocation::TransformJob { name: job_name.to_owned(), region };
        Ok(Self { job: Some(job), made, parts, notes })
    }
}
