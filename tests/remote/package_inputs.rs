//! The handler's model inputs compared with those computed by Spotcheck: the same bytes for each resize rule,
//! interpolation, layout and auxiliary input.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use spotcheck::domain::{
    AuxiliaryInput, AuxiliaryValue, BoxesBack, CenterCrop, ChannelOrder, ElementType, Fill, ImageInput, Interpolation,
    Layout, Position, ResizeRule, RgbImage, Rounding, SideRounding, Square,
};
use spotcheck::model::{Prepared, Tensor, TensorData, preprocess};
use strum::VariantArray as _;

use crate::support::handler::{package, python, unpacked};
use crate::support::repository;

const SIZES: [[u32; 2]; 7] = [[37, 23], [64, 48], [23, 61], [1, 1], [90, 20], [200, 3], [3, 211]];

#[test]
fn handler_input_matches_for_every_rule() {
    let folder = tempfile::tempdir().unwrap();
    let archive = package(folder.path(), &["--model", "efficientnet-lite0"]);
    let code = unpacked(&archive, folder.path()).join("code");
    let (mut cases, mut expected) = (String::new(), Vec::new());
    for size in SIZES {
        let image = noise(size);
        let pixels = folder.path().join(format!("{}x{}.rgb", size[0], size[1]));
        std::fs::write(&pixels, image.rgb()).unwrap();
        for input in inputs() {
            let case = json!({"input": input, "width": size[0], "height": size[1], "pixels": pixels});
            writeln!(cases, "{case}").unwrap();
            expected.push((summary(&preprocess(&input, &image).unwrap()), case));
        }
    }
    let file = folder.path().join("cases");
    std::fs::write(&file, cases).unwrap();
    let script = repository().join("tests/package/check_inputs.py");
    let output = python(&["model-handler"]).arg(script).arg(code).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let got = String::from_utf8(output.stdout).unwrap();
    let got: Vec<Value> = got.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(got.len(), expected.len());
    for (got, (expected, case)) in got.iter().zip(&expected) {
        assert_eq!(got, expected, "{case}");
    }
}

/// Every rule with every interpolation; layouts, element types and channel orders in turn.
fn inputs() -> Vec<ImageInput> {
    let combinations = rules()
        .into_iter()
        .flat_map(|rule| Interpolation::VARIANTS.iter().map(move |&interpolation| (rule.clone(), interpolation)));
    let mask = AuxiliaryInput { mask_size: Some([5, 7]), ..AuxiliaryInput::new("mask", AuxiliaryValue::PixelMask) };
    let auxiliary = AuxiliaryValue::VARIANTS.iter().map(|&value| AuxiliaryInput::new(value.into(), value));
    let auxiliary: Vec<AuxiliaryInput> = auxiliary.chain([mask]).collect();
    let input = |(number, (rule, interpolation)): (usize, (ResizeRule, Interpolation))| {
        let layout = Layout::VARIANTS[number % Layout::VARIANTS.len()];
        let element_type = ElementType::VARIANTS[number % ElementType::VARIANTS.len()];
        let input = ImageInput {
            channels: ChannelOrder::VARIANTS[number % 2],
            interpolation,
            square: Square::VARIANTS[number % Square::VARIANTS.len()],
            auxiliary: auxiliary.clone(),
            ..ImageInput::new(layout, element_type, rule)
        };
        if element_type == ElementType::Uint8 {
            return input;
        }
        ImageInput { divide_by: 255.0, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225], ..input }
    };
    combinations.enumerate().map(input).collect()
}

fn rules() -> Vec<ResizeRule> {
    let square = ResizeRule::Letterbox {
        width: 64,
        height: 64,
        fill: Fill([114; 3]),
        position: Position::Center,
        rounding: Rounding::HalfEven,
        stride: None,
        boxes_back: BoxesBack::EachAxis,
    };
    let letterbox = |position, rounding, stride, boxes_back| ResizeRule::Letterbox {
        width: 80,
        height: 61,
        fill: Fill([10, 20, 30]),
        position,
        rounding,
        stride,
        boxes_back,
    };
    let crop = |long_side, crop_offset| ResizeRule::ShortSideCrop {
        short_side: 31,
        long_side,
        crop_width: 28,
        crop_height: 24,
        crop_offset,
    };
    // Half of the rest is 5.5 and 4.5.
    let middle = |offset| ResizeRule::Stretch {
        width: 39,
        height: 31,
        crop: Some(CenterCrop { width: 28, height: 22, offset }),
    };
    let short_side = |pad_to_multiple, cut_to_multiple, rounding| ResizeRule::ShortSidePad {
        short_side: 40,
        max_long_side: 70,
        pad_to_multiple,
        cut_to_multiple,
        rounding,
    };
    let mut rules = vec![
        ResizeRule::Keep {},
        // Half of one of the images.
        ResizeRule::stretch(32, 24),
        ResizeRule::stretch(75, 50),
        middle(Rounding::Down),
        middle(Rounding::HalfEven),
        middle(Rounding::HalfUp),
        square,
        letterbox(Position::TopLeft, Rounding::Down, None, BoxesBack::OneRatio),
        crop(Rounding::Down, Rounding::HalfEven),
        crop(Rounding::HalfEven, Rounding::Down),
        crop(Rounding::HalfUp, Rounding::HalfUp),
        letterbox(Position::TopLeft, Rounding::HalfUp, None, BoxesBack::EachAxis),
        short_side(32, 1, SideRounding::ByPadding),
        short_side(1, 1, SideRounding::ByPadding),
        short_side(1, 16, SideRounding::ByPadding),
        short_side(32, 1, SideRounding::HalfUp),
        short_side(1, 1, SideRounding::HalfEven),
    ];
    for &boxes_back in BoxesBack::VARIANTS {
        for stride in [None, Some(16), Some(1000)] {
            rules.push(letterbox(Position::Center, Rounding::HalfEven, stride, boxes_back));
        }
    }
    rules
}

fn summary(prepared: &Prepared) -> Value {
    let of = |tensor: &Tensor| {
        let bytes = match &tensor.data {
            TensorData::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            TensorData::U8(values) => values.clone(),
            TensorData::I64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        };
        json!({"shape": tensor.shape, "sha256": hexadecimal(&Sha256::digest(&bytes))})
    };
    let image_from_model = prepared.image_from_model;
    let scale_and_offset = [image_from_model.scale, image_from_model.offset].concat();
    let scale_and_offset: Vec<u8> = scale_and_offset.iter().flat_map(|value| (value + 0.0).to_le_bytes()).collect();
    json!({
        "tensor": of(&prepared.tensor),
        "auxiliary": prepared.auxiliary.iter().map(|(_, tensor)| of(tensor)).collect::<Vec<_>>(),
        "scale_and_offset": hexadecimal(&scale_and_offset),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

fn noise([width, height]: [u32; 2]) -> RgbImage {
    let mut state = 12345_u32;
    let levels = (0..width * height * 3).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    RgbImage::new(width, height, levels.collect()).unwrap()
}
