//! Tests that need an environment of their own: the program reads the AWS settings of its process, and a process has
//! one environment for all its threads.

use std::process::Command;

/// Names the test that a process was started for.
const ALONE: &str = "SPOTCHECK_TEST_ALONE";

/// Runs `body` in a process of its own, with the environment that `prepare` gives it. `test` is the whole name of the
/// calling test, which that process runs.
#[track_caller]
pub(crate) fn alone(test: &str, prepare: impl FnOnce(&mut Command), body: impl FnOnce()) {
    if std::env::var(ALONE).is_ok_and(|running| running == test) {
        body();
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]);
    prepare(&mut command);
    let output = command.env(ALONE, test).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && messages.contains("1 passed"),
        "{messages}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Another name for each process that [`alone`] starts, fit for a file.
pub(crate) fn process_name() -> String {
    std::env::var(ALONE).map_or_else(|_| "all".to_owned(), |test| test.replace("::", "-"))
}
