//! An endpoint is looked at until it does not change by itself any more.

use std::time::Duration;

use crate::aws::{AwsError, AwsErrorKind, SageMaker};
use crate::domain::Endpoint;
use crate::tasks::TaskControl;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// What comes of looking once.
#[derive(Debug)]
pub enum Poll<'l> {
    /// `None`: there is none of this name, or no longer.
    Seen(Option<&'l Endpoint>),
    /// It could not be looked at just now.
    Trouble { why: String, again_in: Duration },
}

/// Looks again and again until the endpoint does not change by itself any more, and tells what comes of it each time.
/// Waits longer each time, and through a network that is away for a while.
///
/// # Errors
/// Whoever asks may not, or the task was cancelled.
pub fn watch(
    sagemaker: &SageMaker,
    name: &str,
    control: &TaskControl,
    mut tell: impl FnMut(Poll<'_>),
) -> Result<(), AwsError> {
    poll_until_settled(sagemaker, name, None, control, &mut tell).map(drop)
}

/// Looks again and again until the endpoint does not change by itself any more; `None` once it is gone. Waits longer
/// each time, and through a network that is away for a while.
///
/// # Errors
/// Whoever asks may not, or the task was cancelled.
pub fn wait_for(
    sagemaker: &SageMaker,
    name: &str,
    control: &TaskControl,
) -> Result<Option<Endpoint>, AwsError> {
    poll_until_settled(sagemaker, name, None, control, &mut |poll| {
        note(control, poll);
    })
}

/// The same for an endpoint that is being deleted, but no longer than `patience`: it is answered as it stands then.
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

/// As the step of the task.
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
            Err(error) if is_transient(error.kind) && !is_over => tell(Poll::Trouble {
                why: error.message,
                again_in: wait,
            }),
            Err(error) => return Err(error),
        }
        control.sleep(wait).map_err(|_| AwsError::cancelled())?;
        waited += wait;
        wait = (wait * 3 / 2).min(LONGEST_WAIT);
    }
}

fn is_transient(kind: AwsErrorKind) -> bool {
    matches!(
        kind,
        AwsErrorKind::Dns
            | AwsErrorKind::Unreachable
            | AwsErrorKind::Throttled
            | AwsErrorKind::Timeout
            | AwsErrorKind::Cut
            | AwsErrorKind::Server
    )
}
