//! Runs a graph with a card that is still being edited.

use super::inspection::{InspectError, Inspection, refused, request};
use super::predictor::{join, used_outputs};
use crate::domain::{KeepRule, LabelSet, ModelCard, Prediction, PredictionContent};
use crate::model::recognize::{Misfit, Outputs, Overrules, draft_card, found_labels, input_misfit, misfits};
use crate::model::{PredictError, Prepared, postprocess};
use crate::tasks::TaskControl;

/// How far the scores of identical images in one call may differ.
const SCORE_TOLERANCE: f32 = 1e-3;

impl Inspection {
    /// A draft card for an unrecognized graph, and the class names in the file.
    ///
    /// # Errors
    /// [`InspectError::Refused`] if no input is an image.
    pub fn draft(&self) -> Result<(ModelCard, LabelSet), InspectError> {
        let overrules = Overrules::default();
        let request = request(&self.weights, self.signature(), None, &overrules)?;
        let card = draft_card(&request).map_err(|reason| refused(&self.weights, reason))?;
        Ok((card, found_labels(&request)))
    }

    /// The prediction for one image with this card, and evidence that the card is wrong.
    ///
    /// # Errors
    /// The graph does not run on such an input, or its outputs differ from the card.
    pub fn try_card(
        &mut self,
        card: &ModelCard,
        labels: &LabelSet,
        prepared: &Prepared,
        control: &TaskControl,
    ) -> Result<(Prediction, Vec<Misfit>), Misfit> {
        let port = match &card.input.name {
            Some(name) => self.signature().inputs.iter().find(|port| port.name == *name),
            None => self.signature().inputs.first(),
        };
        let mut shape = prepared.tensor.shape.clone();
        if let (Some(images), Some(first)) = (card.input.fixed_batch, shape.first_mut()) {
            *first = images as usize;
        }
        if let Some(misfit) = port.and_then(|port| input_misfit(&card.input, port, &shape)) {
            return Err(misfit);
        }
        let one = std::slice::from_ref(prepared);
        let tried = self.run_card(card, labels, KeepRule::default(), one, control);
        let (mut predictions, outputs) = tried.map_err(|error| Misfit { field: "", text: error.to_string() })?;
        let prediction = predictions.remove(0);
        let misfits = misfits(card, labels, &outputs, &prediction);
        Ok((prediction, misfits))
    }

    /// What is wrong with `input.batches`, found by a call with the same image twice.
    pub fn try_batch(&mut self, card: &ModelCard, prepared: &Prepared, control: &TaskControl) -> Option<Misfit> {
        let twice = [prepared.clone(), prepared.clone()];
        let tried = self.run_card(card, &LabelSet::default(), KeepRule::default(), &twice, control);
        let reason = match tried {
            Ok((predictions, _)) if alike(&predictions) => return None,
            Ok(_) => "two identical images in one call get different predictions".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(Misfit { field: "input.batches", text: format!("Choose one image per call: {reason}") })
    }

    /// The prediction for each image of a call, and the outputs.
    pub fn run_card(
        &mut self,
        card: &ModelCard,
        labels: &LabelSet,
        keep: KeepRule,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<(Vec<Prediction>, Outputs), PredictError> {
        let images = card.input.fixed_batch.map_or(batch.len(), |fixed| fixed as usize);
        let joined = join(batch, images)?;
        let first = self.session.input_name(0).unwrap_or_default().to_owned();
        let mut inputs = vec![(card.input.name.as_deref().unwrap_or(&first), &*joined[0])];
        let auxiliary = card.input.auxiliary.iter().zip(&joined[1..]);
        inputs.extend(auxiliary.map(|(input, tensor)| (input.name.as_str(), &**tensor)));
        let outputs = self.session.run(&inputs, &used_outputs(card), control)?;
        let predictions = postprocess(&card.output, labels, keep, &outputs, batch, images)?;
        if predictions.len() != batch.len() {
            return Err(PredictError::Failed("the model returned nothing".to_owned()));
        }
        Ok((predictions, outputs))
    }
}

/// Whether all predictions have the same top class and score. Batches differ in the last digits.
fn alike(predictions: &[Prediction]) -> bool {
    let best = |prediction: &Prediction| match &prediction.content {
        PredictionContent::Classes(classes) => classes.first().map(|best| (best.index, best.score)),
        PredictionContent::Detections(boxes) => boxes.first().map(|best| (best.class_id, best.score)),
    };
    predictions.windows(2).all(|pair| match (best(&pair[0]), best(&pair[1])) {
        (Some((left, left_score)), Some((right, right_score))) => {
            left == right && (left_score - right_score).abs() <= SCORE_TOLERANCE
        }
        (left, right) => left.is_none() && right.is_none(),
    })
}
