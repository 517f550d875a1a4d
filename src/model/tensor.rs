//! Plain tensors: inputs and outputs of models.

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
