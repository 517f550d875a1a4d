//! The model's prediction for the image in view with the card in the form, and its exact input.

use eframe::egui::{Sense, Spinner, Ui, vec2};

use crate::domain::{Prediction, PredictionContent};
use crate::window::canvas::ui::paint_image;
use crate::window::models::add::ui::rows::heading_ui;
use crate::window::state::{ImportForm, ImportTrial, State};
use crate::window::ui::textures::Textures;
use crate::window::ui::theme;
use crate::window::ui::widgets::{Tone, grouped, message_ui, note_ui, paint_detections, score_row_ui, small_note_ui};

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
