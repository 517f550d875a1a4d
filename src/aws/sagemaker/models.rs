//! Models: an image and an archive under one name.

use serde_json::Value;

use super::{ResourceKind, SageMaker};
use crate::aws::AwsError;
use crate::sagemaker::spec::transform::ModelSpec;
use crate::tasks::TaskControl;

const MODEL: ResourceKind = ResourceKind::MODEL;

impl SageMaker {
    /// Creates a model from a container image and an archive.
    pub fn create_model(&self, spec: &ModelSpec, control: &TaskControl) -> Result<(), AwsError> {
        self.create(("create", MODEL, &spec.name), &spec.request(), control)
    }

    /// `None` if it does not exist. The result has no tags.
    ///
    /// # Errors
    /// Also [`AwsErrorKind::Unsupported`](crate::aws::AwsErrorKind::Unsupported), for a model other than one image and
    /// one archive.
    pub fn describe_model(&self, name: &str, control: &TaskControl) -> Result<Option<ModelSpec>, AwsError> {
        let Some(mut model): Option<Value> = self.describe(MODEL, name, control)? else {
            return Ok(None);
        };
        let several = model["Containers"].as_array().into_iter().flatten();
        let mut containers = model.get("PrimaryContainer").into_iter().chain(several).cloned();
        let (Some(mut container), None) = (containers.next(), containers.next()) else {
            return Err(MODEL.unsupported(name, "it consists of several containers"));
        };
        drop(containers);
        let archive = container.get("ModelDataUrl");
        let archive = archive.or_else(|| container.pointer("/ModelDataSource/S3DataSource/S3Uri")).cloned();
        let (Some(archive), true) = (archive, container["Image"].is_string()) else {
            return Err(MODEL.unsupported(name, "it is based on a model package or has no archive"));
        };
        container["ModelDataUrl"] = archive;
        model["PrimaryContainer"] = container;
        ModelSpec::described(&model)
            .map(Some)
            .map_err(|error| MODEL.unsupported(name, &format!("its archive has an unknown location ({error})")))
    }
}
