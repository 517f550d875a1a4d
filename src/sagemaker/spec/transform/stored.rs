//! Specs in records and settings: in AWS's form, or in the form in which Spotcheck stored them before.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::TransformSpec;

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

/// AWS's form of a spec in Spotcheck's own form.
fn from_old(old: &Value) -> Value {
    let (input, output, client, processing) =
        (&old["input"], &old["output"], &old["model_client"], &old["data_processing"]);
    let (data_type, address) = match &input["objects"] {
        objects if objects["prefix"].is_string() => ("S3Prefix", &objects["prefix"]),
        objects => ("ManifestFile", &objects["manifest"]),
    };
    let tags = old["tags"].as_object().into_iter().flatten();
    let capture = old["data_capture"].as_object().map(|capture| {
        json!({
            "DestinationS3Uri": capture["folder"],
            "KmsKeyId": capture.get("kms_key"),
            "GenerateInferenceId": capture["with_inference_id"],
        })
    });
    let experiment = old["experiment"].as_object().map(|experiment| {
        json!({
            "ExperimentName": experiment.get("experiment"),
            "TrialName": experiment.get("trial"),
            "TrialComponentDisplayName": experiment.get("trial_component"),
            "RunName": experiment.get("run"),
        })
    });
    json!({
        "TransformJobName": old["job_name"],
        "ModelName": old["model_name"],
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": data_type, "S3Uri": address}},
            "ContentType": input["content_type"],
            "SplitType": input["split"],
            "CompressionType": input["compression"],
        },
        "TransformOutput": {
            "S3OutputPath": output["folder"],
            "Accept": output["accept"],
            "AssembleWith": output["assemble"],
            "KmsKeyId": output["kms_key"],
        },
        "TransformResources": {
            "InstanceType": old["instance_type"],
            "InstanceCount": old["instance_count"],
            "VolumeKmsKeyId": old["volume_kms_key"],
            "TransformAmiVersion": old["ami_version"],
        },
        "BatchStrategy": old["batch_strategy"],
        "MaxPayloadInMB": old["max_payload_mb"],
        "MaxConcurrentTransforms": old["max_concurrent"],
        "ModelClientConfig": {
            "InvocationsTimeoutInSeconds": client["timeout_s"],
            "InvocationsMaxRetries": client["max_retries"],
        },
        "Environment": old["environment"],
        "Tags": tags.map(|(key, value)| json!({"Key": key, "Value": value})).collect::<Value>(),
        "DataProcessing": {
            "InputFilter": processing["input_filter"],
            "OutputFilter": processing["output_filter"],
            "JoinSource": (processing["join_input"] == true).then_some("Input"),
        },
        "DataCaptureConfig": capture,
        "ExperimentConfig": experiment,
    })
}

#[cfg(test)]
mod tests {
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
