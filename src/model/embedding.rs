//! From tensors inside a graph to one vector per image, and one per box.

use std::borrow::Cow;

use super::{PredictError, Prepared, Tensor, TensorData};
use crate::domain::{AxisTransform, BoundingBox, Layout, ModelCard, Prediction, Tokens, ViewSettings};

/// Longer vectors would fill the disk: those of a flattened feature map.
pub const MAX_DIMS: usize = 8192;

/// The number of values per image of a tensor of this shape; `None` if it describes no images.
pub fn embedding_dims(shape: &[usize], images: usize) -> Option<usize> {
    let dims = match *shape {
        [first, dims] if first == images || images == 1 => dims,
        [first, _, dims] | [first, dims, _, _] if first == images => dims,
        _ => return None,
    };
    (1..=MAX_DIMS).contains(&dims).then_some(dims)
}

/// One vector per image of a call with `images` images. Feature maps `[N, C, H, W]` are averaged over space, tokens and
/// queries `[N, T, D]` over their number, and so are the boxes `[N, D]` of a model that takes one image.
///
/// # Errors
/// The tensor has another shape.
pub fn embeddings_of(tensor: &Tensor, images: usize) -> Result<Vec<Vec<f32>>, PredictError> {
    let wrong = || PredictError::Failed(format!("the embedding has shape {:?}", tensor.shape));
    let dims = embedding_dims(&tensor.shape, images).ok_or_else(wrong)?;
    let values = floats(tensor);
    let per_image = values.len() / images.max(1);
    // In 64-bit floats, because a map has thousands of cells.
    let mean = |values: &mut dyn Iterator<Item = f32>| {
        let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + f64::from(value), count + 1));
        (sum / f64::from(count.max(1))) as f32
    };
    let of_image = |values: &[f32]| match tensor.shape.len() {
        4 => {
            let cells = (values.len() / dims).max(1);
            values.chunks(cells).map(|map| mean(&mut map.iter().copied())).collect()
        }
        _ if values.len() == dims => values.to_vec(),
        _ => (0..dims).map(|at| mean(&mut values.iter().skip(at).step_by(dims).copied())).collect(),
    };
    Ok((0..images).map(|image| of_image(&values[image * per_image..(image + 1) * per_image])).collect())
}

/// The output of an encoder for a call with `images` images as [`embeddings_of`] reads it: dimensions of 1 around a
/// vector are removed, maps get the channels first, and a class token is taken out of its sequence.
pub fn encoded(tensor: Tensor, images: usize, layout: Layout, tokens: Tokens) -> Tensor {
    let mut shape = tensor.shape.clone();
    if !matches!(layout, Layout::Nchw | Layout::Nhwc) || shape.len() == 1 {
        shape.insert(0, 1);
    }
    let long_sides = shape.iter().skip(1).filter(|side| **side != 1).count();
    if long_sides <= 1 && shape.first() == Some(&images) {
        shape = vec![images, shape.iter().skip(1).product()];
    }
    match (shape.as_slice(), tokens) {
        (&[images, rows, columns, channels], _) if matches!(layout, Layout::Nhwc | Layout::Hwc) => {
            Tensor { shape: vec![images, rows * columns, channels], ..tensor }
        }
        (&[images, count, dims], Tokens::Class) => {
            let values = floats(&tensor);
            let first = values.chunks((count * dims).max(1)).flat_map(|image| image.iter().take(dims).copied());
            Tensor::f32([images, dims], first.collect())
        }
        _ => Tensor { shape, ..tensor },
    }
}

fn floats(tensor: &Tensor) -> Cow<'_, [f32]> {
    match &tensor.data {
        TensorData::F32(values) => Cow::Borrowed(values),
        _ => tensor.to_f64().into_iter().map(|value| value as f32).collect(),
    }
}

/// The boxes that get a vector, as indices: those that the model's default filters show from a low score on. Others are
/// background or repeat a better box.
pub fn boxes_to_describe(card: &ModelCard, prediction: &Prediction) -> Vec<usize> {
    const MIN_SCORE: f32 = 0.2;
    const MOST: usize = 50;
    let view = ViewSettings { min_score: MIN_SCORE, ..ViewSettings::from_card(card) };
    let mut boxes = view.visible_detections(prediction, &[]);
    boxes.truncate(MOST);
    boxes
}

/// The average of a feature map `[N, C, H, W]` under each box of image `index`, which is in pixels of the upright image;
/// `None` for a box outside it. A cell counts as far as the box covers it. Of several maps, each box uses the one that a
/// feature pyramid network uses for its size (Lin et al. 2017, equation 1, <https://arxiv.org/abs/1612.03144>).
pub fn average_under(
    maps: &[&Tensor],
    index: usize,
    prepared: &Prepared,
    boxes: &[BoundingBox],
) -> Vec<Option<Vec<f32>>> {
    let maps: Vec<Map<'_>> = maps.iter().filter_map(|map| Map::new(map, index, prepared.canvas_size)).collect();
    let average = |bounds: &BoundingBox| {
        let [width, height] = prepared.image_size;
        let [x1, y1, x2, y2] = <[f32; 4]>::from(bounds.clipped(width, height)).map(f64::from);
        if !(x2 > x1 && y2 > y1) {
            return None;
        }
        let AxisTransform { scale, offset } = prepared.image_from_model;
        let x = [x1, x2].map(|edge| (edge - offset[0]) / scale[0]);
        let y = [y1, y2].map(|edge| (edge - offset[1]) / scale[1]);
        let level = 4.0 + ((x[1] - x[0]) * (y[1] - y[0])).sqrt().log2() - 224.0_f64.log2();
        let distance = |map: &&Map<'_>| (map.stride[0].log2().round() - level.floor()).abs();
        let map = maps.iter().min_by(|left, right| distance(left).total_cmp(&distance(right)))?;
        map.average(x, y)
    };
    boxes.iter().map(average).collect()
}

/// A feature map of one image.
struct Map<'t> {
    values: Cow<'t, [f32]>,
    columns: usize,
    rows: usize,
    /// Pixels of the model's input per cell.
    stride: [f64; 2],
}

impl<'t> Map<'t> {
    fn new(tensor: &'t Tensor, index: usize, input: [u32; 2]) -> Option<Self> {
        let &[images, channels, rows, columns] = tensor.shape.as_slice() else {
            return None;
        };
        let size = channels.checked_mul(rows)?.checked_mul(columns).filter(|size| *size > 0)?;
        let range = index * size..(index + 1) * size;
        let values = match floats(tensor) {
            Cow::Borrowed(values) => Cow::Borrowed(values.get(range)?),
            Cow::Owned(values) => Cow::Owned(values.get(range)?.to_vec()),
        };
        let stride = [f64::from(input[0]) / columns as f64, f64::from(input[1]) / rows as f64];
        (index < images).then_some(Self { values, columns, rows, stride })
    }

    /// The mean of each channel under a box with these edges, in pixels of the model's input.
    fn average(&self, x: [f64; 2], y: [f64; 2]) -> Option<Vec<f32>> {
        let across = covered(x.map(|edge| edge / self.stride[0]), self.columns);
        let down = covered(y.map(|edge| edge / self.stride[1]), self.rows);
        let total = across.iter().map(|cell| cell.1).sum::<f64>() * down.iter().map(|cell| cell.1).sum::<f64>();
        if total <= 0.0 {
            return None;
        }
        let channel = |values: &[f32]| {
            let mut sum = 0.0;
            for (row, height) in &down {
                let row = &values[row * self.columns..];
                sum += height * across.iter().map(|(column, width)| width * f64::from(row[*column])).sum::<f64>();
            }
            (sum / total) as f32
        };
        Some(self.values.chunks_exact(self.rows * self.columns).map(channel).collect())
    }
}

/// The cells between two positions, and how much of each is covered.
fn covered([start, end]: [f64; 2], cells: usize) -> Vec<(usize, f64)> {
    let [start, end] = [start, end].map(|edge| edge.clamp(0.0, cells as f64));
    let overlap = |cell: usize| end.min(cell as f64 + 1.0) - start.max(cell as f64);
    (start as usize..(end.ceil() as usize).min(cells)).map(|cell| (cell, overlap(cell))).collect()
}

/// The vectors of candidates `rows` of image `index`, from a tensor `[N, candidates, D]`, or `[candidates, D]` of a model
/// that takes one image; `None` for a row that it does not have.
pub fn vectors_of_candidates(tensor: &Tensor, index: usize, rows: &[usize]) -> Vec<Option<Vec<f32>>> {
    let ([_, candidates, dims] | [candidates, dims]) = *tensor.shape.as_slice() else {
        return vec![None; rows.len()];
    };
    let values = floats(tensor);
    let vector = |row: usize| {
        let start = (index * candidates + row) * dims;
        (row < candidates).then(|| values.get(start..start + dims).map(<[f32]>::to_vec)).flatten()
    };
    rows.iter().map(|&row| vector(row)).collect()
}
