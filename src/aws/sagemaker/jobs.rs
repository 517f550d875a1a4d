//! Jobs of any kind. Their parameters and descriptions have AWS's form in `sagemaker::spec`, and the operations of all
//! kinds have the same names except for the kind: `CreateTransformJob`, `CreateTrainingJob`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{ResourceKind, SageMaker, sagemaker};
use crate::aws::AwsError;
use crate::sagemaker::spec::transform::{Job, JobKind, JobPage, JobQuery, JobSpec, TransformStatus};
use crate::tasks::TaskControl;

#[derive(Deserialize)]
struct StatusOnly {
    #[serde(alias = "TransformJobStatus", alias = "TrainingJobStatus")]
    status: TransformStatus,
}

impl SageMaker {
    /// A page of the jobs of one kind in this account and region, newest first.
    pub fn list_jobs(&self, kind: JobKind, query: &JobQuery, control: &TaskControl) -> Result<JobPage, AwsError> {
        let call = sagemaker(format!("List{kind:?}Jobs"), format!("list the {}s", kind.noun()));
        let mut page: JobPage = self.list(&call, query, control)?;
        for job in &mut page.items {
            job.kind = kind;
        }
        Ok(page)
    }

    /// Starts a job.
    pub fn create_job<S: JobSpec>(&self, spec: &S, control: &TaskControl) -> Result<(), AwsError> {
        self.create(("start", S::KIND.into(), spec.job_name()), spec, control)
    }

    /// The parameters of a job, without its tags, and its status.
    ///
    /// # Errors
    /// [`AwsErrorKind::NotFound`](crate::aws::AwsErrorKind::NotFound) if no job of this kind has this name;
    /// [`AwsErrorKind::Unsupported`](crate::aws::AwsErrorKind::Unsupported) if it reads something other than objects.
    pub fn describe_job<S: JobSpec>(&self, name: &str, control: &TaskControl) -> Result<Job<S>, AwsError> {
        let kind = ResourceKind::from(S::KIND);
        let described: Value = self.request("Describe", kind, name, control)?;
        match Job::deserialize(&described) {
            Ok(job) => Ok(Job { described, ..job }),
            Err(error) => Err(kind.unsupported(name, &format!("it is of another kind ({error})"))),
        }
    }

    pub fn job_status(&self, kind: JobKind, name: &str, control: &TaskControl) -> Result<TransformStatus, AwsError> {
        let StatusOnly { status } = self.request("Describe", kind.into(), name, control)?;
        Ok(status)
    }

    /// Stops a job, which takes a while; its outputs stay.
    pub fn stop_job(&self, kind: JobKind, name: &str, control: &TaskControl) -> Result<(), AwsError> {
        let _: IgnoredAny = self.request("Stop", kind.into(), name, control)?;
        Ok(())
    }
}
