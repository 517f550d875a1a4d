//! Horizontal bars: a number for each class, what the kinds of errors cost.

use maud::{Markup, html};

use super::plot::{Name, Plot, WIDTH, number, percent};
use crate::domain::counted;
use crate::evaluation::{ClassificationMetrics, DetectionMetrics};

/// Classes with a bar; more of them are left out in the middle.
const MOST_CLASSES: usize = 40;
const ROW: f64 = 22.0;
const NUMBERS: f64 = 150.0;

struct Bar {
    name: String,
    value: f64,
    /// A second number, drawn as a line across the bar.
    tick: Option<f64>,
    text: String,
}

/// AP of each class.
pub(super) fn ap(metrics: &DetectionMetrics) -> Option<Plot> {
    let classes = metrics.classes.iter().filter_map(|class| {
        Some(Bar {
            name: class.class.name.clone(),
            value: class.ap?,
            tick: class.ap50,
            text: format!("{}, {}", percent(class.ap), counted(class.truths as usize, "object", "objects")),
        })
    });
    let caption = "Bars: AP (IoU 0.50:0.95). Lines: AP (IoU 0.50). Classes without objects are left out.";
    by_class("ap-by-class", "AP by class", caption, classes.collect())
}

/// F1 of each class.
pub(super) fn f1(metrics: &ClassificationMetrics) -> Option<Plot> {
    let classes = metrics.classes.iter().filter_map(|class| {
        Some(Bar {
            name: class.class.name.clone(),
            value: class.f1?,
            tick: None,
            text: format!("{}, {}", percent(class.f1), counted(class.truths as usize, "image", "images")),
        })
    });
    let caption = "F1 is the harmonic mean of precision and recall. Classes that no image shows and no prediction has \
        are left out.";
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
    let ticks: Vec<(f64, String)> = (0..=5_u8).map(|fifth| (f64::from(fifth) / 5.0, share(fifth))).collect();
    let (body, height) = bars(&classes, &ticks, 150.0, (left_out > 0).then_some(MOST_CLASSES / 2));
    (!classes.is_empty()).then_some(Plot { name, title, caption, size: [WIDTH, height], body })
}

fn share(fifth: u8) -> String {
    if fifth == 5 { "100 %".to_owned() } else { (fifth * 20).to_string() }
}

/// What each kind of error costs.
pub(super) fn errors(metrics: &DetectionMetrics) -> Option<Plot> {
    const KINDS: [(&str, &str); 6] = [
        ("location", "location: overlaps too little"),
        ("class", "class: right place, wrong class"),
        ("both", "both: wrong class, little overlap"),
        ("duplicate", "duplicate: object found already"),
        ("background", "background: no object there"),
        ("missed", "missed: object without detection"),
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
    let (body, height) = bars(&kinds, &ticks(most), 220.0, None);
    (!kinds.is_empty()).then_some(Plot {
        name: "errors",
        title: "What each kind of error costs",
        caption:
            "Points of AP (IoU 0.50) that repairing only this kind of error would gain, as TIDE measures it, among \
            detections of any score."
                .to_owned(),
        size: [WIDTH, height],
        body,
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

/// A row for each bar, the ticks below; a gap before the row `gap`. Also gives the height.
fn bars(bars: &[Bar], ticks: &[(f64, String)], left: f64, gap: Option<usize>) -> (Markup, f64) {
    let most = ticks.last().map_or(1.0, |(value, _)| *value);
    let room = WIDTH - left - NUMBERS;
    let x_of = |value: f64| left + room * (value / most).clamp(0.0, 1.0);
    let top = |row: usize| row as f64 * ROW + gap.map_or(0.0, |gap| if row >= gap { ROW } else { 0.0 });
    let bottom = top(bars.len());
    let body = html! {
        @for (value, text) in ticks {
            @let x = number(x_of(*value));
            line.grid x1=(x) x2=(x) y1="0" y2=(number(bottom)) {}
            text.weak x=(x) y=(number(bottom + 18.0)) text-anchor="middle" { (text) }
        }
        @for (row, bar) in bars.iter().enumerate() {
            @let y = top(row);
            @let end = x_of(bar.value);
            @let tick = bar.tick.map(x_of);
            text x=(number(left - 8.0)) y=(number(y + 15.5)) text-anchor="end" {
                (Name { text: &bar.name, room: left - 12.0 })
            }
            rect.fill x=(number(left)) y=(number(y + 4.0)) width=(number((end - left).max(1.0)))
                height=(number(ROW - 8.0)) {}
            @if let Some(tick) = tick {
                line.tick x1=(number(tick)) x2=(number(tick)) y1=(number(y + 2.0)) y2=(number(y + ROW - 2.0)) {}
            }
            text.label x=(number(end.max(tick.unwrap_or(0.0)) + 8.0)) y=(number(y + 15.5)) { (bar.text) }
        }
        @if let Some(gap) = gap {
            text.weak x=(number(left - 8.0)) y=(number(gap as f64 * ROW + 15.5)) text-anchor="end" { "…" }
        }
        line.axis x1=(number(left)) x2=(number(left)) y1="0" y2=(number(bottom)) {}
    };
    (body, bottom + 26.0)
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn ticks_are_round_and_reach_the_most() {
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
