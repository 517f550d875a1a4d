//! The user's Python: its path, its environment, and whether it has the handler's packages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::RehearseError;

const LOOK_FILE: &str = "look_at_python.py";
const LOOK: &str = include_str!("../../../assets/rehearse/look_at_python.py");

/// The Python behind a name, which can be a pyenv shim, a link or a script.
pub(super) struct Python {
    pub program: PathBuf,
    /// The variables for its libraries and packages, which it needs in an otherwise empty environment. No secrets.
    pub environment: Vec<(OsString, OsString)>,
    /// Notes about packages with other versions than the archive requires.
    pub notes: Vec<String>,
}

/// # Errors
/// The Python does not exist, or lacks packages in `requirements`, a file that need not exist.
pub(super) fn check_python(python: &str, requirements: &Path, scripts: &Path) -> Result<Python, RehearseError> {
    let script = scripts.join(LOOK_FILE);
    std::fs::write(&script, LOOK).map_err(RehearseError::Temporary)?;
    let mut command = Command::new(python);
    command.arg(&script).stdin(Stdio::null());
    if requirements.is_file() {
        command.arg(requirements);
    }
    let no_python = |reason: String| RehearseError::NoPython { python: python.to_owned(), reason };
    let output = command.output().map_err(|error| no_python(error.to_string()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or("no output");
        return Err(no_python(format!("{} ({last})", output.status)));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let missing: Vec<String> = values(&said, "missing").map(str::to_owned).collect();
    if !missing.is_empty() {
        return Err(RehearseError::MissingPackages { python: python.to_owned(), missing });
    }
    let others = values(&said, "other").filter_map(|value| {
        let (wanted, found) = value.split_once('\t')?;
        Some(format!(
            "the archive requires {wanted}, but this Python has {found}; predictions may differ from the container's"
        ))
    });
    let variables = values(&said, "variable").filter_map(|value| value.split_once('='));
    Ok(Python {
        program: values(&said, "program").next().unwrap_or(python).into(),
        environment: variables.map(|(name, value)| (name.into(), value.into())).collect(),
        notes: others.collect(),
    })
}

/// The values of the lines that begin with `key`.
fn values<'s>(said: &'s str, key: &'s str) -> impl Iterator<Item = &'s str> {
    said.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '))
}
