//! Buckets and their folders, as far as they were opened.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::domain::{S3Access, S3Address};
use crate::window::state::{Failure, Loadable, TaskId};

/// The tree of buckets and folders, listed as they are opened. Also provides the rows to draw.
#[derive(Debug, Default)]
pub struct S3Tree {
    /// Buckets entered by the user or listed.
    buckets: BTreeSet<String>,
    bucket_list: Level,
    folders: HashMap<S3Address, Level>,
    open: HashSet<S3Address>,
    rows: Vec<S3Row>,
}

/// The objects and folders in a folder, or all buckets.
#[derive(Debug, Default)]
struct Level {
    /// Full prefixes, in the order of the server.
    folders: Vec<S3Address>,
    objects: u64,
    status: Loadable<()>,
    /// The token of the next page.
    continuation: Option<String>,
}

/// A folder to list, several pages per request.
#[derive(Debug, Clone)]
pub struct FolderListing {
    pub access: S3Access,
    pub folder: S3Address,
    /// The token that ended the previous page.
    pub continuation: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Row {
    /// 0 for buckets.
    pub depth: usize,
    pub kind: S3RowKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum S3RowKind {
    Folder {
        address: S3Address,
        is_open: bool,
    },
    Listing {
        task: TaskId,
    },
    /// There is more than what was listed.
    More {
        folder: S3Address,
    },
    /// The number of objects directly in the folder, as far as listed.
    Objects {
        count: u64,
    },
    Empty,
    Failed {
        folder: S3Address,
        failure: Failure,
    },
}

/// A part of a folder's content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3FolderPage {
    /// Full prefixes, with a trailing slash.
    pub folders: Vec<String>,
    pub objects: u64,
}

impl S3Tree {
    pub fn rows(&self) -> &[S3Row] {
        &self.rows
    }

    pub fn bucket_task(&self) -> Option<TaskId> {
        self.bucket_list.task()
    }

    pub fn bucket_failure(&self) -> Option<&Failure> {
        match &self.bucket_list.status {
            Loadable::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    pub fn has_listed_buckets(&self) -> bool {
        matches!(self.bucket_list.status, Loadable::Ready(()))
    }

    pub fn is_open(&self, folder: &S3Address) -> bool {
        self.open.contains(folder)
    }

    pub(crate) fn buckets_requested(&mut self, task: TaskId) {
        self.bucket_list.status = Loadable::Loading(task);
    }

    /// Stores the buckets; false for a response that is no longer expected.
    pub(crate) fn buckets_listed(&mut self, task: TaskId, result: Result<Vec<String>, Failure>) -> bool {
        if self.bucket_list.task() != Some(task) {
            return false;
        }
        match result {
            Ok(buckets) => {
                self.buckets.extend(buckets);
                self.bucket_list.status = Loadable::Ready(());
            }
            Err(Failure::Cancelled) => self.bucket_list.status = Loadable::NotLoaded,
            Err(failure) => self.bucket_list.status = Loadable::Failed(failure),
        }
        self.lay_out();
        true
    }

    /// Adds a bucket, which may be missing in the list of buckets.
    pub(crate) fn add_bucket(&mut self, bucket: &str) {
        self.buckets.insert(bucket.to_owned());
        self.lay_out();
    }

    pub(crate) fn set_open(&mut self, folder: &S3Address, is_open: bool) {
        if is_open {
            self.open.insert(folder.clone());
        } else {
            self.open.remove(folder);
        }
        self.lay_out();
    }

    /// Whether this folder is open and was never listed.
    pub(crate) fn wants_listing(&self, folder: &S3Address) -> bool {
        let is_unasked = match self.folders.get(folder) {
            Some(level) => matches!(level.status, Loadable::NotLoaded),
            None => true,
        };
        is_unasked && self.is_open(folder)
    }

    /// The token of a folder's next page; `None` at its start.
    pub(crate) fn continuation(&self, folder: &S3Address) -> Option<String> {
        self.folders.get(folder)?.continuation.clone()
    }

    pub(crate) fn is_listing(&self, folder: &S3Address) -> bool {
        self.folders.get(folder).is_some_and(|level| level.task().is_some())
    }

    pub(crate) fn folder_requested(&mut self, folder: &S3Address, task: TaskId) {
        self.level(folder).status = Loadable::Loading(task);
        self.lay_out();
    }

    pub(crate) fn folder_page(&mut self, folder: &S3Address, task: TaskId, page: S3FolderPage) {
        let level = self.level(folder);
        if level.task() != Some(task) {
            return;
        }
        let address = |prefix| S3Address::new(&folder.bucket, prefix);
        level.folders.extend(page.folders.into_iter().map(address));
        level.objects += page.objects;
        self.lay_out();
    }

    /// Stores the end of a listing; false for a response that is no longer expected.
    pub(crate) fn folder_ended(
        &mut self,
        folder: &S3Address,
        task: TaskId,
        result: Result<Option<String>, Failure>,
    ) -> bool {
        let level = self.level(folder);
        if level.task() != Some(task) {
            return false;
        }
        match result {
            Ok(continuation) => {
                level.continuation = continuation;
                level.status = Loadable::Ready(());
            }
            // The pages so far are dropped, because the token of the next page is unknown.
            Err(Failure::Cancelled) => {
                *level = Level::default();
                self.open.remove(folder);
            }
            Err(failure) => level.status = Loadable::Failed(failure),
        }
        self.lay_out();
        true
    }

    /// Forgets a folder's listing after a failure, so that it restarts.
    pub(crate) fn forget(&mut self, folder: &S3Address) {
        self.folders.remove(folder);
    }

    fn level(&mut self, folder: &S3Address) -> &mut Level {
        self.folders.entry(folder.clone()).or_default()
    }

    fn lay_out(&mut self) {
        let mut rows = Vec::new();
        for bucket in &self.buckets {
            self.lay_out_folder(&S3Address::new(bucket, ""), 0, &mut rows);
        }
        self.rows = rows;
    }

    fn lay_out_folder(&self, folder: &S3Address, depth: usize, rows: &mut Vec<S3Row>) {
        let is_open = self.is_open(folder);
        rows.push(S3Row { depth, kind: S3RowKind::Folder { address: folder.clone(), is_open } });
        let Some(level) = self.folders.get(folder).filter(|_| is_open) else {
            return;
        };
        let depth = depth + 1;
        for inner in &level.folders {
            self.lay_out_folder(inner, depth, rows);
        }
        let mut push = |kind| rows.push(S3Row { depth, kind });
        if level.objects > 0 {
            push(S3RowKind::Objects { count: level.objects });
        }
        let folder = folder.clone();
        match &level.status {
            Loadable::Loading(task) => push(S3RowKind::Listing { task: *task }),
            Loadable::Failed(failure) => push(S3RowKind::Failed { folder, failure: failure.clone() }),
            Loadable::Ready(()) if level.continuation.is_some() => push(S3RowKind::More { folder }),
            Loadable::Ready(()) if level.folders.is_empty() && level.objects == 0 => {
                push(S3RowKind::Empty);
            }
            Loadable::Ready(()) | Loadable::NotLoaded => {}
        }
    }
}

impl Level {
    fn task(&self) -> Option<TaskId> {
        match self.status {
            Loadable::Loading(task) => Some(task),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tree: &S3Tree) -> Vec<String> {
        let line = |row: &S3Row| {
            let text = match &row.kind {
                S3RowKind::Folder { address, is_open } => {
                    format!("{}{address}", if *is_open { "-" } else { "+" })
                }
                S3RowKind::Listing { .. } => "…".to_owned(),
                S3RowKind::More { .. } => "more".to_owned(),
                S3RowKind::Objects { count } => format!("{count} objects"),
                S3RowKind::Empty => "empty".to_owned(),
                S3RowKind::Failed { .. } => "failed".to_owned(),
            };
            format!("{}{text}", " ".repeat(row.depth))
        };
        tree.rows().iter().map(line).collect()
    }

    fn page(folders: &[&str], objects: u64) -> S3FolderPage {
        S3FolderPage { folders: folders.iter().map(|&folder| folder.to_owned()).collect(), objects }
    }

    #[test]
    fn tree_remembers_closed_folders() {
        let mut tree = S3Tree::default();
        tree.buckets_requested(TaskId(1));
        assert!(tree.buckets_listed(TaskId(1), Ok(vec!["b".to_owned(), "a".to_owned()])));
        let (bucket, photos) = (S3Address::new("a", ""), S3Address::new("a", "photos/"));
        assert_eq!(shown(&tree), ["+s3://a/", "+s3://b/"]);
        tree.set_open(&bucket, true);
        assert!(tree.wants_listing(&bucket));
        tree.folder_requested(&bucket, TaskId(2));
        assert!(!tree.wants_listing(&bucket));
        tree.folder_page(&bucket, TaskId(2), page(&["photos/"], 3));
        assert_eq!(shown(&tree), ["-s3://a/", " +s3://a/photos/", " 3 objects", " …", "+s3://b/"]);
        assert!(tree.folder_ended(&bucket, TaskId(2), Ok(None)));
        tree.set_open(&photos, true);
        tree.folder_requested(&photos, TaskId(3));
        assert!(tree.folder_ended(&photos, TaskId(3), Ok(None)));
        let open = ["-s3://a/", " -s3://a/photos/", "  empty", " 3 objects", "+s3://b/"];
        assert_eq!(shown(&tree), open);
        tree.set_open(&bucket, false);
        assert_eq!(shown(&tree), ["+s3://a/", "+s3://b/"]);
        tree.set_open(&bucket, true);
        assert!(!tree.wants_listing(&bucket));
        assert_eq!(shown(&tree), open);
    }

    #[test]
    fn folder_of_many_pages_continues() {
        let mut tree = S3Tree::default();
        tree.add_bucket("a");
        let bucket = S3Address::new("a", "");
        tree.set_open(&bucket, true);
        tree.folder_requested(&bucket, TaskId(1));
        tree.folder_page(&bucket, TaskId(1), page(&["x/"], 0));
        tree.folder_ended(&bucket, TaskId(1), Ok(Some("there".to_owned())));
        assert_eq!(shown(&tree), ["-s3://a/", " +s3://a/x/", " more"]);
        assert_eq!(tree.continuation(&bucket).as_deref(), Some("there"));
        tree.folder_requested(&bucket, TaskId(2));
        tree.folder_page(&bucket, TaskId(2), page(&["y/"], 0));
        tree.folder_ended(&bucket, TaskId(2), Ok(None));
        assert_eq!(shown(&tree), ["-s3://a/", " +s3://a/x/", " +s3://a/y/"]);
    }

    #[test]
    fn late_responses_are_dropped_and_canceling_closes() {
        let mut tree = S3Tree::default();
        tree.add_bucket("a");
        let bucket = S3Address::new("a", "");
        tree.set_open(&bucket, true);
        tree.folder_requested(&bucket, TaskId(2));
        tree.folder_page(&bucket, TaskId(1), page(&["late/"], 0));
        assert!(!tree.folder_ended(&bucket, TaskId(1), Ok(None)));
        assert!(!tree.buckets_listed(TaskId(1), Ok(Vec::new())));
        assert_eq!(shown(&tree), ["-s3://a/", " …"]);
        assert!(tree.folder_ended(&bucket, TaskId(2), Err(Failure::Cancelled)));
        assert_eq!(shown(&tree), ["+s3://a/"]);
        tree.set_open(&bucket, true);
        assert!(tree.wants_listing(&bucket));
    }
}
