//! Draws a random sample of a run's predictions for review, with a known probability for each.
//!
//! Every design draws without replacement within strata, so [`super::Statement`] can estimate the whole population by
//! inverse probabilities (Horvitz and Thompson, A Generalization of Sampling Without Replacement From a Finite
//! Universe, JASA 1952; Cochran, Sampling Techniques, 3rd edition 1977, chapter 5).

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::domain::{Detection, LabelSet, SampleUri, ViewSettings, decimal};

/// What one verdict judges: a box of a detector, or the top class of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Index of the image in its population.
    pub image: u32,
    /// `None` for an image.
    pub box_index: Option<u32>,
    /// The model's.
    pub class: u32,
    pub score: f32,
    /// How far the model is from another prediction: the distance of a box to its threshold, or of the two highest
    /// scores of an image.
    pub margin: f32,
}

/// How a sample is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum SampleBy {
    /// All units are equally likely.
    Random,
    /// One stratum per class, with more verdicts per unit for rare classes.
    Class,
    /// One stratum per tenth of the score, with more verdicts per unit where there are few.
    Score,
    /// Four strata of equal size by margin; the least certain one gets 40% of the verdicts, the others 30%, 20%, 10%.
    Uncertain,
    /// One stratum per cluster of images with similar embeddings, around images that cover all others.
    Cover,
}

/// The parts that the images of a population fall into by their embeddings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageClusters {
    pub names: Vec<String>,
    /// By image.
    pub of_image: Vec<usize>,
}

impl ImageClusters {
    /// The number of clusters for this many verdicts.
    pub fn count_for(verdicts: usize) -> usize {
        (verdicts / VERDICTS_PER_CLASS).clamp(1, Self::MAX)
    }

    /// More take long, and say little about each.
    const MAX: usize = 200;

    /// The strata with units, and that of each unit.
    fn strata(&self, units: &[Unit]) -> (Vec<String>, Vec<usize>) {
        let cluster_of = |unit: &Unit| self.of_image[unit.image as usize];
        let present: std::collections::BTreeSet<usize> = units.iter().map(cluster_of).collect();
        let present: Vec<usize> = present.into_iter().collect();
        let stratum = |unit: &Unit| present.binary_search(&cluster_of(unit)).unwrap_or_default();
        (present.iter().map(|cluster| self.names[*cluster].clone()).collect(), units.iter().map(stratum).collect())
    }
}

/// A part of the population in which all units are equally likely to be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stratum {
    pub name: String,
    pub population: usize,
    pub sampled: usize,
}

impl Stratum {
    /// The probability of each of its units to be drawn.
    pub fn probability(&self) -> f64 {
        self.sampled as f64 / self.population as f64
    }
}

/// A unit in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Index into the population.
    pub unit: usize,
    pub stratum: usize,
}

/// A sample as a project stores it, with everything that an estimate needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewSample {
    pub by: SampleBy,
    pub seed: u64,
    /// Decides which boxes are in the population.
    pub view: ViewSettings,
    pub strata: Vec<Stratum>,
    /// In the order in which they should be judged.
    pub units: Vec<SampledUnit>,
}

/// A drawn unit, by name: indices change when images are added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledUnit {
    /// Relative to the root of the project.
    pub image: String,
    #[serde(rename = "box")]
    pub box_index: Option<u32>,
    pub stratum: usize,
}

impl ReviewSample {
    const PREFIX_IN_PROJECT: &str = "review/";

    /// The key under which a project stores the sample of a run, as JSON.
    pub fn name_in_project(run: u64) -> String {
        format!("{}{run}", Self::PREFIX_IN_PROJECT)
    }

    /// The run whose sample a project stores under this key.
    pub fn run_of_name(name: &str) -> Option<u64> {
        name.strip_prefix(Self::PREFIX_IN_PROJECT)?.parse().ok()
    }

    pub fn population(&self) -> usize {
        self.strata.iter().map(|stratum| stratum.population).sum()
    }
}

/// A sample with what it judges.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSample {
    pub sample: ReviewSample,
    /// In the order of the sample; `None` for predictions that no longer exist.
    pub units: Vec<Option<LoadedUnit>>,
}

/// A sampled box or image.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedUnit {
    pub image: SampleUri,
    pub unit: Unit,
    /// The box as the model returned it; `None` for an image.
    pub found: Option<Detection>,
}

/// Classes get strata of their own while each has about this many verdicts; rarer classes share one.
pub(super) const VERDICTS_PER_CLASS: usize = 5;
/// Fewer verdicts in a stratum show no variance.
pub(super) const LEAST_PER_STRATUM: usize = 2;

/// Draws `count` units. Any first part of the result is a sample of the same design. The same seed and a higher count
/// draw the same units and more, if the strata are the same.
pub fn draw(units: &[Unit], by: SampleBy, count: usize, seed: u64, labels: &LabelSet) -> (Vec<Stratum>, Vec<Drawn>) {
    draw_from(stratify(units, by, count, labels), by, count, seed)
}

/// As [`draw`], with the clusters as strata.
pub fn draw_from_clusters(
    units: &[Unit],
    clusters: &ImageClusters,
    count: usize,
    seed: u64,
) -> (Vec<Stratum>, Vec<Drawn>) {
    draw_from(clusters.strata(units), SampleBy::Cover, count, seed)
}

fn draw_from(
    (names, stratum_of): (Vec<String>, Vec<usize>),
    by: SampleBy,
    count: usize,
    seed: u64,
) -> (Vec<Stratum>, Vec<Drawn>) {
    let mut members = vec![Vec::new(); names.len()];
    for (unit, stratum) in stratum_of.into_iter().enumerate() {
        members[stratum].push(unit);
    }
    let sizes: Vec<usize> = members.iter().map(Vec::len).collect();
    let weights: Vec<f64> = match by {
        SampleBy::Uncertain => vec![4.0, 3.0, 2.0, 1.0],
        // Between equal precision for each stratum and the best for all (Bankier, Power Allocations, The American
        // Statistician 1988, with a power of 0.5).
        _ => sizes.iter().map(|size| (*size as f64).sqrt()).collect(),
    };
    let sampled = allocate(&sizes, &weights, count);
    let mut order = Vec::new();
    for (stratum, members) in members.iter_mut().enumerate() {
        let mut random = fastrand::Rng::with_seed(seed ^ (stratum as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for place in 0..sampled[stratum] {
            let chosen = random.usize(place..members.len());
            members.swap(place, chosen);
            let share = (place as f64 + random.f64()) / sampled[stratum] as f64;
            order.push((share, Drawn { unit: members[place], stratum }));
        }
    }
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    let strata = names.into_iter().zip(sizes).zip(sampled);
    let strata = strata.map(|((name, population), sampled)| Stratum { name, population, sampled });
    (strata.collect(), order.into_iter().map(|(_, drawn)| drawn).collect())
}

/// The names of the strata, none of them empty, and the stratum of each unit.
fn stratify(units: &[Unit], by: SampleBy, count: usize, labels: &LabelSet) -> (Vec<String>, Vec<usize>) {
    match by {
        // Clusters are known to the caller alone.
        SampleBy::Random | SampleBy::Cover => (vec!["all".to_owned()], vec![0; units.len()]),
        SampleBy::Class => by_class(units, (count / VERDICTS_PER_CLASS).max(1), labels),
        SampleBy::Score => {
            let is_there = |wanted: &usize| units.iter().any(|unit| tenth(unit.score) == *wanted);
            let tenths: Vec<usize> = (0..10).filter(is_there).collect();
            let name = |at: &usize| format!("score {:.1} to {:.1}", *at as f64 / 10.0, (*at + 1) as f64 / 10.0);
            let stratum = |unit: &Unit| tenths.binary_search(&tenth(unit.score)).unwrap_or_default();
            (tenths.iter().map(name).collect(), units.iter().map(stratum).collect())
        }
        SampleBy::Uncertain if units.len() < 4 * LEAST_PER_STRATUM => stratify(units, SampleBy::Random, count, labels),
        SampleBy::Uncertain => {
            let mut order: Vec<usize> = (0..units.len()).collect();
            order.sort_by(|one, other| units[*one].margin.total_cmp(&units[*other].margin).then(one.cmp(other)));
            let mut stratum_of = vec![0; units.len()];
            for (rank, unit) in order.into_iter().enumerate() {
                stratum_of[unit] = rank * 4 / units.len();
            }
            let names = ["least certain quarter", "second quarter", "third quarter", "most certain quarter"];
            (names.map(str::to_owned).to_vec(), stratum_of)
        }
    }
}

/// The tenth that contains the score.
pub(super) fn tenth(score: f32) -> usize {
    (decimal(score) * 10.0).clamp(0.0, 9.0) as usize
}

/// One stratum per class, most frequent first; the classes after the first `most` share the last stratum.
fn by_class(units: &[Unit], most: usize, labels: &LabelSet) -> (Vec<String>, Vec<usize>) {
    let mut counts = std::collections::BTreeMap::<u32, usize>::new();
    for unit in units {
        *counts.entry(unit.class).or_default() += 1;
    }
    let mut classes: Vec<(u32, usize)> = counts.into_iter().collect();
    classes.sort_by_key(|(class, count)| (std::cmp::Reverse(*count), *class));
    let own = if classes.len() > most { most - 1 } else { most };
    let mut names: Vec<String> = classes.iter().take(own).map(|(class, _)| labels.name(*class)).collect();
    if classes.len() > own {
        names.push("other classes".to_owned());
    }
    let position: std::collections::HashMap<u32, usize> =
        classes.iter().enumerate().map(|(at, (class, _))| (*class, at.min(own))).collect();
    (names, units.iter().map(|unit| position[&unit.class]).collect())
}

/// The number of verdicts per stratum: at least [`LEAST_PER_STRATUM`], even if that exceeds `count`; otherwise
/// proportional to the weights, by Webster's method: it never takes a verdict away when `count` grows.
pub(super) fn allocate(sizes: &[usize], weights: &[f64], count: usize) -> Vec<usize> {
    let mut given: Vec<usize> = sizes.iter().map(|size| LEAST_PER_STRATUM.min(*size)).collect();
    for _ in given.iter().sum::<usize>()..count {
        let claim = |at: usize| weights[at] / (given[at] as f64 + 0.5);
        let open = (0..sizes.len()).filter(|at| given[*at] < sizes[*at]);
        let Some(next) = open.max_by(|one, other| claim(*one).total_cmp(&claim(*other)).then(other.cmp(one))) else {
            break;
        };
        given[next] += 1;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(classes: &[(u32, usize)]) -> Vec<Unit> {
        let unit = |class| Unit { image: 0, box_index: Some(0), class, score: 0.75, margin: 0.25 };
        classes.iter().flat_map(|(class, count)| std::iter::repeat_n(unit(*class), *count)).collect()
    }

    #[test]
    fn rare_classes_get_more_verdicts_per_unit() {
        let (strata, drawn) = draw(&units(&[(1, 900), (2, 100)]), SampleBy::Class, 100, 1, &LabelSet::default());
        let sampled: Vec<usize> = strata.iter().map(|stratum| stratum.sampled).collect();
        assert_eq!((sampled, drawn.len()), (vec![75, 25], 100));
    }

    #[test]
    fn every_cluster_is_drawn_from() {
        let mut units = units(&[(1, 60)]);
        for (at, unit) in units.iter_mut().enumerate() {
            unit.image = at as u32 / 2;
        }
        let names = ["many", "none", "few"].map(str::to_owned).to_vec();
        let clusters = ImageClusters { names, of_image: (0..30).map(|image| if image < 25 { 0 } else { 2 }).collect() };
        let (strata, drawn) = draw_from_clusters(&units, &clusters, 20, 1);
        let sizes: Vec<(&str, usize)> = strata.iter().map(|one| (one.name.as_str(), one.population)).collect();
        assert_eq!((sizes, drawn.len()), (vec![("many", 50), ("few", 10)], 20));
        for one in drawn {
            assert_eq!(one.stratum, usize::from(units[one.unit].image >= 25));
        }
        assert_eq!([0, 9, 50, 99_999].map(ImageClusters::count_for), [1, 1, 10, 200]);
    }

    #[test]
    fn many_rare_classes_share_a_stratum() {
        let classes: Vec<(u32, usize)> = (0..50).map(|class| (class, 10)).collect();
        let (strata, _) = draw(&units(&classes), SampleBy::Class, 100, 1, &LabelSet::default());
        assert_eq!((strata.len(), strata[19].population), (20, 310));
    }

    #[test]
    fn small_population_is_drawn_completely() {
        for by in SampleBy::VARIANTS {
            let (_, mut drawn) = draw(&units(&[(1, 5), (2, 2)]), *by, 100, 1, &LabelSet::default());
            drawn.sort_by_key(|drawn| drawn.unit);
            let drawn: Vec<usize> = drawn.into_iter().map(|drawn| drawn.unit).collect();
            assert_eq!(drawn, (0..7).collect::<Vec<_>>(), "{by:?}");
        }
    }

    #[test]
    fn every_unit_is_drawn_equally_often() {
        let units = units(&[(1, 20)]);
        let mut times = [0; 20];
        for seed in 0..2000 {
            let (_, drawn) = draw(&units, SampleBy::Random, 5, seed, &LabelSet::default());
            for one in drawn {
                times[one.unit] += 1;
            }
        }
        // 2,000 * 5 / 20, and five standard deviations.
        assert!(times.iter().all(|times| (400..600).contains(times)), "{times:?}");
    }
}
