//! What Spotcheck installs, pinned by hash: the wheels, so that the package index cannot deliver anything else, and the
//! libraries, so that nothing else is ever loaded.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::domain::one_of;

/// A package in the Python package index that contains ONNX Runtime or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = String, parse_err_fn = one_of::<Self>)]
pub enum RuntimePackage {
    /// ONNX Runtime for the CPU (on macOS with CoreML).
    Cpu,
    /// ONNX Runtime with CUDA, instead of the one for the CPU. Does not include CUDA 13 and cuDNN 9.
    Cuda,
    /// A plug-in that runs models on any GPU, in addition to one of the others.
    WebGpu,
}

impl RuntimePackage {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "ONNX Runtime",
            Self::Cuda => "ONNX Runtime with CUDA",
            Self::WebGpu => "the WebGPU plug-in of ONNX Runtime",
        }
    }

    /// The name in the Python package index.
    pub fn project(self) -> &'static str {
        match self {
            Self::Cpu => "onnxruntime",
            Self::Cuda => "onnxruntime-gpu",
            Self::WebGpu => "onnxruntime-ep-webgpu",
        }
    }

    pub fn version(self) -> &'static str {
        match self {
            // Before 1.32, the graph optimizer changes the results of some models (YOLOv3-tiny).
            Self::Cpu => "1.32.0",
            // The newest version in the Python package index on 2026-11-23.
            Self::Cuda => "1.31.1",
            Self::WebGpu => "0.4.0",
        }
    }

    /// The folder with the libraries inside the wheel.
    pub fn folder_in_wheel(self) -> &'static str {
        match self {
            Self::Cpu | Self::Cuda => "onnxruntime/capi",
            Self::WebGpu => "onnxruntime_ep_webgpu",
        }
    }

    /// Whether a file is the one to load.
    pub fn is_main_library(self, file_name: &str) -> bool {
        match self {
            Self::Cpu | Self::Cuda => is_core_library(file_name),
            Self::WebGpu => file_name.contains("onnxruntime_providers_webgpu"),
        }
    }

    /// The wheel for this computer; `None` if none is published.
    pub fn pin(self) -> Option<&'static Pin> {
        let here = (std::env::consts::OS, std::env::consts::ARCH);
        PINS.iter().find(|pin| pin.package == self && pin.system == here)
    }
}

/// Whether a file in a package's folder of the wheel is needed: the libraries, but neither Python's own binding nor the
/// provider that needs an old `TensorRT`.
pub(super) fn is_needed(file_name: &str) -> bool {
    let is_library =
        [".so", ".dylib", ".dll"].iter().any(|suffix| file_name.ends_with(suffix) || file_name.contains(".so."));
    is_library && !file_name.contains("pybind11") && !file_name.contains("tensorrt")
}

/// `libonnxruntime.so.1.32.0`, `libonnxruntime.1.32.0.dylib`, `onnxruntime.dll`, but not
/// `libonnxruntime_providers_shared.so`.
pub(super) fn is_core_library(file_name: &str) -> bool {
    let name = file_name.strip_prefix("lib").unwrap_or(file_name);
    let Some(rest) = name.strip_prefix("onnxruntime.") else {
        return false;
    };
    match std::env::consts::OS {
        "windows" => rest == "dll",
        "macos" => rest.ends_with("dylib"),
        _ => rest == "so" || rest.starts_with("so."),
    }
}

/// A wheel and the library inside it.
pub struct Pin {
    pub package: RuntimePackage,
    /// The operating system and architecture, as in `std::env::consts`.
    system: (&'static str, &'static str),
    /// The wheel's file name.
    pub wheel: &'static str,
    pub wheel_sha256: &'static str,
    pub wheel_bytes: u64,
    pub library_sha256: &'static str,
}

const LINUX_X64: (&str, &str) = ("linux", "x86_64");
const LINUX_ARM64: (&str, &str) = ("linux", "aarch64");
const MAC_ARM64: (&str, &str) = ("macos", "aarch64");
const WINDOWS_X64: (&str, &str) = ("windows", "x86_64");
const WINDOWS_ARM64: (&str, &str) = ("windows", "aarch64");

/// The wheels for Python 3.11 (the libraries inside do not depend on Python).
const PINS: [Pin; 12] = [
    Pin {
        package: RuntimePackage::Cpu,
        system: LINUX_X64,
        wheel: "onnxruntime-1.32.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        wheel_sha256: "5a34fc4dfeb5a7b4a74c95dcba1e773d722abda720b474edf1b0c419dc6d163d",
        wheel_bytes: 27_773_237,
        library_sha256: "6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f",
    },
    Pin {
        package: RuntimePackage::Cpu,
        system: LINUX_ARM64,
        wheel: "onnxruntime-1.32.0-cp311-cp311-manylinux_2_28_aarch64.whl",
        wheel_sha256: "2303372a85299b6757b0e11e1cbf13e410ddf7e10c37f4b37e99d1c90e7daf7c",
        wheel_bytes: 23_195_070,
        library_sha256: "49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a",
    },
    Pin {
        package: RuntimePackage::Cpu,
        system: MAC_ARM64,
        wheel: "onnxruntime-1.32.0-cp311-cp311-macosx_14_0_arm64.whl",
        wheel_sha256: "366b9e53d07812cc5c92822cecf7563b76a8a0f32ba3bb8dd232a206ac3bcb6c",
        wheel_bytes: 22_506_162,
        library_sha256: "fa585fabbea65b823b9a8f7e27d46aee3989d1be7e36b528203d3a1fd613aae7",
    },
    Pin {
        package: RuntimePackage::Cpu,
        system: WINDOWS_X64,
        wheel: "onnxruntime-1.32.0-cp311-cp311-win_amd64.whl",
        wheel_sha256: "d7e0c45cc5f456ad7805e6dd256a7662736cda9c2fd17becae194eb3c2f6df72",
        wheel_bytes: 16_695_880,
        library_sha256: "e9feebaed867b76f741c14ae64e056a3da64a153a61994f1fb48eadc7f9b3ba8",
    },
    Pin {
        package: RuntimePackage::Cpu,
        system: WINDOWS_ARM64,
        wheel: "onnxruntime-1.32.0-cp311-cp311-win_arm64.whl",
        wheel_sha256: "23361cdf98afac352d10aa7d9e0a10ceaeb02d38430fb693c6eff370196db62d",
        wheel_bytes: 16_027_290,
        library_sha256: "d3587771474d96427cc5683fa49440127e928622a5e9df0f3e24209ae1fc42ad",
    },
    Pin {
        package: RuntimePackage::Cuda,
        system: LINUX_X64,
        wheel: "onnxruntime_gpu-1.31.1-cp311-cp311-manylinux_2_28_x86_64.whl",
        wheel_sha256: "e26c475fe361b2015f45b4b824bd13f0bb20204e59b62814e6f0acd5f3d491a6",
        wheel_bytes: 255_560_985,
        library_sha256: "5104254339ecadae808da771bd0b63b240f0dbd466514234905e54372435c303",
    },
    Pin {
        package: RuntimePackage::Cuda,
        system: WINDOWS_X64,
        wheel: "onnxruntime_gpu-1.31.1-cp311-cp311-win_amd64.whl",
        wheel_sha256: "fd98341ba71c093153f0dcfc53eb69d57f706866fb45e94e5b0cde5d97a50dbf",
        wheel_bytes: 168_096_711,
        library_sha256: "e07ca50bd2abf864ea5d6f9501d611c99508583d3f75f56348f36e2a67a04d16",
    },
    Pin {
        package: RuntimePackage::WebGpu,
        system: LINUX_X64,
        wheel: "onnxruntime_ep_webgpu-0.4.0-py3-none-manylinux_2_28_x86_64.whl",
        wheel_sha256: "5d8c961eda91a88961cad1fb7621f389f006b18497d6ea9ecf96f729f066cbfb",
        wheel_bytes: 6_892_120,
        library_sha256: "9f76e3dc4459421958ad086a9da03bf7e5de9289e9a3a56e28bbb459773dec81",
    },
    Pin {
        package: RuntimePackage::WebGpu,
        system: LINUX_ARM64,
        wheel: "onnxruntime_ep_webgpu-0.4.0-py3-none-manylinux_2_28_aarch64.whl",
        wheel_sha256: "17f660db53b1a509c63e721ac6784a2daa1c4e91a968523ee9986505ee5b0a55",
        wheel_bytes: 6_096_222,
        library_sha256: "720e1288e7e465f924db44b88a98a9d1c543eba3fbb2ff801cf2545f5e7f0279",
    },
    Pin {
        package: RuntimePackage::WebGpu,
        system: MAC_ARM64,
        wheel: "onnxruntime_ep_webgpu-0.4.0-py3-none-macosx_14_0_universal2.whl",
        wheel_sha256: "8d0a91d44b43d931c3068b9134aed9770f27803e353c2b58c93e1700bb68bcca",
        wheel_bytes: 5_200_679,
        library_sha256: "894aa43c308c97afe58f6485b8411962181a39b27170f5f210cc7503adb52850",
    },
    Pin {
        package: RuntimePackage::WebGpu,
        system: WINDOWS_X64,
        wheel: "onnxruntime_ep_webgpu-0.4.0-py3-none-win_amd64.whl",
        wheel_sha256: "7db646669d1a2390551da675115ea125e68cb3d4d2c3a2d6e463372bf8d6ea87",
        wheel_bytes: 13_149_847,
        library_sha256: "85d7b2065b1968b846cd00d5d87d5286d3c44e8f6c557cd382d96300e524b6cb",
    },
    Pin {
        package: RuntimePackage::WebGpu,
        system: WINDOWS_ARM64,
        wheel: "onnxruntime_ep_webgpu-0.4.0-py3-none-win_arm64.whl",
        wheel_sha256: "a9586f6744370776059edd794c11bca2f563258a5bd2707864aefff31d3af39f",
        wheel_bytes: 14_194_630,
        library_sha256: "e2a72894617c0519cae3080534ca1fc957c4ab607a993c05f326d83b322a581d",
    },
];
