//! What a source knows about an image besides its pixels.

use super::BoundingBox;

/// Labels and boxes stored with an image, usually by the authors of the dataset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// Classes of the whole image.
    pub labels: Vec<TruthLabel>,
    pub boxes: Vec<TruthBox>,
    /// What could not be used, and why.
    pub notes: Vec<String>,
}

/// A class by number, name, or both, as the dataset numbers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TruthLabel {
    pub number: Option<i64>,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TruthBox {
    /// In fractions of the image's width and height; `0.0..=1.0` if valid.
    pub bounds: BoundingBox,
    pub label: TruthLabel,
}

impl Truth {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl TruthBox {
    /// In pixels of an image of `size` (width, height).
    pub fn in_pixels(&self, size: [u32; 2]) -> BoundingBox {
        let [width, height] = size.map(|side| side as f32);
        let BoundingBox { x1, y1, x2, y2 } = self.bounds;
        BoundingBox::new(x1 * width, y1 * height, x2 * width, y2 * height)
    }
}

impl std::fmt::Display for TruthLabel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.name, self.number) {
            (Some(name), Some(number)) => write!(formatter, "{name} ({number})"),
            (Some(name), None) => formatter.write_str(name),
            (None, Some(number)) => write!(formatter, "class {number}"),
            (None, None) => formatter.write_str("no label"),
        }
    }
}
