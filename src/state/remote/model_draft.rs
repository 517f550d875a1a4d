//! The model of a form: one of the library, an archive, a `SavedModel`, or a model in SageMaker.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::form::text_of;
use crate::domain::{S3Address, S3Link};

/// The fields of a form. What is the same the next time is kept in the settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelDraft {
    #[serde(skip)]
    pub from: ModelFrom,
    /// The id of one of the library.
    #[serde(skip)]
    pub library: Option<String>,
    /// A packed model: a file of this machine, or an object in S3.
    pub archive: String,
    /// A folder of this machine.
    pub saved_model: String,
    /// The name of a model that SageMaker has.
    pub existing: String,
    /// The ARN of the role that the container runs as.
    pub role: String,
    /// The container's URI in ECR; `None` takes the one that Spotcheck suggests for the region.
    pub image: Option<String>,
    /// The container's environment; its values may be secrets.
    #[serde(skip)]
    pub environment: BTreeMap<String, String>,
}

/// A model that was chosen, and how it is made in SageMaker if it is not there yet.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub model: ChosenModel,
    pub role: String,
    /// `None`: the one that Spotcheck suggests for the region.
    pub image: Option<String>,
    pub environment: BTreeMap<String, String>,
}

/// The origin of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelFrom {
    #[default]
    Library,
    Archive,
    SavedModel,
    SageMaker,
}

/// A model that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenModel {
    /// A model of the library, by its id; it is packed.
    Library(String),
    /// A packed one of this machine.
    Archive(PathBuf),
    /// A packed one in S3.
    ArchiveInS3(S3Address),
    /// A folder of this machine; it is packed.
    SavedModel(PathBuf),
    /// A model in SageMaker, by its name.
    SageMaker(String),
}

impl ModelDraft {
    pub(in crate::state) fn of_library(id: Option<&str>, known: &Self) -> Self {
        Self { library: id.map(str::to_owned), ..known.clone() }
    }

    /// The request for this model, or what is missing for it.
    pub(super) fn request(&self) -> Result<ModelRequest, String> {
        Ok(ModelRequest {
            model: self.chosen()?,
            role: self.role.trim().to_owned(),
            image: self.image.clone(),
            environment: self.environment.clone(),
        })
    }

    /// The chosen model, or what is missing for it.
    fn chosen(&self) -> Result<ChosenModel, String> {
        match self.from {
            ModelFrom::Library => {
                let id = self.library.clone().ok_or("Choose a model")?;
                Ok(ChosenModel::Library(id))
            }
            ModelFrom::Archive => {
                let text = text_of(&self.archive).ok_or("Enter the archive")?;
                if !S3Link::is_address(&text) {
                    return Ok(ChosenModel::Archive(PathBuf::from(text)));
                }
                let link = S3Link::parse(&text).map_err(|why| format!("The archive: {why}"))?;
                Ok(ChosenModel::ArchiveInS3(link.address))
            }
            ModelFrom::SavedModel => {
                let folder = text_of(&self.saved_model);
                let folder = folder.ok_or("Enter the folder of the SavedModel")?;
                Ok(ChosenModel::SavedModel(PathBuf::from(folder)))
            }
            ModelFrom::SageMaker => {
                let name = text_of(&self.existing);
                Ok(ChosenModel::SageMaker(name.ok_or("Enter the name of the model in SageMaker")?))
            }
        }
    }

    /// Whether a model is made of it in SageMaker, with a role and a container.
    pub fn is_made(&self) -> bool {
        self.from != ModelFrom::SageMaker
    }

    /// Whether it is on this machine, and is uploaded first.
    pub fn is_uploaded(&self) -> bool {
        match self.from {
            ModelFrom::Library | ModelFrom::SavedModel => true,
            ModelFrom::Archive => !S3Link::is_address(self.archive.trim()),
            ModelFrom::SageMaker => false,
        }
    }

    /// The initial values of the next form.
    pub(super) fn for_the_next(&self) -> Self {
        Self { from: ModelFrom::default(), library: None, ..self.clone() }
    }
}

impl ChosenModel {
    /// “efficientnet-lite0”, “model.tar.gz”.
    pub fn name(&self) -> String {
        let file = |path: &std::path::Path| {
            let name = path.file_name();
            name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        };
        match self {
            Self::Library(id) => id.clone(),
            Self::Archive(path) | Self::SavedModel(path) => file(path),
            Self::ArchiveInS3(address) => address.last_part().to_owned(),
            Self::SageMaker(name) => name.clone(),
        }
    }
}
