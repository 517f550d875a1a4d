//! The cells of dense detectors.

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
