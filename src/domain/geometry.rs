//! Boxes and the axis-aligned transforms between the spaces they live in.

use serde::{Deserialize, Serialize};

/// The left, top, right and bottom edge of a box. After `model::postprocess`, always in pixels of the upright image
/// (origin at the top left corner, `x` to the right, `y` down), not clipped to it.
///
/// Written as `[x1, y1, x2, y2]` in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 4]", into = "[f32; 4]")]
pub struct BoundingBox {
    pub x1: f32,
    pub y1: f32,
    pub x2: f32,
    pub y2: f32,
}

impl BoundingBox {
    pub fn new(x1: f32, y1: f32, x2: f32, y2: f32) -> Self {
        Self { x1, y1, x2, y2 }
    }

    /// Zero if the right edge is left of the left edge.
    pub fn width(&self) -> f32 {
        (self.x2 - self.x1).max(0.0)
    }

    /// Zero if the bottom edge is above the top edge.
    pub fn height(&self) -> f32 {
        (self.y2 - self.y1).max(0.0)
    }

    pub fn area(&self) -> f32 {
        self.width() * self.height()
    }

    pub fn is_finite(&self) -> bool {
        [self.x1, self.y1, self.x2, self.y2].iter().all(|edge| edge.is_finite())
    }

    pub fn contains(&self, x: f32, y: f32) -> bool {
        (self.x1..=self.x2).contains(&x) && (self.y1..=self.y2).contains(&y)
    }

    /// The part inside an image of `width` x `height` pixels; without area if the box lies outside.
    pub fn clipped(&self, width: u32, height: u32) -> Self {
        let (width, height) = (width as f32, height as f32);
        Self {
            x1: self.x1.clamp(0.0, width),
            y1: self.y1.clamp(0.0, height),
            x2: self.x2.clamp(0.0, width),
            y2: self.y2.clamp(0.0, height),
        }
    }

    /// Intersection over union, `0.0..=1.0`; zero if both boxes have no area.
    pub fn iou(&self, other: &Self) -> f32 {
        let overlap = Self {
            x1: self.x1.max(other.x1),
            y1: self.y1.max(other.y1),
            x2: self.x2.min(other.x2),
            y2: self.y2.min(other.y2),
        };
        let union = self.area() + other.area() - overlap.area();
        if union > 0.0 { overlap.area() / union } else { 0.0 }
    }
}

/// A box in full precision, as annotations have it. In pixels of the upright image unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactBox {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl ExactBox {
    /// Left, top, right, bottom.
    pub fn from_edges([left, top, right, bottom]: [f64; 4]) -> Self {
        Self { left, top, width: right - left, height: bottom - top }
    }

    /// The center, the width and the height.
    pub fn from_center([x, y, width, height]: [f64; 4]) -> Self {
        Self { left: x - width / 2.0, top: y - height / 2.0, width, height }
    }

    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub fn area(&self) -> f64 {
        self.width * self.height
    }
}

impl From<[f64; 4]> for ExactBox {
    fn from([left, top, width, height]: [f64; 4]) -> Self {
        Self { left, top, width, height }
    }
}

/// Left, top, width and height.
impl From<ExactBox> for [f64; 4] {
    fn from(bounds: ExactBox) -> Self {
        [bounds.left, bounds.top, bounds.width, bounds.height]
    }
}

impl From<BoundingBox> for ExactBox {
    fn from(bounds: BoundingBox) -> Self {
        let edges = Self::from_edges(<[f32; 4]>::from(bounds).map(f64::from));
        Self { width: edges.width.max(0.0), height: edges.height.max(0.0), ..edges }
    }
}

impl From<ExactBox> for BoundingBox {
    fn from(bounds: ExactBox) -> Self {
        [bounds.left, bounds.top, bounds.right(), bounds.bottom()].map(|edge| edge as f32).into()
    }
}

/// Whether the edges (left, top, right, bottom, in pixels) exceed an image of `size` (width, height) by more than
/// rounding explains: 2 pixels, or 2% of the side.
pub fn leaves_image([left, top, right, bottom]: [f64; 4], size: [u32; 2]) -> bool {
    let [columns, rows] = size.map(f64::from);
    let [beyond_x, beyond_y] = [columns, rows].map(|side| (side / 50.0).max(2.0));
    left < -beyond_x || top < -beyond_y || right > columns + beyond_x || bottom > rows + beyond_y
}

impl From<[f32; 4]> for BoundingBox {
    fn from([x1, y1, x2, y2]: [f32; 4]) -> Self {
        Self { x1, y1, x2, y2 }
    }
}

impl From<BoundingBox> for [f32; 4] {
    fn from(bounds: BoundingBox) -> Self {
        [bounds.x1, bounds.y1, bounds.x2, bounds.y2]
    }
}

/// `target = source * scale + offset`, with one factor per axis (`[x, y]`). The name reads backwards:
/// `image_from_model.apply(box_in_model)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisTransform {
    pub scale: [f64; 2],
    pub offset: [f64; 2],
}

impl AxisTransform {
    pub const IDENTITY: Self = Self { scale: [1.0, 1.0], offset: [0.0, 0.0] };

    pub fn apply(&self, bounds: BoundingBox) -> BoundingBox {
        let x = |value: f32| (f64::from(value) * self.scale[0] + self.offset[0]) as f32;
        let y = |value: f32| (f64::from(value) * self.scale[1] + self.offset[1]) as f32;
        BoundingBox { x1: x(bounds.x1), y1: y(bounds.y1), x2: x(bounds.x2), y2: y(bounds.y2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iou_of_boxes_sharing_a_quarter() {
        let left = BoundingBox::new(0.0, 0.0, 2.0, 2.0);
        let right = BoundingBox::new(1.0, 1.0, 3.0, 3.0);
        assert!((left.iou(&right) - 1.0 / 7.0).abs() < 1e-6);
    }

    #[test]
    fn iou_of_empty_boxes_is_zero() {
        let point = BoundingBox::new(1.0, 1.0, 1.0, 1.0);
        assert!(point.iou(&point).abs() < f32::EPSILON);
    }

    #[test]
    fn transform_maps_model_pixels_to_the_image() {
        let image_from_model = AxisTransform { scale: [2.0, 4.0], offset: [10.0, -4.0] };
        let bounds = image_from_model.apply(BoundingBox::new(1.0, 1.0, 2.0, 3.0));
        assert_eq!(bounds, BoundingBox::new(12.0, 0.0, 14.0, 8.0));
    }
}
