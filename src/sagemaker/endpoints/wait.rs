//! Polls an endpoint until its status is final.

use std::time::Duration;

use crate::aws::{AwsError, SageMaker};
use crate::sagemaker::spec::endpoint::Endpoint;
use crate::tasks::TaskControl;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub enum Poll<'l> {
    /// `None` if the endpoint does not exist any more.
    Seen(Option<&'l Endpoint>),
    /// The request failed and is retried.
    Trouble { why: String, again_in: Duration },
}

/// Polls until the endpoint's status is final, and reports each result. The interval grows; network failures are
/// retried.
///
/// # Errors
/// The permission is missing, or the task was canceled.
pub fn watch(
    sagemaker: &SageMaker,
    name: &str,
    control: &TaskControl,
    mut tell: impl FnMut(Poll<'_>),
) -> Result<(), AwsError> {
    poll_until_settled(sagemaker, name, None, control, &mut tell).map(drop)
}

/// Polls until the endpoint's status is final; `None` once it is deleted. The interval grows; network failures are
/// retried.
///
/// # Errors
/// The permission is missing, or the task was canceled.
pub fn wait_for(sagemaker: &SageMaker, name: &str, control: &TaskControl) -> Result<Option<Endpoint>, AwsError> {
    poll_until_settled(sagemaker, name, None, control, &mut |poll| {
        note(control, poll);
    })
}

/// As [`wait_for`], for an endpoint that is being deleted, but for at most `limit`; then returns its current state.
///
/// # Errors
/// As [`wait_for`].
pub fn wait_until_gone(
    sagemaker: &SageMaker,
    name: &str,
    limit: Duration,
    control: &TaskControl,
) -> Result<Option<Endpoint>, AwsError> {
    poll_until_settled(sagemaker, name, Some(limit), control, &mut |poll| {
        note(control, poll);
    })
}

/// Shows the status as the step of the task.
fn note(control: &TaskControl, poll: Poll<'_>) {
    match poll {
        Poll::Seen(Some(endpoint)) => control.set_step(endpoint.status.to_string()),
        Poll::Seen(None) => {}
        Poll::Trouble { why, .. } => control.set_step(why),
    }
}

fn poll_until_settled(
    sagemaker: &SageMaker,
    name: &str,
    limit: Option<Duration>,
    control: &TaskControl,
    tell: &mut dyn FnMut(Poll<'_>),
) -> Result<Option<Endpoint>, AwsError> {
    let mut wait = FIRST_WAIT;
    let mut waited = Duration::ZERO;
    loop {
        let is_over = limit.is_some_and(|limit| waited >= limit);
        match sagemaker.describe_endpoint(name, Some(control)) {
            Ok(found) => {
                tell(Poll::Seen(found.as_ref()));
                let is_changing = |endpoint: &Endpoint| endpoint.status.is_changing();
                if is_over || !found.as_ref().is_some_and(is_changing) {
                    return Ok(found);
                }
            }
            Err(error) if error.kind.is_transient() && !is_over => {
                tell(Poll::Trouble { why: error.message, again_in: wait });
            }
            Err(error) => return Err(error),
        }
        control.sleep(wait).map_err(|_| AwsError::cancelled())?;
        waited += wait;
        wait = (wait * 3 / 2).min(LONGEST_WAIT);
    }
}
