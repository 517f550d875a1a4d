//! `spotcheck transform package`: a model as `model.tar.gz`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::Outcome;
use crate::cli::inspect::recognise_for_run;
use crate::cli::out_file::check_is_no_input;
use crate::cli::progress::with_progress;
use crate::cli::terminal::{interruptible, stdout};
use crate::cli::values::parse_score;
use crate::dirs::{AppDirs, Scratch};
use crate::domain::{InstanceType, KeepRule, human_bytes};
use crate::export::{Existing, ExportTarget};
use crate::inference::runtime;
use crate::library::{Library, LibraryError, Model};
use crate::remote::package::{
    PackageOptions, Packaged, Processor, SavedModelOptions, package_model, package_saved_model,
};
use crate::tasks::{ProgressUnit, TaskControl};

pub(in crate::cli) const ARCHIVE: &str = "model.tar.gz";

#[derive(Debug, Args)]
pub(super) struct PackageArgs {
    #[command(flatten)]
    what: WhatArgs,
    /// The archive to write. It must not exist yet
    #[arg(long, value_name = "FILE.tar.gz", default_value = ARCHIVE)]
    out: PathBuf,
    /// Replace a file of that name
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    onnx: OnnxArgs,
    /// The signature that TensorFlow Serving is asked for; its default where it is not given
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    signature: Option<String>,
    /// The input of the signature that takes encoded images, where it has several
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    input: Option<String>,
}

/// What is packed.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct WhatArgs {
    /// A model of `spotcheck models list`, or an ONNX file
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    /// A TensorFlow `SavedModel`: a folder with `saved_model.pb`, or with a folder a version (`1/saved_model.pb`), and its own
    /// `code/inference.py` where it has one
    #[arg(long, value_name = "FOLDER")]
    saved_model: Option<PathBuf>,
}

/// What is fixed when an ONNX model is packed.
#[derive(Debug, Clone, Args)]
pub(super) struct OnnxArgs {
    /// For containers with an NVIDIA card: onnxruntime-gpu, and a card for each replica of Ray Serve
    #[arg(long)]
    gpu: bool,
    /// Detections below this score are left out; 0.005 where it is not given
    #[arg(long, value_parser = parse_score)]
    min_score: Option<f32>,
    /// How many classes of a classifier are kept; 5 where it is not given
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    top_k: Option<u32>,
}

impl OnnxArgs {
    /// # Errors
    /// One of them is given where they decide nothing, because of what goes on after “and”.
    pub(super) fn must_not_be_given(&self, because: &str) -> anyhow::Result<()> {
        if self.gpu || self.min_score.is_some() || self.top_k.is_some() {
            bail!("--gpu, --min-score and --top-k are for packing a model, and {because}");
        }
        Ok(())
    }

    pub(super) fn options(&self) -> PackageOptions {
        let usual = KeepRule::default();
        PackageOptions {
            processor: if self.gpu {
                Processor::Cuda
            } else {
                Processor::Cpu
            },
            keep: KeepRule {
                min_score: self.min_score.unwrap_or(usual.min_score),
                top_k: self.top_k.map_or(usual.top_k, |top_k| top_k as usize),
            },
        }
    }
}

pub(super) fn run(args: &PackageArgs) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Bytes)?;
    let model = args.what.model.as_deref().map(Path::new);
    check_is_no_input(
        &args.out,
        &[("the model", model.filter(|model| model.exists()))],
    )?;
    let target = ExportTarget {
        path: args.out.clone(),
        existing: if args.force {
            Existing::Replace
        } else {
            Existing::Keep
        },
    };
    let packaged = match (&args.what.model, &args.what.saved_model) {
        (Some(model), _) => {
            let model = find_model(model, &control)?;
            for assumed in &model.card.assumed {
                eprintln!("assumed, not known: {assumed}");
            }
            with_progress("Packing", &control, || {
                package_model(&model, args.onnx.options(), &target, &control)
            })
        }
        (None, folder) => {
            let folder = folder.as_deref().unwrap_or(Path::new("."));
            args.onnx
                .must_not_be_given("a SavedModel decides these itself")?;
            let options = SavedModelOptions {
                signature: args.signature.clone(),
                input: args.input.clone(),
            };
            with_progress("Packing", &control, || {
                package_saved_model(folder, &options, &target, &control)
            })
        }
    };
    print(&packaged.context("Could not pack the model")?)?;
    Ok(Outcome::AllWell)
}

/// The model of an id or a file; one without a card is looked into.
pub(super) fn find_model(model: &str, control: &TaskControl) -> anyhow::Result<Model> {
    let dirs = AppDirs::find()?;
    match Library::open(&dirs).find(model) {
        Err(LibraryError::NoCard { path }) => {
            let runtime = with_progress("ONNX Runtime", control, || {
                runtime::ensure_loaded(&dirs, None, control)
            })?;
            recognise_for_run(&runtime, &path, control)
        }
        found => Ok(found?),
    }
}

/// A model in a folder of its own, on its way to S3.
pub(in crate::cli) struct PackedHere {
    pub(in crate::cli) path: PathBuf,
    /// Gone with this.
    _folder: Scratch,
}

/// A model of this machine, on its way into an archive.
pub(in crate::cli) enum Packing {
    /// Of the library, or an ONNX file.
    Model(String),
    SavedModel(PathBuf),
}

impl Packing {
    /// The flag of `transform package` for it, and its value.
    pub(super) fn flag(&self) -> (&'static str, String) {
        match self {
            Self::Model(model) => ("--model", model.clone()),
            Self::SavedModel(folder) => ("--saved-model", folder.display().to_string()),
        }
    }

    /// Packs it for containers on such an instance, as long as what is returned is held.
    pub(in crate::cli) fn pack(
        &self,
        instance_type: &str,
        control: &TaskControl,
    ) -> anyhow::Result<PackedHere> {
        match self {
            Self::Model(model) => pack_for(model, instance_type, control),
            Self::SavedModel(folder) => pack_saved_model(folder, control),
        }
    }
}

fn pack_for(model: &str, instance_type: &str, control: &TaskControl) -> anyhow::Result<PackedHere> {
    let model = find_model(model, control)?;
    for assumed in &model.card.assumed {
        eprintln!("assumed, not known: {assumed}");
    }
    let instance = InstanceType::parse(instance_type);
    let has_gpu = instance.is_some_and(|instance| instance.has_gpu());
    let folder = Scratch::new().context("Could not make a folder for the archive")?;
    let target = ExportTarget {
        path: folder.path().join(ARCHIVE),
        existing: Existing::Keep,
    };
    let options = PackageOptions {
        processor: if has_gpu {
            Processor::Cuda
        } else {
            Processor::Cpu
        },
        keep: KeepRule::default(),
    };
    let packaged = with_progress("Packing", control, || {
        package_model(&model, options, &target, control)
    });
    let packaged = packaged.context("Could not pack the model")?;
    // What comes next counts anew.
    control.set_total(None);
    control.set_done_before(0);
    Ok(PackedHere {
        path: packaged.path,
        _folder: folder,
    })
}

fn pack_saved_model(saved_model: &Path, control: &TaskControl) -> anyhow::Result<PackedHere> {
    let folder = Scratch::new().context("Could not make a folder for the archive")?;
    let target = ExportTarget {
        path: folder.path().join(ARCHIVE),
        existing: Existing::Keep,
    };
    let options = SavedModelOptions::default();
    let packaged = with_progress("Packing", control, || {
        package_saved_model(saved_model, &options, &target, control)
    });
    let packaged = packaged.context("Could not pack the SavedModel")?;
    // What comes next counts anew.
    control.set_total(None);
    control.set_done_before(0);
    Ok(PackedHere {
        path: packaged.path,
        _folder: folder,
    })
}

fn print(packaged: &Packaged) -> anyhow::Result<()> {
    let mut out = stdout();
    for (name, bytes) in &packaged.files {
        writeln!(out, "{:>10}  {name}", human_bytes(*bytes))?;
    }
    writeln!(
        out,
        "{}\n{} bytes, sha256 {}",
        packaged.path.display(),
        packaged.bytes,
        packaged.sha256
    )?;
    Ok(())
}
