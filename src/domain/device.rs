//! The device that a model runs on, and why not a faster one.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A device that ONNX Runtime can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Device {
    Cuda,
    CoreMl,
    WebGpu,
    Cpu,
}

impl Device {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Cuda => "CUDA",
            Self::WebGpu => "WebGPU",
            Self::CoreMl => "CoreML",
        }
    }
}

/// The device that the user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// The fastest one that works, with the reason why each faster one does not.
    #[default]
    Auto,
    /// Exactly this device: a device that was named explicitly never falls back.
    Only(Device),
}

impl std::str::FromStr for DeviceChoice {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        if word == "auto" {
            return Ok(Self::Auto);
        }
        let device = word.parse().map(Self::Only);
        device.map_err(|_| "one of auto, cpu, cuda, webgpu, coreml".to_owned())
    }
}

impl std::fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Auto => "auto",
            Self::Only(device) => device.into_str(),
        })
    }
}

/// The device in use, and why others are not used.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceReport {
    pub device: Device,
    /// Why this one: “the fastest device that works here”, “you chose it”.
    pub reason: String,
    /// The graphics adapter, if the device has one.
    pub adapter: Option<String>,
    /// The faster devices that were tried first, with ONNX Runtime's messages.
    pub refused: Vec<RefusedDevice>,
    pub runtime_version: String,
    pub runtime_path: String,
    /// Parallel sessions, each with `threads_per_session` threads.
    pub sessions: usize,
    pub threads_per_session: usize,
    /// Images per model call.
    pub batch: usize,
    /// Duration of the first call, which is not counted in `latency`.
    pub warm_up_ms: f64,
    /// Duration of a model call, without warm-up; `None` before the first call.
    pub latency: Option<LatencyMs>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedDevice {
    pub device: Device,
    pub reason: String,
}

/// Percentiles over the model calls so far, in milliseconds per call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyMs {
    pub p50: f64,
    pub p95: f64,
    pub calls: usize,
}
