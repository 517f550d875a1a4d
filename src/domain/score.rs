//! Scores: 32-bit floats in models and projects, decimal numbers in files and for people.

/// The decimal number that a 32-bit float is written as: 0.3, not 0.30000001192092896. A score or threshold is then the
/// same number whether it comes from a project or a file.
pub fn decimal(score: f32) -> f64 {
    score.to_string().parse().unwrap_or_else(|_| f64::from(score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_round_to_decimal_hundredths() {
        for hundredth in 0..=100 {
            let written = f64::from(hundredth) / 100.0;
            assert_eq!(decimal(written as f32), written);
        }
    }

    #[test]
    fn decimal_numbers_keep_the_order_of_floats() {
        let mut score = 0.3_f32;
        for _ in 0..10_000 {
            let next = score.next_up();
            assert!(decimal(score) < decimal(next) && decimal(score) as f32 == score, "{score}");
            score = next;
        }
        assert!(decimal(f32::NAN).is_nan());
    }
}
