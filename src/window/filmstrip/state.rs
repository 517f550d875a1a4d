//! The strip with all boxes of one class.

use crate::review::{FilmFrame, FilmOrder};
use crate::window::search::state::Basis;
use crate::window::state::{Derived, State};

/// The open strip: its request and its current frames.
#[derive(Debug, Default)]
pub struct Filmstrip {
    /// `None` until the user or the predictions determine it, or for all classes found by a query about the ground
    /// truth.
    pub class: Option<u32>,
    pub order: FilmOrder,
    pub(crate) frames: Derived<FilmBasis, Vec<FilmFrame>>,
}

/// Everything that the frames depend on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilmBasis {
    pub(crate) images: Basis,
    pub(crate) class: Option<u32>,
    /// The overlap above which boxes are hidden, and the revision of the known overlaps.
    pub(crate) hidden: Option<(f32, u64)>,
    pub(crate) order: FilmOrder,
}

impl Filmstrip {
    pub(crate) fn new(class: Option<u32>) -> Self {
        Self { class, ..Self::default() }
    }

    /// The frames in order, for the last requested class and run.
    pub fn frames(&self) -> &[FilmFrame] {
        self.frames.value().map_or(&[], Vec::as_slice)
    }

    /// Whether the requested frames are still being gathered.
    pub fn is_under_way(&self) -> bool {
        self.frames.is_under_way()
    }

    /// Whether frames have to be gathered for this basis. A pending request is replaced only by one for another class
    /// or run.
    pub(crate) fn needs(&self, basis: &FilmBasis) -> bool {
        match self.frames.pending() {
            Some((_, pending)) => !pending.is_same_question(basis),
            None => self.frames.inputs() != Some(basis),
        }
    }
}

impl FilmBasis {
    pub(crate) fn is_same_question(&self, other: &Self) -> bool {
        self.images.is_same_question(&other.images) && (self.class, self.order) == (other.class, other.order)
    }
}

impl State {
    /// The initial class of a strip: that of the selected box or class, or of the best one on screen, or the first of
    /// the run.
    pub(crate) fn class_at_hand(&self) -> Option<u32> {
        use crate::domain::SaliencyTarget;
        let pending = self.question().map(|question| match question.target {
            SaliencyTarget::Class(class) => class,
            SaliencyTarget::Box { class_id, .. } => class_id,
        });
        let first = || {
            let predictions = &self.run()?.predictions;
            let (_, summary) = predictions.iter().find(|(_, found)| !found.classes.is_empty())?;
            summary.classes.first().copied()
        };
        pending.or_else(first)
    }
}
