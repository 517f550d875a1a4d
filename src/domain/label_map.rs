//! Label maps of TensorFlow Object Detection, in protocol buffers' text format: `item { id: 1 name: 'person' }`.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the label file: {reason}")]
pub struct LabelError {
    /// Counted from 1.
    pub line: usize,
    pub reason: String,
}

/// Names by class id.
pub(super) fn parse(text: &str) -> Result<BTreeMap<u32, String>, LabelError> {
    let mut tokens = Tokens::new(text);
    let mut names = BTreeMap::new();
    while let Some(token) = tokens.next()? {
        if token != Token::Word("item".to_owned()) {
            return Err(tokens.error("does not begin with an item"));
        }
        let item = read_item(&mut tokens)?;
        let id = item.id.ok_or_else(|| tokens.error("ends an item without an id"))?;
        let name = item.display_name.or(item.name);
        let name = name.filter(|name| !name.trim().is_empty());
        let name = name.ok_or_else(|| tokens.error("ends an item without a name"))?;
        if names.insert(id, name).is_some() {
            return Err(tokens.error(&format!("ends a second item with id {id}")));
        }
    }
    Ok(names)
}

#[derive(Default)]
struct Item {
    id: Option<u32>,
    name: Option<String>,
    display_name: Option<String>,
}

/// Reads the braces and everything between them. A colon before them is optional.
fn read_item(tokens: &mut Tokens<'_>) -> Result<Item, LabelError> {
    let mut item = Item::default();
    let mut token = tokens.must_next()?;
    if token == Token::Sign(':') {
        token = tokens.must_next()?;
    }
    if token != Token::Sign('{') {
        return Err(tokens.error("has no brace after item"));
    }
    loop {
        let field = match tokens.must_next()? {
            Token::Sign('}') => return Ok(item),
            Token::Sign(',' | ';') => continue,
            Token::Word(field) => field,
            _ => return Err(tokens.error("has something other than a field's name")),
        };
        match (field.as_str(), tokens.must_next()?) {
            (_, Token::Sign('{')) => skip_message(tokens)?,
            (name, Token::Sign(':')) => match (name, tokens.must_next()?) {
                (_, Token::Sign('{')) => skip_message(tokens)?,
                ("id", Token::Word(number)) => {
                    let id = number.parse();
                    item.id = Some(id.map_err(|_| tokens.error("has an id that is not a number"))?);
                }
                ("name", Token::Text(text)) => item.name = Some(text),
                ("display_name", Token::Text(text)) => item.display_name = Some(text),
                (_, Token::Word(_) | Token::Text(_)) => {}
                (_, Token::Sign(_)) => return Err(tokens.error("has a field without a value")),
            },
            _ => return Err(tokens.error("has a field without a colon")),
        }
    }
}

/// Skips the rest of a message after its opening brace.
fn skip_message(tokens: &mut Tokens<'_>) -> Result<(), LabelError> {
    let mut depth = 1;
    while depth > 0 {
        match tokens.must_next()? {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => depth -= 1,
            _ => {}
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    /// A name or a number.
    Word(String),
    Text(String),
    Sign(char),
}

struct Tokens<'t> {
    chars: Peekable<Chars<'t>>,
    /// Counted from 1.
    line: usize,
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str) -> Self {
        Self { chars: text.chars().peekable(), line: 1 }
    }

    fn error(&self, reason: &str) -> LabelError {
        LabelError { line: self.line, reason: reason.to_owned() }
    }

    fn must_next(&mut self) -> Result<Token, LabelError> {
        let next = self.next()?;
        next.ok_or_else(|| self.error("ends in the middle of an item"))
    }

    fn next(&mut self) -> Result<Option<Token>, LabelError> {
        while let Some(first) = self.chars.next() {
            match first {
                '\n' => self.line += 1,
                '#' => while self.chars.next_if(|next| *next != '\n').is_some() {},
                space if space.is_whitespace() => {}
                quote @ ('"' | '\'') => {
                    return self.text(quote).map(|text| Some(Token::Text(text)));
                }
                letter if is_word(letter) => {
                    let mut word = String::from(letter);
                    while let Some(next) = self.chars.next_if(|next| is_word(*next)) {
                        word.push(next);
                    }
                    return Ok(Some(Token::Word(word)));
                }
                sign => return Ok(Some(Token::Sign(sign))),
            }
        }
        Ok(None)
    }

    /// Reads text up to the closing quote.
    fn text(&mut self, quote: char) -> Result<String, LabelError> {
        let mut text = String::new();
        while let Some(next) = self.chars.next() {
            match next {
                '\n' => break,
                '\\' => match self.chars.next() {
                    Some('n' | 't' | 'r') => text.push(' '),
                    Some(escaped) => text.push(escaped),
                    None => break,
                },
                end if end == quote => return Ok(text),
                letter => text.push(letter),
            }
        }
        Err(self.error("has a string without a closing quote"))
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+')
}

#[cfg(test)]
mod tests {
    use super::super::LabelSet;

    #[test]
    fn display_names_are_preferred() {
        let labels = LabelSet::parse_label_map(
            "# COCO\nitem {\n  name: \"/m/01g317\"\n  id: 1\n  display_name: \"person\"\n}\n\
             item: { id: 90, name: 'tooth\\'brush' keypoints { id: 3 label: \"}\" } frequency: FREQUENT }\n",
        )
        .unwrap();
        let names: Vec<(u32, &str)> = labels.iter().collect();
        assert_eq!(names, [(1, "person"), (90, "tooth'brush")]);
        assert!(LabelSet::parse_label_map("\n").unwrap().is_empty());
    }

    #[test]
    fn label_map_errors_name_the_line() {
        for (text, line) in [
            ("item {\n id: 1\n", 3),
            ("item { id: 1 }", 1),
            ("item { name: 'a' }", 1),
            ("item {\n id: one name: 'a' }", 2),
            ("item { id: 1 name: 'a' }\nitem { id: 1 name: 'b' }", 2),
            ("item { id: 1 name: 'a\n' }", 1),
            ("cat\ndog", 1),
            ("item { id: -1 name: 'a' }", 1),
        ] {
            let error = LabelSet::parse_label_map(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error}");
        }
    }
}
