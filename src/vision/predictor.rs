//! Whatever turns images into predictions: from tensors, or from the files themselves.

use std::sync::Arc;

use super::Tensor;
use crate::domain::{AxisTransform, Prediction, RgbImage};
use crate::tasks::TaskControl;

/// A local or remote model. The pipeline in `predict` does not depend on where it runs.
pub trait Predictor: Send + Sync {
    /// Turns an image into the model's input. Called on many threads at once.
    fn prepare(&self, image: &RgbImage) -> Result<Prepared, PredictError>;

    /// One call of the model on lane `lane` (`0..lanes()`), which no other call uses meanwhile. Gives one prediction
    /// for each of `batch`, in order, or one error for all of them.
    fn predict(&self, lane: usize, batch: &[Prepared], control: &TaskControl) -> Result<Vec<Prediction>, PredictError>;

    /// As [`Self::predict`], with every class and box that the model gave, however small its score. If a predictor
    /// does not override this, it keeps no less anyway.
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

    /// The most images worth putting into one call.
    fn max_batch(&self) -> usize;
}

/// Remote model that takes images as they are in their files, and decodes them itself.
pub trait EncodedPredictor: Send + Sync {
    /// Asks about one image. Called on up to `lanes()` threads at once.
    fn predict(&self, image: &EncodedImage<'_>, control: &TaskControl) -> Result<Prediction, PredictError>;

    /// How many images may be on their way at once.
    fn lanes(&self) -> usize;
}

/// An image as it is in its file.
#[derive(Debug, Clone, Copy)]
pub struct EncodedImage<'i> {
    pub bytes: &'i [u8],
    /// Width and height of the upright image, in pixels.
    pub size: [u32; 2],
}

/// A model, whatever it takes.
#[derive(Clone)]
pub enum AnyPredictor {
    OfTensors(Arc<dyn Predictor>),
    OfFiles(Arc<dyn EncodedPredictor>),
}

impl From<Arc<dyn Predictor>> for AnyPredictor {
    fn from(predictor: Arc<dyn Predictor>) -> Self {
        Self::OfTensors(predictor)
    }
}

impl From<Arc<dyn EncodedPredictor>> for AnyPredictor {
    fn from(predictor: Arc<dyn EncodedPredictor>) -> Self {
        Self::OfFiles(predictor)
    }
}

/// Why an image has no prediction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    #[error("canceled")]
    Cancelled,
    /// The device has not enough memory for this batch; a smaller one may fit.
    #[error("the device ran out of memory: {0}")]
    OutOfMemory(String),
    /// The device is gone (unplugged, reset, driver crash); nothing more can be computed until the model is loaded
    /// anew.
    #[error("the device was lost: {0}")]
    DeviceLost(String),
    /// The remote model cannot be used for any image: it is gone, or access is denied.
    #[error("the remote model is unavailable: {0}")]
    OutOfReach(String),
    /// The model or its prediction; other images may do better.
    #[error("{0}")]
    Failed(String),
}

/// An image as the input of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The tensor, with a batch dimension of 1 if the layout has one.
    pub tensor: Tensor,
    /// The graph's other inputs by name, each with a batch dimension of 1.
    pub auxiliary: Vec<(String, Tensor)>,
    /// The transform from pixels of the resized image to those of the upright image.
    pub image_from_model: AxisTransform,
    /// Width and height of the image inside the tensor, padding included, in pixels; normalized boxes refer to it.
    pub canvas_size: [u32; 2],
    /// Width and height of the upright image, in pixels.
    pub image_size: [u32; 2],
}
