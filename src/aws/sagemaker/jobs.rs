//! Jobs of any kind. Their parameters and descriptions have AWS's form in `sagemaker::spec`, and the operations of all
//! kinds have the same names except for the kind: `CreateTransformJob`, `CreateTrainingJob`.

use serde::Deserialize;
use serde_json::Value;

use super::{SageMaker, named, sagemaker, unsupported};
use crate::aws::AwsError;
use crate::aws::control_plane::Call;
use crate::sagemaker::spec::transform::{JobKind, JobPage, JobQuery, JobSpec, TransformStatus};
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

    /// Starts a job; returns its ARN.
    pub fn create_job<S: JobSpec>(&self, spec: &S, control: &TaskControl) -> Result<String, AwsError> {
        let kind = S::KIND;
        let call = sagemaker(format!("Create{kind:?}Job"), format!("start {} {}", kind.noun(), spec.job_name()));
        self.create(&call, spec, control)
    }

    /// The parameters of a job, without its tags, and its status.
    ///
    /// # Errors
    /// [`AwsErrorKind::NotFound`](crate::aws::AwsErrorKind::NotFound) if no job of this kind has this name;
    /// [`AwsErrorKind::Unsupported`](crate::aws::AwsErrorKind::Unsupported) if it reads something other than objects.
    pub fn describe_job<S: JobSpec>(&self, name: &str, control: &TaskControl) -> Result<S::Job, AwsError> {
        let call = describe(S::KIND, name);
        let described: Value = self.ask(&call, &named(format!("{:?}JobName", S::KIND), name), control)?;
        S::described(described).map_err(|error| unsupported(&call, &format!("it is of another kind ({error})")))
    }

    pub fn job_status(&self, kind: JobKind, name: &str, control: &TaskControl) -> Result<TransformStatus, AwsError> {
        let described = self.ask(&describe(kind, name), &named(format!("{kind:?}JobName"), name), control)?;
        let StatusOnly { status } = described;
        Ok(status)
    }

    /// Stops a job, which takes a while; its outputs stay.
    pub fn stop_job(&self, kind: JobKind, name: &str, control: &TaskControl) -> Result<(), AwsError> {
        let call = sagemaker(format!("Stop{kind:?}Job"), format!("stop {} {name}", kind.noun()));
        self.send_only(&call, &named(format!("{kind:?}JobName"), name), control)
    }
}

fn describe(kind: JobKind, name: &str) -> Call {
    sagemaker(format!("Describe{kind:?}Job"), format!("describe {} {name}", kind.noun()))
}
