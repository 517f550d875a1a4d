//! The flags that describe an endpoint, for `deploy` and `preflight`.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{ArgGroup, Args};

use super::EndpointContext;
use crate::aws::Aws;
use crate::cli::account::{Account, AccountArgs};
use crate::cli::progress::with_progress;
use crate::cli::transform::model_source::ModelSourceArgs;
use crate::cli::transform::package::{PackedHere, Packing};
use crate::cli::values::{parse_endpoint_name, parse_pair, parse_positive};
use crate::domain::{S3Access, S3Address};
use crate::sagemaker::endpoints::{Leftovers, preflight};
use crate::sagemaker::jobs::{NewArchive, read_prices};
use crate::sagemaker::spec::endpoint::{EndpointConfig, EndpointPlan, default_ami};
use crate::sagemaker::spec::transform::{ModelSource, Preflight, archive_address, dated_name};
use crate::tasks::{TaskControl, now_ms};

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
    group = ArgGroup::new("source").args(["model", "archive", "saved_model", "model_name"]).required(true)
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
    #[arg(long, value_name = "TYPE")]
    instance_type: String,
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
        self.account.warn_if_unknown();
        let mut access = self.account.sagemaker();
        let region = aws.sagemaker(&access).region(Some(control))?;
        access.region = Some(region.clone());
        let s3 = self.account.over(S3Access::default());
        let source = &self.model.source;
        let name = self.name.clone();
        let name = name.unwrap_or_else(|| dated_name(&source.stem(), now_ms()));
        let instances = &self.instances;
        let instance_type = &instances.instance_type;
        let tags: BTreeMap<String, String> = instances.tags.iter().cloned().collect();
        let upload_to = self.model.upload_to.as_ref();
        let archive_to = upload_to.map(|folder| archive_address(folder, &name));
        let (model_name, model) = source.model(&name, archive_to, &tags)?;
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
                instance_type: Some(instance_type.clone()),
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
        Ok(Planned { plan, packing: source.packing() })
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
        let checked = with_progress("Preflight", control, || {
            preflight(aws, records, self.plan.clone(), remains, &prices, control)
        })?;
        self.plan = checked.plan;
        Ok(checked.preflight)
    }
}
