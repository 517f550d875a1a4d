//! The program: the window, or with a subcommand the command line.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    spotcheck::cli::run(spotcheck::cli::Cli::parse())
}
