//! Why a model could not be found, added or removed.

use std::io;
use std::path::{Path, PathBuf};

use super::card::{CardError, FieldError};
use crate::domain::{ModelTask, human_bytes};
use crate::model::download::DownloadError;

#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("model “{id}” does not exist; models: {}. For your own model, specify its .onnx file", known.join(", "))]
    Unknown { id: String, known: Vec<String> },
    #[error("could not read the model {}: {source}", path.display())]
    NoFile { path: PathBuf, source: io::Error },
    /// The file exists, but its input and outputs are unknown.
    #[error(
        "this model has no model card; create one with `spotcheck models add FILE.onnx`: {}",
        path.display()
    )]
    NoCard { path: PathBuf },
    #[error(
        "{name} is not downloaded; download it with `spotcheck models fetch {id}` ({})",
        human_bytes(*bytes)
    )]
    NotDownloaded { id: String, name: String, bytes: u64 },
    #[error(
        "the weights of {name} are missing and have no download address; import them with `spotcheck models fetch \
        {id} --from FILE`"
    )]
    NoWeights { id: String, name: String },
    #[error("no model for {} is downloaded; download one with `spotcheck models fetch {id}` \
        ({})", task.into_str(), human_bytes(*bytes))]
    NoDefault { task: ModelTask, id: String, bytes: u64 },
    /// Only the graph would be copied, which could not be loaded.
    #[error(
        "the weights of {} are in a second file, {file}: export the model as one file, or predict with the file at \
         its current location",
        path.display()
    )]
    SecondFile { path: PathBuf, file: String },
    /// The weights are not those that the card was written for.
    #[error("{0}")]
    WrongSize(String),
    #[error("the model card cannot be used: {0}")]
    Card(#[from] CardError),
    #[error("the model card cannot be used: {0}")]
    Field(#[from] FieldError),
    #[error("the mapping cannot be used: {0}")]
    Mapping(CardError),
    #[error("the mapping cannot be used: {0}")]
    MappingField(FieldError),
    /// A mapping that the user did not create is never deleted.
    #[error("this is not one of your own mappings: {}", path.display())]
    NotOwn { path: PathBuf },
    #[error("the class names of the model cannot be used: {reason}: {}", path.display())]
    Labels { path: PathBuf, reason: String },
    #[error("model “{0}” already exists; choose another id, or remove it first")]
    IdTaken(String),
    #[error("{id} is built in; only downloads and your own models can be removed")]
    ComesWithSpotcheck { id: String },
    #[error("{id} is not downloaded; nothing to remove")]
    NothingToRemove { id: String },
    #[error("another Spotcheck is downloading {id}; wait until it is done, or cancel it there")]
    Busy { id: String },
    #[error("could not {what}: {source}: {}", path.display())]
    Io {
        /// What was attempted: “copy the weights”.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl LibraryError {
    /// Returns an error of a failed file operation, for `map_err`, with what was attempted.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// Why the weights of a model could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Download(#[from] DownloadError),
}
