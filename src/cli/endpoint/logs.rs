//! `spotcheck endpoint logs`: shows the newest log lines of an endpoint's containers.

use anyhow::bail;
use clap::Args;

use super::EndpointContext;
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::account::AccountArgs;
use crate::cli::terminal::print_log;
use crate::cli::values::parse_endpoint_name;
use crate::sagemaker::log::endpoint_log_tail;

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Endpoint name
    #[arg(value_parser = parse_endpoint_name)]
    name: String,
    /// Number of most recent lines
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    lines: u32,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run(args: &LogsArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let access = context.access_to(&args.name, &args.account);
    let sagemaker = Aws::new().sagemaker(&access);
    let control = &context.control;
    let lines = endpoint_log_tail(&sagemaker, &args.name, args.lines, control)?;
    if lines.is_empty() {
        // The log of an endpoint outlives it.
        if sagemaker.describe_endpoint(&args.name, Some(control))?.is_none() {
            let region = sagemaker.region(Some(control))?;
            bail!("endpoint {} does not exist in {region} and has no log", args.name);
        }
        eprintln!("the log of {} is still empty", args.name);
    }
    print_log(&lines)?;
    Ok(Outcome::AllWell)
}
