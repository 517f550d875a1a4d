//! What sorting and filtering need to know of judgements.

use std::sync::Arc;

use crate::domain::{SampleId, SharedList, Verdict};

/// The judgements of one run, with notes and tags, by sample. A clone is a snapshot that costs next to nothing.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    samples: SharedList<Mark>,
    revision: u64,
}

/// What a person said of one sample and of its boxes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark {
    /// Of the image as a whole.
    pub verdict: Option<VerdictKind>,
    /// How many of its boxes have each kind of verdict, in the order of [`VerdictKind::ALL`].
    pub box_verdicts: [u32; 4],
    /// `None` where there is none; never empty.
    pub note: Option<Arc<str>>,
    pub tags: Arc<[String]>,
}

/// A verdict without the class that would be right, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerdictKind {
    Accept,
    Unsure,
    WrongClass,
    Reject,
}

impl Marks {
    /// Empty where nobody said anything.
    pub fn get(&self, id: SampleId) -> Mark {
        self.of(id).cloned().unwrap_or_default()
    }

    pub fn set(&mut self, id: SampleId, mark: Mark) {
        self.revision += 1;
        self.samples.set(id.index(), mark);
    }

    /// Another number after every change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn of(&self, id: SampleId) -> Option<&Mark> {
        self.samples.get(id.index())
    }
}

impl Mark {
    /// Whether the image or one of its boxes has a verdict.
    pub fn is_judged(&self) -> bool {
        self.worst().is_some()
    }

    /// Whether the image or one of its boxes has this verdict.
    pub fn has(&self, kind: VerdictKind) -> bool {
        self.verdict == Some(kind) || self.box_verdicts[kind as usize] > 0
    }

    /// The worst verdict of the image and its boxes.
    pub fn worst(&self) -> Option<VerdictKind> {
        let kinds = VerdictKind::ALL.into_iter();
        kinds.rev().find(|kind| self.has(*kind))
    }
}

impl VerdictKind {
    pub const ALL: [Self; 4] = [Self::Accept, Self::Unsure, Self::WrongClass, Self::Reject];

    /// As [`Verdict::word`].
    pub fn word(self) -> &'static str {
        match self {
            Self::Accept => Verdict::Accept.word(),
            Self::Unsure => Verdict::Unsure.word(),
            Self::WrongClass => "wrong",
            Self::Reject => Verdict::Reject.word(),
        }
    }
}

impl From<&Verdict> for VerdictKind {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Accept => Self::Accept,
            Verdict::Reject => Self::Reject,
            Verdict::Unsure => Self::Unsure,
            Verdict::WrongClass(_) => Self::WrongClass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_on_a_box_judges_the_image_and_the_worst_one_counts() {
        let mut mark = Mark::default();
        assert!(!mark.is_judged());
        mark.verdict = Some(VerdictKind::Accept);
        mark.box_verdicts[VerdictKind::WrongClass as usize] = 2;
        assert!(mark.has(VerdictKind::Accept) && mark.has(VerdictKind::WrongClass));
        assert_eq!(mark.worst(), Some(VerdictKind::WrongClass));
    }

    #[test]
    fn a_kind_has_the_word_of_its_verdict() {
        for verdict in [
            Verdict::Accept,
            Verdict::Reject,
            Verdict::Unsure,
            Verdict::WrongClass("cat".to_owned()),
        ] {
            assert_eq!(VerdictKind::from(&verdict).word(), verdict.word());
        }
    }
}
