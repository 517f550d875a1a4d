//! Spotcheck's record of a job that it started.

use serde::{Deserialize, Serialize};

use super::{ModelSpec, SageMakerAccess, TransformSpec};
use crate::domain::{S3Access, S3Address};

/// A job started from here, stored so that watching continues after a restart and clean-up knows what was created. The
/// file contains no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    pub sagemaker: SageMakerAccess,
    pub s3: S3Access,
    /// When read from a file, its environment has only names.
    pub spec: TransformSpec,
    /// Milliseconds since 1970-01-01 UTC.
    pub begun_ms: i64,
    /// Whether SageMaker accepted the job. Until then, resources may exist for a job that does not.
    pub is_started: bool,
    /// The model, if it was created for this job. When read from a file, its environment has only names.
    pub model: Option<ModelSpec>,
    pub input_objects: Option<u64>,
    /// The folder of the manifest, if one was written for the job: outputs are named relative to it, and the manifest
    /// may be deleted.
    #[serde(default)]
    pub manifest_folder: Option<S3Address>,
    /// What was created for the job and not yet deleted.
    pub left: Vec<Leftover>,
    pub usd_per_hour: Option<f64>,
    /// The images per second on one instance, once the job has completed.
    #[serde(default)]
    pub images_per_s: Option<f64>,
    /// The job whose failed images this one took up again.
    pub retry_of: Option<String>,
}

/// Something that a job needs and that stays when it is over. Neither inputs nor outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leftover {
    /// The name of a SageMaker model. It costs nothing, but an account has a limit on models.
    Model(String),
    /// `model.tar.gz`
    Archive(S3Address),
    Manifest(S3Address),
}

/// “model resnet50-20261121”, “archive s3://…”
impl std::fmt::Display for Leftover {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Model(name) => write!(formatter, "model {name}"),
            Self::Archive(address) => write!(formatter, "archive {address}"),
            Self::Manifest(address) => write!(formatter, "manifest {address}"),
        }
    }
}
