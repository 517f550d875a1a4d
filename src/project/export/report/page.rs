//! The page itself. `maud` escapes everything from outside, and a policy in the page's head forbids the browser to
//! fetch or run anything.

use std::cmp::Reverse;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use strum::VariantArray;

use super::examples::{Example, Section, Thumbnail, box_verdict_texts};
use super::summary::{ClassCount, Histogram, Summary};
use crate::domain::{
    self, ModelTask, Prediction, PredictionContent, RunInfo, Verdict, capitalized, decimal, human_bytes, score_text,
};
use crate::project::export::ExportContext;
use crate::project::export::options::{BoxChoice, ExportOptions, VerdictChoice};
use crate::project::export::plots::{Axis, Bar, Mark, Plane, Plot, bars};
use crate::review::{Part, ReviewReport, VerdictKind};

/// The number of classes in the chart; the table has all of them.
const CHARTED_CLASSES: usize = 15;

/// Further corrections are in the file of `spotcheck review report`.
const CORRECTIONS: usize = 20;

const STYLE: &str = include_str!("style.css");

pub(super) fn page(
    context: &ExportContext,
    options: ExportOptions,
    summary: &Summary,
    sections: &[Section<Option<Arc<Thumbnail>>>],
    evaluation: Option<&Markup>,
) -> String {
    let run = &context.run;
    let title = format!("{} on {}", run.card.name, context.source_name);
    let body = html! {
        header {
            h1 { (run.card.name) }
            p.source { (context.source_name) }
            (key_figures(context, summary))
        }
        main {
            (charts(context, options, summary))
            @if let Some(evaluation) = evaluation { (evaluation) }
            @if let Some(review) = &context.review { (statement(review)) }
            (verdicts(summary))
            @for section in sections { (examples(section)) }
            (class_table(context, summary))
            (failures(summary))
            (settings(context, options))
        }
    };
    whole(&title, &body)
}

/// A page with the style of all reports.
pub(super) fn whole(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; img-src data:; style-src 'unsafe-inline'";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("Spotcheck ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(Plot::STYLE)) }
            }
            body {
                (body)
                footer { "Made with Spotcheck " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string()
}

fn key_figures(context: &ExportContext, summary: &Summary) -> Markup {
    let is_detector = context.task() == ModelTask::Detection;
    let judged = summary.image_verdicts.total() + summary.box_verdicts.total();
    let figure = |value: u64, name: &str| {
        html! { div { dt { (name) } dd { (grouped(value)) } } }
    };
    html! {
        dl.figures {
            (figure(summary.images, "images"))
            @if is_detector {
                (figure(summary.scores.total(), "boxes"))
                (figure(summary.without_boxes, "images without boxes"))
            }
            (figure(summary.classes.len() as u64, if is_detector { "classes found" } else { "different top classes" }))
            (figure(judged, "verdicts"))
            @if summary.failed > 0 { (figure(summary.failed, "images failed")) }
            @if summary.unpredicted > 0 { (figure(summary.unpredicted, "images without a prediction yet")) }
            @if summary.outdated > 0 { (figure(summary.outdated, "outdated images")) }
        }
    }
}

fn charts(context: &ExportContext, options: ExportOptions, summary: &Summary) -> Markup {
    let is_detector = context.task() == ModelTask::Detection;
    let (things, of) = if is_detector { ("Box scores", "boxes") } else { ("Top-class scores", "images") };
    let threshold = (is_detector && options.boxes == BoxChoice::All).then_some(context.view.min_score);
    html! {
        @if summary.predicted() > 0 {
            section.charts {
                (score_histogram(things, &summary.scores, threshold, of).figure())
                @if !summary.classes.is_empty() { (class_bars(summary).figure()) }
            }
        }
    }
}

/// Bars from score 0 to 1, with the threshold as a line if there is one.
fn score_histogram(title: &'static str, histogram: &Histogram, threshold: Option<f32>, of: &'static str) -> Plot {
    let most = histogram.bins.iter().copied().max().unwrap_or(0).max(1);
    let mut plane = Plane::new(140.0, Axis::Score("Score"), Axis::Count(of, most));
    for (bin, &count) in histogram.bins.iter().enumerate() {
        let [from, to] = [bin, bin + 1].map(|bin| bin as f64 / Histogram::BINS as f64);
        let title = format!("{count} {of} with a score of {from:.2} to {to:.2}");
        plane.marks.push(Mark::Bar { from, to, height: count as f64 / most as f64, title });
    }
    if let Some(threshold) = threshold {
        let x = threshold.into();
        plane.line("at", vec![[x, 0.0], [x, 1.0]], format!("threshold {}", score_text(decimal(threshold))));
    }
    plane.plot("scores", title, String::new())
}

/// One bar per class, most frequent first.
fn class_bars(summary: &Summary) -> Plot {
    let mut classes: Vec<&ClassCount> = summary.classes.values().collect();
    classes.sort_by_key(|class| (Reverse(class.boxes), &class.label));
    let left = classes.len().saturating_sub(CHARTED_CLASSES);
    let classes = classes.into_iter().take(CHARTED_CLASSES).map(|class| Bar {
        name: class.label.clone(),
        value: class.boxes as f64,
        tick: None,
        text: class.boxes.to_string(),
    });
    let classes: Vec<Bar> = classes.collect();
    let most = classes.first().map_or(1.0, |class| class.value.max(1.0));
    let mut plot = bars("Most frequent classes", &classes, &[(most, String::new())], 190.0, None);
    if left > 0 {
        plot.caption = format!("and {left} more: see the table below");
    }
    plot
}

/// What the verdicts say about all images of the run, exported or not.
fn statement(review: &ReviewReport) -> Markup {
    let sentences = review.sentences();
    let scores = review.scores.iter().map(|row| (format!("{:.1} to {:.1}", row.from, row.to), row.part));
    let classes = review.classes.iter().map(|row| (row.class.clone(), row.part));
    let corrections = review.corrections.iter().take(CORRECTIONS);
    let truth = review.classes.iter().filter_map(|row| Some((&row.class, row.truth?.text())));
    html! {
        section {
            h2 { "Review of the run" }
            @for sentence in sentences.iter() { p { (sentence) } }
            @for note in &review.notes { p.explanation { (capitalized(note)) } }
            (parts("Score", scores))
            (parts("Class", classes))
            @if !review.corrections.is_empty() {
                p { "Corrected classes: "
                    @for row in corrections { span.tag { (row.from) " → " (row.to) " " (row.count) } " " } }
            }
            @if !review.added.is_empty() {
                p { "Objects that the model missed: "
                    @for row in &review.added { span.tag { (row.class) " " (row.count) } " " } }
            }
            @if review.truth.is_some() {
                p { "Verdicts that the ground truth agrees with: "
                    @for (class, truth) in truth { span.tag { (class) " " (truth) } " " } }
            }
        }
    }
}

/// One row per part with a verdict.
fn parts(title: &str, parts: impl Iterator<Item = (String, Part)>) -> Markup {
    let judged = parts.filter(|(_, part)| part.judged > 0);
    html! {
        div.scroll { table {
            thead { tr {
                th scope="col" { (title) }
                th.number scope="col" { "Verdicts" }
                th scope="col" { "Precision (95% interval)" }
                th scope="col" { "Accepted (95% interval)" }
            } }
            tbody {
                @for (name, part) in judged {
                    tr {
                        th scope="row" { (name) }
                        td.number { (grouped(part.judged as u64)) " of " (grouped(part.population as u64)) }
                        @match part.cell() {
                            Some(interval) => {
                                td { (interval) }
                                td { (part.acceptance.cell().unwrap_or_default()) }
                            }
                            None => td colspan="2" { "No estimate: " (part.reason()) }
                        }
                    }
                }
            }
        } }
    }
}

fn verdicts(summary: &Summary) -> Markup {
    let (images, boxes) = (&summary.image_verdicts, &summary.box_verdicts);
    html! {
        @if images.total() + boxes.total() + summary.notes > 0 || !summary.tags.is_empty() {
            section {
                h2 { "Verdicts" }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { "Verdict" }
                        th.number scope="col" { "Images" }
                        th.number scope="col" { "Boxes" }
                    } }
                    tbody {
                        @for &kind in VerdictKind::VARIANTS {
                            tr {
                                th scope="row" {
                                    span class=(format!("verdict {}", kind.into_str())) {
                                        (capitalized(kind.participle()))
                                    }
                                }
                                td.number { (grouped(images.of(kind))) }
                                td.number { (grouped(boxes.of(kind))) }
                            }
                        }
                    }
                } }
                @if summary.notes > 0 { p { "Images with a note: " (grouped(summary.notes)) } }
                @if !summary.tags.is_empty() {
                    p { "Tags: " @for (tag, count) in &summary.tags { span.tag { (tag) " " (count) } " " } }
                }
            }
        }
    }
}

fn examples(section: &Section<Option<Arc<Thumbnail>>>) -> Markup {
    html! {
        section {
            h2 { (section.title) }
            p.explanation { (section.explanation) }
            ul.examples {
                @for (example, thumbnail) in &section.examples {
                    li { (example_card(example, thumbnail.as_deref())) }
                }
            }
        }
    }
}

fn example_card(example: &Example, thumbnail: Option<&Thumbnail>) -> Markup {
    let seen = seen(&example.prediction);
    html! {
        figure {
            (thumbnail_or_reason(thumbnail, &format!("{}: {seen}", example.sample.name)))
            figcaption {
                span.name { (example.sample.name) }
                span.seen { (seen) }
                @if let Some(verdict) = &example.verdict { (verdict_badge(verdict)) }
                @for text in box_verdict_texts(example) { span.verdict { (text) } }
                @for tag in &example.tags { span.tag { (tag) } }
                @if let Some(note) = &example.note { span.note { (note) } }
            }
        }
    }
}

pub(super) fn thumbnail_or_reason(thumbnail: Option<&Thumbnail>, text: &str) -> Markup {
    html! {
        @match thumbnail {
            Some(thumbnail) => {
                img width=(thumbnail.width) height=(thumbnail.height) alt=(text)
                    src=(format!("data:image/jpeg;base64,{}", BASE64.encode(&thumbnail.jpeg)));
            }
            None => { div.missing { "The image could not be read" } }
        }
    }
}

fn verdict_badge(verdict: &Verdict) -> Markup {
    let name = match verdict {
        Verdict::WrongClass(right) => format!("is {right}"),
        verdict => VerdictKind::from(verdict).participle().to_owned(),
    };
    html! { span class=(format!("verdict {}", verdict.into_str())) { (name) } }
}

/// `cat 0.98, dog 0.61 and 3 more`
fn seen(prediction: &Prediction) -> String {
    const MOST: usize = 3;
    let things: Vec<String> = match &prediction.content {
        PredictionContent::Classes(classes) => {
            classes.iter().take(MOST).map(|class| format!("{} {:.2}", class.label, class.score)).collect()
        }
        PredictionContent::Detections(boxes) => {
            boxes.iter().map(|detection| format!("{} {:.2}", detection.label, detection.score)).collect()
        }
    };
    let more = things.len().saturating_sub(MOST);
    match (things.len(), more) {
        (0, _) => "no box".to_owned(),
        (_, 0) => things.join(", "),
        _ => format!("{} and {more} more", things[..MOST].join(", ")),
    }
}

fn class_table(context: &ExportContext, summary: &Summary) -> Markup {
    let is_detector = context.task() == ModelTask::Detection;
    html! {
        @if !summary.classes.is_empty() {
            section {
                h2 { "Classes" }
                details open[summary.classes.len() <= 20] {
                    summary { (summary.classes.len()) " classes" }
                    div.scroll { table {
                        thead { tr {
                            th scope="col" { "Class" } th.number scope="col" { "Id" } th.number scope="col" { "Images" }
                            @if is_detector { th.number scope="col" { "Boxes" } }
                            th.number scope="col" { "Mean score" }
                        } }
                        tbody {
                            @for (class_id, class) in &summary.classes {
                                tr {
                                    th scope="row" { (class.label) }
                                    td.number { (class_id) }
                                    td.number { (grouped(class.images)) }
                                    @if is_detector { td.number { (grouped(class.boxes)) } }
                                    td.number { (format!("{:.3}", class.mean_score())) }
                                }
                            }
                        }
                    } }
                }
            }
        }
    }
}

fn failures(summary: &Summary) -> Markup {
    let unnamed = summary.failed - summary.failures.len() as u64;
    html! {
        @if summary.failed > 0 {
            section {
                h2 { "Failed images" }
                ul.failures {
                    @for (uri, reason) in &summary.failures { li { code { (uri) } ": " (reason) } }
                    @if unnamed > 0 { li { "and " (grouped(unnamed)) " more" } }
                }
            }
        }
    }
}

fn settings(context: &ExportContext, options: ExportOptions) -> Markup {
    let RunInfo { name, key, card, created_ms, .. } = &context.run;
    let or_device = |value: Option<usize>| value.map_or_else(|| "automatic".to_owned(), |value| value.to_string());
    let line = |name: &str, value: &str| html! { tr { th scope="row" { (name) } td { (value) } } };
    html! {
        section {
            h2 { "Model, run and filters" }
            div.scroll { table.settings { tbody {
                (line("Model", &format!("{} ({})", card.name, key.model_id)))
                (line("Task", card.task.into_str()))
                @if !key.weights_sha256.is_empty() {
                    (line("Weights", &format!("{}, sha256 {}", human_bytes(card.file.bytes), key.weights_sha256)))
                }
                (line("License", &card.license))
                (line("Origin", &card.origin))
                @if let Some(accuracy) = &card.accuracy { (line("Published accuracy", accuracy)) }
                @if !card.assumed.is_empty() { (line("Assumed", &card.assumed.join("; "))) }
                (line("Run", name))
                (line("Created", &utc(*created_ms)))
                (line("Predicted by", &key.made.to_string()))
                @if key.made.is_here() {
                    (line("Requested device", &key.device.to_string()))
                    (line("Batch size", &or_device(key.batch)))
                    (line("Threads", &or_device(key.threads)))
                }
                (line("Kept", &kept(&context.run)))
                (line("Shown", &shown(context, options)))
            } } }
        }
    }
}

fn kept(run: &RunInfo) -> String {
    match run.card.stored_as() {
        ModelTask::Detection => {
            format!("boxes with a score ≥ {}", run.key.keep.min_score)
        }
        ModelTask::Classification => format!("the top {} classes", run.key.keep.top_k),
    }
}

fn shown(context: &ExportContext, options: ExportOptions) -> String {
    let view = &context.view;
    let mut parts = Vec::new();
    match (context.task(), options.boxes) {
        (_, BoxChoice::All) => parts.push("everything that the run stores".to_owned()),
        (ModelTask::Classification, BoxChoice::Visible) => {
            parts.push(format!("the top {} classes", view.top_k));
        }
        (ModelTask::Detection, BoxChoice::Visible) => {
            parts.push(format!("boxes with a score ≥ {}, and accepted boxes", view.min_score));
            if !view.min_score_by_class.is_empty() {
                let classes = view.min_score_by_class.iter();
                let of_class: Vec<String> =
                    classes.map(|(id, score)| format!("{} {score}", context.run.labels.name(*id))).collect();
                parts.push(format!("by class: {}", of_class.join(", ")));
            }
            if let Some(iou) = view.nms_iou {
                parts.push(format!("overlaps above IoU {iou} suppressed"));
            }
            if let Some(class_id) = view.solo_class {
                parts.push(format!("only {}", context.run.labels.name(class_id)));
            }
            if !view.hidden_classes.is_empty() {
                let classes = view.hidden_classes.iter();
                let names: Vec<String> = classes.map(|id| context.run.labels.name(*id)).collect();
                parts.push(format!("without {}", names.join(", ")));
            }
        }
    }
    match options.verdicts {
        VerdictChoice::All => {}
        VerdictChoice::WithoutRejected => parts.push("without rejected".to_owned()),
        VerdictChoice::Corrected => parts.push("corrected labels".to_owned()),
    }
    parts.join("; ")
}

pub(super) fn utc(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds)
        .map_or_else(|_| "at an unknown time".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// `12 345`, with thin non-breaking spaces.
pub(super) fn grouped(number: u64) -> String {
    domain::grouped(number).replace(',', "\u{202f}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
    }

    #[test]
    fn time_is_written_in_utc() {
        assert_eq!(utc(1_763_710_000_000), "2025-11-21 07:26 UTC");
    }
}
