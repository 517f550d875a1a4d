//! The rehearsal of a job, and its AWS CLI commands.

use eframe::egui::{Button, CollapsingHeader, Label, RichText, ScrollArea, TextEdit, TextStyle, Ui};

use crate::domain::shortened;
use crate::sagemaker::spec::transform::TransformPlan;
use crate::window::state::{
    Command, Commands, FormCheck, JobsCommand, Loadable, ModelFrom, RehearsalOptions, RehearsalReport, State,
    TaskSignal,
};
use crate::window::ui::form::text_ui;
use crate::window::ui::widgets::{Tone, banner_ui, command_button_ui, message_ui, note_ui, number_field, strong};

/// A rehearsal uses only some images: to predict all of them, use the local model.
const MOST_REHEARSED: usize = 1000;

/// The longest command that is shown, in characters.
const LONGEST_LINE: usize = 2000;

/// The rehearsal: runs the same archive with some of the images on this computer before it costs money.
pub(crate) fn rehearsal_ui(ui: &mut Ui, state: &State, request: &mut RehearsalOptions, commands: &mut Commands) {
    let rehearsal = &state.remote.rehearsal;
    let model_from = state.remote.job_form.draft.model.from;
    ui.add_space(8.0);
    ui.label(strong("Rehearse on this computer"));
    ui.weak(match model_from {
        ModelFrom::SavedModel => {
            "Runs the archive's handler locally against your own TensorFlow Serving. A SavedModel requires \
             TensorFlow Serving, which Spotcheck does not include"
        }
        _ => {
            "Runs the same archive locally and compares its predictions for the first images with the local \
             model's"
        }
    });
    if matches!(model_from, ModelFrom::SavedModel | ModelFrom::Archive) {
        let name = match model_from {
            ModelFrom::SavedModel => "TensorFlow Serving address",
            _ => "TensorFlow Serving address, if the archive contains a SavedModel",
        };
        let hint = "http://127.0.0.1:8501/v1/models/model:predict";
        text_ui(ui, &mut request.tensorflow_serving, name, hint);
    }
    ui.horizontal_wrapped(|ui| {
        ui.label("Python");
        let field = TextEdit::singleline(&mut request.python).desired_width(150.0);
        ui.add(field).accessible_name("Python for the rehearsal");
        let images = number_field(&mut request.images).range(1..=MOST_REHEARSED).suffix(" images");
        let images = ui.add(images).accessible_name("Images to test");
        images.on_hover_text("Taken from the start of the image list");
        let missing = missing_for(model_from, request);
        let is_ready = !rehearsal.is_loading() && missing.is_none();
        let button = ui.add_enabled(is_ready, Button::new("Rehearse"));
        let button = match missing {
            Some(missing) => button.on_disabled_hover_text(missing),
            None => button,
        };
        if button.clicked() {
            commands.push(JobsCommand::Rehearse(RehearsalOptions {
                python: request.python.trim().to_owned(),
                images: request.images,
                tensorflow_serving: request.tensorflow_serving.trim().to_owned(),
            }));
        }
        if let Loadable::Loading(task) = rehearsal {
            ui.spinner();
            command_button_ui(ui, "Stop the rehearsal", commands, || Command::SignalTask(*task, TaskSignal::Cancel));
        }
    });
    rehearsal_result_ui(ui, rehearsal);
}

fn rehearsal_result_ui(ui: &mut Ui, rehearsal: &Loadable<RehearsalReport>) {
    match rehearsal {
        Loadable::Ready(report) => {
            let (sign, tone) = if report.is_well { ("✓ ", Tone::Hint) } else { ("", Tone::Warning) };
            banner_ui(ui, tone, &format!("{sign}{}", report.summary), |ui| {
                for note in &report.notes {
                    note_ui(ui, note);
                }
            });
        }
        Loadable::Failed(why) => message_ui(ui, Tone::Error, why.message()),
        Loadable::NotLoaded | Loadable::Loading(_) => {}
    }
}

/// What must be entered before a rehearsal can start.
fn missing_for(model_from: ModelFrom, request: &RehearsalOptions) -> Option<&'static str> {
    if request.python.trim().is_empty() {
        return Some("Enter the Python executable for the handler");
    }
    let needs_serving = model_from == ModelFrom::SavedModel;
    (needs_serving && request.tensorflow_serving.trim().is_empty())
        .then_some("Start TensorFlow Serving with this model and enter its address above")
}

pub(crate) fn commands_ui(ui: &mut Ui, check: &FormCheck<TransformPlan>, commands: &mut Commands) {
    ui.add_space(6.0);
    CollapsingHeader::new("AWS CLI commands").default_open(false).show(ui, |ui| {
        command_button_ui(ui, "Copy commands", commands, || Command::CopyCommand(check.commands.join("\n")));
        let height = ui.text_style_height(&TextStyle::Monospace);
        ScrollArea::both().id_salt("aws commands").max_height(220.0).show_rows(
            ui,
            height,
            check.commands.len(),
            |ui, rows| {
                for line in &check.commands[rows] {
                    let text = RichText::new(shortened(line, LONGEST_LINE)).monospace();
                    ui.add(Label::new(text).extend());
                }
            },
        );
    });
}
