//! A metric with its name, confidence interval and meaning.

use eframe::egui::{self, CornerRadius, FontId, Sense, TextStyle, Ui, pos2, vec2};

use super::decimals;
use crate::evaluation::Interval;
use crate::window::ui::theme;

const SIZE: egui::Vec2 = vec2(96.0, 58.0);

/// The text below the metric of a card.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CardInterval {
    Measured(Interval),
    /// Why this metric has no interval.
    Missing(&'static str),
    /// No intervals were measured with these filters.
    NotMeasured,
}

impl CardInterval {
    /// `is_measured`: intervals were measured, so that a missing one has a reason.
    pub(crate) fn new(interval: Option<Interval>, is_measured: bool) -> Self {
        match interval {
            Some(interval) => Self::Measured(interval),
            None if is_measured => Self::Missing("some resamples have too few boxes or objects to measure this"),
            None => Self::NotMeasured,
        }
    }
}

pub(crate) fn card_ui(ui: &mut Ui, name: &str, number: Option<f64>, interval: CardInterval, meaning: &str) {
    let (rect, response) = ui.allocate_exact_size(SIZE, Sense::hover());
    let text = decimals(number);
    let (below, spoken, more) = match interval {
        CardInterval::Measured(Interval { low, high }) => {
            let range = format!("{low:.3}–{high:.3}");
            let spoken = format!(", 95% interval {range}");
            let more = "\nBelow: 95% interval, the range expected for other images of this kind";
            (range, spoken, more.to_owned())
        }
        CardInterval::Missing(reason) => {
            ("no interval".to_owned(), ", no interval".to_owned(), format!("\nNo interval: {reason}"))
        }
        CardInterval::NotMeasured => Default::default(),
    };
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, format!("{name} {text}{spoken}")));
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
    line(41.0, &below, small, weak);
    response.on_hover_text(format!("{meaning}{more}"));
}
