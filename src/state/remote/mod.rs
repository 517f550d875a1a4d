//! Remote work: the form for sending a model and images to SageMaker, its jobs and its endpoints.

mod endpoint_form;
mod endpoints;
mod form;
mod job_form;
mod jobs;
mod model_draft;
mod outputs;
mod prices;
mod reading;
mod remote_inference;
mod remote_list;

pub use endpoint_form::{EndpointDraft, EndpointForm, EndpointRequest};
pub use endpoints::{
    DeletionCause, EndpointDeletion, EndpointId, EndpointList, EndpointPresence, Endpoints, EndpointsCommand,
    EndpointsEffect, EndpointsEvent, KnownEndpoint,
};
pub(in crate::state) use form::Draft;
pub use form::{Form, FormCheck};
pub use job_form::{
    ImagesFrom, JobDraft, JobForm, JobImages, JobRequest, RehearsalOptions, RehearsalReport, RehearsalRequest,
};
pub use jobs::{JobId, JobList, JobsCommand, JobsEffect, JobsEvent, KnownJob, Leftovers, RetryPlan, WatchEnd};
pub use model_draft::{ChosenModel, ModelDraft, ModelFrom, ModelRequest};
pub use outputs::{
    FoundRun, OpenOutputsRequest, OpenPredictionsRequest, OpeningOutputs, OutputsAt, OutputsCommand, OutputsEffect,
    OutputsEnd, OutputsEvent, OutputsFailure, OutputsPlace, OutputsRequest, PredictionsFrom,
};
pub use prices::Prices;
pub use reading::{Reading, ReadingTrial, SavedMapping};
pub use remote_inference::{
    ConnectFailure, FoundModel, RemoteCheck, RemoteModelForm, RemoteOutcome, RemotePrediction, RemoteReport,
};
pub use remote_list::RemoteList;

use super::Loadable;

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

    pub(super) fn job_mut(&mut self, id: &JobId) -> Option<&mut KnownJob> {
        self.known.iter_mut().find(|job| job.id == *id)
    }

    /// The state of this job, which is created empty if it does not exist.
    pub(super) fn job_of(&mut self, id: &JobId) -> &mut KnownJob {
        let position = self.known.iter().position(|job| job.id == *id);
        let position = position.unwrap_or_else(|| {
            self.known.push(KnownJob::new(id.clone()));
            self.known.len() - 1
        });
        &mut self.known[position]
    }
}
