//! A number with its name, its interval, and what it means.

use eframe::egui::{self, CornerRadius, FontId, Sense, TextStyle, Ui, pos2, vec2};

use super::super::theme;
use super::decimals;
use crate::evaluation::Interval;

const SIZE: egui::Vec2 = vec2(96.0, 58.0);

pub(super) fn card_ui(ui: &mut Ui, name: &str, number: Option<f64>, interval: Option<Interval>, meaning: &str) {
    let (rect, response) = ui.allocate_exact_size(SIZE, Sense::hover());
    let range = interval.map(|interval| format!("{:.3}–{:.3}", interval.low, interval.high));
    let text = decimals(number);
    response.widget_info(|| {
        let range = range.as_ref().map_or_else(String::new, |range| format!(", 95 % interval {range}"));
        let label = format!("{name} {text}{range}");
        egui::WidgetInfo::labeled(egui::Role::Label, true, label)
    });
    let visuals = ui.visuals();
    let painter = ui.painter();
    painter.rect_filled(rect, CornerRadius::same(8), theme::raised_fill(visuals));
    let small = TextStyle::Small.resolve(ui.style());
    let (weak, strong) = (visuals.weak_text_color(), visuals.strong_text_color());
    let line = |top: f32, text: &str, font: FontId, color| {
        painter.text(pos2(rect.left() + 9.0, rect.top() + top), egui::Align2::LEFT_TOP, text, font, color);
    };
    line(6.0, name, small.clone(), weak);
    line(19.0, &text, FontId::new(18.0, theme::strong_family()), strong);
    line(41.0, range.as_deref().unwrap_or_default(), small, weak);
    let more = if range.is_some() {
        "\nBelow: 95 % interval, the range that holds the number of all images of this kind"
    } else {
        ""
    };
    response.on_hover_text(format!("{meaning}{more}"));
}
