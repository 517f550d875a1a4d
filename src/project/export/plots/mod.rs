//! Plots as SVG and PNG. Colors are never the only distinction: lines have different dashes, cells and bars have numbers.

mod bars;
mod curves;
mod matrix;
mod plane;
mod plot;

pub(super) use self::bars::{Bar, bars};
pub(super) use self::curves::of_two as curves_of_two;
pub(super) use self::plane::{Axis, Mark, Plane};
pub(super) use self::plot::{Plot, PlotImages, percent};
use crate::evaluation::Metrics;

/// All plots with something to draw.
pub(super) fn plots(metrics: &Metrics) -> Vec<Plot> {
    let classes = metrics.classes();
    match metrics {
        Metrics::Detection { metrics, .. } => {
            let mut plots = curves::plots(metrics);
            plots.extend(matrix::plot(&classes, &metrics.confusion, &matrix::WORDS_OF_DETECTION));
            plots.extend(bars::errors(metrics));
            plots.extend(bars::ap(metrics));
            plots
        }
        Metrics::Classification { metrics, .. } => {
            let matrix = matrix::plot(&classes, &metrics.confusion, &matrix::WORDS_OF_CLASSIFICATION);
            let curves = [curves::reliability(metrics), curves::coverage(metrics)];
            [matrix, bars::f1(metrics)].into_iter().chain(curves).flatten().collect()
        }
    }
}
