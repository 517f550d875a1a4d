//! `spotcheck alike`: the images or boxes that are most similar to one, by the embeddings of a project or of a file.

mod boxes;
pub(crate) mod computed;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;

use super::Outcome;
use super::order::AlikeOrder;
use super::out_file::{Replaceable, check_out, is_stdout, partial_next_to};
use super::place::{self, S3Args, parse_location};
use super::predict::list_images;
use super::stored::{choose_run, open_project};
use super::terminal::{interruptible, raw_stdout, with_progress};
use super::values::variant;
use crate::alike::{Embedding, METRIC, Neighbor};
use crate::dirs::AppDirs;
use crate::domain::{Encoder, ImagePart, RunInfo, Sample, SampleUri, counted};
use crate::image::source::absolute;
use crate::local_file;
use crate::project::Project;
use crate::project::export::{Vectors, rows_file, stored_vectors};
use crate::similar::{self, ModelPlace, why_no_embeddings};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct AlikeArgs {
    /// Folder, image, TFRecord file, or `s3://bucket/folder/`: the images to search
    source: PathBuf,
    /// Project of `spotcheck predict --project` with the embeddings of the images
    #[arg(long, value_name = "FILE.spotcheck", required_unless_present = "embeddings")]
    project: Option<PathBuf>,
    /// Run whose model is used, by name or number [default: the newest; with --box, of a detector]
    #[arg(long, value_name = "NAME|NUMBER", requires = "project", conflicts_with = "embeddings")]
    run: Option<String>,
    /// As --run: the newest run of this model
    #[arg(long, value_name = "ID", requires = "project", conflicts_with_all = ["run", "embeddings"])]
    model: Option<String>,
    /// NumPy array of embeddings computed elsewhere, one row per image; FILE.csv names the image of each row in the
    /// column `uri`
    #[arg(long, value_name = "FILE.npy", conflicts_with = "project")]
    embeddings: Option<PathBuf>,
    /// Image to compare with; need not be in SOURCE if a project is used
    #[arg(long, value_name = "IMAGE", required_unless_present = "order")]
    query: Option<PathBuf>,
    /// Find boxes similar to this box of the query image: its `index` in the JSON Lines of `predict` and `export`
    #[arg(long = "box", value_name = "N", requires_all = ["project", "query"],
        conflicts_with_all = ["order", "embeddings"])]
    box_index: Option<u16>,
    /// Instead of a query, compare all images with each other: the most unique first, outliers first, the most
    /// representative first, or those that cover all others
    #[arg(long, value_name = "ORDER", conflicts_with = "query", value_parser = variant::<AlikeOrder>())]
    order: Option<AlikeOrder>,
    /// Seed of the first image that `--order cover` chooses [default: 1]
    #[arg(long, requires = "order")]
    seed: Option<u64>,
    /// Maximum number of images or boxes to write, in order
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
    /// The index of the box among the stored ones of its image; null for a whole image.
    r#box: Option<u16>,
    similarity: f32,
    encoder: &'l str,
    layer: Option<&'l str>,
    metric: &'static str,
}

/// Boxes or images, best first.
struct Found {
    uri: SampleUri,
    box_index: Option<u16>,
    similarity: f32,
}

/// What made the embeddings.
pub(crate) enum Origin {
    Model(Box<(RunInfo, Encoder)>),
    /// Computed for this command alone.
    Encoder(Box<Encoder>),
    File(PathBuf),
}

impl Origin {
    /// The encoder or the file, and the layer if known.
    pub(crate) fn names(&self) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
        let encoder = match self {
            Self::Model(model) => &model.1,
            Self::Encoder(encoder) => encoder,
            Self::File(path) => return (path.to_string_lossy(), None),
        };
        (encoder.model_id.as_str().into(), Some(encoder.tensor_text()))
    }

    /// The embeddings of the images, with a note about those without one.
    pub(crate) fn of_samples(&self, vectors: &Vectors, samples: &[Sample]) -> anyhow::Result<Vectors> {
        let found = vectors.of_samples(samples);
        let without = samples.len() - found.uris.len();
        match (self, samples.first(), vectors.uris.first()) {
            (Self::File(path), _, None) => bail!("no row of {} can be used", path.display()),
            (Self::File(path), Some(sample), Some(uri)) if found.uris.is_empty() => bail!(
                "{} names none of the images; it has {uri}, for example, and an image is {}",
                rows_file(path).display(),
                sample.uri
            ),
            (Self::Model(_), Some(sample), Some(uri)) if found.uris.is_empty() => {
                bail!(
                    "none of the {} images has an embedding. {}",
                    samples.len(),
                    advice_on_names(uri.as_str(), sample)
                )
            }
            _ if without == 0 => {}
            (Self::File(path), ..) => {
                eprintln!("note: images without a usable row in {}: {without}", rows_file(path).display());
            }
            (Self::Model(_), ..) => {
                eprintln!("note: images without an embedding, because they are new, outdated or failed: {without}");
            }
            (Self::Encoder(_), ..) => eprintln!("note: images without an embedding, because they failed: {without}"),
        }
        let repeated = found.rows.repeated();
        if repeated > 0 {
            eprintln!(
                "note: images with the same vector as an earlier one: {repeated} of {}; unless they are identical, the encoder \
                 does not distinguish them, or their numbers are too small for 16 bits",
                found.uris.len()
            );
        }
        Ok(found)
    }
}

/// What to do if no image is one of the project's, which has `known`.
fn advice_on_names(known: &str, image: &Sample) -> String {
    format!(
        "The project knows {known}, and an image here is {}. If the images moved, run `spotcheck project relocate`; if \
         this is a link to their folder, use the folder itself; if they are new or changed, run `spotcheck predict \
         --resume`",
        image.uri
    )
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

impl AlikeArgs {
    fn place(&self) -> VectorsAt<'_> {
        VectorsAt {
            project: self.project.as_deref(),
            run: self.run.as_deref(),
            model: self.model.as_deref(),
            file: self.embeddings.as_deref(),
            s3: &self.s3,
            program: "spotcheck alike",
        }
    }
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
    let text = match (&args.query, args.order) {
        (Some(query), _) => similar_lines(args, query, &samples, &dirs, &control)?,
        (None, order) => {
            let order = order.context("specify --query or --order")?;
            if args.seed.is_some() && order != AlikeOrder::Cover {
                bail!("--seed is for --order cover: no other order starts with a random image; leave it out");
            }
            let (origin, vectors) = vectors_of(args, &samples, &dirs, &control)?;
            let lines = || order.lines(args.count as usize, args.seed.unwrap_or(1), (&origin, &vectors), &control);
            with_progress("Comparing", &control, lines)?
        }
    };
    write_text(&args.out, &text)?;
    Ok(Outcome::AllWell)
}

/// The images or boxes most similar to `query`.
fn similar_lines(
    args: &AlikeArgs,
    query: &Path,
    samples: &[Sample],
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<String> {
    let (origin, found) = match args.box_index {
        None => find_images(args, query, samples, dirs, control)?,
        Some(index) => boxes::find(args, (query, index), samples, dirs, control)?,
    };
    let (encoder, tensor) = origin.names();
    let boxes = match &origin {
        Origin::Model(model) => model.1.boxes.as_ref().filter(|_| args.box_index.is_some()),
        Origin::Encoder(_) | Origin::File(_) => None,
    };
    let of_boxes = boxes.map(|boxes| boxes.features.tensors().join(", "));
    let (encoder, layer) = (&*encoder, of_boxes.as_deref().or(tensor.as_deref()));
    let mut text = String::new();
    for Found { uri, box_index, similarity } in &found {
        let (uri, similarity) = (uri.as_str(), *similarity);
        let line = Line { uri, r#box: *box_index, similarity, encoder, layer, metric: METRIC };
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    Ok(text)
}

/// The embeddings of the images.
fn vectors_of(
    args: &AlikeArgs,
    samples: &[Sample],
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<(Origin, Vectors)> {
    let (origin, vectors) = read_vectors(&args.place(), dirs, control)?;
    let vectors = origin.of_samples(&vectors, samples)?;
    Ok((origin, vectors))
}

fn find_images(
    args: &AlikeArgs,
    query: &Path,
    samples: &[Sample],
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<(Origin, Vec<Found>)> {
    let (origin, vectors) = vectors_of(args, samples, dirs, control)?;
    let query = find_query(query, samples, &vectors, &origin, dirs, control)?;
    let own = query.uri.and_then(|uri| vectors.uris.iter().position(|known| *known == uri));
    let nearest = vectors.rows.nearest(&query.embedding, args.count as usize + 1).into_iter();
    let nearest = nearest.filter(|found| Some(found.row) != own).take(args.count as usize);
    let found = nearest.map(|Neighbor { row, similarity }| Found {
        uri: vectors.uris[row].clone(),
        box_index: None,
        similarity,
    });
    eprintln!("{} compared by the {METRIC}", counted(vectors.uris.len(), "image", "images"));
    Ok((origin, found.collect()))
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
pub(crate) fn read_vectors(
    at: &VectorsAt<'_>,
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<(Origin, Vectors)> {
    let Some(path) = at.project else {
        let path = at.file.context("specify a project or a file with embeddings")?.to_owned();
        let vectors = Vectors::read(&path)?;
        if vectors.unusable > 0 {
            let (unusable, path) = (vectors.unusable, path.display());
            eprintln!("note: rows of {path} that contain NaN or infinity, and are not used: {unusable}");
        }
        return Ok((Origin::File(path), vectors));
    };
    let (project, run) = open_run(at, path, dirs, choose_run)?;
    let Some((encoder, vectors)) = stored_vectors(&project, &run, control)? else {
        bail!(why_no_embeddings(&run, &ModelPlace { dirs, runtime_library: None }, control));
    };
    eprintln!("embeddings by {encoder}");
    Ok((Origin::Model(Box::new((run, encoder))), vectors))
}

/// The project, and its run that is given by a model or that `choose` returns.
fn open_run(
    at: &VectorsAt<'_>,
    path: &Path,
    dirs: &AppDirs,
    choose: fn(&Project, Option<&str>, &str) -> anyhow::Result<RunInfo>,
) -> anyhow::Result<(Project, RunInfo)> {
    let project = open_project(path, at.s3, dirs, at.program)?;
    let run = match at.model {
        Some(model) => newest_of(&project, model)?,
        None => choose(&project, at.run, "comparing")?,
    };
    Ok((project, run))
}

fn newest_of(project: &Project, model: &str) -> anyhow::Result<RunInfo> {
    let runs = project.runs()?;
    let found = runs.iter().rfind(|run| run.key.model_id == model);
    found.cloned().with_context(|| {
        let known: BTreeSet<&str> = runs.iter().map(|run| run.key.model_id.as_str()).collect();
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        format!("no run of the project is by the model {model}; it has runs by: {known}")
    })
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
    let sample = sample_of(query, samples).map(|at| &samples[at]);
    let row = sample.and_then(|sample| vectors.uris.iter().position(|uri| *uri == sample.uri));
    if let (Some(sample), Some(row)) = (sample, row)
        && let Some(embedding) = vectors.rows.row(row)
    {
        return Ok(QueryImage { uri: Some(sample.uri.clone()), embedding });
    }
    let model = match origin {
        Origin::Model(model) => model,
        Origin::Encoder(_) => bail!("the query image {} has no embedding", query.display()),
        Origin::File(path) => bail!(
            "no row of {} is the query image {}, and no model is known that could compute its embedding: choose an image \
             with a row, or use --project instead of --embeddings",
            rows_file(path).display(),
            query.display()
        ),
    };
    Ok(QueryImage { uri: None, embedding: embed_query(query, ImagePart::Whole, model, dirs, control)? })
}

/// The position of the query among the images, if it is one of them.
fn sample_of(query: &Path, samples: &[Sample]) -> Option<usize> {
    let text = query.to_string_lossy();
    let path = absolute(query).unwrap_or_else(|_| query.to_owned());
    let path = path.to_string_lossy();
    let is_it = |sample: &Sample| [&*text, &*path].contains(&sample.uri.as_str()) || sample.name == text;
    samples.iter().position(is_it)
}

/// The vector of the query image, or a part of it, by the model.
fn embed_query(
    query: &Path,
    part: ImagePart,
    model: &(RunInfo, Encoder),
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<Embedding> {
    let path = query.display();
    let bytes = local_file::read(query).with_context(|| format!("Could not read {path}"))?;
    let place = ModelPlace { dirs, runtime_library: None };
    similar::embed(&bytes, part, model, &place, control).with_context(|| format!("Could not compare with {path}"))
}
