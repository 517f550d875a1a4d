//! Finds NVIDIA's libraries where pip installs them.
//!
//! ONNX Runtime's CUDA provider asks the system's loader for `libcudnn.so.9` and others by name. The loader is
//! satisfied if a library of that name is already in memory, so those in the `nvidia-…` packages are loaded beforehand,
//! by path.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// The libraries of the CUDA provider, in dependency order. The driver's own `libcuda` must come from the system.
const LIBRARIES: [&str; 7] = ["cudart", "nvrtc", "cublasLt", "cublas", "curand", "cufft", "cudnn"];

/// Loads what is found, once per process; nothing if this runtime has no CUDA provider. Libraries that are missing or
/// do not load are left to ONNX Runtime, whose message names them.
pub(super) fn preload(runtime: &Path) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let name = format!("{DLL_PREFIX}onnxruntime_providers_cuda{DLL_SUFFIX}");
        if !runtime.with_file_name(name).exists() {
            return;
        }
        let folders: Vec<PathBuf> = nvidia_folders(runtime);
        for library_name in LIBRARIES {
            for library in folders.iter().flat_map(|folder| libraries(folder, library_name)) {
                match ort::util::preload_dylib(&library) {
                    Ok(()) => log::info!("loaded {}", library.display()),
                    Err(error) => log::info!("could not load {}: {error}", library.display()),
                }
            }
        }
    });
}

/// The driver's name for the GPU.
pub(super) fn adapter() -> Option<String> {
    let cards = std::fs::read_dir("/proc/driver/nvidia/gpus").ok()?.flatten();
    let texts = cards.filter_map(|card| std::fs::read_to_string(card.path().join("information")).ok());
    texts.into_iter().find_map(|text| {
        let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(model.trim().to_owned())
    })
}

/// `nvidia/*/lib` (Windows: `bin`) in the site-packages that contain the runtime, and in those of the user's Python.
fn nvidia_folders(runtime: &Path) -> Vec<PathBuf> {
    let beside_the_runtime = runtime.ancestors().skip(1).take(3).map(Path::to_owned);
    let inner = if cfg!(windows) { "bin" } else { "lib" };
    beside_the_runtime
        .chain(site_packages())
        .filter_map(|packages| std::fs::read_dir(packages.join("nvidia")).ok())
        .flat_map(|packages| packages.flatten().map(|package| package.path().join(inner)))
        .filter(|folder| folder.is_dir())
        .collect()
}

/// The package folders of the user's Python; empty without Python.
fn site_packages() -> Vec<PathBuf> {
    let python = if cfg!(windows) { "python" } else { "python3" };
    let printed = Command::new(python).args(["-c", "import sys; print('\\n'.join(sys.path))"]).output();
    let printed = printed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let lines = printed.unwrap_or_default();
    lines.lines().map(PathBuf::from).filter(|path| path.is_absolute()).collect()
}

/// `libcudart.so.13`, `cudart64_13.dll`
fn libraries(folder: &Path, library_name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let stem = name.strip_prefix("lib").unwrap_or(&name);
            let rest = stem.strip_prefix(library_name);
            rest.is_some_and(|rest| {
                rest.starts_with(".so.") || (name.ends_with(".dll") && rest.starts_with(['6', '_']))
            })
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_next_to_the_runtime() {
        let folder = tempfile::tempdir().unwrap();
        let inner = if cfg!(windows) { "bin" } else { "lib" };
        let packages = folder.path().join("site-packages");
        for (package, file) in [("cu13", "libcublas.so.13"), ("cu13", "libcublasLt.so.13"), ("cudnn", "libcudnn.so.9")]
        {
            let lib = packages.join("nvidia").join(package).join(inner);
            std::fs::create_dir_all(&lib).unwrap();
            std::fs::write(lib.join(file), "").unwrap();
        }
        let runtime = packages.join("onnxruntime/capi/libonnxruntime.so.1.31.1");
        let folders = nvidia_folders(&runtime);
        let named = |library_name: &str| {
            let found = folders.iter().flat_map(|folder| libraries(folder, library_name));
            let own = found.filter(|path| path.starts_with(&packages));
            own.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(named("cublas"), ["libcublas.so.13"]);
        assert_eq!(named("cublasLt"), ["libcublasLt.so.13"]);
        assert_eq!(named("cudnn"), ["libcudnn.so.9"]);
    }
}
