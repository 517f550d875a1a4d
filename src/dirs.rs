//! The folders that Spotcheck itself writes to. The only module that knows them.

mod scratch;

use std::path::PathBuf;

use directories::ProjectDirs;

pub use scratch::Scratch;

/// Keeps everything that Spotcheck writes below one folder (a USB stick, a test) instead of the user's own folders.
pub const HOME_VARIABLE: &str = "SPOTCHECK_HOME";

/// The folders for downloads, settings, caches and logs. They need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppDirs {
    /// Models and the ONNX Runtime library.
    pub data: PathBuf,
    /// The project file of each source that was opened.
    pub projects: PathBuf,
    /// Settings.
    pub config: PathBuf,
    /// What can be made again: thumbnails, logs.
    pub cache: PathBuf,
}

impl AppDirs {
    /// The folders below `SPOTCHECK_HOME` if that is set, otherwise the operating system's.
    ///
    /// # Errors
    /// The user has no home folder and `SPOTCHECK_HOME` is not set.
    pub fn find() -> Result<Self, NoHome> {
        match std::env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty()) {
            Some(home) => Ok(Self::below(&PathBuf::from(home))),
            None => ProjectDirs::from("", "", "spotcheck").map(|project| Self::of_project(&project)).ok_or(NoHome),
        }
    }

    /// Folders that are all below one folder.
    pub fn below(home: &std::path::Path) -> Self {
        Self {
            data: home.join("data"),
            projects: home.join("data/projects"),
            config: home.join("config"),
            cache: home.join("cache"),
        }
    }

    /// Notes of uploads that are not finished.
    pub fn uploads(&self) -> PathBuf {
        self.data.join("uploads")
    }

    /// Records of the Batch Transform jobs that were started here.
    pub fn jobs(&self) -> PathBuf {
        self.data.join("jobs")
    }

    /// Records of the endpoints that were deployed from here.
    pub fn endpoints(&self) -> PathBuf {
        self.data.join("endpoints")
    }

    /// The user's table of what an hour of an instance costs.
    pub fn prices(&self) -> PathBuf {
        self.config.join("prices.toml")
    }

    /// What the window writes down while it runs.
    pub fn log_file(&self) -> PathBuf {
        self.cache.join("spotcheck.log")
    }

    fn of_project(project: &ProjectDirs) -> Self {
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
