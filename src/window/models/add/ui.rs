//! The form for the user's own model: its conventions, each with the reason for its value, next to the model's
//! predictions with them for the image in view.

mod help;
mod input;
mod output;
mod presets;
mod preview;
mod rows;

use std::path::PathBuf;

use eframe::egui::{Context, TextEdit, Ui, vec2};
use help::LABEL_FILE;
use preview::preview_ui;
use rows::{CONTROL_WIDTH, Field, Rows, combo, heading_ui, note_tab, plain_row, text_field};

use crate::domain::{ModelCard, ModelTask, OutputConvention};
use crate::window::outputs::reading::ui::LABEL_SETS;
use crate::window::state::{
    Commands, Import, ImportForm, ImportStart, ImportStatus, ImportSubject, LabelChoice, Loadable, ModelsCommand, State,
};
use crate::window::ui::dialog::dialog_ui;
use crate::window::ui::form::two_columns_ui;
use crate::window::ui::textures::Textures;
use crate::window::ui::widgets::{
    Tone, banner_ui, command_button_ui, grouped, message_ui, note_line_ui, primary_button, small_note_ui, strong,
    waiting_ui,
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
        presets::presets_ui(ui, state, form, textures, height, commands);
        return;
    }
    note_tab(ui.ctx());
    let (mut card, mut labels) = (form.card.clone(), form.labels.clone());
    let is_new = matches!(import.subject, ImportSubject::File(_));
    two_columns_ui(
        ui,
        height,
        &mut (&mut *commands, textures),
        |ui, (commands, _)| {
            ui.add_enabled_ui(!form.is_saving, |ui| {
                refusal_ui(ui, form);
                let evidence = form.evidence();
                let mut rows = Rows::new(form, &evidence);
                model_ui(ui, &mut rows, &mut card, &mut labels, is_new, &form.start, commands);
                ui.add_space(8.0);
                input::input_ui(ui, &mut rows, &mut card.input, &form.start, |ui| {
                    presets::button_ui(ui, state, commands);
                });
                ui.add_space(8.0);
                output::output_ui(ui, &mut rows, &mut card, &form.start, commands);
                if let Some(undone) = rows.undone() {
                    (card, labels) = undone;
                }
            });
        },
        |ui, (_, textures)| preview_ui(ui, state, form, textures),
    );
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

fn model_ui(
    ui: &mut Ui,
    rows: &mut Rows<'_>,
    card: &mut ModelCard,
    labels: &mut LabelChoice,
    is_new: bool,
    start: &ImportStart,
    commands: &mut Commands,
) {
    heading_ui(ui, "Model", |_| {});
    rows.row(ui, "name", "Name", |ui, field| text_field(ui, field, &mut card.name));
    if is_new {
        rows.row(ui, "id", "Id", |ui, field| text_field(ui, field, &mut card.id));
    } else {
        rows.fixed_row(ui, "id", "Id", &card.id, "identifies the model in projects");
    }
    rows.row(ui, "task", "Task", |ui, field| task_ui(ui, field, card, &start.card, &start.other_output));
    rows.row(ui, "labels", "Labels", |ui, field| labels_ui(ui, field, labels, start.found_labels.len()));
    if let LabelChoice::File(path) = labels {
        plain_row(ui, LABEL_FILE, "Label file", |ui, field| {
            let mut text = path.display().to_string();
            let edit =
                TextEdit::singleline(&mut text).hint_text("labels.txt, data.yaml …").desired_width(CONTROL_WIDTH);
            if field.explain(ui.add(edit)).changed() {
                *path = PathBuf::from(text);
            }
            command_button_ui(ui, "Browse…", commands, || ModelsCommand::PickLabels);
        });
    }
}

/// Another task starts with another way to read the outputs.
fn task_ui(ui: &mut Ui, field: &Field, card: &mut ModelCard, started: &ModelCard, other: &OutputConvention) {
    let text = |task| match task {
        ModelTask::Classification => "Image classes",
        ModelTask::Detection => "Object boxes",
    };
    let before = card.task;
    combo(ui, field, text(before), CONTROL_WIDTH, |ui| {
        for task in [ModelTask::Classification, ModelTask::Detection] {
            ui.selectable_value(&mut card.task, task, text(task));
        }
    });
    if card.task != before {
        card.output = if card.task == started.task { started.output.clone() } else { other.clone() };
    }
}

fn labels_ui(ui: &mut Ui, field: &Field, labels: &mut LabelChoice, found: usize) {
    let found_text = format!("Found with the model ({})", grouped(found));
    let text = match labels {
        LabelChoice::None => "None: class numbers only",
        LabelChoice::Found => &found_text,
        LabelChoice::BuiltIn(name) => {
            LABEL_SETS.iter().find(|(known, _)| known == name).map_or(name.as_str(), |(_, title)| title)
        }
        LabelChoice::File(_) => "From a file",
    }
    .to_owned();
    combo(ui, field, &text, CONTROL_WIDTH, |ui| {
        if found > 0 {
            ui.selectable_value(labels, LabelChoice::Found, &found_text);
        }
        for (name, title) in LABEL_SETS {
            ui.selectable_value(labels, LabelChoice::BuiltIn(name.to_owned()), title);
        }
        let is_file = matches!(labels, LabelChoice::File(_));
        if ui.selectable_label(is_file, "From a file").clicked() && !is_file {
            *labels = LabelChoice::File(PathBuf::new());
        }
        ui.selectable_value(labels, LabelChoice::None, "None: class numbers only");
    });
}

fn foot_ui(ui: &mut Ui, import: &Import, commands: &mut Commands) {
    let form = import.form();
    if let Some(reason) = form.and_then(|form| form.failure.as_ref()) {
        message_ui(ui, Tone::Error, reason);
        ui.add_space(6.0);
    }
    let is_new = matches!(import.subject, ImportSubject::File(_));
    ui.horizontal(|ui| {
        let button = primary_button(ui, if is_new { "Add this model" } else { "Save changes" });
        let can_be_saved = form.is_some_and(ImportForm::can_be_saved);
        let save = ui.add_enabled(can_be_saved, button);
        let save = save.on_disabled_hover_text(match form {
            None => "The model is not ready",
            Some(form) if form.is_trying => "The model is being tested",
            Some(_) => "Fix the problems marked above first",
        });
        if save.clicked() {
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
