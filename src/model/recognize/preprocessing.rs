//! How exporters' own code prepares an image, from what they write next to or into the model.

use std::collections::BTreeMap;

use serde_json::Value;

use super::noted::{Exporter, Noted, NotedResize, NotedTask, Notes, PixelNotes, size, text, truth, whole};
use super::signature::MAX_SIDE;
use crate::domain::{BoxesBack, ChannelOrder, Fill, Interpolation, Position, Rounding, SideRounding, Square};

/// transformers' processors that follow the numbers in their file, or whose special rules are implemented below
/// (compared with the package's code, release 5.23). Those of the DETR family are handled separately.
const KNOWN_PROCESSORS: [&str; 19] = [
    "Beit",
    "Bit",
    "ChineseCLIP",
    "CLIP",
    "ConvNext",
    "DeiT",
    "EfficientNet",
    "Flava",
    "Levit",
    "MobileNetV1",
    "MobileNetV2",
    "MobileViT",
    "OwlViT",
    "PoolFormer",
    "Pvt",
    "Segformer",
    "Siglip",
    "ViT",
    "Yolos",
];

impl PixelNotes {
    /// Pixels as `(pixel / divide_by - mean) / std` in RGB.
    fn set_levels(&mut self, divide_by: f64, mean: [f64; 3], std: [f64; 3], because: &str) {
        set(&mut self.order, ChannelOrder::Rgb, because);
        self.set_range(divide_by, mean, std, because);
    }

    /// Pixels as `(pixel / divide_by - mean) / std` in any channel order.
    pub fn set_range(&mut self, divide_by: f64, mean: [f64; 3], std: [f64; 3], because: &str) {
        set(&mut self.divide_by, divide_by as f32, because);
        set(&mut self.mean, mean.map(|number| number as f32), because);
        set(&mut self.std, std.map(|number| number as f32), because);
    }
}

/// Keeps an earlier value.
pub(super) fn set<T>(place: &mut Option<Noted<T>>, value: T, because: &str) {
    place.get_or_insert_with(|| Noted { value, because: because.to_owned() });
}

/// Ultralytics and YOLOv5: a letterbox (OpenCV) or, for classifiers, a center crop (torchvision on Pillow), and a
/// division by 255.
pub(super) fn from_yolo(notes: &mut Notes, exporter: Exporter, version: Option<&str>, because: &str) {
    notes.pixels.set_levels(255.0, [0.0; 3], [1.0; 3], because);
    let classifies = notes.task.as_ref().is_some_and(|task| task.value == NotedTask::Classify);
    let (resize, interpolation) = match &notes.input_size {
        _ if !classifies => {
            let resize = NotedResize::Letterbox {
                fill: Fill([114; 3]),
                position: Position::Center,
                rounding: Rounding::HalfEven,
                boxes_back: boxes_back(exporter, version),
            };
            (resize, Interpolation::OpencvLinear)
        }
        Some(size) if size.value[0] != size.value[1] => (NotedResize::Stretch, Interpolation::PillowBilinear),
        size => {
            let short_side = size.as_ref().map_or(224, |size| size.value[0]);
            (
                NotedResize::Crop { short_side, long_side: Rounding::Down, offset: Rounding::HalfEven },
                Interpolation::PillowBilinear,
            )
        }
    };
    set(&mut notes.pixels.resize, resize, because);
    set(&mut notes.pixels.interpolation, interpolation, because);
}

/// The package's releases differ (compared by running them).
fn boxes_back(exporter: Exporter, version: Option<&str>) -> BoxesBack {
    let parts = version.unwrap_or_default().split('.').map_while(|part| part.trim().parse().ok());
    let version: Vec<u32> = parts.collect();
    match exporter {
        Exporter::Yolov5 => BoxesBack::ExactPadding,
        Exporter::Ultralytics if version.is_empty() || version >= vec![8, 4, 124] => BoxesBack::EachAxis,
        Exporter::Ultralytics if version >= vec![8, 4, 25] => BoxesBack::OneRatio,
        Exporter::Ultralytics => BoxesBack::RoundedPadding,
    }
}

/// Models of Keras Applications that do not scale pixels inside, by the `mode` of their `preprocess_input`
/// (`keras/src/applications`, release 3.15).
const KERAS_TF: [&str; 9] = [
    "NASNet",
    "inception_resnet_v2",
    "inception_v3",
    "nasnet_large",
    "nasnet_mobile",
    "resnet101v2",
    "resnet152v2",
    "resnet50v2",
    "xception",
];
/// Followed by alpha and size, as in `mobilenetv2_1.00_224`.
const KERAS_TF_SIZED: [&str; 2] = ["mobilenet_", "mobilenetv2_"];
const KERAS_CAFFE: [&str; 5] = ["resnet101", "resnet152", "resnet50", "vgg16", "vgg19"];
const KERAS_TORCH: [&str; 3] = ["densenet121", "densenet169", "densenet201"];

/// A model of Keras Applications whose pixels are scaled before the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KerasApplication {
    /// `mobilenetv2_1.00_224`
    name: String,
    mode: KerasMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KerasMode {
    Tf,
    Caffe,
    Torch,
}

impl KerasApplication {
    /// The application that is the whole model, by the name of one of its nodes, such as
    /// `StatefulPartitionedCall/mobilenetv2_1.00_224/Conv1/Conv2D`. A model around it may scale pixels inside.
    pub fn from_node(node: &str) -> Option<Self> {
        let (model, _) = node.trim_start_matches("StatefulPartitionedCall/").split_once('/')?;
        // Keras 3 adds a number to each name.
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let unnumbered = model.rsplit_once('_').filter(|(_, number)| is_number(number)).map(|(name, _)| name);
        let is_sized =
            |prefix: &&str| model.strip_prefix(prefix).is_some_and(|alpha| alpha.as_bytes().get(1) == Some(&b'.'));
        let is_in = |names: &[&str]| names.iter().any(|name| *name == model || Some(*name) == unnumbered);
        let mode = if is_in(&KERAS_TF) || KERAS_TF_SIZED.iter().any(is_sized) {
            KerasMode::Tf
        } else if is_in(&KERAS_CAFFE) {
            KerasMode::Caffe
        } else if is_in(&KERAS_TORCH) {
            KerasMode::Torch
        } else {
            return None;
        };
        Some(Self { name: model.to_owned(), mode })
    }
}

impl Notes {
    /// Assumes `preprocess_input` of the application, after `load_img` of Keras.
    pub fn add_keras_application(&mut self, application: &KerasApplication) {
        let KerasApplication { name, mode } = application;
        let because = |expects: &str| {
            format!(
                "ONNX does not record this; nodes are named {name}, as in Keras Applications, and that model {expects}"
            )
        };
        let pixels = &mut self.likely_pixels;
        let because = match mode {
            KerasMode::Tf => {
                let because = because("expects -1 to 1");
                pixels.set_levels(127.5, [1.0; 3], [1.0; 3], &because);
                because
            }
            KerasMode::Caffe => {
                let because = because("expects BGR from 0 to 255 minus ImageNet's mean");
                set(&mut pixels.order, ChannelOrder::Bgr, &because);
                pixels.set_range(1.0, [103.939, 116.779, 123.68], [1.0; 3], &because);
                because
            }
            KerasMode::Torch => {
                let because = because("expects ImageNet's mean and std");
                pixels.set_levels(255.0, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225], &because);
                because
            }
        };
        set(&mut pixels.resize, NotedResize::Stretch, &because);
        set(&mut pixels.interpolation, Interpolation::PillowNearest, &because);
    }
}

/// Lobe's sample code (`onnx_example.py`): the central square, cropped and resized as Pillow does by default.
pub(super) fn from_lobe(notes: &mut Notes, file: &str) {
    let because = format!("{file} is Lobe's");
    notes.pixels.set_levels(255.0, [0.0; 3], [1.0; 3], &because);
    set(&mut notes.pixels.resize, NotedResize::Square(Square::CropHalfEven), &because);
    set(&mut notes.pixels.interpolation, Interpolation::PillowBicubic, &because);
}

/// ONNX's metadata for image inputs (Windows ML, Custom Vision):
/// <https://github.com/onnx/onnx/blob/main/docs/MetadataProps.md>.
pub(super) fn read_image_metadata(notes: &mut Notes, metadata: &BTreeMap<String, String>) {
    let value = |key: &str| {
        let value = metadata.get(key)?;
        Some((value, format!("the file metadata sets {key} = {value}")))
    };
    if let Some((format, because)) = value("Image.BitmapPixelFormat") {
        match format.as_str() {
            "Rgb8" => set(&mut notes.pixels.order, ChannelOrder::Rgb, &because),
            "Bgr8" => set(&mut notes.pixels.order, ChannelOrder::Bgr, &because),
            _ => {}
        }
    }
    if let Some((range, because)) = value("Image.NominalPixelRange") {
        let (divide_by, mean, std) = match range.as_str() {
            "NominalRange_0_255" => (1.0, 0.0, 1.0),
            "Normalized_0_1" => (255.0, 0.0, 1.0),
            "Normalized_1_1" => (127.5, 1.0, 1.0),
            // 16 + pixel * 219 / 255
            "NominalRange_16_235" => (255.0 / 219.0, -16.0, 1.0),
            _ => return notes.remarks.push(format!("{because}, which Spotcheck does not support")),
        };
        notes.pixels.set_range(divide_by, [mean; 3], [std; 3], &because);
    }
    if let Some((gamma, because)) = value("Image.ColorSpaceGamma")
        && gamma != "SRGB"
    {
        notes.remarks.push(format!("{because}, which Spotcheck does not apply"));
    }
}

/// What the Model API of `OpenVINO` reads from the metadata of ONNX files (OTX, Geti). `otx/core/exporter/base.py` writes
/// mean and scale in the order of the model, and models trained by OTX take RGB unless `reverse_input_channels` is set.
pub(super) fn read_model_info(notes: &mut Notes, metadata: &BTreeMap<String, String>) {
    let value = |key: &str| metadata.get(&format!("model_info {key}")).map(String::as_str);
    let numbers = |key: &str| {
        let numbers: Vec<f64> = value(key)?.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        <[f64; 3]>::try_from(numbers).ok()
    };
    let because = "the file metadata has OpenVINO's model_info";
    if let (Some(mean), Some(scale)) = (numbers("mean_values"), numbers("scale_values")) {
        notes.pixels.set_range(1.0, mean, scale, because);
    }
    if value("reverse_input_channels") == Some("False") && value("otx_version").is_some() {
        set(&mut notes.pixels.order, ChannelOrder::Rgb, because);
    }
    match value("resize_type") {
        Some("standard") => {
            set(&mut notes.pixels.resize, NotedResize::Stretch, because);
            set(&mut notes.pixels.interpolation, Interpolation::OpencvLinear, because);
        }
        Some(other) => notes.remarks.push(format!("The file metadata has resize_type = {other}, which is not used")),
        None => {}
    }
}

/// Roboflow stretches images with OpenCV unless `resize` has another format.
pub(super) fn read_roboflow(notes: &mut Notes, steps: &Value, file: &str) {
    match steps["resize"]["format"].as_str() {
        Some("Stretch to") => {
            let because = format!("{file} has resize = Stretch to");
            set(&mut notes.pixels.resize, NotedResize::Stretch, &because);
            set(&mut notes.pixels.interpolation, Interpolation::OpencvLinear, &because);
        }
        Some(format) => notes.remarks.push(format!("{file} has resize = {format}, which Spotcheck only approximates")),
        None => {}
    }
    for step in ["grayscale", "contrast", "static-crop"].into_iter().filter(|step| steps[step]["enabled"] == true) {
        notes.remarks.push(format!("{file} has the step {step}, which Spotcheck does not support"));
    }
}

/// timm: `create_transform(**resolve_data_config(pretrained_cfg))`. The keys are in `pretrained_cfg`, or at the top
/// level in files of earlier versions.
pub(super) fn read_timm(notes: &mut Notes, config: &Value, file: &str) {
    let nested = &config["pretrained_cfg"];
    let config = if nested.is_object() { nested } else { config };
    let because = format!("{file} is timm's");
    let input_size = match config["input_size"].as_array().map(Vec::as_slice) {
        Some([_, height, width]) => size(&Value::Array(vec![height.clone(), width.clone()])),
        _ => None,
    };
    let (Some(mean), Some(std)) = (triple(&config["mean"]), triple(&config["std"])) else {
        return;
    };
    notes.pixels.set_levels(255.0, mean, std, &because);
    let interpolation = match config["interpolation"].as_str() {
        Some("bicubic") => Some(Interpolation::PillowBicubic),
        Some("bilinear") => Some(Interpolation::PillowBilinear),
        Some("lanczos") => Some(Interpolation::PillowLanczos),
        Some("nearest") => Some(Interpolation::PillowNearest),
        _ => None,
    };
    if let Some(interpolation) = interpolation {
        set(&mut notes.pixels.interpolation, interpolation, &because);
    }
    let Some(input_size) = input_size else { return };
    set(&mut notes.input_size, input_size, &because);
    // timm uses 7/8 for a value of 0 as well.
    let share = config["crop_pct"].as_f64().filter(|share| *share > 0.0).unwrap_or(0.875);
    let short_side = (f64::from(input_size[0].min(input_size[1])) / share).floor() as u32;
    let resize = match config["crop_mode"].as_str() {
        Some("squash") => {
            let size = input_size.map(|side| (f64::from(side) / share).floor() as u32);
            NotedResize::StretchCrop { size, offset: Rounding::HalfEven }
        }
        None | Some("center") if input_size[0] == input_size[1] => {
            NotedResize::Crop { short_side, long_side: Rounding::Down, offset: Rounding::HalfEven }
        }
        mode => {
            notes.remarks.push(format!(
                "{file} has crop_mode {} for an input of {}x{}, which Spotcheck only approximates",
                mode.unwrap_or("center"),
                input_size[0],
                input_size[1]
            ));
            return;
        }
    };
    set(&mut notes.pixels.resize, resize, &because);
}

/// transformers' `preprocessor_config.json`.
pub(super) fn read(notes: &mut Notes, config: &Value, file: &str) {
    let kind = text(&config["image_processor_type"]).or_else(|| text(&config["feature_extractor_type"]));
    let Some(kind) = kind else {
        notes.remarks.push(format!("{file} was not used: it has no image_processor_type"));
        return;
    };
    let class = kind.as_str();
    let ends = ["Fast", "Pil", "ImageProcessor", "FeatureExtractor"];
    let kind = ends.iter().fold(class, |kind, end| kind.strip_suffix(end).unwrap_or(kind));
    let is_known = KNOWN_PROCESSORS.contains(&kind) || kind.contains("Detr");
    let (pixels, because) = if is_known {
        (&mut notes.pixels, format!("{file} is for {class}"))
    } else {
        let because =
            format!("{file} has these numbers; {class} may have additional rules that Spotcheck does not know");
        (&mut notes.likely_pixels, because)
    };
    if is_known || !config["image_mean"].is_null() {
        read_pixels(pixels, config, kind, &because);
    }
    let interpolation = match config["resample"].as_u64() {
        Some(0) => Some(Interpolation::PillowNearest),
        Some(1) => Some(Interpolation::PillowLanczos),
        Some(2) => Some(Interpolation::PillowBilinear),
        Some(3) => Some(Interpolation::PillowBicubic),
        _ => None,
    };
    if let Some(interpolation) = interpolation {
        set(&mut pixels.interpolation, interpolation, &because);
    }
    match read_resize(config, kind) {
        Ok((resize, input_size)) => {
            set(&mut pixels.resize, resize, &because);
            if let Some(input_size) = input_size {
                set(&mut notes.input_size, input_size, &because);
            }
        }
        Err(reason) => notes.remarks.push(format!("The resize rule of {file} is not used: {reason}")),
    }
}

fn read_pixels(pixels: &mut PixelNotes, config: &Value, kind: &str, because: &str) {
    let is_on = |key: &str, default: bool| truth(&config[key]).unwrap_or(default);
    let factor = config["rescale_factor"].as_f64().filter(|factor| *factor > 0.0).unwrap_or(1.0 / 255.0);
    let divide_by = if is_on("do_rescale", true) { 1.0 / factor } else { 1.0 };
    let given = triple(&config["image_mean"]).zip(triple(&config["image_std"]));
    // MobileViT's processor does not normalize, whatever the file states.
    let normalizes = kind != "MobileViT" && is_on("do_normalize", given.is_some());
    let (mut mean, mut std) = given.filter(|_| normalizes).unwrap_or(([0.0; 3], [1.0; 3]));
    if kind == "EfficientNet" {
        // It can shift levels down by 1 after the division, and divides by the standard deviation a second time for
        // classifiers.
        if is_on("rescale_offset", false) {
            mean = mean.map(|mean| mean + 1.0);
        }
        if is_on("include_top", true) {
            std = std.map(|std| std * std);
        }
    }
    if is_on("do_flip_channel_order", kind == "MobileViT") {
        set(&mut pixels.order, ChannelOrder::Bgr, because);
    }
    pixels.set_levels(divide_by, mean, std, because);
}

/// The rule, and width and height of the input.
fn read_resize(config: &Value, kind: &str) -> Result<(NotedResize, Option<[u32; 2]>), String> {
    if truth(&config["do_resize"]) == Some(false) {
        return Err("it does not resize, so the caller chooses the size".to_owned());
    }
    let (short, whole_size) = target(config, kind);
    let crops = truth(&config["do_center_crop"]).unwrap_or(!config["crop_size"].is_null());
    let crop = match &config["crop_size"] {
        _ if !crops => None,
        Value::Object(sides) => sides.get("width").and_then(side).zip(sides.get("height").and_then(side)),
        number => side(number).map(|side| (side, side)),
    };
    let longest = side(&config["size"]["longest_edge"]).or_else(|| side(&config["max_size"]));
    let offset = Rounding::Down;
    match (short, whole_size, crop) {
        (Some(short), ..) if kind == "ConvNext" => {
            let resize = if short < 384 {
                NotedResize::Crop {
                    short_side: (f64::from(short) / crop_share(config, 0.875)) as u32,
                    long_side: Rounding::Down,
                    offset,
                }
            } else {
                NotedResize::Stretch
            };
            Ok((resize, Some([short; 2])))
        }
        (short, whole, Some((width, height)))
            if width > short.or(whole.map(|whole| whole.0)).unwrap_or(width)
                || height > short.or(whole.map(|whole| whole.1)).unwrap_or(height) =>
        {
            Err(format!("it pads images to {width}x{height} with black, which Spotcheck does not support"))
        }
        (Some(short_side), _, Some((width, height))) => {
            Ok((NotedResize::Crop { short_side, long_side: Rounding::Down, offset }, Some([width, height])))
        }
        (Some(short_side), ..) if longest.is_some() || kind.contains("Detr") || kind == "Yolos" => {
            let max_long_side = longest.unwrap_or(MAX_SIDE);
            let rounding = SideRounding::ByPadding;
            Ok((NotedResize::ShortSidePad { short_side, max_long_side, pad_to_multiple: 1, rounding }, None))
        }
        (None, Some((width, height)), None) => Ok((NotedResize::Stretch, Some([width, height]))),
        (None, Some((width, height)), Some((crop_width, crop_height))) => {
            Ok((NotedResize::StretchCrop { size: [width, height], offset }, Some([crop_width, crop_height])))
        }
        _ => Err("Spotcheck does not support its sizes".to_owned()),
    }
}

/// The length of the short side, and width and height, in pixels.
fn target(config: &Value, kind: &str) -> (Option<u32>, Option<(u32, u32)>) {
    let value = &config["size"];
    let short = side(&value["shortest_edge"]).or_else(|| {
        // Old files have a single number, whose meaning depends on the processor.
        let is_square = ["ViT", "DeiT", "Beit", "EfficientNet"].contains(&kind);
        side(value).filter(|_| !is_square)
    });
    let whole_size = side(&value["width"]).zip(side(&value["height"])).or_else(|| side(value).map(|side| (side, side)));
    match kind {
        "Levit" => (short.map(|side| (256.0 / 224.0 * f64::from(side)) as u32), whole_size),
        "PoolFormer" if config.get("crop_pct") != Some(&Value::Null) => {
            let side = short.or(whole_size.filter(|(width, height)| width == height).map(|(width, _)| width));
            (side.map(|side| (f64::from(side) / crop_share(config, 0.9)) as u32), None)
        }
        _ => (short, whole_size),
    }
}

fn crop_share(config: &Value, default: f64) -> f64 {
    config["crop_pct"].as_f64().filter(|share| *share > 0.0).unwrap_or(default)
}

/// A possible length in pixels.
pub(super) fn side(value: &Value) -> Option<u32> {
    whole(value).filter(|side| (1..=MAX_SIDE).contains(side))
}

/// Three numbers, or one for all channels.
pub(super) fn triple(value: &Value) -> Option<[f64; 3]> {
    let numbers = match value {
        Value::Array(values) => {
            let numbers: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
            <[f64; 3]>::try_from(numbers).ok()?
        }
        value => [value.as_f64()?; 3],
    };
    numbers.iter().all(|number| number.is_finite()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keras_applications_are_recognized_by_node_names() {
        use KerasMode::{Caffe, Tf, Torch};
        for (node, expected) in [
            ("StatefulPartitionedCall/mobilenetv2_1.00_224/Conv1/Conv2D", Some(Tf)),
            ("StatefulPartitionedCall/StatefulPartitionedCall/mobilenet_0.50_128/conv1/Conv2D", Some(Tf)),
            ("mobilenetv2_1.00_224_1/Conv1_1/convolution", Some(Tf)),
            ("inception_v3/conv2d_93/Conv2D", Some(Tf)),
            ("inception_v3_1/conv2d_93_1/convolution", Some(Tf)),
            ("resnet50v2/conv1_conv/Conv2D", Some(Tf)),
            ("resnet50/conv1_conv/Conv2D", Some(Caffe)),
            ("vgg16_1/block1_conv1_1/convolution", Some(Caffe)),
            ("densenet121/conv1/conv/Conv2D", Some(Torch)),
            // These scale pixels inside, or may do so.
            ("efficientnetb0/stem_conv/Conv2D", None),
            ("MobileNetV3Large/Conv/Conv2D", None),
            ("functional_1/mobilenetv2_1.00_224_1/Conv1_1/convolution", None),
            // Other exporters.
            ("resnet50", None),
            ("/resnet50/conv1/Conv", None),
            ("mobilenet_v1/Conv2d_0/Conv2D", None),
            ("resnet500/conv1/Conv2D", None),
            ("", None),
        ] {
            let found = KerasApplication::from_node(node).map(|application| application.mode);
            assert_eq!(found, expected, "{node}");
        }
    }
}
