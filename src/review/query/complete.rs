//! Completes a query while it is typed, and edits parts of it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use strum::VariantArray;

use super::key::KEYS;
use super::parse::{ERRORS, starts_with_or, unquoted};
use super::{Node, Query, quoted};
use crate::domain::LabelSet;
use crate::review::VerdictKind;
use crate::review::outcomes::OutcomeClass;
use crate::review::suspects::SuspectKind;

const MAX_NAMES: usize = 8;

/// One way to complete the typed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The range of the text that it replaces, in bytes.
    pub replaces: Range<usize>,
    /// The new text, followed by a space if the term is complete.
    pub text: String,
    /// The explanation for the user; can be empty.
    pub meaning: &'static str,
}

/// Names for completions.
#[derive(Debug, Clone, Copy)]
pub struct KnownNames<'n> {
    pub labels: &'n LabelSet,
    /// The ground-truth classes.
    pub truth: &'n [OutcomeClass],
    /// The tags in use.
    pub tags: &'n [String],
    /// The cameras in the EXIF data, as far as it is read.
    pub cameras: &'n BTreeSet<Arc<str>>,
}

/// Ways to continue the word that ends at `cursor` (in bytes): keys, and known names. At most eight, the most likely
/// first; none between words.
pub fn complete(text: &str, cursor: usize, known: KnownNames<'_>) -> Vec<Completion> {
    let KnownNames { labels, truth, tags, cameras } = known;
    let Some(before) = text.get(..cursor) else {
        return Vec::new();
    };
    let start = word_start(before);
    let typed = before[start..].to_lowercase();
    match typed.split_once([':', '=']) {
        Some((key, value)) => {
            let value = match value.strip_prefix('"') {
                Some(quoted) => unquoted(quoted).0,
                None => value.to_owned(),
            };
            let whole = |name: &str| Completion {
                replaces: start..cursor,
                text: format!("{key}:{} ", quoted(name)),
                meaning: "",
            };
            let completions = match key {
                "class" => ranked(&value, labels.iter().map(|(_, name)| name), whole),
                "truth" => ranked(&value, truth.iter().map(|class| class.name.as_str()), whole),
                "error" => ranked(&value, ERRORS.iter().map(|(word, _)| *word), whole),
                "suspicious" => ranked(&value, SuspectKind::VARIANTS.iter().map(SuspectKind::into_str), whole),
                "tag" => ranked(&value, tags.iter().map(String::as_str), whole),
                "camera" => ranked(&value, cameras.iter().map(AsRef::as_ref), whole),
                "verdict" => ranked(&value, VerdictKind::VARIANTS.iter().map(VerdictKind::into_str), whole),
                _ => return Vec::new(),
            };
            // Nothing to complete if it is already typed.
            let is_new = |completion: &Completion| completion.text.trim_end() != typed;
            completions.into_iter().filter(is_new).collect()
        }
        None => keys(&typed, start..cursor),
    }
}

fn keys(typed: &str, replaces: Range<usize>) -> Vec<Completion> {
    if typed.is_empty() {
        return Vec::new();
    }
    KEYS.iter()
        .filter(|key| !key.meaning.is_empty())
        .filter(|key| key.completion().starts_with(typed) && key.completion() != typed)
        .map(|key| Completion { replaces: replaces.clone(), text: key.completion().to_owned(), meaning: key.meaning })
        .collect()
}

/// Names that begin with the typed text before names that only contain it, without duplicates.
fn ranked<'n>(
    typed: &str,
    names: impl Iterator<Item = &'n str>,
    completion: impl Fn(&str) -> Completion,
) -> Vec<Completion> {
    let mut found: Vec<(bool, &str)> = names
        .filter_map(|name| {
            let place = name.to_lowercase().find(typed)?;
            Some((place > 0, name))
        })
        .collect();
    found.sort_by_key(|(is_inside, _)| *is_inside);
    let mut names: Vec<&str> = Vec::new();
    for (_, name) in found {
        if names.len() < MAX_NAMES && !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(completion).collect()
}

pub fn class_term(name: &str) -> String {
    format!("class:{}", quoted(&name.to_lowercase()))
}

const CHANGED: &str = "changed:";

/// The key of a class change: the class in the first run and that in the second.
pub fn change_key(from: &str, to: &str) -> String {
    format!("{from}>{to}").to_lowercase()
}

/// The term for a class change between two runs.
pub fn change_term(from: &str, to: &str) -> String {
    format!("{CHANGED}{}", quoted(&change_key(from, to)))
}

/// The words about differences between two runs.
pub(super) const COMPARISON_WORDS: [&str; 5] = ["changed", "better", "worse", "fixed", "regressed"];

/// The text without standalone terms about differences between two runs.
pub fn without_comparison(text: &str) -> String {
    without(text, |term| term.starts_with(CHANGED) || COMPARISON_WORDS.contains(&term))
}

const FOLDER: &str = "folder:";

/// The term for images in a folder and the folders inside.
pub fn folder_term(path: &str) -> String {
    format!("{FOLDER}{}", quoted(path))
}

/// The folder of the first standalone term for one.
pub fn folder_in(text: &str) -> Option<String> {
    let path = spans(text).into_iter().find_map(|span| text[span].strip_prefix(FOLDER))?;
    Some(path.strip_prefix('"').map_or_else(|| path.to_owned(), |quoted| unquoted(quoted).0))
}

/// The text without standalone terms for folders.
pub fn without_folders(text: &str) -> String {
    without(text, |term| term.starts_with(FOLDER))
}

/// Whether the term stands alone in the text, written exactly like this.
pub fn has_term(text: &str, term: &str) -> bool {
    spans(text).iter().any(|span| text[span.clone()] == *term)
}

/// The text with the term at its end, once.
pub fn with_term(text: &str, term: &str) -> String {
    let text = without_term(text, term);
    let text = text.trim();
    if text.is_empty() {
        return term.to_owned();
    }
    // Next to an “or”, it would belong only to the last part.
    if has_or(text) { format!("({text}) {term}") } else { format!("{text} {term}") }
}

/// Whether an “or” splits the whole text.
fn has_or(text: &str) -> bool {
    let parse = |text: &str| Query::parse(text).map(|query| query.root);
    let in_parentheses = |text: &str| {
        let inner = text.strip_prefix('(')?.strip_suffix(')')?;
        parse(inner).ok()
    };
    match parse(text) {
        Ok(root) => matches!(root, Some(Node::Any(_))) && in_parentheses(text).is_none(),
        // The text is incomplete while it is typed.
        Err(_) => spans(text).into_iter().any(|span| is_or(&text[span])),
    }
}

fn is_or(span: &str) -> bool {
    span.eq_ignore_ascii_case("or")
}

/// The text without the term, if it stands alone.
pub fn without_term(text: &str, term: &str) -> String {
    without(text, |other| other == term)
}

fn without(text: &str, is_left_out: impl Fn(&str) -> bool) -> String {
    let mut rest: Vec<&str> = Vec::new();
    for span in spans(text) {
        let span = &text[span];
        let divides_nothing = is_or(span) && rest.last().is_none_or(|last| is_or(last));
        if !is_left_out(span) && !divides_nothing {
            rest.push(span);
        }
    }
    rest.pop_if(|last| is_or(last));
    match rest[..] {
        // The parentheses that `with_term` put around the rest.
        [only]
            if let Some(inner) = only.strip_prefix('(').and_then(|only| only.strip_suffix(')'))
                && !inner.contains(['(', ')']) =>
        {
            inner.to_owned()
        }
        _ => rest.join(" "),
    }
}

/// The start of the word at the end of the text: after the last space, parenthesis or `!` outside quotes.
/// whatever was in quotes.
fn word_start(text: &str) -> usize {
    let (mut start, mut at) = (0, 0);
    while let Some(letter) = text[at..].chars().next() {
        let mut end = at + letter.len_utf8();
        if letter == '"' {
            // The value of a key belongs to its word; other quoted text is a word of its own.
            if text[start..at].find([':', '=']) != Some((at - start).wrapping_sub(1)) {
                start = at;
            }
            let Some(len) = unquoted(&text[end..]).1 else {
                return start;
            };
            end += len;
            start = end;
        } else if letter.is_whitespace() || "()".contains(letter) || letter == '!' && at == start {
            start = end;
        }
        at = end;
    }
    start
}

/// The parts between spaces, and each “or”. Quotes and parentheses keep their contents together, and `!` stays with
/// what follows.
fn spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let (mut start, mut depth, mut at) = (None, 0_usize, 0);
    while let Some(letter) = text[at..].chars().next() {
        let is_first = start.is_none() || text[..at].ends_with([')', '"']);
        if depth == 0 && is_first && starts_with_or(&text[at..]) {
            spans.extend(start.take().map(|begun| begun..at));
            spans.push(at..at + 2);
            at += 2;
            continue;
        }
        let mut end = at + letter.len_utf8();
        match letter {
            '"' => end += unquoted(&text[end..]).1.unwrap_or(text.len() - end),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let separates = letter.is_whitespace() && depth == 0;
        match start {
            None if !separates => start = Some(at),
            Some(begun) if separates && !is_turning(&text[begun..at]) => {
                spans.push(begun..at);
                start = None;
            }
            _ => {}
        }
        at = end;
    }
    spans.extend(start.map(|begun| begun..text.len()));
    spans
}

/// Whether a `!` at the end negates what follows, rather than being part of a word.
fn is_turning(span: &str) -> bool {
    let span = span.trim_end();
    let before = span.trim_end_matches(|letter: char| letter == '!' || letter.is_whitespace());
    span.ends_with('!') && (before.is_empty() || before.ends_with([')', '"']))
}

#[cfg(test)]
mod tests {
    use super::super::{BoxQuery, BoxTerm, ClassName, OutcomeWord, Span};
    use super::*;
    use crate::review::OutcomeKind;
    use crate::review::testing::Random;

    fn labels() -> LabelSet {
        LabelSet::parse("cat\ntraffic light\nlighter\ncattle\ncat").unwrap()
    }

    fn completed(text: &str) -> Vec<String> {
        let tags = ["Night".to_owned(), "by the sea".to_owned()];
        let cameras = ["Canon EOS 5D".into(), "NIKON D70".into()].into();
        let labels = labels();
        let known = KnownNames { labels: &labels, truth: &[], tags: &tags, cameras: &cameras };
        let completions = complete(text, text.len(), known);
        let apply = |completion: Completion| {
            let mut whole = text.to_owned();
            whole.replace_range(completion.replaces, &completion.text);
            whole
        };
        completions.into_iter().map(apply).collect()
    }

    #[test]
    fn words_complete_to_keys_classes_verdicts_and_tags() {
        let check = |text: &str, expected: &[&str]| assert_eq!(completed(text), expected, "{text}");
        check("beach cl", &["beach class:"]);
        check("!ver", &["!verdict:"]);
        check("class:light", &["class:lighter ", "class:\"traffic light\" "]);
        check("class:CA", &["class:cat ", "class:cattle "]);
        check("class:\"traffic l", &["class:\"traffic light\" "]);
        check("verdict:re", &["verdict:reject ", "verdict:returned ", "verdict:unsure "]);
        check("tag:sea", &["tag:\"by the sea\" "]);
        check("tag:n", &["tag:Night "]);
        check("camera:eos", &["camera:\"Canon EOS 5D\" "]);
        check("camera:", &["camera:\"Canon EOS 5D\" ", "camera:\"NIKON D70\" "]);
        check("class:lighter", &[]);
        check("", &[]);
        check("cat ", &[]);
        check("(a or cl", &["(a or class:"]);
        check("score>0", &[]);
        check("0.5!tag:", &[]);
        check("(\"a\"tag:n", &["(\"a\"tag:Night "]);
        check("tag:\"by the sea\" tag:n", &["tag:\"by the sea\" tag:Night "]);
    }

    /// Characters with a meaning for the parser, and some without.
    const PARTS: [&str; 22] = [
        "a", "B", "é", "猫", "İ", " ", "\t", "\"", "\\", "(", ")", "!", ":", "=", ">", "..", "or", "class:", "tag:",
        "0.5", "cat", "verdict",
    ];

    fn random_text(random: &mut Random, most: usize) -> String {
        let count = random.below(most + 1);
        (0..count).map(|_| PARTS[random.below(PARTS.len())]).collect()
    }

    /// A name without surrounding spaces, as in a label file.
    fn random_name(random: &mut Random) -> String {
        loop {
            let text = random_text(random, 6);
            if !text.trim().is_empty() {
                return text.trim().to_owned();
            }
        }
    }

    #[test]
    fn class_names_find_their_class() {
        let mut random = Random::new(5);
        let names = (0..3000).map(|_| random_name(&mut random));
        for name in names.chain(["猫 x\\".to_owned(), "\\\\\" \\".to_owned()]) {
            let labels: LabelSet = [(7, name.clone())].into_iter().collect();
            let query = Query::parse(&class_term(&name)).expect(&name);
            let class = query.class().expect("a class");
            assert_eq!(class.ids(&labels), [7], "{name}");
        }
    }

    #[test]
    fn class_terms_are_unambiguous() {
        let names = ["cat", "Cat", "cat", "c*t", "*", "#1", "#9", "class 12", "dog", "traffic light", "7", ""];
        let labels: LabelSet = (0..).zip(names.map(str::to_owned)).collect();
        let truth: Vec<OutcomeClass> = (0..)
            .zip(names)
            .map(|(place, name)| OutcomeClass { number: 90 - place, name: name.to_owned(), of_model: None })
            .collect();
        // The last id has no label.
        for class in 0..=names.len() as u32 {
            assert_eq!(ClassName::exact(&labels, class).ids(&labels), [class]);
        }
        for index in 0..names.len() as u32 {
            assert_eq!(ClassName::exact_truth(&truth, index).unwrap().places(&truth), [index]);
        }
        for (class, index, expected) in [(8, 9, "truth:\"traffic light\" class:dog"), (1, 1, "truth:#89 class:#1")] {
            let class = Some(ClassName::exact(&labels, class));
            let truth = ClassName::exact_truth(&truth, index);
            assert_eq!(BoxQuery::from(BoxTerm { class, truth, ..BoxTerm::default() }).to_string(), expected);
        }
    }

    #[test]
    fn box_query_round_trips_through_its_text() {
        let labels = labels();
        let classes = [None, Some(ClassName::exact(&labels, 0)), Some(ClassName::exact(&labels, 1))];
        let words = OutcomeKind::VARIANTS.iter().filter(|kind| kind.is_wrong()).map(|kind| OutcomeWord::Error(*kind));
        let others = [
            OutcomeWord::Right,
            OutcomeWord::Wrong,
            OutcomeWord::NotFound,
            OutcomeWord::Missed,
            OutcomeWord::Suspicious(None),
            OutcomeWord::Suspicious(Some(SuspectKind::Misplaced)),
        ];
        let bounds = [None, Some(Span { low: 0.1, high: 0.35, includes_high: false, ..Span::ANY })];
        let mut all = BoxQuery::default();
        for outcome in words.chain(others).chain([OutcomeWord::Unmatched]) {
            for class in &classes {
                for score in bounds {
                    let (class, truth) = (class.clone(), Some(ClassName::new("*")));
                    let iou = score.map(|_| Span { low: 0.5, includes_low: false, ..Span::ANY });
                    let term = BoxTerm { class, truth, iou, score, ..BoxTerm::from(outcome) };
                    let query = BoxQuery::from(term.clone());
                    assert_eq!(Query::parse(&query.to_string()), Ok(query.into()));
                    all.0.push(term);
                }
            }
        }
        assert_eq!(Query::parse(&all.to_string()), Ok(all.into()));
        assert_eq!(Query::from(BoxQuery::default()), Query::default());
    }

    #[test]
    fn every_completion_can_be_parsed() {
        let mut random = Random::new(6);
        let (mut seen, mut of_values) = (0, 0);
        for _ in 0..20_000 {
            let name = random_name(&mut random);
            let labels: LabelSet = [(0, name.clone())].into_iter().collect();
            let key = ["", "", "tag:", "class:", "CLASS=", "tag:\""][random.below(6)];
            let end = random.below(name.chars().count() + 1);
            let begun: String = name.chars().take(end).collect();
            let text = random_text(&mut random, 5) + key + &begun;
            let tags = [name];
            let known = KnownNames { labels: &labels, truth: &[], tags: &tags, cameras: &BTreeSet::new() };
            for completion in complete(&text, text.len(), known) {
                let before = &text[..completion.replaces.start];
                let closed = |word: &str| {
                    let open = format!("{before}{word}");
                    (0..4).any(|more| Query::parse(&(open.clone() + &")".repeat(more))).is_ok())
                };
                // Wherever a word is allowed, so is a completion.
                if !closed("x") {
                    continue;
                }
                seen += 1;
                let is_value = completion.text.ends_with(' ');
                of_values += usize::from(is_value);
                let value = match &*completion.text {
                    "verdict:" => "reject",
                    "taken:" => "2024",
                    "near:" => "48,11",
                    _ if is_value => "",
                    _ => "0.5",
                };
                let is_alone = Query::parse(&completion.text).is_ok();
                let value = if is_alone { "" } else { value };
                assert!(closed(&format!("{}{value}", completion.text)), "{text} → {completion:?}");
            }
        }
        assert!(seen > 500 && of_values > 200, "{seen}, {of_values}");
    }

    #[test]
    fn term_round_trips_through_a_query() {
        let mut random = Random::new(7);
        let last = |text: &str| match Query::parse(text).expect(text).root {
            Some(Node::All(mut nodes)) => nodes.pop(),
            root => root,
        };
        let mut seen = 0;
        for _ in 0..20_000 {
            let term = ["!verdict", "tag:\"b \\\\\""][random.below(2)];
            let mut text = String::new();
            for _ in 0..random.below(5) {
                text += &random_text(&mut random, 2);
                text += ["", " ", " or ", term][random.below(4)];
            }
            if Query::parse(&text).is_err() {
                continue;
            }
            seen += 1;
            let with = with_term(&text, term);
            assert_eq!(last(&with), last(term), "{text} → {with}");
            assert!(has_term(&with, term), "{text} → {with}");
            let without = without_term(&with, term);
            assert!(Query::parse(&without).is_ok(), "{with} → {without}");
            assert!(!has_term(&without, term), "{with} → {without}");
        }
        assert!(seen > 2000, "{seen}");
    }

    #[test]
    fn term_is_added_and_removed() {
        let check = |text: &str, with: &str, without: &str| {
            assert_eq!(with_term(text, "!verdict"), with, "{text}");
            assert_eq!(without_term(with, "!verdict"), without, "{with}");
            assert!(has_term(with, "!verdict"));
        };
        check("", "!verdict", "");
        check("cat", "cat !verdict", "cat");
        check("!verdict cat", "cat !verdict", "cat");
        check("a or b", "(a or b) !verdict", "a or b");
        check("(a or b) c", "(a or b) c !verdict", "(a or b) c");
        check("a or(b)", "(a or (b)) !verdict", "(a or (b))");
        check("(a)or b", "((a) or b) !verdict", "((a) or b)");
        check("! a", "! a !verdict", "! a");
        check("a or !verdict", "a !verdict", "a");
        assert!(!has_term("\"a !verdict\"", "!verdict"));
    }
}
