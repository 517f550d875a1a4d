//! Detects a detector that finds nothing, which usually means wrong preprocessing.

use crate::domain::{Prediction, PredictionContent};

/// The best score in the images predicted so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingFound {
    images: usize,
    best_score: f32,
}

impl NothingFound {
    /// Boxes count from this score, `0.0..=1.0`: the usual threshold of exporters.
    pub const MIN_SCORE: f32 = 0.25;
    /// Enough images for a conclusion; one or two may well be empty.
    const ENOUGH_IMAGES: usize = 3;

    /// Counts an image with boxes of these scores.
    pub fn add(&mut self, scores: impl IntoIterator<Item = f32>) {
        self.images += 1;
        self.best_score = scores.into_iter().fold(self.best_score, f32::max);
    }

    pub fn add_prediction(&mut self, prediction: &Prediction) {
        if let PredictionContent::Detections(boxes) = &prediction.content {
            self.add(boxes.iter().map(|found| found.score));
        }
    }

    pub fn images(&self) -> usize {
        self.images
    }

    /// Whether several images have no box that counts.
    pub fn is_suspicious(&self) -> bool {
        self.images >= Self::ENOUGH_IMAGES && self.best_score < Self::MIN_SCORE
    }

    /// What happened, and what it may mean.
    pub fn message(&self) -> String {
        format!(
            "None of the first {} images has a box with a score ≥ {:.2}. If they show objects of the model's \
             classes, the preprocessing is probably wrong",
            self.images,
            Self::MIN_SCORE
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_images_without_confident_boxes_are_suspicious() {
        for (images, suspicious) in [
            (&[][..], false),
            (&[&[][..], &[0.1]], false),
            (&[&[], &[0.1], &[0.24, 0.2]], true),
            (&[&[], &[0.1], &[0.2, 0.3]], false),
            (&[&[0.9], &[], &[], &[]], false),
        ] {
            let mut found = NothingFound::default();
            for scores in images {
                found.add(scores.iter().copied());
            }
            assert_eq!(found.is_suspicious(), suspicious, "{images:?}");
        }
    }
}
