//! Models: an image and an archive under one name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SageMaker, address, if_there, named, sagemaker, unsupported};
use crate::aws::AwsError;
use crate::sagemaker::spec::tags;
use crate::sagemaker::spec::transform::{DataSource, ModelSpec, Network};
use crate::tasks::TaskControl;

/// `CreateModel`, also for use by other programs.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateModel<'a> {
    model_name: &'a str,
    primary_container: NewContainer<'a>,
    execution_role_arn: &'a str,
    #[serde(with = "tags")]
    tags: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    network: &'a Network,
}

impl<'a> CreateModel<'a> {
    pub fn from_spec(spec: &'a ModelSpec) -> Self {
        Self {
            model_name: &spec.name,
            primary_container: NewContainer {
                image: &spec.image,
                model_data_url: spec.archive.to_string(),
                environment: &spec.environment,
            },
            execution_role_arn: &spec.role,
            tags: &spec.tags,
            network: &spec.network,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NewContainer<'a> {
    image: &'a str,
    model_data_url: String,
    environment: &'a BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedModel {
    model_name: String,
    primary_container: Option<Container>,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    execution_role_arn: String,
    #[serde(flatten)]
    network: Network,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Container {
    image: Option<String>,
    model_data_url: Option<String>,
    model_data_source: Option<DataSource<Option<ModelObject>>>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ModelObject {
    s3_uri: String,
}

impl SageMaker {
    /// Creates a model from a container image and an archive; returns its ARN.
    pub fn create_model(&self, spec: &ModelSpec, control: &TaskControl) -> Result<String, AwsError> {
        let call = sagemaker("CreateModel", format!("create model {}", spec.name));
        self.create(&call, &CreateModel::from_spec(spec), control)
    }

    /// `None` if it does not exist. The result has no tags.
    ///
    /// # Errors
    /// Also [`AwsErrorKind::Unsupported`](crate::aws::AwsErrorKind::Unsupported), for a model other than one image and
    /// one archive.
    pub fn describe_model(&self, name: &str, control: &TaskControl) -> Result<Option<ModelSpec>, AwsError> {
        let call = sagemaker("DescribeModel", format!("describe model {name}"));
        let request = named("ModelName", name);
        let Some(model) = if_there(self.ask::<DescribedModel>(&call, &request, control))? else {
            return Ok(None);
        };
        let mut containers = model.primary_container.into_iter().chain(model.containers);
        let (Some(container), None) = (containers.next(), containers.next()) else {
            return Err(unsupported(&call, "it consists of several containers"));
        };
        let source = container.model_data_source.and_then(|source| source.objects);
        let archive = container.model_data_url.or_else(|| source.map(|object| object.s3_uri));
        let (Some(image), Some(archive)) = (container.image, archive) else {
            return Err(unsupported(&call, "it is based on a model package or has no archive"));
        };
        Ok(Some(ModelSpec {
            name: model.model_name,
            image,
            archive: address(&archive, &call)?,
            role: model.execution_role_arn,
            environment: container.environment,
            tags: BTreeMap::new(),
            network: model.network,
        }))
    }

    /// Deletes the model. The archive stays.
    pub fn delete_model(&self, name: &str, control: &TaskControl) -> Result<(), AwsError> {
        let call = sagemaker("DeleteModel", format!("delete model {name}"));
        self.send_only(&call, &named("ModelName", name), control)
    }
}
