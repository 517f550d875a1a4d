//! The form for the user's own model: its conventions, each with the reason for its value, next to the model's
//! predictions with them for the image in view.

mod preview;
mod rows;

use std::path::PathBuf;

use eframe::egui::{CollapsingHeader, Context, Ui, vec2};
use preview::preview_ui;
use rows::{CONTROL_WIDTH, Draft, Rows, heading_ui};

use crate::domain::OutputConvention;
use crate::domain::card_fields::{INPUT_FIELDS, MODEL_FIELDS, OUTPUT_FIELDS, RARE_FIELDS};
use crate::window::state::{
    Command, Commands, FileRequest, Import, ImportForm, ImportStart, ImportStatus, ImportSubject, LabelChoice,
    Loadable, ModelsCommand, State,
};
use crate::window::ui::dialog::dialog_ui;
use crate::window::ui::field::Field;
use crate::window::ui::form::two_columns_ui;
use crate::window::ui::textures::Textures;
use crate::window::ui::widgets::{
    Tone, banner_ui, command_button_ui, message_ui, note_line_ui, primary_button_ui, small_note_ui, strong, waiting_ui,
};

const WIDTH: f32 = 1120.0;
/// The title and the buttons.
const FRAME_HEIGHT: f32 = 120.0;

pub(crate) fn import_ui(ctx: &Context, state: &State, textures: &mut Textures, commands: &mut Commands) {
    let Some(import) = &state.import else {
        return;
    };
    // Each model begins at the top of its form.
    let id = match &import.subject {
        ImportSubject::File(path) => format!("add the model {}", path.display()),
        ImportSubject::Added(id) => format!("edit the model {id}"),
    };
    dialog_ui(ctx, &id, WIDTH, ModelsCommand::CancelImport, commands, |ui, commands| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0 + FRAME_HEIGHT);
        title_ui(ui, state, import);
        match &import.status {
            ImportStatus::Recognizing => {
                waiting_ui(ui, "Reading the file and running the model on test images…");
            }
            ImportStatus::Refused(reason) => message_ui(ui, Tone::Error, reason),
            ImportStatus::Form(form) => form_ui(ui, state, import, form, textures, room.y, commands),
        }
        ui.add_space(8.0);
        foot_ui(ui, import, commands);
    });
}

fn title_ui(ui: &mut Ui, state: &State, import: &Import) {
    let (title, below, whole) = match &import.subject {
        ImportSubject::File(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            ("Add a model".to_owned(), name, path.display().to_string())
        }
        ImportSubject::Added(id) => {
            let name = state.models.get(id).map_or(id.as_str(), |entry| entry.card.name.as_str());
            let below = "Existing predictions are unchanged; new ones go to a new run".to_owned();
            (format!("Edit {name}"), below, id.clone())
        }
    };
    ui.label(strong(title).size(18.0));
    note_line_ui(ui, below).on_hover_text(whole);
    ui.add_space(6.0);
}

fn form_ui(
    ui: &mut Ui,
    state: &State,
    import: &Import,
    form: &ImportForm,
    textures: &mut Textures,
    height: f32,
    commands: &mut Commands,
) {
    if !matches!(form.presets, Loadable::NotLoaded) {
        preview::presets_ui(ui, state, form, textures, height, commands);
        return;
    }
    let mut draft = Draft { card: form.card.clone(), labels: form.labels.clone() };
    let rows = Rows::new(form, matches!(import.subject, ImportSubject::File(_)));
    two_columns_ui(
        ui,
        height,
        &mut (&mut *commands, textures),
        |ui, (commands, _)| {
            ui.add_enabled_ui(!form.is_saving, |ui| {
                refusal_ui(ui, form);
                heading_ui(ui, "Model", |_| {});
                rows.fields_ui(ui, MODEL_FIELDS, &mut draft);
                label_file_ui(ui, &mut draft.labels, commands);
                ui.add_space(8.0);
                heading_ui(ui, "Input", |ui| preview::button_ui(ui, state, &form.card, commands));
                rows.fields_ui(ui, INPUT_FIELDS, &mut draft);
                ui.add_space(8.0);
                heading_ui(ui, "Output", |_| {});
                reading_ui(ui, &form.start, commands);
                rows.fields_ui(ui, OUTPUT_FIELDS, &mut draft);
                if let OutputConvention::Detection(output) = &form.card.output {
                    let is_open = output.grid.is_some()
                        || output.batch_index.is_some()
                        || output.angle.is_some()
                        || output.count.is_some()
                        || output.selected.is_some();
                    let fold = CollapsingHeader::new("Rarely needed").default_open(is_open);
                    fold.show_unindented(ui, |ui| rows.fields_ui(ui, RARE_FIELDS, &mut draft));
                }
            });
        },
        |ui, (_, textures)| preview_ui(ui, state, form, textures),
    );
    let Draft { card, labels } = draft;
    if card != form.card || labels != form.labels {
        commands.push(ModelsCommand::ChangeImport { card: Box::new(card), labels });
    }
}

/// Why there is only a first guess, and a description of the graph.
fn refusal_ui(ui: &mut Ui, form: &ImportForm) {
    for remark in &form.start.remarks {
        message_ui(ui, Tone::Warning, remark);
        ui.add_space(6.0);
    }
    let Some(reason) = &form.start.refusal else {
        return;
    };
    let message = format!("Not recognized: {reason}. Choose how to use the model below; the preview shows the result");
    banner_ui(ui, Tone::Warning, &message, |ui| {
        for port in &form.start.outputs {
            let text = format!("Output {port}");
            small_note_ui(ui, text);
        }
    });
    ui.add_space(6.0);
}

/// The file with the class names. The card contains a copy of them.
fn label_file_ui(ui: &mut Ui, labels: &mut LabelChoice, commands: &mut Commands) {
    let LabelChoice::File(path) = labels else {
        return;
    };
    let help = "One name per line (the first is class 0), id<TAB>name, a .pbtxt label map, a data.yaml with names, or a \
                config.json with id2label";
    let field = Field::new("Label file").help(help).hint("labels.txt, data.yaml …").width(CONTROL_WIDTH);
    field.row_ui(ui, |ui, field| {
        let mut text = path.display().to_string();
        if field.text_ui(ui, &mut text).changed() {
            *path = PathBuf::from(text);
        }
        command_button_ui(ui, "Browse…", commands, || Command::PickFile(FileRequest::Labels));
    });
}

/// Another reading restarts the form.
fn reading_ui(ui: &mut Ui, start: &ImportStart, commands: &mut Commands) {
    if start.readings.len() < 2 {
        return;
    }
    let help = "Several layouts match the outputs; this one is in use. Choosing another resets the form";
    let mut chosen = start.reading;
    let text = start.readings.get(chosen).map_or("", String::as_str);
    Field::new("Read as").help(help).width(CONTROL_WIDTH).row_ui(ui, |ui, field| {
        field.list_ui(ui, text, |ui| {
            for (index, reading) in start.readings.iter().enumerate() {
                ui.selectable_value(&mut chosen, index, reading);
            }
        });
    });
    if chosen != start.reading {
        commands.push(ModelsCommand::ChooseReading(chosen));
    }
}

fn foot_ui(ui: &mut Ui, import: &Import, commands: &mut Commands) {
    let form = import.form();
    if let Some(reason) = form.and_then(|form| form.failure.as_ref()) {
        message_ui(ui, Tone::Error, reason);
        ui.add_space(6.0);
    }
    let is_new = matches!(import.subject, ImportSubject::File(_));
    ui.horizontal(|ui| {
        let missing = match form {
            None => Some("The model is not ready"),
            Some(form) if form.can_be_saved() => None,
            Some(form) if form.is_trying => Some("The model is being tested"),
            Some(_) => Some("Fix the problems marked above first"),
        };
        if primary_button_ui(ui, if is_new { "Add this model" } else { "Save changes" }, missing).clicked() {
            commands.push(ModelsCommand::ConfirmImport);
        }
        let is_refused = matches!(import.status, ImportStatus::Refused(_));
        command_button_ui(ui, if is_refused { "Close" } else { "Cancel" }, commands, || ModelsCommand::CancelImport);
        if form.is_some_and(|form| form.is_saving) {
            ui.spinner();
            ui.weak(if is_new { "Copying the model into Spotcheck's folder…" } else { "Saving…" });
        }
    });
}
