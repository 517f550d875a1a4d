//! The language of the search field.
//!
//! ```text
//! class:cat score>0.8 !verdict
//! ```
//!
//! A word matches names. `key:value` or `score>0.8` match other properties; `!` negates the next term; a space means
//! “and”, `or` means “or”, and parentheses group. A `score` or `boxes` next to a `class` applies to the boxes of that
//! class.

mod box_term;
mod capture_term;
mod complete;
mod key;
mod parse;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use strsim::levenshtein;

pub use self::box_term::{BoxQuery, BoxTerm, OutcomeWord};
pub use complete::{
    Completion, KnownNames, change_key, change_term, class_term, complete, folder_in, folder_term, has_term, with_term,
    without_comparison, without_folders, without_term,
};

pub use self::box_term::ClassName;
use self::key::{KEYS, Takes, Term, Value};
use super::candidate::Candidate;
use super::outcomes::OutcomeClass;
use crate::domain::{GeoPoint, LabelSet, ModelTask, SampleId};

/// The images of each class change between two runs, lowest id first, by [`change_key`]; under an empty key, all images
/// on which the runs differ.
pub type ClassChanges = BTreeMap<String, Arc<[SampleId]>>;

/// More would not be read, and each costs time in every frame of the window.
const MAX_WARNINGS: usize = 5;
/// The longest part of a word that a message shows.
const SHOWN_LETTERS: usize = 40;

/// A condition on images. The default passes all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    pub root: Option<Node>,
}

/// Why a text is not a valid query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryError {
    /// The range in the text, in bytes.
    pub at: Range<usize>,
    /// What is wrong, and what to write instead.
    pub message: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Term(Term),
}

/// Numbers from `low` to `high`, with each end included or not. As precise as scores are, so that `0.8` equals a score
/// of 0.8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub low: f32,
    pub includes_low: bool,
    pub high: f32,
    pub includes_high: bool,
}

impl Query {
    /// Longer text is rejected unread, because each image is compared with every name in it.
    pub const MAX_LETTERS: usize = 10_000;
    /// The capacity of a search field. Far above `MAX_LETTERS`, so that a long pasted text is rejected as too long
    /// instead of being cut to one with another meaning.
    pub const MAX_FIELD_LETTERS: usize = 2 * Self::MAX_LETTERS;

    /// Parses a query; an empty text passes all images.
    ///
    /// # Errors
    /// Text that is invalid, too long or nested too deeply. The message states what is wrong and what to write instead.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        parse::parse(text)
    }

    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The parts of the query that find nothing with this model: an unknown class, boxes of a classifier. The text
    /// itself is valid, so the query can be used. At most five.
    ///
    /// `truth`: the ground-truth classes.
    pub fn warnings(&self, task: ModelTask, labels: &LabelSet, truth: &[OutcomeClass]) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(root) = &self.root {
            root.each_term(&mut |term| {
                if let Value::Boxes(boxes) = &term.value
                    && warnings.len() < MAX_WARNINGS
                {
                    warnings.extend(boxes.warnings(task, labels, truth));
                }
            });
        }
        warnings
    }

    /// Whether the query is about differences between two runs, so that it finds nothing without a comparison.
    pub fn needs_comparison(&self) -> bool {
        self.has_term(|term| complete::COMPARISON_WORDS.contains(&term.key.word()))
    }

    /// Whether the query is about the similarity to an image that it does not name.
    pub fn needs_similarity(&self) -> bool {
        self.has_term(|term| term.key.takes == Takes::Similarity) && self.similar_to().is_none()
    }

    /// The image to compare with, by its name or path in lowercase, if the query names one.
    pub fn similar_to(&self) -> Option<String> {
        let mut named = None;
        if let Some(root) = &self.root {
            root.each_term(&mut |term| {
                if let (Takes::Similarity, Value::Text(name)) = (term.key.takes, &term.value) {
                    named.get_or_insert_with(|| name.clone());
                }
            });
        }
        named
    }

    /// Whether the query is about groups of duplicates.
    pub fn needs_duplicates(&self) -> bool {
        self.has_term(|term| ["duplicate", "copy"].contains(&term.key.word()))
    }

    /// Whether the query is about EXIF data, so that it finds only images whose EXIF data was read.
    pub fn needs_captures(&self) -> bool {
        self.has_term(|term| ["taken", "camera", "near"].contains(&term.key.word()))
    }

    /// Whether the query is about a selection on the map.
    pub fn needs_picked(&self) -> bool {
        self.has_term(|term| term.key.word() == "picked")
    }

    /// The location that the query names first.
    pub fn center(&self) -> Option<GeoPoint> {
        let mut center = None;
        if let Some(root) = &self.root {
            root.each_term(&mut |term| {
                if let (Value::Circle(circle), None) = (&term.value, center) {
                    center = Some(circle.center());
                }
            });
        }
        center
    }

    /// Whether the query is about the sample to judge.
    pub fn needs_sample(&self) -> bool {
        self.has_term(|term| term.key.word() == "sampled")
    }

    /// Whether the query is about error patterns, so that it finds nothing before they are found.
    pub fn needs_patterns(&self) -> bool {
        self.has_term(|term| term.key.word() == "pattern")
    }

    /// Whether the query is about outcomes, so that it finds nothing without ground truth.
    pub fn needs_truth(&self) -> bool {
        self.has_term(|term| matches!(&term.value, Value::Boxes(boxes) if boxes.needs_truth()))
    }

    fn has_term(&self, is_meant: impl Fn(&Term) -> bool) -> bool {
        let mut has = false;
        if let Some(root) = &self.root {
            root.each_term(&mut |term| has |= is_meant(term));
        }
        has
    }

    /// Whether all conditions on ground truth are about suspicious labels.
    pub fn is_about_suspects(&self) -> bool {
        let terms: Vec<&BoxTerm> =
            self.root.iter().flat_map(Node::box_terms).filter(|term| term.needs_truth()).collect();
        !terms.is_empty() && terms.iter().all(|term| term.is_about_suspects())
    }

    /// Examples and what they find.
    pub fn help() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        KEYS.iter().flat_map(|key| key.help).chain(&LOGIC_HELP)
    }
}

const LOGIC_HELP: [(&str, &str); 1] = [("class:cat or (dog !tag)", "Either of the two. Parentheses group, ! negates")];

impl Node {
    fn each_term(&self, visit: &mut impl FnMut(&Term)) {
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                for node in nodes {
                    node.each_term(visit);
                }
            }
            Self::Not(node) => node.each_term(visit),
            Self::Term(term) => visit(term),
        }
    }

    pub fn each_term_mut(&mut self, visit: &mut impl FnMut(&mut Term)) {
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                for node in nodes {
                    node.each_term_mut(visit);
                }
            }
            Self::Not(node) => node.each_term_mut(visit),
            Self::Term(term) => visit(term),
        }
    }

    /// The conditions on boxes that apply to the whole query, or to a part of it.
    pub fn box_terms(&self) -> Vec<&BoxTerm> {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().flat_map(Self::box_terms).collect(),
            Self::Term(Term { value: Value::Boxes(boxes), .. }) => vec![boxes],
            Self::Term(_) | Self::Not(_) => Vec::new(),
        }
    }

    pub fn passes(&self, image: &Candidate<'_>) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.passes(image)),
            Self::Any(nodes) => nodes.iter().any(|node| node.passes(image)),
            Self::Not(node) => !node.passes(image),
            Self::Term(term) => term.passes(image),
        }
    }
}

impl From<BoxQuery> for Query {
    fn from(boxes: BoxQuery) -> Self {
        let nodes: Vec<Node> = boxes.0.into_iter().map(|boxes| Node::Term(Term::from_boxes(boxes))).collect();
        Self { root: (!nodes.is_empty()).then(|| parse::one_or(nodes, Node::Any)) }
    }
}

impl Span {
    pub const ANY: Self = Self { low: f32::NEG_INFINITY, includes_low: true, high: f32::INFINITY, includes_high: true };

    pub fn contains(&self, value: f32) -> bool {
        let is_above = if self.includes_low { value >= self.low } else { value > self.low };
        let is_below = if self.includes_high { value <= self.high } else { value < self.high };
        is_above && is_below
    }

    /// The terms that search for these numbers: `score>=0.3`, `score<0.4`.
    fn texts(&self, key: &str) -> impl Iterator<Item = String> {
        let equal = |includes: bool| if includes { "=" } else { "" };
        let low = self.low.is_finite().then(|| format!("{key}>{}{}", equal(self.includes_low), self.low));
        let high = self.high.is_finite().then(|| format!("{key}<{}{}", equal(self.includes_high), self.high));
        low.into_iter().chain(high)
    }

    /// The intersection.
    fn and(self, other: Self) -> Self {
        let mut both = self;
        if other.low > both.low || (other.low == both.low && !other.includes_low) {
            (both.low, both.includes_low) = (other.low, other.includes_low);
        }
        if other.high < both.high || (other.high == both.high && !other.includes_high) {
            (both.high, both.includes_high) = (other.high, other.includes_high);
        }
        both
    }
}

/// A value as typed, in quotes if necessary.
fn quoted(value: &str) -> String {
    let is_plain = |letter: char| !letter.is_whitespace() && !"()\"".contains(letter);
    if !value.is_empty() && value.chars().all(is_plain) {
        value.to_owned()
    } else {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{escaped}\"")
    }
}

/// Whether a text matches a pattern in which `*` stands for any number of characters. Both in lowercase.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(start) => text = &text[start + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

/// The name that is at most two edits away, or that contains the word; `None` if no name is similar.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().count();
    let allowed = letters.div_ceil(4).min(2);
    let rank = |name: &&str| {
        let name = name.to_lowercase();
        // Texts whose lengths differ by more have a greater distance, which is slow to compute for long ones.
        let is_alike = letters.abs_diff(name.chars().count()) <= allowed;
        let distance = is_alike.then(|| levenshtein(word, &name));
        if let Some(distance) = distance.filter(|distance| *distance <= allowed) {
            Some((0, distance))
        } else if letters >= 3 && name.contains(word) {
            Some((1, name.len()))
        } else {
            None
        }
    };
    known.filter_map(|name| Some((rank(&name)?, name))).min_by_key(|(rank, _)| *rank).map(|(_, name)| name)
}

#[cfg(test)]
impl Query {
    /// The class, if the query is about exactly one.
    fn class(&self) -> Option<&self::box_term::ClassName> {
        match &self.root {
            Some(Node::Term(term)) => match &term.value {
                Value::Boxes(boxes) => boxes.class.as_ref(),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A query prepared for one run: its classes are ids.
#[derive(Debug)]
pub struct Filter {
    root: Option<Node>,
    needs_captures: bool,
}

impl Filter {
    pub fn new(query: &Query, labels: &LabelSet, truth: &[OutcomeClass], changes: &ClassChanges) -> Self {
        let mut root = query.root.clone();
        if let Some(root) = &mut root {
            root.each_term_mut(&mut |term| term.prepare(labels, truth, changes));
        }
        Self { root, needs_captures: query.needs_captures() }
    }

    /// The conditions on boxes and ground truth that apply to the whole query; a box has to meet any of them.
    pub fn about_truth(&self) -> Vec<&BoxTerm> {
        let boxes = self.root.iter().flat_map(Node::box_terms);
        boxes.filter(|term| term.needs_truth()).collect()
    }

    /// Whether every image passes.
    pub fn is_open(&self) -> bool {
        self.root.is_none()
    }

    /// An image whose EXIF data is unknown passes no query about it, not even a negated one.
    pub fn passes(&self, candidate: &Candidate<'_>) -> bool {
        let is_known = !self.needs_captures || candidate.capture().is_some();
        is_known && self.root.as_ref().is_none_or(|root| root.passes(candidate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(text: &str, task: ModelTask) -> Vec<String> {
        let labels = LabelSet::parse("cat\nTraffic light\ncrane\ncrane").unwrap();
        Query::parse(text).unwrap().warnings(task, &labels, &[])
    }

    #[test]
    fn unknown_class_suggests_a_similar_one() {
        let check = |text: &str, expected: &str| {
            let got = warnings(text, ModelTask::Detection);
            assert!(got.len() == 1 && got[0].contains(expected), "{text}: {got:?}");
        };
        check("class:cst", "did you mean “cat”?");
        check("!class:light", "did you mean “Traffic light”?");
        check("a or class:zebra", "class:*part*");
        assert!(warnings("class:CAT class:traffic* class:99", ModelTask::Detection).is_empty());
        assert_eq!(warnings("class:cat boxes>2", ModelTask::Classification).len(), 1);
    }

    #[test]
    fn unknown_classes_give_few_short_warnings() {
        let word = "x".repeat(4000);
        for text in [format!("class:{word}"), "class:zebra or ".repeat(600) + "a"] {
            let warnings = warnings(&text, ModelTask::Detection);
            assert!((1..=MAX_WARNINGS).contains(&warnings.len()));
            assert!(warnings.iter().all(|text| text.chars().count() < 250));
        }
    }

    #[test]
    fn duplicate_and_nameless_classes_are_found() {
        let labels = LabelSet::parse("1\tcrane\n2\tcrane\n3\t7").unwrap();
        let ids = |pattern: &str| {
            let query = Query::parse(&format!("class:\"{pattern}\"")).unwrap();
            query.class().expect("a class").ids(&labels)
        };
        assert_eq!(ids("Crane"), [1, 2]);
        assert_eq!(ids("7"), [3], "a name before a number");
        assert_eq!(ids("class 17"), [17]);
        assert_eq!(ids("17"), [17]);
        assert_eq!(ids("2"), [] as [u32; 0], "it has a name");
    }

    #[test]
    fn star_matches_any_letters() {
        for (pattern, text, expected) in [
            ("cat", "cat", true),
            ("cat", "cats", false),
            ("cat*", "cats", true),
            ("*cat", "tomcat", true),
            ("*a*a*", "banana", true),
            ("b*na", "banana", true),
            ("b*x*", "banana", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn help_examples_parse() {
        for (example, meaning) in Query::help() {
            assert!(Query::parse(example).is_ok(), "{example}: {meaning}");
        }
    }

    #[test]
    fn two_bounds_make_a_range() {
        let span = |low, high| Span { low, includes_low: false, high, includes_high: true };
        let both = span(0.2, 0.8).and(span(0.5, 0.9)).and(Span::ANY);
        assert_eq!(both, span(0.5, 0.8));
        assert!(!both.contains(0.5) && both.contains(0.8) && !both.contains(f32::NAN));
    }
}
