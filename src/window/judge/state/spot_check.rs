//! The random sample of the run on screen.

use std::collections::BTreeMap;

use crate::domain::{RunInfo, SampleSet, VerdictTarget};
use crate::review::{Judged, LoadedSample, LoadedUnit, ReviewSample, SampleBy, SampleProgress, judged};
use crate::window::state::{Loadable, RunId, SampleId, SourceId, State, ViewSettings};

/// Samples by run, as the project holds them, and the one of the run on screen with what it judges.
#[derive(Debug, Default)]
pub struct SpotChecks {
    pub(crate) stored: BTreeMap<RunId, ReviewSample>,
    pub(crate) run: Option<RunId>,
    pub sample: Loadable<Box<LoadedSample>>,
    /// What the verdicts say so far.
    pub progress: Option<SampleProgress>,
    /// The revisions of the verdicts and images in `progress`.
    pub(crate) seen: Option<(u64, u64)>,
    /// Changes with every sample.
    pub(crate) number: u64,
    /// The number of verdicts to draw, for the dialog.
    pub suggested: usize,
}

/// How to draw a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleDesign {
    pub count: usize,
    pub by: SampleBy,
    pub seed: u64,
}

#[derive(Debug, Clone)]
pub struct SampleRequest {
    pub source: SourceId,
    pub run: RunInfo,
    pub what: SampleWork,
}

#[derive(Debug, Clone)]
pub enum SampleWork {
    /// Draw from the predictions that these filters show.
    Draw(SampleDesign, Box<ViewSettings>),
    /// Read what this sample judges.
    Load(Box<ReviewSample>),
}

impl State {
    /// The sample that the search is limited to.
    pub fn sample_to_judge(&self) -> Option<&LoadedSample> {
        let sample = self.spot_checks.sample.ready()?;
        self.arranging.is_about_sample().then_some(sample)
    }

    pub(crate) fn sampled_images(&self) -> SampleSet {
        let units = self.spot_checks.sample.ready().into_iter().flat_map(|loaded| &loaded.units);
        units.flatten().filter_map(|unit| self.samples.find(&unit.image)).collect()
    }

    /// The image of a sampled unit, and its verdict.
    pub(crate) fn judged_unit(&self, unit: &LoadedUnit) -> (Option<SampleId>, Option<Judged>) {
        let sample = self.samples.find(&unit.image);
        let judgment = sample.and_then(|sample| self.judgments.get(sample));
        let own = judgment.zip(unit.unit.box_index).and_then(|(judgment, index)| {
            judgment.verdict(VerdictTarget { run: self.spot_checks.run, box_index: Some(index) })
        });
        let of_image = judgment.and_then(|judgment| judgment.of_image(self.spot_checks.run));
        (sample, judged(own, of_image, unit.found.as_ref()))
    }
}
