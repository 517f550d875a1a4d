//! The preprocessing of `MMDeploy` and PaddleDetection, from the pipelines that they write next to the model.

use serde_json::Value;

use super::noted::{NotedResize, Notes, size, truth};
use super::preprocessing::{set, side, triple};
use crate::domain::{BoxesBack, ChannelOrder, Fill, Interpolation, Position, Rounding, SideRounding};

/// The rule, and width and height of the input.
type Resize = (NotedResize, Option<[u32; 2]>);

/// `MMDeploy`'s `pipeline.json` (compared with `csrc/mmdeploy/preprocess` of release 1.3).
pub(super) fn read_mmdeploy(notes: &mut Notes, config: &Value, file: &str) {
    let mut tasks = config["pipeline"]["tasks"].as_array().into_iter().flatten();
    let Some(transforms) = tasks.find_map(|task| task["transforms"].as_array()) else {
        notes.remarks.push(format!("{file} was not used: it has no transforms"));
        return;
    };
    let step = |kind: &str| transforms.iter().find(|step| step["type"] == kind).unwrap_or(&Value::Null);
    let because = format!("{file} is MMDeploy's");
    let normalize = step("Normalize");
    if let (Some(mean), Some(std)) = (triple(&normalize["mean"]), triple(&normalize["std"])) {
        let is_rgb = truth(&normalize["to_rgb"]).unwrap_or(true);
        set(&mut notes.pixels.order, if is_rgb { ChannelOrder::Rgb } else { ChannelOrder::Bgr }, &because);
        notes.pixels.set_range(1.0, mean, std, &because);
    }
    let resize = step("Resize");
    if !resize.is_null() {
        set_interpolation(notes, resize, "pillow", &because);
    }
    set_resize(notes, mmdeploy_resize(resize, step("CenterCrop"), step("Pad")), file, &because);
}

/// `pillow`: the name of this backend; the others are OpenCV.
fn set_interpolation(notes: &mut Notes, resize: &Value, pillow: &str, because: &str) {
    let name = resize["interpolation"].as_str().unwrap_or("bilinear");
    let interpolation = match (resize["backend"] == pillow, name) {
        (false, "bilinear") => Interpolation::OpencvLinear,
        (false, "bicubic") => Interpolation::OpencvCubic,
        (true, "bilinear") => Interpolation::PillowBilinear,
        (true, "bicubic") => Interpolation::PillowBicubic,
        _ => return,
    };
    set(&mut notes.pixels.interpolation, interpolation, because);
}

fn mmdeploy_resize(resize: &Value, crop: &Value, pad: &Value) -> Option<Resize> {
    let keeps_ratio = truth(&resize["keep_ratio"]) == Some(true);
    // Width and height; with a height of -1, the first number is the short side.
    let [width, height] = match &resize["size"] {
        Value::Array(sides) => [side(sides.first()?)?, side(sides.get(1)?).unwrap_or(0)],
        number => [side(number)?; 2],
    };
    let offset = Rounding::HalfEven;
    let crop = size(&crop["crop_size"]);
    match (height, crop) {
        (0, Some(crop)) => {
            Some((NotedResize::Crop { short_side: width, long_side: Rounding::Down, offset }, Some(crop)))
        }
        (1.., None) if !keeps_ratio => Some((NotedResize::Stretch, Some([width, height]))),
        (1.., Some(crop)) if !keeps_ratio => {
            Some((NotedResize::StretchCrop { size: [width, height], offset }, Some(crop)))
        }
        (1.., None) if let Some(pad_to_multiple) = side(&pad["size_divisor"]) => {
            let (short_side, max_long_side) = (width.min(height), width.max(height));
            let rounding = SideRounding::HalfUp;
            Some((NotedResize::ShortSidePad { short_side, max_long_side, pad_to_multiple, rounding }, None))
        }
        (1.., None) if width == height => {
            let fills = size(&pad["size"]) == Some([width, height]) || truth(&pad["pad_to_square"]) == Some(true);
            let level =
                |value: &Value| value.as_f64().or_else(|| value[0].as_f64()).or_else(|| value["img"][0].as_f64());
            let fill = Fill([level(&pad["pad_val"]).unwrap_or(0.0) as u8; 3]);
            let (position, rounding, boxes_back) = (Position::TopLeft, Rounding::HalfUp, BoxesBack::EachAxis);
            fills.then_some((NotedResize::Letterbox { fill, position, rounding, boxes_back }, Some([width, height])))
        }
        _ => None,
    }
}

/// PaddleDetection's `infer_cfg.yml` and `PaddleX`' `inference.yml` (compared with `deploy/python/preprocess.py`).
pub(super) fn read_paddle(notes: &mut Notes, steps: &[Value], file: &str) {
    let because = format!("{file} is PaddleDetection's");
    for step in steps {
        match step["type"].as_str().unwrap_or_default() {
            "Resize" => {
                let interpolation = match step["interp"].as_u64() {
                    Some(1) | None => Some(Interpolation::OpencvLinear),
                    Some(2) => Some(Interpolation::OpencvCubic),
                    _ => None,
                };
                if let Some(interpolation) = interpolation {
                    set(&mut notes.pixels.interpolation, interpolation, &because);
                }
                let keeps_ratio = truth(&step["keep_ratio"]).unwrap_or(true);
                let stretch = size(&step["target_size"]).filter(|_| !keeps_ratio);
                set_resize(notes, stretch.map(|size| (NotedResize::Stretch, Some(size))), file, &because);
            }
            "NormalizeImage" => {
                let divide_by = if truth(&step["is_scale"]).unwrap_or(true) { 255.0 } else { 1.0 };
                let given = triple(&step["mean"]).zip(triple(&step["std"])).filter(|_| step["norm_type"] != "none");
                let (mean, std) = given.unwrap_or(([0.0; 3], [1.0; 3]));
                set(&mut notes.pixels.order, ChannelOrder::Rgb, &because);
                notes.pixels.set_range(divide_by, mean, std, &because);
            }
            "Permute" | "PadStride" => {}
            other => notes.remarks.push(format!("{file} has the step {other}, which Spotcheck does not support")),
        }
    }
}

/// `PaddleClas`' `inference.yml` (compared with `ppcls/data/preprocess/ops/operators.py`). Each step has a single key,
/// its name.
pub(super) fn read_paddle_classifier(notes: &mut Notes, steps: &[Value], file: &str) {
    let because = format!("{file} is PaddleClas'");
    let step = |name: &str| steps.iter().find_map(|step| step.get(name)).unwrap_or(&Value::Null);
    let resize = step("ResizeImage");
    set_interpolation(notes, resize, "pil", &because);
    let rule = match (side(&resize["resize_short"]), size(&resize["size"]), size(&step("CropImage")["size"])) {
        (Some(short_side), None, Some(crop)) => {
            Some((NotedResize::Crop { short_side, long_side: Rounding::HalfEven, offset: Rounding::Down }, Some(crop)))
        }
        (None, Some(size), None) => Some((NotedResize::Stretch, Some(size))),
        _ => None,
    };
    set_resize(notes, rule, file, &because);
    let normalize = step("NormalizeImage");
    if let (Some(mean), Some(std)) = (triple(&normalize["mean"]), triple(&normalize["std"])) {
        let scale = normalize["scale"].as_f64().filter(|scale| *scale > 0.0);
        set(&mut notes.pixels.order, ChannelOrder::Rgb, &because);
        notes.pixels.set_range(scale.map_or(255.0, |scale| 1.0 / scale), mean, std, &because);
    }
    const KNOWN: [&str; 4] = ["ResizeImage", "CropImage", "NormalizeImage", "ToCHWImage"];
    let names = steps.iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys);
    for other in names.filter(|name| !KNOWN.contains(&name.as_str())) {
        notes.remarks.push(format!("{file} has the step {other}, which Spotcheck does not support"));
    }
}

fn set_resize(notes: &mut Notes, resize: Option<Resize>, file: &str, because: &str) {
    let Some((resize, input_size)) = resize else {
        notes.remarks.push(format!("The resize rule of {file} is not used: Spotcheck does not support it"));
        return;
    };
    set(&mut notes.pixels.resize, resize, because);
    if let Some(input_size) = input_size {
        set(&mut notes.input_size, input_size, because);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mmdeploy_transforms_become_resize_rules() {
        let (offset, letterbox) = (Rounding::HalfEven, |fill| NotedResize::Letterbox {
            fill: Fill([fill; 3]),
            position: Position::TopLeft,
            rounding: Rounding::HalfUp,
            boxes_back: BoxesBack::EachAxis,
        });
        let none = Value::Null;
        let (keep, square) = (json!({"keep_ratio": true, "size": [640, 640]}), json!({"size": [640, 640]}));
        let pad = |value: Value| json!({"size": [640, 640], "pad_val": value});
        for (resize, crop, pad, expected) in [
            (
                json!({"keep_ratio": false, "size": [640, 480]}),
                &none,
                none.clone(),
                Some((NotedResize::Stretch, Some([640, 480]))),
            ),
            (keep.clone(), &none, pad(json!({"img": [114, 114, 114]})), Some((letterbox(114), Some([640, 640])))),
            (keep, &none, square, Some((letterbox(0), Some([640, 640])))),
            (
                json!({"keep_ratio": true, "size": [1333, 800]}),
                &none,
                json!({"size_divisor": 32}),
                Some((
                    NotedResize::ShortSidePad {
                        short_side: 800,
                        max_long_side: 1333,
                        pad_to_multiple: 32,
                        rounding: SideRounding::HalfUp,
                    },
                    None,
                )),
            ),
            (
                json!({"keep_ratio": true, "size": [256, -1]}),
                &json!({"crop_size": 224}),
                none.clone(),
                Some((NotedResize::Crop { short_side: 256, long_side: Rounding::Down, offset }, Some([224, 224]))),
            ),
            (json!({"size": [256, -1]}), &none, none.clone(), None),
            (none.clone(), &none, none.clone(), None),
        ] {
            assert_eq!(mmdeploy_resize(&resize, crop, &pad), expected, "{resize} {crop} {pad}");
        }
    }

    #[test]
    fn unknown_steps_of_paddle_are_remarks() {
        let steps = json!([
            {"type": "CLAHEDehaze"},
            {"type": "Resize", "keep_ratio": true, "target_size": [640, 640]},
            {"type": "NormalizeImage", "norm_type": "none", "mean": [0.5, 0.5, 0.5], "std": [1, 1, 1]},
        ]);
        let mut notes = Notes::default();
        read_paddle(&mut notes, steps.as_array().unwrap(), "infer_cfg.yml");
        assert_eq!(notes.pixels.resize, None);
        assert_eq!(notes.pixels.divide_by.unwrap().value, 255.0);
        assert_eq!(notes.pixels.mean.unwrap().value, [0.0; 3]);
        assert_eq!(notes.remarks.len(), 2, "{:?}", notes.remarks);
        assert!(notes.remarks[0].contains("CLAHEDehaze"), "{:?}", notes.remarks);
    }
}
