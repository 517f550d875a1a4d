//! The result of the program, with its output.

use std::process::Output;

use super::seaweed::{ADMIN, BLIND};

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Checks that its output contains no secret.
    #[track_caller]
    pub(crate) fn of(output: &Output) -> Self {
        let ended = Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        for secret in [ADMIN.secret_key, BLIND.secret_key] {
            assert!(!ended.prints(secret), "a secret was told");
        }
        ended
    }

    /// Checks that it ended with this code, and printed all of this to stdout or stderr.
    #[track_caller]
    pub(crate) fn must(self, code: i32, messages: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for words in messages {
            self.must_print(words);
        }
        self
    }

    #[track_caller]
    pub(crate) fn must_print(&self, words: &str) {
        assert!(self.prints(words), "no “{words}” in {self:#?}");
    }

    fn prints(&self, words: &str) -> bool {
        self.stderr.contains(words) || self.stdout.contains(words)
    }
}
