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

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.uri {
            Some(uri) => write!(formatter, "{uri}: {}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}
