//! `spotcheck transform`: models on SageMaker Batch Transform.

mod package;

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
}

pub(super) fn run(args: &TransformArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        TransformCommand::Package(args) => package::run(args),
    }
}
