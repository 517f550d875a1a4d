//! The graph's image input: which one it is, its layout, and likely pixel values.

use super::noted::{NotedResize, PixelNotes};
use super::signature::{Dimension, Port, PortElement, ShapeText};
use super::usual::Usual;
use super::{Basis, Findings, OutputPrediction, RecognitionRequest, RecognizeError, Refusal, auxiliary};
use crate::domain::{
    AuxiliaryInput, Background, BoxesBack, CenterCrop, ChannelOrder, ClassValues, ClassificationOutput, ElementType,
    ImageInput, Interpolation, Layout, OutputConvention, Position, ResizeRule, Rounding, SideRounding, Square,
};

/// `ImageNet`'s mean and standard deviation of RGB in `0.0..=1.0`, as in torchvision and timm.
const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];
/// The mean of RGB in `0..=255` that TensorFlow's `ResNet`s subtract.
const TENSORFLOW_MEAN: [f32; 3] = [123.68, 116.78, 103.94];
/// The mean of BGR in `0..=255` that maskrcnn-benchmark subtracts.
const MASKRCNN_MEAN: [f32; 3] = [102.9801, 115.9465, 122.7717];
/// Usual input side of detectors that accept any size, in pixels.
const DEFAULT_DETECTOR_SIDE: u32 = 640;
/// transformers crops YOLOS's input to a multiple of its patch size, in pixels.
const YOLOS_PATCH: u32 = 16;
/// The sides of a dense detector's input are a multiple of this, in pixels.
const DEFAULT_STRIDE: u32 = 32;
/// Usual input side of classifiers that accept any size, in pixels.
const DEFAULT_CLASSIFIER_SIDE: u32 = 224;
/// Classifiers of images up to this size are trained on whole small images rather than crops.
const SMALL_SIDE: u32 = 64;

/// A graph with a larger batch would only fill the memory.
const MAX_FIXED_BATCH: u64 = 64;

/// The image input before the first run.
#[derive(Debug)]
pub(super) struct ImagePort {
    pub name: String,
    pub dims: Vec<Dimension>,
    /// The batch size, if it is fixed and greater than one.
    pub fixed_batch: Option<u32>,
    /// The inputs other than the image.
    pub auxiliary: Vec<AuxiliaryInput>,
    pub element_type: ElementType,
    /// Gray for one channel; the order of three is determined later.
    pub channels: ChannelOrder,
    /// The possible layouts; more than one if the dimensions do not decide.
    pub layouts: Vec<Layout>,
    pub preferred_size: Option<([u32; 2], String)>,
}

/// Width and height that the graph requires, in pixels; `None` if any are accepted.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// Width and height if both are free, and why these were chosen.
    pub preferred: Option<([u32; 2], String)>,
}

impl ImagePort {
    pub(super) fn sizes(&self, layout: Layout) -> Sizes {
        let (row, column) = match layout {
            Layout::Nchw => (2, 3),
            Layout::Nhwc | Layout::Chw => (1, 2),
            Layout::Hwc => (0, 1),
        };
        let side = |axis: usize| self.dims.get(axis)?.fixed().and_then(|side| u32::try_from(side).ok());
        Sizes { width: side(column), height: side(row), preferred: self.preferred_size.clone() }
    }

    pub(super) fn batch_is_free(&self) -> bool {
        self.dims.len() == 4 && self.dims[0].is_free()
    }
}

/// Finds the image among the inputs.
pub(super) fn recognize(model: &RecognitionRequest<'_>, findings: &mut Findings) -> Result<ImagePort, RecognizeError> {
    let port = find_port(model)?;
    let others: Vec<&Port> = model.graph.inputs.iter().filter(|other| other.name != port.name).collect();
    let auxiliary = auxiliary::recognize(&others, findings)?;
    let element_type = element_type(port)?;
    let layouts = layouts(port)?;
    findings.recognized("input.type", format!("{element_type:?}").to_lowercase(), format!("the graph declares {port}"));
    let channels = if gray_layout(port).is_some() { ChannelOrder::Gray } else { ChannelOrder::Rgb };
    if let [layout] = layouts[..] {
        let count = channels.image_channels().len();
        let because = format!("the dimension for {count} channels is at this position in {}", ShapeText(&port.dims));
        findings.recognized("input.layout", word(layout), because);
    }
    if channels == ChannelOrder::Gray {
        findings.recognized("input.channels", channels.into_str(), format!("the graph declares {port}"));
    }
    let fixed_batch = match (port.dims.len(), &port.dims[0]) {
        (4, &Dimension::Fixed(images @ 2..=MAX_FIXED_BATCH)) => u32::try_from(images).ok(),
        _ => None,
    };
    if let Some(images) = fixed_batch {
        findings.recognized("input.fixed_batch", images, format!("the graph declares {port}"));
    }
    Ok(ImagePort {
        fixed_batch,
        auxiliary,
        name: port.name.clone(),
        dims: port.dims.clone(),
        element_type,
        channels,
        layouts,
        preferred_size: model.notes.input_size.as_ref().map(|size| (size.value, size.because.clone())),
    })
}

/// The layout as written in a card.
pub(super) fn word(layout: Layout) -> &'static str {
    match layout {
        Layout::Nchw => "nchw",
        Layout::Nhwc => "nhwc",
        Layout::Chw => "chw",
        Layout::Hwc => "hwc",
    }
}

fn find_port<'m>(model: &RecognitionRequest<'m>) -> Result<&'m Port, Refusal> {
    let inputs = &model.graph.inputs;
    if let Some(name) = model.overrules.text("input.name") {
        let found = inputs.iter().find(|port| port.name == name);
        return found
            .ok_or_else(|| Refusal::new(format!("input “{name}” does not exist; {}", list("the inputs are", inputs))));
    }
    match &inputs[..] {
        [] => Err(Refusal::new("the graph has no inputs")),
        [only] => Ok(only),
        several => {
            let images: Vec<&Port> =
                several.iter().filter(|port| layouts(port).is_ok() && element_type(port).is_ok()).collect();
            match images[..] {
                [image] => Ok(image),
                _ => Err(Refusal::new(format!(
                    "{}; {} of them could be an image. Choose it with input.name, or export it with the other inputs \
                    fixed",
                    list("the graph needs several inputs:", several),
                    images.len()
                ))),
            }
        }
    }
}

fn list(start: &str, ports: &[Port]) -> String {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    format!("{start} {}", ports.join(", "))
}

fn element_type(port: &Port) -> Result<ElementType, Refusal> {
    match port.element {
        PortElement::Float32 => Ok(ElementType::Float32),
        PortElement::Float16 => Ok(ElementType::Float16),
        PortElement::Uint8 => Ok(ElementType::Uint8),
        ref other => Err(Refusal::new(format!(
            "the input is {port}, but Spotcheck passes images as float32, float16 or uint8, not as {other}: export it \
            with one of these"
        ))),
    }
}

/// The layouts that an input can have as an image, more likely first; empty if it cannot be one.
pub fn image_layouts(port: &Port) -> Vec<Layout> {
    element_type(port).and_then(|_| layouts(port)).unwrap_or_default()
}

/// Where the channels of an image can be, with the layout of each.
fn channel_axes(port: &Port) -> Option<[(usize, Layout); 2]> {
    match port.dims.len() {
        4 => Some([(1, Layout::Nchw), (3, Layout::Nhwc)]),
        3 => Some([(0, Layout::Chw), (2, Layout::Hwc)]),
        _ => None,
    }
}

/// The layout of an input with one channel; `None` if there are three or this is unknown.
fn gray_layout(port: &Port) -> Option<Layout> {
    let axes = channel_axes(port)?;
    let has = |count: u64| axes.into_iter().find(|(axis, _)| port.dims[*axis] == Dimension::Fixed(count));
    has(1).filter(|_| has(3).is_none()).map(|(_, layout)| layout)
}

/// The layouts that the dimensions allow, more likely first.
fn layouts(port: &Port) -> Result<Vec<Layout>, Refusal> {
    let no_image = |why: &str| {
        Refusal::new(format!(
            "no input is an image: {port} {why}. An image is [batch, 3, height, width], [batch, height, width, 3] \
            or the same without the batch; a grayscale image has 1 instead of 3"
        ))
    };
    let Some([(first, planar), (last, interleaved)]) = channel_axes(port) else {
        return Err(no_image(&format!("has {} dimensions", port.dims.len())));
    };
    if let (4, Dimension::Fixed(batch)) = (port.dims.len(), &port.dims[0])
        && *batch > MAX_FIXED_BATCH
    {
        return Err(Refusal::new(format!(
            "{port} takes exactly {batch} images in one call: export it with a dynamic batch dimension, or with \
             a batch size of 1"
        )));
    }
    let is_three = |axis: usize| port.dims[axis] == Dimension::Fixed(3);
    let could_be_three = |axis: usize| is_three(axis) || port.dims[axis].is_free();
    match (is_three(first), is_three(last)) {
        (true, false) => Ok(vec![planar]),
        (false, true) => Ok(vec![interleaved]),
        (true, true) => Ok(vec![planar, interleaved]),
        (false, false) if let Some(layout) = gray_layout(port) => Ok(vec![layout]),
        (false, false) => {
            let open = [(first, planar), (last, interleaved)];
            let open: Vec<Layout> =
                open.into_iter().filter(|(axis, _)| could_be_three(*axis)).map(|(_, layout)| layout).collect();
            if open.is_empty() {
                return Err(no_image("does not have a dimension of 3 for red, green and blue"));
            }
            Ok(open)
        }
    }
}

/// Fills in what ONNX does not record, with what is usual for such a model.
pub(super) fn complete(
    model: &RecognitionRequest<'_>,
    prediction: &OutputPrediction,
    sizes: &Sizes,
    input: &mut ImageInput,
    findings: &mut Findings,
) {
    assume_pixels(prediction, input, findings);
    let mut sizes = sizes.clone();
    if let (None, None, None, Some(size)) =
        (sizes.width, sizes.height, &sizes.preferred, prediction.usual.and_then(Usual::size))
    {
        sizes.preferred = Some((size, "the graph takes any size and this is the exporter's default".to_owned()));
    }
    let sizes = &sizes;
    let (rule, because) = match &prediction.convention {
        OutputConvention::Classification(output) => classifier_resize(output, input, sizes),
        OutputConvention::Detection(_) => detector_resize(prediction, sizes),
        OutputConvention::Embedding(_) => encoder_resize(prediction.usual, sizes),
    };
    findings.assumed("input.resize", resize_text(&rule), because);
    let resizes_inside = rule == ResizeRule::Keep {};
    if !resizes_inside {
        let because = match &prediction.convention {
            OutputConvention::Classification(output) if is_from_keras(output, input) => {
                input.interpolation = Interpolation::PillowNearest;
                "ONNX does not record this; Keras' load_img uses the nearest pixels"
            }
            OutputConvention::Classification(_) | OutputConvention::Embedding(_) if is_from_timm(model) => {
                input.interpolation = Interpolation::PillowBicubic;
                "ONNX does not record this; the tensors are named as by timm's onnx_export, and timm's default is bicubic"
            }
            _ => "ONNX does not record this; most training code resizes images with Pillow",
        };
        findings.assumed("input.interpolation", input.interpolation.into_str(), because);
    }
    input.resize = rule;
    let mut written = model.notes.pixels.clone();
    if let Some(usual) = prediction.usual {
        let mut pixels = usual.pixels();
        if usual.leaves_size_to_graph() && resizes_inside {
            (pixels.resize, pixels.interpolation) = (None, None);
        }
        take(&pixels, Basis::Assumed, sizes, model, input, findings);
        match usual {
            // Ultralytics' metadata does not distinguish its RT-DETR, which has no letterbox, from its YOLO.
            Usual::UltralyticsRtDetr if model.notes.is_ultralytics() => written.resize = None,
            // The metadata is that of a detector, the configuration that of the PyTorch weights.
            Usual::Yolov5Classifier | Usual::WdTagger => written = PixelNotes::default(),
            _ => {}
        }
    }
    take(&model.notes.likely_pixels, Basis::Assumed, sizes, model, input, findings);
    take(&written, Basis::Recognized, sizes, model, input, findings);
}

/// Replaces assumed values by written or usual ones.
fn take(
    pixels: &PixelNotes,
    basis: Basis,
    sizes: &Sizes,
    model: &RecognitionRequest<'_>,
    input: &mut ImageInput,
    findings: &mut Findings,
) {
    let mut replace = |field: &str, value: String, because: &str| {
        findings.0.retain(|finding| finding.field != field);
        findings.add(basis, field, &value, because.to_owned());
    };
    if let Some(resize) = &pixels.resize {
        input.resize = rule(&resize.value, sizes, model);
        replace("input.resize", resize_text(&input.resize), &resize.because);
        input.square = match resize.value {
            NotedResize::Square(square) => square,
            _ => Square::No,
        };
        if input.square != Square::No {
            replace("input.square", input.square.into_str().to_owned(), &resize.because);
        }
    }
    if let Some(interpolation) = &pixels.interpolation {
        input.interpolation = interpolation.value;
        replace("input.interpolation", interpolation.value.into_str().to_owned(), &interpolation.because);
    }
    if let Some(order) = pixels.order.as_ref().filter(|_| input.channels != ChannelOrder::Gray) {
        input.channels = order.value;
        replace("input.channels", order.value.into_str().to_owned(), &order.because);
    }
    if input.element_type == ElementType::Uint8 {
        return;
    }
    if let Some(divide_by) = &pixels.divide_by {
        input.divide_by = divide_by.value;
        replace("input.divide_by", format!("{:?}", divide_by.value), &divide_by.because);
    }
    if let Some(mean) = &pixels.mean {
        input.mean = mean.value;
        replace("input.mean", format!("{:?}", mean.value), &mean.because);
    }
    if let Some(std) = &pixels.std {
        input.std = std.value;
        replace("input.std", format!("{:?}", std.value), &std.because);
    }
}

fn model_type<'m>(model: &'m RecognitionRequest<'_>) -> Option<&'m str> {
    model.notes.model_type.as_ref().map(|noted| noted.value.as_str())
}

/// The resize rule for the sizes that the graph accepts.
fn rule(resize: &NotedResize, sizes: &Sizes, model: &RecognitionRequest<'_>) -> ResizeRule {
    let (any_width, any_height) = (sizes.width.is_none(), sizes.height.is_none());
    let [width, height] = match (sizes.width, sizes.height, &sizes.preferred) {
        (Some(width), Some(height), _) => [width, height],
        (_, _, Some((size, _))) => *size,
        (Some(side), None, None) | (None, Some(side), None) => [side, side],
        (None, None, None) => [DEFAULT_DETECTOR_SIDE; 2],
    };
    // The input size that the notes refer to.
    let noted_size = model.notes.input_size.as_ref().map_or([width, height], |size| size.value);
    let scaled = |length: u32, axis: usize| {
        (f64::from(length) * f64::from([width, height][axis]) / f64::from(noted_size[axis])).round() as u32
    };
    match *resize {
        NotedResize::StretchCrop { size, offset } => ResizeRule::Stretch {
            width: scaled(size[0], 0),
            height: scaled(size[1], 1),
            crop: Some(CenterCrop { width, height, offset }).filter(|_| size != noted_size),
        },
        NotedResize::Crop { short_side, long_side, offset } => ResizeRule::ShortSideCrop {
            short_side: scaled(short_side, 0),
            long_side,
            crop_width: width,
            crop_height: height,
            crop_offset: offset,
        },
        NotedResize::ShortSidePad { short_side, max_long_side, pad_to_multiple, rounding }
            if any_width && any_height =>
        {
            let cut_to_multiple = if model_type(model) == Some("yolos") { YOLOS_PATCH } else { 1 };
            ResizeRule::ShortSidePad { short_side, max_long_side, pad_to_multiple, cut_to_multiple, rounding }
        }
        NotedResize::Stretch | NotedResize::Square(_) | NotedResize::ShortSidePad { .. } => {
            ResizeRule::stretch(width, height)
        }
        NotedResize::Letterbox { fill, position, rounding, boxes_back } => {
            // If the graph accepts any size, exporters' own code removes the padding that only makes the image square.
            // YOLOv5's does not do so for ONNX files.
            let cuts = any_width && any_height && position == Position::Center && boxes_back != BoxesBack::ExactPadding;
            let stride = cuts.then(|| model.notes.stride.as_ref().map_or(DEFAULT_STRIDE, |stride| stride.value));
            ResizeRule::Letterbox { width, height, fill, position, rounding, stride, boxes_back }
        }
    }
}

fn assume_pixels(prediction: &OutputPrediction, input: &mut ImageInput, findings: &mut Findings) {
    let is_gray = input.channels == ChannelOrder::Gray;
    input.divide_by = 1.0;
    input.mean = [0.0; 3];
    input.std = [1.0; 3];
    if input.element_type == ElementType::Uint8 {
        findings.recognized("input.divide_by", "1.0", "a uint8 input takes unscaled pixels");
        if !is_gray {
            let because = "ONNX does not record this; nearly all models with uint8 input expect RGB";
            findings.assumed("input.channels", "rgb", because);
        }
        return;
    }
    let planar = matches!(input.layout, Layout::Nchw | Layout::Chw);
    let because = match &prediction.convention {
        _ if is_gray => {
            input.divide_by = 255.0;
            "ONNX does not record this; models of grayscale images mostly expect 0 to 1"
        }
        OutputConvention::Detection(_) if prediction.side_multiple > 1 => {
            input.channels = ChannelOrder::Bgr;
            input.mean = MASKRCNN_MEAN;
            "ONNX does not record this; detectors with padded sides are mostly from maskrcnn-benchmark (the ONNX \
            Model Zoo's Faster R-CNN)"
        }
        OutputConvention::Detection(_) => {
            input.divide_by = 255.0;
            "ONNX does not record this; torchvision's and most other float detectors expect 0 to 1 and normalize inside"
        }
        OutputConvention::Classification(output)
            if output.background == Background::First || (output.values == ClassValues::ArgMax && !planar) =>
        {
            input.mean = TENSORFLOW_MEAN;
            "ONNX does not record this; a background class is typical of TensorFlow, whose ResNets expect 0 to 255 \
            minus this mean"
        }
        OutputConvention::Classification(_) | OutputConvention::Embedding(_) if planar => {
            input.divide_by = 255.0;
            input.mean = IMAGENET_MEAN;
            input.std = IMAGENET_STD;
            "ONNX does not record this; models of whole images with channels first are mostly from torchvision or timm, \
            which expect ImageNet's mean and std"
        }
        OutputConvention::Classification(_) | OutputConvention::Embedding(_) => {
            "ONNX does not record this; Keras models with channels last mostly expect 0 to 255 and normalize inside"
        }
    };
    if !is_gray {
        findings.assumed("input.channels", input.channels.into_str(), because);
    }
    findings.assumed("input.divide_by", format!("{:?}", input.divide_by), because);
    findings.assumed("input.mean", format!("{:?}", input.mean), because);
    findings.assumed("input.std", format!("{:?}", input.std), because);
}

fn classifier_resize(output: &ClassificationOutput, input: &ImageInput, sizes: &Sizes) -> (ResizeRule, String) {
    let (width, height, size_because) = whole_image_size(sizes);
    if width.max(height) <= SMALL_SIDE {
        let rule = ResizeRule::stretch(width, height);
        return (rule, format!("{size_because}; models for such small images are trained on whole images"));
    }
    let is_tflite = input.element_type == ElementType::Uint8
        && matches!(input.layout, Layout::Nhwc | Layout::Hwc)
        && output.background == Background::None;
    if is_from_keras(output, input) || is_tflite {
        let because =
            format!("{size_because}; ONNX does not record the resize rule, Keras and TensorFlow Lite stretch images");
        return (ResizeRule::stretch(width, height), because);
    }
    (
        center_crop(width, height, SEVEN_EIGHTHS),
        format!(
            "{size_because}; ONNX does not record the resize rule, classifiers mostly crop the central seven eighths"
        ),
    )
}

fn encoder_resize(usual: Option<Usual>, sizes: &Sizes) -> (ResizeRule, String) {
    let (width, height, because) = whole_image_size(sizes);
    let (rule, what) = match usual {
        Some(Usual::SigLip) => (ResizeRule::stretch(width, height), "SigLIP stretches images"),
        Some(Usual::Clip | Usual::MobileClip) => (center_crop(width, height, 1.0), "CLIP crops the central square"),
        _ => (center_crop(width, height, SEVEN_EIGHTHS), "encoders mostly crop the central seven eighths"),
    };
    (rule, format!("{because}; ONNX does not record the resize rule, {what}"))
}

/// Width and height of the input of a model of whole images, and why.
fn whole_image_size(sizes: &Sizes) -> (u32, u32, &str) {
    match (sizes.width, sizes.height, &sizes.preferred) {
        (Some(width), Some(height), _) => (width, height, "the graph fixes the size"),
        (_, _, &Some(([width, height], ref because))) => (width, height, because.as_str()),
        (width, height, None) => {
            let side = width.or(height).unwrap_or(DEFAULT_CLASSIFIER_SIDE);
            (width.unwrap_or(side), height.unwrap_or(side), "the graph takes any size and this is the default")
        }
    }
}

/// The short side of torchvision and timm relative to the input: 256 to 224, a crop of 7/8.
const SEVEN_EIGHTHS: f64 = 256.0 / 224.0;

fn center_crop(width: u32, height: u32, short_side: f64) -> ResizeRule {
    ResizeRule::ShortSideCrop {
        short_side: (f64::from(width.max(height)) * short_side).round() as u32,
        long_side: Rounding::Down,
        crop_width: width,
        crop_height: height,
        crop_offset: Rounding::HalfEven,
    }
}

/// Whether a classifier looks like those of Keras: channels last and no background class, or a single sigmoid.
fn is_from_keras(output: &ClassificationOutput, input: &ImageInput) -> bool {
    let has_channels_last = matches!(input.layout, Layout::Nhwc | Layout::Hwc);
    let is_tensorflow = output.background != Background::None || output.values == ClassValues::ArgMax;
    output.values == ClassValues::SecondProbability
        || (has_channels_last && input.element_type != ElementType::Uint8 && !is_tensorflow)
}

/// Whether the tensors have the default names of timm's `onnx_export`.
fn is_from_timm(model: &RecognitionRequest<'_>) -> bool {
    let ([input], [output]) = (&model.graph.inputs[..], &model.graph.outputs[..]) else {
        return false;
    };
    input.name == "input0" && output.name == "output0"
}

fn detector_resize(prediction: &OutputPrediction, sizes: &Sizes) -> (ResizeRule, String) {
    match (sizes.width, sizes.height, &sizes.preferred) {
        (Some(width), Some(height), _) => (
            ResizeRule::stretch(width, height),
            "the graph fixes the size; ONNX does not record the resize rule".to_owned(),
        ),
        (_, _, &Some(([width, height], ref because))) => (ResizeRule::stretch(width, height), because.clone()),
        _ if prediction.side_multiple > 1 => (
            ResizeRule::ShortSidePad {
                short_side: 800,
                max_long_side: 1333,
                pad_to_multiple: prediction.side_multiple,
                cut_to_multiple: 1,
                rounding: SideRounding::default(),
            },
            format!(
                "the graph ran only on sides that are a multiple of {}; 800 and 1333 are common sizes for such \
                models",
                prediction.side_multiple
            ),
        ),
        (width, height, _) if width.is_some() || height.is_some() => {
            let side = width.or(height).unwrap_or(DEFAULT_CLASSIFIER_SIDE);
            let rule = ResizeRule::stretch(width.unwrap_or(side), height.unwrap_or(side));
            (rule, "the graph fixes one side".to_owned())
        }
        _ => (ResizeRule::Keep {}, "the graph ran on any size; such detectors mostly resize inside".to_owned()),
    }
}

/// The rule in one line: `short-side-crop {short_side = 256, …}`.
pub(super) fn resize_text(rule: &ResizeRule) -> String {
    match *rule {
        ResizeRule::Keep {} => "keep".to_owned(),
        ResizeRule::Stretch { width, height, crop: None } => format!("stretch to {width}x{height}"),
        ResizeRule::Stretch { width, height, crop: Some(crop) } => {
            format!("stretch to {width}x{height}, middle {}x{}", crop.width, crop.height)
        }
        ResizeRule::ShortSideCrop { short_side, crop_width, crop_height, .. } => {
            format!("short-side-crop: short side to {short_side}, middle {crop_width}x{crop_height}")
        }
        ResizeRule::Letterbox { width, height, fill, .. } => {
            format!("letterbox into {width}x{height}, filled with {:?}", fill.0)
        }
        ResizeRule::ShortSidePad { short_side, max_long_side, pad_to_multiple, .. } => {
            format!(
                "short-side-pad: short side to {short_side}, long side at most {max_long_side}, padded to a multiple \
                of {pad_to_multiple}"
            )
        }
    }
}
