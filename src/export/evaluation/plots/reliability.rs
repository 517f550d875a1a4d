//! The reliability diagram of a classifier.

use maud::html;

use super::axes::{Axis, Entry, Spot, line_sample, path, plane, plane_height, x_of, y_of};
use super::plot::{Plot, WIDTH, number, percent};
use crate::domain::counted;
use crate::evaluation::ClassificationMetrics;

const HISTOGRAM: f64 = 70.0;

/// The share of right images by the score of the top class, and how many images have such a score.
pub(super) fn plot(metrics: &ClassificationMetrics) -> Option<Plot> {
    let ece = metrics.ece?;
    let bins = &metrics.reliability;
    let most = bins.iter().map(|bin| bin.images).max().unwrap_or(0).max(1) as f64;
    let legend = [
        Entry {
            sample: html! { rect.fill width="26" height="12" y="-6" fill-opacity="0.45" {} },
            name: "right".to_owned(),
        },
        Entry { sample: Spot::Circle.sample(), name: "mean score".to_owned() },
        Entry { sample: line_sample("at"), name: "calibrated".to_owned() },
    ];
    let content = html! {
        @for bin in bins {
            @if let Some(accuracy) = bin.accuracy {
                @let (x, y) = (x_of(bin.from), y_of(accuracy));
                rect.fill x=(number(x + 1.0)) y=(number(y)) width=(number(x_of(bin.to) - x - 2.0))
                    height=(number(y_of(0.0) - y)) fill-opacity="0.45" {
                    title {
                        (format!("score {:.2} to {:.2}: {} right of ", bin.from, bin.to, percent(bin.accuracy)))
                        (counted(bin.images, "image", "images"))
                    }
                }
            }
        }
        (path([[0.0, 0.0], [1.0, 1.0]].into_iter(), "at"))
        @for bin in bins {
            @if let (Some(score), Some(accuracy)) = (bin.mean_score, bin.accuracy) {
                (Spot::Circle.on_plane([score, accuracy]))
            }
        }
    };
    let top = plane_height(legend.len()) + 8.0;
    let bottom = top + HISTOGRAM;
    let body = html! {
        (plane(Axis::Score("Score of the top class"), Axis::Share("Right"), &content, &legend))
        @for bin in bins {
            @let height = HISTOGRAM * bin.images as f64 / most;
            rect.fill x=(number(x_of(bin.from) + 1.0)) y=(number(bottom - height))
                width=(number(x_of(bin.to) - x_of(bin.from) - 2.0)) height=(number(height)) {
                title { (counted(bin.images, "image", "images")) }
            }
        }
        line.axis x1=(number(x_of(0.0))) x2=(number(x_of(1.0))) y1=(number(bottom)) y2=(number(bottom)) {}
        text.weak x=(number(x_of(0.0) - 8.0)) y=(number(top + 10.0)) text-anchor="end" { (most) }
        text.weak x=(number(x_of(0.0) - 8.0)) y=(number(bottom)) text-anchor="end" { "0" }
        text x=(number(x_of(1.0) + 20.0)) y=(number(top + 10.0)) { "images" }
    };
    Some(Plot {
        name: "reliability",
        title: "Reliability diagram",
        caption: format!(
            "Expected calibration error: {}, in {} bins of equal width. Below the dashed line the scores are too high, \
            above it too low.",
            percent(Some(ece)),
            metrics.ece_bins
        ),
        size: [WIDTH, bottom + 6.0],
        body,
    })
}
