//! Who asks SageMaker about a job, and where its record lies.

use crate::aws::Aws;
use crate::cli::place::S3Args;
use crate::dirs::AppDirs;
use crate::domain::{JobRecord, S3Access, SageMakerAccess};
use crate::remote::transform::{JobRecords, find_record};
use crate::tasks::{ProgressUnit, TaskControl};

/// A job by its name, and how it is reached.
pub(super) struct NamedJob {
    pub(super) aws: Aws,
    pub(super) sagemaker: SageMakerAccess,
    pub(super) s3: S3Access,
    pub(super) records: JobRecords,
    /// Where the job was started on this machine.
    pub(super) record: Option<JobRecord>,
}

impl NamedJob {
    /// As the flags say; without any, as the job was started on this machine; and else as the AWS tools would.
    pub(super) fn find(
        name: &str,
        args: &S3Args,
        dirs: &AppDirs,
        control: &TaskControl,
    ) -> anyhow::Result<Self> {
        let aws = Aws::new();
        let records = JobRecords::in_folder(dirs.jobs());
        if !args.is_given() {
            let (all, errors) = records.all();
            for error in errors {
                eprintln!("warning: {error}");
            }
            if let Some(record) = all.into_iter().find(|record| record.spec.job_name == name) {
                return Ok(Self {
                    aws,
                    sagemaker: record.sagemaker.clone(),
                    s3: record.s3.clone(),
                    records,
                    record: Some(record),
                });
            }
        }
        let s3 = args.access();
        let sagemaker = SageMakerAccess::from(&s3);
        let record = find_record(&aws, &records, &sagemaker, name, control)?;
        // Whoever says another server or region for the bucket now, means it.
        let s3 = record
            .as_ref()
            .map_or(s3, |record| args.over(record.s3.clone()));
        Ok(Self {
            aws,
            sagemaker,
            s3,
            records,
            record,
        })
    }
}

/// A control that Ctrl+C cancels.
pub(super) fn interruptible(unit: ProgressUnit) -> anyhow::Result<TaskControl> {
    use anyhow::Context;
    let control = TaskControl::new(unit);
    let on_interrupt = control.clone();
    ctrlc::set_handler(move || on_interrupt.cancel()).context("Could not listen for Ctrl+C")?;
    Ok(control)
}

/// Asks on the terminal; nobody there is no answer.
pub(super) fn confirm(question: &str) -> anyhow::Result<bool> {
    use std::io::{BufRead, IsTerminal};
    if !std::io::stdin().is_terminal() {
        anyhow::bail!(
            "{question} Nobody is at the terminal to say so; repeat the command with --yes"
        );
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// `2026-11-21 14:05:09`, in the time of this machine.
pub(super) fn local_time(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    let local = at.to_zoned(jiff::tz::TimeZone::system());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
