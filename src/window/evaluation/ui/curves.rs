//! The curves of an evaluation, and the reliability of its scores.

use eframe::egui::{self, CursorIcon, EventFilter, Modifiers, Shape};

use crate::domain::{decimal, min_score_text};
use crate::evaluation::{ClassificationMetrics, Curve, CurvePoint, Metrics, ReliabilityBin};
use crate::review::{BoxQuery, BoxTerm, ClassName, ClassOutcomes, Span};
use crate::window::evaluation::ui::Shown;
use crate::window::state::ViewChange;
use crate::window::ui::prelude::*;

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
    pub(crate) fn new(ui: &mut Ui, size: Vec2, sense: Sense, [across, up]: [&str; 2]) -> Self {
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
            let position = pos2(plot.left() - 4.0, at.y);
            if tick > 0.0 {
                painter.text(position, Align2::RIGHT_CENTER, &text, font.clone(), color);
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
            painter.rect_stroke(plot.expand(2.0), 2.0, stroke, StrokeKind::Outside);
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

/// Below this width, the charts are stacked.
const NARROW: f32 = 480.0;
const KEY_STEP: f32 = 0.01;

/// The minimum score that the charts show and change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threshold {
    pub(crate) score: f32,
    /// The class of the model with a minimum score of its own.
    class: Option<u32>,
}

impl Threshold {
    /// For a ground-truth class, or for all.
    pub(crate) fn new(shown: &Shown<'_>, place: Option<u32>) -> Self {
        let view = shown.state.view();
        let class = place.and_then(|place| shown.outcomes.model_classes(place).next());
        let score = class.map_or(view.min_score, |class| view.min_score_of(class));
        let class = class.filter(|class| view.min_score_by_class.contains_key(class));
        Self { score, class }
    }

    pub(crate) fn change(self, score: f32) -> ReviewCommand {
        let score = score.clamp(0.0, 1.0);
        ReviewCommand::ChangeView(match self.class {
            Some(class) => ViewChange::ClassMinScore(class, Some(score)),
            None => ViewChange::MinScore(score),
        })
    }
}

/// The curves of a ground-truth class, or of all classes together.
struct Charts<'c> {
    name: &'c str,
    curve: &'c Curve,
    threshold: Threshold,
    /// The search for the boxes of the curves.
    query: BoxQuery,
    size: Vec2,
}

/// For a ground-truth class, or for all classes together.
pub(crate) fn curves_ui(ui: &mut Ui, shown: &Shown<'_>, place: Option<u32>, height: f32, commands: &mut Commands) {
    let Metrics::Detection { metrics, .. } = &shown.evaluated.metrics else {
        return;
    };
    let of_class = place.and_then(|place| metrics.classes.get(place as usize));
    let curve = of_class.map_or(&metrics.curve, |class| &class.curve);
    let name = place.map_or("all classes", |place| shown.name(place));
    if curve.points.is_empty() {
        ui.weak(format!("No curve for {name}: no objects or no boxes"));
        return;
    }
    let threshold = Threshold::new(shown, place);
    let query = shown.compared(place);
    let width = ui.available_width();
    let is_narrow = width < NARROW;
    let size = vec2(if is_narrow { width } else { (width - 16.0) / 2.0 }, height);
    let charts = Charts { name, curve, threshold, query, size };
    let mut both_ui = |ui: &mut Ui| {
        charts.precision_recall_ui(ui, commands);
        charts.over_threshold_ui(ui, commands);
    };
    if is_narrow {
        ui.vertical(both_ui);
    } else {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 16.0;
            both_ui(ui);
        });
    }
    let counts = match place {
        Some(place) => shown.counts.classes.get(place as usize).copied().unwrap_or_default(),
        None => shown.counts.all(),
    };
    legend_ui(ui, counts, name);
}

/// The numbers equal those of the cards: a curve is thinned for drawing.
fn legend_ui(ui: &mut Ui, counts: ClassOutcomes, name: &str) {
    ui.horizontal_wrapped(|ui| {
        let lines = [
            ("F1", Line::Solid, counts.f1()),
            ("precision", Line::Dashed, counts.precision()),
            ("recall", Line::Dotted, counts.recall()),
        ];
        for (what, line, number) in lines {
            let (place, _) = ui.allocate_exact_size(vec2(28.0, 16.0), Sense::hover());
            let ends = [place.left_center(), place.right_center()];
            line.draw(ui, &ends);
            ui.label(format!("{what} {}", super::decimals(number)));
        }
        ui.weak(format!("{name}, with the current filters"));
    });
}

/// The style of a curve.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Line {
    Solid,
    Dashed,
    Dotted,
}

impl Line {
    pub(crate) fn draw(self, ui: &Ui, points: &[Pos2]) {
        let visuals = ui.visuals();
        let (accent, text) = (theme::accent(visuals), visuals.text_color());
        let painter = ui.painter();
        match self {
            Self::Solid => {
                painter.line(points.to_vec(), Stroke::new(2.0, accent));
            }
            Self::Dashed => painter.extend(Shape::dashed_line(points, Stroke::new(1.5, text), 6.0, 4.0)),
            Self::Dotted => painter.extend(Shape::dotted_line(points, text, 4.0, 1.0)),
        }
    }
}

impl Charts<'_> {
    fn precision_recall_ui(&self, ui: &mut Ui, commands: &mut Commands) {
        let chart = Chart::new(ui, self.size, Sense::click_and_drag(), ["Recall", "Precision"]);
        let line: Vec<Pos2> = self.curve.points.iter().map(|point| chart.at(point.recall, point.precision)).collect();
        Line::Solid.draw(ui, &line);
        let mut says = String::new();
        if let Some(now) = self.curve.at(decimal(self.threshold.score)) {
            let edge = Stroke::new(2.0, ui.visuals().strong_text_color());
            ui.painter().circle(chart.at(now.recall, now.precision), 5.0, theme::accent(ui.visuals()), edge);
            says = format!(": precision {:.2}, recall {:.2}", now.precision, now.recall);
        }
        let label = format!("Precision-recall curve for {}, minimum score{says}", self.name);
        if let Some((place, _)) = chart.response.hover_pos().and_then(|pointer| self.nearest(&line, pointer)) {
            ui.painter().circle_stroke(place, 4.0, Stroke::new(1.5, ui.visuals().text_color()));
        }
        let score_at = |pointer: Pos2| self.nearest(&line, pointer).map(|(_, score)| score as f32);
        self.control_ui(ui, &chart, &label, score_at, commands);
    }

    fn over_threshold_ui(&self, ui: &mut Ui, commands: &mut Commands) {
        let chart = Chart::new(ui, self.size, Sense::click_and_drag(), ["Minimum score", "F1, precision, recall"]);
        let line_of = |of: fn(&CurvePoint) -> f64| -> Vec<Pos2> {
            self.curve.points.iter().map(|point| chart.at(point.threshold, of(point))).collect()
        };
        Line::Dotted.draw(ui, &line_of(|point| point.recall));
        Line::Dashed.draw(ui, &line_of(|point| point.precision));
        Line::Solid.draw(ui, &line_of(|point| point.f1));
        let strong = ui.visuals().strong_text_color();
        let score = decimal(self.threshold.score);
        let top = chart.at(score, 1.0);
        ui.painter().vline(top.x, chart.plot.y_range(), Stroke::new(2.0, strong));
        ui.painter().rect_filled(Rect::from_center_size(top, vec2(10.0, 10.0)), 2.0, strong);
        let says = self.curve.at(score).map_or_else(String::new, |now| format!(": F1 {:.2}", now.f1));
        let label = format!("F1 by minimum score for {}, minimum score{says}", self.name);
        // Rounded to 0.01, like the filters' slider.
        let score_at = |pointer: Pos2| Some((chart.across(pointer) * 100.0).round() / 100.0);
        self.control_ui(ui, &chart, &label, score_at, commands);
    }

    /// The point on the curve that is closest to the pointer, and its minimum score.
    fn nearest(&self, line: &[Pos2], pointer: Pos2) -> Option<(Pos2, f64)> {
        let points = &self.curve.points;
        let along = |(ends, scores): (&[Pos2], &[CurvePoint])| {
            let across = ends[1] - ends[0];
            let length = across.length_sq();
            let share = if length > 0.0 { ((pointer - ends[0]).dot(across) / length).clamp(0.0, 1.0) } else { 0.0 };
            let score = scores[0].threshold + f64::from(share) * (scores[1].threshold - scores[0].threshold);
            (ends[0] + share * across, score)
        };
        let found = line.windows(2).zip(points.windows(2)).map(along);
        let found = found.chain(line.first().copied().zip(points.first().map(|point| point.threshold)));
        found.min_by(|(one, _), (other, _)| one.distance_sq(pointer).total_cmp(&other.distance_sq(pointer)))
    }

    /// The slider behavior of a chart. `score_at` is the minimum score at a position of the pointer.
    fn control_ui(
        &self,
        ui: &Ui,
        chart: &Chart,
        label: &str,
        score_at: impl Fn(Pos2) -> Option<f32>,
        commands: &mut Commands,
    ) {
        let response = &chart.response;
        let score = self.threshold.score;
        response.widget_info(|| WidgetInfo::slider(ui.is_enabled(), score.into(), label));
        ui.ctx().accesskit_node_builder(response.id, |node| {
            use egui::accesskit::Action::{Decrement, Increment, SetValue};
            node.set_min_numeric_value(0.0);
            node.set_max_numeric_value(1.0);
            node.set_numeric_value_step(KEY_STEP.into());
            for action in [Increment, Decrement, SetValue] {
                node.add_action(action);
            }
        });
        let pointer = response.interact_pointer_pos().filter(|_| response.clicked() || response.dragged());
        if let Some(new) = pointer.and_then(&score_at).or_else(|| moved_by_keys(ui, response, score))
            && new != score
        {
            commands.push(self.threshold.change(new));
        }
        if response.clicked() {
            commands.push(SearchCommand::ShowBoxes(self.query.clone()));
        }
        let response = response.clone().on_hover_cursor(CursorIcon::ResizeHorizontal);
        // The numbers that a click selects: on a steep part, those at its end rather than in between.
        let hovered = response.hover_pos().and_then(score_at);
        if let Some(point) = hovered.and_then(|score| self.curve.at(decimal(score))) {
            response.on_hover_text_at_pointer(text_of(point));
        }
    }
}

fn text_of(point: CurvePoint) -> String {
    let CurvePoint { threshold, precision, recall, f1 } = point;
    let threshold = min_score_text(threshold);
    format!(
        "Minimum score {threshold}: precision {precision:.2}, recall {recall:.2}, F1 {f1:.2}\nClick to apply it \
         and show its boxes; drag to adjust"
    )
}

/// The minimum score requested with arrow keys or a screen reader.
fn moved_by_keys(ui: &Ui, response: &Response, score: f32) -> Option<f32> {
    use egui::accesskit::{Action, ActionData};
    let mut steps = 0.0;
    if response.has_focus() {
        let keys = EventFilter { horizontal_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, keys));
        ui.input_mut(|input| {
            for (key, sign) in [(Key::ArrowLeft, -1.0), (Key::ArrowRight, 1.0)] {
                steps += 10.0 * sign * input.count_and_consume_key(Modifiers::SHIFT, key) as f32;
                steps += sign * input.count_and_consume_key(Modifiers::NONE, key) as f32;
            }
        });
    }
    ui.input(|input| {
        steps += input.num_accesskit_action_requests(response.id, Action::Increment) as f32;
        steps -= input.num_accesskit_action_requests(response.id, Action::Decrement) as f32;
        let asked = input.accesskit_action_requests(response.id, Action::SetValue).last();
        let value = asked.and_then(|request| match request.data {
            Some(ActionData::NumericValue(value)) => Some(value as f32),
            _ => None,
        });
        let moved = ((score + steps * KEY_STEP).clamp(0.0, 1.0) * 1000.0).round() / 1000.0;
        value.or((steps != 0.0).then_some(moved))
    })
}

const HEIGHT: f32 = 280.0;
const MOST_WIDTH: f32 = 460.0;

/// The size of a single chart.
pub(crate) fn chart_size(ui: &Ui) -> Vec2 {
    vec2(ui.available_width().min(MOST_WIDTH), HEIGHT)
}

pub(crate) fn reliability_ui(ui: &mut Ui, metrics: &ClassificationMetrics, commands: &mut Commands) {
    let size = chart_size(ui);
    let chart = Chart::new(ui, size, Sense::hover(), ["Score of the top class", "Accuracy"]);
    let most = metrics.reliability.iter().map(|bin| bin.images).max().unwrap_or(0).max(1);
    for bin in &metrics.reliability {
        if bin_ui(ui, &chart, bin, most) {
            commands.push(SearchCommand::ShowBoxes(images_in(bin).into()));
        }
    }
    let diagonal = [chart.at(0.0, 0.0), chart.at(1.0, 1.0)];
    let line = Stroke::new(1.5, ui.visuals().text_color());
    ui.painter().extend(Shape::dashed_line(&diagonal, line, 5.0, 4.0));
    let says = "Bars: accuracy (darker = more images). Line: mean score. Calibrated scores reach the dashed line";
    small_note_ui(ui, says);
}

fn images_in(bin: &ReliabilityBin) -> BoxTerm {
    let high = if bin.to >= 1.0 { f32::INFINITY } else { lowest_score(bin.to) };
    let score = Some(Span { low: lowest_score(bin.from), high, includes_high: false, ..Span::ANY });
    BoxTerm { truth: Some(ClassName::new("*")), score, ..BoxTerm::default() }
}

/// Scores are `f32`: the lowest one that is not below a bound.
fn lowest_score(bound: f64) -> f32 {
    let nearest = bound as f32;
    if decimal(nearest) < bound { nearest.next_up() } else { nearest }
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
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &text));
    let visuals = ui.visuals();
    let bar = place.with_min_y(chart.at(0.0, accuracy).y);
    let accent = theme::accent(visuals);
    // The more images, the greater their weight in the error.
    let weight = 0.35 + 0.65 * bin.images as f32 / most as f32;
    ui.painter().rect_filled(bar, CornerRadius::ZERO, accent.gamma_multiply(weight));
    ui.painter().rect_stroke(bar, 0.0, Stroke::new(1.0, accent), StrokeKind::Inside);
    let y = chart.at(0.0, mean_score).y;
    let mark = [pos2(place.left(), y), pos2(place.right(), y)];
    ui.painter().line_segment(mark, Stroke::new(2.0, visuals.strong_text_color()));
    if response.hovered() || response.has_focus() {
        let stroke = Stroke::new(2.0, visuals.strong_text_color());
        ui.painter().rect_stroke(place, 0.0, stroke, StrokeKind::Inside);
    }
    response.on_hover_text(format!("{text}\nClick to show them")).clicked()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_round_trips_as_the_lowest_score() {
        for bins in [10, 15, 20] {
            for bin in 0..=bins {
                let bound = f64::from(bin) / f64::from(bins);
                let score = lowest_score(bound);
                assert!(decimal(score) >= bound && (score == 0.0 || decimal(score.next_down()) < bound), "{bound}");
                let read = score.to_string().parse::<f64>().unwrap() as f32;
                assert_eq!(read, score);
            }
        }
    }
}
