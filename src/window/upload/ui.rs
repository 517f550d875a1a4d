//! The upload dialog, and the notice when an upload has ended.

use strum::VariantArray;

use crate::aws::upload::plan::{FileAmount, PlannedState, UploadPlan};
use crate::domain::{S3Link, S3Place};
use crate::window::s3::ui::access::{AccessMemory, access_ui};
use crate::window::s3::ui::access_of;
use crate::window::state::{ExportScope, S3Command, UploadCommand, Uploaded};
use crate::window::ui::dialog::{dialog, is_closed};
use crate::window::ui::prelude::*;

const WIDTH: f32 = 600.0;
const ADDRESS: &str = "S3 folder";
/// The number of lines drawn per list.
const MAX_LINES: usize = 100;

#[derive(Default)]
pub(crate) struct UploadMemory {
    address: String,
    scope: Option<ExportScope>,
    access: AccessMemory,
    replaces: bool,
    was_open: bool,
}

pub(crate) fn upload_ui(ctx: &Context, state: &State, memory: &mut UploadMemory, commands: &mut Commands) {
    if let Some(uploaded) = &state.uploaded {
        uploaded_ui(ctx, uploaded, commands);
    }
    let is_open = state.overlay == Overlay::Upload;
    let is_new = is_open && !memory.was_open;
    memory.was_open = is_open;
    if !is_open {
        return;
    }
    if is_new {
        memory.replaces = false;
        memory.scope = None;
    }
    let modal = dialog(ctx, "upload").show(ctx, |ui| {
        ui.set_width(WIDTH.min(ctx.content_rect().width() - 60.0));
        let room = ctx.content_rect().height() - 60.0;
        ScrollArea::vertical()
            .max_height(room)
            .min_scrolled_height(room)
            .show(ui, |ui| contents_ui(ui, state, memory, is_new, commands));
    });
    if is_closed(ctx, &modal) {
        close(commands);
    }
}

fn contents_ui(ui: &mut Ui, state: &State, memory: &mut UploadMemory, is_new: bool, commands: &mut Commands) {
    heading_ui(ui, "Upload to S3", "");
    let has_selection = state.selection.selected().len() > 1;
    let mut scope = memory.scope.unwrap_or(if has_selection { ExportScope::Selection } else { ExportScope::All });
    let before = scope;
    ui.label(strong("Images"));
    for &choice in ExportScope::VARIANTS {
        let text = format!("{} ({})", choice.into_str(), grouped(choice.len(state)));
        radio_ui(ui, &mut scope, choice, text);
    }
    memory.scope = Some(scope);
    ui.add_space(6.0);
    ui.label(strong("Destination"));
    let field = Field::new(ADDRESS).hint("s3://bucket/folder/").text_ui(ui, &mut memory.address);
    if is_new {
        field.request_focus();
    }
    let is_entered = enter_pressed(&field);
    let is_changed = field.changed() || scope != before;
    let link = S3Link::parse(&memory.address);
    if let (Err(error), false) = (&link, memory.address.trim().is_empty()) {
        problem_ui(ui, error);
    }
    ui.add_space(6.0);
    let access_before = commands.len();
    access_ui(ui, state, &mut memory.access, commands);
    let is_other_access =
        commands[access_before..].iter().any(|command| matches!(command, Command::S3(S3Command::SetAccess(_))));
    ui.add_space(8.0);
    if is_changed || is_other_access {
        commands.push(UploadCommand::ForgetPlan);
    }
    if let Loadable::Ready(plan) = &state.upload.plan {
        plan_ui(ui, plan, memory);
        ui.add_space(8.0);
        ready_ui(ui, plan, memory, commands);
        return;
    }
    if let Loadable::Failed(message) = &state.upload.plan {
        message_ui(ui, Tone::Error, message.message());
    }
    ui.horizontal(|ui| {
        let is_looking = matches!(state.upload.plan, Loadable::Loading(_));
        let is_ready = link.is_ok() && memory.access.is_valid() && scope.len(state) > 0 && !is_looking;
        let missing = "Enter the address of a bucket or folder";
        let look = primary_button_ui(ui, "Preview upload", (!is_ready).then_some(missing));
        if let (true, Ok(link)) = (look.clicked() || (is_entered && is_ready), link) {
            let access = memory.access.with_drafts(access_of(&state.s3.access, &link));
            commands.push(S3Command::SetAccess(access.clone()));
            let target = S3Place { access, ..S3Place::new(link.address.as_folder()) };
            commands.push(UploadCommand::Plan(Box::new(target), scope));
        }
        if is_looking {
            ui.spinner();
        }
        if ui.button("Cancel").clicked() {
            close(commands);
        }
    });
}

fn close(commands: &mut Commands) {
    commands.push(UploadCommand::ForgetPlan);
    commands.push(Command::CLOSE_OVERLAY);
}

/// The plan of the upload: nothing has been sent yet.
fn plan_ui(ui: &mut Ui, plan: &UploadPlan, memory: &mut UploadMemory) {
    ui.label(strong(format!("{} to upload to {}", plan.new_files(), plan.target.address)));
    let nothing = FileAmount::default();
    let same = plan.same_files();
    if same != nothing {
        ui.label(format!("{same} already in S3"));
    }
    let conflicts = plan.conflicting_files();
    if conflicts != nothing {
        ui.label(format!("{conflicts} already in S3 with different content"));
        let names = plan.files.iter().filter_map(|planned| match &planned.state {
            PlannedState::Conflict { why, .. } => Some(format!("{}: {why}", planned.file.name)),
            PlannedState::New | PlannedState::Same => None,
        });
        lines_ui(ui, "conflicts", names, conflicts.files as usize);
        checkbox_ui(ui, &mut memory.replaces, "Replace existing objects").on_hover_text(
            "Otherwise, existing objects are kept. Only the versions listed here are replaced, never \
                newer ones",
        );
    }
    if !plan.problems.is_empty() {
        ui.label(format!("{} cannot be uploaded", plan.problems.len()));
        let lines = plan.problems.iter().map(ToString::to_string);
        lines_ui(ui, "problems", lines, plan.problems.len());
    }
}

fn lines_ui(ui: &mut Ui, id: &str, lines: impl Iterator<Item = String>, count: usize) {
    ScrollArea::vertical().id_salt(id).max_height(140.0).show(ui, |ui| {
        for line in lines.take(MAX_LINES) {
            note_ui(ui, line);
        }
        let more = count.saturating_sub(MAX_LINES);
        if more > 0 {
            ui.weak(format!("and {more} more"));
        }
    });
}

fn ready_ui(ui: &mut Ui, plan: &UploadPlan, memory: &UploadMemory, commands: &mut Commands) {
    let replaced = if memory.replaces { plan.conflicting_files().files } else { 0 };
    ui.horizontal(|ui| {
        let is_ready = plan.new_files().files + replaced > 0;
        let button = primary_button_ui(ui, "Upload now", (!is_ready).then_some("Nothing to upload"));
        if button.clicked() {
            commands.push(UploadCommand::Start { replaces: memory.replaces });
        }
        let can_be_sent = plan.new_files().files + plan.conflicting_files().files > 0;
        if ui.button(if can_be_sent { "Cancel" } else { "Close" }).clicked() {
            close(commands);
        }
    });
}

fn uploaded_ui(ctx: &Context, uploaded: &Uploaded, commands: &mut Commands) {
    dialog_ui(ctx, "uploaded", WIDTH, UploadCommand::Dismiss, commands, |ui, commands| {
        heading_ui(ui, "Upload", "");
        wrapped_ui(ui, format!("{} to {}", uploaded.summary, uploaded.target.address));
        let notes = uploaded.notes.iter().cloned();
        lines_ui(ui, "notes", notes, uploaded.notes.len());
        ui.add_space(8.0);
        ui.horizontal(|ui| {
            if ui.add(Button::new("Open this S3 folder")).clicked() {
                commands.push(UploadCommand::Dismiss);
                commands.push(BrowseCommand::OpenPlace(Box::new(uploaded.target.clone())));
            }
            command_button_ui(ui, "Close", commands, || UploadCommand::Dismiss);
        });
    });
}
