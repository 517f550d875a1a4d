//! `spotcheck transform`: models on SageMaker Batch Transform.

mod compare;
mod fetch;
pub(crate) mod job_args;
pub(crate) mod list;
mod named_truth;
pub(crate) mod package;
mod rehearse;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;

use clap::Subcommand;

use super::Outcome;
use crate::aws::Aws;
use crate::cli::values::Account;
use crate::dirs::AppDirs;
use crate::domain::S3Access;
use crate::sagemaker::jobs::{JobRecords, PolledJob, clean_up, find_record};
use crate::sagemaker::spec::transform::{JobKind, JobRecord, JobSpec, PriceTable, SageMakerAccess, TransformSpec};
use crate::tasks::TaskControl;

#[derive(Debug, Subcommand)]
pub(crate) enum TransformCommand {
    /// Pack a model as a `model.tar.gz` that SageMaker's containers can serve
    Package(package::PackageArgs),
    /// Run an archive's handler on this computer and compare its predictions with the local model's
    Rehearse(Box<rehearse::RehearseArgs>),
    /// Check a job before it costs money
    Preflight(Box<job_args::JobArgs>),
    /// Upload files, create the model and start a job
    Start(Box<start::StartArgs>),
    /// List jobs in the account and region
    List(list::ListArgs),
    /// Show a job's progress and the results for its images
    Status(status::TransformStatusArgs),
    /// Stop a job; its existing outputs are kept
    Stop(stop::StopArgs),
    /// Show a job's container log, or SageMaker's messages per object
    Logs(status::LogsArgs),
    /// Resend images without an output
    Retry(start::RetryArgs),
    /// Delete a job's leftovers: model, archive and manifest
    CleanUp(stop::CleanUpArgs),
    /// Read a job's outputs as predictions for its images
    Fetch(Box<fetch::FetchArgs>),
    /// Compare a local run with a remote one
    Compare(Box<compare::CompareArgs>),
}

pub(crate) fn run(command: &TransformCommand) -> anyhow::Result<Outcome> {
    match command {
        TransformCommand::Package(args) => package::run(args),
        TransformCommand::Rehearse(args) => rehearse::run(args),
        TransformCommand::Preflight(args) => start::run_preflight(args),
        TransformCommand::Start(args) => start::run(args),
        TransformCommand::List(args) => list::run(args, JobKind::Transform),
        TransformCommand::Status(args) => status::run(args),
        TransformCommand::Stop(args) => stop::run::<TransformSpec>(args),
        TransformCommand::Logs(args) => status::run_logs(args),
        TransformCommand::Retry(args) => start::run_retry(args),
        TransformCommand::CleanUp(args) => stop::run_clean_up(args, clean_up),
        TransformCommand::Fetch(args) => fetch::run(args),
        TransformCommand::Compare(args) => compare::run(args),
    }
}

/// The command about jobs of this kind: `spotcheck train`.
pub(crate) fn command_of(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Transform => "spotcheck transform",
        JobKind::Training => "spotcheck train",
    }
}

/// The command that watches a job until it ends.
pub(crate) fn watch_command(kind: JobKind, name: &str) -> String {
    let command = command_of(kind);
    match kind {
        JobKind::Transform => format!("{command} status {name} --watch"),
        JobKind::Training => format!("{command} watch {name}"),
    }
}

/// A job, and the access to it.
pub(crate) struct NamedJob<S = TransformSpec> {
    pub(crate) name: String,
    pub(crate) aws: Aws,
    pub(crate) sagemaker: SageMakerAccess,
    pub(crate) s3: S3Access,
    pub(crate) records: JobRecords<S>,
    /// `None` if the job was started on another computer.
    pub(crate) record: Option<JobRecord<S>>,
}

impl<S: JobSpec> NamedJob<S> {
    /// The account is from the flags, else from the job's record, else the AWS defaults.
    pub(crate) fn find(name: &str, args: &impl Account, control: &TaskControl) -> anyhow::Result<Self> {
        let aws = Aws::new();
        let records = JobRecords::<S>::of_dirs(&AppDirs::find()?);
        if !args.is_given() {
            let (all, errors) = records.all();
            for error in errors {
                eprintln!("warning: {error}");
            }
            if let Some(record) = all.into_iter().find(|record| record.spec.job_name() == name) {
                return Ok(Self::started(aws, records, record));
            }
        }
        let s3 = args.over(S3Access::default());
        let sagemaker = args.sagemaker();
        let record = find_record(&aws, &records, &sagemaker, name, control)?;
        // Flags override the bucket's server and region in the record.
        let s3 = record.as_ref().map_or(s3, |record| args.over(record.s3.clone()));
        Ok(Self { name: name.to_owned(), aws, sagemaker, s3, records, record })
    }

    /// A job that was started on this computer.
    pub(crate) fn started(aws: Aws, records: JobRecords<S>, record: JobRecord<S>) -> Self {
        Self {
            name: record.spec.job_name().to_owned(),
            aws,
            sagemaker: record.sagemaker.clone(),
            s3: record.s3.clone(),
            records,
            record: Some(record),
        }
    }

    pub(crate) fn polled(&self, usd_per_hour: Option<f64>, prices: PriceTable) -> PolledJob {
        let access = (&self.sagemaker, &self.s3);
        PolledJob::new(&self.aws, access, &self.name, self.record.as_ref(), (usd_per_hour, prices))
    }
}

/// Prints what was created for a job and still exists, and how to delete it.
pub(crate) fn print_leftovers<S: JobSpec>(record: &JobRecord<S>) {
    if record.left.is_empty() {
        return;
    }
    let left: Vec<String> = record.left.iter().map(ToString::to_string).collect();
    let (command, name) = (command_of(S::KIND), record.spec.job_name());
    eprintln!("left behind: {}. Delete it with: {command} clean-up {name}", left.join(", "));
}
