use super::SampleUri;

/// An entry in the list of problems. The message states what happened, why, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The affected image; `None` if the problem concerns a folder, a model or the program.
    pub uri: Option<SampleUri>,
    pub message: String,
}

impl Problem {
    pub fn of_sample(uri: SampleUri, message: impl Into<String>) -> Self {
        Self { uri: Some(uri), message: message.into() }
    }

    pub fn general(message: impl Into<String>) -> Self {
        Self { uri: None, message: message.into() }
    }
}

/// What happened to `name`, for people: “a.jpg is truncated: …” if the message goes on with a verb, otherwise “a.jpg: the
/// connection was cut”.
pub fn problem_of(name: &str, message: &str) -> String {
    const VERBS: [&str; 8] = ["is", "has", "needs", "contains", "does", "ends", "may be", "could not be"];
    let goes_on = |verb: &str| message.strip_prefix(verb).is_some_and(|rest| rest.starts_with(' '));
    let colon = if VERBS.into_iter().any(goes_on) { "" } else { ":" };
    format!("{name}{colon} {message}")
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.uri {
            Some(uri) => write!(formatter, "{uri}: {}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_with_a_verb_has_no_colon() {
        for (message, expected) in [
            ("is truncated: copy it again", "a.jpg is truncated: copy it again"),
            ("could not be read: no such file", "a.jpg could not be read: no such file"),
            ("the connection was cut", "a.jpg: the connection was cut"),
            ("issues were found", "a.jpg: issues were found"),
            ("could not upload it", "a.jpg: could not upload it"),
        ] {
            assert_eq!(problem_of("a.jpg", message), expected);
        }
    }
}
