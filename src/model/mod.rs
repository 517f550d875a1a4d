//! From an image to a model's input tensor, and from its outputs to a prediction: the trait of all models, and pure
//! arithmetic without files or ONNX Runtime.

mod embedding;
pub mod explain;
mod postprocess;
mod preprocess;
mod resize;

use std::sync::Arc;

use crate::alike::{Embedding, ImageEmbeddings};
use crate::domain::{AxisTransform, BoundingBox, Prediction, RgbImage};
use crate::tasks::TaskControl;

pub use crate::model::explain::{OcclusionGrid, occlusion_saliency};
pub use embedding::{
    MAX_DIMS, average_under, boxes_to_describe, embedding_dims, embeddings_of, encoded, vectors_of_candidates,
};
pub use postprocess::{candidates_of_boxes, postprocess, rank_classes, raw_candidates, score_columns, softmax};
pub use preprocess::preprocess;
pub use resize::{ResizeWindow, resize};

/// Row-major numbers with their shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub shape: Vec<usize>,
    pub data: TensorData,
    /// Names of the values along the last dimension, if a graph provides them; otherwise empty.
    pub names: Vec<String>,
}

/// The number types that image models use.
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    F32(Vec<f32>),
    U8(Vec<u8>),
    I64(Vec<i64>),
}

impl Tensor {
    pub fn new(shape: impl Into<Vec<usize>>, data: TensorData) -> Self {
        Self { shape: shape.into(), data, names: Vec::new() }
    }

    pub fn f32(shape: impl Into<Vec<usize>>, data: Vec<f32>) -> Self {
        Self::new(shape, TensorData::F32(data))
    }

    pub fn u8(shape: impl Into<Vec<usize>>, data: Vec<u8>) -> Self {
        Self::new(shape, TensorData::U8(data))
    }

    pub fn i64(shape: impl Into<Vec<usize>>, data: Vec<i64>) -> Self {
        Self::new(shape, TensorData::I64(data))
    }

    pub fn len(&self) -> usize {
        match &self.data {
            TensorData::F32(values) => values.len(),
            TensorData::U8(values) => values.len(),
            TensorData::I64(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as 64-bit floats, exact except for integers beyond 2^53.
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.data {
            TensorData::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
            TensorData::U8(values) => values.iter().map(|&value| f64::from(value)).collect(),
            TensorData::I64(values) => values.iter().map(|&value| value as f64).collect(),
        }
    }
}

/// A local model. The pipeline in `predict` does not depend on its implementation.
pub trait Predictor: Send + Sync {
    /// Turns an image into the model's input. Called on many threads in parallel.
    fn prepare(&self, image: &RgbImage) -> Result<Prepared, PredictError>;

    /// One model call on lane `lane` (`0..lanes()`), which no other call uses meanwhile. Returns one prediction for
    /// each of `batch`, in order, or one error for all of them.
    fn predict(&self, lane: usize, batch: &[Prepared], control: &TaskControl) -> Result<Vec<Prediction>, PredictError>;

    /// As [`Self::predict`], with the embeddings of each image and its boxes, if the model has some.
    fn predict_with_embeddings(
        &self,
        lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Predicted>, PredictError> {
        let predictions = self.predict(lane, batch, control)?;
        Ok(predictions.into_iter().map(|prediction| Predicted { prediction, embeddings: None }).collect())
    }

    /// The vector of what is under `bounds`, in pixels of the upright image: as that of a box.
    ///
    /// # Errors
    /// Also if the model has no vectors for parts of an image.
    fn embed_region(
        &self,
        _image: &Prepared,
        _bounds: BoundingBox,
        _control: &TaskControl,
    ) -> Result<Embedding, PredictError> {
        Err(PredictError::Failed("the model has no embeddings of boxes".to_owned()))
    }

    /// As [`Self::predict`], with every class and box that the model returned, however low its score. A predictor that
    /// does not override this keeps everything anyway.
    fn predict_in_full(
        &self,
        lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Prediction>, PredictError> {
        self.predict(lane, batch, control)
    }

    /// The number of calls that can run in parallel.
    fn lanes(&self) -> usize;

    /// The largest useful number of images per call.
    fn max_batch(&self) -> usize;
}

/// What a local model computes for an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    pub prediction: Prediction,
    pub embeddings: Option<ImageEmbeddings>,
}

/// A remote model that receives encoded images and decodes them itself.
pub trait EncodedPredictor: Send + Sync {
    /// Predicts one image. Called on up to `lanes()` threads in parallel.
    fn predict(&self, image: &EncodedImage<'_>, control: &TaskControl) -> Result<Prediction, PredictError>;

    /// The maximum number of concurrent requests.
    fn lanes(&self) -> usize;
}

/// An encoded image, as in its file.
#[derive(Debug, Clone, Copy)]
pub struct EncodedImage<'i> {
    pub bytes: &'i [u8],
    /// Width and height of the upright image, in pixels.
    pub size: [u32; 2],
}

/// A model that takes tensors or encoded images.
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
    /// The device is gone (unplugged, reset, driver crash); nothing can be computed until the model is loaded again.
    #[error("the device was lost: {0}")]
    DeviceLost(String),
    /// The remote model cannot be used for any image: it does not exist, or access is denied.
    #[error("the remote model is unavailable: {0}")]
    OutOfReach(String),
    /// A failure of the model or its prediction; other images may succeed.
    #[error("{0}")]
    Failed(String),
}

/// An image as a model's input.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Has a batch dimension of 1 if the layout has one.
    pub tensor: Tensor,
    /// The graph's other inputs by name, each with a batch dimension of 1.
    pub auxiliary: Vec<(String, Tensor)>,
    /// The transform from pixels of the resized image to those of the upright image.
    pub image_from_model: AxisTransform,
    /// Width and height of the image inside the tensor, including padding, in pixels; normalized boxes refer to it.
    pub canvas_size: [u32; 2],
    /// Width and height of the upright image, in pixels.
    pub image_size: [u32; 2],
}
