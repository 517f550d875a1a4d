//! The strip with all boxes of one class.

use std::sync::Arc;

use super::State;
use super::arranging::Basis;
use crate::review::{FilmFrame, FilmOrder};

/// The number of a request for a strip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FilmstripId(pub u64);

/// The open strip: its request, and the present frames.
#[derive(Debug, Default)]
pub struct Filmstrip {
    /// `None` until the user or the predictions say which, or for all classes that a query about the ground truth
    /// finds.
    pub class: Option<u32>,
    pub order: FilmOrder,
    frames: Arc<[FilmFrame]>,
    /// The request that is being gathered.
    pending: Option<(FilmstripId, FilmBasis)>,
    /// The basis of `frames`.
    gathered: Option<FilmBasis>,
}

/// All that the frames depend on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FilmBasis {
    pub(super) images: Basis,
    pub(super) class: Option<u32>,
    /// Above which overlap boxes are hidden, and which state of what is known of that.
    pub(super) hidden: Option<(f32, u64)>,
    pub(super) order: FilmOrder,
}

impl Filmstrip {
    pub(super) fn of(class: Option<u32>) -> Self {
        Self { class, ..Self::default() }
    }

    /// The frames in order, of the class and run that were requested last.
    pub fn frames(&self) -> &Arc<[FilmFrame]> {
        &self.frames
    }

    /// Whether the frames are not yet the requested ones.
    pub fn is_under_way(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether frames are to be gathered for this. A request that is under way is not replaced, unless it is for
    /// another class or run.
    pub(super) fn needs(&self, basis: &FilmBasis) -> bool {
        match &self.pending {
            Some((_, pending)) => !pending.is_same_question(basis),
            None => self.gathered.as_ref() != Some(basis),
        }
    }

    pub(super) fn begin(&mut self, id: FilmstripId, basis: FilmBasis) {
        let shows_other = self.gathered.as_ref().is_some_and(|gathered| !gathered.is_same_question(&basis));
        if shows_other {
            self.frames = Arc::default();
        }
        self.pending = Some((id, basis));
    }

    /// Nothing can be gathered, and what was gathered for something else is no longer true.
    pub(super) fn clear(&mut self) {
        self.frames = Arc::default();
        self.pending = None;
        self.gathered = None;
    }

    /// Drops frames of another source or run.
    pub(super) fn keep_only(&mut self, basis: &FilmBasis) {
        let newest = self.pending.as_ref().map(|(_, pending)| pending).or(self.gathered.as_ref());
        if newest.is_some_and(|newest| !newest.images.is_same_run(&basis.images)) {
            self.clear();
        }
    }

    pub(super) fn take(&mut self, id: FilmstripId, frames: Vec<FilmFrame>) {
        if let Some((_, basis)) = self.pending.take_if(|(pending, _)| *pending == id) {
            self.gathered = Some(basis);
            self.frames = frames.into();
        }
    }
}

impl FilmBasis {
    fn is_same_question(&self, other: &Self) -> bool {
        self.images.is_same_question(&other.images) && (self.class, self.order) == (other.class, other.order)
    }
}

impl State {
    /// The initial class of a strip: that of the selected box or class, or of the best one on screen, or the first of
    /// the run.
    pub(super) fn class_at_hand(&self) -> Option<u32> {
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
