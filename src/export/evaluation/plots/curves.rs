//! Precision, recall and F1 as lines.

use maud::{Markup, html};

use super::axes::{Axis, Entry, Spot, line_sample, path, plane, plane_height, x_of, y_of};
use super::plot::{Plot, WIDTH, number, percent};
use crate::evaluation::{ClassMetrics, Curve, CurvePoint, DetectionMetrics};

/// Classes that have a line of their own style; more of them are thin lines without names.
const NAMED_CLASSES: usize = 5;
const STYLES: [&str; NAMED_CLASSES] = ["s1", "s2", "s3", "s4", "s5"];

pub(super) fn plots(metrics: &DetectionMetrics) -> Vec<Plot> {
    if metrics.curve.points.is_empty() {
        return Vec::new();
    }
    vec![precision_recall(metrics), over_score(metrics), f1(metrics)]
}

fn precision_recall(metrics: &DetectionMetrics) -> Plot {
    let name = |class: &ClassMetrics| format!("{} ({})", class.class.name, percent(class.ap50));
    let (lines, mut legend) = classes(metrics, |point| [point.recall, point.precision], name);
    let operating = metrics.recall.zip(metrics.precision).map(|(recall, precision)| [recall, precision]);
    let at = metrics.threshold.map_or_else(|| "at each minimum".to_owned(), |score| format!("score ≥ {score:.2}"));
    let best = best_point(metrics).map(|point| [point.recall, point.precision]);
    let best_name = metrics.best.map(|best| format!("best F1, ≥ {:.2}", best.threshold)).unwrap_or_default();
    let spots = [(Spot::Diamond, best, best_name), (Spot::Circle, operating, at)];
    let content = html! {
        (lines)
        @for (spot, place, _) in &spots { @if let Some(place) = place { (spot.on_plane(*place)) } }
    };
    let shown = spots.into_iter().filter(|(_, place, _)| place.is_some());
    legend.extend(shown.map(|(spot, _, name)| Entry { sample: spot.sample(), name }));
    Plot {
        name: "precision-recall",
        title: "Precision and recall",
        caption: format!(
            "At IoU ≥ 0.50. AP (IoU 0.50), the mean of the classes: {}. AP takes the highest precision at each \
            recall or above, as COCO does, so it can be larger than the area under a line.",
            percent(metrics.ap50)
        ),
        size: [WIDTH, plane_height(legend.len())],
        body: plane(Axis::Share("Recall"), Axis::Share("Precision"), &content, &legend),
    }
}

fn over_score(metrics: &DetectionMetrics) -> Plot {
    type Number = fn(&CurvePoint) -> f64;
    let lines: [(&str, &str, Number); 3] = [
        ("F1", "s0", |point| point.f1),
        ("precision", "s1", |point| point.precision),
        ("recall", "s2", |point| point.recall),
    ];
    let mut legend: Vec<Entry> =
        lines.iter().map(|(name, style, _)| Entry { sample: line_sample(style), name: (*name).to_owned() }).collect();
    let best = best_point(metrics).map(|point| [point.threshold, point.f1]);
    let content = html! {
        @for (_, style, number) in &lines {
            (path(metrics.curve.points.iter().map(|point| [point.threshold, number(point)]), style))
        }
        @if let Some(threshold) = metrics.threshold {
            @let x = number(x_of(threshold));
            path.line.at d=(format!("M{x} {}V{}", number(y_of(1.0)), number(y_of(0.0)))) {}
        }
        @if let Some(best) = best { (Spot::Diamond.on_plane(best)) }
    };
    if let Some(threshold) = metrics.threshold {
        legend.push(Entry { sample: line_sample("at"), name: format!("minimum {threshold:.2}") });
    }
    if let Some(best) = metrics.best {
        legend.push(Entry { sample: Spot::Diamond.sample(), name: format!("best F1, ≥ {:.2}", best.threshold) });
    }
    let best = metrics.best.map_or_else(String::new, |best| {
        format!(" The highest F1, {}, is at a minimum score of {:.4}.", percent(Some(best.f1)), best.threshold)
    });
    Plot {
        name: "minimum-score",
        title: "Precision, recall and F1 over the minimum score",
        caption: format!("All classes pooled, at IoU ≥ 0.50.{best}"),
        size: [WIDTH, plane_height(legend.len())],
        body: plane(Axis::Score("Minimum score"), Axis::Share("Precision, recall, F1"), &content, &legend),
    }
}

fn f1(metrics: &DetectionMetrics) -> Plot {
    let name = |class: &ClassMetrics| {
        let best = class.best.map_or_else(String::new, |best| format!(" (best ≥ {:.2})", best.threshold));
        format!("{}{best}", class.class.name)
    };
    let (content, legend) = classes(metrics, |point| [point.threshold, point.f1], name);
    Plot {
        name: "f1",
        title: "F1 over the minimum score, by class",
        caption: "At IoU ≥ 0.50. Classes whose highest F1 is at other scores than that of all classes gain from a \
            minimum score of their own."
            .to_owned(),
        size: [WIDTH, plane_height(legend.len())],
        body: plane(Axis::Score("Minimum score"), Axis::Share("F1"), &content, &legend),
    }
}

/// A line for each class, and one for all together.
fn classes(
    metrics: &DetectionMetrics,
    place: fn(&CurvePoint) -> [f64; 2],
    name: impl Fn(&ClassMetrics) -> String,
) -> (Markup, Vec<Entry>) {
    let line = |curve: &Curve, style: &str| path(curve.points.iter().map(place), style);
    let classes: Vec<&ClassMetrics> = metrics.classes.iter().filter(|class| !class.curve.points.is_empty()).collect();
    let is_named = classes.len() <= NAMED_CLASSES;
    let mut legend = vec![Entry { sample: line_sample("s0"), name: "all classes pooled".to_owned() }];
    if is_named {
        let entries = classes.iter().zip(STYLES);
        legend.extend(entries.map(|(class, style)| Entry { sample: line_sample(style), name: name(class) }));
    } else {
        legend.push(Entry { sample: line_sample("thin"), name: format!("each of {} classes", classes.len()) });
    }
    let lines = html! {
        @for (index, class) in classes.iter().enumerate() {
            (line(&class.curve, if is_named { STYLES[index] } else { "thin" }))
        }
        (line(&metrics.curve, "s0"))
    };
    (lines, legend)
}

/// Where the F1 of all classes is highest, if that point was kept.
fn best_point(metrics: &DetectionMetrics) -> Option<CurvePoint> {
    let best = metrics.best?;
    let points = metrics.curve.points.iter();
    points.copied().rfind(|point| point.threshold >= best.threshold)
}
