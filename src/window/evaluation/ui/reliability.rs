//! How reliable scores are: accuracy over score.

use eframe::egui::{self, CornerRadius, Rect, Sense, Stroke, Ui, pos2, vec2};

use super::chart::Chart;
use super::{queries, show_boxes};
use crate::evaluation::{ClassificationMetrics, ReliabilityBin};
use crate::window::state::{Command, Queue};
use crate::window::ui::theme;
use crate::window::ui::widgets::image_count;

const HEIGHT: f32 = 280.0;
const MOST_WIDTH: f32 = 460.0;

pub(crate) fn reliability_ui(ui: &mut Ui, metrics: &ClassificationMetrics, commands: &mut Queue<Command>) {
    let size = vec2(ui.available_width().min(MOST_WIDTH), HEIGHT);
    let chart = Chart::new(ui, size, Sense::hover(), ["Score of the top class", "Accuracy"]);
    let most = metrics.reliability.iter().map(|bin| bin.images).max().unwrap_or(0).max(1);
    for bin in &metrics.reliability {
        if bin_ui(ui, &chart, bin, most) {
            show_boxes(commands, queries::bin(bin));
        }
    }
    let diagonal = [chart.at(0.0, 0.0), chart.at(1.0, 1.0)];
    let line = Stroke::new(1.5, ui.visuals().text_color());
    ui.painter().extend(egui::Shape::dashed_line(&diagonal, line, 5.0, 4.0));
    let says = "Bars: accuracy (darker = more images). Line: mean score. Calibrated scores reach the dashed line";
    ui.add(egui::Label::new(egui::RichText::new(says).small().weak()).wrap());
}

/// The whole height is clickable, because a bar of 0% has none.
fn bin_ui(ui: &Ui, chart: &Chart, bin: &ReliabilityBin, most: usize) -> bool {
    let (Some(accuracy), Some(mean_score)) = (bin.accuracy, bin.mean_score) else {
        return false;
    };
    let place = Rect::from_min_max(chart.at(bin.from, 1.0), chart.at(bin.to, 0.0)).shrink2(vec2(1.0, 0.0));
    let id = chart.response.id.with(bin.from.to_bits());
    let response = ui.interact(place, id, Sense::click());
    let images = image_count(bin.images);
    let text = format!(
        "Score {:.3} to {:.3}: {images}, {:.1}% correct, mean score {:.1}%",
        bin.from,
        bin.to,
        accuracy * 100.0,
        mean_score * 100.0
    );
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &text));
    let visuals = ui.visuals();
    let bar = place.with_min_y(chart.at(0.0, accuracy).y);
    let accent = theme::accent(visuals);
    // The more images, the greater their weight in the error.
    let weight = 0.35 + 0.65 * bin.images as f32 / most as f32;
    ui.painter().rect_filled(bar, CornerRadius::ZERO, accent.gamma_multiply(weight));
    ui.painter().rect_stroke(bar, 0.0, Stroke::new(1.0, accent), egui::StrokeKind::Inside);
    let y = chart.at(0.0, mean_score).y;
    let mark = [pos2(place.left(), y), pos2(place.right(), y)];
    ui.painter().line_segment(mark, Stroke::new(2.0, visuals.strong_text_color()));
    if response.hovered() || response.has_focus() {
        let stroke = Stroke::new(2.0, visuals.strong_text_color());
        ui.painter().rect_stroke(place, 0.0, stroke, egui::StrokeKind::Inside);
    }
    response.on_hover_text(format!("{text}\nClick to show them")).clicked()
}
