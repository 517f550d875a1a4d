//! The form for deploying a model to a real-time endpoint.

use serde::{Deserialize, Serialize};

use crate::domain::{S3Access, S3Address};
use crate::sagemaker::spec::endpoint::{EndpointConfig, EndpointPlan, default_ami};
use crate::sagemaker::spec::transform::archive_address;
use crate::window::remote::state::{ChosenModel, Draft, Form, ModelDraft, ModelRequest, folder_of, text_of};
use crate::window::state::State;

/// Default hours until an endpoint is deleted: enough for an afternoon without a month's bill.
const USUAL_HOURS: f64 = 2.0;

pub type EndpointForm = Form<EndpointDraft, EndpointPlan>;

/// The fields of the form. The settings store those that the next endpoint may reuse. Contains no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointDraft {
    pub model: ModelDraft,
    /// The S3 folder to upload the archive to.
    pub base: String,
    /// Hours until Spotcheck deletes the endpoint; `None` for never.
    pub delete_after_h: Option<f64>,
    /// US dollars per hour for one instance, as typed. Not stored, because another instance type has another price.
    #[serde(skip)]
    pub usd_per_hour: Option<f64>,
    /// Instances and tags. [`EndpointDraft::request`] sets the model name, and the AMI if none is chosen.
    pub config: EndpointConfig,
}

impl Default for EndpointDraft {
    fn default() -> Self {
        Self {
            model: ModelDraft::default(),
            base: String::new(),
            delete_after_h: Some(USUAL_HOURS),
            usd_per_hour: None,
            config: EndpointConfig::default(),
        }
    }
}

/// A form that is complete enough for a check.
#[derive(Debug, Clone)]
pub struct EndpointRequest {
    pub access: S3Access,
    pub model: ModelRequest,
    /// The S3 folder for the archive of a local model; `None` for any other model.
    pub archive: Option<S3Address>,
    pub config: EndpointConfig,
    pub usd_per_hour: Option<f64>,
    /// `None` if Spotcheck never deletes it automatically.
    pub delete_after_ms: Option<i64>,
}

impl Draft for EndpointDraft {
    type Plan = EndpointPlan;

    fn form(state: &mut State) -> &mut EndpointForm {
        &mut state.remote.endpoint_form
    }

    fn model(&mut self) -> &mut ModelDraft {
        &mut self.model
    }

    fn base(&mut self) -> &mut String {
        &mut self.base
    }
}

impl EndpointDraft {
    /// The request to check and deploy, or what is missing for it.
    pub fn request(&self, state: &State) -> Result<EndpointRequest, String> {
        let model = self.model.request()?;
        let mut config = self.config.clone();
        config.name = text_of(&config.name).ok_or("Give the endpoint a name")?;
        let archive = if self.model.is_uploaded() {
            let base = folder_of(&self.base)
                .ok_or("Enter the S3 folder for the model's archive")?
                .map_err(|why| format!("The folder for the archive: {why}"))?;
            Some(archive_address(&base, &config.name))
        } else {
            None
        };
        config.model_name = match &model.model {
            ChosenModel::SageMaker(existing) => existing.clone(),
            _ => config.name.clone(),
        };
        let instance_type = config.instance_type.unwrap_or_default().trim().to_owned();
        let usual = || default_ami(&instance_type).map(str::to_owned);
        config.ami_version = config.ami_version.or_else(usual);
        config.instance_type = Some(instance_type);
        let is_serverless = config.serverless.is_some();
        if is_serverless {
            config =
                EndpointConfig { instance_type: None, instance_count: 1, ami_version: None, kms_key: None, ..config };
        }
        Ok(EndpointRequest {
            access: state.s3.access.clone(),
            model,
            archive,
            config,
            usd_per_hour: self.usd_per_hour.filter(|_| !is_serverless),
            delete_after_ms: self.delete_after_h.map(|hours| (hours * 3_600_000.0) as i64),
        })
    }

    /// The initial draft for the next form.
    pub(crate) fn for_the_next(&self) -> Self {
        Self {
            model: self.model.for_the_next(),
            base: self.base.clone(),
            // Keeping one endpoint indefinitely is no reason to keep the next one.
            delete_after_h: self.delete_after_h.or(Some(USUAL_HOURS)),
            usd_per_hour: None,
            config: EndpointConfig { name: String::new(), model_name: String::new(), ..self.config.clone() },
        }
    }
}
