//! The program: the window or, with a subcommand, the CLI.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(commit) = option_env!("SPOTCHECK_COMMIT") {
        spotcheck::COMMIT.get_or_init(|| commit);
    }
    if let Some(index) = option_env!("SPOTCHECK_PACKAGE_INDEX") {
        spotcheck::PACKAGE_INDEX.get_or_init(|| index);
    }
    // Microsoft's builds of ONNX Runtime collect telemetry in a file below the home folder. They read this variable
    // while loading; their API can switch telemetry off only later.
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
    // A file beyond the limit of the user then fails to be written, as on a full disk, instead of ending the program.
    #[cfg(unix)]
    // SAFETY: ignoring a signal runs no code.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    spotcheck::cli::run()
}
