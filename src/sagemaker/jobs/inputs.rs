//! The objects that a job reads and writes, those that were added below its prefix after it had listed its input, and
//! the base of its output names.

use super::OutputKeys;
use super::manifest::read_manifest;
use crate::aws::{AwsErrorKind, ListRequest, ObjectInfo, S3};
use crate::domain::S3Address;
use crate::image::source::is_folder_marker;
use crate::sagemaker::JobError;
use crate::sagemaker::spec::transform::{
    InputObjects, JobRecord, KeySample, ManifestPlan, TransformJob, TransformSpec,
};
use crate::tasks::TaskControl;

/// The largest manifest: one with a million images has about 100 MB.
const MAX_MANIFEST_BYTES: u64 = 512 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inputs {
    /// The prefix, or the folder of the manifest.
    pub place: S3Address,
    /// The objects by key, in byte order.
    pub objects: Vec<InputObject>,
    /// Keys of folder markers, which are not images. Jobs may or may not write outputs for them, so these are neither
    /// missing nor unexpected.
    pub markers: Vec<String>,
    /// Keys in the manifest that do not exist.
    pub missing: KeySample,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InputObject {
    pub key: String,
    pub size_bytes: u64,
    /// The modification time in milliseconds since 1970-01-01 UTC, if S3 reports it.
    pub modified_ms: Option<i64>,
}

impl From<ObjectInfo> for InputObject {
    fn from(object: ObjectInfo) -> Self {
        Self {
            key: object.key,
            size_bytes: object.size_bytes,
            modified_ms: object.modified_ns.map(|ns| ns / 1_000_000),
        }
    }
}

/// The outputs of a job so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outputs {
    /// Full keys, in byte order.
    pub keys: Vec<String>,
    /// The modification time of each, in milliseconds since 1970-01-01 UTC, if S3 reports it.
    pub written_ms: Vec<Option<i64>>,
}

impl Inputs {
    fn none_of(place: &S3Address) -> Self {
        Self { place: place.clone(), objects: Vec::new(), markers: Vec::new(), missing: KeySample::default() }
    }

    fn add(&mut self, object: ObjectInfo) {
        if is_folder_marker(&object.key, object.size_bytes) {
            self.markers.push(object.key);
        } else {
            self.objects.push(object.into());
        }
    }

    /// Lists what a job reads.
    pub(super) fn list(s3: &S3, objects: &InputObjects, control: &TaskControl) -> Result<Self, JobError> {
        match objects {
            InputObjects::Prefix(address) => {
                let mut inputs = Self::none_of(address);
                each_object(s3, address, control, |object| inputs.add(object))?;
                Ok(inputs)
            }
            InputObjects::Manifest(address) => Self::from_manifest(s3, &manifest_at(s3, address, control)?, control),
        }
    }

    /// Finds the objects of a manifest.
    pub(super) fn from_manifest(s3: &S3, manifest: &ManifestPlan, control: &TaskControl) -> Result<Self, JobError> {
        let folder = &manifest.folder;
        let key_of = |name: &String| format!("{}{name}", folder.prefix);
        let mut wanted: Vec<String> = manifest.names.iter().map(key_of).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut inputs = Self::none_of(folder);
        // Both are in the same order.
        let mut next = wanted.iter().peekable();
        each_object(s3, folder, control, |object| {
            while let Some(key) = next.next_if(|key| **key < object.key) {
                inputs.missing.add(key);
            }
            if next.next_if(|key| **key == object.key).is_some() {
                inputs.add(object);
            }
        })?;
        next.for_each(|key| inputs.missing.add(key));
        Ok(inputs)
    }

    /// The rule from their keys to those of outputs, derived from existing outputs.
    pub(super) fn output_keys(&self, output: &S3Address, outputs: &Outputs) -> OutputKeys {
        let keys: Vec<&str> = self.objects.iter().map(|object| object.key.as_str()).collect();
        let written = outputs.keys.iter().map(String::as_str);
        OutputKeys::confirmed(&self.place.prefix, &keys, output, written)
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The size of an object; 0 if it is not an input.
    pub(super) fn size_of(&self, key: &str) -> u64 {
        self.find(key).map_or(0, |object| object.size_bytes)
    }

    /// The modification time of an object in milliseconds since 1970-01-01 UTC, if S3 reports it.
    pub(super) fn modified_ms(&self, key: &str) -> Option<i64> {
        self.find(key)?.modified_ms
    }

    fn find(&self, key: &str) -> Option<&InputObject> {
        let place = self.objects.binary_search_by(|object| object.key.as_str().cmp(key));
        place.ok().map(|place| &self.objects[place])
    }
}

impl Outputs {
    pub(super) fn contains(&self, key: &str) -> bool {
        self.keys.binary_search_by(|known| known.as_str().cmp(key)).is_ok()
    }

    /// Lists what a job has written, skipping keys without the suffix of outputs.
    pub(super) fn list(s3: &S3, folder: &S3Address, control: &TaskControl) -> Result<Self, JobError> {
        let mut outputs = Self::default();
        each_object(s3, &folder.as_folder(), control, |object| {
            if !object.key.ends_with(super::OUT) {
                return;
            }
            let written_ns = object.modified_ns;
            outputs.written_ms.push(written_ns.map(|ns| ns / 1_000_000));
            outputs.keys.push(object.key);
        })?;
        Ok(outputs)
    }
}

fn manifest_at(s3: &S3, address: &S3Address, control: &TaskControl) -> Result<ManifestPlan, JobError> {
    let object = s3.object(&address.bucket, &address.prefix, Some(control))?;
    if object.size_bytes > MAX_MANIFEST_BYTES {
        return Err(JobError::Manifest(format!(
            "This is not a manifest, as it has {}; a manifest is a JSON list of keys: {address}",
            crate::domain::human_bytes(object.size_bytes)
        )));
    }
    let content = s3.read(&address.bucket, &address.prefix, None, Some(control))?;
    read_manifest(&content, address)
}

/// All objects whose keys begin with the prefix, in byte order. Keeps none of them.
pub(super) fn each_object(
    s3: &S3,
    address: &S3Address,
    control: &TaskControl,
    mut see: impl FnMut(ObjectInfo),
) -> Result<(), JobError> {
    let mut listing = s3.list(ListRequest::new(address))?;
    let mut count = 0;
    while let Some(page) = listing.next_page(Some(control)) {
        let page = page?;
        count += page.objects.len();
        control.set_detail(format!("{count} objects"));
        page.objects.into_iter().for_each(&mut see);
    }
    control.set_detail("");
    Ok(())
}

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
        let is_prefix = matches!(job.spec.input.data_source.objects, InputObjects::Prefix(_));
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

/// Objects that a job never read, so that their outputs are not missing: by key, in byte order.
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

/// The prefix of a job's input keys that its output keys omit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedFrom {
    /// The job read everything with this prefix.
    Prefix(S3Address),
    /// The job read the objects in a manifest.
    Manifest {
        /// The prefix in the manifest.
        folder: S3Address,
        /// The full keys in the manifest, in byte order; `None` if it was deleted after the job.
        keys: Option<Vec<String>>,
        /// Whether Spotcheck wrote the manifest, so that its folder is the base of image names.
        is_ours: bool,
    },
}

impl NamedFrom {
    /// The base folder of a job's output names. If its manifest was deleted, the job's record has the folder.
    ///
    /// # Errors
    /// The manifest cannot be read, and its folder is unknown: the images of the outputs could only be guessed.
    pub fn from_job(
        s3: &S3,
        spec: &TransformSpec,
        record: Option<&JobRecord>,
        control: &TaskControl,
    ) -> Result<Self, JobError> {
        let address = match &spec.input.data_source.objects {
            InputObjects::Prefix(prefix) => return Ok(Self::Prefix(prefix.clone())),
            InputObjects::Manifest(address) => address,
        };
        let folder = record.and_then(|record| record.manifest_folder.clone());
        let is_ours = folder.is_some();
        match (manifest_at(s3, address, control), folder) {
            (Ok(manifest), _) => {
                let folder = manifest.folder;
                let names = manifest.names.iter();
                let mut keys: Vec<String> = names.map(|name| format!("{}{name}", folder.prefix)).collect();
                keys.sort_unstable();
                keys.dedup();
                Ok(Self::Manifest { folder, keys: Some(keys), is_ours })
            }
            (Err(JobError::Cancelled), _) => Err(JobError::Cancelled),
            (Err(_), Some(folder)) => Ok(Self::Manifest { folder, keys: None, is_ours }),
            (Err(error), None) if error.aws_kind() == Some(AwsErrorKind::NotFound) => Err(JobError::Manifest(format!(
                "The manifest of job {} no longer exists, and the job was not started on this computer, so the \
                    base folder of its output names is unknown. Open the images of that folder, and the outputs by \
                    their address, {}. The manifest was {address}",
                spec.job_name, spec.output.folder
            ))),
            (Err(error), None) => Err(error),
        }
    }

    /// The prefix, or the folder of the manifest.
    pub fn place(&self) -> &S3Address {
        match self {
            Self::Prefix(prefix) => prefix,
            Self::Manifest { folder, .. } => folder,
        }
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
