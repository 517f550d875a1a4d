//! What a source lists, and how its listing changes.

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
    /// Everything there is now: some changes were missed.
    Relisted(Vec<Sample>),
    /// Everything there is now inside a file of many images that was written to.
    FileRelisted { file: SampleUri, page: Page },
    /// Changes are not noticed, wholly or in part, and why.
    Unwatched(String),
    /// The place tells nobody of changes, and why; they are noticed when it is listed again. Not a failure.
    Unwatchable(String),
}
