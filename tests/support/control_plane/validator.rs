//! Checks requests and responses against AWS's own service models, in a separate Python process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};

use serde::Deserialize;
use serde_json::Value;

use crate::support::{python_packages, repository};

/// Shared by all control planes of a program. It ends with the program, when its standard input closes.
pub(super) struct Validator(Mutex<Pipes>);

struct Pipes {
    questions: ChildStdin,
    responses: BufReader<ChildStdout>,
    _process: Child,
}

/// A problem with a request or a response.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Complaint {
    pub(super) kind: ComplaintKind,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ComplaintKind {
    /// An unknown or missing member, or a wrong type.
    Shape,
    /// A value out of range, as a person may enter one.
    Value,
}

impl Validator {
    pub(super) fn shared() -> &'static Self {
        static VALIDATOR: LazyLock<Validator> = LazyLock::new(Validator::start);
        &VALIDATOR
    }

    fn start() -> Self {
        let mut process = Command::new("python3")
            .arg(repository().join("tests/support/control_plane/validator.py"))
            .env("PYTHONPATH", python_packages("aws-models"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a python3");
        Self(Mutex::new(Pipes {
            questions: process.stdin.take().unwrap(),
            responses: BufReader::new(process.stdout.take().unwrap()),
            _process: process,
        }))
    }

    /// The problems of `question`, whose format `validator.py` describes.
    pub(super) fn complaints(&self, question: &Value) -> Vec<Complaint> {
        let mut pipes = self.0.lock().unwrap();
        writeln!(pipes.questions, "{question}").unwrap();
        let mut line = String::new();
        pipes.responses.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("validator.py writes a line for each line")
    }
}
