//! `spotcheck transform retry`: sends the images of a job without an output again.

use clap::Args;

use super::job_args::Planned;
use super::named_job::NamedJob;
use super::start::{LaunchArgs, start};
use crate::cli::Outcome;
use crate::cli::place::S3Args;
use crate::cli::progress::with_progress;
use crate::cli::terminal::interruptible;
use crate::cli::values::{parse_job_name, parse_pair};
use crate::dirs::AppDirs;
use crate::domain::counted;
use crate::sagemaker::jobs::{PlannedRetry, Retry, RetryChanges, outcome, plan_retry, read_prices};
use crate::sagemaker::spec::transform::{ModelSource, RetryChoice};
use crate::tasks::{ProgressUnit, now_ms};

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Name of a job that has ended
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// Send all images without an output, even those that the model rejected, and even if the job failed before its
    /// first output
    #[arg(long)]
    all: bool,
    /// Environment variable for the model's container, if the model was deleted and is created again; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    model_env: Vec<(String, String)>,
    /// Maximum payload per request in MB [default: as in the job, or what the largest failed image needs]
    #[arg(long, value_name = "MB")]
    max_payload_mb: Option<u32>,
    /// Maximum parallel requests per instance [default: as in the job]
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,
    /// EC2 instance type [default: as in the job]
    #[arg(long, value_name = "TYPE")]
    instance_type: Option<String>,
    #[command(flatten)]
    how: LaunchArgs,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) fn run(args: &RetryArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let named = NamedJob::find(&args.job, &args.s3, &dirs, &control)?;
    let PlannedRetry { plan, notes, doubt } =
        with_progress("Checking which images have no output", &control, || plan_of(args, &named, &control))?;
    if !args.model_env.is_empty() && plan.model == ModelSource::Existing {
        anyhow::bail!("model {} already exists with its own environment; omit --model-env", plan.spec.model_name);
    }
    let count = plan.manifest.as_ref().map_or(0, |manifest| manifest.names.len());
    match doubt {
        Some(doubt) if !args.all => {
            anyhow::bail!("{doubt}. Nothing was started; send all images with --all")
        }
        Some(doubt) => eprintln!("note: {doubt}"),
        None => {}
    }
    eprintln!("resending {} without an output", counted(count, "image", "images"));
    for note in notes {
        eprintln!("note: {note}");
    }
    let prices = read_prices(&dirs.prices())?;
    start(&named.aws, Planned::new(plan), prices, &args.how, &dirs, &control)
}

fn plan_of(args: &RetryArgs, named: &NamedJob, control: &crate::tasks::TaskControl) -> anyhow::Result<PlannedRetry> {
    let sagemaker = named.aws.sagemaker(&named.sagemaker);
    let job = sagemaker.describe_transform_job(&args.job, Some(control))?;
    if !job.status.is_over() {
        anyhow::bail!(
            "job {} is {}; wait until it ends, because its images may still get an output",
            args.job,
            job.status.into_str()
        );
    }
    let asked = (&named.sagemaker, &named.s3);
    let found = outcome(&named.aws, asked, &job, &named.records, control)?;
    let retry = Retry {
        sagemaker: &named.sagemaker,
        s3: &named.s3,
        job: &job,
        record: named.record.as_ref(),
        outcome: &found,
        choice: if args.all { RetryChoice::All } else { RetryChoice::NotRefused },
        changes: RetryChanges {
            max_payload_mb: args.max_payload_mb,
            max_concurrent: args.max_concurrent,
            instance_type: args.instance_type.clone(),
        },
        model_environment: args.model_env.iter().cloned().collect(),
    };
    Ok(plan_retry(&named.aws, &retry, now_ms(), control)?)
}
