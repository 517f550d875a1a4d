//! Specs in records and settings: in AWS's form, or in the form in which Spotcheck stored them before.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::TransformSpec;
use crate::sagemaker::spec::members::to_aws;

impl TransformSpec {
    /// Reads a stored spec in either form.
    ///
    /// # Errors
    /// It has neither form.
    pub fn from_stored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Value::deserialize(deserializer)?;
        let is_old = stored.get("job_name").is_some();
        Self::deserialize(if is_old { from_old(&stored) } else { stored }).map_err(D::Error::custom)
    }
}

const MEMBERS: [(&str, &str); 31] = [
    ("/job_name", "/TransformJobName"),
    ("/model_name", "/ModelName"),
    ("/input/objects/prefix", "/TransformInput/DataSource/S3DataSource/S3Uri"),
    ("/input/objects/manifest", "/TransformInput/DataSource/S3DataSource/S3Uri"),
    ("/input/content_type", "/TransformInput/ContentType"),
    ("/input/split", "/TransformInput/SplitType"),
    ("/input/compression", "/TransformInput/CompressionType"),
    ("/output/folder", "/TransformOutput/S3OutputPath"),
    ("/output/accept", "/TransformOutput/Accept"),
    ("/output/assemble", "/TransformOutput/AssembleWith"),
    ("/output/kms_key", "/TransformOutput/KmsKeyId"),
    ("/instance_type", "/TransformResources/InstanceType"),
    ("/instance_count", "/TransformResources/InstanceCount"),
    ("/volume_kms_key", "/TransformResources/VolumeKmsKeyId"),
    ("/ami_version", "/TransformResources/TransformAmiVersion"),
    ("/batch_strategy", "/BatchStrategy"),
    ("/max_payload_mb", "/MaxPayloadInMB"),
    ("/max_concurrent", "/MaxConcurrentTransforms"),
    ("/model_client/timeout_s", "/ModelClientConfig/InvocationsTimeoutInSeconds"),
    ("/model_client/max_retries", "/ModelClientConfig/InvocationsMaxRetries"),
    ("/environment", "/Environment"),
    ("/tags", "/Tags"),
    ("/data_processing/input_filter", "/DataProcessing/InputFilter"),
    ("/data_processing/output_filter", "/DataProcessing/OutputFilter"),
    ("/data_capture/folder", "/DataCaptureConfig/DestinationS3Uri"),
    ("/data_capture/kms_key", "/DataCaptureConfig/KmsKeyId"),
    ("/data_capture/with_inference_id", "/DataCaptureConfig/GenerateInferenceId"),
    ("/experiment/experiment", "/ExperimentConfig/ExperimentName"),
    ("/experiment/trial", "/ExperimentConfig/TrialName"),
    ("/experiment/trial_component", "/ExperimentConfig/TrialComponentDisplayName"),
    ("/experiment/run", "/ExperimentConfig/RunName"),
];

fn from_old(old: &Value) -> Value {
    let mut spec = to_aws(old, &MEMBERS);
    let is_prefix = old["input"]["objects"]["prefix"].is_string();
    let data_type = if is_prefix { "S3Prefix" } else { "ManifestFile" };
    spec["TransformInput"]["DataSource"]["S3DataSource"]["S3DataType"] = data_type.into();
    if old["data_processing"]["join_input"] == true {
        spec["DataProcessing"]["JoinSource"] = "Input".into();
    }
    spec
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(stored: Value) -> TransformSpec {
        TransformSpec::from_stored(stored).unwrap()
    }

    /// All members that Spotcheck wrote in its own form.
    #[test]
    fn old_form_is_read_completely() {
        let full = read(json!({
            "job_name": "cats", "model_name": "m",
            "input": {
                "objects": {"manifest": "s3://bucket/m.json"},
                "content_type": "image/png", "split": "TFRecord", "compression": "Gzip",
            },
            "output": {"folder": "s3://bucket/out/", "accept": "text/csv", "assemble": "Line", "kms_key": "k1"},
            "instance_type": "ml.g5.xlarge", "instance_count": 2, "volume_kms_key": "k2", "ami_version": "ami",
            "batch_strategy": "SingleRecord", "max_payload_mb": 7, "max_concurrent": 3,
            "model_client": {"timeout_s": 5, "max_retries": 1},
            "environment": {"LEVEL": ""}, "tags": {"team": "vision"},
            "data_processing": {"input_filter": "$.a", "output_filter": "$.b", "join_input": true},
            "data_capture": {"folder": "s3://bucket/seen/", "kms_key": "k3", "with_inference_id": true},
            "experiment": {"experiment": "e", "trial": "t", "trial_component": "c", "run": "r"},
        }));
        assert_eq!(
            serde_json::to_value(&full).unwrap(),
            json!({
                "TransformJobName": "cats", "ModelName": "m",
                "TransformInput": {
                    "DataSource": {"S3DataSource": {"S3DataType": "ManifestFile", "S3Uri": "s3://bucket/m.json"}},
                    "ContentType": "image/png", "SplitType": "TFRecord", "CompressionType": "Gzip",
                },
                "TransformOutput": {
                    "S3OutputPath": "s3://bucket/out/", "Accept": "text/csv", "AssembleWith": "Line", "KmsKeyId": "k1",
                },
                "TransformResources": {
                    "InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeKmsKeyId": "k2",
                    "TransformAmiVersion": "ami", "VolumeSizeInGB": null,
                },
                "BatchStrategy": "SingleRecord", "MaxPayloadInMB": 7, "MaxConcurrentTransforms": 3,
                "ModelClientConfig": {"InvocationsTimeoutInSeconds": 5, "InvocationsMaxRetries": 1},
                "Environment": {"LEVEL": ""}, "Tags": [{"Key": "team", "Value": "vision"}],
                "DataProcessing": {"InputFilter": "$.a", "OutputFilter": "$.b", "JoinSource": "Input"},
                "DataCaptureConfig": {
                    "DestinationS3Uri": "s3://bucket/seen/", "KmsKeyId": "k3", "GenerateInferenceId": true,
                },
                "ExperimentConfig": {
                    "ExperimentName": "e", "TrialName": "t", "TrialComponentDisplayName": "c", "RunName": "r",
                },
            })
        );
        assert_eq!(read(serde_json::to_value(&full).unwrap()), full);
    }

    #[test]
    fn old_form_of_default_spec_is_read() {
        let least = read(json!({
            "job_name": "", "model_name": "",
            "input": {"objects": {"prefix": ""}, "content_type": "application/x-image", "split": "None",
                "compression": "None"},
            "output": {"folder": "", "accept": "application/json", "assemble": "None", "kms_key": null},
            "instance_type": "ml.m5.xlarge", "instance_count": 1, "volume_kms_key": null, "ami_version": null,
            "batch_strategy": "SingleRecord", "max_payload_mb": null, "max_concurrent": null,
            "model_client": {"timeout_s": null, "max_retries": null}, "environment": {}, "tags": {},
            "data_processing": {"input_filter": null, "output_filter": null, "join_input": false},
            "data_capture": null, "experiment": null,
        }));
        assert_eq!(least, TransformSpec::default());
        assert_eq!(read(serde_json::to_value(&least).unwrap()), least);
    }
}
