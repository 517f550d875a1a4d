//! `spotcheck endpoint deploy`: a model answers at an endpoint.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::Desk;
use super::status::{CostSoFar, settled, tell_end};
use crate::aws::{Aws, SageMaker};
use crate::cli::Outcome;
use crate::cli::account::{Account, AccountArgs};
use crate::cli::place::{Place, S3Args};
use crate::cli::progress::with_progress;
use crate::cli::transform::package::{ARCHIVE, pack_for};
use crate::cli::transform::preflight;
use crate::cli::values::{parse_pair, parse_positive};
use crate::domain::{
    ArchiveContent, CheckGrade, EndpointConfig, EndpointRecord, EndpointStatus, InstanceType,
    ModelSource, ModelSpec, Preflight, S3Access, S3Address, SageMakerAccess, dated_name,
    default_image, name_problem, support_folder,
};
use crate::remote::endpoint::{Deletion, EndpointError, LocalArchive, deploy, send_archive};
use crate::remote::package::peek_file;
use crate::remote::transform::{ModelPlan, preflight_model, read_prices};
use crate::tasks::{TaskControl, now_ms};

#[derive(Debug, Args)]
pub(super) struct DeployArgs {
    /// The endpoint's name; made of the model's and the time where it is not given
    #[arg(long, value_name = "NAME")]
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
    /// Does not wait until the endpoint answers
    #[arg(long)]
    no_wait: bool,
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
    /// The container's URI; AWS's Ray Serve for the region and the instance where it is not given
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
    /// The system of instances with a graphics card, with its driver: `al2-ami-sagemaker-inference-gpu-3-1`
    #[arg(long, value_name = "VERSION")]
    ami_version: Option<String>,
    /// How long the container may take until it is ready (60 to 3600)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..=3600))]
    startup_timeout_s: Option<u32>,
    /// A key for the disks of the instances
    #[arg(long, value_name = "KEY")]
    volume_kms_key: Option<String>,
    /// Of the endpoint's configuration, and of a model that is made for it
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_pair)]
    tags: Vec<(String, String)>,
}

pub(super) fn run(args: &DeployArgs, desk: &Desk) -> anyhow::Result<Outcome> {
    let control = &desk.control;
    let aws = Aws::new();
    let mut access = args.account.sagemaker();
    let region = aws.sagemaker(&access).region(Some(control))?;
    access.region = Some(region.clone());
    let sagemaker = aws.sagemaker(&access);
    let name = args.name.clone();
    let name = name.unwrap_or_else(|| dated_name(&args.model.source.stem(), now_ms()));
    if let Some(problem) = name_problem(&name) {
        bail!("the endpoint's name {problem}");
    }
    if InstanceType::parse(&args.instances.instance_type).is_none() {
        bail!(
            "“{}” is no instance type; they look like ml.m5.xlarge",
            args.instances.instance_type
        );
    }
    must_be_free(&sagemaker, &name, &region, control)?;
    let mut source = args.model.source(&name, &region, &args.instances)?;
    let _packed = match (&args.model.source.model, &mut source) {
        (Some(model), ModelSource::New { local_archive, .. }) => {
            let packed = pack_for(model, &args.instances.instance_type, control)?;
            *local_archive = Some(packed.path.clone());
            Some(packed)
        }
        _ => None,
    };
    clear_what_was_left(&aws, &access, &name, desk)?;
    let s3 = args.account.over(S3Access::default());
    let model_name = source_name(&source, &args.model.source);
    let plan = ModelPlan {
        name: &model_name,
        source: &source,
        instance_type: &args.instances.instance_type,
    };
    let found = with_progress("Looking", control, || {
        preflight_model(&aws, &access, &s3, plan, control)
    })?;
    must_be_well(&found)?;
    let mut record = args.record(&name, model_name, access, desk)?;
    let deployed = with_progress("Deploying", control, || {
        let model = match &source {
            ModelSource::Existing => None,
            ModelSource::New {
                spec,
                local_archive,
            } => {
                if let Some(path) = local_archive {
                    let archive = LocalArchive {
                        path,
                        address: &spec.archive,
                        s3: &s3,
                        unfinished: &desk.dirs.uploads(),
                    };
                    send_archive(&aws, &desk.records, &mut record, archive, control)?;
                }
                Some(spec)
            }
        };
        deploy(&sagemaker, &desk.records, &record, model, control)
    });
    if let Err(error) = deployed {
        return Err(failed(&error, &name, &region, desk));
    }
    CostSoFar::of_record(&record, None).tell(now_ms());
    tell_end(&record, now_ms());
    if !args.no_wait {
        return settled(&sagemaker, &name, control);
    }
    writeln!(std::io::stdout().lock(), "{name}")?;
    Ok(Outcome::AllWell)
}

fn must_be_free(
    sagemaker: &SageMaker,
    name: &str,
    region: &str,
    control: &TaskControl,
) -> anyhow::Result<()> {
    match sagemaker.describe_endpoint(name, Some(control))? {
        None => Ok(()),
        Some(endpoint) if endpoint.status == EndpointStatus::Deleting => bail!(
            "the endpoint {name} in {region} is still being deleted; wait some minutes until it is gone, or choose another name"
        ),
        Some(_) => bail!(
            "there is an endpoint {name} in {region} already; choose another name, or delete that one with: spotcheck endpoint delete {name}"
        ),
    }
}

/// Of an endpoint of this name that was never started, or deleted elsewhere.
fn clear_what_was_left(
    aws: &Aws,
    access: &SageMakerAccess,
    name: &str,
    desk: &Desk,
) -> anyhow::Result<()> {
    let deletion = match Deletion::of(aws, &desk.records, access, name, false, &desk.control) {
        Err(EndpointError::NotThere { .. }) => return Ok(()),
        deletion => deletion?,
    };
    let stays = deletion.stays().len();
    let done = deletion.carry_out(aws, &desk.records, &desk.control)?;
    for what in &done.deleted {
        eprintln!("deleted {what}, left of an earlier endpoint of this name that is not there");
    }
    if done.kept.len() > stays {
        let kept: Vec<String> = done
            .kept
            .iter()
            .map(|(what, why)| format!("{what} ({why})"))
            .collect();
        bail!(
            "an earlier endpoint of this name left something that could not be deleted: {}; choose another name",
            kept.join(", ")
        );
    }
    Ok(())
}

fn must_be_well(found: &Preflight) -> anyhow::Result<()> {
    let noteworthy = Preflight {
        checks: found
            .checks
            .iter()
            .filter(|check| check.grade != CheckGrade::Ok)
            .cloned()
            .collect(),
        ..Preflight::default()
    };
    preflight::write(&mut std::io::stderr().lock(), &noteworthy)?;
    if found.grade() == CheckGrade::Problem {
        bail!("nothing was deployed, because of the problems above");
    }
    Ok(())
}

fn failed(error: &EndpointError, name: &str, region: &str, desk: &Desk) -> anyhow::Error {
    let is_left = desk.records.find(name, region).is_some();
    if is_left {
        anyhow::anyhow!(
            "{error}\nWhat was made for it before goes with: spotcheck endpoint delete {name}"
        )
    } else {
        anyhow::anyhow!("{error}\nNothing was made for it, so nothing is left")
    }
}

fn source_name(source: &ModelSource, args: &SourceArgs) -> String {
    match source {
        ModelSource::New { spec, .. } => spec.name.clone(),
        ModelSource::Existing => args.model_name.clone().unwrap_or_default(),
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
        named.unwrap_or_else(|| "endpoint".to_owned())
    }
}

impl ModelArgs {
    fn source(
        &self,
        endpoint: &str,
        region: &str,
        instances: &InstanceArgs,
    ) -> anyhow::Result<ModelSource> {
        if let Some(name) = &self.source.model_name {
            if self.role.is_some()
                || self.image.is_some()
                || self.upload_to.is_some()
                || !self.model_env.is_empty()
            {
                bail!(
                    "--role, --image, --upload-to and --model-env are for a model that is made for the endpoint; the model {name} is there already"
                );
            }
            return Ok(ModelSource::Existing);
        }
        let Some(role) = self.role.clone() else {
            bail!(
                "a new model needs --role, the ARN of a role that SageMaker may take on, such as arn:aws:iam::123456789012:role/SageMaker"
            );
        };
        let (archive, local_archive) = self.archive(endpoint)?;
        let image = if let Some(image) = &self.image {
            image.clone()
        } else {
            let given = local_archive
                .as_ref()
                .filter(|_| self.source.archive.is_some());
            let content = given.and_then(|path| peek_file(path).ok().flatten());
            let content = content.unwrap_or(ArchiveContent::Onnx);
            default_image(region, &instances.instance_type, content)
        };
        let spec = ModelSpec {
            name: endpoint.to_owned(),
            image,
            archive,
            role,
            environment: self.model_env.iter().cloned().collect(),
            tags: instances.tags.iter().cloned().collect(),
        };
        if let Some(problem) = spec.problems().first() {
            bail!("the {problem}");
        }
        Ok(ModelSource::New {
            spec,
            local_archive,
        })
    }

    /// Where it lies in S3, or will lie, and where it is on this machine; a model that is yet to be packed is nowhere.
    fn archive(&self, endpoint: &str) -> anyhow::Result<(S3Address, Option<PathBuf>)> {
        let path = match &self.source.archive {
            Some(path) => match Place::parse(path, &S3Args::default())? {
                Place::S3(_) if self.upload_to.is_some() => {
                    bail!(
                        "--upload-to is for a model of this machine, and this one lies in S3 already"
                    )
                }
                Place::S3(place) => return Ok((place.address, None)),
                Place::Path(path) => path,
                Place::Stdin => bail!("the archive is a file or lies in S3"),
            },
            None => PathBuf::from(ARCHIVE),
        };
        let Some(folder) = &self.upload_to else {
            bail!(
                "SageMaker takes a model from S3; --upload-to s3://bucket/folder/ says where it is uploaded to"
            );
        };
        let folder = support_folder(folder, endpoint);
        let address = S3Address::new(&folder.bucket, format!("{}{ARCHIVE}", folder.prefix));
        Ok((address, Some(path)))
    }
}

impl DeployArgs {
    fn record(
        &self,
        name: &str,
        model_name: String,
        access: SageMakerAccess,
        desk: &Desk,
    ) -> anyhow::Result<EndpointRecord> {
        let prices = read_prices(&desk.dirs.prices())?;
        let instances = &self.instances;
        let price = prices.find(&instances.instance_type, access.region.as_deref());
        let config = EndpointConfig {
            name: name.to_owned(),
            model_name,
            instance_type: Some(instances.instance_type.clone()),
            instance_count: instances.instance_count,
            ami_version: instances.ami_version.clone(),
            startup_timeout_s: instances.startup_timeout_s,
            kms_key: instances.volume_kms_key.clone(),
            tags: instances.tags.iter().cloned().collect(),
        };
        let now = now_ms();
        let delete_after_ms = self.delete_after.map(|minutes| i64::from(minutes) * 60_000);
        Ok(EndpointRecord {
            usd_per_hour: self.hourly_price.or(price.map(|price| price.usd_per_hour)),
            delete_at_ms: delete_after_ms.map(|after| now + after),
            ..EndpointRecord::new(access, config, now)
        })
    }
}
