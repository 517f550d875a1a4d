//! Diagnostics for a bug report, without secrets.

use std::sync::Arc;

use super::{Delivery, Shared};
use crate::window::state::Event;

pub(crate) fn copy(shared: &Arc<Shared>, lines: Vec<String>) {
    shared.spawn("collect diagnostics", move |shared| {
        let mut text = vec![
            format!("Spotcheck {}", env!("CARGO_PKG_VERSION")),
            format!(
                "system: {} {}, {} cores",
                std::env::consts::OS,
                std::env::consts::ARCH,
                std::thread::available_parallelism().map_or(0, usize::from)
            ),
        ];
        text.extend(lines);
        text.push(format!("log: {}", shared.dirs.log_file().display()));
        text.push(String::new());
        shared.deliver(Delivery::CopyText(text.join("\n")));
        shared.report(Event::Notice("Copied the diagnostics".to_owned()));
    });
}
