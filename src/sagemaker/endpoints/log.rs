//! The log of an endpoint's containers.

use crate::aws::{AwsError, SageMaker};
use crate::sagemaker::spec::log_events::LogFrom;
use crate::sagemaker::spec::transform::LogLine;
use crate::tasks::TaskControl;

/// The log streams of our only variant, and of the default one in AWS's console.
const STREAMS: &str = "AllTraffic/";
/// The number of newest streams: the last instances show what is wrong.
const LAST_STREAMS: usize = 3;

/// The last lines, at most this many (`1..=10_000`), oldest first. Empty if nothing was written yet.
pub fn log_tail(
    sagemaker: &SageMaker,
    name: &str,
    lines: u32,
    control: &TaskControl,
) -> Result<Vec<LogLine>, AwsError> {
    let group = format!("/aws/sagemaker/Endpoints/{name}");
    let mut streams = sagemaker.log_streams(&group, STREAMS, Some(control))?;
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.last_event_ms));
    let mut tail = Vec::new();
    for stream in streams.iter().take(LAST_STREAMS) {
        let newest = LogFrom::Newest(lines);
        let page = sagemaker.log_events(&group, &stream.name, newest, Some(control))?;
        let instance = stream.name.strip_prefix(STREAMS).unwrap_or(&stream.name);
        tail.extend(page.events.into_iter().map(|event| LogLine {
            at_ms: event.at_ms,
            stream: instance.to_owned(),
            message: event.message.trim_end().to_owned(),
        }));
    }
    // A stable sort keeps the lines of one stream in order.
    tail.sort_by_key(|line| line.at_ms);
    let too_many = tail.len().saturating_sub(lines as usize);
    tail.drain(..too_many);
    Ok(tail)
}
