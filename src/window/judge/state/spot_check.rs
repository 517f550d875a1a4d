//! The random sample of the run on screen.

use std::collections::{BTreeMap, HashMap};

use crate::domain::{RunInfo, SampleSet, VerdictTarget};
use crate::review::{Judgment, LoadedSample, LoadedUnit, ReviewSample, SampleBy, SampleProgress, judged};
use crate::window::state::{Loadable, RunId, SampleId, SourceId, State, ViewSettings};

/// Samples by run, as the project holds them, and the one of the run on screen with what it judges.
#[derive(Debug, Default)]
pub struct SpotChecks {
    pub(crate) stored: BTreeMap<RunId, ReviewSample>,
    pub(crate) run: Option<RunId>,
    pub sample: Loadable<Box<LoadedSample>>,
    /// What the verdicts say so far.
    pub progress: Option<SampleProgress>,
    pub(crate) verdicts: SampleVerdicts,
    /// Whether `progress` lacks changes of `verdicts`.
    pub(crate) is_behind: bool,
    /// The revision of the images in `verdicts`.
    pub(crate) seen: Option<u64>,
    /// Changes with every sample.
    pub(crate) number: u64,
    /// The number of verdicts to draw, for the dialog.
    pub suggested: usize,
}

/// The verdicts on a sample. Only those on images that changed are looked up again.
#[derive(Debug, Default)]
pub(crate) struct SampleVerdicts {
    /// The images and verdicts of the units, in the order of the sample.
    units: Vec<(Option<SampleId>, Option<Judgment>)>,
    of_image: HashMap<SampleId, Vec<usize>>,
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

    /// The verdict on a sampled unit.
    fn judged_unit(&self, sample: SampleId, unit: &LoadedUnit) -> Option<Judgment> {
        let judgment = self.judgments.get(sample)?;
        let own = unit
            .unit
            .box_index
            .and_then(|index| judgment.verdict(VerdictTarget { run: self.spot_checks.run, box_index: Some(index) }));
        let of_image = judgment.of_image(self.spot_checks.run);
        judged(own, of_image, unit.found.as_ref()).map(|judged| judged.judgment)
    }
}

impl SampleVerdicts {
    /// All verdicts on a sample.
    pub(crate) fn new(state: &State, loaded: &LoadedSample) -> Self {
        let mut verdicts = Self::default();
        for (index, unit) in loaded.units.iter().enumerate() {
            let sample = unit.as_ref().and_then(|unit| state.samples.find(&unit.image));
            let judgment = sample.zip(unit.as_ref()).and_then(|(sample, unit)| state.judged_unit(sample, unit));
            verdicts.units.push((sample, judgment));
            if let Some(sample) = sample {
                verdicts.of_image.entry(sample).or_default().push(index);
            }
        }
        verdicts
    }

    /// Looks up the verdicts on these images again. False if they have none of the units.
    pub(crate) fn update(&mut self, state: &State, loaded: &LoadedSample, changed: &[SampleId]) -> bool {
        let mut has_units = false;
        for sample in changed {
            for index in self.of_image.get(sample).into_iter().flatten() {
                let unit = loaded.units[*index].as_ref();
                self.units[*index].1 = unit.and_then(|unit| state.judged_unit(*sample, unit));
                has_units = true;
            }
        }
        has_units
    }

    /// The units that are open, with their images and verdicts.
    pub(crate) fn of<'s>(
        &'s self,
        loaded: &'s LoadedSample,
    ) -> impl Iterator<Item = (&'s LoadedUnit, usize, Option<SampleId>, Option<Judgment>)> {
        let units = loaded.units.iter().zip(&loaded.sample.units).zip(&self.units);
        units.filter_map(|((unit, sampled), (sample, judgment))| {
            Some((unit.as_ref()?, sampled.stratum, *sample, *judgment))
        })
    }
}
