//! The dialog that opens the outputs of a job or another tool as a run: their location and format, with a preview of
//! the first ones.

pub(crate) mod reading;

use self::reading::{ReadingMemory, examples_ui, reading_ui};
use crate::window::state::{JobId, OutputsAt, OutputsCommand, OutputsRequest};
use crate::window::ui::field::{PlaceMemory, footer_ui};
use crate::window::ui::form::two_columns_ui;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

const WIDTH: f32 = 1000.0;
const FOOTER_HEIGHT: f32 = 48.0;
const LOOK_WIDTH: f32 = 124.0;
/// The name of the field, and its hint.
const FIELD: (&str, &str) = ("Output folder", "s3://bucket/folder/, or a local folder");
const NOTHING_SEEN: &str = "“Preview” shows the contents of the first outputs here, and how they are read";

#[derive(Default)]
pub(crate) struct OpenOutputsMemory {
    place: PlaceMemory,
    reading: ReadingMemory,
    was_open: bool,
}

pub(crate) fn open_outputs_ui(
    ctx: &Context,
    state: &State,
    memory: &mut OpenOutputsMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    let is_open = state.overlay == Overlay::OpenOutputs;
    let is_new = is_open && !memory.was_open;
    memory.was_open = is_open;
    if !is_open {
        return;
    }
    dialog_ui(ctx, "open outputs", WIDTH, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0 + FOOTER_HEIGHT);
        contents_ui(ui, state, memory, textures, is_new, room.y, commands);
    });
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut OpenOutputsMemory,
    textures: &mut Textures,
    is_new: bool,
    height: f32,
    commands: &mut Commands,
) {
    ui.label(strong(Action::OpenOutputs.label().trim_end_matches('…')).size(18.0));
    ui.weak("Opens the outputs of a job or another tool as a run over the open images");
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
    let command = command_of(state, memory);
    let opening = Some(&state.remote.outputs);
    memory.place.failure_ui(ui, opening);
    footer_ui(ui, state, opening, "Open as a run", command, is_entered, commands);
}

/// The job whose outputs were requested last, while no other folder is typed.
fn job_of<'s>(state: &'s State, memory: &OpenOutputsMemory) -> Option<&'s JobId> {
    match state.remote.outputs.request.as_ref().map(|request| &request.at) {
        Some(OutputsAt::Job(id)) if memory.place.is_empty() => Some(id),
        _ => None,
    }
}

/// Returns true if Enter was pressed to open them.
fn place_ui(ui: &mut Ui, state: &State, memory: &mut OpenOutputsMemory, is_new: bool, commands: &mut Commands) -> bool {
    ui.label(strong("Folder"));
    if let Some(id) = job_of(state, memory) {
        let text = format!("Outputs of the job {}, or another folder:", id.name);
        note_ui(ui, text);
    }
    let mut is_entered = false;
    ui.horizontal(|ui| {
        let width = ui.available_width() - LOOK_WIDTH - ui.spacing().item_spacing.x;
        is_entered = memory.place.field_ui(ui, FIELD, width, is_new);
        let at = at_of(state, memory);
        let is_ready = at.is_some() && state.remote.outputs.task.is_none();
        let look = Button::new("Preview").min_size(vec2(LOOK_WIDTH, 0.0));
        let look = ui.add_enabled(is_ready, look);
        let look = look.on_hover_text("Shows the first outputs on the right, without opening them");
        let look = look.on_disabled_hover_text("Enter the output folder");
        if let (true, Some(at)) = (look.clicked(), at) {
            commands.push(OutputsCommand::Preview(Box::new(at)));
        }
    });
    memory.place.access_ui(ui, state, commands);
    is_entered
}

/// `None` while nothing valid is typed.
fn at_of(state: &State, memory: &OpenOutputsMemory) -> Option<OutputsAt> {
    if memory.place.is_empty() {
        return job_of(state, memory).cloned().map(OutputsAt::Job);
    }
    memory.place.location(state).map(OutputsAt::Folder)
}

/// The button's command, or why it is disabled.
fn command_of(state: &State, memory: &OpenOutputsMemory) -> Result<Command, String> {
    let reading = memory.reading.final_request(state)?;
    let at = at_of(state, memory).ok_or("Enter the output folder")?;
    Ok(OutputsCommand::Open(Box::new(OutputsRequest { at, reading, compare_with: None })).into())
}
