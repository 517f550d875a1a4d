//! Finds the ONNX Runtime library and loads it, once per process.

use std::path::{Path, PathBuf};

use crate::dirs::AppDirs;
use crate::tasks::TaskControl;

/// The library in memory.
#[derive(Clone)]
pub struct Loaded {
    pub environment: ort::environment::Environment,
    pub version: String,
    pub path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("no ONNX Runtime library was found; set ORT_DYLIB_PATH to one")]
    NotFound,
    #[error("could not load {}: {reason}", path.display())]
    Load { path: PathBuf, reason: String },
}

/// Loads the library of the user's setting or of `ORT_DYLIB_PATH`.
pub fn ensure_loaded(
    _dirs: &AppDirs,
    setting: Option<&Path>,
    _control: &TaskControl,
) -> Result<Loaded, RuntimeError> {
    let from_variable = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from);
    let path = setting
        .map(Path::to_owned)
        .or(from_variable)
        .ok_or(RuntimeError::NotFound)?;
    let load = || -> Result<_, Box<dyn std::error::Error>> { Ok(ort::init_from(&path)?.build()?) };
    let environment = load().map_err(|error| RuntimeError::Load {
        path: path.clone(),
        reason: error.to_string(),
    })?;
    Ok(Loaded {
        environment,
        version: "unknown".to_owned(),
        path,
    })
}
