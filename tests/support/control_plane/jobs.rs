//! Transform jobs as seen by their owner: created, described, listed, stopped.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::models::no_such_model;
use super::tags::tag;
use super::world::{Birth, Row, listing, page};
use super::{Refusal, Shared, arn, running, seconds, text};

#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: Value,
    pub(super) status: &'static str,
    pub(super) failure: Option<String>,
    pub(super) birth: Birth,
    pub(super) started_s: Option<f64>,
    pub(super) ended_s: Option<f64>,
    changed_s: f64,
}

impl Job {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.status, "Completed" | "Failed" | "Stopped")
    }

    pub(super) fn begin(&mut self) {
        let now = seconds(SystemTime::now());
        self.started_s = Some(now);
        self.changed_s = now;
    }

    pub(super) fn end(&mut self, status: &'static str, failure: Option<String>) {
        let now = seconds(SystemTime::now());
        self.status = status;
        self.failure = failure;
        self.ended_s = Some(now);
        self.changed_s = now;
    }

    pub(super) fn stop(&mut self) {
        self.status = "Stopping";
        self.changed_s = seconds(SystemTime::now());
    }
}

fn no_such_job(name: &str) -> Refusal {
    Refusal::new("ResourceNotFound", &format!("Could not find transform job \"{}\".", arn("transform-job", name)))
}

impl Shared {
    pub(super) fn create_transform_job(self: &Arc<Self>, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "TransformJobName");
        let resources = &request["TransformResources"];
        let payload = request["MaxPayloadInMB"].as_u64();
        let concurrent = request["MaxConcurrentTransforms"].as_u64();
        if payload.is_some_and(|megabytes| megabytes > 100) {
            return Err(Refusal::validation(&format!(
                "1 validation error detected: Value '{}' at 'maxPayloadInMB' failed to satisfy constraint: Member \
                 must have value less than or equal to 100",
                payload.unwrap_or_default()
            )));
        }
        if payload.unwrap_or(6) * concurrent.unwrap_or(1) > 100 {
            return Err(Refusal::validation(
                "The product of MaxPayloadInMB and MaxConcurrentTransforms must not exceed 100 MB.",
            ));
        }
        if resources["InstanceCount"].as_u64().is_some_and(|count| count > 100) {
            return Err(Refusal::validation(
                "1 validation error detected: Value at 'transformResources.instanceCount' failed to satisfy \
                 constraint: Member must have value less than or equal to 100",
            ));
        }
        let count = resources["InstanceCount"].to_string();
        self.failures.lock().unwrap().limit(text(resources, "InstanceType"), &count, "transform job usage")?;
        let arn = arn("transform-job", name);
        self.change(|world| {
            let model = text(request, "ModelName");
            if !world.models.contains_key(model) {
                return Err(no_such_model(model));
            }
            if world.jobs.contains_key(name) {
                return Err(Refusal::new(
                    "ResourceInUse",
                    &format!(
                        "Job name must be unique within an AWS account and region, and a job with this name already \
                         exists ({arn})"
                    ),
                ));
            }
            let birth = world.birth();
            let mut kept = request.clone();
            kept.as_object_mut().unwrap().remove("Tags");
            world.jobs.insert(
                name.to_owned(),
                Job {
                    request: kept,
                    status: "InProgress",
                    failure: None,
                    birth,
                    started_s: None,
                    ended_s: None,
                    changed_s: birth.at_s,
                },
            );
            tag(world, &arn, request);
            Ok(())
        })?;
        running::start(self, name);
        Ok(json!({"TransformJobArn": arn}))
    }

    pub(super) fn describe_transform_job(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "TransformJobName");
        let world = self.world();
        let job = world.jobs.get(name).ok_or_else(|| no_such_job(name))?;
        let mut response = job.request.clone();
        response["TransformJobArn"] = arn("transform-job", name).into();
        response["TransformJobStatus"] = job.status.into();
        response["CreationTime"] = job.birth.at_s.into();
        // AWS returns the defaults that it filled in.
        let defaults = [
            ("TransformInput", "CompressionType", "None"),
            ("TransformInput", "SplitType", "None"),
            ("TransformOutput", "AssembleWith", "None"),
            ("TransformOutput", "KmsKeyId", ""),
            ("DataProcessing", "InputFilter", "$"),
            ("DataProcessing", "OutputFilter", "$"),
            ("DataProcessing", "JoinSource", "None"),
        ];
        for (part, member, value) in defaults {
            if response[part][member].is_null() {
                response[part][member] = value.into();
            }
        }
        if let Some(failure) = &job.failure {
            response["FailureReason"] = failure.clone().into();
        }
        let is_told = !self.failures.lock().unwrap().no_start_time();
        if let Some(started) = job.started_s.filter(|_| is_told) {
            response["TransformStartTime"] = started.into();
        }
        if let Some(ended) = job.ended_s {
            response["TransformEndTime"] = ended.into();
        }
        Ok(response)
    }

    pub(super) fn list_transform_jobs(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let rows = world.jobs.iter().map(|(name, job)| {
            let mut summary = json!({
                "TransformJobName": name,
                "TransformJobArn": arn("transform-job", name),
                "CreationTime": job.birth.at_s,
                "LastModifiedTime": job.changed_s,
                "TransformJobStatus": job.status,
            });
            if let Some(ended) = job.ended_s {
                summary["TransformEndTime"] = ended.into();
            }
            if let Some(failure) = &job.failure {
                summary["FailureReason"] = failure.clone().into();
            }
            Row { name: name.clone(), birth: job.birth, changed_s: job.changed_s, status: job.status, summary }
        });
        let (list, next) = page(rows.collect(), request)?;
        Ok(listing("TransformJobSummaries", list, next))
    }

    pub(super) fn stop_transform_job(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "TransformJobName");
        self.change(|world| {
            let job = world.jobs.get_mut(name).ok_or_else(|| no_such_job(name))?;
            if job.is_over() {
                return Err(Refusal::validation(&format!(
                    "The request was rejected because the transform job is in status {}.",
                    job.status
                )));
            }
            job.stop();
            let stopped = arn("transform-job", name);
            world.cut_lifelines(|owner| owner == stopped);
            Ok(Value::Null)
        })
    }
}
