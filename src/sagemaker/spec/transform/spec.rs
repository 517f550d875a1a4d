//! The parameters of a job, with SageMaker's limits on each, and the size and number of parallel requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::limits::{
    DEFAULT_PAYLOAD_MB, FieldProblem, MAX_ENVIRONMENT_VALUE, MAX_PAYLOAD_IN_FLIGHT_MB, MAX_S3_URI, Problems,
    in_flight_problem, is_name,
};
use super::{DataSource, Resources};
use crate::domain::S3Address;
use crate::sagemaker::spec::tags;

/// The content type of an image per request, for the handler of our archive.
pub const IMAGE_CONTENT_TYPE: &str = "application/x-image";
/// The content type of a TFRecord example per request.
pub const EXAMPLE_CONTENT_TYPE: &str = "application/x-tfexample";
/// The content type of a line `{"b64": "…"}` per request.
pub const LINES_CONTENT_TYPE: &str = "application/jsonlines";

pub(super) const JSON: &str = "application/json";
const MAX_ENVIRONMENT: usize = 16;
const MAX_MEDIA_TYPE: usize = 256;
const MAX_FILTER: usize = 63;
const MAX_EXPERIMENT_NAME: usize = 120;
const MAX_TIMEOUT_S: u32 = 3600;
const MAX_RETRIES: u32 = 3;

/// The parameters of `CreateTransformJob`, in its form. Unset fields are not sent, so that SageMaker's defaults apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TransformSpec {
    /// 1 to 63 letters, digits and hyphens, unique within account and region.
    #[serde(rename = "TransformJobName")]
    pub job_name: String,
    /// The name of an existing SageMaker model.
    pub model_name: String,
    #[serde(rename = "TransformInput")]
    pub input: TransformInput,
    #[serde(rename = "TransformOutput")]
    pub output: TransformOutput,
    #[serde(rename = "TransformResources")]
    pub resources: Resources,
    #[serde(default = "BatchStrategy::unset")]
    pub batch_strategy: BatchStrategy,
    /// The maximum payload of a request, `0..=100`; 0 streams it in chunks without a limit. SageMaker's default is 6.
    #[serde(rename = "MaxPayloadInMB")]
    pub max_payload_mb: Option<u32>,
    /// Maximum number of parallel requests per instance; the product with `max_payload_mb` is at most 100.
    #[serde(rename = "MaxConcurrentTransforms")]
    pub max_concurrent: Option<u32>,
    #[serde(default, rename = "ModelClientConfig")]
    pub model_client: ModelClient,
    /// At most 16 variables for the container.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// At most 50 tags. SageMaker does not return them later.
    #[serde(default, with = "tags")]
    pub tags: BTreeMap<String, String>,
    #[serde(default)]
    pub data_processing: DataProcessing,
    /// Stores requests and predictions next to the outputs.
    #[serde(rename = "DataCaptureConfig")]
    pub data_capture: Option<DataCapture>,
    #[serde(rename = "ExperimentConfig")]
    pub experiment: Option<Experiment>,
}

/// The input objects of a job, and how they become requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TransformInput {
    pub data_source: DataSource<InputObjects>,
    /// `application/x-image`
    #[serde(default)]
    pub content_type: String,
    #[serde(default, rename = "SplitType")]
    pub split: SplitType,
    #[serde(default, rename = "CompressionType")]
    pub compression: Compression,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "S3DataType", content = "S3Uri")]
pub enum InputObjects {
    /// Every object whose key begins with the prefix: `photos` also matches `photos-old/`.
    #[serde(rename = "S3Prefix")]
    Prefix(S3Address),
    /// The objects listed in a manifest: `[{"prefix": "s3://bucket/folder/"}, "a.jpg", …]`.
    #[serde(rename = "ManifestFile")]
    Manifest(S3Address),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TransformOutput {
    /// The folder for the `<key>.out` objects.
    #[serde(rename = "S3OutputPath")]
    pub folder: S3Address,
    /// The content type of the responses: `application/json`.
    pub accept: Option<String>,
    #[serde(default, rename = "AssembleWith")]
    pub assemble: AssembleWith,
    #[serde(rename = "KmsKeyId")]
    pub kms_key: Option<String>,
}

/// How an object is split into records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum SplitType {
    #[default]
    None,
    Line,
    RecordIO,
    TFRecord,
}

/// The number of records per request. `SingleRecord` strips the framing of TFRecord and `RecordIO`, `MultiRecord` keeps
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum BatchStrategy {
    #[default]
    SingleRecord,
    MultiRecord,
}

/// The separator between the predictions for one object's records in its output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum AssembleWith {
    #[default]
    None,
    Line,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Compression {
    #[default]
    None,
    Gzip,
}

/// SageMaker's timeout and retries for requests to the container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelClient {
    /// `1..=3600`; SageMaker's default is 600.
    #[serde(rename = "InvocationsTimeoutInSeconds")]
    pub timeout_s: Option<u32>,
    /// `0..=3`; SageMaker's default is 3.
    #[serde(rename = "InvocationsMaxRetries")]
    pub max_retries: Option<u32>,
}

/// `JSONPath` filters for inputs and outputs, and whether both are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DataProcessing {
    pub input_filter: Option<String>,
    pub output_filter: Option<String>,
    pub join_source: Option<JoinSource>,
}

/// What each prediction is joined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinSource {
    None,
    Input,
}

/// Where SageMaker stores the requests and predictions of a job, in addition to its outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataCapture {
    #[serde(rename = "DestinationS3Uri")]
    pub folder: S3Address,
    #[serde(rename = "KmsKeyId")]
    pub kms_key: Option<String>,
    #[serde(default, rename = "GenerateInferenceId")]
    pub with_inference_id: bool,
}

/// Associates a job with SageMaker Experiments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    #[serde(rename = "ExperimentName")]
    pub experiment: Option<String>,
    #[serde(rename = "TrialName")]
    pub trial: Option<String>,
    #[serde(rename = "TrialComponentDisplayName")]
    pub trial_component: Option<String>,
    #[serde(rename = "RunName")]
    pub run: Option<String>,
}

impl BatchStrategy {
    /// SageMaker's default, for a job that was started without one.
    fn unset() -> Self {
        Self::MultiRecord
    }
}

impl DataProcessing {
    /// Whether each prediction is joined with its input.
    pub fn joins_input(&self) -> bool {
        self.join_source == Some(JoinSource::Input)
    }
}

impl Experiment {
    /// `None` if nothing is set.
    pub fn given(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

impl Default for TransformSpec {
    /// One image per request, JSON predictions, one instance. Names, input and output are empty.
    fn default() -> Self {
        Self {
            job_name: String::new(),
            model_name: String::new(),
            input: TransformInput {
                data_source: DataSource { objects: InputObjects::Prefix(S3Address::default()) },
                content_type: IMAGE_CONTENT_TYPE.to_owned(),
                split: SplitType::None,
                compression: Compression::None,
            },
            output: TransformOutput {
                folder: S3Address::default(),
                accept: Some(JSON.to_owned()),
                assemble: AssembleWith::None,
                kms_key: None,
            },
            resources: Resources::default(),
            batch_strategy: BatchStrategy::SingleRecord,
            max_payload_mb: None,
            max_concurrent: None,
            model_client: ModelClient::default(),
            environment: BTreeMap::new(),
            tags: BTreeMap::new(),
            data_processing: DataProcessing::default(),
            data_capture: None,
            experiment: None,
        }
    }
}

impl TransformSpec {
    /// The values that SageMaker would reject, by name, range or length.
    pub fn problems(&self) -> Vec<FieldProblem> {
        let mut found = Problems::default();
        found.name("job name", &self.job_name);
        found.name("model name", &self.model_name);
        self.check_places(&mut found);
        if self.resources.instance_type.is_empty() {
            found.add("instance type", "is missing; enter one, for example ml.m5.xlarge (no GPU)");
        }
        self.resources.check(&mut found);
        self.check_requests(&mut found);
        found.environment(&self.environment, MAX_ENVIRONMENT, MAX_ENVIRONMENT_VALUE);
        found.tags(&self.tags);
        self.check_experiment(&mut found);
        found.0
    }

    fn check_places(&self, found: &mut Problems) {
        let input = &self.input;
        found.length("input", &input.data_source.objects.address().to_string(), MAX_S3_URI);
        found.length("content type", &input.content_type, MAX_MEDIA_TYPE);
        let output = &self.output;
        found.length("output folder", &output.folder.to_string(), MAX_S3_URI);
        found.kms_key("output KMS key", output.kms_key.as_deref());
        if let Some(capture) = &self.data_capture {
            found.length("data capture folder", &capture.folder.to_string(), MAX_S3_URI);
            found.kms_key("data capture KMS key", capture.kms_key.as_deref());
        }
        let DataProcessing { input_filter, output_filter, .. } = &self.data_processing;
        for (field, text, longest) in [
            ("accepted type", &output.accept, MAX_MEDIA_TYPE),
            ("input filter", input_filter, MAX_FILTER),
            ("output filter", output_filter, MAX_FILTER),
        ] {
            found.length(field, text.as_deref().unwrap_or_default(), longest);
        }
    }

    fn check_requests(&self, found: &mut Problems) {
        let payload = self.max_payload_mb.unwrap_or(DEFAULT_PAYLOAD_MB);
        found.range("payload in MB", payload, 0, MAX_PAYLOAD_IN_FLIGHT_MB);
        let concurrent = self.max_concurrent.unwrap_or(0);
        if let Some(problem) = in_flight_problem(payload, concurrent) {
            found.add("payload times concurrency", problem);
        }
        found.range("request timeout in seconds", self.model_client.timeout_s, 1, MAX_TIMEOUT_S);
        found.range("number of retries", self.model_client.max_retries, 0, MAX_RETRIES);
    }

    fn check_experiment(&self, found: &mut Problems) {
        let Some(experiment) = &self.experiment else {
            return;
        };
        let names = [
            ("experiment name", &experiment.experiment),
            ("trial name", &experiment.trial),
            ("trial component name", &experiment.trial_component),
            ("experiment run name", &experiment.run),
        ];
        for (field, name) in names {
            if let Some(name) = name
                && !is_name(name, MAX_EXPERIMENT_NAME)
            {
                found.add(
                    field,
                    format!("“{name}” is not valid: use 1 to {MAX_EXPERIMENT_NAME} letters, digits and inner hyphens"),
                );
            }
        }
    }
}

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
        (spec.max_payload_mb, spec.max_concurrent) = self.complete(spec.max_payload_mb, spec.max_concurrent);
    }

    /// `MaxPayloadInMB` and `MaxConcurrentTransforms` as given, or as suggested if `None`.
    pub fn complete(self, max_payload_mb: Option<u32>, max_concurrent: Option<u32>) -> (Option<u32>, Option<u32>) {
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

    fn fields(spec: &TransformSpec) -> Vec<&'static str> {
        spec.problems().iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn typical_job_has_no_problem() {
        let spec = TransformSpec::example();
        assert_eq!(spec.problems(), []);
    }

    #[test]
    fn refused_values_are_found_by_field() {
        let check = |change: fn(&mut TransformSpec), expected: &[&str]| {
            let mut spec = TransformSpec::example();
            change(&mut spec);
            assert_eq!(fields(&spec), expected, "{:?}", spec.problems());
        };
        check(|spec| spec.job_name = "my job".to_owned(), &["job name"]);
        check(|spec| spec.job_name = "a".repeat(64), &["job name"]);
        check(|spec| spec.job_name = "a--b".to_owned(), &[]);
        check(|spec| spec.model_name = "-a".to_owned(), &["model name"]);
        check(|spec| spec.resources.instance_type.clear(), &["instance type"]);
        check(|spec| spec.resources.instance_count = 0, &["number of instances"]);
        check(|spec| spec.max_payload_mb = Some(101), &["payload in MB"]);
        check(|spec| (spec.max_payload_mb, spec.max_concurrent) = (Some(26), Some(4)), &["payload times concurrency"]);
        // Without a payload it is 6 MB.
        check(|spec| spec.max_concurrent = Some(17), &["payload times concurrency"]);
        check(|spec| (spec.max_payload_mb, spec.max_concurrent) = (Some(25), Some(4)), &[]);
        check(|spec| spec.model_client.timeout_s = Some(3601), &["request timeout in seconds"]);
        check(|spec| spec.model_client.max_retries = Some(4), &["number of retries"]);
        check(
            |spec| {
                for number in 0..17 {
                    spec.environment.insert(format!("KEY_{number}"), String::new());
                }
            },
            &["environment"],
        );
        check(|spec| drop(spec.environment.insert("2ND".to_owned(), String::new())), &["environment"]);
        check(|spec| drop(spec.tags.insert("aws:mine".to_owned(), String::new())), &["tags"]);
        check(|spec| drop(spec.tags.insert("팀".to_owned(), "vision a".to_owned())), &[]);
        check(|spec| spec.resources.volume_kms_key = Some("a key".to_owned()), &["volume KMS key"]);
        check(|spec| spec.resources.ami_version = Some("al2--gpu".to_owned()), &["AMI version"]);
        check(|spec| spec.data_processing.input_filter = Some("$".repeat(64)), &["input filter"]);
        check(
            |spec| {
                spec.experiment = Some(Experiment { trial: Some("a trial".to_owned()), ..Experiment::default() });
            },
            &["trial name"],
        );
    }

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
