//! Names of classes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::LabelError;

/// The class names of a model by class id; clones share them. Ids can have gaps (COCO's 1..=90 name 80 classes).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSet {
    names: Arc<BTreeMap<u32, String>>,
}

impl LabelSet {
    /// Parses a label file: one class per line, either `id<TAB>name` on every line or only the name, counted from 0 and
    /// optionally preceded by its number on every line. Empty lines at the end are ignored.
    ///
    /// # Errors
    /// An empty name, an id that is not a number, a duplicate id, or a mixture of both forms.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        if let Some(labels) = Self::parse_numbered(text) {
            return Ok(labels);
        }
        let text = text.trim_end();
        let with_ids = text.lines().next().is_some_and(|line| line.contains('\t'));
        let mut names = BTreeMap::new();
        for (position, line) in text.lines().enumerate() {
            let error = |reason: String| LabelError { line: position + 1, reason };
            let (id, name) = match (with_ids, line.split_once('\t')) {
                (true, Some((id, name))) => {
                    let id = id.trim().parse();
                    (id.map_err(|_| error(format!("“{line}” does not begin with a class id")))?, name)
                }
                (true, None) => {
                    return Err(error("has no tab between class id and name".to_owned()));
                }
                (false, Some(_)) => {
                    return Err(error("has a tab, unlike the first line".to_owned()));
                }
                (false, None) => (position as u32, line),
            };
            if name.trim().is_empty() {
                return Err(error("the name is empty".to_owned()));
            }
            if names.insert(id, name.trim().to_owned()).is_some() {
                return Err(error(format!("class id {id} is a duplicate")));
            }
        }
        Ok(Self { names: Arc::new(names) })
    }

    /// Parses a label file of Teachable Machine: `0 Rock`, `1 Paper` and so on, without gaps. `None` for anything else.
    pub fn parse_numbered(text: &str) -> Option<Self> {
        let lines = text.trim_end().lines().enumerate();
        let names: Self = lines
            .map(|(position, line)| {
                let name = line.strip_prefix(&position.to_string())?.strip_prefix(' ')?.trim();
                (!name.is_empty()).then(|| (position as u32, name.to_owned()))
            })
            .collect::<Option<_>>()?;
        (names.len() > 1).then_some(names)
    }

    /// Parses a label map of TensorFlow Object Detection (`.pbtxt`): one `item` per class with its `id` and its
    /// `display_name`, or else its `name`. Other fields of an item are skipped.
    ///
    /// # Errors
    /// Text in another format, an item without an id or name, or a duplicate id.
    pub fn parse_label_map(text: &str) -> Result<Self, LabelError> {
        let names = super::label_map::parse(text)?;
        Ok(Self { names: Arc::new(names) })
    }

    /// The text of a label file, as [`Self::parse`] reads it.
    pub fn to_text(&self) -> String {
        let lines = self.iter().map(|(id, name)| format!("{id}\t{}\n", name.replace(['\r', '\n'], " ")));
        lines.collect()
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn get(&self, class_id: u32) -> Option<&str> {
        self.names.get(&class_id).map(String::as_str)
    }

    /// The name, or `class 17` if the set has none.
    pub fn name(&self, class_id: u32) -> String {
        self.get(class_id).map_or_else(|| format!("class {class_id}"), str::to_owned)
    }

    /// Ids and names, lowest id first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.names.iter().map(|(id, name)| (*id, name.as_str()))
    }

    /// The same names in the same order, with ids counted from 0.
    pub fn counted_from_0(&self) -> Self {
        (0..).zip(self.names.values().cloned()).collect()
    }

    /// The union with `more`; for ids in both, the name in `self` wins.
    pub fn with_more(&self, more: &Self) -> Self {
        let both = more.iter().chain(self.iter());
        both.map(|(id, name)| (id, name.to_owned())).collect()
    }

    /// The class that a person named: people type `Dog` for the class `dog`. The exact name wins; `None` if several
    /// classes differ from `name` only in case. Spaces around a name are part of it.
    pub fn find(&self, name: &str) -> Option<(u32, &str)> {
        if let Some(exact) = self.iter().find(|(_, label)| *label == name) {
            return Some(exact);
        }
        let lowercase = name.to_lowercase();
        let mut similar = self.iter().filter(|(_, label)| label.to_lowercase() == lowercase);
        let first = similar.next()?;
        similar.all(|(_, label)| label == first.1).then_some(first)
    }

    /// The class that a person means by a name: one that was `given` before under exactly this name, a class of this set,
    /// “class 7” for 7, or a given one in another case. Otherwise it is new.
    pub fn known_class<'n>(&'n self, name: &'n str, given: impl Iterator<Item = &'n str> + Clone) -> &'n str {
        let number = name.parse::<u32>().ok();
        let numbered = || self.find(&format!("class {}", number?));
        let of_set = || self.find(name).or_else(numbered).map(|(_, known)| known);
        let lowercase = name.to_lowercase();
        let exact = given.clone().find(|known| *known == name);
        let similar = || { given }.find(|known| known.to_lowercase() == lowercase);
        exact.or_else(of_set).or_else(similar).unwrap_or(name)
    }

    /// The id of [`Self::find`].
    pub fn id_of(&self, name: &str) -> Option<u32> {
        self.find(name).map(|(class_id, _)| class_id)
    }

    /// The highest class id; `None` for an empty set.
    pub fn max_id(&self) -> Option<u32> {
        self.names.last_key_value().map(|(id, _)| *id)
    }
}

/// For duplicate ids, the last name wins.
impl FromIterator<(u32, String)> for LabelSet {
    fn from_iter<I: IntoIterator<Item = (u32, String)>>(names: I) -> Self {
        Self { names: Arc::new(names.into_iter().collect()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_counted_from_zero() {
        let labels = LabelSet::parse("cat\ndog\n\n").unwrap();
        assert_eq!(labels.get(1), Some("dog"));
        assert_eq!(labels.len(), 2);
    }

    #[test]
    fn leading_numbers_are_not_part_of_names() {
        let labels = LabelSet::parse("0 Rock\n1 Paper\n2 Big scissors\n").unwrap();
        assert_eq!(labels.iter().map(|(_, name)| name).collect::<Vec<_>>(), ["Rock", "Paper", "Big scissors"]);
        for text in ["1 euro\n2 euro\n", "0 Rock\n1\n", "0 Rock\nPaper\n", "0 Rock"] {
            let names = text.trim_end().lines();
            let labels = LabelSet::parse(text).unwrap();
            assert!(names.eq(labels.iter().map(|(_, name)| name)), "{labels:?}");
        }
    }

    #[test]
    fn ids_may_have_gaps() {
        let labels = LabelSet::parse("1\tperson\n90\ttoothbrush\n").unwrap();
        assert_eq!(labels.get(90), Some("toothbrush"));
        assert_eq!(labels.name(12), "class 12");
        assert_eq!(labels.max_id(), Some(90));
        assert_eq!(LabelSet::parse(&labels.to_text()).unwrap(), labels);
    }

    #[test]
    fn class_is_found_in_another_case_unless_several_match() {
        let labels = LabelSet::parse("cat\nCAT\nDog\ncrane\ncrane\n").unwrap();
        for (name, id) in
            [("cat", Some(0)), ("CAT", Some(1)), ("Cat", None), ("dog", Some(2)), ("Crane", Some(3)), (" cat", None)]
        {
            assert_eq!(labels.id_of(name), id, "{name}");
        }
    }

    #[test]
    fn typed_class_is_a_known_one_in_any_case() {
        let labels = LabelSet::parse("cat\nclass 7\n8").unwrap();
        let given = ["Fox", "CAT", "7b"];
        for (name, known) in [
            ("Cat", "cat"),
            ("CAT", "CAT"),
            ("fox", "Fox"),
            ("7", "class 7"),
            ("Class 7", "class 7"),
            ("8", "8"),
            ("9", "9"),
            ("7B", "7b"),
            ("Owl", "Owl"),
        ] {
            assert_eq!(labels.known_class(name, given.iter().copied()), known, "{name}");
        }
    }

    #[test]
    fn invalid_line_is_named() {
        for (text, line) in [("1\ta\nb", 2), ("a\n\nb", 2), ("1\ta\n1\tb", 2), ("x\ta", 1)] {
            assert_eq!(LabelSet::parse(text).unwrap_err().line, line, "{text:?}");
        }
    }
}
