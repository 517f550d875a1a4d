//! The listing of a source and how it changes; pages of AWS lists.

use super::{Problem, Sample, SampleUri};

/// A part of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub samples: Vec<Sample>,
    /// What could not be listed, and why; the listing continues.
    pub problems: Vec<Problem>,
    /// Notes about the listing, such as what was skipped. Whole sentences without a period.
    pub notes: Vec<String>,
}

/// A change to the files of an open source.
#[derive(Debug, PartialEq, Eq)]
pub enum ListingChange {
    /// Files that are new, changed or unchanged.
    Seen(Vec<Sample>),
    /// Files, or folders with everything in them, that no longer exist.
    Gone(Vec<SampleUri>),
    /// The complete listing, because changes were missed.
    Relisted(Vec<Sample>),
    /// The complete listing of a changed container file.
    FileRelisted { file: SampleUri, page: Page },
    /// Some or all changes go unnoticed, and why.
    Unwatched(String),
    /// Changes are not reported, and why; they appear on the next listing. Not a failure.
    Unwatchable(String),
}

/// Filter for the jobs or endpoints of an AWS account. `None` does not filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery<S> {
    /// Part of the name: letters, digits and hyphens.
    pub name_contains: Option<String>,
    pub status: Option<S>,
    /// [`ListPage::next`] of the previous page.
    pub page_token: Option<String>,
}

impl<S> Default for ListQuery<S> {
    fn default() -> Self {
        Self { name_contains: None, status: None, page_token: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// `None` after the last page.
    pub next: Option<String>,
}
