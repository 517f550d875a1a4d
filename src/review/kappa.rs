//! The agreement of two reviewers beyond chance.

use std::collections::BTreeMap;

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
