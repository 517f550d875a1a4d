//! `spotcheck duplicates`: groups of images that are the same, look the same, or are alike.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::Outcome;
use super::alike::computed::compute;
use super::alike::{Origin, VectorsAt, read_vectors, write_text};
use super::out_file::{Replaceable, check_out};
use super::place::{self, S3Args, is_in_s3, parse_location};
use super::predict::list_images;
use super::terminal::{interruptible, print_problems, step_of, summary, with_progress};
use super::values::parse_score;
use crate::alike::{
    DEFAULT_DISTANCE, DEFAULT_SIMILARITY, DuplicateEvidence, DuplicateGroup, DuplicateKind, HashIndex, MAX_DISTANCE,
    METRIC, Sides,
};
use crate::dirs::AppDirs;
use crate::domain::{Sample, counted, grouped};
use crate::image::decode::DecodeLimits;
use crate::image::fingerprint::Fingerprints;
use crate::image::source::{Source, for_task};
use crate::project::export::ComparedVectors;
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct DuplicatesArgs {
    /// Folder, image, list of `spotcheck sample`, TFRecord file, or `s3://bucket/folder/`
    source: PathBuf,
    /// Images to compare with those of SOURCE; only groups with images of both are written
    other: Option<PathBuf>,
    /// How many of the 64 bits of the perceptual hashes of near duplicates may differ, or `off`
    #[arg(long, value_name = "BITS|off", default_value_t = Near(Some(DEFAULT_DISTANCE)), value_parser = parse_near)]
    near: Near,
    /// Project with embeddings of the images, to find those that are alike as well
    #[arg(long, value_name = "FILE.spotcheck")]
    project: Option<PathBuf>,
    /// Run whose model is used, by name or number [default: the newest]
    #[arg(long, value_name = "NAME|NUMBER", requires = "project", conflicts_with = "embeddings")]
    run: Option<String>,
    /// Model whose embeddings are compared: as --run, the newest run of this model, or, without --project, computed for
    /// this command and not saved
    #[arg(long, value_name = "ID|FILE.onnx", conflicts_with_all = ["run", "embeddings"])]
    model: Option<String>,
    /// NumPy array of embeddings computed elsewhere, as for `alike`
    #[arg(long, value_name = "FILE.npy", conflicts_with = "project")]
    embeddings: Option<PathBuf>,
    /// Lowest similarity of the embeddings of images that are alike
    #[arg(long, value_name = "SIMILARITY", default_value_t = DEFAULT_SIMILARITY, value_parser = parse_score::<f32>)]
    above: f32,
    /// Write JSON Lines to this file, or to stdout with `-`
    #[arg(long, value_name = "FILE.jsonl|-", default_value = "-")]
    out: PathBuf,
    /// Maximum image size in megapixels
    #[arg(long, default_value_t = DecodeLimits::default().max_megapixels)]
    max_megapixels: u64,
    #[command(flatten)]
    s3: S3Args,
}

/// The largest distance of near duplicates; `None` if they are not searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Near(Option<u32>);

impl std::fmt::Display for Near {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(bits) => bits.fmt(formatter),
            None => formatter.write_str("off"),
        }
    }
}

fn parse_near(text: &str) -> Result<Near, String> {
    if text == "off" {
        return Ok(Near(None));
    }
    let bits = text.parse().ok().filter(|bits| *bits <= MAX_DISTANCE);
    bits.map(|bits| Near(Some(bits))).ok_or_else(|| format!("expected 0 to {MAX_DISTANCE} bits, or “off”"))
}

/// Thresholds whose effect is printed if they are lower than the one used.
const LOWER_THRESHOLDS: [f32; 3] = [0.9, 0.8, 0.7];

/// A line of the output.
#[derive(Serialize)]
struct Line<'l> {
    kind: DuplicateKind,
    /// Of the image that is least similar to the first.
    similarity: f32,
    images: Vec<LineImage<'l>>,
    metric: &'static str,
    /// The lowest similarity in a group.
    threshold: f32,
    encoder: Option<&'l str>,
    layer: Option<&'l str>,
}

#[derive(Serialize)]
struct LineImage<'l> {
    uri: &'l str,
    /// Whether the image is in SOURCE or OTHER; left out with one source.
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<&'static str>,
    /// To the first image.
    similarity: f32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    mirrored: bool,
}

impl DuplicatesArgs {
    fn limits(&self) -> DecodeLimits {
        DecodeLimits { max_megapixels: self.max_megapixels, ..DecodeLimits::default() }
    }
}

pub(crate) fn run(args: &DuplicatesArgs) -> anyhow::Result<Outcome> {
    let inputs = [
        ("the images", Some(&*args.source)),
        ("the other images", args.other.as_deref()),
        ("the project", args.project.as_deref()),
        ("the embeddings", args.embeddings.as_deref()),
    ];
    check_out(&args.out, Replaceable::Empty, &inputs)?;
    let control = interruptible(ProgressUnit::Images)?;
    let images = Images::list(args, &control)?;
    // What can fail early fails before the images are read.
    let vectors = read_compared(args, &images, &control)?;
    let fingerprints = images.read(args, &control)?;
    print_problems("not compared: ", &fingerprints.problems);
    if fingerprints.plain > 0 {
        eprintln!("note: nearly of one color, so only their bytes are compared: {}", grouped(fingerprints.plain));
    }
    let evidence = DuplicateEvidence {
        digests: &fingerprints.digests,
        hashes: &fingerprints.hashes,
        embeddings: vectors.as_ref().map(|(_, vectors)| vectors.parts()),
    };
    let groups = evidence.groups(images.sides, args.near.0, args.above, || !control.is_cancelled());
    let groups = groups.context("canceled")?;
    let names = vectors.as_ref().map(|(origin, _)| origin.names());
    let mut text = String::new();
    for group in &groups {
        let encoder = names.as_ref().map(|(encoder, layer)| (&**encoder, layer.as_deref()));
        text.push_str(&serde_json::to_string(&line(args, &images, group, encoder))?);
        text.push('\n');
    }
    write_text(&args.out, &text)?;
    print_summary(&images, &groups);
    if let Some((_, compared)) = &vectors {
        print_lower_thresholds(&images, &groups, compared, args.above);
    }
    Ok(match (groups.is_empty(), fingerprints.problems.is_empty()) {
        (true, true) => Outcome::AllWell,
        (true, false) => Outcome::SomeImagesFailed,
        (false, _) => Outcome::FoundDuplicates,
    })
}

/// The embeddings of the images, compared with each other; `None` if none were asked for.
fn read_compared(
    args: &DuplicatesArgs,
    images: &Images,
    interrupt: &TaskControl,
) -> anyhow::Result<Option<(Origin, ComparedVectors)>> {
    let dirs = AppDirs::find()?;
    let (origin, vectors) = match &args.model {
        Some(model) if args.project.is_none() => compute(model, &images.parts(), &args.limits(), &dirs, interrupt)?,
        None if args.project.is_none() && args.embeddings.is_none() => return Ok(None),
        model => {
            let at = VectorsAt {
                project: args.project.as_deref(),
                run: args.run.as_deref(),
                model: model.as_deref(),
                file: args.embeddings.as_deref(),
                s3: &args.s3,
                program: "spotcheck duplicates",
            };
            read_vectors(&at, &dirs, interrupt)?
        }
    };
    let (control, _cancel) = step_of(interrupt, ProgressUnit::Steps);
    let vectors = origin.of_samples(&vectors, &images.samples)?;
    let compare = || ComparedVectors::new(vectors, &images.samples, &control);
    Ok(Some((origin, with_progress("Comparing", &control, compare)?)))
}

/// The images of one or two sources.
struct Images {
    sources: Vec<Arc<dyn Source>>,
    /// Those of the first source come first.
    samples: Vec<Sample>,
    sides: Sides,
}

impl Images {
    fn list(args: &DuplicatesArgs, control: &TaskControl) -> anyhow::Result<Self> {
        let paths = [Some(&args.source), args.other.as_ref()];
        let in_s3 = paths.into_iter().flatten().any(|path| is_in_s3(path));
        let list = |path: &Path| {
            let location = parse_location(path, args.s3.for_path(path, in_s3))?;
            let opened = place::open(&location, control)?;
            let page = list_images(&opened.source, None, Some(&args.out), "there is nothing to compare", control)?;
            anyhow::Ok((opened.source, page.samples))
        };
        let (source, mut samples) = list(&args.source)?;
        let Some(other) = &args.other else {
            return Ok(Self { sources: vec![source], samples, sides: Sides::One });
        };
        let (other, mut others) = list(other)?;
        if source.server() == other.server() {
            let known: std::collections::HashSet<_> = samples.iter().map(|sample| sample.uri.clone()).collect();
            let listed = others.len();
            others.retain(|sample| !known.contains(&sample.uri));
            if others.len() < listed {
                eprintln!(
                    "note: these images are in both sources, and not compared: {}",
                    grouped(listed - others.len())
                );
            }
        }
        let sides = Sides::Two(samples.len());
        samples.extend(others);
        Ok(Self { sources: vec![source, other], samples, sides })
    }

    /// The sources with their images.
    fn parts(&self) -> Vec<(Arc<dyn Source>, &[Sample])> {
        let second = if let Sides::Two(second) = self.sides { second } else { self.samples.len() };
        let (first, others) = self.samples.split_at(second);
        self.sources.iter().cloned().zip([first, others]).collect()
    }

    fn read(&self, args: &DuplicatesArgs, interrupt: &TaskControl) -> anyhow::Result<Fingerprints> {
        let (control, _cancel) = step_of(interrupt, ProgressUnit::Images);
        control.set_total(Some(self.samples.len() as u64));
        let read = || {
            let mut all = Fingerprints::default();
            for (source, samples) in self.parts() {
                all.extend(Fingerprints::read(&*for_task(&source, &control), samples, &args.limits(), &control)?);
            }
            anyhow::Ok(all)
        };
        let fingerprints = with_progress("Reading", &control, read)?;
        eprintln!("{}", summary(&control.progress()));
        Ok(fingerprints)
    }

    fn side(&self, image: usize) -> Option<&'static str> {
        let is_first = self.sides.is_first(image);
        (self.sides != Sides::One).then_some(if is_first { "source" } else { "other" })
    }
}

fn line<'l>(
    args: &DuplicatesArgs,
    images: &'l Images,
    group: &DuplicateGroup,
    encoder: Option<(&'l str, Option<&'l str>)>,
) -> Line<'l> {
    let image = |image: usize, similarity, mirrored| LineImage {
        uri: images.samples[image].uri.as_str(),
        side: images.side(image),
        similarity,
        mirrored,
    };
    let others = group.others.iter().map(|other| image(other.image, other.similarity, other.is_mirrored));
    let (metric, threshold) = match group.kind {
        DuplicateKind::Exact => ("equal bytes (SHA-256)", 1.0),
        DuplicateKind::Near => (HashIndex::METRIC, HashIndex::similarity(args.near.0.unwrap_or_default())),
        DuplicateKind::Alike => (METRIC, args.above),
    };
    let encoder = encoder.filter(|_| group.kind == DuplicateKind::Alike);
    Line {
        kind: group.kind,
        similarity: group.similarity(),
        images: std::iter::once(image(group.first, 1.0, false)).chain(others).collect(),
        metric,
        threshold,
        encoder: encoder.map(|(encoder, _)| encoder),
        layer: encoder.and_then(|(_, layer)| layer),
    }
}

/// Prints how many other images lower thresholds would find: those whose nearest neighbors are similar enough.
fn print_lower_thresholds(images: &Images, groups: &[DuplicateGroup], compared: &ComparedVectors, above: f32) {
    let (_, graph, rows) = compared.parts();
    let mut image_of = vec![0; graph.len()];
    for (image, row) in rows.iter().enumerate() {
        if let Some(row) = row {
            image_of[*row] = image;
        }
    }
    let mut is_found = vec![false; rows.len()];
    for image in groups.iter().flat_map(DuplicateGroup::images) {
        is_found[image] = true;
    }
    let is_first = |image: usize| images.sides.is_first(image);
    // With two sources, each group has images of both.
    let is_compared = |image: usize, other: usize| images.sides == Sides::One || is_first(image) != is_first(other);
    let best = |(image, row): (usize, &Option<usize>)| {
        let neighbors = graph.neighbors((*row).filter(|_| !is_found[image])?).iter();
        neighbors.filter(|other| is_compared(image, image_of[other.row])).map(|other| other.similarity).next()
    };
    let best: Vec<f32> = rows.iter().enumerate().filter_map(best).collect();
    let counts = LOWER_THRESHOLDS.into_iter().filter(|lower| *lower < above).filter_map(|lower| {
        let count = best.iter().filter(|similarity| **similarity >= lower).count();
        (count > 0).then(|| format!("{} from {lower} on", grouped(count)))
    });
    let counts: Vec<String> = counts.collect();
    if !counts.is_empty() {
        eprintln!(
            "note: images outside these groups that are similar to another: {}; --above sets the threshold",
            counts.join(", ")
        );
    }
}

fn print_summary(images: &Images, groups: &[DuplicateGroup]) {
    if groups.is_empty() {
        eprintln!("no duplicates among {}", counted(images.samples.len(), "image", "images"));
        return;
    }
    for kind in [DuplicateKind::Exact, DuplicateKind::Near, DuplicateKind::Alike] {
        let of_kind = groups.iter().filter(|group| group.kind == kind);
        let (count, duplicates) = of_kind.fold((0, 0), |(count, all), group| (count + 1, all + group.others.len()));
        if count > 0 {
            let kind: &str = kind.into();
            let duplicates = counted(duplicates, "duplicate", "duplicates");
            eprintln!("{kind}: {}, with {duplicates} of their first images", counted(count, "group", "groups"));
        }
    }
}
