//! Batch Transform jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SageMaker, Tag, Timestamp, address, named, non_empty, sagemaker, tags, unsupported};
use crate::aws::AwsError;
use crate::aws::control_plane::Call;
use crate::sagemaker::spec::transform::{
    AssembleWith, BatchStrategy, Compression, DataCapture, DataProcessing, Experiment, InputObjects, ModelClient,
    SplitType, TransformInput, TransformJob, TransformOutput, TransformSpec, TransformStatus,
};
use crate::tasks::TaskControl;

/// `CreateTransformJob`, and the same fields of `DescribeTransformJob`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Job {
    transform_job_name: String,
    model_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent_transforms: Option<u32>,
    #[serde(default, skip_serializing_if = "ModelClientConfig::is_empty")]
    model_client_config: ModelClientConfig,
    #[serde(rename = "MaxPayloadInMB", skip_serializing_if = "Option::is_none")]
    max_payload_mb: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_strategy: Option<BatchStrategy>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<String, String>,
    transform_input: Input,
    transform_output: Option<Output>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_capture_config: Option<DataCaptureConfig>,
    transform_resources: Resources,
    #[serde(default, skip_serializing_if = "Processing::is_empty")]
    data_processing: Processing,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment_config: Option<ExperimentConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CreateTransformJob<'a> {
    #[serde(flatten)]
    job: Job,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag<'a>>,
}

impl<'a> CreateTransformJob<'a> {
    fn from_spec(spec: &'a TransformSpec) -> Self {
        Self { job: Job::from_spec(spec), tags: tags(&spec.tags) }
    }
}

/// The request of [`SageMaker::create_transform_job`] as JSON, for use by other programs.
pub fn create_transform_job_request(spec: &TransformSpec) -> String {
    serde_json::to_string(&CreateTransformJob::from_spec(spec))
        .expect("texts and numbers can always be written as JSON")
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ModelClientConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    invocations_timeout_in_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invocations_max_retries: Option<u32>,
}

impl ModelClientConfig {
    fn is_empty(&self) -> bool {
        self.invocations_timeout_in_seconds.is_none() && self.invocations_max_retries.is_none()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    data_source: DataSource,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    content_type: String,
    #[serde(default)]
    compression_type: Compression,
    #[serde(default)]
    split_type: SplitType,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DataSource {
    s3_data_source: S3DataSource,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct S3DataSource {
    s3_data_type: String,
    s3_uri: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Output {
    s3_output_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    accept: Option<String>,
    #[serde(default)]
    assemble_with: AssembleWith,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms_key_id: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DataCaptureConfig {
    destination_s3_uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms_key_id: Option<String>,
    #[serde(default)]
    generate_inference_id: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resources {
    instance_type: String,
    instance_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_kms_key_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transform_ami_version: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Processing {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    join_source: Option<String>,
}

impl Processing {
    fn is_empty(&self) -> bool {
        self.input_filter.is_none() && self.output_filter.is_none() && self.join_source.is_none()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(clippy::struct_field_names, reason = "AWS names them so")]
struct ExperimentConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial_component_display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedJob {
    #[serde(flatten)]
    job: Job,
    transform_job_arn: String,
    transform_job_status: TransformStatus,
    failure_reason: Option<String>,
    creation_time: Timestamp,
    transform_start_time: Option<Timestamp>,
    transform_end_time: Option<Timestamp>,
}

impl SageMaker {
    /// Starts a job; returns its ARN.
    pub fn create_transform_job(
        &self,
        spec: &TransformSpec,
        control: Option<&TaskControl>,
    ) -> Result<String, AwsError> {
        let call = sagemaker("CreateTransformJob", format!("start job {}", spec.job_name));
        self.create(&call, &CreateTransformJob::from_spec(spec), control)
    }

    /// The parameters of a job, without its tags, and its status.
    ///
    /// # Errors
    /// [`AwsErrorKind::NotFound`](crate::aws::AwsErrorKind::NotFound) if no job has this name;
    /// [`AwsErrorKind::Unsupported`](crate::aws::AwsErrorKind::Unsupported) if it reads something other than objects.
    pub fn describe_transform_job(&self, name: &str, control: Option<&TaskControl>) -> Result<TransformJob, AwsError> {
        let call = sagemaker("DescribeTransformJob", format!("describe job {name}"));
        let told: DescribedJob = self.ask(&call, &named("TransformJobName", name), control)?;
        Ok(TransformJob {
            spec: told.job.spec(&call)?,
            arn: told.transform_job_arn,
            status: told.transform_job_status,
            failure: non_empty(told.failure_reason),
            created_ms: told.creation_time.ms(),
            started_ms: told.transform_start_time.map(Timestamp::ms),
            ended_ms: told.transform_end_time.map(Timestamp::ms),
        })
    }
}

impl Job {
    fn from_spec(spec: &TransformSpec) -> Self {
        let processing = &spec.data_processing;
        Self {
            transform_job_name: spec.job_name.clone(),
            model_name: spec.model_name.clone(),
            max_concurrent_transforms: spec.max_concurrent,
            model_client_config: ModelClientConfig {
                invocations_timeout_in_seconds: spec.model_client.timeout_s,
                invocations_max_retries: spec.model_client.max_retries,
            },
            max_payload_mb: spec.max_payload_mb,
            batch_strategy: Some(spec.batch_strategy),
            environment: spec.environment.clone(),
            transform_input: Input::from_spec(&spec.input),
            transform_output: Some(Output::from_spec(&spec.output)),
            data_capture_config: spec.data_capture.as_ref().map(|capture| DataCaptureConfig {
                destination_s3_uri: capture.folder.to_string(),
                kms_key_id: capture.kms_key.clone(),
                generate_inference_id: capture.with_inference_id,
            }),
            transform_resources: Resources {
                instance_type: spec.instance_type.clone(),
                instance_count: spec.instance_count,
                volume_kms_key_id: spec.volume_kms_key.clone(),
                transform_ami_version: spec.ami_version.clone(),
            },
            data_processing: Processing {
                input_filter: processing.input_filter.clone(),
                output_filter: processing.output_filter.clone(),
                join_source: processing.join_input.then(|| "Input".to_owned()),
            },
            experiment_config: spec.experiment.as_ref().map(|experiment| ExperimentConfig {
                experiment_name: experiment.experiment.clone(),
                trial_name: experiment.trial.clone(),
                trial_component_display_name: experiment.trial_component.clone(),
                run_name: experiment.run.clone(),
            }),
        }
    }

    fn spec(self, call: &Call) -> Result<TransformSpec, AwsError> {
        let Some(output) = self.transform_output else {
            return Err(unsupported(call, "it writes no objects"));
        };
        let capture = self.data_capture_config.map(|capture| {
            Ok(DataCapture {
                folder: address(&capture.destination_s3_uri, call)?,
                kms_key: non_empty(capture.kms_key_id),
                with_inference_id: capture.generate_inference_id,
            })
        });
        Ok(TransformSpec {
            job_name: self.transform_job_name,
            model_name: self.model_name,
            input: self.transform_input.read(call)?,
            output: TransformOutput {
                folder: address(&output.s3_output_path, call)?,
                accept: non_empty(output.accept),
                assemble: output.assemble_with,
                kms_key: non_empty(output.kms_key_id),
            },
            instance_type: self.transform_resources.instance_type,
            instance_count: self.transform_resources.instance_count,
            volume_kms_key: non_empty(self.transform_resources.volume_kms_key_id),
            ami_version: non_empty(self.transform_resources.transform_ami_version),
            // SageMaker's default, for a job that was started without one.
            batch_strategy: self.batch_strategy.unwrap_or(BatchStrategy::MultiRecord),
            max_payload_mb: self.max_payload_mb,
            max_concurrent: self.max_concurrent_transforms,
            model_client: ModelClient {
                timeout_s: self.model_client_config.invocations_timeout_in_seconds,
                max_retries: self.model_client_config.invocations_max_retries,
            },
            environment: self.environment,
            tags: BTreeMap::new(),
            data_processing: DataProcessing {
                input_filter: non_empty(self.data_processing.input_filter),
                output_filter: non_empty(self.data_processing.output_filter),
                join_input: self.data_processing.join_source.as_deref() == Some("Input"),
            },
            data_capture: capture.transpose()?,
            experiment: self.experiment_config.map(|experiment| Experiment {
                experiment: experiment.experiment_name,
                trial: experiment.trial_name,
                trial_component: experiment.trial_component_display_name,
                run: experiment.run_name,
            }),
        })
    }
}

impl Input {
    fn from_spec(input: &TransformInput) -> Self {
        let (kind, address) = match &input.objects {
            InputObjects::Prefix(prefix) => ("S3Prefix", prefix),
            InputObjects::Manifest(manifest) => ("ManifestFile", manifest),
        };
        Self {
            data_source: DataSource {
                s3_data_source: S3DataSource { s3_data_type: kind.to_owned(), s3_uri: address.to_string() },
            },
            content_type: input.content_type.clone(),
            compression_type: input.compression,
            split_type: input.split,
        }
    }

    fn read(self, call: &Call) -> Result<TransformInput, AwsError> {
        let source = self.data_source.s3_data_source;
        let address = address(&source.s3_uri, call)?;
        let objects = match source.s3_data_type.as_str() {
            "S3Prefix" => InputObjects::Prefix(address),
            "ManifestFile" => InputObjects::Manifest(address),
            other => return Err(unsupported(call, &format!("its input has type {other}"))),
        };
        Ok(TransformInput {
            objects,
            content_type: self.content_type,
            split: self.split_type,
            compression: self.compression_type,
        })
    }
}

impl Output {
    fn from_spec(output: &TransformOutput) -> Self {
        Self {
            s3_output_path: output.folder.to_string(),
            accept: output.accept.clone(),
            assemble_with: output.assemble,
            kms_key_id: output.kms_key.clone(),
        }
    }
}
