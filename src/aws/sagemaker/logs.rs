//! Container logs from CloudWatch Logs.

use serde::Deserialize;
use serde_json::json;

use super::SageMaker;
use crate::aws::control_plane::{Call, Service};
use crate::aws::{AwsError, if_there};
use crate::sagemaker::spec::{LogFrom, LogPage, LogStream};
use crate::tasks::TaskControl;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DescribedStreams {
    #[serde(default)]
    log_streams: Vec<LogStream>,
    next_token: Option<String>,
}

impl SageMaker {
    /// All streams of a group with this prefix, by name. None if the group does not exist: AWS creates it with the
    /// first job.
    ///
    /// `group`: `/aws/sagemaker/TransformJobs`, `/aws/sagemaker/Endpoints/<endpoint>`.
    pub fn log_streams(&self, group: &str, prefix: &str, control: &TaskControl) -> Result<Vec<LogStream>, AwsError> {
        let call = logs("DescribeLogStreams", format!("list the logs {prefix} of {group}"));
        let mut streams = Vec::new();
        let mut next_token: Option<String> = None;
        loop {
            let request = json!({"logGroupName": group, "logStreamNamePrefix": prefix, "nextToken": next_token});
            let page = if_there(self.ask::<DescribedStreams>(&call, &request, control))?;
            let Some(page) = page else {
                return Ok(streams);
            };
            streams.extend(page.log_streams);
            match page.next_token {
                Some(next) if Some(&next) != next_token.as_ref() => next_token = Some(next),
                _ => return Ok(streams),
            }
        }
    }

    pub fn log_events(
        &self,
        group: &str,
        stream: &str,
        from: LogFrom,
        control: &TaskControl,
    ) -> Result<LogPage, AwsError> {
        let call = logs("GetLogEvents", format!("read the log {stream} of {group}"));
        let (limit, token) = match from {
            LogFrom::Beginning => (None, None),
            LogFrom::Newest(lines) => (Some(lines), None),
            LogFrom::After(token) => (None, Some(token)),
        };
        let request = json!({
            "logGroupName": group,
            "logStreamName": stream,
            // CloudWatch also requires it with a forward token.
            "startFromHead": limit.is_none(),
            "limit": limit,
            "nextToken": token,
        });
        let page: LogPage = self.ask(&call, &request, control)?;
        let next = if page.next.is_empty() { token.unwrap_or_default() } else { page.next };
        Ok(LogPage { next, ..page })
    }
}

fn logs(operation: &'static str, what: String) -> Call {
    Call { service: Service::Logs, operation: operation.to_owned(), what }
}
