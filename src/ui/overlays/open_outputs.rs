//! The dialog that opens the outputs of a job or another program as a run: where they are and how they are read, with a
//! preview of the first ones.

use std::path::PathBuf;

use eframe::egui::{self, Button, Key, Label, RichText, TextEdit, Ui, vec2};

use super::super::textures::Textures;
use super::super::widgets::{Tone, banner_ui, primary_button, strong};
use super::dialog::dialog;
use super::form::two_columns_ui;
use super::open_s3::access::{AccessMemory, access_ui};
use super::open_s3::problem_text;
use super::reading::{ReadingMemory, examples_ui, reading_ui};
use crate::domain::{S3Link, S3Place};
use crate::state::{
    Action, Command, JobId, OutputsAt, OutputsCommand, OutputsFailure, OutputsRequest, Overlay, Queue, State,
    TaskSignal,
};

const WIDTH: f32 = 1000.0;
const FOOTER_HEIGHT: f32 = 48.0;
const LOOK_WIDTH: f32 = 124.0;
const WHERE: &str = "Folder of outputs";
const NOTHING_SEEN: &str = "“Preview” shows the first outputs here: their contents, and how they are read";

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct OpenOutputsMemory {
    address: String,
    reading: ReadingMemory,
    access: AccessMemory,
    was_open: bool,
}

pub(in super::super) fn open_outputs_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut OpenOutputsMemory,
    textures: &mut Textures,
    commands: &mut Queue<Command>,
) {
    let is_open = state.overlay == Overlay::OpenOutputs;
    let is_new = is_open && !memory.was_open;
    memory.was_open = is_open;
    if !is_open {
        return;
    }
    let modal = dialog(ctx, "open outputs").show(ctx, |ui| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0 + FOOTER_HEIGHT);
        ui.set_width(WIDTH.min(room.x));
        contents_ui(ui, state, memory, textures, is_new, room.y, commands);
    });
    if modal.should_close() && !egui::Popup::is_any_open(ctx) {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut OpenOutputsMemory,
    textures: &mut Textures,
    is_new: bool,
    height: f32,
    commands: &mut Queue<Command>,
) {
    ui.label(strong(Action::OpenOutputs.label().trim_end_matches('…')).size(18.0));
    ui.weak("Opens outputs of a job or another program as a run over the open images");
    ui.add_space(4.0);
    let mut is_entered = false;
    two_columns_ui(
        ui,
        height - 58.0,
        memory,
        |ui, memory| {
            is_entered = place_ui(ui, state, memory, is_new, commands);
            ui.add_space(6.0);
            reading_ui(ui, state, &mut memory.reading, commands);
        },
        |ui, memory| examples_ui(ui, state, &mut memory.reading, textures, NOTHING_SEEN),
    );
    footer_ui(ui, state, memory, is_entered, commands);
}

/// The job whose outputs were requested last, while no other folder is typed.
fn job_of<'s>(state: &'s State, memory: &OpenOutputsMemory) -> Option<&'s JobId> {
    match state.remote.outputs.request.as_ref().map(|request| &request.at) {
        Some(OutputsAt::Job(id)) if memory.address.trim().is_empty() => Some(id),
        _ => None,
    }
}

/// Returns true if Enter was pressed to open them.
fn place_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut OpenOutputsMemory,
    is_new: bool,
    commands: &mut Queue<Command>,
) -> bool {
    ui.label(strong("Folder"));
    if let Some(id) = job_of(state, memory) {
        let text = format!("The outputs of the job {}, or another folder:", id.name);
        ui.add(Label::new(RichText::new(text).weak()).wrap());
    }
    let mut is_entered = false;
    ui.horizontal(|ui| {
        let field = TextEdit::singleline(&mut memory.address)
            .hint_text("s3://bucket/folder/, or a folder of this machine")
            .desired_width(ui.available_width() - LOOK_WIDTH - ui.spacing().item_spacing.x);
        let field = ui.add(field);
        if is_new {
            field.request_focus();
        }
        is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        field.accessible_name(WHERE);
        let at = at_of(state, memory);
        let is_ready = at.is_some() && state.remote.outputs.task.is_none();
        let look = Button::new("Preview").min_size(vec2(LOOK_WIDTH, 0.0));
        let look = ui.add_enabled(is_ready, look);
        let look = look.on_hover_text("Shows the first outputs on the right, without opening them");
        let look = look.on_disabled_hover_text("Enter the folder of the outputs");
        if let (true, Some(at)) = (look.clicked(), at) {
            commands.push(OutputsCommand::Preview(Box::new(at)));
        }
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
fn at_of(state: &State, memory: &OpenOutputsMemory) -> Option<OutputsAt> {
    let address = memory.address.trim();
    if address.is_empty() {
        return job_of(state, memory).cloned().map(OutputsAt::Job);
    }
    if !S3Link::is_address(address) {
        return Some(OutputsAt::Folder(PathBuf::from(address)));
    }
    let link = S3Link::parse(address).ok()?;
    Some(OutputsAt::Place(Box::new(S3Place {
        access: memory.access.with_drafts(state.s3.access.clone()),
        ..S3Place::new(link.address.as_folder())
    })))
}

fn footer_ui(ui: &mut Ui, state: &State, memory: &OpenOutputsMemory, is_entered: bool, commands: &mut Queue<Command>) {
    ui.add_space(8.0);
    // The preview already says why the first predictions cannot be read.
    if let Some(OutputsFailure::Failed { message, examples: None }) = &state.remote.outputs.failure {
        banner_ui(ui, Tone::Error, message, |_| {});
        ui.add_space(4.0);
    }
    ui.horizontal(|ui| {
        let task = state.remote.outputs.task;
        let request = at_of(state, memory).zip(memory.reading.request().ok());
        let is_ready = request.is_some() && task.is_none();
        let open = ui.add_enabled(is_ready, primary_button(ui, "Open as a run"));
        let open = open.on_disabled_hover_text(match memory.reading.request() {
            _ if task.is_some() => "Wait until reading ends, or stop it".to_owned(),
            Err(fault) => format!("The mapping is not complete: {}", fault.reason),
            Ok(_) => "Enter the folder of the outputs".to_owned(),
        });
        if let (true, Some((at, reading))) = (open.clicked() || (is_entered && is_ready), request) {
            commands.push(OutputsCommand::Open(Box::new(OutputsRequest { at, reading })));
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
