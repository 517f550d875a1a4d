//! The form that sends a model and images to a Batch Transform job.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::model_draft::{ChosenModel, ModelDraft};
use crate::domain::{
    AssembleWith, BatchStrategy, CheckGrade, Compression, DataCapture, DataProcessing, Experiment,
    InputObjects, ModelClient, ModelSource, Preflight, S3Access, S3Address, S3Layout, S3Link,
    Sample, SampleId, SharedList, SplitType, TransformPlan, TransformSpec, manifest_address,
};
use crate::state::{ExportScope, State, TaskId};

/// What stands in the form. What is the same for the next job is kept in the settings; none of it is a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendDraft {
    pub model: ModelDraft,
    #[serde(skip, default = "everything")]
    pub scope: ExportScope,
    #[serde(skip)]
    pub job_name: String,
    /// The folder in S3 that gets a folder of its own for the outputs of each job, and beside it what the job needs.
    pub base: String,
    /// Where local images go; empty takes a folder below `base`.
    #[serde(skip)]
    pub upload_to: String,
    /// The ARN that the container runs as.
    pub role: String,
    /// The container's URI in ECR; empty takes the one that Spotcheck suggests for the region.
    pub image: String,
    pub instance_type: String,
    pub instance_count: u32,
    /// US dollars an hour for one instance of this type, where the user says so.
    #[serde(skip)]
    pub usd_per_hour: Option<f64>,
    /// What one instance of this type does with this model, where the user says so.
    #[serde(skip)]
    pub images_per_s: Option<f64>,
    /// `None`: as the check suggests.
    pub max_payload_mb: Option<u32>,
    /// `None`: as the check suggests.
    pub max_concurrent: Option<u32>,
    pub environment: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
    pub volume_kms_key: String,
    pub output_kms_key: String,
    /// `None`: what suits the images.
    pub content_type: Option<String>,
    /// `None`: JSON. Empty: what the model answers in is left to it.
    pub accept: Option<String>,
    /// `None`: what suits the images.
    pub split: Option<SplitType>,
    pub batch_strategy: BatchStrategy,
    /// `None`: what suits the images.
    pub assemble: Option<AssembleWith>,
    pub model_client: ModelClient,
    #[serde(skip)]
    pub data_processing: DataProcessing,
    pub advanced: SendAdvanced,
}

/// What few jobs need. Texts are empty where nothing is chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendAdvanced {
    /// Of the model that is made; empty takes the job's.
    #[serde(skip)]
    pub model_name: String,
    pub model_environment: BTreeMap<String, String>,
    /// A manifest that lies in S3 already, in place of the images of the window.
    #[serde(skip)]
    pub manifest: String,
    #[serde(skip)]
    pub compression: Compression,
    pub ami_version: String,
    #[serde(skip)]
    pub capture_to: String,
    #[serde(skip)]
    pub capture_kms_key: String,
    #[serde(skip)]
    pub capture_ids: bool,
    #[serde(skip)]
    pub experiment: String,
    #[serde(skip)]
    pub trial: String,
    #[serde(skip)]
    pub trial_component: String,
    #[serde(skip)]
    pub run: String,
}

fn everything() -> ExportScope {
    ExportScope::All
}

impl Default for SendDraft {
    fn default() -> Self {
        Self {
            model: ModelDraft::default(),
            scope: everything(),
            job_name: String::new(),
            base: String::new(),
            upload_to: String::new(),
            role: String::new(),
            image: String::new(),
            instance_type: "ml.m5.xlarge".to_owned(),
            instance_count: 1,
            usd_per_hour: None,
            images_per_s: None,
            max_payload_mb: None,
            max_concurrent: None,
            environment: BTreeMap::new(),
            tags: BTreeMap::new(),
            volume_kms_key: String::new(),
            output_kms_key: String::new(),
            content_type: None,
            accept: None,
            split: None,
            batch_strategy: BatchStrategy::default(),
            assemble: None,
            model_client: ModelClient::default(),
            data_processing: DataProcessing::default(),
            advanced: SendAdvanced::default(),
        }
    }
}

/// A form that is filled in far enough to be checked.
#[derive(Debug, Clone)]
pub struct SendOrder {
    pub access: S3Access,
    pub model: ChosenModel,
    /// Of the container of a model that is made for the job.
    pub model_environment: BTreeMap<String, String>,
    /// The folder that the folder of the outputs lies in.
    pub base: S3Address,
    pub images: SendImages,
    pub role: String,
    /// `None`: the one that Spotcheck suggests for the region.
    pub image: Option<String>,
    /// Payload and concurrency are `None` where they are to be suggested. A manifest stands where it will lie.
    pub spec: TransformSpec,
    pub usd_per_hour: Option<f64>,
    pub images_per_s: Option<f64>,
}

/// Which images a job gets.
#[derive(Debug, Clone)]
pub struct SendImages {
    listing: SharedList<Sample>,
    /// `None` takes all.
    chosen: Option<Vec<SampleId>>,
    /// More images may come: the place is still being listed.
    pub is_partial: bool,
    pub lie: SendFrom,
}

/// Where the images of a job lie.
#[derive(Debug, Clone, PartialEq)]
pub enum SendFrom {
    /// They are all that begins with the prefix that is open.
    Prefix,
    /// They are objects, to be listed in a manifest.
    Objects {
        /// The prefix that is open: they are named from it.
        folder: S3Address,
    },
    /// They are what a manifest lists that lies here already, whatever is open.
    Manifest(S3Address),
    /// They are local files, which are uploaded first and listed in a manifest.
    Local {
        /// The folder that they are named from.
        root: String,
        /// They are all images of that folder.
        is_whole: bool,
        /// The folder that they go to.
        target: S3Address,
    },
}

impl SendImages {
    pub fn len(&self) -> usize {
        self.chosen.as_ref().map_or(self.listing.len(), Vec::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that are open, chosen or not.
    pub fn listing(&self) -> impl Iterator<Item = &Sample> {
        self.listing.iter()
    }

    /// In the order they were chosen in.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        let chosen = self.chosen.as_deref();
        let all = chosen.is_none().then(|| self.listing.iter());
        let some = chosen.unwrap_or_default().iter();
        let some = some.filter_map(|id| self.listing.get(id.index()));
        all.into_iter().flatten().chain(some)
    }
}

/// What became of the form.
#[derive(Debug, Default)]
pub struct SendStatus {
    /// Counts up whenever the form begins anew.
    pub serial: u64,
    /// What was checked last, or is being checked.
    pub draft: SendDraft,
    /// What is missing before anything can be checked.
    pub missing: Option<String>,
    pub check: SendStage<SendCheck>,
    pub rehearsal: SendStage<RehearsalReport>,
    /// Packing, uploading and starting.
    pub start: SendStage<()>,
}

/// How a rehearsal is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RehearsalRequest {
    /// The program that runs the handler.
    pub python: String,
    /// So many are tried, the first ones; `1..`.
    pub images: usize,
    /// What runs a `SavedModel`: `http://host:8501/v1/models/NAME:predict`. Other models do without.
    pub tensorflow_serving: String,
}

impl Default for RehearsalRequest {
    fn default() -> Self {
        Self {
            python: "python3".to_owned(),
            images: 10,
            tensorflow_serving: String::new(),
        }
    }
}

/// How a rehearsal went.
#[derive(Debug, Clone, PartialEq)]
pub struct RehearsalReport {
    /// Every image comes back as on this machine; of a `SavedModel`, which nothing but TensorFlow Serving runs, with a
    /// prediction.
    pub is_well: bool,
    pub summary: String,
    /// What is not as here, and why.
    pub notes: Vec<String>,
    /// Of those that were sent, on this machine; `None` where none was.
    pub images_per_s: Option<f64>,
}

/// Something about the form that takes a while.
#[derive(Debug, Default)]
pub enum SendStage<T> {
    #[default]
    NotYet,
    Running(TaskId),
    Done(T),
    Failed(String),
}

impl<T> SendStage<T> {
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    pub(in crate::state) fn is_by(&self, task: TaskId) -> bool {
        matches!(self, Self::Running(running) if *running == task)
    }
}

/// What the check says.
#[derive(Debug, Clone, PartialEq)]
pub struct SendCheck {
    pub preflight: Preflight,
    /// The same as `aws` command lines, to be copied: line by line, as there may be as many as images.
    pub commands: Vec<String>,
    /// As it was checked, and as it is started: what nobody has set is set.
    pub plan: Arc<TransformPlan>,
}

impl SendCheck {
    /// The URI of the container; `None` where SageMaker has the model.
    pub fn image(&self) -> Option<&str> {
        match &self.plan.model {
            ModelSource::New { spec, .. } => Some(&spec.image),
            ModelSource::Existing => None,
        }
    }

    /// Whether nothing speaks against starting.
    pub fn is_startable(&self) -> bool {
        self.preflight.grade() != CheckGrade::Problem
    }
}

impl SendDraft {
    /// What is to be checked and started, or what is missing for that.
    pub fn order(&self, state: &State) -> Result<SendOrder, String> {
        let model = self.model.chosen()?;
        let job_name = self.job_name.trim();
        if job_name.is_empty() {
            return Err("Give the job a name".to_owned());
        }
        let base = folder_of(&self.base)
            .ok_or("Enter the S3 folder for the outputs")?
            .map_err(|why| format!("The folder for the outputs: {why}"))?;
        let images = self.images(state, &base)?;
        let is_listed = !matches!(images.lie, SendFrom::Manifest(_));
        if is_listed && images.is_empty() {
            return Err("There is no image to send".to_owned());
        }
        let place = state.source.as_ref().and_then(|open| open.place.as_ref());
        let prefix = place.filter(|_| images.lie == SendFrom::Prefix);
        let objects = match (prefix, &images.lie) {
            (Some(place), _) => InputObjects::Prefix(place.address.clone()),
            (None, SendFrom::Manifest(address)) => InputObjects::Manifest(address.clone()),
            (None, _) => InputObjects::Manifest(manifest_address(&base, job_name)),
        };
        let mut spec = self.spec(job_name, objects, &base, &images)?;
        if let ChosenModel::SageMaker(name) = &model {
            spec.model_name.clone_from(name);
        } else if let Some(name) = text_of(&self.advanced.model_name) {
            spec.model_name = name;
        }
        Ok(SendOrder {
            access: state.s3.access.clone(),
            model,
            model_environment: self.advanced.model_environment.clone(),
            role: self.role.trim().to_owned(),
            image: text_of(&self.image),
            spec,
            usd_per_hour: self.usd_per_hour,
            images_per_s: self.images_per_s,
            base,
            images,
        })
    }

    /// What was said of another machine or model than `before` counts no longer.
    pub fn forget_what_was_measured(&mut self, before: &Self) {
        if self.instance_type != before.instance_type {
            self.usd_per_hour = None;
            self.images_per_s = None;
        }
        if self.model != before.model {
            self.images_per_s = None;
        }
    }

    /// What the form of the next job begins with.
    pub(in crate::state) fn for_the_next(&self) -> Self {
        Self {
            model: self.model.for_the_next(),
            scope: everything(),
            job_name: String::new(),
            upload_to: String::new(),
            usd_per_hour: None,
            images_per_s: None,
            data_processing: DataProcessing::default(),
            advanced: SendAdvanced {
                model_environment: self.advanced.model_environment.clone(),
                ami_version: self.advanced.ami_version.clone(),
                ..SendAdvanced::default()
            },
            ..self.clone()
        }
    }

    fn images(&self, state: &State, base: &S3Address) -> Result<SendImages, String> {
        let chosen = match self.scope {
            ExportScope::All => None,
            ExportScope::Filter | ExportScope::Selection => Some(self.scope.ids(state)),
        };
        let listing = state.samples.snapshot();
        let is_partial = state.is_listing();
        if let Some(text) = text_of(&self.advanced.manifest) {
            let link = S3Link::parse(&text).map_err(|why| format!("The manifest: {why}"))?;
            return Ok(SendImages {
                listing,
                chosen,
                is_partial,
                lie: SendFrom::Manifest(link.address),
            });
        }
        let open = state.source.as_ref();
        let Some(place) = open.and_then(|open| open.place.as_ref()) else {
            let path = open.and_then(|open| open.path.as_deref());
            let (root, is_folder) =
                path.map_or_else(|| (String::new(), false), |path| local_root(path, &listing));
            let is_whole = is_folder && !is_partial && self.scope == ExportScope::All;
            let usual = || {
                let prefix = format!("{}images/{}/", base.prefix, folder_name(&root));
                Ok(S3Address::new(&base.bucket, prefix))
            };
            let target = folder_of(&self.upload_to)
                .unwrap_or_else(usual)
                .map_err(|why| format!("The folder for the images: {why}"))?;
            return Ok(SendImages {
                listing,
                chosen,
                is_partial,
                lie: SendFrom::Local {
                    root,
                    is_whole,
                    target,
                },
            });
        };
        // A prefix takes everything that begins with it: only where that is what is on screen.
        let is_whole = self.scope == ExportScope::All
            && place.layout == S3Layout::Flat
            && place.address.is_folder()
            && open.is_some_and(|open| open.notes.is_empty());
        let lie = if is_whole {
            SendFrom::Prefix
        } else {
            let folder = place.address.clone();
            SendFrom::Objects { folder }
        };
        Ok(SendImages {
            listing,
            chosen,
            is_partial,
            lie,
        })
    }

    fn spec(
        &self,
        job_name: &str,
        objects: InputObjects,
        base: &S3Address,
        images: &SendImages,
    ) -> Result<TransformSpec, String> {
        let mut spec = TransformSpec::over_images(job_name, job_name, objects, base);
        // Where only some are, the check says so.
        spec = match images.samples().next().map(|sample| &sample.uri) {
            Some(first) if first.is_line() => spec.over_lines(),
            Some(first) if first.record().is_some() => spec.over_records(),
            Some(_) | None => spec,
        };
        if let Some(content_type) = self.content_type.as_deref().and_then(text_of) {
            spec.input.content_type = content_type;
        }
        spec.input.split = self.split.unwrap_or(spec.input.split);
        if let Some(accept) = &self.accept {
            spec.output.accept = text_of(accept);
        }
        spec.output.assemble = self.assemble.unwrap_or(spec.output.assemble);
        spec.output.kms_key = text_of(&self.output_kms_key);
        spec.input.compression = self.advanced.compression;
        Ok(TransformSpec {
            instance_type: self.instance_type.trim().to_owned(),
            instance_count: self.instance_count,
            volume_kms_key: text_of(&self.volume_kms_key),
            batch_strategy: self.batch_strategy,
            max_payload_mb: self.max_payload_mb,
            max_concurrent: self.max_concurrent,
            model_client: self.model_client,
            environment: self.environment.clone(),
            tags: self.tags.clone(),
            data_processing: self.data_processing.clone(),
            ami_version: text_of(&self.advanced.ami_version),
            data_capture: self.advanced.data_capture()?,
            experiment: self.advanced.experiment(),
            ..spec
        })
    }
}

impl SendAdvanced {
    fn data_capture(&self) -> Result<Option<DataCapture>, String> {
        let Some(folder) = folder_of(&self.capture_to) else {
            return Ok(None);
        };
        let folder = folder.map_err(|why| format!("The folder for captured data: {why}"))?;
        Ok(Some(DataCapture {
            folder,
            kms_key: text_of(&self.capture_kms_key),
            with_inference_id: self.capture_ids,
        }))
    }

    fn experiment(&self) -> Option<Experiment> {
        let experiment = Experiment {
            experiment: text_of(&self.experiment),
            trial: text_of(&self.trial),
            trial_component: text_of(&self.trial_component),
            run: text_of(&self.run),
        };
        (experiment != Experiment::default()).then_some(experiment)
    }
}

/// `None` for an empty field.
pub(super) fn folder_of(text: &str) -> Option<Result<S3Address, String>> {
    let text = text_of(text)?;
    let link = S3Link::parse(&text).map_err(|error| error.to_string());
    Some(link.map(|link| link.address.as_folder()))
}

pub(super) fn text_of(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The folder that files are named from: the one that is open, or the one around a single file.
/// And whether it is the folder that is open.
fn local_root(open: &std::path::Path, listing: &SharedList<Sample>) -> (String, bool) {
    let mut all = listing.iter();
    let is_single = all
        .next()
        .is_some_and(|first| std::path::Path::new(first.uri.file()) == open);
    let root = if is_single {
        open.parent().unwrap_or(open)
    } else {
        open
    };
    (root.display().to_string(), !is_single)
}

fn folder_name(root: &str) -> &str {
    let name = std::path::Path::new(root).file_name();
    name.and_then(|name| name.to_str()).unwrap_or("images")
}
