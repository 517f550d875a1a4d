//! One color per class, the same in the window, on annotated images and in every run.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The 80 class names of COCO, one per line after its number: most detectors know them, with different numbers.
const COMMON: &str = include_str!("../../models/labels/coco-80.txt");
/// Lightness and chroma in OKLCH.
const SHADES: [(f64, f64); 5] = [(0.76, 0.16), (0.68, 0.18), (0.86, 0.12), (0.72, 0.10), (0.81, 0.17)];

/// The color of a class as sRGB. A class of COCO has the color of its name in every model; other classes have that of
/// their id. Neighbors are far apart, and all colors are light enough for black text ([`TEXT_ON_CLASS_COLOR`]) at a
/// contrast of 4.5 or more.
pub fn class_color(class_id: u32, name: &str) -> [u8; 3] {
    static NUMBERS: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
        let names = COMMON.lines().filter_map(|line| line.split_once('\t'));
        names.zip(0..).map(|((_, name), number)| (name, number)).collect()
    });
    NUMBERS.get(name).map_or_else(|| color_of_id(class_id), |number| color_of_common(*number))
}

/// 16 hues in 5 shades: as 16 and 5 have no common factor, each of 80 numbers has a pair of its own.
fn color_of_common(number: u32) -> [u8; 3] {
    /// Neighbors are nearly opposite each other on the circle of hues.
    const STEP: u32 = 7;
    let shade = number % SHADES.len() as u32;
    let (lightness, chroma) = SHADES[shade as usize];
    let hue = f64::from(number * STEP % 16) * 22.5 + f64::from(shade) * 4.5 + 10.0;
    srgb_from_oklch(lightness, chroma, hue.to_radians())
}

fn color_of_id(class_id: u32) -> [u8; 3] {
    /// Successive multiples never come close to each other: the circle divided by the golden ratio.
    const GOLDEN_ANGLE: f64 = 137.507_764_050_037_85;
    /// Hues that are next to each other after a few dozen ids have different shades.
    const USED: usize = 3;
    let hue = (f64::from(class_id) * GOLDEN_ANGLE + 10.0) % 360.0;
    let (lightness, chroma) = SHADES[class_id as usize % USED];
    srgb_from_oklch(lightness, chroma, hue.to_radians())
}

/// Text on a plate of a class's color.
pub const TEXT_ON_CLASS_COLOR: [u8; 3] = [12, 12, 16];

/// Björn Ottosson, “A perceptual color space for image processing” (2020); colors out of reach are clipped.
fn srgb_from_oklch(lightness: f64, chroma: f64, hue: f64) -> [u8; 3] {
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let cone = |from_a: f64, from_b: f64| (lightness + from_a * a + from_b * b).powi(3);
    let long = cone(0.396_337_777_4, 0.215_803_757_3);
    let medium = cone(-0.105_561_345_8, -0.063_854_172_8);
    let short = cone(-0.089_484_177_5, -1.291_485_548);
    [
        4.076_741_662_1 * long - 3.307_711_591_3 * medium + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * medium - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * medium + 1.707_614_701 * short,
    ]
    .map(gamma_encoded)
}

/// The transfer function of sRGB.
fn gamma_encoded(linear: f64) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let encoded = if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (encoded * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of WCAG 2.
    fn luminance(color: [u8; 3]) -> f64 {
        let linear = color.map(|value| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn common_names() -> Vec<&'static str> {
        let names: Vec<&str> = COMMON.lines().filter_map(|line| Some(line.split_once('\t')?.1)).collect();
        assert_eq!(names.len(), 80);
        names
    }

    fn distance(left: [u8; 3], right: [u8; 3]) -> u32 {
        std::iter::zip(left, right).map(|(left, right)| u32::from(left.abs_diff(right))).sum()
    }

    #[test]
    fn text_is_readable_on_every_class_color() {
        let named = common_names().into_iter().map(|name| class_color(0, name));
        for color in (0..1000).map(|class_id| class_color(class_id, "")).chain(named) {
            let plate = luminance(color) + 0.05;
            let text = luminance(TEXT_ON_CLASS_COLOR) + 0.05;
            assert!(plate / text > 4.5, "{color:?}: {}", plate / text);
        }
    }

    #[test]
    fn a_common_class_has_one_color_in_every_model() {
        assert_eq!(class_color(44, "bottle"), class_color(39, "bottle"));
        assert_ne!(class_color(1, "helmet"), class_color(2, "helmet"));
    }

    #[test]
    fn classes_of_a_model_differ_and_neighbors_clearly() {
        let of_names: Vec<[u8; 3]> = common_names().into_iter().map(|name| class_color(0, name)).collect();
        let of_ids: Vec<[u8; 3]> = (0..91).map(|class_id| class_color(class_id, "")).collect();
        for (colors, least) in [(&of_names, 15), (&of_ids, 1)] {
            for (index, color) in colors.iter().enumerate() {
                for other in &colors[index + 1..] {
                    assert!(distance(*color, *other) >= least, "{color:?} {other:?}");
                }
            }
            for pair in colors.windows(2) {
                assert!(distance(pair[0], pair[1]) > 100, "{pair:?}");
            }
        }
    }
}
