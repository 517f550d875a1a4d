//! What is known of an image beside its pixels, if its source carries it.

use super::BoundingBox;

/// Labels and boxes that were stored with an image, usually by those who made the data set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// What the whole image shows.
    pub labels: Vec<TruthLabel>,
    pub boxes: Vec<TruthBox>,
    /// What of it could not be taken over, and why.
    pub notes: Vec<String>,
}

/// A class by its number, its name, or both, in the data set's own numbering.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TruthLabel {
    pub number: Option<i64>,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TruthBox {
    /// In fractions of the image's width and height, `0.0..=1.0` if they are as they should be.
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
