//! What is known of an image beside its pixels, if its source carries it.

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
    /// `[x0, y0, x1, y1]` in parts of the width and height, `0.0..=1.0` if they are as they should be.
    pub bounds: [f32; 4],
    pub label: TruthLabel,
}

impl Truth {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl TruthBox {
    /// `[x0, y0, x1, y1]` in pixels of an image of `size` (width, height).
    pub fn in_pixels(&self, size: [u32; 2]) -> [f32; 4] {
        let [width, height] = size.map(|side| side as f32);
        let [x0, y0, x1, y1] = self.bounds;
        [x0 * width, y0 * height, x1 * width, y1 * height]
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
