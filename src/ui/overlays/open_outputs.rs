//! The dialog that opens answers made elsewhere as a run: where they lie, the names of their classes, and a mapping for those whose shape
//! nobody knows.

use std::path::PathBuf;

use eframe::egui::{self, Button, Id, Key, Label, Modal, RichText, ScrollArea, TextEdit, Ui};

use super::super::theme;
use super::super::widgets::{Tone, banner_ui, primary_button, strong};
use super::open_s3::access::{AccessMemory, access_ui};
use crate::domain::{S3Link, S3Place};
use crate::state::{
    Action, Command, OutputsAt, OutputsFailure, OutputsWish, Overlay, State, TaskSignal,
};

const WIDTH: f32 = 640.0;
const WHERE: &str = "Folder of outputs";
const LABEL_SETS: [&str; 4] = ["imagenet", "coco-80", "coco-91", "cifar-10"];
const OF_CLASSES: &str = "id = \"my-classes\"\nname = \"My classes\"\nlabels = \"imagenet\"\n\n[answer.classification]\nscores = \"/predictions/0\"\nvalues = \"probabilities\"   # or logits\nbackground = false          # whether class 0 is background\n";
const OF_BOXES: &str = "id = \"my-boxes\"\nname = \"My boxes\"\nlabels = \"coco-80\"\n\n[answer.detection]\nboxes = \"/predictions/0/boxes\"\nclasses = \"/predictions/0/classes\"\nscores = \"/predictions/0/scores\"\nbox_format = \"xyxy\"        # yxyx, xywh, cxcywh\nbox_space = \"normalised\"   # or pixels\n";

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct OpenOutputsMemory {
    address: String,
    labels: String,
    mapping: String,
    saves_mapping: bool,
    access: AccessMemory,
    was_open: bool,
}

pub(in super::super) fn open_outputs_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut OpenOutputsMemory,
    commands: &mut Vec<Command>,
) {
    let is_open = state.overlay == Overlay::OpenOutputs;
    let is_new = is_open && !memory.was_open;
    memory.was_open = is_open;
    if !is_open {
        return;
    }
    let modal = Modal::new(Id::unique("open outputs"))
        .frame(theme::dialog_frame(ctx))
        .show(ctx, |ui| {
            let room = ctx.content_rect().size();
            ui.set_width(WIDTH.min(room.x - 60.0));
            ScrollArea::vertical()
                .max_height(room.y - 60.0)
                .show(ui, |ui| contents_ui(ui, state, memory, is_new, commands));
        });
    if modal.should_close() && !egui::Popup::is_any_open(ctx) {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut OpenOutputsMemory,
    is_new: bool,
    commands: &mut Vec<Command>,
) {
    ui.label(strong(Action::OpenOutputs.label().trim_end_matches('…')).size(18.0));
    ui.weak("Answers that were made elsewhere become a run over the images that are open");
    ui.add_space(4.0);
    let of_job = match state.remote.outputs.wish.as_ref().map(|wish| &wish.at) {
        Some(OutputsAt::Job(id)) if memory.address.trim().is_empty() => Some(id.clone()),
        _ => None,
    };
    ui.label(strong("Where they lie"));
    if let Some(id) = &of_job {
        ui.weak(format!(
            "In the outputs of the job {}, or in another folder:",
            id.name
        ));
    }
    let field = TextEdit::singleline(&mut memory.address)
        .hint_text("s3://bucket/folder/, or a folder of this machine")
        .desired_width(f32::INFINITY);
    let field = ui.add(field);
    if is_new {
        field.request_focus();
    }
    let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    field.accessible_name(WHERE);
    let at = at_of(state, memory, of_job);
    if S3Link::is_meant_by(memory.address.trim()) {
        access_ui(ui, state, &mut memory.access, commands);
    }
    ui.add_space(6.0);
    labels_ui(ui, &mut memory.labels);
    ui.add_space(6.0);
    failure_ui(ui, state);
    mapping_ui(ui, state, memory);
    ui.add_space(8.0);
    ui.horizontal(|ui| {
        let task = state.remote.outputs.task;
        let is_ready = at.is_some() && task.is_none();
        let open = ui.add_enabled(is_ready, primary_button(ui, "Open as a run"));
        let open = open.on_disabled_hover_text("Say where the outputs lie");
        if let (true, Some(at)) = (open.clicked() || (is_entered && is_ready), at) {
            commands.push(Command::OpenOutputs(Box::new(OutputsWish {
                at,
                labels: memory.labels.trim().to_owned(),
                mapping: memory.mapping.clone(),
                saves_mapping: memory.saves_mapping,
            })));
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

/// `None` while nothing that can be opened is typed.
fn at_of(
    state: &State,
    memory: &OpenOutputsMemory,
    of_job: Option<crate::state::JobId>,
) -> Option<OutputsAt> {
    let address = memory.address.trim();
    if address.is_empty() {
        return of_job.map(OutputsAt::Job);
    }
    if !S3Link::is_meant_by(address) {
        return Some(OutputsAt::Folder(PathBuf::from(address)));
    }
    let link = S3Link::parse(address).ok()?;
    Some(OutputsAt::Place(Box::new(S3Place {
        access: memory.access.with_drafts(state.s3.access.clone()),
        ..S3Place::new(link.address.as_folder())
    })))
}

fn labels_ui(ui: &mut Ui, labels: &mut String) {
    ui.label(strong("Names of the classes"));
    ui.horizontal_wrapped(|ui| {
        let field = TextEdit::singleline(labels)
            .hint_text("as the outputs or the model say")
            .desired_width(300.0);
        let field = ui.add(field);
        field
            .on_hover_text("A label set, a file with a name a line, or a label map (.pbtxt)")
            .accessible_name("Label set or label file");
        ui.menu_button("Label sets", |ui| {
            for name in LABEL_SETS {
                if ui.button(name).clicked() {
                    name.clone_into(labels);
                    ui.close();
                }
            }
        });
    });
}

fn failure_ui(ui: &mut Ui, state: &State) {
    let Some(OutputsFailure::Failed { message, raw }) = &state.remote.outputs.failure else {
        return;
    };
    banner_ui(ui, Tone::Error, message, |_| {});
    if let Some(raw) = raw {
        ui.label("The first output begins so:");
        ScrollArea::both()
            .id_salt("raw output")
            .max_height(140.0)
            .show(ui, |ui| {
                ui.add(Label::new(RichText::new(raw).monospace().small()).wrap());
            });
    }
    ui.add_space(6.0);
}

fn mapping_ui(ui: &mut Ui, state: &State, memory: &mut OpenOutputsMemory) {
    let is_unknown = matches!(
        &state.remote.outputs.failure,
        Some(OutputsFailure::Failed { raw: Some(_), .. })
    );
    egui::CollapsingHeader::new("Mapping for outputs that Spotcheck does not know")
        .open(is_unknown.then_some(true))
        .show(ui, |ui| {
            ui.weak("Says where scores, classes and boxes stand in the JSON, as JSON Pointers; empty lets Spotcheck recognise the usual ones");
            ui.horizontal_wrapped(|ui| {
                for (name, text) in [("Begin with classes", OF_CLASSES), ("Begin with boxes", OF_BOXES)] {
                    if ui.add(Button::new(name)).clicked() {
                        text.clone_into(&mut memory.mapping);
                    }
                }
            });
            let field = TextEdit::multiline(&mut memory.mapping)
                .code_editor()
                .hint_text("The text of a mapping, or the id of one that was saved")
                .desired_rows(6)
                .desired_width(f32::INFINITY);
            ui.add(field).accessible_name("Mapping");
            ui.checkbox(&mut memory.saves_mapping, "Keep this mapping under its id");
        });
}
