//! The dialog that asks for a path if the desktop has no file dialog.

use std::path::PathBuf;

use eframe::egui::{self, Key, TextEdit};

use crate::window::state::{BrowseCommand, Command, FileRequest, PathQuestion, Queue, State};
use crate::window::ui::dialog::dialog;
use crate::window::ui::widgets::{focus_whole_text, primary_button, strong};

#[derive(Default)]
pub(crate) struct TypePathMemory {
    path: String,
    /// The current question, to notice another one.
    question: Option<PathQuestion>,
}

pub(crate) fn type_path_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut TypePathMemory,
    commands: &mut Queue<Command>,
) {
    let is_new = memory.question != state.path_question;
    memory.question.clone_from(&state.path_question);
    let Some(PathQuestion { request, reason }) = &state.path_question else {
        return;
    };
    if is_new {
        memory.path = match request {
            FileRequest::ProjectTarget { name } | FileRequest::ExportTarget { name } => name.clone(),
            _ => String::new(),
        };
    }
    let modal = dialog(ctx, "type a path").show(ctx, |ui| {
        ui.set_width(460.0);
        ui.label(strong(request.title()).size(15.0));
        ui.weak(reason);
        ui.add_space(6.0);
        let field = ui.add(TextEdit::singleline(&mut memory.path).desired_width(f32::INFINITY));
        if is_new {
            focus_whole_text(&field, &memory.path);
        }
        let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        field.accessible_name("Path");
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            let path = memory.path.trim();
            let ok = ui.add_enabled(!path.is_empty(), primary_button(ui, "OK"));
            if (ok.clicked() || is_entered) && !path.is_empty() {
                commands.push(BrowseCommand::TypePath(PathBuf::from(path)));
            }
            if ui.button("Cancel").clicked() {
                commands.push(BrowseCommand::CancelPath);
            }
        });
    });
    if modal.should_close() {
        commands.push(BrowseCommand::CancelPath);
    }
}
