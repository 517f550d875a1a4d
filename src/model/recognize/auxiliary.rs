//! Inputs other than the image: which of them expect a size.

use super::signature::{Dimension, MAX_SIDE, Port, PortElement};
use super::{Findings, Refusal};
use crate::domain::{AuxiliaryInput, AuxiliaryValue};

/// What each input other than the image is filled with.
///
/// # Errors
/// An input that is neither a size nor a mask.
pub(super) fn recognize(others: &[&Port], findings: &mut Findings) -> Result<Vec<AuxiliaryInput>, Refusal> {
    let sizes = others.iter().filter(|port| is_pair(port) && !is_integer(port)).count();
    let mut found = Vec::new();
    for port in others {
        let name = port.name.to_lowercase();
        let (value, is_known, because) = match (is_pair(port), is_integer(port)) {
            // The ONNX Model Zoo's YOLOv3; `orig_target_sizes` has the width first.
            (true, is_integer) if name.contains("shape") && (is_integer || sizes == 1) => {
                (AuxiliaryValue::ImageHeightWidth, false, "two numbers named “shape” are the image's height and width")
            }
            (true, true) => {
                let because = "two whole numbers are the image size; detectors expect the width first";
                (AuxiliaryValue::ImageWidthHeight, false, because)
            }
            (true, false) if sizes == 1 => {
                (AuxiliaryValue::ScaleFactor, false, "two floats are PaddleDetection's scale factor")
            }
            (true, false) if name.contains("scale") => (AuxiliaryValue::ScaleFactor, false, "by its name"),
            (true, false) if name.contains("shape") => (AuxiliaryValue::InputHeightWidth, false, "by its name"),
            // PaddleDetection's order is `im_shape`, `image`, `scale_factor`.
            (true, false) if found.is_empty() => {
                let because = "the first of two pairs of floats is PaddleDetection's size of the input";
                (AuxiliaryValue::InputHeightWidth, false, because)
            }
            (true, false) => {
                let because = "the second of two pairs of floats is PaddleDetection's scale factor";
                (AuxiliaryValue::ScaleFactor, false, because)
            }
            (false, _) if is_mask(port) => {
                (AuxiliaryValue::PixelMask, true, "whole numbers for each pixel are a padding mask")
            }
            _ => {
                let advice = if port.name == "input_ids" {
                    "this is the text half of CLIP, SigLIP or a similar model: export the image half"
                } else {
                    "export it with this input fixed"
                };
                return Err(Refusal::new(format!(
                    "the graph needs {port} in addition to the image. Spotcheck supports image sizes ([1, 2]) and \
                     padding masks ([1, height, width]): {advice}"
                )));
            }
        };
        let field = format!("input.auxiliary.{}", port.name);
        if is_known {
            findings.recognized(&field, value.into_str(), because);
        } else {
            findings.assumed(&field, value.into_str(), because);
        }
        found.push(AuxiliaryInput { name: port.name.clone(), value, mask_size: mask_size(port, value) });
    }
    Ok(found)
}

fn is_pair(port: &Port) -> bool {
    port.dims.len() == 2 && matches!(port.dims[1], Dimension::Fixed(2))
}

fn is_integer(port: &Port) -> bool {
    matches!(port.element, PortElement::Int32 | PortElement::Int64)
}

/// Width and height of a mask, if the graph fixes them.
fn mask_size(port: &Port, value: AuxiliaryValue) -> Option<[u32; 2]> {
    let side = |axis: usize| u32::try_from(port.dims.get(axis)?.fixed()?).ok().filter(|side| *side <= MAX_SIDE);
    (value == AuxiliaryValue::PixelMask).then(|| Some([side(2)?, side(1)?])).flatten()
}

fn is_mask(port: &Port) -> bool {
    let is_bool = matches!(&port.element, PortElement::Other(name) if name == "bool");
    port.dims.len() == 3 && (is_integer(port) || is_bool)
}
