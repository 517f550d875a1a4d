//! Complete predictions in memory; the others are in the project and read when shown.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::{Prediction, RunId, SampleId};

/// A few screens of thumbnails.
const MAX_PAGES: usize = 1024;

/// Drops the least recently used one first.
#[derive(Debug, Default)]
pub(crate) struct PredictionPages {
    pages: HashMap<(RunId, SampleId), Page>,
    clock: u64,
}

#[derive(Debug)]
struct Page {
    prediction: Arc<Prediction>,
    used: u64,
}

impl PredictionPages {
    pub(crate) fn get(&self, run: RunId, sample: SampleId) -> Option<&Arc<Prediction>> {
        let page = self.pages.get(&(run, sample))?;
        Some(&page.prediction)
    }

    pub(crate) fn put(&mut self, run: RunId, sample: SampleId, prediction: Arc<Prediction>) {
        self.clock += 1;
        let used = self.clock;
        self.pages.insert((run, sample), Page { prediction, used });
        if self.pages.len() > MAX_PAGES {
            self.drop_oldest();
        }
    }

    /// Marks what is on screen as used.
    pub(crate) fn touch(&mut self, run: RunId, sample: SampleId) {
        self.clock += 1;
        if let Some(page) = self.pages.get_mut(&(run, sample)) {
            page.used = self.clock;
        }
    }

    pub(crate) fn forget(&mut self, run: RunId, sample: SampleId) {
        self.pages.remove(&(run, sample));
    }

    pub(crate) fn forget_run(&mut self, run: RunId) {
        self.pages.retain(|(of, _), _| *of != run);
    }

    /// Drops down to three quarters, so that this happens seldom.
    fn drop_oldest(&mut self) {
        let mut ages: Vec<u64> = self.pages.values().map(|page| page.used).collect();
        ages.sort_unstable();
        let oldest_kept = ages[ages.len() - MAX_PAGES / 4 * 3];
        self.pages.retain(|_, page| page.used >= oldest_kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::PredictionContent;

    #[test]
    fn recently_viewed_pages_stay() {
        let prediction = Arc::new(Prediction {
            width: 1,
            height: 1,
            content: PredictionContent::Detections(Vec::new()),
            warnings: Vec::new(),
        });
        let mut pages = PredictionPages::default();
        let run = RunId(1);
        for number in 0..MAX_PAGES as u32 {
            pages.put(run, SampleId(number), Arc::clone(&prediction));
        }
        pages.touch(run, SampleId(0));
        pages.put(run, SampleId(MAX_PAGES as u32), prediction);
        assert!(pages.get(run, SampleId(0)).is_some());
        assert!(pages.get(run, SampleId(1)).is_none());
        assert!(pages.get(run, SampleId(MAX_PAGES as u32)).is_some());
    }
}
