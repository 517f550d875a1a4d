//! Judgments, in the form that sorting and filtering need.

use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

use crate::domain::{SampleId, SharedList, Verdict};

/// The judgments of one run, with notes and tags, by sample. A clone is a cheap snapshot.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    samples: SharedList<Mark>,
    revision: u64,
}

/// The verdicts on one sample and its boxes, its note and its tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark {
    /// The verdict on the image as a whole.
    pub verdict: Option<VerdictKind>,
    /// The verdicts on its boxes: index into the detections of the stored prediction, and verdict. Lowest index first,
    /// without duplicates.
    pub boxes: Arc<[(u32, VerdictKind)]>,
    /// Whether a label of the ground truth was judged as wrong.
    pub has_wrong_label: bool,
    /// Never empty.
    pub note: Option<Arc<str>>,
    pub tags: Arc<[String]>,
}

/// A verdict without the right class, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum VerdictKind {
    /// No object is missing.
    Complete,
    Accept,
    Unsure,
    /// A person corrected the position.
    Moved,
    #[strum(serialize = "wrong")]
    WrongClass,
    /// A person drew the box of an object that the model did not detect.
    Added,
    Reject,
    /// The image goes back to the labeler.
    Returned,
}

impl Marks {
    /// Empty if there is no mark.
    pub fn get(&self, id: SampleId) -> Mark {
        self.of(id).cloned().unwrap_or_default()
    }

    pub fn set(&mut self, id: SampleId, mark: Mark) {
        self.revision += 1;
        self.samples.set(id.index(), mark);
    }

    /// Changes with every modification.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn of(&self, id: SampleId) -> Option<&Mark> {
        self.samples.get(id.index())
    }
}

impl Mark {
    /// The verdict of an image with these visible boxes: the worst one given to it or any of them. `None` while it is
    /// unjudged, which is until the image itself or all of these boxes have a verdict.
    pub fn judged(&self, mut shown_boxes: impl Iterator<Item = usize>) -> Option<VerdictKind> {
        let boxes = self.boxes.iter().map(|(_, kind)| *kind);
        let worst = boxes.chain(self.verdict).max()?;
        let is_judged = self.verdict.is_some() || shown_boxes.all(|at| self.of_box(at).is_some());
        is_judged.then_some(worst)
    }

    /// Whether the image or one of its boxes has this verdict.
    pub fn has(&self, kind: VerdictKind) -> bool {
        self.verdict == Some(kind) || self.boxes.iter().any(|(_, other)| *other == kind)
    }

    /// The number of boxes that a person added.
    pub fn added(&self) -> usize {
        self.boxes.iter().filter(|(_, kind)| *kind == VerdictKind::Added).count()
    }

    pub fn of_box(&self, index: usize) -> Option<VerdictKind> {
        let index = u32::try_from(index).ok()?;
        let place = self.boxes.binary_search_by_key(&index, |(at, _)| *at).ok()?;
        Some(self.boxes[place].1)
    }
}

impl VerdictKind {
    /// What became of the prediction: “accepted”.
    pub fn participle(self) -> &'static str {
        match self {
            Self::Accept => "accepted",
            Self::Reject => "rejected",
            Self::Unsure => "unsure",
            Self::WrongClass => "wrong class",
            Self::Moved => "moved",
            Self::Added => "added",
            Self::Complete => "complete",
            Self::Returned => "back to labeler",
        }
    }

    /// Whether it confirms the object of a box. Such boxes are always visible
    /// ([`ViewSettings::visible_detections`](crate::domain::ViewSettings::visible_detections)); rejected and unsure
    /// ones follow the filters.
    pub fn confirms(self) -> bool {
        matches!(self, Self::Accept | Self::WrongClass | Self::Moved | Self::Added)
    }
}

impl From<&Verdict> for VerdictKind {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Accept => Self::Accept,
            // The prediction or the label.
            Verdict::Reject | Verdict::Spurious(_) => Self::Reject,
            Verdict::Unsure => Self::Unsure,
            Verdict::WrongClass(_) => Self::WrongClass,
            Verdict::Moved(_) => Self::Moved,
            Verdict::Added(_) => Self::Added,
            Verdict::Complete => Self::Complete,
            Verdict::Returned => Self::Returned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::DrawnBox;

    #[test]
    fn worst_verdict_counts_once_all_boxes_are_judged() {
        let boxes = |boxes: &[(u32, VerdictKind)]| Mark { boxes: boxes.into(), ..Mark::default() };
        let shown = || [0, 2].into_iter();
        assert_eq!(Mark::default().judged(shown()), None);
        assert_eq!(Mark::default().judged(std::iter::empty()), None);
        let (accept, reject) = (VerdictKind::Accept, VerdictKind::Reject);
        assert_eq!(boxes(&[(0, accept)]).judged(shown()), None);
        assert_eq!(boxes(&[(1, reject), (2, accept)]).judged(shown()), None);
        let both = boxes(&[(0, accept), (2, accept)]);
        assert_eq!(both.judged(shown()), Some(accept));
        let hidden_too = boxes(&[(0, accept), (1, reject), (2, accept)]);
        assert_eq!(hidden_too.judged(shown()), Some(reject));
        let image = Mark { verdict: Some(accept), ..boxes(&[(2, reject)]) };
        assert_eq!(image.judged(shown()), Some(reject));
        assert_eq!(image.of_box(2), Some(reject));
        assert_eq!(image.of_box(0), None);
        let complete = Mark { verdict: Some(VerdictKind::Complete), ..boxes(&[(2, accept)]) };
        assert_eq!(complete.judged(shown()), Some(accept));
        assert_eq!(Mark { boxes: Arc::default(), ..complete }.judged(shown()), Some(VerdictKind::Complete));
    }

    #[test]
    fn verdict_kinds_have_their_words() {
        let drawn = DrawnBox::from_bounds("cat", [1.0, 1.0, 2.0, 2.0].into()).unwrap();
        let verdicts = [
            Verdict::Accept,
            Verdict::Reject,
            Verdict::Unsure,
            Verdict::WrongClass("cat".to_owned()),
            Verdict::Moved(drawn.clone()),
            Verdict::Added(drawn),
            Verdict::Complete,
            Verdict::Returned,
        ];
        assert_eq!(verdicts.len(), VerdictKind::VARIANTS.len());
        for verdict in verdicts {
            assert_eq!(VerdictKind::from(&verdict).into_str(), verdict.into_str());
        }
    }
}
