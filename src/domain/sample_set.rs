//! A set of samples, one bit each.

use super::SampleId;

/// Cheap to query and to copy, even for 100,000 samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleSet {
    words: Vec<u64>,
    len: usize,
}

impl SampleSet {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn contains(&self, id: SampleId) -> bool {
        let (word, bit) = position(id);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// True if it was not in the set before.
    pub fn insert(&mut self, id: SampleId) -> bool {
        let (word, bit) = position(id);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(is_new);
        is_new
    }

    /// True if it was in the set.
    pub fn remove(&mut self, id: SampleId) -> bool {
        let (word, bit) = position(id);
        let was_in = self.contains(id);
        if was_in {
            self.words[word] &= !bit;
            self.len -= 1;
        }
        was_in
    }

    pub fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    /// Lowest first.
    pub fn iter(&self) -> impl Iterator<Item = SampleId> {
        self.words.iter().enumerate().flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| SampleId::from_index(word * 64 + bit))
        })
    }
}

fn position(id: SampleId) -> (usize, u64) {
    (id.index() / 64, 1 << (id.index() % 64))
}

impl FromIterator<SampleId> for SampleSet {
    fn from_iter<I: IntoIterator<Item = SampleId>>(ids: I) -> Self {
        let mut set = Self::default();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_counts_each_sample_once() {
        let mut set: SampleSet = [0, 63, 64, 64].map(SampleId).into_iter().collect();
        assert_eq!(set.len(), 3);
        assert!(set.remove(SampleId(63)));
        assert!(!set.remove(SampleId(63)));
        assert!(!set.remove(SampleId(6300)));
        let left: Vec<SampleId> = set.iter().collect();
        assert_eq!(left, [SampleId(0), SampleId(64)]);
    }
}
