//! The agreement of two reviewers beyond chance.

use std::collections::BTreeMap;

use crate::domain::Pair;

/// The agreement on the boxes or images of a class, or on all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Kappa {
    /// `None` if all verdicts are the same.
    pub kappa: Option<f64>,
    pub pairs: usize,
}

/// The kappa of all pairs, and that of each class (`None` for the images of a detector), by the kinds of verdict.
///
/// Added boxes and labels do not count: agreement that there is no object leaves no verdict, and without it kappa is
/// undefined (Hripcsak and Rothschild, Agreement, the F-Measure, and Reliability in Information Retrieval, JAMIA 2005).
pub fn kappas(pairs: &[Pair]) -> (Kappa, BTreeMap<Option<&str>, Kappa>) {
    let mut all = Vec::new();
    let mut by_class = BTreeMap::<Option<&str>, Vec<[&str; 2]>>::new();
    for pair in pairs.iter().filter(|pair| !pair.is_undetected()) {
        let words = pair.verdicts.each_ref().map(|verdict| -> &'static str { verdict.into() });
        all.push(words);
        by_class.entry(pair.class.as_deref()).or_default().push(words);
    }
    let kappa = |words: Vec<[&str; 2]>| Kappa {
        pairs: words.len(),
        kappa: cohens_kappa(words.into_iter().map(<(&str, &str)>::from)),
    };
    (kappa(all), by_class.into_iter().map(|(class, words)| (class, kappa(words))).collect())
}

/// Cohen's kappa of pairs of answers (Cohen, A Coefficient of Agreement for Nominal Scales, Educational and
/// Psychological Measurement 1960): 1 for full agreement, 0 for that of chance. `None` if chance alone would agree on
/// everything, as with a single answer.
pub fn cohens_kappa<A: Ord>(pairs: impl IntoIterator<Item = (A, A)>) -> Option<f64> {
    let mut answers = BTreeMap::<A, [f64; 2]>::new();
    let (mut count, mut equal) = (0.0, 0.0);
    for (first, second) in pairs {
        count += 1.0;
        equal += f64::from(u8::from(first == second));
        answers.entry(first).or_default()[0] += 1.0;
        answers.entry(second).or_default()[1] += 1.0;
    }
    let chance: f64 = answers.values().map(|[first, second]| first * second).sum::<f64>() / (count * count);
    (chance < 1.0).then(|| (equal / count - chance) / (1.0 - chance))
}
