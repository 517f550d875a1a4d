//! Injected failures.

use std::time::Duration;

use super::Refusal;

/// A failure injected by a test. Each stays until [`super::ControlPlane::heal`], unless it has a count.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The next `times` requests for `operation` are throttled.
    Throttling {
        operation: &'static str,
        times: usize,
    },
    /// The next `times` requests for `operation` get a server error.
    ServerError {
        operation: &'static str,
        times: usize,
    },
    /// The next `times` requests for `operation` get no response: the connection is closed.
    HangUp {
        operation: &'static str,
        times: usize,
    },
    /// The caller lacks the permission.
    AccessDenied {
        operation: &'static str,
    },
    /// `operation` rejects its input with this message.
    Validation {
        operation: &'static str,
        message: &'static str,
    },
    /// Requests for `operation` get no response until the failure is healed or the test ends.
    Held {
        operation: &'static str,
    },
    /// After the next `times` requests for `operation`, the session has expired.
    SessionOverAfter {
        operation: &'static str,
        times: usize,
    },
    /// The account's quota allows no further such instance for jobs or endpoints.
    ResourceLimit,
    /// AWS's clock is ahead of ours (or, with `true`, behind it).
    ClockAhead(Duration),
    ClockBehind(Duration),
    /// A job gets no instances.
    NoCapacity,
    /// The spot instances of the next training job are taken away after its first checkpoint.
    SpotInterruption,
    /// Containers start, but never respond to a ping.
    NoPing,
    /// Jobs have no start time.
    NoStartTime,
    /// Objects whose key contains this reach the container damaged, so that it rejects them.
    BadObject(&'static str),
    /// The container fails with its own error at objects whose key contains this.
    ContainerError(&'static str),
    /// A job is stopped when this many objects are done.
    StoppedAfter(usize),
    /// Objects whose key contains this get no output, but the job is "Completed".
    NoOutput(&'static str),
}

#[derive(Debug, Default)]
pub(super) struct Failures(Vec<Failure>);

/// Instead of a response.
pub(super) enum Before {
    HangUp,
    Refuse(Refusal),
}

impl Failures {
    pub(super) fn add(&mut self, failure: Failure) {
        self.0.push(failure);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The failure of a request, before it is parsed.
    pub(super) fn before(&mut self, operation: &str) -> Option<Before> {
        for failure in &mut self.0 {
            match failure {
                Failure::Throttling { operation: name, times } if *name == operation && *times > 0 => {
                    *times -= 1;
                    return Some(Before::Refuse(Refusal::new("ThrottlingException", "Rate exceeded")));
                }
                Failure::ServerError { operation: name, times } if *name == operation && *times > 0 => {
                    *times -= 1;
                    return Some(Before::Refuse(Refusal {
                        status: 500,
                        ..Refusal::new("InternalFailure", "We encountered an internal error.  Please try again.")
                    }));
                }
                Failure::HangUp { operation: name, times } if *name == operation && *times > 0 => {
                    *times -= 1;
                    return Some(Before::HangUp);
                }
                Failure::AccessDenied { operation: name } if *name == operation => {
                    let service = match operation {
                        "DescribeLogStreams" | "GetLogEvents" | "FilterLogEvents" => "logs",
                        _ => "sagemaker",
                    };
                    return Some(Before::Refuse(Refusal::denied("admin", service, operation)));
                }
                Failure::SessionOverAfter { operation: name, times } if *name == operation => {
                    if *times == 0 {
                        return Some(Before::Refuse(Refusal::new(
                            "ExpiredTokenException",
                            "The security token included in the request is expired",
                        )));
                    }
                    *times -= 1;
                }
                Failure::Validation { operation: name, message } if *name == operation => {
                    return Some(Before::Refuse(Refusal::validation(message)));
                }
                _ => {}
            }
        }
        None
    }

    pub(super) fn is_held(&self, operation: &str) -> bool {
        let mut failures = self.0.iter();
        failures.any(|failure| matches!(failure, Failure::Held { operation: name } if *name == operation))
    }

    /// `usage` is "transform job usage" or "endpoint usage".
    pub(super) fn limit(&self, instance_type: &str, count: &str, usage: &str) -> Result<(), Refusal> {
        if !self.0.iter().any(|failure| matches!(failure, Failure::ResourceLimit)) {
            return Ok(());
        }
        Err(Refusal::new(
            "ResourceLimitExceeded",
            &format!(
                "The account-level service limit '{instance_type} for {usage}' is 0 Instances, with current \
                 utilization of 0 Instances and a request delta of {count} Instances. Please use AWS Service \
                 Quotas to request an increase for this quota. If AWS Service Quotas is not available, contact AWS \
                 support to request an increase for this quota."
            ),
        ))
    }

    pub(super) fn clock_ahead(&self) -> ClockOffset {
        let mut offset = ClockOffset::default();
        for failure in &self.0 {
            match failure {
                Failure::ClockAhead(by) => offset.ahead += *by,
                Failure::ClockBehind(by) => offset.behind += *by,
                _ => {}
            }
        }
        offset
    }

    pub(super) fn no_capacity(&self) -> bool {
        self.0.iter().any(|failure| matches!(failure, Failure::NoCapacity))
    }

    /// Once.
    pub(super) fn takes_spot_instances(&mut self) -> bool {
        let position = self.0.iter().position(|failure| matches!(failure, Failure::SpotInterruption));
        position.is_some_and(|position| {
            self.0.remove(position);
            true
        })
    }

    pub(super) fn no_start_time(&self) -> bool {
        self.0.iter().any(|failure| matches!(failure, Failure::NoStartTime))
    }

    pub(super) fn no_ping(&self) -> bool {
        self.0.iter().any(|failure| matches!(failure, Failure::NoPing))
    }

    pub(super) fn stopped_after(&self) -> Option<usize> {
        self.0.iter().find_map(|failure| match failure {
            Failure::StoppedAfter(objects) => Some(*objects),
            _ => None,
        })
    }

    /// The failure of an object.
    pub(super) fn of_object(&self, key: &str) -> Option<ObjectFailure> {
        self.0.iter().find_map(|failure| match failure {
            Failure::BadObject(part) if key.contains(part) => Some(ObjectFailure::Broken),
            Failure::ContainerError(part) if key.contains(part) => Some(ObjectFailure::Container),
            Failure::NoOutput(part) if key.contains(part) => Some(ObjectFailure::Forgotten),
            _ => None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectFailure {
    Broken,
    Container,
    Forgotten,
}

/// The difference between AWS's clock and ours.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClockOffset {
    ahead: Duration,
    behind: Duration,
}

impl std::ops::Add<ClockOffset> for std::time::SystemTime {
    type Output = Self;

    fn add(self, offset: ClockOffset) -> Self {
        self + offset.ahead - offset.behind
    }
}
