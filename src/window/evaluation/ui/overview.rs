//! The main metrics, the curves, and the kinds of errors.

use crate::domain::{ModelTask, decimal, min_score_text, score_text};
use crate::evaluation::{
    ClassificationIntervals, ClassificationMetrics, DetectionIntervals, DetectionMetrics, Interval, Metrics,
};
use crate::review::{ClassOutcomes, OutcomeKind, OutcomeWord};
use crate::window::evaluation::ui::coverage::{CoverageLine, coverage_ui};
use crate::window::evaluation::ui::curves::{Line, Threshold, chart_size, curves_ui, reliability_ui};
use crate::window::evaluation::ui::suspicious::suspicious_ui;
use crate::window::evaluation::ui::{Shown, count_button_ui, decimals};
use crate::window::state::EvaluationCommand;
use crate::window::ui::prelude::*;

const CURVES_HEIGHT: f32 = 230.0;

pub(crate) fn overview_ui(ui: &mut Ui, shown: &Shown<'_>, commands: &mut Commands) {
    ScrollArea::vertical().id_salt("overview of the evaluation").auto_shrink(false).show(ui, |ui| {
        match &shown.evaluated.metrics {
            Metrics::Detection { metrics, intervals } => {
                detection_ui(ui, shown, metrics, intervals.as_ref(), commands);
            }
            Metrics::Classification { metrics, intervals } => {
                classification_ui(ui, shown, metrics, *intervals, commands);
            }
        }
        suspicious_ui(ui, shown, commands);
        notes_ui(ui, shown);
    });
}

fn detection_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    metrics: &DetectionMetrics,
    intervals: Option<&DetectionIntervals>,
    commands: &mut Commands,
) {
    ui.horizontal_wrapped(|ui| average_cards_ui(ui, metrics, intervals));
    found_ui(ui, shown, commands);
    ui.add_space(4.0);
    threshold_ui(ui, shown, metrics, intervals, commands);
    ui.separator();
    curves_ui(ui, shown, None, CURVES_HEIGHT, commands);
    section_ui(ui, "Errors", true, |ui| errors_ui(ui, shown, metrics, commands));
    section_ui(ui, "All COCO and Pascal VOC metrics", false, |ui| {
        let numbers = [
            ("AP small", metrics.ap_small),
            ("AP medium", metrics.ap_medium),
            ("AP large", metrics.ap_large),
            ("AR1", metrics.ar1),
            ("AR10", metrics.ar10),
            ("AR100", metrics.ar100),
            ("AR small", metrics.ar_small),
            ("AR medium", metrics.ar_medium),
            ("AR large", metrics.ar_large),
            ("VOC 2007 AP", metrics.voc2007_ap),
            ("VOC 2012 AP", metrics.voc2012_ap),
        ];
        for (name, number) in numbers {
            key_value_ui(ui, name, &decimals(number));
        }
    });
}

fn average_cards_ui(ui: &mut Ui, metrics: &DetectionMetrics, intervals: Option<&DetectionIntervals>) {
    let of = intervals.copied().unwrap_or_default();
    let interval = |interval| CardInterval::new(interval, intervals.is_some());
    let meaning = "Average precision over IoU 0.50 to 0.95, as COCO defines it. It is biased upwards for classes with \
        few objects, so its interval extends further down.";
    card_ui(ui, "AP", metrics.ap, interval(of.ap), meaning);
    card_ui(ui, "AP50", metrics.ap50, interval(of.ap50), "Average precision at IoU 0.50");
    card_ui(ui, "AP75", metrics.ap75, interval(of.ap75), "Average precision at IoU 0.75");
    let meaning = "Average recall with at most 100 boxes per class and image";
    card_ui(ui, "AR100", metrics.ar100, interval(of.ar100), meaning);
}

fn threshold_cards_ui(ui: &mut Ui, [precision, recall, f1]: [Option<f64>; 3], intervals: Option<&DetectionIntervals>) {
    let of = intervals.copied().unwrap_or_default();
    let interval = |interval| CardInterval::new(interval, intervals.is_some());
    card_ui(ui, "Precision", precision, interval(of.precision), "Fraction of boxes that are correct at IoU 0.50");
    card_ui(ui, "Recall", recall, interval(of.recall), "Fraction of objects that were detected");
    card_ui(ui, "F1", f1, interval(of.f1), "Harmonic mean of precision and recall");
}

/// The metrics of the search results alone.
fn found_ui(ui: &mut Ui, shown: &Shown<'_>, commands: &mut Commands) {
    let (state, Some(evaluation)) = (shown.state, shown.state.evaluation()) else {
        return;
    };
    let search = state.arranging.text().trim();
    let found = evaluation.found.ready();
    if let Some(found) = found {
        ui.add_space(4.0);
        let images = counted(found.images, "image", "images");
        ui.label(strong(format!("Search results of “{}” alone ({images})", found.search)));
        ui.horizontal_wrapped(|ui| match &found.metrics {
            Metrics::Detection { metrics, intervals } => {
                average_cards_ui(ui, metrics, intervals.as_ref());
                let numbers = [metrics.precision, metrics.recall, metrics.f1];
                threshold_cards_ui(ui, numbers, intervals.as_ref());
            }
            Metrics::Classification { metrics, intervals } => classification_cards_ui(ui, metrics, *intervals),
        });
    }
    if let Some(failure) = evaluation.found.failure() {
        problem_ui(ui, failure.message());
    }
    if evaluation.found.is_loading() {
        ui.weak("Evaluating the search results…");
    } else if state.arranging.is_filtered() && found.is_none_or(|found| found.search != search) {
        let tooltip = "Measures AP, precision and recall on the images that the search finds, next to those of all \
            images";
        ui.button("Evaluate the search results alone")
            .on_hover_text(tooltip)
            .on_click(commands, || EvaluationCommand::EvaluateFound);
    }
}

/// Precision and recall at the minimum score, and the minimum score with the best F1.
fn threshold_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    metrics: &DetectionMetrics,
    intervals: Option<&DetectionIntervals>,
    commands: &mut Commands,
) {
    let all = shown.counts.all();
    let threshold = Threshold::new(shown, None);
    let score = score_text(decimal(threshold.score));
    ui.label(strong(format!("With the current filters (score ≥ {score})")));
    let ClassOutcomes { correct, wrong, false_negatives } = all;
    // The intervals were measured with the evaluation's filters.
    let is_measured =
        (correct, wrong, false_negatives) == (metrics.true_positives, metrics.false_positives, metrics.false_negatives);
    let offers_intervals = intervals.is_some() && !is_measured;
    let intervals = intervals.filter(|_| is_measured);
    ui.horizontal_wrapped(|ui| {
        threshold_cards_ui(ui, [all.precision(), all.recall(), all.f1()], intervals);
        let is_idle = shown.state.evaluation().is_some_and(|evaluation| !evaluation.status.is_loading());
        if offers_intervals && is_idle {
            let link = ui.link(RichText::new("Update intervals").small());
            let tooltip = "The 95% intervals were computed with other filters. Evaluates again with the current \
                filters";
            link.on_hover_text(tooltip).on_click(commands, || EvaluationCommand::EvaluateAgain);
        }
    });
    ui.horizontal_wrapped(|ui| {
        let counts = [
            (correct, "TP", "True positives", OutcomeWord::Right),
            (wrong, "FP", "False positives", OutcomeWord::Wrong),
            (false_negatives, "FN", "False negatives: undetected objects", OutcomeWord::NotFound),
        ];
        for (count, what, meaning, outcome) in counts {
            count_button_ui(ui, (count, what), meaning, outcome, commands);
        }
    });
    if let Some(best) = metrics.best {
        ui.horizontal_wrapped(|ui| {
            // Rounded down, because the box with this score counts.
            let score = (best.threshold * 1000.0).floor() / 1000.0;
            let label = ui.label(format!("Best F1: {:.3} at a minimum score of {score:.3}", best.f1));
            label.on_hover_text(format!("Minimum score {}", min_score_text(best.threshold)));
            let score = best.threshold as f32;
            if threshold.score == score {
                ui.weak("in use");
            } else if ui.button("Use this score").on_hover_text("Sets the minimum score").clicked() {
                commands.push(threshold.change(score));
            }
        });
    }
}

fn classification_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    metrics: &ClassificationMetrics,
    intervals: Option<ClassificationIntervals>,
    commands: &mut Commands,
) {
    ui.horizontal_wrapped(|ui| classification_cards_ui(ui, metrics, intervals));
    found_ui(ui, shown, commands);
    ui.horizontal_wrapped(|ui| {
        let right = shown.counts.kind(OutcomeKind::Correct);
        let wrong = shown.counts.kind(OutcomeKind::Class);
        count_button_ui(ui, (right, "correct"), "Images whose top class is correct", OutcomeWord::Right, commands);
        count_button_ui(ui, (wrong, "wrong"), "Images whose top class is wrong", OutcomeWord::Wrong, commands);
    });
    ui.separator();
    section_ui(ui, "Reliability", true, |ui| reliability_ui(ui, metrics, commands));
    section_ui(ui, "Accuracy and coverage", true, |ui| {
        let min_score = shown.state.view().min_class_score;
        coverage_ui(ui, chart_size(ui), &[CoverageLine { prefix: "", line: Line::Solid, metrics, min_score }]);
        small_note_ui(ui, "From the images with the highest scores to all images, whose accuracy is top-1");
    });
}

fn classification_cards_ui(ui: &mut Ui, metrics: &ClassificationMetrics, intervals: Option<ClassificationIntervals>) {
    let top1 = CardInterval::new(intervals.and_then(|all| all.top1), intervals.is_some());
    let top5 = CardInterval::new(intervals.and_then(|all| all.top5), intervals.is_some());
    let none = CardInterval::Missing("intervals are computed only for fractions of images");
    card_ui(ui, "Top-1", metrics.top1, top1, "Fraction of images whose top class is correct");
    card_ui(ui, "Top-5", metrics.top5, top5, "Fraction of images with the correct class in the top five");
    card_ui(ui, "Precision", metrics.macro_precision, none, "Mean over the classes");
    card_ui(ui, "Recall", metrics.macro_recall, none, "Mean over the classes");
    card_ui(ui, "F1", metrics.macro_f1, none, "Mean over the classes");
    card_ui(ui, "ECE", metrics.ece, none, "Expected calibration error: the gap between scores and accuracy");
}

/// Notes on the numbers: what was skipped, and why.
fn notes_ui(ui: &mut Ui, shown: &Shown<'_>) {
    let state = shown.state;
    let Some((run, opened)) = state.evaluated().zip(state.opened_truth()) else {
        return;
    };
    section_ui(ui, "Notes", true, |ui| {
        let what = match opened.truth.task {
            ModelTask::Detection => "boxes",
            ModelTask::Classification => "image classes",
        };
        let images = grouped(shown.counts.images as usize);
        let mut lines = vec![format!("Images compared: {images}, by {what}.")];
        let left_out = run.evaluated.counted.texts();
        lines.extend(left_out.map(|(count, text)| format!("{} {text}.", grouped(count as usize))));
        let problems = opened.truth.problems.counts();
        lines.extend(problems.map(|(kind, count)| format!("Ground truth: {}.", kind.text(count))));
        lines.extend(run.notes.iter().cloned());
        for line in lines {
            note_ui(ui, line);
        }
    });
}

const SIZE: Vec2 = vec2(96.0, 58.0);

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
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("{name} {text}{spoken}")));
    let visuals = ui.visuals();
    let painter = ui.painter();
    painter.rect_filled(rect, CornerRadius::same(8), theme::raised_fill(visuals));
    let small = TextStyle::Small.resolve(ui.style());
    let (weak, strong) = (visuals.weak_text_color(), visuals.strong_text_color());
    let line = |top: f32, text: &str, font: FontId, color| {
        painter.text(pos2(rect.left() + 9.0, rect.top() + top), Align2::LEFT_TOP, text, font, color);
    };
    line(6.0, name, small.clone(), weak);
    line(19.0, &text, FontId::new(18.0, theme::strong_family()), strong);
    line(41.0, &below, small, weak);
    response.on_hover_text(format!("{meaning}{more}"));
}

const ROW_HEIGHT: f32 = 26.0;
const NAME_WIDTH: f32 = 214.0;
const NUMBER_WIDTH: f32 = 56.0;

/// `None` is a missed object.
const KINDS: [Option<OutcomeKind>; 6] = [
    Some(OutcomeKind::Class),
    Some(OutcomeKind::Location),
    Some(OutcomeKind::Both),
    Some(OutcomeKind::Duplicate),
    Some(OutcomeKind::Background),
    None,
];

fn errors_ui(ui: &mut Ui, shown: &Shown<'_>, metrics: &DetectionMetrics, commands: &mut Commands) {
    let rows = KINDS.map(|kind| {
        let cost = metrics.errors.get(kind.map_or("missed", |kind| kind.into_str()));
        ErrorRow {
            name: kind.map_or_else(|| "FN, undetected".to_owned(), OutcomeKind::text),
            count: kind.map_or(shown.counts.undetected, |kind| shown.counts.kind(kind)),
            cost: cost.map_or(0.0, |cost| cost.ap50_cost),
        }
    });
    let most = rows.iter().map(|row| row.count).max().unwrap_or(0).max(1) as f32;
    let dearest = rows.iter().map(|row| row.cost).fold(1e-9, f64::max);
    heading_ui(ui);
    for (kind, row) in KINDS.into_iter().zip(&rows) {
        let shares = [row.count as f32 / most, (row.cost / dearest) as f32];
        if row_ui(ui, row, shares, meaning(kind)) {
            let outcome = kind.map_or(OutcomeWord::Missed, OutcomeWord::Error);
            commands.push(SearchCommand::ShowBoxes(outcome.into()));
        }
    }
}

struct ErrorRow {
    name: String,
    count: u64,
    cost: f64,
}

fn meaning(kind: Option<OutcomeKind>) -> &'static str {
    match kind {
        Some(OutcomeKind::Class) => "Correct location, wrong class",
        Some(OutcomeKind::Location) => "Correct class, but the IoU with the object is below 0.50",
        Some(OutcomeKind::Both) => "Wrong class, and the IoU is too low",
        Some(OutcomeKind::Duplicate) => "A box with a higher score already matches the object",
        Some(OutcomeKind::Background) => "No object here",
        _ => "No box of any class covers the object",
    }
}

/// The columns: name, count and its bar, cost and its bar.
fn columns(row: Rect) -> [Rect; 3] {
    let name = NAME_WIDTH.min(row.width() * 0.35);
    let half = (row.width() - name) / 2.0;
    let column = |left: f32, width: f32| Rect::from_min_size(pos2(left, row.top()), vec2(width, row.height()));
    [column(row.left(), name), column(row.left() + name, half), column(row.left() + name + half, half)]
}

fn heading_ui(ui: &mut Ui) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 18.0), Sense::hover());
    let font = TextStyle::Small.resolve(ui.style());
    let color = ui.visuals().weak_text_color();
    let [_, counts, costs] = columns(rect);
    for (column, text) in [(counts, "With the current filters"), (costs, "AP50 cost, all scores")] {
        let galley = truncated(ui, text, font.clone(), color, column.width() - 8.0);
        ui.painter().galley(column.left_top(), galley, color);
    }
}

fn row_ui(ui: &mut Ui, row: &ErrorRow, [count_share, cost_share]: [f32; 2], meaning: &str) -> bool {
    let sense = if row.count > 0 { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), sense);
    let (count, cost) = (grouped(row.count as usize), format!("{:.3}", row.cost));
    response.widget_info(|| {
        let label = format!("Errors, {}: {count}, AP50 cost {cost}", row.name);
        WidgetInfo::labeled(Role::Button, row.count > 0, label)
    });
    if ui.is_rect_visible(rect) {
        let visuals = ui.visuals();
        if row.count > 0 && (response.hovered() || response.has_focus()) {
            ui.painter().rect_filled(rect, CornerRadius::same(4), visuals.widgets.hovered.bg_fill);
        }
        let [name, counts, costs] = columns(rect);
        let font = TextStyle::Body.resolve(ui.style());
        let color = visuals.text_color();
        let galley = truncated(ui, &row.name, font.clone(), color, name.width() - 10.0);
        ui.painter().galley(pos2(name.left() + 4.0, name.center().y - galley.size().y / 2.0), galley, color);
        bar_ui(ui, counts, count_share, &count);
        bar_ui(ui, costs, cost_share, &cost);
    }
    let hint = if row.count > 0 { "; click to show them" } else { "" };
    response.on_hover_text(format!("{meaning}{hint}")).clicked()
}

/// A bar, and the number that it shows.
fn bar_ui(ui: &Ui, place: Rect, share: f32, number: &str) {
    let visuals = ui.visuals();
    let rail = Rect::from_min_max(
        pos2(place.left(), place.center().y - 6.0),
        pos2(place.right() - NUMBER_WIDTH - 6.0, place.center().y + 6.0),
    );
    ui.painter().rect_filled(rail, 3.0, theme::sunken_fill(visuals));
    let filled = rail.with_max_x(rail.left() + rail.width() * share);
    ui.painter().rect_filled(filled, 3.0, theme::accent(visuals));
    let font = TextStyle::Body.resolve(ui.style());
    let at = pos2(place.right() - 8.0, place.center().y);
    ui.painter().text(at, Align2::RIGHT_CENTER, number, font, visuals.text_color());
}
