//! Helps to type a query, and changes a part of one.

use std::ops::Range;

use crate::domain::LabelSet;
use crate::review::VerdictKind;

const MOST: usize = 8;

/// One way to go on typing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What of the text it takes the place of, in bytes.
    pub replaces: Range<usize>,
    /// With a space behind it where the term is whole.
    pub text: String,
    /// What it means, for people; may be empty.
    pub meaning: &'static str,
}

/// How the word that ends at `cursor` (in bytes) can go on: keys, the names of classes, verdicts, the tags in use. At
/// most eight, the most likely first; none between words.
pub fn complete(text: &str, cursor: usize, labels: &LabelSet, tags: &[String]) -> Vec<Completion> {
    let Some(before) = text.get(..cursor) else {
        return Vec::new();
    };
    let start = word_start(before);
    let typed = before[start..].to_lowercase();
    match typed.split_once([':', '=']) {
        Some((key, value)) => {
            let value = value.trim_start_matches('"');
            let whole = |name: &str| Completion {
                replaces: start..cursor,
                text: format!("{key}:{} ", quoted(name)),
                meaning: "",
            };
            let completions = match key {
                "class" => ranked(value, labels.iter().map(|(_, name)| name), whole),
                "tag" => ranked(value, tags.iter().map(String::as_str), whole),
                "verdict" => ranked(
                    value,
                    VerdictKind::ALL.into_iter().map(VerdictKind::word),
                    whole,
                ),
                _ => return Vec::new(),
            };
            // What is typed already needs no completing.
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
    let of_key = |(key, meaning): &(&str, &'static str)| Completion {
        replaces: replaces.clone(),
        text: (*key).to_owned(),
        meaning,
    };
    KEY_COMPLETIONS
        .iter()
        .filter(|(key, _)| key.starts_with(typed) && *key != typed)
        .map(of_key)
        .collect()
}

const KEY_COMPLETIONS: [(&str, &str); 11] = [
    ("class:", "with this class"),
    ("score>", "best score"),
    ("boxes>", "number of boxes"),
    ("verdict:", "judged so"),
    ("tag:", "with this tag"),
    ("note:", "with this in its note"),
    ("problem", "could not be shown or predicted"),
    ("answered", "the model has answered"),
    ("outdated", "the file was written to since"),
    ("margin<", "nearly another answer"),
    ("name:", "with this in its name"),
];

/// Names that begin with what was typed before names that only contain it; each once.
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
        if names.len() < MOST && !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(completion).collect()
}

/// A value as it is typed: in quotes where it must be.
fn quoted(value: &str) -> String {
    let is_plain = |letter: char| !letter.is_whitespace() && !"()\"".contains(letter);
    if !value.is_empty() && value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("\"{}\"", value.replace('"', "\\\""))
    }
}

/// The term that asks for a class by its name.
pub fn class_term(name: &str) -> String {
    format!("class:{}", quoted(&name.to_lowercase()))
}

/// Whether the term stands in the text by itself, written in just this way.
pub fn has_term(text: &str, term: &str) -> bool {
    spans(text).into_iter().any(|span| text[span] == *term)
}

/// The text with the term at its end, once.
pub fn with_term(text: &str, term: &str) -> String {
    let text = without_term(text, term);
    let text = text.trim();
    if text.is_empty() {
        return term.to_owned();
    }
    // Beside an “or” it would belong to the last part alone.
    let has_or = spans(text)
        .into_iter()
        .any(|span| text[span].eq_ignore_ascii_case("or"));
    if has_or {
        format!("({text}) {term}")
    } else {
        format!("{text} {term}")
    }
}

/// The text without the term, where it stands by itself.
pub fn without_term(text: &str, term: &str) -> String {
    let mut rest = String::new();
    for span in spans(text) {
        if text[span.clone()] == *term {
            continue;
        }
        if !rest.is_empty() {
            rest.push(' ');
        }
        rest.push_str(&text[span]);
    }
    match rest
        .strip_prefix('(')
        .and_then(|inner| inner.strip_suffix(')'))
    {
        // What `with_term` put around the rest.
        Some(inner) if spans(&rest).len() == 1 && !inner.contains(['(', ')']) => inner.to_owned(),
        _ => rest,
    }
}

/// Where the last word begins: after the last space, parenthesis or `!` that is not in quotes.
fn word_start(text: &str) -> usize {
    let mut start = 0;
    let mut is_quoted = false;
    let mut previous = ' ';
    for (at, letter) in text.char_indices() {
        if letter == '"' && previous != '\\' {
            is_quoted ^= true;
        } else if !is_quoted && (letter.is_whitespace() || "()!".contains(letter)) {
            start = at + letter.len_utf8();
        }
        previous = letter;
    }
    start
}

/// What stands between spaces; quotes and parentheses hold together what is in them.
fn spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start = None;
    let (mut is_quoted, mut depth) = (false, 0_usize);
    let mut previous = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if previous != '\\' => is_quoted ^= true,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        let separates = letter.is_whitespace() && !is_quoted && depth == 0;
        match start {
            None if !separates => start = Some(at),
            Some(begun) if separates => {
                spans.push(begun..at);
                start = None;
            }
            _ => {}
        }
        previous = letter;
    }
    spans.extend(start.map(|begun| begun..text.len()));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Query;

    fn labels() -> LabelSet {
        LabelSet::parse("cat\ntraffic light\nlighter\ncattle\ncat").unwrap()
    }

    fn completed(text: &str) -> Vec<String> {
        let tags = ["Night".to_owned(), "by the sea".to_owned()];
        let completions = complete(text, text.len(), &labels(), &tags);
        let apply = |completion: Completion| {
            let mut whole = text.to_owned();
            whole.replace_range(completion.replaces, &completion.text);
            whole
        };
        completions.into_iter().map(apply).collect()
    }

    #[test]
    fn a_word_goes_on_as_a_key_a_class_a_verdict_or_a_tag() {
        let check = |text: &str, expected: &[&str]| assert_eq!(completed(text), expected, "{text}");
        check("beach cl", &["beach class:"]);
        check("!ver", &["!verdict:"]);
        check(
            "class:light",
            &["class:lighter ", "class:\"traffic light\" "],
        );
        check("class:CA", &["class:cat ", "class:cattle "]);
        check("class:\"traffic l", &["class:\"traffic light\" "]);
        check("verdict:re", &["verdict:reject ", "verdict:unsure "]);
        check("tag:sea", &["tag:\"by the sea\" "]);
        check("tag:n", &["tag:Night "]);
        check("class:lighter", &[]);
        check("", &[]);
        check("cat ", &[]);
        check("(a or cl", &["(a or class:"]);
        check("score>0", &[]);
    }

    #[test]
    fn what_is_completed_can_be_parsed() {
        for text in completed("class:light").iter().chain(&completed("tag:sea")) {
            assert!(Query::parse(text).is_ok(), "{text}");
        }
        assert!(Query::parse(&class_term("a (\"b\") c")).is_ok());
    }

    #[test]
    fn a_term_is_put_in_and_taken_out() {
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
        assert!(!has_term("\"a !verdict\"", "!verdict"));
    }
}
