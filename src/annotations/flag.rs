//! Flags of objects, such as `iscrowd` and `difficult`.

use super::collect::Refusal;
use super::json::Scalar;
use crate::domain::AnnotationProblemKind as Kind;

/// Whether a flag is set. The words are those of common tools: pandas writes a missing flag as `nan` or `None`, Pascal
/// VOC has `Unspecified`, and Open Images uses -1 for an unknown flag. Every other nonzero number counts as set, as in
/// pycocotools.
///
/// # Errors
/// It is neither a number nor one of the words. `key` is the name of the flag.
pub(super) fn flag(key: &str, value: &Scalar) -> Result<bool, Refusal> {
    let is_set = match value {
        Scalar::Missing => Some(false),
        Scalar::Bool(value) => Some(*value),
        Scalar::Text(text) => from_text(text),
        Scalar::Other => None,
        Scalar::Integer(_) | Scalar::Float(_) => value.number().map(from_number),
    };
    is_set.ok_or_else(|| {
        let reason = format!("has {value} as {key}; a flag must be 0 or 1, false or true, no or yes");
        (Kind::Unreadable, reason)
    })
}

fn from_number(number: f64) -> bool {
    !number.is_nan() && number != 0.0 && number != -1.0
}

fn from_text(text: &str) -> Option<bool> {
    let text = text.trim().to_lowercase();
    match text.as_str() {
        "" | "-" | "false" | "f" | "no" | "n" | "none" | "null" | "na" | "n/a" | "<na>" | "unspecified" => Some(false),
        "true" | "t" | "yes" | "y" => Some(true),
        text => text.parse().ok().map(from_number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_numbers_or_the_usual_words() {
        let text = |text: &str| Scalar::Text(text.to_owned());
        let unset = ["", "0", "0.0", "-1", "nan", "NaN", "None", "null", "N/A", "<NA>", "n", "F", "-", "no", "False"];
        for value in unset.into_iter().chain([" 0 ", "Unspecified"]).map(text) {
            assert_eq!(flag("difficult", &value), Ok(false), "{value}");
        }
        for value in ["1", "1.0", "2", "true", "True", "T", "Y", "yes"].map(text) {
            assert_eq!(flag("difficult", &value), Ok(true), "{value}");
        }
        for (value, is_set) in [
            (Scalar::Missing, false),
            (Scalar::Bool(true), true),
            (Scalar::Integer(0), false),
            (Scalar::Integer(-1), false),
            (Scalar::Float(1.0), true),
        ] {
            assert_eq!(flag("iscrowd", &value), Ok(is_set), "{value}");
        }
        for value in [text("maybe"), text("0,0"), Scalar::Other] {
            let (kind, reason) = flag("iscrowd", &value).unwrap_err();
            assert_eq!(kind, Kind::Unreadable);
            assert!(reason.contains("as iscrowd; a flag must be 0 or 1"), "{reason}");
        }
    }
}
