//! The signature of a graph: names, types and dimensions of what goes in and comes out.

use std::collections::BTreeMap;
use std::fmt;

/// No model takes a larger side, in pixels; a graph that declares one would only fill the memory.
pub(super) const MAX_SIDE: u32 = 16_384;

/// The outside of a model's graph, as ONNX Runtime reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphSignature {
    /// The inputs in the graph's order; constants that may be replaced are left out.
    pub inputs: Vec<Port>,
    /// The outputs in the graph's order.
    pub outputs: Vec<Port>,
    /// What the exporter wrote down, by key.
    pub metadata: BTreeMap<String, String>,
    /// The version of ONNX's own operators; `None` if the runtime does not report it.
    pub opset: Option<u32>,
    /// The program that wrote the file; empty if it does not say.
    pub producer: String,
}

/// An input or an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    pub element: PortElement,
    /// Empty for a single number, and if the graph leaves even the count of dimensions open.
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
    /// Anything else by its name in ONNX, a sequence or a map for example.
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimension {
    Fixed(u64),
    /// A dimension that is known only when the graph runs, with its name in the graph, which may be empty.
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
pub(super) struct ShapeText<'d>(pub(super) &'d [Dimension]);

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
