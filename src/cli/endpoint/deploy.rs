//! `spotcheck endpoint deploy`: deploys a model to an endpoint.

use std::io::Write;

use anyhow::bail;
use clap::Args;

use super::EndpointContext;
use super::plan_args::{PlanArgs, Planned};
use super::status::{CostSoFar, print_deletion_time, settled};
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::progress::with_progress;
use crate::cli::terminal::stdout;
use crate::cli::transform::preflight::must_pass;
use crate::sagemaker::endpoints::{Deletion, DeployError, EndpointError, Leftovers, deploy};
use crate::sagemaker::spec::endpoint::EndpointStatus;
use crate::tasks::now_ms;

#[derive(Debug, Args)]
pub(crate) struct DeployArgs {
    /// Deploy even if the preflight finds problems
    #[arg(long)]
    force: bool,
    /// Return before the endpoint is ready
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    plan: PlanArgs,
}

pub(crate) fn run(args: &DeployArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let control = &context.control;
    let aws = Aws::new();
    let mut planned = args.plan.plan(&aws, control)?;
    delete_leftovers(&aws, &planned, context)?;
    let _packed = planned.pack(control)?;
    let found = planned.preflight(&aws, Leftovers::Block, context)?;
    must_pass(&found, args.force)?;
    let mut record = planned.plan.record(now_ms());
    let unfinished = context.dirs.uploads();
    let deployed = with_progress("Deploying", control, || {
        deploy(&aws, &context.records, &mut record, &planned.plan, &unfinished, control)
    });
    if let Err(error) = deployed {
        return Err(failed(&error, planned.name()));
    }
    CostSoFar::from_record(&record, None).print_note(now_ms());
    print_deletion_time(&record, now_ms());
    if !args.no_wait {
        return settled(&aws.sagemaker(&planned.plan.sagemaker), planned.name(), control);
    }
    writeln!(stdout(), "{}", planned.name())?;
    Ok(Outcome::AllWell)
}

/// Deletes what an endpoint with the same name left behind, if the endpoint itself does not exist.
fn delete_leftovers(aws: &Aws, planned: &Planned, context: &EndpointContext) -> anyhow::Result<()> {
    let (name, region) = (planned.name(), planned.region());
    let left = Deletion::plan(aws, &context.records, &planned.plan.sagemaker, name, false, &context.control);
    let left = match left {
        Err(EndpointError::NotThere { .. }) => return Ok(()),
        left => left?,
    };
    match left.status() {
        None => {}
        Some(EndpointStatus::Deleting) => {
            bail!("endpoint {name} in {region} is being deleted; wait a few minutes, or choose another name")
        }
        Some(_) => bail!(
            "endpoint {name} already exists in {region}; choose another name, or delete it with: spotcheck endpoint \
             delete {name}"
        ),
    }
    let stays = left.to_keep().len();
    let done = left.carry_out(aws, &context.records, &context.control)?;
    for what in &done.deleted {
        eprintln!("deleted {what}, which an earlier endpoint of this name left behind");
    }
    if done.kept.len() > stays {
        bail!(
            "an earlier endpoint of this name left something that could not be deleted: {}. Choose another name",
            done.kept_text()
        );
    }
    Ok(())
}

fn failed(error: &DeployError, name: &str) -> anyhow::Error {
    if error.done.kept.is_empty() {
        return anyhow::anyhow!("{error}");
    }
    anyhow::anyhow!("{error}\nDelete it with: spotcheck endpoint delete {name}")
}
