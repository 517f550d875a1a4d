//! The model in a form: one from the library, an archive, a `SavedModel`, or a model in SageMaker.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::form::text_of;
use crate::domain::{S3Address, S3Link};

/// The model fields of a form. The settings store those that the next form may reuse.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelDraft {
    #[serde(skip)]
    pub from: ModelFrom,
    /// The id of a model in the library.
    #[serde(skip)]
    pub library: Option<String>,
    /// A packed model: a local file or an object in S3.
    pub archive: String,
    /// A local folder.
    pub saved_model: String,
    /// The name of an existing model in SageMaker.
    pub existing: String,
    /// The ARN of the role that the container runs as.
    pub role: String,
    /// The container's URI in ECR; `None` for the one that Spotcheck suggests for the region.
    pub image: Option<String>,
    /// The container's environment; its values may be secrets.
    #[serde(skip)]
    pub environment: BTreeMap<String, String>,
}

/// The chosen model, and how to create it in SageMaker if it does not exist there yet.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub model: ChosenModel,
    pub role: String,
    /// `None` for the one that Spotcheck suggests for the region.
    pub image: Option<String>,
    pub environment: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelFrom {
    #[default]
    Library,
    Archive,
    SavedModel,
    SageMaker,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenModel {
    /// A model from the library, by its id; it is packed.
    Library(String),
    /// A local packed model.
    Archive(PathBuf),
    /// A packed model in S3.
    ArchiveInS3(S3Address),
    /// A local folder; it is packed.
    SavedModel(PathBuf),
    /// A model in SageMaker, by its name.
    SageMaker(String),
}

impl ModelDraft {
    pub(crate) fn of_library(id: Option<&str>, known: &Self) -> Self {
        Self { library: id.map(str::to_owned), ..known.clone() }
    }

    /// The request for this model, or what is missing for it.
    pub(crate) fn request(&self) -> Result<ModelRequest, String> {
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

    /// Whether a model is created from it in SageMaker, with a role and a container.
    pub fn is_made(&self) -> bool {
        self.from != ModelFrom::SageMaker
    }

    /// Whether it is local, and is uploaded first.
    pub fn is_uploaded(&self) -> bool {
        match self.from {
            ModelFrom::Library | ModelFrom::SavedModel => true,
            ModelFrom::Archive => !S3Link::is_address(self.archive.trim()),
            ModelFrom::SageMaker => false,
        }
    }

    /// The initial values of the next form.
    pub(crate) fn for_the_next(&self) -> Self {
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
