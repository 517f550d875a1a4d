//! `spotcheck alike`: the images that are most similar to one, by the embeddings of a project or of a file.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;

use super::Outcome;
use super::export::{choose_run, list_of_runs, open_project};
use super::order::AlikeOrder;
use super::out_file::{Replaceable, check_out, is_stdout, partial_next_to};
use super::place::{self, S3Args, parse_location};
use super::predict::list_images;
use super::terminal::{interruptible, raw_stdout, with_progress};
use super::values::variant;
use crate::alike::{Embedding, METRIC};
use crate::dirs::AppDirs;
use crate::domain::{Encoder, RunInfo, Sample, SampleUri, counted};
use crate::image::decode::{DecodeLimits, decode};
use crate::image::source::absolute;
use crate::local_file;
use crate::model::catalog::Library;
use crate::model::onnx::{LoadOptions, OnnxPredictor};
use crate::model::{Predictor as _, runtime};
use crate::project::Project;
use crate::project::export::{Vectors, rows_file, stored_vectors};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct AlikeArgs {
    /// Folder, image, TFRecord file, or `s3://bucket/folder/`: the images to search
    source: PathBuf,
    /// Project of `spotcheck predict --project` with the embeddings of the images
    #[arg(long, value_name = "FILE.spotcheck", required_unless_present = "embeddings")]
    project: Option<PathBuf>,
    /// Run whose model is used, by name or number [default: the newest]
    #[arg(long, value_name = "NAME|NUMBER", requires = "project")]
    run: Option<String>,
    /// NumPy array of embeddings computed elsewhere, one row per image; FILE.csv names the image of each row in the
    /// column `uri`
    #[arg(long, value_name = "FILE.npy", conflicts_with = "project")]
    embeddings: Option<PathBuf>,
    /// Image to compare with; need not be in SOURCE if a project is used
    #[arg(long, value_name = "IMAGE", required_unless_present = "order")]
    query: Option<PathBuf>,
    /// Instead of a query, compare all images with each other: the most unique first, outliers first, the most
    /// representative first, or those that cover all others
    #[arg(long, value_name = "ORDER", conflicts_with = "query", value_parser = variant::<AlikeOrder>())]
    order: Option<AlikeOrder>,
    /// Seed of the first image that `--order cover` chooses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Maximum number of images to write, in order
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Write JSON Lines to this file, or to stdout with `-`
    #[arg(long, value_name = "FILE.jsonl|-", default_value = "-")]
    out: PathBuf,
    #[command(flatten)]
    s3: S3Args,
}

/// A line of the output.
#[derive(Serialize)]
struct Line<'l> {
    uri: &'l str,
    /// The number of the box; null for a whole image.
    r#box: Option<u32>,
    similarity: f32,
    encoder: &'l str,
    layer: Option<&'l str>,
    metric: &'static str,
}

/// What made the embeddings.
pub(crate) enum Origin {
    Model(Box<(RunInfo, Encoder)>),
    File(PathBuf),
}

impl Origin {
    /// The encoder or the file, and the layer if known.
    pub(crate) fn names(&self) -> (Cow<'_, str>, Option<&str>) {
        match self {
            Self::Model(model) => (model.1.model_id.as_str().into(), Some(&model.1.tensor)),
            Self::File(path) => (path.to_string_lossy(), None),
        }
    }
}

/// Where embeddings are read from: a run of a project, or a file.
pub(crate) struct VectorsAt<'v> {
    pub(crate) project: Option<&'v Path>,
    /// The name or number of the run.
    pub(crate) run: Option<&'v str>,
    /// Instead of a run, the newest of this model.
    pub(crate) model: Option<&'v str>,
    pub(crate) file: Option<&'v Path>,
    pub(crate) s3: &'v S3Args,
    pub(crate) program: &'static str,
}

pub(crate) fn run(args: &AlikeArgs) -> anyhow::Result<Outcome> {
    let inputs = [
        ("the images", Some(&*args.source)),
        ("the project", args.project.as_deref()),
        ("the embeddings", args.embeddings.as_deref()),
        ("the query image", args.query.as_deref()),
    ];
    check_out(&args.out, Replaceable::Empty, &inputs)?;
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Images)?;
    let opened = place::open(&parse_location(&args.source, &args.s3)?, &control)?;
    let if_empty = "there is nothing to compare with";
    let samples = list_images(&opened.source, None, Some(&args.out), if_empty, &control)?.samples;
    let at = VectorsAt {
        project: args.project.as_deref(),
        run: args.run.as_deref(),
        model: None,
        file: args.embeddings.as_deref(),
        s3: &args.s3,
        program: "spotcheck alike",
    };
    let (origin, vectors) = read_vectors(&at, &dirs)?;
    let vectors = vectors.of_samples(&samples);
    if vectors.uris.is_empty() {
        bail!("none of the {} images has an embedding; were they predicted with this project?", samples.len());
    }
    let without = samples.len() - vectors.uris.len();
    if without > 0 {
        eprintln!("note: images without an embedding, because they are new, outdated or failed: {without}");
    }
    let text = match (&args.query, args.order) {
        (Some(query), _) => similar_lines(args, query, (&samples, &vectors, &origin), &dirs, &control)?,
        (None, order) => {
            let order = order.context("specify --query or --order")?;
            let lines = || order.lines(args.count as usize, args.seed, (&origin, &vectors), &control);
            with_progress("Comparing", &control, lines)?
        }
    };
    write_text(&args.out, &text)?;
    Ok(Outcome::AllWell)
}

/// The images most similar to `query`.
fn similar_lines(
    args: &AlikeArgs,
    query: &Path,
    (samples, vectors, origin): (&[Sample], &Vectors, &Origin),
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<String> {
    let query = find_query(query, samples, vectors, origin, dirs, control)?;
    let own = query.uri.and_then(|uri| vectors.uris.iter().position(|known| *known == uri));
    let nearest = vectors.rows.nearest(&query.embedding, args.count as usize + 1);
    let nearest = nearest.iter().filter(|found| Some(found.row) != own).take(args.count as usize);
    let (encoder, layer) = origin.names();
    let encoder = &*encoder;
    let mut text = String::new();
    for found in nearest {
        let uri = vectors.uris[found.row].as_str();
        let line = Line { uri, r#box: None, similarity: found.similarity, encoder, layer, metric: METRIC };
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    eprintln!("{} compared by the {METRIC}", counted(vectors.uris.len(), "image", "images"));
    Ok(text)
}

pub(crate) fn write_text(out: &Path, text: &str) -> anyhow::Result<()> {
    if is_stdout(out) {
        return raw_stdout().write_all(text.as_bytes()).context("Could not write to stdout");
    }
    let mut file = partial_next_to(out)?;
    let written = file.write_all(text.as_bytes());
    written.and_then(|()| Ok(file.persist(out)?)).with_context(|| format!("Could not write {}", out.display()))?;
    Ok(())
}

/// Reads the embeddings of all images, and prints by which encoder they are.
pub(crate) fn read_vectors(at: &VectorsAt<'_>, dirs: &AppDirs) -> anyhow::Result<(Origin, Vectors)> {
    let Some(path) = at.project else {
        let path = at.file.context("specify a project or a file with embeddings")?.to_owned();
        let vectors = Vectors::read(&path)?;
        if vectors.unusable > 0 {
            eprintln!("note: rows that are not finite, or larger than 65,504, are not used: {}", vectors.unusable);
        }
        return Ok((Origin::File(path), vectors));
    };
    let project = open_project(path, at.s3, dirs, at.program)?;
    let run = match at.model {
        Some(model) => newest_of(&project, model)?,
        None => choose_run(&project, at.run, "comparing")?,
    };
    let (encoder, vectors) = require_vectors(&project, &run)?;
    eprintln!("embeddings by {encoder}");
    Ok((Origin::Model(Box::new((run, encoder))), vectors))
}

fn newest_of(project: &Project, model: &str) -> anyhow::Result<RunInfo> {
    let runs = project.runs()?;
    let found = runs.iter().rfind(|run| run.key.model_id == model);
    found
        .cloned()
        .with_context(|| format!("no run of the project is by the model {model}; it has:{}", list_of_runs(&runs)))
}

/// # Errors
/// The run has no embeddings, and how to get them.
pub(crate) fn require_vectors(project: &Project, run: &RunInfo) -> anyhow::Result<(Encoder, Vectors)> {
    stored_vectors(project, run)?.with_context(|| no_embeddings(run))
}

/// What to do about a run without embeddings.
pub(crate) fn no_embeddings(run: &RunInfo) -> String {
    format!(
        "“{}” has no embeddings; add them with `spotcheck predict SOURCE --model {} --project FILE.spotcheck --resume`",
        run.name, run.key.model_id
    )
}

struct QueryImage {
    /// Its URI, if it is one of the images.
    uri: Option<SampleUri>,
    embedding: Embedding,
}

fn find_query(
    query: &Path,
    samples: &[Sample],
    vectors: &Vectors,
    origin: &Origin,
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<QueryImage> {
    let text = query.to_string_lossy();
    let path = absolute(query).unwrap_or_else(|_| query.to_owned());
    let path = path.to_string_lossy();
    let is_it = |uri: &str| uri == text || uri == path;
    let sample = samples.iter().find(|sample| is_it(sample.uri.as_str()) || sample.name == text);
    let row = sample.and_then(|sample| vectors.uris.iter().position(|uri| *uri == sample.uri));
    if let (Some(sample), Some(row)) = (sample, row)
        && let Some(embedding) = vectors.rows.row(row)
    {
        return Ok(QueryImage { uri: Some(sample.uri.clone()), embedding });
    }
    let model = match origin {
        Origin::Model(model) => model,
        Origin::File(path) => bail!("no row of {} is the query image {text}", rows_file(path).display()),
    };
    let bytes = local_file::read(query).with_context(|| format!("Could not read {text}"))?;
    let embedding =
        embed(&bytes, &model.0, &model.1, dirs, control).with_context(|| format!("Could not embed {text}"))?;
    Ok(QueryImage { uri: None, embedding })
}

/// The embedding of an image that the project does not have, by the same model.
fn embed(
    bytes: &[u8],
    run: &RunInfo,
    encoder: &Encoder,
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<Embedding> {
    let image = decode(bytes, &DecodeLimits::default())?;
    let model = Library::open(dirs).find(&run.key.model_id)?;
    let runtime = with_progress("ONNX Runtime", control, || runtime::ensure_loaded(dirs, None, control))?;
    let options = LoadOptions { device: run.key.device, batch: Some(1), embeddings: true, ..LoadOptions::default() };
    let predictor = OnnxPredictor::load(&runtime, &model, &options, control)?;
    match predictor.embedding() {
        Some(Ok(layer)) if layer.encoder(predictor.card()) == *encoder => {}
        Some(Err(reason)) => bail!("the model has no embeddings, because {reason}"),
        _ => bail!("the model or its card has changed; predict the images again, with --resume or --new-run"),
    }
    let prepared = predictor.prepare(&image.image)?;
    let mut predicted = predictor.predict_with_embeddings(0, &[prepared], control)?;
    let embedding = predicted.pop().and_then(|predicted| predicted.embedding);
    embedding.context("the model returned no finite embedding")
}
