//! One colour a class, the same in the window, on annotated images and in every run.

/// The colour of a class as sRGB. Neighbouring ids are far apart on the circle of hues, and all are light enough for
/// black text ([`TEXT_ON_CLASS_COLOR`]) at a contrast of 4.5 or more.
pub fn class_color(class_id: u32) -> [u8; 3] {
    /// Successive multiples never come close to each other: the circle divided by the golden ratio.
    const GOLDEN_ANGLE: f64 = 137.507_764_050_037_85;
    /// A second difference for hues that are next to each other after a few dozen ids: lightness and chroma.
    const SHADES: [(f64, f64); 3] = [(0.76, 0.16), (0.68, 0.18), (0.86, 0.13)];
    let hue = (f64::from(class_id) * GOLDEN_ANGLE + 10.0) % 360.0;
    let (lightness, chroma) = SHADES[class_id as usize % SHADES.len()];
    srgb_from_oklch(lightness, chroma, hue.to_radians())
}

/// Text on a plate of a class's colour.
pub const TEXT_ON_CLASS_COLOR: [u8; 3] = [12, 12, 16];

/// Björn Ottosson, “A perceptual color space for image processing” (2020); colours out of reach are clipped.
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

    #[test]
    fn text_is_readable_on_every_class_color() {
        for class_id in 0..1000 {
            let plate = luminance(class_color(class_id)) + 0.05;
            let text = luminance(TEXT_ON_CLASS_COLOR) + 0.05;
            assert!(plate / text > 4.5, "class {class_id}: {}", plate / text);
        }
    }

    #[test]
    fn no_two_of_a_label_set_share_a_color_and_neighbours_differ_clearly() {
        let colors: Vec<[u8; 3]> = (0..91).map(class_color).collect();
        let distance = |left: [u8; 3], right: [u8; 3]| -> u32 {
            std::iter::zip(left, right).map(|(left, right)| u32::from(left.abs_diff(right))).sum()
        };
        for (index, color) in colors.iter().enumerate() {
            assert!(!colors[index + 1..].contains(color), "class {index}");
        }
        for pair in colors.windows(2) {
            assert!(distance(pair[0], pair[1]) > 100, "{pair:?}");
        }
    }
}
