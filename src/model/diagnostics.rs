//! What a bug report needs to know about this installation. Contains no secrets, only paths and messages.

use std::path::Path;

use super::catalog::{Library, WeightsState};
use super::runtime;
use crate::dirs::AppDirs;

/// The version of Spotcheck, this computer, the folders, the search for ONNX Runtime and the models, one per line.
/// `runtime_setting` is the user's setting for the search.
pub fn diagnostics(dirs: &AppDirs, runtime_setting: Option<&Path>) -> Vec<String> {
    let program = std::env::current_exe().unwrap_or_default();
    let mut lines = vec![
        format!("Spotcheck {}: {}", crate::version(), program.display()),
        format!(
            "system: {} {}, {} cores",
            std::env::consts::OS,
            std::env::consts::ARCH,
            std::thread::available_parallelism().map_or(0, usize::from)
        ),
    ];
    let session = ["XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP", "DISPLAY", "WAYLAND_DISPLAY"];
    let session = session.iter().filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)));
    let session: Vec<String> = session.collect();
    if !session.is_empty() {
        lines.push(format!("session: {}", session.join(", ")));
    }
    for (name, folder) in [("data", &dirs.data), ("settings", &dirs.config), ("cache", &dirs.cache)] {
        lines.push(format!("{name}: {}", folder.display()));
    }
    lines.push("ONNX Runtime search order:".to_owned());
    lines.extend(runtime::search(dirs, runtime_setting).map(|step| format!("  {step}")));
    let library = Library::open(dirs);
    let entries = library.entries();
    let ready = entries.iter().filter(|entry| matches!(entry.state, WeightsState::Ready(_)));
    let ready: Vec<&str> = ready.map(|entry| entry.card.id.as_str()).collect();
    lines.push(format!("models: {}", if ready.is_empty() { "none".to_owned() } else { ready.join(", ") }));
    lines.extend(library.problems().iter().map(|problem| format!("model problem: {}", problem.message)));
    lines
}
