//! The form that sends a model and images to a Batch Transform job.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{
    AssembleWith, BatchStrategy, CheckGrade, DataProcessing, InputObjects, ModelClient, Preflight,
    S3Access, S3Address, S3Layout, S3Link, Sample, SampleId, SharedList, SplitType, TransformPlan,
    TransformSpec, support_folder,
};
use crate::state::{ExportScope, State, TaskId};

/// What stands in the form. What is the same for the next job is kept in the settings; none of it is a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendDraft {
    /// Of the library.
    #[serde(skip)]
    pub model: Option<String>,
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
    /// `None`: JSON.
    pub accept: Option<String>,
    /// `None`: what suits the images.
    pub split: Option<SplitType>,
    pub batch_strategy: BatchStrategy,
    /// `None`: what suits the images.
    pub assemble: Option<AssembleWith>,
    pub model_client: ModelClient,
    #[serde(skip)]
    pub data_processing: DataProcessing,
}

fn everything() -> ExportScope {
    ExportScope::All
}

impl Default for SendDraft {
    fn default() -> Self {
        Self {
            model: None,
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
        }
    }
}

/// A form that is filled in far enough to be checked.
#[derive(Debug, Clone)]
pub struct SendOrder {
    pub access: S3Access,
    pub model_id: String,
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
    /// They are local files, which are uploaded first and listed in a manifest.
    Local {
        /// The folder that they are named from.
        root: String,
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
pub struct RehearsalWish {
    /// The program that runs the handler.
    pub python: String,
    /// So many are tried, the first ones; `1..`.
    pub images: usize,
}

impl Default for RehearsalWish {
    fn default() -> Self {
        Self {
            python: "python3".to_owned(),
            images: 10,
        }
    }
}

/// How a rehearsal went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehearsalReport {
    /// Every image comes back as on this machine.
    pub is_well: bool,
    pub summary: String,
    /// What is not as here, and why.
    pub notes: Vec<String>,
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
    /// The same as `aws` command lines, to be copied.
    pub commands: String,
    /// As it was checked, and as it is started: what nobody has set is set.
    pub plan: Arc<TransformPlan>,
}

impl SendCheck {
    /// Whether nothing speaks against starting.
    pub fn is_startable(&self) -> bool {
        self.preflight.grade() != CheckGrade::Problem
    }
}

impl SendDraft {
    /// What is to be checked and started, or what is missing for that.
    pub fn order(&self, state: &State) -> Result<SendOrder, String> {
        let model_id = self.model.clone().ok_or("Choose a model")?;
        let job_name = self.job_name.trim();
        if job_name.is_empty() {
            return Err("Give the job a name".to_owned());
        }
        let base = folder_of(&self.base)
            .ok_or("Say in which folder of S3 the outputs are to lie")?
            .map_err(|why| format!("The folder for the outputs: {why}"))?;
        let images = self.images(state, &base)?;
        if images.is_empty() {
            return Err("There is no image to send".to_owned());
        }
        let place = state.source.as_ref().and_then(|open| open.place.as_ref());
        let prefix = place.filter(|_| images.lie == SendFrom::Prefix);
        let objects = if let Some(place) = prefix {
            InputObjects::Prefix(place.address.clone())
        } else {
            let folder = support_folder(&base, job_name);
            let key = format!("{}images.manifest", folder.prefix);
            InputObjects::Manifest(S3Address::new(folder.bucket, key))
        };
        Ok(SendOrder {
            access: state.s3.access.clone(),
            model_id,
            role: self.role.trim().to_owned(),
            image: text_of(&self.image),
            spec: self.spec(job_name, objects, &base, &images),
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
            model: None,
            scope: everything(),
            job_name: String::new(),
            upload_to: String::new(),
            usd_per_hour: None,
            images_per_s: None,
            data_processing: DataProcessing::default(),
            ..self.clone()
        }
    }

    fn images(&self, state: &State, base: &S3Address) -> Result<SendImages, String> {
        let chosen = match self.scope {
            ExportScope::All => None,
            ExportScope::Filter | ExportScope::Selection => Some(self.scope.ids(state)),
        };
        let listing = state.samples.snapshot();
        let open = state.source.as_ref();
        let Some(place) = open.and_then(|open| open.place.as_ref()) else {
            let path = open.and_then(|open| open.path.as_deref());
            let root = path.map_or_else(String::new, |path| local_root(path, &listing));
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
                is_partial: state.is_listing(),
                lie: SendFrom::Local { root, target },
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
            is_partial: state.is_listing(),
            lie,
        })
    }

    fn spec(
        &self,
        job_name: &str,
        objects: InputObjects,
        base: &S3Address,
        images: &SendImages,
    ) -> TransformSpec {
        let mut spec = TransformSpec::over_images(job_name, job_name, objects, base);
        // Where only some are, the check says so.
        let mut samples = images.samples();
        if samples
            .next()
            .is_some_and(|sample| sample.uri.record().is_some())
        {
            spec = spec.over_records();
        }
        if let Some(content_type) = self.content_type.as_deref().and_then(text_of) {
            spec.input.content_type = content_type;
        }
        spec.input.split = self.split.unwrap_or(spec.input.split);
        if let Some(accept) = self.accept.as_deref().and_then(text_of) {
            spec.output.accept = Some(accept);
        }
        spec.output.assemble = self.assemble.unwrap_or(spec.output.assemble);
        spec.output.kms_key = text_of(&self.output_kms_key);
        TransformSpec {
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
            ..spec
        }
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
fn local_root(open: &std::path::Path, listing: &SharedList<Sample>) -> String {
    let mut all = listing.iter();
    let is_single = all
        .next()
        .is_some_and(|first| std::path::Path::new(first.uri.file()) == open);
    let root = if is_single {
        open.parent().unwrap_or(open)
    } else {
        open
    };
    root.display().to_string()
}

fn folder_name(root: &str) -> &str {
    let name = std::path::Path::new(root).file_name();
    name.and_then(|name| name.to_str()).unwrap_or("images")
}
