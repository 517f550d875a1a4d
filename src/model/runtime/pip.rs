//! Runs the user's own pip, so that their mirrors, proxies and certificates apply.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::error::RuntimeError;
use super::packages::{Pin, RuntimePackage};
use crate::tasks::TaskControl;

/// How often pip's end is polled and its progress measured.
const POLL: Duration = Duration::from_millis(100);

/// Ways to start Python, in this order.
const PYTHONS: &[&[&str]] =
    if cfg!(windows) { &[&["py", "-3"], &["python"], &["python3"]] } else { &[&["python3"], &["python"]] };

/// Downloads the pinned wheel of `package` into `folder`, which is empty, and returns its path. pip itself checks the
/// hash. Counts bytes in `control`; kills pip on cancellation.
pub(super) fn download(
    package: RuntimePackage,
    pin: &Pin,
    folder: &Path,
    control: &TaskControl,
) -> Result<PathBuf, RuntimeError> {
    let requirements = folder.join("requirements.txt");
    let pinned = format!("{}=={} --hash=sha256:{}\n", package.project(), package.version(), pin.wheel_sha256);
    std::fs::write(&requirements, pinned).map_err(RuntimeError::io("write", &requirements))?;
    control.set_total(Some(pin.wheel_bytes));
    let mut no_pip = RuntimeError::NoPython { package };
    for python in PYTHONS {
        let mut command = pip_command(python, pin, folder);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                log::debug!("{}: {error}", python.join(" "));
                continue;
            }
        };
        let (status, said) = watch(child, folder, control)?;
        if status.success() {
            return find_wheel(folder).ok_or_else(|| RuntimeError::PipFailed {
                command: shown(python, package, pin),
                reason: "it downloaded nothing".to_owned(),
            });
        }
        // Ctrl+C reaches pip as well as Spotcheck.
        control.checkpoint()?;
        if !said.contains("No module named pip") && !said.is_empty() {
            return Err(explain(package, pin, python, folder, &said));
        }
        no_pip = RuntimeError::NoPip { package, python: python.join(" "), reason: last_line(&said) };
    }
    Err(no_pip)
}

/// `python3 -m pip download …`
fn pip_command(python: &[&str], pin: &Pin, folder: &Path) -> Command {
    let mut command = Command::new(python[0]);
    command
        .args(&python[1..])
        .args(["-m", "pip", "download", "--no-input", "--no-deps"])
        .args(["--only-binary=:all:", "--require-hashes", "--retries=2"])
        .args(["--disable-pip-version-check", "--progress-bar=off"])
        .args(["--platform", pin.platform, "--python-version", "3.11"])
        .args(["--implementation", "cp", "--abi", "cp311", "--abi", "none"])
        .arg("--dest")
        .arg(folder)
        .arg("--requirement")
        .arg(folder.join("requirements.txt"))
        // Where pip stores the growing download: on its final disk, and where its progress can be seen.
        .envs(["TMPDIR", "TEMP", "TMP"].map(|name| (name, folder)))
        .env("PIP_REQUIRE_VIRTUALENV", "0")
        .env("PYTHONIOENCODING", "utf-8")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// The command as a person would type it.
fn shown(python: &[&str], package: RuntimePackage, pin: &Pin) -> String {
    format!(
        "{} -m pip download --no-deps --only-binary=:all: --platform {} --python-version 3.11 --implementation cp \
        --abi cp311 --abi none {}=={}",
        python.join(" "),
        pin.platform,
        package.project(),
        package.version()
    )
}

/// Waits for pip and returns its stderr.
fn watch(mut child: Child, folder: &Path, control: &TaskControl) -> Result<(ExitStatus, String), RuntimeError> {
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut stderr) = stderr {
            // Unreadable output is at worst missing from a message.
            let _ = stderr.read_to_end(&mut said);
        }
        String::from_utf8_lossy(&said).into_owned()
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => control.set_done(bytes_of_wheels(folder)),
            Err(source) => return Err(RuntimeError::io("wait for pip in", folder)(source)),
        }
        if let Err(cancelled) = control.sleep(POLL) {
            // It may already have ended.
            let _ = child.kill();
            let _ = child.wait();
            return Err(cancelled.into());
        }
    };
    Ok((status, reader.join().unwrap_or_default()))
}

/// The downloaded bytes of the wheel: pip first writes it to a temporary folder below `folder`, then moves it up.
fn bytes_of_wheels(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten();
    let wheels = files.filter(|file| file.path().extension().is_some_and(|kind| kind == "whl"));
    let sizes = wheels.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len());
    sizes.max().unwrap_or(0)
}

fn find_wheel(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let mut wheels = files.map(|file| file.path());
    wheels.find(|path| path.extension().is_some_and(|kind| kind == "whl"))
}

/// Classifies pip's messages by what the user can do about them.
fn explain(package: RuntimePackage, pin: &Pin, python: &[&str], folder: &Path, said: &str) -> RuntimeError {
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let line_with = |words: &[&str]| {
        let line = said.lines().rev().find(|line| words.iter().any(|word| line.contains(word)));
        line.map_or_else(|| last_line(said), |line| line.trim().to_owned())
    };
    const NO_SPACE: &[&str] = &["No space left", "Errno 28", "not enough space", "Disk quota"];
    const HASH: &[&str] = &["DO NOT MATCH THE HASHES", "is less than the requested"];
    const NETWORK: &[&str] = &[
        "Failed to establish a new connection",
        "NewConnectionError",
        "Temporary failure in name resolution",
        "Name or service not known",
        "Max retries exceeded",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ProxyError",
        "CERTIFICATE_VERIFY_FAILED",
        "SSLError",
        "Connection refused",
        "Network is unreachable",
        "HTTP error",
    ];
    if says(NO_SPACE) {
        RuntimeError::DiskFull { folder: folder.parent().unwrap_or(folder).to_owned() }
    } else if says(HASH) {
        RuntimeError::WrongHash { package, reason: line_with(&["Got "]) }
    } else if says(NETWORK) {
        RuntimeError::NoNetwork { package, reason: line_with(NETWORK) }
    } else if says(&["No matching distribution", "Could not find a version"]) {
        RuntimeError::NotInIndex {
            package,
            reason: line_with(&["Could not find a version", "No matching distribution"]),
        }
    } else {
        RuntimeError::PipFailed { command: shown(python, package, pin), reason: last_line(said) }
    }
}

fn last_line(said: &str) -> String {
    let lines = said.lines().rev().map(str::trim);
    lines.filter(|line| !line.is_empty()).take(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, expected: fn(&RuntimeError) -> bool) {
        let package = RuntimePackage::Cpu;
        let pin = package.pin().unwrap();
        let error = explain(package, pin, &["python3"], Path::new("/data/runtime/x"), said);
        assert!(expected(&error), "{error:?}");
    }

    #[test]
    fn pip_errors_are_classified_by_remedy() {
        check(
            concat!(
                "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n",
                "    onnxruntime==1.32.0 from file:\n",
                "        Expected sha256 57\n",
                "             Got        12\n",
            ),
            |error| matches!(error, RuntimeError::WrongHash { reason, .. } if reason == "Got        12"),
        );
        check(
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError: Failed to establish a \
            new connection: [Errno -3] Temporary failure in name resolution': /simple/onnxruntime/\n\
            ERROR: Could not find a version that satisfies the requirement onnxruntime==1.32.0 (from versions: none)\n\
            ERROR: No matching distribution found for onnxruntime==1.32.0",
            |error| matches!(error, RuntimeError::NoNetwork { reason, .. } if reason.contains("name resolution")),
        );
        check(
            "ERROR: Could not find a version that satisfies the requirement onnxruntime==1.32.0 (from versions: \
            1.20.0)\n\
            ERROR: No matching distribution found for onnxruntime==1.32.0",
            |error| matches!(error, RuntimeError::NotInIndex { .. }),
        );
        check(
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            |error| matches!(error, RuntimeError::DiskFull { folder } if folder == Path::new("/data/runtime")),
        );
        check("no such option: --abi", |error| {
            matches!(error, RuntimeError::PipFailed { command, reason }
                if command.starts_with("python3 -m pip download") && reason == "no such option: --abi")
        });
    }
}
