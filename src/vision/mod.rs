//! From a picture to the tensor a model wants, and from its outputs to a prediction. Pure arithmetic: no files, no
//! ONNX Runtime.

mod predictor;
mod tensor;

pub use predictor::{PredictError, Predictor, Prepared};
pub use tensor::{Tensor, TensorData};
