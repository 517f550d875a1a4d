//! The dialog that opens predictions of other programs as a run: a file or folder, of this machine or in S3.

use std::path::PathBuf;

use eframe::egui::{self, Key, TextEdit, Ui};

use super::super::widgets::{Tone, banner_ui, primary_button, strong};
use super::dialog::dialog;
use super::open_s3::access::{AccessMemory, access_ui};
use super::open_s3::problem_text;
use crate::domain::{S3Link, S3Place};
use crate::state::{
    Action, Command, FilesAt, OutputsCommand, OutputsFailure, Overlay, PickKind, Queue, State, TaskSignal,
};

const WIDTH: f32 = 560.0;
const WHERE: &str = "File or folder of predictions";

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct OpenPredictionsMemory {
    address: String,
    access: AccessMemory,
    was_open: bool,
}

pub(in super::super) fn open_predictions_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut OpenPredictionsMemory,
    commands: &mut Queue<Command>,
) {
    let is_open = state.overlay == Overlay::OpenPredictions;
    let is_new = is_open && !memory.was_open;
    memory.was_open = is_open;
    if !is_open {
        return;
    }
    let modal = dialog(ctx, "open predictions").show(ctx, |ui| {
        ui.set_width(WIDTH);
        ui.label(strong(Action::OpenPredictions.label().trim_end_matches('…')).size(18.0));
        ui.weak(
            "Opens predictions of another program as a run over the open images: COCO, YOLO, Pascal VOC, CSV or JSON \
             Lines, recognised by the content. They may also be dropped on the window.",
        );
        ui.add_space(8.0);
        let is_entered = place_ui(ui, state, memory, is_new, commands);
        footer_ui(ui, state, memory, is_entered, commands);
    });
    if modal.should_close() && !egui::Popup::is_any_open(ctx) {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}

/// Returns true if Enter was pressed to open them.
fn place_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut OpenPredictionsMemory,
    is_new: bool,
    commands: &mut Queue<Command>,
) -> bool {
    let field = TextEdit::singleline(&mut memory.address)
        .hint_text("results.json, or s3://bucket/results.json")
        .desired_width(f32::INFINITY);
    let field = ui.add(field);
    if is_new {
        field.request_focus();
    }
    let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    field.accessible_name(WHERE);
    ui.add_space(4.0);
    ui.add_enabled_ui(state.remote.outputs.task.is_none(), |ui| {
        ui.horizontal(|ui| {
            if ui.button("Choose a file…").clicked() {
                commands.push(OutputsCommand::PickPredictions(PickKind::File));
            }
            if ui.button("Choose a folder…").clicked() {
                commands.push(OutputsCommand::PickPredictions(PickKind::Folder));
            }
        });
    });
    let address = memory.address.trim();
    if S3Link::is_address(address) {
        if let Err(error) = S3Link::parse(address) {
            ui.label(problem_text(ui, &error));
        }
        access_ui(ui, state, &mut memory.access, commands);
    }
    is_entered
}

/// `None` while nothing valid is typed.
fn place_of(state: &State, memory: &OpenPredictionsMemory) -> Option<FilesAt> {
    let address = memory.address.trim();
    if address.is_empty() {
        return None;
    }
    if !S3Link::is_address(address) {
        return Some(FilesAt::Path(PathBuf::from(address)));
    }
    let link = S3Link::parse(address).ok()?;
    let access = memory.access.with_drafts(state.s3.access.clone());
    Some(FilesAt::S3(Box::new(S3Place { access, ..S3Place::new(link.address) })))
}

fn footer_ui(
    ui: &mut Ui,
    state: &State,
    memory: &OpenPredictionsMemory,
    is_entered: bool,
    commands: &mut Queue<Command>,
) {
    ui.add_space(8.0);
    if let Some(OutputsFailure::Failed { message, .. }) = &state.remote.outputs.failure {
        banner_ui(ui, Tone::Error, message, |_| {});
        ui.add_space(4.0);
    }
    ui.horizontal(|ui| {
        let task = state.remote.outputs.task;
        let at = place_of(state, memory).filter(|_| task.is_none());
        let open = ui.add_enabled(at.is_some(), primary_button(ui, "Open as a run"));
        let open = open.on_disabled_hover_text(match task {
            Some(_) => "Wait until reading ends, or stop it",
            None => "Enter or choose a file or folder",
        });
        if let (true, Some(at)) = (open.clicked() || is_entered, at) {
            commands.push(OutputsCommand::OpenPredictions(at));
        }
        if let Some(task) = task {
            ui.spinner();
            if ui.button("Stop").clicked() {
                commands.push(Command::SignalTask(task, TaskSignal::Cancel));
            }
        }
        if ui.button("Cancel").clicked() {
            commands.push(Command::SetOverlay(Overlay::None));
        }
    });
}
