//! `spotcheck transform`: models on SageMaker Batch Transform.

mod clean_up;
mod compare;
mod fetch;
mod job_args;
pub(crate) mod json;
mod list;
mod logs;
pub(crate) mod model_source;
mod named_job;
mod named_truth;
pub(crate) mod package;
pub(crate) mod preflight;
mod rehearse;
mod retry;
mod start;
mod status;
mod stop;

use clap::{Args, Subcommand};

use super::Outcome;

#[derive(Debug, Args)]
pub(crate) struct TransformArgs {
    #[command(subcommand)]
    command: TransformCommand,
}

#[derive(Debug, Subcommand)]
enum TransformCommand {
    /// Pack a model as a `model.tar.gz` that SageMaker's containers can serve
    Package(package::PackageArgs),
    /// Run an archive's handler on this computer and compare its predictions with the local model's
    Rehearse(Box<rehearse::RehearseArgs>),
    /// Check a job before it costs money
    Preflight(Box<preflight::PreflightArgs>),
    /// Upload files, create the model and start a job
    Start(Box<start::StartArgs>),
    /// List jobs in the account and region
    List(list::ListArgs),
    /// Show a job's progress and the results for its images
    Status(status::StatusArgs),
    /// Stop a job; its existing outputs are kept
    Stop(stop::StopArgs),
    /// Show a job's container log, or SageMaker's messages per object
    Logs(logs::LogsArgs),
    /// Resend images without an output
    Retry(retry::RetryArgs),
    /// Delete a job's leftovers: model, archive and manifest
    CleanUp(clean_up::CleanUpArgs),
    /// Read a job's outputs as predictions for its images
    Fetch(Box<fetch::FetchArgs>),
    /// Compare a local run with a remote one
    Compare(compare::CompareArgs),
}

pub(crate) fn run(args: &TransformArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        TransformCommand::Package(args) => package::run(args),
        TransformCommand::Rehearse(args) => rehearse::run(args),
        TransformCommand::Preflight(args) => preflight::run(args),
        TransformCommand::Start(args) => start::run(args),
        TransformCommand::List(args) => list::run(args),
        TransformCommand::Status(args) => status::run(args),
        TransformCommand::Stop(args) => stop::run(args),
        TransformCommand::Logs(args) => logs::run(args),
        TransformCommand::Retry(args) => retry::run(args),
        TransformCommand::CleanUp(args) => clean_up::run(args),
        TransformCommand::Fetch(args) => fetch::run(args),
        TransformCommand::Compare(args) => compare::run(args),
    }
}
