//! The outputs of `evaluate` other than its summary.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::EvaluateArgs;
use super::sides::Listing;
use crate::cli::out_file::{check_is_no_input, is_stdout};
use crate::cli::terminal::stdout;
use crate::evaluation::Evaluated;
use crate::image::decode::DecodeLimits;
use crate::project::export::evaluation::{write_classes_csv, write_json, write_plots};
use crate::project::export::{EvaluatedImages, Existing, ExportTarget, write_evaluation_report};
use crate::tasks::TaskControl;

/// The files and folders, checked before anything is read.
pub(crate) struct Outputs {
    files: Vec<(OutKind, PathBuf)>,
    plots: Option<PathBuf>,
    report: Option<PathBuf>,
    existing: Existing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutKind {
    Stdout,
    Json,
    Csv,
}

impl OutKind {
    fn from_path(out: &Path) -> anyhow::Result<Self> {
        let extension = out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        Ok(match extension.as_deref() {
            _ if is_stdout(out) => Self::Stdout,
            Some("json") => Self::Json,
            Some("csv") => Self::Csv,
            _ => bail!(
                "the name of --out must end in .json (all metrics) or .csv (one row per class), not: {}",
                out.display()
            ),
        })
    }
}

impl Outputs {
    /// # Errors
    /// A file would overwrite an input or another output, or exists.
    pub(crate) fn from_args(args: &EvaluateArgs) -> anyhow::Result<Self> {
        let inputs = [
            ("the ground truth", args.truth.as_deref()),
            ("the predictions", args.predictions.as_deref()),
            ("the project", args.project.as_deref()),
            ("the class corrections", args.class_map.as_deref()),
        ];
        let mut seen: Vec<&Path> = Vec::new();
        for out in args.out.iter().chain(&args.plots).chain(&args.report).map(PathBuf::as_path) {
            if seen.contains(&out) {
                bail!("two outputs have the same name: {}", out.display());
            }
            seen.push(out);
            if is_stdout(out) {
                continue;
            }
            check_is_no_input(out, &inputs)?;
            if !args.force && out.symlink_metadata().is_ok() {
                bail!("the output exists and was not replaced; choose another name, or add --force: {}", out.display());
            }
        }
        let kinds = args.out.iter().map(|out| Ok((OutKind::from_path(out)?, out.clone())));
        Ok(Self {
            files: kinds.collect::<anyhow::Result<_>>()?,
            plots: args.plots.clone(),
            report: args.report.clone(),
            existing: if args.force { Existing::Replace } else { Existing::Keep },
        })
    }

    /// Whether the summary must not go to stdout.
    pub(crate) fn takes_stdout(&self) -> bool {
        self.files.iter().any(|(kind, _)| *kind == OutKind::Stdout)
    }

    /// `listed`: the images, if known.
    pub(crate) fn write(
        &self,
        evaluated: &Evaluated,
        listed: Option<&Listing>,
        control: &TaskControl,
    ) -> anyhow::Result<()> {
        for (kind, path) in &self.files {
            let target = self.target(path);
            match kind {
                OutKind::Stdout => {
                    let mut text = serde_json::to_string(evaluated)?;
                    text.push('\n');
                    stdout().write_all(text.as_bytes()).context("Could not write to stdout")?;
                }
                OutKind::Json => write_json(evaluated, &target).context("Could not write the metrics")?,
                OutKind::Csv => write_classes_csv(evaluated, &target).context("Could not write the class table")?,
            }
        }
        if let Some(folder) = &self.plots {
            let plots = write_plots(evaluated, &self.target(folder), control).context("Could not write the plots")?;
            eprintln!("Plots: {}", if plots.is_empty() { "none (no data)".to_owned() } else { plots.join(", ") });
        }
        if let Some(path) = &self.report {
            let limits = DecodeLimits::default();
            let images = listed.map(|(source, samples)| EvaluatedImages {
                source: &**source,
                samples: samples.iter().map(|sample| (sample.name.as_str(), &sample.uri)).collect(),
                limits: &limits,
            });
            let problems = write_evaluation_report(evaluated, images.as_ref(), &self.target(path), control);
            for problem in problems.context("Could not write the report")? {
                eprintln!("{problem}");
            }
        }
        Ok(())
    }

    fn target(&self, path: &Path) -> ExportTarget {
        ExportTarget { path: path.to_owned(), existing: self.existing }
    }
}
