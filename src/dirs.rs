//! The folders that Spotcheck writes to. No other module knows them.

mod scratch;

use std::path::PathBuf;

use directories::ProjectDirs;

pub use scratch::Scratch;

/// If set, everything that Spotcheck writes is below this folder (a USB stick, a test) instead of the user's own
/// folders.
pub const HOME_VARIABLE: &str = "SPOTCHECK_HOME";

/// The folders for downloads, settings, caches and logs. They need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppDirs {
    /// Models and the ONNX Runtime library.
    pub data: PathBuf,
    /// The project file of each opened source.
    pub projects: PathBuf,
    pub config: PathBuf,
    /// What can be recreated: thumbnails, logs.
    pub cache: PathBuf,
}

impl AppDirs {
    /// The folders below `SPOTCHECK_HOME` if it is set, otherwise those of the operating system.
    ///
    /// # Errors
    /// The user has no home folder and `SPOTCHECK_HOME` is not set.
    pub fn find() -> Result<Self, NoHome> {
        match std::env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty()) {
            Some(home) => Ok(Self::below(&PathBuf::from(home))),
            None => ProjectDirs::from("", "", "spotcheck").map(|project| Self::from_project(&project)).ok_or(NoHome),
        }
    }

    /// All folders below one folder.
    pub fn below(home: &std::path::Path) -> Self {
        Self {
            data: home.join("data"),
            projects: home.join("data/projects"),
            config: home.join("config"),
            cache: home.join("cache"),
        }
    }

    /// Records of unfinished uploads.
    pub fn uploads(&self) -> PathBuf {
        self.data.join("uploads")
    }

    /// Records of Batch Transform jobs started from here.
    pub fn jobs(&self) -> PathBuf {
        self.data.join("jobs")
    }

    /// Records of endpoints deployed from here.
    pub fn endpoints(&self) -> PathBuf {
        self.data.join("endpoints")
    }

    /// The user's table of instance prices.
    pub fn prices(&self) -> PathBuf {
        self.config.join("prices.toml")
    }

    pub fn log_file(&self) -> PathBuf {
        self.cache.join("spotcheck.log")
    }

    fn from_project(project: &ProjectDirs) -> Self {
        Self {
            data: project.data_local_dir().to_owned(),
            projects: project.data_local_dir().join("projects"),
            config: project.config_dir().to_owned(),
            cache: project.cache_dir().to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no home folder; set {HOME_VARIABLE} to a folder for Spotcheck's files")]
pub struct NoHome;
