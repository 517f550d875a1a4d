//! What the tests of the real program share.

#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

pub(crate) mod models;

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use spotcheck::dirs::{AppDirs, HOME_VARIABLE};
use spotcheck::inference::runtime;
use spotcheck::tasks::{ProgressUnit, TaskControl};

/// The repository's root.
pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A home for Spotcheck with ONNX Runtime in it, shared by all tests that only read it. The first test of all installs the
/// runtime, as a user's first prediction does.
pub(crate) fn runtime_home() -> PathBuf {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    let install = || {
        let home = repository().join("target/test-home");
        std::fs::create_dir_all(&home).unwrap();
        let lock = File::create(home.join("lock")).unwrap();
        lock.lock().unwrap();
        let dirs = AppDirs::below(&home);
        if runtime::locate(&dirs, None).is_err() {
            let control = TaskControl::new(ProgressUnit::Bytes);
            runtime::install(&dirs, runtime::RuntimePackage::Cpu, None, &control).unwrap();
        }
        home
    };
    HOME.get_or_init(install).clone()
}

/// The program with its arguments, in the repository's root, with the shared home.
pub(crate) fn spotcheck(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spotcheck"));
    command
        .args(args)
        .current_dir(repository())
        .env(HOME_VARIABLE, runtime_home());
    command
}
