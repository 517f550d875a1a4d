//! The plane for lines and bars: axes with ticks, the marks between them, a legend.

use super::plot::{Anchor, Plot, Shapes, Spot, WIDTH};

/// The usual height and the width of a plane.
pub(super) const SIDE: f64 = 400.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 8.0;
const BELOW: f64 = 48.0;
const LEGEND: f64 = LEFT + SIDE + 20.0;
const LEGEND_ROW: f64 = 22.0;
const SAMPLE: f64 = 26.0;

/// An axis; its ends are 0 and 1 on the plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// A measured fraction, in percent.
    Share(&'static str),
    /// A score.
    Score(&'static str),
    /// A count up to this number.
    Count(&'static str, u64),
}

/// What is drawn between the axes; points are `0.0..=1.0` each.
pub(crate) enum Mark {
    Line(&'static str, Vec<[f64; 2]>),
    Spot(Spot, [f64; 2]),
    Bar { from: f64, to: f64, height: f64, title: String },
}

pub(crate) struct Plane {
    height: f64,
    across: Axis,
    up: Axis,
    pub marks: Vec<Mark>,
    /// A mark that fills a square, and its name.
    pub legend: Vec<(Mark, String)>,
}

impl Axis {
    fn name(self) -> &'static str {
        match self {
            Self::Share(name) | Self::Score(name) | Self::Count(name, _) => name,
        }
    }

    fn tick(self, share: f64) -> String {
        match self {
            Self::Share(_) if share == 1.0 => "100%".to_owned(),
            Self::Share(_) => format!("{:.0}", share * 100.0),
            Self::Score(_) => format!("{share:.1}"),
            Self::Count(_, most) if share == 1.0 => most.to_string(),
            Self::Count(..) if share == 0.0 => "0".to_owned(),
            Self::Count(..) => String::new(),
        }
    }
}

impl Mark {
    /// Draws it into an area: left, bottom, width and height.
    fn draw(&self, body: &mut Shapes, [left, bottom, width, height]: [f64; 4]) {
        let at = |[across, up]: [f64; 2]| [left + width * across.clamp(0.0, 1.0), bottom - height * up.clamp(0.0, 1.0)];
        match self {
            Self::Line(style, points) => body.line(style, points.iter().copied().map(at)),
            Self::Spot(spot, point) => body.spot(*spot, at(*point)),
            Self::Bar { from, to, height, title } => {
                let ([left, top], [right, bottom]) = (at([*from, *height]), at([*to, 0.0]));
                body.rect("fill", [left + 1.0, top, right - left - 2.0, bottom - top], 0.45, title);
            }
        }
    }
}

impl Plane {
    pub(crate) fn new(height: f64, across: Axis, up: Axis) -> Self {
        Self { height, across, up, marks: Vec::new(), legend: Vec::new() }
    }

    pub(crate) fn line(&mut self, style: &'static str, points: Vec<[f64; 2]>, name: String) {
        self.marks.push(Mark::Line(style, points));
        self.legend.push((Mark::Line(style, vec![[0.0, 0.5], [1.0, 0.5]]), name));
    }

    pub(crate) fn spot(&mut self, spot: Spot, at: [f64; 2], name: String) {
        self.marks.push(Mark::Spot(spot, at));
        self.legend.push((Mark::Spot(spot, [0.5; 2]), name));
    }

    pub(crate) fn plot(&self, name: &'static str, title: &'static str, caption: String) -> Plot {
        let mut plot = Plot { name, title, caption, size: [WIDTH, 0.0], body: Shapes::default() };
        self.draw_below(&mut plot);
        plot
    }

    /// Adds the plane below the existing content of the plot.
    pub(crate) fn draw_below(&self, plot: &mut Plot) {
        let top = plot.size[1] + TOP;
        let (bottom, right) = (top + self.height, LEFT + SIDE);
        let body = &mut plot.body;
        for share in fifths() {
            let (x, y) = (LEFT + SIDE * share, bottom - self.height * share);
            body.line("grid", [[x, top], [x, bottom]]);
            body.line("grid", [[LEFT, y], [right, y]]);
            body.text("weak", Anchor::Middle, [x, bottom + 18.0], &self.across.tick(share));
            body.text("weak", Anchor::End, [LEFT - 8.0, y + 4.5], &self.up.tick(share));
        }
        body.line("axis", [[LEFT, top], [LEFT, bottom], [right, bottom]]);
        body.text("", Anchor::Middle, [LEFT + SIDE / 2.0, bottom + 40.0], self.across.name());
        body.name(Anchor::Middle, [14.0, top + self.height / 2.0], -90, self.up.name(), self.height);
        for mark in &self.marks {
            mark.draw(body, [LEFT, bottom, SIDE, self.height]);
        }
        for (row, (sample, name)) in self.legend.iter().enumerate() {
            let y = top + 8.0 + row as f64 * LEGEND_ROW;
            sample.draw(body, [LEGEND, y + 6.0, SAMPLE, 12.0]);
            let left = LEGEND + SAMPLE + 8.0;
            body.name(Anchor::Start, [left, y + 4.5], 0, name, WIDTH - left);
        }
        plot.size[1] = (bottom + BELOW).max(top + self.legend.len() as f64 * LEGEND_ROW);
    }
}

pub(super) fn fifths() -> impl Iterator<Item = f64> {
    (0..=5).map(|fifth| f64::from(fifth) / 5.0)
}
