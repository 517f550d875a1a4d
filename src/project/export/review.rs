//! Reviews of a project: what can be judged, and the sample to judge.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;

use super::csv_table::{Table, escape_formula};
use super::vectors::stored_vectors;
use super::{EvaluatedBoxes, ExportError, ExportTarget, WholeFile};
use crate::alike::{Cover, Embeddings, METRIC};
use crate::domain::{
    Change, Pair, Prediction, Prefer, RunId, RunInfo, SECOND_PASS, SampleId, SamplePrediction, SampleUri, ViewSettings,
};
use crate::image::source::ImageList;
use crate::project::{Merge, MergeError, Project, StoreError, merge_verdicts};
use crate::review::{
    ImageClusters, ImageFrame, LoadedSample, LoadedUnit, OutcomeKind, Population, ReportRequest, ReviewReport,
    ReviewSample, SampleBy, SampledUnit, draw, draw_from_clusters, review_report,
};
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
    population_of(project, run, view, |_| true, control)
}

fn population_of(
    project: &Project,
    run: &RunInfo,
    view: &ViewSettings,
    is_included: impl Fn(&str) -> bool,
    control: &TaskControl,
) -> Result<Population, StoreError> {
    let root = project.root();
    let judgments = project.judgments()?;
    let mut verdicts: HashMap<&SampleUri, _> =
        judgments.iter().map(|judged| (&judged.sample, judged.on_run(Some(run.id)))).collect();
    let mut population = Population::default();
    project.each_prediction(run.id, control, |page| {
        for prediction in page {
            if let Ok(found) = &prediction.result {
                let name = prediction.sample.name_below(root.as_deref());
                let verdicts = verdicts.remove(&prediction.sample).unwrap_or_default();
                if is_included(&name) {
                    population.record(name, found, view, &verdicts);
                }
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

/// As [`merge_verdicts`]. The result is no blind second pass, and has the sample to judge of either project.
///
/// # Errors
/// The runs differ, or a project cannot be read.
pub fn merge_projects(
    [first, second]: [&Project; 2],
    [run, second_run]: [&RunInfo; 2],
    prefer: impl Fn(&Pair) -> Prefer,
    control: &TaskControl,
) -> Result<Merge, MergeError> {
    let mut merge = merge_verdicts([first, second], [run, second_run], prefer, control)?;
    if first.views()?.get(SECOND_PASS).is_some_and(|json| json == "true") {
        merge.changes.push(Change::SetView { name: SECOND_PASS.to_owned(), json: "false".to_owned() });
    }
    let name = ReviewSample::name_in_project(run.id.0);
    let sample = second.views()?.remove(&ReviewSample::name_in_project(second_run.id.0));
    if let (Some(json), false) = (sample, first.views()?.contains_key(&name)) {
        merge.changes.push(Change::SetView { name, json });
    }
    Ok(merge)
}

/// What to report on the verdicts of a run.
#[derive(Clone, Copy)]
pub struct RunReview<'r> {
    /// Unless the run has a sample, which determines the view.
    pub view: &'r ViewSettings,
    /// At least that of the view, which is the default.
    pub min_score: Option<f32>,
    pub target_precision: Option<f64>,
    /// The ground truth to compare with.
    pub truth: Option<&'r EvaluatedBoxes>,
    /// The list that the images were drawn to; a sample of the run is ignored.
    pub images: Option<&'r ImageList>,
}

impl<'r> RunReview<'r> {
    pub fn new(view: &'r ViewSettings) -> Self {
        Self { view, min_score: None, target_precision: None, truth: None, images: None }
    }
}

/// What the verdicts say about a run.
///
/// # Errors
/// The project cannot be read, or canceled.
pub fn report_of_run(
    project: &Project,
    run: &RunInfo,
    RunReview { view, min_score, target_precision, truth, images }: RunReview<'_>,
    control: &TaskControl,
) -> Result<ReviewReport, StoreError> {
    let sample = if images.is_some() { None } else { review_sample(project, run)? };
    let view = sample.as_ref().map_or(view, |sample| &sample.view);
    let frame = images.map(|list| frame_of(list, project.root().as_deref()));
    let is_included = |name: &str| frame.as_ref().is_none_or(|frame| frame.stratum_of.contains_key(name));
    let mut population = population_of(project, run, view, is_included, control)?;
    if let Some(truth) = truth {
        population.truth = truth_of_judged(&population, truth, project.root().as_deref());
    }
    Ok(review_report(ReportRequest {
        task: run.card.stored_as(),
        population: &population,
        labels: &run.labels,
        sample: sample.as_ref(),
        frame: frame.as_ref(),
        min_score: min_score.unwrap_or_else(|| view.min_score_for(run.card.stored_as())),
        target_precision,
    }))
}

/// A list as the names in a project.
fn frame_of(list: &ImageList, root: Option<&str>) -> ImageFrame {
    let stratum_of = list.images.iter().map(|image| (image.uri.name_below(root), image.stratum));
    ImageFrame { strata: list.strata.clone(), stratum_of: stratum_of.collect() }
}

/// Whether each judged unit is correct by ground truth; without those that were not evaluated.
fn truth_of_judged(population: &Population, truth: &EvaluatedBoxes, root: Option<&str>) -> BTreeMap<usize, bool> {
    let EvaluatedBoxes { outcomes, samples } = truth;
    let samples: HashMap<String, SampleId> =
        samples.iter().map(|(image, sample)| (image.name_below(root), *sample)).collect();
    let is_correct = |index: &usize| {
        let unit = &population.units[*index];
        let sample = *samples.get(&population.images[unit.image as usize])?;
        let summary = outcomes.predictions().summary(sample)?;
        let at = unit.box_index.unwrap_or(0) as usize;
        let outcome = outcomes.image(sample, summary)?.boxes.get(at)?;
        let is_same = summary.classes.get(at) == Some(&unit.class);
        let kind = outcome.kind.filter(|kind| is_same && *kind != OutcomeKind::Ignored)?;
        Some((*index, kind == OutcomeKind::Correct))
    };
    population.judged.keys().filter_map(is_correct).collect()
}

/// Reads what a sample judges.
///
/// # Errors
/// The project cannot be read.
pub fn load_sample(project: &Project, run: RunId, sample: ReviewSample) -> Result<LoadedSample, StoreError> {
    let root = project.root();
    let wanted: HashSet<&str> = sample.units.iter().map(|unit| unit.image.as_str()).collect();
    let images = project.stamps(run)?.into_keys().filter(|image| wanted.contains(&*image.name_below(root.as_deref())));
    let predictions: Vec<SamplePrediction> =
        project.predictions(run, &images.collect::<Vec<_>>())?.into_iter().flatten().collect();
    let predicted = predictions.iter().filter_map(|found| Some((&found.sample, found.result.as_ref().ok()?)));
    let predicted: Vec<(&SampleUri, &Prediction)> = predicted.collect();
    let mut population = Population::default();
    for (image, prediction) in &predicted {
        population.record(image.name_below(root.as_deref()), prediction, &sample.view, &BTreeMap::new());
    }
    let load = |index: usize| {
        let unit = population.units[index];
        let (image, prediction) = predicted[unit.image as usize];
        let found = unit.box_index.and_then(|index| prediction.detections().get(index as usize)).cloned();
        LoadedUnit { image: image.clone(), unit, found }
    };
    let units = population.find(&sample).into_iter().map(|index| index.map(load)).collect();
    Ok(LoadedSample { sample, units })
}

/// Clusters the images of a population by their embeddings, around images that cover all others, for a sample of
/// `count` verdicts. Returns what the clusters are computed from, or `None` if the run has no embeddings.
///
/// # Errors
/// The project cannot be read, or canceled.
pub fn find_clusters(
    population: &mut Population,
    project: &Project,
    run: &RunInfo,
    (count, seed): (usize, u64),
    control: &TaskControl,
) -> Result<Option<String>, StoreError> {
    let Some((encoder, vectors)) = stored_vectors(project, run, control)? else {
        return Ok(None);
    };
    let root = project.root();
    let row_of: HashMap<String, usize> =
        vectors.uris.iter().zip(0..).map(|(uri, row)| (uri.name_below(root.as_deref()), row)).collect();
    let mut rows = Embeddings::default();
    let mut row_of_image = Vec::new();
    for image in &population.images {
        let embedding = row_of.get(image).and_then(|row| vectors.rows.row(*row));
        row_of_image.push(embedding.filter(|embedding| rows.push(embedding)).map(|_| rows.len() - 1));
    }
    let cover = Cover::choose(&rows, ImageClusters::count_for(count), seed, control)?;
    let image_of: Vec<&str> =
        population.images.iter().zip(&row_of_image).filter(|(_, row)| row.is_some()).map(|(name, _)| &**name).collect();
    let mut names: Vec<String> = cover.chosen.iter().map(|row| format!("like {}", image_of[*row])).collect();
    names.push("without an embedding".to_owned());
    let without = names.len() - 1;
    let cluster = |row: &Option<usize>| row.map_or(without, |row| cover.nearest[row] as usize);
    population.clusters = Some(ImageClusters { names, of_image: row_of_image.iter().map(cluster).collect() });
    Ok((!rows.is_empty()).then(|| format!("{METRIC}, {encoder}")))
}

/// Draws a sample. One by embeddings needs [`find_clusters`] first.
pub fn draw_sample(
    population: &Population,
    run: &RunInfo,
    view: ViewSettings,
    by: SampleBy,
    count: usize,
    seed: u64,
) -> ReviewSample {
    let (strata, drawn) = match population.clusters.as_ref().filter(|_| by == SampleBy::Cover) {
        Some(clusters) => draw_from_clusters(&population.units, clusters, count, seed),
        None => draw(&population.units, by, count, seed, &run.labels),
    };
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

/// A CSV file, or CSV in memory, with the units to judge, in a random order.
pub struct SampleCsv<W: Write = WholeFile>(Table<W>);

impl SampleCsv {
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(target: &ExportTarget) -> Result<Self, ExportError> {
        Ok(Self(Table::create(target, &COLUMNS)?))
    }

    /// # Errors
    /// The file cannot be written.
    pub fn commit(self) -> Result<(), ExportError> {
        self.0.commit()
    }
}

impl SampleCsv<Vec<u8>> {
    /// # Errors
    /// None: memory can always be written.
    pub fn in_memory() -> Result<Self, ExportError> {
        Ok(Self(Table::in_memory(&COLUMNS)?))
    }

    /// # Errors
    /// As [`Self::in_memory`].
    pub fn into_bytes(self) -> Result<Vec<u8>, ExportError> {
        self.0.into_inner()
    }
}

impl<W: Write> SampleCsv<W> {
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, sample: &ReviewSample, population: &Population, run: &RunInfo) -> Result<(), ExportError> {
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
        Ok(())
    }
}
