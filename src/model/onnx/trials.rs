//! Tries cards: one that is still being edited, and common ways to prepare images, with how certain and how accurate
//! the model is with each.

use std::cmp::Ordering;

use super::call::{call, join, used_outputs};
use super::inspection::{InspectError, Inspection, refused, request};
use crate::domain::{ImageInput, KeepRule, LabelSet, ModelCard, Prediction, PredictionContent, ResizeRule, RgbImage};
use crate::model::catalog::imagenet_class;
use crate::model::recognize::{
    Misfit, Outputs, Overrules, Preset, draft_card, found_labels, input_misfit, misfits, presets,
};
use crate::model::{PredictError, Prepared, postprocess, preprocess};
use crate::tasks::TaskControl;

#[derive(Debug, Clone)]
pub struct TrialImage {
    pub name: String,
    pub image: RgbImage,
    /// The index of its class, if known.
    pub truth: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct PresetTrial {
    pub preset: Preset,
    /// Whether it equals the card's input.
    pub is_present: bool,
    /// One per image, in order, with at most five classes; an error is the reason.
    pub predictions: Vec<Result<Prediction, String>>,
    /// The mean score of the best class or box, `0.0..=1.0`; 0 for an image without one.
    pub mean_top_score: f64,
    /// For classifiers: 0 if the model is certain, 1 if all classes have the same score.
    pub mean_entropy: Option<f64>,
    /// The fraction of images with a known class whose top class is correct.
    pub accuracy: Option<f64>,
    /// The number of images with a known class.
    pub known_images: usize,
}

/// The number of classes with `ImageNet`'s `WordNet` ids.
const IMAGENET_CLASSES: usize = 1000;
/// Smaller differences between mean top scores do not show which preset is right: crops score higher anyway.
const CLOSE_TOP_SCORES: f64 = 0.1;

/// The class with the name of a folder, or with its `WordNet` id if the classes are `ImageNet`'s.
pub fn truth_of(folder_name: &str, labels: &LabelSet) -> Option<u32> {
    let folder_name = folder_name.to_lowercase();
    let named = labels.iter().find(|(_, name)| name.to_lowercase() == folder_name).map(|(id, _)| id);
    let is_imagenet = labels.len() == IMAGENET_CLASSES;
    named.or_else(|| is_imagenet.then(|| imagenet_class(&folder_name)).flatten())
}

/// A note if the best trial is too close to another one to show whether a classifier expects cropped or stretched
/// images.
pub fn undecided_resize(trials: &[PresetTrial]) -> Option<String> {
    let best = trials.iter().max_by(|left, right| left.compare(right))?;
    let is_rival =
        |trial: &&PresetTrial| trial.crops() != best.crops() && trial.has_levels_of(best) && trial.is_close_to(best);
    // Detectors have none.
    best.mean_entropy?;
    let rival = trials.iter().filter(is_rival).max_by(|left, right| left.compare(right))?;
    let (cropped, stretched) = if best.crops() { (best, rival) } else { (rival, best) };
    Some(format!(
        "These images do not show whether the model expects crops ({}) or stretched images ({}): the scores are too \
         close. Try more images in folders named after their classes",
        cropped.preset.name, stretched.preset.name
    ))
}

impl Inspection {
    /// Predicts each image with each preset. Progress is counted in runs of the graph.
    ///
    /// # Errors
    /// The model predicts nothing, or canceled; an image that cannot be predicted is an error of that image.
    pub fn try_presets(
        &mut self,
        card: &ModelCard,
        labels: &LabelSet,
        images: &[TrialImage],
        control: &TaskControl,
    ) -> Result<Vec<PresetTrial>, InspectError> {
        card.must_predict()?;
        let presets = presets(card.task, &card.input);
        control.set_total(Some((presets.len() * images.len()) as u64));
        let mut trials = Vec::new();
        for preset in presets {
            let mut outcomes = Vec::new();
            for image in images {
                control.checkpoint().map_err(|_| InspectError::Cancelled)?;
                match self.predict_prepared(card, &preset.input, labels, &image.image, control) {
                    Err(PredictError::Cancelled) => return Err(InspectError::Cancelled),
                    prediction => outcomes.push(prediction.map_err(|error| error.to_string())),
                }
                control.add_done(1);
            }
            let is_present = preset.input == card.input;
            trials.push(PresetTrial::new(preset, is_present, outcomes, images));
        }
        Ok(trials)
    }

    /// The prediction with every class.
    fn predict_prepared(
        &mut self,
        card: &ModelCard,
        input: &ImageInput,
        labels: &LabelSet,
        image: &RgbImage,
        control: &TaskControl,
    ) -> Result<Prediction, PredictError> {
        let card = ModelCard { input: input.clone(), ..card.clone() };
        let prepared = preprocess(input, image)?;
        let keep = KeepRule { top_k: usize::MAX, ..KeepRule::default() };
        let (mut predictions, _) = self.run_card(&card, labels, keep, &[prepared], control)?;
        Ok(predictions.remove(0))
    }
}

impl PresetTrial {
    /// The more plausible preset compares greater.
    pub fn compare(&self, other: &Self) -> Ordering {
        let rank = |trial: &Self| (trial.accuracy.unwrap_or(0.0), trial.mean_top_score);
        rank(self).partial_cmp(&rank(other)).unwrap_or(Ordering::Equal)
    }

    fn crops(&self) -> bool {
        matches!(self.preset.input.resize, ResizeRule::ShortSideCrop { .. })
    }

    fn has_levels_of(&self, other: &Self) -> bool {
        let levels = |trial: &Self| {
            let input = &trial.preset.input;
            (input.channels, input.divide_by, input.mean, input.std)
        };
        levels(self) == levels(other)
    }

    /// Accuracies are close within the half-width of the 95% interval of a fraction, at most 0.98 / √images.
    fn is_close_to(&self, other: &Self) -> bool {
        match (self.accuracy, other.accuracy) {
            (Some(own), Some(others)) => (own - others).abs() <= 0.98 / (self.known_images as f64).sqrt(),
            _ => (self.mean_top_score - other.mean_top_score).abs() <= CLOSE_TOP_SCORES,
        }
    }

    /// `predictions` contain every class.
    fn new(
        preset: Preset,
        is_present: bool,
        mut predictions: Vec<Result<Prediction, String>>,
        images: &[TrialImage],
    ) -> Self {
        let top_score = |prediction: &Result<Prediction, String>| {
            let prediction = prediction.as_ref().ok()?;
            let class = prediction.classes().first().map(|class| class.score);
            class.or_else(|| prediction.detections().first().map(|detection| detection.score))
        };
        let mean_top_score = mean(predictions.iter().map(|prediction| f64::from(top_score(prediction).unwrap_or(0.0))));
        let entropies: Vec<f64> = predictions.iter().flatten().filter_map(entropy).collect();
        let right = predictions.iter().zip(images).filter_map(|(prediction, image)| {
            let best = prediction.as_ref().ok().and_then(|prediction| Some(prediction.classes().first()?.index));
            Some(f64::from(u8::from(best == Some(image.truth?))))
        });
        let right: Vec<f64> = right.collect();
        for prediction in predictions.iter_mut().flatten() {
            if let PredictionContent::Classes(classes) = &mut prediction.content {
                classes.truncate(KeepRule::default().top_k);
            }
        }
        Self {
            preset,
            is_present,
            mean_top_score: mean_top_score.unwrap_or(0.0),
            mean_entropy: mean(entropies.into_iter()),
            known_images: right.len(),
            accuracy: mean(right.into_iter()),
            predictions,
        }
    }
}

/// The entropy of the scores of all classes as a fraction of its maximum; `None` for a detector.
fn entropy(prediction: &Prediction) -> Option<f64> {
    let scores: Vec<f64> = prediction.classes().iter().map(|class| f64::from(class.score)).collect();
    let sum: f64 = scores.iter().sum();
    if scores.len() < 2 || sum <= 0.0 {
        return None;
    }
    let shares = scores.iter().map(|score| score / sum).filter(|share| *share > 0.0);
    Some(shares.map(|share| -share * share.ln()).sum::<f64>() / (scores.len() as f64).ln())
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = numbers.fold((0_u32, 0.0), |(count, sum), number| (count + 1, sum + number));
    (count > 0).then(|| sum / f64::from(count))
}

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
        let outputs = call(&mut self.session, card, &joined, &used_outputs(card), control)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{CardTask, ElementType, Layout};

    /// The trials of a classifier; `measured` has scores and accuracies by preset name.
    fn trials(measured: &[(&str, f64, Option<f64>)], known_images: usize) -> Vec<PresetTrial> {
        let input = ImageInput::new(Layout::Nchw, ElementType::Float32, ResizeRule::stretch(224, 224));
        let trial = |(name, mean_top_score, accuracy): &(&str, f64, Option<f64>)| PresetTrial {
            preset: crate::model::recognize::preset(CardTask::Classification, &input, name).unwrap(),
            is_present: false,
            predictions: Vec::new(),
            mean_top_score: *mean_top_score,
            mean_entropy: Some(0.5),
            accuracy: *accuracy,
            known_images,
        };
        measured.iter().map(trial).collect()
    }

    #[test]
    fn close_scores_do_not_separate_crop_and_stretch() {
        let (crop, stretch, other) = ("torchvision", "transformers-imagenet", "unit");
        for (measured, images, is_undecided) in [
            (vec![(crop, 0.8, None), (stretch, 0.75, None), (other, 0.2, None)], 0, true),
            (vec![(crop, 0.8, None), (stretch, 0.5, None), (other, 0.78, None)], 0, false),
            (vec![(crop, 0.8, Some(0.75)), (stretch, 0.6, Some(0.625))], 8, true),
            (vec![(crop, 0.8, Some(0.75)), (stretch, 0.6, Some(0.625))], 1000, false),
        ] {
            let undecided = undecided_resize(&trials(&measured, images));
            assert_eq!(undecided.is_some(), is_undecided, "{measured:?}: {undecided:?}");
        }
    }
}
