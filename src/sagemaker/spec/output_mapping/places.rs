//! The values in an output by position, so that the fields of a mapping can be selected instead of typed.

use super::{JsonPointer, MappingField};

/// A position in an output, and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPlace {
    pub pointer: JsonPointer,
    pub holds: PlaceContent,
}

/// The kind of a value, as far as it matters for a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceContent {
    Number,
    Text,
    /// Numbers, and whether each of them is in `0.0..=1.0`.
    Numbers {
        count: usize,
        are_parts: bool,
    },
    Texts {
        count: usize,
    },
    /// Rows of four numbers, as in boxes, and whether each number is in `0.0..=1.0`.
    Rows {
        count: usize,
        are_parts: bool,
    },
}

impl JsonPlace {
    /// Whether a field of a mapping can be read from here.
    pub fn suits(&self, field: MappingField) -> bool {
        use PlaceContent::{Number, Numbers, Rows, Text, Texts};
        matches!(
            (field, self.holds),
            (MappingField::Scores | MappingField::Classes, Number | Numbers { .. })
                | (MappingField::Classes, Text | Texts { .. })
                | (MappingField::Boxes, Rows { .. } | Numbers { count: 4, .. })
                | (MappingField::Count | MappingField::Best, Number | Numbers { count: 1, .. })
        )
    }

    /// The number of values at this place.
    pub fn count(&self) -> usize {
        match self.holds {
            PlaceContent::Number | PlaceContent::Text => 1,
            PlaceContent::Numbers { count, .. } | PlaceContent::Texts { count } | PlaceContent::Rows { count, .. } => {
                count
            }
        }
    }

    /// Whether each number here is in `0.0..=1.0`; true if there are none.
    pub fn are_parts(&self) -> bool {
        match self.holds {
            PlaceContent::Numbers { are_parts, .. } | PlaceContent::Rows { are_parts, .. } => are_parts,
            PlaceContent::Number | PlaceContent::Text | PlaceContent::Texts { .. } => true,
        }
    }

    /// Whether the last named part of the pointer contains one of these words.
    pub fn is_called(&self, words: &[&str]) -> bool {
        let parts = self.pointer.as_str().rsplit('/');
        let is_name = |part: &&str| *part != "*" && part.parse::<usize>().is_err();
        let name = parts.filter(|part| !part.is_empty()).find(is_name);
        let name = name.unwrap_or_default().to_lowercase();
        words.iter().any(|word| name.contains(word))
    }
}

impl PlaceContent {
    /// The kind as text: “1001 numbers”.
    pub fn words(self) -> String {
        let several = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        match self {
            Self::Number => "a number".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Numbers { count, .. } => several(count, "number", "numbers"),
            Self::Texts { count } => several(count, "string", "strings"),
            Self::Rows { count, .. } => {
                format!("{} of 4 numbers", several(count, "row", "rows"))
            }
        }
    }
}
