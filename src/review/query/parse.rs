//! Parses the text of a query.

use std::ops::Range;

use strum::VariantArray;

use super::box_term::{BoxTerm, ClassName, OutcomeWord};
use super::capture_term::{Circle, Period};
use super::key::{KEYS, Key, Takes, Term, Value};
use super::{Node, Query, QueryError, SHOWN_LETTERS, Span, nearest};
use crate::domain::{grouped, shortened};
use crate::review::VerdictKind;
use crate::review::outcomes::OutcomeKind;
use crate::review::suspects::SuspectKind;

/// Maximum nesting of `(` and `!`: every function that walks a query recurses as deep.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(text: &str) -> Result<Query, QueryError> {
    let most = Query::MAX_LETTERS;
    if let Some((end, _)) = text.char_indices().nth(most) {
        let message = format!("This search is too long ({} characters at most)", grouped(most));
        return fail(end..text.len(), message);
    }
    let mut parser = Parser { text, at: 0, depth: 0, compared_with: None };
    parser.skip_spaces();
    if parser.is_done() {
        return Ok(Query::default());
    }
    let root = parser.any()?;
    if !parser.is_done() {
        let at = parser.at..parser.at + 1;
        return fail(at, "This ) has no matching (; delete it or add (");
    }
    Ok(Query { root: Some(root) })
}

struct Parser<'t> {
    text: &'t str,
    /// The position in bytes.
    at: usize,
    /// The number of `(` and `!` around the next term.
    depth: usize,
    /// The image that the query names to compare with.
    compared_with: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// `:` or `=`.
    Is,
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// A word as typed, without its quotes.
struct Word {
    text: String,
    at: Range<usize>,
    is_quoted: bool,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Node, QueryError> {
        let mut nodes = vec![self.all()?];
        while let Some(at) = self.take_word_or() {
            if self.is_at_end_of_group() {
                return fail(at, "“or” needs a term after it; to search names for it, write \"or\"");
            }
            nodes.push(self.all()?);
        }
        Ok(one_or(nodes, Node::Any))
    }

    fn all(&mut self) -> Result<Node, QueryError> {
        let mut nodes = Vec::new();
        while !self.is_at_end_of_group() {
            if let Some(at) = self.peek_word_or() {
                if nodes.is_empty() {
                    return fail(at, "“or” needs a term before it; to search names for it, write \"or\"");
                }
                break;
            }
            nodes.push(self.one()?);
            self.skip_spaces();
        }
        Ok(one_or(join_box_terms(nodes), Node::All))
    }

    fn one(&mut self) -> Result<Node, QueryError> {
        let start = self.at;
        if self.take("!") {
            self.skip_spaces();
            if self.is_at_end_of_group() {
                return fail(start..start + 1, "“!” needs a term after it, such as !verdict");
            }
            let node = self.inside(start, Self::one)?;
            return Ok(Node::Not(Box::new(node)));
        }
        if self.take("(") {
            self.skip_spaces();
            if self.take(")") {
                return fail(start..self.at, "These parentheses are empty");
            }
            if self.is_done() {
                return fail(start..start + 1, "This ( is never closed; add ) at the end");
            }
            let node = self.inside(start, Self::any)?;
            if !self.take(")") {
                return fail(start..start + 1, "This ( is never closed; add ) at the end");
            }
            self.skip_spaces();
            return Ok(node);
        }
        self.term().map(Node::Term)
    }

    /// Parses the content of the `(` or `!` at `start`.
    fn inside(
        &mut self,
        start: usize,
        read: impl FnOnce(&mut Self) -> Result<Node, QueryError>,
    ) -> Result<Node, QueryError> {
        if self.depth == MAX_DEPTH {
            let message = format!("Parentheses and “!” nest at most {MAX_DEPTH} deep; remove some of them");
            return fail(start..start + 1, message);
        }
        self.depth += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn term(&mut self) -> Result<Term, QueryError> {
        let word = self.word(|letter| ":=<>≤≥".contains(letter))?;
        if word.is_quoted {
            return Ok(Term::name(&word.text));
        }
        let key = Key::find(&word.text);
        let after_word = self.at;
        if key.is_some_and(Key::has_order) {
            self.skip_spaces();
        }
        match (key, self.operator()) {
            (Some(key), Some(operator)) => self.value(key, &word, operator),
            (None, Some(_)) => self.unknown_key(&word),
            (Some(key), None) => {
                self.at = after_word;
                match key.alone() {
                    Some(term) => Ok(term),
                    None => self.lacks_value(key, &word),
                }
            }
            (None, None) => Ok(Term::name(&word.text)),
        }
    }

    fn value(&mut self, key: &'static Key, word: &Word, operator: Operator) -> Result<Term, QueryError> {
        if key.has_order() {
            self.skip_spaces();
            return self.ordered_term(key, word, operator);
        }
        if operator != Operator::Is {
            let message = format!("“{}” needs a colon: {}", word.text, key.example);
            return fail(word.at.start..self.at, message);
        }
        if self.is_at_end_of_word() {
            let takes_nothing = matches!(key.takes, Takes::Nothing | Takes::Outcome(_));
            return key.alone().filter(|_| takes_nothing).map_or_else(|| self.lacks_value(key, word), Ok);
        }
        let value = self.word(|_| false)?;
        let lower = value.text.to_lowercase();
        let value = match key.takes {
            Takes::Text | Takes::OptionalText => Value::Text(lower),
            Takes::Class => Value::Boxes(BoxTerm { class: Some(ClassName::new(&lower)), ..BoxTerm::default() }),
            Takes::TruthClass => Value::Boxes(BoxTerm { truth: Some(ClassName::new(&lower)), ..BoxTerm::default() }),
            Takes::Error => Value::Boxes(error_word(&value, &lower)?.into()),
            Takes::OptionalSuspect => Value::Boxes(OutcomeWord::Suspicious(Some(suspect_kind(&value, &lower)?)).into()),
            Takes::OptionalChange => Value::Change(lower, [].into()),
            Takes::OptionalVerdict => Value::Verdict(verdict(&value, &lower)?),
            Takes::OptionalCircle => Value::Circle(circle(&value, &lower)?),
            Takes::Nothing
            | Takes::Outcome(_)
            | Takes::Score
            | Takes::Similarity
            | Takes::Iou
            | Takes::OptionalCount
            | Takes::OptionalPeriod => {
                let message = format!("“{0}” takes no value; write {0}, or !{0} for those without", word.text);
                return fail(word.at.start..value.at.end, message);
            }
        };
        Ok(Term { key, value })
    }

    fn ordered_term(&mut self, key: &'static Key, word: &Word, operator: Operator) -> Result<Term, QueryError> {
        if self.is_at_end_of_word() {
            return self.lacks_value(key, word);
        }
        let value = self.word(|_| false)?;
        if key.takes == Takes::OptionalPeriod {
            return Ok(Term { key, value: Value::Period(period(&value, operator)?) });
        }
        let is_name = |value: &Word| value.is_quoted || value.text.contains(char::is_alphabetic);
        let span = match span(key, &value, operator) {
            Ok(span) if !value.is_quoted => span,
            _ if key.takes == Takes::Similarity && operator == Operator::Is && is_name(&value) => {
                return self.compared_with(key, &value);
            }
            span => span?,
        };
        let value = match key.takes {
            Takes::Iou => Value::Boxes(BoxTerm { iou: Some(span), ..BoxTerm::default() }),
            _ => Value::Number(span),
        };
        Ok(Term { key, value })
    }

    fn compared_with(&mut self, key: &'static Key, value: &Word) -> Result<Term, QueryError> {
        let name = value.text.to_lowercase();
        if let Some(other) = self.compared_with.replace(name.clone()).filter(|other| *other != name) {
            let other = shortened(&other, SHOWN_LETTERS).into_owned();
            let message =
                format!("A search compares with one image, and this one already does with {other}; delete one");
            return fail(value.at.clone(), message);
        }
        Ok(Term { key, value: Value::Text(name) })
    }

    fn unknown_key<T>(&self, word: &Word) -> Result<T, QueryError> {
        let known = KEYS.iter().flat_map(|key| key.words).copied();
        let near = nearest(&word.text.to_lowercase(), known);
        let advice = near.map_or_else(|| "to".to_owned(), |name| format!("did you mean {name}? To"));
        let rest = self.text[word.at.start..].split_whitespace().next();
        let message = format!(
            "“{}” is not a search word; {advice} search names for it, put it in quotes: \"{}\"",
            shortened(&word.text, SHOWN_LETTERS),
            shortened(rest.unwrap_or_default().trim_end_matches(')'), SHOWN_LETTERS)
        );
        fail(word.at.clone(), message)
    }

    fn lacks_value<T>(&self, key: &'static Key, word: &Word) -> Result<T, QueryError> {
        let typed = &word.text;
        let has_operator = |example: &&str| example.contains([':', '<', '>']);
        let mut examples = std::iter::once(key.example).chain(key.help.iter().map(|(example, _)| *example));
        let message = match (key.alone(), examples.find(has_operator)) {
            (Some(_), Some(example)) => {
                format!("“{typed}” needs a value after the operator, such as {example}; without one, write {typed}")
            }
            _ => format!("“{typed}” needs a value, such as {}; to search names for it, write \"{typed}\"", key.example),
        };
        fail(word.at.start..self.at, message)
    }

    /// A word or quoted text. It ends before a space, a parenthesis, or a character that `ends` accepts.
    fn word(&mut self, ends: impl Fn(char) -> bool) -> Result<Word, QueryError> {
        let start = self.at;
        if self.peek() == Some('"') {
            return self.quoted(start);
        }
        let rest = &self.text[start..];
        let is_end = |letter: char| letter.is_whitespace() || "()\"".contains(letter) || ends(letter);
        let len = rest.find(is_end).unwrap_or(rest.len());
        if len == 0 {
            let letter: String = rest.chars().take(1).collect();
            let message = format!("“{letter}” needs something before it, such as score{letter}0.5 or class:cat");
            return fail(start..start + letter.len(), message);
        }
        self.at += len;
        Ok(Word { text: rest[..len].to_owned(), at: start..self.at, is_quoted: false })
    }

    fn quoted(&mut self, start: usize) -> Result<Word, QueryError> {
        let (text, len) = unquoted(&self.text[start + 1..]);
        let Some(len) = len else {
            let message = "This quote is never closed; add \" at its end";
            return fail(start..self.text.len(), message);
        };
        self.at = start + 1 + len;
        let at = start..self.at;
        if text.is_empty() {
            return fail(at, "These quotes are empty");
        }
        Ok(Word { text, at, is_quoted: true })
    }

    fn operator(&mut self) -> Option<Operator> {
        let operators = [
            (">=", Operator::AtLeast),
            ("<=", Operator::AtMost),
            ("≥", Operator::AtLeast),
            ("≤", Operator::AtMost),
            (">", Operator::Above),
            ("<", Operator::Below),
            (":", Operator::Is),
            ("=", Operator::Is),
        ];
        let found = operators.into_iter().find(|(text, _)| self.take(text));
        found.map(|(_, operator)| operator)
    }

    fn peek_word_or(&self) -> Option<Range<usize>> {
        starts_with_or(&self.text[self.at..]).then(|| self.at..self.at + 2)
    }

    fn take_word_or(&mut self) -> Option<Range<usize>> {
        let at = self.peek_word_or()?;
        self.at = at.end;
        self.skip_spaces();
        Some(at)
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.text[self.at..].starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_spaces(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    fn is_at_end_of_group(&self) -> bool {
        self.peek().is_none_or(|letter| letter == ')')
    }

    fn is_at_end_of_word(&self) -> bool {
        let next = self.peek();
        next.is_none_or(|letter| letter.is_whitespace() || "()".contains(letter))
    }
}

/// Whether the first word is the operator “or”.
pub(super) fn starts_with_or(text: &str) -> bool {
    let ends = |letter: char| letter.is_whitespace() || "()!\"".contains(letter);
    text.split_at_checked(2)
        .is_some_and(|(word, rest)| word.eq_ignore_ascii_case("or") && rest.chars().next().is_none_or(ends))
}

/// The text up to the closing quote, and where it ends; `None` if it is never closed. `text` starts after the opening
/// quote. `\"` is a quote and `\\` a backslash; before anything else, a backslash stands for itself.
pub(super) fn unquoted(text: &str) -> (String, Option<usize>) {
    let mut inside = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (inside, Some(at + 1)),
            '\\' if letters.as_str().starts_with(['"', '\\']) => {
                inside.extend(letters.next().map(|(_, escaped)| escaped));
            }
            _ => inside.push(letter),
        }
    }
    (inside, None)
}

/// Merges adjacent conditions on the same boxes: of each class, and of each outcome.
fn join_box_terms(mut nodes: Vec<Node>) -> Vec<Node> {
    let is_about_boxes = |node: &Node| matches!(node, Node::Term(term) if matches!(term.value, Value::Boxes(_)));
    let Some(place) = nodes.iter().position(is_about_boxes) else {
        return nodes;
    };
    let mut common = BoxTerm::default();
    let (mut classes, mut outcomes) = (Vec::new(), Vec::new());
    let is_joined = |node: &mut Node| {
        let about = is_about_boxes(node);
        about || matches!(node, Node::Term(term) if ["score", "boxes"].contains(&term.key.word()))
    };
    let before = nodes[..place].iter_mut().filter_map(|node| (!is_joined(node)).then_some(())).count();
    let both = |one: Option<Span>, other: Span| Some(one.map_or(other, |one| one.and(other)));
    for node in nodes.extract_if(.., is_joined) {
        let Node::Term(term) = node else {
            continue;
        };
        match term.value {
            Value::Number(span) if term.key.word() == "score" => common.score = both(common.score, span),
            Value::Number(span) => common.boxes = both(common.boxes, span),
            Value::Boxes(boxes) => {
                if let Some(iou) = boxes.iou {
                    common.iou = both(common.iou, iou);
                }
                classes.extend(boxes.class.map(Some));
                common.truth = boxes.truth.or(common.truth);
                outcomes.extend(boxes.outcome.map(Some));
            }
            _ => {}
        }
    }
    classes.extend(classes.is_empty().then_some(None));
    outcomes.extend(outcomes.is_empty().then_some(None));
    let terms = classes.iter().flat_map(|class| {
        let boxes = |outcome: &Option<_>| BoxTerm { class: class.clone(), outcome: *outcome, ..common.clone() };
        outcomes.iter().map(move |outcome| Node::Term(Term::from_boxes(boxes(outcome))))
    });
    nodes.splice(before..before, terms);
    nodes
}

pub(super) fn one_or(mut nodes: Vec<Node>, many: impl Fn(Vec<Node>) -> Node) -> Node {
    match (nodes.pop(), nodes.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            nodes.extend(last);
            many(nodes)
        }
    }
}

/// The kinds of errors as typed.
pub(super) const ERRORS: [(&str, OutcomeWord); 7] = [
    ("class", OutcomeWord::Error(OutcomeKind::Class)),
    ("location", OutcomeWord::Error(OutcomeKind::Location)),
    ("both", OutcomeWord::Error(OutcomeKind::Both)),
    ("duplicate", OutcomeWord::Error(OutcomeKind::Duplicate)),
    ("background", OutcomeWord::Error(OutcomeKind::Background)),
    ("missed", OutcomeWord::Missed),
    ("unmatched", OutcomeWord::Unmatched),
];

fn suspect_kind(value: &Word, lower: &str) -> Result<SuspectKind, QueryError> {
    let found = SuspectKind::VARIANTS.iter().find(|kind| kind.into_str() == lower);
    found.copied().ok_or_else(|| {
        let message = format!(
            "“{}” is not a kind of suspicious label; write class, missing, misplaced or spurious",
            shortened(&value.text, SHOWN_LETTERS)
        );
        QueryError { at: value.at.clone(), message }
    })
}

fn error_word(value: &Word, lower: &str) -> Result<OutcomeWord, QueryError> {
    let found = ERRORS.iter().find(|(word, _)| lower == *word);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let known: Vec<&str> = ERRORS.iter().map(|(word, _)| *word).collect();
        let message =
            format!("“{}” is not a kind of error; write {}", shortened(&value.text, SHOWN_LETTERS), known.join(", "));
        QueryError { at: value.at.clone(), message }
    })
}

fn period(value: &Word, operator: Operator) -> Result<Period, QueryError> {
    let parse = |text: &str| {
        Period::parse(text).ok_or_else(|| {
            let message = format!(
                "“{}” is not a date; write a year, month or day: taken:2024, taken:2024-05, taken>=2024-05-17",
                shortened(&value.text, SHOWN_LETTERS)
            );
            QueryError { at: value.at.clone(), message }
        })
    };
    if let (Operator::Is, Some((first, last))) = (operator, value.text.split_once("..")) {
        let end = |text: &str| (!text.is_empty()).then(|| parse(text)).transpose();
        let (from, until) = (end(first)?.map(|[from, _]| from), end(last)?.map(|[_, until]| until));
        if from.zip(until).is_some_and(|(from, until)| from >= until) {
            let message =
                format!("{} is an empty range; put the earlier date first", shortened(&value.text, SHOWN_LETTERS));
            return fail(value.at.clone(), message);
        }
        return Ok(Period { from, until });
    }
    let [from, until] = parse(&value.text)?;
    let (from, until) = match operator {
        Operator::Is => (Some(from), Some(until)),
        Operator::Above => (Some(until), None),
        Operator::AtLeast => (Some(from), None),
        Operator::Below => (None, Some(from)),
        Operator::AtMost => (None, Some(until)),
    };
    Ok(Period { from, until })
}

fn circle(value: &Word, lower: &str) -> Result<Circle, QueryError> {
    Circle::parse(lower).ok_or_else(|| {
        let message = format!(
            "“{}” is not a location; write latitude, longitude and distance: near:48.137,11.575~10km",
            shortened(&value.text, SHOWN_LETTERS)
        );
        QueryError { at: value.at.clone(), message }
    })
}

fn verdict(value: &Word, lower: &str) -> Result<VerdictKind, QueryError> {
    let known = [
        ("accept", VerdictKind::Accept),
        ("reject", VerdictKind::Reject),
        ("unsure", VerdictKind::Unsure),
        ("wrong", VerdictKind::WrongClass),
        ("moved", VerdictKind::Moved),
        ("added", VerdictKind::Added),
        ("complete", VerdictKind::Complete),
        ("returned", VerdictKind::Returned),
    ];
    // Also “accepted”, “rejected”, “wrong class”.
    let is_known = |word: &str| lower.strip_prefix(word).is_some_and(|rest| ["", "ed", " class"].contains(&rest));
    known.iter().find(|(word, _)| is_known(word)).map(|(_, kind)| *kind).ok_or_else(|| {
        let message = format!(
            "“{}” is not a verdict; write accept, reject, unsure, wrong, moved, added, complete or returned, or !verdict \
             for none",
            shortened(&value.text, SHOWN_LETTERS)
        );
        QueryError { at: value.at.clone(), message }
    })
}

fn span(key: &Key, value: &Word, operator: Operator) -> Result<Span, QueryError> {
    if let (Operator::Is, Some((low, high))) = (operator, value.text.split_once("..")) {
        let low = bound(key, low, value)?.unwrap_or(f32::NEG_INFINITY);
        let high = bound(key, high, value)?.unwrap_or(f32::INFINITY);
        if low > high {
            let message =
                format!("{} is an empty range; put the smaller number first", shortened(&value.text, SHOWN_LETTERS));
            return fail(value.at.clone(), message);
        }
        return Ok(Span { low, high, ..Span::ANY });
    }
    let Some(number) = bound(key, &value.text, value)? else {
        return fail(value.at.clone(), not_a_number(key, value));
    };
    let any = Span::ANY;
    Ok(match operator {
        Operator::Above => Span { low: number, includes_low: false, ..any },
        Operator::AtLeast => Span { low: number, ..any },
        Operator::Below => Span { high: number, includes_high: false, ..any },
        Operator::AtMost => Span { high: number, ..any },
        Operator::Is if key.takes == Takes::OptionalCount => Span { low: number, high: number, ..any },
        Operator::Is => {
            let message = format!(
                "The value of {1} is rarely exactly {0}; write {1}>={0}, or a range such as {1}:{0}..1",
                shortened(&value.text, SHOWN_LETTERS),
                key.word()
            );
            return fail(value.at.clone(), message);
        }
    })
}

/// A number; `80%` is 0.8. `None` for an empty text, which is an open end.
fn bound(key: &Key, text: &str, value: &Word) -> Result<Option<f32>, QueryError> {
    if text.is_empty() {
        return Ok(None);
    }
    let percent = text.strip_suffix('%').filter(|_| key.takes.is_share());
    // Accepts a decimal comma.
    let digits = percent.unwrap_or(text).replace(',', ".");
    let is_similarity = key.takes == Takes::Similarity;
    let unsigned = digits.strip_prefix('-').filter(|_| is_similarity).unwrap_or(&digits);
    let is_number = unsigned.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.');
    let number = digits.parse::<f64>().ok().filter(|_| is_number);
    let Some(number) = number else {
        return fail(value.at.clone(), not_a_number(key, value));
    };
    let number = if percent.is_some() { number / 100.0 } else { number };
    if key.takes.is_share() && number.abs() > 1.0 {
        let (text, lowest) = (shortened(text, SHOWN_LETTERS), if is_similarity { -1 } else { 0 });
        let message = format!("“{}” goes from {lowest} to 1; for {text} percent write {text}%", key.word());
        return fail(value.at.clone(), message.replace("%%", "%"));
    }
    Ok(Some(number as f32))
}

fn not_a_number(key: &Key, value: &Word) -> String {
    format!("“{}” is not a number; write it as in {}", shortened(&value.text, SHOWN_LETTERS), key.example)
}

fn fail<T>(at: Range<usize>, message: impl Into<String>) -> Result<T, QueryError> {
    Err(QueryError { at, message: message.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(word: &str, value: Value) -> Node {
        let key = Key::find(word).expect("a key");
        Node::Term(Term { key, value })
    }

    fn text(word: &str, text: &str) -> Node {
        term(word, Value::Text(text.to_owned()))
    }

    fn name(part: &str) -> Node {
        text("name", part)
    }

    fn class(pattern: &str, score: Option<Span>, boxes: Option<Span>) -> Node {
        let class = Some(ClassName::new(pattern));
        Node::Term(Term::from_boxes(BoxTerm { class, score, boxes, ..BoxTerm::default() }))
    }

    fn above(low: f32) -> Span {
        Span { low, includes_low: false, ..Span::ANY }
    }

    fn from_to(low: f32, high: f32) -> Span {
        Span { low, high, ..Span::ANY }
    }

    fn check(text: &str, expected: Node) {
        assert_eq!(Query::parse(text).map(|query| query.root), Ok(Some(expected)), "{text}");
    }

    #[test]
    fn queries_are_parsed() {
        let not = |node| Node::Not(Box::new(node));
        let verdict = |kind| term("verdict", kind);
        let number = |word, span| term(word, Value::Number(span));
        check("Beach", name("beach"));
        check("\"a \\\"b\\\" C\"", name("a \"b\" c"));
        check(r#""a \b\\""#, name(r"a \b\"));
        check("name:a.png", name("a.png"));
        check("a  b", Node::All(vec![name("a"), name("b")]));
        check("a or b OR c", Node::Any(vec![name("a"), name("b"), name("c")]));
        check("orange or \"or\"", Node::Any(vec![name("orange"), name("or")]));
        check("a (b or c)", Node::All(vec![name("a"), Node::Any(vec![name("b"), name("c")])]));
        check("!(a b)!c", Node::All(vec![not(Node::All(vec![name("a"), name("b")])), not(name("c"))]));
        check("class:\"traffic Light\"", class("traffic light", None, None));
        check("class=cat", class("cat", None, None));
        check(
            "class:cat score>0.8 !verdict",
            Node::All(vec![class("cat", Some(above(0.8)), None), not(verdict(Value::Any))]),
        );
        check(
            "boxes > 3 class:cat boxes<=5",
            class("cat", None, Some(Span { low: 3.0, includes_low: false, high: 5.0, includes_high: true })),
        );
        check(
            "score>80% class:a or score:0,5..",
            Node::Any(vec![class("a", Some(above(0.8)), None), number("score", from_to(0.5, f32::INFINITY))]),
        );
        check("!class:a score>0.5", Node::All(vec![not(class("a", None, None)), number("score", above(0.5))]));
        check("boxes:0", number("boxes", from_to(0.0, 0.0)));
        check("score≥0.5", number("score", from_to(0.5, f32::INFINITY)));
        check("boxes", number("boxes", from_to(1.0, f32::INFINITY)));
        check("margin<.1", number("margin", Span { high: 0.1, includes_high: false, ..Span::ANY }));
        check("alike<-.2", number("alike", Span { high: -0.2, includes_high: false, ..Span::ANY }));
        check("alike:-50%..0,25", number("alike", from_to(-0.5, 0.25)));
        check("alike:a.png", text("alike", "a.png"));
        check("alike:a.png alike:A.png", Node::All(vec![text("alike", "a.png"), text("alike", "a.png")]));
        check("verdict:rejected", verdict(Value::Verdict(VerdictKind::Reject)));
        check("verdict:wrong", verdict(Value::Verdict(VerdictKind::WrongClass)));
        check("tag:Night", text("tag", "night"));
        for text in ["tag:", "tag=", "note:", "camera:", "verdict:", "taken:", "taken>=", "near:", "suspicious:"] {
            let word = text.trim_end_matches([':', '=', '>']);
            let error = Query::parse(text).unwrap_err();
            assert!(error.message.contains(&format!("such as {word}")), "{text}: {error}");
            assert_eq!(error.at, 0..text.len());
        }
        check("note:\"very dark\"", text("note", "very dark"));
        check("problem:", term("problem", Value::Any));
        check("predicted", term("predicted", Value::Any));
        check("answered", term("predicted", Value::Any));
        check("damaged", term("damaged", Value::Any));
        check(
            "changed:\"Traffic light>car\"",
            term("changed", Value::Change("traffic light>car".to_owned(), [].into())),
        );
        assert!(Query::parse("  ").unwrap().is_empty());
    }

    #[test]
    fn mistakes_have_a_position_and_a_suggestion() {
        let check = |text: &str, at: &str, says: &str| {
            let error = Query::parse(text).expect_err(text);
            assert_eq!(&text[error.at.clone()], at, "{text}: {error}");
            assert!(error.message.contains(says), "{text}: {error}");
        };
        check("scor>0.5", "scor", "did you mean score?");
        check("a c:/photos", "c", "\"c:/photos\"");
        check("class:", "class:", "class:cat");
        check("class", "class", "write \"class\"");
        check("changed:", "changed:", "changed:cat>dog");
        check("score", "score", "score>0.8");
        check("score>", "score>", "score>0.8");
        check("score>high", "high", "not a number");
        check("score>-1", "-1", "not a number");
        check("score>nan", "nan", "not a number");
        check("score>80", "80", "write 80%");
        check("alike>2", "2", "from -1 to 1");
        check("alike<-20", "-20", "write -20%");
        check("alike>--0.2", "--0.2", "not a number");
        check("alike:a.png or (!alike:\"b c\")", "\"b c\"", "a.png");
        check("score:0.8", "0.8", "score>=0.8");
        check("score:0.8..0.2", "0.8..0.2", "smaller number first");
        check("boxes>many", "many", "boxes>3");
        check("class>cat", "class>", "class:cat");
        check("verdict:acceptable", "acceptable", "accept, reject");
        check("verdict:good", "good", "accept, reject, unsure, wrong, moved, added, complete or returned");
        check("problem:yes", "problem:yes", "!problem");
        check("a or", "or", "term after it");
        check("or a", "or", "term before it");
        check("a !", "!", "!verdict");
        check("(a", "(", "add )");
        check("(", "(", "add )");
        check("a)", ")", "no matching (");
        check("()", "()", "parentheses are empty");
        check("\"a", "\"a", "never closed");
        check("class:\"\"", "\"\"", "quotes are empty");
        check(">0.5", ">", "score>0.5");
    }

    #[test]
    fn query_length_and_depth_are_limited() {
        const MAX_LETTERS: usize = Query::MAX_LETTERS;
        let refused = |text: &str| {
            let error = Query::parse(text).expect_err("it is too long or too deep");
            assert!(text.get(error.at.clone()).is_some(), "{:?}", error.at);
            assert!(error.message.chars().count() < 250, "{}", error.message);
            error
        };
        let (open, close) = ("(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH));
        assert_eq!(Query::parse(&format!("{open}a{close}")).map(|query| query.root), Ok(Some(name("a"))));
        assert!(Query::parse(&format!("{}a", "!".repeat(MAX_DEPTH))).is_ok());
        assert_eq!(refused(&format!("({open}a{close})")).at, MAX_DEPTH..MAX_DEPTH + 1);
        for letters in ["(", "!", "!(", "! ( "] {
            for len in [8000, 27_500, 1_000_000] {
                refused(&letters.repeat(len / letters.len()));
            }
        }
        for unit in ["a or ", "class:b or ", "!a ", "(a) "] {
            let most = MAX_LETTERS / unit.len();
            assert!(Query::parse(&(unit.repeat(most - 1) + "a")).is_ok(), "{unit}");
            assert_eq!(refused(&(unit.repeat(most + 1) + "a")).at.start, MAX_LETTERS, "{unit}");
        }
        // The same number of characters in more bytes.
        assert!(Query::parse(&"猫".repeat(MAX_LETTERS)).is_ok());
        refused(&"猫".repeat(MAX_LETTERS + 1));
    }

    #[test]
    fn long_word_is_abbreviated_in_errors() {
        let word = "x".repeat(9000);
        for text in [
            format!("{word}:1"),
            format!("score:{word}"),
            format!("score:0.9..0.{}", "1".repeat(9000)),
            format!("verdict:{word}"),
            format!("score>1{}", "0".repeat(30)),
        ] {
            let message = Query::parse(&text).unwrap_err().message;
            assert!(message.chars().count() < 250, "{message}");
        }
    }

    #[test]
    fn parser_accepts_any_text_without_panic() {
        let parts = [
            "a", "é", "\"", "\\", "(", ")", "!", "or", " ", ":", ">", "=", "..", "0.5", "%", "class", "score", "≥",
            "猫",
        ];
        let mut random = crate::review::testing::Random::new(9);
        for _ in 0..20_000 {
            let count = random.below(8);
            let text: String = (0..count).map(|_| parts[random.below(parts.len())]).collect();
            if let Err(error) = Query::parse(&text) {
                assert!(text.get(error.at.clone()).is_some(), "{text}: {error:?}");
            }
        }
    }
}
