//! The payload and concurrency of a rehearsal: as set, or else as a job would choose them.

use super::{RehearseError, RehearseOptions};
use crate::sagemaker::spec::transform::{
    DEFAULT_PAYLOAD_MB, InstanceType, MAX_PAYLOAD_IN_FLIGHT_MB, PayloadSuggestion, in_flight_problem,
};

/// `MaxPayloadInMB` and `MaxConcurrentTransforms` of the rehearsed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// `0..=100`; with 0, requests are chunked, however large they are.
    pub max_payload_mb: u32,
    /// `None`: the handler is asked, and gets one request at a time if it does not report a number.
    pub max_concurrent: Option<u32>,
}

impl RequestLimits {
    /// The limits of a job with this largest request.
    pub fn new(options: &RehearseOptions, largest_bytes: u64) -> Result<Self, RehearseError> {
        let given = (options.max_payload_mb, options.max_concurrent);
        let instance = InstanceType::parse(&options.instance_type);
        let vcpus = instance.and_then(|instance| instance.vcpus());
        let suggestion = PayloadSuggestion::new(largest_bytes, vcpus).unwrap_or({
            // No payload is large enough; smaller images can still be sent.
            PayloadSuggestion { max_payload_mb: MAX_PAYLOAD_IN_FLIGHT_MB, max_concurrent: 1 }
        });
        let (max_payload_mb, max_concurrent) = suggestion.beside(given.0, given.1);
        let found = Self {
            max_payload_mb: max_payload_mb.unwrap_or(DEFAULT_PAYLOAD_MB),
            max_concurrent: max_concurrent.filter(|count| *count > 0),
        };
        let at_once = found.max_concurrent.unwrap_or(1);
        match in_flight_problem(found.max_payload_mb, at_once) {
            Some(problem) => Err(RehearseError::TooMuchInFlight(problem)),
            None => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_limits_match_job_defaults() {
        for (given, largest, expected) in [
            ((None, None), 9_300_000, Some((10, Some(4)))),
            ((None, None), 40_000_000, Some((40, Some(2)))),
            ((None, None), 200_000_000, Some((100, Some(1)))),
            ((Some(50), None), 10, Some((50, Some(2)))),
            ((Some(0), None), 10, Some((0, None))),
            ((None, Some(0)), 9_300_000, Some((6, None))),
            ((Some(100), Some(100)), 10, None),
            ((Some(101), Some(1)), 10, None),
        ] {
            let options =
                RehearseOptions { max_payload_mb: given.0, max_concurrent: given.1, ..RehearseOptions::default() };
            let found = RequestLimits::new(&options, largest).ok();
            let found = found.map(|found| (found.max_payload_mb, found.max_concurrent));
            assert_eq!(found, expected, "{given:?}, {largest}");
        }
    }
}
