//! Placement of box labels so that none covers another.

use super::BoundingBox;

/// Maximum number of labels: more would be illegible, and the time grows with the square of their number.
const MAX_LABELS: usize = 300;

/// The positions taken so far. The first label gets the best position, so the order of calls must stay the same, or
/// labels jump.
#[derive(Debug, Clone)]
pub struct LabelPlaces {
    within: BoundingBox,
    taken: Vec<BoundingBox>,
    asked: usize,
}

impl LabelPlaces {
    /// Labels stay inside `within`.
    pub fn new(within: BoundingBox) -> Self {
        Self { within, taken: Vec::new(), asked: 0 }
    }

    /// Keeps a rectangle free of labels.
    pub fn reserve(&mut self, place: BoundingBox) {
        self.taken.push(place);
    }

    /// The first of `labels` (longest first) that fits at a box, and its position; `size_of` returns width and height.
    /// `None` if none fits, or no part of the box is visible.
    pub fn take<T>(
        &mut self,
        around: BoundingBox,
        labels: impl IntoIterator<Item = T>,
        size_of: impl Fn(&T) -> [f32; 2],
    ) -> Option<(T, BoundingBox)> {
        let around = self.seen_of(around)?;
        if self.asked == MAX_LABELS {
            return None;
        }
        self.asked += 1;
        let (label, place) = labels.into_iter().find_map(|label| {
            let place = self.free_place(around, size_of(&label))?;
            Some((label, place))
        })?;
        self.taken.push(place);
        Some((label, place))
    }

    /// The best position of a label that must be shown, even if it covers others.
    pub fn insist(&self, around: BoundingBox, size: [f32; 2]) -> Option<BoundingBox> {
        let around = self.seen_of(around)?;
        let mut places = candidates(self.within, around, size).into_iter();
        places.find(|place| self.is_inside(place))
    }

    /// The visible part of a box.
    fn seen_of(&self, around: BoundingBox) -> Option<BoundingBox> {
        let within = &self.within;
        let seen = BoundingBox {
            x1: around.x1.max(within.x1),
            y1: around.y1.max(within.y1),
            x2: around.x2.min(within.x2),
            y2: around.y2.min(within.y2),
        };
        (around.is_finite() && seen.x1 <= seen.x2 && seen.y1 <= seen.y2).then_some(seen)
    }

    fn free_place(&self, around: BoundingBox, size: [f32; 2]) -> Option<BoundingBox> {
        let mut places = candidates(self.within, around, size).into_iter();
        places.find(|place| self.is_inside(place) && !self.taken.iter().any(|other| covers(other, place)))
    }

    fn is_inside(&self, place: &BoundingBox) -> bool {
        let within = &self.within;
        place.x1 >= within.x1 && place.y1 >= within.y1 && place.x2 <= within.x2 && place.y2 <= within.y2
    }
}

/// Positions to try: above the box, inside, below, next to it; then the same at its other corners.
fn candidates(within: BoundingBox, around: BoundingBox, [width, height]: [f32; 2]) -> [BoundingBox; 7] {
    let right_most = (within.x2 - width).max(within.x1);
    let left = around.x1.min(right_most);
    let right = (around.x2 - width).max(within.x1);
    let (above, inside) = (around.y1 - height, around.y1);
    [
        [left, above],
        [left, inside],
        [left, around.y2],
        [around.x2, inside],
        [right, above],
        [right, inside],
        [left, around.y2 - height],
    ]
    .map(|[x, y]| BoundingBox::new(x, y, x + width, y + height))
}

/// Whether two rectangles share more than an edge.
fn covers(left: &BoundingBox, right: &BoundingBox) -> bool {
    left.x1 < right.x2 && right.x1 < left.x2 && left.y1 < right.y2 && right.y1 < left.y2
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: [f32; 2] = [60.0, 16.0];

    fn places() -> LabelPlaces {
        LabelPlaces::new(BoundingBox::new(0.0, 0.0, 400.0, 300.0))
    }

    fn left_top(found: Option<((), BoundingBox)>) -> Option<[f32; 2]> {
        found.map(|((), place)| [place.x1, place.y1])
    }

    #[test]
    fn equal_boxes_place_labels_in_a_fixed_order() {
        let mut places = places();
        let around = BoundingBox::new(100.0, 100.0, 200.0, 200.0);
        let found: Vec<_> = (0..8).map(|_| left_top(places.take(around, [()], |()| SIZE))).collect();
        let expected = [
            Some([100.0, 84.0]),
            Some([100.0, 100.0]),
            Some([100.0, 200.0]),
            Some([200.0, 100.0]),
            // Aligned with the right edge, it would cover the first one.
            Some([100.0, 184.0]),
            None,
            None,
            None,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn shorter_label_is_used_without_room() {
        let mut places = places();
        let lengths = [[60.0, 16.0], [28.0, 16.0]];
        let wide = BoundingBox::new(0.0, 0.0, 100.0, 300.0);
        let first = places.take(wide, lengths, |size| *size);
        assert_eq!(first.map(|(size, _)| size), Some(lengths[0]));
        let whole = BoundingBox::new(0.0, 0.0, 30.0, 16.0);
        let mut narrow = LabelPlaces::new(whole);
        let found = narrow.take(whole, lengths, |size| *size);
        assert_eq!(found.map(|(size, _)| size), Some(lengths[1]));
    }

    #[test]
    fn labels_stay_inside_and_hidden_boxes_have_none() {
        let mut places = places();
        let corner = BoundingBox::new(390.0, 0.0, 500.0, 20.0);
        let found = left_top(places.take(corner, [()], |()| SIZE));
        assert_eq!(found, Some([340.0, 0.0]));
        for outside in [
            BoundingBox::new(401.0, 0.0, 500.0, 20.0),
            BoundingBox::new(0.0, -50.0, 10.0, -1.0),
            BoundingBox::new(f32::NAN, 0.0, f32::INFINITY, 3.0),
        ] {
            assert!(places.take(outside, [()], |()| SIZE).is_none(), "{outside:?}");
        }
    }

    #[test]
    fn reserved_positions_stay_free() {
        let mut places = places();
        places.reserve(BoundingBox::new(0.0, 0.0, 400.0, 150.0));
        let around = BoundingBox::new(100.0, 100.0, 200.0, 200.0);
        let found = left_top(places.take(around, [()], |()| SIZE));
        assert_eq!(found, Some([100.0, 200.0]));
    }

    #[test]
    fn important_label_is_placed_over_others() {
        let mut places = places();
        let around = BoundingBox::new(0.0, 0.0, 60.0, 16.0);
        while places.take(around, [()], |()| SIZE).is_some() {}
        assert!(places.insist(around, SIZE).is_some());
    }

    #[test]
    fn thousands_of_boxes_have_few_separate_labels() {
        let mut places = places();
        let found: Vec<BoundingBox> = (0..5000)
            .filter_map(|number| {
                let (x, y) = ((number * 37 % 400) as f32, (number * 53 % 300) as f32);
                let around = BoundingBox::new(x, y, x + 20.0, y + 20.0);
                Some(places.take(around, [()], |()| [20.0, 8.0])?.1)
            })
            .collect();
        assert!((50..=MAX_LABELS).contains(&found.len()), "{}", found.len());
        assert_eq!(places.asked, MAX_LABELS);
        for (at, place) in found.iter().enumerate() {
            assert!(!found[..at].iter().any(|other| covers(other, place)));
        }
    }
}
