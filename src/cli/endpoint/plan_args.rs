//! The flags that describe an endpoint, for the commands that look through one and deploy one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::EndpointContext;
use crate::aws::Aws;
use crate::cli::account::{Account, AccountArgs};
use crate::cli::place::{Place, S3Args};
use crate::cli::progress::with_progress;
use crate::cli::transform::package::{ARCHIVE, PackedHere, Packing};
use crate::cli::values::{parse_endpoint_name, parse_pair, parse_positive};
use crate::domain::{
    ArchiveContent, EndpointConfig, EndpointPlan, ModelSource, Preflight, S3Access, S3Address,
    dated_name, support_folder, usual_ami,
};
use crate::remote::endpoint::{Remains, preflight};
use crate::remote::transform::{NewArchive, NewModel, read_prices};
use crate::tasks::{TaskControl, now_ms};

/// An endpoint, and what is made for it.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// The endpoint's name; made of the model's and the time where it is not given
    #[arg(long, value_name = "NAME", value_parser = parse_endpoint_name)]
    name: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    instances: InstanceArgs,
    /// Deletes the endpoint after so many minutes, while Spotcheck runs or when it is started again
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    delete_after: Option<u32>,
    /// What an hour of one instance costs; from the table of prices where it is not given
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    hourly_price: Option<f64>,
    #[command(flatten)]
    account: AccountArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
struct ModelArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Where a model of this machine is uploaded to; it is deleted with the endpoint
    #[arg(long, value_name = "s3://BUCKET/FOLDER/")]
    upload_to: Option<S3Address>,
    /// The ARN of the role that the container runs as
    #[arg(long, value_name = "ARN")]
    role: Option<String>,
    /// The container in ECR; where it is not given, that of AWS for the archive, the region and the instance type: Ray Serve, or TensorFlow Serving
    #[arg(long, value_name = "URI")]
    image: Option<String>,
    /// A variable of the container
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    model_env: Vec<(String, String)>,
}

/// What answers.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct SourceArgs {
    /// A model of `spotcheck models list` or an ONNX file; packed and uploaded
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    /// What `transform package` wrote: a local file, which is uploaded, or `s3://bucket/…/model.tar.gz`
    #[arg(long, value_name = "FILE|s3://…")]
    archive: Option<PathBuf>,
    /// A TensorFlow `SavedModel`, as `transform package` takes it; packed for AWS's TensorFlow Serving container and uploaded
    #[arg(long, value_name = "FOLDER")]
    saved_model: Option<PathBuf>,
    /// A model that SageMaker has already
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Instances")]
struct InstanceArgs {
    /// `ml.m5.xlarge`
    #[arg(long, value_name = "TYPE")]
    instance_type: String,
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    instance_count: u32,
    /// The system of instances with a graphics card, with its driver; the one with CUDA 12.4 where it is not given
    #[arg(long, value_name = "VERSION")]
    ami_version: Option<String>,
    /// How long the container may take until it is ready (60 to 3600)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..=3600))]
    startup_timeout_s: Option<u32>,
    /// How long fetching the model onto an instance may take (60 to 3600)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..=3600))]
    download_timeout_s: Option<u32>,
    /// A key for the disks of the instances
    #[arg(long, value_name = "KEY")]
    volume_kms_key: Option<String>,
    /// Of the endpoint, its configuration, and a model that is made for it
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_pair)]
    tags: Vec<(String, String)>,
}

/// An endpoint on the command line.
pub(super) struct Planned {
    pub(super) plan: EndpointPlan,
    /// What is packed first.
    packing: Option<Packing>,
}

/// Which model is to answer.
enum Wanted {
    /// SageMaker has it, by this name.
    Existing(String),
    New(NewModel),
}

impl PlanArgs {
    /// A plan, with all that can be known of it without asking anybody but for the region, and for what an archive in S3 holds.
    pub(super) fn plan(&self, aws: &Aws, control: &TaskControl) -> anyhow::Result<Planned> {
        self.account.tell_doubts();
        let mut access = self.account.sagemaker();
        let region = aws.sagemaker(&access).region(Some(control))?;
        access.region = Some(region.clone());
        let s3 = self.account.over(S3Access::default());
        let name = self.name.clone();
        let name = name.unwrap_or_else(|| dated_name(&self.model.source.stem(), now_ms()));
        let instances = &self.instances;
        let instance_type = &instances.instance_type;
        let tags: BTreeMap<String, String> = instances.tags.iter().cloned().collect();
        let (model_name, source) = match self.model.wanted(&name, &tags)? {
            Wanted::Existing(model_name) => (model_name, ModelSource::Existing),
            Wanted::New(model) => {
                let source = model.source(&aws.s3(&s3), &region, instance_type, control)?;
                (name.clone(), source)
            }
        };
        let ami_version = instances.ami_version.clone();
        let plan = EndpointPlan {
            sagemaker: access,
            s3,
            model: source,
            config: EndpointConfig {
                name,
                model_name,
                instance_type: Some(instance_type.clone()),
                instance_count: instances.instance_count,
                ami_version: ami_version.or_else(|| usual_ami(instance_type).map(str::to_owned)),
                startup_timeout_s: instances.startup_timeout_s,
                download_timeout_s: instances.download_timeout_s,
                kms_key: instances.volume_kms_key.clone(),
                tags,
            },
            usd_per_hour: self.hourly_price,
            delete_after_ms: self.delete_after.map(|minutes| i64::from(minutes) * 60_000),
        };
        Ok(Planned {
            plan,
            packing: self.model.source.packing(),
        })
    }
}

impl Planned {
    pub(super) fn name(&self) -> &str {
        &self.plan.config.name
    }

    /// Empty where nobody said it.
    pub(super) fn region(&self) -> &str {
        self.plan.sagemaker.region.as_deref().unwrap_or_default()
    }

    /// Packs the model, where one is to be packed: the plan's archive is there then, as long as what is returned is held.
    pub(super) fn pack(&mut self, control: &TaskControl) -> anyhow::Result<Option<PackedHere>> {
        let (Some(packing), ModelSource::New { local_archive, .. }) =
            (&self.packing, &mut self.plan.model)
        else {
            return Ok(None);
        };
        let instance_type = self
            .plan
            .config
            .instance_type
            .as_deref()
            .unwrap_or_default();
        let packed = packing.pack(instance_type, control)?;
        *local_archive = Some(packed.path.clone());
        Ok(Some(packed))
    }

    /// Looks the plan through, and sets the price in it.
    pub(super) fn preflight(
        &mut self,
        aws: &Aws,
        remains: Remains,
        context: &EndpointContext,
    ) -> anyhow::Result<Preflight> {
        let EndpointContext {
            control, records, ..
        } = context;
        let prices = read_prices(&context.dirs.prices())?;
        let checked = with_progress("Preflight", control, || {
            preflight(aws, records, self.plan.clone(), remains, &prices, control)
        })?;
        self.plan = checked.plan;
        Ok(checked.preflight)
    }
}

impl SourceArgs {
    /// What the endpoint is named after.
    fn stem(&self) -> String {
        let file = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            let end = [".tar.gz", ".tgz", ".onnx"];
            let stem = end.iter().find_map(|end| name.strip_suffix(end));
            Some(stem.unwrap_or(name).to_owned())
        };
        let named = self.model_name.clone();
        let named = named.or_else(|| file(Path::new(self.model.as_ref()?)));
        let named = named.or_else(|| file(self.archive.as_ref()?));
        let named = named.or_else(|| file(self.saved_model.as_ref()?));
        named.unwrap_or_else(|| "endpoint".to_owned())
    }

    fn packing(&self) -> Option<Packing> {
        let model = self.model.clone().map(Packing::Model);
        model.or_else(|| self.saved_model.clone().map(Packing::SavedModel))
    }
}

impl ModelArgs {
    fn wanted(&self, endpoint: &str, tags: &BTreeMap<String, String>) -> anyhow::Result<Wanted> {
        if let Some(name) = &self.source.model_name {
            let is_of_new_model = self.role.is_some()
                || self.image.is_some()
                || self.upload_to.is_some()
                || !self.model_env.is_empty();
            if is_of_new_model {
                bail!(
                    "--role, --image, --upload-to and --model-env are for a model that is made for the endpoint; the model {name} is there already"
                );
            }
            return Ok(Wanted::Existing(name.clone()));
        }
        let Some(role) = self.role.clone() else {
            bail!(
                "a new model needs --role, the ARN of a role that SageMaker may take on, such as arn:aws:iam::123456789012:role/SageMaker"
            );
        };
        Ok(Wanted::New(NewModel {
            name: endpoint.to_owned(),
            role,
            image: self.image.clone(),
            archive: self.archive(endpoint)?,
            environment: self.model_env.iter().cloned().collect(),
            tags: tags.clone(),
        }))
    }

    /// A model that is yet to be packed is nowhere.
    fn archive(&self, endpoint: &str) -> anyhow::Result<NewArchive> {
        let (path, content) = match (&self.source.archive, &self.source.saved_model) {
            (Some(path), _) => match Place::parse(path, &S3Args::default())? {
                Place::S3(_) if self.upload_to.is_some() => bail!(
                    "--upload-to is for a model of this machine, and this one lies in S3 already"
                ),
                Place::S3(place) => return Ok(NewArchive::There(place.address)),
                Place::Path(path) => (path, None),
                Place::Stdin => bail!("the archive is a file or lies in S3"),
            },
            (None, Some(_)) => (PathBuf::from(ARCHIVE), Some(ArchiveContent::SavedModel)),
            (None, None) => (PathBuf::from(ARCHIVE), Some(ArchiveContent::Onnx)),
        };
        let Some(folder) = &self.upload_to else {
            bail!(
                "SageMaker takes a model from S3; --upload-to s3://bucket/folder/ says where it is uploaded to"
            );
        };
        let folder = support_folder(folder, endpoint);
        let to = S3Address::new(&folder.bucket, format!("{}{ARCHIVE}", folder.prefix));
        Ok(NewArchive::Here { path, to, content })
    }
}
