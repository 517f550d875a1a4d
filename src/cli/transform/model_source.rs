//! The model of a job or an endpoint: what is packed and uploaded, and how its container runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::package::{ARCHIVE, Packing};
use crate::cli::place::{S3Args, is_stdin, parse_location};
use crate::cli::values::parse_pair;
use crate::domain::{Location, S3Address};
use crate::sagemaker::jobs::{NewArchive, NewModel};
use crate::sagemaker::spec::transform::ArchiveContent;

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelSourceArgs {
    #[command(flatten)]
    file: ModelFileArgs,
    /// Name of the SageMaker model; without an archive, an existing model
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// ARN of the IAM role for the container; required for a new model
    #[arg(long, value_name = "ARN")]
    role: Option<String>,
    /// URI of the container in ECR [default: the AWS container for the archive, region and instance type (Ray Serve or
    /// TensorFlow Serving)]
    #[arg(long, value_name = "URI")]
    image: Option<String>,
    /// Environment variable for the model's container; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    model_env: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct ModelFileArgs {
    /// Model id (see `spotcheck models list`) or ONNX file to pack and upload
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: Option<String>,
    /// Archive from `spotcheck transform package`: a local file, which is uploaded, or `s3://bucket/…/model.tar.gz`
    #[arg(long, value_name = "FILE|s3://…")]
    archive: Option<PathBuf>,
    /// TensorFlow `SavedModel` folder to pack for AWS's TensorFlow Serving container and upload
    #[arg(long, value_name = "FOLDER")]
    saved_model: Option<PathBuf>,
}

impl ModelSourceArgs {
    /// The first part of a name for the job or endpoint; can be empty.
    pub(crate) fn stem(&self) -> String {
        let of_file = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            let endings = [".tar.gz", ".tgz", ".onnx"];
            let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
            Some(stem.unwrap_or(name).to_owned())
        };
        let file = &self.file;
        let packed = file.model.as_deref().map(Path::new);
        let packed = packed.or(file.saved_model.as_deref());
        let stem = packed.and_then(of_file);
        let stem = stem.or_else(|| self.model_name.clone());
        let stem = stem.or_else(|| file.archive.as_deref().and_then(of_file));
        stem.unwrap_or_default()
    }

    /// What to pack before the model is created.
    pub(crate) fn packing(&self) -> Option<Packing> {
        let model = self.file.model.clone().map(Packing::Model);
        model.or_else(|| self.file.saved_model.clone().map(Packing::SavedModel))
    }

    /// The model's name in SageMaker, by default `name`, and how to create it unless it exists. A local archive is
    /// uploaded to `archive_to`.
    pub(crate) fn model(
        &self,
        name: &str,
        archive_to: Option<S3Address>,
        tags: &BTreeMap<String, String>,
    ) -> anyhow::Result<(String, Option<NewModel>)> {
        let name = self.model_name.as_deref().unwrap_or(name).to_owned();
        let file = &self.file;
        let is_new = file.model.is_some() || file.archive.is_some() || file.saved_model.is_some();
        if !is_new && self.model_name.is_none() {
            bail!(
                "no model was given. Pack one with --model or --saved-model, or name one: an archive with --archive, \
                 a SageMaker model with --model-name"
            );
        }
        if !is_new {
            if self.role.is_some() || self.image.is_some() || !self.model_env.is_empty() {
                bail!(
                    "--role, --image and --model-env are for a new model, but the model {name} already exists in \
                     SageMaker; remove them"
                );
            }
            return Ok((name, None));
        }
        let role = self.role.clone().context(
            "a new model needs --role, the ARN of a role that SageMaker may assume, for example \
             arn:aws:iam::123456789012:role/SageMaker",
        )?;
        let model = NewModel {
            name: name.clone(),
            role,
            image: self.image.clone(),
            archive: self.archive(archive_to)?,
            environment: self.model_env.iter().cloned().collect(),
            tags: tags.clone(),
        };
        Ok((name, Some(model)))
    }

    fn archive(&self, to: Option<S3Address>) -> anyhow::Result<NewArchive> {
        let (path, content) = match (&self.file.archive, &self.file.saved_model) {
            (Some(path), _) => match parse_location(path, &S3Args::default())? {
                Location::S3(place) => return Ok(NewArchive::There(place.address)),
                Location::Path(path) if is_stdin(&path) => {
                    bail!("--archive takes a file or an s3:// address, not standard input")
                }
                Location::Path(path) => (path, None),
            },
            (None, Some(_)) => (PathBuf::from(ARCHIVE), Some(ArchiveContent::SavedModel)),
            (None, None) => (PathBuf::from(ARCHIVE), Some(ArchiveContent::Onnx)),
        };
        let to = to.context(
            "SageMaker reads models from S3. Set the folder to upload to with --upload-to s3://bucket/folder/",
        )?;
        Ok(NewArchive::Here { path, to, content })
    }
}
