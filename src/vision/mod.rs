//! From an image to a model's input tensor, and from its outputs to a prediction. Pure arithmetic: no files, no ONNX
//! Runtime.

mod occlusion;
mod postprocess;
mod predictor;
mod preprocess;
pub mod recognize;
mod resize;
mod tensor;

pub use occlusion::{OcclusionGrid, occlusion_saliency};
pub use postprocess::{postprocess, rank_classes, raw_candidates, score_columns, softmax};
pub use predictor::{AnyPredictor, EncodedImage, EncodedPredictor, PredictError, Predictor, Prepared};
pub use preprocess::preprocess;
pub use resize::{ResizeWindow, resize};
pub use tensor::{Tensor, TensorData};
