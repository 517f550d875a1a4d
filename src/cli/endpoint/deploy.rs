//! `spotcheck endpoint deploy` and `preflight`: check the plan of an endpoint before it costs money, and deploy a model
//! to it.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::bail;
use clap::{ArgGroup, Args};

use super::EndpointContext;
use super::status::{CostSoFar, print_deletion_time, settled};
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::terminal::{stdout, with_progress};
use crate::cli::transform::package::{ModelSourceArgs, PackedHere, Packing};
use crate::cli::transform::start::{must_pass, report};
use crate::cli::values::{Account, AccountArgs, parse_endpoint_name, parse_pair, parse_positive};
use crate::domain::{S3Access, S3Address};
use crate::sagemaker::JobError;
use crate::sagemaker::endpoints::{Deletion, DeployError, Leftovers, deploy, preflight};
use crate::sagemaker::jobs::{NewArchive, read_prices};
use crate::sagemaker::spec::endpoint::{EndpointConfig, EndpointPlan, EndpointStatus, Serverless, default_ami};
use crate::sagemaker::spec::transform::{ModelSource, Preflight, archive_address, dated_name};
use crate::tasks::{TaskControl, now_ms};

#[derive(Debug, Args)]
pub(crate) struct DeployArgs {
    /// Deploy even if the preflight finds problems
    #[arg(long)]
    force: bool,
    /// Return before the endpoint is ready
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    plan: PlanArgs,
}

pub(crate) fn run(args: &DeployArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let control = &context.control;
    let aws = Aws::new();
    let mut planned = args.plan.plan(&aws, control)?;
    delete_leftovers(&aws, &planned, context)?;
    let _packed = planned.pack(control)?;
    let found = planned.preflight(&aws, Leftovers::Block, context)?;
    must_pass(&found, args.force)?;
    let mut record = planned.plan.record(now_ms());
    let unfinished = context.dirs.uploads();
    let deployed = with_progress("Deploying", control, || {
        deploy(&aws, &context.records, &mut record, &planned.plan, &unfinished, control)
    });
    if let Err(error) = deployed {
        return Err(failed(&error, planned.name()));
    }
    CostSoFar::from_record(&record, None).print_note(now_ms());
    print_deletion_time(&record, now_ms());
    if !args.no_wait {
        return settled(&aws.sagemaker(&planned.plan.sagemaker), planned.name(), control);
    }
    writeln!(stdout(), "{}", planned.name())?;
    Ok(Outcome::AllWell)
}

/// Deletes what an endpoint with the same name left behind, if the endpoint itself does not exist.
fn delete_leftovers(aws: &Aws, planned: &Planned, context: &EndpointContext) -> anyhow::Result<()> {
    let (name, region) = (planned.name(), planned.region());
    let left = Deletion::plan(aws, &context.records, &planned.plan.sagemaker, name, false, &context.control);
    let left = match left {
        Err(JobError::NoEndpoint { .. }) => return Ok(()),
        left => left?,
    };
    match left.status {
        None => {}
        Some(EndpointStatus::Deleting) => {
            bail!("endpoint {name} in {region} is being deleted; wait a few minutes, or choose another name")
        }
        Some(_) => bail!(
            "endpoint {name} already exists in {region}; choose another name, or delete it with: spotcheck endpoint \
             delete {name}"
        ),
    }
    let stays = left.to_keep().len();
    let done = left.carry_out(aws, &context.records, &context.control)?;
    for what in &done.deleted {
        eprintln!("deleted {what}, which an earlier endpoint of this name left behind");
    }
    if done.kept.len() > stays {
        bail!(
            "an earlier endpoint of this name left something that could not be deleted: {}. Choose another name",
            done.kept_text()
        );
    }
    Ok(())
}

fn failed(error: &DeployError, name: &str) -> anyhow::Error {
    if error.done.kept.is_empty() {
        return anyhow::anyhow!("{error}");
    }
    anyhow::anyhow!("{error}\nDelete it with: spotcheck endpoint delete {name}")
}

/// An endpoint and its model.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Endpoint name [default: the model's name and the time]
    #[arg(long, value_name = "NAME", value_parser = parse_endpoint_name)]
    name: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    instances: InstanceArgs,
    /// Delete the endpoint after this many minutes or, if Spotcheck is not running then, at its next start [default:
    /// never]
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    delete_after: Option<u32>,
    /// Price of one instance in USD per hour [default: from the price table]
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    hourly_price: Option<f64>,
    #[command(flatten)]
    account: AccountArgs,
}

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Model",
    group = ArgGroup::new("source").args(["model", "archive", "saved_model", "training_job", "model_name"]).required(true)
)]
struct ModelArgs {
    #[command(flatten)]
    source: ModelSourceArgs,
    /// S3 folder to upload a local model to; deleted with the endpoint
    #[arg(long, value_name = "s3://BUCKET/FOLDER/")]
    upload_to: Option<S3Address>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Instances")]
struct InstanceArgs {
    /// EC2 instance type, for example ml.m5.xlarge
    #[arg(long, value_name = "TYPE", required_unless_present = "serverless_memory_mb")]
    instance_type: Option<String>,
    /// Serverless endpoint with this much memory in MB (1024 to 6144), billed only for requests
    #[arg(
        long,
        value_name = "MB",
        conflicts_with_all = ["instance_type", "instance_count", "ami_version", "volume_kms_key", "hourly_price"]
    )]
    serverless_memory_mb: Option<u32>,
    /// Maximum parallel requests of a serverless endpoint (1 to 200)
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with = "instance_type")]
    serverless_concurrency: u32,
    /// Number of instances (1 to 100)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    instance_count: u32,
    /// AMI of GPU instances, which determines the driver [default: the AMI with CUDA 12.4]
    #[arg(long, value_name = "VERSION")]
    ami_version: Option<String>,
    /// Container startup health check timeout in seconds (60 to 3600) [default: chosen by SageMaker]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..=3600))]
    startup_timeout_s: Option<u32>,
    /// Model data download timeout in seconds (60 to 3600) [default: chosen by SageMaker]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..=3600))]
    download_timeout_s: Option<u32>,
    /// KMS key for the instances' volumes
    #[arg(long, value_name = "KEY")]
    volume_kms_key: Option<String>,
    /// Tag for the endpoint, its configuration and a new model; repeatable
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_pair)]
    tags: Vec<(String, String)>,
}

/// An endpoint planned on the command line.
pub(crate) struct Planned {
    pub(crate) plan: EndpointPlan,
    /// The model to pack first.
    packing: Option<Packing>,
}

impl PlanArgs {
    /// The plan before the preflight. Queries AWS for the region and the content of an archive in S3.
    pub(crate) fn plan(&self, aws: &Aws, control: &TaskControl) -> anyhow::Result<Planned> {
        let packing = self.model.source.packing(control)?;
        let mut access = self.account.sagemaker();
        let client = aws.sagemaker(&access);
        let region = client.region(control)?;
        access.region = Some(region.clone());
        let s3 = self.account.over(S3Access::default());
        let source = &self.model.source;
        let name = self.name.clone();
        let name = name.unwrap_or_else(|| dated_name(&source.stem(), now_ms()));
        let instances = &self.instances;
        let instance_type = instances.instance_type.as_deref().unwrap_or_default();
        let tags: BTreeMap<String, String> = instances.tags.iter().cloned().collect();
        let upload_to = self.model.upload_to.as_ref();
        let archive_to = upload_to.map(|folder| archive_address(folder, &name));
        let (model_name, model) = source.model((&client, control), &name, archive_to, &tags)?;
        let archive = model.as_ref().map(|model| &model.archive);
        if upload_to.is_some() && !matches!(archive, Some(NewArchive::Here { .. })) {
            bail!("--upload-to is for a local model, but this one is already in AWS; remove it");
        }
        let model = match model {
            Some(model) => model.source(&aws.s3(&s3), &region, instance_type, control)?,
            None => ModelSource::Existing,
        };
        let ami_version = instances.ami_version.clone();
        let plan = EndpointPlan {
            sagemaker: access,
            s3,
            model,
            config: EndpointConfig {
                name,
                model_name,
                instance_type: instances.instance_type.clone(),
                serverless: instances
                    .serverless_memory_mb
                    .map(|memory_mb| Serverless { memory_mb, max_concurrency: instances.serverless_concurrency }),
                instance_count: instances.instance_count,
                ami_version: ami_version.or_else(|| default_ami(instance_type).map(str::to_owned)),
                startup_timeout_s: instances.startup_timeout_s,
                download_timeout_s: instances.download_timeout_s,
                kms_key: instances.volume_kms_key.clone(),
                tags,
            },
            usd_per_hour: self.hourly_price,
            delete_after_ms: self.delete_after.map(|minutes| i64::from(minutes) * 60_000),
        };
        Ok(Planned { plan, packing })
    }
}

impl Planned {
    pub(crate) fn name(&self) -> &str {
        &self.plan.config.name
    }

    pub(crate) fn region(&self) -> &str {
        self.plan.sagemaker.region.as_deref().unwrap_or_default()
    }

    /// Packs the model, if needed. The plan's archive exists as long as the returned value.
    pub(crate) fn pack(&mut self, control: &TaskControl) -> anyhow::Result<Option<PackedHere>> {
        let Some(packing) = &self.packing else {
            return Ok(None);
        };
        let plan = &mut self.plan;
        let instance_type = plan.config.instance_type.as_deref().unwrap_or_default();
        Ok(Some(packing.pack(&mut plan.model, instance_type, control)?))
    }

    /// Checks the plan, and sets its price.
    pub(crate) fn preflight(
        &mut self,
        aws: &Aws,
        remains: Leftovers,
        context: &EndpointContext,
    ) -> anyhow::Result<Preflight> {
        let EndpointContext { control, records, .. } = context;
        let prices = read_prices(&context.dirs.prices())?;
        Ok(with_progress("Preflight", control, || preflight(aws, records, &mut self.plan, remains, &prices, control))?)
    }
}

pub(crate) fn run_preflight(args: &PlanArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let aws = Aws::new();
    let mut planned = args.plan(&aws, &context.control)?;
    let _packed = planned.pack(&context.control)?;
    // `deploy` also deletes the remains of an earlier endpoint first.
    let found = planned.preflight(&aws, Leftovers::Go, context)?;
    report(&found, "the endpoint")
}
