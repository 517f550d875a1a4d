//! How an image becomes the input of a model.

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use super::is_default;

/// How an image becomes the model's input tensor. For each channel, `value = (pixel / divide_by - mean) / std`, with
/// `pixel` in `0..=255`, computed in 32-bit floats. An input with one channel uses the first mean and standard
/// deviation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageInput {
    /// The graph's input; optional if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub layout: Layout,
    #[serde(rename = "type")]
    pub element_type: ElementType,
    #[serde(default)]
    pub channels: ChannelOrder,
    /// `1.0` leaves pixels in `0..=255`; `255.0` scales them to `0.0..=1.0`. Must be `1.0` for `uint8`.
    #[serde(default = "one")]
    pub divide_by: f32,
    /// In the model's channel order.
    #[serde(default)]
    pub mean: [f32; 3],
    /// In the model's channel order.
    #[serde(default = "ones")]
    pub std: [f32; 3],
    /// Whether the graph accepts several images of one size per call (its first dimension is free).
    #[serde(default)]
    pub batches: bool,
    /// The batch size, if the graph fixes one above 1. A call with fewer images repeats the last one and drops the
    /// extra predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_batch: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub interpolation: Interpolation,
    /// Applied before `resize`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub square: Square,
    pub resize: ResizeRule,
    /// Graph inputs other than the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auxiliary: Vec<AuxiliaryInput>,
}

impl ImageInput {
    /// RGB pixels in `0..=255`, one image per call.
    pub fn new(layout: Layout, element_type: ElementType, resize: ResizeRule) -> Self {
        Self {
            name: None,
            layout,
            element_type,
            channels: ChannelOrder::Rgb,
            divide_by: one(),
            mean: [0.0; 3],
            std: ones(),
            batches: false,
            fixed_batch: None,
            interpolation: Interpolation::default(),
            square: Square::default(),
            resize,
            auxiliary: Vec::new(),
        }
    }
}

fn one() -> f32 {
    1.0
}

fn ones() -> [f32; 3] {
    [1.0; 3]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Layout {
    /// `[batch, channel, row, column]`
    #[strum(message = "batch, channel, row, column")]
    Nchw,
    /// `[batch, row, column, channel]`
    #[strum(message = "batch, row, column, channel")]
    Nhwc,
    /// `[channel, row, column]`, one image
    #[strum(message = "channel, row, column")]
    Chw,
    /// `[row, column, channel]`, one image
    #[strum(message = "row, column, channel")]
    Hwc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum ElementType {
    Float32,
    Float16,
    Uint8,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum ChannelOrder {
    #[default]
    #[strum(message = "RGB")]
    Rgb,
    #[strum(message = "BGR")]
    Bgr,
    /// One channel, the luma of `Image.convert("L")`.
    #[serde(alias = "grey")]
    #[strum(message = "Grayscale")]
    Gray,
}

impl ChannelOrder {
    /// For each of the model's channels, the channel of the image, 0 for red. A gray image has the luma in all
    /// channels.
    pub fn image_channels(self) -> &'static [usize] {
        match self {
            Self::Rgb => &[0, 1, 2],
            Self::Bgr => &[2, 1, 0],
            Self::Gray => &[0],
        }
    }
}

/// How pixels are resampled. Both libraries compute 8-bit values but differ: when shrinking, Pillow averages over all
/// source pixels, OpenCV uses only the two or four nearest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Interpolation {
    /// `Image.resize(…, BILINEAR)`
    #[default]
    #[strum(message = "Pillow bilinear")]
    PillowBilinear,
    /// `Image.resize(…, BICUBIC)`
    #[strum(message = "Pillow bicubic")]
    PillowBicubic,
    /// `Image.resize(…, LANCZOS)`
    #[strum(message = "Pillow Lanczos")]
    PillowLanczos,
    /// `Image.resize(…, NEAREST)`
    #[strum(message = "Pillow nearest")]
    PillowNearest,
    /// `cv2.resize(…, INTER_LINEAR)`
    #[strum(message = "OpenCV linear")]
    OpencvLinear,
    /// `cv2.resize(…, INTER_CUBIC)` on x86-64; about three in a million values differ by one level. OpenCV for other
    /// CPUs differs from both in four of a hundred values, by one level.
    #[strum(message = "OpenCV cubic")]
    OpencvCubic,
    /// `cv2.warpPerspective(…, INTER_LINEAR)` with the inverse transform: pixel centers have integer coordinates, and
    /// the outside is black (NanoDet). One in a thousand values differs from OpenCV 5, by one level; OpenCV 4 rounds
    /// positions to 1/32 of a pixel.
    #[strum(message = "OpenCV warp")]
    OpencvWarp,
}

/// How the image is made square before it is resized.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Square {
    /// Keeps the aspect ratio.
    #[default]
    #[strum(message = "No")]
    No,
    /// Crops the central square, rounding left and top down (fastai, YOLOv5's classifiers).
    #[strum(message = "Crop to the central square")]
    Crop,
    /// Crops the central square, rounding each edge to the nearest pixel, halves to even, so that it may be one pixel
    /// wider or narrower: Pillow's `Image.crop` (Lobe).
    #[strum(message = "Crop as Pillow's Image.crop")]
    CropHalfEven,
    /// Crops the central square without rounding, including surrounding pixels where the resize filter reaches them:
    /// Pillow's `ImageOps.fit` (Teachable Machine). Equal to `Crop` with `pillow-nearest` and OpenCV's interpolations.
    #[strum(message = "Crop as Pillow's ImageOps.fit")]
    Fit,
    /// Pads with white on both sides, rounding left and top down (WD tagger).
    #[strum(message = "Pad with white")]
    PadWhite,
    /// Pads with black in the same way.
    #[strum(message = "Pad with black")]
    PadBlack,
}

/// How the image is brought to the size of the model's input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ResizeRule {
    /// The upright image unchanged; the graph accepts any size.
    Keep {},
    /// Resizes both sides to the given size, ignoring the aspect ratio, then crops the center if `crop` is set.
    Stretch {
        width: u32,
        height: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crop: Option<CenterCrop>,
    },
    /// Resizes the short side to `short_side` and the long side in proportion, rounded by `long_side`, then crops the
    /// central `crop_width` x `crop_height`, with left and top rounded by `crop_offset`.
    ShortSideCrop { short_side: u32, long_side: Rounding, crop_width: u32, crop_height: u32, crop_offset: Rounding },
    /// Scales in proportion to fit into `width` x `height`, with sides rounded by `rounding`; fills the rest with
    /// `fill`.
    Letterbox {
        width: u32,
        height: u32,
        fill: Fill,
        #[serde(default)]
        position: Position,
        #[serde(default = "half_even")]
        rounding: Rounding,
        /// If set, reduces the padding in each direction by as many whole multiples of this as possible, in pixels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride: Option<u32>,
        #[serde(default, skip_serializing_if = "is_default")]
        boxes_back: BoxesBack,
    },
    /// Scales in proportion so that the short side has `short_side` pixels and the long side at most `max_long_side`.
    ///
    /// The image is then padded on the right and bottom with zeros (after normalization) to `pad_to_multiple`.
    ShortSidePad {
        short_side: u32,
        max_long_side: u32,
        pad_to_multiple: u32,
        /// Rounds both sides of the resized image down to a multiple of this, in pixels (16 for YOLOS).
        #[serde(default = "one_pixel", skip_serializing_if = "is_one_pixel")]
        cut_to_multiple: u32,
        #[serde(default, skip_serializing_if = "is_default")]
        rounding: SideRounding,
    },
}

impl ResizeRule {
    /// Both sides to the given size, without a crop.
    pub fn stretch(width: u32, height: u32) -> Self {
        Self::Stretch { width, height, crop: None }
    }

    /// Centered on gray, as in Ultralytics.
    pub fn letterbox(width: u32, height: u32) -> Self {
        Self::Letterbox {
            width,
            height,
            fill: Fill([114; 3]),
            position: Position::Center,
            rounding: Rounding::HalfEven,
            stride: None,
            boxes_back: BoxesBack::EachAxis,
        }
    }

    /// One rule of each kind, for an input of the same size as this rule's.
    pub fn one_per_kind(&self) -> [Self; 5] {
        const LONGEST: u64 = 16_384;
        let [width, height] = match *self {
            Self::ShortSidePad { short_side, .. } => [short_side, short_side],
            _ => self.tensor_size().unwrap_or([640, 640]),
        };
        let (short, long) = (width.min(height), width.max(height));
        [
            Self::stretch(width, height),
            Self::letterbox(width, height),
            Self::ShortSideCrop {
                // 7/8 is the most common crop.
                short_side: (u64::from(long) * 8 / 7).min(LONGEST) as u32,
                long_side: Rounding::Down,
                crop_width: width,
                crop_height: height,
                crop_offset: Rounding::HalfEven,
            },
            Self::ShortSidePad {
                short_side: short,
                max_long_side: (u64::from(short) * 5 / 3).min(LONGEST) as u32,
                pad_to_multiple: 32,
                cut_to_multiple: 1,
                rounding: SideRounding::default(),
            },
            Self::Keep {},
        ]
    }

    /// Width and height of the tensor; `None` if they depend on the image. Ignores the stride of a letterbox.
    pub fn tensor_size(&self) -> Option<[u32; 2]> {
        match *self {
            Self::Stretch { crop: Some(CenterCrop { width, height, .. }), .. }
            | Self::Stretch { width, height, crop: None }
            | Self::Letterbox { width, height, .. }
            | Self::ShortSideCrop { crop_width: width, crop_height: height, .. } => Some([width, height]),
            Self::Keep {} | Self::ShortSidePad { .. } => None,
        }
    }
}

/// A crop of the center of a resized image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CenterCrop {
    pub width: u32,
    pub height: u32,
    /// How the left and top offsets are rounded.
    pub offset: Rounding,
}

fn one_pixel() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_one_pixel(multiple: &u32) -> bool {
    *multiple == 1
}

fn half_even() -> Rounding {
    Rounding::HalfEven
}

/// The padding color of a letterboxed image, 8-bit RGB. Written as one number if all three are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "FillForm", into = "FillForm")]
pub struct Fill(pub [u8; 3]);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum FillForm {
    Gray(u8),
    Rgb([u8; 3]),
}

impl From<FillForm> for Fill {
    fn from(form: FillForm) -> Self {
        match form {
            FillForm::Gray(level) => Self([level; 3]),
            FillForm::Rgb(levels) => Self(levels),
        }
    }
}

impl From<Fill> for FillForm {
    fn from(Fill(levels): Fill) -> Self {
        let [red, green, blue] = levels;
        if red == green && green == blue { Self::Gray(red) } else { Self::Rgb(levels) }
    }
}

/// Where a letterboxed image is placed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Position {
    /// Centered; of an odd rest, the right and bottom get one more pixel.
    #[default]
    #[serde(alias = "centre")]
    #[strum(message = "In the middle")]
    Center,
    #[strum(message = "Top left")]
    TopLeft,
}

/// How boxes are mapped from a letterbox back to the image. Exporters' own code differs by up to one input pixel.
/// `ratio` is the smaller of tensor side / image side.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum BoxesBack {
    /// The ratio of the rounded sides for each axis, and the actual padding: where the pixels really came from
    /// (Ultralytics from 8.4.125).
    #[default]
    #[strum(message = "Ratio of each axis")]
    EachAxis,
    /// `ratio` for both axes, and the actual padding (YOLOX; Ultralytics from 8.4).
    #[strum(message = "One ratio")]
    OneRatio,
    /// `ratio` for both axes, and the padding that unrounded sides would have, rounded (Ultralytics up to 8.3).
    #[strum(message = "One ratio, rounded padding")]
    RoundedPadding,
    /// `ratio` for both axes, and the padding that unrounded sides would have (YOLOv5 and YOLOv7).
    #[strum(message = "One ratio, exact padding")]
    ExactPadding,
}

/// How [`ResizeRule::ShortSidePad`] rounds the sides, and maps boxes back.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum SideRounding {
    /// With padding (ONNX Model Zoo), sides are rounded down; boxes are scaled back by one ratio for both axes. Without
    /// padding (transformers: DETR, YOLOS), the short side is rounded half to even and the long side down; boxes are
    /// scaled back by the ratio of each axis.
    #[default]
    #[strum(message = "By padding: down, or as in DETR")]
    ByPadding,
    /// Both sides to the nearest, halves up; boxes are scaled back by the ratio of each axis (`int(side * scale + 0.5)`
    /// in mmcv's `rescale_size` and in Detectron2's `ResizeShortestEdge`).
    #[strum(message = "Nearest, halves up")]
    HalfUp,
    /// Both sides to the nearest, halves to even; boxes are scaled back by one ratio (`cv2.resize` with `fx` and `fy`
    /// in keras-retinanet's `resize_image`).
    #[strum(message = "Nearest, halves to even")]
    HalfEven,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Rounding {
    /// Towards zero, as Python's `int()` (torchvision's long side).
    #[strum(message = "Down")]
    Down,
    /// To the nearest, halves to even, as Python's `round()` (torchvision's crop offset).
    #[strum(message = "Nearest, halves to even")]
    HalfEven,
    /// To the nearest, halves up: `int(x + 0.5)` (`MMDetection`'s sides).
    #[strum(message = "Nearest, halves up")]
    HalfUp,
}

/// A graph input other than the image, of any number type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuxiliaryInput {
    pub name: String,
    pub value: AuxiliaryValue,
    /// Width and height of a `pixel-mask` in pixels, if the graph fixes them; otherwise those of the tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_size: Option<[u32; 2]>,
}

impl AuxiliaryInput {
    pub fn new(name: &str, value: AuxiliaryValue) -> Self {
        Self { name: name.to_owned(), value, mask_size: None }
    }
}

/// The value of an auxiliary input. All have a leading batch dimension of 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum AuxiliaryValue {
    /// `[1, 2]`: height and width of the resized image, each divided by that of the upright image (PaddleDetection's
    /// `scale_factor`).
    #[strum(message = "Scale: height, width")]
    ScaleFactor,
    /// `[1, 2]`: height and width of the tensor, in pixels (PaddleDetection's `im_shape`).
    #[strum(message = "Input height, width")]
    InputHeightWidth,
    /// `[1, 2]`: height and width of the upright image, in pixels.
    #[strum(message = "Image height, width")]
    ImageHeightWidth,
    /// `[1, 2]`: width and height of the upright image, in pixels (`orig_target_sizes` of RT-DETR and D-FINE).
    #[strum(message = "Image width, height")]
    ImageWidthHeight,
    /// `[1, height, width]`: 1 for pixels of the image, 0 for padding (`pixel_mask` of DETR).
    #[strum(message = "Mask of the image's pixels")]
    PixelMask,
}
