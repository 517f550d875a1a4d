//! `spotcheck train`: SageMaker training jobs, from a local script to a `model.tar.gz` in S3.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, Subcommand};

use super::Outcome;
use super::terminal::{interruptible, local_time, stdout, step_of, with_progress};
use super::transform::job_args::{InstanceArgs, PriceArgs};
use super::transform::list::{self, Format};
use super::transform::package::NetworkArgs;
use super::transform::start::{failed_start, must_pass, report};
use super::transform::status::{LogArgs, StatusArgs, print_logs, see};
use super::transform::{NamedJob, print_leftovers, stop, watch_command};
use super::values::{Account, AccountArgs, parse_job_name, parse_pair};
use crate::aws::Aws;
use crate::dirs::AppDirs;
use crate::domain::{S3Access, S3Address};
use crate::sagemaker::jobs::StartFolders;
use crate::sagemaker::log::LogKind;
use crate::sagemaker::spec::training::{
    Algorithm, Channel, Checkpoints, MetricDefinition, Mpi, OutputConfig, StoppingCondition, TrainingPlan,
    TrainingProgress, TrainingSource, TrainingSpec, source_archive,
};
use crate::sagemaker::spec::transform::{JobKind, Resources, SageMakerAccess, billed_text, dated_name};
use crate::sagemaker::training::{TrainingRecords, clean_up, poll, preflight, start};
use crate::tasks::{ProgressUnit, TaskControl, now_ms};

/// The SDK's name of an only channel.
const CHANNEL: &str = "training";
/// How many of the log's last lines are shown, and how many if the job has no model.
const LOG_LINES: usize = 5;
const LAST_LINES: usize = 20;

#[derive(Debug, Subcommand)]
pub(crate) enum TrainCommand {
    /// Check a training job before it costs money
    Preflight(Box<PlanArgs>),
    /// Pack and upload the source folder, and start a training job
    Start(Box<StartArgs>),
    /// List training jobs in the account and region
    List(list::ListArgs),
    /// Show a training job's phase, cost, metrics and model
    Status(StatusArgs),
    /// Watch a training job until it ends
    Watch(StatusArgs),
    /// Stop a training job
    Stop(stop::StopArgs),
    /// Show a training job's log
    Logs(LogArgs),
    /// Delete the uploaded source folder of a training job; its model is kept
    CleanUp(stop::CleanUpArgs),
}

pub(crate) fn run(command: &TrainCommand) -> anyhow::Result<Outcome> {
    match command {
        TrainCommand::Preflight(args) => launch(args, None),
        TrainCommand::Start(args) => launch(&args.plan, Some(args)),
        TrainCommand::List(args) => list::run(args, JobKind::Training),
        TrainCommand::Status(args) => show(args, false),
        TrainCommand::Watch(args) => show(args, true),
        TrainCommand::Stop(args) => stop::run::<TrainingSpec>(args),
        TrainCommand::Logs(args) => print_logs::<TrainingSpec>(args, LogKind::Training),
        TrainCommand::CleanUp(args) => stop::run_clean_up(args, clean_up),
    }
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    // First, because the help headings of the plan apply to all flags after it.
    /// Start even if the preflight finds problems
    #[arg(long)]
    force: bool,
    /// Watch the job until it ends
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    plan: PlanArgs,
}

/// A training job.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// S3 prefix of the data for the channel “training” (`SM_CHANNEL_TRAINING`)
    input: Option<S3Address>,
    /// Another channel, for example validation=s3://bucket/validation/; repeatable
    #[arg(long = "channel", value_name = "NAME=s3://…", value_parser = parse_channel)]
    channels: Vec<Channel>,
    /// S3 folder for results; the model is saved as JOB/output/model.tar.gz
    #[arg(long, value_name = "s3://BUCKET/FOLDER/")]
    output: S3Address,
    /// Job name: letters, digits and hyphens [default: the script's name and the time]
    #[arg(long, value_name = "NAME", value_parser = parse_job_name)]
    job_name: Option<String>,
    /// URI of the training container in ECR
    #[arg(long, value_name = "URI")]
    image: String,
    /// ARN of the IAM role for the container
    #[arg(long, value_name = "ARN")]
    role: String,
    /// Folder to pack as sourcedir.tar.gz; omit it if the container has its own program
    #[arg(long, value_name = "FOLDER", requires = "entry_point")]
    source: Option<PathBuf>,
    /// Script to run: its path in the source folder
    #[arg(long, value_name = "FILE", requires = "source")]
    entry_point: Option<String>,
    /// Run the script with mpirun, for example with Horovod: processes per host and, up to the end, options for mpirun
    #[arg(long, value_name = "processes=N[,options=…]", value_parser = parse_mpi, requires = "source")]
    mpi: Option<Mpi>,
    /// Hyperparameter; with a source folder, a value that is not JSON is sent as a JSON string; repeatable
    #[arg(long = "hyperparameter", value_name = "KEY=VALUE", value_parser = parse_pair)]
    hyperparameters: Vec<(String, String)>,
    /// Environment variable for the container; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    /// Metric: a regular expression that finds its value in the log, as its first group; repeatable
    #[arg(long = "metric", value_name = "NAME=REGEX", value_parser = parse_metric)]
    metrics: Vec<MetricDefinition>,
    /// Tag for the job; repeatable
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_pair)]
    tags: Vec<(String, String)>,
    #[command(flatten)]
    resources: ResourceArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    price: PriceArgs,
    #[command(flatten)]
    account: AccountArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Instances")]
struct ResourceArgs {
    #[command(flatten)]
    instances: InstanceArgs,
    /// Size of each instance's storage volume in GB
    #[arg(long, value_name = "GB", default_value_t = 30)]
    volume_gb: u32,
    /// KMS key for the model
    #[arg(long, value_name = "KEY")]
    output_kms_key: Option<String>,
    /// Stop the job after this many seconds of training
    #[arg(long, value_name = "SECONDS", default_value_t = 86400)]
    max_run_s: u32,
    /// Use spot instances, which are cheaper and can be interrupted; see --checkpoints
    #[arg(long)]
    spot: bool,
    /// With --spot, wait for instances and train for at most this many seconds [default: twice --max-run-s]
    #[arg(long, value_name = "SECONDS", requires = "spot")]
    max_wait_s: Option<u32>,
    /// S3 folder for checkpoints, synchronized with /opt/ml/checkpoints
    #[arg(long, value_name = "s3://BUCKET/FOLDER/")]
    checkpoints: Option<S3Address>,
}

fn parse_channel(text: &str) -> Result<Channel, String> {
    let (name, address) = parse_pair(text)?;
    let address = S3Address::parse(&address).map_err(|error| error.to_string())?;
    Ok(Channel::new(name, &address))
}

fn parse_metric(text: &str) -> Result<MetricDefinition, String> {
    let (name, regex) = parse_pair(text)?;
    if regex.is_empty() {
        return Err("expected NAME=REGEX".to_owned());
    }
    Ok(MetricDefinition { name, regex })
}

/// `processes=8,options=-x A=1,2`: the options are the rest.
fn parse_mpi(text: &str) -> Result<Mpi, String> {
    let (processes, options) = text.split_once(",options=").unwrap_or((text, ""));
    let processes = processes.strip_prefix("processes=").and_then(|number| number.parse().ok());
    let processes_per_host =
        processes.filter(|number| *number > 0).ok_or("expected processes=N or processes=N,options=…")?;
    Ok(Mpi { processes_per_host, options: options.to_owned() })
}

/// The values of a repeatable flag by their keys.
fn unique(flag: &str, pairs: &[(String, String)]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for (key, value) in pairs {
        if values.insert(key.clone(), value.clone()).is_some() {
            bail!("{flag} {key} is given twice; remove one");
        }
    }
    Ok(values)
}

impl PlanArgs {
    fn plan(&self, aws: &Aws, control: &TaskControl) -> anyhow::Result<TrainingPlan> {
        let sagemaker = self.account.sagemaker();
        let s3 = self.account.over(S3Access::default());
        let region = aws.sagemaker(&sagemaker).region(control)?;
        let resources = &self.resources;
        let script = self.entry_point.as_deref().and_then(|script| Path::new(script).file_stem()?.to_str());
        let job_name = self.job_name.clone();
        let job_name = job_name.unwrap_or_else(|| dated_name(script.unwrap_or_default(), now_ms()));
        let output = self.output.as_folder();
        let input = self.input.iter().map(|input| Channel::new(CHANNEL, input));
        let entry_point = self.entry_point.as_deref().map(|path| path.trim_start_matches("./").to_owned());
        let source = self.source.clone().zip(entry_point).map(|(folder, entry_point)| TrainingSource {
            folder,
            entry_point,
            mpi: self.mpi.clone(),
            archive: source_archive(&output, &job_name),
        });
        let max_wait_s = resources.max_wait_s.unwrap_or(resources.max_run_s.saturating_mul(2));
        let spec = TrainingSpec {
            job_name,
            hyperparameters: unique("--hyperparameter", &self.hyperparameters)?,
            algorithm: Algorithm { image: self.image.clone(), metrics: self.metrics.clone(), ..Algorithm::default() },
            role: self.role.clone(),
            channels: input.chain(self.channels.iter().cloned()).collect(),
            output: OutputConfig { folder: output.to_string(), kms_key: resources.output_kms_key.clone() },
            resources: Resources { volume_gb: Some(resources.volume_gb), ..resources.instances.resources() },
            stopping: StoppingCondition {
                max_run_s: resources.max_run_s,
                max_wait_s: resources.spot.then_some(max_wait_s),
            },
            environment: unique("--env", &self.env)?,
            network: self.network.network(),
            is_spot: resources.spot,
            checkpoints: resources.checkpoints.as_ref().map(|folder| Checkpoints { s3_uri: folder.to_string() }),
            tags: unique("--tag", &self.tags)?,
        };
        let spec = match &source {
            Some(source) => spec.with_source(source, &region),
            None => spec,
        };
        let sagemaker = SageMakerAccess { region: Some(region), ..sagemaker };
        Ok(TrainingPlan { sagemaker, s3, spec, source, usd_per_hour: self.price.hourly_price })
    }
}

/// Checks a plan, and starts it if `how` is given.
fn launch(args: &PlanArgs, how: Option<&StartArgs>) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let aws = Aws::new();
    let mut plan = args.plan(&aws, &control)?;
    let prices = args.price.prices(&plan.sagemaker, &plan.spec.resources.instance_type, &dirs)?;
    let found = with_progress("Preflight", &control, || preflight(&aws, &mut plan, &prices, &control))?;
    let Some(how) = how else {
        return report(&found, "the training job");
    };
    must_pass(&found, how.force)?;
    let records = TrainingRecords::of_dirs(&dirs);
    let folders = StartFolders { records: &records, unfinished: &dirs.uploads() };
    let started = with_progress("Starting", &control, || start(&aws, &plan, folders, now_ms(), &control));
    let record = started.map_err(|error| failed_start(&records, &plan.spec.job_name, error))?;
    writeln!(stdout(), "{}", record.spec.job_name)?;
    let named = NamedJob::started(aws, records, record);
    if !how.watch {
        eprintln!("watch it with: {}", watch_command(JobKind::Training, &named.name));
        return Ok(Outcome::AllWell);
    }
    let (control, _hook) = step_of(&control, ProgressUnit::Steps);
    let mut polled = named.polled(None, prices);
    conclude(&named, &see(&named, true, &control, || poll(&mut polled, &control))?, Format::Text)
}

fn show(args: &StatusArgs, is_watching: bool) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Steps)?;
    let (named, mut polled) = args.find(&control)?;
    conclude(&named, &see(&named, is_watching, &control, || poll(&mut polled, &control))?, args.output)
}

/// Prints the state of a job; fails if it is over and has no model.
fn conclude(named: &NamedJob<TrainingSpec>, progress: &TrainingProgress, format: Format) -> anyhow::Result<Outcome> {
    let NamedJob { name, record, .. } = named;
    match format {
        Format::Text => write(&mut stdout(), progress)?,
        Format::Json => writeln!(stdout(), "{:#}", progress.json())?,
    }
    for note in &progress.notes {
        eprintln!("note: {note}");
    }
    let training = &progress.training;
    if let Some(record) = record.as_ref().filter(|_| training.status.is_over()) {
        print_leftovers(record);
    }
    if let Some(problem) = training.problem() {
        bail!("job {name} has no complete model: {problem}. See its log with: spotcheck train logs {name}");
    }
    if training.status.is_over() {
        eprintln!(
            "predict with this model: spotcheck transform start IMAGES --output FOLDER --training-job {name} --image URI"
        );
    }
    Ok(Outcome::AllWell)
}

fn write(out: &mut dyn Write, progress: &TrainingProgress) -> anyhow::Result<()> {
    let training = &progress.training;
    let mut line = |what: &str, text: &str| writeln!(out, "{what:10} {text}");
    line("job", &training.spec.job_name)?;
    line("status", training.status.into_str())?;
    for phase in &training.result.phases {
        let at = local_time(phase.started_ms);
        line("phase", &format!("{at} {}: {}", phase.status, phase.status_message))?;
    }
    let is_over = training.status.is_over();
    line(
        "billed",
        &billed_text(training.spec.resources.instances(), training.status, progress.billed_s, progress.cost_usd),
    )?;
    for metric in &training.result.metrics {
        line("metric", &format!("{} = {}", metric.metric_name, metric.value))?;
    }
    if let Some(model) = training.result.model.archive.as_ref().filter(|_| is_over) {
        line("model", model)?;
    }
    let lines = &progress.log_tail;
    let shown = if training.problem().is_some() { LAST_LINES } else { LOG_LINES };
    for last in &lines[lines.len().saturating_sub(shown)..] {
        line("log", &last.message)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpi_options_may_contain_anything() {
        let mpi = |processes_per_host, options: &str| Mpi { processes_per_host, options: options.to_owned() };
        assert_eq!(parse_mpi("processes=8"), Ok(mpi(8, "")));
        assert_eq!(parse_mpi("processes=2,options=-x A=1,2 --mca btl ^tcp"), Ok(mpi(2, "-x A=1,2 --mca btl ^tcp")));
        for wrong in ["8", "processes=0", "processes=two", "options=-x"] {
            assert!(parse_mpi(wrong).is_err(), "{wrong}");
        }
    }
}
