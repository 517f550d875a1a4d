//! A query prepared for one run: its classes are ids.

use super::candidate::Candidate;
use super::outcomes::OutcomeClass;
use super::query::{BoxTerm, ClassChanges, Node, Query};
use crate::domain::LabelSet;

#[derive(Debug)]
pub(crate) struct Filter(Option<Node>);

impl Filter {
    pub(crate) fn new(query: &Query, labels: &LabelSet, truth: &[OutcomeClass], changes: &ClassChanges) -> Self {
        let mut root = query.root.clone();
        if let Some(root) = &mut root {
            root.each_term_mut(&mut |term| term.prepare(labels, truth, changes));
        }
        Self(root)
    }

    /// The conditions on boxes and ground truth that apply to the whole query; a box has to meet any of them.
    pub(crate) fn about_truth(&self) -> Vec<&BoxTerm> {
        let boxes = self.0.iter().flat_map(Node::box_terms);
        boxes.filter(|term| term.needs_truth()).collect()
    }

    /// Whether every image passes.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn passes(&self, candidate: &Candidate<'_>) -> bool {
        self.0.as_ref().is_none_or(|root| root.passes(candidate))
    }
}
