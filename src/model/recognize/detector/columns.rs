//! An output as rows of numbers.

use super::grids::CellGrid;
use crate::model::recognize::probe::Prober;
use crate::model::recognize::signature::Port;

/// How far scores may be outside 0 to 1, because 16-bit floats are rounded.
const ROUNDING: f64 = 1e-3;

/// The values of one column for the test images.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub min: f64,
    pub max: f64,
    pub is_whole: bool,
}

impl Column {
    const EMPTY: Self = Self { min: f64::INFINITY, max: f64::NEG_INFINITY, is_whole: true };

    fn add(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.is_whole &= value.fract() == 0.0;
    }

    pub(super) fn is_one(&self) -> bool {
        self.min == 1.0 && self.max == 1.0
    }

    /// Whether all numbers are from 0 to 1.
    pub(super) fn is_share(&self) -> bool {
        self.min >= -ROUNDING && self.max <= 1.0 + ROUNDING
    }
}

/// An output with two or three dimensions as rows and columns, over all runs.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub rows: usize,
    pub columns: Vec<Column>,
    pub candidates_last: bool,
    /// Whether every row is nonnegative and sums to 1.
    pub has_rows_of_probabilities: bool,
    /// The first four numbers of each row in the first run.
    boxes: Vec<[f64; 4]>,
    has_values: bool,
}

impl Table {
    /// `None` if the number of dimensions or columns differs between runs, or any value is NaN.
    pub(super) fn from_port(port: &Port, prober: &Prober<'_, '_>, candidates_last: bool) -> Option<Self> {
        let mut table: Option<Self> = None;
        for tensor in prober.values_of(&port.name) {
            let (rows, width) = match tensor.shape[..] {
                [rows, width] | [1, rows, width] | [1, 1, rows, width] if !candidates_last => (rows, width),
                [1, width, rows] if candidates_last => (rows, width),
                _ => return None,
            };
            let values = tensor.to_f64();
            if values.iter().any(|value| !value.is_finite()) {
                return None;
            }
            let at = |row: usize, column: usize| {
                if candidates_last { values[column * rows + row] } else { values[row * width + column] }
            };
            let first = table.is_none();
            let table = table.get_or_insert_with(|| Self {
                rows: 0,
                columns: vec![Column::EMPTY; width],
                candidates_last,
                has_rows_of_probabilities: true,
                boxes: Vec::new(),
                has_values: false,
            });
            if table.columns.len() != width {
                return None;
            }
            table.rows = table.rows.max(rows);
            for row in 0..rows {
                // Graphs of fixed size pad with zeros or -1; SSD's rows end with an image of -1.
                let is_all = |filler: f64, first: usize| (first..width).all(|column| at(row, column) == filler);
                if is_all(0.0, 0) || is_all(-1.0, 0) || (at(row, 0) == -1.0 && is_all(0.0, 1)) {
                    continue;
                }
                table.has_values = true;
                (0..width).for_each(|column| table.columns[column].add(at(row, column)));
                let sum: f64 = (0..width).map(|column| at(row, column)).sum();
                table.has_rows_of_probabilities &= (sum - 1.0).abs() < ROUNDING;
            }
            if first && width >= 4 {
                table.boxes = (0..rows).map(|row| [0, 1, 2, 3].map(|column| at(row, column))).collect();
            }
        }
        let mut table = table?;
        let is_negative = |column: &Column| column.min < 0.0;
        table.has_rows_of_probabilities &= table.has_values && !table.columns.iter().any(is_negative);
        Some(table)
    }

    /// Whether every run returned only zeros.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_values
    }

    /// Whether boxes are near the cells of their rows, as center and size or as corners, in pixels or as fractions of
    /// `size`: width and height of the input, in pixels.
    pub(super) fn is_decoded(&self, grid: &CellGrid, size: [u32; 2]) -> bool {
        let center = |[x, y, ..]: [f64; 4]| [x, y];
        let middle = |[x1, y1, x2, y2]: [f64; 4]| [f64::midpoint(x1, x2), f64::midpoint(y1, y2)];
        let positions: [&dyn Fn([f64; 4]) -> [f64; 2]; 2] = [&center, &middle];
        let mut descending = grid.clone();
        descending.strides.reverse();
        positions.iter().any(|position| {
            let scales = [[1.0; 2], size.map(f64::from)];
            scales.iter().any(|scale| {
                let are_near = |grid: &CellGrid| {
                    self.are_near(grid, size, |edges| {
                        let [x, y] = position(edges);
                        [x * scale[0], y * scale[1]]
                    })
                };
                are_near(grid) || are_near(&descending)
            })
        })
    }

    fn are_near(&self, grid: &CellGrid, size: [u32; 2], position: impl Fn([f64; 4]) -> [f64; 2]) -> bool {
        /// How far a box's center may be from its cell, in cells. Networks return up to one or two.
        const MAX_SHIFT: f64 = 4.0;
        let near = self.boxes.iter().zip(grid.centers(size)).filter(|(edges, (center, stride))| {
            let [x, y] = position(**edges);
            (x - center[0]).abs() < MAX_SHIFT * stride && (y - center[1]).abs() < MAX_SHIFT * stride
        });
        near.count() * 10 >= self.boxes.len() * 9
    }

    /// Whether the first two numbers of each row can be a position relative to a cell, in cells.
    pub(super) fn has_offsets(&self) -> bool {
        self.columns[..2].iter().all(|column| column.min > -8.0 && column.max < 8.0)
    }

    /// Whether the second pair of a row's numbers is to the right of and below the first.
    pub(super) fn is_corners(&self) -> bool {
        let ordered = self.boxes.iter().filter(|[x1, y1, x2, y2]| x2 >= x1 && y2 >= y1).count();
        ordered * 50 >= self.boxes.len() * 49
    }
}
