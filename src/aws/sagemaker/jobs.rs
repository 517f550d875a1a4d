//! Jobs of any kind, and training jobs, whose parameters and descriptions have AWS's form in
//! `sagemaker::spec::training`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{SageMaker, Tag, Timestamp, named, non_empty, sagemaker, tags};
use crate::aws::AwsError;
use crate::sagemaker::spec::training::{TrainingJob, TrainingSpec};
use crate::sagemaker::spec::transform::{JobKind, JobPage, JobQuery, JobSummary, TransformStatus};
use crate::tasks::TaskControl;

impl SageMaker {
    /// A page of the jobs of one kind in this account and region, newest first.
    pub fn list_jobs(
        &self,
        kind: JobKind,
        query: &JobQuery,
        control: Option<&TaskControl>,
    ) -> Result<JobPage, AwsError> {
        let call = match kind {
            JobKind::Transform => sagemaker("ListTransformJobs", "list the jobs"),
            JobKind::Training => sagemaker("ListTrainingJobs", "list the training jobs"),
        };
        let mut page: JobPage = self.list::<_, ListedJob, _>(&call, query, control)?;
        for job in &mut page.items {
            job.kind = kind;
        }
        Ok(page)
    }

    pub fn job_status(
        &self,
        kind: JobKind,
        name: &str,
        control: Option<&TaskControl>,
    ) -> Result<TransformStatus, AwsError> {
        Ok(match kind {
            JobKind::Transform => self.describe_transform_job(name, control)?.status,
            JobKind::Training => self.describe_training_job(name, control)?.status,
        })
    }

    /// Stops a job, which takes a while; its outputs stay.
    pub fn stop_job(&self, kind: JobKind, name: &str, control: Option<&TaskControl>) -> Result<(), AwsError> {
        let (operation, field, job) = match kind {
            JobKind::Transform => ("StopTransformJob", "TransformJobName", "job"),
            JobKind::Training => ("StopTrainingJob", "TrainingJobName", "training job"),
        };
        self.send_only(&sagemaker(operation, format!("stop {job} {name}")), &named(field, name), control)
    }
}

/// A job of any kind in a list. [`SageMaker::list_jobs`] sets its kind.
#[derive(Deserialize)]
struct ListedJob {
    #[serde(alias = "TransformJobName", alias = "TrainingJobName")]
    name: String,
    #[serde(alias = "TransformJobArn", alias = "TrainingJobArn")]
    arn: String,
    #[serde(alias = "TransformJobStatus", alias = "TrainingJobStatus")]
    status: TransformStatus,
    #[serde(rename = "FailureReason")]
    failure: Option<String>,
    #[serde(rename = "CreationTime")]
    created: Timestamp,
    #[serde(alias = "TransformEndTime", alias = "TrainingEndTime")]
    ended: Option<Timestamp>,
}

impl From<ListedJob> for JobSummary {
    fn from(job: ListedJob) -> Self {
        Self {
            kind: JobKind::default(),
            name: job.name,
            arn: job.arn,
            status: job.status,
            failure: non_empty(job.failure),
            created_ms: job.created.ms(),
            ended_ms: job.ended.map(Timestamp::ms),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CreateTrainingJob<'a> {
    #[serde(flatten)]
    spec: &'a TrainingSpec,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag<'a>>,
}

struct Described(TrainingJob);

impl<'de> Deserialize<'de> for Described {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let described = Value::deserialize(deserializer)?;
        let job = TrainingJob::deserialize(&described).map_err(D::Error::custom)?;
        Ok(Self(TrainingJob { described, ..job }))
    }
}

impl SageMaker {
    /// Starts a training job; returns its ARN.
    pub fn create_training_job(&self, spec: &TrainingSpec, control: Option<&TaskControl>) -> Result<String, AwsError> {
        let call = sagemaker("CreateTrainingJob", format!("start training job {}", spec.job_name));
        self.create(&call, &CreateTrainingJob { spec, tags: tags(&spec.tags) }, control)
    }

    /// The parameters of a training job, without its tags, and its status.
    ///
    /// # Errors
    /// [`AwsErrorKind::NotFound`](crate::aws::AwsErrorKind::NotFound) if no training job has this name.
    pub fn describe_training_job(&self, name: &str, control: Option<&TaskControl>) -> Result<TrainingJob, AwsError> {
        let call = sagemaker("DescribeTrainingJob", format!("describe training job {name}"));
        let Described(job) = self.ask(&call, &named("TrainingJobName", name), control)?;
        Ok(job)
    }
}
