//! The report on a review: what the verdicts say about the run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sampling::tenth;
use super::statement::without_design;
use super::{Basis, JudgedUnit, Judgment, Population, Proportion, ReviewSample, SampleBy, Statement, Stratum};
use crate::domain::{LabelSet, decimal};

/// The margin of `more_for_one_percent`.
const ONE_PERCENT: f64 = 0.01;

/// What to report.
#[derive(Debug, Clone, Copy)]
pub struct ReportRequest<'r> {
    pub population: &'r Population,
    pub labels: &'r LabelSet,
    pub sample: Option<&'r ReviewSample>,
    /// Only boxes (classifier: images) with at least this score, which is not below that of the population.
    pub min_score: f32,
    /// Also find the minimum score with this precision.
    pub target_precision: Option<f64>,
}

/// Serializes as `report.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewReport {
    pub basis: Basis,
    /// Why the numbers may not apply to the whole population.
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<SampleBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub min_score: f64,
    #[serde(flatten)]
    pub total: Part,
    pub acceptance: Acceptance,
    pub classes: Vec<ClassPart>,
    pub scores: Vec<ScorePart>,
    pub strata: Vec<StratumPart>,
    /// Most frequent first.
    pub corrections: Vec<Correction>,
    /// Objects that the model missed, where reviewers added boxes: counted, never estimated.
    pub added: Vec<Added>,
    pub target: Option<Target>,
    /// The number of additional verdicts after which the precision is known to ± 0.01; `None` without a sample.
    pub more_for_one_percent: Option<usize>,
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
    /// `None` without a verdict, like the interval.
    pub precision: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// The fraction accepted without any correction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Acceptance {
    pub rate: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassPart {
    pub class: String,
    #[serde(flatten)]
    pub part: Part,
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
    /// In the whole population.
    pub estimated: f64,
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

struct Review<'r> {
    request: ReportRequest<'r>,
    statement: Statement,
    /// The sampled units (without a sample, the judged ones) and their strata.
    sampled: Vec<(usize, usize)>,
}

/// Verdicts outside a sample do not count, unless the whole population was judged.
pub fn review_report(request: ReportRequest<'_>) -> ReviewReport {
    let population = request.population;
    let mut notes = Vec::new();
    let is_complete = !population.units.is_empty() && population.judged.len() == population.units.len();
    let everything = || population.judged.keys().map(|unit| (*unit, 0)).collect::<Vec<_>>();
    let whole =
        [Stratum { name: "all".to_owned(), population: population.units.len(), sampled: population.judged.len() }];
    let (basis, strata, sampled) = match request.sample {
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
    let judged = sampled.iter().filter_map(|(unit, stratum)| population.judged_unit(*unit, *stratum));
    let statement = Statement::new(basis, strata, judged);
    let review = Review { request, statement, sampled };
    let drawn = request.sample.filter(|_| basis == Basis::Sample);
    let acceptance = review.proportion(|_| true, |unit| unit.judgment == Judgment::Correct { is_accepted: true });
    ReviewReport {
        basis,
        notes,
        by: drawn.map(|sample| sample.by),
        seed: drawn.map(|sample| sample.seed),
        min_score: decimal(request.min_score),
        total: review.part(|_, _| true),
        acceptance: Acceptance {
            rate: acceptance.map(|found| found.share),
            low: acceptance.map(|found| found.low),
            high: acceptance.map(|found| found.high),
        },
        classes: review.classes(),
        scores: review.scores(),
        strata: review.strata(strata),
        corrections: review.corrections(),
        added: population.added.iter().map(|(class, count)| Added { class: class.clone(), count: *count }).collect(),
        target: request.target_precision.map(|precision| review.target(precision)),
        more_for_one_percent: review.statement.more_for(ONE_PERCENT, |unit| review.covers(unit.score), is_correct),
    }
}

fn is_correct(unit: &JudgedUnit) -> bool {
    matches!(unit.judgment, Judgment::Correct { .. })
}

impl Review<'_> {
    fn covers(&self, score: f32) -> bool {
        score >= self.request.min_score
    }

    fn proportion(
        &self,
        inside: impl Fn(&JudgedUnit) -> bool,
        is_hit: impl Fn(&JudgedUnit) -> bool,
    ) -> Option<Proportion> {
        self.statement.proportion(|unit| self.covers(unit.score) && inside(unit), is_hit)
    }

    /// The units that are `inside` by class and score.
    fn part(&self, inside: impl Fn(u32, f32) -> bool) -> Part {
        let population = self.request.population;
        let is_inside = |class: u32, score: f32| self.covers(score) && inside(class, score);
        let of_unit = |unit: usize| is_inside(population.units[unit].class, population.units[unit].score);
        let sampled: Vec<usize> = self.sampled.iter().map(|(unit, _)| *unit).filter(|unit| of_unit(*unit)).collect();
        let judged: Vec<&super::Judged> = sampled.iter().filter_map(|unit| population.judged.get(unit)).collect();
        let unsure = judged.iter().filter(|judged| judged.judgment == Judgment::Unsure).count();
        let size = (0..population.units.len()).filter(|unit| of_unit(*unit)).count();
        let precision = self.proportion(|unit| inside(unit.class, unit.score), is_correct);
        let is_certain = |found: &Proportion| found.low == found.high && judged.len() < size;
        let precision = precision
            .map(|found| if is_certain(&found) { without_design(found.share, judged.len() - unsure) } else { found });
        Part {
            population: size,
            sampled: sampled.len(),
            judged: judged.len() - unsure,
            unsure,
            precision: precision.map(|found| found.share),
            low: precision.map(|found| found.low),
            high: precision.map(|found| found.high),
        }
    }

    /// The classes in the population, most frequent first.
    fn classes(&self) -> Vec<ClassPart> {
        let mut classes: Vec<u32> = self.request.population.units.iter().map(|unit| unit.class).collect();
        classes.sort_unstable();
        classes.dedup();
        let part = |class: u32| ClassPart {
            class: self.request.labels.name(class),
            part: self.part(|of_unit, _| of_unit == class),
        };
        let mut parts: Vec<ClassPart> = classes.into_iter().map(part).filter(|row| row.part.population > 0).collect();
        parts.sort_by_key(|row| std::cmp::Reverse(row.part.population));
        parts
    }

    /// The tenths of the score with at least one unit.
    fn scores(&self) -> Vec<ScorePart> {
        let part = |at: usize| ScorePart {
            from: at as f64 / 10.0,
            to: (at + 1) as f64 / 10.0,
            part: self.part(|_, score| tenth(score) == at),
        };
        (0..10).map(part).filter(|row| row.part.population > 0).collect()
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

    fn corrections(&self) -> Vec<Correction> {
        let mut counts = BTreeMap::<(u32, &str), (usize, f64)>::new();
        for unit in self.statement.units().iter().filter(|unit| self.covers(unit.score)) {
            let judged = &self.request.population.judged[&unit.index];
            if let Some(right) = &judged.right_class {
                let (count, estimated) = counts.entry((unit.class, right)).or_default();
                *count += 1;
                *estimated += self.statement.weight(unit);
            }
        }
        let correction = |((class, right), (count, estimated)): ((u32, &str), (usize, f64))| Correction {
            from: self.request.labels.name(class),
            to: right.to_owned(),
            count,
            estimated,
        };
        let mut corrections: Vec<Correction> = counts.into_iter().map(correction).collect();
        corrections.sort_by(|one, other| other.estimated.total_cmp(&one.estimated));
        corrections
    }

    fn target(&self, precision: f64) -> Target {
        let at = |hundredth: u8| {
            let min_score = f64::from(hundredth) / 100.0;
            let found = self.proportion(|unit| decimal(unit.score) >= min_score, is_correct)?;
            (found.share >= precision).then_some((min_score, found))
        };
        let lowest = (decimal(self.request.min_score) * 100.0).ceil() as u8;
        let found = (lowest..=100).find_map(at);
        Target {
            precision,
            min_score: found.map(|(min_score, _)| min_score),
            low: found.map(|(_, found)| found.low),
            high: found.map(|(_, found)| found.high),
        }
    }
}
