//! Objects that were added below a job's prefix after it had listed its input. The job never read them, so their outputs
//! are not missing.

use super::inputs::{InputObject, Inputs};
use crate::sagemaker::spec::transform::{InputObjects, JobRecord, KeySample, TransformJob};

/// When a job listed its input, and what is known about that listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InputListed {
    /// Milliseconds since 1970-01-01 UTC. `None` for a manifest: what it lists belongs to the job, whenever it was
    /// written.
    at_ms: Option<i64>,
    /// The number of objects at the start; `None` if the job was started on another computer.
    count: Option<usize>,
}

impl InputListed {
    pub(super) fn by(job: &TransformJob, record: Option<&JobRecord>) -> Self {
        let is_prefix = matches!(job.spec.input.objects, InputObjects::Prefix(_));
        let count = record.and_then(|record| record.input_objects);
        Self { at_ms: is_prefix.then_some(job.created_ms), count: count.and_then(|count| usize::try_from(count).ok()) }
    }

    /// Finds the inputs that came too late for the job. `is_known` returns whether the job has processed an object,
    /// judging by an output or a line in the data log.
    ///
    /// An object that was overwritten looks the same; if the number of objects is unchanged since the start, all of
    /// them were overwritten and none is late.
    pub(super) fn late_inputs<'i>(&self, inputs: &'i Inputs, is_known: impl Fn(&str) -> bool) -> LateInputs<'i> {
        let Some(at_ms) = self.at_ms else {
            return LateInputs::default();
        };
        let is_later =
            |object: &&InputObject| object.modified_ms.is_some_and(|ms| ms > at_ms) && !is_known(&object.key);
        let late: Vec<&str> = inputs.objects.iter().filter(is_later).map(|object| object.key.as_str()).collect();
        if self.count.is_some_and(|count| inputs.objects.len() <= count) {
            return LateInputs::default();
        }
        LateInputs(late)
    }
}

/// The objects by key, in byte order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LateInputs<'i>(Vec<&'i str>);

impl LateInputs<'_> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.0.binary_search(&key).is_ok()
    }

    /// A note for the user; `None` if there are none.
    pub(super) fn note(&self) -> Option<String> {
        let mut sample = KeySample::default();
        self.0.iter().for_each(|key| sample.add(key));
        let (objects, are) = match sample.count {
            0 => return None,
            1 => ("1 object".to_owned(), "is"),
            count => (format!("{count} objects"), "are"),
        };
        Some(format!(
            "{objects} below the input {are} newer than the job and {are} not counted, because it has no outputs for \
             them: {sample}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::S3Address;

    fn inputs(objects: &[(&str, Option<i64>)]) -> Inputs {
        let object = |(key, modified_ms): &(&str, Option<i64>)| InputObject {
            key: (*key).to_owned(),
            size_bytes: 1,
            modified_ms: *modified_ms,
        };
        Inputs {
            objects: objects.iter().map(object).collect(),
            ..Inputs::none_of(&S3Address::new("bucket", "photos/"))
        }
    }

    #[test]
    fn only_newer_unknown_inputs_are_late() {
        let inputs = inputs(&[
            ("early", Some(900)),
            ("late", Some(1001)),
            ("late, with an output", Some(1001)),
            ("now", Some(1000)),
            ("undated", None),
        ]);
        let is_known = |key: &str| key.ends_with("output");
        for (at_ms, count, expected) in [
            (Some(1000), None, &["late"][..]),
            (Some(1000), Some(4), &["late"]),
            // As many as before: an existing object was overwritten.
            (Some(1000), Some(5), &[]),
            (None, Some(4), &[]),
        ] {
            let listed = InputListed { at_ms, count };
            assert_eq!(listed.late_inputs(&inputs, is_known).0, expected, "{listed:?}");
        }
    }
}
