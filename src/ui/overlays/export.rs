//! The dialog about an export, and the notice when it is whole.

use std::path::PathBuf;

use eframe::egui::{self, Id, Modal, RichText, ScrollArea, TextEdit, Ui};

use super::super::theme;
use super::super::widgets::strong;
use crate::domain::{
    BoxChoice, ClassChoice, ExportFormat, ExportOptions, ModelTask, PictureKind, SampleUri,
    VerdictChoice,
};
use crate::state::{Command, ExportScope, Exported, Overlay, State};

const WIDTH: f32 = 560.0;

#[derive(Default)]
pub(in super::super) struct ExportMemory {
    path: String,
    replaces: bool,
    taken_over: Option<PathBuf>,
}

pub(in super::super) fn export_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut ExportMemory,
    commands: &mut Vec<Command>,
) {
    if let Some(exported) = &state.exported {
        exported_ui(ctx, exported, commands);
    }
    if state.overlay != Overlay::Export {
        memory.replaces = false;
        return;
    }
    let picked = &state.export.picked;
    if *picked != memory.taken_over {
        memory.taken_over.clone_from(picked);
        if let Some(path) = picked {
            memory.path = path.display().to_string();
        }
    }
    let modal = Modal::new(Id::unique("export"))
        .frame(theme::dialog_frame(ctx))
        .show(ctx, |ui| {
            ui.set_width(WIDTH.min(ctx.content_rect().width() - 60.0));
            contents_ui(ui, state, memory, commands);
        });
    if modal.should_close() {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}

fn contents_ui(ui: &mut Ui, state: &State, memory: &mut ExportMemory, commands: &mut Vec<Command>) {
    let task = state.run().map(|run| run.info.card.task);
    let mut options = state.export.options;
    let mut scope = state.export.scope;
    ui.label(strong("Export").size(18.0));
    if let Some(run) = state.run() {
        ui.weak(format!("The answers of the run “{}”", run.info.name));
    }
    ui.add_space(8.0);
    ui.label(strong("Format"));
    ui.horizontal_wrapped(|ui| {
        for format in ExportFormat::ALL {
            let is_possible = task.is_some_and(|task| format.takes(task));
            ui.add_enabled_ui(is_possible, |ui| {
                ui.selectable_value(&mut options.format, format, format.name())
                    .on_hover_text(format.description())
                    .on_disabled_hover_text("This format holds boxes, and a classifier gives none");
            });
        }
    });
    ui.weak(options.format.description());
    ui.add_space(6.0);
    ui.label(strong("Images"));
    ui.horizontal_wrapped(|ui| {
        for choice in ExportScope::ALL {
            let text = format!("{} ({})", choice.name(), choice.len(state));
            ui.radio_value(&mut scope, choice, text);
        }
    });
    ui.add_space(6.0);
    options_ui(ui, task, &mut options);
    ui.add_space(6.0);
    target_ui(ui, options.format, memory, commands);
    ui.add_space(10.0);
    if (options, scope) != (state.export.options, state.export.scope) {
        commands.push(Command::SetExport(options, scope));
    }
    ui.horizontal(|ui| {
        let path = memory.path.trim();
        let is_possible = task.is_some_and(|task| options.format.takes(task));
        let is_ready = is_possible && !path.is_empty() && scope.len(state) > 0;
        let export = ui.add_enabled(is_ready, egui::Button::new(strong("Export now")));
        let export = export.on_disabled_hover_text(
            "Choose a format that fits the model, at least one image, and where to write",
        );
        if export.clicked() {
            commands.push(Command::Export {
                path: PathBuf::from(path),
                replaces: memory.replaces,
            });
        }
        if ui.button("Cancel").clicked() {
            commands.push(Command::SetOverlay(Overlay::None));
        }
    });
}

/// Those that mean something for the format.
fn options_ui(ui: &mut Ui, task: Option<ModelTask>, options: &mut ExportOptions) {
    let format = options.format;
    ui.label(strong("What of them"));
    let mut all = options.boxes == BoxChoice::All;
    let things = if task == Some(ModelTask::Classification) {
        "classes"
    } else {
        "boxes"
    };
    ui.checkbox(
        &mut all,
        format!("All stored {things}, also those that the filters hide"),
    );
    options.boxes = if all {
        BoxChoice::All
    } else {
        BoxChoice::Visible
    };
    ui.horizontal_wrapped(|ui| {
        for choice in VerdictChoice::ALL {
            ui.radio_value(&mut options.verdicts, choice, choice.name());
        }
    });
    if format.is_dataset() {
        let mut judged = options.classes == ClassChoice::Judged;
        ui.checkbox(&mut judged, "Put wrong classes right, as they were judged");
        options.classes = if judged {
            ClassChoice::Judged
        } else {
            ClassChoice::Model
        };
    }
    if format == ExportFormat::Yolo {
        ui.checkbox(&mut options.yolo_scores, "Scores as a sixth column")
            .on_hover_text("Many trainers refuse it");
    }
    if matches!(format, ExportFormat::Yolo | ExportFormat::Voc) {
        ui.checkbox(
            &mut options.with_images,
            "Copies of the images beside the labels",
        );
    }
    if format == ExportFormat::Pictures {
        ui.horizontal_wrapped(|ui| {
            for kind in PictureKind::ALL {
                ui.radio_value(&mut options.picture_kind, kind, kind.name());
            }
        });
    }
}

fn target_ui(
    ui: &mut Ui,
    format: ExportFormat,
    memory: &mut ExportMemory,
    commands: &mut Vec<Command>,
) {
    let name = match format.extension() {
        Some(_) => "File to write",
        None => "Folder to write",
    };
    ui.label(strong(name));
    ui.horizontal(|ui| {
        let room = ui.available_width() - 100.0;
        let field = ui.add(TextEdit::singleline(&mut memory.path).desired_width(room));
        field.accessible_name(name);
        if ui.button("Choose…").clicked() {
            commands.push(Command::PickExportTarget);
        }
    });
    ui.checkbox(
        &mut memory.replaces,
        "Replace a file or an earlier export of this name",
    );
}

fn exported_ui(ctx: &egui::Context, exported: &Exported, commands: &mut Vec<Command>) {
    let modal = Modal::new(Id::unique("exported"))
        .frame(theme::dialog_frame(ctx))
        .show(ctx, |ui| {
            ui.set_width(WIDTH.min(ctx.content_rect().width() - 60.0));
            ui.label(strong("Exported").size(18.0));
            ui.label(&exported.summary);
            if !exported.notes.is_empty() {
                ScrollArea::vertical().max_height(260.0).show(ui, |ui| {
                    for note in exported.notes.iter().take(100) {
                        ui.label(RichText::new(note).weak());
                    }
                    let more = exported.notes.len().saturating_sub(100);
                    if more > 0 {
                        ui.weak(format!("and {more} more"));
                    }
                });
            }
            ui.add_space(8.0);
            ui.horizontal(|ui| {
                if ui.button("Show the export in the file manager").clicked() {
                    let path = exported.path.display().to_string();
                    commands.push(Command::RevealPath(SampleUri::new(path)));
                }
                if ui.button("Close").clicked() {
                    commands.push(Command::DismissExported);
                }
            });
        });
    if modal.should_close() {
        commands.push(Command::DismissExported);
    }
}
