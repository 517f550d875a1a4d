//! The plane that lines are drawn on: axes with ticks, a legend, paths.

use maud::{Markup, html};

use super::plot::{Name, WIDTH, number};

/// Width and height of the plane.
pub(super) const SIDE: f64 = 400.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 8.0;
const BELOW: f64 = 48.0;
const LEGEND: f64 = LEFT + SIDE + 20.0;
const LEGEND_ROW: f64 = 22.0;
const SAMPLE: f64 = 26.0;

/// What an axis from 0 to 1 shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    /// A measured share, in percent.
    Share(&'static str),
    /// A score.
    Score(&'static str),
}

impl Axis {
    fn name(self) -> &'static str {
        match self {
            Self::Share(name) | Self::Score(name) => name,
        }
    }

    fn tick(self, fifth: u8) -> String {
        match self {
            Self::Share(_) if fifth == 5 => "100 %".to_owned(),
            Self::Share(_) => (fifth * 20).to_string(),
            Self::Score(_) => format!("{:.1}", f64::from(fifth) / 5.0),
        }
    }
}

/// A line of the legend: what is drawn for it, and its name.
pub(super) struct Entry {
    pub(super) sample: Markup,
    pub(super) name: String,
}

pub(super) fn x_of(share: f64) -> f64 {
    LEFT + SIDE * share.clamp(0.0, 1.0)
}

pub(super) fn y_of(share: f64) -> f64 {
    TOP + SIDE * (1.0 - share.clamp(0.0, 1.0))
}

/// The height of a plane with its axes.
pub(super) fn plane_height(entries: usize) -> f64 {
    (TOP + SIDE + BELOW).max(TOP + entries as f64 * LEGEND_ROW)
}

/// Grid, axes, what is drawn between them, and the legend beside them.
pub(super) fn plane(across: Axis, up: Axis, content: &Markup, legend: &[Entry]) -> Markup {
    let bottom = TOP + SIDE;
    html! {
        @for fifth in 0..=5_u8 {
            @let (x, y) = (number(x_of(f64::from(fifth) / 5.0)), number(y_of(f64::from(fifth) / 5.0)));
            line.grid x1=(x) x2=(x) y1=(number(TOP)) y2=(number(bottom)) {}
            line.grid x1=(number(LEFT)) x2=(number(LEFT + SIDE)) y1=(y) y2=(y) {}
            text.weak x=(x) y=(number(bottom + 18.0)) text-anchor="middle" { (across.tick(fifth)) }
            text.weak x=(number(LEFT - 8.0)) y=(y) dy="4.5" text-anchor="end" { (up.tick(fifth)) }
        }
        line.axis x1=(number(LEFT)) x2=(number(LEFT + SIDE)) y1=(number(bottom)) y2=(number(bottom)) {}
        line.axis x1=(number(LEFT)) x2=(number(LEFT)) y1=(number(TOP)) y2=(number(bottom)) {}
        text x=(number(LEFT + SIDE / 2.0)) y=(number(bottom + 40.0)) text-anchor="middle" { (across.name()) }
        text transform=(format!("translate(14 {}) rotate(-90)", number(TOP + SIDE / 2.0))) text-anchor="middle" {
            (up.name())
        }
        (content)
        @for (row, entry) in legend.iter().enumerate() {
            g transform=(format!("translate({} {})", number(LEGEND), number(TOP + 8.0 + row as f64 * LEGEND_ROW))) {
                (entry.sample)
                text x=(SAMPLE + 8.0) dy="4.5" {
                    (Name { text: &entry.name, room: WIDTH - LEGEND - SAMPLE - 8.0 })
                }
            }
        }
    }
}

/// Straight lines between points of the plane.
pub(super) fn path(points: impl Iterator<Item = [f64; 2]>, class: &str) -> Markup {
    let mut data = String::new();
    let mut last = String::new();
    for [across, up] in points {
        let place = format!("{} {}", number(x_of(across)), number(y_of(up)));
        if place != last {
            data.push(if data.is_empty() { 'M' } else { 'L' });
            data.push_str(&place);
            last = place;
        }
    }
    html! { path.line.(class) d=(data) {} }
}

/// A line as in the legend.
pub(super) fn line_sample(class: &str) -> Markup {
    html! { path.line.(class) d=(format!("M0 0H{SAMPLE}")) {} }
}

/// A mark on the plane, or in the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    Circle,
    Diamond,
}

impl Spot {
    fn at(self, x: f64, y: f64) -> Markup {
        let (x, y) = (number(x), number(y));
        html! {
            @match self {
                Self::Circle => { circle.spot cx=(x) cy=(y) r="5.5" {} }
                Self::Diamond => { path.spot d=(format!("M{x} {y}m0 -7.5l7.5 7.5l-7.5 7.5l-7.5 -7.5z")) {} }
            }
        }
    }

    pub(super) fn on_plane(self, [across, up]: [f64; 2]) -> Markup {
        self.at(x_of(across), y_of(up))
    }

    pub(super) fn sample(self) -> Markup {
        self.at(SAMPLE / 2.0, 0.0)
    }
}
