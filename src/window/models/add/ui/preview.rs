//! The model's prediction for the image in view with the card in the form, its exact input, and predictions with common
//! ways to prepare images side by side.

use eframe::egui::{Button, Color32, Grid, Label, ProgressBar, RichText, ScrollArea, Sense, Spinner, Ui, vec2};

use crate::domain::{ModelCard, Prediction, PredictionContent, SampleId};
use crate::window::canvas::ui::paint_image;
use crate::window::models::add::ui::rows::heading_ui;
use crate::window::state::{
    Command, Commands, ImportForm, ImportTrial, Loadable, ModelsCommand, PresetRow, PresetTable, State, TaskId,
    TaskSignal,
};
use crate::window::ui::textures::Textures;
use crate::window::ui::theme;
use crate::window::ui::widgets::{
    Tone, command_button_ui, grouped, image_count, message_ui, note_ui, paint_detections, score_row_ui,
    small_note_line_ui, small_note_ui, strong,
};

const IMAGE_HEIGHT: f32 = 230.0;
const INPUT_SIDE: f32 = 150.0;
/// The number of classes or boxes listed.
const LISTED: usize = 5;

pub(crate) fn preview_ui(ui: &mut Ui, state: &State, form: &ImportForm, textures: &mut Textures) {
    heading_ui(ui, "Preview", |ui| {
        if form.is_trying {
            ui.add(Spinner::new().size(14.0));
            ui.weak("Predicting…");
        }
    });
    let Some(trial) = &form.trial else {
        return;
    };
    for problem in &trial.problems {
        let tone = if problem.is_fatal { Tone::Error } else { Tone::Warning };
        message_ui(ui, tone, &problem.text);
        ui.add_space(4.0);
    }
    match (&trial.prediction, &trial.image) {
        (Some(prediction), _) => prediction_ui(ui, state, trial, prediction, textures),
        (None, None) if trial.problems.is_empty() => {
            note_ui(ui, "Open an image to see what the model predicts");
        }
        (None, _) => {}
    }
    input_ui(ui, trial, textures);
}

fn prediction_ui(ui: &mut Ui, state: &State, trial: &ImportTrial, prediction: &Prediction, textures: &mut Textures) {
    let size = vec2(prediction.width as f32, prediction.height as f32).max(vec2(1.0, 1.0));
    let scale = (ui.available_width() / size.x).min(IMAGE_HEIGHT / size.y);
    let (rect, response) = ui.allocate_exact_size(size * scale, Sense::hover());
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, 0.0, theme::sunken_fill(ui.visuals()));
    let shown = state.shown_sample().and_then(|sample| state.samples.get(sample));
    if shown.map(|sample| &sample.uri) == trial.image.as_ref() {
        paint_image(state, textures, &painter, rect);
    }
    paint_detections(&painter, rect, prediction, prediction.detections().iter());
    response.on_hover_text("The image in view as the model receives it with these settings");
    ui.add_space(4.0);
    if let Some(dims) = trial.embedding_dims {
        note_ui(ui, format!("An embedding of {} numbers per image; an encoder predicts nothing", grouped(dims)));
        return;
    }
    match &prediction.content {
        PredictionContent::Classes(classes) => {
            for class in classes.iter().take(LISTED) {
                let color = theme::class_color(&class.label);
                score_row_ui(ui, &class.label, Some(class.score), color, false, Sense::hover())
                    .on_hover_text(&class.label);
            }
            rest_ui(ui, classes.len());
        }
        PredictionContent::Detections(boxes) => {
            note_ui(ui, count_text(trial, boxes.len()));
            for found in boxes.iter().take(LISTED) {
                let color = theme::class_color(&found.label);
                score_row_ui(ui, &found.label, Some(found.score), color, false, Sense::hover())
                    .on_hover_text(&found.label);
            }
            rest_ui(ui, boxes.len());
        }
    }
}

/// The number of those that are not listed.
fn rest_ui(ui: &mut Ui, count: usize) {
    if count > LISTED {
        ui.weak(format!("and {} more", grouped(count - LISTED)));
    }
}

fn count_text(trial: &ImportTrial, shown: usize) -> String {
    let min = ImportTrial::MIN_SCORE * 100.0;
    match trial.sure_boxes {
        0 if shown == 0 => "No boxes".to_owned(),
        0 => format!("No box has a score ≥ {min:.0}%; the best boxes are shown"),
        1 => format!("1 box with a score ≥ {min:.0}%"),
        count => format!("{} boxes with a score ≥ {min:.0}%", grouped(count)),
    }
}

/// The exact tensor, turned back into an image.
fn input_ui(ui: &mut Ui, trial: &ImportTrial, textures: &Textures) {
    if trial.tensor.is_empty() {
        return;
    }
    ui.add_space(6.0);
    heading_ui(ui, "Model input", |_| {});
    ui.horizontal_top(|ui| {
        if let Some(texture) = textures.import_preview() {
            let size = texture.size_vec2();
            ui.image((texture.id(), size * (INPUT_SIDE / size.max_elem().max(1.0))));
        }
        ui.vertical(|ui| {
            for line in &trial.tensor {
                small_note_ui(ui, line);
            }
        });
    });
}

const THUMBNAIL_HEIGHT: f32 = 44.0;
const IMAGE_WIDTH: f32 = 132.0;
const NAME_WIDTH: f32 = 170.0;

/// Opens the comparison.
pub(crate) fn button_ui(ui: &mut Ui, state: &State, card: &ModelCard, commands: &mut Commands) {
    let missing = match () {
        () if card.is_encoder() => Some("An encoder has no scores that would show which preprocessing is right"),
        () if state.samples.is_empty() => Some("Open images first"),
        () => None,
    };
    let button = ui.add_enabled(missing.is_none(), Button::new("Find preprocessing…"));
    let button = button.on_hover_text("Runs the model on the images on screen with each common preprocessing");
    if button.on_disabled_hover_text(missing.unwrap_or_default()).clicked() {
        commands.push(ModelsCommand::FindPreprocessing);
    }
}

pub(crate) fn presets_ui(
    ui: &mut Ui,
    state: &State,
    form: &ImportForm,
    textures: &mut Textures,
    height: f32,
    commands: &mut Commands,
) {
    ui.horizontal(|ui| {
        command_button_ui(ui, "Back to the form", commands, || ModelsCommand::ClosePresets);
        ui.label(strong("Find preprocessing"));
    });
    match &form.presets {
        Loadable::NotLoaded => {}
        Loadable::Loading(task) => progress_ui(ui, state, *task, commands),
        Loadable::Failed(why) => message_ui(ui, Tone::Error, why.message()),
        Loadable::Ready(table) => {
            let hint = format!(
                "{} with each common preprocessing. The correct one usually has the highest score and the lowest \
                 entropy, but only accuracy proves it, which requires folders named after the classes",
                image_count(table.images.len())
            );
            note_ui(ui, hint);
            if let Some(undecided) = &table.undecided {
                message_ui(ui, Tone::Hint, undecided);
            }
            ui.add_space(4.0);
            ScrollArea::both().id_salt("presets").max_height(height - 70.0).auto_shrink([false, true]).show(ui, |ui| {
                table_ui(ui, form, table, textures, commands);
            });
        }
    }
}

fn progress_ui(ui: &mut Ui, state: &State, task: TaskId, commands: &mut Commands) {
    let progress = state.tasks.get(task).map(|task| task.control.progress());
    let (done, total) = progress.map_or((0, None), |progress| (progress.done, progress.total));
    let share = total.map_or(0.0, |total| done as f32 / total.max(1) as f32);
    let text = total.map_or_else(|| "Reading the images…".to_owned(), |total| format!("{done} of {total} predictions"));
    ui.add(ProgressBar::new(share).text(text));
    command_button_ui(ui, "Cancel the comparison", commands, || Command::SignalTask(task, TaskSignal::Cancel));
}

fn table_ui(ui: &mut Ui, form: &ImportForm, table: &PresetTable, textures: &mut Textures, commands: &mut Commands) {
    let has_entropy = table.rows.iter().any(|row| row.mean_entropy.is_some());
    let has_accuracy = table.rows.iter().any(|row| row.accuracy.is_some());
    let grid = Grid::new("presets").striped(true).spacing(vec2(12.0, 6.0));
    grid.show(ui, |ui| {
        ui.label("");
        ui.label(strong("Preprocessing"));
        ui.label(strong("Top score"));
        if has_entropy {
            ui.label(strong("Entropy"));
        }
        if has_accuracy {
            ui.label(strong("Accuracy"));
        }
        for (sample, name) in &table.images {
            image_ui(ui, *sample, name, textures);
        }
        ui.end_row();
        for row in &table.rows {
            row_ui(ui, form, row, [has_entropy, has_accuracy], commands);
            ui.end_row();
        }
    });
}

fn image_ui(ui: &mut Ui, sample: SampleId, name: &str, textures: &mut Textures) {
    ui.vertical(|ui| {
        ui.set_width(IMAGE_WIDTH);
        if let Some(thumbnail) = textures.thumbnails.get(sample) {
            let size = thumbnail.size * (THUMBNAIL_HEIGHT / thumbnail.size.y.max(1.0));
            let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
            ui.painter().image(thumbnail.texture, rect, thumbnail.uv, Color32::WHITE);
        }
        small_note_line_ui(ui, name);
    });
}

fn row_ui(
    ui: &mut Ui,
    form: &ImportForm,
    row: &PresetRow,
    [has_entropy, has_accuracy]: [bool; 2],
    commands: &mut Commands,
) {
    if row.input == form.card.input {
        ui.label("✓ in use");
    } else {
        let take = ui.button("Use");
        if take.clicked() {
            let mut card = form.card.clone();
            card.input = row.input.clone();
            commands.push(ModelsCommand::ChangeImport { card: Box::new(card), labels: form.labels.clone() });
        }
        take.accessible_name(format!("Use {}", row.name));
    }
    ui.vertical(|ui| {
        ui.set_width(NAME_WIDTH);
        ui.add(Label::new(&row.name).truncate());
        small_note_ui(ui, &row.about);
    });
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    ui.label(percent(row.mean_top_score));
    if has_entropy {
        ui.label(row.mean_entropy.map_or_else(String::new, |entropy| format!("{entropy:.2}")));
    }
    if has_accuracy {
        ui.label(row.accuracy.map_or_else(String::new, percent));
    }
    for best in &row.best {
        ui.horizontal(|ui| {
            ui.set_width(IMAGE_WIDTH);
            ui.add(Label::new(RichText::new(best).small()).truncate()).on_hover_text(best);
        });
    }
}
