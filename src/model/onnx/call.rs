//! A call of a graph: its inputs for a batch, and the outputs that a model's card uses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::session::OnnxSession;
use crate::domain::{ModelCard, OutputConvention};
use crate::model::{PredictError, Prepared, Tensor, TensorData};
use crate::tasks::TaskControl;

/// The outputs to read; empty if the graph has only one.
pub(super) fn used_outputs(card: &ModelCard) -> Vec<&str> {
    match &card.output {
        OutputConvention::Classification(output) => output.name.as_deref().into_iter().collect(),
        OutputConvention::Detection(output) => output.output_names(),
        OutputConvention::Embedding(output) => vec![&output.name],
    }
}

/// Runs a graph with what [`join`] returned.
pub(super) fn call(
    session: &mut OnnxSession,
    card: &ModelCard,
    joined: &[Cow<'_, Tensor>],
    output_names: &[&str],
    control: &TaskControl,
) -> Result<BTreeMap<String, Tensor>, PredictError> {
    let first = session.input_name(0).map(str::to_owned);
    let image = card.input.name.as_deref().or(first.as_deref()).unwrap_or_default();
    let auxiliary = card.input.auxiliary.iter().map(|input| input.name.as_str());
    let names = std::iter::once(image).chain(auxiliary);
    let inputs: Vec<(&str, &Tensor)> = names.zip(joined.iter().map(|tensor| &**tensor)).collect();
    session.run(&inputs, output_names, control)
}

/// The image and auxiliary inputs of a call with `images` images, each joined along the batch dimension. If `batch` has
/// fewer, its last image is repeated.
pub(super) fn join(batch: &[Prepared], images: usize) -> Result<Vec<Cow<'_, Tensor>>, PredictError> {
    let (Some(first), Some(last)) = (batch.first(), batch.last()) else {
        return Err(PredictError::Failed("an empty batch".to_owned()));
    };
    let filled = || batch.iter().chain(std::iter::repeat_n(last, images.saturating_sub(batch.len())));
    let image = join_tensors(filled().map(|prepared| &prepared.tensor));
    let auxiliary = (0..first.auxiliary.len())
        .map(|at| join_tensors(filled().filter_map(move |prepared| Some(&prepared.auxiliary.get(at)?.1))));
    std::iter::once(image).chain(auxiliary).collect()
}

fn join_tensors<'t>(mut tensors: impl Iterator<Item = &'t Tensor>) -> Result<Cow<'t, Tensor>, PredictError> {
    let failed = |reason: &str| PredictError::Failed(reason.to_owned());
    let mut joined = Cow::Borrowed(tensors.next().ok_or_else(|| failed("an empty batch"))?);
    for tensor in tensors {
        if tensor.shape[1..] != joined.shape[1..] {
            return Err(failed("the images of a batch have different sizes"));
        }
        let all = joined.to_mut();
        match (&mut all.data, &tensor.data) {
            (TensorData::F32(all), TensorData::F32(more)) => all.extend(more),
            (TensorData::U8(all), TensorData::U8(more)) => all.extend(more),
            _ => return Err(failed("the images of a batch have different types")),
        }
        all.shape[0] += 1;
    }
    Ok(joined)
}
