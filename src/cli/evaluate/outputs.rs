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
use crate::project::export::options::EvaluationFormat;
use crate::project::export::{EvaluatedImages, Existing, ExportTarget, write_evaluation};
use crate::tasks::TaskControl;

/// The files and folders, checked before anything is read.
pub(crate) struct Outputs {
    /// `None`: JSON on stdout.
    files: Vec<(Option<EvaluationFormat>, PathBuf)>,
    existing: Existing,
}

/// The format of an `--out`.
fn format_of(out: &Path) -> anyhow::Result<Option<EvaluationFormat>> {
    let extension = out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    Ok(match extension.as_deref() {
        _ if is_stdout(out) => None,
        Some("json") => Some(EvaluationFormat::Json),
        Some("csv") => Some(EvaluationFormat::Csv),
        _ => bail!(
            "the name of --out must end in .json (all metrics) or .csv (one row per class), not: {}",
            out.display()
        ),
    })
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
        let mut files = Vec::new();
        for out in &args.out {
            files.push((format_of(out)?, out.clone()));
        }
        files.extend(args.plots.iter().map(|path| (Some(EvaluationFormat::Plots), path.clone())));
        files.extend(args.report.iter().map(|path| (Some(EvaluationFormat::Report), path.clone())));
        Ok(Self { files, existing: Existing::from_force(args.force) })
    }

    /// Whether the summary must not go to stdout.
    pub(crate) fn takes_stdout(&self) -> bool {
        self.files.iter().any(|(format, _)| format.is_none())
    }

    /// `listed`: the images, if known.
    pub(crate) fn write(
        &self,
        evaluated: &Evaluated,
        listed: Option<&Listing>,
        control: &TaskControl,
    ) -> anyhow::Result<()> {
        let limits = DecodeLimits::default();
        let images = listed.map(|(source, samples)| EvaluatedImages {
            source: &**source,
            samples: samples.iter().map(|sample| (sample.name.as_str(), &sample.uri)).collect(),
            limits: &limits,
        });
        for (format, path) in &self.files {
            let Some(format) = *format else {
                let text = serde_json::to_string(evaluated)? + "\n";
                stdout().write_all(text.as_bytes()).context("Could not write to stdout")?;
                continue;
            };
            let target = ExportTarget { path: path.clone(), existing: self.existing };
            let failure = match format {
                EvaluationFormat::Json => "Could not write the metrics",
                EvaluationFormat::Csv => "Could not write the class table",
                EvaluationFormat::Plots => "Could not write the plots",
                EvaluationFormat::Report => "Could not write the report",
            };
            let written = write_evaluation(evaluated, format, images.as_ref(), &target, control).context(failure)?;
            if format == EvaluationFormat::Plots {
                let plots = &written.plots;
                eprintln!("Plots: {}", if plots.is_empty() { "none (no data)".to_owned() } else { plots.join(", ") });
            }
            for problem in written.problems {
                eprintln!("{problem}");
            }
        }
        Ok(())
    }
}
