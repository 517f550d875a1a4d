//! Where a model runs, and why not somewhere faster.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A place where ONNX Runtime can execute a model.
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
    /// The name on screen.
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
    /// The fastest that works, with the reason for every one that does not.
    #[default]
    Auto,
    /// Exactly this device: one that was named explicitly never falls back.
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

/// Which device is used, and why others are not.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceReport {
    pub device: Device,
    /// Why this one: “the fastest device that works here”, “you chose it”.
    pub reason: String,
    /// The graphics adapter, if the device has one.
    pub adapter: Option<String>,
    /// The faster devices that were tried first, and the messages of ONNX Runtime.
    pub refused: Vec<RefusedDevice>,
    pub runtime_version: String,
    pub runtime_path: String,
    /// Sessions that run side by side, each with `threads_per_session` threads.
    pub sessions: usize,
    pub threads_per_session: usize,
    /// Images in one call of the model.
    pub batch: usize,
    /// Time of the first, uncounted call.
    pub warm_up_ms: f64,
    /// Time of one call of the model, warm-up not counted; `None` before the first.
    pub latency: Option<LatencyMs>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedDevice {
    pub device: Device,
    pub reason: String,
}

/// Percentiles over the calls of the model so far, in milliseconds a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyMs {
    pub p50: f64,
    pub p95: f64,
    pub calls: usize,
}
