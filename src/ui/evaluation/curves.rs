//! Precision and recall over the minimum score. It is moved by the pointer or the arrow keys, and every number follows.

use eframe::egui::{self, CursorIcon, EventFilter, Key, Modifiers, Pos2, Sense, Shape, Stroke, Ui, vec2};

use super::super::theme;
use super::chart::Chart;
use super::{Shown, queries, show_boxes};
use crate::domain::decimal;
use crate::evaluation::{Curve, CurvePoint, Metrics};
use crate::review::ClassOutcomes;
use crate::state::{Command, Queue, ReviewCommand, ViewChange};

/// In less width than this the charts are below each other.
const NARROW: f32 = 480.0;
const KEY_STEP: f32 = 0.01;

/// The minimum score that the charts show and change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threshold {
    pub(super) score: f32,
    /// The class of the model that has a minimum score of its own.
    class: Option<u32>,
}

impl Threshold {
    /// That of a class of the ground truth, or of all.
    pub(super) fn of(shown: &Shown<'_>, place: Option<u32>) -> Self {
        let view = shown.state.view();
        let class = place.and_then(|place| shown.outcomes.model_classes(place).next());
        let score = class.map_or(view.min_score, |class| view.min_score_of(class));
        let class = class.filter(|class| view.min_score_by_class.contains_key(class));
        Self { score, class }
    }

    pub(super) fn change(self, score: f32) -> ReviewCommand {
        let score = score.clamp(0.0, 1.0);
        ReviewCommand::ChangeView(match self.class {
            Some(class) => ViewChange::ClassMinScore(class, Some(score)),
            None => ViewChange::MinScore(score),
        })
    }
}

/// Of a class of the ground truth, or of all classes together.
pub(super) fn curves_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    place: Option<u32>,
    height: f32,
    commands: &mut Queue<Command>,
) {
    let Metrics::Detection { metrics, .. } = &shown.evaluated.metrics else {
        return;
    };
    let of_class = place.and_then(|place| metrics.classes.get(place as usize));
    let curve = of_class.map_or(&metrics.curve, |class| &class.curve);
    let name = place.map_or("all classes", |place| shown.name(place));
    if curve.points.is_empty() {
        ui.weak(format!("No curve of {name}: there are no objects, or no boxes"));
        return;
    }
    let threshold = Threshold::of(shown, place);
    let query = place.map_or_else(|| queries::ALL.to_owned(), |place| shown.all(place));
    let width = ui.available_width();
    let is_narrow = width < NARROW;
    let size = vec2(if is_narrow { width } else { (width - 16.0) / 2.0 }, height);
    let mut charts = |ui: &mut Ui| {
        precision_recall_ui(ui, size, name, curve, threshold, &query, commands);
        over_threshold_ui(ui, size, name, curve, threshold, &query, commands);
    };
    if is_narrow {
        ui.vertical(charts);
    } else {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 16.0;
            charts(ui);
        });
    }
    let counts = match place {
        Some(place) => shown.counts.classes.get(place as usize).copied().unwrap_or_default(),
        None => shown.counts.all(),
    };
    legend_ui(ui, counts, name);
}

/// The numbers are those of the cards: a curve is thinned for drawing.
fn legend_ui(ui: &mut Ui, counts: ClassOutcomes, name: &str) {
    ui.horizontal_wrapped(|ui| {
        let lines = [("F1", Line::Solid), ("precision", Line::Dashed), ("recall", Line::Dotted)];
        for (number, (what, line)) in lines.into_iter().enumerate() {
            let (place, _) = ui.allocate_exact_size(vec2(28.0, 16.0), Sense::hover());
            let ends = [place.left_center(), place.right_center()];
            line.draw(ui, &ends);
            let number = [counts.f1(), counts.precision(), counts.recall()][number];
            ui.label(format!("{what} {}", super::decimals(number)));
        }
        ui.weak(format!("of {name}, at the filters on screen"));
    });
}

#[derive(Debug, Clone, Copy)]
enum Line {
    Solid,
    Dashed,
    Dotted,
}

impl Line {
    fn draw(self, ui: &Ui, points: &[Pos2]) {
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

fn precision_recall_ui(
    ui: &mut Ui,
    size: egui::Vec2,
    name: &str,
    curve: &Curve,
    threshold: Threshold,
    query: &str,
    commands: &mut Queue<Command>,
) {
    let chart = Chart::new(ui, size, Sense::click_and_drag(), ["Recall", "Precision"]);
    let place = |point: &CurvePoint| chart.at(point.recall, point.precision);
    let line: Vec<Pos2> = curve.points.iter().map(place).collect();
    Line::Solid.draw(ui, &line);
    let now = curve.at(decimal(threshold.score));
    if let Some(now) = now {
        let visuals = ui.visuals();
        let edge = Stroke::new(2.0, visuals.strong_text_color());
        ui.painter().circle(place(&now), 5.0, theme::accent(visuals), edge);
    }
    let says =
        now.map_or_else(String::new, |now| format!(": precision {:.2}, recall {:.2}", now.precision, now.recall));
    let label = format!("Precision-recall curve of {name}, minimum score{says}");
    let hovered = chart.response.hover_pos().and_then(|pointer| nearest(&chart, curve, pointer));
    if let Some(point) = hovered {
        ui.painter().circle_stroke(place(&point), 4.0, Stroke::new(1.5, ui.visuals().text_color()));
    }
    let set = |pointer: Pos2| nearest(&chart, curve, pointer).map(|point| point.threshold as f32);
    threshold_control_ui(ui, &chart, (threshold, curve), (&label, query), set, commands);
}

fn over_threshold_ui(
    ui: &mut Ui,
    size: egui::Vec2,
    name: &str,
    curve: &Curve,
    threshold: Threshold,
    query: &str,
    commands: &mut Queue<Command>,
) {
    let chart = Chart::new(ui, size, Sense::click_and_drag(), ["Minimum score", "F1, precision, recall"]);
    let line_of = |of: fn(&CurvePoint) -> f64| -> Vec<Pos2> {
        curve.points.iter().map(|point| chart.at(point.threshold, of(point))).collect()
    };
    Line::Dotted.draw(ui, &line_of(|point| point.recall));
    Line::Dashed.draw(ui, &line_of(|point| point.precision));
    Line::Solid.draw(ui, &line_of(|point| point.f1));
    let strong = ui.visuals().strong_text_color();
    let x = chart.at(decimal(threshold.score), 0.0).x;
    ui.painter().vline(x, chart.plot.y_range(), Stroke::new(2.0, strong));
    let handle = egui::Rect::from_center_size(egui::pos2(x, chart.plot.top()), vec2(10.0, 10.0));
    ui.painter().rect_filled(handle, 2.0, strong);
    let says = curve.at(decimal(threshold.score)).map_or_else(String::new, |now| format!(": F1 {:.2}", now.f1));
    let label = format!("F1 over the minimum score of {name}, minimum score{says}");
    // To the hundredth, as the slider of the filters.
    let set = |pointer: Pos2| Some((chart.across(pointer) * 100.0).round() / 100.0);
    threshold_control_ui(ui, &chart, (threshold, curve), (&label, query), set, commands);
}

fn text_of(point: CurvePoint) -> String {
    let CurvePoint { threshold, precision, recall, f1 } = point;
    format!(
        "Minimum score {threshold:.3}: precision {precision:.2}, recall {recall:.2}, F1 {f1:.2}\n\
        Click to use it and show its boxes, drag to move it"
    )
}

/// The point of the curve that is nearest to a place on screen.
fn nearest(chart: &Chart, curve: &Curve, place: Pos2) -> Option<CurvePoint> {
    let distance = |point: &CurvePoint| chart.at(point.recall, point.precision).distance_sq(place);
    let ends = curve.points.windows(2);
    let along = |ends: &[CurvePoint]| {
        let [from, to] = [ends[0], ends[1]].map(|point| chart.at(point.recall, point.precision));
        let length = (to - from).length_sq();
        let share = if length > 0.0 { ((place - from).dot(to - from) / length).clamp(0.0, 1.0) } else { 0.0 };
        let between = |one: f64, other: f64| one + f64::from(share) * (other - one);
        CurvePoint {
            threshold: between(ends[0].threshold, ends[1].threshold),
            precision: between(ends[0].precision, ends[1].precision),
            recall: between(ends[0].recall, ends[1].recall),
            f1: between(ends[0].f1, ends[1].f1),
        }
    };
    let found = ends.map(along).chain(curve.points.first().copied());
    found.min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

/// What a chart does as a slider. `set`: the minimum score at a place of the pointer.
fn threshold_control_ui(
    ui: &Ui,
    chart: &Chart,
    (threshold, curve): (Threshold, &Curve),
    (label, query): (&str, &str),
    set: impl Fn(Pos2) -> Option<f32>,
    commands: &mut Queue<Command>,
) {
    let response = &chart.response;
    let score = threshold.score;
    response.widget_info(|| egui::WidgetInfo::slider(ui.is_enabled(), score.into(), label));
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
    if let Some(new) = pointer.and_then(&set).or_else(|| moved_by_keys(ui, response, score))
        && new != score
    {
        commands.push(threshold.change(new));
    }
    if response.clicked() {
        show_boxes(commands, query.to_owned());
    }
    let response = response.clone().on_hover_cursor(CursorIcon::ResizeHorizontal);
    // The numbers that a click gives: on a steep part they are those of its end, not of the place between.
    let hovered = response.hover_pos().and_then(set);
    if let Some(point) = hovered.and_then(|score| curve.at(decimal(score))) {
        response.on_hover_text_at_pointer(text_of(point));
    }
}

/// The minimum score that arrow keys or a screen reader ask for.
fn moved_by_keys(ui: &Ui, response: &egui::Response, score: f32) -> Option<f32> {
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
