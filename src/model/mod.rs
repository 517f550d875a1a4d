//! From an image to a model's input tensor, and from its outputs to a prediction. Pure arithmetic: no files, no ONNX
//! Runtime.

pub mod catalog;
pub mod diagnostics;
pub mod download;
pub mod explain;
pub mod onnx;
mod postprocess;
mod predictor;
mod preprocess;
pub mod recognize;
mod resize;
pub mod runtime;

pub use crate::model::explain::{OcclusionGrid, occlusion_saliency};
pub use postprocess::{postprocess, rank_classes, raw_candidates, score_columns, softmax};
pub use predictor::{
    AnyPredictor, EncodedImage, EncodedPredictor, PredictError, Predictor, Prepared, Tensor, TensorData,
};
pub use preprocess::preprocess;
pub use resize::{ResizeWindow, resize};
