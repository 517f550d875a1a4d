//! Shows the exact input tensor of a model.

use crate::domain::{ImageInput, Layout, RgbImage};
use crate::model::{PredictError, Tensor};

/// A model's input for display.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorPreview {
    /// The tensor with the normalization undone, in RGB: what the model sees if the card is correct.
    pub image: RgbImage,
    /// The value range of each channel, in the model's order.
    pub channels: Vec<ChannelRange>,
}

/// The value range of one channel in the tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelRange {
    pub min: f64,
    pub max: f64,
    pub mean: f64,
}

/// Turns the first image of a tensor back into an image.
///
/// # Errors
/// [`PredictError::Failed`] if the tensor's shape does not fit the input's layout.
pub fn preview(input: &ImageInput, tensor: &Tensor) -> Result<TensorPreview, PredictError> {
    let misfit = || {
        PredictError::Failed(format!(
            "a tensor of shape {:?} is not an image of layout {:?}",
            tensor.shape, input.layout
        ))
    };
    let planar = matches!(input.layout, Layout::Nchw | Layout::Chw);
    // The last three dimensions; a leading batch dimension does not matter.
    let image_channels = input.channels.image_channels();
    let sides = match (planar, &tensor.shape[..]) {
        (true, [.., channels, height, width]) | (false, [.., height, width, channels])
            if *channels == image_channels.len() =>
        {
            Some((*height, *width))
        }
        _ => None,
    };
    let (height, width) = sides.ok_or_else(misfit)?;
    let plane = height * width;
    let (channel_stride, pixel_stride) = if planar { (plane, 1) } else { (1, image_channels.len()) };
    let values = tensor.to_f64();
    if values.len() < plane * image_channels.len() || plane == 0 {
        return Err(misfit());
    }
    let mut rgb = vec![0; plane * 3];
    let mut channels =
        vec![ChannelRange { min: f64::INFINITY, max: f64::NEG_INFINITY, mean: 0.0 }; image_channels.len()];
    for (channel, range) in channels.iter_mut().enumerate() {
        let (mean, std) = (f64::from(input.mean[channel]), f64::from(input.std[channel]));
        for pixel in 0..plane {
            let value = values[channel * channel_stride + pixel * pixel_stride];
            range.min = range.min.min(value);
            range.max = range.max.max(value);
            range.mean += value / plane as f64;
            let level = (value * std + mean) * f64::from(input.divide_by);
            let level = level.round().clamp(0.0, 255.0) as u8;
            match image_channels {
                [_] => rgb[pixel * 3..][..3].fill(level),
                several => rgb[pixel * 3 + several[channel]] = level,
            }
        }
    }
    let image = RgbImage::new(width as u32, height as u32, rgb).ok_or_else(misfit)?;
    Ok(TensorPreview { image, channels })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ChannelOrder, ElementType, ResizeRule};
    use crate::model::preprocess;

    #[test]
    fn preview_inverts_normalization_in_every_layout() {
        let image = RgbImage::new(2, 1, vec![1, 2, 3, 200, 100, 50]).unwrap();
        for layout in [Layout::Nchw, Layout::Nhwc, Layout::Chw, Layout::Hwc] {
            let input = ImageInput {
                channels: ChannelOrder::Bgr,
                divide_by: 255.0,
                mean: [0.4, 0.5, 0.6],
                std: [0.2, 0.3, 0.25],
                ..ImageInput::new(layout, ElementType::Float32, ResizeRule::Keep {})
            };
            let prepared = preprocess(&input, &image).unwrap();
            let preview = preview(&input, &prepared.tensor).unwrap();
            assert_eq!(preview.image, image, "{layout:?}");
            let blue = preview.channels[0];
            assert!((blue.min - (3.0 / 255.0 - 0.4) / 0.2).abs() < 1e-6);
            assert!((blue.max - (50.0 / 255.0 - 0.4) / 0.2).abs() < 1e-6);
            assert!((blue.mean - f64::midpoint(blue.min, blue.max)).abs() < 1e-9);
        }
    }

    #[test]
    fn tensor_of_another_layout_is_refused() {
        let input = ImageInput::new(Layout::Nchw, ElementType::Uint8, ResizeRule::Keep {});
        assert!(preview(&input, &Tensor::u8([1, 2, 2, 3], vec![0; 12])).is_err());
    }
}
