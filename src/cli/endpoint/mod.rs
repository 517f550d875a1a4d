//! `spotcheck endpoint`: SageMaker real-time endpoints. To predict with one, use `spotcheck predict --endpoint`.

mod delete;
mod deploy;
mod status;

use clap::Subcommand;

use super::Outcome;
use super::terminal::interruptible;
use super::values::{Account, AccountArgs};
use crate::dirs::AppDirs;
use crate::sagemaker::endpoints::EndpointRecords;
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::tasks::{ProgressUnit, TaskControl};

pub(crate) use delete::AutoDeleter;

#[derive(Debug, Subcommand)]
pub(crate) enum EndpointCommand {
    /// Deploy a model to an endpoint, which costs money until you delete it
    Deploy(Box<deploy::DeployArgs>),
    /// Check an endpoint before it costs money
    Preflight(Box<deploy::PlanArgs>),
    /// Show an endpoint's status, cost and deletion time
    Status(status::StatusArgs),
    /// List endpoints in the account and region, newest first
    List(status::ListArgs),
    /// Show the newest log lines of an endpoint's containers
    Logs(status::LogsArgs),
    /// Delete an endpoint, its configuration and everything else created for it
    Delete(delete::DeleteArgs),
}

pub(crate) fn run(command: &EndpointCommand) -> anyhow::Result<Outcome> {
    let context = EndpointContext {
        control: interruptible(ProgressUnit::Bytes)?,
        records: records(&AppDirs::find()?),
        dirs: AppDirs::find()?,
    };
    match command {
        EndpointCommand::Deploy(args) => deploy::run(args, &context),
        EndpointCommand::Preflight(args) => deploy::run_preflight(args, &context),
        EndpointCommand::Status(args) => status::run(args, &context),
        EndpointCommand::List(args) => status::run_list(args, &context),
        EndpointCommand::Logs(args) => status::run_logs(args, &context),
        EndpointCommand::Delete(args) => delete::run(args, &context),
    }
}

/// The context of all endpoint commands.
pub(crate) struct EndpointContext {
    /// Canceled by Ctrl+C.
    control: TaskControl,
    dirs: AppDirs,
    records: EndpointRecords,
}

impl EndpointContext {
    /// The account and region from the flags, else from the deployment's record, else the AWS defaults.
    fn access_to(&self, name: &str, account: &AccountArgs) -> SageMakerAccess {
        if account.is_given() {
            return account.sagemaker();
        }
        let (known, problems) = self.records.all();
        for problem in problems {
            eprintln!("warning: {problem}");
        }
        known
            .into_iter()
            .find(|record| record.name == name)
            .map_or_else(|| account.sagemaker(), |record| record.sagemaker)
    }
}

fn records(dirs: &AppDirs) -> EndpointRecords {
    EndpointRecords::in_folder(dirs.endpoints())
}
