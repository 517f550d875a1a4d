//! A chart with both axes from 0 to 1.

use eframe::egui::{self, Align2, CornerRadius, Pos2, Rect, Response, Sense, Stroke, TextStyle, Ui, pos2, vec2};

use crate::window::ui::theme;

const LEFT: f32 = 48.0;
const BOTTOM: f32 = 32.0;
const TOP: f32 = 8.0;
const RIGHT: f32 = 10.0;

pub(crate) struct Chart {
    pub(crate) response: Response,
    /// Inside the axes.
    pub(crate) plot: Rect,
}

impl Chart {
    /// Draws the axes.
    pub(crate) fn new(ui: &mut Ui, size: egui::Vec2, sense: Sense, [across, up]: [&str; 2]) -> Self {
        let (rect, response) = ui.allocate_exact_size(size, sense);
        let plot = Rect::from_min_max(rect.min + vec2(LEFT, TOP), rect.max - vec2(RIGHT, BOTTOM));
        let chart = Self { response, plot };
        let visuals = ui.visuals();
        let painter = ui.painter();
        painter.rect_filled(plot, CornerRadius::ZERO, theme::sunken_fill(visuals));
        let grid = Stroke::new(1.0, theme::line(visuals));
        let font = TextStyle::Small.resolve(ui.style());
        let color = visuals.weak_text_color();
        for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let at = chart.at(tick, tick);
            painter.vline(at.x, plot.y_range(), grid);
            painter.hline(plot.x_range(), at.y, grid);
            let text = if tick == 0.0 || tick == 1.0 { format!("{tick:.0}") } else { format!("{tick:.2}") };
            painter.text(pos2(at.x, plot.bottom() + 3.0), Align2::CENTER_TOP, &text, font.clone(), color);
            let beside = pos2(plot.left() - 4.0, at.y);
            if tick > 0.0 {
                painter.text(beside, Align2::RIGHT_CENTER, &text, font.clone(), color);
            }
        }
        let below = pos2(plot.center().x, plot.bottom() + 17.0);
        painter.text(below, Align2::CENTER_TOP, across, font.clone(), color);
        let galley = painter.layout_no_wrap(up.to_owned(), font, color);
        let start = pos2(rect.left(), plot.center().y + galley.size().x / 2.0);
        let turned = egui::epaint::TextShape::new(start, galley, color).with_angle(-std::f32::consts::FRAC_PI_2);
        painter.add(turned);
        if chart.response.has_focus() {
            let stroke = Stroke::new(2.0, theme::accent(visuals));
            painter.rect_stroke(plot.expand(2.0), 2.0, stroke, egui::StrokeKind::Outside);
        }
        chart
    }

    /// The position of a point, `0.0..=1.0` each.
    pub(crate) fn at(&self, across: f64, up: f64) -> Pos2 {
        let plot = self.plot;
        pos2(plot.left() + across as f32 * plot.width(), plot.bottom() - up as f32 * plot.height())
    }

    /// The horizontal position, `0.0..=1.0`.
    pub(crate) fn across(&self, place: Pos2) -> f32 {
        ((place.x - self.plot.left()) / self.plot.width()).clamp(0.0, 1.0)
    }
}
