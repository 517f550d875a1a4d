//! Why a rehearsal could not be held.

use std::io;

use crate::remote::package::PackageError;
use crate::tasks::Cancelled;

#[derive(Debug, thiserror::Error)]
pub enum RehearseError {
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(
        "could not start Python: {reason}; install Python 3.10 or newer, or name another one: {python}"
    )]
    NoPython { python: String, reason: String },
    #[error(
        "this Python lacks what the archive's code/requirements.txt lists; `{python} -m pip install {}` installs it, or name a Python that has it",
        quoted(missing)
    )]
    MissingPackages {
        python: String,
        /// As they stand in the file: `pillow>=10.1`.
        missing: Vec<String>,
    },
    #[error(
        "the archive's handler ended before it listened ({status}):{}",
        lines(log)
    )]
    HandlerEnded { status: String, log: Vec<String> },
    #[error(
        "the archive's handler did not listen within {seconds} seconds; it was ended:{}",
        lines(log)
    )]
    HandlerSilent { seconds: u64, log: Vec<String> },
    #[error(
        "the archive's handler listens, but answers its ping (GET /ping) {said}, and SageMaker sends nothing before that is answered with \
         status 200; it was ended after {seconds} seconds:{}",
        lines(log)
    )]
    NoPong {
        /// “with status 503”, “not at all (…)”
        said: String,
        seconds: u64,
        log: Vec<String>,
    },
    #[error("the payload times the requests at once {0}")]
    TooMuchInFlight(String),
    #[error(
        "a SavedModel needs TensorFlow Serving, which Spotcheck does not bring; start one with this model and give its address, such as http://127.0.0.1:8501/v1/models/model:predict"
    )]
    NeedsTensorFlowServing,
    #[error(
        "this archive holds an ONNX model, which runs without TensorFlow Serving; leave its address away"
    )]
    NeedsNoTensorFlowServing,
    #[error("could not use the folder for temporary files: {0}")]
    Temporary(#[source] io::Error),
    #[error("the device was lost: {0}; try again, or choose another device")]
    DeviceLost(String),
    #[error("the images cannot be read any more: {0}")]
    SourceUnreachable(String),
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

/// For a shell: `>` would be taken for a redirection.
fn quoted(requirements: &[String]) -> String {
    let quoted = requirements.iter().map(|one| format!("\"{one}\""));
    quoted.collect::<Vec<String>>().join(" ")
}

/// Each below the message.
fn lines(log: &[String]) -> String {
    if log.is_empty() {
        return " it said nothing".to_owned();
    }
    log.iter().fold(String::new(), |mut text, line| {
        text.push_str("\n  ");
        text.push_str(line);
        text
    })
}
