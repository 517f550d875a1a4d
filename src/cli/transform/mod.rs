//! `spotcheck transform`: models on SageMaker Batch Transform.

mod package;
mod rehearse;

use clap::{Args, Subcommand};

use super::Outcome;

#[derive(Debug, Args)]
pub(super) struct TransformArgs {
    #[command(subcommand)]
    command: TransformCommand,
}

#[derive(Debug, Subcommand)]
enum TransformCommand {
    /// Pack a model as a `model.tar.gz` that SageMaker's containers can serve
    Package(package::PackageArgs),
    /// Run an archive's handler on this machine, and compare its answers with those of the model here
    Rehearse(Box<rehearse::RehearseArgs>),
}

pub(super) fn run(args: &TransformArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        TransformCommand::Package(args) => package::run(args),
        TransformCommand::Rehearse(args) => rehearse::run(args),
    }
}
