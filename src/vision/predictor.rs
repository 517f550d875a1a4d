//! Whatever turns prepared pictures into predictions.

use super::Tensor;
use crate::domain::{AxisTransform, Picture, Prediction};
use crate::tasks::TaskControl;

/// A model somewhere. The pipeline in `predict` feeds it and can not tell where it computes.
pub trait Predictor: Send + Sync {
    /// Turns a picture into the model's input. Called on many threads at once.
    fn prepare(&self, picture: &Picture) -> Result<Prepared, PredictError>;

    /// One call of the model on lane `lane` (`0..lanes()`), which no other call uses meanwhile. Gives one prediction for
    /// each of `batch`, in order, or one error for all of them.
    fn predict(
        &self,
        lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Prediction>, PredictError>;

    /// As [`Self::predict`], with every class and box that the model gave, however small its score. Where a predictor does not
    /// override this, it keeps no less anyway.
    fn predict_in_full(
        &self,
        lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Prediction>, PredictError> {
        self.predict(lane, batch, control)
    }

    /// How many calls may run side by side.
    fn lanes(&self) -> usize;

    /// The most pictures worth putting into one call.
    fn max_batch(&self) -> usize;
}

/// Why a picture has no prediction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    #[error("cancelled")]
    Cancelled,
    /// The device has not enough memory for this batch; a smaller one may fit.
    #[error("the device ran out of memory: {0}")]
    OutOfMemory(String),
    /// The device is gone (unplugged, reset, driver crash); nothing more can be computed until the model is loaded anew.
    #[error("the device was lost: {0}")]
    DeviceLost(String),
    /// The model or its answer; other pictures may do better.
    #[error("{0}")]
    Failed(String),
}

/// A picture as the model wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// With its batch dimension of 1 where the layout has one.
    pub tensor: Tensor,
    /// From the pixels of the resized picture that the model sees to those of the upright image.
    pub image_from_model: AxisTransform,
    /// Width and height of the picture inside the tensor, padding included, in pixels; normalised boxes refer to it.
    pub canvas_size: [u32; 2],
    /// Width and height of the upright image, in pixels.
    pub image_size: [u32; 2],
}
