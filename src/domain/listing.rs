//! What a source lists, and how its listing changes; pages of AWS's lists.

use super::{Problem, Sample, SampleUri};

/// A part of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub samples: Vec<Sample>,
    /// What could not be listed, and why; the rest goes on.
    pub problems: Vec<Problem>,
    /// What a person should know of the listing: what was left out. Whole sentences without a full stop.
    pub notes: Vec<String>,
}

/// What happened to the files of an open source.
#[derive(Debug, PartialEq, Eq)]
pub enum ListingChange {
    /// Files that are new, that were written to, or that are as they were.
    Seen(Vec<Sample>),
    /// Files, or folders with all that was in them, that are no longer there.
    Gone(Vec<SampleUri>),
    /// The complete listing, because some changes were missed.
    Relisted(Vec<Sample>),
    /// The complete listing of a file of many images that was written to.
    FileRelisted { file: SampleUri, page: Page },
    /// Changes are not noticed, wholly or in part, and why.
    Unwatched(String),
    /// Changes are not reported, and why; they appear when the source is listed again. Not a failure.
    Unwatchable(String),
}

/// Which jobs or endpoints of an AWS account are listed. A field that is `None` does not filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery<S> {
    /// A part of the name: letters, digits and hyphens.
    pub name_contains: Option<String>,
    pub status: Option<S>,
    /// [`ListPage::next`] of the page before.
    pub page_token: Option<String>,
}

impl<S> Default for ListQuery<S> {
    fn default() -> Self {
        Self { name_contains: None, status: None, page_token: None }
    }
}

/// A page of such a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// `None` after the last page.
    pub next: Option<String>,
}
