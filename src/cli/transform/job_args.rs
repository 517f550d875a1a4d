//! The flags that describe a job, for `start` and `preflight`.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::package::{PackedHere, Packing};
use crate::aws::Aws;
use crate::cli::place::{S3Args, is_stdin, parse_location};
use crate::cli::terminal::with_progress;
use crate::cli::transform::package::ModelSourceArgs;
use crate::cli::values::{parse_pair, parse_positive, variant};
use crate::dirs::AppDirs;
use crate::domain::{Location, S3Address, SampleUri};
use crate::local_file;
use crate::sagemaker::jobs::{JobRecords, add_price, has_input, manifest_of, preflight, read_prices};
use crate::sagemaker::spec::transform::{
    AssembleWith, BatchStrategy, CheckPoint, Compression, DEFAULT_INSTANCE, DataCapture, DataProcessing, Experiment,
    InputObjects, JoinSource, ManifestPlan, ModelClient, ModelSource, Preflight, Price, PriceTable, Resources,
    SageMakerAccess, SplitType, TfsBatching, TransformPlan, TransformSpec, archive_address, dated_name,
    manifest_address,
};
use crate::tasks::{TaskControl, now_ms};

/// A job and its model.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Images: `s3://bucket/prefix/`, or a local folder to upload to --input-to
    input: PathBuf,
    /// S3 folder for the outputs; each job writes to its own subfolder
    #[arg(long, value_name = "s3://BUCKET/FOLDER/")]
    output: S3Address,
    /// Job name: letters, digits and hyphens [default: the model's name and the time]
    #[arg(long, value_name = "NAME")]
    job_name: Option<String>,
    #[command(flatten)]
    model: ModelSourceArgs,
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
#[command(next_help_heading = "Input")]
struct InputArgs {
    /// S3 folder to upload a local folder to
    #[arg(long, value_name = "s3://BUCKET/PREFIX/")]
    input_to: Option<S3Address>,
    /// File with the images to send through a manifest, one per line: a name below the input or an `s3://` URI; `-`
    /// reads stdin
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["input_to", "manifest"])]
    images: Option<PathBuf>,
    /// Treat the input as an existing manifest
    #[arg(long, conflicts_with = "input_to")]
    manifest: bool,
    /// Content of the objects; sets the defaults of --content-type, --split-type and --assemble-with
    #[arg(long, value_enum, default_value_t = InputKind::Images)]
    input_kind: InputKind,
    /// MIME type of the requests [default: by --input-kind]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// How to split an object into records [default: by --input-kind]
    #[arg(long, value_name = "TYPE", value_parser = variant::<SplitType>())]
    split_type: Option<SplitType>,
    /// Compression of the objects [default: none]
    #[arg(long, value_name = "TYPE", value_parser = variant::<Compression>())]
    compression: Option<Compression>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InputKind {
    /// One image per object
    Images,
    /// TFRecord files with images
    Tfrecord,
    /// Files with one line `{"b64": "…"}` per image
    Lines,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
struct RequestArgs {
    /// MIME type of the responses; if empty, the model chooses [default: application/json]
    #[arg(long, value_name = "TYPE")]
    accept: Option<String>,
    /// Records per request: one, or as many as fit into the payload [default: single-record]
    #[arg(long, value_name = "STRATEGY", value_parser = variant::<BatchStrategy>())]
    batch_strategy: Option<BatchStrategy>,
    /// How to assemble the results for one object: concatenate, or add a newline per record [default: by --input-kind]
    #[arg(long, value_name = "HOW", value_parser = variant::<AssembleWith>())]
    assemble_with: Option<AssembleWith>,
    /// Maximum payload per request in MB (0 to 100) [default: by the largest object]
    #[arg(long, value_name = "MB")]
    max_payload_mb: Option<u32>,
    /// Maximum parallel requests per instance; at most 100 when multiplied by --max-payload-mb [default: chosen by the
    /// preflight]
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,
    /// Timeout for an invocation request in seconds (1 to 3600) [default: 600]
    #[arg(long, value_name = "SECONDS")]
    timeout_s: Option<u32>,
    /// Maximum number of retries when invocation requests fail (0 to 3) [default: 3]
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,
    /// Environment variable for the container, for this job only; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    /// Batching in TensorFlow Serving: small for CPUs, large for GPUs [default: none]
    #[arg(long, value_name = "PRESET", value_parser = variant::<TfsBatching>())]
    tfs_batching: Option<TfsBatching>,
    /// `JSONPath` of the part of the input to pass to the model
    #[arg(long, value_name = "PATH")]
    input_filter: Option<String>,
    /// `JSONPath` of the part of the joined data to save in the output
    #[arg(long, value_name = "PATH")]
    output_filter: Option<String>,
    /// Join each input record with its prediction in the output
    #[arg(long)]
    join_input: bool,
}

/// The instances of a job of any kind.
#[derive(Debug, Args)]
#[command(next_help_heading = "Instances")]
pub(crate) struct InstanceArgs {
    /// EC2 instance type
    #[arg(long, value_name = "TYPE", default_value = DEFAULT_INSTANCE)]
    instance_type: String,
    /// Number of instances (1 to 100)
    #[arg(long, visible_alias = "instances", value_name = "N", default_value_t = 1)]
    instance_count: u32,
    /// KMS key that encrypts the instances' storage volumes
    #[arg(long, value_name = "KEY")]
    volume_kms_key: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Instances")]
struct ResourceArgs {
    #[command(flatten)]
    instances: InstanceArgs,
    /// AMI of the instances [default: chosen by SageMaker]
    #[arg(long, value_name = "VERSION")]
    ami_version: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Outputs, tags and experiments")]
struct ExtraArgs {
    /// KMS key for the outputs
    #[arg(long, value_name = "KEY")]
    output_kms_key: Option<String>,
    /// Tag for the job and a new model; repeatable
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_pair)]
    tags: Vec<(String, String)>,
    /// S3 folder for captured requests and predictions
    #[arg(long, value_name = "s3://BUCKET/FOLDER/")]
    data_capture: Option<S3Address>,
    /// KMS key for the captured data
    #[arg(long, value_name = "KEY", requires = "data_capture")]
    data_capture_kms_key: Option<String>,
    /// Append an inference id to each captured request
    #[arg(long, requires = "data_capture")]
    data_capture_ids: bool,
    /// Name of an existing SageMaker experiment for the job's trial component
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
    /// Name of an existing trial for the job's trial component
    #[arg(long, value_name = "NAME")]
    trial: Option<String>,
    /// Display name of the trial component [default: its name]
    #[arg(long, value_name = "NAME")]
    trial_component: Option<String>,
    /// Name of the experiment run for the job's trial component
    #[arg(long, value_name = "NAME")]
    experiment_run: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cost")]
struct CostArgs {
    #[command(flatten)]
    price: PriceArgs,
    /// Measured images per second on one instance, to estimate time and cost [default: from an earlier job]
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    images_per_s: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cost")]
pub(crate) struct PriceArgs {
    /// Price of one instance in USD per hour [default: from the price table]
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    pub(crate) hourly_price: Option<f64>,
    /// Source of --hourly-price; saves both in the price table
    #[arg(long, value_name = "SOURCE", requires = "hourly_price")]
    price_source: Option<String>,
}

impl PriceArgs {
    /// The price table, which includes the price from the flags if its source was given.
    pub(crate) fn prices(
        &self,
        sagemaker: &SageMakerAccess,
        instance_type: &str,
        dirs: &AppDirs,
    ) -> anyhow::Result<PriceTable> {
        let (Some(usd_per_hour), Some(source)) = (self.hourly_price, &self.price_source) else {
            return Ok(read_prices(&dirs.prices())?);
        };
        let price = Price {
            instance_type: instance_type.to_owned(),
            region: sagemaker.region.clone(),
            usd_per_hour,
            source: source.clone(),
            date: jiff::Zoned::now().date().to_string(),
        };
        let table = add_price(&dirs.prices(), &price)?;
        eprintln!("saved the price in {}", dirs.prices().display());
        Ok(table)
    }
}

impl JobArgs {
    /// The plan before the preflight. Queries AWS for the region and the content of an archive in S3.
    pub(crate) fn plan(&self, aws: &Aws, control: &TaskControl) -> anyhow::Result<Planned> {
        let packing = self.model.packing(control)?;
        let s3 = self.s3.access();
        let access = SageMakerAccess::from(&s3);
        let client = aws.sagemaker(&access);
        let region = client.region(control)?;
        let job_name = self.job_name.clone();
        let job_name = job_name.unwrap_or_else(|| dated_name(&self.model.stem(), now_ms()));
        let (objects, manifest, input_folder) = self.input(&job_name)?;
        let sagemaker = SageMakerAccess { region: Some(region.clone()), ..access };
        let archive_to = archive_address(&self.output, &job_name);
        let tags = self.extras.tags.iter().cloned().collect();
        let (model_name, model) = self.model.model((&client, control), &job_name, Some(archive_to), &tags)?;
        let spec = TransformSpec { tags, ..self.spec(&job_name, &model_name, objects) };
        let model = match model {
            None => ModelSource::Existing,
            Some(model) => model.source(&aws.s3(&s3), &region, &spec.resources.instance_type, control)?,
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
                usd_per_hour: self.cost.price.hourly_price,
                images_per_s: self.cost.images_per_s,
                inside: None,
                retry_of: None,
            },
            packing,
        })
    }

    /// As [`PriceArgs::prices`].
    pub(crate) fn prices(&self, plan: &TransformPlan, dirs: &AppDirs) -> anyhow::Result<PriceTable> {
        self.cost.price.prices(&plan.sagemaker, &plan.spec.resources.instance_type, dirs)
    }

    fn input(&self, job_name: &str) -> anyhow::Result<(InputObjects, Option<ManifestPlan>, Option<PathBuf>)> {
        let place = parse_location(&self.input, &S3Args::default())?;
        let address = match (place, &self.images.input_to) {
            (Location::S3(place), None) => place.address,
            (Location::S3(_), Some(_)) => {
                bail!("--input-to is for a local folder, but the input is already in S3; remove it")
            }
            (Location::Path(path), _) if is_stdin(&path) => {
                bail!(
                    "the input must be an s3:// URI or a local folder; to read a list of images from stdin, add \
                    --images -"
                )
            }
            (Location::Path(folder), Some(target)) => {
                let target = InputObjects::Prefix(target.as_folder());
                return Ok((target, None, Some(folder)));
            }
            (Location::Path(folder), None) => bail!(
                "a job reads its input from S3. To upload this folder, add --input-to s3://bucket/prefix/: {}",
                folder.display()
            ),
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
        let spec = TransformSpec::over_images(job_name, model_name, objects, &self.output);
        let mut spec = match self.images.input_kind {
            InputKind::Images => spec,
            InputKind::Tfrecord => spec.over_records(),
            InputKind::Lines => spec.over_lines(),
        };
        let input = &mut spec.input;
        if let Some(content_type) = &self.images.content_type {
            input.content_type.clone_from(content_type);
        }
        input.split = self.images.split_type.unwrap_or(input.split);
        input.compression = self.images.compression.unwrap_or(input.compression);
        self.requests.apply(&mut spec);
        let ResourceArgs { instances, ami_version } = &self.resources;
        spec.resources = Resources { ami_version: ami_version.clone(), ..instances.resources() };
        self.extras.apply(&mut spec);
        spec
    }
}

/// A job planned on the command line.
pub(crate) struct Planned {
    pub(crate) plan: TransformPlan,
    /// The model to pack first.
    pub(crate) packing: Option<Packing>,
}

impl Planned {
    /// A plan whose model needs no packing.
    pub(crate) fn new(plan: TransformPlan) -> Self {
        Self { plan, packing: None }
    }

    /// Packs the model, if needed and if the input is not empty. The archive exists as long as the returned value.
    pub(crate) fn pack(&mut self, aws: &Aws, control: &TaskControl) -> anyhow::Result<Option<PackedHere>> {
        let Some(packing) = &self.packing else {
            return Ok(None);
        };
        if !has_input(aws, &self.plan, control)? {
            return Ok(None);
        }
        let plan = &mut self.plan;
        let packed = packing.pack(&mut plan.model, &plan.spec.resources.instance_type, control)?;
        Ok(Some(packed))
    }

    /// Checks the plan, and fills in values that the flags leave open. An archive that is not packed yet is not
    /// checked.
    pub(crate) fn preflight(
        &mut self,
        aws: &Aws,
        (prices, records): (&PriceTable, &JobRecords),
        packed: Option<&PackedHere>,
        control: &TaskControl,
    ) -> anyhow::Result<Preflight> {
        let mut found =
            with_progress("Preflight", control, || preflight(aws, &mut self.plan, (prices, records), control))?;
        if self.packing.is_some() && packed.is_none() {
            found.checks.retain(|check| check.point != CheckPoint::Model);
        }
        Ok(found)
    }
}

impl RequestArgs {
    fn apply(&self, spec: &mut TransformSpec) {
        if let Some(accept) = &self.accept {
            spec.output.accept = (!accept.is_empty()).then(|| accept.clone());
        }
        spec.batch_strategy = self.batch_strategy.unwrap_or(spec.batch_strategy);
        spec.output.assemble = self.assemble_with.unwrap_or(spec.output.assemble);
        spec.max_payload_mb = self.max_payload_mb;
        spec.max_concurrent = self.max_concurrent;
        spec.model_client = ModelClient { timeout_s: self.timeout_s, max_retries: self.max_retries };
        let preset = self.tfs_batching.map(TfsBatching::environment);
        spec.environment = preset.unwrap_or_default();
        spec.environment.extend(self.env.iter().cloned());
        spec.data_processing = DataProcessing {
            input_filter: self.input_filter.clone(),
            output_filter: self.output_filter.clone(),
            join_source: self.join_input.then_some(JoinSource::Input),
        };
    }
}

impl InstanceArgs {
    pub(crate) fn resources(&self) -> Resources {
        Resources {
            instance_type: self.instance_type.clone(),
            instance_count: self.instance_count,
            volume_kms_key: self.volume_kms_key.clone(),
            ..Resources::default()
        }
    }
}

impl ExtraArgs {
    fn apply(&self, spec: &mut TransformSpec) {
        spec.output.kms_key.clone_from(&self.output_kms_key);
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
        spec.experiment = experiment.given();
    }
}

/// The images in a list: each line has a name below the input, or a full `s3://` address.
fn listed_images(list: &Path, input: &S3Address) -> anyhow::Result<Vec<SampleUri>> {
    let from_stdin = list.as_os_str() == "-";
    let reader: Box<dyn BufRead> = if from_stdin {
        Box::new(std::io::stdin().lock())
    } else {
        let file =
            local_file::open(list).with_context(|| format!("Could not read the list of images {}", list.display()))?;
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
