//! From a detector's outputs to boxes, as the declarative description in its card says.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::super::{PredictError, Prepared, Tensor, TensorData};
use super::grid::Cells;
use super::{Call, failed, output};
use crate::domain::{
    Activation, Background, BoundingBox, BoxFormat, BoxSpace, Columns, Detection, DetectionOutput, Grid, GridCoding,
    LabelChoice, LabelSet,
};

/// No detector has more candidates; a graph that gives more would only fill the memory.
const MAX_ROWS: usize = 1_000_000;
/// The most boxes that are kept of an image. As many as Ultralytics' own code hands to its suppression.
const MAX_KEPT: usize = 30_000;
/// The largest score, with room for the rounding of 16-bit floats.
const MAX_SCORE: f32 = 1.001;

/// A candidate with one class, before its box is read.
#[derive(Debug, Clone, Copy)]
struct Scored {
    row: usize,
    /// The graph's class number, background not counted.
    class: f64,
    score: f32,
}

/// Every box of image `index` of the call with a score of at least `min_score`, best first; of equal scores the graph's
/// own order stays.
pub(super) fn detect(
    convention: &DetectionOutput,
    labels: &LabelSet,
    min_score: f32,
    outputs: &BTreeMap<String, Tensor>,
    call: Call,
    prepared: &Prepared,
) -> Result<Vec<Detection>, PredictError> {
    let tables = Tables::new(convention, outputs, call)?;
    let mut scored = tables.scored(convention, min_score, &tables.valid_rows(convention, outputs, call)?)?;
    scored.sort_by(|left, right| right.score.total_cmp(&left.score));
    scored.truncate(convention.max_boxes.map_or(MAX_KEPT, |most| MAX_KEPT.min(most as usize)));
    let cells = convention.grid.as_ref().map(|grid| tables.cells(grid, prepared)).transpose()?;
    let detections = scored.into_iter().map(|candidate| {
        let bounds = tables.bounds(convention, cells.as_ref(), candidate.row, prepared);
        if !bounds.is_finite() {
            return Err(failed("the model's boxes are not numbers (NaN or infinite)"));
        }
        let class_id = class_id(candidate.class, convention.class_offset)?;
        Ok(Detection { bounds, class_id, label: labels.name(class_id), score: candidate.score })
    });
    detections.collect()
}

fn class_id(class: f64, offset: i32) -> Result<u32, PredictError> {
    let id = class + f64::from(offset);
    if id >= 0.0 && id <= f64::from(u32::MAX) && id.fract() == 0.0 {
        Ok(id as u32)
    } else {
        Err(failed(format!("the model returned class {class}, which is invalid with an offset of {offset}")))
    }
}

/// The parts of the candidates of one image.
struct Tables<'o> {
    boxes: Part<'o>,
    labels: Option<Part<'o>>,
    scores: Part<'o>,
    objectness: Option<Part<'o>>,
    batch_index: Option<Part<'o>>,
    angle: Option<Part<'o>>,
    rows: usize,
}

impl<'o> Tables<'o> {
    fn new(
        convention: &DetectionOutput,
        outputs: &'o BTreeMap<String, Tensor>,
        call: Call,
    ) -> Result<Self, PredictError> {
        let whole_call = convention.batch_index.is_some();
        let call = if whole_call { Call { images: 1, index: 0 } } else { call };
        let boxes = convention.boxes.outputs.iter().map(|name| {
            let values = values_of(output(outputs, name)?, name, call)?;
            let shape = &outputs[name].shape;
            let columns = box_columns(shape, convention.candidates_last);
            Table::new(values, columns, convention.candidates_last).ok_or_else(|| misfit(name, shape))
        });
        let boxes: Vec<Table<'_>> = boxes.collect::<Result<_, _>>()?;
        let rows = boxes.iter().map(|table| table.rows).sum();
        if rows > MAX_ROWS {
            return Err(failed(format!(
                "the model returned {rows} candidates for one image, more than {MAX_ROWS}; export it with non-maximum \
                suppression"
            )));
        }
        let level_rows: Vec<usize> = boxes.iter().map(|table| table.rows).collect();
        let part = |columns: &Columns, width: usize| -> Result<Part<'o>, PredictError> {
            let names = &columns.outputs;
            // Levels of one output each, or one output for the rows of all.
            let expected = if names.len() == level_rows.len() { &level_rows[..] } else { &[rows] };
            if names.len() != expected.len() {
                return Err(failed(format!(
                    "the model card names {} outputs for boxes and {} for {}; correct it",
                    level_rows.len(),
                    names.len(),
                    names.join(", ")
                )));
            }
            let tables = names.iter().zip(expected).map(|(name, &rows)| {
                let values = values_of(output(outputs, name)?, name, call)?;
                let fits = |count: &usize| count * rows == values.len();
                let count = values.len().checked_div(rows).filter(fits);
                let table = count.and_then(|count| Table::new(values, count, convention.candidates_last));
                let table = table.unwrap_or_else(|| Table::empty(width));
                if table.rows != rows || (rows > 0 && table.columns < columns.column as usize + width) {
                    return Err(failed(format!(
                        "the model's outputs do not fit together: {} has shape {:?}, but there are {rows} boxes",
                        name, outputs[name].shape
                    )));
                }
                Ok(table)
            });
            Ok(Part { tables: tables.collect::<Result<_, _>>()?, column: columns.column as usize })
        };
        let one = |columns: &Option<Columns>| columns.as_ref().map(|columns| part(columns, 1)).transpose();
        let (labels, objectness) = (one(&convention.labels)?, one(&convention.objectness)?);
        let (batch_index, angle) = (one(&convention.batch_index)?, one(&convention.angle)?);
        let scores = part(&convention.scores, convention.classes.map_or(1, |count| count as usize))?;
        let boxes = Part { tables: boxes, column: convention.boxes.column as usize };
        let numbers = convention.grid.as_ref().map_or(4, Grid::numbers_per_box);
        if rows > 0 && boxes.tables.iter().any(|table| table.columns < boxes.column + numbers) {
            return Err(failed(format!(
                "the output {} has too few columns for a box of {numbers} numbers; correct the model card",
                convention.boxes.outputs.join(", ")
            )));
        }
        Ok(Self { boxes, labels, scores, objectness, batch_index, angle, rows })
    }

    /// The rows that count, in the graph's order.
    fn valid_rows(
        &self,
        convention: &DetectionOutput,
        outputs: &BTreeMap<String, Tensor>,
        call: Call,
    ) -> Result<Vec<usize>, PredictError> {
        let count = match &convention.count {
            Some(name) => box_count(&values_of(output(outputs, name)?, name, call)?, self.rows)?,
            None => self.rows,
        };
        let belongs = |row: &usize| {
            let index = self.batch_index.as_ref().map(|part| part.at(*row, 0));
            index.is_none_or(|index| index == call.index as f32)
        };
        Ok((0..count).filter(belongs).collect())
    }

    fn scored(
        &self,
        convention: &DetectionOutput,
        min_score: f32,
        rows: &[usize],
    ) -> Result<Vec<Scored>, PredictError> {
        let activation = convention.activation;
        let factor = |row: usize| match &self.objectness {
            Some(part) => activated(activation, part.at(row, 0)),
            None => 1.0,
        };
        let mut scored = Vec::new();
        let mut add = |row: usize, class: f64, score: f64| {
            let score = score as f32;
            if !score.is_finite() {
                return Err(failed("the model's scores are not numbers (NaN or infinite)"));
            }
            if score > MAX_SCORE {
                return Err(failed(format!(
                    "the model returned a score of {score}, above 1; correct the output's activation in the model card"
                )));
            }
            if score >= min_score {
                scored.push(Scored { row, class, score });
            }
            Ok(())
        };
        if let Some(labels) = &self.labels {
            for &row in rows {
                let score = activated(activation, self.scores.at(row, 0)) * factor(row);
                add(row, f64::from(labels.at(row, 0)), score)?;
            }
            return Ok(scored);
        }
        let width = self.scores.tables.first().map_or(0, |table| table.columns) - self.scores.column;
        let width = convention.classes.map_or(width, |count| count as usize);
        let classes = match convention.background {
            Background::None => 0..width,
            Background::First => 1.min(width)..width,
            Background::Last => 0..width.saturating_sub(1),
        };
        let first = classes.start;
        let best = match (convention.label_choice, activation) {
            (LabelChoice::Best, Activation::None | Activation::Sigmoid) => Some(self.best_classes(classes.clone())),
            _ => None,
        };
        let mut numbers = vec![0.0; width];
        for &row in rows {
            // The sigmoid does not change which class is the best.
            if let Some(best) = &best {
                let (class, number) = best[row];
                add(row, (class - first) as f64, activated(activation, number) * factor(row))?;
                continue;
            }
            for (column, number) in numbers.iter_mut().enumerate() {
                *number = f64::from(self.scores.at(row, column));
            }
            let scores = match activation {
                Activation::Softmax => Cow::Owned(super::softmax(&numbers)),
                Activation::Sigmoid => Cow::Owned(numbers.iter().copied().map(sigmoid).collect()),
                Activation::None => Cow::Borrowed(&numbers),
            };
            let scores = &scores[classes.clone()];
            let factor = factor(row);
            match convention.label_choice {
                LabelChoice::Best => {
                    let best = (0..scores.len()).reduce(|best, at| if scores[at] > scores[best] { at } else { best });
                    if let Some(class) = best {
                        add(row, class as f64, scores[class] * factor)?;
                    }
                }
                LabelChoice::All => {
                    for (class, score) in scores.iter().enumerate() {
                        add(row, class as f64, score * factor)?;
                    }
                }
            }
        }
        Ok(scored)
    }

    /// The best column of each row among `classes`, and its number; NaN if any is.
    fn best_classes(&self, classes: std::ops::Range<usize>) -> Vec<(usize, f32)> {
        let mut best = vec![(classes.start, f32::NEG_INFINITY); self.rows];
        let mut first_row = 0;
        for table in &self.scores.tables {
            let best = &mut best[first_row..first_row + table.rows];
            first_row += table.rows;
            let mut consider = |row: usize, class: usize, number: f32| {
                // The negation lets NaN win, and stay, so that it is found.
                if !(number <= best[row].1) && !best[row].1.is_nan() {
                    best[row] = (class, number);
                }
            };
            // In the order of the memory.
            if table.candidates_last {
                for class in classes.clone() {
                    (0..table.rows).for_each(|row| consider(row, class, table.at(row, self.scores.column + class)));
                }
            } else {
                for row in 0..table.rows {
                    classes.clone().for_each(|class| consider(row, class, table.at(row, self.scores.column + class)));
                }
            }
        }
        best
    }

    fn cells(&self, grid: &Grid, prepared: &Prepared) -> Result<Cells, PredictError> {
        let cells = Cells::new(grid, prepared.canvas_size);
        if cells.rows() != self.rows {
            return Err(failed(format!(
                "an input of {}x{} has {} cells with strides {:?}, but the model returned {} candidates; correct the \
                model card",
                prepared.canvas_size[0],
                prepared.canvas_size[1],
                cells.rows(),
                grid.strides,
                self.rows
            )));
        }
        Ok(cells)
    }

    /// The box of a row, in pixels of the upright image.
    fn bounds(
        &self,
        convention: &DetectionOutput,
        cells: Option<&Cells>,
        row: usize,
        prepared: &Prepared,
    ) -> BoundingBox {
        let numbers = |at: usize| f64::from(self.boxes.at(row, at));
        let values = match (cells, &convention.grid) {
            (Some(cells), Some(grid)) => cells.decoded(grid, row, numbers),
            _ => [0, 1, 2, 3].map(numbers),
        };
        let [a, b, c, d] = values;
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
            BoxSpace::Normalised => prepared.canvas_size.map(f64::from),
        };
        let edge = |at: usize| (corners[at] * scale[at % 2]) as f32;
        let bounds = BoundingBox::new(edge(0), edge(1), edge(2), edge(3));
        match convention.box_space {
            BoxSpace::ImagePixels => bounds,
            BoxSpace::ModelPixels | BoxSpace::Normalised => prepared.image_from_model.apply(bounds),
        }
    }
}

/// Consecutive columns of the candidates; with several tables the rows of the first come first.
struct Part<'o> {
    tables: Vec<Table<'o>>,
    column: usize,
}

impl Part<'_> {
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
}

/// The numbers of one output that belong to one image.
struct Table<'o> {
    values: Cow<'o, [f32]>,
    rows: usize,
    columns: usize,
    candidates_last: bool,
}

impl<'o> Table<'o> {
    /// `None` if the number of values is not a multiple of the columns.
    fn new(values: Cow<'o, [f32]>, columns: usize, candidates_last: bool) -> Option<Self> {
        let rows = values.len().checked_div(columns)?;
        (rows * columns == values.len()).then_some(Self { values, rows, columns, candidates_last })
    }

    fn empty(columns: usize) -> Self {
        Self { values: Cow::Borrowed(&[]), rows: 0, columns, candidates_last: false }
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        let place = if self.candidates_last { column * self.rows + row } else { row * self.columns + column };
        self.values[place]
    }
}

/// The columns of an output with boxes: its last dimension, or the one before it.
fn box_columns(shape: &[usize], candidates_last: bool) -> usize {
    let at = shape.len().checked_sub(if candidates_last { 2 } else { 1 });
    at.map_or(1, |at| shape[at])
}

/// The values that belong to one image of the call, as 32-bit floats.
fn values_of<'o>(tensor: &'o Tensor, name: &str, call: Call) -> Result<Cow<'o, [f32]>, PredictError> {
    let len = tensor.len() / call.images;
    let has_batch = call.images == 1 || tensor.shape.first() == Some(&call.images);
    if !has_batch {
        return Err(failed(format!(
            "the output {name} of shape {:?} does not fit {} images in one call",
            tensor.shape, call.images
        )));
    }
    let range = call.index * len..(call.index + 1) * len;
    Ok(match &tensor.data {
        TensorData::F32(values) => Cow::Borrowed(&values[range]),
        TensorData::U8(values) => Cow::Owned(values[range].iter().map(|&value| f32::from(value)).collect()),
        TensorData::I64(values) => Cow::Owned(values[range].iter().map(|&value| value as f32).collect()),
    })
}

fn misfit(name: &str, shape: &[usize]) -> PredictError {
    failed(format!("the output {name} of shape {shape:?} has no rows of boxes; correct the model card"))
}

fn box_count(values: &[f32], rows: usize) -> Result<usize, PredictError> {
    match *values {
        [count] if count >= 0.0 && count <= rows as f32 => Ok(count as usize),
        ref other => Err(failed(format!("the model returned {rows} boxes but a count of {other:?}"))),
    }
}

fn activated(activation: Activation, number: f32) -> f64 {
    match activation {
        Activation::Sigmoid => sigmoid(f64::from(number)),
        Activation::None | Activation::Softmax => f64::from(number),
    }
}

/// `1 / (1 + e^-x)`
pub(super) fn sigmoid(number: f64) -> f64 {
    1.0 / (1.0 + (-number).exp())
}

impl Grid {
    fn numbers_per_box(&self) -> usize {
        match self.coding {
            GridCoding::DistanceBins { bins, .. } => 4 * bins as usize,
            GridCoding::Offsets {} | GridCoding::Anchors { .. } => 4,
        }
    }
}
