//! The endpoints of an account and region, and those deployed with Spotcheck.

use crate::domain::S3Access;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{
    Endpoint, EndpointConfig, EndpointPlan, EndpointRecord, EndpointStatus, cost_since,
};
use crate::sagemaker::spec::transform::{Leftover, LogLine, SageMakerAccess};
use crate::tasks::ProgressUnit;
use crate::window::remote::state::{RemoteCommand, RemoteEffect, RemoteEvent, Resource, Resources, Watch};
use crate::window::state::{
    Arc, Command, Effect, EndpointDraft, EndpointRequest, Failure, FormCheck, Loadable, Overlay, State, TaskId,
    TaskKind, Ticket,
};

pub type RemoteEndpointsCommand = RemoteCommand<EndpointId, EndpointStatus>;
pub type RemoteEndpointsEffect = RemoteEffect<EndpointId, EndpointStatus>;
pub type RemoteEndpointsEvent = RemoteEvent<KnownEndpoint>;

/// The result of a poll.
#[derive(Debug)]
pub struct SeenEndpoint {
    /// `None` if it does not exist, or no longer.
    pub endpoint: Option<Endpoint>,
    /// `None` if it could not be read.
    pub config: Option<EndpointConfig>,
    /// Price of one instance, from the price table.
    pub usd_per_hour: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EndpointsCommand {
    Check(Box<EndpointDraft>),
    Deploy,
    /// Reads the end of its containers' log.
    ReadLog(EndpointId),
    /// Shows the page of an endpoint, with what would be deleted.
    ConfirmDeletion(EndpointId),
    Keep,
    /// Deletes an endpoint with its configuration and its other resources.
    Delete(EndpointId),
    /// Sets the deletion time in milliseconds since 1970-01-01 UTC; `None` disables automatic deletion.
    SetDeletionTime(EndpointId, Option<i64>),
}

#[derive(Debug, Clone)]
pub enum EndpointsEffect {
    /// Keep reporting the endpoint records of this computer and the endpoints due for deletion.
    FollowRecords,
    /// Check a planned endpoint for problems.
    Check {
        request: Box<EndpointRequest>,
        ticket: Ticket,
    },
    /// Pack and upload the model, and start the endpoint.
    Deploy {
        plan: Arc<EndpointPlan>,
        ticket: Ticket,
    },
    /// Read the end of its containers' log.
    ReadLog(EndpointId, Ticket),
    /// Delete an endpoint with its configuration and its other resources.
    Delete {
        id: EndpointId,
        cause: DeletionCause,
        ticket: Ticket,
    },
    SetDeletionTime {
        id: EndpointId,
        delete_at_ms: Option<i64>,
    },
}

#[derive(Debug)]
pub enum EndpointsEvent {
    /// The records of this computer, those that cannot be read, and the endpoints whose deletion time has passed.
    RecordsRead {
        records: Vec<EndpointRecord>,
        unreadable: Vec<String>,
        due: Vec<EndpointId>,
    },
    /// The last poll of the endpoints was a while ago.
    Outdated,
    Checked(TaskId, Result<Box<FormCheck<EndpointPlan>>, Failure>),
    /// The endpoint is being created.
    Deployed(TaskId, Result<EndpointId, Failure>),
    LogRead(EndpointId, TaskId, Result<Vec<LogLine>, Failure>),
    Deleted {
        id: EndpointId,
        task: TaskId,
        cause: DeletionCause,
        result: Result<Deleted, Failure>,
    },
}

/// An endpoint, and how to access it.
#[derive(Debug, Clone, Default)]
pub struct EndpointId {
    /// The credentials and region, with the name of the endpoint.
    pub sagemaker: SageMakerAccess,
    pub name: String,
}

/// Two ids are equal if they name the same endpoint, with any credentials.
impl PartialEq for EndpointId {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.sagemaker.region == other.sagemaker.region
    }
}

impl Eq for EndpointId {}

impl From<&EndpointRecord> for EndpointId {
    fn from(record: &EndpointRecord) -> Self {
        Self { sagemaker: record.sagemaker.clone(), name: record.name.clone() }
    }
}

impl From<&EndpointId> for S3Access {
    fn from(id: &EndpointId) -> Self {
        Self::from(&id.sagemaker)
    }
}

impl EndpointId {
    /// Empty if the region is unknown.
    pub fn region(&self) -> &str {
        self.sagemaker.region.as_deref().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub struct Endpoints {
    pub all: Resources<KnownEndpoint>,
    /// The account and region of the list; `None` before it was first requested.
    pub listed_in: Option<SageMakerAccess>,
    /// The endpoint to delete once the user confirms it.
    pub confirming: Option<EndpointId>,
    /// Unreadable records of this computer, with the reasons.
    pub unreadable: Vec<String>,
}

#[derive(Debug, Default)]
pub struct KnownEndpoint {
    pub id: EndpointId,
    pub watch: Watch,
    /// The record on this computer, if it was deployed from here.
    pub record: Option<EndpointRecord>,
    pub presence: EndpointPresence,
    /// Its instances and models, if SageMaker returns them.
    pub config: Option<EndpointConfig>,
    /// The price per hour of one instance in the price table.
    pub usd_per_hour: Option<f64>,
    pub deleting: Option<TaskId>,
    /// The end of its containers' log.
    pub log: Loadable<Vec<LogLine>>,
    /// The result of the last deletion.
    pub deletion: Option<Deleted>,
    /// Why the deletion failed; the endpoint still costs money.
    pub undeleted: Option<Failure>,
}

/// Whether an endpoint exists, as of its last listing or poll.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EndpointPresence {
    #[default]
    Unknown,
    Present(Box<Endpoint>),
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionCause {
    UserRequest,
    TimeIsOver,
}

impl EndpointPresence {
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Present(endpoint) => Some(endpoint),
            Self::Unknown | Self::Absent => None,
        }
    }

    pub fn status(&self) -> Option<EndpointStatus> {
        Some(self.endpoint()?.status)
    }
}

impl Resource for KnownEndpoint {
    type Id = EndpointId;
    type Status = EndpointStatus;
    type Row = Endpoint;
    /// The account and region.
    type Listed = SageMakerAccess;
    type Seen = SeenEndpoint;

    const NOUN: &'static str = "endpoint";
    const DIALOG: Overlay = Overlay::Endpoints;
    const TASKS: TaskKind = TaskKind::Endpoints;
    const POLLING: (TaskKind, ProgressUnit) = (TaskKind::Endpoints, ProgressUnit::Steps);

    fn new(id: EndpointId) -> Self {
        Self { id, ..Self::default() }
    }

    fn id(&self) -> &EndpointId {
        &self.id
    }

    fn name_of(id: &EndpointId) -> &str {
        &id.name
    }

    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    fn all(state: &State) -> &Resources<Self> {
        &state.remote.endpoints.all
    }

    fn all_mut(state: &mut State) -> &mut Resources<Self> {
        &mut state.remote.endpoints.all
    }

    fn command(command: RemoteEndpointsCommand) -> Command {
        command.into()
    }

    fn effect(effect: RemoteEndpointsEffect) -> Effect {
        effect.into()
    }
}

impl KnownEndpoint {
    /// Whether it was created from this computer and its resources may still exist.
    pub fn is_ours(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.is_started)
    }

    /// Whether it was deployed from this computer and costs money, as far as known.
    pub fn is_at_our_cost(&self) -> bool {
        self.is_ours() && self.presence != EndpointPresence::Absent
    }

    pub fn accepts_requests(&self) -> bool {
        self.presence.status().is_some_and(EndpointStatus::accepts_requests)
    }

    /// The configuration recorded at deployment, or else the one SageMaker returns.
    pub fn config(&self) -> Option<&EndpointConfig> {
        let record = self.record.as_ref().map(|record| &record.config);
        record.or(self.config.as_ref())
    }

    pub fn is_serverless(&self) -> bool {
        self.config().is_some_and(|config| config.serverless.is_some())
    }

    /// Its cost so far, slightly more than AWS will bill, and its hourly price in US dollars: the price at deployment,
    /// or else the one in the price table; `None` if neither is known.
    pub fn cost_usd(&self, now_ms: i64) -> Option<(f64, f64)> {
        let record = self.record.as_ref();
        let price = record.and_then(|record| record.usd_per_hour);
        let price = price.or(self.usd_per_hour)?;
        let since_ms = match record {
            Some(record) => record.created_ms,
            None => self.presence.endpoint()?.created_ms,
        };
        Some(cost_since(price, self.config()?.instance_count, since_ms, now_ms))
    }

    /// The resources deleted with it, in this order.
    pub fn goes_with_it(&self) -> Vec<Leftover> {
        if let (EndpointPresence::Absent, Some(deletion)) = (&self.presence, &self.deletion) {
            let stays = self.model_that_stays().map(|name| Leftover::Model(name.to_owned()));
            let kept = deletion.kept.iter().map(|(what, _)| what);
            return kept.filter(|what| Some(*what) != stays.as_ref()).cloned().collect();
        }
        let is_there = self.presence != EndpointPresence::Absent;
        let endpoint = is_there.then(|| Leftover::Endpoint(self.id.name.clone()));
        let configuration = self.config().map(|config| Leftover::Configuration(config.name.clone()));
        let created = self.record.iter().flat_map(EndpointRecord::left);
        let others = created.filter(|left| !matches!(left, Leftover::Endpoint(_) | Leftover::Configuration(_)));
        endpoint.into_iter().chain(configuration).chain(others).collect()
    }

    /// A model that existed before it and is kept.
    pub fn model_that_stays(&self) -> Option<&str> {
        let owns_model = self.record.as_ref().is_some_and(|record| record.owns_model);
        let config = self.config().filter(|_| !owns_model)?;
        Some(config.model_name.as_str())
    }
}

impl State {
    /// Endpoints deployed from this computer that cost money now, oldest first.
    pub fn endpoints_at_our_cost(&self) -> impl Iterator<Item = &KnownEndpoint> {
        let known = self.remote.endpoints.all.known.iter();
        known.filter(|endpoint| endpoint.is_at_our_cost())
    }
}

#[cfg(test)]
impl KnownEndpoint {
    /// Deployed from this computer on one instance, at an unknown price.
    pub(crate) fn example() -> Self {
        let config =
            EndpointConfig { name: "cats".to_owned(), model_name: "cats".to_owned(), ..EndpointConfig::default() };
        let access = SageMakerAccess { region: Some("eu-west-1".to_owned()), ..SageMakerAccess::default() };
        let record = EndpointRecord {
            is_started: true,
            owns_config: true,
            owns_model: true,
            ..EndpointRecord::new(access, config, 0)
        };
        Self { record: Some(record.clone()), ..Self::new(EndpointId::from(&record)) }
    }
}

#[cfg(test)]
impl EndpointPresence {
    pub(crate) fn example(status: EndpointStatus) -> Self {
        Self::Present(Box::new(Endpoint {
            name: "cats".to_owned(),
            config_name: Some("cats".to_owned()),
            status,
            failure: None,
            created_ms: 0,
            modified_ms: 0,
            variants: Vec::new(),
        }))
    }
}
