//! Remote work: the form for sending a model and images to SageMaker, its jobs and its endpoints.

pub(crate) mod form;
pub(crate) mod model_draft;
pub(crate) mod remote_list;

pub use crate::window::endpoints::form::state::{EndpointDraft, EndpointForm, EndpointRequest};
pub use crate::window::endpoints::state::{
    DeletionCause, EndpointDeletion, EndpointId, EndpointList, EndpointPresence, Endpoints, EndpointsCommand,
    EndpointsEffect, EndpointsEvent, KnownEndpoint,
};
pub use crate::window::jobs::form::state::{
    ImagesFrom, JobDraft, JobForm, JobImages, JobRequest, RehearsalOptions, RehearsalReport, RehearsalRequest,
};
pub use crate::window::jobs::prices::state::Prices;
pub use crate::window::jobs::state::{
    JobId, JobList, JobsCommand, JobsEffect, JobsEvent, KnownJob, Leftovers, RetryPlan, WatchEnd,
};
pub use crate::window::outputs::reading::state::{Reading, ReadingTrial, SavedMapping};
pub use crate::window::outputs::state::{
    FoundRun, OpenOutputsRequest, OpenPredictionsRequest, OpeningOutputs, OutputsAt, OutputsCommand, OutputsEffect,
    OutputsEnd, OutputsEvent, OutputsFailure, OutputsPlace, OutputsRequest, PredictionsFrom,
};
pub use crate::window::remote_inference::state::{
    ConnectFailure, FoundModel, RemoteCheck, RemoteModelForm, RemoteOutcome, RemotePrediction, RemoteReport,
};
pub(crate) use form::Draft;
pub use form::{Form, FormCheck};
pub use model_draft::{ChosenModel, ModelDraft, ModelFrom, ModelRequest};
pub use remote_list::RemoteList;

pub(crate) use crate::window::state::Loadable;

/// The state of SageMaker in the window.
#[derive(Debug, Default)]
pub struct Remote {
    pub job_form: JobForm,
    pub rehearsal: Loadable<RehearsalReport>,
    pub prices: Prices,
    pub endpoint_form: EndpointForm,
    pub list: JobList,
    pub endpoints: Endpoints,
    pub outputs: OpeningOutputs,
    pub remote_model: RemoteModelForm,
    /// The dialog for reading responses.
    pub reading: Reading,
    /// The opened or watched jobs, oldest first.
    pub known: Vec<KnownJob>,
    /// The job that the dialog shows.
    pub open: Option<JobId>,
}

impl Remote {
    pub fn job(&self, id: &JobId) -> Option<&KnownJob> {
        self.known.iter().find(|job| job.id == *id)
    }

    /// The job that the dialog shows.
    pub fn open_job(&self) -> Option<&KnownJob> {
        self.job(self.open.as_ref()?)
    }

    pub(crate) fn job_mut(&mut self, id: &JobId) -> Option<&mut KnownJob> {
        self.known.iter_mut().find(|job| job.id == *id)
    }

    /// The state of this job, which is created empty if it does not exist.
    pub(crate) fn job_of(&mut self, id: &JobId) -> &mut KnownJob {
        let position = self.known.iter().position(|job| job.id == *id);
        let position = position.unwrap_or_else(|| {
            self.known.push(KnownJob::new(id.clone()));
            self.known.len() - 1
        });
        &mut self.known[position]
    }
}
