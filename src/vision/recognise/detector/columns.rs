//! An output seen as rows of numbers.

use super::grids::CellGrid;
use crate::vision::recognise::probe::Prober;
use crate::vision::recognise::signature::Port;

/// Scores may be this far outside of 0 to 1: 16-bit floats round.
const ROUNDING: f64 = 1e-3;

/// What the test images gave in one column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) is_whole: bool,
}

impl Column {
    const EMPTY: Self = Self { min: f64::INFINITY, max: f64::NEG_INFINITY, is_whole: true };

    fn add(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.is_whole &= value.fract() == 0.0;
    }

    /// Whether all numbers are from 0 to 1.
    pub(super) fn is_share(&self) -> bool {
        self.min >= -ROUNDING && self.max <= 1.0 + ROUNDING
    }
}

/// An output of two or three dimensions as rows and columns, over all runs.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) rows: usize,
    pub(super) columns: Vec<Column>,
    pub(super) candidates_last: bool,
    /// Whether every row is not negative and sums to 1.
    pub(super) has_rows_of_probabilities: bool,
    /// The first four numbers of each row of the first run.
    boxes: Vec<[f64; 4]>,
    has_values: bool,
}

impl Table {
    /// `None` if a run gave another number of dimensions or of columns, or something that is not a number.
    pub(super) fn of(port: &Port, prober: &Prober<'_, '_>, candidates_last: bool) -> Option<Self> {
        let mut table: Option<Self> = None;
        for tensor in prober.values_of(&port.name) {
            let (rows, width) = match tensor.shape[..] {
                [rows, width] | [1, rows, width] if !candidates_last => (rows, width),
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
                // Graphs of fixed size fill up with zeros.
                if (0..width).all(|column| at(row, column) == 0.0) {
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

    /// Whether no run gave a row other than zeros.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_values
    }

    /// Whether the first two of each row's numbers are a place near the row's cell. `size` are width and height of the
    /// input, in pixels.
    pub(super) fn is_decoded(&self, grid: &CellGrid, size: [u32; 2]) -> bool {
        /// How far a box's centre may be from its cell, in cells. Networks say up to one or two.
        const MAX_SHIFT: f64 = 4.0;
        let near = self.boxes.iter().zip(grid.centres(size)).filter(|([x, y, ..], (centre, stride))| {
            (x - centre[0]).abs() < MAX_SHIFT * stride && (y - centre[1]).abs() < MAX_SHIFT * stride
        });
        near.count() * 10 >= self.boxes.len() * 9
    }

    /// Whether the second pair of a row's numbers is right of and below the first.
    pub(super) fn is_corners(&self) -> bool {
        let ordered = self.boxes.iter().filter(|[x1, y1, x2, y2]| x2 >= x1 && y2 >= y1).count();
        ordered * 50 >= self.boxes.len() * 49
    }
}
