//! How the program ended, and what it said.

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
    /// Checks that its output has no secret.
    #[track_caller]
    pub(crate) fn of(output: &Output) -> Self {
        let ended = Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        for secret in [ADMIN.secret_key, BLIND.secret_key] {
            assert!(!ended.says(secret), "a secret was told");
        }
        ended
    }

    /// It ended with this code, and said all this, on either way out.
    #[track_caller]
    pub(crate) fn must(self, code: i32, said: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for words in said {
            self.must_say(words);
        }
        self
    }

    #[track_caller]
    pub(crate) fn must_say(&self, words: &str) {
        assert!(self.says(words), "no “{words}” in {self:#?}");
    }

    fn says(&self, words: &str) -> bool {
        self.stderr.contains(words) || self.stdout.contains(words)
    }
}
