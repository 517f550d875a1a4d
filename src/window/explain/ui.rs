//! Below the results: shows which parts of the image a prediction depends on, and what the colors mean.

use eframe::egui::{self, Label, ProgressBar, Rect, RichText, Sense, Ui, vec2};

use crate::domain::Saliency;
use crate::window::state::{Action, Command, Explanation, Question, Queue, ReviewCommand, State, TaskId, TaskSignal};
use crate::window::ui::theme;
use crate::window::ui::widgets::{Tone, action_button_ui, banner_ui, slider};

const BAR_HEIGHT: f32 = 12.0;
/// The number of strips in the color bar.
const BAR_STEPS: usize = 48;

pub(crate) fn explanation_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    match &state.shown.explanation {
        Explanation::None => ask_ui(ui, state, commands),
        Explanation::Waiting(_) => {
            ui.weak("Loading the model to explain its prediction…");
        }
        Explanation::Running { task, question } => running_ui(ui, state, *task, question, commands),
        Explanation::Ready { question, saliency, .. } => ready_ui(ui, state, question, saliency, commands),
        Explanation::Failed { question, reason } => {
            let message = format!("{} could not be explained: {reason}", question.label);
            banner_ui(ui, Tone::Error, &message, |_| {});
            ask_ui(ui, state, commands);
        }
    }
}

fn ask_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    let Some(question) = state.question() else {
        return;
    };
    ui.horizontal(|ui| {
        action_button_ui(ui, state, Action::Explain, commands);
        let text = format!("what “{}” depends on", question.label);
        ui.add(Label::new(RichText::new(text).weak()).truncate());
    });
}

fn running_ui(ui: &mut Ui, state: &State, task: TaskId, question: &Question, commands: &mut Queue<Command>) {
    ui.label(format!("Looking for what “{}” depends on…", question.label));
    let progress = state.tasks.get(task).map(|task| task.control.progress());
    let fraction = progress.and_then(|progress| progress.fraction());
    ui.horizontal(|ui| {
        ui.add(
            ProgressBar::new(fraction.unwrap_or(0.0)).desired_width(ui.available_width() - 80.0).desired_height(8.0),
        );
        if ui.button("Stop").clicked() {
            commands.push(Command::SignalTask(task, TaskSignal::Cancel));
        }
    });
}

fn ready_ui(ui: &mut Ui, state: &State, question: &Question, saliency: &Saliency, commands: &mut Queue<Command>) {
    ui.add(Label::new(summary(question, saliency)).wrap());
    let largest = saliency.largest_drop();
    if largest > 0.0 {
        color_bar_ui(ui, largest);
    }
    if saliency.largest_rise() > 0.005 {
        let rise = format!(
            "Covering other parts raises the score by up to {} points; these parts show as 0",
            points(saliency.largest_rise())
        );
        ui.add(Label::new(RichText::new(rise).small().weak()).wrap());
    }
    ui.horizontal(|ui| {
        let mut opacity = state.settings.explanation_opacity;
        ui.label("Opacity");
        ui.spacing_mut().slider_width = (ui.available_width() - 80.0).clamp(40.0, 140.0);
        let field = ui.add(slider(&mut opacity, 0.0..=1.0).show_value(false));
        if field.changed() {
            commands.push(ReviewCommand::SetExplanationOpacity(opacity));
        }
        field.accessible_name("Opacity");
        if ui.button("Hide").clicked() {
            commands.push(ReviewCommand::HideExplanation);
        }
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
        let place = Rect::from_min_size(egui::pos2(left, rect.top()), vec2(strip + 0.5, BAR_HEIGHT));
        let strength = step as f32 / (BAR_STEPS - 1) as f32;
        ui.painter().rect_filled(place, 0.0, theme::heat_color(strength));
    }
    response
        .on_hover_text("Percentage points that the score drops when a patch of the image's mean color covers the part");
    ui.horizontal(|ui| {
        ui.small("0");
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            ui.small(format!("−{} points", points(largest)));
        });
    });
}

/// A score difference in percentage points.
fn points(fall: f32) -> String {
    format!("{:.1}", fall * 100.0)
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
