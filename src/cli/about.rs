//! `spotcheck --version`, `diagnostics`, `completions` and `man`: the program about itself.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::terminal::{raw_stdout, stdout};
use super::{Cli, Outcome};
use crate::dirs::AppDirs;
use crate::model::diagnostics::diagnostics;
use crate::model::runtime::{self, RuntimeError};

const NAME: &str = "spotcheck";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, created if missing
    folder: PathBuf,
}

pub(crate) fn version() -> anyhow::Result<Outcome> {
    let runtime = match runtime::locate(&AppDirs::find()?, None) {
        Ok(library) => format!("{} from {}: {}", library.version, library.found_in.name(), library.path.display()),
        Err(RuntimeError::NotFound) => "not installed".to_owned(),
        Err(error) => error.to_string(),
    };
    writeln!(stdout(), "{NAME} {}\nONNX Runtime {runtime}", crate::version()).context("Could not write to stdout")?;
    Ok(Outcome::AllWell)
}

/// As “Copy diagnostics” in the window, without the state of the window.
pub(crate) fn print_diagnostics() -> anyhow::Result<Outcome> {
    let lines = diagnostics(&AppDirs::find()?, None);
    writeln!(stdout(), "{}", lines.join("\n")).context("Could not write to stdout")?;
    Ok(Outcome::AllWell)
}

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    raw_stdout().write_all(&script).context("Could not write to stdout")?;
    Ok(Outcome::AllWell)
}

/// One page per command: `spotcheck.1`, `spotcheck-predict.1` and so on.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<Outcome> {
    let folder: &Path = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("Could not create the folder {}", folder.display()))?;
    let program = Cli::command().version(env!("CARGO_PKG_VERSION"));
    clap_mangen::generate_to(program, folder)
        .with_context(|| format!("Could not write the pages to {}", folder.display()))?;
    Ok(Outcome::AllWell)
}
