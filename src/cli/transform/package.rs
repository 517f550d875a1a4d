//! `spotcheck transform package`: packs a model as `model.tar.gz`. Also the model of a job or an endpoint: its
//! archive, its upload, and its container.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::watch_command;
use crate::aws::SageMaker;
use crate::cli::Outcome;
use crate::cli::inspect::recognize_for_run;
use crate::cli::out_file::check_is_no_input;
use crate::cli::place::{S3Args, is_stdin, parse_location};
use crate::cli::terminal::{interruptible, stdout, with_progress};
use crate::cli::values::{parse_job_name, parse_pair, parse_score};
use crate::dirs::{AppDirs, Scratch};
use crate::domain::{KeepRule, Location, S3Address, human_bytes};
use crate::model::catalog::{Library, LibraryError, Model};
use crate::model::runtime;
use crate::project::export::{Existing, ExportTarget};
use crate::sagemaker::jobs::{NewArchive, NewModel};
use crate::sagemaker::package::{
    PackageOptions, Packaged, Processor, SavedModelOptions, package_model, package_saved_model,
};
use crate::sagemaker::spec::training::TrainingSpec;
use crate::sagemaker::spec::transform::{
    ArchiveContent, InstanceType, JobKind, ModelSource, Network, TransformStatus, Vpc,
};
use crate::tasks::{ProgressUnit, TaskControl};

pub(crate) const ARCHIVE: &str = "model.tar.gz";

#[derive(Debug, Args)]
pub(crate) struct PackageArgs {
    #[command(flatten)]
    what: ModelFileArgs,
    /// Archive to create; must not exist
    #[arg(long, value_name = "FILE.tar.gz", default_value = ARCHIVE)]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    onnx: OnnxArgs,
    /// Signature for TensorFlow Serving [default: the model's default]
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    signature: Option<String>,
    /// Signature input for encoded images; required if the signature has several inputs
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    input: Option<String>,
}

/// The model to pack.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ModelFileArgs {
    /// Model id (see `spotcheck models list`) or ONNX file
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    /// TensorFlow `SavedModel` folder: with `saved_model.pb`, or with version folders (`1/saved_model.pb`), and
    /// optionally `code/inference.py`
    #[arg(long, value_name = "FOLDER")]
    saved_model: Option<PathBuf>,
}

/// Options for archives of ONNX models.
#[derive(Debug, Clone, Args)]
pub(crate) struct OnnxArgs {
    /// Pack for containers with an NVIDIA GPU: onnxruntime-gpu, and one GPU per Ray Serve replica
    #[arg(long)]
    gpu: bool,
    /// Minimum score of detections [default: 0.005]
    #[arg(long, value_parser = parse_score::<f32>)]
    min_score: Option<f32>,
    /// Number of classes per image for classifiers [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    top_k: Option<u32>,
}

impl OnnxArgs {
    /// # Errors
    /// One of them is given where they have no effect, for the reason after “and”.
    pub(crate) fn must_not_be_given(&self, because: &str) -> anyhow::Result<()> {
        if self.gpu || self.min_score.is_some() || self.top_k.is_some() {
            bail!("--gpu, --min-score and --top-k are for packing an ONNX model, but {because}");
        }
        Ok(())
    }

    pub(crate) fn options(&self) -> PackageOptions {
        let usual = KeepRule::default();
        PackageOptions {
            processor: processor(self.gpu),
            keep: KeepRule {
                min_score: self.min_score.unwrap_or(usual.min_score),
                top_k: self.top_k.map_or(usual.top_k, |top_k| top_k as usize),
            },
        }
    }
}

pub(crate) fn run(args: &PackageArgs) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Bytes)?;
    let model = args.what.model.as_deref().map(Path::new);
    check_is_no_input(&args.out, &[("the model", model.filter(|model| model.exists()))])?;
    let target =
        ExportTarget { path: args.out.clone(), existing: if args.force { Existing::Replace } else { Existing::Keep } };
    let packing = match (&args.what.model, &args.what.saved_model) {
        (Some(model), _) => Packing::find(model, &control)?,
        // clap requires one of them.
        (None, folder) => {
            args.onnx.must_not_be_given("a SavedModel has fixed settings")?;
            Packing::SavedModel(folder.clone().unwrap_or_else(|| PathBuf::from(".")))
        }
    };
    let saved_model = SavedModelOptions { signature: args.signature.clone(), input: args.input.clone() };
    let packaged = packing.package((args.onnx.options(), &saved_model), &target, &control)?;
    print(&packaged)?;
    Ok(Outcome::AllWell)
}

/// The model with this id or file; a file without a card is inspected.
pub(crate) fn find_model(model: &str, control: &TaskControl) -> anyhow::Result<Model> {
    let dirs = AppDirs::find()?;
    match Library::open(&dirs).find(model) {
        Err(LibraryError::NoCard { path }) => {
            let runtime = with_progress("ONNX Runtime", control, || runtime::ensure_loaded(&dirs, None, control))?;
            recognize_for_run(&runtime, &path, (None, None), control)
        }
        found => Ok(found?),
    }
}

/// A model packed in a temporary folder, which is deleted with this value.
pub(crate) struct PackedHere(#[expect(dead_code, reason = "kept for its drop")] Scratch);

/// A local model to pack for a job or an endpoint.
pub(crate) enum Packing {
    /// With the id in the library, or the ONNX file.
    Model(String, Box<Model>),
    SavedModel(PathBuf),
}

impl Packing {
    /// # Errors
    /// The model does not exist, or is an encoder, which predicts nothing.
    fn find(name: &str, control: &TaskControl) -> anyhow::Result<Self> {
        let model = find_model(name, control)?;
        model.card.must_predict().context("Could not pack the model")?;
        Ok(Self::Model(name.to_owned(), Box::new(model)))
    }

    /// The flag of `transform package` for it, and its value.
    pub(crate) fn flag(&self) -> (&'static str, String) {
        match self {
            Self::Model(name, _) => ("--model", name.clone()),
            Self::SavedModel(folder) => ("--saved-model", folder.display().to_string()),
        }
    }

    /// Packs the model for a container on this type of instance, and makes the archive the local one of `source`.
    pub(crate) fn pack(
        &self,
        source: &mut ModelSource,
        instance_type: &str,
        control: &TaskControl,
    ) -> anyhow::Result<PackedHere> {
        let folder = Scratch::new().context("Could not create a folder for the archive")?;
        let target = ExportTarget { path: folder.path().join(ARCHIVE), existing: Existing::Keep };
        let has_gpu = InstanceType::parse(instance_type).is_some_and(|instance| instance.has_gpu());
        let options = PackageOptions { processor: processor(has_gpu), keep: KeepRule::default() };
        let packaged = self.package((options, &SavedModelOptions::default()), &target, control)?;
        control.set_total(None);
        control.set_done_before(0);
        if let ModelSource::New { local_archive, .. } = source {
            *local_archive = Some(packaged.path);
        }
        Ok(PackedHere(folder))
    }

    fn package(
        &self,
        (onnx, saved_model): (PackageOptions, &SavedModelOptions),
        target: &ExportTarget,
        control: &TaskControl,
    ) -> anyhow::Result<Packaged> {
        let packaged = match self {
            Self::Model(_, model) => {
                for assumed in &model.card.assumed {
                    eprintln!("assumed: {assumed}");
                }
                with_progress("Packing", control, || package_model(model, onnx, target, control))
            }
            Self::SavedModel(folder) => {
                with_progress("Packing", control, || package_saved_model(folder, saved_model, target, control))
            }
        };
        packaged.context("Could not pack the model")
    }
}

fn processor(has_gpu: bool) -> Processor {
    if has_gpu { Processor::Cuda } else { Processor::Cpu }
}

fn print(packaged: &Packaged) -> anyhow::Result<()> {
    let mut out = stdout();
    for (name, bytes) in &packaged.files {
        writeln!(out, "{:>10}  {name}", human_bytes(*bytes))?;
    }
    writeln!(out, "{}\n{} bytes, sha256 {}", packaged.path.display(), packaged.bytes, packaged.sha256)?;
    Ok(())
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelSourceArgs {
    #[command(flatten)]
    file: SourceFileArgs,
    /// Name of the SageMaker model; without an archive, an existing model
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// ARN of the IAM role for the container; required for a new model [default: the role of --training-job]
    #[arg(long, value_name = "ARN")]
    role: Option<String>,
    /// URI of the container in ECR [default: the AWS container for the archive, region and instance type (Ray Serve or
    /// TensorFlow Serving)]
    #[arg(long, value_name = "URI")]
    image: Option<String>,
    /// Environment variable for the model's container; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    model_env: Vec<(String, String)>,
    #[command(flatten)]
    network: NetworkArgs,
}

/// The network of a container.
#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// ID of a subnet of your VPC for the container; repeatable, with --security-group
    #[arg(long = "subnet", value_name = "ID", requires = "security_groups")]
    subnets: Vec<String>,
    /// ID of a security group of the VPC for the container; repeatable, with --subnet
    #[arg(long = "security-group", value_name = "ID", requires = "subnets")]
    security_groups: Vec<String>,
    /// Isolate the container: no inbound or outbound network calls
    #[arg(long)]
    network_isolation: bool,
}

impl NetworkArgs {
    pub(crate) fn network(&self) -> Network {
        let vpc = Vpc { subnets: self.subnets.clone(), security_group_ids: self.security_groups.clone() };
        Network { vpc: (vpc != Vpc::default()).then_some(vpc), is_isolated: self.network_isolation }
    }
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct SourceFileArgs {
    /// Model id (see `spotcheck models list`) or ONNX file to pack and upload
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    /// Archive from `spotcheck transform package`: a local file, which is uploaded, or `s3://bucket/…/model.tar.gz`
    #[arg(long, value_name = "FILE|s3://…")]
    archive: Option<PathBuf>,
    /// Completed training job whose `model.tar.gz` to use unchanged
    #[arg(long, value_name = "NAME", value_parser = parse_job_name)]
    training_job: Option<String>,
    /// TensorFlow `SavedModel` folder to pack for AWS's TensorFlow Serving container and upload
    #[arg(long, value_name = "FOLDER")]
    saved_model: Option<PathBuf>,
}

impl ModelSourceArgs {
    /// The first part of a name for the job or endpoint; can be empty.
    pub(crate) fn stem(&self) -> String {
        let of_file = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            let endings = [".tar.gz", ".tgz", ".onnx"];
            let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
            Some(stem.unwrap_or(name).to_owned())
        };
        let file = &self.file;
        let packed = file.model.as_deref().map(Path::new);
        let packed = packed.or(file.saved_model.as_deref());
        let stem = packed.and_then(of_file);
        let stem = stem.or_else(|| self.model_name.clone()).or_else(|| file.training_job.clone());
        let stem = stem.or_else(|| file.archive.as_deref().and_then(of_file));
        stem.unwrap_or_default()
    }

    /// What to pack before the model is created.
    ///
    /// # Errors
    /// The model does not exist, or predicts nothing.
    pub(crate) fn packing(&self, control: &TaskControl) -> anyhow::Result<Option<Packing>> {
        match &self.file.model {
            Some(model) => Packing::find(model, control).map(Some),
            None => Ok(self.file.saved_model.clone().map(Packing::SavedModel)),
        }
    }

    /// The archive and role of the training job, if one was named.
    fn trained(&self, sagemaker: &SageMaker, control: &TaskControl) -> anyhow::Result<Option<(S3Address, String)>> {
        let Some(name) = &self.file.training_job else {
            return Ok(None);
        };
        let training = sagemaker.describe_job::<TrainingSpec>(name, control)?;
        if let Some(problem) = training.problem() {
            bail!("training job {name} has no complete model: {problem}");
        }
        match training.archive().filter(|_| training.status == TransformStatus::Completed) {
            Some(archive) => Ok(Some((archive, training.spec.role))),
            None => bail!(
                "training job {name} has no model yet. Wait for it with: {}",
                watch_command(JobKind::Training, name)
            ),
        }
    }

    /// The model's name in SageMaker, by default `name`, and how to create it unless it exists. A local archive is
    /// uploaded to `archive_to`.
    pub(crate) fn model(
        &self,
        (sagemaker, control): (&SageMaker, &TaskControl),
        name: &str,
        archive_to: Option<S3Address>,
        tags: &BTreeMap<String, String>,
    ) -> anyhow::Result<(String, Option<NewModel>)> {
        let name = self.model_name.as_deref().unwrap_or(name).to_owned();
        let file = &self.file;
        let trained = self.trained(sagemaker, control)?;
        let is_new = file.model.is_some() || file.archive.is_some() || file.saved_model.is_some() || trained.is_some();
        if !is_new && self.model_name.is_none() {
            bail!(
                "no model was given. Pack one with --model or --saved-model, or name one: an archive with --archive, \
                 a training job with --training-job, a SageMaker model with --model-name"
            );
        }
        if !is_new {
            let has_network = self.network.network() != Network::default();
            if self.role.is_some() || self.image.is_some() || !self.model_env.is_empty() || has_network {
                bail!(
                    "--role, --image, --model-env and the network flags are for a new model, but the model {name} \
                     already exists in SageMaker; remove them"
                );
            }
            return Ok((name, None));
        }
        let (trained, of_training) = trained.unzip();
        let role = self.role.clone().or(of_training).context(
            "a new model needs --role, the ARN of a role that SageMaker may assume, for example \
             arn:aws:iam::123456789012:role/SageMaker",
        )?;
        let model = NewModel {
            name: name.clone(),
            role,
            image: self.image.clone(),
            archive: match trained {
                Some(address) => NewArchive::There(address),
                None => self.archive(archive_to)?,
            },
            environment: self.model_env.iter().cloned().collect(),
            tags: tags.clone(),
            network: self.network.network(),
        };
        Ok((name, Some(model)))
    }

    fn archive(&self, to: Option<S3Address>) -> anyhow::Result<NewArchive> {
        let (path, content) = match (&self.file.archive, &self.file.saved_model) {
            (Some(path), _) => match parse_location(path, &S3Args::default())? {
                Location::S3(place) => return Ok(NewArchive::There(place.address)),
                Location::Path(path) if is_stdin(&path) => {
                    bail!("--archive takes a file or an s3:// address, not standard input")
                }
                Location::Path(path) => (path, None),
            },
            (None, Some(_)) => (PathBuf::from(ARCHIVE), Some(ArchiveContent::SavedModel)),
            (None, None) => (PathBuf::from(ARCHIVE), Some(ArchiveContent::Onnx)),
        };
        let to = to.context(
            "SageMaker reads models from S3. Set the folder to upload to with --upload-to s3://bucket/folder/",
        )?;
        Ok(NewArchive::Here { path, to, content })
    }
}
