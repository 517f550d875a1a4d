//! Amounts of data.

/// `bytes` in the largest unit that gives at least 1, with two or three digits: `512 B`, `9.8 MiB`, `98 MiB`.
pub fn human_bytes(bytes: u64) -> String {
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        // 1023.5 would round to 1024.
        if amount < 1023.5 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    // 9.95 would round to 10.0.
    if unit == "B" || amount >= 9.95 { format!("{amount:.0} {unit}") } else { format!("{amount:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_suitable_unit() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10 * 1024 - 1, "10 KiB"),
            (102_442_452, "98 MiB"),
            (1024 * 1024 * 1024 - 1, "1.0 GiB"),
        ] {
            assert_eq!(human_bytes(bytes), expected, "{bytes}");
        }
    }
}
