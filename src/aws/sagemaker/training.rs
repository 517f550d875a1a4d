//! Training jobs. Their parameters and descriptions have AWS's form in `sagemaker::spec::training`.

use serde::{Deserialize, Serialize};

use super::{SageMaker, Tag, Timestamp, sagemaker, tags};
use crate::aws::AwsError;
use crate::sagemaker::spec::training::{TrainingJob, TrainingSpec};
use crate::sagemaker::spec::transform::{JobKind, JobSummary, TransformStatus};
use crate::tasks::TaskControl;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CreateTrainingJob<'a> {
    #[serde(flatten)]
    spec: &'a TrainingSpec,
    tags: Vec<Tag<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreatedJob {
    training_job_arn: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NamedJob<'a> {
    training_job_name: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Summary {
    training_job_name: String,
    training_job_arn: String,
    training_job_status: TransformStatus,
    creation_time: Timestamp,
    training_end_time: Option<Timestamp>,
}

impl From<Summary> for JobSummary {
    fn from(job: Summary) -> Self {
        Self {
            kind: JobKind::Training,
            name: job.training_job_name,
            arn: job.training_job_arn,
            status: job.training_job_status,
            failure: None,
            created_ms: job.creation_time.ms(),
            ended_ms: job.training_end_time.map(Timestamp::ms),
        }
    }
}

impl SageMaker {
    /// Starts a training job; returns its ARN.
    pub fn create_training_job(&self, spec: &TrainingSpec, control: Option<&TaskControl>) -> Result<String, AwsError> {
        let call = sagemaker("CreateTrainingJob", format!("start training job {}", spec.job_name));
        let request = CreateTrainingJob { spec, tags: tags(&spec.tags) };
        let response: CreatedJob = self.ask(&call, &request, control)?;
        Ok(response.training_job_arn)
    }

    /// The parameters of a training job, without its tags, and its status.
    ///
    /// # Errors
    /// [`AwsErrorKind::NotFound`](crate::aws::AwsErrorKind::NotFound) if no training job has this name.
    pub fn describe_training_job(&self, name: &str, control: Option<&TaskControl>) -> Result<TrainingJob, AwsError> {
        let call = sagemaker("DescribeTrainingJob", format!("describe training job {name}"));
        self.ask(&call, &NamedJob { training_job_name: name }, control)
    }

    /// Stops a training job, which takes a while; SageMaker uploads what the script has written.
    pub(super) fn stop_training_job(&self, name: &str, control: Option<&TaskControl>) -> Result<(), AwsError> {
        let call = sagemaker("StopTrainingJob", format!("stop training job {name}"));
        self.send_only(&call, &NamedJob { training_job_name: name }, control)
    }
}
