//! The shown sample and the selected ones.

use crate::domain::{SampleId, SampleSet};
use crate::window::state::Order;

/// The shown sample is always one of the selected.
#[derive(Debug, Default)]
pub struct Selection {
    shown: Option<SampleId>,
    selected: SampleSet,
    /// The anchor of a range selected with Shift.
    anchor: Option<SampleId>,
}

impl Selection {
    pub fn shown(&self) -> Option<SampleId> {
        self.shown
    }

    pub fn selected(&self) -> &SampleSet {
        &self.selected
    }

    pub fn contains(&self, id: SampleId) -> bool {
        self.selected.contains(id)
    }

    /// Shows and selects only this sample.
    pub(crate) fn show(&mut self, id: SampleId) {
        self.selected.clear();
        self.selected.insert(id);
        self.shown = Some(id);
        self.anchor = Some(id);
    }

    /// Adds or removes one image, and shows it if it was added.
    pub(crate) fn toggle(&mut self, id: SampleId) {
        let is_last = self.selected.len() == 1;
        if self.selected.contains(id) && !is_last {
            self.selected.remove(id);
            if self.shown == Some(id) {
                self.shown = self.selected.iter().next();
            }
        } else {
            self.selected.insert(id);
            self.shown = Some(id);
        }
        self.anchor = Some(id);
    }

    /// Selects everything on screen between the anchor and `id`, and shows `id`.
    pub(crate) fn extend_to(&mut self, id: SampleId, order: &Order) {
        let anchor = self.anchor.unwrap_or(id);
        let place = |id| order.place_of(id);
        let (Some(from), Some(to)) = (place(anchor).or(place(id)), place(id)) else {
            return;
        };
        self.selected = (from.min(to)..=from.max(to)).filter_map(|place| order.at(place)).collect();
        self.shown = Some(id);
        self.anchor = Some(anchor);
    }

    pub(crate) fn select_all(&mut self, ids: impl Iterator<Item = SampleId>) {
        self.selected = ids.collect();
        self.shown = self.shown.or_else(|| self.selected.iter().next());
    }

    /// Deselects all samples except the shown one.
    pub(crate) fn clear_to_shown(&mut self) {
        if let Some(shown) = self.shown {
            self.show(shown);
        }
    }

    /// Deselects all samples except those to keep. The shown one stays selected.
    pub(crate) fn keep_only(&mut self, is_kept: impl Fn(SampleId) -> bool) {
        if self.selected.len() > 1 {
            let shown = self.shown;
            self.selected = self.selected.iter().filter(|&id| is_kept(id) || shown == Some(id)).collect();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(selection: &Selection) -> Vec<u32> {
        selection.selected().iter().map(|id| id.0).collect()
    }

    #[test]
    fn range_grows_and_shrinks_around_its_anchor() {
        let mut selection = Selection::default();
        selection.show(SampleId(5));
        let order = Order::from_listing(10);
        selection.extend_to(SampleId(7), &order);
        assert_eq!(selected(&selection), [5, 6, 7]);
        selection.extend_to(SampleId(4), &order);
        assert_eq!(selected(&selection), [4, 5]);
        assert_eq!(selection.shown(), Some(SampleId(4)));
    }

    #[test]
    fn removed_sample_yields_to_another_selected_one() {
        let mut selection = Selection::default();
        selection.show(SampleId(1));
        selection.toggle(SampleId(3));
        selection.toggle(SampleId(3));
        assert_eq!(selected(&selection), [1]);
        assert_eq!(selection.shown(), Some(SampleId(1)));
    }

    #[test]
    fn last_selected_sample_stays_selected() {
        let mut selection = Selection::default();
        selection.show(SampleId(1));
        selection.toggle(SampleId(1));
        assert_eq!(selected(&selection), [1]);
    }
}
