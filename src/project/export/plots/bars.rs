//! Horizontal bars: one number per class, costs of the kinds of errors.

use super::plane::fifths;
use super::plot::{Anchor, Plot, Shapes, WIDTH, percent};
use crate::domain::counted;
use crate::evaluation::{ClassificationMetrics, DetectionMetrics};

/// Maximum number of classes with a bar; further ones are omitted in the middle.
const MOST_CLASSES: usize = 40;
const ROW: f64 = 22.0;
const NUMBERS: f64 = 150.0;

pub(crate) struct Bar {
    pub name: String,
    pub value: f64,
    /// A second number, drawn as a line across the bar.
    pub tick: Option<f64>,
    pub text: String,
}

pub(super) fn ap(metrics: &DetectionMetrics) -> Option<Plot> {
    let classes = metrics.classes.iter().filter_map(|class| {
        Some(Bar {
            name: class.class.name.clone(),
            value: class.ap?,
            tick: class.ap50,
            text: format!("{}, {}", percent(class.ap), counted(class.truths as usize, "object", "objects")),
        })
    });
    let caption = "Bars: AP (IoU 0.50:0.95). Lines: AP (IoU 0.50). Classes without objects are omitted.";
    by_class("ap-by-class", "AP by class", caption, classes.collect())
}

pub(super) fn f1(metrics: &ClassificationMetrics) -> Option<Plot> {
    let classes = metrics.classes.iter().filter_map(|class| {
        Some(Bar {
            name: class.class.name.clone(),
            value: class.f1?,
            tick: None,
            text: format!("{}, {}", percent(class.f1), counted(class.truths as usize, "image", "images")),
        })
    });
    let caption = "F1 is the harmonic mean of precision and recall. Classes without objects and predictions are \
        omitted.";
    by_class("f1-by-class", "F1 by class", caption, classes.collect())
}

fn by_class(name: &'static str, title: &'static str, caption: &str, mut classes: Vec<Bar>) -> Option<Plot> {
    classes.sort_by(|one, other| other.value.total_cmp(&one.value).then_with(|| one.name.cmp(&other.name)));
    let left_out = classes.len().saturating_sub(MOST_CLASSES);
    let mut caption = caption.to_owned();
    if left_out > 0 {
        let half = MOST_CLASSES / 2;
        classes.drain(half..half + left_out);
        caption = format!("The {half} highest and the {half} lowest of {} classes. {caption}", MOST_CLASSES + left_out);
    }
    let ticks: Vec<(f64, String)> = fifths().map(|share| (share, format!("{:.0}%", share * 100.0))).collect();
    let gap = (left_out > 0).then_some(MOST_CLASSES / 2);
    (!classes.is_empty()).then(|| Plot { name, caption, ..bars(title, &classes, &ticks, 150.0, gap) })
}

pub(super) fn errors(metrics: &DetectionMetrics) -> Option<Plot> {
    const KINDS: [(&str, &str); 6] = [
        ("location", "location: overlaps too little"),
        ("class", "class: correct location, wrong class"),
        ("both", "both: wrong class, little overlap"),
        ("duplicate", "duplicate: object already detected"),
        ("background", "background: no object"),
        ("missed", "undetected: no box of any class"),
    ];
    let mut kinds: Vec<Bar> = KINDS
        .iter()
        .filter_map(|(kind, name)| {
            let cost = metrics.errors.get(kind)?;
            let points = 100.0 * cost.ap50_cost;
            Some(Bar {
                name: (*name).to_owned(),
                value: points.max(0.0),
                tick: None,
                text: format!("{points:.1} points, {}", counted(cost.count, "error", "errors")),
            })
        })
        .collect();
    kinds.sort_by(|one, other| other.value.total_cmp(&one.value));
    let most = kinds.iter().map(|kind| kind.value).fold(0.0, f64::max);
    let caption = "Points of AP (IoU 0.50) gained by fixing only this kind of error, as measured by TIDE, over \
        detections of all scores.";
    let title = "Cost of each kind of error";
    (!kinds.is_empty()).then(|| Plot {
        name: "errors",
        caption: caption.to_owned(),
        ..bars(title, &kinds, &ticks(most), 220.0, None)
    })
}

/// At most six round numbers from zero on; the last is at least `most`.
fn ticks(most: f64) -> Vec<(f64, String)> {
    let most = if most > 0.0 { most } else { 1.0 };
    let magnitude = 10_f64.powf((most / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude).into_iter().find(|step| step * 5.0 >= most);
    let step = step.unwrap_or(most / 5.0);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let count = (most / step).ceil().max(1.0) as u32;
    (0..=count).map(|place| f64::from(place) * step).map(|value| (value, format!("{value:.decimals$}"))).collect()
}

/// One row per bar, with ticks below; a gap before the row `gap`.
pub(crate) fn bars(title: &'static str, bars: &[Bar], ticks: &[(f64, String)], left: f64, gap: Option<usize>) -> Plot {
    let most = ticks.last().map_or(1.0, |(value, _)| *value);
    let room = WIDTH - left - NUMBERS;
    let x_of = |value: f64| left + room * (value / most).clamp(0.0, 1.0);
    let top = |row: usize| row as f64 * ROW + gap.map_or(0.0, |gap| if row >= gap { ROW } else { 0.0 });
    let bottom = top(bars.len());
    let mut body = Shapes::default();
    for (value, text) in ticks {
        let x = x_of(*value);
        body.line("grid", [[x, 0.0], [x, bottom]]);
        body.text("weak", Anchor::Middle, [x, bottom + 18.0], text);
    }
    for (row, bar) in bars.iter().enumerate() {
        let (y, end) = (top(row), x_of(bar.value));
        body.name(Anchor::End, [left - 8.0, y + 15.5], 0, &bar.name, left - 12.0);
        body.rect("fill", [left, y + 4.0, (end - left).max(1.0), ROW - 8.0], 1.0, "");
        let tick = bar.tick.map_or(end, x_of);
        if bar.tick.is_some() {
            body.line("tick", [[tick, y + 2.0], [tick, y + ROW - 2.0]]);
        }
        body.text("label", Anchor::Start, [end.max(tick) + 8.0, y + 15.5], &bar.text);
    }
    if let Some(gap) = gap {
        body.text("weak", Anchor::End, [left - 8.0, gap as f64 * ROW + 15.5], "…");
    }
    body.line("axis", [[left, 0.0], [left, bottom]]);
    Plot { name: "", title, caption: String::new(), size: [WIDTH, bottom + 26.0], body }
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn ticks_are_round_and_cover_the_maximum() {
        for (most, expected) in [
            (23.0, "0 5 10 15 20 25"),
            (4.1, "0 1 2 3 4 5"),
            (0.37, "0.0 0.1 0.2 0.3 0.4"),
            (0.0, "0.0 0.2 0.4 0.6 0.8 1.0"),
            (100.0, "0 20 40 60 80 100"),
        ] {
            let texts: Vec<String> = ticks(most).into_iter().map(|(_, text)| text).collect();
            assert_eq!(texts.join(" "), expected, "{most}");
        }
    }
}
