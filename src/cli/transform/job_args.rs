//! The flags that describe a job, for the commands that look through one and start one.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::package::{ARCHIVE, PackedHere, Packing};
use crate::aws::Aws;
use crate::cli::place::{Place, S3Args};
use crate::cli::progress::with_progress;
use crate::cli::values::{parse_pair, parse_positive};
use crate::dirs::AppDirs;
use crate::domain::{
    ArchiveContent, AssembleWith, BatchStrategy, CheckPoint, Compression, DataCapture,
    DataProcessing, Experiment, InputObjects, ManifestPlan, ModelClient, ModelSource, Preflight,
    Price, PriceTable, S3Address, SageMakerAccess, SampleUri, SplitType, TfsBatching,
    TransformPlan, TransformSpec, archive_address, dated_name, manifest_address,
};
use crate::remote::transform::{
    NewArchive, NewModel, add_price, has_input, manifest_of, preflight, read_prices,
};
use crate::tasks::{TaskControl, now_ms};

/// A job, and what is made for it.
#[derive(Debug, Args)]
pub(super) struct JobArgs {
    /// The images: `s3://bucket/prefix/`, or a local folder, which is uploaded to --input-to first
    input: PathBuf,
    /// Below this folder in S3 the job gets a folder of its own for its outputs
    #[arg(long, value_name = "s3://BUCKET/FOLDER/")]
    output: S3Address,
    /// Letters, digits and hyphens; made of the model's name and the time where it is not given
    #[arg(long, value_name = "NAME")]
    job_name: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    images: InputArgs,
    #[command(flatten)]
    requests: RequestArgs,
    #[command(flatten)]
    resources: ResourceArgs,
    #[command(flatten)]
    extras: ExtraArgs,
    #[command(flatten)]
    cost: CostArgs,
    #[command(flatten)]
    s3: S3Args,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
struct ModelArgs {
    #[command(flatten)]
    source: ModelSourceArgs,
    /// The model's name in SageMaker; the job's where it is not given. Alone, it names a model that SageMaker has already
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// The role that the container takes on; it may read the input and write the outputs
    #[arg(long, value_name = "ARN")]
    role: Option<String>,
    /// The container in ECR; where it is not given, that of AWS for the archive, the region and the instance type: Ray Serve, or TensorFlow Serving
    #[arg(long, value_name = "URI")]
    image: Option<String>,
    /// A variable of the container, for every job of the model
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    model_env: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct ModelSourceArgs {
    /// A model of `spotcheck models list` or an ONNX file; packed and uploaded
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    /// What `transform package` wrote: a local file, which is uploaded, or `s3://bucket/…/model.tar.gz`
    #[arg(long, value_name = "FILE|s3://…")]
    archive: Option<PathBuf>,
    /// A TensorFlow `SavedModel`, as `transform package` takes it; packed for AWS's TensorFlow Serving container and uploaded
    #[arg(long, value_name = "FOLDER")]
    saved_model: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
struct InputArgs {
    /// Where a local folder is uploaded to
    #[arg(long, value_name = "s3://BUCKET/PREFIX/")]
    input_to: Option<S3Address>,
    /// Only these images: a file with a name below the input, or an `s3://` address, a line; `-` reads standard input. They are sent
    /// through a manifest
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["input_to", "manifest"])]
    images: Option<PathBuf>,
    /// The input is a manifest that is there already
    #[arg(long, conflicts_with = "input_to")]
    manifest: bool,
    /// What the objects are; sets content type, splitting and assembling, unless those are given
    #[arg(long, value_enum, default_value_t = InputKind::Images)]
    input_kind: InputKind,
    /// What each request says it holds
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// How an object is split into records, where it holds several
    #[arg(long, value_enum, value_name = "TYPE")]
    split_type: Option<SplitArg>,
    /// How the objects are compressed
    #[arg(long, value_enum, value_name = "TYPE")]
    compression: Option<CompressionArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InputKind {
    /// An image each
    Images,
    /// TFRecord files of images
    Tfrecord,
    /// Lines of `{"b64": "…"}`
    Lines,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
struct RequestArgs {
    /// What the model is asked to answer in: application/json where it is not given; an empty one leaves it to the model
    #[arg(long, value_name = "TYPE")]
    accept: Option<String>,
    /// One record a request, or as many as fit into the payload
    #[arg(long, value_enum, value_name = "STRATEGY")]
    batch_strategy: Option<StrategyArg>,
    /// What stands between the predictions of one object's records
    #[arg(long, value_enum, value_name = "HOW")]
    assemble_with: Option<AssembleArg>,
    /// The largest request; what the objects need where it is not given
    #[arg(long, value_name = "MB")]
    max_payload_mb: Option<u32>,
    /// Requests at once on each instance; with the payload at most 100 as a product. Chosen where it is not given
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,
    /// How long the model may take for a request (1 to 3600)
    #[arg(long, value_name = "SECONDS")]
    timeout_s: Option<u32>,
    /// How often a request is made again (0 to 3)
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,
    /// A variable of the container, for this job
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    /// Lets TensorFlow Serving put requests together
    #[arg(long, value_enum, value_name = "PRESET")]
    tfs_batching: Option<TfsArg>,
    /// A `JSONPath` that chooses from each input
    #[arg(long, value_name = "PATH")]
    input_filter: Option<String>,
    /// A `JSONPath` that chooses from each output
    #[arg(long, value_name = "PATH")]
    output_filter: Option<String>,
    /// Writes inputs and answers together
    #[arg(long)]
    join_input: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Instances")]
pub(super) struct ResourceArgs {
    /// What machines the job runs on
    #[arg(long, value_name = "TYPE", default_value = "ml.m5.xlarge")]
    instance_type: String,
    /// How many of them (1 to 100)
    #[arg(long, value_name = "N", default_value_t = 1)]
    instance_count: u32,
    /// A key for the disks of the instances
    #[arg(long, value_name = "KEY")]
    volume_kms_key: Option<String>,
    /// The system of the instances
    #[arg(long, value_name = "VERSION")]
    ami_version: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Outputs, tags and experiments")]
struct ExtraArgs {
    /// A key for the outputs
    #[arg(long, value_name = "KEY")]
    output_kms_key: Option<String>,
    /// Of the job, and of a model that is made for it
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_pair)]
    tags: Vec<(String, String)>,
    /// Keeps requests and predictions here, too
    #[arg(long, value_name = "s3://BUCKET/FOLDER/")]
    data_capture: Option<S3Address>,
    /// A key for what is kept
    #[arg(long, value_name = "KEY", requires = "data_capture")]
    data_capture_kms_key: Option<String>,
    /// Gives each captured request an id
    #[arg(long, requires = "data_capture")]
    data_capture_ids: bool,
    /// The experiment of SageMaker that the job belongs to
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
    /// The trial of that experiment
    #[arg(long, value_name = "NAME")]
    trial: Option<String>,
    /// The trial component that shows the job
    #[arg(long, value_name = "NAME")]
    trial_component: Option<String>,
    /// The run of the experiment
    #[arg(long, value_name = "NAME")]
    experiment_run: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cost")]
pub(super) struct CostArgs {
    /// What an hour of one instance costs; from the table of prices where it is not given
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    hourly_price: Option<f64>,
    /// Keeps that price in the table, with where it comes from
    #[arg(long, value_name = "SOURCE", requires = "hourly_price")]
    price_source: Option<String>,
    /// How fast the model is on one instance, as measured
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    images_per_s: Option<f64>,
}

impl JobArgs {
    /// A plan, with all that can be known of it without asking anybody but for the region.
    pub(super) fn plan(&self, aws: &Aws, control: &TaskControl) -> anyhow::Result<Planned> {
        let s3 = self.s3.access();
        let access = SageMakerAccess::from(&s3);
        let region = aws.sagemaker(&access).region(Some(control))?;
        let stem = self.model.stem();
        let job_name = self
            .job_name
            .clone()
            .unwrap_or_else(|| dated_name(&stem, now_ms()));
        let (objects, manifest, input_folder) = self.input(&job_name)?;
        let sagemaker = SageMakerAccess {
            region: Some(region.clone()),
            ..access
        };
        let model_name = match (&self.model.model_name, self.model.is_new()) {
            (Some(name), _) => name.clone(),
            (None, true) => job_name.clone(),
            (None, false) => bail!(
                "say which model: --model or --saved-model packs one, --archive takes a packed one, --model-name one that SageMaker has already"
            ),
        };
        let spec = self.spec(&job_name, &model_name, objects);
        let model = match self.new_model(&spec)? {
            None => ModelSource::Existing,
            Some(model) => model.source(&aws.s3(&s3), &region, &spec.instance_type, control)?,
        };
        Ok(Planned {
            plan: TransformPlan {
                sagemaker,
                s3,
                spec,
                model,
                input_folder,
                input_files: Vec::new(),
                files_root: None,
                manifest,
                usd_per_hour: self.cost.hourly_price,
                images_per_s: self.cost.images_per_s,
                inside: None,
                retry_of: None,
            },
            packing: self.model.source.packing(),
        })
    }

    /// The prices that are known, with the one that is given, where it is to be kept.
    pub(super) fn prices(
        &self,
        plan: &TransformPlan,
        dirs: &AppDirs,
    ) -> anyhow::Result<PriceTable> {
        self.cost.prices(plan, dirs)
    }

    fn input(
        &self,
        job_name: &str,
    ) -> anyhow::Result<(InputObjects, Option<ManifestPlan>, Option<PathBuf>)> {
        let place = Place::parse(&self.input, &S3Args::default())?;
        let address = match (place, &self.images.input_to) {
            (Place::S3(place), None) => place.address,
            (Place::S3(_), Some(_)) => {
                bail!("--input-to is for a local folder, and the input lies in S3 already")
            }
            (Place::Path(folder), Some(target)) => {
                let target = InputObjects::Prefix(target.as_folder());
                return Ok((target, None, Some(folder)));
            }
            (Place::Path(folder), None) => bail!(
                "a job reads from S3; --input-to s3://bucket/prefix/ uploads this folder first: {}",
                folder.display()
            ),
            (Place::Stdin, _) => {
                bail!("the input is a place in S3 or a local folder; --images - reads a list")
            }
        };
        if self.images.manifest {
            return Ok((InputObjects::Manifest(address), None, None));
        }
        let Some(list) = &self.images.images else {
            return Ok((InputObjects::Prefix(address), None, None));
        };
        let manifest = manifest_of(&listed_images(list, &address)?, &address)?;
        let at = manifest_address(&self.output, job_name);
        Ok((InputObjects::Manifest(at), Some(manifest), None))
    }

    fn spec(&self, job_name: &str, model_name: &str, objects: InputObjects) -> TransformSpec {
        let usual = TransformSpec::over_images(job_name, model_name, objects, &self.output);
        let mut spec = match self.images.input_kind {
            InputKind::Images => usual,
            InputKind::Tfrecord => usual.over_records(),
            InputKind::Lines => usual.over_lines(),
        };
        if let Some(content_type) = &self.images.content_type {
            spec.input.content_type.clone_from(content_type);
        }
        if let Some(split) = self.images.split_type {
            spec.input.split = split.into();
        }
        if let Some(compression) = self.images.compression {
            spec.input.compression = compression.into();
        }
        self.requests.apply(&mut spec);
        self.resources.apply(&mut spec);
        self.extras.apply(&mut spec);
        spec
    }

    /// `None`: SageMaker has it already.
    fn new_model(&self, spec: &TransformSpec) -> anyhow::Result<Option<NewModel>> {
        let args = &self.model;
        if !args.is_new() {
            if args.role.is_some() || args.image.is_some() || !args.model_env.is_empty() {
                bail!(
                    "--role, --image and --model-env are for a model that is made for the job; the model {} is there already",
                    spec.model_name
                );
            }
            return Ok(None);
        }
        let Some(role) = args.role.clone() else {
            bail!(
                "a new model needs --role, the ARN of a role that SageMaker may take on, such as arn:aws:iam::123456789012:role/SageMaker"
            );
        };
        let here = |path, content| NewArchive::Here {
            path,
            to: archive_address(&self.output, &spec.job_name),
            content,
        };
        let archive = match (&args.source.archive, &args.source.saved_model) {
            (Some(path), _) => match Place::parse(path, &S3Args::default())? {
                Place::S3(place) => NewArchive::There(place.address),
                Place::Path(path) => here(path, None),
                Place::Stdin => bail!("the archive is a file or lies in S3"),
            },
            (None, Some(_)) => here(PathBuf::from(ARCHIVE), Some(ArchiveContent::SavedModel)),
            (None, None) => here(PathBuf::from(ARCHIVE), Some(ArchiveContent::Onnx)),
        };
        Ok(Some(NewModel {
            name: spec.model_name.clone(),
            role,
            image: args.image.clone(),
            archive,
            environment: args.model_env.iter().cloned().collect(),
            tags: self.extras.tags.iter().cloned().collect(),
        }))
    }
}

/// A plan on the command line.
pub(super) struct Planned {
    pub(super) plan: TransformPlan,
    /// What is packed first.
    pub(super) packing: Option<Packing>,
}

impl ModelSourceArgs {
    fn packing(&self) -> Option<Packing> {
        let model = self.model.clone().map(Packing::Model);
        model.or_else(|| self.saved_model.clone().map(Packing::SavedModel))
    }
}

impl Planned {
    /// A plan that was made of something else than these flags.
    pub(super) fn of(plan: TransformPlan) -> Self {
        Self {
            plan,
            packing: None,
        }
    }

    /// Packs the model, where one is to be packed and there is something to send to it: the plan's archive is there then, as long as what
    /// is returned is held.
    pub(super) fn pack(
        &mut self,
        aws: &Aws,
        control: &TaskControl,
    ) -> anyhow::Result<Option<PackedHere>> {
        let Some(packing) = &self.packing else {
            return Ok(None);
        };
        if !has_input(aws, &self.plan, control)? {
            return Ok(None);
        }
        let packed = packing.pack(&self.plan.spec.instance_type, control)?;
        if let ModelSource::New { local_archive, .. } = &mut self.plan.model {
            *local_archive = Some(packed.path.clone());
        }
        Ok(Some(packed))
    }

    /// Looks the plan through, and sets in it what nobody has set. Of an archive that is not packed (yet), nothing is said.
    pub(super) fn preflight(
        &mut self,
        aws: &Aws,
        prices: &PriceTable,
        packed: Option<&PackedHere>,
        control: &TaskControl,
    ) -> anyhow::Result<Preflight> {
        let checked = with_progress("Preflight", control, || {
            preflight(aws, self.plan.clone(), prices, control)
        })?;
        self.plan = checked.plan;
        let mut found = checked.preflight;
        if self.packing.is_some() && packed.is_none() {
            found
                .checks
                .retain(|check| check.point != CheckPoint::Model);
        }
        Ok(found)
    }
}

impl ModelArgs {
    fn is_new(&self) -> bool {
        let source = &self.source;
        source.model.is_some() || source.archive.is_some() || source.saved_model.is_some()
    }

    /// What the job is named after.
    fn stem(&self) -> String {
        let source = &self.source;
        let of_model = source.model.as_deref().map(Path::new);
        let of_model = of_model.or(source.saved_model.as_deref()).map(|model| {
            let file = model.file_stem();
            file.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
        });
        let named = of_model.or_else(|| self.model_name.clone());
        named.unwrap_or_else(|| "spotcheck".to_owned())
    }
}

impl RequestArgs {
    fn apply(&self, spec: &mut TransformSpec) {
        if let Some(accept) = &self.accept {
            spec.output.accept = (!accept.is_empty()).then(|| accept.clone());
        }
        if let Some(strategy) = self.batch_strategy {
            spec.batch_strategy = strategy.into();
        }
        if let Some(assemble) = self.assemble_with {
            spec.output.assemble = assemble.into();
        }
        spec.max_payload_mb = self.max_payload_mb;
        spec.max_concurrent = self.max_concurrent;
        spec.model_client = ModelClient {
            timeout_s: self.timeout_s,
            max_retries: self.max_retries,
        };
        let preset = self
            .tfs_batching
            .map(|preset| TfsBatching::from(preset).environment());
        spec.environment = preset.unwrap_or_default();
        spec.environment.extend(self.env.iter().cloned());
        spec.data_processing = DataProcessing {
            input_filter: self.input_filter.clone(),
            output_filter: self.output_filter.clone(),
            join_input: self.join_input,
        };
    }
}

impl ResourceArgs {
    fn apply(&self, spec: &mut TransformSpec) {
        spec.instance_type.clone_from(&self.instance_type);
        spec.instance_count = self.instance_count;
        spec.volume_kms_key.clone_from(&self.volume_kms_key);
        spec.ami_version.clone_from(&self.ami_version);
    }
}

impl ExtraArgs {
    fn apply(&self, spec: &mut TransformSpec) {
        spec.output.kms_key.clone_from(&self.output_kms_key);
        spec.tags = self.tags.iter().cloned().collect::<BTreeMap<_, _>>();
        spec.data_capture = self.data_capture.as_ref().map(|folder| DataCapture {
            folder: folder.clone(),
            kms_key: self.data_capture_kms_key.clone(),
            with_inference_id: self.data_capture_ids,
        });
        let experiment = Experiment {
            experiment: self.experiment.clone(),
            trial: self.trial.clone(),
            trial_component: self.trial_component.clone(),
            run: self.experiment_run.clone(),
        };
        spec.experiment = (experiment != Experiment::default()).then_some(experiment);
    }
}

impl CostArgs {
    fn prices(&self, plan: &TransformPlan, dirs: &AppDirs) -> anyhow::Result<PriceTable> {
        let (Some(usd_per_hour), Some(source)) = (self.hourly_price, &self.price_source) else {
            return Ok(read_prices(&dirs.prices())?);
        };
        let price = Price {
            instance_type: plan.spec.instance_type.clone(),
            region: plan.sagemaker.region.clone(),
            usd_per_hour,
            source: source.clone(),
            date: jiff::Zoned::now().date().to_string(),
        };
        let table = add_price(&dirs.prices(), &price)?;
        eprintln!("the price is kept in {}", dirs.prices().display());
        Ok(table)
    }
}

/// A line each: a name below the input, or a whole address.
fn listed_images(list: &Path, input: &S3Address) -> anyhow::Result<Vec<SampleUri>> {
    let from_stdin = list.as_os_str() == "-";
    let reader: Box<dyn BufRead> = if from_stdin {
        Box::new(std::io::stdin().lock())
    } else {
        let file = std::fs::File::open(list)
            .with_context(|| format!("Could not read the list of images {}", list.display()))?;
        Box::new(std::io::BufReader::new(file))
    };
    let folder = input.as_folder();
    let mut uris = Vec::new();
    for line in reader.lines() {
        let line = line.context("Could not read the list of images")?;
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            continue;
        }
        uris.push(if line.starts_with("s3://") {
            SampleUri::new(line)
        } else {
            folder.uri_of(&format!("{}{line}", folder.prefix))
        });
    }
    Ok(uris)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SplitArg {
    None,
    Line,
    #[value(name = "recordio")]
    RecordIO,
    #[value(name = "tfrecord")]
    TFRecord,
}

impl From<SplitArg> for SplitType {
    fn from(arg: SplitArg) -> Self {
        match arg {
            SplitArg::None => Self::None,
            SplitArg::Line => Self::Line,
            SplitArg::RecordIO => Self::RecordIO,
            SplitArg::TFRecord => Self::TFRecord,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompressionArg {
    None,
    Gzip,
}

impl From<CompressionArg> for Compression {
    fn from(arg: CompressionArg) -> Self {
        match arg {
            CompressionArg::None => Self::None,
            CompressionArg::Gzip => Self::Gzip,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StrategyArg {
    SingleRecord,
    MultiRecord,
}

impl From<StrategyArg> for BatchStrategy {
    fn from(arg: StrategyArg) -> Self {
        match arg {
            StrategyArg::SingleRecord => Self::SingleRecord,
            StrategyArg::MultiRecord => Self::MultiRecord,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AssembleArg {
    None,
    Line,
}

impl From<AssembleArg> for AssembleWith {
    fn from(arg: AssembleArg) -> Self {
        match arg {
            AssembleArg::None => Self::None,
            AssembleArg::Line => Self::Line,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TfsArg {
    /// Small batches at once: for processors
    Small,
    /// Large batches that wait for company: for graphics cards
    Large,
}

impl From<TfsArg> for TfsBatching {
    fn from(arg: TfsArg) -> Self {
        match arg {
            TfsArg::Small => Self::Small,
            TfsArg::Large => Self::Large,
        }
    }
}
