//! A value per class id.

use std::collections::BTreeMap;

/// Ids below this are stored in a plain list; a broken model can return any id.
const DENSE: u32 = 1 << 16;

#[derive(Debug, Clone, PartialEq)]
pub struct ByClass<T> {
    otherwise: T,
    dense: Vec<T>,
    sparse: BTreeMap<u32, T>,
}

impl<T: Clone> ByClass<T> {
    pub fn new(otherwise: T) -> Self {
        Self { otherwise, dense: Vec::new(), sparse: BTreeMap::new() }
    }

    pub fn get(&self, class: u32) -> &T {
        match self.dense.get(class as usize) {
            Some(value) => value,
            None => self.sparse.get(&class).unwrap_or(&self.otherwise),
        }
    }

    pub fn get_mut(&mut self, class: u32) -> &mut T {
        if class >= DENSE {
            let otherwise = &self.otherwise;
            return self.sparse.entry(class).or_insert_with(|| otherwise.clone());
        }
        let index = class as usize;
        if index >= self.dense.len() {
            self.dense.resize(index + 1, self.otherwise.clone());
        }
        &mut self.dense[index]
    }

    /// Lowest id first, including entries that were never set.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let dense = self.dense.iter().enumerate();
        let sparse = self.sparse.iter();
        dense.map(|(class, value)| (class as u32, value)).chain(sparse.map(|(class, value)| (*class, value)))
    }
}
