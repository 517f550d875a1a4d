//! The result of the program, with its output.

use std::process::{Command, Output};

use super::seaweed::{ADMIN, BLIND};

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Runs a program to its end.
    #[track_caller]
    pub(crate) fn run(command: &mut Command) -> Self {
        Self::new(&command.output().unwrap())
    }

    /// Checks that its output contains no secret.
    #[track_caller]
    pub(crate) fn new(output: &Output) -> Self {
        let ended = Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        for secret in [ADMIN.secret_key, BLIND.secret_key] {
            assert!(!ended.prints(secret), "a secret is printed");
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
        assert!(self.prints(words), "{words}: {self:#?}");
    }

    #[track_caller]
    pub(crate) fn must_succeed(self) -> Self {
        self.must(0, &[])
    }

    /// It failed in order (no signal, no panic), with messages that hold all of `words`.
    #[track_caller]
    pub(crate) fn must_fail_with(self, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(1), "{self:#?}");
        self.must_report(words)
    }

    /// It ended with this code, and printed this alone to stdout.
    #[track_caller]
    pub(crate) fn must_write(self, code: i32, stdout: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.stdout, stdout, "{self:#?}");
        self
    }

    /// It succeeded, and printed all of this to stdout.
    #[track_caller]
    pub(crate) fn must_show(&self, words: &[&str]) {
        assert_eq!(self.code, Some(0), "{self:#?}");
        for words in words {
            assert!(self.stdout.contains(words), "{words}: {self:#?}");
        }
    }

    /// It printed all of this to stderr.
    #[track_caller]
    pub(crate) fn must_report(self, words: &[&str]) -> Self {
        for words in words {
            assert!(self.stderr.contains(words), "{words}: {self:#?}");
        }
        self
    }

    fn prints(&self, words: &str) -> bool {
        self.stderr.contains(words) || self.stdout.contains(words)
    }
}
