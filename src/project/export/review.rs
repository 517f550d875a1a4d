//! Reviews of a project: what can be judged, and the sample to judge.

use std::collections::{BTreeMap, HashMap};

use super::csv_table::{Table, escape_formula};
use super::{ExportError, ExportTarget};
use crate::domain::{RunInfo, SampleUri, Verdict, ViewSettings};
use crate::project::{Project, StoreError};
use crate::review::{Population, ReviewSample, draw};
use crate::review::{SampleBy, SampledUnit};
use crate::tasks::TaskControl;

/// What can be judged of a run in this view, with its verdicts.
///
/// # Errors
/// The project cannot be read, or canceled.
pub fn review_population(
    project: &Project,
    run: &RunInfo,
    view: &ViewSettings,
    control: &TaskControl,
) -> Result<Population, StoreError> {
    let root = project.root();
    let judgments = project.judgments()?;
    let mut verdicts = HashMap::<&SampleUri, BTreeMap<Option<u32>, &Verdict>>::new();
    for judged in &judgments {
        let of_image = verdicts.entry(&judged.sample).or_default();
        for (target, verdict) in &judged.verdicts {
            match target.run {
                _ if !target.is_of(run.id) => {}
                Some(_) => drop(of_image.insert(target.box_index, verdict)),
                // Given before there was a prediction.
                None => drop(of_image.entry(target.box_index).or_insert(verdict)),
            }
        }
    }
    let mut population = Population::default();
    project.each_prediction(run.id, control, |page| {
        for prediction in page {
            if let Ok(found) = &prediction.result {
                let name = prediction.sample.name_below(root.as_deref());
                let verdicts = verdicts.remove(&prediction.sample).unwrap_or_default();
                population.record(name, found, view, &verdicts);
            }
        }
    })?;
    Ok(population)
}

/// The sample of a run.
///
/// # Errors
/// The project cannot be read.
pub fn review_sample(project: &Project, run: &RunInfo) -> Result<Option<ReviewSample>, StoreError> {
    let json = project.views()?.remove(&ReviewSample::name_in_project(run.id.0));
    let sample = json.map(|json| serde_json::from_str(&json)).transpose();
    sample.map_err(|error: serde_json::Error| StoreError::Database {
        what: "read the sample of the run",
        reason: format!("{error}; draw it again with --replace"),
    })
}

/// Draws a sample.
pub fn draw_sample(
    population: &Population,
    run: &RunInfo,
    view: ViewSettings,
    by: SampleBy,
    count: usize,
    seed: u64,
) -> ReviewSample {
    let (strata, drawn) = draw(&population.units, by, count, seed, &run.labels);
    let units = drawn.into_iter().map(|drawn| {
        let unit = population.units[drawn.unit];
        let image = population.images[unit.image as usize].clone();
        SampledUnit { image, box_index: unit.box_index, stratum: drawn.stratum }
    });
    ReviewSample { by, seed, view, strata, units: units.collect() }
}

/// The header of a sample. Reviewers can fill in the last three columns and import the file.
const COLUMNS: [&str; 9] =
    ["image", "box", "class", "score", "stratum", "probability", "verdict", "right_class", "reviewer"];

/// A CSV file with the units to judge, in a random order.
pub struct SampleCsv(Table);

impl SampleCsv {
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(target: &ExportTarget) -> Result<Self, ExportError> {
        Ok(Self(Table::create(target, &COLUMNS)?))
    }

    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, sample: &ReviewSample, population: &Population, run: &RunInfo) -> Result<(), ExportError> {
        for (sampled, unit) in sample.units.iter().zip(population.find(sample)) {
            let unit = unit.map(|unit| population.units[unit]);
            let stratum = &sample.strata[sampled.stratum];
            self.0.row(&[
                escape_formula(&sampled.image),
                sampled.box_index.map(|index| index.to_string()).unwrap_or_default(),
                escape_formula(&unit.map(|unit| run.labels.name(unit.class)).unwrap_or_default()),
                unit.map(|unit| unit.score.to_string()).unwrap_or_default(),
                escape_formula(&stratum.name),
                stratum.probability().to_string(),
                String::new(),
                String::new(),
                String::new(),
            ])?;
        }
        self.0.commit()
    }
}
