//! The main metrics, the curves, and the kinds of errors.

use eframe::egui::{Label, RichText, ScrollArea, Ui};

use super::cards::{CardInterval, card_ui};
use super::curves::{Threshold, curves_ui};
use super::errors::errors_ui;
use super::reliability::reliability_ui;
use super::{Shown, decimals, queries, show_boxes};
use crate::domain::ModelTask;
use crate::evaluation::{
    ClassificationIntervals, ClassificationMetrics, DetectionIntervals, DetectionMetrics, Metrics,
};
use crate::review::{ClassOutcomes, OutcomeKind};
use crate::window::state::{Command, EvaluationCommand, Queue};
use crate::window::ui::widgets::{grouped, key_value_ui, section_ui, strong};

const CURVES_HEIGHT: f32 = 230.0;

pub(crate) fn overview_ui(ui: &mut Ui, shown: &Shown<'_>, commands: &mut Queue<Command>) {
    ScrollArea::vertical().id_salt("overview of the evaluation").auto_shrink(false).show(ui, |ui| {
        match &shown.evaluated.metrics {
            Metrics::Detection { metrics, intervals } => {
                detection_ui(ui, shown, metrics, intervals.as_ref(), commands);
            }
            Metrics::Classification { metrics, intervals } => {
                classification_ui(ui, shown, metrics, *intervals, commands);
            }
        }
        notes_ui(ui, shown);
    });
}

fn detection_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    metrics: &DetectionMetrics,
    intervals: Option<&DetectionIntervals>,
    commands: &mut Queue<Command>,
) {
    ui.horizontal_wrapped(|ui| {
        let of = intervals.copied().unwrap_or_default();
        let interval = |interval| CardInterval::new(interval, intervals.is_some());
        let meaning = "Average precision over IoU 0.50 to 0.95, as COCO defines it. It is biased upwards for classes \
            with few objects, so its interval extends further down.";
        card_ui(ui, "AP", metrics.ap, interval(of.ap), meaning);
        card_ui(ui, "AP50", metrics.ap50, interval(of.ap50), "Average precision at IoU 0.50");
        card_ui(ui, "AP75", metrics.ap75, interval(of.ap75), "Average precision at IoU 0.75");
        let meaning = "Average recall with at most 100 boxes per class and image";
        card_ui(ui, "AR100", metrics.ar100, interval(of.ar100), meaning);
    });
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

/// Precision and recall at the minimum score, and the minimum score with the best F1.
fn threshold_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    metrics: &DetectionMetrics,
    intervals: Option<&DetectionIntervals>,
    commands: &mut Queue<Command>,
) {
    let all = shown.counts.all();
    let threshold = Threshold::new(shown, None);
    ui.label(strong(format!("With the current filters (score ≥ {:.2})", threshold.score)));
    let ClassOutcomes { correct, wrong, false_negatives } = all;
    // The intervals were measured with the evaluation's filters.
    let is_measured =
        (correct, wrong, false_negatives) == (metrics.true_positives, metrics.false_positives, metrics.false_negatives);
    let offers_intervals = intervals.is_some() && !is_measured;
    let intervals = intervals.filter(|_| is_measured);
    ui.horizontal_wrapped(|ui| {
        let of = intervals.copied().unwrap_or_default();
        let [precision, recall, f1] =
            [of.precision, of.recall, of.f1].map(|interval| CardInterval::new(interval, intervals.is_some()));
        card_ui(ui, "Precision", all.precision(), precision, "Fraction of boxes that are correct at IoU 0.50");
        card_ui(ui, "Recall", all.recall(), recall, "Fraction of objects that were detected");
        card_ui(ui, "F1", all.f1(), f1, "Harmonic mean of precision and recall");
        let is_idle = shown.state.evaluation().is_some_and(|evaluation| !evaluation.status.is_loading());
        if offers_intervals && is_idle {
            let link = ui.link(RichText::new("Update intervals").small());
            let tooltip = "The 95% intervals were computed with other filters. Evaluates again with the current \
                filters";
            if link.on_hover_text(tooltip).clicked() {
                commands.push(EvaluationCommand::EvaluateAgain);
            }
        }
    });
    ui.horizontal_wrapped(|ui| {
        let counts = [
            (correct, "TP", "True positives", queries::RIGHT),
            (wrong, "FP", "False positives", queries::WRONG),
            (false_negatives, "FN", "False negatives: undetected objects", queries::NOT_FOUND),
        ];
        for (count, what, meaning, query) in counts {
            count_button_ui(ui, (count, what), meaning, query, commands);
        }
    });
    if let Some(best) = metrics.best {
        ui.horizontal_wrapped(|ui| {
            ui.label(format!("Best F1: {:.3} at a minimum score of {:.3}", best.f1, best.threshold));
            let score = best.threshold as f32;
            if threshold.score == score {
                ui.weak("in use");
            } else if ui.button("Use this score").on_hover_text("Sets the minimum score").clicked() {
                commands.push(threshold.change(score));
            }
        });
    }
}

fn count_button_ui(ui: &mut Ui, (count, what): (u64, &str), meaning: &str, query: &str, commands: &mut Queue<Command>) {
    let text = format!("{} {what}", grouped(count as usize));
    let button = ui.add_enabled(count > 0, eframe::egui::Button::new(text));
    if button.on_hover_text(format!("{meaning}; click to show them")).clicked() {
        show_boxes(commands, query.to_owned());
    }
}

fn classification_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    metrics: &ClassificationMetrics,
    intervals: Option<ClassificationIntervals>,
    commands: &mut Queue<Command>,
) {
    ui.horizontal_wrapped(|ui| {
        let top1 = CardInterval::new(intervals.and_then(|all| all.top1), intervals.is_some());
        let top5 = CardInterval::new(intervals.and_then(|all| all.top5), intervals.is_some());
        let none = CardInterval::Missing("intervals are computed only for fractions of images");
        card_ui(ui, "Top-1", metrics.top1, top1, "Fraction of images whose top class is correct");
        card_ui(ui, "Top-5", metrics.top5, top5, "Fraction of images with the correct class in the top five");
        card_ui(ui, "Precision", metrics.macro_precision, none, "Mean over the classes");
        card_ui(ui, "Recall", metrics.macro_recall, none, "Mean over the classes");
        card_ui(ui, "F1", metrics.macro_f1, none, "Mean over the classes");
        card_ui(ui, "ECE", metrics.ece, none, "Expected calibration error: the gap between scores and accuracy");
    });
    ui.horizontal_wrapped(|ui| {
        let right = shown.counts.kind(OutcomeKind::Correct);
        let wrong = shown.counts.kind(OutcomeKind::Class);
        count_button_ui(ui, (right, "correct"), "Images whose top class is correct", queries::RIGHT, commands);
        count_button_ui(ui, (wrong, "wrong"), "Images whose top class is wrong", queries::WRONG, commands);
    });
    ui.separator();
    section_ui(ui, "Reliability", true, |ui| reliability_ui(ui, metrics, commands));
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
            ui.add(Label::new(RichText::new(line).weak()).wrap());
        }
    });
}
