//! Remote work: the jobs and endpoints, their lists, and what their forms share: the check, the start and the model.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{ListPage, ListQuery, S3Access, S3Address, S3Link};
use crate::sagemaker::spec::transform::{CheckGrade, Network, Preflight};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    Command, Effect, EndpointForm, Endpoints, Failure, JobForm, KnownJob, Loadable, OpeningOutputs, Overlay, Prices,
    Reading, RehearsalReport, RemoteModelForm, State, TaskId, TaskKind, Ticket,
};

/// The state of SageMaker in the window.
#[derive(Debug, Default)]
pub struct Remote {
    pub job_form: JobForm,
    pub rehearsal: Loadable<RehearsalReport>,
    pub prices: Prices,
    pub endpoint_form: EndpointForm,
    pub jobs: Resources<KnownJob>,
    pub endpoints: Endpoints,
    pub outputs: OpeningOutputs,
    pub remote_model: RemoteModelForm,
    /// The dialog for reading responses.
    pub reading: Reading,
}

/// A job or an endpoint, as far as the window knows it.
pub trait Resource: Debug + Sized + 'static {
    type Id: Debug + Clone + PartialEq + Send;
    type Status: Debug + Clone + PartialEq + Send;
    /// An entry of the list.
    type Row: Debug + Send;
    /// What else is known about a page of the list.
    type Listed: Debug + Send;
    /// The result of a poll.
    type Seen: Debug + Send;

    /// “job”
    const NOUN: &'static str;
    const DIALOG: Overlay;
    /// The kind of its tasks other than polling.
    const TASKS: TaskKind;
    const POLLING: (TaskKind, ProgressUnit);

    fn new(id: Self::Id) -> Self;
    fn id(&self) -> &Self::Id;
    fn name_of(id: &Self::Id) -> &str;
    fn watch(&mut self) -> &mut Watch;
    fn all(state: &State) -> &Resources<Self>;
    fn all_mut(state: &mut State) -> &mut Resources<Self>;
    fn command(command: RemoteCommand<Self::Id, Self::Status>) -> Command;
    fn effect(effect: RemoteEffect<Self::Id, Self::Status>) -> Effect;
}

/// Commands of the list and the page of every kind of resource.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoteCommand<I, S> {
    /// Reads the list from the start.
    List(ListQuery<S>),
    ListMore,
    Open(I),
    /// Closes the page; the list stays.
    Close,
    Watch(I),
    StopWatching(I),
}

#[derive(Debug, Clone)]
pub enum RemoteEffect<I, S> {
    List { access: S3Access, query: ListQuery<S>, ticket: Ticket },
    Watch(I, Ticket),
}

#[derive(Debug)]
pub enum RemoteEvent<R: Resource> {
    Listed {
        task: TaskId,
        is_first: bool,
        result: Result<(ListPage<R::Row>, R::Listed), Failure>,
    },
    Seen {
        id: R::Id,
        task: TaskId,
        seen: Box<R::Seen>,
    },
    /// A poll failed and is retried.
    Trouble {
        id: R::Id,
        task: TaskId,
        text: String,
    },
    WatchEnded(R::Id, TaskId, WatchEnd),
}

/// Why a resource is no longer watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// It does not change any more.
    Over,
    Absent(Failure),
    Failed(Failure),
}

#[derive(Debug, Default)]
pub struct Watch {
    pub task: Option<TaskId>,
    /// Why polling or another request failed.
    pub failure: Option<Failure>,
    /// Why the last poll failed; polling continues.
    pub trouble: Option<String>,
}

#[derive(Debug)]
pub struct Resources<R: Resource> {
    pub list: RemoteList<R::Status, R::Row>,
    /// Those that were created from here, opened or watched, oldest first.
    pub known: Vec<R>,
    /// The one that the dialog shows.
    pub open: Option<R::Id>,
}

impl<R: Resource> Default for Resources<R> {
    fn default() -> Self {
        Self { list: RemoteList::default(), known: Vec::new(), open: None }
    }
}

impl<R: Resource> Resources<R> {
    pub fn get(&self, id: &R::Id) -> Option<&R> {
        self.known.iter().find(|known| known.id() == id)
    }

    /// The one that the dialog shows.
    pub fn shown(&self) -> Option<&R> {
        self.get(self.open.as_ref()?)
    }

    pub(crate) fn get_mut(&mut self, id: &R::Id) -> Option<&mut R> {
        self.known.iter_mut().find(|known| known.id() == id)
    }

    /// The state of this one, which is created empty if it does not exist.
    pub(crate) fn get_or_insert(&mut self, id: &R::Id) -> &mut R {
        let position = self.known.iter().position(|known| known.id() == id);
        let position = position.unwrap_or_else(|| {
            self.known.push(R::new(id.clone()));
            self.known.len() - 1
        });
        &mut self.known[position]
    }
}

/// A list of jobs or endpoints, as far as read: `S` is the status of a row, `T` a row.
#[derive(Debug)]
pub struct RemoteList<S, T> {
    /// The access and query of the list; `None` before it was first requested.
    pub requested: Option<(S3Access, ListQuery<S>)>,
    /// Newest first.
    pub rows: Vec<T>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
    /// The task that reads the last page.
    pub status: Loadable<()>,
}

impl<S, T> Default for RemoteList<S, T> {
    fn default() -> Self {
        Self { requested: None, rows: Vec::new(), next: None, status: Loadable::NotLoaded }
    }
}

impl<S: PartialEq, T> RemoteList<S, T> {
    pub fn is_known_to_be_empty(&self) -> bool {
        self.rows.is_empty() && self.status.ready().is_some()
    }

    /// Restarts the list. If the query is unchanged, the old rows stay on screen until the new ones arrive.
    pub(crate) fn begin_anew(&mut self, access: S3Access, query: ListQuery<S>) {
        let requested = Some((access, query));
        let rows = if self.requested == requested { std::mem::take(&mut self.rows) } else { Vec::new() };
        *self = Self { requested, rows, ..Self::default() };
    }

    /// The token of the next page, unless it is being read.
    pub(crate) fn goes_on_at(&self) -> Option<String> {
        self.next.clone().filter(|_| !self.status.is_loading())
    }

    /// Adds a page; the first one replaces all rows. False if it is late.
    pub(crate) fn take(&mut self, task: TaskId, is_first: bool, page: Result<ListPage<T>, Failure>) -> bool {
        let (page, result) = match page {
            Ok(page) => (Some(page), Ok(())),
            Err(failure) => (None, Err(failure)),
        };
        let is_wanted = self.status.settle(task, result);
        if let Some(page) = page.filter(|_| is_wanted) {
            if is_first {
                self.rows.clear();
            }
            self.rows.extend(page.items);
            self.next = page.next;
        }
        is_wanted
    }
}

/// A form with the draft `D`, whose check results in a plan `P`.
#[derive(Debug)]
pub struct Form<D, P> {
    /// A number that changes whenever the form is refilled.
    pub serial: u64,
    /// The last draft that was or is being checked.
    pub draft: D,
    /// The fields to complete before a check.
    pub missing: Option<String>,
    pub check: Loadable<FormCheck<P>>,
    /// Packing, uploading and starting.
    pub start: Loadable<()>,
}

impl<D: Default, P> Default for Form<D, P> {
    fn default() -> Self {
        Self { serial: 0, draft: D::default(), missing: None, check: Loadable::NotLoaded, start: Loadable::NotLoaded }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FormCheck<P> {
    pub preflight: Preflight,
    /// The plan as `aws` command lines, if it can be expressed that way.
    pub commands: Vec<String>,
    /// The plan as checked and started, with the open fields of the draft filled in.
    pub plan: Arc<P>,
}

impl<P> FormCheck<P> {
    /// Whether no problem was found.
    pub fn is_startable(&self) -> bool {
        self.preflight.grade() != CheckGrade::Problem
    }
}

/// The draft of a form, with access to its form.
pub(crate) trait Draft: Clone + Default + 'static {
    type Plan: 'static;

    fn form(state: &mut State) -> &mut Form<Self, Self::Plan>;
    fn model(&mut self) -> &mut ModelDraft;
    /// The S3 folder to upload the model to.
    fn base(&mut self) -> &mut String;
}

/// `None` for an empty field.
pub(crate) fn folder_of(text: &str) -> Option<Result<S3Address, String>> {
    let text = text_of(text)?;
    let link = S3Link::parse(&text).map_err(|error| error.to_string());
    Some(link.map(|link| link.address.as_folder()))
}

pub(crate) fn text_of(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The model fields of a form. The settings store those that the next form may reuse.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelDraft {
    #[serde(skip)]
    pub from: ModelFrom,
    #[serde(skip)]
    pub library: Option<String>,
    /// A packed model: a local file or an object in S3.
    pub archive: String,
    /// A local folder.
    pub saved_model: String,
    /// The name of an existing model in SageMaker.
    pub existing: String,
    /// The ARN of the role that the container runs as.
    pub role: String,
    /// The container's URI in ECR; `None` for the one that Spotcheck suggests for the region.
    pub image: Option<String>,
    /// The container's environment; its values may be secrets.
    #[serde(skip)]
    pub environment: BTreeMap<String, String>,
    /// The container's VPC and isolation.
    pub network: Network,
}

/// The chosen model, and how to create it in SageMaker if it does not exist there yet.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub model: ChosenModel,
    pub role: String,
    /// `None` for the one that Spotcheck suggests for the region.
    pub image: Option<String>,
    pub environment: BTreeMap<String, String>,
    pub network: Network,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelFrom {
    #[default]
    Library,
    Archive,
    SavedModel,
    SageMaker,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenModel {
    /// A model from the library, by its id; it is packed.
    Library(String),
    /// A local packed model.
    Archive(PathBuf),
    /// A packed model in S3.
    ArchiveInS3(S3Address),
    /// A local folder; it is packed.
    SavedModel(PathBuf),
    /// A model in SageMaker, by its name.
    SageMaker(String),
}

impl ModelDraft {
    pub(crate) fn from_library(id: Option<&str>, known: &Self) -> Self {
        Self { library: id.map(str::to_owned), ..known.clone() }
    }

    /// The request for this model, or what is missing for it.
    pub(crate) fn request(&self) -> Result<ModelRequest, String> {
        Ok(ModelRequest {
            model: self.chosen()?,
            role: self.role.trim().to_owned(),
            image: self.image.clone(),
            environment: self.environment.clone(),
            network: self.network.clone(),
        })
    }

    /// The chosen model, or what is missing for it.
    fn chosen(&self) -> Result<ChosenModel, String> {
        match self.from {
            ModelFrom::Library => {
                let id = self.library.clone().ok_or("Choose a model")?;
                Ok(ChosenModel::Library(id))
            }
            ModelFrom::Archive => {
                let text = text_of(&self.archive).ok_or("Enter the archive")?;
                if !S3Link::is_address(&text) {
                    return Ok(ChosenModel::Archive(PathBuf::from(text)));
                }
                let link = S3Link::parse(&text).map_err(|why| format!("The archive: {why}"))?;
                Ok(ChosenModel::ArchiveInS3(link.address))
            }
            ModelFrom::SavedModel => {
                let folder = text_of(&self.saved_model);
                let folder = folder.ok_or("Enter the folder of the SavedModel")?;
                Ok(ChosenModel::SavedModel(PathBuf::from(folder)))
            }
            ModelFrom::SageMaker => {
                let name = text_of(&self.existing);
                Ok(ChosenModel::SageMaker(name.ok_or("Enter the name of the model in SageMaker")?))
            }
        }
    }

    /// Whether a model is created from it in SageMaker, with a role and a container.
    pub fn is_made(&self) -> bool {
        self.from != ModelFrom::SageMaker
    }

    /// Whether it is local, and is uploaded first.
    pub fn is_uploaded(&self) -> bool {
        match self.from {
            ModelFrom::Library | ModelFrom::SavedModel => true,
            ModelFrom::Archive => !S3Link::is_address(self.archive.trim()),
            ModelFrom::SageMaker => false,
        }
    }

    /// The initial values of the next form.
    pub(crate) fn for_the_next(&self) -> Self {
        Self { from: ModelFrom::default(), library: None, ..self.clone() }
    }
}

impl ChosenModel {
    /// “efficientnet-lite0”, “model.tar.gz”.
    pub fn name(&self) -> String {
        let file = |path: &std::path::Path| {
            let name = path.file_name();
            name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        };
        match self {
            Self::Library(id) => id.clone(),
            Self::Archive(path) | Self::SavedModel(path) => file(path),
            Self::ArchiveInS3(address) => address.last_part().to_owned(),
            Self::SageMaker(name) => name.clone(),
        }
    }
}
