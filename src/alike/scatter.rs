//! A map of points as pixels, and what lies under the pointer. Part of what is optimized in every profile: while a map
//! is moved, each frame draws all of its points.

use super::Point;

/// Subpixel positions of a dot per axis.
const STEPS: usize = 4;

/// The visible part of a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MapView {
    /// The position in the middle.
    pub center: Point,
    /// Pixels per unit of the map.
    pub scale: f32,
    /// Width and height in pixels.
    pub size: [usize; 2],
}

impl MapView {
    /// Shows all points, with `margin` pixels around them.
    pub fn fitting(points: &[Point], size: [usize; 2], margin: f32) -> Self {
        let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
        for point in points {
            for axis in 0..2 {
                low[axis] = low[axis].min(point[axis]);
                high[axis] = high[axis].max(point[axis]);
            }
        }
        if points.is_empty() {
            return Self { center: [0.0; 2], scale: 1.0, size };
        }
        let scale = |axis: usize| (size[axis] as f32 - 2.0 * margin).max(1.0) / (high[axis] - low[axis]).max(1e-3);
        let center = [f32::midpoint(low[0], high[0]), f32::midpoint(low[1], high[1])];
        Self { center, scale: scale(0).min(scale(1)), size }
    }

    /// The pixel of a position.
    pub fn pixel(&self, point: Point) -> [f32; 2] {
        [0, 1].map(|axis| (point[axis] - self.center[axis]) * self.scale + self.size[axis] as f32 / 2.0)
    }

    /// The position of a pixel.
    pub fn position(&self, pixel: [f32; 2]) -> Point {
        [0, 1].map(|axis| (pixel[axis] - self.size[axis] as f32 / 2.0) / self.scale + self.center[axis])
    }

    /// The index of the point nearest to a pixel, within `reach` pixels.
    pub fn nearest(&self, points: &[Point], pixel: [f32; 2], reach: f32) -> Option<usize> {
        let position = self.position(pixel);
        let mut best = (reach / self.scale).powi(2);
        let mut found = None;
        for (at, point) in points.iter().enumerate() {
            let distance = (point[0] - position[0]).powi(2) + (point[1] - position[1]).powi(2);
            if distance <= best {
                (best, found) = (distance, Some(at));
            }
        }
        found
    }
}

/// How a point is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot {
    pub color: [u8; 3],
    pub layer: DotLayer,
}

/// In drawing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DotLayer {
    /// Small and translucent.
    Dimmed,
    Usual,
    /// Larger.
    Selected,
}

impl DotLayer {
    const ALL: [Self; 3] = [Self::Dimmed, Self::Usual, Self::Selected];

    /// The radius as a factor, and the opacity.
    fn look(self) -> (f32, f32) {
        match self {
            Self::Dimmed => (0.75, 0.25),
            Self::Usual => (1.0, 0.85),
            Self::Selected => (1.5, 1.0),
        }
    }
}

/// Draws a dot per point with a radius of `radius` pixels, and around it an edge of one pixel that separates it from those
/// below: premultiplied RGBA, row after row.
pub fn draw(points: &[Point], dots: &[Dot], view: &MapView, radius: f32, edge: Option<[u8; 3]>) -> Vec<u8> {
    let [width, height] = view.size;
    let mut pixels = vec![[0_u8; 4]; width * height];
    for layer in DotLayer::ALL {
        let (factor, opacity) = layer.look();
        let stamp = Stamp::new(radius * factor, opacity);
        let edge = edge.map(|color| (Stamp::new(radius * factor + 1.0, opacity), color));
        for (point, dot) in points.iter().zip(dots) {
            if dot.layer != layer {
                continue;
            }
            let at = view.pixel(*point);
            if let Some((edge, color)) = &edge {
                edge.draw(&mut pixels, view, at, *color);
            }
            stamp.draw(&mut pixels, view, at, dot.color);
        }
    }
    pixels.into_flattened()
}

/// A disc at all subpixel positions.
struct Stamp {
    /// The side of a mask, in pixels.
    side: usize,
    /// Opacities, row after row, one mask per subpixel position.
    masks: Vec<Vec<u16>>,
}

impl Stamp {
    fn new(radius: f32, opacity: f32) -> Self {
        let side = 2 * (radius + 1.0).ceil() as usize + 1;
        let middle = (side / 2) as f32 + 0.5;
        let mask = |offset: usize| {
            let shift = [offset % STEPS, offset / STEPS].map(|step| step as f32 / STEPS as f32);
            let coverage = |at: usize| {
                let [x, y] = [at % side, at / side].map(|place| place as f32 + 0.5 - middle);
                let distance = ((x - shift[0]).powi(2) + (y - shift[1]).powi(2)).sqrt();
                ((radius + 0.5 - distance).clamp(0.0, 1.0) * opacity * 256.0) as u16
            };
            (0..side * side).map(coverage).collect()
        };
        Self { side, masks: (0..STEPS * STEPS).map(mask).collect() }
    }

    fn draw(&self, pixels: &mut [[u8; 4]], view: &MapView, at: [f32; 2], color: [u8; 3]) {
        let [width, height] = view.size.map(|side| side as isize);
        let corner = at.map(|value| value.floor() as isize - (self.side / 2) as isize);
        let side = self.side as isize;
        if corner[0] >= width || corner[1] >= height || corner[0] + side <= 0 || corner[1] + side <= 0 {
            return;
        }
        let [x, y] = at.map(|value| ((value - value.floor()) * STEPS as f32) as usize % STEPS);
        let rows = self.masks[y * STEPS + x].chunks_exact(self.side);
        let (left, right) = ((-corner[0]).max(0), side.min(width - corner[0]));
        for (row, mask) in (corner[1]..).zip(rows).filter(|(row, _)| (0..height).contains(row)) {
            let start = (row * width + corner[0] + left) as usize;
            let pixels = &mut pixels[start..start + (right - left) as usize];
            for (pixel, &opacity) in pixels.iter_mut().zip(&mask[left as usize..right as usize]) {
                blend(pixel, color, opacity);
            }
        }
    }
}

/// `opacity` is `0..=256`.
fn blend(pixel: &mut [u8; 4], [red, green, blue]: [u8; 3], opacity: u16) {
    for (value, color) in pixel.iter_mut().zip([red, green, blue, 255]) {
        let mixed = u32::from(*value) * u32::from(256 - opacity) + u32::from(color) * u32::from(opacity);
        *value = (mixed >> 8) as u8;
    }
}

/// The indices of the points inside a closed line, by the even-odd rule.
pub fn inside(points: &[Point], line: &[Point]) -> Vec<usize> {
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    for point in line {
        for axis in 0..2 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
        }
    }
    let is_near = |point: &Point| (0..2).all(|axis| (low[axis]..=high[axis]).contains(&point[axis]));
    let is_inside = |point: &Point| {
        let next = line.iter().cycle().skip(1);
        let crossings = line.iter().zip(next).filter(|(one, other)| {
            let is_between = (one[1] > point[1]) != (other[1] > point[1]);
            is_between && point[0] < (other[0] - one[0]) * (point[1] - one[1]) / (other[1] - one[1]) + one[0]
        });
        crossings.count() % 2 == 1
    };
    let found = points.iter().enumerate().filter(|(_, point)| is_near(point) && is_inside(point));
    found.map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [Point; 4] = [[0.0, 0.0], [10.0, 0.0], [0.0, 5.0], [9.0, 5.0]];

    #[test]
    fn whole_map_fits_and_pixels_lead_back() {
        let view = MapView::fitting(&POINTS, [200, 100], 10.0);
        for point in POINTS {
            let [x, y] = view.pixel(point);
            assert!((9.9..=190.1).contains(&x) && (9.9..=90.1).contains(&y), "{x} {y}");
            let back = view.position([x, y]);
            assert!((0..2).all(|axis| (back[axis] - point[axis]).abs() < 1e-4), "{back:?}, expected {point:?}");
        }
        let at = view.pixel(POINTS[3]);
        assert_eq!(view.nearest(&POINTS, [at[0] + 3.0, at[1] + 2.0], 8.0), Some(3));
        assert_eq!(view.nearest(&POINTS, [at[0] + 30.0, at[1]], 8.0), None);
        let single = MapView::fitting(&POINTS[..1], [200, 100], 10.0);
        assert_eq!(single.pixel(POINTS[0]), [100.0, 50.0]);
        assert_eq!(MapView::fitting(&[], [200, 100], 10.0).nearest(&[], [1.0, 1.0], 9.0), None);
    }

    #[test]
    fn later_layers_are_drawn_over_earlier_ones() {
        let view = MapView { center: [0.0; 2], scale: 1.0, size: [21, 21] };
        let dot = |color, layer| Dot { color, layer };
        let (red, green) = ([255, 0, 0], [0, 255, 0]);
        let dots = [dot(red, DotLayer::Selected), dot(green, DotLayer::Usual)];
        let pixels = draw(&[[0.0; 2]; 2], &dots, &view, 4.0, None);
        let pixel = |x: usize, y: usize| pixels[(y * 21 + x) * 4..][..4].to_vec();
        assert_eq!(pixel(10, 10), [255, 0, 0, 255]);
        assert_eq!(pixel(0, 0), [0; 4]);
        let with_edge = draw(&[[0.0; 2]; 2], &dots, &view, 4.0, Some([9, 9, 9]));
        assert_eq!(with_edge[(10 * 21 + 10) * 4..][..4], [255, 0, 0, 255]);
        let beside = (10 * 21 + 17) * 4 + 3;
        assert!(with_edge[beside] > 0 && pixels[beside] == 0, "{}, {}", with_edge[beside], pixels[beside]);
        let opaque = pixels.chunks(4).filter(|pixel| pixel[3] > 127).count() as f32;
        let area = std::f32::consts::PI * 36.0;
        assert!((opaque - area).abs() < 12.0, "{opaque} pixels, expected {area}, tolerance 12");
        // Cut off at the edges, and outside.
        let corners = [[-10.5, -10.5], [10.4, 10.4], [500.0, -3.0], [-3.0, -500.0]];
        let dots = [dot(red, DotLayer::Usual); 4];
        assert!(draw(&corners, &dots, &view, 3.0, None).iter().any(|value| *value > 0));
    }

    #[test]
    fn points_inside_a_line_are_found() {
        let square = [[-1.0, -1.0], [1.0, -1.0], [1.0, 9.0], [-1.0, 9.0]];
        assert_eq!(inside(&POINTS, &square), [0, 2]);
        let notch = [[-1.0, -1.0], [11.0, -1.0], [11.0, 6.0], [5.0, 1.0], [-1.0, 6.0]];
        assert_eq!(inside(&POINTS, &notch), [0, 1, 2]);
        assert!(inside(&POINTS, &[]).is_empty());
        assert!(inside(&POINTS, &square[..2]).is_empty());
    }
}
