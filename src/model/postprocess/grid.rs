//! Decodes boxes that are relative to the cells of a grid.

use super::sigmoid;
use crate::domain::{CellPoint, Grid, GridCoding};

/// The cells of every level, for inputs of one size.
pub(super) struct Cells {
    levels: Vec<Level>,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    first_row: usize,
    stride: f64,
    columns: usize,
    cells: usize,
    anchors: usize,
}

impl Level {
    /// The row after its last one.
    fn end(&self) -> usize {
        self.first_row.saturating_add(self.cells.saturating_mul(self.anchors))
    }
}

impl Cells {
    /// `canvas_size` are width and height of the input, in pixels.
    pub(super) fn new(grid: &Grid, canvas_size: [u32; 2]) -> Self {
        let anchors = match &grid.coding {
            GridCoding::Anchors { sizes } | GridCoding::Priors { sizes } => sizes.len() / grid.strides.len().max(1),
            GridCoding::Distances { anchors, .. } => *anchors as usize,
            GridCoding::Offsets {} | GridCoding::DistanceBins { .. } => 1,
        };
        let mut first_row = 0;
        let levels = grid.strides.iter().map(|&stride| {
            let [columns, rows] = canvas_size.map(|side| side.div_ceil(stride.max(1)) as usize);
            let level =
                Level { first_row, stride: f64::from(stride), columns, cells: columns.saturating_mul(rows), anchors };
            first_row = level.end();
            level
        });
        Self { levels: levels.collect() }
    }

    /// The number of candidates on all levels.
    pub(super) fn rows(&self) -> usize {
        self.levels.last().map_or(0, Level::end)
    }

    /// The box of a row, which must be below [`Self::rows`], in pixels of the input: as center and size, or as corners
    /// for distances. `numbers` returns those of the graph.
    pub(super) fn decoded(&self, grid: &Grid, row: usize, numbers: impl Fn(usize) -> f64) -> [f64; 4] {
        let number = self.levels.partition_point(|level| level.first_row <= row).saturating_sub(1);
        let level = self.levels[number];
        let place = row - level.first_row;
        let (anchor, cell) = match &grid.coding {
            GridCoding::Distances { .. } | GridCoding::Priors { .. } => {
                (place % level.anchors.max(1), place / level.anchors.max(1))
            }
            _ => (place / level.cells.max(1), place % level.cells.max(1)),
        };
        let cell = [(cell % level.columns) as f64, (cell / level.columns) as f64];
        let stride = level.stride;
        match &grid.coding {
            GridCoding::Offsets {} => [
                (numbers(0) + cell[0]) * stride,
                (numbers(1) + cell[1]) * stride,
                numbers(2).exp() * stride,
                numbers(3).exp() * stride,
            ],
            GridCoding::Anchors { sizes } => {
                let [width, height] = sizes[number * level.anchors + anchor].map(f64::from);
                let twice = |at: usize| 2.0 * sigmoid(numbers(at));
                [
                    (twice(0) - 0.5 + cell[0]) * stride,
                    (twice(1) - 0.5 + cell[1]) * stride,
                    twice(2).powi(2) * width,
                    twice(3).powi(2) * height,
                ]
            }
            GridCoding::Priors { sizes } => {
                let prior = sizes[number * level.anchors + anchor].map(f64::from);
                let center = |axis: usize| (cell[axis] + 0.5) * stride + 0.1 * numbers(axis) * prior[axis];
                let size = |axis: usize| prior[axis] * (0.2 * numbers(2 + axis)).exp();
                [center(0), center(1), size(0), size(1)]
            }
            GridCoding::Distances { point, .. } => {
                let [x, y] = cell.map(|cell| (cell + shift(*point)) * stride);
                let distance = |side: usize| numbers(side) * stride;
                [x - distance(0), y - distance(1), x + distance(2), y + distance(3)]
            }
            GridCoding::DistanceBins { bins, point } => {
                let bins = *bins as usize;
                let distance = |side: usize| {
                    let logits: Vec<f64> = (0..bins).map(|bin| numbers(side * bins + bin)).collect();
                    let shares = super::softmax(&logits);
                    shares.iter().enumerate().map(|(bin, share)| bin as f64 * share).sum::<f64>() * stride
                };
                let [x, y] = cell.map(|cell| (cell + shift(*point)) * stride);
                [x - distance(0), y - distance(1), x + distance(2), y + distance(3)]
            }
        }
    }
}

/// The position of a point in its cell, in cells.
fn shift(point: CellPoint) -> f64 {
    match point {
        CellPoint::Center => 0.5,
        CellPoint::TopLeft => 0.0,
    }
}
