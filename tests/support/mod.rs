//! What the tests of the real program share.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::path::PathBuf;
use std::process::Command;

/// The repository's root.
pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The program with its arguments, in the repository's root.
pub(crate) fn spotcheck(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spotcheck"));
    command.args(args).current_dir(repository());
    command
}
