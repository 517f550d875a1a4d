//! `spotcheck endpoint preflight`: checks an endpoint before it costs money.

use clap::Args;

use super::EndpointContext;
use super::plan_args::PlanArgs;
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::transform::preflight;
use crate::sagemaker::endpoints::Leftovers;

#[derive(Debug, Args)]
pub(crate) struct PreflightArgs {
    #[command(flatten)]
    plan: PlanArgs,
}

pub(crate) fn run(args: &PreflightArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let aws = Aws::new();
    let mut planned = args.plan.plan(&aws, &context.control)?;
    let _packed = planned.pack(&context.control)?;
    // `deploy` also deletes the remains of an earlier endpoint first.
    let found = planned.preflight(&aws, Leftovers::Go, context)?;
    preflight::report(&found, "the endpoint")
}
