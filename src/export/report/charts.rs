//! Charts as SVG. Colours come from the page's style, so that they follow light and dark; each bar has its number.

use maud::{Markup, html};

use super::summary::{ClassCount, Histogram};
use crate::domain::shortened;

const WIDTH: f64 = 640.0;

/// Twenty bars from score 0 to score 1, with the threshold as a line if there is one.
pub(super) fn score_histogram(histogram: &Histogram, threshold: Option<f32>, of: &str) -> Markup {
    const HEIGHT: f64 = 180.0;
    const TOP: f64 = 18.0;
    const BOTTOM: f64 = 22.0;
    let most = histogram.bins.iter().copied().max().unwrap_or(0).max(1);
    let bar_width = WIDTH / Histogram::BINS as f64;
    let plot = HEIGHT - TOP - BOTTOM;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
            aria-label=(format!("Histogram of the scores of {of}"))
        {
            @for (bin, &count) in histogram.bins.iter().enumerate() {
                @let height = plot * count as f64 / most as f64;
                @let from = bin as f64 / Histogram::BINS as f64;
                rect.bar x=(number(bin as f64 * bar_width + 1.5)) y=(number(HEIGHT - BOTTOM - height))
                    width=(number(bar_width - 3.0)) height=(number(height)) rx="1.5" {
                    title { (count) " " (of) " with a score of " (format!("{from:.2} to {:.2}", from + 0.05)) }
                }
            }
            line.axis x1="0" x2=(WIDTH) y1=(HEIGHT - BOTTOM) y2=(HEIGHT - BOTTOM) {}
            @for tenth in 0..=5_u8 {
                @let x = WIDTH * f64::from(tenth) / 5.0;
                @let anchor = match tenth { 0 => "start", 5 => "end", _ => "middle" };
                text x=(number(x)) y=(HEIGHT - 6.0) text-anchor=(anchor) { (format!("{:.1}", f64::from(tenth) / 5.0)) }
            }
            text x="0" y="12" { "most in a bar: " (most) }
            @if let Some(threshold) = threshold {
                @let x = WIDTH * f64::from(threshold.clamp(0.0, 1.0));
                line.threshold x1=(number(x)) x2=(number(x)) y1=(TOP) y2=(HEIGHT - BOTTOM) {
                    title { "Threshold " (format!("{threshold:.2}")) }
                }
            }
        }
    }
}

/// A bar a class, the most frequent first.
pub(super) fn class_bars(classes: &[&ClassCount]) -> Markup {
    const ROW: f64 = 24.0;
    const LABELS: f64 = 190.0;
    const COUNTS: f64 = 60.0;
    let most = classes.iter().map(|class| class.boxes).max().unwrap_or(0).max(1);
    let height = ROW * classes.len() as f64;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label="The most frequent classes" {
            @for (row, class) in classes.iter().enumerate() {
                @let y = row as f64 * ROW;
                @let width = (WIDTH - LABELS - COUNTS) * class.boxes as f64 / most as f64;
                text x=(LABELS - 8.0) y=(number(y + 16.0)) text-anchor="end" {
                    (shortened(&class.label, 25)) title { (class.label) }
                }
                rect.bar x=(LABELS) y=(number(y + 4.0)) width=(number(width.max(1.0))) height=(ROW - 8.0) rx="1.5" {
                    title { (class.label) ": " (class.boxes) }
                }
                text x=(number(LABELS + width.max(1.0) + 6.0)) y=(number(y + 16.0)) { (class.boxes) }
            }
        }
    }
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}
