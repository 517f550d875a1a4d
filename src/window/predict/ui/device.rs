//! The device that the model runs on, and why faster ones are not used.

use std::path::PathBuf;

use strum::VariantArray;

use crate::domain::{Device, DeviceChoice, DeviceReport};
use crate::window::state::{InferenceCommand, MEGAPIXELS, RuntimeKind, TaskKind};
use crate::window::ui::prelude::*;

#[derive(Default)]
pub(crate) struct DeviceMemory {
    library: Option<String>,
}

pub(crate) fn device_ui(ui: &mut Ui, state: &State, memory: &mut DeviceMemory, commands: &mut Commands) {
    choices_ui(ui, state, commands);
    match &state.inference.local.status {
        _ if state.inference.remote.is_some() => {
            ui.weak("Images are predicted remotely; this device is not used");
        }
        Loadable::NotLoaded => {
            ui.weak("The device is chosen when the model first runs");
        }
        Loadable::Loading(_) => {
            ui.weak("Loading the model…");
        }
        Loadable::Failed(failure) => {
            wrapped_ui(ui, format!("⚠ {}", failure.message));
        }
        Loadable::Ready(report) => report_ui(ui, report),
    }
    if let Some(library) = &state.inference.local.restart_to_use {
        let message = format!("Another ONNX Runtime is loaded. Restart to use {library}");
        banner_ui(ui, Tone::Hint, &message, |ui| {
            command_button_ui(ui, "Restart Spotcheck", commands, || Command::Restart);
        });
    }
    runtime_ui(ui, state, memory, commands);
}

/// Other packages of ONNX Runtime, and the user's own libraries.
fn runtime_ui(ui: &mut Ui, state: &State, memory: &mut DeviceMemory, commands: &mut Commands) {
    ui.add_space(6.0);
    ui.weak("Run on a GPU");
    let is_free = !state.tasks.installs_runtime();
    ui.horizontal_wrapped(|ui| {
        for (label, kind, tooltip) in INSTALLABLE {
            let button = ui.add_enabled(is_free, Button::new(label));
            button
                .on_hover_text(tooltip)
                .on_disabled_hover_text("An installation is running")
                .on_click(commands, || InferenceCommand::InstallRuntime(kind));
        }
    });
    let is_installation = |kind: &TaskKind| matches!(kind, TaskKind::InstallRuntime(_));
    if let Some((TaskKind::InstallRuntime(kind), why)) = state.tasks.failure(is_installation) {
        let message = format!("Could not install {}: {why}", kind.name());
        banner_ui(ui, Tone::Error, &message, |ui| {
            command_button_ui(ui, "Retry", commands, || InferenceCommand::InstallRuntime(*kind));
        });
    }
    let chosen = state.settings.runtime_library.as_ref();
    let draft =
        memory.library.get_or_insert_with(|| chosen.map_or_else(String::new, |path| path.display().to_string()));
    let name = "Path of an ONNX Runtime library";
    let field = Field::new(name)
        .help("Used instead of the one that Spotcheck finds or installs; leave empty to search automatically")
        .hint(name)
        .text_ui(ui, draft);
    if enter_pressed(&field) {
        let path = draft.trim();
        let library = (!path.is_empty()).then(|| PathBuf::from(path));
        commands.push(InferenceCommand::SetRuntimeLibrary(library));
    }
}

const INSTALLABLE: [(&str, RuntimeKind, &str); 2] = [
    (
        "Install for CUDA",
        RuntimeKind::Cuda,
        "Downloads ONNX Runtime for NVIDIA GPUs into Spotcheck's own folder; requires CUDA 13 and cuDNN 9",
    ),
    ("Install for WebGPU", RuntimeKind::WebGpu, "Downloads a plug-in for any GPU into Spotcheck's own folder"),
];

fn choices_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let settings = &state.settings;
    ui.horizontal(|ui| {
        ui.label("Run on");
        let devices = Device::VARIANTS.iter().copied().map(DeviceChoice::Only);
        let choices = std::iter::once(DeviceChoice::Auto).chain(devices).map(|choice| (choice, choice_name(choice)));
        let mut device = settings.device;
        Field::new("Run on").choice_ui(ui, &mut device, &choices.collect::<Vec<_>>());
        if device != settings.device {
            commands.push(InferenceCommand::ChooseDevice(device));
        }
    });
    ui.horizontal(|ui| {
        let batch = number_ui(ui, "Batch", settings.batch, 64);
        if batch != settings.batch {
            commands.push(InferenceCommand::SetBatch(batch));
        }
        let threads = number_ui(ui, "Threads", settings.threads, 256);
        if threads != settings.threads {
            commands.push(InferenceCommand::SetThreads(threads));
        }
    });
    let mut predict_on_open = settings.predict_on_open;
    let checkbox = checkbox_ui(ui, &mut predict_on_open, "Predict images when opened");
    if checkbox.changed() {
        commands.push(InferenceCommand::SetPredictOnOpen(predict_on_open));
    }
    ui.horizontal(|ui| {
        let name = "Maximum image size";
        ui.label(name);
        let mut megapixels = settings.max_megapixels;
        let drag = number_field(&mut megapixels).range(MEGAPIXELS).suffix(" megapixels");
        Field::new(name).help("Applies to images opened after the change").number_ui(ui, drag);
        if megapixels != settings.max_megapixels {
            commands.push(BrowseCommand::SetMaxMegapixels(megapixels));
        }
    });
}

/// Zero, shown as “auto”, lets the device decide.
fn number_ui(ui: &mut Ui, name: &str, value: Option<usize>, max: usize) -> Option<usize> {
    ui.label(name);
    let mut number = value.unwrap_or(0);
    let drag = number_field(&mut number)
        .range(0..=max)
        .speed(0.1)
        .custom_formatter(|number, _| match number as usize {
            0 => "auto".to_owned(),
            number => number.to_string(),
        })
        .custom_parser(|text| match text.trim() {
            "auto" | "" => Some(0.0),
            number => number.parse().ok(),
        });
    Field::new(name).help("Drag or type; 0 is automatic").number_ui(ui, drag);
    (number > 0).then_some(number)
}

fn choice_name(choice: DeviceChoice) -> &'static str {
    match choice {
        DeviceChoice::Auto => "Automatic: the fastest that works",
        DeviceChoice::Only(device) => device.name(),
    }
}

fn report_ui(ui: &mut Ui, report: &DeviceReport) {
    ui.add_space(4.0);
    ui.label(strong(format!("Running on {}", report.device.name())));
    wrapped_ui(ui, format!("because {}", report.reason));
    if let Some(adapter) = &report.adapter {
        key_value_ui(ui, "Adapter", adapter);
    }
    for refused in &report.refused {
        ui.add_space(2.0);
        let text = format!("Not on {}: {}", refused.device.name(), refused.reason);
        note_ui(ui, text);
    }
    ui.add_space(4.0);
    let batch = match report.batch {
        1 => "1 image per call".to_owned(),
        count => format!("{count} images per call"),
    };
    key_value_ui(ui, "Batch", &batch);
    let threads = format!("{} × {} threads", report.sessions, report.threads_per_session);
    key_value_ui(ui, "Sessions", &threads);
    key_value_ui(ui, "Warm-up", &milliseconds(report.warm_up_ms));
    if let Some(latency) = report.latency {
        let text =
            format!("p50 {}, p95 {} ({} calls)", milliseconds(latency.p50), milliseconds(latency.p95), latency.calls);
        key_value_ui(ui, "Latency", &text);
    }
    key_value_ui(ui, "Runtime", &format!("ONNX Runtime {}", report.runtime_version));
    small_note_ui(ui, &report.runtime_path);
}

fn milliseconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.1} ms") } else { format!("{value:.0} ms") }
}
