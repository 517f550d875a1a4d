//! The size and number of parallel requests.

use super::{MAX_PAYLOAD_IN_FLIGHT_MB, TransformSpec};

/// SageMaker does not document whether its megabyte has 1,000,000 or 1,048,576 bytes; the smaller one is safe.
const MB: u64 = 1_000_000;
/// Used if the instance type is unknown.
const DEFAULT_VCPUS: u32 = 4;

/// Values for `MaxPayloadInMB` and `MaxConcurrentTransforms` whose product SageMaker accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadSuggestion {
    /// `1..=100`
    pub max_payload_mb: u32,
    /// `1..=100`
    pub max_concurrent: u32,
}

impl PayloadSuggestion {
    /// A suggestion for requests of at most `largest_bytes`, and a container that uses all vCPUs. `None` if no payload
    /// is large enough.
    pub fn new(largest_bytes: u64, vcpus: Option<u32>) -> Option<Self> {
        let needed = needed_payload_mb(largest_bytes);
        let max_payload_mb = u32::try_from(needed).ok().filter(|mb| *mb <= MAX_PAYLOAD_IN_FLIGHT_MB)?;
        let room = MAX_PAYLOAD_IN_FLIGHT_MB / max_payload_mb;
        Some(Self { max_payload_mb, max_concurrent: vcpus.unwrap_or(DEFAULT_VCPUS).clamp(1, room) })
    }
}

impl PayloadSuggestion {
    /// Fills in missing values so that SageMaker accepts the product.
    pub fn fill_in(self, spec: &mut TransformSpec) {
        (spec.max_payload_mb, spec.max_concurrent) = self.beside(spec.max_payload_mb, spec.max_concurrent);
    }

    /// `MaxPayloadInMB` and `MaxConcurrentTransforms` as given, or as suggested if `None`.
    pub fn beside(self, max_payload_mb: Option<u32>, max_concurrent: Option<u32>) -> (Option<u32>, Option<u32>) {
        let room = |given: u32| (MAX_PAYLOAD_IN_FLIGHT_MB / given).max(1);
        match (max_payload_mb, max_concurrent) {
            (None, None) => (Some(self.max_payload_mb), Some(self.max_concurrent)),
            (Some(payload), None) if payload > 0 => (Some(payload), Some(self.max_concurrent.min(room(payload)))),
            (None, Some(concurrent)) if concurrent > 0 => {
                (Some(self.max_payload_mb.min(room(concurrent))), Some(concurrent))
            }
            given => given,
        }
    }
}

/// The smallest `MaxPayloadInMB` for a request of this size.
pub fn needed_payload_mb(bytes: u64) -> u64 {
    bytes.div_ceil(MB).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_payload_fits_the_largest_request() {
        for (largest, vcpus, expected) in [
            (0, Some(4), Some((1, 4))),
            (20_000, Some(48), Some((1, 48))),
            (6_000_001, Some(48), Some((7, 14))),
            (40_000_000, Some(8), Some((40, 2))),
            (100_000_000, None, Some((100, 1))),
            (100_000_001, None, None),
            (u64::MAX, None, None),
        ] {
            let found = PayloadSuggestion::new(largest, vcpus);
            let found = found.map(|found| (found.max_payload_mb, found.max_concurrent));
            assert_eq!(found, expected, "{largest}");
            assert!(found.is_none_or(|(payload, concurrent)| payload * concurrent <= 100));
        }
    }

    #[test]
    fn only_unset_values_are_filled_in() {
        let suggestion = PayloadSuggestion { max_payload_mb: 7, max_concurrent: 14 };
        for (given, expected) in [
            ((None, None), (Some(7), Some(14))),
            ((Some(50), None), (Some(50), Some(2))),
            ((Some(1), None), (Some(1), Some(14))),
            ((None, Some(4)), (Some(7), Some(4))),
            ((Some(0), None), (Some(0), None)),
            ((Some(5), Some(5)), (Some(5), Some(5))),
        ] {
            let mut spec =
                TransformSpec { max_payload_mb: given.0, max_concurrent: given.1, ..TransformSpec::example() };
            suggestion.fill_in(&mut spec);
            assert_eq!((spec.max_payload_mb, spec.max_concurrent), expected, "{given:?}");
            assert_eq!(spec.problems(), []);
        }
    }
}
