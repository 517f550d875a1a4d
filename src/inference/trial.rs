//! Running a graph with a card that is still being written.

use super::inspection::{InspectError, Inspection, refused, request};
use super::predictor::{join, used_outputs};
use crate::domain::{KeepRule, LabelSet, ModelCard, Prediction};
use crate::tasks::TaskControl;
use crate::vision::recognise::{Misfit, Outputs, Overrules, draft_card, found_labels, misfits};
use crate::vision::{PredictError, Prepared, postprocess};

impl Inspection {
    /// A card to begin with if the graph is not recognised, and the names of classes that the file has.
    ///
    /// # Errors
    /// [`InspectError::Refused`] if no input is an image.
    pub fn draft(&self) -> Result<(ModelCard, LabelSet), InspectError> {
        let overrules = Overrules::default();
        let request = request(&self.weights, self.signature(), None, &overrules)?;
        let card = draft_card(&request).map_err(|reason| refused(&self.weights, reason))?;
        Ok((card, found_labels(&request)))
    }

    /// The prediction for one image, as the model would give it with this card, and what shows that the card is wrong.
    ///
    /// # Errors
    /// The graph does not run on such an input, or its outputs are not as the card says.
    pub fn try_card(
        &mut self,
        card: &ModelCard,
        labels: &LabelSet,
        prepared: &Prepared,
        control: &TaskControl,
    ) -> Result<(Prediction, Vec<Misfit>), PredictError> {
        let (prediction, outputs) = self.run_card(card, labels, KeepRule::default(), prepared, control)?;
        let misfits = misfits(card, labels, &outputs, &prediction);
        Ok((prediction, misfits))
    }

    /// The prediction for one image, and the outputs that it was read from.
    pub(super) fn run_card(
        &mut self,
        card: &ModelCard,
        labels: &LabelSet,
        keep: KeepRule,
        prepared: &Prepared,
        control: &TaskControl,
    ) -> Result<(Prediction, Outputs), PredictError> {
        let images = card.input.fixed_batch.map_or(1, |fixed| fixed as usize);
        let batch = std::slice::from_ref(prepared);
        let joined = join(batch, images)?;
        let first = self.session.input_name(0).unwrap_or_default().to_owned();
        let mut inputs = vec![(card.input.name.as_deref().unwrap_or(&first), &*joined[0])];
        let auxiliary = card.input.auxiliary.iter().zip(&joined[1..]);
        inputs.extend(auxiliary.map(|(input, tensor)| (input.name.as_str(), &**tensor)));
        let outputs = self.session.run(&inputs, &used_outputs(card), control)?;
        let mut predictions = postprocess(&card.output, labels, keep, &outputs, batch, images)?;
        let prediction =
            predictions.pop().ok_or_else(|| PredictError::Failed("the model returned nothing".to_owned()))?;
        Ok((prediction, outputs))
    }
}
