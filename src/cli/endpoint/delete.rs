//! `spotcheck endpoint delete`: deletes an endpoint, its configuration and everything else created for it. Due
//! endpoints are deleted when a command starts and while it runs; the window has its own auto-deleter.

use std::io::Write;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use crossbeam_channel::{Receiver, bounded};

use super::{EndpointContext, records};
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::terminal::{confirm, stdout, with_progress};
use crate::cli::values::{AccountArgs, parse_endpoint_name};
use crate::dirs::AppDirs;
use crate::sagemaker::endpoints::{Deletion, delete_due, wait_for};
use crate::sagemaker::spec::endpoint::EndpointStatus;
use crate::tasks::{ProgressUnit, TaskControl, now_ms};

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
    let was_there = deletion.status.is_some();
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
    for what in &deletion.left {
        eprintln!("will delete {what}");
    }
    for (what, why) in deletion.to_keep() {
        eprintln!("will keep {what}: {why}");
    }
    confirm("Delete these?")
}

const EVERY: Duration = Duration::from_secs(30);

/// Deletes due endpoints of this computer until `finish`.
pub(crate) struct AutoDeleter {
    control: TaskControl,
    has_looked: Receiver<()>,
    thread: JoinHandle<()>,
}

impl AutoDeleter {
    /// `None` if the program has no data folder.
    pub(crate) fn start() -> Option<Self> {
        let records = records(&AppDirs::find().ok()?);
        let control = TaskControl::new(ProgressUnit::Images);
        let (looked, has_looked) = bounded(1);
        let of_thread = control.clone();
        let thread = std::thread::spawn(move || {
            let aws = Aws::new();
            loop {
                for (record, done) in delete_due(&aws, &records, now_ms(), &of_thread) {
                    match done {
                        Ok(_) => eprintln!("deleted endpoint {}: its auto-delete time was reached", record.name),
                        Err(error) => eprintln!(
                            "endpoint {} is past its auto-delete time but still costs money, because it could not be \
                             deleted: {error}",
                            record.name
                        ),
                    }
                }
                // The command has ended.
                let _ = looked.try_send(());
                if of_thread.sleep(EVERY).is_err() {
                    return;
                }
            }
        });
        Some(Self { control, has_looked, thread })
    }

    /// Waits until it has checked once.
    pub(crate) fn finish(self) {
        // The thread ends early only if it panicked.
        let _ = self.has_looked.recv();
        self.control.cancel();
        let _ = self.thread.join();
    }
}
