//! A long list that is cheap to copy.

use std::sync::Arc;

/// Entries per piece: a change copies at most this many while a snapshot is alive.
const ENTRIES_A_PIECE: usize = 512;

/// A list in shared pieces. A clone is a snapshot that shares every piece with the original; a change copies only the
/// piece that contains it. The window can therefore hand a list of 100,000 entries to a worker within microseconds and
/// keep changing its own.
#[derive(Debug, Clone)]
pub struct SharedList<T> {
    /// The pieces, all full except the last.
    pieces: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> SharedList<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        self.pieces.get(index / ENTRIES_A_PIECE)?.get(index % ENTRIES_A_PIECE)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }
}

impl<T: Clone> SharedList<T> {
    pub fn push(&mut self, entry: T) {
        if self.len.is_multiple_of(ENTRIES_A_PIECE) {
            self.pieces.push(Arc::new(Vec::new()));
        }
        if let Some(last) = self.pieces.last_mut() {
            Arc::make_mut(last).push(entry);
            self.len += 1;
        }
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let piece = self.pieces.get_mut(index / ENTRIES_A_PIECE)?;
        Arc::make_mut(piece).get_mut(index % ENTRIES_A_PIECE)
    }

    /// Replaces the entry at `index`, filling any gap at the end with the default.
    pub fn set(&mut self, index: usize, entry: T)
    where
        T: Default,
    {
        while self.len <= index {
            self.push(T::default());
        }
        if let Some(place) = self.get_mut(index) {
            *place = entry;
        }
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self { pieces: Vec::new(), len: 0 }
    }
}

impl<T: Clone> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut list = Self::default();
        for entry in entries {
            list.push(entry);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_list_behaves_like_a_vec() {
        let list: SharedList<usize> = (0..2000).collect();
        assert_eq!(list.len(), 2000);
        assert_eq!(list.get(1999), Some(&1999));
        assert_eq!(list.get(2000), None);
        assert!(list.iter().copied().eq(0..2000));
    }

    #[test]
    fn snapshot_ignores_later_changes() {
        let mut list: SharedList<usize> = (0..2000).collect();
        let snapshot = list.clone();
        list.set(700, 7);
        list.set(2001, 8);
        assert_eq!(snapshot.get(700), Some(&700));
        assert_eq!(snapshot.len(), 2000);
        assert_eq!((list.get(700), list.get(2000)), (Some(&7), Some(&0)));
        assert!(Arc::ptr_eq(&list.pieces[0], &snapshot.pieces[0]), "what did not change is shared");
    }
}
