//! Signs that boxes do not follow their format.

use std::collections::HashSet;

use crate::annotations::matching::Doubt;
use crate::domain::{ExactBox, leaves_image};

/// Anomalies in the boxes of the ground truth or of predictions.
#[derive(Debug, Default)]
pub struct BoxChecks {
    boxes: u64,
    outside: Tally,
    /// Boxes outside the image that would be inside if their last two numbers were right and bottom.
    inside_as_edges: u64,
    /// Boxes with all numbers from 0 to 1.
    fractions: u64,
    repeated: Tally,
}

/// A count, and the first image.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    example: String,
}

impl Tally {
    fn add(&mut self, count: u64, image: &str) {
        if self.count == 0 && count > 0 {
            image.clone_into(&mut self.example);
        }
        self.count += count;
    }
}

impl BoxChecks {
    /// `boxes`: with the class, and the score of a prediction. `size`: width and height of the image, if known.
    pub fn add(
        &mut self,
        image: &str,
        size: Option<[u32; 2]>,
        boxes: impl ExactSizeIterator<Item = (ExactBox, u32, f64)>,
    ) {
        let mut seen = HashSet::with_capacity(boxes.len());
        let (mut outside, mut repeated) = (0, 0);
        for (bounds, class, score) in boxes {
            self.boxes += 1;
            let numbers = <[f64; 4]>::from(bounds);
            self.fractions += u64::from(numbers.iter().all(|number| (0.0..=1.0).contains(number)));
            repeated += u64::from(!seen.insert((numbers.map(f64::to_bits), class, score.to_bits())));
            let ExactBox { left, top, width, height } = bounds;
            if let Some(size) = size
                && leaves_image([left, top, bounds.right(), bounds.bottom()], size)
            {
                outside += 1;
                let is_inside_as_edges = width >= left && height >= top && !leaves_image(numbers, size);
                self.inside_as_edges += u64::from(is_inside_as_edges);
            }
        }
        self.outside.add(outside, image);
        self.repeated.add(repeated, image);
    }

    /// Reasons to doubt the boxes, and notes.
    pub fn finish(self, side: &'static str) -> (Vec<Doubt>, Vec<String>) {
        let Self { boxes, outside, inside_as_edges, fractions, repeated } = self;
        let are_edges = inside_as_edges == outside.count;
        let are_fractions = fractions == boxes && boxes > 0;
        let is_large = |tally: &Tally, share: u64| tally.count * share > boxes;
        let fractions = are_fractions.then_some(Doubt::Fractions { side });
        let (many_outside, many_repeated) = (is_large(&outside, 20), is_large(&repeated, 100));
        let outside = (outside.count > 0).then_some(Doubt::Outside {
            side,
            count: outside.count,
            of: boxes,
            example: outside.example,
            are_edges,
        });
        let repeated = (repeated.count > 0).then_some(Doubt::Repeated {
            side,
            count: repeated.count,
            of: boxes,
            example: repeated.example,
        });
        let weighed = [(fractions, true), (outside, many_outside), (repeated, many_repeated)];
        let (mut doubts, mut notes) = (Vec::new(), Vec::new());
        for (found, is_doubt) in weighed.into_iter().filter_map(|(found, is_doubt)| Some((found?, is_doubt))) {
            if is_doubt {
                doubts.push(found);
            } else {
                notes.push(found.to_string());
            }
        }
        (doubts, notes)
    }
}
