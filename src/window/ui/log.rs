//! The end of a container's log.

use eframe::egui::{Label, RichText, ScrollArea, Ui};

use crate::domain::Utc;
use crate::sagemaker::spec::transform::LogLine;

const HEIGHT: f32 = 150.0;

pub(crate) fn log_lines_ui(ui: &mut Ui, lines: &[LogLine]) {
    if lines.is_empty() {
        ui.weak("The log is empty");
        return;
    }
    ScrollArea::both().id_salt("log").max_height(HEIGHT).stick_to_bottom(true).auto_shrink([false, true]).show(
        ui,
        |ui| {
            for line in lines {
                let clock = Utc::from_ms(line.at_ms).time();
                let text = format!("{clock} {}", line.message.trim_end());
                ui.add(Label::new(RichText::new(text).monospace().small()).extend());
            }
        },
    );
}
