//! A folder of outputs, local or in S3, and the folders of a job and its retries. Listed and read, never written.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::json::{MAX_RESPONSE_BYTES, too_long};
use crate::aws::{Aws, AwsError, AwsErrorKind};
use crate::domain::{InferenceLocation, Location, Problem, S3Access, S3Address, S3Place};
use crate::image::source::{FileEntry, Files, FilesError, Links, folder_of};
use crate::sagemaker::JobError;
use crate::sagemaker::jobs::{Account, FoundRetries, FoundRetry, JobRecords, NamedFrom, find_record};
use crate::sagemaker::spec::transform::{JobRecord, SageMakerAccess, TransformJob, TransformSpec};
use crate::tasks::{Cancelled, TaskControl};

/// Links can lead anywhere, and SageMaker writes none.
const LINKS: Links = Links::Skip;

/// A folder of outputs. Clones share its state.
#[derive(Clone)]
pub struct OutputFolder {
    pub files: Files,
    /// Why the folder became unreadable.
    outage: Arc<OnceLock<String>>,
}

impl OutputFolder {
    pub fn local(path: &Path) -> Self {
        Self { files: Files::local(path), outage: Arc::default() }
    }

    /// Everything below a location. Sends no request yet.
    pub fn new(aws: &Aws, location: &Location) -> Self {
        let files = Files::new(aws, location);
        let folder = files.address().and_then(|address| files.at_address(address.as_folder()));
        Self { files: folder.unwrap_or(files), outage: Arc::default() }
    }

    /// The prefix of its keys; empty for a local folder.
    pub fn address(&self) -> S3Address {
        self.files.address().cloned().unwrap_or_default()
    }

    /// Another folder with the same access; `None` if local.
    pub fn at_address(&self, address: &S3Address) -> Option<Self> {
        let files = self.files.at_address(address.as_folder())?;
        Some(Self { files, outage: Arc::clone(&self.outage) })
    }

    /// The file with this name below the folder, with `/` between its parts.
    ///
    /// # Errors
    /// It could not be checked whether the file exists.
    pub fn find(&self, name: &str, control: &TaskControl) -> Result<Option<FileEntry>, String> {
        self.files.find(name, LINKS, control).map_err(|error| error.to_string())
    }

    /// All files whose names end in `.out` and that are wanted, in byte order of their keys. Others are forgotten while
    /// they are listed.
    ///
    /// # Errors
    /// The folder cannot be listed completely: a partial list would look like missing outputs.
    pub fn list(
        &self,
        control: &TaskControl,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<FileEntry>, OutputsError> {
        let is_output = |name: &str| name.ends_with(super::OUT) && is_wanted(name);
        Ok(self.files.list_some(LINKS, control, |count| control.add_done(count), is_output)?)
    }

    /// The whole file with the response for one image.
    ///
    /// # Errors
    /// It cannot be read, differs from the listed one, or is implausibly long.
    pub fn read(&self, file: &FileEntry, control: &TaskControl) -> Result<Vec<u8>, String> {
        if file.size_bytes > MAX_RESPONSE_BYTES {
            return Err(too_long(file.size_bytes));
        }
        self.read_range(file, 0..file.size_bytes, control)
    }

    /// A range of a file; shorter at its end.
    pub fn read_range(&self, file: &FileEntry, range: Range<u64>, control: &TaskControl) -> Result<Vec<u8>, String> {
        self.files.read_range(file, range, control).map_err(|error| {
            let is_of_all = concerns_all(&error).unwrap_or_else(|| {
                // It is unclear, and a listing worked before.
                self.files.check_folder(control).is_err_and(|error| concerns_all(&error).unwrap_or(true))
            });
            let reason = error.to_string();
            if is_of_all {
                self.outage.get_or_init(|| reason.clone());
            }
            reason
        })
    }

    /// Why the folder became unreadable.
    pub fn outage(&self) -> Option<&str> {
        self.outage.get().map(String::as_str)
    }
}

/// Whether an error affects all outputs; `None` if unclear.
fn concerns_all(error: &FilesError) -> Option<bool> {
    use AwsErrorKind as Kind;
    match error {
        FilesError::Cancelled(_) => Some(false),
        FilesError::Local { .. } | FilesError::NoSuchPlace { .. } => None,
        FilesError::Aws(error) => match error.kind {
            Kind::Server | Kind::Throttled | Kind::Timeout | Kind::Cut => None,
            Kind::Local | Kind::NotS3 => Some(false),
            kind => Some(kind.concerns_everything()),
        },
    }
}

/// Why outputs cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OutputsError {
    #[error("canceled")]
    Cancelled(#[from] Cancelled),
    #[error("could not list the output folder: {0}")]
    Folder(FilesError),
    #[error("{0}")]
    Aws(AwsError),
    #[error(
        "No outputs in {0}: no file name ends in .out. A running job writes outputs one by one; a completed job \
         without outputs found no input"
    )]
    NoOutput(String),
    /// A job has ended without an output for any of the images.
    #[error("None of the {} images has an output. {}", .0.len(), first_of(.0))]
    AllFailed(Vec<Problem>),
    #[error(
        "none of the {outputs} outputs matches one of the {images} images: for example output {example} and image \
        {image}. {}",
        what_to_open(.example)
    )]
    NoImage { outputs: usize, images: usize, example: String, image: String },
    #[error("could not read any of the first outputs; {example}: {reason}")]
    Broken { example: String, reason: String },
    #[error("{reason}")]
    Unknown { example: String, reason: String },
}

fn first_of(problems: &[Problem]) -> String {
    problems.first().map_or_else(String::new, Problem::to_string)
}

/// The advice if no output matches an image.
fn what_to_open(example: &str) -> &'static str {
    let input = example.strip_suffix(super::OUT).unwrap_or(example);
    let input = input.to_ascii_lowercase();
    if [".rec", ".recordio"].iter().any(|end| input.ends_with(end)) {
        "Spotcheck does not read RecordIO files; write the images as files or TFRecord files, and send those"
    } else {
        "Open the input folder of the job"
    }
}

impl From<FilesError> for OutputsError {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            FilesError::Aws(error) if error.kind == AwsErrorKind::Cancelled => Self::Cancelled(Cancelled),
            FilesError::Aws(error) => Self::Aws(error),
            error => Self::Folder(error),
        }
    }
}

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
        let job = asked.describe_job::<TransformSpec>(job_name, control)?;
        let region = asked.region(control)?;
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
