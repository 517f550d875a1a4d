//! The signature of a graph: names, types and dimensions of its inputs and outputs.

use std::collections::BTreeMap;
use std::fmt;

/// No real model has a larger side, in pixels; a graph that declares one would only fill the memory.
pub(super) const MAX_SIDE: u32 = 16_384;

/// The interface of a model's graph, as reported by ONNX Runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphSignature {
    /// In the graph's order, without replaceable constants.
    pub inputs: Vec<Port>,
    /// In the graph's order.
    pub outputs: Vec<Port>,
    /// The exporter's notes, by key.
    pub metadata: BTreeMap<String, String>,
    /// The version of ONNX's own operators; `None` if the runtime does not report it.
    pub opset: Option<u32>,
    /// The program that wrote the file; empty if not stated.
    pub producer: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    pub element: PortElement,
    /// Empty for a scalar, and if the graph does not even fix the number of dimensions.
    pub dims: Vec<Dimension>,
}

/// The number type of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortElement {
    Float32,
    Float16,
    Float64,
    Uint8,
    Int32,
    Int64,
    /// Anything else by its ONNX name, such as a sequence or a map.
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimension {
    Fixed(u64),
    /// A dimension that is known only at run time, with its name in the graph, which can be empty.
    Free(String),
}

impl Dimension {
    pub fn is_free(&self) -> bool {
        matches!(self, Self::Free(_))
    }

    pub fn fixed(&self) -> Option<u64> {
        match self {
            Self::Fixed(size) => Some(*size),
            Self::Free(_) => None,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(formatter),
            Self::Free(name) if name.is_empty() => formatter.write_str("?"),
            Self::Free(name) => formatter.write_str(name),
        }
    }
}

impl fmt::Display for PortElement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Float32 => "float32",
            Self::Float16 => "float16",
            Self::Float64 => "float64",
            Self::Uint8 => "uint8",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Other(name) => name,
        })
    }
}

impl fmt::Display for Port {
    /// `image float32 [batch, 3, 224, 224]`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.name, self.element, ShapeText(&self.dims))
    }
}

/// Dimensions in brackets.
pub(super) struct ShapeText<'d>(pub &'d [Dimension]);

impl fmt::Display for ShapeText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[")?;
        for (position, dimension) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(formatter, "{separator}{dimension}")?;
        }
        formatter.write_str("]")
    }
}
