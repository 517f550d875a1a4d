//! A query that is ready for one run: its classes are ids.

use super::candidate::Candidate;
use super::query::{ClassChanges, Node, Query};
use crate::domain::LabelSet;

#[derive(Debug)]
pub(super) struct Filter(Option<Node>);

impl Filter {
    pub(super) fn new(query: &Query, labels: &LabelSet, changes: &ClassChanges) -> Self {
        let mut root = query.root.clone();
        if let Some(root) = &mut root {
            root.each_term_mut(&mut |term| term.prepare(labels, changes));
        }
        Self(root)
    }

    /// True if every image passes.
    pub(super) fn is_open(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn passes(&self, candidate: &Candidate<'_>) -> bool {
        self.0.as_ref().is_none_or(|root| root.passes(candidate))
    }
}
