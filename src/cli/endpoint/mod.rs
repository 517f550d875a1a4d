//! `spotcheck endpoint`: real-time endpoints of SageMaker. Predictions through one: `spotcheck predict --endpoint`.

mod keeper;

use std::io::Write;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::Outcome;
use super::progress::with_progress;
use crate::aws::{Aws, SageMaker};
use crate::dirs::AppDirs;
use crate::domain::{
    Credentials, Endpoint, EndpointConfig, EndpointQuery, EndpointStatus, ModelSpec, S3Address,
    SageMakerAccess, cost_usd, dated_name, default_image, human_usd, name_problem, role_problem,
};
use crate::remote::endpoint::{EndpointRecord, EndpointRecords, delete, deploy, wait_for};
use crate::remote::transform::read_prices;
use crate::tasks::{ProgressUnit, TaskControl, now_ms};

pub(super) use keeper::Keeper;

#[derive(Debug, Args)]
pub(super) struct EndpointArgs {
    #[command(subcommand)]
    command: EndpointCommand,
}

#[derive(Debug, Subcommand)]
enum EndpointCommand {
    /// Make a model answer at an endpoint. It costs money until it is deleted
    Deploy(Box<DeployArgs>),
    /// How an endpoint is, and what it has cost so far
    Status(StatusArgs),
    /// The endpoints of the account and region, the newest first
    List(ListArgs),
    /// Delete an endpoint with its configuration, and its model where it was made for it
    Delete(DeleteArgs),
}

/// Who asks, and where.
#[derive(Debug, Clone, Args)]
struct WhoArgs {
    /// A profile of your AWS configuration; never another one, whatever the environment says
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// As your AWS configuration says where it is not given
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

#[derive(Debug, Args)]
struct DeployArgs {
    /// The endpoint's name; made of the model's and the time where it is not given
    #[arg(long)]
    name: Option<String>,
    /// A model that SageMaker knows already
    #[arg(long, value_name = "NAME", required_unless_present = "archive", conflicts_with_all = ["archive", "role", "image"])]
    model_name: Option<String>,
    /// The `model.tar.gz` of `spotcheck transform package`, in S3; a model is made of it, and deleted with the endpoint
    #[arg(long, value_name = "s3://…/model.tar.gz", requires = "role")]
    archive: Option<S3Address>,
    /// The ARN of the role that the container runs as
    #[arg(long, value_name = "ARN")]
    role: Option<String>,
    /// The container's URI; AWS's Ray Serve for the region and the instance where it is not given
    #[arg(long, value_name = "URI")]
    image: Option<String>,
    /// `ml.m5.xlarge`
    #[arg(long, value_name = "TYPE")]
    instance_type: String,
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    instance_count: u32,
    /// The system of instances with a graphics card, with its driver: `al2-ami-sagemaker-inference-gpu-3-1`
    #[arg(long, value_name = "VERSION")]
    ami_version: Option<String>,
    /// Deletes the endpoint after so many minutes, while Spotcheck runs or when it is started again
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    delete_after: Option<u32>,
    /// What an hour of one instance costs; from the table of prices where it is not given
    #[arg(long, value_name = "USD")]
    hourly_price: Option<f64>,
    /// Does not wait until the endpoint answers
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    who: WhoArgs,
}

#[derive(Debug, Args)]
struct StatusArgs {
    name: String,
    /// Waits until it does not change by itself any more
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    who: WhoArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only those with this in their name
    #[arg(long, value_name = "TEXT")]
    name_contains: Option<String>,
    #[command(flatten)]
    who: WhoArgs,
}

#[derive(Debug, Args)]
struct DeleteArgs {
    name: String,
    /// Also a model that was not made for this endpoint
    #[arg(long)]
    with_model: bool,
    #[command(flatten)]
    who: WhoArgs,
}

pub(super) fn run(args: &EndpointArgs) -> anyhow::Result<Outcome> {
    let control = TaskControl::new(ProgressUnit::Images);
    let on_interrupt = control.clone();
    ctrlc::set_handler(move || on_interrupt.cancel()).context("Could not listen for Ctrl+C")?;
    let records = records(&AppDirs::find()?);
    match &args.command {
        EndpointCommand::Deploy(args) => run_deploy(args, &records, &control),
        EndpointCommand::Status(args) => run_status(args, &records, &control),
        EndpointCommand::List(args) => run_list(args, &control),
        EndpointCommand::Delete(args) => run_delete(args, &records, &control),
    }
}

fn records(dirs: &AppDirs) -> EndpointRecords {
    EndpointRecords::in_folder(dirs.data.join("endpoints"))
}

impl WhoArgs {
    fn access(&self) -> SageMakerAccess {
        SageMakerAccess {
            credentials: match &self.profile {
                Some(name) => Credentials::Profile(name.clone()),
                None => Credentials::Ambient,
            },
            region: self.region.clone(),
        }
    }

    /// Where nothing is said, as the endpoint was deployed from here.
    fn of_named(&self, name: &str, records: &EndpointRecords) -> SageMakerAccess {
        let is_given = self.profile.is_some() || self.region.is_some();
        let known = records
            .all()
            .0
            .into_iter()
            .find(|record| record.name == name);
        match known {
            Some(record) if !is_given => record.sagemaker,
            _ => self.access(),
        }
    }
}

fn run_deploy(
    args: &DeployArgs,
    records: &EndpointRecords,
    control: &TaskControl,
) -> anyhow::Result<Outcome> {
    let aws = Aws::new();
    let mut access = args.who.access();
    let region = aws.sagemaker(&access).region(Some(control))?;
    access.region = Some(region.clone());
    let sagemaker = aws.sagemaker(&access);
    let stem = match (&args.model_name, &args.archive) {
        (Some(model), _) => model.as_str(),
        (None, Some(archive)) => archive.last_part().trim_end_matches(".tar.gz"),
        (None, None) => "endpoint",
    };
    let now = now_ms();
    let name = match &args.name {
        Some(name) => name.clone(),
        None => dated_name(stem, now),
    };
    if let Some(problem) = name_problem(&name) {
        bail!("the endpoint's name {problem}");
    }
    let model = new_model(args, &name, &region)?;
    let prices = read_prices(&AppDirs::find()?.prices())?;
    let price = prices.find(&args.instance_type, Some(&region));
    let usd_per_hour = args.hourly_price.or(price.map(|price| price.usd_per_hour));
    let record = EndpointRecord {
        sagemaker: access,
        name: name.clone(),
        config: EndpointConfig {
            name: name.clone(),
            model_name: match (&model, &args.model_name) {
                (Some(model), _) => model.name.clone(),
                (None, name) => name.clone().unwrap_or_default(),
            },
            instance_type: Some(args.instance_type.clone()),
            instance_count: args.instance_count,
            ami_version: args.ami_version.clone(),
            startup_timeout_s: None,
            kms_key: None,
            tags: std::collections::BTreeMap::new(),
        },
        owns_model: model.is_some(),
        usd_per_hour,
        created_ms: now,
        delete_at_ms: args
            .delete_after
            .map(|minutes| now + i64::from(minutes) * 60_000),
    };
    if records.find(&name, &region).is_some()
        || sagemaker.describe_endpoint(&name, Some(control))?.is_some()
    {
        bail!(
            "there is an endpoint {name} in {region} already; choose another name, or delete that one"
        );
    }
    let deployed = with_progress("Deploying", control, || {
        deploy(&sagemaker, records, &record, model.as_ref(), control)
    });
    if let Err(error) = deployed {
        bail!("{error}\nWhat was made for it before goes with: spotcheck endpoint delete {name}");
    }
    tell_cost(&record, now);
    match args.delete_after {
        Some(minutes) => eprintln!(
            "it will be deleted in {minutes} minutes, by a Spotcheck that runs then or is started later"
        ),
        None => eprintln!("it costs money until: spotcheck endpoint delete {name}"),
    }
    if !args.no_wait {
        return settled(&sagemaker, &name, control);
    }
    println_name(&name)?;
    Ok(Outcome::AllWell)
}

fn new_model(args: &DeployArgs, name: &str, region: &str) -> anyhow::Result<Option<ModelSpec>> {
    let Some(archive) = &args.archive else {
        return Ok(None);
    };
    let role = args.role.clone().unwrap_or_default();
    if let Some(problem) = role_problem(&role) {
        bail!("the role {problem}");
    }
    Ok(Some(ModelSpec {
        name: name.to_owned(),
        image: match &args.image {
            Some(image) => image.clone(),
            None => default_image(region, &args.instance_type),
        },
        archive: archive.clone(),
        role,
        environment: std::collections::BTreeMap::new(),
        tags: std::collections::BTreeMap::new(),
    }))
}

fn settled(sagemaker: &SageMaker, name: &str, control: &TaskControl) -> anyhow::Result<Outcome> {
    let found = with_progress("Waiting", control, || wait_for(sagemaker, name, control))?;
    let endpoint = found.with_context(|| format!("the endpoint {name} is gone"))?;
    conclude(&endpoint)
}

/// On stdout, its name and status.
fn conclude(endpoint: &Endpoint) -> anyhow::Result<Outcome> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}\t{}", endpoint.name, endpoint.status)?;
    if matches!(
        endpoint.status,
        EndpointStatus::Failed | EndpointStatus::UpdateRollbackFailed
    ) {
        let why = endpoint
            .failure
            .as_deref()
            .unwrap_or("AWS does not say why");
        bail!(
            "the endpoint {name} failed: {why}; its log is /aws/sagemaker/Endpoints/{name}, and this deletes it: spotcheck endpoint delete {name}",
            name = endpoint.name
        );
    }
    Ok(Outcome::AllWell)
}

fn println_name(name: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{name}")?)
}

/// Each instance is billed from its start on; a little less than this.
fn tell_cost(record: &EndpointRecord, now_ms: i64) {
    let instances = record.config.instance_count;
    let Some(price) = record.usd_per_hour else {
        eprintln!(
            "what it costs is not known: add the instance's price with --hourly-price, or to the table of prices"
        );
        return;
    };
    let hours = cost_usd(price, instances, 3600.0);
    let seconds = (now_ms - record.created_ms).max(0) as f64 / 1e3;
    eprintln!(
        "cost so far: about {}, {} an hour",
        human_usd(cost_usd(price, instances, seconds)),
        human_usd(hours)
    );
}

fn run_status(
    args: &StatusArgs,
    records: &EndpointRecords,
    control: &TaskControl,
) -> anyhow::Result<Outcome> {
    let sagemaker = Aws::new().sagemaker(&args.who.of_named(&args.name, records));
    let region = sagemaker.region(Some(control))?;
    if let Some(record) = records.find(&args.name, &region) {
        tell_cost(&record, now_ms());
        if let Some(at) = record.delete_at_ms {
            let minutes = (at - now_ms()).max(0) / 60_000;
            eprintln!("it will be deleted in {minutes} minutes");
        }
    }
    if args.watch {
        return settled(&sagemaker, &args.name, control);
    }
    match sagemaker.describe_endpoint(&args.name, Some(control))? {
        Some(endpoint) => conclude(&endpoint),
        None => bail!("there is no endpoint {} in {region}", args.name),
    }
}

fn run_list(args: &ListArgs, control: &TaskControl) -> anyhow::Result<Outcome> {
    let sagemaker = Aws::new().sagemaker(&args.who.access());
    let mut query = EndpointQuery {
        name_contains: args.name_contains.clone(),
        ..EndpointQuery::default()
    };
    let mut out = std::io::stdout().lock();
    loop {
        let page = sagemaker.list_endpoints(&query, Some(control))?;
        for endpoint in page.endpoints {
            writeln!(out, "{}\t{}", endpoint.name, endpoint.status)?;
        }
        match page.next {
            Some(next) => query.page_token = Some(next),
            None => return Ok(Outcome::AllWell),
        }
    }
}

fn run_delete(
    args: &DeleteArgs,
    records: &EndpointRecords,
    control: &TaskControl,
) -> anyhow::Result<Outcome> {
    let access = args.who.of_named(&args.name, records);
    let aws = Aws::new();
    let done = delete(&aws, records, &access, &args.name, args.with_model, control)?;
    let mut out = std::io::stdout().lock();
    for what in &done.deleted {
        writeln!(out, "deleted {what}")?;
    }
    for (what, why) in &done.kept {
        writeln!(out, "kept {what}: {why}")?;
    }
    eprintln!("the archive of a model in S3 stays where it is");
    Ok(Outcome::AllWell)
}
