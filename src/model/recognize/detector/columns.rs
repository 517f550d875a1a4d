//! An output as rows of numbers, and the cells of dense detectors that its rows belong to.

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

/// The strides of usual detectors' levels, in pixels.
pub(super) const USUAL_STRIDES: [&[u32]; 7] =
    [&[8, 16, 32], &[8, 16, 32, 64], &[8, 16, 32, 64, 128], &[16, 32], &[4, 8, 16, 32], &[4, 8, 16], &[8, 16]];

/// Levels of square cells, with the same number of candidates for each cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CellGrid {
    /// In pixels of the input.
    pub strides: Vec<u32>,
    pub anchors: usize,
}

impl CellGrid {
    /// The usual grid with `rows` candidates in an input of `size`, width and height in pixels.
    pub(super) fn with_rows(rows: usize, size: [u32; 2]) -> Option<Self> {
        let grids = USUAL_STRIDES
            .into_iter()
            .flat_map(|strides| [1, 3].map(|anchors| Self { strides: strides.to_vec(), anchors }));
        grids.into_iter().find(|grid| grid.level_rows(size).iter().sum::<usize>() == rows)
    }

    /// The number of candidates on each level.
    pub(super) fn level_rows(&self, size: [u32; 2]) -> Vec<usize> {
        let cells = |stride: &u32| size.map(|side| side.div_ceil(*stride) as usize).iter().product::<usize>();
        self.strides.iter().map(|stride| cells(stride) * self.anchors).collect()
    }

    /// The center of each candidate's cell and its stride, in pixels of the input.
    pub(super) fn centers(&self, size: [u32; 2]) -> impl Iterator<Item = ([f64; 2], f64)> {
        let anchors = self.anchors;
        self.strides.iter().flat_map(move |&stride| {
            let [columns, rows] = size.map(|side| side.div_ceil(stride));
            let cells = (0..anchors).flat_map(move |_| (0..rows).flat_map(move |y| (0..columns).map(move |x| [x, y])));
            let stride = f64::from(stride);
            cells.map(move |cell| (cell.map(|at| (f64::from(at) + 0.5) * stride), stride))
        })
    }
}

/// The strides of maps with these columns and rows, in an input of `size`; `None` if they differ between the axes.
pub(super) fn strides_of(maps: impl Iterator<Item = [usize; 2]>, size: [u32; 2]) -> Option<Vec<u32>> {
    let stride = |cells: [usize; 2]| {
        let [across, down] = [0, 1].map(|axis| size[axis].div_ceil((cells[axis] as u32).max(1)));
        (across == down && across > 0).then_some(across)
    };
    maps.map(stride).collect()
}
