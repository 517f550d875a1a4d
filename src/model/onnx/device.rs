//! Which device runs a model, and why no faster one; NVIDIA's libraries where pip installs them.
//!
//! The choice itself (`select`) is pure; `configure` knows what each device needs from ONNX Runtime. Every registration
//! is strict: ONNX Runtime must report why a device cannot be used instead of silently computing on the CPU.

use std::collections::BTreeSet;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use ort::ep;
use ort::memory::DeviceType;
use ort::session::builder::{AutoDevicePolicy, SessionBuilder};
use parking_lot::Mutex;

use super::InferenceError;
use super::session::{OnnxSession, in_one_line};
use crate::domain::{Device, DeviceChoice, RefusedDevice};
use crate::model::Tensor;
use crate::model::runtime::{Loaded, RuntimePackage};
use crate::tasks::{ProgressUnit, TaskControl};

/// ONNX Runtime's name for the devices of the plug-in.
const WEBGPU_PROVIDER: &str = "WebGpuExecutionProvider";

/// A graph small enough for trying a device (created by `tests/device/make.py`).
const TINY_MODEL: &[u8] = include_bytes!("tiny.onnx");
const TINY_INPUT_SHAPE: [usize; 4] = [1, 3, 32, 32];

/// A device that works, and the devices that were tried before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selected<T> {
    pub value: T,
    pub device: Device,
    pub reason: String,
    pub refused: Vec<RefusedDevice>,
}

/// What `auto` selects here, and what it skips.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSurvey {
    pub device: Device,
    pub reason: String,
    pub adapter: Option<String>,
    pub refused: Vec<RefusedDevice>,
}

/// What `auto` tries before the CPU, fastest first.
const FASTER: &[Device] =
    if cfg!(target_os = "macos") { &[Device::CoreMl, Device::WebGpu] } else { &[Device::Cuda, Device::WebGpu] };

/// Tries devices until one works. A device that was named explicitly is the only one tried. Cancellation ends the
/// search; if the CPU also fails, the model is to blame.
pub(super) fn select<T>(
    choice: DeviceChoice,
    mut try_device: impl FnMut(Device) -> Result<T, InferenceError>,
) -> Result<Selected<T>, InferenceError> {
    let selected =
        |value, device, reason: &str, refused| Selected { value, device, reason: reason.to_owned(), refused };
    if let DeviceChoice::Only(device) = choice {
        let value = try_device(device).map_err(|error| error.on(device))?;
        return Ok(selected(value, device, "you chose it", Vec::new()));
    }
    let mut refused = Vec::new();
    for &device in FASTER {
        match try_device(device) {
            Ok(value) => {
                let reason = "it is the fastest device that works on this computer";
                return Ok(selected(value, device, reason, refused));
            }
            Err(InferenceError::Cancelled) => return Err(InferenceError::Cancelled),
            Err(error) => refused.push(RefusedDevice { device, reason: error.reason() }),
        }
    }
    let value = try_device(Device::Cpu)?;
    let reason = "no faster device works on this computer";
    Ok(selected(value, Device::Cpu, reason, refused))
}

/// Tries the devices with a tiny model, as `auto` would.
pub fn survey(runtime: &Loaded) -> Result<DeviceSurvey, InferenceError> {
    let selected = select(DeviceChoice::Auto, |device| {
        let prepared = prepare(runtime, device, DeviceChoice::Auto)?;
        let mut session =
            OnnxSession::from_bytes(&runtime.environment, TINY_MODEL, |builder| prepared.configure(builder))?;
        let zeros = vec![0.0; TINY_INPUT_SHAPE.iter().product()];
        let input = Tensor::f32(TINY_INPUT_SHAPE, zeros);
        let control = TaskControl::new(ProgressUnit::Steps);
        let prediction = session.run(&[("input", &input)], &[], &control);
        prediction.map_err(|error| InferenceError::Device { device, reason: error.to_string() })?;
        Ok(prepared.adapter)
    })?;
    Ok(DeviceSurvey {
        device: selected.device,
        reason: selected.reason,
        adapter: selected.value,
        refused: selected.refused,
    })
}

/// A device that can create sessions, once its libraries are loaded.
pub(super) struct PreparedDevice<'r> {
    runtime: &'r Loaded,
    pub device: Device,
    /// The GPU, if ONNX Runtime knows it.
    pub adapter: Option<String>,
}

/// Loads the libraries of a device.
pub(super) fn prepare(
    runtime: &Loaded,
    device: Device,
    choice: DeviceChoice,
) -> Result<PreparedDevice<'_>, InferenceError> {
    let refuse = |reason: String| InferenceError::Device { device, reason };
    let adapter = match device {
        Device::Cpu | Device::CoreMl => None,
        Device::Cuda => {
            preload_cuda(&runtime.path);
            cuda_adapter()
        }
        Device::WebGpu => {
            register_plugin(runtime).map_err(refuse)?;
            Some(webgpu_adapter(runtime, choice).map_err(refuse)?)
        }
    };
    Ok(PreparedDevice { runtime, device, adapter })
}

impl PreparedDevice<'_> {
    /// Makes the sessions of `builder` run on this device, or fail.
    pub(super) fn configure(&self, builder: SessionBuilder) -> ort::Result<SessionBuilder> {
        // ort's default policy could add devices that were not requested.
        let alone = |builder: SessionBuilder| -> ort::Result<SessionBuilder> {
            Ok(builder.with_auto_device(AutoDevicePolicy::PreferCPU)?)
        };
        match self.device {
            Device::Cpu => alone(builder),
            // TensorFloat-32 would cost three digits, and predictions must equal those of other devices.
            Device::Cuda => {
                let provider = ep::CUDA::default().with_tf32(false).build();
                Ok(alone(builder)?.with_execution_providers([provider.error_on_failure()])?)
            }
            Device::CoreMl => {
                let provider = ep::CoreML::default().build();
                Ok(alone(builder)?.with_execution_providers([provider.error_on_failure()])?)
            }
            Device::WebGpu => {
                let environment = &self.runtime.environment;
                // One device: ONNX Runtime rejects several from one provider.
                let mut devices = environment.devices().filter(is_webgpu).collect::<Vec<_>>();
                devices.sort_by_key(|device| rank(device.hardware_device().ty()));
                devices.truncate(1);
                Ok(builder.with_devices(devices, None)?)
            }
        }
    }
}

/// Registers the plug-in in the data folder, once per process.
fn register_plugin(runtime: &Loaded) -> Result<(), String> {
    static REGISTERED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut plugins = runtime.plugins.iter();
    let plugin = plugins.find(|plugin| plugin.package == RuntimePackage::WebGpu);
    let Some(plugin) = plugin else {
        let not_installed = "its plug-in is not installed; install it with `spotcheck runtime install webgpu`";
        let problem = runtime.plugin_problem.as_deref();
        return Err(problem.unwrap_or(not_installed).to_owned());
    };
    let mut registered = REGISTERED.lock();
    if registered.contains(&plugin.library) {
        return Ok(());
    }
    runtime
        .environment
        .register_ep_library("spotcheck_webgpu", &plugin.library)
        .map_err(|error| in_one_line(error.message()))?;
    registered.insert(plugin.library.clone());
    Ok(())
}

/// The name of the adapter. A software adapter is slower than the CPU itself, so it is used only if WebGPU was named.
fn webgpu_adapter(runtime: &Loaded, choice: DeviceChoice) -> Result<String, String> {
    let devices = runtime.environment.devices().filter(is_webgpu);
    let best = devices.min_by_key(|device| rank(device.hardware_device().ty()));
    let Some(best) = best else {
        return Err("the plug-in found no graphics adapter; check that the graphics driver is installed".to_owned());
    };
    let hardware = best.hardware_device();
    let vendor = hardware.vendor().unwrap_or_default();
    match (hardware.ty(), choice) {
        (DeviceType::CPU, DeviceChoice::Auto) => Err("it is a software adapter, slower than the CPU".to_owned()),
        (DeviceType::CPU, DeviceChoice::Only(_)) => Ok("a software adapter".to_owned()),
        _ => Ok(format!("{vendor} {:#06x}", hardware.id()).trim().to_owned()),
    }
}

fn is_webgpu(device: &ort::device::Device<'_>) -> bool {
    device.ep().is_ok_and(|provider| provider == WEBGPU_PROVIDER)
}

/// GPUs first.
fn rank(kind: DeviceType) -> u8 {
    match kind {
        DeviceType::GPU => 0,
        DeviceType::NPU => 1,
        _ => 2,
    }
}

/// The libraries of the CUDA provider, in dependency order. The driver's own `libcuda` must come from the system.
const LIBRARIES: [&str; 7] = ["cudart", "nvrtc", "cublasLt", "cublas", "curand", "cufft", "cudnn"];

/// ONNX Runtime's CUDA provider asks the system's loader for `libcudnn.so.9` and others by name. The loader is satisfied
/// if a library of that name is already in memory, so those in the `nvidia-…` packages are loaded beforehand, by path.
/// Loads what is found, once per process; nothing if this runtime has no CUDA provider. Libraries that are missing or
/// do not load are left to ONNX Runtime, whose message names them.
fn preload_cuda(runtime: &Path) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let name = format!("{DLL_PREFIX}onnxruntime_providers_cuda{DLL_SUFFIX}");
        if !runtime.with_file_name(name).exists() {
            return;
        }
        let folders: Vec<PathBuf> = nvidia_folders(runtime);
        for library_name in LIBRARIES {
            for library in folders.iter().flat_map(|folder| cuda_libraries(folder, library_name)) {
                match ort::util::preload_dylib(&library) {
                    Ok(()) => log::info!("loaded {}", library.display()),
                    Err(error) => log::info!("could not load {}: {error}", library.display()),
                }
            }
        }
    });
}

/// The driver's name for the GPU.
fn cuda_adapter() -> Option<String> {
    let cards = std::fs::read_dir("/proc/driver/nvidia/gpus").ok()?.flatten();
    let texts = cards.filter_map(|card| std::fs::read_to_string(card.path().join("information")).ok());
    texts.into_iter().find_map(|text| {
        let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(model.trim().to_owned())
    })
}

/// `nvidia/*/lib` (Windows: `bin`) in the site-packages that contain the runtime, and in those of the user's Python.
fn nvidia_folders(runtime: &Path) -> Vec<PathBuf> {
    let next_to_runtime = runtime.ancestors().skip(1).take(3).map(Path::to_owned);
    let inner = if cfg!(windows) { "bin" } else { "lib" };
    next_to_runtime
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
fn cuda_libraries(folder: &Path, library_name: &str) -> Vec<PathBuf> {
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

    fn refuse(device: Device) -> InferenceError {
        InferenceError::Device { device, reason: format!("{} is broken", device.name()) }
    }

    #[test]
    fn auto_uses_the_first_working_device() {
        let selected = select(DeviceChoice::Auto, |device| match device {
            Device::Cpu => Ok("a session"),
            device => Err(refuse(device)),
        });
        let selected = selected.unwrap();
        assert_eq!(selected.device, Device::Cpu);
        assert_eq!(selected.reason, "no faster device works on this computer");
        let refused: Vec<_> = selected.refused.iter().map(|refused| refused.device).collect();
        assert_eq!(refused, FASTER);
        assert_eq!(selected.refused[0].reason, format!("{} is broken", FASTER[0].name()));
    }

    #[test]
    fn auto_stops_at_the_first_working_device() {
        let mut tried = Vec::new();
        let selected = select(DeviceChoice::Auto, |device| {
            tried.push(device);
            Ok(())
        });
        assert_eq!(selected.unwrap().reason, "it is the fastest device that works on this computer");
        assert_eq!(tried, [FASTER[0]]);
    }

    #[test]
    fn explicit_device_never_falls_back() {
        let mut tried = Vec::new();
        let selected = select(DeviceChoice::Only(Device::WebGpu), |device| {
            tried.push(device);
            Err::<(), _>(refuse(device))
        });
        assert_eq!(tried, [Device::WebGpu]);
        let message = selected.unwrap_err().to_string();
        assert!(message.contains("WebGPU is broken"), "{message}");
    }

    #[test]
    fn model_error_is_recognized_on_the_cpu() {
        let selected = select(DeviceChoice::Auto, |_| {
            Err::<(), _>(InferenceError::Load { weights: "model.onnx".into(), reason: "no such operator".to_owned() })
        });
        assert!(matches!(selected, Err(InferenceError::Load { .. })));
    }

    #[test]
    fn cancelling_ends_the_search() {
        let mut tried = 0;
        let selected = select(DeviceChoice::Auto, |_| {
            tried += 1;
            Err::<(), _>(InferenceError::Cancelled)
        });
        assert!(matches!(selected, Err(InferenceError::Cancelled)));
        assert_eq!(tried, 1);
    }

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
            let found = folders.iter().flat_map(|folder| cuda_libraries(folder, library_name));
            let own = found.filter(|path| path.starts_with(&packages));
            own.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(named("cublas"), ["libcublas.so.13"]);
        assert_eq!(named("cublasLt"), ["libcublasLt.so.13"]);
        assert_eq!(named("cudnn"), ["libcudnn.so.9"]);
    }
}
