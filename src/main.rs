//! The program: the window, or with a subcommand the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Microsoft's builds of ONNX Runtime collect what they do in a file below the home folder, to send it. They look for this as they
    // are loaded; switching it off through their interface comes after that.
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
    spotcheck::cli::run()
}
