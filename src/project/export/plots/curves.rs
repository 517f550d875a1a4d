//! Plots with axes: precision, recall and F1 as lines, the reliability diagram of a classifier.

use super::plane::{Axis, Mark, Plane, SIDE};
use super::plot::{Plot, Spot, percent};
use crate::domain::{counted, min_score_text, score_text};
use crate::evaluation::{ClassMetrics, ClassificationMetrics, CurvePoint, DetectionMetrics, Metrics, ReliabilityBin};

/// The styles of classes with a named line; further classes are thin lines without names.
const STYLES: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];
/// The height of the histogram below the reliability diagram.
const HISTOGRAM: f64 = 70.0;

pub(super) fn plots(metrics: &DetectionMetrics) -> Vec<Plot> {
    if metrics.curve.points.is_empty() {
        return Vec::new();
    }
    vec![precision_recall(metrics), over_score(metrics), f1(metrics)]
}

fn precision_recall(metrics: &DetectionMetrics) -> Plot {
    let name = |class: &ClassMetrics| format!("{} ({})", class.class.name, percent(class.ap50));
    let axes = [Axis::Share("Recall"), Axis::Share("Precision")];
    let mut plane = classes(metrics, axes, |point| [point.recall, point.precision], name);
    if let Some((best, name)) = best(metrics) {
        plane.spot(Spot::Diamond, [best.recall, best.precision], name);
    }
    if let Some((recall, precision)) = metrics.recall.zip(metrics.precision) {
        let at = metrics
            .threshold
            .map_or_else(|| "at each minimum".to_owned(), |score| format!("score ≥ {}", score_text(score)));
        plane.spot(Spot::Circle, [recall, precision], at);
    }
    let caption = format!(
        "At IoU ≥ 0.50. AP (IoU 0.50), the mean of the classes: {}. AP takes the highest precision at each \
        recall or above, as COCO does, so it can be larger than the area under a line.",
        percent(metrics.ap50)
    );
    plane.plot("precision-recall", "Precision and recall", caption)
}

/// The curves of two runs, A and B; `None` if there is nothing to draw.
pub(crate) fn of_two<'m>(runs: [&'m Metrics; 2]) -> Option<Plot> {
    match runs {
        [Metrics::Detection { metrics: a, .. }, Metrics::Detection { metrics: b, .. }] => {
            Some(precision_recall_of_two([a, b]))
        }
        [Metrics::Classification { metrics: a, .. }, Metrics::Classification { metrics: b, .. }] => {
            let run = |style, letter: &str, metrics: &'m ClassificationMetrics| {
                (style, format!("{letter} (top-1 {})", percent(metrics.top1)), metrics)
            };
            let title = "Accuracy and coverage of both runs";
            coverage_plot("coverage-of-two", title, vec![run("s1", "A", a), run("s2", "B", b)])
        }
        _ => None,
    }
}

/// The accuracy of the top class over coverage.
pub(super) fn coverage(metrics: &ClassificationMetrics) -> Option<Plot> {
    let name = format!("top-1 {}", percent(metrics.top1));
    coverage_plot("coverage", "Accuracy and coverage", vec![("s0", name, metrics)])
}

/// A line per run: its style, its name and its metrics.
fn coverage_plot(
    name: &'static str,
    title: &'static str,
    runs: Vec<(&'static str, String, &ClassificationMetrics)>,
) -> Option<Plot> {
    if runs.iter().all(|(_, _, metrics)| metrics.curve.points.is_empty()) {
        return None;
    }
    let mut plane = Plane::new(SIDE, Axis::Share("Coverage"), Axis::Share("Accuracy"));
    for (style, name, metrics) in runs {
        let points = metrics.curve.points.iter().map(|point| [point.coverage, point.accuracy]).collect();
        plane.line(style, points, name);
    }
    let caption = "The accuracy of the top class on the images with at least a minimum score, over their fraction of \
        all images.";
    Some(plane.plot(name, title, caption.to_owned()))
}

/// All classes pooled.
fn precision_recall_of_two(runs: [&DetectionMetrics; 2]) -> Plot {
    let mut plane = Plane::new(SIDE, Axis::Share("Recall"), Axis::Share("Precision"));
    for (metrics, (letter, style)) in runs.into_iter().zip([("A", "s1"), ("B", "s2")]) {
        let points = metrics.curve.points.iter().map(|point| [point.recall, point.precision]).collect();
        plane.line(style, points, format!("{letter} (AP50 {})", percent(metrics.ap50)));
    }
    for (metrics, (letter, spot)) in runs.into_iter().zip([("A", Spot::Circle), ("B", Spot::Diamond)]) {
        if let Some((recall, precision)) = metrics.recall.zip(metrics.precision) {
            let at = metrics.threshold.map_or_else(String::new, |score| format!(", score ≥ {}", score_text(score)));
            plane.spot(spot, [recall, precision], format!("{letter}{at}"));
        }
    }
    let caption = "All classes pooled, at IoU ≥ 0.50.";
    plane.plot("precision-recall-of-two", "Precision and recall of both runs", caption.to_owned())
}

fn over_score(metrics: &DetectionMetrics) -> Plot {
    let mut plane = Plane::new(SIDE, Axis::Score("Minimum score"), Axis::Share("Precision, recall, F1"));
    let points = || metrics.curve.points.iter();
    plane.line("s0", points().map(|point| [point.threshold, point.f1]).collect(), "F1".to_owned());
    plane.line("s1", points().map(|point| [point.threshold, point.precision]).collect(), "precision".to_owned());
    plane.line("s2", points().map(|point| [point.threshold, point.recall]).collect(), "recall".to_owned());
    if let Some(threshold) = metrics.threshold {
        plane.line("at", vec![[threshold, 1.0], [threshold, 0.0]], format!("minimum {}", score_text(threshold)));
    }
    if let Some((best, name)) = best(metrics) {
        plane.spot(Spot::Diamond, [best.threshold, best.f1], name);
    }
    let best = metrics.best.map_or_else(String::new, |best| {
        let (f1, threshold) = (percent(Some(best.f1)), min_score_text(best.threshold));
        format!(" The highest F1, {f1}, is at a minimum score of {threshold}.")
    });
    let caption = format!("All classes pooled, at IoU ≥ 0.50.{best}");
    plane.plot("minimum-score", "Precision, recall and F1 by minimum score", caption)
}

fn f1(metrics: &DetectionMetrics) -> Plot {
    let name = |class: &ClassMetrics| {
        let best = class.best.map_or_else(String::new, |best| format!(" (best ≥ {})", min_score_text(best.threshold)));
        format!("{}{best}", class.class.name)
    };
    let axes = [Axis::Score("Minimum score"), Axis::Share("F1")];
    let caption = "At IoU ≥ 0.50. Classes whose best F1 is at a different score than that of all classes benefit \
        from their own minimum score.";
    classes(metrics, axes, |point| [point.threshold, point.f1], name).plot(
        "f1",
        "F1 by minimum score, per class",
        caption.to_owned(),
    )
}

/// One line per class, and one for all together.
fn classes(
    metrics: &DetectionMetrics,
    [across, up]: [Axis; 2],
    point: fn(&CurvePoint) -> [f64; 2],
    name: impl Fn(&ClassMetrics) -> String,
) -> Plane {
    let classes: Vec<&ClassMetrics> = metrics.classes.iter().filter(|class| !class.curve.points.is_empty()).collect();
    let mut plane = Plane::new(SIDE, across, up);
    let pooled = metrics.curve.points.iter().map(point).collect();
    plane.line("s0", pooled, "all classes pooled".to_owned());
    let is_named = classes.len() <= STYLES.len();
    for (index, class) in classes.iter().enumerate() {
        let points = class.curve.points.iter().map(point).collect();
        match index {
            _ if is_named => plane.line(STYLES[index], points, name(class)),
            0 => plane.line("thin", points, format!("each of {} classes", classes.len())),
            _ => plane.marks.push(Mark::Line("thin", points)),
        }
    }
    // The line of all classes is above the others.
    plane.marks.rotate_left(1);
    plane
}

/// Where the F1 of all classes is highest, if that point was kept.
fn best(metrics: &DetectionMetrics) -> Option<(CurvePoint, String)> {
    let best = metrics.best?;
    let point = metrics.curve.points.iter().rfind(|point| point.threshold >= best.threshold)?;
    Some((*point, format!("best F1, ≥ {}", min_score_text(best.threshold))))
}

/// Accuracy by the score of the top class, and the number of images with such a score.
pub(super) fn reliability(metrics: &ClassificationMetrics) -> Option<Plot> {
    let ece = metrics.ece?;
    let bins = &metrics.reliability;
    let mut plane = Plane::new(SIDE, Axis::Score("Score of the top class"), Axis::Share("Accuracy"));
    let bar =
        |bin: &ReliabilityBin, height: f64, title: String| Mark::Bar { from: bin.from, to: bin.to, height, title };
    plane.legend.push((Mark::Bar { from: 0.0, to: 1.0, height: 1.0, title: String::new() }, "right".to_owned()));
    plane.legend.push((Mark::Spot(Spot::Circle, [0.5; 2]), "mean score".to_owned()));
    for bin in bins {
        let Some(height) = bin.accuracy else { continue };
        let images = counted(bin.images, "image", "images");
        let title = format!("score {:.2} to {:.2}: {} correct of {images}", bin.from, bin.to, percent(bin.accuracy));
        plane.marks.push(bar(bin, height, title));
    }
    plane.line("at", vec![[0.0, 0.0], [1.0, 1.0]], "calibrated".to_owned());
    let spots = bins.iter().filter_map(|bin| Some(Mark::Spot(Spot::Circle, [bin.mean_score?, bin.accuracy?])));
    plane.marks.extend(spots);
    let caption = format!(
        "Expected calibration error: {}, in {} bins of equal width. Below the dashed line the scores are too high, \
        above it too low.",
        percent(Some(ece)),
        metrics.ece_bins
    );
    let mut plot = plane.plot("reliability", "Reliability diagram", caption);
    let most = bins.iter().map(|bin| bin.images).max().unwrap_or(0).max(1);
    let mut histogram = Plane::new(HISTOGRAM, Axis::Score(""), Axis::Count("Images", most as u64));
    histogram.marks.extend(
        bins.iter().map(|bin| bar(bin, bin.images as f64 / most as f64, counted(bin.images, "image", "images"))),
    );
    histogram.draw_below(&mut plot);
    Some(plot)
}
