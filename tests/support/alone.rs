//! Tests that need their own environment: the program reads the AWS settings of its process, and all threads of a
//! process share one environment.

use std::process::Command;

/// The name of the test that a process was started for.
const ALONE: &str = "SPOTCHECK_TEST_ALONE";

/// Runs `body` in a separate process, in the environment set by `prepare`. `test` is the full name of the calling test,
/// which that process runs.
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
