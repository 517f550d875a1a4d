//! The dialog about a model of the user's own: what was recognised, what was only assumed, and what the model gets to
//! see.

use std::collections::BTreeMap;
use std::path::PathBuf;

use eframe::egui::{self, Align, Key, Label, Layout, RichText, ScrollArea, TextEdit, TextureHandle, Ui, vec2};

use super::super::textures::Textures;
use super::super::widgets::{Tone, banner_ui, strong};
use super::dialog::dialog;
use crate::state::{Command, Import, ImportDraft, ImportField, ImportId, ImportStatus, ModelsCommand, Queue, State};

const WIDTH: f32 = 860.0;
const PREVIEW_SIDE: f32 = 224.0;
const NAME_WIDTH: f32 = 150.0;
const VALUE_WIDTH: f32 = 130.0;

/// Drafts of the text fields.
#[derive(Default)]
pub(in super::super) struct ImportMemory {
    weights: Option<PathBuf>,
    /// The serial of the inspection that `values` were taken from.
    values_of: Option<ImportId>,
    values: BTreeMap<String, String>,
    labels: String,
    other: String,
}

pub(in super::super) fn import_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut ImportMemory,
    textures: &Textures,
    commands: &mut Queue<Command>,
) {
    let Some(import) = &state.import else {
        memory.weights = None;
        return;
    };
    if memory.weights.as_ref() != Some(&import.weights) {
        *memory = ImportMemory { weights: Some(import.weights.clone()), ..ImportMemory::default() };
    }
    let modal = dialog(ctx, "import a model").show(ctx, |ui| {
        ui.set_width(WIDTH.min(ctx.content_rect().width() - 60.0));
        contents_ui(ui, import, memory, textures, commands);
    });
    if modal.should_close() {
        commands.push(ModelsCommand::CancelImport);
    }
}

fn contents_ui(
    ui: &mut Ui,
    import: &Import,
    memory: &mut ImportMemory,
    textures: &Textures,
    commands: &mut Queue<Command>,
) {
    ui.label(strong("Add a model").size(18.0));
    let name = import.weights.file_name().unwrap_or_default();
    ui.label(RichText::new(name.to_string_lossy()).weak()).on_hover_text(import.weights.display().to_string());
    ui.add_space(8.0);
    match &import.status {
        ImportStatus::Recognising => {
            ui.weak("Reading the file…");
        }
        ImportStatus::Adding => {
            ui.weak("Copying the model into Spotcheck's folder…");
        }
        ImportStatus::Refused(reason) => banner_ui(ui, Tone::Error, reason, |_| {}),
        ImportStatus::Draft(draft) => {
            take_over(import.id, draft, memory);
            draft_ui(ui, draft, memory, textures.import_preview(import.id), commands);
        }
    }
    ui.add_space(6.0);
    labels_ui(ui, memory, commands);
    other_field_ui(ui, import, memory, commands);
    ui.add_space(10.0);
    buttons_ui(ui, import, commands);
}

/// The fields show what the last inspection found.
fn take_over(id: ImportId, draft: &ImportDraft, memory: &mut ImportMemory) {
    if memory.values_of == Some(id) {
        return;
    }
    memory.values_of = Some(id);
    let all = draft.findings.iter().chain(&draft.other_fields);
    memory.values = all.map(|field| (field.field.clone(), field.value.clone())).collect();
}

fn draft_ui(
    ui: &mut Ui,
    draft: &ImportDraft,
    memory: &mut ImportMemory,
    preview: Option<&TextureHandle>,
    commands: &mut Queue<Command>,
) {
    let labels = match draft.named_classes {
        0 => "classes have no names".to_owned(),
        count => format!("{count} named classes"),
    };
    ui.label(format!("This is a model for {}; {labels}", draft.task));
    ui.add_space(6.0);
    ui.horizontal_top(|ui| {
        let height = (ui.ctx().content_rect().height() - 330.0).clamp(120.0, 420.0);
        let width = (ui.available_width() - PREVIEW_SIDE - 24.0).max(240.0);
        ui.allocate_ui_with_layout(vec2(width, height), Layout::top_down(Align::Min), |ui| {
            ScrollArea::vertical().auto_shrink([false, true]).max_height(height).min_scrolled_height(height).show(
                ui,
                |ui| {
                    fields_ui(ui, &draft.findings, memory, commands);
                    ui.collapsing("All other fields", |ui| {
                        fields_ui(ui, &draft.other_fields, memory, commands);
                    });
                    if !draft.ignored_outputs.is_empty() {
                        let names = draft.ignored_outputs.join(", ");
                        ui.weak(format!("Unused outputs: {names}"));
                    }
                },
            );
        });
        ui.vertical(|ui| preview_ui(ui, draft, preview));
    });
}

fn preview_ui(ui: &mut Ui, draft: &ImportDraft, preview: Option<&TextureHandle>) {
    ui.label(strong("Model input"));
    match preview {
        Some(texture) => {
            let size = texture.size_vec2();
            let scale = PREVIEW_SIDE / size.max_elem().max(1.0);
            ui.image((texture.id(), size * scale));
        }
        None if draft.tensor.is_empty() => {
            ui.weak("Open an image to see the model input");
        }
        None => {}
    }
    for line in &draft.tensor {
        ui.label(RichText::new(line).small().weak());
    }
}

fn fields_ui(ui: &mut Ui, fields: &[ImportField], memory: &mut ImportMemory, commands: &mut Queue<Command>) {
    for field in fields {
        ui.horizontal_top(|ui| field_ui(ui, field, memory, commands));
    }
}

fn field_ui(ui: &mut Ui, field: &ImportField, memory: &mut ImportMemory, commands: &mut Queue<Command>) {
    let height = ui.spacing().interact_size.y;
    let name = Label::new(&field.field).truncate();
    ui.allocate_ui_with_layout(vec2(NAME_WIDTH, height), Layout::left_to_right(Align::Center), |ui| {
        ui.set_min_width(NAME_WIDTH);
        ui.add(name);
    });
    let value = memory.values.entry(field.field.clone()).or_insert_with(|| field.value.clone());
    let edit = ui.add_sized([VALUE_WIDTH, height], TextEdit::singleline(value));
    if edit.lost_focus() && *value != field.value {
        commands.push(ModelsCommand::Overrule { field: field.field.clone(), value: value.trim().to_owned() });
    }
    edit.accessible_name(&field.field);
    let mark = if field.basis == "assumed" { "⚠ " } else { "" };
    let basis = format!("{mark}{}", field.basis);
    let reason = match field.because.as_str() {
        "" => String::new(),
        because => format!(", {because}"),
    };
    ui.add(Label::new(RichText::new(format!("{basis}{reason}")).small().weak()).wrap());
}

fn labels_ui(ui: &mut Ui, memory: &mut ImportMemory, commands: &mut Queue<Command>) {
    ui.horizontal(|ui| {
        ui.label("Label file");
        let edit = ui.add(
            TextEdit::singleline(&mut memory.labels)
                .hint_text("Path of a text file, one class per line")
                .desired_width(f32::INFINITY),
        );
        if edit.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
            let path = memory.labels.trim();
            let labels = (!path.is_empty()).then(|| PathBuf::from(path));
            commands.push(ModelsCommand::SetLabels(labels));
        }
        edit.accessible_name("Label file");
    });
}

/// A field for what was not recognised, or for a file that is refused without it.
fn other_field_ui(ui: &mut Ui, import: &Import, memory: &mut ImportMemory, commands: &mut Queue<Command>) {
    ui.horizontal(|ui| {
        ui.label("Set a field");
        let edit = ui
            .add(TextEdit::singleline(&mut memory.other).hint_text("input.channels=bgr").desired_width(f32::INFINITY));
        if edit.lost_focus()
            && ui.input(|input| input.key_pressed(Key::Enter))
            && let Some((field, value)) = memory.other.split_once('=')
        {
            commands.push(ModelsCommand::Overrule { field: field.trim().to_owned(), value: value.trim().to_owned() });
            memory.other.clear();
        }
        edit.accessible_name("Set a field");
    });
    for (field, value) in &import.overrules {
        ui.horizontal(|ui| {
            ui.label(format!("Set: {field} = {value}"));
            let undo = ui.small_button("Undo");
            if undo.clicked() {
                commands.push(ModelsCommand::Overrule { field: field.clone(), value: String::new() });
            }
            undo.accessible_name(format!("Undo {field}"));
        });
    }
}

fn buttons_ui(ui: &mut Ui, import: &Import, commands: &mut Queue<Command>) {
    ui.horizontal(|ui| {
        let is_ready = matches!(import.status, ImportStatus::Draft(_));
        let add = ui.add_enabled(is_ready, egui::Button::new(strong("Add this model")));
        if add.clicked() {
            commands.push(ModelsCommand::ConfirmImport);
        }
        if ui.button("Cancel").clicked() {
            commands.push(ModelsCommand::CancelImport);
        }
    });
}
