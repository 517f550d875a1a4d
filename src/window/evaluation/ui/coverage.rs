//! The accuracy of a classifier's top class over coverage, of one run or of two.

use super::curves::{Chart, Line};
use super::decimals;
use crate::domain::{decimal, min_score_text};
use crate::evaluation::{ClassificationMetrics, CoveragePoint};
use crate::window::ui::prelude::*;

/// A line of the chart.
pub(crate) struct CoverageLine<'c> {
    /// What distinguishes it from other lines: “A: ”; empty for a single one.
    pub(crate) prefix: &'static str,
    pub(crate) line: Line,
    pub(crate) metrics: &'c ClassificationMetrics,
    /// That of the view, whose point is marked.
    pub(crate) min_score: f32,
}

impl CoverageLine<'_> {
    fn top1_text(&self) -> String {
        format!("{}top-1 {}", self.prefix, decimals(self.metrics.top1))
    }

    /// The point at the minimum score, if there is one.
    fn now(&self) -> Option<CoveragePoint> {
        self.metrics.curve.at(decimal(self.min_score)).filter(|_| self.min_score > 0.0)
    }

    /// The point whose images are at least this fraction of all.
    fn at_coverage(&self, coverage: f64) -> Option<CoveragePoint> {
        let points = &self.metrics.curve.points;
        points.iter().find(|point| point.coverage >= coverage).or(points.last()).copied()
    }
}

/// Each line leads from the images with the highest scores to all images, whose accuracy is top-1.
pub(crate) fn coverage_ui(ui: &mut Ui, size: Vec2, lines: &[CoverageLine<'_>]) {
    let chart = Chart::new(ui, size, Sense::hover(), ["Coverage", "Accuracy"]);
    let at = |point: &CoveragePoint| chart.at(point.coverage, point.accuracy);
    for CoverageLine { line, metrics, .. } in lines.iter().rev() {
        let points: Vec<Pos2> = metrics.curve.points.iter().map(at).collect();
        line.draw(ui, &points);
    }
    let visuals = ui.visuals();
    let edge = Stroke::new(2.0, visuals.strong_text_color());
    for (line, fill) in lines.iter().zip([theme::accent(visuals), theme::sunken_fill(visuals)]) {
        if let Some(now) = line.now() {
            ui.painter().circle(at(&now), 5.0, fill, edge);
        }
    }
    let texts = lines.iter().flat_map(|line| [Some(line.top1_text()), line.now().map(point_text)]);
    let texts: Vec<String> = texts.flatten().collect();
    let label = format!("Accuracy by coverage, {}", texts.join(", "));
    chart.response.widget_info(|| WidgetInfo::labeled(Role::Image, true, label.as_str()));
    let coverage = chart.response.hover_pos().map(|pointer| f64::from(chart.across(pointer)));
    let mut hints = vec!["Images with at least a minimum score: their fraction, and their accuracy".to_owned()];
    for line in lines {
        let Some(point) = coverage.and_then(|coverage| line.at_coverage(coverage)) else {
            continue;
        };
        let edge = Stroke::new(1.5, ui.visuals().text_color());
        ui.painter().circle_stroke(at(&point), 4.0, edge);
        hints.push(format!("{}{}", line.prefix, point_text(point)));
    }
    chart.response.on_hover_text_at_pointer(hints.join("\n"));
    for line in lines {
        ui.horizontal(|ui| {
            let (place, _) = ui.allocate_exact_size(vec2(28.0, 16.0), Sense::hover());
            line.line.draw(ui, &[place.left_center(), place.right_center()]);
            ui.label(line.top1_text());
        });
        if let Some(now) = line.now() {
            small_note_ui(ui, point_text(now));
        }
    }
}

fn point_text(CoveragePoint { threshold, accuracy, coverage }: CoveragePoint) -> String {
    format!("score ≥ {}: accuracy {accuracy:.3}, coverage {coverage:.3}", min_score_text(threshold))
}
