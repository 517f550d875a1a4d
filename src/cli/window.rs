//! `spotcheck [SOURCE]`: the window.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Outcome;
use crate::app::{RendererChoice, WindowOptions, run_window};
use crate::dirs::AppDirs;

#[derive(Debug, Args)]
pub(super) struct WindowArgs {
    /// The folder or image to open
    source: Option<PathBuf>,
    /// The model to use, instead of the one used last
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// What draws the window; the other one is tried where it does not work
    #[arg(long)]
    renderer: Option<Renderer>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Renderer {
    /// OpenGL
    Glow,
    /// Vulkan, Metal or Direct3D
    Wgpu,
}

pub(super) fn run(args: &WindowArgs) -> anyhow::Result<Outcome> {
    let options = WindowOptions {
        source: args.source.clone(),
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
