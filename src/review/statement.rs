//! What verdicts on a part of a run say about all of it: proportions with 95% intervals.
//!
//! - **Order.** The first part of a sample is a random sample of any domain (a class, a range of scores), but verdicts
//!   given in another order are not. Verdicts therefore count up to the first unit of the domain without one, and only if
//!   they are at least half of all.
//! - **Estimate.** A verdict counts as often as its inverse probability, `N_h / n_h` in stratum `h` with `n_h` drawn
//!   units. Units without a verdict, or with an unsure one, are treated as nonresponse at random within the stratum and
//!   the domain: the other verdicts there count for them (Lohr, Sampling: Design and Analysis, 3rd edition 2022, section
//!   8.5). A proportion in a domain is a ratio of two such sums (Särndal, Swensson and Wretman, Model Assisted Survey
//!   Sampling, 1992, 5.8).
//! - **Variance.** That of the ratio by linearization, with finite population correction (ibid., 5.5 and 5.8), plus that
//!   of the verdicts among the drawn units (two phases, ibid., 9.3). In strata with few verdicts, the proportion is
//!   shrunk toward the common one by [`PRIOR`] verdicts; otherwise a stratum without an error would contribute no
//!   variance.
//! - **Interval.** Mid-P, with the effective number of verdicts `p (1 - p) / v` in place of the number, as Korn and
//!   Graubard (Survey Methodology 1998) do with Clopper and Pearson's.
//! - **Without a sample**, the judged images are treated as a random sample of similar images. The boxes of an image
//!   are a cluster, and the variance is that between images (Cochran, Sampling Techniques, 1977, section 11.8).
//! - **Images drawn from a listing** are clusters in strata (ibid., sections 5.6 and 11.8): the variance is that between
//!   the images of a stratum, with finite population correction.
//!
//! Boxes of a sample are drawn one by one, whatever their image, so several from one image do not form a cluster: the
//! design alone determines the variance. `benches/review/coverage.py` simulates how often the intervals contain the
//! true value.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Stratum;
use super::binomial::mid_p_interval;

/// The 97.5% quantile of the normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;
/// The number of verdicts that the common proportion counts for in the variance of a stratum.
const PRIOR: f64 = 2.0;
/// Far more than the rounding of a count, and far less than one.
const ROUNDING: f64 = 1e-6;

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

/// A unit of a sample (without one, a judged unit).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReviewedUnit {
    /// Index into the population.
    pub index: usize,
    pub image: u32,
    /// The model's.
    pub class: u32,
    pub score: f32,
    pub stratum: usize,
    /// `None` if it has no verdict yet.
    pub judgment: Option<Judgment>,
}

impl ReviewedUnit {
    /// Whether it has a verdict other than unsure.
    pub fn is_judged(&self) -> bool {
        self.judgment.is_some_and(|judgment| judgment != Judgment::Unsure)
    }
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
    basis: Basis,
    strata: Vec<Counted>,
    /// In the order in which they should be judged.
    units: Vec<ReviewedUnit>,
}

/// A stratum of `population` units or images, of which `sampled` were drawn (of images: judged).
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    population: f64,
    sampled: f64,
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

impl Statement {
    /// `strata` are those of the sample; otherwise a single one with the whole population. `units` are in the order in
    /// which they should be judged.
    pub fn new(basis: Basis, strata: &[Stratum], units: impl IntoIterator<Item = ReviewedUnit>) -> Self {
        let count =
            |stratum: &Stratum| Counted { population: stratum.population as f64, sampled: stratum.sampled as f64 };
        Self { basis, strata: strata.iter().map(count).collect(), units: units.into_iter().collect() }
    }

    /// Verdicts on all units of the judged images. Images with missing verdicts are treated as nonresponse at random
    /// within the stratum.
    pub fn of_images(strata: &[CountedImages], units: impl IntoIterator<Item = ReviewedUnit>) -> Self {
        let count = |stratum: &CountedImages| Counted {
            population: stratum.population as f64,
            sampled: stratum.sampled as f64 * stratum.judged as f64 / stratum.with_units.max(1) as f64,
        };
        let (mut counted, mut units): (Vec<Counted>, Vec<ReviewedUnit>) =
            (strata.iter().map(count).collect(), units.into_iter().collect());
        merge_sparse(&mut counted, &mut units);
        Self { basis: Basis::Images, strata: counted, units }
    }

    pub fn units(&self) -> &[ReviewedUnit] {
        &self.units
    }

    /// The verdicts on a domain, given all of its [`units`](Self::units) in their order.
    pub fn verdicts<'s>(&'s self, domain: impl IntoIterator<Item = &'s ReviewedUnit>) -> Verdicts<'s> {
        let units: Vec<&ReviewedUnit> = domain.into_iter().collect();
        let end = units.iter().position(|unit| unit.judgment.is_none()).unwrap_or(units.len());
        let judged = |units: &[&ReviewedUnit]| units.iter().filter(|unit| unit.is_judged()).count();
        let waiting = judged(&units[end..]);
        // With another order, the units before the first one without a verdict are no random sample either.
        let is_in_order = judged(&units[..end]) >= waiting;
        let (end, waiting) = if is_in_order { (end, waiting) } else { (0, judged(&units)) };
        Verdicts { statement: self, units, end, waiting }
    }
}

/// Neighboring strata with fewer than two judged images become one (Cochran 1977, section 5A.12).
fn merge_sparse(strata: &mut Vec<Counted>, units: &mut [ReviewedUnit]) {
    let is_sparse = |stratum: &Counted| stratum.sampled < stratum.population.min(2.0);
    let mut groups: Vec<Counted> = Vec::new();
    let mut group_of = Vec::new();
    for stratum in strata.drain(..) {
        match groups.last_mut().filter(|last| is_sparse(last)) {
            Some(last) => last.add(stratum),
            None => groups.push(stratum),
        }
        group_of.push(groups.len() - 1);
    }
    if groups.len() > 1 && groups.last().is_some_and(is_sparse) {
        let last = groups.pop().unwrap_or_default();
        let end = groups.len() - 1;
        groups[end].add(last);
        for group in &mut group_of {
            *group = (*group).min(end);
        }
    }
    for unit in units {
        unit.stratum = group_of[unit.stratum];
    }
    *strata = groups;
}

impl Counted {
    fn add(&mut self, other: Self) {
        self.population += other.population;
        self.sampled += other.sampled;
    }

    fn weight(&self) -> f64 {
        self.population / self.sampled
    }
}

/// The verdicts on a domain.
pub struct Verdicts<'s> {
    statement: &'s Statement,
    /// All of the domain, in the order in which they should be judged.
    units: Vec<&'s ReviewedUnit>,
    /// The number of units before the first one without a verdict; 0 if most verdicts come after that.
    end: usize,
    /// The number of verdicts after that, other than unsure. They do not count: nobody knows why these were judged first.
    pub waiting: usize,
}

impl<'s> Verdicts<'s> {
    pub fn basis(&self) -> Basis {
        self.statement.basis
    }

    /// The verdicts that count, other than unsure.
    pub fn counted(&self) -> impl Iterator<Item = &'s ReviewedUnit> {
        self.units[..self.end].iter().copied().filter(|unit| unit.is_judged())
    }

    /// The estimated number of units that each counted verdict stands for.
    pub fn weights(&self) -> Vec<(&'s ReviewedUnit, f64)> {
        match self.statement.basis {
            Basis::Judged => self.counted().map(|unit| (unit, 1.0)).collect(),
            Basis::Images => self.counted().map(|unit| (unit, self.statement.strata[unit.stratum].weight())).collect(),
            Basis::Sample | Basis::Complete => {
                let weighted = |part: StratumPart<'s>| {
                    let scale = part.population / part.weight_of_verdicts();
                    part.verdicts.into_iter().map(move |(unit, weight)| (unit, weight * scale))
                };
                self.parts().into_iter().flat_map(weighted).collect()
            }
        }
    }

    /// The proportion of `is_hit` among `population` predictions, as far as the verdicts allow it; `None` if no verdict
    /// counts.
    pub fn estimate(&self, population: usize, is_hit: impl Fn(&ReviewedUnit) -> bool) -> Option<Proportion> {
        if self.basis() == Basis::Images {
            return self.proportion(is_hit);
        }
        let judged = self.units.iter().filter(|unit| unit.is_judged()).count();
        let hits = self.units.iter().filter(|unit| unit.is_judged() && is_hit(unit)).count() as f64;
        let exact = |share: f64| Proportion { share, low: share, high: share };
        // All of it is judged: there is no sampling error, and no verdict stands for another prediction.
        if judged > 0 && judged == population {
            return Some(exact(hits / judged as f64));
        }
        let found = self.proportion(is_hit)?;
        let is_certain = found.low == found.high;
        let found = if is_certain { without_design(found.share, self.counted().count()) } else { found };
        // What the verdicts rule out, whether they count or not.
        let population = population as f64;
        let [least, most] = [hits / population, 1.0 - (judged as f64 - hits) / population];
        let within = |value: f64| value.max(least).min(most);
        // A precision is a whole number of predictions. To the nearest: rounded outward, intervals of parts that are
        // mostly judged would be too wide (`benches/review/rounding.py`). A prediction without a verdict is never certain.
        let [low, share, high] = [found.low, found.share, found.high].map(|value| value * population);
        let low = low.round().min((share + ROUNDING).floor()).min(population - 1.0) / population;
        let high = high.round().max((share - ROUNDING).ceil()).max(1.0) / population;
        Some(Proportion { share: within(found.share), low: within(low), high: within(high) })
    }

    /// The proportion of `is_hit`; `None` without verdicts that count.
    fn proportion(&self, is_hit: impl Fn(&ReviewedUnit) -> bool) -> Option<Proportion> {
        match self.statement.basis {
            Basis::Judged => clustered(&self.statement.strata, self.counted(), is_hit),
            Basis::Images => Some(ImageSpread::new(&self.statement.strata, self.counted(), is_hit)?.interval(1.0)),
            Basis::Sample | Basis::Complete => {
                let spread = Spread::new(self.parts(), is_hit)?;
                let variance: f64 = spread.cells.iter().map(|cell| spread.variance(cell)).sum();
                Some(interval(spread.share, spread.smoothed * (1.0 - spread.smoothed) / variance))
            }
        }
    }

    /// The verdicts that are needed in addition, so that the interval is at most ± `margin`: Neyman allocation
    /// with finite population correction (Cochran 1977, sections 5.5 and 5.9), in strata that already have verdicts.
    /// With [`Basis::Images`], the images whose boxes must all be judged in addition. `None` without a random sample.
    pub fn more_for(&self, margin: f64, is_hit: impl Fn(&ReviewedUnit) -> bool) -> Option<usize> {
        match self.statement.basis {
            Basis::Judged => return None,
            Basis::Images => {
                return Some(ImageSpread::new(&self.statement.strata, self.counted(), is_hit)?.more_for(margin));
            }
            Basis::Sample | Basis::Complete => {}
        }
        let spread = Spread::new(self.parts(), is_hit)?;
        let target = (margin / NORMAL).powi(2);
        // Population, verdicts and standard deviation of each stratum.
        let parts: Vec<[f64; 3]> = spread
            .cells
            .iter()
            .map(|cell| [cell.part.population, cell.part.verdicts.len() as f64, spread.variance_of(cell).sqrt()])
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
        // Sums of weights are not exact.
        let more = |part: &[f64; 3]| (given(high, *part) - part[1] - 1e-6).ceil() as usize;
        Some(parts.iter().map(more).sum())
    }

    /// The domain by stratum, neighbors without enough verdicts together; empty without any verdict.
    fn parts(&self) -> Vec<StratumPart<'s>> {
        let mut parts: Vec<StratumPart<'s>> = self
            .statement
            .strata
            .iter()
            .map(|stratum| StratumPart { stratum: *stratum, ..Default::default() })
            .collect();
        for (at, unit) in self.units.iter().copied().enumerate() {
            let part = &mut parts[unit.stratum];
            let weight = part.stratum.weight();
            part.inside += 1.0;
            part.population += weight;
            if at < self.end && unit.is_judged() {
                part.verdicts.push((unit, weight));
            }
        }
        let mut groups: Vec<StratumPart<'s>> = Vec::new();
        for part in parts.into_iter().filter(|part| part.inside > 0.0) {
            match groups.last_mut().filter(|last| last.is_sparse()) {
                Some(last) => last.add(part),
                None => groups.push(part),
            }
        }
        while groups.len() > 1 && groups.last().is_some_and(StratumPart::is_sparse) {
            let last = groups.pop().unwrap_or_default();
            let end = groups.len() - 1;
            groups[end].add(last);
        }
        groups.retain(|group| !group.verdicts.is_empty());
        groups
    }
}

/// A domain in a stratum.
#[derive(Default)]
struct StratumPart<'s> {
    /// The whole stratum.
    stratum: Counted,
    /// The estimated number of units.
    population: f64,
    /// The number of drawn units.
    inside: f64,
    /// Those that count, with the inverse probabilities of their units.
    verdicts: Vec<(&'s ReviewedUnit, f64)>,
}

impl StratumPart<'_> {
    /// Without a variance, unless all of its drawn units have a verdict.
    fn is_sparse(&self) -> bool {
        (self.verdicts.len() as f64) < self.inside.min(2.0) || self.stratum.sampled < self.stratum.population.min(2.0)
    }

    fn add(&mut self, other: Self) {
        self.stratum.add(other.stratum);
        self.population += other.population;
        self.inside += other.inside;
        self.verdicts.extend(other.verdicts);
    }

    fn weight_of_verdicts(&self) -> f64 {
        self.verdicts.iter().map(|(_, weight)| weight).sum()
    }

    /// The factor by which unequal weights in merged strata increase the variance (Kish, Survey Sampling, 1965,
    /// section 11.7).
    fn weighting_effect(&self) -> f64 {
        let squares: f64 = self.verdicts.iter().map(|(_, weight)| weight * weight).sum();
        self.verdicts.len() as f64 * squares / self.weight_of_verdicts().powi(2)
    }
}

/// The hits of a domain in a stratum.
struct Cell<'s> {
    part: StratumPart<'s>,
    /// The proportion of hits.
    share: f64,
}

/// The variance of a proportion, stratum by stratum.
struct Spread<'s> {
    cells: Vec<Cell<'s>>,
    share: f64,
    /// The proportion that strata with few verdicts are shrunk toward, never 0 or 1.
    common: f64,
    /// The proportion after that.
    smoothed: f64,
    /// The estimated number of units in the domain.
    population: f64,
}

impl<'s> Spread<'s> {
    fn new(parts: Vec<StratumPart<'s>>, is_hit: impl Fn(&ReviewedUnit) -> bool) -> Option<Self> {
        let cell = |part: StratumPart<'s>| {
            let hits = part.verdicts.iter().filter(|(unit, _)| is_hit(unit)).fold(0.0, |sum, (_, weight)| sum + weight);
            Cell { share: hits / part.weight_of_verdicts(), part }
        };
        let cells: Vec<Cell<'s>> = parts.into_iter().map(cell).collect();
        let population: f64 = cells.iter().map(|cell| cell.part.population).sum();
        let mean = |share: &dyn Fn(&Cell<'s>) -> f64| {
            cells.iter().map(|cell| cell.part.population * share(cell)).sum::<f64>() / population
        };
        let verdicts: f64 = cells.iter().map(|cell| cell.part.verdicts.len() as f64).sum();
        let share = mean(&|cell| cell.share).clamp(0.0, 1.0);
        let common = (share * verdicts + 1.0) / (verdicts + 2.0);
        let smoothed = mean(&|cell| cell.shrunk_toward(common));
        (verdicts > 0.0).then_some(Self { cells, share, common, smoothed, population })
    }

    /// The variance of a verdict.
    fn variance_of(&self, cell: &Cell<'_>) -> f64 {
        let share = cell.shrunk_toward(self.common);
        share * (1.0 - share)
    }

    /// The stratum's part of the variance of the ratio: that of the linearized values, which are 0 outside the domain,
    /// of the drawn units, and that of the verdicts among them.
    fn variance(&self, cell: &Cell<'_>) -> f64 {
        let StratumPart { stratum: Counted { population, sampled }, inside, verdicts, .. } = &cell.part;
        let within = inside / sampled;
        let count = verdicts.len() as f64;
        let away = cell.shrunk_toward(self.common) - self.smoothed;
        let of_verdicts = self.variance_of(cell) * cell.part.weighting_effect();
        let values = within * (of_verdicts + away * away) - (within * away).powi(2);
        let of_drawn = (1.0 - sampled / population).max(0.0) * values / (sampled - 1.0).max(1.0);
        let of_judged = within * within * (1.0 - count / inside) * of_verdicts / (count - 1.0).max(1.0);
        (population / self.population).powi(2) * (of_drawn + of_judged)
    }
}

impl Cell<'_> {
    fn shrunk_toward(&self, common: f64) -> f64 {
        let verdicts = self.part.verdicts.len() as f64;
        (self.share * verdicts + PRIOR * common) / (verdicts + PRIOR)
    }
}

/// Units and hits of each image, by stratum.
type Images = BTreeMap<(usize, u32), [f64; 2]>;

fn by_image<'u>(domain: impl Iterator<Item = &'u ReviewedUnit>, is_hit: impl Fn(&ReviewedUnit) -> bool) -> Images {
    let mut images = Images::new();
    for unit in domain {
        let [units, hits] = images.entry((unit.stratum, unit.image)).or_default();
        *units += 1.0;
        *hits += f64::from(u8::from(is_hit(unit)));
    }
    images
}

/// The ratio of two estimated totals, with the variance between the images of each stratum.
struct ImageSpread<'s> {
    share: f64,
    images: f64,
    verdicts: f64,
    /// Each stratum with the variance of its images' residuals, as a part of the squared total.
    strata: Vec<(&'s Counted, f64)>,
}

impl<'s> ImageSpread<'s> {
    /// `None` without verdicts that count.
    fn new<'u>(
        strata: &'s [Counted],
        domain: impl Iterator<Item = &'u ReviewedUnit>,
        is_hit: impl Fn(&ReviewedUnit) -> bool,
    ) -> Option<Self> {
        let images = by_image(domain, is_hit);
        let [units, hits] = images.iter().fold([0.0, 0.0], |[units, hits], ((stratum, _), image)| {
            let weight = strata[*stratum].weight();
            [units + weight * image[0], hits + weight * image[1]]
        });
        if units == 0.0 {
            return None;
        }
        let share = hits / units;
        let spread = |(stratum, counted): (usize, &'s Counted)| {
            let of_stratum = images.range((stratum, 0)..=(stratum, u32::MAX));
            // Images without a unit in the domain contribute zeros.
            let [sum, squares] = of_stratum.fold([0.0, 0.0], |[sum, squares], (_, [units, hits])| {
                let residual = hits - share * units;
                [sum + residual, squares + residual * residual]
            });
            let spread = (squares - sum * sum / counted.sampled.max(1.0)).max(0.0);
            (counted, spread / (counted.sampled - 1.0).max(1.0) / (units * units))
        };
        let verdicts = images.values().map(|[units, _]| units).sum();
        let strata = strata.iter().enumerate().map(spread).collect();
        Some(Self { share, images: images.len() as f64, verdicts, strata })
    }

    /// The interval if `growth` times as many images of each stratum, at most all, were judged with the same variance.
    fn interval(&self, growth: f64) -> Proportion {
        let share = self.share;
        // Satterthwaite's degrees of freedom for images of equal variance: a few large strata can make up most of it
        // (Cochran 1977, section 5.4).
        let [mut variance, mut sizes, mut squares_of_sizes] = [0.0; 3];
        for (counted, spread) in &self.strata {
            let judged = grown(counted, growth);
            let weight = counted.population / judged;
            let size = weight.powi(2) * (1.0 - judged / counted.population).max(0.0) * judged;
            variance += size * spread;
            sizes += size;
            squares_of_sizes += size * size / (judged - 1.0).max(1.0);
        }
        if self.strata.iter().all(|(counted, _)| grown(counted, growth) >= counted.population) {
            return Proportion { share, low: share, high: share };
        }
        let [images, verdicts] = [self.images, self.verdicts].map(|count| count * growth);
        let effective = if variance > 0.0 { (share * (1.0 - share) / variance).min(verdicts) } else { images };
        let freedom = sizes * sizes / squares_of_sizes;
        let widening = widening(freedom.max(1.0));
        interval(share, effective / (widening * widening))
    }

    /// The additional images, in proportion to those that are judged in each stratum, that make the interval at most
    /// ± `margin`.
    fn more_for(&self, margin: f64) -> usize {
        let is_enough = |growth: f64| {
            let Proportion { low, high, .. } = self.interval(growth);
            high - low <= 2.0 * margin
        };
        if is_enough(1.0) {
            return 0;
        }
        let most = self.strata.iter().map(|(counted, _)| counted.weight()).fold(1.0, f64::max);
        let (mut low, mut high) = (1.0, most);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            *(if is_enough(middle) { &mut high } else { &mut low }) = middle;
        }
        let more = |(counted, _): &(&Counted, f64)| (grown(counted, high) - counted.sampled - ROUNDING).ceil() as usize;
        self.strata.iter().map(more).sum()
    }
}

/// The judged images of a stratum, `growth` times as many as now.
fn grown(counted: &Counted, growth: f64) -> f64 {
    (counted.sampled * growth).min(counted.population).max(counted.sampled)
}

/// Images without an order: the variance is that of their ratios, and without any difference between them, each image
/// counts like one verdict.
fn clustered<'u>(
    strata: &[Counted],
    domain: impl Iterator<Item = &'u ReviewedUnit>,
    is_hit: impl Fn(&ReviewedUnit) -> bool,
) -> Option<Proportion> {
    let images = by_image(domain, is_hit);
    let [units, hits] = images.values().fold([0.0, 0.0], |sum, image| [sum[0] + image[0], sum[1] + image[1]]);
    if units == 0.0 {
        return None;
    }
    let share = hits / units;
    let count = images.len() as f64;
    let squares: f64 = images.values().map(|[units, hits]| (hits - share * units).powi(2)).sum();
    let rest = strata.iter().map(|stratum| 1.0 - stratum.sampled / stratum.population).sum::<f64>().max(0.0);
    let variance = rest * count / (count - 1.0) * squares / (units * units);
    let effective = if variance > 0.0 { (share * (1.0 - share) / variance).min(units / rest) } else { count / rest };
    let widening = widening((count - 1.0).max(1.0));
    Some(interval(share, effective / (widening * widening)))
}

/// Fewer images, wider intervals: the ratio of the t and the normal quantile (Korn and Graubard 1998; Abramowitz and
/// Stegun, Handbook of Mathematical Functions, 26.7.5).
fn widening(degrees_of_freedom: f64) -> f64 {
    let [square, inverse] = [NORMAL * NORMAL, 1.0 / degrees_of_freedom];
    let first = (square + 1.0) / 4.0;
    let second = ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    1.0 + inverse * (first + inverse * (second + inverse * third))
}

/// The interval of a part of which only strata without variance were judged, although it has units elsewhere: as from
/// this many verdicts without a design.
fn without_design(share: f64, judged: usize) -> Proportion {
    interval(share, judged as f64)
}

/// The interval for a proportion of `count` effective verdicts.
fn interval(share: f64, count: f64) -> Proportion {
    let [low, high] = if count.is_finite() { mid_p_interval(share, count) } else { [share; 2] };
    Proportion { share, low: low.clamp(0.0, share), high: high.clamp(share, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `correct` of `judged` units in each stratum, with its population and the number of drawn units.
    fn statement(strata: &[(usize, usize, usize, usize)]) -> Statement {
        let units = strata.iter().enumerate().flat_map(|(stratum, (_, drawn, judged, correct))| {
            (0..*drawn).map(move |index| {
                let judgment = if index < *correct { Judgment::Correct { is_accepted: true } } else { Judgment::Wrong };
                let judgment = (index < *judged).then_some(judgment);
                ReviewedUnit { index, image: index as u32, class: 0, score: 0.5, stratum, judgment }
            })
        });
        // Those with a verdict first.
        let (judged, missing): (Vec<ReviewedUnit>, Vec<ReviewedUnit>) = units.partition(ReviewedUnit::is_judged);
        let strata = strata.iter().map(|(population, drawn, ..)| Stratum {
            name: String::new(),
            population: *population,
            sampled: *drawn,
        });
        Statement::new(Basis::Sample, &strata.collect::<Vec<_>>(), judged.into_iter().chain(missing))
    }

    fn is_correct(unit: &ReviewedUnit) -> bool {
        unit.judgment != Some(Judgment::Wrong)
    }

    fn precision(strata: &[(usize, usize, usize, usize)]) -> Option<Proportion> {
        let statement = statement(strata);
        statement.verdicts(statement.units()).proportion(is_correct)
    }

    #[test]
    fn interval_of_a_simple_sample_is_mid_p() {
        // tests/review/mid_p.py: 0.879409 to 0.975325; the variance divides by 99.
        let Proportion { share, low, high } = precision(&[(1_000_000_000, 100, 100, 94)]).unwrap();
        assert!((share - 0.94).abs() < 1e-12 && (low - 0.879_409).abs() < 2e-3 && (high - 0.975_325).abs() < 2e-3);
    }

    #[test]
    fn judged_population_is_known_exactly() {
        assert_eq!(precision(&[(50, 50, 50, 40)]), Some(Proportion { share: 0.8, low: 0.8, high: 0.8 }));
        assert_eq!(precision(&[(50, 5, 0, 0)]), None);
        let more = |strata| {
            let statement = statement(strata);
            statement.verdicts(statement.units()).more_for(0.01, is_correct)
        };
        assert_eq!(more(&[(50, 50, 50, 40)]), Some(0));
        assert_eq!(more(&[(1000, 100, 100, 50)]), Some(806));
    }

    #[test]
    fn stratum_without_verdicts_joins_its_neighbor() {
        let Proportion { share, low, high } = precision(&[(100, 10, 10, 5), (300, 30, 0, 0), (100, 10, 1, 1)]).unwrap();
        let together = precision(&[(100, 10, 10, 5), (400, 40, 1, 1)]).unwrap();
        assert_eq!(share, together.share);
        assert!(low < share && share < high);
    }

    #[test]
    fn verdicts_after_a_unit_without_one_do_not_count() {
        let statement = statement(&[(100, 10, 8, 4)]);
        let mut units: Vec<&ReviewedUnit> = statement.units().iter().collect();
        units.rotate_right(1);
        let verdicts = statement.verdicts(units.clone());
        assert_eq!((verdicts.waiting, verdicts.counted().count()), (8, 0));
        assert_eq!(verdicts.proportion(is_correct), None);
        units.swap(0, 3);
        assert_eq!(statement.verdicts(units.clone()).weights(), [], "most are out of order");
        units.swap(3, 4);
        let verdicts = statement.verdicts(units);
        assert_eq!((verdicts.waiting, verdicts.weights().len()), (4, 4));
        assert_eq!(verdicts.weights().iter().map(|(_, weight)| weight).sum::<f64>(), 100.0);
    }

    #[test]
    fn single_verdict_is_not_certain_without_a_design() {
        let found = without_design(1.0, 1);
        assert!(found.low < 0.25 && found.high == 1.0, "{found:?}");
    }
}
