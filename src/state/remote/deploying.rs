//! The form that makes a model answer at a real-time endpoint.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::model_draft::{ChosenModel, ModelDraft};
use super::sending::{SendStage, folder_of, text_of};
use crate::domain::{
    CheckGrade, EndpointConfig, Preflight, S3Access, S3Address, support_folder, usual_ami,
};
use crate::state::State;

/// How long an endpoint lives where nobody says otherwise, in hours: an afternoon's look, and not a month's bill.
const USUAL_HOURS: f64 = 2.0;

/// What stands in the form. What is the same for the next endpoint is kept in the settings; none of it is a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeployDraft {
    pub model: ModelDraft,
    #[serde(skip)]
    pub name: String,
    /// The folder in S3 that the archive goes below.
    pub base: String,
    /// The ARN that the container runs as.
    pub role: String,
    /// The container's URI in ECR; empty takes the one that Spotcheck suggests for the region.
    pub image: String,
    pub instance_type: String,
    pub instance_count: u32,
    /// The system of the instances; empty takes what suits the instance type.
    pub ami_version: String,
    /// After how many hours Spotcheck deletes it; `None` leaves that to people.
    pub delete_after_h: Option<f64>,
    /// US dollars an hour for one instance, where the user says so. Not kept: the next instance type has another price.
    #[serde(skip)]
    pub usd_per_hour: Option<f64>,
    pub advanced: DeployAdvanced,
}

/// What few endpoints need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeployAdvanced {
    /// Of the container.
    pub environment: BTreeMap<String, String>,
    /// Of the endpoint, its configuration, and a model that is made for it.
    pub tags: BTreeMap<String, String>,
    /// Of the disks of the instances; empty takes AWS's own.
    pub volume_kms_key: String,
    /// `60..=3600`; `None`: as long as SageMaker gives it by itself.
    pub startup_timeout_s: Option<u32>,
    /// `60..=3600`; `None`: as long as SageMaker gives it by itself.
    pub download_timeout_s: Option<u32>,
}

impl Default for DeployDraft {
    fn default() -> Self {
        Self {
            model: ModelDraft::default(),
            name: String::new(),
            base: String::new(),
            role: String::new(),
            image: String::new(),
            instance_type: "ml.m5.xlarge".to_owned(),
            instance_count: 1,
            ami_version: String::new(),
            delete_after_h: Some(USUAL_HOURS),
            usd_per_hour: None,
            advanced: DeployAdvanced::default(),
        }
    }
}

/// A form that is filled in far enough to be checked.
#[derive(Debug, Clone)]
pub struct DeployOrder {
    pub access: S3Access,
    pub model: ChosenModel,
    /// The folder that the archive of a model of this machine goes to, under a name of its own; `None` of any other.
    pub archive_folder: Option<S3Address>,
    /// Of the container.
    pub environment: BTreeMap<String, String>,
    pub role: String,
    /// `None`: the one that Spotcheck suggests for the region.
    pub image: Option<String>,
    /// The endpoint, its configuration and a model that is made for it have the same name.
    pub config: EndpointConfig,
    pub usd_per_hour: Option<f64>,
    /// `None`: Spotcheck never deletes it by itself.
    pub delete_after_ms: Option<i64>,
}

/// What became of the form.
#[derive(Debug, Default)]
pub struct DeployStatus {
    /// Counts up whenever the form begins anew.
    pub serial: u64,
    /// What was checked last, or is being checked.
    pub draft: DeployDraft,
    /// What is missing before anything can be checked.
    pub missing: Option<String>,
    pub check: SendStage<DeployCheck>,
    /// Packing, uploading and starting.
    pub start: SendStage<()>,
}

/// What the check says.
#[derive(Debug, Clone, PartialEq)]
pub struct DeployCheck {
    pub preflight: Preflight,
    /// The container's URI; `None` where SageMaker has the model.
    pub image: Option<String>,
    /// Of one instance, as given or as the table of prices says.
    pub usd_per_hour: Option<f64>,
}

impl DeployCheck {
    /// Whether nothing speaks against deploying.
    pub fn is_startable(&self) -> bool {
        self.preflight.grade() != CheckGrade::Problem
    }
}

impl DeployDraft {
    /// What is to be checked and deployed, or what is missing for that.
    pub fn order(&self, state: &State) -> Result<DeployOrder, String> {
        let model = self.model.chosen()?;
        let name = self.name.trim();
        if name.is_empty() {
            return Err("Give the endpoint a name".to_owned());
        }
        let archive_folder = if self.model.is_uploaded() {
            let base = folder_of(&self.base)
                .ok_or("Enter the S3 folder for the model's archive")?
                .map_err(|why| format!("The folder for the archive: {why}"))?;
            Some(support_folder(&base, name))
        } else {
            None
        };
        let model_name = match &model {
            ChosenModel::SageMaker(existing) => existing.clone(),
            _ => name.to_owned(),
        };
        let advanced = &self.advanced;
        let instance_type = self.instance_type.trim().to_owned();
        Ok(DeployOrder {
            access: state.s3.access.clone(),
            model,
            archive_folder,
            environment: advanced.environment.clone(),
            role: self.role.trim().to_owned(),
            image: text_of(&self.image),
            config: EndpointConfig {
                name: name.to_owned(),
                model_name,
                ami_version: text_of(&self.ami_version)
                    .or_else(|| usual_ami(&instance_type).map(str::to_owned)),
                instance_type: Some(instance_type),
                instance_count: self.instance_count,
                startup_timeout_s: advanced.startup_timeout_s,
                download_timeout_s: advanced.download_timeout_s,
                kms_key: text_of(&advanced.volume_kms_key),
                tags: advanced.tags.clone(),
            },
            usd_per_hour: self.usd_per_hour,
            delete_after_ms: self
                .delete_after_h
                .map(|hours| (hours * 3_600_000.0) as i64),
        })
    }

    /// What the form of the next endpoint begins with.
    pub(in crate::state) fn for_the_next(&self) -> Self {
        Self {
            model: self.model.for_the_next(),
            name: String::new(),
            usd_per_hour: None,
            // Whoever once wanted an endpoint for good has not said so of the next one.
            delete_after_h: self.delete_after_h.or(Some(USUAL_HOURS)),
            ..self.clone()
        }
    }
}
