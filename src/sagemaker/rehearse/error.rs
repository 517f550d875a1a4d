//! Errors of a rehearsal.

use std::io;

use crate::sagemaker::package::PackageError;
use crate::tasks::Cancelled;

#[derive(Debug, thiserror::Error)]
pub enum RehearseError {
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error("could not start Python: {reason}; install Python 3.10 or newer, or choose another one: {python}")]
    NoPython { python: String, reason: String },
    #[error(
        "this Python does not have all packages of the archive's code/requirements.txt; run `{python} -m pip install \
        {}`, or choose another Python",
        quoted(missing)
    )]
    MissingPackages {
        python: String,
        /// The missing requirements, as in the file: `pillow>=10.1`.
        missing: Vec<String>,
    },
    #[error("the archive's handler exited before it listened ({status}):{}", lines(log))]
    HandlerEnded { status: String, log: Vec<String> },
    #[error("the archive's handler did not listen within {seconds} seconds and was stopped:{}", lines(log))]
    HandlerSilent { seconds: u64, log: Vec<String> },
    #[error(
        "the archive's handler responds to GET /ping {said}, but SageMaker requires status 200; it was stopped after \
        {seconds} seconds:{}",
        lines(log)
    )]
    NoPong {
        /// “with status 503”, “not at all (…)”
        said: String,
        seconds: u64,
        log: Vec<String>,
    },
    #[error("the payload times the parallel requests {0}")]
    TooMuchInFlight(String),
    #[error(
        "a SavedModel requires TensorFlow Serving; start it with this model and specify its address, for example \
         http://127.0.0.1:8501/v1/models/model:predict"
    )]
    NeedsTensorFlowServing,
    #[error("this archive contains an ONNX model, which does not need TensorFlow Serving; omit its address")]
    NeedsNoTensorFlowServing,
    #[error("could not use the folder for temporary files: {0}")]
    Temporary(#[source] io::Error),
    #[error("the device was lost: {0}; try again, or choose another device")]
    DeviceLost(String),
    #[error("the images can no longer be read: {0}")]
    SourceUnreachable(String),
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

/// Quoted for a shell, where `>` is a redirection.
fn quoted(requirements: &[String]) -> String {
    let quoted = requirements.iter().map(|one| format!("\"{one}\""));
    quoted.collect::<Vec<String>>().join(" ")
}

/// Each on its own line, below the message.
fn lines(log: &[String]) -> String {
    if log.is_empty() {
        return " no output".to_owned();
    }
    log.iter().fold(String::new(), |mut text, line| {
        text.push_str("\n  ");
        text.push_str(line);
        text
    })
}
