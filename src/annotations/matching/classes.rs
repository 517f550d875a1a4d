//! Matches the classes of two sides.

use std::collections::HashMap;

use serde::Serialize;

use crate::domain::{LabelSet, TruthLabel};

/// One row per class of one side, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassMatches {
    pub rows: Vec<ClassRow>,
    /// Corrected classes that this side does not have: one list of corrections can serve several models.
    pub unused_corrections: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassRow {
    pub class: TruthLabel,
    /// The index of the matching class on the other side, and the reason.
    pub matched: Option<(u32, ClassReason)>,
}

/// Most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassReason {
    /// Set by the user.
    Correction,
    /// Equal names, ignoring case, spaces, `_`, `-` and the encoding of accents, unless a side has classes that differ
    /// only in these.
    Name,
    /// Equal numbers, and at least one side without a name.
    Number,
}

/// Corrections by the user: one `from,to` per line of a CSV file, names or numbers. An empty `to` leaves the class
/// without a match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassCorrections {
    rows: Vec<Correction>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Correction {
    line: u64,
    from: String,
    to: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} {reason}")]
pub struct CorrectionsError {
    /// From 1.
    pub line: u64,
    /// To follow the line.
    pub reason: String,
}

impl ClassReason {
    /// To follow “80 classes”.
    pub fn text(self) -> &'static str {
        match self {
            Self::Correction => "by correction",
            Self::Name => "by name",
            Self::Number => "by number",
        }
    }
}

pub fn classes_of(labels: &LabelSet) -> Vec<TruthLabel> {
    let class = |(id, name): (u32, &str)| TruthLabel { number: Some(id.into()), name: Some(name.to_owned()) };
    labels.iter().map(class).collect()
}

impl ClassMatches {
    /// Matches by correction, then name, then number. Of several classes with one name, the one with the same number is
    /// used, or else the first.
    ///
    /// # Errors
    /// A correction maps to a class that the other side does not have.
    pub fn between(
        from: &[TruthLabel],
        to: &[TruthLabel],
        corrections: &ClassCorrections,
    ) -> Result<Self, CorrectionsError> {
        let (sources, targets) = (Targets::new(from), Targets::new(to));
        let row = |class: &TruthLabel| ClassRow { class: class.clone(), matched: targets.find(class, &sources) };
        let mut rows: Vec<ClassRow> = from.iter().map(row).collect();
        let mut unused_corrections = Vec::new();
        for correction in &corrections.rows {
            let Some(from) = sources.named(&correction.from) else {
                unused_corrections.push(correction.from.clone());
                continue;
            };
            rows[from as usize].matched = match correction.to.as_str() {
                "" => None,
                to => {
                    let index =
                        targets.named(to).ok_or_else(|| correction.unknown(to, "the classes to match with do"))?;
                    Some((index, ClassReason::Correction))
                }
            };
        }
        Ok(Self { rows, unused_corrections })
    }

    /// The index on the other side.
    pub fn index(&self, class: u32) -> Option<u32> {
        let row = self.rows.get(class as usize)?;
        row.matched.map(|(index, _)| index)
    }

    pub fn unmatched(&self) -> impl Iterator<Item = &TruthLabel> {
        self.rows.iter().filter(|row| row.matched.is_none()).map(|row| &row.class)
    }
}

/// The classes of a side, indexed for lookup.
struct Targets<'t> {
    classes: &'t [TruthLabel],
    by_name: HashMap<&'t str, Vec<u32>>,
    by_spelling: HashMap<String, Vec<u32>>,
    by_number: HashMap<i64, u32>,
}

impl<'t> Targets<'t> {
    fn new(classes: &'t [TruthLabel]) -> Self {
        let mut targets =
            Self { classes, by_name: HashMap::new(), by_spelling: HashMap::new(), by_number: HashMap::new() };
        for (index, class) in (0_u32..).zip(classes) {
            if let Some(name) = class.name.as_deref() {
                targets.by_name.entry(name).or_default().push(index);
                targets.by_spelling.entry(spelling(name)).or_default().push(index);
            }
            if let Some(number) = class.number {
                targets.by_number.entry(number).or_insert(index);
            }
        }
        targets
    }

    /// `class` is one of the classes of `sources`.
    fn find(&self, class: &TruthLabel, sources: &Self) -> Option<(u32, ClassReason)> {
        let same_name = class.name.as_deref().and_then(|name| {
            let named = self.by_name.get(name).or_else(|| {
                // “Cat” differs from “cat” if a side has both.
                sources.spelt(name)?;
                self.spelt(name)
            })?;
            let same_number = named.iter().find(|&&index| self.classes[index as usize].number == class.number);
            same_number.or(named.first()).copied()
        });
        if let Some(index) = same_name {
            return Some((index, ClassReason::Name));
        }
        let index = *self.by_number.get(&class.number?)?;
        // Different names are different classes, whatever their numbers.
        let is_nameless = class.name.is_none() || self.classes[index as usize].name.is_none();
        is_nameless.then_some((index, ClassReason::Number))
    }

    /// The classes with this spelling, if they all have the same name.
    fn spelt(&self, name: &str) -> Option<&Vec<u32>> {
        let found = self.by_spelling.get(&spelling(name))?;
        let name_of = |index: u32| self.classes[index as usize].name.as_deref();
        found.iter().all(|index| name_of(*index) == name_of(found[0])).then_some(found)
    }

    /// The class with this name or number, as the user writes it.
    fn named(&self, name: &str) -> Option<u32> {
        let named = self.by_name.get(name).or_else(|| self.spelt(name));
        named.and_then(|named| named.first()).or_else(|| self.by_number.get(&name.parse().ok()?)).copied()
    }
}

/// A name in normalized form, for inexact comparison.
pub(super) fn spelling(name: &str) -> String {
    let letter = |letter: char| if matches!(letter, '_' | '-') { ' ' } else { letter };
    let spaced: String = super::composed(name).chars().map(letter).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

impl Correction {
    fn unknown(&self, name: &str, side: &str) -> CorrectionsError {
        CorrectionsError { line: self.line, reason: format!("contains the class “{name}”, which {side} not have") }
    }
}

impl ClassCorrections {
    /// The corrections of these classes, and the others.
    pub fn about(&self, classes: &[TruthLabel]) -> (Self, Self) {
        let targets = Targets::new(classes);
        let (of_these, others) = self.rows.iter().cloned().partition(|row| targets.named(&row.from).is_some());
        (Self { rows: of_these }, Self { rows: others })
    }

    /// # Errors
    /// A correction maps to a ground-truth class that is not among these.
    pub fn check_targets(&self, truth: &[TruthLabel]) -> Result<(), CorrectionsError> {
        let targets = Targets::new(truth);
        let unknown = self.rows.iter().find(|row| !row.to.is_empty() && targets.named(&row.to).is_none());
        unknown.map_or(Ok(()), |row| Err(row.unknown(&row.to, "the ground truth does")))
    }

    /// Replaces an earlier correction of the class.
    pub fn set(&mut self, from: String, to: String) {
        self.rows.retain(|row| row.from != from);
        let line = self.rows.len() as u64 + 1;
        self.rows.push(Correction { line, from, to });
    }

    /// The class and the one that it is, as a person named them.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.rows.iter().map(|row| (row.from.as_str(), row.to.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Parses CSV with one `from` and `to` per line; a first line `from,to` is a header.
    ///
    /// # Errors
    /// A line without exactly two fields, with an empty `from`, or with a repeated one.
    pub fn parse(text: &str) -> Result<Self, CorrectionsError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rows: Vec<Correction> = Vec::new();
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        // Line by line: an unclosed quote must not make the following lines part of a name.
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let failed = |reason: String| CorrectionsError { line, reason };
            if text.matches('"').count() % 2 == 1 {
                return Err(failed("has a quote that is not closed".to_owned()));
            }
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(text.as_bytes());
            let mut record = csv::StringRecord::new();
            reader.read_record(&mut record).map_err(|error| failed(format!("is not CSV: {error}")))?;
            match record.iter().collect::<Vec<_>>()[..] {
                ["from", "to"] if rows.is_empty() => {}
                ["", _] => return Err(failed("has no class before the comma".to_owned())),
                [from, to] => {
                    if rows.iter().any(|row| row.from == from) {
                        return Err(failed(format!("repeats “{from}”")));
                    }
                    rows.push(Correction { line, from: from.to_owned(), to: to.to_owned() });
                }
                _ => {
                    return Err(failed(
                        "needs two fields separated by a comma: a class and the class to match it with".to_owned(),
                    ));
                }
            }
        }
        Ok(Self { rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(number: Option<i64>, name: &str) -> TruthLabel {
        TruthLabel { number, name: Some(name.to_owned()).filter(|name| !name.is_empty()) }
    }

    #[track_caller]
    fn check(from: &[TruthLabel], to: &[TruthLabel], corrections: &str, expected: &[Option<(u32, ClassReason)>]) {
        let corrections = ClassCorrections::parse(corrections).unwrap();
        let matches = ClassMatches::between(from, to, &corrections).unwrap();
        let matched: Vec<_> = matches.rows.iter().map(|row| row.matched).collect();
        assert_eq!(matched, expected);
    }

    #[test]
    fn names_come_before_numbers() {
        use ClassReason::{Name, Number};
        let to = [class(Some(0), "person"), class(Some(1), "Traffic Light"), class(Some(2), ""), class(Some(3), "cat")];
        let from = [
            class(Some(3), "person"),
            class(Some(9), "traffic_light"),
            class(Some(2), "car"),
            class(Some(3), "dog"),
            class(Some(0), ""),
            class(None, "unknown"),
        ];
        let expected = [Some((0, Name)), Some((1, Name)), Some((2, Number)), None, Some((0, Number)), None];
        check(&from, &to, "", &expected);
    }

    #[test]
    fn distinct_spellings_on_one_side_are_kept() {
        use ClassReason::Name;
        let name = |name: &str| class(None, name);
        let both = [name("Cat"), name("cat")];
        check(&[name("cat"), name("Cat"), name("CAT")], &both, "", &[Some((1, Name)), Some((0, Name)), None]);
        check(&both, &[name("cat")], "", &[None, Some((0, Name))]);
        check(&[name("CAFE\u{301}")], &[name("caf\u{e9}")], "", &[Some((0, Name))]);
        let corrections = ClassCorrections::parse("dog,CAT").unwrap();
        assert!(ClassMatches::between(&[name("dog")], &both, &corrections).is_err());
    }

    #[test]
    fn duplicate_names_match_by_number() {
        let cranes = [class(Some(134), "crane"), class(Some(517), "crane")];
        check(
            &[class(Some(517), "crane"), class(None, "crane")],
            &cranes,
            "",
            &[Some((1, ClassReason::Name)), Some((0, ClassReason::Name))],
        );
    }

    #[test]
    fn corrections_override_names() {
        let from = [class(Some(1), "auto"), class(Some(2), "cat"), class(Some(3), "dog")];
        let to = [class(Some(7), "car"), class(Some(8), "cat"), class(Some(9), "")];
        check(
            &from,
            &to,
            "\u{feff}from,to\r\nauto, car\r\ncat,\r\n3,9\r\n",
            &[Some((0, ClassReason::Correction)), None, Some((2, ClassReason::Correction))],
        );
    }

    #[test]
    fn wrong_correction_is_refused_with_its_line() {
        for (text, line) in [
            ("a,b,c", 1),
            ("cat,1\ncat,2", 2),
            ("from,to\n,cat", 2),
            ("a", 1),
            ("cat,1\r\n\r\ncat,2\r\n", 3),
            ("cat,1\ndog,\"2\nbird,3\n", 2),
            ("cat,1\rdog,2\r\rcat,3", 4),
        ] {
            assert_eq!(ClassCorrections::parse(text).unwrap_err().line, line, "{text:?}");
        }
        let cat = [class(Some(1), "cat")];
        let corrections = ClassCorrections::parse("cat,1\nbird,cat\ncat 2,lion").unwrap();
        let matches = ClassMatches::between(&cat, &cat, &corrections).unwrap();
        assert_eq!(matches.unused_corrections, ["bird", "cat 2"]);
        let corrections = ClassCorrections::parse("bird,cat\ncat,lion").unwrap();
        let error = ClassMatches::between(&cat, &cat, &corrections).unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.reason.contains("lion"), "{error}");
    }
}
