//! `spotcheck endpoint preflight`: an endpoint is looked through before it is paid for.

use anyhow::bail;
use clap::Args;

use super::EndpointContext;
use super::plan_args::PlanArgs;
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::terminal::stdout;
use crate::cli::transform::preflight;
use crate::domain::CheckGrade;
use crate::remote::endpoint::Remains;

#[derive(Debug, Args)]
pub(super) struct PreflightArgs {
    #[command(flatten)]
    plan: PlanArgs,
}

pub(super) fn run(args: &PreflightArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let aws = Aws::new();
    let mut planned = args.plan.plan(&aws, &context.control)?;
    let _packed = planned.pack(&context.control)?;
    // As `deploy` does.
    let found = planned.preflight(&aws, Remains::Go, context)?;
    preflight::write(&mut stdout(), &found)?;
    match found.count(CheckGrade::Problem) {
        0 => Ok(Outcome::AllWell),
        1 => bail!("there is a problem; the deployment would fail, or must not be made like this"),
        count => bail!(
            "there are {count} problems; the deployment would fail, or must not be made like this"
        ),
    }
}
