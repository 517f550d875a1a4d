//! Assigns thumbnails to slots of an atlas: the least recently seen one is replaced.

use std::collections::HashMap;

use crate::domain::SampleId;

/// Slots of one size, numbered from zero. Their number is bounded, unless more are visible together.
#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    by_sample: HashMap<SampleId, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) sample: SampleId,
    /// The version of the thumbnail's file.
    pub(crate) version: u32,
    /// Width and height of the thumbnail in pixels.
    pub(crate) size: [u32; 2],
    /// The last frame in which it was visible.
    seen: u64,
}

impl Slots {
    /// The slot of a thumbnail that is visible in this frame.
    pub(crate) fn see(&mut self, sample: SampleId, frame: u64) -> Option<(usize, Slot)> {
        let index = *self.by_sample.get(&sample)?;
        let slot = &mut self.slots[index];
        slot.seen = frame;
        Some((index, *slot))
    }

    pub(crate) fn has(&self, sample: SampleId, version: u32) -> bool {
        let index = self.by_sample.get(&sample);
        index.is_some_and(|&index| self.slots[index].version == version)
    }

    /// Returns the slot of a thumbnail: its own, a new one while there are fewer than `max`, or that of the least
    /// recently seen thumbnail.
    pub(crate) fn put(&mut self, sample: SampleId, version: u32, size: [u32; 2], frame: u64, max: usize) -> usize {
        let slot = Slot { sample, version, size, seen: frame };
        let known = self.by_sample.get(&sample).copied();
        let index = known.or_else(|| self.replaceable(frame, max));
        let index = index.unwrap_or(self.slots.len());
        if let Some(place) = self.slots.get_mut(index) {
            let old = std::mem::replace(place, slot);
            self.by_sample.remove(&old.sample);
        } else {
            self.slots.push(slot);
        }
        self.by_sample.insert(sample, index);
        index
    }

    /// `None` if there is room for one more, or all are visible.
    fn replaceable(&self, frame: u64, max: usize) -> Option<usize> {
        if self.slots.len() < max {
            return None;
        }
        let slots = self.slots.iter().enumerate();
        let (index, oldest) = slots.min_by_key(|(_, slot)| slot.seen)?;
        // Those of the last frame are still visible: this frame may not have drawn them yet.
        (oldest.seen + 1 < frame).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: [u32; 2] = [128, 96];

    fn put(slots: &mut Slots, sample: u32, frame: u64) -> usize {
        slots.put(SampleId(sample), 0, SIZE, frame, 3)
    }

    fn is_there(slots: &Slots, sample: u32) -> bool {
        slots.has(SampleId(sample), 0)
    }

    #[test]
    fn least_recently_seen_slot_is_reused() {
        let mut slots = Slots::default();
        for sample in 0..3 {
            assert_eq!(put(&mut slots, sample, 1), sample as usize);
        }
        slots.see(SampleId(0), 2);
        slots.see(SampleId(2), 3);
        assert_eq!(put(&mut slots, 7, 9), 1);
        assert!(is_there(&slots, 0) && is_there(&slots, 2) && is_there(&slots, 7));
        assert!(!is_there(&slots, 1));
    }

    #[test]
    fn visible_slots_are_never_reused() {
        let mut slots = Slots::default();
        for sample in 0..5 {
            put(&mut slots, sample, 4);
        }
        assert!((0..5).all(|sample| is_there(&slots, sample)));
        // After scrolling away, the slots are reused.
        assert!(put(&mut slots, 9, 8) < 5);
    }

    #[test]
    fn changed_file_keeps_its_thumbnail_until_the_next() {
        let mut slots = Slots::default();
        let index = put(&mut slots, 1, 1);
        assert!(!slots.has(SampleId(1), 1));
        assert!(slots.see(SampleId(1), 2).is_some());
        assert_eq!(slots.put(SampleId(1), 1, SIZE, 3, 3), index);
        assert!(slots.has(SampleId(1), 1));
    }
}
