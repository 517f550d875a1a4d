//! Below the results: shows which parts of the image a prediction depends on, and what the colors mean.

use eframe::egui::ColorImage;

use crate::domain::Saliency;
use crate::window::state::{Explanation, Question, ViewNumber};
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

const BAR_HEIGHT: f32 = 12.0;
/// The number of strips in the color bar.
const BAR_STEPS: usize = 48;

pub(crate) fn explanation_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let Some(text) = status_text(&state.shown.explanation) else {
        ask_ui(ui, state, commands);
        return;
    };
    match &state.shown.explanation {
        Explanation::None | Explanation::Waiting(_) => drop(ui.weak(text)),
        Explanation::Running { task, .. } => {
            ui.label(text);
            running_ui(ui, state, *task, commands);
        }
        Explanation::Ready { question, saliency, .. } => {
            wrapped_ui(ui, text);
            ready_ui(ui, state, question, saliency, commands);
        }
        Explanation::Failed { .. } => {
            message_ui(ui, Tone::Error, &text);
            ask_ui(ui, state, commands);
        }
    }
}

/// The progress or result in a sentence.
pub(crate) fn status_text(explanation: &Explanation) -> Option<String> {
    Some(match explanation {
        Explanation::None => return None,
        Explanation::Waiting(_) => "Loading the model to explain its prediction…".to_owned(),
        Explanation::Running { question, .. } => format!("Looking for what “{}” depends on…", question.label),
        Explanation::Ready { question, saliency, .. } => summary(question, saliency),
        Explanation::Failed { question, reason } => format!("{} could not be explained: {reason}", question.label),
    })
}

fn ask_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let Some(question) = state.question() else {
        return;
    };
    ui.horizontal(|ui| {
        action_button_ui(ui, state, Action::Explain, commands);
        let text = format!("what “{}” depends on", question.label);
        note_line_ui(ui, text);
    });
}

fn running_ui(ui: &mut Ui, state: &State, task: TaskId, commands: &mut Commands) {
    let progress = state.tasks.get(task).map(|task| task.control.progress());
    let fraction = progress.and_then(|progress| progress.fraction());
    ui.horizontal(|ui| {
        ui.add(progress_bar(fraction).desired_width(ui.available_width() - 80.0));
        command_button_ui(ui, "Stop", commands, || Command::cancel(task));
    });
}

fn ready_ui(ui: &mut Ui, state: &State, question: &Question, saliency: &Saliency, commands: &mut Commands) {
    let largest = saliency.largest_drop();
    if largest > 0.0 {
        color_bar_ui(ui, largest);
    }
    if saliency.largest_rise() > 0.005 {
        let rise = format!(
            "Covering other parts raises the score by up to {} points; these parts show as 0",
            points(saliency.largest_rise())
        );
        small_note_ui(ui, rise);
    }
    ui.horizontal(|ui| {
        ui.label("Opacity");
        ui.spacing_mut().slider_width = (ui.available_width() - 80.0).clamp(40.0, 140.0);
        let opacity = state.settings.explanation_opacity;
        view_slider_ui(ui, ViewNumber::ExplanationOpacity, opacity, "Opacity", commands);
        command_button_ui(ui, "Hide", commands, || ReviewCommand::HideExplanation);
    });
    if state.question().is_some_and(|asked| asked != *question) {
        ask_ui(ui, state, commands);
    }
}

/// The meaning of the colors, as text.
fn summary(question: &Question, saliency: &Saliency) -> String {
    let whole = format!("“{}” scores {:.1}% on the whole image", question.label, saliency.baseline * 100.0);
    if saliency.largest_drop() > 0.0 {
        format!("{whole}; the score drops most when the yellow parts are covered")
    } else {
        format!("{whole}; no covered part lowers the score")
    }
}

/// The colors with the drop of the score that they stand for.
fn color_bar_ui(ui: &mut Ui, largest: f32) {
    let size = vec2(ui.available_width(), BAR_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let strip = rect.width() / BAR_STEPS as f32;
    for step in 0..BAR_STEPS {
        let left = rect.left() + step as f32 * strip;
        let place = Rect::from_min_size(pos2(left, rect.top()), vec2(strip + 0.5, BAR_HEIGHT));
        let strength = step as f32 / (BAR_STEPS - 1) as f32;
        ui.painter().rect_filled(place, 0.0, theme::heat_color(strength));
    }
    response
        .on_hover_text("Percentage points that the score drops when a patch of the image's mean color covers the part");
    ui.horizontal(|ui| {
        ui.small("0");
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.small(format!("−{} points", points(largest)));
        });
    });
}

/// A score difference in percentage points.
fn points(fall: f32) -> String {
    format!("{:.1}", fall * 100.0)
}

/// `on_screen` is the rectangle of the whole image.
pub(crate) fn heat_ui(painter: &Painter, state: &State, textures: &mut Textures, on_screen: Rect) {
    let Explanation::Ready { task, saliency, .. } = &state.shown.explanation else {
        return;
    };
    let texture = textures.heat(painter.ctx(), *task, || heat_image(saliency));
    let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
    let opacity = Color32::WHITE.gamma_multiply(state.settings.explanation_opacity);
    painter.image(texture.id(), on_screen, whole, opacity);
}

/// One pixel per cell; the GPU interpolates between them.
fn heat_image(saliency: &Saliency) -> ColorImage {
    let cells = (0..saliency.rows)
        .flat_map(|row| (0..saliency.columns).map(move |column| theme::heat_color(saliency.strength(row, column))));
    ColorImage::new([saliency.columns, saliency.rows], cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SaliencyTarget;

    #[test]
    fn no_score_drop_is_reported() {
        let question = Question { target: SaliencyTarget::Class(1), label: "cat".to_owned(), score: 0.5 };
        let saliency = |drop| Saliency { rows: 1, columns: 1, drops: vec![drop], baseline: 0.5 };
        let text = summary(&question, &saliency(-0.1));
        assert!(text.starts_with("“cat” scores 50.0%") && text.contains("no covered part"), "{text}");
        assert!(summary(&question, &saliency(0.2)).contains("yellow"));
    }
}
