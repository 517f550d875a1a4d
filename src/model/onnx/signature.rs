//! Converts ONNX Runtime's description of a port to the types of `vision::recognize`.

use ort::value::{Outlet, TensorElementType, ValueType};

use crate::model::recognize::{Dimension, Port, PortElement};

pub(crate) fn port(outlet: &Outlet) -> Port {
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
