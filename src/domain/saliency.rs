//! Which parts of an image a prediction depends on.

use super::BoundingBox;

/// The prediction to explain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SaliencyTarget {
    /// The probability of a class.
    Class(u32),
    /// The best score among boxes of this class that overlap `bounds` with an IoU of at least 0.5.
    Box {
        class_id: u32,
        /// In pixels of the upright image.
        bounds: BoundingBox,
    },
}

/// How much a score drops when a part of the image is covered.
#[derive(Debug, Clone, PartialEq)]
pub struct Saliency {
    /// Cells from top to bottom, all of the same height.
    pub rows: usize,
    /// Cells from left to right, all of the same width.
    pub columns: usize,
    /// `[rows, columns]`, row-major: the drop of the score, `-1.0..=1.0`. Negative if the score rises, so that the part
    /// counts against the prediction.
    pub drops: Vec<f32>,
    /// The score of the uncovered image, `0.0..=1.0`.
    pub baseline: f32,
}

impl Saliency {
    pub fn largest_drop(&self) -> f32 {
        self.drops.iter().copied().fold(f32::MIN, f32::max)
    }

    /// The largest rise in any cell; zero if the score never rises.
    pub fn largest_rise(&self) -> f32 {
        -self.drops.iter().copied().fold(0.0, f32::min)
    }

    /// The drop in a cell as a fraction of the largest drop, `0.0..=1.0`; zero if the score rises, or never drops.
    pub fn strength(&self, row: usize, column: usize) -> f32 {
        let largest = self.largest_drop();
        let drop = self.drops.get(row * self.columns + column);
        match drop {
            Some(drop) if largest > 0.0 => (drop / largest).clamp(0.0, 1.0),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strength_is_relative_to_the_largest_drop() {
        let saliency = Saliency { rows: 1, columns: 3, drops: vec![0.2, 0.4, -0.1], baseline: 0.5 };
        let strengths: Vec<f32> = (0..3).map(|column| saliency.strength(0, column)).collect();
        assert_eq!(strengths, [0.5, 1.0, 0.0]);
        assert!((saliency.largest_rise() - 0.1).abs() < 1e-6);
    }

    #[test]
    fn no_score_drop_means_no_strength() {
        let saliency = Saliency { rows: 1, columns: 1, drops: vec![-0.3], baseline: 0.5 };
        assert_eq!(saliency.strength(0, 0), 0.0);
    }
}
