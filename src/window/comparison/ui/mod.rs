//! The comparison of two runs: their agreement, their differences, and both predictions for the shown image.

pub(crate) mod canvas;

use eframe::egui::text::LayoutJob;
use eframe::egui::{
    Align, Button, CollapsingHeader, FontId, Grid, Label, Rect, RichText, Sense, Shape, Stroke, TextFormat, TextStyle,
    Ui, pos2, vec2,
};

use crate::domain::{ModelTask, RunId, Utc, capitalized, decimal, score_text};
use crate::evaluation::{AgreementSummary, ClassChange, ImageAgreement, Interval, Metrics};
use crate::review::{Direction, FilterCounts, Sort, SortBy, change_term, has_term, with_term, without_changes};
use crate::window::state::{
    Action, Command, Commands, CompareLayout, Comparing, EvaluatedRun, Loadable, ReviewCommand, Run, SearchCommand,
    State, TaskId, TaskSignal,
};
use crate::window::ui::field::Field;
use crate::window::ui::theme;
use crate::window::ui::widgets::{
    Tone, action_button_ui, banner_ui, command_button_ui, grouped, image_count, key_value_ui, note_ui,
    rows_in_sight_ui, strong, warning_ui,
};

const MAX_CLASS_CHANGES: usize = 8;

/// The runs whose comparison was scrolled into view.
#[derive(Default)]
pub(crate) struct ComparisonMemory {
    in_sight: Option<[RunId; 2]>,
}

pub(crate) fn comparison_ui(ui: &mut Ui, state: &State, memory: &mut ComparisonMemory, commands: &mut Commands) {
    let Some(comparing) = &state.comparing else {
        return;
    };
    let (Some(left), Some(right)) = (state.runs.get(comparing.left), state.runs.get(comparing.right)) else {
        return;
    };
    if memory.in_sight.replace([left.id(), right.id()]) != Some([left.id(), right.id()]) {
        ui.scroll_to_cursor(Some(Align::TOP));
    }
    names_ui(ui, state, [left, right], commands);
    layout_ui(ui, state, commands);
    if left.task() == ModelTask::Detection {
        different_scores_ui(ui, state, [left, right], commands);
    }
    match &comparing.status {
        Loadable::NotLoaded => {
            let message = "The comparison was canceled";
            banner_ui(ui, Tone::Hint, message, |ui| again_ui(ui, commands));
        }
        Loadable::Loading(task) => running_ui(ui, *task, commands),
        Loadable::Failed(reason) => banner_ui(ui, Tone::Error, reason.message(), |ui| {
            again_ui(ui, commands);
        }),
        Loadable::Ready(compared) => {
            let agreement = &compared.agreement;
            if state.comparison_is_outdated() {
                let message = "The filters have changed since this comparison";
                banner_ui(ui, Tone::Hint, message, |ui| again_ui(ui, commands));
            }
            summary_ui(ui, &agreement.summary, left.task());
            class_changes_ui(ui, state, [left, right], &agreement.summary, commands);
            truth_ui(ui, state, [left, right], commands);
            shown_ui(ui, state, comparing, left.task());
            ui.add_space(2.0);
            action_button_ui(ui, state, Action::ExportComparison, commands);
        }
    }
}

/// Which run is called A and drawn solid, and which B and dashed. Another B can be chosen.
fn names_ui(ui: &mut Ui, state: &State, [left, right]: [&Run; 2], commands: &mut Commands) {
    let sample_ui = |ui: &mut Ui, is_dashed: bool| {
        let (place, _) = ui.allocate_exact_size(vec2(26.0, 16.0), Sense::hover());
        line_sample(ui, place, is_dashed);
    };
    ui.horizontal(|ui| {
        sample_ui(ui, false);
        ui.add(Label::new(format!("A: {}", left.info.name)).truncate());
    });
    facts_ui(ui, state, left);
    ui.horizontal(|ui| {
        sample_ui(ui, true);
        let name = format!("B: {}", right.info.name);
        if state.comparable_runs().nth(1).is_none() {
            ui.add(Label::new(name).truncate());
            return;
        }
        Field::new("Run B").width(ui.available_width()).list_ui(ui, &name, |ui| {
            for run in state.comparable_runs() {
                let is_chosen = run.id() == right.id();
                if ui.selectable_label(is_chosen, &run.info.name).clicked() && !is_chosen {
                    commands.push(ReviewCommand::Compare(run.id()));
                }
            }
        });
    });
    facts_ui(ui, state, right);
}

/// When a run was made, and its thresholds.
fn facts_ui(ui: &mut Ui, state: &State, run: &Run) {
    let view = state.view_of_run(run.id());
    let mut facts = vec![Utc::from_ms(run.info.created_ms).to_string()];
    if run.task() == ModelTask::Detection {
        facts.push(format!("score ≥ {}", score_text(decimal(view.min_score))));
        facts.extend(view.nms_iou.map(|iou| format!("NMS {}", score_text(decimal(iou)))));
    }
    ui.add(Label::new(RichText::new(facts.join(", ")).weak().small()).truncate());
}

/// The numbers below depend on the minimum scores, which can differ between two models.
fn different_scores_ui(ui: &mut Ui, state: &State, runs: [&Run; 2], commands: &mut Commands) {
    let scores = runs.map(|run| state.view_of_run(run.id()).min_score);
    let best = best_scores(state).filter(|best| *best != scores);
    let differ = scores[0] != scores[1];
    if !differ && best.is_none() {
        return;
    }
    let text_of = |scores: [f32; 2]| scores.map(|score| score_text(decimal(score)));
    let [a, b] = text_of(scores);
    let (tone, message) = if differ {
        (Tone::Warning, format!("The minimum scores differ: A ≥ {a}, B ≥ {b}"))
    } else {
        (Tone::Hint, format!("Minimum score of A and B: {a}"))
    };
    banner_ui(ui, tone, &message, |ui| {
        ui.horizontal_wrapped(|ui| {
            if differ && ui.button("Same for both").on_hover_text(format!("Sets {a} for B")).clicked() {
                commands.push(ReviewCommand::SetComparedScores([scores[0]; 2]));
            }
            if let Some(best) = best {
                let [a, b] = text_of(best);
                let tooltip = format!("Sets {a} for A and {b} for B");
                if ui.button("Best F1 of each").on_hover_text(tooltip).clicked() {
                    commands.push(ReviewCommand::SetComparedScores(best));
                }
            }
        });
    });
}

/// The minimum scores with the best F1 of both runs, if both are evaluated and can have different ones.
fn best_scores(state: &State) -> Option<[f32; 2]> {
    let (one, (other_run, other)) = (state.evaluated()?, state.other_evaluated()?);
    let have_own = state.run()?.info.card.id != other_run.info.card.id;
    let best = |run: &EvaluatedRun| match &run.evaluated.metrics {
        Metrics::Detection { metrics, .. } => Some(metrics.best?.threshold as f32),
        Metrics::Classification { .. } => None,
    };
    Some([best(one)?, best(other)?]).filter(|_| have_own)
}

/// As boxes are drawn on the image.
fn line_sample(ui: &Ui, place: Rect, is_dashed: bool) {
    let stroke = Stroke::new(2.0, ui.visuals().text_color());
    let y = place.center().y;
    let line = [pos2(place.left(), y), pos2(place.right() - 2.0, y)];
    if is_dashed {
        let dashes = Shape::dashed_line(&line, stroke, 6.0, 4.0);
        ui.painter().extend(dashes);
    } else {
        ui.painter().line_segment(line, stroke);
    }
}

fn layout_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        for layout in state.layouts() {
            let is_chosen = state.settings.compare_layout == layout;
            let label = match layout {
                CompareLayout::Overlaid => "Overlaid",
                CompareLayout::SideBySide => "Side by side",
                CompareLayout::Slider => "Slider",
                CompareLayout::TruthSlider => "Slider to ground truth",
            };
            if ui.selectable_label(is_chosen, label).clicked() {
                commands.push(ReviewCommand::SetCompareLayout(layout));
            }
        }
        if ui.button("End comparison").on_hover_text("Shows only one run").clicked() {
            commands.push(ReviewCommand::StopComparing);
        }
    });
}

fn running_ui(ui: &mut Ui, task: TaskId, commands: &mut Commands) {
    ui.horizontal(|ui| {
        ui.weak("Comparing…");
        command_button_ui(ui, "Cancel", commands, || Command::SignalTask(task, TaskSignal::Cancel));
    });
}

fn again_ui(ui: &mut Ui, commands: &mut Commands) {
    command_button_ui(ui, "Compare again", commands, || ReviewCommand::CompareAgain);
}

fn summary_ui(ui: &mut Ui, summary: &AgreementSummary, task: ModelTask) {
    ui.add_space(4.0);
    let Some(rate) = summary.rate() else {
        ui.weak("The runs have no images in common");
        return;
    };
    ui.label(strong(format!("{:.1}% agreement", rate * 100.0)).size(18.0));
    share_ui(ui, rate as f32);
    let (agreeing, compared) = (grouped(summary.agreeing), image_count(summary.compared));
    let text = match task {
        ModelTask::Classification => format!("Same top class in {agreeing} of {compared}"),
        ModelTask::Detection => {
            format!("Same boxes (IoU ≥ 0.5) in {agreeing} of {compared}")
        }
    };
    note_ui(ui, text);
    if task == ModelTask::Detection {
        ui.columns(3, |columns| {
            number_ui(&mut columns[0], summary.matched, "boxes matched");
            number_ui(&mut columns[1], summary.only_left, "only in A");
            number_ui(&mut columns[2], summary.only_right, "only in B");
        });
    }
    if let Some(text) = summary.differences.text(task) {
        note_ui(ui, capitalized(&text));
    }
    let alone = summary.predicted_only_left + summary.predicted_only_right;
    if alone > 0 {
        let text = format!("{} predicted by one run only", image_count(alone));
        note_ui(ui, text);
    }
}

/// A fraction as a bar.
fn share_ui(ui: &mut Ui, share: f32) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 6.0), Sense::hover());
    let painter = ui.painter();
    painter.rect_filled(rect, 3.0, theme::line(ui.visuals()));
    let filled = rect.with_max_x(rect.left() + rect.width() * share);
    painter.rect_filled(filled, 3.0, theme::accent(ui.visuals()));
}

fn number_ui(ui: &mut Ui, number: usize, caption: &str) {
    let visuals = ui.visuals();
    let mut job = LayoutJob::default();
    let large = FontId::new(15.0, theme::strong_family());
    let small = TextStyle::Small.resolve(ui.style());
    let number = grouped(number);
    job.append(&number, 0.0, TextFormat::simple(large, visuals.text_color()));
    let caption = format!("\n{caption}");
    let weak = visuals.weak_text_color();
    job.append(&caption, 0.0, TextFormat::simple(small, weak));
    ui.label(job);
}

/// The most frequent ones; the others after a click. Clicking one searches for its images.
fn class_changes_ui(
    ui: &mut Ui,
    state: &State,
    [left, right]: [&Run; 2],
    summary: &AgreementSummary,
    commands: &mut Commands,
) {
    if summary.confusion.is_empty() {
        return;
    }
    ui.add_space(4.0);
    ui.label(RichText::new("Class in A → class in B").weak());
    let mut change_ui = |ui: &mut Ui, change: &ClassChange| {
        let from = left.labels().name(change.left);
        let to = right.labels().name(change.right);
        class_change_ui(ui, state, [&from, &to], change, commands);
    };
    let first = summary.confusion.len().min(MAX_CLASS_CHANGES);
    let (first, rest) = summary.confusion.split_at(first);
    for change in first {
        change_ui(ui, change);
    }
    if rest.is_empty() {
        return;
    }
    let title = format!("and {} more", grouped(rest.len()));
    CollapsingHeader::new(RichText::new(title).weak()).id_salt("more class changes").show_unindented(ui, |ui| {
        let row_height = ui.spacing().interact_size.y;
        rows_in_sight_ui(ui, row_height, rest.len(), |ui, row| change_ui(ui, &rest[row]));
    });
}

fn class_change_ui(ui: &mut Ui, state: &State, [from, to]: [&str; 2], change: &ClassChange, commands: &mut Commands) {
    let term = change_term(from, to);
    let text = state.arranging.text();
    let is_on = has_term(text, &term);
    let name = format!("{from} → {to}");
    let count = RichText::new(grouped(change.count)).weak();
    let button = Button::selectable(is_on, &name)
        .right_text(count)
        .truncate()
        .min_size(vec2(ui.available_width(), 0.0))
        .sense(Sense::CLICK);
    let images = image_count(change.images.len());
    let row = ui.add(button).on_hover_text(format!("Show the {images}"));
    if row.clicked() {
        let others = without_changes(text);
        let text = if is_on { others } else { with_term(&others, &term) };
        commands.push(SearchCommand::SetQuery(text));
    }
    row.accessible_name(format!("{name}, {images}"));
}

/// Both runs against the same ground truth, and the images that make the difference.
fn truth_ui(ui: &mut Ui, state: &State, runs: [&Run; 2], commands: &mut Commands) {
    let (Some(one), Some((_, other))) = (state.evaluated(), state.other_evaluated()) else {
        return;
    };
    let Some(counts) = state.arranging.counts() else {
        return;
    };
    ui.add_space(4.0);
    ui.label(RichText::new("Against the ground truth").weak());
    metrics_ui(ui, state, runs, [one, other], counts);
    if !one.outcomes.has_same_images(&other.outcomes) {
        warning_ui(ui, "The runs have predictions for different images, so their metrics are not directly comparable");
    }
    ui.horizontal_wrapped(|ui| {
        for (count, what, term) in [(counts.better, "better in A", "better"), (counts.worse, "worse in A", "worse")] {
            let button = ui.add_enabled(count > 0, Button::new(format!("{} {what}", image_count(count))));
            let hover = format!(
                "Images with {} errors (false positives and false negatives) in A",
                match term {
                    "better" => "fewer",
                    _ => "more",
                }
            );
            if button.on_hover_text(hover).clicked() {
                commands.push(SearchCommand::SetQuery(term.to_owned()));
                let direction = if term == "better" { Direction::Ascending } else { Direction::Descending };
                commands.push(SearchCommand::SetSort(Sort { by: SortBy::ErrorChange, direction }));
            }
        }
        action_button_ui(ui, state, Action::FindNewErrorPatterns, commands);
    });
}

fn metrics_ui(ui: &mut Ui, state: &State, runs: [&Run; 2], [one, other]: [&EvaluatedRun; 2], counts: &FilterCounts) {
    Grid::new("two runs against the ground truth").num_columns(4).spacing(vec2(10.0, 2.0)).show(ui, |ui| {
        for title in ["", "A", "B", "A − B"] {
            ui.label(RichText::new(title).weak());
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
        if runs[0].task() == ModelTask::Detection {
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

fn shown_ui(ui: &mut Ui, state: &State, comparing: &Comparing, task: ModelTask) {
    ui.add_space(4.0);
    ui.label(RichText::new("This image").weak());
    let image = state.shown_sample().and_then(|sample| comparing.agreement()?.image(sample));
    let Some(image) = image else {
        ui.label("Not predicted by both runs");
        return;
    };
    match task {
        ModelTask::Classification => classes_ui(ui, state, image),
        ModelTask::Detection => {
            let (only_a, only_b) = (image.only_left, image.only_right);
            let text = format!("{} matched, {only_a} only in A, {only_b} only in B", image.matched);
            ui.add(Label::new(text).wrap());
        }
    }
    key_value_ui(ui, "Disagreement", &format!("{:.3}", image.disagreement));
}

fn classes_ui(ui: &mut Ui, state: &State, image: &ImageAgreement) {
    let text = if image.is_flip { "Different top class" } else { "Same top class" };
    ui.label(text);
    let predictions = [state.shown.prediction.as_deref(), state.compared_prediction()];
    for (letter, prediction) in ["A", "B"].into_iter().zip(predictions) {
        let top = prediction.and_then(|prediction| prediction.classes().first());
        if let Some(top) = top {
            let text = format!("{letter}: {} {:.1}%", top.label, top.score * 100.0);
            ui.add(Label::new(text).truncate());
        }
    }
}
