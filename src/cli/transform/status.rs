//! `spotcheck transform status` and `logs`: the progress of a job, the results of its images, and the log of its
//! containers or SageMaker's messages about its objects.

use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use super::list::{Format, status_json};
use super::{NamedJob, command_of, print_leftovers, watch_command};
use crate::aws::AwsErrorKind;
use crate::cli::Outcome;
use crate::cli::terminal::{interruptible, local_time, print_log, print_problems, stdout, step_of, with_progress};
use crate::cli::values::{AccountArgs, parse_job_name, parse_positive};
use crate::dirs::AppDirs;
use crate::domain::Problem;
use crate::sagemaker::JobError;
use crate::sagemaker::Poll;
use crate::sagemaker::jobs::{Followed, Glance, PolledJob, Watch, follow, outcome, read_prices};
use crate::sagemaker::log::{LogKind, LogReader};
use crate::sagemaker::spec::transform::{
    JobOutcome, JobProgress, JobSpec, PriceTable, TransformJob, TransformSpec, TransformStatus, Unexplained,
    billed_text, human_usd,
};
use crate::tasks::{ProgressUnit, TaskControl};

/// The number of lines shown from the container's log.
const LOG_LINES: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct TransformStatusArgs {
    // First, because the help heading of the account applies to all flags after it.
    /// Watch the job until it ends
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    status: StatusArgs,
}

/// Flags for the status of a job of any kind.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Job name
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// Price of one instance in USD per hour [default: the price at the start, or from the price table]
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    hourly_price: Option<f64>,
    /// Output format; json is one object, printed at the end
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: Format,
    #[command(flatten)]
    account: AccountArgs,
}

impl StatusArgs {
    /// The job of this name, and how to poll it.
    pub(crate) fn find<S: JobSpec>(&self, control: &TaskControl) -> anyhow::Result<(NamedJob<S>, PolledJob)> {
        let dirs = AppDirs::find()?;
        let named = NamedJob::find(&self.job, &self.account, control)?;
        let polled = named.polled(self.hourly_price, read_prices(&dirs.prices())?);
        Ok((named, polled))
    }
}

pub(crate) fn run(args: &TransformStatusArgs) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Images)?;
    let (named, polled) = args.status.find(&control)?;
    let mut watch = Watch::new(polled, named.record.clone());
    let progress = see(&named, args.watch, &control, || watch.poll(&control))?;
    conclude(&named, &progress, args.status.output, &control)
}

/// Watches a job that was started here.
pub(crate) fn watch_started(named: &NamedJob, prices: PriceTable, control: &TaskControl) -> anyhow::Result<Outcome> {
    // A separate control, because that of a start counts bytes.
    let (control, _hook) = step_of(control, ProgressUnit::Images);
    let mut watch = Watch::new(named.polled(None, prices), named.record.clone());
    let progress = see(named, true, &control, || watch.poll(&control))?;
    conclude(named, &progress, Format::Text, &control)
}

/// Polls a job once, or until it ends.
pub(crate) fn see<S: JobSpec, P: Followed>(
    named: &NamedJob<S>,
    is_watching: bool,
    control: &TaskControl,
    mut poll: impl FnMut() -> Result<P, JobError>,
) -> anyhow::Result<P> {
    if !is_watching {
        return Ok(with_progress("Checking", control, poll)?);
    }
    let mut is_known = false;
    let seen = with_progress("Watching", control, || {
        follow(&mut poll, control, |event| match event {
            Poll::Seen(progress) => {
                is_known = true;
                let Glance { status, phase, cost_usd, detail, .. } = progress.glance();
                control.set_step(if status == TransformStatus::Stopping { "stopping" } else { phase });
                let cost = cost_usd.map(|usd| format!("{} so far", human_usd(usd)));
                let details = cost.into_iter().chain(detail.map(str::to_owned));
                control.set_detail(details.collect::<Vec<_>>().join(", "));
            }
            Poll::Trouble { why, again_in } => {
                control.set_step(format!("{why}; retrying in {} s", again_in.as_secs()));
            }
        })
    });
    let (name, command, watch) = (&named.name, command_of(S::KIND), watch_command(S::KIND, &named.name));
    match seen {
        Err(error) if control.is_cancelled() => {
            bail!("{error}; the job continues. Watch it with: {watch}; stop it with: {command} stop {name}")
        }
        Err(error) if is_known || error.aws_kind() == Some(AwsErrorKind::ExpiredCredentials) => {
            bail!("{error}. The job continues; watch it again with: {watch}")
        }
        seen => Ok(seen?),
    }
}

/// Reports the job's status and, if it has ended, the results of its images; returns the outcome for the exit code.
fn conclude(
    named: &NamedJob,
    progress: &JobProgress,
    format: Format,
    control: &TaskControl,
) -> anyhow::Result<Outcome> {
    control.begin(ProgressUnit::Steps);
    let job = &progress.job;
    if let Some(record) = &named.record
        && let Err(error) = named.records.note_speed(record, progress)
    {
        eprintln!("warning: {error}");
    }
    if format == Format::Text {
        write(&mut stdout(), progress)?;
    }
    for note in progress.notes.iter().chain(&progress.uncounted) {
        eprintln!("note: {note}");
    }
    let is_well = progress.missing() == Some(0) && job.status == TransformStatus::Completed;
    let asks = job.status.is_over() && !is_well;
    let found = asks.then(|| {
        with_progress("Checking which images have no output", control, || {
            outcome(&named.aws, (&named.sagemaker, &named.s3), job, &named.records, control)
        })
    });
    if format == Format::Json {
        let known = found.as_ref().and_then(|found| found.as_ref().ok());
        writeln!(stdout(), "{:#}", status_json(progress, known))?;
    }
    let outcome = match found.transpose() {
        Ok(None) => Ok(Outcome::AllWell),
        Ok(Some(found)) => conclude_images(job, &found),
        Err(error) => Err(error.into()),
    };
    if asks && !matches!(outcome, Ok(Outcome::AllWell)) {
        eprintln!(
            "see the container log with: spotcheck transform logs {}; add --data-log for SageMaker's messages about \
             each image",
            named.name
        );
    }
    if let Some(record) = named.record.as_ref().filter(|_| job.status.is_over()) {
        print_leftovers(record);
    }
    outcome
}

/// Reports the images of a job that has ended.
fn conclude_images(job: &TransformJob, found: &JobOutcome) -> anyhow::Result<Outcome> {
    print_failures(found, job);
    let retried = found.retries_text();
    let retried = retried.map_or_else(String::new, |retried| format!(", {retried}"));
    let name = &job.spec.job_name;
    if found.failed.is_empty() {
        eprintln!("all {} images of job {name} have an output{retried}", found.inputs);
        return Ok(Outcome::AllWell);
    }
    let advice = advice(found, name);
    match (job.status, found.outputs) {
        (TransformStatus::Completed, outputs) => eprintln!(
            "Only {outputs} of {} inputs have an output, although SageMaker reports “Completed”{retried}. {advice}",
            found.inputs
        ),
        (status, 0) if retried.is_empty() => {
            // The container's log shows what to do about a job that failed as a whole.
            let advice =
                if found.unexplained == Unexplained::JobFailed { String::new() } else { format!(". {advice}") };
            bail!("job {name} {}; no image has an output{advice}", past_tense(status))
        }
        (status, outputs) => eprintln!(
            "Job {name} {}; {outputs} of {} inputs have an output{retried}. {advice}",
            past_tense(status),
            found.inputs
        ),
    }
    Ok(Outcome::SomeImagesFailed)
}

/// What to do about images without an output. Never suggests a retry that cannot help.
fn advice(found: &JobOutcome, name: &str) -> String {
    if let Some(retry) = found.retry_under_way() {
        return format!("Retry {} is still processing {} of them", retry.job_name, retry.under_way);
    }
    match (found.worth_a_retry(), found.refused(), &found.retry_obstacle) {
        (_, 0, Some(obstacle)) => obstacle.clone(),
        (0, _, obstacle) => {
            let rest = match obstacle {
                Some(obstacle) => format!(". {obstacle}"),
                None => format!(", or resend them unchanged with: spotcheck transform retry {name} --all"),
            };
            format!("The model rejected these images and would reject them again; replace them{rest}")
        }
        (_, refused, Some(obstacle)) => format!("The model rejected {refused} of them. {obstacle}"),
        (_, 0, None) => format!("Resend the others with: spotcheck transform retry {name}"),
        (1, refused, None) => format!(
            "The model rejected {refused} of them and would reject them again; resend the other one with: spotcheck \
             transform retry {name}"
        ),
        (others, refused, None) => format!(
            "The model rejected {refused} of them and would reject them again; resend the other {others} with: \
             spotcheck transform retry {name}"
        ),
    }
}

fn past_tense(status: TransformStatus) -> &'static str {
    match status {
        TransformStatus::Stopped => "was stopped",
        _ => "failed",
    }
}

fn print_failures(found: &JobOutcome, job: &TransformJob) {
    let unexplained = found.unexplained.words(job);
    let problems = found.failed.iter().map(|failed| {
        let why = failed.reason.as_ref().unwrap_or(&unexplained);
        (Problem::new(found.uri_of(failed), why.clone()), failed.reason.is_some())
    });
    let is_failure = |is_explained: bool| is_explained || found.unexplained != Unexplained::NotProcessed;
    let (failed, others): (Vec<_>, Vec<_>) = problems.partition(|(_, is_explained)| is_failure(*is_explained));
    for (lead, problems) in [("failed ", failed), ("", others)] {
        print_problems(lead, &problems.into_iter().map(|(problem, _)| problem).collect::<Vec<_>>());
    }
    for note in &found.notes {
        eprintln!("note: {note}");
    }
}

fn write(out: &mut dyn Write, progress: &JobProgress) -> anyhow::Result<()> {
    let job = &progress.job;
    let spec = &job.spec;
    let mut line = |what: &str, text: &str| writeln!(out, "{what:10} {text}");
    line("job", &spec.job_name)?;
    let phase = if job.status.is_over() { String::new() } else { format!(", {}", progress.phase.into_str()) };
    line("status", &format!("{}{phase}", job.status.into_str()))?;
    if let Some(failure) = &job.failure {
        line("reason", failure)?;
    }
    line("model", &spec.model_name)?;
    line("input", &spec.input.data_source.objects.address().to_string())?;
    line("output", &spec.output.folder.to_string())?;
    line("outputs", &outputs_text(progress))?;
    line("created", &local_time(job.created_ms))?;
    let instances = spec.resources.instances();
    line("billed", &billed_text(instances, job.status, progress.billed_s, progress.cost_usd))?;
    let lines = &progress.log_tail;
    for last in &lines[lines.len().saturating_sub(LOG_LINES)..] {
        line("log", &last.message)?;
    }
    Ok(())
}

/// “1204 of 5000 (24 %), 31.2 a second, 120 s left”
fn outputs_text(progress: &JobProgress) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let counted = format!("{} of {}", number(progress.outputs), number(progress.inputs));
    let percent = progress.fraction().map(|fraction| format!(" ({:.0}%)", (fraction * 100.0).floor()));
    let rate = progress.outputs_per_s.map(|rate| format!(", {rate:.1}/s"));
    let left = progress.seconds_left(progress.seen_at_ms).map(|left| format!(", {left:.0} s left"));
    let age = progress.count_age_text(progress.seen_at_ms);
    let age = age.map(|age| format!(", {age}"));
    [Some(counted), percent, rate, left, age].into_iter().flatten().collect()
}

/// The interval between reads of a growing log.
const PAUSE: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Show SageMaker's own log: failed objects and reasons
    #[arg(long)]
    data_log: bool,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Job name
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// Follow the log until the job ends
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run_logs(args: &LogsArgs) -> anyhow::Result<Outcome> {
    let kind = if args.data_log { LogKind::Data } else { LogKind::Container };
    print_logs::<TransformSpec>(&args.log, kind)
}

pub(crate) fn print_logs<S: JobSpec>(args: &LogArgs, kind: LogKind) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Steps)?;
    let named = NamedJob::<S>::find(&args.job, &args.account, &control)?;
    let sagemaker = named.aws.sagemaker(&named.sagemaker);
    let mut reader = LogReader::new(&args.job, kind);
    let mut is_empty = true;
    loop {
        // Queried first, so that nothing written before the end is missed.
        let is_over = sagemaker.job_status(S::KIND, &args.job, &control)?.is_over();
        let lines = reader.read(&sagemaker, &control)?;
        is_empty &= lines.is_empty();
        print_log(&lines)?;
        if is_over || !args.follow {
            break;
        }
        control.sleep(PAUSE)?;
    }
    if is_empty {
        eprintln!("this log of {} is still empty", args.job);
    }
    Ok(Outcome::AllWell)
}
