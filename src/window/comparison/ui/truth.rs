//! Two runs against the same ground truth: metrics, curves, and what each class gains or loses.

use std::sync::Arc;

use super::halves_ui;
use crate::domain::{ModelTask, decimal, score_text};
use crate::evaluation::{ClassGain, Curve, Evaluated, EvaluatedClass, Interval, Metrics, class_gains};
use crate::review::FilterCounts;
use crate::window::evaluation::ui::coverage::{CoverageLine, coverage_ui};
use crate::window::evaluation::ui::curves::{Chart, Line};
use crate::window::evaluation::ui::decimals;
use crate::window::state::{EvaluatedRun, Run};
use crate::window::ui::prelude::*;

const CURVES_HEIGHT: f32 = 250.0;

#[derive(Default)]
pub(super) struct TruthMemory {
    gains: Option<KnownGains>,
    table: ClassTableMemory<ClassGain, [ClassGain]>,
    /// The class whose curves are shown.
    selected: Option<EvaluatedClass>,
}

/// The classes of two evaluations; compared again only when these change.
struct KnownGains {
    evaluated: [Arc<Evaluated>; 2],
    gains: Arc<[ClassGain]>,
}

impl KnownGains {
    fn new(evaluated: [&Arc<Evaluated>; 2]) -> Self {
        let gains = class_gains(evaluated.map(|run| &run.metrics)).into();
        Self { evaluated: evaluated.map(Arc::clone), gains }
    }

    fn is_of(&self, evaluated: [&Arc<Evaluated>; 2]) -> bool {
        self.evaluated.iter().zip(evaluated).all(|(known, now)| Arc::ptr_eq(known, now))
    }
}

/// Both runs against the same ground truth.
pub(super) fn truth_ui(ui: &mut Ui, state: &State, runs: [&Run; 2], memory: &mut TruthMemory, commands: &mut Commands) {
    if state.evaluating.is_none() {
        note_ui(ui, "Open ground truth to compare metrics, curves and classes, and to find images that got worse");
        action_button_ui(ui, state, Action::OpenTruth, commands);
        return;
    }
    let (Some(one), Some((_, other))) = (state.evaluated(), state.other_evaluated()) else {
        note_ui(ui, "Both runs are being evaluated, or one of them could not be; see Evaluation");
        return;
    };
    if !one.outcomes.has_same_images(&other.outcomes) {
        warning_ui(ui, "The runs have predictions for different images, so their metrics are not directly comparable");
    }
    let evaluated = [&one.evaluated, &other.evaluated];
    let selected = memory.selected.clone();
    halves_ui(
        ui,
        commands,
        |ui, _| {
            if let Some(counts) = state.arranging.counts() {
                metrics_ui(ui, state, runs, [one, other], counts);
            }
        },
        |ui, _| {
            let scores = runs.map(|run| state.view_of_run(run.id()).min_score_for(run.info.card.stored_as()));
            curves_ui(ui, evaluated, selected.as_ref(), scores);
        },
    );
    ui.add_space(6.0);
    classes_ui(ui, evaluated, memory);
}

fn metrics_ui(ui: &mut Ui, state: &State, runs: [&Run; 2], [one, other]: [&EvaluatedRun; 2], counts: &FilterCounts) {
    Grid::new("two runs against the ground truth").num_columns(4).spacing(vec2(10.0, 2.0)).show(ui, |ui| {
        for title in ["", "A", "B", "A − B"] {
            ui.weak(title);
        }
        ui.end_row();
        let measured = |run: &EvaluatedRun| match &run.evaluated.metrics {
            Metrics::Detection { metrics, .. } => [("AP", metrics.ap), ("AP50", metrics.ap50)],
            Metrics::Classification { metrics, .. } => [("Top-1", metrics.top1), ("Top-5", metrics.top5)],
        };
        for (place, ((name, of_one), (_, of_other))) in measured(one).into_iter().zip(measured(other)).enumerate() {
            let drawn = one.drawn.get(place).zip(other.drawn.get(place));
            let interval = drawn.and_then(|(one, other)| one.difference(other));
            numbers_ui(ui, name, [of_one, of_other], interval);
        }
        if runs[0].task() == Some(ModelTask::Detection) {
            min_scores_ui(ui, runs.map(|run| state.view_of_run(run.id()).min_score));
        }
        let [of_one, of_other] = counts.outcomes;
        for (name, numbers) in [
            ("Precision", [of_one.precision(), of_other.precision()]),
            ("Recall", [of_one.recall(), of_other.recall()]),
            ("F1", [of_one.f1(), of_other.f1()]),
        ] {
            numbers_ui(ui, name, numbers, None);
        }
        for (name, [of_one, of_other]) in [
            ("TP", [of_one.correct, of_other.correct]),
            ("FP", [of_one.wrong, of_other.wrong]),
            ("FN", [of_one.false_negatives, of_other.false_negatives]),
        ] {
            ui.label(name);
            ui.label(grouped(of_one as usize));
            ui.label(grouped(of_other as usize));
            ui.label(format!("{:+}", of_one as i64 - of_other as i64));
            ui.end_row();
        }
    });
}

/// What the numbers below depend on.
fn min_scores_ui(ui: &mut Ui, scores: [f32; 2]) {
    let tooltip = "Precision, recall, F1, TP, FP and FN use the boxes above each run's minimum score";
    let [a, b] = scores.map(|score| format!("≥ {}", score_text(decimal(score))));
    for text in ["Minimum score".to_owned(), a, b] {
        ui.weak(text).on_hover_text(tooltip);
    }
    ui.end_row();
}

/// A metric of both runs and its difference, with an interval that distinguishes a difference from chance.
fn numbers_ui(ui: &mut Ui, name: &str, [one, other]: [Option<f64>; 2], interval: Option<Interval>) {
    let number = |number: Option<f64>| number.map_or_else(|| "–".to_owned(), |number| format!("{number:.3}"));
    ui.label(name);
    ui.label(number(one));
    ui.label(number(other));
    let difference = one.zip(other).map(|(one, other)| one - other);
    let text = difference.map_or_else(|| "–".to_owned(), |difference| format!("{difference:+.3}"));
    let label = match interval {
        None => ui.label(text),
        // Below it, because it would be cut off next to it.
        Some(Interval { low, high }) => {
            let small = RichText::new(format!("{low:+.3} … {high:+.3}")).small().weak();
            ui.vertical(|ui| {
                ui.spacing_mut().item_spacing.y = 0.0;
                ui.label(text);
                ui.add(Label::new(small).extend());
            })
            .response
        }
    };
    if interval.is_some() {
        label.on_hover_text(
            "95% interval of the difference on the same images. If it contains 0, the runs may differ by chance",
        );
    }
    ui.end_row();
}

/// A curve of one run, with its AP50 and its minimum score.
struct RunCurve<'c> {
    letter: &'static str,
    line: Line,
    curve: &'c Curve,
    ap50: Option<f64>,
    score: f64,
}

/// The curves of both runs: of a detector those of a class, or of all classes pooled; of a classifier one each.
fn curves_ui(ui: &mut Ui, evaluated: [&Arc<Evaluated>; 2], selected: Option<&EvaluatedClass>, scores: [f32; 2]) {
    let [a, b] = evaluated.map(|run| &run.metrics);
    if let (Metrics::Classification { metrics: a, .. }, Metrics::Classification { metrics: b, .. }) = (a, b) {
        let size = vec2(ui.available_width(), CURVES_HEIGHT);
        let a = CoverageLine { prefix: "A: ", line: Line::Solid, metrics: a, min_score: scores[0] };
        let b = CoverageLine { prefix: "B: ", line: Line::Dashed, metrics: b, min_score: scores[1] };
        coverage_ui(ui, size, &[a, b]);
    } else {
        precision_recall_ui(ui, evaluated, selected, scores.map(decimal));
    }
}

/// Both precision-recall curves, and the points at the minimum scores.
fn precision_recall_ui(
    ui: &mut Ui,
    evaluated: [&Arc<Evaluated>; 2],
    selected: Option<&EvaluatedClass>,
    scores: [f64; 2],
) {
    let of_run = |at: usize| {
        let Metrics::Detection { metrics, .. } = &evaluated[at].metrics else {
            return None;
        };
        let (letter, line) = [("A", Line::Solid), ("B", Line::Dashed)][at];
        let class = selected.and_then(|class| metrics.classes.iter().find(|row| row.class == *class));
        let (curve, ap50) = class.map_or((&metrics.curve, metrics.ap50), |row| (&row.curve, row.ap50));
        Some(RunCurve { letter, line, curve, ap50, score: scores[at] })
    };
    let (Some(a), Some(b)) = (of_run(0), of_run(1)) else {
        return;
    };
    let name = selected.map_or("all classes", |class| &class.name);
    let height = CURVES_HEIGHT;
    let chart = Chart::new(ui, vec2(ui.available_width(), height), Sense::hover(), ["Recall", "Precision"]);
    for run in [&b, &a] {
        let line: Vec<Pos2> = run.curve.points.iter().map(|point| chart.at(point.recall, point.precision)).collect();
        run.line.draw(ui, &line);
    }
    let visuals = ui.visuals();
    let (fill, edge) = (theme::accent(visuals), Stroke::new(2.0, visuals.strong_text_color()));
    for (run, fill) in [(&b, theme::sunken_fill(visuals)), (&a, fill)] {
        if let Some(now) = run.curve.at(run.score) {
            ui.painter().circle(chart.at(now.recall, now.precision), 5.0, fill, edge);
        }
    }
    let texts = [&a, &b].map(|run| format!("{}: AP50 {}", run.letter, decimals(run.ap50)));
    let label = format!("Precision-recall curves for {name}, {}, {}", texts[0], texts[1]);
    chart.response.widget_info(|| WidgetInfo::labeled(Role::Image, true, label.as_str()));
    chart.response.on_hover_text("At IoU 0.50. The points are at the minimum scores of A (filled) and B");
    ui.horizontal_wrapped(|ui| {
        for (run, text) in [&a, &b].into_iter().zip(&texts) {
            let (place, _) = ui.allocate_exact_size(vec2(28.0, 16.0), Sense::hover());
            run.line.draw(ui, &[place.left_center(), place.right_center()]);
            ui.label(text);
        }
        ui.weak(name);
    });
}

/// “+0.042”
fn signed(gain: Option<f64>) -> String {
    gain.map_or_else(|| "–".to_owned(), |gain| format!("{gain:+.3}"))
}

const WIDTH: f32 = 70.0;
const COLUMNS: [TableColumn<ClassGain>; 4] = [
    TableColumn::new(
        "GT",
        WIDTH,
        |row| Some(row.truths as f64),
        count_cell,
        "Ground-truth objects or images of the class",
    ),
    TableColumn::new("A", WIDTH, |row| row.a, decimals, "AP of run A, or F1 for a classifier"),
    TableColumn::new("B", WIDTH, |row| row.b, decimals, "AP of run B, or F1 for a classifier"),
    TableColumn::new("A − B", WIDTH, |row| row.gain, signed, "The gain or loss of A"),
];

/// The classes with their gains and losses. Clicking one of a detector shows its curves.
fn classes_ui(ui: &mut Ui, evaluated: [&Arc<Evaluated>; 2], memory: &mut TruthMemory) {
    let known = memory.gains.take().filter(|known| known.is_of(evaluated));
    let gains = &memory.gains.insert(known.unwrap_or_else(|| KnownGains::new(evaluated))).gains;
    let measure = evaluated[0].metrics.class_measure();
    ui.label(strong(format!("Gains and losses per class ({measure})")));
    let table = ClassTable {
        columns: &COLUMNS,
        sorted_by: "A − B",
        sort_label: |title| format!("Sort the compared classes by {title}"),
    };
    ui.spacing_mut().item_spacing.y = 1.0;
    table.header_ui(ui, &mut memory.table);
    let rows = || gains.iter().filter(|row| row.truths > 0).map(|row| (row.class.name.clone(), row.clone())).collect();
    let rows = table.sorted(&mut memory.table, gains, rows);
    let has_curves = matches!(evaluated[0].metrics, Metrics::Detection { .. });
    rows_in_sight_ui(ui, TABLE_ROW_HEIGHT, rows.len(), |ui, at| {
        let (name, row) = &rows[at];
        let is_selected = memory.selected.as_ref() == Some(&row.class);
        let label = format!("Class {name}: {}", table.numbers_text(row));
        let color = Some(theme::class_color(name));
        let (rect, response) = table.row_ui(ui, (name, color), 0.0, (&label, is_selected));
        table.numbers_ui(ui, rect, row);
        if !has_curves {
            response.on_hover_text(name);
        } else if response.on_hover_text(format!("{name}; click to show its curves")).clicked() {
            memory.selected = (!is_selected).then(|| row.class.clone());
        }
    });
}
