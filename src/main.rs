//! The program: the window, or with a subcommand the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    spotcheck::cli::run()
}
