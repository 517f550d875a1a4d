//! `spotcheck [SOURCE]`: the window.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use strsim::levenshtein;

use super::Outcome;
use super::place::{LayoutArgs, S3Args, parse_location};
use crate::dirs::AppDirs;
use crate::domain::Location;
use crate::window::app::{RendererChoice, WindowOptions, run_window};

#[derive(Debug, Args)]
pub(crate) struct WindowArgs {
    /// Folder, image, `s3://bucket/folder/`, project (.spotcheck) or model (.onnx) to open
    source: Option<PathBuf>,
    /// Model id, or ONNX file to add [default: the model used last]
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    /// Graphics renderer; if it fails, Spotcheck tries the other one
    #[arg(long, hide = cfg!(target_os = "linux"))]
    renderer: Option<Renderer>,
    #[command(flatten)]
    s3: S3Args,
    #[command(flatten)]
    listing: LayoutArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Renderer {
    /// OpenGL
    Glow,
    /// Vulkan, Metal or Direct3D
    #[cfg(any(windows, target_os = "macos"))]
    Wgpu,
}

/// Whether it may be a misspelled command: it has no folder or file extension.
fn is_word(source: &Path) -> bool {
    let text = source.to_string_lossy();
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '-')
}

fn no_such_word(word: &str, program: &clap::Command) -> String {
    let names = program.get_subcommands().map(clap::Command::get_name);
    let nearest =
        names.map(|name| (levenshtein(word, name), name)).min().filter(|(distance, name)| *distance <= name.len() / 3);
    let meant = nearest.map_or_else(String::new, |(_, name)| format!("did you mean `{name}`? "));
    format!("“{word}” is not a command, file or folder; {meant}`spotcheck help` lists the commands")
}

pub(crate) fn run(args: &WindowArgs, program: &clap::Command) -> anyhow::Result<Outcome> {
    let (source, place) = match &args.source {
        None => (None, None),
        Some(source) if is_word(source) && !source.exists() => {
            bail!("{}", no_such_word(&source.to_string_lossy(), program))
        }
        Some(source) => match args.listing.apply_to(parse_location(source, &args.s3)?)? {
            Location::S3(place) => (None, Some(*place)),
            Location::Path(_) => (Some(source.clone()), None),
        },
    };
    let options = WindowOptions {
        source,
        place,
        model: args.model.clone(),
        renderer: args.renderer.map(|renderer| match renderer {
            Renderer::Glow => RendererChoice::Glow,
            #[cfg(any(windows, target_os = "macos"))]
            Renderer::Wgpu => RendererChoice::Wgpu,
        }),
        dirs: AppDirs::find()?,
        started: std::time::Instant::now(),
    };
    run_window(&options)?;
    Ok(Outcome::AllWell)
}
