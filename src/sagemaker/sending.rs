//! Uploads local files that must be complete before anything else can start.

use std::path::Path;

use super::JobError;
use crate::aws::upload::plan::{PlannedState, UploadPlan, UploadReport, UploadStop};
use crate::aws::upload::{DEFAULT_CONCURRENCY, Existing, LocalFiles, UploadOptions};
use crate::aws::{Aws, AwsErrorKind, upload};
use crate::domain::{S3Access, S3Address, S3Place, Sample, SampleUri};
use crate::tasks::TaskControl;

/// Sends the files of a job or an endpoint.
pub(super) struct Sender<'s> {
    pub aws: &'s Aws,
    pub s3: &'s S3Access,
    /// Records of unfinished uploads.
    pub unfinished: &'s Path,
    pub control: &'s TaskControl,
}

impl Sender<'_> {
    /// Sends files to `folder`, keeping their names. Objects with the same content are left alone.
    pub(super) fn send(&self, folder: &S3Address, files: LocalFiles) -> Result<(), JobError> {
        let plan = self.plan(folder, files)?;
        self.carry_out(&plan, Existing::Keep)
    }

    /// Sends one file. `write_down` is called before a new object is created.
    pub(super) fn send_file(
        &self,
        path: &Path,
        address: &S3Address,
        existing: Existing,
        write_down: impl FnOnce() -> Result<(), JobError>,
    ) -> Result<(), JobError> {
        let file = sample_of(path, address)?;
        let folder = address.parent().unwrap_or_else(|| S3Address::new(&address.bucket, ""));
        let files = LocalFiles { files: vec![file], ..LocalFiles::default() };
        let plan = self.plan(&folder, files)?;
        let is_new = |state: &PlannedState| *state == PlannedState::New;
        if plan.files.iter().any(|planned| is_new(&planned.state)) {
            write_down()?;
        }
        self.carry_out(&plan, existing)
    }

    /// Whether there is definitely no object at an address.
    pub(super) fn is_absent(&self, address: &S3Address) -> bool {
        let there = self.aws.s3(self.s3).object(&address.bucket, &address.prefix, Some(self.control));
        there.is_err_and(|error| error.kind == AwsErrorKind::NotFound)
    }

    fn plan(&self, folder: &S3Address, files: LocalFiles) -> Result<UploadPlan, JobError> {
        let place = S3Place { access: self.s3.clone(), ..S3Place::new(folder.clone()) };
        Ok(upload::plan(self.aws, &place, files, self.control)?)
    }

    fn carry_out(&self, plan: &UploadPlan, existing: Existing) -> Result<(), JobError> {
        let step = self.control.progress().step;
        let options = UploadOptions { concurrency: DEFAULT_CONCURRENCY, existing, unfinished: self.unfinished };
        let report = upload::upload(self.aws, plan, options, self.control);
        self.control.set_step(step);
        self.control.set_detail("");
        self.control.set_total(None);
        self.control.set_done_before(0);
        must_be_complete(&report, &plan.target.address)
    }
}

fn sample_of(path: &Path, address: &S3Address) -> Result<Sample, JobError> {
    let metadata = path.metadata().map_err(|error| JobError::local("Could not read the file", path, error))?;
    Ok(Sample::new(SampleUri::new(path.to_string_lossy()), address.last_part(), metadata.len()))
}

fn must_be_complete(report: &UploadReport, target: &S3Address) -> Result<(), JobError> {
    let first = report.conflicts.iter().chain(&report.failures).next();
    match (&report.stopped, first) {
        (Some(UploadStop::Cancelled), _) => Err(JobError::Cancelled),
        (Some(UploadStop::Failed(why)), _) => Err(JobError::Plan(why.clone())),
        (None, None) => Ok(()),
        (None, Some(problem)) => {
            let (files, first) = match report.conflicts.len() + report.failures.len() {
                1 => ("A file is".to_owned(), ""),
                count => (format!("{count} files are"), "For example: "),
            };
            Err(JobError::Plan(format!(
                "{files} missing in {target} or different from the local file. Nothing was started. \
                 {first}{problem}"
            )))
        }
    }
}
