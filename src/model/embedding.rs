//! From a tensor inside a graph to one vector per image.

use super::{PredictError, Tensor, TensorData};

/// Longer vectors would fill the disk: those of a flattened feature map.
const MAX_DIMS: usize = 8192;

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
    let converted;
    let values: &[f32] = if let TensorData::F32(values) = &tensor.data {
        values
    } else {
        converted = tensor.to_f64().into_iter().map(|value| value as f32).collect::<Vec<_>>();
        &converted
    };
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
