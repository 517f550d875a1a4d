//! From an image to the tensor described by the model card.

use super::resize::{ResizeWindow, resize, warp};
use super::{PredictError, Prepared, Tensor, TensorData};
use crate::domain::{
    AuxiliaryInput, AuxiliaryValue, AxisTransform, BoxesBack, CenterCrop, ChannelOrder, ElementType, Fill, ImageInput,
    Interpolation, Layout, Position, ResizeRule, RgbImage, Rounding, SideRounding, Square,
};

/// Resizes, pads and normalizes as the card specifies.
///
/// # Errors
/// [`PredictError::Failed`] if the card's crop is larger than the resized image, its input is too large, or the image
/// is too long to be resized.
pub fn preprocess(input: &ImageInput, image: &RgbImage) -> Result<Prepared, PredictError> {
    let gray;
    let image = if input.channels == ChannelOrder::Gray {
        gray = gray_of(image);
        &gray
    } else {
        image
    };
    let image_size = [image.width(), image.height()];
    let square = SquarePart::new(input, image_size)?;
    let squared;
    let image = if square.is_exact || square.size == image_size {
        image
    } else {
        squared = square.cut_out(image);
        &squared
    };
    let mut placement = Placement::new(&input.resize, square.size[0], square.size[1])?;
    if square.is_exact {
        placement.window.margin = square.corner;
    }
    check_sizes(input, image, &placement)?;
    let auxiliary = auxiliary(input, &placement, image_size);
    let resized;
    let pixels = if input.interpolation == Interpolation::OpencvWarp {
        resized = warp(image, placement.cover());
        &resized
    } else if placement.window == ResizeWindow::whole(image.width(), image.height()) {
        image.rgb()
    } else {
        resized = resize(image, placement.window, input.interpolation);
        &resized
    };
    Ok(Prepared {
        tensor: tensor(input, &placement, pixels),
        auxiliary,
        image_from_model: AxisTransform {
            scale: placement.image_from_model.scale,
            offset: [0, 1].map(|axis| placement.image_from_model.offset[axis] + square.corner[axis]),
        },
        canvas_size: placement.canvas_size,
        image_size,
    })
}

/// The pixels of the placement's window as the model's input.
fn tensor(input: &ImageInput, placement: &Placement, pixels: &[u8]) -> Tensor {
    let data = match input.element_type {
        ElementType::Uint8 => {
            let fill = placement.fill.map_or([0; 3], |fill| in_channel_order(input, fill));
            TensorData::U8(lay_out(input, placement, pixels, fill, |_, level| level))
        }
        ElementType::Float32 | ElementType::Float16 => {
            let table = normalization_table(input);
            let value = |channel: usize, level: u8| table[channel][usize::from(level)];
            let fill = placement.fill.map(|fill| in_channel_order(input, fill));
            let fill = [0, 1, 2].map(|channel| fill.map_or(0.0, |levels| value(channel, levels[channel])));
            TensorData::F32(lay_out(input, placement, pixels, fill, value))
        }
    };
    let [width, height] = placement.canvas_size.map(|side| side as usize);
    let channels = input.channels.image_channels().len();
    let shape = match input.layout {
        Layout::Nchw => vec![1, channels, height, width],
        Layout::Nhwc => vec![1, height, width, channels],
        Layout::Chw => vec![channels, height, width],
        Layout::Hwc => vec![height, width, channels],
    };
    Tensor::new(shape, data)
}

/// The luma in every channel, rounded as in Pillow's `convert("L")`.
fn gray_of(image: &RgbImage) -> RgbImage {
    let luma = |pixel: &[u8]| {
        let [red, green, blue] = [0, 1, 2].map(|channel| u32::from(pixel[channel]));
        ((red * 19_595 + green * 38_470 + blue * 7_471 + 0x8000) >> 16) as u8
    };
    let pixels = image.rgb().chunks_exact(3).flat_map(|pixel| [luma(pixel); 3]).collect();
    RgbImage::new(image.width(), image.height(), pixels).expect("it has as many pixels as the image")
}

/// What the resize rule is applied to: the image, or its central square (up to rounding).
struct SquarePart {
    size: [u32; 2],
    /// Left and top in the image, in pixels; negative where it is padded.
    corner: [f64; 2],
    /// Whether the corner may be between pixels, and pixels beyond the square count.
    is_exact: bool,
    /// The level of the padding.
    fill: u8,
}

impl SquarePart {
    fn new(input: &ImageInput, size: [u32; 2]) -> Result<Self, PredictError> {
        let fill = if input.square == Square::PadWhite { 255 } else { 0 };
        let is_exact = input.square == Square::Fit
            && is_pillows(input.interpolation)
            && input.interpolation != Interpolation::PillowNearest;
        let side = match input.square {
            Square::No => return Ok(Self { size, corner: [0.0; 2], is_exact, fill }),
            Square::Crop | Square::CropHalfEven | Square::Fit => size[0].min(size[1]),
            Square::PadWhite | Square::PadBlack => size[0].max(size[1]),
        };
        if u64::from(side) * u64::from(side) > MAX_RESIZED_PIXELS {
            let [width, height] = size;
            return Err(PredictError::Failed(format!(
                "the image is {width} x {height} pixels, too large to be made square; split it into tiles"
            )));
        }
        if input.square == Square::CropHalfEven {
            let edge = |twice: f64| (twice / 2.0).round_ties_even();
            let corner = size.map(|length| edge(f64::from(length) - f64::from(side)));
            let ends = size.map(|length| edge(f64::from(length) + f64::from(side)));
            let size = [0, 1].map(|axis| (ends[axis] - corner[axis]).max(1.0) as u32);
            return Ok(Self { size, corner, is_exact, fill });
        }
        let corner = size.map(|length| (f64::from(length) - f64::from(side)) / 2.0);
        let corner = if is_exact { corner } else { corner.map(f64::trunc) };
        Ok(Self { size: [side; 2], corner, is_exact, fill })
    }

    fn cut_out(&self, image: &RgbImage) -> RgbImage {
        let [columns, rows] = self.size.map(|side| side as usize);
        let [width, height] = [image.width(), image.height()].map(|side| side as usize);
        // The corner of the copied part in the image and in the square.
        let [left, top] = self.corner.map(|corner| corner.max(0.0) as usize);
        let [square_left, square_top] = self.corner.map(|corner| (-corner).max(0.0) as usize);
        let row_bytes = width.min(columns) * 3;
        let mut pixels = vec![self.fill; columns * rows * 3];
        let copied = image.rgb().chunks_exact(width * 3).skip(top).take(height.min(rows));
        for (row, target) in copied.zip(pixels.chunks_exact_mut(columns * 3).skip(square_top)) {
            target[square_left * 3..][..row_bytes].copy_from_slice(&row[left * 3..][..row_bytes]);
        }
        RgbImage::new(self.size[0], self.size[1], pixels).expect("it has as many pixels as the square")
    }
}

/// The longest side of an image that can be resized, in pixels: beyond it, the weights alone fill the memory.
const MAX_RESIZED_SIDE: u32 = 1 << 20;
/// Maximum number of pixels of a model input whose size is in the card: 768 MiB in 32-bit floats.
const MAX_INPUT_PIXELS: u64 = 1 << 26;

/// Maximum number of pixels between the two passes of Pillow's resize, and after them in the columns of a crop: what
/// the handler in archives, which uses Pillow itself, can hold.
const MAX_RESIZED_PIXELS: u64 = 1 << 28;

fn check_sizes(input: &ImageInput, image: &RgbImage, placement: &Placement) -> Result<(), PredictError> {
    let [width, height] = placement.canvas_size;
    let too_long = |reason: &str| {
        let size = format!("{} x {} pixels", image.width(), image.height());
        Err(PredictError::Failed(format!("the image is {size}, {reason}; split it into tiles")))
    };
    if matches!(input.resize, ResizeRule::Keep {}) {
        Ok(())
    } else if image.width().max(image.height()) > MAX_RESIZED_SIDE {
        too_long(&format!("with a side longer than {MAX_RESIZED_SIDE}"))
    } else if is_pillows(input.interpolation) && pixels_of_pillow(image, placement.window) > MAX_RESIZED_PIXELS {
        too_long("too long for this model")
    } else if u64::from(width) * u64::from(height) > MAX_INPUT_PIXELS {
        Err(PredictError::Failed(format!(
            "the model card asks for {width} x {height} pixels, more than {MAX_INPUT_PIXELS}; correct its resize rule"
        )))
    } else {
        Ok(())
    }
}

fn is_pillows(interpolation: Interpolation) -> bool {
    match interpolation {
        Interpolation::PillowBilinear
        | Interpolation::PillowBicubic
        | Interpolation::PillowLanczos
        | Interpolation::PillowNearest => true,
        Interpolation::OpencvLinear | Interpolation::OpencvCubic | Interpolation::OpencvWarp => false,
    }
}

/// The larger one of Pillow's intermediate images.
fn pixels_of_pillow(image: &RgbImage, window: ResizeWindow) -> u64 {
    let pixels = |width: u32, height: u32| u64::from(width) * u64::from(height);
    pixels(window.full_size[0], image.height()).max(pixels(window.size[0], window.full_size[1]))
}

/// The card's auxiliary inputs for an image of `image_size`.
fn auxiliary(input: &ImageInput, placement: &Placement, [width, height]: [u32; 2]) -> Vec<(String, Tensor)> {
    let both = |first: f64, second: f64| Tensor::f32([1, 2], vec![first as f32, second as f32]);
    let sides = |first: u32, second: u32| both(first.into(), second.into());
    let [canvas_width, canvas_height] = placement.canvas_size;
    let [full_width, full_height] = placement.window.full_size;
    let of = |input: &AuxiliaryInput| match input.value {
        AuxiliaryValue::ScaleFactor => both(ratio(full_height, height), ratio(full_width, width)),
        AuxiliaryValue::InputHeightWidth => sides(canvas_height, canvas_width),
        AuxiliaryValue::ImageHeightWidth => sides(height, width),
        AuxiliaryValue::ImageWidthHeight => sides(width, height),
        AuxiliaryValue::PixelMask => pixel_mask(placement, input.mask_size.unwrap_or(placement.canvas_size)),
    };
    input.auxiliary.iter().map(|input| (input.name.clone(), of(input))).collect()
}

/// The part of the tensor that is image, as a mask of `size` (width and height in pixels).
fn pixel_mask(placement: &Placement, size: [u32; 2]) -> Tensor {
    let is_image = [0, 1].map(|axis| {
        let start = placement.canvas_offset[axis];
        let image = start..start + placement.window.size[axis];
        let in_canvas = |at: u32| u64::from(at) * u64::from(placement.canvas_size[axis]) / u64::from(size[axis]);
        (0..size[axis]).map(|at| image.contains(&(in_canvas(at) as u32))).collect::<Vec<bool>>()
    });
    let [columns, rows] = &is_image;
    let mask = rows.iter().flat_map(|row| columns.iter().map(move |column| f32::from(*row && *column)));
    Tensor::f32([1, rows.len(), columns.len()], mask.collect())
}

fn in_channel_order(input: &ImageInput, Fill(fill): Fill) -> [u8; 3] {
    let channels = input.channels.image_channels();
    [0, 1, 2].map(|channel| fill[channels[channel % channels.len()]])
}

/// The value of every 8-bit level for each of the model's channels: `(level / divide_by - mean) / std`.
fn normalization_table(input: &ImageInput) -> [[f32; 256]; 3] {
    [0, 1, 2].map(|channel| {
        std::array::from_fn(|level| (level as f32 / input.divide_by - input.mean[channel]) / input.std[channel])
    })
}

/// The position of the resized image in the tensor.
#[derive(Debug)]
struct Placement {
    /// The computed part of the resized image.
    window: ResizeWindow,
    /// Width and height of the tensor.
    canvas_size: [u32; 2],
    /// Left and top of the window in the tensor.
    canvas_offset: [u32; 2],
    /// The color around the window; `None` for zero after normalization.
    fill: Option<Fill>,
    image_from_model: AxisTransform,
}

impl Placement {
    fn new(rule: &ResizeRule, width: u32, height: u32) -> Result<Self, PredictError> {
        match *rule {
            ResizeRule::Keep {} => Ok(Self::filled(width, height, [width, height])),
            ResizeRule::Stretch { width: full_width, height: full_height, crop } => {
                let full_size = [full_width, full_height];
                match crop {
                    Some(crop) => Self::cropped(width, height, full_size, crop),
                    None => Ok(Self::filled(width, height, full_size)),
                }
            }
            ResizeRule::ShortSideCrop { short_side, long_side, crop_width, crop_height, crop_offset } => {
                let full_size = short_side_to(short_side, long_side, width, height);
                let crop = CenterCrop { width: crop_width, height: crop_height, offset: crop_offset };
                Self::cropped(width, height, full_size, crop)
            }
            ResizeRule::Letterbox {
                width: canvas_width,
                height: canvas_height,
                fill,
                position,
                rounding,
                stride,
                boxes_back,
            } => {
                let letterbox = Letterbox {
                    canvas_size: [canvas_width, canvas_height],
                    fill,
                    position,
                    rounding,
                    stride,
                    boxes_back,
                };
                Ok(letterbox.place(width, height))
            }
            ResizeRule::ShortSidePad { short_side, max_long_side, pad_to_multiple, cut_to_multiple, rounding } => {
                let gain = ratio(short_side, width.min(height)).min(ratio(max_long_side, width.max(height)));
                let scaled = |rounding| [width, height].map(|side| rounded(f64::from(side) * gain, rounding));
                let (size, boxes_back) = match rounding {
                    SideRounding::ByPadding if pad_to_multiple == 1 => {
                        (short_side_up_to(short_side, max_long_side, width, height), BoxesBack::EachAxis)
                    }
                    SideRounding::ByPadding => (scaled(Rounding::Down), BoxesBack::OneRatio),
                    SideRounding::HalfUp => (scaled(Rounding::HalfUp), BoxesBack::EachAxis),
                    SideRounding::HalfEven => (scaled(Rounding::HalfEven), BoxesBack::OneRatio),
                };
                let mut placement = Self::filled(width, height, size.map(|side| cut(side, cut_to_multiple)));
                placement.canvas_size = placement.canvas_size.map(|side| side.next_multiple_of(pad_to_multiple.max(1)));
                if boxes_back == BoxesBack::OneRatio {
                    placement.image_from_model.scale = [1.0 / gain; 2];
                }
                Ok(placement)
            }
        }
    }

    /// Makes the window cover the whole tensor. Returns the image position of each column and row of the tensor, in
    /// pixels.
    fn cover(&mut self) -> [Vec<f64>; 2] {
        (self.window, self.canvas_offset) = (ResizeWindow::whole(self.canvas_size[0], self.canvas_size[1]), [0, 0]);
        let AxisTransform { scale, offset } = self.image_from_model;
        [0, 1].map(|axis| (0..self.canvas_size[axis]).map(|at| f64::from(at) * scale[axis] + offset[axis]).collect())
    }

    /// The whole image at `size`, which is the whole tensor.
    fn filled(width: u32, height: u32, size: [u32; 2]) -> Self {
        Self {
            window: ResizeWindow::whole(size[0], size[1]),
            canvas_size: size,
            canvas_offset: [0, 0],
            fill: None,
            image_from_model: AxisTransform {
                scale: [ratio(width, size[0]), ratio(height, size[1])],
                offset: [0.0, 0.0],
            },
        }
    }

    /// The center of the image at `full_size`, which is the whole tensor.
    fn cropped(width: u32, height: u32, full_size: [u32; 2], crop: CenterCrop) -> Result<Self, PredictError> {
        let size = [crop.width, crop.height];
        if size[0] > full_size[0] || size[1] > full_size[1] {
            return Err(PredictError::Failed(format!(
                "the model card crops {}x{} from an image of {}x{}; correct its resize rule",
                size[0], size[1], full_size[0], full_size[1]
            )));
        }
        let origin = [0, 1].map(|axis| rounded(f64::from(full_size[axis] - size[axis]) / 2.0, crop.offset));
        let scale = [ratio(width, full_size[0]), ratio(height, full_size[1])];
        Ok(Self {
            window: ResizeWindow { full_size, origin, size, margin: [0.0; 2] },
            canvas_size: size,
            canvas_offset: [0, 0],
            fill: None,
            image_from_model: AxisTransform {
                scale,
                offset: [f64::from(origin[0]) * scale[0], f64::from(origin[1]) * scale[1]],
            },
        })
    }
}

/// The values of [`ResizeRule::Letterbox`].
#[derive(Debug, Clone, Copy)]
struct Letterbox {
    canvas_size: [u32; 2],
    fill: Fill,
    position: Position,
    rounding: Rounding,
    stride: Option<u32>,
    boxes_back: BoxesBack,
}

impl Letterbox {
    fn fitted(self, image: [u32; 2], gain: f64) -> [u32; 2] {
        [0, 1].map(|axis| rounded(f64::from(image[axis]) * gain, self.rounding).clamp(1, self.canvas_size[axis]))
    }

    fn place(self, width: u32, height: u32) -> Placement {
        let image = [width, height];
        let gain = fitting_ratio(image, self.canvas_size);
        let size = self.fitted(image, gain);
        let canvas_size = [0, 1].map(|axis| match self.stride {
            // The part that whole strides fill is not needed.
            Some(stride) => size[axis] + (self.canvas_size[axis] - size[axis]) % stride.max(1),
            None => self.canvas_size[axis],
        });
        let canvas_offset = match self.position {
            Position::Center => [0, 1].map(|axis| (canvas_size[axis] - size[axis]) / 2),
            Position::TopLeft => [0, 0],
        };
        // Boxes are scaled back by the tensor alone, which a stride may have made so small that the ratio changes.
        let gain = fitting_ratio(image, canvas_size);
        let size_for_boxes = self.fitted(image, gain);
        let exact_padding = |axis: usize| (f64::from(canvas_size[axis]) - f64::from(image[axis]) * gain) / 2.0;
        let padding = [0, 1].map(|axis| match self.boxes_back {
            _ if self.position == Position::TopLeft => 0.0,
            BoxesBack::EachAxis | BoxesBack::OneRatio => f64::from((canvas_size[axis] - size_for_boxes[axis]) / 2),
            BoxesBack::RoundedPadding => (exact_padding(axis) - 0.1).round_ties_even(),
            BoxesBack::ExactPadding => exact_padding(axis),
        });
        let scale = match self.boxes_back {
            BoxesBack::EachAxis => [0, 1].map(|axis| ratio(image[axis], size_for_boxes[axis])),
            BoxesBack::OneRatio | BoxesBack::RoundedPadding | BoxesBack::ExactPadding => [1.0 / gain; 2],
        };
        Placement {
            window: ResizeWindow::whole(size[0], size[1]),
            canvas_size,
            canvas_offset,
            fill: Some(self.fill),
            image_from_model: AxisTransform { scale, offset: [0, 1].map(|axis| -padding[axis] * scale[axis]) },
        }
    }
}

/// The ratio with which an image fits into a canvas.
fn fitting_ratio(image: [u32; 2], canvas: [u32; 2]) -> f64 {
    ratio(canvas[0], image[0]).min(ratio(canvas[1], image[1]))
}

fn rounded(length: f64, rounding: Rounding) -> u32 {
    match rounding {
        Rounding::Down => length as u32,
        Rounding::HalfEven => length.round_ties_even() as u32,
        Rounding::HalfUp => (length + 0.5) as u32,
    }
}

/// The size with the short side at `short_side` and the long side at most `max_long_side`, as computed by DETR's image
/// processors in transformers.
fn short_side_up_to(short_side: u32, max_long_side: u32, width: u32, height: u32) -> [u32; 2] {
    let [short, long] = [width.min(height), width.max(height)].map(f64::from);
    let [short_side, max_long_side] = [short_side, max_long_side].map(f64::from);
    let is_too_long = long / short * short_side > max_long_side;
    let exact = if is_too_long { max_long_side * short / long } else { short_side };
    let rounded = exact.round_ties_even();
    // An image whose short side already fits is unchanged, even if it is too long.
    let size = if short == rounded { [short, long] } else { [rounded, (exact * long / short).floor()] };
    let [short, long] = size.map(|side| side as u32);
    if width <= height { [short, long] } else { [long, short] }
}

/// Rounded down to a multiple, but not to 0.
fn cut(side: u32, multiple: u32) -> u32 {
    let multiple = multiple.max(1);
    (side - side % multiple).max(multiple)
}

/// The size with the short side at `short_side` and the long side in proportion.
fn short_side_to(short_side: u32, rounding: Rounding, width: u32, height: u32) -> [u32; 2] {
    let short = width.min(height);
    let scaled = |side: u32| -> u32 {
        let exact = match rounding {
            Rounding::Down => f64::from(short_side) * f64::from(side) / f64::from(short),
            Rounding::HalfEven | Rounding::HalfUp => f64::from(side) * ratio(short_side, short),
        };
        rounded(exact, rounding).max(short_side)
    };
    [scaled(width), scaled(height)]
}

fn ratio(numerator: u32, denominator: u32) -> f64 {
    f64::from(numerator) / f64::from(denominator)
}

/// Writes the window's pixels into a tensor in the card's layout and channel order, with `fill` (in the model's channel
/// order) around them. `value` receives the model's channel and the level.
fn lay_out<T: Copy>(
    input: &ImageInput,
    placement: &Placement,
    pixels: &[u8],
    fill: [T; 3],
    value: impl Fn(usize, u8) -> T,
) -> Vec<T> {
    let [width, height] = placement.canvas_size.map(|side| side as usize);
    let [left, top] = placement.canvas_offset.map(|side| side as usize);
    let image_width = placement.window.size[0] as usize;
    let plane = width * height;
    let image_channels = input.channels.image_channels();
    // The offset of a channel's values from the first channel of the first pixel.
    let (channel_stride, pixel_stride) = match input.layout {
        Layout::Nchw | Layout::Chw => (plane, 1),
        Layout::Nhwc | Layout::Hwc => (1, image_channels.len()),
    };
    let mut values = vec![fill[0]; plane * image_channels.len()];
    if placement.canvas_size != placement.window.size {
        for (channel, &fill) in fill.iter().take(image_channels.len()).enumerate() {
            for pixel in 0..plane {
                values[channel * channel_stride + pixel * pixel_stride] = fill;
            }
        }
    }
    for (channel, &image_channel) in image_channels.iter().enumerate() {
        for (y, row) in pixels.chunks_exact(image_width * 3).enumerate() {
            let start = channel * channel_stride + ((y + top) * width + left) * pixel_stride;
            let targets = values[start..].iter_mut().step_by(pixel_stride);
            for (target, pixel) in targets.zip(row.chunks_exact(3)) {
                *target = value(channel, pixel[image_channel]);
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};
    use strum::VariantArray as _;

    use super::*;

    fn input(layout: Layout, resize: ResizeRule) -> ImageInput {
        ImageInput::new(layout, ElementType::Float32, resize)
    }

    fn two_pixels() -> RgbImage {
        RgbImage::new(2, 1, vec![1, 2, 3, 4, 5, 6]).unwrap()
    }

    fn values(prepared: &Prepared) -> Vec<f64> {
        prepared.tensor.to_f64()
    }

    #[test]
    fn layouts_and_channel_orders_are_respected() {
        let planar = input(Layout::Nchw, ResizeRule::Keep {});
        assert_eq!(values(&preprocess(&planar, &two_pixels()).unwrap()), [1., 4., 2., 5., 3., 6.]);
        let bgr = ImageInput { channels: ChannelOrder::Bgr, ..input(Layout::Nhwc, ResizeRule::Keep {}) };
        let prepared = preprocess(&bgr, &two_pixels()).unwrap();
        assert_eq!(prepared.tensor.shape, [1, 1, 2, 3]);
        assert_eq!(values(&prepared), [3., 2., 1., 6., 5., 4.]);
    }

    #[test]
    fn mean_and_std_follow_the_model_channels() {
        let bgr = ImageInput {
            channels: ChannelOrder::Bgr,
            mean: [3.0, 0.0, 0.0],
            std: [1.0, 2.0, 1.0],
            ..input(Layout::Hwc, ResizeRule::Keep {})
        };
        assert_eq!(values(&preprocess(&bgr, &two_pixels()).unwrap()), [0., 1., 1., 3., 2.5, 4.]);
    }

    #[test]
    fn square_crop_rounds_each_edge_as_pillow() {
        let lobe = ImageInput { square: Square::CropHalfEven, ..input(Layout::Hwc, ResizeRule::stretch(2, 2)) };
        // `half = lambda x: round(x / 2); [half(side - min(size)) …], [half(side + min(size)) …]`, as `Image.crop` in
        // Pillow 12.3 rounds `left, top, right, bottom`.
        for (size, corner, cropped) in [
            ([451, 300], [76.0, 0.0], [300, 300]),
            ([640, 243], [198.0, 0.0], [244, 243]),
            ([243, 642], [0.0, 200.0], [243, 242]),
            ([7, 7], [0.0, 0.0], [7, 7]),
            ([10, 4], [3.0, 0.0], [4, 4]),
        ] {
            let part = SquarePart::new(&lobe, size).unwrap();
            assert_eq!((part.corner, part.size), (corner, cropped), "{size:?}");
        }
        let four_wide = RgbImage::new(4, 1, vec![7; 12]).unwrap();
        assert!(preprocess(&lobe, &four_wide).is_ok(), "a crop without pixels keeps one");
    }

    #[test]
    fn padding_is_right_and_below() {
        let rule = ResizeRule::ShortSidePad {
            short_side: 3,
            max_long_side: 100,
            pad_to_multiple: 4,
            cut_to_multiple: 1,
            rounding: SideRounding::default(),
        };
        let prepared = preprocess(&input(Layout::Chw, rule), &two_pixels()).unwrap();
        assert_eq!(prepared.tensor.shape, [3, 4, 8]);
        assert!((prepared.image_from_model.scale[0] - 1.0 / 3.0).abs() < 1e-12);
        let values = values(&prepared);
        assert_eq!(values[..8], [1., 1., 2., 3., 4., 4., 0., 0.]);
        assert!(values[24..32].iter().all(|&value| value == 0.0), "the fourth row is padding");
    }

    #[test]
    fn letterbox_is_centered_and_mapped_back() {
        let rule = ResizeRule::Letterbox {
            width: 4,
            height: 4,
            fill: Fill([9; 3]),
            position: Position::Center,
            rounding: Rounding::HalfEven,
            stride: None,
            boxes_back: BoxesBack::EachAxis,
        };
        let prepared = preprocess(&input(Layout::Nchw, rule), &two_pixels()).unwrap();
        let image_from_model = prepared.image_from_model;
        assert_eq!(image_from_model.offset, [0.0, -0.5]);
        let values = values(&prepared);
        assert_eq!(values[..4], [9.0; 4]);
        assert_eq!(values[12..16], [9.0; 4]);
        assert!(values[4] < 2.0, "the image begins in the second row");
    }

    #[derive(serde::Deserialize)]
    struct PlacementCase {
        rule: ResizeRule,
        first: Vec<String>,
        sha256: String,
    }

    /// As `sizes` in `tests/golden/make_placements.py`.
    fn sizes() -> impl Iterator<Item = [u32; 2]> {
        let mut state = 1_u32;
        let mut side = move |most: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            1 + (state >> 8) % most
        };
        let all = (0..3000).map(move |number| {
            let most = [90, 700, 2200, 9000][number % 4];
            [side(most), side(most)]
        });
        all.filter(|&[width, height]| width.max(height) <= 20 * width.min(height))
    }

    #[test]
    fn placements_match_published_rules() {
        let text = include_str!("../../tests/golden/placements.json");
        let cases: Vec<PlacementCase> = serde_json::from_str(text).unwrap();
        for case in cases {
            let lines: Vec<String> = sizes().map(|size| placement_line(&case.rule, size)).collect();
            assert_eq!(lines[..4], case.first, "{:?}", case.rule);
            let sha256 = Sha256::digest(lines.concat().as_bytes());
            let sha256: Vec<String> = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(sha256.concat(), case.sha256, "{:?}", case.rule);
        }
    }

    /// As `line` in the script.
    fn placement_line(rule: &ResizeRule, [width, height]: [u32; 2]) -> String {
        let placement = Placement::new(rule, width, height).unwrap();
        let (scale, offset) = (placement.image_from_model.scale, placement.image_from_model.offset);
        let padding = [0, 1].map(|axis| (-offset[axis] / scale[axis]) + 0.0);
        let sides = [[width, height], placement.window.full_size, placement.canvas_size, placement.canvas_offset];
        let sides = sides.concat().iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        format!("{sides} {:.6} {:.6} {:.6} {:.6}\n", scale[0], scale[1], padding[0], padding[1])
    }

    #[test]
    fn auxiliary_inputs_hold_both_sizes() {
        let rule = ResizeRule::Letterbox {
            width: 8,
            height: 6,
            fill: Fill([0; 3]),
            position: Position::Center,
            rounding: Rounding::HalfEven,
            stride: None,
            boxes_back: BoxesBack::EachAxis,
        };
        let auxiliary = AuxiliaryValue::VARIANTS.iter().map(|&value| AuxiliaryInput::new(value.into(), value));
        let small_mask =
            AuxiliaryInput { mask_size: Some([4, 3]), ..AuxiliaryInput::new("small", AuxiliaryValue::PixelMask) };
        let input = ImageInput { auxiliary: auxiliary.chain([small_mask]).collect(), ..input(Layout::Nchw, rule) };
        let prepared = preprocess(&input, &two_pixels()).unwrap();
        let mask = [[0.0; 8], [1.0; 8], [1.0; 8], [1.0; 8], [1.0; 8], [0.0; 8]].concat();
        let expected = [
            ("scale-factor", Tensor::f32([1, 2], vec![4.0, 4.0])),
            ("input-height-width", Tensor::f32([1, 2], vec![6.0, 8.0])),
            ("image-height-width", Tensor::f32([1, 2], vec![1.0, 2.0])),
            ("image-width-height", Tensor::f32([1, 2], vec![2.0, 1.0])),
            ("pixel-mask", Tensor::f32([1, 6, 8], mask)),
            ("small", Tensor::f32([1, 3, 4], [[0.0; 4], [1.0; 4], [1.0; 4]].concat())),
        ];
        assert_eq!(prepared.auxiliary, expected.map(|(name, tensor)| (name.to_owned(), tensor)));
    }

    #[test]
    fn oversized_input_is_refused_with_its_size() {
        let long = RgbImage::new(2_000_000, 1, vec![0; 6_000_000]).unwrap();
        let square = |side: u32, stride: Option<u32>| ResizeRule::Letterbox {
            width: side,
            height: side,
            fill: Fill([114; 3]),
            position: Position::Center,
            rounding: Rounding::HalfEven,
            stride,
            boxes_back: BoxesBack::EachAxis,
        };
        let refused = |rule: ResizeRule, image: &RgbImage| preprocess(&input(Layout::Nchw, rule), image).unwrap_err();
        assert!(refused(square(16_384, None), &two_pixels()).to_string().contains("16384 x 16384 pixels"));
        assert!(refused(square(32, None), &long).to_string().contains("2000000 x 1 pixels"));
        let kept = preprocess(&input(Layout::Nchw, ResizeRule::Keep {}), &long).unwrap();
        assert_eq!(kept.canvas_size, [2_000_000, 1]);
        // A stride larger than the canvas cuts nothing off.
        let uncut = preprocess(&input(Layout::Nchw, square(8, Some(16_384))), &two_pixels()).unwrap();
        assert_eq!(uncut.canvas_size, [8, 8]);
        let tall = RgbImage::new(1, 100_000, vec![7; 300_000]).unwrap();
        let thin = preprocess(&input(Layout::Nchw, square(64, Some(32))), &tall).unwrap();
        assert_eq!(thin.canvas_size, [32, 64]);
    }

    fn imagenet_crop() -> ResizeRule {
        ResizeRule::ShortSideCrop {
            short_side: 256,
            long_side: Rounding::Down,
            crop_width: 224,
            crop_height: 224,
            crop_offset: Rounding::HalfEven,
        }
    }

    #[test]
    fn very_long_image_costs_only_its_crop() {
        let long = RgbImage::new(40_000, 10, vec![50; 1_200_000]).unwrap();
        let prepared = preprocess(&input(Layout::Nchw, imagenet_crop()), &long).unwrap();
        assert_eq!(prepared.tensor.shape, [1, 3, 224, 224]);
        assert!(values(&prepared).iter().all(|&value| value == 50.0));
    }

    #[test]
    fn image_too_long_for_pillow_is_refused() {
        let tall = RgbImage::new(1, 100_000, vec![7; 300_000]).unwrap();
        let refused = preprocess(&input(Layout::Nchw, imagenet_crop()), &tall).unwrap_err();
        assert!(refused.to_string().contains("1 x 100000 pixels, too long"), "{refused}");
        let opencv = ImageInput { interpolation: Interpolation::OpencvLinear, ..input(Layout::Nchw, imagenet_crop()) };
        assert!(preprocess(&opencv, &tall).is_ok());
    }

    #[test]
    fn crop_larger_than_the_image_is_refused() {
        let rule = ResizeRule::ShortSideCrop {
            short_side: 10,
            long_side: Rounding::Down,
            crop_width: 11,
            crop_height: 11,
            crop_offset: Rounding::Down,
        };
        assert!(preprocess(&input(Layout::Nchw, rule), &two_pixels()).is_err());
    }
}
