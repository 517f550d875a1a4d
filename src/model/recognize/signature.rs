//! The signature of a graph: names, types and dimensions of its inputs and outputs; and the names of its nodes and
//! values, which ONNX Runtime does not report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

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
#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum PortElement {
    Float32,
    Float16,
    Float64,
    Uint8,
    Int32,
    Int64,
    /// Anything else by its ONNX name, such as a sequence or a map.
    #[strum(to_string = "{0}")]
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

/// A node of a graph, with its attributes that are integers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GraphNode {
    pub name: String,
    pub op: String,
    /// Omitted inputs are empty.
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub attributes: BTreeMap<String, Integers>,
}

/// A scalar or a short list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Integers {
    pub values: Vec<i64>,
    pub is_scalar: bool,
}

/// The nodes of a graph, without those of its subgraphs.
#[derive(Debug, Default)]
pub(super) struct GraphNodes {
    /// In topological order.
    pub nodes: Vec<GraphNode>,
    /// The names of stored tensors.
    pub constants: BTreeSet<String>,
    /// The values of constants that can be indices, axes or ranges.
    pub integers: BTreeMap<String, Integers>,
    pub first_output: Option<String>,
}

/// Field numbers in `onnx.proto`.
const GRAPH: u64 = 7;
const NODE: u64 = 1;
const INITIALIZER: u64 = 5;
const OUTPUT: u64 = 12;
const NAME_OF_INITIALIZER: u64 = 8;
const NAME_OF_OUTPUT: u64 = 1;
/// Inputs, outputs and the name of a node.
const NODE_NAMES: std::ops::RangeInclusive<u64> = 1..=3;
const ATTRIBUTE_OF_NODE: u64 = 5;
/// Longer names are skipped, in bytes.
const MAX_NAME: u64 = 4096;
/// More values than any tensor has axes.
const MAX_INTEGERS: usize = 16;

/// The first of the names that `accept` accepts, in the order of the nodes.
///
/// # Errors
/// The file cannot be read, or is not an ONNX file.
pub fn find_name<T>(mut file: impl Read + Seek, mut accept: impl FnMut(&str) -> Option<T>) -> io::Result<Option<T>> {
    let model_end = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut reader = Reader { file: BufReader::new(file), position: 0, number: 0 };
    while let Some((field, end)) = reader.next(model_end)? {
        while let Some((field, end)) = reader.next(if field == GRAPH { end } else { 0 })? {
            while let Some((field, end)) = reader.next(if field == NODE { end } else { 0 })? {
                if NODE_NAMES.contains(&field)
                    && let Some(found) = accept(&reader.text(end)?)
                {
                    return Ok(Some(found));
                }
                reader.skip_to(end)?;
            }
            reader.skip_to(end)?;
        }
        reader.skip_to(end)?;
    }
    Ok(None)
}

/// Reads the structure of a graph.
///
/// # Errors
/// The file cannot be read, or is not an ONNX file.
pub(super) fn read_nodes(mut file: impl Read + Seek) -> io::Result<GraphNodes> {
    let model_end = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut reader = Reader { file: BufReader::new(file), position: 0, number: 0 };
    let mut graph = GraphNodes::default();
    while let Some((field, end)) = reader.next(model_end)? {
        while let Some((part, end)) = reader.next(if field == GRAPH { end } else { 0 })? {
            let (mut node, mut tensor) = (GraphNode::default(), StoredTensor::default());
            let is_read = [NODE, INITIALIZER, OUTPUT].contains(&part);
            while let Some((field, end)) = reader.next(if is_read { end } else { 0 })? {
                match (part, field) {
                    (NODE, 1) => node.inputs.push(reader.text(end)?),
                    (NODE, 2) => node.outputs.push(reader.text(end)?),
                    (NODE, 3) => node.name = reader.text(end)?,
                    (NODE, 4) => node.op = reader.text(end)?,
                    (NODE, ATTRIBUTE_OF_NODE) => node.attributes.extend(reader.attribute(end)?),
                    (INITIALIZER, _) => tensor.field(field, end, &mut reader)?,
                    (OUTPUT, NAME_OF_OUTPUT) if graph.first_output.is_none() => {
                        graph.first_output = Some(reader.text(end)?);
                    }
                    _ => {}
                }
                reader.skip_to(end)?;
            }
            match part {
                NODE => {
                    // The value of a node `Constant` is its only attribute.
                    if let ("Constant", [output], Some(value)) =
                        (node.op.as_str(), node.outputs.as_slice(), node.attributes.values().next())
                    {
                        graph.integers.insert(output.clone(), value.clone());
                    }
                    graph.nodes.push(node);
                }
                INITIALIZER => {
                    graph.integers.extend(tensor.integers().map(|integers| (tensor.name.clone(), integers)));
                    graph.constants.insert(tensor.name);
                }
                _ => {}
            }
            reader.skip_to(end)?;
        }
        reader.skip_to(end)?;
    }
    Ok(graph)
}

/// A `TensorProto`, whose fields can be in any order.
#[derive(Default)]
struct StoredTensor {
    name: String,
    dims: Vec<i64>,
    element: i64,
    numbers: Vec<i64>,
    bytes: Vec<u8>,
}

impl StoredTensor {
    fn field<R: Read + Seek>(&mut self, field: u64, end: u64, reader: &mut Reader<R>) -> io::Result<()> {
        match field {
            1 => reader.integers(end, &mut self.dims)?,
            2 => self.element = reader.number,
            5 | 7 => reader.integers(end, &mut self.numbers)?,
            NAME_OF_INITIALIZER => self.name = reader.text(end)?,
            9 if end - reader.position <= (MAX_INTEGERS * size_of::<i64>()) as u64 => self.bytes = reader.bytes(end)?,
            _ => {}
        }
        Ok(())
    }

    /// `None` for other numbers, and for longer lists.
    fn integers(&self) -> Option<Integers> {
        const INT32: i64 = 6;
        const INT64: i64 = 7;
        let of_bytes = |size: usize| {
            let sign_extended = self.bytes.chunks_exact(size).map(|bytes| {
                let unused = 64 - 8 * size as u32;
                bytes.iter().rev().fold(0_i64, |number, byte| number << 8 | i64::from(*byte)) << unused >> unused
            });
            sign_extended.collect::<Vec<i64>>()
        };
        let size = match self.element {
            INT32 => 4,
            INT64 => 8,
            _ => return None,
        };
        let values = if self.bytes.is_empty() { self.numbers.clone() } else { of_bytes(size) };
        (1..=MAX_INTEGERS).contains(&values.len()).then_some(Integers { values, is_scalar: self.dims.is_empty() })
    }
}

/// A protocol buffer: <https://protobuf.dev/programming-guides/encoding/>.
struct Reader<R> {
    file: BufReader<R>,
    position: u64,
    /// The last field without a length, if it was a variable-length integer.
    number: i64,
}

impl<R: Read + Seek> Reader<R> {
    /// The number and end of the next message, text, list or integer in a message that ends at `end`. It begins at the
    /// position; an integer, which is in `number`, ends there.
    fn next(&mut self, end: u64) -> io::Result<Option<(u64, u64)>> {
        while self.position < end {
            let tag = self.varint()?;
            let length = match tag & 7 {
                0 => {
                    self.number = self.varint()?.cast_signed();
                    0
                }
                1 => 8,
                2 => self.varint()?,
                5 => 4,
                _ => return Err(ErrorKind::InvalidData.into()),
            };
            let field_end = self.position.checked_add(length).filter(|field_end| *field_end <= end);
            let field_end = field_end.ok_or(ErrorKind::InvalidData)?;
            if matches!(tag & 7, 0 | 2) {
                return Ok(Some((tag >> 3, field_end)));
            }
            self.skip_to(field_end)?;
        }
        Ok(None)
    }

    fn text(&mut self, end: u64) -> io::Result<String> {
        let bytes = if end - self.position <= MAX_NAME { self.bytes(end)? } else { Vec::new() };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn bytes(&mut self, end: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.position += (&mut self.file).take(end - self.position).read_to_end(&mut bytes)? as u64;
        Ok(bytes)
    }

    /// The integer that was read last, or those of a list up to `end`; only the first ones of a long list.
    fn integers(&mut self, end: u64, into: &mut Vec<i64>) -> io::Result<()> {
        if self.position == end {
            into.push(self.number);
        }
        while self.position < end && into.len() <= MAX_INTEGERS {
            into.push(self.varint()?.cast_signed());
        }
        into.truncate(MAX_INTEGERS + 1);
        if self.position > end { Err(ErrorKind::InvalidData.into()) } else { Ok(()) }
    }

    /// The name and value of an attribute that is an integer, a short list of them, or such a tensor.
    fn attribute(&mut self, end: u64) -> io::Result<Option<(String, Integers)>> {
        const TENSOR: u64 = 5;
        let (mut name, mut numbers, mut tensor) = (String::new(), None, StoredTensor::default());
        let mut values = Vec::new();
        while let Some((field, end)) = self.next(end)? {
            match field {
                1 => name = self.text(end)?,
                3 => numbers = Some(Integers { values: vec![self.number], is_scalar: true }),
                TENSOR => {
                    while let Some((field, end)) = self.next(end)? {
                        tensor.field(field, end, self)?;
                        self.skip_to(end)?;
                    }
                }
                8 => self.integers(end, &mut values)?,
                _ => {}
            }
            self.skip_to(end)?;
        }
        if (1..=MAX_INTEGERS).contains(&values.len()) {
            numbers = Some(Integers { values, is_scalar: false });
        }
        Ok(numbers.or(tensor.integers()).map(|numbers| (name, numbers)))
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.file.read_exact(&mut byte)?;
            self.position += 1;
            number |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ErrorKind::InvalidData.into())
    }

    /// `position` is in the file and not before the present one.
    fn skip_to(&mut self, position: u64) -> io::Result<()> {
        let distance = i64::try_from(position - self.position).map_err(|_| ErrorKind::InvalidData)?;
        self.file.seek_relative(distance)?;
        self.position = position;
        Ok(())
    }
}
