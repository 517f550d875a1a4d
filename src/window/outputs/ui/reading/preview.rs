//! The first predictions as read, next to the responses themselves.

use eframe::egui::Margin;

use crate::domain::{Detection, Prediction, PredictionContent};
use crate::sagemaker::spec::output_mapping::ExampleResponse;
use crate::window::outputs::ui::reading::ReadingMemory;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

const SKETCH_WIDTH: f32 = 132.0;
const SKETCH_HEIGHT: f32 = 110.0;
const RAW_HEIGHT: f32 = 180.0;
/// The number of classes or boxes named per prediction.
const NAMED: usize = 3;
/// The number of boxes drawn.
const SKETCHED: usize = 30;

/// `nothing` explains how to get examples if there are none.
pub(crate) fn examples_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ReadingMemory,
    textures: &mut Textures,
    nothing: &str,
) {
    let reading = &state.remote.reading;
    ui.label(strong("First predictions"));
    let Some(examples) = reading.examples() else {
        note_ui(ui, nothing);
        return;
    };
    match (&reading.trial, memory.request()) {
        (_, Err(fault)) => message_ui(ui, Tone::Warning, &fault.reason),
        (None, Ok(_)) => {
            ui.spinner();
        }
        (Some(trial), Ok(_)) => {
            match &trial.description {
                Ok(description) => {
                    let text = format!("Read as {description}");
                    note_ui(ui, text);
                }
                Err(reason) => banner_ui(ui, Tone::Warning, reason, |ui| {
                    if !memory.has_mapping && ui.button("Make a mapping").clicked() {
                        memory.begin_mapping(state);
                    }
                }),
            }
            for assumed in &trial.assumed {
                let text = format!("Assumed: {assumed}");
                small_note_ui(ui, text);
            }
            for (example, read) in examples.responses.iter().zip(&trial.readings) {
                example_ui(ui, state, textures, example, read);
            }
        }
    }
    ui.add_space(6.0);
    raw_ui(ui, &examples.shown);
}

fn example_ui(
    ui: &mut Ui,
    state: &State,
    textures: &mut Textures,
    example: &ExampleResponse,
    read: &Result<Prediction, String>,
) {
    ui.add_space(4.0);
    let name = Label::new(strong(&example.image).size(12.0)).truncate().show_tooltip_when_elided(false);
    ui.add(name).on_hover_text(example.uri.as_str());
    let prediction = match read {
        Ok(prediction) => prediction,
        Err(reason) => {
            problem_ui(ui, reason);
            return;
        }
    };
    match &prediction.content {
        PredictionContent::Classes(classes) => {
            for class in classes.iter().take(NAMED) {
                let color = theme::class_color(&class.label);
                let sense = Sense::hover();
                score_row_ui(ui, &class.label, Some(class.score), color, false, sense).on_hover_text(&class.label);
            }
        }
        PredictionContent::Detections(boxes) => {
            ui.horizontal_top(|ui| {
                sketch_ui(ui, state, textures, example, prediction, boxes);
                ui.vertical(|ui| {
                    ui.weak(box_count(boxes.len()));
                    for found in boxes.iter().take(NAMED) {
                        let color = theme::class_color(&found.label);
                        let sense = Sense::hover();
                        score_row_ui(ui, &found.label, Some(found.score), color, false, sense)
                            .on_hover_text(&found.label);
                    }
                });
            });
        }
    }
}

/// Draws the boxes, so that a wrong order of their numbers is immediately visible.
fn sketch_ui(
    ui: &mut Ui,
    state: &State,
    textures: &mut Textures,
    example: &ExampleResponse,
    prediction: &Prediction,
    boxes: &[Detection],
) {
    let size = vec2(prediction.width as f32, prediction.height as f32).max(vec2(1.0, 1.0));
    let scale = (SKETCH_WIDTH / size.x).min(SKETCH_HEIGHT / size.y);
    let (rect, response) = ui.allocate_exact_size(size * scale, Sense::hover());
    response.on_hover_text("Boxes in the image");
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, CornerRadius::ZERO, theme::sunken_fill(ui.visuals()));
    let sample = state.samples.find(&example.uri);
    if let Some(thumbnail) = sample.and_then(|sample| textures.thumbnails.get(sample)) {
        painter.image(thumbnail.texture, rect, thumbnail.uv, Color32::WHITE);
    }
    // For a detector with hundreds of boxes, only those that one would look at.
    let is_sure = |found: &&Detection| found.score >= state.view().min_score;
    let sure = boxes.iter().take(SKETCHED).take_while(is_sure).count();
    paint_detections(&painter, rect, prediction, boxes[..sure.max(NAMED.min(boxes.len()))].iter());
    let line = Stroke::new(1.0, theme::line(ui.visuals()));
    painter.rect_stroke(rect, 0.0, line, StrokeKind::Inside);
}

fn raw_ui(ui: &mut Ui, shown: &str) {
    small_note_ui(ui, "The first prediction, shortened");
    Frame::new().fill(theme::sunken_fill(ui.visuals())).corner_radius(6).inner_margin(Margin::same(8)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ScrollArea::both().id_salt("raw prediction").max_height(RAW_HEIGHT).auto_shrink([false, true]).show(ui, |ui| {
            ui.add(Label::new(RichText::new(shown).monospace().small()).extend());
        });
    });
}
