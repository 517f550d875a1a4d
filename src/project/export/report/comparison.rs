//! The comparison of two runs as a page.

use maud::{Markup, html};

use super::super::plots::{curves_of_two, percent};
use super::page::{grouped, utc, whole};
use crate::domain::{ModelTask, RunInfo, ViewSettings, counted, decimal, score_text};
use crate::evaluation::{AgreementSummary, Evaluated, MATCHING_IOU, class_gains};

/// The number of class changes that are listed without a click.
const OPEN_CHANGES: usize = 20;

/// What the page shows: two runs, A and B for the user.
pub(crate) struct ComparedRuns<'c> {
    pub runs: &'c [RunInfo; 2],
    /// The filters of each run.
    pub views: &'c [ViewSettings; 2],
    pub source_name: &'c str,
    pub summary: &'c AgreementSummary,
    /// Both runs against the same ground truth, if it is open.
    pub evaluated: Option<[&'c Evaluated; 2]>,
    /// The images with the greatest disagreement, greatest first.
    pub worst: &'c [DifferingImage],
}

impl ComparedRuns<'_> {
    fn task(&self) -> ModelTask {
        self.runs[0].card.stored_as()
    }
}

/// An image on which the runs disagree.
pub(crate) struct DifferingImage {
    pub name: String,
    /// `0.0..=1.0`.
    pub disagreement: f32,
    /// What differs: the top classes, or the number of boxes.
    pub what: String,
}

pub(crate) fn page(compared: &ComparedRuns<'_>) -> String {
    let [a, b] = compared.runs;
    let title = format!("{} and {}", a.name, b.name);
    let body = html! {
        header {
            h1 { "Comparison of " (a.name) " (A) and " (b.name) " (B)" }
            p.source { (compared.source_name) }
            (figures(compared))
        }
        main {
            (agreement(compared))
            (runs(compared))
            @if let Some(evaluated) = compared.evaluated { (against_truth(evaluated)) }
            (class_changes(compared))
            (images(compared.worst))
        }
    };
    whole(&title, &body)
}

fn figures(compared: &ComparedRuns<'_>) -> Markup {
    let summary = compared.summary;
    let is_detector = compared.task() == ModelTask::Detection;
    let figure = |count: usize, [one, several]: [&'static str; 2]| {
        (grouped(count as u64), if count == 1 { one } else { several })
    };
    let mut figures = vec![
        (percent(summary.rate()), "agreement"),
        figure(summary.compared, ["image compared", "images compared"]),
        figure(summary.compared - summary.agreeing, ["image differs", "images differ"]),
    ];
    let boxes = [
        (summary.matched, ["box matched", "boxes matched"]),
        (summary.only_left, ["box only in A", "boxes only in A"]),
        (summary.only_right, ["box only in B", "boxes only in B"]),
    ];
    figures.extend(boxes.into_iter().filter(|_| is_detector).map(|(count, names)| figure(count, names)));
    let alone = [
        (summary.predicted_only_left, ["image predicted only by A", "images predicted only by A"]),
        (summary.predicted_only_right, ["image predicted only by B", "images predicted only by B"]),
    ];
    figures.extend(alone.into_iter().filter(|(count, _)| *count > 0).map(|(count, names)| figure(count, names)));
    html! { dl.figures { @for (value, name) in figures { div { dt { (name) } dd { (value) } } } } }
}

fn agreement(compared: &ComparedRuns<'_>) -> Markup {
    let rule = match compared.task() {
        ModelTask::Classification => "Two predictions agree if they have the same top class.".to_owned(),
        ModelTask::Detection => format!(
            "Two predictions agree if each visible box of one matches a box of the same class in the other with an IoU \
             of at least {MATCHING_IOU}."
        ),
    };
    html! {
        section {
            h2 { "Agreement" }
            p.explanation { (rule) }
            @if let Some(text) = compared.summary.differences.text(compared.task()) { p.explanation { (text) "." } }
        }
    }
}

fn runs(compared: &ComparedRuns<'_>) -> Markup {
    let is_detector = compared.task() == ModelTask::Detection;
    let rows = ["A", "B"].into_iter().zip(compared.runs.iter().zip(compared.views));
    html! {
        section {
            h2 { "Runs" }
            div.scroll { table {
                thead { tr {
                    @for name in ["", "Run", "Model", "Date"] { th scope="col" { (name) } }
                    @if is_detector { th.number scope="col" { "Minimum score" } th.number scope="col" { "NMS IoU" } }
                } }
                tbody { @for (letter, (run, view)) in rows { tr {
                    th scope="row" { (letter) }
                    td { (run.name) }
                    td { (run.card.name) }
                    td { (utc(run.created_ms)) }
                    @if is_detector {
                        td.number { (score_text(decimal(view.min_score))) }
                        td.number { (view.nms_iou.map_or_else(|| "off".to_owned(), |iou| decimal(iou).to_string())) }
                    }
                } } }
            } }
        }
    }
}

/// The curves of both runs, and what each class gains or loses.
fn against_truth([a, b]: [&Evaluated; 2]) -> Markup {
    let curves = curves_of_two([&a.metrics, &b.metrics]);
    let measure = a.metrics.class_measure();
    html! {
        section {
            h2 { "Against the ground truth" }
            p.explanation { "Ground truth: " (a.counted.truth) ". Gains and losses are those of A compared with B." }
            @if let Some(curves) = curves { div.charts { (curves.figure()) } }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "Class" }
                    @for name in ["Objects", "A", "B", "A − B"] { th.number scope="col" { (name) } }
                } }
                tbody { @for row in class_gains([&a.metrics, &b.metrics]) { tr {
                    th scope="row" { (row.class.name) }
                    td.number { (grouped(row.truths)) }
                    @for value in [row.a, row.b] { td.number { (percent(value)) } }
                    td.number { (row.gain.map_or_else(|| "–".to_owned(), |gain| format!("{:+.1}", gain * 100.0))) }
                } } }
            } }
            p.explanation { "A and B: " (measure) " per class; A − B in percentage points." }
        }
    }
}

fn class_changes(compared: &ComparedRuns<'_>) -> Markup {
    let [a, b] = compared.runs;
    let changes = &compared.summary.confusion;
    html! {
        @if !changes.is_empty() {
            section {
                h2 { "Class changes" }
                details open[changes.len() <= OPEN_CHANGES] {
                    summary { (counted(changes.len(), "pair of classes", "pairs of classes")) }
                    div.scroll { table {
                        thead { tr { th scope="col" { "A" } th scope="col" { "B" } th.number scope="col" { "Count" } } }
                        tbody { @for change in changes { tr {
                            td { (a.labels.name(change.left)) }
                            td { (b.labels.name(change.right)) }
                            td.number { (grouped(change.count as u64)) }
                        } } }
                    } }
                }
            }
        }
    }
}

fn images(worst: &[DifferingImage]) -> Markup {
    html! {
        @if !worst.is_empty() {
            section {
                h2 { "Images with the greatest disagreement" }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { "Image" }
                        th.number scope="col" { "Disagreement" }
                        th scope="col" { "Difference" }
                    } }
                    tbody { @for image in worst { tr {
                        td { (image.name) }
                        td.number { (format!("{:.2}", image.disagreement)) }
                        td { (image.what) }
                    } } }
                } }
            }
        }
    }
}
