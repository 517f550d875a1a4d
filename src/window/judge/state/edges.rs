//! Moving edges of a box, with the pointer or with keys.

use crate::domain::BoundingBox;

/// Edges that move together: left, top, right, bottom.
pub type Edges = [bool; 4];

pub const WHOLE_BOX: Edges = [true; 4];
pub const LEFT_AND_TOP: Edges = [true, true, false, false];
pub const RIGHT_AND_BOTTOM: Edges = [false, false, true, true];

/// The box with its edges moved right and down by `[x, y]` pixels, inside an image of `size` and in order. A whole box
/// keeps its size at the edge of the image.
pub(crate) fn with_moved_edges(bounds: BoundingBox, edges: Edges, [x, y]: [f32; 2], size: [u32; 2]) -> BoundingBox {
    let [width, height] = size.map(|side| side as f32);
    let BoundingBox { x1, y1, x2, y2 } = bounds.clipped(size[0], size[1]);
    if edges == WHOLE_BOX {
        let x = x.clamp(-x1, width - x2);
        let y = y.clamp(-y1, height - y2);
        return BoundingBox::new(x1 + x, y1 + y, x2 + x, y2 + y);
    }
    let moved = |edge: f32, by: f32, moves: bool, end: f32| if moves { (edge + by).clamp(0.0, end) } else { edge };
    let [left, top, right, bottom] = edges;
    let x = [moved(x1, x, left, width), moved(x2, x, right, width)];
    let y = [moved(y1, y, top, height), moved(y2, y, bottom, height)];
    BoundingBox::new(x[0].min(x[1]), y[0].min(y[1]), x[0].max(x[1]), y[0].max(y[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(edges: Edges, by: [f32; 2]) -> [f32; 4] {
        with_moved_edges(BoundingBox::new(10.0, 10.0, 30.0, 20.0), edges, by, [100, 50]).into()
    }

    #[test]
    fn edges_move_inside_the_image() {
        assert_eq!(moved(LEFT_AND_TOP, [-2.5, 3.0]), [7.5, 13.0, 30.0, 20.0]);
        assert_eq!(moved([false, false, true, false], [5.0, 7.0]), [10.0, 10.0, 35.0, 20.0]);
        assert_eq!(moved(RIGHT_AND_BOTTOM, [900.0, 900.0]), [10.0, 10.0, 100.0, 50.0]);
        assert_eq!(moved(WHOLE_BOX, [-50.0, 60.0]), [0.0, 40.0, 20.0, 50.0]);
        // Across the opposite edge.
        assert_eq!(moved([true, false, false, false], [25.0, 0.0]), [30.0, 10.0, 35.0, 20.0]);
    }
}
