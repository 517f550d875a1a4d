//! `spotcheck sample`: draws images from a source while it is listed, and writes them as a list that can be opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use super::Outcome;
use super::out_file::{check_is_no_input, is_stdout};
use super::place::{self, LayoutArgs, S3Args, is_stdin, parse_location};
use super::terminal::{interruptible, print_problems, with_progress};
use super::values::variant;
use crate::domain::{Location, counted, grouped};
use crate::image::source::{
    DrawnListing, ImageList, ListedImage, LocalSource, Source, WithRecords, absolute, for_task,
};
use crate::project::export::{Existing, ExportTarget, WholeFile};
use crate::review::{DrawBy, DrawnImages, ImageDraw};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct ImageSampleArgs {
    /// Folder, or `s3://bucket/folder/`
    source: PathBuf,
    /// Number of images to draw
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Draw all with equal probability, or from each folder (prefix) at the top in proportion to its size, at least two
    #[arg(long, value_name = "DESIGN", default_value = "random", value_parser = variant::<DrawBy>())]
    by: DrawBy,
    /// Seed of the random numbers; the same seed draws the same images, and a higher --count adds to them
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the list of drawn images, which can be opened like a folder
    #[arg(long, value_name = "FILE.json")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    s3: S3Args,
    #[command(flatten)]
    listing: LayoutArgs,
}

pub(crate) fn run(args: &ImageSampleArgs) -> anyhow::Result<Outcome> {
    check_out(args)?;
    let target = ExportTarget { path: args.out.clone(), existing: Existing::from_force(args.force) };
    let file = WholeFile::create(&target).context("Could not write the list")?;
    let location = args.listing.apply_to(parse_location(&args.source, &args.s3)?)?;
    let control = interruptible(ProgressUnit::Images)?;
    let (source, location) = open(location, &control)?;
    let source = for_task(&source, &control);
    let mut draw = ImageDraw::new(args.by, args.count as usize, args.seed);
    let listing = with_progress("Listing", &control, || DrawnListing::read(&*source, &mut draw, &control))?;
    let listed = draw.listed();
    print_problems("skipped ", &listing.problems);
    if listing.more_problems > 0 {
        eprintln!("and {} more", counted(listing.more_problems, "problem", "problems"));
    }
    for note in &listing.notes {
        eprintln!("note: {note}");
    }
    if listed == 0 {
        bail!("No images in {}; specify a folder with images", source.name());
    }
    let DrawnImages { strata, images, is_merged } = draw.finish();
    if is_merged {
        eprintln!("note: there are too many folders for strata of their own; all images were equally likely");
    }
    let images: Vec<ListedImage> =
        images.into_iter().map(|(stratum, sample)| ListedImage::new(sample, stratum, &strata)).collect();
    let drawn = images.len();
    let from = if strata.len() == 1 { String::new() } else { format!(", from {} strata", grouped(strata.len())) };
    let list = ImageList::new(location, args.by, args.seed, strata, images);
    file.commit_with(list.to_json()?.as_bytes()).context("Could not write the list")?;
    eprintln!("drew {} of {}{from}: {}", grouped(drawn), counted(listed, "image", "images"), args.out.display());
    Ok(if listing.problems.is_empty() { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

fn check_out(args: &ImageSampleArgs) -> anyhow::Result<()> {
    if is_stdout(&args.out) {
        bail!("cannot write this to stdout; give a file to --out");
    }
    if is_stdin(&args.source) {
        bail!("cannot draw from stdin; specify a folder or s3://bucket/folder/");
    }
    if args.out.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("json")) {
        bail!(
            "lists of images are opened by their extension; choose a name that ends in .json: {}",
            args.out.display()
        );
    }
    check_is_no_input(&args.out, &[("the source", Some(Path::new(&args.source)))])
}

/// The source, and what the list names it.
fn open(location: Location, control: &TaskControl) -> anyhow::Result<(Arc<dyn Source>, Location)> {
    match location {
        Location::Path(path) => {
            let path = absolute(&path).with_context(|| format!("Could not open {}", path.display()))?;
            if !path.is_dir() {
                bail!("this is not a folder; draw from a folder or s3://bucket/folder/: {}", path.display());
            }
            let local = LocalSource::open(&path).with_context(|| format!("Could not open {}", path.display()))?;
            Ok((Arc::new(WithRecords::over(Arc::new(local.in_any_order()))), Location::Path(path)))
        }
        Location::S3(place) => {
            let opened = place::open(&Location::S3(place), control)?;
            let folder = opened.place.context("the source has no folder")?;
            Ok((opened.source, Location::S3(Box::new(folder))))
        }
    }
}
