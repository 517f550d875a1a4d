//! Jobs as JSON.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::sagemaker::spec::transform::{JobOutcome, JobProgress, TransformSummary};

/// The output format of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

/// The status of a job. `outcome`: the results of its images, if requested.
pub(crate) fn status_json(progress: &JobProgress, outcome: Option<&JobOutcome>) -> Value {
    let job = &progress.job;
    let spec = &job.spec;
    let mut status = json!({
        "job": spec.job_name,
        "arn": job.arn,
        "status": job.status.into_str(),
        "phase": progress.phase.into_str(),
        "failure": job.failure,
        "model": spec.model_name,
        "input": spec.input.objects.address().to_string(),
        "output": spec.output.folder.to_string(),
        "inputs": progress.inputs,
        "outputs": progress.outputs,
        "outputs_per_s": progress.outputs_per_s,
        "seconds_left": progress.seconds_left(progress.seen_at_ms),
        "counted": progress.counted_at_ms.map(time_json),
        "created": time_json(job.created_ms),
        "started": job.started_ms.map(time_json),
        "ended": job.ended_ms.map(time_json),
        "instance_type": spec.instance_type,
        "instance_count": spec.instance_count,
        "billed_s": progress.billed_s,
        "cost_usd": progress.cost_usd,
        "log": progress.log_tail.iter().map(|line| &line.message).collect::<Vec<_>>(),
        "notes": progress.notes.iter().chain(&progress.uncounted).collect::<Vec<_>>(),
    });
    if let Some(outcome) = outcome {
        status["without_output"] = outcome
            .failed
            .iter()
            .map(|failed| {
                let uri = outcome.uri_of(failed);
                json!({"uri": uri.as_str(), "error": failed.reason, "refused": failed.is_refused})
            })
            .collect();
        status["retry_obstacle"] = json!(outcome.retry_obstacle);
        let retries = outcome.retries.iter();
        status["retries"] = retries
            .map(|retry| {
                json!({
                    "job": retry.job_name,
                    "predicted": retry.predicted,
                    "under_way": retry.under_way,
                })
            })
            .collect();
    }
    status
}

pub(crate) fn list_json(jobs: &[TransformSummary]) -> Value {
    let job = |job: &TransformSummary| {
        json!({
            "job": job.name,
            "status": job.status.into_str(),
            "created": time_json(job.created_ms),
            "failure": job.failure,
        })
    };
    jobs.iter().map(job).collect()
}

/// `2026-11-21T14:05:09.007Z`
pub(crate) fn time_json(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default().to_string()
}
