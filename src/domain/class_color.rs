//! One color per class name, the same in the window, on annotated images and in every model.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The 80 class names of COCO, one per line after its number. Most detectors know them, under different numbers.
const COMMON: &str = include_str!("../../models/labels/coco-80.txt");
/// Lightness and chroma in OKLCH.
const SHADES: [(f64, f64); 5] = [(0.76, 0.16), (0.68, 0.18), (0.86, 0.12), (0.72, 0.10), (0.81, 0.17)];

/// The color of a class as sRGB. Names that differ only in case, hyphens and underscores have the same color. The
/// classes of COCO, and classes without a name (`class 17`), are far from their neighbors. All colors are light enough
/// for black text ([`TEXT_ON_CLASS_COLOR`]) at a contrast of 4.5 or more.
pub fn class_color(name: &str) -> [u8; 3] {
    static NUMBERS: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
        let names = COMMON.lines().filter_map(|line| line.split_once('\t'));
        names.zip(0..).map(|((_, name), number)| (name, number)).collect()
    });
    let name = name.to_lowercase().replace(['_', '-'], " ");
    if let Some(number) = NUMBERS.get(name.as_str()) {
        return color_of_common(*number);
    }
    match name.strip_prefix("class ").and_then(|number| number.parse().ok()) {
        Some(class_id) => color_of_id(class_id),
        None => color_of_hash(hash(&name)),
    }
}

/// 16 hues in 5 shades: 16 and 5 are coprime, so each of 80 numbers has its own pair.
fn color_of_common(number: u32) -> [u8; 3] {
    /// Neighbors are nearly opposite on the color wheel.
    const STEP: u32 = 7;
    let shade = number % SHADES.len() as u32;
    let (lightness, chroma) = SHADES[shade as usize];
    let hue = f64::from(number * STEP % 16) * 22.5 + f64::from(shade) * 4.5 + 10.0;
    srgb_from_oklch(lightness, chroma, hue.to_radians())
}

fn color_of_id(class_id: u32) -> [u8; 3] {
    /// The golden section of the circle: successive multiples never come close to each other.
    const GOLDEN_ANGLE: f64 = 137.507_764_050_037_85;
    /// Hues that become neighbors after a few dozen ids have different shades.
    const USED: usize = 3;
    let hue = (f64::from(class_id) * GOLDEN_ANGLE + 10.0) % 360.0;
    let (lightness, chroma) = SHADES[class_id as usize % USED];
    srgb_from_oklch(lightness, chroma, hue.to_radians())
}

fn color_of_hash(hash: u64) -> [u8; 3] {
    let hue = (hash % 360) as f64;
    let (lightness, chroma) = SHADES[(hash / 360) as usize % SHADES.len()];
    srgb_from_oklch(lightness, chroma, hue.to_radians())
}

/// FNV-1a with 64 bits: the same on every machine and in every version.
fn hash(name: &str) -> u64 {
    /// Replaces FNV's own basis. Of 200,000 candidates, it keeps the classes of 26 common datasets furthest apart.
    const BASIS: u64 = 158_260;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = name.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    // The low bits alone depend on few bits of the input.
    hash ^ (hash >> 32)
}

/// The color of text on a background in a class color.
pub const TEXT_ON_CLASS_COLOR: [u8; 3] = [12, 12, 16];

/// Björn Ottosson, “A perceptual color space for image processing” (2020). Out-of-gamut colors are clipped.
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

/// The sRGB transfer function.
fn gamma_encoded(linear: f64) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let encoded = if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (encoded * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as in WCAG 2.
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

    #[track_caller]
    fn must_be_apart(colors: &[[u8; 3]], least: u32) {
        for (index, color) in colors.iter().enumerate() {
            for other in &colors[index + 1..] {
                assert!(distance(*color, *other) >= least, "{color:?} {other:?}");
            }
        }
    }

    #[test]
    fn text_is_readable_on_every_class_color() {
        let numbered = (0..1000).map(|number| class_color(&format!("class {number}")));
        let hashed = (0..1000).map(|number| class_color(&format!("name {number}")));
        for color in common_names().into_iter().map(class_color).chain(numbered).chain(hashed) {
            let plate = luminance(color) + 0.05;
            let text = luminance(TEXT_ON_CLASS_COLOR) + 0.05;
            assert!(plate / text > 4.5, "{color:?}: {}", plate / text);
        }
    }

    #[test]
    fn name_color_ignores_spelling() {
        assert_eq!(class_color("Traffic_Light"), class_color("traffic light"));
        assert_eq!(class_color("Hard-Hat"), class_color("hard_hat"));
        // Colors are part of the interface: the same in every version.
        assert_eq!(class_color("helmet"), [201, 109, 219]);
    }

    #[test]
    fn classes_of_a_data_set_have_different_colors() {
        for names in [
            "car,van,truck,pedestrian,person sitting,cyclist,tram,misc",
            "road,sidewalk,building,wall,fence,pole,traffic light,traffic sign,vegetation,terrain,sky,person,rider",
            "pedestrian,people,bicycle,car,van,truck,tricycle,awning tricycle,bus,motor",
            "hardhat,mask,no hardhat,no mask,no safety vest,person,safety cone,safety vest,machinery,vehicle",
            "crazing,inclusion,patches,pitted surface,rolled in scale,scratches",
        ] {
            let colors: Vec<[u8; 3]> = names.split(',').map(class_color).collect();
            must_be_apart(&colors, 30);
        }
    }

    #[test]
    fn neighboring_classes_differ_clearly() {
        let of_names: Vec<[u8; 3]> = common_names().into_iter().map(class_color).collect();
        let of_ids: Vec<[u8; 3]> = (0..91).map(|id| class_color(&format!("class {id}"))).collect();
        for (colors, least) in [(&of_names, 15), (&of_ids, 1)] {
            must_be_apart(colors, least);
            for pair in colors.windows(2) {
                assert!(distance(pair[0], pair[1]) > 100, "{pair:?}");
            }
        }
    }
}
