//! What verdicts on a part of a run say about all of it: proportions with 95% intervals.
//!
//! - **Estimate.** A verdict counts as often as its inverse probability, `N_h / n_h` in stratum `h`, where `n_h` counts
//!   verdicts other than unsure: missing and unsure ones are treated as nonresponse at random within the stratum
//!   (Lohr, Sampling: Design and Analysis, 3rd edition 2022, section 8.5). A proportion in a domain (a class, a range of
//!   scores) is a ratio of two such sums (Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, 5.8).
//! - **Variance.** That of the ratio by linearization, with finite population correction (ibid., 5.5 and 5.8). In
//!   strata with few verdicts, the proportion is shrunk toward the common one by [`PRIOR`] verdicts; otherwise a
//!   stratum without an error would contribute no variance.
//! - **Interval.** Wilson's, with the effective number of verdicts `p (1 - p) / v` in place of the number (Korn and
//!   Graubard, Survey Methodology 1998; Franco, Little, Louis and Slud, Journal of Survey Statistics and Methodology
//!   2019, who recommend it).
//! - **Without a sample**, the judged images are treated as a random sample of similar images. The boxes of an image
//!   are a cluster, and the variance is that between images (Cochran, Sampling Techniques, 1977, section 11.8).
//!
//! - **Images drawn from a listing** are clusters in strata (ibid., sections 5.6 and 11.8): the variance is that between
//!   the images of a stratum, with finite population correction.
//!
//! Boxes of a sample are drawn one by one, whatever their image, so several from one image do not form a cluster: the
//! design alone determines the variance. `benches/review/coverage.py` simulates how often the intervals contain the
//! true value.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Stratum;

/// The 97.5% quantile of the normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;
/// The number of verdicts that the common proportion counts for in the variance of a stratum.
const PRIOR: f64 = 2.0;

/// What a verdict says about a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgment {
    /// Accepted, or moved by so little that it matches (IoU ≥ 0.5).
    Correct {
        is_accepted: bool,
    },
    Wrong,
    Unsure,
}

/// A judged unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedUnit {
    /// Index into the population.
    pub index: usize,
    pub image: u32,
    /// The model's.
    pub class: u32,
    pub score: f32,
    pub stratum: usize,
    pub judgment: Judgment,
}

/// Where the judged units come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A random sample.
    Sample,
    /// A random sample of images, with all of their units.
    Images,
    /// All units have a verdict.
    Complete,
    /// Nobody knows why these were judged and others not.
    Judged,
}

/// A proportion with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Proportion {
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

/// Verdicts, and what they were given to.
pub struct Statement {
    pub basis: Basis,
    /// With few verdicts, neighboring strata are merged (Cochran 1977, section 5A.12).
    strata: Vec<Counted>,
    merged: Vec<usize>,
    units: Vec<JudgedUnit>,
}

/// A stratum of `population` units, of which `judged` have a verdict other than unsure.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    population: f64,
    judged: f64,
}

/// A stratum of images.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountedImages {
    pub population: usize,
    pub sampled: usize,
    /// Of the sampled ones, with units to judge.
    pub with_units: usize,
    /// Of those, with a verdict on each unit.
    pub judged: usize,
}

/// The verdicts of a domain in a stratum.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    stratum: Counted,
    inside: f64,
    hits: f64,
}

impl Statement {
    /// `strata` are those of the sample; otherwise a single one with the whole population. Unsure verdicts are dropped.
    pub fn new(basis: Basis, strata: &[Stratum], units: impl IntoIterator<Item = JudgedUnit>) -> Self {
        let units = units.into_iter().filter(|unit| unit.judgment != Judgment::Unsure).collect::<Vec<_>>();
        let mut counted: Vec<Counted> =
            strata.iter().map(|stratum| Counted { population: stratum.population as f64, judged: 0.0 }).collect();
        for unit in &units {
            counted[unit.stratum].judged += 1.0;
        }
        Self::with_counts(basis, counted, units)
    }

    /// Verdicts on all units of the judged images. Images with missing verdicts are treated as nonresponse at random
    /// within the stratum.
    pub fn of_images(strata: &[CountedImages], units: impl IntoIterator<Item = JudgedUnit>) -> Self {
        let units = units.into_iter().filter(|unit| unit.judgment != Judgment::Unsure).collect();
        let count = |stratum: &CountedImages| Counted {
            population: stratum.population as f64,
            judged: stratum.sampled as f64 * stratum.judged as f64 / stratum.with_units.max(1) as f64,
        };
        Self::with_counts(Basis::Images, strata.iter().map(count).collect(), units)
    }

    fn with_counts(basis: Basis, counted: Vec<Counted>, units: Vec<JudgedUnit>) -> Self {
        let mut groups: Vec<Counted> = Vec::new();
        let mut merged = Vec::new();
        for stratum in counted {
            match groups.last_mut().filter(|last| last.is_sparse()) {
                Some(last) => last.merge(stratum),
                None => groups.push(stratum),
            }
            merged.push(groups.len() - 1);
        }
        if groups.len() > 1 && groups.last().is_some_and(Counted::is_sparse) {
            let last = groups.pop().unwrap_or_default();
            let end = groups.len() - 1;
            groups[end].merge(last);
            for group in &mut merged {
                *group = (*group).min(end);
            }
        }
        Self { basis, strata: groups, merged, units }
    }

    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// The verdicts other than unsure.
    pub fn units(&self) -> &[JudgedUnit] {
        &self.units
    }

    /// The estimated number of units that this verdict stands for.
    pub fn weight(&self, unit: &JudgedUnit) -> f64 {
        let stratum = self.strata[self.merged[unit.stratum]];
        if self.basis == Basis::Judged { 1.0 } else { stratum.population / stratum.judged }
    }

    /// The proportion of `is_hit` in a domain, given all of its [`units`](Self::units); `None` without any.
    pub fn proportion<'u>(
        &self,
        domain: impl Iterator<Item = &'u JudgedUnit>,
        is_hit: impl Fn(&JudgedUnit) -> bool,
    ) -> Option<Proportion> {
        if self.basis == Basis::Judged {
            return clustered(domain, is_hit);
        }
        if self.basis == Basis::Images {
            return self.clustered_in_strata(domain, is_hit);
        }
        let cells = self.cells(domain, is_hit);
        let spread = Spread::new(&cells)?;
        let variance: f64 = cells.iter().map(|cell| spread.variance(cell)).sum();
        Some(wilson(spread.share, spread.smoothed * (1.0 - spread.smoothed) / variance))
    }

    /// The verdicts that each stratum needs in addition, so that the interval is at most ± `margin`: Neyman allocation
    /// with finite population correction (Cochran 1977, sections 5.5 and 5.9), in strata that already have verdicts.
    /// `None` without a random sample.
    pub fn more_for<'u>(
        &self,
        margin: f64,
        domain: impl Iterator<Item = &'u JudgedUnit>,
        is_hit: impl Fn(&JudgedUnit) -> bool,
    ) -> Option<usize> {
        let cells = self.cells(domain, is_hit);
        let spread = Spread::new(&cells).filter(|_| !matches!(self.basis, Basis::Judged | Basis::Images))?;
        let target = (margin / NORMAL).powi(2);
        // Population, verdicts and standard deviation of each stratum.
        let parts: Vec<[f64; 3]> = cells
            .iter()
            .filter(|cell| cell.inside > 0.0)
            .map(|cell| [cell.population(), cell.inside, spread.deviation(cell)])
            .collect();
        let given = |scale: f64, [population, verdicts, deviation]: [f64; 3]| {
            (scale * population * deviation).clamp(verdicts, population.max(verdicts))
        };
        let variance = |scale: f64| {
            let part = |part: &[f64; 3]| {
                let [population, _, deviation] = *part;
                (population / spread.population * deviation).powi(2) * (1.0 / given(scale, *part) - 1.0 / population)
            };
            parts.iter().map(part).sum::<f64>()
        };
        let (mut low, mut high) = (0.0, 1.0);
        while variance(high) > target {
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            *(if variance(middle) > target { &mut low } else { &mut high }) = middle;
        }
        let more = |part: &[f64; 3]| (given(high, *part) - part[1]).ceil() as usize;
        Some(parts.iter().map(more).sum())
    }

    /// The ratio of two estimated totals, with the variance between the images of each stratum.
    fn clustered_in_strata<'u>(
        &self,
        domain: impl Iterator<Item = &'u JudgedUnit>,
        is_hit: impl Fn(&JudgedUnit) -> bool,
    ) -> Option<Proportion> {
        let mut images = BTreeMap::<(usize, u32), [f64; 2]>::new();
        for unit in domain {
            let [units, hits] = images.entry((self.merged[unit.stratum], unit.image)).or_default();
            *units += 1.0;
            *hits += f64::from(u8::from(is_hit(unit)));
        }
        let weight = |stratum: usize| self.strata[stratum].population / self.strata[stratum].judged;
        let [units, hits] = images.iter().fold([0.0, 0.0], |[units, hits], ((stratum, _), image)| {
            [units + weight(*stratum) * image[0], hits + weight(*stratum) * image[1]]
        });
        if units == 0.0 {
            return None;
        }
        let share = hits / units;
        let mut variance = 0.0;
        for (stratum, Counted { population, judged }) in self.strata.iter().enumerate() {
            let of_stratum = images.range((stratum, 0)..=(stratum, u32::MAX));
            // Images without a unit in the domain contribute zeros.
            let [sum, squares] = of_stratum.fold([0.0, 0.0], |[sum, squares], (_, [units, hits])| {
                let residual = hits - share * units;
                [sum + residual, squares + residual * residual]
            });
            let rest = (1.0 - judged / population).max(0.0);
            let spread = (squares - sum * sum / judged.max(1.0)).max(0.0);
            variance += weight(stratum).powi(2) * rest * judged / (judged - 1.0).max(1.0) * spread / (units * units);
        }
        if self.strata.iter().all(|stratum| stratum.judged >= stratum.population) {
            return Some(Proportion { share, low: share, high: share });
        }
        let count = images.len() as f64;
        let verdicts = images.values().map(|[units, _]| units).sum::<f64>();
        let effective = if variance > 0.0 { (share * (1.0 - share) / variance).min(verdicts) } else { count };
        let widening = widening((count - self.strata.len() as f64).max(1.0));
        Some(wilson(share, effective / (widening * widening)))
    }

    fn cells<'u>(
        &self,
        domain: impl Iterator<Item = &'u JudgedUnit>,
        is_hit: impl Fn(&JudgedUnit) -> bool,
    ) -> Vec<Cell> {
        let mut cells: Vec<Cell> =
            self.strata.iter().map(|stratum| Cell { stratum: *stratum, ..Cell::default() }).collect();
        for unit in domain {
            let cell = &mut cells[self.merged[unit.stratum]];
            cell.inside += 1.0;
            cell.hits += f64::from(u8::from(is_hit(unit)));
        }
        cells
    }
}

/// Images without an order: the variance is that of their ratios, and without any difference between them, each image
/// counts like one verdict.
fn clustered<'u>(
    domain: impl Iterator<Item = &'u JudgedUnit>,
    is_hit: impl Fn(&JudgedUnit) -> bool,
) -> Option<Proportion> {
    let mut images = BTreeMap::<u32, [f64; 2]>::new();
    for unit in domain {
        let [units, hits] = images.entry(unit.image).or_default();
        *units += 1.0;
        *hits += f64::from(u8::from(is_hit(unit)));
    }
    let [units, hits] = images.values().fold([0.0, 0.0], |sum, image| [sum[0] + image[0], sum[1] + image[1]]);
    if units == 0.0 {
        return None;
    }
    let share = hits / units;
    let count = images.len() as f64;
    let squares: f64 = images.values().map(|[units, hits]| (hits - share * units).powi(2)).sum();
    let variance = count / (count - 1.0) * squares / (units * units);
    let effective = if variance > 0.0 { (share * (1.0 - share) / variance).min(units) } else { count };
    let widening = widening((count - 1.0).max(1.0));
    Some(wilson(share, effective / (widening * widening)))
}

/// Fewer images, wider intervals: the ratio of the normal and the t quantile (Korn and Graubard 1998; Abramowitz and
/// Stegun, 26.7.5, one term).
fn widening(degrees_of_freedom: f64) -> f64 {
    1.0 + (NORMAL * NORMAL + 1.0) / (4.0 * degrees_of_freedom)
}

impl Counted {
    /// Without a variance, unless all of it is judged.
    fn is_sparse(&self) -> bool {
        self.judged < self.population.min(2.0)
    }

    fn merge(&mut self, other: Self) {
        self.population += other.population;
        self.judged += other.judged;
    }
}

impl Cell {
    /// The estimated number of units in the domain.
    fn population(&self) -> f64 {
        if self.inside == 0.0 { 0.0 } else { self.stratum.population * self.inside / self.stratum.judged }
    }
}

/// The variance of a proportion, stratum by stratum.
struct Spread {
    share: f64,
    /// The proportion that strata with few verdicts are shrunk toward, never 0 or 1.
    common: f64,
    /// The proportion after that.
    smoothed: f64,
    /// The estimated number of units in the domain.
    population: f64,
}

impl Spread {
    fn new(cells: &[Cell]) -> Option<Self> {
        let mean = |share: &dyn Fn(&Cell) -> f64| {
            let cells = cells.iter().filter(|cell| cell.inside > 0.0);
            let [sum, population] = cells.fold([0.0, 0.0], |[sum, population], cell| {
                [sum + cell.population() * share(cell), population + cell.population()]
            });
            (sum / population, population)
        };
        let inside: f64 = cells.iter().map(|cell| cell.inside).sum();
        let (share, population) = mean(&|cell| cell.hits / cell.inside);
        let common = (share * inside + 1.0) / (inside + 2.0);
        let spread = Self { share: share.min(1.0), common, smoothed: common, population };
        let (smoothed, _) = mean(&|cell| spread.share_of(cell));
        (inside > 0.0).then_some(Self { smoothed, ..spread })
    }

    fn share_of(&self, cell: &Cell) -> f64 {
        (cell.hits + PRIOR * self.common) / (cell.inside + PRIOR)
    }

    fn deviation(&self, cell: &Cell) -> f64 {
        let share = self.share_of(cell);
        (share * (1.0 - share)).sqrt()
    }

    /// The stratum's part of the variance of the ratio: that of the linearized values, which are 0 outside the domain.
    fn variance(&self, cell: &Cell) -> f64 {
        if cell.inside == 0.0 {
            return 0.0;
        }
        let Counted { population, judged } = cell.stratum;
        let within = cell.inside / judged;
        let away = self.share_of(cell) - self.smoothed;
        let values = within * (self.deviation(cell).powi(2) + away * away) - (within * away).powi(2);
        (population / self.population).powi(2) * (1.0 - judged / population) * values / (judged - 1.0).max(1.0)
    }
}

/// The interval of a part of which only strata without variance were judged, although it has units elsewhere: as from
/// this many verdicts without a design.
pub(super) fn without_design(share: f64, judged: usize) -> Proportion {
    wilson(share, judged as f64)
}

/// Wilson's interval (Journal of the American Statistical Association 1927) for a proportion of `count` verdicts.
fn wilson(share: f64, count: f64) -> Proportion {
    if !count.is_finite() {
        return Proportion { share, low: share, high: share };
    }
    let square = NORMAL * NORMAL / count;
    let center = (share + square / 2.0) / (1.0 + square);
    let margin = (square * (share * (1.0 - share) + square / 4.0)).sqrt() / (1.0 + square);
    Proportion { share, low: (center - margin).clamp(0.0, share), high: (center + margin).clamp(share, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `correct` of `judged` units in each stratum, with its population.
    fn statement(strata: &[(usize, usize, usize)]) -> Statement {
        let units = strata.iter().enumerate().flat_map(|(stratum, (_, judged, correct))| {
            (0..*judged).map(move |index| JudgedUnit {
                index,
                image: index as u32,
                class: 0,
                score: 0.5,
                stratum,
                judgment: if index < *correct { Judgment::Correct { is_accepted: true } } else { Judgment::Wrong },
            })
        });
        let strata = strata.iter().map(|(population, judged, _)| Stratum {
            name: String::new(),
            population: *population,
            sampled: *judged,
        });
        Statement::new(Basis::Sample, &strata.collect::<Vec<_>>(), units)
    }

    fn precision(strata: &[(usize, usize, usize)]) -> Option<Proportion> {
        let statement = statement(strata);
        statement.proportion(statement.units().iter(), |unit| unit.judgment != Judgment::Wrong)
    }

    #[test]
    fn interval_of_a_simple_sample_is_wilsons() {
        // scipy.stats.binomtest(94, 100).proportion_ci(method="wilson") is 0.875186 to 0.972215; the variance divides
        // by 99.
        let Proportion { share, low, high } = precision(&[(1_000_000_000, 100, 94)]).unwrap();
        assert!((share - 0.94).abs() < 1e-12 && (low - 0.875_186).abs() < 1e-3 && (high - 0.972_215).abs() < 1e-3);
    }

    #[test]
    fn judged_population_is_known_exactly() {
        assert_eq!(precision(&[(50, 50, 40)]), Some(Proportion { share: 0.8, low: 0.8, high: 0.8 }));
        assert_eq!(precision(&[(50, 0, 0)]), None);
        let more = |strata| {
            let statement = statement(strata);
            statement.more_for(0.01, statement.units().iter(), |unit| unit.judgment != Judgment::Wrong)
        };
        assert_eq!(more(&[(50, 50, 40)]), Some(0));
        assert_eq!(more(&[(1000, 100, 50)]), Some(806));
    }

    #[test]
    fn stratum_without_verdicts_joins_its_neighbor() {
        let Proportion { share, low, high } = precision(&[(100, 10, 5), (300, 0, 0), (100, 1, 1)]).unwrap();
        let together = precision(&[(500, 11, 6)]).unwrap();
        assert_eq!(share, together.share);
        assert!(low < share && share < high);
    }

    #[test]
    fn intervals_of_drawn_images_contain_the_precision() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut hit = 0;
        let rounds = 600;
        for _ in 0..rounds {
            // The images of a stratum have 0 to 7 boxes; how many are right depends on the image.
            let strata = [(3000, 40, 0.95), (1000, 20, 0.7), (200, 20, 0.4)];
            let mut judged = Vec::new();
            let mut counts = Vec::new();
            let mut total = [0.0, 0.0];
            for (stratum, (population, sampled, precision)) in strata.into_iter().enumerate() {
                let mut counted = CountedImages { population, sampled, ..CountedImages::default() };
                // The first images are the sample: all are alike.
                for image in 0..population {
                    let units = random.usize(0..8);
                    let of_image = precision * (0.6 + 0.4 * random.f64());
                    let is_drawn = image < sampled;
                    if is_drawn && units > 0 {
                        counted.with_units += 1;
                        counted.judged += 1;
                    }
                    for _ in 0..units {
                        let is_right = random.f64() < of_image;
                        total[0] += 1.0;
                        total[1] += f64::from(u8::from(is_right));
                        let judgment = if is_right { Judgment::Correct { is_accepted: true } } else { Judgment::Wrong };
                        let unit = JudgedUnit {
                            index: judged.len(),
                            image: (stratum * 10_000 + image) as u32,
                            class: 0,
                            score: 0.5,
                            stratum,
                            judgment,
                        };
                        judged.extend(is_drawn.then_some(unit));
                    }
                }
                counts.push(counted);
            }
            let statement = Statement::of_images(&counts, judged);
            let found = statement.proportion(statement.units().iter(), |unit| unit.judgment != Judgment::Wrong);
            let Proportion { low, high, .. } = found.unwrap();
            hit += usize::from((low..=high).contains(&(total[1] / total[0])));
        }
        let share = hit as f64 / f64::from(rounds);
        // Three standard deviations of 600 rounds are 0.027.
        assert!((0.92..0.985).contains(&share), "{share}");
    }

    #[test]
    fn single_verdict_is_not_certain_without_a_design() {
        let found = without_design(1.0, 1);
        assert!(found.low < 0.25 && found.high == 1.0, "{found:?}");
    }
}
