//! `spotcheck endpoint delete`: deletes an endpoint, its configuration and everything else created for it.

use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use super::EndpointContext;
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::account::AccountArgs;
use crate::cli::progress::with_progress;
use crate::cli::terminal::{confirm, stdout};
use crate::cli::values::parse_endpoint_name;
use crate::sagemaker::endpoints::{Deletion, wait_for};
use crate::sagemaker::spec::endpoint::EndpointStatus;

/// The longest wait for SageMaker, which usually needs a few minutes.
const MAX_WAIT: Duration = Duration::from_mins(15);

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Endpoint name
    #[arg(value_parser = parse_endpoint_name)]
    name: String,
    /// Delete the model even if it was not created for this endpoint
    #[arg(long)]
    with_model: bool,
    /// Delete without asking for confirmation
    #[arg(long)]
    yes: bool,
    /// Return before the endpoint is deleted
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run(args: &DeleteArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let EndpointContext { control, records, .. } = context;
    let access = context.access_to(&args.name, &args.account);
    let aws = Aws::new();
    let name = &args.name;
    let deletion = Deletion::plan(&aws, records, &access, name, args.with_model, control)?;
    let was_there = deletion.status().is_some();
    let stays = deletion.to_keep().len();
    if !args.yes && !confirmed(&deletion)? {
        eprintln!("nothing was deleted");
        return Ok(Outcome::AllWell);
    }
    let done = with_progress("Deleting", control, || deletion.carry_out(&aws, records, control))?;
    let mut out = stdout();
    for what in &done.deleted {
        writeln!(out, "deleted {what}")?;
    }
    for (what, why) in &done.kept {
        writeln!(out, "kept {what}: {why}")?;
    }
    out.flush()?;
    if was_there && !args.no_wait {
        let sagemaker = aws.sagemaker(&access);
        let left = with_progress("Deleting", control, || wait_for(&sagemaker, name, Some(MAX_WAIT), control));
        match left {
            Ok(None) => eprintln!("endpoint {name} was deleted and is no longer billed"),
            Ok(Some(endpoint)) if endpoint.status == EndpointStatus::Deleting => bail!(
                "SageMaker is still deleting endpoint {name} after {} minutes. Check with: spotcheck endpoint status \
                 {name}",
                MAX_WAIT.as_secs() / 60
            ),
            Ok(Some(endpoint)) => bail!(
                "endpoint {name} was not deleted: it is {}{}. It may still cost money. Try again with: spotcheck \
                 endpoint delete {name}",
                endpoint.status,
                endpoint.failure.map_or_else(String::new, |why| format!(" ({why})"))
            ),
            Err(_) if control.is_cancelled() => bail!(
                "stopped waiting; SageMaker is still deleting endpoint {name}. Check with: spotcheck endpoint status \
                 {name}"
            ),
            Err(error) => bail!(
                "SageMaker was asked to delete endpoint {name}, but its status could not be read: {error}. Check \
                 with: spotcheck endpoint status {name}"
            ),
        }
    }
    if done.kept.len() > stays {
        bail!("not everything was deleted; run the command again");
    }
    Ok(Outcome::AllWell)
}

/// Asks for confirmation after listing what will be deleted and what stays.
fn confirmed(deletion: &Deletion) -> anyhow::Result<bool> {
    for what in deletion.to_delete() {
        eprintln!("will delete {what}");
    }
    for (what, why) in deletion.to_keep() {
        eprintln!("will keep {what}: {why}");
    }
    confirm("Delete these?")
}
