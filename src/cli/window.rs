//! `spotcheck [SOURCE]`: the window.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Outcome;
use super::place::{LayoutArgs, Place, S3Args};
use crate::app::{RendererChoice, WindowOptions, run_window};
use crate::dirs::AppDirs;

#[derive(Debug, Args)]
pub(super) struct WindowArgs {
    /// The folder, image or `s3://bucket/folder/` to open
    source: Option<PathBuf>,
    /// The model to use, instead of the one used last
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// What draws the window; the other one is tried where it does not work
    #[arg(long)]
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
    Wgpu,
}

pub(super) fn run(args: &WindowArgs) -> anyhow::Result<Outcome> {
    let (source, place) = match &args.source {
        None => (None, None),
        Some(source) => match Place::parse(source, &args.s3)?.listed(args.listing)? {
            Place::S3(place) => (None, Some(place)),
            Place::Path(_) | Place::Stdin => (Some(source.clone()), None),
        },
    };
    let options = WindowOptions {
        source,
        place,
        model: args.model.clone(),
        renderer: args.renderer.map(|renderer| match renderer {
            Renderer::Glow => RendererChoice::Glow,
            Renderer::Wgpu => RendererChoice::Wgpu,
        }),
        dirs: AppDirs::find()?,
        started: std::time::Instant::now(),
    };
    run_window(&options)?;
    Ok(Outcome::AllWell)
}
