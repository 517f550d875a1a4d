//! A loaded graph. The only file that uses `ort::Session`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::f16;
use ort::environment::Environment;
use ort::session::builder::SessionBuilder;
use ort::session::{RunOptions, Session, SessionInputValue};
use ort::value::{DynValue, DynValueTypeMarker, Outlet, TensorElementType, TensorRef, ValueType};

use super::InferenceError;
use crate::local_file;
use crate::model::recognize::{Dimension, GraphSignature, Port, PortElement, with_outputs};
use crate::model::{PredictError, Tensor, TensorData};
use crate::tasks::TaskControl;

/// `kOrtSessionOptionsModelExternalInitializersFileFolderPath`
const EXTERNAL_DATA_FOLDER: &str = "session.model_external_initializers_file_folder_path";

/// A graph in memory, ready for one call at a time.
pub struct OnnxSession {
    session: Session,
    run_options: Arc<RunOptions>,
}

impl OnnxSession {
    /// Loads `weights`. `configure` selects threads and execution provider.
    ///
    /// # Errors
    /// [`InferenceError::Load`] with ONNX Runtime's message: not a model, an unknown operator, a newer opset, a
    /// provider that does not work here.
    pub fn load(
        environment: &Environment,
        weights: &Path,
        configure: impl FnOnce(SessionBuilder) -> ort::Result<SessionBuilder>,
    ) -> Result<Self, InferenceError> {
        let session = Self::commit(environment, configure, |builder| builder.commit_from_file(weights));
        session
            .map_err(|error| InferenceError::Load { weights: weights.to_owned(), reason: in_one_line(error.message()) })
    }

    /// As [`Self::load`], with `tensors` inside the graph as additional outputs.
    pub fn load_with_outputs(
        environment: &Environment,
        weights: &Path,
        tensors: &[&str],
        configure: impl FnOnce(SessionBuilder) -> ort::Result<SessionBuilder>,
    ) -> Result<Self, InferenceError> {
        let failed = |reason| InferenceError::Load { weights: weights.to_owned(), reason };
        let graph = local_file::read(weights).map_err(|error| failed(error.to_string()))?;
        let graph = with_outputs(graph, tensors);
        // Where the files with large tensors are, which a graph in memory does not know.
        let folder = weights.parent().unwrap_or(Path::new("")).to_string_lossy().into_owned();
        let configure =
            |builder| configure(builder)?.with_config_entry(EXTERNAL_DATA_FOLDER, folder).map_err(Into::into);
        let session = Self::commit(environment, configure, |builder| builder.commit_from_memory(&graph));
        session.map_err(|error| failed(in_one_line(error.message())))
    }

    /// As [`Self::load`], for a graph in memory.
    pub fn from_bytes(
        environment: &Environment,
        graph: &[u8],
        configure: impl FnOnce(SessionBuilder) -> ort::Result<SessionBuilder>,
    ) -> Result<Self, InferenceError> {
        let session = Self::commit(environment, configure, |builder| builder.commit_from_memory(graph));
        session.map_err(|error| InferenceError::Load { weights: PathBuf::new(), reason: in_one_line(error.message()) })
    }

    fn commit(
        environment: &Environment,
        configure: impl FnOnce(SessionBuilder) -> ort::Result<SessionBuilder>,
        commit: impl FnOnce(&mut SessionBuilder) -> ort::Result<Session>,
    ) -> ort::Result<Self> {
        let mut builder = configure(SessionBuilder::new(environment)?)?;
        Ok(Self { session: commit(&mut builder)?, run_options: Arc::new(RunOptions::new()?) })
    }

    /// The name of the graph's input `index`, in the graph's order.
    pub fn input_name(&self, index: usize) -> Option<&str> {
        self.session.inputs().get(index).map(ort::value::Outlet::name)
    }

    pub fn signature(&self) -> GraphSignature {
        let metadata = self.session.metadata().ok();
        let keys = metadata.as_ref().and_then(|metadata| metadata.custom_keys().ok());
        let entry = |key: String| {
            let value = metadata.as_ref()?.custom(&key)?;
            Some((key, value))
        };
        GraphSignature {
            inputs: self.session.inputs().iter().map(port).collect(),
            outputs: self.session.outputs().iter().map(port).collect(),
            metadata: keys.into_iter().flatten().filter_map(entry).collect(),
            opset: self.session.opset_for_domain("").filter(|opset| *opset > 0),
            producer: metadata.as_ref().and_then(ort::session::ModelMetadata::producer).unwrap_or_default(),
        }
    }

    /// Calls the graph with named inputs, each converted to the type that the graph declares. Returns the outputs in
    /// `output_names`, or all if it is empty. 16-bit floats and narrow integers are widened. Ends soon after `control`
    /// is canceled.
    pub fn run(
        &mut self,
        inputs: &[(&str, &Tensor)],
        output_names: &[&str],
        control: &TaskControl,
    ) -> Result<BTreeMap<String, Tensor>, PredictError> {
        let as_predict_error = |error: &ort::Error| predict_error(error, control);
        // A canceled call leaves its mark on the options. Clear it first: a cancellation after this line is seen by the
        // hook, an earlier one by `on_cancel` itself.
        self.run_options.unterminate().map_err(|error| as_predict_error(&error))?;
        let run_options = Arc::clone(&self.run_options);
        let _terminate_on_cancel = control.on_cancel(move || {
            if let Err(error) = run_options.terminate() {
                log::error!("could not stop the running model: {error}");
            }
        });
        let values = inputs.iter().map(|&(name, tensor)| {
            let value = self.value(name, tensor)?.map_err(|error| as_predict_error(&error))?;
            Ok((Cow::Borrowed(name), value))
        });
        let inputs: Vec<(Cow<'_, str>, SessionInputValue<'_>)> = values.collect::<Result<_, PredictError>>()?;
        let outputs =
            self.session.run_with_options(inputs, &*self.run_options).map_err(|error| as_predict_error(&error))?;
        if output_names.is_empty() {
            // Unreadable outputs are skipped: Custom Vision returns a string next to the scores.
            let all = outputs.iter();
            return Ok(all.filter_map(|(name, value)| Some((name.to_owned(), extract(name, &value).ok()?))).collect());
        }
        let named = outputs.iter().filter(|(name, _)| output_names.contains(name));
        named.map(|(name, value)| Ok((name.to_owned(), extract(name, &value)?))).collect()
    }
}

impl OnnxSession {
    fn value<'t>(&self, name: &str, tensor: &'t Tensor) -> Result<ort::Result<SessionInputValue<'t>>, PredictError> {
        let Some(port) = self.session.inputs().iter().find(|port| port.name() == name) else {
            let names: Vec<&str> = self.session.inputs().iter().map(ort::value::Outlet::name).collect();
            return Err(PredictError::Failed(format!(
                "the model has no input “{name}”; it has {}; correct the model card",
                names.join(", ")
            )));
        };
        let shape = tensor.shape.as_slice();
        Ok(match (&tensor.data, port.dtype().tensor_type()) {
            (TensorData::F32(values), Some(TensorElementType::Float16)) => {
                owned(shape, values.iter().map(|&value| f16::from_f32(value)))
            }
            (TensorData::F32(values), Some(TensorElementType::Float64)) => {
                owned(shape, values.iter().map(|&value| f64::from(value)))
            }
            (TensorData::F32(values), Some(TensorElementType::Int64)) => {
                owned(shape, values.iter().map(|&value| value as i64))
            }
            (TensorData::F32(values), Some(TensorElementType::Int32)) => {
                owned(shape, values.iter().map(|&value| value as i32))
            }
            (TensorData::F32(values), Some(TensorElementType::Bool)) => {
                owned(shape, values.iter().map(|&value| value != 0.0))
            }
            (TensorData::F32(values), _) => view(shape, values),
            (TensorData::U8(values), _) => view(shape, values),
            (TensorData::I64(values), _) => view(shape, values),
        })
    }
}

fn owned<T>(shape: &[usize], values: impl Iterator<Item = T>) -> ort::Result<SessionInputValue<'static>>
where
    T: ort::value::PrimitiveTensorElementType + std::fmt::Debug + Clone + 'static,
{
    Ok(ort::value::Tensor::from_array((shape.to_vec(), values.collect::<Vec<T>>()))?.into())
}

fn view<'t, T>(shape: &'t [usize], values: &'t [T]) -> ort::Result<SessionInputValue<'t>>
where
    T: ort::value::PrimitiveTensorElementType + std::fmt::Debug + Clone + 'static,
{
    Ok(TensorRef::from_array_view((shape, values))?.into())
}

/// Copies an output, widened to one of the types in [`TensorData`].
fn extract(name: &str, value: &DynValue) -> Result<Tensor, PredictError> {
    if matches!(value.dtype(), ValueType::Sequence(_)) {
        return extract_maps(name, value);
    }
    let ValueType::Tensor { ty, shape, .. } = value.dtype() else {
        return Err(PredictError::Failed(format!("the model's output “{name}” is not a tensor")));
    };
    let shape: Vec<usize> = shape.iter().map(|&side| usize::try_from(side).unwrap_or(0)).collect();
    macro_rules! widened {
        ($element:ty, $kind:ident, $widen:expr) => {
            value
                .try_extract_tensor::<$element>()
                .map(|(_, values)| TensorData::$kind(values.iter().copied().map($widen).collect()))
        };
    }
    let data = match ty {
        TensorElementType::Float32 => {
            value.try_extract_tensor::<f32>().map(|(_, values)| TensorData::F32(values.to_vec()))
        }
        TensorElementType::Float64 => widened!(f64, F32, |value| value as f32),
        TensorElementType::Float16 => widened!(f16, F32, f16::to_f32),
        TensorElementType::Uint8 => widened!(u8, U8, |value| value),
        TensorElementType::Int64 => widened!(i64, I64, |value| value),
        TensorElementType::Int32 => widened!(i32, I64, i64::from),
        TensorElementType::Int8 => widened!(i8, I64, i64::from),
        other => {
            let message = format!("the model's output “{name}” has type {other:?}, which Spotcheck cannot read");
            return Err(PredictError::Failed(message));
        }
    };
    let data = data.map_err(|error| PredictError::Failed(error.message().to_owned()))?;
    Ok(Tensor::new(shape, data))
}

/// One map from class name to score per image, as returned by `ZipMap`, ordered by name.
fn extract_maps(name: &str, value: &DynValue) -> Result<Tensor, PredictError> {
    let failed = |error: ort::Error| PredictError::Failed(format!("the model's output “{name}”: {}", error.message()));
    let maps = value.try_extract_sequence::<DynValueTypeMarker>().map_err(failed)?;
    let mut rows = Vec::new();
    for map in &maps {
        let row = map.try_extract_key_values::<String, f32>().map_err(failed)?;
        rows.push(row.into_iter().collect::<BTreeMap<String, f32>>());
    }
    let names: Vec<String> = rows.first().into_iter().flat_map(|row| row.keys().cloned()).collect();
    if rows.iter().any(|row| !row.keys().eq(&names)) {
        return Err(PredictError::Failed(format!(
            "the model's output “{name}” has different class names for each image"
        )));
    }
    let values = rows.iter().flat_map(|row| row.values().copied()).collect();
    Ok(Tensor { names, ..Tensor::f32([rows.len(), rows.first().map_or(0, BTreeMap::len)], values) })
}

fn predict_error(error: &ort::Error, control: &TaskControl) -> PredictError {
    if control.is_cancelled() {
        return PredictError::Cancelled;
    }
    classify(&in_one_line(error.message()))
}

/// ONNX Runtime's message, to follow a colon.
pub(super) fn in_one_line(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    words.join(" ").trim_end_matches([' ', '.']).to_owned()
}

/// What the caller can do about an error is clear only from its message: all errors have the same code.
fn classify(message: &str) -> PredictError {
    const LOST: &[&str] = &[
        "device lost",
        "device is lost",
        "device_lost",
        "device was lost",
        "device removed",
        "device_removed",
        "device_hung",
        "device_reset",
        "cuda failure 46:",
        "cuda failure 700:",
        "cuda failure 719:",
        "illegal memory access",
        "unspecified launch failure",
        "cudaerrordevicesunavailable",
        "no cuda-capable device",
        "driver shutting down",
        "fallen off the bus",
    ];
    const OUT_OF_MEMORY: &[&str] = &[
        "out of memory",
        "out_of_memory",
        "out_of_device_memory",
        "out_of_host_memory",
        "outofmemory",
        "memoryallocation",
        "alloc_failed",
        "failed to allocate memory",
        "bad_alloc",
        "bad allocation",
    ];
    let words = message.to_ascii_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    if says(LOST) {
        PredictError::DeviceLost(message.to_owned())
    } else if says(OUT_OF_MEMORY) {
        PredictError::OutOfMemory(message.to_owned())
    } else {
        PredictError::Failed(format!("ONNX Runtime could not run the model: {message}"))
    }
}

pub(super) fn port(outlet: &Outlet) -> Port {
    let (element, dims) = match outlet.dtype() {
        ValueType::Tensor { ty, shape, dimension_symbols } => {
            let dimension = |(position, &side): (usize, &i64)| match u64::try_from(side) {
                Ok(side) => Dimension::Fixed(side),
                Err(_) => Dimension::Free(dimension_symbols.get(position).cloned().unwrap_or_default()),
            };
            (element(*ty), shape.iter().enumerate().map(dimension).collect())
        }
        ValueType::Sequence(_) => (PortElement::Other("sequence".to_owned()), Vec::new()),
        ValueType::Map { .. } => (PortElement::Other("map".to_owned()), Vec::new()),
        ValueType::Optional(_) => (PortElement::Other("optional".to_owned()), Vec::new()),
    };
    Port { name: outlet.name().to_owned(), element, dims }
}

fn element(element: TensorElementType) -> PortElement {
    match element {
        TensorElementType::Float32 => PortElement::Float32,
        TensorElementType::Float16 => PortElement::Float16,
        TensorElementType::Float64 => PortElement::Float64,
        TensorElementType::Uint8 => PortElement::Uint8,
        TensorElementType::Int32 => PortElement::Int32,
        TensorElementType::Int64 => PortElement::Int64,
        other => PortElement::Other(format!("{other:?}").to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_device_and_model_errors_are_distinguished() {
        for message in [
            "CUDA failure 2: out of memory ; GPU=0 ; hostname=box",
            "Non-zero status code returned while running Conv node. Status Message: Failed to allocate memory for \
            requested buffer of size 9",
            "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED",
            "std::bad_alloc",
            "vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY",
            "D3D12 create resource failed with E_OUTOFMEMORY (0x8007000E)",
        ] {
            let error = classify(message);
            assert!(matches!(&error, PredictError::OutOfMemory(said) if said == message), "{error:?}");
        }
        for message in [
            "CUDA failure 700: an illegal memory access was encountered",
            "CUDA failure 719: unspecified launch failure",
            "WebGPU device lost (1): a valid external Instance reference no longer exists",
            "vkQueueSubmit failed with VK_ERROR_DEVICE_LOST",
            "DXGI_ERROR_DEVICE_REMOVED (0x887A0005)",
        ] {
            let error = classify(message);
            assert!(matches!(&error, PredictError::DeviceLost(said) if said == message), "{error:?}");
        }
        let error = classify("Got invalid dimensions for input: input");
        assert!(matches!(&error, PredictError::Failed(_)), "{error:?}");
    }
}
