//! From a detector's outputs to boxes, following the description in its card.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use super::super::{PredictError, Prepared, Tensor, TensorData};
use super::grid::Cells;
use super::{Call, failed, output, sigmoid};
use crate::domain::{
    Activation, Background, BoundingBox, BoxFormat, BoxSpace, Columns, Detection, DetectionOutput, Grid, GridCoding,
    LabelChoice, LabelSet, RunnerUp,
};

/// No real detector has more candidates; more would only fill the memory.
const MAX_ROWS: usize = 1_000_000;
/// Maximum number of boxes kept per image: as many as Ultralytics' own code passes to its suppression.
const MAX_KEPT: usize = 30_000;
/// The highest score, with room for the rounding of 16-bit floats.
const MAX_SCORE: f32 = 1.001;

/// Every box of image `index` in the call with a score of at least `min_score`, best first; ties keep the graph's
/// order. A score of 0 is padding, whatever `min_score` is.
pub(super) fn detect(
    convention: &DetectionOutput,
    labels: &LabelSet,
    min_score: f32,
    outputs: &BTreeMap<String, Tensor>,
    call: Call,
    prepared: &Prepared,
) -> Result<Vec<Detection>, PredictError> {
    let tables = Tables::new(convention, outputs, call)?;
    let best = tables.best(convention, min_score, outputs, call)?;
    let cells = convention.grid.as_ref().map(|grid| tables.cells(grid, prepared.canvas_size)).transpose()?;
    let detections = best.into_iter().map(|candidate| {
        let bounds = tables.bounds(convention, cells.as_ref(), candidate.row as usize, prepared);
        if !bounds.is_finite() {
            return Err(failed("the model's boxes are not numbers (NaN or infinite)"));
        }
        let runners_up = tables.runners_up(convention, candidate, min_score)?;
        let class_id = class_id(candidate.class, convention.class_offset)?;
        Ok(Detection { bounds, class_id, label: labels.name(class_id), score: candidate.score, runners_up })
    });
    detections.collect()
}

/// The candidate of each box that [`postprocess`](super::postprocess) returns for image `index` of a call with `images`
/// images: its position in the graph's order.
///
/// # Errors
/// As [`postprocess`](super::postprocess).
pub fn candidates_of_boxes(
    convention: &DetectionOutput,
    min_score: f32,
    outputs: &BTreeMap<String, Tensor>,
    images: usize,
    index: usize,
) -> Result<Vec<usize>, PredictError> {
    let call = Call { images, index };
    let best = Tables::new(convention, outputs, call)?.best(convention, min_score, outputs, call)?;
    Ok(best.into_iter().map(|candidate| candidate.row as usize).collect())
}

/// A candidate as returned by the graph.
#[derive(Debug, Clone, Copy)]
pub struct RawCandidate {
    /// The four numbers of the box, decoded if they were relative to a grid.
    pub numbers: [f64; 4],
    pub class: f64,
    pub score: f32,
}

/// The candidates of the only image in a call, in the graph's order and space. `canvas_size` are width and height of
/// the input, in pixels.
///
/// # Errors
/// As [`postprocess`](super::postprocess).
pub fn raw_candidates(
    convention: &DetectionOutput,
    outputs: &BTreeMap<String, Tensor>,
    canvas_size: [u32; 2],
) -> Result<Vec<RawCandidate>, PredictError> {
    let call = Call { images: 1, index: 0 };
    let tables = Tables::new(convention, outputs, call)?;
    let mut all = BestCandidates { min_score: f32::MIN_POSITIVE, most: MAX_ROWS, candidates: Vec::new() };
    tables.score(convention, &tables.valid_rows(convention, outputs, call)?, &mut all)?;
    let cells = convention.grid.as_ref().map(|grid| tables.cells(grid, canvas_size)).transpose()?;
    let raw = all.candidates.into_iter().map(|candidate| RawCandidate {
        numbers: tables.numbers(convention, cells.as_ref(), candidate.row as usize),
        class: f64::from(candidate.class),
        score: candidate.score,
    });
    Ok(raw.collect())
}

/// The number of scores per candidate in the outputs of a call, including the background; `None` without candidates.
pub fn score_columns(convention: &DetectionOutput, outputs: &BTreeMap<String, Tensor>) -> Option<usize> {
    let tables = Tables::new(convention, outputs, Call { images: 1, index: 0 }).ok()?;
    (tables.rows > 0).then_some(tables.classes)
}

fn class_id(class: f32, offset: i32) -> Result<u32, PredictError> {
    let id = f64::from(class) + f64::from(offset);
    if id >= 0.0 && id <= f64::from(u32::MAX) && id.fract() == 0.0 {
        Ok(id as u32)
    } else {
        Err(failed(format!("the model returned class {class}, which is invalid with an offset of {offset}")))
    }
}

/// A candidate with one class, before its box is read.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    row: u32,
    /// The graph's class number, without the background.
    class: f32,
    score: f32,
}

impl Candidate {
    /// Best first, then in the graph's order.
    fn order(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.row.cmp(&other.row)).then(self.class.total_cmp(&other.class))
    }
}

/// The `most` best candidates with a score of at least `min_score`.
struct BestCandidates {
    min_score: f32,
    most: usize,
    candidates: Vec<Candidate>,
}

impl BestCandidates {
    fn add(&mut self, row: usize, class: f32, score: f64) -> Result<(), PredictError> {
        let score = score as f32;
        if !score.is_finite() {
            return Err(failed("the model's scores are not numbers (NaN or infinite)"));
        }
        if score > MAX_SCORE {
            return Err(failed(format!(
                "the model returned a score of {score}, above 1; correct the output's activation in the model card"
            )));
        }
        if score >= self.min_score {
            // Bounds the memory, however many classes each candidate has.
            if self.candidates.len() >= 4 * MAX_KEPT {
                self.drop_worst();
            }
            self.candidates.push(Candidate { row: row as u32, class, score });
        }
        Ok(())
    }

    fn drop_worst(&mut self) {
        if self.candidates.len() > self.most {
            self.candidates.select_nth_unstable_by(self.most, Candidate::order);
            self.candidates.truncate(self.most);
        }
    }

    fn in_order(mut self) -> Vec<Candidate> {
        self.drop_worst();
        self.candidates.sort_unstable_by(Candidate::order);
        self.candidates
    }
}

/// The parts of one image's candidates.
struct Tables<'o> {
    boxes: Part<'o>,
    labels: Option<Part<'o>>,
    scores: Part<'o>,
    /// The number of columns in `scores` that are class scores, including the background.
    classes: usize,
    objectness: Option<Part<'o>>,
    batch_index: Option<Part<'o>>,
    angle: Option<Part<'o>>,
    /// What the graph's own suppression keeps, if it reports it.
    selected: Option<Vec<Selected>>,
    rows: usize,
}

/// A candidate that the graph's own suppression keeps.
#[derive(Debug, Clone, Copy)]
struct Selected {
    class: usize,
    row: usize,
}

impl<'o> Tables<'o> {
    fn new(
        convention: &'o DetectionOutput,
        outputs: &'o BTreeMap<String, Tensor>,
        call: Call,
    ) -> Result<Self, PredictError> {
        let selected = convention.selected.as_ref().map(|name| selected(outputs, name, call.index)).transpose()?;
        let whole_call = convention.batch_index.is_some();
        let call = if whole_call { Call { images: 1, index: 0 } } else { call };
        let of_image = |name: &'o str| OutputOfImage::new(outputs, name, call);
        let candidates_last = convention.candidates_last;
        let levels = convention.boxes.outputs.iter().map(|name| of_image(name)?.rows(candidates_last));
        let level_rows = levels.collect::<Result<Vec<_>, _>>()?;
        let rows: usize = level_rows.iter().sum();
        if rows > MAX_ROWS {
            return Err(failed(format!(
                "the model returned {rows} candidates for one image, more than {MAX_ROWS}; export it with non-maximum \
                suppression"
            )));
        }
        let part = |columns: &'o Columns| -> Result<Part<'o>, PredictError> {
            let names = &columns.outputs;
            // One output per level, or one output with the rows of all levels.
            let expected = if names.len() == level_rows.len() { &level_rows[..] } else { &[rows] };
            if names.len() != expected.len() {
                return Err(failed(format!(
                    "the model card names {} outputs for boxes and {} for {}; correct it",
                    level_rows.len(),
                    names.len(),
                    names.join(", ")
                )));
            }
            let tables = names.iter().zip(expected).map(|(name, &rows)| of_image(name)?.table(rows, candidates_last));
            Ok(Part { tables: tables.collect::<Result<_, _>>()?, column: columns.column as usize })
        };
        let one = |columns: &'o Option<Columns>| columns.as_ref().map(|columns| part(columns)?.checked(1)).transpose();
        let boxes = part(&convention.boxes)?.checked(convention.grid.as_ref().map_or(4, Grid::numbers_per_box))?;
        let scores = part(&convention.scores)?;
        let classes = match (&convention.labels, convention.classes) {
            (Some(_), _) => 1,
            (None, Some(classes)) => classes as usize,
            (None, None) => scores.columns_to_the_last(),
        };
        Ok(Self {
            labels: one(&convention.labels)?,
            objectness: one(&convention.objectness)?,
            batch_index: one(&convention.batch_index)?,
            angle: one(&convention.angle)?,
            selected,
            scores: scores.checked(classes)?,
            boxes,
            classes,
            rows,
        })
    }

    /// The candidates with a score of at least `min_score`, best first.
    fn best(
        &self,
        convention: &DetectionOutput,
        min_score: f32,
        outputs: &BTreeMap<String, Tensor>,
        call: Call,
    ) -> Result<Vec<Candidate>, PredictError> {
        let most = convention.max_boxes.map_or(MAX_KEPT, |most| MAX_KEPT.min(most as usize));
        let mut best = BestCandidates { min_score: min_score.max(f32::MIN_POSITIVE), most, candidates: Vec::new() };
        self.score(convention, &self.valid_rows(convention, outputs, call)?, &mut best)?;
        Ok(best.in_order())
    }

    /// The rows that count, in the graph's order.
    fn valid_rows(
        &self,
        convention: &DetectionOutput,
        outputs: &BTreeMap<String, Tensor>,
        call: Call,
    ) -> Result<Vec<usize>, PredictError> {
        let count = match &convention.count {
            Some(name) => box_count(&OutputOfImage::new(outputs, name, call)?.values(), self.rows)?,
            None => self.rows,
        };
        let belongs = |row: &usize| {
            let index = self.batch_index.as_ref().map(|part| part.at(*row, 0));
            index.is_none_or(|index| index == call.index as f32)
        };
        Ok((0..count).filter(belongs).collect())
    }

    fn score(
        &self,
        convention: &DetectionOutput,
        rows: &[usize],
        best: &mut BestCandidates,
    ) -> Result<(), PredictError> {
        if rows.is_empty() {
            return Ok(());
        }
        let activation = convention.activation;
        let factor = |row: usize| self.factor(activation, row);
        let score = |row: usize, column: usize| activated(activation, self.scores.at(row, column)) * factor(row);
        if let Some(labels) = &self.labels {
            return rows.iter().try_for_each(|&row| best.add(row, labels.at(row, 0), score(row, 0)));
        }
        if let Some(selected) = &self.selected {
            return selected.iter().try_for_each(|&Selected { class, row }| {
                self.check_selected(class, row)?;
                best.add(row, class as f32, score(row, class))
            });
        }
        let classes = self.classes_without_background(convention)?;
        if convention.label_choice == LabelChoice::Best && activation != Activation::Softmax {
            // The sigmoid does not change which class is best.
            let best_of_rows = self.scores.best_columns(classes, self.rows);
            for &row in rows {
                let (class, number) = best_of_rows.best_of_row(row);
                best.add(row, class as f32, activated(activation, number) * factor(row))?;
            }
            return Ok(());
        }
        let mut numbers = vec![0.0; self.classes];
        for &row in rows {
            for (column, number) in numbers.iter_mut().enumerate() {
                *number = f64::from(self.scores.at(row, column));
            }
            let scores = all_activated(activation, &numbers);
            let scores = &scores[classes.clone()];
            let factor = factor(row);
            match convention.label_choice {
                LabelChoice::Best => {
                    let class = (1..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best });
                    best.add(row, class as f32, scores[class] * factor)?;
                }
                LabelChoice::All => {
                    for (class, score) in scores.iter().enumerate() {
                        best.add(row, class as f32, score * factor)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The best other classes of a candidate with a score of at least `min_score`, best first. Equal scores keep the
    /// graph's order.
    fn runners_up(
        &self,
        convention: &DetectionOutput,
        candidate: Candidate,
        min_score: f32,
    ) -> Result<Vec<RunnerUp>, PredictError> {
        if self.labels.is_some() {
            return Ok(Vec::new());
        }
        let row = candidate.row as usize;
        let factor = self.factor(convention.activation, row);
        let numbers: Vec<f64> = (0..self.classes).map(|column| f64::from(self.scores.at(row, column))).collect();
        let scores = all_activated(convention.activation, &numbers);
        let columns = self.classes_without_background(convention)?;
        // The graph's own suppression counts the background.
        let first = if self.selected.is_some() { 0 } else { columns.start };
        let others = columns.filter_map(|column| {
            let (class, score) = ((column - first) as f32, (scores[column] * factor) as f32);
            let class_id = class_id(class, convention.class_offset).ok()?;
            (class != candidate.class && score >= min_score.max(f32::MIN_POSITIVE))
                .then_some(RunnerUp { class_id, score })
        });
        let mut others: Vec<RunnerUp> = others.collect();
        others.sort_by(|left, right| right.score.total_cmp(&left.score));
        others.truncate(RunnerUp::MAX);
        others.shrink_to_fit();
        Ok(others)
    }

    /// The factor of all class scores of a row.
    fn factor(&self, activation: Activation, row: usize) -> f64 {
        self.objectness.as_ref().map_or(1.0, |part| activated(activation, part.at(row, 0)))
    }

    fn check_selected(&self, class: usize, row: usize) -> Result<(), PredictError> {
        if class < self.classes && row < self.rows {
            return Ok(());
        }
        Err(failed(format!(
            "the model selected class {class} of box {row}, but it has {} classes and {} boxes; correct the model card",
            self.classes, self.rows
        )))
    }

    fn classes_without_background(&self, convention: &DetectionOutput) -> Result<Range<usize>, PredictError> {
        let classes = match convention.background {
            Background::None => 0..self.classes,
            Background::First => 1..self.classes,
            Background::Last => 0..self.classes.saturating_sub(1),
        };
        if classes.is_empty() {
            return Err(failed(format!(
                "the output {} has no class other than the background; correct the model card",
                convention.scores.outputs.join(", ")
            )));
        }
        Ok(classes)
    }

    fn cells(&self, grid: &Grid, canvas_size: [u32; 2]) -> Result<Cells, PredictError> {
        let cells = Cells::new(grid, canvas_size);
        if cells.rows() != self.rows {
            return Err(failed(format!(
                "an input of {}x{} has {} cells with strides {:?}, but the model returned {} candidates; correct the \
                model card",
                canvas_size[0],
                canvas_size[1],
                cells.rows(),
                grid.strides,
                self.rows
            )));
        }
        Ok(cells)
    }

    /// The numbers of a row's box, decoded if they are relative to a grid.
    fn numbers(&self, convention: &DetectionOutput, cells: Option<&Cells>, row: usize) -> [f64; 4] {
        let numbers = |at: usize| f64::from(self.boxes.at(row, at));
        match (cells, &convention.grid) {
            (Some(cells), Some(grid)) => cells.decoded(grid, row, numbers),
            _ => [0, 1, 2, 3].map(numbers),
        }
    }

    /// The box of a row, in pixels of the upright image.
    fn bounds(
        &self,
        convention: &DetectionOutput,
        cells: Option<&Cells>,
        row: usize,
        prepared: &Prepared,
    ) -> BoundingBox {
        let [a, b, c, d] = self.numbers(convention, cells, row);
        let corners = match convention.box_format {
            BoxFormat::Xyxy => [a, b, c, d],
            BoxFormat::Yxyx => [b, a, d, c],
            BoxFormat::Cxcywh => {
                let angle = self.angle.as_ref().map_or(0.0, |part| f64::from(part.at(row, 0)));
                let (sin, cos) = (angle.sin().abs(), angle.cos().abs());
                let [width, height] = if angle == 0.0 { [c, d] } else { [c * cos + d * sin, c * sin + d * cos] };
                [a - width / 2.0, b - height / 2.0, a + width / 2.0, b + height / 2.0]
            }
        };
        let scale = match convention.box_space {
            BoxSpace::ModelPixels | BoxSpace::ImagePixels => [1.0, 1.0],
            BoxSpace::Normalized => prepared.canvas_size.map(f64::from),
        };
        let edge = |at: usize| (corners[at] * scale[at % 2]) as f32;
        let bounds = BoundingBox::new(edge(0), edge(1), edge(2), edge(3));
        match convention.box_space {
            BoxSpace::ImagePixels => bounds,
            BoxSpace::ModelPixels | BoxSpace::Normalized => prepared.image_from_model.apply(bounds),
        }
    }
}

/// Consecutive columns of the candidates; with several tables, the rows of the first come first.
struct Part<'o> {
    tables: Vec<Table<'o>>,
    column: usize,
}

impl Part<'_> {
    /// The number of columns from the first to the last of the output, which must be equal for several outputs.
    fn columns_to_the_last(&self) -> usize {
        let filled = self.tables.iter().find(|table| table.rows > 0);
        filled.map_or(0, |table| table.columns.saturating_sub(self.column))
    }

    /// # Errors
    /// A table with rows has fewer columns than this part needs.
    fn checked(self, width: usize) -> Result<Self, PredictError> {
        let needed = self.column + width.max(1);
        match self.tables.iter().find(|table| table.rows > 0 && table.columns < needed) {
            None => Ok(self),
            Some(table) => Err(failed(format!(
                "the model's outputs do not fit together: {} has too few columns: {} instead of {needed}; \
                correct the model card",
                table.name, table.columns
            ))),
        }
    }

    /// The number `offset` columns after the first.
    fn at(&self, mut row: usize, offset: usize) -> f32 {
        for table in &self.tables {
            if row < table.rows {
                return table.at(row, self.column + offset);
            }
            row -= table.rows;
        }
        f32::NAN
    }

    /// The best of `columns` in each row; on a tie the first, and NaN if there is any.
    fn best_columns(&self, columns: Range<usize>, rows: usize) -> BestColumns {
        let mut best = BestColumns::new(rows);
        let mut first_row = 0;
        for table in &self.tables {
            let columns = self.column + columns.start..self.column + columns.end;
            if table.candidates_last {
                best.take_columns(table, columns, first_row);
            } else {
                best.take_rows(table, columns, first_row);
            }
            first_row += table.rows;
        }
        best
    }
}

/// The best column of each row, counted from the first requested one.
struct BestColumns {
    columns: Vec<u32>,
    numbers: Vec<f32>,
}

impl BestColumns {
    /// The number of rows that stay in the L1 cache from column to column.
    const BLOCK: usize = 2048;
    /// The number of columns that a CPU compares in parallel.
    const LANES: usize = 8;

    fn new(rows: usize) -> Self {
        Self { columns: vec![0; rows], numbers: vec![f32::NEG_INFINITY; rows] }
    }

    fn best_of_row(&self, row: usize) -> (u32, f32) {
        (self.columns[row], self.numbers[row])
    }

    /// For a table with contiguous columns.
    fn take_columns(&mut self, table: &Table<'_>, columns: Range<usize>, first_row: usize) {
        for block in (0..table.rows).step_by(Self::BLOCK) {
            let end = (block + Self::BLOCK).min(table.rows);
            let rows = first_row + block..first_row + end;
            let (best, best_columns) = (&mut self.numbers[rows.clone()], &mut self.columns[rows]);
            for (number, column) in (0..).zip(columns.clone()) {
                let values = &table.values[column * table.rows..][block..end];
                take_better(best, best_columns, values, number);
            }
        }
    }

    /// For a table with contiguous rows.
    fn take_rows(&mut self, table: &Table<'_>, columns: Range<usize>, first_row: usize) {
        for row in 0..table.rows {
            let values = &table.values[row * table.columns..][columns.clone()];
            let mut best = [f32::NEG_INFINITY; Self::LANES];
            let mut steps = [0; Self::LANES];
            for (step, values) in (0..).zip(values.chunks(Self::LANES)) {
                take_better(&mut best, &mut steps, values, step);
            }
            let (number, column) = (&mut self.numbers[first_row + row], &mut self.columns[first_row + row]);
            for (lane, (&value, &step)) in (0..).zip(best.iter().zip(&steps)) {
                let of_lane = step * Self::LANES as u32 + lane;
                let is_better = value > *number || value.is_nan() || value == *number && of_lane < *column;
                if is_better && !number.is_nan() {
                    (*number, *column) = (value, of_lane);
                }
            }
        }
    }
}

/// Stores `column` where its value is better. Bits are selected with a mask, because the compiler vectorizes that but
/// not an `if`.
fn take_better(best: &mut [f32], columns: &mut [u32], values: &[f32], column: u32) {
    for ((best, of), &value) in best.iter_mut().zip(columns).zip(values) {
        // NaN wins and stays, so that it is noticed.
        let is_better = ((value > *best) | value.is_nan()) & !best.is_nan();
        let mask = u32::from(is_better).wrapping_neg();
        *best = f32::from_bits((value.to_bits() & mask) | (best.to_bits() & !mask));
        *of = (column & mask) | (*of & !mask);
    }
}

/// The numbers of one output that belong to one image.
struct Table<'o> {
    name: &'o str,
    values: Cow<'o, [f32]>,
    rows: usize,
    columns: usize,
    candidates_last: bool,
}

impl Table<'_> {
    fn at(&self, row: usize, column: usize) -> f32 {
        let place = if self.candidates_last { column * self.rows + row } else { row * self.columns + column };
        self.values[place]
    }
}

/// An output of the graph, and the part of it that belongs to one image of the call.
struct OutputOfImage<'o> {
    name: &'o str,
    tensor: &'o Tensor,
    range: Range<usize>,
}

impl<'o> OutputOfImage<'o> {
    fn new(outputs: &'o BTreeMap<String, Tensor>, name: &'o str, call: Call) -> Result<Self, PredictError> {
        let tensor = output(outputs, name)?;
        if call.images > 1 && tensor.shape.first() != Some(&call.images) {
            return Err(failed(format!(
                "the output {name} of shape {:?} does not match {} images in one call",
                tensor.shape, call.images
            )));
        }
        let len = tensor.len() / call.images.max(1);
        Ok(Self { name, tensor, range: call.index * len..(call.index + 1) * len })
    }

    /// The number of boxes.
    fn rows(&self, candidates_last: bool) -> Result<usize, PredictError> {
        let rows = self.columns(candidates_last).map(|columns| self.range.len() / columns);
        let Self { name, tensor, .. } = self;
        rows.ok_or_else(|| {
            let shape = &tensor.shape;
            failed(format!("the output {name} of shape {shape:?} has no rows of boxes; correct the model card"))
        })
    }

    /// The last dimension, or the one before it if candidates are last; `None` for a shape without columns.
    fn columns(&self, candidates_last: bool) -> Option<usize> {
        let shape = &self.tensor.shape;
        let columns = *shape.get(shape.len().checked_sub(if candidates_last { 2 } else { 1 })?)?;
        (columns > 0 && self.range.len().is_multiple_of(columns)).then_some(columns)
    }

    /// The table with this many rows. An output with one number per row has no column dimension, and scores can have
    /// candidates last where boxes do not (PP-YOLOE, the ONNX Model Zoo's `YOLOv3`).
    fn table(&self, rows: usize, candidates_last: bool) -> Result<Table<'o>, PredictError> {
        let has_rows_last =
            matches!(self.tensor.shape[..], [_, columns, last] if last == rows && columns != rows && rows > 1);
        let candidates_last = candidates_last || has_rows_last;
        let of_one_column = Some(1).filter(|_| self.range.len() == rows);
        let columns = of_one_column.or_else(|| self.columns(candidates_last));
        let columns = columns.filter(|columns| self.range.len() == rows * columns).ok_or_else(|| {
            failed(format!(
                "the model's outputs do not fit together: {} has shape {:?}, but there are {rows} boxes",
                self.name, self.tensor.shape
            ))
        })?;
        Ok(Table { name: self.name, values: self.values(), rows, columns, candidates_last })
    }

    fn values(&self) -> Cow<'o, [f32]> {
        let range = self.range.clone();
        match &self.tensor.data {
            TensorData::F32(values) => Cow::Borrowed(&values[range]),
            TensorData::U8(values) => Cow::Owned(values[range].iter().map(|&value| f32::from(value)).collect()),
            TensorData::I64(values) => Cow::Owned(values[range].iter().map(|&value| value as f32).collect()),
        }
    }
}

/// The candidates of image `index` that the graph's own suppression keeps.
fn selected(outputs: &BTreeMap<String, Tensor>, name: &str, index: usize) -> Result<Vec<Selected>, PredictError> {
    let output = OutputOfImage::new(outputs, name, Call { images: 1, index: 0 })?;
    let shape = &output.tensor.shape;
    if shape.last() != Some(&3) {
        return Err(failed(format!(
            "the output {name} of shape {shape:?} has no rows of image, class and box; correct the model card"
        )));
    }
    let values = output.values();
    let of_image = values.chunks_exact(3).filter(|row| row[0] == index as f32 && row[1] >= 0.0 && row[2] >= 0.0);
    Ok(of_image.map(|row| Selected { class: row[1] as usize, row: row[2] as usize }).collect())
}

fn box_count(values: &[f32], rows: usize) -> Result<usize, PredictError> {
    match *values {
        [count] if count >= 0.0 && count <= rows as f32 => Ok(count as usize),
        _ => {
            let some = &values[..values.len().min(8)];
            Err(failed(format!("the model returned {rows} boxes but a count of {some:?}")))
        }
    }
}

/// The scores of all classes of a row.
fn all_activated(activation: Activation, numbers: &[f64]) -> Cow<'_, [f64]> {
    match activation {
        Activation::Softmax => Cow::Owned(super::softmax(numbers)),
        Activation::Sigmoid => Cow::Owned(numbers.iter().copied().map(sigmoid).collect()),
        Activation::SquareRoot => Cow::Owned(numbers.iter().map(|number| number.clamp(0.0, 1.0).sqrt()).collect()),
        Activation::None => Cow::Borrowed(numbers),
    }
}

fn activated(activation: Activation, number: f32) -> f64 {
    match activation {
        Activation::Sigmoid => sigmoid(f64::from(number)),
        // NaN stays, so that it is noticed.
        Activation::SquareRoot => f64::from(number).clamp(0.0, 1.0).sqrt(),
        Activation::None | Activation::Softmax => f64::from(number),
    }
}

impl Grid {
    fn numbers_per_box(&self) -> usize {
        match self.coding {
            GridCoding::DistanceBins { bins, .. } => 4 * bins as usize,
            _ => 4,
        }
    }
}
