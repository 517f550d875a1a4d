//! Shared by the tests of the real program.

#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

pub(crate) mod alone;
pub(crate) mod control_plane;
pub(crate) mod ended;
pub(crate) mod fault_proxy;
pub(crate) mod handler;
pub(crate) mod http;
pub(crate) mod http_server;
pub(crate) mod jpeg;
pub(crate) mod models;
pub(crate) mod seaweed;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

use serde_json::Value;
use spotcheck::model::runtime::RuntimePackage;

/// The repository's root.
pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The program with its arguments, in the repository's root, with the ONNX Runtime of [`runtime_home`].
pub(crate) fn spotcheck(args: &[&str]) -> Command {
    spotcheck_at(runtime_home(), args)
}

/// The program with its arguments, in the repository's root, with its files below `home`.
pub(crate) fn spotcheck_at(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spotcheck"));
    command.args(args).current_dir(repository()).env("SPOTCHECK_HOME", home).env_remove("ORT_DYLIB_PATH");
    command
}

/// A home folder with ONNX Runtime and the WebGPU plug-in, installed by the program itself, once for all tests.
pub(crate) fn runtime_home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = target_folder("test-home");
        let _lock = lock(&home);
        for package in [RuntimePackage::Cpu, RuntimePackage::WebGpu] {
            let manifest = home.join("data/runtime").join(package.into_str()).join("manifest.json");
            let manifest = std::fs::read_to_string(manifest).unwrap_or_default();
            if !manifest.contains(package.version()) {
                must_succeed(&mut spotcheck_at(&home, &["runtime", "install", package.into_str()]));
            }
        }
        home
    })
}

/// The environment of a Vulkan driver that computes on the CPU, as written by `tests/setup/software-gpu.sh`.
pub(crate) fn software_gpu() -> &'static [(String, String)] {
    static ENVIRONMENT: OnceLock<Vec<(String, String)>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let folder = target_folder("test-tools/software-gpu");
        let _lock = lock(&folder);
        let script = repository().join("tests/setup/software-gpu.sh");
        must_succeed(Command::new(script).arg(&folder));
        let text = std::fs::read_to_string(folder.join("environment")).expect("the script writes it");
        let variables = text.lines().filter_map(|line| line.split_once('='));
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    })
}

/// A folder with the packages of `tests/setup/<name>.txt`, for Python as `PYTHONPATH`: installed once for all tests by
/// `tests/setup/python-packages.sh`.
pub(crate) fn python_packages(name: &'static str) -> PathBuf {
    static READY: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let folder = target_folder(&format!("test-tools/{name}"));
    let mut ready = READY.lock().unwrap();
    if !ready.contains(name) {
        let _lock = lock(&folder);
        let script = repository().join("tests/setup/python-packages.sh");
        must_succeed(Command::new(script).arg(name).arg(&folder));
        ready.insert(name);
    }
    folder.join("packages")
}

/// A folder below Cargo's target folder; kept between runs.
pub(crate) fn target_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(name);
    std::fs::create_dir_all(&folder).expect("the target folder is ours to write to");
    folder
}

/// Locks `folder` against other test programs until dropped.
pub(crate) fn lock(folder: &Path) -> File {
    let file = File::create(folder.join(".test-lock")).expect("the target folder is ours to write to");
    file.lock().expect("a fresh file can be locked");
    file
}

/// The messages of a program that has ended.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON Lines that a program has written to stdout.
pub(crate) fn lines(output: &Output) -> Vec<Value> {
    json_lines(&output.stdout)
}

pub(crate) fn json_lines(text: impl AsRef<[u8]>) -> Vec<Value> {
    let text = std::str::from_utf8(text.as_ref()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn must_succeed(command: &mut Command) -> Output {
    let output = command.output().expect("the program exists");
    assert!(
        output.status.success(),
        "{command:?} failed, and the tests need what it sets up; run ./test, which names what is missing:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
