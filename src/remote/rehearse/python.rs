//! Whether a Python of the user's has what a handler needs.

use std::path::Path;
use std::process::{Command, Stdio};

use super::RehearseError;

const CHECK_FILE: &str = "check_requirements.py";
const CHECK: &str = include_str!("../../../assets/rehearse/check_requirements.py");

/// What is there in another version than the archive asks for, for people. Nothing where there is no `requirements`.
///
/// # Errors
/// There is no such Python, or it lacks packages.
pub(super) fn check(
    python: &str,
    requirements: &Path,
    scripts: &Path,
) -> Result<Vec<String>, RehearseError> {
    if !requirements.is_file() {
        return Ok(Vec::new());
    }
    let script = scripts.join(CHECK_FILE);
    std::fs::write(&script, CHECK).map_err(RehearseError::Temporary)?;
    let output = Command::new(python)
        .arg(&script)
        .arg(requirements)
        .stdin(Stdio::null())
        .output();
    let no_python = |reason: String| RehearseError::NoPython {
        python: python.to_owned(),
        reason,
    };
    let output = output.map_err(|error| no_python(error.to_string()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or("it said nothing");
        return Err(no_python(format!("{} ({last})", output.status)));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let missing: Vec<String> = said
        .lines()
        .filter_map(|line| line.strip_prefix("missing "))
        .map(str::to_owned)
        .collect();
    if !missing.is_empty() {
        return Err(RehearseError::MissingPackages {
            python: python.to_owned(),
            missing,
        });
    }
    let others = said.lines().filter_map(|line| {
        let (wanted, found) = line.strip_prefix("other ")?.split_once('\t')?;
        Some(format!(
            "the archive asks for {wanted}, this Python has {found}; answers may differ from the container's"
        ))
    });
    Ok(others.collect())
}
