//! `spotcheck runtime`: shows and installs ONNX Runtime.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, Subcommand};

use super::terminal::with_progress;
use super::{Outcome, describe_latency, describe_refused};
use crate::cli::terminal::{interruptible, stdout};
use crate::dirs::AppDirs;
use crate::domain::{Device, DeviceReport, ModelTask, RgbImage};
use crate::model::catalog::Library;
use crate::model::onnx::{DeviceSurvey, LoadOptions, OnnxPredictor, survey};
use crate::model::runtime::{InstalledPackage, Loaded, Place, RuntimeError, RuntimePackage};
use crate::model::{Predictor, runtime};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct RuntimeArgs {
    #[command(subcommand)]
    command: Option<RuntimeCommand>,
}

#[derive(Debug, Subcommand)]
enum RuntimeCommand {
    /// Show where ONNX Runtime was found and which devices it can use
    Status,
    /// Download ONNX Runtime into Spotcheck's own folder
    Install {
        /// Package: cpu, cuda (NVIDIA GPUs; replaces cpu) or webgpu (any GPU; in addition to the others)
        package: RuntimePackage,
        /// Install this wheel file (.whl) instead of downloading one
        #[arg(long, value_name = "WHEEL")]
        from: Option<PathBuf>,
    },
}

/// Enough calls for a stable median, and the time after which fewer suffice.
const MEASURED_CALLS: usize = 30;
const MEASURED_TIME: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &RuntimeArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    match &args.command {
        None | Some(RuntimeCommand::Status) => status(&dirs),
        Some(RuntimeCommand::Install { package, from }) => {
            let control = interruptible(ProgressUnit::Bytes)?;
            let installed = with_progress(package.name(), &control, || {
                runtime::install(&dirs, *package, from.as_deref(), &control)
            })?;
            report_installation(&dirs, &installed)
        }
    }
}

fn report_installation(dirs: &AppDirs, installed: &InstalledPackage) -> anyhow::Result<Outcome> {
    say(&format!(
        "installed {} {} ({} MB): {}",
        installed.package.name(),
        installed.version,
        installed.bytes.div_ceil(1_000_000),
        installed.library.display()
    ))?;
    if !installed.is_pinned {
        eprintln!("note: this wheel is not pinned, so its contents were not verified");
    }
    match installed.package {
        RuntimePackage::Cpu => {}
        RuntimePackage::Cuda => eprintln!(
            "note: CUDA 13 and cuDNN 9 are not included. If they are missing, install NVIDIA's packages, or run: python3 \
            -m pip install 'onnxruntime-gpu[cuda,cudnn]=={}' (1.2 GB). The NVIDIA driver must be 580 or newer",
            installed.version
        ),
        RuntimePackage::WebGpu => {
            if let Err(RuntimeError::NotFound) = runtime::locate(dirs, None) {
                eprintln!(
                    "note: the plug-in needs ONNX Runtime, which is installed on first use. To install it now, run: \
                     spotcheck runtime install cpu"
                );
            }
        }
    }
    Ok(Outcome::AllWell)
}

fn status(dirs: &AppDirs) -> anyhow::Result<Outcome> {
    say("ONNX Runtime search order:")?;
    for step in runtime::search(dirs, None) {
        say(&format!("  {step}"))?;
    }
    // Only an existing library: asking for the status must not install anything.
    let library = runtime::locate(dirs, None)?;
    let loaded = runtime::load(library)?;
    say(&format!("ONNX Runtime {} from {}: {}", loaded.version, loaded.found_in.name(), loaded.path.display()))?;
    for plugin in &loaded.plugins {
        say(&format!("with {} {}: {}", plugin.package.name(), plugin.version, plugin.library.display()))?;
    }
    let survey = survey(&loaded)?;
    for line in describe_devices(&survey) {
        say(&line)?;
    }
    match measure(dirs, &loaded) {
        Ok((model, report)) => {
            let latency = describe_latency(&report).unwrap_or_else(|| "too slow to measure".to_owned());
            say(&format!("{model}: {latency}"))?;
        }
        Err(error) => say(&format!("speed not measured: {error:#}"))?,
    }
    for next in [update_command(&loaded), next_command(&loaded, &survey)].into_iter().flatten() {
        say(&next)?;
    }
    Ok(Outcome::AllWell)
}

/// Calls the default classifier on the device that would be chosen, one image per call, in one session.
fn measure(dirs: &AppDirs, loaded: &Loaded) -> anyhow::Result<(String, DeviceReport)> {
    let control = TaskControl::new(ProgressUnit::Steps);
    let model = Library::open(dirs).default_for(ModelTask::Classification)?;
    let options = LoadOptions { batch: Some(1), ..LoadOptions::default() };
    let predictor = OnnxPredictor::load(loaded, &model, &options, &control)?;
    let gray = vec![128; 224 * 224 * 3];
    let image = RgbImage::new(224, 224, gray).context("a gray image")?;
    let prepared = predictor.prepare(&image)?;
    let begun = Instant::now();
    for call in 0..=MEASURED_CALLS {
        predictor.predict(0, std::slice::from_ref(&prepared), &control)?;
        if call > 0 && begun.elapsed() > MEASURED_TIME {
            break;
        }
    }
    Ok((model.card.id, predictor.report()))
}

/// `running on CPU because …`, then `not on CUDA because …` for each faster device.
fn describe_devices(survey: &DeviceSurvey) -> Vec<String> {
    let adapter = survey.adapter.as_ref();
    let adapter = adapter.map_or_else(String::new, |adapter| format!(" ({adapter})"));
    let running = format!("running on {}{adapter} because {}", survey.device.name(), survey.reason);
    std::iter::once(running).chain(describe_refused(&survey.refused)).collect()
}

/// The command that installs the release that this version of Spotcheck is tested with, if another one is loaded.
fn update_command(loaded: &Loaded) -> Option<String> {
    let Place::Installed(package) = loaded.found_in else {
        return None;
    };
    (loaded.version != package.version()).then(|| {
        format!(
            "this version of Spotcheck is tested with {} {}; install it with `spotcheck runtime install {}`",
            package.name(),
            package.version(),
            package.into_str()
        )
    })
}

fn next_command(loaded: &Loaded, survey: &DeviceSurvey) -> Option<String> {
    let has_plugin = !loaded.plugins.is_empty();
    let is_refused = |device: Device| survey.refused.iter().any(|refused| refused.device == device);
    (!has_plugin && is_refused(Device::WebGpu)).then(|| {
        "to use a GPU, run `spotcheck runtime install webgpu` (any GPU) or `spotcheck runtime install cuda` (NVIDIA)"
            .to_owned()
    })
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(stdout(), "{line}").context("Could not write to stdout")
}
