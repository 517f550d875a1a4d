//! An evaluation: a separate page, or part of a run's report.

use maud::{Markup, html};

use super::super::ExportError;
use super::super::annotated::{ObjectMark, annotate_thumbnail};
use super::super::plots::{percent, plots};
use super::examples::{Thumbnail, scaled};
use super::page::{grouped, thumbnail_or_reason, whole};
use crate::annotations::matching::{Folders, ImageKey, ImageMatches};
use crate::domain::{
    ClassScore, Detection, Prediction, PredictionContent, Problem, RgbImage, SampleUri, ViewSettings, counted,
    min_score_text, score_text,
};
use crate::evaluation::{
    BestThreshold, ClassMetrics, ClassificationMetrics, ClassifiedClass, ConfidentError, DetectionIntervals,
    DetectionMetrics, ErrorSide, Evaluated, EvaluatedClass, Interval, Metrics,
};
use crate::image::decode::{DecodeLimits, details};
use crate::image::source::Source;
use crate::tasks::TaskControl;

/// The number of classes that are listed without a click.
const OPEN_CLASSES: usize = 20;

pub struct EvaluatedImages<'i> {
    pub source: &'i dyn Source,
    /// The name of each image, relative to the source, and its address.
    pub samples: Vec<(&'i str, &'i SampleUri)>,
    pub limits: &'i DecodeLimits,
}

/// The image of each of [`Evaluated::confident_errors`]; `None` for those that cannot be shown. Adds a problem for each
/// unreadable one.
pub(super) fn thumbnails(
    evaluated: &Evaluated,
    images: &EvaluatedImages<'_>,
    problems: &mut Vec<Problem>,
    control: &TaskControl,
) -> Result<Vec<Option<Thumbnail>>, ExportError> {
    let errors = &evaluated.confident_errors;
    let wanted: Vec<ImageKey<'_>> = errors.iter().map(|error| ImageKey::named(&error.image)).collect();
    let named: Vec<ImageKey<'_>> = images.samples.iter().map(|(name, _)| ImageKey::named(name)).collect();
    let matches = ImageMatches::between(&wanted, &named, Folders::Agree);
    let classes = Classes::new(&evaluated.metrics);
    let mut thumbnails = Vec::with_capacity(errors.len());
    for (index, error) in errors.iter().enumerate() {
        control.checkpoint()?;
        let found = matches.index(index).and_then(|at| images.samples.get(at as usize));
        let Some((_, uri)) = found else {
            thumbnails.push(None);
            continue;
        };
        let drawn = |image: &RgbImage, bytes: &[u8]| draw(image, details(bytes).upright_size(), error, &classes);
        match Thumbnail::new(images.source, uri, images.limits, drawn) {
            Ok(thumbnail) => thumbnails.push(Some(thumbnail)),
            Err(reason) => {
                let message = format!("has no image in the report: {reason}");
                problems.push(Problem::new((*uri).clone(), message));
                thumbnails.push(None);
            }
        }
    }
    Ok(thumbnails)
}

/// Draws the wrong box and its object, or the wrong class, on a small image.
fn draw(small: &RgbImage, size: Option<[u32; 2]>, error: &ConfidentError, classes: &Classes<'_>) -> RgbImage {
    let [width, height] = size.unwrap_or([small.width(), small.height()]);
    let scored = |side: &ErrorSide| {
        let (label, score) = (classes.name(side.class), error.score as f32);
        match side.bounds {
            Some(bounds) => {
                PredictionContent::Detections(vec![Detection::new(bounds, classes.id(side.class), label, score)])
            }
            None => PredictionContent::Classes(vec![ClassScore { index: classes.id(side.class), label, score }]),
        }
    };
    let as_prediction = |side: &ErrorSide| {
        let prediction = Prediction::new([width, height], scored(side));
        scaled(&prediction, small.width(), small.height())
    };
    let truth = error.truth.filter(|truth| truth.bounds.is_some()).and_then(|truth| {
        let bounds = as_prediction(&truth).detections().first()?.bounds;
        let name = classes.name(truth.class);
        Some(ObjectMark { bounds, label: Some([format!("truth: {name}"), name.clone()]), is_missed: false })
    });
    let everything = ViewSettings { min_score: 0.0, ..ViewSettings::default() };
    annotate_thumbnail(small, &as_prediction(&error.predicted), &everything, truth)
}

/// A page with only an evaluation, and the images that could not be shown in it.
pub(crate) fn page(
    evaluated: &Evaluated,
    images: Option<&EvaluatedImages<'_>>,
    control: &TaskControl,
) -> Result<(String, Vec<Problem>), ExportError> {
    let mut problems = Vec::new();
    let thumbnails = images.map(|images| thumbnails(evaluated, images, &mut problems, control)).transpose()?;
    let counted = &evaluated.counted;
    let title = format!("{} against {}", counted.predictions, counted.truth);
    let body = html! {
        header {
            h1 { "Evaluation of " (counted.predictions) }
            p.source { "Ground truth: " (counted.truth) }
        }
        main { (sections(evaluated, thumbnails.as_deref())) }
    };
    Ok((whole(&title, &body), problems))
}

/// `thumbnails`: the result of [`thumbnails`]; `None` if the images are unknown.
pub(super) fn sections(evaluated: &Evaluated, thumbnails: Option<&[Option<Thumbnail>]>) -> Markup {
    let counted = &evaluated.counted;
    html! {
        section {
            h2 { "Against the ground truth" }
            p.explanation { (explanation(evaluated)) }
            p.explanation { "Matched: " (evaluated.matching.text()) "." }
            @if !evaluated.matching.doubts.is_empty() {
                ul { @for doubt in &evaluated.matching.doubts { li { (doubt.to_string()) } } }
            }
            (figures(&evaluated.metrics))
            @if counted.texts().next().is_some() {
                ul { @for (count, text) in counted.texts() { li { (grouped(count)) " " (text) } } }
            }
        }
        section.charts { @for plot in plots(&evaluated.metrics) { (plot.figure()) } }
        (errors(evaluated, thumbnails))
        (class_table(&evaluated.metrics))
    }
}

fn explanation(evaluated: &Evaluated) -> String {
    let counted = &evaluated.counted;
    let about = format!("{} compared with {}.", counted.predictions, counted.truth);
    let (how, has_intervals) = match &evaluated.metrics {
        Metrics::Detection { metrics, intervals } => {
            let threshold = match metrics.threshold {
                Some(threshold) => format!("a score ≥ {}", score_text(threshold)),
                None => "a score of at least their class's minimum".to_owned(),
            };
            let how = format!(
                " AP and AR as defined by COCO. Precision, recall and F1 for boxes with {threshold}, at IoU ≥ 0.50."
            );
            (how, intervals.is_some())
        }
        Metrics::Classification { intervals, .. } => (String::new(), intervals.is_some()),
    };
    let intervals = if has_intervals { " Ranges: 95% intervals." } else { "" };
    format!("{about}{how}{intervals}")
}

fn figures(metrics: &Metrics) -> Markup {
    let figure = |name: &str, number: Option<f64>, interval: Option<Interval>| {
        html! {
            div {
                dt {
                    (name)
                    @if let Some(Interval { low, high }) = interval {
                        span.interval { (format!("{:.1} to {:.1}%", low * 100.0, high * 100.0)) }
                    }
                }
                dd { (percent(number)) }
            }
        }
    };
    let count = |name: &str, count: u64| html! { div { dt { (name) } dd { (grouped(count)) } } };
    match metrics {
        Metrics::Detection { metrics, intervals } => {
            let DetectionIntervals { ap, ap50, ap75, ar100, precision, recall, f1 } = intervals.unwrap_or_default();
            let DetectionMetrics { true_positives, false_positives, false_negatives, .. } = **metrics;
            html! {
                dl.figures {
                    (figure("AP", metrics.ap, ap)) (figure("AP50", metrics.ap50, ap50))
                    (figure("AP75", metrics.ap75, ap75)) (figure("AR100", metrics.ar100, ar100))
                    (figure("Precision", metrics.precision, precision)) (figure("Recall", metrics.recall, recall))
                    (figure("F1", metrics.f1, f1))
                    (count("images", metrics.images)) (count("true positives", true_positives))
                    (count("false positives", false_positives)) (count("false negatives", false_negatives))
                }
            }
        }
        Metrics::Classification { metrics, intervals } => {
            let [top1, top5] = intervals.map_or([None; 2], |intervals| [intervals.top1, intervals.top5]);
            let ClassificationMetrics { macro_precision, macro_recall, macro_f1, ece, images, .. } = **metrics;
            html! {
                dl.figures {
                    (figure("Top-1", metrics.top1, top1)) (figure("Top-5", metrics.top5, top5))
                    (figure("Mean precision", macro_precision, None)) (figure("Mean recall", macro_recall, None))
                    (figure("Mean F1", macro_f1, None)) (figure("Calibration error", ece, None))
                    (count("images", images))
                }
            }
        }
    }
}

fn errors(evaluated: &Evaluated, thumbnails: Option<&[Option<Thumbnail>]>) -> Markup {
    let classes = Classes::new(&evaluated.metrics);
    html! {
        @if !evaluated.confident_errors.is_empty() {
            section {
                h2 { "Most confident errors" }
                p.explanation { "The images whose incorrect predictions have the highest scores. No threshold \
                    filters them out. Dashed: ground truth." }
                ul.examples {
                    @for (index, error) in evaluated.confident_errors.iter().enumerate() {
                        @let said = said(error, &classes);
                        li { figure {
                            @if let Some(thumbnails) = thumbnails {
                                @let thumbnail = thumbnails.get(index).and_then(Option::as_ref);
                                (thumbnail_or_reason(thumbnail, &format!("{}: {said}", error.image)))
                            }
                            figcaption { span.name { (error.image) } span.seen { (said) } }
                        } }
                    }
                }
            }
        }
    }
}

/// `FP, wrong class: dog 0.97, truth: cat`
fn said(error: &ConfidentError, classes: &Classes<'_>) -> String {
    let predicted = format!("{}: {} {:.2}", error.kind.text(), classes.name(error.predicted.class), error.score);
    match error.truth {
        Some(truth) => format!("{predicted}, truth: {}", classes.name(truth.class)),
        None => predicted,
    }
}

fn class_table(metrics: &Metrics) -> Markup {
    let (head, rows): (&[&str], Vec<Vec<String>>) = match metrics {
        Metrics::Detection { metrics, .. } => (
            &["Objects", "Boxes", "AP", "AP50", "Minimum score", "Precision", "Recall", "F1", "Best F1"],
            metrics.classes.iter().map(detected).collect(),
        ),
        Metrics::Classification { metrics, .. } => {
            (&["Images", "Predicted", "Precision", "Recall", "F1"], metrics.classes.iter().map(classified).collect())
        }
    };
    html! {
        section {
            h2 { "Ground-truth classes" }
            details open[rows.len() <= OPEN_CLASSES] {
                summary { (counted(rows.len(), "class", "classes")) }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { "Class" }
                        @for name in head { th.number scope="col" { (name) } }
                    } }
                    tbody {
                        @for (class, cells) in metrics.classes().into_iter().zip(&rows) {
                            tr { th scope="row" { (class.name) } @for cell in cells { td.number { (cell) } } }
                        }
                    }
                } }
            }
        }
    }
}

fn detected(row: &ClassMetrics) -> Vec<String> {
    let best_text = |best: BestThreshold| format!("{} at {}", percent(Some(best.f1)), min_score_text(best.threshold));
    let best = row.best.map_or_else(|| "–".to_owned(), best_text);
    let counts = [row.truths, row.detections].map(grouped);
    let aps = [row.ap, row.ap50].map(percent);
    let at = [row.precision, row.recall, row.f1].map(percent);
    counts.into_iter().chain(aps).chain([score_text(row.threshold)]).chain(at).chain([best]).collect()
}

fn classified(row: &ClassifiedClass) -> Vec<String> {
    let counts = [row.truths, row.predictions].map(grouped);
    counts.into_iter().chain([row.precision, row.recall, row.f1].map(percent)).collect()
}

struct Classes<'m>(Vec<&'m EvaluatedClass>);

impl<'m> Classes<'m> {
    fn new(metrics: &'m Metrics) -> Self {
        Self(metrics.classes())
    }

    fn name(&self, class: u32) -> String {
        let class = self.0.get(class as usize);
        class.map_or("a class that the ground truth does not have", |class| &class.name).to_owned()
    }

    /// The id that determines the color.
    fn id(&self, class: u32) -> u32 {
        let id = self.0.get(class as usize).and_then(|class| class.id?.try_into().ok());
        id.unwrap_or(class)
    }
}
