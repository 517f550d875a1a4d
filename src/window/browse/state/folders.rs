//! The visible lines of the folder tree.

use std::collections::HashSet;
use std::sync::Arc;

use crate::review::Folder;

#[derive(Debug, Default)]
pub struct FolderPane {
    open: HashSet<Arc<str>>,
    /// The tree that the rows belong to.
    tree: Arc<[Folder]>,
    /// Positions in the tree: folders in closed ones are left out.
    rows: Vec<usize>,
}

impl FolderPane {
    pub fn tree(&self) -> &[Folder] {
        &self.tree
    }

    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Whether the folders in it are shown. Those in the opened folder always are.
    pub fn is_open(&self, folder: &Folder) -> bool {
        folder.parent.is_none() || self.open.contains(&folder.path)
    }

    pub(crate) fn set_open(&mut self, path: Arc<str>, is_open: bool) {
        if is_open {
            self.open.insert(path);
        } else {
            self.open.remove(&path);
        }
        self.lay_out();
    }

    pub(crate) fn follow(&mut self, tree: &Arc<[Folder]>) {
        if !Arc::ptr_eq(&self.tree, tree) {
            self.tree = Arc::clone(tree);
            self.lay_out();
        }
    }

    fn lay_out(&mut self) {
        self.rows.clear();
        let mut place = 0;
        while let Some(folder) = self.tree.get(place) {
            self.rows.push(place);
            place = if self.is_open(folder) { place + 1 } else { folder.end };
        }
    }
}
