//! The page of a comparison: both runs, how far they agree, and the images that changed. Every number leads to its
//! images.

use eframe::egui::text::LayoutJob;
use eframe::egui::{CentralPanel, Shape, TextFormat};

use super::truth::{TruthMemory, truth_ui};
use super::{end_ui, halves_ui};
use crate::domain::{ModelTask, Utc, capitalized, decimal, score_text};
use crate::evaluation::{AgreementSummary, ClassChange, Metrics};
use crate::project::export::options::ComparisonFormat;
use crate::review::{change_term, has_term};
use crate::window::state::{EvaluatedRun, ExportCommand, Run};
use crate::window::ui::prelude::*;

const MAX_CLASS_CHANGES: usize = 8;
/// The width of the title below which its buttons move under it.
const LEAST_TITLE: f32 = 120.0;

/// The page's state between frames.
#[derive(Default)]
pub(crate) struct ComparisonMemory {
    truth: TruthMemory,
}

pub(crate) fn page_ui(ui: &mut Ui, state: &State, memory: &mut ComparisonMemory, commands: &mut Commands) {
    let Some(comparing) = &state.comparing else {
        return;
    };
    let (Some(left), Some(right)) = (state.runs.get(comparing.left), state.runs.get(comparing.right)) else {
        return;
    };
    CentralPanel::default().show(ui, |ui| {
        ui.add_space(6.0);
        title_ui(ui, state, commands);
        ui.add_space(2.0);
        halves_ui(
            ui,
            commands,
            |ui, _| run_ui(ui, state, left, false, |ui| drop(ui.add(name_label("A", left)))),
            |ui, commands| run_ui(ui, state, right, true, |ui| other_run_ui(ui, state, right, commands)),
        );
        if left.task() == Some(ModelTask::Detection) {
            different_scores_ui(ui, state, [left, right], commands);
        }
        ui.separator();
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
                ScrollArea::vertical().id_salt("comparison").auto_shrink(false).show(ui, |ui| {
                    contents_ui(ui, state, [left, right], &compared.agreement.summary, memory, commands);
                });
            }
        }
    });
}

fn title_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let name_ui = |ui: &mut Ui, _: &mut _| drop(truncated_ui(ui, strong("Comparison").size(15.0)));
    let buttons_ui = |ui: &mut Ui, commands: &mut Commands| {
        let can_export = Action::ExportComparison.check(state).is_ok();
        let report = ui.add_enabled(can_export, Button::new("HTML report…"));
        if report.on_hover_text("Writes this page as an HTML file").clicked() {
            commands.push(ExportCommand::SetComparisonFormat(ComparisonFormat::Html));
            commands.push(Action::ExportComparison);
        }
        action_button_ui(ui, state, Action::ExportComparison, commands);
        ui.button("Show the image")
            .on_hover_text("Back to the image with both runs")
            .on_click(commands, || Action::Comparison);
        end_ui(ui, commands);
    };
    ends_or_lines_ui(ui, "title of the comparison", LEAST_TITLE, commands, name_ui, buttons_ui);
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    runs: [&Run; 2],
    summary: &AgreementSummary,
    memory: &mut ComparisonMemory,
    commands: &mut Commands,
) {
    let Some(task) = runs[0].task() else {
        return;
    };
    if state.comparison_is_outdated() {
        let message = "The filters have changed since this comparison";
        banner_ui(ui, Tone::Hint, message, |ui| again_ui(ui, commands));
    }
    halves_ui(
        ui,
        commands,
        |ui, _| summary_ui(ui, summary, task),
        |ui, commands| changed_images_ui(ui, state, summary, commands),
    );
    ui.separator();
    section_ui(ui, "Against the ground truth", true, |ui| truth_ui(ui, state, runs, &mut memory.truth, commands));
    if !summary.confusion.is_empty() {
        section_ui(ui, "Class changes", true, |ui| class_changes_ui(ui, state, runs, summary, commands));
    }
}

fn name_label(letter: &str, run: &Run) -> Label {
    Label::new(format!("{letter}: {}", run.info.name)).truncate()
}

/// The name of a run, as it is drawn on the image, and its facts.
fn run_ui(ui: &mut Ui, state: &State, run: &Run, is_dashed: bool, name_ui: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        let (place, _) = ui.allocate_exact_size(vec2(26.0, 16.0), Sense::hover());
        line_sample(ui, place, is_dashed);
        name_ui(ui);
    });
    facts_ui(ui, state, run);
}

/// Another B can be chosen.
fn other_run_ui(ui: &mut Ui, state: &State, right: &Run, commands: &mut Commands) {
    if state.comparable_runs().nth(1).is_none() {
        ui.add(name_label("B", right));
        return;
    }
    let name = format!("B: {}", right.info.name);
    Field::new("Run B").width(ui.available_width()).list_ui(ui, &name, |ui| {
        for run in state.comparable_runs() {
            let is_chosen = run.id() == right.id();
            if ui.selectable_label(is_chosen, &run.info.name).clicked() && !is_chosen {
                commands.push(ReviewCommand::Compare(run.id()));
            }
        }
    });
}

/// When a run was made, and its thresholds.
fn facts_ui(ui: &mut Ui, state: &State, run: &Run) {
    let view = state.view_of_run(run.id());
    let mut facts = vec![Utc::from_ms(run.info.created_ms).to_string()];
    if run.task() == Some(ModelTask::Detection) {
        facts.push(format!("score ≥ {}", score_text(decimal(view.min_score))));
        facts.extend(view.nms_iou.map(|iou| format!("NMS {}", score_text(decimal(iou)))));
    }
    small_note_line_ui(ui, facts.join(", "));
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
                ui.button("Best F1 of each")
                    .on_hover_text(tooltip)
                    .on_click(commands, || ReviewCommand::SetComparedScores(best));
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

fn running_ui(ui: &mut Ui, task: TaskId, commands: &mut Commands) {
    ui.horizontal(|ui| {
        ui.weak("Comparing…");
        command_button_ui(ui, "Cancel", commands, || Command::cancel(task));
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

/// Images that differ in the same way.
struct ChangedImages {
    name: String,
    /// Images, or pairs of boxes.
    count: usize,
    images: usize,
}

impl ChangedImages {
    /// A row that searches for the images.
    fn ui(self, ui: &mut Ui, state: &State, term: &str, commands: &mut Commands) {
        let is_on = has_term(state.arranging.text(), term);
        let count = RichText::new(grouped(self.count)).weak();
        let button = Button::selectable(is_on, &self.name)
            .right_text(count)
            .truncate()
            .min_size(vec2(ui.available_width(), 0.0))
            .sense(Sense::CLICK);
        let images = image_count(self.images);
        ui.add_enabled(self.images > 0 || is_on, button)
            .on_hover_text(format!("Show the {images}"))
            .on_click(commands, || ReviewCommand::ShowChanged(term.to_owned()))
            .accessible_name(format!("{}, {images}", self.name));
    }
}

/// The images by kind of change; those about errors need ground truth.
fn changed_images_ui(ui: &mut Ui, state: &State, summary: &AgreementSummary, commands: &mut Commands) {
    ui.add_space(4.0);
    ui.weak("Changed images");
    let mut kinds = vec![("Different predictions", summary.compared - summary.agreeing, "changed")];
    let counts = state.arranging.counts().filter(|_| state.other_evaluated().is_some() && state.evaluated().is_some());
    if let Some(counts) = counts {
        kinds.extend([
            ("Fixed: errors only in B", counts.fixed, "fixed"),
            ("Better: fewer errors in A", counts.better, "better"),
            ("Worse: more errors in A", counts.worse, "worse"),
            ("Regressed: errors only in A", counts.regressed, "regressed"),
        ]);
    }
    let is_evaluated = counts.is_some();
    for (name, count, term) in kinds {
        ChangedImages { name: name.to_owned(), count, images: count }.ui(ui, state, term, commands);
    }
    if is_evaluated {
        action_button_ui(ui, state, Action::FindNewErrorPatterns, commands);
    }
}

/// The most frequent ones; the others after a click. Clicking one searches for its images.
fn class_changes_ui(
    ui: &mut Ui,
    state: &State,
    [left, right]: [&Run; 2],
    summary: &AgreementSummary,
    commands: &mut Commands,
) {
    ui.weak("Class in A → class in B");
    let mut change_ui = |ui: &mut Ui, change: &ClassChange| {
        let from = left.labels().name(change.left);
        let to = right.labels().name(change.right);
        let row = ChangedImages { name: format!("{from} → {to}"), count: change.count, images: change.images.len() };
        row.ui(ui, state, &change_term(&from, &to), commands);
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
