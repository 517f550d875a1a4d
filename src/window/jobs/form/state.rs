//! The form for starting a Batch Transform job.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

use crate::domain::{Location, S3Access, S3Address, S3Layout, S3Link, Sample, SampleId, SharedList};
use crate::sagemaker::spec::transform::{
    AssembleWith, Compression, DataProcessing, InputObjects, SplitType, TransformPlan, TransformSpec, archive_address,
    manifest_address, output_folder,
};
use crate::window::remote::state::{ChosenModel, Draft, Form, ModelDraft, ModelRequest, folder_of, text_of};
use crate::window::state::{ExportScope, SourceId, State};

pub type JobForm = Form<JobDraft, TransformPlan>;

/// The fields of the form. The settings store those that the next job may reuse. Contains no secrets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobDraft {
    pub model: ModelDraft,
    #[serde(skip)]
    pub scope: ExportScope,
    /// The S3 folder for the output folders of jobs, and for the archives and manifests that jobs need.
    pub base: String,
    /// The S3 folder for local images; empty for a folder below `base`.
    #[serde(skip)]
    pub upload_to: String,
    /// The address of a manifest in S3 that replaces the images of the window.
    #[serde(skip)]
    pub manifest: String,
    /// The folder for captured data; empty captures nothing.
    #[serde(skip)]
    pub capture_to: String,
    /// `None` to choose by the images.
    pub content_type: Option<String>,
    /// `None` to choose by the images.
    pub split: Option<SplitType>,
    /// `None` to choose by the images.
    pub assemble: Option<AssembleWith>,
    /// US dollars per hour for one instance of this type, as typed.
    #[serde(skip)]
    pub usd_per_hour: Option<f64>,
    /// Images per second on one instance of this type with this model, as typed.
    #[serde(skip)]
    pub images_per_s: Option<f64>,
    /// The job itself. [`JobDraft::request`] sets input, output folder and the three fields above.
    #[serde(serialize_with = "without_environment", deserialize_with = "TransformSpec::from_stored")]
    pub spec: TransformSpec,
}

/// Removes the environment, because its values may be secrets.
fn without_environment<S: Serializer>(spec: &TransformSpec, serializer: S) -> Result<S::Ok, S::Error> {
    TransformSpec { environment: BTreeMap::new(), ..spec.clone() }.serialize(serializer)
}

/// A form that is complete enough for a check.
#[derive(Debug, Clone)]
pub struct JobRequest {
    pub access: S3Access,
    pub model: ModelRequest,
    /// The S3 folder for the archive of a local model.
    pub archive: S3Address,
    pub images: JobImages,
    /// Payload and concurrency are `None` to use suggested values. The manifest has its future address.
    pub spec: TransformSpec,
    pub usd_per_hour: Option<f64>,
    pub images_per_s: Option<f64>,
}

#[derive(Debug, Clone)]
pub struct JobImages {
    listing: SharedList<Sample>,
    /// `None` for all.
    chosen: Option<Vec<SampleId>>,
    /// Whether more images may follow because the location is still being listed.
    pub is_partial: bool,
    pub from: ImagesFrom,
}

/// The location of a job's images.
#[derive(Debug, Clone, PartialEq)]
pub enum ImagesFrom {
    /// All objects with the open prefix.
    Prefix,
    /// Objects to list in a manifest.
    Objects {
        /// The open prefix, which their names are relative to.
        folder: S3Address,
    },
    /// An S3 manifest that lists them, regardless of what is open.
    Manifest(S3Address),
    /// Local files, which are uploaded first and listed in a manifest.
    Local {
        /// The folder that their names are relative to.
        root: String,
        /// Whether they are all images of that folder.
        is_whole: bool,
        /// The folder to upload them to.
        target: S3Address,
    },
}

impl JobImages {
    pub fn len(&self) -> usize {
        self.chosen.as_ref().map_or(self.listing.len(), Vec::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All open images, chosen or not.
    pub fn listing(&self) -> impl Iterator<Item = &Sample> {
        self.listing.iter()
    }

    /// The chosen samples, in order.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        let chosen = self.chosen.as_deref();
        let all = chosen.is_none().then(|| self.listing.iter());
        let some = chosen.unwrap_or_default().iter();
        let some = some.filter_map(|id| self.listing.get(id.index()));
        all.into_iter().flatten().chain(some)
    }
}

/// The options for testing a job locally.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RehearsalOptions {
    /// The program that runs the handler.
    pub python: String,
    /// The number of images to test, starting with the first; `1..`.
    pub images: usize,
    /// The server for a `SavedModel`: `http://host:8501/v1/models/NAME:predict`. Other models need none.
    pub tensorflow_serving: String,
}

/// A job to test on this computer with some of its images.
#[derive(Debug, Clone)]
pub struct RehearsalRequest {
    pub source: SourceId,
    pub job: JobRequest,
    pub options: RehearsalOptions,
    pub runtime_library: Option<PathBuf>,
}

impl Default for RehearsalOptions {
    fn default() -> Self {
        Self { python: "python3".to_owned(), images: 10, tensorflow_serving: String::new() }
    }
}

/// The result of a local test.
#[derive(Debug, Clone, PartialEq)]
pub struct RehearsalReport {
    /// Whether every image gives the same prediction as the local model; for a `SavedModel`, which only TensorFlow
    /// Serving runs, any prediction.
    pub is_well: bool,
    pub summary: String,
    /// The differences from the local predictions, with the reasons.
    pub notes: Vec<String>,
    /// The speed of local predictions; `None` if there were none.
    pub images_per_s: Option<f64>,
}

impl Draft for JobDraft {
    type Plan = TransformPlan;

    fn form(state: &mut State) -> &mut JobForm {
        &mut state.remote.job_form
    }

    fn model(&mut self) -> &mut ModelDraft {
        &mut self.model
    }

    fn base(&mut self) -> &mut String {
        &mut self.base
    }
}

impl JobDraft {
    /// The request to check and start, or what is missing for it.
    pub fn request(&self, state: &State) -> Result<JobRequest, String> {
        let model = self.model.request()?;
        let mut spec = self.spec.clone();
        spec.job_name = text_of(&spec.job_name).ok_or("Give the job a name")?;
        let base = folder_of(&self.base)
            .ok_or("Enter the S3 folder for the outputs")?
            .map_err(|why| format!("The folder for the outputs: {why}"))?;
        let images = self.images(state, &base)?;
        if images.is_empty() && !matches!(images.from, ImagesFrom::Manifest(_)) {
            return Err("There is no image to send".to_owned());
        }
        let place = state.place();
        let prefix = place.filter(|_| images.from == ImagesFrom::Prefix);
        spec.input.data_source.objects = match (prefix, &images.from) {
            (Some(place), _) => InputObjects::Prefix(place.address.clone()),
            (None, ImagesFrom::Manifest(address)) => InputObjects::Manifest(address.clone()),
            (None, _) => InputObjects::Manifest(manifest_address(&base, &spec.job_name)),
        };
        spec.output.folder = output_folder(&base, &spec.job_name);
        // If only some of the images are like the first one, the check reports it.
        spec = match images.samples().next().map(|sample| &sample.uri) {
            Some(first) if first.is_line() => spec.over_lines(),
            Some(first) if first.is_in_document() => spec.over_documents(),
            Some(first) if first.record().is_some() => spec.over_records(),
            Some(_) | None => spec,
        };
        if let Some(content_type) = &self.content_type {
            spec.input.content_type.clone_from(content_type);
        }
        spec.input.split = self.split.unwrap_or(spec.input.split);
        spec.output.assemble = self.assemble.unwrap_or(spec.output.assemble);
        spec.resources.instance_type = spec.resources.instance_type.trim().into();
        spec.model_name = match (&model.model, text_of(&spec.model_name)) {
            (ChosenModel::SageMaker(existing), _) => existing.clone(),
            (_, Some(name)) => name,
            (_, None) => spec.job_name.clone(),
        };
        spec.data_capture = match folder_of(&self.capture_to).transpose() {
            Err(why) => return Err(format!("The folder for captured data: {why}")),
            Ok(folder) => folder.map(|folder| {
                let mut capture = spec.data_capture.take().unwrap_or_default();
                capture.folder = folder;
                capture
            }),
        };
        Ok(JobRequest {
            access: state.s3.access.clone(),
            model,
            archive: archive_address(&base, &spec.job_name),
            spec,
            usd_per_hour: self.usd_per_hour,
            images_per_s: self.images_per_s,
            images,
        })
    }

    /// Drops a price and a speed given for another instance type or model than `before`.
    pub fn forget_what_was_measured(&mut self, before: &Self) {
        if self.spec.resources.instance_type != before.spec.resources.instance_type {
            self.usd_per_hour = None;
            self.images_per_s = None;
        }
        if self.model != before.model {
            self.images_per_s = None;
        }
    }

    /// The initial draft for the next form.
    pub(crate) fn for_the_next(&self) -> Self {
        let mut spec = TransformSpec {
            job_name: String::new(),
            model_name: String::new(),
            data_processing: DataProcessing::default(),
            data_capture: None,
            experiment: None,
            ..self.spec.clone()
        };
        spec.input.compression = Compression::None;
        Self {
            model: self.model.for_the_next(),
            base: self.base.clone(),
            content_type: self.content_type.clone(),
            split: self.split,
            assemble: self.assemble,
            spec,
            ..Self::default()
        }
    }

    fn images(&self, state: &State, base: &S3Address) -> Result<JobImages, String> {
        let chosen = match self.scope {
            ExportScope::All => None,
            ExportScope::Filter | ExportScope::Selection => Some(self.scope.ids(state)),
        };
        let listing = state.samples.snapshot();
        let is_partial = state.is_listing();
        if let Some(text) = text_of(&self.manifest) {
            let link = S3Link::parse(&text).map_err(|why| format!("The manifest: {why}"))?;
            return Ok(JobImages { listing, chosen, is_partial, from: ImagesFrom::Manifest(link.address) });
        }
        let open = state.source.as_ref();
        let Some(place) = state.place() else {
            let path = state.location().and_then(Location::path);
            let (root, is_folder) = path.map_or_else(|| (String::new(), false), |path| local_root(path, &listing));
            let is_whole = is_folder && !is_partial && self.scope == ExportScope::All;
            let usual = || Ok(base.below(&format!("images/{}/", folder_name(&root))));
            let target = folder_of(&self.upload_to)
                .unwrap_or_else(usual)
                .map_err(|why| format!("The folder for the images: {why}"))?;
            return Ok(JobImages { listing, chosen, is_partial, from: ImagesFrom::Local { root, is_whole, target } });
        };
        // A prefix includes everything that starts with it, so it is used only if that is exactly what is on screen.
        let is_whole = self.scope == ExportScope::All
            && place.layout == S3Layout::Flat
            && place.address.is_folder()
            && open.is_some_and(|open| open.notes.is_empty());
        let from = if is_whole {
            ImagesFrom::Prefix
        } else {
            let folder = place.address.clone();
            ImagesFrom::Objects { folder }
        };
        Ok(JobImages { listing, chosen, is_partial, from })
    }
}

/// The folder that file names are relative to (the open folder, or the parent of a single file), and whether it is the
/// open folder.
fn local_root(open: &std::path::Path, listing: &SharedList<Sample>) -> (String, bool) {
    let mut all = listing.iter();
    let is_single = all.next().is_some_and(|first| std::path::Path::new(first.uri.file()) == open);
    let root = if is_single { open.parent().unwrap_or(open) } else { open };
    (root.display().to_string(), !is_single)
}

fn folder_name(root: &str) -> &str {
    let name = std::path::Path::new(root).file_name();
    name.and_then(|name| name.to_str()).unwrap_or("images")
}
