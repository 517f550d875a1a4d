//! Tries common ways to prepare images, and says how sure and how right the model is with each.

use super::inspection::{InspectError, Inspection};
use crate::domain::{ImageInput, KeepRule, LabelSet, ModelCard, Prediction, PredictionContent, RgbImage};
use crate::tasks::TaskControl;
use crate::vision::recognise::{Preset, presets};
use crate::vision::{PredictError, preprocess};

/// An image to try presets on.
#[derive(Debug, Clone)]
pub struct TrialImage {
    pub name: String,
    pub image: RgbImage,
    /// The index of its class, if it is known.
    pub truth: Option<u32>,
}

/// What a preset gave.
#[derive(Debug, Clone)]
pub struct PresetTrial {
    pub preset: Preset,
    /// Whether it is the card's input.
    pub is_present: bool,
    /// One for each image, in order, with at most five classes; an error is the reason.
    pub predictions: Vec<Result<Prediction, String>>,
    /// The mean score of the best class or box, `0.0..=1.0`; 0 for an image without one.
    pub mean_top_score: f64,
    /// Of classifiers: 0 if the model is certain, 1 if all classes are alike.
    pub mean_entropy: Option<f64>,
    /// The share of the images with a known class whose best class is that one.
    pub accuracy: Option<f64>,
}

/// The class whose name a folder has.
pub fn truth_of(folder_name: &str, labels: &LabelSet) -> Option<u32> {
    let folder_name = folder_name.to_lowercase();
    labels.iter().find(|(_, name)| name.to_lowercase() == folder_name).map(|(id, _)| id)
}

impl Inspection {
    /// Predicts each image with each preset. Progress is counted in runs of the graph.
    ///
    /// # Errors
    /// [`InspectError::Cancelled`]; an image that cannot be predicted is an error of that image.
    pub fn try_presets(
        &mut self,
        card: &ModelCard,
        labels: &LabelSet,
        images: &[TrialImage],
        control: &TaskControl,
    ) -> Result<Vec<PresetTrial>, InspectError> {
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
            trials.push(PresetTrial::of(preset, is_present, outcomes, images));
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
    /// `predictions` have every class.
    fn of(
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
            accuracy: mean(right.into_iter()),
            predictions,
        }
    }
}

/// The entropy of the scores of all classes as a share of the largest possible; `None` for a detector.
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
