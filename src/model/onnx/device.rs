//! Which device runs a model, and why no faster one.
//!
//! The choice itself (`select`) is pure; `configure` knows what each device needs from ONNX Runtime. Every registration
//! is strict: ONNX Runtime must report why a device cannot be used instead of silently computing on the CPU.

mod cuda;

use std::collections::BTreeSet;
use std::path::PathBuf;

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
    device: Device,
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
            cuda::preload(&runtime.path);
            cuda::adapter()
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
}
