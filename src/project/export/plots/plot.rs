//! A plot as SVG: a separate file, or part of a page; and as PNG.

use std::sync::Arc;

use maud::{Markup, PreEscaped, Render, html};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};
use strum::IntoStaticStr;

use super::super::drawing::TextSize;

/// The page's colors on paper: those of `report/style.css` in the light theme.
const ON_PAPER: [(&str, &str); 9] = [
    ("var(--card)", "#fff"),
    ("var(--text)", "#1b1e25"),
    ("var(--weak)", "#5a6170"),
    ("var(--line)", "#dfe2e8"),
    ("var(--bar)", "#3867c8"),
    ("var(--mark)", "#b3411e"),
    ("var(--accept)", "#1d7a3e"),
    ("var(--wrong)", "#7a3fb0"),
    ("var(--unsure)", "#8a5a00"),
];

pub(super) const WIDTH: f64 = 640.0;
const TEXT: f32 = 13.0;
/// Around a plot in a separate file.
const MARGIN: f64 = 20.0;
const TITLE_HEIGHT: f64 = 40.0;
const LINE_HEIGHT: f64 = 18.0;

pub(crate) struct Plot {
    /// The file name without an extension.
    pub name: &'static str,
    pub title: &'static str,
    /// What it shows; whole sentences.
    pub caption: String,
    /// Of the body, in pixels.
    pub size: [f64; 2],
    pub body: Shapes,
}

impl Plot {
    /// The style rules of plots. Colors are those of the surrounding page.
    pub(crate) const STYLE: &str = include_str!("plot.css");

    /// For a page with [`Self::STYLE`].
    pub(crate) fn figure(&self) -> Markup {
        let [width, height] = self.size.map(number);
        html! {
            figure {
                h2 { (self.title) }
                svg.plot viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(self.title) { (self.body) }
                @if !self.caption.is_empty() { figcaption { (self.caption) } }
            }
        }
    }

    /// Width and height of the file, in pixels.
    pub(crate) fn size(&self) -> [f64; 2] {
        let [width, height] = self.size;
        let caption = self.caption_lines().len() as f64 * LINE_HEIGHT;
        [width + 2.0 * MARGIN, height + 2.0 * MARGIN + TITLE_HEIGHT + caption + LINE_HEIGHT / 2.0].map(f64::ceil)
    }

    /// The whole file.
    pub(crate) fn svg(&self) -> String {
        let [width, height] = self.size().map(number);
        let style = ON_PAPER.iter().fold(Self::STYLE.to_owned(), |style, (name, color)| style.replace(name, color));
        let top = MARGIN + TITLE_HEIGHT;
        let caption_top = top + self.size[1] + 1.5 * LINE_HEIGHT;
        let svg = html! {
            svg.plot xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
                viewBox=(format!("0 0 {width} {height}")) {
                title { (self.title) }
                style { (PreEscaped(style)) }
                rect.paper width=(width) height=(height) {}
                text.title x=(MARGIN) y=(MARGIN + 16.0) { (self.title) }
                g transform=(format!("translate({MARGIN} {top})")) { (self.body) }
                @for (row, line) in self.caption_lines().iter().enumerate() {
                    text.weak x=(MARGIN) y=(number(caption_top + row as f64 * LINE_HEIGHT)) { (line) }
                }
            }
        };
        svg.into_string()
    }

    fn caption_lines(&self) -> Vec<String> {
        let room = self.size[0] as f32;
        let mut lines: Vec<String> = Vec::new();
        for word in self.caption.split_whitespace() {
            let longer = lines.last().map(|line| format!("{line} {word}"));
            match longer.filter(|longer| TextSize::from_em(TEXT).width_of(longer) <= room) {
                Some(longer) => *lines.last_mut().expect("a longer line is made of one") = longer,
                None => lines.push(word.to_owned()),
            }
        }
        lines
    }
}

/// The elements of a plot, in pixels. Styles are classes in [`Plot::STYLE`].
#[derive(Default)]
pub(crate) struct Shapes(String);

/// Which part of a text is at its position.
#[derive(Debug, Clone, Copy, IntoStaticStr)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A mark at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    Circle,
    Diamond,
}

impl Render for Shapes {
    fn render(&self) -> Markup {
        PreEscaped(self.0.clone())
    }
}

impl Shapes {
    fn add(&mut self, shape: Markup) {
        self.0.push_str(&shape.into_string());
    }

    pub(crate) fn line(&mut self, style: &str, points: impl IntoIterator<Item = [f64; 2]>) {
        let mut points: Vec<String> = points.into_iter().map(|point| point.map(number).join(" ")).collect();
        points.dedup();
        self.add(html! { path.(style) d=(format!("M{}", points.join("L"))) {} });
    }

    /// A filled rectangle: left, top, width and height. `title` is its tooltip.
    pub(crate) fn rect(&mut self, style: &str, rect: [f64; 4], opacity: f64, title: &str) {
        let [x, y, width, height] = rect.map(number);
        self.add(html! {
            rect.(style) x=(x) y=(y) width=(width) height=(height) fill-opacity=(format!("{opacity:.2}")) {
                @if !title.is_empty() { title { (printable(title)) } }
            }
        });
    }

    pub(crate) fn spot(&mut self, spot: Spot, at: [f64; 2]) {
        let [x, y] = at.map(number);
        self.add(html! {
            @match spot {
                Spot::Circle => { circle.spot cx=(x) cy=(y) r="5.5" {} }
                Spot::Diamond => { path.spot d=(format!("M{x} {y}m0 -7.5l7.5 7.5l-7.5 7.5l-7.5 -7.5z")) {} }
            }
        });
    }

    pub(crate) fn text(&mut self, style: &str, anchor: Anchor, at: [f64; 2], text: &str) {
        self.add_text(style, anchor, at, 0, (text, f64::INFINITY));
    }

    /// Text from outside, shortened to `room` pixels; the tooltip has the whole text.
    pub(crate) fn name(&mut self, anchor: Anchor, at: [f64; 2], angle: i32, text: &str, room: f64) {
        self.add_text("", anchor, at, angle, (text, room));
    }

    fn add_text(&mut self, style: &str, anchor: Anchor, at: [f64; 2], angle: i32, (text, room): (&str, f64)) {
        let whole = printable(text);
        let fitted = TextSize::from_em(TEXT).fitted(&whole, room as f32).unwrap_or_default();
        let [x, y] = at.map(number);
        self.add(html! {
            text.(style) transform=(format!("translate({x} {y}) rotate({angle})")) text-anchor=(anchor.into_str()) {
                (fitted)
                @if fitted != whole { title { (whole) } }
            }
        });
    }
}

/// Pixels of the PNG per pixel of the SVG.
const SCALE: f32 = 2.0;

/// Plots as PNG: the SVG rendered by `resvg`, with only the window's font, so that a plot looks the same everywhere.
pub(crate) struct PlotImages {
    options: Options<'static>,
}

impl Default for PlotImages {
    fn default() -> Self {
        let mut fonts = Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        let family = fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone()));
        let family = family.unwrap_or_default();
        fonts.set_sans_serif_family(family.clone());
        Self { options: Options { fontdb: Arc::new(fonts), font_family: family, ..Options::default() } }
    }
}

impl PlotImages {
    /// A PNG with two pixels per SVG pixel in each direction.
    ///
    /// # Errors
    /// The SVG cannot be rendered; the text says why.
    pub(crate) fn png(&self, svg: &str) -> Result<Vec<u8>, String> {
        let tree = Tree::from_str(svg, &self.options).map_err(|error| error.to_string())?;
        let side = |length: f32| (length * SCALE).ceil() as u32;
        let (width, height) = (side(tree.size().width()), side(tree.size().height()));
        let mut pixels = Pixmap::new(width, height).ok_or_else(|| format!("{width} × {height} pixels"))?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}

/// The width of a text in pixels.
pub(super) fn width_of(text: &str) -> f64 {
    TextSize::from_em(TEXT).width_of(text).into()
}

fn printable(text: &str) -> String {
    let is_forbidden = |letter: char| letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|letter| if is_forbidden(letter) { ' ' } else { letter }).collect()
}

fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// `37.2 %`; `–` if there is nothing to measure.
pub(crate) fn percent(number: Option<f64>) -> String {
    number.map_or_else(|| "–".to_owned(), |number| format!("{:.1}%", number * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plot_colors_match_the_light_theme() {
        let page = include_str!("../report/style.css");
        let light = &page[..page.find("@media").unwrap()];
        for (name, color) in ON_PAPER {
            let name = name.trim_start_matches("var(").trim_end_matches(')');
            assert!(light.contains(&format!("{name}: {color};")), "{name}");
        }
        let svg = Plot { name: "", title: "", caption: String::new(), size: [1.0; 2], body: Shapes::default() }.svg();
        assert!(!svg.contains("var("), "{svg}");
    }

    #[test]
    fn long_caption_wraps_without_control_characters() {
        let caption = "word ".repeat(60);
        let plot = Plot { name: "", title: "", caption, size: [200.0, 10.0], body: Shapes::default() };
        assert!(plot.caption_lines().len() > 5);
        assert_eq!(printable("a\u{0}b\u{ffff}"), "a b ");
    }
}
