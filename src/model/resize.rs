//! Resizes 8-bit images as Pillow and OpenCV do.

/// Compiles a function a second time for AVX2, whose 32-bit multiplications make it twice as fast, and selects at run
/// time.
macro_rules! with_avx2 {
    ($name:ident, $portable:ident, $avx2:ident, ($($argument:ident: $kind:ty),* $(,)?)) => {
        fn $name($($argument: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            if std::is_x86_feature_detected!("avx2") {
                #[target_feature(enable = "avx2")]
                fn $avx2($($argument: $kind),*) {
                    $portable($($argument),*);
                }
                // SAFETY: the CPU has AVX2, which was just checked.
                return unsafe { $avx2($($argument),*) };
            }
            $portable($($argument),*);
        }
    };
}

mod opencv;
mod pillow;

use crate::domain::{Interpolation, RgbImage};
pub(super) use opencv::warp;
use pillow::Filter;

const CHANNELS: usize = 3;

/// A resize of which only a window is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeWindow {
    /// Size of the whole resized image, in pixels; at least 1x1.
    pub full_size: [u32; 2],
    /// Left and top of the window in the resized image. The window must be inside it.
    pub origin: [u32; 2],
    /// Width and height of the window; at least 1x1.
    pub size: [u32; 2],
    /// Margins at both ends of the image's width and height that are not resized, in pixels. Pillow's filters still
    /// reach into them; zero for nearest and OpenCV's interpolations.
    pub margin: [f64; 2],
}

impl ResizeWindow {
    pub fn whole(width: u32, height: u32) -> Self {
        Self { full_size: [width, height], origin: [0, 0], size: [width, height], margin: [0.0; 2] }
    }
}

/// The pixels of the window, `[height, width, 3]`, equal to those in the whole resized image. Rows and columns outside
/// the window are not computed.
pub fn resize(image: &RgbImage, window: ResizeWindow, interpolation: Interpolation) -> Vec<u8> {
    match interpolation {
        Interpolation::PillowBilinear => pillow::resample(image, window, Filter::Triangle),
        Interpolation::PillowBicubic => pillow::resample(image, window, Filter::Cubic),
        Interpolation::PillowLanczos => pillow::resample(image, window, Filter::Lanczos),
        Interpolation::PillowNearest => pillow::nearest(image, window),
        Interpolation::OpencvLinear => opencv::linear(image, window),
        Interpolation::OpencvCubic => opencv::cubic(image, window),
        Interpolation::OpencvWarp => {
            let sides = [image.width(), image.height()];
            warp(
                image,
                [0, 1].map(|axis| {
                    let scale = f64::from(sides[axis]) / f64::from(window.full_size[axis]);
                    let outputs = window.origin[axis]..window.origin[axis] + window.size[axis];
                    outputs.map(|output| f64::from(output) * scale).collect()
                }),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    /// An image without any symmetry.
    pub(super) fn noise(width: u32, height: u32) -> RgbImage {
        let mut state = 12345_u32;
        let rgb = (0..width * height * 3).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        RgbImage::new(width, height, rgb.collect()).unwrap()
    }

    #[test]
    fn window_equals_its_part_of_the_whole() {
        for &interpolation in Interpolation::VARIANTS {
            for (image, [width, height]) in
                [(noise(37, 23), [20, 15]), (noise(40, 30), [20, 15]), (noise(9, 8), [20, 15])]
            {
                let whole = resize(&image, ResizeWindow::whole(width, height), interpolation);
                let window = ResizeWindow { origin: [3, 4], size: [10, 7], ..ResizeWindow::whole(width, height) };
                let part = resize(&image, window, interpolation);
                for y in 0..7 {
                    let start = ((y + 4) * width as usize + 3) * 3;
                    assert_eq!(&part[y * 30..(y + 1) * 30], &whole[start..start + 30], "{interpolation:?}, row {y}");
                }
            }
        }
    }

    #[test]
    fn same_size_gives_the_same_pixels() {
        let image = noise(9, 7);
        for &interpolation in Interpolation::VARIANTS {
            assert_eq!(resize(&image, ResizeWindow::whole(9, 7), interpolation), image.rgb(), "{interpolation:?}");
        }
    }

    #[test]
    fn pixels_scale_from_and_to_one() {
        let pixel = RgbImage::new(1, 1, vec![200; 3]).unwrap();
        let wide = RgbImage::new(40_000, 1, vec![7; 120_000]).unwrap();
        for &interpolation in Interpolation::VARIANTS {
            // A warp fades to black at the edges.
            if interpolation != Interpolation::OpencvWarp {
                let many = resize(&pixel, ResizeWindow::whole(5, 4), interpolation);
                assert_eq!(many, vec![200; 60], "{interpolation:?}");
            }
            assert_eq!(resize(&wide, ResizeWindow::whole(1, 1), interpolation), vec![7; 3], "{interpolation:?}");
        }
    }
}
