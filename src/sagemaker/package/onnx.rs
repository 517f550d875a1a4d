//! Packs a model card: weights, card, and the Python handler (`assets/handler`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ArchiveWriter, PackageError, Packaged};
use crate::domain::{KeepRule, ModelCard};
use crate::model::catalog::Model;
use crate::project::export::ExportTarget;
use crate::tasks::TaskControl;

/// The card's file. Multi Model Server would mistake `manifest.json` for its own, and crash.
pub(super) const CARD_FILE: &str = "spotcheck-model.json";
pub(super) const WEIGHTS_FILE: &str = "model.onnx";
pub(super) const REQUIREMENTS_FILE: &str = "code/requirements.txt";

macro_rules! handler {
    ($($name:literal),* $(,)?) => {
        &[$((concat!("code/", $name), include_str!(concat!("../../../assets/handler/", $name)))),*]
    };
}

const HANDLER: &[(&str, &str)] = handler![
    "inference.py",
    "serve.py",
    "spotcheck_model.py",
    "spotcheck_image.py",
    "spotcheck_inputs.py",
    "spotcheck_outputs.py",
    "spotcheck_records.py",
];

const RAY_DEPLOYMENT: &str = include_str!("../../../assets/handler/deployment.py");

/// Options that are fixed in the archive.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PackageOptions {
    pub processor: Processor,
    pub keep: KeepRule,
}

/// The container's processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Processor {
    #[default]
    Cpu,
    /// An NVIDIA GPU; the container provides CUDA and cuDNN.
    Cuda,
}

/// The content of `spotcheck-model.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PackagedCard {
    /// The version of Spotcheck that packed it.
    pub spotcheck: String,
    /// The card, whose file is [`WEIGHTS_FILE`].
    pub card: ModelCard,
    /// Class names by id; empty if the card has none.
    pub labels: BTreeMap<u32, String>,
    pub keep: KeepRule,
}

/// Packs a model for the Ray Serve image, the PyTorch image, Multi Model Server or plain Python. Progress is in bytes.
///
/// # Errors
/// The model predicts nothing, the weights cannot be read or do not match the card, or the archive cannot be written;
/// then nothing is left of it.
pub fn package_model(
    model: &Model,
    options: PackageOptions,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<Packaged, PackageError> {
    model.card.must_predict()?;
    let mut card = model.card.clone();
    WEIGHTS_FILE.clone_into(&mut card.file.name);
    control.set_total(Some(card.file.bytes));
    control.set_step(card.name.as_str());
    let labels = model.labels.iter();
    let packaged_card = PackagedCard {
        spotcheck: env!("CARGO_PKG_VERSION").to_owned(),
        labels: labels.map(|(id, name)| (id, name.to_owned())).collect(),
        keep: options.keep,
        card,
    };
    let card_text = serde_json::to_string_pretty(&packaged_card).expect("numbers, strings and lists always serialize");

    let mut archive = ArchiveWriter::create(target, control)?;
    archive.add_bytes(CARD_FILE, format!("{card_text}\n").as_bytes())?;
    for (name, text) in HANDLER {
        archive.add_bytes(name, text.as_bytes())?;
    }
    archive.add_bytes(REQUIREMENTS_FILE, requirements(options.processor).as_bytes())?;
    archive.add_bytes("config.yaml", ray_config(options.processor).as_bytes())?;
    archive.add_bytes("deployment.py", RAY_DEPLOYMENT.as_bytes())?;
    let found = archive.add_file(WEIGHTS_FILE, &model.weights, "the weights")?;
    let expected = &packaged_card.card.file.sha256;
    if found != *expected {
        return Err(PackageError::WrongWeights {
            id: model.card.id.clone(),
            found,
            expected: expected.clone(),
            path: model.weights.clone(),
        });
    }
    archive.finish()
}

/// NumPy and Pillow come with every image and fit its other packages, so they are not pinned.
fn requirements(processor: Processor) -> String {
    let runtime = match processor {
        // The version that the handler is tested with.
        Processor::Cpu => "onnxruntime==1.32.0",
        // The newest version in the Python package index on 2026-11-23.
        Processor::Cuda => "onnxruntime-gpu==1.31.1",
    };
    format!("{runtime}\nnumpy>=1.26\npillow>=10.1\n")
}

fn ray_config(processor: Processor) -> String {
    let application = "# For Ray Serve; other servers leave this file alone.\n\
                       applications:\n  \
                         - name: spotcheck\n    \
                           route_prefix: /\n    \
                           import_path: deployment:app\n";
    match processor {
        Processor::Cpu => application.to_owned(),
        Processor::Cuda => {
            let deployments = concat!(
                "    deployments:\n",
                "      - name: Spotcheck\n",
                "        ray_actor_options:\n",
                "          num_gpus: 1\n",
            );
            format!("{application}{deployments}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ray_assigns_one_gpu_with_cuda() {
        let config = ray_config(Processor::Cuda);
        let indents: Vec<usize> = config.lines().map(|line| line.len() - line.trim_start().len()).collect();
        assert_eq!(indents, [0, 0, 2, 4, 4, 4, 6, 8, 10], "{config}");
    }
}
