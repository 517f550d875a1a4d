//! Whether a count is larger than by chance, for many counts.

/// The hypergeometric distribution of populations up to a certain size.
#[derive(Debug)]
pub(super) struct Hypergeometric {
    /// `ln(n!)` by n.
    ln_factorials: Vec<f64>,
}

/// A population, the successes in it, and the size of a sample drawn without replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Draw {
    pub(super) population: usize,
    pub(super) successes: usize,
    pub(super) sample: usize,
}

impl Draw {
    /// The mean number of successes in the sample.
    pub(super) fn expected(self) -> f64 {
        self.sample as f64 * self.successes as f64 / self.population.max(1) as f64
    }
}

impl Hypergeometric {
    /// For populations up to this size.
    pub(super) fn new(largest: usize) -> Self {
        let (mut sum, mut lost) = (0.0, 0.0);
        // Kahan's sum, because a hundred thousand logarithms add up their errors.
        let next = |n: usize| {
            if n > 0 {
                let term = (n as f64).ln() - lost;
                let total: f64 = sum + term;
                lost = (total - sum) - term;
                sum = total;
            }
            sum
        };
        Self { ln_factorials: (0..=largest).map(next).collect() }
    }

    /// The probability of at least `found` successes (Fisher's exact test, one-sided). `draw` is within the population.
    pub(super) fn at_least(&self, found: usize, draw: Draw) -> f64 {
        let Draw { population, successes, sample } = draw;
        let fewest = (sample + successes).saturating_sub(population);
        let most = sample.min(successes);
        if found <= fewest {
            return 1.0;
        }
        if found > most {
            return 0.0;
        }
        // Each sum starts at its largest term.
        if found as f64 > draw.expected() {
            self.sum(found, draw, |at| (at < most).then_some(at + 1)).min(1.0)
        } else {
            (1.0 - self.sum(found - 1, draw, |at| (at > fewest).then(|| at - 1))).clamp(0.0, 1.0)
        }
    }

    /// The sum of probabilities from `first` on.
    fn sum(&self, first: usize, draw: Draw, next: impl Fn(usize) -> Option<usize>) -> f64 {
        let mut sum = 0.0;
        let mut at = Some(first);
        while let Some(found) = at {
            let term = self.probability(found, draw);
            sum += term;
            if term <= sum * f64::EPSILON * 0.01 {
                break;
            }
            at = next(found);
        }
        sum
    }

    fn probability(&self, found: usize, Draw { population, successes, sample }: Draw) -> f64 {
        let ln_choose = |all: usize, some: usize| {
            self.ln_factorials[all] - self.ln_factorials[some] - self.ln_factorials[all - some]
        };
        let ways = ln_choose(successes, found) + ln_choose(population - successes, sample - found);
        (ways - ln_choose(population, sample)).exp()
    }
}

/// The q-value of each p-value: the smallest false-discovery rate at which it is a discovery (Benjamini and Hochberg,
/// 1995, <https://doi.org/10.1111/j.2517-6161.1995.tb02031.x>).
pub(super) fn q_values(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut q_values = vec![1.0; p_values.len()];
    let mut lowest = 1.0_f64;
    for (place, at) in order.into_iter().enumerate().rev() {
        lowest = lowest.min(p_values[at] * p_values.len() as f64 / (place + 1) as f64);
        q_values[at] = lowest;
    }
    q_values
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// As scipy and statsmodels compute them: `tests/evaluation/make_chance.py`.
    #[test]
    fn p_and_q_values_match_scipy_and_statsmodels() {
        const CLOSE: f64 = 1e-9;
        let text = include_str!("../../tests/evaluation/chance.json");
        let cases: Value = serde_json::from_str(text).unwrap();
        let numbers = |name: &str| -> Vec<f64> { serde_json::from_value(cases[name].clone()).unwrap() };
        let draws: Vec<[usize; 4]> = serde_json::from_value(cases["draws"].clone()).unwrap();
        assert!(draws.len() > 200);
        let distribution = Hypergeometric::new(draws.iter().map(|draw| draw[0]).max().unwrap());
        let found: Vec<f64> = draws
            .iter()
            .map(|&[population, successes, sample, found]| {
                distribution.at_least(found, Draw { population, successes, sample })
            })
            .collect();
        for ((draw, p), expected) in draws.iter().zip(&found).zip(numbers("p")) {
            let error = (p - expected).abs() / expected.max(1e-290);
            assert!(error < CLOSE, "p of {draw:?}: {p}, expected {expected}, relative tolerance {CLOSE}");
        }
        for (q, expected) in q_values(&numbers("p")).iter().zip(numbers("q")) {
            assert!((q - expected).abs() <= CLOSE * expected, "q: {q}, expected {expected}");
        }
        assert!(q_values(&[]).is_empty());
    }
}
