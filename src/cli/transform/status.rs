//! `spotcheck transform status` and `logs`: the progress of a job, the results of its images, and the log of its
//! containers or SageMaker's messages about its objects.

use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use super::NamedJob;
use super::list::{Format, status_json};
use crate::aws::{Aws, AwsErrorKind};
use crate::cli::Outcome;
use crate::cli::terminal::{interruptible, local_time, print_log, print_problems, stdout, step_of, with_progress};
use crate::cli::values::{AccountArgs, parse_job_name, parse_positive};
use crate::dirs::AppDirs;
use crate::domain::{Problem, S3Access};
use crate::sagemaker::Poll;
use crate::sagemaker::jobs::{JobRecords, Watch, outcome, read_prices};
use crate::sagemaker::log::{LogKind, LogReader};
use crate::sagemaker::spec::transform::{
    JobOutcome, JobProgress, JobRecord, JobSpec, PriceTable, SageMakerAccess, TransformJob, TransformSpec,
    TransformStatus, Unexplained, human_usd,
};
use crate::tasks::{ProgressUnit, TaskControl};

/// The number of lines shown from the container's log.
const LOG_LINES: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Job name
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// Watch the job until it ends
    #[arg(long)]
    watch: bool,
    /// Price of one instance in USD per hour [default: from the price table]
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    hourly_price: Option<f64>,
    /// Output format; json is one object that lists each image without an output and the reason; with --watch, it is
    /// printed at the end
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<Outcome> {
    args.account.warn_if_unknown();
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Images)?;
    let named = NamedJob::find(&args.job, &args.account, &dirs, &control)?;
    let watched = Watched {
        aws: &named.aws,
        sagemaker: &named.sagemaker,
        s3: &named.s3,
        job_name: &args.job,
        record: named.record.clone(),
        records: &named.records,
        prices: read_prices(&dirs.prices())?,
        usd_per_hour: args.hourly_price,
        format: args.output,
    };
    if args.watch {
        return watch(&watched, &control);
    }
    let mut watch = watched.watch();
    let progress = with_progress("Checking", &control, || watch.poll(&control))?;
    conclude(&watched, &progress, &control)
}

/// A job to watch.
pub(crate) struct Watched<'w> {
    pub(crate) aws: &'w Aws,
    pub(crate) sagemaker: &'w SageMakerAccess,
    pub(crate) s3: &'w S3Access,
    pub(crate) job_name: &'w str,
    pub(crate) record: Option<JobRecord>,
    pub(crate) records: &'w JobRecords,
    pub(crate) prices: PriceTable,
    pub(crate) usd_per_hour: Option<f64>,
    pub(crate) format: Format,
}

impl Watched<'_> {
    fn watch(&self) -> Watch {
        Watch::new(
            self.aws,
            self.sagemaker,
            self.s3,
            self.job_name,
            self.record.clone(),
            self.prices.clone(),
            self.usd_per_hour,
        )
    }
}

/// Watches with a separate control, because that of a start counts bytes.
pub(crate) fn watch_to_the_end(watched: &Watched<'_>, interrupted: &TaskControl) -> anyhow::Result<Outcome> {
    let (control, _hook) = step_of(interrupted, ProgressUnit::Images);
    watch(watched, &control)
}

fn watch(watched: &Watched<'_>, control: &TaskControl) -> anyhow::Result<Outcome> {
    let mut watch = watched.watch();
    let mut is_known = false;
    let progress = with_progress("Watching", control, || {
        watch.follow(control, |event| match event {
            Poll::Seen(progress) => {
                is_known = true;
                control.set_step(step_text(progress));
                let details = cost_text(progress).into_iter().chain(progress.uncounted.clone());
                control.set_detail(details.collect::<Vec<_>>().join(", "));
            }
            Poll::Trouble { why, again_in } => {
                control.set_step(format!("{why}; retrying in {} s", again_in.as_secs()));
            }
        })
    });
    let progress = match progress {
        Err(error) if control.is_cancelled() => bail!(
            "{error}; the job continues. Check it with: spotcheck transform status {0}; stop it with: spotcheck \
             transform stop {0}",
            watched.job_name
        ),
        Err(error) if is_known || error.aws_kind() == Some(AwsErrorKind::ExpiredCredentials) => bail!(
            "{error}. The job continues; watch it again with: spotcheck transform status {} --watch",
            watched.job_name
        ),
        progress => progress?,
    };
    control.begin(ProgressUnit::Steps);
    conclude(watched, &progress, control)
}

/// “transforming”, “stopping”.
fn step_text(progress: &JobProgress) -> String {
    match progress.job.status {
        TransformStatus::Stopping => "stopping".to_owned(),
        _ => progress.phase.into_str().to_owned(),
    }
}

/// “$0.03 so far”
fn cost_text(progress: &JobProgress) -> Option<String> {
    Some(format!("{} so far", human_usd(progress.cost_usd?)))
}

/// Reports the job's status and, if it has ended, the results of its images; returns the outcome for the exit code.
fn conclude(watched: &Watched<'_>, progress: &JobProgress, control: &TaskControl) -> anyhow::Result<Outcome> {
    let job = &progress.job;
    if let Some(record) = &watched.record
        && let Err(error) = watched.records.note_speed(record, progress)
    {
        eprintln!("warning: {error}");
    }
    if watched.format == Format::Text {
        write(&mut stdout(), progress)?;
    }
    for note in progress.notes.iter().chain(&progress.uncounted) {
        eprintln!("note: {note}");
    }
    let is_well = progress.missing() == Some(0) && job.status == TransformStatus::Completed;
    let asks = job.status.is_over() && !is_well;
    let found = asks.then(|| {
        with_progress("Checking which images have no output", control, || {
            let asked = (watched.sagemaker, watched.s3);
            outcome(watched.aws, asked, job, watched.records, control)
        })
    });
    if watched.format == Format::Json {
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
            watched.job_name
        );
    }
    if job.status.is_over() {
        print_clean_up(watched);
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

fn print_clean_up(watched: &Watched<'_>) {
    let record = watched.record.as_ref();
    let Some(record) = record.filter(|record| !record.left.is_empty()) else {
        return;
    };
    let left: Vec<String> = record.left.iter().map(ToString::to_string).collect();
    eprintln!(
        "left behind: {}. Delete it with: spotcheck transform clean-up {}",
        left.join(", "),
        record.spec.job_name
    );
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
    line("input", &spec.input.objects.address().to_string())?;
    line("output", &spec.output.folder.to_string())?;
    line("outputs", &outputs_text(progress))?;
    line("created", &local_time(job.created_ms))?;
    let instances = (spec.instance_type.as_str(), spec.instance_count);
    line("billed", &billed_text(instances, job.status.is_over(), progress.billed_s, progress.cost_usd))?;
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

/// “360 s on 1 × ml.m5.xlarge, $0.03”
pub(crate) fn billed_text(
    (instance_type, count): (&str, u32),
    is_over: bool,
    billed_s: Option<f64>,
    cost_usd: Option<f64>,
) -> String {
    let instances = format!("{count} × {instance_type}");
    let Some(billed_s) = billed_s else {
        let nothing = if is_over { "not reported by SageMaker" } else { "nothing yet" };
        return format!("{nothing}, for {instances}");
    };
    let cost = match cost_usd {
        Some(usd) => human_usd(usd),
        None => "price unknown; set it with --hourly-price".to_owned(),
    };
    format!("{billed_s:.0} s on {instances}, {cost}")
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
    args.account.warn_if_unknown();
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Steps)?;
    let named = NamedJob::<S>::find(&args.job, &args.account, &dirs, &control)?;
    let sagemaker = named.aws.sagemaker(&named.sagemaker);
    let mut reader = LogReader::new(&args.job, kind);
    let mut is_empty = true;
    loop {
        // Queried first, so that nothing written before the end is missed.
        let is_over = sagemaker.job_status(S::KIND, &args.job, Some(&control))?.is_over();
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
