//! The report on a review: what the verdicts say about the run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sampling::{VERDICTS_PER_CLASS, tenth};
use super::{
    Basis, CountedImages, Judgment, Population, ReviewSample, ReviewedUnit, SampleBy, Statement, Stratum, Unit,
    cohens_kappa,
};
use crate::domain::{LabelSet, ModelTask, counted, decimal, grouped};

/// The margin of `more_for_one_percent`.
const ONE_PERCENT: f64 = 0.01;

/// What to report.
#[derive(Debug, Clone, Copy)]
pub struct ReportRequest<'r> {
    pub task: ModelTask,
    pub population: &'r Population,
    pub labels: &'r LabelSet,
    pub sample: Option<&'r ReviewSample>,
    /// The listing that the images of the population were drawn from; the sample is ignored.
    pub frame: Option<&'r ImageFrame>,
    /// Only boxes (classifier: images) with at least this score, which is not below that of the population.
    pub min_score: f32,
    /// Also find the minimum score with this precision.
    pub target_precision: Option<f64>,
}

/// The images that the images of a population were drawn from.
#[derive(Debug, Clone, Default)]
pub struct ImageFrame {
    pub strata: Vec<Stratum>,
    /// The stratum of each drawn image, by name.
    pub stratum_of: BTreeMap<String, usize>,
}

/// The images of a report about a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImagesPart {
    pub listed: usize,
    pub drawn: usize,
    /// Those with a verdict on each prediction, of those that have predictions.
    pub judged: usize,
    pub with_predictions: usize,
}

/// Serializes as `report.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewReport {
    #[serde(skip)]
    pub task: ModelTask,
    pub basis: Basis,
    /// Why the numbers may not apply to the whole population.
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<SampleBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub min_score: f64,
    /// The images that were listed and drawn, with [`Basis::Images`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImagesPart>,
    #[serde(flatten)]
    pub total: Part,
    pub classes: Vec<ClassPart>,
    pub scores: Vec<ScorePart>,
    pub strata: Vec<StratumPart>,
    /// Most frequent first.
    pub corrections: Vec<Correction>,
    /// Objects that the model missed, where reviewers added boxes: counted, never estimated.
    pub added: Vec<Added>,
    pub target: Option<Target>,
    /// The precision at each minimum score, in hundredths, where the verdicts support an estimate.
    pub min_scores: Vec<PrecisionAt>,
    /// How far the ground truth agrees with the verdicts; `None` if it is not open or has none of the predictions.
    pub truth: Option<TruthAgreement>,
    /// The number of additional verdicts after which the precision is known to ± 0.01; `None` without a sample.
    pub more_for_one_percent: Option<usize>,
}

impl ReviewReport {
    /// The totals for people, one sentence per line.
    pub fn sentences(&self) -> Vec<String> {
        let total = &self.total;
        let [one, many] = self.task.judged_words();
        let mut lines = vec![match total.interval() {
            Some(interval) => format!("Precision {interval} at score ≥ {:.2}", self.min_score),
            None => format!("No estimate at score ≥ {:.2}: {}", self.min_score, total.reason()),
        }];
        let population = counted(total.population, one, many);
        let basis = match self.basis {
            Basis::Sample => format!("{} drawn from {population}", grouped(total.sampled)),
            Basis::Images => {
                let images = self.images.map_or(0, |images| images.drawn);
                let listed = counted(self.images.map_or(0, |images| images.listed), "image", "images");
                format!("{population} of {} drawn from {listed}", counted(images, "image", "images"))
            }
            Basis::Complete => format!("all {population}"),
            Basis::Judged => format!("a part of {population} that is not a random sample"),
        };
        lines.push(format!("{} on {basis}", total.verdicts()));
        let accepted = total.acceptance.text();
        lines.extend(accepted.map(|rate| format!("Accepted without correction: {rate}")));
        lines.extend(self.more_for_one_percent.map(|more| match self.basis {
            Basis::Images if more > 0 => {
                format!("{} would make it ± 0.01", counted(more, "more judged image", "more judged images"))
            }
            _ => more_sentence(more, total),
        }));
        lines.extend(self.truth.map(|truth| format!("The ground truth agrees with {}", truth.text())));
        lines.extend(self.target.as_ref().map(Target::sentence));
        lines
    }

    /// The lowest minimum score with at least this estimated precision.
    pub fn target(&self, precision: f64) -> Target {
        let found = self.min_scores.iter().find(|at| at.precision >= precision);
        Target {
            precision,
            min_score: found.map(|at| at.min_score),
            low: found.map(|at| at.low),
            high: found.map(|at| at.high),
        }
    }
}

/// How many verdicts are missing until the precision is known to ± 0.01. If there are not so many predictions without a
/// verdict, unsure ones must be decided.
pub fn more_sentence(more: usize, total: &Part) -> String {
    let new = more.min(total.unjudged());
    let new_text = counted(new, "more verdict", "more verdicts");
    let decided_text = counted(more - new, "unsure verdict", "unsure verdicts");
    match (new, more - new) {
        (0, 0) => "The precision is known to ± 0.01".to_owned(),
        (_, 0) => format!("{new_text} would make it ± 0.01"),
        (0, _) => format!("Deciding {decided_text} would make it ± 0.01"),
        _ => format!("{new_text} and deciding {decided_text} would make it ± 0.01"),
    }
}

fn interval(share: Option<f64>, low: Option<f64>, high: Option<f64>) -> Option<String> {
    let (share, low, high) = (share?, low?, high?);
    // Completely judged: nothing is estimated.
    if low == high {
        return Some(format!("{share:.3} (all judged)"));
    }
    Some(format!("{share:.3} (95% interval {low:.3} to {high:.3})"))
}

/// As [`interval`], in a table: “0.940 (0.902 to 0.962)”.
fn cell(share: Option<f64>, low: Option<f64>, high: Option<f64>) -> Option<String> {
    let (share, low, high) = (share?, low?, high?);
    Some(if low == high { format!("{share:.3} (all judged)") } else { format!("{share:.3} ({low:.3} to {high:.3})") })
}

/// Why there is no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Withheld {
    NoVerdicts,
    /// No verdict counts, because units that come earlier in the sample have none.
    OutOfOrder,
}

/// The precision of a part of the population.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Part {
    pub population: usize,
    /// Drawn, or judged without a sample.
    pub sampled: usize,
    /// Of the sampled ones, with a verdict other than unsure.
    pub judged: usize,
    pub unsure: usize,
    /// Judged ones that do not count yet, because units that come earlier in the sample have no verdict.
    pub waiting: usize,
    /// Why the following are `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    pub precision: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub acceptance: Acceptance,
}

impl Part {
    /// How many verdicts can still be given.
    fn unjudged(&self) -> usize {
        self.population.saturating_sub(self.judged + self.unsure)
    }

    /// “0.940 (95% interval 0.902 to 0.962)”; `None` without a verdict.
    pub fn interval(&self) -> Option<String> {
        interval(self.precision, self.low, self.high)
    }

    /// As [`Self::interval`], for a table.
    pub fn cell(&self) -> Option<String> {
        cell(self.precision, self.low, self.high)
    }

    /// Why there is no interval: “3 verdicts out of order”.
    pub fn reason(&self) -> String {
        match self.withheld {
            None | Some(Withheld::NoVerdicts) => "no verdicts yet".to_owned(),
            Some(Withheld::OutOfOrder) => {
                format!("{} out of order", counted(self.waiting, "verdict", "verdicts"))
            }
        }
    }

    /// “120 verdicts (3 unsure)”.
    pub fn verdicts(&self) -> String {
        let unsure = if self.unsure > 0 { format!(" ({} unsure)", grouped(self.unsure)) } else { String::new() };
        counted(self.judged + self.unsure, "verdict", "verdicts") + &unsure
    }
}

/// The verdicts other than unsure that were compared with ground truth: correct predictions should be true positives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TruthAgreement {
    pub compared: usize,
    pub agreed: usize,
    pub kappa: Option<f64>,
}

impl TruthAgreement {
    /// From whether each verdict, and the ground truth, has a prediction as correct. `None` without any.
    fn new(pairs: Vec<(bool, bool)>) -> Option<Self> {
        let agreed = pairs.iter().filter(|(judged, truth)| judged == truth).count();
        let compared = pairs.len();
        (compared > 0).then(|| Self { compared, agreed, kappa: cohens_kappa(pairs) })
    }

    /// “12 of 14 verdicts (Cohen's kappa 0.712)”.
    pub fn text(&self) -> String {
        let kappa = self.kappa.map_or_else(String::new, |kappa| format!(" (Cohen's kappa {kappa:.3})"));
        format!("{} of {}{kappa}", grouped(self.agreed), counted(self.compared, "verdict", "verdicts"))
    }
}

/// The fraction accepted without any correction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Acceptance {
    pub rate: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Acceptance {
    /// As [`Part::interval`].
    pub fn text(&self) -> Option<String> {
        interval(self.rate, self.low, self.high)
    }

    /// As [`Part::cell`].
    pub fn cell(&self) -> Option<String> {
        cell(self.rate, self.low, self.high)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassPart {
    pub class: String,
    #[serde(flatten)]
    pub part: Part,
    /// As that of the report.
    pub truth: Option<TruthAgreement>,
}

/// Scores from `from` to below `to`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScorePart {
    pub from: f64,
    pub to: f64,
    #[serde(flatten)]
    pub part: Part,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StratumPart {
    pub stratum: String,
    pub population: usize,
    pub sampled: usize,
    pub judged: usize,
    pub unsure: usize,
}

/// A class that reviewers corrected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Correction {
    pub from: String,
    pub to: String,
    pub count: usize,
    /// In the whole population; `None` if its verdicts do not count yet.
    pub estimated: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Added {
    pub class: String,
    pub count: usize,
}

/// The lowest minimum score, in hundredths, with the wanted precision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Target {
    pub precision: f64,
    /// `None` if no minimum score has it.
    pub min_score: Option<f64>,
    /// The interval at this minimum score.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Target {
    /// The usual precision to ask for.
    pub const USUAL: f64 = 0.95;

    pub fn sentence(&self) -> String {
        let precision = self.precision;
        let Some(score) = self.min_score else {
            return format!("No minimum score has an estimated precision of {precision}");
        };
        let interval = match (self.low, self.high) {
            (Some(low), Some(high)) if low < high => format!("95% interval there: {low:.3} to {high:.3}"),
            _ => "all judged there".to_owned(),
        };
        format!("Precision {precision} is reached at score ≥ {score:.2} ({interval})")
    }
}

/// The precision from a minimum score on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PrecisionAt {
    pub min_score: f64,
    pub precision: f64,
    pub low: f64,
    pub high: f64,
}

struct Review<'r> {
    request: ReportRequest<'r>,
    statement: Statement,
    /// The sampled units (without a sample, the judged ones) and their strata.
    sampled: Vec<(usize, usize)>,
}

/// What the verdicts on a sample say so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleProgress {
    pub total: Part,
    pub more_for_one_percent: Option<usize>,
}

impl SampleProgress {
    /// `units` are the sampled ones that still exist, with their strata and verdicts.
    pub fn new(sample: &ReviewSample, units: impl Iterator<Item = (Unit, usize, Option<Judgment>)>) -> Self {
        let reviewed = units.enumerate().map(|(index, (unit, stratum, judgment))| {
            let Unit { image, class, score, .. } = unit;
            ReviewedUnit { index, image, class, score, stratum, judgment }
        });
        let statement = Statement::new(Basis::Sample, &sample.strata, reviewed);
        let group = Group { population: sample.population(), units: statement.units().iter().collect() };
        let total = Part { sampled: sample.units.len(), ..part(&statement, &group) };
        let more = statement.verdicts(group.units).more_for(ONE_PERCENT, is_correct);
        Self { total, more_for_one_percent: more }
    }

    /// The verdicts that are missing.
    pub fn missing(&self) -> usize {
        self.total.sampled - self.total.judged - self.total.unsure
    }
}

/// The predictions of a class or a range of scores.
#[derive(Default)]
struct Group<'s> {
    population: usize,
    /// The sampled ones, in the order of the sample.
    units: Vec<&'s ReviewedUnit>,
}

/// Verdicts outside a sample do not count, unless the whole population was judged.
pub fn review_report(request: ReportRequest<'_>) -> ReviewReport {
    let population = request.population;
    let mut notes = Vec::new();
    let is_complete = !population.units.is_empty() && population.judged.len() == population.units.len();
    let everything = || population.judged.keys().map(|unit| (*unit, 0)).collect::<Vec<_>>();
    let whole =
        [Stratum { name: "all".to_owned(), population: population.units.len(), sampled: population.judged.len() }];
    let frame = request.frame.map(|frame| judged_images(frame, population));
    let (basis, strata, sampled) = match request.sample {
        _ if let (Some(of_images), Some(frame)) = (&frame, request.frame) => {
            notes.extend(of_images.notes());
            (Basis::Images, &frame.strata[..], of_images.units.clone())
        }
        _ if is_complete => (Basis::Complete, &whole[..], everything()),
        None => {
            notes.push(
                "not a random sample: the intervals assume that the judged images are a random selection; draw one \
                 with `spotcheck review sample`"
                    .to_owned(),
            );
            (Basis::Judged, &whole[..], everything())
        }
        Some(sample) => {
            let found = population.find(sample);
            let lost = found.iter().filter(|unit| unit.is_none()).count();
            if lost > 0 {
                notes.push(format!("{lost} sampled predictions no longer exist and count as not judged"));
            }
            if sample.population() != population.units.len() {
                notes.push(format!(
                    "the sample was drawn from {} predictions, and there are {} now: it says nothing about new ones",
                    sample.population(),
                    population.units.len()
                ));
            }
            let strata = sample.units.iter().map(|unit| unit.stratum);
            let sampled = found.into_iter().zip(strata).filter_map(|(unit, stratum)| Some((unit?, stratum)));
            (Basis::Sample, &sample.strata[..], sampled.collect())
        }
    };
    let reviewed = sampled.iter().map(|(unit, stratum)| population.reviewed_unit(*unit, *stratum));
    let statement = match &frame {
        Some(of_images) => Statement::of_images(&of_images.strata, reviewed),
        None => Statement::new(basis, strata, reviewed),
    };
    let review = Review { request, statement, sampled };
    let total = part(&review.statement, &review.groups(|_, _| ()).remove(&()).unwrap_or_default());
    notes.extend(out_of_order_note(&total, request.task));
    let classes = review.classes();
    let is_small = |row: &&ClassPart| row.part.sampled < VERDICTS_PER_CLASS.min(row.part.population);
    let small = classes.iter().filter(is_small).count();
    if basis == Basis::Sample && small > 0 {
        notes.push(format!(
            "the sample has fewer than {VERDICTS_PER_CLASS} predictions of {small} of {}: their precision is unknown or \
             uncertain",
            counted(classes.len(), "class", "classes")
        ));
    }
    let drawn = request.sample.filter(|_| basis == Basis::Sample);
    let more = review.statement.verdicts(review.covered()).more_for(ONE_PERCENT, is_correct);
    let mut report = ReviewReport {
        task: request.task,
        basis,
        notes,
        by: drawn.map(|sample| sample.by),
        seed: drawn.map(|sample| sample.seed),
        min_score: decimal(request.min_score),
        images: frame.as_ref().map(JudgedImages::part),
        total,
        classes,
        scores: review.scores(),
        strata: review.strata(strata),
        corrections: review.corrections(),
        added: population.added.iter().map(|(class, count)| Added { class: class.clone(), count: *count }).collect(),
        target: None,
        min_scores: review.min_scores(),
        truth: TruthAgreement::new(review.compared().map(|(_, pair)| pair).collect()),
        more_for_one_percent: more,
    };
    report.target = request.target_precision.map(|precision| report.target(precision));
    report
}

/// Why verdicts of the sample do not count yet, and what to do.
fn out_of_order_note(total: &Part, task: ModelTask) -> Option<String> {
    let [_, many] = task.judged_words();
    let note = || {
        format!(
            "{} of {} do not count yet, because {many} that come earlier in the sample have no verdict: the {many} that \
             were judged first may be better or worse than the others. Judge the rest in the order of the sample, or mark \
             them as unsure",
            grouped(total.waiting),
            counted(total.judged, "verdict", "verdicts"),
        )
    };
    (total.waiting > 0).then(note)
}

/// The drawn images, and the verdicts on those that are judged completely.
struct JudgedImages {
    strata: Vec<CountedImages>,
    /// The units of completely judged images, with the strata of their images.
    units: Vec<(usize, usize)>,
    /// Images of the list without a prediction.
    unpredicted: usize,
    /// The numbers of images that were drawn and that the list contains.
    drawn: usize,
    in_list: usize,
}

fn judged_images(frame: &ImageFrame, population: &Population) -> JudgedImages {
    let counted = |stratum: &Stratum| CountedImages { population: stratum.population, ..CountedImages::default() };
    let mut strata: Vec<CountedImages> = frame.strata.iter().map(counted).collect();
    let mut of_image = BTreeMap::<u32, Vec<usize>>::new();
    for (index, unit) in population.units.iter().enumerate() {
        of_image.entry(unit.image).or_default().push(index);
    }
    let mut units = Vec::new();
    let mut predicted = 0;
    for (image, name) in population.images.iter().enumerate() {
        let Some(&stratum) = frame.stratum_of.get(name) else {
            continue;
        };
        predicted += 1;
        let counts = &mut strata[stratum];
        counts.sampled += 1;
        if let Some(of_image) = of_image.get(&(image as u32)) {
            counts.with_units += 1;
            if of_image.iter().all(|unit| population.judged.contains_key(unit)) {
                counts.judged += 1;
                units.extend(of_image.iter().map(|unit| (*unit, stratum)));
            }
        }
    }
    let in_list = frame.stratum_of.len();
    let drawn = frame.strata.iter().map(|stratum| stratum.sampled).sum();
    JudgedImages { strata, units, unpredicted: in_list - predicted, drawn, in_list }
}

impl JudgedImages {
    fn part(&self) -> ImagesPart {
        let sum = |count: fn(&CountedImages) -> usize| self.strata.iter().map(count).sum();
        ImagesPart {
            listed: sum(|stratum| stratum.population),
            drawn: sum(|stratum| stratum.sampled),
            judged: sum(|stratum| stratum.judged),
            with_predictions: sum(|stratum| stratum.with_units),
        }
    }

    fn notes(&self) -> Vec<String> {
        let ImagesPart { judged, with_predictions, .. } = self.part();
        let mut notes = Vec::new();
        if judged < with_predictions {
            notes.push(format!(
                "{} of {with_predictions} images with predictions are judged completely; the others do not count yet",
                grouped(judged)
            ));
        }
        if self.in_list != self.drawn {
            notes.push(format!(
                "the list contains {} images, but {} were drawn: it was changed, and the precision is wrong unless the \
                 change had nothing to do with the predictions",
                grouped(self.in_list),
                grouped(self.drawn)
            ));
        }
        if self.unpredicted > 0 {
            notes.push(format!("{} of the list have no prediction", counted(self.unpredicted, "image", "images")));
        }
        notes
    }
}

fn part(statement: &Statement, group: &Group<'_>) -> Part {
    let judged = group.units.iter().filter(|unit| unit.is_judged()).count();
    let unsure = group.units.iter().filter(|unit| unit.judgment == Some(Judgment::Unsure)).count();
    let verdicts = statement.verdicts(group.units.iter().copied());
    let precision = verdicts.estimate(group.population, is_correct);
    let acceptance = verdicts.estimate(group.population, is_accepted);
    let withheld = if judged == 0 { Withheld::NoVerdicts } else { Withheld::OutOfOrder };
    Part {
        population: group.population,
        sampled: group.units.len(),
        judged,
        unsure,
        waiting: verdicts.waiting,
        withheld: precision.is_none().then_some(withheld),
        precision: precision.map(|found| found.share),
        low: precision.map(|found| found.low),
        high: precision.map(|found| found.high),
        acceptance: Acceptance {
            rate: acceptance.map(|found| found.share),
            low: acceptance.map(|found| found.low),
            high: acceptance.map(|found| found.high),
        },
    }
}

fn is_correct(unit: &ReviewedUnit) -> bool {
    matches!(unit.judgment, Some(Judgment::Correct { .. }))
}

fn is_accepted(unit: &ReviewedUnit) -> bool {
    unit.judgment == Some(Judgment::Correct { is_accepted: true })
}

impl Review<'_> {
    fn covers(&self, score: f32) -> bool {
        score >= self.request.min_score
    }

    fn covered(&self) -> impl Iterator<Item = &ReviewedUnit> {
        self.statement.units().iter().filter(|unit| self.covers(unit.score))
    }

    /// The predictions that the report covers, by class, score or both.
    fn groups<K: Ord>(&self, key: impl Fn(u32, f32) -> K) -> BTreeMap<K, Group<'_>> {
        let units = &self.request.population.units;
        let mut groups = BTreeMap::<K, Group<'_>>::new();
        for unit in units.iter().filter(|unit| self.covers(unit.score)) {
            groups.entry(key(unit.class, unit.score)).or_default().population += 1;
        }
        for unit in self.covered() {
            if let Some(group) = groups.get_mut(&key(unit.class, unit.score)) {
                group.units.push(unit);
            }
        }
        groups
    }

    /// The classes in the population, most frequent first.
    fn classes(&self) -> Vec<ClassPart> {
        let mut compared = BTreeMap::<u32, Vec<(bool, bool)>>::new();
        for (unit, pair) in self.compared() {
            compared.entry(unit.class).or_default().push(pair);
        }
        let part = |(class, group)| {
            let truth = compared.remove(&class).and_then(TruthAgreement::new);
            ClassPart { class: self.request.labels.name(class), part: part(&self.statement, &group), truth }
        };
        let mut parts: Vec<ClassPart> = self.groups(|class, _| class).into_iter().map(part).collect();
        parts.sort_by_key(|row| std::cmp::Reverse(row.part.population));
        parts
    }

    /// The tenths of the score with at least one unit.
    fn scores(&self) -> Vec<ScorePart> {
        let part = |(at, group): (usize, Group<'_>)| ScorePart {
            from: at as f64 / 10.0,
            to: (at + 1) as f64 / 10.0,
            part: part(&self.statement, &group),
        };
        self.groups(|_, score| tenth(score)).into_iter().map(part).collect()
    }

    fn strata(&self, strata: &[Stratum]) -> Vec<StratumPart> {
        let mut parts: Vec<StratumPart> = strata
            .iter()
            .map(|Stratum { name, population, sampled }| StratumPart {
                stratum: name.clone(),
                population: *population,
                sampled: *sampled,
                judged: 0,
                unsure: 0,
            })
            .collect();
        for (unit, stratum) in &self.sampled {
            match self.request.population.judged.get(unit).map(|judged| judged.judgment) {
                Some(Judgment::Unsure) => parts[*stratum].unsure += 1,
                Some(_) => parts[*stratum].judged += 1,
                None => {}
            }
        }
        parts
    }

    /// The verdicts that were compared with ground truth, and whether both have the prediction as correct.
    fn compared(&self) -> impl Iterator<Item = (&ReviewedUnit, (bool, bool))> {
        let truth = &self.request.population.truth;
        let judged = self.covered().filter(|unit| unit.is_judged());
        judged.filter_map(|unit| Some((unit, (is_correct(unit), *truth.get(&unit.index)?))))
    }

    fn corrections(&self) -> Vec<Correction> {
        let mut counts = BTreeMap::<(u32, &str), (usize, f64)>::new();
        let right_class = |unit: &ReviewedUnit| self.request.population.judged.get(&unit.index)?.right_class.as_deref();
        for unit in self.covered() {
            if let Some(right) = right_class(unit) {
                counts.entry((unit.class, right)).or_default().0 += 1;
            }
        }
        for (unit, weight) in self.statement.verdicts(self.covered()).weights() {
            if let Some(right) = right_class(unit) {
                counts.entry((unit.class, right)).or_default().1 += weight;
            }
        }
        let correction = |((class, right), (count, estimated)): ((u32, &str), (usize, f64))| Correction {
            from: self.request.labels.name(class),
            to: right.to_owned(),
            count,
            estimated: (estimated > 0.0).then_some(estimated),
        };
        let mut corrections: Vec<Correction> = counts.into_iter().map(correction).collect();
        let size = |row: &Correction| (row.estimated.unwrap_or_default(), row.count as f64);
        corrections.sort_by(|one, other| size(other).partial_cmp(&size(one)).unwrap_or(std::cmp::Ordering::Equal));
        corrections
    }

    fn min_scores(&self) -> Vec<PrecisionAt> {
        let lowest = (decimal(self.request.min_score) * 100.0).ceil() as usize;
        // Units by the highest minimum score that includes them.
        let mut counts = [0; 101];
        for unit in self.request.population.units.iter().filter(|unit| self.covers(unit.score)) {
            counts[(decimal(unit.score) * 100.0 + 1e-9).clamp(0.0, 100.0) as usize] += 1;
        }
        let at = |hundredth: usize| {
            let min_score = hundredth as f64 / 100.0;
            let units = self.covered().filter(|unit| decimal(unit.score) >= min_score).collect();
            let population = counts[hundredth..].iter().sum();
            let Part { precision, low, high, .. } = part(&self.statement, &Group { population, units });
            Some(PrecisionAt { min_score, precision: precision?, low: low?, high: high? })
        };
        (lowest..=100).filter_map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(population: usize, judged: &[Judgment]) -> SampleProgress {
        let unit = |(index, judgment): (usize, &Judgment)| {
            let unit = Unit { image: index as u32, box_index: Some(0), class: 0, score: 0.9, margin: 0.4 };
            (unit, 0, Some(*judgment))
        };
        let sample = ReviewSample {
            by: SampleBy::Random,
            seed: 1,
            view: crate::domain::ViewSettings::default(),
            units: Vec::new(),
            strata: vec![Stratum { name: "all".to_owned(), population, sampled: judged.len() }],
        };
        SampleProgress::new(&sample, judged.iter().enumerate().map(unit))
    }

    /// `SciPy`: the lowest number of correct ones with `hypergeom(population, wrong, judged).pmf(0) / 2 >= 0.025`.
    #[test]
    fn interval_of_a_mostly_judged_population_is_that_of_whole_numbers() {
        let right = Judgment::Correct { is_accepted: true };
        for (population, judged, low) in [(188, 150, 187), (188, 100, 185), (36, 24, 34), (36, 30, 35)] {
            let found = progress(population, &vec![right; judged]).total;
            let low = f64::from(low) / population as f64;
            assert!((found.low.unwrap() - low).abs() < 1e-9 && found.high == Some(1.0), "{judged}: {found:?}");
        }
    }

    #[test]
    fn every_small_sample_has_an_estimate() {
        let right = Judgment::Correct { is_accepted: true };
        for population in 1..30_usize {
            for judged in 1..=population {
                for wrong in 0..=judged {
                    let verdicts = [vec![Judgment::Wrong; wrong], vec![right; judged - wrong]].concat();
                    let total = progress(population, &verdicts).total;
                    let [low, share, high] = [total.low, total.precision, total.high].map(Option::unwrap);
                    let is_sound = 0.0 <= low && low <= share + 1e-9 && share <= high + 1e-9 && high <= 1.0 + 1e-9;
                    assert!(is_sound, "{wrong} of {judged} of {population}: {low}, {share}, {high}");
                }
            }
        }
    }

    #[test]
    fn completely_judged_part_is_known_exactly() {
        let (right, wrong) = (Judgment::Correct { is_accepted: true }, Judgment::Wrong);
        let judged = [right, wrong, right, right];
        let whole = progress(4, &judged);
        assert_eq!([whole.total.precision, whole.total.low, whole.total.high], [Some(0.75); 3]);
        assert_eq!(whole.more_for_one_percent, Some(0));
        let unsure = progress(5, &[&judged[..], &[Judgment::Unsure]].concat());
        assert_eq!(unsure.more_for_one_percent, Some(1));
        assert!(unsure.total.low < unsure.total.high);
        // No box is left to judge: the unsure one must be decided.
        assert!(more_sentence(1, &unsure.total).contains("1 unsure verdict"));
        let both = progress(7, &[&judged[..], &[Judgment::Unsure; 2]].concat());
        assert_eq!(both.more_for_one_percent, Some(3));
        let sentence = more_sentence(3, &both.total);
        assert!(sentence.contains("1 more verdict ") && sentence.contains("2 unsure verdicts"), "{sentence}");
        let part = progress(6, &judged);
        assert_eq!(part.more_for_one_percent, Some(2));
    }
}
